"""`jidomem export` and `jidomem import`: memory out as Turtle, memory in from what others wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.errors import Failed, InvalidRequest, TooLarge
from jidomem.exchange import export as exporting
from jidomem.exchange.importing import Entry, Report, import_adr, import_turtle
from jidomem.exchange.proposing import propose
from jidomem.journal.files import Stream
from jidomem.write.names import moment as moment_of
from jidomem_cli.complain import tell
from jidomem_cli.door import Door, Verb, Verbs, clean, pass_door
from jidomem_cli.tables import short, show_json

#: The largest file of another memory that is taken in.
LARGEST = 64 * 1024 * 1024
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=Verb, as_of=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file, or its folder; else standard output.")
@pass_door
def export(door: Door, output: Path | None) -> int:
    """Write the project's memory as one Turtle file: what is remembered, without the journal's bookkeeping.

    In a folder the file is called PROJECT_memory.ttl.

    Examples:
      jidomem export -o memory.ttl
      jidomem export -o .
      jidomem export --as-of 2026-11-01
    """
    memory = door.read()
    memory.catch_up(memory.project)
    commits = memory.journal.read(Stream(memory.project))
    if door.as_of is not None:
        moment = _moment(door.as_of)
        commits = (commit for commit in commits if commit.recorded_at <= moment)
    data = exporting.turtle(memory.project, commits, memory.schema.version)
    if output is not None:
        _save(door, memory.project, data, output)
    elif door.json:
        show_json({"project": memory.project, "turtle": data.decode()})
    else:
        sys.stdout.buffer.write(data)
    return 0


def _save(door: Door, project: str, data: bytes, output: Path) -> None:
    """Write an export to the file *output*, or into that folder; raises Failed `write_failed`."""
    path = output / f"{project}_memory.ttl" if output.is_dir() else output
    try:
        path.write_bytes(data)
    except OSError as error:
        hint = f"name a file in a folder that is there: jidomem export -o {project}_memory.ttl"
        raise Failed(f"{path}: {error.strerror}", hint=hint, code="write_failed") from error
    if door.json:
        show_json({"project": project, "file": str(path), "bytes": len(data)})
    door.say(f"{len(data):,} bytes to {path}")


@click.group("import", cls=Verbs)
def import_() -> None:
    """Take in records kept elsewhere, each judged like every other intent."""


@import_.command(writes=("agent", "session", "wait"))
@click.argument("files", type=FILE, nargs=-1, required=True)
@pass_door
def turtle(door: Door, files: Sequence[Path]) -> int:
    """Import memories from Turtle FILES: an export, or one written by hand. The exit code is the first refusal's.

    Examples:
      jidomem import turtle memory.ttl
    """
    memory = door.open()
    code = 0
    for path in files:
        report = import_turtle(memory.writer, memory.schema, memory.project, str(path), path.read_bytes())
        code = code or _told(door, memory, report)
    return code


@import_.command(writes=("agent", "session", "wait"))
@click.argument("files", type=FILE, nargs=-1, required=True)
@pass_door
def adr(door: Door, files: Sequence[Path]) -> int:
    """Import Markdown decision records (Nygard and MADR forms). Give them together: they name each other.

    Examples:
      jidomem import adr docs/adr/0001-record-decisions.md docs/adr/0002-use-a-journal.md
    """
    memory = door.open()
    report = import_adr(memory.writer, memory.project, [(str(path), path.read_bytes()) for path in files])
    return _told(door, memory, report)


def _proposing(kind: str, module: str, what: str, example: str) -> None:
    """Add the verb that proposes what a file of one kind holds."""

    @click.argument("files", type=FILE, nargs=-1, required=True)
    @click.option("--dry-run", is_flag=True, help="Judge each entry and keep nothing.")
    @pass_door
    def take(door: Door, files: Sequence[Path], dry_run: bool) -> int:
        memory = door.open()
        read = import_module(f"jidomem.exchange.{module}").read
        readings = [read(_name(memory, path), _content(path)) for path in files]
        report = propose(memory.writer, memory.reader, memory.project, readings, dry_run=dry_run)
        code = _told(door, memory, report)
        if door.json:
            show_json({"counts": _counts(report), "left_out": dict(report.left_out), "notes": report.notes})
        return code

    text = f"""Propose {what}. Importing a file again adds what is new in it; what changed supersedes what it was.

    Nothing counts until it is accepted: jidomem conflicts lists what waits. The exit code is the first refusal's.

    Examples:
      {example}
    """
    writes = ("agent", "session", "wait")
    import_.add_command(click.command(kind, cls=Verb, writes=writes, help=cleandoc(text))(take))


_proposing("beads", "beads", "the issues of beads as tasks and bugs", "jidomem import beads .beads/issues.jsonl")
_proposing(
    "mcp-memory", "mcp_memory", "the graph of the MCP memory server as facts", "jidomem import mcp-memory memory.jsonl"
)
_proposing(
    "memory-md", "memory_md", "the notes of a CLAUDE.md, AGENTS.md or MEMORY.md", "jidomem import memory-md CLAUDE.md"
)


def _name(memory: Jidomem, path: Path) -> str:
    """Return what a file is called in what comes from it: its path in the repository, else its name."""
    if memory.tree is None:
        return path.name
    whole = path.resolve()
    return whole.relative_to(memory.tree.base).as_posix() if whole.is_relative_to(memory.tree.base) else path.name


def _content(path: Path) -> bytes:
    if (size := path.stat().st_size) > LARGEST:
        raise TooLarge(
            f"{path} has {size:,} bytes; at most {LARGEST:,} are read", hint="split it, or leave out what is old"
        )
    return path.read_bytes()


def _moment(text: str) -> str:
    """Return *text* as a commit writes a moment; raises InvalidRequest."""
    found = moment_of(text)
    if found is None:
        raise InvalidRequest(f"--as-of is an ISO 8601 moment, not {text!r}", hint="--as-of 2026-11-21T08:00:00Z")
    return found


def _told(door: Door, memory: Jidomem, report: Report) -> int:
    """Print what became of each memory, and every note; return the exit code of the first refusal."""
    for entry in report.entries:
        if door.json:
            show_json(_as_json(entry))
        elif isinstance(entry.outcome, JidomemError):
            click.echo(f"refused: {entry.outcome.code}: {clean(entry.place)}: {clean(entry.summary)}")
            tell(entry.outcome, door, where=f"{clean(entry.place)}: ")
        else:
            word = entry.outcome.status if isinstance(entry.outcome, Receipt) else "here already"
            click.echo(f"{short(entry.iri)}  {word}  {clean(entry.summary)}")
    for note in report.notes:
        door.say(clean(note))
    counts = ", ".join(f"{count} {word}" for word, count in _counts(report).items())
    left = "".join(f", {count} left out ({reason})" for reason, count in sorted(report.left_out.items()))
    door.say(f"{counts}{left}, {len(report.notes)} notes; project {memory.project}")
    return next((e.outcome.exit_code for e in report.refusals if isinstance(e.outcome, JidomemError)), 0)


def _counts(report: Report) -> dict[str, int]:
    kept, refused = len(report.accepted), len(report.refusals)
    return {"kept": kept, "here already": len(report.entries) - kept - refused, "refused": refused}


def _as_json(entry: Entry) -> dict[str, object]:
    outcome = entry.outcome.to_dict() if entry.outcome else None
    word = "refused" if isinstance(entry.outcome, JidomemError) else "kept" if entry.outcome else "here already"
    return {"iri": entry.iri, "summary": entry.summary, "place": entry.place, "became": word, "outcome": outcome}
