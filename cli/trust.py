"""`jidomem trust`: let the configuration of a root say more than data may."""

from __future__ import annotations

from pathlib import Path

import click

from jidomem.clock import now
from jidomem.errors import InvalidRequest, NotFound
from jidomem.runtime import trust as trusting
from jidomem.runtime.bounds import check_root, root_folder
from jidomem.runtime.config import OF_TRUST
from jidomem.runtime.settings import FOLDER, own_config
from jidomem.shared.places import shown
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json


@click.command(cls=Verb)
@click.argument("path", type=click.Path())
@click.option("--command", metavar="COMMAND", help="Only let its strict conventions have this command run, as written.")
@click.option("--off", is_flag=True, help="Trust it no longer.")
@pass_door
def trust(door: Door, path: str, command: str | None, off: bool) -> None:
    """Trust the root at PATH, or in it, as it is now: its config.toml may say where jidomem serve listens.

    A root is found on disk, and may be somebody else's. Trust is kept in your own configuration, and ends when the
    root's configuration, terms, rules or questions change. It lets no command run: each is let by itself.

    Examples:
      jidomem trust .
      jidomem trust . --command "ruff check --stdin-filename {} -"
      jidomem trust . --off
    """
    root = _root(path)
    if command is not None:
        trusting.let_run(own_config(), root, command, now(), off=off)
        if door.json:
            show_json({"root": str(root), "command": command, "may_run": not off})
        else:
            door.say(f"{command!r} may {'run no longer' if off else 'run'} for {root}, before an edit")
        return
    if off:
        trusting.distrust(own_config(), root)
    else:
        trusting.trust(own_config(), root, now())
    if door.json:
        show_json({"root": str(root), "trusted": not off})
    else:
        what = f"its config.toml may set {' and '.join(OF_TRUST)}, until something of it changes"
        door.say(f"{root} is trusted no longer" if off else f"{root} is trusted: {what}")


def _root(path: str) -> Path:
    """Return the root that is meant; raises NotFound where there is none, InvalidRequest for an address."""
    if "://" in path:
        raise InvalidRequest(
            f"{shown(path)} is data for whoever may write to it: nothing of a shared root is trusted to say more",
            hint="tell each server where it listens: jidomem serve --host ADDRESS --port NUMBER",
        )
    here = Path(path).resolve()
    root = inner if (inner := root_folder(here / FOLDER)).is_dir() else root_folder(path)
    check_root(root)
    if not (root / "config.toml").exists():
        raise NotFound(f"there is no root with a config.toml at {path}", hint="name a repository, or its .jidomem")
    return root
