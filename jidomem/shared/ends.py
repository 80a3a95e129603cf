"""An end of a move: the streams and the files of a root, wherever it lies, to be read from or brought to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jidomem.errors import Failed, InvalidRequest, JournalDamaged
from jidomem.journal.commit import Commit, FormatError, parse
from jidomem.journal.disk import LARGEST
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.names import ASIDE, set_aside, short_id
from jidomem.journal.redaction import is_order, taken_out
from jidomem.journal.writing import flush_above, make_folders, move, prepare, writing
from jidomem.shared import checkpoints, root_files, segments
from jidomem.shared.chain import Chain
from jidomem.shared.filling import fill
from jidomem.shared.log import SharedLog

#: What a root says of itself beside its journal and its overlay.
_OF_GIT = (".gitignore", ".gitattributes")
FILES = ("config.toml", "baseline.toml", *_OF_GIT)
#: How many commits are appended at once, where a log can.
_AT_ONCE = 500


@runtime_checkable
class ManyLog(Protocol):
    """A log that takes many entries in one step."""

    def append_many(self, stream: Stream, number: int, entries: Sequence[tuple[str, bytes]]) -> bool:
        """Return True once all of *entries*, ids with documents, are durable from *number* on; False where none is."""


class End(Protocol):
    """Where a root lies. Raises what the end raises where it cannot be read or written, and JournalDamaged."""

    @property
    def name(self) -> str:
        """Return where it is, as it may be shown."""

    def streams(self) -> list[Stream]:
        """Return the streams that hold commits, sorted."""

    def mark(self, stream: Stream) -> Any:
        """Return what is another one as soon as something is appended to a stream, or redacted."""

    def is_rewritten(self, stream: Stream, mark: Any) -> bool:
        """Return whether something was redacted since *mark*."""

    def commits(self, stream: Stream) -> Iterator[Commit]:
        """Yield the commits of a stream as they are now, verified, parents first."""

    def held(self, stream: Stream) -> Chain:
        """Return the commits of a stream, every byte of them read again and the chain verified."""

    def set_aside(self, stream: Stream) -> frozenset[str]:
        """Return the first 12 digits of the ids of the commits that were set aside."""

    def add(self, stream: Stream, commits: Iterable[Commit]) -> None:
        """Keep *commits*, none of which is there, and whose parents are, or are among those before."""

    def redact(self, stream: Stream, commits: Collection[Commit]) -> None:
        """Keep *commits*, all redacted, in the place of their other forms."""

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the root beside its journal that are not derived, by their path below it."""

    def put(self, name: str, data: bytes) -> None:
        """Keep a file; raises InvalidRequest where another one has that name."""


class FolderEnd:
    """A root in a folder, which need not exist; while it is filled nobody else writes to it."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._journal = FileJournal(self.root)

    @property
    def name(self) -> str:
        """Return the path of the folder."""
        return str(self.root)

    def streams(self) -> list[Stream]:
        """Return the streams that hold commits, sorted."""
        return self._journal.streams()

    def mark(self, stream: Stream) -> Any:
        """Return the version of a stream."""
        return self._journal.head(stream)

    def is_rewritten(self, stream: Stream, mark: Any) -> bool:
        """Return whether a commit that came after the version *mark* says that something was redacted."""
        if self._journal.head(stream) == mark:
            return False
        return any(is_order(commit.data) for commit in self._journal.read(stream, after=mark))

    def commits(self, stream: Stream) -> Iterator[Commit]:
        """Yield the commits of a stream, by moment and id; raises JournalDamaged."""
        missed = set[str]()
        for commit in self._journal.read(stream, missed=missed):
            if missed:
                break
            yield commit
        for damage in self._journal.damage(stream):
            raise damage
        if missed:
            raise JournalDamaged("it could not be read", path=min(missed))

    def held(self, stream: Stream) -> Chain:
        """Return the commits of a stream, after its files were verified as `jidomem verify` does."""
        self._journal = FileJournal(self.root)  # nothing is believed that was read before
        damage = self._journal.verify(stream)
        if damage:
            raise damage[0]
        chain = Chain(str(self._journal.path(stream)), self.set_aside(stream))
        for commit in self.commits(stream):
            chain.add(commit)
        return chain

    def set_aside(self, stream: Stream) -> frozenset[str]:
        """Return the first digits of the ids that the names of what was set aside claim."""
        names = set_aside(str(self._journal.path(stream)))
        return frozenset(short_id(name.removesuffix(ASIDE)) or "" for name in names)

    def add(self, stream: Stream, commits: Iterable[Commit]) -> None:
        """Keep *commits* as packs, and what is no full one as files; as files alone where git may track them."""
        fill(str(self._journal.path(stream)), commits, packed=not self._journal.is_tracked)
        self._journal = FileJournal(self.root)

    def redact(self, stream: Stream, commits: Collection[Commit]) -> None:
        """Take out of every file what *commits* have lost."""
        with self._journal.redacting(stream, {commit.id: taken_out(commit) for commit in commits}):
            pass

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the configuration, the overlay and what was set aside; links are not followed."""
        paths = [self.root / name for name in FILES]
        paths += root_files.overlay_files(self.root)
        for stream in self.streams():
            folder = self._journal.path(stream)
            paths += [folder / name for name in set_aside(str(folder))]
        for path in sorted(paths):
            if path.is_file() and not path.is_symlink():
                if path.stat().st_size > LARGEST:
                    detail = f"{path} has more than {LARGEST:,} bytes"
                    raise Failed(detail, hint=f"take it out of the root: mv {path} /tmp", code="invalid_config")
                yield path.relative_to(self.root).as_posix(), path.read_bytes()

    def put(self, name: str, data: bytes) -> None:
        """Keep a file, durable and whole or not at all."""
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
        self._lengths: dict[Stream, int] = {}  # of what `held` saw, and what was appended since

    @property
    def name(self) -> str:
        """Return the address without a password."""
        return self._log.name

    def streams(self) -> list[Stream]:
        """Return the streams that hold an entry, sorted."""
        return self._log.streams()

    def mark(self, stream: Stream) -> Any:
        """Return how far a stream reaches."""
        return self._log.reach([stream])[stream]

    def is_rewritten(self, stream: Stream, mark: Any) -> bool:
        """Return whether a stream was rewritten more often than *mark* says."""
        return bool(self.mark(stream).rewrites != mark.rewrites)

    def commits(self, stream: Stream) -> Iterator[Commit]:
        """Yield the commits of a stream by their numbers; raises JournalDamaged where one is not what it claims."""
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

    def held(self, stream: Stream) -> Chain:
        """Return the commits of a stream, after every entry was read and verified."""
        chain = Chain(f"{self.name} {stream.project}/{stream.name}", self.set_aside(stream))
        for commit in self.commits(stream):
            chain.add(commit)
        self._lengths[stream] = len(chain.forms)
        return chain

    def set_aside(self, stream: Stream) -> frozenset[str]:
        """Return the first digits of the ids that the names of what was set aside claim."""
        place = f"projects/{stream.project}/{stream.name}/"
        names = [name for name in root_files.load(self._log) if name.startswith(place) and name.endswith(ASIDE)]
        return frozenset(short_id(name.removeprefix(place).removesuffix(ASIDE)) or "" for name in names)

    def add(self, stream: Stream, commits: Iterable[Commit]) -> None:
        """Append *commits*; raises InvalidRequest where somebody else appends, too."""
        number, coming = self._lengths.get(stream, 0) + 1, iter(commits)
        while step := [(commit.id, commit.data) for commit in islice(coming, _AT_ONCE)]:
            if not self._appended(stream, number, step):
                raise InvalidRequest(
                    f"somebody else writes to {self.name}: {stream.project}/{stream.name} has other commits from its "
                    f"number {number} on",
                    hint="stop who writes there, and name a place that is empty",
                )
            number += len(step)
            self._lengths[stream] = number - 1

    def _appended(self, stream: Stream, number: int, step: Sequence[tuple[str, bytes]]) -> bool:
        """Return whether all of *step* is there from *number* on, in one step where the log knows how."""
        if isinstance(self._log, ManyLog):
            return self._log.append_many(stream, number, step)
        return all(self._log.append(stream, n, commit, data) for n, (commit, data) in enumerate(step, number))

    def redact(self, stream: Stream, commits: Collection[Commit]) -> None:
        """Put *commits* in the place of their other forms; what was made of those goes."""
        self._log.rewrite(stream, {commit.id: commit.data for commit in commits})
        segments.discard(self._log, stream.project)
        checkpoints.discard(self._log)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the root."""
        yield from ((name, text.encode()) for name, text in root_files.load(self._log).items())

    def put(self, name: str, data: bytes) -> None:
        """Keep a file; those that are git's mean nothing here. Raises InvalidRequest for one that is no text."""
        if name in _OF_GIT:
            return
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"{name} is no text, and a shared root has nothing else", hint="take it out"
            ) from error

        def kept(files: root_files.Files) -> root_files.Files:
            if files.get(name, text) != text:
                raise other(self.name, name)
            return {**files, name: text}

        root_files.change(self._log, kept)


def other(where: str, what: str) -> InvalidRequest:
    """Return the refusal of an end that holds something else."""
    return InvalidRequest(f"{where} holds something else: {what}", hint="name a place that is empty")
