"""The memory of an agent: its named spaces as a value; every change returns a new memory with the next revision.

It also contains the operations on list spaces, and applies changes given as data: all of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

from jidomem.base.json_values import FrozenDict, FrozenList, freeze
from jidomem.errors import InvalidRequest, JidomemError, NotFound, did_you_mean
from jidomem.working.container import (
    DONE,
    LIMITS_KEY,
    OPEN,
    RESERVED_SPACES,
    TASK_STATUSES,
    TASKS,
    WORLD,
    ChangeOptions,
    Container,
    Limits,
    Space,
    SpaceChange,
    Spaces,
    is_list,
    is_map,
    lapsed,
    moment,
    naming_options,
    new_or_given_id,
    updated_metadata,
)

_NO_ID = object()


def id_of(item: Any) -> Any:
    """Return the id of an item, its key or attribute `id`; an object equal to no id if it has none."""
    given_id = item.get("id") if isinstance(item, Mapping) else getattr(item, "id", None)
    return _NO_ID if given_id is None else given_id


def placed(items: Sequence[Any], index: int, item: Any) -> list[Any]:
    """Return the items with *item* inserted at *index*: 0 is the front, an index beyond the end appends; raise
    `InvalidRequest`.
    """
    if type(index) is not int or index < 0:
        raise InvalidRequest(f"an index is a whole number from 0, the front, not {index!r}", hint="0 is the front")
    return FrozenList([*items[:index], freeze(item), *items[index:]])


def without(items: Sequence[Any], item_id: Any, place: str) -> list[Any]:
    """Return the items without those of that id; raise `NotFound` if there is none."""
    _refuse_unknown(items, item_id, place)
    return FrozenList([item for item in items if id_of(item) != item_id])


def replaced(items: Sequence[Any], item_id: Any, fun: Callable[[Any], Any], place: str) -> Sequence[Any]:
    """Return the items with `fun(item)` in place of those of that id; raise `NotFound` if there is none.

    The same list is returned if *fun* returns each item unchanged.
    """
    _refuse_unknown(items, item_id, place)
    after = FrozenList([freeze(fun(item)) if id_of(item) == item_id else item for item in items])
    return items if _same(items, after) else after


def reordered(items: Sequence[Any], ids: Sequence[Any], place: str) -> Sequence[Any]:
    """Return the items of *ids* in that order, then the others in their present order.

    Raise `NotFound` for an unknown id, `InvalidRequest` for a repeated one.
    """
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        raise InvalidRequest(
            f"the order of {place} is a list of ids, not {ids!r:.200}", hint='give the ids in order: ["t2", "t1"]'
        )
    if twice := [item_id for place_, item_id in enumerate(ids) if item_id in ids[:place_]]:
        raise InvalidRequest(f"{twice[0]!r} is repeated in the order of {place}", hint="name each id once")
    for item_id in ids:
        _refuse_unknown(items, item_id, place)
    named = [item for item_id in ids for item in items if id_of(item) == item_id]
    after = FrozenList([*named, *(item for item in items if id_of(item) not in ids)])
    return items if _same(items, after) else after


def new_task(text: str, status: str, task_id: str, items: Sequence[Any]) -> dict[str, str]:
    """Return a new task for *items*; raise `InvalidRequest` if it is invalid or its id is taken."""
    if any(id_of(item) == task_id for item in items):
        raise InvalidRequest(f"there is a task {task_id!r} already", hint="leave the id out for a new one")
    return as_task({"id": task_id, "text": text, "status": status})


def as_task(item: Any) -> dict[str, str]:
    """Return *item* if it is a task with exactly an id, a text and a status; raise `InvalidRequest` if not."""
    if not isinstance(item, Mapping) or set(item) != {"id", "text", "status"}:
        raise InvalidRequest(
            f"a task has id, text and status and nothing else, not {item!r:.200}",
            hint='{"id": "t1", "text": "ship", "status": "open"}',
        )
    for name in ("id", "text"):
        if not isinstance(item[name], str):
            raise InvalidRequest(
                f"the {name} of a task is a text, not {item[name]!r:.200}", hint=f"give {name} as text"
            )
    if not item["id"]:
        raise InvalidRequest("the id of a task has at least one character", hint="leave the id out for a new one")
    if item["status"] not in TASK_STATUSES:
        raise InvalidRequest(
            f"a task is {' or '.join(TASK_STATUSES)}, not {item['status']!r:.200}",
            hint=f"give status={OPEN!r}, or leave it out",
        )
    return {name: item[name] for name in ("id", "text", "status")}


def is_open(item: Any) -> bool:
    """Return whether an item is an open task."""
    return isinstance(item, Mapping) and item.get("status") == OPEN


def merged(items: Sequence[Any], tasks: Sequence[Any]) -> list[Any]:
    """Return the items with each of *tasks* replacing the one with its id, or appended if there is none.

    Raise `InvalidRequest` for an invalid task, and for two with one id.
    """
    given = [as_task(task) for task in tasks]
    by_id = {task["id"]: task for task in given}
    if len(by_id) < len(given):
        raise InvalidRequest("two of the tasks given have the same id", hint="give each task an id of its own")
    ids = {id_of(item) for item in items if isinstance(id_of(item), str)}
    there = [by_id.get(id_of(item), item) if isinstance(id_of(item), str) else item for item in items]
    return [*there, *(task for task in given if task["id"] not in ids)]


def _refuse_unknown(items: Sequence[Any], item_id: Any, place: str) -> None:
    if any(id_of(item) == item_id for item in items):
        return
    known = [repr(id_of(item)) for item in items if id_of(item) is not _NO_ID]
    hint = f"there are {', '.join(known[:10])}" if known else "no item has an id" if items else "it is empty"
    raise NotFound(f"no item of {place} has the id {item_id!r}", hint=hint)


def _same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(old is new for old, new in zip(before, after, strict=True))


class NewTask(SpaceChange, total=False):
    """The options of a new task: also its id, its status, and the source of ids."""

    id: str | None
    status: str
    new_id: Callable[[], str] | None


@naming_options
@dataclass(frozen=True, slots=True)
class Memory(Container):
    """The spaces of an agent by name, with all operations on them.

    A change raises `InvalidRequest` for an invalid argument, `NotFound` for a missing space or item, `RevisionConflict`
    at another revision than expected, and `TooLarge` beyond the limits; the memory itself never changes.

    >>> memory = Memory(id="mem_1").world_put("language", "en").tasks_add("ship", id="t1")
    >>> memory.rev, memory.spaces.world.data, memory.tasks_next()
    (2, {'language': 'en'}, {'id': 't1', 'text': 'ship', 'status': 'open'})
    """

    # Whole spaces

    def space_put(self, name: str, space: Space, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *space*, unchanged, under *name*."""
        if not isinstance(space, Space):
            raise InvalidRequest(f"{name!r} must be a Space, not {space!r:.200}", hint="create one: Space(data)")
        self._expect(name, **change)
        return self._with(name, space, change.get("now"))

    def space_update(self, name: str, fun: Callable[[Space], Space], **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with `fun(space)` under *name*, at the next revision."""
        self._expect(name, **change)
        before = self._known(name)
        after = fun(before)
        if not isinstance(after, Space):
            raise InvalidRequest(
                f"the function for space {name!r} returned {after!r:.200}, not a Space",
                hint="return the new space: lambda space: replace(space, data=[])",
            )
        return self._with(name, replace(after, rev=before.rev + 1), change.get("now"))

    def space_delete(self, name: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without that space; tasks and world cannot be deleted."""
        if name in RESERVED_SPACES:
            raise InvalidRequest(f"space {name!r} is built in and cannot be deleted", hint="empty it instead")
        self._expect(name, **change)
        self._known(name)
        return self._after({other: space for other, space in self.spaces.items() if other != name}, change.get("now"))

    def ensure_space(self, name: str, default_data: Any, **change: Unpack[ChangeOptions]) -> Memory:
        """Return the memory with a space of that name: its own, else a new one with *default_data*."""
        self._expect(name, **change)
        return self if name in self.spaces else self._with(name, Space(default_data), change.get("now"))

    put_space = space_put
    update_space = space_update
    delete_space = space_delete

    # Keys of a map space

    def get_in_space(self, name: str, key: Any, default: Any = None, *, now: int | None = None) -> Any:
        """Return the value of *key* in a map space; *default* if value or space is missing, or the key has expired."""
        return self._alive(name, now).get(key, default)

    def put_in_space(
        self, name: str, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with *value* under *key* of a map space, which expires after *ttl_ms* milliseconds."""
        if ttl_ms is not None and (type(ttl_ms) is not int or ttl_ms <= 0):
            raise InvalidRequest(
                f"ttl_ms is a whole number of milliseconds from 1, not {ttl_ms!r}",
                hint="leave ttl_ms out for a key that does not expire",
            )
        frozen = freeze(value)
        end = None if ttl_ms is None else moment(change.get("now"), self.sources) + ttl_ms
        return self._edit(name, is_map, lambda data: FrozenDict({**data, key: frozen}), (key, end), **change)

    def delete_from_space(self, name: str, key: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without *key* in a map space; the same memory if there is no such key."""

        def drop(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
            return FrozenDict({other: value for other, value in data.items() if other != key}) if key in data else data

        return self._edit(name, is_map, drop, (key, None), **change)

    def update_space_data(
        self, name: str, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with `fun(data)`, a mapping, as the data of a map space."""

        def transform(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
            after = fun(data)
            if not isinstance(after, Mapping):
                raise InvalidRequest(
                    f"the function for map space {name!r} returned {after!r:.200}, not a mapping",
                    hint="return the new mapping: lambda data: {**data, 'key': 'value'}",
                )
            return dict(after)

        return self._edit(name, is_map, transform, **change)

    # Items of a list space

    def append_to_space(self, name: str, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at the end of a list space."""
        return self._edit(name, is_list, lambda data: placed(data, len(data), item), **change)

    def prepend_to_space(self, name: str, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at the front of a list space."""
        return self._edit(name, is_list, lambda data: placed(data, 0, item), **change)

    def insert_in_space(self, name: str, index: int, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at *index* of a list space: 0 is the front, an index beyond the end appends."""
        return self._edit(name, is_list, lambda data: placed(data, index, item), **change)

    def remove_from_space(self, name: str, item_id: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without the item of that id in a list space; raise `NotFound` if there is none."""
        return self._edit(name, is_list, lambda data: without(data, item_id, f"space {name!r}"), **change)

    def update_in_space(
        self, name: str, item_id: Any, fun: Callable[[Any], Any], **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with `fun(item)` in place of the item of that id; raise `NotFound` if there is none."""
        return self._edit(name, is_list, lambda data: replaced(data, item_id, fun, f"space {name!r}"), **change)

    # The world

    def world_get(self, key: Any, default: Any = None, *, now: int | None = None) -> Any:
        """Return the value of *key* in the world, or *default*."""
        return self.get_in_space(WORLD, key, default, now=now)

    def world(self, *, now: int | None = None) -> Mapping[Any, Any]:
        """Return the keys and values of the world."""
        return self._alive(WORLD, now)

    def world_put(self, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *value* under *key* of the world."""
        return self.put_in_space(WORLD, key, value, ttl_ms=ttl_ms, **change)

    def world_delete(self, key: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without *key* in the world."""
        return self.delete_from_space(WORLD, key, **change)

    def world_update(
        self, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with `fun(world)` as the world."""
        return self.update_space_data(WORLD, fun, **change)

    # Tasks

    def tasks(self) -> list[Any]:
        """Return all tasks in order, the next one first, including completed ones."""
        return cast(FrozenList[Any], self._known(TASKS, is_list).data)

    def tasks_open(self) -> list[Any]:
        """Return the open tasks, in order."""
        return FrozenList(filter(is_open, self.tasks()))

    def tasks_next(self) -> Any:
        """Return the first open task, or None."""
        return next(filter(is_open, self.tasks()), None)

    def tasks_add(self, text: str, **options: Unpack[NewTask]) -> Memory:
        """Return the memory with a new task after all others; options: `id`, `status`, `new_id`."""
        return self._add_task(None, text, **options)

    def tasks_insert(self, index: int, text: str, **options: Unpack[NewTask]) -> Memory:
        """Return the memory with a new task at *index*, 0 being the next one; options as for `tasks_add`."""
        return self._add_task(index, text, **options)

    def tasks_complete(self, task_id: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with that task completed, at the same position."""

        def done(task: Any) -> Any:
            return task if as_task(task)["status"] == DONE else {**task, "status": DONE}

        return self.update_in_space(TASKS, task_id, done, **change)

    def tasks_remove(self, task_id: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without that task."""
        return self.remove_from_space(TASKS, task_id, **change)

    def tasks_reorder(self, task_ids: Sequence[str], **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with those tasks first, in that order; the others follow in their present order."""
        return self._edit(TASKS, is_list, lambda data: reordered(data, task_ids, "the tasks"), **change)

    def _add_task(
        self,
        index: int | None,
        text: str,
        *,
        id: str | None = None,  # noqa: A002
        status: str = OPEN,
        new_id: Callable[[], str] | None = None,
        **change: Unpack[SpaceChange],
    ) -> Memory:
        def add(data: Sequence[Any]) -> list[Any]:
            task = new_task(text, status, new_or_given_id("task_", id, new_id or self.sources.new_id), data)
            return placed(data, len(data) if index is None else index, task)

        return self._edit(TASKS, is_list, add, **change)

    # Results, limits, time

    def apply_action_result(self, result: Mapping[str, Any], **change: Unpack[ChangeOptions]) -> Memory:
        """Return the memory with the result of an action: `{"world": {...}, "tasks": [...]}`, either or both.

        Keys of the world are put; a task replaces the one with its id, or is appended.
        """
        if not isinstance(result, Mapping) or (unknown := [key for key in result if key not in RESERVED_SPACES]):
            named = f"{unknown[0]!r}" if isinstance(result, Mapping) else f"{result!r:.200}"
            raise InvalidRequest(
                f"the result of an action has world and tasks, not {named}",
                hint='{"world": {"key": "value"}, "tasks": []}',
            )
        self._expect(**change)
        after, now = self, change.get("now")
        if WORLD in result:
            if not isinstance(result[WORLD], Mapping):
                raise InvalidRequest(
                    f"the world in the result of an action is a mapping, not {result[WORLD]!r:.200}",
                    hint='{"world": {"key": "value"}}',
                )
            if result[WORLD]:
                after = after.world_update(lambda world: {**world, **result[WORLD]}, now=now)
        if TASKS in result:
            if not isinstance(result[TASKS], list | tuple):
                raise InvalidRequest(
                    f"the tasks in the result of an action are a list, not {result[TASKS]!r:.200}",
                    hint='{"tasks": [{"id": "t1", "text": "ship", "status": "open"}]}',
                )
            if result[TASKS]:
                after = after._edit(TASKS, is_list, lambda data: merged(data, result[TASKS]), now=now)
        return after

    def limited(self, limits: Limits | None, **change: Unpack[ChangeOptions]) -> Memory:
        """Return the memory with these *limits*; None removes them. Existing content stays."""
        self._expect(**change)
        others = {name: value for name, value in self.metadata.items() if name != LIMITS_KEY}
        metadata = {**others, LIMITS_KEY: limits.stated()} if limits else others
        return self._after(self.spaces, change.get("now"), metadata=metadata)

    def expire(self, **change: Unpack[ChangeOptions]) -> Memory:
        """Return the memory without expired keys; the same memory if there are none."""
        self._expect(**change)
        now = moment(change.get("now"), self.sources)
        after = self
        for name, space in _unexpired_spaces(self, now).items():
            after = after._with(name, replace(space, rev=space.rev + 1), now)
        return after


_KEY, _VALUE, _SPACE, _ID = "key", "value", "space", "id"
#: Change -> its required fields, in the order of the parameters of its method, and its optional fields.
CHANGES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "world_put": ((_KEY, _VALUE), ("ttl_ms",)),
    "world_delete": ((_KEY,), ()),
    "tasks_add": (("text",), (_ID, "status")),
    "tasks_insert": (("index", "text"), (_ID, "status")),
    "tasks_complete": ((_ID,), ()),
    "tasks_remove": ((_ID,), ()),
    "tasks_reorder": (("ids",), ()),
    "ensure_space": ((_SPACE, "data"), ()),
    "space_delete": ((_SPACE,), ()),
    "put_in_space": ((_SPACE, _KEY, _VALUE), ("ttl_ms",)),
    "delete_from_space": ((_SPACE, _KEY), ()),
    "append_to_space": ((_SPACE, "item"), ()),
    "prepend_to_space": ((_SPACE, "item"), ()),
    "insert_in_space": ((_SPACE, "index", "item"), ()),
    "remove_from_space": ((_SPACE, _ID), ()),
}
#: The most changes in one call: each reads all of its space, and other callers wait meanwhile.
MOST = 1_000
_TEXT, _INTEGER = (str, "text"), (int, "whole number")
_TYPE_OF_FIELD: Mapping[str, tuple[type, str]] = {
    _KEY: _TEXT, _SPACE: _TEXT, _ID: _TEXT, "text": _TEXT, "status": _TEXT, "ids": (list, "list"),
    "index": _INTEGER, "ttl_ms": _INTEGER,
}  # fmt: skip


def applied(memory: Memory, changes: Sequence[Mapping[str, Any]], now: int | None = None) -> Memory:
    """Return *memory* after *changes*, in order: each names its operation in `do` and has the fields of that.

    Raises what the methods of `Memory` raise, with the number of the change; *memory* itself does not change.

    >>> task = {"do": "tasks_add", "text": "ship", "id": "t1"}
    >>> applied(Memory(id="mem_1"), [task, {"do": "tasks_complete", "id": "t1"}]).tasks()
    [{'id': 't1', 'text': 'ship', 'status': 'done'}]
    """
    if isinstance(changes, str | bytes) or not isinstance(changes, Sequence):
        raise InvalidRequest(f"changes are a list, not {changes!r:.200}", hint=_HINT)
    if len(changes) > MOST:
        raise InvalidRequest(
            f"{len(changes):,} changes are more than the limit of {MOST:,} in one call",
            hint="send the rest in another call; ensure_space sets a whole space",
        )
    for number, change in enumerate(changes, 1):
        try:
            memory = _done(memory, change, now)
        except JidomemError as error:
            error.position, error.detail = number - 1, f"change {number}: {error.detail}"
            error.args = (error.detail,)
            raise
    return memory


def unexpired(memory: Memory, now: int | None = None) -> Memory:
    """Return *memory* without expired keys at the same revisions, as others read it; the same if there are none.

    >>> memory = Memory(id="m").world_put("gate", "14", ttl_ms=5, now=0)
    >>> unexpired(memory, 5).spaces.world.data, unexpired(memory, 5).rev, unexpired(memory, 4) is memory
    ({}, 1, True)
    """
    spaces = _unexpired_spaces(memory, moment(now, memory.sources))
    return memory._replaced(spaces=Spaces({**memory.spaces, **spaces})) if spaces else memory


def _unexpired_spaces(memory: Memory, now: int) -> dict[str, Space]:
    """Return the spaces of *memory* that have keys expired at *now*, without these keys, at the same revisions."""
    spaces = {}
    for name, space in memory.spaces.items():
        if over := lapsed(space.metadata, now):
            alive = {key: value for key, value in space.data.items() if key not in over}
            spaces[name] = Space(alive, space.rev, updated_metadata(space.metadata, space.data, alive))
    return spaces


_HINT = 'send [{"do": "world_put", "key": "language", "value": "en"}]'


def _done(memory: Memory, change: Mapping[str, Any], now: int | None) -> Memory:
    if not isinstance(change, Mapping):
        raise InvalidRequest(f"a change is a mapping, not {change!r:.200}", hint=_HINT)
    name = change.get("do")
    if not isinstance(name, str) or name not in CHANGES:
        known = did_you_mean(name, CHANGES, f"there is {', '.join(CHANGES)}")
        raise InvalidRequest(f"do={name!r:.200} is not a change of a memory", hint=known)
    needed, optional = CHANGES[name]
    for field in change:
        if field not in ("do", *needed, *optional):
            takes = ", ".join((*needed, *optional))
            raise InvalidRequest(f"{name} takes no {field!r:.200}", hint=f"it takes {takes}")
    for field in needed:
        if field not in change:
            raise InvalidRequest(f"{name} needs {field}", hint=f"give {', '.join(needed)}")
    for field, value in change.items():
        if field in _TYPE_OF_FIELD and type(value) is not _TYPE_OF_FIELD[field][0]:
            raise InvalidRequest(
                f"{field} of {name} is not a {_TYPE_OF_FIELD[field][1]}: {value!r:.200}",
                hint=f"give {field} as a {_TYPE_OF_FIELD[field][1]}",
            )
    given = {field: change[field] for field in optional if field in change}
    after: Memory = getattr(memory, name)(*(change[field] for field in needed), now=now, **given)
    return after
