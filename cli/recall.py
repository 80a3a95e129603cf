"""`jidomem recall`: search memories by words."""

from __future__ import annotations

from math import inf
from typing import Any

import click

from jidomem.base.clock import json_value
from jidomem.errors import Busy
from jidomem.rdf.vocab import short_id
from jidomem.recall.briefing import contrast_lines, markdown, stale_files
from jidomem.records.active import DUE, OUTCOME, UNTIL
from jidomem.records.recall import DEFAULT_LIMIT, LARGEST_LIMIT, MIN_SCORE, Hit
from jidomem_cli.options import (
    App,
    Command,
    about_option,
    budget_option,
    include_inactive_option,
    limit_option,
    pass_app,
)  # fmt: skip
from jidomem_cli.output import CONFLICTS, Row, pending_count, pending_notice, show_json, show_rows
from jidomem_cli.paths import Paths

_FORMATS = ("table", "json", "jsonl", "csv", "tsv", "md")
_OPTION = "--include-inactive"
_BUILDING = "the search index is being built: {:,} of {:,} commits"
_COLUMNS = ("score", "item", "kind", "summary", "about", "agent", "recorded", "status", "time")


@click.command(cls=Command, formats=_FORMATS, as_of=True, valid_at=True)
@click.argument("text")
@click.option("--kind", "kinds", multiple=True, metavar="KIND",
              help="Type or class of memory, with those below it; repeatable.")  # fmt: skip
@about_option
@click.option("--agent", metavar="NAME", help="Only what this agent wrote.")
@click.option("--session", metavar="NAME", help="Only memories of this session.")
@click.option("--since", metavar="MOMENT", help="Only memories recorded at this moment or later.")
@click.option("--until", metavar="MOMENT", help="Only memories recorded before this moment.")
@include_inactive_option
@limit_option(default=DEFAULT_LIMIT, most=LARGEST_LIMIT)
@budget_option
@click.option("--explain", is_flag=True, help="Show why each memory is there: a line for each signal.")
@click.option(
    "--min-score",
    type=float,
    metavar="SCORE",
    help=f"Show only results with this score or more, from 0 to 1 (default: {MIN_SCORE}, and a third of the best).",
)
@click.option("--all", "min_score", flag_value=0.0, type=float, help="Show results of any score.")
@pass_app
def recall(app: App, /, text: str, limit: int, explain: bool, about: tuple[str, ...], **filters: Any) -> None:
    """Find active memories by the words of TEXT, the best match first.

    Matches word stems, and parts of names and paths; not every word has to match. Memories that govern a file of
    --about rank higher. The default of --limit is 5. The score is the probability that the memory answers TEXT; if
    none reaches --min-score, only the nearest is named. --format md prints quoted data for an agent, which is the text
    that --budget-tokens limits; a token is three bytes. It waits for a new search index; without one it exits with 6.

    Examples:
      jidomem recall "which index did we choose?"
      jidomem recall "parser timeout" --kind error --kind lesson --about src/parser.py --explain
      jidomem recall "release process" --budget-tokens 400 --format md
    """
    memory = app.read()
    tenths = set[int]()

    def show_progress(added: int, commits: int) -> None:
        if (tenth := 10 * added // commits) not in tenths:
            tenths.add(tenth)
            app.info(_BUILDING.format(added, commits))

    memory.await_index(inf, show_progress)
    result = memory.recall(
        text,
        limit=limit,
        explain=explain,
        about=Paths(memory.settings.root, memory.tree).each(about),
        as_of=app.as_of,
        valid_at=app.valid_at,
        **filters,
    )
    hint = "repeat the command, or let jidomem root reindex add all"
    partial = Busy(text, hint=hint, code="index_behind") if (text := result.index_notice()) else None
    if partial and not result.entries:
        raise partial
    form, notice = app.form, result.inactive.notice(_OPTION)
    if form == "json":
        show_json(json_value({**result.to_dict(), "inactive": result.inactive.to_dict(_OPTION)}))
    elif form == "jsonl":
        for hit in result.entries:
            show_json(json_value(hit.to_dict()))
    elif form == "md":
        click.echo(markdown(result, _OPTION), nl=False)
    else:
        columns = (
            *_COLUMNS,
            *(["parts", "reasons"] if explain and form != "table" else []),
            *([] if form == "table" else ["text", "state", CONFLICTS]),
        )
        is_silent = not result.entries and not notice  # the notice has the pending ones
        none = pending_notice(pending_count(memory)) if is_silent else ""
        rows = [_row(hit) for hit in result.entries]
        show_rows(app, rows, columns, memory=memory, below="below", whole="summary", none=none)
    if form != "json" and (result.metadata["more"] or result.metadata["left_out"]):
        app.info("there are more: raise --limit or --budget-tokens")
    count = result.metadata["below"]
    best = f"{count} of the best {count + result.metadata['left_out'] + len(result.entries)}"
    below = f"{best} with a score below {result.metadata['min_score']:.2g}: --all shows them"
    if form not in ("json", "md") and (nearest := result.nearest):
        text = f"{short_id(nearest.id)} {nearest.content!r:.200}, score {_short(nearest.score)}"
        others = below if count > 1 else "--all shows it"
        app.info("\n".join([f"nothing here answers this; nearest: {text}; {others}", *(nearest.reasons or ())]))
    elif form != "json" and count:
        app.info(below)
    unknown = result.metadata["unknown_words"]
    if explain and form not in ("json", "md") and not result.entries and unknown:
        app.info(f"words in no memory: {', '.join(unknown)}")
    sessions, kinds = result.sessions_notice("--session "), result.kinds_notice("--kind {}")
    ended = result.inactive.decision.words if result.inactive.decision else ""
    for text in (
        notice,
        ended,
        sessions,
        result.agent_notice,
        kinds,
        result.last_session_notice(has_commands=True),
        result.lists_notice(has_commands=True),
        result.low_score_notice,
    ):
        if text and form not in ("json", "md"):
            app.info(text)
    vectors = result.metadata.get("vectors", {})
    if form != "json" and (error := vectors.get("error")):
        app.info(f"the embedder failed: {error}")
    elif form != "json" and (pending := vectors.get("pending")):
        former = vectors.get("former")
        meanwhile = f"; the vectors of {former} answer meanwhile" if former else " and match by words only"
        app.info(f"{pending:,} pieces of text have no vector yet{meanwhile}: jidomem root reindex makes all")
    if partial:
        raise partial


def _row(hit: Hit) -> Row:
    metadata, parts = hit.metadata, {**(hit.parts or {})}
    words, stale = parts.pop("words", {}), stale_files(hit)
    return {
        "score": _short(hit.score),
        "item": hit.id,
        "kind": metadata["kind"],
        "summary": hit.content,
        "about": [f"{place} ({stale[place]})" if place in stale else place for place in metadata["about"]],
        "agent": hit.agent_id,
        "recorded": metadata["recorded_at"],
        "status": metadata["status"],
        "state": metadata.get("state"),
        CONFLICTS: metadata.get(CONFLICTS),
        DUE: metadata.get(DUE),
        UNTIL: metadata.get(UNTIL),
        "time": metadata["time"],
        "text": hit.excerpt,
        OUTCOME: metadata.get(OUTCOME),
        "below": [*filter(None, [hit.excerpt]), *contrast_lines(hit), *(hit.reasons or ())],
        "reasons": [*(hit.reasons or ())],
        "parts": [f"{name} {_short(value)}" for name, value in (*parts.items(), *words.items()) if value],
    }


def _short(value: float) -> str:
    return f"{value:.4g}"
