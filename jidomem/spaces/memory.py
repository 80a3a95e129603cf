"""A memory: the named spaces an agent holds, as a value; every change makes a new one, a revision further on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

from jidomem.errors import InvalidRequest
from jidomem.frozen import FrozenDict, FrozenList, freeze
from jidomem.spaces import items
from jidomem.spaces.container import Change, Container, SpaceChange, naming_options
from jidomem.spaces.limits import LIMITS_KEY, Limits, kept, lapsed
from jidomem.spaces.names import DONE, OPEN, RESERVED_SPACES, TASKS, WORLD
from jidomem.spaces.sources import fresh, moment
from jidomem.spaces.value import Space, is_list, is_map


class NewTask(SpaceChange, total=False):
    """What a new task may be told besides: its id, its status, who mints its id."""

    id: str | None
    status: str
    new_id: Callable[[], str] | None


@naming_options
@dataclass(frozen=True, slots=True)
class Memory(Container):
    """The spaces of an agent by name, and all that can be done with them.

    A change raises `InvalidRequest` for what does not fit, `NotFound` for what is not there, `RevisionConflict` where
    another revision was expected, and `TooLarge` beyond the limits of the memory, which stays as it was.

    >>> memory = Memory(id="mem_1").world_put("language", "en").tasks_add("ship", id="t1")
    >>> memory.rev, memory.spaces.world.data, memory.tasks_next()
    (2, {'language': 'en'}, {'id': 't1', 'text': 'ship', 'status': 'open'})
    """

    # Whole spaces

    def space_put(self, name: str, space: Space, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *space*, as it is, under *name*."""
        if not isinstance(space, Space):
            raise InvalidRequest(f"{name!r} is to be a Space, not {space!r:.200}", hint="make one: Space(data)")
        self._expect(name, **change)
        return self._with(name, space, change.get("now"))

    def space_update(self, name: str, fun: Callable[[Space], Space], **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with `fun(space)` under *name*, one revision after the one that was there."""
        self._expect(name, **change)
        before = self._known(name)
        after = fun(before)
        if not isinstance(after, Space):
            raise InvalidRequest(
                f"the function for space {name!r} gave {after!r:.200}, not a Space",
                hint="return the new space: lambda space: replace(space, data=[])",
            )
        return self._with(name, replace(after, rev=before.rev + 1), change.get("now"))

    def space_delete(self, name: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without that space; tasks and world cannot go."""
        if name in RESERVED_SPACES:
            raise InvalidRequest(f"space {name!r} is built in and cannot be deleted", hint="empty it instead")
        self._expect(name, **change)
        self._known(name)
        return self._after({held: space for held, space in self.spaces.items() if held != name}, change.get("now"))

    def ensure_space(self, name: str, default_data: Any, **change: Unpack[Change]) -> Memory:
        """Return the memory with a space of that name: the one it has, else a new one of *default_data*."""
        self._expect(name, **change)
        return self if name in self.spaces else self._with(name, Space(default_data), change.get("now"))

    put_space = space_put
    update_space = space_update
    delete_space = space_delete

    # Keys of a map space

    def get_in_space(self, name: str, key: Any, default: Any = None, *, now: int | None = None) -> Any:
        """Return what a map space holds under *key*; *default* if nothing, if its time is up or without the space."""
        return self._alive(name, now).get(key, default)

    def put_in_space(
        self, name: str, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with *value* under *key* of a map space, for *ttl_ms* milliseconds if that is given."""
        if ttl_ms is not None and (type(ttl_ms) is not int or ttl_ms <= 0):
            raise InvalidRequest(
                f"ttl_ms is a whole number of milliseconds from 1, not {ttl_ms!r}",
                hint="leave ttl_ms out to keep it for good",
            )
        held = freeze(value)
        end = None if ttl_ms is None else moment(change.get("now")) + ttl_ms
        return self._edit(name, is_map, lambda data: FrozenDict({**data, key: held}), (key, end), **change)

    def delete_from_space(self, name: str, key: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without *key* in a map space; itself if it is not there."""

        def drop(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
            return FrozenDict({held: value for held, value in data.items() if held != key}) if key in data else data

        return self._edit(name, is_map, drop, (key, None), **change)

    def update_space_data(
        self, name: str, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with `fun(data)`, a mapping, as all that a map space holds."""

        def transform(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
            after = fun(data)
            if not isinstance(after, Mapping):
                raise InvalidRequest(
                    f"the function for map space {name!r} gave {after!r:.200}, not a mapping",
                    hint="return the new mapping: lambda data: {**data, 'key': 'value'}",
                )
            return dict(after)

        return self._edit(name, is_map, transform, **change)

    # Items of a list space

    def append_to_space(self, name: str, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at the end of a list space."""
        return self._edit(name, is_list, lambda data: items.placed(data, len(data), item), **change)

    def prepend_to_space(self, name: str, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at the front of a list space."""
        return self._edit(name, is_list, lambda data: items.placed(data, 0, item), **change)

    def insert_in_space(self, name: str, index: int, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at *index* of a list space: 0 is the front, beyond the end is the end."""
        return self._edit(name, is_list, lambda data: items.placed(data, index, item), **change)

    def remove_from_space(self, name: str, item_id: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without the item of that id in a list space; raise `NotFound` if there is none."""
        return self._edit(name, is_list, lambda data: items.without(data, item_id, f"space {name!r}"), **change)

    def update_in_space(
        self, name: str, item_id: Any, fun: Callable[[Any], Any], **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with `fun(item)` in the place of the item of that id; raise `NotFound` if there is none."""
        return self._edit(name, is_list, lambda data: items.replaced(data, item_id, fun, f"space {name!r}"), **change)

    # The world

    def world_get(self, key: Any, default: Any = None, *, now: int | None = None) -> Any:
        """Return what the world holds under *key*, or *default*."""
        return self.get_in_space(WORLD, key, default, now=now)

    def world(self, *, now: int | None = None) -> Mapping[Any, Any]:
        """Return all the world holds."""
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
        """Return all tasks, the first being the first to do, those done included."""
        return cast(FrozenList[Any], self._known(TASKS, is_list).data)

    def tasks_open(self) -> list[Any]:
        """Return the tasks still to be done, in order."""
        return FrozenList(filter(items.is_open, self.tasks()))

    def tasks_next(self) -> Any:
        """Return the first task still to be done, or None."""
        return next(filter(items.is_open, self.tasks()), None)

    def tasks_add(self, text: str, **options: Unpack[NewTask]) -> Memory:
        """Return the memory with a new task after all others; options: `id`, `status`, `new_id`."""
        return self._add_task(None, text, **options)

    def tasks_insert(self, index: int, text: str, **options: Unpack[NewTask]) -> Memory:
        """Return the memory with a new task at *index*, 0 being the first to do; options as of `tasks_add`."""
        return self._add_task(index, text, **options)

    def tasks_complete(self, task_id: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with that task done, where it stands."""

        def done(task: Any) -> Any:
            return task if items.as_task(task)["status"] == DONE else {**task, "status": DONE}

        return self.update_in_space(TASKS, task_id, done, **change)

    def tasks_remove(self, task_id: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without that task."""
        return self.remove_from_space(TASKS, task_id, **change)

    def tasks_reorder(self, task_ids: Sequence[str], **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with those tasks first, in that order; the others follow in the order they had."""
        return self._edit(TASKS, is_list, lambda data: items.reordered(data, task_ids, "the tasks"), **change)

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
            task = items.new_task(text, status, fresh("task_", id, new_id), data)
            return items.placed(data, len(data) if index is None else index, task)

        return self._edit(TASKS, is_list, add, **change)

    # Results, limits, time

    def apply_action_result(self, result: Mapping[str, Any], **change: Unpack[Change]) -> Memory:
        """Return the memory with what an action gave back: `{"world": {...}, "tasks": [...]}`, either or both.

        Keys of the world are put; a task takes the place of the one of its id, or goes to the end.
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
                    f"the world an action gives back is a mapping, not {result[WORLD]!r:.200}",
                    hint='{"world": {"key": "value"}}',
                )
            if result[WORLD]:
                after = after.world_update(lambda world: {**world, **result[WORLD]}, now=now)
        if TASKS in result:
            if not isinstance(result[TASKS], list | tuple):
                raise InvalidRequest(
                    f"the tasks an action gives back are a list, not {result[TASKS]!r:.200}",
                    hint='{"tasks": [{"id": "t1", "text": "ship", "status": "open"}]}',
                )
            if result[TASKS]:
                after = after._edit(TASKS, is_list, lambda data: items.merged(data, result[TASKS]), now=now)
        return after

    def limited(self, limits: Limits | None, **change: Unpack[Change]) -> Memory:
        """Return the memory held to *limits* from now on; with None to none. What is there stays."""
        self._expect(**change)
        others = {name: value for name, value in self.metadata.items() if name != LIMITS_KEY}
        metadata = {**others, LIMITS_KEY: limits.stated()} if limits else others
        return replace(self._after(self.spaces, change.get("now")), metadata=metadata)

    def expire(self, **change: Unpack[Change]) -> Memory:
        """Return the memory without the keys whose time is up; itself if there are none."""
        self._expect(**change)
        now = moment(change.get("now"))
        after = self
        for name, space in self.spaces.items():
            if over := lapsed(space.metadata, now):
                alive = {key: value for key, value in space.data.items() if key not in over}
                ends = kept(space.metadata, space.data, alive)
                after = after._with(name, Space(alive, space.rev + 1, ends), now)
        return after
