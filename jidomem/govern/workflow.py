"""A report as workflow commands of GitHub Actions, which puts each finding beside its line in a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from jidomem.govern.report import Report
from jidomem.judge import Severity

_COMMANDS: dict[Severity, str] = {"violation": "error", "warning": "warning", "info": "notice"}


def commands(report: Report) -> Iterator[str]:
    """Yield a command for each finding, and for each thing that went unchecked."""
    for problem in report.problems:
        place = {"file": problem.path, "line": problem.line, "title": problem.name}
        said = ",".join(f"{key}={_property(str(value))}" for key, value in place.items() if value is not None)
        yield f"::{_COMMANDS[problem.severity]} {said}::{_data(f'{problem.item}: {problem.message}')}"
    for reason in report.unchecked:
        yield f"::error title=unchecked::{_data(reason)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
