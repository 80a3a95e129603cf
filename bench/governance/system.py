"""The interface of a memory system: an adapter implements the calls for which its system documents a way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, NoReturn


class Unsupported(Exception):
    """The system documents no way to do this; the message says why, and where its documentation shows that."""


class Refused(Exception):
    """The system refused to store a fact, and told its writer."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement of an agent: *about* is a file below the folder, *key* the idempotency key of the request."""

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
    """A stored fact: its id, and the ids of contradicting entries that the answer to the write named."""

    id: str
    contradicts: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An active entry."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The provenance of an entry: None where the system does not record it."""

    agent: str | None = None
    written_at: datetime | None = None
    session: str | None = None
    source: str | None = None


class System:
    """A memory in *folder*, opened by one process; several processes may open the same.

    An adapter overrides the calls for which its system documents a way. *unsupported_calls* gives the reason for each
    other call by its name, and where the documentation shows it. *usage* says how the system is used.
    """

    name: ClassVar[str]
    usage: ClassVar[str] = ""
    unsupported_calls: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def missing(cls) -> str:
        """Return what has to be installed; empty if nothing is missing."""
        return ""

    @classmethod
    def version(cls) -> str:
        """Return the installed version."""
        return ""

    def close(self) -> None:
        """Close the memory."""

    def store(self, fact: Fact) -> StoredFact:
        """Store *fact* durably; raise `Refused` if the system refuses it."""
        self._raise_unsupported("store")

    def replace(self, old: str, fact: Fact) -> StoredFact:
        """Store *fact* in the place of the entry *old*."""
        self._raise_unsupported("replace")

    def active_entries(self) -> Sequence[Entry]:
        """Return all entries that hold now, as an agent would query them."""
        self._raise_unsupported("active_entries")

    def search(self, words: str) -> Sequence[Entry]:
        """Return the entries that match *words*; it is called before an erasure, so that search indexes exist."""
        self._raise_unsupported("search")

    def embed(self) -> None:
        """Store a vector of each text, too, made by `bench.governance.vectors.vector`.

        It is called before all others. `search` returns once the vectors are stored.
        """
        self._raise_unsupported("embed")

    def as_of(self, moment: datetime) -> Sequence[Entry]:
        """Return the entries that were active at a past moment."""
        self._raise_unsupported("as_of")

    def undo_to(self, moment: datetime) -> None:
        """Restore the active entries of *moment*."""
        self._raise_unsupported("undo_to")

    def origin_of(self, entry: str) -> Origin:
        """Return the provenance of an entry, active or not."""
        self._raise_unsupported("origin_of")

    def replaced_text(self, entry: str) -> str | None:
        """Return the text that an entry replaced; None if it replaced none."""
        self._raise_unsupported("replaced_text")

    def end_reason(self, entry: str) -> str | None:
        """Return why an entry ended, or what replaced it; None if it is active."""
        self._raise_unsupported("end_reason")

    def disagreements(self) -> Sequence[tuple[str, str]]:
        """Return the pairs of entries that the system reports as contradicting, by id."""
        self._raise_unsupported("disagreements")

    def require_expiration(self) -> None:
        """Raise `Unsupported` unless `store` honours `valid_until`; `active_entries` leaves out expired facts."""
        self._raise_unsupported("require_expiration")

    def entries_of_changed_files(self) -> Sequence[str]:
        """Return the ids of entries about files that have changed since."""
        self._raise_unsupported("entries_of_changed_files")

    def erase(self, text: str) -> None:
        """Erase *text* from every file, permanently."""
        self._raise_unsupported("erase")

    def _raise_unsupported(self, call: str) -> NoReturn:
        raise Unsupported(self.unsupported_calls.get(call, f"its adapter has no `{call}`"))


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
