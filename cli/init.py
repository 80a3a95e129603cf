"""`jidomem init`: make a memory root in a folder."""

from __future__ import annotations

from pathlib import Path

import click

from jidomem.errors import Failed, InvalidRequest
from jidomem.runtime import root, settings
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json

_FILES = (settings.CONFIG, ".gitignore", ".gitattributes")


@click.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@pass_door
def init(door: Door, folder: Path) -> None:
    """Make the memory root .jidomem/ in FOLDER, the present one when not said.

    What is there already is left alone.

    Examples:
      jidomem init
      jidomem init services/billing --project billing
    """
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
    door.say('next: git add .jidomem, then: jidomem remember "what an agent should know"')
