"""Time, ids and randomness: the only module that reads them, so that everything else can be handed fixed ones.

Work in Python that is sure to end: what takes too long, or too much memory, is interrupted where it stands.

What a root brings is judged in this process: its terms and shapes, by libraries written in Python. So a thread that
watches can raise an exception in the one that works, which an engine that is not written in Python would not notice.

How moments are read, and the one way they are written.

Something that is done again and again, in a thread of its own, until it is stopped.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import urandom
from threading import Event, Thread, current_thread
from time import monotonic

from jidomem.errors import InvalidRequest, JidomemError, QueryTimeout, TooLarge

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


def monotonic_time() -> float:
    """Return seconds on a clock that never goes back, for waits."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where moments, ids and nonces come from; give fixed ones and the same intents give the same bytes."""

    now: Callable[[], datetime] = now
    new_id: Callable[[], str] = new_id
    nonce: Callable[[], bytes] = nonce


#: What everything may take, and what is added for each triple that is judged: several times what shipped rules take.
SECONDS, BYTES = 30.0, 1024 * 1024 * 1024
SECONDS_EACH, BYTES_EACH = 0.002, 4096
_LOOK = 0.05  # seconds between two looks
_AGAIN = 1.0  # seconds until it is interrupted again, where something caught it
_HINT = "simplify what ontology/ and shapes/ of that root say, or take them out: jidomem ontology check"


class _Interrupted(BaseException):
    """What interrupts; nothing that handles errors handles it."""


@contextmanager
def time_limited(what: str, triples: int = 0) -> Iterator[None]:
    """Let the block judge so many *triples*, as *what*; raise QueryTimeout or TooLarge where it takes too much."""
    watch = _Watch(SECONDS + SECONDS_EACH * triples, BYTES + BYTES_EACH * triples)
    try:
        try:
            watch.start()
            yield
        finally:
            watch.stop()
    except _Interrupted:
        raise watch.refusal(what) from None


class _Watch:
    """A thread that looks at the clock and at the memory, and interrupts the thread that made it."""

    def __init__(self, seconds: float, size: int) -> None:
        self._seconds, self._size = seconds, size
        self._out_of_memory = self._interrupted = False
        self._of = threading.get_ident()
        self._lock, self._over = threading.Lock(), threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._look, name="jidomem-deadline", daemon=True).start()

    def stop(self) -> None:
        """Interrupt no more from now on; an interruption that comes meanwhile comes too late."""
        while not self._over.is_set():
            try:
                with self._lock:
                    self._over.set()
            except _Interrupted:
                continue
        try:  # to take one back would leave Python at looking for it for ever, and no debugger would get on
            while self._interrupted:
                _interrupt(self._of)
        except _Interrupted:
            self._interrupted = False

    def refusal(self, what: str) -> JidomemError:
        """Return why it was interrupted."""
        if self._out_of_memory:
            text = f"{what} took more than {self._size:,} bytes of memory, and was stopped"
            return TooLarge(text, hint=_HINT, code="result_too_large")
        return QueryTimeout(f"{what} was not done in {self._seconds:.3g} seconds, and was stopped", hint=_HINT)

    def _look(self) -> None:
        end, most, wait = monotonic() + self._seconds, _used() + self._size, _LOOK
        while not self._over.wait(wait):
            self._out_of_memory = self._out_of_memory or _used() > most
            if self._out_of_memory or monotonic() > end:
                wait = _AGAIN
                with self._lock:
                    if not self._over.is_set():
                        self._interrupted = True
                        _interrupt(self._of)


def _interrupt(thread: int) -> None:
    """Raise _Overdue in a thread when it next runs Python, once, however often this was called until then."""
    import ctypes  # only work that takes too long has need of it

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interrupted))


def _used() -> int:
    """Return the bytes of memory this process has in use."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


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


def format_timestamp(moment: datetime) -> str:
    """Return *moment* in the one written form, UTC to the microsecond.

    >>> format_timestamp(datetime(2026, 11, 21, 8, tzinfo=UTC))
    '2026-11-21T08:00:00.000000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class PeriodicTask:
    """Calls *run* every so many *seconds*, the first time after as many; never where they are None.

    What *run* raises is told by `threading.excepthook`, and it is called again all the same.
    """

    def __init__(self, seconds: float | None, run: Callable[[], object], name: str) -> None:
        """Raise InvalidRequest for *seconds* that are no time to wait."""
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e7
        ):
            raise InvalidRequest(
                f"interval={seconds!r} is no number of seconds", hint="give seconds, or None for never"
            )
        self._seconds, self._run, self._stopped = seconds, run, Event()
        self._thread = Thread(target=self._go_on, name=name, daemon=True) if seconds is not None else None
        if self._thread is not None:
            self._thread.start()

    @property
    def goes_on(self) -> bool:
        """Return whether it will be done again."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, wait: float | None = None) -> None:
        """Do it no more; what is being done now is waited for, for *wait* seconds where that is given."""
        self._stopped.set()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join(wait)

    def _go_on(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._run()
            except Exception:  # told as those of any thread are; the next time may do better
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), current_thread())))
