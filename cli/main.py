"""The command `jidomem`: a table of commands, each loaded when called, each for one public function."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from jidomem_cli.options import App, CommandGroup, shared_options

Table = Mapping[str, tuple[str, str]]

#: command -> (module and attribute, help): `jidomem --help` prints this table and loads no command.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init:init", "Make a memory root in a folder."),
    "setup": ("setup:setup", "Connect Claude Code, Cursor, Codex, VS Code or git to the memory."),
    "remember": ("submit:remember", "Record one memory; omitted fields get defaults."),
    "submit": ("submit:submit", "Submit intents as JSON: one, an array, or one a line."),
    "edit": ("submit:edit", "Supersede, withdraw, confirm or change one memory."),
    "recall": ("recall:recall", "Find memories by words."),
    "ask": ("ask:ask", "Ask a named question, or in SPARQL; list the questions."),
    "show": ("show:show", "Show one memory, its history or its reasons."),
    "governing": ("ask:governing", "List the memories that govern files."),
    "review": ("review:review", "List and decide pending proposals and conflicts."),
    "check": ("check:check", "Check the memory against its rules, as CI does."),
    "guard": ("guard:guard", "Show the rules for files before an edit; stop a strict violation."),
    "ontology": ("ontology:ontology", "Look up terms; validate and propose your own."),
    "serve": ("serve:serve", "Serve the memory over HTTP."),
    "mcp": ("serve:mcp", "Serve the memory to agents over MCP."),
    "status": ("status:status", "Report the root, its projects and, with --doctor, what is wrong."),
    "journal": ("main:journal", "List, verify, restore, pack, redact and roll back commits."),
    "root": ("main:root", "Move, back up, import and export a whole memory."),
    "agent": ("main:agent", "Manage sessions, conversations and working memory of agents."),
    "access": ("main:access", "Manage write policy, tokens and trusted roots."),
    "demo": ("setup:demo", "Show the memory at work, in a temporary root."),
    "completion": ("setup:completion", "Print the completion script of a shell."),
}
#: Heading -> commands, as `jidomem --help` shows them; the rest are named below the list.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Begin": ("init", "setup"),
    "Write": ("remember", "submit", "edit"),
    "Ask": ("recall", "ask", "show", "governing"),
    "Review": ("review",),
    "Check": ("check", "guard", "ontology"),
    "Serve": ("serve", "mcp"),
    "Maintain": ("status", "journal", "root", "agent", "access"),
}
_EPILOG = """\
\b
Also: jidomem demo shows the memory at work in a temporary root,
      jidomem completion SHELL prints a completion script.
Help: jidomem COMMAND --help shows options and examples.
"""
INTERRUPTED = 130
BROKEN_PIPE = 141  # the exit code of a shell for a command whose reader closed the pipe


class LazyGroup(CommandGroup):
    """A group of commands from a *table*, each imported when it is called."""

    def __init__(self, *args: Any, table: Table, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(_load(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])


class TopGroup(LazyGroup):
    """The commands of `jidomem` itself, listed by purpose."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, a section for each purpose, with one width of the first column."""
        width = max(map(len, self.table))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self.table[name][1]) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe on standard output ends it without a message."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> None:  # type: ignore[override]
        """Run the command line and leave with the exit code of the error table."""
        given = list(sys.argv[1:] if args is None else args)
        app = App()
        extra.pop("standalone_mode", None)
        try:
            words = [_utf8(word) for word in given] or ["--help"]
            code = super().main(words, prog_name or "jidomem", standalone_mode=False, obj=app, **extra)
        except (click.exceptions.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            code = INTERRUPTED
        except Exception as error:
            from jidomem_cli.errors import print_error

            options = given[: given.index("--")] if "--" in given else given
            app.json = app.json or "--json" in options
            code = print_error(error, app)
        sys.exit(code or 0)


@click.group(
    cls=TopGroup,
    table=COMMANDS,
    params=shared_options(hidden=False),
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(None, "--version", package_name="jidomem", message="%(prog)s %(version)s")
def cli() -> None:
    """The governed memory of AI agents.

    Data goes to standard output, messages to standard error. The options below stand before or after a command.
    """


journal = LazyGroup(
    "journal",
    help="""List, compare, verify, pack, redact and roll back the commits of the journal.

    Examples:
      jidomem journal log --limit 10
      jidomem journal verify
    """,
    table={
        "log": ("show:log", "List commits, newest first."),
        "diff": ("show:diff", "List the memories that changed between two moments."),
        "verify": ("journal:verify", "Verify the digest of every commit."),
        "replay": ("journal:replay", "Replay the journal and compare it with what is served."),
        "pack": ("journal:pack", "Seal many commit files into a few packs."),
        "redact": ("journal:redact", "Remove a secret from the journal for good."),
        "restore": ("journal:restore", "Restore lost entries of a shared root from a copy."),
        "rollback": ("journal:rollback", "Restore the memories that were active at a moment."),
    },
)
root = LazyGroup(
    "root",
    help="""Move, back up, import and export a memory root, and manage the files of a shared one.

    Examples:
      jidomem root backup memory.tar
      jidomem root export -o memory.ttl
    """,
    table={
        "export": ("exchange:export", "Write the memory of a project to one file."),
        "import": ("exchange:import_", "Import records from files, other tools or an export."),
        "backup": ("root:backup", "Write a whole root to one archive."),
        "restore": ("root:restore", "Make a root from a backup."),
        "migrate": ("root:migrate", "Copy a whole root to another folder or server."),
        "reindex": ("root:reindex", "Rebuild the index from the journal."),
        "push": ("root:push", "Upload configuration, terms and rules to a shared root."),
        "pull": ("root:pull", "Download the files of a shared root."),
        "files": ("root:list_files", "List the files of a shared root."),
        "remove-files": ("root:remove", "Remove files from a shared root."),
    },
)
agent = LazyGroup(
    "agent",
    help="""Manage what belongs to one agent: work sessions, conversations, working memory, MemoryOS and briefings.

    Examples:
      jidomem agent briefing
      jidomem agent session list
    """,
    table={
        "session": ("agents:session", "Open, move and close work sessions."),
        "conversation": ("agents:conversation", "Record the turns of a session, and read them back."),
        "working": ("agents:working", "Show and change the working memory of an agent."),
        "memoryos": ("memory_os:memory_os", "Record and retrieve conversations with MemoryOS."),
        "briefing": ("ask:briefing", "Print the memories an agent needs first."),
    },
)
access = LazyGroup(
    "access",
    help="""Manage write policy, tokens of served memories, and trusted roots.

    Examples:
      jidomem access policy show
      jidomem access token list
    """,
    table={
        "policy": ("access:policy", "Set which agents may assert, propose or neither."),
        "token": ("access:token", "Issue and revoke tokens for jidomem serve."),
        "trust": ("access:trust_root", "Trust the configuration of a root."),
    },
)
GROUPS = (journal, root, agent, access)


def main() -> None:
    """Run the command line as a process: files and pipes get UTF-8, and a closed stream is replaced by an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w":
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        cli.main()
    finally:
        gc.freeze()  # skips the last garbage collection, which takes 30 ms


def _load(module: str) -> ModuleType:
    """Return one of the modules here, imported without garbage collection, which would find hardly anything."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"jidomem_cli.{module}")
    finally:
        if was_on:
            gc.enable()


def _utf8(word: str) -> str:
    """Return an argument as text, independent of the locale; raises UsageError if it is not UTF-8."""
    if not any("\udc80" <= sign <= "\udcff" for sign in word):
        return word
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeError as error:
        raise click.UsageError(f"{word!a} is not UTF-8") from error
