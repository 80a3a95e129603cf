"""`jidomem ask`: the named questions of the playbook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import click

from jidomem import Jidomem
from jidomem.active import STATUSES
from jidomem.errors import InvalidRequest
from jidomem.query import NamedQuery, Param, snake
from jidomem_cli.door import ROWS, Door, Verb, pass_door
from jidomem_cli.tables import form_of, show_rows

#: Parameters with an option of their own, here and on every other verb.
_OPTIONS = {
    "project": "--project", "asof": "--as-of", "validat": "--valid-at", "includeinactive": "--include-inactive",
    "limit": "--limit", "cursor": "--cursor",
}  # fmt: skip
_TAKEN = ("name", "self")
INCLUDE_INACTIVE = click.option(
    "--include-inactive",
    is_flag=True,
    help="Also memories that are not active: superseded, rejected, proposed, expired.",
)
STATUS = click.option(
    "--status", metavar="STATUS", help=f"Decisions of this status alone: {', '.join(STATUSES)} (default: active ones)."
)


@click.command(
    cls=Verb, formats=ROWS, paged=True, as_of=True, valid_at=True, context_settings={"ignore_unknown_options": True}
)
@click.argument("name", required=False)
@click.argument("params", nargs=-1, metavar="[PARAM=VALUE | --PARAM VALUE]...", type=click.UNPROCESSED)
@INCLUDE_INACTIVE
@STATUS
@pass_door
def ask(door: Door, name: str | None, params: tuple[str, ...], include_inactive: bool, status: str | None) -> None:
    """Answer the question NAME; without one, list the questions by the role that asks them.

    PARAM=VALUE or --PARAM VALUE gives a parameter that the list names, such as actionable_only=true; an agent or a
    session is given by its name or IRI. Moments, the status and what is not active have options.

    Examples:
      jidomem ask
      jidomem ask open-tasks actionable_only=true --limit 5
      jidomem ask decisions --status rejected
      jidomem ask tasks-of-agent agent=ana
      jidomem ask changes --since 2026-11-17
      jidomem ask architect/active-decisions --as-of 2026-11-01 --format csv
    """
    if name is not None and name.startswith("-"):
        raise InvalidRequest("name the question first", hint=f"jidomem ask QUESTION {name} VALUE")
    if name is None:
        if include_inactive or any(value is not None for value in (status, door.as_of, door.limit, door.cursor)):
            raise InvalidRequest("the list of questions is shown whole", hint="name a question, such as open-tasks")
        _show_playbook(door, door.open())
        return
    memory = door.read()
    query = memory.playbook.get(name)
    door.options = {**door.options, **{snake(param.name): _option(param) for param in query.params}}
    given = dict(map(_param, _pairs(query, params))) | ({} if status is None else {"status": status})
    answer(door, memory, name, include_inactive=include_inactive, params=given)


def answer(
    door: Door, memory: Jidomem, name: str, *, include_inactive: bool, params: Mapping[str, str] | None = None
) -> int:
    """Print the rows of one named query, and return how many there are."""
    page = memory.reader.ask_page(
        name,
        project=memory.project,
        as_of=door.as_of,
        valid_at=door.valid_at,
        include_inactive=include_inactive,
        limit=door.limit,
        cursor=door.cursor,
        **(params or {}),
    )
    columns = memory.playbook.get(name).columns
    if form_of(door) == "table" and not any(row.get("topic") for row in page.rows):
        columns = tuple(column for column in columns if column != "topic")
    show_rows(door, page.rows, columns, page.cursor, memory=memory)
    return len(page.rows)


def _show_playbook(door: Door, memory: Jidomem) -> None:
    rows = [
        {"role": role, "name": query.name, "params": " ".join(_own(query)), "answers": query.summary}
        for role, queries in memory.playbook.roles().items()
        for query in queries
    ]
    show_rows(door, rows, ("role", "name", "answers", "params"))


def _own(query: NamedQuery) -> list[str]:
    """Return the parameters of a query that are given as NAME=VALUE, without those that have an option."""
    return [str(param) for param in query.params if param.name.lower() not in _OPTIONS and param.type != "status"]


def _option(param: Param) -> str:
    return f"--{snake(param.name).replace('_', '-')}"


def _pairs(query: NamedQuery, words: Sequence[str]) -> Iterator[str]:
    """Yield *words* with each option that is a parameter of *query*, and its value, as NAME=VALUE.

    Raises click.NoSuchOption for an option that is none, and InvalidRequest for one without a value.
    """
    options = {_option(param): param for param in query.params}
    left = [*words]
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            yield word
            continue
        flag, equals, value = word.partition("=")
        param = options.get(flag)
        if param is None:
            own = [name for option in click.get_current_context().command.params for name in option.opts]
            near = get_close_matches(flag, dict.fromkeys([*options, *(name for name in own if name.startswith("--"))]))
            raise click.NoSuchOption(flag, possibilities=near, ctx=click.get_current_context())
        if not equals and param.type == "boolean" and (not left or left[0] not in ("true", "false")):
            value = "true"
        elif not equals:
            if not left:
                raise InvalidRequest(f"{flag} needs a value", hint=f"write {flag} VALUE")
            value = left.pop(0)
        yield f"{snake(param.name)}={value}"


def _param(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name:
        raise InvalidRequest(f"{word!r} is no parameter", hint="write name=value, such as actionable_only=true")
    if name in _TAKEN:
        raise InvalidRequest(f"no question has a parameter {name!r}", hint="list them with: jidomem ask")
    option = _OPTIONS.get(name.replace("_", "").lower())
    if option:
        raise InvalidRequest(f"{name} is not given as a parameter", hint=f"give {option} instead")
    return name, value
