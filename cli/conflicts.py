"""`jidomem conflicts`: active memories and proposals that disagree, each with what settles it."""

from __future__ import annotations

from typing import Any

import click

from jidomem import Jidomem
from jidomem.govern.review import Waiting, queue
from jidomem.govern.review_text import commands
from jidomem.vocab import REDACTED
from jidomem_cli.complain import place
from jidomem_cli.door import ROWS, Door, Verb, clean, pass_door
from jidomem_cli.fields import REASON
from jidomem_cli.tables import PIPED, fit_line, form_of, short, show_rows

_COLUMNS = ("kind", "item", "summary", "other", "other_summary", "settle")


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@pass_door
def conflicts(door: Door) -> None:
    """List active pairs that disagree, as after merging two branches, and proposals that disagree with active memories.

    Each comes with the commands that settle it: one of them is enough, with the reason of the curator in it. What
    disagreed as of a moment has none. A proposal that disagrees with nothing, such as the withdrawal of what was
    imported from a removed file, is listed by jidomem review.

    Examples:
      jidomem conflicts
      jidomem conflicts --json
    """
    memory = door.read()
    is_now = door.as_of is None and door.valid_at is None
    every = _pending(door, memory) if is_now else [*_disagreements(door, memory), *_proposals(door, memory)]
    rows = [row for row in every if row["other"]]
    others = len(every) - len(rows)
    if form_of(door) != "table":
        show_rows(door, rows, _COLUMNS)
        return
    for row in rows:
        click.echo(row["kind"])
        for item, summary in (("item", "summary"), ("other", "other_summary")):
            if row[item]:
                click.echo(fit_line(door, f"  {short(row[item])}  {clean(row[summary] or '')}", PIPED))
        for command in row["settle"]:
            click.echo(f"    {command}")
    if not rows:
        door.say("none")
    if others:
        several = "proposals disagree" if others > 1 else "proposal disagrees"
        door.say(f"{others:,} more {several} with nothing: jidomem review{place(door)}")


def _pending(door: Door, memory: Jidomem) -> list[dict[str, Any]]:
    """Return what disagrees or waits now, with the commands that settle it."""
    waiting = queue(memory.reader, memory.project, memory.sources.now())
    pairs = [one for one in waiting if one.kind == "conflict"]
    return [_row(door, one) for one in (*pairs, *(one for one in waiting if one.kind == "proposal"))]


def _row(door: Door, one: Waiting) -> dict[str, Any]:
    settle = [command for command, _ in commands(one, place(door))]
    return {
        "kind": one.why if one.kind == "conflict" else one.kind,
        "item": one.item,
        "summary": one.summary,
        "other": one.other,
        "other_summary": one.other_summary,
        "settle": [line if " accept " in line and not one.other else f"{line} --reason {REASON}" for line in settle],
    }


def _disagreements(door: Door, memory: Jidomem) -> list[dict[str, Any]]:
    """Return each pair once, by the first of the ways in which it disagrees."""
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for row in memory.reader.ask("conflicts", project=memory.project, as_of=door.as_of, valid_at=door.valid_at):
        pairs.setdefault((row["a"], row["b"]), row)
    return [
        {
            "kind": row["kind"],
            "item": row["a"],
            "summary": row["a_summary"],
            "other": row["b"],
            "other_summary": row["b_summary"],
            "settle": [],
        }
        for row in pairs.values()
    ]


def _proposals(door: Door, memory: Jidomem) -> list[dict[str, Any]]:
    rows = memory.reader.ask("proposals", project=memory.project, as_of=door.as_of, valid_at=door.valid_at)
    return [
        {
            "kind": "proposal",
            "item": row["item"],
            "summary": row["summary"],
            "other": row["conflict"],
            "other_summary": _summary(memory, row["conflict"]),
            "settle": [],
        }
        for row in rows
    ]


def _summary(memory: Jidomem, item: str | None) -> str | None:
    if item is None:
        return None
    found: list[str] = memory.reader.get_memory(memory.project, item)["properties"].get("summary", [])
    return found[0] if found else REDACTED
