"""What a request may take: bytes, rows, seconds; numbers that the user's own configuration may set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from jidomem.errors import Failed
from jidomem.policy import LITERAL_LIMIT, LITERAL_MOST
from jidomem.sparql import MAX_BYTES, MAX_DEPTH

_KIB, _MIB, _GIB = 1024, 1024**2, 1024**3
#: The least and the most of each: below, nothing would be answered; above, the engine's stack or the machine gives out.
_BETWEEN: Mapping[str, tuple[float, float]] = {
    "queries": (1, 256),
    "query_seconds": (0.05, 3600),
    "query_memory": (64 * _MIB, 1024 * _GIB),
    "query_rows": (1, 10_000_000),
    "query_answer": (_KIB, 2 * _GIB),
    "query_text": (16, MAX_BYTES),
    "query_nesting": (1, MAX_DEPTH),
    "body": (_KIB, _GIB),
    "stream": (_KIB, 1024 * _GIB),
    "line": (_KIB, _GIB),
    "literal": (_KIB, LITERAL_MOST),
    "url": (_KIB, _MIB),
    "headers": (_KIB, _MIB),
    "connections": (1, 4096),
    "idle_seconds": (0.1, 3600),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits with their defaults; sizes are in bytes.

    `queries` are answered apart at once, each within `query_seconds`, `query_memory`, `query_rows` and `query_answer`,
    where its text has at most `query_text` bytes and `query_nesting` brackets in each other. A `body` is one request's,
    a `stream` is one of lines, each a `line` at most. A `literal` is one text of a memory, by whichever door it comes.
    """

    queries: int = 4
    query_seconds: float = 30.0
    query_memory: int = _GIB
    query_rows: int = 100_000
    query_answer: int = 64 * _MIB
    query_text: int = MAX_BYTES
    query_nesting: int = MAX_DEPTH
    body: int = _MIB
    stream: int = _GIB
    line: int = _MIB
    literal: int = LITERAL_LIMIT
    url: int = 64 * _KIB
    headers: int = 32 * _KIB
    connections: int = 64
    idle_seconds: float = 10.0


def limits(said: Any, where: str) -> Limits:
    """Return the limits that the table *said* sets; raises Failed `invalid_config`, naming *where* and the limit."""
    if not isinstance(said, dict):
        raise _wrong(where, "limits is a table", "write [limits]")
    known = {field.name: field.type for field in fields(Limits)}
    for name, value in said.items():
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise _wrong(where, f"limits.{name} is no limit", hint)
        least, most = _BETWEEN[name]
        kind = (int, float) if known[name] == "float" else (int,)
        if not isinstance(value, kind) or isinstance(value, bool) or not least <= value <= most:
            number = "a number" if known[name] == "float" else "a whole number"
            raise _wrong(where, f"limits.{name} = {value!r} is not {number} from {least:,} to {most:,}",
                         f"write {name} = {getattr(Limits(), name):g}, or leave it out")  # fmt: skip
    return Limits(**said)


def _wrong(where: str, what: str, hint: str) -> Failed:
    return Failed(f"{where}: {what}", hint=hint, code="invalid_config")
