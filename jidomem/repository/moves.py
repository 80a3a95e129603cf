"""Where files that are gone went, as git sees it; without git, nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from posixpath import basename

from jidomem.anchor import Anchor
from jidomem.errors import InvalidRequest
from jidomem.repository import git
from jidomem.repository.worktree import Worktree, blob_id

_RENAMES = ("-M", "-z", "--diff-filter=R", "--name-status", "--no-ext-diff", "--no-textconv", "--relative")
_SECONDS = 10
#: How far back renames are looked for, and how many files git does not know are read.
_COMMITS, _UNKNOWN = 2_000, 1_000


def moved(tree: Worktree, gone: Iterable[Anchor]) -> dict[Anchor, str]:
    """Return where each file of *gone* is now: where its content is found, else where git saw it renamed to."""
    wanted = sorted(set(gone))
    if not wanted:
        return {}
    places = _places(tree, {anchor.blob for anchor in wanted})
    found = {anchor: _nearest(anchor.path, places[anchor.blob]) for anchor in wanted if anchor.blob in places}
    rest = [anchor for anchor in wanted if anchor not in found]
    renames = _renames(tree) if rest else {}
    for anchor in rest:
        path, seen = anchor.path, {anchor.path}
        while (after := renames.get(path)) is not None and after not in seen:
            path = after
            seen.add(path)
        if path != anchor.path and tree.has(path):
            found[anchor] = path
    return found


def _places(tree: Worktree, blobs: set[str]) -> dict[str, list[str]]:
    """Return the paths that hold each of *blobs*, an empty file left out: of what git tracks, and what is new."""
    places: dict[str, list[str]] = {}
    wanted = {blob for blob in blobs if blob not in (blob_id(b""), blob_id(b"", "sha256"))}
    for entry in _git(tree, "ls-files", "-s", "-z"):
        mode, _, path = entry.partition("\t")
        if (blob := mode.split(" ")[1]) in wanted and tree.has(path):
            places.setdefault(blob, []).append(path)
    lengths = {len(blob) for blob in wanted - places.keys()}
    new = _git(tree, "ls-files", "-o", "-z", "--exclude-standard") if lengths else ()
    for path in islice(new, _UNKNOWN):
        data = tree.read(path)
        for length in lengths if data is not None else ():
            if (blob := blob_id(data or b"", "sha256" if length == 64 else "sha1")) in wanted:
                places.setdefault(blob, []).append(path)
    return places


def _nearest(path: str, places: Sequence[str]) -> str:
    """Return the one of *places* that has the name of *path*, else the first."""
    return min(places, key=lambda place: (basename(place) != basename(path), place))


def _renames(tree: Worktree) -> Mapping[str, str]:
    """Return what each path was renamed to last, in the history and since."""
    past = _git(tree, "log", *_RENAMES, "--format=", "-n", str(_COMMITS))
    found: dict[str, str] = {}
    for entries in (list(_git(tree, "diff", "--cached", *_RENAMES, "HEAD")), list(past)):  # newest first
        entries = [entry.lstrip("\n") for entry in entries]
        for at in range(0, len(entries) - 2, 3):
            found.setdefault(entries[at + 1], entries[at + 2])
    return found


def _git(tree: Worktree, *words: str) -> Iterable[str]:
    """Return what git lists, paths from the base of *tree* on; nothing where there is no git, or no answer."""
    try:
        done = git.ask(tree.base, *words, seconds=_SECONDS)
    except InvalidRequest:
        return ()
    if done.returncode:
        return ()
    return [entry for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0") if entry.strip()]
