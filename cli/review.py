"""`jidomem review`: what waits for a curator, and how it is settled: one by one, in an editor, or by rule."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.errors import InvalidRequest
from jidomem.govern.review import Line, Waiting, apply, parse, queue, settle_by_rule, todo
from jidomem.write.settlement import ACTIONS
from jidomem_cli.complain import tell
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.fields import whole_id
from jidomem_cli.receipts import show_receipt
from jidomem_cli.tables import clean, form_of, short, show_json, show_rows

_COLUMNS = ("tier", "kind", "item", "summary", "other", "days", "leaning")


@click.command(cls=Verb, formats=ROWS, writes=("agent", "session", "wait"))
@click.argument("action", type=click.Choice(ACTIONS), required=False)
@click.argument("item", metavar="[IRI]", required=False)
@click.argument("other", metavar="[IRI]", required=False)
@click.option("--edit", is_flag=True, help="Settle many at once: a line each, in $VISUAL or $EDITOR.")
@click.option("--todo", "as_todo", is_flag=True, help="Print those lines.")
@click.option("--from", "source", type=click.File(encoding="utf-8"), metavar="FILE|-", help="Do what such lines say.")
@click.option("--by-rule", is_flag=True, help="Confirm what the policy lets be confirmed: see jidomem policy confirm.")
@click.option("--reason", metavar="TEXT", help="Why; kept with what settles it.")
@click.option("--dry-run", is_flag=True, help="Judge it and keep nothing.")
@pass_door
def review(
    door: Door,
    action: str | None,
    item: str | None,
    other: str | None,
    edit: bool,
    as_todo: bool,
    source: Any,
    by_rule: bool,
    reason: str | None,
    dry_run: bool,
) -> int:
    """List what waits for a curator, the most pressing first; or settle it.

    Tier 1 disagrees in force, 2 waits to bind others, 3 waits, 4 is due; what has waited for a month is a tier higher.
    For two that disagree name both; accept holds the first, reject the second.

    Examples:
      jidomem review
      jidomem review --todo
      jidomem review --by-rule --dry-run
      jidomem review --json
    """
    if sum([action is not None, edit, as_todo, source is not None, by_rule]) > 1 or (action and not item):
        raise InvalidRequest("a review does one thing", hint="jidomem review accept IRI, or --edit, --from, --by-rule")
    if reason is not None and action is None:
        raise InvalidRequest(
            "a reason goes with one thing that is settled", hint="jidomem review reject IRI --reason TEXT"
        )
    memory = door.open() if action or source else door.read()
    if action is not None:
        return _settle(door, memory, action, whole_id(memory, item or ""), other, reason, dry_run)
    if by_rule:
        return _by_rule(door, memory, dry_run)
    waiting = queue(memory.reader, memory.project, memory.sources.now())
    if source is not None:
        return _told(door, apply(memory.writer, memory.project, parse(source.read(), waiting), dry_run=dry_run))
    if edit:
        return _edited(door, memory, waiting, dry_run)
    if as_todo:
        click.echo(todo(waiting), nl=False)
    else:
        _list(door, waiting)
    return 0


def _settle(
    door: Door, memory: Jidomem, action: str, item: str, other: str | None, reason: str | None, dry_run: bool
) -> int:
    rival = whole_id(memory, other) if other else None
    receipt = memory.writer.settle(memory.project, item, action, other=rival, reason=reason, dry_run=dry_run)
    show_receipt(door, memory, receipt)
    return 0


def _list(door: Door, waiting: Iterable[Waiting]) -> None:
    rows = [one.to_dict() for one in waiting]
    show_rows(door, rows, _COLUMNS)
    if rows and form_of(door) == "table":
        door.say("settle them: jidomem review --edit, or one: jidomem review accept|reject IRI")


def _edited(door: Door, memory: Jidomem, waiting: list[Waiting], dry_run: bool) -> int:
    """Do what the editor made of the lines; where they cannot be read, keep the file and say where it is."""
    if not waiting:
        door.say("nothing waits")
        return 0
    text = click.edit(todo(waiting), extension=".review")
    if text is None:
        door.say("nothing was changed, and nothing done")
        return 0
    try:
        lines = parse(text, waiting)
    except InvalidRequest as error:
        with tempfile.NamedTemporaryFile("w", suffix=".review", delete=False, encoding="utf-8") as kept:
            kept.write(text)
        hint = f"{error.hint}; correct it and say: jidomem review --from {Path(kept.name)}"
        raise InvalidRequest(error.detail, hint=hint) from None
    return _told(door, apply(memory.writer, memory.project, lines, dry_run=dry_run))


def _by_rule(door: Door, memory: Jidomem, dry_run: bool) -> int:
    rules = memory.writer.authority(memory.project)
    found = settle_by_rule(memory.writer, memory.reader, memory.project, rules, memory.sources.now(), dry_run=dry_run)
    outcomes = [(Line(0, "accept", one, str(rule)), outcome) for one, rule, outcome in found]
    if not rules.confirmations:
        door.say("no rule confirms anything: jidomem policy confirm restated|unopposed")
    return _told(door, outcomes)


def _told(door: Door, outcomes: list[tuple[Line, Receipt | JidomemError]]) -> int:
    """Print what came of each line; return the exit code of the first that was refused."""
    code = 0
    for line, outcome in outcomes:
        where = f"line {line.number}: " if line.number else ""
        if isinstance(outcome, JidomemError):
            code = code or outcome.exit_code
            tell(outcome, door, where=f"{where}{line.action} {short(line.waiting.item)}: ")
        elif door.json:
            show_json({"line": line.number, "action": line.action, "item": line.waiting.item, **outcome.to_dict()})
        else:
            click.echo(f"{where}{line.action} {short(line.waiting.item)}: {clean(line.waiting.summary)}")
            door.say(f"{'would be ' if outcome.commit is None else ''}{outcome.status}: {short(outcome.iri)}")
    if not outcomes and not door.json:
        door.say("nothing was settled")
    return code
