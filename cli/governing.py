"""`jidomem governing`: what to know before a file is touched."""

from __future__ import annotations

from pathlib import Path

import click

from jidomem import Jidomem
from jidomem.govern.governing import COLUMNS
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.tables import form_of, show_rows


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--include-inactive", is_flag=True, help="Also what is superseded, withdrawn or only proposed.")
@pass_door
def governing(door: Door, paths: tuple[str, ...], include_inactive: bool) -> None:
    """List the rules, decisions, errors and lessons that govern files, the most binding first.

    Each says whether the files it is about are as they were when it was written. A file need not be there yet.

    Examples:
      jidomem governing README.md
      jidomem governing src/a.py src/b.py --json
    """
    memory = door.read()
    asked = [path_of(memory, path) for path in paths]
    rows = memory.governing(
        *dict.fromkeys(asked), as_of=door.as_of, valid_at=door.valid_at, include_inactive=include_inactive
    )
    if form_of(door) in ("table", "md"):
        rows = [{**row, "freshness": [_told(found) for found in row["freshness"]]} for row in rows]
    show_rows(door, rows, COLUMNS if len(asked) > 1 else COLUMNS[1:])


def path_of(memory: Jidomem, given: str) -> str:
    """Return a path as memories have it: from the folder that holds the root, wherever the command is called."""
    return memory.tree.path_here(given, Path.cwd().resolve()) if memory.tree else given


def _told(found: dict[str, str | None]) -> str:
    """Return what became of a file, in words."""
    at = f" to {found['at']}" if found["at"] not in (None, found["path"]) else ""
    return f"{found['path']} {found['state']}{at}"
