"""A report as workflow commands of GitHub Actions, which puts each finding beside its line in a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from jidomem.govern.report import Report
from jidomem.judge import Severity

_COMMANDS: dict[Severity, str] = {"violation": "error", "warning": "warning", "info": "notice"}


def commands(report: Report) -> Iterator[str]:
    """Yield a command for each finding, and for each thing that went unchecked."""
    for problem in report.problems:
        text = f"{problem.item}: {problem.message}"
        yield command(_COMMANDS[problem.severity], problem.name, text, file=problem.path, line=problem.line)
    for reason in report.unchecked:
        yield command("error", "unchecked", reason)


def command(name: str, title: str, text: str, *, file: str | None = None, line: int | None = None) -> str:
    """Return the workflow command *name*, `error`, `warning` or `notice`, with its title, text and place."""
    place = {"file": file, "line": line, "title": title}
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in place.items() if value is not None)
    return f"::{name} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
