"""What a list query may show, kept in the order of its rows: a page costs what it shows, not what is remembered.

What an index answers about some nodes or about all: since when each is known, what ended it, what is proposed.

What was found of the nodes of one graph, each until something new is said that may make it another.

The ids of the memories of a project: which begin or end with some signs.

What is reached from some nodes, however many steps away.

Which memories disagree: two in force at once that share a conflict key, or took the place of one memory.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import nsmallest
from sys import maxsize
from threading import Lock
from typing import Generic, TypeVar

from jidomem.index.results import AnswerLimits, Solutions
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import Term, Triple, is_iri, literal, plain_value
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, jido
from jidomem.records.active import ACCEPTED, CLASH, Convention
from jidomem.records.named_query import ListOrder

#: Nobody ended it; and: it was never in force.
FOREVER = 2**62
NEVER = -1
#: The time of what has none: before every moment, as the engine sorts what is unbound.
UNDATED = -1
BLOCK = 512
_KEY_LENGTH = 16
_MOMENT = re.compile(
    r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z"\^\^<http://www.w3.org/2001/XMLSchema#dateTime>'
)
_TICK = timedelta(microseconds=1)
_START = datetime(1, 1, 1)


@lru_cache(maxsize=65536)
def ticks(term: Term) -> int | None:
    """Return the microseconds from the year 1 to a moment in UTC; None for what is not written as one.

    >>> ticks('"0001-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
    1000000
    """
    match = _MOMENT.fullmatch(term)
    try:
        return None if match is None else (datetime.fromisoformat(match[1]) - _START) // _TICK
    except ValueError:
        return None


def timed(moment: int, iri: str, newest_first: bool) -> str:
    """Return the key that puts *iri* in its place by time, UNDATED for none, then by its own order.

    >>> key_parts(timed(7, "urn:a", newest_first=True), newest_first=True)
    (7, 'urn:a')
    """
    return f"{FOREVER - moment if newest_first else moment:0{_KEY_LENGTH}x}{iri}"


def key_parts(key: str, newest_first: bool) -> tuple[int, str]:
    """Return the moment and the IRI of a key that `timed` made."""
    number = int(key[:_KEY_LENGTH], 16)
    return FOREVER - number if newest_first else number, key[_KEY_LENGTH:]


def moment_term(number: int) -> Term:
    """Return the moment that many microseconds after the start of the year 1; UNDEF for UNDATED."""
    if number == UNDATED:
        return "UNDEF"
    return f'"{(_START + number * _TICK).isoformat()}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


class _Block:
    """Some neighbours of a listing: their keys, since when each is known, and until when it is in force."""

    __slots__ = ("earliest", "keys", "latest", "since", "until")

    def __init__(self, rows: Iterable[tuple[str, int, int]]) -> None:
        keys, since, until = zip(*rows, strict=True)
        self.keys: list[str] = list(keys)
        self.since, self.until = array("q", since), array("q", until)
        self.measure()

    def measure(self) -> None:
        """Find again what holds of all."""
        self.earliest, self.latest = min(self.since), max(self.until)

    def rows(self) -> Iterator[tuple[str, int, int]]:
        return zip(self.keys, self.since, self.until, strict=True)

    def put(self, key: str, since: int, until: int) -> None:
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            self.since[at], self.until[at] = since, until
        else:
            self.keys.insert(at, key)
            self.since.insert(at, since)
            self.until.insert(at, until)
        self.measure()


class KeyListing:
    """Keys in order, each with the time it was known since, and in force until."""

    def __init__(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """Take any rows; of two with one key the later counts."""
        whole = sorted({row[0]: row for row in rows}.values())
        self._blocks = [_Block(whole[at : at + BLOCK]) for at in range(0, len(whole), BLOCK)]
        self._firsts = [block.keys[0] for block in self._blocks]

    def __len__(self) -> int:
        return sum(len(block.keys) for block in self._blocks)

    def rows(self) -> Iterator[tuple[str, int, int]]:
        """Yield every key with its moments, in order."""
        return (row for block in self._blocks for row in block.rows())

    def put(self, key: str, since: int, until: int) -> None:
        """Add a key, or say anew what holds of it."""
        if not self._blocks:
            self._blocks, self._firsts = [_Block([(key, since, until)])], [key]
            return
        at = max(bisect_right(self._firsts, key) - 1, 0)
        block = self._blocks[at]
        block.put(key, since, until)
        self._firsts[at] = block.keys[0]
        if len(block.keys) > 2 * BLOCK:
            rows = list(block.rows())
            self._blocks[at : at + 1] = halves = [_Block(rows[:BLOCK]), _Block(rows[BLOCK:])]
            self._firsts[at : at + 1] = [half.keys[0] for half in halves]

    def page(self, start: str, moment: int, inactive: bool, count: int) -> list[str]:
        """Return up to *count* keys from *start* on that were known at *moment* and, unless *inactive*, in force."""
        found: list[str] = []
        first = max(bisect_right(self._firsts, start) - 1, 0)
        for block in self._blocks[first : first + 1]:
            found += self._of(block, bisect_left(block.keys, start), moment, inactive)
        for block in self._blocks[first + 1 :]:
            if len(found) >= count:
                break
            found += self._of(block, 0, moment, inactive)
        return found[:count]

    @staticmethod
    def _of(block: _Block, start: int, moment: int, inactive: bool) -> list[str]:
        if block.earliest > moment or not (inactive or block.latest > moment):
            return []
        keys, since, until = block.keys, block.since, block.until
        return [keys[at] for at in range(start, len(keys)) if since[at] <= moment and (inactive or until[at] > moment)]


WRITABLE = re.compile(r"<[^\x00-\x20<>\"{}|^`\\]*>")
_AT_ONCE = 500
#: Of so many nodes a scan of all that is said costs less than a look-up for each.
MANY = 50_000
RECORDED, PROPOSED, ASSERTED = jido("recordedAt"), jido("Proposed"), jido("Asserted")
STATUS = jido("hasAssertionStatus")
DATED = f"{jido('validFrom')}|{jido('validUntil')}"
DECIDED = jido("decisionStatus")
ENDED_BY = f"{jido('supersededBy')}|{jido('invalidatedBy')}"
#: What is asked beside a pattern stands in OPTIONAL, which the engine looks up for each row found: joined, it may scan
#: all moments there are. `%s` is where the nodes asked about are named.
_ENDS = (
    f"SELECT ?item ?until ?status WHERE {{ %s ?item {ENDED_BY} ?end "
    f"OPTIONAL {{ ?end {RECORDED} ?until }} OPTIONAL {{ ?end {STATUS} ?status }} }}"
)
#: The same of all items: a SELECT within is found by one scan and joined by hashing, where a look-up on disk for each
#: row costs ten times as much.
_ALL_ENDS = (
    f"SELECT ?item ?until ({ASSERTED} AS ?status) WHERE {{ %s {{ SELECT * {{ ?item {ENDED_BY} ?end }} }} "
    f"{{ SELECT * {{ ?end {RECORDED} ?until }} }} {{ SELECT * {{ ?end {STATUS} {ASSERTED} }} }} }}"
)
_PROPOSALS = f"SELECT ?item WHERE {{ %s ?item {STATUS} {PROPOSED} }}"
_UNACCEPTED = f"SELECT ?item WHERE {{ %s ?item {DECIDED} ?standing FILTER(?standing != {literal(ACCEPTED)}) }}"
_ENDED = f"SELECT ?item WHERE {{ %s ?item {ENDED_BY} ?end }}"
_KNOWN = f"SELECT ?item ?since WHERE {{ %s ?item {RECORDED} ?since }}"

#: Since when something is known, and until when it is in force, as `ticks` counts.
ValidityInterval = tuple[int, int]


@dataclass(slots=True)
class ValidityEnds:
    """Which items were ended, and when; which are only proposed; and which are decisions that are not accepted."""

    until: dict[Term, int] = field(default_factory=dict)
    proposed: set[Term] = field(default_factory=set)
    unaccepted: set[Term] = field(default_factory=set)

    def of(self, item: Term) -> int:
        """Return until when *item* is in force: NEVER for a proposal."""
        return NEVER if item in self.proposed else self.until.get(item, FOREVER)


class IndexQueries:
    """Questions to an index; where *only* is given, about these nodes alone."""

    def __init__(self, index: OxigraphIndex) -> None:
        """Ask *index*."""
        self._index = index

    def rows(
        self, graphs: Sequence[str], text: str, only: Iterable[Term] | None = None, name: str = "item"
    ) -> Iterator[tuple[Term | None, ...]]:
        """Yield the rows of a SELECT, of which *only* says what *name* may be."""
        if only is None:
            yield from self._solutions(graphs, text.replace("%s", "", 1)).rows
            return
        known = [term for term in only if term.startswith('"') or WRITABLE.fullmatch(term)]
        for at in range(0, len(known), _AT_ONCE):
            yield from self._solutions(graphs, text.replace("%s", values(name, known[at : at + _AT_ONCE]), 1)).rows

    def nodes(
        self, graphs: Sequence[str], text: str, only: Iterable[Term] | None = None, name: str = "item"
    ) -> Iterator[Term]:
        """Yield the first column of `rows`."""
        return (row[0] or "" for row in self.rows(graphs, text, only, name))

    def ended(self, graphs: Sequence[str], enders: Iterable[Term]) -> set[Term]:
        """Return the items that *enders* end, or would."""
        return set(self.nodes(graphs, _ENDED, enders, "end"))

    def look_up(self, graphs: Sequence[str], fates: ValidityEnds, only: Collection[Term] | None) -> ValidityEnds:
        """Return *fates* with those of all items, or of those among *only*."""
        until = fates.until
        for item, ended, status in self.rows(graphs, _ALL_ENDS if only is None else _ENDS, only):
            at = ticks(ended or "") if status == ASSERTED else None
            if at is not None:
                until[item or ""] = min(at, until.get(item or "", FOREVER))
        fates.proposed.update(self.nodes(graphs, _PROPOSALS, only))
        fates.unaccepted.update(self.nodes(graphs, _UNACCEPTED, only))
        return fates

    def spans(
        self, graphs: Sequence[str], items: Set[Term], recorded_at: Mapping[Term, Term] | None = None
    ) -> dict[Term, ValidityInterval]:
        """Return the span of each of *items* that is ever in force and an IRI; the longest where it is unknown.

        *recorded_at* says since when each is known, where that is known already.
        """
        only = items if len(items) < MANY else None
        fates, since = self.look_up(graphs, ValidityEnds(), only), dict[Term, int]()
        for item, recorded in (recorded_at or {}).items() or self.rows(graphs, _KNOWN, only):
            if item is not None and item in items:
                at = ticks(recorded or "") or 0
                since[item] = min(at, since.get(item, at))
        found = {item: (since.get(item, 0), fates.of(item)) for item in items if WRITABLE.fullmatch(item)}
        return {item: span for item, span in found.items() if span[0] < span[1]}

    def pointing(
        self, graphs: Sequence[str], course: ListOrder, items: Set[Term]
    ) -> dict[Term, list[ValidityInterval]]:
        """Return the spans of all that points at each of *items* as the course says in `unless`.

        What holds for a time only is left out: whether it counts, depends on the moment it is asked for. So is what is
        not accepted, which is never active.
        """
        what = course.unless.split(" ")[0]
        text = (
            f"{course.prologue} SELECT ?{course.variable} {what} ?since WHERE {{ %s {course.unless} . "
            f"{what} {RECORDED} ?since FILTER NOT EXISTS {{ {what} {DATED} ?date }} "
            f"FILTER NOT EXISTS {{ {what} {DECIDED} ?standing FILTER(?standing != {literal(ACCEPTED)}) }} }}"
        )
        rows = [*self.rows(graphs, text, items if len(items) < MANY else None, course.variable)]
        since = dict[Term, int]()
        for _, pointer, recorded in rows:
            if pointer is not None and (at := ticks(recorded or "")) is not None:
                since[pointer] = min(at, since.get(pointer, at))
        fates = self.look_up(graphs, ValidityEnds(), since if len(since) < MANY else None)
        spans: dict[Term, list[ValidityInterval]] = {}
        for item, pointer, _ in rows:
            if item is not None and pointer in since:
                spans.setdefault(item, []).append((since[pointer], fates.of(pointer)))
        return spans

    def pointed_at(self, graphs: Sequence[str], course: ListOrder, items: Iterable[Term]) -> set[Term]:
        """Return what *items* point at as the course says in `unless`."""
        text = f"{course.prologue} SELECT ?{course.variable} WHERE {{ %s {course.unless} }}"
        return set(self.nodes(graphs, text, items, course.unless.split(" ")[0][1:]))

    def count(self, graphs: Sequence[str], text: str) -> int:
        """Return the number that a SELECT answers with."""
        return int(next(self.nodes(graphs, text)).split('"')[1])

    def _solutions(self, graphs: Sequence[str], text: str) -> Solutions:
        found = self._index.query(text, graphs=graphs)
        assert isinstance(found, Solutions)
        return found


def valid_since(spans: Iterable[ValidityInterval], until: int) -> int:
    """Return from when on one of *spans* holds at every moment before *until*; that itself where none holds at last.

    >>> valid_since([(1, 3), (3, FOREVER)], FOREVER), valid_since([(1, 2), (5, 9)], 9), valid_since([(1, 3)], 9)
    (1, 5, 9)
    """
    for since, end in sorted(spans, key=lambda span: span[1], reverse=True):
        if end < until:
            break
        until = min(since, until)
    return until


def values(name: str, terms: Iterable[Term]) -> str:
    """Return the SPARQL that lets a variable be one of *terms*, which the store gave and can be written."""
    return f"VALUES ?{name} {{ {' '.join(terms)} }}"


V = TypeVar("V")

#: So many nodes of which something new is said cost more to look at again than to find all anew when it is asked for.
MOST_NEWS = 5_000
#: Of so many nodes something is kept.
MAX_CACHED = 50_000
#: Returns what is found of each of some nodes; of all there are for None.
Find = Callable[[Collection[str] | None], Mapping[str, V]]
#: Returns the nodes of which another thing may be found once something new is said of some.
Touched = Callable[[set[Term]], Iterable[str]]


class NodeCache(Generic[V]):
    """Follows an index whose graph it is told of; what is found of a node is asked for again where it may be another.

    Any thread may ask; one at a time is answered. Nothing here holds the index.
    """

    def __init__(self, graph: str) -> None:
        """Begin with nothing found in *graph*."""
        self._graph = graph
        self._found: dict[str, V | None] = {}
        self._is_whole = False
        self._again: set[str] = set()  # of these another thing may be found by now
        self._news: set[Term] = set()
        self._life = self._found_in = 0
        self._lock, self._telling = Lock(), Lock()

    def of(self, nodes: Collection[str], touched: Touched, find: Find[V]) -> dict[str, V]:
        """Return what is found of each of *nodes* of which anything is."""
        with self._lock:
            if len(self._found) + len(nodes) > MAX_CACHED:
                self.reset(self._graph)
            self._level(touched)
            self._look([node for node in nodes if node not in self._found or node in self._again], find)
            return {node: value for node in nodes if (value := self._found[node]) is not None}

    def every(self, touched: Touched, find: Find[V]) -> list[V]:
        """Return what is found of all nodes of which anything is."""
        with self._lock:
            self._level(touched)
            if not self._is_whole:
                self._found, self._again = {**find(None)}, set()
                self._is_whole = True
            self._look([*self._again], find)
            return [value for value in self._found.values() if value is not None]

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Remember of which nodes something new is said."""
        if graph == self._graph:
            with self._telling:
                self._news.update(subject for subject, _, _ in triples)
                is_much = len(self._news) > MOST_NEWS
            if is_much:
                self.reset(graph)
        elif graph == ONTOLOGY_GRAPH:
            self.reset(graph)

    def reset(self, graph: str) -> None:
        """Believe nothing any more that was found so far."""
        if graph in (self._graph, ONTOLOGY_GRAPH):
            with self._telling:
                self._life += 1
                self._news = set()

    def _look(self, nodes: Collection[str], find: Find[V]) -> None:
        if nodes:
            found = find(nodes)
            self._found.update((node, found.get(node)) for node in nodes)
            self._again.difference_update(nodes)

    def _level(self, touched: Touched) -> None:
        """Take in of which nodes another thing may be found by now."""
        with self._telling:
            life, self._news, new = self._life, set(), self._news
        if life != self._found_in:
            self._found, self._again, self._is_whole, self._found_in = {}, set(), False, life
        elif new:
            try:
                self._again.update(touched(new))
            except BaseException:
                self.reset(self._graph)
                raise


#: How many characters of an id are shown.
SHORT = 8
_OF = jido("appliesToProject")
_EVERY = f"SELECT ?item WHERE {{ ?item {_OF} %s }}"


class _IriText:
    """The IRIs of the memories of a project, one a line, and those that are new since they were looked up."""

    def __init__(self) -> None:
        self.lines: bytes | None = None  # before they are looked up
        self.news: deque[bytes] = deque()


class Ids:
    """Follows an index: the ids of a project are looked up when one is first asked for, and each new one is heard of.

    To look them up takes as long as one question to the index, and to search them a twentieth of that. Any thread may
    ask; one at a time is answered.
    """

    def __init__(self, index: OxigraphIndex) -> None:
        """Follow *index* from now on."""
        self._index = index
        self._kept: dict[tuple[str, Term], _IriText] = {}
        self._lock = Lock()
        index.observers.append(self)

    def named(self, graph: str, project: Term, signs: str, most: int) -> list[str]:
        """Return up to *most* memories of *project* in *graph* whose id begins or ends with *signs*, sorted.

        The id is what stands after the last `/`, `#` or `:` of its IRI; its last 8 characters are the short id that
        is shown, of which a beginning counts, too.
        """
        if not signs or any(sign.isspace() or sign in "<>/#:" for sign in signs):
            return []
        with self._lock:
            lines = self._level(graph, project)
        return [item.decode() for item in nsmallest(most, _named(lines, signs.encode(errors="surrogatepass")))]

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Remember which memories are new."""
        for (of_graph, project), kept in [*self._kept.items()]:
            if of_graph == graph:
                kept.news.extend(f"{s}\n".encode() for s, p, o in triples if p == _OF and o == project and is_iri(s))

    def reset(self, graph: str) -> None:
        """Forget what is known of *graph*."""
        for key in [key for key in [*self._kept] if key[0] == graph]:
            self._kept.pop(key, None)

    def _level(self, graph: str, project: Term) -> bytes:
        """Return all there are, one a line; what comes while they are looked up may be there twice."""
        kept = self._kept.setdefault((graph, project), _IriText())  # first: from here on it hears of what is new
        if kept.lines is None:
            within = AnswerLimits(maxsize, maxsize)
            found = self._index.serialized(_EVERY % project, graphs=[graph], rows_as="tsv", within=within)
            kept.lines = found.data
        new = [kept.news.popleft() for _ in range(len(kept.news))]
        if new:
            kept.lines += b"".join(new)
        return kept.lines


def _named(lines: bytes, signs: bytes) -> set[bytes]:
    """Return the IRIs of *lines* whose last part, or the short id at its end, begins with *signs*, or ends with it."""
    found, at = set(), lines.find(signs)
    while at >= 0:
        end = lines.index(b"\n", at)
        start = lines.rfind(b"\n", 0, at) + 1
        item = lines[start + 1 : end - 1]
        last = item[max(map(item.rfind, (b"/", b"#", b":"))) + 1 :]
        is_named = last.startswith(signs) or last.endswith(signs) or last[-SHORT:].startswith(signs)
        if lines[start : start + 1] == b"<" and is_named:
            found.add(item)
        at = lines.find(signs, end)
    return found


def reachable(starts: Iterable[Term], links: Callable[[Collection[Term]], Mapping[Term, Iterable[Term]]]) -> set[Term]:
    """Return *starts* and all that comes after them; *links* gives what directly follows each of some nodes.

    >>> after = {"a": ["b"], "b": ["c", "a"], "c": []}
    >>> sorted(reachable(["b"], lambda nodes: {node: after[node] for node in nodes}))
    ['a', 'b', 'c']
    """
    seen = todo = set(starts)
    while todo:
        todo = {following for found in links(todo).values() for following in found} - seen
        seen = seen | todo
    return seen


#: The keys of docs/conflicts.md that two in force may not share.
KINDS = ("duplicate", "overlapping_decision", "convention_clash", "contradiction")
STALE, VALUE, PROPOSAL = "stale_supersession", "contradicting_value", "proposal"
#: The key of a value given to a property that can have one; the property of that thing is another key.
_VALUE = '"value-is:'
_CONFLICT_KEY, _BY, _WITH = jido("conflictKey"), jido("supersededBy"), jido("conflictsWith")
_ALL_KEYS = f"SELECT ?key WHERE {{ ?item {_CONFLICT_KEY} ?key %s}} GROUP BY ?key HAVING(COUNT(?item) > 1)"
#: Keys that two share now, the few; and those that two ever shared, with who does: what was revised shares one with
#: what it says now. So many are found by scans, joined by hashing, and with them since when each is known.
_SHARED_NOW = _ALL_KEYS % f"MINUS {{ ?item {ENDED_BY} ?end }} "
_EVER_ACTIVE = (
    f"SELECT ?key ?holder ?since WHERE {{ {{ SELECT ?key ?holder {{ {{ {_ALL_KEYS % ''} }} "
    f"{{ SELECT * {{ ?holder {_CONFLICT_KEY} ?key }} }} }} }} {{ SELECT * {{ ?holder {RECORDED} ?since }} }} }}"
)
#: What ends only in name, so is in force still.
_ENDED_BY_NOTHING = f"SELECT ?item WHERE {{ ?item {ENDED_BY} ?end MINUS {{ ?end {STATUS} {ASSERTED} }} }}"
_FORKS = f"SELECT ?old WHERE {{ ?old {_BY} ?any }} GROUP BY ?old HAVING(COUNT(?any) > 1)"
_HOLDERS = f"SELECT ?key ?item WHERE {{ %s ?item {_CONFLICT_KEY} ?key }}"
_AFTER = f"SELECT ?old ?new WHERE {{ %s ?old {_BY} ?new }}"
#: What decides whether two conventions clash.
_CONVENTIONS = (
    f"SELECT ?item ?summary ?level ?about WHERE {{ %s ?item {jido('hasConventionScope')} ?scope "
    f"OPTIONAL {{ ?item {jido('summary')} ?summary }} "
    f"OPTIONAL {{ ?item {jido('hasEnforcementLevel')} ?level }} OPTIONAL {{ ?item {jido('about')} ?about }} }}"
)
_OPPOSED = f"SELECT ?item ?other WHERE {{ %s ?item {_WITH}|^{_WITH} ?other }}"

#: Two memories, sorted, and the kind of their disagreement.
Pair = tuple[Term, Term, str]
Row = tuple[Term | None, ...]


class ConflictFinder:
    """Finds the pairs that disagree in some graphs, each with the span in which both are in force."""

    def __init__(self, asked: IndexQueries) -> None:
        """Find them by what *asked* answers."""
        self._asked = asked

    def all(self, graphs: Sequence[str], *, ever: bool) -> dict[Pair, ValidityInterval]:
        """Return every pair in force now; with *ever*, every pair that was at some time."""
        pairs = self._by_key(graphs, self._held_ever(graphs) if ever else self._held_now(graphs))
        pairs |= self._by_origin(graphs, self._asked.nodes(graphs, _FORKS))
        return pairs if ever else {pair: span for pair, span in pairs.items() if span[1] == FOREVER}

    def among(self, graphs: Sequence[str], items: Collection[Term]) -> dict[Pair, ValidityInterval]:
        """Return every pair of which one is among *items*, as long as it was; some others may be with them."""
        held = self._held(graphs, set(self._asked.nodes(graphs, _HOLDERS, items)))
        before = reachable(items, lambda nodes: self._links(graphs, nodes, "new"))
        after = self._links(graphs, before, "old")
        return self._by_key(graphs, held) | self._by_origin(graphs, (old for old in before if len(after[old]) > 1))

    def of(self, graphs: Sequence[str], item: Term) -> list[tuple[Term, str]]:
        """Return with what *item* disagrees at some time, and how; what is only proposed may do, too."""
        found = {(b if a == item else a, kind) for a, b, kind in self.among(graphs, [item]) if item in (a, b)}
        opposed = (row[1] or "" for row in self._asked.rows(graphs, _OPPOSED, [item]))
        return sorted(found | {(other, PROPOSAL) for other in opposed if WRITABLE.fullmatch(other)})

    def _held_now(self, graphs: Sequence[str]) -> Iterable[Row]:
        keys = set(self._asked.nodes(graphs, _SHARED_NOW))
        unended = set(self._asked.nodes(graphs, _ENDED_BY_NOTHING))
        return self._held(graphs, keys | set(self._asked.nodes(graphs, _HOLDERS, unended)))

    def _held_ever(self, graphs: Sequence[str]) -> Iterable[Row]:
        return self._asked.rows(graphs, _EVER_ACTIVE)

    def _held(self, graphs: Sequence[str], keys: Iterable[Term]) -> Iterable[Row]:
        """Return each of *keys* that matters with each that holds it."""
        return self._asked.rows(graphs, _HOLDERS, [key for key in keys if _kind(key)], "key")

    def _by_key(self, graphs: Sequence[str], held: Iterable[Row]) -> dict[Pair, ValidityInterval]:
        """Return the pairs that hold the same key, of what is *held* by whom, and since when where that was found."""
        holders: dict[Term, set[Term]] = defaultdict(set)
        since: dict[Term, Term] = {}
        for key, holder, *moment in held:
            if _kind(key or ""):
                item = holder or ""
                holders[key or ""].add(item)
                for said in filter(None, moment):
                    since[item] = min(said, since.get(item, said))
        groups = [(_kind(key), items) for key, items in holders.items() if len(items) > 1]
        spans = self._asked.spans(graphs, {item for _, items in groups for item in items}, since)
        clash = self._clashing(graphs, {item for kind, items in groups if kind == CLASH for item in items})
        pairs: dict[Pair, ValidityInterval] = {}
        slots: dict[Pair, int] = defaultdict(int)
        for kind, items in groups:
            for a, b, span in overlapping_pairs({item: spans[item] for item in items if item in spans}):
                if kind == CLASH and not clash(a, b):
                    continue
                pairs[a, b, kind] = span
                slots[a, b, kind] += kind == VALUE
        agreed = self._agreed(graphs, {item for pair, count in slots.items() if count for item in pair[:2]})
        return {pair: span for pair, span in pairs.items() if pair[2] != VALUE or slots[pair] > agreed(*pair[:2])}

    def _clashing(self, graphs: Sequence[str], items: Collection[Term]) -> Callable[[Term, Term], bool]:
        """Return what says whether two of *items*, conventions of one name or topic, clash."""
        said: dict[Term, tuple[Term | None, Term | None]] = {}
        about: dict[Term, set[str]] = defaultdict(set)
        for item, summary, level, place in self._asked.rows(graphs, _CONVENTIONS, items):
            said[item or ""] = summary, level
            if place:
                about[item or ""].add(plain_value(place))
        made = {
            item: Convention.of(
                plain_value(summary) if summary else None, plain_value(level) if level else None, about[item]
            )
            for item, (summary, level) in said.items()
        }
        return lambda a, b: a not in made or b not in made or made[a].clashes(made[b])

    def _agreed(self, graphs: Sequence[str], items: Collection[Term]) -> Callable[[Term, Term], int]:
        """Return what counts the values that two of *items* both give; each stands for one slot they share."""
        given: dict[Term, set[Term]] = defaultdict(set)
        for key, item in self._asked.rows(graphs, _HOLDERS, items):
            if (key or "").startswith(_VALUE):
                given[item or ""].add(key or "")
        return lambda a, b: len(given[a] & given[b])

    def _by_origin(self, graphs: Sequence[str], forks: Iterable[Term]) -> dict[Pair, ValidityInterval]:
        """Return the pairs that came, in the end, in the place of one of *forks*, which have two successors.

        The two of a pair come after different successors. Of two in one line, the earlier of which ended
        only in name, a fork that is recorded later would make a pair that disagreed before.
        """
        after: dict[Term, set[Term]] = defaultdict(set)

        def following(nodes: Collection[Term]) -> Mapping[Term, set[Term]]:
            after.update(found := self._links(graphs, nodes, "old"))
            return found

        forks = [*forks]
        reachable(forks, following)
        lines = [_line(fork, after) for fork in forks]
        spans = self._asked.spans(graphs, {item for line in lines for item in line})
        pairs: dict[Pair, ValidityInterval] = {}
        for line in lines:
            for a, b, span in overlapping_pairs({item: spans[item] for item in line if item in spans}):
                if len(line[a] | line[b]) > 1:
                    pairs[a, b, STALE] = span
        return pairs

    def _links(self, graphs: Sequence[str], nodes: Collection[Term], name: str) -> dict[Term, set[Term]]:
        """Return the successors of each of *nodes*, which are the `old` ones, or what each, a `new` one, succeeded."""
        found: dict[Term, set[Term]] = {node: set() for node in nodes}
        for old, new in self._asked.rows(graphs, _AFTER, nodes, name):
            node, other = (old, new) if name == "old" else (new, old)
            found[node or ""].add(other or "")
        return found


def _line(fork: Term, after: Mapping[Term, set[Term]]) -> dict[Term, set[Term]]:
    """Return all that came after *fork*, each with the successors of *fork* that it is or came after.

    >>> line = _line("a", {"a": {"b", "c"}, "b": {"d"}, "c": set(), "d": set()})
    >>> line["b"], line["c"], line["d"]
    ({'b'}, {'c'}, {'b'})
    """
    line: dict[Term, set[Term]] = defaultdict(set)
    for successor in after[fork]:
        for item in reachable([successor], lambda nodes: {node: after[node] for node in nodes}) - {fork}:
            line[item].add(successor)
    return dict(line)


def _kind(key: Term) -> str:
    """Return the kind of disagreement a key shows; nothing for one that shows none.

    >>> _kind('"duplicate:1f"'), _kind('"value:1f"'), _kind('"identical:1f"')
    ('duplicate', 'contradicting_value', '')
    """
    name = key[1:].partition(":")[0]
    return VALUE if name == "value" else name if name in KINDS else ""


def overlapping_pairs(spans: Mapping[Term, ValidityInterval]) -> Iterator[tuple[Term, Term, ValidityInterval]]:
    """Yield each two whose spans meet, sorted, and the span in which they do.

    >>> [*overlapping_pairs({"<urn:b>": (0, 5), "<urn:a>": (4, 9), "<urn:c>": (5, 9)})][0]
    ('<urn:a>', '<urn:b>', (4, 5))
    """
    running: list[tuple[int, Term]] = []
    for since, until, item in sorted((since, until, item) for item, (since, until) in spans.items()):
        running = [entry for entry in running if entry[0] > since]
        for ends, other in running:
            first, second = sorted((item, other), key=plain_value)
            yield first, second, (since, min(until, ends))
        running.append((until, item))
