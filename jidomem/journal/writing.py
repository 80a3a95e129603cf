"""Put files into a folder: durable and whole, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jidomem import ownership
from jidomem.errors import Busy, Failed
from jidomem.journal import disk

#: Where a commit is written before it is renamed; a killed writer leaves one, and git ignores it.
INCOMING = ".incoming.lock"

_HINTS = {
    errno.ENOSPC: "free some space on that disk and submit again",
    errno.EDQUOT: "free some of your disk quota and submit again",
    errno.EFBIG: "raise the file size limit (ulimit -f) and submit again",
    errno.EROFS: "remount that disk writable, or use another root",
    errno.EACCES: "make that folder writable for this user, or use another root",
    errno.EPERM: "make that folder writable for this user, or use another root",
}


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn an error of the operating system into Failed: what, where, and what to do."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        closed = ownership.obstacle(where) if isinstance(error, PermissionError) else []
        whose = f": {ownership.describe(closed)}" if closed else ""
        raise Failed(
            f"{where}: the journal could not be written, nothing was kept: {error.strerror}{whose}",
            hint=ownership.repair(closed) or _HINTS.get(error.errno or 0, "put that right and submit again"),
        ) from error


def put(path: str, name: str, data: bytes) -> None:
    """Put a file into a folder; raise OSError, or Failed where it is in place and cannot be taken back.

    Where somebody removed the lock file two may write at once, each a file of its own, and one may move the other's.
    """
    target = f"{path}/{name}"
    prepare(f"{path}/{INCOMING}", data)
    try:
        move(f"{path}/{INCOMING}", target)  # over a network it may be done, and fail
        if disk.read_part(target, 0, len(data) + 1) != data:
            raise OSError(errno.EIO, "another wrote at once: a lock file was removed", target)
        disk.flush(path)
    except OSError as error:
        try:
            with suppress(FileNotFoundError):
                disk.unlink(target)
        except OSError:
            raise Failed(
                f"{target}: the commit is in place, but could not be made durable: {error.strerror}",
                hint="it may be lost in a power failure; append the same commit again to settle it",
            ) from error
        raise


def prepare(path: str, data: bytes) -> None:
    """Write a file, its bytes durable; where that fails nothing is left of it."""
    try:
        descriptor = disk.create(path)
        try:
            disk.write(descriptor, data)
            disk.fsync(descriptor)
        finally:
            disk.close(descriptor)
    except OSError:
        with suppress(OSError):
            disk.unlink(path)
        raise


def move(source: str, target: str) -> None:
    """Rename a file that was prepared; where that fails nothing is left of it."""
    try:
        disk.rename(source, target)
    except OSError:
        with suppress(OSError):
            disk.unlink(source)
        raise


def make_folders(path: str) -> None:
    """Make a folder and those above it."""
    if not disk.exists(path):
        make_folders(str(Path(path).parent))
        disk.make_folder(path)


def flush_above(path: str) -> None:
    """Make the name of a folder durable, and those of all above it on the same file system."""
    here = disk.device(path)
    for above in map(str, Path(path).parents):
        if disk.device(above) != here:
            break
        with suppress(PermissionError):  # who may not read a folder made nothing in it
            disk.flush(above)


def busy(path: str, wait: float) -> Busy:
    """Return the refusal of who waited so many seconds for the lock of a file."""
    return Busy(
        f"another writer has held {path} for more than {wait:g} second{'' if wait == 1 else 's'}; nothing was written",
        hint="submit again; if it stays so, stop the process that holds that file",
    )
