"""The corpus of crafted memories, each with what is to be found at which line, as data."""

import re
from pathlib import Path

CASES = Path(__file__).parent.parent / "cases" / "check"
_SAID = re.compile(r"#! (.+)$")


def turtle_cases():
    """Every crafted Turtle file."""
    return sorted(CASES.glob("*.ttl"))


def expected(path):
    """What a file says, in `#! severity Rule, ...` at the end of the line, is wrong there."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        match = _SAID.search(line)
        for each in match[1].split(", ") if match else ():
            found.append((number, *each.split()))
    return sorted(found)


def told(report):
    """What a report says, in the same form."""
    return sorted((problem.line, problem.severity, problem.name) for problem in report.problems)
