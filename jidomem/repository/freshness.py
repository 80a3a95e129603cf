"""Whether files are still as they were when a memory about them was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from jidomem.anchor import Anchor
from jidomem.errors import InvalidRequest
from jidomem.repository import git
from jidomem.repository.moves import moved
from jidomem.repository.worktree import Worktree, is_blob

UNCHANGED, CHANGED, GONE, RENAMED = "unchanged", "changed", "gone", "renamed"
#: How many blobs git is asked for at once.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Freshness:
    """What became of a file: its path as the memory has it, unchanged, changed, gone or renamed, and where it is now.

    One that is renamed holds what it held; one that was changed may be at another path as well.
    """

    path: str
    state: str
    at: str | None

    def __str__(self) -> str:
        """Return it in words.

        >>> str(Freshness("a.py", "renamed", "b.py"))
        'renamed to b.py'
        """
        if self.at is None or self.at == self.path:
            return self.state
        return f"renamed to {self.at}" if self.state == RENAMED else f"renamed to {self.at} and changed"

    def to_dict(self) -> dict[str, str | None]:
        """Return it as plain values."""
        return {"path": self.path, "state": self.state, "at": self.at}


def freshness(tree: Worktree, anchors: Iterable[Anchor]) -> dict[Anchor, Freshness]:
    """Return what became of the file of each of *anchors*; each file is read once."""
    wanted = sorted(set(anchors))
    found: dict[Anchor, Freshness] = {}
    read: tuple[str, bytes | None] = ("", None)
    for anchor in wanted:  # those of one path stand together
        if not tree.has(anchor.path):
            continue
        if read[0] != anchor.path:
            read = anchor.path, tree.read(anchor.path)
        same = read[1] is not None and is_blob(read[1], anchor.blob)
        found[anchor] = Freshness(anchor.path, UNCHANGED if same else CHANGED, anchor.path)
    places = moved(tree, (anchor for anchor in wanted if anchor not in found))
    for anchor in wanted:
        if anchor not in found:
            found[anchor] = _gone(tree, anchor, places.get(anchor))
    return found


def contents(tree: Worktree, anchors: Iterable[Anchor]) -> Iterator[tuple[Anchor, bytes]]:
    """Yield what the file of each of *anchors* held, from the file or from git; left out is what neither has."""
    missing: list[Anchor] = []
    for path, group in groupby(sorted(set(anchors)), key=attrgetter("path")):
        data = tree.read(path)
        for anchor in group:
            if data is not None and is_blob(data, anchor.blob):
                yield anchor, data
            else:
                missing.append(anchor)
    for start in range(0, len(missing), _AT_ONCE):
        part = missing[start : start + _AT_ONCE]
        try:
            held = git.available_blobs(tree.base, [anchor.blob for anchor in part])
        except InvalidRequest:  # there is no git, or it refuses
            return
        yield from ((anchor, held[anchor.blob]) for anchor in part if anchor.blob in held)


def _gone(tree: Worktree, anchor: Anchor, at: str | None) -> Freshness:
    if at is None:
        return Freshness(anchor.path, GONE, None)
    data = tree.read(at)
    same = data is not None and is_blob(data, anchor.blob)
    return Freshness(anchor.path, RENAMED if same else CHANGED, at)
