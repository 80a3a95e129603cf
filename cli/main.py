"""The command `jidomem`: one family of verbs a file, loaded when it is used, each doing what one function does."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from jidomem_cli.options import Door, Verbs, everywhere

#: verb -> (where it is, what it does in a line): `jidomem --help` is printed from here, and loads none of them.
VERBS: Mapping[str, tuple[str, str]] = {
    "init": ("init:init", "Make a memory root in a folder."),
    "demo": ("demo:demo", "Show what memory does, in a temporary root."),
    "remember": ("submit:remember", "Keep one thing; what is missing is filled in."),
    "submit": ("submit:submit", "Submit intents as JSON: one, an array, or one a line."),
    "recall": ("recall:recall", "Find memories by words."),
    "ask": ("ask:ask", "Ask a named question; without a name, list them."),
    "sparql": ("ask:sparql", "Ask in SPARQL."),
    "show": ("show:show", "Show one memory."),
    "history": ("show:history", "Tell what became of one memory."),
    "why": ("show:why", "Explain one memory: who, when, on what grounds."),
    "log": ("show:log", "List the commits, newest first."),
    "diff": ("show:diff", "Tell what changed between two moments."),
    "memory": ("ask:memory", "List decisions, tasks, errors and the like."),
    "briefing": ("guard:briefing", "Tell what an agent should know first."),
    "guard": ("guard:guard", "Tell what governs files before an edit, and stop one that breaks a strict rule."),
    "governing": ("guard:governing", "List what governs files."),
    "revise": ("submit:revise", "Supersede, withdraw or change one memory."),
    "rollback": ("journal:rollback", "Take the memory back to what was active at a moment."),
    "policy": ("access:policy", "Say who may assert, propose or do neither."),
    "session": ("agents:session", "Open, move and close work sessions."),
    "conversation": ("agents:conversation", "Record what is said in a session, and read it back."),
    "working": ("agents:working", "Show and change what an agent holds now."),
    "os": ("memory_os:memory_os", "Keep what an agent talked about, and find what it knows of it."),
    "conflicts": ("review:conflicts", "List what disagrees, and what settles it."),
    "review": ("review:review", "Settle what waits for a curator."),
    "check": ("check:check", "Check the memory as CI does."),
    "ontology": ("ontology:ontology", "Look up terms, and judge those of your own."),
    "verify": ("journal:verify", "Read every byte of the journal and verify it."),
    "root": ("root:root", "Put the files of a shared root there, or fetch them."),
    "replay": ("journal:replay", "Compare the journal, replayed, with what is served."),
    "redact": ("journal:redact", "Take a secret out of the journal for good."),
    "pack": ("journal:pack", "Seal many commit files into a few packs."),
    "migrate": ("root:migrate", "Bring a whole root to another place."),
    "backup": ("root:backup", "Keep a whole root in one file."),
    "restore": ("root:restore", "Make a root of a backup."),
    "export": ("exchange:export", "Write the memory out."),
    "import": ("exchange:import_", "Take in records kept elsewhere."),
    "serve": ("serve:serve", "Serve the memory over HTTP."),
    "trust": ("access:trust_root", "Let a root say where it is served."),
    "token": ("access:token", "Give out and take back tokens for serve."),
    "setup": ("hooks:setup", "Name the memory to Claude Code, Cursor, Codex, VS Code or git."),
    "mcp": ("serve:mcp", "Serve the memory to agents over MCP."),
    "status": ("status:status", "Say what is where, and how much of it."),
    "doctor": ("status:doctor", "Look at all that may be wrong, and say what to do."),
    "reindex": ("journal:reindex", "Build what is derived from the journal anew."),
    "completion": ("hooks:completion", "Print the completion script of a shell."),
}
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports of a command that wrote to a reader who had left


class VerbGroup(Verbs):
    """The verbs of the table, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of that name, None where there is none."""
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(_loaded(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; a reader of its output who has left ends it without a word."""
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
        door = Door()
        extra.pop("standalone_mode", None)
        try:
            words = [_utf8(word) for word in given] or ["--help"]
            code = super().main(words, prog_name or "jidomem", standalone_mode=False, obj=door, **extra)
        except (click.exceptions.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            code = INTERRUPTED
        except Exception as error:
            from jidomem_cli.errors import print_error

            options = given[: given.index("--")] if "--" in given else given
            door.json = door.json or "--json" in options
            code = print_error(error, door)
        sys.exit(code or 0)


@click.group(cls=VerbGroup, params=everywhere(hidden=False), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "--version", package_name="jidomem", message="%(prog)s %(version)s")
def cli() -> None:
    """The governed memory of AI agents.

    Data goes to standard output, words about data to standard error. The options below stand before or after a verb;
    `jidomem VERB --help` shows its own, with an example.
    """


def main() -> None:
    """Run the command line as a process: what is not a terminal gets UTF-8, and a closed stream is an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w":
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        cli.main()
    finally:
        gc.freeze()  # what ends with the process anyway is not looked through once more, which takes 30 ms


def _loaded(module: str) -> ModuleType:
    """Return one of the modules here, loaded without looking for rubbish meanwhile: it makes hardly any."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"jidomem_cli.{module}")
    finally:
        if was_on:
            gc.enable()


def _utf8(word: str) -> str:
    """Return an argument as text, whatever the locale made of its bytes; raises UsageError where it is none."""
    if not any("\udc80" <= sign <= "\udcff" for sign in word):
        return word
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeError as error:
        raise click.UsageError(f"{word!a} is not UTF-8") from error
