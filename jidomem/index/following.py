"""A thread that brings a store behind an endpoint level after what this process wrote, for others who ask it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread

from jidomem.journal.files import Stream

#: Seconds that a process which ends waits for it.
PATIENCE = 5.0


class Following:
    """Brings the streams it is told of level, one batch after the other; where that fails, the next question tries."""

    def __init__(self, level: Callable[[Sequence[Stream]], None]) -> None:
        """Bring streams level by *level*."""
        self._level = level
        self._due: dict[Stream, None] = {}
        self._thread: Thread | None = None
        self._lock = Lock()

    def told(self, stream: Stream) -> None:
        """Take note that there is more in *stream*, and return at once."""
        with self._lock:
            self._due[stream] = None
            if self._thread is None:
                self._thread = Thread(target=self._run, name="jidomem remote index", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Wait for what is being done, for some seconds."""
        thread = self._thread
        if thread is not None:
            thread.join(PATIENCE)

    def _run(self) -> None:
        while True:
            with self._lock:
                due = list(self._due)
                self._due.clear()
                if not due:
                    self._thread = None
                    return
            with suppress(Exception):  # the journal has it: whoever asks next is told what is the matter
                self._level(due)
