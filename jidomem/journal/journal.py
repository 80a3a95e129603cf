"""What may be put on top of a version: a commit of the same stream, made on it, and after it.

The journal in folders of files: one commit a file, appended under a kernel lock, read without one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep, time_ns

from jidomem.base.background import BackgroundTask
from jidomem.errors import BranchChanged, Busy, JidomemError, JournalDamaged, MemoryClosed, NotFound
from jidomem.journal import disk
from jidomem.journal.branches import explain
from jidomem.journal.commit import Commit, FormatError, each_file, file_name
from jidomem.journal.disk import flush_above, write_durably, writing
from jidomem.journal.rewrite import (
    PAUSE,
    SEAL_LOCK,
    SLICE,
    batches,
    put_in_place,
    put_late_aside,
    quarantine,
    remove,
    served,
    take_away,
    write_redacted,
)
from jidomem.journal.stream import Folder
from jidomem.journal.write_lock import NOTHING, YOUNG, GitLock, StreamLock, locked
from jidomem.rdf import vocab
from jidomem.records.intent import CommitRef, Version


def check_follows(graph: str, expected: Version, commit: Commit) -> None:
    """Raise FormatError unless *commit* belongs to *graph*, is whole, and follows from *expected*."""
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


def checked_version(folder: Folder) -> Version:
    """Return the version of a folder now, its heads read here; raise JournalDamaged while there is damage."""
    version = folder.look()
    if not folder.is_grounded() and not folder.is_damaged:
        folder.read_anew()
        version = folder.sight.version
    while folder.is_damaged:
        for found in folder.damage():
            raise found
        version = folder.look()  # it was healed since
    return version


#: The folder of a stream in its project -> the short name of its graph.
NAMES = {"memory": "context", "history": "history", "codebase": "codebase", "system": "system"}
#: How many commit files a stream has, where git does not track it, before they are sealed into packs.
LOOSE = 2_000

_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """One graph of one project; *name* is memory, history, codebase or system."""

    project: str
    name: str = "memory"

    def __post_init__(self) -> None:
        if not isinstance(self.project, str) or not _PROJECT.fullmatch(self.project):
            near = re.sub(r"[^a-z0-9_-]+", "-", str(self.project).casefold()).strip("-_")[:64]
            raise NotFound(
                f"{self.project!r} is no project id",
                code="invalid_project",
                hint=f"use lower-case letters, digits, - and _, at most 64: {near or 'my-project'}",
            )
        if self.name not in NAMES:
            raise NotFound(f"a project has no stream {self.name!r}", hint=f"use one of: {', '.join(NAMES)}")

    @property
    def graph(self) -> str:
        """Return the bare IRI of the graph the stream's commits belong to."""
        return vocab.graph_iri(self.project, NAMES[self.name])


@dataclass(frozen=True, slots=True)
class VersionMismatch:
    """The answer to an append that expected another version than *version*, the present one; nothing was written."""

    version: Version


class FileJournal:
    """The streams below one folder. No process that opens one may fork: a kernel lock is inherited; exec instead."""

    def __init__(self, folder: Path, *, wait: float = 10.0) -> None:
        """Open the journal of the memory root *folder*; *wait* is how many seconds a turn is waited for."""
        self.folder = folder.absolute()
        self.wait = wait
        #: Told of each commit how many seconds it took to be durable.
        self.on_kept: Callable[[float], object] = lambda seconds: None
        self._git = GitLock(self.folder)
        self._guard = threading.Lock()
        self._open: dict[Stream, tuple[Folder, StreamLock]] = {}
        self._sealer = BackgroundTask("jidomem-seal")
        self._closed: str | None = None  # what it was called
        self._explained: dict[Stream, tuple[tuple[JournalDamaged, ...], tuple[JournalDamaged, ...]]] = {}
        self._enough: dict[Stream, int] = {}  # how many commit files are too many, where it is not LOOSE

    def path(self, stream: Stream) -> Path:
        """Return the folder of a stream, which need not exist."""
        return self.folder / "projects" / stream.project / stream.name

    def streams(self) -> list[Stream]:
        """Return the streams that hold commits, sorted."""
        projects = filter(_PROJECT.fullmatch, disk.names(f"{self.folder}/projects"))
        found = [Stream(project, name) for project in projects for name in NAMES]
        return sorted(filter(self.exists, found))

    def exists(self, stream: Stream) -> bool:
        """Return whether the stream holds a commit."""
        return any(True for _ in each_file(str(self.path(stream))))

    def knows(self, project: str) -> bool:
        """Return whether a project may hold something."""
        return disk.exists(f"{self.folder}/projects/{project}")

    @contextmanager
    def asking(self, streams: Sequence[Stream]) -> Iterator[None]:
        """Look at *streams* within; a journal whose looks are dear makes one of them all."""
        self._check_open()
        yield

    def moved(self, stream: Stream, version: Version, seconds: float) -> bool:
        """Return whether a stream has another version than *version* by now, or within so many *seconds*."""
        if self.head(stream) != version:
            return True
        sleep(seconds)
        return self.head(stream) != version

    def head(self, stream: Stream) -> Version:
        """Return the version of a stream now, of the files there and sound; raises MemoryClosed once it was closed."""
        self._check_open()
        return self._known(stream)[0].look()

    def damage(self, stream: Stream) -> tuple[JournalDamaged, ...]:
        """Return the damage known of a stream now; an edit of a file read before shows only in `verify`."""
        return self._explain(stream, self._known(stream)[0].damage())

    def _explain(self, stream: Stream, damage: tuple[JournalDamaged, ...]) -> tuple[JournalDamaged, ...]:
        """Return *damage* with BranchChanged for commits that git left here when it checked another branch out."""
        if not damage or not self.is_tracked:
            return damage
        before, explained = self._explained.get(stream, ((), ()))
        if damage != before:
            explained = explain(self._known(stream)[0], damage)
            self._explained[stream] = damage, explained
        return explained

    def verify(self, stream: Stream, seen: Callable[[Commit], object] | None = None) -> tuple[JournalDamaged, ...]:
        """Return the damage of a stream, every byte of it read again from disk.

        *seen* is told of every sound commit, in no order, of some perhaps twice.
        """
        known, apart = self._known(stream)[0], Folder(self.path(stream), stream.graph, seen)  # nobody waits for it
        if found := apart.verify():
            return self._explain(stream, known.verify())
        if known.sight.is_of_names(apart.sight) and known.sight.version != apart.sight.version:
            known.read_anew()
        return found

    def holds(self, stream: Stream, version: Version) -> bool:
        """Return whether the heads of *version* are here; False after a checkout of a branch without them."""
        return self._known(stream)[0].holds(version)

    def document(self, stream: Stream, head: CommitRef) -> tuple[str, int, bytes] | None:
        """Return in which file a commit stands, after how many lines, and its document; None where it is not here."""
        return self._known(stream)[0].document(head)

    def read(self, stream: Stream, after: Version | None = None, *, missed: set[str] | None = None) -> Iterator[Commit]:
        """Return the commits neither in *after* nor before it, by (recorded_at, id), so parents before children.

        What one of them orders to be redacted is not in them, also where a file shows it.

        Damaged files are left out; `damage` names those that are damaged still, and *missed* takes in the paths of all
        that this reading could not read. Raise NotFound unless the journal `holds` *after*.
        """
        folder = self._known(stream)[0]
        if folder.is_damaged:
            folder.look()  # it may be healed
        return served(folder, folder.after(after or Version()), set() if missed is None else missed)

    def loose(self, stream: Stream) -> int:
        """Return how many commits of a stream have files of their own."""
        folder = self._known(stream)[0]
        folder.look()
        return folder.sight.loose

    @property
    def is_tracked(self) -> bool:
        """Return whether git may track the files: the folder, or one above it, is a repository."""
        return any(disk.exists(f"{folder}/.git") for folder in (self.folder, *self.folder.parents))

    def seal(self, stream: Stream) -> int:
        """Put the commits before the oldest head of a stream into packs; return how many had files of their own.

        Other writers wait only while the files change places. What is damaged stays as it is, and `damage` tells of it.
        Raise Busy while another process seals the stream, Failed `write_failed` when this machine could not write;
        what is not sealed then is as it was.
        """
        folder, turn = self._known(stream)
        if not self.exists(stream):
            return 0
        descriptor = locked(folder.path, f"{folder.path}/{SEAL_LOCK}", 0, 0)
        try:
            sealed = 0
            for batch in batches(folder, folder.look()):
                with self._held(stream, self.wait):
                    placed = put_in_place(folder, turn.descriptor, batch)
                for first in range(0, len(batch.files) if placed else 0, SLICE):
                    sleep(PAUSE)  # whoever waits for a turn gets one
                    with self._held(stream, self.wait):
                        take_away(folder, turn.descriptor, batch.files[first : first + SLICE])
                sealed += len(batch.files) if placed else 0
            return sealed
        finally:
            disk.close(descriptor)

    def share(self, stream: Stream) -> None:
        """Let the processes to come know what this one found out by reading, unless another writes at this moment.

        Who only reads may be the first to read a journal that came by a clone; whoever writes shares it anyway.
        """
        with suppress(JidomemError), self._alone(stream, 0):
            pass

    @contextmanager
    def turn(self, stream: Stream, *, wait: float | None = None) -> Iterator[Version]:
        """Hold the stream's write lock and give the version at that moment; other writers wait.

        Raise Busy when the lock is not free in time, which is that of the journal unless *wait* is given,
        JournalDamaged while there is damage, BranchChanged where commits of another branch of git are left in the
        folder, MemoryClosed once the journal was closed, Failed `write_failed` where the folder cannot be written. A
        thread that holds the turn must not ask for it again.
        """
        self._check_open()
        try:
            with self._alone(stream, self.wait if wait is None else wait) as version:
                yield version
        except JournalDamaged as error:
            is_same = (each for each in self.damage(stream) if each.path == error.path)
            if isinstance(changed := next(is_same, None), BranchChanged):
                raise changed from error
            raise

    @contextmanager
    def _alone(self, stream: Stream, seconds: float) -> Iterator[Version]:
        """Hold the lock of a stream's files, none of them damaged, and give their version."""
        with self._held(stream, seconds) as (folder, turn):
            version = checked_version(folder)
            if folder.unshared:
                with suppress(OSError):
                    disk.overwrite(turn.descriptor, folder.sight.dump())
                    folder.unshared = False
            yield version

    @contextmanager
    def _held(self, stream: Stream, seconds: float) -> Iterator[tuple[Folder, StreamLock]]:
        """Hold the lock of a stream's files, damage or not; raise Busy when it is not free in so many *seconds*."""
        folder, turn = self._known(stream)
        with turn.taken(folder.path, folder.lock_path, seconds):
            self._git.wait(min(seconds, YOUNG))
            with suppress(OSError):  # without a place nobody believes what the lock file says
                disk.settle_file(folder.path)
            yield folder, turn

    @contextmanager
    def redacting(self, stream: Stream, gone: Mapping[str, frozenset[str]]) -> Iterator[Version]:
        """Take the leaves *gone*, by the id of the commit, out of every file of a stream, and give its version.

        The new forms count once they are in place; what is appended then, the turn in hand, tells others; at the end
        the old ones go. Cut short before, both are there, and the same call goes on. Raises what `turn` raises.
        """
        folder, turn = self._known(stream)
        descriptor = locked(folder.path, f"{folder.path}/{SEAL_LOCK}", monotonic() + self.wait, self.wait)
        try:
            with self.turn(stream) as version, writing(folder.path):
                old = write_redacted(folder, turn.descriptor, gone)
                yield version
                remove(folder, turn.descriptor, old)
        finally:
            disk.close(descriptor)

    def seen(self, stream: Stream) -> Folder:
        """Return what is known of the folder of a stream, after a look at it."""
        folder = self._known(stream)[0]
        folder.look()
        return folder

    def set_aside(
        self, stream: Stream, which: str, record: Callable[[Version, str], Commit], now: datetime | None = None
    ) -> str:
        """Set the damage *which*, an id or the name of a file, aside and append what *record* makes of it.

        *record* is given the version and the name of the file. With *now* the commits beyond the horizon of that
        moment are damage as well, and are set aside together. Raise NotFound where nothing of that name is damaged,
        JournalDamaged for a pack that can no longer be read at all, and what `turn` raises but for damage.
        """
        with self._held(stream, self.wait) as (folder, turn), writing(folder.path):
            names = put_late_aside(folder, turn.descriptor, which, now) if now is not None else []
            for name in names or [quarantine(folder, turn.descriptor, which)]:
                version = folder.look()
                self._put(stream, version, record(version, name), folder, turn)
            return name

    def append(self, stream: Stream, expected: Version, commit: Commit) -> Version | VersionMismatch:
        """Return the new version once *commit* is durable, or Moved unless *expected* is the present version.

        Takes the turn, or uses the one this thread holds. A commit that is already there is made durable and answered
        with the present version: so an append whose outcome is unknown is settled by appending the same commit again.

        Raise FormatError unless the commit follows from *expected*, JournalDamaged while there is damage, Busy, and
        Failed `write_failed` when this machine could not write. Nothing has then changed, with one exception that the
        message names: the commit was in place, its folder could not be made durable, and it could not be taken back.
        """
        folder, turn = self._known(stream)
        if turn.is_mine:
            return self._append(stream, expected, commit, folder, turn)
        with self.turn(stream):
            return self._append(stream, expected, commit, folder, turn)

    def confirm(self, stream: Stream) -> None:
        """Make durable that the files are there, as who was killed may not have; raise Failed `write_failed`."""
        folder = self._known(stream)[0]
        with writing(folder.path):
            disk.flush(folder.path)

    def _append(
        self, stream: Stream, expected: Version, commit: Commit, folder: Folder, turn: StreamLock
    ) -> Version | VersionMismatch:
        """Do `append` with the turn in hand."""
        version = folder.sight.version if folder.is_as_seen() else checked_version(folder)
        name = file_name(commit.head)
        if disk.exists(f"{folder.path}/{name}") and folder.holds(Version.of([commit.head])):
            with writing(folder.path):
                disk.flush(f"{folder.path}/{name}")
            self.confirm(stream)
            return version
        if version != expected:
            return (
                version if folder.holds(Version.of([commit.head])) else VersionMismatch(version)
            )  # sealed, or it is not there
        return self._put(stream, expected, commit, folder, turn)

    def _put(self, stream: Stream, expected: Version, commit: Commit, folder: Folder, turn: StreamLock) -> Version:
        """Put *commit* on top of *expected*, the present version, with the turn in hand."""
        check_follows(stream.graph, expected, commit)
        began = monotonic()
        with writing(folder.path):
            if not expected.heads:  # whoever made the folders, and however far it came
                flush_above(folder.path)
            version = self._place(stream, commit, folder, turn, write_durably)
            self._check_parents(expected, commit, folder)
        self.on_kept(monotonic() - began)
        return version

    def _check_parents(self, expected: Version, commit: Commit, folder: Folder) -> None:
        """Take *commit* back and raise Busy where git took the commits it follows away while it was written."""
        self._git.wait(YOUNG)
        if folder.holds(expected):
            return
        path = f"{folder.path}/{file_name(commit.head)}"
        with suppress(FileNotFoundError):
            disk.unlink(path)
        folder.forget()
        raise Busy(
            f"{folder.path}: the commits that this one follows were taken away while it was written, as git does when"
            " another branch is checked out; nothing was kept",
            hint="submit again: it is judged by the memory of the branch that is checked out now",
        )

    def _place(
        self, stream: Stream, commit: Commit, folder: Folder, turn: StreamLock, put: Callable[[str, str, bytes], None]
    ) -> Version:
        """Let *put* put the file of *commit* on top of what was last seen of *folder*, and share the sight of it."""
        seen, kept = folder.sight, folder.doubted()
        since = seen.since or time_ns()
        disk.overwrite(turn.descriptor, kept.dump())  # believed by nobody until it is true again
        put(folder.path, file_name(commit.head), commit.data)
        sight = folder.added(commit, seen, since)
        with suppress(OSError):
            disk.overwrite(turn.descriptor, (sight if kept is not NOTHING else NOTHING).dump())
        if sight.loose > self._enough.get(stream, LOOSE):
            self._seal_soon(stream, sight.loose)
        return sight.version

    def close(self, name: str) -> None:
        """Say how a stream stands to nobody from now on, and take nothing; *name* is what the memory is called."""
        self._closed = name

    def _check_open(self) -> None:
        if self._closed is not None:
            raise MemoryClosed(self._closed)

    def _known(self, stream: Stream) -> tuple[Folder, StreamLock]:
        with self._guard:
            if stream not in self._open:
                self._open[stream] = (Folder(self.path(stream), stream.graph), StreamLock())
            return self._open[stream]

    def _seal_soon(self, stream: Stream, loose: int) -> None:
        """Seal a stream beside what goes on here, unless that is done already or is not for us to do."""
        self._enough[stream] = loose + LOOSE // 10  # where it fails it is not tried again at once
        if self.is_tracked or self._sealer.is_running:
            return

        def work() -> None:
            with suppress(JidomemError, OSError):  # whoever comes next tries again
                self.seal(stream)
                self._enough.pop(stream, None)

        with suppress(RuntimeError):  # this process is about to end
            self._sealer.start(work)
