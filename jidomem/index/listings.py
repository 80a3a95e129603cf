"""The listings of an index, made when first asked for and kept level with what is applied."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from jidomem.index.asked import ASSERTED, MANY, RECORDED, STATUS, WRITABLE, Asked, Fates, Span, held_from
from jidomem.index.document import Mark
from jidomem.index.listing import FOREVER, NEVER, UNDATED, Listing, ticks, timed
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.rivals import Pair, Rivals
from jidomem.index.shelved import Shelved
from jidomem.query import FOREVER as ENDLESS
from jidomem.query import Course
from jidomem.terms import Term, Triple, bare, date_time, iri
from jidomem.vocab import ONTOLOGY_GRAPH, RDFS

#: So many changed nodes cost more to look at again than to start anew.
MOST_NEWS = 20_000
#: So many changed nodes are not to be looked at again by every process: the listing is kept anew.
OLD = 1_000
#: Of so few memories the engine sorts a list sooner than it can be made ready: worth it from the second time on.
FEW = 2_000
_SUBCLASS = iri(RDFS + "subClassOf")
_COMMIT = "<urn:jido:commit:"
_SINCE = f"?{{}} {RECORDED} ?listedSince"
_SINCE_ALL = f"{{{{ SELECT * {{{{ {_SINCE} }}}} }}}}"


class Unlistable(Exception):
    """A member cannot be put in order here, so the engine must."""


class _Kept:
    """Something derived from some graphs, and the nodes it has yet to look at again."""

    def __init__(self, graphs: Iterable[str]) -> None:
        self.graphs = tuple(graphs)
        self.lock = Lock()
        self.news: deque[frozenset[Term]] = deque()
        self.waiting = 0

    def taken(self) -> set[Term]:
        """Return the nodes that are new since the last call."""
        self.waiting = 0
        found: set[Term] = set()
        while self.news:
            found |= self.news.popleft()
        return found


class _KeptFates(_Kept):
    """The fates of all items; None before they are looked up.

    The ontology is left out: every further graph costs a look-up for each pattern, and what is missing here only makes
    a listing longer.
    """

    def __init__(self, graphs: Sequence[str]) -> None:
        super().__init__(graph for graph in graphs if graph != ONTOLOGY_GRAPH)
        self.fates: Fates | None = None


class _Listed(_Kept):
    """The listing of one course over some graphs; `listing` is None before it is made.

    One of the pairs that disagree now has all that did at any moment since `back_to`.
    """

    def __init__(self, graphs: Sequence[str], course: Course) -> None:
        super().__init__(graphs)
        self.course = course
        self.listing: Listing | None = None
        self.was_asked = False
        self.unlistable = False
        self.back_to = 0


class Listings:
    """The candidates of list queries: never too few, where what is in the index is asked as of a moment."""

    def __init__(self, index: OxigraphIndex, shelved: Shelved | None = None) -> None:
        """List what is in *index*; long listings are kept in *shelved*, where there is such a place."""
        self._index = index
        self._asked = Asked(index)
        self._rivals = Rivals(self._asked)
        self._shelved = shelved
        self._kept: dict[object, _Kept] = {}
        self._changes: Counter[str] = Counter()
        self._lock = Lock()
        index.observers.append(self)

    def candidates(
        self, course: Course, graphs: Sequence[str], *, start: str, moment: Term, inactive: bool, count: int
    ) -> list[str] | None:
        """Return up to *count* keys from *start* on; None where the engine is to find them, or only it can."""
        at = ticks(moment)
        listed = self._listed(course, graphs)
        if course.pairs and at is not None and at < (listed.back_to or self._newest(graphs)):
            listed = self._listed(_ever(course), graphs)
        if at is None or listed.unlistable:
            return None
        with listed.lock:
            if not listed.was_asked:
                listed.was_asked = True
                if not (course.pairs or self._are_many(graphs)):
                    return None
            try:
                return self._level(listed).page(start, at, inactive, count)
            except Unlistable:
                listed.unlistable = True
                return None

    def keep(self, courses: Iterable[Course], graphs: Sequence[str]) -> None:
        """Make the listings of *courses* ready and keep them, for the processes to come, where they are long."""
        if self._shelved is None or not self._are_many(graphs):
            return
        self._forget(graphs)  # what is ready already would not be kept
        for course in courses:
            listed = self._listed(course, graphs)
            with listed.lock, suppress(Unlistable):
                self._level(listed)
            with self._lock:
                self._kept.pop((course, *graphs), None)
        self._forget(graphs)

    def _forget(self, graphs: Sequence[str]) -> None:
        for graph in graphs:
            self.reset(graph)

    def discard(self) -> None:
        """Throw the kept listings away."""
        if self._shelved is not None:
            self._shelved.discard()

    def changes(self, graphs: Sequence[str]) -> tuple[int, ...]:
        """Return what is another after every change of one of *graphs*."""
        return tuple(self._changes[graph] for graph in graphs)

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Remember which nodes of *graph* something new is said about."""
        self._changes[graph] += 1
        if not self._kept:
            return
        if any(predicate == _SUBCLASS for _, predicate, _ in triples):
            self.reset(graph)
        subjects = frozenset(subject for subject, _, _ in triples if not subject.startswith(_COMMIT))
        with self._lock:
            for name, kept in list(self._kept.items()):
                if graph in kept.graphs:
                    kept.news.append(subjects)
                    kept.waiting += len(subjects)
                    if kept.waiting > MOST_NEWS:
                        del self._kept[name]

    def reset(self, graph: str) -> None:
        """Forget what is derived from *graph*."""
        self._changes[graph] += 1
        with self._lock:
            self._kept = {name: kept for name, kept in self._kept.items() if graph not in kept.graphs}

    def _listed(self, course: Course, graphs: Sequence[str]) -> _Listed:
        with self._lock:
            kept = self._kept.setdefault((course, *graphs), _Listed(graphs, course))
        assert isinstance(kept, _Listed)
        return kept

    def _level(self, listed: _Listed) -> Listing:
        """Return the listing, made or brought level."""
        new, listing = listed.taken(), listed.listing
        listed.listing = None  # what stops this half way has it made anew
        marks, is_old = [self._index.mark(graph) for graph in listed.graphs], False
        if listing is None:
            listed.back_to = self._newest(listed.graphs)
            listing, news = self._found(listed, marks)
            is_old = listing is None or len(news) > OLD
            new |= news
        if listing is None:
            listing = Listing(self._made(listed))
        elif new:
            for row in self._renewed(listed, new | self._asked.ended(listed.graphs, new)):
                listing.put(*row)
        if is_old and self._shelved is not None and self._are_many(listed.graphs):
            self._keep(listed, marks, listing)
        listed.listing = listing
        return listing

    def disagreeing(self, graphs: Sequence[str], item: Term) -> list[str]:
        """Return the keys of what *item* disagrees with: what, and how."""
        return [f"{bare(other)} {kind}" for other, kind in self._rivals.of(graphs, item)]

    def _newest(self, graphs: Sequence[str]) -> int:
        """Return the moment after which nothing is recorded in *graphs*, as far as the journal says."""
        known = [mark.version.recorded_at for mark in map(self._index.mark, graphs) if mark.commits]
        return max((ticks(date_time(moment)) or FOREVER for moment in known), default=ticks(date_time(ENDLESS)) or 0)

    def _are_many(self, graphs: Sequence[str]) -> bool:
        """Return whether the graphs hold more than a FEW memories, of which no more are counted."""
        text = f"SELECT (COUNT(*) AS ?count) WHERE {{ SELECT ?item {{ ?item {STATUS} {ASSERTED} }} LIMIT {FEW} }}"
        return self._asked.count(graphs, text) >= FEW

    def _keep(self, listed: _Listed, marks: Sequence[Mark], listing: Listing) -> None:
        """Keep a listing for the processes to come, unless the index has become another while it was made."""
        with self._lock:
            is_it = self._kept.get((listed.course, *listed.graphs)) is listed
        if is_it and self._shelved is not None:
            self._shelved.keep(listed.course, listed.graphs, self._index.ontology, marks, listing)

    def _found(self, listed: _Listed, marks: Sequence[Mark]) -> tuple[Listing | None, set[Term]]:
        """Return the listing as it was kept, and the nodes that are new since then; None where it is to be made."""
        course, graphs = listed.course, listed.graphs
        found = self._shelved.find(course, graphs, self._index.ontology, marks) if self._shelved else None
        if found is None or any(predicate == _SUBCLASS for _, predicate, _ in found[1]):
            return None, set()
        news = {subject for subject, _, _ in found[1] if not subject.startswith(_COMMIT)}
        return (found[0], news) if len(news) <= MOST_NEWS else (None, set())

    def _made(self, listed: _Listed) -> Iterable[tuple[str, int, int]]:
        """Return the rows of all members: by scans where they are many, else by a look-up for each."""
        course = listed.course
        if course.pairs:
            return _keyed(self._rivals.all(listed.graphs, ever=course == _ever(course)))
        pattern = since = None
        if course.scan is not None and self._count(listed, course.scan[0]) >= MANY:
            pattern = course.scan[1]
            since = _SINCE_ALL if self._count(listed, pattern) >= MANY else None
        members = self._members(listed, None, pattern or course.pattern, since or _SINCE)
        if len(members) >= MANY or ("fates", *listed.graphs) in self._kept:
            return self._fated(listed, self._fates(listed.graphs), members)
        fates = self._asked.look_up(listed.graphs, Fates(), {item for _, item in members.values()})
        return self._fated(listed, fates, members)

    def _renewed(self, listed: _Listed, items: set[Term]) -> Iterable[tuple[str, int, int]]:
        """Return the rows of the members among *items*, or of which one is."""
        course = listed.course
        if course.pairs:
            return _keyed(self._rivals.among(listed.graphs, items))
        if course.unless:
            items = items | self._asked.pointed_at(listed.graphs, course, items)
        fates = self._asked.look_up(listed.graphs, Fates(), items)
        return self._fated(listed, fates, self._members(listed, items, course.pattern))

    def _count(self, listed: _Listed, pattern: str) -> int:
        text = f"{listed.course.prologue} SELECT (COUNT(*) AS ?count) WHERE {{ {pattern} }}"
        return self._asked.count(listed.graphs, text)

    def _members(
        self, listed: _Listed, only: Iterable[Term] | None, pattern: str, since: str = _SINCE
    ) -> dict[str, tuple[int, Term]]:
        """Return the keys of all members, or of those among *only*: since when each is known, and the node."""
        course, members = listed.course, dict[str, tuple[int, Term]]()
        columns = (course.variable, *((course.time,) if course.time else ()))
        text = (
            f"{course.prologue} SELECT {' '.join(f'?{name}' for name in columns)} ?listedSince "
            f"WHERE {{ %s {pattern} OPTIONAL {{ {since.format(course.variable)} }} }}"
        )
        for row in self._asked.rows(listed.graphs, text, only, course.variable):
            key = _key(row, course)
            known = ticks(row[-1] or "") or 0
            members[key] = (min(known, members.get(key, (known,))[0]), row[0] or "")
        return members

    def _fated(
        self, listed: _Listed, fates: Fates, members: Mapping[str, tuple[int, Term]]
    ) -> Iterable[tuple[str, int, int]]:
        """Yield key, since and until of each of *members*: until it is taken out for good, where something can."""
        course, pointing = listed.course, dict[Term, list[Span]]()
        if course.unless:
            pointing = self._asked.pointing(listed.graphs, course, {item for _, item in members.values()})
        for key, (known, item) in members.items():
            hidden = (item in fates.proposed or item in fates.unaccepted) and not course.proposals
            yield key, known, NEVER if hidden else held_from(pointing.get(item, ()), fates.until.get(item, FOREVER))

    def _fates(self, graphs: Sequence[str]) -> Fates:
        """Return the fates of all items, level; the listings of the same graphs share them."""
        with self._lock:
            kept = self._kept.setdefault(("fates", *graphs), _KeptFates(graphs))
        assert isinstance(kept, _KeptFates)
        with kept.lock:
            new = kept.taken()
            if kept.fates is None:
                kept.fates = self._asked.look_up(kept.graphs, Fates(), None)
            elif new:
                self._asked.look_up(kept.graphs, kept.fates, new | self._asked.ended(kept.graphs, new))
            return kept.fates


def _key(row: Sequence[Term | None], course: Course) -> str:
    """Return the key of a row; raises Unlistable for one whose place only the engine knows."""
    item = row[0] or ""
    if not WRITABLE.fullmatch(item):
        raise Unlistable(item)
    if course.time is None:
        return item[1:-1]
    moment = UNDATED if row[1] is None else ticks(row[1])
    if moment is None:
        raise Unlistable(row[1])
    return timed(moment, item[1:-1], course.newest_first)


def _ever(course: Course) -> Course:
    """Return the course of all pairs that disagreed at any time, where *course* is that of those that do now."""
    return replace(course, pattern="ever")


def _keyed(pairs: Mapping[Pair, Span]) -> Iterable[tuple[str, int, int]]:
    """Yield the key of each pair, and its span."""
    return ((f"{bare(a)} {bare(b)} {kind}", *span) for (a, b, kind), span in pairs.items())
