"""`jidomem demo`: a tour in a temporary root, with real commands on real decisions."""

from __future__ import annotations

import io
import json
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

import jidomem
from jidomem.base import files
from jidomem_cli.options import App, Command, pass_app
from jidomem_cli.output import show_json

KINDS: tuple[Mapping[str, Any], ...] = (
    {"type": "fact", "summary": "The journal of a million memories is a few thousand files", "topic": "journal size"},
    {"type": "assumption", "summary": "Disks keep what fsync returned for", "expires_on": "2027-06-30"},
    {"type": "hypothesis", "summary": "Sealing commits into packs halves the time to open"},
    {"type": "discovery", "summary": "A hard-linked clone of the index opens in 13 ms", "evidence": ["bench, 2 cores"]},
    {"type": "risk", "summary": "A hand edit of a commit file stops writes to its stream"},
    {"type": "unknown", "summary": "How large do memories of one team become in a year?"},
    {"type": "decision", "summary": "Publish figures as ratios", "topic": "figures", "rationale": "machines differ"},
    {
        "type": "implementation_decision",
        "summary": "Lock with flock, not with a lock file",
        "topic": "locking",
        "rationale": "the kernel lets go of it when its holder is killed",
        "about": ["jidomem/journal/journal.py"],
    },
    {"type": "convention", "summary": "Errors end with the command that helps", "enforcement_level": "Required"},
    {"type": "milestone", "summary": "First release"},
)


@click.command(cls=Command)
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Folder for the root, which stays.")
@pass_app
def demo(app: App, keep: Path | None) -> None:
    """Show the memory at work: intents, repaired errors, conflicts, queries, a past state.

    Examples:
      jidomem demo
      jidomem demo --keep tour
    """
    started = time.monotonic()
    if app.json:
        output = io.StringIO()
        with redirect_stdout(output):
            _show_tour(app, keep)
        show_json({"tour": output.getvalue().splitlines(), "seconds": round(time.monotonic() - started, 1)})
        return
    _show_tour(app, keep)
    _say(f"That took {time.monotonic() - started:.1f} s. Where to go next:")
    click.echo(
        "  jidomem init                        create a memory for the current repository\n"
        "  jidomem init --from adr             import the decisions it has\n"
        '  jidomem remember "..."              record one memory\n'
        "  jidomem ask                         list the named queries\n"
        "  docs/intents.md, docs/conflicts.md  fields of intents, and conflicts"
    )


def _show_tour(app: App, keep: Path | None) -> None:
    """Run the tour in *keep*, or in a temporary folder."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _tour(keep.resolve())
        app.info(f"the root stays in {keep}")
    else:
        with tempfile.TemporaryDirectory(prefix="jidomem-demo-") as folder:
            _tour(Path(folder))


def _tour(folder: Path) -> None:
    with chdir(folder):
        _say("A memory root is a folder; memories are stored in it as Turtle, one file a commit.")
        _run("init", "--project", "demo")
        _decisions()
        _kinds()
        _refusal()
        _conflict()
        _task_and_error()
        _say("The playbook answers by name; each answer is a table, JSON, CSV or Markdown.")
        for name in ("conventions", "open-tasks", "risks", "recent-lessons"):
            _run("ask", name, "--limit", "4")
        _say("check validates the memory, as CI does; verify reads every byte of the journal.")
        _run("check")
        _run("journal", "verify")


def _decisions() -> None:
    with jidomem.open(files.own_memory()) as own:
        rows = own.reader.list_active_architectural_decisions(own.project)
        iris = [row["decision"] for row in rows]
        iris += [row["conv"] for row in own.reader.list_conventions(own.project)]
        intents = [own.writer.restated(own.project, iri) for iri in iris]
    for intent in intents:
        intent |= {"applies_to_project": "demo"}
    _say(f"Real decisions first: the {len(rows)} jidomem was built on and its conventions, as intents, one a line.")
    _write("decisions.jsonl", intents)
    _run("submit", "decisions.jsonl", lines=3)


def _kinds() -> None:
    _say("Then one memory of every other kind.")
    common = {"applies_to_project": "demo", "asserted_by": "ana", "asserted_in": "monday", "confidence": "high"}
    _write("kinds.jsonl", [{**kind, **common} for kind in KINDS])
    _run("submit", "kinds.jsonl", lines=3)


def _refusal() -> None:
    _say("An error names the field, the rule and, where possible, the corrected intent.")
    wrong = {
        "type": "fcat",
        "summary": "Oxigraph loads 415,000 triples a second",
        "applies_to_project": "demo",
        "asserted_by": "ana",
        "asserted_in": "monday",
        "confidance": "hihg",
    }
    _write("wrong.json", [wrong])
    _run("submit", "wrong.json", expect=3)
    answer = json.loads(_run("submit", "--json", "wrong.json", expect=3, quiet=True))
    _say("The corrected intent is accepted:")
    _write("fixed.json", [answer["fixed_intent"]])
    _run("submit", "fixed.json")


def _conflict() -> None:
    _say("Two decisions on one topic cannot both be active. The error lists the ways to resolve it.")
    words = ["remember", "Use QLever as the index", "--type", "architectural_decision", "--topic", "index engine"]
    words += ["--rationale", "it answers large joins faster", "--agent", "ben"]
    _run(*words, expect=5)
    before = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    old = json.loads(_run("ask", "active-decisions", "--json", quiet=True))["rows"]
    (replaced,) = [row["decision"] for row in old if row["summary"] == "Use Oxigraph as the index"]
    _run(*words, "--supersedes", replaced[-8:])
    _say("Nothing was overwritten: now, and as it was a moment ago.")
    for moment in ([], ["--as-of", before]):
        _run("ask", "decisions", "-v", *moment, only="as the index")


def _task_and_error() -> None:
    _say("A change of state is a new memory that supersedes the old one: a task planned, started, completed.")
    task = _run("remember", "Measure QLever beside Oxigraph", "--type", "task", "--assigned-to", "ben").strip()
    task = _run("edit", task[-8:], "--set", "status=InProgress", "--reason", "the machine is free").strip()
    _run("ask", "tasks")
    _run("edit", task[-8:], "--set", "status=Completed", "--reason", "measured: slower to load")
    _say("An error, its resolution, and the lesson.")
    error = _run("remember", "QLever cannot be fed commit by commit", "--type", "error", "--severity", "high").strip()
    _run("ask", "errors")
    _run("edit", error[-8:], "--set", "status=Resolved", "--reason", "feed it in batches")
    _run("ask", "errors")
    _run("remember", "Ask how an engine is fed before how it answers", "--type", "lesson", "--evidence", error)


def _run(*words: str, expect: int = 0, lines: int | None = None, only: str = "", quiet: bool = False) -> str:
    """Run one command as a user would, show it and its output, and return its standard output."""
    from jidomem_cli.main import cli

    data, shown = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(_Both(data, shown)), redirect_stderr(shown):
            cli.main(list(words))
    except SystemExit as end:
        if end.code != expect:
            click.echo(shown.getvalue(), err=True)
            raise click.ClickException(f"the tour went wrong: exit {end.code}, not {expect}") from end
    if not quiet:
        _show(words, [line for line in shown.getvalue().splitlines() if only in line], only, lines)
    return data.getvalue()


def _show(words: Sequence[str], printed: list[str], only: str, lines: int | None) -> None:
    """Print a command and its output; of long output the first and the last lines."""
    click.secho(f"$ jidomem {shlex.join(words)}{f' | grep {only!r}' if only else ''}", bold=True)
    left_out = len(printed) - lines - 1 if lines is not None else 0
    for number, line in enumerate(printed):
        if left_out <= 0 or number < len(printed) - 1 - left_out or number == len(printed) - 1:
            click.echo(line)
        elif number == len(printed) - 2:
            click.echo(f"... {left_out} more")


class _Both(io.StringIO):
    """A text stream that writes to two others."""

    def __init__(self, *places: io.StringIO) -> None:
        super().__init__()
        self._places = places

    def write(self, text: str) -> int:
        """Write *text* to each place."""
        for place in self._places:
            place.write(text)
        return len(text)


def _say(text: str) -> None:
    click.secho(f"\n{text}", fg="cyan")


def _write(name: str, intents: list[Any]) -> None:
    Path(name).write_text("".join(json.dumps(intent, ensure_ascii=False) + "\n" for intent in intents), "utf-8")
