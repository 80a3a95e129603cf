"""The working state of a root: one SQLite file beside the journal, with transactions and named locks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from hashlib import blake2b
from os.path import lexists
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from weakref import finalize

from jidomem.base import disk
from jidomem.base.disk import check_writable, describe, make_folders, obstacle, repair, unwritable
from jidomem.base.files import enable_wal, lay_file
from jidomem.errors import Busy, Failed, JidomemError, MemoryClosed
from jidomem.runtime.root_config import refuse_link

if TYPE_CHECKING:
    from sqlite3 import Connection, Error

FOLDER = Path("state", "turns")


@contextmanager
def turn(root: Path, *of: str, wait: bool = False) -> Iterator[bool]:
    """Give whether it is the caller's turn for *of* until the block ends; with *wait* it always is, then.

    The system takes it back from a process that is killed. The file of a turn is named by a digest of *of*, by which a
    guess at a name could be confirmed: so the file is removed when the turn ends.
    """
    name = blake2b("\0".join(of).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    path = root / FOLDER / f"{name}.lock"
    descriptor = _locked(path, wait=wait)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        _remove(path, descriptor)


def remove_unused(root: Path) -> None:
    """Remove the files of turns that nobody has: an ended process left them, or an earlier version did."""
    with suppress(OSError, JidomemError):
        for path in (root / FOLDER).glob("*.lock"):
            descriptor = _locked(path, wait=False)
            if descriptor is not None:
                _remove(path, descriptor)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Return the descriptor of the locked file, None where another has it; it is the file that has the name now."""
    while True:
        descriptor = _opened(path)
        try:
            is_locked = disk.acquire_lock(descriptor, wait=wait)
            if is_locked and _is_named(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not is_locked:
            return None  # else its turn ended meanwhile, and another file may have the name


def _is_named(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(path: Path, descriptor: int) -> None:
    """Remove the file while it is locked, so that whoever waits for it takes a new one."""
    try:
        with suppress(OSError):
            path.unlink()
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        for folder in (path.parent.parent, path.parent):
            refuse_link(folder)
        make_folders(path.parent)
        return disk.open_file(path)
    except OSError as error:
        check_writable(obstacle(path))
        raise Failed(f"{path}: {error.strerror or error}", hint="let this user write there") from error


FILE = Path("state", "working.sqlite")
#: How many seconds a transaction waits for that of another process.
WAIT = 5.0
#: What SQLite keeps beside the file; it would follow a link there, too.
_BESIDE = ("-wal", "-shm", "-journal")
#: What runs when something is read or written; a cloned repository may bring it along.
_FOREIGN = "SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')"
#: SQLITE_PERM, SQLITE_READONLY and SQLITE_CANTOPEN, as `sqlite3` numbers them, which is loaded only where it is used.
_CLOSED = (3, 8, 14)
_HOW = ("synchronous=FULL", "secure_delete=ON", "trusted_schema=OFF")


class State:
    """The working state of one root, with the tables of one who keeps something there; those of others lie beside them.

    It is opened at the first transaction and stays open; the threads of a process take turns, and any number of
    processes have it open at once. A transaction raises Failed `invalid_config` for what a clone may have brought: a
    symbolic link, triggers, views, a file that is none of ours; Busy where another process writes for too long; Failed
    where the disk does not let it; MemoryClosed once it was closed. What is raised in a transaction undoes all that was
    done in it.
    """

    def __init__(self, root: Path, tables: str) -> None:
        """Keep it in *root*; *tables* is the script that makes the tables where they are not there yet."""
        self.path = root / FILE
        self._tables = tables
        self._turn = RLock()
        self._open: tuple[Connection, tuple[int, ...]] | None = None
        self._is_closed = False

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Give the file in a transaction that may write, and that is on disk once the block ends; it is made first."""
        with self._turn:
            self._check_open()
            with self._worded():
                refuse_link(self.path.parent)
                if not self._is_open:
                    self._make()
                store = self._opened()
            with self._transaction(store, "BEGIN IMMEDIATE"):
                yield store

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Give the file in a transaction that sees it as it is now; None where nothing was kept yet."""
        with self._turn:
            self._check_open()
            with self._worded():
                refuse_link(self.path.parent)
                store = self._opened() if lexists(self.path) else None
            with self._transaction(store, "BEGIN") if store is not None else nullcontext():
                yield store

    def scrub(self) -> None:
        """Write the file anew, so that none of its bytes holds what was taken out; raises what `changing` does."""
        with self._turn, self._worded():
            self._check_open()
            store = self._opened()
            store.execute("VACUUM")
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def turn(self, *of: str, wait: bool = False) -> AbstractContextManager[bool]:
        """Give whether it is the caller's turn for what *of* names, of all processes of this machine."""
        return turn(self.path.parent.parent, *of, wait=wait)

    def damaged(self, what: str) -> Failed:
        """Return the error for *what* was kept and cannot be read."""
        return Failed(f"{self.path}: {what}", hint=f"put the file aside: mv {self.path} {self.path}.old")

    def close(self) -> None:
        """Let go of the file; from now on a transaction raises MemoryClosed."""
        with self._turn:
            self._is_closed = True
            self._let_go()

    def _check_open(self) -> None:
        if self._is_closed:
            raise MemoryClosed(str(self.path.parent.parent))

    def _let_go(self) -> None:
        with self._turn:
            if self._open is not None:
                self._open[0].close()
            self._open = None

    def _opened(self) -> Connection:
        """Return the file, open: the one that has the name now, as another may have been put in its place."""
        if self._open is None or not self._is_open:
            self._let_go()
            store = self._connected()
            finalize(self, store.close)
            self._open = store, self._identity()
        return self._open[0]

    @property
    def _is_open(self) -> bool:
        return self._open is not None and self._open[1] == self._identity()

    def _make(self) -> None:
        """Lay the file where there is none; raise Failed where this user may not write it."""
        make_folders(self.path.parent)
        files = self._files()
        for path in files:
            refuse_link(path)
        check_writable([self.path.parent, *files])
        if not lexists(self.path):
            lay_file(self.path)

    def _files(self) -> list[Path]:
        return [self.path, *(self.path.with_name(self.path.name + end) for end in _BESIDE)]

    def _identity(self) -> tuple[int, ...]:
        """Return what tells the file from another, and from itself with other permissions."""
        try:
            status = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return (0,)
        return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid

    def _connected(self) -> Connection:
        from sqlite3 import connect  # a process that keeps nothing has no need of it

        for path in self._files():
            refuse_link(path)
        store = connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        try:
            if store.execute(_FOREIGN).fetchone() is not None:
                raise _not_ours(self.path, "it has triggers or views, and came with the root")
            enable_wal(store, WAIT)
            for how in _HOW:
                store.execute(f"PRAGMA {how}")
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
            raise  # what was asked makes no sense, and that is nothing about this file
        except DatabaseError as error:
            raise self._refusal(error) from error
        finally:
            if store.in_transaction:
                store.execute("ROLLBACK")

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """Raise what opening the file comes upon as an error of ours."""
        from sqlite3 import Error

        try:
            yield
        except Error as error:
            raise self._refusal(error) from error
        except OSError as error:
            check_writable(obstacle(self.path))
            raise Failed(f"{self.path}: {error.strerror or error}", hint="let this user write there") from error

    def _refusal(self, error: Error) -> JidomemError:
        """Return what *error* says of the file, and of who may not use it."""
        if _code(error) in _CLOSED and (closed := unwritable([self.path.parent, *self._files()])):
            return Failed(f"{self.path}: {error}: {describe(closed)}", hint=repair(closed))
        return _state_error(self.path, error)


def _code(error: Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it says more of the same


def _state_error(path: Path, error: Error) -> JidomemError:
    """Return what *error* says of the file at *path*."""
    from sqlite3 import SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR, SQLITE_LOCKED

    code = _code(error)
    if code in (SQLITE_BUSY, SQLITE_LOCKED):
        return Busy(f"another process has written to {path} for {WAIT:g} s", hint="ask again in a moment")
    if code in (*_CLOSED, SQLITE_FULL, SQLITE_IOERR):
        return Failed(f"{path}: {error}", hint=f"let this user write there, and look at the disk: df {path.parent}")
    return _not_ours(path, str(error))


def _not_ours(path: Path, why: str) -> Failed:
    return Failed(f"{path}: {why}", hint=f"put it aside: mv {path} {path}.old", code="invalid_config")
