"""What one process knows of the folder of one stream: read as needed, never written, never locked."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal import disk
from jidomem.journal.commit import Commit, FormatError, advance, parse
from jidomem.journal.sight import SETTLE, Sight, number
from jidomem.version import SHORT, Head, Version

LOCK = ".lock"
#: Parsed commits kept for the read that follows the look that parsed them.
AT_HAND = 512

_FILE = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{12}(?:\.redacted)?\.ttl")


def file_name(head: Head, *, redacted: bool = False) -> str:
    """Return the name of a commit's file.

    >>> file_name(Head("2026-11-21T08:00:00.123456Z", "3fa9c1d20b7e" + "0" * 52, 1))
    '20261121T080000.123456Z-3fa9c1d20b7e.ttl'
    """
    moment = head.recorded_at.replace("-", "").replace(":", "")
    return f"{moment}-{head.id[:SHORT]}{'.redacted' if redacted else ''}.ttl"


def commit_files(path: str) -> set[str]:
    """Return the names in a folder that are, or claim to be, commit files; empty where there is no folder."""
    return {name for name in disk.names(path) if name.endswith(".ttl") and name[0] != "."}


def _prefix(name: str) -> str:
    return name.partition("-")[2][:SHORT]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a commit that was read: how it hangs together with others."""

    head: Head
    parents: tuple[str, ...]


class Folder:
    """One stream's folder as this process knows it; safe to use from several threads."""

    def __init__(self, path: Path, graph: str) -> None:
        self.path = str(path)
        self.lock_path = f"{path}/{LOCK}"
        self.graph = graph
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self.sight = Sight(-1, 0, 0, 0, Version())
        self.unshared = False  # whether the sight is news to the lock file
        self._names: set[str] | None = None  # the names self._base is the version of
        self._base = Version()
        self._places: dict[str, set[str]] = {}  # id prefix -> names
        self._heard: set[str] = set()  # names in _places known from a version, not from a listing
        self._entries: dict[str, Entry] = {}
        self._at_hand: dict[str, Commit] = {}
        self._broken: dict[str, JournalDamaged] = {}
        self._gaps: dict[str, JournalDamaged] = {}

    def look(self) -> Version:
        """Return the version of the folder now; list it only where its time and the lock file leave a doubt."""
        with self._lock:
            now, mtime = time_ns(), disk.mtime(self.path)
            if self._names is not None and not self.is_damaged:
                if self.sight.since == 0 and self.sight.mtime == mtime:
                    return self.sight.version
                kept = Sight.load(self.lock_path)
                if kept is not None and kept.holds_at(mtime, now):
                    self._hear(map(file_name, kept.version.heads))
                    self.sight, self.unshared = kept, False
                    return kept.version
            self._list()
            return self.sight.version

    @property
    def is_damaged(self) -> bool:
        """Return whether the last look came upon damage."""
        return bool(self._broken or self._gaps)

    def damage(self) -> tuple[JournalDamaged, ...]:
        """Return what is damaged now, by file name: files that do not verify, and parents that are not there."""
        with self._lock:
            self.look()
            found = {**self._gaps, **self._broken}
            return tuple(found[name] for name in sorted(found))

    def verify(self) -> tuple[JournalDamaged, ...]:
        """Return what is damaged, every byte of every commit read again from disk."""
        with self._lock:
            self._forget()
            self._list(trust=False)
            return self.damage()

    def holds(self, version: Version) -> bool:
        """Return whether every head of *version* is here."""
        return all(map(self._present, version.heads))

    def after(self, version: Version) -> list[str]:
        """Return the files of the commits neither in *version* nor before it, in the order of the stream.

        Raise NotFound unless the heads of *version* are here.
        """
        with self._lock:
            if not version.heads:
                here = commit_files(self.path)
                return sorted(name for name in here if f"{name[:-4]}.redacted.ttl" not in here)
            if not self.holds(version):
                raise NotFound(
                    f"{self.path} no longer has the version {version}: another branch was checked out",
                    hint="read from the start: read(stream)",
                )
            self.look()
            names = self._walk(version)
            if self.is_damaged:  # the walk may have come upon it: look again at all that is here
                self._list()
                return self._walk(version)
            return names

    def commit(self, name: str) -> Commit | None:
        """Return the commit in a file, None where the file is damaged (see `damage`) or has gone."""
        with self._lock:
            for candidate in (name, f"{name[:-4]}.redacted.ttl"):
                commit = self._at_hand.pop(candidate, None) or self._read(candidate)
                if commit is not None or candidate in self._broken:
                    return commit
            return None

    def find(self, identity: str) -> Entry | None:
        """Return what is known of the commit *identity*, None where it is not here or does not verify."""
        with self._lock:
            for name in sorted(self._places.get(identity[:SHORT], ())):
                entry = self._entry(name)
                if entry is not None and entry.head.id == identity:
                    return entry
            return None

    def added(self, commit: Commit, seen: Sight, since: int) -> Sight:
        """Return the sight after *commit*, written by this process on top of *seen*, last certain at *since*."""
        with self._lock:
            name, mtime = file_name(commit.head), disk.mtime(self.path)
            self._entries[name] = Entry(commit.head, commit.parents)
            version = advance(seen.version, [commit])
            if self._names is not None and self._base == seen.version:
                self._names.add(name)
                self._place([name])
                self._base = version
            else:
                self._hear([name])
            self.sight = Sight(mtime or -1, since, seen.count + 1, seen.sum + number(name), version)
            return self.sight

    def _list(self, *, trust: bool = True) -> None:
        """List the folder and bring everything known up to date; a missing parent is looked for twice."""
        for _ in range(2):
            now, mtime = time_ns(), disk.mtime(self.path)
            if mtime is None:
                self._forget()
                return
            names = commit_files(self.path)
            total = sum(map(number, names))
            if names != self._names or self.is_damaged:
                self._account(names, total, trust=trust)
            self.sight = Sight(mtime, 0 if now - mtime >= SETTLE else now, len(names), total, self._base)
            self.unshared = True
            if not self._gaps:
                return

    def _account(self, names: set[str], total: int, *, trust: bool) -> None:
        """Set the version of exactly *names*, from the cheapest source that is certain."""
        kept = Sight.load(self.lock_path) if trust and not self.is_damaged else None
        for gone in self._heard - names:
            self._places[_prefix(gone)].discard(gone)
        self._heard = set()
        fresh = names - self._names if self._names is not None and self._names <= names else None
        if fresh is None:
            self._places = {}
        self._place(names if fresh is None else fresh)
        if kept is not None and (kept.count, kept.sum) == (len(names), total):
            self._base = kept.version
        elif fresh is not None and not self.is_damaged:
            self._base = advance(self._base, self._enter(fresh))
        else:
            self._broken, self._gaps = {}, {}
            self._base = advance(Version(), self._enter(names))
        self._names = names

    def _enter(self, names: Iterable[str]) -> list[Entry]:
        """Return the entries of the sound files among *names*, their links checked."""
        found = {name: entry for name in sorted(names) if (entry := self._entry(name)) is not None}
        for name, entry in found.items():
            problem = self._broken_link(entry)
            if problem:
                self._gaps[name] = self._damaged(name, problem, identity=entry.head.id)
        return list(found.values())

    def _entry(self, name: str) -> Entry | None:
        if name not in self._entries:
            commit = self._read(name)
            if commit is not None:
                self._keep_at_hand(name, commit)
        return self._entries.get(name)

    def _read(self, name: str) -> Commit | None:
        """Return the commit in a file, verified; note the damage, or that the file has gone."""
        self._entries.pop(name, None)
        try:
            commit = parse(disk.read(f"{self.path}/{name}"))
        except FileNotFoundError:
            return None
        except OSError as error:
            self._broken[name] = self._damaged(name, f"cannot be read: {error.strerror}")
            return None
        except FormatError as error:
            self._broken[name] = self._damaged(name, str(error), line=error.line)
            return None
        fitting = file_name(commit.head, redacted=commit.redacted)
        if name != fitting or commit.graph != self.graph:
            problem = f"holds a commit to be named {fitting}, of the graph {commit.graph}: it was moved"
            self._broken[name] = self._damaged(name, problem, identity=commit.id)
            return None
        self._entries[name] = Entry(commit.head, commit.parents)
        return commit

    def _damaged(self, name: str, problem: str, *, line: int | None = None, identity: str = "") -> JournalDamaged:
        claimed = _prefix(name) if _FILE.fullmatch(name) else None
        return JournalDamaged(problem, path=f"{self.path}/{name}", line=line, commit=identity or claimed)

    def _broken_link(self, entry: Entry) -> str:
        """Return what does not fit between a commit and its parents, or nothing."""
        parents = []
        for identity in entry.parents:
            parent = self.find(identity)
            if parent is not None:
                parents.append(parent.head)
            elif not self._places.get(identity[:SHORT], set()) & self._broken.keys():
                return f"its parent {identity} is not here"
        if len(parents) < len(entry.parents):
            return ""  # the parent's own file is the damaged one
        if entry.head.position != 1 + max((parent.position for parent in parents), default=0):
            return f"its position {entry.head.position} does not follow from its parents"
        if any(parent.recorded_at >= entry.head.recorded_at for parent in parents):
            return f"it was recorded at {entry.head.recorded_at}, not after its parents"
        return ""

    def _walk(self, version: Version) -> list[str]:
        """Return the names of what is reachable from the heads and not from *version*, oldest first.

        Newest first, so every child is passed before its parents and the walk ends where only the known is left.
        """
        front = {head.id: head for head in (*self.sight.version.heads, *version.heads)}
        known, wanted = set(version.ids), []
        while front.keys() - known:
            head = front.pop(max(front.values()).id)
            entry = self._find_anew(head.id)
            if entry is None:
                continue
            if head.id in known:
                known.update(entry.parents)
            else:
                wanted.append(head)
            for identity in entry.parents:
                parent = None if identity in front else self._find_anew(identity)
                if parent is not None:
                    front[identity] = parent.head
        return [self._present(head) or file_name(head) for head in sorted(wanted)]

    def _find_anew(self, identity: str) -> Entry | None:
        """Return what is known of a commit, after a listing where another process wrote and the names are not known."""
        entry = self.find(identity)
        if entry is None and self._base != self.sight.version:
            self._list()
            entry = self.find(identity)
        return entry

    def _present(self, head: Head) -> str | None:
        """Return the name of a commit's file, the redacted form first, None where neither is there."""
        names = (file_name(head, redacted=True), file_name(head))
        return next((name for name in names if disk.exists(f"{self.path}/{name}")), None)

    def _place(self, names: Iterable[str]) -> None:
        for name in names:
            self._places.setdefault(_prefix(name), set()).add(name)

    def _hear(self, names: Iterable[str]) -> None:
        unlisted = [name for name in names if self._names is None or name not in self._names]
        self._heard.update(unlisted)
        self._place(unlisted)

    def _keep_at_hand(self, name: str, commit: Commit) -> None:
        if len(self._at_hand) >= AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
        self._at_hand[name] = commit
