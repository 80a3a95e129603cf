"""Intents as they are written down: one JSON object, an array of them, or JSON lines, read as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.intent import parse_json, parse_line

#: The most bytes that are held at once: of a line, or of all where they are not lines.
LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """What was read: whether it may be several, and the intents; in the place of one may stand why it is unreadable."""

    many: bool
    intents: Iterable[Any]


def read(file: BinaryIO) -> Batch:
    """Return the intents in *file*; lines are read as they are asked for, and one that cannot be read is an error.

    Raises InvalidRequest `malformed_json`, with line and column, for a single object or array that cannot be read, and
    TooLarge for one, or for a line, of more than 64 MiB.
    """
    lines = _lines(file)
    head = _first_two(lines)
    if _are_lines([line for line in head if line.strip()]):
        numbered = enumerate(chain(head, lines), start=1)
        return Batch(True, (_parsed(number, line) for number, line in numbered if line.strip()))
    text = b"".join(_bounded(chain(head, lines)))
    if not text.strip():
        raise InvalidRequest("there is nothing to submit", hint="give one JSON object", code="malformed_json")
    value = parse_json(text)
    return Batch(True, value) if isinstance(value, list) else Batch(False, [value])


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of *file*; raises TooLarge for one over the limit."""
    return chain.from_iterable(_bounded([line]) for line in iter(partial(file.readline, LIMIT + 1), b""))


def _bounded(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *lines*; raises TooLarge when there is more than the limit of them."""
    size = 0
    for line in lines:
        size += len(line)
        if size > LIMIT:
            raise TooLarge(
                f"a line, object or array of intents has more than {LIMIT >> 20} MiB",
                hint="give one object a line; for an array: jq -c '.[]' FILE | jidomem submit -",
            )
        yield line


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
