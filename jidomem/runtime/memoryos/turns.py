"""Turns: one thread of all processes at a time does the jobs of an agent."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from jidomem import ownership
from jidomem.errors import Failed, JidomemError
from jidomem.runtime.bounds import refuse_link

FOLDER = Path("state", "turns")


@contextmanager
def turn(root: Path, *of: str, wait: bool = False) -> Iterator[bool]:
    """Give whether it is the caller's turn for *of* until the block ends; with *wait* it always is, then.

    The system takes it back from a process that is killed. The file of a turn is named by a digest of *of*, by which a
    guess at a name could be confirmed: so the file is removed when the turn ends.
    """
    name = blake2b("\0".join(of).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    path = root / FOLDER / f"{name}.lock"
    descriptor = _locked(path, wait=wait)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        _remove(path, descriptor)


def remove_unused(root: Path) -> None:
    """Remove the files of turns that nobody has: an ended process left them, or an earlier version did."""
    with suppress(OSError, JidomemError):
        for path in (root / FOLDER).glob("*.lock"):
            descriptor = _locked(path, wait=False)
            if descriptor is not None:
                _remove(path, descriptor)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Return the descriptor of the locked file, None where another has it; it is the file that has the name now."""
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its turn ended meanwhile, and another file may have the name


def _is_named(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(path: Path, descriptor: int) -> None:
    """Remove the file while it is locked, so that whoever waits for it takes a new one."""
    try:
        with suppress(OSError):
            path.unlink()
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        for folder in (path.parent.parent, path.parent):
            refuse_link(folder)
        ownership.make_folders(path.parent)
        return ownership.open_file(path)
    except OSError as error:
        ownership.check_writable(ownership.obstacle(path))
        raise Failed(f"{path}: {error.strerror or error}", hint="let this user write there") from error
