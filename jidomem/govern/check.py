"""Hold a memory, or any Turtle, to ontology and shapes: what is wrong, where, and by which rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from jidomem import vocab
from jidomem.errors import InvalidRequest, JournalDamaged, PolicyDenied
from jidomem.exchange.turtle import line_of, parse
from jidomem.index.tail import Tail
from jidomem.journal.files import Stream
from jidomem.judge import SH, judge_graph
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, is_iri, parts
from jidomem.version import Head
from jidomem.vocab import TYPE, jido
from jidomem.write.names import moment

SEVERITIES = ("violation", "warning", "info")
DANGLING = vocab.SHAPE + "EveryReferenceExists"
SYNTAX = vocab.SHAPE + "TurtleParses"
JOURNAL = vocab.SHAPE + "JournalIsIntact"
CIRCLE = vocab.SHAPE + "SupersessionHasNoCycle"
CONFLICT = vocab.SHAPE + "NothingInForceDisagrees"
#: What only jidomem mints: an IRI below these that nothing describes points at nothing.
_MINTED = tuple(f"<{vocab.BASE}{name}/" for name in ("memory", "agents", "sessions", "projects", "evidence"))


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: the item it is about (an IRI), the rule's IRI, what to do, and where it stands."""

    item: str
    rule: str
    severity: str
    message: str
    path: str | None = None
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON values."""
        return {
            "item": self.item,
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "line": self.line,
        }


@dataclass(slots=True)
class Report:
    """What was looked at, what was found, and what could not be checked, each with the reason."""

    judged: int = 0
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Return 3 when something went unchecked, else 1 when a rule is violated, else 0."""
        if self.unchecked:
            return 3
        return 1 if any(problem.severity == "violation" for problem in self.problems) else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        counts = {name: sum(p.severity == name for p in self.problems) for name in SEVERITIES}
        return {
            "conforms": self.exit_code == 0,
            "judged": self.judged,
            "counts": counts,
            "problems": [problem.to_dict() for problem in self.problems],
            "unchecked": self.unchecked,
        }


def check_project(tail: Tail, schema: Schema, project: str, disagreements: Iterable[Mapping[str, Any]] = ()) -> Report:
    """Return what is wrong with the memory of *project*: journal, shapes with the ontology in view, references.

    *disagreements* are the rows of the question `conflicts`, each of which is a finding.
    """
    stream = Stream(project)
    tail.catch_up(stream)
    damage = tail.journal.damage(stream)
    rows = list(tail.index.triples(stream.graph))
    report = Report(judged=_items(rows, schema), problems=[_damaged(found) for found in damage])
    places = _Places(tail, stream, rows)
    unsettled = {(row["a"], row["b"]): row for row in disagreements}
    for problem in [*_judged(rows, schema), *map(_unsettled, unsettled.values())]:
        path, line = places.of(problem.item)
        report.problems.append(_placed(problem, path, line))
    return report


def check_files(files: Sequence[tuple[str, bytes]], schema: Schema) -> Report:
    """Return what is wrong with Turtle *files* (path, content), each judged by itself with the ontology in view."""
    report = Report()
    for path, data in files:
        try:
            rows = parse(path, data)
        except InvalidRequest as error:
            report.problems.append(Problem(path, SYNTAX, "violation", error.detail, path))
            continue
        judged = _items(rows, schema)
        problems = _judged(rows, schema)
        if not judged and not problems:
            report.unchecked.append(f"{path}: no memory in it, so no rule spoke about it")
        text = data.decode("utf-8", "replace").splitlines()
        report.judged += judged
        report.problems += [_placed(problem, path, line_of(problem.item, text)) for problem in problems]
    return report


def check_data(data: tuple[str, bytes], shapes: tuple[str, bytes]) -> Report:
    """Return what SHACL *shapes* find in *data* (path, content), by the standard alone: no ontology is added."""
    rules = parse(*shapes)
    try:
        rows = parse(*data)
    except InvalidRequest as error:
        return Report(problems=[Problem(data[0], SYNTAX, "violation", error.detail, data[0])])
    for _, predicate, value in rules:
        if predicate.startswith(f"<{SH}") and re.search(r"\bSERVICE\b", value, re.IGNORECASE) and not is_iri(value):
            raise PolicyDenied(
                f"{shapes[0]}: a rule calls out with SERVICE",
                hint="judge local data only: take the SERVICE out",
                code="federation_refused",
            )
    findings = judge_graph(rows, rules)
    text = data[1].decode("utf-8", "replace").splitlines()
    problems = [
        Problem(bare(f.focus), bare(f.shape), f.severity, f.message, data[0], line_of(bare(f.focus), text))
        for f in findings
    ]
    return Report(judged=len({subject for subject, _, _ in rows}), problems=problems)


def _items(rows: Iterable[Triple], schema: Schema) -> int:
    return len({s for s, p, o in rows if p == TYPE and schema.is_a(o, jido("MemoryItem"))})


def _judged(rows: Sequence[Triple], schema: Schema) -> list[Problem]:
    """Return what shapes and references find in *rows*, without places."""
    problems = [Problem(bare(f.focus), bare(f.shape), f.severity, f.message) for f in schema.judge(rows, in_check=True)]
    described = {subject for subject, _, _ in rows}
    dangling = {(o, s, p) for s, p, o in rows if o.startswith(_MINTED) and o not in described and p != jido("inStream")}
    for target, subject, predicate in sorted(dangling):
        message = f"jido:{vocab.local_name(predicate)} points at {bare(target)}, which nothing describes"
        problems.append(Problem(bare(subject), DANGLING, "violation", message))
    for circle in _circles(rows):
        message = f"supersession runs in a circle through {', '.join(map(bare, circle))}: say again what holds"
        problems.append(Problem(bare(circle[0]), CIRCLE, "violation", message))
    return problems


def _circles(rows: Iterable[Triple]) -> Iterator[list[Term]]:
    """Yield each circle of supersessions, one to a knot; it is settled where a later item revives a member."""
    rows = list(rows)
    revived = {value for _, predicate, value in rows if predicate == jido("revives")}
    ends: dict[Term, set[Term]] = {}
    for subject, predicate, value in sorted(rows):
        if predicate == jido("supersededBy") and subject not in revived:
            ends.setdefault(subject, set()).add(value)
    while True:
        try:
            TopologicalSorter(ends).prepare()
        except CycleError as error:
            circle = sorted(set(error.args[1]))
            yield circle
            ends = {item: later for item, later in ends.items() if item not in circle}
        else:
            return


def _unsettled(row: Mapping[str, Any]) -> Problem:
    message = f"{row['kind']} with {row['b']}: settle it with one of the commands of: jidomem conflicts"
    return Problem(row["a"], CONFLICT, "violation", message)


def _placed(problem: Problem, path: str | None, line: int | None) -> Problem:
    return Problem(problem.item, problem.rule, problem.severity, problem.message, path, line)


def _damaged(found: JournalDamaged) -> Problem:
    commit = f"urn:jido:commit:{found.commit}" if found.commit else found.path
    return Problem(commit, JOURNAL, "violation", found.detail, found.path, found.line)


class _Places:
    """Where in the journal each item stands: the commit that recorded it, its file, the line of its block."""

    def __init__(self, tail: Tail, stream: Stream, rows: Iterable[Triple]) -> None:
        self._journal, self._stream = tail.journal, stream
        self._commit: dict[Term, Term] = {}
        self._head: dict[Term, dict[Term, Term]] = {}
        for subject, predicate, value in rows:
            if predicate == jido("recordedIn"):
                self._commit[subject] = value
            elif predicate in (jido("position"), jido("recordedAt")):
                self._head.setdefault(subject, {})[predicate] = value

    def of(self, item: str) -> tuple[str | None, int | None]:
        """Return the file and line of *item*; None where no commit recorded it by itself."""
        commit = self._commit.get(f"<{item}>")
        if commit is None:
            return None, None
        said = self._head[commit]
        identity = bare(commit).rsplit(":", 1)[-1]
        position = int(parts(said[jido("position")]).text)
        recorded_at = moment(parts(said[jido("recordedAt")]).text) or ""  # a store may have shortened it
        found = self._journal.document(self._stream, Head(recorded_at, identity, position))
        if found is None:
            return None, None
        path, before, document = found
        line = line_of(item, document.decode("utf-8", "replace").splitlines())
        return path, None if line is None else before + line
