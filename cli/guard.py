"""`jidomem guard`: what governs files, before they are edited."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from jidomem.clients import dialects
from jidomem.clock import now
from jidomem.decoding import decode_json
from jidomem.errors import Failed, InvalidRequest
from jidomem.guard.edits import Edit, changes_of, edited, of_patch, text_of
from jidomem.guard.guard import Guard, Verdict
from jidomem.guard.rule import Stop
from jidomem.guard.telling import stopped
from jidomem.repository import git
from jidomem.runtime import settings, trust
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.hook import CLIENTS, answering
from jidomem_cli.paths import Paths

_STOPPED = 3
_TOUCHED = ("file_path", "notebook_path", "path", "target_file")
_WRITTEN = ("content", "contents")


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--staged", is_flag=True, help="What is to be committed, instead of paths.")
@click.option("--hook", type=click.Choice(CLIENTS), help="Answer a client that calls this before an edit.")
@click.option("--session", metavar="NAME", help="What was shown in it is not shown again; else one a day.")
@click.option("--override", metavar="REASON", help="Let the next edit of PATH go ahead, whatever stops it.")
@pass_door
def guard(
    door: Door, paths: tuple[str, ...], staged: bool, hook: str | None, session: str | None, override: str | None
) -> None:
    """Tell what governs files, before they are edited: strict conventions, decisions and past errors.

    Each is told once a session, in 300 tokens. Where the check of a strict convention fails the reason is told, and the
    exit code is 3. Silent where nothing governs.

    Examples:
      jidomem guard src/a.py
      jidomem guard src/a.py --session morning --json
      jidomem guard --override "the old interface needs it" src/a.py
    """
    if (len(paths) > 0) + staged + (hook is not None) != 1 or (override is not None and not paths):
        raise InvalidRequest("a path is needed, or --staged, or --hook", hint="name a file: jidomem guard src/a.py")
    if hook is not None:
        answering(door, hook, "guard", lambda said: _of_hook(door, hook, said, session))
        return
    post = _post(door)
    if post is None:
        return
    name = session or post.session or f"{'git' if staged else 'day'}-{now():%Y-%m-%d}"
    if override is not None:
        _override(door, post.guard, post.paths.others(paths), name, override)
        return
    folder = post.paths.folder
    edits = _staged(post) if staged else [Edit(path, None, text_of(folder / path)) for path in post.paths.others(paths)]
    _tell(door, post.guard.judge(edits, name))


class _Post:
    """The guard of the memory that is found from here, and where its paths begin."""

    def __init__(self, found: settings.Settings) -> None:
        self.session = found.session
        self.guard = Guard(found, now, lambda command: trust.may_run(settings.own_config(), found.root, command))
        self.paths = Paths(found.root, self.guard.tree)


def _post(door: Door) -> _Post | None:
    if settings.address_of(door.root) is not None:
        raise Failed(
            "the guard reads the memory of the repository that is edited, and a shared root is of none",
            hint="keep what governs its files there: jidomem init; then leave out --root, and unset JIDOMEM_ROOT",
            code="invalid_config",
        )
    found = settings.load(door.root, door.project)
    return _Post(found) if found.root.is_dir() else None


def _of_hook(door: Door, client: str, said: Mapping[str, Any], session: str | None) -> Mapping[str, str]:
    """Return what a client is answered before it edits, or after it read."""
    post = _post(door)
    if post is None:
        return {}
    event = said.get("hook_event_name")
    edits = list(_edits(post, said.get("tool_input") or {}))
    if event == "postToolUse":  # nothing is there to be stopped any more
        edits = [Edit(edit.path) for edit in edits]
    name = session or dialects.session_of(said) or f"day-{now():%Y-%m-%d}"
    verdict = post.guard.judge(edits, name, tells=event != "preToolUse")
    return {"context": verdict.text, "stop": stopped(verdict.stops)}


def _edits(post: _Post, told: Any) -> Iterator[Edit]:
    """Yield what the input of a tool makes of files; without a text for one that is only looked at."""
    if isinstance(told, str) and told.startswith("{"):
        with suppress(ValueError):  # what is no JSON names no file
            told = decode_json(told)
    if not isinstance(told, Mapping):
        return
    if isinstance(patch := told.get("command"), str) and "*** " in patch:
        for name, (before, after, is_new) in of_patch(patch).items():
            if (path := post.paths.of(name)) is not None:
                yield Edit(path, None if is_new else before, after, whole=is_new)
        return
    given = next((told[name] for name in _TOUCHED if isinstance(told.get(name), str)), None)
    if not given:
        return
    for path in post.paths.touched(given):
        yield _edit(path, post.paths.folder / path, told)


def _edit(path: str, file: Path, told: Mapping[str, Any]) -> Edit:
    content = next((told[name] for name in _WRITTEN if isinstance(told.get(name), str)), None)
    if content is not None:
        return Edit(path, text_of(file), content)
    if (changes := changes_of(told)) is not None:
        return edited(path, file, changes)
    cell = told.get("new_source")
    return Edit(path, None, cell, whole=False) if isinstance(cell, str) else Edit(path)


def _staged(post: _Post) -> list[Edit]:
    """Return what is to be committed; texts are read only where a check needs them."""
    if post.guard.tree is None:
        raise InvalidRequest("there is no repository here, so nothing is staged", hint="jidomem guard PATH")
    top, index = post.guard.tree.top, os.environ.get("GIT_INDEX_FILE")
    index = os.path.abspath(index) if index else None
    listed = git.found(top, "diff", "--cached", "--name-only", "-z", "--diff-filter=ACMRT", index=index) or b""
    named = filter(None, os.fsdecode(listed).split("\0"))
    names = {path: name for name in named if (path := post.paths.of(str(top / name)))}
    rules = post.guard.governing(list(names))

    def text(revision: str, name: str) -> str | None:
        data = git.found(top, "cat-file", "blob", f"{revision}:{name}", index=index)
        return None if data is None else data.decode("utf-8", "replace")

    return [
        Edit(path, text("HEAD", name), text("", name)) if any(r.checks for r in rules.get(path, ())) else Edit(path)
        for path, name in names.items()
    ]


def _override(door: Door, post: Guard, paths: Sequence[str], session: str, reason: str) -> None:
    if not reason.strip():
        raise InvalidRequest("an override says why", hint='--override "the old interface needs it"')
    if not post.let(paths, session, reason):
        raise InvalidRequest("read_log = false in config.toml keeps nothing", hint="edit the file without the hook")
    for path in paths:
        door.say(f"the next edit of {path} goes ahead")


def _tell(door: Door, verdict: Verdict) -> None:
    if door.json:
        click.echo(json.dumps(_plain(verdict), ensure_ascii=False))
    elif verdict.text:
        click.echo(verdict.text, nl=False)
    if verdict.stops and not door.json:
        click.echo(stopped(verdict.stops), err=True)
    if verdict.stops:
        click.get_current_context().exit(_STOPPED)


def _plain(verdict: Verdict) -> dict[str, Any]:
    shown = [{"iri": r.item, "label": r.label, "summary": r.summary} for r in verdict.shown]
    return {"text": verdict.text, "shown": shown, "stops": [*map(_stop, verdict.stops)],
            "overridden": [*map(_stop, verdict.overridden)]}  # fmt: skip


def _stop(stop: Stop) -> dict[str, str]:
    return {"path": stop.path, "iri": stop.rule.item, "summary": stop.rule.summary, "reason": stop.reason}
