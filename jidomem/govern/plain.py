"""Any Turtle held to any SHACL shapes, by the standard alone: no ontology is added, nothing is fetched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from jidomem import sparql
from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.govern.judged import above, as_found, idle, targets
from jidomem.govern.report import SYNTAX, Problem, Report, in_order
from jidomem.govern.sources import FileSource, Source, line_of_error, read
from jidomem.judge import SH, judge_graph
from jidomem.schema import OWL
from jidomem.terms import Term, Triple, iri, parts
from jidomem.vocab import local_name

_CODE = {iri(SH + name) for name in ("select", "ask", "construct")}
_CODEPOINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def check_data(data: tuple[str, bytes], shapes: tuple[str, bytes]) -> Report:
    """Return what SHACL *shapes* find in *data* (path, content).

    Raise InvalidRequest for shapes that are no Turtle, PolicyDenied for shapes that would call out, and Failed for
    shapes that are ill-formed or ask for an entailment.
    """
    rules = read(*shapes)
    _refuse(shapes[0], rules)
    try:
        source = FileSource(*data)
    except InvalidRequest as error:
        return Report(problems=[Problem(data[0], SYNTAX, "violation", error.detail, data[0], line_of_error(error))])
    problems = source.placed([as_found(finding) for finding in judge_graph(source.triples, rules)])
    named = [replace(each, rule=SH + "Shape") if each.rule.startswith("_:") else each for each in problems]
    aimed = _aimed(source, rules)
    unchecked = [f"{shapes[0]} imports {value}, and no import is followed" for _, p, value in rules
                 if p == iri(OWL + "imports")]  # fmt: skip
    if not aimed:
        unchecked.append(f"{data[0]}: no shape of {shapes[0]} speaks about anything in it")
    return Report(
        judged=len(aimed),
        problems=in_order(named),
        unchecked=unchecked,
        idle=idle(source, rules),
        untargeted=_passed_over(source, aimed),
    )


def _refuse(path: str, rules: Sequence[Triple]) -> None:
    """Raise unless no rule calls out or asks for what is not done here."""
    for _, predicate, value in rules:
        if predicate == iri(SH + "entailment"):
            raise Failed(f"{path}: asks for the entailment {value}", hint="state what follows in the data",
                         code="invalid_config")  # fmt: skip
        if predicate in _CODE and value[0] == '"':
            text = _CODEPOINT.sub(lambda match: chr(int(match[1] or match[2], 16)), parts(value).text)
            try:
                sparql.dataset(sparql.check(text), ())
            except JidomemError as error:
                error.detail = f"{path}: {error.detail}"
                error.args = (error.detail,)
                raise


def _aimed(source: Source, rules: Sequence[Triple]) -> set[Term]:
    """Return the nodes that a shape targets."""
    aims = [(local_name(kind), target) for _, kind, target in targets(rules)]
    classes = {target for kind, target in aims if kind == "targetClass"}
    found = {target for kind, target in aims if kind == "targetNode"}
    subjects = {target for kind, target in aims if kind == "targetSubjectsOf"}
    objects = {target for kind, target in aims if kind == "targetObjectsOf"}
    hit = {of: bool(above(of, source) & classes) for of in {*source.types.values()}}
    found |= {node for node, of in source.types.items() if hit[of]}
    for subject, predicate, value in source.triples:
        found |= ({subject} if predicate in subjects else set()) | ({value} if predicate in objects else set())
    return found


def _passed_over(source: Source, aimed: set[Term]) -> dict[str, int]:
    """Return how many of what the data describes no shape speaks about, by class."""
    rest = [source.types.get(node) for node in source.about.keys() - aimed]
    counted = Counter(local_name(min(of)) if of else "of no class" for of in rest)
    return dict(sorted(counted.items()))
