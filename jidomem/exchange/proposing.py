"""Propose what another memory holds: each entry once, and one that changed as the successor of what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from jidomem.errors import JidomemError, NotFound
from jidomem.exchange.foreign import ForeignEntry, Reading
from jidomem.exchange.importing import Entry, Report
from jidomem.intent import Receipt
from jidomem.read.item import short_id
from jidomem.read.reader import MemoryReader
from jidomem.vocab import JIDO
from jidomem.write.writer import MemoryWriter

#: How alike two texts are of which one is the other, changed.
ALIKE = 0.6
_KNOWN = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?key ?digest ?summary ?ended ?before WHERE {
  ?item jido:localId ?key ; jido:sourceDigest ?digest ; jido:summary ?summary ; jido:recordedAt ?recorded .
  OPTIONAL { ?item jido:supersedes ?before }
  BIND(EXISTS { ?item jido:supersededBy|jido:invalidatedBy ?end } AS ?ended)
} ORDER BY ?recorded ?item
"""


@dataclass(frozen=True, slots=True)
class _Version:
    """An entry as it came in once, and the memory it became; `ended` is what was replaced or withdrawn since."""

    item: str
    digest: str
    summary: str
    ended: bool


def propose(
    writer: MemoryWriter, reader: MemoryReader, project: str, readings: Sequence[Reading], *, dry_run: bool = False
) -> Report:
    """Return what became of each entry of *readings*: proposed, here already, or refused; with *dry_run* keep nothing.

    What is here already is left alone, also where it was withdrawn. An entry that changed supersedes, once it is
    accepted, what it was; what is in none of the files any more is noted.
    """
    report = Report()
    known = _known(reader, project)
    for reading in readings:
        report.notes += reading.notes
        report.left_out.update(reading.left_out)
        report.entries += [Entry("", "", broken.place, broken.error) for broken in reading.broken]
        _Import(writer, project, reading, known, report, dry_run).run()
    return report


def _known(reader: MemoryReader, project: str) -> dict[str, list[_Version]]:
    """Return what came in before, by its key, less what later versions of it took the place of."""
    versions: dict[str, dict[str, _Version]] = defaultdict(dict)
    replaced: dict[str, set[str]] = defaultdict(set)
    try:
        rows = reader.select(project, _KNOWN)
    except NotFound:  # nothing was ever written
        rows = []
    for row in rows:
        versions[row["key"]][row["item"]] = _Version(row["item"], row["digest"], row["summary"], row["ended"])
        if row["before"]:
            replaced[row["key"]].add(row["before"])
    return {
        key: [version for item, version in found.items() if item not in replaced[key]]
        for key, found in versions.items()
    }


class _Import:
    """One file on its way in."""

    def __init__(
        self,
        writer: MemoryWriter,
        project: str,
        reading: Reading,
        known: Mapping[str, list[_Version]],
        report: Report,
        dry_run: bool,
    ) -> None:
        self._writer, self._project, self._reading, self._report = writer, project, reading, report
        self._known, self._dry_run = known, dry_run
        self._items = {key: found[-1].item for key, found in known.items() if found}

    def run(self) -> None:
        """Propose what is new."""
        groups: dict[str, list[ForeignEntry]] = defaultdict(list)
        for entry in self._reading.entries:
            if any(entry.digest == other.digest for other in groups[entry.key]):
                self._report.left_out["stands twice in the file"] += 1
            else:
                groups[entry.key].append(entry)
        for key, entries in groups.items():
            self._group(entries, self._known.get(key, ()))

    def _group(self, entries: Sequence[ForeignEntry], versions: Sequence[_Version]) -> None:
        """Propose those of *entries*, which share a key, that no version says."""
        here = {version.digest: version for version in versions}
        wanted = {entry.digest for entry in entries}
        gone = [version for version in versions if version.digest not in wanted and not version.ended]
        for entry in entries:
            if (version := here.get(entry.digest)) is not None:
                self._report.entries.append(Entry(version.item, entry.summary, entry.place, None))
                continue
            before = gone[-1] if gone and self._reading.alone else _alike(entry, gone)
            if before is not None:
                gone.remove(before)
            self._propose(entry, before)
        for version in gone if not self._reading.alone else ():
            short = short_id(version.item)
            self._report.notes.append(
                f"no longer in the file: {version.summary:.120}; if it is wrong:"
                f" jidomem revise {short} --invalidate --reason 'no longer in the file'"
            )

    def _propose(self, entry: ForeignEntry, before: _Version | None) -> None:
        said = self._intent(entry, before)
        try:
            outcome: Receipt | JidomemError = self._writer.submit_intent(
                self._project, said, dry_run=self._dry_run, propose=True
            )
        except JidomemError as refusal:
            outcome = refusal
        iri = outcome.iri if isinstance(outcome, Receipt) else ""
        if iri and not self._dry_run:
            self._items[entry.key] = iri
        is_new = isinstance(outcome, JidomemError) or outcome.status != "deduplicated"
        self._report.entries.append(Entry(iri, entry.summary, entry.place, outcome if is_new else None))

    def _intent(self, entry: ForeignEntry, before: _Version | None) -> dict[str, Any]:
        """Return the intent of an entry; a link to what is not here yet, as in a circle, is noted and left out."""
        said: dict[str, Any] = {
            "applies_to_project": self._project,
            "asserted_by": self._writer.agent,
            "asserted_in": self._writer.session,
            "confidence": "medium",
            "source_type": self._reading.source_type,
            **entry.fields,
        }
        said["extra_triples"] = [[f"{JIDO}localId", entry.key], [f"{JIDO}sourceDigest", entry.digest]]
        for name, key in entry.links:
            other = self._items.get(key)
            if other is None:
                if not self._dry_run:
                    self._report.notes.append(f"{entry.place}: the link to {key:.80} is left out: it is not here yet")
            elif name in ("about", "evidence"):
                said[name] = [*said.get(name, ()), other]
            else:
                said["extra_triples"].append([JIDO + name, {"@id": other}])
        if before is not None:
            said |= {"supersedes": [before.item], "reason": "It changed where it was imported from."}
        return said


def _alike(entry: ForeignEntry, versions: Iterable[_Version]) -> _Version | None:
    """Return the one of *versions* whose text is most like that of *entry*, None where none is like it."""
    rated = [
        (SequenceMatcher(None, entry.summary, version.summary).ratio(), version.item, version) for version in versions
    ]
    best = max(rated, key=lambda each: each[:2], default=None)
    return best[2] if best is not None and best[0] >= ALIKE else None
