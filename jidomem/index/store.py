"""The index: an Oxigraph store, in memory or on disk, that holds the commits of many graphs and answers SPARQL.

A watermark says how far each graph reaches; commits that a writer queued are loaded before anything is read. Observers
are notified of each change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from threading import Lock
from typing import Any, Protocol, TypeVar

import pyoxigraph as ox

from jidomem.index import results
from jidomem.index.results import Answer, AnswerLimits, Serialized, malformed, plain
from jidomem.journal.commit import Commit, advance
from jidomem.rdf.terms import Term, Triple, is_iri, literal, ntriples_line, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, JIDO, ONTOLOGY_GRAPH, XSD
from jidomem.records.intent import CommitRef, Version, missing_keys

#: The graph of the marks, and what a mark says of a graph; no query is given that graph.
MARKS = "urn:jidomem:index:marks"
HOLDS = "urn:jidomem:index:holds"
_TOPIC = b"jido:topic "


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a graph reaches: of how many commits it is made, at which version of its stream, and what cleared it.

    Of `cleared`, and of all that came before it, nothing is held.
    """

    commits: int = 0
    version: Version = Version()
    cleared: Version = Version()

    def after(self, commits: Iterable[Commit]) -> Watermark:
        """Return the mark once *commits*, which follow from this one, are in."""
        added = list(commits)
        return Watermark(self.commits + len(added), advance(self.version, added), self.cleared)

    @property
    def term(self) -> Term:
        """Return the mark as a literal."""
        heads, cleared = (
            [(head.recorded_at, head.id, head.position) for head in version.heads]
            for version in (self.version, self.cleared)
        )
        return literal(json.dumps([self.commits, heads, cleared], separators=(",", ":")))

    @classmethod
    def of(cls, term: Term) -> Watermark:
        """Return the mark that a literal says.

        >>> Watermark.of(Watermark().term) == Watermark()
        True
        """
        commits, heads, cleared = json.loads(plain_value(term))
        return cls(commits, *(Version.of(CommitRef(*head) for head in of) for of in (heads, cleared)))


def trig(graph: str, commits: Iterable[Commit], mark: Watermark | None = None) -> bytes:
    """Return *commits*, at least one, in *graph*, with *mark* where it is to be set by the same write.

    A commit's own document is Turtle of one form, its prefixes before the first empty line, so it is put together
    from those as they are; none of its triples passes through Python again. The conflict keys that a commit of an
    earlier version lacks follow it.
    """
    head, bodies = b"", [b"\n<", graph.encode(), b"> {\n"]
    for commit in commits:
        head, _, body = commit.data.partition(b"\n\n")
        bodies.append(body)
        if _TOPIC in body:
            bodies += [f"\n{ntriples_line(triple)}".encode() for triple in missing_keys(commit.triples)]
    mark_graph = f"<{MARKS}> {{ <{graph}> <{HOLDS}> {mark.term} }}\n" if mark else ""
    return b"".join([head, *bodies, b"}\n", mark_graph.encode()])


_TYPED = '"^^<'


def stored_triples(commits: Iterable[Commit]) -> Iterator[Triple]:
    """Yield the triples that *commits* add to a store, their literals as the engine writes them."""
    rows: list[Triple] = []
    for commit in commits:
        rows += commit.triples
        if _TOPIC in commit.data:
            rows += missing_keys(commit.triples)
    typed = [*{value for _, _, value in rows if _TYPED in value}]
    store, about = ox.Store(), ox.NamedNode(HOLDS)
    store.extend([ox.Quad(ox.NamedNode(f"urn:{at}"), about, node(value)) for at, value in enumerate(typed)])
    written = {typed[int(quad.subject.value[4:])]: str(quad.object) for quad in store}
    return ((subject, predicate, written.get(value, value)) for subject, predicate, value in rows)


_STRING = XSD + "string"


def marks(store: Any) -> dict[str, Watermark]:
    """Return how far each graph of a store reaches; of two marks, left by a crash between, the later one counts."""
    reached: dict[str, Watermark] = {}
    for quad in store.quads_for_pattern(None, ox.NamedNode(HOLDS), None, ox.NamedNode(MARKS)):
        if quad.subject.value != ONTOLOGY_GRAPH:
            mark = Watermark.of(str(quad.object))
            if mark.commits >= reached.get(quad.subject.value, mark).commits:
                reached[quad.subject.value] = mark
    return reached


@lru_cache(maxsize=512)  # properties, agents, sessions and graphs are asked about again and again
def named(term: Term) -> Any:
    """Return the pyoxigraph object of an IRI."""
    return ox.NamedNode(plain_value(term))


def node(term: Term) -> Any:
    """Return the pyoxigraph object of a term."""
    if is_iri(term):
        return named(term)
    if term.startswith("_:"):
        return ox.BlankNode(term[2:])
    text, datatype, language = parse_literal(term)
    if language:
        return ox.Literal(text, language=language)
    return ox.Literal(text) if datatype == _STRING else ox.Literal(text, datatype=ox.NamedNode(datatype))


def write_triples(triples: Iterable[Triple], form: str, prefixes: dict[str, str]) -> bytes:
    """Return *triples* as bytes in *form*, one of `results.GRAPH_FORMATS`."""
    rows = (ox.Triple(*map(node, triple)) for triple in triples)
    data = ox.serialize(rows, format=results.GRAPH_FORMATS[form], prefixes=prefixes)
    assert data is not None
    return data


class Observer(Protocol):
    """Something derived from the index that is told of every change, under the index's lock: it must not wait.

    A call comes after the store has changed and before whoever brought the index up to date may read; a reader that
    asked for nothing newer may still see the store ahead of what is derived.
    """

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Take in that *triples*, as the journal writes them, were added to *graph*; some may have been there.

        The store gives some literals back in another form: a moment without the zeros at its end.
        """

    def reset(self, graph: str) -> None:
        """Forget all that is known of *graph*: it has other content now, to be read from the index when needed."""


@lru_cache(maxsize=2)  # a process that opens many roots has one ontology
def written(triples: tuple[Triple, ...]) -> tuple[bytes, str]:
    """Return *triples* as N-Triples, in one order, and their digest."""
    text = "\n".join(sorted(map(ntriples_line, triples))).encode()
    return text, blake2b(text, digest_size=16).hexdigest()


def put(store: Any, text: bytes, digest: str) -> None:
    """Make *text* all that the ontology graph holds, unless *digest* says it is already; the mark is set last."""
    node, holds, marks = ox.NamedNode(ONTOLOGY_GRAPH), ox.NamedNode(HOLDS), ox.NamedNode(MARKS)
    mark = ox.Quad(node, holds, ox.Literal(digest), marks)
    if mark in store:
        return
    others = list(store.quads_for_pattern(node, holds, None, marks))
    for old in others:
        store.remove(old)
    if others:  # in one step: somebody may be asking
        store.update(f"CLEAR SILENT GRAPH {node}; INSERT DATA {{ GRAPH {node} {{ {text.decode()} }} }}")
    else:
        store.clear_graph(node)
        store.load(text, ox.RdfFormat.N_TRIPLES, to_graph=node, lenient=True)
    store.add(mark)


class PendingCommits:
    """The commits that wait, by graph and in order: `commits`, and the `marks` of these graphs once they are in.

    One thread may add while another takes in what came before.
    """

    def __init__(self) -> None:
        self.commits: dict[str, list[Commit]] = {}
        self.marks: dict[str, Watermark] = {}
        self._bytes = 0
        self._lock = Lock()

    def add(self, graph: str, commit: Commit, mark: Callable[[str], Watermark]) -> int:
        """Let *commit* wait, which follows from the *mark* of its graph; return how many bytes wait."""
        with self._lock:
            ahead = mark(graph).after([commit])
            self.commits.setdefault(graph, []).append(commit)  # first: what is marked is there, or waits
            self.marks[graph] = ahead
            self._bytes += len(commit.data)
            return self._bytes

    def flush(self, load: Callable[[str, list[Commit]], None]) -> None:
        """Have *load* take in what waits; where it fails, what follows from what is not in waits no more either."""
        with self._lock:
            pending = [(graph, [*commits]) for graph, commits in self.commits.items()]  # more may be added meanwhile
        for graph, commits in pending:
            is_in = False
            try:
                load(graph, commits)
                is_in = True
            finally:  # not before: who reads meanwhile waits
                with self._lock:
                    came = self.commits[graph][len(commits) :]
                    if is_in and came:
                        self.commits[graph] = came
                    else:
                        self.marks.pop(graph, None)
                        self.commits.pop(graph, None)
                    self._bytes = sum(len(each.data) for left in self.commits.values() for each in left)

    def forget(self) -> None:
        """Let nothing wait any more."""
        self.commits, self.marks, self._bytes = {}, {}, 0


T = TypeVar("T")

#: Bytes of commits in one bulk load: it takes some 12 times as much memory while it runs.
BATCH = 16_000_000
#: Bytes of commits from which on a bulk load, which writes files of its own, is the cheaper one on disk: half a load.
BULK = 200_000
#: Bytes of commits after which a store on disk writes them to files: until then they take 60 times as much memory.
MAX_BUFFERED_BYTES = 1_000_000

_POSITION = ox.NamedNode(JIDO + "position")
_BOUNDS = AnswerLimits()


class OxigraphIndex:
    """One store and how far each graph in it reaches; any thread may read while another applies.

    A reader sees whole commits. `observers` are told of every change of a stream's graph. `mend`, where it is set, is
    called with a store that turned out to be damaged while it was read; the question is then asked once more.
    `ontology` is a digest of the ontology graph; `life` is another number when a graph has other content than before,
    and not only more of what a journal has.
    """

    def __init__(self, store: Any = None) -> None:
        """Hold *store*, which nobody else may change from now on; a new one in memory unless given."""
        self.observers: list[Observer] = []
        self.mend: Callable[[Any], None] | None = None
        self.triples_loaded = 0
        self.ontology = ""
        self.life = 0
        self._store = ox.Store() if store is None else store
        self._marks = marks(self._store)
        self._pending = PendingCommits()
        self._buffered_bytes = 0
        self._others: set[str] = set()
        self._lock = Lock()

    def compact(self) -> None:
        """Put in order on disk what was taken in piece by piece, so that a query has fewer files to look into."""
        self._store.optimize()

    @property
    def marks(self) -> Mapping[str, Watermark]:
        """Return how far each graph reaches."""
        return {**self._marks, **self._pending.marks}

    def mark(self, graph: str) -> Watermark:
        """Return how far *graph* reaches: no commit, and the empty version, where there is nothing."""
        return self._pending.marks.get(graph) or self._marks.get(graph, Watermark())

    def heads(self, graphs: Iterable[str]) -> list[CommitRef]:
        """Return the heads of the versions that *graphs* reach."""
        heads, pending = list[CommitRef](), self._pending.marks
        for graph in graphs:
            if (mark := pending.get(graph) or self._marks.get(graph)) is not None:
                heads += mark.version.heads
        return heads

    def load(self, graph: str, commits: Iterable[Commit]) -> None:
        """Add commits to *graph*, and move its mark, in one step that a crash does not part.

        They come parents first, as the journal gives them; one that is held already adds nothing.
        """
        with self._lock:
            self._pending.flush(self._insert)
            fresh = [commit for commit in commits if not self._holds(graph, commit)]
            if fresh:
                self._insert(graph, fresh)

    def queue(self, graph: str, commit: Commit) -> int:
        """Add a new commit, which follows from what is held, before anything is read; return how many bytes wait.

        Whoever wrote it need not wait for that. Should it fail then, the graph reaches as far as it did before.
        """
        return self._pending.add(graph, commit, self.mark)

    def apply_pending(self) -> None:
        """Apply the pending commits, as every read does first."""
        if not self._pending.commits:  # and no other thread is taking it in
            return
        store = self._store
        try:
            self.load_queued()
        except (OSError, RuntimeError):
            if self.mend is not None:
                self.mend(store)
            if self._store is store:
                raise

    def load_queued(self) -> None:
        """Take in what waits, and mend nothing: for a thread beside that of who writes."""
        with self._lock:
            self._pending.flush(self._insert)

    def bulk_load(self, graph: str, commits: Iterable[Commit]) -> None:
        """Add many new commits to *graph* in the cheapest way: for a store that nobody reads yet.

        Its mark moves last, so a crash leaves a store that is behind its content: to be thrown away.
        """
        with self._lock:
            self._pending.flush(self._insert)
            mark, batch, size = self.mark(graph), list[Commit](), 0
            for commit in commits:
                batch.append(commit)
                size += len(commit.data)
                if size >= BATCH:
                    mark, batch, size = self._bulk(graph, batch, mark), [], 0
            if batch:
                mark = self._bulk(graph, batch, mark)
            if mark == self.mark(graph):
                return
            said = f"<{graph}> <{HOLDS}> {mark.term} <{MARKS}> .\n"
            self._store.load(said.encode(), ox.RdfFormat.N_QUADS)
            self._set_mark(graph, mark)

    def empty(self, graph: str, cleared: Version) -> None:
        """Hold nothing of *graph* up to the commits *cleared*, in one step that a crash does not part."""
        with self._lock:
            self._pending.flush(self._insert)
            mark = Watermark(self.mark(graph).commits + 1, cleared, cleared)
            said = f"<{graph}> <{HOLDS}> {mark.term}"
            self._store.update(f"DROP SILENT GRAPH <{graph}> ; INSERT DATA {{ GRAPH <{MARKS}> {{ {said} }} }}")
            self._set_mark(graph, mark)
            self._forgotten([graph])

    def apply(self, graph: str, name: str, triples: Iterable[Triple]) -> None:
        """Add triples that no journal keeps to *graph*, all at once; a *name* used before adds nothing."""
        with self._lock:
            if f"{graph} {name}" not in self._others:
                added = frozenset(triples)
                document = "".join(f"{ntriples_line(triple)}\n" for triple in added).encode()
                self._store.load(document, ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(graph), lenient=True)
                self._others |= {graph, f"{graph} {name}"}
                self.life += 1
                for observer in self.observers:
                    observer.applied(graph, added)

    def become(self, other: OxigraphIndex) -> None:
        """Hold what *other* holds instead, *other* being of no more use; a reader sees what was or what is, whole."""
        with self._lock:
            self._pending.forget()
            changed = {graph for graph, _ in self._marks.items() ^ other._marks.items()}
            self._marks, self._store = other._marks, other._store
            self.triples_loaded, self.ontology = other.triples_loaded, other.ontology
            self._forgotten(sorted(changed))

    def move_to(self, store: Any, passage: str) -> None:
        """Go on in *store*, an empty one on disk, with all that is held; *passage* is where a file may be written."""
        with self._lock:
            self._pending.flush(self._insert)
            self._store.dump(passage, ox.RdfFormat.N_QUADS)
            store.bulk_load(path=passage, format=ox.RdfFormat.N_QUADS, lenient=True)
            self._store = store

    def backup(self, folder: str) -> Mapping[str, Watermark]:
        """Write a copy of the store on disk to *folder*, which is not there yet, and return how far it reaches.

        Nobody else may have the store write its files meanwhile: of two that do, one may wait without end.
        """
        with self._lock:
            self._pending.flush(self._insert)
            self._store.backup(folder)
            return dict(self._marks)

    def dump(self, graph: str, sink: Any) -> None:
        """Write *graph* as N-Triples to *sink*, a file, in no particular order."""
        self.apply_pending()
        self._read(lambda store: store.dump(sink, ox.RdfFormat.N_TRIPLES, from_graph=ox.NamedNode(graph)))

    def put_ontology(self, triples: Iterable[Triple]) -> None:
        """Make *triples* the whole content of the ontology graph, unless they are already; its mark is set last."""
        text, digest = written(tuple(triples))
        with self._lock:
            self.ontology = digest
            put(self._store, text, digest)

    def triples(
        self,
        graph: str,
        subject: Term | None = None,
        predicate: Term | None = None,
        object: Term | None = None,  # noqa: A002 - the third part of a triple has no other name
        *,
        most: int | None = None,
    ) -> Iterator[Triple]:
        """Return the triples of *graph* that match, as they are at this moment: *most* of them, all unless given."""
        self.apply_pending()
        return iter(self.match(graph, subject, predicate, object, most))

    def match(
        self, graph: str, subject: Term | None, predicate: Term | None, value: Term | None, most: int | None = None
    ) -> list[Triple]:
        """Return the triples of *graph* that match, but not of what waits to be taken in."""
        s, p, o = [None if term is None else node(term) for term in (subject, predicate, value)]

        def look(store: Any) -> list[Triple]:
            quads = islice(store.quads_for_pattern(s, p, o, named(f"<{graph}>")), most)
            return [(subject or str(row.subject), predicate or str(row.predicate), str(row.object)) for row in quads]

        return self._read(look)

    def query(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
    ) -> Answer:
        """Return the answer over the union of *graphs*; GRAPH reaches *named*, which are the same unless given.

        Raises InvalidRequest `malformed_query`, with line and column, when *sparql* does not parse.
        """
        self.apply_pending()
        return self._read(lambda store: plain(self._query(store, sparql, graphs, named, bindings)))

    def serialized(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
        rows_as: str = "json",
        graph_as: str = "turtle",
        within: AnswerLimits = _BOUNDS,
    ) -> Serialized:
        """Return what `query` answers as bytes, written by the engine: rows and truths in *rows_as*, else *graph_as*.

        *rows_as* is one of ROW_FORMATS, *graph_as* one of GRAPH_FORMATS. A truth is not written as CSV or TSV, which
        have no form for it: it is then JSON. Raises InvalidRequest `malformed_query` as `query` does, and TooLarge
        `result_too_large` above the rows and bytes of *within*.
        """

        def answer(store: Any) -> Serialized:
            return results.write_result(self._query(store, sparql, graphs, named, bindings), rows_as, graph_as, within)

        self.apply_pending()
        return self._read(answer)

    def _read(self, read: Callable[[Any], T]) -> T:
        """Return what *read* makes of the store; where its files are damaged, have it mended and read once more."""
        store = self._store
        try:
            return read(store)
        except (OSError, RuntimeError) as error:
            if self.mend is None or not (isinstance(error, OSError) or "Corruption" in str(error)):
                raise
            self.mend(store)
            return read(self._store)

    def _query(
        self,
        store: Any,
        sparql: str,
        graphs: Sequence[str],
        named: Sequence[str] | None,
        bindings: Mapping[str, Term] | None,
    ) -> Any:
        """Return what the engine answers; an iterator must be used up by the thread that asked."""
        try:
            return store.query(
                sparql,
                base_iri=BASE,
                default_graph=[ox.NamedNode(graph) for graph in self._present_graphs(graphs)],
                named_graphs=[ox.NamedNode(graph) for graph in (graphs if named is None else named)],
                substitutions={ox.Variable(name): node(term) for name, term in (bindings or {}).items()},
            )
        except SyntaxError as error:
            raise malformed(str(error)) from error

    def _present_graphs(self, graphs: Sequence[str]) -> list[str]:
        """Return the graphs that hold anything: every further one costs a look-up for each pattern."""
        return [graph for graph in graphs if graph in self._marks or graph in self._others or graph == ONTOLOGY_GRAPH]

    def _insert(self, graph: str, commits: list[Commit]) -> None:
        mark = self._marks.get(graph, Watermark()).after(commits)
        document = trig(graph, commits, mark)
        try:
            if len(document) > BULK:
                self._store.bulk_load(document, ox.RdfFormat.TRIG, lenient=True)
            else:
                self._store.load(document, ox.RdfFormat.TRIG, lenient=True)
                self._buffered_bytes += len(document)
        finally:  # who is interrupted is told so when all of them are in, or nothing
            if self._holds(graph, commits[-1]):
                self._notify(graph, commits)  # first: the commits are in even if the former mark cannot be removed
                self._set_mark(graph, mark)
        if self._buffered_bytes > MAX_BUFFERED_BYTES:
            self._store.flush()
            self._buffered_bytes = 0

    def _holds(self, graph: str, commit: Commit) -> bool:
        """Return whether a commit's description is in, and so all of it."""
        found = self._store.quads_for_pattern(ox.NamedNode(commit.iri), _POSITION, None, ox.NamedNode(graph))
        return next(found, None) is not None

    def _bulk(self, graph: str, batch: list[Commit], mark: Watermark) -> Watermark:
        self._store.bulk_load(trig(graph, batch), ox.RdfFormat.TRIG, lenient=True)
        self._notify(graph, batch)
        return mark.after(batch)

    def _set_mark(self, graph: str, mark: Watermark) -> None:
        """Believe *mark*, which the store holds, and take out the one before it."""
        old = self._marks.get(graph)
        self._marks[graph] = mark
        if old is not None and old != mark:
            about, holds, marks = ox.NamedNode(graph), ox.NamedNode(HOLDS), ox.NamedNode(MARKS)
            self._store.remove(ox.Quad(about, holds, node(old.term), marks))

    def _forgotten(self, graphs: Collection[str]) -> None:
        """Tell whoever follows that these graphs have other content now."""
        self.life += bool(graphs)
        for observer in self.observers:
            for graph in graphs:
                observer.reset(graph)

    def _notify(self, graph: str, commits: Iterable[Commit]) -> None:
        for commit in commits:
            self.triples_loaded += len(commit.triples)
            for observer in self.observers:
                observer.applied(graph, commit.triples)
