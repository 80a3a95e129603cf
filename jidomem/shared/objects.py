"""A shared log in an object store: one object a commit under its number, put only where there is none.

Below the prefix lie

    log/<project>.<stream>/000/000/017    `# commit <id>`, a line end, and the document of entry 17
    rewrites                              how often each stream was rewritten, the rewriting that goes on, a life
    files/<name>                          the files beside the streams; their ETag is the tag
    probe                                 what is put, on opening, to see that the store keeps its conditions

An append is one put with `If-None-Match: *`. It is only made for the number after one that was seen there, and nothing
removes an entry, so there is never a gap; a reading that meets one all the same (a restored bucket, a lifecycle rule)
says so. The end of a stream is found by asking for the next number, and by whoever has just come in three listings:
numbers are cut in three so that no folder has more than a thousand names.

A rewriting changes several objects, and is all or none: it is first written down, documents and all, in `rewrites`, by
`If-Match`, and done from there on; whoever asks for the reach of a stream and finds one written down carries it out
before answering. Each document is put with the ETag read before it was seen that the rewriting still goes on, so that
one who slept meanwhile cannot bring back what a later rewriting took out. Counted and crossed out is one put.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal.commit import FormatError
from jidomem.journal.files import Stream
from jidomem.journal.packs import outline
from jidomem.shared.bucket import Bucket
from jidomem.shared.log import Entry, File, Look, Reach, check_file
from jidomem.shared.rewriting import Rewriter

#: How many requests a reading has under way at most.
_AT_ONCE = 32
#: After how many entries that came meanwhile, each found by its number, the rest is found by listing.
_STEPS = 4
#: How many entries are looked through at once at most, where a commit is looked for.
_MANY = 1024
#: For how many seconds the last entry is believed to be there: an older state may be restored in its place.
BELIEVED = 10.0
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 1.0


class ObjectLog:
    """The streams and files below one prefix of a bucket."""

    def __init__(self, address: str, environment: Mapping[str, str], *, wait: float = 10.0) -> None:
        """Open `s3://bucket/prefix`; Failed `store_unreachable` where it cannot be reached, or ignores conditions.

        *environment* may name the endpoint (`AWS_ENDPOINT_URL`), and allow plain HTTP to another machine
        (`AWS_ALLOW_HTTP=true`). *wait* is how many seconds what failed is tried again.
        """
        self._bucket = Bucket(address, environment, wait)
        self._bucket.probe()
        self._rewriter = Rewriter(self._bucket)
        self._life = self._rewriter.begin()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="jidomem-objects")
        self._guard = Lock()
        self._lengths: dict[Stream, int] = {}  # the largest number seen there
        self._asked: dict[Stream, float] = {}  # when what stands under it was asked for
        self._closed = Event()

    @property
    def name(self) -> str:
        """Return the address as it may be shown, with the endpoint where one was set."""
        return self._bucket.name

    def streams(self) -> list[Stream]:
        """Return the streams that hold an entry, sorted."""
        return sorted(Stream(*name.split(".")) for name in self._bucket.folders("log"))

    def reach(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        """Return how far each of *streams* reaches now; all of them, and the rewritings, are asked for at once."""
        return self._reaches(streams) if streams else {}

    def look(self, streams: list[Stream], name: str) -> Look:
        """Return how far each of *streams* reaches now, and the tag of the file *name*, None where there is none."""
        tag = self._pool.submit(self._bucket.tag, f"files/{name}")
        reaches = self._reaches(streams)
        return Look(reaches, tag.result(), self._life)

    def _reaches(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        ends = {stream: self._pool.submit(self._end, stream) for stream in streams}
        now = self._rewriter.state()
        counts = {stream: now.counts.get(_name(stream), 0) for stream in streams}
        found = {stream: Reach(end.result()[0], counts[stream], end.result()[1]) for stream, end in ends.items()}
        if now.life == self._life:
            return found
        with self._guard:  # it was made anew in its place, and what was known is of the one before
            self._lengths.clear()
            self._life = now.life
        return self._reaches(streams)

    def read(self, stream: Stream, after: int = 0) -> Iterator[Entry]:
        """Return the entries with a number above *after*, in order; what comes next is fetched while one is used."""
        number, many = after + 1, 1
        while True:
            known = self._lengths.get(stream, 0) - number + 1
            many = min(max(known + 1, many), _AT_ONCE)
            found = list(self._pool.map(lambda each: self._entry(stream, each), range(number, number + many)))
            entries = found[: found.index(None)] if None in found else found
            yield from (entry for entry in entries if entry is not None)
            self._saw(stream, number + len(entries) - 1)
            number, many = number + len(entries), many * 2
            if len(entries) < len(found) and not self._has(stream, number, any(found[len(entries) :])):
                return

    def _has(self, stream: Stream, number: int, later: bool) -> bool:
        """Return whether an entry came while it was read; raise JournalDamaged where only *later* ones are there."""
        if later and not self._bucket.exists(_key(stream, number)):
            raise JournalDamaged(
                "this object is not there any more, and later ones of its stream are",
                path=f"{self.name}: {_key(stream, number)}",
                hint="restore it from a backup or from an older version of the bucket; no lifecycle rule may expire it",
            )
        return later

    def append(self, stream: Stream, number: int, commit: str, document: bytes, *, after: str = "") -> bool:
        """Return True once *document* is durable under *number*, False where another commit has that number.

        What stands before it is not asked for: no store takes back a put on its own.
        """
        known = self._lengths.get(stream, -1)
        if number > known + 1:
            known = self._length(stream)
        if not 0 < number <= known + 1:
            raise ValueError(f"{number} is not the next number of {stream}, nor one before")
        top = _top(commit)
        tag = self._bucket.put(
            _key(stream, number),
            top + document,
            None,
            lambda there, doubt: there.startswith(top),
            f"the commit {commit}",
        )
        self._saw(stream, number)  # of whomever: it is taken
        return tag is not None

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        """Put other documents in the place of those of these commits: all of them or none, and count it."""
        numbers = self._numbers(stream, documents)
        pending = {_key(stream, numbers[commit]): _top(commit) + data for commit, data in documents.items()}
        if pending:
            self._rewriter.rewrite(_name(stream), pending)

    def _numbers(self, stream: Stream, documents: Mapping[str, bytes]) -> dict[str, int]:
        """Return the numbers of these commits; NotFound where one is not there.

        A commit is looked for from the position on that its document says: it is its number, or, where branches were
        merged, somewhat less.
        """
        last, starts = self._length(stream), {commit: _position(data) for commit, data in documents.items()}
        numbers = self._found(stream, (start for start in starts.values() if start <= last))
        for commit in sorted(starts, key=lambda each: starts[each]):
            after, many = starts[commit], _AT_ONCE
            while commit not in numbers:
                if after > last:
                    raise NotFound(f"{stream} has no commit {commit}", hint="name one that it has")
                numbers |= self._found(stream, range(after, min(after + many, last + 1)))
                after, many = after + many, min(2 * many, _MANY)
        return numbers

    def _found(self, stream: Stream, numbers: Iterable[int]) -> dict[str, int]:
        """Return the numbers of the commits that stand under *numbers*."""
        found = self._pool.map(lambda each: self._entry(stream, each), numbers)
        return {entry.commit: entry.number for entry in found if entry is not None}

    def wait(self, stream: Stream, known: Reach, seconds: float) -> Reach:
        """Return how far *stream* reaches, asked for until that is not *known*, or *seconds* are over."""
        until, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while (now := self.reach([stream])[stream]) == known:
            left = until - time.monotonic()
            if left <= 0 or self._closed.wait(min(pause, left)):
                break
            pause = min(pause * 1.5, _LAST_PAUSE)
        return now

    def get(self, name: str) -> File | None:
        """Return the file *name*; None where there is none."""
        check_file(name)
        return self._bucket.get(f"files/{name}")

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        """Return the new tag of the file once it is durable, None where it has another tag than *expected*."""
        check_file(name, data)
        key, what = f"files/{name}", f"the file {name}"
        return self._bucket.put(key, data, expected, lambda now, doubt: doubt and now == data, what, force=force)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with *prefix*, sorted."""
        keys = self._bucket.below(f"files/{prefix}".rpartition("/")[0])
        return [name for key in keys if (name := key.removeprefix("files/")).startswith(prefix)]

    def remove(self, names: list[str]) -> None:
        """Remove these files; one that is not there is removed already."""
        if names:
            self._bucket.delete([f"files/{name}" for name in names])

    def close(self) -> None:
        """End what waits, and let go of the connections."""
        self._closed.set()
        self._pool.shutdown()

    def _entry(self, stream: Stream, number: int) -> Entry | None:
        """Return an entry, None where there is none."""
        found = self._bucket.get(_key(stream, number))
        if found is None:
            return None
        top, _, document = found.data.partition(b"\n")
        if not top.startswith(b"# commit "):
            raise JournalDamaged("this object was not put by jidomem", path=f"{self.name}: {_key(stream, number)}")
        return Entry(number, top.removeprefix(b"# commit ").decode(), document)

    def _saw(self, stream: Stream, number: int) -> None:
        """Remember that there is an entry under *number*."""
        with self._guard:
            self._lengths[stream] = max(number, self._lengths.get(stream, 0))

    def _end(self, stream: Stream) -> tuple[int, str]:
        """Return the number of the last entry, and its commit where that was asked for because it was long ago."""
        known, now = self._lengths.get(stream), time.monotonic()
        if not known or now - self._asked.setdefault(stream, now) < BELIEVED:
            return self._length(stream), ""
        entry, self._asked[stream] = self._entry(stream, known), now
        if entry is None:
            with self._guard:
                self._lengths.pop(stream, None)
        length = self._length(stream)
        return length, entry.commit if entry is not None and length == known else ""

    def _length(self, stream: Stream) -> int:
        """Return the number of the last entry."""
        length = self._lengths.get(stream)
        if length is None:
            length = self._last(f"log/{_name(stream)}", 2)
        for _ in range(_STEPS):
            if not self._bucket.exists(_key(stream, length + 1)):
                break
            length += 1
        else:
            length = max(length, self._last(f"log/{_name(stream)}", 2))
        self._saw(stream, length)
        return length

    def _last(self, folder: str, levels: int) -> int:
        """Return the largest number in a folder with *levels* of folders in it, 0 where there is none."""
        if not levels:
            names = self._bucket.files(folder)
            return int("".join([*folder.split("/")[2:], names[-1]])) if names else 0
        found = (self._last(f"{folder}/{name}", levels - 1) for name in reversed(self._bucket.folders(folder)))
        return next(filter(None, found), 0)


def _name(stream: Stream) -> str:
    """Return the folder of a stream, and what its rewritings are counted under."""
    return f"{stream.project}.{stream.name}"


def _key(stream: Stream, number: int) -> str:
    """Return the key of an entry.

    >>> _key(Stream("p"), 12345)
    'log/p.memory/000/012/345'
    """
    digits = f"{number:09}"
    return f"log/{_name(stream)}/{digits[:-6]}/{digits[-6:-3]}/{digits[-3:]}"


def _position(document: bytes) -> int:
    """Return the position that a document says its commit has; 1 where it does not say."""
    try:
        return max(outline(document).head.position, 1)
    except FormatError:
        return 1


def _top(commit: str) -> bytes:
    """Return the first line of an entry: a comment, so that the object as a whole is Turtle too."""
    return f"# commit {commit}\n".encode()
