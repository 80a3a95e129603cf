"""The container of a memory: its fields, JSON form and limits, and the one mechanism for changes.

A `Space` is one named part of a memory, with data that is a map, a list or another value, and its own revision.
`Limits` bound the number and the size of spaces; by default there are none. Times and ids come from the caller, else
from the clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast, get_args, get_type_hints, is_typeddict

from jidomem.base import clock
from jidomem.base.json_values import FrozenDict, freeze, to_json_value, type_name
from jidomem.errors import InvalidRequest, NotFound, RevisionConflict, TooLarge

MEMORY_KEY = "__memory__"
#: The usual key of the thread in the state of an agent; no memory operation changes it.
THREAD_KEY = "__thread__"

TASKS = "tasks"
WORLD = "world"
#: The spaces that every memory has and that cannot be deleted.
RESERVED_SPACES = (TASKS, WORLD)

FACTS = "facts"
SCRATCH = "scratch"
TOOL_STATE = "tool_state"
SUMMARY = "summary"
POINTERS = "pointers"
#: The purpose of each usual key of the world. Any other key is allowed; keys are neither created nor checked.
WORLD_KEYS: Mapping[str, str] = {
    FACTS: "the beliefs of the agent about its environment",
    SCRATCH: "notes on the current work, which may be deleted",
    TOOL_STATE: "the results and the progress of tools",
    SUMMARY: "the summary of the thread so far",
    POINTERS: "the names of indexes and stores outside the memory, never their contents",
}

OPEN = "open"
DONE = "done"
TASK_STATUSES = (OPEN, DONE)
#: The name of a task's status in project memory.
TO_ONTOLOGY: Mapping[str, str] = {OPEN: "Planned", DONE: "Completed"}


def memory_key() -> str:
    """Return the key of the memory in the state of an agent."""
    return MEMORY_KEY


#: The metadata keys for the limits of a memory, and for the moments at which keys of a space expire.
LIMITS_KEY = "jido.limits"
EXPIRES_KEY = "jido.expires_at"
_SYSTEM = clock.Sources()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a memory: the number of custom spaces, and the bytes of JSON of each space; None is no limit."""

    max_spaces: int | None = None
    max_space_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and (type(value) is not int or value < 0):
                detail = f"{name} is a whole number from 0, or None for no limit, not {value!r}"
                raise InvalidRequest(detail, hint=f"pass {name}=100, or leave it out")

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Limits | None:
        """Return the limits in the metadata of a memory, or None; raise `InvalidRequest` if they are invalid."""
        if LIMITS_KEY not in metadata:
            return None
        stated = metadata[LIMITS_KEY]
        if not isinstance(stated, Mapping) or stated.keys() - {"max_spaces", "max_space_bytes"}:
            raise InvalidRequest(
                f"{LIMITS_KEY!r} has max_spaces and max_space_bytes, not {stated!r:.200}",
                hint="set limits with memory.limited(Limits(...))",
            )
        return cls(**stated)

    def stated(self) -> dict[str, int]:
        """Return the limits that are set, in the form of the metadata."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def refuse_space(self, name: str, names: Iterable[str]) -> None:
        """Raise `TooLarge` unless a memory with the spaces *names* may have *name* too."""
        customs = [name_ for name_ in names if name_ not in RESERVED_SPACES]
        if self.max_spaces is not None and name not in RESERVED_SPACES and len(customs) >= self.max_spaces:
            raise TooLarge(
                f"a space {name!r} would exceed the limit of {self.max_spaces} custom spaces",
                hint="delete one with space_delete, store it as a key of the world, or set other limits",
            )

    def refuse_size(self, name: str, after: object, *before: object) -> None:
        """Raise `TooLarge` unless the data of a space fits, or is smaller than before."""
        if self.max_space_bytes is None:
            return
        size = size_of(after)
        if size > self.max_space_bytes and size > sum(map(size_of, before)):
            raise TooLarge(
                f"space {name!r} would have {size} bytes, more than the limit of {self.max_space_bytes}",
                hint="store a summary and a pointer to the rest, delete unneeded data, or set other limits",
            )


def size_of(data: object) -> int:
    """Return the bytes of *data* as JSON; a value without a JSON form counts by its repr.

    >>> size_of({"a": [1, 2]})
    11
    """
    try:
        text = json.dumps(data, ensure_ascii=False, default=repr, separators=(",", ":"))
    except TypeError:  # keys of a type that JSON does not have
        text = repr(data)
    return len(text.encode("utf-8", "surrogatepass"))


def lapsed(metadata: Mapping[str, Any], now: int) -> list[Any]:
    """Return the keys of a space that have expired at *now*."""
    return [key for key, end in metadata.get(EXPIRES_KEY, {}).items() if end <= now]


def expiring(metadata: Mapping[str, Any], key: Any, end: int | None) -> Mapping[str, Any]:
    """Return the metadata of a space with the expiry *end* for *key*; None removes the expiry."""
    ends = {
        expiring_key: moment for expiring_key, moment in metadata.get(EXPIRES_KEY, {}).items() if expiring_key != key
    }
    return _ending(metadata, ends if end is None else {**ends, key: end})


def updated_metadata(metadata: Mapping[str, Any], before: Any, after: Any) -> Mapping[str, Any]:
    """Return the metadata of a space whose data was *before*: removed and changed keys lose their expiry."""
    if EXPIRES_KEY not in metadata:
        return metadata
    ends = metadata[EXPIRES_KEY].items()
    return _ending(metadata, {key: end for key, end in ends if key in after and after[key] is before.get(key)})


def refuse_ends(metadata: Mapping[str, Any], data: Any) -> None:
    """Raise `InvalidRequest` unless the expiries in the metadata of a space are moments of keys."""
    ends = metadata.get(EXPIRES_KEY, {})
    timed = isinstance(ends, Mapping) and all(type(end) is int for end in ends.values())
    if not timed or (ends and not isinstance(data, Mapping)):
        raise InvalidRequest(
            f"{EXPIRES_KEY!r} in the metadata of a map space has a moment in milliseconds for each expiring key,"
            f" not {ends!r:.200}",
            hint="use put_in_space(..., ttl_ms=...)",
        )


def _ending(metadata: Mapping[str, Any], ends: Mapping[Any, int]) -> Mapping[str, Any]:
    others = {name: value for name, value in metadata.items() if name != EXPIRES_KEY}
    return {**others, EXPIRES_KEY: ends} if ends else others


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(now: int | None = None, sources: clock.Sources = _SYSTEM) -> int:
    """Return *now* in milliseconds since the epoch (default: the present of *sources*); raise `InvalidRequest` if it is
    invalid.
    """
    if now is None:
        return (sources.now() - _EPOCH) // timedelta(milliseconds=1)
    if type(now) is not int or now < 0:
        raise InvalidRequest(
            f"a moment is a whole number of milliseconds since the epoch, not {now!r}",
            hint="pass now=int(time.time() * 1000), or leave it out",
        )
    return now


def new_or_given_id(prefix: str, given: str | None = None, new_id: Callable[[], str] | None = None) -> str:
    """Return the id *given*, or a new one with that prefix from *new_id* or the clock.

    Raise `InvalidRequest` if *given* is not a non-empty text.
    """
    if given is None:
        return prefix + (new_id or clock.new_id)()
    if not isinstance(given, str) or not given:
        raise InvalidRequest(
            f"an id is a text of at least one character, not {given!r}", hint="leave it out for a new one"
        )
    return given


def _check_fields(kind: str, rev: object, metadata: object) -> None:
    """Raise `InvalidRequest` for an invalid revision or metadata of a space or a memory."""
    if type(rev) is not int or rev < 0:
        detail = f"the revision of a {kind} is a whole number from 0, not {rev!r}"
        raise InvalidRequest(detail, hint=f"leave rev out: a new {kind} has 0")
    if not isinstance(metadata, Mapping):
        detail = f"the metadata of a {kind} is a mapping, not {metadata!r:.200}"
        raise InvalidRequest(detail, hint='pass metadata={"key": "value"}, or leave it out')


_FIELDS = ("data", "rev", "metadata")


@dataclass(frozen=True, slots=True)
class Space:
    """A space: its data, its revision and its metadata.

    >>> Space({"language": "en"})
    Space(data={'language': 'en'}, rev=0, metadata={})
    """

    data: Any
    rev: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_fields("space", self.rev, self.metadata)
        object.__setattr__(self, "data", freeze(self.data))
        object.__setattr__(self, "metadata", freeze(self.metadata))
        refuse_ends(self.metadata, self.data)

    @classmethod
    def new(cls, attrs: Mapping[str, Any] | None = None, /, **fields: Any) -> Space:
        """Return a space from a mapping, keywords or both (keywords win); raise `InvalidRequest` without data.

        >>> Space.new({"data": ["a"], "rev": 3})
        Space(data=['a'], rev=3, metadata={})
        """
        given = {**(attrs or {}), **fields}
        if unknown := [name for name in given if name not in _FIELDS]:
            raise InvalidRequest(f"a space has no {unknown[0]!r}", hint=f"it has {', '.join(_FIELDS)}")
        if "data" not in given:
            raise InvalidRequest("a space has data", hint="pass data={} for a map, data=[] for a list")
        return cls(**given)

    @classmethod
    def new_map(cls, data: Mapping[Any, Any] | None = None, metadata: Mapping[str, Any] | None = None) -> Space:
        """Return a space of keys and values; raise `InvalidRequest` if *data* is not a mapping."""
        space = cls({} if data is None else data, metadata={} if metadata is None else metadata)
        if not is_map(space):
            detail = f"the data of a map space is a mapping, not {data!r:.200}"
            raise InvalidRequest(detail, hint="pass a dict, or create a list space: Space.new_list([...])")
        return space

    @classmethod
    def new_list(cls, data: list[Any] | None = None, metadata: Mapping[str, Any] | None = None) -> Space:
        """Return a space of items in order; raise `InvalidRequest` if *data* is not a list."""
        space = cls([] if data is None else data, metadata={} if metadata is None else metadata)
        if not is_list(space):
            detail = f"the data of a list space is a list, not {data!r:.200}"
            raise InvalidRequest(detail, hint="pass a list, or create a map space: Space.new_map({...})")
        return space


class Spaces(FrozenDict[str, Space]):
    """The spaces of a memory by name; a space whose name is an identifier is also an attribute: `spaces.world`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Space:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no space {name!r}; there are {', '.join(map(repr, self))}")


def is_map(space: object) -> bool:
    """Return whether *space* is a space of keys and values."""
    return isinstance(space, Space) and isinstance(space.data, Mapping)


def is_list(space: object) -> bool:
    """Return whether *space* is a space of items in order."""
    return isinstance(space, Space) and isinstance(space.data, list)


M = TypeVar("M")


class ChangeOptions(TypedDict, total=False):
    """The options of every change: the expected revision of the memory, and the moment."""

    expected_rev: int | None
    now: int | None


class SpaceChange(ChangeOptions, total=False):
    """The options of a change of one space: also the expected revision of that space."""

    expected_space_rev: int | None


def naming_options(cls: type[M]) -> type[M]:
    """Return *cls* with methods whose TypeError for an unknown option names the method and its options."""
    naming: dict[Any, Any] = {}  # a method with two names is one function
    for name, move in [*vars(cls).items()]:
        if name[0] == "_" or (code := getattr(move, "__code__", None)) is None:
            continue
        hints = get_type_hints(move, localns={cls.__name__: cls})
        for options in (part for hint in hints.values() for part in get_args(hint) if is_typeddict(part)):
            takes = (*code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount], *options.__annotations__)
            setattr(cls, name, naming.setdefault(move, _naming(move, takes)))
    return cls


def _naming(move: Callable[..., Any], takes: tuple[str, ...]) -> Callable[..., Any]:
    known = {*takes, *SpaceChange.__annotations__}  # options of a space are passed on: the method has a better error

    @wraps(move)
    def named(*given: Any, **options: Any) -> Any:
        if not options.keys() <= known:
            unknown = next(option for option in options if option not in known)
            raise TypeError(f"{move.__name__}() takes no {unknown!r}: it takes {', '.join(takes)}")
        return move(*given, **options)

    return named


class _Timed:
    """A value whose operations use the clock and the ids of the system, or of a root; these are no field of it."""

    __slots__ = ("_sources",)
    _sources: clock.Sources

    @property
    def sources(self) -> clock.Sources:
        """Return the clock and the ids of its operations."""
        return getattr(self, "_sources", _SYSTEM)


@dataclass(frozen=True, slots=True)
class Container(_Timed):
    """The spaces of an agent by name, with a revision that counts changes, and the times of creation and last change in
    ms.
    """

    id: str = field(default_factory=lambda: new_or_given_id("mem_"))
    rev: int = 0
    spaces: Spaces = field(default_factory=lambda: Spaces())
    created_at: int = field(default_factory=moment)
    updated_at: int = cast(int, None)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        new_or_given_id("", self.id)
        _check_fields("memory", self.rev, self.metadata)
        if self.updated_at is None:
            object.__setattr__(self, "updated_at", self.created_at)
        if moment(self.created_at) > moment(self.updated_at):
            detail = f"updated_at={self.updated_at} is before created_at={self.created_at}"
            raise InvalidRequest(detail, hint="leave updated_at out: it defaults to created_at")
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
    ) -> Self:
        """Return a memory from a mapping, keywords or both; missing fields have the values of a new memory.

        Raise `InvalidRequest` for an unknown field or an invalid value.
        """
        stated = {**(attrs or {}), **given}
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in stated if name not in known]:
            raise InvalidRequest(f"a memory has no {unknown[0]!r}", hint=f"it has {', '.join(known)}")
        made = {"id": new_or_given_id("mem_", stated.get("id"), new_id), "created_at": moment(now)}
        return cls(**{**made, **{name: value for name, value in stated.items() if value is not None}})

    @staticmethod
    def reserved_spaces() -> tuple[str, str]:
        """Return the names of the built-in spaces."""
        return RESERVED_SPACES

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain JSON values; raise `InvalidRequest` for a value without a JSON form."""
        spaces = {
            to_json_value(name, "a name of a space"): {
                "data": to_json_value(space.data, f"spaces[{name!r}].data"),
                "rev": space.rev,
                "metadata": to_json_value(space.metadata, f"spaces[{name!r}].metadata"),
            }
            for name, space in self.spaces.items()
        }
        whole = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**whole, "spaces": spaces, "metadata": to_json_value(self.metadata, "metadata")}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the memory that `to_dict` wrote; raise `InvalidRequest` unless all fields are present."""
        if not isinstance(values, Mapping):
            raise InvalidRequest(
                f"a stored memory is a mapping, not {values!r:.200}", hint="give the result of to_dict"
            )
        if missing := [each.name for each in fields(cls) if values.get(each.name) is None]:
            raise InvalidRequest(f"the stored memory lacks {', '.join(missing)}", hint="Memory.new fills it in")
        return cls.new(values)

    def space(self, name: str) -> Space | None:
        """Return the space of that name, or None."""
        return self.spaces.get(name)

    def has_space(self, name: str) -> bool:
        """Return whether there is a space of that name."""
        return name in self.spaces

    # The mechanism of changes

    def _expect(
        self,
        name: str | None = None,
        *,
        expected_rev: int | None = None,
        expected_space_rev: int | None = None,
        now: int | None = None,
    ) -> None:
        if name is None and expected_space_rev is not None:
            raise InvalidRequest(
                "this change is not about one space, so there is no revision of a space to expect",
                hint="give the revision of the memory: expected_rev=",
            )
        moment(now)
        refuse_stale("the memory", expected_rev, self.rev)
        if name is not None:
            space = self.spaces.get(name)
            refuse_stale(f"space {name!r}", expected_space_rev, space.rev if space else None)

    def _known(self, name: str, of_kind: Callable[[object], bool] | None = None) -> Space:
        if (space := self.spaces.get(name)) is None:
            raise NotFound(
                f"space {name!r} does not exist", hint=f"create it first: ensure_space({name!r}, {{}}) or (..., [])"
            )
        if of_kind is not None and not of_kind(space):
            kind = "map" if of_kind is is_map else "list"
            raise InvalidRequest(
                f"space {name!r} is not a {kind} space: its data is a {type_name(space.data)}",
                hint=_TAKES.get(type_name(space.data), _TAKES_ANY),
            )
        return space

    def _alive(self, name: str, now: int | None) -> Mapping[Any, Any]:
        if name not in self.spaces:
            return FrozenDict()
        space = self._known(name, is_map)
        over = lapsed(space.metadata, moment(now, self.sources)) if EXPIRES_KEY in space.metadata else []
        return FrozenDict({key: key_ for key, key_ in space.data.items() if key not in over}) if over else space.data

    def _edit(
        self,
        name: str,
        of_kind: Callable[[object], bool],
        edit: Callable[[Any], Any],
        ending: tuple[Any, int | None] | None = None,
        **change: Unpack[SpaceChange],
    ) -> Self:
        """Return the memory with `edit(data)` in a space of that kind; the same memory if the data stays the same."""
        self._expect(name, **change)
        space = self._known(name, of_kind)
        data = edit(space.data)
        if data is space.data:
            return self
        metadata = updated_metadata(space.metadata, space.data, data)
        if ending:
            metadata = expiring(metadata, *ending)
        return self._with(name, Space(data, space.rev + 1, metadata), change.get("now"))

    def _with(self, name: str, space: Space, now: int | None) -> Self:
        """Return the memory with *space* under *name*, at the next revision; raise `TooLarge` beyond its limits."""
        if not isinstance(name, str) or not name:
            raise InvalidRequest(
                f"the name of a space is a text of at least one character, not {name!r}",
                hint="name it: 'plans', or 'rag:cache' for one of a plugin",
            )
        if limits := Limits.of(self.metadata):
            if name in self.spaces:
                limits.refuse_size(name, space.data, self.spaces[name].data)
            else:
                limits.refuse_space(name, self.spaces)
                limits.refuse_size(name, space.data)
        return self._after({**self.spaces, name: space}, now)

    def _after(self, spaces: Mapping[str, Space], now: int | None, **fields: Any) -> Self:
        updated_at = max(self.updated_at, moment(now, self.sources))
        return self._replaced(rev=self.rev + 1, spaces=Spaces(spaces), updated_at=updated_at, **fields)

    def _replaced(self, sources: clock.Sources | None = None, **fields: Any) -> Self:
        """Return the memory with *fields*, and with its own *sources* or the given ones."""
        made = replace(self, **fields)
        object.__setattr__(made, "_sources", sources or self.sources)
        return made


_C = TypeVar("_C", bound=Container)


def with_sources(memory: _C, sources: clock.Sources) -> _C:
    """Return *memory* with the clock and the ids of *sources* for its operations; both are equal."""
    return memory._replaced(sources)


#: The methods that change a space, by the kind of its data.
_TAKES = {
    "dict": "it takes put_in_space, delete_from_space, update_space_data",
    "list": "it takes append_to_space, insert_in_space, update_in_space, remove_from_space",
}
_TAKES_ANY = "it takes space_update"


def refuse_stale(what: str, expected: int | None, rev: int | None) -> None:
    """Raise `RevisionConflict` if *what* is not at the *expected* revision, or does not exist (None)."""
    if expected is None:
        return
    if type(expected) is not int:
        raise InvalidRequest(
            f"an expected revision is a whole number, not {expected!r}", hint="give the rev of the memory that was read"
        )
    if expected != rev:
        state = "does not exist" if rev is None else f"is at revision {rev}"
        raise RevisionConflict(
            f"{what} {state}, not at {expected}", hint="read it again, and repeat the change on the present state"
        )


def _spaces(given: Any) -> Spaces:
    if not isinstance(given, Mapping):
        raise InvalidRequest(
            f"the spaces of a memory are a mapping of names to spaces, not {given!r:.200}", hint='{"plans": Space([])}'
        )
    made: dict[str, Space] = {TASKS: Space([]), WORLD: Space({})}
    for name, space in given.items():
        if not isinstance(name, str) or not name:
            raise InvalidRequest(
                f"the name of a space is a text of at least one character, not {name!r}",
                hint="name it: 'plans', or 'rag:cache' for one of a plugin",
            )
        if not isinstance(space, Space | Mapping):
            raise InvalidRequest(
                f"space {name!r} is a Space, or a mapping with its data, not {space!r:.200}",
                hint='Space([]), or {"data": []}',
            )
        made[name] = space if isinstance(space, Space) else Space.new(space)
    return Spaces(made)
