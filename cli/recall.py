"""`jidomem recall`: memories found by words."""

from __future__ import annotations

from typing import Any

import click

from jidomem.read.playbook import plain
from jidomem.recall.briefing import markdown, stale_files
from jidomem.records.recall import DEFAULT_LIMIT, LARGEST_LIMIT, Hit
from jidomem_cli.fields import Paths
from jidomem_cli.options import App, Command, pass_app
from jidomem_cli.output import CONFLICTS, Row, form_of, show_json, show_rows

_FORMATS = ("table", "json", "jsonl", "csv", "tsv", "md")
_OPTION = "--include-inactive"
_COLUMNS = ("score", "item", "kind", "summary", "about", "agent", "recorded", "status", "time")


@click.command(cls=Command, formats=_FORMATS, as_of=True, valid_at=True)
@click.argument("text")
@click.option("--kind", "kinds", multiple=True, metavar="KIND",
              help="A type or class, with those below it; repeat it for more.")  # fmt: skip
@click.option(
    "--about", multiple=True, metavar="PATH", help="A file: what governs it ranks higher; repeat it for more."
)
@click.option("--agent", metavar="NAME", help="Only what this agent asserted.")
@click.option("--session", metavar="NAME", help="Only what was asserted in this session.")
@click.option("--since", metavar="MOMENT", help="Only what was recorded from then on.")
@click.option("--until", metavar="MOMENT", help="Only what was recorded before.")
@click.option("--include-inactive", is_flag=True, help="Also memories that are not active.")
@click.option(
    "--limit",
    type=click.IntRange(1, LARGEST_LIMIT),
    default=DEFAULT_LIMIT,
    metavar="N",
    help=f"At most N memories ({DEFAULT_LIMIT}).",
)
@click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="How long the answer may be, as Markdown.")
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@pass_app
def recall(app: App, /, text: str, limit: int, explain: bool, about: tuple[str, ...], **narrowing: Any) -> None:
    """Find active memories that hold words of TEXT, the best first.

    Words are found by their stems, names and paths also by their parts; not all of them have to be there. With
    --format md it is quoted data for an agent, which is what --budget-tokens counts: a token for every three bytes.

    Examples:
      jidomem recall "which index did we choose?"
      jidomem recall "parser timeout" --kind error --kind lesson --about src/parser.py --explain
      jidomem recall "release process" --budget-tokens 400 --format md
    """
    memory = app.read()
    found = memory.recall(
        text,
        limit=limit,
        explain=explain,
        about=Paths(memory.settings.root, memory.tree).each(about),
        as_of=app.as_of,
        valid_at=app.valid_at,
        **narrowing,
    )
    form, notice = form_of(app), found.inactive.notice(_OPTION)
    if form == "json":
        show_json(plain({**found.to_dict(), "inactive": found.inactive.to_dict(_OPTION)}))
    elif form == "jsonl":
        for hit in found.entries:
            show_json(plain(hit.to_dict()))
    elif form == "md":
        click.echo(markdown(found, _OPTION), nl=False)
    else:
        columns = (
            *_COLUMNS,
            *(["parts"] if explain else []),
            *([] if form == "table" else ["text", "state", CONFLICTS]),
        )
        show_rows(app, [_row(hit) for hit in found.entries], columns, memory=memory, below="text", whole="summary")
    if form != "json" and (found.metadata["more"] or found.metadata["left_out"]):
        app.info("there is more: raise --limit or --budget-tokens")
    if form not in ("json", "md") and notice:
        app.info(notice)
    if form != "json" and (error := found.metadata.get("vectors", {}).get("error")):
        app.info(f"the embedder failed: {error}")


def _row(hit: Hit) -> Row:
    """Return a hit as a row."""
    said, parts = hit.metadata, {**(hit.parts or {})}
    words, stale = parts.pop("words", {}), stale_files(hit)
    return {
        "score": _short(hit.score),
        "item": hit.id,
        "kind": said["kind"],
        "summary": hit.content,
        "about": [f"{place} ({stale[place]})" if place in stale else place for place in said["about"]],
        "agent": hit.agent_id,
        "recorded": said["recorded_at"],
        "status": said["status"],
        "state": said.get("state"),
        CONFLICTS: said.get(CONFLICTS),
        "time": said["time"],
        "text": hit.excerpt,
        "parts": [f"{name} {_short(value)}" for name, value in (*parts.items(), *words.items()) if value],
    }


def _short(value: float) -> str:
    return f"{value:.4g}"
