"""The rules of a check: gate queries and SHACL shapes.

A gate is a query whose every row is a violation; `run` runs the shipped gates and those of the root against the index.
`shacl` judges every node with the compiled validator and confirms violations with pyshacl. `check_data` judges any
Turtle by any shapes, without the ontology and without network access. A chain of supersessions with a cycle or with two
active ends, successors or a successor and a withdrawal, is reported with its members.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from jidomem.base import files
from jidomem.base.containers import grouped, reachable
from jidomem.check.report import (
    AGREED,
    CIRCLE,
    GATE,
    RULES,
    SEVERITIES,
    SUCCESSORS,
    SYNTAX,
    TARGETED,
    CheckReport,
    Problem,
    UnplacedFinding,
    in_order,
)
from jidomem.check.sources import FileSource, TripleSource, line_of_error, read
from jidomem.errors import Failed, InvalidRequest, JidomemError, nearest_names
from jidomem.index.results import Solutions
from jidomem.index.store import OxigraphIndex
from jidomem.rdf import sparql, vocab
from jidomem.rdf.sparql import refuse_graphs
from jidomem.rdf.terms import Term, Triple, boolean, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, GRAPHS, ONTOLOGY_GRAPH, RDF, TYPE, graph_iri, jido, local_name, short_id
from jidomem.records.intent import CONFLICT_KEY, is_named_as_staying, judgement_keys
from jidomem.records.named_query import NamedQuery, parse
from jidomem.schema.ontology import OWL, Schema
from jidomem.schema.shacl import EVERY_ITEM_IS_JUDGED, SH, Finding, Severity, validate_graph

FOLDER = "gates"
#: The columns of a gate: the node that fails, the message, the severity, and the triple at fault.
COLUMNS = ("item", "message", "severity", "property", "value")
_BLANK = f"<{BASE}.well-known/genid/check/"


class GateQuery(NamedTuple):
    """A query whose rows are violations; `rule` is its IRI, its `summary` states the requirement."""

    query: NamedQuery
    path: Path

    @property
    def rule(self) -> str:
        """Return the IRI of the rule."""
        return GATE + self.query.name


#: Runs the query of a gate; raises JidomemError on failure.
Ask = Callable[[str], Solutions]


@cache
def shipped() -> tuple[GateQuery, ...]:
    """Return the gates of jidomem."""
    return tuple(read_gates(path) for path in files.query_files() if path.parent.name == FOLDER)


def names(schema: Schema, own: Iterable[GateQuery]) -> set[str]:
    """Return the short names of all rules: shapes, shipped and *own* gates, and those of the check itself."""
    shapes = {plain_value(shape) for shape, _, _ in schema.rules if is_iri(shape)}
    return set(map(local_name, {*RULES, *shapes, *(gate.rule for gate in (*shipped(), *own))}))


def of_ontology(findings: Iterable[UnplacedFinding], source: TripleSource, schema: Schema) -> Iterator[UnplacedFinding]:
    """Yield *findings* without those of shipped gates by axioms that only the memory has.

    A vocabulary outside of `ontology/` is foreign, and a write keeps it unjudged.
    """
    judged = {gate.rule for gate in shipped()}
    disjoint = {(subject, value) for subject, predicate, value in schema.triples if predicate == _DISJOINT}
    for each in findings:
        if each.rule not in judged or each.property in schema.properties:
            yield each
        elif each.property is None:  # disjoint classes; the types of nodes of other graphs are not here
            classes = source.types.get(each.item)
            kinds = {above for cls in classes or () for above in schema.ancestors(cls)}
            if classes is None or any({*pair} <= kinds for pair in disjoint):
                yield each


def of_root(root: Path) -> tuple[list[GateQuery], list[str]]:
    """Return the gates of a root, and the reasons for refusing its other gate files: outside access or wrong form."""
    own: list[GateQuery] = []
    refused = []
    taken = {gate.query.name for gate in shipped()}
    for path in sorted((root / "queries" / FOLDER).glob("*.rq")):
        try:
            gate = read_gates(path)
            if gate.query.name in taken:
                raise _bad(path, f"the name {gate.query.name!r} is taken by a shipped gate", "give the file another")
            own.append(gate)
        except JidomemError as error:
            above = "" if error.detail.startswith(str(path)) else f"{path.parent.parent}/"
            refused.append(f"gate {path.stem}: {above}{error.detail}; {error.hint}")
    return own, refused


def run(gates: Iterable[GateQuery], ask: Ask) -> tuple[list[UnplacedFinding], list[str]]:
    """Return the findings of *gates*, and the gates that could not be run, each with the reason."""
    findings: list[UnplacedFinding] = []
    unchecked = []
    for gate in gates:
        try:
            findings += [_row(gate, answer) for answer in _rows(ask(gate.query.text))]
        except JidomemError as error:
            unchecked.append(f"gate {gate.query.name}: {error.detail}; {error.hint}")
    return findings, unchecked


def at_revision(
    gated: Sequence[UnplacedFinding],
    own: Iterable[GateQuery],
    ask: Ask | None,
    content: Callable[[Path], bytes],
    before: tuple[TripleSource, Schema] | None,
) -> list[UnplacedFinding]:
    """Return the findings on the present statements of the gates and the ontology at a revision.

    *gated* are the present findings, *content* returns a file at the revision, *before* is what the shipped gates judge
    and the ontology then, None if it is the present one. A gate that was absent or refused then found nothing.
    """
    found = [] if before is None else run(shipped(), of_source(before[0], before[1].triples))[0]
    same = {gate.rule for gate in shipped()} if before is None else set[str]()
    for gate in own:
        if (data := content(gate.path)) == gate.path.read_bytes():
            same.add(gate.rule)
        elif data and ask is not None:
            with suppress(JidomemError, UnicodeDecodeError):
                found += run([GateQuery(parse(gate.path.stem, FOLDER, data.decode("utf-8-sig")), gate.path)], ask)[0]
    return [*found, *(each for each in gated if each.rule in same)]


def of_project(index: OxigraphIndex, project: str) -> Ask:
    """Return the function that queries the graphs of *project*, in this process."""
    graphs = [*(graph_iri(project, name) for name in GRAPHS), ONTOLOGY_GRAPH]
    return lambda text: _solutions(index, text, graphs)


def of_source(source: TripleSource, ontology: Iterable[Triple]) -> Ask:
    """Return the function that queries the triples of *source*, in this process."""
    index, graph = OxigraphIndex(), graph_iri("checked")
    index.put_ontology(ontology)
    index.apply(graph, "source", [(_named(s), p, _named(o)) for s, p, o in source.triples])

    def ask(text: str) -> Solutions:
        answer = _solutions(index, text, [graph, ONTOLOGY_GRAPH])
        return answer._replace(rows=tuple(tuple(map(_blank, row)) for row in answer.rows))

    return ask


def read_gates(path: Path) -> GateQuery:
    """Return the gate in a file; raise an error with the reason if it is no gate."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, str(error), "make it a readable file of UTF-8 text") from error
    query = parse(path.stem, FOLDER, text)
    odd = [column for column in query.columns if column not in COLUMNS]
    if query.params or query.list_order or "item" not in query.columns or odd:
        problem = f"?{odd[0]} is not a column of a gate" if odd else "it takes parameters, or has no column item"
        raise _bad(path, problem, f"a gate has no params, and columns among {' '.join(COLUMNS)}, item always")
    refuse_graphs(sparql.check(text))
    return GateQuery(query, path)


def _rows(answer: Solutions) -> list[dict[str, Term | None]]:
    return [dict(zip(answer.variables, row, strict=True)) for row in answer.rows]


def _row(gate: GateQuery, row: dict[str, Term | None]) -> UnplacedFinding:
    """Return one failure; raise Failed for a row without an item or with an unknown severity."""
    item, message, severity = row.get("item"), row.get("message"), row.get("severity")
    grade = (
        "violation"
        if severity is None
        else parse_literal(severity).text
        if severity[0] == '"'
        else plain_value(severity)
    )
    if item is None or item[0] == '"' or grade not in SEVERITIES:
        raise _bad(gate.path, f"a row with item {item} and severity {severity}", f"say {', '.join(SEVERITIES)}")
    graded: Severity = next(each for each in SEVERITIES if each == grade)
    message_text = gate.query.summary if message is None else plain_value(message)
    value, property_ = row.get("value"), row.get("property")
    return UnplacedFinding(
        item, gate.rule, graded, message_text, property_ if property_ and is_iri(property_) else None, value
    )


def _solutions(index: OxigraphIndex, text: str, graphs: Sequence[str]) -> Solutions:
    answer = index.query(text, graphs=graphs)
    assert isinstance(answer, Solutions)  # the header was compared with a SELECT
    return answer


def _named(term: Term) -> Term:
    return f"{_BLANK}{term[2:]}>" if term.startswith("_:") else term


def _blank(term: Term | None) -> Term | None:
    return f"_:{term[len(_BLANK) : -1]}" if term and term.startswith(_BLANK) else term


def _bad(path: Path, what: str, hint: str) -> Failed:
    return Failed(f"{path}: {what}", hint=hint, code="invalid_config")


_DISJOINT = iri(OWL + "disjointWith")
_PATH, _INVERSE, _FIRST = iri(SH + "path"), iri(SH + "inversePath"), iri(RDF + "first")
_STEPS = {_PATH, _FIRST, _INVERSE, *(iri(SH + name) for name in ("zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"))}
_OBJECTS_OF, _SUBJECTS_OF = iri(SH + "targetObjectsOf"), iri(SH + "targetSubjectsOf")
_CLASS, _NODE = iri(SH + "targetClass"), iri(SH + "targetNode")
_TARGETS = (_CLASS, _NODE, _OBJECTS_OF, _SUBJECTS_OF)
_SHAPES = {iri(SH + "NodeShape"), iri(SH + "PropertyShape")}
_CLASSES = {iri(vocab.RDFS + "Class"), iri("http://www.w3.org/2002/07/owl#Class")}
_STEP = re.compile(r"(?<![\w^])(?:jido:([\w-]+)|<([^<>]+)>)")
#: The statements that the writer makes about an agent when it is first named.
_STUB = {TYPE, jido("agentName"), vocab.LABEL}
_OF_STUBS = {iri(vocab.SHAPE + "AgentHasARole"), iri(vocab.SHAPE + "AgentHasACapability")}


def shacl(source: TripleSource, schema: Schema, *, reference: bool = False) -> list[UnplacedFinding]:
    """Return the findings of the shapes at every targeted node, in the words of pyshacl.

    The compiled validator judges all nodes and pyshacl each node it flags; with *reference* only pyshacl judges.
    """
    if reference:
        findings = schema.by_reference().judge(source.triples, in_check=True)
    else:
        findings = schema.judge(source.triples, in_check=True)
        flagged = {each.focus for each in findings if each.shape != EVERY_ITEM_IS_JUDGED}
        findings = _confirmed(findings, source, schema, flagged) if flagged else findings
    return [as_unplaced(_graded(each, source)) for each in findings]


def _confirmed(findings: list[Finding], source: TripleSource, schema: Schema, flagged: set[Term]) -> list[Finding]:
    """Return the findings, for *flagged* nodes those of pyshacl; a difference between the two is a finding itself."""
    near = reachable_triples(source, flagged, schema.rules)
    reference = schema.by_reference().judge(near, flagged, in_check=True)
    confirmed = [each for each in reference if each.shape != EVERY_ITEM_IS_JUDGED]
    unjudged = [each for each in findings if each.shape == EVERY_ITEM_IS_JUDGED]
    for each in sorted({*confirmed} ^ {*findings}.difference(unjudged), key=repr)[:1]:
        text = (
            f"the compiled shapes and pyshacl differ on {plain_value(each.shape)} (pyshacl counts): please report this"
        )
        confirmed.append(Finding(each.focus, iri(AGREED), each.path, each.value, text, "violation"))
    return [*unjudged, *confirmed]


def reachable_triples(source: TripleSource, nodes: Iterable[Term], rules: Iterable[Triple]) -> list[Triple]:
    """Return the triples of *nodes* and of all nodes that a path of *rules* can reach from them."""
    rules = list(rules)
    forward = {value for _, step, value in rules if step in _STEPS and is_iri(value)}
    backward = {value for _, step, value in rules if step in (_INVERSE, _OBJECTS_OF) and is_iri(value)}
    if any(step == _INVERSE and not is_iri(value) for _, step, value in rules):
        backward |= forward
    pointing = grouped((triple[2], triple) for triple in source.of(*backward))

    def linked(node: Term) -> set[Term]:
        values = {value for _, predicate, value in source.about.get(node, ()) if predicate in forward}
        return {value for value in values if value[0] != '"'}.union(row[0] for row in pointing.get(node, ()))

    every = reachable(nodes, linked)
    rows = (row for node in every for row in (*source.about.get(node, ()), *pointing.get(node, ())))
    return list(dict.fromkeys(rows))


def _graded(finding: Finding, source: TripleSource) -> Finding:
    """Return the finding, as a warning if it is about an agent that was only mentioned."""
    if finding.shape in _OF_STUBS and finding.focus.startswith(f"<{vocab.BASE}agents/"):
        predicates = {predicate for _, predicate, _ in source.about.get(finding.focus, ())}
        if predicates <= _STUB:
            severity: Severity = "warning"
            return Finding(finding.focus, finding.shape, finding.path, finding.value, finding.message, severity)
    return finding


def as_unplaced(finding: Finding) -> UnplacedFinding:
    """Return a finding of SHACL as a finding of a check."""
    return UnplacedFinding(
        finding.focus,
        plain_value(finding.shape) if is_iri(finding.shape) else finding.shape,
        finding.severity,
        finding.message,
        _property(finding),
        finding.value,
    )


def _property(finding: Finding) -> Term | None:
    """Return the first property of the path from the node, the place to look at."""
    if finding.path is None:
        return TYPE if finding.shape == EVERY_ITEM_IS_JUDGED else None
    if is_iri(finding.path):
        return finding.path
    match = _STEP.search(finding.path)
    return None if match is None else jido(match[1]) if match[1] else iri(match[2])


def judging_inactive(rules: Iterable[Triple], gates: Iterable[GateQuery]) -> set[str]:
    """Return the IRIs of the shapes, with their parts, and of the gates that judge inactive memories too.

    All that jidomem ships do, those of a root only on request.
    """
    parts: dict[Term, list[Term]] = {}
    shapes: list[Term] = []
    for shape, predicate, value in rules:
        parts.setdefault(shape, []).append(value)
        if shape.startswith(f"<{vocab.SHAPE}") or (predicate, value) == (_INACTIVE, boolean(True)):
            shapes.append(shape)
    seen: set[Term] = set()
    while shapes:
        shape = shapes.pop()
        if shape not in seen:
            seen.add(shape)
            shapes += [part for part in parts.get(shape, ()) if part in parts]
    return {plain_value(shape) for shape in seen if is_iri(shape)} | {
        gate.rule for gate in gates if gate.query.judges_inactive
    }


def targets(rules: Iterable[Triple]) -> list[tuple[Term, Term, Term]]:
    """Return the targets of each shape: shape, kind of target, target. A class that is a shape targets itself.

    A node is a shape if it is typed as one or has a property of SHACL.
    """
    rules = list(rules)
    types: dict[Term, set[Term]] = {}
    for subject, predicate, value in rules:
        if predicate == TYPE:
            types.setdefault(subject, set()).add(value)
        elif predicate.startswith(f"<{SH}"):
            types.setdefault(subject, set()).update(_SHAPES)
    stated = [(subject, kind, value) for subject, kind, value in rules if kind in _TARGETS]
    return stated + [(node, _CLASS, node) for node, kinds in types.items() if kinds & _CLASSES and kinds & _SHAPES]


def idle(source: TripleSource, rules: Iterable[Triple], schema: Schema | None = None) -> list[str]:
    """Return the shapes with a target but no matching node, sorted; with *schema* its class tree counts."""
    kinds = {cls for classes in source.types.values() for cls in classes}
    kinds = (
        superclass_closure(kinds, source)
        if schema is None
        else {cls for kind in kinds for cls in schema.ancestors(kind)}
    )
    is_used: dict[Term, bool] = {}
    for shape, kind, target in targets(rules):
        if kind == _CLASS:
            is_matched = target in kinds
        elif kind == _NODE:
            is_matched = True
        else:
            is_matched = target in source.by_property
        is_used[shape] = is_used.get(shape, False) or is_matched
    return sorted(plain_value(shape) if is_iri(shape) else shape for shape, matched in is_used.items() if not matched)


def superclass_closure(classes: Collection[Term], source: TripleSource) -> set[Term]:
    """Return *classes* and their superclasses in the data itself."""
    return reachable(classes, lambda cls: source.values(cls, iri(vocab.RDFS + "subClassOf")))


def untargeted(source: TripleSource, rules: Iterable[Triple], schema: Schema) -> dict[str, int]:
    """Return the number of nodes without a shape, by class, so that skipped nodes are visible."""
    aimed = targets(rules)
    classes = {target for _, kind, target in aimed if kind == _CLASS}
    every = {*source.types.values()}
    is_targeted = {kinds: any(schema.is_a(cls, aim) for cls in kinds for aim in classes) for kinds in every}
    counted = Counter(_first(kinds) for kinds in source.types.values() if not is_targeted[kinds])
    return {local_name(cls): count for cls, count in sorted(counted.items())}


def _first(kinds: Collection[Term]) -> Term:
    """Return the class by which a node is counted, preferably one of the ontology."""
    return min(kinds, key=lambda cls: (not cls.startswith(f"<{vocab.JIDO}"), cls))


def untargeted_shapes(rules: Iterable[Triple], schema: Schema) -> list[UnplacedFinding]:
    """Return the shapes that can never match, because their target is not declared."""
    known: Mapping[Term, Collection[Term]] = {
        _CLASS: schema.classes, _OBJECTS_OF: schema.properties, _SUBJECTS_OF: schema.properties,
    }  # fmt: skip
    findings = []
    for shape, kind, target in targets(rules):
        if kind in known and target not in known[kind]:
            name = target if target.startswith("_:") else plain_value(target)
            text = f"sh:{local_name(kind)} {name} is not declared: this shape never matches"
            findings.append(UnplacedFinding(shape, TARGETED, "violation", text, kind, target))
    return findings


_CODE = {iri(SH + name) for name in ("select", "ask", "construct")}
#: The supported terms of SHACL: constraints, and terms without effect on validation.
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


def check_data(data: tuple[str, bytes], shapes: tuple[str, bytes]) -> CheckReport:
    """Return the findings of SHACL *shapes* in *data* (path, content); relative IRIs are resolved against their file.

    Raises InvalidRequest for shapes that are not Turtle, PolicyDenied for shapes with external access, and Failed for
    shapes that are ill-formed or need an entailment.
    """
    rules = read(*shapes, base=Path(shapes[0]).absolute().as_uri())
    _refuse(shapes[0], rules)
    try:
        source = FileSource(*data, base=Path(data[0]).absolute().as_uri())
    except InvalidRequest as error:
        return CheckReport(
            problems=[Problem(data[0], SYNTAX, "violation", error.detail, data[0], line_of_error(error))]
        )
    results = [as_unplaced(finding) for finding in _judged(shapes[0], source, rules)]
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
    unchecked = [f"{shapes[0]} imports {value}, and imports are not followed" for _, p, value in rules
                 if p == iri(OWL + "imports")]  # fmt: skip
    unchecked += _unknown(shapes[0], rules)
    if not aimed:
        unchecked.append(f"{data[0]}: no shape of {shapes[0]} matches a node in it")
    return CheckReport(
        judged=len(aimed),
        problems=in_order(named, once=False),
        unchecked=unchecked,
        idle=idle(source, rules),
        untargeted=_passed_over(source, aimed),
        notes=_deactivated(rules),
    )


def _judged(path: str, source: TripleSource, rules: Sequence[Triple]) -> list[Finding]:
    """Return the findings of pyshacl; raise Failed for any of its exceptions."""
    try:
        return validate_graph(source.triples, rules)
    except JidomemError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise Failed(f"{path}: pyshacl cannot judge by these shapes: {message}", hint="correct what it names",
                     code="invalid_config") from error  # fmt: skip


def _unknown(path: str, rules: Iterable[Triple]) -> list[str]:
    """Return the SHACL terms in shapes that are not evaluated: misspelt, or of an extension."""
    known = _CONSTRAINTS.split()
    names = sorted({local_name(p) for _, p, _ in rules if p.startswith(f"<{SH}")} - {*known, *_BESIDE.split()})
    near = {name: nearest_names(name, known) for name in names}
    return [
        f"{path}: sh:{name} is not evaluated; "
        + (f"did you mean sh:{near[name][0]}?" if near[name] else "leave it out")
        for name in names
    ]


def _deactivated(rules: Iterable[Triple]) -> list[str]:
    """Return the notice of deactivated shapes."""
    off = sorted(s for s, p, o in rules if p == iri(SH + "deactivated") and o[1:2] in ("t", "1"))
    return [f"deactivated shapes judge nothing: {', '.join(map(_name, off))}"] if off else []


def _name(node: Term) -> str:
    return local_name(node) if node.startswith("<") else "a shape without a name"


def _refuse(path: str, rules: Sequence[Triple]) -> None:
    """Raise if a shape reads external data or uses an unsupported term."""
    for _, predicate, value in rules:
        if predicate == iri(SH + "entailment"):
            raise Failed(f"{path}: asks for the entailment {value}", hint="state what follows in the data",
                         code="invalid_config")  # fmt: skip
        if predicate in _CODE and value[0] == '"':
            text = _CODEPOINT.sub(lambda match: chr(int(match[1] or match[2], 16)), parse_literal(value).text)
            try:
                refuse_graphs(sparql.check(text))
            except JidomemError as error:
                error.detail = f"{path}: {error.detail}"
                error.args = (error.detail,)
                raise


def _aimed(source: TripleSource, rules: Sequence[Triple]) -> set[Term]:
    """Return the nodes that a shape targets."""
    aims = [(local_name(kind), target) for _, kind, target in targets(rules)]
    classes = {target for kind, target in aims if kind == "targetClass"}
    nodes = {target for kind, target in aims if kind == "targetNode"}
    subjects = {target for kind, target in aims if kind == "targetSubjectsOf"}
    objects = {target for kind, target in aims if kind == "targetObjectsOf"}
    is_targeted = {kinds: bool(superclass_closure(kinds, source) & classes) for kinds in {*source.types.values()}}
    nodes |= {node for node, kinds in source.types.items() if is_targeted[kinds]}
    for subject, predicate, value in source.triples:
        nodes |= ({subject} if predicate in subjects else set()) | ({value} if predicate in objects else set())
    return nodes


def _passed_over(source: TripleSource, aimed: set[Term]) -> dict[str, int]:
    """Return the number of nodes without a shape, by class."""
    rest = [source.types.get(node) for node in source.about.keys() - aimed]
    counted = Counter(local_name(min(classes)) if classes else "of no class" for classes in rest)
    return dict(sorted(counted.items()))


_INACTIVE = jido("judgesInactive")
_BY, _OF, _ENDED = jido("supersededBy"), jido("supersedes"), jido("invalidatedBy")
_REVIVES, _STATUS, _PROPOSED = jido("revives"), jido("hasAssertionStatus"), jido("Proposed")
_INVALIDATES = jido("invalidates")


def chains(source: TripleSource) -> list[UnplacedFinding]:
    """Return the cycles of supersession, and the items with two ends of which both are active.

    An end is the last memory of a chain of supersessions, or a memory that invalidated the item. Identical ends, as two
    branches leave them that changed an item alike, are a warning.
    """
    after, withdrawn, revived, proposed = _links(source)
    rounds = list(_circles(after))
    findings = []
    for circle in rounds:
        others = [(item, by) for item, by in revived if item in circle and by not in circle and by not in proposed]
        if not any(_later(source, by, circle) for _, by in others):
            findings.append(_circle(sorted(circle), after))
    inactive, restored = withdrawn.keys() | proposed, _by_item(revived, proposed)

    def following(node: Term) -> Iterable[Term]:
        return after.get(node, set()) | restored.get(node, set())

    for item in {**after, **withdrawn}:
        replacing, invalidating = after.get(item, set()), withdrawn.get(item, set())
        if len(replacing | invalidating) < 2:
            continue
        lines = {each: reachable([each], following) for each in replacing | invalidating}
        ends = {end for line in lines.values() for end in line} - after.keys() - inactive
        withdrawals = ends & (invalidating - replacing)
        ends -= withdrawals
        if len(ends) > 1:
            *_, second, last = [short_id(plain_value(end)) for end in source.by_recording(ends)]
            names = " and ".join(map(source.described, source.by_recording(ends)))
            if source.are_identical(ends):
                settle = f'jidomem review accept {second} --against {last} --reason "it says the same"'
                text = f"superseded twice by the same: {names}; one is enough: {settle}"
                findings.append(UnplacedFinding(item, SUCCESSORS, "warning", text, _BY, None, tuple(ends)))
            else:
                settle = f"jidomem review supersede {last} --against {second} --reason WHY"
                text = f"superseded by more than one memory, and {names} are active; the last one stays: {settle}"
                findings.append(UnplacedFinding(item, SUCCESSORS, "violation", text, _BY, None, tuple(ends)))
        disagreeing = {*product(ends, withdrawals), *_withdrawn_later(source, item, lines, ends, withdrawn, inactive)}
        for pair in sorted(disagreeing):
            end, withdrawal = (short_id(plain_value(each)) for each in pair)
            described = " and withdrawn by ".join(map(source.described, pair))
            text = (
                f"superseded by {described}, and both are active: jidomem review accept {end} --against {withdrawal}"
                f" --reason WHY, or jidomem review accept {withdrawal} --against {end} --reason WHY"
            )
            findings.append(UnplacedFinding(item, SUCCESSORS, "violation", text, _BY, None, pair))
    return findings


def _links(
    source: TripleSource,
) -> tuple[dict[Term, set[Term]], dict[Term, set[Term]], list[tuple[Term, Term]], set[Term]]:
    """Return the successors of each item, what invalidated it, pairs of revived and reviving item, and proposals."""
    proposed = {subject for subject, _, value in source.of(_STATUS) if value == _PROPOSED}
    after, withdrawn = (
        _by_item(pairs, proposed)
        for pairs in (
            [(old, new) for old, _, new in source.of(_BY)] + [(old, new) for new, _, old in source.of(_OF)],
            [(old, new) for old, _, new in source.of(_ENDED)] + [(old, new) for new, _, old in source.of(_INVALIDATES)],
        )
    )
    revived = [(value, subject) for subject, _, value in source.of(_REVIVES)]
    return after, withdrawn, revived, proposed


def _by_item(pairs: Iterable[tuple[Term, Term]], proposed: Collection[Term]) -> dict[Term, set[Term]]:
    """Return what ended each item, proposals left out, by *pairs* of an item and its end."""
    ends: dict[Term, set[Term]] = {}
    for old, new in pairs:
        if new not in proposed:
            ends.setdefault(old, set()).add(new)
    return ends


def _withdrawn_later(
    source: TripleSource,
    item: Term,
    lines: Mapping[Term, set[Term]],
    ends: Collection[Term],
    withdrawn: Mapping[Term, set[Term]],
    inactive: Collection[Term],
) -> Iterator[tuple[Term, Term]]:
    """Yield each active end of a line of successors of *item* with the withdrawal of another line, and of *item*.

    A withdrawal that names a version of the end as staying agrees with it.
    """
    (_, ending), superseded = judgement_keys(plain_value(item), stays=False), {old for old, *_ in source.of(_BY)}
    for first, line in lines.items():
        for withdrawal in {end for node in line for end in withdrawn.get(node, ())} - superseded - {*inactive}:
            keys = {plain_value(key) for key in source.values(withdrawal, CONFLICT_KEY)}
            for end in ends if ending in keys else ():
                others = [other for successor, other in lines.items() if successor != first and end in other]
                versions = {plain_value(node) for other in others for node in other}
                if others and not is_named_as_staying(versions, keys):
                    yield end, withdrawal


def _circle(circle: list[Term], after: Mapping[Term, set[Term]]) -> UnplacedFinding:
    first = circle[0]
    following = min(after[first] & {*circle})
    members = ", ".join(map(plain_value, circle))
    text = f"supersession runs in a circle through {members}: record anew what holds, reviving one"
    return UnplacedFinding(first, CIRCLE, "violation", text, _BY, following, tuple(circle[1:]))


def _circles(after: Mapping[Term, set[Term]]) -> Iterator[set[Term]]:
    """Yield the strongly connected sets of more than one item, and the items that supersede themselves."""
    order: dict[Term, int] = {}
    low: dict[Term, int] = {}
    open_: dict[Term, None] = {}
    for start in sorted(after):
        if start in order:
            continue
        walk = [(start, iter(sorted(after[start])))]
        order[start] = low[start] = len(order)
        open_[start] = None
        while walk:
            node, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[node])
                if low[node] == order[node]:
                    yield from _closed(node, open_, after)
            elif following not in order:
                order[following] = low[following] = len(order)
                open_[following] = None
                walk.append((following, iter(sorted(after.get(following, ())))))
            elif following in open_:
                low[node] = min(low[node], order[following])


def _closed(node: Term, open_: dict[Term, None], after: Mapping[Term, set[Term]]) -> Iterator[set[Term]]:
    """Remove the set that *node* completes from *open_*, and yield it if it is a cycle."""
    members: set[Term] = set()
    while node not in members:
        members.add(open_.popitem()[0])
    if len(members) > 1 or node in after.get(node, ()):
        yield members


def _later(source: TripleSource, item: Term, circle: set[Term]) -> bool:
    """Return whether *item* was recorded after all of *circle*, or the times are unknown."""
    own = source.recorded_at(item)
    moments = [moment for moment in map(source.recorded_at, circle) if moment is not None]
    return own is None or not moments or own > max(moments)
