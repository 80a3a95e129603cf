"""The import of foreign entries and of triples: each memory goes through the writer like any other
intent.

`ForeignEntry` and `ParsedFile` are the entries of a file of another tool. `import_document` imports an
RDF document, `insert` the triples that a Python caller gives.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, groupby
from typing import Any, NamedTuple

from jidomem.base.containers import grouped, reachable
from jidomem.base.json_values import parse_line
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, NotFound, RequestRedacted
from jidomem.exchange import documents
from jidomem.exchange.documents import OWL, DocumentFormat, parse
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.terms import Literal, Term, Triple, iri, moment_in, ntriples_line, plain_value, value_of
from jidomem.rdf.vocab import BASE, MEMORY_IRI, RDF, RDFS, REDACTED, TYPE, conv, jido, local_name
from jidomem.records.file_anchor import plain_path
from jidomem.records.intent import FIELD_PROPERTIES, WRITER_ONLY, MemoryUpdateIntent, Receipt
from jidomem.schema.ontology import Schema
from jidomem.write.conflict import NEARBY
from jidomem.write.conversation import ENTRY, REMOVAL
from jidomem.write.normalize import comparable_moments
from jidomem.write.snapshot import ITEM_MARK, Probe
from jidomem.write.triples import SINGLE_VALUED
from jidomem.write.validate import EXPORTED_RECORDS, WRITER_RECORDS, broken_triple, check_axioms, check_declared
from jidomem.write.writer import MemoryWriter

_HINT = "correct that entry and import the file again; imported entries stay"
_ENCODED = "make it UTF-8 (iconv -f latin1 -t utf-8 FILE) and import it again; imported entries stay"
_UNRESOLVED = "resolve it, and import the file again; imported entries stay"
#: A fence of code, and the marks of an unresolved merge.
_FENCED, _MERGED = re.compile(rb"[ \t]*(`{3,}|~{3,})"), re.compile(rb"(?:<{7}|>{7})(?= )|={7}$")
_SEPARATORS = re.compile(r"[\W_]+")
#: Bytes at the start of a file that are checked for U+0000.
_BEGINNING = 8192


class ForeignEntry(NamedTuple):
    """One entry of a foreign file: its `key` there (others may share it), its place, and the fields of its intent.

    `links` name other entries: property and key. `files` are the files it names or applies to; they are not part of its
    content, as they depend on the repository. `headings` and `line` are its position on a page. `content`, if given, is
    digested instead of the fields, where those depend on other files.
    """

    key: str
    place: str
    fields: Mapping[str, Any]
    links: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    line: int | None = None
    content: Any = None

    @property
    def summary(self) -> str:
        """Return the summary."""
        return str(self.fields.get("summary", ""))

    @property
    def digest(self) -> str:
        """Return 32 hex digits that identify the content of the entry, independent of the path of its file."""
        return self.digest_under(self.key)

    def digest_under(self, key: str) -> str:
        """Return the digest of the entry under another key, such as one without the path of its file."""
        fields = {name: value for name, value in self.fields.items() if name != "evidence"}
        identity: Any = [key, fields, self.links] if self.content is None else self.content
        return blake2b(json.dumps(identity, sort_keys=True, ensure_ascii=True).encode(), digest_size=16).hexdigest()


class UnreadableEntry(NamedTuple):
    """An entry that cannot be read: its place, the reason, and its key in the file if that is known."""

    place: str
    error: JidomemError
    key: str = ""


class SourceFile(NamedTuple):
    """A file of one of `jidomem.repository.other_tools.SOURCE_KINDS`: its path in the repository and its content."""

    kind: str
    path: str
    data: bytes

    def unresolved(self) -> UnreadableEntry | None:
        """Return the refusal of a file with the marks of an unresolved merge outside fenced code, else None."""
        if b"\n>>>>>>> " not in self.data:
            return None
        marks, fence = list[int](), b""
        for number, line in enumerate(self.data.splitlines(), start=1):
            if fenced := _FENCED.match(line):
                fence = b"" if fence and fenced[1].startswith(fence) else fence or fenced[1]
            elif not fence and (mark := _MERGED.match(line)) and mark[0][:1] == b"<=>"[len(marks) :][:1]:
                marks.append(number)
        if len(marks) < 3:
            return None
        error = InvalidRequest("unresolved merge: both versions are in the file", hint=_UNRESOLVED)
        return UnreadableEntry(f"{self.path}:{marks[0]}", error)


@dataclass(slots=True)
class ParsedFile:
    """The entries of a file; `left_out` counts other content by reason, `source_type` is its kind.

    `places` has a line for each part that is left out, if its place is known. With `alone` each entry has a key of its
    own, by which a changed entry is recognised.
    """

    source_type: str
    alone: bool = False
    entries: list[ForeignEntry] = field(default_factory=list)
    broken: list[UnreadableEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    def refuse(self, place: str, detail: str, key: str = "") -> None:
        """Record an entry in a wrong form, with its key if that is known."""
        self.broken.append(UnreadableEntry(place, InvalidRequest(detail, hint=_HINT), key))

    def leave_out(self, place: str, reason: str) -> None:
        """Count a part that is not a memory, and note its place."""
        self.left_out[reason] += 1
        self.places.append(f"{place}: left out: {reason}")


def objects(name: str, data: bytes, reading: ParsedFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each JSON object of a file of JSON lines with its place; any other line is recorded as broken.

    A file with U+0000 in its first bytes is recorded as broken as a whole.
    """
    if b"\0" in data[:_BEGINNING]:
        reading.broken.append(UnreadableEntry(name, not_utf8("not UTF-8 text: it contains U+0000")))
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            value = parse_line(number, line.removeprefix(b"\xef\xbb\xbf"))
        except InvalidRequest as error:
            error.hint = _ENCODED if "not UTF-8 at byte" in error.detail else _HINT
            reading.broken.append(UnreadableEntry(place, error))
            continue
        if isinstance(value, dict):
            yield place, value
        else:
            reading.refuse(place, "a line is one JSON object")


def line_of(place: str) -> int | None:
    """Return the line number at the end of a place.

    >>> line_of("memory.jsonl:3"), line_of("memory.json: entity 3")
    (3, None)
    """
    _, colon, number = place.rpartition(":")
    return int(number) if colon and number.isdecimal() else None


def not_utf8(detail: str) -> InvalidRequest:
    """Return the refusal of a file or entry that is not UTF-8."""
    return InvalidRequest(detail, hint=_ENCODED)


def text_of(value: Any) -> str:
    """Return a text without surrounding spaces; an empty text for any other value."""
    return value.strip() if isinstance(value, str) else ""


#: Triples of one commit; more are written in several commits, with all triples of a subject in one.
_AT_ONCE = 150_000


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """The outcome of one memory of a file: a receipt, a refusal, or None if memory has it already.

    For an entry of a source, `change` is one of `jidomem.exchange.sync_plan.CHANGES`, `kind` and `path` are those of
    its file, `moved_from` is its earlier file, and `note` a remark for the user. `about` are the files and
    patterns that the entry names, or its page is for, if it was written.
    """

    iri: str
    summary: str
    place: str
    outcome: Receipt | JidomemError | None
    change: str = ""
    kind: str = ""
    path: str = ""
    moved_from: str | None = None
    note: str = ""
    about: tuple[str, ...] = ()

    @property
    def about_words(self) -> str:
        """Return the files in brackets; empty without one."""
        return f" (about {', '.join(self.about)})" if self.about else ""


#: The most files that a report names in one sentence.
_NAMED = 5


@dataclass(slots=True)
class ImportReport:
    """The outcome of an import; content that is left out has a note or is counted by reason.

    `passed` are the files without entries of their kind: path and reason; `places` has a line for each part of a page
    that is left out.
    """

    entries: list[ImportedEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    @property
    def refusals(self) -> list[ImportedEntry]:
        """Return the memories that were refused."""
        return [entry for entry in self.entries if isinstance(entry.outcome, JidomemError)]

    @property
    def accepted(self) -> list[ImportedEntry]:
        """Return the memories that were accepted."""
        return [entry for entry in self.entries if isinstance(entry.outcome, Receipt)]

    @property
    def files_notice(self) -> str:
        """Return the sentence on the number of imported entries that are about files, and on the files named most."""
        named = [entry.about for entry in self.accepted if entry.about]
        files = [name for name, _ in Counter(chain.from_iterable(named)).most_common()]
        more = f" and {len(files) - _NAMED} more: see them with -v" if len(files) > _NAMED else ""
        listed = f"{', '.join(files[:_NAMED])}{more}"
        return f"{len(named)} about files that they name, or that their page is for: {listed}" if named else ""

    def decisions_nearby(self) -> Iterator[str]:
        """Yield for each entry the first warning of an active decision about the same files, with its place."""
        for entry in self.entries:
            given = entry.outcome.warnings if isinstance(entry.outcome, Receipt) else ()
            if nearby := [warning for warning in given if NEARBY in warning]:
                others = "; there are others: jidomem governing FILE" if len(nearby) > 1 else ""
                yield f"{entry.place}: warning: {nearby[0]}{others}"


def import_document(
    writer: MemoryWriter,
    schema: Schema,
    project: str,
    name: str,
    data: bytes,
    form: DocumentFormat = DocumentFormat.TURTLE,
) -> ImportReport:
    """Import the memories and descriptions of a document, exported or written by hand; return the outcome of each.

    A memory that the project has with the same content is skipped; one with other content is refused, since memories
    are never rewritten. Statements in the other graphs of the project (in N-Quads) are stored there. Raises
    InvalidRequest, with file and line, for a document that cannot be parsed, and NotFound for a graph that the project
    does not have.
    """
    streams = _by_stream(project, name, parse(name, data, form))
    erased = _erased(writer, project, chain.from_iterable(streams.values()))
    document = documents.read(
        streams.pop("memory", ()),
        schema,
        defaults=default_fields(writer, project),
        text=data.decode("utf-8", "replace"),
    )
    report = ImportReport(notes=[f"{name}: {note}" for note in document.notes])
    for stream, triples in streams.items():
        answers = {subject for subject, predicate, value in triples if (predicate, value) == (TYPE, jido("TermAnswer"))}
        rows = [row for row in erased.rest(triples, writer.stored(project, stream)) if row[0] not in answers]
        if answers:
            report.notes.append(f"{name}: {len(answers)} answers to proposed terms left out: only a curator gives them")
        for part in _parts(documents.mapped(rows, schema)):
            writer.append(project, stream, part)
        report.notes.append(f"{name}: {len(rows):,} statements of {NAMES[stream]} imported")
    if declarations := erased.rest(document.declarations, writer.stored(project, "memory")):
        known, refused = _declare(writer, schema, project, declarations)
        many = sum(subject not in refused for subject, _, _ in declarations)
        if not document.statements and many:
            report.notes.append(f"{name}: contains no memory; {many:,} other statements imported")
        report.notes += [f"{name}: {node} already has another description here, which is unchanged" for node in known]
        for subject, refusal in refused.items():
            line = documents.line_of(plain_value(subject), document.lines)
            place = f"{name}:{line}" if line else name
            report.entries.append(ImportedEntry(plain_value(subject), plain_value(subject), place, refusal))
    report.notes += [f"{name}: {note}" for note in _vocabulary_notes(document, schema)]
    places = [f"{name}:{statement.line}" if statement.line else name for statement in document.statements]
    entries = _bring_in(writer, project, document.statements, places, erased)
    report.entries += entries
    if erased.left_out:
        left = f"entries, turns and descriptions left out, in whole or in part: {len(erased.left_out):,}"
        report.notes.append(f"{name}: {left}; a redaction removed that here, and the file has it still: delete it")
    named = [entry.iri for entry in report.accepted if not MEMORY_IRI.fullmatch(entry.iri)] if erased.has_any else ()
    if named:
        which = f"{', '.join(named[:_NAMED])}{f' and {len(named) - _NAMED} more' if len(named) > _NAMED else ''}"
        look = "if a redaction removed one whole, as its IRI has the text: jidomem journal redact --dry-run --text TEXT"
        report.notes.append(f"{name}: memories that are new here: {which}; {look}")
    if waiting := sum(
        not each.proposed and _is_proposal(one) for each, one in zip(document.statements, entries, strict=True)
    ):
        were = "1 accepted memory is a proposal" if waiting == 1 else f"{waiting} accepted memories are proposals"
        why = "a curator of this project accepts what is not trusted, or what the policy only lets be proposed"
        report.notes.append(f"{name}: {were} here, as {why}: jidomem review")
    return report


@dataclass(frozen=True, slots=True)
class _Erased:
    """What a document has and redactions of the project removed: `items` whole, of the nodes `named` some rows.

    `left_out` are the subjects of rows that `rest` left out; `has_any` is True if the project has redactions.
    """

    items: frozenset[Term] = frozenset()
    named: frozenset[Term] = frozenset()
    left_out: set[Term] = field(default_factory=set)
    has_any: bool = False

    def rest(self, rows: Sequence[Triple], stored: Probe) -> Sequence[Triple]:
        """Return *rows* without those that a redaction removed; what is *stored* was not."""
        if not (self.items or self.named):
            return rows
        removed = {
            row for row in rows
            if not self.items.isdisjoint(row) or (row[0] in self.named and next(iter(stored(*row)), None) is None)
        }  # fmt: skip
        self.left_out.update(subject for subject, _, _ in removed)
        return [row for row in rows if row not in removed]


#: Records, which are recognised as removed by themselves, not by what names them.
_RECORDS = frozenset((ENTRY, REMOVAL, conv("ConversationTurn")))


def _erased(writer: MemoryWriter, project: str, rows: Iterable[Triple]) -> _Erased:
    """Return what *rows* have of the nodes that redactions of the project name, or removed whole.

    No redaction names a node whose IRI has the text. It is recognised by the moment of a commit that lost statements,
    by the rows removed of another node that link to it, or by the name of a removed agent in its IRI.
    """
    pairs, moments = writer.redactions(project)
    if not (pairs or moments):
        return _Erased()
    named = frozenset(node for node, _ in pairs)
    about, probes = grouped((row[0], row) for row in rows), [writer.stored(project, stream) for stream in NAMES]
    times = {*map(moment_in, moments)}

    def is_stored(*row: Term) -> bool:
        return any(next(iter(probe(*row, *[None] * (3 - len(row)))), None) is not None for probe in probes)

    def linked(node: Term) -> Iterator[Term]:
        for row in about.get(node, ()):
            rows_of_value = about.get(row[2], ())
            is_record = any(name == ITEM_MARK or kind in _RECORDS for _, name, kind in rows_of_value)
            is_lost = row[1] != TYPE and (node in new or row[:2] in pairs) and not is_stored(*row)
            if is_lost and row[2] in new and not is_record:
                yield row[2]

    new = {node for node in about if not (is_stored(node, TYPE) or is_stored(node))}  # the type is read faster
    whole = {
        node for node in new
        if node in named or any("dateTime>" in value and moment_in(value) in times for _, _, value in about[node])
    }  # fmt: skip
    items = reachable([*whole, *(named & about.keys())], linked) & new
    agents = {_words(node) for node in items if (node, TYPE, jido("Agent")) in about[node]}
    items |= {node for node in new if any(name in _words(node) for name in agents)}
    return _Erased(frozenset(reachable(items, linked) & new), named, has_any=True)


def _words(node: Term) -> str:
    """Return the words of an IRI, without the folder of one that was minted, each between hyphens.

    >>> _words("<https://jido.ai/agents/greta>"), _words("<urn:fact:Greta_Lind>")
    ('-greta-', '-urn-fact-greta-lind-')
    """
    plain = plain_value(node)
    own = plain.removeprefix(BASE).partition("/")[2] if plain.startswith(BASE) else plain
    return f"-{_SEPARATORS.sub('-', own.casefold()).strip('-')}-"


def _is_proposal(entry: ImportedEntry) -> bool:
    return isinstance(entry.outcome, Receipt) and entry.outcome.status == "proposed"


def _declare(
    writer: MemoryWriter, schema: Schema, project: str, rows: Sequence[Triple]
) -> tuple[list[str], dict[Term, IntentRefused]]:
    """Append the descriptions *rows*; return those that differ here, as `MemoryWriter.declare` does, and the refused.

    Raises IntentRefused, and appends nothing, for rows that only the writer states or that change the ontology.
    """
    try:
        return writer.declare(project, rows), {}
    except IntentRefused as refusal:
        check_declared(rows, schema, writer.literal, WRITER_RECORDS - EXPORTED_RECORDS)
        check_axioms(rows, schema)
        known, refused = _declare_halves(writer, project, grouped((row[0], row) for row in rows), refusal)
    for subject in [*refused]:  # it may have named what a later half describes
        with suppress(IntentRefused):
            known += writer.declare(project, [row for row in rows if row[0] == subject])
            del refused[subject]
    return known, refused


def _declare_halves(
    writer: MemoryWriter, project: str, rows: Mapping[Term, Sequence[Triple]], refusal: IntentRefused
) -> tuple[list[str], dict[Term, IntentRefused]]:
    """Append the descriptions *rows* of each subject, refused together by *refusal*, in parts of half the size."""
    known, refused, subjects = list[str](), dict[Term, IntentRefused](), [*rows]
    if len(subjects) == 1:
        return known, {subjects[0]: refusal}
    for half in (subjects[: len(subjects) // 2], subjects[len(subjects) // 2 :]):
        part = {subject: rows[subject] for subject in half}
        try:
            known += writer.declare(project, [*chain.from_iterable(part.values())])
        except IntentRefused as fault:
            others, faults = _declare_halves(writer, project, part, fault)
            known, refused = known + others, refused | faults
    return known, refused


_VOCABULARY = {iri(OWL + name) for name in ("Class", "ObjectProperty", "DatatypeProperty", "AnnotationProperty")}
_VOCABULARY |= {iri(RDFS + "Class"), iri(RDF + "Property")}


def _vocabulary_notes(document: documents.TurtleFile, schema: Schema) -> Iterator[str]:
    """Yield a note on the terms that *document* declares, and on the kinds of its memories that nothing declares."""
    terms = {subject for subject, predicate, value in document.declarations
             if predicate == TYPE and value in _VOCABULARY and subject not in schema.declared}  # fmt: skip
    if terms:
        yield (
            f"{len(terms)} terms of a vocabulary are kept as statements and declare nothing: to use them as types and"
            " properties, put them into ontology/ of the root, and run: jidomem ontology check"
        )
    kinds = {value["@id"] for each in document.statements for name, value in each.intent.get("extra_triples", ())
             if iri(name) == TYPE and iri(value.get("@id", "")) not in schema.classes}  # fmt: skip
    if kinds:
        yield (
            f"memories of kinds that are not declared here are kept by their type alone: {', '.join(sorted(kinds))};"
            " copy ontology/ and shapes/ of the root that they come from"
        )


def _parts(rows: Sequence[Triple]) -> Iterator[Sequence[Triple]]:
    """Yield *rows* in parts for one commit each, all triples of a subject in one part."""
    if len(rows) <= _AT_ONCE:
        yield rows
        return
    about: dict[Term, list[Triple]] = defaultdict(list)
    for row in rows:
        about[row[0]].append(row)
    part: list[Triple] = []
    for triples in about.values():
        if part and len(part) + len(triples) > _AT_ONCE:
            yield part
            part = []
        part += triples
    yield part


def _by_stream(project: str, name: str, graphs: Mapping[str, list[Triple]]) -> dict[str, list[Triple]]:
    """Return the triples of a document by the stream of their graph; those of the default graph are memories."""
    streams: dict[str, list[Triple]] = defaultdict(list)
    known = {"": "memory", **{Stream(project, stream).graph: stream for stream in NAMES}}
    for graph, rows in graphs.items():
        if graph not in known:
            other = graph.removeprefix(f"{BASE}projects/").partition("/")[0] if graph.startswith(BASE) else "ID"
            hint = f"the graphs of {project} are {', '.join(list(known)[1:])}; of another project: --project {other}"
            raise NotFound(f"{name}: {project} has no graph {graph}", hint=hint)
        streams[known[graph]] += rows
    return streams


def default_fields(writer: MemoryWriter, project: str) -> dict[str, Any]:
    """Return values for the fields for which a foreign vocabulary has no term."""
    author = {"asserted_by": writer.agent, "asserted_in": writer.session}
    return {"applies_to_project": project, **author, "confidence": 0.5}


def _bring_in(
    writer: MemoryWriter,
    project: str,
    statements: Sequence[documents.MemoryStatement],
    places: Sequence[str],
    erased: _Erased,
) -> list[ImportedEntry]:
    """Submit the memories and return their outcomes; the hint of a refusal says how to change an existing memory.

    Those that are *erased* here, or name what is, are refused.
    """
    refused = [_refusal_of_erased(statement, erased.items) for statement in statements]
    is_new = [
        not (refusal or is_in_project(writer, project, statement))
        for statement, refusal in zip(statements, refused, strict=True)
    ]
    new = [statement for statement, wanted in zip(statements, is_new, strict=True) if wanted]
    recorded = {
        str(each.intent["iri"]): each.records if wanted else each.records._replace(ended_by=frozenset())
        for each, wanted in zip(statements, is_new, strict=True)
        if each.records is not None
    }
    outcomes = chain.from_iterable(
        writer.submit_many(
            project, [statement.intent for statement in some], propose=proposed, imported=True, recorded=recorded
        )
        for proposed, some in groupby(new, key=lambda statement: statement.proposed)
    )
    entries = []
    for statement, place, wanted, refusal in zip(statements, places, is_new, refused, strict=True):
        iri, outcome = str(statement.intent.get("iri", "")), next(outcomes) if wanted else refusal
        if isinstance(outcome, JidomemError):
            outcome.position = None  # the entry states the place
            if outcome.code == "project_mismatch":
                other = local_name(str(statement.intent.get("applies_to_project")))
                outcome.hint = (
                    f"it belongs to another project, import it there: --project {other}; or move it here: "
                    f"sed 's#/projects/{other}>#/projects/{project}>#' FILE.ttl > NEW.ttl, and import NEW.ttl"
                )
            elif outcome.code == "iri_exists" and is_in_project(writer, project, statement):
                outcome = None  # another import wrote it meanwhile
            elif not refusal and (stored := _stored_memory(writer, project, iri)) is not None:
                outcome.hint = _hint_of_stored(stored, statement, erased.named)
        summary = REDACTED if "summary" in statement.lost else str(statement.intent.get("summary", ""))
        entries.append(ImportedEntry(iri, summary, place, outcome))
    return entries


def _refusal_of_erased(statement: documents.MemoryStatement, erased: Collection[Term]) -> JidomemError | None:
    """Return the refusal of a memory that is *erased* here, or whose author, session or the like is; else None."""
    intent = statement.intent
    nodes = [intent["iri"], intent.get("asserted_by"), intent.get("asserted_in"), *intent.get("about", ())]
    if not erased or (name := next((each for each in nodes if each and iri(each) in erased), None)) is None:
        return None
    what = "it" if name == intent["iri"] else name
    hint = "the file has it still: delete it; what may be stored is stated anew"
    return RequestRedacted(f"{intent['iri']} is not imported: {what} was redacted here", hint=hint)


def _hint_of_stored(stored: Mapping[str, Any], statement: documents.MemoryStatement, redacted: Collection[Term]) -> str:
    """Return how to change the memory *stored* as the different *statement* says: what that lost is redacted here."""
    item, lost = str(stored["iri"]), statement.records.lost if statement.records else ()
    names = {local_name(name) for subject, name in lost if subject == iri(item)}
    if has := sorted(name for name in names & FIELD_PROPERTIES.keys() if stored.get(FIELD_PROPERTIES[name].field)):
        options = "".join(f" --property {name}" for name in has)
        return f"it was redacted where it comes from; here: jidomem journal redact {item}{options} --reason TEXT"
    if iri(item) in redacted:
        return "a part of it was redacted here, and the file has it still: delete the file"
    return f"a memory is never rewritten; change it with: jidomem edit {item} --set FIELD=VALUE"


def is_in_project(writer: MemoryWriter, project: str, statement: documents.MemoryStatement) -> bool:
    """Return whether the project has a memory with the content of *statement*."""
    stored = _stored_memory(writer, project, str(statement.intent.get("iri", "")))
    given = {name: value for name, value in statement.intent.items() if name not in statement.lost}
    return stored is not None and _content(stored, statement.assumed) == _content(given, statement.assumed)


def _stored_memory(writer: MemoryWriter, project: str, iri: str) -> dict[str, Any] | None:
    try:
        return writer.restated(project, iri)
    except NotFound:
        return None


def _content(intent: Mapping[str, Any], assumed: Collection[str]) -> dict[str, Any]:
    """Return the content of a memory without the *assumed* fields, normalised so that the order of lists and the form
    of moments do not matter.
    """
    values = MemoryUpdateIntent.from_dict(dict(intent)).to_dict()
    values["about"] = [*map(plain_path, values.get("about") or ())]
    values["extra_triples"] = [(name, _value(value)) for *_, name, value in values.get("extra_triples") or ()]
    values |= comparable_moments(values)
    plain = {name: value for name, value in values.items() if name not in ("timestamp", *assumed)}
    return {name: sorted(map(str, value)) if isinstance(value, list) else value for name, value in plain.items()}


def _value(value: Any) -> object:
    """Return the value of an extra triple; a store may write a literal in another form."""
    is_typed = isinstance(value, Mapping) and "@type" in value
    return value_of(Literal(value["@value"], value["@type"])) if is_typed else value


_WRITERS = {jido(name) for name in (*WRITER_ONLY, "idempotencyKey", "redactedItem")}


def insert(writer: MemoryWriter, schema: Schema, project: str, triples: Sequence[Triple]) -> None:
    """Write the memories and descriptions in *triples* in one commit, or none of them.

    A memory that the project has with the same content is skipped. Raises the first refusal.
    """
    rows = documents.mapped(triples, schema)
    _refuse_what_would_be_lost(rows, schema)
    data = "\n".join(map(ntriples_line, triples)).encode()
    document = documents.read(parse("the statements", data)[""], schema, defaults=default_fields(writer, project))
    if document.notes:
        raise InvalidRequest(document.notes[0], hint="leave it out")
    new = [each.intent for each in document.statements if not is_in_project(writer, project, each)]
    try:
        writer.keep_together(project, document.declarations, new)
    except JidomemError as refusal:
        refusal.position = None  # positions count intents, not statements
        raise


def _refuse_what_would_be_lost(rows: Sequence[Triple], schema: Schema) -> None:
    """Raise IntentRefused for a triple that no intent can express: a property of the writer, or a second value of a
    field.
    """
    items = {s for s, p, o in rows if p == TYPE and schema.is_a(o, jido("MemoryItem"))}
    first: dict[tuple[Term, Term], Term] = {}
    for subject, predicate, value in rows:
        name = f"jido:{local_name(predicate)}"
        if predicate in _WRITERS:
            message = f"{plain_value(subject)}: {name} is set by the writer only: leave it out"
        elif predicate in documents.LINKS and value not in items:
            message = f"{plain_value(subject)}: {name} needs the memory it points at: insert both, or submit an intent"
        elif subject in items and _is_second(first, (subject, predicate, value), schema):
            message = f"{plain_value(subject)}: {name} has one value, and a second one was given"
        else:
            continue
        raise IntentRefused([broken_triple(plain_value(value), message)])


def _is_second(first: dict[tuple[Term, Term], Term], triple: Triple, schema: Schema) -> bool:
    """Return whether *triple* adds a second value to a property with one value, or a class unrelated to the first."""
    subject, predicate, value = triple
    if predicate == TYPE:
        before = first.setdefault((subject, predicate), value)
        if schema.is_a(value, before):
            first[subject, predicate] = value
        return not (schema.is_a(value, before) or schema.is_a(before, value))
    return predicate in SINGLE_VALUED and first.setdefault((subject, predicate), value) != value
