"""The form of the values of the tiers: how their fields are held to it, and how they are kept as JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Self, TypeVar, cast

from jidomem.errors import InvalidRequest
from jidomem.frozen import freeze
from jidomem.moments import parse_moment, stamp
from jidomem.plain import is_unicode, plain

V = TypeVar("V", bound="Value")


class Vector(tuple[float, ...]):
    """Finite numbers, at least one, as `vector` made it; its length is worked out once."""

    @cached_property
    def length(self) -> float:
        """Return how long it is.

        >>> Vector((3.0, 4.0)).length
        5.0
        """
        return math.hypot(*self)


class Value:
    """What the values of all tiers can: hold a field to its form, and go to JSON and back without a loss."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON values; `from_dict` gives back an equal one."""
        return {name: _written(getattr(self, name), name) for name in _known(cast(Hashable, type(self)))}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Self:
        """Return the value that `to_dict` wrote; raise `InvalidRequest` unless it has the fields of one, and no other.

        A field that has a default may be left out.
        """
        if not isinstance(kept, Mapping):
            raise InvalidRequest(
                f"a kept {cls.__name__} is a mapping, not {kept!r:.200}", hint="give what to_dict gave"
            )
        needed = _known(cast(Hashable, cls))
        if unknown := [name for name in kept if name not in needed]:
            raise InvalidRequest(f"a {cls.__name__} has no {unknown[0]!r:.200}", hint=f"it has {', '.join(needed)}")
        if missing := [name for name, must in needed.items() if must and name not in kept]:
            raise InvalidRequest(f"the kept {cls.__name__} lacks {', '.join(missing)}", hint="give what to_dict gave")
        return cls(**kept)

    def _hold(self, **forms: Callable[[str, Any], Any]) -> None:
        """Put each field into its form; raise `InvalidRequest` naming the one that cannot be."""
        for name, form in forms.items():
            given = getattr(self, name)
            if (held := form(f"{name} of a {type(self).__name__}", given)) is not given:
                object.__setattr__(self, name, held)


@cache
def _known(cls: Hashable) -> dict[str, bool]:
    """Return the names of the fields of a value, and whether each must be given."""
    return {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(cast(Any, cls))}


def _written(value: Any, place: str) -> Any:
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [each if type(each) is float else _written(each, place) for each in value]
    return plain(value, place)


def shown(given: Any) -> str:
    """Return *given* as a message quotes it: as Python writes it, cut to 200 characters."""
    try:
        return f"{given!r:.200}"
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists of as many
        return f"a {type(given).__name__} that is too large to show"


# Forms of a field: each returns what is held of what was given


def text(place: str, given: Any) -> str:
    """Return a text that says something; raise `InvalidRequest` for any other."""
    if not isinstance(given, str) or not given.strip() or not is_unicode(given):
        raise InvalidRequest(f"{place} is a text that says something, not {shown(given)}", hint="give a text")
    return given


def words(place: str, given: Any) -> str:
    """Return a text, which may be empty; raise `InvalidRequest` for what is none."""
    if not isinstance(given, str) or not is_unicode(given):
        raise InvalidRequest(f"{place} is a text, not {shown(given)}", hint='give a text, "" for none')
    return given


def moment(place: str, given: Any) -> datetime:
    """Return a moment in UTC; raise `InvalidRequest` for what names none."""
    found = parse_moment(given)
    if found is None:
        raise InvalidRequest(f"{place} is a moment, not {shown(given)}", hint='give "2026-11-21T08:00:00Z"')
    return found


def count(place: str, given: Any) -> int:
    """Return a whole number from 0; raise `InvalidRequest` for any other."""
    if type(given) is not int or given < 0:
        raise InvalidRequest(f"{place} is a whole number from 0, not {shown(given)}", hint="give 0")
    return given


def number(place: str, given: Any) -> float:
    """Return a finite number; raise `InvalidRequest` for any other."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not abs(given) <= sys.float_info.max:
        raise InvalidRequest(f"{place} is a finite number, not {shown(given)}", hint="give 0.0")
    return float(given)


def share(place: str, given: Any) -> float:
    """Return a number from 0 to 1; raise `InvalidRequest` for any other."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidRequest(f"{place} is a number from 0 to 1, not {shown(given)}", hint="give 1.0")
    return float(given)


def truth(place: str, given: Any) -> bool:
    """Return True or False; raise `InvalidRequest` for any other."""
    if type(given) is not bool:
        raise InvalidRequest(f"{place} is True or False, not {shown(given)}", hint="give True, or leave it out")
    return given


def texts(place: str, given: Any) -> tuple[str, ...]:
    """Return texts in order; raise `InvalidRequest` for a single text and what is none."""
    return tuple(text(place, each) for each in several(place, given))


def text_set(place: str, given: Any) -> frozenset[str]:
    """Return texts as a set; raise `InvalidRequest` for a single text and what is none."""
    return frozenset(text(place, each) for each in several(place, given))


def vector(place: str, given: Any) -> Vector:
    """Return the numbers of a vector; raise `InvalidRequest` unless they are finite, and at least one."""
    if type(given) is Vector:
        return given
    numbers = tuple(several(place, given))
    if not numbers or bool in map(type, numbers):
        raise InvalidRequest(f"{place} is a list of numbers, not {shown(given)}", hint="give what the embedder made")
    try:
        held = tuple(map(float, numbers))
    except (TypeError, ValueError, OverflowError):
        held = (math.nan,)
    if not all(map(math.isfinite, held)):
        raise InvalidRequest(f"{place} has what is no finite number", hint="give what the embedder made, or None")
    return Vector(held)


def mapping(place: str, given: Any) -> Mapping[str, Any]:
    """Return a copy of a mapping, held fast; raise `InvalidRequest` for any other, and what JSON has no form for."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"{place} is a mapping, not {shown(given)}", hint='give {"name": "Ana"}')
    found: Mapping[str, Any] = freeze(plain(given, place))
    return found


def several(place: str, given: Any) -> Sequence[Any] | Iterable[Any]:
    """Return what stands in a list or a set; raise `InvalidRequest` for a text, a mapping and what is none."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidRequest(f"{place} is a list, not {shown(given)}", hint="give a list")
    return given


def unless_none(form: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return the form of a field that may be None."""
    return lambda place, given: None if given is None else form(place, given)


def each_of(kind: type[V]) -> Callable[[str, Any], tuple[V, ...]]:
    """Return the form of a field of values of that kind in order, given as such or as the mappings that spell them."""

    def form(place: str, given: Any) -> tuple[V, ...]:
        return tuple(each if isinstance(each, kind) else kind.from_dict(each) for each in several(place, given))

    return form
