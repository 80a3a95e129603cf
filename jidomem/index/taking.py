"""Take what was written into the index beside who writes: the engine needs no Python while it does so."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

from jidomem.index.oxigraph import OxigraphIndex

#: So many times what begins it may wait meanwhile; of more, who writes waits, too.
MOST = 4


class Taking:
    """One thread at a time that takes in what waits for *index*; who writes goes on, and what it writes waits next."""

    def __init__(self, index: OxigraphIndex) -> None:
        self._index = index
        self._thread: Thread | None = None

    def go_on(self, at_once: bool) -> None:
        """Have what waits taken in: by a thread, unless one is at it, or before this returns where it is *at_once*."""
        if at_once:
            self._index.settle()
        elif self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._take_in, name="jidomem index")
            self._thread.start()

    def wait(self) -> None:
        """Return when nothing is being taken in."""
        if self._thread is not None:
            self._thread.join()

    def _take_in(self) -> None:
        with suppress(OSError, RuntimeError, ValueError):  # the next look at the journal finds that it is not in
            self._index.take_in()
