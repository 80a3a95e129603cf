"""The ends of a transfer: a root in a folder or a shared log, and its backup as one tar file.

A commit is copied to the target once it is verified. The manifest of a backup has the digest of every file.
"""

from __future__ import annotations

import json
import os
import stat
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

from jidomem.base.disk import LARGEST, flush, flush_above, make_folders, move, prepare, writing
from jidomem.base.json_values import decode_json
from jidomem.errors import Busy, Failed, InvalidRequest, JournalDamaged
from jidomem.extras.servers import addresses, checkpoints, shared_vectors
from jidomem.extras.servers.journal import fill
from jidomem.extras.servers.log import Chain, SharedLog, StreamExtent, digest
from jidomem.journal.commit import ASIDE, Commit, FormatError, is_redaction_record, parse, short_id
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.rewrite import removed_leaves
from jidomem.journal.stream_files import set_aside
from jidomem.runtime.location import create_files

MANIFEST = "manifest.json"
#: The mode of a root whose source has none, or an unknown one.
PRIVATE = 0o700
FORM = "jidomem backup 1"
#: The maximum size of a manifest: it has a line for each file, and a million memories are some hundred files.
_MAX_MANIFEST_BYTES = 64 << 20
_CHUNK = 1 << 20


def pack(folder: Path, file: Path, facts: Mapping[str, Any]) -> str:
    """Write all files of *folder* and a manifest with *facts* to *file*; return the digest of the manifest.

    The same folder gives the same bytes. The file is written durably and atomically; its draft is beside *folder*, on
    the file system of *file*. Raises Failed if it exists already or cannot be written.
    """
    draft = folder.with_name("draft")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as target:
            manifest = _packed(folder, target, facts)
            target.flush()
            os.fsync(target.fileno())
        os.link(draft, file)
        flush(file.absolute().parent)
    except FileExistsError as error:
        raise Failed(f"{file} exists already", hint="name another file", code="write_failed") from error
    except OSError as error:
        hint = "free some space there, or name another file"
        raise Failed(f"{error.filename or file}: {error.strerror}", hint=hint, code="write_failed") from error
    return blake2b(manifest, digest_size=32).hexdigest()


def unpack(file: Path, folder: Path) -> Mapping[str, Any]:
    """Extract *file* into the empty *folder*, verify the digest of each file, and return the manifest.

    Raises InvalidRequest for a file that is no backup, and Failed for one that was changed or cut short.
    """
    try:
        with file.open("rb") as source, tarfile.open(fileobj=source, mode="r:") as tar:
            manifest = _manifest(tar, file)
            remaining = dict(manifest["files"])
            for member in tar:
                if member.name != MANIFEST:
                    _extract(tar, member, folder, remaining, file)
    except (tarfile.TarError, EOFError) as error:
        raise _changed(file, str(error)) from error
    except OSError as error:
        hint = "name a file this user may read, and free space at the target"
        raise Failed(f"{error.filename or file}: {error.strerror}", hint=hint) from error
    if remaining:
        raise _changed(file, f"{min(remaining)} is not in it")
    return manifest


def _packed(folder: Path, target: BinaryIO, facts: Mapping[str, Any]) -> bytes:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    files = {name: (path.stat().st_size, archive_digest(path)) for name, path in names.items()}
    manifest = (json.dumps({"form": FORM, **facts, "files": files}, indent=1, sort_keys=True) + "\n").encode()
    with tarfile.open(fileobj=target, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_member(MANIFEST, len(manifest)), BytesIO(manifest))
        for name, path in names.items():
            with path.open("rb") as source:
                tar.addfile(_member(name, files[name][0]), source)
    return manifest


def archive_digest(path: Path) -> str:
    """Return the BLAKE2b digest of a file."""
    hashed = blake2b(digest_size=32)
    with path.open("rb") as source:
        for chunk in _chunks(source):
            hashed.update(chunk)
    return hashed.hexdigest()


def _member(name: str, size: int) -> tarfile.TarInfo:
    """Return the header of a file in the archive, without time and owner."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def _manifest(tar: tarfile.TarFile, file: Path) -> Mapping[str, Any]:
    first = tar.next()
    file_ = tar.extractfile(first) if first is not None and first.isreg() and first.name == MANIFEST else None
    try:
        manifest = decode_json(file_.read(_MAX_MANIFEST_BYTES)) if file_ is not None else {}
        files = {_inside(name): (int(size), str(digest)) for name, (size, digest) in manifest["files"].items()}
        if manifest["form"] == FORM:
            return {**manifest, "files": files}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise InvalidRequest(f"{file} is not a {FORM!r}", hint="name a file that jidomem root backup wrote")


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or not path.parts:
        raise ValueError(name)
    return name


def _extract(
    tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, remaining: dict[str, tuple[int, str]], file: Path
) -> None:
    """Write one file of the archive and remove it from *remaining*; raises Failed unless it has the recorded digest."""
    source = tar.extractfile(member) if member.isreg() and member.name in remaining else None
    if source is None:
        raise _changed(file, f"{member.name} does not belong in it")
    size, expected = remaining.pop(member.name)
    hashed, target = blake2b(digest_size=32), folder / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("xb") as written:
        for chunk in _chunks(source):
            hashed.update(chunk)
            written.write(chunk)
        if (written.tell(), hashed.hexdigest()) != (size, expected):
            raise _changed(file, f"{member.name} does not match its digest")


def _chunks(source: Any) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _changed(file: Path, what: str) -> Failed:
    return Failed(f"{file} was changed or cut short: {what}; nothing was restored", hint="use another copy of it")


#: The files of a root beside its journal and its overlay.
_OF_GIT = (".gitignore", ".gitattributes")
FILES = ("config.toml", "baseline.toml", *_OF_GIT)
#: Commits that are appended at once, if the log supports it.
_AT_ONCE = 500


@runtime_checkable
class BatchLog(Protocol):
    """A log that appends many entries in one step."""

    def append_many(self, stream: Stream, number: int, entries: Sequence[tuple[str, bytes]]) -> bool:
        """Return True once all of *entries*, ids with documents, are durable from *number* on, or False without any."""


class FolderEnd:
    """A root in a folder, which need not exist; it must have no other writer while it is filled."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._journal = FileJournal(self.root)

    @property
    def name(self) -> str:
        """Return the path of the folder."""
        return str(self.root)

    @property
    def mode(self) -> int:
        """Return the mode of the folder, which decides who may read the root."""
        return stat.S_IMODE(self.root.stat().st_mode) & 0o2777

    def make(self, mode: int) -> None:
        """Make the folder with *mode* and the files for git if it is missing; one that exists keeps its own."""
        if self.root.is_dir():
            return
        with writing(str(self.root)):
            self.root.parent.mkdir(parents=True, exist_ok=True)
            self.root.mkdir(PRIVATE)
            self.root.chmod(mode)
            create_files(self.root, None)

    def streams(self) -> list[Stream]:
        """Return the streams that have commits, sorted."""
        return self._journal.streams()

    def mark(self, stream: Stream) -> Any:
        """Return the version of a stream."""
        return self._journal.head(stream)

    def is_rewritten(self, stream: Stream, mark: Any) -> bool:
        """Return whether a commit after the version *mark* is a redaction record."""
        if self._journal.head(stream) == mark:
            return False
        return any(is_redaction_record(commit.data) for commit in self._journal.read(stream, after=mark))

    def commits(self, stream: Stream) -> Iterator[Commit]:
        """Yield the commits of a stream, by time and id; raises JournalDamaged."""
        missed = set[str]()
        for commit in self._journal.read(stream, missed=missed):
            if missed:
                break
            yield commit
        for damage in self._journal.damage(stream):
            raise damage
        if missed:
            raise JournalDamaged("it could not be read", path=min(missed))

    def verified_chain(self, stream: Stream) -> Chain:
        """Return the commits of a stream, after its files were verified as `jidomem journal verify` does."""
        self._journal = FileJournal(self.root)  # a new one, so that nothing cached is trusted
        damage = self._journal.verify(stream)
        if damage:
            raise damage[0]
        chain = Chain(str(self._journal.path(stream)), self.set_aside(stream))
        for commit in self.commits(stream):
            chain.add(commit)
        return chain

    def set_aside(self, stream: Stream) -> frozenset[str]:
        """Return the short ids in the names of quarantined files."""
        names = set_aside(str(self._journal.path(stream)))
        return frozenset(short_id(name.removesuffix(ASIDE)) or "" for name in names)

    def add(self, stream: Stream, commits: Iterable[Commit]) -> None:
        """Store *commits* as packs, and the rest as single files; only as single files if git may track them."""
        fill(str(self._journal.path(stream)), commits, packed=not self._journal.is_tracked)
        self._journal = FileJournal(self.root)

    def redact(self, stream: Stream, commits: Collection[Commit]) -> None:
        """Redact in every file the leaves that *commits* no longer have."""
        with self._journal.redacting(stream, {commit.id: removed_leaves(commit) for commit in commits}):
            pass

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the configuration, the overlay and the quarantined files; links are not followed."""
        paths = [self.root / name for name in FILES]
        paths += addresses.overlay_files(self.root)
        for stream in self.streams():
            folder = self._journal.path(stream)
            paths += [folder / name for name in set_aside(str(folder))]
        for path in sorted(paths):
            if path.is_file() and not path.is_symlink():
                if path.stat().st_size > LARGEST:
                    detail = f"{path} has more than {LARGEST:,} bytes"
                    raise Failed(detail, hint=f"move it out of the root: mv {path} /tmp", code="invalid_config")
                yield path.relative_to(self.root).as_posix(), path.read_bytes()

    def put(self, name: str, data: bytes) -> None:
        """Write a file, durably and atomically."""
        path = self.root / name
        if path.exists():
            if path.read_bytes() != data:
                raise other(self.name, name)
            return
        with writing(str(path)):
            make_folders(str(path.parent))
            prepare(f"{path}.lock", data)
            move(f"{path}.lock", str(path))
            flush_above(str(path))


class LogEnd:
    """A root in a shared log."""

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self._lengths: dict[Stream, int] = {}  # of the chains verified, and of the commits appended since

    @property
    def name(self) -> str:
        """Return the address without a password."""
        return self._log.name

    @property
    def mode(self) -> int:
        """Return the mode of a folder made from the root: the log has none."""
        return PRIVATE

    def make(self, mode: int) -> None:
        """Do nothing: the log exists."""

    def streams(self) -> list[Stream]:
        """Return the streams that have an entry, sorted."""
        return self._log.streams()

    def mark(self, stream: Stream) -> Any:
        """Return the position of a stream."""
        return self._log.positions([stream])[stream]

    def is_rewritten(self, stream: Stream, mark: Any) -> bool:
        """Return whether a stream was rewritten after the reach *mark*."""
        return bool(self.mark(stream).rewrites != mark.rewrites)

    def commits(self, stream: Stream) -> Iterator[Commit]:
        """Yield the commits of a stream by number; raises JournalDamaged for an entry that is not its commit."""
        for place, entry in enumerate(self._log.read(stream), 1):
            where = f"{self.name} {stream.project}/{stream.name} {entry.number}"
            try:
                commit = parse(entry.document)
            except FormatError as error:
                raise JournalDamaged(str(error), path=where, line=error.line, commit=entry.commit) from error
            if (entry.number, entry.commit, stream.graph) != (place, commit.id, commit.graph):
                problem = f"holds the commit {commit.id} of the graph {commit.graph} as number {place}"
                raise JournalDamaged(problem, path=where, commit=entry.commit)
            yield commit

    def verified_chain(self, stream: Stream) -> Chain:
        """Return the commits of a stream, after every entry was read and verified."""
        chain = Chain(f"{self.name} {stream.project}/{stream.name}", self.set_aside(stream))
        for commit in self.commits(stream):
            chain.add(commit)
        self._lengths[stream] = len(chain.forms)
        return chain

    def set_aside(self, stream: Stream) -> frozenset[str]:
        """Return the short ids in the names of quarantined files."""
        place = f"projects/{stream.project}/{stream.name}/"
        names = [name for name in addresses.load(self._log) if name.startswith(place) and name.endswith(ASIDE)]
        return frozenset(short_id(name.removeprefix(place).removesuffix(ASIDE)) or "" for name in names)

    def add(self, stream: Stream, commits: Iterable[Commit]) -> None:
        """Append *commits*; raises InvalidRequest if another writer appends too."""
        number, coming = self._lengths.get(stream, 0) + 1, iter(commits)
        while step := [(commit.id, commit.data) for commit in islice(coming, _AT_ONCE)]:
            if not self._append_step(stream, number, step):
                raise InvalidRequest(
                    f"another process writes to {self.name}: {stream.project}/{stream.name} has other commits from its "
                    f"number {number} on",
                    hint="stop the other writer, and name an empty place",
                )
            number += len(step)
            self._lengths[stream] = number - 1

    def _append_step(self, stream: Stream, number: int, step: Sequence[tuple[str, bytes]]) -> bool:
        if isinstance(self._log, BatchLog):
            return self._log.append_many(stream, number, step)
        return all(self._log.append(stream, n, commit, data) for n, (commit, data) in enumerate(step, number))

    def redact(self, stream: Stream, commits: Collection[Commit]) -> None:
        """Replace the documents of *commits* by redacted ones, and remove vectors and checkpoints of the old ones."""
        self._log.rewrite(stream, {commit.id: commit.data for commit in commits})
        shared_vectors.discard(self._log, stream.project)
        checkpoints.discard(self._log)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the root."""
        yield from ((name, text.encode()) for name, text in addresses.load(self._log).items())

    def put(self, name: str, data: bytes) -> None:
        """Store a file, except git's own files. Raises InvalidRequest for a file that is no text."""
        if name in _OF_GIT:
            return
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{name} is not a text, and a shared root has only texts", hint="remove it") from error

        def with_file(files: addresses.Files) -> addresses.Files:
            if files.get(name, text) != text:
                raise other(self.name, name)
            return {**files, name: text}

        addresses.change(self._log, with_file)


#: The place of a root: a folder or a shared log.
TransferEndpoint = FolderEnd | LogEnd


_EMPTY = "name an empty place"
#: The hint for a target that has another root, which may take a project of the source.
_BESIDE = f"{_EMPTY}; into a root with other projects: jidomem --project ID root migrate SOURCE TARGET"


def other(where: str, what: str, hint: str = _BESIDE) -> InvalidRequest:
    """Return the error of an end that has other content."""
    return InvalidRequest(f"{where} has other content: {what}", hint=hint)


#: Commits that are copied in one step, and attempts if the source is redacted meanwhile.
STEP, TRIES = 10_000, 5
#: Called for each copied commit, with its size in bytes.
Progress = Callable[[int], object]


class CopiedStream(NamedTuple):
    """The result for one stream: its extent at the target, as read again, and the number of copied commits."""

    stream: Stream
    extent: StreamExtent
    came: int
    grew: bool  # whether the source was written to meanwhile


def copy_streams(
    source: TransferEndpoint,
    target: TransferEndpoint,
    progress: Progress = id,
    mode: int | None = None,
    project: str | None = None,
) -> list[CopiedStream]:
    """Copy all commits of *source*, which is only read, to *target*; return the result for each stream.

    A folder that is made for them has *mode*, by default that of the source. With a *project* only its streams and
    quarantined files are copied, and *target* may have other projects.
    Commits that the target has are skipped, so that a second call continues an interrupted one. Raises InvalidRequest
    if the target has content that the source has not, before anything is written; JournalDamaged if either end fails
    the verification; Busy if the source is redacted repeatedly.
    """
    streams, present = ([each for each in end.streams() if project in (None, each.project)] for end in (source, target))
    for stream in present:
        if stream not in streams:
            raise other(target.name, f"{stream.project}/{stream.name}")
    target_chains = {stream: _target_chain(source, target, stream) for stream in present}
    target.make(source.mode if mode is None else mode)
    for name, data in source.files():
        if project is None or name.startswith(f"projects/{project}/"):
            target.put(name, data)
    return [_bring_stream(source, target, stream, target_chains.get(stream), progress) for stream in streams]


def _target_chain(source: TransferEndpoint, target: TransferEndpoint, stream: Stream) -> Chain:
    """Return the chain of a stream at the target; raises InvalidRequest unless the source has all of it."""
    chain = target.verified_chain(stream)
    foreign = chain.forms.keys() - {bytes.fromhex(commit.id) for commit in source.commits(stream)}
    if foreign:
        raise other(target.name, f"commit {min(foreign).hex()} of {stream.project}/{stream.name}", _EMPTY)
    return chain


def _bring_stream(
    source: TransferEndpoint, target: TransferEndpoint, stream: Stream, known_chain: Chain | None, progress: Progress
) -> CopiedStream:
    """Copy one stream, again if it was redacted meanwhile, and verify the target."""
    count = 0
    target_chain = known_chain or Chain(target.name)
    for _ in range(TRIES):
        mark = source.mark(stream)
        read = Chain(source.name, source.set_aside(stream))
        count += _copy(source, target, stream, target_chain, read, progress)
        target_chain = target.verified_chain(stream)
        if not source.is_rewritten(stream, mark):
            _compare(read, target_chain, target, stream)
            return CopiedStream(stream, target_chain.extent(), count, source.mark(stream) != mark)
    raise Busy(f"{source.name} is redacted repeatedly", hint="try again later")


def _copy(
    source: TransferEndpoint,
    target: TransferEndpoint,
    stream: Stream,
    target_chain: Chain,
    read: Chain,
    progress: Progress,
) -> int:
    commits, count = _missing(source.commits(stream), target_chain, read), 0
    while step := list(islice(commits, STEP)):
        redacted = [commit for commit in step if bytes.fromhex(commit.id) in target_chain.forms]
        if whole := next((commit for commit in redacted if not commit.redacted), None):
            raise other(target.name, f"commit {whole.id} of {stream.project}/{stream.name}, redacted", _EMPTY)
        if fresh := [commit for commit in step if bytes.fromhex(commit.id) not in target_chain.forms]:
            target.add(stream, _with_progress(fresh, progress))
        if redacted:  # last: the records that order the redaction are among the commits just added
            target.redact(stream, redacted)
        count += len(step)
    return count


def _missing(commits: Iterator[Commit], target_chain: Chain, read: Chain) -> Iterator[Commit]:
    """Yield those of *commits* that the target lacks in the same form, after each was added to *read*."""
    for commit in commits:
        read.add(commit)
        if target_chain.forms.get(bytes.fromhex(commit.id)) != blake2b(commit.data, digest_size=16).digest():
            yield commit


def _with_progress(commits: Collection[Commit], progress: Progress) -> Iterator[Commit]:
    for commit in commits:
        yield commit
        progress(len(commit.data))


def _compare(read: Chain, target_chain: Chain, target: TransferEndpoint, stream: Stream) -> None:
    if digest(read.forms) == digest(target_chain.forms):
        return
    differing = {each for each, _ in read.forms.items() ^ target_chain.forms.items()}
    problem = f"{len(differing)} commits of {stream.project}/{stream.name} differ from the source"
    raise JournalDamaged(problem, path=target.name, commit=min(differing).hex())
