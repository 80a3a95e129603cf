"""`jidomem doctor`: all that an operator would look at, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.tables import show_json

if TYPE_CHECKING:
    from jidomem.runtime.looks import Look
    from jidomem.runtime.place import InFolder, Shared

_FAILED = 1
_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=Verb)
@click.option("--full", is_flag=True, help="Read every byte of the journal, as jidomem verify does.")
@pass_door
def doctor(door: Door, full: bool) -> int:
    """Look at all that may be wrong, programs, root, journal, index, models and clients, and say what to do.

    It changes nothing here; a triple store that is to answer is given a few probes, in a graph of their own.
    Each line is ok, warn or fail; it ends with 1 where one is fail.

    Examples:
      jidomem doctor
      jidomem doctor --full --json
    """
    found = list(_looks(door, full))
    is_well = all(look.level != "fail" for look in found)
    if door.json:
        show_json({"ok": is_well, "checks": [look.to_dict() for look in found]})
    else:
        for look in found:
            level = click.style(f"{look.level:4}", fg=_COLORS[look.level]) if door.colors else f"{look.level:4}"
            click.echo(f"{level}  {look.name:12} {clean(look.detail)}")
            if look.hint:
                click.echo(f"{'':19}do: {clean(look.hint)}")
    return 0 if is_well else _FAILED


def _looks(door: Door, full: bool) -> Iterator[Look]:
    from jidomem.errors import JidomemError
    from jidomem.runtime import machine, settings
    from jidomem.runtime.looks import Look, looked
    from jidomem.runtime.place import open_place

    yield from looked("packages", machine.programs)
    try:
        root, how = settings.find(door.root)
    except JidomemError as error:
        yield Look("root", "fail", error.detail, error.hint)
        return
    if settings.address_of(door.root) is None and not root.is_dir():
        yield Look("root", "fail", f"there is none at {root} ({how})", "make one in this folder: jidomem init")
        return
    try:
        place = open_place(door.root, door.wait)
    except JidomemError as error:
        yield Look("root", "fail", error.detail, error.hint)
        return
    yield Look("root", "ok", f"{place.name} ({how})" + (f", its copy is {root}" if place.is_shared else ""))
    yield from _of_root(door, full, root, place)
    place.close()


def _of_root(door: Door, full: bool, root: Path, place: InFolder | Shared) -> Iterator[Look]:
    """Yield what is looked at of a root that can be opened."""
    from jidomem.clock import now
    from jidomem.errors import JidomemError
    from jidomem.runtime import machine, premises, settings
    from jidomem.runtime.looks import looked
    from jidomem.serve.server import HOST, PORT

    journal = place.journal(door.wait)
    tokens_in = place.name if place.is_shared else str(settings.own_config())
    for name, look in (
        ("permissions", lambda: premises.permissions(root)),
        ("disk", lambda: machine.disk(root)),
        ("file system", lambda: machine.file_system(root)),
        ("config", lambda: premises.configuration(root)),
        ("journal", lambda: premises.journal(journal, full=full)),
        ("clock", lambda: premises.clock(journal, now())),
        ("index", lambda: premises.index(root, journal)),
        ("leftovers", lambda: premises.leftovers(root, journal)),
        ("cache", lambda: premises.cache(root)),
        ("git", lambda: premises.repository(root, journal)),
        ("clients", lambda: _clients(Path.cwd() if place.is_shared else root.parent)),
        ("tokens", lambda: premises.tokens(place.keyring(), tokens_in)),
    ):
        yield from looked(name, look)
    try:
        said = settings.load(door.root)
    except JidomemError:  # told above
        return
    yield from looked("models", lambda: premises.models(said))
    yield from looked("store", lambda: premises.store(said, journal))
    yield from looked("port", lambda: machine.port(said.host or HOST, said.port or PORT))


def _clients(folder: Path) -> Iterator[Look]:
    """Yield which clients the memory is named to in *folder*, and whether git calls for it."""
    from jidomem.clients.setups import CLIENTS
    from jidomem.runtime.looks import Look

    named = [name for name, client in CLIENTS.items() if _mentions(folder / client.servers)]
    hooked = [name for name, of in CLIENTS.items() if of.hooks_in and _mentions(folder / of.hooks_in)]
    git = ["git pre-commit"] if _mentions(folder / ".git" / "hooks" / "pre-commit") else []
    if named:
        yield Look("clients", "ok", f"named to {', '.join(named)}; hooks of {', '.join([*hooked, *git]) or 'none'}")
    else:
        yield Look("clients", "ok", f"named to none in {folder}: jidomem setup {next(iter(CLIENTS))} does so")


def _mentions(path: Path) -> bool:
    return path.is_file() and "jidomem" in path.read_text("utf-8", "replace")
