"""Listings kept on disk beside the index, so that a process that just started need not make them.

The listings of an index, made when first asked for and kept level with what is applied.
"""

from __future__ import annotations

import json
import shutil
import sys
from array import array
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from threading import Lock

from jidomem.base import files
from jidomem.base.json_values import decode_json
from jidomem.index.disagreements import (
    ASSERTED,
    FOREVER,
    MANY,
    NEVER,
    RECORDED,
    STATUS,
    UNDATED,
    WRITABLE,
    ConflictFinder,
    IndexQueries,
    KeyListing,
    Pair,
    ValidityEnds,
    ValidityInterval,
    ticks,
    timed,
    valid_since,
)
from jidomem.index.results import Watermark
from jidomem.index.store import OxigraphIndex
from jidomem.journal.commit import Commit
from jidomem.journal.disk import create_local_marker, local_marker
from jidomem.journal.journal import FileJournal
from jidomem.rdf.terms import Term, Triple, date_time, iri, plain_value
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, RDFS
from jidomem.records.named_query import FOREVER as ENDLESS
from jidomem.records.named_query import ListOrder

#: How a listing is written: one of another form is not read.
FORM = f"3 {sys.byteorder}"
#: After so many commits a listing is made anew sooner than brought level.
FEWEST_CACHED_ROWS = 16_000
_LONGEST = 16 * 1024 * 1024


class ListCache:
    """The listings in one folder, which is made when it is needed; one that does not fit any more is not read.

    Nor is one that came with a clone.
    """

    def __init__(self, folder: Path, journal: FileJournal) -> None:
        """Read and write in *folder*; *journal* tells what is new since a listing was kept."""
        self._folder = folder
        self._journal = journal

    def keep(
        self, course: ListOrder, graphs: Sequence[str], ontology: str, marks: Iterable[Watermark], listing: KeyListing
    ) -> None:
        """Write a listing that holds at least what the graphs hold at *marks*; where that fails, nothing is kept."""
        rows = list(listing.rows())
        keys = "\n".join(key for key, _, _ in rows).encode()
        since, until = array("q", (row[1] for row in rows)), array("q", (row[2] for row in rows))
        body = b"".join([keys, b"\n", since.tobytes(), until.tobytes()])
        said = {
            "form": FORM,
            "here": "",
            "ontology": ontology,
            "marks": [mark.term for mark in marks],
            "keys": len(keys),
            "rows": len(rows),
        }
        path = self._path(course, graphs)
        draft = path.with_name(f"{path.name}.{token_hex(4)}")
        with suppress(OSError):
            files.make_folders(self._folder)
            said["here"] = create_local_marker(self._folder.parent)
            whole = json.dumps(said).encode() + b"\n" + body
            files.write_file(draft, blake2b(whole).digest() + whole)
            draft.replace(path)

    def find(
        self, course: ListOrder, graphs: Sequence[str], ontology: str, marks: Sequence[Watermark]
    ) -> tuple[KeyListing, list[Triple]] | None:
        """Return a listing and all that was said since it was kept, up to *marks* at least; None unless one fits."""
        try:
            with self._path(course, graphs).open("rb") as file:
                digest, head = file.read(64), file.readline(_LONGEST)
                said = decode_json(head)
                here = local_marker(self._folder.parent)
                if not here or (said["form"], said["here"], said["ontology"]) != (FORM, here, ontology):
                    return None
                body = file.read()
            if digest != blake2b(head + body).digest():
                return None
            kept = [Watermark.of(term) for term in said["marks"]]
            keys, numbers = body[: said["keys"]].decode().split("\n"), array("q", body[said["keys"] + 1 :])
            count = int(said["rows"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        news: list[Triple] = []
        for graph, then, now in zip(graphs, kept, marks, strict=True):
            commits = self._since(graph, then, now)
            if commits is None:
                return None
            news += (triple for commit in commits for triple in commit.triples)
        return KeyListing(zip(keys, numbers[:count], numbers[count:], strict=True) if count else ()), news

    def discard(self) -> None:
        """Throw every listing away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _since(self, graph: str, then: Watermark, now: Watermark) -> Sequence[Commit] | None:
        """Return the commits after *then*, up to *now* at least; None unless *now* is *then* and what came after it.

        It is not where another branch was checked out, a stream was cleared or what was damaged is there again.
        """
        if then == now:
            return ()
        streams = [stream for stream in self._journal.streams() if stream.graph == graph]
        if not streams or then.cleared != now.cleared or now.commits - then.commits not in range(FEWEST_CACHED_ROWS):
            return None
        if not all(self._journal.holds(streams[0], mark.version) for mark in (then, now)):
            return None
        found = list(self._journal.read(streams[0], after=then.version))
        later = {commit.id for commit in self._journal.read(streams[0], after=now.version)}  # maybe more by now
        known = sum(1 for commit in found if commit.id not in later)
        return found if known == now.commits - then.commits else None

    def _path(self, course: ListOrder, graphs: Sequence[str]) -> Path:
        pattern = course.pattern + course.unless
        name: list[Term | bool | None] = [course.variable, course.time, course.newest_first, pattern]
        return self._folder / blake2b(json.dumps([name, course.prologue, *graphs]).encode(), digest_size=16).hexdigest()


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


class NotSortable(Exception):
    """A member cannot be put in order here, so the engine must."""


class _DerivedCache:
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


class _ValidityCache(_DerivedCache):
    """The fates of all items; None before they are looked up.

    The ontology is left out: every further graph costs a look-up for each pattern, and what is missing here only makes
    a listing longer.
    """

    def __init__(self, graphs: Sequence[str]) -> None:
        super().__init__(graph for graph in graphs if graph != ONTOLOGY_GRAPH)
        self.fates: ValidityEnds | None = None


class _Listed(_DerivedCache):
    """The listing of one course over some graphs; `listing` is None before it is made.

    One of the pairs that disagree now has all that did at any moment since `back_to`.
    """

    def __init__(self, graphs: Sequence[str], course: ListOrder) -> None:
        super().__init__(graphs)
        self.course = course
        self.listing: KeyListing | None = None
        self.was_asked = False
        self.unlistable = False
        self.back_to = 0


class OrderedLists:
    """The candidates of list queries: never too few, where what is in the index is asked as of a moment."""

    def __init__(self, index: OxigraphIndex, shelved: ListCache | None = None) -> None:
        """List what is in *index*; long listings are kept in *shelved*, where there is such a place."""
        self._index = index
        self._asked = IndexQueries(index)
        self._rivals = ConflictFinder(self._asked)
        self._shelved = shelved
        self._kept: dict[object, _DerivedCache] = {}
        self._changes: Counter[str] = Counter()
        self._lock = Lock()
        index.observers.append(self)

    def candidates(
        self, course: ListOrder, graphs: Sequence[str], *, start: str, moment: Term, inactive: bool, count: int
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
            except NotSortable:
                listed.unlistable = True
                return None

    def keep(self, courses: Iterable[ListOrder], graphs: Sequence[str]) -> None:
        """Make the listings of *courses* ready and keep them, for the processes to come, where they are long."""
        if self._shelved is None or not self._are_many(graphs):
            return
        self._forget(graphs)  # what is ready already would not be kept
        for course in courses:
            listed = self._listed(course, graphs)
            with listed.lock, suppress(NotSortable):
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

    def _listed(self, course: ListOrder, graphs: Sequence[str]) -> _Listed:
        with self._lock:
            kept = self._kept.setdefault((course, *graphs), _Listed(graphs, course))
        assert isinstance(kept, _Listed)
        return kept

    def _level(self, listed: _Listed) -> KeyListing:
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
            listing = KeyListing(self._made(listed))
        elif new:
            for row in self._renewed(listed, new | self._asked.ended(listed.graphs, new)):
                listing.put(*row)
        if is_old and self._shelved is not None and self._are_many(listed.graphs):
            self._keep(listed, marks, listing)
        listed.listing = listing
        return listing

    def disagreeing(self, graphs: Sequence[str], item: Term) -> list[str]:
        """Return the keys of what *item* disagrees with: what, and how."""
        return [f"{plain_value(other)} {kind}" for other, kind in self._rivals.of(graphs, item)]

    def _newest(self, graphs: Sequence[str]) -> int:
        """Return the moment after which nothing is recorded in *graphs*, as far as the journal says."""
        known = [mark.version.recorded_at for mark in map(self._index.mark, graphs) if mark.commits]
        return max((ticks(date_time(moment)) or FOREVER for moment in known), default=ticks(date_time(ENDLESS)) or 0)

    def _are_many(self, graphs: Sequence[str]) -> bool:
        """Return whether the graphs hold more than a FEW memories, of which no more are counted."""
        text = f"SELECT (COUNT(*) AS ?count) WHERE {{ SELECT ?item {{ ?item {STATUS} {ASSERTED} }} LIMIT {FEW} }}"
        return self._asked.count(graphs, text) >= FEW

    def _keep(self, listed: _Listed, marks: Sequence[Watermark], listing: KeyListing) -> None:
        """Keep a listing for the processes to come, unless the index has become another while it was made."""
        with self._lock:
            is_it = self._kept.get((listed.course, *listed.graphs)) is listed
        if is_it and self._shelved is not None:
            self._shelved.keep(listed.course, listed.graphs, self._index.ontology, marks, listing)

    def _found(self, listed: _Listed, marks: Sequence[Watermark]) -> tuple[KeyListing | None, set[Term]]:
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
        fates = self._asked.look_up(listed.graphs, ValidityEnds(), {item for _, item in members.values()})
        return self._fated(listed, fates, members)

    def _renewed(self, listed: _Listed, items: set[Term]) -> Iterable[tuple[str, int, int]]:
        """Return the rows of the members among *items*, or of which one is."""
        course = listed.course
        if course.pairs:
            return _keyed(self._rivals.among(listed.graphs, items))
        if course.unless:
            items = items | self._asked.pointed_at(listed.graphs, course, items)
        fates = self._asked.look_up(listed.graphs, ValidityEnds(), items)
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
        self, listed: _Listed, fates: ValidityEnds, members: Mapping[str, tuple[int, Term]]
    ) -> Iterable[tuple[str, int, int]]:
        """Yield key, since and until of each of *members*: until it is taken out for good, where something can."""
        course, pointing = listed.course, dict[Term, list[ValidityInterval]]()
        if course.unless:
            pointing = self._asked.pointing(listed.graphs, course, {item for _, item in members.values()})
        for key, (known, item) in members.items():
            hidden = (item in fates.proposed or item in fates.unaccepted) and not course.proposals
            yield key, known, NEVER if hidden else valid_since(pointing.get(item, ()), fates.until.get(item, FOREVER))

    def _fates(self, graphs: Sequence[str]) -> ValidityEnds:
        """Return the fates of all items, level; the listings of the same graphs share them."""
        with self._lock:
            kept = self._kept.setdefault(("fates", *graphs), _ValidityCache(graphs))
        assert isinstance(kept, _ValidityCache)
        with kept.lock:
            new = kept.taken()
            if kept.fates is None:
                kept.fates = self._asked.look_up(kept.graphs, ValidityEnds(), None)
            elif new:
                self._asked.look_up(kept.graphs, kept.fates, new | self._asked.ended(kept.graphs, new))
            return kept.fates


def _key(row: Sequence[Term | None], course: ListOrder) -> str:
    """Return the key of a row; raises Unlistable for one whose place only the engine knows."""
    item = row[0] or ""
    if not WRITABLE.fullmatch(item):
        raise NotSortable(item)
    if course.time is None:
        return item[1:-1]
    moment = UNDATED if row[1] is None else ticks(row[1])
    if moment is None:
        raise NotSortable(row[1])
    return timed(moment, item[1:-1], course.newest_first)


def _ever(course: ListOrder) -> ListOrder:
    """Return the course of all pairs that disagreed at any time, where *course* is that of those that do now."""
    return replace(course, pattern="ever")


def _keyed(pairs: Mapping[Pair, ValidityInterval]) -> Iterable[tuple[str, int, int]]:
    """Yield the key of each pair, and its span."""
    return ((f"{plain_value(a)} {plain_value(b)} {kind}", *span) for (a, b, kind), span in pairs.items())
