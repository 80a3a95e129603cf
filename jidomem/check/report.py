"""The report of a check: findings with their places, waivers, and the formats of CI systems.

`CheckReport` collects problems, rules that could not be judged and rules without matches. `sarif`, `junit` and
`commands` write it as SARIF 2.1.0, JUnit XML and workflow commands of GitHub Actions. `read_baseline` and `waive` apply
a baseline: findings that are accepted until a date, each with a reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from jidomem.base.json_values import decode_toml
from jidomem.errors import InvalidRequest, did_you_mean
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term
from jidomem.rdf.vocab import local_name, short_id
from jidomem.schema.ontology import ADDS_ONLY, BOUNDED, NO_CODE, NO_IMPORT
from jidomem.schema.shacl import Severity

#: The most memories that a merged finding names.
_NAMED = 5
SEVERITIES: tuple[Severity, ...] = ("violation", "warning", "info")
#: The beginning of a finding about a redacted statement.
REDACTION = "it was redacted: "
GATE = vocab.BASE + "gates#"

DANGLING = vocab.SHAPE + "EveryReferenceExists"
ORPHAN = vocab.SHAPE + "NothingIsOrphaned"
SYNTAX = vocab.SHAPE + "TurtleParses"
JOURNAL = vocab.SHAPE + "JournalIsIntact"
CIRCLE = vocab.SHAPE + "SupersessionHasNoCycle"
SUCCESSORS = vocab.SHAPE + "SupersessionHasOneEnd"
CONFLICT = vocab.SHAPE + "NothingInForceDisagrees"
CONSISTENT = vocab.SHAPE + "OntologyIsConsistent"
DECLARED = vocab.SHAPE + "TermIsDeclared"
CURRENT = vocab.SHAPE + "TermIsNotDeprecated"
WRITTEN = vocab.SHAPE + "LiteralIsWellFormed"
AGREED = vocab.SHAPE + "JudgesAgree"
TARGETED = vocab.SHAPE + "ShapeHasATarget"
CLOSED_THERE = vocab.SHAPE + "OpenTaskIsOpenThere"
FRESH = vocab.SHAPE + "FileIsAsItWas"
DUE = vocab.SHAPE + "MemoryIsUpToDate"
COMPILED = vocab.SHAPE + "ShapeIsCompiled"
EXPLAINED = vocab.SHAPE + "TermIsExplained"
STORABLE_KIND = vocab.SHAPE + "KindCanBeKept"
READ = vocab.SHAPE + "OverlayIsRead"
SATISFIABLE = vocab.SHAPE + "ShapeCanBeSatisfied"
REPAIRS = vocab.SHAPE + "ShapeSaysWhatToDo"
SHACL = vocab.SHAPE + "ShapeIsWellFormed"
SOUND = vocab.SHAPE + "QueryIsSound"
TREE = vocab.SHAPE + "ClassTreeHasNoCycle"
USABLE = vocab.SHAPE + "TermCanBeUsed"
SECRET = vocab.SHAPE + "NothingLooksSecret"
EXPIRED = vocab.SHAPE + "WaiverIsInForce"
UNUSED = vocab.SHAPE + "WaiverIsOfUse"
PERMITTED = vocab.SHAPE + "AuthorMayAssert"
REPEATED = vocab.SHAPE + "RedactionIsComplete"
POLICY_CHANGED = vocab.SHAPE + "PolicyIsAsItWas"
#: The rules other than shapes, and their texts.
RULES: Mapping[str, str] = {
    DANGLING: "Every IRI below https://jido.ai/ that something points at is described.",
    ORPHAN: "Evidence, an alternative or a session event that nothing points at has no meaning.",
    SYNTAX: "A Turtle file parses.",
    JOURNAL: "Every commit is present, and its content matches its id.",
    CIRCLE: "No memory supersedes, over however many steps, itself.",
    SUCCESSORS: "Of all that came in the place of a memory, at most one is active.",
    CONFLICT: "No two active memories disagree.",
    CONSISTENT: "Ontology and memory do not contradict each other in OWL 2 RL.",
    DECLARED: "Every class, property and value of the ontology's namespaces is declared in it.",
    CURRENT: "No deprecated term is used.",
    WRITTEN: "A literal is written as its datatype has it.",
    AGREED: "The compiled shapes and pyshacl find the same.",
    TARGETED: "What a shape targets is declared, so that it can ever find something to judge.",
    CLOSED_THERE: "No task is open here that is closed in the tracker it is tracked by.",
    FRESH: "The files that a memory is about hold what they held when it was written, or confirmed.",
    DUE: "No active memory is past its review date or its last valid day, dated ahead, or rests on a withdrawn one.",
    ADDS_ONLY: "An overlay adds, and never describes again what is shipped.",
    NO_IMPORT: "An overlay imports nothing.",
    NO_CODE: "A shape of an overlay brings no code.",
    BOUNDED: "A pattern is sure to end soon.",
    COMPILED: "A shape that is not compiled is judged by pyshacl, which is as right and slower.",
    EXPLAINED: "A term has a label and a definition.",
    STORABLE_KIND: "How a memory of a project's own class is kept.",
    READ: "Every file of an overlay lies where it is read.",
    SATISFIABLE: "Some memory can satisfy every shape about its class.",
    REPAIRS: "A shape has a message that says what to do.",
    SHACL: "A shape is one by the SHACL of SHACL.",
    SOUND: "A query has its header, is SPARQL, and asks this memory only.",
    TREE: "No class lies, over however many steps, below itself.",
    USABLE: "A term lies in a namespace of the project; a property takes things, or values of a datatype.",
    SECRET: "No text and no name in the journal looks like a key, a token or a password.",
    EXPIRED: "A waiver holds until the day it names.",
    UNUSED: "A waiver waives something.",
    PERMITTED: "An active memory, and a change of the policy, is of an agent who may write it.",
    REPEATED: "No memory of another branch replaces a redacted one without a look at its text.",
    POLICY_CHANGED: "Policy, roles, and the settings of secrets and conflicts are those of the revision compared with.",
}


@dataclass(frozen=True, slots=True)
class UnplacedFinding:
    """A broken rule without its place: the node it is about, and the triple at fault, as far as there is one."""

    item: Term
    rule: str
    severity: Severity
    message: str
    property: Term | None = None
    value: Term | None = None
    #: Other nodes that the finding is equally about.
    beside: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: its item (an IRI), the IRI of the rule, the repair, and the place.

    For a file judged by shapes alone, `result_path` and `value` are those of the SHACL result, in N-Triples.
    """

    item: str
    rule: str
    severity: Severity
    message: str
    path: str | None = None
    line: int | None = None
    result_path: str | None = None
    value: str | None = None

    @property
    def name(self) -> str:
        """Return the short name of the rule."""
        return vocab.local_name(self.rule)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON values."""
        return {
            "item": self.item,
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "line": self.line,
            **({"property": self.result_path, "value": self.value} if self.result_path or self.value else {}),
        }


def merge_redactions(problems: Iterable[Problem]) -> list[Problem]:
    """Return *problems*, with those about redacted statements merged into one."""
    problems = list(problems)
    redacted = [each for each in problems if each.message.startswith(REDACTION)]
    if len(redacted) < 2:
        return problems
    items = list(dict.fromkeys(short_id(each.item) for each in redacted))
    named, more = ", ".join(items[:_NAMED]), f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    lost = f"{len(items)} {'memory' if len(items) == 1 else 'memories'} lost {len(redacted)} statements"
    hint = 'withdraw each that lost its summary: jidomem edit IRI --invalidate --reason "its text was redacted"'
    one = replace(redacted[0], message=f"{lost} to redactions: {named}{more}; {hint}", path=None, line=None)
    return [one if each is redacted[0] else each for each in problems if each is redacted[0] or each not in redacted]


class WaivedFinding(NamedTuple):
    """A waived finding, with the reason, the last day of the waiver, and its author."""

    problem: Problem
    reason: str
    until: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class WaiverState:
    """The state of a waiver: it `holds`, has `expired`, or is `unused`; and the number of its findings."""

    rule: str
    item: str
    reason: str
    until: str
    by: str
    state: str
    findings: int


@dataclass(slots=True)
class CheckReport:
    """The result of a check: findings, waivers, rules not judged, and rules without matches.

    `idle` are the shapes without matches; `untargeted` counts, by class, the nodes without a shape; `not_compared`
    counts the open tasks that name no issue; `notes` are remarks on the check itself.
    """

    judged: int = 0
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    waived: list[WaivedFinding] = field(default_factory=list)
    waivers: list[WaiverState] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    untargeted: dict[str, int] = field(default_factory=dict)
    not_compared: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Return 3 if the check is incomplete, else 1 if a rule is violated, else 0."""
        if self.unchecked:
            return 3
        return 1 if any(problem.severity == "violation" for problem in self.problems) else 0

    def counts(self) -> dict[str, int]:
        """Return the number of problems of each severity."""
        return {name: sum(problem.severity == name for problem in self.problems) for name in SEVERITIES}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "conforms": self.exit_code == 0,
            "judged": self.judged,
            "counts": self.counts(),
            "problems": [problem.to_dict() for problem in self.problems],
            "unchecked": self.unchecked,
            "waived": [
                {**one.problem.to_dict(), "reason": one.reason, "until": one.until, "by": one.by or None}
                for one in self.waived
            ],
            "waivers": [asdict(one) for one in self.waivers],
            "idle_shapes": self.idle,
            "untargeted": self.untargeted,
            "tasks_not_compared": self.not_compared,
            "notes": self.notes,
        }


def merge(reports: Mapping[str, CheckReport]) -> CheckReport:
    """Return one report on several projects, given by name; a problem of the root is in it once."""
    if len(reports) == 1:
        return next(iter(reports.values()))
    every = [*reports.values()]
    compared = [each.not_compared for each in every if each.not_compared is not None]
    return CheckReport(
        judged=sum(each.judged for each in every),
        problems=in_order(problem for each in every for problem in each.problems),
        unchecked=[*dict.fromkeys(reason for each in every for reason in each.unchecked)],
        waived=[waived for each in every for waived in each.waived],
        idle=[name for name in every[0].idle if all(name in each.idle for each in every)],
        untargeted=dict(sum((Counter(each.untargeted) for each in every), Counter[str]())),
        not_compared=sum(compared) if compared else None,
        notes=[
            f"projects checked: {', '.join(reports)}",
            *dict.fromkeys(note for each in every for note in each.notes),
        ],
    )


def in_order(problems: Iterable[Problem], *, once: bool = True) -> list[Problem]:
    """Return problems sorted by file, line and severity; *once* removes duplicates."""

    def place(problem: Problem) -> tuple[str | int, ...]:
        grade = SEVERITIES.index(problem.severity)
        identity = problem.rule, problem.item, problem.message, problem.value or ""
        return problem.path or "", problem.line or 0, grade, *identity

    return sorted(dict.fromkeys(problems) if once else problems, key=place)


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"violation": "error", "warning": "warning", "info": "note"}


def sarif(report: CheckReport, version: str) -> dict[str, Any]:
    """Return the report as a SARIF log of one run; a waived finding is a suppressed result."""
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
    sarif_results = [_result(problem, rules) for problem in report.problems]
    sarif_results += [_suppressed(one, rules) for one in report.waived]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": sarif_results,
    }
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
    identity = "\n".join((problem.rule, problem.item, problem.message, *result))
    sarif_result: dict[str, Any] = {
        "ruleId": problem.rule,
        "ruleIndex": rules.index(problem.rule),
        "level": _LEVELS[problem.severity],
        "message": {"text": f"{problem.item}: {problem.message}"},
        "partialFingerprints": {"jidomem/v1": blake2b(identity.encode(), digest_size=16).hexdigest()},
        "locations": [_location(problem)],
    }
    return sarif_result


def _location(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": problem.item, "kind": "resource"}]}
    if problem.path is not None:
        location["physicalLocation"] = _physical(problem.path, problem.line)
    return location


def _physical(path: str, line: int | None) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line else {}
    return {"artifactLocation": {"uri": _uri(path)}, **region}


def _uri(path: str) -> str:
    """Return a path as a URI, relative if the path is."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())


def _suppressed(one: WaivedFinding, rules: list[str]) -> dict[str, Any]:
    why = {"kind": "external", "status": "accepted", "justification": f"{one.reason} (until {one.until})"}
    return {**_result(one.problem, rules), "suppressions": [why]}


def _notices(report: CheckReport) -> Iterable[dict[str, Any]]:
    for reason in report.unchecked:
        path, line = place_of(reason)
        where = {"locations": [{"physicalLocation": _physical(path, line)}]} if path else {}
        yield {"level": "error", "message": {"text": f"unchecked: {reason}"}, **where}
    for text in words(report):
        yield {"level": "note", "message": {"text": text}}


def words(report: CheckReport) -> list[str]:
    """Return the remarks of a report: its notes, then its coverage."""
    return [*notes(report), *coverage(report)]


def notes(report: CheckReport) -> list[str]:
    """Return the notes on a report that a reader should act on."""
    compared = report.not_compared
    return [
        *report.notes,
        *([f"open tasks without an issue, not compared: {compared}"] if compared is not None else []),
    ]


def coverage(report: CheckReport) -> list[str]:
    """Return the rules without matches, and the memories without a rule."""
    sentences = []
    if report.idle:
        sentences.append(f"rules with no matches: {', '.join(map(local_name, report.idle))}")
    if report.untargeted:
        counted = ", ".join(f"{count} {name}" for name, count in report.untargeted.items())
        sentences.append(f"no rule is about {counted}")
    return sentences


def junit(report: CheckReport) -> str:
    """Return the report as JUnit XML: each violation is a failed case, each other finding a passed one."""
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
        case = SubElement(
            suite, "testcase", {"classname": "unchecked", "name": _xml(reason), **_file(*place_of(reason))}
        )
        SubElement(case, "error", {"message": _xml(reason), "type": "unchecked"})
    if sentences := words(report):
        SubElement(whole, "system-out").text = _xml("\n".join(sentences))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, problem: Problem) -> Element:
    attributes = {"classname": problem.name, "name": _xml(f"{problem.item}: {problem.message}")}
    return SubElement(suite, "testcase", attributes | _file(problem.path, problem.line))


def _file(path: str | None, line: int | None) -> dict[str, str]:
    return ({"file": _xml(path)} if path else {}) | ({"line": str(line)} if line else {})


def _text(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path or "-"
    return _xml(f"{place}\n{problem.rule}\n{problem.item}\n{problem.message}")


def _xml(text: str) -> str:
    """Return *text* with the characters that XML cannot contain replaced."""
    return "".join(sign if sign in "\t\n\r" or " " <= sign < "\ufffe" or sign > "\uffff" else "\ufffd" for sign in text)


#: The file of a root with waivers for every check of its memory.
BASELINE = "baseline.toml"
_KEYS, _MORE = ("rule", "item", "reason", "until"), ("by", "project", "path")
#: The rule of a waiver that lets files break the strict convention `item` in `jidomem guard`.
GUARDED = "guard"
_EXAMPLE = 'write [[waiver]] with rule = "...", item = "...", reason = "..." and until = 2027-01-31'


class Waiver(NamedTuple):
    """One accepted finding: its rule and item, by IRI or short name, the reason, the last day, and its line.

    Optional are its author, the project to which it is limited and, for a strict convention, the `path` of a file.
    """

    rule: str
    item: str
    reason: str
    until: date
    line: int
    by: str = ""
    project: str = ""
    path: str = ""

    def allows(self, item: str, path: str, today: date) -> bool:
        """Return whether *path* may break the strict convention *item*, which the waiver names by IRI or short id."""
        return self.rule == GUARDED and self.is_of(item) and self.path in ("", path) and self.until >= today

    def is_of(self, item: str) -> bool:
        """Return whether the waiver names *item*, by IRI, its last part or short id."""
        return self.item in (item, item.rpartition("/")[2], short_id(item))

    def covers(self, problem: Problem) -> bool:
        """Return whether *problem* is the accepted finding."""
        return self.rule in (problem.rule, problem.name) and self.item in (problem.item, short_id(problem.item))


class Baseline(NamedTuple):
    """The waivers of one file, in its order."""

    path: str
    waivers: tuple[Waiver, ...]

    def without(self, rule: str) -> Baseline:
        """Return the baseline without its waivers of *rule*, an IRI."""
        return Baseline(self.path, tuple(one for one in self.waivers if one.rule not in (rule, local_name(rule))))


def read_baseline(path: str, data: bytes) -> Baseline:
    """Return the waivers of a TOML file; raise InvalidRequest for one without rule, item, reason or day."""
    try:
        text = data.decode("utf-8")
        table = decode_toml(text)
    except ValueError as error:
        raise InvalidRequest(f"{path}: {error}", hint=_EXAMPLE) from error
    rows = table.get("waiver", [])
    if set(table) - {"waiver"} or not isinstance(rows, list):
        raise InvalidRequest(f"{path}: a baseline contains only waivers", hint=_EXAMPLE)
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
    if "path" in row and rule != GUARDED:
        raise InvalidRequest(f'{where}: path is for rule = "{GUARDED}"', hint="leave out path")
    by, project, path = row.get("by", "").strip(), row.get("project", ""), row.get("path", "")
    return Waiver(rule, item, reason.strip(), until, line, by, project, path)


def format_waivers(problems: Iterable[Problem], reason: str, until: date) -> str:
    """Return the waivers, as TOML, of the violations among *problems*, but for those of the journal."""
    rows = dict.fromkeys(
        (one.name, one.item) for one in problems if one.severity == "violation" and one.rule != JOURNAL
    )
    tables = []
    for rule, item in rows:
        values = {"rule": rule, "item": item, "reason": reason}
        texts = [f"{key} = {json.dumps(text, ensure_ascii=False)}" for key, text in values.items()]
        tables.append("\n".join(["[[waiver]]", *texts, f"until = {until}", "\n"]))
    return "".join(tables)


def waive(report: CheckReport, baseline: Baseline, today: date, *, in_part: bool = False) -> None:
    """Remove from *report* the findings that *baseline* waives today, and add each expired or unused waiver.

    If the data was checked *in_part*, the subject of a waiver may be in the rest.
    """
    used = remove_waived(report, baseline.waivers, today)
    add_waivers(report, baseline.waivers, used, baseline.path, today, in_part=in_part)


def remove_waived(report: CheckReport, waivers: Sequence[Waiver], today: date) -> Counter[Waiver]:
    """Remove from *report* the findings that *waivers* cover today; return the number of findings of each."""
    counted: list[Problem] = []
    used: Counter[Waiver] = Counter()
    for problem in report.problems:
        covering = [waiver for waiver in waivers if waiver.covers(problem)]
        used.update(covering)
        holding = max((one for one in covering if one.until >= today), key=lambda one: one.until, default=None)
        if holding is None:
            counted.append(problem)
        else:
            report.waived.append(WaivedFinding(problem, holding.reason, holding.until.isoformat(), holding.by))
    report.problems = in_order(counted)
    return used


def add_waivers(
    report: CheckReport,
    waivers: Sequence[Waiver],
    used: Counter[Waiver],
    path: str,
    today: date,
    *,
    in_part: bool,
    rules: Collection[str] | None = None,
    strict: Collection[str] | None = None,
) -> None:
    """Add to *report* the state of each of *waivers*, of the file *path*, and a finding for one expired or unused.

    *rules* are the short names of all rules, *strict* the IRIs of the strict conventions; None if they are unknown.
    """
    problems = [*report.problems]
    for waiver in waivers:
        if waiver.rule == GUARDED:
            is_used = strict is None or any(map(waiver.is_of, strict))  # the guard knows which of those it needs
        else:
            is_used = used[waiver] > 0 or (in_part and (rules is None or local_name(waiver.rule) in rules))
        state = "expired" if waiver.until < today else "holds" if is_used else "unused"
        problems += _waiver_problems(waiver, state, path, rules or ())
        until = waiver.until.isoformat()
        report.waivers.append(
            WaiverState(waiver.rule, waiver.item, waiver.reason, until, waiver.by, state, used[waiver])
        )
    report.problems = in_order(problems)


def _waiver_problems(waiver: Waiver, state: str, path: str, rules: Collection[str]) -> list[Problem]:
    """Return the problem of a waiver that is expired or unused; *rules* are the short names of all rules."""
    if state == "expired":
        text = f"this waiver of {waiver.rule} was valid until {waiver.until}: resolve the finding, or renew the waiver"
        return [Problem(waiver.item, EXPIRED, "violation", text, path, waiver.line)]
    if state == "unused":
        text = f"there is no finding of {waiver.rule} to waive: remove this waiver"
        if waiver.rule == GUARDED:
            text = "no active strict convention has this id: remove this waiver, or see: jidomem ask strict-conventions"
        elif rules and local_name(waiver.rule) not in rules:
            near = did_you_mean(local_name(waiver.rule), rules, "remove this waiver")
            text = f"there is no rule {waiver.rule}: {near}"
        return [Problem(waiver.item, UNUSED, "warning", text, path, waiver.line)]
    return []


_COMMANDS: dict[Severity, str] = {"violation": "error", "warning": "warning", "info": "notice"}


def commands(report: CheckReport) -> Iterator[str]:
    """Yield a command for each finding, and for each part that could not be checked."""
    changed = {problem for problem in report.problems if problem.rule == FRESH and problem.severity == "info"}
    if len(changed) > 1:  # one notice, so that they bury nothing
        text = f"{len(changed)} memories are about files that changed since: jidomem check lists them"
        yield command("notice", local_name(FRESH), text)
    for problem in report.problems:
        if len(changed) > 1 and problem in changed:
            continue
        text = f"{problem.item}: {problem.message}"
        yield command(_COMMANDS[problem.severity], problem.name, text, file=problem.path, line=problem.line)
    for reason in report.unchecked:
        yield unchecked_command(reason)


def unchecked_command(reason: str) -> str:
    """Return the workflow command for the *reason* why something was not checked, at the file that it names."""
    path, line = place_of(reason)
    return command("error", "unchecked", reason, file=path, line=line)


#: The file, with its line, at the beginning of a reason. The parser of TOML names the line at the end.
_PLACE, _LINE = re.compile(r"(?:gate [^\s:]+: )?([^\s:]+\.[a-z]+)(?::(\d+))?: "), re.compile(r"\(at line (\d+), ")


def place_of(reason: str) -> tuple[str | None, int | None]:
    """Return the file and the line that a reason names.

    >>> place_of("config.toml: Invalid value (at line 19, column 10)"), place_of("the memory: it is not there")
    (('config.toml', 19), (None, None))
    """
    if (place := _PLACE.match(reason)) is None:
        return None, None
    line = place[2] or ((at := _LINE.search(reason)) and at[1])
    return place[1], int(line) if line else None


def command(name: str, title: str, text: str, *, file: str | None = None, line: int | None = None) -> str:
    """Return the workflow command *name*, `error`, `warning` or `notice`, with its title, text and place."""
    place = {"file": file, "line": line, "title": title}
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in place.items() if value is not None)
    return f"::{name} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def seen_from(problem: Problem, folder: Path) -> Problem:
    """Return *problem* with its path relative to *folder*, if it is below it."""
    path = None if problem.path is None else Path(problem.path)
    if path is None or not path.is_absolute() or not path.is_relative_to(folder):
        return problem
    return replace(problem, path=str(path.relative_to(folder)))
