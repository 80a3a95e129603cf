"""What every verb shares: the options all of them take, the root they open, and where their words go."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from jidomem import Jidomem
    from jidomem.journal.journal import Stream

ROWS = ("table", "json", "jsonl", "csv", "tsv", "md")


#: Seconds for which a recall makes vectors before it answers: a process of a moment has no background.
EMBEDS_FOR = 1.0
#: How many damaged files are named where something else is asked for.
_WARNINGS = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def clean(text: str) -> str:
    """Return *text* without what could steer a terminal: others wrote it, or named a file so."""
    return _CONTROL.sub(lambda match: " " if match[0] in "\t\n\r" else ascii(match[0])[1:-1], text)


@dataclass(slots=True)
class App:
    """What was asked for on the command line, before the verb or after it, and the options that the verb takes."""

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

    def open(self, *, stays: bool = False) -> Jidomem:
        """Return the root, which a first write makes; it is closed when the verb is done.

        In one that *stays* open vectors are made in the background, else before what is asked is answered.
        """
        import jidomem

        memory = jidomem.open(
            self.root,
            project=self.project,
            agent=self.agent,
            session=self.session,
            wait=self.wait,
            index=self.index,
        )
        memory.embeds_for = None if stays else EMBEDS_FOR
        if context := click.get_current_context(silent=True):
            context.call_on_close(memory.close)  # a store on disk that is only dropped takes a second to end
        return memory

    def read(self, *, look: bool = True) -> Jidomem:
        """Return the root to read from, with a warning for each damage of its journal unless no *look* is taken at it.

        Raises NotFound when there is no root there: reading makes none.
        """
        from jidomem.errors import NotFound
        from jidomem.runtime.settings import OWN

        memory = self.open()
        if memory.settings.address is None and not memory.settings.root.is_dir():
            root, found = memory.settings.root, memory.settings.found
            if found == OWN:
                raise NotFound(
                    f"there is no memory in this folder or above it, and your own, {root}, is empty",
                    hint='make one in this folder with: jidomem init; or write to your own: jidomem remember "TEXT"',
                )
            leave_out = ", and leave out --root" if self.root is not None else ""
            raise NotFound(
                f"there is no memory root at {root} ({found})",
                hint=f"make one in this folder with: jidomem init{leave_out}",
            )
        if not look:
            return memory
        if memory.project in memory.projects():
            memory.catch_up(memory.project)  # what is damaged in a file shows when it is read
        damaged = memory.damage(memory.project)
        for damage in damaged[:_WARNINGS]:
            self.warn(f"{damage.code}: {damage.detail}")
        if len(damaged) > _WARNINGS:
            self.warn(f"{len(damaged) - _WARNINGS:,} more are damaged: jidomem journal verify lists them")
        return memory

    def streams(self, memory: Jidomem) -> list[Stream]:
        """Return the streams of every project, or of the one asked for; raises NotFound where there is none by it."""
        if self.project is not None:
            memory.catch_up(self.project)
        return [stream for stream in memory.journal.streams() if self.project in (None, stream.project)]

    def info(self, text: str) -> None:
        """Write words about data to standard error, unless they are not wanted."""
        if not self.quiet:
            click.echo("\n".join(map(clean, text.split("\n"))), err=True)

    def warn(self, text: str) -> None:
        """Write a warning to standard error, wanted or not."""
        click.echo(f"{self.styled('warning:', 'yellow')} {clean(text)}", err=True)

    def styled(self, text: str, color: str) -> str:
        """Return *text* for standard error, in colour where that is a terminal that may have it."""
        return click.style(text, fg=color, bold=True) if self.supports_color(sys.stderr) else text

    @property
    def colors(self) -> bool:
        """Return whether colours were not declined."""
        return not self.no_color and not os.environ.get("NO_COLOR")

    def supports_color(self, stream: TextIO) -> bool:
        """Return whether *stream* is a terminal that may have colours."""
        return self.colors and stream.isatty()


def _keep(context: click.Context, param: click.Parameter, value: Any) -> None:
    if value == "" or value != value:  # nothing, as an unset shell variable gives; or not a number
        raise click.BadParameter(f"{value!r} will not do", context, param)
    if value is not None and value is not False and param.name:
        setattr(context.ensure_object(App), param.name, value)


def _option(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_keep, **attributes)


def shared_options(*, hidden: bool) -> list[click.Parameter]:
    """Return the options that stand before any verb, and after it."""
    return [
        _option("--root", metavar="ROOT", hidden=hidden, help="The memory root: a folder or an address."),
        _option("--project", metavar="ID", hidden=hidden, help="The project."),
        _option("--index", metavar="URL", hidden=hidden, help="The SPARQL store that answers: sparql+http://..."),
        _option("--as-of", metavar="MOMENT", hidden=hidden, help="Answer with what was recorded by then."),
        _option("--valid-at", metavar="MOMENT", hidden=hidden, help="Leave out what does not hold in the world then."),
        _option("--json", is_flag=True, hidden=hidden, help="Answers and errors as JSON on standard output."),
        _option("--no-color", is_flag=True, hidden=hidden, help="No colours; $NO_COLOR says the same."),
        _option("-q", "--quiet", is_flag=True, hidden=hidden, help="No words but errors and warnings."),
        _option("-v", "--verbose", is_flag=True, hidden=hidden, help="More words, and the traceback of a bug."),
    ]  # fmt: skip


_SECONDS = click.FloatRange(0, 86_400)
_WRITING = {
    "agent": _option("--agent", metavar="NAME", help="Who asserts; else $JIDOMEM_AGENT, else your user name."),
    "session": _option("--session", metavar="NAME", help="The session; else $JIDOMEM_SESSION, else one a day."),
    "wait": _option("--wait", type=_SECONDS, metavar="SECONDS", help="How long to wait for another writer (10)."),
}
_PAGED = (
    _option("--limit", type=int, metavar="N", help="At most N rows."),
    _option("--cursor", metavar="CURSOR", help="Go on after the page that gave this cursor."),
)


def _help(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return *attributes* with the examples of the help text marked to keep their lines."""
    text = cleandoc(attributes.get("help") or "")
    return {**attributes, "help": text.replace("\nExamples:\n", "\n\b\nExamples:\n")}


class Command(click.Command):
    """A verb: *formats* it can print, whether it is *paged*, who *writes* with it, and which moments it honours."""

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
            own.append(_option("--format", type=click.Choice(formats), help="How to print; a table when not said."))
        own += [_WRITING[name] for name in writes]
        taken = {name for option in own for name in option.opts}
        shared = [option for option in shared_options(hidden=True) if not taken.intersection(option.opts)]
        super().__init__(*args, **{**_help(attributes), "params": [*own, *shared]})
        self.honours = {"as_of": as_of, "valid_at": valid_at}

    def invoke(self, ctx: click.Context) -> Any:
        """Do what the verb does; raises InvalidRequest for a moment it cannot honour."""
        app = ctx.ensure_object(App)
        app.options = {p.name: max(p.opts, key=len) for p in self.params if isinstance(p, click.Option) and p.name}
        if not app.colors:
            ctx.color = False
        for name, is_honoured in self.honours.items():
            if getattr(app, name) is not None and not is_honoured:
                from jidomem.errors import InvalidRequest

                option = f"--{name.replace('_', '-')}"
                raise InvalidRequest(f"{ctx.command_path} cannot honour {option}", hint=f"leave out {option}")
        return super().invoke(ctx)


class CommandGroup(click.Group):
    """A group of commands; an unknown one is refused with the nearest."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        own = attributes.pop("params", None) or shared_options(hidden=True)
        super().__init__(*args, **{**_help(attributes), "params": own, "no_args_is_help": False})
        self.subcommand_metavar = "COMMAND [ARGUMENTS]..."

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that *args* begin with; raises InvalidRequest naming the nearest one."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from jidomem_cli.errors import unknown_command

            raise unknown_command(args[0], self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


pass_app = click.make_pass_decorator(App, ensure=True)
