"""One SQLite file below `cache/`, which says what form it has and where it was made.

The files of one folder below `cache/`, shared by all processes and thrown away where anything is amiss with one.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Generic, TypeVar
from weakref import finalize

from jidomem.base import disk, files
from jidomem.base.files import enable_wal
from jidomem.errors import Busy, Failed

T = TypeVar("T")


#: So many values are given to one statement.
AT_ONCE = 500


def several(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield *values* as many at a time as one statement may be given.

    >>> [len(step) for step in several(range(501))]
    [500, 1]
    """
    return (values[at : at + AT_ONCE] for at in range(0, len(values), AT_ONCE))


class CacheDatabase:
    """The file at *path*, which is made when it is not there; nothing in it is read before it `fits`.

    Its number is *marker*, that of the place where it was made.
    """

    #: How a file is written: one of another form is not read.
    FORM: ClassVar[int]
    TABLES: ClassVar[str]

    def __init__(self, path: str, wait: float, marker: int = 0) -> None:
        """Open the file; another process is waited for so many seconds."""
        self.path = path
        self._marker = marker
        self._store = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
        finalize(self, self._store.close)  # also where what follows fails
        enable_wal(self._store, wait)
        self._store.execute("PRAGMA synchronous=NORMAL")
        self._store.execute("PRAGMA cache_size=-16000")

    def fits(self) -> bool:
        """Return whether the file is of this form, and made here; an empty one is given both."""
        if self._is_of_form():
            return True
        with self.writing():
            if self._store.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
                return self._is_of_form()
            for statement in filter(str.strip, self.TABLES.split(";\n")):
                self._store.execute(statement)
            self.begun()
            self._store.execute(f"PRAGMA application_id = {self._marker}")
            self._store.execute(f"PRAGMA user_version = {self.FORM}")
        return True

    def begun(self) -> None:
        """Set the metadata of a file that was just made."""

    def _is_of_form(self) -> bool:
        form = [self._store.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")]
        return form == [self.FORM, self._marker]

    def close(self) -> None:
        """Let go of the file."""
        self._store.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the turn to write; what is written is kept at the end, whole, or not at all."""
        self._store.execute("BEGIN IMMEDIATE")
        yield from self._ended()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state, whatever others write meanwhile."""
        self._store.execute("BEGIN")
        yield from self._ended()

    def _ended(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._store.in_transaction:
                self._store.execute("ROLLBACK")
            raise
        self._store.execute("COMMIT")

    def ask(self, question: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows that answer a question in SQL."""
        return iter(self._store.execute(question, values))

    def metadata(self, name: str) -> Any:
        """Return the metadata of that name, None if there is none."""
        row = self._store.execute("SELECT value FROM metadata WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_metadata(self, **values: Any) -> None:
        """Set each of *values* as the metadata of its name."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._store.executemany("INSERT OR REPLACE INTO metadata VALUES (?, ?)", rows)


F = TypeVar("F", bound=CacheDatabase)


#: Seconds one process waits for another that writes, and it may be all there is.
WAIT = 60.0
#: How often a file is made anew before it is given up.
TRIES = 4
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM,
)  # fmt: skip


class CacheInvalid(Exception):
    """A file is to be made anew, for the reason given."""


class CacheFolder(Generic[F]):
    """The open files of a folder, each by its name.

    Any thread may ask; of one file one at a time is served.
    """

    def __init__(self, folder: Path, what: str, made: Callable[[str, float, int], F]) -> None:
        """Keep them in *folder*, which is made; *what* they are is told in errors, and *made* opens or makes one."""
        self.folder = folder
        self._what = what
        self._made = made
        self._open: dict[str, F] = {}
        self._places: dict[str, tuple[int, int] | None] = {}
        self._unwritable: set[str] = set()
        self._turns: dict[str, RLock] = {}

    def use(self, name: str, use: Callable[[F, str], T]) -> T:
        """Return what *use* makes of a file, and of why it was made anew, where it was.

        It is made again if *use* raises CacheInvalid or the file is damaged, in memory if nothing can be written; then
        *use* is called again. Raises Busy while another process writes for too long.
        """
        because = "there was none"
        with self.turn(name):
            for _ in range(TRIES):
                try:
                    return use(self.opened(name), because)
                except CacheInvalid as invalid:
                    because = str(invalid)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # its words may quote what was damaged
                    because = self._reason(name, error)
                try:
                    self.forget(name)
                except OSError:
                    self._unwritable.add(name)
        hint = "look at the disk: df, and its health"
        raise Failed(f"the {self._what} of {name} cannot be kept: {because}", hint=hint)

    def opened(self, name: str) -> F:
        """Return a file, opened again if another process has deleted the open one; raises CacheInvalid."""
        path = self.path(name)
        if name in self._open and self._places[name] not in (None, _place(path)):
            self.let_go(name)
        if name not in self._open and name in self._unwritable:
            self._open[name], self._places[name] = self._made(":memory:", WAIT, 0), None
        elif name not in self._open:
            try:
                self._open[name], self._places[name] = self._at(path)
            except OSError as error:
                self._unwritable.add(name)
                raise CacheInvalid("nothing can be written") from error
        if not self._open[name].fits():
            raise CacheInvalid("it was of another form, or made elsewhere")
        return self._open[name]

    def is_open(self, name: str) -> bool:
        """Return whether this process has a file open."""
        return name in self._open

    def forget(self, name: str) -> None:
        """Throw a file away, whoever uses it; what is asked next makes it anew. Raises OSError where it stays."""
        with self.turn(name):
            self.let_go(name)
            path = self.path(name)
            with suppress(FileNotFoundError), self._alone():
                for end in ("-wal", "-shm", ""):  # what is left of a file must not be taken for part of the next one
                    path.with_name(path.name + end).unlink(missing_ok=True)

    def forget_all(self, beginning: str = "") -> None:
        """Throw every file away whose name has this *beginning*; raises Failed where one stays."""
        for name in (name for name in self.names() if name.startswith(beginning)):
            try:
                self.forget(name)
            except OSError as error:
                hint = f"remove it: rm -r {self.folder}"
                raise Failed(f"{self.path(name)} cannot be removed: {error.strerror}", hint=hint) from error

    def names(self) -> list[str]:
        """Return the names of the files that are there."""
        return sorted(path.stem for path in self.folder.glob("*.sqlite"))

    def size(self, name: str) -> int:
        """Return how many bytes a file has, with what is beside it; raises OSError."""
        return sum(part.stat().st_size for part in self.folder.glob(f"{name}.sqlite*"))

    def let_go(self, name: str) -> None:
        """Close a file that is open."""
        file = self._open.pop(name, None)
        self._places.pop(name, None)
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()

    def close(self) -> None:
        """Let go of all files."""
        for name in [*self._open]:
            with self.turn(name):
                self.let_go(name)

    def turn(self, name: str) -> RLock:
        """Return what one thread holds that asks for, opens or throws away a file."""
        return self._turns.setdefault(name, RLock())

    def path(self, name: str) -> Path:
        """Return where a file is."""
        return self.folder / f"{name}.sqlite"

    def _at(self, path: Path) -> tuple[F, tuple[int, int]]:
        """Return the file at *path*, opened or made, and which it is; raises OSError where none can be written."""
        disk.make_folders(self.folder)
        with self._alone():  # nobody throws it away between this file and those beside it
            if _is_emptied(path):
                raise CacheInvalid("it was emptied")
            if not path.exists():  # SQLite would make it by the umask, and those beside it like it
                files.lay_file(path)
            return self._made(str(path), WAIT, disk.number(disk.create_local_marker(self.folder))), _place(path)

    def _reason(self, name: str, error: Exception) -> str:
        """Return why a file is made anew after *error*, in memory where nothing can be written; raises Busy, Failed."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _BUSY:
            raise Busy(f"another process takes in the {self._what} of {name}", hint="ask again in a moment") from error
        if "no such module" in str(error):
            hint = "use a Python whose SQLite has FTS5"
            raise Failed("this SQLite has no full text search", hint=hint, code="missing_extra") from error
        if code in _UNWRITABLE:
            self._unwritable.add(name)
            return "nothing can be written"
        return f"it was damaged: {error}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock under which files are opened and thrown away, for a moment."""
        descriptor = disk.open_file(self.folder / f"{self.folder.name}.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_emptied(path: Path) -> bool:
    """Return whether a file has nothing in it any more: who opens it would wait for those who have it open."""
    return path.is_file() and path.stat().st_size == 0


def _place(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
