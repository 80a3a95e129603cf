"""Detection of repeated and contradicted statements by `jidomem.recall.neighbours`, and the fit of its constants.

    python -m bench.neighbours

The data are labelled statements on notes of real projects: `tests/recall/project_notes`, a file for each repository,
and `tests/recall/subject_notes`, brief statements on the same subjects.  The notes are written to a memory and the
statements compared with them, with the vectors of the local embedder and then by words alone.  It prints for how many
statements the labelled memory is a neighbour, and how many unrelated statements have a neighbour.  Then it prints the
constants of the logistic functions, fitted to the repositories of the part "fit": to labelled pairs, and to unrelated
statements with their nearest memory, both classes counting the same.
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
    """A labelled statement: the id of the labelled memory, and the likeness of each compared memory by id."""

    part: str
    label: str
    target: str | None
    likeness: dict[str, float]

    @property
    def is_detected(self) -> bool:
        """Return whether the labelled memory, or for an unrelated statement any memory, is a neighbour."""
        return self.target_likeness >= neighbours.LEAST

    @property
    def target_likeness(self) -> float:
        """Return the likeness of the labelled memory; of an unrelated statement, the highest one."""
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
                full_text = "\n".join(filter(None, (text, "" if target is None else each.get("topic", ""))))
                likeness = {ids[item]: value for item, value in likeness_by_iri(memory, text, full_text, least).items()}
                yield Case(notes["part"], label, target, likeness)


def intent(note: dict[str, Any]) -> dict[str, Any]:
    """Return the intent of *note*."""
    fields = {name: note[name] for name in ("summary", "type", "topic", "about", "rationale") if note.get(name)}
    rationale = {"rationale": "-"} if note.get("type") == "decision" else {}
    author = {"applies_to_project": PROJECT, "asserted_by": "a", "asserted_in": "s", "confidence": "high"}
    return {"type": "fact", **author, **rationale, **fields}


def likeness_by_iri(
    memory: jidomem.Jidomem, text: str, full_text: str, least: float = neighbours.LEAST
) -> dict[str, float]:
    """Return the likeness of each memory near to a statement, by IRI."""
    stream, embedding = Stream(PROJECT), memory.embedding
    new_text = None if embedding is None else neighbours.NewText(full_text, embedding.vectors, embedding.vector_of)
    stems = neighbours.significant(stem for _, stem in memory.texts.stemmer.stems(text))
    kinds = neighbours.comparable("fact", MOMENT)
    search = neighbours.NeighbourSearch(stream, stems, kinds, new_text, summary=text, least=least, limit=100)
    memory.texts.read(stream, search.gather)
    results = search.neighbours(partial(memory.texts.read, stream))
    return {each.item: each.likeness for each in results}


def fit(labelled_cases: Sequence[Case], slope: float, middle: float) -> tuple[float, float]:
    """Return slope and middle of a logistic function fitted to cases whose likeness has *slope* and *middle*."""

    def value(case: Case) -> float:
        likeness = min(case.target_likeness, 1 - 1e-6)
        return middle + log(likeness / (1 - likeness)) / slope if likeness else 0.0  # it is no candidate

    labels = np.array([float(case.target is not None) for case in labelled_cases])
    rows = np.column_stack([[value(case) for case in labelled_cases], np.ones(len(labelled_cases))])
    class_weights = np.where(labels > 0, 0.5 / labels.sum(), 0.5 / (1 - labels).sum())
    weights = np.zeros(2)
    for _ in range(STEPS):
        probability = 1 / (1 + np.exp(-(rows @ weights)))
        gradient = rows.T @ (class_weights * (labels - probability)) - 1e-4 * weights
        hessian = (rows * (class_weights * probability * (1 - probability))[:, None]).T @ rows + 1e-4 * np.eye(2)
        weights = weights + np.linalg.solve(hessian, gradient)
    return float(weights[0]), float(-weights[1] / weights[0])


def main() -> None:
    """Print the rates and the constants."""
    brief = neighbours.BRIEF
    for name, embedder, constants in (
        ("with vectors", LocalEmbedder(), neighbours.BY_BOTH),
        ("by words", None, neighbours.BY_WORDS),
    ):
        for folder in (NOTES, SUBJECT_NOTES):
            labelled_cases = [*cases(embedder, folder=folder)]
            for part in ("fit", "held out"):
                rates = []
                for label in LABELS:
                    labelled = [case for case in labelled_cases if (case.part, case.label) == (part, label)]
                    if labelled:
                        rates.append(f"{label} {sum(case.is_detected for case in labelled)} of {len(labelled)}")
                print(f"{folder.name}, {name}, {part}: {', '.join(rates)}")
        neighbours.BRIEF = 0  # the constants of brief statements are chosen, not fitted
        training_cases = [case for case in cases(embedder, 0.0) if case.part == "fit" and case.label != "near"]
        neighbours.BRIEF = brief
        slope, middle = fit(training_cases, *constants)
        print(f"{name}, fitted: slope {slope:.2f}, middle {middle:.3f}")


if __name__ == "__main__":
    main()
