"""A memory: the named spaces an agent holds, as a value; every change makes a new one, a revision further on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict, Unpack, cast

from jidomem.errors import InvalidRequest, NotFound, RevisionConflict
from jidomem.spaces import items
from jidomem.spaces.frozen import FrozenDict, FrozenList, freeze
from jidomem.spaces.limits import LIMITS_KEY, Limits, expiring, kept, lapsed
from jidomem.spaces.names import DONE, OPEN, RESERVED_SPACES, TASKS, WORLD
from jidomem.spaces.plain import plain
from jidomem.spaces.sources import fresh, moment
from jidomem.spaces.value import Space, Spaces, is_list, is_map


class Change(TypedDict, total=False):
    """What every change may be told: the container revision it expects, and the moment it happens at."""

    expected_rev: int | None
    now: int | None


class SpaceChange(Change, total=False):
    """What a change of one space may be told besides: the revision it expects of that space."""

    expected_space_rev: int | None


class NewTask(SpaceChange, total=False):
    """What a new task may be told besides: its id, its status, who mints its id."""

    id: str | None
    status: str
    new_id: Callable[[], str] | None


@dataclass(frozen=True, slots=True)
class Memory:
    """The spaces of an agent by name, with a revision that counts their changes, and two moments in milliseconds.

    >>> memory = Memory(id="mem_1").world_put("language", "en").tasks_add("ship", id="t1")
    >>> memory.rev, memory.spaces.world.data, memory.tasks_next()
    (2, {'language': 'en'}, {'id': 't1', 'text': 'ship', 'status': 'open'})
    """

    id: str = field(default_factory=lambda: fresh("mem_"))
    rev: int = 0
    spaces: Spaces = field(default_factory=lambda: Spaces())
    created_at: int = field(default_factory=moment)
    updated_at: int = cast(int, None)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fresh("", self.id)
        if type(self.rev) is not int or self.rev < 0:
            raise InvalidRequest(f"the revision of a memory is a whole number from 0, not {self.rev!r}")
        if self.updated_at is None:
            object.__setattr__(self, "updated_at", self.created_at)
        if moment(self.created_at) > moment(self.updated_at):
            raise InvalidRequest(f"a memory made at {self.created_at} was not changed before, at {self.updated_at}")
        if not isinstance(self.metadata, Mapping):
            raise InvalidRequest(f"the metadata of a memory is a mapping, not {self.metadata!r}")
        object.__setattr__(self, "metadata", freeze(self.metadata))
        Limits.of(self.metadata)
        if not isinstance(self.spaces, Spaces) or not self.spaces.keys() >= set(RESERVED_SPACES):
            object.__setattr__(self, "spaces", _spaces(self.spaces))

    @classmethod
    def new(
        cls,
        attrs: Mapping[str, Any] | None = None,
        /,
        *,
        now: int | None = None,
        new_id: Callable[[], str] | None = None,
        **given: Any,
    ) -> Memory:
        """Return a memory made of a mapping, of keywords or of both; what is left out is as in a new memory."""
        stated = {**(attrs or {}), **given}
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in stated if name not in known]:
            raise InvalidRequest(f"a memory has no {unknown[0]!r}", hint=f"it has {', '.join(known)}")
        made = {"id": fresh("mem_", stated.get("id"), new_id), "created_at": moment(now)}
        return cls(**{**made, **{name: value for name, value in stated.items() if value is not None}})

    @staticmethod
    def reserved_spaces() -> tuple[str, str]:
        """Return the names of the spaces every memory has."""
        return RESERVED_SPACES

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain JSON values; raise `InvalidRequest` for what JSON has no form for."""
        spaces = {
            plain(name, "a name of a space"): {
                "data": plain(space.data, f"spaces[{name!r}].data"),
                "rev": space.rev,
                "metadata": plain(space.metadata, f"spaces[{name!r}].metadata"),
            }
            for name, space in self.spaces.items()
        }
        whole = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**whole, "spaces": spaces, "metadata": plain(self.metadata, "metadata")}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Memory:
        """Return the memory that `to_dict` wrote; raise `InvalidRequest` unless every field of it is there."""
        if not isinstance(kept, Mapping):
            raise InvalidRequest(f"a kept memory is a mapping, not {kept!r}")
        if missing := [each.name for each in fields(cls) if kept.get(each.name) is None]:
            raise InvalidRequest(f"the kept memory lacks {', '.join(missing)}", hint="Memory.new fills it in")
        return cls.new(kept)

    # What is held

    def space(self, name: str) -> Space | None:
        """Return the space of that name, or None."""
        return self.spaces.get(name)

    def has_space(self, name: str) -> bool:
        """Return whether there is a space of that name."""
        return name in self.spaces

    def get_in_space(self, name: str, key: Any, default: Any = None, *, now: int | None = None) -> Any:
        """Return what a map space holds under *key*; *default* if nothing, if its time is up or without the space."""
        return self._alive(name, now).get(key, default)

    def world_get(self, key: Any, default: Any = None, *, now: int | None = None) -> Any:
        """Return what the world holds under *key*, or *default*."""
        return self.get_in_space(WORLD, key, default, now=now)

    def world(self, *, now: int | None = None) -> Mapping[Any, Any]:
        """Return all the world holds."""
        return self._alive(WORLD, now)

    def tasks(self) -> list[Any]:
        """Return all tasks, the first being the first to do, those done included."""
        return cast(FrozenList[Any], self._known(TASKS, is_list).data)

    def tasks_open(self) -> list[Any]:
        """Return the tasks still to be done, in order."""
        return FrozenList(filter(items.is_open, self.tasks()))

    def tasks_next(self) -> Any:
        """Return the first task still to be done, or None."""
        return next(filter(items.is_open, self.tasks()), None)

    # Whole spaces

    def space_put(self, name: str, space: Space, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *space*, as it is, under *name*."""
        if not isinstance(space, Space):
            raise InvalidRequest(f"{name!r} is to be a Space, not {space!r}", hint="make one: Space(data)")
        self._expect(name, **change)
        return self._with(name, space, change.get("now"))

    def space_update(self, name: str, fun: Callable[[Space], Space], **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with `fun(space)` under *name*, one revision after the one that was there."""
        self._expect(name, **change)
        before = self._known(name)
        after = fun(before)
        if not isinstance(after, Space):
            raise InvalidRequest(f"the function for space {name!r} gave {after!r}, not a Space")
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

    def put_in_space(
        self, name: str, key: Any, value: Any, *, ttl_ms: int | None = None, **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with *value* under *key* of a map space, for *ttl_ms* milliseconds if that is given."""
        if ttl_ms is not None and (type(ttl_ms) is not int or ttl_ms <= 0):
            raise InvalidRequest(f"ttl_ms is a whole number of milliseconds from 1, not {ttl_ms!r}")
        end = None if ttl_ms is None else moment(change.get("now")) + ttl_ms
        return self._edit(name, is_map, lambda data: {**data, key: value}, (key, end), **change)

    def delete_from_space(self, name: str, key: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without *key* in a map space; itself if it is not there."""

        def drop(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
            return {held: value for held, value in data.items() if held != key} if key in data else data

        return self._edit(name, is_map, drop, (key, None), **change)

    def update_space_data(
        self, name: str, fun: Callable[[Mapping[Any, Any]], Mapping[Any, Any]], **change: Unpack[SpaceChange]
    ) -> Memory:
        """Return the memory with `fun(data)`, a mapping, as all that a map space holds."""

        def transform(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
            after = fun(data)
            if not isinstance(after, Mapping):
                raise InvalidRequest(
                    f"the function for map space {name!r} gave {after!r}, not a mapping",
                    hint="return the new mapping: lambda data: {**data, 'key': 'value'}",
                )
            return dict(after)

        return self._edit(name, is_map, transform, **change)

    # Items of a list space

    def append_to_space(self, name: str, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at the end of a list space."""
        return self._edit(name, is_list, lambda data: [*data, item], **change)

    def prepend_to_space(self, name: str, item: Any, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with *item* at the front of a list space."""
        return self._edit(name, is_list, lambda data: [item, *data], **change)

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

    def tasks_add(self, text: str, **options: Unpack[NewTask]) -> Memory:
        """Return the memory with a new task after all others; options: `id`, `status`, `new_id`."""
        return self._add_task(None, text, **options)

    def tasks_insert(self, index: int, text: str, **options: Unpack[NewTask]) -> Memory:
        """Return the memory with a new task at *index*, 0 being the first to do; options as of `tasks_add`."""
        return self._add_task(index, text, **options)

    def tasks_complete(self, task_id: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with that task done, where it stands."""

        def done(task: Any) -> Any:
            return task if task.get("status") == DONE else {**task, "status": DONE}

        return self.update_in_space(TASKS, task_id, done, **change)

    def tasks_remove(self, task_id: str, **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory without that task."""
        return self.remove_from_space(TASKS, task_id, **change)

    def tasks_reorder(self, task_ids: Sequence[str], **change: Unpack[SpaceChange]) -> Memory:
        """Return the memory with those tasks first, in that order; the others follow in the order they had."""
        return self._edit(TASKS, is_list, lambda data: items.reordered(data, task_ids, "the tasks"), **change)

    # Results, limits, time

    def apply_action_result(self, result: Mapping[str, Any], **change: Unpack[Change]) -> Memory:
        """Return the memory with what an action gave back: `{"world": {...}, "tasks": [...]}`, either or both.

        Keys of the world are put; a task takes the place of the one of its id, or goes to the end.
        """
        if not isinstance(result, Mapping) or (unknown := [key for key in result if key not in RESERVED_SPACES]):
            named = f"{unknown[0]!r}" if isinstance(result, Mapping) else repr(result)
            raise InvalidRequest(f"the result of an action has world and tasks, not {named}")
        self._expect(TASKS, **change)
        after, now = self, change.get("now")
        if WORLD in result:
            if not isinstance(result[WORLD], Mapping):
                raise InvalidRequest(f"the world an action gives back is a mapping, not {result[WORLD]!r}")
            after = after.world_update(lambda world: {**world, **result[WORLD]}, now=now)
        if TASKS in result:
            if not isinstance(result[TASKS], list | tuple):
                raise InvalidRequest(f"the tasks an action gives back are a list, not {result[TASKS]!r}")
            after = after._edit(TASKS, is_list, lambda data: items.merged(data, result[TASKS]), now=now)
        return after

    def limited(self, limits: Limits | None, **change: Unpack[Change]) -> Memory:
        """Return the memory held to *limits* from now on; with None to none. What is there stays."""
        self._expect(TASKS, **change)
        others = {name: value for name, value in self.metadata.items() if name != LIMITS_KEY}
        metadata = {**others, LIMITS_KEY: limits.stated()} if limits else others
        return replace(self._after(self.spaces, change.get("now")), metadata=metadata)

    def expire(self, **change: Unpack[Change]) -> Memory:
        """Return the memory without the keys whose time is up; itself if there are none."""
        self._expect(TASKS, **change)
        now = moment(change.get("now"))
        after = self
        for name, space in self.spaces.items():
            if over := lapsed(space.metadata, now):
                alive = {key: value for key, value in space.data.items() if key not in over}
                after = after._with(name, Space(alive, space.rev + 1, kept(space.metadata, alive)), now)
        return after

    # How every change is made

    def _expect(
        self,
        name: str,
        *,
        expected_rev: int | None = None,
        expected_space_rev: int | None = None,
        now: int | None = None,
    ) -> None:
        """Raise `RevisionConflict` if the memory, or the space of that name, is at another revision than expected."""
        moment(now)
        space = self.spaces.get(name)
        refuse_stale("the memory", expected_rev, self.rev)
        refuse_stale(f"space {name!r}", expected_space_rev, space.rev if space else None)

    def _known(self, name: str, of_kind: Callable[[object], bool] | None = None) -> Space:
        if (space := self.spaces.get(name)) is None:
            raise NotFound(
                f"space {name!r} does not exist", hint=f"make it first: ensure_space({name!r}, {{}}) or (..., [])"
            )
        if of_kind is not None and not of_kind(space):
            kind = "map" if of_kind is is_map else "list"
            raise InvalidRequest(f"space {name!r} is not a {kind} space: it holds a {type(space.data).__name__}")
        return space

    def _alive(self, name: str, now: int | None) -> Mapping[Any, Any]:
        """Return what a map space holds whose time is not up; nothing without the space."""
        if name not in self.spaces:
            return FrozenDict()
        space = self._known(name, is_map)
        over = lapsed(space.metadata, moment(now)) if space.metadata else []
        return FrozenDict({key: held for key, held in space.data.items() if key not in over}) if over else space.data

    def _edit(
        self,
        name: str,
        of_kind: Callable[[object], bool],
        edit: Callable[[Any], Any],
        ending: tuple[Any, int | None] | None = None,
        **change: Unpack[SpaceChange],
    ) -> Memory:
        """Return the memory with `edit(data)` in a space of that kind, itself if that is the very data it had."""
        self._expect(name, **change)
        space = self._known(name, of_kind)
        data = edit(space.data)
        if data is space.data:
            return self
        metadata = expiring(space.metadata, *ending) if ending else space.metadata
        return self._with(name, Space(data, space.rev + 1, kept(metadata, data)), change.get("now"))

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
            return [*data, task] if index is None else items.placed(data, index, task)

        return self._edit(TASKS, is_list, add, **change)

    def _with(self, name: str, space: Space, now: int | None) -> Memory:
        """Return the memory with *space* under *name*, a revision further on; raise `TooLarge` beyond its limits."""
        if not isinstance(name, str) or not name:
            raise InvalidRequest(f"the name of a space is a text of at least one sign, not {name!r}")
        if limits := Limits.of(self.metadata):
            if name not in self.spaces:
                limits.refuse_space(name, self.spaces)
            limits.refuse_size(name, self.spaces[name].data if name in self.spaces else None, space.data)
        return self._after({**self.spaces, name: space}, now)

    def _after(self, spaces: Mapping[str, Space], now: int | None) -> Memory:
        return replace(self, rev=self.rev + 1, spaces=Spaces(spaces), updated_at=max(self.updated_at, moment(now)))


def refuse_stale(what: str, expected: int | None, rev: int | None) -> None:
    """Raise `RevisionConflict` if a revision was expected and *what* is at another one, or is not there (None)."""
    if expected is None:
        return
    if type(expected) is not int:
        raise InvalidRequest(f"an expected revision is a whole number, not {expected!r}")
    if expected != rev:
        stands = "does not exist" if rev is None else f"is at revision {rev}"
        raise RevisionConflict(
            f"{what} {stands}, not at {expected}", hint="read it again and decide on what is there now"
        )


def _spaces(given: Any) -> Spaces:
    """Return the spaces *given* by name, as spaces or as mappings that spell them, with the built-in ones."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"the spaces of a memory are a mapping of names to spaces, not {given!r}")
    made: dict[str, Space] = {TASKS: Space([]), WORLD: Space({})}
    for name, space in given.items():
        if not isinstance(name, str) or not name:
            raise InvalidRequest(f"the name of a space is a text of at least one sign, not {name!r}")
        if not isinstance(space, Space | Mapping):
            raise InvalidRequest(f"space {name!r} is a Space, or a mapping with its data, not {space!r}")
        made[name] = space if isinstance(space, Space) else Space.new(space)
    return Spaces(made)
