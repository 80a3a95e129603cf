"""A baseline: findings that somebody accepts until a day, each with the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.govern.report import EXPIRED, UNUSED, Problem, Waived

_KEYS = ("rule", "item", "reason", "until")
_EXAMPLE = 'write [[waiver]] with rule = "...", item = "...", reason = "..." and until = 2027-01-31'


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted finding: its rule, by IRI or short name, its item, why, the last day it holds, and its line."""

    rule: str
    item: str
    reason: str
    until: date
    line: int

    def covers(self, problem: Problem) -> bool:
        """Return whether *problem* is the finding that is accepted."""
        return self.rule in (problem.rule, problem.name) and self.item == problem.item


def read_baseline(path: str, data: bytes) -> list[Waiver]:
    """Return the waivers of a TOML file; raise InvalidRequest for one without rule, item, reason or day."""
    import tomllib

    try:
        text = data.decode("utf-8")
        said = tomllib.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"{path}: {error}", hint=_EXAMPLE) from error
    rows = said.get("waiver", [])
    if set(said) - {"waiver"} or not isinstance(rows, list):
        raise InvalidRequest(f"{path}: a baseline holds waivers and nothing else", hint=_EXAMPLE)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*waiver\s*\]\]", line)]
    if len(lines) != len(rows):
        raise InvalidRequest(f"{path}: each waiver is a table of its own", hint=_EXAMPLE)
    return [_waiver(f"{path}:{line}", row, line) for row, line in zip(rows, lines, strict=True)]


def _waiver(where: str, row: dict[str, Any], line: int) -> Waiver:
    odd = [key for key in row if key not in _KEYS]
    missing = [key for key in _KEYS if row.get(key, "") == ""]
    if odd or missing:
        problem = f"does not know {odd[0]}" if odd else f"has no {missing[0]}"
        raise InvalidRequest(f"{where}: a waiver {problem}", hint=_EXAMPLE)
    rule, item, reason, until = (row[key] for key in _KEYS)
    if type(until) is not date or not all(isinstance(text, str) and text.strip() for text in (rule, item, reason)):
        raise InvalidRequest(f"{where}: rule, item and reason are texts, and until is a day", hint=_EXAMPLE)
    return Waiver(rule, item, reason.strip(), until, line)


def apply(
    path: str, waivers: Sequence[Waiver], problems: Sequence[Problem], today: date
) -> tuple[list[Problem], list[Waived]]:
    """Return the problems that count, with one for each waiver that has run out or waives nothing, and the waived."""
    counted: list[Problem] = []
    waived: list[Waived] = []
    used: set[Waiver] = set()
    for problem in problems:
        covering = [waiver for waiver in waivers if waiver.covers(problem)]
        used.update(covering)
        holding = max((one for one in covering if one.until >= today), key=lambda one: one.until, default=None)
        if holding is None:
            counted.append(problem)
        else:
            waived.append(Waived(problem, holding.reason, holding.until.isoformat()))
    for waiver in waivers:
        if waiver.until < today:
            text = f"this waiver of {waiver.rule} held until {waiver.until}: settle the finding, or waive it anew"
            counted.append(Problem(waiver.item, EXPIRED, "violation", text, path, waiver.line))
        elif waiver not in used:
            text = f"there is no {waiver.rule} to waive here: take this waiver out"
            counted.append(Problem(waiver.item, UNUSED, "warning", text, path, waiver.line))
    return counted, waived
