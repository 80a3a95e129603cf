"""`jidomem memory`: what is active, by kind, as the reader's named functions answer it."""

from __future__ import annotations

import click

from jidomem.govern.freshness import COLUMNS
from jidomem_cli.ask import INCLUDE_INACTIVE, STATUS, answer
from jidomem_cli.door import ROWS, Door, Verb, Verbs, pass_door
from jidomem_cli.tables import show_rows

#: kind -> (the question it asks, what it lists)
_KINDS = {
    "decisions": ("decisions", "active decisions of every sort, newest first"),
    "tasks": ("open-tasks", "open tasks"),
    "errors": ("open-errors", "open errors"),
    "conventions": ("conventions", "conventions"),
    "facts": ("facts", "facts with their confidence"),
    "lessons": ("recent-lessons", "lessons learned, newest first"),
    "sessions": ("active-sessions", "active work sessions, newest first"),
    "risks": ("risks", "known risks"),
}


@click.group(cls=Verbs)
def memory() -> None:
    """List the active memories, by kind.

    Examples:
      jidomem memory decisions
      jidomem memory tasks --format csv
      jidomem --json memory errors
    """


def _listing(kind: str) -> click.Command:
    query, what = _KINDS[kind]

    @INCLUDE_INACTIVE
    @pass_door
    def show(door: Door, include_inactive: bool, status: str | None = None) -> None:
        memory = door.read()
        params = {} if status is None else {"status": status}
        answer(door, memory, query, include_inactive=include_inactive, params=params)

    if kind == "decisions":
        show = STATUS(show)

    text = f"List the {what}.\n\nExamples:\n  jidomem memory {kind} --limit 10\n"
    return click.command(kind, cls=Verb, formats=ROWS, paged=True, as_of=True, valid_at=True, help=text)(show)


for _kind in _KINDS:
    memory.add_command(_listing(_kind))


@memory.command(formats=ROWS)
@pass_door
def changed(door: Door) -> None:
    """List the memories about files that were changed, renamed or removed since.

    Examples:
      jidomem memory changed
    """
    found = door.read()
    show_rows(door, found.changed_files(), COLUMNS)
