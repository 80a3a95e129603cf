"""Redaction in the working state: what agents hold, and what is kept for them, loses the texts that are to go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from jidomem.errors import JidomemError
from jidomem.keeping import Keeping, Store
from jidomem.spaces.names import RESERVED_SPACES

#: What stands where a text stood.
GONE = "[redacted]"
_HOLDERS = "memoryos_holders"
Shows = Callable[[str], bool]


def redact_held(state: Keeping, project: str, shows: Shows, *, dry_run: bool = False) -> dict[str, int]:
    """Take each text that *shows* says yes to out of what the agents of *project* hold, to the last byte of the file.

    A value that was one is `GONE`, a key that was one goes with what stood under it, and each revision moves. What
    cannot be taken out, as another process writes to the file, is still there. Return how many entries of each kind
    changed, or with *dry_run* would change; nothing is touched then.
    """
    changes: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}
    with suppress(JidomemError):
        with state.reading() as store:
            if store is None:
                return {}
            if dry_run:
                changes = _changes(store, project, shows)
        if not dry_run:
            with state.changing() as store:
                found = _changes(store, project, shows)
                for statement, row in chain.from_iterable(found.values()):
                    store.execute(statement, row)
            changes = found
            if any(found.values()):
                state.scrub()
    counts = {kind: sum(_HOLDERS not in statement for statement, _ in rows) for kind, rows in changes.items()}
    return {kind: count for kind, count in counts.items() if count}


def _changes(store: Store, project: str, shows: Shows) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Return the statements that take the texts out, by the kind of entry they change."""
    kinds = {
        "working memories": _memories,
        "stored values": _kept,
        "parts of MemoryOS": _tiers,
        "pending directives": _asked,
        "settings and notes": _notes,
        "jobs": _jobs,
    }
    return {kind: [*changes(store, project, shows)] for kind, changes in kinds.items()}


def _memories(store: Store, project: str, shows: Shows) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield what changes the memories of agents that show one."""
    rows = store.execute("SELECT agent, memory FROM agents WHERE project = ?", (project,)).fetchall()
    for agent, text in rows:
        if shows(agent):
            yield "DELETE FROM agents WHERE project = ? AND agent = ?", (project, agent)
        elif (left := _memory(json.loads(text), shows)) is not None:
            yield "UPDATE agents SET memory = ? WHERE project = ? AND agent = ?", (_json(left), project, agent)


def _memory(held: dict[str, Any], shows: Shows) -> dict[str, Any] | None:
    """Return a memory without what shows a text, None where nothing of it does."""
    spaces = {}
    for name, space in held["spaces"].items():
        if name in RESERVED_SPACES or not shows(name):
            left = {**space, "data": _without(space["data"], shows), "metadata": _without(space["metadata"], shows)}
            spaces[name] = {**left, "rev": space["rev"] + 1} if left != space else space
    left = {**held, "spaces": spaces, "metadata": _without(held["metadata"], shows)}
    return {**left, "rev": held["rev"] + 1} if left != held else None


def _kept(store: Store, project: str, shows: Shows) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what changes the values that are kept for agents and show one."""
    rows = store.execute("SELECT namespace, key, value FROM key_values").fetchall()
    for namespace, key, text in rows:
        if not namespace.startswith(f"{project}/"):
            continue
        value = json.loads(text)
        if shows(key) or shows(namespace):
            yield "DELETE FROM key_values WHERE namespace = ? AND key = ?", (namespace, key)
        elif (left := _without(value, shows)) != value:
            left = _bare(left) if key.startswith("memoryos:") else left  # a segment that was archived
            yield "UPDATE key_values SET value = ? WHERE namespace = ? AND key = ?", (_json(left), namespace, key)


def _tiers(store: Store, project: str, shows: Shows) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield what changes the parts of tiers that show one, with their vectors, and moves who holds them."""
    asked = "SELECT holder, kind, id, place, held FROM memoryos_parts WHERE project = ?"
    moved: dict[str, None] = {}
    for holder, kind, id_, place, text in store.execute(asked, (project,)).fetchall():
        held, row = json.loads(text), (project, holder, kind, id_)
        if shows(holder) or any(map(shows, _names(id_, place))):
            yield f"DELETE FROM memoryos_parts WHERE {_PART}", row
        elif (left := _without(held, shows)) != held:
            change = f"UPDATE memoryos_parts SET held = ?, vector = NULL, rev = {_NEXT} WHERE {_PART}"
            yield change, (_json(left), project, holder, *row)
        else:
            continue
        moved[holder] = None
    for holder in moved:
        yield f"UPDATE {_HOLDERS} SET rev = rev + 1 WHERE project = ? AND holder = ?", (project, holder)
        if shows(holder):
            yield f"DELETE FROM {_HOLDERS} WHERE project = ? AND holder = ?", (project, holder)


_PART = "project = ? AND holder = ? AND kind = ? AND id = ?"
_NEXT = "(SELECT rev + 1 FROM memoryos_holders WHERE project = ? AND holder = ?)"


def _names(*written: str) -> Iterator[str]:
    """Yield the texts of which an id is made: some are lists, written as JSON."""
    for text in written:
        found = json.loads(text) if text.startswith("[") else text
        yield from _names(*found) if isinstance(found, list) else [text]


def _asked(store: Store, project: str, shows: Shows) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what changes the directives that wait and show one; their vectors go."""
    rows = store.execute(
        "SELECT holder, request, directive FROM memoryos_asked WHERE project = ?", (project,)
    ).fetchall()
    for holder, request, text in rows:
        directive = json.loads(text)
        if (left := _without(directive, shows)) != directive:
            left["items"] = [{**item, "embedding": None, "value": _bare(item["value"])} for item in left["items"]]
            change = "UPDATE memoryos_asked SET directive = ? WHERE project = ? AND holder = ? AND request = ?"
            yield change, (_json(left), project, holder, request)


def _notes(store: Store, project: str, shows: Shows) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what changes what is set and noted for agents and shows one."""
    asked = "SELECT kind, name, held FROM memoryos_notes WHERE project = ?"
    for kind, name, text in store.execute(asked, (project,)).fetchall():
        row, held = (project, kind, name), json.loads(text)
        if shows(name):
            yield "DELETE FROM memoryos_notes WHERE project = ? AND kind = ? AND name = ?", row
        elif (left := _without(held, shows)) != held:
            change = "UPDATE memoryos_notes SET held = ? WHERE project = ? AND kind = ? AND name = ?"
            yield change, (_json(left), *row)


def _jobs(store: Store, project: str, shows: Shows) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield what changes the jobs of agents: what they failed with may quote one, what they are about has ids alone."""
    for job, agent, error in store.execute(
        "SELECT id, agent, error FROM jobs WHERE project = ?", (project,)
    ).fetchall():
        if shows(agent):
            yield "DELETE FROM jobs WHERE id = ?", (job,)
        elif error is not None and shows(error):
            yield "UPDATE jobs SET error = ? WHERE id = ?", (GONE, job)


def _bare(value: Any) -> Any:
    """Return a value without vectors."""
    if isinstance(value, dict):
        return {key: None if key == "embedding" else _bare(each) for key, each in value.items()}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _without(value: Any, shows: Shows) -> Any:
    if isinstance(value, str):
        return GONE if shows(value) else value
    if isinstance(value, list):
        return [_without(each, shows) for each in value]
    if isinstance(value, dict):
        return {key: _without(each, shows) for key, each in value.items() if not shows(key)}
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
