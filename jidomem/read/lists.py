"""The list that a named query gives, all of it or a page: walked where its order is kept, else sorted by the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import replace
from functools import partial
from sys import maxsize
from typing import TYPE_CHECKING

from jidomem.index import OxigraphIndex, Solutions
from jidomem.index.listings import Listings
from jidomem.index.shelved import Shelved
from jidomem.query import FOREVER, NamedQuery, to_term
from jidomem.read.functions import Rows
from jidomem.read.pages import LONGEST, Cursor, Page, Shelf, page_size
from jidomem.read.walk import Place, walk
from jidomem.terms import Term, boolean
from jidomem.values import to_value
from jidomem.vocab import graphs_of

if TYPE_CHECKING:  # most processes have none, and load nothing that speaks HTTP
    from jidomem.index.remote_index import RemoteIndex

#: Answers the SELECT of a project, its variables bound to terms, somewhere else.
Apart = Callable[[str, str, Mapping[str, Term]], Solutions]


class Lists:
    """The rows of named queries whose parameters are bound, in an index that is level already."""

    def __init__(
        self, index: OxigraphIndex, shelved: Shelved | None, apart: Apart | None, remote: RemoteIndex | None
    ) -> None:
        """Read from *index*, or from *remote* what it can answer; *apart* answers what came with a root.

        Long lists are kept in *shelved* for the next process.
        """
        self._index = index
        self._listings = Listings(index, shelved)
        self._shelf = Shelf()
        self._apart = apart or self.here
        self._remote = remote

    def whole(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], start: Cursor | None = None) -> Rows:
        """Return all rows from *start* on."""
        if query.course is not None and query.course.pairs:
            page = self._walked(query, project, bindings, maxsize, start.place if start else Place())
            return page[0] if page else []
        return self._rows(query, project, bindings, f"OFFSET {start.offset:d}" if start else "")

    def disagreements(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], items: Collection[str]
    ) -> Rows:
        """Return those rows of *query*, whose rows are pairs of memories, that have one of *items*."""
        page = self._walked(query, project, bindings, maxsize, Place(), {*items})
        return page[0] if page else []

    def page(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], limit: int | None, start: Cursor
    ) -> Page:
        """Return up to *limit* rows from *start* on, all unless given; raises InvalidRequest for what is no number."""
        if limit is None:
            return Page(self.whole(query, project, bindings, start), None)
        size = page_size(limit)
        if size > LONGEST or not query.is_steady:
            return self._read(query, project, bindings, size, start)
        state = self._listings.changes(graphs_of(project))
        return self._shelf.page((start, size), state, partial(self._read, query, project, bindings, size, start))

    def discard(self) -> None:
        """Throw away the lists kept on disk."""
        self._listings.discard()

    def keep(self, queries: Iterable[NamedQuery], project: str) -> None:
        """Keep the lists of *queries* on disk, those of *project* that are long."""
        courses = [query.course for query in queries if query.course and not query.takes("item")]
        self._listings.keep(courses, graphs_of(project))

    def over(self, query: NamedQuery, project: str) -> list[str] | None:
        """Return what the list of *query* goes over, whatever was known when; None where the engine is to find it."""
        moment = to_term(FOREVER, "dateTime", "as_of")
        assert query.course is not None
        return self._listings.candidates(
            query.course, graphs_of(project), start="", moment=moment, inactive=True, count=maxsize
        )

    def terms(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], text: str
    ) -> list[tuple[Term | None, ...]]:
        """Return the columns of the rows of *text*, which is the query's or says more."""
        known = {name: term for name, term in bindings.items() if query.takes(name)}
        found = self._apart(project, text, known) if query.apart else self.here(project, text, known, query.name)
        places = [found.variables.index(column) for column in query.columns]
        return [tuple(row[at] for at in places) for row in found.rows]

    def here(self, project: str, text: str, bindings: Mapping[str, Term], name: str | None = None) -> Solutions:
        """Return what a SELECT finds in this process; *name* is that of the shipped query it belongs to."""
        found = self.answering(name).query(text, graphs=graphs_of(project), bindings=bindings)
        assert isinstance(found, Solutions)
        return found

    def answering(self, name: str | None) -> OxigraphIndex | RemoteIndex:
        """Return what answers the shipped question of that name; without a name, any other question."""
        return self._remote if self._remote is not None and self._remote.answers(name) else self._index

    def _read(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], size: int, start: Cursor) -> Page:
        offset = start.offset + size
        sorted_before = start.offset > 0 and start.place == Place()
        walked = None if sorted_before else self._walked(query, project, bindings, size, start.place)
        if walked is not None:
            rows, place = walked
            return Page(rows, None if place is None else str(replace(start, offset=offset, place=place)))
        rows = self._rows(query, project, bindings, f"LIMIT {size + 1:d} OFFSET {start.offset:d}")
        further = replace(start, offset=offset) if len(rows) > size else None
        return Page(rows[:size], str(further) if further else None)

    def _walked(
        self,
        query: NamedQuery,
        project: str,
        bindings: Mapping[str, Term],
        size: int,
        place: Place,
        among: Set[str] | None = None,
    ) -> tuple[Rows, Place | None] | None:
        """Return a page of a list that need not be sorted to find it; None where it must be.

        Of a list of pairs it is of those alone that have a memory *among* these, where they are given.
        """
        course, graphs = query.course, graphs_of(project)
        if course is None:
            return None
        inactive = not query.takes("includeInactive") or bindings["includeInactive"] == boolean(True)

        def candidates(key: str, count: int) -> list[str] | None:
            if course.pairs and "item" in bindings:
                return [one for one in self._listings.disagreeing(graphs, bindings["item"]) if one >= key][:count]
            most = count if among is None else maxsize
            keys = self._listings.candidates(
                course, graphs, start=key, moment=bindings["asOf"], inactive=inactive, count=most
            )
            if among is None or keys is None:
                return keys
            return [one for one in keys if not among.isdisjoint(one.split(" ")[:2])][:count]

        def judged(values: str) -> Iterable[tuple[Term | None, ...]]:
            return self.terms(query, project, bindings, query.among(values))

        walked = walk(course, query.columns, place, size, candidates, judged)
        return None if walked is None else (_valued(query, walked[0]), walked[1])

    def _rows(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], window: str) -> Rows:
        return _valued(query, self.terms(query, project, bindings, f"{query.text}\n{window}"))


def _valued(query: NamedQuery, rows: Iterable[tuple[Term | None, ...]]) -> Rows:
    return [dict(zip(query.columns, map(to_value, row), strict=True)) for row in rows]
