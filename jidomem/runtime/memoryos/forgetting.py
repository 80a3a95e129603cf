"""A page that is forgotten at a root: out of the tiers, system memory, the archive and what waits to be archived."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.keeping import Store
from jidomem.memoryos.forgetting import Forgetting, archived_without
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import SystemMemory, Tiers
from jidomem.memoryos.values import DialoguePage, DialogueSegment
from jidomem.runtime.memoryos.jobs import Task

_ARCHIVED = """SELECT namespace, key, value FROM key_values
               WHERE substr(namespace, 1, length(?)) = ? AND substr(key, 1, length(?)) = ?"""
_KEPT = "UPDATE key_values SET value = ? WHERE namespace = ? AND key = ?"
_GONE = "DELETE FROM key_values WHERE namespace = ? AND key = ?"
_WAITING = "SELECT request, directive FROM memoryos_asked WHERE project = ? AND holder = ?"
_LEFT = "UPDATE memoryos_asked SET directive = ? WHERE project = ? AND holder = ? AND request = ?"
_DONE = "DELETE FROM memoryos_asked WHERE project = ? AND holder = ? AND request = ?"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What went with a page: where it was (`stm`, `leaving`, `archive` or a segment's id), and what it had led to.

    `facts`, `traits` and `system` are the ids of entries that rested on it. `promoted` are the memories of the project
    that such facts became: they are in the journal, and stay there until they are withdrawn or redacted.
    """

    page: str
    was_in: tuple[str, ...]
    facts: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value
                for name in self.__slots__}  # fmt: skip


def forgotten(
    page_id: str,
    tiers: tuple[Tiers, Tiers],
    system: tuple[SystemMemory, SystemMemory],
    archived: bool,
    promoted: Mapping[str, str],
) -> Forgotten:
    """Return what went with a page, of what there was before and what is left."""
    before, after = tiers
    places = [name for name in ("stm", "leaving") if any(page.id == page_id for page in getattr(before, name))]
    places += [segment.id for segment in before.mtm if any(page.id == page_id for page in segment.pages)]
    facts = _gone(_facts(before), _facts(after))
    entries = [[entry.id for entry in each.entries] for each in system]
    return Forgotten(
        page_id,
        (*places, *(["archive"] if archived else [])),
        facts,
        _gone(_traits(before), _traits(after)),
        _gone(*entries),
        tuple(promoted[fact] for fact in facts if promoted.get(fact)),
    )


def following(before: Tiers, after: Tiers) -> list[Task]:
    """Return what is to be done again: chains of pages, summaries of segments, lessons of pages that count anew."""
    chained = {page.id for page in before.pages() if page.meta_chain is not None}
    tasks = [Task("describe", page.id) for page in sorted(after.pages(), key=lambda page: page.when)
             if page.meta_chain is None and page.id in chained]  # fmt: skip
    known = {segment.id: segment for segment in before.mtm}
    for segment in after.mtm:
        was = known.get(segment.id, segment)
        if was.page_count != segment.page_count:
            tasks.append(Task("retell", segment.id))
        taught = {page.id for page in was.pages if page.analysed}
        if any(page.id in taught and not page.analysed for page in segment.pages):
            tasks.append(Task("teach", segment.id))
    return tasks


@dataclass(frozen=True, slots=True)
class Archive:
    """The archived segments of an agent that the root holds: those that are kept, and those that wait to be."""

    store: Store
    project: str
    agent: str

    def pages(self) -> Iterator[DialoguePage]:
        """Yield the pages of all of them."""
        waiting = (item["value"] for _, directive in self._waiting() for item in directive["items"])
        for value in (*(value for _, _, value in self._rows()), *waiting):
            if (segment := _segment(value)) is not None:
                yield from segment.pages

    def take_out(self, gone: Forgetting, policy: Policy) -> bool:
        """Return whether a page was in one of them; it is in none now, nor is a chain that goes on from it."""
        found = False
        for namespace, key, value in self._rows():
            left, had = _without(value, gone, policy)
            found |= had
            if left is None:
                self.store.execute(_GONE, (namespace, key))
            elif left is not value:
                self.store.execute(_KEPT, (_json(left), namespace, key))
        for request, directive in self._waiting():
            items = []
            for item in directive["items"]:
                left, had = _without(item["value"], gone, policy)
                found |= had
                if left is not None:
                    items.append(item if left is item["value"] else {**item, "value": left, "embedding": None})
            row = self.project, self.agent, request
            if not items:
                self.store.execute(_DONE, row)
            elif items != directive["items"]:
                self.store.execute(_LEFT, (_json({**directive, "items": items}), *row))
        return found

    def _rows(self) -> list[tuple[str, str, Any]]:
        of, own = f"{self.project}/", f"memoryos:{self.agent}:"
        return [
            (namespace, key, json.loads(text))
            for namespace, key, text in self.store.execute(_ARCHIVED, (of, of, own, own))
        ]

    def _waiting(self) -> list[tuple[str, Any]]:
        found = self.store.execute(_WAITING, (self.project, self.agent))
        return [(request, json.loads(text)) for request, text in found]


def _segment(value: Any) -> DialogueSegment | None:
    """Return the segment that a value is, None where it is none, as another may have put it there."""
    with suppress(InvalidRequest):
        return DialogueSegment.from_dict(value)
    return None


def _without(value: Any, gone: Forgetting, policy: Policy) -> tuple[Any, bool]:
    """Return what is left of an archived value without a page, the very same where it has none, and whether it had."""
    segment = _segment(value)
    if segment is None:
        return value, False
    left = archived_without(segment, gone, policy)
    had = any(page.id == gone.page_id for page in segment.pages)
    return (value if left is segment else left and left.to_dict()), had


def _facts(tiers: Tiers) -> list[str]:
    return [fact.id for persona in tiers.personas for fact in persona.knowledge]


def _traits(tiers: Tiers) -> list[str]:
    theirs = (trait for persona in tiers.personas for trait in persona.traits)
    return [trait.id for trait in (*theirs, *tiers.agent.traits)]


def _gone(before: list[str], after: list[str]) -> tuple[str, ...]:
    left = set(after)
    return tuple(each for each in before if each not in left)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
