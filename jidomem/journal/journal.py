"""The file journal stores each stream in a folder: one commit a file, appended under a kernel lock, read without locks.

A commit is appended to a version: it belongs to the same stream, names the heads as its parents, and is recorded later.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from time import monotonic, sleep, time
from typing import NamedTuple

from jidomem.base import disk, files
from jidomem.base.background import BackgroundTask
from jidomem.base.clock import format_timestamp
from jidomem.base.disk import LockedFile, flush_above, make_folders, write_durably, writing
from jidomem.errors import BranchChanged, Busy, JidomemError, JournalDamaged, MemoryClosed, MemoryMissing, NotFound
from jidomem.journal.branches import explain
from jidomem.journal.commit import Commit, FormatError, file_name, is_redaction_record, parse, stem
from jidomem.journal.rewrite import (
    PAUSE,
    SEAL_LOCK,
    SLICE,
    batches,
    install_batch,
    last_moment,
    late_commits,
    quarantine,
    quarantine_late,
    redacted_leaves,
    remove,
    remove_sealed,
    visible_commits,
    write_redacted,
)
from jidomem.journal.stream import UNLISTED, Folder
from jidomem.journal.stream_files import each_file
from jidomem.rdf import vocab
from jidomem.rdf.terms import iri
from jidomem.records.intent import SHORT, CommitRef, Version

#: The age in seconds above which a lock of git is ignored (`git commit` holds one while its editor runs), the seconds
#: between two looks at it, and the most bytes of a `.git` file, which names the folder of a repository.
YOUNG, _PAUSE, _GIT_FILE_BYTES = 5.0, 0.01, 4096


class GitLock:
    """The index lock of the repository around a folder; without a repository there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wait(self, seconds: float) -> None:
        """Return once git has released the lock, or the lock is older than `YOUNG`, or after *seconds*."""
        if self._path is None:
            return
        until = monotonic() + seconds
        while self._is_young(self._path) and monotonic() < until:
            sleep(_PAUSE)

    def _is_young(self, path: str) -> bool:
        modified = disk.mtime(path)
        return modified is not None and time() - modified / 1e9 < YOUNG

    @cached_property
    def _path(self) -> str | None:
        for folder in (self._folder, *self._folder.parents):
            git_path = f"{folder}/.git"
            if disk.exists(f"{git_path}/HEAD"):
                return f"{git_path}/index.lock"
            with suppress(OSError, UnicodeDecodeError):  # a worktree, or a submodule
                leads = disk.read(git_path, _GIT_FILE_BYTES).decode()
                if leads.startswith("gitdir: "):
                    return str(Path(folder, leads.removeprefix("gitdir: ").strip(), "index.lock"))
        return None


def check_follows(graph: str, expected: Version, commit: Commit) -> None:
    """Raise FormatError unless *commit* belongs to *graph*, is not redacted, and follows from *expected*."""
    if commit.graph != graph:
        raise FormatError(f"a commit of {commit.graph} does not belong in {graph}")
    if commit.parents != tuple(sorted(expected.ids)) or commit.position != expected.position + 1:
        raise FormatError(f"commit {commit.id} does not follow from {expected}")
    if commit.recorded_at <= expected.recorded_at:
        raise FormatError(
            f"commit {commit.id} of {commit.recorded_at} is not after its parents: {expected.recorded_at}"
        )
    if commit.redacted:
        raise FormatError(f"commit {commit.id} is redacted: only a whole one can be appended")


#: The folder of a stream in its project -> the short name of its graph.
NAMES = {"memory": "context", "history": "history", "codebase": "codebase", "system": "system"}
#: The number of commit files from which a stream is sealed into packs, where git does not track it.
LOOSE = 2_000

_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """One graph of one project; *name* is memory, history, codebase or system, *graph* the bare IRI of the graph."""

    project: str
    name: str = "memory"
    graph: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.project, str) or not _PROJECT.fullmatch(self.project):
            suggestion = re.sub(r"[^a-z0-9_-]+", "-", str(self.project).casefold()).strip("-_")[:64]
            raise NotFound(
                f"{self.project!r:.200} is not a project id",
                code="invalid_project",
                hint=f"use lower-case letters, digits, - and _, at most 64: {suggestion or 'my-project'}",
            )
        if self.name not in NAMES:
            raise NotFound(f"a project has no stream {self.name!r}", hint=f"use one of: {', '.join(NAMES)}")
        object.__setattr__(self, "graph", vocab.graph_iri(self.project, NAMES[self.name]))


def _streams_in(root: Path) -> list[Stream]:
    """Return the streams with commits below the memory root, sorted."""
    projects = sorted(filter(_PROJECT.fullmatch, disk.names(f"{root}/projects")))
    every = (Stream(project, name) for project in projects for name in sorted(NAMES))
    return [each for each in every if each_file(f"{root}/projects/{each.project}/{each.name}")]


NO_FILE = LockedFile(-1)


@dataclass(slots=True)
class StreamLock:
    """The write lock of a stream: its thread in this process, the locked file, and the newest version it knows.

    An interrupt leaves neither locked: a `with` of a mutex cannot be interrupted once it is acquired, and a file is
    unlocked when it is closed or dropped, at the latest by the next holder.
    """

    mutex: threading.Lock = field(default_factory=threading.Lock)
    holder: int | None = None
    file: LockedFile = NO_FILE
    known: Version = Version()

    @contextmanager
    def hold(
        self, folder: str, path: str, seconds: float, begin: Callable[[], object] = lambda: None
    ) -> Iterator[None]:
        """Hold the lock, in this process and by a kernel lock of the file *path* in *folder*.

        *begin* is called before a missing folder is made. Raise Busy if the lock is not free within *seconds*, Failed
        if the folder cannot be written. A thread that another one overtakes at the last moment waits for that one, too.
        """
        deadline, pause = monotonic() + seconds, _FIRST_PAUSE
        while self.mutex.locked():
            if monotonic() > deadline:
                raise files.busy_error(path, seconds)
            sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)
        with self.mutex:
            self.file = NO_FILE
            self.file = acquire_lock_file(folder, path, deadline, seconds, begin)
            try:
                self.holder = threading.get_ident()
                yield
            finally:
                self.holder = None
                descriptor, self.file.descriptor = self.file.descriptor, -1
                try:  # noqa: SIM105 - an interrupt comes into a call of Python code: there is none before `close`
                    disk.close(descriptor)
                except OSError:
                    pass  # unlocked even so: the content of the lock file is a cache

    @property
    def is_own_thread(self) -> bool:
        """Return whether this thread holds the lock."""
        return self.holder == threading.get_ident()


def acquire_lock_file(
    folder: str, path: str, deadline: float, seconds: float, begin: Callable[[], object] = lambda: None
) -> LockedFile:
    """Return a locked file of a folder, made after *begin* if missing; raise Busy, with *seconds*, after *deadline*."""
    pause = _FIRST_PAUSE
    while True:
        with writing(folder):
            if not disk.exists(folder):
                begin()
                make_folders(folder)
            file = LockedFile(disk.open_file(path))
            try:
                if disk.acquire_lock(file.descriptor, wait=False):
                    return file
            except BaseException:  # a file system without locks; or an interrupt, perhaps with the lock acquired
                file.close()
                raise
            file.close()
        if monotonic() > deadline:
            raise files.busy_error(path, seconds)
        sleep(pause)
        pause = min(2 * pause, _LAST_PAUSE)


#: Seconds between two looks at a lock: at first, and at most.
_FIRST_PAUSE, _LAST_PAUSE = 0.0002, 0.005


class VersionMismatch(NamedTuple):
    """The answer to an append that expected another version than *version*, the present one; nothing was written."""

    version: Version


class FileJournal:
    """The streams below one folder. No process that opens one may fork: a kernel lock is inherited; exec instead."""

    is_shared = False

    def __init__(
        self, folder: Path, *, wait: float = 10.0, begin: Callable[[str], object] = lambda project: None
    ) -> None:
        """Open the journal of the memory root *folder*; *wait* is the time to wait for a lock, in seconds.

        *begin* is called with the project before the first commit of a stream is written.
        """
        self.folder, self.wait, self._begin = folder.absolute(), wait, begin
        #: Called with the seconds that each commit took to be durable.
        self.on_durable: Callable[[float], object] = lambda seconds: None
        self._git = GitLock(self.folder)
        self._guard = threading.Lock()
        self._open: dict[Stream, tuple[Folder, StreamLock]] = {}
        self._at_opening = [f"the {each.name} of {each.project}" for each in _streams_in(self.folder)]
        self._sealer = BackgroundTask("jidomem-seal")
        self._closed: str | None = None  # the name of the closed memory
        self._is_watching = False
        self._explained: dict[Stream, tuple[tuple[str, ...], tuple[JournalDamaged, ...]]] = {}
        self._seal_from: dict[Stream, int] = {}  # the number of commit files above which to seal, where not LOOSE

    def watch(self) -> None:
        """Watch all folders from now on, as a server does: the next refresh notices an edit of a file read before."""
        with self._guard:
            self._is_watching = True
            for folder, _ in self._open.values():
                folder.watch()

    def path(self, stream: Stream) -> Path:
        """Return the folder of a stream, which need not exist."""
        return self.folder / "projects" / stream.project / stream.name

    def streams(self) -> list[Stream]:
        """Return the streams with commits, sorted."""
        return _streams_in(self.folder)

    def exists(self, stream: Stream) -> bool:
        """Return whether the stream has a commit."""
        return bool(each_file(str(self.path(stream))))

    def knows(self, project: str) -> bool:
        """Return whether a project may have commits."""
        return disk.exists(f"{self.folder}/projects/{project}")

    @contextmanager
    def asking(self, streams: Sequence[Stream]) -> Iterator[None]:
        """Read the versions of *streams* within the block; a shared journal asks its log once for all of them."""
        self._check_open()
        yield

    def wait_for_change(self, stream: Stream, version: Version, seconds: float) -> bool:
        """Return whether a stream has another version than *version* now, or else after a sleep of *seconds*."""
        if self.head(stream) != version:
            return True
        sleep(seconds)
        return self.head(stream) != version

    def head(self, stream: Stream) -> Version:
        """Return the present version of the intact files of a stream; raises MemoryClosed after `close`."""
        self._check_open()
        folder, lock = self._known(stream)
        version = folder.refresh()
        if version.heads:
            lock.known = version
        return version

    def check_present(self) -> None:
        """Raise MemoryMissing if the root had commits when it was opened or last read, and now has none.

        A branch of git that has the root without a commit, but with `config.toml`, is no such loss.
        """
        with self._guard:
            known = {each: lock.known for each, (_, lock) in self._open.items() if lock.known.heads}
        had = [f"version {version} of {each.project}" for each, version in known.items()] or self._at_opening
        if not had or self.streams() or (self.is_tracked and disk.exists(f"{self.folder}/config.toml")):
            return
        raise MemoryMissing(str(self.folder), ", ".join(had), may_be_on_branch=self.is_tracked)

    def damage(self, stream: Stream) -> tuple[JournalDamaged, ...]:
        """Return the known damage of a stream, for which a write is refused; `verify` reads every file again."""
        damage = self._known(stream)[0].damage()
        return self._explain(stream, damage) if damage or self._explained else ()

    def known_damage(self, project: str) -> int:
        """Return the number of damaged files of *project* that reads have found so far; no file is looked at."""
        folders = [opened[0] for name in NAMES if (opened := self._open.get(Stream(project, name)))]
        return sum(len(folder.known_damage()) for folder in folders)

    def _explain(self, stream: Stream, damage: tuple[JournalDamaged, ...]) -> tuple[JournalDamaged, ...]:
        """Return *damage* with BranchChanged for commits that git left; later processes read every file again."""
        before, explained = self._explained.pop(stream, ((), ()))
        if not damage:
            return damage
        if (texts := tuple(map(str, damage))) != before:
            explained = explain(self._known(stream)[0], damage) if self.is_tracked else damage
            self._distrust(stream)
        self._explained[stream] = texts, explained
        return explained

    def verify(self, stream: Stream, seen: Callable[[Commit], object] | None = None) -> tuple[JournalDamaged, ...]:
        """Return the damage of a stream after every byte was read again from disk.

        *seen* is called with every intact commit, in no order, perhaps twice. Processes that open the journal after
        damage was reported read every file, and so know it as well.
        """
        known, separate = self._known(stream)[0], Folder(self.path(stream), stream.graph, seen)  # blocks no reader
        if damage := separate.verify():
            damage = self._explain(stream, known.verify())
            self._distrust(stream)
            return damage
        if known.snapshot.is_of_names(separate.snapshot) and known.snapshot.version != separate.snapshot.version:
            known.reload()
        return damage

    def reread(self, stream: Stream, after: str, count: int) -> tuple[list[str], bool]:
        """Read the next *count* commits after the stem *after* (from the first: "") again from disk.

        Return their stems, and whether damage was found that was unknown. This process knows it from then on, and
        processes that open the journal later read every file.
        """
        self._check_open()
        folder = self._known(stream)[0]
        folder.refresh()
        known = folder.known_damage().keys()
        folder.contents.own.clear()
        folder.contents.packs.forget_tables()
        keys = [*islice(folder.later(after), count)]
        deque(folder.commits(keys, set()), maxlen=0)
        is_new = not folder.known_damage().keys() <= known
        if is_new:
            self._distrust(stream)
        return keys, is_new

    def find_gaps(self) -> list[Stream]:
        """Return no stream: a folder that lacks a commit shows it at each look; a shared journal asks its log."""
        return []

    def _distrust(self, stream: Stream) -> None:
        """Let processes that open the stream from now on read every file, unless another process writes."""
        with suppress(JidomemError, OSError), self._lock_files(stream, 0) as (_, lock):
            disk.overwrite(lock.file.descriptor, UNLISTED.dump())

    def holds(self, stream: Stream, version: Version) -> bool:
        """Return whether the heads of *version* exist; False after a checkout of a branch without them."""
        return self._known(stream)[0].holds(version)

    def is_redacted_since(self, stream: Stream, version: Version) -> bool:
        """Return whether a redaction record follows *version*; raise NotFound unless the journal `holds` it."""
        folder = self._known(stream)[0]
        return any(is_redaction_record(folder.raw(key)) for key in folder.after(version))

    def orphans(self, stream: Stream) -> frozenset[str]:
        """Return the names of the files of commits whose parents are missing, as after a checkout of another branch."""
        return self._known(stream)[0].orphans

    def document(self, stream: Stream, head: CommitRef) -> tuple[str, int, bytes] | None:
        """Return the file of a commit, the number of lines before it, and its document; None where it is absent."""
        return self._known(stream)[0].document(head)

    def read(self, stream: Stream, after: Version | None = None, *, missed: set[str] | None = None) -> Iterator[Commit]:
        """Return the commits neither in *after* nor before it, by (recorded_at, id), so parents before children.

        Redacted triples are left out, also where a file still has them. Damaged files are left out; *missed* collects
        the paths that this reading could not read. Raise NotFound unless the journal `holds` *after*.
        """
        folder = self._known(stream)[0]
        if folder.is_damaged:
            folder.refresh()  # it may be repaired
        return visible_commits(folder, folder.after(after or Version()), set() if missed is None else missed)

    def matching(self, stream: Stream, wanted: Callable[[bytes], bool]) -> Iterator[Commit]:
        """Return the commits of `read` whose document, before it is verified, is *wanted*; no other is verified."""
        folder = self._known(stream)[0]
        return visible_commits(folder, folder.after(Version()), set(), wanted)

    def loose(self, stream: Stream) -> int:
        """Return the number of commits of a stream with files of their own."""
        folder = self._known(stream)[0]
        folder.refresh()
        return folder.snapshot.loose

    @property
    def is_tracked(self) -> bool:
        """Return whether git may track the files: the folder, or one above it, is a repository."""
        return any(disk.exists(f"{folder}/.git") for folder in (self.folder, *self.folder.parents))

    def seal(self, stream: Stream) -> int:
        """Pack the commits before the oldest head of a stream; return the number of files replaced.

        Other writers wait only while files are replaced. Damaged files are not changed. Raise Busy while another
        process seals the stream, Failed `write_failed` when this machine could not write; the rest is unchanged then.
        """
        folder, lock = self._known(stream)
        if not self.exists(stream):
            return 0
        file = acquire_lock_file(folder.path, f"{folder.path}/{SEAL_LOCK}", 0, 0)
        try:
            sealed = 0
            for batch in batches(folder, folder.refresh()):
                with self._lock_files(stream, self.wait):
                    placed = install_batch(folder, lock.file.descriptor, batch)
                for first in range(0, len(batch.files) if placed else 0, SLICE):
                    sleep(PAUSE)  # waiting writers proceed
                    with self._lock_files(stream, self.wait):
                        remove_sealed(folder, lock.file.descriptor, batch.files[first : first + SLICE])
                sealed += len(batch.files) if placed else 0
            return sealed
        finally:
            file.close()

    def store_snapshot(self, stream: Stream) -> None:
        """Store the snapshot of a stream for later processes, unless another process writes at this moment.

        Writers do so anyway; the first process to read a cloned journal may be a reader.
        """
        with suppress(JidomemError), self._lock_files(stream, 0) as (folder, lock):
            self._checked_version(folder, lock)

    @contextmanager
    def lock(self, stream: Stream, *, wait: float | None = None) -> Iterator[Version]:
        """Hold the write lock of a stream and yield its version; other writers wait.

        Raise Busy when the lock is not free within *wait* seconds (default: those of the journal), JournalDamaged,
        BranchChanged where commits of another branch of git are left in the folder, MemoryMissing where all commits are
        gone, MemoryClosed, Failed `write_failed`. A thread that holds the lock must not take it again.
        """
        self._check_open()
        try:
            with self._lock_files(stream, self.wait if wait is None else wait) as (folder, lock):
                yield self._checked_version(folder, lock)
        except JournalDamaged as error:
            is_same = (each for each in self.damage(stream) if each.path == error.path)
            if isinstance(changed := next(is_same, None), BranchChanged):
                raise changed from error
            raise

    def _checked_version(self, folder: Folder, lock: StreamLock) -> Version:
        """Return the version of an undamaged folder, its lock held, once the lock file has the snapshot."""
        for damage in folder.damage():
            raise damage
        version = folder.snapshot.version
        if version.heads:
            lock.known = version
        else:
            self.check_present()
        if folder.is_lock_file_outdated:
            with suppress(OSError):
                disk.overwrite(lock.file.descriptor, folder.snapshot.dump())
                folder.is_lock_file_outdated = False
        return version

    @contextmanager
    def _lock_files(self, stream: Stream, seconds: float) -> Iterator[tuple[Folder, StreamLock]]:
        """Hold the lock of a stream's files, damaged or not; raise Busy when it is not free within *seconds*."""
        folder, lock = self._known(stream)
        with lock.hold(folder.path, folder.lock_path, seconds, self.check_present):
            self._git.wait(min(seconds, YOUNG))
            if not folder.snapshot.place:  # without the marker the lock file is ignored
                with suppress(OSError):
                    disk.ensure_local_marker(folder.path)
            yield folder, lock

    @contextmanager
    def redacting(self, stream: Stream, leaves: Mapping[str, frozenset[str]]) -> Iterator[Version]:
        """Write every file of a stream without the *leaves*, by commit id, and yield the version, the lock held.

        The caller appends the record, then the old files are removed. After an interruption both forms exist, and the
        same call continues. Raises the errors of `lock`.
        """
        folder, lock = self._known(stream)
        file = acquire_lock_file(
            folder.path, f"{folder.path}/{SEAL_LOCK}", monotonic() + self.wait, self.wait, self.check_present
        )
        try:
            with self.lock(stream) as version, writing(folder.path):
                old = write_redacted(folder, lock.file.descriptor, leaves)
                yield version
                remove(folder, lock.file.descriptor, old)
        finally:
            file.close()

    def inspect(self, stream: Stream) -> Folder:
        """Return the folder of a stream, refreshed."""
        folder = self._known(stream)[0]
        folder.refresh()
        return folder

    def quarantine(
        self, stream: Stream, which: str, record: Callable[[Version, str], Commit], now: datetime | None = None
    ) -> str:
        """Quarantine the damage *which*, an id or a file name, and append the commit of *record*(version, file name).

        With *now* the commits beyond the horizon of that moment are damage as well, and are quarantined together.
        Raise NotFound for a name without damage, JournalDamaged for an unreadable pack, and the errors of `lock`.
        """
        with self._lock_files(stream, self.wait) as (folder, lock), writing(folder.path):
            names = quarantine_late(folder, lock.file.descriptor, which, now) if now is not None else []
            for name in names or [quarantine(folder, lock.file.descriptor, which)]:
                version = folder.refresh()
                self._write(stream, version, record(version, name), folder, lock)
            return name

    def append(self, stream: Stream, expected: Version, commit: Commit) -> Version | VersionMismatch:
        """Return the new version once *commit* is durable; VersionMismatch unless *expected* is the present version.

        Takes the lock, or uses the one of this thread. An existing commit is made durable and answered with the
        present version, so an append with an unknown outcome can be repeated with the same commit. Raise FormatError
        unless the commit follows from *expected*, JournalDamaged for damage, Busy, and Failed `write_failed` when this
        machine could not write. Nothing has then changed, with one exception that the message names: the commit was in
        place, its folder could not be made durable, and the commit could not be removed.
        """
        folder, lock = self._known(stream)
        with nullcontext() if lock.is_own_thread else self.lock(stream):
            version = folder.snapshot.version if folder.is_as_seen() else self._checked_version(folder, lock)
            name = file_name(commit.head)
            if disk.exists(f"{folder.path}/{name}") and folder.holds(Version.of([commit.head])):
                with writing(folder.path):
                    disk.flush(f"{folder.path}/{name}")
                self.confirm(stream)
                return version
            if version != expected:
                return version if folder.holds(Version.of([commit.head])) else VersionMismatch(version)
            return self._write(stream, version, commit, folder, lock)

    def confirm(self, stream: Stream) -> None:
        """Make the names of the files durable, as a killed writer may have left them; raise Failed `write_failed`."""
        folder = self._known(stream)[0]
        with writing(folder.path):
            disk.flush(folder.path)

    def _write(self, stream: Stream, version: Version, commit: Commit, folder: Folder, lock: StreamLock) -> Version:
        """Return the new version once *commit* is durable on top of the present *version*; the lock is held."""
        check_follows(stream.graph, version, commit)
        began = monotonic()
        with writing(folder.path):
            if not version.heads:
                self._begin(stream.project)
                flush_above(folder.path)  # another process may have made the folders, and may have been killed
            with folder.changing(lock.file.descriptor, appended=commit):
                write_durably(folder.path, file_name(commit.head), commit.data)
            self._check_parents(version, commit, folder)
        self._seal_when_due(stream, folder)
        self.on_durable(monotonic() - began)
        lock.known = Version.of([commit.head])  # a reader may have moved the snapshot on to commits that git brought
        return lock.known

    def _check_parents(self, expected: Version, commit: Commit, folder: Folder) -> None:
        """Remove *commit* and raise Busy if git removed its parents in the meantime."""
        self._git.wait(YOUNG)
        if folder.holds(expected):
            return
        path = f"{folder.path}/{file_name(commit.head)}"
        with suppress(FileNotFoundError):
            disk.unlink(path)
        folder.forget()
        raise Busy(
            f"{folder.path}: the commits that this one follows were removed while it was written, as git does when"
            " another branch is checked out; nothing was kept",
            hint="submit again: it is judged by the memory of the branch that is checked out now",
        )

    def close(self, name: str) -> None:
        """Refuse all further reads and writes; *name* is the memory in the refusal."""
        self._closed = name
        with self._guard:
            for folder, _ in self._open.values():
                folder.close()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise MemoryClosed(self._closed)

    def _known(self, stream: Stream) -> tuple[Folder, StreamLock]:
        with self._guard:
            if stream not in self._open:
                folder = Folder(self.path(stream), stream.graph, is_watched=self._is_watching)
                self._open[stream] = (folder, StreamLock())
            return self._open[stream]

    def _seal_when_due(self, stream: Stream, folder: Folder) -> None:
        """Seal a stream of many commit files in a background thread, unless one runs or git tracks the files."""
        loose = folder.snapshot.loose
        if loose <= self._seal_from.get(stream, LOOSE):
            return
        self._seal_from[stream] = loose + LOOSE // 10  # a failed sealing is not repeated at once
        if self.is_tracked or self._sealer.is_running:
            return

        def seal() -> None:
            with suppress(JidomemError, OSError):  # a later append tries again
                self.seal(stream)
                self._seal_from.pop(stream, None)

        with suppress(RuntimeError):  # this process is about to end
            self._sealer.start(seal)


class FutureCommit(NamedTuple):
    """The first commit that is recorded later than the present, by a clock that was fast: its file and its author.

    `later` is the number of commits of its stream that are recorded after it.
    """

    head: CommitRef
    path: str
    by: str
    now: datetime
    stream: Stream
    later: int
    hint: str = (
        "the clock of the machine that wrote it was fast, unless this one is slow; until that moment later commits are"
        " recorded after it, and --as-of an earlier one leaves them out"
    )

    def repair(self, journal: FileJournal) -> str:
        """Return the commands that set the commit and the later ones aside, and import their memories again.

        The sentence before them names what is lost; redactions among these commits are repeated.
        """
        folder, of = journal.inspect(self.stream), f"--project {self.stream.project}"
        heads = {head.id: head for head in late_commits(folder, last_moment(self.now)).values() if head >= self.head}
        commits = [*folder.commits(sorted(map(stem, heads.values())), set())]
        commands = f'jidomem journal verify {of} --quarantine {self.head.id[:SHORT]} --reason "a fast clock"'
        others = redacted_leaves(filter(lambda each: is_redaction_record(each.data), commits)).keys() - heads.keys()
        again = f' && jidomem journal redact {of} --again --reason "a fast clock"' * bool(others)
        lost = _lost(commits)
        if self.stream != Stream(self.stream.project):
            return f"wait until then, or lose {lost or 'what these commits say'}: {commands}{again}"
        loss, kept = f", and with the loss of {lost}" * bool(lost), f"{of} -o kept.ttl"
        commands = f"jidomem root export {kept} && {commands} && jidomem root import turtle {of} kept.ttl{again}"
        return f"with the clocks set{loss}: {commands}"

    @property
    def detail(self) -> str:
        """Return the sentence that names the commit and the present."""
        commit = f"commit {self.head.id[:SHORT]}{self.by} is recorded at {self.head.recorded_at}"
        commit += f", {self.later:,} more after it" * bool(self.later)
        return f"{commit}, and this clock shows {format_timestamp(self.now)}"

    def at(self, now: datetime) -> FutureCommit | None:
        """Return the commit as the first at *now*, or None if another may be: an earlier one, or one still ahead."""
        is_first = self.now <= now and self.head.recorded_at > last_moment(now)
        return self._replace(now=now) if is_first else None


def future_commit(journal: FileJournal, streams: Iterable[Stream], now: datetime) -> FutureCommit | None:
    """Return the first commit of *streams* recorded more than `CLOCK_ERROR` after *now*, or None if there is none."""
    last = last_moment(now)
    found = [
        (head, name, stream) for stream in streams for name, head in late_commits(journal.inspect(stream), last).items()
    ]
    if not found:
        return None
    head, name, stream = min(found)
    document = journal.document(stream, head)
    triples = parse(document[2]).triples if document is not None else ()
    authors = sorted({vocab.local_name(value) for _, predicate, value in triples if predicate in _AUTHOR})
    by = f" by {' and '.join(authors)}" if authors else ""
    later = sum(other == stream for _, _, other in found) - 1
    return FutureCommit(head, f"{journal.path(stream)}/{name.partition('#')[0]}", by, now, stream, later)


_AUTHOR = frozenset(map(vocab.jido, ("assertedBy", "causedBy", "setBy")))
#: The class of what an import does not restore -> its name, for one and for more.
_NOT_IMPORTED: Mapping[str, tuple[str, str]] = {
    vocab.jido("PolicyChange"): ("policy change", "policy changes"),
    vocab.jido("Entry"): ("entry", "entries"),
    iri(f"{vocab.CONVERSATION}ConversationTurn"): ("conversation turn", "conversation turns"),
}


def _lost(commits: Iterable[Commit]) -> str:
    """Return the numbers of policy changes, entries and turns in *commits* as a text, empty if there are none."""
    counts = Counter(value for commit in commits for _, predicate, value in commit.triples if predicate == vocab.TYPE)
    lost = [f"{counts[kind]:,} {names[counts[kind] > 1]}" for kind, names in _NOT_IMPORTED.items() if counts[kind]]
    return " and ".join(filter(None, (", ".join(lost[:-1]), *lost[-1:])))
