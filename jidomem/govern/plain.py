"""Any Turtle held to any SHACL shapes, by the standard alone: no ontology is added, nothing is fetched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from jidomem import sparql
from jidomem.dataset import refuse_graphs
from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.govern.judged import above, as_found, idle, targets
from jidomem.govern.report import SYNTAX, Problem, Report, in_order
from jidomem.govern.sources import FileSource, Source, line_of_error, read
from jidomem.judge import SH, Finding, judge_graph
from jidomem.schema import OWL
from jidomem.terms import Term, Triple, iri, parts
from jidomem.vocab import local_name

_CODE = {iri(SH + name) for name in ("select", "ask", "construct")}
#: What a shape may say that is judged, or that says nothing to be judged; of SHACL there is no more than this.
_CONSTRAINTS = (
    "and class closed datatype disjoint equals hasValue ignoredProperties in languageIn lessThan lessThanOrEquals"
    " maxCount maxExclusive maxInclusive maxLength minCount minExclusive minInclusive minLength node nodeKind not or"
    " pattern flags property qualifiedMaxCount qualifiedMinCount qualifiedValueShape qualifiedValueShapesDisjoint"
    " sparql uniqueLang xone targetClass targetNode targetObjectsOf targetSubjectsOf path alternativePath inversePath"
    " oneOrMorePath zeroOrMorePath zeroOrOnePath severity message deactivated"
)
_BESIDE = (
    "name description order group defaultValue select ask prefixes declare prefix namespace parameter optional"
    " labelTemplate validator nodeValidator propertyValidator shapesGraph suggestedShapesGraph"
    " conforms result focusNode resultPath value sourceShape sourceConstraint sourceConstraintComponent"
    " resultSeverity resultMessage detail"
)
_CODEPOINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def check_data(data: tuple[str, bytes], shapes: tuple[str, bytes]) -> Report:
    """Return what SHACL *shapes* find in *data* (path, content); a relative IRI is resolved against the file it is in.

    Raise InvalidRequest for shapes that are no Turtle, PolicyDenied for shapes that would call out, and Failed for
    shapes that are ill-formed or ask for an entailment.
    """
    rules = read(*shapes, base=Path(shapes[0]).absolute().as_uri())
    _refuse(shapes[0], rules)
    try:
        source = FileSource(*data, base=Path(data[0]).absolute().as_uri())
    except InvalidRequest as error:
        return Report(problems=[Problem(data[0], SYNTAX, "violation", error.detail, data[0], line_of_error(error))])
    results = [as_found(finding) for finding in _judged(shapes[0], source, rules)]
    named = [
        replace(
            problem,
            rule=SH + "Shape" if problem.rule.startswith("_:") else problem.rule,
            result_path=result.property,
            value=result.value,
        )
        for result, problem in zip(results, source.placed(results), strict=True)
    ]
    aimed = _aimed(source, rules)
    unchecked = [f"{shapes[0]} imports {value}, and no import is followed" for _, p, value in rules
                 if p == iri(OWL + "imports")]  # fmt: skip
    unchecked += _unknown(shapes[0], rules)
    if not aimed:
        unchecked.append(f"{data[0]}: no shape of {shapes[0]} speaks about anything in it")
    return Report(
        judged=len(aimed),
        problems=in_order(named, once=False),
        unchecked=unchecked,
        idle=idle(source, rules),
        untargeted=_passed_over(source, aimed),
        notes=_deactivated(rules),
    )


def _judged(path: str, source: Source, rules: Sequence[Triple]) -> list[Finding]:
    """Return what pyshacl finds; raise Failed where it cannot say, whatever it fails with."""
    try:
        return judge_graph(source.triples, rules)
    except JidomemError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise Failed(f"{path}: pyshacl cannot judge by these shapes: {said}", hint="correct what it names",
                     code="invalid_config") from error  # fmt: skip


def _unknown(path: str, rules: Iterable[Triple]) -> list[str]:
    """Return what shapes ask for in the words of SHACL that nobody judges: misspelt, or of an extension of it."""
    known = _CONSTRAINTS.split()
    names = sorted({local_name(p) for _, p, _ in rules if p.startswith(f"<{SH}")} - {*known, *_BESIDE.split()})
    near = {name: get_close_matches(name, known, 1) for name in names}
    return [
        f"{path}: sh:{name} is not judged" + (f"; did you mean sh:{near[name][0]}?" if near[name] else "; leave it out")
        for name in names
    ]


def _deactivated(rules: Iterable[Triple]) -> list[str]:
    """Return a word about the shapes that were switched off."""
    off = sorted(s for s, p, o in rules if p == iri(SH + "deactivated") and o[1:2] in ("t", "1"))
    return [f"deactivated shapes judge nothing: {', '.join(map(_name, off))}"] if off else []


def _name(node: Term) -> str:
    return local_name(node) if node.startswith("<") else "one without a name"


def _refuse(path: str, rules: Sequence[Triple]) -> None:
    """Raise unless no rule calls out or asks for what is not done here."""
    for _, predicate, value in rules:
        if predicate == iri(SH + "entailment"):
            raise Failed(f"{path}: asks for the entailment {value}", hint="state what follows in the data",
                         code="invalid_config")  # fmt: skip
        if predicate in _CODE and value[0] == '"':
            text = _CODEPOINT.sub(lambda match: chr(int(match[1] or match[2], 16)), parts(value).text)
            try:
                refuse_graphs(sparql.check(text))
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
