"""Turn Markdown architecture decision records into intents: all of them, in an order the writer can keep.

`adr_page` takes one file apart, `adr_record` reads what it says, `adr_links` finds who supersedes whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from jidomem.exchange.adr_links import Links, tie
from jidomem.exchange.adr_record import Note, Record, read_record
from jidomem.exchange.adr_words import slug, stem
from jidomem.exchange.mentions import Find, mentions
from jidomem.intent import MemoryUpdateIntent
from jidomem.policy import LITERAL_LIMIT
from jidomem.vocab import BASE

__all__ = ["AdrImport", "Note", "read_records", "record_iri"]


@dataclass(frozen=True, slots=True)
class AdrImport:
    """Intents, each after those it supersedes or amends, and what is to be said about the files, file by file.

    `refused` are the notes, of them, that say why a record cannot be read, `skipped` those that say why a file is none.
    """

    intents: tuple[MemoryUpdateIntent, ...]
    notes: tuple[Note, ...]
    refused: frozenset[Note] = frozenset()
    skipped: frozenset[Note] = frozenset()


def record_iri(project: str, name: str) -> str:
    """Return the IRI of the record in a file called *name*, without folders and extension; it never changes.

    Its last part is a UUID of version 8 (RFC 9562): SHA-256 of project and name, cut to 128 bits.
    """
    value = int.from_bytes(sha256(f"adr\n{project}\n{name}".encode()).digest()[:16], "big")
    value = value & ~(0xF << 76) | 0x8 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    digits = f"{value:032x}"
    return f"{BASE}memory/{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def read_records(
    files: Sequence[tuple[str, bytes]],
    *,
    project: str,
    agent: str,
    session: str,
    largest: int = LITERAL_LIMIT,
    known: Callable[[str], bool] = lambda iri: False,
    find: Callable[[str], Find] = lambda path: lambda named: None,
    committed: Callable[[Collection[str]], Mapping[str, str]] = lambda paths: {},
) -> AdrImport:
    """Return an intent for every record in *files* (path and content) whose IRI is not *known* already.

    A decision is about its record, and the files that the record names, as far as *find* of its path has them. Records
    that have no date have the moment of their first commit, as far as *committed* of their paths has it.

    A file that gives no intent has a note that says why, and so has all that found no field of its own; its words are
    then in the explanation. A text of a record has at most *largest* bytes.
    """
    notes: list[Note] = []
    records = _records(files, project, largest, notes)
    refused = frozenset(note for note in notes if note.severity == "error")
    skipped = frozenset(note for note in notes if note.is_skip)
    links = tie(records, lambda name: record_iri(project, name), known)
    notes += links.notes
    titles = Counter(slug(record.title) for record in records.values())
    paths = {path for path, _ in files}
    dates = _dates([records[iri] for iri in links.order if not known(iri)], committed)
    intents = []
    for iri in links.order:
        record = records[iri]
        if known(iri):
            notes.append(Note(record.path, None, f"already imported as {iri}; changes since are not read", "info"))
            continue
        status = _status(iri, record, links, notes)
        named = mentions(f"{record.title}\n{record.rationale}\n{record.explanation}", find(record.path))
        topic = slug(record.title)
        unique = topic and titles[topic] == 1
        intents.append(
            MemoryUpdateIntent(
                type="architectural_decision",
                iri=iri,
                summary=record.title,
                detailed_explanation=record.explanation or None,
                rationale=record.rationale,
                applies_to_project=project,
                asserted_by=agent,
                asserted_in=session,
                confidence="high" if status == "accepted" else "medium",
                evidence=list(record.evidence),
                supersedes=list(links.ends.get(iri, ())),
                topic=topic if unique else slug(record.path),
                about=[record.path, *(path for path in named if path not in paths), *links.amends.get(iri, ())],
                status=status,
                alternatives=list(record.alternatives),
                timestamp=dates.get(record.path),
            )
        )
    place = {path: number for number, (path, _) in enumerate(files)}
    said = sorted(notes, key=lambda note: (place[note.path], note.line or 0))
    return AdrImport(tuple(intents), tuple(said), refused, skipped)


def _records(files: Sequence[tuple[str, bytes]], project: str, largest: int, notes: list[Note]) -> dict[str, Record]:
    """Return the records by IRI: that of the file name, for a second file of one name that of its path."""
    records: dict[str, Record] = {}
    for path, content in dict(files).items():
        record, said = read_record(path, content, largest)
        notes += said
        if record is None:
            continue
        iri = record_iri(project, stem(path))
        if iri in records:
            other = records[iri].path
            notes.append(
                Note(path, None, f"has the name of {other}; told apart by its path: import both together", "warning")
            )
            iri = record_iri(project, path)
        records[iri] = record
    return records


def _dates(records: Sequence[Record], committed: Callable[[Collection[str]], Mapping[str, str]]) -> Mapping[str, str]:
    """Return the date of each record by its path: its own, else that of its first commit."""
    undated = [record.path for record in records if not record.date]
    own = {record.path: record.date for record in records if record.date}
    return {**(committed(undated) if undated else {}), **own}


def _status(iri: str, record: Record, links: Links, notes: list[Note]) -> str:
    """Return the decision status; superseded without a successor here is deprecated, so that nobody follows it."""
    if record.status != "superseded":
        return record.status
    if iri in links.ended:
        return "accepted"
    notes.append(
        Note(record.path, None, "superseded, but no link to a successor could be kept; read as deprecated", "warning")
    )
    return "deprecated"
