"""The file that a path which is not there may stand for: the nearest by its name, of those the folder holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from posixpath import basename, dirname

from jidomem.repository.listing import listing

#: So many names are compared letter by letter.
COMPARED = 20_000


def nearest_path(base: Path, path: str) -> str | None:
    """Return the file or folder below *base* whose name is nearest to that of *path*; None where none is like it."""
    return nearest_of([*_with_folders(listing(base).paths)], path)


def nearest_of(paths: Iterable[str], path: str) -> str | None:
    """Return which of *paths* is nearest to *path*.

    That is one of the same name, the one with the most folders in common; else one in the same folder whose name is
    spelled nearly so; else any.

    >>> nearest_of(["src/db/pool.py", "src/db/line.py", "docs/pool.md"], "src/pool.py")
    'src/db/pool.py'
    >>> nearest_of(["src/db/pool.py", "lib/pol.py"], "src/db/pol2.py")
    'src/db/pool.py'
    """
    every = sorted(set(paths) - {path})
    name, folder = basename(path), dirname(path)
    same = [each for each in every if basename(each).casefold() == name.casefold()]
    if same:
        return min(same, key=lambda each: (-_shared(each, path), each))
    beside = {basename(each): each for each in every if dirname(each) == folder}
    for known in (beside, {basename(each): each for each in every[:COMPARED]}):
        if near := get_close_matches(name, known, n=1, cutoff=0.7):
            return known[near[0]]
    return None


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield *paths* and the folders they are in."""
    seen = {""}
    for path in paths:
        yield path
        while (path := dirname(path)) not in seen:
            seen.add(path)
            yield path


def _shared(one: str, other: str) -> int:
    """Return how many folders two paths begin and end with in common."""
    pairs = [zip(one.split("/"), other.split("/"), strict=False),
             zip(one.split("/")[::-1], other.split("/")[::-1], strict=False)]  # fmt: skip
    return sum(_run(a == b for a, b in pair) for pair in pairs)


def _run(same: Iterable[bool]) -> int:
    count = 0
    for each in same:
        if not each:
            break
        count += 1
    return count
