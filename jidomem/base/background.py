"""Background work: periodic tasks and tasks on demand."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import Event, Thread, current_thread

from jidomem.errors import InvalidRequest


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
