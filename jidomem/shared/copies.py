"""The copy of a stream in a folder of this machine: what it holds of its log, and how more of that is put there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from os.path import dirname

from jidomem.decoding import decode_json
from jidomem.errors import Failed
from jidomem.journal import disk
from jidomem.journal.commit import FormatError, advance
from jidomem.journal.files import Stream
from jidomem.journal.folder import Folder
from jidomem.journal.names import file_name
from jidomem.journal.packs import Entry as Outline
from jidomem.journal.packs import outline, prove, verified, write_pack
from jidomem.journal.redaction import is_order, is_redacted
from jidomem.journal.writing import INCOMING, make_folders
from jidomem.shared.log import Entry, Reach
from jidomem.version import SHORT, Head, Version

#: How many entries are put in place at once; so many make one pack.
CHUNK = 2_000
#: What a document that does not say what it is has for a moment in its name.
_NO_MOMENT = "00000000T000000.000000Z"


@dataclass(frozen=True, slots=True)
class Kept:
    """How far a copy reaches in its log, the id of the last commit in it and the version that it comes to.

    *orders* are the commits in it that order a redaction of which nobody here has seen that it was carried out. It is
    of one *life* of the log.
    """

    reach: Reach
    last: str = ""
    version: Version = Version()
    orders: tuple[str, ...] = ()
    life: str = ""

    def is_level(self, reach: Reach, life: str) -> bool:
        """Return whether a log of that *life* reaches as far, and ends with the same commit where it tells that.

        One that lost its end, as a replica has it that was behind, may be as long again with another.
        """
        return (self.reach, self.life) == (reach, life) and reach.last in ("", self.last)

    def is_behind(self, reach: Reach, life: str) -> bool:
        """Return whether a log of that *life* reaches farther, and nothing was rewritten since."""
        return (self.reach.rewrites, self.life) == (reach.rewrites, life) and self.reach.length < reach.length


class Foreign(Exception):
    """What a log says next does not go on from the copy: that is of another log, or of an earlier life of this one."""


def path_of(home: str, stream: Stream) -> str:
    """Return where it is kept how far the copy of a stream in *home* reaches: beside what it is about."""
    return f"{home}/reach/{stream.project}.{stream.name}.json"


def load(path: str) -> Kept | None:
    """Return how far a copy reaches; None where that is not known, so that the copy is believed by nobody."""
    try:
        said = decode_json(disk.read(path))
        heads = Version.of(Head(*head) for head in said["heads"])
        reach = Reach(said["length"], said["rewrites"])
        return Kept(reach, said["last"], heads, tuple(said["orders"]), said["life"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(path: str, kept: Kept) -> None:
    """Keep how far a copy reaches, in one step; raise OSError. A power failure may lose it, and with it the copy."""
    heads = [(head.recorded_at, head.id, head.position) for head in kept.version.heads]
    reach = {"length": kept.reach.length, "rewrites": kept.reach.rewrites}
    said = {**reach, "last": kept.last, "heads": heads, "orders": kept.orders, "life": kept.life}
    make_folders(dirname(path))
    _write(f"{path}.new", json.dumps(said).encode())
    disk.rename(f"{path}.new", path)


def lay(folder: str, name: str, data: bytes) -> None:
    """Put a file into a folder in one step, not durable: it is a copy. Raise OSError."""
    _write(f"{folder}/{INCOMING}", data)
    disk.rename(f"{folder}/{INCOMING}", f"{folder}/{name}")


def empty(folder: Folder, descriptor: int, path: str) -> None:
    """Throw a copy away, the lock of its folder in hand; nobody believes it from the first moment on."""
    with suppress(FileNotFoundError):
        disk.unlink(path)
    with _sharing(folder, descriptor):
        for name in [name for name in disk.names(folder.path) if name.endswith(".ttl")]:
            with suppress(FileNotFoundError):
                disk.unlink(f"{folder.path}/{name}")
        folder.forget()


def fill(folder: Folder, descriptor: int, path: str, kept: Kept, entries: Iterable[Entry], *, doubted: bool) -> Kept:
    """Put *entries* on top of what is *kept*, the lock of the folder in hand, and return how far the copy reaches then.

    What is put in place is kept chunk by chunk. Raise Foreign where an entry goes on from a commit that is not here,
    unless it was *doubted* before: then it is the log that lacks it.
    """
    coming = iter(entries)
    while chunk := list(islice(coming, CHUNK)):
        outlines = [_outline(entry) for entry in chunk]
        known = {found.head.id for found in outlines if found is not None} | set(kept.version.ids)
        for found in outlines:
            if found is not None and not doubted and not _follows(folder, found, known):
                raise Foreign
        with _sharing(folder, descriptor):
            _put(folder, chunk, outlines)
        version = advance(kept.version, [found for found in outlines if found is not None])
        orders = (*kept.orders, *(entry.commit for entry in chunk if is_order(entry.document)))
        reach = replace(kept.reach, length=chunk[-1].number)
        kept = Kept(reach, chunk[-1].commit, version, orders, kept.life)
        save(path, kept)
    return kept


def outlined(entry: Entry) -> Head | None:
    """Return what an entry is called, None where its document does not say it is that commit."""
    found = _outline(entry)
    return found.head if found is not None else None


def _outline(entry: Entry) -> Outline | None:
    try:
        found = outline(entry.document)
    except FormatError:
        return None
    return found if found.head.id == entry.commit else None


def _follows(folder: Folder, found: Outline, known: set[str]) -> bool:
    """Return whether the parents of a commit are among those *known*, or in the folder."""
    return all(parent in known or folder.contents.head(parent) is not None for parent in found.parents)


def _put(folder: Folder, chunk: Sequence[Entry], outlines: Sequence[Outline | None]) -> None:
    """Put the files of a chunk in place: a pack of what is sound in a whole one, else one for each commit."""
    documents = [
        (found, is_redacted(entry.document), entry.document) for found, entry in zip(outlines, chunk, strict=True)
    ]
    told = sorted(
        ((found, redacted, data) for found, redacted, data in documents if found), key=lambda one: one[0].head
    )
    for entry, found in zip(chunk, outlines, strict=True):
        if found is None:
            lay(folder.path, f"{_NO_MOMENT}-{entry.commit[:SHORT]}.ttl", entry.document)
    is_whole = len(chunk) == CHUNK
    sound = {one[0].head.id: one for one in told if is_whole and one[0] == verified(one[2], folder.graph)}
    if sound:
        name, data = write_pack(list(sound.values()))
        _write(f"{folder.path}/{INCOMING}", data)
        prove(f"{folder.path}/{INCOMING}", name, data)
        disk.rename(f"{folder.path}/{INCOMING}", f"{folder.path}/{name}")
    for found, redacted, data in told:
        if found.head.id not in sound:
            lay(folder.path, file_name(found.head, redacted=redacted), data)


@contextmanager
def _sharing(folder: Folder, descriptor: int) -> Iterator[None]:
    """Change what is in a folder, its lock in hand, and keep in the lock file what is there then."""
    disk.overwrite(descriptor, replace(folder.sight, mtime=-1).dump())  # believed by nobody until it is true again
    yield
    folder.look()
    disk.overwrite(descriptor, folder.sight.dump())


@contextmanager
def copying(home: str, name: str) -> Iterator[None]:
    """Turn an error of the operating system into Failed: nothing is lost but the copy of the log *name* here."""
    try:
        yield
    except OSError as error:
        raise Failed(
            f"{error.filename or home}: the copy of {name} on this machine could not be written: {error.strerror}",
            hint=f"free some space there, or keep it elsewhere: export JIDOMEM_HOME=FOLDER (it is in {home} now)",
            code="write_failed",
        ) from error


def _write(path: str, data: bytes) -> None:
    descriptor = disk.create(path)
    try:
        disk.write(descriptor, data)
    finally:
        disk.close(descriptor)
