"""The files of a root: each is created with the owner, group and mode that its folder passes on.

The umask of the process that happens to come first would lock out the other users of a shared
root. A file gets the mode bits of its folder except the executable ones, the group of the folder
and, created by uid 0, its owner. A folder that a group may write in gets the setgid bit as well,
so that files created there by a library have that group too.

The module also has the one file lock and the one atomic write, the paths of the shipped data
files (ontology, shapes, queries, own memory), and SQLite's write-ahead log.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from shlex import quote
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, BinaryIO

from jidomem.errors import Failed

if TYPE_CHECKING:
    from sqlite3 import Connection

_NEW = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_SHARED = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
#: So many seconds after it was made a file may still have the mode of a umask, for the moment until it has its own.
_YOUNG = 0.5


def create_file(path: str | Path, flags: int = os.O_WRONLY) -> int:
    """Return the descriptor of a new file; raises FileExistsError where there is one."""
    descriptor = _opened(path, flags | _NEW)
    try:
        inherit(descriptor, os.path.dirname(path) or ".")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_file(path: str | Path, flags: int = os.O_RDWR) -> int:
    """Return the descriptor of a file that several processes open, made where it is not there."""
    while True:
        with suppress(FileNotFoundError):
            return _opened(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        with suppress(FileExistsError):
            return create_file(path, flags)


def acquire_lock(descriptor: int, *, wait: bool = True, shared: bool = False) -> bool:
    """Return whether this process has the kernel lock of an open file; it goes when the file is closed.

    Without *wait*, an exclusive lock that another process has is not waited for. Raises OSError
    where the file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def file_lock(path: str | Path, mode: int | None = None) -> Iterator[None]:
    """Hold the exclusive kernel lock of the file at *path*, made where there is none; wait for it.

    A new file has *mode*, or what its folder passes on.
    """
    descriptor = open_file(path) if mode is None else os.open(path, _SHARED, mode)
    try:
        acquire_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def atomic_file(
    path: str | Path, mode: int | None = None, *, durable: bool = False, replace: bool = True
) -> Iterator[BinaryIO]:
    """Give an open draft that takes the name *path* in one step when the block ends without error.

    A reader finds the old file or the whole new one; a failure leaves the old one and no draft.
    The file is created with *mode*, or has what its folder passes on. A *durable* file and its name
    outlast a power failure. Raises FileExistsError for a file that is there, unless it may *replace* it.
    """
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.{token_hex(4)}.lock")  # git ignores locks in a root
    descriptor = create_file(draft) if mode is None else os.open(draft, os.O_WRONLY | _NEW, mode)
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
        flush(folder or ".")


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file in one step, for a cache or a copy: a power failure may lose it."""
    with atomic_file(path) as file:
        file.write(data)


def flush(path: str | Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: str | Path, data: bytes) -> None:
    """Write a new file, in the place of any that is there."""
    while True:
        try:
            with os.fdopen(create_file(path), "wb") as file:
                file.write(data)
            return
        except FileExistsError:
            with suppress(FileNotFoundError):
                os.unlink(path)


def lay_file(path: str | Path) -> None:
    """Lay an empty file where there is none, for a library that opens it; raises OSError where none can be written.

    It has its mode before it has its name, and this process never has it open: the end of that would take every lock
    that another thread holds on it.
    """
    with suppress(FileExistsError), atomic_file(path, replace=False):
        pass


def make_folder(path: str | Path) -> None:
    """Make a folder where there is none."""
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        inherit_at(path)


def make_folders(path: str | Path) -> None:
    """Make a folder and those above it, where there are none."""
    if not os.path.isdir(path):
        make_folders(os.path.dirname(path) or ".")
        make_folder(path)


def inherit_at(path: str | Path) -> None:
    """Let a file or folder that this process just made have what its folder passes on."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, _FOLDER if os.path.isdir(path) else os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            inherit(descriptor, os.path.dirname(path) or ".")
        finally:
            os.close(descriptor)


def inherit(descriptor: int, folder: str) -> None:
    """Let an open file or folder that this process just made have what *folder* passes on.

    A file whose group this user may not set gives its group no more rights than everybody has.
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
    if group != above.st_gid:
        mode = mode & 0o707 | (mode & 0o7) << 3
    elif stat.S_ISDIR(own.st_mode) and mode & stat.S_IWGRP:
        mode |= stat.S_ISGID
    if mode != stat.S_IMODE(own.st_mode):
        with suppress(OSError):  # a file system without modes
            os.fchmod(descriptor, mode)


def unwritable(paths: Iterable[str | Path]) -> list[str]:
    """Return which of *paths* are there and may not be read and written by this user."""
    return [str(path) for path in paths if not _is_writable(path)]


def obstacle(path: str | Path) -> list[str]:
    """Return the paths that this user may not write to write *path*: the file or its nearest existing folder."""
    above = next((each for each in (str(path), *map(str, Path(path).parents)) if os.path.exists(each)), "/")
    return unwritable([above] if os.path.isdir(above) else [os.path.dirname(above) or ".", above])


def check_writable(paths: Iterable[str | Path]) -> None:
    """Raise Failed where one of *paths* is there and may not be read and written by this user."""
    if closed := unwritable(paths):
        raise Failed(describe(closed), hint=repair(closed))


def describe(paths: Iterable[str | Path]) -> str:
    """Return the message that this user may not use *paths*, with their owners and modes."""
    owners = [(path, os.stat(path)) for path in paths]
    listed = (f"{path} (mode {stat.S_IMODE(own.st_mode):04o}, {own.st_uid}:{own.st_gid})" for path, own in owners)
    return f"uid {os.geteuid()} may not read and write {', '.join(listed)}"


def repair(paths: Iterable[str | Path]) -> str:
    """Return the command that lets this user read and write *paths*, files or folders that are there.

    Their owner keeps them: a group of this user may write them, too. Only what another user made in a folder of this
    user is handed over.
    """
    commands = dict[str, list[str]]()
    for path in paths:
        for command in _repairs(str(path)):
            commands.setdefault(command, []).append(quote(str(path)))
    return " && ".join(f"{command} {' '.join(of)}" for command, of in commands.items())


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
    else:  # of another user, who goes on writing it
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


def _opened(path: str | Path, flags: int) -> int:
    """Open a file as *flags* say; one that was just made, or its folder, is given a moment to get its mode."""
    until = monotonic() + _YOUNG
    while True:
        try:
            return os.open(path, flags, 0o666)
        except PermissionError:
            if monotonic() > until or not (_is_young(path) or _is_young(os.path.dirname(path) or ".")):
                raise
        sleep(0.005)


def _is_young(path: str | Path) -> bool:
    with suppress(OSError):
        return 0 <= time() - os.stat(path, follow_symlinks=False).st_ctime < _YOUNG
    return False


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
    """Return the memory root that holds jidomem's own decisions: in the wheel, or beside the package in a checkout."""
    shipped = _PACKAGE / "own_memory"
    return shipped if shipped.is_dir() else _PACKAGE.parent / ".jidomem"


def enable_wal(store: Connection, wait: float) -> None:
    """Let *store* log ahead what is written; others who open the file at once are waited for so many seconds.

    SQLite itself waits for nobody there: https://sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode.
    Raises sqlite3.OperationalError where that takes longer, or the file cannot be written.
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
