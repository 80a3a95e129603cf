"""The working state of a root, taken along where that moves."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from pathlib import Path

from jidomem.errors import Failed
from jidomem.journal.writing import move, prepare, writing
from jidomem.runtime.state import FILE, State

#: Beside a state that was brought: its digest then, so that one which was used since is not thrown away.
_CAME = FILE.with_name("came")


def held_state(root: Path) -> bytes | None:
    """Return the working state of *root* as it is at this moment, as the file it would be; None where there is none."""
    state = State(root, "")
    try:
        with state.reading() as store:
            if store is None:
                return None
            with sqlite3.connect(":memory:") as copy:
                store.backup(copy)
                copy.execute("PRAGMA journal_mode=MEMORY")
                return bytes(copy.serialize())
    finally:
        state.close()


def copied(state: bytes | None, root: Path, *, mark: bool = True) -> str:
    """Return `brought` once *root* has the working state *state*, `none` where there is none to bring.

    It is `kept` where the root has one of its own, which is not one that was brought before and not used since.
    """
    if state is None:
        return "none"
    path, came = root / FILE, root / _CAME
    if path.exists() and not _is_unused(path, came):
        return "kept"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}", hint="let this user write there", code="write_failed") from error
    with writing(str(path)):
        if mark:
            _put(came, _digest(state).encode())
        _put(path, state)
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
