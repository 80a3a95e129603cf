"""SQLite files of a folder below `cache/`: shared by all processes, discarded and built again if anything is wrong.

Each file records its format version and a marker of the machine and folder where it was made.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import ENOENT, ENOTEMPTY
from functools import lru_cache
from pathlib import Path
from threading import Lock, RLock
from typing import Any, ClassVar, Generic, TypeVar
from weakref import finalize

from jidomem.base import disk, files
from jidomem.base.files import enable_wal
from jidomem.errors import Busy, Failed

T = TypeVar("T")


#: The most values of one SQL statement.
CHUNK = 500


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield *values* in chunks of CHUNK.

    >>> [len(step) for step in chunks(range(501))]
    [500, 1]
    """
    return (values[at : at + CHUNK] for at in range(0, len(values), CHUNK))


def project_of(path: Path) -> str:
    """Return the project whose memories a file below `cache/` is derived from, by its name.

    >>> [project_of(Path(name)) for name in ("text/p-1.history.sqlite", "guard/p-1.json", "guard/p-1-0a1b.sqlite")]
    ['p-1', 'p-1', 'p-1']
    """
    name = path.name.partition(".")[0]
    return name.rpartition("-")[0] if path.parent.name == "guard" and path.suffix == ".sqlite" else name


def delete_folder(folder: Path, keeps: Callable[[Path], bool] = lambda path: False) -> None:
    """Delete *folder*, if it exists, with its files, or the files but those it *keeps*; raises Failed if one stays."""
    from shutil import rmtree  # slow to load

    faults = list[Failed]()

    def note(_: object, path: str, fault: tuple[type[BaseException], BaseException, object]) -> None:
        if getattr(fault[1], "errno", None) not in (ENOENT, ENOTEMPTY):  # another process deletes, or adds a new file
            faults.append(_undeleted(path, fault[1], folder))

    others = [path for path in folder.glob("*") if not keeps(path)]
    if any(map(keeps, folder.glob("*"))):
        for path in others:
            try:
                path.unlink()
            except OSError as error:
                note(None, str(path), (type(error), error, None))
    else:
        rmtree(folder, onerror=note)
    if faults:
        raise faults[0]


def _undeleted(path: object, error: BaseException, folder: Path) -> Failed:
    reason = getattr(error, "strerror", None) or error
    return Failed(f"{path} cannot be removed: {reason}", hint=f"remove it: rm -r {folder}")


@lru_cache
def _tables(tables: str, form: int) -> sqlite3.Connection:
    """Return a database in memory with *tables*, to be copied to new files: that takes half as long as making them."""
    store = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    store.executescript(f"{tables}PRAGMA user_version = {-form};")
    return store


_COPYING = Lock()


class CacheDatabase:
    """The SQLite file at *path*, made if missing; call `fits` before anything else.

    Its `application_id` is *marker*, the number of the machine and folder where it was made.
    """

    #: The format version; a file of another version is not read.
    FORM: ClassVar[int]
    TABLES: ClassVar[str]
    #: Former format versions, each with the statements that make a file of this version of such a file.
    UPGRADES: ClassVar[Mapping[int, str]] = {}

    def __init__(self, path: str, wait: float, marker: int = 0) -> None:
        """Open the file; *wait* is the busy timeout in seconds."""
        self.path = path
        self._marker = marker
        self._store = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
        # also if the rest of this method fails; at the end of the process a thread may still use it
        finalize(self, self._store.close).atexit = False
        enable_wal(self._store, wait)
        self._store.execute("PRAGMA synchronous=NORMAL")
        self._store.execute("PRAGMA cache_size=-16000")
        if self._form() == (0, 0):  # an empty file
            with _COPYING:  # in one transaction; the caller opens a new file under a lock
                _tables(self.TABLES, self.FORM).backup(self._store)

    def fits(self, because: str = "") -> bool:
        """Return whether the file is of this format and was made here.

        An empty file is initialised first, with the reason why it is made; one of a former format that has an upgrade
        is upgraded.
        """
        if self._is_current():
            return True
        with self.writing():
            form, marker = self._form()
            is_new, upgrade = form == -self.FORM, self.UPGRADES.get(form) if marker == self._marker else None
            if upgrade is None and not is_new:
                return self._is_current()
            for statement in filter(str.strip, (upgrade or "").split(";\n")):
                self._store.execute(statement)
            self.initialise()
            if is_new:
                self.set_metadata(because=because)
            self._store.execute(f"PRAGMA application_id = {self._marker}")
            self._store.execute(f"PRAGMA user_version = {self.FORM}")
        return True

    def initialise(self) -> None:
        """Set the metadata of a new or upgraded file."""

    def _is_current(self) -> bool:
        return self._form() == (self.FORM, self._marker)

    def _form(self) -> tuple[int, int]:
        """Return the format version and the marker of the file."""
        form, marker = (self._store.execute(f"PRAGMA {name}").fetchone()[0]
                        for name in ("user_version", "application_id"))  # fmt: skip
        return form, marker

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a write transaction: committed at the end, rolled back on an exception."""
        self._store.execute("BEGIN IMMEDIATE")
        yield from self._transaction()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run a read transaction, which sees one state of the file."""
        self._store.execute("BEGIN")
        yield from self._transaction()

    def _transaction(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._store.in_transaction:
                self._store.execute("ROLLBACK")
            raise
        self._store.execute("COMMIT")

    def ask(self, question: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of an SQL query."""
        return iter(self._store.execute(question, values))

    @property
    def state(self) -> tuple[int, int]:
        """Return a value that differs after a change of the file, by this process or another one."""
        return self._store.total_changes, self._store.execute("PRAGMA data_version").fetchone()[0]

    def metadata(self, name: str) -> Any:
        """Return the metadata of that name, None if there is none."""
        row = self._store.execute("SELECT value FROM metadata WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_metadata(self, **values: Any) -> None:
        """Set each of *values* as the metadata of its name."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._store.executemany("INSERT OR REPLACE INTO metadata VALUES (?, ?)", rows)


F = TypeVar("F", bound=CacheDatabase)


#: Busy timeout in seconds: another process may fill a whole file in one transaction.
BUSY_TIMEOUT = 60.0
#: The reason to build a file that did not exist.
ABSENT = "there was none"
#: Attempts to build a file before `use` fails.
TRIES = 4
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM,
)  # fmt: skip


class CacheInvalid(Exception):
    """The file must be discarded and built again; the text is the reason."""


class CacheFolder(Generic[F]):
    """The open files of a folder, by name.

    Thread-safe: each file has a lock, so it is used by one thread at a time.
    """

    def __init__(self, root: Path, folder: Path, content: str, factory: Callable[[str, float, int], F]) -> None:
        """Use *folder* of *root*, made if missing; *content* names it in errors, *factory* opens or makes a file.

        The files of a root that does not exist are in memory until it does: only a write creates a root.
        """
        self._root, self.folder = root, root / folder
        self._content = content
        self._factory = factory
        self._open: dict[str, F] = {}
        self._file_ids: dict[str, tuple[int, int] | None] = {}
        self._unwritable: set[str] = set()
        self._locks: dict[str, RLock] = {}

    def use(self, name: str, use: Callable[[F], T]) -> T:
        """Return `use(file)`; the metadata `because` of the file is the reason why it was built.

        If *use* raises CacheInvalid or the file is damaged, the file is discarded and *use* is called again with a new
        one, in memory if the disk cannot be written. Raises Busy if another process writes for too long.
        """
        reason = ABSENT
        with self.lock(name):
            for _ in range(TRIES):
                try:
                    return use(self.open_file(name, reason))
                except CacheInvalid as invalid:
                    reason = str(invalid)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # its text may quote damaged bytes
                    reason = self._reason(name, error)
                try:
                    self.discard(name)
                except OSError:
                    self._unwritable.add(name)
        hint = "check the disk: df, and its health"
        raise Failed(f"the {self._content} of {name} cannot be stored: {reason}", hint=hint)

    def open_file(self, name: str, reason: str = ABSENT) -> F:
        """Return a file, opened again if another process has replaced it on disk; raises CacheInvalid.

        A file that does not exist is made for this *reason*.
        """
        path, in_memory = self.path(name), name in self._unwritable or not self.has_root()
        if name in self._open and self._file_ids[name] != (None if in_memory else _file_id(path)):
            self.close_file(name)
        if name not in self._open and in_memory:
            self._open[name], self._file_ids[name] = self._factory(":memory:", BUSY_TIMEOUT, 0), None
        elif name not in self._open:
            try:
                self._open[name], self._file_ids[name] = self._open_at(path)
            except OSError as error:
                self._unwritable.add(name)
                raise CacheInvalid("nothing can be written") from error
        if not self._open[name].fits(reason):
            raise CacheInvalid("it was of another form, or made elsewhere")
        return self._open[name]

    def has_root(self) -> bool:
        """Return whether the root exists."""
        return self._root.is_dir()

    def is_open(self, name: str) -> bool:
        """Return whether this process has a file open."""
        return name in self._open

    def discard(self, name: str) -> None:
        """Delete a file even if it is in use; the next read builds it again. Raises OSError if it cannot be deleted."""
        with self.lock(name):
            self.close_file(name)
            path = self.path(name)
            with suppress(FileNotFoundError), self._folder_lock():
                for end in ("-wal", "-shm", ""):  # a left-over log must not be applied to the next file
                    path.with_name(path.name + end).unlink(missing_ok=True)

    def discard_all(self, project: str = "") -> None:
        """Delete all files, or those of one *project*; raises Failed if one cannot be deleted."""
        for name in (name for name in self.names() if project in ("", project_of(self.path(name)))):
            try:
                self.discard(name)
            except OSError as error:
                raise _undeleted(self.path(name), error, self.folder) from error

    def names(self) -> list[str]:
        """Return the names of the files that exist."""
        return sorted(path.stem for path in self.folder.glob("*.sqlite"))

    def size(self, name: str) -> int:
        """Return the bytes of a file and its log; raises OSError."""
        return sum(part.stat().st_size for part in self.folder.glob(f"{name}.sqlite*"))

    def close_file(self, name: str) -> None:
        """Close a file if it is open."""
        file = self._open.pop(name, None)
        self._file_ids.pop(name, None)
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()

    def close(self) -> None:
        """Close all files."""
        for name in [*self._open]:
            with self.lock(name):
                self.close_file(name)

    def lock(self, name: str) -> RLock:
        """Return the lock of a file: a thread acquires it to read, open or delete the file."""
        return self._locks.setdefault(name, RLock())

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / f"{name}.sqlite"

    def _open_at(self, path: Path) -> tuple[F, tuple[int, int]]:
        """Open or make the file at *path*, return it with its device and inode; raises OSError if it cannot be made."""
        disk.make_folders(self.folder)
        with self._folder_lock():  # no process deletes the file while its log is opened
            if _is_emptied(path):
                raise CacheInvalid("it was emptied")
            if not path.exists():  # SQLite would take its permissions, and those of the log, from the umask
                files.create_missing_file(path)
            return self._factory(
                str(path), BUSY_TIMEOUT, disk.digest31(disk.create_local_marker(self.folder))
            ), _file_id(path)

    def _reason(self, name: str, error: Exception) -> str:
        """Return the reason to build a file again after *error*, in memory if unwritable; raises Busy, Failed."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in _BUSY:
            raise Busy(
                f"another process is writing the {self._content} of {name}", hint="ask again in a moment"
            ) from error
        if "no such module" in str(error):
            hint = "use a Python whose SQLite has FTS5"
            raise Failed("this SQLite has no full text search", hint=hint, code="missing_extra") from error
        if code in _UNWRITABLE:
            self._unwritable.add(name)
            return "nothing can be written"
        return f"it was damaged: {error}"

    def _folder_lock(self) -> AbstractContextManager[None]:
        """Return the lock under which processes open and delete the files of this folder."""
        return files.file_lock(self.folder / f"{self.folder.name}.lock")


def _is_emptied(path: Path) -> bool:
    """Return whether a file has no bytes: opening it would wait for the processes that have it open."""
    return path.is_file() and path.stat().st_size == 0


def _file_id(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return status.st_dev, status.st_ino
