"""The published scores of MemoryOS, how alike two things are and how hot a segment is, and the place of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from operator import mul
from typing import Protocol

from jidomem.errors import InvalidRequest
from jidomem.memoryos import form
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.form import Vector
from jidomem.memoryos.values import DialogueSegment
from jidomem.words import TELL_LITTLE, words

# Beyond it the rounding of a distance shows in the products; and the least length whose square can be told from nothing
_RATIO, _LEAST = 16.0, 1e-150


class Described(Protocol):
    """What can be held against a segment: a page, another segment, a question."""

    @property
    def embedding(self) -> Vector | None:
        """Return its vector, None while it has none."""

    @property
    def keywords(self) -> frozenset[str]:
        """Return what it is about, in words."""


def cosine(one: Sequence[float] | None, other: Sequence[float] | None, *, strict: bool = True) -> float:
    """Return the cosine of the angle between two vectors, from -1 to 1; 0.0 where one is missing or all zeros.

    Vectors of different length cannot be compared: raises InvalidRequest, or gives 0.0 where it is not *strict*.

    >>> cosine((3.0, 4.0), (4.0, 3.0))
    0.96
    """
    if one is None or other is None:
        return 0.0
    if len(one) != len(other):
        if not strict:
            return 0.0
        raise InvalidRequest(
            f"a vector of {len(one)} numbers is compared with one of {len(other)}",
            hint="embed both by one model: rebuild the vectors, or set strict_vectors=False",
        )
    if one == other:
        return 1.0 if any(one) else 0.0
    length, reference = _length(one), _length(other)
    if not (_LEAST < length < 1 / _LEAST and _LEAST < reference < 1 / _LEAST):
        return cosine(_scaled(one), _scaled(other)) if any(one) and any(other) else 0.0
    if 1 / _RATIO < length / reference < _RATIO:  # by the law of cosines: a distance takes a fifth of the time
        product = (length * length + reference * reference - math.dist(one, other) ** 2) / 2
    else:
        product = sum(map(mul, one, other))
    return max(-1.0, min(1.0, product / (length * reference)))


def _length(vector: Sequence[float]) -> float:
    return vector.length if isinstance(vector, Vector) else math.hypot(*vector)


def _scaled(vector: Sequence[float]) -> tuple[float, ...]:
    largest = max(map(abs, vector))
    return tuple(number / largest for number in vector)


def jaccard(one: Iterable[str], other: Iterable[str]) -> float:
    """Return what share of the words of two sets is in both; 0.0 where both are empty.

    >>> jaccard({"index", "store"}, {"store", "disk", "store"})
    0.3333333333333333
    """
    mine, theirs = frozenset(one), frozenset(other)
    return len(mine & theirs) / len(mine | theirs) if mine or theirs else 0.0


def fscore(segment: Described, other: Described, config: MemoryOSConfig) -> float:
    """Return how alike a segment and a page or a question are, from -1 to 2: cosine and Jaccard together."""
    alike = cosine(segment.embedding, other.embedding, strict=config.strict_vectors)
    return alike + jaccard(segment.keywords, other.keywords)


def recency(last_accessed: datetime, now: datetime, time_constant: float) -> float:
    """Return how recent a moment is, from 0 to 1: `exp(-seconds / time_constant)`; what is yet to come is 1.0."""
    return math.exp(-max(0.0, (now - last_accessed).total_seconds()) / time_constant)


def heat(segment: DialogueSegment, now: datetime, config: MemoryOSConfig) -> float:
    """Return how hot a segment is: how often it was retrieved, how many pages it has and how recent it is, weighed.

    What the personas were taught from counts no more: pages that are analysed, and visits before that.
    """
    return (
        config.heat_alpha * segment.visits
        + config.heat_beta * segment.interactions
        + config.heat_gamma * recency(segment.last_accessed, now, config.time_constant)
    )


def relevance(text: str, embedding: Vector | None, question: Described, config: MemoryOSConfig) -> float:
    """Return how much a text tells of a question, from -1 to 2: the cosine, and the share of its keywords told."""
    asked = _told(" ".join(question.keywords))
    share = len(asked & _told(text)) / len(asked) if asked else 0.0
    return cosine(embedding, question.embedding, strict=config.strict_vectors) + share


@lru_cache(8_192)  # the texts of long and system memory are the same from question to question
def _told(text: str) -> frozenset[str]:
    return frozenset(words(text)) - TELL_LITTLE


@dataclass(frozen=True, slots=True)
class Policy:
    """What the moves of an agent go by: its settings, and the scores, each of which may be one of your own."""

    config: MemoryOSConfig = field(default_factory=MemoryOSConfig)
    fscore: Callable[[Described, Described, MemoryOSConfig], float] = fscore
    heat: Callable[[DialogueSegment, datetime, MemoryOSConfig], float] = heat
    relevance: Callable[[str, Vector | None, Described, MemoryOSConfig], float] = relevance

    def __post_init__(self) -> None:
        if not isinstance(self.config, MemoryOSConfig):
            hint = "give Policy(MemoryOSConfig(stm_capacity=7))"
            raise InvalidRequest(f"config of a Policy is a MemoryOSConfig, not {form.shown(self.config)}", hint=hint)
        for name in ("fscore", "heat", "relevance"):
            if not callable(score := getattr(self, name)):
                hint = f"give a function, or leave {name} out"
                raise InvalidRequest(f"{name} of a Policy is a function, not {form.shown(score)}", hint=hint)
