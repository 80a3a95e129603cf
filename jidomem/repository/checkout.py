"""Which files of a folder were removed: a file that a sparse checkout leaves out, or that cannot be read, was not."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from jidomem.anchor import path_of
from jidomem.errors import InvalidRequest
from jidomem.repository import git

#: How git marks, among the files it tracks, those that it was told not to check out.
_SKIPPED = b"S "


class Checkout:
    """The files that are there below a folder, and those that git keeps and does not check out."""

    def __init__(self, base: Path) -> None:
        self._base = base.resolve()

    def is_removed(self, path: str) -> bool:
        """Return whether there is no file at *path*, and there ought to be one if it still existed."""
        if path_of(path) != path:
            return False  # it lies elsewhere
        try:
            os.lstat(self._base / path)
        except (FileNotFoundError, NotADirectoryError):
            return path not in self._skipped
        except (OSError, ValueError):
            return False
        return False

    @cached_property
    def _skipped(self) -> frozenset[str]:
        try:
            listed = git.found(self._base, "ls-files", "-t", "-z") or b""
        except InvalidRequest:  # there is no git
            return frozenset()
        return frozenset(os.fsdecode(row[2:]) for row in listed.split(b"\0") if row.startswith(_SKIPPED))
