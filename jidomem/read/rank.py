"""How memories that hold some of the words asked for are ranked.  Pure: rows in, scores with their parts out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf, log

from jidomem.lexical import FIELDS, Counts, Match

#: BM25: how soon a word that is repeated counts no more, and how much a long text counts less.
K1, B = 1.2, 0.75
#: What a word weighs at least for SQLite.
LEAST = 1e-6
#: How many times what SQLite weighs a word with is too far from its weight to tell where to stop.
FAR = 2.0
#: What is added to the words, as parts of what they count: a file asked about; and to tell equals apart, what was
#: recorded late, half of it a month before the newest, and what is held to be sure.
ABOUT, RECENT, HALF_LIFE = 0.5, 0.03, 30.0
CONFIDENCE: Mapping[str, float] = {"High": 0.02, "Medium": 0.01}
TIES = RECENT + max(CONFIDENCE.values())
#: How much less than its successor a memory that was superseded counts at most.
BEHIND = 0.999


@dataclass(frozen=True, slots=True)
class Scored:
    """A match with its score, and the parts that add up to it; `words` are parts of `lexical`."""

    match: Match
    score: float
    parts: Mapping[str, float]
    words: Mapping[str, float]

    @property
    def place(self) -> tuple[float, str, str]:
        """Return what sorts it: the best first, of equals the newest, then by IRI."""
        return -self.score, backwards(self.match.recorded), self.match.item


def weights(stems: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how much each word tells: the more, the fewer memories hold it.

    >>> weights(["rare", "common"], Counts(10, 100, {"rare": 2, "common": 9}))
    {'rare': 1.2237754316221157, 'common': 0.07330173709593772}
    """
    return {stem: _weight(_odds(counts.memories, counts.holding.get(stem, 0))) for stem in stems}


def _weight(odds: float) -> float:
    """Return what a word tells: what SQLite weighs it with, but something also where most memories hold it."""
    return max(log(odds), log(1 + odds) / 2)


def _odds(memories: int, holding: int) -> float:
    """Return the odds against a memory holding a word."""
    return (memories - holding + 0.5) / (holding + 0.5)


def scored(match: Match, weight: Mapping[str, float], counts: Counts) -> Scored:
    """Return the score of *match* for the words of *weight*, whatever succeeded it left aside."""
    words = dict(_by_word(match, weight, counts))
    lexical = sum(words.values())
    parts = {"lexical": lexical, "about": lexical * ABOUT * match.is_about}
    late, sure = ties(match.recorded, match.confidence, counts.newest)
    parts |= {"recency": lexical * late, "confidence": lexical * sure}
    return Scored(match, sum(parts.values()), parts, words)


def ties(recorded: str, confidence: str, newest: str) -> tuple[float, float]:
    """Return what is added for what was recorded late, and for what is held to be sure, as parts of the words."""
    return RECENT * 0.5 ** (_days(recorded, newest) / HALF_LIFE), CONFIDENCE.get(confidence, 0.0)


def _by_word(match: Match, weight: Mapping[str, float], counts: Counts) -> Iterable[tuple[str, float]]:
    """Yield each word that stands in the match, with what it counts."""
    fields = [(value, text.split()) for value, text in zip(FIELDS.values(), match.fields, strict=True) if text]
    average = counts.words / counts.memories
    damping = K1 * (1 - B + B * match.length / average)
    for stem, told in weight.items():
        often = sum(value * text.count(stem) for value, text in fields)
        if often:
            yield stem, told * often * (K1 + 1) / (often + damping)


def behind(found: Scored, successors: Iterable[Scored]) -> Scored:
    """Return *found* ranked below each of *successors*, which came in its place and match as well."""
    highest = min((after.score * BEHIND for after in successors), default=inf)
    if found.score <= highest:
        return found
    return Scored(found.match, highest, {**found.parts, "superseded": highest - found.score}, found.words)


def ceiling(weight: Mapping[str, float], now: Counts, then: Counts) -> tuple[float, float]:
    """Return how many times what SQLite scores a match with, and how much beside, its score can be by these words.

    SQLite weighs them by what is there *now*, *weight* does by what was known *then*.
    """
    longer = max(1.0, (then.words / then.memories) / (now.words / now.memories))
    ratios = {stem: told / max(log(_odds(now.memories, now.holding[stem])), LEAST) for stem, told in weight.items()}
    near = [ratio for ratio in ratios.values() if ratio <= FAR]
    if not near:  # all of them common: SQLite weighs each as good as nothing, and still tells which are the best
        return max(ratios.values()) * longer, 0.0
    return max(near) * longer, most(weight[stem] for stem, ratio in ratios.items() if ratio > FAR)


def most(weight: Iterable[float]) -> float:
    """Return the most that words of these weights count together."""
    return sum(value * (K1 + 1) for value in weight)


def _days(recorded: str, newest: str) -> float:
    """Return how many days before the newest memory one was recorded."""
    return max((datetime.fromisoformat(newest) - datetime.fromisoformat(recorded)).total_seconds(), 0.0) / 86_400


def backwards(moment: str) -> str:
    """Return a text that sorts the later of two moments of one form first.

    >>> backwards("2026") < backwards("2025")
    True
    """
    return moment.translate(_BACKWARDS)


_BACKWARDS = {48 + digit: 57 - digit for digit in range(10)}
