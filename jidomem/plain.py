"""Values as JSON: what has a form in JSON comes back as it was, anything else is refused with its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.frozen import kind_of

#: Where a value is: a name, or what it is in and its key there.
Place = str | tuple[Any, Any]
#: How deep lists and mappings may stand in one another, and how large a whole number may be in bits: whoever reads the
#: JSON can take that, however deep in a program it is.
DEEPEST, LARGEST = 200, 10_000


def plain(value: Any, place: Place, depth: int = 0) -> Any:
    """Return a copy of *value* in plain dicts, lists and scalars; raise `InvalidRequest` where JSON has no form for it.

    >>> plain({"steps": ["test"]}, "data")
    {'steps': ['test']}
    """
    if value is None or type(value) is bool or (type(value) is int and value.bit_length() <= LARGEST):
        return value
    if type(value) is str:
        return _text(value, place)
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, list | Mapping) and depth == DEEPEST:
        raise InvalidRequest(
            f"{_root(place)} is nested too deep, more than {DEEPEST} levels",
            hint="keep its parts under keys of their own",
        )
    if isinstance(value, list):
        return [plain(inner, (place, index), depth + 1) for index, inner in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, place): plain(inner, (place, key), depth + 1) for key, inner in value.items()}
    raise _formless(value, place)


def _shown(place: Place) -> str:
    """Return a place as Python would reach it.

    >>> _shown((("data", "steps"), 0))
    "data['steps'][0]"
    """
    return place if isinstance(place, str) else f"{_shown(place[0])}[{place[1]!r:.100}]"


def _root(place: Place) -> str:
    return place if isinstance(place, str) else _root(place[0])


def is_unicode(text: str) -> bool:
    r"""Return whether *text* is Unicode text; a lone surrogate is half a character.

    >>> is_unicode("\N{SNOWMAN}"), is_unicode("\udc80")
    (True, False)
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value: str, place: Place) -> str:
    if not is_unicode(value):
        raise InvalidRequest(
            f"{_shown(place)} has half a surrogate pair in it, which JSON cannot carry: {value!r:.100}",
            hint="decode the text as it was written before it is put here",
        )
    return value


def _key(key: Any, place: Place) -> str:
    if type(key) is not str:
        hint = f"use {str(key)!r:.100}"
        raise InvalidRequest(f"{_shown(place)} has the key {key!r:.100}, and JSON keys are texts", hint=hint)
    return _text(key, place)


def _formless(value: Any, place: Place) -> InvalidRequest:
    kind = kind_of(value)
    if type(value) is int:
        kind = "number of thousands of digits"
    shown = repr(value) if isinstance(value, float) else f"a {kind}"
    hint = "keep it as a list" if kind in ("set", "tuple") else "keep a text, a number, a list or a mapping"
    return InvalidRequest(f"{_shown(place)} is {shown}, and JSON has no form for that", hint=hint)
