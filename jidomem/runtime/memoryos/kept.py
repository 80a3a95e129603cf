"""The tiers of agents, kept in the working state of a root: each move is on disk, whole, before it is told of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from jidomem.directive import MemoryUpsert
from jidomem.errors import InvalidRequest
from jidomem.keeping import Keeping, Store
from jidomem.memoryos.tiers import SystemMemory, Tiers
from jidomem.runtime.memoryos.rows import (
    Key,
    Part,
    Row,
    part_of,
    parts_of,
    positions_of,
    row_of,
    system_of,
    system_parts,
    tiers_of,
)
from jidomem.spaces.container import refuse_stale
from jidomem.spaces.step import Step
from jidomem.words import slug

M = TypeVar("M", bound=Tiers | SystemMemory)
#: A holder is an agent, or nobody for what all agents of a project may know. `asked` are the directives of moves that
#: nobody performed yet.
TABLES = """
CREATE TABLE IF NOT EXISTS memoryos_holders (
  project TEXT NOT NULL, holder TEXT NOT NULL, lineage TEXT NOT NULL, rev INTEGER NOT NULL,
  PRIMARY KEY (project, holder)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS memoryos_parts (
  project TEXT NOT NULL, holder TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, place TEXT NOT NULL,
  position INTEGER NOT NULL, held TEXT NOT NULL, vector BLOB, rev INTEGER NOT NULL,
  PRIMARY KEY (project, holder, kind, id));
CREATE INDEX IF NOT EXISTS memoryos_places ON memoryos_parts (project, holder, rev, kind, id, position);
CREATE TABLE IF NOT EXISTS memoryos_asked (
  project TEXT NOT NULL, holder TEXT NOT NULL, request TEXT NOT NULL, directive TEXT NOT NULL,
  PRIMARY KEY (project, holder, request)) WITHOUT ROWID;
"""
_ALL = ""


@dataclass(frozen=True, slots=True)
class _Held(Generic[M]):
    """What was last seen of a holder: which life of it, its memory, and where the parts of that stand."""

    lineage: str
    memory: M
    positions: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved(Generic[M]):
    """A move that was made in a transaction: what there was before, and the step."""

    before: M
    step: Step[M]
    seen: _Held[M]


@dataclass(frozen=True, slots=True)
class Form(Generic[M]):
    """How what a holder has is kept: what it is at first, and how it is taken to parts and put together again.

    `parts` may leave out what is the very same in a second memory.
    """

    nothing: M
    parts: Callable[[M, M | None], list[Part]]
    whole: Callable[[str, int, Sequence[Part]], M]


class Kept(Generic[M]):
    """What one holder has in one project; any number of threads and processes move it, one after the other.

    Every call raises what `Keeping` raises where the file cannot be read or written, and Failed for what is no memory.
    """

    def __init__(self, state: Keeping, project: str, holder: str, form: Form[M], new_id: Callable[[], str]) -> None:
        """Keep it in *state*, in that *form*; *new_id* tells one life of a holder from another."""
        self.project, self.holder = project, holder
        self._state = state
        self._form = form
        self._new_id = new_id
        self._seen: _Held[M] | None = None

    def get(self) -> M:
        """Return what the holder has now."""
        with self._state.reading() as store:
            return self.read_in(store)

    def update(self, move: Callable[[M], Step[M]], *, expected_rev: int | None = None) -> Step[M]:
        """Return the step that *move* makes of what the holder has now, once it is on disk with its directives.

        Nobody else moves anything meanwhile: a model is asked before. Raises RevisionConflict if the memory is not at
        *expected_rev*, InvalidRequest unless *move* gives a step of this holder, and what *move* raises: then nothing
        has changed.
        """
        with self._state.changing() as store:
            moved = self.move_in(store, move, expected_rev=expected_rev)
        self.saw(moved)
        return moved.step

    def move_in(self, store: Store, move: Callable[[M], Step[M]], *, expected_rev: int | None = None) -> Moved[M]:
        """Make a move as `update` does, in a transaction of the state that is the caller's, who then tells `saw`."""
        before = self._read(store)
        refuse_stale(f"the memory of {self.holder or 'all agents'}", expected_rev, before.memory.rev)
        step = move(before.memory)
        self._refuse_other(step, before.memory)
        after = before if step.memory is before.memory else self._write(store, before, step.memory)
        for directive in step.directives:
            self._ask(store, directive)
        return Moved(before.memory, step, after)

    def read_in(self, store: Store | None) -> M:
        """Return what the holder has now, in a transaction of the state that is the caller's."""
        return self._form.nothing if store is None else self._read(store).memory

    def saw(self, moved: Moved[M]) -> None:
        """Go on from a move, once its transaction is over and on disk."""
        self._seen = moved.seen

    def asked(self) -> tuple[MemoryUpsert, ...]:
        """Return the directives of moves that nobody performed yet, in the order of their ids."""
        with self._state.reading() as store:
            rows = () if store is None else store.execute(_ASKED, (self.project, self.holder)).fetchall()
        return tuple(MemoryUpsert(**json.loads(text)) for (text,) in rows)

    def performed(self, request_id: str) -> None:
        """Let go of a directive that was performed; one that is gone already is no error."""
        with self._state.changing() as store:
            store.execute(_PERFORMED, (self.project, self.holder, request_id))

    def forget(self) -> bool:
        """Return whether the holder had anything; it has nothing now, and no byte of it is in the file."""
        with self._state.changing() as store:
            counts = [store.execute(gone, (self.project, self.holder)).rowcount for gone in _FORGOTTEN]
        self._seen = None
        if any(counts):
            self._state.scrub()
        return any(counts)

    def _read(self, store: Store) -> _Held[M]:
        """Return what the holder has, reading no more than what changed since it was last seen."""
        head = store.execute(_HEAD, (self.project, self.holder)).fetchone()
        if head is None:
            return _Held("", self._form.nothing)
        lineage, rev = head
        seen = self._seen if self._seen is not None and self._seen.lineage == lineage else None
        if seen is not None and seen.memory.rev == rev:
            return seen
        is_known = seen is not None and seen.memory.rev < rev
        known = self._parts(seen.memory) if seen is not None and is_known else {}
        after = seen.memory.rev if seen is not None and is_known else -1
        places = {(kind, id_): at for kind, id_, at in store.execute(_PLACES, (self.project, self.holder))}
        try:
            fresh = [part_of(Row(*row)) for row in store.execute(_SINCE, (self.project, self.holder, after))]
            parts = {**known, **{part.key: part for part in fresh}}
            ordered = [parts[key] for key in sorted(places, key=lambda key: places[key])]
            memory = self._form.whole(self.holder, rev, ordered)
        except (ValueError, TypeError, KeyError, RecursionError, InvalidRequest) as error:
            what = f"what is kept of {self.holder or 'all agents'} is no memory: {error}"
            raise self._state.damaged(what) from error
        self._seen = _Held(lineage, memory, places)
        return self._seen

    def _parts(self, memory: M, but: M | None = None) -> dict[Key, Part]:
        return {part.key: part for part in self._form.parts(memory, but)}

    def _write(self, store: Store, before: _Held[M], memory: M) -> _Held[M]:
        """Write the parts in which *memory* is another, and return what is there then."""
        old, new = self._parts(before.memory, memory), self._parts(memory, before.memory)
        moved = positions_of(new.values(), before.positions)
        gone = old.keys() - new.keys()
        holder = self.project, self.holder
        for key in gone:
            store.execute(_GONE, (*holder, *key))
        for key, part in new.items():
            if old.get(key) != part or before.positions.get(key) != moved[key]:
                store.execute(_PUT, (*holder, *row_of(part, moved[key]), memory.rev))
        lineage = before.lineage or self._new_id()
        store.execute(_MOVED, (*holder, lineage, memory.rev))
        positions = {key: place for key, place in before.positions.items() if key not in gone} | moved
        return _Held(lineage, memory, positions)

    def _ask(self, store: Store, directive: Any) -> None:
        items = [{"key": each.key, "value": each.value, "embedding": each.embedding} for each in directive.items]
        fields = {"request_id": directive.request_id, "provider": directive.provider, "items": items}
        store.execute(_TO_DO, (self.project, self.holder, directive.request_id, json.dumps(fields, ensure_ascii=False)))

    def _refuse_other(self, step: object, before: M) -> None:
        memory = step.memory if isinstance(step, Step) else None
        same = isinstance(memory, type(before)) and getattr(memory, "agent_id", self.holder) == self.holder
        if not same or (memory is not before and cast(M, memory).rev <= before.rev):
            raise InvalidRequest(
                f"a move of what {self.holder or 'all agents'} hold gives a step of that, not {step!r:.200}",
                hint="let it return what a move returned: lambda tiers: insert(tiers, page, policy)",
            )


def agent_tiers(state: Keeping, project: str, agent: str, new_id: Callable[[], str]) -> Kept[Tiers]:
    """Return the tiers of an agent in a project; raises InvalidRequest for a name of which nothing is left."""
    name = slug(agent)
    if not name:
        raise InvalidRequest(f"agent={agent!r} is no name of an agent", hint="give it letters or digits")
    return Kept(state, project, name, Form(Tiers(name), parts_of, tiers_of), new_id)


def system_memory(state: Keeping, project: str, new_id: Callable[[], str]) -> Kept[SystemMemory]:
    """Return what all agents of a project may know."""
    return Kept(state, project, _ALL, Form(SystemMemory(), system_parts, system_of), new_id)


def agents_with_tiers(state: Keeping, project: str) -> list[str]:
    """Return the agents that have tiers in *project*, by name."""
    with state.reading() as store:
        return [] if store is None else [name for (name,) in store.execute(_HOLDERS, (project, _ALL))]


_HEAD = "SELECT lineage, rev FROM memoryos_holders WHERE project = ? AND holder = ?"
_HOLDERS = "SELECT holder FROM memoryos_holders WHERE project = ? AND holder <> ? ORDER BY holder"
_PLACES = "SELECT kind, id, position FROM memoryos_parts INDEXED BY memoryos_places WHERE project = ? AND holder = ?"
_SINCE = """SELECT kind, id, place, position, held, vector FROM memoryos_parts
            WHERE project = ? AND holder = ? AND rev > ?"""
_PUT = """INSERT INTO memoryos_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
          ON CONFLICT (project, holder, kind, id) DO UPDATE SET place = excluded.place, position = excluded.position,
            held = excluded.held, vector = excluded.vector, rev = excluded.rev"""
_GONE = "DELETE FROM memoryos_parts WHERE project = ? AND holder = ? AND kind = ? AND id = ?"
_MOVED = """INSERT INTO memoryos_holders VALUES (?, ?, ?, ?)
            ON CONFLICT (project, holder) DO UPDATE SET lineage = excluded.lineage, rev = excluded.rev"""
_ASKED = "SELECT directive FROM memoryos_asked WHERE project = ? AND holder = ? ORDER BY request"
_FORGOTTEN = [
    f"DELETE FROM {table} WHERE project = ? AND holder = ?"
    for table in ("memoryos_holders", "memoryos_parts", "memoryos_asked")
]
_TO_DO = """INSERT INTO memoryos_asked VALUES (?, ?, ?, ?)
            ON CONFLICT (project, holder, request) DO UPDATE SET directive = excluded.directive"""
_PERFORMED = "DELETE FROM memoryos_asked WHERE project = ? AND holder = ? AND request = ?"
