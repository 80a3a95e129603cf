"""Moves: a root is moved to another place, backed up in one file, and restored from it.

The working state and the tokens of the root move with it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from jidomem.base import disk
from jidomem.base.disk import LockedFile, move, prepare, writing
from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.extras.memoryos import jobs, storage
from jidomem.extras.servers import addresses
from jidomem.extras.servers.log import StreamExtent
from jidomem.extras.transfer import endpoints
from jidomem.extras.transfer.endpoints import CopiedStream, FolderEnd, LogEnd, Progress, TransferEndpoint, copy_streams
from jidomem.journal.journal import Stream
from jidomem.providers.stores import TABLES as KV
from jidomem.runtime import agent_memory, logs
from jidomem.runtime.location import open_log
from jidomem.runtime.settings import address_of, environment, find, own_config
from jidomem.runtime.state import FILE, State
from jidomem.runtime.tokens import OwnTokens, SharedTokens
from jidomem.runtime.user_config import ApiToken

#: The script that makes all tables of a working state.
_TABLES = "".join(
    (agent_memory.TABLES, storage.TIER_TABLES, storage.NOTE_TABLES, jobs.TABLES, KV, logs.READ_LOG_TABLES)
)
#: A file beside an imported state with its digest at the import, so that a state used since then is not replaced.
_IMPORT_MARK = FILE.with_name("came")


class DatabasePlace(NamedTuple):
    """The place of a working state in PostgreSQL: its address."""

    address: str


Where = Path | DatabasePlace


def state_snapshot(where: Where) -> bytes | None:
    """Return the present working state of a root as the bytes of an SQLite file; None if there is none."""
    if isinstance(where, DatabasePlace):
        with _open(where) as (postgres, source), TemporaryDirectory() as folder:
            file = Path(folder, "state")
            return file.read_bytes() if postgres.export_state(source, file, _TABLES) else None
    with closing(State(where, "")) as state:
        return state.snapshot()


@contextmanager
def _open(where: DatabasePlace) -> Iterator[tuple[Any, Any]]:
    from jidomem.extras.servers import postgres_state  # psycopg is an extra

    state = postgres_state.PostgresState(where.address)
    try:
        yield postgres_state, state
    finally:
        state.close()


def copied(state: bytes | None, where: Where, *, mark: bool = True) -> str:
    """Store the working state *state* at the root; return `brought`, or `none` if *state* is None.

    It returns `kept` and changes nothing if the root has a state of its own that was used. Raises Failed
    `write_failed`.
    """
    if state is None:
        return "none"
    if isinstance(where, DatabasePlace):
        return _imported(state, where)
    path, mark_file = where / FILE, where / _IMPORT_MARK
    if path.exists() and not _is_unused(path, mark_file):
        return "kept"
    try:
        disk.make_folders(path.parent)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", hint="let this user write there", code="write_failed") from error
    with writing(str(path)):
        if mark:
            _write(mark_file, _digest(state).encode())
        _write(path, state)
    return "brought"


def _imported(state: bytes, where: DatabasePlace) -> str:
    """Import a working state into a database, unless that has a state of its own that was used."""
    with _open(where) as (postgres, target), TemporaryDirectory() as folder:
        file = Path(folder, "state")
        file.write_bytes(state)
        try:
            postgres.import_state(target, file)
        except InvalidRequest:
            return "kept"
    return "brought"


def _is_unused(path: Path, mark_file: Path) -> bool:
    wal = path.with_name(f"{path.name}-wal")
    if not mark_file.exists() or (wal.exists() and wal.stat().st_size):
        return False
    return _digest(path.read_bytes()) == mark_file.read_text("ascii", "replace")


def _write(path: Path, data: bytes) -> None:
    prepare(f"{path}.lock", data)
    move(f"{path}.lock", str(path))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=32).hexdigest()


def add_tokens(tokens: Iterable[ApiToken], storage: OwnTokens | SharedTokens, *, closes: bool) -> tuple[int, int]:
    """Add *tokens* to those of a root; return the number of new ones, and of other tokens that it has.

    With *closes* its servers need a token from now on, also if there is none.
    """
    present, is_closed = storage.read()
    arriving = {token.digest: replace(token, root=storage.root) for token in tokens}
    known = {token.digest for token in present}

    def added(stored: tuple[ApiToken, ...]) -> tuple[ApiToken, ...]:
        digests = {token.digest for token in stored}
        return (*stored, *(token for digest, token in arriving.items() if digest not in digests))

    if arriving.keys() - known or (closes and not is_closed):
        storage.change(added)
    return len(arriving.keys() - known), len(known - arriving.keys())


#: Seconds to wait for a shared root.
_WAIT = 10.0


class MoveReport(NamedTuple):
    """The report of a move: source, target, the verified streams, the tokens and the working state.

    `removed` are the temporary folders of killed backups and restores that it removed.
    """

    source: str
    target: str
    streams: Sequence[CopiedStream]
    state: str  # brought, none, kept: the target's own, left: at the source, as that of a whole root
    tokens: int = 0
    other_tokens: int = 0  # valid at the target, but not at the source
    removed: Sequence[str] = ()

    @property
    def grew(self) -> bool:
        """Return whether the source was written to meanwhile, so that there may be more to copy."""
        return any(each.grew for each in self.streams)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "source": self.source,
            "target": self.target,
            "streams": [{**_row(each.stream, each.extent), "came": each.came} for each in self.streams],
            "working_state": self.state,
            "tokens": self.tokens,
            "other_tokens": self.other_tokens,
            "source_grew": self.grew,
            "removed": [*self.removed],
        }


class _Place(NamedTuple):
    """A root: its end, the place of its working state, and its tokens."""

    end: TransferEndpoint
    state: Where
    tokens: OwnTokens | SharedTokens


def migrate(source: str, target: str, progress: Progress = id, *, project: str | None = None) -> MoveReport:
    """Copy *source*, which is only read, to *target*, verify both, and return the report.

    With a *project* only its streams are copied, also into a root with other projects: not the configuration, the
    tokens and the working state, which are of the whole root. A second run continues the first, or copies later
    commits. Raises NotFound if there is no root or project at the source, InvalidRequest if the target has other
    content or is the source, JournalDamaged if either fails the verification.
    """
    with _opened(source) as origin, _opened(target, creates=True) as destination:
        if origin.end.name == destination.end.name:
            raise InvalidRequest(f"{origin.end.name} is source and target", hint="name another target")
        _refuse_nothing(origin.end)
        projects = sorted({stream.project for stream in origin.end.streams()})
        if project not in (None, *projects):
            detail = f"no project {project!r} in {origin.end.name}"
            raise NotFound(detail, hint=f"there is {', '.join(projects) or 'none'}", code="unknown_project")
        # before the journal: the state refers to memories, not the other way round
        state = state_snapshot(origin.state) if project is None else None
        with _filling(f"{destination.end.name} is not complete", _CONTINUE):
            streams = copy_streams(origin.end, destination.end, progress, project=project)
        if project is not None:
            return MoveReport(origin.end.name, destination.end.name, streams, "left")
        issued, closes = origin.tokens.read()
        tokens = add_tokens(issued, destination.tokens, closes=closes)
        return MoveReport(origin.end.name, destination.end.name, streams, copied(state, destination.state), *tokens)


def backup(root: str, file: Path, progress: Progress = id) -> tuple[MoveReport, str]:
    """Write a backup of *root* into *file*; return the report and the digest of its manifest.

    The root may be written to meanwhile. Raises NotFound if there is no root, Failed if the file exists or cannot be
    written, JournalDamaged.
    """
    with _opened(root) as origin, _scratch(file) as (scratch, removed):
        _refuse_nothing(origin.end)
        folder, mode = scratch / "root", f"{origin.end.mode:04o}"
        folder.mkdir(endpoints.PRIVATE)
        with _filling(f"{file} was not written", _ROOM):
            state = copied(state_snapshot(origin.state), folder, mark=False)
            streams = copy_streams(origin.end, FolderEnd(folder), progress)
        rows = [_row(each.stream, each.extent) for each in streams]
        digest = endpoints.pack(folder, file, {"jidomem": version("jidomem"), "mode": mode, "streams": rows})
        return MoveReport(origin.end.name, str(file), streams, state, removed=removed), digest


def restore(file: Path, target: str, progress: Progress = id) -> MoveReport:
    """Restore *file* into *target*, with every digest and the chain verified, and return the report.

    Nothing is written there before the whole file was read. Raises InvalidRequest for a file that is no backup and for
    a target with other content, Failed if the file was changed, JournalDamaged.
    """
    with _opened(target, creates=True) as destination, _scratch(file) as (folder, removed):
        manifest, source = endpoints.unpack(file, folder), FolderEnd(folder)
        if [_row(stream, source.verified_chain(stream).extent()) for stream in source.streams()] != manifest["streams"]:
            raise Failed(f"{file} does not match its manifest", hint="use another copy of it")
        with _filling(f"{destination.end.name} is not complete", _CONTINUE):
            streams = copy_streams(source, destination.end, progress, _mode(manifest))
        state = copied(state_snapshot(folder), destination.state)
        return MoveReport(str(file), destination.end.name, streams, state, removed=removed)


_CONTINUE = "make room there, then run the same command again: it continues"


@contextmanager
def _filling(what: str, hint: str) -> Iterator[None]:
    """Turn the failure of a write, which is reported as that of a memory, into one that says *what*, with *hint*."""
    try:
        yield
    except Failed as error:
        if (cause := error.__cause__) is None or not isinstance(cause, OSError):
            raise
        detail = f"{what}: {': '.join(filter(None, (cause.filename, cause.strerror)))}"
        raise Failed(detail, hint=hint, code="write_failed") from cause


def _mode(manifest: Mapping[str, Any]) -> int:
    """Return the mode of the root in a backup; only its user may read one of an earlier version."""
    text = manifest.get("mode")
    if not (isinstance(text, str) and re.fullmatch("[02]?[0-7]{3}", text)):
        return endpoints.PRIVATE
    return int(text, 8) | endpoints.PRIVATE


def _row(stream: Stream, extent: StreamExtent) -> dict[str, Any]:
    return {"project": stream.project, "stream": stream.name, **asdict(extent)}


@contextmanager
def _opened(place: str, *, creates: bool = False) -> Iterator[_Place]:
    """Yield the root at *place*, a folder or an address; raise NotFound for a missing log unless this *creates* it."""
    folder, address = find(place)[0], address_of(place)
    if address is None:
        yield _Place(FolderEnd(folder), folder, OwnTokens(own_config(), folder))
        return
    is_bucket = address.startswith("s3:")  # its working state is in the copy here; a database needs no copy to be moved
    if is_bucket:
        log = open_log(address, _WAIT, creates=creates)[0]
    else:
        log = addresses.open_log(address, environment(), wait=_WAIT, creates=creates)
    with closing(log):
        yield _Place(LogEnd(log), folder if is_bucket else DatabasePlace(address), SharedTokens(log))


def _refuse_nothing(end: TransferEndpoint) -> None:
    if not end.streams() and not any(True for _ in end.files()):
        raise NotFound(f"there is no memory root at {end.name}", hint="name the folder .jidomem itself, or an address")


#: The end of the name of a temporary folder, and the whole name.
_SCRATCH = ".jidomem-scratch"
_SCRATCH_NAME = re.compile(rf"\..+\.\w{{8}}{re.escape(_SCRATCH)}", re.DOTALL)
_ROOM = "name a file in a folder this user may write to, with room for all of it twice"


@contextmanager
def _scratch(file: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield an empty temporary folder beside *file*, and the paths of those of killed processes, which are removed.

    A running process has the lock of its folder. Raises Failed if it cannot be created.
    """
    above = file.absolute().parent
    try:
        removed = [str(path) for path in sorted(above.glob(f".*{_SCRATCH}")) if _removed_left(path)]
        folder, lock = _locked_folder(f".{file.name}.", above)
    except OSError as error:
        raise Failed(f"{error.filename}: {error.strerror}", hint=_ROOM, code="write_failed") from error
    with folder as path, closing(lock):
        yield Path(path), removed


def _locked_folder(prefix: str, above: Path) -> tuple[TemporaryDirectory[str], LockedFile]:
    """Return a new temporary folder with its lock; on a file system without locks it has none, and none is removed."""
    while True:
        folder = TemporaryDirectory(prefix=prefix, suffix=_SCRATCH, dir=above, ignore_cleanup_errors=True)
        lock = LockedFile(os.open(folder.name, disk.FOLDER))
        with suppress(OSError):
            disk.acquire_lock(lock.descriptor)
        if os.path.isdir(folder.name):  # else another process removed it before it was locked
            return folder, lock
        lock.close()


def _removed_left(path: Path) -> bool:
    """Remove the temporary folder *path* of a process that is dead, and return whether it was one."""
    if not _SCRATCH_NAME.fullmatch(path.name) or path.is_symlink():
        return False
    with suppress(OSError), closing(LockedFile(os.open(path, disk.FOLDER))) as lock:
        if disk.acquire_lock(lock.descriptor, wait=False):
            shutil.rmtree(path)
            return True
    return False
