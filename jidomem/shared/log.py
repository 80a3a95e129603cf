"""The place a shared root lies in: streams of documents with one next number each, and files beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from jidomem.journal.files import Stream


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit as the log has it: its number in the stream, from 1 without gaps, its id and its document."""

    number: int
    commit: str
    document: bytes


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a stream reaches: the number of its last entry, 0 where there is none, and how often it was rewritten."""

    length: int = 0
    rewrites: int = 0


class SharedLog(Protocol):
    """An append-only list of documents for each stream, which any number of processes write to at once.

    It is the commit point: what `append` acknowledged is durable as the store promises durability, and is seen by
    every `reach` that begins later, in whatever process. It judges nothing. Any thread may call it. Each call raises
    Failed `store_unreachable`, with what to look at, while the store cannot be reached or refuses to answer.
    """

    @property
    def name(self) -> str:
        """Return the address as it may be shown: without a password or a key."""

    def streams(self) -> list[Stream]:
        """Return the streams that hold an entry, sorted."""

    def reach(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        """Return how far each of *streams* reaches now."""

    def read(self, stream: Stream, after: int = 0) -> Iterator[Entry]:
        """Return the entries with a number above *after*, in order; it need not be used up."""

    def append(self, stream: Stream, number: int, commit: str, document: bytes) -> bool:
        """Return True once *document* is durable under *number*, False where another commit has that number.

        *number* is one more than the length of the stream: ValueError where it is larger. A commit that stands under
        the number already is answered with True, so an append whose outcome is unknown is settled by the same append
        again; one whose connection is lost is settled so here as long as the store can be reached. Raises Failed
        `outcome_unknown`, naming the commit, where it could not be.
        """

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Put other documents in the place of those of these commits, by id: all of them or none, and count it.

        Nothing else ever changes an entry. Raises NotFound for a commit that the stream has not.
        """

    def wait(self, stream: Stream, known: Reach, seconds: float) -> Reach:
        """Return how far *stream* reaches, as soon as that is not *known*, or after *seconds*."""

    def get(self, name: str) -> File | None:
        """Return the file *name*, a path of parts joined by /; None where there is none."""

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable, None where it has another tag than *expected*.

        None expects that there is no such file; with *force* it is put whatever is there. A file is at most 64 MiB.
        """

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""

    def remove(self, names: list[str]) -> None:
        """Remove these files; one that is not there is removed already."""

    def close(self) -> None:
        """Let go of what is held open."""


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds, and the tag that changes whenever it is put."""

    data: bytes
    tag: str
