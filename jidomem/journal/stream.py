"""Hold the commits of a folder against their parents there.

What one process knows of the folder of one stream: read as needed, never written, never locked.

The horizon: a moment long after the clock of this machine, beyond which no commit is followed by another.

A commit is recorded after its parents. One that is dated to the end of the calendar, as a hostile branch may bring it,
would leave no moment for the next, and one of the next century would date all that is written after it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from time import time_ns
from types import MappingProxyType

from jidomem.base.clock import format_timestamp
from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal import disk
from jidomem.journal.commit import Commit, advance, each_file, file_name, is_pack, stem, stem_of
from jidomem.journal.packs import Pack, PackEntry
from jidomem.journal.stream_files import Contents
from jidomem.journal.write_lock import NOTHING, FolderSnapshot, is_settled
from jidomem.records.intent import SHORT, CommitRef, Version

_LACKS = re.compile("its parent ([0-9a-f]{64}) is not here")


def lacks(identity: str) -> str:
    """Return the words for a commit whose parent is not in the journal."""
    return f"its parent {identity} is not here"


def lacking(detail: str) -> str | None:
    """Return the id of the parent that is not in the journal, by the words of `lacks`; None where that is not said."""
    found = _LACKS.search(detail)
    return found[1] if found else None


def broken(entry: PackEntry, contents: Contents, near: Mapping[str, CommitRef] = MappingProxyType({})) -> str:
    """Return what does not fit between a commit and its parents, or nothing; *near* are looked at before *contents*."""
    parents = []
    for identity in entry.parents:
        parent = near.get(identity) or contents.head(identity)
        if parent is not None:
            parents.append(parent)
        elif not contents.explains(identity):
            return lacks(identity)
    if len(parents) < len(entry.parents):
        return ""  # what the parent is in is damaged itself
    if entry.head.position != 1 + max((parent.position for parent in parents), default=0):
        return f"its position {entry.head.position} does not follow from its parents"
    if any(parent.recorded_at >= entry.head.recorded_at for parent in parents):
        return f"it was recorded at {entry.head.recorded_at}, not after its parents"
    return ""


def unfit(pack: Pack, contents: Contents, key: str = "") -> dict[str, JournalDamaged]:
    """Return what of a pack, or of its commit of the stem *key*, does not fit its parents, all of it read again.

    What is spoiled itself is noted in *contents*.
    """
    rows = contents.shelf.rows(pack)
    inside, found = {row.head.id: row.head for row in rows.values()}, dict[str, JournalDamaged]()
    for row in [rows[key]] if key in rows else rows.values():
        if not contents.stands_beside(row):
            problem = broken(row.entry, contents, inside)
            if contents.packed(pack, row) is not None and problem:
                name = f"{pack.name}#{stem(row.head)}"
                found[name] = contents.damaged(name, problem, identity=row.head.id)
    return found


LOCK = ".lock"
_STAYED = (
    "check out the branch or revision that this file was written on; else restore the parent from git or a backup,"
    " then run: jidomem journal verify"
)
#: More damaged files than this are not looked at by each look, but once in so many nanoseconds for each of them.
_FEW, _EACH = 100, 25_000


class Folder:
    """One stream's folder as this process knows it; safe to use from several threads."""

    def __init__(self, path: Path, graph: str, seen: Callable[[Commit], object] | None = None) -> None:
        """Know the folder *path* of the graph; *seen* is told of every commit that is read and sound."""
        self._seen = seen
        self.path = str(path)
        self.lock_path = f"{path}/{LOCK}"
        self.graph = graph
        self._lock = threading.RLock()
        self.forget()

    def forget(self) -> None:
        """Know nothing of the folder any more."""
        with self._lock:
            self.sight = NOTHING
            self.unshared = False  # whether the sight is news to the lock file
            self.contents = Contents(self.path, self.graph, self._seen)
            self._names: set[str] | None = None  # the names self._base is the version of
            self._base = Version()
            self._heard: set[str] = set()  # names in _places known from a version, not from a listing
            self._grounded: Version | None = None  # the version whose heads this process read last
            self._gaps: dict[str, JournalDamaged] = {}
            self._damaged_then = 0  # how many were damaged when the folder was listed
            self._still_until = 0  # until when the damage found is believed to be there, in nanoseconds

    def look(self, *, holding: bool = False) -> Version:
        """Return the version of the folder now; list it only where its time and the lock file leave a doubt.

        Who is *holding* the lock to lay commits into other files leaves a doubt, and damage, to the next look.
        """
        with self._lock:
            now, mtime, place = time_ns(), disk.mtime(self.path), disk.file_place(self.path)
            is_same = (self.sight.since, self.sight.mtime, self.sight.place) == (0, mtime, place)
            is_damaged = self.is_damaged
            if is_damaged and not holding and is_same:
                is_known = self._damaged_then == self._count_damaged()  # else a read came upon more of it since
                if is_known and self._is_damaged_still(now):
                    return self.sight.version
            if holding or (self._names is not None and not is_damaged):
                if is_same or is_damaged:
                    return self.sight.version
                kept = FolderSnapshot.load(self.lock_path, place)
                if kept is not None and (kept.holds_at(mtime, now) or (holding and kept.mtime == mtime)):
                    self._hear(map(file_name, kept.version.heads))
                    self.sight, self.unshared = kept, False
                    return kept.version
            self._list()
            return self.sight.version

    def _count_damaged(self) -> int:
        return len(self.contents.broken) + len(self._gaps) + len(self.contents.shelf.broken)

    def _is_damaged_still(self, now: int) -> bool:
        """Return whether the files that are damaged are as they were: of many that is believed for a while."""
        if now >= self._still_until:
            if not self.contents.is_as_read():
                return False
            many = len(self.contents.broken)
            self._still_until = now + many * _EACH if many > _FEW else 0
        return True

    def is_as_seen(self) -> bool:
        """Return whether all is as it was last seen, for who holds the lock: only a checkout could have changed it."""
        is_here = self.sight.place == disk.file_place(self.path)
        return is_here and not self.is_damaged and self.sight.holds_at(disk.mtime(self.path), time_ns())

    def doubted(self) -> FolderSnapshot:
        """Return what the lock file is to say while files change: of a damaged folder nothing, as it may be healed."""
        return NOTHING if self.is_damaged else replace(self.sight, mtime=-1)

    @property
    def is_damaged(self) -> bool:
        """Return whether the last look, or a read since, came upon damage."""
        return bool(self.contents.broken or self._gaps or self.contents.shelf.broken)

    def damage(self) -> tuple[JournalDamaged, ...]:
        """Return what is damaged now, by file name: files that do not verify, and parents that are not there."""
        return tuple(found for _, found in sorted(self.damaged().items()))

    def damaged(self) -> Mapping[str, JournalDamaged]:
        """Return what is damaged now by the name of the file, or pack#stem."""
        with self._lock:
            self.look()
            return self._damaged()

    def _damaged(self) -> Mapping[str, JournalDamaged]:
        packs = {
            name: self.contents.damaged(name, str(e), line=e.line) for name, e in self.contents.shelf.broken.items()
        }
        return {**self._gaps, **self.contents.broken, **packs}

    def verify(self) -> tuple[JournalDamaged, ...]:
        """Return what is damaged, every byte of every commit read again from disk; the lock file is not believed."""
        with self._lock:
            self.read_anew()
            for pack in self.contents.shelf.packs():
                self._gaps |= unfit(pack, self.contents)
            return tuple(found for _, found in sorted(self._damaged().items()))

    def read_anew(self) -> None:
        """Forget what was known, and learn the version from the commits themselves."""
        with self._lock:
            self.forget()
            self._list(trust=False)

    def is_grounded(self) -> bool:
        """Return whether the heads last seen are commits that this process read, or reads now, in the folder."""
        with self._lock:
            version = self.sight.version
            if version != self._grounded and all(map(self._is_read, version.heads)):
                self._grounded = version
            return version == self._grounded

    def _is_read(self, head: CommitRef) -> bool:
        if self.contents.head(head.id) == head:
            return True
        self.contents.place([file_name(head, redacted=True)])  # another process may have told of it, not of its form
        return self.contents.head(head.id) == head

    def commit_in(self, name: str) -> Commit | None:
        """Return the commit in a file as it is on disk now; None where it has gone, or is damage, which is noted."""
        with self._lock:
            commit = self.contents.read(name)
            return commit if commit is not None and self._fits(name, self.contents.entries[name]) else None

    def holds(self, version: Version) -> bool:
        """Return whether every head of *version* is here."""
        with self._lock:
            return all(map(self._present, version.heads))

    def after(self, version: Version) -> Iterator[str]:
        """Return the stems of the commits neither in *version* nor before it, in the order of the stream.

        Raise NotFound unless the heads of *version* are here.
        """
        with self._lock:
            if not version.heads:
                return self._later("")
            if not self.holds(version):
                raise NotFound(
                    f"{self.path} no longer has the version {version}: another branch was checked out",
                    hint="read from the start: read(stream)",
                )
            new = [head for head in self.look().heads if head.id not in version.ids]
            entries = [self._find_anew(head.id) for head in new]
            if all(entry is not None and set(entry.parents) <= set(version.ids) for entry in entries):
                return iter([stem(head) for head in new])
            try:
                aside = self._aside(version)
                again = self.is_damaged  # the walk may have come upon it
            except FileNotFoundError:  # a pack has gone
                again = True
            if again:
                self._list()
                aside = self._aside(version)
            return chain(aside, self._later(stem(version.heads[-1])))

    def named(self, prefix: str) -> list[CommitRef]:
        """Return the commits here, and sound, whose ids begin with *prefix*."""
        with self._lock:
            return self.contents.named(prefix)

    def commits(self, keys: Iterable[str], missed: set[str]) -> Iterator[Commit]:
        """Yield the commits of these stems, and put into *missed* the paths of what is damaged or has gone."""
        for key in keys:
            with self._lock:
                commit = self.contents.commit(key)
                if commit is None:
                    missed |= self.contents.lacking(key)
            if commit is not None:
                yield commit
        with self._lock:
            missed |= self.contents.unread()

    def document(self, head: CommitRef) -> tuple[str, int, bytes] | None:
        """Return in which file a commit stands, after how many lines, and its document; None where it has gone."""
        with self._lock, suppress(FileNotFoundError):
            self._present(head)
            return self.contents.document(stem(head))
        return None

    def raw(self, key: str) -> bytes:
        """Return the document of the commit of a stem, unverified; empty where it has gone."""
        with self._lock, suppress(OSError):
            return self.contents.data(key) or b""
        return b""

    def data(self, head: CommitRef) -> bytes | None:
        """Return the document of a commit, unverified; None where it has gone."""
        with self._lock, suppress(FileNotFoundError):
            self._present(head)
            return self.contents.data(stem(head))
        return None

    def added(self, commit: Commit, seen: FolderSnapshot, since: int) -> FolderSnapshot:
        """Return the sight after *commit*, written by this process on top of *seen*, last certain at *since*."""
        with self._lock:
            head = commit.head
            name, mtime = file_name(head), disk.mtime(self.path)
            self.contents.entries[name] = PackEntry(head, commit.parents)
            version = advance(seen.version, [commit])
            if self._names is not None and self._base == seen.version:
                self._names.add(name)
                self.contents.places.setdefault(commit.id[:SHORT], set()).add(name)
                self._base = version
            else:
                self._hear([name])
            if version.heads == (head,):
                self._grounded = version
            self.sight = replace(seen.changed(mtime or -1, since, [name], []), version=version)
            return self.sight

    def rearranged(self, came: Sequence[str], gone: Sequence[str], seen: FolderSnapshot, since: int) -> FolderSnapshot:
        """Return the sight after this process put files in, or took some out, of which *seen* is the version still."""
        with self._lock:
            mtime = disk.mtime(self.path)
            self._grounded = None
            self.contents.remove(gone)
            self.contents.list_anew()
            self.contents.place(name for name in came if not is_pack(name))
            if any(map(is_pack, (*came, *gone))):
                self.contents.hold_packs()
            self._names = self._names if self._base == seen.version and not self.is_damaged else None
            if self._names is not None:
                self._names.difference_update(gone)
                self._names.update(came)
            self.sight = NOTHING if self.is_damaged else seen.changed(mtime or -1, since, came, gone)
            return self.sight

    def _list(self, *, trust: bool = True) -> None:
        """List the folder and bring everything known up to date; a missing parent is looked for twice."""
        for _ in range(2):
            now, mtime, place = time_ns(), disk.mtime(self.path), disk.file_place(self.path)
            if mtime is None:
                if self._names is not None or self._heard or self.sight != NOTHING or self.is_damaged:
                    self.forget()
                return
            names = set(each_file(self.path))
            self.contents.list_anew()
            seen, since = self.sight, 0 if is_settled(mtime, now) else now
            found = FolderSnapshot(mtime, since, len(names), seen.sum, seen.loose, self._base, place)
            is_changed = names != self._names or self.is_damaged
            if is_changed or (seen.count, seen.version, seen.place) != (len(names), self._base, place):
                found = replace(found, sum=found.sum_of(names), loose=len(names) - sum(map(is_pack, names)))
            if is_changed:
                self._account(names, found, trust=trust)
            self.sight = replace(found, version=self._base)
            self._damaged_then = self._count_damaged()
            self.unshared = True
            if not self._gaps:
                return

    def _account(self, names: set[str], found: FolderSnapshot, *, trust: bool) -> None:
        """Set the version of exactly *names*, whose sum *found* has, from the cheapest source that is certain."""
        kept = FolderSnapshot.load(self.lock_path, found.place) if trust and not self.is_damaged else None
        before, self._names, self._grounded = self._names, names, None
        self.contents.remove(self._heard - names)
        self._heard = set()
        packs = {name for name in names if is_pack(name)}
        self.contents.shelf.hold(packs)
        fresh = names - before if before is not None and before <= names else None
        if fresh is None:
            self.contents.places = {}
            self.contents.entries = {name: entry for name, entry in self.contents.entries.items() if name in names}
        self.contents.place((names if fresh is None else fresh) - packs)
        newest = kept.newer(names, found.sum) if kept is not None else None
        last = max(map(stem, self._base.heads), default="")  # what is before it may be known, or in a pack
        if kept is not None and newest is not None:
            self._base = advance(kept.version, self._enter(newest))
        elif fresh is not None and not self.is_damaged and not fresh & packs and min(fresh, default="~") > last:
            self._base = advance(self._base, self._enter(fresh))
        else:
            self._start_over(names - packs)

    def _start_over(self, files: set[str]) -> None:
        """Set the version of *files* and the packs from what they say themselves; what was damaged is read again."""
        doubted = [name for name in (*self.contents.broken, *self._gaps) if "#" in name]
        self._gaps = {}
        self.contents.mend()
        self.contents.shelf.forget_broken()
        entries = self._enter(files)
        tips, after = self.contents.shelf.heads()
        for pack in self.contents.shelf.packs():
            lacking = (parent for parent in pack.after if not self.contents.head(parent))
            if missing := next((parent for parent in lacking if not self.contents.explains(parent)), None):
                self._gaps[pack.name] = self.contents.damaged(pack.name, lacks(missing))
            for name in doubted:
                if name.startswith(f"{pack.name}#"):
                    self._gaps |= unfit(pack, self.contents, name.partition("#")[2])
        named = after | {parent for entry in entries for parent in entry.parents}
        heads = tips | {entry.head for entry in entries if not self.contents.shelf.at(stem(entry.head))}
        self._base = Version.of(head for head in heads if head.id not in named)

    def _enter(self, names: Iterable[str]) -> list[PackEntry]:
        """Return the entries of the sound files among *names*, their links checked."""
        found = {name: entry for name in sorted(names) if (entry := self.contents.entry(name)) is not None}
        for name, entry in found.items():
            self._fits(name, entry)
        return list(found.values())

    def _fits(self, name: str, entry: PackEntry) -> bool:
        """Return whether the commit in a file fits its parents; note it where it does not."""
        problem = broken(entry, self.contents)
        if problem:
            parent = lacking(problem)
            line, hint = self.contents.line_of(name, parent), _STAYED if parent else ""
            self._gaps[name] = self.contents.damaged(name, problem, line=line, identity=entry.head.id, hint=hint)
        return not problem

    def _aside(self, version: Version) -> list[str]:
        """Return what is not later than *version*, yet neither in it nor before it: a branch that came in beside it.

        All that is later is on the way from the heads, as no commit comes before its parents. Only what the later ones
        name among the earlier has to be followed, newest first, so that every child is passed before its parents.
        """
        last, known = stem(version.heads[-1]), set(version.ids)
        named = self._named_after(last) - known
        found = [entry.head for identity in named if (entry := self._find_anew(identity)) is not None]
        front = {head.id: head for head in (*found, *self.sight.version.heads) if stem(head) <= last}
        front |= {head.id: head for head in version.heads}
        wanted = []
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
        return [stem(head) for head in sorted(wanted)]

    def _named_after(self, last: str) -> set[str]:
        """Return the ids that commits later than a stem name as parents, but for most of those that are later too."""
        entries = [self.contents.entry(name) for name in sorted(self.contents.files()) if stem_of(name) > last]
        self.contents.hold_packs()  # what was sealed meanwhile is in one
        links = [(entry.head.id, entry.parents) for entry in entries if entry is not None]
        for pack in self.contents.shelf.packs():
            if pack.first > last:
                links += [("", pack.after), *((tip.id, ()) for tip in pack.tips)]
            elif pack.last >= last.partition("-")[0]:
                links += [
                    (row.head.id, row.parents) for key, row in self.contents.shelf.rows(pack).items() if key > last
                ]
        return {parent for _, parents in links for parent in parents} - {identity for identity, _ in links}

    def _later(self, last: str) -> Iterator[str]:
        """Yield the stems after *last*, in order; a pack that went meanwhile means list again."""
        for _ in range(3):
            with self._lock:
                loose = set(map(stem_of, self.contents.files()))
                self.contents.hold_packs()  # after the files, so that what is sealed meanwhile is in either
            try:
                for key in self.contents.shelf.merged(loose, last):
                    last = key
                    yield key
                return
            except FileNotFoundError:
                continue

    def _find_anew(self, identity: str) -> PackEntry | None:
        """Return what is known of a commit, after a listing where another process may have written or sealed it."""
        entry = self.contents.find(identity)
        if entry is None:
            self._list()
            entry = self.contents.find(identity)
        return entry

    def _present(self, head: CommitRef) -> bool:
        """Return whether a commit is here now, in a file of its own or in a pack."""
        for name in (file_name(head), file_name(head, redacted=True)):
            if disk.exists(f"{self.path}/{name}"):
                return True
        packs = [pack for pack, _ in self.contents.shelf.at(stem(head)) if disk.exists(pack.path)]
        if not packs:
            self.contents.hold_packs()
        return bool(packs or self.contents.shelf.at(stem(head)))

    def _hear(self, names: Iterable[str]) -> None:
        unlisted = [name for name in names if self._names is None or name not in self._names]
        if unlisted:
            self._heard.update(unlisted)
            self.contents.place(unlisted)


#: How far ahead a clock may have been that was put right since: far enough for one that starts in 1970.
AHEAD = timedelta(days=36_525)
_LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def horizon(now: datetime) -> str:
    """Return the last moment at which a commit is followed by another.

    >>> horizon(datetime(2026, 11, 21, 8, tzinfo=UTC))
    '2126-11-22T08:00:00.000000Z'
    """
    return format_timestamp(now + min(AHEAD, max(_LAST - now, timedelta())))


def too_late(head: CommitRef, path: str, now: datetime) -> JournalDamaged:
    """Return the error for a commit beyond the horizon in the file *path*."""
    return JournalDamaged(
        f"it is recorded at {head.recorded_at}, more than 100 years after the clock of this machine"
        f" ({format_timestamp(now)}): nothing can be recorded after it",
        path=path,
        commit=head.id,
        hint="take back the merge that brought it, or:"
        f" jidomem journal verify --quarantine {head.id[:SHORT]} --reason TEXT;"
        " where the clock is wrong, set that",
    )


def beyond(folder: Folder, now: datetime) -> dict[str, JournalDamaged]:
    """Return an error for each commit of *folder* beyond the horizon, by the name of its file, or pack#stem."""
    if folder.look().recorded_at <= (last := horizon(now)):
        return {}
    contents, found = folder.contents, dict[str, CommitRef]()
    for name in contents.files():
        if (entry := contents.entry(name)) is not None:
            found[name] = entry.head
    for pack in contents.shelf.packs():
        found |= {f"{pack.name}#{stem(row.head)}": row.head for row in contents.shelf.rows(pack).values()}
    late = {name: head for name, head in sorted(found.items()) if head.recorded_at > last}
    return {name: too_late(head, f"{folder.path}/{name.partition('#')[0]}", now) for name, head in late.items()}


def moment_after(now: datetime, *heads: CommitRef) -> str:
    """Return the moment of the commit after *heads*: now, or a microsecond after the newest where the clock went back.

    Raise JournalDamaged where the newest is beyond the horizon.
    """
    newest = max(heads, default=None)
    if newest is None or format_timestamp(now) > newest.recorded_at:
        return format_timestamp(now)
    if newest.recorded_at > horizon(now):
        raise too_late(newest, file_name(newest), now)
    moment = datetime.strptime(newest.recorded_at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return format_timestamp(moment + timedelta(microseconds=1))
