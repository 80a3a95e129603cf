"""The checkpoints of a shared root, and its local copy: a new server need not read every commit.

    checkpoints/newest.json       the manifest of the newest checkpoint: each file, in pieces by digest
    checkpoints/pieces/<digest>   the pieces, deflated; an unchanged file keeps its pieces
    checkpoints/making.json       the lease of the server that makes a checkpoint

A checkpoint is trusted less than the log: its last commits are compared with the log, and each commit with its id. It
is void once a stream is rewritten, and deleted at a redaction. `fill` appends log entries to the local copy of a
stream; `gathered` links the files of a copy and of its newest index snapshot into a private folder.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from os.path import dirname
from pathlib import Path
from secrets import token_hex
from time import time
from typing import Any

from jidomem.base import disk
from jidomem.base.disk import INCOMING, create_local_marker, make_folders
from jidomem.base.files import file_lock
from jidomem.base.json_values import decode_json
from jidomem.errors import Failed, NotFound
from jidomem.extras.servers.log import File, LogEntry, SharedLog, StreamPosition
from jidomem.index.snapshots import FORM, Clones, Snapshot
from jidomem.journal.commit import FormatError, advance, file_name, is_pack, is_redaction_record
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.packs import PackEntry, unverified_entry, verified_entry, verify_file, write_pack
from jidomem.journal.rewrite import is_redacted
from jidomem.journal.stream import LOCK, UNLISTED, Folder, FolderSnapshot
from jidomem.journal.stream_files import each_file
from jidomem.records.intent import SHORT, CommitRef, Version

#: The folder of copies that had commits which their log has lost since.
CUT = "cut"
#: The number of entries that are written at a time, and make one pack.
CHUNK = 2_000
#: The size of the file of a position is a multiple of this.
_POSITION_BYTES = 512
#: The moment in the file name of a document that does not parse.
_NO_MOMENT = "00000000T000000.000000Z"


@dataclass(frozen=True, slots=True)
class CheckpointPosition:
    """The position of a copy in its log: its reach, its last commit and its version.

    *orders* are the redaction records among its commits that this machine has not yet seen carried out. *log_id* is the
    id of the log to which the position belongs.
    """

    reach: StreamPosition
    last: str = ""
    version: Version = Version()
    orders: tuple[str, ...] = ()
    log_id: str = ""

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> CheckpointPosition:
        """Return the position that `to_dict` wrote; raise KeyError, TypeError or ValueError for other values."""
        heads = Version.of(CommitRef(*head) for head in values["heads"])
        reach = StreamPosition(values["length"], values["rewrites"])
        return CheckpointPosition(reach, values["last"], heads, tuple(values.get("orders", ())), values["life"])

    def to_dict(self) -> dict[str, Any]:
        """Return the position as JSON values, without *orders*."""
        heads = [(head.recorded_at, head.id, head.position) for head in self.version.heads]
        reach = {"length": self.reach.length, "rewrites": self.reach.rewrites, "life": self.log_id}
        return {**reach, "last": self.last, "heads": heads}

    def is_level(self, reach: StreamPosition, log_id: str) -> bool:
        """Return whether the log *log_id* has the same reach and the same last commit, if it reports that.

        A replica that was behind and lost its end may have the same length again with another commit.
        """
        return (self.reach, self.log_id) == (reach, log_id) and reach.last in ("", self.last)

    def is_behind(self, reach: StreamPosition, log_id: str) -> bool:
        """Return whether the log *log_id* is longer and has not been rewritten since."""
        return (self.reach.rewrites, self.log_id) == (reach.rewrites, log_id) and self.reach.length < reach.length


class LogMismatch(Exception):
    """The log does not continue the copy: the copy is of another log."""


def path_of(home: str, stream: Stream) -> str:
    """Return the path of the file with the position of the copy of a stream in *home*."""
    return f"{home}/reach/{stream.project}.{stream.name}.json"


def load(path: str) -> CheckpointPosition | None:
    """Return the stored position of a copy; None if it cannot be read, in which case the copy is not used."""
    try:
        return _position(disk.read(path))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@lru_cache(maxsize=32)
def _position(data: bytes) -> CheckpointPosition:
    """Return the position in a file; raise ValueError for one that was read while it was overwritten."""
    values = decode_json(data)
    digest = values.pop("digest", None)  # absent in files of earlier versions, which overwrote none
    if digest not in (None, _digest(values)):
        raise ValueError("the digest is that of another position")
    return CheckpointPosition.from_dict(values)


def save(path: str, position: CheckpointPosition) -> None:
    """Store the position of a copy under the lock of its folder, not durably: a power failure may lose it.

    A file of the same size is overwritten, as ext4 writes out a file before it lets it replace another. A process that
    reads it meanwhile gets a wrong digest, and reads it again under the lock. Raise OSError.
    """
    values = {**position.to_dict(), "orders": [*position.orders]}
    text = json.dumps({**values, "digest": _digest(values)}).encode()
    data = text.ljust(-(-len(text) // _POSITION_BYTES) * _POSITION_BYTES)
    with suppress(FileNotFoundError):
        if disk.size(path) == len(data):
            descriptor = disk.open_file(path)
            try:
                disk.overwrite(descriptor, data)
            finally:
                disk.close(descriptor)
            return
    make_folders(dirname(path))
    _write(f"{path}.new", data)
    disk.rename(f"{path}.new", path)


def _digest(values: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


def put_copy(folder: str, name: str, data: bytes) -> None:
    """Write a file into a folder atomically but not durably, because it is a copy. Raise OSError."""
    _write(f"{folder}/{INCOMING}", data)
    disk.rename(f"{folder}/{INCOMING}", f"{folder}/{name}")


def empty(folder: Folder, descriptor: int, path: str) -> None:
    """Empty a copy under the lock of its folder. Its position is removed first, so that no process uses the copy."""
    with suppress(FileNotFoundError):
        disk.unlink(path)
    with _changing_folder(folder, descriptor):
        for name in [name for name in disk.names(folder.path) if name.endswith(".ttl")]:
            with suppress(FileNotFoundError):
                disk.unlink(f"{folder.path}/{name}")
        folder.forget()


def retained_roots(home: str, stream: Stream) -> list[Path]:
    """Return the roots in which `retain` linked the copy of a stream, the oldest first."""
    return sorted(Path(home, CUT).glob(f"{stream.project}.{stream.name}.[0-9]*"))


def retain(home: str, stream: Stream) -> None:
    """Link the files of a copy and its position into a root of their own, as its log lost commits. Raise OSError."""
    target = Path(home, CUT, f"{stream.project}.{stream.name}.{len(retained_roots(home, stream)) + 1:03}")
    draft = target.with_name(f"new.{target.name}")
    shutil.rmtree(draft, ignore_errors=True)  # of a killed process
    part, position = Path("projects", stream.project, stream.name), Path(path_of("", stream).lstrip("/"))
    for name in [position, *(part / each for each in each_file(str(home / part)))]:
        _link(home / name, draft / name)
    draft.rename(target)


def forget_cut(home: str, stream: Stream) -> None:
    """Remove what `retain` linked: a redaction does not reach it."""
    for path in retained_roots(home, stream):
        shutil.rmtree(path, ignore_errors=True)


def fill(
    folder: Folder,
    descriptor: int,
    path: str,
    position: CheckpointPosition,
    entries: Iterable[LogEntry],
    *,
    doubted: bool,
) -> CheckpointPosition:
    """Append *entries* to the copy at *position*, under the lock of its folder, and return the new position.

    The position is saved after the files of each chunk. Raise LogMismatch if the parent of an entry is missing, unless
    the copy is *doubted*, that is, fetched a second time: then the commit is missing in the log itself.
    """
    coming = iter(entries)
    while chunk := list(islice(coming, CHUNK)):
        outlines = [_outline(entry) for entry in chunk]
        sound = [each for each in outlines if each is not None]
        known = {each.head.id for each in sound}.union(position.version.ids)
        if not doubted and not all(_follows(folder, each, known) for each in sound):
            raise LogMismatch
        with _changing_folder(folder, descriptor):
            _write_chunk(folder, chunk, outlines)
        version = advance(position.version, sound)
        orders = (*position.orders, *(entry.commit for entry in chunk if is_redaction_record(entry.document)))
        reach = replace(position.reach, length=chunk[-1].number)
        position = CheckpointPosition(reach, chunk[-1].commit, version, orders, position.log_id)
        save(path, position)
    return position


def _outline(entry: LogEntry) -> PackEntry | None:
    try:
        linked = unverified_entry(entry.document)
    except FormatError:
        return None
    return linked if linked.head.id == entry.commit else None


def _follows(folder: Folder, linked: PackEntry, known: set[str]) -> bool:
    return all(parent in known or folder.contents.head(parent) is not None for parent in linked.parents)


def _write_chunk(folder: Folder, chunk: Sequence[LogEntry], outlines: Sequence[PackEntry | None]) -> None:
    ordered = list[tuple[PackEntry, bool, bytes]]()
    for entry, linked in zip(chunk, outlines, strict=True):
        if linked is None:
            put_copy(folder.path, f"{_NO_MOMENT}-{entry.commit[:SHORT]}.ttl", entry.document)
        else:
            ordered.append((linked, is_redacted(entry.document), entry.document))
    ordered.sort(key=lambda item: item[0].head)
    is_whole = len(chunk) == CHUNK
    sound = {item[0].head.id: item for item in ordered if is_whole and item[0] == verified_entry(item[2], folder.graph)}
    if sound:
        name, data = write_pack(list(sound.values()))
        _write(f"{folder.path}/{INCOMING}", data)
        verify_file(f"{folder.path}/{INCOMING}", name, data)
        disk.rename(f"{folder.path}/{INCOMING}", f"{folder.path}/{name}")
    for linked, redacted, data in ordered:
        if linked.head.id not in sound:
            put_copy(folder.path, file_name(linked.head, redacted=redacted), data)


@contextmanager
def _changing_folder(folder: Folder, descriptor: int) -> Iterator[None]:
    """Change the files of a folder under its lock; then write the new state of the folder into the lock file.

    The state of a damaged folder is not written: a process that trusts it would not read the files, nor report them.
    """
    disk.overwrite(descriptor, replace(_undamaged(folder), mtime=-1).dump())  # invalid until the change is complete
    yield
    folder.refresh()
    disk.overwrite(descriptor, _undamaged(folder).dump())


def _undamaged(folder: Folder) -> FolderSnapshot:
    return UNLISTED if folder.is_damaged else folder.snapshot


@contextmanager
def copying(home: str, name: str) -> Iterator[None]:
    """Turn an OSError into Failed: only the local copy of the log *name* is affected."""
    try:
        yield
    except OSError as error:
        raise Failed(
            f"{error.filename or home}: the copy of {name} on this machine could not be written: {error.strerror}",
            hint=f"free some space there, or choose another folder: export JIDOMEM_HOME=FOLDER (it is in {home} now)",
            code="write_failed",
        ) from error


def _write(path: str, data: bytes) -> None:
    descriptor = disk.create(path)
    try:
        disk.write(descriptor, data)
    finally:
        disk.close(descriptor)


@contextmanager
def checkpoint_folder(home: Path, clones: Clones) -> Iterator[tuple[Path, Mapping[Stream, CheckpointPosition]]]:
    """Yield a folder with links to the streams of *home*, loose files as one pack, and its newest index snapshot.

    The second value is the position of each stream in it: empty without a snapshot, or if a stream of it is missing
    here.
    """
    folder = home / f"gathered-{token_hex(4)}"
    try:
        yield folder, _gather(home, clones, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _gather(home: Path, clones: Clones, folder: Path) -> Mapping[Stream, CheckpointPosition]:
    snapshots = clones.snapshots()
    if not snapshots:
        return {}
    snapshot = snapshots[0]
    for name in ("snapshot.json", *(f"store/{file}" for file in snapshot.files)):
        _link(snapshot.path / name, folder / "index" / "snapshots" / snapshot.path.name / name)
    positions = {}
    for path in sorted((home / "reach").glob("*.json")):
        stream = Stream(*path.stem.split("."))
        if (position := _link_stream(home, stream, folder)) is not None:
            positions[stream] = position
    return positions if _matches_streams(snapshot, folder, {stream.graph: stream for stream in positions}) else {}


def _matches_streams(snapshot: Snapshot, folder: Path, streams: Mapping[str, Stream]) -> bool:
    """Return whether a snapshot is of the streams in *folder*, with no redaction after it, whose text it would have."""
    journal = FileJournal(folder)
    try:
        return not any(
            is_redaction_record(commit.data)
            for graph, mark in snapshot.marks.items()
            for commit in journal.read(streams[graph], after=mark.version)
        )
    except (KeyError, NotFound):
        return False


def _link_stream(home: Path, stream: Stream, folder: Path) -> CheckpointPosition | None:
    """Return the position of the linked files of a stream; None if it is not known.

    It is not known during a redaction or if a loose file is damaged: a checkpoint must not pass these on.
    """
    source, target = (each / "projects" / stream.project / stream.name for each in (home, folder))
    with file_lock(source / LOCK):  # under which the copy of a stream is changed
        position = load(path_of(str(home), stream))
        names = sorted(each_file(str(source)))
        for name in filter(is_pack, names):
            _link(source / name, target / name)
        loose = [(name, (source / name).read_bytes()) for name in names if not is_pack(name)]
    if position is None or position.orders or not _write_loose_pack(target, stream.graph, loose):
        return None
    return position


def _write_loose_pack(target: Path, graph: str, loose: Sequence[tuple[str, bytes]]) -> bool:
    """Return whether commit files, given by name and document, are sound; then write one pack of them to *target*."""
    sealed = list[tuple[PackEntry, bool, bytes]]()
    for name, data in loose:
        entry, redacted = verified_entry(data, graph), ".redacted." in name
        if entry is None or file_name(entry.head, redacted=redacted) != name:
            return False
        sealed.append((entry, redacted, data))
    if sealed:
        name, data = write_pack(sealed)
        target.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
        verify_file(str(target / name), name, data)
    return True


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target)


NEWEST, MAKING, PIECES = "checkpoints/newest.json", "checkpoints/making.json", "checkpoints/pieces/"
#: The format of a checkpoint and of its index; a checkpoint of another format is not used.
_FORM = f"2 {FORM}"
PIECE = 16 << 20
#: Seconds until a lease expires, and for which a piece stays after the manifest stopped naming it.
LEASE, GRACE = 120.0, 3600.0
#: Bytes of commits that a new server may have to read beyond a checkpoint: some six seconds.
FAR = 16 << 20
#: The number of pieces that are fetched concurrently.
_CONCURRENCY = 4


def is_due(log: SharedLog, home: Path) -> bool:
    """Return whether the copy in *home* is so far beyond the newest checkpoint that a new one is worthwhile."""
    size, newest = _size(home), _newest(log)
    known = newest[0].get("size", 0) if newest is not None and _fits(log, newest[0]) else 0
    return size - known > max(FAR, size // 32)


def make(log: SharedLog, home: Path) -> bool:
    """Return whether the newest checkpoint of *log* is now that of the copy in *home* with its newest index snapshot.

    Does nothing without a snapshot, or while another server makes a checkpoint. If the log is rewritten meanwhile, the
    uploaded pieces are removed again.
    """
    with _lease(log) as lease:
        if lease is None:
            return False
        newest = _newest(log)
        previous = newest[0] if newest else {"files": {}, "going": {}}
        pieces = {name.removeprefix(PIECES) for name in log.names(PIECES)}
        present = _named_digests(previous) & pieces
        if not lease.renew():
            return False
        log.remove([PIECES + digest for digest in pieces - present])  # left by servers that were killed
        with checkpoint_folder(home, Clones(home / "index")) as (folder, streams):
            if not streams:
                return False
            uploaded = list[str]()
            files = {name: _upload(log, path, present, uploaded, lease) for name, path in _files(folder)}
        positions = {f"{stream.project}/{stream.name}": position.to_dict() for stream, position in streams.items()}
        unnamed = {digest: since for digest, since in previous["going"].items() if time() - since < GRACE}
        unnamed |= {digest: time() for digest in _digests(previous["files"]) - _digests(files) - unnamed.keys()}
        manifest = {"form": _FORM, "size": _size(home), "streams": positions, "files": files, "going": unnamed}
        data = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
        if lease.renew() and _fits(log, manifest) and log.put(NEWEST, data, newest[1] if newest else None) is not None:
            if not _fits(log, manifest):  # rewritten during the put: its files may have the removed text
                discard(log)
                return False
            if lease.renew():
                log.remove([PIECES + digest for digest in present - _named_digests(manifest)])
            return True
        if not _fits(log, manifest):  # another server has the lease, maybe with the same pieces: it removes the rest
            newest = _newest(log)
            log.remove([PIECES + digest for digest in {*uploaded} - (_named_digests(newest[0]) if newest else set())])
        return False


def fetch(log: SharedLog, home: Path) -> bool:
    """Return whether the newest checkpoint of *log* was fetched into *home*, which has no copy yet.

    Every piece is compared with its digest. Nothing is changed if there is no valid and complete checkpoint.
    """
    if (home / "reach").exists():
        return False
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file_lock(home / "checkpoint.lock"):
        newest = _newest(log)
        if newest is None or (home / "reach").exists() or not _fits(log, newest[0]):
            return False
        return _fetch_checkpoint(log, home, newest[0])


def _fetch_checkpoint(log: SharedLog, home: Path, manifest: Mapping[str, Any]) -> bool:
    draft = home / f"checkpoint-{token_hex(4)}"
    try:
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            jobs = [pool.submit(_fetch_file, log, draft / _inside(n), of) for n, of in manifest["files"].items()]
            is_whole = all(job.result() for job in jobs)
        if not is_whole or not _fits(log, manifest):
            return False
        return _install(draft, home, _streams(manifest))
    except (OSError, ValueError, KeyError):  # a full disk or an unreadable checkpoint: every commit is read instead
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def discard(log: SharedLog) -> None:
    """Remove every checkpoint; a server that is making one loses its lease."""
    log.remove([NEWEST, MAKING, *log.names(PIECES)])


class _Lease:
    """The lease of a server that makes a checkpoint; it expires unless it is renewed."""

    def __init__(self, log: SharedLog, tag: str) -> None:
        self._log = log
        self.tag: str | None = tag

    def renew(self) -> bool:
        """Renew the lease and return True; return False if it was lost."""
        if self.tag is not None:
            self.tag = self._log.put(MAKING, _until(), self.tag)
        return self.tag is not None


@contextmanager
def _lease(log: SharedLog) -> Iterator[_Lease | None]:
    file = log.get(MAKING)
    tag = None if file is not None and _is_leased(file) else log.put(MAKING, _until(), file.tag if file else None)
    lease = _Lease(log, tag) if tag is not None else None
    try:
        yield lease
    finally:
        if lease is not None and lease.renew():
            log.remove([MAKING])


def _until() -> bytes:
    return json.dumps({"until": time() + LEASE, "by": token_hex(8)}).encode()


def _is_leased(file: File) -> bool:
    try:
        return float(decode_json(file.data)["until"]) > time()
    except (ValueError, KeyError, TypeError):
        return False


def _newest(log: SharedLog) -> tuple[dict[str, Any], str] | None:
    """Return the manifest of the newest checkpoint and its tag: an empty manifest for another format, None for none."""
    file = log.get(NEWEST)
    if file is None:
        return None
    try:
        manifest = decode_json(file.data)
        if manifest["form"] == _FORM:
            _streams(manifest)
            return manifest, file.tag
    except (ValueError, KeyError, TypeError):
        pass
    return {"form": "", "streams": {}, "files": {}, "going": {}}, file.tag


def _fits(log: SharedLog, manifest: Mapping[str, Any]) -> bool:
    """Return whether the log continues the streams of a checkpoint, and none was rewritten since."""
    streams = _streams(manifest)
    now = log.positions(list(streams))
    return bool(streams) and all(
        now[stream].rewrites == position.reach.rewrites and now[stream].length >= position.reach.length
        for stream, position in streams.items()
    )


def _streams(manifest: Mapping[str, Any]) -> dict[Stream, CheckpointPosition]:
    streams = manifest["streams"].items()
    return {Stream(*name.split("/")): CheckpointPosition.from_dict(values) for name, values in streams}


def _digests(files: Mapping[str, list[str]]) -> set[str]:
    return {digest for pieces in files.values() for digest in pieces}


def _named_digests(manifest: Mapping[str, Any]) -> set[str]:
    return _digests(manifest["files"]) | set(manifest["going"])


def _size(home: Path) -> int:
    return sum(path.stat().st_size for path in (home / "projects").glob("*/*/*.ttl"))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _upload(log: SharedLog, path: Path, present: set[str], uploaded: list[str], lease: _Lease) -> list[str]:
    """Upload the missing pieces of a file while the lease is valid; return the digests of all its pieces."""
    digests = []
    with path.open("rb") as file:
        while data := file.read(PIECE):
            digest = blake2b(data, digest_size=32).hexdigest()
            digests.append(digest)
            if digest not in present and digest not in uploaded and lease.renew():
                log.put(PIECES + digest, zlib.compress(data, 1), force=True)
                uploaded.append(digest)
    return digests


def _fetch_file(log: SharedLog, path: Path, digests: list[str]) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        for digest in digests:
            piece = log.get(PIECES + digest)
            data = _inflated(piece.data) if piece is not None else None
            if data is None or blake2b(data, digest_size=32).hexdigest() != digest:
                return False
            file.write(data)
    return True


def _inflated(data: bytes) -> bytes | None:
    """Return the inflated data of a piece; None if it is damaged or larger than a piece."""
    inflating = zlib.decompressobj()
    try:
        document = inflating.decompress(data, PIECE + 1)
    except zlib.error:
        return None
    return document if inflating.eof else None


def _inside(name: str) -> str:
    parts = name.split("/")
    if parts[0] not in ("projects", "index") or not all(parts) or ".." in parts or "." in parts:
        raise ValueError(name)
    return name


def _install(draft: Path, home: Path, streams: Mapping[Stream, CheckpointPosition]) -> bool:
    snapshots = home / "index" / "snapshots"
    snapshots.mkdir(parents=True, exist_ok=True)
    for snapshot in sorted((draft / "index" / "snapshots").iterdir()):
        described = snapshot / "snapshot.json"
        values = decode_json(described.read_bytes())
        described.write_text(json.dumps({**values, "here": create_local_marker(home / "index")}, indent=1), "utf-8")
        snapshot.rename(snapshots / snapshot.name)
    for stream, position in streams.items():
        target = home / "projects" / stream.project / stream.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            return False
        (draft / "projects" / stream.project / stream.name).rename(target)
        save(path_of(str(home), stream), position)
    return True
