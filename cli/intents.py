"""Intents as they are written down: one JSON object, an array of them, or JSON lines, read as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

from jidomem.errors import InvalidRequest
from jidomem.intent import parse_json, parse_line


@dataclass(frozen=True, slots=True)
class Batch:
    """What was read: whether it may be several, and the intents; in the place of one may stand why it is unreadable."""

    many: bool
    intents: Iterable[Any]


def read(file: BinaryIO) -> Batch:
    """Return the intents in *file*; lines are read as they are asked for, and one that cannot be read is an error.

    Raises InvalidRequest `malformed_json`, with line and column, for a single object or array that cannot be read.
    """
    lines = iter(file)
    head = _first_two(lines)
    if _are_lines([line for line in head if line.strip()]):
        numbered = enumerate(chain(head, lines), start=1)
        return Batch(True, (_parsed(number, line) for number, line in numbered if line.strip()))
    text = b"".join([*head, *lines])
    if not text.strip():
        raise InvalidRequest("there is nothing to submit", hint="give one JSON object", code="malformed_json")
    value = parse_json(text)
    return Batch(True, value) if isinstance(value, list) else Batch(False, [value])


def _first_two(lines: Iterator[bytes]) -> list[bytes]:
    """Return the lines up to the second that is not blank."""
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if sum(bool(entry.strip()) for entry in head) == 2:
            break
    return head


def _are_lines(full: list[bytes]) -> bool:
    """Return whether two lines open a stream of objects: the second opens an object, or the first is a whole one."""
    if len(full) < 2 or full[0].lstrip().startswith(b"["):
        return False
    return full[1].lstrip().startswith(b"{") or not isinstance(_parsed(1, full[0]), InvalidRequest)


def _parsed(number: int, line: bytes) -> Any:
    try:
        return parse_line(number, line)
    except InvalidRequest as error:
        return error
