"""The thread: what happened to an agent, in order, append only. Memory never changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.frozen import freeze
from jidomem.spaces.sources import fresh, moment


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """One thing that happened: its place from 0, when in milliseconds, of what kind, what, and what it refers to."""

    id: str
    seq: int
    at: int
    kind: str
    payload: Any = None
    refs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "payload", freeze(self.payload))
        object.__setattr__(self, "refs", freeze(self.refs))


@dataclass(frozen=True, slots=True)
class Thread:
    """The entries of a thread, oldest first.

    >>> thread = Thread().append("message", {"text": "hello"}, at=0).append("tool_call", at=1)
    >>> [entry.seq for entry in thread.slice(1, 5)]
    [1]
    """

    entries: tuple[ThreadEntry, ...] = ()

    def __post_init__(self) -> None:
        entries = tuple(self.entries)
        if any(entry.seq != place for place, entry in enumerate(entries)):
            raise InvalidRequest(
                "the entries of a thread are numbered from 0 without a gap", hint="begin with Thread() and append"
            )
        object.__setattr__(self, "entries", entries)

    def append(
        self,
        kind: str,
        payload: Any = None,
        refs: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002
        at: int | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> Thread:
        """Return the thread with one entry more at its end; raise `InvalidRequest` for a kind that is no word."""
        if not isinstance(kind, str) or not kind:
            raise InvalidRequest(
                f"the kind of an entry is a word such as 'message', not {kind!r}",
                hint='append("message", {"text": "hello"})',
            )
        entry_id = fresh("entry_", id, new_id)
        entry = ThreadEntry(entry_id, len(self.entries), moment(at), kind, payload, refs or {})
        return replace(self, entries=(*self.entries, entry))

    def slice(self, from_seq: int, to_seq: int) -> tuple[ThreadEntry, ...]:
        """Return the entries from *from_seq* to *to_seq*, both included, as far as there are any."""
        return self.entries[max(0, from_seq) : max(0, to_seq + 1)]

    def entry_count(self) -> int:
        """Return how many entries there are."""
        return len(self.entries)

    def filter_by_kind(self, kind: str) -> tuple[ThreadEntry, ...]:
        """Return the entries of one kind, oldest first."""
        return tuple(entry for entry in self.entries if entry.kind == kind)
