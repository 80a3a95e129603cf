"""`jidomem history`: what went before one memory, and what became of it."""

from __future__ import annotations

import click

from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.fields import named_here
from jidomem_cli.tables import show_rows


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@pass_door
def history(door: Door, item: str) -> None:
    """Tell what the memory IRI replaced, what replaced, withdrew or revived it, and what was proposed against it.

    Examples:
      jidomem history 1a2b3c4d
      jidomem history 1a2b3c4d --as-of 2030-01-01 --json
    """
    memory = door.read()
    rows = memory.reader.history(memory.project, named_here(memory, item), as_of=door.as_of, valid_at=door.valid_at)
    show_rows(door, rows, memory.playbook.get("history").columns)
