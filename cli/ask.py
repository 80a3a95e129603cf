"""`jidomem ask`: the named queries of the playbook, and SPARQL over the graphs of one project."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import click

from jidomem import Jidomem
from jidomem.errors import InvalidRequest, nearest_names
from jidomem.rdf.sparql import MAX_BYTES, check, unknown_graphs, without_service_prefixes
from jidomem.rdf.turtle import turtle
from jidomem.rdf.vocab import JIDO, graphs_of
from jidomem.read.lists import Page
from jidomem.read.named_queries import Result, text_columns
from jidomem.read.playbook import Playbook
from jidomem.recall.governing import FRESHNESS_COLUMNS, about_patterns
from jidomem.records.active import STATUSES
from jidomem.records.named_query import NamedQuery, QueryParameter, snake
from jidomem_cli.options import ROWS, App, Command, include_inactive_option, pass_app
from jidomem_cli.output import form_of, read_listed, show_json, show_rows, with_withdrawals

#: Parameters with an option of their own on all commands.
_OPTIONS = {
    "project": "--project", "asof": "--as-of", "validat": "--valid-at", "includeinactive": "--include-inactive",
    "limit": "--limit", "cursor": "--cursor",
}  # fmt: skip
_TAKEN = ("name", "self")
_ABANDONED = f"{JIDO}Abandoned"
#: The least similarity of an unknown option to a suggested one.
_LIKE = 0.7
#: Characters that a SPARQL query contains and a file name does not.
_SYNTAX = re.compile(r"[\s{<]")
STATUS = click.option(
    "--status", metavar="STATUS", help=f"Only decisions with this status: {', '.join(STATUSES)} (default: active)."
)


@click.command(
    cls=Command, formats=(*ROWS, "ttl"), paged=True, as_of=True, valid_at=True,
    context_settings={"ignore_unknown_options": True},
)  # fmt: skip
@click.argument("name", required=False)
@click.argument("params", nargs=-1, metavar="[PARAM=VALUE | --PARAM VALUE]...", type=click.UNPROCESSED)
@include_inactive_option
@STATUS
@click.option("--sparql", metavar="QUERY|FILE|-", help="Answer a SPARQL query instead.")
@click.option("--infer", is_flag=True, help="With --sparql: let `a` also match superclasses.")
@pass_app
def ask(
    app: App,
    name: str | None,
    params: tuple[str, ...],
    include_inactive: bool,
    status: str | None,
    sparql: str | None,
    infer: bool,
) -> None:
    """Answer the named query NAME; without NAME, list the queries by role.

    PARAM=VALUE or --PARAM VALUE sets a parameter of the query, such as actionable_only=true; an agent or session is
    a name or IRI. Short names: tasks and errors (the open ones), sessions (the active ones). changed-files lists the
    memories about files that were changed, renamed or removed since.

    --sparql answers a SELECT, ASK, CONSTRUCT or DESCRIBE over the graphs of the project and the ontology, in the order
    of the query; a graph is printed as Turtle (default). With --as-of it replays up to 32 MB of journal.

    Examples:
      jidomem ask
      jidomem ask open-tasks actionable_only=true --limit 5
      jidomem ask decisions --status rejected
      jidomem ask tasks-of-agent agent=ana
      jidomem ask changes --since 2026-11-17
      jidomem ask architect/active-decisions --as-of 2026-11-01 --format csv
      jidomem ask --sparql 'SELECT ?s WHERE { ?s a <https://jido.ai/ontology#Task> } ORDER BY ?s'
      jidomem ask --sparql query.rq --format csv
    """
    inactive = (include_inactive, status is not None, app.limit is not None, app.cursor is not None)
    if sparql is not None:
        if name is not None or any((*inactive, app.valid_at is not None)):
            hint = "name moments, limits and status in the query"
            raise InvalidRequest("--sparql takes no NAME, and none of the options of named queries", hint=hint)
        _run_sparql(app, sparql, infer=infer)
        return
    if infer:
        raise InvalidRequest("--infer is for SPARQL", hint="add --sparql QUERY")
    if app.format == "ttl":
        raise InvalidRequest("rows cannot be ttl", hint=f"give --format {' or '.join(ROWS)}")
    if name is not None and name.startswith("-"):
        raise InvalidRequest("the name of the query comes first", hint=f"jidomem ask NAME {name} VALUE")
    if name is None:
        if any((*inactive, app.as_of is not None)):
            raise InvalidRequest("the list of queries takes no options", hint="name a query, such as open-tasks")
        _show_playbook(app, app.open())
        return
    memory = app.read()
    if name == "changed-files":
        show_rows(app, memory.changed_files(), FRESHNESS_COLUMNS)
        return
    query = memory.playbook.get(name)
    app.options = {**app.options, **{snake(param.name): _option(param) for param in query.params}}
    pairs = _pairs(query, params, memory.playbook)
    values = dict(_param(query, pair) for pair in pairs) | ({} if status is None else {"status": status})
    answer(app, memory, name, include_inactive=include_inactive, params=values)
    if query.name == "governing":
        _print_pattern_count(app, memory, values["file"], include_inactive=include_inactive)


def answer(app: App, memory: Jidomem, name: str, *, include_inactive: bool, params: Mapping[str, str]) -> None:
    """Print the rows of one named query."""
    asked = {"as_of": app.as_of, "valid_at": app.valid_at, "include_inactive": include_inactive, **params}

    def read(limit: int | None, cursor: str | None) -> Page:
        return memory.reader.ask_page(name, project=memory.project, limit=limit, cursor=cursor, **asked)

    page, left = read_listed(app, read)
    query = memory.playbook.get(name)
    is_text = form_of(app) in ("csv", "tsv")
    columns = text_columns(query, include_inactive=include_inactive) if is_text else query.columns
    if form_of(app) == "table" and not any(row.get("topic") for row in page.rows):
        columns = tuple(column for column in columns if column != "topic")
    rows = with_withdrawals(page.rows) if form_of(app) == "table" else page.rows
    none = "" if rows or include_inactive else _waiting(app, memory, name, params)
    show_rows(app, rows, columns, page.cursor, memory=memory, none=none, left=left)
    abandoned = sum(row.get("status") == _ABANDONED for row in rows)
    if abandoned and form_of(app) == "table" and query.name == "open-tasks":
        listed = " of those listed" if page.cursor else ""
        app.info(f"abandoned: {abandoned}{listed}; leave them out with: jidomem ask open-tasks --actionable-only")


def _waiting(app: App, memory: Jidomem, name: str, params: Mapping[str, str]) -> str:
    """Return the words on the pending proposals that the query *name* would list if they were accepted."""
    items = {row["item"] for row in memory.reader.ask("proposals", project=memory.project)}
    if not items or not memory.playbook.get(name).takes("includeInactive"):
        return ""
    moment = {"as_of": app.as_of, "valid_at": app.valid_at, "include_inactive": True}
    listed = memory.reader.ask(name, project=memory.project, **moment, **params)
    count = len(items & {value for row in listed for value in row.values() if isinstance(value, str)})
    return f" active; pending proposals: {count}, see: jidomem review" if count else ""


def _print_pattern_count(app: App, memory: Jidomem, file: str, *, include_inactive: bool) -> None:
    """Print the number of memories about patterns that govern *file*, which the query `governing` leaves out."""
    filters = {"as_of": app.as_of, "valid_at": app.valid_at, "include_inactive": include_inactive}
    rows = about_patterns(memory.reader, memory.project, file, filters)
    if rows:
        patterns = ", ".join(sorted({row["about"] for row in rows}))
        count = len({row["item"] for row in rows})
        some = "1 memory about a pattern governs" if count == 1 else f"{count} memories about patterns govern"
        app.info(f"{some} {file} too ({patterns}), not listed here: jidomem governing {quote(file)}")


def _show_playbook(app: App, memory: Jidomem) -> None:
    rows = [
        {"role": role, "name": query.name, "params": " ".join(map(str, _own(query))), "answers": query.summary}
        for role, queries in memory.playbook.roles().items()
        for query in queries
    ]
    show_rows(app, rows, ("role", "name", "answers", "params"))


def _own(query: NamedQuery) -> list[QueryParameter]:
    """Return the parameters of a query that are given as NAME=VALUE, without those that have an option."""
    return [param for param in query.params if param.name.lower() not in _OPTIONS and param.type != "status"]


def _option(param: QueryParameter) -> str:
    return f"--{snake(param.name).replace('_', '-')}"


def _pairs(query: NamedQuery, words: Sequence[str], playbook: Playbook) -> Iterator[str]:
    """Yield *words* with each option that is a parameter of *query*, and its value, as NAME=VALUE.

    Raises click.NoSuchOption for a misspelt option, and InvalidRequest for another unknown one, or one without a value.
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
            raise _unknown_parameter(query, flag, playbook)
        if not equals and param.type == "boolean" and (not left or left[0] not in ("true", "false")):
            value = "true"
        elif not equals:
            if not left:
                raise InvalidRequest(f"{flag} needs a value", hint=f"write {flag} VALUE")
            value = left.pop(0)
        yield f"{snake(param.name)}={value}"


def _unknown_parameter(query: NamedQuery, flag: str, playbook: Playbook) -> Exception:
    """Return the error for an option that *query* does not take, with similar options, or the queries that take it."""
    context = click.get_current_context()
    own = {name for option in context.command.params for name in option.opts if name.startswith("--")}
    if near := nearest_names(flag, dict.fromkeys([*map(_option, query.params), *own]), 3, likeness=_LIKE):
        return click.NoSuchOption(flag, possibilities=near, ctx=context)
    takers = [each.name for each in playbook if flag in map(_option, each.params)]
    taken = ", ".join(map(_option, _own(query))) or "no parameter of its own"
    hint = f"{query.name} takes {taken}"
    if flag == "--about":
        hint += "; memories about a file: jidomem governing FILE"
    elif takers:
        hint += f"; {flag} is taken by: {', '.join(takers)}"
    return InvalidRequest(f"{query.name} takes no {flag}", hint=hint)


def _param(query: NamedQuery, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name:
        hint = f"{query.name} takes no parameter of its own"
        for param in _own(query)[:1]:
            hint = f"write name=value, such as {snake(param.name)}={'true' if param.type == 'boolean' else word}"
        raise InvalidRequest(f"{word!r} is not a parameter", hint=hint)
    if name in _TAKEN:
        raise InvalidRequest(f"no query has a parameter {name!r}", hint="list them with: jidomem ask")
    option = _OPTIONS.get(name.replace("_", "").lower())
    if option:
        raise InvalidRequest(f"{name} is not given as a parameter", hint=f"give {option} instead")
    return name, value


_FORMATS = {"select": ROWS, "ask": ("table", "json", "jsonl"), "graph": ("ttl", "table", "json", "jsonl")}


def _run_sparql(app: App, source: str, *, infer: bool) -> None:
    """Print the answer to a SPARQL query: *source* is the text, a file, or `-` for standard input."""
    text = _query_text(source)
    memory = app.read()
    result = memory.reader.run(memory.project, text, infer=infer, as_of=app.as_of)
    for graph in unknown_graphs(check(without_service_prefixes(text)), graphs_of(memory.project)):
        app.warn(f"<{graph}> is not a graph of this project, and is read as empty")
    if app.format is not None and app.format not in _FORMATS[result.kind]:
        raise InvalidRequest(
            f"the answer to this query cannot be {app.format}",
            hint=f"give --format {' or '.join(_FORMATS[result.kind])}",
        )
    _show(app, result)


def _query_text(source: str) -> str:
    is_file = source == "-" or (os.path.exists(source) and not os.path.isdir(source))
    if not is_file and source and not _SYNTAX.search(source):
        raise InvalidRequest(f"there is no file {source}", hint="give a query, a file with a query, or -")
    try:
        if not is_file:
            return source
        with click.open_file(source, encoding="utf-8-sig") as file:
            text: str = file.read(MAX_BYTES + 1)
            return text
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the query is not UTF-8 at byte {error.start}", hint="send UTF-8 text") from error
    except OSError as error:
        raise InvalidRequest(f"{source}: {error.strerror}", hint="name a file that can be read") from error


def _show(app: App, result: Result) -> None:
    if result.kind == "select":
        show_rows(app, result.rows, result.variables)
    elif result.kind == "ask":
        as_json = app.json or app.format in ("json", "jsonl")
        show_json({"boolean": result.truth}) if as_json else click.echo(str(result.truth).lower())
    elif app.format == "ttl" or (app.format is None and not app.json):
        click.echo(turtle(result.triples), nl=False)
    else:
        names = ("subject", "predicate", "object")
        show_rows(app, [dict(zip(names, triple, strict=True)) for triple in sorted(result.triples)], names)
