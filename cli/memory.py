"""`jidomem memory`: what is active, by kind, as the reader's named functions answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from jidomem import Jidomem
from jidomem.govern.freshness import COLUMNS
from jidomem_cli.ask import INCLUDE_INACTIVE, STATUS, answer
from jidomem_cli.door import ROWS, Door, Verb, Verbs, pass_door
from jidomem_cli.tables import show_rows

#: kind -> (the question it asks, what it lists)
_KINDS = {
    "decisions": (
        "active-decisions",
        "architectural decisions, newest first; for those of every sort: jidomem ask decisions",
    ),
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
        is_empty = not answer(door, memory, query, include_inactive=include_inactive, params=params)
        if is_empty and kind == "decisions" and door.cursor is None:
            _name_others(door, memory, include_inactive, params)

    if kind == "decisions":
        show = STATUS(show)

    text = f"List the {what}.\n\nExamples:\n  jidomem memory {kind} --limit 10\n"
    return click.command(kind, cls=Verb, formats=ROWS, paged=True, as_of=True, valid_at=True, help=text)(show)


for _kind in _KINDS:
    memory.add_command(_listing(_kind))


def _name_others(door: Door, memory: Jidomem, include_inactive: bool, params: Mapping[str, Any]) -> None:
    """Say how many decisions of other sorts there are, asked of the same moments, and what lists them."""
    others = len(
        memory.reader.ask(
            "decisions",
            project=memory.project,
            as_of=door.as_of,
            valid_at=door.valid_at,
            include_inactive=include_inactive,
            **params,
        )
    )
    if others:
        options = [("--as-of", door.as_of), ("--valid-at", door.valid_at), ("--status", params.get("status"))]
        narrowed = "".join(f" {option} {value}" for option, value in options if value)
        again = f"jidomem ask decisions{narrowed}{' --include-inactive' * include_inactive}"
        door.say(f"decisions that are not architectural: {others}, see: {again}")


@memory.command(formats=ROWS)
@pass_door
def changed(door: Door) -> None:
    """List the memories about files that were changed, renamed or removed since.

    Examples:
      jidomem memory changed
    """
    found = door.read()
    show_rows(door, found.changed_files(), COLUMNS)
