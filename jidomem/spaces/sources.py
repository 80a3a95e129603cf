"""Where a memory has its moments and ids from: what the caller gives, else the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from jidomem import clock
from jidomem.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(now: int | None = None) -> int:
    """Return *now*, milliseconds since the epoch, the present without one; raise `InvalidRequest` for no number."""
    if now is None:
        return (clock.now() - _EPOCH) // timedelta(milliseconds=1)
    if type(now) is not int or now < 0:
        raise InvalidRequest(
            f"a moment is a whole number of milliseconds since the epoch, not {now!r}",
            hint="pass now=int(time.time() * 1000), or leave it out",
        )
    return now


def fresh(prefix: str, given: str | None = None, new_id: Callable[[], str] | None = None) -> str:
    """Return the id *given*; without one a new one of that prefix, as *new_id* or the clock mints it.

    Raise `InvalidRequest` for what is no text, or an empty one.
    """
    if given is None:
        return prefix + (new_id or clock.new_id)()
    if not isinstance(given, str) or not given:
        raise InvalidRequest(f"an id is a text of at least one sign, not {given!r}", hint="leave it out for a new one")
    return given
