"""Change one entry of a JSON text, with comments or without, and leave every other sign of it as it is.  Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")
_INDENT = re.compile(r"\n([ \t]+)\S")
_DEEPEST = 200


class NotJson(ValueError):
    """A text is no JSON, or not of the form that is asked of it: why, and at which sign."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why, self.at = why, at


@dataclass(frozen=True, slots=True)
class Node:
    """A value, where it stands in the text, and what it holds.

    `parts` are the members of an object or the items of an array, each with where it begins, its key first.
    """

    value: Any
    start: int
    end: int
    parts: tuple[tuple[str | None, int, Node], ...] = ()

    def at(self, key: str) -> Node | None:
        """Return the value of the member *key*, None where there is none."""
        return next((node for name, _, node in self.parts if name == key), None)


def read(text: str) -> Node:
    r"""Return what *text* says; raise NotJson with the place where it is none.

    >>> read('{"a": [1, 2,], // so\n}').value
    {'a': [1, 2]}
    """
    node = _value(text, _blank(text, 0), 0)
    end = _blank(text, node.end)
    if end != len(text):
        raise NotJson("something stands after its end", end)
    return node


def put(text: str, path: Sequence[str], value: Any) -> str:
    r"""Return *text* with *value* at *path*, in the place of what is there; objects on the way are made.

    >>> put('{"a": 1}', ["b", "c"], 2)
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
    """Return *text* with *item* at the end of the array at *path*, which is made where there is none."""
    node = found(read(text), path)
    if node is None:
        return put(text, path, [item])
    _be(node, list, path)
    return _added(text, node, item, None)


def remove(text: str, path: Sequence[str | int]) -> str:
    """Return *text* without what is at *path*, nor what would then be empty above it.

    >>> remove('{"a": {"b": [1]}, "c": 2}', ["a", "b", 0])
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


def found(node: Node | None, path: Sequence[str]) -> Node | None:
    """Return what is at *path* below *node*, None where nothing is; raises NotJson for a way through no object."""
    for depth, key in enumerate(path):
        if node is None:
            return None
        _be(node, dict, path[:depth])
        node = node.at(key)
    return node


def _be(node: Node, kind: type, path: Sequence[str]) -> None:
    if not isinstance(node.value, kind):
        name = ".".join(path) or "it"
        raise NotJson(f"{name} is no {'object' if kind is dict else 'array'}", node.start)


def _added(text: str, node: Node, value: Any, key: str | None) -> str:
    """Return *text* with one more part at the end of *node*, laid out as the others are."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not node.parts:
        inner = _blank(text, node.start + 1)
        if inner != node.end - 1:
            raise NotJson("it cannot be read", inner)
        outer, step = _indent_of(text, node.start), _step(text)
        line = f"{_line_end(text)}{outer}{step}{name}{_dumped(value, outer + step, text)}"
        held = text[node.start + 1 : node.end - 1].rstrip()
        return f"{text[: node.start + 1]}{held}{line}{_line_end(text)}{outer}{text[node.end - 1 :]}"
    (_, first, _), (_, _, last) = node.parts[0], node.parts[-1]
    has_comma = text[(after := _blank(text, last.end)) : after + 1] == ","
    at = after + 1 if has_comma else last.end
    comma, also = ("", ",") if has_comma else (",", "")
    if not _starts_line(text, first):
        return f"{text[:at]}{comma} {name}{json.dumps(value, ensure_ascii=False)}{also}{text[at:]}"
    indent, remark = _indent_of(text, first), _REMARK.match(text, at)
    end = remark.end() if remark else at
    new = f"{_line_end(text)}{indent}{name}{_dumped(value, indent, text)}{also}"
    return f"{text[:at]}{comma}{text[at:end]}{new}{text[end:]}"


def _without(text: str, parent: Node, child: Node) -> str:
    """Return *text* without one part of *parent*, its comma, and the line it leaves empty."""
    places = [node.start for _, _, node in parent.parts]
    number = places.index(child.start)
    start, end = parent.parts[number][1], child.end
    if len(parent.parts) == 1 and not (text[parent.start + 1 : start] + text[end : parent.end - 1]).strip(" \t\r\n,"):
        return text[: parent.start + 1] + text[parent.end - 1 :]
    after = _blank(text, end)
    if text[after : after + 1] == ",":
        end = after + 1
    elif number:
        before = _blank(text, parent.parts[number - 1][2].end)  # where the comma before it stands
        text, start, end = text[:before] + text[before + 1 :], start - 1, end - 1
    if _starts_line(text, start):
        start = text.rindex("\n", 0, start) + 1
        rest = re.compile(r"[ \t]*\r?\n").match(text, end)
        if rest:
            end = rest.end()
        else:  # what follows stands on the same line
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
    """Return the white space that the line of the sign *at* begins with."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _blank_only(text, line)]


def _starts_line(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \t")
    return before.endswith("\n")


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> Node:
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
        raise NotJson("it ends too early" if at >= len(text) else f"a value is due, not {text[at : at + 12]!r}", at)
    return Node(_scalar(match[0], at), at, match.end())


def _scalar(text: str, at: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise NotJson(str(error), at) from error


def _object(text: str, at: int, depth: int) -> Node:
    parts: dict[str, tuple[str | None, int, Node]] = {}
    here = _blank(text, at + 1)
    while text[here : here + 1] != "}":
        match = _STRING.match(text, here)
        if match is None:
            raise NotJson("it ends too early" if here >= len(text) else 'a key, or "}", is due', here)
        key, colon = _scalar(match[0], here), _blank(text, match.end())
        if text[colon : colon + 1] != ":":
            raise NotJson('a ":" is due', colon)
        if key in parts:
            raise NotJson(f"{key!r} stands there twice", here)
        node = _value(text, _blank(text, colon + 1), depth + 1)
        parts[key] = (key, here, node)
        here = _next(text, node.end, "}")
    value: Mapping[str, Any] = {key: node.value for key, (_, _, node) in parts.items()}
    return Node(value, at, here + 1, tuple(parts.values()))


def _items(text: str, at: int, depth: int) -> Iterator[Node]:
    here = _blank(text, at + 1)
    while text[here : here + 1] != "]":
        node = _value(text, here, depth + 1)
        yield node
        here = _next(text, node.end, "]")


def _next(text: str, end: int, closing: str) -> int:
    """Return where the next part begins, or the sign that closes."""
    here = _blank(text, end)
    if text[here : here + 1] == ",":
        return _blank(text, here + 1)
    if text[here : here + 1] != closing:
        raise NotJson("it ends too early" if here >= len(text) else f'a "," or "{closing}" is due', here)
    return here


def _closed(text: str, end: int, closing: str) -> int:
    here = _blank(text, end)
    here = _blank(text, here + 1) if text[here : here + 1] == "," else here
    return here + 1
