"""The checks a machine makes of an edit: a pattern within a stated time, and a command its user has let run."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeVar

from jidomem.guard.edits import Edit
from jidomem.guard.rule import Check

#: How long a pattern may be, and how long one may take, and a command.
LONGEST, PATTERN_SECONDS, COMMAND_SECONDS = 1_000, 1.0, 5.0
_SHOWN = 200
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """What a check came to: `broken` says what is wrong with the edit, `unjudged` why it could not be made."""

    broken: str | None = None
    unjudged: str | None = None


class _Overdue(Exception):
    """What a pattern is interrupted by."""


def judge(check: Check, edit: Edit, folder: Path, may_run: Callable[[str], bool]) -> Found:
    """Return what *check* comes to for *edit* in *folder*; an edit breaks what it did not break before.

    A command is run where *may_run* says so. A pattern is looked for in the main thread alone, which can be
    interrupted.
    """
    if edit.after is None:
        return Found()
    if check.kind == "command":
        return _by_command(check.text, edit, folder, may_run)
    try:
        if len(check.text) > LONGEST:
            raise ValueError(f"it has more than {LONGEST:,} signs")
        with _in_time(PATTERN_SECONDS):
            pattern = re.compile(check.text, re.MULTILINE)
            return _by_pattern(check.kind == "forbids", pattern, edit)
    except (ValueError, re.error, RecursionError, OverflowError, MemoryError) as error:
        return Found(unjudged=f"the pattern {_cut(check.text)} is none: {error}")
    except _Overdue:
        return Found(unjudged=f"the pattern {_cut(check.text)} was not judged in {PATTERN_SECONDS:g} s")


def _by_pattern(forbids: bool, pattern: re.Pattern[str], edit: Edit) -> Found:
    after, before = edit.after or "", edit.before or ""
    if not forbids:
        missing = edit.whole and pattern.search(after) is None
        was_missing = edit.before is not None and pattern.search(before) is None
        return (
            Found(f"it would have nothing that fits {_cut(pattern.pattern)}")
            if missing and not was_missing
            else Found()
        )
    matches = list(pattern.finditer(after))
    if len(matches) <= sum(1 for _ in pattern.finditer(before)):
        return Found()
    held = before.splitlines()
    lines = [(after.count("\n", 0, match.start()) + 1, match) for match in matches]
    texts = after.splitlines()
    number, match = next(
        (each for each in lines if texts[each[0] - 1 : each[0]] != [] and texts[each[0] - 1] not in held), lines[0]
    )
    place = f"line {number} has" if edit.whole else "it puts in"
    return Found(f"{place} {_cut(match[0])}, which {_cut(pattern.pattern)} forbids")


def _by_command(command: str, edit: Edit, folder: Path, may_run: Callable[[str], bool]) -> Found:
    if not edit.whole:
        return Found(unjudged=f"{_cut(command)} is not run on a part of a file")
    if not may_run(command):
        quoted = shlex.quote(command)
        return Found(unjudged=f"{_cut(command)} is not run before you let it: jidomem trust . --command {quoted}")
    code, words = _run(command, edit.path, edit.after or "", folder)
    if code is None:
        return Found(unjudged=f"{_cut(command)} {words}")
    if code == 0 or (edit.before is not None and _run(command, edit.path, edit.before, folder)[0] not in (0, None)):
        return Found()
    return Found(f"{_cut(command)} ends with {code}: {_cut(words)}")


def _run(command: str, path: str, text: str, folder: Path) -> tuple[int | None, str]:
    """Return how *command* ended and its first words, of a file at *path* with *text*; None where it did not end."""
    try:
        words = [path if word == "{}" else word for word in shlex.split(command)]
        done = subprocess.run(words, cwd=folder, input=text.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"did not end in {COMMAND_SECONDS:g} s"
    except (OSError, ValueError, IndexError) as error:
        return None, f"could not be run: {error}"
    return done.returncode, done.stdout.decode("utf-8", "replace").strip()


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    """Interrupt the block after so many seconds: the engine of patterns looks for signals while it searches."""

    def on_alarm(number: int, frame: FrameType | None) -> None:
        raise _Overdue

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _cut(text: str) -> str:
    from jidomem.govern.quoted import quoted

    return quoted(text, _SHOWN)[0]
