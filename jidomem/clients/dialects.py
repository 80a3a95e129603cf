"""What a client tells a hook, and how it is answered: each in its own words.  Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jidomem.decoding import decode_json
from jidomem.errors import InvalidRequest


def told(text: str) -> dict[str, Any]:
    """Return what a client says to a hook; raises InvalidRequest `malformed_json` for what is no JSON object."""
    try:
        found = decode_json(text)
    except ValueError as error:
        raise InvalidRequest(f"a hook is told a JSON object, not {text[:40]!r}: {error}",
                             hint="it is called by the client: jidomem setup claude",
                             code="malformed_json") from error  # fmt: skip
    if not isinstance(found, dict):
        raise InvalidRequest(f"a hook is told a JSON object, not {text[:40]!r}",
                             hint="it is called by the client: jidomem setup claude",
                             code="malformed_json")  # fmt: skip
    return found


def folder_of(said: Mapping[str, Any]) -> str | None:
    """Return the folder a client works in, None where it does not say."""
    roots = said.get("workspace_roots")
    named = roots[0] if isinstance(roots, list) and roots else said.get("cwd")
    return named if isinstance(named, str) and named else None


def session_of(said: Mapping[str, Any]) -> str | None:
    """Return by what name a client calls its session, None where it does not say."""
    named = said.get("session_id") or said.get("conversation_id")
    return named if isinstance(named, str) else None


def answer(client: str, said: Mapping[str, Any], *, context: str = "", stop: str = "", warning: str = "") -> str:
    """Return what answers *client* what it *said*: a *context* for its agent, why to *stop*, or a *warning*.

    Nothing where there is nothing to tell. A warning is for whoever sits before the client.
    """
    if client == "cursor":
        return _of_cursor(said, context, stop, warning)
    own: dict[str, Any] = {"additionalContext": context} if context else {}
    if stop:
        own |= {"permissionDecision": "deny", "permissionDecisionReason": stop}
    event = {"hookEventName": said.get("hook_event_name", "PreToolUse")}
    found: dict[str, Any] = {"hookSpecificOutput": {**event, **own}} if own else {}
    return _written({**found, **({"systemMessage": warning} if warning else {})})


def _of_cursor(said: Mapping[str, Any], context: str, stop: str, warning: str) -> str:
    found: dict[str, Any] = {}
    if stop:
        found = {"permission": "deny", "user_message": stop, "agent_message": f"{stop}\n{context}".rstrip()}
    elif context and said.get("hook_event_name") != "preToolUse":  # which tells an agent only why it is stopped
        found = {"additional_context": context}
    return _written({**found, **({"user_message": warning} if warning and not stop else {})})


def _written(found: Mapping[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=True) if found else ""
