"""The log of a server that a verb starts: the options that say how it is written, and where it goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from jidomem_cli.door import Door

if TYPE_CHECKING:
    from jidomem.serve.log import Log

FORMS, LEVELS = ("json", "text"), ("debug", "info", "warning", "error")
F = TypeVar("F", bound=Callable[..., Any])


def log_options(verb: F) -> F:
    """Return *verb* with --log-format and --log-level."""
    at_least, on_terminal = (
        "What is logged at least; info when not said.",
        "Text on a terminal, else JSON, when not said.",
    )
    leveled = click.option("--log-level", "level", type=click.Choice(LEVELS), help=at_least)(verb)
    return click.option("--log-format", "form", type=click.Choice(FORMS), help=on_terminal)(leveled)


def open_log(door: Door, form: str | None, level: str | None) -> Log:
    """Return the log of a server, on standard error."""
    from jidomem.serve.log import Log

    return Log(_own_stream(), form or ("text" if sys.stderr.isatty() else "json"), level or _level(door))


def _own_stream() -> TextIO:
    """Return standard error for the log alone: who does not read it holds up nobody else who writes there."""
    return open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")


def _level(door: Door) -> str:
    return "warning" if door.quiet else "debug" if door.verbose else "info"
