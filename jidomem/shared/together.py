"""One question for all who want to know the same at once: who comes while one is on its way shares the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from threading import Event, Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Together(Generic[K, V]):
    """What tells many threads the values of keys, none of them older than the moment at which it was asked.

    One question is on its way at a time, so that the more there are who ask, the fewer questions each of them takes.
    """

    def __init__(self, ask: Callable[[list[K]], Mapping[K, V]]) -> None:
        """Ask *ask*, which one thread at a time does."""
        self._ask = ask
        self._lock, self._turn = Lock(), Lock()
        self._next: _Question[K, V] | None = None

    def of(self, keys: Iterable[K]) -> Mapping[K, V]:
        """Return the values of at least *keys*, as *ask* tells them from now on; raises what it raises."""
        while True:
            with self._lock:
                is_mine = self._next is None
                question = self._next = self._next or _Question()
                question.keys.update(keys)
            if is_mine:
                return self._put(question)
            question.is_answered.wait()
            if question.failure is not None:
                raise copy(question.failure)
            if question.answer is not None:  # else who asked was interrupted
                return question.answer

    def _put(self, question: _Question[K, V]) -> Mapping[K, V]:
        """Return the answer to a question once it is its turn; who comes then is too late for it."""
        try:
            with self._turn:
                self._close(question)
                question.answer = answer = self._ask(list(question.keys))
                return answer
        except Exception as failure:
            question.failure = failure
            raise
        finally:
            self._close(question)
            question.is_answered.set()

    def _close(self, question: _Question[K, V]) -> None:
        with self._lock:
            if self._next is question:
                self._next = None


class _Question(Generic[K, V]):
    """The keys that some want to know of, and what they are told."""

    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.answer: Mapping[K, V] | None = None
        self.failure: Exception | None = None
        self.is_answered = Event()
