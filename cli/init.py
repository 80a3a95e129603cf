"""`jidomem init`: create a memory root in a folder, and import existing records of the repository.

`jidomem init --from` and `jidomem root import --check`: synchronise or compare the memory with its sources.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from posixpath import basename, dirname
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from platformdirs import user_data_dir

import jidomem
from jidomem.check.report import command as workflow_command
from jidomem.curation.review_queue import QueueItem, acceptable, queue
from jidomem.curation.review_text import commands
from jidomem.errors import Failed, InvalidRequest, JidomemError, NotFound
from jidomem.exchange.sync_plan import CHANGES, LocalChange, PendingChange, SyncPlan, SyncStep
from jidomem.exchange.synchroniser import refusal_of, without_secret
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.vocab import local_name
from jidomem.recall.governing import related_memories
from jidomem.recall.nearness import is_about
from jidomem.records.intent import Receipt
from jidomem.repository.other_tools import DULL, SOURCE_KINDS, FolderScan, SkippedPath, from_path, scan_folder
from jidomem.repository.worktree import listing
from jidomem.runtime import location, root_config, settings
from jidomem.runtime.adoption import Scope, adopt, compare, files_of
from jidomem_cli.errors import acting, print_refusal, print_repeated
from jidomem_cli.options import App, Command, clean, dry_run_option, pass_app
from jidomem_cli.output import short, shortened, show_json, show_result, show_rows

if TYPE_CHECKING:
    from jidomem import Jidomem
    from jidomem.exchange.importer import ImportedEntry, ImportReport, UnreadableEntry
    from jidomem.runtime.adoption import SourceOutcome

AUTO = "auto"
_FIRST = 'jidomem remember "what an agent should know"'
_KNOWN = "it exists already, nothing changed"
_COLUMNS = ("found", "what", *CHANGES, "refused", "pending")
#: The columns that are left out if they are empty.
_RARE = ("moved", "removed", "conflict", "redacted", "refused")
_COPIED = ("config.toml", "baseline.toml", "projects", "ontology", "shapes", "queries")
#: The words for a local change, if its name is not clear.
_LOCAL = {"retained": "active, though its source was removed"}
_TAKEN_OUT = "remove it from the file, revoke it if it was ever pushed, then: jidomem init --from auto"
_MAX_SHOWN = 8
#: The most files for which governing memories are looked up.
_TRIED = 10


def scan_sources(folder: Path, names: Sequence[str]) -> tuple[FolderScan, Scope]:
    """Return the sources in *folder* by *names* (`auto`, kinds of memory, or paths) and the scope of such a scan.

    Raises InvalidRequest for a path that does not exist.
    """
    kinds = [*SOURCE_KINDS] if AUTO in names else [name for name in names if name in SOURCE_KINDS]
    paths = [name for name in names if name != AUTO and name not in SOURCE_KINDS]
    scan = scan_folder(folder, kinds) if kinds else FolderScan()
    for name in paths:
        if not Path(name).exists():
            choice = ", ".join((AUTO, *SOURCE_KINDS))
            raise InvalidRequest(
                f"--from {name}: no such file or folder, and none of {choice}", hint=f"jidomem init --from {AUTO}"
            )
        some = from_path(folder, Path(name))
        known = {source.path for source in scan.sources}
        scan.sources += [source for source in some.sources if source.path not in known]
        scan.passed += some.passed
    base = folder.resolve()
    return scan, Scope(kinds, [Path(name).absolute().relative_to(base).as_posix() for name in paths])


@contextmanager
def open_for_import(app: App, root: Path, dry_run: bool) -> Iterator[Jidomem]:
    """Yield the memory at *root*; for a dry run a temporary copy of it."""
    app.root = None if app.root is None and settings.find(None)[0] == root.resolve() else str(root)  # of hints
    if not dry_run:
        yield replace(app, root=str(root)).open()
        return
    with tempfile.TemporaryDirectory(prefix="jidomem-init-") as name:
        copy = Path(name) / root.name
        copy.mkdir()
        for part in _COPIED:
            if (root / part).is_dir():
                shutil.copytree(root / part, copy / part)
            elif (root / part).exists():
                shutil.copy2(root / part, copy / part)
        with replace(app, root=str(copy)).open() as memory:
            yield memory


def show(
    app: App,
    memory: Jidomem,
    scan: FolderScan,
    adopted: Sequence[SourceOutcome],
    report: ImportReport,
    made: dict[str, Any],
) -> int:
    """Print the outcome of each source and the next steps; return the exit code of the first refusal.

    *made* describes the new root; it is empty for a dry run.
    """
    dry_run = not made
    read = {path for each in adopted for path in each.files}
    scan.passed[:] = [each for each in scan.passed if each.path not in read]
    proposals = [one for one in _pending(memory) if one.kind == "proposal"]
    pending = {one.item: files_of(memory, one) for one in proposals}
    rows = [_row(each, pending) for each in adopted]
    refusals = [(entry, entry.outcome) for entry in report.entries if isinstance(entry.outcome, JidomemError)]
    following = [] if dry_run else _next(memory, adopted, proposals, pending)
    code = refusals[0][1].exit_code if refusals else 0
    if app.json:
        passed = [{"path": each.path, "why": each.why} for each in _passed(scan, report)]
        refused = [{"place": entry.place, "summary": entry.summary, **error.to_dict()} for entry, error in refusals]
        show_json({**made, "found": [each.to_dict() for each in adopted], "passed": passed, "refused": refused,
                   "changes": [as_change(entry) for entry in report.entries if entry.change],
                   "notes": report.notes, "left_out": dict(report.left_out), "whole": scan.is_whole,
                   "dry_run": dry_run, "next": [command for command, _ in following]})  # fmt: skip
        return code
    if rows:
        show_rows(app, rows, [name for name in _COLUMNS if name not in _RARE or any(row[name] != "-" for row in rows)])
    print_changes(app, memory, report.entries, CHANGES if dry_run or app.verbose else CHANGES[1:-1])
    if (named := report.files_notice) and not app.verbose:
        app.info(clean(named))
    _print_refused(app, refusals)
    _print_skipped(app, scan, report)
    if not rows:
        app.info("found no decision records, notes for agents, memory.jsonl or .beads/issues.jsonl")
        app.info("records elsewhere? jidomem init --from PATH")
    if dry_run:
        app.info("dry run, nothing was written: leave out --dry-run to import")
    width = max((len(command) for command, _ in following), default=0)
    for number, (command, what) in enumerate(following):
        app.info(f"{'next: ' if not number else '      '}{command.ljust(width)}  {what}")
    return code


def check(app: App, names: Sequence[str]) -> int:
    """Print the differences between the named sources and the memory; return the exit code.

    A memory that was changed by a decision here is a difference, but does not cause the exit code 1.
    """
    memory = app.read()
    root = memory.settings.root
    if memory.settings.address is not None or root.name != settings.FOLDER:
        raise InvalidRequest(
            f"{root} is not in a repository, so there are no sources to compare it with",
            hint="jidomem root import --check, in a repository whose memory is in .jidomem",
        )
    base = root.resolve().parent
    scan, scope = scan_sources(base, names)
    compared = compare(memory, base, scan.sources, scope)
    changed = (step for step in compared.plan.steps if step.change != "unchanged")
    steps = sorted(changed, key=lambda step: CHANGES.index(step.change))
    pending, unreviewed, broken = compared.plan.pending, compared.plan.unreviewed, compared.sources.broken
    code = 1 if steps or pending else broken[0].error.exit_code if broken else 0
    written = [step for step in steps if step.write] if memory.settings.policy.secrets == "refuse" else []
    secret = {id(step): _secret_refusal(step, *at) for step in written if (at := compared.secret_of(step)) is not None}
    curators = ", ".join(map(local_name, memory.writer.authority(memory.project).curators if pending else ()))
    by = f" by a curator ({clean(curators)})" if curators else ""
    rows = [{**_difference(step), **secret.get(id(step), {})} for step in steps]
    rows += map(_pending_difference, pending)
    local = [_local_difference(each) for each in compared.plan.local]
    if app.json or app.format == "json":
        unread = [{"place": each.place, **each.error.to_dict()} for each in broken]
        counts = {change: compared.plan.counts[change] for change in CHANGES}
        show_json({"equal": code == 0 and not local, "counts": counts,
                   "pending": len(pending), "unreviewed": unreviewed, "differences": rows,
                   "changed_here": local, "unreadable": unread})  # fmt: skip
        return code
    if app.format == "github":
        for line in _annotations(rows, local, broken, by):
            click.echo(line)
    elif rows:
        columns = ["change", "place", "summary", *(["proposal"] if pending else [])]
        show_rows(app, rows, columns)
    for each in broken if app.format != "github" else ():
        print_refusal(each.error, app, where=f"{clean(each.place)}: ")
    total = ", ".join(_counted(compared.plan)) or "none"
    if rows:
        app.info(f"memory and sources differ: {total}")
    elif broken:
        app.info(f"not all sources can be read: {total}")
    else:
        app.info(f"{'all sources are imported' if local else 'memory and sources agree'}: {total}")
    if local:
        _print_local(app, local)
    for step in (step for step in steps if step.change == "redacted"):
        app.info(f"{step.place}: {step.note}")
    for step, refusal in ((step, refusal) for step in steps if (refusal := refusal_of(step)) is not None):
        print_refusal(refusal, app, where=f"{step.place}: ")
    for row in rows if app.format != "github" else ():
        if row["refusal"]:
            print_refusal(InvalidRequest(row["refusal"], hint=_TAKEN_OUT), app, where=f"{row['place']}: ")
    if any(step.change != "redacted" and step.holder is None and id(step) not in secret for step in steps):
        again = " ".join(f"--from {shlex.quote(name)}" for name in names)
        app.info(f"import the changes: jidomem init {again}")
    settle = _settling(app, memory) if pending else {}
    for change in pending[:_MAX_SHOWN]:
        then = settle.get(change.proposal, "jidomem review")
        app.info(f"pending review{by}: jidomem show {short(change.proposal)}, then: {then}")
    if len(pending) > _MAX_SHOWN:
        app.info(f"and {len(pending) - _MAX_SHOWN:,} more: jidomem review")
    if unreviewed:
        several = "memories are" if unreviewed > 1 else "memory is"
        app.info(f"{unreviewed:,} new {several} pending review, which does not count as a difference: jidomem review")
    return code


def _annotations(
    rows: Sequence[dict[str, Any]], local: Sequence[dict[str, Any]], broken: Sequence[UnreadableEntry], by: str
) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each difference and each unreadable source."""
    for row in rows:
        became = f"pending review{by}: jidomem review" if row["proposal"] else "not imported: jidomem init --from auto"
        became = f"not imported: {row['refusal']}; {_TAKEN_OUT}" if row["refusal"] else became
        text = f"{row['change']} in the source, and {became}\n{row['summary']}"
        yield workflow_command("error", "import-check", text, file=row["path"], line=_line(row))
    for row in local:
        change = _LOCAL.get(row["change"], f"{row['change']} in memory since the import")
        text = f"{change}, so memory and source differ\n{row['summary']}"
        yield workflow_command("notice", "import-check", text, file=row["path"], line=_line(row))
    for each in broken:
        yield workflow_command("error", "unreadable", str(each.error.detail), file=each.place)


def _line(row: dict[str, Any]) -> int | None:
    """Return the line number at the end of the place of a difference, or None."""
    end = row["place"].removeprefix(f"{row['path']}:")
    return int(end) if end.isdecimal() else None


def _print_local(app: App, local: Sequence[dict[str, Any]]) -> None:
    """Print the memories that differ from their sources by decisions made here."""
    several = "memories were" if len(local) > 1 else "memory was"
    named = ", ".join(f"{row['place']} ({_LOCAL.get(row['change'], row['change'])})" for row in local[:_MAX_SHOWN])
    more = f" and {len(local) - _MAX_SHOWN:,} more: see them with --json" if len(local) > _MAX_SHOWN else ""
    app.info(clean(f"{len(local):,} {several} changed here since the import: {named}{more}"))


def _counted(plan: SyncPlan) -> Iterator[str]:
    """Yield the number of entries of each change as phrases; a pending change does not count as unchanged."""
    pending = len(plan.pending)
    waiting = {id(each.lineage) for each in plan.pending if each.entry is not None}
    same = (step for step in plan.steps if step.change == "unchanged" and id(step.lineage) in waiting)
    counts = plan.counts - Counter(step.change for step in same)
    yield from (f"{counts[change]} {change}" for change in CHANGES[:-1] if counts[change])
    if pending:
        yield f"{pending} {'change is' if pending == 1 else 'changes are'} pending review"
    yield from (f"{counts[change]} {change}" for change in CHANGES[-1:] if counts[change])


def _difference(step: SyncStep) -> dict[str, Any]:
    current = step.lineage.current if step.lineage else None
    return {"change": step.change, "kind": step.kind, "path": step.path,
            "place": step.place, "summary": step.summary,
            "item": current.iri if current else None, "moved_from": step.moved_from,
            "note": step.note or None, "proposal": None, "refusal": None}  # fmt: skip


def _secret_refusal(step: SyncStep, place: str, kind: str) -> dict[str, Any]:
    """Return the fields of a row for a difference that cannot be imported because of a likely secret."""
    refusal = f"it seems to contain {kind}, which no memory may contain"
    return {"place": place, "summary": without_secret(step.summary), "refusal": refusal}


def _pending_difference(change: PendingChange) -> dict[str, Any]:
    current = next(iter(change.lineage.active), change.lineage.newest)
    row = _difference(SyncStep(change.change, change.entry, change.lineage))
    return {**row, "item": current.iri, "proposal": change.proposal}


def _local_difference(change: LocalChange) -> dict[str, Any]:
    """Return a local change as a row in the form of `_difference`."""
    last = next((each for each in reversed(change.lineage.versions) if each.is_asserted), change.lineage.newest)
    return {**_difference(SyncStep(change.change, change.entry, change.lineage)), "item": last.iri}


def _print_refused(app: App, refusals: Sequence[tuple[ImportedEntry, JidomemError]]) -> None:
    """Print the reasons of refusals, a shared reason once."""
    count = Counter((error.detail, error.hint) for _, error in refusals)
    first = {(error.detail, error.hint): (entry, error) for entry, error in reversed(refusals)}
    reasons = [*count][:_MAX_SHOWN]
    for reason in reasons:
        entry, error = first[reason]
        print_refusal(error, app, where=f"{clean(entry.place)}: ")
        print_repeated(app, [count[reason]])
    if left := len(refusals) - sum(count[reason] for reason in reasons):
        app.info(f"and {left:,} more refusals: see them with --json")


def _row(adopted: SourceOutcome, pending: Mapping[str, Set[str]]) -> dict[str, Any]:
    """Return the row of a source; *pending* are all proposals with their files."""
    many = f" ({len(adopted.files)})" if len(adopted.files) > 1 else ""
    counts = {**adopted.changes(), "pending": len(adopted.waiting(pending))}
    words = {name: str(count) if count else "-" for name, count in counts.items()}
    return {"found": adopted.path + many, "what": SOURCE_KINDS[adopted.kind], **words}


def as_change(entry: ImportedEntry) -> dict[str, Any]:
    """Return the outcome of an entry of a source as plain JSON values."""
    status = entry.outcome.status if isinstance(entry.outcome, Receipt) else None
    change = "refused" if isinstance(entry.outcome, JidomemError) else entry.change
    return {"change": change, "kind": entry.kind, "path": entry.path, "place": entry.place,
            "summary": entry.summary, "item": entry.iri, "status": status, "moved_from": entry.moved_from,
            "note": entry.note or None, "about": [*entry.about]}  # fmt: skip


def print_changes(app: App, memory: Jidomem, entries: Sequence[ImportedEntry], changes: Sequence[str]) -> None:
    """Print the entries with one of these changes, and how to settle a conflict."""
    has_conflicts = "conflict" in changes and any(each.change == "conflict" for each in entries)
    settle = _settling(app, memory) if has_conflicts else {}
    for change in changes:
        some = [each for each in entries if each.change == change and not isinstance(each.outcome, JidomemError)]
        shown, left = app.first(some, _MAX_SHOWN)
        for each in shown:
            app.info(f"{change}: {_described(each, settle.get(each.iri, ''))}")
        if left:
            app.info(f"and {left:,} more {change}: see them with -v")


def _described(entry: ImportedEntry, settle: str) -> str:
    moved = f" (from {entry.moved_from})" if entry.moved_from and entry.change != "unchanged" else ""
    note = f"; {entry.note}" if entry.note else ""
    if entry.change == "conflict" and settle:
        note += f": its text is proposed, decide: {settle}"
    files = entry.about_words if entry.change == "added" else ""
    return f"{entry.place}{moved}: {entry.summary}{note}{files}"


def _settling(app: App, memory: Jidomem) -> dict[str, str]:
    options, agent = acting(app), memory.writer.agent
    return {one.item: ", or ".join(line for line, _ in commands(one, options, agent)) for one in _pending(memory)}


def _print_skipped(app: App, scan: FolderScan, report: ImportReport) -> None:
    """Print the skipped files with the reasons, and the notes on the imported ones."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for each in _passed(scan, report):
        grouped.setdefault((each.path if app.verbose else dirname(each.path), each.why), []).append(each.path)
    shown, left = app.first([*grouped.items()], _MAX_SHOWN)
    for (folder, why), paths in shown:
        app.info(clean(f"skipped: {_named(folder, paths)}: {why}"))
    if left:
        count = sum(len(paths) for paths in [*grouped.values()][_MAX_SHOWN:])
        app.info(f"and {count} more skipped: see them with -v")
    if not scan.is_whole:
        app.info("no git repository, and a large folder: only its first folders were scanned")
    warnings = [note for note in report.notes if ": warning: " in note or ": error: " in note]
    for note in report.notes if app.verbose else warnings[:_MAX_SHOWN]:
        app.info(shortened(clean(note)))
    for part in report.places if app.verbose else ():
        app.info(clean(part))
    if report.left_out:
        app.info(", ".join(f"{count} left out ({why})" for why, count in sorted(report.left_out.items())))
    if (more := len(report.notes) - len(warnings[:_MAX_SHOWN])) and not app.verbose:
        left = len(warnings) - _MAX_SHOWN
        text = f", {left} of them warnings" if left > 0 else ""
        noun = f"{'more ' if warnings else ''}{'note' if more == 1 else 'notes'}"
        app.info(f"{more} {noun} on the imported files{text}; details: -v")


def _passed(scan: FolderScan, report: ImportReport) -> list[SkippedPath]:
    """Return the skipped files, those most similar to records first."""
    read = [SkippedPath(path, why) for path, why in report.passed]
    return [*read, *sorted(scan.passed, key=lambda each: each.why in DULL)]


def _named(folder: str, paths: Sequence[str]) -> str:
    """Return the paths of files of one folder on one line; of more than three the first two and the number."""
    if len(paths) == 1:
        return paths[0]
    names = [basename(path) for path in paths]
    more = "" if len(names) <= 3 else f" and {len(names) - 2} more"
    return f"{folder or '.'}/ ({', '.join(names if not more else names[:2])}{more})"


def _next(
    memory: Jidomem, adopted: Sequence[SourceOutcome], proposals: Sequence[QueueItem], pending: Mapping[str, Set[str]]
) -> list[tuple[str, str]]:
    """Return the commands for the next steps, each with its purpose."""
    commands_: list[tuple[str, str]] = []
    if title := _title(memory):
        commands_.append((f"jidomem recall {shlex.quote(title)}", "ask it a question"))
    if file := _governed(memory):
        commands_.append((f"jidomem governing {shlex.quote(file)}", "show the memories about a file before an edit"))
    elif any(each.counts()["taken_in"] for each in adopted):
        commands_.append(("jidomem ask decisions", "the active decisions"))
    if proposals:
        listed = set[str]().union(*(each.waiting(pending) for each in adopted))
        others = "" if len(listed) == len(proposals) else " of the project"  # such as one of an agent
        commands_.append(("jidomem review", f"review {_count(len(proposals), 'pending proposal')}{others}"))
        curators = memory.writer.authority(memory.project).curators
        if not curators:
            owner = shlex.quote(memory.settings.owner)
            commands_.append((f"jidomem access policy grant {owner} admin", "become administrator and curator"))
        if opposed := sum(one.other is not None for one in proposals):
            commands_.append(
                ("jidomem review --conflicts", f"resolve {_count(opposed, 'conflict')} with active memories")
            )
        some = acceptable(memory.reader, memory.project, proposals)[""]
        if some and (not curators or memory.writer.is_curator(memory.project)):
            purpose = "accept them" if len(some) == len(proposals) else "accept those without a conflict"
            commands_.append(("jidomem review accept --all", purpose))
    if not adopted:
        commands_.append((_FIRST, "record the first memory"))
    return [*commands_, ("git add .jidomem", "commit the memory with the code")] if memory.tree else commands_


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _pending(memory: Jidomem) -> list[QueueItem]:
    """Return all pending reviews; an empty list if nothing was written yet."""
    try:
        return queue(memory.reader, memory.project, memory.sources.now())
    except NotFound:
        return []


def _title(memory: Jidomem) -> str | None:
    """Return the title of an active decision, as an example question, or None."""
    try:
        rows = memory.reader.ask("recent-decisions", project=memory.project, limit=1)
    except NotFound:  # nothing was written yet
        return None
    return " ".join(rows[0]["summary"].split()) if rows else None


def _governed(memory: Jidomem) -> str | None:
    """Return a source file with governing memories, of a few the one with the most, or None.

    If no memory names a source file, the candidates are the first source file in each named folder, or for each named
    pattern.
    """
    try:
        rows = memory.reader.select(memory.project, _PLACES)
    except NotFound:  # nothing was written
        return None
    places: list[str] = [row["place"] for row in rows]
    files = [place for place in places if memory.tree is None or memory.tree.has(place)]
    named = [file for file in files if _SOURCE.search(file)]
    if not named and memory.tree is not None:
        sources = [file for file in listing(memory.tree.base).paths if _SOURCE.search(file)]
        matches = (next((file for file in sources if is_about(place, file)), None) for place in places)
        named = [file for file in matches if file is not None]
    known = {file: memory.governing(file) for file in named[:_TRIED]}
    counts = {
        file: len(rows) + len(related_memories(memory.reader, memory.project, [file], {row["item"] for row in rows}))
        for file, rows in known.items()
        if rows
    }
    return max(counts, key=lambda file: counts[file], default=None)


#: The extensions of source code files.
_SOURCE = re.compile(
    r"\.(?:bash|cc?|cljs?|cpp|cs|css|dart|erl|exs?|go|graphql|h|hpp|hs|html|java|jl|jsx?|kt|lua|ml|php|p[lp]|proto|ps1"
    r"|py|rb?|rs|scala|scss|sh|sql|svelte|swift|tf|tsx?|vue|zig)$",
    re.IGNORECASE,
)
_PLACES = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?place (COUNT(?item) AS ?times) WHERE {
  ?item jido:about ?place ; jido:hasAssertionStatus jido:Asserted FILTER(isLiteral(?place))
} GROUP BY ?place ORDER BY DESC(?times) ?place LIMIT 1000
"""


_FROM = "Import existing records: all sources (auto), adr, memory-md, mcp-memory, beads, or a path; repeatable."


@click.command(cls=Command, writes=("agent", "session", "wait"))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--from", "sources", multiple=True, metavar="auto|KIND|PATH", help=_FROM)
@dry_run_option
@pass_app
def init(app: App, folder: Path, sources: tuple[str, ...], dry_run: bool) -> int:
    """Create the memory root .jidomem/ in FOLDER (default: current directory).

    --from auto finds decision records, notes for agents (CLAUDE.md, AGENTS.md, .cursorrules ...), the graph of the MCP
    memory server and beads issues, and imports them: records as decisions, all else as proposals. Run it again to
    synchronise: a changed record supersedes its memory, a removed one is proposed for withdrawal; --dry-run shows the
    changes. Without FOLDER, --root PATH creates the root PATH itself, and an address in --root or $JIDOMEM_ROOT a
    shared root there. Existing files stay. --project names the project (default: the folder).

    Examples:
      jidomem init
      jidomem init --from auto
      jidomem init --from docs/adr --dry-run
      jidomem init services/billing --project billing
      jidomem init --root notes --project billing
      jidomem init --root postgresql://db/team --project billing
    """
    app.creates_project = True
    is_named = click.get_current_context().get_parameter_source("folder") is ParameterSource.COMMANDLINE
    if dry_run and not sources:
        raise InvalidRequest("--dry-run is for an import", hint="jidomem init --from auto --dry-run")
    address = settings.address_of(app.root)
    if not is_named and (address is not None or app.root is not None):
        _refuse_sources(sources)
        _init_named(app) if address is None else _init_shared(app, address)
        return 0
    if is_named and not folder.exists():
        _refuse_kind(str(folder), sources)
    if app.root is not None:
        hint = f"jidomem init {quote(str(folder))} makes {folder / settings.FOLDER}, --root PATH alone the root PATH"
        raise InvalidRequest("--root and FOLDER exclude each other", hint=hint)
    if not is_named:
        _refuse_home(sources)
    if not sources:
        made = _make(app, location.place(folder)) | {"importable": _importable(folder)}
        _print_result(app, made, folder, address)
        if made["importable"]:
            app.info(f"found, and not imported: {', '.join(made['importable'])}")
            command = f"jidomem init{f' {quote(str(folder))}' * is_named} --from auto --dry-run"
            app.info(f"next: {command} shows the import; without --dry-run it is written")
        else:
            app.info(f"next: {'git add .jidomem, then: ' if _top_of(folder) else ''}{_FIRST}")
        return 0
    return _adopt(app, folder, sources, address, dry_run)


def _adopt(app: App, folder: Path, sources: tuple[str, ...], address: str | None, dry_run: bool) -> int:
    """Create the root and import the *sources*; return the exit code."""
    base = location.place(folder).parent
    scan, scope = scan_sources(base, sources)
    made = {} if dry_run else _make(app, location.place(folder))
    if made and not app.json:
        _print_result(app, made, folder, address, known="the root exists already")
    with open_for_import(app, base / settings.FOLDER, dry_run) as memory:
        adopted, report = adopt(memory, base, scan.sources, scope)
        return show(app, memory, scan, adopted, report, made)


def _importable(folder: Path) -> list[str]:
    """Return the sources that `init --from auto` would import from the repository of *folder*, a phrase for each."""
    scan = scan_folder(location.place(folder).parent)
    many = {source.path: f" ({len(source.files)})" if len(source.files) > 1 else "" for source in scan.sources}
    return [f"{SOURCE_KINDS[source.kind]} in {source.path}{many[source.path]}" for source in scan.sources]


def _make(app: App, root: Path) -> dict[str, Any]:
    """Create *root*, or another project in it, and return its description."""
    before = {name for name in location.FILES if (root / name).exists()}
    if (stored := settings.folder_in_git(root)) is not None:
        absent = settings.memory_missing(stored)
        if stored.is_left_out:
            raise absent
        app.warn(f"{absent.detail}; this one is beside it: to undo, remove it, then bring it here: {stored.command}")
    try:
        location.create_files(root, Stream(app.project or settings.default_project(root)).project)
    except OSError as error:
        hint = "name a folder that can be written to: jidomem init FOLDER"
        raise Failed(f"{error.filename}: {error.strerror}", hint=hint) from error
    except NotFound as error:  # an invalid project id
        name = root_config.slug_of(app.project or "")
        error.hint = f"{error.hint.partition(':')[0]}: jidomem init --project {name}"
        raise
    fresh = [name for name in location.FILES if name not in before]
    if app.project is not None and settings.CONFIG in before:
        with jidomem.open(root, project=app.project) as memory:
            fresh += _create_project(memory)
    project = settings.load(root, app.project).project
    return {"root": str(root), "project": project, "made": fresh, "kept": sorted(before)}


def _create_project(memory: Jidomem) -> list[str]:
    """Record the project of *memory* in its root; return the folder, nothing if the root has the project already."""
    from jidomem.write.context import project_node
    from jidomem.write.triples import project_stub

    memory.expected_project = None
    if memory.project in memory.projects():
        return []
    memory.writer.declare(memory.project, project_stub(project_node(memory.project)))
    return [f"projects/{memory.project}"]


def _print_result(app: App, made: dict[str, Any], folder: Path, address: str | None, known: str = _KNOWN) -> None:
    """Print the created files, or *known* if there are none, and warnings."""
    show_result(app, made, made["root"])
    fresh = made["made"]
    app.info(f"project {made['project']}: {_made(made, known)}")
    base = folder.resolve()
    above = next((each for each in base.parents if (each / settings.FOLDER).is_dir()), None)
    if above is not None:
        app.warn(f"this folder now has its own memory instead of that of {above}; to undo: rm -r {quote(made['root'])}")
    elif fresh and (top := _top_of(folder)) not in (None, base):
        app.info(f"this memory is for this folder; for the whole repository: jidomem init {quote(str(top))}")
    if _top_of(folder) and (rule := location.ignored_journal(Path(made["root"]))):
        app.warn(f"git ignores the journal, so no clone has the memory: {rule[0]}; to end that: {rule[1]}")
    own = Path(user_data_dir("jidomem", appauthor=False))
    if fresh and FileJournal(own).head(Stream(made["project"])).heads:
        app.info(f"earlier memories of {made['project']} are in your own memory; move them here with:")
        app.info(f"  jidomem --root {quote(str(own))} --project {made['project']} root export -o {made['project']}.ttl")
        app.info(f"  jidomem root import turtle {made['project']}.ttl")
    if address is not None or os.environ.get("JIDOMEM_ROOT"):
        app.warn("$JIDOMEM_ROOT names another root and takes precedence: unset JIDOMEM_ROOT to use this one")


def _top_of(folder: Path) -> Path | None:
    """Return the top of the git repository around *folder*, or None."""
    base = folder.resolve()
    return next((each for each in (base, *base.parents) if (each / ".git").exists()), None)


def _refuse_home(sources: tuple[str, ...]) -> None:
    """Raise InvalidRequest in a folder that contains repositories, such as the home directory."""
    folder = Path.cwd().resolve()
    if folder in (Path.home().resolve(), Path(folder.anchor)) and _top_of(folder) is None:
        words = "".join(f" --from {quote(each)}" for each in sources)
        raise InvalidRequest(
            f"{folder} is not a repository: all folders below it would share one memory",
            hint=f"cd into a repository, then: jidomem init{words}; if you mean it: jidomem init {quote(str(folder))}",
        )


def _refuse_kind(folder: str, sources: tuple[str, ...]) -> None:
    """Raise InvalidRequest if a source or an address was named in place of the folder."""
    if ":/" in folder:
        raise InvalidRequest("an address is not a folder", hint="jidomem init --root ADDRESS")
    if folder in (AUTO, *SOURCE_KINDS):
        words = " ".join(f"--from {quote(each)}" for each in (*sources, folder))
        raise InvalidRequest(f"{folder}: no such folder", hint=f"jidomem init {words}")


def _refuse_sources(sources: tuple[str, ...]) -> None:
    if sources:
        raise InvalidRequest(
            "--from imports from a repository into the root in it, and --root names another one",
            hint="jidomem root import adr FILE..., jidomem root import memory-md FILE...",
        )


def _init_named(app: App) -> None:
    """Create the root of --root itself; raise InvalidRequest if there is a folder with files of something else."""
    root, _ = settings.find(app.root)
    if root.is_dir() and not settings.is_root(root) and {*os.listdir(root)} - {*location.FILES, *location.FOLDERS}:
        hint = f"name a new or empty folder; for a memory in that one: jidomem init {quote(str(root))}"
        raise InvalidRequest(f"{root} has files that are not of a memory", hint=hint)
    made = _make(app, root)
    show_result(app, made, made["root"])
    app.info(f"project {made['project']}: {_made(made)}")
    app.info(f"next: {_FIRST}")


def _made(made: dict[str, Any], known: str = _KNOWN) -> str:
    return f"made {', '.join(made['made'])}" if made["made"] else known


def _init_shared(app: App, address: str) -> None:
    """Create a shared root, with a configuration that names its project if it has none."""
    from jidomem.extras.servers import addresses

    name = Stream(app.project or root_config.slug_of(Path.cwd().name)).project
    text, made = location.CONFIG.format(project=name), list[str]()

    def begun(files: addresses.Files) -> addresses.Files:
        made[:] = [] if settings.CONFIG in files else [settings.CONFIG]
        return {settings.CONFIG: text, **files}

    log, _ = location.open_log(address, app.wait, creates=True)
    try:
        addresses.change(log, begun)
    finally:
        log.close()
    with app.open() as memory:
        project = memory.project
        made += _create_project(memory)
    show_result(
        app, {"root": log.name, "project": project, "made": made, "kept": [] if made else [settings.CONFIG]}, log.name
    )
    app.info(f"project {project}: " + ("created" if made else _KNOWN))
    app.info(f"next: set JIDOMEM_ROOT to that address, then: {_FIRST}")
