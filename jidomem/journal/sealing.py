"""Seal the closed past of a stream: many commit files go, one pack with the same commits comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import time_ns

from jidomem.journal import disk
from jidomem.journal.commit import Commit
from jidomem.journal.folder import Folder
from jidomem.journal.names import is_pack, stem, stem_of
from jidomem.journal.packs import Entry, place_pack, prepare_pack, write_pack
from jidomem.journal.sight import NOTHING
from jidomem.journal.writing import move, writing
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

    Each file is read now, whatever was known of it. One that is not sound stays where it is, damage of the folder from
    then on, and so does a commit that is there in two forms.
    """
    oldest = stem(version.heads[0]) if version.heads else ""
    names = sorted(name for name in folder.contents.files() if stem_of(name) < oldest)
    forms = Counter(map(stem_of, names))
    again: list[str] = []
    sealed: dict[str, tuple[Entry, bool, bytes]] = {}
    size = 0
    for name in names:
        commit = folder.commit_in(name) if forms[stem_of(name)] == 1 else None
        if commit is None:
            continue
        if _is_packed(folder, commit):
            again.append(name)
        elif not folder.contents.shelf.at(stem_of(name)):
            sealed[name] = (Entry(commit.head, commit.parents), commit.redacted, commit.data)
            size += len(commit.data)
        if len(sealed) == COMMITS or size >= BYTES:
            yield _prepared(folder, sealed)
            sealed, size = {}, 0
    if len(sealed) > 1:
        yield _prepared(folder, sealed)
    if again:
        yield Batch(tuple(again), None)


def put_in_place(folder: Folder, descriptor: int, batch: Batch) -> bool:
    """Put a pack beside the files it stands for, the turn in hand; return whether these can go now.

    Nothing is done where one of them is no longer what it was: gone, or redacted meanwhile.
    """
    folder.look(holding=True)
    forms = {name: (f"{stem_of(name)}.ttl", f"{stem_of(name)}.redacted.ttl") for name in batch.files}
    if any([form for form in forms[name] if disk.exists(f"{folder.path}/{form}")] != [name] for name in forms):
        return False
    settle(folder, descriptor, SEALING, batch.pack)
    return True


def settle(folder: Folder, descriptor: int, beside: str, name: str | None) -> None:
    """Put a file that was prepared *beside* in its place, if any, and make all names durable, the turn in hand."""
    with changing(folder, descriptor, came=[name] if name else []):
        if name and is_pack(name):
            place_pack(folder.path, beside, name)
        elif name:
            move(f"{folder.path}/{beside}", f"{folder.path}/{name}")
        disk.flush(folder.path)


def take_away(folder: Folder, descriptor: int, names: Sequence[str]) -> None:
    """Remove files for which what is durable stands, the turn in hand."""
    folder.look(holding=True)
    with changing(folder, descriptor, gone=names):
        for name in names:
            disk.unlink(f"{folder.path}/{name}")


@contextmanager
def changing(folder: Folder, descriptor: int, came: Sequence[str] = (), gone: Sequence[str] = ()) -> Iterator[None]:
    """Change which files hold the commits of a folder, and keep in the lock file what that comes to.

    Of a damaged folder nothing is kept: its version is not what the names of its files stand for once it is healed.
    """
    seen, kept = folder.sight, folder.doubted()
    since = seen.since or time_ns()
    with writing(folder.path):
        disk.overwrite(descriptor, kept.dump())  # believed by nobody until it is true again
        yield
    sight = folder.rearranged(came, gone, seen, since)
    with suppress(OSError):
        disk.overwrite(descriptor, (sight if kept is not NOTHING else NOTHING).dump())


def _prepared(folder: Folder, sealed: dict[str, tuple[Entry, bool, bytes]]) -> Batch:
    name, data = write_pack(list(sealed.values()))
    with writing(folder.path):
        prepare_pack(f"{folder.path}/{SEALING}", name, data)
    return Batch(tuple(sealed), name)


def _is_packed(folder: Folder, commit: Commit) -> bool:
    """Return whether a pack has the very same document: a sealing was cut short before the file was removed."""
    return any(pack.document(row) == commit.data for pack, row in folder.contents.shelf.at(stem(commit.head)))
