"""What came of each intent of a stream, in order: read, submitted and told a piece at a time."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from jidomem.errors import JidomemError
from jidomem.write.line import Outcome
from jidomem.write.stages import Proposal

#: An intent, or why it could not be read.
Given = Proposal | JidomemError
#: Intents submitted together; so many are held, and so many outcomes, however long the stream is.
PIECE = 500


class Outcomes(Iterator[Outcome]):
    """One receipt or refusal for each intent; the next piece is read and submitted when the last one is used up.

    A receipt is of what is durable. Whoever stops early calls `close`, or is told by a ResourceWarning what was not
    submitted; `submitted` counts those that were, of which the last ones may not have been told yet.
    """

    def __init__(self, intents: Iterable[Given], submit: Callable[[list[Given], int], list[Outcome]]) -> None:
        """Answer *intents* by *submit*, which is given a piece of them and the position of its first one."""
        self.submitted = 0
        self._untold: deque[Outcome] = deque()
        self._end: Exception | None = StopIteration()
        self._intents = iter(intents)
        self._submit = submit
        self._end = None

    def __next__(self) -> Outcome:
        """Return the next outcome; raise what the stream raised once all before that is told."""
        while not self._untold:
            if self._end is not None:
                end, self._end = self._end, StopIteration()
                raise end
            piece = self._read()
            self._untold.extend(self._submit(piece, self.submitted))
            self.submitted += len(piece)
        return self._untold.popleft()

    def close(self) -> None:
        """Read and submit no more."""
        self._untold.clear()
        self._end = StopIteration()

    def __del__(self) -> None:
        if self._untold or self._end is None:
            told = f"{self.submitted - len(self._untold)} of {self.submitted} submitted intents were answered"
            warnings.warn(f"{told}, and none after them was submitted: use the outcomes up", ResourceWarning, 2, self)

    def _read(self) -> list[Given]:
        """Return the next piece; what ends the stream waits until the piece is told."""
        piece: list[Given] = []
        try:
            for intent in islice(self._intents, PIECE):
                piece.append(intent)
        except Exception as error:
            self._end = error
        else:
            self._end = StopIteration() if len(piece) < PIECE else None
        return piece
