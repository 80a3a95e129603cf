"""docs/command-line.md, written from the verbs."""

from __future__ import annotations

from collections.abc import Iterator

import click

from jidomem.errors import CODES
from jidomem_cli.main import VERBS, cli

_INTRODUCTION = """\
# The command line

`jidomem` is a verb and what it is about. Data goes to standard output, words about data to standard error, so that
`jidomem memory tasks --format csv > tasks.csv` holds rows and nothing else. This page is written from the verbs; a
test holds the two equal, and runs every example.

**Where memory is.** `--root`, else `$JIDOMEM_ROOT`, else the nearest `.jidomem/` in the working directory or above it,
else your own data directory. The project is `--project`, else `$JIDOMEM_PROJECT`, else the one in the root's
`config.toml`, else the name of the repository's folder. Who asserts is `--agent`, else `$JIDOMEM_AGENT`, else your
user name.

**Answers.** On a terminal a table is drawn; into a pipe the same table goes as plain columns, without colours and
lines. There, and in Markdown, memories show as short ids, terms and names without their namespace. `csv`, `tsv`,
`json` and `jsonl` give IRIs whole and moments as ISO 8601 in UTC. `--json` answers with one object, or one object a
line where several things are submitted; rows come as `{"rows": [...], "cursor": ...}`. `$NO_COLOR` and `--no-color`
decline colours. Of a page that is not the last, the cursor of the next is in the object, or on standard error.

**Names of memories.** Wherever a memory is named, its IRI will do, or a short id: a beginning or end of its id, of 4
signs or more, that is unique in the project.

**Errors.** A person reads `error:`, the broken rules with the values that would do, and `hint:`. With `--json` the
error is one object on standard output with `code`, `detail` and `hint`, and `violations`, `fixed_intent`, `conflicts`
or `position` where there are any; it can be told from a receipt by its `code`. Warnings, such as `journal_damaged`
while the sound rest is read, stay on standard error.

| exit code | means |
|---|---|
"""
_EXITS = {0: "done", 130: "interrupted", 141: "the reader of the output had left"}


def markdown() -> str:
    """Return the reference of every verb."""
    exits = {**_EXITS, **{code: ", ".join(f"`{name}`" for name in _codes(code)) for code in (1, 2, 3, 4, 5, 6, 7)}}
    exits[1] += ", and anything unforeseen (`internal_error`)"
    table = "".join(f"| {code} | {exits[code]} |\n" for code in sorted(exits))
    context = click.Context(cli, info_name="jidomem")
    everywhere = "\n## Options of every verb\n\nThey stand before the verb or after it.\n\n" + _options(cli)
    verbs = "".join(text for name in VERBS for text in _sections(cli.get_command(context, name), name, context))
    return f"{_INTRODUCTION}{table}{everywhere}{verbs}"


def _codes(exit_code: int) -> list[str]:
    return [name for name, (_, code) in CODES.items() if code == exit_code]


def _sections(command: click.Command | None, name: str, parent: click.Context) -> Iterator[str]:
    """Yield the section of a verb, then those of the verbs below it."""
    assert command is not None, name
    context = click.Context(command, info_name=name, parent=parent)
    below = [*command.commands.items()] if isinstance(command, click.Group) else []
    text, _, examples = (command.help or "").replace("\b\n", "").partition("Examples:\n")
    yield f"\n{'##' if parent.parent is None else '###'} {context.command_path}\n\n{text.strip()}\n"
    if not below:
        yield f"\n    {' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n"
        yield f"\n{options}" if (options := _options(command)) else ""
    if examples:
        yield f"\n```sh\n{_dedented(examples)}```\n"
    for sub, verb in below:
        yield from _sections(verb, sub, context)


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
    return {"command-line.md": markdown()}
