"""Bring in what others have written: each memory through the writer, judged like every other intent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

from jidomem.errors import JidomemError, NotFound
from jidomem.exchange import turtle
from jidomem.exchange.documents import Form, parse
from jidomem.intent import MemoryUpdateIntent, Receipt
from jidomem.journal.files import NAMES, Stream
from jidomem.schema import Schema
from jidomem.terms import Term, Triple
from jidomem.vocab import BASE, TYPE, jido, local_name
from jidomem.write.names import plain_path
from jidomem.write.writer import MemoryWriter

#: Triples of one commit; a stream of more is kept in several, each of whole subjects.
_AT_ONCE = 150_000


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one memory of a file: its receipt, its refusal, or neither when it was here already.

    Of an entry of a source `change` says what it was, of `jidomem.exchange.sync_plan.CHANGES`; `kind` and
    `path` are those of its file, `moved_from` is the one that it was in before, `note` what a person should know of it.
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


@dataclass(slots=True)
class Report:
    """What became of everything in the files; nothing is left out without a note, or being counted by the reason.

    `passed` are the files that hold nothing of the kind: path and reason; `places` has a line for each part of a page
    that is left out.
    """

    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    @property
    def refusals(self) -> list[Entry]:
        """Return the memories that were not accepted."""
        return [entry for entry in self.entries if isinstance(entry.outcome, JidomemError)]

    @property
    def accepted(self) -> list[Entry]:
        """Return the memories that were kept."""
        return [entry for entry in self.entries if isinstance(entry.outcome, Receipt)]


def import_document(
    writer: MemoryWriter, schema: Schema, project: str, name: str, data: bytes, form: Form = Form.TURTLE
) -> Report:
    """Return what became of the memories and descriptions of a document, an export or one written by hand.

    A memory that is here already as the file has it is left alone; one that differs is refused, since a memory is
    never rewritten. What stands in the project's other graphs (N-Quads name them) is kept there. Raises InvalidRequest,
    with file and line, for what cannot be read, NotFound for a graph that the project does not have.
    """
    streams = _by_stream(project, name, parse(name, data, form))
    found = turtle.read(
        streams.pop("memory", ()), schema, stand_in=stand_in(writer, project), text=data.decode("utf-8", "replace")
    )
    report = Report(notes=[f"{name}: {note}" for note in found.notes])
    for stream, said in streams.items():
        answers = {subject for subject, predicate, value in said if (predicate, value) == (TYPE, jido("TermAnswer"))}
        rows = [row for row in said if row[0] not in answers]
        if answers:
            report.notes.append(f"{name}: {len(answers)} answers to proposed terms left out, a curator gives them")
        for part in _parts(turtle.mapped(rows, schema)):
            writer.append(project, stream, part)
        report.notes.append(f"{name}: {len(rows):,} statements of {NAMES[stream]} are here now")
    if found.declarations:
        known = writer.declare(project, found.declarations)
        if not found.statements:
            many = len(found.declarations)
            report.notes.append(f"{name}: holds no memory; its {many:,} statements of other things are here now")
        report.notes += [f"{name}: {node} is described otherwise here already, and was left as it is" for node in known]
    places = [f"{name}:{statement.line}" if statement.line else name for statement in found.statements]
    report.entries += _bring_in(writer, project, found.statements, places)
    return report


def _parts(rows: Sequence[Triple]) -> Iterator[Sequence[Triple]]:
    """Yield *rows* in parts that a commit takes, all of a subject in one; the rows themselves where one will do."""
    if len(rows) <= _AT_ONCE:
        yield rows
        return
    about: dict[Term, list[Triple]] = defaultdict(list)
    for row in rows:
        about[row[0]].append(row)
    part: list[Triple] = []
    for said in about.values():
        if part and len(part) + len(said) > _AT_ONCE:
            yield part
            part = []
        part += said
    yield part


def _by_stream(project: str, name: str, graphs: Mapping[str, list[Triple]]) -> dict[str, list[Triple]]:
    """Return the triples of a document by the stream of their graph; what is in none are memories."""
    streams: dict[str, list[Triple]] = defaultdict(list)
    known = {"": "memory", **{Stream(project, stream).graph: stream for stream in NAMES}}
    for graph, rows in graphs.items():
        if graph not in known:
            other = graph.removeprefix(f"{BASE}projects/").partition("/")[0] if graph.startswith(BASE) else "ID"
            hint = f"the graphs of {project} are {', '.join(list(known)[1:])}; of another project: --project {other}"
            raise NotFound(f"{name}: {project} has no graph {graph}", hint=hint)
        streams[known[graph]] += rows
    return streams


def stand_in(writer: MemoryWriter, project: str) -> dict[str, Any]:
    """Return the fields of a memory in a foreign vocabulary that has no term for them."""
    who = {"asserted_by": writer.agent, "asserted_in": writer.session}
    return {"applies_to_project": project, **who, "confidence": 0.5}


def _is_taken(outcome: Receipt | JidomemError | None) -> bool:
    return isinstance(outcome, JidomemError) and outcome.code == "iri_exists"


def _bring_in(
    writer: MemoryWriter, project: str, statements: Sequence[turtle.Statement], places: Sequence[str]
) -> list[Entry]:
    """Return what became of each memory; a refusal says what there is to do when it is here already, but different."""
    is_new = [not is_here(writer, project, statement) for statement in statements]
    new = [statement for statement, wanted in zip(statements, is_new, strict=True) if wanted]
    outcomes = chain.from_iterable(
        writer.submit_many(project, [statement.intent for statement in some], propose=proposed, imported=True)
        for proposed, some in groupby(new, key=lambda statement: statement.proposed)
    )
    entries = []
    for statement, place, wanted in zip(statements, places, is_new, strict=True):
        iri, outcome = str(statement.intent.get("iri", "")), next(outcomes) if wanted else None
        if isinstance(outcome, JidomemError):
            outcome.position = None  # it has a place of its own
            if outcome.code == "project_mismatch":
                other = local_name(str(statement.intent.get("applies_to_project")))
                outcome.hint = f"it is a memory of another project, to keep it there: --project {other}"
            elif _is_taken(outcome) and is_here(writer, project, statement):  # another import was as fast
                outcome = None
            elif _kept(writer, project, iri) is not None:
                outcome.hint = f"a memory is never rewritten; change it with: jidomem revise {iri} --set FIELD=VALUE"
        entries.append(Entry(iri, str(statement.intent.get("summary", "")), place, outcome))
    return entries


def is_here(writer: MemoryWriter, project: str, statement: turtle.Statement) -> bool:
    """Return whether a memory is in the project already, as *statement* has it."""
    kept = _kept(writer, project, str(statement.intent.get("iri", "")))
    return kept is not None and _content(kept, statement.assumed) == _content(statement.intent, statement.assumed)


def _kept(writer: MemoryWriter, project: str, iri: str) -> dict[str, Any] | None:
    try:
        return writer.restated(project, iri)
    except NotFound:
        return None


def _content(said: Mapping[str, Any], assumed: Collection[str]) -> dict[str, Any]:
    """Return what a memory says, less what is *assumed*, in the one form that lists and their order do not change."""
    values = MemoryUpdateIntent.from_dict(dict(said)).to_dict()
    values["about"] = [*map(plain_path, values.get("about") or ())]
    plain = {name: value for name, value in values.items() if name not in ("timestamp", *assumed)}
    return {name: sorted(map(str, value)) if isinstance(value, list) else value for name, value in plain.items()}
