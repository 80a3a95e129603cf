"""`jidomem guard`: the rules for files, before they are edited."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jidomem.base.clock import now
from jidomem.base.json_values import decode_json
from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.guard.guard import (
    Edit,
    Guard,
    Verdict,
    broken,
    changes_of,
    edited,
    of_patch,
    override_notice,
    repair,
    rule_line,
    stopped,
    text_of,
)
from jidomem.guard.rules import Stop
from jidomem.repository import git
from jidomem.runtime import root_config, settings
from jidomem_cli.hooks import HOOK_CLIENTS, answer_hook, session_of
from jidomem_cli.options import App, Command, hook_option, pass_app
from jidomem_cli.paths import Paths

if TYPE_CHECKING:
    from jidomem.check.report import Waiver

#: The exit codes of a broken strict convention, and of one that was not checked, or may be missing.
_STOPPED, _UNCHECKED = 3, 1
#: The file and the line in a text on damage.
_DAMAGED = re.compile(r"\w+: (.+?\.ttl)(?::(\d+))?: ")
_TOUCHED = ("file_path", "notebook_path", "path", "target_file")
_WRITTEN = ("content", "contents")
_OF_JOURNAL = (
    "{path} belongs to the journal of the memory, whose files are never edited: the change would be damage. Record it:"
    ' jidomem remember "TEXT"; jidomem edit ID --supersede "TEXT"; jidomem edit ID --invalidate --reason "WHY"'
)


@click.command(cls=Command, formats=("text", "json", "github"))
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--staged", is_flag=True, help="Check the staged changes of git instead of PATHs.")
@click.option("--since", metavar="GITREF", help="Report only what changed since this git revision.")
@hook_option(HOOK_CLIENTS)
@click.option("--session", metavar="NAME", help="Session (default: $JIDOMEM_SESSION, then a daily one).")
@click.option("--override", metavar="REASON", help="Allow the next edit of PATH, for this reason.")
@click.option("--allow-unchecked", "allowed", multiple=True, metavar="ID",
              help="Pass although checks of this convention did not run; repeatable.")  # fmt: skip
@pass_app
def guard(
    app: App,
    paths: tuple[str, ...],
    staged: bool,
    since: str | None,
    hook: str | None,
    session: str | None,
    override: str | None,
    allowed: tuple[str, ...],
) -> None:
    """Show the rules for files before an edit: conventions, decisions, errors and lessons.

    Each rule is shown once per session, within 300 tokens. If the check of a strict convention fails, the reason is
    printed and the exit code is 3; if the check did not run, as its command is not trusted here, or if the journal is
    damaged, 1. Prints nothing for files without rules. A folder stands for the files below it that git does not ignore.
    --format github prints an annotation for each, and no rules. --since takes the files that changed since HEAD left
    that revision, all or those below PATHs, and reports what they add. Waivers with rule = "guard" in baseline.toml of
    the root let files break a rule until a day.

    Examples:
      jidomem guard src/a.py
      jidomem guard src/a.py --session morning --json
      jidomem guard .
      jidomem guard --override "the old interface needs it" src/a.py
    """
    app.json = app.json or app.format == "json"
    if (len(paths) > 0 or since is not None) + staged + (hook is not None) != 1 or (override is not None and not paths):
        raise InvalidRequest("give paths, --since, --staged or --hook", hint="name a file: jidomem guard src/a.py")
    if allowed and (hook is not None or override is not None):
        raise InvalidRequest("--allow-unchecked is for files to check", hint="leave out --hook and --override")
    if app.format is not None and (hook is not None or override is not None):
        raise InvalidRequest("--format is for files to check", hint="leave out --hook and --override")
    if since is not None and override is not None:
        raise InvalidRequest("--since is for files to check", hint="leave out --override")
    if hook is not None:
        answer_hook(app, hook, "guard", lambda hook_input: _hook_answer(app, hook_input, session))
        return
    if since is not None or app.format == "github":
        _refuse_missing(app)
    local = _local_guard(app, refuses_missing=True)
    if unchecked_here := _absence_warning(app):
        app.warn(unchecked_here)
    if local is None:
        return
    name = session or local.session or f"{'git' if staged else 'day'}-{now():%Y-%m-%d}"
    folder = local.paths.folder
    if override is not None:
        overridden = local.paths.others(paths)
        if folders := [path for path in overridden if (folder / path).is_dir()]:
            raise InvalidRequest(f"{folders[0]} is a folder: an override is for files", hint="name the file to edit")
        _override(app, [local, *_nested(app, local, overridden)], overridden, name, override)
        _warn_of_missing(app, folder, overridden)
        return
    given = local.paths.files(paths)

    def edits_in(each: _LocalGuard) -> list[Edit]:
        inside = given if each is local else [own for path in given if (own := each.paths.of(str(folder / path)))]
        if since is not None:
            return _changed_since(each, since, set(inside) if paths else None)
        return _staged(each) if staged else [Edit(path, file=each.paths.folder / path) for path in inside]

    edits = edits_in(local)
    judged = [(local, edits), *((each, edits_in(each)) for each in _nested(app, local, [edit.path for edit in edits]))]
    shows = app.format != "github"
    outcomes = [(each, each.guard.judge(some, name, show_rules=shows, show_with_stops=True)) for each, some in judged]
    verdict, waived = _together(local, [(each, *_waive(each, verdict)) for each, verdict in outcomes])
    _print_verdict(app, verdict, allowed, folder, waived, in_ci=since is not None)
    for text in verdict.damage:
        app.warn(f"a rule may be missing: {text}")
    _warn_of_unchecked(app, verdict, allowed)
    _warn_of_missing(app, folder, given)
    for stop, waiver in waived:
        by = f" by {waiver.by}" if waiver.by else ""
        app.info(f"{stop.path}: {stop.reason}; waived until {waiver.until}{by}: {waiver.reason}")
    for stop in verdict.overridden:
        app.info(f"{stop.path}: {stop.reason}; an override let this pass, and is used up")
    if verdict.earlier and paths and not app.json:
        files = shlex.join(name for name in paths if local.paths.others((name,)))
        app.info(f"{verdict.earlier} shown earlier in session {name}; all: jidomem governing {files}")
    unchecked = [stop for stop in verdict.unchecked if not _is_allowed(stop, allowed)]
    if verdict.stops or verdict.damage or unchecked:
        click.get_current_context().exit(_STOPPED if verdict.stops else _UNCHECKED)


class _LocalGuard:
    """The guard of the memory for the working directory, and its paths."""

    def __init__(self, loaded: settings.Settings) -> None:
        self.session, self.root, self.project = loaded.session, loaded.root, loaded.project
        self.guard = Guard(
            loaded, now, lambda command: root_config.may_run(settings.own_config(), loaded.root, command)
        )
        self.paths = Paths(loaded.root, self.guard.tree)


def _local_guard(app: App, *, refuses_missing: bool = False) -> _LocalGuard | None:
    """Return the guard of the memory here, None without one.

    With *refuses_missing*, raises NotFound for a named root or project that does not exist.
    """
    if settings.address_of(app.root) is not None:
        raise Failed(
            "the guard reads the memory of the edited repository, and a shared root belongs to none",
            hint="create the memory there: jidomem init; then leave out --root, and unset JIDOMEM_ROOT",
            code="invalid_config",
        )
    loaded = settings.load(app.root, app.project)
    is_named = loaded.requested is not None or loaded.found in settings.NAMED
    if refuses_missing and is_named and not (loaded.root / "projects" / loaded.project).is_dir():
        app.read().catch_up(loaded.project)
    if not loaded.root.is_dir() and loaded.found == settings.OWN:  # folders below may have memories
        return _LocalGuard(replace(loaded, root=Path.cwd() / settings.FOLDER, read_log=False))
    return _LocalGuard(loaded) if loaded.root.is_dir() else None


def _nested(app: App, local: _LocalGuard, paths: Iterable[str]) -> list[_LocalGuard]:
    """Return the guards of the memories in folders below that of *local* with some of *paths*; none if one is named."""
    if app.root is not None or os.environ.get("JIDOMEM_ROOT"):
        return []
    return [_LocalGuard(settings.load(root)) for root in local.paths.nested(paths)]


def _together(
    local: _LocalGuard, outcomes: Sequence[tuple[_LocalGuard, Verdict, Sequence[tuple[Stop, Waiver]]]]
) -> tuple[Verdict, list[tuple[Stop, Waiver]]]:
    """Return the outcomes of several guards as one, with paths from the folder of *local*."""

    def place(each: _LocalGuard) -> str:
        return "" if each is local else f"{each.paths.folder.relative_to(local.paths.folder).as_posix()}/"

    def placed(each: _LocalGuard, stop: Stop) -> Stop:
        return stop._replace(path=f"{place(each)}{stop.path}")

    def stops(name: str) -> tuple[Stop, ...]:
        return tuple(placed(each, stop) for each, verdict, _ in outcomes for stop in getattr(verdict, name))

    verdicts = [verdict for _, verdict, _ in outcomes]
    verdict = Verdict(
        "".join(
            f"In {where}: {verdict.text}" if (where := place(each)) and verdict.text else verdict.text
            for each, verdict, _ in outcomes
        ),
        tuple(rule for verdict in verdicts for rule in verdict.shown),
        stops("stops"),
        stops("overridden"),
        sum(verdict.earlier for verdict in verdicts),
        tuple(text for verdict in verdicts for text in verdict.damage),
        stops("unchecked"),
    )
    return verdict, [(placed(each, stop), waiver) for each, _, waived in outcomes for stop, waiver in waived]


def _refuse_missing(app: App) -> None:
    """Raise Failed `memory_missing` for a checkout without a memory of the working directory, or of a folder below."""
    loaded = settings.load(app.root, app.project)
    try:
        app.refuse_missing(loaded)
    except NotFound as missing:
        if loaded.found != settings.OWN or not git.read_git(Path.cwd(), "ls-files", "--", f"*/{settings.FOLDER}/*"):
            raise Failed(missing.detail, hint=missing.hint, code="memory_missing") from missing


def _absence_warning(app: App) -> str:
    """Return the warning that this checkout lacks the memory of the repository; empty where it has one."""
    absent = settings.absence(*settings.find(app.root))
    return f"not checked: {absent.detail}; {absent.hint}" if absent else ""


def _hook_answer(app: App, hook_input: Mapping[str, Any], session: str | None) -> Mapping[str, str]:
    """Return the answer to an agent's client before an edit, or after a read."""
    local = _local_guard(app)
    if local is None:
        return {}
    event = hook_input.get("hook_event_name")
    tool_input = _decoded(hook_input.get("tool_input"))
    edits = list(_edits(local, tool_input))
    judged = [(local, edits)]
    judged += [(each, list(_edits(each, tool_input))) for each in _nested(app, local, [edit.path for edit in edits])]
    if event != "postToolUse" and (
        name := next(filter(None, (_edited_journal(g, tool_input) for g, _ in judged)), None)
    ):
        return {"stop": _OF_JOURNAL.format(path=name)}
    if event == "postToolUse":  # the tool has run: nothing can be stopped
        judged = [(each, [Edit(edit.path) for edit in some]) for each, some in judged]
    name = session or session_of(hook_input) or f"day-{now():%Y-%m-%d}"
    verdicts = [(each, each.guard.judge(some, name, show_rules=event != "preToolUse"), ()) for each, some in judged]
    verdict, _ = _together(local, verdicts)
    damage = (f"jidomem guard: a rule may be missing: {text}" for text in verdict.damage)
    warning = "\n".join(filter(None, (override_notice(verdict.stops), *damage, _absence_warning(app))))
    return {"context": verdict.text, "stop": stopped(verdict.stops), "warning": warning}


def _decoded(tool_input: Any) -> Mapping[str, Any]:
    """Return the input of a tool, which some clients give as JSON; empty for any other value."""
    if isinstance(tool_input, str) and tool_input.startswith("{"):
        with suppress(ValueError):  # no JSON, so no file
            tool_input = decode_json(tool_input)
    return tool_input if isinstance(tool_input, Mapping) else {}


def _edited_journal(local: _LocalGuard, tool_input: Mapping[str, Any]) -> str | None:
    """Return the name of a file of the journal that a tool would write, None without one."""
    if isinstance(patch := tool_input.get("command"), str) and "*** " in patch:
        names = list(of_patch(patch))
    else:
        is_edit = any(isinstance(tool_input.get(name), str) for name in (*_WRITTEN, "new_source"))
        is_edit = is_edit or changes_of(tool_input) is not None
        names = [tool_input[name] for name in _TOUCHED if isinstance(tool_input.get(name), str)][:1] if is_edit else []
    return next(filter(local.paths.is_of_journal, names), None)


def _edits(local: _LocalGuard, tool_input: Mapping[str, Any]) -> Iterator[Edit]:
    """Yield the edits in the input of a tool; without a text for a file that is only read."""
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


def _changed_since(local: _LocalGuard, since: str, among: Collection[str] | None) -> list[Edit]:
    """Return the edits of the files that differ from the revision where HEAD left *since*; only those *among* paths.

    Raises InvalidRequest without a repository, for an unknown revision, and for one without a common ancestor.
    """
    from jidomem.journal.branches import Revision

    if local.guard.tree is None:
        raise InvalidRequest("no git repository in this folder or above it", hint="jidomem guard PATH")
    top = local.guard.tree.top
    base = Revision(top, since).shared(top).ref
    listed = git.read_git(top, "diff", "--name-status", "-z", "-M", "--diff-filter=ACMRT", "--no-ext-diff", base)
    if listed is None:
        raise InvalidRequest(f"git cannot compare with {since!r}", hint=f"try it: git diff --name-status {since}")
    words, pairs = iter(os.fsdecode(listed).split("\0")), list[tuple[str, str]]()
    for status in filter(None, words):
        old = next(words)
        pairs.append((old, next(words) if status[0] in "RC" else old))
    named = {path: pair for pair in pairs if (path := local.paths.of(str(top / pair[1]))) is not None}
    names = {path: pair for path, pair in named.items() if among is None or path in among}
    rules = local.guard.governing(list(names))

    def before(name: str) -> str | None:
        data = git.read_git(top, "cat-file", "blob", f"{base}:{name}")
        return None if data is None else data.decode("utf-8", "replace")

    return [
        Edit(path, before(old) if any(r.checks for r in rules.get(path, ())) else None, file=top / new)
        for path, (old, new) in names.items()
    ]


def _waive(local: _LocalGuard, verdict: Verdict) -> tuple[Verdict, list[tuple[Stop, Waiver]]]:
    """Return *verdict* without the stops that the baseline of the root waives today, and these."""
    from jidomem.runtime.governance_api import baseline_of_root

    baseline, today = baseline_of_root(local.root) if verdict.stops else None, now().date()
    waivers = [one for one in baseline.waivers if one.project in ("", local.project)] if baseline else []
    waived = [
        (stop, waiver)
        for stop in verdict.stops
        if (waiver := next((one for one in waivers if one.allows(stop.rule.item, stop.path, today)), None))
    ]
    without = {id(stop) for stop, _ in waived}
    ended = {
        id(stop): one for stop in verdict.stops for one in waivers if one.allows(stop.rule.item, stop.path, date.min)
    }
    stops = (
        stop._replace(reason=f"{stop.reason}; a waiver of it ended on {ended[id(stop)].until}")
        if id(stop) in ended
        else stop
        for stop in verdict.stops
        if id(stop) not in without
    )
    return verdict._replace(stops=tuple(stops)), waived


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


def _override(app: App, guards: Sequence[_LocalGuard], paths: Sequence[str], session: str, reason: str) -> None:
    if not reason.strip():
        raise InvalidRequest("an override needs a reason", hint='--override "the old interface needs it"')
    files = [guards[0].paths.folder / path for path in paths]
    own_paths = ([own for file in files if (own := each.paths.of(str(file)))] for each in guards)
    done = [each.guard.override(own, session, reason) for each, own in zip(guards, own_paths, strict=True)]
    if not any(done):
        raise InvalidRequest(
            "read_log = false in config.toml: no override is recorded", hint="edit the file without the hook"
        )
    for path in paths:
        app.info(f"the next edit of {path} is allowed")


def _warn_of_missing(app: App, folder: Path, paths: Sequence[str]) -> None:
    for path in paths:
        if not (folder / path).exists():
            app.warn(f"there is no file {path}: it is taken as a new one")


def _is_allowed(stop: Stop, allowed: Sequence[str]) -> bool:
    """Return whether *allowed* has the id of the convention of *stop*, short or whole.

    A check that waits for a curator fails no job: nobody who may decide asked for it.
    """
    names = {stop.rule.item, stop.rule.item.rpartition("/")[2], stop.rule.short_id}
    return stop.rule.waits or not names.isdisjoint(allowed)


def _warn_of_unchecked(app: App, verdict: Verdict, allowed: Sequence[str]) -> None:
    """Name each check that did not run, with the number of its files, and each id that allows none."""
    files = Counter(
        (stop.rule.short_id, stop.reason, _is_allowed(stop, allowed), stop.rule.waits) for stop in verdict.unchecked
    )
    for (short_id, reason, is_allowed, is_waiting), count in files.items():
        ending = " (allowed)" if is_allowed else f"; or pass without it: --allow-unchecked {short_id}"
        ending = "" if is_waiting else ending
        app.warn(f"not checked: {count} file{'s' * (count != 1)}, for {short_id}: {reason}{ending}")
    for name in allowed:
        if not any(_is_allowed(stop, (name,)) for stop in verdict.unchecked):
            app.warn(f"--allow-unchecked {name} allows nothing: no check of such a convention was left out")


def _print_verdict(
    app: App,
    verdict: Verdict,
    allowed: Sequence[str],
    folder: Path,
    waived: Sequence[tuple[Stop, Waiver]],
    *,
    in_ci: bool,
) -> None:
    """Print the verdict in the requested format; *folder* is that of the paths."""
    if app.json:
        rows = [{**_stop(stop), "waived": waiver.reason, "until": f"{waiver.until}", "by": waiver.by}
                for stop, waiver in waived]  # fmt: skip
        click.echo(json.dumps({**_plain(verdict, allowed), "waived": rows}, ensure_ascii=False))
        return
    if app.format == "github":
        for line in _annotations(verdict, allowed, folder, waived):
            click.echo(line)
        return
    if verdict.text:
        click.echo(verdict.text, nl=False)
    if verdict.stops:
        click.echo(broken(verdict.stops, in_ci=in_ci), err=True)


def _annotations(
    verdict: Verdict, allowed: Sequence[str], folder: Path, waived: Iterable[tuple[Stop, Waiver]]
) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each finding, with the path from the working directory."""
    from jidomem.check.report import command

    findings = [(stop, "error", stop.reason, f"\n{repair(stop)}") for stop in verdict.stops]
    findings += [(stop, "notice", f"{stop.reason}; an override let this pass", "") for stop in verdict.overridden]
    findings += [(stop, "notice", f"{stop.reason}; waived until {one.until}: {one.reason}", "") for stop, one in waived]
    findings += [
        (stop, "warning" if _is_allowed(stop, allowed) else "error", f"not checked: {stop.reason}", "")
        for stop in verdict.unchecked
    ]
    for stop, kind, reason, repairs in findings:
        text = f"{reason}\n{rule_line(stop.rule)}{repairs}"
        yield command(kind, "jidomem guard", text, file=os.path.relpath(folder / stop.path), line=stop.line)
    for text in verdict.damage:
        place = _DAMAGED.match(text)
        file, line = (os.path.relpath(place[1]), place[2] and int(place[2])) if place else (None, None)
        yield command("error", "jidomem guard", f"a rule may be missing: {text}", file=file, line=line or None)


def _plain(verdict: Verdict, allowed: Sequence[str]) -> dict[str, Any]:
    shown = [{"iri": r.item, "label": r.label, "summary": r.summary} for r in verdict.shown]
    return {
        "text": verdict.text,
        "shown": shown,
        "stops": [*map(_stop, verdict.stops)],
        "overridden": [*map(_stop, verdict.overridden)],
        "unchecked": [{**_stop(stop), "allowed": _is_allowed(stop, allowed)} for stop in verdict.unchecked],
        "damage": [*verdict.damage],
    }


def _stop(stop: Stop) -> dict[str, str]:
    return {"path": stop.path, "iri": stop.rule.item, "summary": stop.rule.summary, "reason": stop.reason}
