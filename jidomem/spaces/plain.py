"""Memory as JSON: what has a form in JSON comes back as it was, anything else is refused with its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jidomem.errors import InvalidRequest


def plain(value: Any, place: str) -> Any:
    """Return a copy of *value* in plain dicts, lists and scalars; raise `InvalidRequest` where JSON has no form for it.

    >>> plain({"steps": ["test"]}, "data")
    {'steps': ['test']}
    """
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is str:
        return _text(value, place)
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, list):
        return [plain(inner, f"{place}[{index}]") for index, inner in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, place): plain(inner, f"{place}[{key!r}]") for key, inner in value.items()}
    raise _formless(value, place)


def _text(value: str, place: str) -> str:
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise InvalidRequest(f"{place} is a text with half a surrogate pair, which JSON cannot carry: {value!r}")
    return value


def _key(key: Any, place: str) -> str:
    if type(key) is not str:
        raise InvalidRequest(f"{place} has the key {key!r}, and JSON keys are texts", hint=f"use {str(key)!r}")
    return _text(key, f"a key of {place}")


def _formless(value: Any, place: str) -> InvalidRequest:
    kind = "set" if isinstance(value, frozenset) else type(value).__name__
    shown = repr(value) if isinstance(value, float) else f"a {kind}"
    hint = "keep it as a list" if kind in ("set", "tuple") else "keep a text, a number, a list or a mapping"
    return InvalidRequest(f"{place} is {shown}, and JSON has no form for that", hint=hint)
