"""The index: an Oxigraph store, in memory or on disk, that holds the commits of many graphs and answers SPARQL.

A watermark records how far each graph is applied; commits that a writer queued are loaded before each read. Observers
are notified of each change.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pyoxigraph as ox

from jidomem.errors import InvalidRequest
from jidomem.index import results
from jidomem.index.results import Answer, AnswerLimits, SerializedAnswer, malformed, plain
from jidomem.journal.commit import Commit, advance
from jidomem.rdf.terms import Term, Triple, literal, ntriples_line, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, JIDO, ONTOLOGY_GRAPH, XSD
from jidomem.records.intent import CommitRef, Version, missing_keys, topic_keys

if TYPE_CHECKING:
    from concurrent.futures import Future

#: The graph of the watermarks, which no query may read, and the property of a watermark.
MARKS = "urn:jidomem:index:marks"
WATERMARK = "urn:jidomem:index:holds"
_TOPIC = b"jido:topic "


class Watermark(NamedTuple):
    """How far a graph is applied: number of commits, version of its stream, and the commits that cleared it.

    The graph contains neither the triples of `cleared` nor those of their ancestors.
    """

    commits: int = 0
    version: Version = Version()
    cleared: Version = Version()

    def after(self, commits: Iterable[Commit]) -> Watermark:
        """Return the watermark after *commits*, which follow this one, are applied."""
        added = list(commits)
        return Watermark(self.commits + len(added), advance(self.version, added), self.cleared)

    @property
    def term(self) -> Term:
        """Return the watermark as a literal."""
        heads, cleared = (
            [(head.recorded_at, head.id, head.position) for head in version.heads]
            for version in (self.version, self.cleared)
        )
        return literal(json.dumps([self.commits, heads, cleared], separators=(",", ":")))

    @classmethod
    def of(cls, term: Term) -> Watermark:
        """Parse the literal of a watermark.

        >>> Watermark.of(Watermark().term) == Watermark()
        True
        """
        commits, heads, cleared = json.loads(plain_value(term))
        return cls(commits, *(Version.of(CommitRef(*head) for head in refs) for refs in (heads, cleared)))


def trig(graph: str, commits: Iterable[Commit], mark: Watermark | None = None) -> bytes:
    """Return *commits*, at least one, as TriG of *graph*, and *mark*, if given, to be set by the same write.

    The document of a commit is Turtle of a fixed form: prefixes, an empty line, triples. The documents are joined as
    they are, so no triple passes through Python again. Conflict keys that commits of an earlier version lack are added.
    """
    head, bodies = b"", [b"\n<", graph.encode(), b"> {\n"]
    for commit in commits:
        head, _, body = commit.data.partition(b"\n\n")
        bodies.append(body)
        if _TOPIC in body:
            bodies += [f"\n{ntriples_line(triple)}".encode() for triple in _keys_lacking(commit)]
    mark_graph = f"<{MARKS}> {{ <{graph}> <{WATERMARK}> {mark.term} }}\n" if mark else ""
    return b"".join([head, *bodies, b"}\n", mark_graph.encode()])


def _keys_lacking(commit: Commit) -> list[Triple]:
    """Return the conflict keys that *commit* lacks.

    All of a commit is written by one version, so the first memory with such keys decides.
    """
    for triples in commit.blocks(_TOPIC):
        if keys := topic_keys(triples):
            return [] if keys <= triples else missing_keys(commit.triples)
    return []


def in_batches(commits: Iterable[Commit], size: int) -> Iterator[list[Commit]]:
    """Yield *commits* in their order, in batches of *size* bytes of documents or slightly more."""
    batch, filled = list[Commit](), 0
    for commit in commits:
        batch.append(commit)
        filled += len(commit.data)
        if filled >= size:
            yield batch
            batch, filled = [], 0
    if batch:
        yield batch


def _loaded(batch: list[Commit], load: Future[None]) -> list[Commit]:
    """Return *batch* once its *load* has ended; raise the error of the load."""
    load.result()
    return batch


_TYPED = '"^^<'


def stored_triples(commits: Iterable[Commit]) -> Iterator[Triple]:
    """Yield the triples that *commits* add to a store, with literals in the form in which the store returns them."""
    rows: list[Triple] = []
    for commit in commits:
        rows += commit.triples
        if _TOPIC in commit.data:
            rows += _keys_lacking(commit)
    typed = [*{value for _, _, value in rows if _TYPED in value}]
    store, about = ox.Store(), ox.NamedNode(WATERMARK)
    store.extend([ox.Quad(ox.NamedNode(f"urn:{at}"), about, node(value)) for at, value in enumerate(typed)])
    sorted_ntriples = {typed[int(quad.subject.value[4:])]: str(quad.object) for quad in store}
    return ((subject, predicate, sorted_ntriples.get(value, value)) for subject, predicate, value in rows)


_STRING = XSD + "string"


def marks(store: Any) -> dict[str, Watermark]:
    """Return the watermark of each graph of a store; after a crash a graph may have two, of which the later counts."""
    reached: dict[str, Watermark] = {}
    for quad in store.quads_for_pattern(None, ox.NamedNode(WATERMARK), None, ox.NamedNode(MARKS)):
        if quad.subject.value != ONTOLOGY_GRAPH:
            mark = Watermark.of(str(quad.object))
            if mark.commits >= reached.get(quad.subject.value, mark).commits:
                reached[quad.subject.value] = mark
    return reached


@lru_cache(maxsize=512)  # the same properties, agents, sessions and graphs come again and again
def named(term: Term) -> Any:
    """Return the pyoxigraph object of an IRI."""
    return ox.NamedNode(term[1:-1])


def node(term: Term) -> Any:
    """Return the pyoxigraph object of a term."""
    if term[:1] == "<":
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
    return results.with_returns(data, results.GRAPH_FORMATS[form])


class Observer(Protocol):
    """Something derived from the index, notified of every change under the lock of the index: it must not block.

    It is notified after the store has changed and before `catch_up` returns. A concurrent reader that did not catch up
    may see the store ahead of the derived data.
    """

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Apply the addition of *triples*, as the journal writes them, to *graph*; some may have been there before.

        The store returns some literals in another form, such as a moment without trailing zeros.
        """

    def reset(self, graph: str) -> None:
        """Discard everything about *graph*, whose content was replaced; read it from the index when needed."""


@lru_cache(maxsize=2)  # a process that opens many roots has one ontology
def sorted_ntriples(triples: tuple[Triple, ...]) -> tuple[bytes, str]:
    """Return *triples* as sorted N-Triples, and their digest."""
    text = "\n".join(sorted(map(ntriples_line, triples))).encode()
    return text, blake2b(text, digest_size=16).hexdigest()


def write_ontology(store: Any, text: bytes, digest: str) -> None:
    """Replace the ontology graph by *text*, unless its watermark is *digest* already; the watermark is set last."""
    node, watermark, marks = ox.NamedNode(ONTOLOGY_GRAPH), ox.NamedNode(WATERMARK), ox.NamedNode(MARKS)
    mark = ox.Quad(node, watermark, ox.Literal(digest), marks)
    if mark in store:
        return
    others = list(store.quads_for_pattern(node, watermark, None, marks))
    for old in others:
        store.remove(old)
    if others:  # in one step: another thread may be reading
        store.update(f"CLEAR SILENT GRAPH {node}; INSERT DATA {{ GRAPH {node} {{ {text.decode()} }} }}")
    else:
        store.clear_graph(node)
        store.load(text, ox.RdfFormat.N_TRIPLES, to_graph=node, lenient=True)
    store.add(mark)


class PendingCommits:
    """The commits not yet applied, by graph and in order: `commits`, and the `marks` of the graphs once applied.

    One thread may add commits while another applies the earlier ones.
    """

    def __init__(self) -> None:
        self.commits: dict[str, list[Commit]] = {}
        self.marks: dict[str, Watermark] = {}
        self._bytes = 0
        self._lock = Lock()

    def add(self, graph: str, commit: Commit, mark: Callable[[str], Watermark]) -> int:
        """Queue *commit*, which follows the *mark* of its graph; return the bytes pending."""
        with self._lock:
            ahead = mark(graph).after([commit])
            self.commits.setdefault(graph, []).append(commit)  # first: a mark never precedes its commit
            self.marks[graph] = ahead
            self._bytes += len(commit.data)
            return self._bytes

    def flush(self, load: Callable[[str, list[Commit]], None]) -> None:
        """Apply the pending commits by *load*; if it fails, those of the same graph that follow are dropped as well."""
        with self._lock:
            pending = [(graph, [*commits]) for graph, commits in self.commits.items()]  # more may be added meanwhile
        for graph, commits in pending:
            is_loaded = False
            try:
                load(graph, commits)
                is_loaded = True
            finally:  # commits stay pending until they are loaded, so that a concurrent reader waits for them
                with self._lock:
                    added = self.commits[graph][len(commits) :]
                    if is_loaded and added:
                        self.commits[graph] = added
                    else:
                        self.marks.pop(graph, None)
                        self.commits.pop(graph, None)
                    self._bytes = sum(len(commit.data) for commits in self.commits.values() for commit in commits)

    @property
    def size(self) -> int:
        """Return the bytes of the pending commits."""
        return self._bytes

    def clear(self) -> None:
        """Drop all pending commits."""
        self.commits, self.marks, self._bytes = {}, {}, 0


T = TypeVar("T")

#: Bytes of commits in a bulk load, which takes some 12 times as much memory while it runs.
BATCH_BYTES = 16_000_000
#: Bytes of commits from which on a bulk load, which writes its own files, costs half as much as a load on disk.
BULK_LOAD_BYTES = 200_000
#: Bytes of commits after which a store on disk is flushed: buffered, they take 60 times as much memory.
MAX_BUFFERED_BYTES = 1_000_000

_POSITION = ox.NamedNode(JIDO + "position")
_LIMITS = AnswerLimits()


class OxigraphIndex:
    """An Oxigraph store with a watermark for each graph; any thread may read while another applies commits.

    A reader sees whole commits. `observers` are notified of every change of a stream's graph. `rebuild_damaged`, if
    set, is called with a store that turned out damaged during a read; the read is then repeated. `ontology` is a digest
    of the ontology graph. `generation` changes when the content of a graph is replaced, not when commits are added.
    """

    def __init__(self, store: Any = None) -> None:
        """Use *store*, which nothing else may change from now on; default: a new store in memory."""
        self.observers: list[Observer] = []
        self.rebuild_damaged: Callable[[Any], None] | None = None
        self.triples_loaded = 0
        self.ontology = ""
        self.generation = 0
        self._is_in_memory = store is None
        self._store = ox.Store() if store is None else store
        #: The ontology as lines and digest, if in memory it is loaded only once it is read: writers mostly do not.
        self._unread: tuple[bytes, str] | None = None
        self._marks = marks(self._store)
        self._pending = PendingCommits()
        self._buffered_bytes = self._bulk_loads = 0
        self._other_names: set[str] = set()
        #: The commits applied since a backup that is being opened; None if there is none, or other content changed.
        self._since_backup: deque[tuple[str, list[Commit]]] | None = None
        self._lock = Lock()

    def compact(self) -> None:
        """Merge the files of the store on disk, so that a query reads fewer of them; those of one bulk load are few."""
        if self._bulk_loads > 1:
            self._store.optimize()

    @property
    def marks(self) -> Mapping[str, Watermark]:
        """Return the watermark of each graph, pending commits included."""
        return {**self._marks, **self._pending.marks}

    def mark(self, graph: str) -> Watermark:
        """Return the watermark of *graph*, pending commits included; that of an empty graph is `Watermark()`."""
        return self._pending.marks.get(graph) or self._marks.get(graph, Watermark())

    def heads(self, graphs: Iterable[str]) -> list[CommitRef]:
        """Return the heads of the versions of *graphs*, pending commits included."""
        heads, pending = list[CommitRef](), self._pending.marks
        for graph in graphs:
            if (mark := pending.get(graph) or self._marks.get(graph)) is not None:
                heads += mark.version.heads
        return heads

    def load(self, graph: str, commits: Iterable[Commit]) -> None:
        """Add commits to *graph* and move its watermark, in one step that is atomic even in a crash.

        *commits* come parents first, as the journal yields them; those applied already are skipped.
        """
        with self._lock:
            self._pending.flush(self._insert)
            fresh = [commit for commit in commits if not self._contains(graph, commit)]
            if fresh:
                self._insert(graph, fresh)

    def queue(self, graph: str, commit: Commit) -> int:
        """Queue a new commit, which follows the watermark, to be applied before the next read; return pending bytes.

        If applying fails then, the watermark falls back to the last commit applied.
        """
        return self._pending.add(graph, commit, self.mark)

    @property
    def pending_bytes(self) -> int:
        """Return the bytes of the commits that are not applied yet."""
        return self._pending.size

    def apply_pending(self) -> None:
        """Apply the pending commits, as every read does first; `rebuild_damaged` is called for a damaged store."""
        if not self._pending.commits:  # nor is another thread applying some
            return
        store = self._store
        try:
            self.load_queued()
        except (OSError, RuntimeError):
            if self.rebuild_damaged is not None:
                self.rebuild_damaged(store)
            if self._store is store:
                raise

    def load_queued(self) -> None:
        """Apply the pending commits without `rebuild_damaged`: for the apply thread."""
        with self._lock:
            self._pending.flush(self._insert)

    def bulk_load(self, graph: str, commits: Iterable[Commit]) -> None:
        """Add many new commits to *graph* in the cheapest way: for a store that is not read yet.

        The watermark moves last: after a crash the store has more than its watermark says and must be discarded.
        """
        with self._lock:
            self._pending.flush(self._insert)
            self._since_backup = None
            mark = self.mark(graph)
            for batch in self._bulk_load(graph, commits):
                mark = mark.after(batch)
                self._notify(graph, batch)
            if mark == self.mark(graph):
                return
            statement = f"<{graph}> <{WATERMARK}> {mark.term} <{MARKS}> .\n"
            self._store.load(statement.encode(), ox.RdfFormat.N_QUADS)
            self._set_mark(graph, mark)

    def empty(self, graph: str, cleared: Version) -> None:
        """Remove all triples of *graph*, which the commits *cleared* clear, in one step that is atomic in a crash."""
        with self._lock:
            self._pending.flush(self._insert)
            self._since_backup = None
            mark = Watermark(self.mark(graph).commits + 1, cleared, cleared)
            statement = f"<{graph}> <{WATERMARK}> {mark.term}"
            self._store.update(f"DROP SILENT GRAPH <{graph}> ; INSERT DATA {{ GRAPH <{MARKS}> {{ {statement} }} }}")
            self._set_mark(graph, mark)
            self._notify_reset([graph])

    def apply(self, graph: str, name: str, triples: Iterable[Triple]) -> None:
        """Add triples that are in no journal to *graph*, in one step; a *name* used before adds nothing."""
        with self._lock:
            if f"{graph} {name}" not in self._other_names:
                self._since_backup = None
                new = frozenset(triples)
                document = "".join(f"{ntriples_line(triple)}\n" for triple in new).encode()
                self._store.load(document, ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(graph), lenient=True)
                self._other_names |= {graph, f"{graph} {name}"}
                self.generation += 1
                for observer in self.observers:
                    observer.applied(graph, new)

    def change(self, graph: str, removed: Iterable[Triple], added: Iterable[Triple]) -> None:
        """Remove triples from *graph*, and add others that follow from its commits."""
        with self._lock:
            self._since_backup = None
            for s, p, o in removed:
                self._store.remove(ox.Quad(node(s), node(p), node(o), named(f"<{graph}>")))
            self._store.extend([ox.Quad(node(s), node(p), node(o), named(f"<{graph}>")) for s, p, o in added])
            self._notify_reset([graph])

    def replace_by(self, other: OxigraphIndex) -> None:
        """Take over the store of *other*, which must not be used afterwards; a reader sees the old or the new one."""
        with self._lock:
            self._pending.clear()
            self._since_backup = None
            changed = {graph for graph, _ in self._marks.items() ^ other._marks.items()}
            if self.ontology and self._unread is None:  # a reader may be about to read it
                other._load_unread()
            self._marks, self._store = other._marks, other._store
            self._unread, self._is_in_memory = other._unread, other._is_in_memory
            self.triples_loaded, self.ontology = other.triples_loaded, other.ontology
            self._notify_reset(sorted(changed))

    def move_to(self, store: Any, passage: str) -> None:
        """Move all content to *store*, an empty one on disk, by way of a file at the path *passage*."""
        with self._lock:
            self._pending.flush(self._insert)
            self._since_backup = None
            self._load_unread()
            self._store.dump(passage, ox.RdfFormat.N_QUADS)
            store.bulk_load(path=passage, format=ox.RdfFormat.N_QUADS, lenient=True)
            self._store, self._is_in_memory = store, False

    def backup(self, folder: str) -> Mapping[str, Watermark]:
        """Write a copy of the store on disk to *folder*, which must not exist, and return the watermarks.

        No other thread may flush the store meanwhile: of two that flush, one may wait without end.
        """
        with self._lock:
            self._pending.flush(self._insert)
            self._store.backup(folder)
            self._since_backup = deque()
            return dict(self._marks)

    def continue_on(self, other: OxigraphIndex) -> bool:
        """Continue on the store of *other*, opened from the last backup; it must not be used afterwards.

        The commits applied since the backup are applied to it first, while this index is in use: readers and writers
        notice nothing. Returns False, and nothing has changed, if that is impossible, as other content was replaced.
        """
        while since := self._since_backup:
            other._insert(*since.popleft())  # without the lock: this index may append further ones
        with self._lock:
            if (since := self._since_backup) is None:
                return False
            for graph, commits in since:
                other._insert(graph, commits)
            if is_level := other._marks == self._marks:
                self._store = other._store
            return is_level

    def end_backup(self) -> None:
        """Record no further commits for `continue_on`."""
        self._since_backup = None

    def dump(self, graph: str, sink: Any) -> None:
        """Write *graph* as N-Triples to *sink*, a file, in no particular order."""
        self._load_ontology([graph])
        self.apply_pending()
        self._read(lambda store: store.dump(sink, ox.RdfFormat.N_TRIPLES, from_graph=ox.NamedNode(graph)))

    def put_ontology(self, triples: Iterable[Triple]) -> None:
        """Replace the ontology graph by *triples*, unless it has them already; its watermark is set last."""
        text, digest = sorted_ntriples(tuple(triples))
        with self._lock:
            if digest != self.ontology:
                self._since_backup = None
            if self._unread is not None or (self._is_in_memory and not self.ontology):
                self._unread = text, digest
            else:
                write_ontology(self._store, text, digest)
            self.ontology = digest

    def _load_ontology(self, graphs: Iterable[str]) -> None:
        """Load the ontology if it is among *graphs*, which are about to be read, and is not loaded yet."""
        if self._unread is not None and ONTOLOGY_GRAPH in graphs:
            with self._lock:
                self._load_unread()

    def _load_unread(self) -> None:
        if self._unread is not None:
            write_ontology(self._store, *self._unread)
            self._unread = None

    def triples(
        self,
        graph: str,
        subject: Term | None = None,
        predicate: Term | None = None,
        object: Term | None = None,  # noqa: A002 - the third part of a triple has no other name
        *,
        most: int | None = None,
    ) -> Iterator[Triple]:
        """Return the triples of *graph* that match, read at once: at most *most* (default: all)."""
        self.apply_pending()
        return iter(self.match(graph, subject, predicate, object, most))

    def match(
        self, graph: str, subject: Term | None, predicate: Term | None, value: Term | None, most: int | None = None
    ) -> list[Triple]:
        """Return the triples of *graph* that match, without those of pending commits; at most *most* (default: all)."""
        if self._unread is not None:
            self._load_ontology([graph])
        s = None if subject is None else node(subject)
        p = None if predicate is None else node(predicate)
        o = None if value is None else node(value)

        def find(store: Any) -> list[Triple]:
            quads = store.quads_for_pattern(s, p, o, named(f"<{graph}>"))
            rows = []
            for row in quads if most is None else islice(quads, most):
                rows.append((subject or str(row.subject), predicate or str(row.predicate), str(row.object)))
            return rows

        return self._read(find)

    def instances(self, graph: str, predicate: Term, value: Term, classes: Collection[Term]) -> list[Term]:
        """Return the subjects in *graph* of one of *classes* that have *value*; pending commits are left out."""
        sparql = (
            f"SELECT ?item ?value {{ ?item {predicate} ?value ; a ?class FILTER(?class IN ({', '.join(classes)})) }}"
        )

        def find(store: Any) -> list[Term]:
            return [str(row[0]) for row in self._query(store, sparql, [graph], None, {"value": value})]

        return self._read(find)

    def query(
        self,
        sparql: str,
        *,
        graphs: Sequence[str],
        named: Sequence[str] | None = None,
        bindings: Mapping[str, Term] | None = None,
    ) -> Answer:
        """Return the answer over the union of *graphs*; GRAPH reaches *named* (default: *graphs*).

        Raises InvalidRequest `malformed_query`, with line and column, when *sparql* does not parse.
        """
        self._load_ontology([*graphs, *(named or ())])
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
        within: AnswerLimits = _LIMITS,
    ) -> SerializedAnswer:
        """Return the answer of `query` as bytes written by the engine: rows and booleans as *rows_as*, else *graph_as*.

        *rows_as* is one of ROW_FORMATS, *graph_as* one of GRAPH_FORMATS. CSV and TSV have no form of a boolean, which
        is written as JSON instead. Raises InvalidRequest `malformed_query` as `query` does, and TooLarge
        `result_too_large` above the rows and bytes of *within*.
        """

        def answer(store: Any) -> SerializedAnswer:
            return results.write_result(self._query(store, sparql, graphs, named, bindings), rows_as, graph_as, within)

        self._load_ontology([*graphs, *(named or ())])
        self.apply_pending()
        return self._read(answer)

    def _read(self, read: Callable[[Any], T]) -> T:
        """Return `read(store)`; if the files are damaged, rebuild the store by `rebuild_damaged` and read again.

        Raises InvalidRequest `malformed_query` for a function that the engine does not have.
        """
        store = self._store
        try:
            return read(store)
        except (OSError, RuntimeError) as error:
            if str(error).endswith("is not supported"):
                hint = "use the functions of SPARQL 1.1"
                raise InvalidRequest(str(error), hint=hint, code="malformed_query") from error
            if self.rebuild_damaged is None or not (isinstance(error, OSError) or "Corruption" in str(error)):
                raise
            self.rebuild_damaged(store)
            return read(self._store)

    def _query(
        self,
        store: Any,
        sparql: str,
        graphs: Sequence[str],
        named: Sequence[str] | None,
        bindings: Mapping[str, Term] | None,
    ) -> Any:
        """Run a query; the thread that runs it must also exhaust the iterator that it returns."""
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
        """Return those of *graphs* that have triples: each further graph costs a look-up for each pattern."""
        return [
            graph for graph in graphs if graph in self._marks or graph in self._other_names or graph == ONTOLOGY_GRAPH
        ]

    def _insert(self, graph: str, commits: list[Commit]) -> None:
        mark = self._marks.get(graph, Watermark()).after(commits)
        document = trig(graph, commits, mark)
        try:
            if len(document) > BULK_LOAD_BYTES:
                self._store.bulk_load(document, ox.RdfFormat.TRIG, lenient=True)
            else:
                self._store.load(document, ox.RdfFormat.TRIG, lenient=True)
                self._buffered_bytes += len(document)
        finally:  # after an interrupt as well: either all commits were loaded, or none
            if self._contains(graph, commits[-1]):
                self._notify(graph, commits)  # first: the commits are applied even if removing the former mark fails
                self._set_mark(graph, mark)
                if (since := self._since_backup) is not None:
                    since.append((graph, commits))
        if self._buffered_bytes > MAX_BUFFERED_BYTES:
            self._store.flush()
            self._buffered_bytes = 0

    def _contains(self, graph: str, commit: Commit) -> bool:
        """Return whether the description of a commit, and so all of the commit, is in the store."""
        descriptions = self._store.quads_for_pattern(ox.NamedNode(commit.iri), _POSITION, None, ox.NamedNode(graph))
        return next(descriptions, None) is not None

    def _bulk_load(self, graph: str, commits: Iterable[Commit]) -> Iterator[list[Commit]]:
        """Load *commits*, and yield them in order, in batches that are in the store.

        The engine loads in a thread beside this one, which verifies the next batch: most of a load needs no Python.
        One load runs at a time: RocksDB reads a level that does not exist, and the process crashes, if a load adds its
        files while another one waits to do so and a compaction ends.
        """
        from concurrent.futures import ThreadPoolExecutor  # slow to load, and not needed for a small journal

        loading: deque[tuple[list[Commit], Future[None]]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="jidomem bulk load") as pool:
            for batch in in_batches(commits, BATCH_BYTES):
                load = partial(self._store.bulk_load, trig(graph, batch), ox.RdfFormat.TRIG, lenient=True)
                loading.append((batch, pool.submit(load)))
                self._bulk_loads += 1
                if len(loading) > 1:
                    yield _loaded(*loading.popleft())
            while loading:
                yield _loaded(*loading.popleft())

    def _set_mark(self, graph: str, mark: Watermark) -> None:
        """Set the watermark to *mark*, which the store has, and remove the former one from the store."""
        old = self._marks.get(graph)
        self._marks[graph] = mark
        if old is not None and old != mark:
            about, watermark, marks = ox.NamedNode(graph), ox.NamedNode(WATERMARK), ox.NamedNode(MARKS)
            self._store.remove(ox.Quad(about, watermark, node(old.term), marks))

    def _notify_reset(self, graphs: Collection[str]) -> None:
        """Notify observers that the content of *graphs* was replaced."""
        self.generation += bool(graphs)
        for observer in self.observers:
            for graph in graphs:
                observer.reset(graph)

    def _notify(self, graph: str, commits: Iterable[Commit]) -> None:
        for commit in commits:
            self.triples_loaded += commit.size
            for observer in self.observers:
                observer.applied(graph, commit.triples)
