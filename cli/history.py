"""`jidomem history`: what went before one memory, and what became of it."""

from __future__ import annotations

from typing import Any

import click

from jidomem_cli.changes import change_lines
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.fields import named_here
from jidomem_cli.tables import form_of, show_rows

_CHANGES = "changes"
#: The columns of a table, less the kind, which is the same in most rows, and the reason, which stands below its row.
_COLUMNS = ("recorded", "event", "agent", "entry", "summary", "status")


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@pass_door
def history(door: Door, item: str) -> None:
    """Tell who believed what, and when: the versions of the memory IRI, and what was proposed against it.

    It lists who asserted, revised, confirmed, withdrew or revived it, or proposed, accepted or rejected a change, with
    the reason, oldest first. --as-of shows what was known at a moment.

    Below each version stand its reason and the fields that it changed, as FIELD: BEFORE -> AFTER; --json has them whole
    as `changes`.

    Examples:
      jidomem history 1a2b3c4d
      jidomem history 1a2b3c4d --as-of 2030-01-01 --json
    """
    memory = door.read()
    rows = memory.reader.history(memory.project, named_here(memory, item), as_of=door.as_of, valid_at=door.valid_at)
    columns = memory.playbook.get("history").columns
    if form_of(door) == "table":
        rows = [{**row, _CHANGES: _below(door, row)} for row in rows]
        columns = _COLUMNS
    show_rows(door, rows, columns, below=_CHANGES)


def _below(door: Door, row: dict[str, Any]) -> list[str]:
    """Return the lines below a version: why it came, and what it changed."""
    return [*([f"reason: {row['reason']}"] if row["reason"] else []), *change_lines(door, row["changes"])]
