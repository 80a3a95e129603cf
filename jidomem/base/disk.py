"""The disk: the calls to the file system, so that a test can record and fail those of the journal.

A commit file is whole and durable, or absent (`write_durably`).

Each file gets the owner, group and mode of its folder: otherwise the umask of the process that creates it first would
lock out the other users of a shared root. A file gets the mode bits of its folder except the executable ones, the group
of the folder and, if created by uid 0, its owner; in a sticky folder of all users, as /tmp, nobody else may write to
it. Only those who may write to a lock file may read it, as a reader could lock it, too. A folder that a group may write
to gets the setgid bit as well, for files created there by a library.

Derived files are trusted only on the machine and in the folder where they were made. A local marker is a file whose
inode and change time are set by the system and cannot be chosen by a checkout, archive or copy: a derived file that
names them was written beside that marker. Any other file may come from a clone, with any content.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from shlex import quote
from struct import Struct
from threading import Lock, get_native_id
from time import monotonic, sleep, time
from typing import ClassVar
from weakref import WeakSet

from jidomem.base.containers import grouped
from jidomem.errors import Failed

_NEW = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
#: Seconds during which a new file may still have the mode of the umask, before it gets its own.
_YOUNG = 0.5
_MARKER_FILE = "here"
#: The rights to write of group and others -> the rights to read of those who may not write.
_READERS = {0o022: 0o000, 0o020: 0o004, 0o002: 0o040, 0o000: 0o044}


def local_marker(folder: Path | str, file: str = _MARKER_FILE) -> str:
    """Return the marker that derived files in *folder* must name; empty if there is none."""
    with suppress(OSError):
        status = os.stat(f"{folder}/{file}", follow_symlinks=False)
        return f"{status.st_ino}-{status.st_ctime_ns}"
    return ""


def create_local_marker(folder: Path | str, file: str = _MARKER_FILE) -> str:
    """Return the marker of *folder*, made if missing; raises OSError if it cannot be written."""
    os.close(open_file(os.path.join(folder, file), os.O_RDONLY | os.O_NONBLOCK))
    return local_marker(folder, file)


def digest31(place: str) -> int:
    """Return a 31-bit digest of *place*, for files with a field of that size."""
    return int.from_bytes(blake2b(place.encode(), digest_size=4).digest(), "big") >> 1


_TO_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
#: The most bytes that are read of a file at once.
LARGEST = 48 << 20
#: The size of a part of a larger file, and the bytes repeated in the next part.
_PIECE, _OVERLAP = 1 << 20, 64
#: The file that distinguishes a folder on this disk from its copies; git ignores it.
LOCAL_MARKER = ".here.lock"


def names(path: str) -> list[str]:
    """Return the names in a folder, unordered; none if it does not exist. Raises Failed if it may not be read."""
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise _unreadable(path) from error


def mtime(path: str) -> int | None:
    """Return when a folder or file last changed, in nanoseconds; None if it does not exist; raises as `names`."""
    try:
        return os.stat(path).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise _unreadable(path) from error


def _unreadable(path: str) -> Failed:
    """Return the error for a folder that this user may not read, with the command that repairs it."""
    closed = obstacle(path) or [path]
    return Failed(f"{path} cannot be read: {describe(closed)}", hint=repair(closed))


#: Returns the local marker of a folder, which no clone of the folder has; empty if there is none.
file_place = partial(local_marker, file=LOCAL_MARKER)


def ensure_local_marker(path: str) -> None:
    """Make the local marker of a folder if it is missing."""
    if not file_place(path):
        create_local_marker(path, LOCAL_MARKER)


def file_state(path: str) -> tuple[int, ...]:
    """Return the state of a file: each change alters it, except a second change in the same tick of the clock."""
    status = os.stat(path, follow_symlinks=False)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def tree_state(paths: Iterable[str], folders: Iterable[str]) -> dict[str, tuple[int, int, int]]:
    """Return size, time and inode of the files *paths* and of all files below *folders* that exist.

    Links to folders are not followed, as they may form cycles; names with a leading dot are left out.
    """
    statuses, left = dict[str, os.stat_result](), [*folders]
    for path in paths:
        with suppress(OSError):
            statuses[path] = os.stat(path)
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                elif entry.name[0] != ".":
                    with suppress(OSError):  # a dangling link, or a file that was just removed
                        statuses[entry.path] = entry.stat()
    return {path: (status.st_size, status.st_mtime_ns, status.st_ino) for path, status in statuses.items()}


def device(path: str) -> int:
    """Return the number of the file system of a path."""
    return os.stat(path).st_dev


#: Returns whether a file or folder exists.
exists = os.path.exists


def read(path: str, most: int = LARGEST) -> bytes:
    """Return the bytes of a file; raises OSError for more than *most*, and for a link or device."""
    with _open_for_reading(path) as file:
        if (there := os.fstat(file.fileno()).st_size) > most:
            raise OSError(errno.EFBIG, f"it has {there:,} bytes, more than {most:,}", path)
        return file.readall()


def pieces(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file in parts, each preceded by the end of the part before it."""
    with _open_for_reading(path) as file:
        end = b""
        while piece := file.read(_PIECE):
            yield end + piece
            end = piece[-_OVERLAP:]


def read_uncached(path: str) -> bytes:
    """Return the bytes of a flushed file, read from the disk if the system can drop its cached pages."""
    with _open_for_reading(path) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.readall()


def read_part(path: str, offset: int, size: int) -> bytes:
    """Return *size* bytes of a file from *offset* on, fewer at its end."""
    with _open_for_reading(path) as file:
        file.seek(offset)
        return file.read(size)


def _open_for_reading(path: str) -> FileIO:
    """Open a file for reading, without waiting for a writer if it is a named pipe."""
    descriptor = os.open(path, _TO_READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file, but a folder, a device or a pipe", path)
    return FileIO(descriptor)


def size(path: str) -> int:
    """Return the number of bytes of a file."""
    return os.stat(path).st_size


def create_file(path: str | Path, flags: int = os.O_WRONLY) -> int:
    """Create a file, for reading and writing a lock file, and return its descriptor; raises FileExistsError."""
    descriptor = _open_when_settled(path, flags | _NEW)
    try:
        inherit(descriptor, os.path.dirname(path) or ".", is_lock=flags & os.O_RDWR != 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_file(path: str | Path, flags: int = os.O_RDWR) -> int:
    """Open a file that several processes share, created if missing, and return its descriptor."""
    while True:
        with suppress(FileNotFoundError):
            return _open_when_settled(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        with suppress(FileExistsError):
            return create_file(path, flags)


def acquire_lock(descriptor: int, *, wait: bool = True, shared: bool = False) -> bool:
    """Acquire the kernel lock of an open file until it is closed; return False if another process has it (no *wait*).

    Raises OSError on a file system without locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    mode = os.fstat(descriptor).st_mode
    if not shared and stat.S_ISREG(mode) and (readers := _READERS[mode & 0o022] & mode):
        with suppress(OSError):  # the file of another user
            os.fchmod(descriptor, stat.S_IMODE(mode & ~readers))
    return True


@dataclass(slots=True, eq=False)
class LockedFile:
    """An open file with its kernel lock, which is released when the object is closed or dropped, as by an interrupt."""

    descriptor: int

    def close(self) -> None:
        """Close the file, once; raises OSError."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            close(descriptor)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            with suppress(OSError):
                close(self.descriptor)


def _open_when_settled(path: str | Path, flags: int) -> int:
    """Open a file; if it or its folder is new and not accessible yet, wait a moment for it to get its mode."""
    until = monotonic() + _YOUNG
    while True:
        try:
            return os.open(path, flags, 0o600 if flags & os.O_RDWR else 0o666)
        except PermissionError:
            if monotonic() > until or not (_is_young(path) or _is_young(os.path.dirname(path) or ".")):
                raise
        sleep(0.005)


def _is_young(path: str | Path) -> bool:
    with suppress(OSError):
        return 0 <= time() - os.stat(path, follow_symlinks=False).st_ctime < _YOUNG
    return False


def make_folder(path: str | Path) -> None:
    """Make a folder if it is missing."""
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        inherit_at(path)


def make_folders(path: str | Path) -> None:
    """Make a folder and its parents if they are missing."""
    if not os.path.isdir(path):
        make_folders(os.path.dirname(path) or ".")
        make_folder(path)


def inherit_at(path: str | Path) -> None:
    """Give a file or folder that this process just made the owner, group and mode of its folder."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, FOLDER if os.path.isdir(path) else os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            inherit(descriptor, os.path.dirname(path) or ".")
        finally:
            os.close(descriptor)


def inherit(descriptor: int, folder: str, *, is_lock: bool = False) -> None:
    """Give an open file or folder that this process just made the owner, group and mode of *folder*.

    A file whose group this user may not set gives its group no more rights than all users have.
    """
    above, own = os.stat(folder), os.fstat(descriptor)
    owner = above.st_uid if os.geteuid() == 0 else own.st_uid
    group = above.st_gid
    if (owner, group) != (own.st_uid, own.st_gid):
        try:
            os.fchown(descriptor, owner, group)
        except OSError:
            group = own.st_gid
    mode = above.st_mode & (0o2777 if stat.S_ISDIR(own.st_mode) else 0o666)
    mode &= ~0o022 if above.st_mode & 0o1002 == 0o1002 else ~0  # as in /tmp
    if group != above.st_gid:
        mode = mode & 0o707 | (mode & 0o7) << 3
    elif stat.S_ISDIR(own.st_mode) and mode & stat.S_IWGRP:
        mode |= stat.S_ISGID
    mode &= ~_READERS[mode & 0o022] if is_lock else ~0
    if mode != stat.S_IMODE(own.st_mode):
        with suppress(OSError):  # a file system without modes
            os.fchmod(descriptor, mode)


def create(path: str) -> int:
    """Create an empty file, in place of any of that name, and return its descriptor."""
    while True:
        try:
            return create_file(path)
        except FileExistsError:
            with suppress(FileNotFoundError):
                os.unlink(path)


def write(descriptor: int, data: bytes) -> None:
    """Write all of *data* at the current position."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def fsync(descriptor: int) -> None:
    """Make the bytes of a file durable."""
    os.fsync(descriptor)


#: Closes a descriptor, and releases its lock.
close = os.close


def flush(path: str | Path) -> None:
    """Make a file, or the entries of a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: str, target: str) -> None:
    """Rename a file atomically; it replaces a file of that name."""
    os.rename(source, target)


def unlink(path: str) -> None:
    """Remove a file."""
    os.unlink(path)


def overwrite(descriptor: int, data: bytes) -> None:
    """Write *data* at the beginning of a file, and leave the rest as it is."""
    os.pwrite(descriptor, data, 0)


#: The file to which a commit is written before it is renamed; a killed writer leaves it behind, and git ignores it.
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
    """Turn an OSError into Failed, with the file and a hint."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        closed = obstacle(where) if isinstance(error, PermissionError) else []
        whose = f": {describe(closed)}" if closed else ""
        raise Failed(
            f"{where}: the journal could not be written, nothing was stored: {error.strerror}{whose}",
            hint=repair(closed) or _HINTS.get(error.errno or 0, "put that right and submit again"),
        ) from error


def try_write(path: str, size: int = 1 << 16) -> None:
    """Write a file of *size* bytes into a folder, and remove it; raise Failed if there is no room or right for it."""
    name = f"{path}/.try-{os.getpid()}-{get_native_id()}.lock"
    with writing(path):
        descriptor = create(name)
        try:
            os.unlink(name)
            write(descriptor, bytes(size))
        finally:
            os.close(descriptor)


def write_durably(path: str, name: str, data: bytes) -> None:
    """Put a file into a folder; raises OSError, or Failed if the file is in place and cannot be removed again.

    If the lock file was deleted, two writers may write at once, and one may rename the file of the other.
    """
    target = f"{path}/{name}"
    prepare(f"{path}/{INCOMING}", data)
    try:
        move(f"{path}/{INCOMING}", target)  # on a network file system it may succeed and raise
        if read_part(target, 0, len(data) + 1) != data:
            raise OSError(errno.EIO, "another process wrote at the same time: a lock file was removed", target)
        flush(path)
    except OSError as error:
        try:
            with suppress(FileNotFoundError):
                unlink(target)
        except OSError:
            detail = f"{target}: the commit is in place, but could not be made durable: {error.strerror}"
            hint = "it may be lost in a power failure; append the same commit again to settle it"
            raise Failed(detail, hint=hint) from error
        raise


def prepare(path: str, data: bytes) -> None:
    """Write a file, with its bytes durable; after a failure no file is left."""
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


def flush_above(path: str) -> None:
    """Make the entries of a folder and its parents on the same file system durable."""
    own_device = device(path)
    for above in map(str, Path(path).parents):
        if device(above) != own_device:
            break
        with suppress(PermissionError):  # a folder that this process cannot read has no entries made by it
            flush(above)


def unwritable(paths: Iterable[str | Path]) -> list[str]:
    """Return the existing *paths* that this user may not read and write."""
    return [str(path) for path in paths if not _is_writable(path)]


def obstacle(path: str | Path) -> list[str]:
    """Return the paths whose permissions prevent writing *path*: the file, or its nearest existing folder."""
    above = next((each for each in (str(path), *map(str, Path(path).parents)) if os.path.exists(each)), "/")
    return unwritable([above] if os.path.isdir(above) else [os.path.dirname(above) or ".", above])


def check_writable(paths: Iterable[str | Path]) -> None:
    """Raise Failed if this user may not read and write one of the existing *paths*."""
    if closed := unwritable(paths):
        raise Failed(describe(closed), hint=repair(closed))


def describe(paths: Iterable[str | Path]) -> str:
    """Return the message that this user may not access *paths*, with their owners and modes."""
    paths = list(paths)
    if fixed := next(filter(_is_read_only, paths), None):
        return f"{fixed} is on a file system that is mounted read-only"
    owners = [(path, os.stat(path)) for path in paths]
    listed = (f"{path} (mode {stat.S_IMODE(own.st_mode):04o}, {own.st_uid}:{own.st_gid})" for path, own in owners)
    return f"uid {os.geteuid()} may not read and write {', '.join(listed)}"


def repair(paths: Iterable[str | Path]) -> str:
    """Return the command that gives this user read and write access to *paths*, existing files or folders.

    The owner stays the same, and a group of this user gets write access; a file of another user in a folder of this
    user changes its owner.
    """
    paths = list(paths)
    if any(map(_is_read_only, paths)):
        return _HINTS[errno.EROFS]
    commands = grouped((command, quote(str(path))) for path in paths for command in _repairs(str(path)))
    return " && ".join(f"{command} {' '.join(of)}" for command, of in commands.items())


def _is_read_only(path: str | Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _repairs(path: str) -> Iterator[str]:
    own, above = os.stat(path), os.stat(os.path.dirname(path) or ".")
    groups, is_folder = {os.getegid(), *os.getgroups()}, stat.S_ISDIR(own.st_mode)
    shared = above.st_gid if above.st_mode & stat.S_IWGRP else own.st_gid
    if own.st_uid == os.geteuid():
        yield "chmod u+rwx" if is_folder else "chmod u+rw"
    elif shared in groups and (is_folder or above.st_mode & stat.S_IWGRP):
        if own.st_gid != shared:
            yield f"sudo chgrp {shared}"
        yield "sudo chmod g+rwxs" if is_folder else "sudo chmod g+rw"
    elif above.st_uid == os.geteuid():
        yield f"sudo chown {os.geteuid()}"
    else:  # owned by another user, who keeps writing to it
        yield f"sudo chgrp {os.getegid()}"
        yield "sudo chmod g+rwxs" if is_folder else "sudo chmod g+rw"


def _is_writable(path: str | Path) -> bool:
    until = monotonic() + _YOUNG
    while not os.access(path, os.R_OK | os.W_OK | os.X_OK * os.path.isdir(path), effective_ids=True):
        if not os.path.lexists(path):
            return True
        if not _is_young(path) or monotonic() > until:
            return False
        sleep(0.005)
    return True


#: Nanoseconds after a change from which a later change is certain to alter the modification time of a folder.
SETTLE = 50_000_000
#: The same for a modification time in whole seconds: some file systems store only every second one.
_COARSE = 2_100_000_000


def is_settled(mtime: int, now: int) -> bool:
    """Return whether any change after *now* is certain to alter the modification time *mtime* of a folder."""
    return now - mtime >= (SETTLE if mtime % 1_000_000_000 else _COARSE)


class FileStates:
    """The states of broken files, by name, or by `pack#stem` for a commit in a pack."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._marks: dict[str, tuple[int, ...]] = {}

    def note(self, name: str, began: int) -> None:
        """Record the state of a file that was read from *began* on, if every later change is certain to alter it."""
        self._marks.pop(name, None)
        with suppress(OSError):
            mark = self._now(name)
            if is_settled(mark[-1], began):
                self._marks[name] = mark

    def drop(self, name: str) -> None:
        """Drop the state of a file: a failed read may succeed later without a change of the file."""
        self._marks.pop(name, None)

    def holds(self, name: str) -> bool:
        """Return whether a file is certainly unchanged since its state was recorded."""
        mark = self._marks.get(name)
        with suppress(OSError):
            return mark is not None and mark == self._now(name)
        return False

    def _now(self, name: str) -> tuple[int, ...]:
        return file_state(f"{self._path}/{name.partition('#')[0]}")


#: The file systems whose changes all pass through the kernel of this machine.
_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"))
_MODIFY, ATTRIBUTES, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x400, 0x800, 0x01000000
#: The kinds of change of the names in a folder, and of the content of its files, beside that of their attributes.
NAMES, CONTENT = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE, _MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE
_CHANGES = NAMES | CONTENT | ATTRIBUTES
#: The number of the watch, the kind of change, a cookie, the bytes of the name.
_EVENT = Struct("iIII")
#: The most bytes that are read at once: some 1,000 events.
_READ_BYTES = 1 << 16


class _Inotify:
    """The inotify instance of this process, which all its watches share: a user has few instances."""

    def __init__(self) -> None:
        import ctypes  # only a long-lived process has a watch

        self._system = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.is_usable = self._descriptor >= 0  # else the limit of this user is reached
        self.process = os.getpid()
        self._watches: dict[int, WeakSet[FolderWatch]] = {}
        self._lock = Lock()

    def add(self, path: str, watch: FolderWatch) -> int:
        """Return the number of the watch of *path*, negative where there can be none; those of one folder share it."""
        with self._lock:
            for number in [number for number, watches in self._watches.items() if not watches]:
                del self._watches[number]
                self._system.inotify_rm_watch(self._descriptor, number)
            wanted = _CHANGES | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
            number = int(self._system.inotify_add_watch(self._descriptor, os.fsencode(path), wanted))
            if number >= 0:
                self._watches.setdefault(number, WeakSet()).add(watch)
            return number

    def take(self, watch: FolderWatch) -> dict[str, int] | None:
        """Return the names that changed since the last call, None if some may be missing, and forget them."""
        with self._lock:
            try:
                while data := os.read(self._descriptor, _READ_BYTES):
                    self._distribute(data)
            except BlockingIOError:  # all was read
                pass
            except BaseException:
                self._lose(*self._watches)
                raise
            names, watch.names = watch.names, {}
            return names

    def _distribute(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            number, kind, _, length = _EVENT.unpack_from(data, place)
            place += _EVENT.size + length
            if number < 0:  # more changed than the kernel stores
                self._lose(*self._watches)
            elif not kind & _CHANGES:  # the folder itself was moved or removed
                self._lose(number)
            else:
                name = os.fsdecode(data[place - length : place].rstrip(b"\0"))
                for watch in self._watches.get(number, ()):
                    if watch.names is not None:
                        watch.names[name] = watch.names.get(name, 0) | kind

    def _lose(self, *numbers: int) -> None:
        for number in numbers:
            for watch in self._watches.get(number, ()):
                watch.names = None


class FolderWatch:
    """The names that changed in one folder, and the files edited, so that a long-lived process need not list it again.

    The kernel reports each change by inotify (https://man7.org/linux/man-pages/man7/inotify.7.html), also one that
    leaves the modification time of the folder as it was: a second change in the same tick of the clock. There is a
    watch only on file systems of this machine, as the kernel reports no change that another machine makes.
    """

    _inotify: ClassVar[_Inotify | None] = None

    def __init__(self, inotify: _Inotify, path: str) -> None:
        self.names: dict[str, int] | None = {}  # None once some may be missing
        self._instance = inotify
        self.number = inotify.add(path, self)

    @classmethod
    def of(cls, path: str) -> FolderWatch | None:
        """Return a watch of the folder *path*; None where there can be none, or no more of them."""
        with suppress(OSError):
            if not sys.platform.startswith("linux") or _file_system(os.stat(path).st_dev) not in _LOCAL:
                return None
            inotify = FolderWatch._inotify
            if inotify is None or inotify.process != os.getpid():
                inotify = FolderWatch._inotify = _Inotify()
            if inotify.is_usable and (watch := cls(inotify, path)).number >= 0:
                return watch
        return None

    def changes(self) -> dict[str, int] | None:
        """Return the names that changed since the last call, with the kinds of change; None if some may be missing.

        After None the watch is of no use: the folder was moved or removed, more changed than the kernel stores, or this
        is a child of the process that made the watch. Another folder in its place is not noticed, but has another local
        marker.
        """
        return self._instance.take(self) if self._instance.process == os.getpid() else None


def _file_system(device: int) -> str:
    """Return the type of the file system of a device; empty if it is unknown."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError, IndexError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            fields, _, mounted = line.partition(" - ")
            if fields.split(" ")[2] == wanted:
                return mounted.split(" ")[0]
    return ""
