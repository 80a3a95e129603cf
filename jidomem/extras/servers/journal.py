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
from time import monotonic

from jidomem.base import disk
from jidomem.base.disk import INCOMING, flush_above, make_folders, move, prepare, writing
from jidomem.errors import InvalidRequest, JidomemError, JournalDamaged
from jidomem.extras.servers import addresses, checkpoints, shared_vectors
from jidomem.extras.servers.checkpoints import CheckpointPosition, LogMismatch
from jidomem.extras.servers.log import LogEntry, Reach, SharedLog, SingleFlight
from jidomem.journal.commit import Commit, advance, file_name, is_redaction_record
from jidomem.journal.journal import NAMES, FileJournal, Stream, StreamLock, VersionMismatch, check_follows
from jidomem.journal.packs import PackEntry, prepare_pack, verified_entry, write_pack
from jidomem.journal.rewrite import BYTES, COMMITS, SEALING, pending_redactions
from jidomem.journal.stream import Folder
from jidomem.records.intent import CommitRef, Version


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


class MirroredJournal(FileJournal):
    """The streams of one log, copied to a folder that any number of processes of this machine share.

    Each read gets the reach of the stream from the log and updates the copy first. The log is authoritative: a copy
    that is damaged, cut short or does not continue as the log does is deleted and fetched again.
    """

    def __init__(self, log: SharedLog, home: Path, *, wait: float = 10.0) -> None:
        """Read and write *log*, with its copy in *home*; wait up to *wait* seconds for the lock."""
        super().__init__(home, wait=wait)
        self.log = log
        self._writers: dict[Stream, StreamLock] = {}
        self._verified: set[Stream] = set()  # streams whose copy this process has compared with the log
        self._damaged_reaches: dict[Stream, Reach] = {}  # streams whose log, and so their copy, is damaged
        self._log_damage: dict[Stream, JournalDamaged] = {}  # found by `reread`, while the copy is intact
        self._reach_requests = SingleFlight(self._look)
        self._local = threading.local()
        self._life = ""
        #: The tag of the file of the root (configuration, terms and shapes) at the last request.
        self.rules: str | None = None

    @contextmanager
    def asking(self, streams: Sequence[Stream]) -> Iterator[None]:
        """Get the reach of *streams* in one request, and use it for all reads of this thread inside the block."""
        before = getattr(self._local, "reaches", {})
        self._local.reaches = {**before, **self._reaches(list(streams))}
        try:
            yield
        finally:
            self._local.reaches = before

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
        if stream not in self._verified or self._known(stream)[0].is_damaged:
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
        known = self._log_damage.get(stream)
        if not after and (found := self._find_log_damage(stream)):
            self._log_damage[stream] = found
        elif not after:
            self._log_damage.pop(stream, None)
        stems, is_new = super().reread(stream, after, count)
        return stems, is_new or (known is None and stream in self._log_damage)

    def verify(self, stream: Stream, seen: Callable[[Commit], object] | None = None) -> tuple[JournalDamaged, ...]:
        """Return the damage of a stream: reads every byte again from the log, and compares the copy with it."""
        self._synchronise(stream)
        folder, ids, missing = self._known(stream)[0], set[str](), None
        for number, entry in enumerate(self.log.read(stream), 1):
            missing = missing or self._missing(stream, number, entry)
            ids.add(entry.commit)
            head = checkpoints.commit_ref(entry)
            if head is not None and folder.data(head) != entry.document:
                self._update_copy(stream, from_scratch=True)
        folder.look()
        if any(head.id not in ids for head in folder.named("")):
            self._update_copy(stream, from_scratch=True)
        damage = super().verify(stream, seen)
        if missing and not damage:  # no later entry names it as its parent
            self._log_damage[stream] = missing
        return damage or self._damage_beside_copy(stream)

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
            f"{which} cannot be quarantined: this is a copy, and no file is removed from {self.log.name}",
            hint=_RESTORE,
        )

    def _damage_beside_copy(self, stream: Stream) -> tuple[JournalDamaged, ...]:
        return (self._log_damage[stream],) if stream in self._log_damage else ()

    def _find_log_damage(self, stream: Stream) -> JournalDamaged | None:
        """Return the first damage of a stream in the log: an entry that is missing or does not fit its id."""
        try:
            for number, entry in enumerate(self.log.read(stream), 1):
                linked, missing = verified_entry(entry.document, stream.graph), self._missing(stream, number, entry)
                if missing is not None or linked is None or linked.head.id != entry.commit:
                    return missing or self._damaged_entry(stream, number, "is not the commit of its id")
        except JournalDamaged as damage:
            return damage
        return None

    def _missing(self, stream: Stream, number: int, entry: LogEntry) -> JournalDamaged | None:
        """Return the damage if the log has no entry *number*, and *entry* comes next."""
        return self._damaged_entry(stream, number, "is missing") if entry.number != number else None

    def _damaged_entry(self, stream: Stream, number: int, problem: str) -> JournalDamaged:
        path = f"{self.log.name}: entry {number} of {stream.project}/{stream.name}"
        return JournalDamaged(f"this entry {problem}", path=path, hint=f"{_RESTORE}, and restart this server")

    def _explain(self, stream: Stream, damage: tuple[JournalDamaged, ...]) -> tuple[JournalDamaged, ...]:
        """Return *damage* of the copy, which is that of the log, with the repair of the log."""
        for each in damage:
            each.hint = _RESTORE
        return damage

    # the update of the copy

    def _reaches(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        self._check_open()
        try:
            return self._reach_requests.of(streams)
        except JidomemError:
            self._verified.clear()  # another store may answer next time
            raise

    def _look(self, streams: list[Stream]) -> Mapping[Stream, Reach]:
        log_state = self.log.look(streams, addresses.NAME)
        self._life, self.rules = log_state.life, log_state.tag
        return log_state.reaches

    def _reach(self, stream: Stream) -> Reach:
        reaches: Mapping[Stream, Reach] = getattr(self._local, "reaches", {})
        return reaches[stream] if stream in reaches else self._reaches([stream])[stream]

    def _position(self, stream: Stream) -> CheckpointPosition | None:
        return checkpoints.load(checkpoints.path_of(str(self.folder), stream))

    def _synchronise(self, stream: Stream) -> CheckpointPosition:
        reach, position = self._reach(stream), self._position(stream)
        if position is None and not reach.length and not self._known(stream)[0].look().heads:
            self._verified.add(stream)
            return CheckpointPosition(reach)
        is_level = position is not None and position.is_level(reach, self._life) and not position.orders
        if position is not None and is_level and stream in self._verified and self._is_sound(stream, position):
            return position
        return self._update_copy(stream)

    def _is_sound(self, stream: Stream, position: CheckpointPosition) -> bool:
        folder = self._known(stream)[0]
        is_whole = folder.look() == position.version and not folder.is_damaged
        return is_whole or self._damaged_reaches.get(stream) == position.reach

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
        reach = self._reaches([stream])[stream]
        if stream in (reaches := getattr(self._local, "reaches", {})):
            reaches[stream] = reach
        if position and (position.is_level(reach, self._life) or position.is_behind(reach, self._life)):
            with suppress(LogMismatch):
                position = self._fill(stream, folder, lock, position)
                if self._is_sound(stream, position):
                    return position
        return self._refetch(stream, folder, lock, reach)

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

    def _refetch(self, stream: Stream, folder: Folder, lock: StreamLock, reach: Reach) -> CheckpointPosition:
        path, nothing = (
            checkpoints.path_of(str(self.folder), stream),
            CheckpointPosition(Reach(0, reach.rewrites), life=self._life),
        )
        checkpoints.empty(folder, lock.file.descriptor, path)
        self._log_damage.pop(stream, None)  # the copy gets the same damage
        try:
            position = self._fill(stream, folder, lock, nothing)
        except LogMismatch:
            checkpoints.empty(folder, lock.file.descriptor, path)
            position = self._fill(stream, folder, lock, nothing, doubted=True)
        if not self._is_sound(stream, position):
            self._damaged_reaches[stream] = position.reach
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
        reach = Reach(position.reach.length + 1, position.reach.rewrites)
        orders = (*position.orders, commit.id) if is_redaction_record(commit.data) else position.orders
        after = CheckpointPosition(reach, commit.id, advance(position.version, [commit]), orders, position.life)
        with suppress(JidomemError, OSError), self._lock_files(stream, self.wait) as (folder, lock):
            if self._position(stream) == position and folder.look() == position.version:
                with folder.changing(lock.file.descriptor, appended=commit):
                    checkpoints.put_copy(folder.path, file_name(commit.head), commit.data)
                self._seal_when_due(stream, folder)
                checkpoints.save(checkpoints.path_of(str(self.folder), stream), after)
        return after.version
