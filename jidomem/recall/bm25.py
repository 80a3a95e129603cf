"""The lexical ranking: the memories with the highest BM25 scores for a query.

`search` stops as soon as no other memory can reach the scores of the best ones.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import accumulate
from math import inf, log
from typing import NamedTuple

from jidomem.base.stems import Stemmer, language_of
from jidomem.base.words import TELL_LITTLE
from jidomem.index.search_index import Readable
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, TextMatch
from jidomem.journal.journal import Stream
from jidomem.records.interfaces import FIELD_WEIGHTS, CorpusStats, Match
from jidomem.repository.worktree import matches

#: The parameters of BM25: the saturation of repeated words, and the discount of long texts.
K1, B = 1.2, 0.75
LEAST = 1e-6
#: The ratio of a weight here to that in SQLite above which the bound by that ratio is useless.
FAR = 2.0
#: Shares of the lexical score that are added for a memory about a requested file and, to order equal matches, for a
#: recent one: the latter halves with each HALF_LIFE in days before the newest memory.
ABOUT, RECENT, HALF_LIFE = 0.5, 0.03, 30.0
CONFIDENCE: Mapping[str, float] = {"High": 0.02, "Medium": 0.01}
TIES = RECENT + max(CONFIDENCE.values())
#: The greatest score of a superseded memory, as a share of the score of its successor.
BEHIND = 0.999


class ScoredMatch(NamedTuple):
    """A match with its score and the parts that add up to it; `words` are the parts of `lexical`."""

    match: Match
    score: float
    parts: Mapping[str, float]
    words: Mapping[str, float]

    @property
    def place(self) -> tuple[float, str, str]:
        """Return the sort key: by score, then the newest first, then by IRI."""
        return -self.score, descending_key(self.match.recorded), self.match.item


def weights(stems: Iterable[str], counts: CorpusStats) -> dict[str, float]:
    """Return the weight (idf) of each stem: the fewer memories contain it, the higher.

    >>> weights(["rare", "common"], CorpusStats(10, 100, {"rare": 2, "common": 9}))
    {'rare': 1.2237754316221157, 'common': 0.07330173709593772}
    """
    return {stem: _weight(_odds(counts.memories, counts.holding.get(stem, 0))) for stem in stems}


def _weight(odds: float) -> float:
    """Return the weight of a word: that of SQLite, but positive also for a word that most memories contain."""
    return max(log(odds), log(1 + odds) / 2)


def _odds(memories: int, holding: int) -> float:
    """Return the odds against a memory containing a word."""
    return (memories - holding + 0.5) / (holding + 0.5)


def scored(match: Match, weight: Mapping[str, float], counts: CorpusStats) -> ScoredMatch:
    """Return the score of *match* for the words of *weight*, regardless of its successors."""
    words = dict(_by_word(match, weight, counts))
    lexical = sum(words.values())
    parts = {"lexical": lexical, "about": lexical * ABOUT * match.is_about}
    late, sure = ties(match.recorded, match.confidence, counts.newest)
    parts |= {"recency": lexical * late, "confidence": lexical * sure}
    return ScoredMatch(match, sum(parts.values()), parts, words)


def ties(recorded: str, confidence: str, newest: str) -> tuple[float, float]:
    """Return the shares of the lexical score that are added for recency and for confidence."""
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
    """Return *match* ranked below each of *successors*, the matching memories that superseded it."""
    highest = min((after.score * BEHIND for after in successors), default=inf)
    if match.score <= highest:
        return match
    return ScoredMatch(match.match, highest, {**match.parts, "superseded": highest - match.score}, match.words)


def ceiling(weight: Mapping[str, float], now: CorpusStats, then: CorpusStats) -> tuple[float, float]:
    """Return the bound of a score: the factor for the score of SQLite, and the most that is added to it, for these
    words.

    SQLite weighs words by the present corpus *now*, *weight* by the corpus as of the requested moment, *then*.
    """
    longer = max(1.0, (then.words / then.memories) / (now.words / now.memories))
    ratios = {stem: idf / max(log(_odds(now.memories, now.holding[stem])), LEAST) for stem, idf in weight.items()}
    near = [ratio for ratio in ratios.values() if ratio <= FAR]
    if not near:  # only common words: SQLite gives them minimal weights, which still order the matches
        return max(ratios.values()) * longer, 0.0
    return max(near) * longer, most(weight[stem] for stem, ratio in ratios.items() if ratio > FAR)


def most(weight: Iterable[float]) -> float:
    """Return the greatest score that words of these weights can add up to."""
    return sum(value * (K1 + 1) for value in weight)


@lru_cache(maxsize=1_024)
def _days(recorded: str, newest: str) -> float:
    return max((datetime.fromisoformat(newest) - datetime.fromisoformat(recorded)).total_seconds(), 0.0) / 86_400


def descending_key(moment: str) -> str:
    """Return a text that sorts the later of two timestamps of the same form first.

    >>> descending_key("2026") < descending_key("2025")
    True
    """
    return moment.translate(_BACKWARDS)


_BACKWARDS = {48 + digit: 57 - digit for digit in range(10)}


#: The most words of a query that are searched: those with the highest weights.
MOST_WORDS = 64
#: The fewest letters of a word of which another form is looked for, and the most letters of its ending.
SHORTEST, ENDING = 5, 3
#: The number of memories with the rarest words that is examined first, before those with only other words.
FIRST = 4_000


def query_stems(stemmer: Stemmer, text: str) -> dict[str, str]:
    """Return the stems of *text*, each with its word in the text, if possible one that is not in TELL_LITTLE."""
    stems: dict[str, str] = {}
    for word, stem in stemmer.stems(text):
        if stem not in stems or stems[stem] in TELL_LITTLE:
            stems[stem] = word
    return stems


def stems_among(texts: Readable, stream: Stream, stemmer: Stemmer, text: str, moment: str | None) -> dict[str, str]:
    """Return the `query_stems` of *text* as those of *stream* have them: in other languages maybe of another form."""
    stems, language = query_stems(stemmer, text), language_of(text)
    if language is None:
        return stems
    return texts.read(stream, lambda file: _known_forms(file, stemmer, stems, language, moment))


def _known_forms(
    file: SearchIndexReader, stemmer: Stemmer, stems: Mapping[str, str], language: str, moment: str | None
) -> dict[str, str]:
    """Return *stems*, those that no memory has by *moment* replaced by that of another form of the word in *language*.

    Texts have English stems, whatever their language, so that words and names of several languages are found.
    """
    holding = file.counts(stems, moment).holding
    known: dict[str, str] = {}
    for stem, word in stems.items():
        forms: Mapping[str, int] = {}
        if not holding[stem] and len(word) >= SHORTEST:
            alike = stemmer.forms_of(word, file.stems_from(word[: max(SHORTEST, len(word) - ENDING)]), language)
            forms = file.counts(alike, moment).holding
        best = max(forms, key=lambda form: (forms[form], form), default=stem)
        known.setdefault(best if forms.get(best) else stem, word)
    return known


def search(
    file: SearchIndexReader, stems: Mapping[str, str], within: SearchFilter, about: Iterable[str], limit: int
) -> tuple[list[ScoredMatch], list[str], CorpusStats]:
    """Return the best matches in order, the stems they were searched by, and the counts behind their scores.

    Words in TELL_LITTLE are searched only if there are no others.
    """
    now = file.counts(stems)
    then = now if within.moment is None else file.counts(stems, within.moment)
    weight = search_weights(stems, then)
    one = _Search(file, within, weight, now, then, limit)
    if weight:
        one.run([*weight], numbers_about(file, about))
    return [match for _, match in one.best], list(weight), then


def search_weights(stems: Mapping[str, str], counts: CorpusStats) -> dict[str, float]:
    """Return the stems to search by with their weights, the highest first."""
    known = weights((stem for stem in significant_stems(stems) if counts.holding[stem]), counts)
    return {stem: known[stem] for stem in sorted(known, key=lambda stem: (-known[stem], stem))[:MOST_WORDS]}


def total_weight(stems: Iterable[str], counts: CorpusStats) -> float:
    """Return the sum of the weights of *stems*; a stem that no memory has weighs as much as one of a single memory.

    So a match of few words out of many is not taken for an answer.
    """
    unknown = _weight(_odds(max(counts.memories, 1), 1))
    return sum(
        _weight(_odds(counts.memories, counts.holding[stem])) if counts.holding.get(stem) else unknown for stem in stems
    )


def significant_stems(stems: Mapping[str, str]) -> list[str]:
    """Return the *stems* whose words are not in TELL_LITTLE; if there are none, all."""
    return [stem for stem, word in stems.items() if word not in TELL_LITTLE] or [*stems]


def numbers_about(file: SearchIndexReader, about: Iterable[str]) -> frozenset[int]:
    """Return the numbers of the memories about one of the files *about*."""
    return file.about(_governing(file.places(), about)) if about else frozenset()


@dataclass(slots=True)
class _Search:
    """One search: `best` contains the best matches so far, in order."""

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
        """Examine all memories that can be among the best: those *about* a requested file, then those with the rarest
        words.

        A memory whose score is bounded below the best is skipped.
        """
        self.about = about
        if about:
            self._examine(rarest, only=about)
        done = 0
        for taken in self._steps(rarest):
            self._examine(rarest[done:taken], rarest[taken:], rarest[:done])
            if self._is_settled(most(self.weight[stem] for stem in rarest[taken:])):
                return
            done = taken

    def _steps(self, rarest: list[str]) -> Iterator[int]:
        """Yield how many of the rarest words are searched in each step: as many as FIRST memories contain, then four
        times that.
        """
        counts, most, taken = [*accumulate(self.then.holding[stem] for stem in rarest)], FIRST, 0
        while taken < len(rarest):
            taken = max(taken + 1, bisect_right(counts, most))
            yield taken
            most *= 4

    def _examine(
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
        """Return whether a memory with at most this *lexical* score, and about no requested file, is not among the
        best.
        """
        worst = self.best[-1][1].score if len(self.best) == self.limit else 0.0
        return len(self.best) == self.limit and lexical * (1 + ties) * (1 + 1e-9) < worst

    def _final(self, match: Match, seen: frozenset[str]) -> ScoredMatch:
        """Return the score of a match, demoted below its matching successors."""
        is_about = match.number in self.about
        result = scored(match._replace(is_about=is_about), self.weight, self.then)
        return demote_superseded(result, self._after(match, seen)) if self.within.inactive else result

    def _after(self, match: Match, seen: frozenset[str]) -> Iterator[ScoredMatch]:
        """Yield the matching successors of a match, direct and indirect."""
        for name in match.successors:
            successor = self.file.match(name, self.within.moment) if name not in seen else None
            if successor is not None:
                later = self._final(successor, seen | {name})
                yield from [later] if later.words else self._after(successor, seen | {name})

    def _add(self, result: ScoredMatch) -> None:
        insort(self.best, (result.place, result), key=lambda entry: entry[0])
        del self.best[self.limit :]


def _governing(places: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return the *places* that govern one of *paths*: the file, a folder above it, a pattern, or its module."""
    files = [path.removeprefix("./").rstrip("/") for path in paths]
    return [place for place in places if any(_governs(place.removeprefix("./"), path) for path in files)]


def _governs(place: str, path: str) -> bool:
    if path == place.rstrip("/") or path.startswith(place.rstrip("/") + "/"):
        return bool(place.strip("/"))
    module = path.rsplit(".", 1)[0].replace("/", ".")
    if place in (module, module.removeprefix("src."), module.removeprefix("lib.")):
        return True
    return any(sign in place for sign in "*?[") and matches(place, path)
