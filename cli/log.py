"""`jidomem log` and `jidomem diff`: what was committed, and what changed between two moments."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from jidomem.errors import InvalidRequest
from jidomem_cli.changes import change_lines
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.tables import form_of, short, show_rows

_COLUMNS = ("version", "recorded_at", "graph", "agents", "sessions", "brought")
_WHOLE = ("version", "recorded_at", "commit", "graph", "committer", "ontology", "agents", "sessions", "brought")
_CHANGED = ("change", "item", "kind", "summary", "before", "after", "by")


@click.command(cls=Verb, formats=ROWS, paged=True, as_of=True)
@pass_door
def log(door: Door) -> None:
    """List the commits of the project, newest first: version, time, agents, sessions and how much each brought.

    Examples:
      jidomem log --limit 10
      jidomem log --json --as-of 2030-01-01
    """
    memory = door.read()
    page = memory.reader.log(memory.project, as_of=door.as_of, limit=door.limit, cursor=door.cursor)
    if form_of(door) in ("table", "md"):
        show_rows(door, [{**row, "brought": _told(row["brought"])} for row in page.rows], _COLUMNS, page.cursor)
    else:
        show_rows(door, page.rows, _WHOLE, page.cursor)


def _told(brought: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in brought.items())


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show the first N memories (default: all).")
@click.option("--as-of", "ends", multiple=True, metavar="MOMENT", help="A moment or a version; once for until now.")
@pass_door
def diff(door: Door, ends: tuple[str, ...], limit: int | None) -> None:
    """Tell what was added, superseded or invalidated between two moments, each given by --as-of.

    A moment is ISO 8601, or a version that `jidomem log` lists, or its number: all that was recorded by then.
    Below a revision stand who recorded it, when and why, and the fields that it changed, as FIELD: BEFORE -> AFTER;
    --json has them whole.

    Examples:
      jidomem diff --as-of 2026-01-01 --as-of 2030-01-01
      jidomem diff --as-of 0
      jidomem diff --as-of 2 --limit 20
    """
    given = [*([door.as_of] if door.as_of else []), *ends]
    if len(given) not in (1, 2):
        hint = "jidomem diff --as-of 2026-11-01 --as-of 2026-11-21"
        raise InvalidRequest("a difference is between two moments, or one and now", hint=hint)
    memory = door.read()
    rows: list[dict[str, Any]] = memory.reader.diff(memory.project, *given, valid_at=door.valid_at)
    shown = rows[:limit]
    if form_of(door) == "table":
        shown = [{**row, "changes": _revision(door, row)} for row in shown]
    show_rows(door, shown, _CHANGED, below="changes")
    if rows:
        counts = Counter(row["change"] for row in rows)
        more = f"; {len(rows) - len(shown)} more: raise --limit" if len(shown) < len(rows) else ""
        door.say(", ".join(f"{count} {change}" for change, count in sorted(counts.items())) + more)


def _revision(door: Door, row: dict[str, Any]) -> list[str]:
    """Return who recorded a revision, when and why, and what it changed; nothing of any other row."""
    if not (row["reason"] or row["changes"]):
        return []
    why = f": {row['reason']}" if row["reason"] else ""
    told = f"{short(row['agents'])}, {short(row['recorded'])}{why}"
    return [told, *change_lines(door, row["changes"])]
