"""A space: one named part of a memory, whose kind is the kind of its data, with a revision of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.frozen import FrozenDict, freeze
from jidomem.spaces.limits import refuse_ends

_FIELDS = ("data", "rev", "metadata")


@dataclass(frozen=True, slots=True)
class Space:
    """What a space holds, how often that changed, and words about it.

    >>> Space({"language": "en"})
    Space(data={'language': 'en'}, rev=0, metadata={})
    """

    data: Any
    rev: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.rev) is not int or self.rev < 0:
            detail = f"the revision of a space is a whole number from 0, not {self.rev!r}"
            raise InvalidRequest(detail, hint="leave rev out: a new space has 0")
        if not isinstance(self.metadata, Mapping):
            detail = f"the metadata of a space is a mapping, not {self.metadata!r:.200}"
            raise InvalidRequest(detail, hint='pass metadata={"key": "value"}, or leave it out')
        object.__setattr__(self, "data", freeze(self.data))
        object.__setattr__(self, "metadata", freeze(self.metadata))
        refuse_ends(self.metadata, self.data)

    @classmethod
    def new(cls, attrs: Mapping[str, Any] | None = None, /, **fields: Any) -> Space:
        """Return a space made of a mapping, of keywords or of both; keywords win; raise `InvalidRequest` without data.

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
        """Return a space of keys and values; raise `InvalidRequest` for data that is no mapping."""
        space = cls({} if data is None else data, metadata={} if metadata is None else metadata)
        if not is_map(space):
            detail = f"the data of a map space is a mapping, not {data!r:.200}"
            raise InvalidRequest(detail, hint="pass a dict, or make a list of it: Space.new_list([...])")
        return space

    @classmethod
    def new_list(cls, data: list[Any] | None = None, metadata: Mapping[str, Any] | None = None) -> Space:
        """Return a space of items in order; raise `InvalidRequest` for data that is no list."""
        space = cls([] if data is None else data, metadata={} if metadata is None else metadata)
        if not is_list(space):
            detail = f"the data of a list space is a list, not {data!r:.200}"
            raise InvalidRequest(detail, hint="pass a list, or make a map of it: Space.new_map({...})")
        return space


class Spaces(FrozenDict[str, Space]):
    """The spaces of a memory by name; those whose name is a word are attributes too: `spaces.world`."""

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
