"""The sources of imported memories: files of other tools, read into entries.  Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from jidomem.errors import InvalidRequest
from jidomem.exchange import adr, beads, mcp_memory, memory_md
from jidomem.exchange.foreign import Broken, Reading
from jidomem.exchange.mentions import Find
from jidomem.exchange.sync_plan import SourceEntry
from jidomem.policy import LITERAL_LIMIT
from jidomem.repository.elsewhere import ADR, GRAPH, ISSUES, NOTES
from jidomem.repository.worktree import blob_id

_UNREAD = "make it UTF-8 (iconv -f latin1 -t utf-8 FILE), or shorter, and import it again; what came in stays"
_READERS: Mapping[str, Callable[[str, bytes, Find], Reading]] = {
    NOTES: memory_md.read,
    GRAPH: lambda path, data, find: mcp_memory.read(path, data),
    ISSUES: lambda path, data, find: beads.read(path, data),
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of one kind of `jidomem.repository.elsewhere.KINDS`, by its path in the repository, with its content."""

    kind: str
    path: str
    data: bytes


@dataclass(slots=True)
class Sources:
    """The entries of some files, and what is to be said about them.

    `passed` are the files that hold no record, each with the reason. `whole` are the files of which every entry could
    be read: what is not among the entries is not in those files.
    """

    entries: list[SourceEntry] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)


def read_sources(
    files: Sequence[SourceFile],
    *,
    largest: int = LITERAL_LIMIT,
    is_known: Callable[[str], bool] = lambda name: False,
    find: Callable[[str], Find] = lambda path: lambda named: None,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> Sources:
    """Return the entries of *files*, decision records first; an entry that stands twice in a file is one.

    *find* gives, for the path of a file, what returns the file that a word of it names. *is_known* tells whether the
    record by that name is in memory, and *moved* gives the present path of a record by one that it had before.
    """
    sources = Sources()
    records = [file for file in files if file.kind == ADR]
    if records:
        _read_records(records, sources, largest, is_known, find, moved)
    for file in files:
        if file.kind != ADR:
            reading = _READERS[file.kind](file.path, file.data, find(file.path))
            _add(file, reading, sources)
    return sources


def _read_records(
    files: Sequence[SourceFile],
    sources: Sources,
    largest: int,
    is_known: Callable[[str], bool],
    find: Callable[[str], Find],
    moved: Mapping[str, str],
) -> None:
    by_path = {file.path: file for file in files}
    pairs = [(file.path, file.data) for file in files]
    reading = adr.read_records(pairs, largest=largest, is_known=is_known, find=find, moved=moved)
    for entry in reading.entries:
        blob = blob_id(by_path[entry.place].data)
        sources.entries.append(SourceEntry.of(ADR, entry.place, blob, entry, source_type=None, alone=True))
    for note in reading.notes:
        if note in reading.refused:
            sources.broken.append(Broken(note.path, InvalidRequest(note.message, hint=_UNREAD)))
        elif note in reading.skipped:
            sources.passed.append((note.path, note.reason))
        else:
            place = f"{note.path}:{note.line}" if note.line else note.path
            sources.notes.append(f"{place}: {note.severity}: {note.message}")
    sources.whole |= by_path.keys() - {note.path for note in reading.refused}


def _add(file: SourceFile, reading: Reading, sources: Sources) -> None:
    blob, met = blob_id(file.data), set[tuple[str, str]]()
    for entry in reading.entries:
        if (entry.key, entry.digest) in met:
            sources.left_out["stands twice in the file"] += 1
            continue
        met.add((entry.key, entry.digest))
        sources.entries.append(
            SourceEntry.of(file.kind, file.path, blob, entry, source_type=reading.source_type, alone=reading.alone)
        )
    sources.broken += reading.broken
    sources.notes += reading.notes
    sources.left_out.update(reading.left_out)
    sources.places += reading.places
    if not reading.broken:
        sources.whole.add(file.path)
