"""`jidomem governing`: the memories that govern files.

`jidomem agent briefing`: the memories an agent needs first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from jidomem.base.words import cut
from jidomem.read.playbook import plain
from jidomem.recall.governing import GOVERNING_COLUMNS, RelatedMemory, nearest, related_memories
from jidomem.recall.nearness import MOST_SHOWN
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
)  # fmt: skip
from jidomem_cli.output import fit_line, form_of, short, show_json, show_rows
from jidomem_cli.paths import Paths

if TYPE_CHECKING:
    from jidomem import Jidomem


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
        answer_hook(
            app,
            hook,
            "agent briefing",
            lambda hook_input: _begun(app, hook, hook_input, agent, role, budget_tokens),
        )
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
    if form_of(app) == "json":
        show_json(plain(result.to_dict()))
    else:
        click.echo(result.text, nl=False)


def _begun(
    app: App,
    client: str,
    hook_input: Mapping[str, Any],
    agent: str | None,
    role: str | None,
    budget_tokens: int | None,
) -> Mapping[str, Any]:
    """Return the briefing of *agent* (default: the agent of *client*) as context; empty if there are no memories."""
    from jidomem.clients.setup import CLIENTS  # imported late: only a hook needs it

    memory = app.open()
    if not memory.settings.root.is_dir() or memory.project not in memory.projects():
        return {}
    if hook_input.get("source") == "compact" and memory.read_log is not None:  # earlier rules were lost
        GuardLog(memory.read_log, memory.project).forget_shown(session_of(hook_input) or "")
    result = memory.briefing(agent=agent or CLIENTS[client].agent, role=role, budget_tokens=budget_tokens)
    return {"context": result.text} if any(section.entries or section.left_out for section in result.sections) else {}


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
    wanted = Paths(memory.settings.root, memory.tree).each(paths)
    answer = memory.governing_answer(*wanted, as_of=app.as_of, valid_at=app.valid_at, include_inactive=include_inactive)
    governed = answer.rows
    form = form_of(app)
    is_read = form in READ
    if limit is None and is_read:
        limit = MOST_SHOWN
    rows = governed if limit is None or every else nearest(governed, limit)
    related: list[RelatedMemory] = []
    if not (include_inactive or app.as_of or app.valid_at):
        related = related_memories(memory.reader, memory.project, wanted, {row["item"] for row in governed})
    if form == "json":
        values = {"rows": [plain(row) for row in rows], "cursor": None, "count": len(governed)}
        others = [_related_json(one) for one in related if not one.waits]
        proposals = [one.item for one in related if one.waits]
        show_json({**values, **answer.to_dict(_OPTION), "related": others, "proposals": proposals})
    else:
        if is_read:
            rows = [{**row, "freshness": _freshness(row["freshness"])} for row in rows]
        none = _whole_project(answer.conventions or 0)
        show_rows(
            app,
            rows,
            GOVERNING_COLUMNS if len(wanted) > 1 else GOVERNING_COLUMNS[1:],
            memory=memory,
            whole="summary",
            none=none,
        )
    if len(rows) < len(governed) and form != "json":
        app.info(f"… {len(governed) - len(rows)} more: --all")
    if form != "json":
        for text in answer.notices():
            app.info(text)
    if is_read:
        pending = [one for one in related if one.waits]
        _print_related(app, click.echo, "related, not binding", [one for one in related if not one.waits], every)
        _print_related(app, app.info, "pending proposals about this, not active until accepted", pending, every)
        _print_review(app, memory, pending, is_empty=not governed)
    if form != "json" and (text := answer.inactive_but({one.item for one in related}).notice(_OPTION)):
        app.info(text)


def _whole_project(conventions: int) -> str:
    """Return the text after "none" if there are *conventions*, which are about the project or other files."""
    if not conventions:
        return ""
    return f" about this alone; conventions of the project: {conventions}, see: jidomem ask conventions"


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


def _related_json(memory: RelatedMemory) -> dict[str, Any]:
    """Return a memory about a file that does not govern it as plain JSON values."""
    return {"item": memory.item, "kind": memory.kind, "summary": memory.summary, "about": memory.about}


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
    """Return the state of a file in words."""
    at = f" to {file['at']}" if file["at"] not in (None, file["path"]) else ""
    return f"{file['path']} {file['state']}{at}"
