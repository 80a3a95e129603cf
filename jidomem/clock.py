"""Time, ids and randomness: the only module that reads them, so that everything else can be handed fixed ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import urandom

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """Return the present moment in UTC, to the microsecond."""
    return _EPOCH + timedelta(microseconds=time.time_ns() // 1000)


def now_ms() -> int:
    """Return the present moment in whole milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return a fresh UUIDv7 (RFC 9562): unique within a millisecond too, and ordered by time."""
    from uuid_utils import uuid7  # who only reads mints none

    return str(uuid7())


def nonce() -> bytes:
    """Return 32 unguessable bytes."""
    return urandom(32)


def monotonic() -> float:
    """Return seconds on a clock that never goes back, for waits."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where moments, ids and nonces come from; give fixed ones and the same intents give the same bytes."""

    now: Callable[[], datetime] = now
    new_id: Callable[[], str] = new_id
    nonce: Callable[[], bytes] = nonce
