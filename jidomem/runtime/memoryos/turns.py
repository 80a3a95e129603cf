"""Whose turn it is: one at a time does the jobs of an agent, of all threads of all processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from jidomem.errors import Failed
from jidomem.runtime.bounds import refuse_link

FOLDER = Path("state", "turns")


@contextmanager
def turn(root: Path, *of: str, wait: bool = False) -> Iterator[bool]:
    """Give whether it is the caller's turn for what *of* names, until the block ends; with *wait* it always is, then.

    The system takes it back from whoever is killed. The name of its file tells nothing of what *of* names.
    """
    name = blake2b("\0".join(of).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    descriptor = _opened(root / FOLDER / f"{name}.lock")
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        for folder in (path.parent.parent, path.parent):
            refuse_link(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror or error}", hint="let this user write there") from error
