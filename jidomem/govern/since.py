"""What git says was there at an earlier revision: the commits of a journal, the content of a file."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from jidomem.errors import InvalidRequest
from jidomem.journal.names import is_pack, stem, stem_of
from jidomem.version import Head

_ROW = re.compile(rb"# commit ([0-9a-f]{64}) ([0-9T:.\-]+Z) ")


class Revision:
    """One revision of the repository that *folder* is in."""

    def __init__(self, folder: Path, ref: str) -> None:
        """Look *ref* up; raise InvalidRequest where there is no repository, or no such revision in it."""
        self._folder = folder
        self._ref = ref
        if ref.startswith("-") or self._git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") is None:
            inside = self._git("rev-parse", "--show-toplevel") is not None
            problem = f"git knows no revision {ref!r}" if inside else f"{folder} is in no git repository"
            hint = "name a commit, branch or tag; in CI fetch it first (actions/checkout with fetch-depth: 0)"
            raise InvalidRequest(f"--since: {problem}", hint=hint)

    def is_new(self, folder: Path) -> Callable[[Head], bool]:
        """Return what tells whether a commit of the journal in *folder* was not there yet."""
        known = set(self._stems(folder))
        return lambda head: stem(head) not in known

    def content(self, path: Path) -> bytes:
        """Return what was in a file; nothing where it was not there."""
        return self._git("cat-file", "blob", f"{self._ref}:./{path.name}", at=path.resolve().parent) or b""

    def _stems(self, folder: Path) -> Iterator[str]:
        if not folder.is_dir():
            return
        listed = self._git("ls-tree", "-z", "--name-only", f"{self._ref}", "./", at=folder) or b""
        for name in map(os.fsdecode, filter(None, listed.split(b"\0"))):
            if is_pack(name):
                data = self._git("cat-file", "blob", f"{self._ref}:./{name}", at=folder) or b""
                for identity, moment in _ROW.findall(data.partition(b"\n@prefix ")[0]):
                    yield stem(Head(moment.decode(), identity.decode(), 1))
            elif name.endswith(".ttl"):
                yield stem_of(name)

    def _git(self, *arguments: str, at: Path | None = None) -> bytes | None:
        """Return what git answers; None where it fails."""
        command = ["git", "-C", str(at or self._folder), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except OSError as error:
            raise InvalidRequest(f"--since needs git: {error}", hint="install git, or leave out --since") from error
        return done.stdout if done.returncode == 0 else None
