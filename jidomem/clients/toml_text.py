"""Change one table of a TOML text and leave every other sign of it as it is: what comes out is read back.  Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from jidomem.decoding import decode_toml

_HEADER = re.compile(r"^[ \t]*\[(?!\[)[^\n]*$", re.MULTILINE)
_ANY_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


class NotEditable(ValueError):
    """A table is written in a way that is not changed here without harm to what stands beside it."""


def put(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return *text* whose table at *path* has *values*, besides what it has already.

    Raises tomllib.TOMLDecodeError for a text that is no TOML, NotEditable for a table that is written otherwise than
    below a header of its own.
    """
    before = decode_toml(text)
    held = _at(before, path)
    if isinstance(held, Mapping) and all(held.get(key) == value for key, value in values.items()):
        return text
    lines = "".join(f"{key} = {_value(value)}\n" for key, value in values.items())
    if held is None:
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        after = f"{text}{gap}[{'.'.join(path)}]\n{lines}"
    else:
        start, end = _section(text, path)
        body = re.sub(rf"(?m)^[ \t]*(?:{'|'.join(map(re.escape, values))})[ \t]*=.*\n?", "", text[start:end])
        header, _, rest = body.partition("\n")
        after = f"{text[:start]}{header}\n{lines}{rest}{text[end:]}"
    _check(after, _with(before, path, {**(held if isinstance(held, Mapping) else {}), **values}), path)
    return after


def remove(text: str, path: Sequence[str]) -> str:
    """Return *text* without the table at *path* and those below it; raises what `put` does."""
    before = decode_toml(text)
    if _at(before, path) is None:
        return text
    after = text
    while (found := _sections(after, path)) is not None:
        start, end = found
        after = after[:start] + after[end:]
    after = after.rstrip("\n") + "\n" if after.strip() else ""
    _check(after, _with(before, path, None), path)
    return after


def _section(text: str, path: Sequence[str]) -> tuple[int, int]:
    found = next((match for match in _HEADER.finditer(text) if _names(match[0]) == list(path)), None)
    if found is None:
        raise NotEditable(f"{'.'.join(path)} has no header [{'.'.join(path)}] of its own")
    return found.start(), _end(text, found.end())


def _sections(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    for match in _HEADER.finditer(text):
        if _names(match[0])[: len(path)] == list(path):
            return match.start(), _end(text, match.end())
    return None


def _end(text: str, at: int) -> int:
    """Return where the next header begins, or the remarks that stand right above it."""
    following = _ANY_HEADER.search(text, at)
    if following is None:
        return len(text)
    end = following.start()
    while (line := text.rfind("\n", 0, end - 1) + 1) > at and text[line:end].lstrip().startswith("#"):
        end = line
    return end


def _names(header: str) -> list[str]:
    try:
        found = decode_toml(header.strip())
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while found:
        name, found = next(iter(found.items()))
        names.append(name)
    return names


def _at(table: Mapping[str, Any], path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(table, Mapping) or key not in table:
            return None
        table = table[key]
    return table


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return *table* with *value* at *path*, or without it where that is None, nor what is then empty above it."""
    key, *rest = path
    inner = value if not rest else _with(table.get(key, {}), rest, value)
    return {**{k: v for k, v in table.items() if k != key}, **({key: inner} if inner else {})}


def _check(text: str, expected: Mapping[str, Any], path: Sequence[str]) -> None:
    try:
        found = decode_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise NotEditable(f"{'.'.join(path)} is not written below a header of its own") from error
    if found != expected:
        raise NotEditable(f"{'.'.join(path)} is not written below a header of its own")


def _value(value: str | Sequence[str]) -> str:
    """Return a text, or a list of them, as TOML has it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_value, value))}]"
