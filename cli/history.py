"""`jidomem history`: what went before one memory, and what became of it."""

from __future__ import annotations

import click

from jidomem_cli.changes import change_lines
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.fields import named_here
from jidomem_cli.tables import form_of, line_width, show_rows

_CHANGES = "changes"


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@pass_door
def history(door: Door, item: str) -> None:
    """Tell what the memory IRI replaced, what replaced, withdrew or revived it, and what was proposed against it.

    Below each version stand the fields that it changed, as FIELD: BEFORE -> AFTER; --json has them whole as `changes`.

    Examples:
      jidomem history 1a2b3c4d
      jidomem history 1a2b3c4d --as-of 2030-01-01 --json
    """
    memory = door.read()
    rows = memory.reader.history(memory.project, named_here(memory, item), as_of=door.as_of, valid_at=door.valid_at)
    columns = memory.playbook.get("history").columns
    if form_of(door) == "table":
        rows = [{**row, _CHANGES: change_lines(door, row["changes"])} for row in rows]
        if line_width(door) is not None:  # who revised it, when and why, is wanted before its kind
            columns = tuple(name for name in columns if name != "kind")
    show_rows(door, rows, columns, below=_CHANGES)
