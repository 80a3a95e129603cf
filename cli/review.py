"""`jidomem review`: lists pending proposals and conflicts, and settles them one by one, in an editor, or by rule."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.curation.review_cache import open_decisions
from jidomem.curation.review_queue import (
    LEFT,
    NEAR,
    QUESTIONS,
    Queue,
    QueueItem,
    acceptable,
    newer_versions,
    present_rows,
    queue,
    queued,
    settle_by_rule,
    with_endings,
)
from jidomem.curation.review_text import (
    NAMED,
    ReviewLine,
    SettlementOutcome,
    apply,
    changed_fields,
    commands,
    counted,
    effect,
    ending,
    keep_both,
    marks,
    parse,
    past_pairs,
    pending_pairs,
    settled_text,
    todo,
    without_settled,
)
from jidomem.errors import Conflict, ConflictItem, InvalidRequest, PolicyDenied
from jidomem.read.history import Rewording, rewordings
from jidomem.read.memory_detail import has_ended, is_number
from jidomem.records.active import ACTIVE, EXPIRED, UNACCEPTED, is_accepted
from jidomem.records.recall import near_pairs_notice
from jidomem.write.settlement import ACTIONS, OUTCOMES, Settlement, present_name
from jidomem_cli.errors import acting, in_place, print_error, print_refusal, print_repeated
from jidomem_cli.fields import entries_now, given_fields, memory_iri, set_option, with_memory_paths
from jidomem_cli.options import ROWS, App, Command, clean, dry_run_option, pass_app, reason_option
from jidomem_cli.output import PIPED, fit_line, short, shortened, show_due, show_json, show_receipt, show_rows
from jidomem_cli.show import change_lines

_QUEUE_COLUMNS = ("priority", "kind", "item", "source", "summary", "other", "days", "leaning")
#: The columns of a table that are left out if they are empty.
_RARE = ("source", "days", "leaning")
#: The most settlements that are printed individually.
_FEW = 20
#: The number of proposals of each source that are shown before all are accepted.
_FIRST = 3
#: The most characters of reworded sentences below the row of a proposal.
_REWORDED = 300


@click.command(cls=Command, formats=ROWS, paged=True, as_of=True, valid_at=True, writes=("agent", "session", "wait"))
@click.argument("action", type=click.Choice(ACTIONS), required=False)
@click.argument("items", metavar="[IRI]...", nargs=-1)
@click.option("--against", metavar="IRI", help="With one IRI: the active memory that it conflicts with.")
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help="With accept: the newest proposals without a conflict that change no Strict rule; with reject --by: all.",
)
@click.option("--by", metavar="AGENT", help="Only the proposals of this agent.")
@set_option("changes")
@click.option("--conflicts", is_flag=True, help="List only conflicts, each with the commands that resolve it.")
@click.option("--edit", is_flag=True, help="Review many at once, a line each, in $VISUAL or $EDITOR.")
@click.option("--todo", "as_todo", is_flag=True, help="Print the lines that --edit opens.")
@click.option("--from", "source", type=click.File("rb"), metavar="FILE|-", help="Apply such lines.")
@click.option("--by-rule", is_flag=True, help="Confirm proposals by the rules of jidomem access policy confirm.")
@reason_option()
@dry_run_option
@pass_app
def review(
    app: App,
    action: str | None,
    items: tuple[str, ...],
    against: str | None,
    all_: bool,
    by: str | None,
    changes: tuple[str, ...],
    conflicts: bool,
    edit: bool,
    as_todo: bool,
    source: Any,
    by_rule: bool,
    reason: str | None,
    dry_run: bool,
) -> int:
    """List pending proposals, conflicts, due memories and near pairs by priority; or accept or reject them.

    Priority 1: conflicting active memories; 2: proposals that would bind others; 3: other proposals; 4: due memories;
    after a month it rises by one. Within a priority, memories with the most dependents come first, then the oldest,
    then imported proposals, grouped by file. Priority 5: active memories that say nearly the same, the nearest first.

    Several IRIs are decided independently, in one commit. A conflict between two active memories, or a near pair, is
    resolved by accept A --against B (B is withdrawn), reject A --against B (A is withdrawn) or supersede A --against B
    (a new version of A replaces both), or keep-both A --against B with --set about=PATH where A applies elsewhere.

    --conflicts lists conflicting pairs, now or --as-of a moment; each present one with the commands that resolve it, of
    which one is enough.

    Examples:
      jidomem review
      jidomem review --conflicts
      jidomem review --limit 20
      jidomem review --todo
      jidomem review accept --all --dry-run
      jidomem review reject --all --by ana --reason "it repeats itself" --dry-run
      jidomem review --by-rule --dry-run
      jidomem review --json
    """
    ways = [action is not None, conflicts, edit, as_todo, source is not None, by_rule]
    if sum(ways) > 1 or (action and not items and not all_):
        raise InvalidRequest(
            "choose one: ACTION IRI, --conflicts, --edit, --todo, --from or --by-rule",
            hint="jidomem review accept IRI..., or --edit, --from, --by-rule",
        )
    moments = {"--as-of": app.as_of, "--valid-at": app.valid_at}
    if not conflicts and (given := next((name for name, moment in moments.items() if moment is not None), None)):
        raise InvalidRequest(f"jidomem review does not take {given}", hint=f"leave out {given}, or add --conflicts")
    if all_ and (items or not (action == "accept" or (action == "reject" and by))):
        hint = "jidomem review accept --all, or reject --all --by AGENT"
        raise InvalidRequest("--all takes no IRI, and rejects only the proposals of one agent", hint=hint)
    if by is not None and (conflicts or items or source is not None or by_rule):
        raise InvalidRequest("--by goes with a list and with --all", hint=f"jidomem review --by {by}")
    if against is not None and len(items) != 1:
        raise InvalidRequest(
            "--against goes with one memory", hint=f"jidomem review {action or 'accept'} IRI --against IRI"
        )
    if changes and (action not in ("supersede", "keep-both") or len(items) != 1):
        hint = "jidomem review keep-both IRI --set about=PATH; a date of review: jidomem edit IRI --confirm --set ..."
        raise InvalidRequest("--set goes with supersede or keep-both of one memory", hint=hint)
    if reason is not None and action is None:
        raise InvalidRequest("a reason goes with one action", hint='jidomem review reject IRI --reason "..."')
    if (action or source or by_rule or conflicts) and (app.limit is not None or app.cursor is not None):
        raise InvalidRequest("--limit and --cursor are for lists", hint="leave out --limit and --cursor")
    memory = app.open() if action or source else app.read()
    if conflicts:
        _show_conflicts(app, memory)
        return 0
    if all_ and action == "reject":
        return _reject_all(app, memory, by or "", reason, dry_run)
    if all_:
        return _accept_all(app, memory, by, reason, dry_run)
    if action is not None:
        names = [_pending_id(memory, item) for item in items]
        rival = memory_iri(memory, against) if against else None
        fields = with_memory_paths(memory, given_fields(changes)) or None
        settlements = [Settlement(item, action, rival, reason, fields) for item in dict.fromkeys(names)]
        return _settle(app, memory, settlements, dry_run)
    if by_rule:
        return _by_rule(app, memory, dry_run)
    if source is not None:
        return _apply_review(app, memory, _decode(source.read()), dry_run)
    now = memory.sources.now()
    pairs = memory.near_pairs() if by is None else ()
    limit = app.limit if edit or as_todo else app.rows
    queue_page = queued(memory.reader, memory.project, now, pairs, limit=limit, cursor=app.cursor, by=by,
                        curators=memory.writer.authority(memory.project).curators)  # fmt: skip
    waiting = with_endings(memory.reader, memory.project, _at_present_lines(memory, queue_page.waiting))
    queue_page = replace(queue_page, waiting=waiting)
    if edit:
        return _edit_review(app, memory, queue_page.waiting, dry_run)
    if as_todo:
        click.echo(todo(queue_page.waiting, _rewordings(memory, queue_page.waiting), acting(app)), nl=False)
        if queue_page.cursor is not None:
            app.info(f"the next lines: jidomem review --todo --limit {app.limit} --cursor {queue_page.cursor}")
    else:
        _list(app, memory, queue_page, f" --by {quote(by)}" if by is not None else "")
    lag = memory.lag(memory.project)
    if by is None and (lag or not queue_page.waiting) and (notice := near_pairs_notice(lag)):
        app.info(notice)
    return 0


_CONFLICT_COLUMNS = ("kind", "item", "summary", "other", "other_summary", "settle")


def _show_conflicts(app: App, memory: Jidomem) -> None:
    """Print the conflicting pairs, with proposals; at present also the commands to settle them."""
    if app.as_of is None and app.valid_at is None:
        now, agent = memory.sources.now(), memory.writer.agent
        every = pending_pairs(memory.reader, memory.project, now, acting(app), agent)
    else:
        every = past_pairs(memory.reader, memory.project, as_of=app.as_of, valid_at=app.valid_at)
    rows = [row for row in every if row["other"]]
    others = len(every) - len(rows)
    if app.form != "table":
        show_rows(app, rows, _CONFLICT_COLUMNS)
        return
    for row in rows:
        click.echo(row["kind"])
        for item, summary in (("item", "summary"), ("other", "other_summary")):
            click.echo(fit_line(app, f"  {short(row[item])}  {clean(row[summary] or '')}", PIPED))
        for command in row["settle"]:
            click.echo(f"    {command}")
    if not rows:
        app.info("none")
    if others:
        several = "proposals have" if others > 1 else "proposal has"
        app.info(f"{others:,} more {several} no conflict: jidomem review")


def _pending_id(memory: Jidomem, name: str) -> str:
    """Return the IRI of the memory *name*; for a name by source, that of the proposal to replace it."""
    item = memory_iri(memory, name)
    uuid = item.rpartition("/")[2]
    if name == item or (not is_number(name) and (uuid.startswith(name) or uuid.endswith(name))):
        return item
    waiting = _waiting(memory)
    proposed = [one.item for one in waiting if one.kind == "proposal" and item in one.replaces]
    return proposed[0] if len(proposed) == 1 and all(one.item != item for one in waiting) else item


def _settle(app: App, memory: Jidomem, settlements: Sequence[Settlement], dry_run: bool) -> int:
    """Settle each memory independently; raises InvalidRequest if two of them conflict with each other."""
    if len(settlements) == 1:
        (each,) = settlements
        (outcome,) = memory.writer.settle_many(memory.project, settlements, dry_run=dry_run)
        if isinstance(outcome, JidomemError):
            waiting = _waiting(memory)
            outcome = _denied(memory, outcome, each.item, waiting) or outcome
            return print_error(_in_words(app, memory, outcome, each.item, each.action, waiting), app)
        judged = each.item if each.action == "reject" or (each.action == "accept" and each.other) else None
        show_receipt(app, memory, outcome, OUTCOMES[each.action], item=judged)
        if outcome.commit is not None and each.action != "reject":
            show_due(app, memory, outcome)
            status = memory.reader.get_memory(memory.project, outcome.iri)["status"]
            if status in UNACCEPTED:
                app.info(f"the decision is {status}, and not active")
            elif status == EXPIRED:
                edit = f"jidomem edit {short(outcome.iri)} --set valid_until=DATE"
                app.info(f"it ended at its date; if it holds longer: {edit}")
        return 0
    waiting, named = _waiting(memory), {each.item for each in settlements}
    pair = next((one for one in waiting if one.kind == "conflict" and {one.item, one.other} <= named), None)
    if pair is not None:
        raise InvalidRequest(
            f"{short(pair.item)} and {short(pair.other)} conflict: give one of them with --against the other",
            hint=_choices(app, memory, pair),
        )
    outcomes = memory.writer.settle_many(memory.project, settlements, dry_run=dry_run)
    summaries = {one.item: one.summary for one in waiting}
    settled = [
        SettlementOutcome(0, each.action, each.item, summaries.get(each.item, ""), outcome)
        for each, outcome in zip(settlements, outcomes, strict=True)
    ]
    return _show_settled(app, memory, settled)


def _denied(memory: Jidomem, error: JidomemError, item: str, waiting: Sequence[QueueItem]) -> PolicyDenied | None:
    """Return the refusal of the commands that settle a conflicting *item*, if the policy denies them to the writer."""
    one = next((one for one in waiting if one.item == item and one.other), None)
    if one is None or not isinstance(error, Conflict):
        return None
    settlement = Settlement(item, one.choices[0], one.other if one.kind == "conflict" else None)
    (outcome,) = memory.writer.settle_many(memory.project, [settlement], dry_run=True)
    return outcome if isinstance(outcome, PolicyDenied) else None


def _waiting(memory: Jidomem) -> list[QueueItem]:
    return queue(memory.reader, memory.project, memory.sources.now(), memory.near_pairs())


def _choices(app: App, memory: Jidomem, one: QueueItem) -> str:
    """Return the commands that settle *one*, one a line."""
    return "\n  ".join(["choose one:", *_aligned(commands(one, acting(app), memory.writer.agent))])


def _aligned(ways: Sequence[tuple[str, str]]) -> list[str]:
    """Return commands with their effects, one a line."""
    width = max((len(line) for line, _ in ways), default=0)
    return [f"{line.ljust(width)}  {effect}" for line, effect in ways]


def _reject_all(app: App, memory: Jidomem, by: str, reason: str | None, dry_run: bool) -> int:
    """Reject every proposal of an agent, in one commit; a refused one does not stop the others."""
    waiting = queue(memory.reader, memory.project, memory.sources.now(), by=by)
    _preview(app, waiting, "would reject" if dry_run else "rejecting")
    lines = [ReviewLine(0, "reject", one, reason) for one in waiting]
    return _print_outcomes(app, memory, apply(memory.writer, memory.project, lines, dry_run=dry_run))


def _accept_all(app: App, memory: Jidomem, by: str | None, reason: str | None, dry_run: bool) -> int:
    """Accept every proposal without a conflict, or those *by* one agent; a refused one does not stop the others."""
    waiting = queue(memory.reader, memory.project, memory.sources.now(), by=by)
    found = acceptable(memory.reader, memory.project, waiting)
    lines = [ReviewLine(0, "accept", one, reason) for one in found[""]]
    _preview(app, with_endings(memory.reader, memory.project, found[""]), "would accept" if dry_run else "accepting")
    code = _print_outcomes(app, memory, apply(memory.writer, memory.project, lines, dry_run=dry_run))
    for key, what in LEFT.items():
        shown, others = app.first(found[key], NAMED)
        if shown:
            more = f": {', '.join(short(one.item) for one in shown)}{', ...' if others else ''}"
            more = ": jidomem review --conflicts" if key == "conflict" else more
            app.info(f"{len(found[key])} {what}{'' if key in _LISTED else more}")
        if key not in _LISTED:
            continue
        for one in shown:
            app.info(fit_line(app, f"  {short(one.item)}  {clean(one.summary)}", PIPED))
            for line in _aligned(commands(one, acting(app), memory.writer.agent)):
                app.info(f"    {line}")
        if others:
            app.info(f"  and {others:,} more: jidomem review")
    return code


#: The reasons why proposals are left that are listed with the commands that settle each.
_LISTED = ("rival", "near", "date", "past")


def _preview(app: App, waiting: Sequence[QueueItem], doing: str) -> None:
    """Print the proposals about to be settled: the number of each kind from each source, and the first of each."""
    sources: dict[str, list[QueueItem]] = {}
    for one in waiting:
        sources.setdefault(one.file or f"by {', '.join(map(short, one.agents))}", []).append(one)
    if waiting:
        app.info(f"{doing} {len(waiting):,}:")
    shown, others = app.first([*sources.items()], NAMED)
    for source, proposals in shown:
        app.info(f"  {source}: {_kinds(proposals)}")
        first, left = app.first(proposals, _FIRST)
        for one in first:
            app.info(fit_line(app, f"    {short(one.item)}  {clean(one.summary)}", PIPED))
        if left:
            app.info(f"    and {left:,} more (-v lists them)")
    if others:
        app.info(f"  and {others:,} more sources (-v lists them)")
    ending_active = [(one, end) for one in waiting for end in one.ends if end["status"] == ACTIVE]
    if ending_active:
        app.info(f"active memories that they replace or withdraw: {len(ending_active):,}")
    for one, end in app.first(ending_active, _FEW)[0]:
        app.info(fit_line(app, f"  {short(one.item)} {clean(ending(end))}", PIPED))


def _kinds(some: Sequence[QueueItem]) -> str:
    """Return the number of memories of each type, in words."""
    counts = Counter(one.type or "memory" for one in some)
    counts["withdrawal"] = counts.pop("deleted_marker", 0)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common() if count)


def _rewordings(
    memory: Jidomem, waiting: Sequence[QueueItem], newer: Mapping[str, str] | None = None
) -> dict[str, list[Rewording]]:
    """Return the rewordings of each proposal that is to replace memories, or an older proposal.

    *newer* are the newer versions of *waiting*, if they are known already.
    """
    newer = newer_versions(memory.reader, memory.project, waiting) if newer is None else newer
    older = {new: old for old, new in newer.items()}
    old_of = {one.item: one.replaces or tuple(filter(None, [older.get(one.item)])) for one in waiting}
    return {item: rewordings(memory.reader, memory.project, item, olds) for item, olds in old_of.items() if olds}


def _list(app: App, memory: Jidomem, queue_page: Queue, by: str) -> None:
    newer = newer_versions(memory.reader, memory.project, queue_page.waiting)
    options, reworded = acting(app), _rewordings(memory, queue_page.waiting, newer)
    settle = [commands(one, options, memory.writer.agent) for one in queue_page.waiting]
    rows: list[dict[str, Any]] = [
        {
            **one.to_dict(),
            "priority": one.tier,
            "settle": [line for line, _ in ways],
            "rewordings": [asdict(each) for each in reworded.get(one.item, ())],
        }
        for one, ways in zip(queue_page.waiting, settle, strict=True)
    ]
    left = f"{queue_page.total - len(rows):,}" if app.limit is None and app.cursor is None else ""
    if app.form != "table":
        show_rows(app, rows, _QUEUE_COLUMNS, queue_page.cursor, left=left)
        return
    if app.cursor is None:
        _show_open_decisions(app, memory)
    if not rows:
        app.info("nothing to review")
        return
    for one, row, ways in zip(queue_page.waiting, rows, settle, strict=True):
        row["below"] = [] if row["place"] or not row["source"] else [f"evidence: {row['source']}"]
        row["source"] = row["place"] or ""
        row["below"] += [line for each in reworded.get(row["item"], ()) for line in each.shortened(_REWORDED).lines()]
        row["below"] += _endings(app, row)
        row["below"] += [fit_line(app, clean(line), PIPED - 4) for line in marks(one)]
        if row["item"] in newer:
            row["below"].append(f"a newer version is pending: {short(newer[row['item']])}")
        elif row["type"] in ("decision", "architectural_decision") and not row["rewordings"]:
            row["below"] += _unaccepted_status(memory, row["item"])
        row["below"] += [_against(app, row)] if row["other"] else []
        row["below"] += _aligned(ways) if row["other"] or row["rivals"] or row["needs_date"] or one.is_redacted else []
    _group(rows, queue_page.waiting)
    columns = [
        name for name in _QUEUE_COLUMNS if name != "other" and (name not in _RARE or any(row[name] for row in rows))
    ]
    show_rows(app, rows, columns, queue_page.cursor, above="above", below="below", piped=PIPED, left=left)
    if not _may_settle(memory, queue_page.waiting):
        app.info(_curators(app, memory))
        return
    found = acceptable(memory.reader, memory.project, queue_page.waiting)
    single = {one.item for key in ("", "near", "strict", "past", "date") for one in found[key]}
    due = {one.item for one in queue_page.waiting if one.kind in QUESTIONS and "accept" in one.actions}
    _show_ways(app, options, [one for one in queue_page.waiting if one.item in single | due])
    if parted := next((one for one in queue_page.waiting if one.may_be_parted), None):
        app.info(f"keep both, where the first one applies elsewhere: {keep_both(parted, options)}")
    if offered := found[""]:
        several = "proposals" if len(offered) > 1 else "proposal"
        many = f"{len(offered):,} {several} ({_kinds(offered)})" if queue_page.cursor is None else "all proposals"
        app.info(f"accept {many} without a conflict: jidomem review{options} accept --all{by}")
    if by and queue_page.total:
        app.info(f'reject all {queue_page.total:,}: jidomem review{options} reject --all{by} --reason "..."')


def _show_open_decisions(app: App, memory: Jidomem) -> None:
    """Print the number of recorded decisions that nobody has taken: they are no proposals of this review."""
    if items := open_decisions(memory.reader, memory.project):
        what = "decision has" if len(items) == 1 else "decisions have"
        way = f"jidomem edit {short(items[0])} --set status=accepted, or rejected"
        app.info(f"{len(items):,} recorded {what} the status proposed; decide one: {way}")


def _show_ways(app: App, options: str, waiting: Sequence[QueueItem]) -> None:
    """Print the commands that settle the first of *waiting*, which has no conflict, and many."""
    many = f"jidomem review{options} --edit"
    if not waiting:
        app.info(f"decide many: {many}")
        return
    one = waiting[0]
    way, edit = f"jidomem review{options} accept {short(one.item)}", f"jidomem edit{options} {short(one.item)}"
    if one.kind == "no_longer_valid":
        way += f" (it ended at its date), or reject (it never held); if it holds longer: {edit} --set valid_until=DATE"
    elif one.needs_date:
        way = f"{edit} --confirm --set expires_on=DATE, or {way.replace(' accept ', ' reject ')}"
    else:
        app.info(f"decide one: {way}, or reject; many: {many}")
        return
    app.info(f"decide one: {way}\ndecide many: {many}")


def _at_present_lines(memory: Jidomem, waiting: Sequence[QueueItem]) -> list[QueueItem]:
    """Return *waiting* with the lines of its texts in their files now, and no line for a text that is not there."""
    entries = entries_now(memory, {one.file for one in waiting if one.file})
    line_of = {item: line for each in entries.values() for line, items in each.items() for item in items}
    return [
        replace(one, place=f"{one.file}:{line_of[one.item]}" if one.item in line_of else one.file)
        if one.file and one.file in entries
        else one
        for one in waiting
    ]


def _group(rows: Sequence[dict[str, Any]], waiting: Sequence[QueueItem]) -> None:
    """Show the file of several rows once, above the first; each row keeps its line number."""
    counts = Counter(one.file for one in waiting)
    files = [one.file if counts[one.file] > 1 else None for one in waiting]
    for row, file, before in zip(rows, files, [None, *files], strict=False):
        if file != before:
            row["above"] = f"{file} ({counts[file]:,})" if file else ""
        if file:
            row["source"] = row["source"].removeprefix(file)


def _may_settle(memory: Jidomem, waiting: Sequence[QueueItem]) -> bool:
    """Return whether the policy allows the writer to settle the pending reviews, tested with the first proposal."""
    one = next((one for one in waiting if one.kind == "proposal" and one.other is None), None)
    if one is None or memory.writer.is_curator(memory.project):
        return True
    (outcome,) = memory.writer.settle_many(memory.project, [Settlement(one.item, "accept")], dry_run=True)
    return not isinstance(outcome, PolicyDenied)


def _curators(app: App, memory: Jidomem) -> str:
    """Return who may settle the pending reviews, or how to become a curator."""
    authority = memory.writer.authority(memory.project)
    names, owner = ", ".join(map(short, authority.curators)), quote(memory.settings.owner)
    text = f"reviewed by a curator: {names}" if names else "proposals are reviewed by curators, and there are none"
    if authority.administrators:  # administrators are curators too
        return text
    return (
        f"{text}\nappoint an administrator, who is a curator too; until then anybody can appoint themselves:"
        f" jidomem access policy grant {owner} admin"
    )


def _against(app: App, row: Mapping[str, Any]) -> str:
    if row["is_identical"]:
        return f"says exactly the same as {short(row['other'])}, which is active: one is enough"
    unequal = f", differs in {'; '.join(row['differences'])}" if row["differences"] else ""
    if row["other_summary"] == row["summary"]:
        return f"same summary as {short(row['other'])}, which is active, with other fields{unequal}"
    if row["kind"] == NEAR:
        return fit_line(app, f"near {short(row['other'])}{unequal}: {row['other_summary']}", PIPED - 4)
    return fit_line(app, f"against {short(row['other'])}: {row['other_summary']}", PIPED - 4)


def _endings(app: App, row: Mapping[str, Any]) -> list[str]:
    """Return the memories that a proposal ends, with the changed fields, and the reason."""
    lines = []
    for end in row["ends"]:
        lines.append(fit_line(app, clean(ending(end)), PIPED - 4))
        lines += change_lines(app, changed_fields(end, is_reworded=bool(row["rewordings"])))
    return [*lines, f"reason: {clean(row['reason'])}"] if row["reason"] else lines


def _unaccepted_status(memory: Jidomem, item: str) -> list[str]:
    """Return the line with the status of a proposed decision that is not active once it is accepted."""
    statuses = memory.reader.get_memory(memory.project, item)["properties"].get("decisionStatus", ())
    return [f"status: {status}" for status in statuses if not is_accepted(status)]


_EDITOR = "set $VISUAL or $EDITOR, or: jidomem review --todo > FILE, edit it, and jidomem review --from FILE"


def _edit_review(app: App, memory: Jidomem, waiting: list[QueueItem], dry_run: bool) -> int:
    """Apply the edited lines; unless all succeed, keep the file and print its path."""
    if not waiting:
        app.info("nothing to review")
        return 0
    has_editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not has_editor and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest("--edit needs a terminal for the default editor; nothing was done", hint=_EDITOR)
    offered = todo(waiting, _rewordings(memory, waiting), acting(app))
    with tempfile.NamedTemporaryFile("w", suffix=".review", delete=False, encoding="utf-8") as file:
        file.write(offered)
    path, code, is_done = Path(file.name), 1, False
    try:
        is_changed = _open_editor(path, offered)
        if is_changed:
            code = _apply_review(app, memory, _decode(path.read_bytes()), dry_run)
        else:
            app.info("no line was changed; nothing done")
        is_done = code == 0 or not is_changed
        return code if is_changed else 0
    finally:
        if is_done:
            path.unlink(missing_ok=True)
        elif path.exists() and path.read_bytes() != offered.encode():
            app.warn(f"your review is saved; correct it, then: jidomem review --from {path}")


def _open_editor(path: Path, offered: str) -> bool:
    """Return whether the editor changed the file at *path*, which contained *offered*; raises InvalidRequest."""
    try:
        click.edit(filename=str(path))
        return path.read_bytes() != offered.encode()
    except click.ClickException as error:
        raise InvalidRequest(f"{error.format_message()}; nothing was done", hint=_EDITOR) from None
    except OSError as error:
        raise InvalidRequest(f"the editor removed the file: {error}; nothing was done", hint=_EDITOR) from None


def _decode(data: bytes) -> str:
    """Return the text of a review; raises InvalidRequest if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"line {line}: this is not UTF-8; nothing was done", hint="save it as UTF-8") from None


def _apply_review(app: App, memory: Jidomem, text: str, dry_run: bool) -> int:
    """Settle the reviews in the lines that are still pending; return the exit code of the first refusal."""
    waiting = _waiting(memory)

    def end_of(name: str) -> str | None:
        try:
            item = memory.reader.whole_id(memory.project, name)
            ended = memory.reader.get_memory(memory.project, item)
        except JidomemError:
            return None
        return str(ended["status"]) if has_ended(ended) else None

    present = partial(present_name, view=present_rows(memory.reader, memory.project))
    text, settled = without_settled(text, waiting, end_of, present)
    lines = parse(text, waiting, present)
    if settled:
        some = [f"line {number}: {line}" for number, line in [*settled.items()][:NAMED]]
        more = "; ..." * (len(settled) > NAMED)
        app.info(f"skipped, decided already: {len(settled)} ({'; '.join(some)}{more})")
    return _print_outcomes(app, memory, apply(memory.writer, memory.project, lines, dry_run=dry_run))


def _by_rule(app: App, memory: Jidomem, dry_run: bool) -> int:
    rules = memory.writer.authority(memory.project)
    settled = settle_by_rule(memory.writer, memory.reader, memory.project, rules, memory.sources.now(), dry_run=dry_run)
    outcomes = [(ReviewLine(0, "accept", one, str(rule)), outcome) for one, rule, outcome in settled]
    if not rules.confirmations:
        app.info("there is no confirmation rule: jidomem access policy confirm restated|unopposed")
    return _print_outcomes(app, memory, outcomes)


def _print_outcomes(app: App, memory: Jidomem, outcomes: Sequence[tuple[ReviewLine, Receipt | JidomemError]]) -> int:
    settled = [
        SettlementOutcome(
            line.number, line.action, one.item, one.summary, outcome, effect(one, line.action) if one.other else ""
        )
        for line, outcome in outcomes
        for one in [line.waiting]
    ]
    return _show_settled(app, memory, settled)


def _show_settled(app: App, memory: Jidomem, settled: Sequence[SettlementOutcome]) -> int:
    """Print the outcome of each settlement, or only the counts of many; return the exit code of the first refusal."""
    refused = [each for each in settled if isinstance(each.outcome, JidomemError)]
    code = next((each.outcome.exit_code for each in settled if isinstance(each.outcome, JidomemError)), 0)
    if app.json:
        for each in settled:
            done = {} if isinstance(each.outcome, JidomemError) else {"outcome": OUTCOMES[each.action]}
            values = {"line": each.number, "action": each.action, "item": each.item}
            show_json({**values, **done, **each.outcome.to_dict()})
        return code
    if len(settled) - len(refused) <= _FEW or app.verbose:
        for each in settled:
            if isinstance(each.outcome, Receipt):
                click.echo(fit_line(app, f"{each.where}{settled_text(each)}: {clean(each.summary)}", PIPED))
    made = {each.outcome.iri: each for each in settled if isinstance(each.outcome, Receipt)}
    _show_refused(app, memory, refused, made)
    app.info(counted(settled))
    return code


def _named(conflict: ConflictItem, made: Mapping[str, SettlementOutcome]) -> str:
    """Return the id and summary of a conflicting memory, of one *made* by the same call the id of what was settled."""
    item = made[conflict.iri].item if conflict.iri in made else conflict.iri
    return f"{short(item)}: {clean(conflict.summary)}"


def _show_refused(
    app: App, memory: Jidomem, refused: Sequence[SettlementOutcome], made: Mapping[str, SettlementOutcome]
) -> None:
    """Print the reasons of refusals: a shared reason once, and a conflict on one line; *made* are the others by IRI."""
    opposed = [each for each in refused if isinstance(each.outcome, Conflict)]
    others = [each for each in refused if not isinstance(each.outcome, Conflict)]
    shown, left = app.first(opposed, NAMED)
    for each in shown:
        assert isinstance(each.outcome, Conflict)
        rivals = [f"{conflict.kind} with {_named(conflict, made)}" for conflict in each.outcome.conflicts]
        text = f"{each.where}{each.action} {short(each.item)}: {'; '.join(rivals)}"
        click.echo(f"{app.styled('error:', 'red')} {fit_line(app, text, PIPED)}", err=True)
    if opposed:
        if left:
            app.info(f"and {left} more that repeat or contradict active memories")
        app.info("hint: the commands that resolve each: jidomem review")
    is_read = any(not isinstance(each.outcome, PolicyDenied) for each in others)
    waiting = _waiting(memory) if is_read else []
    counts = Counter[tuple[str, str]]()
    for each in others:
        error = each.outcome
        assert isinstance(error, JidomemError)
        if error.code == "missing_rationale" and each.number:
            error.hint = "add the reason at the end of the line"
        counts[error.detail, error.hint] += 1
        if counts[error.detail, error.hint] > 1:
            continue
        print_refusal(
            _in_words(app, memory, error, each.item, each.action, waiting),
            app,
            where=f"{each.where}{each.action} {short(each.item)}: ",
        )
    print_repeated(app, counts.values())


def _in_words(
    app: App, memory: Jidomem, error: JidomemError, item: str, action: str, waiting: Sequence[QueueItem]
) -> JidomemError:
    """Return *error* with commands of the same agent, such as those that settle *item*, and short ids for people."""
    one = next((one for one in waiting if item in (one.item, one.other) and one.other), None)
    is_settled_otherwise = isinstance(error, Conflict) or (one is not None and action not in one.actions)
    if one is not None and is_settled_otherwise and action != "keep-both" and not isinstance(error, PolicyDenied):
        error.hint = _choices(app, memory, one)
    else:
        grant, of, owner = error.hint.partition("jidomem access policy grant")
        later = f", then reviews with --agent{owner.removesuffix(' admin')}" if of and app.agent else ""
        error.hint = in_place(f"{grant}{of}{owner}{later}", app)
    if not app.json:
        error.detail, error.hint = shortened(error.detail), shortened(error.hint)
    return error
