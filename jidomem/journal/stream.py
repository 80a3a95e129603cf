"""A folder is the stream as one process knows it: version, order and damage, read when needed, without a lock.

A process that lists the folder a second time watches it from then on, and need not list it again.

The lock file of a folder stores the newest `FolderSnapshot`, which saves a listing. A snapshot names its `place` (the
local marker of the folder), which is the key of its checksum and of the sum of the file names, so a snapshot that a
clone brings along is not trusted.

Each commit is checked against its parents: it is recorded after them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import blake2b
from heapq import nlargest
from itertools import chain, starmap
from operator import attrgetter
from pathlib import Path
from time import time_ns
from typing import Any, Self, TypeVar, cast

from jidomem.base import disk
from jidomem.base.disk import SETTLE, FolderWatch, is_settled
from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal.commit import Commit, advance, file_name, is_pack, stem, stem_of
from jidomem.journal.packs import PackEntry
from jidomem.journal.stream_files import (
    Contents,
    each_file,
    missing_parent,
    missing_parent_text,
    parent_fault,
    unfit_commits,
)
from jidomem.records.intent import SHORT, CommitRef, Version

#: The most bytes of the line of a lock file that are read: some thousand heads.
_MAX_LINE_BYTES = 1 << 20
#: Sums of names are modulo this.
_SUM_MODULUS = 1 << 64
_HEAD = attrgetter("recorded_at", "id", "position")
#: The signs of a stored snapshot: of the present files, or of those before a change that is under way or was killed.
_CURRENT, _CHANGING = b"=", b"-"


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
    """A version of a folder: its modification time, the number and sum of its file names, and the heads.

    `since` is the time at which it was last certain, 0 if an unchanged modification time is proof: a change in the
    same tick of the clock does not change that time. A snapshot depends on the names alone, so a process that lists
    the same names may use its version.
    """

    mtime: int
    since: int
    count: int
    sum: int
    loose: int  # the number of names that are no packs
    version: Version
    place: str = ""  # distinguishes the folder from its copies

    def holds_at(self, mtime: int | None, now: int) -> bool:
        """Return whether the snapshot is valid at *now* for a folder with modification time *mtime*."""
        return self.mtime == mtime and (self.since == 0 or 0 <= now - self.since < SETTLE)

    def sum_of(self, names: Iterable[str]) -> int:
        """Return the part of *names* in the sum; without the place nobody can choose names with an equal sum."""
        keyed, total = blake2b(digest_size=8, key=self.place.encode()), 0
        for name in names:
            each = keyed.copy()
            each.update(name.encode(errors="surrogateescape"))
            total += int.from_bytes(each.digest(), "little")
        return total % _SUM_MODULUS

    def is_of_names(self, other: FolderSnapshot) -> bool:
        """Return whether this snapshot and another have the same names."""
        return (self.count, self.sum, self.place) == (other.count, other.sum, other.place)

    def newer(self, names: set[str], total: int) -> list[str] | None:
        """Return the *names*, with the sum *total*, that are new; None unless all others are those of the snapshot."""
        new_count = len(names) - self.count
        if new_count < 0:
            return None
        newest = nlargest(new_count, (name for name in names if not is_pack(name)))
        return newest if self.sum == (total - self.sum_of(newest)) % _SUM_MODULUS else None

    def changed(self, mtime: int, since: int, version: Version, placed: Sequence[str], removed: Sequence[str]) -> Self:
        """Return the snapshot of *version*, after files were *placed* and others, of the same commits, *removed*."""
        count = len(placed) - len(removed)
        total = (self.sum + self.sum_of(placed) - (self.sum_of(removed) if removed else 0)) % _SUM_MODULUS
        loose = self.loose + count - sum(map(is_pack, placed)) + sum(map(is_pack, removed))
        return type(self)(mtime, since, self.count + count, total, loose, version, self.place)

    def dump(self) -> bytes:
        """Return the snapshot as one line: sign, checksum and values; the rest of an older line may follow it."""
        heads = list(map(_HEAD, self.version.heads))
        text = json.dumps([self.mtime, self.since, self.count, self.sum, self.loose, heads]).encode()
        return _CURRENT + _checksum(text, self.place) + b" " + text + b"\n"

    @classmethod
    def load(cls, path: str, place: str) -> FolderSnapshot | None:
        """Return the snapshot in a lock file; None if it has another *place*, or is being written."""
        try:
            checksum, _, text = disk.read_part(path, 0, _MAX_LINE_BYTES).partition(b"\n")[0].partition(b" ")
        except OSError:
            return None
        if not place or checksum[1:] != _checksum(text, place):
            return None
        mtime, since, count, total, loose, heads = json.loads(text)
        version, mtime = Version.of(starmap(CommitRef, heads)), mtime if checksum[:1] == _CURRENT else -1
        return cls(mtime, since, count, total, loose, version, place)


UNLISTED = FolderSnapshot(-1, 0, 0, 0, 0, Version())


def _checksum(text: bytes, place: str) -> bytes:
    return blake2b(text, digest_size=16, key=place.encode(), person=b"jidomem sight 3").hexdigest().encode()


LOCK = ".lock"
_STAYED = (
    "check out the branch or revision that this file was written on (git cherry-pick takes no parents along); else"
    " restore the parent from git or a backup, then run: jidomem journal verify; if it is lost, go on without it:"
    " jidomem journal verify --quarantine {} --reason TEXT"
)
#: If more than `_FEW` files are damaged, they are read again not by each look, but after `_EACH` nanoseconds for each.
_FEW, _EACH = 100, 25_000


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _forgets_on_failure(method: _Method) -> _Method:
    """Return *method* of a folder; if it fails part way, or is interrupted, the next refresh lists the folder."""

    @wraps(method)
    def run(self: Folder, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except BaseException:
            self.forget()
            raise

    return cast(_Method, run)


class Folder:
    """One stream's folder as this process knows it; safe to use from several threads."""

    def __init__(
        self, path: Path, graph: str, seen: Callable[[Commit], object] | None = None, *, is_watched: bool = False
    ) -> None:
        """Read the folder *path* of the graph; *seen* is called with every intact commit.

        A folder that *is_watched* is watched from the first listing on, not from the second.
        """
        self._seen = seen
        self.path = str(path)
        self.lock_path = f"{path}/{LOCK}"
        self.graph = graph
        self._lock = threading.RLock()
        self._is_watched = is_watched
        self.forget()

    def forget(self) -> None:
        """Drop all state, as for a new object."""
        with self._lock:
            self.snapshot = UNLISTED
            self.is_lock_file_outdated = False  # whether the lock file lacks the snapshot
            self.contents = Contents(self.path, self.graph, self._seen)
            self._names: set[str] | None = None  # the names of the version self._base
            self._base = Version()
            self._listed = UNLISTED  # the snapshot of these names
            self._watch: FolderWatch | None = None  # of a folder that was listed before
            self._changed: set[str] | None = None  # the files that changed since the listing; None if unknown
            self._is_unchanged_since_listing = True  # of all names, also those of other files
            self._unlisted: set[str] = set()  # names in contents.places known from a version, not from a listing
            self._verified: Version | None = None  # the last version whose heads this process read
            self._unfit: dict[str, JournalDamaged] = {}  # files of commits that do not follow from present parents
            self._damaged_at_listing = 0  # the number of damaged files at the last listing
            self._damage_assumed_until = 0  # the time until which the known damage is assumed, in nanoseconds

    def watch(self) -> None:
        """Watch the folder from now on, or from the first listing on."""
        with self._lock:
            self._is_watched = True
            if self._names is not None:
                self._list()

    def close(self) -> None:
        """End the watch."""
        with self._lock:
            self._watch = self._changed = None

    def refresh(self, *, holding: bool = False) -> Version:
        """Return the present version of the folder; list it only if its time, watch and lock file are no proof.

        A process *holding* the lock to move commits between files leaves doubt and damage to the next refresh.
        """
        with self._lock:
            now, mtime, changed = time_ns(), disk.mtime(self.path), self._changed_names()
            is_damaged = self.is_damaged
            if mtime is None and self.snapshot is UNLISTED and not is_damaged:
                return UNLISTED.version
            place = disk.file_place(self.path)
            is_certain = self.snapshot.since == 0 if changed is None else not changed
            is_unchanged = is_certain and (self.snapshot.mtime, self.snapshot.place) == (mtime, place)
            if is_damaged and not holding and is_unchanged:
                is_known = self._damaged_at_listing == self._count_damaged()  # else a read found more damage since
                if is_known and self._is_damaged_still(now):
                    return self.snapshot.version
            if holding or (self._names is not None and not is_damaged):
                if is_unchanged or is_damaged:
                    return self.snapshot.version
                stored = FolderSnapshot.load(self.lock_path, place)
                if stored is not None and (stored.holds_at(mtime, now) or (holding and stored.mtime == mtime)):
                    self._note_unlisted(map(file_name, stored.version.heads))
                    self.snapshot, self.is_lock_file_outdated = stored, False
                    return stored.version
            if not self._list_changes():
                self._list()
            return self.snapshot.version

    def _changed_names(self) -> set[str] | None:
        """Return the names that changed since the listing, by the watch; None if they are unknown.

        Listed files that were edited are read again, which finds damage to them.
        """
        changed, self._changed = self._changed, None  # unknown if this is interrupted
        if self._watch is not None:
            changes = self._watch.changes()
            if changes is None:
                self._watch = changed = None
            else:
                for name, kind in changes.items():
                    if kind & disk.NAMES:
                        self._is_unchanged_since_listing = False
                        if changed is not None and name.endswith(".ttl") and name[0] != ".":
                            changed.add(name)
                    if kind & (disk.CONTENT | disk.ATTRIBUTES) and self._names and name in self._names:
                        self.contents.reread(name, is_edited=bool(kind & disk.CONTENT))
        self._changed = changed
        return changed

    @_forgets_on_failure
    def _list_changes(self) -> bool:
        """Update all state by the names that changed since the listing; return False if all must be listed.

        That is so unless they are new commits on top of the listed ones, as another process appends them.
        """
        now, mtime, place = time_ns(), disk.mtime(self.path), disk.file_place(self.path)
        changed, names = self._changed_names(), self._names
        if changed is None or names is None or mtime is None or place != self._listed.place or self.is_damaged:
            return False
        if self._is_unchanged_since_listing and mtime != self._listed.mtime:  # a change that the kernel did not report
            return False
        present = {name for name in changed if disk.exists(f"{self.path}/{name}")}
        added, last = sorted(present - names), max(map(stem, self._base.heads), default="")
        if changed - present or any(map(is_pack, added)) or min(added, default="~") <= last:
            return False
        self.contents.forget_quarantined()
        self.contents.place(added)
        names.update(added)
        self.contents.remove(self._unlisted - names)
        self._unlisted = set()
        self._base, self._verified = advance(self._base, self._load_entries(added)), None
        since = 0 if is_settled(mtime, now) else now
        self._listed = self.snapshot = self._listed.changed(mtime, since, self._base, added, [])
        self._changed, self._is_unchanged_since_listing, self.is_lock_file_outdated = set(), True, True
        self._damaged_at_listing = self._count_damaged()
        return not self._unfit

    def _count_damaged(self) -> int:
        return len(self.contents.broken) + len(self._unfit) + len(self.contents.packs.broken)

    def _is_damaged_still(self, now: int) -> bool:
        """Return whether the damaged files are unchanged; with many of them that is assumed for a while."""
        if now >= self._damage_assumed_until:
            if not self.contents.is_as_read():
                return False
            many = len(self.contents.broken)
            self._damage_assumed_until = now + many * _EACH if many > _FEW else 0
        return True

    def is_as_seen(self) -> bool:
        """Return whether the folder is as at the last refresh; under the lock only a checkout can change it."""
        with self._lock:
            mtime, changed = disk.mtime(self.path), self._changed_names()
            if self.is_damaged or self.snapshot.place != disk.file_place(self.path):
                return False
            return not changed and (
                self.snapshot.mtime == mtime if changed is not None else self.snapshot.holds_at(mtime, time_ns())
            )

    @property
    def is_damaged(self) -> bool:
        """Return whether the last refresh, or a read since, found damage."""
        return bool(self.contents.broken or self._unfit or self.contents.packs.broken)

    @property
    def orphans(self) -> frozenset[str]:
        """Return the names of the files of commits whose parents were missing at the last refresh."""
        return frozenset(self._unfit)

    def damage(self) -> tuple[JournalDamaged, ...]:
        """Return the present damage, by file name: files that do not verify, and missing parents.

        A write is refused for it. A head that this process has not read is read now; if it does not verify, all are.
        """
        damaged = self.damaged()
        return tuple(map(damaged.__getitem__, sorted(damaged)))

    def damaged(self) -> Mapping[str, JournalDamaged]:
        """Return the present damage by the name of the file, or pack#stem."""
        with self._lock:
            self.refresh()
            if not self.is_damaged and self.has_verified_heads():
                return {}
            if not self.is_damaged:
                self.reload()
            if self.is_damaged:
                self.refresh()  # again: a read may have failed once
            return self.known_damage()

    def known_damage(self) -> Mapping[str, JournalDamaged]:
        """Return the damage that was found so far, as `damaged` does."""
        packs = {
            name: self.contents.damaged(name, str(e), line=e.line) for name, e in self.contents.packs.broken.items()
        }
        return {**self._unfit, **self.contents.broken, **packs}

    def verify(self) -> tuple[JournalDamaged, ...]:
        """Return the damage after every byte of every commit was read again from disk; the lock file is ignored."""
        with self._lock:
            self.reload()
            for pack in self.contents.packs.listed():
                self._unfit |= unfit_commits(pack, self.contents)
            return tuple(damage for _, damage in sorted(self.known_damage().items()))

    def reload(self) -> None:
        """Drop all state, and compute the version from the commits themselves."""
        with self._lock:
            self.forget()
            self._list(trust=False)

    def has_verified_heads(self) -> bool:
        """Return whether this process read, or reads now, the heads of the snapshot in the folder."""
        with self._lock:
            version = self.snapshot.version
            if version != self._verified and all(map(self._is_read, version.heads)):
                self._verified = version
            return version == self._verified

    def _is_read(self, head: CommitRef) -> bool:
        if self.contents.head(head.id) == head:
            return True
        self.contents.place([file_name(head, redacted=True)])  # the lock file names a commit, not its form
        return self.contents.head(head.id) == head

    def commit_in(self, name: str) -> Commit | None:
        """Return the present commit in a file; None if it is absent, or damaged, which is recorded."""
        with self._lock:
            commit = self.contents.read(name)
            return commit if commit is not None and self._fits(name, self.contents.entries[name]) else None

    def holds(self, version: Version) -> bool:
        """Return whether every head of *version* exists."""
        with self._lock:
            return all(map(self._present, version.heads))

    def after(self, version: Version) -> Iterator[str]:
        """Return the stems of the commits neither in *version* nor before it, in the order of the stream.

        Raise NotFound unless the heads of *version* exist.
        """
        with self._lock:
            if not version.heads:
                return self.later("")
            if not self.holds(version):
                raise NotFound(
                    f"{self.path} no longer has the version {version}: another branch was checked out",
                    hint="read from the start: read(stream)",
                )
            new = [head for head in self.refresh().heads if head.id not in version.ids]
            entries = [self._find_listed(head.id) for head in new]
            if all(entry is not None and set(entry.parents) <= set(version.ids) for entry in entries):
                return iter([stem(head) for head in new])
            try:
                merged = self._merged_stems(version)
                is_stale = self.is_damaged  # the walk may have found it
            except FileNotFoundError:  # a pack was removed
                is_stale = True
            if is_stale:
                self._list()
                merged = self._merged_stems(version)
            return chain(merged, self.later(stem(version.heads[-1])))

    def named(self, prefix: str) -> list[CommitRef]:
        """Return the intact commits whose ids begin with *prefix*."""
        with self._lock:
            return self.contents.named(prefix)

    def commits(self, keys: Iterable[str], missed: set[str]) -> Iterator[Commit]:
        """Yield the commits of these stems, and add the paths of damaged or absent files to *missed*."""
        for key in keys:
            with self._lock:
                commit = self.contents.commit(key)
                if commit is None:
                    missed |= self.contents.damaged_paths(key)
            if commit is not None:
                yield commit
        with self._lock:
            missed |= self.contents.unread()

    def document(self, head: CommitRef) -> tuple[str, int, bytes] | None:
        """Return the file of a commit, the number of lines before it, and its document; None where it is absent."""
        with self._lock, suppress(FileNotFoundError):
            self._present(head)
            return self.contents.document(stem(head))
        return None

    def raw(self, key: str) -> bytes:
        """Return the document of the commit of a stem, unverified; empty where it is absent."""
        with self._lock, suppress(OSError):
            return self.contents.data(key) or b""
        return b""

    def data(self, head: CommitRef) -> bytes | None:
        """Return the document of a commit, unverified; None where it is absent."""
        with self._lock, suppress(FileNotFoundError):
            self._present(head)
            return self.contents.data(stem(head))
        return None

    @contextmanager
    def changing(
        self,
        descriptor: int,
        *,
        appended: Commit | None = None,
        placed: Sequence[str] = (),
        removed: Sequence[str] = (),
    ) -> Iterator[None]:
        """Change the files of the folder within the block; then store the new snapshot in the lock file *descriptor*.

        The file of a new commit is *appended*; or files are *placed*, and others of the same commits *removed*. No
        snapshot of a damaged folder is stored: its version would not fit the names of its files after a repair.
        """
        before, was_damaged = self.snapshot, self.is_damaged
        since = before.since or time_ns()
        disk.overwrite(descriptor, UNLISTED.dump() if was_damaged else _CHANGING)  # until files and names agree again
        yield
        with self._lock:
            if appended is not None:
                self.snapshot = self._added(appended, before, since)
            else:
                self.snapshot = self._rearranged(placed, removed, before, since)
        with suppress(OSError):
            disk.overwrite(descriptor, (UNLISTED if was_damaged else self.snapshot).dump())

    @_forgets_on_failure
    def _added(self, commit: Commit, before: FolderSnapshot, since: int) -> FolderSnapshot:
        """Return the snapshot after this process appended *commit* to *before*, which was last certain at *since*."""
        head, name, mtime = commit.head, file_name(commit.head), disk.mtime(self.path)
        self.contents.entries[name], self.contents.own = PackEntry(head, commit.parents), {name: commit}
        version = advance(before.version, [commit])
        snapshot = before.changed(mtime or -1, since, version, [name], [])
        if self._names is not None and self._base == before.version:
            changed = self._changed_names()  # before the name is listed: it is no edit
            self._names.add(name)
            self.contents.places.setdefault(commit.id[:SHORT], set()).add(name)
            self._base, self._listed = version, snapshot
            if changed and disk.exists(f"{self.path}/{name}"):
                changed.discard(name)
            self._is_unchanged_since_listing = not changed
        else:
            self._note_unlisted([name])
        if version.heads == (head,):
            self._verified = version
        return snapshot

    @_forgets_on_failure
    def _rearranged(
        self, placed: Sequence[str], removed: Sequence[str], before: FolderSnapshot, since: int
    ) -> FolderSnapshot:
        """Return the snapshot after this process placed or removed files; the version is that of *before*."""
        mtime = disk.mtime(self.path)
        self._changed_names()  # before the names are listed: they are no edits
        self._verified = None
        self.contents.remove(removed)
        self.contents.forget_quarantined()
        self.contents.place(name for name in placed if not is_pack(name))
        if any(map(is_pack, (*placed, *removed))):
            self.contents.update_packs()
        self._names = self._names if self._base == before.version and not self.is_damaged else None
        if self._names is not None:
            self._names.difference_update(removed)
            self._names.update(placed)
        self._changed = None  # the next refresh lists the folder
        return UNLISTED if self.is_damaged else before.changed(mtime or -1, since, before.version, placed, removed)

    @_forgets_on_failure
    def _list(self, *, trust: bool = True) -> None:
        """List the folder and update all state; a missing parent is searched for twice."""
        for _ in range(2):
            now, mtime, place = time_ns(), disk.mtime(self.path), disk.file_place(self.path)
            if mtime is None:
                self.forget()
                return
            self._changed = None if self._watch is None else set()
            if self._changed_names() is None:  # a process that lists a folder only once needs no watch
                is_wanted = place and (self._is_watched or self._names is not None)
                self._watch = FolderWatch.of(self.path) if is_wanted else None
            self._changed, self._is_unchanged_since_listing = None if self._watch is None else set(), True
            names = set(each_file(self.path))
            self.contents.forget_quarantined()
            before, since = self.snapshot, 0 if is_settled(mtime, now) else now
            listing = FolderSnapshot(mtime, since, len(names), before.sum, before.loose, self._base, place)
            is_changed = names != self._names or self.is_damaged
            if is_changed or (before.count, before.version, before.place) != (len(names), self._base, place):
                listing = replace(listing, sum=listing.sum_of(names), loose=len(names) - sum(map(is_pack, names)))
            if is_changed:
                self._update_base(names, listing, trust=trust)
            self._listed = self.snapshot = replace(listing, version=self._base)
            self._damaged_at_listing = self._count_damaged()
            self.is_lock_file_outdated = True
            if not self._unfit:
                return

    def _update_base(self, names: set[str], listing: FolderSnapshot, *, trust: bool) -> None:
        """Set the version of exactly *names*, whose sum is in *listing*, from the cheapest certain source."""
        stored = FolderSnapshot.load(self.lock_path, listing.place) if trust and not self.is_damaged else None
        before, self._names, self._verified = self._names, names, None
        self.contents.remove(self._unlisted - names)
        self._unlisted = set()
        packs = {name for name in names if is_pack(name)}
        self.contents.packs.set_names(packs)
        added = names - before if before is not None and before <= names else None
        if added is None:
            self.contents.places = {}
            self.contents.entries = {name: entry for name, entry in self.contents.entries.items() if name in names}
        self.contents.place((names if added is None else added) - packs)
        newest = stored.newer(names, listing.sum) if stored is not None else None
        last = max(map(stem, self._base.heads), default="")  # earlier commits may be known, or in a pack
        if stored is not None and newest is not None:
            self._base = advance(stored.version, self._load_entries(newest))
        elif added is not None and not self.is_damaged and not added & packs and min(added, default="~") > last:
            self._base = advance(self._base, self._load_entries(added))
        else:
            self._rebuild_base(names - packs)

    def _rebuild_base(self, files: set[str]) -> None:
        """Set the version of *files* and the packs from their content; damaged files are read again."""
        doubted = [name for name in (*self.contents.broken, *self._unfit) if "#" in name]
        self._unfit = {}
        self.contents.forget_damage()
        self.contents.packs.forget_broken()
        entries = self._load_entries(files)
        tips, after = self.contents.packs.heads()
        for pack in self.contents.packs.listed():
            absent = (parent for parent in pack.after if not self.contents.head(parent))
            if missing := next((parent for parent in absent if not self.contents.is_explained(parent)), None):
                self._unfit[pack.name] = self.contents.damaged(pack.name, missing_parent_text(missing))
            for name in doubted:
                if name.startswith(f"{pack.name}#"):
                    self._unfit |= unfit_commits(pack, self.contents, name.partition("#")[2])
        named = after | {parent for entry in entries for parent in entry.parents}
        heads = tips | {entry.head for entry in entries if not self.contents.packs.at(stem(entry.head))}
        self._base = Version.of(head for head in heads if head.id not in named)

    def _load_entries(self, names: Iterable[str]) -> list[PackEntry]:
        """Return the entries of the intact files among *names*, their parents checked."""
        entries = {name: entry for name in sorted(names) if (entry := self.contents.entry(name)) is not None}
        for name, entry in entries.items():
            self._fits(name, entry)
        return list(entries.values())

    def _fits(self, name: str, entry: PackEntry) -> bool:
        """Return whether the commit in a file fits its parents; record the damage if not."""
        problem = parent_fault(entry, self.contents)
        if problem:
            parent = missing_parent(problem)
            line, hint = self.contents.line_of(name, parent), _STAYED.format(parent[:SHORT]) if parent else ""
            self._unfit[name] = self.contents.damaged(name, problem, line=line, identity=entry.head.id, hint=hint)
        return not problem

    def _merged_stems(self, version: Version) -> list[str]:
        """Return the stems of a merged branch: not later than *version*, yet neither in it nor before it.

        Every later commit is on the way from the heads, as no commit is recorded before its parents. So the walk
        starts at the earlier parents of later commits, newest first, and visits every child before its parents.
        """
        last, known = stem(version.heads[-1]), set(version.ids)
        named = self._named_after(last) - known
        parents = [entry.head for identity in named if (entry := self._find_listed(identity)) is not None]
        front = {head.id: head for head in (*parents, *self.snapshot.version.heads) if stem(head) <= last}
        front |= {head.id: head for head in version.heads}
        wanted = []
        while front.keys() - known:
            head = front.pop(max(front.values()).id)
            entry = self._find_listed(head.id)
            if entry is None:
                continue
            if head.id in known:
                known.update(entry.parents)
            else:
                wanted.append(head)
            for identity in entry.parents:
                parent = None if identity in front else self._find_listed(identity)
                if parent is not None:
                    front[identity] = parent.head
        return [stem(head) for head in sorted(wanted)]

    def _named_after(self, last: str) -> set[str]:
        """Return the ids of the parents of commits later than a stem, without most of those that are later too."""
        entries = [self.contents.entry(name) for name in sorted(self.contents.files()) if stem_of(name) > last]
        self.contents.update_packs()  # a commit sealed in the meantime is in one
        links = [(entry.head.id, entry.parents) for entry in entries if entry is not None]
        for pack in self.contents.packs.listed():
            if pack.first > last:
                links += [("", pack.after), *((tip.id, ()) for tip in pack.tips)]
            elif pack.last >= last.partition("-")[0]:
                links += [
                    (row.head.id, row.parents) for key, row in self.contents.packs.rows(pack).items() if key > last
                ]
        return {parent for _, parents in links for parent in parents} - {identity for identity, _ in links}

    def later(self, last: str) -> Iterator[str]:
        """Yield the stems after *last*, in order; if a pack is removed in the meantime the folder is listed again."""
        for _ in range(3):
            with self._lock:
                loose = set(map(stem_of, self.contents.files()))
                self.contents.update_packs()  # after the files: a commit sealed in the meantime is in one of the two
            try:
                for key in self.contents.packs.merged(loose, last):
                    last = key
                    yield key
                return
            except FileNotFoundError:
                continue

    def _find_listed(self, identity: str) -> PackEntry | None:
        """Return the entry of a commit; list the folder first if another process may have written or sealed it."""
        entry = self.contents.find(identity)
        if entry is None:
            self._list()
            entry = self.contents.find(identity)
        return entry

    def _present(self, head: CommitRef) -> bool:
        """Return whether a commit exists now, in a file of its own or in a pack."""
        for name in (file_name(head), file_name(head, redacted=True)):
            if disk.exists(f"{self.path}/{name}"):
                return True
        packs = [pack for pack, _ in self.contents.packs.at(stem(head)) if disk.exists(pack.path)]
        if not packs:
            self.contents.update_packs()
        return bool(packs or self.contents.packs.at(stem(head)))

    def _note_unlisted(self, names: Iterable[str]) -> None:
        unlisted = [name for name in names if self._names is None or name not in self._names]
        if unlisted:
            self._unlisted.update(unlisted)
            self.contents.place(unlisted)
