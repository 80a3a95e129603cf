"""Texts and JSON as literals: whole and as they were given, or refused by name.  Pure."""

from __future__ import annotations

import json
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.plain import is_unicode, plain
from jidomem.terms import Term, literal
from jidomem.write.tidy import check_size


def text(name: str, value: str, most: int) -> Term:
    """Return the literal of a text; raises TooLarge over *most* bytes of UTF-8, InvalidRequest for what is no text."""
    if not is_unicode(value):
        raise InvalidRequest(f"{name} holds half of a surrogate pair, which is no sign", hint="leave it out")
    check_size(name, value, most, instead="keep it in parts, or keep a summary and where the whole is")
    return literal(value)


def as_json(value: Any, name: str) -> str:
    """Return *value* as JSON that reads back as the same; raises InvalidRequest, naming what JSON does not hold."""
    return json.dumps(plain(value, name), ensure_ascii=False, separators=(",", ":"))
