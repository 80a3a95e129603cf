"""`jidomem completion`: the script that lets a shell complete verbs and options.

What verbs share that a client calls as a hook: they hear it out, answer in its words, and never fail it.

`jidomem setup`: name the memory to the programs agents run in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from jidomem.clients import setup as setups
from jidomem.clients.config_files import check_inside, write
from jidomem.clients.setup import CLIENTS, MODE, AgentProgram, FileChange, plan_hook_change
from jidomem.errors import InvalidRequest, JidomemError, TooLarge
from jidomem.runtime import location
from jidomem.runtime.settings import FOLDER
from jidomem_cli.options import Door, Verb, pass_door
from jidomem_cli.output import show_json


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
@pass_door
def completion(door: Door, context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL; load it in the shell's own start-up file.

    Examples:
      jidomem completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(context.find_root().command, {}, "jidomem", "_JIDOMEM_COMPLETE").source()
    show_json({"shell": shell, "script": script}) if door.json else click.echo(script)


HOOK_CLIENTS = ("claude", "cursor", "codex")
_LARGEST = 64 * 1024 * 1024


def answering(door: Door, client: str, verb: str, found: Callable[[Mapping[str, Any]], Mapping[str, str]]) -> None:
    """Print in the words of *client* what is *found* of what it tells on standard input; silent where nothing is.

    The client goes on whatever happens: what *verb* could not do is told to whoever sits before it.
    """
    if door.root is not None or door.json or door.as_of is not None:
        raise InvalidRequest(f"{verb} --hook is called by a client", hint=f"jidomem setup {client}")
    said: Mapping[str, Any] = {}
    try:
        said = _heard()
        with suppress(OSError):
            os.chdir(os.environ.get("CLAUDE_PROJECT_DIR") or setups.folder_of(said) or ".")
        answer = setups.answer(client, said, **found(said))
    except JidomemError as error:
        answer = setups.answer(client, said, warning=f"jidomem {verb}: {error.detail} ({error.hint})")
    if answer:
        click.echo(answer)


def _heard() -> dict[str, Any]:
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        what = f"a hook is told at most {_LARGEST:,} bytes"
        raise TooLarge(what, hint="make smaller edits", code="payload_too_large")
    return setups.parse_hook_input(data.decode("utf-8", "replace"))


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
        _print_setup(door, client, changes, due, "missing or not current: ")
        if due:
            click.get_current_context().exit(_NOT_SET_UP)
    else:
        for change in due:
            write(change.path, change.after, MODE if client == "git" else None)
        _print_setup(door, client, changes, due, "taken out of: " if remove else "wrote ")
        if not remove:
            _ready(door, client, folder, user)


def _folder() -> Path:
    """Return the folder that holds the memory, else the repository, else the one that is worked in."""
    here = Path.cwd().resolve()
    above = (here, *here.parents)
    held = next((folder for folder in above if (folder / FOLDER).is_dir()), None)
    return held or next((folder for folder in above if (folder / ".git").exists()), here)


def _changes(name: str, folder: Path, user: bool, removed: bool) -> list[FileChange]:
    command = _command()
    if name == "git":
        if user:
            raise InvalidRequest("a git hook is of one repository", hint="jidomem setup git")
        return [plan_hook_change(folder, command, removed=removed)]
    client = CLIENTS[name]
    changes = setups.changes(client, _place(client, folder, user), command, removed=removed)
    if not user:
        check_inside(folder, [change.path for change in changes])
    return changes


def _place(client: AgentProgram, folder: Path, user: bool) -> Callable[[str], Path]:
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


def _print(door: Door, changes: Sequence[FileChange]) -> None:
    if door.json:
        show_json({"files": [{**_change_json(change), "text": change.after} for change in changes]})
        return
    for change in changes:
        click.echo(f"# {change.path}")
        click.echo(change.after or "", nl=not (change.after or "\n").endswith("\n"))


def _print_setup(door: Door, client: str, changes: Sequence[FileChange], due: Sequence[FileChange], done: str) -> None:
    if door.json:
        show_json({"client": client, "current": not due, "files": [_change_json(change) for change in changes]})
        return
    for change in due:
        door.say(f"{done}{change.path}")
    if not due:
        door.say(f"{client}: all is as it is to be")


def _change_json(change: FileChange) -> dict[str, object]:
    return {"path": str(change.path), "is": change.before is not None, "due": change.is_due}


def _ready(door: Door, name: str, folder: Path, user: bool) -> None:
    """Make the memory where there is none, and say what else there is to do."""
    if not user and not (folder / FOLDER).exists():
        door.say(f"made {location.init(folder, door.project)}")
    command = _command()
    if command != "jidomem":
        door.say(f"a fresh shell finds no jidomem, so {command} is called: others who clone this have it elsewhere")
    if name == "git":
        return
    if find_spec("mcp") is None:
        door.warn("the MCP SDK is not installed, and no client can start the server: pip install 'jidomem[mcp]'")
    if CLIENTS[name].note:
        door.say(f"next: {CLIENTS[name].note}")
