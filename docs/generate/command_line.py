"""docs/reference/command-line.md, written from the commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from jidomem.errors import CODES
from jidomem_cli.main import COMMANDS, cli

_INTRODUCTION = """\
# The command line

Data goes to standard output, messages to standard error, so that `jidomem ask tasks --format csv > tasks.csv` holds
rows and nothing else. This page is generated from the commands; a test keeps the two equal and runs every example.

**Where memory is.** `--root`, else `$JIDOMEM_ROOT`, else the nearest `.jidomem/` in the working directory or above it,
else your own data directory. The project is `--project`, else `$JIDOMEM_PROJECT`, else the one in the root's
`config.toml`, else the name of the repository's folder. The author is `--agent`, else `$JIDOMEM_AGENT`, else your user
name.

**Answers.** On a terminal a table is drawn; into a pipe the same table goes as plain columns, without colours and
lines. There, and in Markdown, memories show as short ids, terms and names without their namespace. `csv`, `tsv`,
`json` and `jsonl` give whole IRIs, and moments as ISO 8601 in UTC: in a row of a named query each memory, agent,
session, class and term of the ontology is its IRI, and only the computed `status` of a memory (`active`, `superseded`,
...) is a word. Commands that answer with fields of an intent, such as `recall` and `governing`, give their values as an
intent takes them. `--json` answers with one object, or one object a
line where several intents are submitted; rows come as `{"rows": [...], "cursor": ...}`. `$NO_COLOR` and `--no-color`
turn colours off. The cursor of the next page is in the object, or on standard error.

**Names of memories.** A memory is named by its IRI, or by 4 or more characters of its id that name one memory of the
project: the first or last ones of the whole id, or the first ones of the short id that tables show.

**Errors.** Messages begin with `error:`, list the broken rules with the valid values, and end with `hint:`. With
`--json` the error is one object on standard output with `code`, `detail` and `hint`, and `violations`, `fixed_intent`,
`conflicts` or `position` where there are any; only an error has a `code`. Warnings, such as `journal_damaged` while the
intact commits are read, stay on standard error.

| exit code | means |
|---|---|
"""
_EXITS = {0: "done", 130: "interrupted", 141: "the reader of the output closed the pipe"}


def markdown() -> str:
    """Return the reference of every command."""
    exits = {**_EXITS, **{code: ", ".join(f"`{name}`" for name in _codes(code)) for code in (1, 2, 3, 4, 5, 6, 7)}}
    exits[1] += ", and anything unforeseen (`internal_error`)"
    table = "".join(f"| {code} | {exits[code]} |\n" for code in sorted(exits))
    context = click.Context(cli, info_name="jidomem")
    everywhere = "\n## Global options\n\nThey stand before a command or after it.\n\n" + _options(cli)
    commands = "".join(text for name in COMMANDS for text in _sections(cli.get_command(context, name), name, context))
    return f"{_INTRODUCTION}{table}{everywhere}{commands}"


def _codes(exit_code: int) -> list[str]:
    return [name for name, (_, code) in CODES.items() if code == exit_code]


def _sections(command: click.Command | None, name: str, parent: click.Context) -> Iterator[str]:
    """Yield the section of a command, then those of the commands below it."""
    assert command is not None, name
    context = click.Context(command, info_name=name, parent=parent)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    below = [(each, command.get_command(context, each)) for each in names] if isinstance(command, click.Group) else []
    text, _, examples = (command.help or "").replace("\b\n", "").partition("Examples:\n")
    yield f"\n{'#' * context.command_path.count(' ')}# {context.command_path}\n\n{text.strip()}\n"
    if not below:
        yield f"\n    {' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n"
        yield f"\n{options}" if (options := _options(command)) else ""
    if examples:
        yield f"\n```sh\n{_dedented(examples)}```\n"
    for sub, each in below:
        yield from _sections(each, sub, context)


def _options(command: click.Command) -> str:
    shown = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    if not shown:
        return ""
    rows = "".join(f"| `{_flags(option)}` | {(option.help or '').replace('|', chr(92) + '|')} |\n" for option in shown)
    return f"| option | |\n|---|---|\n{rows}"


def _flags(option: click.Option) -> str:
    metavar = "" if option.is_flag else " " + option.make_metavar(click.Context(cli)).strip("[]").replace("|", ", ")
    return ", ".join(option.opts) + metavar


def _dedented(examples: str) -> str:
    return "".join(f"{line.strip()}\n" for line in examples.strip().splitlines())


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    return {"reference/command-line.md": markdown()}
