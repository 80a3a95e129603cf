"""Something that is done again and again, in a thread of its own, until it is stopped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import Event, Thread, current_thread

from jidomem.errors import InvalidRequest


class Every:
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
