"""A lock that threads acquire in the order in which they wait for it."""

from __future__ import annotations

from collections import deque
from threading import Lock


class FairLock:
    """A lock that is passed on to the thread that waits longest, also if its last holder wants it again at once."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._is_locked = False
        self._waiting: deque[Lock] = deque()  # one locked lock for each waiting thread

    def acquire(self, *, blocking: bool = True) -> bool:
        """Acquire the lock and return True; without *blocking*, return False if it is locked."""
        with self._mutex:
            if not self._is_locked:
                self._is_locked = True
                return True
            if not blocking:
                return False
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            turn.acquire()
        except BaseException:  # interrupted: another thread may just have passed the lock on
            with self._mutex:
                is_waiting = turn in self._waiting
                if is_waiting:
                    self._waiting.remove(turn)
            if not is_waiting:
                self.release()
            raise
        return True

    def release(self) -> None:
        """Pass the lock on to the thread that waits longest; unlock it if none waits."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_locked = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()
