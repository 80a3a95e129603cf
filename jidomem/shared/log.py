"""The place a shared root lies in: streams of documents with one next number each, and files beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.journal.files import Stream

#: How large a file beside the streams may be.
FILE_BYTES = 64 << 20

_NAME = re.compile(r"(?!.*(?:^|/)\.\.?(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_NAME_LENGTH = 400


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit as the log has it: its number in the stream, from 1 without gaps, its id and its document."""

    number: int
    commit: str
    document: bytes


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a stream reaches: the number of its last entry, 0 where there is none, and how often it was rewritten.

    *last* is the commit of that entry where the log tells it with the rest, at no cost; else it is empty.
    """

    length: int = 0
    rewrites: int = 0
    last: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Look:
    """What one question tells: how far streams reach, the tag of a file, and the life of the log.

    That is given when a log is made, so that one which was made anew in its place has another.
    """

    reaches: Mapping[Stream, Reach]
    tag: str | None
    life: str


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

    def look(self, streams: list[Stream], name: str) -> Look:
        """Return how far each of *streams* reaches now, the tag of the file *name*, None where there is none, and more.

        There is at least one stream; it costs no more than `reach`, but for a request at the same time.
        """

    def read(self, stream: Stream, after: int = 0) -> Iterator[Entry]:
        """Return the entries with a number above *after*, in order; it need not be used up."""

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        """Return True once *document* is durable under *number*, False where another commit has that number.

        A log that tells what is last in a stream returns False, too, where another commit than *after*, if that is
        said, has the number before: it lost its end, as a replica does that was behind, and has another by now.
        *number* is one more than the length of the stream: ValueError where it is larger. A commit that stands under
        the number already is answered with True, so an append whose outcome is unknown is settled by the same append
        again, and never puts its document back where that was rewritten; one whose connection is lost is settled so
        here as long as the store can be reached. Raises Failed `outcome_unknown`, naming the commit, where it could
        not be, and ValueError for a number below 1.
        """

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Put other documents in the place of those of these commits, by id: all of them or none, and count it.

        Nothing else ever changes an entry. Raises NotFound for a commit that the stream has not.
        """

    def wait(self, stream: Stream, known: Reach, seconds: float) -> Reach:
        """Return how far *stream* reaches, as soon as that is not *known*, or after *seconds*."""

    def get(self, name: str) -> File | None:
        """Return the file *name*, None where there is none; raises what `check_file` does."""

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable, None where it has another tag than *expected*.

        None expects that there is no such file; with *force* it is put whatever is there.
        Raises what `check_file` does, before anything is asked of the store.
        """

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""

    def remove(self, names: list[str]) -> None:
        """Remove these files; one that is not there is removed already."""

    def close(self) -> None:
        """Let go of what is held open."""


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds, and a tag, which is another one whenever its bytes are others."""

    data: bytes
    tag: str


def check_file(name: str, data: bytes = b"") -> None:
    """Raise InvalidRequest unless *name* is one of a file, and TooLarge where *data* is too much for one.

    >>> check_file("root/ontology/terms.ttl")
    """
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} is no name of a file in a shared root",
            hint=f"use letters, digits, '.', '_' and '-', in parts joined by /, {_NAME_LENGTH} characters at most",
        )
    if len(data) > FILE_BYTES:
        raise TooLarge(
            f"{name} has {len(data):,} bytes, and a file of a shared root at most {FILE_BYTES:,}",
            hint="keep it in several files",
        )
