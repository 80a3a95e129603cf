"""Propose what another memory holds: each entry once, and one that changed as the successor of what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class _New:
    """An entry to propose, in the place of the version it was before, and where the report tells of it."""

    entry: ForeignEntry
    before: _Version | None
    at: int


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
        self._new: list[_New] = []
        self._items = {key: found[-1].item for key, found in known.items() if found}

    def run(self) -> None:
        """Propose what is new."""
        groups: dict[str, dict[str, ForeignEntry]] = defaultdict(dict)
        for entry in self._reading.entries:
            if groups[entry.key].setdefault(entry.digest, entry) is not entry:
                self._report.left_out["stands twice in the file"] += 1
        for key, entries in groups.items():
            self._group(entries, self._known.get(key, ()))
        for some in _waves(self._new):
            for new, outcome in zip(some, self._outcomes(some), strict=True):
                self._took(new, outcome)

    def _group(self, entries: Mapping[str, ForeignEntry], versions: Sequence[_Version]) -> None:
        """Take note of those of *entries*, which share a key, that no version says; they are given by digest."""
        here = {version.digest: version for version in versions}
        gone = [version for version in versions if version.digest not in entries and not version.ended]
        for digest, entry in entries.items():
            if (version := here.get(digest)) is not None:
                self._report.entries.append(Entry(version.item, entry.summary, entry.place, None))
                continue
            before = gone[-1] if gone and self._reading.alone else _alike(entry, gone)
            if before is not None:
                gone.remove(before)
            self._new.append(_New(entry, before, len(self._report.entries)))
            self._report.entries.append(Entry("", entry.summary, entry.place, None))  # until it is answered
        for version in gone if not self._reading.alone else ():
            short = short_id(version.item)
            self._report.notes.append(
                f"no longer in the file: {version.summary:.120}; if it is wrong:"
                f" jidomem revise {short} --invalidate --reason 'no longer in the file'"
            )

    def _outcomes(self, some: Sequence[_New]) -> list[Receipt | JidomemError]:
        """Return what became of entries that name none of each other."""
        said = [self._intent(new.entry, new.before) for new in some]
        if self._dry_run:
            return [self._judged(intent) for intent in said]
        outcomes: list[Receipt | JidomemError] = self._writer.submit_many(self._project, said, propose=True)
        return outcomes

    def _judged(self, said: Mapping[str, Any]) -> Receipt | JidomemError:
        try:
            return self._writer.submit_intent(self._project, said, dry_run=True, propose=True)
        except JidomemError as refusal:
            return refusal

    def _took(self, new: _New, outcome: Receipt | JidomemError) -> None:
        """Report what became of an entry."""
        entry, iri = new.entry, ""
        is_new = isinstance(outcome, JidomemError) or outcome.status != "deduplicated"
        if isinstance(outcome, JidomemError):
            outcome.position = None  # it has a place of its own
        else:
            iri = outcome.iri
            if not self._dry_run:
                self._items[entry.key] = iri
        self._report.entries[new.at] = Entry(iri, entry.summary, entry.place, outcome if is_new else None)

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
        if entry.files:
            said["about"] = list(dict.fromkeys([*said.get("about", ()), *entry.files]))
        theirs = entry.fields.get("extra_triples", ())
        said["extra_triples"] = [*theirs, [f"{JIDO}localId", entry.key], [f"{JIDO}sourceDigest", entry.digest]]
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


def _waves(new: Iterable[_New]) -> Iterator[list[_New]]:
    """Yield what can be submitted together: each entry after those before it that it names."""
    depth: dict[str, int] = {}
    waves: dict[int, list[_New]] = defaultdict(list)
    for one in new:
        at = max((depth[key] + 1 for _, key in one.entry.links if key in depth), default=0)
        depth[one.entry.key] = max(at, depth.get(one.entry.key, 0))
        waves[at].append(one)
    yield from (waves[at] for at in sorted(waves))


def _alike(entry: ForeignEntry, versions: Iterable[_Version]) -> _Version | None:
    """Return the one of *versions* whose text is most like that of *entry*, None where none is like it."""
    rated = [
        (SequenceMatcher(None, entry.summary, version.summary).ratio(), version.item, version) for version in versions
    ]
    best = max(rated, key=lambda each: each[:2], default=None)
    return best[2] if best is not None and best[0] >= ALIKE else None
