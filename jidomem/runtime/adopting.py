"""Take in what a repository remembers already: decision records as decisions, everything else as proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jidomem.errors import JidomemError
from jidomem.exchange.importing import Entry, Report, import_adr
from jidomem.exchange.proposing import propose
from jidomem.intent import Receipt
from jidomem.repository.elsewhere import ADR, KINDS, NOTES, Source
from jidomem.repository.first_commits import first_commits
from jidomem.repository.listing import Named

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

_HERE_ALREADY = "already imported"


@dataclass(slots=True)
class Adopted:
    """What became of one source: each of its entries, and how many records of it were in memory already."""

    source: Source
    entries: list[Entry] = field(default_factory=list)
    known: int = 0

    def counts(self) -> dict[str, int]:
        """Return how many entries were taken in with their own status, wait, were here already, and were refused."""
        outcomes = [entry.outcome for entry in self.entries]
        states = Counter(outcome.status for outcome in outcomes if isinstance(outcome, Receipt))
        refused = sum(isinstance(outcome, JidomemError) for outcome in outcomes)
        waits = states["proposed"]
        return {
            "taken_in": states.total() - waits,
            "waits": waits,
            "here_already": self.known + len(outcomes) - states.total() - refused,
            "refused": refused,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        files = [path for path, _ in self.source.files]
        return {"path": self.source.path, "kind": self.source.kind, "files": files, **self.counts()}


def adopt(memory: Jidomem, base: Path, sources: Sequence[Source]) -> tuple[list[Adopted], Report]:
    """Return what became of each of *sources*, files of the repository *base*, and all there is to say about them."""
    named, whole = Named(base), Report()
    adopted = [Adopted(source) for source in sources]
    for kind in KINDS:
        some = [each for each in adopted if each.source.kind == kind]
        if not some:
            continue
        report = _taken(memory, named, kind, [file for each in some for file in each.source.files])
        whole.entries += report.entries
        whole.passed += report.passed
        whole.left_out.update(report.left_out)
        of_file = {path: each for each in some for path, _ in each.source.files}
        for entry in report.entries:
            of_file[_file_of(entry.place, of_file)].entries.append(entry)
        for note in report.notes:
            if _HERE_ALREADY in note and kind == ADR:
                of_file[_file_of(note, of_file)].known += 1
            elif not _is_of(note, of_file):
                whole.notes.append(note)
    return adopted, whole


def _taken(memory: Jidomem, named: Named, kind: str, files: Sequence[tuple[str, bytes]]) -> Report:
    if kind == ADR:
        committed = partial(first_commits, named.base)
        return import_adr(memory.writer, memory.project, files, find=named.of, committed=committed)
    read = import_module(f"jidomem.exchange.{kind.replace('-', '_')}").read
    readings = [read(path, data, named.of(path)) if kind == NOTES else read(path, data) for path, data in files]
    return propose(memory.writer, memory.reader, memory.project, readings)


def _file_of(place: str, files: dict[str, Any]) -> str:
    """Return the one of *files* that a place, or a note that begins with one, is in."""
    return max((path for path in files if place.startswith(path)), key=len)


def _is_of(note: str, files: dict[str, Any]) -> bool:
    """Return whether a note says that a page names one of *files*, which is taken in anyway."""
    words = note.partition(": @")[2].split(" ")
    return bool(words[0]) and words[1:2] == ["names"] and any(path.endswith(words[0].lstrip("./")) for path in files)
