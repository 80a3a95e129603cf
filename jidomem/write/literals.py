"""Texts and JSON as literals: whole and as they were given, or refused by name.  Pure."""

from __future__ import annotations

import json
from typing import Any

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.plain import is_unicode, plain
from jidomem.policy import LITERAL_LIMIT
from jidomem.terms import Term, literal


def text(name: str, value: str) -> Term:
    """Return the literal of a text; raises TooLarge over the limit of one, InvalidRequest for what is no text."""
    if not is_unicode(value):
        raise InvalidRequest(f"{name} holds half of a surrogate pair, which is no sign", hint="leave it out")
    if len(value) * 4 > LITERAL_LIMIT and (size := len(value.encode())) > LITERAL_LIMIT:
        hint = "keep it in parts, or keep a summary and where the whole is"
        raise TooLarge(f"{name} has {size} bytes; a text holds at most {LITERAL_LIMIT}", hint=hint)
    return literal(value)


def as_json(value: Any, name: str) -> str:
    """Return *value* as JSON that reads back as the same; raises InvalidRequest, naming what JSON does not hold."""
    return json.dumps(plain(value, name), ensure_ascii=False, separators=(",", ":"))
