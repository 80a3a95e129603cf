"""Every call the journal makes to the disk: one door, so that a test can record all that passes through it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO

from jidomem import here, ownership

_TO_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
#: The most bytes of a file that is read at once: of a commit, and of what is kept beside one.
LARGEST = 48 << 20
#: How much of a larger one is read at once, and once more with the next part.
_PIECE, _OVERLAP = 1 << 20, 64
#: The file that tells a folder of this disk from its copies; git ignores it.
HERE = ".here.lock"


def names(path: str) -> Iterator[str]:
    """Yield the names in a folder as they are come upon; nothing where there is no folder."""
    try:
        with os.scandir(path) as found:
            yield from (entry.name for entry in found)
    except (FileNotFoundError, NotADirectoryError):
        return


def mtime(path: str) -> int | None:
    """Return when a folder or file last changed, in nanoseconds; None where it is not there."""
    try:
        return os.stat(path).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None


def place(path: str) -> str:
    """Return what no clone of a folder can say of itself; nothing where nobody settled in it."""
    return here.place(path, HERE)


def settle(path: str) -> None:
    """Give a folder a place, where it has none."""
    if not place(path):
        here.settle(path, HERE)


def mark(path: str) -> tuple[int, ...]:
    """Return what is another one as soon as a file is changed, but for two changes in one tick of the clock."""
    status = os.stat(path, follow_symlinks=False)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def device(path: str) -> int:
    """Return the number of the file system a path is on."""
    return os.stat(path).st_dev


def exists(path: str) -> bool:
    """Return whether there is a file or folder."""
    return os.path.exists(path)


def read(path: str, most: int = LARGEST) -> bytes:
    """Return the bytes of a file; raise OSError for one of more than *most*.

    So it is for what is no file: a link, or a device that may have no end.
    """
    with _opened(path) as file:
        if (there := os.fstat(file.fileno()).st_size) > most:
            raise OSError(errno.EFBIG, f"it has {there:,} bytes, more than {most:,}", path)
        return file.readall()


def pieces(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file a part at a time, each with the end of the one before it."""
    with _opened(path) as file:
        end = b""
        while piece := file.read(_PIECE):
            yield end + piece
            end = piece[-_OVERLAP:]


def read_back(path: str) -> bytes:
    """Return the bytes of a file that was flushed, from the disk where this machine lets go of what it remembers."""
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
    """Return a file to read, without waiting for who might write into a pipe of that name."""
    descriptor = os.open(path, _TO_READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file, but a folder, a device or a pipe", path)
    return FileIO(descriptor)


def size(path: str) -> int:
    """Return how many bytes a file has."""
    return os.stat(path).st_size


def make_folder(path: str) -> None:
    """Make a folder where there is none; its name is durable once the folder above is flushed."""
    ownership.make_folder(path)


def create(path: str) -> int:
    """Return the descriptor of a new, empty file; what was there is gone, but for who has it open."""
    while True:
        try:
            return ownership.create_file(path)
        except FileExistsError:
            with suppress(FileNotFoundError):
                os.unlink(path)


def write(descriptor: int, data: bytes) -> None:
    """Write all of *data* where the last write ended."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def fsync(descriptor: int) -> None:
    """Make what was written to a file durable."""
    os.fsync(descriptor)


def close(descriptor: int) -> None:
    """Let go of a descriptor, and of the lock it holds."""
    os.close(descriptor)


def flush(path: str) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: str, target: str) -> None:
    """Give a file another name, in one step; what bore that name before is gone."""
    os.rename(source, target)


def unlink(path: str) -> None:
    """Take a file away."""
    os.unlink(path)


def open_shared(path: str) -> int:
    """Return the descriptor of a file that several processes write, made where it is not there."""
    return ownership.open_file(path)


def lock(descriptor: int) -> bool:
    """Return whether this process now holds the kernel lock of a file, which goes when it closes it or dies."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def overwrite(descriptor: int, data: bytes) -> None:
    """Write *data* at the beginning of a file and leave what is behind it."""
    os.pwrite(descriptor, data, 0)
