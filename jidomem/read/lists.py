"""The rows of a named query, all or a page: ordered by the projection where it has the list, else by the engine.

A page of an ordered list takes its candidates from the projection, in batches, and runs the query over each batch, so
the query decides which of them are rows. A cursor names the moment of the first page, so all pages of one answer are
consistent while others write. Queries that count memories are answered by the tallies (`jidomem.index.tallies`) with
the rows of their SPARQL: the engine reads every memory for them.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import islice
from sys import maxsize
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jidomem.base.containers import BoundedDict
from jidomem.errors import Busy, InvalidRequest
from jidomem.index.projection import (
    ID_START,
    UNDATED,
    WRITABLE,
    IndexedProject,
    NotSortable,
    key_parts,
    moment_term,
    opposing_keys,
    sort_key,
    ticks,
    timed,
)
from jidomem.index.results import Solutions
from jidomem.index.store import OxigraphIndex, Watermark
from jidomem.index.tallies import BY_AGENT, BY_STATUS, COUNTED_BY, Tallies, recorded_between
from jidomem.journal.journal import Stream
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import Term, boolean, integer, iri, literal, plain_value
from jidomem.rdf.vocab import BASE, SHORT_ID_CHARS, graph_iri, graphs_of, jido
from jidomem.records.named_query import FOREVER, ListOrder, NamedQuery, to_term

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex
    from jidomem.index.search_index import Texts
    from jidomem.index.search_tables import SearchIndexReader
    from jidomem.read.playbook import Playbook, Rows


#: The most candidates in one batch.
MAX_CANDIDATES = 1024
#: The most commits that a search file may lack while short ids are read from it.
MAX_LACKING = 100

_OF = jido("appliesToProject")

Row = tuple[Term | None, ...]
T = TypeVar("T")


class PagePosition(NamedTuple):
    """The place in a list at which a page begins: the key of a candidate, and how many of its rows came before."""

    key: str = ""
    given: int = 0


def fetch_page(
    order: ListOrder,
    columns: Sequence[str],
    place: PagePosition,
    size: int,
    candidates: Callable[[str, int], list[str] | None],
    run: Callable[[str], Iterable[Row]],
) -> tuple[list[Row], PagePosition | None] | None:
    """Return up to *size* rows from *place* on, and the place of the next page, None after the last row.

    `candidates(start, count)` returns keys, or None where only the engine can order the list; then the result is None.
    `run(values)` returns the rows of the query, terms in the order of *columns*, for the candidates in *values*.
    """
    rows: list[Row] = []
    wanted, start = place.given + size + 1, place.key
    count, more = min(wanted, MAX_CANDIDATES), 0
    while len(rows) < wanted:
        keys = candidates(start, count)
        if keys is None:
            return None
        rows += run(_values(order, keys)) if keys else ()
        if len(keys) < count:
            break
        more = 2 * max(more, wanted - len(rows))  # most candidates are rows, but in some lists hardly any
        start, count = keys[-1] + "\0", min(more, MAX_CANDIDATES)
    page, key_of = rows[place.given : place.given + size], _keys(order, columns)
    if len(rows) < wanted:
        return page, None
    following = key_of(rows[wanted - 1])
    return page, PagePosition(following, sum(key_of(row) == following for row in rows[: wanted - 1]))


def _values(order: ListOrder, keys: Iterable[str]) -> str:
    """Return the SPARQL that restricts the query to the candidates of *keys*."""
    if order.pairs:
        rows = " ".join(f"({_pair(key)})" for key in keys)
        return f"VALUES ({' '.join(f'?{name}' for name in order.pairs)}) {{ {rows} }}"
    if order.time is None:
        return f"VALUES ?{order.variable} {{ {' '.join(map(iri, keys))} }}"
    parts = (key_parts(key, order.newest_first) for key in keys)
    pairs = " ".join(f"({moment_term(moment)} {iri(item)})" for moment, item in parts)
    return f"VALUES (?{order.time} ?{order.variable}) {{ {pairs} }}"


def _pair(key: str) -> str:
    """Return the key of a disagreement as SPARQL terms: both memories and the kind.

    >>> _pair("urn:a urn:b duplicate")
    '<urn:a> <urn:b> "duplicate"'
    """
    *items, kind = key.split(" ")
    return " ".join([*map(iri, items), literal(kind)])


def _keys(order: ListOrder, columns: Sequence[str]) -> Callable[[Row], str]:
    """Return the function that returns the key of a row."""
    if order.pairs:
        places = [columns.index(name) for name in order.pairs]
        return lambda row: " ".join(plain_value(row[place] or "") for place in places)
    at = columns.index(order.variable)
    when = columns.index(order.time) if order.time else at

    def key_of(row: Row) -> str:
        item = (row[at] or "")[1:-1]
        if order.time is None:
            return item
        moment = UNDATED if row[when] is None else ticks(row[when] or "") or 0
        return timed(moment, item, order.newest_first)

    return key_of


#: How many pages the cache holds, and how many rows the longest of them may have.
CACHED_PAGES, LONGEST_CACHED_PAGE = 256, 200


class Page(NamedTuple):
    """Some rows of an answer, and the cursor of the next page; None after the last row."""

    rows: list[dict[str, Any]]
    cursor: str | None


class Cursor(NamedTuple):
    """The start of the next page: the moment that all pages show (a term), the offset, and the question's fingerprint.

    `place` is the start in a list that the projection orders. `valid_at` is the moment at which memories have to be
    valid, where the list judges validity: a term, or empty.
    """

    as_of: Term
    offset: int
    question: str
    place: PagePosition = PagePosition()
    valid_at: Term = ""

    def __str__(self) -> str:
        """Return the cursor as opaque text."""
        place = self.place
        body = json.dumps([self.as_of, self.offset, self.question, place.key, place.given, self.valid_at]).encode()
        return urlsafe_b64encode(_digest(body) + body).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str, question: str) -> Cursor:
        """Return the cursor in *text*; raises InvalidRequest when it is damaged or belongs to another question."""
        try:
            raw = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
            as_of, offset, fingerprint, key, given, valid_at = json.loads(raw[_SIZE:])
            moments = [as_of, valid_at] if valid_at else [as_of]
            is_valid = (
                _digest(raw[_SIZE:]) == raw[:_SIZE]
                and [to_term(plain_value(each), "dateTime", "cursor") for each in moments] == moments
                and all(type(each) is int and 0 <= each < _MOST_OFFSET for each in (offset, given))
                and key.encode() is not None  # raises UnicodeEncodeError for half of a surrogate pair
            )
        except (AttributeError, TypeError, ValueError, RecursionError, InvalidRequest):
            is_valid = False
        if not is_valid:
            raise InvalidRequest("the cursor is damaged", hint="use the cursor of the page before, or leave it out")
        if fingerprint != question:
            raise InvalidRequest(
                "the cursor belongs to another question",
                hint="repeat the name, the project and every parameter of the first page",
            )
        return cls(as_of, offset, question, PagePosition(key, given), valid_at)


def is_in_order(cursor: str) -> bool:
    """Return whether the page after that of *cursor*, one of a page just read, is read without the rows before it."""
    key: str = json.loads(urlsafe_b64decode(f"{cursor}==")[_SIZE:])[3]
    return key != ""


class PageCache:
    """The pages read last, each valid until the state it was read from changes."""

    def __init__(self) -> None:
        self._pages = BoundedDict[object, tuple[object, Page]](CACHED_PAGES)
        self._lock = Lock()

    def page(self, key: object, state: object, read: Callable[[], Page]) -> Page:
        """Return the page of *key* in *state*, from the cache or by `read()`."""
        with self._lock:
            cached_state, page = self._pages.get(key, (None, None))
        if page is None or cached_state != state:
            page = read()
            with self._lock:
                self._pages[key] = state, page
        return Page([dict(row) for row in page.rows], page.cursor)


_SIZE, _MOST_OFFSET = 8, 1 << 48


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SIZE).digest()


def fingerprint(query: NamedQuery, project: str, bindings: Mapping[str, Term]) -> str:
    """Return the digest of a question: of the query, the project and every parameter."""
    return _digest(json.dumps([query.text, project, sorted(bindings.items())]).encode()).hex()


#: The most rows of a page: a greater limit asks for all.
_MOST_ROWS = 10**9


def page_size(limit: object) -> int:
    """Return *limit*, at most _MOST_ROWS; raises InvalidRequest unless it is a positive whole number."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidRequest(
            f"limit={limit!r:.200} is not a positive whole number", hint="give limit=50, or leave it out"
        )
    return min(limit, _MOST_ROWS)


def first_moment(bindings: Mapping[str, Term], newest: str) -> Term:
    """Return the moment that all pages show: `asOf`, at most that of the *newest* commit, as others may follow."""
    as_of = bindings.get("asOf", to_term(FOREVER, "dateTime", "asOf"))
    return min(as_of, to_term(newest, "dateTime", "asOf")) if newest else as_of


#: Runs the SELECT of a project, its variables bound to terms, in another process.
QueryRunner = Callable[[str, str, Mapping[str, Term]], Solutions]


class Lists:
    """The rows of named queries with bound parameters, in an index that has caught up already."""

    def __init__(
        self,
        index: OxigraphIndex,
        playbook: Playbook,
        texts: Callable[[], Texts] | None,
        runner: QueryRunner | None,
        remote: RemoteIndex | None,
    ) -> None:
        """Read from *index*, or from *remote* the queries it can answer; *runner* runs the queries that a root brings.

        The projection in the search files of *texts* orders lists and has the disagreements; without it the engine
        sorts.
        """
        self._index, self._playbook = index, playbook
        self._texts = texts
        self._cached_pages = PageCache()
        #: The nodes recorded between two watermarks of a project: that of its search file, and that of the index.
        self._recorded: dict[str, tuple[Watermark, Watermark, list[Term]]] = {}
        self._runner = runner or self._in_this_process
        self._remote = remote

    def whole(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], start: Cursor | None = None) -> Rows:
        """Return all rows from *start* on."""
        order = query.list_order
        if order is not None and (order.pairs or (order.is_of_commits and "agent" in bindings)):
            page = self._ordered_page(query, project, bindings, maxsize, start.place if start else PagePosition())
            if page or order.pairs:
                return page[0] if page else []
        rows = self._by_file(query, project, bindings, start.offset if start else 0, None)
        if rows is not None:
            return rows
        text = self._text(query, project, bindings) + (f"\nOFFSET {start.offset:d}" if start else "")
        return _valued(query, self.terms(query, project, bindings, text))

    def disagreements(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], items: Collection[str]
    ) -> Rows:
        """Return the rows of *query*, which lists pairs of memories, that contain one of *items*."""
        page = self._ordered_page(query, project, bindings, maxsize, PagePosition(), items) if items else None
        return page[0] if page else []

    def page(
        self,
        query: NamedQuery,
        project: str,
        bindings: Mapping[str, Term],
        limit: int | None,
        start: Cursor,
        before_batch: Callable[[], None] | None = None,
    ) -> Page:
        """Return up to *limit* rows from *start* on, all by default; raises InvalidRequest for an invalid limit.

        An error of *before_batch*, called before each batch of an ordered list is read, ends the read.
        """
        if limit is None:
            return Page(self.whole(query, project, bindings, start), None)
        size = page_size(limit)
        read = partial(self._read, query, project, bindings, size, start, before_batch)
        if size > LONGEST_CACHED_PAGE or not query.is_steady:
            return read()
        state = (self._index.generation, self._index.ontology, *map(self._index.mark, graphs_of(project)))
        return self._cached_pages.page((start, size), state, read)

    def newest(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], count: int, also: Collection[str] = ()
    ) -> tuple[Rows, bool]:
        """Return the rows about the *count* memories of a list recorded last, and about those of *also* in it.

        The second value is whether the list has more. Where only the engine orders it, these are its first rows.
        """
        keys = self._candidates(query, project, bindings, "", False, maxsize)
        if keys is not None and len(keys) > count:
            listed, names, start, timeline = {*keys}, dict[str, None](), "", self._playbook.get("timeline")
            while len(names) < count and (
                batch := self._candidates(timeline, project, bindings, start, False, MAX_CANDIDATES)
            ):
                recorded = (key_parts(key, newest_first=True)[1] for key in batch)
                names |= dict.fromkeys(name for name in recorded if name in listed)
                start = batch[-1] + "\0"
            names = dict.fromkeys([*islice(names, count), *(name for name in also if name in listed)])
            return self._among(query, project, bindings, [*names]), len(names) < len(keys)
        if keys is not None:
            return self._among(query, project, bindings, keys), False
        text = self._text(query, project, bindings)
        rows = _valued(query, self.terms(query, project, bindings, f"{text}\nLIMIT {count + 1:d}"))
        return rows[:count], len(rows) > count

    def longest_due(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], count: int) -> Rows:
        """Return the rows of *query* about at least the *count* memories of its list that are longest due.

        Those about memories whose date only the query knows are always among them.
        """
        order, size = query.list_order, count
        never = {**bindings, "validAt": moment_term(0)}
        undated = self._candidates(query, project, never, "", False, maxsize)
        while order is not None and undated is not None:
            keys = self._candidates(query, project, bindings, "", False, len(undated) + size, by_due=True) or []
            rows = self._among(query, project, bindings, keys)
            if len(keys) < len(undated) + size:
                return rows
            terms = (self._index.triples(graph_iri(project), iri(keys[-1]), name) for name in order.due_properties)
            last = min((str(to_value(at)) for triples in terms for _, _, at in triples), default="")
            if len({row["item"] for row in rows if row["due"] and str(row["due"]) < last}) >= count:
                return rows
            size *= 2
        return self.whole(query, project, bindings)

    def _among(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], keys: Sequence[str]) -> Rows:
        order = query.list_order
        assert order is not None
        batches = (keys[at : at + MAX_CANDIDATES] for at in range(0, len(keys), MAX_CANDIDATES))
        texts = (query.among(_values(order, batch)) for batch in batches)
        return [row for text in texts for row in _valued(query, self.terms(query, project, bindings, text))]

    def over(self, query: NamedQuery, project: str) -> list[str] | None:
        """Return the keys of all candidates of *query*, at any moment; None where only the engine has them."""
        bindings = {"asOf": to_term(FOREVER, "dateTime", "as_of")}
        return self._candidates(query, project, bindings, "", True, maxsize)

    def ids(self, project: str, signs: str, most: int) -> list[str]:
        """Return up to *most* memories of *project* whose id begins or ends with *signs*, sorted."""
        present = self._lagging_ids(project, signs, most)
        if present is not None:
            return present
        return self._projected(project, lambda file: file.projection.by_short_id(signs, most)) or []

    def ids_soon(self, project: str, signs: str, most: int) -> list[str]:
        """Return the same, but none while a large search file is being built."""
        present = self._lagging_ids(project, signs, most)
        if present is not None or self._texts is None:
            return present or []
        with suppress(Busy):
            texts, stream = self._texts(), Stream(project)
            return texts.read_soon(stream, lambda file: file.projection.by_short_id(signs, most), catches_up=False)
        return []

    def _lagging_ids(self, project: str, signs: str, most: int) -> list[str] | None:
        """Return the same by a search file that may lack commits, and by the index for these; None if many lack."""
        if self._texts is None:
            return None
        graph, of = graph_iri(project), iri(f"{BASE}projects/{project}")

        def read(file: SearchIndexReader) -> tuple[list[str] | None]:
            if (new := self._unread(project, file.mark or Watermark())) is None:
                return (None,)
            fitting = [node for node in new if _has_id(plain_value(node), signs)]
            own = [plain_value(node) for node in fitting if any(self._index.triples(graph, node, _OF, of))]
            return (sorted({*own, *file.projection.by_short_id(signs, most)})[:most],)

        answer = self._texts().read_lagging(Stream(project), read, range(maxsize), MAX_LACKING)
        return answer[0] if answer is not None else None

    def _unread(self, project: str, start: Watermark) -> list[Term] | None:
        """Return the nodes recorded after *start*; None if they are unknown."""
        graph = graph_iri(project)
        mark, (first, last, nodes) = self._index.mark(graph), self._recorded.get(project, (start, start, []))
        if first != start or last.commits > mark.commits:
            last, nodes = start, []
        more = recorded_between(self._index, graph, last, mark) if mark.commits > last.commits else []
        if more is None:
            return None
        nodes = [*nodes, *more]
        self._recorded[project] = start, mark, nodes
        return nodes

    def terms(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], text: str
    ) -> list[tuple[Term | None, ...]]:
        """Return the columns of the rows of *text*: the text of the query, perhaps with a restriction or a window."""
        known = {name: term for name, term in bindings.items() if query.takes(name)}
        if query.is_isolated:
            answer = self._runner(project, text, known)
        else:
            index = self._remote if self._remote is not None and self._remote.answers(query.name) else self._index
            result = index.query(text, graphs=graphs_of(project), bindings=known)
            assert isinstance(result, Solutions)
            answer = result
        places = [answer.variables.index(column) for column in query.columns]
        return [tuple(row[at] for at in places) for row in answer.rows]

    def _in_this_process(self, project: str, text: str, bindings: Mapping[str, Term]) -> Solutions:
        """Return the solutions of a SELECT that a root brings, where there are no worker processes."""
        index = self._remote if self._remote is not None and self._remote.answers(None) else self._index
        solutions = index.query(text, graphs=graphs_of(project), bindings=bindings)
        assert isinstance(solutions, Solutions)
        return solutions

    def _read(
        self,
        query: NamedQuery,
        project: str,
        bindings: Mapping[str, Term],
        size: int,
        start: Cursor,
        before_batch: Callable[[], None] | None,
    ) -> Page:
        offset = start.offset + size
        sorted_before = start.offset > 0 and start.place == PagePosition()
        ordered = (
            None
            if sorted_before
            else self._ordered_page(query, project, bindings, size, start.place, before_batch=before_batch)
        )
        if ordered is not None:
            page, place = ordered
            return Page(page, None if place is None else str(start._replace(offset=offset, place=place)))
        rows = self._by_file(query, project, bindings, start.offset, offset + 1)
        if rows is None:
            text = f"{self._text(query, project, bindings)}\nLIMIT {size + 1:d} OFFSET {start.offset:d}"
            rows = _valued(query, self.terms(query, project, bindings, text))
        further = start._replace(offset=offset) if len(rows) > size else None
        return Page(rows[:size], str(further) if further else None)

    def _by_file(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], start: int, end: int | None
    ) -> Rows | None:
        """Return the rows from *start* to *end* of a query that the search file answers, if in part; else None."""
        if is_counted(query):
            return self._counted(query, project, bindings, start, end)
        rows = self._with_last(query, project, bindings, end)
        return None if rows is None else _valued(query, rows[start:end])

    def _counted(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], start: int, end: int | None
    ) -> Rows | None:
        """Return the rows of a query by the tallies; None where only the engine has them, or a large file is built."""
        with suppress(Busy):
            use = partial(self._counted_by, query, project, bindings, start, end)
            return None if self._texts is None else self._texts().read_soon(Stream(project), use, catches_up=False)
        return None

    def counted_at_once(self, query: NamedQuery, project: str, bindings: Mapping[str, Term]) -> Rows | None:
        """Return the rows of a query that the tallies answer; None without an up-to-date search file."""
        if not is_counted(query):
            return None
        return self._read_at_once(project, partial(self._counted_by, query, project, bindings, 0, None))

    def _counted_by(
        self,
        query: NamedQuery,
        project: str,
        bindings: Mapping[str, Term],
        start: int,
        end: int | None,
        file: SearchIndexReader,
    ) -> Rows | None:
        rows = counted_rows(query, file.tallies, self._index, project, bindings)
        return None if rows is None else _valued(query, islice(rows, start, end))

    def _with_last(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], end: int | None
    ) -> list[Row] | None:
        """Return the first *end* rows, all by default, of a query with nodes whose rows come last.

        As many nodes are inserted as give enough rows. None without an up-to-date list of them: the engine finds them.
        """
        order = query.last
        if order is None or (moment := ticks(bindings["asOf"])) is None:
            return None
        inactive, count = bindings.get("includeInactive") == boolean(True), end or maxsize
        while True:
            keys = self._last_nodes(project, order, moment, inactive, count)
            if keys is None:
                return None
            text = query.among(_values(order, keys)) + ("" if end is None else f"\nLIMIT {end:d}")
            rows = self.terms(query, project, bindings, text)
            if len(rows) == end or len(keys) < count:
                return rows
            count *= 2

    def _last_nodes(self, project: str, order: ListOrder, moment: int, inactive: bool, count: int) -> list[str] | None:
        """Return the first *count* nodes whose rows come last; None without an up-to-date search file."""
        return self._read_at_once(project, lambda file: file.projection.page(order, "", moment, inactive, count))

    def _text(self, query: NamedQuery, project: str, bindings: Mapping[str, Term]) -> str:
        """Return the text of *query* with its values, or restricted to the memories with the text that it names."""
        condition, order = query.contains, query.list_order
        text = query.text if self._remote is not None else query.with_values(bindings)
        if condition is None or order is None:
            return text
        wanted = plain_value(bindings[condition.parameter])
        items = self._projected(project, lambda file: file.projection.containing(order, wanted))
        if items is None or not all(map(WRITABLE.fullmatch, items)):
            return text
        return query.among(f"VALUES ?{condition.variable} {{ {' '.join(items)} }}")

    def _ordered_page(
        self,
        query: NamedQuery,
        project: str,
        bindings: Mapping[str, Term],
        size: int,
        place: PagePosition,
        among: Collection[str] | None = None,
        before_batch: Callable[[], None] | None = None,
    ) -> tuple[Rows, PagePosition | None] | None:
        """Return a page of a list that the projection orders, and the place of the next one; None for another list.

        A list of pairs can be restricted to those with a memory *among* these.
        """
        order = query.list_order
        if order is None:
            return None
        inactive = not query.takes("includeInactive") or bindings["includeInactive"] == boolean(True)
        requested = self._requested_keys(query, project, bindings, order) if order.is_requested else None
        if order.is_requested and requested is None:
            return None

        def candidates(key: str, count: int) -> list[str] | None:
            if order.pairs and "item" in bindings:
                return [each for each in self._rivals(project, bindings["item"]) if each >= key][:count]
            if requested is not None:
                return requested[(at := bisect_left(requested, key)) : at + count]
            return self._candidates(query, project, bindings, key, inactive, count, among)

        def run(values: str) -> Iterable[tuple[Term | None, ...]]:
            if before_batch is not None:
                before_batch()
            return self.terms(query, project, bindings, query.among(values))

        page = fetch_page(order, query.columns, place, size, candidates, run)
        return None if page is None else (_valued(query, page[0]), page[1])

    def _candidates(
        self,
        query: NamedQuery,
        project: str,
        bindings: Mapping[str, Term],
        start: str,
        inactive: bool,
        count: int,
        among: Collection[str] | None = None,
        by_due: bool = False,
    ) -> list[str] | None:
        """Return up to *count* keys of a list from *start* on; None where only the engine can order it."""
        order, moment = query.list_order, ticks(bindings["asOf"])
        if order is None or moment is None:
            return None
        if order.pairs:
            return self._projected(project, lambda file: file.projection.pairs(start, moment, count, among))
        if order.is_of_commits:
            agent = plain_value(bindings["agent"]) if "agent" in bindings else None
            return self._projected(project, lambda file: file.commits.page(start, moment, count, agent))
        if order.is_of_changes:
            recorded, since = self._playbook.get("timeline").list_order, ticks(bindings["since"])
            if recorded is None or since is None:
                return None
            return self._projected(project, lambda file: file.projection.changed(recorded, since, start, moment, count))
        text = plain_value(bindings[query.contains.parameter]) if query.contains else None
        due = ticks(bindings["validAt"]) if order.due and "validAt" in bindings else None
        return self._projected(
            project,
            lambda file: file.projection.page(order, start, moment, inactive, count, text=text, due=due, by_due=by_due),
        )

    def _requested_keys(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], order: ListOrder
    ) -> list[str] | None:
        """Return the sorted keys of the nodes for which a request asks; None where only the engine can order them."""
        asking = query.nodes(bindings)
        rows = () if asking is None else self.terms(asking, project, {}, asking.text)
        with suppress(NotSortable):
            keys = {sort_key(order, node or "", time if order.time else None) for node, time in rows}
            return None if asking is None else sorted(keys)
        return None

    def _rivals(self, project: str, item: Term) -> list[str]:
        """Return the keys of the disagreements of *item* at any time, those with proposals included."""
        recorded = self._projected(project, lambda file: file.projection.rivals(plain_value(item))) or []
        return sorted({*recorded, *opposing_keys(IndexedProject(self._index, project), item)})

    def _projected(self, project: str, use: Callable[[SearchIndexReader], T]) -> T | None:
        """Return `use(file)` for the search file of *project*, which has caught up with the index; None without one."""
        if self._texts is None:
            return None
        return self._texts().read(Stream(project), use, catches_up=False)

    def _read_at_once(self, project: str, use: Callable[[SearchIndexReader], T | None]) -> T | None:
        """Return `use(file)` for the search file of *project*; None without one, or if much is to be added first."""
        return None if self._texts is None else self._texts().read_lagging(Stream(project), use, (), MAX_CANDIDATES)


def _has_id(item: str, signs: str) -> bool:
    """Return whether the id of *item*, or the short id, begins or ends with *signs* as `Projection.by_short_id` has it.

    >>> [_has_id("urn:x:12-abcdefgh", signs) for signs in ("12", "abc", "gh", "2-", "")]
    [True, True, True, False, False]
    """
    name = ID_START.split(item)[-1]
    return signs != "" and (name.startswith(signs) or name.endswith(signs) or name[-SHORT_ID_CHARS:].startswith(signs))


def _valued(query: NamedQuery, rows: Iterable[tuple[Term | None, ...]]) -> Rows:
    return [dict(zip(query.columns, map(to_value, row), strict=True)) for row in rows]


def _by_status(tallies: Tallies, kinds: Collection[str], moment: int, valid_at: int | None) -> Iterator[Row]:
    for kind, status, number in tallies.by_status(kinds, moment, valid_at):
        yield iri(kind), literal(status), integer(number)


def _by_agent(tallies: Tallies, kinds: Collection[str], moment: int, valid_at: int | None) -> Iterator[Row]:
    for agent, kind, number, first, last in tallies.by_agent(kinds, moment, valid_at):
        yield iri(agent), iri(kind), integer(number), moment_term(first), moment_term(last)


#: Named query -> its question in the tallies, and the function that returns its rows, each with all its columns.
_ROWS: Mapping[str, tuple[str, Callable[[Tallies, Collection[str], int, int | None], Iterator[Row]]]] = {
    "counts": (BY_STATUS, _by_status),
    "agent-activity": (BY_AGENT, _by_agent),
}


def is_counted(query: NamedQuery) -> bool:
    """Return whether the tallies answer *query*: one of the playbook's own that counts memories."""
    return query.name in _ROWS and not query.is_isolated


def counted_rows(
    query: NamedQuery, tallies: Tallies, index: OxigraphIndex, project: str, bindings: Mapping[str, Term]
) -> Iterator[Row] | None:
    """Return the rows of *query*; None where only the engine has them.

    That is so if a memory has a value of another form than the writer gives, or is in another graph of *project*.
    """
    question, of = _ROWS[query.name]
    moment, valid_at = ticks(bindings["asOf"]), bindings.get("validAt")
    others = [graph for graph in graphs_of(project) if graph != graph_iri(project)]
    is_elsewhere = any(
        any(index.triples(graph, None, name, most=1)) for graph in others for name in COUNTED_BY[question]
    )
    if moment is None or is_elsewhere or not tallies.has_all():
        return None
    kinds = {*map(plain_value, IndexedProject(index, project).subclasses(jido("MemoryItem")))}
    return of(tallies, kinds, moment, None if valid_at is None else ticks(valid_at))
