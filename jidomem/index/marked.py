"""The graphs of a store behind an endpoint, each with a mark of how far it reaches: what changes them, in requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyoxigraph as ox

from jidomem.errors import Failed, JidomemError
from jidomem.index.answers import solutions
from jidomem.index.document import HOLDS, MARKS, Mark, trig
from jidomem.index.endpoint import Endpoint, Refused
from jidomem.journal.commit import Commit
from jidomem.terms import Term, bare, literal, parts
from jidomem.version import Head
from jidomem.vocab import JIDO

ROWS = "application/sparql-results+json"
#: Lines, and characters, of one request.
LINES, CHARACTERS = 5_000, 1_000_000
#: Seconds that a request which changes much may take.
PATIENCE = 120.0
_LIFE, _NEWEST, _ORIGIN, _LACKS, _FORM = (
    f"urn:jidomem:index:{name}" for name in ("life", "newest", "origin", "lacks", "form")
)
#: What is put in of a commit: with the conflict keys that it lacks. A graph of another form is fed anew.
FORM = "2"
_POSITION = f"<{JIDO}position>"
_STATE = (
    f"SELECT ?g ?p ?o ?n WHERE {{ GRAPH <{MARKS}> {{ ?g ?p ?o }} FILTER(?g IN (%s)) "
    f"OPTIONAL {{ GRAPH ?g {{ ?o {_POSITION} ?n }} }} }}"
)


@dataclass(frozen=True, slots=True)
class Held:
    """What a store says of one graph: the life it is in, and the mark of how far it reaches, or `said` otherwise.

    `origin` is the commit it began with, `newest` the one put in last, of which `whole` tells whether it is there.
    `lacks` are the files that were damaged when it was fed; `form` says how it was fed, empty up to 0.1.0.
    """

    life: str
    said: Term
    newest: str | None = None
    origin: Head | None = None
    lacks: frozenset[str] = frozenset()
    whole: bool = True
    form: str = FORM

    @property
    def mark(self) -> Mark:
        """Return how far the graph reaches."""
        return Mark.of(self.said)

    def lacking(self, paths: Iterable[str]) -> Held:
        """Return the same without what is in the files *paths*, too."""
        return replace(self, lacks=self.lacks.union(paths))

    def triples(self, graph: str) -> str:
        """Return what the graph of the marks says of it."""
        said = [(_LIFE, literal(self.life)), (HOLDS, self.said), *((_LACKS, literal(path)) for path in self.lacks)]
        said += [(_FORM, literal(self.form))] if self.form else []
        said += [(_NEWEST, f"<{self.newest}>")] if self.newest else []
        said += [(_ORIGIN, literal(_written(self.origin)))] if self.origin else []
        return " ".join(f"<{graph}> <{name}> {value} ." for name, value in said)


class Shelf:
    """The graphs of one store; with *conditional* it puts in only in the life for which something was meant."""

    def __init__(self, query: Endpoint, update: Endpoint, *, lines: int = LINES, conditional: bool = True) -> None:
        """Ask *query*, and change at *update*, up to so many *lines* a request."""
        self.conditional = conditional
        self._query = query
        self._update = update
        self._lines = lines

    def held(self, graphs: Sequence[str]) -> dict[str, Held]:
        """Return what is held of each of *graphs* that has a mark, in one life."""
        text = _STATE % ", ".join(f"<{graph}>" for graph in graphs)
        try:
            rows = solutions(self._query.ask(text, ROWS)).rows
        except (Refused, SyntaxError, ValueError) as refusal:
            raise self._query.unavailable(f"does not tell what it holds: {refusal}") from refusal
        said: dict[str, dict[str, list[Term]]] = {}
        there = {row[2] for row in rows if row[3] is not None}
        for graph, name, value, _ in rows:
            said.setdefault(bare(graph or ""), {}).setdefault(bare(name or ""), []).append(value or "")
        found = ((graph, _held(known, there)) for graph, known in said.items())
        return {graph: held for graph, held in found if held is not None}

    def empty(self, graph: str, held: Held) -> None:
        """Empty *graph*, which then is what *held* says."""
        self._change(
            f"DROP SILENT GRAPH <{graph}> ; {_forget(graph)} ; "
            f"INSERT DATA {{ GRAPH <{MARKS}> {{ {held.triples(graph)} }} }}"
        )

    def fill(self, graph: str, lines: Sequence[str], said: Term) -> None:
        """Make *lines* the whole content of *graph*, whose mark then is *said*."""
        held = Held("", said)
        self._change(f"DROP SILENT GRAPH <{graph}> ; {_forget(graph)}")
        for batch in self._batches(lines):
            self._add(f"INSERT DATA {{ GRAPH <{graph}> {{\n%s\n}} }}", batch)
        self._change(f"INSERT DATA {{ GRAPH <{MARKS}> {{ {held.triples(graph)} }} }}")

    def put(self, graph: str, held: Held, commits: Sequence[Commit]) -> Held:
        """Return what is held once *commits*, which follow from *held*, are in; the mark moves with the last of them.

        Where another has moved it meanwhile, it stays as it is.
        """
        after = replace(
            held,
            said=held.mark.after(commits).term,
            newest=commits[-1].iri,
            origin=held.origin or commits[0].head,
        )
        live = f"GRAPH <{MARKS}> {{ <{graph}> <{_LIFE}> {literal(held.life)} }}"
        data = f"INSERT DATA {{ GRAPH <{graph}> {{\n%s\n}} }}"
        form = f"INSERT {{ GRAPH <{graph}> {{\n%s\n}} }} WHERE {{ {live} }}" if self.conditional else data
        *most, last = self._batches(_lines(graph, commits))
        for batch in most:
            self._add(form, batch)
        self._add(f"{form} ;\n{_moved(graph, held, after)}", last)
        return after

    def unfit(self, what: str, hint: str) -> Failed:
        """Return why the store is of no use: *what* it is or does."""
        return Failed(f"{self._query.shown} {what}", hint=hint, code="store_unfit")

    def _batches(self, lines: Sequence[str]) -> Iterator[list[str]]:
        """Yield *lines*, at least none, as many at a time as one request takes."""
        batch, size = list[str](), 0
        for line in lines:
            if batch and (len(batch) >= self._lines or size + len(line) > CHARACTERS):
                yield batch
                batch, size = [], 0
            batch.append(line)
            size += len(line)
        yield batch

    def _add(self, form: str, batch: Sequence[str]) -> None:
        """Put *batch* in as *form* says; where that is more than the store takes at once, in halves from now on."""
        try:
            self._change(form % "\n".join(batch), too_much=len(batch) > 1)
        except _TooMuch:
            self._lines = len(batch) // 2
            middle = self._lines
            self._add(form.partition(" ;\n")[0], batch[:middle])
            self._add(form, batch[middle:])

    def _change(self, text: str, *, too_much: bool = False) -> None:
        try:
            self._update.change(text, seconds=PATIENCE)
        except Refused as refusal:
            if too_much and refusal.status in (400, 413, 500):
                raise _TooMuch from refusal
            raise refusal_of(self._update, refusal) from refusal


class _TooMuch(Exception):
    """A request was refused that may have been too long."""


def refusal_of(store: Endpoint, refusal: Refused) -> JidomemError:
    """Return why a change was refused, and what lets it be done."""
    if refusal.status in (401, 403):
        hint = "name who may write in the address: sparql+http://user:password@host/..., or let it be written to"
        return store.unavailable(f"lets nobody change it who comes so ({refusal})", hint)
    return store.unavailable(f"refused a change ({refusal})")


def _forget(graph: str) -> str:
    """Return the update after which the graph of the marks says nothing of *graph*."""
    return f"DELETE {{ GRAPH <{MARKS}> {{ <{graph}> ?p ?o }} }} WHERE {{ GRAPH <{MARKS}> {{ <{graph}> ?p ?o }} }}"


def _moved(graph: str, held: Held, after: Held) -> str:
    """Return the update that moves the mark of *graph*, unless it is not where it was."""
    return (
        f"DELETE {{ GRAPH <{MARKS}> {{ {held.triples(graph)} }} }} "
        f"INSERT {{ GRAPH <{MARKS}> {{ {after.triples(graph)} }} }} "
        f"WHERE {{ GRAPH <{MARKS}> {{ <{graph}> <{_LIFE}> {literal(held.life)} ; <{HOLDS}> {held.said} }} }}"
    )


def _held(said: dict[str, list[Term]], there: set[Term | None]) -> Held | None:
    """Return what is held, of which this is said; None where it is in no life, or in two."""
    lives, marks = said.get(_LIFE, []), said.get(HOLDS, [])
    if len(lives) != 1 or not marks:
        return None
    newest, origins = said.get(_NEWEST, []), said.get(_ORIGIN, [])
    return Held(
        parts(lives[0]).text,
        marks[0] if len(marks) == 1 else max(marks, key=lambda mark: Mark.of(mark).commits),
        bare(newest[0]) if newest else None,
        _head(origins[0]) if origins else None,
        frozenset(parts(path).text for path in said.get(_LACKS, ())),
        not newest or any(each in there for each in newest),
        parts(min(said.get(_FORM, ['""']))).text,
    )


def _written(head: Head) -> str:
    return json.dumps([head.recorded_at, head.id, head.position])


def _head(said: Term) -> Head:
    return Head(*json.loads(parts(said).text))


def _lines(graph: str, commits: Sequence[Commit]) -> list[str]:
    """Return the triples of *commits* as the engine of this process gives them back, a line each.

    So a store that keeps literals as they were written has them in the form in which any other index answers.
    """
    store = ox.Store()
    store.load(trig(graph, commits), ox.RdfFormat.TRIG, lenient=True)
    data = store.dump(format=ox.RdfFormat.N_TRIPLES, from_graph=ox.NamedNode(graph))
    assert data is not None
    return data.decode().rstrip("\n").split("\n")
