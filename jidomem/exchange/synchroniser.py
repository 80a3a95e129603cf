"""The synchroniser: updates memory from the sources that it was imported from, in one commit.

It reads the imported memories of a project from its graph, each with its source and state, compares them with the
entries of the source files (`jidomem.exchange.sync_plan`) and submits the difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.containers import grouped
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError
from jidomem.exchange import adr, memory_md, other_formats
from jidomem.exchange.adr import named_iri, record_iri
from jidomem.exchange.adr_markdown import stem
from jidomem.exchange.importer import ImportedEntry, ImportReport, ParsedFile, SourceFile, UnreadableEntry
from jidomem.exchange.lineage import REMOVED, REPLACED, Lineage, SourceEntry, SourceVersion, key_in, lineages
from jidomem.exchange.memory_md import Find
from jidomem.exchange.other_formats import STATEMENT
from jidomem.exchange.sync_plan import SyncPlan, SyncStep, end_of, moved_records, plan
from jidomem.index.search_documents import other_records, properties_of
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import Term, iri, is_iri, plain_value
from jidomem.rdf.vocab import JIDO, LABEL, REDACTED, TYPE, UNDATED, graph_iri, jido, local_name
from jidomem.read.reader import MemoryReader
from jidomem.records.file_anchor import Anchor, anchors_of, path_of
from jidomem.records.intent import Receipt
from jidomem.records.policy import LITERAL_LIMIT
from jidomem.repository.other_tools import ADR, GRAPH, ISSUES, NOTES
from jidomem.repository.worktree import blob_id
from jidomem.write import secrets
from jidomem.write.corrections import OWN
from jidomem.write.snapshot import ENDS
from jidomem.write.submission import SubmitOptions
from jidomem.write.writer import MemoryWriter

LOCAL_ID, DIGEST, LINE = jido("localId"), jido("sourceDigest"), jido("sourceLine")
BLOB, PREVIOUS, STATE = jido("sourceBlob"), jido("previousImport"), jido("sourceState")
_STATUS, _ASSERTED, _PROPOSED = jido("hasAssertionStatus"), jido("Asserted"), jido("Proposed")
_REDACTED_ITEM = jido("redactedItem")
#: The states of a proposal to withdraw a memory.
_PENDING, _SETTLED, _RETURNED = "pending", "settled", "returned"
#: The properties of an imported memory that may be edited here.
_CONTENT = (
    "summary", "detailedExplanation", "rationale", "topic", "decisionStatus", "hasTaskStatus", "hasErrorStatus",
    "severityLevel", "conventionName", "hasConventionScope", "hasEnforcementLevel",
)  # fmt: skip
#: The IRI of a record that version 0.1.0 imported: only `about` names its source.
_OF_A_NAME = re.compile(r".*/memory/[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-")

Properties = Mapping[Term, list[Term]]


def imported(index: OxigraphIndex, project: str, paths: Collection[str] | None = None) -> list[SourceVersion]:
    """Return the memories of *project* that have a source; with *paths*, those of these files alone."""
    graph = graph_iri(project)
    items = dict.fromkeys(subject for name in (DIGEST, BLOB) for subject, _, _ in index.triples(graph, None, name))
    redacted = (item for _, _, item in index.triples(graph, None, _REDACTED_ITEM))  # without a digest
    items |= dict.fromkeys(item for item in redacted if any(True for _ in index.triples(graph, item, LOCAL_ID)))
    records = (subject for subject, _, _ in index.triples(graph, None, TYPE, jido("ArchitecturalDecision")))
    items |= dict.fromkeys(subject for subject in records if _OF_A_NAME.match(subject))
    elsewhere = set() if paths is None else _items_elsewhere(index, graph, paths)
    others = grouped((item, record) for record, item in other_records(index, graph, items).items())
    left_out = elsewhere.union(*others.values())
    wanted = ((item, *others.get(item, ())) for item in items if item not in left_out)
    versions = filter(None, (_version(index, graph, project, *each) for each in wanted))
    return [version for version in versions if paths is None or version.path in paths]


def _items_elsewhere(index: OxigraphIndex, graph: str, paths: Collection[str]) -> set[Term]:
    """Return the items whose source is recorded, and is none of *paths*."""
    is_here = cache(lambda blob: {anchor.path for anchor in anchors_of([blob])}.issubset(paths))
    sources = [(item, is_here(blob)) for item, _, blob in index.triples(graph, None, BLOB)]
    return {item for item, _ in sources} - {item for item, here in sources if here}


def _version(index: OxigraphIndex, graph: str, project: str, item: Term, *others: Term) -> SourceVersion | None:
    """Return *item*, with its *others* by other branches, as a version; None if it was imported from no record."""
    properties = properties_of(index, graph, item)
    digests = [value for each in (item, *others) for _, _, value in index.triples(graph, each, DIGEST)]
    kind = _kind(properties)
    path = next((anchor.path for anchor in anchors_of(properties.get(BLOB, ()))), None)
    if path is None:
        path = _record_path(project, item, properties) if kind == ADR else _path_in_evidence(index, graph, properties)
    if path is None:
        return None
    ends = [end for link in ENDS for end in properties.get(link, ())]
    states = [value for end in ends for _, _, value in index.triples(graph, end, STATE)]
    withdrawals = [*_withdrawals(index, graph, item)]
    return SourceVersion(
        iri=plain_value(item),
        kind=kind,
        path=path,
        key="" if kind == ADR else key_in(path, plain_value(next(iter(properties.get(LOCAL_ID, ())), '""'))),
        digest=" ".join(sorted(map(plain_value, digests))) or None,
        summary=next(map(plain_value, properties.get(jido("summary"), ())), REDACTED),
        content=frozenset((name, _plain(value)) for name in _CONTENT for value in properties.get(jido(name), ())),
        is_asserted=_ASSERTED in properties.get(_STATUS, ()),
        recorded=min(map(_moment, properties.get(jido("recordedAt"), ())), default=""),
        supersedes=_iris(properties, "supersedes"),
        revives=_iris(properties, "revives"),
        previous=_iris(properties, "previousImport"),
        ended_by=tuple(map(plain_value, ends)),
        is_withdrawn=jido("invalidatedBy") in properties,
        withdrawn_as=next(map(plain_value, states), None),
        withdrawals=tuple(plain_value(marker) for marker, state in withdrawals if state == _PENDING),
        is_doubted=any(state != _RETURNED for _, state in withdrawals),
        returns=sum(state == _RETURNED for _, state in withdrawals),
        is_redacted=any(True for _ in index.triples(graph, None, _REDACTED_ITEM, item)),
    )


def _withdrawals(index: OxigraphIndex, graph: str, item: Term) -> Iterator[tuple[Term, str]]:
    """Yield the proposals of synchronisations to withdraw *item*, each with its state.

    A proposal is pending, settled, or returned: withdrawn by a synchronisation since the source came back.
    """
    for marker, _, _ in index.triples(graph, None, jido("invalidates"), item):
        properties = properties_of(index, graph, marker)
        if STATE not in properties or _PROPOSED not in properties.get(_STATUS, ()):
            continue
        ends = [end for link in ENDS for end in properties.get(link, ())]
        has_returned = any(True for end in ends for _ in index.triples(graph, end, STATE))
        yield marker, _RETURNED if has_returned else _SETTLED if ends else _PENDING


def _kind(properties: Properties) -> str:
    if iri(STATEMENT) in properties:
        return GRAPH
    sources = {local_name(value) for value in properties.get(jido("hasSourceType"), ())}
    return NOTES if "ExternalDocumentSource" in sources else ISSUES if "ToolSource" in sources else ADR


def _record_path(project: str, item: Term, properties: Properties) -> str | None:
    """Return the path of the record that *item* is about, if the IRI of *item* derives from its name or path."""
    paths = [plain_value(value) for value in properties.get(jido("about"), ()) if not is_iri(value)]
    names = ((path, name) for path in paths for name in (stem(path), path))
    return next((path for path, name in names if plain_value(item) == record_iri(project, name)), None)


def _path_in_evidence(index: OxigraphIndex, graph: str, properties: Properties) -> str:
    """Return the file that the evidence of a memory names, as in `issues.jsonl: bd-1`."""
    nodes = properties.get(jido("derivedFrom"), ())
    labels = [plain_value(value) for node in nodes if is_iri(node) for _, _, value in index.triples(graph, node, LABEL)]
    return next((label.split(": ", 1)[0] for label in labels), "")


def _iris(properties: Properties, name: str) -> tuple[str, ...]:
    return tuple(map(plain_value, properties.get(jido(name), ())))


def _plain(value: Term) -> str:
    return local_name(value) if is_iri(value) else plain_value(value)


def _moment(value: Term) -> str:
    """Return a timestamp in canonical form; an index omits the zeros at the end of its fraction."""
    moment = parse_moment(plain_value(value))
    return format_timestamp(moment) if moment else plain_value(value)


_UNREAD = "make it UTF-8 (iconv -f latin1 -t utf-8 FILE) or shorter, or leave it out: mv FILE FILE.txt"
_READERS: Mapping[str, Callable[[str, bytes, Find], ParsedFile]] = {
    NOTES: memory_md.read,
    GRAPH: lambda path, data, find: other_formats.read_mcp_memory(path, data),
    ISSUES: lambda path, data, find: other_formats.read_beads(path, data),
}


@dataclass(slots=True)
class SourceEntries:
    """The entries of some files, and notes on them.

    `passed` are the files without a record, each with the reason. `whole` are the files of which every entry was read,
    so that an entry missing here is not in them; `partly` has the keys of the refused entries of others, "" if unknown.
    """

    entries: list[SourceEntry] = field(default_factory=list)
    broken: list[UnreadableEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    partly: dict[str, set[str]] = field(default_factory=dict)


def read_sources(
    files: Sequence[SourceFile],
    *,
    largest: int = LITERAL_LIMIT,
    known: Mapping[str, str] = MappingProxyType({}),
    find: Callable[[str], Find] = lambda path: lambda named: None,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> SourceEntries:
    """Return the entries of *files*, decision records first; an entry that a file repeats counts once.

    *find* returns, for the path of a file, the function that resolves words of it to files. *known* are the
    records in memory, path and title, and *moved* maps earlier paths of records to present ones.
    """
    sources = SourceEntries(broken=[refusal for file in files if (refusal := file.unresolved()) is not None])
    files = [file for file in files if file.unresolved() is None]
    records = [file for file in files if file.kind == ADR]
    if records:
        _read_records(records, sources, largest, known, find, moved)
    for file in files:
        if file.kind != ADR:
            reading = _READERS[file.kind](file.path, file.data, find(file.path))
            _add(file, reading, sources)
    return sources


def _read_records(
    files: Sequence[SourceFile],
    sources: SourceEntries,
    largest: int,
    known: Mapping[str, str],
    find: Callable[[str], Find],
    moved: Mapping[str, str],
) -> None:
    by_path = {file.path: file for file in files}
    pairs = [(file.path, file.data) for file in files]
    reading = adr.read_records(pairs, largest=largest, known=known, find=find, moved=moved)
    for entry in reading.entries:
        blob = blob_id(by_path[entry.place].data)
        sources.entries.append(SourceEntry.of(ADR, entry.place, blob, entry, source_type=None, alone=True))
    for note in reading.notes:
        if note in reading.refused:
            sources.broken.append(UnreadableEntry(note.path, InvalidRequest(note.message, hint=_UNREAD)))
        elif note in reading.skipped:
            sources.passed.append((note.path, note.reason))
        else:
            place = f"{note.path}:{note.line}" if note.line else note.path
            sources.notes.append(f"{place}: {note.severity}: {note.message}")
    sources.whole |= by_path.keys() - {note.path for note in reading.refused}


def _add(file: SourceFile, reading: ParsedFile, sources: SourceEntries) -> None:
    blob, known = blob_id(file.data), set[tuple[str, str]]()
    for entry in reading.entries:
        if (entry.key, entry.digest) in known:
            sources.left_out["repeated in the file"] += 1
            continue
        known.add((entry.key, entry.digest))
        sources.entries.append(
            SourceEntry.of(file.kind, file.path, blob, entry, source_type=reading.source_type, alone=reading.alone)
        )
    sources.broken += reading.broken
    sources.notes += reading.notes
    sources.left_out.update(reading.left_out)
    sources.places += reading.places
    if reading.broken:
        sources.partly[file.path] = {each.key for each in reading.broken}
    else:
        sources.whole.add(file.path)


_SHOWN = 10_000  # longest summary of a withdrawal, in characters
#: The approximate bytes of memories in one batch, a part of the limit of a commit, and the least bytes of one memory.
_AT_ONCE, _LEAST = 8 << 20, 4_000
_SOURCE = frozenset(map(plain_value, (LOCAL_ID, DIGEST, BLOB, LINE, PREVIOUS)))
_ENDED = (REPLACED, REMOVED)
_REASON = {
    "added": "Its source supersedes it.",
    "changed": "It changed where it was imported from.",
    "conflict": "It changed where it was imported from, and was settled otherwise here.",
    "moved": "Its source was moved.",
}
Outcome = Receipt | JidomemError
#: Returns the moments of the first commits of files, where git has them.
Committed = Callable[[Collection[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class SourceScan:
    """The scope of a scan: *is_deleted* returns whether a file was removed, *covers* whether the source of a lineage is
    in the scanned part, so that its absence means removal.
    """

    is_deleted: Callable[[str], bool] = lambda path: False
    covers: Callable[[Lineage], bool] = lambda lineage: False


def imported_lineages(writer: MemoryWriter, reader: MemoryReader, project: str) -> list[Lineage]:
    """Return the lineages of all imported memories of *project*."""
    writer.refresh(project)
    return lineages(imported(reader.index, project))


@dataclass(frozen=True, slots=True)
class Synchronisation:
    """The intents that update memory from its sources; `submit` writes them."""

    writer: MemoryWriter
    project: str
    sources: SourceEntries
    known: Sequence[Lineage]
    plan: SyncPlan
    texts: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        writer: MemoryWriter,
        reader: MemoryReader,
        project: str,
        files: Sequence[SourceFile],
        scan: SourceScan = SourceScan(),
        *,
        find: Callable[[str], Find] = lambda path: lambda named: None,
        known: Sequence[Lineage] | None = None,
    ) -> Synchronisation:
        """Return the synchronisation of the memory of *project* with *files*; nothing is written.

        *find* returns, for the path of a file, the function that resolves words of it to files. *known* is a current
        result of `imported_lineages` (default: computed here).
        """
        if known is None:
            known = imported_lineages(writer, reader, project)
        records = {each.newest.path: each.newest.summary for each in known if each.newest.kind == ADR}
        read = partial(read_sources, files, largest=writer.literal, known=records, find=find)
        sources = read()

        def is_absent(path: str) -> bool:
            return path in sources.whole or scan.is_deleted(path)

        def is_removed(lineage: Lineage) -> bool:
            path, refused = lineage.newest.path, sources.partly.get(lineage.newest.path)
            is_read = path in sources.whole or (refused is not None and refused.isdisjoint(("", lineage.newest.key)))
            return is_read or (scan.covers(lineage) and scan.is_deleted(path))

        if moved := moved_records(sources.entries, known, is_absent):
            sources = read(moved=moved)
        planned = plan(sources.entries, known, is_absent=is_absent, is_removed=is_removed)
        matched = {id(step.lineage) for step in planned.steps}
        left = (each.newest.path for each in known if each.current is not None and id(each) not in matched)
        missing = Counter(path for path in left if "" in sources.partly.get(path, ()))
        sources.notes += [
            f"{path}: warning: entries that are missing: {count}, removed or refused; correct the refused ones first"
            for path, count in missing.items()
        ]
        return cls(writer, project, sources, known, planned, {file.path: file.data for file in files})

    def submit(self, committed: Committed = lambda paths: {}, *, dry_run: bool = False) -> ImportReport:
        """Submit the intents, in one commit if it can contain all, and return the outcome of each entry; with *dry_run*
        nothing is written.

        A refused entry does not stop the others. Records without a date get the moment of their first commit. Raises
        Failed if the journal cannot be written.
        """
        report = ImportReport(
            notes=[*self.sources.notes],
            left_out=self.sources.left_out,
            places=self.sources.places,
            passed=self.sources.passed,
        )
        report.entries += [ImportedEntry("", "", broken.place, broken.error) for broken in self.sources.broken]
        written = [step for step in self.plan.steps if step.write]
        intents, outcomes = Intents(self, written, committed), list[Outcome]()
        ends = {
            state: [iri for step in self.plan.steps if _state(step) == state for iri in step.ends] for state in _ENDED
        }
        for steps, is_last in [(written, True)] if dry_run else _batches(written):
            if steps or any(ends.values()):
                batch = intents.batch(steps, ends if is_last else {})
                outcomes += self.writer.submit_together(self.project, batch, dry_run=dry_run)[: len(intents.submitted)]
        outcome_of = {id(step): outcome for step, outcome in zip(intents.submitted, outcomes, strict=True)}
        refused = {id(step): refusal for step in self.plan.steps if (refusal := refusal_of(step)) is not None}
        report.entries += [
            self._placed(step, _entry(step, refused.get(id(step)) or outcome_of.get(id(step))))
            for step in self.plan.steps
        ]
        report.notes += [*intents.notes, *report.decisions_nearby()]
        return report

    def secret_of(self, step: SyncStep) -> tuple[str, str] | None:
        """Return place (file and line) and kind of a likely secret in the entry of a step, or None."""
        if step.entry is None or (kind := _secret_in(step.entry.entry.fields)) is None:
            return None
        end = step.place.removeprefix(f"{step.path}:")
        first = int(end) if end.isdecimal() else step.entry.entry.line or 1
        lines = self.texts.get(step.path, b"").decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines[first - 1 :], first):
            if (secret := secrets.find(line)) is not None:
                return f"{step.path}:{number}", secret.kind
        return step.place, kind

    def _placed(self, step: SyncStep, entry: ImportedEntry) -> ImportedEntry:
        """Return *entry*; if it was refused for a likely secret, with the line of the secret and without its text."""
        if not isinstance(entry.outcome, IntentRefused) or (secret := self.secret_of(step)) is None:
            return entry
        return replace(entry, place=secret[0], summary=without_secret(entry.summary))


def without_secret(summary: str) -> str:
    """Return *summary*, or a placeholder if it contains a likely secret."""
    return summary if secrets.find(summary) is None else "(not shown: it contains a likely secret)"


def _secret_in(value: Any) -> str | None:
    """Return the kind of the first likely secret in the texts of *value*, or None."""
    if isinstance(value, str):
        return secret.kind if (secret := secrets.find(value)) is not None else None
    within = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return next(filter(None, map(_secret_in, within)), None)


def refusal_of(step: SyncStep) -> InvalidRequest | None:
    """Return the refusal of an entry that may contain a text redacted from a memory, else None."""
    if (holder := step.holder) is None:
        return None
    hint = f"take the text out of {step.path}"
    if holder.is_live:
        hint += f", then end the redacted memory and import again: {end_of(holder)}"
    return InvalidRequest(
        f"it may contain the text that was redacted from {holder.iri}, which was imported from {holder.path}", hint=hint
    )


def _batches(steps: Sequence[SyncStep]) -> Iterator[tuple[Sequence[SyncStep], bool]]:
    """Yield the steps of each commit, and whether they are the last; most imports fit in one commit."""
    first = size = 0
    for number, step in enumerate(steps):
        weight = _weight(step)
        if number > first and size + weight > _AT_ONCE:
            yield steps[first:number], False
            first, size = number, 0
        size += weight
    yield steps[first:], True


def _weight(step: SyncStep) -> int:
    """Return the approximate bytes of the memory of a step in a commit; a triple counts as a hundred."""
    if step.entry is None:
        return _LEAST
    entry = step.entry.entry
    lists = len(entry.files) + len(entry.links) + 10 * len(entry.fields.get("alternatives", ()))
    return _LEAST + 100 * lists + sum(len(str(value).encode()) for value in entry.fields.values())


def _entry(step: SyncStep, outcome: Outcome | None) -> ImportedEntry:
    """Return the outcome of a step; a memory that another import wrote meanwhile counts as unchanged."""
    change, lineage = step.change, step.lineage
    iri = (lineage.current or lineage.newest).iri if lineage else ""
    about = step.entry.entry.files if step.entry is not None and outcome is not None else ()
    if isinstance(outcome, JidomemError):
        outcome.position = None  # the entry states the place
        if outcome.code == "iri_exists":
            change, outcome = "unchanged", None
    elif outcome is not None:
        iri = outcome.iri
    return ImportedEntry(
        iri, step.summary, step.place, outcome, change, step.kind, step.path, step.moved_from, step.note, about
    )


@dataclass(slots=True)
class Intents:
    """The intents of a synchronisation: one for each step of *written*, and those that withdraw stale proposals.

    `notes` are remarks on them, and `submitted` the steps whose intents were submitted, complete after the last batch.
    """

    synchronisation: Synchronisation
    written: Sequence[SyncStep]
    committed: Committed
    notes: list[str] = field(default_factory=list)
    submitted: list[SyncStep] = field(default_factory=list)
    _made: dict[tuple[str, str], str] = field(default_factory=dict)
    _lineage_of: dict[tuple[str, str], Lineage] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _dates: Mapping[str, str] = field(default_factory=dict)
    _restated: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = {version.iri for lineage in self.synchronisation.known for version in lineage.versions}
        known = sorted(self.synchronisation.known, key=lambda each: bool(each.active))
        self._lineage_of = {(ADR, stem(each.newest.path)): each for each in known if each.newest.kind == ADR}
        for step in self.synchronisation.plan.steps:
            if step.entry is not None:
                self._lineage_of.pop(_key(step.entry), None)
                if step.lineage is not None:
                    self._lineage_of[_key(step.entry)] = step.lineage
        undated = [step.path for step in self.written if step.entry and _is_undated(step.entry)]
        self._dates = self.committed(undated) if undated else {}
        moved = [step.lineage.active[0].iri for step in self.written if step.lineage and step.write == "relocation"]
        self._restated = {iri: self.synchronisation.writer.restated(self.synchronisation.project, iri) for iri in moved}

    def batch(
        self, steps: Sequence[SyncStep], ends: Mapping[str, Sequence[str]]
    ) -> Callable[[Sequence[Outcome]], Iterator[tuple[Mapping[str, Any], SubmitOptions]]]:
        """Return a generator function for the intents of *steps* and of *ends*; each call of it yields the same
        intents.
        """
        before = len(self.notes), len(self.submitted), dict(self._made)
        return partial(self._intents, steps, ends, before)

    def _intents(
        self,
        steps: Sequence[SyncStep],
        ends: Mapping[str, Sequence[str]],
        before: tuple[int, int, Mapping[tuple[str, str], str]],
        outcomes: Sequence[Outcome],
    ) -> Iterator[tuple[Mapping[str, Any], SubmitOptions]]:
        """Yield each intent with its options, after the *outcomes* of the preceding intents."""
        notes_before, first, made = before
        del self.notes[notes_before:], self.submitted[first:]
        self._made = dict(made)
        ending = frozenset(iri for step in self.written for iri in self._ended_by(step))
        taken = self._taken | set(self._made.values())
        for step in steps:
            if step.write == "withdrawal":
                self.submitted.append(step)
                yield self._removal(step), SubmitOptions(propose=True)
                continue
            values = self._relocated(step) if step.write == "relocation" else self._values(step)
            if _only_links(step) and set(values.get("supersedes", ())) == set(step.supersedes):
                continue  # the memory it would supersede was refused
            values["iri"] = self._iri(step, taken)
            taken.add(values["iri"])
            relocates = step.write == "relocation" and self._is_about_the_same(step, values)
            propose = step.write == "proposal" or (not relocates and step.entry is not None and step.entry.kind != ADR)
            self.submitted.append(step)
            yield values, SubmitOptions(propose=propose, ending=ending, relocates=relocates)
            if step.entry and isinstance(outcomes[len(self.submitted) - first - 1], Receipt):
                self._made[_key(step.entry)] = values["iri"]
        for state, items in ends.items():
            if items:
                yield self._ending(items, state), SubmitOptions()

    def _ended_by(self, step: SyncStep) -> Iterator[str]:
        """Yield the existing memories that *step* ends: the older version of its entry, and those that the entry
        supersedes.
        """
        if step.entry is not None:
            yield from step.supersedes
            for key in (key for name, key in (*step.entry.entry.links, *_inherited(step)) if name == "supersedes"):
                lineage = self._lineage_of.get((step.entry.kind, key))
                yield from (each.iri for each in lineage.active) if lineage else ()

    def _values(self, step: SyncStep) -> dict[str, Any]:
        """Return the intent of an entry, which supersedes its earlier version."""
        entry = step.entry
        assert entry is not None
        fields = dict(entry.entry.fields)
        values: dict[str, Any] = {**self._import_fields(), "source_type": entry.source_type, **fields}
        if entry.kind == ADR and _is_undated(entry) and entry.path in self._dates:
            values["timestamp"] = self._dates[entry.path]
        is_undated = entry.kind == ADR and "timestamp" not in values
        values["about"] = [*dict.fromkeys([*fields.get("about", ()), *entry.entry.files])]
        values["extra_triples"] = [*fields.get("extra_triples", ()), *self._source(step)]
        values["extra_triples"] += [[UNDATED, True]] if is_undated else []
        values["supersedes"], values["revives"] = [*step.supersedes], [*step.revives]
        self._link(values, step)
        if values["supersedes"] or step.revives:
            values["reason"] = f"{step.path}: {step.note}" if "→" in step.note else _REASON.get(step.change)
        return {name: value for name, value in values.items() if value not in (None, [])}

    def _link(self, values: dict[str, Any], step: SyncStep) -> None:
        """Add the links of an entry to others. A link to an entry not yet imported, as in a cycle, is left out with a
        note.
        """
        entry = step.entry
        assert entry is not None
        for name, key in (*entry.entry.links, *_inherited(step)):
            lineage = self._lineage_of.get((entry.kind, key))
            before = [each.iri for each in lineage.active] if lineage else []
            if name == "supersedes":
                made = self._made.get((entry.kind, key))
                values[name] += [each for each in ([made] if made else before) if each not in values[name]]
                continue
            current = lineage.current.iri if lineage and lineage.current else None
            other = self._made.get((entry.kind, key)) or current
            if other is None:
                why = "it is not imported yet" if lineage is None else "its memory has ended"
                self.notes.append(f"{entry.entry.place}: the link to {key:.80} is left out: {why}")
            elif name in ("about", "evidence"):
                values[name] = [*values.get(name, ()), other]
            else:
                values["extra_triples"].append([JIDO + name, {"@id": other}])

    def _relocated(self, step: SyncStep) -> dict[str, Any]:
        """Return the intent of the same memory with the new path of its source."""
        entry, lineage = step.entry, step.lineage
        assert entry is not None
        assert lineage is not None
        old = lineage.active[0]
        restated = self._restated[old.iri]
        values = {name: value for name, value in restated.items() if name not in OWN}
        given = [path if path != old.path else entry.path for path in restated.get("about", ())]
        if not lineage.is_edited:
            given = [
                *entry.entry.fields.get("about", ()),
                *entry.entry.files,
                *(each for each in given if "://" in each),
            ]
        extra = [triple for triple in restated.get("extra_triples", ()) if triple[0] not in _SOURCE]
        evidence = [f"{entry.path}{text.removeprefix(old.path)}" if text.startswith(f"{old.path}: ") else text
                    for text in restated.get("evidence", ())]  # fmt: skip
        values |= {"about": [*dict.fromkeys(given)], "evidence": evidence, "reason": _REASON["moved"]}
        values |= {"extra_triples": [*extra, *self._source(step)], "supersedes": [*step.supersedes]}
        return {**values, **self._import_fields(confidence=restated.get("confidence"))}

    def _is_about_the_same(self, step: SyncStep, values: Mapping[str, Any]) -> bool:
        """Return whether a moved memory is about the same files and things as before, except for its own file."""
        assert step.lineage is not None
        assert step.entry is not None
        restated = self._restated[step.lineage.active[0].iri]
        own = {step.lineage.active[0].path, step.entry.path}
        return step.entry.kind == ADR or set(restated.get("about", ())) - own == set(values["about"]) - own

    def _removal(self, step: SyncStep) -> dict[str, Any]:
        """Return the proposal to withdraw the memories of a removed source.

        Its IRI is deterministic, so that several processes create the proposal only once.
        """
        summary = f"Withdraw, as its source is removed from {step.path}: {step.summary}"
        active = step.lineage.active if step.lineage else ()
        parts = ["withdraw", self.synchronisation.project, *(f"{each.iri} {each.returns}" for each in active)]
        marker = self._marker(summary, f"It is no longer in {step.path}.", step.supersedes, REMOVED)
        return {**marker, "iri": named_iri("\n".join(parts))}

    def _ending(self, ends: Sequence[str], state: str) -> dict[str, Any]:
        """Return the withdrawal of proposals that their source no longer contains."""
        several = f"{len(ends)} proposals whose sources" if len(ends) > 1 else "a proposal whose source"
        verb = "are" if len(ends) > 1 else "is"
        became = f"{verb} removed" if state == REMOVED else "changed or came back"
        return self._marker(f"Withdrawn: {several} {became}", "The sources were imported again.", ends, state)

    def _marker(self, summary: str, why: str, ends: Sequence[str], state: str) -> dict[str, Any]:
        marker = {"type": "deleted_marker", "summary": summary[:_SHOWN], "rationale": why, "invalidates": [*ends]}
        return {**self._import_fields(confidence="high"), **marker, "extra_triples": [[plain_value(STATE), state]]}

    def _import_fields(self, confidence: Any = None) -> dict[str, Any]:
        writer = self.synchronisation.writer
        return {
            "applies_to_project": self.synchronisation.project,
            "asserted_by": writer.agent,
            "asserted_in": writer.session,
            "confidence": confidence or "medium",
        }

    def _source(self, step: SyncStep) -> list[list[Any]]:
        entry = step.entry
        assert entry is not None
        digest = entry.digest
        rows: list[list[Any]] = [[plain_value(LOCAL_ID), entry.entry.key], [plain_value(DIGEST), digest]]
        if path_of(entry.path) == entry.path:
            rows.append([plain_value(BLOB), str(Anchor(entry.path, entry.blob))])
            if entry.entry.line is not None:
                rows.append([plain_value(LINE), entry.entry.line])
        if step.lineage is not None:
            rows.append([plain_value(PREVIOUS), {"@id": step.lineage.newest.iri}])
        return rows

    def _iri(self, step: SyncStep, taken: Collection[str]) -> str:
        """Return the IRI of a version, derived from the content and the preceding version."""
        entry = step.entry
        assert entry is not None
        if entry.kind == ADR and step.lineage is None:
            first = record_iri(self.synchronisation.project, entry.entry.key)
            if first not in taken:
                return first
        before = step.lineage.newest.iri if step.lineage else ""
        parts = ["import", self.synchronisation.project, entry.kind, entry.path, entry.key, entry.digest, before]
        iri = named_iri("\n".join(parts))
        while iri in taken:
            iri = named_iri(f"{iri}\n{before}")
        return iri


def _inherited(step: SyncStep) -> Iterator[tuple[str, str]]:
    return (("supersedes", key) for key in step.inherits)


def _key(entry: SourceEntry) -> tuple[str, str]:
    return entry.kind, entry.entry.key


def _only_links(step: SyncStep) -> bool:
    """Return whether memory has the content of an entry, and the step only writes its supersessions."""
    current = step.lineage.current if step.lineage and step.write in ("version", "proposal") else None
    return current is not None and step.entry is not None and step.change != "moved" and step.entry.matches(current)


def _is_undated(entry: SourceEntry) -> bool:
    return entry.kind == ADR and not entry.entry.fields.get("timestamp")


def _state(step: SyncStep) -> str:
    return REMOVED if step.change == "removed" else REPLACED
