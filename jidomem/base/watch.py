"""A watch reports the names that changed in a folder, so that a long-lived process need not list it again.

The kernel reports each change by inotify (https://man7.org/linux/man-pages/man7/inotify.7.html), also one that leaves
the modification time of the folder as it was: a second change in the same tick of the clock. There is a watch only on
file systems of this machine, as the kernel reports no change that another machine makes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from struct import Struct

#: The file systems whose changes all pass through the kernel of this machine.
_LOCAL = frozenset(("ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"))
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x400, 0x800, 0x01000000
_CHANGES = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
#: The number of the watch, the kind of change, a cookie, the bytes of the name.
_EVENT = Struct("iIII")
#: The most bytes that are read at once: some 1,000 events.
_READ_BYTES = 1 << 16


class FolderWatch:
    """The changes of names in one folder, since `changes` was last called."""

    def __init__(self, descriptor: int, inode: tuple[int, int]) -> None:
        self._descriptor, self._inode = descriptor, inode

    @classmethod
    def of(cls, path: str) -> FolderWatch | None:
        """Return a watch of the folder *path*; None where there can be none, or no more of them."""
        if not sys.platform.startswith("linux") or _file_system(path) not in _LOCAL:
            return None
        import ctypes  # only a long-lived process has a watch

        system = ctypes.CDLL(None, use_errno=True)
        descriptor = system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:  # the limit of this user, fs.inotify.max_user_instances
            return None
        wanted = _CHANGES | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
        if system.inotify_add_watch(descriptor, os.fsencode(path), wanted) < 0:
            os.close(descriptor)
            return None
        with suppress(OSError):
            return cls(descriptor, _inode(path))
        os.close(descriptor)
        return None

    def changes(self, path: str) -> set[str] | None:
        """Return the names that were created, renamed or removed in *path*; None if some may be missing.

        After None the watch is of no use: the folder is another one, or more changed than the kernel stores.
        """
        names = set[str]()
        while data := self._read():
            place = 0
            while place < len(data):
                _, kind, _, length = _EVENT.unpack_from(data, place)
                place += _EVENT.size + length
                if not kind & _CHANGES:
                    return None
                names.add(os.fsdecode(data[place - length : place].rstrip(b"\0")))
        try:
            return names if _inode(path) == self._inode else None
        except OSError:
            return None

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""

    def __del__(self) -> None:
        os.close(self._descriptor)


def _inode(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _file_system(path: str) -> str:
    """Return the type of the file system of *path*; empty if it is unknown."""
    with suppress(OSError, ValueError):
        device = os.stat(path).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                fields, _, mounted = line.partition(" - ")
                if fields.split(" ")[2] == wanted:
                    return mounted.split(" ")[0]
    return ""
