"""A shared log in this process alone, to test what stands on one, and the suite that holds all others to the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Condition

from jidomem.errors import NotFound
from jidomem.journal.files import Stream
from jidomem.shared.log import Entry, File, Reach, check_file


@dataclass
class Place:
    """What is kept, and who is told when that changes; every log opened on it has the same."""

    streams: dict[Stream, list[Entry]] = field(default_factory=dict)
    rewrites: dict[Stream, int] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    tags: Iterator[int] = field(default_factory=count)
    changed: Condition = field(default_factory=Condition)


class MemoryLog:
    """A log on one place; `asked` counts what it was asked, by name."""

    name = "memory:"

    def __init__(self, place: Place) -> None:
        self.place = place
        self.asked: dict[str, int] = {}

    def _count(self, what: str) -> None:
        self.asked[what] = self.asked.get(what, 0) + 1

    def streams(self) -> list[Stream]:
        self._count("streams")
        return sorted(self.place.streams)

    def reach(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        self._count("reach")
        return {stream: self._reach(stream) for stream in streams}

    def _reach(self, stream: Stream) -> Reach:
        return Reach(len(self.place.streams.get(stream, ())), self.place.rewrites.get(stream, 0))

    def read(self, stream: Stream, after: int = 0) -> Iterator[Entry]:
        self._count("read")
        return iter(self.place.streams.get(stream, [])[after:])

    def append(self, stream: Stream, number: int, commit: str, document: bytes) -> bool:
        self._count("append")
        with self.place.changed:
            entries = self.place.streams.get(stream, [])
            if not 0 < number <= len(entries) + 1:
                raise ValueError(f"{number} is not the next number of {stream}, nor one before")
            if number <= len(entries):
                return entries[number - 1].commit == commit
            self.place.streams[stream] = [*entries, Entry(number, commit, document)]
            self.place.changed.notify_all()
            return True

    def rewrite(self, stream: Stream, documents: Mapping[str, bytes]) -> None:
        self._count("rewrite")
        with self.place.changed:
            entries = self.place.streams.get(stream, [])
            if missing := documents.keys() - {entry.commit for entry in entries}:
                raise NotFound(f"{stream} has no commit {', '.join(sorted(missing))}")
            changed = [replace(entry, document=documents.get(entry.commit, entry.document)) for entry in entries]
            self.place.streams[stream] = changed
            self.place.rewrites[stream] = self.place.rewrites.get(stream, 0) + 1
            self.place.changed.notify_all()

    def wait(self, stream: Stream, known: Reach, seconds: float) -> Reach:
        with self.place.changed:
            self.place.changed.wait_for(lambda: self._reach(stream) != known, seconds)
            return self._reach(stream)

    def get(self, name: str) -> File | None:
        self._count("get")
        check_file(name)
        return self.place.files.get(name)

    def put(self, name: str, data: bytes, expected: str | None = None, *, force: bool = False) -> str | None:
        self._count("put")
        check_file(name, data)
        with self.place.changed:
            there = self.place.files.get(name)
            if not force and (there.tag if there else None) != expected:
                return None
            self.place.files[name] = File(data, str(next(self.place.tags)))
            return self.place.files[name].tag

    def names(self, prefix: str = "") -> list[str]:
        self._count("names")
        return sorted(name for name in self.place.files if name.startswith(prefix))

    def remove(self, names: list[str]) -> None:
        for name in names:
            self.place.files.pop(name, None)

    def close(self) -> None:
        pass


class BlindLog(MemoryLog):
    """A log that takes every append as it comes, on whatever it was built: what a shared log must never do."""

    def append(self, stream: Stream, number: int, commit: str, document: bytes) -> bool:
        entries = self.place.streams.get(stream, [])
        self.place.streams[stream] = [*entries, Entry(len(entries) + 1, commit, document)]
        return True
