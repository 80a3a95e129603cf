"""The freshness of the files of memories: unchanged, changed, renamed, or gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter
from os.path import lexists
from pathlib import Path
from posixpath import basename, dirname, splitext
from typing import NamedTuple

from jidomem.errors import InvalidRequest, nearest_names
from jidomem.records.file_anchor import Anchor
from jidomem.repository import git
from jidomem.repository.worktree import Worktree, blob_id, is_blob, listing, matches

_RENAMES = ("-M", "-z", "--diff-filter=R", "--name-status", "--no-ext-diff", "--no-textconv", "--relative")
_SECONDS = 10
#: The most commits that are searched for renames, and the most untracked files that are read.
_COMMITS, _UNKNOWN = 2_000, 1_000


def moved(tree: Worktree, missing: Iterable[Anchor]) -> dict[Anchor, str]:
    """Return the present path of each of the *missing* files: one with its content, else where git renamed it to."""
    wanted = sorted(set(missing))
    if not wanted:
        return {}
    places = _places(tree, {anchor.blob for anchor in wanted})
    paths = {anchor: _nearest(anchor.path, places[anchor.blob]) for anchor in wanted if anchor.blob in places}
    rest = [anchor for anchor in wanted if anchor not in paths]
    renames = _renames(tree) if rest else {}
    for anchor in rest:
        path = _followed(anchor.path, renames)
        if path != anchor.path and tree.has(path):
            paths[anchor] = path
    return paths


def moved_places(tree: Worktree, places: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the present path of each former file of the *places*, folders and patterns without a file, by place.

    A place whose files git did not rename is left out.
    """
    wanted = [place for place in dict.fromkeys(places) if tree.is_missing(place)]
    renames = _renames(tree) if wanted else {}
    found: dict[str, dict[str, str]] = {}
    for place in wanted:
        for old in renames:
            if old.startswith(place.rstrip("/") + "/") or matches(place, old):
                path = _followed(old, renames)
                if tree.has(path):
                    found.setdefault(place, {})[old] = path
    return found


def present_place(place: str, files: Mapping[str, str]) -> str | None:
    """Return the name that a folder or pattern has now, if all its former *files* moved to one folder; None otherwise.

    >>> present_place("a/*.py", {"a/x.py": "web/a/x.py", "a/y.py": "web/a/y.py"})
    'web/a/*.py'
    """
    folder = place if place.endswith("/") else re.split(r"[*\[{?]", place, maxsplit=1)[0].rpartition("/")[0] + "/"
    ends = {(old.removeprefix(folder), new) for old, new in files.items()}
    folders = {new.removesuffix(end) if new.endswith(f"/{end}") else None for end, new in ends}
    one = folders.pop() if len(folders) == 1 else None
    return None if one is None else one + place.removeprefix(folder)


def _followed(path: str, renames: Mapping[str, str]) -> str:
    """Return the last name of the file *path*."""
    seen = {path}
    while (after := renames.get(path)) is not None and after not in seen:
        path = after
        seen.add(path)
    return path


def _places(tree: Worktree, blobs: set[str]) -> dict[str, list[str]]:
    """Return the paths with the content of each of *blobs*, except empty files: tracked and untracked files."""
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
    return min(places, key=lambda place: (basename(place) != basename(path), place))


def _renames(tree: Worktree) -> Mapping[str, str]:
    past = _git(tree, "log", *_RENAMES, "--format=", "-n", str(_COMMITS))
    renames: dict[str, str] = {}
    for entries in (list(_git(tree, "diff", "--cached", *_RENAMES, "HEAD")), list(past)):  # newest first
        entries = [entry.lstrip("\n") for entry in entries]
        for at in range(0, len(entries) - 2, 3):
            renames.setdefault(entries[at + 1], entries[at + 2])
    return renames


def _git(tree: Worktree, *words: str) -> Iterable[str]:
    """Return the entries that git lists, with paths from the base of *tree*; none if git is missing or fails."""
    try:
        done = git.ask(tree.base, *words, seconds=_SECONDS)
    except InvalidRequest:
        return ()
    if done.returncode:
        return ()
    return [entry for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0") if entry.strip()]


UNCHANGED, CHANGED, GONE, RENAMED = "unchanged", "changed", "gone", "renamed"
#: The number of blobs that git is asked for in one call.
_AT_ONCE = 32


class Freshness(NamedTuple):
    """The state of a file of a memory: its recorded path, `unchanged`, `changed`, `gone` or `renamed`, and its present
    path.

    A renamed file has the same content; a changed one may be at another path as well.
    """

    path: str
    state: str
    at: str | None

    def __str__(self) -> str:
        """Return the state in words.

        >>> str(Freshness("a.py", "renamed", "b.py"))
        'renamed to b.py'
        """
        if self.at is None or self.at == self.path:
            return self.state
        return f"renamed to {self.at}" if self.state == RENAMED else f"renamed to {self.at} and changed"

    def to_dict(self) -> dict[str, str | None]:
        """Return the state as plain values."""
        return {"path": self.path, "state": self.state, "at": self.at}


def freshness(tree: Worktree, anchors: Iterable[Anchor]) -> dict[Anchor, Freshness]:
    """Return the freshness of the file of each of *anchors*; each file is read once.

    A file that a sparse checkout leaves out is as git has it.
    """
    wanted = sorted(set(anchors))
    states: dict[Anchor, Freshness] = {}
    read: tuple[str, bytes | None] = ("", None)
    for anchor in wanted:  # sorted by path
        if not tree.has(anchor.path):
            continue
        if read[0] != anchor.path:
            read = anchor.path, tree.read(anchor.path)
        same = read[1] is not None and is_blob(read[1], anchor.blob)
        states[anchor] = Freshness(anchor.path, UNCHANGED if same else CHANGED, anchor.path)
    left_out = tree.left_out() if len(states) < len(wanted) else {}
    for anchor in wanted:
        if anchor not in states and (blob := left_out.get(anchor.path)):
            states[anchor] = Freshness(anchor.path, UNCHANGED if blob == anchor.blob else CHANGED, anchor.path)
    places = moved(tree, (anchor for anchor in wanted if anchor not in states))
    for anchor in wanted:
        if anchor not in states:
            states[anchor] = _missing_file(tree, anchor, places.get(anchor))
    return states


def contents(tree: Worktree, anchors: Iterable[Anchor]) -> Iterator[tuple[Anchor, bytes]]:
    """Yield the anchored content of each of *anchors*, from the file or from git, if either has it."""
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
            blobs = git.available_blobs(tree.base, [anchor.blob for anchor in part])
        except InvalidRequest:  # git is missing or refuses
            return
        yield from ((anchor, blobs[anchor.blob]) for anchor in part if anchor.blob in blobs)


def _missing_file(tree: Worktree, anchor: Anchor, at: str | None) -> Freshness:
    if at is None:
        return Freshness(anchor.path, GONE, None)
    data = tree.read(at)
    same = data is not None and is_blob(data, anchor.blob)
    return Freshness(anchor.path, RENAMED if same else CHANGED, at)


#: The most names that are compared by spelling, and the most similar ones that are looked at.
COMPARED, _TRIES = 20_000, 8


def nearest_path(base: Path, path: str) -> str | None:
    """Return the file or folder below *base* whose name is most similar to that of *path*, or None.

    Git also lists tracked files that were removed or renamed: of those the next ones count.
    """
    paths = {*_with_folders(listing(base).paths)}
    for _ in range(_TRIES):
        near = nearest_of(paths, path)
        if near is None or lexists(base / near):
            return near
        paths.discard(near)
    return None


def nearest_of(paths: Iterable[str], path: str) -> str | None:
    """Return the most similar of *paths* to *path*.

    It is a path with the same name and the most folders in common, else one in the same folder with a similar name,
    else any with a similar name and the same extension.

    >>> nearest_of(["src/db/pool.py", "src/db/line.py", "docs/pool.md"], "src/pool.py")
    'src/db/pool.py'
    >>> nearest_of(["src/db/pool.py", "lib/pol.py"], "src/db/pol2.py")
    'src/db/pool.py'
    >>> nearest_of([".cursor/rules/labels.mdc"], "src/labels.py")
    """
    every = sorted(set(paths) - {path})
    name, folder = basename(path), dirname(path)
    same = [each for each in every if basename(each).casefold() == name.casefold()]
    if same:
        return min(same, key=lambda each: (-_shared(each, path), each))
    beside = {basename(each): each for each in every if dirname(each) == folder}
    elsewhere = {basename(each): each for each in every[:COMPARED] if splitext(each)[1] == splitext(name)[1]}
    for known in (beside, elsewhere):
        if near := nearest_names(name, known, likeness=0.7):
            return known[near[0]]
    return None


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    seen = {""}
    for path in paths:
        yield path
        while (path := dirname(path)) not in seen:
            seen.add(path)
            yield path


def _shared(one: str, other: str) -> int:
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
