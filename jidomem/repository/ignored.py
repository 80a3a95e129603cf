"""What git ignores, by the rules of gitignore(5).  Pure: the rules are given as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

_CLASS = re.compile(r"\[[!^]?\]?[^\]]*\]")


class Rule(NamedTuple):
    """One line: what it matches, from the folder of its file; whether folders alone; whether it takes back."""

    pattern: re.Pattern[str]
    folders_only: bool
    keeps: bool


def is_ignored(path: str, rules_of: Sequence[tuple[str, str]]) -> bool:
    r"""Return whether git ignores the file *path*, or a folder it lies in.

    *rules_of* are the texts of the rules that count, each with the folder it is of (`""` for the top), those that
    decide last at the end.

    >>> is_ignored("build/a.o", [("", "*.o\n!keep.o")]), is_ignored("keep.o", [("", "*.o\n!keep.o")])
    (True, False)
    """
    parts = path.split("/")
    return any(_decided("/".join(parts[:depth]), depth < len(parts), rules_of) for depth in range(1, len(parts) + 1))


def matches(pattern: str, path: str) -> bool:
    """Return whether *path* is one that *pattern* stands for, from the top: `*` within a folder, `**` through many.

    >>> matches("src/**/*.py", "src/a/b.py"), matches("*.py", "src/b.py")
    (True, False)
    """
    return bool(_compiled(pattern).fullmatch(path))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_expression(pattern.removeprefix("./").lstrip("/")), re.DOTALL)


def _decided(path: str, is_folder: bool, rules_of: Sequence[tuple[str, str]]) -> bool:
    """Return what the last rule that matches *path* itself says."""
    ignored = False
    for folder, text in rules_of:
        if folder and not path.startswith(folder + "/"):
            continue
        local = path[len(folder) + 1 :] if folder else path
        for rule in _rules(text):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(local):
                ignored = not rule.keeps
    return ignored


@lru_cache(maxsize=256)
def _rules(text: str) -> tuple[Rule, ...]:
    return tuple(_read(text.splitlines()))


def _read(lines: Iterable[str]) -> Iterable[Rule]:
    for line in lines:
        body = re.sub(r"(?<!\\) +$", "", line)
        if not body or body.startswith("#"):
            continue
        keeps = body.startswith("!")
        body = body[keeps:]
        folders_only = body.endswith("/")
        body = body.rstrip("/")
        if body:
            anchored = "/" in body
            yield Rule(re.compile(("" if anchored else "(?:.*/)?") + _expression(body.lstrip("/")), re.DOTALL),
                       folders_only, keeps)  # fmt: skip


def _expression(glob: str) -> str:
    """Return the regular expression of a gitignore pattern; one that is broken matches nothing."""
    found, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            found, at = found + "(?:.*/)?", at + 3
        elif glob[at:] == "**" and (at == 0 or glob[at - 1] == "/"):
            found, at = found + ".+", at + 2
        elif glob[at] == "*":
            found, at = found + "[^/]*", at + 1
        elif glob[at] == "?":
            found, at = found + "[^/]", at + 1
        elif glob[at] == "[" and (match := _CLASS.match(glob, at)):
            found, at = found + _class(match[0]), match.end()
        elif glob[at] == "\\" and at + 1 < len(glob):
            found, at = found + re.escape(glob[at + 1]), at + 2
        else:
            found, at = found + re.escape(glob[at]), at + 1
    return found


def _class(text: str) -> str:
    """Return a set of signs as a regular expression; `!` negates, and none of them is a slash."""
    body = text[1:-1]
    negated = body[:1] in ("!", "^")
    signs = body[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace("^", "\\^")
    signs = signs.replace("&&", "&\\&").replace("||", "|\\|").replace("~~", "~\\~").replace("--", "-\\-")
    try:
        re.compile(f"[{signs}]")
    except re.error:
        return "(?!)"
    return f"(?!/)[{'^' if negated else ''}{signs}]"
