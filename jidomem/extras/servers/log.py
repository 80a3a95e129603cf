"""The port of a shared log: streams of documents, numbered without gaps, and files beside them.

A `Chain` verifies commits as they arrive: parents first, with the next position and time. `survey` finds the damage of
a stream, and `LogSurvey.fill` the commits that repair it. `SingleFlight` lets concurrent callers share one request.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from math import inf
from shlex import quote
from threading import Event, Lock
from typing import Generic, NamedTuple, Protocol, TypeVar

import orjson

from jidomem.errors import InvalidRequest, JournalDamaged, NotFound, TooLarge
from jidomem.journal.commit import Commit, FormatError, is_redaction_record, parse
from jidomem.journal.journal import Stream
from jidomem.journal.packs import PackEntry
from jidomem.records.intent import SHORT

#: The maximum size of a file beside the streams, in bytes.
FILE_BYTES = 64 << 20

_NAME = re.compile(r"(?!.*(?:^|/)\.\.?(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_NAME_LENGTH = 400


class LogEntry(NamedTuple):
    """One commit in the log: its number in the stream, from 1 without gaps, its id and its document."""

    number: int
    commit: str
    document: bytes


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The position of a stream: the number of its last entry, 0 for an empty stream, and the count of its rewrites.

    *last* is the commit of that entry if the log reports it in the same request, else empty. *damage* is what `mark`
    recorded: the number of the first damaged entry, and its fault.
    """

    length: int = 0
    rewrites: int = 0
    last: str = field(default="", compare=False)
    damage: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Rewrites:
    """The state of a log without transactions: rewrite counts, recorded damage, and the pending rewrite.

    A rewrite has its stream, and the new bytes by key. *log_id* is the id of the log, assigned when it is created.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    stream: str = ""
    pending: Mapping[str, bytes] = field(default_factory=dict)
    log_id: str = ""
    damaged: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the stored bytes.

        >>> Rewrites(log_id="a1").to_bytes()
        b'{"counts":{},"stream":"","pending":{},"life":"a1","damaged":{}}'
        """
        pending = {key: b64encode(data).decode() for key, data in self.pending.items()}
        stored = {"life" if name == "log_id" else name: value for name, value in asdict(self).items()}
        return orjson.dumps({**stored, "pending": pending})

    def positions(self, name: str, length: int, last: str) -> StreamPosition:
        """Return the position of a stream with an end."""
        return StreamPosition(length, self.counts.get(name, 0), last, self.damaged.get(name, ""))

    @staticmethod
    def from_bytes(data: bytes) -> Rewrites:
        """Return the value of the stored bytes.

        >>> Rewrites.from_bytes(Rewrites({"p.memory": 2}, "q.memory", {"a": b"b"}).to_bytes()).pending
        {'a': b'b'}
        """
        values = orjson.loads(data)
        pending = {key: b64decode(text) for key, text in values["pending"].items()}
        log_id, damaged = values.get("life", ""), values.get("damaged", {})
        return Rewrites(values["counts"], values["stream"], pending, log_id, damaged)


class LogState(NamedTuple):
    """The positions of streams, the tag of a file, and the id of the log.

    The id is assigned when a log is created, so that a log recreated in the same place has another one.
    """

    positions: Mapping[Stream, StreamPosition]
    tag: str | None
    log_id: str


class SharedLog(Protocol):
    """An append-only list of documents for each stream, to which any number of processes write concurrently.

    It is the commit point: an acknowledged `append` is as durable as the store promises, and every call of `positions`
    that begins later, in any process, includes it. It does not validate documents. It is thread-safe. Each call
    raises Failed `store_unreachable`, with a hint, while the store cannot be reached or refuses to answer.
    """

    @property
    def name(self) -> str:
        """Return the address for display: without a password or a key."""

    def streams(self) -> list[Stream]:
        """Return the streams that have an entry, sorted."""

    def positions(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        """Return the present position of each of *streams*."""

    def read_state(self, streams: list[Stream], name: str) -> LogState:
        """Return the present position of *streams*, the tag of the file *name* (None without one), and the log id.

        *streams* is not empty. It costs no more than `positions`, except for one concurrent request.
        """

    def read(self, stream: Stream, after: int = 0, *, with_gaps: bool = False) -> Iterator[LogEntry]:
        """Yield the entries with a number above *after*, in order; the iterator need not be exhausted.

        A log may raise JournalDamaged for a missing or foreign entry; *with_gaps* it goes on behind it.
        """

    def gaps(self) -> Mapping[Stream, int]:
        """Return the number of the first missing entry of each stream without one before its last; reads none."""

    def mark(self, stream: Stream, damage: str) -> None:
        """Record the damage of a stream, which each later `StreamPosition` has; an empty text removes it."""

    def restore(self, stream: Stream, entries: Sequence[tuple[LogEntry, bytes | None]]) -> bool:
        """Return True once the entries, in order, are durable: each in place of a document, or of none (None).

        Return False if something else is there. If it is interrupted, a first part of them may be durable; the same
        call then stores the rest.
        """

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        """Return True once *document* is durable under *number*, False if another commit has that number.

        With *after*, a log that reports the last commit of a stream also returns False if the number before has another
        commit: a replica that was behind lost its end and has another one now. *number* is one more than the length of
        the stream; a larger one raises ValueError, as does one below 1. If *commit* is already stored under *number*,
        the result is True; so the same append again settles an append whose outcome is unknown, and never restores a
        document that was rewritten. A lost connection is settled here in that way while the store can be reached;
        otherwise Failed `outcome_unknown` is raised, which names the commit.
        """

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Replace the documents of these commits, by id, all of them or none, and increase the count of rewrites.

        Nothing else ever changes an entry. Raises NotFound for a commit that is not in the stream.
        """

    def wait(self, stream: Stream, known: StreamPosition, seconds: float) -> StreamPosition:
        """Return the reach of *stream* as soon as it differs from *known*, or after *seconds*."""

    def get(self, name: str) -> File | None:
        """Return the file *name*, None if there is none; raises the errors of `check_file`."""

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable; None if its tag is not *expected*.

        *expected* None means that there is no such file; *force* replaces any file. Raises the errors of `check_file`
        before any request.
        """

    def check_writable(self, size: int = 0) -> None:
        """Raise Failed if the store would refuse a commit now, as far as a cheap probe shows, which stores nothing.

        The probe is as large as *size*, or as the commit that the store refused last: until a store with a full disk
        has room for it, this raises.
        """

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""

    def remove(self, names: list[str]) -> None:
        """Remove these files; a missing file counts as removed."""

    def close(self) -> None:
        """Release the connections."""


class File(NamedTuple):
    """The data of a file, and its tag, which changes with its bytes."""

    data: bytes
    tag: str


def check_file(name: str, data: bytes = b"") -> None:
    """Raise InvalidRequest unless *name* is a valid name of a file, and TooLarge if *data* is too large.

    >>> check_file("root/ontology/terms.ttl")
    """
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} is not a valid file name in a shared root",
            hint=f"use letters, digits, '.', '_' and '-', in parts joined by /, {_NAME_LENGTH} characters at most",
        )
    if len(data) > FILE_BYTES:
        raise TooLarge(
            f"{name} has {len(data):,} bytes, and a file of a shared root at most {FILE_BYTES:,}",
            hint="split it into several files",
        )


def absent_root(name: str) -> NotFound:
    """Return the error of the address *name* of a store in which there is no root."""
    hint = "correct the address, or restore the store from a backup; for a new root there"
    return NotFound(f"there is no memory root at {name}", hint=f"{hint}: jidomem init --root {quote(name)}")


#: The digest of the document of each commit, by the id, both as bytes.
Forms = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class StreamExtent:
    """The extent of a stream: commits, bytes of their documents, and one digest over both."""

    commits: int
    size: int
    digest: str


class Chain:
    """The verified commits of one stream; `forms` has the digest of each document."""

    def __init__(self, where: str, explained: Collection[str] = ()) -> None:
        """Report damage with the path *where*; parents whose ids begin with one of *explained* were quarantined."""
        self.forms: Forms = {}
        self.size = 0
        self._where = where
        self._quarantined = frozenset(explained)
        self._heads: dict[bytes, tuple[str, int]] = {}

    def add(self, commit: Commit) -> None:
        """Add a commit; raise JournalDamaged unless its parents came before it and its position and time follow."""
        known = [self._heads.get(bytes.fromhex(parent)) for parent in commit.parents]
        missing = [parent for parent, head in zip(commit.parents, known, strict=True) if head is None]
        for parent in missing:
            if parent[:SHORT] not in self._quarantined:
                raise self._damaged(commit, f"its parent {parent} did not come before it")
        heads = [head for head in known if head is not None]
        if not missing and commit.position != 1 + max((position for _, position in heads), default=0):
            raise self._damaged(commit, f"its position {commit.position} does not follow from its parents")
        if any(moment >= commit.recorded_at for moment, _ in heads):
            raise self._damaged(commit, f"it was recorded at {commit.recorded_at}, not after its parents")
        identity = bytes.fromhex(commit.id)
        if identity in self.forms:
            raise self._damaged(commit, "it occurs twice")
        self._heads[identity] = commit.recorded_at, commit.position
        self.forms[identity] = blake2b(commit.data, digest_size=16).digest()
        self.size += len(commit.data)

    def extent(self) -> StreamExtent:
        """Return the extent of the commits added so far."""
        return StreamExtent(len(self.forms), self.size, digest(self.forms))

    def _damaged(self, commit: Commit, problem: str) -> JournalDamaged:
        return JournalDamaged(problem, path=self._where, commit=commit.id)


def chained(commits: Iterable[Commit], where: str, explained: Collection[str] = ()) -> Chain:
    """Return the chain of *commits*; raises JournalDamaged if they do not form one."""
    chain = Chain(where, explained)
    for commit in commits:
        chain.add(commit)
    return chain


def digest(forms: Forms) -> str:
    """Return one digest of ids and documents, independent of their order.

    >>> digest({b"a": b"1", b"b": b"2"}) == digest({b"b": b"2", b"a": b"1"})
    True
    """
    hashed = blake2b(digest_size=32)
    for identity in sorted(forms):
        hashed.update(identity + forms[identity])
    return hashed.hexdigest()


def first_gap(numbers: Iterable[int]) -> int:
    """Return the first number from 1 on that is missing in *numbers*, which are sorted; 0 if none is.

    >>> first_gap([1, 2, 4, 6])
    3
    """
    return next((place for place, number in enumerate(numbers, 1) if number != place), 0)


class LogFault(NamedTuple):
    """The damage of one entry: its number, its commit and its document, if they are known, and the problem."""

    number: int
    problem: str
    commit: str = ""
    document: bytes | None = None


class LogSurvey(NamedTuple):
    """The result of reading a whole stream: its damage, its intact commits by number, and its redaction records."""

    faults: Sequence[LogFault]
    entries: Mapping[int, PackEntry]
    records: Sequence[Commit]

    @property
    def damage(self) -> str:
        """Return the text for `SharedLog.mark`; empty without damage."""
        return f"{self.faults[0].number} {self.faults[0].problem}" if self.faults else ""

    def fill(self, candidates: Iterable[PackEntry], *, with_end: bool = False) -> dict[int, PackEntry]:
        """Return those of the commits *candidates* that the stream lacks, by the number at which each fits.

        A commit fits a damaged entry if that names it, or if its parents have smaller numbers, and its children larger
        ones. *with_end* those that follow the last entry get the next numbers.
        """
        numbers = {entry.head.id: number for number, entry in self.entries.items()}
        children: dict[str, float] = {}
        for number, entry in self.entries.items():
            for parent in entry.parents:
                children[parent] = min(number, children.get(parent, inf))
        left = {each.head.id: each for each in sorted(candidates, key=lambda each: each.head)}
        left = {identity: each for identity, each in left.items() if identity not in numbers}
        filled: dict[int, PackEntry] = {}

        def place(number: int, identity: str = "") -> bool:
            for each in [left[identity]] if identity in left else left.values():
                parents = (numbers.get(parent, inf if parent in left else 0) for parent in each.parents)
                if max(parents, default=0) < number < children.get(each.head.id, inf):
                    filled[number], numbers[each.head.id] = left.pop(each.head.id), number
                    return True
            return False

        for fault in self.faults:
            if fault.number not in self.entries:
                place(fault.number, fault.commit)
        end = max((*self.entries, *(fault.number for fault in self.faults)), default=0)
        while with_end and place(end + 1):
            end += 1
        return filled


def survey(entries: Iterable[LogEntry], graph: str, is_explained: Callable[[str], bool]) -> LogSurvey:
    """Return the survey of all *entries* of the stream of *graph*: each is verified.

    A missing parent is damage unless it *is_explained*, as by a quarantine.
    """
    faults: list[LogFault] = []
    intact: dict[int, PackEntry] = {}
    records: list[Commit] = []
    number, ids = 0, set[str]()
    for entry in entries:
        faults += [LogFault(missing, "is missing") for missing in range(number + 1, entry.number)]
        number = entry.number
        try:
            commit = parse(entry.document)
        except FormatError as error:
            faults.append(LogFault(number, f"is damaged: {error}", entry.commit, entry.document))
            continue
        if (commit.id, commit.graph) != (entry.commit, graph):
            faults.append(LogFault(number, f"is commit {commit.id[:SHORT]}", entry.commit, entry.document))
            continue
        if not faults and (lacking := [each for each in commit.parents if each not in ids and not is_explained(each)]):
            faults.append(LogFault(number, f"follows commit {lacking[0][:SHORT]}, which no entry has", entry.commit))
        intact[number] = PackEntry(commit.head, commit.parents)
        ids.add(entry.commit)
        records += [commit] if is_redaction_record(entry.document) else []
    return LogSurvey(faults, intact, records)


K = TypeVar("K")
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Concurrent reads of keys share one request; no value is older than the call.

    Only one request runs at a time, so the number of requests does not grow with the number of callers.
    """

    def __init__(self, ask: Callable[[list[K]], Mapping[K, V]]) -> None:
        """Get values by calling *ask*, in one thread at a time."""
        self._ask = ask
        self._lock, self._call_lock = Lock(), Lock()
        self._next: _Request[K, V] | None = None

    def of(self, keys: Iterable[K]) -> Mapping[K, V]:
        """Return the values of at least *keys*, from a call of *ask* that begins now or later; raises its errors."""
        while True:
            with self._lock:
                is_owner = self._next is None
                request = self._next = self._next or _Request()
                request.keys.update(keys)
            if is_owner:
                return self._answer(request)
            request.is_answered.wait()
            if request.failure is not None:
                raise copy(request.failure)
            if request.answer is not None:  # else the calling thread was interrupted
                return request.answer

    def _answer(self, request: _Request[K, V]) -> Mapping[K, V]:
        """Return the answer to a request, which is closed to further keys when its call begins."""
        try:
            with self._call_lock:
                self._close(request)
                request.answer = answer = self._ask(list(request.keys))
                return answer
        except Exception as failure:
            request.failure = failure
            raise
        finally:
            self._close(request)
            request.is_answered.set()

    def _close(self, request: _Request[K, V]) -> None:
        with self._lock:
            if self._next is request:
                self._next = None


class _Request(Generic[K, V]):
    """The keys of one request, and its answer or failure."""

    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.answer: Mapping[K, V] | None = None
        self.failure: Exception | None = None
        self.is_answered = Event()
