"""The synchronisation of the named graphs of a remote SPARQL store with the journal.

The graph of watermarks has, for each graph, a *life* and the commits applied in it. A rebuild
empties the graph and assigns a new life. Writers name the life and advance the watermark by
compare-and-swap, so two writers cannot corrupt one store, and content that the store lost or
restored from an old copy is detected and repaired. The `SyncThread` synchronises after the commits
of this process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from secrets import token_hex
from threading import Lock, RLock, Thread
from typing import NamedTuple

import pyoxigraph as ox

from jidomem.errors import Failed, JidomemError
from jidomem.index.follower import (
    SEVERAL,
    batches_until_clear,
    cleared_by,
    redacted_since,
    separated,
    single_properties,
)
from jidomem.index.results import solutions
from jidomem.index.store import MARKS, WATERMARK, Watermark, trig
from jidomem.journal.commit import Commit, is_redaction_record
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.sparql_client import EndpointError, SparqlEndpoint
from jidomem.rdf.terms import Term, Triple, literal, ntriples_line, parse_literal, plain_value
from jidomem.rdf.vocab import JIDO, ONTOLOGY_GRAPH
from jidomem.records.intent import CommitRef, Version

ROWS = "application/sparql-results+json"
#: The most lines, and characters, of one request.
LINES, CHARACTERS = 5_000, 1_000_000
#: Seconds that a large update may take.
CLAIM_TIMEOUT = 120.0
_LIFE, _NEWEST, _ORIGIN, _LACKS, _FORM = (
    f"urn:jidomem:index:{name}" for name in ("life", "newest", "origin", "lacks", "form")
)
#: The form of the triples: with the conflict keys that the commits lack, and with each record of a memory that branches
#: wrote differently by itself. A graph of another form is written again.
FORM = "3"
_POSITION = f"<{JIDO}position>"
_STATE = (
    f"SELECT ?g ?p ?o ?n WHERE {{ GRAPH <{MARKS}> {{ ?g ?p ?o }} FILTER(?g IN (%s)) "
    f"OPTIONAL {{ GRAPH ?g {{ ?o {_POSITION} ?n }} }} }}"
)


@dataclass(frozen=True, slots=True)
class RemoteWatermark:
    """The watermark of a remote graph: its life, and the commits `applied`.

    `origin` is the first commit of the graph and `newest` the last one written; `whole` is whether the latter is there.
    `lacks` are the files that were damaged at that time; `form` is the form of the triples, empty up to 0.1.0.
    """

    life: str
    applied: Term
    newest: str | None = None
    origin: CommitRef | None = None
    lacks: frozenset[str] = frozenset()
    whole: bool = True
    form: str = FORM

    @property
    def mark(self) -> Watermark:
        """Return the version that the graph has applied."""
        return Watermark.of(self.applied)

    def lacking(self, paths: Iterable[str]) -> RemoteWatermark:
        """Return the watermark with the files *paths* added to those that are missing."""
        return replace(self, lacks=self.lacks.union(paths))

    def triples(self, graph: str) -> str:
        """Return the triples of the watermark in the graph of watermarks."""
        properties = [
            (_LIFE, literal(self.life)),
            (WATERMARK, self.applied),
            *((_LACKS, literal(path)) for path in self.lacks),
        ]
        properties += [(_FORM, literal(self.form))] if self.form else []
        properties += [(_NEWEST, f"<{self.newest}>")] if self.newest else []
        if (head := self.origin) is not None:
            properties.append((_ORIGIN, literal(json.dumps([head.recorded_at, head.id, head.position]))))
        return " ".join(f"<{graph}> <{name}> {value} ." for name, value in properties)


class RemoteGraphs:
    """The graphs of one store; with *conditional* a request writes only if the graph still has the expected life."""

    def __init__(
        self, query: SparqlEndpoint, update: SparqlEndpoint, *, lines: int = LINES, conditional: bool = True
    ) -> None:
        """Send queries to *query* and updates to *update*, of up to *lines* lines each."""
        self.conditional = conditional
        self._query = query
        self._update = update
        self._lines = lines

    def watermarks(self, graphs: Sequence[str]) -> dict[str, RemoteWatermark]:
        """Return the watermark of each of *graphs* that has a valid one."""
        text = _STATE % ", ".join(f"<{graph}>" for graph in graphs)
        try:
            rows = solutions(self._query.ask(text, ROWS)).rows
        except (EndpointError, SyntaxError, ValueError) as refusal:
            raise self._query.unavailable(f"did not return its watermarks: {refusal}") from refusal
        properties: dict[str, dict[str, list[Term]]] = {}
        written = {row[2] for row in rows if row[3] is not None}
        for graph, name, value, _ in rows:
            properties.setdefault(plain_value(graph or ""), {}).setdefault(plain_value(name or ""), []).append(
                value or ""
            )
        watermarks = ((graph, _read_watermark(known, written)) for graph, known in properties.items())
        return {graph: watermark for graph, watermark in watermarks if watermark is not None}

    def empty(self, graph: str, watermark: RemoteWatermark) -> None:
        """Empty *graph* and set its *watermark*."""
        self._change(
            f"DROP SILENT GRAPH <{graph}> ; {_forget(graph)} ; "
            f"INSERT DATA {{ GRAPH <{MARKS}> {{ {watermark.triples(graph)} }} }}"
        )

    def fill(self, graph: str, lines: Sequence[str], applied: Term) -> None:
        """Replace the content of *graph* by *lines*, and set its watermark to *applied*.

        That is one request, so no query finds the graph empty, unless the store refuses it as too long.
        """
        empties = f"DROP SILENT GRAPH <{graph}> ; {_forget(graph)}"
        marks = f"INSERT DATA {{ GRAPH <{MARKS}> {{ {RemoteWatermark('', applied).triples(graph)} }} }}"
        data = f"INSERT DATA {{ GRAPH <{graph}> {{\n%s\n}} }}"
        try:
            self._change(" ;\n".join((empties, data % "\n".join(lines), marks)), too_much=True)
        except _TooMuch:
            self._change(empties)
            for batch in self._batches(lines):
                self._add(data, batch)
            self._change(marks)

    def insert(self, graph: str, watermark: RemoteWatermark, commits: Sequence[Commit]) -> None:
        """Write the triples of *commits*, which `put` applies afterwards."""
        for batch in self._batches(_commit_lines(graph, commits)):
            self._add(self._insertion(graph, watermark), batch)

    def recorded_repeatedly(self, graph: str) -> list[tuple[Term | None, ...]]:
        """Return the rows of `index.follower.SEVERAL` for *graph*."""
        try:
            return [*solutions(self._query.ask(SEVERAL, ROWS, [graph], [graph])).rows]
        except (EndpointError, SyntaxError, ValueError) as refusal:
            raise self._query.unavailable(f"did not return its memories: {refusal}") from refusal

    def put(
        self,
        graph: str,
        watermark: RemoteWatermark,
        commits: Sequence[Commit],
        change: tuple[Collection[Triple], Collection[Triple]] | None = None,
    ) -> RemoteWatermark:
        """Apply *commits*, which follow *watermark*, and return the new watermark, which is set with the last of them.

        With *change* their triples were written by `insert`: instead of them its first triples are removed, and its
        second added. A watermark that another process changed meanwhile stays as it is.
        """
        after = replace(
            watermark,
            applied=watermark.mark.after(commits).term,
            newest=commits[-1].iri,
            origin=watermark.origin or commits[0].head,
        )
        removed, added = ([], _commit_lines(graph, commits)) if change is None else map(_lines, change)
        insertion, deletion = self._insertion(graph, watermark), self._deletion(graph, watermark)
        writes = [
            *((insertion, batch) for batch in self._batches(added)),
            *((deletion, batch) for batch in self._batches(removed)),
        ]
        *most, (form, last) = [write for write in writes if write[1]] or writes[:1]
        for earlier, batch in most:
            self._add(earlier, batch)
        self._add(f"{form} ;\n{_swap_watermark(graph, watermark, after)}", last)
        return after

    def _insertion(self, graph: str, watermark: RemoteWatermark) -> str:
        if not self.conditional:
            return f"INSERT DATA {{ GRAPH <{graph}> {{\n%s\n}} }}"
        return f"INSERT {{ GRAPH <{graph}> {{\n%s\n}} }} WHERE {{ {_has_life(graph, watermark)} }}"

    def _deletion(self, graph: str, watermark: RemoteWatermark) -> str:
        if not self.conditional:
            return f"DELETE DATA {{ GRAPH <{graph}> {{\n%s\n}} }}"
        return f"DELETE {{ GRAPH <{graph}> {{\n%s\n}} }} WHERE {{ {_has_life(graph, watermark)} }}"

    def unfit(self, what: str, hint: str) -> Failed:
        """Return the error for an unusable store: *what* it is or does."""
        return Failed(f"{self._query.shown} {what}", hint=hint, code="store_unfit")

    def _batches(self, lines: Sequence[str]) -> Iterator[list[str]]:
        batch, size = list[str](), 0
        for line in lines:
            if batch and (len(batch) >= self._lines or size + len(line) > CHARACTERS):
                yield batch
                batch, size = [], 0
            batch.append(line)
            size += len(line)
        yield batch

    def _add(self, form: str, batch: Sequence[str]) -> None:
        """Write *batch* by the update *form*; if the store refuses it as too long, in halves from now on."""
        try:
            self._change(form % "\n".join(batch), too_much=len(batch) > 1)
        except _TooMuch:
            self._lines = len(batch) // 2
            middle = self._lines
            self._add(form.partition(" ;\n")[0], batch[:middle])
            self._add(form, batch[middle:])

    def _change(self, text: str, *, too_much: bool = False) -> None:
        try:
            self._update.change(text, seconds=CLAIM_TIMEOUT)
        except EndpointError as refusal:
            if too_much and refusal.status in (400, 413, 500):
                raise _TooMuch from refusal
            raise refusal_of(self._update, refusal) from refusal


class _TooMuch(Exception):
    """A request was refused that may have been too long."""


def refusal_of(store: SparqlEndpoint, refusal: EndpointError) -> JidomemError:
    """Return the error for a refused update, with a hint."""
    if refusal.status in (401, 403):
        hint = "give a user who may write in the address: sparql+http://user:password@host/..., or allow writing"
        return store.unavailable(f"does not allow this user to write ({refusal})", hint)
    return store.unavailable(f"refused an update ({refusal})")


def _forget(graph: str) -> str:
    return f"DELETE {{ GRAPH <{MARKS}> {{ <{graph}> ?p ?o }} }} WHERE {{ GRAPH <{MARKS}> {{ <{graph}> ?p ?o }} }}"


def _has_life(graph: str, watermark: RemoteWatermark) -> str:
    return f"GRAPH <{MARKS}> {{ <{graph}> <{_LIFE}> {literal(watermark.life)} }}"


def _swap_watermark(graph: str, before: RemoteWatermark, after: RemoteWatermark) -> str:
    return (
        f"DELETE {{ GRAPH <{MARKS}> {{ {before.triples(graph)} }} }} "
        f"INSERT {{ GRAPH <{MARKS}> {{ {after.triples(graph)} }} }} "
        f"WHERE {{ GRAPH <{MARKS}> {{ <{graph}> <{_LIFE}> {literal(before.life)} ; <{WATERMARK}> {before.applied} }} }}"
    )


def _read_watermark(properties: dict[str, list[Term]], written: set[Term | None]) -> RemoteWatermark | None:
    """Return the watermark with these properties; None if it has no life or more than one."""
    lives, marks = properties.get(_LIFE, []), properties.get(WATERMARK, [])
    if len(lives) != 1 or not marks:
        return None
    newest, origins = properties.get(_NEWEST, []), properties.get(_ORIGIN, [])
    return RemoteWatermark(
        parse_literal(lives[0]).text,
        marks[0] if len(marks) == 1 else max(marks, key=lambda mark: Watermark.of(mark).commits),
        plain_value(newest[0]) if newest else None,
        CommitRef(*json.loads(parse_literal(origins[0]).text)) if origins else None,
        frozenset(parse_literal(path).text for path in properties.get(_LACKS, ())),
        not newest or any(each in written for each in newest),
        parse_literal(min(properties.get(_FORM, ['""']))).text,
    )


def _commit_lines(graph: str, commits: Sequence[Commit]) -> list[str]:
    """Return the triples of *commits* as the local engine serialises them, a line each.

    So a store that keeps the lexical form of literals returns them as any other index does.
    """
    store = ox.Store()
    store.load(trig(graph, commits), ox.RdfFormat.TRIG, lenient=True)
    return _dump(store, ox.NamedNode(graph))


def _lines(triples: Iterable[Triple]) -> list[str]:
    """Return *triples* in the same form."""
    store = ox.Store()
    store.load("\n".join(map(ntriples_line, triples)), ox.RdfFormat.N_TRIPLES, lenient=True)
    return _dump(store, ox.DefaultGraph())


def _dump(store: ox.Store, graph: ox.NamedNode | ox.DefaultGraph) -> list[str]:
    data = store.dump(format=ox.RdfFormat.N_TRIPLES, from_graph=graph)
    assert data is not None
    return [line for line in data.decode().split("\n") if line]


#: Rounds without progress after which the synchronisation of a graph fails.
TRIES = 10


class _Rules(NamedTuple):
    lines: tuple[str, ...]
    applied: Term

    @classmethod
    def of(cls, triples: Iterable[Triple]) -> _Rules:
        lines = tuple(sorted(set(map(ntriples_line, triples))))
        return cls(lines, literal(blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()))


class Feed:
    """The synchronisation of one store from one journal, for any thread."""

    def __init__(self, journal: FileJournal, remote: RemoteGraphs, ontology: Iterable[Triple] = ()) -> None:
        """Write the commits of *journal*, and *ontology*, to *remote*."""
        self._journal = journal
        self._remote = remote
        ontology = tuple(ontology)
        self._rules = _Rules.of(ontology)
        self._single = single_properties(ontology)
        self._has_written_rules = False  # whether the store has ever had our ontology
        self._lock = RLock()

    def catch_up(self, streams: Sequence[Stream]) -> list[str]:
        """Return the lives of the graphs of *streams* once the store has all their commits, and the ontology.

        Raises Failed `store_unreachable`, and `store_unfit` for a store with another memory.
        """
        with self._lock:
            watermarks = self._remote.watermarks([ONTOLOGY_GRAPH, *(stream.graph for stream in streams)])
            self._write_rules(watermarks.get(ONTOLOGY_GRAPH))
            return [self._synchronise(stream, watermarks.get(stream.graph)).life for stream in streams]

    def ask(self, streams: Sequence[Stream], query: Callable[[], bytes]) -> bytes:
        """Return the answer of *query* from the graphs of *streams*, level; raises as `catch_up` does.

        Another process may empty a graph at any time, to write it again: then the query is sent again.
        """
        lives = self.catch_up(streams)
        for _ in range(TRIES):
            answer, before = query(), lives
            lives = self.catch_up(streams)
            if lives == before:
                return answer
        raise self._remote.unfit("is emptied whenever it is queried", "find the other writer of its graphs")

    def rebuild(self, streams: Iterable[Stream]) -> dict[Stream, Watermark]:
        """Empty the graphs of *streams*, of whatever root, write them again, and return their watermarks."""
        with self._lock:
            self._remote.fill(ONTOLOGY_GRAPH, self._rules.lines, self._rules.applied)
            self._has_written_rules = True
            return {stream: self._synchronise(stream, self._empty_graph(stream)).mark for stream in streams}

    def _write_rules(self, watermark: RemoteWatermark | None) -> None:
        """Write the ontology unless it is there; raises Failed if another process has replaced ours."""
        if watermark is None or watermark.applied != self._rules.applied:
            if self._has_written_rules and watermark is not None:
                raise self._remote.unfit(
                    "got another ontology from another process",
                    "use one version of jidomem and one ontology/ in all processes, or give each its own store",
                )
            self._remote.fill(ONTOLOGY_GRAPH, self._rules.lines, self._rules.applied)
        self._has_written_rules = True

    def _synchronise(self, stream: Stream, watermark: RemoteWatermark | None) -> RemoteWatermark:
        reached, tries = -1, 0
        while tries < TRIES:
            head = self._journal.head(stream)
            if (
                watermark is None
                or not watermark.whole
                or watermark.form != FORM
                or not self._continues(stream, watermark)
            ):
                watermark = self._empty_graph(stream)
            if watermark.mark.version == head:
                return watermark
            written = self._add(stream, watermark)
            watermark = self._remote.watermarks([stream.graph]).get(stream.graph)
            if not self._remote.conditional and (watermark is None or watermark.life != written.life):
                watermark = None  # the triples may have come after another process emptied the graph
            now = watermark.mark.commits if watermark else -1
            tries, reached = (0, now) if now > reached else (tries + 1, reached)
        raise self._remote.unfit(
            f"changes <{stream.graph}> whenever it is synchronised", "find the other writer of that graph"
        )

    def _continues(self, stream: Stream, watermark: RemoteWatermark) -> bool:
        """Return whether the journal continues the content of the graph; raises Failed for that of another memory."""
        if watermark.mark.version.heads and not self._journal.holds(stream, watermark.mark.version):
            if watermark.origin is None or not self._journal.holds(stream, Version.of([watermark.origin])):
                raise self._remote.unfit(
                    f"has another memory in <{stream.graph}>",
                    "give each root a store of its own; to replace the memory there by this one: jidomem root reindex",
                )
            return False  # another branch was checked out, or commits were removed
        damage = {each.path for each in self._journal.damage(stream)}
        return watermark.lacks <= damage  # else a damaged file was restored

    def _empty_graph(self, stream: Stream) -> RemoteWatermark:
        watermark = RemoteWatermark(token_hex(16), Watermark().term)
        self._remote.empty(stream.graph, watermark)
        return watermark

    def _add(self, stream: Stream, watermark: RemoteWatermark) -> RemoteWatermark:
        """Return the watermark after the new commits of the journal were written.

        The graph is emptied instead if it may have content that was redacted in the journal.
        """
        began, head, ordered, missed = watermark.mark.version, self._journal.head(stream), False, set[str]()
        while True:
            clearing, after = list[Commit](), watermark.mark.version
            for step in batches_until_clear(stream, self._journal.read(stream, after=after, missed=missed), clearing):
                if any(is_redaction_record(commit.data) for commit in step):
                    ordered = True
                    if began.heads:
                        return self._empty_graph(stream)
                watermark = self._put(stream, watermark.lacking(missed), step)
            if not clearing:
                break
            cleared = cleared_by(self._journal, stream, clearing[0], watermark.mark.cleared)
            watermark = replace(watermark.lacking(missed), life=token_hex(16), newest=None)
            watermark = replace(watermark, applied=Watermark(watermark.mark.commits + 1, cleared, cleared).term)
            self._remote.empty(stream.graph, watermark)
        return self._empty_graph(stream) if ordered and redacted_since(self._journal, stream, head) else watermark

    def _put(self, stream: Stream, watermark: RemoteWatermark, commits: Sequence[Commit]) -> RemoteWatermark:
        """Apply *commits*; where branches meet, with the records of memories that both wrote separated."""
        after, change = watermark.mark.after(commits).version, None
        has_branches = len(after.heads) > 1 or any(len(commit.parents) > 1 for commit in commits)
        if stream.name == "memory" and has_branches:
            self._remote.insert(stream.graph, watermark, commits)
            rows = self._remote.recorded_repeatedly(stream.graph)
            change = separated(rows, self._journal, stream, self._single)
        return self._remote.put(stream.graph, watermark, commits, change)


#: Seconds that `close` waits.
STOP_TIMEOUT = 5.0


class SyncThread:
    """A thread that synchronises the streams it is notified of, in batches; after a failure the next query does."""

    def __init__(self, level: Callable[[Sequence[Stream]], object]) -> None:
        """Synchronise streams by calling *level*."""
        self._synchronise = level
        self._due: dict[Stream, None] = {}
        self._thread: Thread | None = None
        self._lock = Lock()

    def notify(self, stream: Stream) -> None:
        """Record that *stream* has new commits, and return at once."""
        with self._lock:
            self._due[stream] = None
            if self._thread is None:
                self._thread = Thread(target=self._run, name="jidomem remote index", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Wait some seconds for the synchronisation that is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        while True:
            with self._lock:
                due = list(self._due)
                self._due.clear()
                if not due:
                    self._thread = None
                    return
            with suppress(Exception):  # the commits are in the journal: the next query reports the error
                self._synchronise(due)
