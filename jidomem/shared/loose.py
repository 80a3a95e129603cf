"""The files of a copy and of the newest snapshot of its index, linked into a folder where nobody changes them."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from jidomem.errors import NotFound
from jidomem.index.clones import Clones, Snapshot
from jidomem.journal import disk
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.folder import LOCK
from jidomem.journal.names import each_file, file_name, is_pack
from jidomem.journal.packs import Entry, prove, verified, write_pack
from jidomem.journal.redaction import is_order
from jidomem.shared import copies
from jidomem.shared.copies import Kept, path_of


@contextmanager
def gathered(home: Path, clones: Clones) -> Iterator[tuple[Path, Mapping[Stream, Kept]]]:
    """Give a folder with what *home* holds of each stream, one pack of its loose files, and the newest snapshot.

    Also how far each stream reaches in it: of none where there is no snapshot, or it has a stream that is not here.
    """
    folder = home / f"gathered-{token_hex(4)}"
    try:
        yield folder, _gather(home, clones, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _gather(home: Path, clones: Clones, folder: Path) -> Mapping[Stream, Kept]:
    snapshots = clones.snapshots()
    if not snapshots:
        return {}
    snapshot = snapshots[0]
    for name in ("snapshot.json", *(f"store/{file}" for file in snapshot.files)):
        _link(snapshot.path / name, folder / "index" / "snapshots" / snapshot.path.name / name)
    found = {}
    for path in sorted((home / "reach").glob("*.json")):
        stream = Stream(*path.stem.split("."))
        if (kept := _stream(home, stream, folder)) is not None:
            found[stream] = kept
    return found if _is_of(snapshot, folder, {stream.graph: stream for stream in found}) else {}


def _is_of(snapshot: Snapshot, folder: Path, streams: Mapping[str, Stream]) -> bool:
    """Return whether a snapshot is of the streams in *folder*, and nothing was redacted after it: it shows that yet."""
    journal = FileJournal(folder)
    try:
        return not any(
            is_order(commit.data)
            for graph, mark in snapshot.marks.items()
            for commit in journal.read(streams[graph], after=mark.version)
        )
    except (KeyError, NotFound):
        return False


def _stream(home: Path, stream: Stream, folder: Path) -> Kept | None:
    """Return how far what was linked of a stream reaches; None where that is not known.

    So it is where a redaction is under way, or a loose file is not sound: no checkpoint takes that to others.
    """
    source, target = (
        home / "projects" / stream.project / stream.name,
        folder / "projects" / stream.project / stream.name,
    )
    with _locked(source):
        kept = copies.load(path_of(str(home), stream))
        names = sorted(each_file(str(source)))
        for name in filter(is_pack, names):
            _link(source / name, target / name)
        loose = [(name, (source / name).read_bytes()) for name in names if not is_pack(name)]
    if kept is None or kept.orders or not _packed(target, stream.graph, loose):
        return None
    return kept


def _packed(target: Path, graph: str, loose: Sequence[tuple[str, bytes]]) -> bool:
    """Return whether commit files are sound, each as its name and document; then one pack of them is in *target*."""
    sealed = list[tuple[Entry, bool, bytes]]()
    for name, data in loose:
        entry, redacted = verified(data, graph), ".redacted." in name
        if entry is None or file_name(entry.head, redacted=redacted) != name:
            return False
        sealed.append((entry, redacted, data))
    if sealed:
        name, data = write_pack(sealed)
        target.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
        prove(str(target / name), name, data)
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock under which the copy of a stream is changed."""
    descriptor = disk.open_shared(str(folder / LOCK))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        disk.close(descriptor)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target)
