"""A pack is a file of many commits, with a table of their offsets (docs/journal-format.md).

`PackSet` is the packs of one folder: their names, the commits in them, and the tips among those.
"""

from __future__ import annotations

import errno
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import accumulate
from threading import RLock
from time import time_ns
from typing import NamedTuple

from jidomem.base import disk
from jidomem.base.containers import BoundedDict
from jidomem.base.disk import FileStates, move, prepare
from jidomem.base.regex import lazy
from jidomem.journal.commit import BYTES, EDITED, FormatError, compact, pack_name, parse, stem
from jidomem.records.intent import CommitRef

_MOMENT = r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)"
_NUMBER, _ID = r"([1-9][0-9]{0,17})", r"([0-9a-f]{64})"
_TOP = lazy(
    rf"# jidomem pack 1\n# commits {_NUMBER}\n# first {_MOMENT}\n# last {_MOMENT}\n"
    rf"((?:# tip [^\n]+\n)+)((?:# after [^\n]+\n)*)# table {_NUMBER} {_ID}\n# blocks {_NUMBER}\n"
)
_TIP = lazy(rf"# tip {_ID} {_MOMENT} {_NUMBER}")
_AFTER = lazy(rf"# after {_ID}")
_ROW = lazy(rf"# commit {_ID} {_MOMENT} {_NUMBER} {_NUMBER} (whole|redacted)((?: [0-9a-f]{{64}})*)")
_BLOCK = re.compile(rb"\n\n<urn:jido:commit:([0-9a-f]{64})>\n(.+?) \.\n", re.DOTALL)
_DESCRIPTION = re.compile(
    rb"    jido:(?:parent <urn:jido:commit:([0-9a-f]{64})>|position \"([1-9][0-9]{0,17})\"\^\^xsd:integer"
    rb"|recordedAt \"([^\"]{27})\"\^\^xsd:dateTime) [;.]"
)
_READ = 4096
#: The most bytes of the top of a pack, and of its table: several times those of 2,000 commits.
_TOP_BYTES, _TABLE_BYTES = 1 << 20, 8 << 20
#: The most bytes of a pack in which lines are counted.
_COUNTED = 64 << 20


class PackEntry(NamedTuple):
    """The head and the parents of a commit, without its content."""

    head: CommitRef
    parents: tuple[str, ...]


class PackRow(NamedTuple):
    """A line of the table: a commit of the pack, its form, and the place of its document."""

    entry: PackEntry
    redacted: bool
    offset: int
    size: int

    @property
    def head(self) -> CommitRef:
        """Return the commit as a head."""
        return self.entry.head

    @property
    def parents(self) -> tuple[str, ...]:
        """Return the ids of its parents."""
        return self.entry.parents


@dataclass(frozen=True)
class Pack:
    """The verified top of a pack; the table and the documents are read and verified when needed."""

    path: str
    count: int
    tips: tuple[CommitRef, ...]
    after: tuple[str, ...]
    first: str  # the moments of the first and the last commit, in the form of stems
    last: str
    table_at: int
    table_size: int
    table_digest: str
    blocks_size: int

    @classmethod
    def load(cls, path: str, name: str = "") -> Pack:
        """Return the pack in a file; raise FormatError unless its top fits its name and its size fits the top.

        *name* is the future name of a file that is not in its place yet.
        """
        top, fields = _top(path)
        count, first, last, tips, after, table, digest, blocks = fields
        heads = [_TIP.fullmatch(line) for line in tips.splitlines()]
        parents = [_AFTER.fullmatch(line) for line in after.splitlines()]
        if None in heads or None in parents:
            raise FormatError("a tip or a parent of the pack is malformed", 5)
        expected = pack_name(first, _digest(top))
        if (name or path.rpartition("/")[2]) != expected:
            raise FormatError(f"the name for this content is {expected}: it was moved or changed", 1)
        if int(table) > _TABLE_BYTES:
            raise FormatError(f"a table of {int(table):,} bytes; it has at most {_TABLE_BYTES:,}")
        if disk.size(path) != len(top) + int(table) + int(blocks):
            raise FormatError(
                f"{disk.size(path)} bytes, not {len(top) + int(table) + int(blocks)}: it was truncated or extended",
                _last_line(path, len(top) + int(table) + int(blocks)),
            )
        return cls(
            path=path,
            count=int(count),
            tips=tuple(CommitRef(head[2], head[1], int(head[3])) for head in heads if head),
            after=tuple(parent[1] for parent in parents if parent),
            first=compact(first),
            last=compact(last),
            table_at=len(top),
            table_size=int(table),
            table_digest=digest,
            blocks_size=int(blocks),
        )

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return self.path.rpartition("/")[2]

    def table(self) -> bytes:
        """Return the bytes of the table; raise FormatError unless they have the digest in the top."""
        data = disk.read_part(self.path, self.table_at, self.table_size)
        if _digest(data) != self.table_digest:
            lines = enumerate(data.decode("utf-8", "replace").splitlines())
            bad_line = next((number for number, line in lines if not _ROW.fullmatch(line)), 0)
            raise FormatError(f"{EDITED}: the table is not what the top of the pack says", self.first_row + bad_line)
        return data

    def rows(self) -> dict[str, PackRow]:
        """Return the lines of the table by stem, in order; raise FormatError unless they fit the top."""
        rows, offset = {}, self.table_at + self.table_size
        for number, line in enumerate(self.table().decode().splitlines()):
            match = _ROW.fullmatch(line)
            if match is None:
                raise FormatError("not a line of the table of a pack", self.first_row + number)
            identity, moment, position, size, form, parents = match.groups()
            entry = PackEntry(CommitRef(moment, identity, int(position)), tuple(parents.split()))
            rows[stem(entry.head)] = PackRow(entry, form == "redacted", offset, int(size))
            offset += int(size)
        heads = [row.head for row in rows.values()]
        named = {parent for row in rows.values() for parent in row.parents}
        if (
            list(rows) != sorted(rows)
            or (len(heads), offset) != (self.count, self.table_at + self.table_size + self.blocks_size)
            or not (rows and next(iter(rows)).startswith(self.first) and next(reversed(rows)).startswith(self.last))
            or tuple(head for head in heads if head.id not in named) != self.tips
            or tuple(sorted(named - {head.id for head in heads})) != self.after
        ):
            raise FormatError("the top of the pack does not fit its table", 1)
        if (largest := max(row.size for row in rows.values())) > BYTES:
            raise FormatError(f"a commit of {largest:,} bytes; it has at most {BYTES:,}")
        return rows

    @property
    def first_row(self) -> int:
        """Return the number of the first line of the table in the file."""
        return 7 + len(self.tips) + len(self.after)

    def document(self, row: PackRow) -> bytes:
        """Return the document of one commit, unverified."""
        return disk.read_part(self.path, row.offset, row.size)

    def lines_before(self, row: PackRow) -> int:
        """Return the number of lines before the document of *row*; 0 far into the file."""
        return disk.read_part(self.path, 0, row.offset).count(b"\n") if row.offset <= _COUNTED else 0


def write_pack(commits: Sequence[tuple[PackEntry, bool, bytes]]) -> tuple[str, bytes]:
    """Return the name and the bytes of the pack of these commits, in order: entry, whether redacted, document."""
    name, header = _header([(entry, redacted, len(data)) for entry, redacted, data in commits])
    return name, b"".join([header, *(data for _, _, data in commits)])


def prepare_pack(path: str, name: str, data: bytes) -> None:
    """Write the pack *name* to *path*, durable and verified; on failure the file is removed."""
    prepare(path, data)
    verify_file(path, name, data)


def place_pack(folder: str, beside: str, name: str) -> None:
    """Rename a prepared pack to its name; if another writer replaced it, remove it and raise OSError."""
    path = f"{folder}/{name}"
    move(f"{folder}/{beside}", path)
    with suppress(FormatError):
        if Pack.load(path).rows():
            return
    disk.unlink(path)
    raise OSError(errno.EIO, "another process wrote at the same time: a lock file was removed", path)


def verify_file(path: str, name: str, data: bytes) -> None:
    """Remove the file and raise OSError unless *path* has exactly *data*, which is the pack *name*."""
    with suppress(FormatError):
        if disk.read_uncached(path) == data and Pack.load(path, name).rows():
            return
    disk.unlink(path)
    raise OSError(errno.EIO, "the bytes read back differ from those written", path)


def _header(commits: Sequence[tuple[PackEntry, bool, int]]) -> tuple[str, bytes]:
    """Return the name of a pack, its top and its table."""
    own_ids = {entry.head.id for entry, _, _ in commits}
    parents = {parent for entry, _, _ in commits for parent in entry.parents}
    table = "".join(_line(entry, redacted, size) for entry, redacted, size in commits).encode()
    first, last = commits[0][0].head.recorded_at, commits[-1][0].head.recorded_at
    tips = [entry.head for entry, _, _ in commits if entry.head.id not in parents]
    lines = [
        "# jidomem pack 1",
        f"# commits {len(commits)}",
        f"# first {first}",
        f"# last {last}",
        *(f"# tip {tip.id} {tip.recorded_at} {tip.position}" for tip in tips),
        *(f"# after {parent}" for parent in sorted(parents - own_ids)),
        f"# table {len(table)} {_digest(table)}",
        f"# blocks {sum(size for _, _, size in commits)}",
    ]
    top = "".join(f"{line}\n" for line in lines).encode()
    return pack_name(first, _digest(top)), top + table


def _line(entry: PackEntry, redacted: bool, size: int) -> str:
    head, form = entry.head, "redacted" if redacted else "whole"
    return " ".join(["# commit", head.id, head.recorded_at, str(head.position), str(size), form, *entry.parents]) + "\n"


def unverified_entry(data: bytes) -> PackEntry:
    """Return the entry in the description of a commit document, unverified; raise FormatError without one."""
    block = _BLOCK.search(data)
    rows = _DESCRIPTION.findall(block[2] + b" .") if block else []
    positions, moments = [int(place) for _, place, _ in rows if place], [moment for *_, moment in rows if moment]
    if block is None or len(positions) != 1 or len(moments) != 1:
        raise FormatError("no description of the commit")
    parents = tuple(parent.decode() for parent, _, _ in rows if parent)
    return PackEntry(CommitRef(moments[0].decode(), block[1].decode(), positions[0]), parents)


def verified_entry(data: bytes, graph: str) -> PackEntry | None:
    """Return the entry of a document, None unless every byte fits its id, and its graph is *graph*."""
    with suppress(FormatError):
        commit = parse(data)
        if commit.graph == graph:
            return PackEntry(commit.head, commit.parents)
    return None


def _top(path: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the top of a pack and its fields; raise FormatError where there is none."""
    size = _READ
    while True:
        data = disk.read_part(path, 0, size)
        match = _TOP.match(data.decode("ascii", "replace"))
        if match:
            return data[: match.end()], match.groups()
        if len(data) < size or not data.startswith(b"# jidomem pack 1\n# commits "):
            raise FormatError("not the top of a pack of format 1", 1)
        if size >= _TOP_BYTES:
            raise FormatError(f"the top of a pack has at most {_TOP_BYTES:,} bytes", 1)
        size *= 4


def _last_line(path: str, limit: int) -> int:
    """Return the number of the last line of a file, or of the line in which a file of *limit* bytes would end."""
    return disk.read_part(path, 0, min(disk.size(path), limit)).count(b"\n") + 1


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=32).hexdigest()


#: The number of cached tables; one of 2,000 commits takes about a megabyte.
TABLES = 8


class PackSet:
    """The packs of a folder; each is opened when a commit of its time is needed, and stays open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: frozenset[str] = frozenset()
        self._packs: dict[str, Pack] = {}
        self._tables = BoundedDict[str, dict[str, PackRow]](TABLES)
        self._lock = RLock()
        self._sorted: list[Pack] | None = None
        self._reach: list[str] = []  # the latest moment of each sorted pack and all before it
        self.broken: dict[str, FormatError] = {}
        self._marks = FileStates(path)

    def set_names(self, names: Iterable[str]) -> None:
        """Set the packs to exactly those of these names."""
        with self._lock:
            given = frozenset(names)
            if given != self._names:
                self._names, self._sorted = given, None
                for known in (self._packs, self._tables, self.broken):
                    for removed in known.keys() - given:
                        del known[removed]

    def forget_tables(self) -> None:
        """Read the top and the table of each pack again when it is next needed."""
        with self._lock:
            self._packs, self._sorted = {}, None
            self._tables.clear()

    def is_as_read(self) -> bool:
        """Return whether all broken packs are certainly unchanged."""
        return all(map(self._marks.holds, self.broken))

    def forget_broken(self) -> None:
        """Read broken packs and their tables again, except the unchanged ones."""
        with self._lock:
            before, self._sorted = self.broken, None
            self.broken = {name: error for name, error in before.items() if self._marks.holds(name)}
            changed = before.keys() - self.broken.keys()
            for pack in [pack for pack in self.listed() if pack.name in changed]:
                self._tables.pop(pack.name, None)
                with suppress(FileNotFoundError):
                    self.rows(pack)

    def listed(self) -> list[Pack]:
        """Return the readable packs, by their first moment."""
        with self._lock:
            if self._sorted is None:
                for name in self._names - self._packs.keys() - self.broken.keys():
                    self._open(name)
                self._sorted = sorted(self._packs.values(), key=lambda pack: (pack.first, pack.name))
                self._reach = list(accumulate((pack.last for pack in self._sorted), max))
            return self._sorted

    def _open(self, name: str) -> None:
        began = time_ns()
        try:
            self._packs[name] = Pack.load(f"{self._path}/{name}")
        except FileNotFoundError:
            pass  # a reader that misses its commits lists the folder again
        except (OSError, FormatError) as error:
            self._break(name, error, began)

    def _break(self, name: str, error: OSError | FormatError, began: int) -> None:
        """Record that a pack is broken; a read error gets no mark, as no state of the file shows its end."""
        self.broken[name] = _unread(error)
        if isinstance(error, OSError):
            self._marks.drop(name)
        else:
            self._marks.note(name, began)

    def rows(self, pack: Pack) -> dict[str, PackRow]:
        """Return the table of a pack, by stem; empty if it is damaged, which `broken` then has.

        Raise FileNotFoundError if the pack was removed.
        """
        with self._lock:
            if pack.name not in self._tables:
                began = time_ns()
                try:
                    rows = pack.rows()
                except FileNotFoundError:
                    raise
                except (OSError, FormatError) as error:
                    self._break(pack.name, error, began)
                    self._packs.pop(pack.name, None)
                    self._sorted = None
                    return {}
                self._tables[pack.name] = rows
            return self._tables[pack.name]

    def _covering(self, moment: str) -> Iterator[Pack]:
        """Yield the packs whose time includes a moment, the newest first."""
        packs = self.listed()
        place = bisect_right(packs, moment, key=lambda pack: pack.first)
        while place and self._reach[place - 1] >= moment:
            place -= 1
            if packs[place].last >= moment:
                yield packs[place]

    def at(self, key: str) -> list[tuple[Pack, PackRow]]:
        """Return the places of the commit of this stem, a redacted form first."""
        places = []
        for pack in list(self._covering(key.partition("-")[0])):
            with suppress(FileNotFoundError):
                if (row := self.rows(pack).get(key)) is not None:
                    places.append((pack, row))
        return sorted(places, key=lambda place: not place[1].redacted)

    def head(self, identity: str) -> CommitRef | None:
        """Return the commit *identity* as a head, None if no pack has it."""
        tips = (tip for pack in self.listed() for tip in pack.tips if tip.id == identity)
        tip = next(tips, None)
        if tip is None and (entry := self.find(identity)) is not None:
            return entry.head
        return tip

    def find(self, identity: str) -> PackEntry | None:
        """Return the entry of the commit *identity*, None if no pack has it."""
        for pack in reversed(self.listed()):
            with suppress(FileNotFoundError):
                if pack.name in self._tables or self.mentions(pack, identity):
                    for row in self.rows(pack).values():
                        if row.head.id == identity:
                            return row.entry
        return None

    def mentions(self, pack: Pack, identity: str) -> bool:
        """Return whether the table of a pack contains an id or its prefix; this costs less than parsing the table."""
        try:
            return identity.encode() in pack.table()
        except (OSError, FormatError):
            return True  # `rows` reports it

    def heads(self) -> tuple[set[CommitRef], set[str]]:
        """Return the tips without a child in any pack, and the ids of parents outside of the pack that names them."""
        packs = self.listed()
        after = {parent for pack in packs for parent in pack.after}
        tips = {tip for pack in packs for tip in pack.tips if tip.id not in after}
        inner = {tip for tip in tips for pack, _ in self.at(stem(tip)) if tip not in pack.tips}
        return tips - inner, after

    def merged(self, loose: Iterable[str], last: str) -> Iterator[str]:
        """Yield the stems after *last* of all packs and of *loose*, in order, each once.

        A table is read when its time comes. Raise FileNotFoundError if a pack was removed.
        """
        packs = [pack for pack in reversed(self.listed()) if pack.last >= last.partition("-")[0]]
        heap: list[tuple[str, int, Iterator[str]]] = []
        _push(heap, iter(sorted(key for key in loose if key > last)), 0)
        while heap or packs:
            while packs and (not heap or packs[-1].first <= heap[0][0]):
                rows = iter([key for key in self.rows(packs.pop()) if key > last])
                _push(heap, rows, -len(packs) - 1)
            if heap:
                key, number, rows = heappop(heap)
                _push(heap, rows, number)
                if key > last:
                    last = key
                    yield key


def _unread(error: OSError | FormatError) -> FormatError:
    return FormatError(f"cannot be read: {error.strerror}") if isinstance(error, OSError) else error


def _push(heap: list[tuple[str, int, Iterator[str]]], keys: Iterator[str], number: int) -> None:
    """Push an iterator onto the heap with its next key, unless it is exhausted."""
    for key in keys:
        heappush(heap, (key, number, keys))
        return
