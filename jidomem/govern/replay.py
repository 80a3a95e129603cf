"""Replay a journal into an index of its own, and hold what is served and kept against that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from io import RawIOBase
from pathlib import Path
from typing import Any

from jidomem.exchange import export
from jidomem.index.clones import STORE_ERRORS, Clones
from jidomem.index.filling import Filling
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.tail import Tail
from jidomem.journal.files import FileJournal, Stream
from jidomem.terms import Triple

#: Lines are told apart by so many digests; where one differs, only its lines are compared.
_BUCKETS = 256
_WHOLE = 1 << 128


@dataclass(frozen=True, slots=True)
class Held:
    """What a graph holds: how many triples, and a digest of them that does not depend on their order."""

    triples: int
    digest: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay: what each stream holds, the digest of each project's export, and what differs."""

    streams: dict[Stream, Held]
    exports: dict[str, str]
    snapshots: int
    differences: tuple[str, ...]


class _Print(RawIOBase):
    """A file that keeps digests of the lines written to it, or the lines of one bucket."""

    def __init__(self, bucket: int | None = None) -> None:
        self.buckets = [0] * _BUCKETS
        self.count = 0
        self.lines: set[bytes] = set()
        self._only = bucket
        self._rest = b""

    def write(self, data: Any) -> int:
        """Take in some bytes, which may end within a line."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            digest = blake2b(line, digest_size=16).digest()
            if self._only is None:
                self.buckets[digest[0]] = (self.buckets[digest[0]] + int.from_bytes(digest, "big")) % _WHOLE
            elif self._only == digest[0]:
                self.lines.add(line)
        self.count += len(lines)
        return len(data)

    @property
    def held(self) -> Held:
        """Return what was written, as a digest."""
        whole = b"".join(number.to_bytes(16, "big") for number in self.buckets)
        return Held(self.count, blake2b(whole, digest_size=32).hexdigest())


def replay(tail: Tail, index: Path, ontology: Iterable[Triple], ontology_version: str) -> Replayed:
    """Return what differs between the journal, replayed, and what *tail* serves, exports and keeps in *index*.

    Nothing is changed, but for a snapshot that cannot be read, which is thrown away as ever.
    """
    root, rules = tail.journal.folder, tuple(ontology)
    streams = tail.journal.streams()
    differences: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        fresh = Tail(FileJournal(root), OxigraphIndex(), Clones(Path(folder)), rules)
        found = {}
        for stream in streams:
            served, replayed = tail.catch_up(stream), fresh.catch_up(stream)
            if served != replayed:
                differences.append(f"{_name(stream)}: version {served} is served, the journal is at {replayed}")
            found[stream] = _print(fresh.index, stream.graph).held
            differences += _compared(_name(stream), tail.index, fresh.index, stream.graph)
        exports = {}
        for project in sorted({stream.project for stream in streams if stream.name == "memory"}):
            exports[project] = _exported(fresh, project, ontology_version)
            if _exported(tail, project, ontology_version) != exports[project]:
                differences.append(f"{project}: the export is not that of the journal, replayed")
        count = 0
        for name, kept in _snapshots(root, index, rules):
            count += 1
            for stream in streams:
                if stream.graph in kept.marks:
                    differences += _compared(f"snapshot {name}: {_name(stream)}", kept, fresh.index, stream.graph)
        fresh.close()
    return Replayed(found, exports, count, tuple(differences))


def _snapshots(root: Path, index: Path, ontology: Iterable[Triple]) -> Iterator[tuple[str, OxigraphIndex]]:
    """Yield the name of each snapshot that fits the journal, and a clone of it brought level."""
    journal = FileJournal(root)
    streams, filling = {stream.graph: stream for stream in journal.streams()}, Filling(journal)
    if not (index / "snapshots").is_dir():
        return
    for live in Clones(index).each():
        try:
            kept = OxigraphIndex(live.store)
            fits = filling.fits(kept, streams)
            if fits and filling.fill(kept, ontology, [streams[graph] for graph in kept.marks]) and live.of is not None:
                yield live.of.name, kept
        except STORE_ERRORS as error:
            raise OSError(f"{live.of}: {error}") from error
        finally:
            live.store = None
            live.close()


def _exported(tail: Tail, project: str, ontology_version: str) -> str:
    data = export.turtle(project, tail.journal.read(Stream(project)), ontology_version)
    return blake2b(data, digest_size=32).hexdigest()


def _compared(name: str, held: OxigraphIndex, fresh: OxigraphIndex, graph: str) -> Iterator[str]:
    """Yield how *held* differs from *fresh*, naming the first triple by which it does."""
    left, right = _print(held, graph), _print(fresh, graph)
    differing = (n for n, pair in enumerate(zip(left.buckets, right.buckets, strict=True)) if pair[0] != pair[1])
    bucket = next(differing, None)
    if bucket is not None:
        mine, its = _print(held, graph, bucket).lines, _print(fresh, graph, bucket).lines
        line = min(mine ^ its)
        word = "is there and should not be" if line in mine else "is missing"
        counts = f"{left.count} triples instead of {right.count}"
        yield f"{name}: {counts}; the first that differs {word}: {line.decode():.500}"


def _print(index: OxigraphIndex, graph: str, bucket: int | None = None) -> _Print:
    """Return the digests of a graph, or the lines of one bucket of them."""
    found = _Print(bucket)
    index.dump(graph, found)
    return found


def _name(stream: Stream) -> str:
    return f"{stream.project}/{stream.name}"
