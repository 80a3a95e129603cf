"""Every call the journal makes to the disk: one door, so that a test can record all that passes through it.

What is true of derived files that were made here, and of none that came with a clone and says what it likes.

A file is known by its number on this disk and by when it was last changed, to the nanosecond. The system sets both, and
no checkout, archive or copy can choose them: so whatever names those of the file `here` was written beside it.

Put files into a folder: durable and whole, or not at all.
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
    """Return what is to be said by all that is written in *folder*; nothing, where nothing was written yet."""
    with suppress(OSError):
        status = os.stat(os.path.join(folder, file), follow_symlinks=False)
        return f"{status.st_ino}-{status.st_ctime_ns}"
    return ""


def create_local_marker(folder: Path | str, file: str = _FILE) -> str:
    """Return what is to be said by what is written now in *folder*; raises OSError where nothing can be."""
    os.close(files.open_file(os.path.join(folder, file), os.O_RDONLY | os.O_NONBLOCK))
    return local_marker(folder, file)


def number(place: str) -> int:
    """Return *place* as a number of 31 bits, for files that have room for no more."""
    return int.from_bytes(blake2b(place.encode(), digest_size=4).digest(), "big") >> 1


_TO_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
#: The most bytes of a file that is read at once: of a commit, and of what is kept beside one.
LARGEST = 48 << 20
#: How much of a larger one is read at once, and once more with the next part.
_PIECE, _OVERLAP = 1 << 20, 64
#: The file that tells a folder of this disk from its copies; git ignores it.
LOCAL_MARKER = ".here.lock"


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


#: The place of a folder, which no clone of it can name; an empty text where none was made.
file_place = partial(local_marker, file=LOCAL_MARKER)


def settle_file(path: str) -> None:
    """Give a folder a place, where it has none."""
    if not file_place(path):
        create_local_marker(path, LOCAL_MARKER)


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
    files.make_folder(path)


def create(path: str) -> int:
    """Return the descriptor of a new, empty file; what was there is gone, but for who has it open."""
    while True:
        try:
            return files.create_file(path)
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
    files.flush(path)


def rename(source: str, target: str) -> None:
    """Give a file another name, in one step; what bore that name before is gone."""
    os.rename(source, target)


def unlink(path: str) -> None:
    """Take a file away."""
    os.unlink(path)


def open_shared(path: str) -> int:
    """Return the descriptor of a file that several processes write, made where it is not there."""
    return files.open_file(path)


def lock(descriptor: int) -> bool:
    """Return whether this process now holds the kernel lock of a file, which goes when it closes it or dies."""
    return files.acquire_lock(descriptor, wait=False)


def overwrite(descriptor: int, data: bytes) -> None:
    """Write *data* at the beginning of a file and leave what is behind it."""
    os.pwrite(descriptor, data, 0)


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
        closed = files.obstacle(where) if isinstance(error, PermissionError) else []
        whose = f": {files.describe(closed)}" if closed else ""
        raise Failed(
            f"{where}: the journal could not be written, nothing was kept: {error.strerror}{whose}",
            hint=files.repair(closed) or _HINTS.get(error.errno or 0, "put that right and submit again"),
        ) from error


def write_durably(path: str, name: str, data: bytes) -> None:
    """Put a file into a folder; raise OSError, or Failed where it is in place and cannot be taken back.

    Where somebody removed the lock file two may write at once, each a file of its own, and one may move the other's.
    """
    target = f"{path}/{name}"
    prepare(f"{path}/{INCOMING}", data)
    try:
        move(f"{path}/{INCOMING}", target)  # over a network it may be done, and fail
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
    """Write a file, its bytes durable; where that fails nothing is left of it."""
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
    """Rename a file that was prepared; where that fails nothing is left of it."""
    try:
        rename(source, target)
    except OSError:
        with suppress(OSError):
            unlink(source)
        raise


def make_folders(path: str) -> None:
    """Make a folder and those above it."""
    if not exists(path):
        make_folders(str(Path(path).parent))
        make_folder(path)


def flush_above(path: str) -> None:
    """Make the name of a folder durable, and those of all above it on the same file system."""
    here = device(path)
    for above in map(str, Path(path).parents):
        if device(above) != here:
            break
        with suppress(PermissionError):  # who may not read a folder made nothing in it
            flush(above)


def busy(path: str, wait: float) -> Busy:
    """Return the refusal of who waited so many seconds for the lock of a file."""
    return Busy(
        f"another writer has held {path} for more than {wait:g} second{'' if wait == 1 else 's'}; nothing was written",
        hint="submit again; if it stays so, stop the process that holds that file",
    )
