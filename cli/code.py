"""`jidomem import code`: what a project's code defines and depends on, taken into its codebase graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from jidomem.code.taking import ENDINGS, FILES, Report, take_in
from jidomem.errors import InvalidRequest
from jidomem.repository import git
from jidomem.repository.tracked import tracked
from jidomem.runtime.config import slug_of
from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.tables import show_json

if TYPE_CHECKING:
    from jidomem import Jidomem

#: Notes that are told one by one; `--json` has them all.
_TOLD = 20


@click.command("code", cls=Verb, writes=("agent", "wait"))
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("--dry-run", is_flag=True, help="Read what changed and keep nothing.")
@pass_door
def code(door: Door, path: Path, dry_run: bool) -> int:
    """Read the Python and Elixir code below PATH into the codebase graph: modules, functions and what depends on what.

    Only files that changed since are read again; what is gone counts no more, and --as-of answers as it was. What git
    ignores is left out. Ask with: jidomem ask modules, functions, dependencies, dependents, about-dependents.

    Examples:
      jidomem import code .
      jidomem import code . --dry-run
    """
    memory = door.open()
    _refuse_elsewhere(door, memory, path)
    base, below = _place(memory, path.resolve())
    listing = tracked(base, below, ENDINGS)
    show, close = _progress(door, len(listing.files))
    try:
        report = take_in(memory.writer, memory.tail, memory.project, listing, below, dry_run=dry_run, seen=show)
    finally:
        close()
    _tell(door, memory.project, report, dry_run)
    return 0


def _refuse_elsewhere(door: Door, memory: Jidomem, path: Path) -> None:
    """Raise InvalidRequest for code that is not of the memory's repository, unless its project was named.

    A project has one tree: all that was known of it would be gone.
    """
    tree = memory.tree
    if tree is None or door.project is not None or path.resolve().is_relative_to(tree.base.resolve()):
        return
    name = slug_of(path.resolve().name)
    raise InvalidRequest(
        f"{path} lies outside of {tree.base}, whose code {memory.project} holds: it would take its place",
        hint=f"name a project for it: jidomem import code {quote(str(path))} --project {name}",
    )


def _place(memory: Jidomem, path: Path) -> tuple[Path, str]:
    """Return where the paths of files begin, as those of memories or at the repository, and the folder below that."""
    bases = [] if memory.tree is None else [memory.tree.base]
    with suppress(InvalidRequest):  # no git, or it refuses the repository
        top = git.found(path, "rev-parse", "--show-toplevel")
        bases += [] if top is None else [Path(os.fsdecode(top.rstrip(b"\n")))]
    base = next((base.resolve() for base in bases if path.is_relative_to(base.resolve())), path)
    return base, path.relative_to(base).as_posix().removeprefix(".")


def _progress(door: Door, files: int) -> tuple[Callable[[str], None], Callable[[], None]]:
    """Return what is called with each file, and at the end: a bar on a terminal, elsewhere nothing."""
    if door.quiet or not sys.stderr.isatty():
        return lambda path: None, lambda: None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, color_system="auto" if door.paints(sys.stderr) else None)
    columns = TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[path]}")
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task("", total=files, path="")
    progress.start()
    return lambda path: progress.update(task, advance=1, path=clean(path)[-60:]), progress.stop


def _tell(door: Door, project: str, report: Report, dry_run: bool) -> None:
    """Say what was read and kept, and what could not be read."""
    if door.json:
        notes = [{"path": note.path, "line": note.line or None, "message": note.message} for note in report.notes]
        counts = {"files": dict(report.files), "found": dict(report.found), "triples": report.triples}
        show_json({"project": project, "dry_run": dry_run, **counts, "commits": report.commits, "notes": notes})
        return
    for note in report.notes[:_TOLD]:
        door.say(clean(str(note)))
    if len(report.notes) > _TOLD:
        door.say(f"and {len(report.notes) - _TOLD} notes more; all with --json")
    if not report.files:
        door.say("there is no Python or Elixir file there that git does not ignore: nothing was kept")
        return
    files = ", ".join(f"{report.files[word]:,} {word}" for word in FILES if report.files[word]) or "none"
    found = ", ".join(f"{count:,} {word}" for word, count in report.found.items())
    kept = "would be kept" if dry_run else "kept"
    door.say(f"files: {files}{f'; in what was read: {found}' if found else ''}; {report.triples:,} statements {kept}")
