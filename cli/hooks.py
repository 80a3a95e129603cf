"""The hooks that clients call, in their formats: `jidomem guard --hook` and `jidomem agent briefing --hook`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import click

from jidomem.base.json_values import decode_json
from jidomem.errors import InvalidRequest, JidomemError, TooLarge
from jidomem_cli.options import App

HOOK_CLIENTS = ("claude", "cursor", "codex")
_LARGEST = 64 * 1024 * 1024

Answer = Callable[[Mapping[str, Any]], Mapping[str, str]]


def answer_hook(app: App, client: str, command: str, answer_of: Answer) -> None:
    """Print the answer to the hook input on standard input, in the format of *client*; nothing if it is empty.

    The client continues in any case: an error becomes a warning of *command* in the answer.
    """
    if app.root is not None or app.json or app.as_of is not None:
        raise InvalidRequest(f"{command} --hook is called by a client", hint=f"jidomem setup {client}")
    hook_input: Mapping[str, Any] = {}
    try:
        hook_input = _read_hook_input()
        with suppress(OSError):
            os.chdir(os.environ.get("CLAUDE_PROJECT_DIR") or folder_of(hook_input) or ".")
        answer = hook_answer(client, hook_input, **answer_of(hook_input))
    except JidomemError as error:
        answer = hook_answer(client, hook_input, warning=f"jidomem {command}: {error.detail} ({error.hint})")
    if answer:
        click.echo(answer)


def _read_hook_input() -> dict[str, Any]:
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        what = f"a hook event has at most {_LARGEST:,} bytes"
        raise TooLarge(what, hint="make smaller edits", code="payload_too_large")
    return parse_hook_input(data.decode("utf-8", "replace"))


def parse_hook_input(text: str) -> dict[str, Any]:
    """Return the JSON object that a client sends to a hook; raise InvalidRequest `malformed_json`."""
    try:
        event, reason = decode_json(text), ""
    except ValueError as error:
        event, reason = None, f": {error}"
    if not isinstance(event, dict):
        raise InvalidRequest(
            f"a hook gets a JSON object, not {text[:40]!r}{reason}",
            hint="it is called by the client: jidomem setup claude",
            code="malformed_json",
        )
    return event


def folder_of(event: Mapping[str, Any]) -> str | None:
    """Return the working folder of a client, None if it is not given."""
    roots = event.get("workspace_roots")
    named = roots[0] if isinstance(roots, list) and roots else event.get("cwd")
    return named if isinstance(named, str) and named else None


def session_of(event: Mapping[str, Any]) -> str | None:
    """Return the session id of a client, None if it is not given."""
    named = event.get("session_id") or event.get("conversation_id")
    return named if isinstance(named, str) else None


def hook_answer(client: str, event: Mapping[str, Any], *, context: str = "", stop: str = "", warning: str = "") -> str:
    """Return the answer to an *event* of *client*: a *context* for its agent, the reason to *stop*, or a *warning*.

    It is empty without any text. A warning is for the user of the client.
    """
    if client == "cursor":
        return _cursor_answer(event, context, stop, warning)
    own: dict[str, Any] = {"additionalContext": context} if context else {}
    if stop:
        own |= {"permissionDecision": "deny", "permissionDecisionReason": stop}
    named = {"hookEventName": event.get("hook_event_name", "PreToolUse")}
    reply: dict[str, Any] = {"hookSpecificOutput": {**named, **own}} if own else {}
    return _written({**reply, **({"systemMessage": warning} if warning else {})})


def _cursor_answer(event: Mapping[str, Any], context: str, stop: str, warning: str) -> str:
    reply: dict[str, Any] = {}
    if stop:
        messages = {"user_message": f"{stop}\n{warning}".rstrip(), "agent_message": f"{stop}\n{context}".rstrip()}
        reply = {"permission": "deny", **messages}
    elif context and event.get("hook_event_name") != "preToolUse":  # it shows no text unless the edit is stopped
        reply = {"additional_context": context}
    return _written({**reply, **({"user_message": warning} if warning and not stop else {})})


def _written(message: Mapping[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=True) if message else ""
