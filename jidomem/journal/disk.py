"""The disk module makes every call of the journal to the disk, so that a test can record and fail them.

A commit file is durable and whole, or absent (`write_durably`).

Derived files are trusted only where they were made. A local marker is a file whose inode and change time the system
sets and no checkout, archive or copy can choose: a derived file that names those of the marker beside it was written
here. Everything else may come from a clone, with any content.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from io import FileIO
from pathlib import Path

from jidomem.base import files
from jidomem.errors import Busy, Failed

_FILE = "here"


def local_marker(folder: Path | str, file: str = _FILE) -> str:
    """Return the marker that derived files in *folder* have to name; empty where there is none."""
    with suppress(OSError):
        status = os.stat(os.path.join(folder, file), follow_symlinks=False)
        return f"{status.st_ino}-{status.st_ctime_ns}"
    return ""


def create_local_marker(folder: Path | str, file: str = _FILE) -> str:
    """Return the marker of *folder*, made where there is none; raises OSError where it cannot be written."""
    os.close(files.open_file(os.path.join(folder, file), os.O_RDONLY | os.O_NONBLOCK))
    return local_marker(folder, file)


def number(place: str) -> int:
    """Return *place* as a number of 31 bits, for files with a field of that size."""
    return int.from_bytes(blake2b(place.encode(), digest_size=4).digest(), "big") >> 1


_TO_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
#: The most bytes of a file that is read at once.
LARGEST = 48 << 20
#: The bytes of a part of a larger file, and those repeated with the next part.
_PIECE, _OVERLAP = 1 << 20, 64
#: The file that tells a folder of this disk from its copies; git ignores it.
LOCAL_MARKER = ".here.lock"


def names(path: str) -> list[str]:
    """Return the names in a folder, in no order; none where there is no folder."""
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def mtime(path: str) -> int | None:
    """Return when a folder or file last changed, in nanoseconds; None where it does not exist."""
    try:
        return os.stat(path).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None


#: The place of a folder: its local marker, which no clone of it can name; empty where none was made.
file_place = partial(local_marker, file=LOCAL_MARKER)


def ensure_local_marker(path: str) -> None:
    """Make the local marker of a folder where it has none."""
    if not file_place(path):
        create_local_marker(path, LOCAL_MARKER)


def mark(path: str) -> tuple[int, ...]:
    """Return the state of a file, which every change alters, but for two changes in one tick of the clock."""
    status = os.stat(path, follow_symlinks=False)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def device(path: str) -> int:
    """Return the number of the file system a path is on."""
    return os.stat(path).st_dev


#: Return whether there is a file or folder.
exists = os.path.exists


def read(path: str, most: int = LARGEST) -> bytes:
    """Return the bytes of a file; raise OSError for more than *most*, and for a link or device."""
    with _opened(path) as file:
        if (there := os.fstat(file.fileno()).st_size) > most:
            raise OSError(errno.EFBIG, f"it has {there:,} bytes, more than {most:,}", path)
        return file.readall()


def pieces(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file in parts, each with the end of the part before it."""
    with _opened(path) as file:
        end = b""
        while piece := file.read(_PIECE):
            yield end + piece
            end = piece[-_OVERLAP:]


def read_back(path: str) -> bytes:
    """Return the bytes of a flushed file, from the disk where the machine drops its cached pages."""
    with _opened(path) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.readall()


def read_part(path: str, offset: int, size: int) -> bytes:
    """Return *size* bytes of a file from *offset* on, fewer where it ends before."""
    with _opened(path) as file:
        file.seek(offset)
        return file.read(size)


def _opened(path: str) -> FileIO:
    """Return a file to read, without waiting for the writer of a pipe of that name."""
    descriptor = os.open(path, _TO_READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file, but a folder, a device or a pipe", path)
    return FileIO(descriptor)


def size(path: str) -> int:
    """Return the number of bytes of a file."""
    return os.stat(path).st_size


#: Make a folder where there is none; its name is durable once the parent folder is flushed.
make_folder = files.make_folder


def create(path: str) -> int:
    """Return the descriptor of a new, empty file; a file of that name is removed."""
    while True:
        try:
            return files.create_file(path)
        except FileExistsError:
            with suppress(FileNotFoundError):
                os.unlink(path)


def write(descriptor: int, data: bytes) -> None:
    """Write all of *data* at the end of the last write."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def fsync(descriptor: int) -> None:
    """Make the bytes of a file durable."""
    os.fsync(descriptor)


#: Close a descriptor, and release the lock it holds.
close = os.close


def flush(path: str) -> None:
    """Make a file, or the names in a folder, durable."""
    files.flush(path)


def rename(source: str, target: str) -> None:
    """Rename a file, in one step; a file of that name is replaced."""
    os.rename(source, target)


def unlink(path: str) -> None:
    """Remove a file."""
    os.unlink(path)


#: Return the descriptor of a file that several processes write, made where there is none.
open_shared = files.open_file


#: Return whether this process now holds the kernel lock of a file, which its close or death releases.
lock = partial(files.acquire_lock, wait=False)


def overwrite(descriptor: int, data: bytes) -> None:
    """Write *data* at the beginning of a file and leave the rest."""
    os.pwrite(descriptor, data, 0)


#: The file in which a commit is written before it is renamed; a killed writer leaves one, and git ignores it.
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
    """Turn an error of the operating system into Failed, with the file and a hint."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        closed = files.obstacle(where) if isinstance(error, PermissionError) else []
        whose = f": {files.describe(closed)}" if closed else ""
        raise Failed(
            f"{where}: the journal could not be written, nothing was kept: {error.strerror}{whose}",
            hint=files.repair(closed) or _HINTS.get(error.errno or 0, "put that right and submit again"),
        ) from error


def write_durably(path: str, name: str, data: bytes) -> None:
    """Put a file into a folder; raise OSError, or Failed where it is in place and cannot be removed again.

    Where the lock file was removed two writers may write at once, and one may rename the file of the other.
    """
    target = f"{path}/{name}"
    prepare(f"{path}/{INCOMING}", data)
    try:
        move(f"{path}/{INCOMING}", target)  # over a network it may succeed and still raise
        if read_part(target, 0, len(data) + 1) != data:
            raise OSError(errno.EIO, "another wrote at once: a lock file was removed", target)
        flush(path)
    except OSError as error:
        try:
            with suppress(FileNotFoundError):
                unlink(target)
        except OSError:
            raise Failed(
                f"{target}: the commit is in place, but could not be made durable: {error.strerror}",
                hint="it may be lost in a power failure; append the same commit again to settle it",
            ) from error
        raise


def prepare(path: str, data: bytes) -> None:
    """Write a file, its bytes durable; after a failure no file is left."""
    try:
        descriptor = create(path)
        try:
            write(descriptor, data)
            fsync(descriptor)
        finally:
            close(descriptor)
    except OSError:
        with suppress(OSError):
            unlink(path)
        raise


def move(source: str, target: str) -> None:
    """Rename a prepared file; after a failure it is removed."""
    try:
        rename(source, target)
    except OSError:
        with suppress(OSError):
            unlink(source)
        raise


def make_folders(path: str) -> None:
    """Make a folder and its parents."""
    if not exists(path):
        make_folders(str(Path(path).parent))
        make_folder(path)


def flush_above(path: str) -> None:
    """Make the names of a folder and its parents on the same file system durable."""
    here = device(path)
    for above in map(str, Path(path).parents):
        if device(above) != here:
            break
        with suppress(PermissionError):  # an unreadable folder has nothing that this process made
            flush(above)


def busy(path: str, wait: float) -> Busy:
    """Return the refusal after *wait* seconds for the lock of a file."""
    return Busy(
        f"another writer has held {path} for more than {wait:g} second{'' if wait == 1 else 's'}; nothing was written",
        hint="submit again; if it stays so, stop the process that holds that file",
    )


#: The nanoseconds after a change from which a later change certainly alters the modification time of a folder.
SETTLE = 50_000_000
#: The same for a modification time in whole seconds: a file system may store only every second one.
_COARSE = 2_100_000_000


def is_settled(mtime: int, now: int) -> bool:
    """Return whether the next change after *now* certainly alters the modification time *mtime* of a folder."""
    return now - mtime >= (SETTLE if mtime % 1_000_000_000 else _COARSE)


class Marks:
    """The states of broken files, by name, or by `pack#stem` for a commit in one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._marks: dict[str, tuple[int, ...]] = {}

    def note(self, name: str, began: int) -> None:
        """Note the state of a file that was read from *began* on, where every later change will alter it."""
        self._marks.pop(name, None)
        with suppress(OSError):
            mark = self._now(name)
            if is_settled(mark[-1], began):
                self._marks[name] = mark

    def drop(self, name: str) -> None:
        """Forget the state of a file: a failed read may succeed without a change of it."""
        self._marks.pop(name, None)

    def holds(self, name: str) -> bool:
        """Return whether a file is certainly as noted."""
        mark = self._marks.get(name)
        with suppress(OSError):
            return mark is not None and mark == self._now(name)
        return False

    def _now(self, name: str) -> tuple[int, ...]:
        return mark(f"{self._path}/{name.partition('#')[0]}")
