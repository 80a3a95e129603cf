"""Background work: periodic tasks, tasks on demand, and the time limit of a computation."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread
from time import monotonic

from jidomem.errors import InvalidRequest, JidomemError, QueryTimeout, TooLarge

#: The limits of a computation, and the addition per validated triple: several times the cost of the shipped shapes.
SECONDS, BYTES = 30.0, 1024 * 1024 * 1024
SECONDS_EACH, BYTES_EACH = 0.002, 4096
_CHECK_INTERVAL = 0.05  # seconds between two checks
_REPEAT = 1.0  # seconds until the next interruption, if the exception was caught
_HINT = "simplify what ontology/ and shapes/ of that root say, or take them out: jidomem ontology check"


class PeriodicTask:
    """Calls *run* every *seconds* in its own thread, first after that time; never if *seconds* is None.

    An exception of *run* goes to `threading.excepthook`; the next call is made all the same. With
    *runs_at_end*, a last call is made after `stop`.
    """

    def __init__(
        self, seconds: float | None, run: Callable[[], object], name: str, *, runs_at_end: bool = False
    ) -> None:
        """Start the thread; raises InvalidRequest for invalid *seconds*."""
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e7
        ):
            raise InvalidRequest(
                f"interval={seconds!r} is not a number of seconds", hint="give seconds, or None for never"
            )
        self._seconds, self._run, self._runs_at_end = seconds, run, runs_at_end
        self._stopped = Event()
        self._thread = Thread(target=self._repeat, name=name, daemon=True) if seconds is not None else None
        if self._thread is not None:
            self._thread.start()

    @property
    def is_running(self) -> bool:
        """Return whether *run* will be called again."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> None:
        """Call *run* no more, and wait for the present call, at most *timeout* seconds (default: without limit)."""
        self._stopped.set()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join(timeout)

    def _repeat(self) -> None:
        while not self._stopped.wait(self._seconds):
            self._call()
        if self._runs_at_end:
            self._call()

    def _call(self) -> None:
        try:
            self._run()
        except Exception:  # reported as in any thread; the next call may succeed
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), current_thread())))


class BackgroundTask:
    """Runs one call at a time in its own thread.

    The process does not end before the call does, unless it is a *daemon*.
    """

    def __init__(self, name: str, *, daemon: bool = False) -> None:
        self._name, self._daemon = name, daemon
        self._thread: Thread | None = None

    @property
    def is_running(self) -> bool:
        """Return whether a call is being made."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, run: Callable[[], object]) -> None:
        """Call *run*, unless an earlier call is still running; raises RuntimeError if the process is ending."""
        if not self.is_running:
            self._thread = Thread(target=run, name=self._name, daemon=self._daemon)
            self._thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Return once no call is running, or after *timeout* seconds."""
        if self._thread is not None:
            self._thread.join(timeout)


class _Interrupted(BaseException):
    """The exception that interrupts a computation; `except Exception` does not catch it."""


@contextmanager
def time_limited(what: str, triples: int = 0) -> Iterator[None]:
    """Run the block, named *what*, on so many *triples*; raises QueryTimeout or TooLarge above the limits.

    The terms and shapes of a root are validated in this process, by libraries written in Python: a thread that watches
    them raises an exception in the working thread. Code that is not Python would not notice it.
    """
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
    def __init__(self, seconds: float, size: int) -> None:
        self._seconds, self._size = seconds, size
        self._out_of_memory = self._interrupted = False
        self._thread = threading.get_ident()
        self._lock, self._over = threading.Lock(), threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._watch_thread, name="jidomem-deadline", daemon=True).start()

    def stop(self) -> None:
        """Stop watching; an exception that was already requested is ignored."""
        while not self._over.is_set():
            try:
                with self._lock:
                    self._over.set()
            except _Interrupted:
                continue
        try:  # withdrawing the exception would make Python check for it for ever, and break debuggers
            while self._interrupted:
                _interrupt(self._thread)
        except _Interrupted:
            self._interrupted = False

    def refusal(self, what: str) -> JidomemError:
        """Return the error for the limit that was exceeded."""
        if self._out_of_memory:
            text = f"{what} took more than {self._size:,} bytes of memory, and was stopped"
            return TooLarge(text, hint=_HINT, code="result_too_large")
        return QueryTimeout(f"{what} did not finish in {self._seconds:.3g} seconds, and was stopped", hint=_HINT)

    def _watch_thread(self) -> None:
        end, most, wait = monotonic() + self._seconds, _used() + self._size, _CHECK_INTERVAL
        while not self._over.wait(wait):
            self._out_of_memory = self._out_of_memory or _used() > most
            if self._out_of_memory or monotonic() > end:
                wait = _REPEAT
                with self._lock:
                    if not self._over.is_set():
                        self._interrupted = True
                        _interrupt(self._thread)


def _interrupt(thread: int) -> None:
    """Raise _Interrupted in a thread when it next runs Python code; calls before that have no further effect."""
    import ctypes  # imported here, as only long computations need it

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interrupted))


def _used() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
