"""What governs files: one memory as the guard has it, and where it is found.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

#: What is put before an agent, the most binding first; the rest of what governs a file is for `jidomem governing`.
FORCES = ("strict", "decision", "open error", "lesson", "past error")
_ENDING = re.compile(r"\.[^./]*$")


@dataclass(frozen=True, slots=True)
class Check:
    """What a convention has a machine look for: a pattern that it `forbids` or `requires`, or a `command` to pass."""

    kind: Literal["forbids", "requires", "command"]
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One memory in force that governs files: what it says, how binding it is, from when until when, and its checks.

    A check counts once a curator has accepted it: `waits` says that one has not been.
    """

    item: str
    force: str
    label: str
    summary: str
    recorded: str
    agent: str
    valid_from: str = ""
    valid_until: str = ""
    checks: tuple[Check, ...] = ()
    waits: bool = False

    def holds(self, now: str) -> bool:
        """Return whether it holds in the world at *now*."""
        return self.valid_from <= now and (not self.valid_until or now < self.valid_until)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a project, the newest first, each with the texts that name what it governs: `""` is every file.

    `earlier` are the names that files had when a memory about them was written, by the name each has now.
    """

    rules: tuple[tuple[Rule, tuple[str, ...]], ...] = ()
    earlier: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a file is not to be edited so: the convention, and what breaks it."""

    path: str
    rule: Rule
    reason: str


def places(path: str) -> Iterator[str]:
    """Yield each text by which a memory may name the file *path*: itself, the folders above, the module it holds.

    >>> sorted(set(places("src/a.py")))[:5]
    ['./src', './src/', './src/a.py', './src/a.py/', 'a']
    """
    parts = path.split("/")
    for depth in range(len(parts), 0, -1):
        place = "/".join(parts[:depth])
        for here in ("", "./"):
            yield from (f"{here}{place}", f"{here}{place}/")
    plain = _ENDING.sub("", path)
    for root in ("", "src/", "lib/"):
        yield plain.removeprefix(root).replace("/", ".")
