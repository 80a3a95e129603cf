"""Whole files: the atomic write, the lock file, the paths of the shipped data files, and SQLite's write-ahead log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, BinaryIO

from jidomem.base import disk
from jidomem.errors import Busy

if TYPE_CHECKING:
    from sqlite3 import Connection

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_SHARED = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def file_lock(path: str | Path, mode: int | None = None) -> Iterator[None]:
    """Acquire the exclusive kernel lock of the file at *path*, created if missing; wait for it.

    A new file has *mode* (default: the mode that its folder passes on).
    """
    descriptor = disk.open_file(path) if mode is None else os.open(path, _SHARED, mode)
    try:
        disk.acquire_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: str | Path) -> bool:
    """Return whether the kernel lock of an existing file is taken; False if this user cannot open it."""
    try:
        file = disk.LockedFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
    except OSError:
        return False
    with closing(file):
        return not disk.acquire_lock(file.descriptor, wait=False)


def busy_error(path: str | Path, wait: float) -> Busy:
    """Return the error after waiting *wait* seconds for the lock of a file, with the process that has it."""
    return Busy(
        f"another writer has locked {path} for over {wait:g} second{'' if wait == 1 else 's'}; nothing was written",
        hint=f"submit again; if this persists, stop {_lock_holder(path) or 'the process that has the lock'}",
    )


def _lock_holder(path: str | Path) -> str:
    """Return the process that has the kernel lock of a file, its program and user id; "" if the system tells none."""
    with suppress(OSError, ValueError):
        own = os.stat(path)
        place = f"{os.major(own.st_dev):02x}:{os.minor(own.st_dev):02x}:{own.st_ino}"
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            _, kind, _, _, process, where, *_ = line.split()
            if (kind, where) == ("FLOCK", place) and int(process) > 0:
                program = Path(f"/proc/{process}/comm").read_text("utf-8", "backslashreplace").strip()
                return f"process {process} ({program!r}, uid {os.stat(f'/proc/{process}').st_uid}), which has the lock"
    return ""


@contextmanager
def atomic_file(
    path: str | Path, mode: int | None = None, *, durable: bool = False, replace: bool = True
) -> Iterator[BinaryIO]:
    """Yield an open draft that is renamed to *path*, atomically, when the block ends without an exception.

    A reader sees the old file or the whole new one; a failure leaves the old file and no draft.
    The file has *mode* (default: the mode that its folder passes on). A *durable* file and its name
    survive a power failure. Raises FileExistsError for an existing file, unless it may *replace* it.
    """
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.lock")  # git ignores locks in a root
    descriptor = disk.create_file(draft) if mode is None else os.open(draft, _NEW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if replace:
            os.replace(draft, path)
        else:
            os.link(draft, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)
    if durable:
        disk.flush(folder or ".")


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file atomically but not durably: for a cache or a copy."""
    with atomic_file(path) as file:
        file.write(data)


def write_file(path: str | Path, data: bytes) -> None:
    """Write a new file, in place of any existing one."""
    while True:
        try:
            with os.fdopen(disk.create_file(path), "wb") as file:
                file.write(data)
            return
        except FileExistsError:
            with suppress(FileNotFoundError):
                os.unlink(path)


def create_missing_file(path: str | Path) -> None:
    """Make an empty file if it is missing, for a library that opens it; raises OSError if it cannot be written.

    The file gets its mode before its name, and this process never opens it: closing it would release all locks
    that other threads of this process have on it.
    """
    with suppress(FileExistsError), atomic_file(path, replace=False):
        pass


_PACKAGE = Path(__file__).parent.parent


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed; reinstall jidomem")
    return Path(next(iter(spec.submodule_search_locations)))


def ontology_files() -> list[Path]:
    """Return the shipped ontology files, sorted by name."""
    return sorted(_folder("jidomem.ontology").glob("*.ttl"))


def shape_files() -> list[Path]:
    """Return the shipped shape files, sorted by name."""
    return sorted(_folder("jidomem.shapes").glob("*.ttl"))


def query_files() -> list[Path]:
    """Return the shipped query files, sorted by role and name."""
    return sorted(_folder("jidomem.queries").glob("*/*.rq"))


def own_memory() -> Path:
    """Return the root with jidomem's own decisions: in the wheel, or beside the package in a checkout."""
    shipped = _PACKAGE / "own_memory"
    return shipped if shipped.is_dir() else _PACKAGE.parent / ".jidomem"


def enable_wal(store: Connection, wait: float) -> None:
    """Switch *store* to write-ahead logging; other connections are waited for up to *wait* seconds.

    SQLite does not wait itself: https://sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode.
    Raises sqlite3.OperationalError after that time, or if the file cannot be written.
    """
    from sqlite3 import SQLITE_BUSY, OperationalError

    until = monotonic() + wait
    while True:
        try:
            store.execute("PRAGMA journal_mode=WAL")
            return
        except OperationalError as error:
            if error.sqlite_errorcode & 0xFF != SQLITE_BUSY or monotonic() >= until:
                raise
        sleep(0.005)
