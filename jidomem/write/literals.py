"""Texts and JSON as literals: whole and as they were given, or refused by name.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.policy import LITERAL_LIMIT
from jidomem.terms import Term, literal


def text(name: str, value: str) -> Term:
    """Return the literal of a text; raises TooLarge over the limit of one, InvalidRequest for what is no text."""
    if _is_halved(value):
        raise InvalidRequest(f"{name} holds half of a surrogate pair, which is no sign", hint="leave it out")
    if len(value) * 4 > LITERAL_LIMIT and (size := len(value.encode())) > LITERAL_LIMIT:
        hint = "keep it in parts, or keep a summary and where the whole is"
        raise TooLarge(f"{name} has {size} bytes; a text holds at most {LITERAL_LIMIT}", hint=hint)
    return literal(value)


def as_json(value: Any, name: str) -> str:
    """Return *value* as JSON that reads back as the same; raises InvalidRequest, naming what JSON does not hold."""
    try:
        for fault in _faults(value, name):
            raise InvalidRequest(fault, hint="give texts, numbers, truths, None, and lists and mappings of those")
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise InvalidRequest(f"{name} is nested too deep", hint="keep its parts apart") from None


def _faults(value: Any, path: str) -> Iterator[str]:
    """Yield what in *value* would not come back from JSON as it is, and where it is."""
    if type(value) is dict:
        for key, part in value.items():
            if type(key) is str:
                yield from _faults(key, f"the key {key!a} of {path}")
                yield from _faults(part, f"{path}[{key!r}]")
            else:
                yield f"{path} has a key that is a {type(key).__name__}, and JSON has none"
    elif type(value) is list:
        for number, part in enumerate(value):
            yield from _faults(part, f"{path}[{number}]")
    elif type(value) is float and (value != value or abs(value) == float("inf")):
        yield f"{path} is {value}, which is no number in JSON"
    elif type(value) is str:
        if _is_halved(value):
            yield f"{path} holds half of a surrogate pair, which is no sign"
    elif value is not None and type(value) not in (int, float, bool):
        yield f"{path} is a {type(value).__name__}, which JSON does not hold"


def _is_halved(value: str) -> bool:
    """Return whether a text holds half of a character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False
