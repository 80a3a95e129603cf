"""Which files a folder holds that may be looked through: those git does not ignore, else what a short walk meets."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from posixpath import basename, dirname, join

from jidomem.anchor import path_of
from jidomem.errors import InvalidRequest
from jidomem.repository import git
from jidomem.repository.addresses import Addresses
from jidomem.repository.ignored import matches
from jidomem.repository.worktree import Worktree

#: How long git is waited for, and, where there is none, after how many entries and how deep a walk ends.
SECONDS, MOST, DEEPEST = 20.0, 20_000, 6
#: Of how many files names without a folder are looked up.
MOST_NAMED = 500_000
#: Folders a walk does not enter, beside hidden ones, of which it enters those that tools keep their notes in.
_BUILT = frozenset(("node_modules", "venv", "__pycache__", "target", "dist", "build", "vendor", "site-packages"))
_HIDDEN = frozenset(
    (".adr", ".beads", ".claude", ".codex", ".cursor", ".gemini", ".github", ".memory", ".vscode", ".windsurf")
)


@dataclass(frozen=True, slots=True)
class Listing:
    """The paths of files below a folder, sorted; whether they are all, and whether git says which it ignores."""

    paths: tuple[str, ...]
    is_whole: bool
    by_git: bool


def listing(base: Path) -> Listing:
    """Return the files below *base*: what git has or would take, else what a walk of at most MOST entries meets."""
    try:
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        done = git.ask(base, *words, seconds=SECONDS)
    except InvalidRequest:  # there is no git
        return _walked(base)
    if done.returncode != 0:
        return _walked(base)
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return Listing(tuple(sorted(set(filter(None, names)))), is_whole=True, by_git=True)


class Named:
    """Finds the files that pages of the folder *base* name: from the folder a page lies in, else from *base*.

    A name without a folder that is in neither stands for the one file below *base* that has it, for none if there are
    several; a pattern that begins with `**/` stands for itself where it matches a file. The files are listed once, when
    the first such name is looked for. A web address that a remote of the
    repository has for a file stands for that file.
    """

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self._has = lru_cache(maxsize=4096)(self._is_there)
        tree = Worktree.around(self.base)
        self._addresses = None if tree is None else replace(Addresses.of(tree), base=self.base)

    def of(self, page: str) -> Callable[[str], str | None]:
        """Return what gives the path of what a word of *page* names, None where there is nothing by that name."""
        return partial(self._found, dirname(page))

    def _found(self, folder: str, word: str) -> str | None:
        if "://" in word:
            path = None if self._addresses is None else self._addresses.path(word)
            return path if path is not None and self._has(path) else None
        if word.startswith("**/"):
            return word if any(matches(word, path) for path in self._paths) else None
        paths = (path_of(join(folder, word)), path_of(word))
        path = next((path for path in paths if path is not None and self._has(path)), None)
        return path if path is not None or "/" in word else self._only_one(word)

    def _only_one(self, name: str) -> str | None:
        path = self._only.get(name)
        return path if path is not None and self._has(path) else None

    @cached_property
    def _only(self) -> Mapping[str, str]:
        """Return the path of each file whose name no other file has."""
        counts = Counter(map(basename, self._paths))
        return {name: path for path in self._paths if counts[name := basename(path)] == 1}

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        """Return the files there are; nothing where not all of few files are known."""
        found = listing(self.base)
        return found.paths if found.is_whole and len(found.paths) <= MOST_NAMED else ()

    def _is_there(self, path: str) -> bool:
        whole = self.base / path
        try:
            return os.path.realpath(whole) == str(whole) and whole.exists()
        except (OSError, ValueError):
            return False


def _walked(base: Path) -> Listing:
    """Return what is met on a walk, the nearest folders first; links are not followed."""
    found, waiting, seen = list[str](), deque([("", 0)]), 0
    while waiting and seen < MOST:
        folder, depth = waiting.popleft()
        if depth > DEEPEST:
            continue
        try:
            entries = sorted(os.scandir(base / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            path = join(folder, entry.name)
            if not entry.is_dir(follow_symlinks=False):
                found.append(path)
            elif entry.name not in _BUILT and (entry.name in _HIDDEN or not entry.name.startswith(".")):
                waiting.append((path, depth + 1))
    return Listing(tuple(sorted(found)), is_whole=not waiting, by_git=False)
