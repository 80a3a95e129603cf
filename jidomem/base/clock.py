"""The clock: the present moment, new ids and randomness, and timestamps parsed and formatted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite, isnan
from os import urandom
from typing import Any

from jidomem.base.regex import lazy

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """Return the present moment in UTC, to the microsecond."""
    return _EPOCH + timedelta(microseconds=time.time_ns() // 1000)


def now_ms() -> int:
    """Return the present moment in whole milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return a fresh UUIDv7 (RFC 9562): unique within a millisecond too, and ordered by time."""
    from uuid_utils import uuid7  # a process that only reads needs no ids

    return str(uuid7())


def nonce() -> bytes:
    """Return 32 unguessable bytes."""
    return urandom(32)


def monotonic_time() -> float:
    """Return seconds on a clock that never goes back, for waits."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of moments, ids and nonces; with fixed sources, equal intents give equal bytes."""

    now: Callable[[], datetime] = now
    new_id: Callable[[], str] = new_id
    nonce: Callable[[], bytes] = nonce


#: The parts of a moment at 24:00: its date and its offset.
_END_OF_DAY = lazy(r"([\d-]{8,10})T24:?00(?::?00(?:[.,]0+)?)?(Z|[+-][\d:]+)?")


def parse_moment(value: object) -> datetime | None:
    """Parse a moment, and return it in UTC, None if invalid; without offset it is UTC, a date is its midnight.

    >>> parse_moment("2026-11-01")
    datetime.datetime(2026, 11, 1, 0, 0, tzinfo=datetime.timezone.utc)
    >>> parse_moment("2026-10-31T24:00:00Z")  # the end of a day, which datetime lacks
    datetime.datetime(2026, 11, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        if isinstance(value, str) and "T24" in value and (end := _END_OF_DAY.fullmatch(value)):
            return parse_moment(datetime.fromisoformat(f"{end[1]}T00:00{end[2] or ''}") + timedelta(days=1))
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(moment, datetime):
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def impossible_day(value: object) -> str:
    """Return the reason why the day of a date does not exist, or an empty text.

    >>> impossible_day("2026-11-31T08:00Z")
    'November 2026 has 30 days'
    """
    match = re.match(r"(\d{4})-(0[1-9]|1[0-2])-(\d\d)(?!\d)", value) if isinstance(value, str) else None
    if match is None or match[1] == "0000":
        return ""
    from calendar import month_name, monthrange  # only a refusal needs it

    year, month, day = map(int, match.groups())
    days = monthrange(year, month)[1]
    return "" if 1 <= day <= days else f"{month_name[month]} {match[1]} has {days} days"


def format_timestamp(moment: datetime) -> str:
    """Return *moment* in its normal form: UTC, to the microsecond.

    >>> format_timestamp(datetime(2026, 11, 21, 8, tzinfo=UTC))
    '2026-11-21T08:00:00.000000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def json_value(value: Any) -> Any:
    """Return *value*, such as the rows of `ask`, as `json.dumps` takes it: moments as text, tuples as lists.

    A float that is no number of JSON is the text that RDF has for it: "INF", "-INF" or "NaN".

    >>> json_value([{"at": datetime(2026, 11, 21, 8, tzinfo=UTC), "heat": float("-inf")}])
    [{'at': '2026-11-21T08:00:00.000000Z', 'heat': '-INF'}]
    """
    if isinstance(value, Mapping):
        return {key: json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(entry) for entry in value]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "INF" if value > 0 else "-INF"
    return format_timestamp(value) if isinstance(value, datetime) else value
