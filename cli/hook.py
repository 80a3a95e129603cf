"""What verbs share that a client calls as a hook: they hear it out, answer in its words, and never fail it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import click

from jidomem.clients import dialects
from jidomem.errors import InvalidRequest, JidomemError, TooLarge
from jidomem_cli.door import Door

CLIENTS = ("claude", "cursor", "codex")
_LARGEST = 64 * 1024 * 1024


def answering(door: Door, client: str, verb: str, found: Callable[[Mapping[str, Any]], Mapping[str, str]]) -> None:
    """Print in the words of *client* what is *found* of what it tells on standard input; silent where nothing is.

    The client goes on whatever happens: what *verb* could not do is told to whoever sits before it.
    """
    if door.root is not None or door.json or door.as_of is not None:
        raise InvalidRequest(f"{verb} --hook is called by a client", hint=f"jidomem setup {client}")
    said: Mapping[str, Any] = {}
    try:
        said = _heard()
        with suppress(OSError):
            os.chdir(os.environ.get("CLAUDE_PROJECT_DIR") or dialects.folder_of(said) or ".")
        answer = dialects.answer(client, said, **found(said))
    except JidomemError as error:
        answer = dialects.answer(client, said, warning=f"jidomem {verb}: {error.detail} ({error.hint})")
    if answer:
        click.echo(answer)


def _heard() -> dict[str, Any]:
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        what = f"a hook is told at most {_LARGEST:,} bytes"
        raise TooLarge(what, hint="make smaller edits", code="payload_too_large")
    return dialects.told(data.decode("utf-8", "replace"))
