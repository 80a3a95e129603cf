"""The configuration files of clients: one entry is changed, the rest of the file stays.

A JSON text may have comments. A file is written atomically, and never outside its folder.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from jidomem.base.files import atomic_file
from jidomem.base.json_values import decode_toml
from jidomem.errors import Failed

_BLANK = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")
_INDENT = re.compile(r"\n([ \t]+)\S")
_DEEPEST = 200


class NotJson(ValueError):
    """A text is not JSON, or has not the expected form; with the reason and its position."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why, self.at = why, at


class Node(NamedTuple):
    """A value, its place in the text, and its parts.

    `parts` are the members of an object or the items of an array, each with its start; the key comes first.
    """

    value: Any
    start: int
    end: int
    parts: tuple[tuple[str | None, int, Node], ...] = ()

    def at(self, key: str) -> Node | None:
        """Return the value of the member *key*, None if there is none."""
        return next((node for name, _, node in self.parts if name == key), None)


def read(text: str) -> Node:
    r"""Return the value of *text*; raise NotJson with the position of a syntax error.

    >>> read('{"a": [1, 2,], // so\n}').value
    {'a': [1, 2]}
    """
    node = _parse_value(text, _blank(text, 0), 0)
    end = _blank(text, node.end)
    if end != len(text):
        raise NotJson("there is text after its end", end)
    return node


def set_json(text: str, path: Sequence[str], value: Any) -> str:
    r"""Return *text* with *value* at *path*, in place of the present value; missing objects on the path are created.

    >>> set_json('{"a": 1}', ["b", "c"], 2)
    '{"a": 1, "b": {"c": 2}}'
    """
    node, depth = read(text), 0
    for depth, key in enumerate(path):
        _be(node, dict, path[:depth])
        inner = node.at(key)
        if inner is None:
            break
        node = inner
    else:
        return text if node.value == value else text[: node.start] + _laid(text, node, value) + text[node.end :]
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _added(text, node, value, path[depth])


def append(text: str, path: Sequence[str], item: Any) -> str:
    """Return *text* with *item* at the end of the array at *path*, which is created if missing."""
    node = node_at(read(text), path)
    if node is None:
        return set_json(text, path, [item])
    _be(node, list, path)
    return _added(text, node, item, None)


def remove_json(text: str, path: Sequence[str | int]) -> str:
    """Return *text* without the value at *path*, nor containers that would become empty.

    >>> remove_json('{"a": {"b": [1]}, "c": 2}', ["a", "b", 0])
    '{"c": 2}'
    """
    chain = [read(text)]
    for key in path:
        parts = chain[-1].parts
        named = [node for name, _, node in parts if name == key] if isinstance(key, str) else [parts[key][2]]
        if not named:
            return text
        chain.append(named[0])
    while len(chain) > 2 and len(chain[-2].parts) == 1:
        chain.pop()
    return _without(text, chain[-2], chain[-1])


def node_at(node: Node | None, path: Sequence[str]) -> Node | None:
    """Return the value at *path* below *node*, None if there is none; raise NotJson if a parent is no object."""
    for depth, key in enumerate(path):
        if node is None:
            return None
        _be(node, dict, path[:depth])
        node = node.at(key)
    return node


def _be(node: Node, kind: type, path: Sequence[str]) -> None:
    if not isinstance(node.value, kind):
        name = ".".join(path) or "it"
        raise NotJson(f"{name} is not an {'object' if kind is dict else 'array'}", node.start)


def _added(text: str, node: Node, value: Any, key: str | None) -> str:
    """Return *text* with one more part at the end of *node*, in the layout of the others."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not node.parts:
        inner = _blank(text, node.start + 1)
        if inner != node.end - 1:
            raise NotJson("it cannot be read", inner)
        outer, step = _indent_of(text, node.start), _step(text)
        line = f"{_line_end(text)}{outer}{step}{name}{_dumped(value, outer + step, text)}"
        content = text[node.start + 1 : node.end - 1].rstrip()
        return f"{text[: node.start + 1]}{content}{line}{_line_end(text)}{outer}{text[node.end - 1 :]}"
    (_, first, _), (_, _, last) = node.parts[0], node.parts[-1]
    has_comma = text[(after := _blank(text, last.end)) : after + 1] == ","
    at = after + 1 if has_comma else last.end
    comma, trailing = ("", ",") if has_comma else (",", "")
    if not _starts_line(text, first):
        return f"{text[:at]}{comma} {name}{json.dumps(value, ensure_ascii=False)}{trailing}{text[at:]}"
    indent, remark = _indent_of(text, first), _REMARK.match(text, at)
    end = remark.end() if remark else at
    new = f"{_line_end(text)}{indent}{name}{_dumped(value, indent, text)}{trailing}"
    return f"{text[:at]}{comma}{text[at:end]}{new}{text[end:]}"


def _without(text: str, parent: Node, child: Node) -> str:
    """Return *text* without one part of *parent*, its comma, and the line that becomes empty."""
    places = [node.start for _, _, node in parent.parts]
    number = places.index(child.start)
    start, end = parent.parts[number][1], child.end
    if len(parent.parts) == 1 and not (text[parent.start + 1 : start] + text[end : parent.end - 1]).strip(" \t\r\n,"):
        return text[: parent.start + 1] + text[parent.end - 1 :]
    after = _blank(text, end)
    if text[after : after + 1] == ",":
        end = after + 1
    elif number:
        before = _blank(text, parent.parts[number - 1][2].end)  # the position of the comma before it
        text, start, end = text[:before] + text[before + 1 :], start - 1, end - 1
    if _starts_line(text, start):
        start = text.rindex("\n", 0, start) + 1
        rest = re.compile(r"[ \t]*\r?\n").match(text, end)
        if rest:
            end = rest.end()
        else:  # the next part is on the same line
            start -= 1 + (text[start - 2 : start - 1] == "\r")
            end = _blank_only(text, end)
    else:
        end = _blank_only(text, end)
        if number and text[end : end + 1] in ("}", "]"):
            start = len(text[:start].rstrip(" \t"))
    return text[:start] + text[end:]


def _blank_only(text: str, at: int) -> int:
    match = re.compile(r"[ \t]*").match(text, at)
    return match.end() if match else at


def _laid(text: str, node: Node, value: Any) -> str:
    if "\n" not in text[node.start : node.end] and not isinstance(node.value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return _dumped(value, _indent_of(text, node.start), text)


def _dumped(value: Any, indent: str, text: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_step(text)).split("\n")
    return (_line_end(text) + indent).join(lines)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match else "  "


def _indent_of(text: str, at: int) -> str:
    """Return the white space at the start of the line of the character *at*."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _blank_only(text, line)]


def _starts_line(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \t")
    return before.endswith("\n")


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _parse_value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise NotJson("it is nested too deeply", at)
    sign = text[at : at + 1]
    if sign == "{":
        return _object(text, at, depth)
    if sign == "[":
        items = tuple((None, node.start, node) for node in _items(text, at, depth))
        end = items[-1][2].end if items else at + 1
        return Node([node.value for _, _, node in items], at, _closed(text, end, "]"), items)
    match = _STRING.match(text, at) if sign == '"' else _SCALAR.match(text, at)
    if match is None:
        raise NotJson(
            "it ends too early" if at >= len(text) else f"a value is expected, not {text[at : at + 12]!r}", at
        )
    return Node(_scalar(match[0], at), at, match.end())


def _scalar(text: str, at: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise NotJson(str(error), at) from error


def _object(text: str, at: int, depth: int) -> Node:
    parts: dict[str, tuple[str | None, int, Node]] = {}
    position = _blank(text, at + 1)
    while text[position : position + 1] != "}":
        match = _STRING.match(text, position)
        if match is None:
            raise NotJson("it ends too early" if position >= len(text) else 'a key, or "}", is expected', position)
        key, colon = _scalar(match[0], position), _blank(text, match.end())
        if text[colon : colon + 1] != ":":
            raise NotJson('a ":" is expected', colon)
        if key in parts:
            raise NotJson(f"{key!r} occurs twice", position)
        node = _parse_value(text, _blank(text, colon + 1), depth + 1)
        parts[key] = (key, position, node)
        position = _next(text, node.end, "}")
    value: Mapping[str, Any] = {key: node.value for key, (_, _, node) in parts.items()}
    return Node(value, at, position + 1, tuple(parts.values()))


def _items(text: str, at: int, depth: int) -> Iterator[Node]:
    position = _blank(text, at + 1)
    while text[position : position + 1] != "]":
        node = _parse_value(text, position, depth + 1)
        yield node
        position = _next(text, node.end, "]")


def _next(text: str, end: int, closing: str) -> int:
    """Return the start of the next part, or the closing bracket."""
    position = _blank(text, end)
    if text[position : position + 1] == ",":
        return _blank(text, position + 1)
    if text[position : position + 1] != closing:
        raise NotJson("it ends too early" if position >= len(text) else f'a "," or "{closing}" is expected', position)
    return position


def _closed(text: str, end: int, closing: str) -> int:
    position = _blank(text, end)
    position = _blank(text, position + 1) if text[position : position + 1] == "," else position
    return position + 1


_HEADER = re.compile(r"^[ \t]*\[(?!\[)[^\n]*$", re.MULTILINE)
_ANY_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


class NotEditable(ValueError):
    """A table is written in a form that cannot be edited without changing its neighbours."""


def set_toml(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return *text* whose table at *path* has *values* in addition to its own.

    Raises tomllib.TOMLDecodeError for a text that is no TOML, NotEditable for a table without a header of its own.
    """
    before = decode_toml(text)
    table = _at(before, path)
    if isinstance(table, Mapping) and all(table.get(key) == value for key, value in values.items()):
        return text
    lines = "".join(f"{key} = {_format_value(value)}\n" for key, value in values.items())
    if table is None:
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        after = f"{text}{gap}[{'.'.join(path)}]\n{lines}"
    else:
        start, end = _section(text, path)
        body = re.sub(rf"(?m)^[ \t]*(?:{'|'.join(map(re.escape, values))})[ \t]*=.*\n?", "", text[start:end])
        header, _, rest = body.partition("\n")
        after = f"{text[:start]}{header}\n{lines}{rest}{text[end:]}"
    _check(after, _with(before, path, {**(table if isinstance(table, Mapping) else {}), **values}), path)
    return after


def toml_at(text: str, path: Sequence[str]) -> Any:
    """Return the value at *path* of *text*, None if there is none; raises tomllib.TOMLDecodeError."""
    return _at(decode_toml(text), path)


def remove_toml(text: str, path: Sequence[str]) -> str:
    """Return *text* without the table at *path* and those below it; raises the errors of `set_toml`."""
    before = decode_toml(text)
    if _at(before, path) is None:
        return text
    after = text
    while (span := _sections(after, path)) is not None:
        start, end = span
        after = after[:start] + after[end:]
    after = after.rstrip("\n") + "\n" if after.strip() else ""
    _check(after, _with(before, path, None), path)
    return after


def _section(text: str, path: Sequence[str]) -> tuple[int, int]:
    header = next((match for match in _HEADER.finditer(text) if _names(match[0]) == list(path)), None)
    if header is None:
        raise NotEditable(f"{'.'.join(path)} has no header [{'.'.join(path)}] of its own")
    return header.start(), _end(text, header.end())


def _sections(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    for match in _HEADER.finditer(text):
        if _names(match[0])[: len(path)] == list(path):
            return match.start(), _end(text, match.end())
    return None


def _end(text: str, at: int) -> int:
    """Return the start of the next header, or of the comments directly above it."""
    following = _ANY_HEADER.search(text, at)
    if following is None:
        return len(text)
    end = following.start()
    while (line := text.rfind("\n", 0, end - 1) + 1) > at and text[line:end].lstrip().startswith("#"):
        end = line
    return end


def _names(header: str) -> list[str]:
    try:
        table = decode_toml(header.strip())
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while table:
        name, table = next(iter(table.items()))
        names.append(name)
    return names


def _at(table: Mapping[str, Any], path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(table, Mapping) or key not in table:
            return None
        table = table[key]
    return table


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return *table* with *value* at *path*; None removes it, and tables that become empty."""
    key, *rest = path
    inner = value if not rest else _with(table.get(key, {}), rest, value)
    return {**{k: v for k, v in table.items() if k != key}, **({key: inner} if inner else {})}


def _check(text: str, expected: Mapping[str, Any], path: Sequence[str]) -> None:
    try:
        parsed = decode_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise NotEditable(f"{'.'.join(path)} is not written below a header of its own") from error
    if parsed != expected:
        raise NotEditable(f"{'.'.join(path)} is not written below a header of its own")


def _format_value(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_format_value, value))}]"


_MODE = 0o666
_ROOM = "free space on that disk, and try again"
_NEEDS = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: "remount that disk writable, or name a place elsewhere",
}


def write(path: Path, text: str | None, mode: int | None = None) -> None:
    """Write *text* to the file at *path*, or delete the file for None; raise Failed `write_failed`.

    If the folder of a deleted file becomes empty, it is removed too. A file is written by `replace_file`.
    """
    path = Path(os.path.realpath(path))
    try:
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text.encode("utf-8"), mode)
            return
        path.unlink(missing_ok=True)
        with suppress(OSError):  # the folder is not empty
            path.parent.rmdir()
    except OSError as error:
        detail = f"{path} cannot be written: {error.strerror}"
        raise Failed(detail, hint=disk_error_hint(error, "make that folder writable")) from error


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replace the content of the file at *path* by *data*, atomically; raises OSError.

    A link is followed, so that it stays one. The mode of the file stays unless *mode* is given.
    """
    path = Path(os.path.realpath(path))
    with atomic_file(path, _MODE, durable=True) as file:
        if mode is not None or path.exists():
            os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode) if mode is None else mode)
        file.write(data)


def disk_error_hint(error: OSError, otherwise: str) -> str:
    """Return the hint for a failed write: the reason of the disk, else *otherwise*."""
    return _NEEDS.get(error.errno or 0, otherwise)


def check_inside(folder: Path, paths: Iterable[Path]) -> None:
    """Raise Failed if a link leads one of *paths* out of *folder*: a clone may bring any link."""
    top = os.path.realpath(folder)
    for path in paths:
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(top):
            raise Failed(
                f"{path} leads to {real}, out of {folder}",
                hint=f"check it, then remove it: ls -ld {path}",
                code="invalid_config",
            )
