"""`jidomem init`: make a memory root in a folder, and take in what the repository remembers already."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource
from platformdirs import user_data_dir

from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.journal.files import FileJournal, Stream
from jidomem.runtime import config, making, settings
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json

_FIRST = 'jidomem remember "what an agent should know"'
_FROM = "Take in what is kept elsewhere: all that is found (auto), adr, memory-md, mcp-memory, beads, or a path."


@click.command(cls=Verb, writes=("agent", "session", "wait"))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--from", "sources", multiple=True, metavar="auto|KIND|PATH", help=_FROM)
@click.option(
    "--dry-run", is_flag=True, help="With --from: show what would be added, changed, moved and removed; write nothing."
)
@pass_door
def init(door: Door, folder: Path, sources: tuple[str, ...], dry_run: bool) -> int:
    """Make the memory root .jidomem/ in FOLDER, the present one when not said.

    With --from auto it looks for decision records, notes for agents (CLAUDE.md, AGENTS.md, .cursorrules ...), the graph
    of the MCP memory server and issues of beads, and imports them: records as decisions, all else as proposals. Run
    again, it brings memory level with them: what changed supersedes what it was, what is removed is proposed to be
    withdrawn. Where --root or $JIDOMEM_ROOT is an address, and no FOLDER is said, it begins a shared
    root there. What is there already is left alone.

    Examples:
      jidomem init
      jidomem init --from auto
      jidomem init --from docs/adr --dry-run
      jidomem init services/billing --project billing
      jidomem init --root postgresql://db/team --project billing
    """
    is_named = click.get_current_context().get_parameter_source("folder") is ParameterSource.COMMANDLINE
    if dry_run and not sources:
        raise InvalidRequest("--dry-run is for what is taken in", hint="jidomem init --from auto --dry-run")
    address = settings.address_of(door.root)
    if address is not None and not is_named:
        _refuse_sources(sources)
        _init_shared(door, address)
        return 0
    if door.root is not None:
        raise InvalidRequest("init takes the folder of the repository, not --root", hint=f"jidomem init {folder}")
    if not is_named:
        _refuse_home(sources)
    elif not folder.exists():
        _refuse_kind(str(folder), sources)
    if not sources:
        made = _make(door, folder) | {"importable": _importable(folder)}
        _tell(door, made, folder, address)
        if made["importable"]:
            door.say(f"found here, and not imported: {', '.join(made['importable'])}")
            door.say("next: jidomem init --from auto --dry-run shows what would be imported; without --dry-run it is")
        else:
            door.say(f"next: git add .jidomem, then: {_FIRST}" if _top_of(folder) else f"next: {_FIRST}")
        return 0
    return _adopt(door, folder, sources, address, dry_run)


def _adopt(door: Door, folder: Path, sources: tuple[str, ...], address: str | None, dry_run: bool) -> int:
    """Make the root and take in what is found by *sources*; return the exit code."""
    from jidomem.runtime.adopting import adopt
    from jidomem_cli import adopting

    base = making.place(folder).parent
    found, scope = adopting.looked(base, sources), adopting.scope_of(base, sources)
    made = {} if dry_run else _make(door, folder)
    if made and not door.json:
        _tell(door, made, folder, address, known="the root was there already")
    with adopting.judged_in(door, base / settings.FOLDER, dry_run) as memory:
        adopted, report = adopt(memory, base, found.sources, scope)
        return adopting.show(door, memory, found, adopted, report, made)


def _importable(folder: Path) -> list[str]:
    """Return what `init --from auto` would import from the repository of *folder*, a phrase for each source."""
    from jidomem.repository.elsewhere import KINDS, look

    found = look(making.place(folder).parent)
    many = {source.path: f" ({len(source.files)})" if len(source.files) > 1 else "" for source in found.sources}
    return [f"{KINDS[source.kind]} in {source.path}{many[source.path]}" for source in found.sources]


def _make(door: Door, folder: Path) -> dict[str, Any]:
    """Make the root in *folder*, and return what there is to tell of it."""
    before = {name for name in making.FILES if (folder / settings.FOLDER / name).exists()}
    try:
        made = making.init(folder, door.project)
    except OSError as error:
        hint = "name a folder that can be written to: jidomem init FOLDER"
        raise Failed(f"{error.filename}: {error.strerror}", hint=hint) from error
    except NotFound as error:  # of the project id
        name = config.slug_of(door.project or folder.resolve().name)
        error.hint = f"{error.hint.partition(':')[0]}: jidomem init --project {name}"
        raise
    fresh = [name for name in making.FILES if name not in before]
    return {"root": str(made), "project": settings.load(made).project, "made": fresh, "kept": sorted(before)}


def _tell(
    door: Door,
    made: dict[str, Any],
    folder: Path,
    address: str | None,
    known: str = "it was there already, nothing changed",
) -> None:
    """Print what was made, or *known* where nothing was, and say what counts besides."""
    if door.json:
        show_json(made)
    else:
        click.echo(made["root"])
    fresh = ", ".join(made["made"])
    door.say(f"project {made['project']}: " + (f"made {fresh}" if fresh else known))
    base = folder.resolve()
    above = next((each for each in base.parents if (each / settings.FOLDER).is_dir()), None)
    if above is not None:
        door.warn(f"this folder has a memory of its own now, and no more that of {above}: rm -r {quote(made['root'])}")
    elif fresh and (top := _top_of(folder)) not in (None, base):
        door.say(f"it is the memory of this folder; that of the whole repository: jidomem init {quote(str(top))}")
    own = Path(user_data_dir("jidomem", appauthor=False))
    if fresh and FileJournal(own).head(Stream(made["project"])).heads:
        door.say(f"what was kept of {made['project']} before is in your own memory, and comes here with:")
        door.say(f"  jidomem --root {quote(str(own))} --project {made['project']} export -o {made['project']}.ttl")
        door.say(f"  jidomem import turtle {made['project']}.ttl")
    if address is not None or os.environ.get("JIDOMEM_ROOT"):
        door.warn("$JIDOMEM_ROOT names another root, and counts before this one: unset JIDOMEM_ROOT to use it")


def _top_of(folder: Path) -> Path | None:
    """Return the top of the git repository that *folder* lies in, None where it lies in none."""
    base = folder.resolve()
    return next((each for each in (base, *base.parents) if (each / ".git").exists()), None)


def _refuse_home(sources: tuple[str, ...]) -> None:
    """Raise InvalidRequest where somebody stands in the folder that all their repositories lie in."""
    here = Path.cwd().resolve()
    if here in (Path.home().resolve(), Path(here.anchor)) and _top_of(here) is None:
        words = "".join(f" --from {quote(each)}" for each in sources)
        raise InvalidRequest(
            f"{here} is no repository: all below it would have one memory",
            hint=f"cd into a repository, then: jidomem init{words}; if you mean it: jidomem init {quote(str(here))}",
        )


def _refuse_kind(folder: str, sources: tuple[str, ...]) -> None:
    """Raise InvalidRequest where what is to be taken in was named as if it were a folder."""
    from jidomem.repository.elsewhere import KINDS
    from jidomem_cli.adopting import AUTO

    if folder in (AUTO, *KINDS):
        words = " ".join(f"--from {quote(each)}" for each in (*sources, folder))
        raise InvalidRequest(f"{folder}: no such folder", hint=f"jidomem init {words}")


def _refuse_sources(sources: tuple[str, ...]) -> None:
    if sources:
        raise InvalidRequest(
            "--from takes what a repository holds into a root that lies in it, and this one is shared",
            hint="jidomem import adr FILE..., jidomem import memory-md FILE...",
        )


def _init_shared(door: Door, address: str) -> None:
    """Begin a shared root: with a configuration that names its project, where it has none."""
    from jidomem.runtime import shared_root
    from jidomem.shared import root_files

    name = Stream(door.project or config.slug_of(Path.cwd().name)).project
    text, made = making.CONFIG.format(project=name), list[str]()

    def begun(files: root_files.Files) -> root_files.Files:
        made[:] = [] if settings.CONFIG in files else [settings.CONFIG]
        return {settings.CONFIG: text, **files}

    log, _ = shared_root.open_log(address, door.wait)
    try:
        root_files.change(log, begun)
    finally:
        log.close()
    with door.open() as memory:
        project = memory.project
    if door.json:
        show_json({"root": log.name, "project": project, "made": made, "kept": [] if made else [settings.CONFIG]})
    else:
        click.echo(log.name)
    door.say(f"project {project}: " + ("it begins here" if made else "it was there already, nothing changed"))
    door.say('next: export JIDOMEM_ROOT with that address, then: jidomem remember "what an agent should know"')
