"""The neighbours of a statement: the active memories that say nearly the same as it, by their words and their vectors.

The likeness of two statements is the estimated probability that they are on one matter, so that one repeats the other
or contradicts it. It is a logistic function of the cosine of their vectors and of the share of their words that they
have in common; `python -m bench.neighbours` fits it to the labelled notes of `tests/recall/project_notes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, islice
from math import exp, log

from jidomem.base.stems import Stemmer
from jidomem.base.words import TELL_LITTLE
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, SearchRow
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import ERRORS, type_uri
from jidomem.recall.bm25 import search_weights
from jidomem.recall.candidates import VectorQuery
from jidomem.records.search import FIELD_WEIGHTS, CorpusStats

#: The memories that are compared: as many with the rarest words, and as many with the most similar vectors.
GATHERED = 12
#: The nearest vectors that are read, of which some are outside of the scope.
NEAREST = 3 * GATHERED
#: The number of memories with the rarest words that are examined.
FIRST = 1_000
#: The most neighbours of a statement.
MOST = 3
#: The likeness from which a memory is a neighbour: at most one in ten statements on another matter reaches it.
LEAST = 0.5
#: Slope and middle of the logistic functions: of the cosine and the share of common words, and of words alone;
#: fitted by `python -m bench.neighbours`.
BY_BOTH, BY_WORDS = (13.2, 0.568), (13.3, 0.234)
_WORK = frozenset(map(type_uri, ("task", "milestone", "plan")))
_TROUBLE = frozenset(map(type_uri, ERRORS))
_NO_STATEMENT = frozenset(map(type_uri, ("alternative", "deleted_marker")))
_SUMMARY = [*FIELD_WEIGHTS].index("summary")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory near to a statement, with their likeness from 0 to 1."""

    item: str
    likeness: float


def comparable(kind: str, moment: str) -> SearchFilter:
    """Return the filter of the memories active at *moment* to which a memory of type *kind* is compared.

    Work is compared to work, errors to errors, and any other kind to all other kinds: agents record one statement as a
    fact, a decision or a convention.
    """
    of = type_uri(kind)
    kinds = next((each for each in (_WORK, _TROUBLE) if of in each), None)
    others = _NO_STATEMENT if kinds else _NO_STATEMENT | _WORK | _TROUBLE
    return SearchFilter(kinds=kinds, but=others, valid_at=moment)


def neighbours(
    file: SearchIndexReader,
    stream: Stream,
    stemmer: Stemmer,
    summary: str,
    within: SearchFilter,
    *,
    alike: VectorQuery | None = None,
    excluded: Collection[str] = (),
    least: float = LEAST,
    limit: int = MOST,
) -> list[Neighbour]:
    """Return up to *limit* memories *within* the filter that are near to a statement, the nearest first.

    *summary* is the statement, *alike* has the vector of its whole text, None without an embedder. The memories
    *excluded* (IRIs) are no neighbours. *stemmer* is that of *file*.
    """
    stems = _significant(stem for _, stem in stemmer.stems(summary))
    numbers = {*_by_words(file, stems, within), *_by_vectors(file, stream, alike)}
    rows = [row for row in file.rows(numbers, within) if row.item not in excluded]
    summaries = {row.number: _significant(row.fields[_SUMMARY].split()) for row in rows}
    counts = file.counts({*stems, *chain.from_iterable(summaries.values())})
    cosines = _cosines(file, stream, summaries, alike)
    likeness = {row.item: _likeness(stems, summaries[row.number], counts, cosines.get(row.number)) for row in rows}
    best = sorted((item for item in likeness if likeness[item] >= least), key=lambda item: (-likeness[item], item))
    return [Neighbour(item, likeness[item]) for item in best[:limit]]


def is_comparable(one: Collection[str], other: Collection[str]) -> bool:
    """Return whether memories of these types are compared; see `comparable`."""
    return _NO_STATEMENT.isdisjoint((*one, *other)) and all(
        kinds.isdisjoint(one) == kinds.isdisjoint(other) for kinds in (_WORK, _TROUBLE)
    )


def likeness_of_pairs(file: SearchIndexReader, pairs: Sequence[tuple[SearchRow, SearchRow, float]]) -> list[float]:
    """Return the likeness of each pair of memories of *file*, given with the cosine of their vectors."""
    rows = {row.number: row for one, other, _ in pairs for row in (one, other)}
    stems = {number: _significant(row.fields[_SUMMARY].split()) for number, row in rows.items()}
    counts = file.counts({*chain.from_iterable(stems.values())})
    return [_likeness(stems[one.number], stems[other.number], counts, cosine) for one, other, cosine in pairs]


def _significant(stems: Iterable[str]) -> list[str]:
    """Return *stems* without those that say little, in order."""
    little = _little()
    return [stem for stem in stems if stem not in little]


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
    return [match.number for match in islice(file.best(rarest[:first], within), GATHERED)]


def _by_vectors(file: SearchIndexReader, stream: Stream, alike: VectorQuery | None) -> list[int]:
    """Return the numbers of the memories with the most similar vectors."""
    if alike is None:
        return []
    digests = [known for known, _ in alike.vectors.nearest(stream, alike.vector, NEAREST)]
    numbers = file.passages.numbers_of(digests)
    return [number for known in digests for number in numbers[known]]


def _cosines(
    file: SearchIndexReader, stream: Stream, numbers: Iterable[int], alike: VectorQuery | None
) -> dict[int, float]:
    """Return the cosine of the most similar piece of each of *numbers* that has a vector."""
    if alike is None:
        return {}
    pieces = file.passages.digests(numbers)
    cosines = alike.vectors.cosines(stream, alike.vector, [*{*chain.from_iterable(pieces.values())}])
    by_number = {number: [cosines[known] for known in each if known in cosines] for number, each in pieces.items()}
    return {number: max(each) for number, each in by_number.items() if each}


def _likeness(one: Sequence[str], other: Sequence[str], counts: CorpusStats, cosine: float | None) -> float:
    """Return the likeness of two statements, given by their stems and the cosine of their vectors."""
    common = _common(one, other, counts)
    if cosine is None:
        return _logistic(common + _common_letters(one, other), *BY_WORDS)
    return _logistic(cosine + common, *BY_BOTH)


def _common(one: Collection[str], other: Collection[str], counts: CorpusStats) -> float:
    """Return the share of words in common: the fewer memories have a word, the higher is its weight."""
    first, second = {*one}, {*other}
    weight = {stem: log(1 + counts.memories / (1 + counts.holding.get(stem, 0))) for stem in first | second}
    whole = sum(weight.values())
    return sum(weight[stem] for stem in first & second) / whole if whole else 0.0


def _common_letters(one: Iterable[str], other: Iterable[str]) -> float:
    """Return the share of groups of three letters in common."""
    first, second = _groups(one), _groups(other)
    return len(first & second) / (len(first | second) or 1)


def _groups(stems: Iterable[str]) -> set[str]:
    text = f" {' '.join(stems)} "
    return {text[at : at + 3] for at in range(len(text) - 2)}


def _logistic(value: float, slope: float, middle: float) -> float:
    return 1 / (1 + exp(-slope * (value - middle)))
