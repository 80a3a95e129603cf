"""The application object, the shared options and the classes of all commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from inspect import cleandoc
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

    from jidomem import Jidomem
    from jidomem.journal.journal import Stream
    from jidomem.runtime.settings import Settings

T = TypeVar("T")

ROWS = ("table", "json", "jsonl", "csv", "tsv", "md")
#: The formats for people, and the rows that a paged list has in them by default.
READ, LISTED = ("table", "md"), 50

#: The seconds in which a recall computes vectors before it answers: a short process has no background thread.
EMBEDS_FOR = 1.0
#: The seconds for which the receipt of a command waits for similar memories: the embedder is loaded first.
SIMILAR_WITHIN = 10.0
#: The most damaged files that other commands warn of.
_WARNINGS = 20
#: The placeholder for a reason in commands to paste.
REASON = '"..."'
_FIRST_WRITE = "the first write makes it"
_PLACEHOLDERS = ("...", "…", "TEXT")
_BLANKS = {ord(sign): " " for sign in "\t\n\r"}


def clean(text: str) -> str:
    """Return *text* on one line with control and invisible characters escaped: texts and file names are untrusted."""
    if text.isascii() and text.isprintable():
        return text
    from jidomem.base.words import escape_invisible  # the help of a command loads nothing

    return escape_invisible(text.translate(_BLANKS))


def _new_root(root: Path) -> str:
    from shlex import quote

    return f"correct the path, or mount its disk; for a new root there: jidomem init --root {quote(str(root))}"


def _no_root(settings: Settings) -> str:
    return f"there is no memory root at {settings.root} ({settings.found})"


@dataclass(slots=True)
class App:
    """The shared options of one run, the memory they open, and the messages on standard error.

    With `logs_json` each message is a line of JSON, as in the log of a server.
    """

    root: str | None = None
    project: str | None = None
    as_of: str | None = None
    valid_at: str | None = None
    json: bool = False
    no_color: bool = False
    quiet: bool = False
    verbose: bool = False
    agent: str | None = None
    session: str | None = None
    wait: float = 10.0
    index: str | None = None
    limit: int | None = None
    cursor: str | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    creates_project: bool = False
    logs_json: bool = False

    def open(self, *, stays: bool = False, makes_root: bool | None = None) -> Jidomem:
        """Return the memory; it is closed when the command ends.

        The first write creates its root: a shared one is created here, by a command that writes, unless it *stays*, or
        as *makes_root* decides; else raises NotFound. With *stays* vectors are computed in the background, else before
        the answer.
        """
        import jidomem

        context = click.get_current_context(silent=True)
        writes = context is not None and isinstance(context.command, Command) and context.command.is_writing
        self.refuse_missing_address(makes_root=(writes and not stays) if makes_root is None else makes_root)
        memory = jidomem.open(
            self.root, project=self.project, agent=self.agent, session=self.session, wait=self.wait, index=self.index
        )
        memory.expected_project = None  # a project that a command names has memories
        memory.embeds_for = None if stays else EMBEDS_FOR
        if not stays:
            memory.similar_within = SIMILAR_WITHIN
        elif not memory.place.is_shared:
            memory.settings.claim(memory.project)
            for stream in memory.journal.streams():
                memory.journal.head(stream)  # a server notices if they vanish before its first request
        if context:
            context.call_on_close(memory.close)  # closing it explicitly saves a second with a store on disk
            if not stays:
                self._warn_of_absence(memory.settings)
            if writes and not stays and not self.creates_project:
                self._refuse_misspelt(memory.settings, memory.projects)
                self._check_new_root(memory.settings)
        return memory

    def refuse_missing_address(self, *, makes_root: bool = False) -> None:
        """Raise NotFound if the root is a shared one that does not exist; only warn if the caller *makes_root*."""
        from jidomem.runtime.location import missing_root

        if (absent := missing_root(self.root, self.wait)) is None:
            return
        if not makes_root:
            raise absent
        if not self.creates_project:
            self.warn(f"{absent.detail}: {_FIRST_WRITE}")

    def _warn_of_absence(self, settings: Settings) -> None:
        """Raise Failed if this checkout lacks the memory of the repository; warn if the user's own is used instead."""
        from jidomem.runtime.settings import OWN, absence

        absent = absence(settings.root, settings.found) if settings.address is None else None
        if absent is not None and (settings.found != OWN or not settings.root.is_dir()):
            raise absent
        if absent is not None:
            self.warn(f"{absent.detail}, so your own is used; {absent.hint}")

    def _check_new_root(self, settings: Settings, *, serves: bool = False) -> None:
        """Warn of a named root that a write makes; raise NotFound for one that is misspelt, or that a server lacks.

        A server is started by a unit or a container, where nobody reads a warning: its disk may not be mounted.
        """
        from jidomem.errors import MISSPELT, NotFound, nearest_names
        from jidomem.runtime.settings import CONFIG, NAMED

        root = settings.root
        if settings.found not in NAMED or settings.address is not None or root.is_dir():
            return
        beside = [path.parent.name for path in root.parent.glob(f"*/{CONFIG}")]
        near = nearest_names(root.name, beside, likeness=MISSPELT)
        if near or serves:
            meant = f"did you mean {root.parent / near[0]}? " if near else ""
            raise NotFound(_no_root(settings), hint=f"{meant}{_new_root(root)}")
        self.warn(f"{_no_root(settings)}: {_FIRST_WRITE}")

    def _refuse_misspelt(self, settings: Settings, projects: Callable[[], Sequence[str]]) -> None:
        """Raise NotFound if a project is named that the root lacks, and that is spelled like one of its *projects*."""
        from shlex import quote

        from jidomem.errors import MISSPELT, NotFound, nearest_names
        from jidomem.runtime.settings import FOLDER

        given, root = settings.requested, settings.root
        can_create = settings.address is not None or root.name == FOLDER
        if not given or not can_create or given in (known := projects()):
            return
        if near := nearest_names(given, known, likeness=MISSPELT):
            place = f" {quote(str(root.parent))}" if settings.address is None else ""
            raise NotFound(
                f"no project {given!r} in {settings.place}",
                hint=f"did you mean --project {near[0]}? For a new project: jidomem init{place} --project {given}",
                code="unknown_project",
            )

    def warn_of_new(
        self, settings: Settings, projects: Callable[[], Sequence[str]], *, makes_root: bool = False
    ) -> None:
        """Warn of a root or project that the first write to a server would make, and of a project that none named.

        Raises NotFound for a misspelt project, and for a named root that does not exist unless the server *makes_root*.
        """
        from jidomem.runtime.settings import is_root

        self._refuse_misspelt(settings, projects)
        if not makes_root:
            self._check_new_root(settings, serves=True)
        if self.json:
            return
        if settings.address is None and not is_root(settings.root):
            self.warn(f"{_no_root(settings)}: {_FIRST_WRITE}")
        elif settings.requested and settings.requested not in (known := projects()):
            there = f"; there is {', '.join(known)}" if known else ""
            self.warn(f"no project {settings.requested!r} in {settings.place}: {_FIRST_WRITE}{there}")
        elif settings.address and not (settings.requested or settings.configured):
            from shlex import quote

            project, command = settings.project, f"jidomem init --root {quote(settings.place)} --project"
            self.warn(f"the root names no project: here it is {project}, by the folder; for all: {command} {project}")

    def refuse_missing(self, settings: Settings) -> None:
        """Raise NotFound if there is no root, and Failed `memory_missing` if only this checkout lacks it."""
        from jidomem.errors import NotFound
        from jidomem.runtime.settings import OWN, absence

        if settings.address is None and (absent := absence(settings.root, settings.found)) is not None:
            raise absent
        if settings.address is not None or settings.root.is_dir():
            return
        if settings.found == OWN:
            raise NotFound(
                f"there is no memory in this folder or above it, and your own, {settings.root}, is empty",
                hint='create one in this folder: jidomem init; or write to your own: jidomem remember "TEXT"',
            )
        raise NotFound(_no_root(settings), hint=_new_root(settings.root))

    def read(self, *, warn_of_damage: bool = True) -> Jidomem:
        """Return the memory to read from; with *warn_of_damage*, warn of each damage of its journal.

        Raises NotFound when there is no root: reading creates none.
        """
        memory = self.open(makes_root=False)
        self.refuse_missing(memory.settings)
        if not warn_of_damage:
            return memory
        if memory.project in memory.projects():
            memory.catch_up(memory.project)  # reading a file detects its damage
        damaged = memory.damage(memory.project)
        for damage in damaged[:_WARNINGS]:
            self.warn(f"{damage.code}: {damage.detail}")
        if len(damaged) > _WARNINGS:
            self.warn(f"{len(damaged) - _WARNINGS:,} more damaged files: jidomem journal verify lists them")
        return memory

    def streams(self, memory: Jidomem) -> list[Stream]:
        """Return the streams of every project, or of --project; raises NotFound for an unknown project."""
        if self.project is not None:
            memory.catch_up(self.project)
        return [stream for stream in memory.journal.streams() if self.project in (None, stream.project)]

    def info(self, text: str) -> None:
        """Write a message to standard error, unless --quiet is given."""
        if self.quiet:
            return
        text = self._in_place(text)
        if self.logs_json:
            self.log("info", "message", detail=text)
        else:
            click.echo("\n".join(map(clean, text.split("\n"))), err=True)

    def warn(self, text: str) -> None:
        """Write a warning to standard error, also with --quiet."""
        text = self._in_place(text)
        if self.logs_json:
            self.log("warning", "message", detail=text)
            return
        click.echo(f"{self.styled('warning:', 'yellow')} {clean(text)}", err=True)

    def _in_place(self, text: str) -> str:
        if not (self.root or self.project or self.agent):
            return text
        from jidomem_cli.errors import in_place

        return in_place(text, self)

    def progress(self, label: str, length: int = 1, **form: Any) -> AbstractContextManager[Any]:
        """Return a progress bar on standard error; it is not shown with --quiet, or if that is no terminal."""
        file = sys.stderr if not self.quiet and sys.stderr.isatty() else StringIO()
        return click.progressbar(length=length, label=label, file=file, **form)

    def log(self, level: str, event: str, **fields: str) -> None:
        """Write one line of JSON to standard error."""
        from time import time

        from jidomem.serve.log import as_json

        click.echo(as_json({"time": time(), "level": level, "event": event, **fields}), err=True, nl=False)

    def styled(self, text: str, color: str) -> str:
        """Return *text* for standard error, in colour if that is a terminal with colours."""
        return click.style(text, fg=color, bold=True) if self.supports_color(sys.stderr) else text

    @property
    def form(self) -> str:
        """Return the requested format: that of --format, JSON with --json, else a table."""
        return self.format or ("json" if self.json else "table")

    @property
    def rows(self) -> int | None:
        """Return --limit; without it, that of a list for people, and none of data."""
        return LISTED if self.limit is None and self.form in READ else self.limit

    def first(self, items: Sequence[T], most: int) -> tuple[Sequence[T], int]:
        """Return the first *most* of *items* and the number of the others; all of them with --verbose."""
        return (items, 0) if self.verbose else (items[:most], max(len(items) - most, 0))

    @property
    def colors(self) -> bool:
        """Return whether neither --no-color nor $NO_COLOR is given."""
        return not self.no_color and not os.environ.get("NO_COLOR")

    def supports_color(self, stream: TextIO) -> bool:
        """Return whether *stream* is a terminal that may have colours."""
        return self.colors and stream.isatty()


def _keep(context: click.Context, param: click.Parameter, value: Any) -> None:
    _refuse_empty(param, value)
    if value != value:
        raise click.BadParameter("not a number", context, param)
    if value is not None and value is not False and param.name:
        setattr(context.ensure_object(App), param.name, printed_end(value) if param.name == "as_of" else value)


def printed_end(moment: str) -> str:
    """Return the end of the second for a *moment* as tables print it, which cut the rest; any other text unchanged.

    >>> printed_end("2026-11-29 13:28:59Z"), printed_end("2026-11-29T13:28:59Z")
    ('2026-11-29 13:28:59.999999Z', '2026-11-29T13:28:59Z')
    """
    is_printed = len(moment) == len("2026-11-29 13:28:59Z") and moment[10] == " " and moment[-1] == "Z"
    return f"{moment[:-1]}.999999Z" if is_printed else moment


def _refuse_empty(param: click.Parameter, value: Any) -> None:
    """Raise InvalidRequest for an option or a path that is blank, as an unset shell variable is; a PATTERN may be."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    blanks = "" if getattr(param, "metavar", None) == "PATTERN" else None
    if any(isinstance(each, str) and not each.strip(blanks) for each in values):
        from jidomem.errors import InvalidRequest

        name = max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name.strip("[].")
        raise InvalidRequest(
            f"{name} is empty", hint=f"give {name} a value" + ", or leave it out" * (not param.required)
        )


def _option(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_keep, **attributes)


def shared_options(*, hidden: bool) -> list[click.Parameter]:
    """Return the options that are allowed before and after any command."""
    return [
        _option("--root", metavar="ROOT", hidden=hidden, help="Memory root: a folder or an address."),
        _option("--project", metavar="ID", hidden=hidden, help="Project."),
        _option("--index", metavar="URL", hidden=hidden, help="SPARQL store that answers: sparql+http://..."),
        _option("--as-of", metavar="MOMENT", hidden=hidden, help="State of the memory at this moment."),
        _option("--valid-at", metavar="MOMENT", hidden=hidden, help="Only memories that are valid at this moment."),
        _option("--json", is_flag=True, hidden=hidden, help="Answers and errors as JSON on standard output."),
        _option("--no-color", is_flag=True, hidden=hidden, help="No colours (also: $NO_COLOR)."),
        _option("-q", "--quiet", is_flag=True, hidden=hidden, help="Only errors and warnings on standard error."),
        _option("-v", "--verbose", is_flag=True, hidden=hidden, help="More details, and the traceback of a bug."),
    ]  # fmt: skip


def reject_placeholder(_: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the value of an option; raises InvalidRequest for the placeholder of a command to paste."""
    for text in value if isinstance(value, tuple) else (value,):
        if text is not None and text.strip() in _PLACEHOLDERS:
            from jidomem.errors import InvalidRequest

            name = (param.name or "value").replace("_", " ")
            raise InvalidRequest(f"{text!r} is a placeholder of the {name}", hint=f"give the {name} in its place")
    return value


#: Options that the class `Command` adds to commands that write, and to commands with pages.
_WRITING = {
    "agent": _option(
        "--agent", metavar="NAME", help="Acting agent (default: $JIDOMEM_AGENT, then your user name)."
    ),
    "session": _option(
        "--session", metavar="NAME", help="Session (default: $JIDOMEM_SESSION, then a daily one)."
    ),
    "client agent": _option(
        "--agent", metavar="NAME", help="Acting agent (default: $JIDOMEM_AGENT, then the name of the client)."
    ),
    "wait": _option(
        "--wait", type=click.FloatRange(0, 86_400), metavar="SECONDS",
        help="Maximum time to wait for another writer (default: 10).",
    ),
}  # fmt: skip
_WRITING["server agent"] = _WRITING["agent"]  # of a command that writes only when it is asked to
_LIMIT_HELP = "Maximum number of rows."
_PAGED = (
    _option("--limit", type=click.IntRange(1), metavar="N",
            help=f"Maximum number of rows (default: {LISTED} in tables, else all)."),
    _option("--cursor", metavar="CURSOR", help="Continue after the page that returned this cursor."),
)  # fmt: skip

# Options that several commands declare, each with one meaning.
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show the outcome and write nothing; a receipt then has no commit."
)
include_inactive_option = click.option(
    "--include-inactive", is_flag=True,
    help="Include memories that are not active: superseded, pending, rejected, expired.",
)  # fmt: skip
about_option = click.option(
    "--about", multiple=True, metavar="PATH", help="File, folder, pattern or module it is about; repeatable."
)
role_option = click.option("--role", metavar="ROLE", help="Role of the agent.")
budget_option = click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="Maximum length in tokens.")
timestamp_option = click.option("--timestamp", metavar="MOMENT", help="Date and time, ISO 8601 (default: now).")
id_option = click.option("--id", "id_", metavar="ID", help="Id (default: a new one).")
host_option = click.option("--host", metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1).")
off_option = click.option("--off", is_flag=True, help="Revoke it instead.")


def reason_option(*, required: bool = False) -> Callable[[Any], Any]:
    """Return the decorator for the reason of a change."""
    return click.option(
        "--reason", metavar="TEXT", required=required, callback=reject_placeholder,
        help="Reason, recorded with the change.",
    )  # fmt: skip


def limit_option(*, default: int | None = None, most: int | None = None) -> Callable[[Any], Any]:
    """Return the decorator for the number of rows of a command without pages."""
    number = click.IntRange(1, most)
    return click.option("--limit", type=number, default=default, metavar="N", help=_LIMIT_HELP)


def port_option(default: int) -> Callable[[Any], Any]:
    """Return the decorator for the port of a server."""
    text = f"Port to listen on; 0 picks a free one (default: {default})."
    return click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help=text)


def hook_option(clients: Sequence[str]) -> Callable[[Any], Any]:
    """Return the decorator for a command that a client calls as a hook."""
    text = "Answer a hook of this client, which writes its event to standard input."
    return click.option("--hook", type=click.Choice(clients), help=text)


def _help(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return *attributes* with the examples of the help text marked to keep their lines."""
    text = cleandoc(attributes.get("help") or "")
    return {**attributes, "help": text.replace("\nExamples:\n", "\n\b\nExamples:\n")}


class Command(click.Command):
    """A command: its output *formats*, whether it is *paged*, its options for *writes*, and the moments it takes."""

    def __init__(
        self,
        *args: Any,
        formats: Sequence[str] = (),
        paged: bool = False,
        writes: Iterable[str] = (),
        as_of: bool = False,
        valid_at: bool = False,
        **attributes: Any,
    ) -> None:
        own = list(attributes.pop("params", None) or ())
        if paged:
            own += _PAGED
        if formats:
            text = f"Output format (default: {formats[0]})."
            own.append(_option("--format", type=click.Choice(formats), help=text, is_eager=True))  # also of an error
        own += [_WRITING[name] for name in writes]
        taken = {name for option in own for name in option.opts}
        shared = [option for option in shared_options(hidden=True) if not taken.intersection(option.opts)]
        super().__init__(*args, **{**_help(attributes), "params": [*own, *shared]})
        self.takes = {"as_of": as_of, "valid_at": valid_at}
        self.is_writing = not {"agent", "client agent"}.isdisjoint(writes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raises InvalidRequest for an option or a path that is empty."""
        words = [*args]
        rest = super().parse_args(ctx, args)
        given, _, _ = self.make_parser(ctx).parse_args(args=words)  # before an empty path becomes the present folder
        for param in self.params:
            is_path = isinstance(param.type, click.Path) or "PATH" in param.human_readable_name
            if is_path or isinstance(param, click.Option):
                _refuse_empty(param, given.get(str(param.name)))
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; raises InvalidRequest for a moment option that it does not take."""
        app = ctx.ensure_object(App)
        options = [p for p in self.params if isinstance(p, click.Option) and p.name]
        app.options = {str(option.name): max(option.opts, key=len) for option in options}
        arguments = [p for p in self.params if isinstance(p, click.Argument)]
        app.options |= {str(each.name): each.human_readable_name for each in arguments}
        if not app.colors:
            ctx.color = False
        for name, is_taken in self.takes.items():
            if getattr(app, name) is not None and not is_taken:
                from jidomem.errors import InvalidRequest

                moment = f"--{name.replace('_', '-')}"
                raise InvalidRequest(f"{ctx.command_path} does not take {moment}", hint=f"leave out {moment}")
        return super().invoke(ctx)


class CommandGroup(click.Group):
    """A group of commands; an unknown command is refused with the nearest one."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        own = attributes.pop("params", None) or shared_options(hidden=True)
        super().__init__(*args, **{**_help(attributes), "params": own, "no_args_is_help": False})
        self.subcommand_metavar = "COMMAND [ARGUMENTS]..."

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that *args* begin with; raises InvalidRequest with the nearest one."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from jidomem_cli.errors import unknown_command

            raise unknown_command(args[0], self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


pass_app = click.make_pass_decorator(App, ensure=True)
