"""Take in triples as they are said in Python: memories through the writer, judged like those of a Turtle file."""

from __future__ import annotations

from collections.abc import Sequence

from jidomem.errors import IntentRefused, InvalidRequest, JidomemError
from jidomem.exchange import turtle
from jidomem.exchange.documents import parse
from jidomem.exchange.importing import is_here, stand_in
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, line
from jidomem.vocab import TYPE, jido, local_name
from jidomem.write.restate import SAID_ONCE
from jidomem.write.validate import WRITER_ONLY, broken_triple
from jidomem.write.writer import MemoryWriter

_WRITERS = {jido(name) for name in (*WRITER_ONLY, "idempotencyKey")}


def insert(writer: MemoryWriter, schema: Schema, project: str, triples: Sequence[Triple]) -> None:
    """Keep the memories and descriptions that *triples* say: all of them in one commit, or none.

    A memory that is here already as it is said is left alone. Raises the first refusal.
    """
    rows = turtle.mapped(triples, schema)
    _refuse_what_would_be_lost(rows, schema)
    data = "\n".join(map(line, triples)).encode()
    found = turtle.read(parse("the statements", data)[""], schema, stand_in=stand_in(writer, project))
    if found.notes:
        raise InvalidRequest(found.notes[0], hint="leave it out")
    new = [each.intent for each in found.statements if not is_here(writer, project, each)]
    try:
        writer.keep_together(project, found.declarations, new)
    except JidomemError as refusal:
        refusal.position = None  # a list of statements is no list of intents
        raise


def _refuse_what_would_be_lost(rows: Sequence[Triple], schema: Schema) -> None:
    """Raise IntentRefused for a triple that no intent can say: of the writer's own, or a second value of a field."""
    items = {s for s, p, o in rows if p == TYPE and schema.is_a(o, jido("MemoryItem"))}
    first: dict[tuple[Term, Term], Term] = {}
    for subject, predicate, value in rows:
        name = f"jido:{local_name(predicate)}"
        if predicate in _WRITERS:
            message = f"{bare(subject)}: {name} is written by the writer alone: leave it out"
        elif predicate in turtle.LINKS and value not in items:
            message = f"{bare(subject)}: {name} is said with the memory it points at: insert both, or submit an intent"
        elif subject in items and _is_second(first, (subject, predicate, value), schema):
            message = f"{bare(subject)}: {name} has one value, and was given another"
        else:
            continue
        raise IntentRefused([broken_triple(bare(value), message)])


def _is_second(first: dict[tuple[Term, Term], Term], triple: Triple, schema: Schema) -> bool:
    """Return whether a memory is given a further value of what it says once, a class beside another among it."""
    subject, predicate, value = triple
    if predicate == TYPE:
        before = first.setdefault((subject, predicate), value)
        if schema.is_a(value, before):
            first[subject, predicate] = value
        return not (schema.is_a(value, before) or schema.is_a(before, value))
    return predicate in SAID_ONCE and first.setdefault((subject, predicate), value) != value
