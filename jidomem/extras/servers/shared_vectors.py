"""The vectors that the servers of a root share, so that each text is embedded once.

    vectors/<project>/<stream>/<model>/list.json    the segments, and the lease of the server that embeds
    vectors/<project>/<stream>/<model>/<digest>     a segment: its size, digests of texts, and their vectors

A segment never changes and counts once it is listed; the list changes by compare-and-swap alone, so
a server that was overtaken, or that began before a redaction, lists nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from time import time
from typing import Any, ClassVar, TypeVar

from jidomem.base.json_values import decode_json
from jidomem.extras.servers.log import File, SharedLog
from jidomem.index.cache_file import chunks
from jidomem.index.search_index import Texts, VectorFile
from jidomem.index.search_tables import SearchIndexReader
from jidomem.index.vectors import PieceBatch, Vectors, identity_of
from jidomem.journal.journal import Stream
from jidomem.records.interfaces import Embedder

T = TypeVar("T")

#: The digest of a text, and its vector as stored.
Row = tuple[bytes, bytes]


class PeerVectorCache(VectorFile):
    """A vector file that also has vectors of other servers for texts that were not read here yet."""

    FORM = 3
    TABLES = VectorFile.TABLES + "CREATE TABLE offered (digest BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;\n"
    UPGRADES: ClassVar[Mapping[int, str]] = {}

    def initialise(self) -> None:
        """Assign an identity for the leases, which all processes with this file share."""
        super().initialise()
        self.set_metadata(who=token_hex(16))

    def present(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return those of *digests* that have a vector."""
        return {*self.numbers(digests), *self._offered(digests)}

    def write(self, digests: Sequence[bytes], made: Mapping[bytes, bytes]) -> None:
        """Store the vectors *made* here and those offered, in the order of *digests*, inside a write transaction."""
        offered = self._offered(digests)
        super().write(digests, {**offered, **made})
        self._store.executemany("DELETE FROM offered WHERE digest = ?", ((digest,) for digest in offered))

    def offer(self, segment: str, rows: Sequence[Row], listed: Sequence[str]) -> None:
        """Add the rows of *segment*, one of the segments *listed*, inside a write transaction."""
        present = self.numbers([digest for digest, _ in rows])
        fresh = [row for row in rows if row[0] not in present]
        self._store.executemany("INSERT OR IGNORE INTO offered VALUES (?, ?)", fresh)
        self.set_metadata(seen=[*(name for name in self.seen if name in listed), segment])

    @property
    def seen(self) -> list[str]:
        """Return the segments whose rows were added."""
        return [str(name) for name in self.metadata("seen") or []]

    def _offered(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        vectors: dict[bytes, bytes] = {}
        for step in chunks(digests):
            ask = f"SELECT digest, value FROM offered WHERE digest IN ({', '.join('?' * len(step))})"
            vectors.update(self._store.execute(ask, step))
        return vectors


class SharedVectors(Vectors):
    """The vectors of one root on this machine; no text is embedded that another server of the root embedded.

    A vector of another server counts as one made here. While another server has the lease, texts without a vector wait.
    """

    FILE_CLASS: ClassVar[type[VectorFile]] = PeerVectorCache

    def __init__(self, root: Path, texts: Texts, embedder: Embedder, common: VectorSegments) -> None:
        """Store below *root* the vectors that *embedder* makes of *texts*, and share them through *common*."""
        super().__init__(root, texts, embedder)
        self._common = common
        self._elsewhere: set[Stream] = set()  # streams for which another server had the lease at the last attempt

    def status(self, stream: Stream) -> dict[str, Any]:
        """Return the state of a stream's vectors, with `elsewhere` if another server makes the missing ones."""
        state = super().status(stream)
        return {**state, "elsewhere": True} if state["pending"] and stream in self._elsewhere else state

    def _embed_next(self, stream: Stream) -> bool:
        step = self._step(stream, 0)
        if step.last is not None:
            super()._write_batch(stream, step, [])
            return True
        owner = self._lease_owner(stream)
        if not step.more:
            self._common.end(stream, self._model, owner)
            return self._sweep(stream)
        if self._fetch_segments(stream, step.identity):
            return True
        if not self._common.acquire_lease(stream, self._model, owner):
            self._elsewhere.add(stream)
            return False
        self._elsewhere.discard(stream)
        try:
            return super()._embed_next(stream)
        except BaseException:
            self._common.end(stream, self._model, owner)
            raise

    def _write_batch(self, stream: Stream, step: PieceBatch, values: Sequence[Row]) -> None:
        listed = None
        if values:
            goes_on = len(step.texts) == self._batches.size(self._name(stream))
            listed = self._common.put(stream, self._model, self._lease_owner(stream), values, goes_on=goes_on)
        super()._write_batch(stream, step, values)
        if listed is not None:
            self._use_cache(stream, lambda file: file.set_metadata(seen=listed))

    def _fetch_segments(self, stream: Stream, identity: str) -> bool:
        """Return whether segments arrived; none is added if the search text was rebuilt meanwhile."""
        dimensions, has_new = self.embedder.dimensions(), False
        listed, seen = self._common.listed(stream, self._model), self._use_cache(stream, lambda file: file.seen)
        for name in listed:
            rows = None if name in seen else self._common.rows(stream, self._model, name)
            if rows is not None:
                fit = [row for row in rows if len(row[1]) == dimensions]
                self._texts.read(stream, partial(self._offer, stream, identity, (name, fit, listed)))
                has_new = True
        return has_new

    def _offer(
        self, stream: Stream, identity: str, given: tuple[str, list[Row], list[str]], texts: SearchIndexReader
    ) -> None:
        def offer(file: PeerVectorCache) -> None:
            with file.writing():
                file.offer(*given)

        if identity_of(texts) == identity:
            self._use_cache(stream, offer)

    def _lease_owner(self, stream: Stream) -> str:
        return self._use_cache(stream, lambda file: str(file.metadata("who")))

    def _use_cache(self, stream: Stream, use: Callable[[PeerVectorCache], T]) -> T:
        def ask(file: VectorFile) -> T:
            assert isinstance(file, PeerVectorCache)
            return use(file)

        return self._use(stream, ask)


FOLDER, LIST = "vectors/", "list.json"
#: Seconds until a lease expires that is not renewed.
LEASE = 60.0
#: The most vectors, and bytes, of a segment; smaller segments are merged.
MANY, MUCH = 8_192, 16 << 20
_FORM, _DIGEST = 1, 16


@dataclass(frozen=True, slots=True)
class SegmentList:
    """The list of segments with their sizes, and the lease: its holder and its end, 0 for none."""

    segments: tuple[tuple[str, int], ...] = ()
    by: str = ""
    until: float = 0.0
    tag: str | None = None
    damaged: frozenset[str] = field(default=frozenset(), compare=False)

    @staticmethod
    def of(file: File | None) -> SegmentList:
        """Return the list in *file*; an unreadable file is an empty list."""
        if file is None:
            return SegmentList()
        try:
            values = decode_json(file.data)
            if values["form"] == _FORM:
                segments = tuple((str(name), int(count)) for name, count in values["segments"])
                return SegmentList(segments, str(values["by"]), float(values["until"]), file.tag)
        except (ValueError, KeyError, TypeError):
            pass
        return SegmentList(tag=file.tag)

    @property
    def data(self) -> bytes:
        """Return the stored bytes, which are unique to each call."""
        values = {"form": _FORM, "segments": self.segments, "by": self.by, "until": self.until, "state": token_hex(8)}
        return json.dumps(values).encode()

    def is_leased(self, owner: str) -> bool:
        """Return whether another server than *owner* has the lease."""
        return self.by != owner and 0.0 < self.until - time() <= 2 * LEASE  # clocks differ


class VectorSegments:
    """The segments in *log*, by stream and digest of the model, and the list of each as last read.

    For one stream and model it is used by one thread at a time.
    """

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self._seen: dict[str, SegmentList] = {}

    def listed(self, stream: Stream, model: str) -> list[str]:
        """Return the present segments."""
        folder = _folder(stream, model)
        self._seen[folder] = now = SegmentList.of(self._log.get(folder + LIST))
        return [name for name, _ in now.segments]

    def rows(self, stream: Stream, model: str, name: str) -> list[Row] | None:
        """Return the rows of a segment; None for a missing or damaged one: its name is the digest of its bytes."""
        folder = _folder(stream, model)
        if (segment_rows := self._rows(folder, name)) is None:
            before = self._seen[folder]
            self._seen[folder] = replace(before, damaged=before.damaged | {name})
        return segment_rows

    def acquire_lease(self, stream: Stream, model: str, owner: str) -> bool:
        """Return whether *owner* now has the lease and the list is unchanged since `listed` read it."""
        folder = _folder(stream, model)
        before = self._seen[folder]
        if before.is_leased(owner):
            return False
        if before.by == owner and before.until - time() > LEASE / 2:
            return True
        if not self._put(folder, replace(before, by=owner, until=time() + LEASE)):
            return False
        if before.until or not before.by:  # the last holder did not release the lease: unlisted segments are garbage
            listed = {folder + LIST, *(folder + name for name, _ in before.segments)}
            self._log.remove([name for name in self._log.names(folder) if name not in listed])
        return True

    def put(self, stream: Stream, model: str, owner: str, rows: Sequence[Row], *, goes_on: bool) -> list[str] | None:
        """Return the segments once one has *rows*; None if *owner* no longer had the lease.

        The last segments are merged into the new one if they are no larger. *goes_on* keeps the lease.
        """
        folder = _folder(stream, model)
        before = self._seen[folder]
        rest, merged = self._merge(folder, before, rows)
        data = packed(merged)
        name = blake2b(data, digest_size=32).hexdigest()
        self._log.put(folder + name, data, force=True)
        until = time() + LEASE if goes_on else 0.0
        now = replace(before, segments=(*rest, (name, len(merged))), by=owner, until=until, damaged=frozenset())
        if before.by != owner or not self._put(folder, now):
            self._log.remove([folder + name])
            return None
        self._log.remove(sorted(folder + old for old, _ in {*before.segments} - {*now.segments}))
        return [name for name, _ in now.segments]

    def end(self, stream: Stream, model: str, owner: str) -> None:
        """Release the lease if *owner* has it."""
        folder = _folder(stream, model)
        before = self._seen.get(folder, SegmentList())
        if before.by == owner and before.until:
            self._put(folder, replace(before, until=0.0))

    def _put(self, folder: str, now: SegmentList) -> bool:
        tag = self._log.put(folder + LIST, now.data, now.tag)
        self._seen[folder] = replace(now, tag=tag) if tag is not None else SegmentList()
        return tag is not None

    def _rows(self, folder: str, name: str) -> list[Row] | None:
        file = self._log.get(folder + name) if len(name) == 64 and name.isalnum() else None
        if file is None or blake2b(file.data, digest_size=32).hexdigest() != name:
            return None
        return unpacked(file.data)

    def _merge(self, folder: str, before: SegmentList, rows: Sequence[Row]) -> tuple[list[tuple[str, int]], list[Row]]:
        rest, merged = [each for each in before.segments if each[0] not in before.damaged], [*rows]
        most = min(MANY, MUCH // (_DIGEST + len(rows[0][1])))
        while rest and rest[-1][1] <= len(merged) and rest[-1][1] + len(merged) <= most:
            merged = [*(self._rows(folder, rest.pop()[0]) or []), *merged]
        return rest, merged


def discard(log: SharedLog, project: str) -> None:
    """Remove all vectors of *project*; a server that is embedding loses its lease."""
    names = log.names(f"{FOLDER}{project}/")
    lists = [name for name in names if name.endswith(f"/{LIST}")]
    for name in lists:
        log.put(name, SegmentList().data, force=True)
    log.remove([name for name in names if name not in lists])


def packed(rows: Sequence[Row]) -> bytes:
    """Return the bytes of a segment, all of whose vectors have one length.

    >>> unpacked(packed([(b"0123456789abcdef", b"xyz")]))
    [(b'0123456789abcdef', b'xyz')]
    """
    count = len(rows).to_bytes(4, "big")
    return count + b"".join(digest for digest, _ in rows) + b"".join(value for _, value in rows)


def unpacked(data: bytes) -> list[Row] | None:
    """Return the rows of a segment; None for other bytes."""
    count = int.from_bytes(data[:4], "big")
    size, rest = divmod(len(data) - 4 - count * _DIGEST, count) if count else (0, 1)
    if rest or size <= 0:
        return None
    values = 4 + count * _DIGEST
    starts = ((4 + at * _DIGEST, values + at * size) for at in range(count))
    return [
        (data[digest_at : digest_at + _DIGEST], data[vector_at : vector_at + size]) for digest_at, vector_at in starts
    ]


def _folder(stream: Stream, model: str) -> str:
    return f"{FOLDER}{stream.project}/{stream.name}/{model}/"
