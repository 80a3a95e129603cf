"""What keeps the graphs of a store behind an endpoint level with the journal, and sees when they are not.

A graph has there, in the graph of the marks, a *life* and how far it reaches in it. Whoever starts it anew empties it
and gives it another life; who adds to it says in which life, and a mark moves only from where it was. So two that feed
one store do each other no harm, and what the store lost, or has again from an old copy, is seen and put right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from secrets import token_hex
from threading import RLock

from jidomem.errors import NotFound
from jidomem.index.document import Mark
from jidomem.index.marked import FORM, Held, Shelf
from jidomem.index.steps import cleared_by, until_cleared
from jidomem.journal.commit import Commit
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.redaction import is_order
from jidomem.terms import Term, Triple, line, literal
from jidomem.version import Version
from jidomem.vocab import ONTOLOGY_GRAPH

#: So often a graph is fed without coming nearer to the journal before its store is given up.
TRIES = 5


@dataclass(frozen=True, slots=True)
class _Rules:
    """The ontology as it is put into a store, and the mark that says it is there."""

    lines: tuple[str, ...]
    said: Term

    @classmethod
    def of(cls, triples: Iterable[Triple]) -> _Rules:
        """Return them in one order."""
        lines = tuple(sorted(set(map(line, triples))))
        return cls(lines, literal(blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()))


class Feed:
    """The feeding of one store from one journal; any thread may have it brought level."""

    def __init__(self, journal: FileJournal, shelf: Shelf, ontology: Iterable[Triple] = ()) -> None:
        """Put what *journal* has into *shelf*, beside *ontology*."""
        self._journal = journal
        self._shelf = shelf
        self._rules = _Rules.of(ontology)
        self._ruled = False  # whether the store had our ontology once
        self._lock = RLock()

    def level(self, streams: Sequence[Stream]) -> None:
        """Return once the store holds what the journal has of *streams*, and the ontology.

        Raises Failed `store_unreachable`, and `store_unfit` for a store that somebody else keeps another memory in.
        """
        with self._lock:
            held = self._shelf.held([ONTOLOGY_GRAPH, *(stream.graph for stream in streams)])
            self._level_rules(held.get(ONTOLOGY_GRAPH))
            for stream in streams:
                self._level(stream, held.get(stream.graph))

    def rebuild(self, streams: Iterable[Stream]) -> dict[Stream, Mark]:
        """Return how far each of *streams* reaches, after its graph, whosever it was, was emptied and fed anew."""
        with self._lock:
            self._shelf.fill(ONTOLOGY_GRAPH, self._rules.lines, self._rules.said)
            self._ruled = True
            return {stream: self._level(stream, self._anew(stream)).mark for stream in streams}

    def _level_rules(self, held: Held | None) -> None:
        """Put the ontology in unless it is there; raises Failed where somebody put another one in its place."""
        if held is None or held.said != self._rules.said:
            if self._ruled and held is not None:
                raise self._shelf.unfit(
                    "was given another ontology by who else feeds it",
                    "let all that feed it have one version of jidomem and one ontology/, or give each its own store",
                )
            self._shelf.fill(ONTOLOGY_GRAPH, self._rules.lines, self._rules.said)
        self._ruled = True

    def _level(self, stream: Stream, held: Held | None) -> Held:
        """Return what the store holds once that is all of *stream*."""
        reached, tries = -1, 0
        while tries < TRIES:
            head = self._journal.head(stream)
            if held is None or not held.whole or held.form != FORM or not self._continues(stream, held):
                held = self._anew(stream)
            if held.mark.version == head:
                return held
            put = self._add(stream, held)
            held = self._shelf.held([stream.graph]).get(stream.graph)
            if not self._shelf.conditional and (held is None or held.life != put.life):
                held = None  # what was put in may have come after somebody emptied the graph: it is emptied again
            now = held.mark.commits if held else -1
            tries, reached = (0, now) if now > reached else (tries + 1, reached)
        raise self._shelf.unfit(f"changes <{stream.graph}> as often as it is fed", "see who else writes to that graph")

    def _continues(self, stream: Stream, held: Held) -> bool:
        """Return whether the journal goes on from what is held; raises Failed for what is of another memory."""
        if held.mark.version.heads and not self._journal.holds(stream, held.mark.version):
            if held.origin is None or not self._journal.holds(stream, Version.of([held.origin])):
                raise self._shelf.unfit(
                    f"holds another memory in <{stream.graph}>",
                    "give each root a store of its own; to have this one take its place there: jidomem reindex",
                )
            return False  # another branch was checked out, or what was here was taken back
        damage = {found.path for found in self._journal.damage(stream)}
        return held.lacks <= damage  # else what was left out is there again

    def _anew(self, stream: Stream) -> Held:
        """Return what the store holds of *stream* now: nothing."""
        held = Held(token_hex(16), Mark().term)
        self._shelf.empty(stream.graph, held)
        return held

    def _add(self, stream: Stream, held: Held) -> Held:
        """Return what is held once what the journal has more is in.

        That is nothing where the graph may have held what was taken out of the journal.
        """
        began, head, ordered, missed = held.mark.version, self._journal.head(stream), False, set[str]()
        while True:
            clearing, after = list[Commit](), held.mark.version
            for step in until_cleared(stream, self._journal.read(stream, after=after, missed=missed), clearing):
                if any(is_order(commit.data) for commit in step):
                    ordered = True
                    if began.heads:
                        return self._anew(stream)
                held = self._shelf.put(stream.graph, held.lacking(missed), step)
            if not clearing:
                break
            cleared = cleared_by(self._journal, stream, clearing[0], held.mark.cleared)
            held = replace(held.lacking(missed), life=token_hex(16), newest=None)
            held = replace(held, said=Mark(held.mark.commits + 1, cleared, cleared).term)
            self._shelf.empty(stream.graph, held)
        return self._anew(stream) if ordered and self._orders_since(stream, head) else held

    def _orders_since(self, stream: Stream, version: Version) -> bool:
        """Return whether something was redacted after *version*, as far as that can be told."""
        with suppress(NotFound):
            return any(is_order(commit.data) for commit in self._journal.read(stream, after=version))
        return True
