"""`jidomem rollback`: take the memory back to what was active at a moment; nothing is removed."""

from __future__ import annotations

import sys
from collections import Counter

import click

from jidomem.errors import InvalidRequest
from jidomem.write.rollback import Rollback
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.fields import own_words
from jidomem_cli.tables import form_of, show_json, show_rows

_COLUMNS = ("change", "type", "item", "summary", "by")


@click.command(cls=Verb, formats=ROWS, writes=("agent", "wait"))
@click.option("--to", "moment", metavar="MOMENT", required=True, help="A moment, or a version of jidomem log.")
@click.option(
    "--reason", metavar="TEXT", help="Why; kept with the session, and with each correction.", callback=own_words
)
@click.option("--dry-run", is_flag=True, help="Show what would be corrected, and keep nothing.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@pass_door
def rollback(door: Door, moment: str, reason: str | None, dry_run: bool, yes: bool) -> None:
    """Make what was active at a moment active again, and nothing else, by corrections in one commit.

    What came since is withdrawn; what was superseded or withdrawn since is said again, and revives what it says. All
    that was recorded stays. For curators, where the project has any. At a terminal it shows what it will do, and asks.

    Examples:
      jidomem rollback --to 2026-11-20T12:00:00Z --reason "the import was wrong" --agent curator --dry-run
      jidomem rollback --to 0 --reason "a fresh start" --agent curator --dry-run --json
    """
    if not reason or not reason.strip():
        raise InvalidRequest("a rollback is recorded with its reason", hint='add --reason "why it goes back"')
    memory = door.read()
    if dry_run or not yes:
        planned = memory.roll_back(moment, reason=reason, dry_run=True)
        if dry_run or not planned.corrections:
            _show(door, planned)
            return
        if not sys.stdin.isatty():
            hint = "look at it with --dry-run, then add --yes"
            raise InvalidRequest(
                f"a rollback has to be confirmed, and standard input is no terminal; corrections: {_counted(planned)}",
                hint=hint,
            )
        _show(door, planned)
        click.confirm("Do this?", abort=True, err=True)
    _show(door, memory.roll_back(moment, reason=reason))


def _show(door: Door, done: Rollback) -> None:
    if form_of(door) == "json":
        show_json(done.to_dict())
    else:
        show_rows(door, [found.to_dict() for found in done.corrections], _COLUMNS)
    if done.commit:
        door.say(f"{_counted(done)}, in {done.session}, version {done.version}")
    elif done.corrections:
        door.say(f"{_counted(done)}; nothing was kept")
    else:
        door.say("nothing to correct: all is as it was then")


def _counted(done: Rollback) -> str:
    counts = Counter(found.change for found in done.corrections)
    return ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
