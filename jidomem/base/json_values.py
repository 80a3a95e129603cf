"""JSON values: immutable copies, values in JSON form and parsed files. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn, TypeVar

from jidomem.errors import InvalidRequest

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """An immutable dict: equal to the plain one, and usable in its place for reading, JSON and pickle."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class FrozenList(list[V]):
    """An immutable list: equal to the plain one, and usable in its place for reading, JSON and pickle."""

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
    """Return an immutable form of *value*: nested mappings, lists and sets are frozen as well.

    A frozen value, and an object of any other class, is returned unchanged. Raises `InvalidRequest` for a value that
    contains itself.

    >>> freeze({"goals": {"ship"}, "steps": ["test"]})
    {'goals': frozenset({'ship'}), 'steps': ['test']}
    """
    try:
        return _freeze(value)
    except RecursionError:
        raise InvalidRequest(
            "the value contains itself, or is nested too deep", hint="store a reference to it instead"
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
        frozen = tuple([_freeze(inner) for inner in value])
        return value if all(old is new for old, new in zip(value, frozen, strict=True)) else frozen
    return value


def type_name(value: object) -> str:
    """Return the type of a frozen value as users name it: list, not FrozenList."""
    for kind, plain in ((FrozenDict, "dict"), (FrozenList, "list"), (frozenset, "set")):
        if type(value) is kind:
            return plain
    return type(value).__name__


def json_type(value: object) -> str:
    """Return the type of a value in the words of JSON.

    >>> json_type(None), json_type(7), json_type({"a": 1})
    ('null', 'a number', 'an object')
    """
    types = ((bool, "true or false"), (int | float, "a number"), (str, "a text"), (Mapping, "an object"),
             (list | tuple, "a list"))  # fmt: skip
    named = (name for kind, name in types if isinstance(value, kind))
    return "null" if value is None else next(named, type_name(value))


def thaw(value: Any) -> Any:
    """Return a mutable copy of a frozen value: plain dicts, lists and sets at every level.

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


#: The path of a value: a name, or the path of its container and its key there.
Place = str | tuple[Any, Any]
#: The most levels of nested lists and mappings, and the most bits of an integer: any reader of JSON can parse these,
#: however deep its own call stack is.
DEEPEST_JSON, LARGEST = 200, 10_000


def to_json_value(value: Any, place: Place, depth: int = 0) -> Any:
    """Return *value* as plain dicts, lists and scalars; raises `InvalidRequest` for a value without a JSON form.

    >>> to_json_value({"steps": ["test"]}, "data")
    {'steps': ['test']}
    """
    if value is None or type(value) is bool or (type(value) is int and value.bit_length() <= LARGEST):
        return value
    if type(value) is str:
        return _text(value, place)
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, list | Mapping) and depth == DEEPEST_JSON:
        raise InvalidRequest(
            f"{_root(place)} is nested too deep, more than {DEEPEST_JSON} levels",
            hint="store its parts under separate keys",
        )
    if isinstance(value, list):
        return [to_json_value(inner, (place, index), depth + 1) for index, inner in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, place): to_json_value(inner, (place, key), depth + 1) for key, inner in value.items()}
    raise _formless(value, place)


def _shown(place: Place) -> str:
    """Return a path as a Python expression.

    >>> _shown((("data", "steps"), 0))
    "data['steps'][0]"
    """
    return place if isinstance(place, str) else f"{_shown(place[0])}[{place[1]!r:.100}]"


def _root(place: Place) -> str:
    return place if isinstance(place, str) else _root(place[0])


def is_unicode(text: str) -> bool:
    r"""Return whether *text* is valid Unicode, without lone surrogates.

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
    kind = type_name(value)
    if type(value) is int:
        kind = "number with thousands of digits"
    shown = repr(value) if isinstance(value, float) else f"a {kind}"
    hint = "keep it as a list" if kind in ("set", "tuple") else "keep a text, a number, a list or a mapping"
    return InvalidRequest(f"{_shown(place)} is {shown}, and JSON has no form for that", hint=hint)


_Value = TypeVar("_Value")
#: A dotted key of many parts, for which tomllib needs memory quadratic in their number.
_DEEP_KEY = re.compile(rf"""(?<!["'\w-])(?:["'\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST_JSON}}}""")
#: The deepest nesting of brackets in Turtle: a parser takes hours for a million.
BRACKETS = 100
_OPENING = (b"[", b"(", b"<<")
#: Group 1 is a bracket; the four forms of strings, IRIs, comments and escaped characters are skipped.
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
_TOO_DEEP = f"nested too deeply: more than {DEEPEST_JSON} levels"


class NestingError(ValueError):
    """JSON or TOML that is nested too deeply to be parsed."""


_MERGE_MARKER = re.compile(r"^<{7} ", re.MULTILINE)


def decode_json(text: str | bytes) -> Any:
    """Parse JSON; raises ValueError for invalid JSON, TooDeep for too many levels.

    >>> decode_json("[" * 100_000)
    Traceback (most recent call last):
    jidomem.base.json_values.NestingError: nested too deeply: more than 200 levels
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise NestingError(_TOO_DEEP) from error
    return _checked(value, NestingError)


def decode_toml(text: str) -> dict[str, Any]:
    r"""Parse TOML; raises tomllib.TOMLDecodeError, which is a ValueError, for invalid TOML.

    >>> decode_toml("a = " + "[" * 1_000)
    Traceback (most recent call last):
    tomllib.TOMLDecodeError: nested too deeply: more than 200 levels
    >>> decode_toml("a = 1\n<<<<<<< HEAD\nb = 1\n=======\nb = 2\n>>>>>>> topic\n")
    Traceback (most recent call last):
    tomllib.TOMLDecodeError: merge conflict markers of git, from line 2
    """
    import tomllib  # imported here, as most roots have no configuration

    if _DEEP_KEY.search(text):
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    try:
        tables = tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from error
    except tomllib.TOMLDecodeError:
        if (marker := _MERGE_MARKER.search(text)) is None:
            raise
        line = text.count("\n", 0, marker.start()) + 1
        raise tomllib.TOMLDecodeError(f"merge conflict markers of git, from line {line}") from None
    return _checked(tables, tomllib.TOMLDecodeError)


def check_turtle(turtle: bytes) -> None:
    """Raise SyntaxError, as a parser does, with the line where more than `BRACKETS` brackets are nested.

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


def _checked(value: _Value, error: type[ValueError]) -> _Value:
    level: list[Any] = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST_JSON + 1):
        if not level:
            return value
        within = (value.values() if isinstance(value, dict) else value for value in level)
        level = [each for values in within for each in values if isinstance(each, list | dict)]
    raise error(_TOO_DEEP)


JSON_FORMS = "send one JSON object, an array of them, or one a line"


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value in *text*; raises InvalidRequest `malformed_json` with line and column.

    Duplicate keys and the non-JSON numbers NaN and Infinity are refused, as their meaning is unclear.
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except _Unclear:
        raise _unclear(str(text)) from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"not UTF-8 at byte {error.start}", hint="send UTF-8 text", code="malformed_json"
        ) from error
    except RecursionError as error:
        raise InvalidRequest("nested too deeply", hint="send a flat JSON object", code="malformed_json") from error
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"line {error.lineno} column {error.colno}: {error.msg}", hint=JSON_FORMS, code="malformed_json"
        ) from error
    except ValueError as error:
        raise InvalidRequest(
            "a number with thousands of digits", hint="write it as text", code="malformed_json"
        ) from error


def parse_line(number: int, line: str | bytes) -> Any:
    """Return the JSON value in line *number* of a stream; raises InvalidRequest that names the line."""
    try:
        return parse_json(line)
    except InvalidRequest as error:
        detail = error.detail.removeprefix("line 1 ")
        place = f"line {number} " if detail != error.detail else f"line {number}: "
        hint = "send one JSON object a line" if error.hint == JSON_FORMS else error.hint
        raise InvalidRequest(place + detail, hint=hint, code=error.code) from None


class _Unclear(Exception):
    """A JSON text whose meaning is unclear."""


def _no_constant(name: str) -> Any:
    raise _Unclear


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Unclear
    return result


@cache
def _token() -> re.Pattern[str]:
    return re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]|NaN|-?Infinity')


def _unclear(text: str) -> InvalidRequest:
    """Return the error for the first key of *text* that is given twice, or number that is not JSON, with its place."""
    keys: list[set[str]] = []
    token, fault, hint = None, "", ""
    for token in _token().finditer(text):
        if token[0] == "{":
            keys.append(set())
        elif token[0] == "}":
            keys.pop()
        elif token[1] is None:
            fault, hint = f"{token[0]} is not JSON", "write a finite number, or leave it out"
            break
        elif token[2]:
            if (key := json.loads(token[1])) in keys[-1]:
                fault, hint = f"the key {key!r} is given twice", "give it once"
                break
            keys[-1].add(key)
    at = token.start() if token else 0
    place = f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
    return InvalidRequest(f"{place}: {fault}", hint=hint, code="malformed_json")
