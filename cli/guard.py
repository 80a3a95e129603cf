"""`jidomem guard`: the rules for files, before they are edited.

`jidomem agent briefing`: the memories an agent needs first.

`jidomem governing`: the memories that govern files.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jidomem.base.clock import now
from jidomem.base.json_values import decode_json
from jidomem.base.words import cut
from jidomem.clients import setup
from jidomem.clients.setup import CLIENTS
from jidomem.errors import Failed, InvalidRequest
from jidomem.guard.guard import (
    Edit,
    Guard,
    Verdict,
    broken,
    changes_of,
    edited,
    of_patch,
    override_notice,
    stopped,
    text_of,
)
from jidomem.guard.rules import Stop
from jidomem.read.playbook import plain
from jidomem.recall.governing import GOVERNING_COLUMNS, RelatedMemory, nearest, related_memories
from jidomem.recall.nearness import MOST_SHOWN
from jidomem.repository import git
from jidomem.runtime import root_config, settings
from jidomem.runtime.logs import GuardLog
from jidomem_cli.fields import Paths
from jidomem_cli.hooks import HOOK_CLIENTS, answer_hook
from jidomem_cli.options import (
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

if TYPE_CHECKING:
    from jidomem import Jidomem

_STOPPED = 3
_TOUCHED = ("file_path", "notebook_path", "path", "target_file")
_WRITTEN = ("content", "contents")


@click.command(cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--staged", is_flag=True, help="Check the staged changes of git instead of PATHs.")
@hook_option(HOOK_CLIENTS)
@click.option("--session", metavar="NAME", help="Session (default: $JIDOMEM_SESSION, then a daily one).")
@click.option("--override", metavar="REASON", help="Allow the next edit of PATH, for this reason.")
@pass_app
def guard(
    app: App, paths: tuple[str, ...], staged: bool, hook: str | None, session: str | None, override: str | None
) -> None:
    """Show the rules for files before an edit: conventions, decisions, errors and lessons.

    Each rule is shown once per session, within 300 tokens. If the check of a strict convention fails, the reason is
    printed and the exit code is 3. Prints nothing for files without rules.

    Examples:
      jidomem guard src/a.py
      jidomem guard src/a.py --session morning --json
      jidomem guard --override "the old interface needs it" src/a.py
    """
    if (len(paths) > 0) + staged + (hook is not None) != 1 or (override is not None and not paths):
        raise InvalidRequest("give paths, --staged or --hook", hint="name a file: jidomem guard src/a.py")
    if hook is not None:
        answer_hook(app, hook, "guard", lambda hook_input: _hook_answer(app, hook, hook_input, session))
        return
    local = _local_guard(app)
    if local is None:
        return
    name = session or local.session or f"{'git' if staged else 'day'}-{now():%Y-%m-%d}"
    if override is not None:
        _override(app, local.guard, local.paths.others(paths), name, override)
        return
    folder = local.paths.folder
    given = local.paths.others(paths)
    edits = _staged(local) if staged else [Edit(path, None, text_of(folder / path)) for path in given]
    verdict = local.guard.judge(edits, name, show_with_stops=True)
    _print_verdict(app, verdict)
    if verdict.earlier and not staged and not app.json:
        files = shlex.join(name for name in paths if local.paths.others((name,)))
        app.info(f"{verdict.earlier} shown earlier in session {name}; all: jidomem governing {files}")
    if verdict.stops:
        click.get_current_context().exit(_STOPPED)


class _LocalGuard:
    """The guard of the memory for the working directory, and its paths."""

    def __init__(self, loaded: settings.Settings) -> None:
        self.session = loaded.session
        self.guard = Guard(
            loaded, now, lambda command: root_config.may_run(settings.own_config(), loaded.root, command)
        )
        self.paths = Paths(loaded.root, self.guard.tree)


def _local_guard(app: App) -> _LocalGuard | None:
    if settings.address_of(app.root) is not None:
        raise Failed(
            "the guard reads the memory of the edited repository, and a shared root belongs to none",
            hint="create the memory there: jidomem init; then leave out --root, and unset JIDOMEM_ROOT",
            code="invalid_config",
        )
    loaded = settings.load(app.root, app.project)
    return _LocalGuard(loaded) if loaded.root.is_dir() else None


def _hook_answer(app: App, client: str, hook_input: Mapping[str, Any], session: str | None) -> Mapping[str, str]:
    """Return the answer to a client before an edit, or after a read."""
    local = _local_guard(app)
    if local is None:
        return {}
    event = hook_input.get("hook_event_name")
    edits = list(_edits(local, hook_input.get("tool_input") or {}))
    if event == "postToolUse":  # the tool has run: nothing can be stopped
        edits = [Edit(edit.path) for edit in edits]
    name = session or setup.session_of(hook_input) or f"day-{now():%Y-%m-%d}"
    verdict = local.guard.judge(edits, name, show_rules=event != "preToolUse")
    return {"context": verdict.text, "stop": stopped(verdict.stops), "warning": override_notice(verdict.stops)}


def _edits(local: _LocalGuard, tool_input: Any) -> Iterator[Edit]:
    """Yield the edits in the input of a tool; without a text for a file that is only read."""
    if isinstance(tool_input, str) and tool_input.startswith("{"):
        with suppress(ValueError):  # no JSON, so no file
            tool_input = decode_json(tool_input)
    if not isinstance(tool_input, Mapping):
        return
    if isinstance(patch := tool_input.get("command"), str) and "*** " in patch:
        for name, (before, after, is_new) in of_patch(patch).items():
            if (path := local.paths.of(name)) is not None:
                yield Edit(path, None if is_new else before, after, whole=is_new)
        return
    given = next((tool_input[name] for name in _TOUCHED if isinstance(tool_input.get(name), str)), None)
    if not given:
        return
    for path in local.paths.touched(given):
        yield _edit(path, local.paths.folder / path, tool_input)


def _edit(path: str, file: Path, tool_input: Mapping[str, Any]) -> Edit:
    content = next((tool_input[name] for name in _WRITTEN if isinstance(tool_input.get(name), str)), None)
    if content is not None:
        return Edit(path, text_of(file), content)
    if (changes := changes_of(tool_input)) is not None:
        return edited(path, file, changes)
    cell = tool_input.get("new_source")
    return Edit(path, None, cell, whole=False) if isinstance(cell, str) else Edit(path)


def _staged(local: _LocalGuard) -> list[Edit]:
    """Return the staged edits; texts are read only if a check needs them."""
    if local.guard.tree is None:
        raise InvalidRequest("no git repository in this folder or above it", hint="jidomem guard PATH")
    top, index = local.guard.tree.top, os.environ.get("GIT_INDEX_FILE")
    index = os.path.abspath(index) if index else None
    listed = git.read_git(top, "diff", "--cached", "--name-only", "-z", "--diff-filter=ACMRT", index=index) or b""
    named = filter(None, os.fsdecode(listed).split("\0"))
    names = {path: name for name in named if (path := local.paths.of(str(top / name)))}
    rules = local.guard.governing(list(names))

    def text(revision: str, name: str) -> str | None:
        data = git.read_git(top, "cat-file", "blob", f"{revision}:{name}", index=index)
        return None if data is None else data.decode("utf-8", "replace")

    return [
        Edit(path, text("HEAD", name), text("", name)) if any(r.checks for r in rules.get(path, ())) else Edit(path)
        for path, name in names.items()
    ]


def _override(app: App, local: Guard, paths: Sequence[str], session: str, reason: str) -> None:
    if not reason.strip():
        raise InvalidRequest("an override needs a reason", hint='--override "the old interface needs it"')
    if not local.override(paths, session, reason):
        raise InvalidRequest(
            "read_log = false in config.toml: no override is recorded", hint="edit the file without the hook"
        )
    for path in paths:
        app.info(f"the next edit of {path} is allowed")


def _print_verdict(app: App, verdict: Verdict) -> None:
    if app.json:
        click.echo(json.dumps(_plain(verdict), ensure_ascii=False))
    elif verdict.text:
        click.echo(verdict.text, nl=False)
    if verdict.stops and not app.json:
        click.echo(broken(verdict.stops), err=True)


def _plain(verdict: Verdict) -> dict[str, Any]:
    shown = [{"iri": r.item, "label": r.label, "summary": r.summary} for r in verdict.shown]
    return {"text": verdict.text, "shown": shown, "stops": [*map(_stop, verdict.stops)],
            "overridden": [*map(_stop, verdict.overridden)]}  # fmt: skip


def _stop(stop: Stop) -> dict[str, str]:
    return {"path": stop.path, "iri": stop.rule.item, "summary": stop.rule.summary, "reason": stop.reason}


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
            lambda hook_input: _begun(app, hook_input, agent or CLIENTS[hook].agent, role, budget_tokens),
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
    app: App, hook_input: Mapping[str, Any], agent: str, role: str | None, budget_tokens: int | None
) -> Mapping[str, Any]:
    """Return the briefing of *agent* as context; empty if there are no memories."""
    memory = app.open()
    if not memory.settings.root.is_dir() or memory.project not in memory.projects():
        return {}
    if hook_input.get("source") == "compact" and memory.read_log is not None:  # earlier rules were lost
        GuardLog(memory.read_log, memory.project).forget_shown(setup.session_of(hook_input) or "")
    result = memory.briefing(agent=agent, role=role, budget_tokens=budget_tokens)
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
    is_read = form in ("table", "md")
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
    count = len(memory.reader.ask("proposals", project=memory.project)) if memory.journal.knows(memory.project) else 0
    if pending:
        from jidomem_cli.errors import place  # imported late: it loads the modules of writing commands

        review = f"jidomem review{place(app)} accept"
        app.info(f"accept one: {review} {short(pending[0].item)}; all: {review} --all")
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
