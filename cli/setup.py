"""`jidomem setup` and `jidomem completion`: connect clients and shells."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from jidomem.clients import setup as setups
from jidomem.clients.config_files import check_inside, write
from jidomem.clients.setup import CLIENTS, MODE, AgentProgram, FileChange, plan_hook_change
from jidomem.errors import InvalidRequest
from jidomem.runtime import location
from jidomem.runtime.settings import FOLDER
from jidomem_cli.options import App, Command, pass_app
from jidomem_cli.output import show_json


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
@pass_app
def completion(app: App, context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL; load it in the shell's own start-up file.

    Examples:
      jidomem completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(context.find_root().command, {}, "jidomem", "_JIDOMEM_COMPLETE").source()
    show_json({"shell": shell, "script": script}) if app.json else click.echo(script)


_NOT_SET_UP = 1
_SHELL_SECONDS = 5.0


@click.command(cls=Command)
@click.argument("client", type=click.Choice((*CLIENTS, "git")))
@click.option("--user", is_flag=True, help="Set up for every folder, not for this repository.")
@click.option("--remove", is_flag=True, help="Remove the setup.")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if something differs.")
@click.option("--print", "print_", is_flag=True, help="Print the files instead of writing them.")
@pass_app
def setup(app: App, client: str, user: bool, remove: bool, check: bool, print_: bool) -> None:
    """Connect a client to the memory of this repository: its MCP server, and hooks for briefings and the guard.

    The rest of its files is left untouched, byte for byte. A repository without a memory gets one. `git` installs a
    pre-commit hook that calls the guard.

    Examples:
      jidomem setup claude
      jidomem setup claude --check
      jidomem setup cursor --print
      jidomem setup codex --remove
    """
    if app.root is not None:
        raise InvalidRequest("setup is for the current folder, not for --root", hint=f"jidomem setup {client}")
    if check + print_ > 1 or (check and remove):
        raise InvalidRequest("--check, --print and --remove exclude each other", hint="give one of them")
    folder = Path.home() if user else _folder()
    changes = _changes(client, folder, user, remove)
    due = [change for change in changes if change.is_due]
    if print_:
        _print(app, changes)
    elif check:
        _print_setup(app, client, changes, due, "missing or not current: ")
        if due:
            click.get_current_context().exit(_NOT_SET_UP)
    else:
        for change in due:
            write(change.path, change.after, MODE if client == "git" else None)
        _print_setup(app, client, changes, due, "removed from " if remove else "wrote ")
        if not remove:
            _make_memory(app, client, folder, user)


def _folder() -> Path:
    """Return the folder that contains the memory, else the repository, else the working directory."""
    working = Path.cwd().resolve()
    above = (working, *working.parents)
    holder = next((folder for folder in above if (folder / FOLDER).is_dir()), None)
    return holder or next((folder for folder in above if (folder / ".git").exists()), working)


def _changes(name: str, folder: Path, user: bool, removed: bool) -> list[FileChange]:
    command = _command()
    if name == "git":
        if user:
            raise InvalidRequest("a git hook belongs to one repository", hint="jidomem setup git")
        return [plan_hook_change(folder, command, removed=removed)]
    client = CLIENTS[name]
    changes = setups.changes(client, _place(client, folder, user), command, removed=removed)
    if not user:
        check_inside(folder, [change.path for change in changes])
    return changes


def _place(client: AgentProgram, folder: Path, user: bool) -> Callable[[str], Path]:
    """Return the function that gives the path of each file of *client*."""
    if not user:
        return lambda name: folder / name
    if client.user is None:
        raise InvalidRequest(
            f"{client.title} cannot start a server for every folder",
            hint="set up each repository: leave out --user",
        )
    own: Mapping[str, str] = client.user
    home = folder if client is not CLIENTS["codex"] else Path(os.environ.get("CODEX_HOME") or folder / ".codex")
    return lambda name: home / own[name]


def _command() -> str:
    """Return the command that starts this program from any folder: its name if a new shell finds it, else its path."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    environment = [f"{name}={os.environ[name]}" for name in ("HOME", "USER", "LOGNAME", "SHELL") if name in os.environ]
    shell_command = ["env", "-i", *environment, "TERM=dumb", shell, "-lc", "command -v jidomem"]
    try:
        done = subprocess.run(
            shell_command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SHELL_SECONDS, check=False
        )
        if done.returncode == 0 and done.stdout.strip():
            return "jidomem"
    except (OSError, subprocess.SubprocessError):
        pass
    return str(Path(sys.executable).parent / "jidomem")


def _print(app: App, changes: Sequence[FileChange]) -> None:
    if app.json:
        show_json({"files": [{**_change_json(change), "text": change.after} for change in changes]})
        return
    for change in changes:
        click.echo(f"# {change.path}")
        click.echo(change.after or "", nl=not (change.after or "\n").endswith("\n"))


def _print_setup(app: App, client: str, changes: Sequence[FileChange], due: Sequence[FileChange], done: str) -> None:
    if app.json:
        show_json({"client": client, "current": not due, "files": [_change_json(change) for change in changes]})
        return
    for change in due:
        app.info(f"{done}{change.path}")
    if not due:
        app.info(f"{client}: up to date")


def _change_json(change: FileChange) -> dict[str, object]:
    return {"path": str(change.path), "is": change.before is not None, "due": change.is_due}


def _make_memory(app: App, name: str, folder: Path, user: bool) -> None:
    """Create the memory if there is none, and print the next steps."""
    if not user and not (folder / FOLDER).exists():
        app.info(f"created {location.init(folder, app.project)}")
    command = _command()
    if command != "jidomem":
        app.info(f"jidomem is not on the PATH of a new shell: the setup calls {command}, which other clones may lack")
    if name == "git":
        return
    if find_spec("mcp") is None:
        app.warn("the MCP SDK is not installed, so no client can start the server: pip install 'jidomem[mcp]'")
    if CLIENTS[name].note:
        app.info(f"next: {CLIENTS[name].note}")
