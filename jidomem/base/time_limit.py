"""The time limit: interrupts Python code that takes too long or too much memory.

The terms and shapes of a root are validated in this process, by libraries written in Python. So a
thread that watches them can raise an exception in the working thread; code that is not Python
would not notice it.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from jidomem.errors import JidomemError, QueryTimeout, TooLarge

#: The limits of a computation, and the addition per validated triple: several times the cost of the shipped shapes.
SECONDS, BYTES = 30.0, 1024 * 1024 * 1024
SECONDS_EACH, BYTES_EACH = 0.002, 4096
_CHECK_INTERVAL = 0.05  # seconds between two checks
_REPEAT = 1.0  # seconds until the next interruption, if the exception was caught
_HINT = "simplify what ontology/ and shapes/ of that root say, or take them out: jidomem ontology check"


class _Interrupted(BaseException):
    """The exception that interrupts a computation; `except Exception` does not catch it."""


@contextmanager
def time_limited(what: str, triples: int = 0) -> Iterator[None]:
    """Run the block, named *what*, on so many *triples*; raises QueryTimeout or TooLarge above the limits."""
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
