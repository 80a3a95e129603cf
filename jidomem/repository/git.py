"""The git commands of a root. They run no program named by a configuration, and fetch nothing.

A file that a sparse checkout leaves out, or that cannot be read, does not count as removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from posixpath import dirname
from shlex import quote
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from jidomem.errors import InvalidRequest
from jidomem.records.file_anchor import path_of

if TYPE_CHECKING:
    import subprocess

#: Settings that prevent programs of a configuration: watchers, hooks, signatures.
_SET = ("core.fsmonitor=false", "core.quotePath=false", "core.hooksPath=/dev/null", "log.showSignature=false")
#: Hooks set the variables of the repository; here the folder determines it. A partial clone may name a program that
#: fetches missing objects, so no protocol is allowed.
_UNSET_VARIABLES = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"))
_VARIABLES = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_GIT = ("git", "--no-optional-locks", "--no-pager", *(word for each in _SET for word in ("-c", each)))
_SECONDS = 60.0
#: The message of git on a repository of another user: its path, and the command that allows it.
_REFUSED = re.compile(
    rb"detected dubious ownership in repository at '([^\n]+)'\n.*?"
    rb"(git config --global --add safe\.directory [^\n]+)",
    re.DOTALL,
)


def ask(
    folder: Path, *words: str, seconds: float = _SECONDS, index: str | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Return the completed git command in *folder*.

    Raises InvalidRequest if git is missing, does not answer in time, or refuses a repository of another user.

    *index* is the index file, if not the usual one; *given* is the standard input.
    """
    import subprocess  # takes 2.5 ms, and the guard mostly asks git nothing

    environment = {name: value for name, value in os.environ.items() if name not in _UNSET_VARIABLES} | _VARIABLES
    if index is not None:
        environment["GIT_INDEX_FILE"] = index
    try:
        done = subprocess.run([*_GIT, *words], cwd=folder, env=environment, input=given, capture_output=True,
                              timeout=seconds, check=False)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, FileNotFoundError) and error.filename == _GIT[0]:
            raise InvalidRequest("git is not installed", hint="install git, then try again") from error
        raise InvalidRequest(f"git failed in {folder}: {error}", hint="try it there: git log") from error
    if refused := _REFUSED.search(done.stderr):
        place, command = (part.decode("utf-8", "replace") for part in refused.groups())
        raise InvalidRequest(f"git refuses the repository {place}: it belongs to another user", hint=command)
    return done


def read_git(folder: Path, *words: str, index: str | None = None) -> bytes | None:
    """Return the output of git in *folder*, or None if it fails."""
    done = ask(folder, *words, index=index)
    return done.stdout if done.returncode == 0 else None


def blob(folder: Path, ref: str, name: str) -> bytes | None:
    """Return the content of the file *name* of *folder* at a revision, or None if it did not exist.

    Raises InvalidRequest if git lists the file but lacks its content, as in a partial clone.
    """
    data = read_git(folder, "cat-file", "blob", f"{ref}:./{name}")
    if data is None and (listed := read_git(folder, "ls-tree", ref, f"./{name}")) and b" blob " in listed:
        raise InvalidRequest(
            f"git lacks the content of {name} in {ref!r}: this is a partial clone, and nothing is fetched here",
            hint=f"let git fetch it: git -C {quote(str(folder))} archive {quote(ref)} > /dev/null",
        )
    return data


def content(path: Path, ref: str) -> bytes:
    """Return the content of the file *path* at a revision, empty if it did not exist; raises as `blob` does."""
    path = path.resolve()
    return blob(path.parent, ref, path.name) or b""


def blobs(folder: Path, ids: Sequence[str]) -> list[bytes]:
    """Return the contents of the blobs *ids*, in one call; raise InvalidRequest if git lacks one of them."""
    contents = available_blobs(folder, ids)
    for one in ids:
        if one not in contents:
            raise InvalidRequest(
                f"git lacks the blob {one}: this is a partial clone, and nothing is fetched here",
                hint=f"let git fetch it: git -C {quote(str(folder))} cat-file blob {one} > /dev/null",
            )
    return [contents[one] for one in ids]


def available_blobs(folder: Path, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the contents, by id, of those of the blobs *ids* that git has, in one call; raises as `ask`."""
    if not ids:
        return {}
    answer = ask(folder, "cat-file", "--batch", given="".join(f"{one}\n" for one in ids).encode()).stdout
    contents, at = dict[str, bytes](), 0
    for one in ids:
        if (line_end := answer.find(b"\n", at)) < 0:
            break
        words = answer[at:line_end].split()
        at = line_end + 1
        if len(words) == 3:  # else the blob is missing
            begin, at = at, at + int(words[2]) + 1
            if words[1] == b"blob":
                contents[one] = answer[begin : at - 1]
    return contents


def not_in_repository(folder: Path) -> str | None:
    """Return the reason of git why *folder* is in no repository, or None if it is in one."""
    done = ask(folder, "rev-parse", "--show-toplevel")
    return None if done.returncode == 0 else " ".join(done.stderr.decode("utf-8", "replace").split())


class StoredFolder(NamedTuple):
    """A folder that git has and the checkout lacks: where it was looked for, its path from the top of the repository,
    where it is, and the command that brings it.
    """

    parent: Path
    path: str
    where: str
    command: str
    is_left_out: bool  # by a sparse checkout


#: The most branches, those with the newest commits first, that are searched for a folder.
BRANCHES = 50


def stored_folder(folder: Path, name: str, *, above: bool) -> StoredFolder | None:
    """Return where git has the folder *name* of *folder*, or of one *above* it in the repository: HEAD, else a branch.

    None without a repository, without git, or if no branch has it.
    """
    if not any((each / ".git").exists() for each in (folder, *folder.parents)):
        return None
    try:
        place = read_git(folder, "rev-parse", "--show-cdup", "--show-prefix")
        if place is None:
            return None
        up, prefix = os.fsdecode(place).split("\n")[:2]
        parts, top = prefix.split("/")[:-1], quote(os.path.normpath(folder / up))
        paths = ["/".join([*parts[:depth], name]) for depth in range(len(parts), -1 if above else len(parts) - 1, -1)]
        listed = read_git(folder, "for-each-ref", "--sort=-committerdate", f"--count={BRANCHES}",
                          "--format=%(refname:short)", "refs/heads", "refs/remotes") or b""  # fmt: skip
        named = [(ref, path) for ref in ("HEAD", *os.fsdecode(listed).split()) for path in paths]
        given = "".join(f"{ref}:{path}\n" for ref, path in named)
        answers = ask(folder, "cat-file", "--batch-check", given=os.fsencode(given)).stdout.splitlines()
        chosen = next((pair for pair, answer in zip(named, answers, strict=False) if b" tree " in answer), None)
        if chosen is None:
            return None
        ref, path = chosen
        is_sparse = ref == "HEAD" and read_git(folder, "config", "--bool", "core.sparseCheckout") == b"true\n"
    except InvalidRequest:
        return None
    if is_sparse:
        command = f"git -C {top} sparse-checkout add {quote(path)}"
        return StoredFolder(folder, path, "left out by this sparse checkout", command, is_left_out=True)
    where = "deleted here" if ref == "HEAD" else f"on the branch {ref}"
    return StoredFolder(folder, path, where, f"git -C {top} checkout {quote(ref)} -- {quote(path)}", is_left_out=False)


def left_out(folder: Path) -> dict[str, str]:
    """Return the blob id of each tracked file below *folder* that is not checked out, by path; empty without git."""
    try:
        listed = os.fsdecode(read_git(folder, "ls-files", "-t", "-s", "-z") or b"")
    except InvalidRequest:  # git is missing
        return {}
    rows = (row.partition("\t") for row in listed.split("\0") if row.startswith("S "))  # the mark of such files
    return {path: row.split()[2] for row, _, path in rows}


class Checkout:
    """The files below a folder, and the tracked files that are not checked out."""

    def __init__(self, base: Path) -> None:
        self._base = base.resolve()

    def is_removed(self, path: str) -> bool:
        """Return whether the file at *path* is missing although it would be checked out."""
        if path_of(path) != path:
            return False  # outside the folder
        try:
            os.lstat(self._base / path)
        except (FileNotFoundError, NotADirectoryError):
            return path not in self._skipped
        except (OSError, ValueError):
            return False
        return False

    @cached_property
    def _skipped(self) -> dict[str, str]:
        return left_out(self._base)


#: The time limit for all files together, and the most renames of a file that are followed.
SECONDS, RENAMES = 30.0, 8
_LOG = ("--literal-pathspecs", "log", "--name-status", "-z", "--no-ext-diff", "--no-textconv", "--no-color")
_MOST_SHALLOW = 1024 * 1024


class _Incomplete(Exception):
    """A git answer that needs objects the clone lacks."""


def first_commits(base: Path, paths: Collection[str], seconds: float = SECONDS) -> dict[str, str]:
    """Return the moment of the first commit of each of *paths*, files below *base*, in UTC.

    Left out are files unknown to git, all files if git is missing or late, and files of the oldest commit of a shallow
    clone, which does not show when they were added.
    """
    try:
        return _first_commits(base.resolve(), paths, monotonic() + seconds)
    except (InvalidRequest, _Incomplete):  # no git, no commit, or no answer in time
        return {}


def _first_commits(base: Path, paths: Collection[str], deadline: float) -> dict[str, str]:
    """Return the moments: each round asks git for the commits that added the files, and for the renames in those."""
    place = read_git(base, "rev-parse", "--show-prefix", "--git-path", "shallow")
    if not paths or place is None:
        return {}
    prefix, shallow = os.fsdecode(place).split("\n")[:2]
    top = base.parents[prefix.count("/") - 1] if prefix else base
    cut, moments = _shallow(base / shallow), dict[str, str]()
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
                moments[path] = moment
        names = earlier
        if not names:
            break
    return moments


def _additions(top: Path, names: Collection[str], deadline: float) -> dict[str, tuple[str, str]]:
    places = sorted({dirname(name) or name for name in names})
    added: dict[str, tuple[str, str]] = {}
    for commit, moment, _, (name, *_) in _log(top, deadline, "--diff-filter=A", "--no-renames", "-c", "--", *places):
        if name in names:
            added[name] = (commit, moment)  # the newest come first
    return added


def _renames(top: Path, commits: Collection[str], deadline: float) -> dict[tuple[str, str], str]:
    """Return the former name of each file that one of *commits* renamed, by commit and new name.

    In a partial clone only files that were moved unchanged are recognised.
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
    """Yield commit, moment, status and names of each changed file; raises _Incomplete if git fails."""
    done = ask(top, *_LOG, "--format=tformat:%H %at %ct", *words, seconds=max(deadline - monotonic(), 0.1))
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
            moment = datetime.fromtimestamp(min(map(int, seconds)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        else:
            yield commit, moment, entry, [next(fields) for _ in range(2 if entry[0] in "RC" else 1)]


def _shallow(file: Path) -> frozenset[str]:
    """Return the last commits of a shallow clone; since their parents are missing, they seem to add every file."""
    try:
        with file.open("rb") as opened:
            return frozenset(opened.read(_MOST_SHALLOW).decode("ascii", "replace").split())
    except OSError:
        return frozenset()
