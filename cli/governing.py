"""`jidomem governing`: what to know before a file is touched."""

from __future__ import annotations

from collections.abc import Sequence

import click

from jidomem.excerpt import cut
from jidomem.govern.besides import Besides, besides
from jidomem.govern.governing import COLUMNS, nearest
from jidomem.govern.nearness import SHOWN
from jidomem.read.tables import plain
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.paths import Paths
from jidomem_cli.tables import form_of, short, show_json, show_rows

_TOLD, _LONG = 5, 100
_OPTION = "--include-inactive"


@click.command(cls=Verb, formats=ROWS, as_of=True, valid_at=True)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--all", "every", is_flag=True, help="All that governs the files, not the nearest alone.")
@click.option("--limit", type=click.IntRange(1), metavar="N",
              help=f"At most N memories a file (default: {SHOWN}; with --json all).")  # fmt: skip
@click.option("--include-inactive", is_flag=True, help="Also memories that are not active.")
@pass_door
def governing(door: Door, paths: tuple[str, ...], every: bool, limit: int | None, include_inactive: bool) -> None:
    """List the rules, decisions, errors and lessons that govern files, the nearest first.

    That is what is about the file itself, then about its folder and the folders above it, then about a pattern, then
    strict and required conventions about the whole. Each says whether the files it is about are as they were when it
    was written. A file need not exist yet, and may be named by its web address. Proposals, facts and notes
    about no file govern nothing; the first proposals and facts about the file are printed on standard error.

    Examples:
      jidomem governing README.md
      jidomem governing README.md --all
      jidomem governing src/a.py src/b.py --json
    """
    memory = door.read()
    asked = Paths(memory.settings.root, memory.tree).each(paths)
    answer = memory.governing_answer(
        *asked, as_of=door.as_of, valid_at=door.valid_at, include_inactive=include_inactive
    )
    found = answer.rows
    form = form_of(door)
    is_read = form in ("table", "md")
    if limit is None and is_read:
        limit = SHOWN
    rows = found if limit is None or every else nearest(found, limit)
    if form == "json":
        values = {"rows": [plain(row) for row in rows], "cursor": None, "count": len(found)}
        show_json({**values, **answer.to_dict(_OPTION)})
    else:
        if is_read:
            rows = [{**row, "freshness": _freshness(row["freshness"])} for row in rows]
        show_rows(door, rows, COLUMNS if len(asked) > 1 else COLUMNS[1:], memory=memory)
    if len(rows) < len(found) and form != "json":
        door.say(f"… {len(found) - len(rows)} more: --all")
    if form != "json":
        for text in answer.notices():
            door.say(text)
    others: list[Besides] = []
    if not (include_inactive or door.quiet or door.as_of or door.valid_at):
        others = besides(memory.reader, memory.project, asked, {row["item"] for row in found})
        _say_besides(door, "related, not binding", [one for one in others if not one.waits])
        _say_besides(door, "pending proposals, not active until accepted", [one for one in others if one.waits])
    if form != "json" and (text := answer.inactive_but({one.item for one in others}).notice(_OPTION)):
        door.say(text)


def _say_besides(door: Door, what: str, found: Sequence[Besides]) -> None:
    """Say how much there is of *what*, the nearest of it, and how it is accepted where it waits."""
    if not found:
        return
    door.say(f"{what}: {len(found)}")
    for one in found[:_TOLD]:
        door.say(f"  {short(one.item)}  {one.kind}: {cut(one.summary, _LONG)[0]}")
    if found[0].waits:
        from jidomem_cli.complain import place  # it brings what each verb of writing takes

        review = f"jidomem review{place(door)} accept"
        door.say(f"accept one: {review} {short(found[0].item)}; all: {review} --all")


def _freshness(found: Sequence[dict[str, str | None]]) -> list[str]:
    """Return what became of the files of a memory in words; in one where all are as they were."""
    changed = [_told(each) for each in found if each["state"] != "unchanged"]
    return changed or (["unchanged"] if found else [])


def _told(found: dict[str, str | None]) -> str:
    """Return what became of a file, in words."""
    at = f" to {found['at']}" if found["at"] not in (None, found["path"]) else ""
    return f"{found['path']} {found['state']}{at}"
