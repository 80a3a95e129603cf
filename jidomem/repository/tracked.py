"""The files of a folder that are a project's own: what git tracks or would, and the id of each one's content."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jidomem.errors import InvalidRequest
from jidomem.repository import git
from jidomem.repository.ignored import is_ignored

_ENTRY = re.compile(r"(\d{6}) ([0-9a-f]{40}|[0-9a-f]{64}) (\d)\t(.*)", re.DOTALL)
_SEEN = re.compile(
    r"\s*ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: \d+\n  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: \w+\n"
)
#: Folders that hold no code of the project where no git says what does.
_NEVER = frozenset((".git", ".jidomem", ".venv", "__pycache__", "node_modules", "_build", ".elixir_ls", ".tox"))
_RULES = 256 * 1024
_UNSETTLED = "a merge has not settled it: settle it, then git add"


@dataclass(slots=True)
class Tracked:
    """The files below `base`, by their path from there, with the blob id of those that need not be read for it.

    `revision` is the one checked out, empty without git. `passed` says why each path that is not in `files` is not,
    where it would be but for that; a name that cannot be written down is told in ASCII.
    """

    base: Path
    files: dict[str, str | None] = field(default_factory=dict)
    revision: str = ""
    passed: dict[str, str] = field(default_factory=dict)

    def read(self, path: str, largest: int) -> bytes | None:
        """Return the content of a file; None for none, for one behind a link or of more than *largest* bytes."""
        whole = self.base / path
        try:
            if os.path.realpath(whole) != str(whole):
                return None
            file = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
                return None
            data = opened.read(largest + 1)
        return data if len(data) <= largest else None


def tracked(base: Path, below: str, endings: tuple[str, ...]) -> Tracked:
    """Return the files below the folder *below* of *base* whose names end so: what git does not ignore, and no links.

    A file that is as git last saw it has the id git gave it then, and is not read; where there is no git, none has one.
    """
    base = base.resolve()
    found = Tracked(base)
    known = _known(base, below, endings, found.passed)
    listed = dict.fromkeys(_walked(base, below, endings)) if known is None else known
    for path in sorted(listed):
        if _is_text(path):
            found.files[path] = listed[path]
        else:
            found.passed[_written(path)] = "its name cannot be written down: rename it"
    if known is None:
        return found
    head = git.found(base, "rev-parse", "--verify", "-q", "HEAD")
    found.revision = head.decode("ascii", "replace").strip() if head else ""
    return found


def _known(base: Path, below: str, endings: tuple[str, ...], passed: dict[str, str]) -> dict[str, str | None] | None:
    """Return what git lists; None where there is no git, or *base* is in no repository or is ignored in one.

    What a merge has not settled is *passed*.
    """
    place = ["--", f":(literal){below}" if below else "."]
    try:
        known = git.found(base, "ls-files", "-z", "-s", "--debug", *place)
        new = git.found(base, "ls-files", "-z", "-o", "--exclude-standard", *place)
        index = git.found(base, "rev-parse", "--git-path", "index")
        if known is None or new is None or index is None or git.ask(base, "check-ignore", "-q", ".").returncode == 0:
            return None
    except InvalidRequest:
        return None
    written = _status(base / os.fsdecode(index.rstrip(b"\n"))) or (0, 0)
    files: dict[str, str | None] = {}
    for path, blob, seen in _entries(known.decode("utf-8", "surrogateescape")):
        if not blob:
            passed |= {_written(path): _UNSETTLED} if path.endswith(endings) else {}
        elif path.endswith(endings) and (now := _status(base / path)) is not None:
            # git would read a file again that was changed when the index was written, or after it
            files[path] = blob if seen == now and now[0] < written[0] else None
    for path in new.decode("utf-8", "surrogateescape").split("\0"):
        if path.endswith(endings) and _status(base / path) is not None:
            files[path] = None
    return files


def _entries(text: str) -> Iterator[tuple[str, str, tuple[int, int] | None]]:
    """Yield path, blob id and what git saw of each file: when it was changed, in nanoseconds, and its size.

    That is None where git says it otherwise than it does today. What a merge has not settled has no blob id; links are
    left out.
    """
    waiting: tuple[str, str] | None = None
    for entry in text.split("\0"):
        seen = _SEEN.match(entry)
        if waiting is not None:
            yield *waiting, (int(seen[1]) * 10**9 + int(seen[2]), int(seen[3])) if seen else None
        match = _ENTRY.fullmatch(entry[seen.end() :] if seen else entry)
        is_file = match and match[1].startswith("100")
        waiting = (match[4], match[2] if match[3] == "0" else "") if match and is_file else None


def _walked(base: Path, below: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the files there are, without git, in order; what a .gitignore names is left out."""
    for folder, folders, files in os.walk(base / below, followlinks=False):
        at = Path(folder).relative_to(base).as_posix().removeprefix(".").strip("/")
        rules = _rules(base, at)
        prefix = f"{at}/" if at else ""
        never = _NEVER | ({"deps"} if "mix.exs" in files else set())  # where mix puts what it fetched
        folders[:] = sorted(
            name for name in folders if name not in never and not is_ignored(f"{prefix}{name}/x", rules)
        )
        for name in sorted(files):
            path = prefix + name
            if name.endswith(endings) and not is_ignored(path, rules) and _status(base / path):
                yield path


def _rules(base: Path, folder: str) -> list[tuple[str, str]]:
    """Return the rules of what is ignored that count in *folder*, the nearest last."""
    parts = folder.split("/") if folder else []
    found = []
    for depth in range(len(parts) + 1):
        at = "/".join(parts[:depth])
        try:
            with (base / at / ".gitignore").open("rb") as opened:
                found.append((at, opened.read(_RULES).decode("utf-8", "replace")))
        except OSError:
            continue
    return found


def _is_text(path: str) -> bool:
    """Return whether a path is UTF-8, and can be written down."""
    try:
        path.encode("utf-8")
    except UnicodeError:
        return False
    return "\0" not in path and "\n" not in path


def _written(path: str) -> str:
    """Return a path as it can be written down."""
    return path if _is_text(path) else ascii(path)[1:-1]


def _status(file: Path) -> tuple[int, int] | None:
    """Return when a file was changed and its size; None for what is no file of its own."""
    try:
        status = os.lstat(file)
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None
