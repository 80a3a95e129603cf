"""The lexical ranking: BM25 scores of memories that contain words of a query, and the best of them.

`search` returns the best memories; it stops as soon as no other memory can reach their scores.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from math import inf, log

from jidomem.base.stems import Stemmer
from jidomem.base.words import TELL_LITTLE
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, TextMatch
from jidomem.records.recall import FIELD_WEIGHTS, CorpusStats, Match
from jidomem.repository.worktree import matches

#: The parameters of BM25: the saturation of repeated words, and the discount of long texts.
K1, B = 1.2, 0.75
#: The least weight of a word in SQLite.
LEAST = 1e-6
#: The ratio of the weight in SQLite to the weight here beyond which the bound is of no use.
FAR = 2.0
#: Parts of the score of the words that are added for the file of the request, and, to order equal matches, for a late
#: moment: half as much for each month before the newest.
ABOUT, RECENT, HALF_LIFE = 0.5, 0.03, 30.0
CONFIDENCE: Mapping[str, float] = {"High": 0.02, "Medium": 0.01}
TIES = RECENT + max(CONFIDENCE.values())
#: The most that a superseded memory scores, as a part of the score of its successor.
BEHIND = 0.999


@dataclass(frozen=True, slots=True)
class ScoredMatch:
    """A match with its score, and the parts that add up to it; `words` are parts of `lexical`."""

    match: Match
    score: float
    parts: Mapping[str, float]
    words: Mapping[str, float]

    @property
    def place(self) -> tuple[float, str, str]:
        """Return what sorts it: the best first, of equals the newest, then by IRI."""
        return -self.score, backwards(self.match.recorded), self.match.item


def weights(stems: Iterable[str], counts: CorpusStats) -> dict[str, float]:
    """Return how much each word tells: the more, the fewer memories hold it.

    >>> weights(["rare", "common"], CorpusStats(10, 100, {"rare": 2, "common": 9}))
    {'rare': 1.2237754316221157, 'common': 0.07330173709593772}
    """
    return {stem: _weight(_odds(counts.memories, counts.holding.get(stem, 0))) for stem in stems}


def _weight(odds: float) -> float:
    """Return what a word tells: what SQLite weighs it with, but something also where most memories hold it."""
    return max(log(odds), log(1 + odds) / 2)


def _odds(memories: int, holding: int) -> float:
    """Return the odds against a memory holding a word."""
    return (memories - holding + 0.5) / (holding + 0.5)


def scored(match: Match, weight: Mapping[str, float], counts: CorpusStats) -> ScoredMatch:
    """Return the score of *match* for the words of *weight*, whatever succeeded it left aside."""
    words = dict(_by_word(match, weight, counts))
    lexical = sum(words.values())
    parts = {"lexical": lexical, "about": lexical * ABOUT * match.is_about}
    late, sure = ties(match.recorded, match.confidence, counts.newest)
    parts |= {"recency": lexical * late, "confidence": lexical * sure}
    return ScoredMatch(match, sum(parts.values()), parts, words)


def ties(recorded: str, confidence: str, newest: str) -> tuple[float, float]:
    """Return what is added for what was recorded late, and for what is held to be sure, as parts of the words."""
    return RECENT * 0.5 ** (_days(recorded, newest) / HALF_LIFE), CONFIDENCE.get(confidence, 0.0)


def _by_word(match: Match, weight: Mapping[str, float], counts: CorpusStats) -> Iterable[tuple[str, float]]:
    """Yield each word of the match with its score."""
    fields = [(value, text.split()) for value, text in zip(FIELD_WEIGHTS.values(), match.fields, strict=True) if text]
    average = counts.words / counts.memories
    damping = K1 * (1 - B + B * match.length / average)
    for stem, idf in weight.items():
        often = sum(value * text.count(stem) for value, text in fields)
        if often:
            yield stem, idf * often * (K1 + 1) / (often + damping)


def demote_superseded(match: ScoredMatch, successors: Iterable[ScoredMatch]) -> ScoredMatch:
    """Return *match* ranked below each of *successors*, which came in its place and match as well."""
    highest = min((after.score * BEHIND for after in successors), default=inf)
    if match.score <= highest:
        return match
    return ScoredMatch(match.match, highest, {**match.parts, "superseded": highest - match.score}, match.words)


def ceiling(weight: Mapping[str, float], now: CorpusStats, then: CorpusStats) -> tuple[float, float]:
    """Return how many times what SQLite scores a match with, and how much beside, its score can be by these words.

    SQLite weighs them by what is there *now*, *weight* does by what was known *then*.
    """
    longer = max(1.0, (then.words / then.memories) / (now.words / now.memories))
    ratios = {stem: idf / max(log(_odds(now.memories, now.holding[stem])), LEAST) for stem, idf in weight.items()}
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


#: Of a long text the words that tell most are looked for.
MOST_WORDS = 64
#: So many memories that hold the rarest words are looked at before those that hold other words alone.
FIRST = 4_000


def query_stems(stemmer: Stemmer, text: str) -> dict[str, str]:
    """Return the stems of *text*, each with the word it is looked for by: one that tells something where there is."""
    stems: dict[str, str] = {}
    for word, stem in stemmer.stems(text):
        if stem not in stems or stems[stem] in TELL_LITTLE:
            stems[stem] = word
    return stems


def search(
    file: SearchIndexReader, stems: Mapping[str, str], within: SearchFilter, about: Iterable[str], limit: int
) -> tuple[list[ScoredMatch], list[str], CorpusStats]:
    """Return the best matches in order, the words they were looked for by, and the counts behind their scores.

    Words that tell little are looked for only where there are no others.
    """
    now = file.counts(stems)
    then = now if within.moment is None else file.counts(stems, within.moment)
    weight = telling(stems, then)
    one = _Search(file, within, weight, now, then, limit)
    if weight:
        one.run([*weight], numbers_about(file, about))
    return [match for _, match in one.best], list(weight), then


def telling(stems: Mapping[str, str], counts: CorpusStats) -> dict[str, float]:
    """Return what is looked for of *stems*, that which tells most first, each with how much it tells."""
    chosen = [stem for stem, word in stems.items() if word not in TELL_LITTLE] or [*stems]
    known = weights((stem for stem in chosen if counts.holding[stem]), counts)
    return {stem: known[stem] for stem in sorted(known, key=lambda stem: (-known[stem], stem))[:MOST_WORDS]}


def numbers_about(file: SearchIndexReader, about: Iterable[str]) -> frozenset[int]:
    """Return the numbers of the memories that are about one of the files *about*."""
    return file.about(_governing(file.places(), about)) if about else frozenset()


@dataclass(slots=True)
class _Search:
    """One search: `best` holds the best so far, the very best first."""

    file: SearchIndexReader
    within: SearchFilter
    weight: Mapping[str, float]
    now: CorpusStats
    then: CorpusStats
    limit: int
    best: list[tuple[tuple[float, str, str], ScoredMatch]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    about: frozenset[int] = frozenset()

    def run(self, rarest: list[str], about: frozenset[int]) -> None:
        """Look at all that may be among the best: what is *about* a file asked for, then what holds the rarest words.

        What no longer can be among them is not looked at: its score has a ceiling.
        """
        self.about = about
        if about:
            self._look(rarest, only=about)
        done = 0
        for taken in self._steps(rarest):
            self._look(rarest[done:taken], rarest[taken:], rarest[:done])
            if self._is_settled(most(self.weight[stem] for stem in rarest[taken:])):
                return
            done = taken

    def _steps(self, rarest: list[str]) -> Iterator[int]:
        """Yield how many of the rarest words are looked for: as FIRST memories hold, then four times as many."""
        counts, most, taken = [*accumulate(self.then.holding[stem] for stem in rarest)], FIRST, 0
        while taken < len(rarest):
            taken = max(taken + 1, bisect_right(counts, most))
            yield taken
            most *= 4

    def _look(
        self, stems: list[str], beside: Sequence[str] = (), but: Sequence[str] = (), only: frozenset[int] | None = None
    ) -> None:
        """Score the memories with one of *stems* and none of *but*; the words *beside* add to the score."""
        times, more = ceiling({stem: self.weight[stem] for stem in (*stems, *beside)}, self.now, self.then)
        for row in self.file.best(stems, self.within, only, beside, but):
            most = row.reach * times + more
            if only is None and self._is_settled(most):
                return
            if row.number in self.seen or (only is None and self._is_settled(most, self._ties(row))):
                continue
            self.seen.add(row.number)
            match = self.file.match(row.number, None)
            assert match is not None
            self._add(self._final(match, frozenset([match.item])))

    def _ties(self, row: TextMatch) -> float:
        return sum(ties(row.recorded, row.confidence, self.then.newest))

    def _is_settled(self, lexical: float, ties: float = TIES) -> bool:
        """Return whether what scores no more than *lexical* by its words, and is about no file, is none of the best."""
        worst = self.best[-1][1].score if len(self.best) == self.limit else 0.0
        return len(self.best) == self.limit and lexical * (1 + ties) * (1 + 1e-9) < worst

    def _final(self, match: Match, seen: frozenset[str]) -> ScoredMatch:
        """Return the score of a match, below those of its matching successors."""
        is_about = match.number in self.about
        result = scored(replace(match, is_about=is_about), self.weight, self.then)
        return demote_superseded(result, self._after(match, seen)) if self.within.inactive else result

    def _after(self, match: Match, seen: frozenset[str]) -> Iterator[ScoredMatch]:
        """Yield the matching successors of a match, direct and later ones."""
        for name in match.successors:
            successor = self.file.match(name, self.within.moment) if name not in seen else None
            if successor is not None:
                later = self._final(successor, seen | {name})
                yield from [later] if later.words else self._after(successor, seen | {name})

    def _add(self, result: ScoredMatch) -> None:
        insort(self.best, (result.place, result), key=lambda entry: entry[0])
        del self.best[self.limit :]


def _governing(places: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return which of *places* govern one of *paths*: the file, a folder above it, a pattern, or its module."""
    files = [path.removeprefix("./").rstrip("/") for path in paths]
    return [place for place in places if any(_governs(place.removeprefix("./"), path) for path in files)]


def _governs(place: str, path: str) -> bool:
    if path == place.rstrip("/") or path.startswith(place.rstrip("/") + "/"):
        return bool(place.strip("/"))
    module = path.rsplit(".", 1)[0].replace("/", ".")
    if place in (module, module.removeprefix("src."), module.removeprefix("lib.")):
        return True
    return any(sign in place for sign in "*?[") and matches(place, path)
