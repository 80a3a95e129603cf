"""What git says was there at an earlier revision: the commits of a journal, the content of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from jidomem.errors import InvalidRequest
from jidomem.journal.names import is_pack, stem, stem_of
from jidomem.repository import git
from jidomem.version import Head

_ROW = re.compile(rb"# commit ([0-9a-f]{64}) ([0-9T:.\-]+Z) ")


class Revision:
    """One revision of the repository that *folder* is in."""

    def __init__(self, folder: Path, ref: str) -> None:
        """Look *ref* up; raise InvalidRequest where there is no repository, or no such revision in it."""
        self._ref = ref
        if ref.startswith("-") or git.found(folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") is None:
            hint = "name a commit, branch or tag; in CI fetch it first (actions/checkout with fetch-depth: 0)"
            if (said := git.complaint(folder)) is not None:
                hint = "--since compares with what git has: leave it out, or make a repository: git init"
                raise InvalidRequest(f"--since: {folder} is in no git repository that may be read: {said}", hint=hint)
            raise InvalidRequest(f"--since: git knows no revision {ref!r}", hint=hint)

    def is_new(self, folder: Path) -> Callable[[Head], bool]:
        """Return what tells whether a commit of the journal in *folder* was not there yet."""
        known = set(self._stems(folder))
        return lambda head: stem(head) not in known

    def content(self, path: Path) -> bytes:
        """Return what was in a file; nothing where it was not there; raise InvalidRequest where git lacks it."""
        path = path.resolve()
        return git.blob(path.parent, self._ref, path.name) or b""

    def _stems(self, folder: Path) -> Iterator[str]:
        if not folder.is_dir():
            return
        listed = git.found(folder, "ls-tree", "-z", "--name-only", self._ref, "./") or b""
        for name in map(os.fsdecode, filter(None, listed.split(b"\0"))):
            if is_pack(name):
                data = git.blob(folder, self._ref, name) or b""
                for identity, moment in _ROW.findall(data.partition(b"\n@prefix ")[0]):
                    yield stem(Head(moment.decode(), identity.decode(), 1))
            elif name.endswith(".ttl"):
                yield stem_of(name)
