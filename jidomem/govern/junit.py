"""A report as JUnit XML: what every CI shows."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from jidomem.govern.report import Problem, Report
from jidomem.govern.sarif import words


def junit(report: Report) -> str:
    """Return the report as JUnit XML: each finding is a case that fails, or, where nothing is violated, was passed."""
    failures = report.counts()["violation"]
    cases = len(report.problems) + len(report.unchecked) + len(report.waived) + 1
    counts = {"tests": str(cases), "failures": str(failures), "errors": str(len(report.unchecked)),
              "skipped": str(len(report.waived))}  # fmt: skip
    suites = Element("testsuites", {"name": "jidomem check", **counts})
    suite = SubElement(suites, "testsuite", {"name": "jidomem check", **counts})
    whole = SubElement(suite, "testcase", {"classname": "jidomem", "name": f"{report.judged} judged"})
    for problem in report.problems:
        case = _case(suite, problem)
        if problem.severity == "violation":
            SubElement(case, "failure", {"message": _xml(problem.message), "type": problem.name}).text = _text(problem)
        else:
            SubElement(case, "system-out").text = f"{problem.severity}: {_text(problem)}"
    for one in report.waived:
        reason = f"{one.reason} (until {one.until})"
        SubElement(_case(suite, one.problem), "skipped", {"message": _xml(reason)})
    for reason in report.unchecked:
        case = SubElement(suite, "testcase", {"classname": "unchecked", "name": _xml(reason)})
        SubElement(case, "error", {"message": _xml(reason), "type": "unchecked"})
    if said := words(report):
        SubElement(whole, "system-out").text = _xml("\n".join(said))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, problem: Problem) -> Element:
    said = {"classname": problem.name, "name": _xml(f"{problem.item}: {problem.message}")}
    said |= {"file": _xml(problem.path)} if problem.path else {}
    return SubElement(suite, "testcase", said | ({"line": str(problem.line)} if problem.line else {}))


def _text(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path or "-"
    return _xml(f"{place}\n{problem.rule}\n{problem.item}\n{problem.message}")


def _xml(text: str) -> str:
    """Return *text* without the signs that XML has no way to write."""
    return "".join(sign if sign in "\t\n\r" or " " <= sign < "\ufffe" or sign > "\uffff" else "\ufffd" for sign in text)
