"""What a check answers: findings with their places, what went unchecked, and what nobody spoke about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from jidomem import vocab
from jidomem.judge import Severity
from jidomem.overlay import ADDS_ONLY, BOUNDED, NO_CODE, NO_IMPORT
from jidomem.read.item import short_id
from jidomem.terms import Term

#: How many memories a merged finding names.
_NAMED = 5
SEVERITIES: tuple[Severity, ...] = ("violation", "warning", "info")
#: How a finding begins about a statement that is missing because it was redacted.
REDACTION = "it was redacted: "
#: The IRI of a gate is this and its name.
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
MEETABLE = vocab.SHAPE + "ShapeCanBeMet"
CLOSED_THERE = vocab.SHAPE + "OpenTaskIsOpenThere"
FRESH = vocab.SHAPE + "FileIsAsItWas"
COMPILED = vocab.SHAPE + "ShapeIsCompiled"
EXPLAINED = vocab.SHAPE + "TermIsExplained"
KEPT = vocab.SHAPE + "KindCanBeKept"
READ = vocab.SHAPE + "OverlayIsRead"
REPAIRS = vocab.SHAPE + "ShapeSaysWhatToDo"
SHACL = vocab.SHAPE + "ShapeIsWellFormed"
SOUND = vocab.SHAPE + "QueryIsSound"
TREE = vocab.SHAPE + "ClassTreeHasNoCycle"
USABLE = vocab.SHAPE + "TermCanBeUsed"
SECRET = vocab.SHAPE + "NothingLooksSecret"
EXPIRED = vocab.SHAPE + "WaiverIsInForce"
UNUSED = vocab.SHAPE + "WaiverIsOfUse"
#: What each rule that is no shape asks for.
RULES: Mapping[str, str] = {
    DANGLING: "Every IRI below https://jido.ai/ that something points at is described.",
    ORPHAN: "Evidence, an alternative or a session event that nothing points at has no meaning.",
    SYNTAX: "A Turtle file parses.",
    JOURNAL: "Every commit is there and holds what its id stands for.",
    CIRCLE: "No memory supersedes, over however many steps, itself.",
    SUCCESSORS: "Of all that came in the place of a memory, at most one is in force.",
    CONFLICT: "No two memories in force disagree.",
    CONSISTENT: "Ontology and memory do not contradict each other in OWL 2 RL.",
    DECLARED: "Every class, property and value of the ontology's namespaces is declared in it.",
    CURRENT: "No deprecated term is used.",
    WRITTEN: "A literal is written as its datatype has it.",
    AGREED: "The compiled shapes and pyshacl find the same.",
    TARGETED: "What a shape targets is declared, so that it can ever find something to judge.",
    MEETABLE: "What a shape asks for does not contradict itself.",
    CLOSED_THERE: "No task is open here that is closed in the tracker it is tracked by.",
    FRESH: "The files that a memory is about hold what they held when it was written, or confirmed.",
    ADDS_ONLY: "An overlay adds, and never describes again what is shipped.",
    NO_IMPORT: "An overlay imports nothing.",
    NO_CODE: "A shape of an overlay brings no code.",
    BOUNDED: "A pattern is sure to end soon.",
    COMPILED: "A shape that is not compiled is judged by pyshacl, which is as right and slower.",
    EXPLAINED: "A term has a label and a definition.",
    KEPT: "How a memory of a project's own class is kept.",
    READ: "Every file of an overlay lies where it is read.",
    REPAIRS: "A shape has a message that says what to do.",
    SHACL: "A shape is one by the SHACL of SHACL.",
    SOUND: "A query has its header, is SPARQL, and asks this memory only.",
    TREE: "No class lies, over however many steps, below itself.",
    USABLE: "A term lies in a namespace of the project; a property takes things, or values of a datatype.",
    SECRET: "No text and no name in the journal looks like a key, a token or a password.",
    EXPIRED: "A waiver holds until the day it names.",
    UNUSED: "A waiver waives something.",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A broken rule, not placed yet: the node it is about, and the triple that breaks it as far as there is one."""

    item: Term
    rule: str
    severity: Severity
    message: str
    property: Term | None = None
    value: Term | None = None
    #: Other nodes it is as much about.
    beside: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: the item it is about (an IRI), the rule's IRI, what to do, and where it stands.

    Of a file that is held to shapes alone, `result_path` and `value` are what the result of SHACL names, in N-Triples.
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
    """Return *problems*, those about statements that were redacted as one where there are several."""
    problems = list(problems)
    redacted = [each for each in problems if each.message.startswith(REDACTION)]
    if len(redacted) < 2:
        return problems
    items = list(dict.fromkeys(short_id(each.item) for each in redacted))
    named, more = ", ".join(items[:_NAMED]), f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    lost = f"{len(items)} {'memory' if len(items) == 1 else 'memories'} lost {len(redacted)} statements"
    hint = 'end each that says nothing any more: jidomem revise IRI --invalidate --reason "its text was redacted"'
    one = replace(redacted[0], message=f"{lost} to redactions: {named}{more}; {hint}", path=None, line=None)
    return [one if each is redacted[0] else each for each in problems if each is redacted[0] or each not in redacted]


@dataclass(frozen=True, slots=True)
class Waived:
    """A finding that does not count, the reason somebody gave, the day until which it holds, and who gave it."""

    problem: Problem
    reason: str
    until: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """A waiver as it stands: it `holds`, has `expired`, or is `unused`; and how many findings are its own."""

    rule: str
    item: str
    reason: str
    until: str
    by: str
    state: str
    findings: int


@dataclass(slots=True)
class Report:
    """What was looked at, what was found and waived, what could not be checked, and what no rule spoke about.

    `idle` are the shapes that found nothing to judge; `untargeted` counts, by class, what no shape speaks about;
    `not_compared` counts the open tasks that name no issue; `notes` are words about the check itself.
    """

    judged: int = 0
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    waived: list[Waived] = field(default_factory=list)
    waivers: list[Standing] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    untargeted: dict[str, int] = field(default_factory=dict)
    not_compared: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Return 3 when something went unchecked, else 1 when a rule is violated, else 0."""
        if self.unchecked:
            return 3
        return 1 if any(problem.severity == "violation" for problem in self.problems) else 0

    def counts(self) -> dict[str, int]:
        """Return how many problems of each severity there are."""
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


def in_order(problems: Iterable[Problem], *, once: bool = True) -> list[Problem]:
    """Return problems, each *once*, by file and line, the grave before the others."""

    def place(problem: Problem) -> tuple[str | int, ...]:
        grade = SEVERITIES.index(problem.severity)
        said = problem.rule, problem.item, problem.message, problem.value or ""
        return problem.path or "", problem.line or 0, grade, *said

    return sorted(dict.fromkeys(problems) if once else problems, key=place)
