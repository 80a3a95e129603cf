"""The hooks that clients call: `jidomem guard --hook` and `jidomem agent briefing --hook`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import click

from jidomem.clients import hooks
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
            os.chdir(os.environ.get("CLAUDE_PROJECT_DIR") or hooks.folder_of(hook_input) or ".")
        answer = hooks.answer(client, hook_input, **answer_of(hook_input))
    except JidomemError as error:
        answer = hooks.answer(client, hook_input, warning=f"jidomem {command}: {error.detail} ({error.hint})")
    if answer:
        click.echo(answer)


def _read_hook_input() -> dict[str, Any]:
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        what = f"a hook event has at most {_LARGEST:,} bytes"
        raise TooLarge(what, hint="make smaller edits", code="payload_too_large")
    return hooks.parse_hook_input(data.decode("utf-8", "replace"))
