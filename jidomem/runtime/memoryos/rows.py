"""The tiers of an agent as rows: each page, segment, persona and entry by itself; a move writes what it moved."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from jidomem.memoryos.form import Value, Vector
from jidomem.memoryos.tiers import SystemMemory, Tiers
from jidomem.memoryos.values import (
    AgentPersona,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemEntry,
    TraitEntry,
)

#: What stands in a place of its own: the queues of pages, and the traits of the agent.
STM, LEAVING, OWN = "stm", "leaving", ""
_KINDS: Mapping[str, type[Any]] = {
    "page": DialoguePage, "segment": DialogueSegment, "persona": ObjectPersona, "agent": AgentPersona,
    "fact": KnowledgeEntry, "trait": TraitEntry, "entry": SystemEntry,
}  # fmt: skip
#: What a row of that kind does not hold, as other rows do.
_ELSEWHERE = ("embedding", "pages", "knowledge", "traits")
Key = tuple[str, str]


class Part(NamedTuple):
    """One thing that is held: of what kind, its id, where, whether in an order of its own, and the thing."""

    kind: str
    id: str
    place: str
    value: Any

    @property
    def key(self) -> Key:
        """Return what tells it from the other parts."""
        return self.kind, self.id


class Row(NamedTuple):
    """A part as it is kept; `position` is its order among those of its place."""

    kind: str
    id: str
    place: str
    position: int
    held: str
    vector: bytes | None


def parts_of(tiers: Tiers, but: Tiers | None = None) -> list[Part]:
    """Return what *tiers* hold, part by part, each queue in its order; of segments those that *but* has not."""
    same = {id(segment) for segment in but.mtm} if but is not None else set()
    pages = _pages(tiers, [segment for segment in tiers.mtm if id(segment) not in same])
    return [*pages, *_personas(tiers), Part("agent", OWN, OWN, tiers.agent), *_traits(OWN, tiers.agent.traits)]


def _pages(tiers: Tiers, segments: Iterable[DialogueSegment]) -> Iterator[Part]:
    for place, pages in ((LEAVING, tiers.leaving), (STM, tiers.stm)):
        yield from (Part("page", page.id, place, page) for page in pages)
    for segment in segments:
        yield Part("segment", segment.id, OWN, segment)
        yield from (Part("page", page.id, segment.id, page) for page in segment.pages)


def _personas(tiers: Tiers) -> Iterator[Part]:
    for persona in tiers.personas:
        own = json.dumps(persona.key, ensure_ascii=False)
        yield Part("persona", own, OWN, persona)
        yield from (Part("fact", fact.id, own, fact) for fact in persona.knowledge)
        yield from _traits(own, persona.traits)


def _traits(place: str, traits: Iterable[TraitEntry]) -> Iterator[Part]:
    return (Part("trait", json.dumps((place, trait.id), ensure_ascii=False), place, trait) for trait in traits)


def system_parts(system: SystemMemory, but: SystemMemory | None = None) -> list[Part]:
    """Return the entries of *system*, part by part; those that *but* has, too, as they stand in one order."""
    return [Part("entry", entry.id, OWN, entry) for entry in system.entries]


def positions_of(parts: Iterable[Part], known: Mapping[Key, int]) -> dict[Key, int]:
    """Return a position for each part, rising in each order: the one it has where that will do, else one after all."""
    last: dict[tuple[str, str], int] = {}
    newest = max(known.values(), default=0)
    found = {}
    for part in parts:
        order = part.kind, "" if part.kind == "page" else part.place  # pages leave a queue for another in their order
        place = known.get(part.key, 0)
        if place <= last.get(order, 0) and not _in_segment(part):
            newest += 1
            place = newest
        found[part.key] = place
        if not _in_segment(part):
            last[order] = place
    return found


def _in_segment(part: Part) -> bool:
    return part.kind == "segment" or (part.kind == "page" and part.value.segment_id is not None)


def row_of(part: Part, position: int) -> Row:
    """Return the row that keeps *part*: itself as JSON without what other rows keep, and its vector as bytes."""
    left: dict[str, Any] = {name: () for name in ("pages", "knowledge", "traits") if hasattr(part.value, name)}
    held = (replace(part.value, **left) if left else part.value).to_dict()
    vector = getattr(part.value, "embedding", None)
    text = json.dumps({name: value for name, value in held.items() if name not in _ELSEWHERE}, ensure_ascii=False)
    return Row(part.kind, part.id, part.place, position, text, None if vector is None else _packed(vector))


def part_of(row: Row) -> Part:
    """Return what a row keeps, without what other rows do; raises InvalidRequest and ValueError where it is none."""
    vector = {} if row.vector is None else {"embedding": _unpacked(row.vector)}
    value: Value = _KINDS[row.kind].from_dict({**json.loads(row.held), **vector})
    return Part(row.kind, row.id, row.place, value)


def _packed(vector: Vector) -> bytes:
    """Return a vector as bytes: its numbers in four each where none loses anything by it, else in eight."""
    short = array("f", vector)
    return b"f" + short.tobytes() if tuple(short) == vector else b"d" + array("d", vector).tobytes()


def _unpacked(kept: bytes) -> Vector:
    """Return the vector that `_packed` put into bytes; raises ValueError where they are none."""
    kind = chr(kept[0]) if len(kept) % 4 == 1 else ""
    if kind not in ("f", "d") or len(kept) == 1:
        raise ValueError(f"{len(kept)} bytes are no vector")
    found = Vector(array(kind, kept[1:]))
    if not math.isfinite(sum(found)):  # as it is where any of them is none: faster than to ask each
        raise ValueError("a vector has what is no finite number")
    return found


def tiers_of(agent_id: str, rev: int, parts: Iterable[Part]) -> Tiers:
    """Return the tiers that *parts* make up, given in their order."""
    held: dict[tuple[str, str], list[Any]] = {}
    for part in parts:
        held.setdefault((part.kind, part.place), []).append(part.value)
    segments = [_filled(each, pages=held.get(("page", each.id), ())) for each in held.get(("segment", OWN), ())]
    personas = []
    for each in held.get(("persona", OWN), ()):
        own = json.dumps(each.key, ensure_ascii=False)
        personas.append(_filled(each, knowledge=held.get(("fact", own), ()), traits=held.get(("trait", own), ())))
    agent = held.get(("agent", OWN), [AgentPersona(agent_id)])[0]
    return Tiers(
        agent_id,
        rev,
        tuple(held.get(("page", STM), ())),
        tuple(held.get(("page", LEAVING), ())),
        tuple(segments),
        tuple(personas),
        _filled(agent, traits=held.get(("trait", OWN), ())),
    )


def system_of(holder: str, rev: int, parts: Iterable[Part]) -> SystemMemory:
    """Return the system memory that *parts* make up, given in their order; it has no *holder* of its own."""
    return SystemMemory(rev, tuple(part.value for part in parts))


def _filled(value: Any, **given: Iterable[Any]) -> Any:
    return replace(value, **{name: tuple(each) for name, each in given.items()})
