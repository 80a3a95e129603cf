"""The packs of one folder: which there are, where in them a commit is, and what of them is at the tip."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from itertools import accumulate
from threading import RLock
from time import time_ns

from jidomem.journal.commit import FormatError
from jidomem.journal.names import stem
from jidomem.journal.packs import Entry, Pack, Row
from jidomem.journal.sight import Marks
from jidomem.version import Head

#: Tables kept; one of 2,000 commits takes about a megabyte.
TABLES = 8


class Shelf:
    """The packs a folder was seen to hold; each is opened when something of its time is asked for, and kept open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: frozenset[str] = frozenset()
        self._packs: dict[str, Pack] = {}
        self._tables: dict[str, dict[str, Row]] = {}
        self._lock = RLock()
        self._sorted: list[Pack] | None = None
        self._reach: list[str] = []  # the latest moment in a pack and all before it
        self.broken: dict[str, FormatError] = {}
        self._marks = Marks(path)

    def hold(self, names: Iterable[str]) -> None:
        """Hold exactly the packs of these names."""
        with self._lock:
            found = frozenset(names)
            if found != self._names:
                self._names, self._sorted = found, None
                for known in (self._packs, self._tables, self.broken):
                    for gone in known.keys() - found:
                        del known[gone]

    def is_as_read(self) -> bool:
        """Return whether every pack that could not be read is certain to be as it was then."""
        return all(map(self._marks.holds, self.broken))

    def forget_broken(self) -> None:
        """Try the packs that could not be read once more, their tables too, but for those that are as they were."""
        with self._lock:
            before, self._sorted = self.broken, None
            self.broken = {name: error for name, error in before.items() if self._marks.holds(name)}
            doubted = before.keys() - self.broken.keys()
            for pack in [pack for pack in self.packs() if pack.name in doubted]:
                self._tables.pop(pack.name, None)
                with suppress(FileNotFoundError):
                    self.rows(pack)

    def packs(self) -> list[Pack]:
        """Return the packs that can be read, by the time they begin."""
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
            pass  # whoever misses what was in it lists the folder again
        except (OSError, FormatError) as error:
            self._break(name, error, began)

    def _break(self, name: str, error: OSError | FormatError, began: int) -> None:
        """Note that a pack is broken; that it can be read again shows in no state of the file."""
        self.broken[name] = _unread(error)
        if isinstance(error, OSError):
            self._marks.drop(name)
        else:
            self._marks.note(name, began)

    def rows(self, pack: Pack) -> dict[str, Row]:
        """Return the table of a pack, by stem; empty where it is damaged, which `broken` then tells.

        Raise FileNotFoundError where the pack has gone.
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
                while len(self._tables) >= TABLES:
                    del self._tables[next(iter(self._tables))]
                self._tables[pack.name] = rows
            return self._tables[pack.name]

    def _covering(self, moment: str) -> Iterator[Pack]:
        """Yield the packs in whose time a moment is, the newest first."""
        packs = self.packs()
        place = bisect_right(packs, moment, key=lambda pack: pack.first)
        while place and self._reach[place - 1] >= moment:
            place -= 1
            if packs[place].last >= moment:
                yield packs[place]

    def at(self, key: str) -> list[tuple[Pack, Row]]:
        """Return where the commit of this stem is, a redacted form first."""
        found = []
        for pack in list(self._covering(key.partition("-")[0])):
            with suppress(FileNotFoundError):
                if (row := self.rows(pack).get(key)) is not None:
                    found.append((pack, row))
        return sorted(found, key=lambda place: not place[1].redacted)

    def head(self, identity: str) -> Head | None:
        """Return the commit *identity* as a head, None where no pack has it."""
        tips = (tip for pack in self.packs() for tip in pack.tips if tip.id == identity)
        tip = next(tips, None)
        if tip is None and (entry := self.find(identity)) is not None:
            return entry.head
        return tip

    def find(self, identity: str) -> Entry | None:
        """Return what is known of the commit *identity*, None where no pack has it."""
        for pack in reversed(self.packs()):
            with suppress(FileNotFoundError):
                if pack.name in self._tables or self.mentions(pack, identity):
                    for row in self.rows(pack).values():
                        if row.head.id == identity:
                            return row.entry
        return None

    def mentions(self, pack: Pack, identity: str) -> bool:
        """Return whether an id, or its beginning, stands in the table of a pack: that costs less than reading it."""
        try:
            return identity.encode() in pack.table()
        except (OSError, FormatError):
            return True  # `rows` tells

    def heads(self) -> tuple[set[Head], set[str]]:
        """Return the tips that no pack goes on from, and the ids that packs name as parents outside themselves."""
        packs = self.packs()
        after = {parent for pack in packs for parent in pack.after}
        tips = {tip for pack in packs for tip in pack.tips if tip.id not in after}
        inner = {tip for tip in tips for pack, _ in self.at(stem(tip)) if tip not in pack.tips}
        return tips - inner, after

    def merged(self, loose: Iterable[str], last: str) -> Iterator[str]:
        """Yield the stems after *last* of all packs and of *loose*, in order, each once.

        A table is read when its time comes. Raise FileNotFoundError where a pack has gone.
        """
        packs = [pack for pack in reversed(self.packs()) if pack.last >= last.partition("-")[0]]
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
    """Put an iterator back by what it gives next, unless it is at its end."""
    for key in keys:
        heappush(heap, (key, number, keys))
        return
