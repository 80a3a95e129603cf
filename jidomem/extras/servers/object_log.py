"""The shared log in an object store (S3): one object for each commit, put only if its number is free.

Below the prefix are

    log/<project>.<stream>/000/000/017    `# commit <id>`, a line end, and the document of entry 17
    rewrites                              rewrite counts of the streams, the pending rewrite, the id of the log
    files/<name>                          the files beside the streams; their ETag is the tag
    probe                                 an object put on opening to check conditional puts

An append is one put with `If-None-Match: *`. It is made only for the number after an existing one, and entries are
never removed, so there are no gaps; a reader that meets one (a restored bucket, a lifecycle rule) reports it. The end
of a stream is found by reading the next number; a new reader finds it in three listings: numbers are cut in three so
that a folder has at most a thousand names.

A rewrite changes several objects and is atomic: it is first written, documents included, to `rewrites` with `If-Match`,
and counts as done from then on; a reader that finds a pending rewrite carries it out before it answers. Each document
is put with the ETag read before the rewrite was seen to be pending, so that a delayed process cannot restore content
that a later rewrite removed. Counting and clearing a rewrite is one put.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from secrets import token_hex
from threading import Event, Lock
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PreconditionError
from obstore.store import S3Store

from jidomem.errors import Failed, InvalidRequest, JournalDamaged, NotFound
from jidomem.extras.servers.log import (
    File,
    LogEntry,
    LogState,
    Rewrites,
    StreamPosition,
    absent_root,
    check_file,
    first_gap,
)
from jidomem.journal.commit import FormatError
from jidomem.journal.journal import Stream
from jidomem.journal.packs import unverified_entry

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta, PutMode
    from obstore.store import ClientConfig, RetryConfig, S3Config

#: Seconds of silence after which a request to the store fails.
ANSWER = 10.0
#: The size in bytes from which on a put gets minutes, not seconds.
LARGE = 1 << 20
_MINUTES = 300.0
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REFUSED = (AlreadyExistsError, PreconditionError, FileNotFoundError)
_ERRORS = (BaseError, OSError)
_FORM = "an object store is named as in: --root s3://BUCKET/PREFIX"


class _Cause(NamedTuple):
    """A cause of an error: its hint, whether it is transient, and whether the request may have been served."""

    mark: str
    hint: str
    passing: bool = False
    served: bool = False


_KEY = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_CAUSES = (
    _Cause("NoSuchBucket", "create the bucket {bucket}, or name another: --root s3://BUCKET/PREFIX"),
    _Cause("InvalidBucketName", "{bucket} is not a valid bucket name: --root s3://BUCKET/PREFIX"),
    _Cause("MissingAccessKeyId", _KEY),
    _Cause("MissingSecretAccessKey", _KEY),
    _Cause("InvalidAccessKeyId", f"the store does not know this key: {_KEY}"),
    _Cause("SignatureDoesNotMatch", "the secret does not fit the key: set AWS_SECRET_ACCESS_KEY"),
    _Cause("RequestTimeTooSkewed", "set the clock of this machine"),
    _Cause("RequestTimeout", "check the network", passing=True, served=True),
    _Cause("status: 401", f"{_KEY} to one that may use the bucket {{bucket}}"),
    _Cause("status: 403", "allow the key to list, read, write and delete below s3://{bucket}/{prefix}"),
    _Cause("status: 301", "set AWS_REGION to the region of the bucket {bucket}"),
    _Cause("status: 400", "check AWS_REGION and AWS_ENDPOINT_URL: the store cannot read the request"),
    _Cause("BadScheme", "use https in AWS_ENDPOINT_URL, or, in a network you trust: export AWS_ALLOW_HTTP=true"),
    _Cause("latest/api/token", f"no key was found: {_KEY}"),
    _Cause("dns error", "unknown host: check AWS_ENDPOINT_URL and AWS_REGION", passing=True),
    _Cause("ConnectionRefused", "nothing listens there: start the store, or check AWS_ENDPOINT_URL", passing=True),
    _Cause("kind: Connect", "check the network, the certificate of the store and AWS_ENDPOINT_URL", passing=True),
    _Cause("kind: Timeout", "it did not answer in time: check the store and the network", True, True),
    _Cause("kind: Interrupted", "it closed the connection: check the store and the network", True, True),
    _Cause("", "check the store and the network", True, True),
)


class Bucket:
    """The objects below one prefix. An interrupted put is repeated until its outcome is known."""

    def __init__(self, address: str, environment: Mapping[str, str], wait: float) -> None:
        """Take the address `s3://bucket/prefix`, without a request; transient failures are retried for *wait* seconds.

        *environment* names the endpoint and whether plain HTTP is allowed; obstore takes the keys and the region from
        the environment of the process. Raises InvalidRequest for an address of another kind.
        """
        parts = urlsplit(address)
        if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            kind = f" (there is none for {parts.scheme}:// yet)" if parts.scheme != "s3" else ""
            shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
            raise InvalidRequest(f"{shown!r} is not the address of an object store{kind}", hint=_FORM)
        self.bucket, self.prefix, self.wait = parts.netloc, parts.path.strip("/"), wait
        endpoint = next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
        split = urlsplit(endpoint)
        self.name = f"s3://{self.bucket}/{self.prefix}".rstrip("/")
        if endpoint:
            self.name += f" at {split._replace(netloc=split.netloc.rpartition('@')[2], query='').geturl()}"
        plain = split.hostname in _LOOPBACK or environment.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")

        def store(answer: float, retries: int) -> S3Store:
            options: ClientConfig = {
                "allow_http": plain,
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=answer),
                "timeout": timedelta(seconds=_MINUTES),
            }
            again: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=wait)}
            config: S3Config = {"endpoint": endpoint} if endpoint else {}
            return S3Store(
                self.bucket, prefix=self.prefix or None, config=config, client_options=options, retry_config=again
            )

        try:
            self._once = store(ANSWER, 0)  # a retry by obstore could be taken for another writer's put
            self._patient = store(ANSWER, 10)
            self._slow = store(_MINUTES, 0)
        except BaseError as error:
            raise self._unreachable(error) from error

    def probe(self) -> None:
        """Raise Failed unless the store can be reached, is writable and honours conditional puts."""
        wrong: PutMode = {"e_tag": '"00000000000000000000000000000000"'}
        try:
            ignored = [
                *(["If-None-Match: *"] if self._accepts("create") and self._accepts("create") else []),
                *(["If-Match"] if self._accepts(wrong) else []),
            ]
        except _ERRORS as error:
            raise self._unreachable(error) from error
        if ignored:
            raise Failed(
                f"{self.name} cannot hold a memory: it ignores {' and '.join(ignored)},"
                " so that writers would overwrite each other",
                hint="use a store that honours conditional puts: docs/backends.md lists them",
                code="store_unreachable",
            )

    def _accepts(self, mode: PutMode) -> bool:
        """Return whether the store accepts a conditional put of an object that exists after the first call."""
        try:
            obstore.put(self._once, "probe", b"1", mode=mode, use_multipart=False)
        except _REFUSED as error:
            if "NoSuchBucket" in str(error):
                raise
            return False
        return True

    def get(self, key: str, unless: str | None = None) -> File | None:
        """Return an object and its tag; None if there is none, or if its tag is *unless*.

        Raises JournalDamaged if *unless* is given and the object is missing.
        """
        try:
            response = obstore.get(self._patient, key, options={"if_none_match": unless} if unless else None)
            return File(bytes(response.bytes()), response.meta["e_tag"] or "")
        except NotModifiedError:
            return None
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._unreachable(error) from error
            if unless is not None:
                raise JournalDamaged(
                    "this object is missing",
                    path=f"{self.name}: {key}",
                    hint="restore the whole prefix from a backup, or start again there with jidomem init",
                ) from error
            return None
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def tag(self, key: str) -> str | None:
        """Return the tag of an object, None if there is none; raises Failed `store_unreachable`."""
        try:
            return obstore.head(self._patient, key)["e_tag"] or ""
        except FileNotFoundError:
            return None
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def put(
        self,
        key: str,
        data: bytes,
        expected: str | None,
        is_ours: Callable[[bytes, bool], bool],
        what: str,
        *,
        force: bool = False,
    ) -> str | None:
        """Return the tag of the object once it is durable; None if its tag is not *expected* (None: no object).

        *force* replaces any object. If the condition fails, `is_ours(data, doubt)` decides whether the stored data is
        that of this put; *doubt* is whether an earlier try may have been served. Raises Failed `outcome_unknown`, which
        names *what*, if the outcome cannot be determined.
        """
        store = self._slow if len(data) > LARGE else self._once
        mode: PutMode = "overwrite" if force else "create" if expected is None else {"e_tag": expected}
        doubt, pause, until = False, 0.05, time.monotonic() + self.wait
        while True:
            try:
                return obstore.put(store, key, data, mode=mode, use_multipart=False)["e_tag"] or ""
            except _REFUSED as error:
                if "NoSuchBucket" in str(error):
                    raise self._unreachable(error) from error
                stored = self._read_conflicting(key, doubt, what)
                if stored is not None and is_ours(stored.data, doubt):
                    return stored.tag
                if (stored.tag if stored else None) != expected:
                    return None  # else a concurrent request was in the way: S3 answers 409
                last: Exception = error
            except _ERRORS as error:
                cause = _cause(error)
                doubt = doubt or cause.served
                if not cause.passing:
                    raise self._put_failure(error, doubt, what) from error
                last = error
            if time.monotonic() + pause > until:
                raise self._put_failure(last, doubt, what) from last
            time.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _read_conflicting(self, key: str, doubt: bool, what: str) -> File | None:
        try:
            return self.get(key)
        except Failed as error:
            if not doubt:
                raise
            raise self._put_failure(error, doubt, what) from error

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, sorted."""
        return _names_in(folder, self._list(folder)["common_prefixes"])

    def files(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder, sorted."""
        return _names_in(folder, [each["path"] for each in self._list(folder)["objects"]])

    def _list(self, folder: str) -> ListResult[Sequence[ObjectMeta]]:
        try:
            return obstore.list_with_delimiter(self._patient, folder)
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def below(self, prefix: str) -> list[str]:
        """Return the keys of all objects in a folder and its subfolders, sorted; raises Failed `store_unreachable`."""
        try:
            objects = obstore.list(self._patient, prefix, chunk_size=1000).collect()
        except _ERRORS as error:
            raise self._unreachable(error) from error
        return sorted(each["path"] for each in objects)

    def delete(self, keys: list[str]) -> None:
        """Remove these objects; a missing one counts as removed. Raises Failed `store_unreachable`."""
        try:
            obstore.delete(self._patient, keys)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._unreachable(error) from error
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def _put_failure(self, error: Exception, doubt: bool, what: str) -> Failed:
        if not doubt:
            return self._unreachable(error)
        return Failed(
            f"{self.name} could not be reached again while {what} was stored: {_short_message(error)}; "
            "it may or may not be stored",
            hint=f"submit it again with the same idempotency key; {self._hint(error)}",
            code="outcome_unknown",
        )

    def _unreachable(self, error: Exception) -> Failed:
        return Failed(
            f"{self.name} cannot be used: {_short_message(error)}", hint=self._hint(error), code="store_unreachable"
        )

    def _hint(self, error: Exception) -> str:
        return _cause(error).hint.format(bucket=self.bucket, prefix=self.prefix)


def _names_in(folder: str, paths: Sequence[str]) -> list[str]:
    """Return the names in a folder, sorted, without the folder itself, which some stores list."""
    return sorted(path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/"))


def _cause(error: Exception) -> _Cause:
    message = str(error)
    return next(cause for cause in _CAUSES if cause.mark in message)


def _short_message(error: Exception) -> str:
    """Return an error in one short line, without the address and the debug text of obstore."""
    text = str(error).partition("\n\nDebug source")[0]
    code, message = (text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("Code", "Message"))
    if code:
        return f"{code}: {message}"
    mark = _cause(error).mark
    return (
        mark.removeprefix("kind: ") if mark and "/" not in mark else " ".join(text.rpartition(" - ")[2].split())[:200]
    )


_REWRITES_KEY = "rewrites"


class Rewriter:
    """The object of the rewrites. Every read of it first carries out the pending rewrite."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._seen: tuple[Rewrites, str | None] = (Rewrites(), None)

    def begin(self, *, creates: bool) -> str:
        """Return the id of the log, after one was assigned to a new log; raise NotFound unless it *creates* that."""
        while not (now := self._settle())[0].log_id:
            if not creates:
                raise absent_root(self._bucket.name)
            self._put(replace(now[0], log_id=token_hex(8)), now[1])
        return now[0].log_id

    def state(self) -> Rewrites:
        """Return the rewrite counts of the streams and the id of the log, with no rewrite pending."""
        return self._settle()[0]

    def rewrite(self, stream: str, pending: Mapping[str, bytes]) -> None:
        """Replace the bytes of the objects *pending*, and increase the count of *stream*."""
        while True:
            before, tag = self._settle()
            if self._put(replace(before, stream=stream, pending=pending), tag):
                self._settle()
                return

    def mark(self, stream: str, damage: str) -> None:
        """Record the damage of a stream; an empty text removes it."""
        while True:
            before, tag = self._settle()
            damaged = {name: text for name, text in {**before.damaged, stream: damage}.items() if text}
            if damaged == before.damaged or self._put(replace(before, damaged=damaged), tag):
                return

    def _look(self) -> tuple[Rewrites, str | None]:
        file = self._bucket.get(_REWRITES_KEY, unless=self._seen[1])
        if file is not None:
            self._seen = (Rewrites.from_bytes(file.data), file.tag)
        return self._seen

    def _settle(self) -> tuple[Rewrites, str | None]:
        while True:
            now, tag = self._look()
            if not now.pending:
                return now, tag
            if all(self._replace(key, data, tag) for key, data in now.pending.items()):
                counts = {**now.counts, now.stream: now.counts.get(now.stream, 0) + 1}
                self._put(replace(now, counts=counts, stream="", pending={}), tag)

    def _replace(self, key: str, data: bytes, tag: str | None) -> bool:
        """Return True once the object has *data*, False if another process ended the rewrite of that *tag*.

        The object is read before the rewrite is seen to be still pending, and put only if it is unchanged; so a process
        that was delayed in between cannot undo a later rewrite.
        """
        while (stored := self._bucket.get(key)) is not None and stored.data != data:
            if self._bucket.get(_REWRITES_KEY, unless=tag) is not None:
                return False
            self._bucket.put(key, data, stored.tag, lambda now, _: now == data, f"the rewriting of {key}")
        return True

    def _put(self, state: Rewrites, tag: str | None) -> str | None:
        data = state.to_bytes()
        return self._bucket.put(_REWRITES_KEY, data, tag, lambda now, doubt: doubt and now == data, "a rewriting")


#: The most concurrent requests of one read.
_AT_ONCE = 32
#: The number of new entries, each found by its number, after which the end is found by listing instead.
_STEPS = 4
#: The most entries that are read at once in the search for a commit.
_MANY = 1024
#: Seconds for which the last entry is not read again; after that, since an older bucket may have been restored, it is.
BELIEVED = 10.0
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 1.0


class ObjectLog:
    """The streams and files below one prefix of a bucket."""

    def __init__(
        self, address: str, environment: Mapping[str, str], *, wait: float = 10.0, creates: bool = True
    ) -> None:
        """Open `s3://bucket/prefix`, a new log only if it *creates* one, else raise NotFound.

        Failed `store_unreachable` if it cannot be reached or ignores conditions.

        *environment* may name the endpoint (`AWS_ENDPOINT_URL`) and allow plain HTTP to another machine
        (`AWS_ALLOW_HTTP=true`). Transient failures are retried for *wait* seconds.
        """
        self._bucket = Bucket(address, environment, wait)
        self._bucket.probe()
        self._rewriter = Rewriter(self._bucket)
        self._log_id = self._rewriter.begin(creates=creates)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="jidomem-objects")
        self._guard = Lock()
        self._lengths: dict[Stream, int] = {}  # the largest entry number seen
        self._checked_at: dict[Stream, float] = {}  # when the entry of that number was last read
        self._closed = Event()

    @property
    def name(self) -> str:
        """Return the address for display, with the endpoint if one is set."""
        return self._bucket.name

    def streams(self) -> list[Stream]:
        """Return the streams that have an entry, sorted."""
        return sorted(Stream(*name.split(".")) for name in self._bucket.folders("log"))

    def positions(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        """Return the present position of each of *streams*, all requested concurrently with the rewrites."""
        return self._positions(streams) if streams else {}

    def read_state(self, streams: list[Stream], name: str) -> LogState:
        """Return the present position of *streams*, the tag of the file *name* (None without one), and the log id."""
        tag = self._pool.submit(self._bucket.tag, f"files/{name}")
        positions = self._positions(streams)
        return LogState(positions, tag.result(), self._log_id)

    def _positions(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        ends = {stream: self._pool.submit(self._end, stream) for stream in streams}
        now = self._rewriter.state()
        positions = {stream: now.positions(_name(stream), *end.result()) for stream, end in ends.items()}
        if now.log_id == self._log_id:
            return positions
        with self._guard:  # the log was recreated: cached lengths are of the former one
            self._lengths.clear()
            self._log_id = now.log_id
        return self._positions(streams)

    def read(self, stream: Stream, after: int = 0, *, with_gaps: bool = False) -> Iterator[LogEntry]:
        """Yield the entries with a number above *after*, in order, fetched in batches that grow.

        *with_gaps* a missing entry is left out, and a foreign one has no commit; else each raises JournalDamaged.
        """
        if with_gaps:
            numbers = [each for each in self._stored_numbers(stream) if each > after]
            for first in range(0, len(numbers), _MANY):
                some = numbers[first : first + _MANY]
                yield from filter(None, self._pool.map(lambda each: self._entry(stream, each, is_any=True), some))
            return
        number, count = after + 1, 1
        while True:
            known = self._lengths.get(stream, 0) - number + 1
            count = min(max(known + 1, count), _AT_ONCE)
            fetched = list(self._pool.map(lambda each: self._entry(stream, each), range(number, number + count)))
            entries = fetched[: fetched.index(None)] if None in fetched else fetched
            yield from (entry for entry in entries if entry is not None)
            self._record_length(stream, number + len(entries) - 1)
            number, count = number + len(entries), count * 2
            if len(entries) < len(fetched) and not self._is_continued(stream, number, any(fetched[len(entries) :])):
                return

    def _is_continued(self, stream: Stream, number: int, later: bool) -> bool:
        """Return whether an entry came during the read; raise JournalDamaged if only *later* ones exist."""
        if later and self._bucket.tag(_key(stream, number)) is None:
            raise JournalDamaged(
                "this object is missing, and later ones of its stream exist",
                path=f"{self.name}: {_key(stream, number)}",
                hint="jidomem journal restore puts it back from a copy; no lifecycle rule may expire it",
            )
        return later

    def _stored_numbers(self, stream: Stream) -> list[int]:
        folder = f"log/{_name(stream)}"
        digits = (key.removeprefix(folder).replace("/", "") for key in self._bucket.below(folder))
        return [int(each) for each in digits if len(each) == 9 and each.isdecimal()]

    def gaps(self) -> Mapping[Stream, int]:
        """Return the number of the first missing entry of each stream without one, by a listing."""
        return {stream: gap for stream in self.streams() if (gap := first_gap(self._stored_numbers(stream)))}

    def mark(self, stream: Stream, damage: str) -> None:
        """Record the damage of a stream; an empty text removes it."""
        self._rewriter.mark(_name(stream), damage)

    def restore(self, stream: Stream, entries: Sequence[tuple[LogEntry, bytes | None]]) -> bool:
        """Return True once the entries are durable, one after another; False if something else is at a number."""
        return all(self._restore_entry(stream, entry, damaged) for entry, damaged in entries)

    def _restore_entry(self, stream: Stream, entry: LogEntry, damaged: bytes | None) -> bool:
        key, data = _key(stream, entry.number), _header(entry.commit) + entry.document
        document, tag = None, None
        if stored := self._bucket.get(key):
            document, tag = _read_entry(entry.number, stored.data).document, stored.tag
        return (
            document in (damaged, entry.document)
            and self._bucket.put(key, data, tag, lambda now, _: now == data, f"the entry {key}") is not None
        )

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        """Return True once *document* is durable under *number*, False if another commit has that number.

        The entry before it is not read: an object store does not lose an acknowledged put by itself.
        """
        known = self._lengths.get(stream, -1)
        if number > known + 1:
            known = self._length(stream)
        if not 0 < number <= known + 1:
            raise ValueError(f"{number} is not the next number of {stream}, nor one before")
        header = _header(commit)
        tag = self._bucket.put(
            _key(stream, number),
            header + document,
            None,
            lambda there, doubt: there.startswith(header),
            f"the commit {commit}",
        )
        self._record_length(stream, number)  # the number is in use, whichever commit has it
        return tag is not None

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Replace the documents of these commits, all of them or none, and increase the count of rewrites."""
        numbers = self._numbers(stream, documents)
        pending = {_key(stream, numbers[commit]): _header(commit) + data for commit, data in documents.items()}
        if pending:
            self._rewriter.rewrite(_name(stream), pending)

    def _numbers(self, stream: Stream, documents: Mapping[str, bytes]) -> dict[str, int]:
        """Return the numbers of these commits; NotFound for a commit that is not in the stream.

        The search for a commit starts at the position in its document: that is its number or, after merges of branches,
        somewhat less.
        """
        last, starts = self._length(stream), {commit: _position(data) for commit, data in documents.items()}
        numbers = self._numbers_of(stream, (start for start in starts.values() if start <= last))
        for commit in sorted(starts, key=lambda each: starts[each]):
            after, count = starts[commit], _AT_ONCE
            while commit not in numbers:
                if after > last:
                    raise NotFound(f"{stream} has no commit {commit}", hint="name one that it has")
                numbers |= self._numbers_of(stream, range(after, min(after + count, last + 1)))
                after, count = after + count, min(2 * count, _MANY)
        return numbers

    def _numbers_of(self, stream: Stream, numbers: Iterable[int]) -> dict[str, int]:
        entries = self._pool.map(lambda each: self._entry(stream, each), numbers)
        return {entry.commit: entry.number for entry in entries if entry is not None}

    def wait(self, stream: Stream, known: StreamPosition, seconds: float) -> StreamPosition:
        """Return the reach of *stream* as soon as it differs from *known*, or after *seconds*; it polls."""
        until, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while (now := self.positions([stream])[stream]) == known:
            remaining = until - time.monotonic()
            if remaining <= 0 or self._closed.wait(min(pause, remaining)):
                break
            pause = min(pause * 1.5, _LAST_PAUSE)
        return now

    def get(self, name: str) -> File | None:
        """Return the file *name*; None if there is none."""
        check_file(name)
        return self._bucket.get(f"files/{name}")

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable; None if its tag is not *expected*."""
        check_file(name, data)
        key, what = f"files/{name}", f"the file {name}"
        return self._bucket.put(key, data, expected, lambda now, doubt: doubt and now == data, what, force=force)

    def check_writable(self, size: int = 0) -> None:
        """Do nothing: each opening writes a probe, and an object store has no cheaper one."""

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""
        keys = self._bucket.below(f"files/{prefix}".rpartition("/")[0])
        return [name for key in keys if (name := key.removeprefix("files/")).startswith(prefix)]

    def remove(self, names: list[str]) -> None:
        """Remove these files; a missing file counts as removed."""
        if names:
            self._bucket.delete([f"files/{name}" for name in names])

    def close(self) -> None:
        """End every wait, and release the connections."""
        self._closed.set()
        self._pool.shutdown()

    def _entry(self, stream: Stream, number: int, *, is_any: bool = False) -> LogEntry | None:
        """Return an entry; None if it is missing. Raise JournalDamaged for a foreign one unless *is_any*."""
        file = self._bucket.get(_key(stream, number))
        entry = None if file is None else _read_entry(number, file.data)
        if entry is None or entry.commit or is_any:
            return entry
        raise JournalDamaged("this object was not written by jidomem", path=f"{self.name}: {_key(stream, number)}")

    def _record_length(self, stream: Stream, number: int) -> None:
        with self._guard:
            self._lengths[stream] = max(number, self._lengths.get(stream, 0))

    def _end(self, stream: Stream) -> tuple[int, str]:
        """Return the number of the last entry, and its commit if it was read again because `BELIEVED` had passed."""
        known, now = self._lengths.get(stream), time.monotonic()
        if not known or now - self._checked_at.setdefault(stream, now) < BELIEVED:
            return self._length(stream), ""
        entry, self._checked_at[stream] = self._entry(stream, known), now
        if entry is None:
            with self._guard:
                self._lengths.pop(stream, None)
        length = self._length(stream)
        return length, entry.commit if entry is not None and length == known else ""

    def _length(self, stream: Stream) -> int:
        length = self._lengths.get(stream)
        if length is None:
            length = self._last(f"log/{_name(stream)}", 2)
        for _ in range(_STEPS):
            if self._bucket.tag(_key(stream, length + 1)) is None:
                break
            length += 1
        else:
            length = max(length, self._last(f"log/{_name(stream)}", 2))
        self._record_length(stream, length)
        return length

    def _last(self, folder: str, levels: int) -> int:
        if not levels:
            names = self._bucket.files(folder)
            return int("".join([*folder.split("/")[2:], names[-1]])) if names else 0
        numbers = (self._last(f"{folder}/{name}", levels - 1) for name in reversed(self._bucket.folders(folder)))
        return next(filter(None, numbers), 0)


def _name(stream: Stream) -> str:
    """Return the folder of a stream, which is also its key in the rewrite counts."""
    return f"{stream.project}.{stream.name}"


def _key(stream: Stream, number: int) -> str:
    """Return the key of an entry.

    >>> _key(Stream("p"), 12345)
    'log/p.memory/000/012/345'
    """
    digits = f"{number:09}"
    return f"log/{_name(stream)}/{digits[:-6]}/{digits[-6:-3]}/{digits[-3:]}"


def _read_entry(number: int, data: bytes) -> LogEntry:
    """Return the entry in an object; one without commit if it is foreign."""
    header, _, document = data.partition(b"\n")
    if not header.startswith(b"# commit "):
        return LogEntry(number, "", data)
    return LogEntry(number, header.removeprefix(b"# commit ").decode(errors="replace"), document)


def _position(document: bytes) -> int:
    try:
        return max(unverified_entry(document).head.position, 1)
    except FormatError:
        return 1


def _header(commit: str) -> bytes:
    return f"# commit {commit}\n".encode()
