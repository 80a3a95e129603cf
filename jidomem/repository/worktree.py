"""The working tree of the repository a root lies in: which of its files may be looked at, and the id of each."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path

from jidomem.anchor import path_of
from jidomem.repository.ignored import is_ignored
from jidomem.words import misspelling_of

#: The largest file that is anchored, and how much is read for one memory.
LARGEST, AT_ONCE = 4 * 1024 * 1024, 16 * 1024 * 1024
_FILE = re.compile(r"(?!/)[^\s:*?\[\]{}\\]+/[^\s:*?\[\]{}\\/]*[^\s:*?\[\]{}\\/.]\.[A-Za-z0-9]{1,10}")
_RULES = 256 * 1024
_SHA256 = re.compile(r"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Worktree:
    """A checked out repository: its `top` folder, and the `base` that the paths of memories begin at.

    `root` is the memory root in it, `git` the folder of what the repository's working trees share.
    """

    top: Path
    base: Path
    root: Path
    git: Path

    @classmethod
    def around(cls, root: Path) -> Worktree | None:
        """Return the repository that *root* lies in, None where it lies in none.

        Paths begin at the folder that holds `.jidomem`; those of a root of another name at the top.
        """
        for top in (root, *root.parents):
            git = _git_folder(top / ".git")
            if git is not None:
                return cls(top, root.parent if root.name == ".jidomem" and root != top else top, root, git)
        return None

    def blobs(self, entries: Iterable[str]) -> dict[str, str]:
        """Return the blob id of each file of the repository among *entries*, by its path, as git computes it.

        Left out is what git ignores, what a symbolic link leads to, the root itself, and what is large.
        """
        found: dict[str, str] = {}
        left, algorithm = AT_ONCE, sha256 if self._counts_in_sha256() else sha1
        for path in dict.fromkeys(filter(None, map(path_of, entries))):
            data = self.read(path)
            if data is None or len(data) > left or is_ignored(self._from_top(path), self._rules_of(path)):
                continue
            left -= len(data)
            found[path] = blob_id(data, algorithm().name)
        return found

    def read(self, path: str) -> bytes | None:
        """Return the content of the file at *path*; None for what is none, too large, or reached by a link."""
        return None if (self.base / path).is_relative_to(self.root) else plain_file(self.base / path)

    def has(self, path: str) -> bool:
        """Return whether something is at *path*."""
        return os.path.lexists(self.base / path)

    def absent(self, entries: Iterable[str]) -> dict[str, str | None]:
        """Return those of *entries* that name a file which is not there, each with the path it is misspelt for.

        A name with a folder and an ending is one, where no other sign says that it is a pattern or an address.
        """
        named = dict.fromkeys(entry for entry in entries if _FILE.fullmatch(entry))
        return {entry: self._respelt(entry) for entry in named if not self.has(entry)}

    def _respelt(self, path: str) -> str | None:
        """Return the path of a file whose folders and name those of *path* are slips of the pen for."""
        respelt: list[str] = []
        for part in path.split("/"):
            folder = self.base.joinpath(*respelt)
            if part == ".." or not os.path.lexists(folder / part):
                try:
                    part = misspelling_of(part, os.listdir(folder)) or ""
                except OSError:
                    return None
                if part in ("", ".git"):
                    return None
            respelt.append(part)
        return "/".join(respelt)

    def configuration(self) -> str:
        """Return the text of the configuration of the repository, empty where there is none."""
        return _text(self.git / "config")

    def _from_top(self, path: str) -> str:
        return (self.base / path).relative_to(self.top).as_posix()

    def _rules_of(self, path: str) -> list[tuple[str, str]]:
        """Return the rules of what is ignored that count for *path*, the nearest last."""
        parts = self._from_top(path).split("/")[:-1]
        folders = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
        files = [("", self.git / "info" / "exclude"), *((at, self.top / at / ".gitignore") for at in folders)]
        return [(folder, text) for folder, file in files if (text := _text(file))]

    def _counts_in_sha256(self) -> bool:
        return bool(_SHA256.search(self.configuration()))


def path_below(base: Path, whole: Path) -> str | None:
    """Return the path from the folder *base* of what is at *whole*, None for what lies elsewhere.

    Links on the way are followed; one at its end is itself what is named.
    """
    try:
        real = Path(os.path.realpath(whole.parent)) / whole.name if whole.name != ".." else whole.resolve()
    except (OSError, ValueError):
        return None
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else None


def plain_file(whole: Path, largest: int = LARGEST) -> bytes | None:
    """Return the content of a file; None for what is none, has more than *largest* bytes, or is reached by a link."""
    try:
        if os.path.realpath(whole) != str(whole):
            return None
        file = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
        os.close(file)
        return None
    with os.fdopen(file, "rb") as opened:
        data = opened.read(largest + 1)
    return data if len(data) <= largest else None


def blob_id(data: bytes, algorithm: str = "sha1") -> str:
    r"""Return the id git gives a file's content.

    >>> blob_id(b"hello\n")
    'ce013625030ba8dba906f756967f9e9ca394464a'
    """
    content = b"blob %d\0" % len(data) + data
    return (sha256(content) if algorithm == "sha256" else sha1(content, usedforsecurity=False)).hexdigest()


def is_blob(data: bytes, blob: str) -> bool:
    """Return whether *data* is what *blob* is the id of, whichever line ends a checkout gave it."""
    algorithm = "sha256" if len(blob) == 64 else "sha1"
    if blob_id(data, algorithm) == blob:
        return True
    plain = data.replace(b"\r\n", b"\n")
    return any(blob_id(other, algorithm) == blob for other in (plain, plain.replace(b"\n", b"\r\n")) if other != data)


def _git_folder(found: Path) -> Path | None:
    """Return the folder with the configuration of a repository: `.git`, or what a file of that name leads to."""
    if found.is_dir():
        return found if (found / "HEAD").is_file() else None
    text = _text(found)
    if not text.startswith("gitdir: "):
        return None
    own = (found.parent / text[8:].strip()).resolve()
    shared = _text(own / "commondir").strip()
    return (own / shared).resolve() if shared else own


def _text(file: Path) -> str:
    """Return the text of a small file, empty where there is none."""
    try:
        with file.open("rb") as opened:
            return opened.read(_RULES).decode("utf-8", "replace")
    except OSError:
        return ""
