"""Seal the closed past of a stream: many commit files go, one pack with the same commits comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import time_ns

from jidomem.journal import disk
from jidomem.journal.commit import FormatError
from jidomem.journal.folder import Folder
from jidomem.journal.names import file_name, stem, stem_of
from jidomem.journal.packs import Entry, outline, write_pack
from jidomem.journal.writing import move, prepare, writing
from jidomem.version import Version

#: The most commits of a pack, and how many bytes it may have before it takes no further one.
COMMITS = 2_000
BYTES = 32_000_000
#: How many files go in one turn: others write in between.
SLICE = 64
PAUSE = 0.005  # seconds
#: Held by whoever seals a stream, and where a pack is written before it is renamed; git ignores both.
SEAL_LOCK = ".seal.lock"
SEALING = ".sealing.lock"


@dataclass(frozen=True, slots=True)
class Batch:
    """Commit files and the pack, written and durable but not in place, that stands for them; none where one does."""

    files: tuple[str, ...]
    pack: str | None


def batches(folder: Folder, version: Version) -> Iterator[Batch]:
    """Yield what can be sealed of a folder at *version*: all before the oldest head, in the order of the stream.

    A commit that is there in two forms is left alone. Raise JournalDamaged for a file that is not what its name says.
    """
    oldest = stem(version.heads[0])
    names = sorted(name for name in folder.contents.files() if stem_of(name) < oldest)
    forms = Counter(map(stem_of, names))
    again: list[str] = []
    sealed: dict[str, tuple[Entry, bool, bytes]] = {}
    for name in names:
        with writing(folder.path):
            data = disk.read(f"{folder.path}/{name}")
        if forms[stem_of(name)] == 1 and _is_packed(folder, name, data):
            again.append(name)
        elif forms[stem_of(name)] == 1 and not folder.contents.shelf.at(stem_of(name)):
            sealed[name] = (_entry(folder, name, data), ".redacted." in name, data)
        if len(sealed) == COMMITS or sum(len(data) for _, _, data in sealed.values()) >= BYTES:
            yield _prepared(folder, sealed)
            sealed = {}
    if len(sealed) > 1:
        yield _prepared(folder, sealed)
    if again:
        yield Batch(tuple(again), None)


def put_in_place(folder: Folder, descriptor: int, batch: Batch) -> bool:
    """Put a pack beside the files it stands for, the turn in hand; return whether these can go now.

    Nothing is done where one of them is no longer what it was: gone, or redacted meanwhile.
    """
    files = folder.contents.files()
    forms = Counter(map(stem_of, files))
    if any(name not in files or forms[stem_of(name)] != 1 for name in batch.files):
        return False
    with changing(folder, descriptor, came=[batch.pack] if batch.pack else []):
        if batch.pack:
            move(f"{folder.path}/{SEALING}", f"{folder.path}/{batch.pack}")
        disk.flush(folder.path)
    return True


def take_away(folder: Folder, descriptor: int, names: Sequence[str]) -> None:
    """Remove files that a durable pack stands for, the turn in hand."""
    with changing(folder, descriptor, gone=names):
        for name in names:
            disk.unlink(f"{folder.path}/{name}")


@contextmanager
def changing(folder: Folder, descriptor: int, came: Sequence[str] = (), gone: Sequence[str] = ()) -> Iterator[None]:
    """Change which files hold the commits of a folder, and keep in the lock file what that comes to."""
    seen = folder.sight
    since = seen.since or time_ns()
    with writing(folder.path):
        disk.overwrite(descriptor, replace(seen, mtime=-1).dump())  # believed by nobody until it is true again
        yield
    sight = folder.rearranged(came, gone, seen, since)
    with suppress(OSError):
        disk.overwrite(descriptor, sight.dump())


def _prepared(folder: Folder, sealed: dict[str, tuple[Entry, bool, bytes]]) -> Batch:
    name, data = write_pack(list(sealed.values()))
    with writing(folder.path):
        prepare(f"{folder.path}/{SEALING}", data)
    return Batch(tuple(sealed), name)


def _is_packed(folder: Folder, name: str, data: bytes) -> bool:
    """Return whether a pack has the very same document: a sealing was cut short before the file was removed."""
    return any(pack.document(row) == data for pack, row in folder.contents.shelf.at(stem_of(name)))


def _entry(folder: Folder, name: str, data: bytes) -> Entry:
    """Return what the document in a file says of itself; raise JournalDamaged where the name says something else."""
    try:
        entry = outline(data)
    except FormatError as error:
        raise folder.contents.damaged(name, str(error), line=error.line) from error
    if file_name(entry.head, redacted=".redacted." in name) != name:
        raise folder.contents.damaged(name, f"holds a commit to be named {file_name(entry.head)}: it was moved")
    return entry
