"""The lock of git's index: while it is there git may be changing the files of a journal, as a checkout does."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep, time

from jidomem.journal import disk

#: So many seconds after it was made a lock is waited for: `git commit` keeps one while a message is written.
YOUNG = 5.0
_PAUSE = 0.01
#: The longest file that may say where a repository is.
_LONGEST = 4096


class GitLock:
    """The lock of the index of the repository that a folder lies in; without a repository there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wait(self, seconds: float) -> None:
        """Return once git is done, or its lock is no longer young, or after so many *seconds*."""
        until = monotonic() + seconds
        while self._is_young() and monotonic() < until:
            sleep(_PAUSE)

    def _is_young(self) -> bool:
        if self._path is None:
            return False
        made = disk.mtime(self._path)
        return made is not None and time() - made / 1e9 < YOUNG

    @cached_property
    def _path(self) -> str | None:
        for folder in (self._folder, *self._folder.parents):
            found = f"{folder}/.git"
            if disk.exists(f"{found}/HEAD"):
                return f"{found}/index.lock"
            with suppress(OSError, UnicodeDecodeError):  # a worktree, or a submodule
                leads = disk.read(found, _LONGEST).decode()
                if leads.startswith("gitdir: "):
                    return str(Path(folder, leads.removeprefix("gitdir: ").strip(), "index.lock"))
        return None
