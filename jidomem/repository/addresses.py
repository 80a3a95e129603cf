"""Web addresses of the files of a repository, as GitHub, GitLab and Gitea form them from its remotes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from jidomem.anchor import path_of
from jidomem.repository.worktree import Worktree, path_below

_REMOTE_URL = re.compile(r"^\s*url\s*=\s*(\S+)\s*$", re.MULTILINE)
#: `https://host/owner/name.git`, `ssh://git@host/owner/name` and `git@host:owner/name.git`.
_REMOTE = re.compile(r"(?:[a-z+]+://)?(?:[^@/\s]+@)?([^:/\s]+)(?::\d+)?[:/]+(\S+?)(?:\.git)?/*", re.IGNORECASE)
_ADDRESS = re.compile(
    r"https?://([^/\s]+)/([^\s?#]{1,300}?)/(?:-/)?(?:blob|tree|blame|raw|edit|src/(?:branch|tag|commit))/([^\s?#]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the files below *base*; *names* are the remotes of their repository: `host/owner/name`."""

    top: Path
    base: Path
    names: frozenset[str]

    @classmethod
    def of(cls, tree: Worktree) -> Addresses:
        """Return the addresses of the files of *tree*, whose remotes are read from its configuration."""
        return cls(tree.top, tree.base, remote_names(tree.configuration()))

    def path(self, address: str) -> str | None:
        """Return the path below the base that *address* stands for, None where it is of no remote or lies elsewhere.

        Which part of an address is the branch, is told by the file that is there; else it is one word.
        """
        found = _ADDRESS.match(address)
        if found is None or f"{found[1]}/{found[2]}".casefold() not in self.names:
            return None
        words = unquote(found[3]).rstrip("/").split("/")
        paths = ["/".join(words[count:]) for count in range(1, len(words))]
        path = next((path for path in paths if path_of(path) and os.path.lexists(self.top / path)), None)
        path = path_of(path or next(iter(paths), ""))
        return None if path is None else path_below(self.base, self.top / path)


def remote_names(config: str) -> frozenset[str]:
    r"""Return the remotes that the configuration of a repository names, each as `host/owner/name`.

    >>> sorted(remote_names('[remote "origin"]\n\turl = git@github.com:Ana/shop.git\n'))
    ['github.com/ana/shop']
    """
    found = (_REMOTE.fullmatch(url) for url in _REMOTE_URL.findall(config))
    return frozenset(f"{remote[1]}/{remote[2]}".casefold() for remote in found if remote)
