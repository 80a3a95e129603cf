"""What git says was there at an earlier revision: the commits of a journal, the content of a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from jidomem.errors import InvalidRequest
from jidomem.journal import disk
from jidomem.journal.names import is_pack, stem, stem_of
from jidomem.repository import git
from jidomem.version import Head

_ROW = re.compile(rb"# commit ([0-9a-f]{64}) ([0-9T:.\-]+Z) ")


class Revision:
    """One revision of the repository that *folder* is in."""

    def __init__(self, folder: Path, ref: str) -> None:
        """Look *ref* up; raise InvalidRequest where there is no repository, or no such revision in it."""
        self.name = self.ref = ref
        if ref.startswith("-") or git.found(folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") is None:
            hint = "name a commit, branch or tag; in CI fetch it first (actions/checkout with fetch-depth: 0)"
            if (said := git.complaint(folder)) is not None:
                hint = "--since compares with what git has: leave it out, or make a repository: git init"
                raise InvalidRequest(f"--since: {folder} is in no git repository that may be read: {said}", hint=hint)
            raise InvalidRequest(f"--since: git knows no revision {ref!r}", hint=hint)

    def is_new(self, folder: Path) -> Callable[[Head], bool]:
        """Return what tells whether a commit of the journal in *folder* was not there yet."""
        known = self.commits(folder) if disk.exists(str(folder)) else {}
        return lambda head: stem(head) not in known

    def content(self, path: Path) -> bytes:
        """Return what was in a file; nothing where it was not there; raise InvalidRequest where git lacks it."""
        return git.content(path, self.ref)

    def commits(self, folder: Path, unread: Collection[str] = ()) -> dict[str, str]:
        """Return the name of the file that each commit of a journal in *folder* was in, by stem.

        The folder need not be there now. Packs named in *unread* are left out. Two calls of git, however many commits
        there are; raises InvalidRequest where git lacks a pack.
        """
        above = next(each for each in (folder, *folder.parents) if disk.exists(str(each)))
        place = "/".join((".", *folder.relative_to(above).parts, ""))
        listed = git.found(above, "ls-tree", "-z", self.ref, place) or b""
        found, packs = dict[str, str](), dict[str, str]()
        for row in filter(None, listed.split(b"\0")):
            fields, _, path = row.partition(b"\t")
            name = path.decode(errors="surrogateescape").rpartition("/")[2]
            if is_pack(name):
                packs |= {} if name in unread else {name: fields.split()[2].decode()}
            elif name.endswith(".ttl"):
                found[stem_of(name)] = name
        for name, data in zip(packs, git.blobs(above, [*packs.values()]), strict=True):
            found |= dict.fromkeys(_stems(data), name)
        return found

    def shared(self, folder: Path) -> Revision:
        """Return what this revision and HEAD have in common: itself, where HEAD came after it.

        What it gained since a branch left it was never taken away from that branch.
        """
        base = git.found(folder, "merge-base", self.ref, "HEAD")
        return self if base is None else _Known(base.decode().strip(), self.name)


class _Known(Revision):
    """A revision that is there, by its id, and as it was *name*d."""

    def __init__(self, ref: str, name: str) -> None:
        self.ref, self.name = ref, name


def known_revision(ref: str) -> Revision:
    """Return the revision *ref*, which is known to be there."""
    return _Known(ref, ref)


def head_of(folder: Path) -> Revision | None:
    """Return the revision HEAD of the repository *folder* is in, None where it is in none, or before the first commit.

    Raises InvalidRequest where git cannot be asked, refuses, or lacks that commit.
    """
    if git.found(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is not None:
        return _Known("HEAD", "HEAD")
    said = git.complaint(folder)
    if said is None and git.found(folder, "rev-parse", "--verify", "--quiet", "HEAD") is not None:
        said = "the commit that HEAD names is not there"
    if said is None or said.startswith("fatal: not a git repository"):
        return None
    raise InvalidRequest(f"{folder} could not be compared with git: {said}", hint="try it there: git log")


def _stems(pack: bytes) -> Iterator[str]:
    """Yield the stems of the commits in the table of a pack."""
    for identity, moment in _ROW.findall(pack.partition(b"\n@prefix ")[0]):
        yield stem(Head(moment.decode(), identity.decode(), 1))


def vanished(before: Mapping[str, str], here: Collection[str]) -> dict[str, list[str]]:
    """Return the stems *before* that are not *here*, by the name of the file they were in."""
    gone: dict[str, list[str]] = {}
    for key, name in sorted(before.items()):
        if key not in here:
            gone.setdefault(name, []).append(key)
    return gone
