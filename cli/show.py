"""`jidomem show`: one memory, with what it says and what became of it."""

from __future__ import annotations

from typing import Any

import click

from jidomem.errors import InvalidRequest
from jidomem.read.tables import plain
from jidomem.read.turtle import turtle
from jidomem.terms import iri
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import form_of, short, show_json, show_rows


@click.command(cls=Verb, formats=("table", "json", "md", "ttl"), as_of=True)
@click.argument("item", metavar="IRI")
@pass_door
def show(door: Door, item: str) -> None:
    """Show the memory IRI: its IRI or short id, a unique beginning or end of 4 signs or more.

    Examples:
      jidomem show 1a2b3c4d
      jidomem show 1a2b3c4d --format ttl
      jidomem show --json 1a2b3c4d
    """
    memory = door.read()
    whole = memory.reader.resolve(memory.project, item)
    found = memory.reader.get_memory(memory.project, whole, as_of=door.as_of)
    if door.format == "ttl":
        if door.as_of is not None:
            raise InvalidRequest("Turtle shows the present only", hint="leave out --as-of, or give --format json")
        node = iri(whole)
        result = memory.reader.run(memory.project, f"CONSTRUCT {{ {node} ?p ?o }} WHERE {{ {node} ?p ?o }}")
        click.echo(turtle(result.triples), nl=False)
    elif form_of(door) == "json":
        show_json(plain(found))
    else:
        show_rows(door, [{"field": name, "value": value} for name, value in _lines(found)], ("field", "value"))


def _lines(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what a person wants to see, the important first; empty fields are left out."""
    properties = dict(found["properties"])
    head = [
        ("id", short(found["iri"])),
        ("iri", f"<{found['iri']}>"),
        ("class", found["class"]),
        ("status", found["status"]),
    ]
    head += [("summary", properties.pop("summary", [])), ("rationale", properties.pop("rationale", []))]
    ends = [("superseded by", found["superseded_by"]), ("invalidated by", found["invalidated_by"])]
    tail = [(name, values) for name, values in properties.items() if name != "conflictKey"]
    return [(name, value) for name, value in [*head, *ends, *tail] if value]
