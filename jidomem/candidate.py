"""What may answer a question, with all that tells how well: plain values, of which a ranking makes scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jidomem.lexical import Counts

#: A ranking's own numbers, and the name and version it is told by.
Profile = Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class Passage:
    """One memory, entry or turn as a question meets it.

    `words` has, by stem, how often a word of the question stands in it, each time counted by its field; `length` is how
    many words it has. `text` is the beginning of what it says. `cosine` is how alike it is to the question, None where
    no vector is known. `said_at` is when it was said, in the one written form; `speakers` are as they were named.
    """

    item: str
    text: str
    words: Mapping[str, float]
    length: int
    cosine: float | None
    speakers: tuple[str, ...]
    said_at: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may answer, and what stands around it.

    `kind` is `memory`, `entry` or `turn`. `before` and `after` are what was said around it in its session, the nearest
    first. `successors` are what superseded it; one of those that are candidates as well never stands below it. `ended`
    is when it ceased to hold, None for what is in force.
    """

    passage: Passage
    kind: str
    types: tuple[str, ...]
    recorded: str
    confidence: str = ""
    agent: str = ""
    session: str = ""
    before: tuple[Passage, ...] = ()
    after: tuple[Passage, ...] = ()
    is_about: bool = False
    ended: str | None = None
    successors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `stems` has the word each stem is looked for by, `counts` how many passages hold it.

    `speakers` are those named in what is looked through whose name stands in the question; `now` is the moment asked
    at. `has_vectors` says whether any cosine is known.
    """

    text: str
    stems: Mapping[str, str]
    counts: Counts
    speakers: tuple[str, ...] = ()
    now: str = ""
    has_vectors: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and the parts that add up to it."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]
