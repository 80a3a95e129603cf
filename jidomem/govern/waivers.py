"""A baseline: findings that somebody accepts until a day, each with the reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any

from jidomem.decoding import decode_toml
from jidomem.errors import InvalidRequest
from jidomem.govern.report import EXPIRED, UNUSED, Problem, Report, Standing, Waived, in_order
from jidomem.vocab import local_name

#: The file of a root whose waivers count wherever its memory is checked.
BASELINE = "baseline.toml"
_KEYS, _MORE = ("rule", "item", "reason", "until"), ("by", "project")
_EXAMPLE = 'write [[waiver]] with rule = "...", item = "...", reason = "..." and until = 2027-01-31'


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted finding: its rule, by IRI or short name, its item, why, the last day it holds, and its line.

    It may say who accepts it, and which project alone it is about.
    """

    rule: str
    item: str
    reason: str
    until: date
    line: int
    by: str = ""
    project: str = ""

    def covers(self, problem: Problem) -> bool:
        """Return whether *problem* is the finding that is accepted."""
        return self.rule in (problem.rule, problem.name) and self.item == problem.item


@dataclass(frozen=True, slots=True)
class Baseline:
    """The waivers of one file, in its order."""

    path: str
    waivers: tuple[Waiver, ...]

    def without(self, rule: str) -> Baseline:
        """Return the baseline less its waivers of *rule*, an IRI."""
        return Baseline(self.path, tuple(one for one in self.waivers if one.rule not in (rule, local_name(rule))))


def read_baseline(path: str, data: bytes) -> Baseline:
    """Return the waivers of a TOML file; raise InvalidRequest for one without rule, item, reason or day."""
    try:
        text = data.decode("utf-8")
        said = decode_toml(text)
    except ValueError as error:
        raise InvalidRequest(f"{path}: {error}", hint=_EXAMPLE) from error
    rows = said.get("waiver", [])
    if set(said) - {"waiver"} or not isinstance(rows, list):
        raise InvalidRequest(f"{path}: a baseline holds waivers and nothing else", hint=_EXAMPLE)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*waiver\s*\]\]", line)]
    if len(lines) != len(rows):
        raise InvalidRequest(f"{path}: each waiver is a table of its own", hint=_EXAMPLE)
    return Baseline(path, tuple(_waiver(f"{path}:{line}", row, line) for row, line in zip(rows, lines, strict=True)))


def _waiver(where: str, row: dict[str, Any], line: int) -> Waiver:
    odd = [key for key in row if key not in (*_KEYS, *_MORE)]
    missing = [key for key in _KEYS if row.get(key, "") == ""]
    if odd or missing:
        problem = f"does not know {odd[0]}" if odd else f"has no {missing[0]}"
        raise InvalidRequest(f"{where}: a waiver {problem}", hint=_EXAMPLE)
    rule, item, reason, until = (row[key] for key in _KEYS)
    more = [row[key] for key in _MORE if key in row]
    texts = all(isinstance(text, str) and text.strip() for text in (rule, item, reason, *more))
    if type(until) is not date or not texts:
        raise InvalidRequest(f"{where}: {', '.join((*_KEYS[:3], *_MORE))} are texts, and until is a day", hint=_EXAMPLE)
    return Waiver(rule, item, reason.strip(), until, line, row.get("by", "").strip(), row.get("project", ""))


def waive(
    report: Report, baseline: Baseline, today: date, *, project: str | None = None, in_part: bool = False
) -> None:
    """Take out of *report* what *baseline* waives today, and put in each waiver that has run out or waives nothing.

    Waivers of another *project* say nothing here. Where the memory was looked at *in_part*, what a waiver is about may
    be in the rest.
    """
    waivers = [each for each in baseline.waivers if project is None or each.project in ("", project)]
    counted: list[Problem] = []
    used: Counter[Waiver] = Counter()
    for problem in report.problems:
        covering = [waiver for waiver in waivers if waiver.covers(problem)]
        used.update(covering)
        holding = max((one for one in covering if one.until >= today), key=lambda one: one.until, default=None)
        if holding is None:
            counted.append(problem)
        else:
            report.waived.append(Waived(problem, holding.reason, holding.until.isoformat(), holding.by))
    for waiver in waivers:
        state = "expired" if waiver.until < today else "holds" if used[waiver] or in_part else "unused"
        counted += _amiss(waiver, state, baseline.path)
        until = waiver.until.isoformat()
        report.waivers.append(Standing(waiver.rule, waiver.item, waiver.reason, until, waiver.by, state, used[waiver]))
    report.problems = in_order(counted)


def _amiss(waiver: Waiver, state: str, path: str) -> list[Problem]:
    """Return what is to be done about a waiver, if anything is."""
    if state == "expired":
        text = f"this waiver of {waiver.rule} held until {waiver.until}: settle the finding, or waive it anew"
        return [Problem(waiver.item, EXPIRED, "violation", text, path, waiver.line)]
    if state == "unused":
        text = f"there is no {waiver.rule} to waive here: take this waiver out"
        return [Problem(waiver.item, UNUSED, "warning", text, path, waiver.line)]
    return []
