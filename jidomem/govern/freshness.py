"""Which memories are about files that were changed, renamed or removed since they were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jidomem import active
from jidomem.anchor import ANCHOR, Anchor, anchors_of
from jidomem.index import OxigraphIndex
from jidomem.read.reader import MemoryReader
from jidomem.repository.freshness import UNCHANGED, Freshness, freshness
from jidomem.repository.worktree import Worktree
from jidomem.terms import iri, literal
from jidomem.vocab import graph_iri

Row = dict[str, Any]
#: The columns of `changed_files`.
COLUMNS = ("item", "summary", "path", "state", "at", "question")
_QUESTIONS = {
    "changed": "Does it still hold? The file was changed since.",
    "gone": "Does it still hold? The file is gone.",
    "renamed": "Is it about the file by its new name, too?",
}
_ANCHORED = (
    """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?anchor WHERE {
  ?item jido:aboutBlob ?anchor ; jido:summary ?summary ; jido:appliesToProject ?project .
"""
    + active.now_of_all()
    + """
} ORDER BY ?item ?anchor
"""
)


def anchors_in_force(reader: MemoryReader, project: str) -> list[tuple[str, str, Anchor]]:
    """Return each memory in force with its summary and a file it is about, as it was when it was written."""
    rows = reader.select(project, _ANCHORED)
    return [(row["item"], row["summary"], anchor) for row in rows for anchor in anchors_of([literal(row["anchor"])])]


def changed_files(reader: MemoryReader, tree: Worktree | None, project: str) -> list[Row]:
    """Return item, summary, path, state, at and question for each file that a memory in force is about and that is
    no longer as it was: changed, gone or renamed, and where it is now. Nothing where the root lies in no repository.
    """
    if tree is None:
        return []
    held = anchors_in_force(reader, project)
    found = freshness(tree, (anchor for _, _, anchor in held))
    return [
        {"item": item, "summary": summary, **found[anchor].to_dict(), "question": _QUESTIONS[found[anchor].state]}
        for item, summary, anchor in held
        if found[anchor].state != UNCHANGED
    ]


def anchors_by_item(index: OxigraphIndex, project: str, items: Iterable[str]) -> dict[str, list[Anchor]]:
    """Return what each of *items* keeps of the files it is about."""
    graph = graph_iri(project)
    return {
        item: anchors_of(value for _, _, value in index.triples(graph, iri(item), ANCHOR))
        for item in dict.fromkeys(items)
    }


def fresh(
    index: OxigraphIndex, tree: Worktree | None, project: str, items: Iterable[str]
) -> Mapping[str, list[Freshness]]:
    """Return what became of the files that each of *items* is about; nothing is known where there is no repository."""
    if tree is None:
        return {}
    held = anchors_by_item(index, project, items)
    found = freshness(tree, (anchor for anchors in held.values() for anchor in anchors))
    return {item: [found[anchor] for anchor in anchors] for item, anchors in held.items()}
