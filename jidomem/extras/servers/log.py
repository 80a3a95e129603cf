"""The shared log: the port of streams of documents, numbered without gaps, and of files beside
them.

A `Chain` verifies commits as they arrive: parents first, with the next position and time.
`SingleFlight` lets concurrent callers share one request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Event, Lock
from typing import Generic, Protocol, TypeVar

from jidomem.errors import InvalidRequest, JournalDamaged, TooLarge
from jidomem.journal.commit import Commit
from jidomem.journal.journal import Stream
from jidomem.records.intent import SHORT

#: How large a file beside the streams may be.
FILE_BYTES = 64 << 20

_NAME = re.compile(r"(?!.*(?:^|/)\.\.?(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_NAME_LENGTH = 400


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit as the log has it: its number in the stream, from 1 without gaps, its id and its document."""

    number: int
    commit: str
    document: bytes


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of a stream: the number of its last entry, 0 where there is none, and its rewrites.

    *last* is the commit of that entry where the log tells it with the rest, at no cost; else it is empty.
    """

    length: int = 0
    rewrites: int = 0
    last: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of a log: the reach of streams, the tag of a file, and the life of the log.

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

    def look(self, streams: list[Stream], name: str) -> LogState:
        """Return how far each of *streams* reaches now, the tag of the file *name*, None where there is none, and more.

        There is at least one stream; it costs no more than `reach`, but for a request at the same time.
        """

    def read(self, stream: Stream, after: int = 0) -> Iterator[LogEntry]:
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
    """The data of a file, and its tag, which changes whenever its bytes do."""

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


#: The digest of the document of each commit, by the id, both as bytes.
Forms = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a stream: commits, bytes of their documents, and one digest over both."""

    commits: int
    size: int
    digest: str


class Chain:
    """The commits of one stream as far as they came; `forms` has the digest of each document."""

    def __init__(self, where: str, explained: Collection[str] = ()) -> None:
        """Tell of damage in *where*; parents whose ids begin with one of *explained* were set aside."""
        self.forms: Forms = {}
        self.size = 0
        self._where = where
        self._explained = frozenset(explained)
        self._heads: dict[bytes, tuple[str, int]] = {}

    def add(self, commit: Commit) -> None:
        """Take a commit in; raise JournalDamaged unless its parents came before and it follows from them."""
        known = [self._heads.get(bytes.fromhex(parent)) for parent in commit.parents]
        missing = [parent for parent, head in zip(commit.parents, known, strict=True) if head is None]
        for parent in missing:
            if parent[:SHORT] not in self._explained:
                raise self._damaged(commit, f"its parent {parent} did not come before it")
        heads = [head for head in known if head is not None]
        if not missing and commit.position != 1 + max((position for _, position in heads), default=0):
            raise self._damaged(commit, f"its position {commit.position} does not follow from its parents")
        if any(moment >= commit.recorded_at for moment, _ in heads):
            raise self._damaged(commit, f"it was recorded at {commit.recorded_at}, not after its parents")
        identity = bytes.fromhex(commit.id)
        if identity in self.forms:
            raise self._damaged(commit, "it is there twice")
        self._heads[identity] = commit.recorded_at, commit.position
        self.forms[identity] = blake2b(commit.data, digest_size=16).digest()
        self.size += len(commit.data)

    def extent(self) -> Extent:
        """Return how much came."""
        return Extent(len(self.forms), self.size, digest(self.forms))

    def _damaged(self, commit: Commit, problem: str) -> JournalDamaged:
        return JournalDamaged(problem, path=self._where, commit=commit.id)


def chained(commits: Iterable[Commit], where: str, explained: Collection[str] = ()) -> Chain:
    """Return the chain of *commits*; raises JournalDamaged where they are none."""
    chain = Chain(where, explained)
    for commit in commits:
        chain.add(commit)
    return chain


def digest(forms: Forms) -> str:
    """Return one digest of ids and documents, whatever the order they came in.

    >>> digest({b"a": b"1", b"b": b"2"}) == digest({b"b": b"2", b"a": b"1"})
    True
    """
    hashed = blake2b(digest_size=32)
    for identity in sorted(forms):
        hashed.update(identity + forms[identity])
    return hashed.hexdigest()


K = TypeVar("K")
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Concurrent reads of keys share one request; no value is older than the call.

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
