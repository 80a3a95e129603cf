"""The working state of a root: one SQLite file beside the journal, with transactions and named locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from hashlib import blake2b
from os.path import lexists
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from weakref import finalize

from jidomem.base import disk
from jidomem.base.disk import check_writable, describe, make_folders, obstacle, repair, unwritable
from jidomem.base.files import create_missing_file, enable_wal
from jidomem.errors import Busy, Failed, JidomemError, MemoryClosed
from jidomem.runtime.root_config import refuse_link

if TYPE_CHECKING:
    from sqlite3 import Connection, Error

FOLDER = Path("state", "turns")


@contextmanager
def lock(root: Path, *name: str, wait: bool = False) -> Iterator[bool]:
    """Acquire the lock *name* until the block ends, and yield whether it was acquired; with *wait*, wait for it.

    The system releases the lock of a killed process. The file of a lock is named by a digest of *name*, and removed
    when the lock is released, as a guess of the name could be confirmed by the file.
    """
    digest = blake2b("\0".join(name).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    path = root / FOLDER / f"{digest}.lock"
    descriptor = _locked(path, wait=wait)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        _remove(path, descriptor)


def remove_unused(root: Path) -> None:
    """Remove the lock files that no process has locked, left by ended processes or earlier versions."""
    with suppress(OSError, JidomemError):
        for path in (root / FOLDER).glob("*.lock"):
            descriptor = _locked(path, wait=False)
            if descriptor is not None:
                _remove(path, descriptor)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Return the descriptor of the locked file, None if another process has the lock.

    The locked file is the one with that name now: the former owner of the lock may have removed the file first opened.
    """
    while True:
        descriptor = _ensure_open(path)
        try:
            is_locked = disk.acquire_lock(descriptor, wait=wait)
            if is_locked and _is_named(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not is_locked:
            return None  # else the lock was released meanwhile, and another file may have the name


def _is_named(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(path: Path, descriptor: int) -> None:
    """Remove the file while it is locked, so that waiting processes create a new one."""
    try:
        with suppress(OSError):
            path.unlink()
    finally:
        os.close(descriptor)


def _ensure_open(path: Path) -> int:
    try:
        for folder in (path.parent.parent, path.parent):
            refuse_link(folder)
        make_folders(path.parent)
        return disk.open_file(path)
    except OSError as error:
        check_writable(obstacle(path))
        raise Failed(f"{path}: {error.strerror or error}", hint="let this user write there") from error


FILE = Path("state", "working.sqlite")
#: Seconds that a transaction waits for another process.
WAIT = 5.0
#: The suffixes of files that SQLite adds; it would follow symbolic links there too.
_COMPANIONS = ("-wal", "-shm", "-journal")
#: Triggers and views, which run on reads and writes: a cloned repository may bring some.
_FOREIGN = "SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')"
#: SQLITE_PERM, SQLITE_READONLY and SQLITE_CANTOPEN; `sqlite3`, which has these names, is imported on use only.
_PERMISSION_CODES = (3, 8, 14)
_PRAGMAS = ("synchronous=FULL", "secure_delete=ON", "trusted_schema=OFF")


class State:
    """The working state of one root, with the tables of one part; other parts have tables in the same file.

    The file is opened at the first transaction and stays open; threads of a process run one after another, and any
    number of processes may have it open. A transaction raises Failed `invalid_config` for content that a clone may
    have brought: a symbolic link, triggers, views, a file of another kind; Busy if another process writes for too long;
    Failed for a fault of the disk; MemoryClosed after `close`. An exception in a transaction rolls it back.
    """

    def __init__(
        self,
        root: Path,
        tables: str,
        begin: Callable[[], object] = lambda: None,
        check_present: Callable[[], object] = lambda: None,
    ) -> None:
        """Use the file in *root*; *tables* is the script that creates missing tables.

        *begin* is called before the file is created, *check_present* before it is reported missing.
        """
        self.path = root / FILE
        self._begin, self._check_present = begin, check_present
        self._tables = tables
        self._guard = RLock()
        self._open: tuple[Connection, tuple[int, ...]] | None = None
        self._is_closed = self._is_exclusive = False

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Yield the file in a write transaction, durable once the block ends; the file is created first."""
        with self._guard:
            self._check_open()
            with self._converting_errors():
                refuse_link(self.path.parent)
                if not self._is_open:
                    self._create_file()
                store = self._ensure_open()
            with self._transaction(store, "BEGIN IMMEDIATE"):
                yield store

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Yield the file in a transaction that sees it as it is now; None if it does not exist."""
        with self._guard:
            self._check_open()
            with self._converting_errors():
                refuse_link(self.path.parent)
                store = self._ensure_open() if lexists(self.path) else None
            if store is None:
                self._check_present()
            with self._transaction(store, "BEGIN") if store is not None else nullcontext():
                yield store

    def snapshot(self) -> bytes | None:
        """Return the present content as the bytes of an SQLite file; None if there is none.

        A full disk has no room for the file that processes share, so no other process has the state open there, and it
        is opened without that file until it is closed.
        """
        try:
            return self._serialize()
        except Failed:
            self._disconnect()
            self._is_exclusive = True
            return self._serialize()

    def _serialize(self) -> bytes | None:
        from sqlite3 import connect

        with self.reading() as store:
            if store is None:
                return None
            with closing(connect(":memory:")) as copy:
                store.backup(copy)
                return bytes(copy.serialize())

    def scrub(self) -> None:
        """Rewrite the file so that no byte of removed content remains in it; raises the errors of `changing`."""
        with self._guard, self._converting_errors():
            self._check_open()
            store = self._ensure_open()
            store.execute("VACUUM")
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def lock(self, *name: str, wait: bool = False) -> AbstractContextManager[bool]:
        """Acquire the lock *name*, across all processes of this machine, and yield whether it was acquired."""
        return lock(self.path.parent.parent, *name, wait=wait)

    def damaged(self, what: str) -> Failed:
        """Return the error for stored data that cannot be read: *what* is wrong with it."""
        return Failed(f"{self.path}: {what}", hint=f"move the file away: mv {self.path} {self.path}.old")

    def close(self) -> None:
        """Close the file; later transactions raise MemoryClosed."""
        with self._guard:
            self._is_closed = True
            self._disconnect()

    def _check_open(self) -> None:
        if self._is_closed:
            raise MemoryClosed(str(self.path.parent.parent))

    def _disconnect(self) -> None:
        with self._guard:
            if self._open is not None:
                self._open[0].close()
            self._open = None

    def _ensure_open(self) -> Connection:
        """Return the open file; it is opened again if another file has its name now."""
        if self._open is None or not self._is_open:
            self._disconnect()
            store = self._connect()
            finalize(self, store.close).atexit = False  # as a thread may use it then
            self._open = store, self._identity()
        return self._open[0]

    @property
    def _is_open(self) -> bool:
        return self._open is not None and self._open[1] == self._identity()

    def _create_file(self) -> None:
        """Create the file if it is missing; raise Failed if this user may not write it."""
        if not lexists(self.path):
            self._begin()
        make_folders(self.path.parent)
        files = self._files()
        for path in files:
            refuse_link(path)
        check_writable([self.path.parent, *files])
        if not lexists(self.path):
            create_missing_file(self.path)

    def _files(self) -> list[Path]:
        return [self.path, *(self.path.with_name(self.path.name + end) for end in _COMPANIONS)]

    def _identity(self) -> tuple[int, ...]:
        """Return the identity of the file and its permissions, to detect a replacement or change."""
        try:
            status = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return (0,)
        return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid

    def _connect(self) -> Connection:
        from sqlite3 import connect  # imported here, as not every process has working state

        for path in self._files():
            refuse_link(path)
        store = connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        try:
            if self._is_exclusive:
                store.execute("PRAGMA locking_mode=EXCLUSIVE")
            if store.execute(_FOREIGN).fetchone() is not None:
                raise _foreign_file(self.path, "it has triggers or views, which may come from a clone")
            enable_wal(store, WAIT)
            for pragma in _PRAGMAS:
                store.execute(f"PRAGMA {pragma}")
            store.executescript(self._tables)
        except BaseException:
            store.close()
            raise
        return store

    @contextmanager
    def _transaction(self, store: Connection, begin: str) -> Iterator[None]:
        from sqlite3 import DatabaseError, ProgrammingError

        if store.in_transaction:
            raise RuntimeError(f"this thread is in a transaction on {self.path} already")
        try:
            store.execute(begin)
            yield
            store.execute("COMMIT")
        except ProgrammingError:
            raise  # a faulty statement is not a fault of the file
        except DatabaseError as error:
            raise self._refusal(error) from error
        finally:
            if store.in_transaction:
                store.execute("ROLLBACK")

    @contextmanager
    def _converting_errors(self) -> Iterator[None]:
        """Convert errors of opening the file to errors of jidomem."""
        from sqlite3 import Error

        try:
            yield
        except Error as error:
            raise self._refusal(error) from error
        except OSError as error:
            check_writable(obstacle(self.path))
            raise Failed(f"{self.path}: {error.strerror or error}", hint="let this user write there") from error

    def _refusal(self, error: Error) -> JidomemError:
        """Return the error for *error* of SQLite, with the users who may not use the file."""
        if _code(error) in _PERMISSION_CODES and (closed := unwritable([self.path.parent, *self._files()])):
            return Failed(f"{self.path}: {error}: {describe(closed)}", hint=repair(closed))
        return _state_error(self.path, error)


def _code(error: Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits have details


def _state_error(path: Path, error: Error) -> JidomemError:
    from sqlite3 import SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR, SQLITE_LOCKED

    code = _code(error)
    if code in (SQLITE_BUSY, SQLITE_LOCKED):
        return Busy(f"another process has written to {path} for {WAIT:g} s", hint="try again in a moment")
    if code in (*_PERMISSION_CODES, SQLITE_FULL, SQLITE_IOERR):
        return Failed(f"{path}: {error}", hint=f"let this user write there, and check the disk: df {path.parent}")
    return _foreign_file(path, str(error))


def _foreign_file(path: Path, reason: str) -> Failed:
    return Failed(f"{path}: {reason}", hint=f"move it away: mv {path} {path}.old", code="invalid_config")
