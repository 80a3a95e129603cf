"""What a root may bring along: folders and files that lie in it, of a stated size, and nothing that leads out of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from jidomem.errors import Failed

#: How many bytes, and how many files, all of one folder of an overlay may have.
OVERLAY, OVERLAY_FILES = 16 * 1024 * 1024, 10_000
#: How many bytes a configuration may have, and a baseline, which is read by a check alone.
CONFIG, BASELINE = 128 * 1024, 1024 * 1024
#: A key of more parts than any in them has: a reader of TOML takes time with the square of their number.
_LONG_KEY = re.compile(r"""(?<!["'\w-])(?:["'\w-]++[ \t]*+\.[ \t]*+){8}["'\w-]++[ \t]*+[=\]]""")
_OVERLAYS = ("ontology", "shapes", "queries")
#: How the files of an overlay end that are read.
_READ = (".ttl", ".rq")
#: Files of a root: nothing else bears their names.
_FILES = ("config.toml", "baseline.toml", ".gitignore", ".gitattributes")
#: What is read and written below a root -> how many folders deep it is looked through here; the root itself is one.
_DEPTHS = {"": 1, "projects": 2, "index": 3, "state": 2, "cache": 2, **dict.fromkeys(_OVERLAYS, 8)}


def check_root(root: Path) -> None:
    """Raise Failed `invalid_config` where something of *root* is a symbolic link, or an overlay too large or no files.

    Every opening of a root begins here. A clone brings links along, to wherever its author liked: what is read, written
    or removed would be so there.
    """
    for name, depth in _DEPTHS.items():
        found = _entries(root / name, depth)
        if name not in _OVERLAYS:
            for path in found:
                refuse_link(path)
                if not name and path.name in _FILES and not path.is_file():
                    raise _no_file(path)
        else:
            _check_overlay(root / name, found, depth)


def root_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of the root at *path*, absolute; raises Failed `invalid_config` where it is a symbolic link.

    Links above it are followed: a home or a temporary folder may lie behind one.
    """
    given = Path(path).expanduser()
    folder = given.parent.resolve() / given.name if given.name not in ("", "..") else given.resolve()
    if folder.is_symlink():
        raise Failed(
            f"{folder} is a symbolic link, and a root is the folder itself",
            hint=f"name it, if you mean it: --root {folder.resolve()}",
            code="invalid_config",
        )
    return folder


def _check_overlay(top: Path, found: Iterator[Path], depth: int) -> None:
    size = count = 0
    for path in found:
        size, count = size + _size(path), count + 1
        if size > OVERLAY or count > OVERLAY_FILES or len(path.relative_to(top).parts) == depth:
            most = f"{OVERLAY:,} bytes, {OVERLAY_FILES:,} files or {depth - 1} folders in each other"
            hint = "an overlay is a few terms, rules and questions: take out what is none"
            raise Failed(f"{top} has more than {most}", hint=hint, code="invalid_config")


def read_config(path: Path, most: int = CONFIG) -> str:
    """Return the text of the configuration, or baseline, at *path*, of *most* bytes at most.

    Raises OSError, ValueError and Failed.
    """
    refuse_link(path)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        hint = "it has a few keys: take out what is none"
        raise Failed(f"{path} has more than {most:,} bytes", hint=hint, code="invalid_config")
    text = data.decode()
    if long := _LONG_KEY.search(text):
        raise ValueError(
            f"nested too deeply: a key of more than 8 parts (at line {text.count(chr(10), 0, long.start()) + 1})"
        )
    return text


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
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # a folder that this user may not read is an error of whoever reads it
        for name in names:
            yield from _entries(path / name, depth - 1)


def _size(path: Path) -> int:
    """Return the bytes of a file, none for a folder and for what is not there; raise Failed for what cannot be read."""
    refuse_link(path)
    if path.is_file():
        return path.stat().st_size
    if path.exists() and (path.suffix in _READ or not path.is_dir()):
        raise _no_file(path)
    return 0


def _no_file(path: Path) -> Failed:
    return Failed(f"{path} is no file", hint=f"take it away: mv {path} /tmp", code="invalid_config")
