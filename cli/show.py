"""`jidomem show`: one memory, with what it says and what became of it."""

from __future__ import annotations

import shlex
from typing import Any

import click

from jidomem import Jidomem
from jidomem.excerpt import ANSWERS
from jidomem.govern.rewording import rewordings
from jidomem.read.tables import plain
from jidomem.read.turtle import turtle
from jidomem.vocab import REDACTED
from jidomem_cli.complain import place
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.fields import named_here
from jidomem_cli.tables import form_of, short, show_fields, show_json


@click.command(cls=Verb, formats=("table", "json", "md", "ttl"), as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@pass_door
def show(door: Door, item: str) -> None:
    """Show the memory IRI: its IRI, or a beginning or end of its id of 4 or more characters.

    An imported memory is also named by its file, the number of its record, its title, or file and line, as in
    docs/adr/0016-names.md, 0016 or AGENTS.md:64; any line of it, or a beginning of the file's name, will do. So it is
    wherever a memory is named.

    Examples:
      jidomem show 1a2b3c4d
      jidomem show 1a2b3c4d --format ttl
      jidomem show --json 1a2b3c4d
    """
    memory = door.read()
    whole = memory.reader.resolve(memory.project, named_here(memory, item), as_of=door.as_of)
    moment = {"as_of": door.as_of, "valid_at": door.valid_at}
    if door.format == "ttl":
        click.echo(turtle(memory.reader.describe(memory.project, whole, **moment)), nl=False)
        return
    found = memory.reader.get_memory(memory.project, whole, **moment)
    if form_of(door) == "json":
        show_json(plain(found))
    else:
        show_fields(door, _lines(found, _reworded(memory, found)))
        if (newer := _in_its_place(memory, found)) is not None:
            door.say(f"in its place: jidomem show{place(door)} {short(newer)}")


def _in_its_place(memory: Jidomem, found: dict[str, Any]) -> str | None:
    """Return the memory at the end of the chain of those that superseded the one *found*; None where nothing did."""
    last, seen = found, {found["iri"]}
    while (newer := next(iter(last["superseded_by"]), None)) is not None and newer not in seen:
        seen.add(newer)
        last = memory.reader.get_memory(memory.project, newer)
    return None if last is found else str(last["iri"])


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
    head.append(("summary", properties.pop("summary", [REDACTED])))
    head += [(name, properties.pop(name, [])) for name in ANSWERS]
    head += reworded
    ends = [("superseded by", found["superseded_by"]), ("invalidated by", found["invalidated_by"])]
    tail = [(name, values) for name, values in properties.items() if name != "conflictKey"]
    return [(name, _pasteable(value)) for name, value in [*head, *ends, *tail] if value]


def _pasteable(value: Any) -> Any:
    """Return *value*, a text that begins or ends with blanks, as a pattern may, quoted for a shell: they show then.

    >>> _pasteable(["^puts", "^puts "])
    ['^puts', "'^puts '"]
    """
    if isinstance(value, list):
        return [*map(_pasteable, value)]
    return shlex.quote(value) if isinstance(value, str) and value != value.strip() else value
