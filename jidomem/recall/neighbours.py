"""The neighbours of a statement: the active memories that say nearly the same as it, by their words and their vectors.

The likeness of two statements is the estimated probability that they are on one matter, so that one repeats the other
or contradicts it. It is a logistic function of the cosine of their vectors and of the share of their words that they
have in common; `python -m bench.neighbours` fits it to the labelled notes of `tests/recall/project_notes`. Brief
statements on one subject, such as a customer, need more in common (`tests/recall/subject_notes`).

The near pairs of a project are active memories of which one repeats the other or is on the same matter. The pairs of
near vectors are stored with the vectors, and judged here by their words, status and links; memories with one text have
one vector.

Memories that are rows of one table, such as "billing listens on port 8000", "search listens on port 8007", are near by
their words and vectors, yet on different matters: they are no neighbours and no near pairs (`are_rows_of_table`). So
are memories that name other things, such as the claims CL-1003 and CL-1004 (`are_of_other_things`), and occurrences on
other days with other names (`are_on_other_days`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, islice, product
from math import exp, inf, log
from operator import eq, itemgetter
from typing import NamedTuple, TypeVar

from jidomem.base.stems import Stemmer
from jidomem.base.words import TELL_LITTLE
from jidomem.index.search_index import VectorIndex
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, SearchRow, SummaryRow
from jidomem.index.store import OxigraphIndex
from jidomem.index.vectors import Vectors
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import ERRORS, jido, type_uri
from jidomem.recall.nearness import MOST_PAIRS, Referents, are_of_other_things, things
from jidomem.records.differences import are_on_other_days, contrast, ends_use
from jidomem.records.interfaces import FIELD_WEIGHTS, Vector
from jidomem.records.limits import MAY_END
from jidomem.records.recall import DifferingMemory, NearPair
from jidomem.records.tokens import fold
from jidomem.write import conflict
from jidomem.write.snapshot import WriteSnapshot

#: The memories that are compared: as many with the rarest words, and as many with the most similar vectors.
GATHERED = 12
#: The nearest vectors that are read, of which some are outside of the scope.
NEAREST = 3 * GATHERED
#: The most memories of which the nearest vectors are searched; among more, those with the rarest words suffice: of 160
#: labelled statements 3 fewer are noticed among 100,000 memories.
SCANNED = 20_000
#: The number of memories with the rarest words that are examined.
FIRST = 1_000
#: The share of the words of a statement, by their weights, that a memory must have to be compared; and the share of the
#: words and groups of letters of both that one must have in common, else no vector is made. On the labelled notes that
#: changes no result, and needs no vector for a third of the statements on another matter.
SHARED, ALIKE = 0.08, 0.12
#: The most neighbours of a statement.
MOST = 3
#: The likeness from which a memory is a neighbour: at most one in ten statements on another matter reaches it.
LEAST = 0.5
#: The likeness from which a statement that differs in no value repeats another one.
REPEATED = 0.8
#: The words that two statements without vectors have in common at least, if one of them has fewer words than SHORT.
COMMON, SHORT = 2, 4
#: Slope and middle of the logistic functions: of the cosine and the share of common words, and of words alone;
#: fitted by `python -m bench.neighbours`.
BY_BOTH, BY_WORDS = (13.2, 0.568), (13.3, 0.234)
#: The same for two statements with at most BRIEF different words together that share only words of other memories, too:
#: "ACME has 40 seats" and "ACME pays by invoice" are near by their subject, and on different matters. Among fewer than
#: FEW memories any word counts as one of others. Chosen on the labelled statements on one subject.
BRIEF, FEW, BRIEF_BY_BOTH, BRIEF_BY_WORDS = 13, 10, (19.5, 0.85), (10.4, 0.45)
#: A word is rare if at most RARE memories have it, or one in RARE_AMONG: two statements that share one are near if one
#: ends what the other uses.
RARE, RARE_AMONG = 5, 20
_WORK = frozenset(map(type_uri, ("task", "milestone", "plan")))
_TROUBLE = frozenset(map(type_uri, ERRORS))
_NO_STATEMENT = frozenset(map(type_uri, ("alternative", "deleted_marker")))
_SUMMARY = [*FIELD_WEIGHTS].index("summary")


class Neighbour(NamedTuple):
    """A memory near to a statement: its summary, its author, and their likeness from 0 to 1."""

    item: str
    summary: str
    agent: str
    likeness: float


class Statement(NamedTuple):
    """A memory that is compared, with its author, its significant stems, and the digests of the pieces of its text.

    The search file may lack it; `piece` is then the text of its first piece, which may have no vector yet.
    """

    item: str
    agent: str
    summary: str
    stems: tuple[str, ...]
    digests: tuple[bytes, ...] = ()
    piece: str = ""


#: A memory that is compared, in the search file or written since.
Compared = TypeVar("Compared", SummaryRow, Statement, SummaryRow | Statement)


class NewText(NamedTuple):
    """The text of a statement: `embed` makes a vector of it or of another text, None if the embedder fails."""

    text: str
    vectors: VectorIndex
    embed: Callable[[str], Vector | None]


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


class NeighbourSearch:
    """The search for the memories of *stream* near to the statement with the significant *stems*.

    `gather` reads the search file, and `neighbours` makes vectors: no other reader of the file waits for an embedder.
    """

    def __init__(
        self,
        stream: Stream,
        stems: Sequence[str],
        within: SearchFilter,
        new: NewText | None = None,
        *,
        summary: str = "",
        least: float = LEAST,
        limit: int = MOST,
    ) -> None:
        """Search for up to *limit* memories *within* the filter with a likeness of *least*: with 0 for all gathered.

        *new* has the whole text of the statement; without an embedder it is None. Without its *summary* none is found
        only because one of both ends what the other uses.
        """
        self._summary, self._may_end = summary, MAY_END.search(fold(summary)) is not None
        self._stream, self._stems, self._within, self._new = stream, stems, within, new
        self._own = frozenset(stems)
        self._least, self._limit = least, limit
        self._memories, self._rare, self._recent = 0, inf, Counter[str]()
        self._holding: dict[str, int] = {}
        self._is_excluded: Callable[[str], bool] = {}.__contains__
        #: The memories that nearly repeat the statement and ended, by their words; the nearest first.
        self.ended: list[Neighbour] = []
        self._weights: dict[str, float] = {}
        self._compared: dict[str, Statement] = {}
        #: The memories that end what the statement uses, or use what it ends.
        self._ended: set[str] = set()

    def gather(
        self,
        file: SearchIndexReader,
        recent: Iterable[Statement] = (),
        excluded: Callable[[str], bool] | None = None,
        has_ended: Callable[[str], bool] | None = None,
    ) -> bool:
        """Gather memories of *file*, and the *recent* ones that it lacks, but none that is *excluded*; return True.

        Of some *has_ended* tells that they ended since the file was written.
        """
        new = {each.item: each for each in recent}
        self._memories = (file.metadata("memories") or 0) + len(new)
        self._rare = _rare(self._memories, 1)
        self._recent = Counter(chain.from_iterable({*each.stems} for each in new.values()))
        self._is_excluded = excluded or self._is_excluded
        self._holding, self._weights, self._compared = {}, {}, {}  # a damaged file is read again
        self._read_weights(file, self._stems)
        least = SHARED * sum(self._weights.values()) if self._least else 0.0
        gathered: dict[str, SummaryRow | Statement] = {row.item: row for row in self._by_words(file, least)}
        gathered |= new
        shares = {item: _sum(self._weights, self._own.intersection(each.stems)) for item, each in gathered.items()}
        best = sorted((item for item in shares if shares[item] >= least), key=lambda item: (-shares[item], item))
        past = {item for item in best if _has_ended(gathered[item]) or (has_ended and has_ended(item))}
        candidates = self._allowed(
            (gathered[item] for item in best if item not in past), GATHERED if self._least else None
        )
        ended = self._allowed((gathered[item] for item in best if item in past), GATHERED)
        if self._new is None:
            candidates = self._without_rows(candidates)
        ending = [each for each in candidates if self._may_end_use(each.stems)]
        self._read_weights(file, chain.from_iterable(each.stems for each in (*candidates, *ended)))
        self.ended = self._repeated(file, ended)
        if self._new is None:
            likeness = {each.item: self._likeness(each.stems, None) for each in candidates}
            candidates.sort(key=lambda each: (-likeness[each.item], each.item))
            candidates = [each for each in candidates if likeness[each.item] >= self._least][: self._limit]
            ending = ending if len(candidates) < self._limit else []  # others would follow those, and be left out
        elif self._least and all(self._alike(each.stems) < ALIKE for each in candidates):
            candidates = []
        self._compared |= self._statements(file, [*{each.item: each for each in (*candidates, *ending)}.values()])
        summaries = {each.item: self._compared[each.item].summary for each in ending}
        self._ended = {item for item, summary in summaries.items() if ends_use(self._summary, summary)}
        for item in summaries.keys() - self._ended - {each.item for each in candidates}:
            del self._compared[item]
        return True

    def neighbours(self, read: Callable[[Callable[[SearchIndexReader], bool]], object]) -> list[Neighbour]:
        """Return the neighbours among the memories gathered, the nearest first; *read* reads the search file again."""
        vector = self._new.embed(self._new.text) if self._new and self._compared else None
        cosines = {} if vector is None or self._new is None else self._cosines(self._new, vector, read)
        near = []
        for each in self._without_rows([*self._compared.values()]):
            cosine = max((cosines[piece] for piece in each.digests if piece in cosines), default=None)
            likeness = max(self._likeness(each.stems, cosine), self._least if each.item in self._ended else 0.0)
            near.append(Neighbour(each.item, each.summary, each.agent, likeness))
        near.sort(key=lambda each: (-each.likeness, each.item))
        likely = (each for each in near if each.likeness >= self._least)
        return [*islice((each for each in likely if not are_on_other_days(self._summary, each.summary)), self._limit)]

    def _allowed(self, ranked: Iterable[SummaryRow | Statement], most: int | None) -> list[SummaryRow | Statement]:
        """Return the first *most* of these that are not excluded."""
        return [*islice((each for each in ranked if not self._is_excluded(each.item)), most)]

    def _may_end_use(self, stems: Sequence[str]) -> bool:
        """Return whether the statement and one with *stems* share a rare word, and one may end what the other uses."""
        rare = log(1 + self._memories / (1 + max(RARE, self._memories // RARE_AMONG)))
        if not self._summary or all(self._weights[stem] < rare for stem in self._own.intersection(stems)):
            return False
        return self._may_end or MAY_END.search(" ".join(stems)) is not None

    def _cosines(
        self, new: NewText, vector: Vector, read: Callable[[Callable[[SearchIndexReader], bool]], object]
    ) -> dict[bytes, float]:
        """Return the cosines of the pieces of the memories compared; adds those with the most similar vectors."""
        cosines: dict[bytes, float] = {}
        if self._memories <= SCANNED:
            cosines = dict(new.vectors.nearest(self._stream, vector, NEAREST))
            read(lambda file: self._add_nearest(file, cosines))
        pieces = {piece for each in self._compared.values() for piece in each.digests} - cosines.keys()
        cosines |= new.vectors.cosines(self._stream, vector, [*pieces])
        recent = {each.digests[0]: each.piece for each in self._compared.values() if each.piece}
        made = [piece for piece in recent if piece not in cosines and new.embed(recent[piece]) is not None]
        if made:
            cosines |= new.vectors.cosines(self._stream, vector, made)
        return cosines

    def _without_rows(self, candidates: list[Compared]) -> list[Compared]:
        """Return *candidates* without other rows of a table of which the statement is a row."""
        if not self._least or len(candidates) < TABLE - 1:
            return candidates
        texts: list[Sequence[str]] = [self._stems, *(each.stems for each in candidates)]
        tables = {size: _table(self._stems, size, texts) for size in {*map(len, texts)} if size <= len(self._stems)}
        return [each for each in candidates if not _is_other_row(self._stems, each.stems, tables)]

    def _by_words(self, file: SearchIndexReader, least: float) -> list[SummaryRow]:
        """Return the memories with the rarest stems in common that have at least this sum of weights."""
        scores: dict[int, float] = {}
        room = FIRST
        for holding, stem in sorted((self._holding[stem], stem) for stem in self._own):
            if scores and holding > room:
                break
            added = dict.fromkeys(file.with_stem(stem, FIRST) if holding else (), self._weights[stem])
            for number in added.keys() & scores.keys():
                added[number] += scores[number]
            scores |= added
            room -= holding
        likely = [number for number, score in scores.items() if score >= least]
        ranked = sorted(likely, key=scores.__getitem__, reverse=True)
        start, rows, within = 0, list[SummaryRow](), self._within._replace(inactive=True)
        while start < len(ranked) and sum(not row.has_ended for row in rows) < GATHERED:
            end = 2 * (start + GATHERED)
            rows += _significant_rows(file.summaries(ranked[start:end], within))
            start = end
        return rows

    def _add_nearest(self, file: SearchIndexReader, cosines: Mapping[bytes, float]) -> bool:
        """Add the memories with these pieces, if they are near; return True."""
        of_number: dict[int, float] = {}
        for piece, numbers in file.passages.numbers_of(cosines).items():
            for number in numbers:
                of_number[number] = max(cosines[piece], of_number.get(number, -1.0))
        rows = [
            row
            for row in _significant_rows(file.summaries(of_number, self._within))
            if row.item not in self._compared
            and self._most(row.stems, of_number[row.number]) >= self._least
            and not self._is_excluded(row.item)
        ]
        self._read_weights(file, chain.from_iterable(row.stems for row in rows))
        near = [row for row in rows if self._likeness(row.stems, of_number[row.number]) >= self._least]
        self._compared |= self._statements(file, near)
        return True

    def _repeated(self, file: SearchIndexReader, ended: Sequence[SummaryRow | Statement]) -> list[Neighbour]:
        likeness = {each.item: self._likeness(each.stems, None) for each in ended}
        near = sorted((-likeness[each.item], each.item, each) for each in ended if likeness[each.item] >= REPEATED)
        statements = self._statements(file, [each for _, _, each in near[: self._limit]])
        return [Neighbour(each.item, each.summary, each.agent, likeness[each.item]) for each in statements.values()]

    def _statements(
        self, file: SearchIndexReader, candidates: Sequence[SummaryRow | Statement]
    ) -> dict[str, Statement]:
        """Return the statements of *candidates* by IRI, those of the file with their texts."""
        numbers = [each.number for each in candidates if isinstance(each, SummaryRow)]
        passages = file.passages.get(numbers) if numbers else {}
        digests = file.passages.digests(numbers) if numbers and self._new else {}
        statements: dict[str, Statement] = {}
        for each in candidates:
            if isinstance(each, SummaryRow):
                summary, _, _ = passages[each.number].text.partition("\n")
                pieces = tuple(digests.get(each.number, ()))
                statements[each.item] = Statement(each.item, each.agent, summary, tuple(each.stems), pieces)
            else:
                statements[each.item] = each
        return statements

    def _read_weights(self, file: SearchIndexReader, stems: Iterable[str]) -> None:
        """Read the weights of *stems*: the fewer memories have a stem, the higher. The recent ones count, too."""
        holding = file.holding({*stems} - self._weights.keys())
        self._holding |= holding
        self._weights |= _weights(holding, self._memories, self._recent)

    def _most(self, stems: Sequence[str], cosine: float) -> float:
        """Return the greatest likeness of a statement with *stems*, as if it had no words beside the common ones."""
        whole = _sum(self._weights, self._own)
        common = _sum(self._weights, self._own.intersection(stems)) / whole if whole else 0.0
        return _logistic(cosine + common, *BY_BOTH)

    def _alike(self, stems: Sequence[str]) -> float:
        """Return the shares of words and of groups of letters in common."""
        return _common(self._own, {*stems}, self._weights) + _common_letters(self._stems, stems)

    def _likeness(self, stems: Sequence[str], cosine: float | None) -> float:
        return _likeness(self._stems, stems, self._weights, cosine, self._rare)


def likeness_of_pairs(file: SearchIndexReader, pairs: Sequence[tuple[SearchRow, SearchRow, float]]) -> list[float]:
    """Return the likeness of each pair of memories of *file*, given with the cosine of their vectors.

    It is 0 for two rows of a table.
    """
    rows = {row.number: row for one, other, _ in pairs for row in (one, other)}
    stems = {number: significant(row.fields[_SUMMARY].split()) for number, row in rows.items()}
    holding = file.holding({*chain.from_iterable(stems.values())})
    memories = file.metadata("memories") or 0
    weights, rare = _weights(holding, memories, {}), _rare(memories, 2)
    partners: dict[int, dict[int, None]] = {}
    for one, other, _ in pairs:
        partners.setdefault(one.number, {})[other.number] = None
        partners.setdefault(other.number, {})[one.number] = None
    likeness = []
    for one, other, cosine in pairs:
        texts = [stems[number] for number in _connected((one.number, other.number), partners)]
        is_table = are_rows_of_table(stems[one.number], stems[other.number], texts)
        likeness.append(0.0 if is_table else _likeness(stems[one.number], stems[other.number], weights, cosine, rare))
    return likeness


def _connected(pair: tuple[int, int], partners: Mapping[int, Iterable[int]]) -> list[int]:
    """Return up to TABLE_READ numbers that *partners* connect with *pair*, the nearest first."""
    reached = dict.fromkeys(pair)
    for number in (queue := [*pair]):
        for partner in partners[number]:
            if partner not in reached and len(reached) < TABLE_READ:
                reached[partner] = None
                queue.append(partner)
    return [*reached]


class ReferentsOfMemories:
    """The things of the memories in *view*, each read once."""

    def __init__(self, view: WriteSnapshot) -> None:
        self._view, self._read = view, dict[str, Referents]()

    def of(self, item: str) -> Referents:
        """Return the things of the memory with this IRI."""
        if item not in self._read:
            summary, topic, about = (
                [*map(plain_value, self._view.objects(iri(item), jido(name)))] for name in ("summary", "topic", "about")
            )
            self._read[item] = things(" ".join(summary), " ".join(topic), about)
        return self._read[item]


#: The fewest statements that are rows of a table, and the most that are read to see whether there is one.
TABLE, TABLE_READ = 4, 32
#: The share of its rows that have another value in a column which names the matter of a row; the share that have the
#: same word in any other place.
_NAMING, _SAME = 0.75, 0.75
_NUMBER = re.compile(r"[\d_.,:%]+")


def are_rows_of_table(one: Sequence[str], other: Sequence[str], texts: Iterable[Sequence[str]]) -> bool:
    """Return whether two statements are rows of a table among *texts*, and on different matters; all as stems.

    A table is four or more statements that differ in the same places from the end, its columns. Columns with a value
    of its own for nearly each row name the matters: two rows that differ in all of them are on different matters, and
    two rows with one name and different values contradict each other. Where no column does, the first columns together
    name the matter. Numbers alone name none, nor does the last word as the only column: several values of one
    thing contradict each other.

    >>> ports = [f"{name} listen port {80 + n}".split() for n, name in enumerate(["bill", "search", "mail", "auth"])]
    >>> are_rows_of_table(ports[0], ports[1], ports)
    True
    >>> changed = "bill listen port 99".split()
    >>> are_rows_of_table(ports[0], changed, [*ports, changed])
    False
    >>> pools = [f"pool has {n} thread".split() for n in range(6)]
    >>> are_rows_of_table(pools[0], pools[1], pools)
    False
    """
    size = min(len(one), len(other))
    return _is_other_row(one, other, {size: _table(one, size, texts)})


class _Table(NamedTuple):
    """The columns of a table, and those, alone or together, that name the matter of a row."""

    columns: frozenset[int]
    naming: Sequence[tuple[int, ...]]


def _table(one: Sequence[str], size: int, texts: Iterable[Sequence[str]]) -> _Table | None:
    """Return the table of which the last *size* words of *one* are a row; None if there is none, or none is named."""
    one = one[-size:]  # some may follow a heading: "Ports: billing listens on port 8000"
    tails = (tuple(text[-size:]) for text in texts if len(text) >= size)
    rows = [*dict.fromkeys(tail for tail in tails if 2 * sum(map(eq, one, tail)) >= size)]
    if len(rows) < TABLE or not size:
        return None
    places = [*zip(*rows, strict=True)]
    columns = [place for place, words in enumerate(places) if max(map(words.count, words)) < _SAME * len(rows)]
    naming: list[tuple[int, ...]] = [(place,) for place in columns if len({*places[place]}) >= _NAMING * len(rows)] or [
        *islice((key for key in _prefixes(columns) if _distinct(rows, key) >= _NAMING * len(rows)), 1)
    ]
    names = {place for key in naming for place in key}
    if names == {size - 1} == {*columns} or all(_NUMBER.fullmatch(word) for place in names for word in places[place]):
        return None
    return _Table(frozenset(columns), naming)


def _is_other_row(one: Sequence[str], other: Sequence[str], tables: Mapping[int, _Table | None]) -> bool:
    """Return whether *other* is a row on another matter of the table, given by the number of words, that has *one*."""
    size = min(len(one), len(other))
    if (table := tables[size]) is None:
        return False
    differing = {place for place in range(size) if one[place - size] != other[place - size]}
    return len(differing) > 0 and differing <= table.columns and not any(map(differing.isdisjoint, table.naming))


def _prefixes(columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return (tuple(columns[:end]) for end in range(2, len(columns) + 1))


def _distinct(rows: Iterable[Sequence[str]], places: Sequence[int]) -> int:
    return len({tuple(row[place] for place in places) for row in rows})


def significant(stems: Iterable[str]) -> tuple[str, ...]:
    """Return *stems* without those that say little, in order."""
    little = _little()
    return tuple([stem for stem in stems if stem not in little])


@lru_cache(maxsize=1)
def _little() -> frozenset[str]:
    return frozenset(stem for _, stem in Stemmer().stems(" ".join(TELL_LITTLE)))


def _has_ended(each: SummaryRow | Statement) -> bool:
    return isinstance(each, SummaryRow) and each.has_ended


def _significant_rows(rows: Iterable[SummaryRow]) -> list[SummaryRow]:
    return [SummaryRow(*row[:-1], significant(row.stems)) for row in rows]


def _weights(holding: Mapping[str, int], memories: int, recent: Mapping[str, int]) -> dict[str, float]:
    """Return the weights of stems, by the number of memories that have each of them, in the file and in others."""
    return {stem: log(1 + memories / (1 + count + recent.get(stem, 0))) for stem, count in holding.items()}


def _likeness(
    one: Collection[str], other: Collection[str], weights: Mapping[str, float], cosine: float | None, rare: float
) -> float:
    """Return the likeness of two statements, given by their stems and the cosine of their vectors.

    A word has a weight of *rare* if at most one other memory has it. Words with digits that both have, such as CL-1003,
    name their subject, and count in their vectors only.
    """
    subject = {part for stem in {*one}.intersection(other) if "_" in stem for part in (stem, *stem.split("_"))}
    first, second = {*one} - subject, {*other} - subject
    common = first & second
    is_brief = len(first) + len(second) <= BRIEF and all(weights[stem] < rare for stem in common)
    if cosine is not None:
        return _logistic(cosine + _common(first, second, weights), *(BRIEF_BY_BOTH if is_brief else BY_BOTH))
    if min(len(one), len(other)) < SHORT and len(common) < COMMON:
        return 0.0
    alike = _common(first, second, weights) + _common_letters(one, other)
    return _logistic(alike, *(BRIEF_BY_WORDS if is_brief else BY_WORDS))


def _rare(memories: int, having: int) -> float:
    """Return the least weight of a word that at most *having* of the *memories* have."""
    return log(1 + memories / (1 + having)) - 1e-9 if memories >= FEW else inf


def _common(first: Set[str], second: Set[str], weights: Mapping[str, float]) -> float:
    """Return the share of the words of two statements, by their weights, that both have."""
    whole = _sum(weights, first | second)
    return _sum(weights, first & second) / whole if whole else 0.0


def _sum(weights: Mapping[str, float], stems: Iterable[str]) -> float:
    return sum(map(weights.__getitem__, stems))


def _common_letters(one: Iterable[str], other: Iterable[str]) -> float:
    first, second = _groups(" ".join(one)), _groups(" ".join(other))
    common = len(first & second)
    return common / (len(first) + len(second) - common or 1)


@lru_cache(maxsize=256)
def _groups(stems: str) -> frozenset[tuple[str, str, str]]:
    text = f" {stems} "
    return frozenset(zip(text, text[1:], text[2:], strict=False))


def _logistic(value: float, slope: float, middle: float) -> float:
    return 1 / (1 + exp(-slope * (value - middle)))


#: The likeness from which two memories are a near pair: higher than that of neighbours, as nobody has just written one
#: of them. On the labelled notes it lists 103 of 160 repetitions and contradictions, and a wrong pair for 12 memories.
LEAST_OF_PAIRS = 0.85
#: The most pairs of vectors examined.
EXAMINED = 5_000
#: The most pairs of vectors of which the memories that a reader sees are contrasted with near ones.
MOST_CONTRASTED = 200
#: The most memories with one text that are compared: many may have the same sentence; those that name one thing,
#: and the most such things.
OF_ONE_TEXT, OF_ONE_THING, MOST_CODES = 4, 16, 50
_STEP = 1_000


def near_pairs(
    file: SearchIndexReader, stream: Stream, vectors: Vectors, index: OxigraphIndex, moment: str
) -> list[NearPair]:
    """Return up to MOST_PAIRS near pairs of *stream* that are active at *moment*, the nearest first.

    Memories that are related in *index* already, or coexist, are no pair.
    """
    view = WriteSnapshot(lambda s, p, o: index.triples(stream.graph, s, p, o))
    known, pairs = ReferentsOfMemories(view), dict[tuple[str, str], NearPair]()
    for one, other, likeness in _active_pairs(file, moment, _near_texts(file, stream, vectors)):
        if len(pairs) == MOST_PAIRS:
            break
        older, newer = sorted((one, other), key=lambda row: (row.recorded, row.number))
        names = newer.item, older.item
        if likeness < LEAST_OF_PAIRS or names in pairs or are_of_other_things(*map(known.of, names)):
            continue
        if not _are_related(*names, view) and not are_on_other_days(*(view.summary(iri(name)) for name in names)):
            pairs[names] = NearPair(*names, round(likeness, 3) if likeness == 1.0 else min(round(likeness, 3), 0.999))
    return sorted(pairs.values(), key=lambda pair: (-pair.likeness, pair.item, pair.other))


def contrasts(
    file: SearchIndexReader, stream: Stream, vectors: Vectors, index: OxigraphIndex, moment: str, items: Collection[str]
) -> dict[str, list[DifferingMemory]]:
    """Return those of *items* that differ in values from near ones active at *moment*, with these, nearest first."""
    view = WriteSnapshot(lambda s, p, o: index.triples(stream.graph, s, p, o))
    known, found = ReferentsOfMemories(view), dict[str, list[DifferingMemory]]()
    pieces = [*{digest for some in file.passages.digests(file.numbers(items)).values() for digest in some}]
    near = vectors.near_pairs(stream, MOST_CONTRASTED, of=pieces) if pieces else []
    memories = (item for item in items if ":" in item)  # entries and pages have ids, not IRIs
    named = islice(dict.fromkeys(code for item in memories for code in known.of(item).codes), MOST_CODES)
    for one, other, likeness in _active_pairs(file, moment, [near, _pairs_named(file, stream, vectors, named)]):
        names = one.item, other.item
        if likeness < LEAST_OF_PAIRS or are_of_other_things(*map(known.of, names)) or _are_related(*names, view):
            continue
        texts = [plain_value(view.first(iri(name), jido("summary")) or '""') for name in names]
        for own, rival in ((0, 1), (1, 0)):
            others = found.setdefault(names[own], [])
            if names[own] not in items or len(others) >= MOST or any(each.item == names[rival] for each in others):
                continue
            if values := contrast(texts[own], texts[rival]):
                others.append(DifferingMemory(names[rival], texts[rival], values))
    return {name: others for name, others in found.items() if others}


def _pairs_named(
    file: SearchIndexReader, stream: Stream, vectors: Vectors, codes: Iterable[str]
) -> list[tuple[bytes, bytes, float]]:
    """Return the pairs of pieces of up to OF_ONE_THING memories whose summaries have one of *codes*, with the cosines.

    Among many memories of other things, they are not the nearest of each other.
    """
    pairs: list[tuple[bytes, bytes, float]] = []
    for code in codes:
        digests = file.passages.digests(file.with_stem(code, OF_ONE_THING))
        pairs += vectors.cosines_among(stream, [*{pieces[0] for pieces in digests.values() if pieces}])
    return sorted(pairs, key=itemgetter(2), reverse=True)


def _active_pairs(
    file: SearchIndexReader, moment: str, steps: Iterable[Sequence[tuple[bytes, bytes, float]]]
) -> Iterator[tuple[SearchRow, SearchRow, float]]:
    """Yield the comparable pairs of memories with the near texts of each step, in order, with their likeness."""
    within = SearchFilter(valid_at=moment)
    for near in steps:
        numbers = file.passages.numbers_of({digest for one, other, _ in near for digest in (one, other)})
        rows = {row.number: row for row in file.rows({each for some in numbers.values() for each in some}, within)}
        active = {known: [each for each in some if each in rows][:OF_ONE_TEXT] for known, some in numbers.items()}
        pairs = [
            (rows[left], rows[right], cosine)
            for one, other, cosine in near
            for left, right in product(active[one], active[other])
            if left != right and is_comparable(rows[left].types, rows[right].types)
        ]
        likeness = likeness_of_pairs(file, pairs)
        yield from ((one, other, like) for (one, other, _), like in zip(pairs, likeness, strict=True))


def _near_texts(
    file: SearchIndexReader, stream: Stream, vectors: Vectors
) -> Iterator[Sequence[tuple[bytes, bytes, float]]]:
    """Yield the texts that several memories have, then, in steps, those with near vectors: the digests and the cosine.

    A text that several memories have has one vector, and so is in no pair of vectors.
    """
    yield [(known, known, 1.0) for known in file.passages.repeated(EXAMINED)]
    for start in range(0, EXAMINED, _STEP):
        near = vectors.near_pairs(stream, _STEP, start)
        yield near
        if len(near) < _STEP:
            return


def _are_related(item: str, other: str, view: WriteSnapshot) -> bool:
    """Return whether one of two memories names the other, or an earlier version that it coexists with."""
    for one, another in ((iri(item), iri(other)), (iri(other), iri(item))):
        if any(value == another for _, _, value in view.about(one)) or another in conflict.coexisting(one, view):
            return True
    return False
