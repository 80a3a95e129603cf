"""Open tasks held against an issue tracker: none is open here that is closed there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jidomem.decoding import decode_json
from jidomem.errors import Failed
from jidomem.govern.report import CLOSED_THERE, Found
from jidomem.govern.sources import Source
from jidomem.schema import Schema
from jidomem.terms import Term, bare
from jidomem.vocab import jido, local_name

_DONE = {jido("Completed"), jido("Abandoned")}
_STATES = ("OPEN", "CLOSED")
_COMMAND = "gh issue list --state all --limit 10000 --json number,url,state > issues.json"


def read_issues(path: str, data: bytes) -> dict[str, str]:
    """Return the state of each issue, OPEN or CLOSED, by its address; raise Failed for what is no such list."""
    try:
        rows = decode_json(data)
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(rows, list):
        raise _unreadable(path, "it is no list of issues")
    states: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        url, state = (row.get("url"), row.get("state")) if isinstance(row, dict) else (None, None)
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise _unreadable(path, f"issue {number} has no url")
        if not isinstance(state, str) or state.upper() not in _STATES:
            raise _unreadable(path, f"issue {number} is neither OPEN nor CLOSED but {state!r}")
        if states.setdefault(_same(url), state.upper()) != state.upper():
            raise _unreadable(path, f"issue {number} is both OPEN and CLOSED")
    return states


def tasks_closed(
    source: Source, schema: Schema, issues: Iterable[Mapping[str, str]]
) -> tuple[list[Found], int, list[str]]:
    """Return the tasks in force that are open here and closed there, how many name no issue, and whose is not listed.

    *issues* are lists as `read_issues` gives them.
    """
    states = {url: state for one in issues for url, state in one.items()}
    found: list[Found] = []
    unchecked: list[str] = []
    untracked = 0
    for task, status in _open_tasks(source, schema):
        urls = source.values(task, jido("trackedBy"))
        untracked += not urls
        for url in urls:
            state = states.get(_same(bare(url)))
            if state is None:
                unchecked.append(f"{bare(task)}: {bare(url)} is in no list of issues; list all: {_COMMAND}")
            elif state == "CLOSED":
                text = f"{local_name(status)} here, and {bare(url)} is closed: complete it, or open that again"
                found.append(Found(task, CLOSED_THERE, "violation", text, jido("trackedBy"), url))
    return found, untracked, unchecked


def _open_tasks(source: Source, schema: Schema) -> list[tuple[Term, Term]]:
    """Return the tasks in force that are not done, each with its status."""
    proposed = {task for task, _, status in source.of(jido("hasAssertionStatus")) if status == jido("Proposed")}
    tasks = []
    for node in sorted(source.types):
        if any(schema.is_a(cls, jido("Task")) for cls in source.types[node]) and node not in proposed:
            ends = [*source.values(node, jido("supersededBy")), *source.values(node, jido("invalidatedBy"))]
            statuses = source.values(node, jido("hasTaskStatus"))
            if not {*ends} - proposed and statuses and not _DONE & {*statuses}:
                tasks.append((node, statuses[0]))
    return tasks


def _same(url: str) -> str:
    """Return an address in the form in which two are compared."""
    return url.split("#", 1)[0].rstrip("/").casefold()


def _unreadable(path: str, what: str) -> Failed:
    return Failed(f"{path}: {what}", hint=f"make it with: {_COMMAND}", code="invalid_config")
