"""Snapshots of an on-disk index, and the private clone of one on which each process works.

    index/here                          the marker that tells snapshots made here from copied ones
    index/snapshots/<made>-<random>/    snapshot.json and store/, never changed; the newest two stay
    index/live/<random>/                store/ of one process, which holds the lock of index/live/<random>.lock

Only one process can open a store on disk, so none is shared: a clone links the large files of its snapshot.
"""

from __future__ import annotations

import json
import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from sys import getrefcount
from time import monotonic, sleep, time_ns
from typing import Any, NamedTuple

import pyoxigraph as ox

from jidomem.base.disk import (
    acquire_lock,
    create_file,
    create_local_marker,
    flush,
    inherit_at,
    local_marker,
    make_folder,
    make_folders,
)
from jidomem.base.files import write_file
from jidomem.base.json_values import decode_json
from jidomem.errors import Failed
from jidomem.index.cache_file import delete_folder
from jidomem.index.store import OxigraphIndex, Watermark

_TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD of glibc's malloc.h
CACHED_BYTES = 1_000_000


def limit_malloc_cache() -> None:
    """Let glibc return free memory above CACHED_BYTES: by default its threshold grows to 64 MB a thread."""
    import ctypes  # only a process with an index on disk has much to free

    library: Any = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_TRIM_THRESHOLD, CACHED_BYTES)


#: The version of the content and of the file format: a snapshot of another version is not read.
FORM = f"4 pyoxigraph {ox.__version__}"
MAX_SNAPSHOTS = 2
_MAX_DESCRIPTION_BYTES = 16 * 1024 * 1024
#: Seconds that a read of a retired store may take, and between two looks whether it has ended.
_LONGEST_READ, _PAUSE = 30.0, 0.01
#: The errors of a store whose files are damaged, or cannot be read or written.
STORE_ERRORS = (OSError, RuntimeError, ValueError)


class Snapshot(NamedTuple):
    """A snapshot on disk: the size of each file of its store, and the watermark of each graph."""

    path: Path
    files: Mapping[str, int]
    marks: Mapping[str, Watermark]

    @property
    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(self.files.values())


class PrivateClone:
    """The on-disk store of this process: `store`, in the folder `path`; a lock shows that it is in use."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.snapshot: Path | None = None  # the cloned snapshot
        self.store: Any = None
        self.close = weakref.finalize(self, _discard, path, lock)
        self.close.atexit = False  # removing the folder of an open store takes a second: the next process does it

    def retire(self) -> None:
        """Close the clone once no thread reads its store, which none begins to read now.

        A store whose folder is gone takes most of a second to close, and stops all threads meanwhile.
        """
        store, self.store = self.store, None
        end = monotonic() + _LONGEST_READ
        while getrefcount(store) > 2 and monotonic() < end:  # a thread that reads has a reference, beside these two
            sleep(_PAUSE)
        del store
        self.close()


class Clones:
    """The snapshots and clones below one folder, which is made on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._snapshots = folder / "snapshots"
        self._live = folder / "live"

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of this program version that were made here, newest first."""
        try:
            names = sorted(os.listdir(self._snapshots), reverse=True)
        except OSError:
            return []
        marker = local_marker(self._folder)
        return [
            snapshot for name in names if (snapshot := _read_description(self._snapshots / name, marker)) is not None
        ]

    def new_empty(self) -> PrivateClone | None:
        """Return an empty store on disk; None if files cannot be written, locked or linked."""
        try:
            live = self._make_clone_folder()
            live.store = _open_store(live.path / "store")
        except STORE_ERRORS:
            return None
        return live

    def clone_snapshots(self) -> Iterator[PrivateClone]:
        """Yield a clone of each snapshot, newest first; a snapshot with damaged files is deleted."""
        for snapshot in self.snapshots():
            try:
                live = self._make_clone_folder()
            except OSError:
                return
            try:
                _link(snapshot, live.path / "store")
                live.store, live.snapshot = _open_store(live.path / "store"), snapshot.path
            except (FileNotFoundError, RuntimeError, ValueError):
                live.close()
                shutil.rmtree(snapshot.path, ignore_errors=True)
            except OSError:  # a fault of the disk, not of the snapshot
                live.close()
            else:
                yield live

    def publish(self, index: OxigraphIndex, live: PrivateClone) -> None:
        """Publish the content of *index*, whose store is that of *live*, as newest snapshot: durable, atomic."""
        draft = live.path / os.urandom(4).hex()
        make_folder(draft)
        marks = index.backup(str(draft / "store"))
        files = {path.name: path.stat().st_size for path in sorted((draft / "store").iterdir())}
        marker = create_local_marker(self._folder)
        described = {"form": FORM, "here": marker, "files": files, "marks": {g: mark.term for g, mark in marks.items()}}
        write_file(draft / "snapshot.json", json.dumps(described, indent=1).encode())
        for path in (draft / "store", *(draft / "store" / name for name in files)):
            inherit_at(path)  # Oxigraph made it with its own mode; a file that is not writable cannot be linked either
        for path in (*(draft / "store" / name for name in files), draft / "snapshot.json", draft / "store", draft):
            flush(str(path))
        make_folder(self._snapshots)
        draft.rename(self._snapshots / f"{time_ns():020d}-{draft.name}")
        flush(str(self._snapshots))
        newest = {snapshot.path.name for snapshot in self.snapshots()[:MAX_SNAPSHOTS]}
        for old in set(os.listdir(self._snapshots)) - newest:
            shutil.rmtree(self._snapshots / old, ignore_errors=True)

    def in_use(self) -> int:
        """Return the number of clones in use, by this process or others."""
        with suppress(OSError):
            locks = [_acquire_free(self._live / name) for name in os.listdir(self._live) if name.endswith(".lock")]
            for lock in filter(None, locks):
                os.close(lock)
            return locks.count(None)
        return 0

    def discard_snapshots(self) -> Failed | None:
        """Delete all snapshots, also unreadable ones, and the clones of ended processes.

        Returns the fault of a snapshot that cannot be deleted.
        """
        self.discard_ended()
        try:
            delete_folder(self._snapshots)
        except Failed as fault:
            return fault
        return None

    def discard_ended(self) -> None:
        """Delete the clones of ended processes."""
        with suppress(OSError):
            self._sweep()

    def _make_clone_folder(self) -> PrivateClone:
        """Make the folder of a new clone, and lock it; raises OSError if that is impossible."""
        make_folders(self._live)
        self._sweep()
        while True:
            path = self._live / os.urandom(8).hex()
            lock = create_file(f"{path}.lock", os.O_RDWR)
            live = PrivateClone(path, lock)
            try:
                if not acquire_lock(lock, wait=False):  # a sweeping process took the file for an abandoned one
                    live.close()
                    continue
                os.link(f"{path}.lock", f"{path}.link.lock")
                os.unlink(f"{path}.link.lock")
                make_folder(path)
                return live
            except FileNotFoundError:  # a sweeping process removed the file
                live.close()
            except OSError:
                live.close()
                raise

    def _sweep(self) -> None:
        """Delete the folders of processes that ended without cleaning up."""
        for name in os.listdir(self._live):
            if name.endswith(".lock"):
                with suppress(OSError):
                    if lock := _acquire_free(self._live / name):
                        _discard(self._live / name.removesuffix(".lock"), lock)
            elif not os.path.exists(self._live / f"{name}.lock"):  # its store wrote files while it was deleted
                shutil.rmtree(self._live / name, ignore_errors=True)


def _discard(path: Path, lock: int) -> None:
    """Delete the folder of a clone, then its lock file: so a folder without lock file is in no use."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        os.unlink(f"{path}.lock")
    os.close(lock)


def _acquire_free(path: Path) -> int | None:
    """Acquire a free lock and return its descriptor; 0 if the file is gone, None if another process has the lock."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return 0
    try:
        if acquire_lock(lock, wait=False):
            return lock
    except OSError:  # a file system without locks
        pass
    os.close(lock)
    return None


def _open_store(store: Path) -> Any:
    limit_malloc_cache()
    return ox.Store(store)


def _read_description(path: Path, marker: str) -> Snapshot | None:
    """Return the description of a snapshot; None if it is invalid, of another version, or made elsewhere."""
    try:
        with open(path / "snapshot.json", "rb") as file:
            described = decode_json(file.read(_MAX_DESCRIPTION_BYTES))
        if described["form"] != FORM:
            return None
        marks = {graph: Watermark.of(term) for graph, term in described["marks"].items()}
        return Snapshot(path, dict(described["files"]), marks) if marker and described["here"] == marker else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _link(snapshot: Snapshot, store: Path) -> None:
    """Make *store* from the files of a snapshot: links to the tables, which never change, and copies of the rest.

    Raises ValueError if a file has a different size.
    """
    make_folder(store)
    for name, size in snapshot.files.items():
        source = snapshot.path / "store" / name
        if source.stat().st_size != size:
            raise ValueError(f"{source} had {size} bytes")
        if name.endswith(".sst"):
            os.link(source, store / name)
        else:
            shutil.copyfile(source, store / name)
