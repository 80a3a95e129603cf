"""Checkpoints of a copy, with the shared root: packs and an index, so that a new server need not read every commit.

    checkpoints/newest.json       what the newest one is made of: each file, in pieces by their digests
    checkpoints/pieces/<digest>   the pieces, deflated; a file that did not change has those it had
    checkpoints/making.json       who makes one now, and until when nobody else does

A checkpoint is believed less than the log: its last commits are held against it, and every commit that is read against
its id. It counts no more once a stream is rewritten, and goes when something is redacted.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from time import time
from typing import Any

from jidomem.decoding import decode_json
from jidomem.here import settle
from jidomem.index.clones import FORM, Clones
from jidomem.journal.files import Stream
from jidomem.shared import copies
from jidomem.shared.copies import Kept, path_of
from jidomem.shared.log import File, Reach, SharedLog
from jidomem.shared.loose import gathered
from jidomem.version import Head, Version

NEWEST, MAKING, PIECES = "checkpoints/newest.json", "checkpoints/making.json", "checkpoints/pieces/"
#: What a checkpoint is, and which index it has: one of another form is not used.
_FORM = f"2 {FORM}"
PIECE = 16 << 20
#: Seconds for which who makes one is waited for after its last sign, and for which a piece stays that is named no more.
LEASE, GRACE = 120.0, 3600.0
#: Bytes of commits that a new server may have to read beyond a checkpoint: some six seconds.
FAR = 16 << 20
#: How many pieces are fetched at once.
_AT_ONCE = 4


def is_due(log: SharedLog, home: Path) -> bool:
    """Return whether the copy in *home* is that far beyond the newest checkpoint that a new one is worth making."""
    size, newest = _size(home), _newest(log)
    known = newest[0].get("size", 0) if newest is not None and _fits(log, newest[0]) else 0
    return size - known > max(FAR, size // 32)


def make(log: SharedLog, home: Path) -> bool:
    """Return whether the copy in *home*, with the newest snapshot of its index, is the newest checkpoint of *log* now.

    Nothing is done without a snapshot, or while somebody else makes one. What was uploaded goes again where the log is
    rewritten meanwhile.
    """
    with _lease(log) as lease:
        if lease is None:
            return False
        newest = _newest(log)
        said = newest[0] if newest else {"files": {}, "going": {}}
        pieces = {name.removeprefix(PIECES) for name in log.names(PIECES)}
        there = _named(said) & pieces
        if not lease.goes_on():
            return False
        log.remove([PIECES + digest for digest in pieces - there])  # of the dead
        with gathered(home, Clones(home / "index")) as (folder, streams):
            if not streams:
                return False
            came = list[str]()
            files = {name: _uploaded(log, path, there, came, lease) for name, path in _files(folder)}
        streams_said = {f"{stream.project}/{stream.name}": _said(kept) for stream, kept in streams.items()}
        going = {digest: since for digest, since in said["going"].items() if time() - since < GRACE}
        going |= {digest: time() for digest in _in(said["files"]) - _in(files) - going.keys()}
        made = {"form": _FORM, "size": _size(home), "streams": streams_said, "files": files, "going": going}
        data = (json.dumps(made, indent=1, sort_keys=True) + "\n").encode()
        if lease.goes_on() and _fits(log, made) and log.put(NEWEST, data, newest[1] if newest else None) is not None:
            if not _fits(log, made):  # rewritten as it was put: its files may show what was taken out
                discard(log)
                return False
            if lease.goes_on():
                log.remove([PIECES + digest for digest in there - _named(made)])
            return True
        if not _fits(log, made):  # else another has the turn, maybe with the same pieces, and sees to the dead
            newest = _newest(log)
            log.remove([PIECES + digest for digest in {*came} - (_named(newest[0]) if newest else set())])
        return False


def fetch(log: SharedLog, home: Path) -> bool:
    """Return whether *home*, in which there is no copy yet, has the newest checkpoint of *log* now.

    Every piece is held against its digest. Without one that may be used, or whole, nothing is changed.
    """
    if (home / "reach").exists():
        return False
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (home / "checkpoint.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        newest = _newest(log)
        if newest is None or (home / "reach").exists() or not _fits(log, newest[0]):
            return False
        return _brought(log, home, newest[0])


def _brought(log: SharedLog, home: Path, said: Mapping[str, Any]) -> bool:
    """Return whether *home* has now the checkpoint that is *said*."""
    draft = home / f"checkpoint-{token_hex(4)}"
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            jobs = [pool.submit(_fetched, log, draft / _inside(n), of) for n, of in said["files"].items()]
            is_whole = all(job.result() for job in jobs)
        if not is_whole or not _fits(log, said):
            return False
        return _moved(draft, home, _streams(said))
    except (OSError, ValueError, KeyError):  # no room, or no checkpoint: every commit is read then
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def discard(log: SharedLog) -> None:
    """Remove every checkpoint, and who makes one now is told by it to stop."""
    log.remove([NEWEST, MAKING, *log.names(PIECES)])


class _Lease:
    """The turn of who makes a checkpoint, which ends by itself where it is not renewed."""

    def __init__(self, log: SharedLog, tag: str) -> None:
        self._log = log
        self.tag: str | None = tag

    def goes_on(self) -> bool:
        """Return whether it is held still, and is from now on for as long again."""
        if self.tag is not None:
            self.tag = self._log.put(MAKING, _until(), self.tag)
        return self.tag is not None


@contextmanager
def _lease(log: SharedLog) -> Iterator[_Lease | None]:
    """Give the turn to make a checkpoint; None while another has it."""
    there = log.get(MAKING)
    tag = None if there is not None and _is_held(there) else log.put(MAKING, _until(), there.tag if there else None)
    lease = _Lease(log, tag) if tag is not None else None
    try:
        yield lease
    finally:
        if lease is not None and lease.goes_on():
            log.remove([MAKING])


def _until() -> bytes:
    return json.dumps({"until": time() + LEASE, "by": token_hex(8)}).encode()


def _is_held(file: File) -> bool:
    try:
        return float(decode_json(file.data)["until"]) > time()
    except (ValueError, KeyError, TypeError):
        return False


def _newest(log: SharedLog) -> tuple[dict[str, Any], str] | None:
    """Return what the newest checkpoint is made of, and its tag; None where there is none that this program reads."""
    file = log.get(NEWEST)
    if file is None:
        return None
    try:
        said = decode_json(file.data)
        if said["form"] == _FORM:
            _streams(said)
            return said, file.tag
    except (ValueError, KeyError, TypeError):
        pass
    return {"form": "", "streams": {}, "files": {}, "going": {}}, file.tag


def _fits(log: SharedLog, said: Mapping[str, Any]) -> bool:
    """Return whether the log goes on from what a checkpoint says, and nothing was redacted since."""
    streams = _streams(said)
    now = log.reach(list(streams))
    return bool(streams) and all(
        now[stream].rewrites == kept.reach.rewrites and now[stream].length >= kept.reach.length
        for stream, kept in streams.items()
    )


def _streams(said: Mapping[str, Any]) -> dict[Stream, Kept]:
    found = {}
    for name, of in said["streams"].items():
        heads = Version.of(Head(*head) for head in of["heads"])
        reach = Reach(of["length"], of["rewrites"])
        found[Stream(*name.split("/"))] = Kept(reach, of["last"], heads, life=of["life"])
    return found


def _said(kept: Kept) -> dict[str, Any]:
    heads = [(head.recorded_at, head.id, head.position) for head in kept.version.heads]
    reach = {"length": kept.reach.length, "rewrites": kept.reach.rewrites, "life": kept.life}
    return {**reach, "last": kept.last, "heads": heads}


def _in(files: Mapping[str, list[str]]) -> set[str]:
    return {digest for pieces in files.values() for digest in pieces}


def _named(said: Mapping[str, Any]) -> set[str]:
    return _in(said["files"]) | set(said["going"])


def _size(home: Path) -> int:
    """Return how many bytes the commits of a copy have."""
    return sum(path.stat().st_size for path in (home / "projects").glob("*/*/*.ttl"))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _uploaded(log: SharedLog, path: Path, there: set[str], came: list[str], lease: _Lease) -> list[str]:
    """Return the digests of the pieces of a file, all of which the log has once the lease was held throughout."""
    digests = []
    with path.open("rb") as file:
        while data := file.read(PIECE):
            digest = blake2b(data, digest_size=32).hexdigest()
            digests.append(digest)
            if digest not in there and digest not in came and lease.goes_on():
                log.put(PIECES + digest, zlib.compress(data, 1), force=True)
                came.append(digest)
    return digests


def _fetched(log: SharedLog, path: Path, digests: list[str]) -> bool:
    """Return whether a file is there, every piece of it with its digest."""
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
    """Return what a piece holds; None where it is damaged, or more than a piece."""
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(data, PIECE + 1)
    except zlib.error:
        return None
    return found if inflating.eof else None


def _inside(name: str) -> str:
    """Return a name of a checkpoint's file; raises ValueError for one that leads anywhere else."""
    parts = name.split("/")
    if parts[0] not in ("projects", "index") or not all(parts) or ".." in parts or "." in parts:
        raise ValueError(name)
    return name


def _moved(draft: Path, home: Path, streams: Mapping[Stream, Kept]) -> bool:
    """Put what was fetched in place: files first, what says how far they reach last."""
    snapshots = home / "index" / "snapshots"
    snapshots.mkdir(parents=True, exist_ok=True)
    for snapshot in sorted((draft / "index" / "snapshots").iterdir()):
        described = snapshot / "snapshot.json"
        said = decode_json(described.read_bytes())
        described.write_text(json.dumps({**said, "here": settle(home / "index")}, indent=1), "utf-8")
        snapshot.rename(snapshots / snapshot.name)
    for stream, kept in streams.items():
        target = home / "projects" / stream.project / stream.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            return False
        (draft / "projects" / stream.project / stream.name).rename(target)
        copies.save(path_of(str(home), stream), kept)
    return True
