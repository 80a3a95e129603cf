"""`jidomem root export` and `jidomem root import`: export and import of a memory.

`jidomem root import code`: the modules and dependencies of a project's code, for its codebase graph.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from inspect import cleandoc
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.base.clock import now
from jidomem.base.words import escape_invisible
from jidomem.clients.config_files import disk_error_hint, replace_file
from jidomem.errors import Failed, InvalidRequest, NotFound, TooLarge
from jidomem.exchange import documents as exporting
from jidomem.exchange import other_formats
from jidomem.exchange.documents import DocumentFormat
from jidomem.exchange.importer import ImportedEntry, ImportReport, SourceFile, import_document
from jidomem.exchange.sync_plan import CHANGES
from jidomem.exchange.synchroniser import SourceScan, Synchronisation
from jidomem.index.follower import after_clearing, merged_records
from jidomem.journal.commit import Commit, is_redaction_record
from jidomem.journal.journal import NAMES, Stream
from jidomem.read.history import node_texts
from jidomem.records.named_query import moment_hint
from jidomem.repository import git
from jidomem.repository.git import Checkout, first_commits
from jidomem.repository.other_tools import ADR, GRAPH, ISSUES, NOTES
from jidomem.repository.worktree import PathFinder, tracked
from jidomem.runtime.root_config import slug_of
from jidomem.runtime.settings import FOLDER
from jidomem.write.canonical import moment as moment_of
from jidomem_cli import init
from jidomem_cli.errors import print_error, print_refusal, print_repeated
from jidomem_cli.options import App, Command, CommandGroup, clean, dry_run_option, pass_app
from jidomem_cli.output import short, shortened, show_json

if TYPE_CHECKING:
    from jidomem import Jidomem
    from jidomem.extras.code.importer import CodeImportReport

#: The most notes that are printed; `--json` has them all.
_MAX_SHOWN = 20


@click.command("code", cls=Command, writes=("agent", "wait"))
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@dry_run_option
@pass_app
def code(app: App, path: Path, dry_run: bool) -> int:
    """Read the Python and Elixir code below PATH into the codebase graph: modules, functions and what depends on what.

    Only files that changed since are read again; what is gone counts no more, and --as-of answers as it was. What git
    ignores is left out. Ask with: jidomem ask modules, functions, dependencies, dependents, about-dependents.

    Examples:
      jidomem root import code .
      jidomem root import code . --dry-run
    """
    from jidomem.extras.code.importer import ENDINGS, import_code  # an extra

    memory = app.open()
    _refuse_elsewhere(app, memory, path)
    base, below = _place(memory, path.resolve())
    listing = tracked(base, below, ENDINGS)
    show, close = _progress(app, len(listing.files))
    try:
        report = import_code(memory.writer, memory.follower, memory.project, listing, below, dry_run=dry_run, seen=show)
    finally:
        close()
    _print_code_report(app, memory.project, report, dry_run)
    return 0


def _refuse_elsewhere(app: App, memory: Jidomem, path: Path) -> None:
    """Raise InvalidRequest for code outside the repository of the memory, unless a project is named.

    A project has one code tree: the import would replace it.
    """
    tree = memory.tree
    if tree is None or app.project is not None or path.resolve().is_relative_to(tree.base.resolve()):
        return
    name = slug_of(path.resolve().name)
    raise InvalidRequest(
        f"{path} is outside {tree.base}, whose code {memory.project} contains: it would be replaced",
        hint=f"give it a project of its own: jidomem root import code {quote(str(path))} --project {name}",
    )


def _place(memory: Jidomem, path: Path) -> tuple[Path, str]:
    """Return the base of file paths, that of memories or the top of the repository, and the folder relative to it."""
    bases = [] if memory.tree is None else [memory.tree.base]
    with suppress(InvalidRequest):  # git is missing or refuses the repository
        top = git.read_git(path, "rev-parse", "--show-toplevel")
        bases += [] if top is None else [Path(os.fsdecode(top.rstrip(b"\n")))]
    base = next((base.resolve() for base in bases if path.is_relative_to(base.resolve())), path)
    return base, path.relative_to(base).as_posix().removeprefix(".")


def _progress(app: App, files: int) -> tuple[Callable[[str], None], Callable[[], None]]:
    """Return the functions for each file and for the end: a progress bar on a terminal, elsewhere without effect."""
    if app.quiet or not sys.stderr.isatty():
        return lambda path: None, lambda: None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, color_system="auto" if app.supports_color(sys.stderr) else None)
    columns = TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[path]}")
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task("", total=files, path="")
    progress.start()
    return lambda path: progress.update(task, advance=1, path=clean(path)[-60:]), progress.stop


def _print_code_report(app: App, project: str, report: CodeImportReport, dry_run: bool) -> None:
    """Print what was read and stored, and the files that could not be read."""
    from jidomem.extras.code.importer import FILES

    if app.json:
        notes = [{"path": note.path, "line": note.line or None, "message": note.message} for note in report.notes]
        counts = {"files": dict(report.files), "found": dict(report.counts), "triples": report.triples}
        show_json({"project": project, "dry_run": dry_run, **counts, "commits": report.commits, "notes": notes})
        return
    for note in report.notes[:_MAX_SHOWN]:
        app.info(clean(str(note)))
    if len(report.notes) > _MAX_SHOWN:
        app.info(f"and {len(report.notes) - _MAX_SHOWN} more notes: see them with --json")
    if not report.files:
        app.info("no Python or Elixir file there, except ignored ones: nothing was written")
        return
    files = ", ".join(f"{report.files[word]:,} {word}" for word in FILES if report.files[word]) or "none"
    definitions = ", ".join(f"{count:,} {word}" for word, count in report.counts.items())
    outcome = f"{report.triples:,} statements {'would be written' if dry_run else 'written'}"
    app.info(f"files: {files}{f'; in the files read: {definitions}' if definitions else ''}; {outcome}")


#: The largest file that is imported.
LARGEST = 512 * 1024 * 1024
MOVING = "to copy a whole root: jidomem root migrate ROOT NEW-ROOT"
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
#: The exit code of `jidomem root import --check` if a source changed.
DIFFERENT = 1
#: The options of writing commands that imports take.
WRITES = ("agent", "session", "wait")
#: The format of an export -> the suffix of its file.
FORMATS = {"turtle": "ttl", "jsonld": "jsonld", "nquads": "nq", "markdown": "md", "mcp-memory": "jsonl"}


@click.command(cls=Command, as_of=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File or folder (default: standard output).")
@click.option(
    "--format", "form", type=click.Choice([*FORMATS]), default="turtle", help="Output format (default: turtle)."
)
@pass_app
def export(app: App, output: Path | None, form: str) -> int:
    """Write the memory of a project to one file, without the records of the journal.

    turtle and jsonld have every memory, nquads also the other graphs of the project; jidomem root import reads all
    three. markdown, for people, and mcp-memory, for the reference MCP memory server, have active memories.
    In a folder the file is named PROJECT_memory, with the suffix of its format.

    Examples:
      jidomem root export -o memory.ttl
      jidomem root export -o .
      jidomem root export --format markdown --as-of 2026-11-01
    """
    memory = app.read()
    memory.catch_up(memory.project)
    moment = None if app.as_of is None else _moment(app.as_of)
    data = (
        _active_export(app, memory, form, moment) if form in ("markdown", "mcp-memory") else _rdf(memory, form, moment)
    )
    if len(data) > LARGEST:
        app.info(f"{len(data):,} bytes are more than jidomem root import accepts ({LARGEST:,}); {MOVING}")
    if output is not None:
        _save(app, memory.project, data, output, form)
    elif app.json:
        show_json({"project": memory.project, form: data.decode()})
    else:
        sys.stdout.buffer.write(escape_invisible(data.decode()).encode() if sys.stdout.isatty() else data)
    return 0


def _rdf(memory: Jidomem, form: str, moment: str | None) -> bytes:
    """Return all content of the memory; as N-Quads also that of the other graphs of the project."""

    def commits_until(stream: Stream) -> Iterator[Commit]:
        commits = memory.journal.read(stream)  # later redactions explain what the memories lack
        return (one for one in commits if not moment or one.recorded_at <= moment or is_redaction_record(one.data))

    def uncleared(stream: Stream) -> Iterator[Commit]:
        commits = after_clearing(stream, [*commits_until(stream)])
        while commits:  # each is parsed when it is serialised, and then freed
            yield commits.pop()

    merged = partial(merged_records, memory.index, memory.journal, moment=moment)
    if form == "nquads":
        streams = [Stream(memory.project, name) for name in NAMES]
        return exporting.nquads(
            {stream.graph: uncleared(stream) for stream in streams},
            {stream.graph: merged(stream) for stream in streams},
        )
    write, stream = exporting.turtle if form == "turtle" else exporting.jsonld, Stream(memory.project)
    return write(memory.project, commits_until(stream), memory.schema.version, merged(stream))


def _active_export(app: App, memory: Jidomem, form: str, moment: str | None) -> bytes:
    """Return the active memories, oldest first, and print the number of others."""
    ask, project = memory.reader.ask, memory.project
    listed = ask("timeline", project=project, as_of=moment, include_inactive=True)
    every = {row["item"]: row["summary"] or row["item"] for row in listed}
    rows = reversed(ask("timeline", project=project, as_of=moment))
    items = dict.fromkeys(row["item"] for row in rows)
    memories = [memory.reader.get_memory(project, item, as_of=moment) for item in items]
    if left := len(every) - len(memories):
        app.info(f"{left} inactive memories left out: --format turtle has them")
    if form == "mcp-memory":
        return other_formats.export_mcp_memory(project, memories, every)
    worded = (node for one in memories for name in other_formats.WORDED for node in one["properties"].get(name, ()))
    texts = node_texts(memory.reader, project, worded)
    moment = moment or now().isoformat(timespec="seconds")
    return other_formats.markdown(project, memories, memory.schema.is_a, moment, texts)


def _save(app: App, project: str, data: bytes, output: Path, form: str) -> None:
    """Write an export to the file *output*, or into that folder; raises Failed `write_failed`."""
    name = f"{project}_memory.{FORMATS[form]}"
    path = output / name if output.is_dir() else output
    try:
        replace_file(path, data) if path.is_file() or not path.exists() else path.write_bytes(data)  # a pipe or device
    except OSError as error:
        hint = disk_error_hint(error, f"name a file in an existing folder: jidomem root export -o {name}")
        raise Failed(f"{path}: {error.strerror}", hint=hint, code="write_failed") from error
    if app.json:
        show_json({"project": project, "file": str(path), "bytes": len(data)})
    app.info(f"{len(data):,} bytes to {path}")


class _ImportVerbs(CommandGroup):
    """The import commands, and `--check`, whose arguments follow in place of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `--check [KIND|PATH]...` as a command."""
        if "--check" in args:
            args = ["check", *(word for word in args if word != "--check")]
        return super().parse_args(ctx, args)


@click.group("import", cls=_ImportVerbs)
def import_() -> None:
    """Import records of files and other tools, each validated like an intent; run it again to synchronise.

    jidomem root import --check [adr|memory-md|mcp-memory|beads|PATH]... writes nothing: it lists the differences
    between the memory and its sources in the repository, and exits with 1 where a source changed (default: all
    sources, also those that were imported by name).

    Examples:
      jidomem init --from auto
      jidomem root import --check
      jidomem root import --check docs/adr --json
    """


@import_.command(hidden=True, formats=("text", "json", "github"))
@click.argument("sources", nargs=-1, metavar="[KIND|PATH]...")
@pass_app
def check(app: App, sources: tuple[str, ...]) -> int:
    """List the differences between memory and the sources in its repository (default: all of them).

    The exit code is 1 where a source changed and the change is not imported, or is pending review, else that of a
    source that cannot be read, else 0. A memory that was edited, withdrawn, superseded or rejected here is listed and
    leaves the exit code at 0: its source did not change. It is 3 where the root cannot be used, as by a shape that does
    not parse: jidomem ontology check names the fault. --format github prints workflow commands.

    Examples:
      jidomem init --from auto
      jidomem root import --check adr memory-md
      jidomem root import --check --format github
    """
    from jidomem_cli.check import UNCHECKED, report_error

    try:
        return init.check(app, sources or (init.AUTO,))
    except JidomemError as error:
        status = report_error(error, app) if app.format == "github" else print_error(error, app)
        return UNCHECKED if status == DIFFERENT or isinstance(error, NotFound) else status


import_.add_command(code)


def _add_document_command(kind: str, form: DocumentFormat, example: str) -> None:
    @click.argument("files", type=FILE, nargs=-1, required=True)
    @pass_app
    def import_files(app: App, files: Sequence[Path]) -> int:
        memory = app.open()
        code = 0
        for path in files:
            report = import_document(memory.writer, memory.schema, memory.project, str(path), _content(path), form)
            code = code or _print_report(app, memory, report)
        return code

    more = "\n\n    Data of the other graphs of the project goes to these." if form is DocumentFormat.N_QUADS else ""
    text = f"""Import memories from {form.value} FILES: an export, or one written by hand.{more}

    The exit code is that of the first error.

    Examples:
      {example}
    """
    import_.command(kind, writes=WRITES, help=cleandoc(text))(import_files)


_add_document_command("turtle", DocumentFormat.TURTLE, "jidomem root import turtle memory.ttl")
_add_document_command("jsonld", DocumentFormat.JSON_LD, "jidomem root import jsonld memory.jsonld")
_add_document_command("nquads", DocumentFormat.N_QUADS, "jidomem root import nquads memory.nq")


def _add_source_command(kind: str, what: str, more: str, example: str) -> None:
    @click.argument("files", type=FILE, nargs=-1, required=True)
    @dry_run_option
    @pass_app
    def import_files(app: App, files: Sequence[Path], dry_run: bool) -> int:
        memory = app.open()
        base = _base(memory)
        named = [SourceFile(kind, _name(base, path, kind), _content(path)) for path in files]
        scan = SourceScan(Checkout(base).is_removed) if base else SourceScan()
        find = PathFinder(base).of if base else lambda page: lambda word: None
        synchronisation = Synchronisation.of(memory.writer, memory.reader, memory.project, named, scan, find=find)
        report = synchronisation.submit(partial(first_commits, base) if base else lambda paths: {}, dry_run=dry_run)
        code = _print_report(app, memory, report)
        if app.json:
            show_json({"counts": _counts(report), "left_out": dict(report.left_out), "notes": report.notes})
        return code

    text = f"""Import {what}. {more}

    Importing a file again synchronises: a changed record supersedes its memory, a removed one is proposed for
    withdrawal. The exit code is that of the first error.

    Examples:
      {example}
    """
    import_.command(kind, writes=WRITES, help=cleandoc(text))(import_files)


_PROPOSED = "They are pending proposals: jidomem review."
_add_source_command(
    ADR,
    "Markdown decision records (Nygard and MADR forms)",
    "Give them in one call: they refer to each other.",
    "jidomem root import adr docs/adr/0001-record-decisions.md docs/adr/0002-use-a-journal.md",
)
_add_source_command(
    ISSUES, "the issues of beads as tasks and bugs", _PROPOSED, "jidomem root import beads .beads/issues.jsonl"
)
_add_source_command(
    GRAPH, "the graph of the MCP memory server as facts", _PROPOSED, "jidomem root import mcp-memory memory.jsonl"
)
_add_source_command(
    NOTES, "the notes of a CLAUDE.md, AGENTS.md or MEMORY.md", _PROPOSED, "jidomem root import memory-md CLAUDE.md"
)


def _base(memory: Jidomem) -> Path | None:
    """Return the base folder of source paths: that of the repository, else the folder of the root."""
    if memory.tree is not None:
        return memory.tree.base
    root = memory.settings.root
    return root.parent.resolve() if memory.settings.address is None and root.name == FOLDER else None


def _name(base: Path | None, path: Path, kind: str) -> str:
    """Return the name of a file in imported memories: its path relative to *base*, else its file name.

    A record outside *base*, and a file with the name of another one in *base*, has the path as given.
    """
    whole = path.resolve()
    if base is not None and whole.is_relative_to(base):
        return whole.relative_to(base).as_posix()
    is_another = base is not None and (base / path.name).exists()
    return str(path) if kind == ADR or is_another else path.name


def _content(path: Path) -> bytes:
    """Return the content of a file, which may be a pipe; raises TooLarge, and InvalidRequest if it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1) if path.stat().st_size <= LARGEST else None
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}", hint="name a file that can be read") from error
    if data is None or len(data) > LARGEST:
        raise TooLarge(f"{path} has more than {LARGEST:,} bytes, the limit", hint=f"split it; {MOVING}")
    return data


def _moment(text: str) -> str:
    """Return *text* as a canonical timestamp; raises InvalidRequest."""
    moment = moment_of(text)
    if moment is None:
        raise InvalidRequest(f"as_of={text!r} is not a date or time", hint=moment_hint("as_of"))
    return moment


def _print_report(app: App, memory: Jidomem, report: ImportReport) -> int:
    """Print the outcome of each memory, and every note; return the exit code of the first refusal."""
    refused = Counter[tuple[str, str | None]]()
    for entry in report.entries:
        if app.json:
            show_json(_as_json(entry))
        elif isinstance(entry.outcome, JidomemError):
            click.echo(f"refused: {entry.outcome.code}: {clean(entry.place)}: {clean(entry.summary)}")
            refused[entry.outcome.detail, entry.outcome.hint] += 1
            if refused[entry.outcome.detail, entry.outcome.hint] == 1:  # a shared reason is printed once
                print_refusal(entry.outcome, app, where=f"{clean(entry.place)}: ")
        else:
            words = [entry.change, entry.outcome.status if isinstance(entry.outcome, Receipt) else ""]
            summary = clean(f"{entry.summary}{entry.about_words}")
            click.echo(f"{short(entry.iri)}  {', '.join(filter(None, words)) or 'unchanged'}  {summary}")
    print_repeated(app, refused.values())
    init.print_changes(app, memory, report.entries, ("conflict",))
    for path, why in report.passed:
        app.info(clean(f"skipped: {path}: {why}"))
    for note in report.notes:
        app.info(shortened(clean(note)))
    for part in report.places if app.verbose else ():
        app.info(clean(part))
    if not (report.entries or report.notes or report.passed or report.left_out):
        app.info("no records found: is it a file of that kind?")
    counts = _counts(report)
    if any(entry.change for entry in report.entries):  # from a source, not from a document
        counts = {word: counts.get(word, 0) for word in (*CHANGES, "refused")}
        counts = {word: count for word, count in counts.items() if count or word in ("added", "unchanged")}
    text = ", ".join(f"{count} {word}" for word, count in counts.items())
    left = "".join(f", {count} left out ({reason})" for reason, count in sorted(report.left_out.items()))
    app.info(f"{text}{left}, {len(report.notes)} notes; project {memory.project}")
    return next((e.outcome.exit_code for e in report.refusals if isinstance(e.outcome, JidomemError)), 0)


def _counts(report: ImportReport) -> dict[str, int]:
    """Return the number of memories written, already present and refused, and the number of each change."""
    accepted, refused = len(report.accepted), len(report.refusals)
    changes = Counter(entry.change for entry in report.entries if not isinstance(entry.outcome, JidomemError))
    counts = {"kept": accepted, "here already": len(report.entries) - accepted - refused, "refused": refused}
    return {**counts, **{change: changes[change] for change in CHANGES if any(changes)}}


def _as_json(entry: ImportedEntry) -> dict[str, object]:
    outcome = entry.outcome.to_dict() if entry.outcome else None
    word = "refused" if isinstance(entry.outcome, JidomemError) else "kept" if entry.outcome else "here already"
    values = {"iri": entry.iri, "summary": entry.summary, "place": entry.place, "became": word, "outcome": outcome}
    return {**values, **({name: value for name, value in init.as_change(entry).items() if name not in values})}
