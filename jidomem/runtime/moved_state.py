"""The working state of a root, taken along where that moves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jidomem import ownership
from jidomem.errors import Failed, InvalidRequest
from jidomem.journal.writing import move, prepare, writing
from jidomem.providers.kv import TABLES as KV
from jidomem.runtime import agent, read_log
from jidomem.runtime.memoryos import jobs, kept, notes
from jidomem.runtime.state import FILE, State

if TYPE_CHECKING:
    from jidomem.shared.postgres_state import PostgresState

#: Beside a state that was brought: its digest then, so that one which was used since is not thrown away.
_CAME = FILE.with_name("came")


@dataclass(frozen=True, slots=True)
class InDatabase:
    """The working state that lies in PostgreSQL, at an address."""

    address: str


Where = Path | InDatabase


def held_state(where: Where) -> bytes | None:
    """Return the working state of a root as it is at this moment, as the file it would be; None where there is none."""
    if isinstance(where, InDatabase):
        from jidomem.shared.postgres_copy import export_state

        with _open(where) as held, TemporaryDirectory() as folder:
            file = Path(folder, "state")
            return file.read_bytes() if export_state(held, file, _tables()) else None
    state = State(where, "")
    try:
        with state.reading() as store:
            if store is None:
                return None
            with closing(sqlite3.connect(":memory:")) as copy:
                store.backup(copy)
                return bytes(copy.serialize())
    finally:
        state.close()


@contextmanager
def _open(where: InDatabase) -> Iterator[PostgresState]:
    from jidomem.shared.postgres_state import PostgresState  # its package is an extra

    state = PostgresState(where.address)
    try:
        yield state
    finally:
        state.close()


def _tables() -> str:
    """Return the script that makes all tables of a working state."""
    return "".join((agent.TABLES, kept.TABLES, notes.TABLES, jobs.TABLES, KV, read_log.TABLES))


def copied(state: bytes | None, where: Where, *, mark: bool = True) -> str:
    """Return `brought` once the root has the working state *state*, `none` where there is none to bring.

    It is `kept` where the root has one of its own, which is not one that was brought before and not used since. Raises
    Failed `write_failed`.
    """
    if state is None:
        return "none"
    if isinstance(where, InDatabase):
        return _imported(state, where)
    path, came = where / FILE, where / _CAME
    if path.exists() and not _is_unused(path, came):
        return "kept"
    try:
        ownership.make_folders(path.parent)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", hint="let this user write there", code="write_failed") from error
    with writing(str(path)):
        if mark:
            _put(came, _digest(state).encode())
        _put(path, state)
    return "brought"


def _imported(state: bytes, where: InDatabase) -> str:
    """Put a working state into a database in which nothing was kept but what came so, else leave that as it is."""
    from jidomem.shared.postgres_copy import import_state

    with _open(where) as there, TemporaryDirectory() as folder:
        file = Path(folder, "state")
        file.write_bytes(state)
        try:
            import_state(there, file)
        except InvalidRequest:
            return "kept"
    return "brought"


def _is_unused(path: Path, came: Path) -> bool:
    """Return whether a state is, to the byte, the one that came."""
    beside = path.with_name(f"{path.name}-wal")
    if not came.exists() or (beside.exists() and beside.stat().st_size):
        return False
    return _digest(path.read_bytes()) == came.read_text("ascii", "replace")


def _put(path: Path, data: bytes) -> None:
    prepare(f"{path}.lock", data)
    move(f"{path}.lock", str(path))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=32).hexdigest()
