"""A memory as the plain value the memory guide speaks of: type, content, when, how sure, from where."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from jidomem import clock, vocab
from jidomem.errors import IntentRefused, Violation

_ATTRS = ("timestamp", "confidence", "source", "verified", "metadata")


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A typed memory; `type` is a canonical name of `jidomem.vocab.CLASS_OF_TYPE`, `confidence` from 0 to 1."""

    type: str
    content: str
    timestamp: datetime
    confidence: float = 0.5
    source: str = "system"
    verified: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


def create_memory(
    type: str,  # noqa: A002
    content: str,
    attrs: Mapping[str, Any] | None = None,
    *,
    now: Callable[[], datetime] = clock.now,
) -> MemoryItem:
    """Return a memory of *type* that says *content*; *attrs* replaces the defaults, time (UTC now) among them.

    Raises IntentRefused `unknown_type`, `invalid_confidence` or `unknown_field`, with the nearest known name.
    """
    kind = vocab.TYPE_ALIASES.get(type, type)
    if kind not in vocab.CLASS_OF_TYPE:
        raise IntentRefused([_unknown("unknown_type", "type", type, (*vocab.CLASS_OF_TYPE, *vocab.TYPE_ALIASES))])
    values = dict(attrs or {})
    for name in values:
        if name not in _ATTRS:
            raise IntentRefused([_unknown("unknown_field", "attrs", name, _ATTRS)])
    sure = values.get("confidence", 0.5)
    if isinstance(sure, bool) or not isinstance(sure, (int, float)) or not (math.isfinite(sure) and 0 <= sure <= 1):
        message = f"confidence is a number from 0 to 1, not {sure!r}"
        raise IntentRefused([Violation("invalid_confidence", message, field="confidence", value=repr(sure))])
    return MemoryItem(**{"timestamp": now(), **values, "type": kind, "content": content, "confidence": float(sure)})


def _unknown(code: str, where: str, name: str, known: tuple[str, ...]) -> Violation:
    near = get_close_matches(str(name), known, n=1)
    message = f"{name!r} is not known; there is {', '.join(known)}"
    return Violation(code, message, field=where, value=name, allowed=known, nearest=near[0] if near else None)
