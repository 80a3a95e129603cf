"""The container of a memory: its fields, how it is made and kept as JSON, and the one way a change of it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast, get_args, get_type_hints, is_typeddict

from jidomem.errors import InvalidRequest, NotFound, RevisionConflict
from jidomem.frozen import FrozenDict, freeze, kind_of
from jidomem.plain import plain
from jidomem.spaces.limits import EXPIRES_KEY, Limits, expiring, kept, lapsed
from jidomem.spaces.names import RESERVED_SPACES, TASKS, WORLD
from jidomem.spaces.sources import fresh, moment
from jidomem.spaces.value import Space, Spaces, is_map

M = TypeVar("M")


class Change(TypedDict, total=False):
    """What every change may be told: the container revision it expects, and the moment it happens at."""

    expected_rev: int | None
    now: int | None


class SpaceChange(Change, total=False):
    """What a change of one space may be told besides: the revision it expects of that space."""

    expected_space_rev: int | None


def naming_options(cls: type[M]) -> type[M]:
    """Return *cls* with moves that name themselves, and all they take, where they are called with what nobody knows."""
    naming: dict[Any, Any] = {}  # a move that has two names is one function
    for name, move in [*vars(cls).items()]:
        if name[0] == "_" or (code := getattr(move, "__code__", None)) is None:
            continue
        hints = get_type_hints(move, localns={cls.__name__: cls})
        for options in (part for hint in hints.values() for part in get_args(hint) if is_typeddict(part)):
            takes = (*code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount], *options.__annotations__)
            setattr(cls, name, naming.setdefault(move, _naming(move, takes)))
    return cls


def _naming(move: Callable[..., Any], takes: tuple[str, ...]) -> Callable[..., Any]:
    known = {*takes, *SpaceChange.__annotations__}  # of a space where none is meant, the move itself has more to say

    @wraps(move)
    def named(*given: Any, **options: Any) -> Any:
        if not options.keys() <= known:
            unknown = next(option for option in options if option not in known)
            raise TypeError(f"{move.__name__}() takes no {unknown!r}: it takes {', '.join(takes)}")
        return move(*given, **options)

    return named


@dataclass(frozen=True, slots=True)
class Container:
    """The spaces of an agent by name, with a revision that counts their changes, and two moments in milliseconds."""

    id: str = field(default_factory=lambda: fresh("mem_"))
    rev: int = 0
    spaces: Spaces = field(default_factory=lambda: Spaces())
    created_at: int = field(default_factory=moment)
    updated_at: int = cast(int, None)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fresh("", self.id)
        if type(self.rev) is not int or self.rev < 0:
            detail = f"the revision of a memory is a whole number from 0, not {self.rev!r}"
            raise InvalidRequest(detail, hint="leave rev out: a new memory has 0")
        if self.updated_at is None:
            object.__setattr__(self, "updated_at", self.created_at)
        if moment(self.created_at) > moment(self.updated_at):
            detail = f"a memory made at {self.created_at} was not changed before, at {self.updated_at}"
            raise InvalidRequest(detail, hint="leave updated_at out: it is created_at, then")
        if not isinstance(self.metadata, Mapping):
            detail = f"the metadata of a memory is a mapping, not {self.metadata!r:.200}"
            raise InvalidRequest(detail, hint='pass metadata={"key": "value"}, or leave it out')
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
        """Return a memory made of a mapping, of keywords or of both; what is left out is as in a new memory.

        Raise `InvalidRequest` for a field that no memory has, or that is not what it must be.
        """
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
    def from_dict(cls, kept: Mapping[str, Any]) -> Self:
        """Return the memory that `to_dict` wrote; raise `InvalidRequest` unless every field of it is there."""
        if not isinstance(kept, Mapping):
            raise InvalidRequest(f"a kept memory is a mapping, not {kept!r:.200}", hint="give what to_dict returned")
        if missing := [each.name for each in fields(cls) if kept.get(each.name) is None]:
            raise InvalidRequest(f"the kept memory lacks {', '.join(missing)}", hint="Memory.new fills it in")
        return cls.new(kept)

    def space(self, name: str) -> Space | None:
        """Return the space of that name, or None."""
        return self.spaces.get(name)

    def has_space(self, name: str) -> bool:
        """Return whether there is a space of that name."""
        return name in self.spaces

    # How every change is made

    def _expect(
        self,
        name: str | None = None,
        *,
        expected_rev: int | None = None,
        expected_space_rev: int | None = None,
        now: int | None = None,
    ) -> None:
        """Raise `RevisionConflict` if the memory, or the space of that name, is at another revision than expected."""
        if name is None and expected_space_rev is not None:
            raise InvalidRequest(
                "no one space is changed here, so none has a revision to expect",
                hint="state the revision of the whole memory: expected_rev=",
            )
        moment(now)
        refuse_stale("the memory", expected_rev, self.rev)
        if name is not None:
            space = self.spaces.get(name)
            refuse_stale(f"space {name!r}", expected_space_rev, space.rev if space else None)

    def _known(self, name: str, of_kind: Callable[[object], bool] | None = None) -> Space:
        if (space := self.spaces.get(name)) is None:
            raise NotFound(
                f"space {name!r} does not exist", hint=f"make it first: ensure_space({name!r}, {{}}) or (..., [])"
            )
        if of_kind is not None and not of_kind(space):
            kind = "map" if of_kind is is_map else "list"
            raise InvalidRequest(
                f"space {name!r} is not a {kind} space: it holds a {kind_of(space.data)}",
                hint=_TAKES.get(kind_of(space.data), _TAKES_ANY),
            )
        return space

    def _alive(self, name: str, now: int | None) -> Mapping[Any, Any]:
        """Return what a map space holds whose time is not up; nothing without the space."""
        if name not in self.spaces:
            return FrozenDict()
        space = self._known(name, is_map)
        over = lapsed(space.metadata, moment(now)) if EXPIRES_KEY in space.metadata else []
        return FrozenDict({key: held for key, held in space.data.items() if key not in over}) if over else space.data

    def _edit(
        self,
        name: str,
        of_kind: Callable[[object], bool],
        edit: Callable[[Any], Any],
        ending: tuple[Any, int | None] | None = None,
        **change: Unpack[SpaceChange],
    ) -> Self:
        """Return the memory with `edit(data)` in a space of that kind, itself if that is the very data it had."""
        self._expect(name, **change)
        space = self._known(name, of_kind)
        data = edit(space.data)
        if data is space.data:
            return self
        metadata = kept(space.metadata, space.data, data)
        if ending:
            metadata = expiring(metadata, *ending)
        return self._with(name, Space(data, space.rev + 1, metadata), change.get("now"))

    def _with(self, name: str, space: Space, now: int | None) -> Self:
        """Return the memory with *space* under *name*, a revision further on; raise `TooLarge` beyond its limits."""
        if not isinstance(name, str) or not name:
            raise InvalidRequest(
                f"the name of a space is a text of at least one sign, not {name!r}",
                hint="name it: 'plans', or 'rag:cache' for one of a plugin",
            )
        if limits := Limits.of(self.metadata):
            if name in self.spaces:
                limits.refuse_size(name, space.data, self.spaces[name].data)
            else:
                limits.refuse_space(name, self.spaces)
                limits.refuse_size(name, space.data)
        return self._after({**self.spaces, name: space}, now)

    def _after(self, spaces: Mapping[str, Space], now: int | None) -> Self:
        return replace(self, rev=self.rev + 1, spaces=Spaces(spaces), updated_at=max(self.updated_at, moment(now)))


#: What changes a space, by the kind of its data.
_TAKES = {
    "dict": "it takes put_in_space, delete_from_space, update_space_data",
    "list": "it takes append_to_space, insert_in_space, update_in_space, remove_from_space",
}
_TAKES_ANY = "it takes space_update"


def refuse_stale(what: str, expected: int | None, rev: int | None) -> None:
    """Raise `RevisionConflict` if a revision was expected and *what* is at another one, or is not there (None)."""
    if expected is None:
        return
    if type(expected) is not int:
        raise InvalidRequest(
            f"an expected revision is a whole number, not {expected!r}", hint="give the rev of the memory that was read"
        )
    if expected != rev:
        stands = "does not exist" if rev is None else f"is at revision {rev}"
        raise RevisionConflict(
            f"{what} {stands}, not at {expected}", hint="read it again and decide on what is there now"
        )


def _spaces(given: Any) -> Spaces:
    """Return the spaces *given* by name, as spaces or as mappings that spell them, with the built-in ones."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(
            f"the spaces of a memory are a mapping of names to spaces, not {given!r:.200}", hint='{"plans": Space([])}'
        )
    made: dict[str, Space] = {TASKS: Space([]), WORLD: Space({})}
    for name, space in given.items():
        if not isinstance(name, str) or not name:
            raise InvalidRequest(
                f"the name of a space is a text of at least one sign, not {name!r}",
                hint="name it: 'plans', or 'rag:cache' for one of a plugin",
            )
        if not isinstance(space, Space | Mapping):
            raise InvalidRequest(
                f"space {name!r} is a Space, or a mapping with its data, not {space!r:.200}",
                hint='Space([]), or {"data": []}',
            )
        made[name] = space if isinstance(space, Space) else Space.new(space)
    return Spaces(made)
