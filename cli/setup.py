"""`jidomem setup`: name the memory to the programs agents run in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from jidomem.clients import git_hook, setups
from jidomem.clients.setups import CLIENTS, Change, Client
from jidomem.clients.writing import check_inside, write
from jidomem.errors import InvalidRequest
from jidomem.runtime import making
from jidomem.runtime.settings import FOLDER
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json

_NOT_SET_UP = 1
_SHELL_SECONDS = 5.0


@click.command(cls=Verb)
@click.argument("client", type=click.Choice((*CLIENTS, "git")))
@click.option("--user", is_flag=True, help="For every folder you open, not for this repository.")
@click.option("--remove", is_flag=True, help="Take out what was written.")
@click.option("--check", is_flag=True, help="Change nothing; end with 1 unless all is there and current.")
@click.option("--print", "print_", is_flag=True, help="Print what the files would hold, and change nothing.")
@pass_door
def setup(door: Door, client: str, user: bool, remove: bool, check: bool, print_: bool) -> None:
    """Name the memory of this repository to an MCP client, and have it call for briefings and the guard by itself.

    What else its files hold stays as it is, sign by sign. A repository without a memory gets one. With `git` a hook of
    the repository asks the guard before each commit.

    Examples:
      jidomem setup claude
      jidomem setup claude --check
      jidomem setup cursor --print
      jidomem setup codex --remove
    """
    if door.root is not None:
        raise InvalidRequest("setup is for the folder you stand in, not for --root", hint=f"jidomem setup {client}")
    if check + print_ > 1 or (check and remove):
        raise InvalidRequest("--check, --print and --remove ask for different things", hint="give one of them")
    folder = Path.home() if user else _folder()
    changes = _changes(client, folder, user, remove)
    due = [change for change in changes if change.is_due]
    if print_:
        _print(door, changes)
    elif check:
        _tell(door, client, changes, due, "missing or not current: ")
        if due:
            click.get_current_context().exit(_NOT_SET_UP)
    else:
        for change in due:
            write(change.path, change.after, git_hook.MODE if client == "git" else None)
        _tell(door, client, changes, due, "taken out of: " if remove else "wrote ")
        if not remove:
            _ready(door, client, folder, user)


def _folder() -> Path:
    """Return the folder that holds the memory, else the repository, else the one that is worked in."""
    here = Path.cwd().resolve()
    above = (here, *here.parents)
    held = next((folder for folder in above if (folder / FOLDER).is_dir()), None)
    return held or next((folder for folder in above if (folder / ".git").exists()), here)


def _changes(name: str, folder: Path, user: bool, removed: bool) -> list[Change]:
    command = _command()
    if name == "git":
        if user:
            raise InvalidRequest("a git hook is of one repository", hint="jidomem setup git")
        return [git_hook.change(folder, command, removed=removed)]
    client = CLIENTS[name]
    changes = setups.changes(client, _place(client, folder, user), command, removed=removed)
    if not user:
        check_inside(folder, [change.path for change in changes])
    return changes


def _place(client: Client, folder: Path, user: bool) -> Callable[[str], Path]:
    """Return where each file of *client* is."""
    if not user:
        return lambda name: folder / name
    if client.user is None:
        raise InvalidRequest(
            f"{client.title} starts a server named for every folder in no folder that is known",
            hint="set up each repository: leave out --user",
        )
    own: Mapping[str, str] = client.user
    home = folder if client is not CLIENTS["codex"] else Path(os.environ.get("CODEX_HOME") or folder / ".codex")
    return lambda name: home / own[name]


def _command() -> str:
    """Return what starts this program from any folder: its name where a fresh shell finds it, else where it is."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    kept = [f"{name}={os.environ[name]}" for name in ("HOME", "USER", "LOGNAME", "SHELL") if name in os.environ]
    asked = ["env", "-i", *kept, "TERM=dumb", shell, "-lc", "command -v jidomem"]
    try:
        done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SHELL_SECONDS, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return "jidomem"
    except (OSError, subprocess.SubprocessError):
        pass
    return str(Path(sys.executable).parent / "jidomem")


def _print(door: Door, changes: Sequence[Change]) -> None:
    if door.json:
        show_json({"files": [{**_told(change), "text": change.after} for change in changes]})
        return
    for change in changes:
        click.echo(f"# {change.path}")
        click.echo(change.after or "", nl=not (change.after or "\n").endswith("\n"))


def _tell(door: Door, client: str, changes: Sequence[Change], due: Sequence[Change], done: str) -> None:
    if door.json:
        show_json({"client": client, "current": not due, "files": [_told(change) for change in changes]})
        return
    for change in due:
        door.say(f"{done}{change.path}")
    if not due:
        door.say(f"{client}: all is as it is to be")


def _told(change: Change) -> dict[str, object]:
    return {"path": str(change.path), "is": change.before is not None, "due": change.is_due}


def _ready(door: Door, name: str, folder: Path, user: bool) -> None:
    """Make the memory where there is none, and say what else there is to do."""
    if not user and not (folder / FOLDER).exists():
        door.say(f"made {making.init(folder, door.project)}")
    command = _command()
    if command != "jidomem":
        door.say(f"a fresh shell finds no jidomem, so {command} is called: others who clone this have it elsewhere")
    if name == "git":
        return
    if find_spec("mcp") is None:
        door.warn("the MCP SDK is not installed, and no client can start the server: pip install 'jidomem[mcp]'")
    if CLIENTS[name].note:
        door.say(f"next: {CLIENTS[name].note}")
