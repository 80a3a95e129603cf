"""What keeps working state: tables, and transactions on them, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from jidomem.errors import JidomemError


class Rows(Protocol):
    """What a statement gave: the rows it found, or how many it changed."""

    @property
    def rowcount(self) -> int:
        """Return how many rows were changed."""

    def fetchone(self) -> Any:
        """Return the next row, None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Store(Protocol):
    """Tables in a transaction. Statements have the form that SQLite and PostgreSQL both take, with ? for each value."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Return what a statement gives."""

    def executemany(self, sql: str, parameters: list[tuple[Any, ...]], /) -> object:
        """Do a statement once for each of the rows of values."""


class Keeping(Protocol):
    """The working state of a root; any number of threads and processes change it, one after the other."""

    def changing(self) -> AbstractContextManager[Store]:
        """Give the tables in a transaction that may write; it is durable once the block ends, and nobody else writes.

        Raises Busy where others write for too long. What is raised in the block undoes all that was done in it.
        """

    def reading(self) -> AbstractContextManager[Store | None]:
        """Give the tables in a transaction that sees them as they are now; None where nothing was kept yet."""

    def turn(self, *of: str, wait: bool = False) -> AbstractContextManager[bool]:
        """Give whether it is the caller's turn for what *of* names until the block ends; with *wait* it always is."""

    def scrub(self) -> None:
        """Write the tables anew, so that none of their bytes holds what was taken out."""

    def damaged(self, what: str) -> JidomemError:
        """Return the error for *what* was kept and cannot be read."""

    def close(self) -> None:
        """Let go of what is held open; from now on a transaction raises MemoryClosed."""
