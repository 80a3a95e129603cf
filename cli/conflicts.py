"""`jidomem conflicts`: what disagrees in force, and what waits for a curator, each with what settles it."""

from __future__ import annotations

from typing import Any

import click

from jidomem import Jidomem
from jidomem_cli.complain import place
from jidomem_cli.door import ROWS, Door, Verb, clean, pass_door
from jidomem_cli.tables import fit_line, form_of, short, show_rows

_COLUMNS = ("kind", "item", "summary", "other", "other_summary", "settle")


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@pass_door
def conflicts(door: Door) -> None:
    """List pairs in force that disagree, as after merging two branches, and proposals that wait.

    Each comes with the commands that settle it: one of them is enough.

    Examples:
      jidomem conflicts
      jidomem conflicts --json
    """
    memory = door.read()
    rows = [*_disagreements(door, memory), *_proposals(door, memory)]
    if form_of(door) != "table":
        show_rows(door, rows, _COLUMNS)
        return
    for row in rows:
        click.echo(row["kind"])
        for item, summary in (("item", "summary"), ("other", "other_summary")):
            if row[item]:
                click.echo(fit_line(door, f"  {short(row[item])}  {clean(row[summary] or '')}"))
        for command in row["settle"]:
            click.echo(f"    {command}")
    if any(row["kind"] == "proposal" for row in rows):
        door.say("accept every proposal that disagrees with nothing: jidomem review accept --all")
    if not rows:
        door.say("none")


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
            "settle": [_replace(door, row["a"], row["b"]), _replace(door, row["b"], row["a"])],
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
            "settle": [
                f"jidomem review{place(door)} {'supersede' if row['conflict'] else 'accept'} {short(row['item'])}",
                f"jidomem revise{place(door)} {short(row['item'])} --invalidate --reason 'not accepted'",
            ],
        }
        for row in rows
    ]


def _replace(door: Door, kept: str, *other: str) -> str:
    """Return the command that says *kept* again in the place of itself and the *other*."""
    words = " ".join(f"--set supersedes={short(item)}" for item in (kept, *other))
    return f"jidomem revise{place(door)} {short(kept)} {words} --reason 'settled'"


def _summary(memory: Jidomem, item: str | None) -> str | None:
    if item is None:
        return None
    found: list[str] = memory.reader.get_memory(memory.project, item)["properties"].get("summary", [])
    return found[0] if found else None
