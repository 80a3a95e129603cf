"""Adoption: synchronises a memory with its repository, decision records as decisions, all else as proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING, Any

from jidomem.errors import JidomemError
from jidomem.exchange.importer import ImportedEntry, ImportReport
from jidomem.exchange.lineage import Lineage
from jidomem.exchange.sync_plan import CHANGES
from jidomem.exchange.synchroniser import SourceFile, SourceScan, Synchronisation, imported_lineages
from jidomem.records.intent import Receipt, path_of
from jidomem.repository.git import Checkout, first_commits
from jidomem.repository.other_tools import ADR, LARGEST, NOTES, SourceFiles
from jidomem.repository.record_files import folder_of
from jidomem.repository.worktree import PathFinder, plain_file

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem


@dataclass(frozen=True, slots=True)
class Scope:
    """What was looked for: some kinds in the whole repository, and all that lies at or below some paths."""

    kinds: Collection[str] = ()
    places: Collection[str] = ()

    def covers(self, lineage: Lineage) -> bool:
        """Return whether the source of *lineage* is within it."""
        path = lineage.newest.path
        below = any(place == "." or path == place or path.startswith(f"{place}/") for place in self.places)
        return lineage.newest.kind in self.kinds or below


@dataclass(slots=True)
class Adopted:
    """What became of one source, by each of its entries."""

    path: str
    kind: str
    files: Sequence[str]
    entries: list[ImportedEntry] = field(default_factory=list)

    def changes(self) -> dict[str, int]:
        """Return how many entries were added, changed and so on, and how many were refused."""
        done = (entry for entry in self.entries if not isinstance(entry.outcome, JidomemError))
        counts = Counter(entry.change for entry in done)
        refused = sum(isinstance(entry.outcome, JidomemError) for entry in self.entries)
        return {**{change: counts[change] for change in CHANGES}, "refused": refused}

    def counts(self) -> dict[str, int]:
        """Return how many entries were written as active, are pending now, were unchanged, and were refused."""
        states = Counter(entry.outcome.status for entry in self.entries if isinstance(entry.outcome, Receipt))
        refused = sum(isinstance(entry.outcome, JidomemError) for entry in self.entries)
        waits = states["proposed"]
        return {
            "taken_in": states.total() - waits,
            "waits": waits,
            "here_already": len(self.entries) - states.total() - refused,
            "refused": refused,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        files = {"path": self.path, "kind": self.kind, "files": [*self.files]}
        return {**files, **self.counts(), **self.changes()}


def compare(memory: Jidomem, base: Path, sources: Sequence[SourceFiles], scope: Scope) -> Synchronisation:
    """Return what is to be written so that *memory* says what *sources* say; nothing is.

    They are files of the repository *base*, found within *scope*. The files there that memories were imported from by
    name are compared as well; what was imported from there and is in none of them is removed.
    """
    known = imported_lineages(memory.writer, memory.reader, memory.project)
    return _compare(memory, base, with_imported(known, base, sources, scope), scope, known)


def with_imported(
    known: Sequence[Lineage], base: Path, sources: Sequence[SourceFiles], scope: Scope
) -> list[SourceFiles]:
    """Return *sources* and the files within *scope* that *known* was imported from and that are in none of them.

    A file is of the kind that it was imported as. A page of notes that equals one of *sources* is left out.
    """
    kinds: dict[str, list[str]] = {}
    for lineage in known:
        path, kind = lineage.newest.path, lineage.newest.kind
        if scope.covers(lineage) and path_of(path) == path and kind not in kinds.setdefault(path, []):
            kinds[path].append(kind)
    all_sources = []
    for source in sources:
        files = tuple(file for file in source.files if source.kind in kinds.get(file[0], [source.kind]))
        all_sources += [replace(source, files=files)] if files else []
    present = {path for each in all_sources for path, _ in each.files}
    notes = {data for each in all_sources if each.kind == NOTES for _, data in each.files}
    missing = [(each, kind) for each in sorted(kinds.keys() - present) for kind in kinds[each]]
    for path, kind in missing:
        data = plain_file(base.resolve() / path, LARGEST[kind])
        if data is None or (kind == NOTES and data in notes):
            continue
        folder = folder_of(path) if kind == ADR else path
        beside = next((each for each in all_sources if (each.kind, each.path) == (kind, folder)), None)
        if beside is not None:
            all_sources[all_sources.index(beside)] = replace(beside, files=(*beside.files, (path, data)))
        else:
            all_sources.append(SourceFiles(kind, folder, ((path, data),)))
    return all_sources


def _compare(
    memory: Jidomem, base: Path, sources: Sequence[SourceFiles], scope: Scope, known: Sequence[Lineage]
) -> Synchronisation:
    """Return the same as `compare`, with the *known* lineages, of *sources* that `with_imported` completed."""
    files = [SourceFile(source.kind, path, data) for source in sources for path, data in source.files]
    look = SourceScan(Checkout(base).is_removed, scope.covers)
    named = PathFinder(base)
    return Synchronisation.of(memory.writer, memory.reader, memory.project, files, look, find=named.of, known=known)


def adopt(
    memory: Jidomem, base: Path, sources: Sequence[SourceFiles], scope: Scope
) -> tuple[list[Adopted], ImportReport]:
    """Return what became of each of *sources* and of those that were removed, and all there is to say about them."""
    known = imported_lineages(memory.writer, memory.reader, memory.project)
    sources = with_imported(known, base, sources, scope)
    found = _compare(memory, base, sources, scope, known)
    report = found.submit(partial(first_commits, base))
    adopted = [Adopted(source.path, source.kind, [path for path, _ in source.files]) for source in sources]
    of_file = {path: each for each in adopted for path in each.files}
    of_folder = {each.path: each for each in adopted if each.kind == ADR}
    for entry in report.entries:
        path = entry.path or _file_of(entry.place, of_file)
        if path not in of_file:  # it is removed
            of_file[path] = of_folder.get(dirname(path)) or Adopted(path, entry.kind, [])
            adopted += [] if of_file[path] in adopted else [of_file[path]]
        of_file[path].entries.append(entry)
    report.notes[:] = [note for note in report.notes if not _names_one_of(note, of_file)]
    return adopted, report


def _file_of(place: str, files: Collection[str]) -> str:
    """Return the one of *files* that a place is in."""
    return max((path for path in files if place.startswith(path)), key=len)


def _names_one_of(note: str, files: Collection[str]) -> bool:
    """Return whether a note says that a page names one of *files*, which is imported anyway."""
    words = note.partition(": @")[2].split(" ")
    return bool(words[0]) and words[1:2] == ["names"] and any(path.endswith(words[0].lstrip("./")) for path in files)
