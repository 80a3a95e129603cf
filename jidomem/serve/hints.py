"""Hints in the words of an interface: a command of jidomem becomes the request, or the tool, that does the same.

The library names commands in its hints. Over HTTP and MCP a command is named only where nothing but a shell can put a
refusal right, and the hint then says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

_SHELL = "in a shell"
_ANY_COMMAND = re.compile(
    r"\bjidomem (?=(?:ask|backup|check|conflicts|import|init|log|mcp|ontology|policy|redact|reindex|restore|review"
    r"|revise|root|serve|session|show|submit|token|trust|verify)\b)"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command, as the pattern of how hints write it, with the request and the call that do the same.

    Both are templates of the groups of the pattern; `PROJECT` stands for the project. A call that is empty is no tool.
    """

    pattern: str
    request: str
    call: str = ""


_COMMANDS: Sequence[Command] = (
    Command(
        r"jidomem session start (\S+) --continues (\S+)",
        r'POST /projects/PROJECT/sessions {"name": "\1", "continues": "\2"}',
    ),
    Command(r"jidomem session start (\S+)", r'POST /projects/PROJECT/sessions {"name": "\1"}'),
    Command(r"jidomem session phase\|pause\|resume\|close", "PATCH /projects/PROJECT/sessions/NAME"),
    Command(r"jidomem session list --all", "GET /projects/PROJECT/sessions?all=1"),
    Command(r"jidomem session list", "GET /projects/PROJECT/sessions", "the tool ask with name active-sessions"),
    Command(r"jidomem ask timeline", "GET /projects/PROJECT/queries/timeline", "the tool ask with name timeline"),
    Command(r"jidomem ask\b(?! [a-z])", "GET /projects/PROJECT/queries", "the tool ask without a name"),
    Command(r"jidomem log\b", "GET /projects/PROJECT/journal", "the tool ask with name commits"),
    Command(r"jidomem show (\S+)", r"GET /projects/PROJECT/memories/\1", r"the tool why with id \1"),
    Command(
        r"jidomem governing (\S+)",
        r"GET /projects/PROJECT/governing?file=\1",
        r'the tool ask with name governing and params {"file": "\1"}',
    ),
    Command(
        r"jidomem submit FILE, or memory\.writer\.submit_intent\(\.\.\.\)",
        "POST /projects/PROJECT/intents",
        "the tool remember",
    ),
)


def for_requests(values: Mapping[str, Any], project: str) -> dict[str, Any]:
    """Return the *values* of an error with the commands in its hints as requests about *project*."""
    return _translated(values, [(each.pattern, each.request) for each in _COMMANDS], project)


def for_tools(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *values* of an error with the commands in its hints as calls of tools."""
    return _translated(values, [(each.pattern, each.call) for each in _COMMANDS if each.call], "")


def _translated(values: Mapping[str, Any], table: Sequence[tuple[str, str]], project: str) -> dict[str, Any]:
    found = {**values, "hint": _hint(values["hint"], table, project)}
    if "violations" in values:
        found["violations"] = [{**each, "hint": _hint(each["hint"], table, project)} for each in values["violations"]]
    return found


def _hint(hint: str, table: Sequence[tuple[str, str]], project: str) -> str:
    """Return *hint* with its commands by the *table*; those that are left are said to be for a shell.

    >>> _hint("ask a curator; the rules: jidomem policy show", [], "p")
    'ask a curator; the rules: in a shell, jidomem policy show'
    """
    if "jidomem " not in hint:
        return hint
    for pattern, instead in table:
        while found := re.search(pattern, hint):
            words = found.expand(instead).replace("PROJECT", quote(project))
            hint = hint[: found.start()] + words + hint[found.end() :]
    if _SHELL in hint:
        return hint
    if "run: jidomem " in hint:
        return hint.replace("run: jidomem ", f"run {_SHELL}: jidomem ")
    return _ANY_COMMAND.sub(f"{_SHELL}, jidomem ", hint)
