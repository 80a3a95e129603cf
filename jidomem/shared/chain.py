"""Hold commits against each other as they come: each after its parents, at the position and moment that follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from jidomem.errors import JournalDamaged
from jidomem.journal.commit import Commit
from jidomem.version import SHORT

#: The digest of the document of each commit, by the id, both as bytes.
Forms = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a stream holds: commits, bytes of their documents, and one digest over ids and documents."""

    commits: int
    size: int
    digest: str


class Chain:
    """The commits of one stream as far as they came; `forms` has the digest of each document."""

    def __init__(self, where: str, explained: Collection[str] = ()) -> None:
        """Tell of damage in *where*; parents whose ids begin with one of *explained* were set aside."""
        self.forms: Forms = {}
        self.size = 0
        self._where = where
        self._explained = frozenset(explained)
        self._heads: dict[bytes, tuple[str, int]] = {}

    def add(self, commit: Commit) -> None:
        """Take a commit in; raise JournalDamaged unless its parents came before and it follows from them."""
        known = [self._heads.get(bytes.fromhex(parent)) for parent in commit.parents]
        missing = [parent for parent, head in zip(commit.parents, known, strict=True) if head is None]
        for parent in missing:
            if parent[:SHORT] not in self._explained:
                raise self._damaged(commit, f"its parent {parent} did not come before it")
        heads = [head for head in known if head is not None]
        if not missing and commit.position != 1 + max((position for _, position in heads), default=0):
            raise self._damaged(commit, f"its position {commit.position} does not follow from its parents")
        if any(moment >= commit.recorded_at for moment, _ in heads):
            raise self._damaged(commit, f"it was recorded at {commit.recorded_at}, not after its parents")
        identity = bytes.fromhex(commit.id)
        if identity in self.forms:
            raise self._damaged(commit, "it is there twice")
        self._heads[identity] = commit.recorded_at, commit.position
        self.forms[identity] = blake2b(commit.data, digest_size=16).digest()
        self.size += len(commit.data)

    def extent(self) -> Extent:
        """Return how much came."""
        return Extent(len(self.forms), self.size, digest(self.forms))

    def _damaged(self, commit: Commit, problem: str) -> JournalDamaged:
        return JournalDamaged(problem, path=self._where, commit=commit.id)


def chained(commits: Iterable[Commit], where: str, explained: Collection[str] = ()) -> Chain:
    """Return the chain of *commits*; raises JournalDamaged where they are none."""
    chain = Chain(where, explained)
    for commit in commits:
        chain.add(commit)
    return chain


def digest(forms: Forms) -> str:
    """Return one digest of ids and documents, whatever the order they came in.

    >>> digest({b"a": b"1", b"b": b"2"}) == digest({b"b": b"2", b"a": b"1"})
    True
    """
    found = blake2b(digest_size=32)
    for identity in sorted(forms):
        found.update(identity + forms[identity])
    return found.hexdigest()
