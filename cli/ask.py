"""`jidomem ask`: the named queries of the playbook, and SPARQL over the graphs of one project.

`jidomem governing` asks for the memories that govern files, `jidomem agent briefing` for those an agent needs first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from shlex import quote
from shutil import which
from typing import Any

import click

from jidomem import Jidomem
from jidomem.base.clock import json_value
from jidomem.base.words import cut
from jidomem.errors import InvalidRequest, nearest_names
from jidomem.rdf.sparql import MAX_BYTES, check, unknown_graphs, without_service_prefixes
from jidomem.rdf.terms import iri, plain_value
from jidomem.rdf.vocab import JIDO, graph_iri, graphs_of, jido
from jidomem.read.lists import Page
from jidomem.read.named_queries import Result, text_columns
from jidomem.read.playbook import Playbook
from jidomem.recall.governing import (
    FRESHNESS_COLUMNS,
    GOVERNING_COLUMNS,
    RelatedMemory,
    about_patterns,
    related_memories,
)
from jidomem.recall.nearness import MOST_SHOWN, differing_note
from jidomem.records.active import STATUSES
from jidomem.records.named_query import NamedQuery, QueryParameter, snake
from jidomem.runtime.logs import GuardLog
from jidomem_cli.hooks import HOOK_CLIENTS, answer_hook, session_of
from jidomem_cli.options import (
    READ,
    ROWS,
    App,
    Command,
    about_option,
    budget_option,
    clean,
    hook_option,
    include_inactive_option,
    limit_option,
    pass_app,
    role_option,
)
from jidomem_cli.output import active_notice, fit_line, read_listed, short, show_json, show_rows
from jidomem_cli.paths import Paths

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
@click.option("--infer", is_flag=True, help="With --sparql: let `a` also match superclasses; nothing else is inferred.")
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
            options = "NAME, --limit, --cursor, --status, --include-inactive or --valid-at"
            raise InvalidRequest(f"--sparql takes no {options}", hint="name limit, moments and status in the query")
        _run_sparql(app, sparql, infer=infer)
        return
    if infer:
        raise InvalidRequest("--infer is for SPARQL", hint="add --sparql QUERY")
    if app.format == "ttl":
        raise InvalidRequest("rows cannot be ttl", hint=f"give --format {' or '.join(ROWS)}")
    if name is not None and name.startswith("-"):
        raise InvalidRequest("the name of the query comes first", hint=f"jidomem ask NAME {name} VALUE")
    if name is None:
        if any((*inactive, app.as_of is not None, app.valid_at is not None)):
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
    options: dict[str, Any] = {"as_of": app.as_of, "valid_at": app.valid_at, "include_inactive": include_inactive}
    options |= params

    def read(limit: int | None, cursor: str | None) -> Page:
        return memory.reader.ask_page(name, project=memory.project, limit=limit, cursor=cursor, **options)

    query = memory.playbook.get(name)
    if app.rows is None:
        batches = memory.reader.batches(name, project=memory.project, cursor=app.cursor, **options)
        first = next(batches)
        page, left = Page(first, None), ""
        rows: Iterable[Mapping[str, Any]] = chain(first, chain.from_iterable(batches))
    else:
        page, left = read_listed(app, read)
        rows = page.rows
    is_text = app.form in ("csv", "tsv")
    columns = text_columns(query, include_inactive=include_inactive) if is_text else query.columns
    if app.form == "table" and not any(row.get("topic") for row in page.rows):
        columns = tuple(column for column in columns if column != "topic")
    if app.form == "table" and query.memory_column and "name" in columns and "summary" not in columns:
        rows = [{**row, "summary": _text(memory, row[query.memory_column])} for row in page.rows]
        columns = (*columns, *(["summary"] if any(row["summary"] not in ("", row["name"]) for row in rows) else []))
    none = "" if page.rows or include_inactive else _waiting(app, memory, name, params)
    show_rows(app, rows, columns, page.cursor, memory=memory, none=none, left=left)
    if query.name == "conflicts" and app.as_of is None and (pairs := memory.differing_pairs()):
        app.info(differing_note(pairs, "jidomem review"))
    abandoned = sum(row.get("status") == _ABANDONED for row in page.rows)
    if abandoned and app.form == "table" and query.name == "open-tasks":
        listed = " of those listed" if page.cursor else ""
        app.info(f"abandoned: {abandoned}{listed}; leave them out with: jidomem ask open-tasks --actionable-only")


def _text(memory: Jidomem, item: object) -> str:
    """Return the summary of a memory that is listed by its name; empty if there is none."""
    summaries = memory.reader.index.triples(graph_iri(memory.project), iri(str(item)), jido("summary"))
    return next((plain_value(text) for _, _, text in summaries), "")


def _waiting(app: App, memory: Jidomem, name: str, params: Mapping[str, str]) -> str:
    """Return the words on the pending proposals that the query *name* would list if they were accepted."""
    items = {row["item"] for row in memory.reader.ask("proposals", project=memory.project)}
    if not items or not memory.playbook.get(name).takes("includeInactive"):
        return ""
    moment = {"as_of": app.as_of, "valid_at": app.valid_at, "include_inactive": True}
    listed = memory.reader.ask(name, project=memory.project, **moment, **params)
    count = len(items & {value for row in listed for value in row.values() if isinstance(value, str)})
    return active_notice(count)


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
        from jidomem.rdf.turtle import turtle  # imported here, as rows need none

        click.echo(turtle(result.triples), nl=False)
    else:
        names = ("subject", "predicate", "object")
        show_rows(app, [dict(zip(names, triple, strict=True)) for triple in sorted(result.triples)], names)


@click.command(cls=Command, formats=("md", "json"), as_of=True, valid_at=True)
@click.option("--agent", envvar="JIDOMEM_AGENT", metavar="NAME",
              help="Acting agent (default: $JIDOMEM_AGENT, then your user name).")  # fmt: skip
@role_option
@budget_option
@about_option
@click.option("--task", metavar="TEXT", help="Planned work, in words; matching memories come first.")
@hook_option(HOOK_CLIENTS)
@pass_app
def briefing(
    app: App, agent: str | None, role: str | None, budget_tokens: int | None, about: tuple[str, ...],
    task: str | None, hook: str | None,
) -> None:  # fmt: skip
    """Print the memories an agent needs first: binding rules, then those near to its files and task, then others.

    It fills the budget (default: 1500), and lists what was left out with the command that shows it. A token is three
    bytes.

    Examples:
      jidomem agent briefing
      jidomem agent briefing --agent architect --budget-tokens 800
      jidomem agent briefing --about src/a.py --task "retry failed uploads"
      jidomem agent briefing --role Debugger --about src/a.py --json
    """
    if hook is not None:
        answer_hook(app, hook, "agent briefing", lambda event: _begun(app, hook, event, agent, role, budget_tokens))
        return
    memory = app.read()
    result = memory.briefing(
        agent=agent,
        role=role,
        budget_tokens=budget_tokens,
        about=Paths(memory.settings.root, memory.tree).each(about),
        task=task,
        as_of=app.as_of,
        valid_at=app.valid_at,
    )
    if app.form == "json":
        show_json(json_value(result.to_dict()))
    else:
        click.echo(result.text, nl=False)


def _begun(
    app: App, client: str, hook_input: Mapping[str, Any], agent: str | None, role: str | None, budget_tokens: int | None
) -> Mapping[str, Any]:
    """Return the briefing of *agent* (default: the agent of *client*) as context; empty if there are no memories."""
    from jidomem.clients.setup import CLIENTS  # imported late: only a hook needs it

    memory = app.open()
    if not memory.settings.root.is_dir() or memory.project not in memory.projects():
        return {}
    agent, session = agent or CLIENTS[client].agent, session_of(hook_input) or ""
    result = memory.briefing(agent=agent, role=role, budget_tokens=budget_tokens)
    if memory.read_log is not None:
        log = GuardLog(memory.read_log, memory.project)
        if hook_input.get("source") == "compact":  # earlier rules were lost
            log.forget_shown(session)
        log.add_briefing(session, agent)  # so that its first recall does not repeat it
    text = (result if which("jidomem") else result.for_tools()).text
    has_memories = any(section.entries or section.left_out for section in result.sections)
    if (working := memory.agent(agent).get()) is not None:  # its values are the agent's, and may be long
        show = f"the tool working, or jidomem agent working show --agent {quote(agent)}"
        text = f"{text * has_memories}Your working memory (revision {working.rev}) is shown by {show}\n"
    return {"context": text} if has_memories or working is not None else {}


_MAX_RELATED, _LONG = 5, 100
_OPTION = "--include-inactive"


@click.command(cls=Command, formats=ROWS, as_of=True, valid_at=True)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--all", "every", is_flag=True, help="List all memories, not only the nearest.")
@limit_option()
@include_inactive_option
@pass_app
def governing(app: App, paths: tuple[str, ...], every: bool, limit: int | None, include_inactive: bool) -> None:
    """List the rules, decisions, errors and lessons that govern files, the nearest first.

    Nearest are memories about the file itself, then about its folder and the folders above, then about a pattern, then
    strict and required conventions about the project. `file state` tells whether the files changed since. --limit is
    per file (default: 10; with --json all). A file need not exist yet, and may be given by its web address. Other
    memories about the files, such as facts and tasks, govern nothing: they are listed below the table, pending
    proposals on standard error; JSON has them as `related` and `proposals`.

    Examples:
      jidomem governing README.md
      jidomem governing README.md --all
      jidomem governing src/a.py src/b.py --json
    """
    memory = app.read()
    seen = Paths(memory.settings.root, memory.tree)
    wanted = seen.each(paths)
    form = app.form
    is_read = form in READ
    if every:
        limit = None
    elif limit is None and is_read:
        limit = MOST_SHOWN
    answer = memory.governing_answer(
        *wanted, limit=limit, as_of=app.as_of, valid_at=app.valid_at, include_inactive=include_inactive
    )
    rows, governed = answer.rows, answer.items
    related: list[RelatedMemory] = []
    if not (include_inactive or app.as_of or app.valid_at):
        related = related_memories(memory.reader, memory.project, wanted, {*governed})
    if form == "json":
        values = {"rows": [json_value(row) for row in rows], "cursor": None, "count": len(governed)}
        shown = ("item", "kind", "summary", "about")
        others = [{name: getattr(one, name) for name in shown} for one in related if not one.waits]
        proposals = [one.item for one in related if one.waits]
        show_json({**values, **answer.to_dict(_OPTION), "related": others, "proposals": proposals})
    else:
        if is_read:
            rows = [{**row, "freshness": _freshness(row["freshness"])} for row in rows]
        count = answer.conventions
        none = f" about this alone; conventions of the project: {count}, see: jidomem ask conventions" if count else ""
        columns = GOVERNING_COLUMNS if len(wanted) > 1 else GOVERNING_COLUMNS[1:]
        show_rows(app, rows, columns, memory=memory, whole="summary", none=none)
    if len(rows) < len(governed) and form != "json":
        app.info(f"… {len(governed) - len(rows)} more: --all")
    if form != "json":
        for text in answer.notices():
            app.info(text)
        for root in seen.nested(wanted) if app.root is None else ():
            below = [path for path in wanted if (seen.folder / path).is_relative_to(root.parent)]
            names = " ".join(quote(str((seen.folder / path).relative_to(root.parent))) for path in below)
            app.info(f"a memory of its own is there: (cd {quote(str(root.parent))} && jidomem governing {names})")
    if is_read:
        pending = [one for one in related if one.waits]
        _print_related(app, click.echo, "related, not binding", [one for one in related if not one.waits], every)
        _print_related(app, app.info, "pending proposals about this, not active until accepted", pending, every)
        _print_review(app, memory, pending, is_empty=not governed)
    if form != "json" and (text := answer.inactive_but({one.item for one in related}).notice(_OPTION)):
        app.info(text)


def _print_related(
    app: App, echo: Callable[[str], None], label: str, memories: Sequence[RelatedMemory], every: bool
) -> None:
    """Print the number of memories about the files that do not govern them, and the nearest or all of them."""
    if memories:
        echo(f"{label}: {len(memories)}")
    for one in memories if every else memories[:_MAX_RELATED]:
        echo(fit_line(app, clean(f"  {short(one.item)}  {one.kind}: {cut(one.summary, _LONG)[0]}")))
    if len(memories) > _MAX_RELATED and not every:
        echo(f"  … {len(memories) - _MAX_RELATED} more: --all")


def _print_review(app: App, memory: Jidomem, pending: Sequence[RelatedMemory], *, is_empty: bool) -> None:
    """Print the command that accepts the *pending* proposals; without any, and no other row, their number."""
    if app.quiet or (not pending and not is_empty):
        return
    rows = memory.reader.ask("proposals", project=memory.project) if memory.journal.knows(memory.project) else []
    count = len({row["item"] for row in rows})
    if pending:
        # imported late: they load the modules of writing commands
        from jidomem.curation.review_queue import acceptable, proposals_in
        from jidomem_cli.errors import place

        items, review = {one.item for one in pending}, f"jidomem review{place(app)}"
        about = [row for row in rows if row["item"] in items]
        waiting = proposals_in(memory.reader, memory.project, memory.sources.now(), about)
        some = acceptable(memory.reader, memory.project, waiting)[""]
        if some:
            ids = " ".join(short(one.item) for one in some[:_MAX_RELATED])
            app.info(f"accept {'one' if len(some) == 1 else 'those without a conflict'}: {review} accept {ids}")
        if len(some) < len(items):
            app.info(f"in conflict, or with something to decide: {len(items) - len(some)}, see: {review}")
        if count > len(pending):
            app.info(f"pending proposals of the project: {count}, see: jidomem review")
    elif count:
        app.info(f"pending proposals: {count}, none about this; see: jidomem review")


def _freshness(files: Sequence[dict[str, str | None]]) -> list[str]:
    """Return the states of changed files as words, or "unchanged" if all are."""
    changed = [_outcome_text(each) for each in files if each["state"] != "unchanged"]
    return changed or (["unchanged"] if files else [])


def _outcome_text(file: dict[str, str | None]) -> str:
    at = f" to {file['at']}" if file["at"] not in (None, file["path"]) else ""
    return f"{file['path']} {file['state']}{at}"
