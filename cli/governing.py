"""`jidomem governing`: what to know before a file is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jidomem.excerpt import cut
from jidomem.govern.besides import Besides, besides
from jidomem.govern.governing import COLUMNS, nearest
from jidomem.govern.nearness import SHOWN
from jidomem.read.tables import plain
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.paths import Paths
from jidomem_cli.tables import form_of, short, show_json, show_rows

if TYPE_CHECKING:
    from jidomem import Jidomem

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
        none = _whole_project(answer.conventions or 0)
        show_rows(door, rows, COLUMNS if len(asked) > 1 else COLUMNS[1:], memory=memory, whole="summary", none=none)
    if len(rows) < len(found) and form != "json":
        door.say(f"… {len(found) - len(rows)} more: --all")
    if form != "json":
        for text in answer.notices():
            door.say(text)
    others: list[Besides] = []
    if not (include_inactive or door.quiet or door.as_of or door.valid_at):
        others = besides(memory.reader, memory.project, asked, {row["item"] for row in found})
        _say_besides(door, "related, not binding", [one for one in others if not one.waits])
        _say_pending(door, memory, [one for one in others if one.waits], is_empty=not found)
    if form != "json" and (text := answer.inactive_but({one.item for one in others}).notice(_OPTION)):
        door.say(text)


def _whole_project(conventions: int) -> str:
    """Return what to say after "none" where *conventions* are there, which are about the whole or about other files."""
    if not conventions:
        return ""
    return f" about this alone; conventions of the project: {conventions}, see: jidomem ask conventions"


def _say_besides(door: Door, what: str, found: Sequence[Besides]) -> None:
    """Say how much there is of *what*, and the nearest of it."""
    if found:
        door.say(f"{what}: {len(found)}")
        _say_nearest(door, found)


def _say_pending(door: Door, memory: Jidomem, found: Sequence[Besides], *, is_empty: bool) -> None:
    """Say on one line how many proposals about the files are pending, of how many, then the nearest and what accepts.

    Where there are none, the number of all is said only if nothing else was found.
    """
    if not found and not is_empty:
        return
    pending = len(memory.reader.ask("proposals", project=memory.project)) if memory.journal.knows(memory.project) else 0
    pending = max(pending, len(found))
    of_all = "" if pending == len(found) else f" (of {pending} in all, see: jidomem review)"
    if not found:
        if pending:
            door.say(f"pending proposals: {pending}, none about this; see: jidomem review")
        return
    from jidomem_cli.complain import place  # it brings what each verb of writing takes

    door.say(f"pending proposals about this, not active until accepted: {len(found)}{of_all}")
    _say_nearest(door, found)
    review = f"jidomem review{place(door)} accept"
    door.say(f"accept one: {review} {short(found[0].item)}; all: {review} --all")


def _say_nearest(door: Door, found: Sequence[Besides]) -> None:
    for one in found[:_TOLD]:
        door.say(f"  {short(one.item)}  {one.kind}: {cut(one.summary, _LONG)[0]}")


def _freshness(found: Sequence[dict[str, str | None]]) -> list[str]:
    """Return what became of the files of a memory in words; in one where all are as they were."""
    changed = [_told(each) for each in found if each["state"] != "unchanged"]
    return changed or (["unchanged"] if found else [])


def _told(found: dict[str, str | None]) -> str:
    """Return what became of a file, in words."""
    at = f" to {found['at']}" if found["at"] not in (None, found["path"]) else ""
    return f"{found['path']} {found['state']}{at}"
