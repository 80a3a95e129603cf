"""A project's own terms, shapes and questions, judged before anybody works by them, each finding in its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jidomem import overlay
from jidomem.deadline import bounded
from jidomem.errors import InvalidRequest
from jidomem.govern.own_terms import is_shacl, shapes, terms, undeclared
from jidomem.govern.questions import asked
from jidomem.govern.reasoning import inconsistencies
from jidomem.govern.report import READ, SYNTAX, Found, Problem, Report, in_order
from jidomem.govern.sources import FileSource, Source, by_subject, line_in, line_of_error
from jidomem.schema import extended_by
from jidomem.terms import Term, Triple, bare, is_iri

TERMS, RULES, QUESTIONS = "ontology", "shapes", "queries"
_READ = (f"{TERMS}/*.ttl", f"{RULES}/*.ttl", f"{QUESTIONS}/*/*.rq")
_ALIGNMENT = "alignment.ttl"
_BLANK = re.compile(r"_:f(\d+)-(.+)")


@dataclass(frozen=True, slots=True)
class Brought:
    """A Turtle file of an overlay: whether it holds rules, and its triples, blank nodes named apart from others'."""

    path: Path
    source: FileSource
    is_rules: bool
    triples: tuple[Triple, ...]


def check_overlay(root: Path, given: Sequence[Path] = ()) -> Report:
    """Return what is wrong with the overlay of *root*: or, the whole of it in view, with the files *given* alone."""
    report = Report()
    own = _own(root)
    wanted = {path.resolve() for path in given} or {path.resolve() for path in own}
    files = {path.resolve(): path for path in [*own, *given]}
    brought: list[Brought] = []
    for path in files.values():
        if path.suffix != ".rq":
            try:
                brought.append(_brought(path, len(brought)))
            except InvalidRequest as error:
                number, name = line_of_error(error), f"{path.parent.name}/{path.name}"
                text = f"{error.detail.removeprefix(f'{path}:').removeprefix(f'{number}:').strip()}: {error.hint}"
                broken = Problem(name, SYNTAX, "violation", text, str(path), number)
                _add(report, broken, path.resolve() in wanted)
    queries = [path for path in files.values() if path.suffix == ".rq"]
    for path, problem in asked(queries, root):
        _add(report, problem, path.resolve() in wanted)
    if not given:
        report.problems += unread(root)
    with bounded(f"judging the overlay of {root}"):
        found = _judged(brought)
    for place, problem in _placed(found, brought):
        if place is None or place.resolve() in wanted:
            report.problems.append(problem)
    report.judged = len(wanted)
    report.problems = in_order(report.problems)
    if not files:
        report.notes.append(f"{root} has no overlay: no file in ontology/, shapes/ or queries/")
    return report


def _add(report: Report, problem: Problem, wanted: bool) -> None:
    """Keep a problem; one that was not asked about is a reason why something went unchecked."""
    if wanted:
        report.problems.append(problem)
    else:
        report.unchecked.append(f"{problem.path} is not in view: {problem.message}")


def _brought(path: Path, number: int) -> Brought:
    """Return a Turtle file; raise InvalidRequest, with file and line, for what is none or cannot be read."""
    try:
        source = FileSource(str(path), path.read_bytes())
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}", hint="make it a readable file") from error

    def apart(term: Term) -> Term:
        return f"_:f{number}-{term[2:]}" if term.startswith("_:") else term

    triples = tuple((apart(s), p, apart(o)) for s, p, o in source.triples)
    is_rules = path.parent.name == RULES or (path.parent.name != TERMS and any(is_shacl(row) for row in triples))
    return Brought(path, source, is_rules, triples)


def _own(root: Path) -> list[Path]:
    """Return the files of the overlay of *root* that are read."""
    return [path for pattern in _READ for path in sorted(root.glob(pattern))]


def unread(root: Path) -> Iterator[Problem]:
    """Yield the files that lie in an overlay where nobody reads them."""
    own = _own(root)
    for folder in (TERMS, RULES, QUESTIONS):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path not in own and not path.name.startswith("."):
                text = f"this file is not read: an overlay is {', '.join(_READ)}"
                yield Problem(str(path.relative_to(root)), READ, "warning", text, str(path))


def _judged(brought: Sequence[Brought]) -> list[Found]:
    """Return what is wrong with terms and shapes, in view of all that may stand."""
    found: list[Found] = []
    said: dict[Path, list[Triple]] = {}
    rules: dict[Path, list[Triple]] = {}
    for each in brought:
        kept = (rules if each.is_rules else said).setdefault(each.path, [])
        for triple in each.triples:
            objection = overlay.objection(triple)
            if objection is None:
                kept.append(triple)
            else:
                text = f"this {objection.text}: {objection.hint}"
                found.append(Found(triple[0], objection.rule, "violation", text, triple[1], triple[2]))
    schema = extended_by(said, rules)
    own = [triple for triples in (*said.values(), *rules.values()) for triple in triples]
    mapped = {path: triples for path, triples in said.items() if path.name == _ALIGNMENT}
    of_terms = [row for path, rows in said.items() if path not in mapped for row in rows]
    found += terms(of_terms, schema) + undeclared(own, schema)
    found += shapes([row for triples in rules.values() for row in triples], schema)
    found += inconsistencies(Source([]), schema) if of_terms else []
    return found


def _placed(found: Iterable[Found], brought: Sequence[Brought]) -> Iterator[tuple[Path | None, Problem]]:
    """Yield each finding with the file it stands in, and as a problem with its line; unnamed nodes by their owner."""
    about: dict[Term, list[int]] = {}
    owner: dict[Term, Term] = {}
    for number, each in enumerate(brought):
        for subject, _, value in each.triples:
            about.setdefault(subject, []).append(number)
            if value.startswith("_:"):
                owner.setdefault(value, subject)
    lines = [by_subject(each.source.stated) for each in brought]
    for one in found:
        places = dict.fromkeys(about.get(one.item, ()))
        named, seen = one.item, {one.item}
        while named in owner and owner[named] not in seen:
            named = owner[named]
            seen.add(named)
        problem = Problem(bare(named) if is_iri(named) else named, one.rule, one.severity, one.message)
        if not places:
            yield None, problem
            continue
        number = _file_of(one, list(places), brought)
        local = replace(one, item=_label(one.item), value=_label(one.value))
        path = brought[number].path
        yield path, replace(problem, path=str(path), line=line_in(lines[number], local))


def _file_of(found: Found, places: Sequence[int], brought: Sequence[Brought]) -> int:
    """Return the file that says the triple to blame, else the first that speaks about the node."""
    triple = (found.item, found.property, found.value)
    return next((number for number in places if triple in brought[number].triples), places[0])


def _label(term: Term | None) -> Term:
    match = _BLANK.fullmatch(term or "")
    return f"_:{match[2]}" if match else term or ""
