"""Adoption: synchronises a memory with its repository: decision records as decisions, all else as proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING, Any, NamedTuple

from jidomem.errors import JidomemError
from jidomem.exchange.importer import ImportedEntry, ImportReport, SourceFile
from jidomem.exchange.lineage import Lineage
from jidomem.exchange.sync_plan import CHANGES
from jidomem.exchange.synchroniser import SourceScan, Synchronisation, imported_lineages
from jidomem.rdf.terms import literal
from jidomem.records.file_anchor import anchors_of, path_of
from jidomem.records.intent import Receipt
from jidomem.repository.git import Checkout, first_commits
from jidomem.repository.other_tools import ADR, LARGEST, NOTES, SourceFiles
from jidomem.repository.record_files import folder_of
from jidomem.repository.worktree import PathFinder, plain_file

if TYPE_CHECKING:
    from jidomem.curation.review_queue import QueueItem
    from jidomem.runtime.root import Jidomem


class Scope(NamedTuple):
    """The scope of a search: some kinds in the whole repository, and everything at or below some paths."""

    kinds: Collection[str] = ()
    places: Collection[str] = ()

    def covers(self, lineage: Lineage) -> bool:
        """Return whether the source of *lineage* is within the scope."""
        path = lineage.newest.path
        below = any(place == "." or path == place or path.startswith(f"{place}/") for place in self.places)
        return lineage.newest.kind in self.kinds or below


@dataclass(slots=True)
class SourceOutcome:
    """The outcome of one source, by entry."""

    path: str
    kind: str
    files: Sequence[str]
    entries: list[ImportedEntry] = field(default_factory=list)

    def changes(self) -> dict[str, int]:
        """Return the numbers of entries that were added, changed and so on, and refused."""
        done = (entry for entry in self.entries if not isinstance(entry.outcome, JidomemError))
        counts = Counter(entry.change for entry in done)
        refused = sum(isinstance(entry.outcome, JidomemError) for entry in self.entries)
        return {**{change: counts[change] for change in CHANGES}, "refused": refused}

    def counts(self) -> dict[str, int]:
        """Return the numbers of entries that became active, are pending, were unchanged, and were refused."""
        states = Counter(entry.outcome.status for entry in self.entries if isinstance(entry.outcome, Receipt))
        refused = sum(isinstance(entry.outcome, JidomemError) for entry in self.entries)
        waits = states["proposed"]
        return {
            "taken_in": states.total() - waits,
            "waits": waits,
            "here_already": len(self.entries) - states.total() - refused,
            "refused": refused,
        }

    def waiting(self, pending: Mapping[str, Set[str]]) -> set[str]:
        """Return those of the *pending* proposals that are of this source; they have their files (`files_of`)."""
        imported = {entry.iri for entry in self.entries} & pending.keys()
        return imported | {item for item, files in pending.items() if not files.isdisjoint(self.files)}

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain JSON values."""
        files = {"path": self.path, "kind": self.kind, "files": [*self.files]}
        return {**files, **self.counts(), **self.changes()}


def files_of(memory: Jidomem, one: QueueItem) -> Set[str]:
    """Return the file that a proposal was imported from, or those of the memories that it withdraws."""
    if one.file is not None or one.type != "deleted_marker":
        return {one.file} if one.file else set()
    marker = memory.reader.get_memory(memory.project, one.item)["properties"]
    withdrawn = [memory.reader.get_memory(memory.project, old)["properties"] for old in marker["invalidates"]]
    blobs = [literal(str(blob)) for each in withdrawn for blob in each.get("sourceBlob", ())]
    return {anchor.path for anchor in anchors_of(blobs)}


def compare(memory: Jidomem, base: Path, sources: Sequence[SourceFiles], scope: Scope) -> Synchronisation:
    """Return the changes that synchronise *memory* with *sources*, without writing them.

    *sources* are files of the repository *base*, found within *scope*. Files that memories were imported from by name
    are compared as well; a memory whose entry is in none of the files is to be removed.
    """
    known = imported_lineages(memory.writer, memory.reader, memory.project)
    return _compare(memory, base, with_imported(known, base, sources, scope), scope, known)


def with_imported(
    known: Sequence[Lineage], base: Path, sources: Sequence[SourceFiles], scope: Scope
) -> list[SourceFiles]:
    """Return *sources* and the further files within *scope* from which *known* was imported.

    A file keeps the kind as which it was imported. A page of notes that equals one of *sources* is left out.
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
        sibling = next((each for each in all_sources if (each.kind, each.path) == (kind, folder)), None)
        if sibling is not None:
            all_sources[all_sources.index(sibling)] = replace(sibling, files=(*sibling.files, (path, data)))
        else:
            all_sources.append(SourceFiles(kind, folder, ((path, data),)))
    return all_sources


def _compare(
    memory: Jidomem, base: Path, sources: Sequence[SourceFiles], scope: Scope, known: Sequence[Lineage]
) -> Synchronisation:
    """Return the result of `compare` for *sources* completed by `with_imported`, with the *known* lineages."""
    files = [SourceFile(source.kind, path, data) for source in sources for path, data in source.files]
    look = SourceScan(Checkout(base).is_removed, scope.covers)
    named = PathFinder(base)
    return Synchronisation.of(memory.writer, memory.reader, memory.project, files, look, find=named.of, known=known)


def adopt(
    memory: Jidomem, base: Path, sources: Sequence[SourceFiles], scope: Scope
) -> tuple[list[SourceOutcome], ImportReport]:
    """Synchronise; return the outcome of each of *sources* and of removed files, and the report of the import."""
    known = imported_lineages(memory.writer, memory.reader, memory.project)
    sources = with_imported(known, base, sources, scope)
    comparison = _compare(memory, base, sources, scope, known)
    report = comparison.submit(partial(first_commits, base))
    adopted = [SourceOutcome(source.path, source.kind, [path for path, _ in source.files]) for source in sources]
    of_file = {path: each for each in adopted for path in each.files}
    of_folder = {each.path: each for each in adopted if each.kind == ADR}
    for entry in report.entries:
        path = entry.path or max((file for file in of_file if entry.place.startswith(file)), key=len)
        if path not in of_file:  # it was removed
            of_file[path] = of_folder.get(dirname(path)) or SourceOutcome(path, entry.kind, [])
            adopted += [] if of_file[path] in adopted else [of_file[path]]
        of_file[path].entries.append(entry)
    report.notes[:] = [note for note in report.notes if not _names_one_of(note, of_file)]
    return adopted, report


def _names_one_of(note: str, files: Collection[str]) -> bool:
    """Return whether a note is about a page that names one of *files*, which is imported anyway."""
    words = note.partition(": @")[2].split(" ")
    return bool(words[0]) and words[1:2] == ["names"] and any(path.endswith(words[0].lstrip("./")) for path in files)
