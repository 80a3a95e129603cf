"""Where the paths of a memory begin, and which of its files somebody names who stands elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

import click

from jidomem.errors import InvalidRequest
from jidomem.repository.addresses import Addresses
from jidomem.repository.worktree import Worktree, path_below
from jidomem.runtime.settings import FOLDER


class Paths:
    """The paths of the memory at *root*, which lies in the repository *tree* if in any, named from where one stands.

    They begin at the folder that holds the root; those of a root that lies in none, and is no `.jidomem`, here.
    """

    def __init__(self, root: Path, tree: Worktree | None) -> None:
        self._root, self._here = root, Path.cwd().resolve()
        self._addresses = Addresses.of(tree) if tree else None
        self.folder = tree.base if tree else root.parent if root.name == FOLDER else self._here

    def of(self, given: str) -> str | None:
        """Return a path as memories have it; None for one that lies elsewhere, or is of the memory itself."""
        path = path_below(self.folder, self._here / given)
        return path if path is not None and not self._is_own(path) else None

    def seen(self, given: str) -> str:
        """Return the path as memories have it of a file or folder that is there, seen from here; all else as it is."""
        if "://" in given:
            return self._named(given)
        path = self.of(given) if given and os.path.exists(self._here / given) else None
        return given if path is None else path + "/" * given.endswith("/")

    def touched(self, given: str) -> list[str]:
        """Return the paths of what is edited by that name: what it names, and what that leads to where it is a link."""
        try:
            real = str((self._here / given).resolve())
        except (OSError, ValueError, RuntimeError):
            return []
        return [path for path in dict.fromkeys(map(self.of, (given, real))) if path is not None]

    def each(self, given: tuple[str, ...]) -> list[str]:
        """Return the paths as memories have them, each once; raises InvalidRequest for one that lies elsewhere.

        To somebody who stands elsewhere a relative path is one below the folder. A web address that a remote of the
        repository has for a file is the path of that file; another address stays as it is.
        """
        return list(dict.fromkeys(map(self._named, given)))

    def others(self, given: tuple[str, ...]) -> list[str]:
        """Return the same, without what is of the memory itself."""
        return [path for path in self.each(given) if not self._is_own(path)]

    def _named(self, given: str) -> str:
        if "://" in given:
            return (self._addresses.path(given) if self._addresses else None) or given
        start = self._here if self._here.is_relative_to(self.folder) else self.folder
        path = path_below(self.folder, start / given) if given else None
        if path is None:
            raise InvalidRequest(
                f"{given} lies outside of {self.folder}, where the paths of this memory begin"
                if given
                else "a path is needed",
                hint=self._where(start / given),
            )
        return path

    def _where(self, whole: Path) -> str:
        """Return what is right for a path that lies elsewhere: the memory there, if there is one."""
        real = whole.resolve()
        other = next((folder / FOLDER for folder in real.parents if (folder / FOLDER).is_dir()), None)
        if other is None or other == self._root:
            return f"name a file below {self.folder}; the memory of another folder is named with --root"
        verb = click.get_current_context().info_name
        return f"ask the memory there: jidomem --root {quote(str(other))} {verb} {quote(str(real))}"

    def _is_own(self, path: str) -> bool:
        return (self.folder / path).is_relative_to(self._root)
