"""A report as SARIF 2.1.0: what code scanning takes in."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from jidomem.govern.report import GATE, RULES, Problem, Report, Waived
from jidomem.judge import Severity
from jidomem.vocab import local_name

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"violation": "error", "warning": "warning", "info": "note"}


def sarif(report: Report, version: str) -> dict[str, Any]:
    """Return the report as a SARIF log of one run; what is waived is a suppressed result."""
    results = [*report.problems, *(one.problem for one in report.waived)]
    rules = sorted({problem.rule for problem in results})
    driver = {
        "name": "jidomem",
        "version": version,
        "informationUri": "https://jido.ai/",
        "rules": [_rule(rule, results) for rule in rules],
    }
    invocation = {
        "executionSuccessful": not report.unchecked,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": [*_notices(report)],
    }
    told = [_result(problem, rules) for problem in report.problems]
    told += [_suppressed(one, rules) for one in report.waived]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "invocations": [invocation], "results": told}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str, problems: Iterable[Problem]) -> dict[str, Any]:
    first = next(problem for problem in problems if problem.rule == rule)
    text = RULES.get(rule) or (local_name(rule).replace("-", " ") if rule.startswith(GATE) else first.message)
    return {
        "id": rule,
        "name": local_name(rule),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": _LEVELS[first.severity]},
    }


def _result(problem: Problem, rules: list[str]) -> dict[str, Any]:
    result = filter(None, (problem.result_path, problem.value))
    said = "\n".join((problem.rule, problem.item, problem.message, *result))
    found: dict[str, Any] = {
        "ruleId": problem.rule,
        "ruleIndex": rules.index(problem.rule),
        "level": _LEVELS[problem.severity],
        "message": {"text": f"{problem.item}: {problem.message}"},
        "partialFingerprints": {"jidomem/v1": blake2b(said.encode(), digest_size=16).hexdigest()},
        "locations": [_location(problem)],
    }
    return found


def _location(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": problem.item, "kind": "resource"}]}
    if problem.path is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.path)}}
        if problem.line:
            place["region"] = {"startLine": problem.line}
        location["physicalLocation"] = place
    return location


def _uri(path: str) -> str:
    """Return a path as a URI, relative to the working directory where the path is."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())


def _suppressed(one: Waived, rules: list[str]) -> dict[str, Any]:
    why = {"kind": "external", "status": "accepted", "justification": f"{one.reason} (until {one.until})"}
    return {**_result(one.problem, rules), "suppressions": [why]}


def _notices(report: Report) -> Iterable[dict[str, Any]]:
    for reason in report.unchecked:
        yield {"level": "error", "message": {"text": f"unchecked: {reason}"}}
    for text in words(report):
        yield {"level": "note", "message": {"text": text}}


def words(report: Report) -> list[str]:
    """Return what a report says beside its findings: its notes, then its coverage."""
    return [*notes(report), *coverage(report)]


def notes(report: Report) -> list[str]:
    """Return the notes on a report that a reader should act on."""
    compared = report.not_compared
    return [
        *report.notes,
        *([f"open tasks without an issue, not compared: {compared}"] if compared is not None else []),
    ]


def coverage(report: Report) -> list[str]:
    """Return which rules matched nothing, and which memories no rule is about."""
    said = []
    if report.idle:
        said.append(f"rules with no matches: {', '.join(map(local_name, report.idle))}")
    if report.untargeted:
        counted = ", ".join(f"{count} {name}" for name, count in report.untargeted.items())
        said.append(f"no rule is about {counted}")
    return said
