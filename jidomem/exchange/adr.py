"""The import of Markdown decision records: all records of a folder as entries, in the order to
submit them.

`jidomem.exchange.adr_markdown` parses a file, `jidomem.exchange.adr_parser` reads one record. `resolve_links`
resolves which record supersedes or amends which: one successor each, no cycles; a relation that
cannot be resolved becomes a note.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from heapq import heappop, heappush
from itertools import pairwise
from posixpath import dirname, join, normpath
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from jidomem.base.words import topic_key
from jidomem.exchange.adr_markdown import Reference, number_in, number_of, ordered_dates, slug, stem, unnumbered
from jidomem.exchange.adr_parser import Record, RecordNote, Severity, read_record
from jidomem.exchange.importer import ForeignEntry
from jidomem.exchange.memory_md import Find, mentions
from jidomem.rdf.vocab import BASE
from jidomem.records.policy import LITERAL_LIMIT

_VERB = {"ends": "supersedes", "ended": "superseded by", "amends": "amends", "amended": "amended by"}
_NOWHERE = "which is neither in these files nor in memory"


class Links(NamedTuple):
    """The relations of records by name, the superseded records, and the order to submit in."""

    ends: Mapping[str, tuple[str, ...]]
    amends: Mapping[str, tuple[str, ...]]
    ended: frozenset[str]
    order: tuple[str, ...]
    notes: tuple[RecordNote, ...]


def resolve_links(
    records: Mapping[str, Record],
    known: Mapping[str, str] = MappingProxyType({}),
    moved: Mapping[str, str] = MappingProxyType({}),
) -> Links:
    """Return the links between *records* (by name).

    *known* are the paths of the records in memory, each with its title; those that are not in *records* can be
    superseded and amended too. *moved* maps each earlier path of a record to its present path.
    """
    resolver = _LinkResolver(records, known, moved)
    resolver.claim()
    resolver.choose_successors()
    order = resolver.order()
    ended = frozenset(old for olds in resolver.ends.values() for old in olds)
    return Links(_sorted(resolver.ends), _sorted(resolver.amends), ended, order, tuple(resolver.notes))


class _Claim(NamedTuple):
    """A statement of the record `by` that *new* supersedes *old*."""

    new: str
    old: str
    by: str
    line: int


class _LinkResolver:
    """The resolver of links: collects claims, chooses successors and sorts the records."""

    def __init__(self, records: Mapping[str, Record], known: Mapping[str, str], moved: Mapping[str, str]) -> None:
        self.records = records
        self.notes: list[RecordNote] = []
        self.claims: dict[str, list[_Claim]] = defaultdict(list)
        self.ends: dict[str, set[str]] = defaultdict(set)
        self.amends: dict[str, set[str]] = defaultdict(set)
        self.by_path = {normpath(record.path): name for name, record in records.items()}
        self.by_name: dict[str, list[str]] = defaultdict(list)
        self.by_number: dict[int | None, list[str]] = defaultdict(list)
        self.by_title: dict[str, list[str]] = defaultdict(list)
        for name, record in records.items():
            self.by_name[stem(record.path)].append(name)
            self.by_number[record.number].append(name)
            self.by_title[slug(record.title)].append(name)
        earlier = {path: self.by_path[now] for path, now in moved.items() if now in self.by_path}
        absent = {path: stem(path) for path in known if path not in earlier and stem(path) not in self.by_name}
        self.absent = {name: path for path, name in absent.items()}
        tables: tuple[dict[Any, list[str]], ...] = (self.by_name, self.by_number, self.by_title)
        present = [{None, "", *table} for table in tables]
        for path, name in {**earlier, **absent}.items():
            self.by_path.setdefault(path, name)
            keys = [stem(path)] if path in earlier else [name, number_of(path, ""), slug(known[path])]
            for table, own, key in zip(tables, present, keys, strict=False):
                if key not in own and name not in table[key]:
                    table[key].append(name)

    def note(self, severity: Severity, name: str, line: int | None, message: str) -> None:
        self.notes.append(RecordNote(self.records[name].path, None if line is None else line + 1, message, severity))

    def path(self, name: str) -> str:
        return self.records[name].path if name in self.records else self.absent.get(name, name)

    def find(self, record: Record, reference: Reference) -> list[str]:
        """Return the records a reference can mean: by file, else by number (first in its own folder), else by title."""
        address = urlsplit(reference.href or (reference.text if reference.text.endswith(".md") else ""))
        file = unquote(address.path)
        if file:
            present = self.by_path.get(normpath(join(dirname(record.path), file)))
            matches = [present] if present else self.by_name.get(stem(file), [])
            if matches or address.netloc or dirname(normpath(file)):
                return matches
        numbers = [number_in(text) for text in (reference.text, stem(file))]
        number = next((number for number in numbers if number is not None), None)
        numbered = self.by_number.get(number, []) if number is not None else []
        near = [each for each in numbered if dirname(self.path(each)) == dirname(record.path)]
        if chosen := near or [each for each in numbered if each in self.records]:
            return chosen
        return self.by_title.get(slug(unnumbered(reference.text)), [])

    def claim(self) -> None:
        """Resolve each reference to a record; one that matches no record or several stays text."""
        for name, record in self.records.items():
            for reference in record.references:
                self._claim(name, record, reference)

    def _claim(self, name: str, record: Record, reference: Reference) -> None:
        matches = self.find(record, reference)
        verb = f"{_VERB[reference.relation]} {' '.join(reference.text.split())!r}"
        if len(matches) != 1 or matches == [name]:
            names = f"which names {', '.join(map(self.path, matches))}" if matches else _NOWHERE
            names = "which is this record" if matches == [name] else names
            severity: Severity = "warning" if reference.relation in ("ends", "ended") else "info"
            self.note(severity, name, reference.line, f"{verb}, {names}; kept as text")
            return
        new, old = (name, matches[0]) if reference.relation in ("ends", "amends") else (matches[0], name)
        if new not in self.records:
            self.note("info", name, reference.line, f"{verb}, which is only in memory; kept as text")
        elif reference.relation in ("ends", "ended"):
            self.claims[old].append(_Claim(new, old, name, reference.line))
        else:
            self.amends[new].add(old)

    def choose_successors(self) -> None:
        """Choose one successor for each superseded record: the one that the record itself names, else the first."""
        for old, claims in self.claims.items():
            named = {claim.new for claim in claims if claim.by == old}
            standing = [claim for claim in claims if claim.new in named or not self._only_intends(claim)]
            standing.sort(key=lambda claim: claim.new not in named)
            for claim in standing:
                if claim.new != standing[0].new:
                    rivals = f"{self.path(claim.new)} supersedes {self.path(old)}, as does {self.path(standing[0].new)}"
                    message = f"{rivals}, and a memory has one successor; kept as text"
                    self.note("warning", claim.by, claim.line, message)
            for claim in standing[:1]:
                if (status := self.records[claim.new].status) in ("proposed", "rejected"):
                    message = f"superseded by {self.path(claim.new)}, which is {status}; it counts as superseded"
                    self.note("warning", old, claim.line, message)
            if standing:
                self.ends[standing[0].new].add(old)

    def _only_intends(self, claim: _Claim) -> bool:
        """Return whether the superseding record is proposed or rejected, so that its claim has no effect yet; add a
        note.
        """
        new = self.records[claim.new]
        if new.status not in ("proposed", "rejected"):
            return False
        self.note(
            "warning", claim.new, claim.line, f"{new.status}, so it does not supersede {self.path(claim.old)} yet"
        )
        return True

    def order(self) -> tuple[str, ...]:
        """Return the records in topological order, each after those it links to; other than that the order of the input
        stays. Links that form a cycle are removed.
        """
        place = {name: number for number, name in enumerate(self.records)}
        while True:
            sorter = TopologicalSorter({name: sorted(self.ends[name] | self.amends[name]) for name in self.records})
            try:
                sorter.prepare()
                break
            except CycleError as error:
                self._break_cycle([(new, old) for old, new in pairwise(error.args[1])])
        ready: list[tuple[int, str]] = []
        ordered: list[str] = []
        while sorter.is_active():
            for name in sorter.get_ready():
                heappush(ready, (place.get(name, -1), name))
            _, name = heappop(ready)
            ordered.append(name)
            sorter.done(name)
        return tuple(name for name in ordered if name in place)

    def _break_cycle(self, circle: list[tuple[str, str]]) -> None:
        """Remove the amendments of a cycle or, if it has none, the supersessions."""
        files = ", ".join(sorted({self.path(new) for new, _ in circle}))
        first = min((new for new, _ in circle), key=list(self.records).index)
        soft = [(new, old) for new, old in circle if old in self.amends[new]]
        for new, old in soft or circle:
            (self.amends if soft else self.ends)[new].discard(old)
        if soft:
            self.note("warning", first, None, f"amendments form a cycle: {files}; kept as text")
        else:
            self.note("error", first, None, f"supersessions form a cycle: {files}; none of them becomes a link")


def _sorted(links: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {new: tuple(sorted(olds)) for new, olds in links.items()}


__all__ = ["AdrReading", "RecordNote", "read_records", "record_iri"]


class AdrReading(NamedTuple):
    """The records as entries, each after those it supersedes or amends, and notes on the files.

    The key of an entry is the name of its file, or the path for a second file of the same name; its place is the path.
    `refused` are the notes on files that could not be read, `skipped` the notes on files without a record.
    """

    entries: tuple[ForeignEntry, ...]
    notes: tuple[RecordNote, ...]
    refused: frozenset[RecordNote] = frozenset()
    skipped: frozenset[RecordNote] = frozenset()


def record_iri(project: str, name: str) -> str:
    """Return the IRI of the first version of the record in the file *name*, without folders and extension."""
    return named_iri(f"adr\n{project}\n{name}")


def named_iri(text: str) -> str:
    """Return the IRI derived from *text*; the same text always has the same IRI.

    Its last part is a UUID of version 8 (RFC 9562): SHA-256 of the text, cut to 128 bits.
    """
    value = int.from_bytes(sha256(text.encode()).digest()[:16], "big")
    value = value & ~(0xF << 76) | 0x8 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    digits = f"{value:032x}"
    return f"{BASE}memory/{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def read_records(
    files: Sequence[tuple[str, bytes]],
    *,
    largest: int = LITERAL_LIMIT,
    known: Mapping[str, str] = MappingProxyType({}),
    find: Callable[[str], Find] = lambda path: lambda named: None,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> AdrReading:
    """Return an entry for every record in *files* (path and content).

    A decision is about its record and the files that the record names, if *find* of its path finds them. Links name the
    records it supersedes and amends: those in *files*, and those in memory (*known*: path and title). *moved* maps each
    earlier path of a record to its present path, so that links to the old path resolve.

    A note gives the reason for each file without an entry and for each part of a record that fits no field; such a part
    goes into the explanation. Each text of a record has at most *largest* bytes.
    """
    notes: list[RecordNote] = []
    records = _records(files, largest, notes)
    refused = frozenset(note for note in notes if note.severity == "error")
    skipped = frozenset(note for note in notes if note.is_skip)
    links = resolve_links(records, known, moved)
    notes += links.notes
    titles = Counter(topic_key(slug(record.title)) for record in records.values())
    first_of: dict[tuple[str, str], str] = {}
    paths = {path for path, _ in files}
    entries = []
    for name in links.order:
        record = records[name]
        named = mentions(f"{record.title}\n{record.rationale}\n{record.explanation}", find(record.path))
        topic = slug(record.title)
        status = _status(name, record, links, notes)
        if topic and status == "accepted" and name not in links.ended:
            first = first_of.setdefault((dirname(record.path), topic_key(topic)), record.path)
            if first != record.path:
                message = (
                    f"has the title of {first}, which is accepted too: its topic is its path, and they are not compared"
                )
                notes.append(RecordNote(record.path, None, message, "warning"))
        fields: dict[str, Any] = {
            "type": "architectural_decision",
            "summary": record.title,
            "detailed_explanation": record.explanation or None,
            "rationale": record.rationale,
            "confidence": "high" if status == "accepted" else "medium",
            "evidence": [*record.evidence],
            "topic": topic if topic and titles[topic_key(topic)] == 1 else slug(record.path),
            "status": status,
            "alternatives": [*record.alternatives],
            "timestamp": record.date,
            "valid_until": record.valid_until,
        }
        entries.append(
            ForeignEntry(
                name,
                record.path,
                {field: value for field, value in fields.items() if value not in (None, [])},
                links=(
                    *(("supersedes", old) for old in links.ends.get(name, ())),
                    *(("about", other) for other in links.amends.get(name, ())),
                ),
                files=(record.path, *(path for path in named if path not in paths)),
                content=_content(record),
            )
        )
    place = {path: number for number, (path, _) in enumerate(files)}
    ordered = sorted(notes, key=lambda note: (place[note.path], note.line or 0))
    return AdrReading(tuple(entries), tuple(ordered), refused, skipped)


def _content(record: Record) -> list[Any]:
    """Return the content of a record that its digest covers, independent of its path and of the links of others."""
    references = [[each.relation, each.text] for each in record.references]
    texts = [record.title, record.status, record.own_date, record.rationale, record.explanation]
    end = [record.valid_until] if record.valid_until else []  # no other record gets another digest
    return [*texts, [*record.alternatives], [*record.evidence], references, *end]


def _records(files: Sequence[tuple[str, bytes]], largest: int, notes: list[RecordNote]) -> dict[str, Record]:
    """Return the records by the name of their file, or by path for a second file of the same name."""
    records: dict[str, Record] = {}
    shown: dict[str, list[str]] = {}
    for path, content in dict(files).items():
        shown.setdefault(dirname(path), []).extend(ordered_dates(content.decode("utf-8", "replace")))
    for path, content in dict(files).items():
        record, record_notes = read_record(path, content, largest, shown[dirname(path)])
        notes += record_notes
        if record is None:
            continue
        name = stem(path)
        if name in records:
            other = records[name].path
            notes.append(
                RecordNote(
                    path, None, f"has the same name as {other}; identified by its path: import both together", "warning"
                )
            )
            name = path
        records[name] = record
    return records


def _status(name: str, record: Record, links: Links, notes: list[RecordNote]) -> str:
    """Return the decision status. A superseded record without a known successor becomes deprecated, so that agents do
    not follow it.
    """
    if record.status != "superseded":
        return record.status
    if name in links.ended:
        return "accepted"
    notes.append(
        RecordNote(record.path, None, "superseded without a link to its successor; imported as deprecated", "warning")
    )
    return "deprecated"
