"""The vectors of an open root, made in the background while it is open: no write and no recall waits for one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

from jidomem.clock import monotonic
from jidomem.embedder import Vector
from jidomem.index.vectors import Vectors
from jidomem.journal.files import Stream
from jidomem.runtime.every import Every

#: The streams of a project whose texts have vectors.
STREAMS = ("memory", "history")
#: Seconds between two looks at what is new, and the longest wait after an embedder failed again and again.
LOOK, LONGEST = 0.25, 60.0
#: Seconds that the end waits for the batch that is being made; one that comes later is thrown away.
AT_END = 3.0
#: Told again and again how many texts still wait.
Progress = Callable[[int], object]


class Embedding:
    """Makes the vectors of the projects that were asked about: `begin` does it in the background until `close`.

    An error of the embedder is kept as `error`, and it is tried again after a while, each time a longer one.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.error: str | None = None
        self._projects: dict[str, None] = {}
        self._worker: Every | None = None
        self._lock = Lock()
        self._closed = False
        self._failures, self._again = 0, 0.0

    def begin(self, project: str) -> None:
        """Follow *project* in the background, from now on."""
        with self._lock:
            self._projects[project] = None
            if self._worker is None and not self._closed:
                self._worker = Every(LOOK, self._look, "jidomem-vectors")

    def embed(self, project: str, seconds: float | None = None, progress: Progress = id) -> int:
        """Make the vectors of *project*, for as long as *seconds*; return how many texts still wait for one.

        Raises ModelUnavailable, which is kept as `error` as well.
        """
        self._make(project, seconds, progress)
        return self.waiting(project)

    def try_for(self, project: str, seconds: float | None = None, progress: Progress = id) -> None:
        """Make the vectors of *project* for as long as *seconds*; what the embedder fails with is kept as `error`."""
        with suppress(Exception):
            self._make(project, seconds, progress)

    def waiting(self, project: str) -> int:
        """Return how many texts of *project* wait for a vector."""
        return sum(self.vectors.waiting(stream) for stream in _streams(project))

    def asked(self, query: str) -> Vector | None:
        """Return the vector of *query*; None where the embedder fails, or did a moment ago: `error` says why."""
        if monotonic() < self._again:
            return None
        try:
            found = self.vectors.vector(query)
        except Exception as error:  # whatever an embedder does, words find something
            self._failed(error)
            return None
        self._succeeded()
        return found

    def told(self, project: str) -> dict[str, Any]:
        """Return the model, how many vectors, bytes, and texts that wait for one there are, and the last error.

        How many wait is None where that is known only once recall is asked. `elsewhere` says that another server makes
        them now.
        """
        each = [self.vectors.told(stream) for stream in _streams(project)]
        sums: dict[str, Any] = {name: sum(told[name] for told in each) for name in ("vectors", "bytes", "passed_by")}
        waiting = [told["pending"] for told in each]
        pending = None if None in waiting else sum(waiting)
        found = {"model": self.vectors.embedder.name, **sums, "pending": pending, "error": self.error}
        return {**found, "elsewhere": True} if any("elsewhere" in told for told in each) else found

    def lag(self, project: str) -> dict[str, Any]:
        """Return the model, how many texts wait for a vector, and the error of the embedder, if it failed last.

        No texts are made to be counted: those of what was never looked through are not.
        """
        made = [stream for stream in _streams(project) if self.vectors.has_texts(stream)]
        pending = sum(map(self.vectors.waiting, made))
        return {"model": self.vectors.embedder.name, "pending": pending, "error": self.error}

    def close(self) -> None:
        """Make no more vectors; the batch that is being made is waited for, but not for long."""
        with self._lock:
            self._closed, worker = True, self._worker
        if worker is not None:
            worker.stop(AT_END)
        self.vectors.close()

    def _look(self) -> None:
        """Make all vectors that are missing, unless the embedder failed a moment ago."""
        if monotonic() < self._again:
            return
        for project in [*self._projects]:
            self.try_for(project)

    def _make(self, project: str, seconds: float | None, progress: Progress) -> None:
        end = None if seconds is None else monotonic() + seconds
        for stream in _streams(project):
            while not self._closed and (end is None or monotonic() < end) and self._take_in(stream):
                progress(self.waiting(project))

    def _take_in(self, stream: Stream) -> bool:
        try:
            more = self.vectors.take_in(stream)
        except Exception as error:
            self._failed(error)
            raise
        self._succeeded()
        return more

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._again = monotonic() + min(2.0 ** (self._failures - 1), LONGEST)
        self.error = str(error) or type(error).__name__

    def _succeeded(self) -> None:
        self._failures, self._again, self.error = 0, 0.0, None


def _streams(project: str) -> list[Stream]:
    return [Stream(project, name) for name in STREAMS]
