"""`jidomem review --conflicts`: the conflicting pairs, each with the commands that settle it."""

from __future__ import annotations

from typing import Any

import click

from jidomem import Jidomem
from jidomem.curation.review_queue import Waiting, queue, with_rivals
from jidomem.curation.review_text import commands
from jidomem.rdf.vocab import REDACTED
from jidomem_cli.errors import acting
from jidomem_cli.options import App, clean
from jidomem_cli.output import PIPED, fit_line, form_of, short, show_rows

_CONFLICT_COLUMNS = ("kind", "item", "summary", "other", "other_summary", "settle")


def show_conflicts(app: App, memory: Jidomem) -> None:
    """Print the conflicting pairs of active memories, and conflicting proposals; at present also the commands to settle
    them.
    """
    is_now = app.as_of is None and app.valid_at is None
    every = _pending(app, memory) if is_now else [*_disagreements(app, memory), *_proposals(app, memory)]
    rows = [row for row in every if row["other"]]
    others = len(every) - len(rows)
    if form_of(app) != "table":
        show_rows(app, rows, _CONFLICT_COLUMNS)
        return
    for row in rows:
        click.echo(row["kind"])
        for item, summary in (("item", "summary"), ("other", "other_summary")):
            if row[item]:
                click.echo(fit_line(app, f"  {short(row[item])}  {clean(row[summary] or '')}", PIPED))
        for command in row["settle"]:
            click.echo(f"    {command}")
    if not rows:
        app.info("none")
    if others:
        several = "proposals have" if others > 1 else "proposal has"
        app.info(f"{others:,} more {several} no conflict: jidomem review{acting(app)}")


def _pending(app: App, memory: Jidomem) -> list[dict[str, Any]]:
    """Return the present conflicts and proposals, with the commands that settle them; two rival proposals once."""
    waiting = with_rivals(memory.reader, memory.project, queue(memory.reader, memory.project, memory.sources.now()))
    rows = [_row(app, memory, one) for one in waiting if one.kind == "conflict"]
    seen = set[str]()
    for one in waiting:
        if one.kind == "proposal":
            seen.add(one.item)
            row = _row(app, memory, one)
            rivals = [each for each in one.rivals if each["item"] not in seen]
            pairs = [{**row, "other": each["item"], "other_summary": each["summary"]} for each in rivals]
            rows += [row] if one.other or not one.rivals else pairs
    return rows


def _row(app: App, memory: Jidomem, one: Waiting) -> dict[str, Any]:
    settle = [command for command, _ in commands(one, acting(app), memory.writer.agent)]
    return {
        "kind": one.why if one.kind == "conflict" else one.kind,
        "item": one.item,
        "summary": one.summary,
        "other": one.other,
        "other_summary": one.other_summary,
        "settle": settle,
    }


def _disagreements(app: App, memory: Jidomem) -> list[dict[str, Any]]:
    """Return each conflicting pair once, with the first kind of its conflicts."""
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for row in memory.reader.ask("conflicts", project=memory.project, as_of=app.as_of, valid_at=app.valid_at):
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


def _proposals(app: App, memory: Jidomem) -> list[dict[str, Any]]:
    rows = memory.reader.ask("proposals", project=memory.project, as_of=app.as_of, valid_at=app.valid_at)
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
    summaries: list[str] = memory.reader.get_memory(memory.project, item)["properties"].get("summary", [])
    return summaries[0] if summaries else REDACTED
