"""What a root may bring along: folders and files that lie in it, of a stated size, and nothing that leads out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from jidomem.errors import Failed

#: How many bytes all of one folder of an overlay may have.
OVERLAY = 16 * 1024 * 1024
#: How many bytes a configuration may have.
CONFIG = 1024 * 1024
_OVERLAYS = ("ontology", "shapes", "queries")
#: How the files of an overlay end that are read.
_READ = (".ttl", ".rq")
#: What is read and written below a root -> how many folders deep it is looked through here.
_DEPTHS = {"config.toml": 0, "baseline.toml": 0, "projects": 2, "index": 3, "state": 1, "cache": 2}
_DEPTHS |= dict.fromkeys(_OVERLAYS, 2)


def check_root(root: Path) -> None:
    """Raise Failed `invalid_config` where something of *root* is a symbolic link, or an overlay too large or no files.

    A clone brings links along, to wherever its author liked: what is written or thrown away would be so there.
    """
    for name, depth in _DEPTHS.items():
        found = _entries(root / name, depth)
        if name not in _OVERLAYS:
            for path in found:
                refuse_link(path)
        elif sum(_size(path) for path in found) > OVERLAY:
            raise Failed(
                f"{root / name} has more than {OVERLAY:,} bytes",
                hint="an overlay is a few terms, rules and questions: take out what is none",
                code="invalid_config",
            )


def read_config(path: Path) -> str:
    """Return the text of the configuration, or baseline, at *path*; raises OSError, ValueError and Failed."""
    refuse_link(path)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(CONFIG + 1)
    if len(data) > CONFIG:
        hint = "it has a few keys: take out what is none"
        raise Failed(f"{path} has more than {CONFIG:,} bytes", hint=hint, code="invalid_config")
    return data.decode()


def refuse_link(path: Path) -> None:
    """Raise Failed `invalid_config` where *path* is a symbolic link."""
    if path.is_symlink():
        raise Failed(
            f"{path} is a symbolic link, and nothing of a root leads out of it",
            hint=f"put what it leads to in its place, or take it away: rm {path}",
            code="invalid_config",
        )


def _entries(path: Path, depth: int) -> Iterator[Path]:
    """Yield *path*, and what is below it down to *depth*, without following a link."""
    yield path
    if depth and not path.is_symlink():
        try:
            with os.scandir(path) as found:
                names = [entry.name for entry in found]
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            yield from _entries(path / name, depth - 1)


def _size(path: Path) -> int:
    """Return the bytes of a file, none for a folder and for what is not there; raise Failed for what cannot be read."""
    refuse_link(path)
    if path.is_file():
        return path.stat().st_size
    if path.exists() and (path.suffix in _READ or not path.is_dir()):
        raise Failed(f"{path} is no file", hint=f"take it away: mv {path} /tmp", code="invalid_config")
    return 0
