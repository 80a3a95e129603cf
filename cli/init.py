"""`jidomem init`: make a memory root in a folder."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from jidomem.errors import Failed, InvalidRequest
from jidomem.journal.files import Stream
from jidomem.runtime import root, settings
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json

_FILES = (settings.CONFIG, ".gitignore", ".gitattributes")


@click.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@pass_door
def init(door: Door, folder: Path) -> None:
    """Make the memory root .jidomem/ in FOLDER, the present one when not said.

    Where --root or $JIDOMEM_ROOT is an address, and no FOLDER is said, it begins a shared root there. What is there
    already is left alone.

    Examples:
      jidomem init
      jidomem init services/billing --project billing
      jidomem init --root postgresql://db/team --project billing
    """
    is_named = click.get_current_context().get_parameter_source("folder") is ParameterSource.COMMANDLINE
    address = settings.address_of(door.root)
    if address is not None and not is_named:
        _init_shared(door, address)
        return
    if door.root is not None:
        raise InvalidRequest("init takes the folder of the repository, not --root", hint=f"jidomem init {folder}")
    before = {name for name in _FILES if (folder / settings.FOLDER / name).exists()}
    try:
        made = root.init(folder, door.project)
    except OSError as error:
        hint = "make that folder writable, or name another: jidomem init DIR"
        raise Failed(f"{error.filename}: {error.strerror}", hint=hint) from error
    project = settings.load(made).project
    fresh = [name for name in _FILES if name not in before]
    if door.json:
        show_json({"root": str(made), "project": project, "made": fresh, "kept": sorted(before)})
    else:
        click.echo(made)
    door.say(
        f"project {project}: " + (f"made {', '.join(fresh)}" if fresh else "it was there already, nothing changed")
    )
    if address is not None:
        door.warn("$JIDOMEM_ROOT names another root, and counts before this one: unset JIDOMEM_ROOT to use it")
    door.say('next: git add .jidomem, then: jidomem remember "what an agent should know"')


def _init_shared(door: Door, address: str) -> None:
    """Begin a shared root: with a configuration that names its project, where it has none."""
    from jidomem.shared import root_files

    name = Stream(door.project or settings.slug_of(Path.cwd().name)).project
    text, made = root.CONFIG.format(project=name), list[str]()

    def begun(files: root_files.Files) -> root_files.Files:
        made[:] = [] if settings.CONFIG in files else [settings.CONFIG]
        return {settings.CONFIG: text, **files}

    log, _ = settings.open_log(address, door.wait)
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
