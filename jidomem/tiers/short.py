"""Short-term memory: what one session holds now, by key, in a limited number of entries that no restart survives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from threading import Lock
from typing import Any, Literal, NamedTuple

from jidomem import clock
from jidomem.errors import InvalidRequest, NotFound

#: How many entries are held, and how many more than needed go when they are too many.
MAXIMUM, SLACK = 1_000, 100
_RAISE = object()


class Stamped(NamedTuple):
    """A value, and when it was put, in milliseconds since 1970."""

    value: Any
    at: int


def surplus(size: int, maximum: int = MAXIMUM, slack: int = SLACK) -> int:
    """Return how many of *size* entries, the oldest, have to go; the newest always stays.

    >>> surplus(1000), surplus(1001)
    (0, 101)
    """
    return min(size - maximum + slack, size - 1) if size > maximum else 0


class ShortTerm:
    """The entries of one session, oldest first; any number of threads may use it at once."""

    def __init__(
        self,
        session_id: str | None = None,
        *,
        maximum: int = MAXIMUM,
        slack: int = SLACK,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        """Hold nothing yet; raises InvalidRequest for a *maximum* below 1 or a *slack* below 0."""
        for name, number, least in (("maximum", maximum, 1), ("slack", slack, 0)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise InvalidRequest(f"{name}={number!r} is no whole number from {least} on", hint=f"leave {name} out")
        self.session_id = session_id
        self._maximum, self._slack, self._now_ms = maximum, slack, now_ms
        self._entries: dict[str, Stamped] = {}
        self._lock = Lock()

    def put(self, key: str, value: Any) -> Literal[True]:
        """Return True once *key* holds *value*, as the newest entry; the oldest go where they are too many.

        Raises InvalidRequest for a key that is no text, is blank, begins or ends with a space, or is not printable.
        """
        if not isinstance(key, str) or not key or key != key.strip() or not key.isprintable():
            raise InvalidRequest(f"{key!r:.200} is no key", hint="a key is a printable text without spaces at its ends")
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = Stamped(value, self._now_ms())
            if gone := surplus(len(self._entries), self._maximum, self._slack):
                for old in [*islice(self._entries, gone)]:
                    del self._entries[old]
        return True

    def get(self, key: str, default: Any = _RAISE) -> Any:
        """Return the value of *key*; where it holds none, *default* if one is given, else NotFound is raised."""
        with self._lock:
            found = self._entries.get(key)
        if found is not None:
            return found.value
        if default is _RAISE:
            raise NotFound(f"short-term memory holds nothing under {key!r:.200}", hint="put it there, or ask for all")
        return default

    def entry(self, key: str) -> Stamped | None:
        """Return the value of *key* and when it was put, None where it holds none."""
        with self._lock:
            return self._entries.get(key)

    def get_all(self) -> list[tuple[str, Any]]:
        """Return every key with its value, the one put longest ago first."""
        with self._lock:
            return [(key, entry.value) for key, entry in self._entries.items()]

    def clear(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
