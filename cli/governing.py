"""`jidomem governing`: what to know before a file is touched."""

from __future__ import annotations

from collections.abc import Sequence

import click

from jidomem.govern.besides import Besides, besides
from jidomem.govern.governing import COLUMNS
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.paths import Paths
from jidomem_cli.tables import form_of, short, show_rows

_TOLD, _LONG = 5, 100


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--include-inactive", is_flag=True, help="Also memories that are not active.")
@pass_door
def governing(door: Door, paths: tuple[str, ...], include_inactive: bool) -> None:
    """List the rules, decisions, errors and lessons that govern files, the most binding first.

    Each says whether the files it is about are as they were when it was written. A file need not be there yet. What is
    only proposed, or a fact, governs nothing; the first of these are told besides, on standard error.

    Examples:
      jidomem governing README.md
      jidomem governing src/a.py src/b.py --json
    """
    memory = door.read()
    asked = Paths(memory.settings.root, memory.tree).each(paths)
    rows = memory.governing(*asked, as_of=door.as_of, valid_at=door.valid_at, include_inactive=include_inactive)
    if form_of(door) in ("table", "md"):
        rows = [{**row, "freshness": _freshness(row["freshness"])} for row in rows]
    show_rows(door, rows, COLUMNS if len(asked) > 1 else COLUMNS[1:], memory=memory)
    if not (include_inactive or door.quiet or door.as_of or door.valid_at):
        found = besides(memory.reader, memory.project, asked, {row["item"] for row in rows})
        _say_besides(door, "known of it, and binding nothing", [one for one in found if not one.waits])
        _say_besides(door, "proposed, and not in force until accepted", [one for one in found if one.waits])


def _say_besides(door: Door, what: str, found: Sequence[Besides]) -> None:
    """Say how much there is of *what*, the nearest of it, and how it is accepted where it waits."""
    if not found:
        return
    door.say(f"{what}: {len(found)}")
    for one in found[:_TOLD]:
        summary = one.summary if len(one.summary) <= _LONG else f"{one.summary[:_LONG]}…"
        door.say(f"  {short(one.item)}  {one.kind}: {summary}")
    if found[0].waits:
        from jidomem_cli.complain import place  # it brings what each verb of writing takes

        door.say(f"accept one: jidomem review{place(door)} accept {short(found[0].item)}; all: accept --all")


def _freshness(found: Sequence[dict[str, str | None]]) -> list[str]:
    """Return what became of the files of a memory in words; in one where all are as they were."""
    changed = [_told(each) for each in found if each["state"] != "unchanged"]
    return changed or (["unchanged"] if found else [])


def _told(found: dict[str, str | None]) -> str:
    """Return what became of a file, in words."""
    at = f" to {found['at']}" if found["at"] not in (None, found["path"]) else ""
    return f"{found['path']} {found['state']}{at}"
