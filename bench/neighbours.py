"""How many repeated and contradicted statements of real projects `jidomem.recall.neighbours` notices.

    python -m bench.neighbours

For each repository of `tests/recall/project_notes`, and each file of brief statements on the same subjects in
`tests/recall/subject_notes`, the notes are written to a memory, and the labelled statements are compared to them: with
the vectors of the local embedder, then by words alone.  It prints for how many statements the labelled memory is a
neighbour, and how many statements on other matters have any.  Then it prints the constants of the logistic functions,
fitted to the repositories of the part "fit": to labelled pairs on one matter, and to unrelated statements with their
nearest memory, both classes counting the same.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np

import jidomem
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall import neighbours
from jidomem.records.interfaces import Embedder

NOTES = Path(__file__).parent.parent / "tests" / "recall" / "project_notes"
SUBJECT_NOTES = NOTES.parent / "subject_notes"
PROJECT = "notes"
MOMENT = "2099-01-01T00:00:00.000000Z"
LABELS = ("repeats", "contradicts", "near", "unrelated")
STEPS = 50


@dataclass(frozen=True)
class Case:
    """A labelled statement: the likeness of each memory that was compared, by id, and the labelled id."""

    part: str
    label: str
    target: str | None
    likeness: dict[str, float]

    @property
    def is_noticed(self) -> bool:
        """Return whether the labelled memory, or for an unrelated statement any memory, is a neighbour."""
        return self.of_target >= neighbours.LEAST

    @property
    def of_target(self) -> float:
        """Return the likeness of the labelled memory, or the highest one of an unrelated statement."""
        return self.likeness.get(self.target, 0.0) if self.target else max(self.likeness.values(), default=0.0)


def cases(embedder: Embedder | None, least: float = neighbours.LEAST, folder: Path = NOTES) -> Iterator[Case]:
    """Yield the labelled statements of all files of *folder*, with the memories of at least this likeness."""
    for path in sorted(folder.glob("*.json")):
        notes = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as temporary:
            yield from _cases(notes, Path(temporary) / ".jidomem", embedder, least)


def _cases(notes: dict[str, Any], root: Path, embedder: Embedder | None, least: float) -> Iterator[Case]:
    with jidomem.open(root, project=PROJECT, embedder=embedder) as memory:
        receipts = memory.writer.submit_many(PROJECT, [*map(intent, notes["memories"])], atomic=True)
        ids = {str(receipt): note["id"] for receipt, note in zip(receipts, notes["memories"], strict=True)}
        if memory.embedding is not None:
            memory.embedding.embed(PROJECT)
        for label in LABELS:
            for each in notes.get(label, ()):
                text, target = (each, None) if isinstance(each, str) else (each["text"], each["memory"])
                whole = "\n".join(filter(None, (text, "" if target is None else each.get("topic", ""))))
                likeness = {ids[item]: value for item, value in compared(memory, text, whole, least).items()}
                yield Case(notes["part"], label, target, likeness)


def intent(note: dict[str, Any]) -> dict[str, Any]:
    """Return *note* as an intent."""
    fields = {name: note[name] for name in ("summary", "type", "topic", "about", "rationale") if note.get(name)}
    rationale = {"rationale": "-"} if note.get("type") == "decision" else {}
    author = {"applies_to_project": PROJECT, "asserted_by": "a", "asserted_in": "s", "confidence": "high"}
    return {"type": "fact", **author, **rationale, **fields}


def compared(memory: jidomem.Jidomem, text: str, whole: str, least: float = neighbours.LEAST) -> dict[str, float]:
    """Return the likeness of each memory near to a statement, by IRI."""
    stream, embedding = Stream(PROJECT), memory.embedding
    new = None if embedding is None else neighbours.NewText(whole, embedding.vectors, embedding.vector_of)
    stems = neighbours.significant(stem for _, stem in memory.texts.stemmer.stems(text))
    within = neighbours.comparable("fact", MOMENT)
    search = neighbours.NeighbourSearch(stream, stems, within, new, summary=text, least=least, limit=100)
    memory.texts.read(stream, search.gather)
    near = search.neighbours(partial(memory.texts.read, stream))
    return {each.item: each.likeness for each in near}


def fitted(every: Sequence[Case], slope: float, middle: float) -> tuple[float, float]:
    """Return slope and middle of the logistic function fitted to *every* case; the likeness has the present ones."""

    def value(case: Case) -> float:
        likeness = min(case.of_target, 1 - 1e-6)
        return middle + log(likeness / (1 - likeness)) / slope if likeness else 0.0  # it was not gathered

    labels = np.array([float(case.target is not None) for case in every])
    rows = np.column_stack([[value(case) for case in every], np.ones(len(every))])
    share = np.where(labels > 0, 0.5 / labels.sum(), 0.5 / (1 - labels).sum())
    weights = np.zeros(2)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-(rows @ weights)))
        slopes = rows.T @ (share * (labels - chance)) - 1e-4 * weights
        curve = (rows * (share * chance * (1 - chance))[:, None]).T @ rows + 1e-4 * np.eye(2)
        weights = weights + np.linalg.solve(curve, slopes)
    return float(weights[0]), float(-weights[1] / weights[0])


def main() -> None:
    """Print the rates and the constants."""
    brief = neighbours.BRIEF
    for name, embedder, constants in (
        ("with vectors", LocalEmbedder(), neighbours.BY_BOTH),
        ("by words", None, neighbours.BY_WORDS),
    ):
        for folder in (NOTES, SUBJECT_NOTES):
            every = [*cases(embedder, folder=folder)]
            for part in ("fit", "held out"):
                rates = []
                for label in LABELS:
                    of_label = [case for case in every if (case.part, case.label) == (part, label)]
                    if of_label:
                        rates.append(f"{label} {sum(case.is_noticed for case in of_label)} of {len(of_label)}")
                print(f"{folder.name}, {name}, {part}: {', '.join(rates)}")
        neighbours.BRIEF = 0  # the constants of brief statements are chosen, not fitted
        used = [case for case in cases(embedder, 0.0) if case.part == "fit" and case.label != "near"]
        neighbours.BRIEF = brief
        slope, middle = fitted(used, *constants)
        print(f"{name}, fitted: slope {slope:.2f}, middle {middle:.3f}")


if __name__ == "__main__":
    main()
