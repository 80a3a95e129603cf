"""`jidomem show`: one memory, with what it says and what became of it."""

from __future__ import annotations

from typing import Any

import click

from jidomem import Jidomem
from jidomem.excerpt import ANSWERS
from jidomem.govern.rewording import rewordings
from jidomem.read.tables import plain
from jidomem.read.turtle import turtle
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import form_of, short, show_json, show_rows


@click.command(cls=Verb, formats=("table", "json", "md", "ttl"), as_of=True, valid_at=True)
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
    whole = memory.reader.resolve(memory.project, item, as_of=door.as_of)
    moment = {"as_of": door.as_of, "valid_at": door.valid_at}
    if door.format == "ttl":
        click.echo(turtle(memory.reader.describe(memory.project, whole, **moment)), nl=False)
        return
    found = memory.reader.get_memory(memory.project, whole, **moment)
    if form_of(door) == "json":
        show_json(plain(found))
    else:
        rows = _lines(found, _reworded(memory, found))
        show_rows(door, [{"field": name, "value": value} for name, value in rows], ("field", "value"))


def _reworded(memory: Jidomem, found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the sentences that a proposal changes in each memory that it is to replace: what was, and what is now."""
    if found["status"] != "proposed":
        return []
    replaced = found["properties"].get("supersedes", ())
    changes = rewordings(memory.reader, memory.project, found["iri"], replaced)
    return [(name, text) for each in changes for name, text in (("was", each.was), ("now", each.now)) if text]


def _lines(found: dict[str, Any], reworded: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Return what a person wants to see, the important first; empty fields are left out."""
    properties = dict(found["properties"])
    head = [
        ("id", short(found["iri"])),
        ("iri", f"<{found['iri']}>"),
        ("class", found["class"]),
        ("status", found["status"]),
    ]
    head += [(name, properties.pop(name, [])) for name in ("summary", *ANSWERS)]
    head += reworded
    ends = [("superseded by", found["superseded_by"]), ("invalidated by", found["invalidated_by"])]
    tail = [(name, values) for name, values in properties.items() if name != "conflictKey"]
    return [(name, value) for name, value in [*head, *ends, *tail] if value]
