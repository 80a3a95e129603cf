"""JSON and TOML of files that others wrote: what is nested too deeply is a ValueError, as other faults are."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from jidomem.plain import DEEPEST

_Value = TypeVar("_Value")
#: A key of so many parts, for which tomllib takes memory with the square of their number.
_DEEP_KEY = re.compile(rf"""(?<!["'\w-])(?:["'\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
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


def _checked(found: _Value, error: type[ValueError]) -> _Value:
    """Return *found*, in which lists and tables stand in one another at most `DEEPEST` levels."""
    level: list[Any] = [found] if isinstance(found, list | dict) else []
    for _ in range(DEEPEST + 1):
        if not level:
            return found
        within = (value.values() if isinstance(value, dict) else value for value in level)
        level = [each for values in within for each in values if isinstance(each, list | dict)]
    raise error(_TOO_DEEP)
