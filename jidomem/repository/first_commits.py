"""The moments at which files came into a git repository, renames followed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from posixpath import dirname
from time import monotonic

from jidomem.errors import InvalidRequest
from jidomem.repository import git

#: How long git is asked for all files together, and how many renames of a file are followed.
SECONDS, RENAMES = 30.0, 8
_LOG = ("--literal-pathspecs", "log", "--name-status", "-z", "--no-ext-diff", "--no-textconv", "--no-color")
_MOST_SHALLOW = 1024 * 1024


class _Incomplete(Exception):
    """Git could not answer from what the clone has."""


def first_commits(base: Path, paths: Collection[str], seconds: float = SECONDS) -> dict[str, str]:
    """Return when each of *paths*, files below *base*, was first committed, as a moment in UTC.

    Left out are files that git does not know, all of them where there is no git or no answer in time, and those that
    came with the oldest commit of a shallow clone, which says nothing about them.
    """
    try:
        return _first_commits(base.resolve(), paths, monotonic() + seconds)
    except (InvalidRequest, _Incomplete):  # no git, no commit, or no answer in time
        return {}


def _first_commits(base: Path, paths: Collection[str], deadline: float) -> dict[str, str]:
    """Return the moments: in each round git is asked once who added the files, and once what those commits renamed."""
    place = git.found(base, "rev-parse", "--show-prefix", "--git-path", "shallow")
    if not paths or place is None:
        return {}
    prefix, shallow = os.fsdecode(place).split("\n")[:2]
    top = base.parents[prefix.count("/") - 1] if prefix else base
    cut, found = _shallow(base / shallow), dict[str, str]()
    names = {path: prefix + path for path in paths}
    for _ in range(RENAMES):
        added = _additions(top, set(names.values()), deadline)
        renamed = _renames(top, {commit for commit, _ in added.values()} - cut, deadline)
        earlier = dict[str, str]()
        for path, name in names.items():
            commit, moment = added.get(name, ("", ""))
            if (commit, name) in renamed:
                earlier[path] = renamed[commit, name]
            elif commit and commit not in cut:
                found[path] = moment
        names = earlier
        if not names:
            break
    return found


def _additions(top: Path, names: Collection[str], deadline: float) -> dict[str, tuple[str, str]]:
    """Return the oldest commit that added each file by one of *names*, and its moment."""
    places = sorted({dirname(name) or name for name in names})
    added: dict[str, tuple[str, str]] = {}
    for commit, moment, _, (name, *_) in _log(top, deadline, "--diff-filter=A", "--no-renames", "-c", "--", *places):
        if name in names:
            added[name] = (commit, moment)  # the newest come first
    return added


def _renames(top: Path, commits: Collection[str], deadline: float) -> dict[tuple[str, str], str]:
    """Return the former name of each file that one of *commits* renamed, by commit and new name.

    In a clone without all contents only files that were moved as they are can be recognised.
    """
    if not commits:
        return {}
    words = ("--diff-filter=R", "-l2000", "--no-walk=unsorted", *sorted(commits))
    try:
        rows = [*_log(top, deadline, "-M", *words)]
    except _Incomplete:
        rows = [*_log(top, deadline, "-M100%", *words)]
    return {(commit, names[1]): names[0] for commit, _, status, names in rows if status.startswith("R")}


def _log(top: Path, deadline: float, *words: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield commit, moment, status and names of each changed file; raises _Incomplete where git fails."""
    done = git.ask(top, *_LOG, "--format=tformat:%H %at %ct", *words, seconds=max(deadline - monotonic(), 0.1))
    if done.returncode != 0:
        raise _Incomplete
    commit = moment = ""
    fields = iter(os.fsdecode(done.stdout).split("\0"))
    for text in fields:
        entry = text.lstrip("\n")
        if not entry:
            continue
        if " " in entry:
            commit, *seconds = entry.split(" ")
            moment = _moment(min(map(int, seconds)))
        else:
            yield commit, moment, entry, [next(fields) for _ in range(2 if entry[0] in "RC" else 1)]


def _shallow(file: Path) -> frozenset[str]:
    """Return the commits at which a shallow clone ends; their parents are missing, so they seem to add every file."""
    try:
        with file.open("rb") as opened:
            return frozenset(opened.read(_MOST_SHALLOW).decode("ascii", "replace").split())
    except OSError:
        return frozenset()


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
