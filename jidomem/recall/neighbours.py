"""The neighbours of a statement: the active memories that say nearly the same as it, by their words and their vectors.

The likeness of two statements is the estimated probability that they are on one matter, so that one repeats the other
or contradicts it. It is a logistic function of the cosine of their vectors and of the share of their words that they
have in common; `python -m bench.neighbours` fits it to the labelled notes of `tests/recall/project_notes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, islice
from math import exp, hypot, log
from operator import mul
from typing import NamedTuple

from jidomem.base.stems import Stemmer
from jidomem.base.words import TELL_LITTLE
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, SearchRow
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import ERRORS, type_uri
from jidomem.recall.bm25 import search_weights
from jidomem.recall.candidates import VectorQuery
from jidomem.records.search import FIELD_WEIGHTS

#: The memories that are compared: as many with the rarest words, and as many with the most similar vectors.
GATHERED = 12
#: The nearest vectors that are read, of which some are outside of the scope.
NEAREST = 3 * GATHERED
#: The most memories of which the nearest vectors are searched; among more, those with the rarest words suffice: of 160
#: labelled statements 3 fewer are noticed among 100,000 memories.
SCANNED = 20_000
#: The number of memories with the rarest words that are examined.
FIRST = 1_000
#: The most neighbours of a statement.
MOST = 3
#: The likeness from which a memory is a neighbour: at most one in ten statements on another matter reaches it.
LEAST = 0.5
#: The words that two statements without vectors have in common at least, if one of them has fewer words than SHORT.
COMMON, SHORT = 2, 4
#: Slope and middle of the logistic functions: of the cosine and the share of common words, and of words alone;
#: fitted by `python -m bench.neighbours`.
BY_BOTH, BY_WORDS = (13.2, 0.568), (13.3, 0.234)
_WORK = frozenset(map(type_uri, ("task", "milestone", "plan")))
_TROUBLE = frozenset(map(type_uri, ERRORS))
_NO_STATEMENT = frozenset(map(type_uri, ("alternative", "deleted_marker")))
_SUMMARY = [*FIELD_WEIGHTS].index("summary")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory near to a statement: its summary, its author, and their likeness from 0 to 1."""

    item: str
    summary: str
    agent: str
    likeness: float


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory that the search file lacks, and its author; `vector` is that of its text, of length 1, or None."""

    item: str
    kind: str
    summary: str
    agent: str
    vector: Sequence[float] | None = None


class _Compared(NamedTuple):
    """A memory that is compared, with its significant stems; `text` is its summary, or its number in the file."""

    item: str
    agent: str
    stems: tuple[str, ...]
    cosine: float | None
    text: str | int


def comparable(kind: str, moment: str) -> SearchFilter:
    """Return the filter of the memories active at *moment* to which a memory of type *kind* is compared.

    Work is compared to work, errors to errors, and any other kind to all other kinds: agents record one statement as a
    fact, a decision or a convention.
    """
    kinds = _kinds(kind)
    others = _NO_STATEMENT if kinds else _NO_STATEMENT | _WORK | _TROUBLE
    return SearchFilter(kinds=kinds, but=others, valid_at=moment)


def _kinds(kind: str) -> frozenset[str] | None:
    """Return the only classes to which a memory of type *kind* is compared; None if it is a statement."""
    return next((each for each in (_WORK, _TROUBLE) if type_uri(kind) in each), None)


def is_comparable(one: Collection[str], other: Collection[str]) -> bool:
    """Return whether memories of these types are compared; see `comparable`."""
    return _NO_STATEMENT.isdisjoint((*one, *other)) and all(
        kinds.isdisjoint(one) == kinds.isdisjoint(other) for kinds in (_WORK, _TROUBLE)
    )


def neighbours(
    file: SearchIndexReader,
    stream: Stream,
    stemmer: Stemmer,
    summary: str,
    within: SearchFilter,
    *,
    alike: VectorQuery | None = None,
    recent: Collection[Statement] = (),
    excluded: Collection[str] = (),
    least: float = LEAST,
    limit: int = MOST,
) -> list[Neighbour]:
    """Return up to *limit* memories *within* the filter that are near to a statement, the nearest first.

    *summary* is the statement, *alike* has the vector of its whole text, None without an embedder. The statements
    *recent* are compared as well; the memories *excluded* (IRIs) are no neighbours. *stemmer* is that of *file*.
    """
    stems = _significant(stem for _, stem in stemmer.stems(summary))
    near_vectors = _by_vectors(file, stream, alike)
    rows = file.rows({*_by_words(file, stems, within), *near_vectors}, within)
    cosines = near_vectors | _cosines(file, stream, {row.number for row in rows} - near_vectors.keys(), alike)
    compared = [
        _Compared(row.item, row.agent, _significant(row.fields[_SUMMARY].split()), cosines.get(row.number), row.number)
        for row in rows
    ]
    length = hypot(*alike.vector) or 1.0 if alike else 1.0
    for one in recent:
        words_of_one = _significant(stem for _, stem in stemmer.stems(one.summary))
        cosine = float(sum(map(mul, alike.vector, one.vector))) / length if alike and one.vector else None
        compared.append(_Compared(one.item, one.agent, words_of_one, cosine, one.summary))
    weights = _weights(file, {*stems, *chain.from_iterable(each.stems for each in compared)}, compared[len(rows) :])
    likeness = {
        each: _likeness(stems, each.stems, weights, each.cosine) for each in compared if each.item not in excluded
    }
    near = sorted((each for each in likeness if likeness[each] >= least), key=lambda each: (-likeness[each], each.item))
    del near[limit:]
    passages = file.passages.get(each.text for each in near if isinstance(each.text, int))
    return [
        Neighbour(
            each.item,
            each.text if isinstance(each.text, str) else passages[each.text].text.partition("\n")[0],
            each.agent,
            likeness[each],
        )
        for each in near
    ]


def likeness_of_pairs(file: SearchIndexReader, pairs: Sequence[tuple[SearchRow, SearchRow, float]]) -> list[float]:
    """Return the likeness of each pair of memories of *file*, given with the cosine of their vectors."""
    rows = {row.number: row for one, other, _ in pairs for row in (one, other)}
    stems = {number: _significant(row.fields[_SUMMARY].split()) for number, row in rows.items()}
    weights = _weights(file, {*chain.from_iterable(stems.values())})
    return [_likeness(stems[one.number], stems[other.number], weights, cosine) for one, other, cosine in pairs]


def _significant(stems: Iterable[str]) -> tuple[str, ...]:
    """Return *stems* without those that say little, in order."""
    little = _little()
    return tuple(stem for stem in stems if stem not in little)


@lru_cache(maxsize=1)
def _little() -> frozenset[str]:
    return frozenset(stem for _, stem in Stemmer().stems(" ".join(TELL_LITTLE)))


def _by_words(file: SearchIndexReader, stems: Sequence[str], within: SearchFilter) -> list[int]:
    """Return the numbers of the memories that match the rarest of *stems* best."""
    counts = file.counts(stems)
    rarest = [*search_weights({stem: stem for stem in stems}, counts)]
    if not rarest:
        return []
    first = max(1, bisect_right([*accumulate(counts.holding[stem] for stem in rarest)], FIRST))
    return [match.number for match in islice(file.best(rarest[:first], within, at_first=2 * GATHERED), GATHERED)]


def _by_vectors(file: SearchIndexReader, stream: Stream, alike: VectorQuery | None) -> dict[int, float]:
    """Return the numbers of the memories with the most similar vectors, with their cosines."""
    if alike is None or (file.metadata("memories") or 0) > SCANNED:
        return {}
    pieces = dict(alike.vectors.nearest(stream, alike.vector, NEAREST))
    cosines: dict[int, float] = {}
    for known, numbers in file.passages.numbers_of(pieces).items():
        for number in numbers:
            cosines[number] = max(pieces[known], cosines.get(number, -1.0))
    return cosines


def _cosines(
    file: SearchIndexReader, stream: Stream, numbers: Collection[int], alike: VectorQuery | None
) -> dict[int, float]:
    """Return the cosine of the most similar piece of each of *numbers* that has a vector."""
    if alike is None or not numbers:
        return {}
    pieces = file.passages.digests(numbers)
    cosines = alike.vectors.cosines(stream, alike.vector, [*{*chain.from_iterable(pieces.values())}])
    by_number = {number: [cosines[known] for known in each if known in cosines] for number, each in pieces.items()}
    return {number: max(each) for number, each in by_number.items() if each}


def _weights(file: SearchIndexReader, stems: Collection[str], recent: Collection[_Compared] = ()) -> dict[str, float]:
    """Return the weight of each of *stems*: the fewer memories have it, the higher. The *recent* ones count, too."""
    counts, added = file.counts(stems), Counter(chain.from_iterable({*each.stems} for each in recent))
    memories = counts.memories + len(recent)
    return {stem: log(1 + memories / (1 + counts.holding[stem] + added[stem])) for stem in stems}


def _likeness(
    one: Collection[str], other: Collection[str], weights: Mapping[str, float], cosine: float | None
) -> float:
    """Return the likeness of two statements, given by their stems and the cosine of their vectors."""
    common = _common(one, other, weights)
    if cosine is None:
        if min(len(one), len(other)) < SHORT and len({*one} & {*other}) < COMMON:
            return 0.0
        return _logistic(common + _common_letters(one, other), *BY_WORDS)
    return _logistic(cosine + common, *BY_BOTH)


def _common(one: Collection[str], other: Collection[str], weights: Mapping[str, float]) -> float:
    """Return the share of the words of two statements, by their weights, that both have."""
    first, second = {*one}, {*other}
    whole = sum(weights[stem] for stem in first | second)
    return sum(weights[stem] for stem in first & second) / whole if whole else 0.0


def _common_letters(one: Iterable[str], other: Iterable[str]) -> float:
    """Return the share of groups of three letters in common."""
    first, second = _groups(" ".join(one)), _groups(" ".join(other))
    return len(first & second) / (len(first | second) or 1)


@lru_cache(maxsize=256)
def _groups(stems: str) -> frozenset[str]:
    text = f" {stems} "
    return frozenset(text[at : at + 3] for at in range(len(text) - 2))


def _logistic(value: float, slope: float, middle: float) -> float:
    return 1 / (1 + exp(-slope * (value - middle)))
