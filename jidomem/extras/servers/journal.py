"""The journal of a shared root: its log is the truth, and reads use a local copy in a folder.

`fill` writes many commits into the folder of a stream that has no other writer, in packs if there are enough.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from socket import gethostname
from time import monotonic
from typing import NamedTuple

from jidomem.base import disk
from jidomem.base.disk import INCOMING, flush_above, make_folders, move, prepare, writing
from jidomem.errors import Busy, InvalidRequest, JidomemError, JournalDamaged
from jidomem.extras.servers import addresses, checkpoints, shared_vectors
from jidomem.extras.servers.checkpoints import CheckpointPosition, LogMismatch
from jidomem.extras.servers.log import LogEntry, LogFault, LogSurvey, SharedLog, SingleFlight, StreamPosition, survey
from jidomem.journal.commit import Commit, FormatError, advance, file_name, is_redaction_record, parse
from jidomem.journal.journal import NAMES, FileJournal, Stream, StreamLock, VersionMismatch, check_follows
from jidomem.journal.packs import PackEntry, prepare_pack, write_pack
from jidomem.journal.rewrite import (
    BYTES,
    COMMITS,
    SEALING,
    pending_redactions,
    redacted_leaves,
    redaction_records,
    removed_leaves,
    without,
)
from jidomem.journal.stream import Folder
from jidomem.records.intent import SHORT, CommitRef, Version


def fill(folder: str, commits: Iterable[Commit], *, packed: bool = True) -> None:
    """Write *commits*, parents first, into *folder*, which is created; raises Failed if they cannot be written.

    An interrupted call leaves the first of them. With *packed*, every 2,000 commits become a pack.
    """
    with writing(folder):
        make_folders(folder)
        flush_above(folder)
        for batch, is_full in _batches(commits):
            if is_full and packed:
                ordered = sorted(batch, key=lambda commit: commit.head)
                name, data = write_pack([(PackEntry(c.head, c.parents), c.redacted, c.data) for c in ordered])
                prepare_pack(f"{folder}/{SEALING}", name, data)
                move(f"{folder}/{SEALING}", f"{folder}/{name}")
            else:
                for commit in batch:
                    _put(folder, file_name(commit.head, redacted=commit.redacted), commit.data)
            disk.flush(folder)


def _batches(commits: Iterable[Commit]) -> Iterator[tuple[Sequence[Commit], bool]]:
    """Yield *commits* in batches, each with whether it is as large as a pack."""
    batch, size = list[Commit](), 0
    for commit in commits:
        batch.append(commit)
        size += len(commit.data)
        if len(batch) == COMMITS or size >= BYTES:
            yield batch, True
            batch, size = [], 0
    if batch:
        yield batch, False


def _put(folder: str, name: str, data: bytes) -> None:
    prepare(f"{folder}/{INCOMING}", data)
    move(f"{folder}/{INCOMING}", f"{folder}/{name}")


#: Locked by the one process of this machine that writes to a stream; the lock of its files protects the copy.
_WRITERS = ".writers.lock"
#: Files of the log: the streams of which a redaction is under way.
_REDACTING = "redacting/"
_RESTORE = "restore that database or bucket from a backup, then: jidomem journal verify"
_ASK_COPIES = (
    "on each machine with a copy, jidomem journal verify says whether it has the entry: put it back there with jidomem"
    f" journal restore; if none has it, {_RESTORE}"
)


#: Between the damage of an entry, as it is recorded in the log, and the machine and folder of a copy.
_HAS_IT = "; a copy has it, on "


class RestoredEntries(NamedTuple):
    """The result of `MirroredJournal.restore` for a stream: the entries put back, and the damage that is left."""

    entries: tuple[LogEntry, ...]
    damage: tuple[JournalDamaged, ...]


class MirroredJournal(FileJournal):
    """The streams of one log, copied to a folder that any number of processes of this machine share.

    Each read gets the reach of the stream from the log and updates the copy first. The log is authoritative: a copy
    that is damaged, cut short or does not continue as the log does is deleted and fetched again; but not while it has
    commits that a damaged log lacks. Damage that one process finds is recorded in the log, and stops the writes of all.
    """

    is_shared = True

    def __init__(self, log: SharedLog, home: Path, *, wait: float = 10.0) -> None:
        """Read and write *log*, with its copy in *home*; wait up to *wait* seconds for the lock."""
        super().__init__(home, wait=wait)
        self.log = log
        self._writers: dict[Stream, StreamLock] = {}
        self._verified: set[Stream] = set()  # streams whose copy this process has compared with the log
        self._damaged_positions: dict[Stream, StreamPosition] = {}  # streams whose log, and so their copy, is damaged
        self._log_damage: dict[Stream, JournalDamaged] = {}  # recorded in the log, by the last request
        self._better: dict[Stream, StreamPosition] = {}  # the positions of damaged logs that lack commits of the copy
        self._reach_requests = SingleFlight(self._look)
        self._local = threading.local()
        self._log_id = ""
        #: The tag of the file of the root (configuration, terms and shapes) at the last request.
        self.rules: str | None = None

    @contextmanager
    def asking(self, streams: Sequence[Stream]) -> Iterator[None]:
        """Get the reach of *streams* in one request, and use it for all reads of this thread inside the block."""
        before = getattr(self._local, "positions", {})
        self._local.positions = {**before, **self._positions(list(streams))}
        try:
            yield
        finally:
            self._local.positions = before

    @property
    def is_tracked(self) -> bool:
        """Return False: a copy is not tracked by git."""
        return False

    def streams(self) -> list[Stream]:
        """Return the streams that have commits, sorted."""
        return self.log.streams()

    def exists(self, stream: Stream) -> bool:
        """Return whether the stream has a commit."""
        return self._reach(stream).length > 0

    def knows(self, project: str) -> bool:
        """Return whether a project has a commit in any of its streams."""
        return any(self._reach(Stream(project, name)).length for name in NAMES)

    def wait_for_change(self, stream: Stream, version: Version, seconds: float) -> bool:
        """Return whether a stream gets another version within *seconds*; the log wakes the waiting thread."""
        position = self._synchronise(stream)
        if position.version == version and self.log.wait(stream, position.reach, seconds) == position.reach:
            return False
        return self.head(stream) != version

    def head(self, stream: Stream) -> Version:
        """Return the current version of a stream."""
        self._synchronise(stream)
        return super().head(stream)

    def check_present(self) -> None:
        """Do nothing: a copy that is gone is fetched again."""

    def damage(self, stream: Stream) -> tuple[JournalDamaged, ...]:
        """Return the known damage of a stream in the log; damage of the copy alone is repaired by fetching it again."""
        if stream not in self._verified or self._known(stream)[0].damage():
            self._synchronise(stream)
        return super().damage(stream) or self._damage_beside_copy(stream)

    def known_damage(self, project: str) -> int:
        """Return the number of damaged files of *project*, and of entries of its log, that were found so far."""
        beside = sum(len(self._damage_beside_copy(Stream(project, name))) for name in NAMES)
        return super().known_damage(project) + beside

    def reread(self, stream: Stream, after: str, count: int) -> tuple[list[str], bool]:
        """Read commits again as `FileJournal.reread` does; with the first of a stream, its whole log.

        Damage of the log stops writes. The copy stays as it is, and reads use it: it may be the last place of a commit.
        """
        was_damaged = stream in self._log_damage
        if not after:
            self._mark(stream, self._survey(stream))
        stems, is_new = super().reread(stream, after, count)
        return stems, is_new or (not was_damaged and stream in self._log_damage)

    def find_gaps(self) -> list[Stream]:
        """Return the streams of which the log was found to lack an entry since the last call; reads no entry."""
        known = {*self._log_damage}
        for stream in sorted({*self.log.gaps(), *known}):
            self._mark(stream, self._survey(stream))
        return sorted(self._log_damage.keys() - known)

    def verify(self, stream: Stream, seen: Callable[[Commit], object] | None = None) -> tuple[JournalDamaged, ...]:
        """Return the damage of a stream: reads every byte again from the log, and compares the copy with it.

        A copy that differs from an intact log is fetched again; beside a damaged log it stays, and the errors say
        which of the entries it has.
        """
        with suppress(JournalDamaged):  # of the log, found below
            self._synchronise(stream)
        folder = self._known(stream)[0]
        heads, differing = {head.id: head for head in folder.named("")}, set[str]()
        position = self._position(stream)
        length = position.reach.length if position is not None else 0

        def compared() -> Iterator[LogEntry]:
            for entry in self.log.read(stream, with_gaps=True):
                head = heads.get(entry.commit)
                if entry.number <= length and (head is None or folder.data(head) != entry.document):
                    differing.add(entry.commit)
                yield entry

        surveyed = survey(compared(), stream.graph, folder.contents.is_explained)
        self._mark(stream, surveyed)
        if not surveyed.faults:
            if differing or heads.keys() - {entry.head.id for entry in surveyed.entries.values()}:
                self._update_copy(stream, from_scratch=True)
            return super().verify(stream, seen)
        copied = _intact(folder, surveyed)
        damage = super().verify(stream, seen)
        return tuple(self._fault(stream, each, copied) for each in surveyed.faults) if copied or not damage else damage

    def restore(
        self, streams: Iterable[Stream], source: Path | None = None, *, dry_run: bool = False
    ) -> dict[Stream, RestoredEntries]:
        """Put the entries that the log lacks, or has damaged, back from the root in *source*: the result by stream.

        The default is the copy here. From a copy of this log, commits that followed the last entry are put back as
        well. What was redacted stays redacted. All streams are judged before the first entry is written. If it is
        interrupted, the same call continues.

        Raise JournalDamaged if the source is damaged, InvalidRequest if it is of another log or has none of *streams*,
        Busy if others wrote meanwhile.
        """
        home = source or self.folder
        plans = {stream: self._plan_restore(stream, home) for stream in streams}
        has_entries = any(surveyed.entries for surveyed, _, _ in plans.values())
        if has_entries and not any(is_shared for _, _, is_shared in plans.values()):
            raise self._foreign(home)
        restored = dict[Stream, RestoredEntries]()
        for stream, (surveyed, entries, _) in plans.items():
            if not dry_run and entries:
                if not self.log.restore(stream, entries):
                    raise Busy(f"{self.log.name} was written to meanwhile", hint="run the same command again")
                surveyed = self._survey(stream)
            if not dry_run:
                self._mark(stream, surveyed)
            left = () if dry_run else tuple(self._fault(stream, each, {}) for each in surveyed.faults)
            restored[stream] = RestoredEntries(tuple(entry for entry, _ in entries), left)
        return restored

    def _plan_restore(self, stream: Stream, home: Path) -> tuple[LogSurvey, list[tuple[LogEntry, bytes | None]], bool]:
        """Return the survey of a stream, the entries to put back from *home*, and whether that has commits of it."""
        self._positions([stream])
        folder = Folder(home / "projects" / stream.project / stream.name, stream.graph)
        for damage in folder.verify():
            detail = damage.detail.removeprefix(f"{damage.path}: ")
            hint = "nothing was put back; use the copy of another machine: jidomem journal restore FOLDER"
            raise JournalDamaged(f"{detail}: this copy is not whole", path=damage.path, commit=damage.commit, hint=hint)
        position, surveyed = checkpoints.load(checkpoints.path_of(str(home), stream)), self._survey(stream)
        logged, copied = {each.head.id for each in surveyed.entries.values()}, {head.id for head in folder.named("")}
        is_copy = position is not None and position.log_id == self._log_id
        is_shared = is_copy or not logged.isdisjoint(copied)
        if (position is not None and not is_copy) or (logged and copied and not is_shared):
            raise self._foreign(home)
        filled = _intact(folder, surveyed, with_end=is_copy)
        leaves = redacted_leaves([*redaction_records(folder), *surveyed.records])
        replaced = {fault.number: fault.document for fault in surveyed.faults}
        entries = [
            (LogEntry(number, commit.id, _redacted(commit, leaves).data), replaced.get(number))
            for number, commit in sorted(filled.items())
        ]
        return surveyed, entries, is_shared

    def _foreign(self, home: Path) -> InvalidRequest:
        return InvalidRequest(
            f"{home} has no commits of {self.log.name}: it is empty, or the copy of another root",
            hint="name the folder of a copy of it (JIDOMEM_HOME of another machine), or of a restored backup",
        )

    def holds(self, stream: Stream, version: Version) -> bool:
        """Return whether the heads of *version* are in the copy, after an update if necessary."""
        if super().holds(stream, version):
            return True
        self._synchronise(stream)
        return super().holds(stream, version)

    def document(self, stream: Stream, head: CommitRef) -> tuple[str, int, bytes] | None:
        """Return the file of the copy with a commit, the number of lines before it there, and its document."""
        if (document_ := super().document(stream, head)) is None:
            self._synchronise(stream)
            document_ = super().document(stream, head)
        return document_

    def read(self, stream: Stream, after: Version | None = None, *, missed: set[str] | None = None) -> Iterator[Commit]:
        """Return the commits neither in *after* nor before it, as `FileJournal.read` does."""
        self._synchronise(stream)
        return super().read(stream, after, missed=missed)

    def loose(self, stream: Stream) -> int:
        """Return the number of commits of a stream that are single files in the copy."""
        self._synchronise(stream)
        return super().loose(stream)

    def inspect(self, stream: Stream) -> Folder:
        """Return the folder of a stream's copy, up to date with the log."""
        self._synchronise(stream)
        return super().inspect(stream)

    @contextmanager
    def lock(self, stream: Stream, *, wait: float | None = None) -> Iterator[Version]:
        """Acquire the lock of the writers on this machine and yield the version; other machines may write meanwhile.

        Raises the errors of `FileJournal.lock`.
        """
        folder, lock, seconds = self._known(stream)[0], self._lock_of(stream), self.wait if wait is None else wait
        with lock.hold(folder.path, f"{folder.path}/{_WRITERS}", seconds):
            version = self._synchronise(stream).version
            for damage in self.damage(stream):
                raise damage
            yield version

    def append(self, stream: Stream, expected: Version, commit: Commit) -> Version | VersionMismatch:
        """Return the new version once *commit* is durable in the log; VersionMismatch if the version is not *expected*.

        If the commit is there already, return the present version. Raises the errors of `FileJournal.append` and of the
        log; after Failed `outcome_unknown` the same append settles the outcome.
        """
        if self._lock_of(stream).is_own_thread:
            return self._append_locked(stream, expected, commit)
        with self.lock(stream):
            return self._append_locked(stream, expected, commit)

    def confirm(self, stream: Stream) -> None:
        """Do nothing: commits in the log are durable, and a copy need not be."""

    @contextmanager
    def redacting(self, stream: Stream, leaves: Mapping[str, frozenset[str]]) -> Iterator[Version]:
        """Yield the version; then remove *leaves* from the log, as ordered by the record that the caller appended.

        The redaction record comes first: it names commits and leaves. Every process that reads it carries it out before
        it reads anything else, so a process that is killed at any moment leaves nothing half done.
        """
        with self.lock(stream) as version:
            yield version
            self._synchronise(stream)

    def quarantine(
        self, stream: Stream, which: str, record: Callable[[Version, str], Commit], now: datetime | None = None
    ) -> str:
        """Raise InvalidRequest: damage in a shared log is repaired in its store."""
        raise InvalidRequest(
            f"{which} cannot be quarantined: this is a copy, and no file is removed from {self.log.name}", hint=_RESTORE
        )

    def _damage_beside_copy(self, stream: Stream) -> tuple[JournalDamaged, ...]:
        return (self._log_damage[stream],) if stream in self._log_damage else ()

    def _survey(self, stream: Stream) -> LogSurvey:
        entries = self.log.read(stream, with_gaps=True)
        return survey(entries, stream.graph, self._known(stream)[0].contents.is_explained)

    def _mark(self, stream: Stream, surveyed: LogSurvey) -> None:
        """Record the damage of a stream in the log, with a copy that has the entry, unless it is recorded."""
        damage, recorded = surveyed.damage, self._positions([stream])[stream].damage
        if damage and not recorded.startswith(f"{damage}{_HAS_IT}"):
            is_copied = surveyed.faults[0].number in _intact(self._known(stream)[0], surveyed)
            damage += f"{_HAS_IT}{gethostname()}: {self.folder}" * is_copied
        if damage not in (recorded, recorded.partition(_HAS_IT)[0] or None):
            self.log.mark(stream, damage)
            self._positions([stream])

    def _fault(self, stream: Stream, fault: LogFault, copied: Mapping[int, Commit]) -> JournalDamaged:
        """Return the error for a fault of the log; *copied* are the commits that the copy has, by number."""
        commit, copy = copied.get(fault.number), f"the copy here ({self.folder})"
        if commit is None:
            return self._damaged_entry(stream, fault.number, f"{fault.problem}; {copy} lacks it, too", fault.commit)
        hint = "put it back: jidomem journal restore"
        return self._damaged_entry(stream, fault.number, f"{fault.problem}; {copy} has it", commit.id, hint)

    def _damaged_entry(
        self, stream: Stream, number: int, problem: str, commit: str = "", hint: str = _ASK_COPIES
    ) -> JournalDamaged:
        path = f"{self.log.name}: entry {number} of {stream.project}/{stream.name}"
        return JournalDamaged(f"this entry {problem}", path=path, commit=commit[:SHORT] or None, hint=hint)

    def _explain(self, stream: Stream, damage: tuple[JournalDamaged, ...]) -> tuple[JournalDamaged, ...]:
        """Return *damage* of the copy, which is that of the log, with the repair of the log."""
        for each in damage:
            each.hint = _ASK_COPIES
        return damage

    # the update of the copy

    def _positions(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        self._check_open()
        try:
            return self._reach_requests.of(streams)
        except JidomemError:
            self._verified.clear()  # another store may answer next time
            raise

    def _look(self, streams: list[Stream]) -> Mapping[Stream, StreamPosition]:
        log_state = self.log.read_state(streams, addresses.NAME)
        self._log_id, self.rules = log_state.log_id, log_state.tag
        for stream, reach in log_state.positions.items():
            if reach.damage:
                number, _, problem = reach.damage.partition(" ")
                self._log_damage[stream] = self._damaged_entry(stream, int(number), problem)
            elif self._log_damage.pop(stream, None):  # it was restored: a copy with the damage is fetched again
                self._damaged_positions.pop(stream, None)
                self._better.pop(stream, None)
        return log_state.positions

    def _reach(self, stream: Stream) -> StreamPosition:
        positions: Mapping[Stream, StreamPosition] = getattr(self._local, "positions", {})
        return positions[stream] if stream in positions else self._positions([stream])[stream]

    def _position(self, stream: Stream) -> CheckpointPosition | None:
        return checkpoints.load(checkpoints.path_of(str(self.folder), stream))

    def _synchronise(self, stream: Stream) -> CheckpointPosition:
        reach, position = self._reach(stream), self._position(stream)
        if position is None and not reach.length and not self._known(stream)[0].refresh().heads:
            self._verified.add(stream)
            return CheckpointPosition(reach)
        is_level = position is not None and position.is_level(reach, self._log_id) and not position.orders
        if position is not None and is_level and stream in self._verified and self._is_sound(stream, position):
            return position
        if position is not None and reach.damage and self._better.get(stream) == reach:
            return position
        return self._update_copy(stream)

    def _is_sound(self, stream: Stream, position: CheckpointPosition) -> bool:
        folder = self._known(stream)[0]
        is_whole = folder.refresh() == position.version and not folder.is_damaged
        return is_whole or self._damaged_positions.get(stream) == position.reach

    def _update_copy(self, stream: Stream, *, from_scratch: bool = False) -> CheckpointPosition:
        """Update the copy and return its position; fetch all again with *from_scratch* or if it differs."""
        home = str(self.folder)
        with checkpoints.copying(home, self.log.name), self._lock_files(stream, self.wait) as (folder, lock):
            position = self._apply_log(stream, folder, lock, None if from_scratch else self._position(stream))
            while position.orders:
                if not self._carry_out(stream, folder, position):
                    position = replace(position, orders=())
                    checkpoints.save(checkpoints.path_of(home, stream), position)
                else:
                    position = self._apply_log(stream, folder, lock, position)
            return position

    def _apply_log(
        self, stream: Stream, folder: Folder, lock: StreamLock, position: CheckpointPosition | None
    ) -> CheckpointPosition:
        reach = self._positions([stream])[stream]
        if stream in (positions := getattr(self._local, "positions", {})):
            positions[stream] = reach
        is_cut = position is not None and (position.log_id, position.reach.rewrites) == (self._log_id, reach.rewrites)
        if position and (position.is_level(reach, self._log_id) or position.is_behind(reach, self._log_id)):
            with suppress(LogMismatch):
                position = self._fill(stream, folder, lock, position)
                is_cut = False
                if self._is_sound(stream, position):
                    return position
        if position is not None and position.log_id == self._log_id and self._is_better(stream, folder, reach):
            return position
        if is_cut and stream not in self.log.gaps():  # the log has lost its end, and may have another now
            with suppress(OSError):  # as on a file system without links
                checkpoints.retain(str(self.folder), stream)
        elif position is not None and position.reach.rewrites != reach.rewrites:
            checkpoints.forget_cut(str(self.folder), stream)
        return self._refetch(stream, folder, lock, reach)

    def _is_better(self, stream: Stream, folder: Folder, reach: StreamPosition) -> bool:
        """Return whether the log is damaged, and the copy has commits that it lacks; record the damage."""
        if not reach.damage and stream not in self.log.gaps():
            return False
        surveyed = self._survey(stream)
        self._mark(stream, surveyed)
        is_better = bool(_intact(folder, surveyed))
        if is_better:
            self._better[stream] = reach
            self._verified.add(stream)
        return is_better

    def _carry_out(self, stream: Stream, folder: Folder, position: CheckpointPosition) -> bool:
        """Return whether redaction records that arrived were now carried out in the log.

        Checkpoints and vectors made of the texts are removed too, also after a process that was killed during a
        redaction.
        """
        documents = pending_redactions(folder, position.orders)
        mark = f"{_REDACTING}{stream.project}.{stream.name}"
        if documents or self.log.get(mark) is not None:
            self.log.put(mark, b"", force=True)
            shared_vectors.discard(self.log, stream.project)
            if documents:
                self.log.rewrite(stream, documents)
            checkpoints.discard(self.log)
            shared_vectors.discard(self.log, stream.project)  # from servers that had not read the record yet
            self.log.remove([mark])
        return bool(documents)

    def _refetch(self, stream: Stream, folder: Folder, lock: StreamLock, reach: StreamPosition) -> CheckpointPosition:
        path, nothing = (
            checkpoints.path_of(str(self.folder), stream),
            CheckpointPosition(StreamPosition(0, reach.rewrites), log_id=self._log_id),
        )
        checkpoints.empty(folder, lock.file.descriptor, path)
        try:
            position = self._fill(stream, folder, lock, nothing)
        except LogMismatch:
            checkpoints.empty(folder, lock.file.descriptor, path)
            position = self._fill(stream, folder, lock, nothing, doubted=True)
        if not self._is_sound(stream, position):
            self._damaged_positions[stream] = position.reach
            self._mark(stream, self._survey(stream))
        return position

    def _fill(
        self, stream: Stream, folder: Folder, lock: StreamLock, position: CheckpointPosition, *, doubted: bool = False
    ) -> CheckpointPosition:
        coming = self.log.read(stream, max(position.reach.length - 1, 0))
        if position.reach.length:
            last = next(coming, None)
            if last is None or last.commit != position.last:
                raise LogMismatch
        path = checkpoints.path_of(str(self.folder), stream)
        filled = checkpoints.fill(folder, lock.file.descriptor, path, position, coming, doubted=doubted)
        self._verified.add(stream)
        return filled

    # writing to the log

    def _lock_of(self, stream: Stream) -> StreamLock:
        with self._guard:
            return self._writers.setdefault(stream, StreamLock())

    def _append_locked(self, stream: Stream, expected: Version, commit: Commit) -> Version | VersionMismatch:
        position, folder = self._position(stream) or self._synchronise(stream), self._known(stream)[0]
        is_next = position.version == expected and set(commit.parents) == set(expected.ids)
        if not is_next and folder.holds(Version.of([commit.head])):  # which lists the folder if it is not there
            return position.version
        if position.version != expected:
            return VersionMismatch(position.version)
        check_follows(stream.graph, expected, commit)
        began = monotonic()
        try:
            if self.log.append(stream, position.reach.length + 1, commit.id, commit.data, after=position.last):
                self.on_durable(monotonic() - began)
                return self._copy_commit(stream, position, commit)
        except ValueError:  # the log is shorter than the copy: another log has replaced it
            self._verified.discard(stream)
        now = self._update_copy(stream).version
        return now if folder.holds(Version.of([commit.head])) else VersionMismatch(now)

    def _copy_commit(self, stream: Stream, position: CheckpointPosition, commit: Commit) -> Version:
        """Add *commit*, which is durable in the log, to the copy, and return the version with it.

        If the copy cannot be changed now, the next read fetches the commit.
        """
        reach = StreamPosition(position.reach.length + 1, position.reach.rewrites)
        orders = (*position.orders, commit.id) if is_redaction_record(commit.data) else position.orders
        after = CheckpointPosition(reach, commit.id, advance(position.version, [commit]), orders, position.log_id)
        with suppress(JidomemError, OSError), self._lock_files(stream, self.wait) as (folder, lock):
            if self._position(stream) == position and folder.refresh() == position.version:
                with folder.changing(lock.file.descriptor, appended=commit):
                    checkpoints.put_copy(folder.path, file_name(commit.head), commit.data)
                self._seal_when_due(stream, folder)
                checkpoints.save(checkpoints.path_of(str(self.folder), stream), after)
        return after.version


def _intact(folder: Folder, surveyed: LogSurvey, *, with_end: bool = False) -> dict[int, Commit]:
    """Return the commits of *folder* that a log lacks, verified, by their numbers there, as `LogSurvey.fill` does."""
    logged, commits = {entry.head.id for entry in surveyed.entries.values()}, dict[str, Commit]()
    for head in folder.named(""):
        if head.id not in logged:
            with suppress(FormatError):
                commits[head.id] = parse(folder.data(head) or b"")
    candidates = (PackEntry(commit.head, commit.parents) for commit in commits.values())
    filled = surveyed.fill(candidates, with_end=with_end)
    return {number: commits[entry.head.id] for number, entry in filled.items()}


def _redacted(commit: Commit, leaves: Mapping[str, frozenset[str]]) -> Commit:
    with suppress(FormatError):  # a record cannot redact a commit's own description
        if removed := leaves.get(commit.id):
            return without(commit, removed | removed_leaves(commit))
    return commit
