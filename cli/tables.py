"""Rows as a person or a program wants them: a table, JSON, JSON lines, CSV, TSV or Markdown."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from jidomem.moments import parse_moment
from jidomem.read.item import short_id
from jidomem.read.tables import cell, plain, tsv_line
from jidomem.vocab import BASE, JIDO, local_name
from jidomem_cli.door import Door, clean

if TYPE_CHECKING:
    from jidomem import Jidomem

Row = Mapping[str, Any]
_BEGIN = """: nothing is remembered here yet
take in what the repository has: jidomem init --from auto
or begin with: jidomem remember "what an agent should know\""""
_FIRST = (
    "PREFIX jido: <https://jido.ai/ontology#> SELECT (MIN(?at) AS ?first) { ?made a jido:Commit ; jido:recordedAt ?at }"
)
_NAMED = re.compile(rf"{re.escape(BASE)}(?:agents|sessions|projects)/[^/]+")


def show_rows(
    door: Door, rows: Sequence[Row], columns: Sequence[str], cursor: str | None = None, *, memory: Jidomem | None = None
) -> None:
    """Print *rows* in the format asked for, and where the next page begins.

    Where there are none, and *memory* is given, it is said why: nothing was ever written, or all of it waits.
    """
    form = form_of(door)
    if form == "json":
        show_json({"rows": [plain(row) for row in rows], "cursor": cursor})
        return
    _PRINTERS[form](door, rows, columns)
    if not rows:
        door.say("none" + (_why_none(memory, door.as_of) if memory is not None else ""))
    if cursor:
        door.say(f"more: --cursor {cursor}")


def _why_none(memory: Jidomem, as_of: str | None) -> str:
    """Return what may be the reason that nothing is found, with the command that helps."""
    if not memory.journal.knows(memory.project):
        return _BEGIN
    if as_of is not None:
        (row,) = memory.reader.select(memory.project, _FIRST)
        is_before = (asked := parse_moment(as_of)) is not None and asked < row["first"]
        return " by then" + f": the first commit is of {short(row['first'])}, see: jidomem log" * is_before
    waiting = len(memory.reader.ask("proposals", project=memory.project))
    return f" in force; proposals that wait: {waiting}, see: jidomem review" if waiting else ""


def form_of(door: Door) -> str:
    """Return the format asked for: the one named, JSON with --json, else a table."""
    return door.format or ("json" if door.json else "table")


def show_json(value: Any) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def short(value: Any) -> str:
    """Return *value* as a person reads it: terms by local name, memories by short id, agents and sessions by name.

    >>> short("https://jido.ai/ontology#High"), short("https://jido.ai/agents/architect"), short(None)
    ('High', 'architect', '')
    """
    if isinstance(value, list):
        return ", ".join(map(short, value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}Z"
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else str(value)
    if re.fullmatch(rf"{re.escape(BASE)}memory/[^/]+", text):
        return short_id(text)
    if text.startswith(JIDO) or _NAMED.fullmatch(text):
        return local_name(text)
    return text


def _table(door: Door, rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        return
    cells = [[clean(short(row.get(column))) for column in columns] for row in rows]
    if sys.stdout.isatty():
        _rich_table(door, cells, columns)
        return
    widths = [max(len(cell) for cell in column) for column in zip(columns, *cells, strict=True)]
    for row in [list(columns), *cells]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _rich_table(door: Door, cells: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    Console(color_system="auto" if door.paints(sys.stdout) else None, highlight=False).print(table)


def _json_lines(_: Door, rows: Sequence[Row], columns: Sequence[str]) -> None:
    for row in rows:
        show_json(plain(row))


def _csv(_: Door, rows: Sequence[Row], columns: Sequence[str]) -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(columns)
    table.writerows([cell(row.get(column)) for column in columns] for row in rows)


def _tsv(_: Door, rows: Sequence[Row], columns: Sequence[str]) -> None:
    click.echo("\t".join(columns))
    for row in rows:
        click.echo(tsv_line([cell(row.get(column)) for column in columns]))


def _markdown(_: Door, rows: Sequence[Row], columns: Sequence[str]) -> None:
    click.echo(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        cells = (clean(short(row.get(column))).replace("|", "\\|") for column in columns)
        click.echo(f"| {' | '.join(cells)} |")


_PRINTERS: Mapping[str, Callable[[Door, Sequence[Row], Sequence[str]], None]] = {
    "table": _table, "jsonl": _json_lines, "csv": _csv, "tsv": _tsv, "md": _markdown,
}  # fmt: skip
