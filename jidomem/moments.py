"""How moments are read, and the one way they are written."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_moment(value: object) -> datetime | None:
    """Return the moment *value* names, in UTC, or None; a moment without an offset is UTC, a date is its midnight.

    >>> parse_moment("2026-11-01")
    datetime.datetime(2026, 11, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(moment, datetime):
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def stamp(moment: datetime) -> str:
    """Return *moment* in the one written form, UTC to the microsecond.

    >>> stamp(datetime(2026, 11, 21, 8, tzinfo=UTC))
    '2026-11-21T08:00:00.000000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
