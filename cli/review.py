"""`jidomem review`: what waits for a curator, and how it is settled: one by one, in an editor, or by rule."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.active import ENDED
from jidomem.errors import InvalidRequest
from jidomem.govern.review import Line, Queue, Waiting, apply, newest, queue, queued, settle_by_rule
from jidomem.govern.review_text import parse, todo, without_settled
from jidomem.write.settlement import ACTIONS, OUTCOMES
from jidomem_cli.complain import tell
from jidomem_cli.door import ROWS, Door, Verb, clean, pass_door
from jidomem_cli.fields import whole_id
from jidomem_cli.receipts import show_receipt
from jidomem_cli.tables import form_of, short, show_json, show_rows

_COLUMNS = ("tier", "kind", "item", "summary", "source", "other", "days", "leaning")


@click.command(cls=Verb, formats=ROWS, paged=True, writes=("agent", "session", "wait"))
@click.argument("action", type=click.Choice(ACTIONS), required=False)
@click.argument("item", metavar="[IRI]", required=False)
@click.argument("other", metavar="[IRI]", required=False)
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help="With accept: every proposal that disagrees with nothing in force, of several versions the newest.",
)
@click.option("--edit", is_flag=True, help="Settle many at once: a line each, in $VISUAL or $EDITOR.")
@click.option("--todo", "as_todo", is_flag=True, help="Print those lines.")
@click.option("--from", "source", type=click.File("rb"), metavar="FILE|-", help="Do what such lines say.")
@click.option("--by-rule", is_flag=True, help="Confirm what the policy lets be confirmed: see jidomem policy confirm.")
@click.option("--reason", metavar="TEXT", help="Why; kept with what settles it.")
@click.option("--dry-run", is_flag=True, help="Judge it and keep nothing.")
@pass_door
def review(
    door: Door,
    action: str | None,
    item: str | None,
    other: str | None,
    all_: bool,
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
      jidomem review --limit 20
      jidomem review --todo
      jidomem review accept --all --dry-run
      jidomem review --by-rule --dry-run
      jidomem review --json
    """
    if sum([action is not None, edit, as_todo, source is not None, by_rule]) > 1 or (action and not item and not all_):
        raise InvalidRequest("a review does one thing", hint="jidomem review accept IRI, or --edit, --from, --by-rule")
    if all_ and (action != "accept" or item):
        raise InvalidRequest("--all accepts what waits, and names none of it", hint="jidomem review accept --all")
    if reason is not None and action is None:
        raise InvalidRequest(
            "a reason goes with one thing that is settled", hint="jidomem review reject IRI --reason TEXT"
        )
    if (action or source or by_rule) and (door.limit is not None or door.cursor is not None):
        raise InvalidRequest("pages are of what is listed", hint="leave out --limit and --cursor")
    memory = door.open() if action or source else door.read()
    if all_:
        return _accept_all(door, memory, reason, dry_run)
    if action is not None:
        return _settle(door, memory, action, whole_id(memory, item or ""), other, reason, dry_run)
    if by_rule:
        return _by_rule(door, memory, dry_run)
    if source is not None:
        return _do(door, memory, _read(source.read()), dry_run)
    now = memory.sources.now()
    found = queued(memory.reader, memory.project, now, limit=door.limit, cursor=door.cursor)
    if edit:
        return _edited(door, memory, found.waiting, dry_run)
    if as_todo:
        click.echo(todo(found.waiting), nl=False)
        if found.cursor is not None:
            door.say(f"the next lines: jidomem review --todo --limit {door.limit} --cursor {found.cursor}")
    else:
        _list(door, found)
    return 0


def _settle(
    door: Door, memory: Jidomem, action: str, item: str, other: str | None, reason: str | None, dry_run: bool
) -> int:
    rival = whole_id(memory, other) if other else None
    receipt = memory.writer.settle(memory.project, item, action, other=rival, reason=reason, dry_run=dry_run)
    show_receipt(door, memory, receipt, OUTCOMES[action])
    return 0


def _accept_all(door: Door, memory: Jidomem, reason: str | None, dry_run: bool) -> int:
    """Accept every proposal that disagrees with nothing in force; what cannot be accepted stops no other."""
    waiting = queue(memory.reader, memory.project, memory.sources.now())
    proposals = [one for one in waiting if one.kind == "proposal"]
    unopposed = [one for one in proposals if one.other is None]
    lines = [Line(0, "accept", one, reason) for one in newest(memory.reader, memory.project, unopposed)]
    code = _told(door, apply(memory.writer, memory.project, lines, dry_run=dry_run))
    if replaced := len(unopposed) - len(lines):
        door.say(f"{replaced} have a newer version here, and are left to it")
    if left := len(proposals) - len(unopposed):
        door.say(f"{left} disagree with what is in force, and wait on: jidomem review")
    return code


def _list(door: Door, found: Queue) -> None:
    rows = [one.to_dict() for one in found.waiting]
    if not rows and form_of(door) == "table":
        door.say("nothing to review")
        return
    show_rows(door, rows, _COLUMNS, found.cursor)
    if rows and form_of(door) == "table":
        first = found.waiting[0]
        pair = [first.item] if first.kind == "proposal" or first.other is None else [first.item, first.other]
        names = " ".join(map(short, pair))
        door.say(f"settle one: jidomem review accept {names}, or reject; many: jidomem review --edit")
        if any(one.kind == "proposal" and one.other is None for one in found.waiting):
            door.say("accept all that disagrees with nothing in force: jidomem review accept --all")


def _edited(door: Door, memory: Jidomem, waiting: list[Waiting], dry_run: bool) -> int:
    """Do what the editor made of the lines; unless all of it was done, keep the file and say where it is."""
    if not waiting:
        door.say("nothing waits")
        return 0
    offered = todo(waiting)
    with tempfile.NamedTemporaryFile("w", suffix=".review", delete=False, encoding="utf-8") as file:
        file.write(offered)
    path, code, is_done = Path(file.name), 1, False
    try:
        is_changed = _opened(path, offered)
        if is_changed:
            code = _do(door, memory, _read(path.read_bytes()), dry_run)
        else:
            door.say("nothing was changed, and nothing done")
        is_done = code == 0 or not is_changed
        return code if is_changed else 0
    finally:
        if is_done:
            path.unlink(missing_ok=True)
        elif path.exists() and path.read_bytes() != offered.encode():
            door.warn(f"your review is kept; when it is corrected, go on with: jidomem review --from {path}")


def _opened(path: Path, offered: str) -> bool:
    """Return whether the editor changed the file at *path*, which held what is *offered*; raises InvalidRequest."""
    hint = "set $VISUAL or $EDITOR, or: jidomem review --todo > FILE, edit it, and jidomem review --from FILE"
    try:
        click.edit(filename=str(path))
        return path.read_bytes() != offered.encode()
    except click.ClickException as error:
        raise InvalidRequest(f"{error.format_message()}; nothing was done", hint=hint) from None
    except OSError as error:
        raise InvalidRequest(f"the editor left no file: {error}; nothing was done", hint=hint) from None


def _read(data: bytes) -> str:
    """Return the text of a review; raises InvalidRequest for what is no UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"line {line}: this is no UTF-8; nothing was done", hint="save it as UTF-8") from None


def _do(door: Door, memory: Jidomem, text: str, dry_run: bool) -> int:
    """Settle what the lines say, as far as nobody did so since; return the exit code of the first refusal."""
    waiting = queue(memory.reader, memory.project, memory.sources.now())

    def has_ended(item: str) -> bool:
        try:
            return memory.reader.get_memory(memory.project, item)["status"] in ENDED
        except JidomemError:
            return False

    text, settled = without_settled(text, waiting, has_ended)
    lines = parse(text, waiting)
    if settled:
        which = ", ".join(map(str, settled[:10])) + (" ..." if len(settled) > 10 else "")
        door.say(f"settled already, and left alone: {len(settled)} (line {which})")
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
    code, refused = 0, Counter[tuple[str, str]]()
    for line, outcome in outcomes:
        where = f"line {line.number}: " if line.number else ""
        said = {"line": line.number, "action": line.action, "item": line.waiting.item}
        if isinstance(outcome, JidomemError) and door.json:
            code = code or outcome.exit_code
            show_json({**said, **outcome.to_dict()})
        elif isinstance(outcome, JidomemError):
            code = code or outcome.exit_code
            refused[outcome.detail, outcome.hint] += 1
            if refused[outcome.detail, outcome.hint] == 1:  # the reason many share is told once
                tell(outcome, door, where=f"{where}{line.action} {short(line.waiting.item)}: ")
        elif door.json:
            show_json({**said, "outcome": OUTCOMES[line.action], **outcome.to_dict()})
        else:
            click.echo(f"{where}{line.action} {short(line.waiting.item)}: {clean(line.waiting.summary)}")
            door.say(f"{'would be ' if outcome.commit is None else ''}{OUTCOMES[line.action]}: {short(outcome.iri)}")
    for count in refused.values():
        if count > 1:
            door.say(f"{count - 1} more {'is' if count == 2 else 'are'} refused for that reason")
    if not outcomes and not door.json:
        door.say("nothing was settled")
    return code
