"""What a search for words is made of: the fields of a memory, how often words stand in it, and in how many others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Each field of a memory that is looked through, and how much a word in it counts.
FIELDS: Mapping[str, float] = {
    "summary": 3.0,
    "topic": 3.0,
    "about": 2.0,
    "rationale": 1.5,
    "explanation": 1.0,
    "evidence": 0.5,
    "alternatives": 0.5,
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Of what was known at a moment: how many memories, words in all of them, and memories that hold each word."""

    memories: int
    words: int
    holding: Mapping[str, int]
    newest: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A memory that holds some of the words: its stems by field, how many they are, and what else it is ranked by."""

    number: int
    item: str
    recorded: str
    confidence: str
    length: int
    fields: tuple[str, ...]
    successors: tuple[str, ...] = ()
    is_about: bool = False
