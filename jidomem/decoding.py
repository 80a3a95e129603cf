"""JSON, TOML and Turtle of files that others wrote: what is nested too deeply is refused as other faults are."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, TypeVar

from jidomem.plain import DEEPEST

_Value = TypeVar("_Value")
#: A key of so many parts, for which tomllib takes memory with the square of their number.
_DEEP_KEY = re.compile(rf"""(?<!["'\w-])(?:["'\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
#: How many brackets of Turtle may stand in each other: a parser takes hours for a million.
BRACKETS = 100
_OPENING = (b"[", b"(", b"<<")
#: A bracket is group 1; texts in their four forms, IRIs, comments and escaped characters are passed over.
_PIECE = rb"""
      (<<|>>|[\[\]()])
    | \"{3} (?: [^"\\] | \\. | "{1,2}(?!") )*+ (?: \"{3} | \Z )
    | '{3} (?: [^'\\] | \\. | '{1,2}(?!') )*+ (?: '{3} | \Z )
    | " [^"\\\n]*+ (?: \\. [^"\\\n]*+ )*+ "?
    | ' [^'\\\n]*+ (?: \\. [^'\\\n]*+ )*+ '?
    | < [^<>"\s]*+ >?
    | \# [^\n]*+
    | \\.
"""
_TOO_DEEP = f"nested too deeply: more than {DEEPEST} levels"


class TooDeep(ValueError):
    """JSON or TOML is nested too deeply to be read."""


def decode_json(text: str | bytes) -> Any:
    """Return the JSON value in *text*; raise ValueError for any other text, TooDeep for one nested too deeply.

    >>> decode_json("[" * 100_000)
    Traceback (most recent call last):
    jidomem.decoding.TooDeep: nested too deeply: more than 200 levels
    """
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise TooDeep(_TOO_DEEP) from error
    return _checked(found, TooDeep)


def decode_toml(text: str) -> dict[str, Any]:
    """Return the tables in *text*; raise tomllib.TOMLDecodeError, which is a ValueError, for any other text.

    >>> decode_toml("a = " + "[" * 1_000)
    Traceback (most recent call last):
    tomllib.TOMLDecodeError: nested too deeply: more than 200 levels
    """
    import tomllib  # most roots have no configuration

    if _DEEP_KEY.search(text):
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    try:
        found = tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from error
    return _checked(found, tomllib.TOMLDecodeError)


def check_turtle(turtle: bytes) -> None:
    """Raise SyntaxError, as a parser does, with the line from which on brackets stand in more than `BRACKETS` others.

    >>> check_turtle(b"<urn:a> <urn:b> " + b"[ a " * 1_000)
    Traceback (most recent call last):
    SyntaxError: brackets in more than 100 others
    >>> check_turtle(b'<urn:a> <urn:b> "' + b"[" * 1_000 + b'" .')
    """
    if sum(map(turtle.count, _OPENING)) <= BRACKETS:
        return
    depth = 0
    for piece in _pieces().finditer(turtle):
        if piece[1]:
            depth += 1 if piece[1] in _OPENING else -1
            if depth > BRACKETS:
                line = turtle.count(b"\n", 0, piece.start()) + 1
                raise SyntaxError(f"brackets in more than {BRACKETS} others", (None, line, None, None))


@cache
def _pieces() -> re.Pattern[bytes]:
    return re.compile(_PIECE, re.DOTALL | re.VERBOSE)  # of most files there is no need to look


def _checked(found: _Value, error: type[ValueError]) -> _Value:
    """Return *found*, in which lists and tables stand in one another at most `DEEPEST` levels."""
    level: list[Any] = [found] if isinstance(found, list | dict) else []
    for _ in range(DEEPEST + 1):
        if not level:
            return found
        within = (value.values() if isinstance(value, dict) else value for value in level)
        level = [each for values in within for each in values if isinstance(each, list | dict)]
    raise error(_TOO_DEEP)
