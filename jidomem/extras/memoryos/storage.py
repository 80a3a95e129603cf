"""The storage of the tiers in the working state of a root: a row for each page, segment, persona and entry.

A move writes the rows that it changes and is durable before it returns. Beside the tiers of a project are the settings
of its agents and the name of the embedder of their vectors.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar, cast

from jidomem.base.words import slug
from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.config import AgentRecord, Configurations, MemoryOSConfig, ValidatedModel, Vector
from jidomem.extras.memoryos.values import (
    AgentPersona,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
)
from jidomem.records.directive import MemoryUpsert, Step
from jidomem.records.interfaces import StateStore, StateTables
from jidomem.working.container import refuse_stale

#: The places other than segments and personas: the two queues of pages, and the agent itself.
STM, LEAVING, OWN = "stm", "leaving", ""
_CLASS_OF_KIND: Mapping[str, type[Any]] = {
    "page": DialoguePage, "segment": DialogueSegment, "persona": ObjectPersona, "agent": AgentPersona,
    "fact": KnowledgeEntry, "trait": TraitEntry, "entry": SystemEntry,
}  # fmt: skip
#: The fields that are stored in other rows.
_ELSEWHERE = ("embedding", "pages", "knowledge", "traits")
Key = tuple[str, str]


class StoredPart(NamedTuple):
    """One stored value: its kind, its id, its place (queue, segment or persona), and the value."""

    kind: str
    id: str
    place: str
    value: Any

    @property
    def key(self) -> Key:
        """Return the kind and the id, which identify the part."""
        return self.kind, self.id


class PartRow(NamedTuple):
    """A part as a row; `position` is its order among the parts of its place."""

    kind: str
    id: str
    place: str
    position: int
    text: str
    vector: bytes | None


def parts_of(tiers: Tiers, but: Tiers | None = None) -> list[StoredPart]:
    """Return the parts of *tiers*, each queue in its order; without the segments that *but* also has."""
    same = {id(segment) for segment in but.mtm} if but is not None else set()
    pages = _pages(tiers, [segment for segment in tiers.mtm if id(segment) not in same])
    return [*pages, *_personas(tiers), StoredPart("agent", OWN, OWN, tiers.agent), *_traits(OWN, tiers.agent.traits)]


def _pages(tiers: Tiers, segments: Iterable[DialogueSegment]) -> Iterator[StoredPart]:
    for place, pages in ((LEAVING, tiers.leaving), (STM, tiers.stm)):
        yield from (StoredPart("page", page.id, place, page) for page in pages)
    for segment in segments:
        yield StoredPart("segment", segment.id, OWN, segment)
        yield from (StoredPart("page", page.id, segment.id, page) for page in segment.pages)


def _personas(tiers: Tiers) -> Iterator[StoredPart]:
    for persona in tiers.personas:
        key = json.dumps(persona.key, ensure_ascii=False)
        yield StoredPart("persona", key, OWN, persona)
        yield from (StoredPart("fact", fact.id, key, fact) for fact in persona.knowledge)
        yield from _traits(key, persona.traits)


def _traits(place: str, traits: Iterable[TraitEntry]) -> Iterator[StoredPart]:
    return (StoredPart("trait", json.dumps((place, trait.id), ensure_ascii=False), place, trait) for trait in traits)


def system_parts(system: SystemMemory, but: SystemMemory | None = None) -> list[StoredPart]:
    """Return the entries of *system* as parts, including those in *but*: they have one order."""
    return [StoredPart("entry", entry.id, OWN, entry) for entry in system.entries]


def positions_of(parts: Iterable[StoredPart], known: Mapping[Key, int]) -> dict[Key, int]:
    """Return a position for each part, rising in each order: the present one if it fits, else a new highest one."""
    last: dict[tuple[str, str], int] = {}
    newest = max(known.values(), default=0)
    positions = {}
    for part in parts:
        order = part.kind, "" if part.kind == "page" else part.place  # pages move from queue to queue in order
        place = known.get(part.key, 0)
        if place <= last.get(order, 0) and not _in_segment(part):
            newest += 1
            place = newest
        positions[part.key] = place
        if not _in_segment(part):
            last[order] = place
    return positions


def _in_segment(part: StoredPart) -> bool:
    return part.kind == "segment" or (part.kind == "page" and part.value.segment_id is not None)


def row_of(part: StoredPart, position: int) -> PartRow:
    """Return the row of *part*: its JSON without the fields in other rows, and its vector as bytes."""
    emptied: dict[str, Any] = {name: () for name in ("pages", "knowledge", "traits") if hasattr(part.value, name)}
    values = (replace(part.value, **emptied) if emptied else part.value).to_dict()
    vector = getattr(part.value, "embedding", None)
    text = json.dumps({name: value for name, value in values.items() if name not in _ELSEWHERE}, ensure_ascii=False)
    return PartRow(part.kind, part.id, part.place, position, text, None if vector is None else _packed(vector))


def part_of(row: PartRow) -> StoredPart:
    """Return the part in a row, without the fields in other rows; raises InvalidRequest or ValueError for bad data."""
    vector = {} if row.vector is None else {"embedding": _unpacked(row.vector)}
    value: ValidatedModel = _CLASS_OF_KIND[row.kind].from_dict({**json.loads(row.text), **vector})
    return StoredPart(row.kind, row.id, row.place, value)


def _packed(vector: Vector) -> bytes:
    """Return a vector as bytes: as 32-bit floats if no number loses precision, else as 64-bit floats."""
    short = array("f", vector)
    return b"f" + short.tobytes() if tuple(short) == vector else b"d" + array("d", vector).tobytes()


def _unpacked(data: bytes) -> Vector:
    kind = chr(data[0]) if len(data) % 4 == 1 else ""
    if kind not in ("f", "d") or len(data) == 1:
        raise ValueError(f"{len(data)} bytes are no vector")
    vector = Vector(array(kind, data[1:]))
    if not math.isfinite(sum(vector)):  # the sum is not finite if any number is not: faster than a test of each
        raise ValueError("a vector has a value that is not a finite number")
    return vector


def tiers_of(agent_id: str, rev: int, parts: Iterable[StoredPart]) -> Tiers:
    """Return the tiers made of *parts*, given in their order."""
    parts_at: dict[tuple[str, str], list[Any]] = {}
    for part in parts:
        parts_at.setdefault((part.kind, part.place), []).append(part.value)
    segments = [
        _with_parts(each, pages=parts_at.get(("page", each.id), ())) for each in parts_at.get(("segment", OWN), ())
    ]
    personas = []
    for each in parts_at.get(("persona", OWN), ()):
        key = json.dumps(each.key, ensure_ascii=False)
        personas.append(
            _with_parts(each, knowledge=parts_at.get(("fact", key), ()), traits=parts_at.get(("trait", key), ()))
        )
    agent = parts_at.get(("agent", OWN), [AgentPersona(agent_id)])[0]
    return Tiers(
        agent_id,
        rev,
        tuple(parts_at.get(("page", STM), ())),
        tuple(parts_at.get(("page", LEAVING), ())),
        tuple(segments),
        tuple(personas),
        _with_parts(agent, traits=parts_at.get(("trait", OWN), ())),
    )


def system_of(holder: str, rev: int, parts: Iterable[StoredPart]) -> SystemMemory:
    """Return the system memory made of *parts*, given in their order; *holder* is unused."""
    return SystemMemory(rev, tuple(part.value for part in parts))


def _with_parts(value: Any, **given: Iterable[Any]) -> Any:
    return replace(value, **{name: tuple(each) for name, each in given.items()})


M = TypeVar("M", bound=Tiers | SystemMemory)
#: A holder is an agent, or "" for the memory of all agents of a project. `asked` has the pending directives.
TIER_TABLES = """
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
class _CachedHolder(Generic[M]):
    lineage: str
    memory: M
    positions: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TierMove(Generic[M]):
    """A move made in a transaction: the memory before it, and the step."""

    before: M
    step: Step[M]
    seen: _CachedHolder[M]


@dataclass(frozen=True, slots=True)
class HolderFormat(Generic[M]):
    """The format of a holder: its first value, and the functions that split and join its parts.

    `parts` may leave out parts that are identical in a second memory.
    """

    nothing: M
    parts: Callable[[M, M | None], list[StoredPart]]
    whole: Callable[[str, int, Sequence[StoredPart]], M]


class TierStorage(Generic[M]):
    """The stored memory of one holder in one project; its moves are serialised across threads and processes.

    Every call raises the errors of `StateStore`, and Failed for damaged data.
    """

    def __init__(
        self, state: StateStore, project: str, holder: str, form: HolderFormat[M], new_id: Callable[[], str]
    ) -> None:
        """Store the memory in *state* by *form*; *new_id* makes the id of each life of the holder."""
        self.project, self.holder = project, holder
        self._state = state
        self._form = form
        self._new_id = new_id
        self._seen: _CachedHolder[M] | None = None

    def get(self) -> M:
        """Return the present memory of the holder."""
        with self._state.reading() as store:
            return self.read_in(store)

    def update(self, move: Callable[[M], Step[M]], *, expected_rev: int | None = None) -> Step[M]:
        """Return the step that *move* makes of the present memory, once it is durable with its directives.

        Other moves wait meanwhile, so call a model before. Raises RevisionConflict if the memory is not at
        *expected_rev*, InvalidRequest unless *move* returns a step of this holder, and the errors of *move*; then
        nothing has changed.
        """
        with self._state.changing() as store:
            moved = self.move_in(store, move, expected_rev=expected_rev)
        self.cache_move(moved)
        return moved.step

    def move_in(
        self, store: StateTables, move: Callable[[M], Step[M]], *, expected_rev: int | None = None
    ) -> TierMove[M]:
        """Make a move as `update` does, in the caller's transaction; after its commit the caller calls `cache_move`."""
        before = self._read(store)
        refuse_stale(f"the memory of {self.holder or 'all agents'}", expected_rev, before.memory.rev)
        step = move(before.memory)
        self._refuse_other(step, before.memory)
        after = before if step.memory is before.memory else self._write(store, before, step.memory)
        for directive in step.directives:
            self._queue_directive(store, directive)
        return TierMove(before.memory, step, after)

    def read_in(self, store: StateTables | None) -> M:
        """Return the present memory of the holder, in the caller's transaction."""
        return self._form.nothing if store is None else self._read(store).memory

    def cache_move(self, moved: TierMove[M]) -> None:
        """Cache the memory after a move, once its transaction is committed."""
        self._seen = moved.seen

    def pending_directives(self) -> tuple[MemoryUpsert, ...]:
        """Return the directives of moves that are not performed yet, in the order of their ids."""
        with self._state.reading() as store:
            rows = () if store is None else store.execute(_PENDING_DIRECTIVES, (self.project, self.holder)).fetchall()
        return tuple(MemoryUpsert(**json.loads(text)) for (text,) in rows)

    def performed(self, request_id: str) -> None:
        """Remove a performed directive; a missing one is no error."""
        with self._state.changing() as store:
            store.execute(_PERFORMED, (self.project, self.holder, request_id))

    def forget(self) -> bool:
        """Remove the memory of the holder, every byte of it; return whether it existed."""
        with self._state.changing() as store:
            counts = [store.execute(statement, (self.project, self.holder)).rowcount for statement in _FORGOTTEN]
        self._seen = None
        if any(counts):
            self._state.scrub()
        return any(counts)

    def _read(self, store: StateTables) -> _CachedHolder[M]:
        head = store.execute(_HEAD, (self.project, self.holder)).fetchone()
        if head is None:
            return _CachedHolder("", self._form.nothing)
        lineage, rev = head
        seen = self._seen if self._seen is not None and self._seen.lineage == lineage else None
        if seen is not None and seen.memory.rev == rev:
            return seen
        is_known = seen is not None and seen.memory.rev < rev
        known = self._parts(seen.memory) if seen is not None and is_known else {}
        after = seen.memory.rev if seen is not None and is_known else -1
        places = {(kind, id_): at for kind, id_, at in store.execute(_PLACES, (self.project, self.holder))}
        try:
            fresh = [part_of(PartRow(*row)) for row in store.execute(_SINCE, (self.project, self.holder, after))]
            parts = {**known, **{part.key: part for part in fresh}}
            ordered = [parts[key] for key in sorted(places, key=lambda key: places[key])]
            memory = self._form.whole(self.holder, rev, ordered)
        except (ValueError, TypeError, KeyError, RecursionError, InvalidRequest) as error:
            what = f"the stored memory of {self.holder or 'all agents'} is invalid: {error}"
            raise self._state.damaged(what) from error
        self._seen = _CachedHolder(lineage, memory, places)
        return self._seen

    def _parts(self, memory: M, but: M | None = None) -> dict[Key, StoredPart]:
        return {part.key: part for part in self._form.parts(memory, but)}

    def _write(self, store: StateTables, before: _CachedHolder[M], memory: M) -> _CachedHolder[M]:
        old, new = self._parts(before.memory, memory), self._parts(memory, before.memory)
        moved = positions_of(new.values(), before.positions)
        removed = old.keys() - new.keys()
        holder = self.project, self.holder
        for key in removed:
            store.execute(_DELETE_PART, (*holder, *key))
        for key, part in new.items():
            if old.get(key) != part or before.positions.get(key) != moved[key]:
                store.execute(_PUT, (*holder, *row_of(part, moved[key]), memory.rev))
        lineage = before.lineage or self._new_id()
        store.execute(_PUT_HOLDER, (*holder, lineage, memory.rev))
        positions = {key: place for key, place in before.positions.items() if key not in removed} | moved
        return _CachedHolder(lineage, memory, positions)

    def _queue_directive(self, store: StateTables, directive: Any) -> None:
        items = [{"key": each.key, "value": each.value, "embedding": each.embedding} for each in directive.items]
        fields = {"request_id": directive.request_id, "provider": directive.provider, "items": items}
        store.execute(
            _PUT_DIRECTIVE, (self.project, self.holder, directive.request_id, json.dumps(fields, ensure_ascii=False))
        )

    def _refuse_other(self, step: object, before: M) -> None:
        memory = step.memory if isinstance(step, Step) else None
        same = isinstance(memory, type(before)) and getattr(memory, "agent_id", self.holder) == self.holder
        if not same or (memory is not before and cast(M, memory).rev <= before.rev):
            raise InvalidRequest(
                f"a move of the memory of {self.holder or 'all agents'} returns a step of it, not {step!r:.200}",
                hint="let it return what a move returned: lambda tiers: insert(tiers, page, policy)",
            )


def agent_tiers(state: StateStore, project: str, agent: str, new_id: Callable[[], str]) -> TierStorage[Tiers]:
    """Return the storage of an agent's tiers in a project; raises InvalidRequest if its name has no letter or digit."""
    name = slug(agent)
    if not name:
        raise InvalidRequest(f"agent={agent!r} is not a valid name of an agent", hint="give it letters or digits")
    return TierStorage(state, project, name, HolderFormat(Tiers(name), parts_of, tiers_of), new_id)


def system_memory(state: StateStore, project: str, new_id: Callable[[], str]) -> TierStorage[SystemMemory]:
    """Return the storage of the memory that all agents of a project share."""
    return TierStorage(state, project, _ALL, HolderFormat(SystemMemory(), system_parts, system_of), new_id)


def agents_with_tiers(state: StateStore, project: str) -> list[str]:
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
_DELETE_PART = "DELETE FROM memoryos_parts WHERE project = ? AND holder = ? AND kind = ? AND id = ?"
_PUT_HOLDER = """INSERT INTO memoryos_holders VALUES (?, ?, ?, ?)
            ON CONFLICT (project, holder) DO UPDATE SET lineage = excluded.lineage, rev = excluded.rev"""
_PENDING_DIRECTIVES = "SELECT directive FROM memoryos_asked WHERE project = ? AND holder = ? ORDER BY request"
_FORGOTTEN = [
    f"DELETE FROM {table} WHERE project = ? AND holder = ?"
    for table in ("memoryos_holders", "memoryos_parts", "memoryos_asked")
]
_PUT_DIRECTIVE = """INSERT INTO memoryos_asked VALUES (?, ?, ?, ?)
            ON CONFLICT (project, holder, request) DO UPDATE SET directive = excluded.directive"""
_PERFORMED = "DELETE FROM memoryos_asked WHERE project = ? AND holder = ? AND request = ?"


NOTE_TABLES = """
CREATE TABLE IF NOT EXISTS memoryos_notes (
  project TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, held TEXT NOT NULL,
  PRIMARY KEY (project, kind, name)) WITHOUT ROWID;
"""
_PUT_NOTE = """INSERT INTO memoryos_notes VALUES (?, ?, ?, ?)
           ON CONFLICT (project, kind, name) DO UPDATE SET held = excluded.held"""
_TYPE, _AGENT = "type", "agent"


def note(store: StateTables | None, project: str, kind: str, name: str) -> Any:
    """Return the note of a kind and name, in the caller's transaction; None if there is none."""
    sql = "SELECT held FROM memoryos_notes WHERE project = ? AND kind = ? AND name = ?"
    row = store.execute(sql, (project, kind, name)).fetchone() if store is not None else None
    return None if row is None else json.loads(row[0])


def store_note(store: StateTables, project: str, kind: str, name: str, value: Any) -> None:
    """Store a JSON value as the note of a kind and name, or delete the note for None."""
    if value is None:
        store.execute("DELETE FROM memoryos_notes WHERE project = ? AND kind = ? AND name = ?", (project, kind, name))
    else:
        row = (project, kind, name, json.dumps(value, ensure_ascii=False))
        store.execute(_PUT_NOTE, row)


def configurations(store: StateTables | None, project: str, application: MemoryOSConfig) -> Configurations:
    """Return the settings of the agents of a project and of their types, on top of those of the application."""
    sql = "SELECT kind, name, held FROM memoryos_notes WHERE project = ? AND kind IN ('type', 'agent')"
    rows = store.execute(sql, (project,)).fetchall() if store is not None else []
    return Configurations(
        application,
        {name: json.loads(text) for kind, name, text in rows if kind == _TYPE},
        tuple(AgentRecord.from_dict(json.loads(text)) for kind, _, text in rows if kind == _AGENT),
    )


def configure(store: StateTables, project: str, after: Configurations) -> None:
    """Store the settings of agents and of their types."""
    for name, values in after.types.items():
        store_note(store, project, _TYPE, name, dict(values))
    for record in after.agents:
        store_note(store, project, _AGENT, record.agent_id, record.to_dict())
