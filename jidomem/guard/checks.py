"""The checks a machine makes of an edit: a pattern within a stated time, and a command its user has let run."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from jidomem.guard.edits import Edit
from jidomem.guard.rule import Check
from jidomem.patterns import Unsearchable, compiled

#: How long looking for all that fits a pattern may take, and a command.
PATTERN_SECONDS, COMMAND_SECONDS = 1.0, 5.0
_SHOWN = 200
#: How tools write the line of an error, the surest first. Each names a line by itself, wherever it stands.
_ERROR_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        r"E   +\S",  # pytest
        r"(?:FAILED|ERROR) \S+::",
        r"\S.*:\d+(?::\d+)?: (?:fatal )?error\b",  # gcc, clang, javac, mypy
        r"\S.*\(\d+,\d+\): error\b",  # tsc, msbuild
        r"error(?:\[\w+\])?: ",  # rustc
        r"\*\* \(\w+\) ",  # mix
        r"\s+\d+:\d+ +error ",  # eslint
        r"\S.*?:\d+:(?:\d+:|in )",  # ruff, flake8, go vet, rubocop, ruby
        r"[A-Z]{1,5}\d{2,5} \S",  # ruff in full
        r"[\w.]*(?:Error|Exception)\b.*: ",  # node, java
        r"(?i:error|fatal|syntax error)\b[: ]",
    )
)
_TRACEBACK = "Traceback (most recent call last):"
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Found:
    """What a check came to: `broken` says what is wrong with the edit, `unjudged` why it could not be made."""

    broken: str | None = None
    unjudged: str | None = None


class _Overdue(Exception):
    """What is looked for takes too long."""


def judge(check: Check, edit: Edit, folder: Path, may_run: Callable[[str], bool]) -> Found:
    """Return what *check* comes to for *edit* in *folder*; an edit breaks what it did not break before.

    A command is run where *may_run* says so.
    """
    if edit.after is None:
        return Found()
    if check.kind == "command":
        return _by_command(check.text, edit, folder, may_run)
    try:
        pattern = compiled(check.text, "m")
        return _forbidden(check.text, pattern, edit) if check.kind == "forbids" else _missing(check.text, pattern, edit)
    except Unsearchable as error:
        return Found(unjudged=f"the pattern {_cut(check.text)} is none: {error}; {error.hint}")
    except _Overdue:
        return Found(unjudged=f"the pattern {_cut(check.text)} was not judged in {PATTERN_SECONDS:g} s")


def _missing(said: str, pattern: Any, edit: Edit) -> Found:
    if not edit.whole or pattern.search(_bytes(edit.after)):
        return Found()
    if edit.before is not None and not pattern.search(_bytes(edit.before)):
        return Found()
    return Found(f"it would have nothing that fits {_cut(said)}")


def _forbidden(said: str, pattern: Any, edit: Edit) -> Found:
    after, overdue = _bytes(edit.after), monotonic() + PATTERN_SECONDS
    matches = [*_found(pattern, after, overdue)]
    if len(matches) <= sum(1 for _ in _found(pattern, _bytes(edit.before), overdue)):
        return Found()
    held, texts = (edit.before or "").splitlines(), (edit.after or "").splitlines()
    lines = [(after.count(b"\n", 0, start) + 1, text) for start, text in matches]
    number, text = next(
        (each for each in lines if texts[each[0] - 1 : each[0]] != [] and texts[each[0] - 1] not in held), lines[0]
    )
    place = f"line {number} has" if edit.whole else "it puts in"
    return Found(f"{place} {_cut(text)}, which {_cut(said)} forbids")


def _found(pattern: Any, text: bytes, overdue: float) -> Iterator[tuple[int, str]]:
    """Yield where each match begins, and its text; raise _Overdue after that moment.

    One search takes a time in proportion to the text, but each goes through what is left of it.
    """
    for match in pattern.finditer(text):
        yield match.start(), match[0].decode("utf-8", "replace")
        if monotonic() > overdue:
            raise _Overdue


def _bytes(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "replace")


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
    return Found(f"{_cut(command)} ends with {code}: {_cut(error_line(words))}")


def _run(command: str, path: str, text: str, folder: Path) -> tuple[int | None, str]:
    """Return how *command* ended and its output, of a file at *path* with *text*; None where it did not end."""
    try:
        words = [path if word == "{}" else word for word in shlex.split(command)]
        done = subprocess.run(words, cwd=folder, input=text.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"did not end in {COMMAND_SECONDS:g} s"
    except (OSError, ValueError, IndexError) as error:
        return None, f"could not be run: {error}"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def error_line(output: str) -> str:
    r"""Return the line of *output* that names the error, its last line where none is written as one.

    >>> error_line("$ check\nsrc/a.py:3:1: F821 Undefined name `y`\nFound 1 error.\n")
    'src/a.py:3:1: F821 Undefined name `y`'
    """
    lines = [line.rstrip() for line in _COLOUR.sub("", output).splitlines() if line.strip()]
    for pattern in _ERROR_LINES[:2]:
        if found := next(filter(pattern.match, lines), None):
            return re.sub("^E {3,}", "", found).strip()
    if starts := [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]:
        ends = (line for line in lines[starts[-1] + 1 :] if not line[0].isspace())
        return next(ends, lines[-1])
    for pattern in _ERROR_LINES[2:]:
        if found := next(filter(pattern.match, lines), None):
            return found.strip()
    return lines[-1].strip() if lines else ""


def _cut(text: str) -> str:
    from jidomem.govern.quoted import quoted

    return quoted(text, _SHOWN, blanks=True)[0]
