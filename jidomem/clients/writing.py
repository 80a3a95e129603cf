"""Write the files of a client: each whole or not at all, and none that lies elsewhere than it says."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from jidomem.errors import Failed

_MODE = 0o666
_ROOM = "make room on that disk, and do it again"
_NEEDS = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: "remount that disk writable, or name a place elsewhere",
}


def write(path: Path, text: str | None, mode: int | None = None) -> None:
    """Put *text* into the file at *path*, or take the file away where that is None; raises Failed `write_failed`.

    With a file goes the folder it leaves empty. Otherwise it is done as `put` does.
    """
    path = Path(os.path.realpath(path))
    try:
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            put(path, text.encode("utf-8"), mode)
            return
        path.unlink(missing_ok=True)
        with suppress(OSError):  # it holds something else
            path.parent.rmdir()
    except OSError as error:
        detail = f"{path} cannot be written: {error.strerror}"
        raise Failed(detail, hint=way_out(error, "make that folder one you may write to")) from error


def put(path: Path, data: bytes, mode: int | None = None) -> None:
    """Put *data* into the file at *path*, all of it or nothing, which raises OSError.

    A link is followed, so that it stays one. The mode of the file stays, too, unless another is given.
    """
    path = Path(os.path.realpath(path))
    draft = path.with_name(f"{path.name}.{token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
            if mode is not None or path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode) if mode is None else mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def way_out(error: OSError, otherwise: str) -> str:
    """Return what helps where a file could not be written: what the disk needs, else *otherwise*."""
    return _NEEDS.get(error.errno or 0, otherwise)


def check_inside(folder: Path, paths: Iterable[Path]) -> None:
    """Raise Failed where a link leads one of *paths* out of *folder*: a clone brings links to wherever it likes."""
    top = os.path.realpath(folder)
    for path in paths:
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(top):
            raise Failed(
                f"{path} leads to {real}, out of {folder}",
                hint=f"look at it, then take it away: ls -ld {path}",
                code="invalid_config",
            )
