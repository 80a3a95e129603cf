"""Move a memory root to another place, keep a copy of it in one file, and make a root of such a file again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.journal.files import Stream
from jidomem.runtime.moved_state import InDatabase, Where, copied, held_state
from jidomem.runtime.moved_tokens import give_out, given_out
from jidomem.runtime.settings import find
from jidomem.runtime.shared_root import opened_log
from jidomem.shared import archive
from jidomem.shared.chain import Extent
from jidomem.shared.ends import End, FolderEnd, LogEnd
from jidomem.shared.log import SharedLog
from jidomem.shared.moving import Brought, Progress, bring

#: Seconds a shared root is waited for.
_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class Moved:
    """What came from where to where: each stream as it was verified, the tokens, and what became of working state."""

    source: str
    target: str
    streams: Sequence[Brought]
    state: str  # brought, none, kept: the target's own
    tokens: int = 0
    other_tokens: int = 0  # believed at the target, and not at the source

    @property
    def grew(self) -> bool:
        """Return whether the source was written to meanwhile, so that there may be more to bring."""
        return any(each.grew for each in self.streams)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "source": self.source,
            "target": self.target,
            "streams": [{**_row(each.stream, each.extent), "came": each.came} for each in self.streams],
            "working_state": self.state,
            "tokens": self.tokens,
            "other_tokens": self.other_tokens,
            "source_grew": self.grew,
        }


@dataclass(frozen=True, slots=True)
class _Place:
    """A root: its end, where its working state is, and its log where it is a shared one."""

    end: End
    state: Where
    log: SharedLog | None = None


def migrate(source: str, target: str, progress: Progress = id) -> Moved:
    """Return what *target* holds once that is all that *source* does, both verified; the source is only read.

    Run again it goes on, or brings what came meanwhile. Raises NotFound where there is no root at the source,
    InvalidRequest where the target holds anything else, or is the source, JournalDamaged where either does not verify.
    """
    with _opened(source) as here, _opened(target) as there:
        if here.end.name == there.end.name:
            raise InvalidRequest(f"{here.end.name} is source and target", hint="name another place to bring it to")
        _refuse_nothing(here.end)
        state = held_state(here.state)  # before the journal: it speaks of what is there, and never the other way
        streams = bring(here.end, there.end, progress)
        tokens = give_out(given_out(here.end.name, here.log), there.end.name, there.log)
        return Moved(here.end.name, there.end.name, streams, copied(state, there.state), *tokens)


def backup(root: str, file: Path, progress: Progress = id) -> tuple[Moved, str]:
    """Return what is in *file*, which is made, and the digest of its manifest; others may go on to write meanwhile.

    Raises NotFound where there is no root, Failed where the file is there or cannot be written, JournalDamaged.
    """
    with _opened(root) as here, _scratch(file) as folder:
        _refuse_nothing(here.end)
        state = copied(held_state(here.state), folder, mark=False)
        streams = bring(here.end, FolderEnd(folder), progress)
        said = {"jidomem": version("jidomem"), "streams": [_row(each.stream, each.extent) for each in streams]}
        return Moved(here.end.name, str(file), streams, state), archive.pack(folder, file, said)


def restore(file: Path, target: str, progress: Progress = id) -> Moved:
    """Return what *target* holds once that is all that is in *file*, every digest and the chain verified.

    Nothing is written there before all of the file was read. Raises InvalidRequest for what is no backup, and where
    the target holds anything else, Failed where the file was changed, JournalDamaged.
    """
    with _opened(target) as there, _scratch(file) as folder:
        said, source = archive.unpack(file, folder), FolderEnd(folder)
        if [_row(stream, source.held(stream).extent()) for stream in source.streams()] != said["streams"]:
            raise Failed(f"{file} does not hold what its manifest says", hint="use another copy of it")
        streams = bring(source, there.end, progress)
        return Moved(str(file), there.end.name, streams, copied(held_state(folder), there.state))


def _row(stream: Stream, extent: Extent) -> dict[str, Any]:
    return {"project": stream.project, "stream": stream.name, **asdict(extent)}


@contextmanager
def _opened(place: str) -> Iterator[_Place]:
    """Give the root at *place*, a folder or an address, whether there is one or not."""
    folder, opened = find(place)[0], opened_log(place, _WAIT)
    if opened is None:
        yield _Place(FolderEnd(folder), folder)
        return
    log, _ = opened
    try:
        yield _Place(LogEnd(log), folder if place.startswith("s3:") else InDatabase(place), log)
    finally:
        log.close()


def _refuse_nothing(end: End) -> None:
    """Raise NotFound where there is no root at an end."""
    if not end.streams() and not any(True for _ in end.files()):
        raise NotFound(f"there is no memory root at {end.name}", hint="name the folder .jidomem itself, or an address")


@contextmanager
def _scratch(file: Path) -> Iterator[Path]:
    """Give an empty folder beside *file*, which goes again; raises Failed where there can be none."""
    try:
        folder = TemporaryDirectory(prefix=f".{file.name}.", dir=file.absolute().parent)
    except OSError as error:
        hint = "name a file in a folder this user may write to, with room for all of it twice"
        raise Failed(f"{error.filename}: {error.strerror}", hint=hint, code="write_failed") from error
    with folder as path:
        yield Path(path)
