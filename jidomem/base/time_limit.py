"""The time limit: work in Python that takes too long or too much memory is interrupted.

The terms and shapes of a root are judged in this process, by libraries written in Python. So a
watching thread can raise an exception in the working one; an engine not written in Python would
not notice it.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from jidomem.errors import JidomemError, QueryTimeout, TooLarge

#: The limits of a computation, and the addition for each judged triple: several times the cost of shipped rules.
SECONDS, BYTES = 30.0, 1024 * 1024 * 1024
SECONDS_EACH, BYTES_EACH = 0.002, 4096
_LOOK = 0.05  # seconds between two looks
_AGAIN = 1.0  # seconds until it is interrupted again, where something caught it
_HINT = "simplify what ontology/ and shapes/ of that root say, or take them out: jidomem ontology check"


class _Interrupted(BaseException):
    """The exception that interrupts a computation; no handler of errors catches it."""


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
    """Raise _Interrupted in a thread when it next runs Python, once, however often this was called until then."""
    import ctypes  # only work that takes too long has need of it

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Interrupted))


def _used() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
