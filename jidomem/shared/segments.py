"""Vectors of texts with the shared root, in segments that never change, so that no server embeds what another did.

    vectors/<project>/<stream>/<model>/list.json    the segments there are, and whose turn it is to make more
    vectors/<project>/<stream>/<model>/<digest>     a segment: how many vectors, digests of texts, their vectors

A segment counts once it is listed, and the list is changed by compare-and-set alone: who was overtaken, or began before
a redaction gave each list another state, lists nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from secrets import token_hex
from time import time

from jidomem.decoding import decode_json
from jidomem.index.common_vectors import Row
from jidomem.journal.files import Stream
from jidomem.shared.log import File, SharedLog

FOLDER, LIST = "vectors/", "list.json"
#: Seconds after its last sign for which who makes vectors is waited for.
LEASE = 60.0
#: So many vectors, or bytes, a segment has at most; smaller ones are merged.
MANY, MUCH = 8_192, 16 << 20
_FORM, _DIGEST = 1, 16


@dataclass(frozen=True, slots=True)
class Listed:
    """What a list says: each segment with its number of vectors, and whose turn it is until when; none where 0."""

    segments: tuple[tuple[str, int], ...] = ()
    by: str = ""
    until: float = 0.0
    tag: str | None = None
    amiss: frozenset[str] = field(default=frozenset(), compare=False)

    @staticmethod
    def of(file: File | None) -> Listed:
        """Return what *file* says; one that cannot be read says nothing."""
        if file is None:
            return Listed()
        try:
            said = decode_json(file.data)
            if said["form"] == _FORM:
                segments = tuple((str(name), int(count)) for name, count in said["segments"])
                return Listed(segments, str(said["by"]), float(said["until"]), file.tag)
        except (ValueError, KeyError, TypeError):
            pass
        return Listed(tag=file.tag)

    @property
    def data(self) -> bytes:
        """Return what is kept of it, never the same bytes twice."""
        said = {"form": _FORM, "segments": self.segments, "by": self.by, "until": self.until, "state": token_hex(8)}
        return json.dumps(said).encode()

    def is_held(self, who: str) -> bool:
        """Return whether it is the turn of another than *who*."""
        return self.by != who and 0.0 < self.until - time() <= 2 * LEASE  # clocks differ


class Segments:
    """The segments in *log*, and what was last seen of each list; of one stream and model one thread asks at a time."""

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self._seen: dict[str, Listed] = {}

    def listed(self, stream: Stream, model: str) -> list[str]:
        """Return the segments there are now."""
        folder = _folder(stream, model)
        self._seen[folder] = now = Listed.of(self._log.get(folder + LIST))
        return [name for name, _ in now.segments]

    def rows(self, stream: Stream, model: str, name: str) -> list[Row] | None:
        """Return what a segment has, None where it is gone or not whole: its name is the digest of its bytes."""
        folder = _folder(stream, model)
        if (found := self._rows(folder, name)) is None:
            before = self._seen[folder]
            self._seen[folder] = replace(before, amiss=before.amiss | {name})
        return found

    def turn(self, stream: Stream, model: str, who: str) -> bool:
        """Return whether it is the turn of *who* to make more, and nothing changed since `listed` was asked."""
        folder = _folder(stream, model)
        before = self._seen[folder]
        if before.is_held(who):
            return False
        if before.by == who and before.until - time() > LEASE / 2:
            return True
        if not self._put(folder, replace(before, by=who, until=time() + LEASE)):
            return False
        if before.until or not before.by:  # who had the turn before did not give it back: what it left is nobody's
            there = {folder + LIST, *(folder + name for name, _ in before.segments)}
            self._log.remove([name for name in self._log.names(folder) if name not in there])
        return True

    def put(self, stream: Stream, model: str, who: str, rows: Sequence[Row], *, goes_on: bool) -> list[str] | None:
        """Return the segments once one has *rows*, None where it was no longer the turn of *who*.

        The last ones are put into the new one where they are no larger. The turn is kept where it *goes_on*.
        """
        folder = _folder(stream, model)
        before = self._seen[folder]
        left, merged = self._merged(folder, before, rows)
        data = packed(merged)
        name = blake2b(data, digest_size=32).hexdigest()
        self._log.put(folder + name, data, force=True)
        until = time() + LEASE if goes_on else 0.0
        now = replace(before, segments=(*left, (name, len(merged))), by=who, until=until, amiss=frozenset())
        if before.by != who or not self._put(folder, now):
            self._log.remove([folder + name])
            return None
        self._log.remove(sorted(folder + old for old, _ in {*before.segments} - {*now.segments}))
        return [name for name, _ in now.segments]

    def end(self, stream: Stream, model: str, who: str) -> None:
        """Give the turn back, where it was taken here and not lost since."""
        folder = _folder(stream, model)
        before = self._seen.get(folder, Listed())
        if before.by == who and before.until:
            self._put(folder, replace(before, until=0.0))

    def _put(self, folder: str, now: Listed) -> bool:
        tag = self._log.put(folder + LIST, now.data, now.tag)
        self._seen[folder] = replace(now, tag=tag) if tag is not None else Listed()
        return tag is not None

    def _rows(self, folder: str, name: str) -> list[Row] | None:
        file = self._log.get(folder + name) if len(name) == 64 and name.isalnum() else None
        if file is None or blake2b(file.data, digest_size=32).hexdigest() != name:
            return None
        return unpacked(file.data)

    def _merged(self, folder: str, before: Listed, rows: Sequence[Row]) -> tuple[list[tuple[str, int]], list[Row]]:
        """Return the segments that stay, and what the new one has."""
        left, merged = [each for each in before.segments if each[0] not in before.amiss], [*rows]
        most = min(MANY, MUCH // (_DIGEST + len(rows[0][1])))
        while left and left[-1][1] <= len(merged) and left[-1][1] + len(merged) <= most:
            merged = [*(self._rows(folder, left.pop()[0]) or []), *merged]
        return left, merged


def discard(log: SharedLog, project: str) -> None:
    """Remove every vector of *project*; who makes some now lists them no more."""
    names = log.names(f"{FOLDER}{project}/")
    lists = [name for name in names if name.endswith(f"/{LIST}")]
    for name in lists:
        log.put(name, Listed().data, force=True)
    log.remove([name for name in names if name not in lists])


def packed(rows: Sequence[Row]) -> bytes:
    """Return the bytes of a segment: its vectors are of one length.

    >>> unpacked(packed([(b"0123456789abcdef", b"xyz")]))
    [(b'0123456789abcdef', b'xyz')]
    """
    count = len(rows).to_bytes(4, "big")
    return count + b"".join(digest for digest, _ in rows) + b"".join(value for _, value in rows)


def unpacked(data: bytes) -> list[Row] | None:
    """Return what a segment has, None where these are no bytes of one."""
    count = int.from_bytes(data[:4], "big")
    size, rest = divmod(len(data) - 4 - count * _DIGEST, count) if count else (0, 1)
    if rest or size <= 0:
        return None
    values = 4 + count * _DIGEST
    starts = ((4 + at * _DIGEST, values + at * size) for at in range(count))
    return [(data[one : one + _DIGEST], data[other : other + size]) for one, other in starts]


def _folder(stream: Stream, model: str) -> str:
    return f"{FOLDER}{stream.project}/{stream.name}/{model}/"
