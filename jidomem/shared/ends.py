"""An end of a move: the streams and the files of a root, wherever it lies, to be read from or brought to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from jidomem.errors import InvalidRequest, JournalDamaged
from jidomem.journal.commit import Commit, FormatError, parse
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.names import ASIDE, set_aside, short_id
from jidomem.journal.redaction import is_order, taken_out
from jidomem.journal.writing import flush_above, make_folders, move, prepare, writing
from jidomem.shared.chain import Chain
from jidomem.shared.filling import fill
from jidomem.shared.log import SharedLog

#: What a root says of itself beside its journal: files, and folders of files.
FILES = ("config.toml", "baseline.toml", ".gitignore", ".gitattributes")
FOLDERS = ("ontology", "shapes", "queries")
#: Where the files of a root are in a log.
ROOT = "root/"


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
        paths += [path for name in FOLDERS for path in (self.root / name).rglob("*")]
        for stream in self.streams():
            folder = self._journal.path(stream)
            paths += [folder / name for name in set_aside(str(folder))]
        for path in sorted(paths):
            if path.is_file() and not path.is_symlink():
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
        return chain

    def set_aside(self, stream: Stream) -> frozenset[str]:
        """Return the first digits of the ids that the names of what was set aside claim."""
        names = self._log.names(f"{ROOT}projects/{stream.project}/{stream.name}/")
        asides = [name.rpartition("/")[2].removesuffix(ASIDE) for name in names if name.endswith(ASIDE)]
        return frozenset(short_id(name) or "" for name in asides)

    def add(self, stream: Stream, commits: Iterable[Commit]) -> None:
        """Append *commits*; raises InvalidRequest where somebody else appends, too."""
        length = self._log.reach([stream])[stream].length
        for number, commit in enumerate(commits, length + 1):
            if not self._log.append(stream, number, commit.id, commit.data):
                raise InvalidRequest(
                    f"somebody else writes to {self.name}: {stream.project}/{stream.name} has its own number {number}",
                    hint="stop who writes there, and name a place that is empty",
                )

    def redact(self, stream: Stream, commits: Collection[Commit]) -> None:
        """Put *commits* in the place of their other forms."""
        self._log.rewrite(stream, {commit.id: commit.data for commit in commits})

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the root."""
        for name in self._log.names(ROOT):
            if (file := self._log.get(name)) is not None:
                yield name.removeprefix(ROOT), file.data

    def put(self, name: str, data: bytes) -> None:
        """Keep a file."""
        if self._log.put(ROOT + name, data) is None:
            there = self._log.get(ROOT + name)
            if there is None or there.data != data:
                raise other(self.name, name)


def other(where: str, what: str) -> InvalidRequest:
    """Return the refusal of an end that holds something else."""
    return InvalidRequest(f"{where} holds something else: {what}", hint="name a place that is empty")
