"""Write the files of a client: each whole or not at all, and none that lies elsewhere than it says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from jidomem.errors import Failed

_MODE = 0o666


def write(path: Path, text: str | None, mode: int | None = None) -> None:
    """Put *text* into the file at *path*, or take the file away where that is None; raises Failed `write_failed`.

    With a file goes the folder it leaves empty.
    A link is followed, so that it stays one. The mode of the file stays, too, unless another is given.
    """
    path = Path(os.path.realpath(path))
    try:
        if text is None:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # it holds something else
                path.parent.rmdir()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{token_hex(4)}")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
                file.write(text.encode("utf-8"))
                if mode is not None or path.exists():
                    os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode) if mode is None else mode)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error}", hint="make that folder one you may write to") from error


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
