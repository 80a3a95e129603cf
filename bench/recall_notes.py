"""Recall with its defaults on labelled notes: the questions with an answer among the first, and those met with silence.

    python -m bench.recall_notes [FOLDER ...]

A FOLDER has a file for each repository (default: `tests/recall/everyday_notes` and `tests/recall/project_notes`).  Each
repository becomes a root of its own, with the local embedder and without.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jidomem
from bench.calibration import FIELDS
from bench.recall import PROJECT
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.records.interfaces import Embedder

NOTES = Path(__file__).parents[1] / "tests/recall"


class Outcome(NamedTuple):
    """The questions with an answer: all, those that have it first, among the first three, and those without a result;
    the questions that nothing answers: all, and those without a result.
    """

    answerable: int
    first: int
    first_three: int
    lost: int
    unanswerable: int
    silent: int

    @classmethod
    def of(cls, notes: Mapping[str, Any], embedder: Embedder | None) -> Outcome:
        """Return the outcome of the questions of *notes*, asked in a new root with its memories."""
        with (
            tempfile.TemporaryDirectory() as folder,
            jidomem.open(Path(folder) / "root", project=PROJECT, agent="bench", embedder=embedder) as root,
        ):
            defaults = {"applies_to_project": PROJECT, "asserted_by": "bench", "asserted_in": "s", "confidence": "high"}
            intents = [
                {**defaults, **{name: note[name] for name in FIELDS if note[name]}} for note in notes["memories"]
            ]
            for intent in intents:
                if intent["type"] == "decision":
                    intent.setdefault("rationale", "as noted")
            receipts = [root.writer.submit_intent(PROJECT, intent) for intent in intents]
            ids = {receipt.iri: note["id"] for receipt, note in zip(receipts, notes["memories"], strict=True)}
            if root.embedding is not None:
                root.embedding.embed(PROJECT)

            def ranked(question: str) -> list[str]:
                return [ids[hit.id] for hit in root.recall(question).entries]

            answers = [(ranked(each["question"]), {*each["answers"]}) for each in notes["questions"]]
            others = [ranked(text) for text in notes["unanswered"]]
        first, three = (sum(not right.isdisjoint(names[:most]) for names, right in answers) for most in (1, 3))
        lost = sum(not names for names, _ in answers)
        return cls(len(answers), first, three, lost, len(others), sum(not names for names in others))


def main() -> None:
    """Print a row for each repository, with vectors and by words, and the sums of each part."""
    folders = [Path(name) for name in sys.argv[1:]] or [NOTES / "everyday_notes", NOTES / "project_notes"]
    for ranking, embedder in (("vectors", LocalEmbedder()), ("words", None)):
        print(f"\n| {ranking} | part | first | in the first three | without a result | silent, unanswered |")
        print("|---|---|---|---|---|---|")
        for folder in folders:
            sums: dict[str, list[Outcome]] = {}
            for path in sorted(folder.glob("*.json")):
                notes = json.loads(path.read_text("utf-8"))
                sums.setdefault(notes["part"], []).append(Outcome.of(notes, embedder))
                print(_row(path.stem, notes["part"], sums[notes["part"]][-1]), flush=True)
            for part, outcomes in sums.items():
                print(_row(f"**{folder.name}**", part, Outcome(*map(sum, zip(*outcomes, strict=True)))))


def _row(name: str, part: str, one: Outcome) -> str:
    found = " | ".join(f"{count} of {one.answerable}" for count in (one.first, one.first_three, one.lost))
    return f"| {name} | {part} | {found} | {one.silent} of {one.unanswerable} |"


if __name__ == "__main__":
    main()
