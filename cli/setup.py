"""First steps: `jidomem setup` and `jidomem completion` connect clients and shells; `jidomem demo` is a tour."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click
from click.shell_completion import get_completion_class

import jidomem
from jidomem.base import files
from jidomem.clients import setup as setups
from jidomem.clients.config_files import check_inside, write
from jidomem.clients.setup import CLIENTS, MODE, TOKEN_VARIABLE, AgentProgram, FileChange, plan_hook_change
from jidomem.errors import InvalidRequest
from jidomem.journal.journal import Stream
from jidomem.runtime import location
from jidomem.runtime.settings import FOLDER, requested_project
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
#: The path of an MCP server over HTTP.
MCP_PATH = "/mcp"
_SHELL_SECONDS = 5.0


@click.command(cls=Command)
@click.argument("client", type=click.Choice((*CLIENTS, "git")))
@click.option("--user", is_flag=True, help="Set up for every folder, not for this repository.")
@click.option("--server", metavar="URL", help="Use the server of jidomem mcp --http at this address, without hooks.")
@click.option("--remove", is_flag=True, help="Remove the setup.")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if something differs.")
@click.option("--print", "print_", is_flag=True, help="Print the files instead of writing them.")
@pass_app
def setup(app: App, client: str, user: bool, server: str | None, remove: bool, check: bool, print_: bool) -> None:
    """Connect a client to the memory of this repository: its MCP server, and hooks for briefings and the guard.

    With --project they are of that project. The rest of its files is left untouched, byte for byte. A repository
    without a memory gets one. `git` installs a pre-commit hook that calls the guard. With --server the client sends the
    token in $JIDOMEM_TOKEN, or asks for it; no token is written into a file.

    Examples:
      jidomem setup claude
      jidomem setup claude --check
      jidomem setup cursor --print
      jidomem setup codex --remove
      jidomem setup claude --server https://memory.example.org/mcp
    """
    if app.root is not None:
        raise InvalidRequest("setup is for the current folder, not for --root", hint=f"jidomem setup {client}")
    if check + print_ > 1 or (check and remove):
        raise InvalidRequest("--check, --print and --remove exclude each other", hint="give one of them")
    if server is not None and remove:
        raise InvalidRequest("--remove needs no --server", hint=f"jidomem setup {client} --remove")
    url = None if server is None else _checked_url(app, server)
    folder = Path.home() if user else _folder()
    project = requested_project(app.project)
    if project is not None:
        Stream(project)  # raises for an invalid id, before a file is written
    changes = _changes(client, folder, user, remove, url, project)
    present, name = (None, None) if url or remove else _present(client, changes[0])
    if present and check:
        changes = _changes(client, folder, user, remove, present, None)
        app.info(f"{client} uses the server at {present}")
    elif project is not None and url is not None:
        app.warn(f"the project {project} is not written: a server over HTTP serves the project that it was started for")
    elif project is not None and (folder / FOLDER).is_dir() and not remove:
        with jidomem.open(folder / FOLDER, project=project) as memory:
            memory.expected_project = None  # else it is one of the projects
            app.warn_of_new(memory.settings, memory.projects)
    elif name is not None and project is None:
        changes = _changes(client, folder, user, remove, url, name)
        app.info(f"{client} keeps the project {name}; for another: jidomem --project ID setup {client}")
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
        if present:
            app.info(
                f"it replaces the server at {present}; to use that again: jidomem setup {client} --server {present}"
            )
        if url is not None:
            app.info(f"next: {_token_step(CLIENTS[client])}; its operator issues it: jidomem access token add AGENT")
        elif not remove:
            _make_memory(app, client, folder, user)


def _checked_url(app: App, text: str) -> str:
    """Return the URL of an MCP server, with its path; raise InvalidRequest for another one, or one with a secret."""
    try:
        url = urlsplit(text)
        name, _ = url.hostname, url.port
    except ValueError:
        url, name = urlsplit(""), None
    if url.scheme not in ("http", "https") or not name or "@" in url.netloc or url.query or url.fragment:
        raise InvalidRequest(
            f"{text.partition('?')[0].rpartition('@')[2]!r} is not the address of a server",
            hint=f"give it without a token: --server https://memory.example.org{MCP_PATH}; the token comes from"
            f" ${TOKEN_VARIABLE}",
        )
    if url.scheme == "http" and name not in ("localhost", "127.0.0.1", "::1"):
        app.warn(f"{text} is not encrypted: others may read the token on its way")
    return urlunsplit(url._replace(path=MCP_PATH)) if url.path in ("", "/") else text


def _token_step(client: AgentProgram) -> str:
    if client.token_input is not None:
        return f"{client.title} asks for the token once"
    return f"start {client.title} where the variable {TOKEN_VARIABLE} has the token"


def _folder() -> Path:
    """Return the folder that contains the memory, else the repository, else the working directory."""
    working = Path.cwd().resolve()
    above = (working, *working.parents)
    holder = next((folder for folder in above if (folder / FOLDER).is_dir()), None)
    return holder or next((folder for folder in above if (folder / ".git").exists()), working)


def _present(name: str, change: FileChange) -> tuple[str | None, str | None]:
    """Return the URL of the server in the first file of a client, or the project that its commands name."""
    text = (change.before or "").removeprefix("\ufeff")
    if name == "git":
        return None, setups.named_project(setups.hook_command(text))
    entry = setups.present_server(CLIENTS[name], text)
    url = entry.get("url")
    return url if isinstance(url, str) else None, setups.named_project(entry.get("args"))


def _changes(
    name: str, folder: Path, user: bool, removed: bool, url: str | None, project: str | None
) -> list[FileChange]:
    command = [_command(), *(() if project is None else ("--project", project))]
    if name == "git":
        if url is not None:
            raise InvalidRequest("git uses no server", hint="its hook checks the memory here: jidomem setup git")
        if user:
            raise InvalidRequest("a git hook belongs to one repository", hint="jidomem setup git")
        return [plan_hook_change(folder, command, removed=removed)]
    client = CLIENTS[name]
    changes = setups.changes(client, _place(client, folder, user), command, url=url, removed=removed)
    if not user:
        check_inside(folder, [change.path for change in changes])
    return changes


def _place(client: AgentProgram, folder: Path, user: bool) -> Callable[[str], Path]:
    """Return the function that gives the path of each file of *client*."""
    if not user:
        return lambda name: folder / name
    if client.user is None:
        raise InvalidRequest(
            f"{client.title} cannot start a server for every folder", hint="set up each repository: leave out --user"
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


DEMO_INTENTS: tuple[Mapping[str, Any], ...] = (
    {"type": "fact", "summary": "The journal of a million memories is a few thousand files", "topic": "journal size"},
    {"type": "assumption", "summary": "Disks keep what fsync returned for", "expires_on": "2027-06-30"},
    {"type": "hypothesis", "summary": "Sealing commits into packs halves the time to open"},
    {"type": "discovery", "summary": "A hard-linked clone of the index opens in 13 ms", "evidence": ["bench, 2 cores"]},
    {"type": "risk", "summary": "A hand edit of a commit file stops writes to its stream"},
    {"type": "unknown", "summary": "How large do memories of one team become in a year?"},
    {"type": "decision", "summary": "Publish figures as ratios", "topic": "figures", "rationale": "machines differ"},
    {
        "type": "implementation_decision",
        "summary": "Lock with flock, not with a lock file",
        "topic": "locking",
        "rationale": "the kernel lets go of it when its holder is killed",
        "about": ["jidomem/journal/journal.py"],
    },
    {"type": "convention", "summary": "Errors end with the command that helps", "enforcement_level": "Required"},
    {"type": "milestone", "summary": "First release"},
)


@click.command(cls=Command)
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Folder for the root, which stays.")
@pass_app
def demo(app: App, keep: Path | None) -> None:
    """Show the memory at work: intents, repaired errors, conflicts, queries, a past state.

    Examples:
      jidomem demo
      jidomem demo --keep tour
    """
    started = time.monotonic()
    if app.json:
        output = io.StringIO()
        with redirect_stdout(output):
            _show_tour(app, keep)
        show_json({"tour": output.getvalue().splitlines(), "seconds": round(time.monotonic() - started, 1)})
        return
    _show_tour(app, keep)
    _say(f"That took {time.monotonic() - started:.1f} s. Where to go next:")
    click.echo(
        "  jidomem init                        create a memory for the current repository\n"
        "  jidomem init --from adr             import the decisions it has\n"
        '  jidomem remember "..."              record one memory\n'
        "  jidomem ask                         list the named queries\n"
        "  docs/intents.md, docs/conflicts.md  fields of intents, and conflicts"
    )


def _show_tour(app: App, keep: Path | None) -> None:
    """Run the tour in *keep*, or in a temporary folder."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _tour(keep.resolve())
        app.info(f"the root stays in {keep}")
    else:
        with tempfile.TemporaryDirectory(prefix="jidomem-demo-") as folder:
            _tour(Path(folder))


def _tour(folder: Path) -> None:
    with chdir(folder):
        _say("A memory root is a folder; memories are stored in it as Turtle, one file a commit.")
        _run("init", "--project", "demo")
        _decisions()
        _kinds()
        _refusal()
        _conflict()
        _task_and_error()
        _say("The playbook answers by name; each answer is a table, JSON, CSV or Markdown.")
        for name in ("conventions", "open-tasks", "risks", "recent-lessons"):
            _run("ask", name, "--limit", "4")
        _say("check validates the memory, as CI does; verify reads every byte of the journal.")
        _run("check")
        _run("journal", "verify")


def _decisions() -> None:
    with jidomem.open(files.own_memory()) as own:
        rows = own.reader.list_active_architectural_decisions(own.project)
        iris = [row["decision"] for row in rows]
        iris += [row["conv"] for row in own.reader.list_conventions(own.project)]
        intents = [own.writer.restated(own.project, iri) for iri in iris]
    for intent in intents:
        intent |= {"applies_to_project": "demo"}
    _say(f"Real decisions first: the {len(rows)} jidomem was built on and its conventions, as intents, one a line.")
    _write("decisions.jsonl", intents)
    _run("submit", "decisions.jsonl", lines=3)


def _kinds() -> None:
    _say("Then one memory of every other kind.")
    common = {"applies_to_project": "demo", "asserted_by": "ana", "asserted_in": "monday", "confidence": "high"}
    _write("kinds.jsonl", [{**kind, **common} for kind in DEMO_INTENTS])
    _run("submit", "kinds.jsonl", lines=3)


def _refusal() -> None:
    _say("An error names the field, the rule and, where possible, the corrected intent.")
    wrong = {
        "type": "fcat",
        "summary": "Oxigraph loads 415,000 triples a second",
        "applies_to_project": "demo",
        "asserted_by": "ana",
        "asserted_in": "monday",
        "confidance": "hihg",
    }
    _write("wrong.json", [wrong])
    _run("submit", "wrong.json", expect=3)
    answer = json.loads(_run("submit", "--json", "wrong.json", expect=3, quiet=True))
    _say("The corrected intent is accepted:")
    _write("fixed.json", [answer["fixed_intent"]])
    _run("submit", "fixed.json")


def _conflict() -> None:
    _say("Two decisions on one topic cannot both be active. The error lists the ways to resolve it.")
    words = ["remember", "Use QLever as the index", "--type", "architectural_decision", "--topic", "index engine"]
    words += ["--rationale", "it answers large joins faster", "--agent", "ben"]
    _run(*words, expect=5)
    before = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    old = json.loads(_run("ask", "active-decisions", "--json", quiet=True))["rows"]
    (replaced,) = [row["decision"] for row in old if row["summary"] == "Use Oxigraph as the index"]
    _run(*words, "--supersedes", replaced[-8:])
    _say("Nothing was overwritten: now, and as it was a moment ago.")
    for moment in ([], ["--as-of", before]):
        _run("ask", "decisions", "-v", *moment, only="as the index")


def _task_and_error() -> None:
    _say("A change of state is a new memory that supersedes the old one: a task planned, started, completed.")
    task = _run("remember", "Measure QLever beside Oxigraph", "--type", "task", "--assigned-to", "ben").strip()
    task = _run("edit", task[-8:], "--set", "status=InProgress", "--reason", "the machine is free").strip()
    _run("ask", "tasks")
    _run("edit", task[-8:], "--set", "status=Completed", "--reason", "measured: slower to load")
    _say("An error, its resolution, and the lesson.")
    error = _run("remember", "QLever cannot be fed commit by commit", "--type", "error", "--severity", "high").strip()
    _run("ask", "errors")
    _run("edit", error[-8:], "--set", "status=Resolved", "--reason", "feed it in batches")
    _run("ask", "errors")
    _run("remember", "Ask how an engine is fed before how it answers", "--type", "lesson", "--evidence", error)


def _run(*words: str, expect: int = 0, lines: int | None = None, only: str = "", quiet: bool = False) -> str:
    """Run one command as a user would, show it and its output, and return its standard output."""
    from jidomem_cli.main import cli

    data, shown = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(_Both(data, shown)), redirect_stderr(shown):
            cli.main(list(words))
    except SystemExit as end:
        if end.code != expect:
            click.echo(shown.getvalue(), err=True)
            raise click.ClickException(f"the tour went wrong: exit {end.code}, not {expect}") from end
    if not quiet:
        _show(words, [line for line in shown.getvalue().splitlines() if only in line], only, lines)
    return data.getvalue()


def _show(words: Sequence[str], printed: list[str], only: str, lines: int | None) -> None:
    """Print a command and its output; of long output the first and the last lines."""
    click.secho(f"$ jidomem {shlex.join(words)}{f' | grep {only!r}' if only else ''}", bold=True)
    left_out = len(printed) - lines - 1 if lines is not None else 0
    for number, line in enumerate(printed):
        if left_out <= 0 or number < len(printed) - 1 - left_out or number == len(printed) - 1:
            click.echo(line)
        elif number == len(printed) - 2:
            click.echo(f"... {left_out} more")


class _Both(io.StringIO):
    """A text stream that writes to two others."""

    def __init__(self, *places: io.StringIO) -> None:
        super().__init__()
        self._places = places

    def write(self, text: str) -> int:
        """Write *text* to each place."""
        for place in self._places:
            place.write(text)
        return len(text)


def _say(text: str) -> None:
    click.secho(f"\n{text}", fg="cyan")


def _write(name: str, intents: list[Any]) -> None:
    Path(name).write_text("".join(json.dumps(intent, ensure_ascii=False) + "\n" for intent in intents), "utf-8")
