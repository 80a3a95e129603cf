"""What is asked of a memory system: an adapter answers the calls its system documents a way for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, NoReturn


class Unsupported(Exception):
    """The system documents no way to do this; the words say so, and where in its documentation one would look."""


class Refused(Exception):
    """The system did not keep what it was given, and said so to whoever gave it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What an agent says, once: *about* is a file below the folder, *key* that of a request that may be retried."""

    text: str
    topic: str
    agent: str = "ana"
    session: str = "s-1"
    source: str = "the minutes"
    about: str = ""
    valid_until: datetime | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A stored fact: its id, and the ids of those with which it disagrees, as the system told its writer."""

    id: str
    disagrees: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing the system gives as holding."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one entry comes from: None where the system does not tell."""

    who: str | None = None
    when: datetime | None = None
    session: str | None = None
    source: str | None = None


class System:
    """A memory in *folder*, opened by one process; several processes may open the same.

    An adapter overrides what its system documents a way for. *cannot* has the words for what it does not, by the name
    of the call: why, and where in its documentation that can be seen. *how* says how the system is used.
    """

    name: ClassVar[str]
    how: ClassVar[str] = ""
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def missing(cls) -> str:
        """Return what has to be installed for it to be measured; nothing, where all is there."""
        return ""

    @classmethod
    def version(cls) -> str:
        """Return which version of it is installed."""
        return ""

    def close(self) -> None:
        """Leave the memory in order."""

    def keep(self, fact: Fact) -> StoredFact:
        """Keep *fact*, durably when it returns; raise `Refused` where the system did not keep it."""
        self._cannot("keep")

    def replace(self, old: str, fact: Fact) -> StoredFact:
        """Keep *fact* in the place of the entry *old*."""
        self._cannot("replace")

    def in_force(self) -> Sequence[Entry]:
        """Return all that holds now, as an agent would ask for it."""
        self._cannot("in_force")

    def search(self, words: str) -> Sequence[Entry]:
        """Return what is found by *words*: asked before an erasure, so that what is kept for searching is there."""
        self._cannot("search")

    def embed(self) -> None:
        """Keep a vector of each text as well, made by `bench.governance.vectors.vector`, until it is closed.

        Asked for before anything else. `search` returns once the vectors are kept.
        """
        self._cannot("embed")

    def as_of(self, moment: datetime) -> Sequence[Entry]:
        """Return all that was known at a moment that is over."""
        self._cannot("as_of")

    def undo_to(self, moment: datetime) -> None:
        """Make what held at *moment* hold again, and nothing else."""
        self._cannot("undo_to")

    def explain(self, entry: str) -> Origin:
        """Return where an entry, active or not, comes from."""
        self._cannot("explain")

    def replaced(self, entry: str) -> str | None:
        """Return the text that an entry took the place of."""
        self._cannot("replaced")

    def ended(self, entry: str) -> str | None:
        """Return why an entry is active no longer, or what took its place."""
        self._cannot("ended")

    def disagreements(self) -> Sequence[tuple[str, str]]:
        """Return the ids of each two entries that the system says disagree."""
        self._cannot("disagreements")

    def expires(self) -> None:
        """Raise unless a fact can be kept with a moment at which it stops to hold; the rest is up to `in_force`."""
        self._cannot("expires")

    def changed(self) -> Sequence[str]:
        """Return the ids of entries about files that were changed since."""
        self._cannot("changed")

    def erase(self, text: str) -> None:
        """Remove *text*, wherever it stands, for good."""
        self._cannot("erase")

    def _cannot(self, call: str) -> NoReturn:
        raise Unsupported(self.cannot.get(call, f"its adapter has no `{call}`"))


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)
