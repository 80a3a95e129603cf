"""The values of a search: the fields of a memory with their weights, the statistics of a corpus, and a match. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The searched fields of a memory, and the weight of a word in each.
FIELD_WEIGHTS: Mapping[str, float] = {
    "summary": 3.0,
    "topic": 3.0,
    "about": 2.0,
    "rationale": 1.5,
    "explanation": 1.0,
    "evidence": 0.5,
    "alternatives": 0.5,
}
#: The one name in `metadata` that filters: a request covers entries of its namespace only.
NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """Statistics of a corpus at a moment: memories, words in all of them, and memories with each word."""

    memories: int
    words: int
    holding: Mapping[str, int]
    newest: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A memory with some of the words: its stems by field, its length in words, and its other ranking features."""

    number: int
    item: str
    recorded: str
    confidence: str
    length: int
    fields: tuple[str, ...]
    successors: tuple[str, ...] = ()
    is_about: bool = False
