"""Held values: what goes into a memory is copied and held fast, so that nobody changes it from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from jidomem.errors import InvalidRequest

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict that refuses to be changed; equal to the plain one, and as good for reading, JSON and pickle."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class FrozenList(list[V]):
    """A list that refuses to be changed; equal to the plain one, and as good for reading, JSON and pickle."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"a {kind} of a memory cannot be changed in place: change a copy, {kind}(...) or thaw(...)")


_CHANGERS = {
    FrozenDict: ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"),
    FrozenList: (
        *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop"),
        *("remove", "reverse", "sort"),
    ),
}
for _class, _names in _CHANGERS.items():
    for _name in _names:
        setattr(_class, _name, _refuse)


def freeze(value: Any) -> Any:
    """Return *value* held fast: mappings, lists and sets, however deep in one another, become ones none can change.

    What is held fast already is returned as it is, and so is an object of any other class: its own business. Raise
    `InvalidRequest` for what contains itself.

    >>> freeze({"goals": {"ship"}, "steps": ["test"]})
    {'goals': frozenset({'ship'}), 'steps': ['test']}
    """
    try:
        return _freeze(value)
    except RecursionError:
        raise InvalidRequest(
            "a value to be kept contains itself, or is nested too deep", hint="keep a reference to it instead"
        ) from None


def _freeze(value: Any) -> Any:
    if isinstance(value, FrozenDict | FrozenList | str):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: _freeze(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return FrozenList([_freeze(inner) for inner in value])
    if isinstance(value, set):
        return frozenset(value)
    if type(value) is tuple:
        held = tuple([_freeze(inner) for inner in value])
        return value if all(old is new for old, new in zip(value, held, strict=True)) else held
    return value


def kind_of(value: object) -> str:
    """Return what a held value is called by those who put it there: list, not FrozenList."""
    for held, plain in ((FrozenDict, "dict"), (FrozenList, "list"), (frozenset, "set")):
        if type(value) is held:
            return plain
    return type(value).__name__


def thaw(value: Any) -> Any:
    """Return a copy of a held value that may be changed: plain dicts, lists and sets all the way down.

    >>> thaw(freeze({"goals": {"ship"}}))
    {'goals': {'ship'}}
    """
    if isinstance(value, Mapping):
        return {key: thaw(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [thaw(inner) for inner in value]
    if type(value) is tuple:
        return tuple([thaw(inner) for inner in value])
    return set(value) if type(value) is frozenset else value
