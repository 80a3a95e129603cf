"""Markdown architecture decision records as entries to import: all of them, in an order the writer can keep.

`adr_page` takes one file apart, `adr_record` reads what it says, `adr_links` finds who supersedes whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from posixpath import dirname
from types import MappingProxyType
from typing import Any

from jidomem.exchange.adr_dates import ordered_dates
from jidomem.exchange.adr_links import Links, tie
from jidomem.exchange.adr_record import Note, Record, read_record
from jidomem.exchange.adr_words import slug, stem
from jidomem.exchange.foreign import ForeignEntry
from jidomem.exchange.mentions import Find, mentions
from jidomem.policy import LITERAL_LIMIT
from jidomem.vocab import BASE
from jidomem.words import topic_key

__all__ = ["AdrReading", "Note", "read_records", "record_iri"]


@dataclass(frozen=True, slots=True)
class AdrReading:
    """The records as entries, each after those it supersedes or amends, and what is to be said about the files.

    The key of an entry is the name of its file, for a second file of one name its path; its place is the path.
    `refused` are the notes, of them, that say why a record cannot be read, `skipped` those that say why a file is none.
    """

    entries: tuple[ForeignEntry, ...]
    notes: tuple[Note, ...]
    refused: frozenset[Note] = frozenset()
    skipped: frozenset[Note] = frozenset()


def record_iri(project: str, name: str) -> str:
    """Return the IRI of the first version of the record in a file called *name*, without folders and extension."""
    return named_iri(f"adr\n{project}\n{name}")


def named_iri(text: str) -> str:
    """Return the IRI of the memory that *text* names; it never changes.

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
    is_known: Callable[[str], bool] = lambda name: False,
    find: Callable[[str], Find] = lambda path: lambda named: None,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> AdrReading:
    """Return an entry for every record in *files* (path and content).

    A decision is about its record, and the files that the record names, as far as *find* of its path has them; links
    name the records it supersedes and amends, among the files or, as *is_known* tells by their names, in memory.
    *moved* gives, for the path that a record had before, its path now, so that links to the old path name it.

    A file that gives no entry has a note that says why, and so has all that found no field of its own; its words are
    then in the explanation. A text of a record has at most *largest* bytes.
    """
    notes: list[Note] = []
    records = _records(files, largest, notes)
    refused = frozenset(note for note in notes if note.severity == "error")
    skipped = frozenset(note for note in notes if note.is_skip)
    links = tie(records, is_known, moved)
    notes += links.notes
    titles = Counter(topic_key(slug(record.title)) for record in records.values())
    paths = {path for path, _ in files}
    entries = []
    for name in links.order:
        record = records[name]
        named = mentions(f"{record.title}\n{record.rationale}\n{record.explanation}", find(record.path))
        topic = slug(record.title)
        status = _status(name, record, links, notes)
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
    said = sorted(notes, key=lambda note: (place[note.path], note.line or 0))
    return AdrReading(tuple(entries), tuple(said), refused, skipped)


def _content(record: Record) -> list[Any]:
    """Return what a record says itself: not where its file is, nor what other records make of its status."""
    references = [[each.relation, each.text] for each in record.references]
    texts = [record.title, record.status, record.own_date, record.rationale, record.explanation]
    return [*texts, [*record.alternatives], [*record.evidence], references]


def _records(files: Sequence[tuple[str, bytes]], largest: int, notes: list[Note]) -> dict[str, Record]:
    """Return the records by the names of their files, for a second file of one name by its path."""
    records: dict[str, Record] = {}
    shown: dict[str, list[str]] = {}
    for path, content in dict(files).items():
        shown.setdefault(dirname(path), []).extend(ordered_dates(content.decode("utf-8", "replace")))
    for path, content in dict(files).items():
        record, said = read_record(path, content, largest, shown[dirname(path)])
        notes += said
        if record is None:
            continue
        name = stem(path)
        if name in records:
            other = records[name].path
            notes.append(
                Note(path, None, f"has the name of {other}; told apart by its path: import both together", "warning")
            )
            name = path
        records[name] = record
    return records


def _status(name: str, record: Record, links: Links, notes: list[Note]) -> str:
    """Return the decision status; superseded without a successor here is deprecated, so that nobody follows it."""
    if record.status != "superseded":
        return record.status
    if name in links.ended:
        return "accepted"
    notes.append(
        Note(record.path, None, "superseded, but no link to a successor could be kept; read as deprecated", "warning")
    )
    return "deprecated"
