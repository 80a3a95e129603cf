"""The paths of a memory, as seen from the working directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from posixpath import normpath
from shlex import quote

import click

from jidomem.errors import InvalidRequest, NotFound
from jidomem.records.file_anchor import plain_forms
from jidomem.repository.worktree import Addresses, Worktree, files_by_git, path_below
from jidomem.runtime.settings import FOLDER


class Paths:
    """The paths of the memory at *root*, which may be in the repository *tree*, as seen from the working directory.

    They are relative to the folder of the root; for a root outside a repository that is not `.jidomem`, to the working
    directory.
    """

    def __init__(self, root: Path, tree: Worktree | None) -> None:
        self._root, self._here = root, Path.cwd().resolve()
        self._addresses = Addresses.of(tree) if tree else None
        self.folder = tree.base if tree else root.parent if root.name == FOLDER else self._here

    def of(self, given: str) -> str | None:
        """Return a path in the form of memories; None if it is outside, or belongs to the memory itself."""
        path = path_below(self.folder, self._here / given)
        return path if path is not None and not self._is_own(path) else None

    def nested(self, paths: Iterable[str]) -> list[Path]:
        """Return the memory roots in folders below that of the root, above some of *paths* in the form of memories."""
        folders = sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."})
        roots = [self.folder / folder / FOLDER for folder in folders]
        return [root for root in roots if root != self._root and (root / "projects").is_dir()]

    def seen(self, given: str) -> str:
        """Return the path of an existing file or folder in the form of memories; any other text unchanged."""
        if "://" in (given := self._plain(given)):
            return self._named(given)
        path = self.of(given) if given and os.path.exists(self._here / given) else None
        return given if path is None else path + "/" * given.endswith("/")

    def about(self, given: str) -> str:
        """Return the path in the memory for an entry of `about`; raises InvalidRequest for one outside the folder."""
        given = self._plain(given)
        if given and (os.path.isabs(given) or normpath(given).partition("/")[0] == ".."):
            return self._named(given) + "/" * given.endswith("/")
        return self.seen(given)

    def touched(self, given: str) -> list[str]:
        """Return the paths affected by an edit of that name: the path itself, and the target if it is a link."""
        try:
            real = str((self._here / given).resolve())
        except (OSError, ValueError, RuntimeError):
            return []
        return [path for path in dict.fromkeys(map(self.of, (given, real))) if path is not None]

    def is_of_journal(self, given: str) -> bool:
        """Return whether an edit of that name would change a file of the journal."""
        with suppress(OSError, ValueError, RuntimeError):
            return (self._here / given).resolve().is_relative_to((self._root / "projects").resolve())
        return False

    def each(self, given: tuple[str, ...]) -> list[str]:
        """Return the paths in the form of memories, each once; raises InvalidRequest for one outside.

        If the working directory is outside the folder, a relative path is relative to the folder. The web address of a
        file in a remote of the repository becomes the path of the file; other addresses stay unchanged.
        """
        return list(dict.fromkeys(map(self._named, given)))

    def others(self, given: tuple[str, ...]) -> list[str]:
        """Return the same, without paths of the memory itself."""
        return [path for path in self.each(given) if not self._is_own(path)]

    def files(self, given: tuple[str, ...]) -> list[str]:
        """Return the same, with each folder replaced by the files below it that git does not ignore.

        A name in the quotes of `git ls-files` is the file that it stands for.
        """
        paths: list[str] = []
        names = {path: name for name in map(self._unquoted, given) for path in self.others((name,))}
        for path, name in names.items():
            folder = self.folder / path
            if not folder.is_dir() and name.endswith("/"):
                raise NotFound(f"there is no folder {name}", hint="name a file, or a folder with files")
            if not folder.is_dir():
                paths.append(path)
                continue
            files = _files_below(folder.resolve())
            below = [inside for file in files if (inside := path_below(self.folder, file)) is not None]
            if not below:
                raise NotFound(f"there is no file in {folder}", hint="name a file, or a folder with files")
            paths += below
        return [path for path in dict.fromkeys(paths) if not self._is_own(path)]

    def _unquoted(self, given: str) -> str:
        r"""Return the name of an existing file that git quotes, as in `"caf\303\251.py"`; any other text unchanged."""
        if not (len(given) > 1 and given[0] == given[-1] == '"'):
            return given
        with suppress(UnicodeError):
            name = given[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
            return name if os.path.exists(self._here / name) else given
        return given

    def _plain(self, given: str) -> str:
        """Return the existing path that *given* names in another form, and any other text unchanged."""
        forms = plain_forms(given) if given and not os.path.exists(self._here / given) else ()
        return next((form for form in forms if os.path.exists(self._here / form)), given)

    def _named(self, given: str) -> str:
        given = self._plain(given)
        if "://" in given:
            return (self._addresses.path(given) if self._addresses else None) or given
        start = self._here if self._here.is_relative_to(self.folder) else self.folder
        path = path_below(self.folder, start / given) if given else None
        if path is None:
            raise InvalidRequest(
                f"{given} is outside {self.folder}, to which the paths of this memory are relative"
                if given
                else "a path is needed",
                hint=self._where(start / given),
            )
        return path

    def _where(self, whole: Path) -> str:
        """Return the hint for a path outside: the memory there, if there is one."""
        real = whole.resolve()
        other = next((folder / FOLDER for folder in real.parents if (folder / FOLDER).is_dir()), None)
        if other is None or other == self._root:
            return f"name a file below {self.folder}; for the memory of another folder give --root"
        verb = click.get_current_context().info_name
        return f"ask the memory there: jidomem --root {quote(str(other))} {verb} {quote(str(real))}"

    def _is_own(self, path: str) -> bool:
        return (self.folder / path).is_relative_to(self._root)


def _files_below(folder: Path) -> list[Path]:
    """Return the files below *folder*, sorted: those that git does not ignore, also of repositories in it."""
    names = files_by_git(folder)
    if names is None:
        return sorted(Path(place) / name for place, visible in _walk(folder) for name in visible)
    files: list[Path] = []
    for path in (folder / name for name in names):
        files += _files_below(path) if path.is_dir() and not path.is_symlink() else [path] * path.is_file()
    return files


def _walk(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder below *folder* with the names of its files, without hidden ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield place, [name for name in names if not name.startswith(".")]
