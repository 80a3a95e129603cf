"""Errors: printed for people on standard error, and for programs as JSON on standard output.

`unknown_command` suggests a command for verbs of other tools.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from errno import ENAMETOOLONG, ENOTDIR
from itertools import takewhile
from typing import Any

import click

from jidomem.base.words import cut, escape_in_json
from jidomem.errors import Conflict, InvalidRequest, JidomemError, Violation, nearest_names
from jidomem.rdf.vocab import BASE, local_name
from jidomem.records.intent import FIELD_ALIASES, INTENT_FIELDS
from jidomem_cli.fields import HELP
from jidomem_cli.options import App, clean
from jidomem_cli.output import short

BUG = 1
#: The fields of a conflicting memory that are shown, and the most characters of each.
_ITEM_FIELDS = ("type", "status", "rationale", "detailed_explanation", "about", "asserted_by", "timestamp")
_MAX_VALUE_CHARS = 160
#: The most refusals of a submission that are compared with later ones, and the most ranges of intents that are named.
_MOST_EXPLAINED, _MOST_RANGES = 1000, 20
#: The least similarity of an unknown option to a suggested one.
_LIKE = 0.7
#: Fields whose options have another name.
_OPTION_OF = {"path": "about", "agent": "whom"}
#: The password in an argument that is an address.
_PASSWORD = re.compile(r"(?<=://)([^\s/@:]*):\S*(?=@)")
#: A value that an error repeats, after which it is cut.
_LONG_VALUE = re.compile(r"(\S{200})\S{200,}")
Options = Callable[[Mapping[str, Any]], str]


def print_error(error: Exception, app: App) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, click.ClickException):
        error = _usage_error(error)
    if isinstance(error, OSError) and error.errno in (ENAMETOOLONG, ENOTDIR):
        error = InvalidRequest(f"{error.filename}: {error.strerror}", hint="give another path")
    if isinstance(error, JidomemError):
        error.detail = _LONG_VALUE.sub(r"\1…", error.detail)
        print_refusal(error, app)
    if app.format == "github":
        from jidomem.check.report import unchecked_command

        click.echo(unchecked_command(reason_of(error)))
    elif app.format in ("sarif", "junit"):  # only checks have these
        from jidomem.check.report import CheckReport
        from jidomem_cli.check import show

        show(app, CheckReport(unchecked=[reason_of(error)]))
    if isinstance(error, JidomemError):
        return error.exit_code
    detail = f"{type(error).__name__}: {error}"
    hint = "this is a bug in jidomem; run it again with -v and report the traceback"
    if app.verbose:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if app.json:
        click.echo(json.dumps({"code": "internal_error", "detail": detail, "hint": hint}, ensure_ascii=False))
    elif app.logs_json:
        app.log("error", "failed", code="internal_error", detail=detail, hint=hint)
    else:
        click.echo(f"{app.styled('error:', 'red')} {clean(detail)}; {hint}", err=True)
    return BUG


def reason_of(error: Exception) -> str:
    """Return an error as the reason why something was not checked, with paths from the working directory."""
    detail, hint = getattr(error, "detail", f"{type(error).__name__}: {error}"), getattr(error, "hint", "")
    return (f"{detail}; {hint}" if hint else detail).replace(f"{os.getcwd()}/", "")


def print_repeated(app: App, counts: Iterable[int]) -> None:
    """Print for each reason that was printed once how many others it is the reason of."""
    for count in counts:
        if count > 1:
            app.info(f"{count - 1:,} more {'is' if count == 2 else 'are'} refused for that reason")


def print_refusal(
    error: JidomemError, app: App, *, options: Options | None = None, where: str = "", explains: bool = True
) -> None:
    """Print one error, on standard output for JSON.

    *options* writes fields as options of the command, and so the repair; *where* is the prefix of the text. Without
    *explains* the text is one line.
    """
    if app.json:
        values = {**error.to_dict(), "hint": in_options(error.hint, app)}
        click.echo(escape_in_json(json.dumps(values, ensure_ascii=False, default=str)))
        return
    if app.logs_json:
        app.log("error", "failed", code=error.code, detail=error.detail, hint=in_place(error.hint, app))
        return
    if not where and error.position is not None and error.code != "malformed_json":  # its message names the line
        where = f"intent {error.position + 1}: "
    click.echo(f"{app.styled('error:', 'red')} {where}{clean(error.detail)}", err=True)
    if not explains:
        return
    has_choices = isinstance(error, Conflict) and (options is not None or error.hints_choices)
    for line in _explanation(error, app):
        click.echo(f"  {clean(line)}", err=True)
    fixed = getattr(error, "fixed_intent", None)
    if fixed and not _corrected_options(error, options):
        command = f"jidomem submit{place(app)} - <<'EOF'\n{json.dumps(dict(fixed), ensure_ascii=False)}\nEOF"
        click.echo(f"{app.styled('hint:', 'cyan')} this would be accepted:\n{command}", err=True)
    elif isinstance(error, Conflict) and has_choices:
        ways = [clean(in_place(way, app)) for way in _choices(error, options)]
        hint = "".join(["choose one:", *(f"\n  {way}" for way in ways)]) if len(ways) > 1 else "".join(ways)
        click.echo(f"{app.styled('hint:', 'cyan')} {hint}", err=True)
    elif error.hint:
        hint = in_place(_corrected_options(error, options) or in_options(error.hint, app), app)
        hint = "\n".join(map(clean, hint.split("\n")))
        click.echo(f"{app.styled('hint:', 'cyan')} {hint}", err=True)


def _explanation(error: JidomemError, app: App) -> list[str]:
    is_one = len(error.violations) == 1
    lines = [line for violation in error.violations for line in _violation(violation, app, is_one=is_one)]
    return [*lines, *(_conflicts(error) if isinstance(error, Conflict) else ())]


class RefusedIntents:
    """The refused intents of a submission: an explanation is printed once, and the numbers of the others at the end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._explained: set[str] = set()
        #: Detail and explanation -> the first and last numbers of successive intents with both: the ranges that are
        #: named, and the last one. The others are only counted.
        self._ranges: dict[tuple[str, str], list[list[int]]] = {}
        self._others = Counter[tuple[str, str]]()

    def print(self, error: JidomemError, number: int) -> None:
        """Print the refusal of the intent *number*, unless an earlier intent had the same one."""
        if self._app.json:
            print_refusal(error, self._app)
            return
        hint = "" if getattr(error, "fixed_intent", None) else error.hint
        explanation = "\n".join([error.code, *_explanation(error, self._app), hint])
        key = error.detail, explanation
        ranges = self._ranges.get(key)
        if ranges is None:
            print_refusal(error, self._app, explains=explanation not in self._explained)
            if len(self._ranges) < _MOST_EXPLAINED:
                self._explained.add(explanation)
                self._ranges[key] = [[number, number]]
        elif ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            if len(ranges) > _MOST_RANGES:
                ranges.pop()
                self._others[key] += 1
            ranges.append([number, number])

    def finish(self) -> None:
        """Print the numbers of the intents with each repeated refusal."""
        repeated = {key: ranges for key, ranges in self._ranges.items() if ranges[0][0] < ranges[-1][1]}
        for key, ranges in repeated.items():
            numbers = [f"{first:,}" + (f" to {last:,}" if last > first else "") for first, last in ranges]
            others = len(numbers) - _MOST_RANGES + self._others[key]
            more = f" and {others:,} more range{'s' * (others > 1)}" if others > 0 else ""
            named = f"intents {', '.join(numbers[:_MOST_RANGES])}{more}"
            click.echo(f"{self._app.styled('error:', 'red')} {named}: {clean(key[0])}", err=True)
        if repeated:
            self._app.info("each refusal with its repair: --json")


def as_options(fields: Mapping[str, Any]) -> str:
    """Return fields of an intent as options of `jidomem remember`.

    >>> as_options({"supersedes": ["https://jido.ai/memory/0197a1b2-0000-7000-8000-00000000abcd"]})
    '--supersedes 0000abcd'
    >>> as_options({"supersedes": []})
    'no --supersedes'
    """
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in _entries(fields))
    dropped = " ".join(f"--{name.replace('_', '-')}" for name, value in fields.items() if value == [])
    return f"{options}, without {dropped}" if options and dropped else options or f"no {dropped}"


def as_changes(fields: Mapping[str, Any]) -> str:
    """Return fields of an intent as options of `jidomem edit`.

    >>> as_changes({"supersedes": ["https://jido.ai/memory/0197a1b2-0000-7000-8000-00000000abcd"]})
    '--set supersedes=0000abcd'
    """
    dropped = [(name, "") for name, value in fields.items() if value == []]
    return " ".join(
        f"--reason {value}" if name == "reason" else f"--set {name}={value}"
        for name, value in [*_entries(fields), *dropped]
    )


def _entries(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each field with each of its values, quoted for a shell."""
    for name, value in fields.items():
        for entry in value if isinstance(value, list) else [value]:
            yield name, shlex.quote(short(entry))


def _corrected_options(error: JidomemError, options: Options | None) -> str:
    """Return the options of the command that repair all of *error*, or an empty text."""
    violations = error.violations
    is_correctable = all(
        violation.field in HELP and (violation.nearest or violation.value is None) for violation in violations
    )
    if not violations or options is None or not is_correctable:
        return ""
    return f"give {options({str(violation.field): violation.nearest or 'TEXT' for violation in violations})}"


def _usage_error(error: click.ClickException) -> InvalidRequest:
    """Return a usage error as an error of ours, with an example if arguments are missing or too many."""
    context, detail = getattr(error, "ctx", None), _PASSWORD.sub(r"\1", error.format_message())
    hint = f"see: {context.command_path if context else 'jidomem'} --help"
    if isinstance(error, click.NoSuchOption):
        near = _options_for(error)
        meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        return InvalidRequest(f"No such option '{error.option_name}'{meant}", hint=hint)
    if isinstance(error, click.BadParameter) and error.param and (number := _number_words(error.param)):
        value, is_given, _ = error.message.partition(" is not ")
        detail = f"{max(error.param.opts, key=len)} is {number}" + f", not {value}" * bool(is_given)
    if context is not None and (isinstance(error, click.MissingParameter) or detail.startswith("Got unexpected extra")):
        _, _, examples = (context.command.help or "").partition("Examples:\n")
        example = next((line.strip() for line in examples.splitlines() if line.strip()), None)
        hint = f"for example: {example}; {hint}" if example else hint
    elif context is not None and isinstance(context.command, click.Group) and detail == "Missing command.":
        detail = f"{context.command_path} needs a command: {', '.join(context.command.list_commands(context))}"
    return InvalidRequest(detail, hint=hint)


def _number_words(param: click.Parameter) -> str:
    """Return the numbers that a parameter takes, in words; empty for one that takes no number."""
    kind = param.type
    if not isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
        return ""
    words = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if most is not None:
        return f"{words} from {least:,} to {most:,}"
    return words if least is None else f"{words} of at least {least:,}"


#: The name of an option in other programs -> its name here, on commands that have it.
_OPTION_GUESSES = {
    **dict.fromkeys(("withdraw", "delete", "remove", "retract", "forget"), "invalidate"),
    **dict.fromkeys(("since", "until", "from", "to", "at"), "as-of"),
    **dict.fromkeys(("replace", "rewrite"), "supersede"),
}


def _options_for(error: click.NoSuchOption) -> list[str]:
    """Return the options of the command that the unknown option means by another name, or is spelled like."""
    word = error.option_name.lstrip("-")
    params = error.ctx.command.params if error.ctx else ()
    field = FIELD_ALIASES.get(word.replace("-", "_"))
    if field and (option := next((param.opts[0] for param in params if param.name == field), None)):
        return [option]
    names = [name.lstrip("-") for name in error.possibilities or ()]
    taken = {name for param in params for name in param.opts if not getattr(param, "hidden", False)}
    guess = f"--{_OPTION_GUESSES.get(word, '')}"
    return [guess] if guess in taken else [f"--{name}" for name in nearest_names(word, names, 3, likeness=_LIKE)]


def in_options(hint: str, app: App) -> str:
    """Return *hint* with fields replaced by options of the command, where it has them."""

    def option(match: re.Match[str]) -> str:
        leave_out, name = match[1] or "", _OPTION_OF.get(match[2], match[2])
        if name in app.options:
            return leave_out + app.options[name]
        if (flag := f"--{name.replace('_', '-')}") in app.options.values():
            return leave_out + flag
        if name == "extra_triples" and "more" in app.options:
            return f"{leave_out}--set PROPERTY=VALUE"
        if ":" in name and not {"changes", "more"}.isdisjoint(app.options):
            return f"{leave_out}--set {name}" if leave_out else f"--set {name}=VALUE"
        if name in INTENT_FIELDS and "changes" in app.options:
            return f"{leave_out}--set {name}" if leave_out else f"--set {name}=VALUE"
        return match[0]

    return re.sub(r"(leave out )?`([a-z_]+|[A-Za-z][\w-]*:[\w-]+)`", option, hint)


def _violation(violation: Violation, app: App, *, is_one: bool) -> Iterator[str]:
    """Yield the lines of one violation; message and repair only if the error has several."""
    if not is_one:
        known = violation.field is None or violation.message.startswith(violation.field)
        yield violation.message if known else f"{violation.field}: {violation.message}"
    if violation.nearest:
        yield f"nearest: {violation.nearest}"
    elif violation.allowed:
        yield f"allowed: {', '.join(violation.allowed)}"
    elif violation.hint and not is_one:
        yield in_options(violation.hint, app)


def _conflicts(error: Conflict) -> Iterator[str]:
    for conflict in error.conflicts:
        yield f"{conflict.kind} with {conflict.iri}: {cut(conflict.summary, _MAX_VALUE_CHARS)[0]}"
        if conflict.kind == "stale_supersession":  # it ended: its successor is shown instead
            continue
        item = error.items.get(conflict.iri, {})
        for name in (name for name in _ITEM_FIELDS if item.get(name)):
            value = item[name] if isinstance(item[name], list) else [item[name]]
            yield f"  {name}: {', '.join(map(_plain, value))}"


def _choices(error: Conflict, options: Options | None) -> Iterator[str]:
    """Yield the ways to resolve *error*, as *options* of the command or in words; without those that *options* cannot
    express.
    """
    for choice in error.choices:
        fields = {**choice.fields, **dict.fromkeys(choice.needs, "TEXT")}
        words = options(fields) if options else ", ".join(f"{name} {value}" for name, value in _entries(fields))
        if words and fields:
            yield f"{words}: {choice.effect}"
        elif choice.name in ("keep", "valid_until"):
            yield choice.effect
    yield from error.keeping


def _plain(value: Any) -> str:
    """Return the value of a field as readable text, shortened if long."""
    text = " ".join(str(value).split())
    return local_name(text) if text.startswith(BASE) else cut(text, _MAX_VALUE_CHARS, blanks=True)[0]


def place(app: App) -> str:
    """Return the options by which a pasted command uses the same memory."""
    return _as_text(_place(app))


def _place(app: App) -> dict[str, str | None]:
    """Return the options of `place` with their values; the address of a shared root has no secrets."""
    root = app.root
    if root is not None and "://" in root:
        from jidomem.extras.servers.addresses import without_secrets  # imported here, as most roots are folders

        root = without_secrets(root)
    return {"--root": root, "--project": app.project}


def _as_text(options: Mapping[str, str | None]) -> str:
    return "".join(f" {name} {shlex.quote(value)}" for name, value in options.items() if value)


def acting(app: App) -> str:
    """Return the options by which a pasted command that writes uses the same memory and the same agent."""
    return _as_text({**_place(app), "--agent": app.agent})


#: The commands that a text may suggest, and what separates them; those that are about another root, about the root of
#: this folder, and about the whole root.
_SUGGESTED, _BETWEEN = re.compile(r"\bjidomem((?: [a-z][a-z-]*)+)(?![\w=/.:-])"), re.compile(r"\n|; |&& |, or ")
_ELSEWHERE = ("demo", "completion", "root restore", "root migrate")
_OF_FOLDER = ("init", "setup")
_WHOLE = ("root backup", "root reindex")


def in_place(text: str, app: App) -> str:
    """Return *text* with the options of `place` in its commands, and with the agent in those that write."""
    from jidomem_cli.main import cli  # which loads this module

    running = click.get_current_context(silent=True)
    changes_access = running is not None and " access " in running.command_path

    def with_options(match: re.Match[str]) -> str:
        command: click.Command = cli
        path = list[str]()
        for word in match[1].split():
            below = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
            if below is None:
                break
            path, command = [*path, word], below
        name = " ".join(path)
        if not path or name in _ELSEWHERE:
            return match[0]
        is_agents = path[0] != "access" or changes_access  # a refused agent needs another one to change its access
        agent = app.agent if getattr(command, "is_writing", False) and is_agents else None
        arguments = _BETWEEN.split(text[match.end() :], maxsplit=1)[0]
        options = {**_place(app), "--agent": agent}
        options |= dict.fromkeys(["--project"] * (name in _WHOLE) + ["--root", "--agent"] * (name in _OF_FOLDER))
        missing = {option: value for option, value in options.items() if f"{option} " not in arguments}
        return f"jidomem {name}{_as_text(missing)}{match[0].removeprefix(f'jidomem {name}')}"

    return _SUGGESTED.sub(with_options, text)


def unknown_command(word: str, names: Sequence[str], context: click.Context) -> InvalidRequest:
    """Return the refusal of *word*, which is none of *names*, with the intended command or the nearest name."""
    detail = _PASSWORD.sub(r"\1", f"no such command: {word}")
    path, word = context.command_path, word.lower()
    safe = {name: f"{path} {name}" for name in names if name not in DESTRUCTIVE}
    from jidomem_cli import main  # which loads this module

    # users may omit the group of a command
    groups = main.GROUPS if context.parent is None else ()
    grouped = {name: f"jidomem {group.name} {name}" for group in groups for name in group.table}
    guesses = GUESSES | grouped if context.parent is None else _GROUP_GUESSES.get(path, {})
    likely = {guess: command for guess, command in guesses.items() if guess not in DESTRUCTIVE}
    for commands, likeness in ((guesses, 1.0), (safe, 0.75), (likely, 0.75), (safe, 0.6)):
        if near := nearest_names(word, commands, likeness=likeness):
            command = commands[near[0]]
            path = " ".join(takewhile({"jidomem", *names, *grouped, *path.split()}.__contains__, command.split()))
            return InvalidRequest(detail, hint=f"did you mean: {command}; see: {path} --help")
    listed = "" if context.parent is None else f"; there are {', '.join(names)}"
    return InvalidRequest(detail + listed, hint=f"see: {path} --help")


#: The same for the commands of a group, by its path.
_GROUP_GUESSES = {
    "jidomem access policy": dict.fromkeys(
        ("revoke", "remove", "delete", "ungrant"), "jidomem access policy grant AGENT agent, which takes its role back"
    )
}
_CHANGE = "jidomem edit ID --supersede TEXT"
_WITHDRAW = 'jidomem edit ID --invalidate --reason "..."'
#: Names from earlier versions and other programs -> the command for them.
GUESSES: dict[str, str] = {
    **dict.fromkeys(("list", "ls", "all", "dump", "print", "memories", "timeline"), "jidomem ask timeline"),
    **dict.fromkeys(("search", "find", "grep", "query", "lookup", "retrieve"), 'jidomem recall "a question"'),
    **dict.fromkeys(
        ("add", "new", "create", "save", "store", "note", "put", "insert", "write"),
        'jidomem remember "the build needs Rust 1.80"',
    ),
    **dict.fromkeys(("revise", "update", "change", "set", "modify", "correct", "supersede"), _CHANGE),
    **dict.fromkeys(("delete", "rm", "remove", "forget", "drop", "clear", "withdraw", "invalidate"), _WITHDRAW),
    **dict.fromkeys(("undo", "revert"), 'jidomem edit ID --undo --reason "..."'),
    **dict.fromkeys(("validate", "lint", "test"), "jidomem check"),
    **dict.fromkeys(("ui", "web", "dashboard", "open", "browse"), "jidomem serve"),
    **dict.fromkeys(("get", "view", "cat", "read"), "jidomem show ID"),
    **dict.fromkeys(("accept", "reject", "approve", "pending", "proposals"), "jidomem review"),
    **{kind: f"jidomem ask {kind}" for kind in ("decisions", "tasks", "errors", "conventions", "facts", "lessons")},
    **dict.fromkeys(("sync", "refresh"), "jidomem init --from auto"),
    **dict.fromkeys(("install", "config", "configure"), "jidomem setup"),
    **dict.fromkeys(("stats", "info"), "jidomem status"),
    **dict.fromkeys(("doctor", "diagnose"), "jidomem status --doctor"),
    "memory": "jidomem ask decisions",
    "sparql": "jidomem ask --sparql 'SELECT ...'",
    "history": "jidomem show ID --history",
    "why": "jidomem show ID --why",
    "conflicts": "jidomem review --conflicts",
    "whoami": "jidomem status",
    "blame": "jidomem governing README.md",
    "decide": 'jidomem remember "Use Oxigraph" --type decision --topic store --rationale "it embeds"',
    "context": "jidomem agent briefing",
    "docs": "jidomem --help",
    "os": "jidomem agent memoryos",
    "help": "jidomem --help",
    "version": "jidomem --version",
}
#: Commands that remove or replace much at once: they are never suggested for a misspelt word.
DESTRUCTIVE = frozenset(
    ("redact", "rollback", "restore", "migrate", "remove", "remove-files", "revoke", "reject", "refuse", "forget",
     "clear", "delete", "drop", "reset")
)  # fmt: skip
