"""The reference validator: pyshacl with prepared shapes, on terms with their lexical forms unchanged.

RE2 runs the patterns of `sh:pattern`: pyshacl gets shapes with a parameter of our own instead.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple
from typing import Literal as OneOf

from jidomem.base.containers import reachable
from jidomem.base.regex import Unsearchable, compiled
from jidomem.errors import Failed
from jidomem.rdf.terms import Term, Triple, boolean, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import JIDO, SHAPE, TYPE, XSD, jido, local_name

#: The deepest nesting, of paths and of shapes, that is compiled; also the longest sequence that a write follows.
DEEPEST = 4
_PATTERN = iri("http://www.w3.org/ns/shacl#pattern")
_RE2_PATTERN = iri("urn:jido:shacl:pattern")


def use_re2_patterns(rules: Iterable[Triple]) -> list[Triple]:
    """Return *rules* with our own parameter in place of `sh:pattern`."""
    register_re2_constraint()
    return [(s, _RE2_PATTERN if p == _PATTERN else p, o) for s, p, o in rules]


@cache
def register_re2_constraint() -> None:
    """Register our parameter with pyshacl, once; `sh:pattern` itself is not changed."""
    from pyshacl.constraints import ALL_CONSTRAINT_PARAMETERS, CONSTRAINT_PARAMETERS_MAP
    from pyshacl.constraints.core.string_based_constraints import (
        PatternConstraintComponent,
        SH_flags,
        StringBasedConstraintBase,
    )
    from pyshacl.errors import ReportableRuntimeError
    from rdflib import URIRef

    ours = URIRef(plain_value(_RE2_PATTERN))

    class Pattern(PatternConstraintComponent):  # type: ignore[misc]  # pyshacl has no types
        def __init__(self, shape: Any) -> None:
            StringBasedConstraintBase.__init__(self, shape)
            self.string_rules = list(shape.objects(ours))
            self.flags = next(iter(shape.objects(SH_flags)), None)
            flags = "" if self.flags is None else str(self.flags)
            try:
                self.compiled_cache = {each: compiled(str(each), flags) for each in self.string_rules}
            except Unsearchable as error:
                raise ReportableRuntimeError(f"RE2 does not run the pattern of {shape.node}: {error}") from error

    CONSTRAINT_PARAMETERS_MAP[ours] = Pattern
    ALL_CONSTRAINT_PARAMETERS.append(ours)


SH = "http://www.w3.org/ns/shacl#"
EVERY_ITEM_IS_JUDGED = iri(SHAPE + "EveryItemIsJudged")
UNNAMED = iri(SH + "Shape")
Severity = OneOf["violation", "warning", "info"]
_MESSAGE = iri(SH + "message")
_UNIQUE_LANG, _PREFIXES, _DECLARE = iri(SH + "uniqueLang"), iri(SH + "prefixes"), iri(SH + "declare")
_IMPORTS = iri("http://www.w3.org/2002/07/owl#imports")
#: rdflib's SPARQL and pyshacl's shapes keep state that two threads must not touch at once.
ONE_AT_A_TIME = threading.Lock()


class Finding(NamedTuple):
    """One broken rule: the node, the shape of the rule, and the message to the author."""

    focus: Term
    shape: Term
    path: Term | str | None
    value: Term | None
    message: str
    severity: Severity


class PyshaclValidator:
    """Prepared shapes of pyshacl, on terms with their lexical forms unchanged.

    With *only*, just the shapes with these names are validated; the others may be referenced. With *linear*, RE2 runs
    their patterns, else the engine of Python, as in pyshacl.
    """

    def __init__(self, rules: Iterable[Triple], only: Collection[Term] | None = None, *, linear: bool = False) -> None:
        self._triples, self._only, self._linear, self._ready = tuple(rules), only, linear, False
        self._at_write_only = {s for s, p, o in self._triples if p == jido("atWriteOnly") and plain_value(o) == "true"}
        self._check_severity = {
            s: severity_of(plain_value(o)) for s, p, o in self._triples if p == jido("checkSeverity")
        }
        messages = (parse_literal(o).text for s, p, o in self._triples if (s, p) == (EVERY_ITEM_IS_JUDGED, _MESSAGE))
        self._unjudged = next(messages, "")

        self._judging: Any = None

    def _prepare(self) -> None:
        """Load the shapes into pyshacl, once and only when needed: the import takes half a second."""
        from pyshacl.errors import ReportableRuntimeError
        from pyshacl.helper.path_helper import shacl_path_to_sparql_path
        from pyshacl.pytypes import SHACLExecutor
        from pyshacl.shapes_graph import ShapesGraph

        self._malformed = ReportableRuntimeError
        self._executor, self._sparql_path = SHACLExecutor(), shacl_path_to_sparql_path
        try:
            rules = _for_pyshacl(self._triples)
            self._rules = ShapesGraph(as_graph(use_re2_patterns(rules) if self._linear else rules, {}))
            self._shapes = [
                (shape, self._constraints_of(shape))
                for shape in self._rules.shapes
                if any(map(list, shape.target())) and (self._only is None or shape.node.n3() in self._only)
            ]
        except self._malformed as error:
            raise _unusable(error) from error
        self._ready = True

    def _constraints_of(self, shape: Any) -> list[Any]:
        """Return the shapes for its targets: *shape*, or the property shapes if it only groups those."""
        from pyshacl.constraints import ALL_CONSTRAINT_PARAMETERS

        constraints = {str(p) for p, _ in self._rules.predicate_objects(shape.node) if p in ALL_CONSTRAINT_PARAMETERS}
        grouped = [shape.get_other_shape(node) for node in shape.property_shapes()]
        only_groups = constraints == {SH + "property"} and not (shape.deactivated or shape.find_custom_constraints())
        return grouped if only_groups and all(rule and rule.is_property_shape for rule in grouped) else [shape]

    def findings(self, data: Iterable[Triple], focus: Collection[Term] | None) -> list[Finding]:
        """Return the distinct results of SHACL on *data*; nodes outside *focus* are read but not judged."""
        return list(dict.fromkeys(self.results(data, focus)))

    def results(self, data: Iterable[Triple], focus: Collection[Term] | None) -> list[Finding]:
        """Return all results of SHACL on *data*, one for each constraint component and value, with duplicates."""
        if not self._ready:
            self._prepare()
        terms: dict[Any, Term] = {}
        graph = as_graph(data, terms)
        results: list[Finding] = []
        try:
            # Explicit nodes let shapes read their values; the option focus_nodes of pyshacl does not.
            for shape, constraints in self._shapes:
                nodes = [
                    node
                    for node in shape.focus_nodes(graph)
                    if focus is None or (terms.get(node) or node.n3()) in focus
                ]
                for rule in constraints if nodes else ():
                    self._judging = rule.node
                    results += self._findings_of(rule, graph, nodes, terms)
            self._judging = None
        except self._malformed as error:
            raise _unusable(error) from error
        return results

    @property
    def interrupted(self) -> Term | None:
        """Return the shape that was being judged when the last judgement was stopped, None if none was."""
        return None if self._judging is None else self._named(self._judging)

    def _findings_of(self, rule: Any, graph: Any, nodes: list[Any], terms: Mapping[Any, Term]) -> list[Finding]:
        try:
            return [self._finding(report, terms) for report in rule.validate(self._executor, graph, nodes)[1]]
        except (TypeError, ArithmeticError) as error:
            if isinstance(error, TypeError) and "not supported between" not in str(error):
                raise
        if len(nodes) > 1:
            return [finding for node in nodes for finding in self._findings_of(rule, graph, [node], terms)]
        focus, message = terms.get(nodes[0]) or nodes[0].n3(), str(next(rule.message, ""))
        path = self._shown(rule.path())
        return [Finding(focus, self._named(rule.node), path, None, message, severity_of(rule.severity))]

    def _shown(self, path: Any) -> Term | str | None:
        if path is None or not path.n3().startswith("_:"):
            return None if path is None else str(path.n3())
        return str(self._sparql_path(self._rules, path, prefixes={"jido": JIDO}))

    def _finding(self, report: Any, terms: Mapping[Any, Term]) -> Finding:
        properties = {
            local_name(str(predicate)): value[1] if isinstance(value, tuple) else value
            for subject, predicate, value in sorted(report[2], key=str)
            if subject == report[1]
        }
        value = properties.get("value")
        return Finding(
            focus=terms.get(properties["focusNode"]) or properties["focusNode"].n3(),
            shape=self._named(properties["sourceShape"]),
            path=self._shown(properties.get("resultPath")),
            value=None if value is None else terms.get(value) or value.n3(),
            message=str(properties.get("resultMessage", "")),
            severity=severity_of(properties["resultSeverity"]),
        )

    def _named(self, shape: Any) -> Term:
        seen: set[Any] = set()
        while shape.n3().startswith("_:") and shape not in seen:
            seen.add(shape)
            shape = min(self._rules.graph.subjects(None, shape), default=shape)
        return UNNAMED if shape in seen else str(shape.n3())

    def no_shape_finding(self, node: Term) -> Finding:
        """Return the finding on a memory without a shape."""
        return Finding(node, EVERY_ITEM_IS_JUDGED, TYPE, None, self._unjudged, "violation")

    def with_check_severities(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return *findings* with the severities for a whole memory."""
        return [
            finding._replace(severity=self._check_severity.get(finding.shape, finding.severity))
            for finding in findings
            if finding.shape not in self._at_write_only
        ]


def validate_graph(data: Iterable[Triple], shapes: Iterable[Triple]) -> list[Finding]:
    """Return the findings of *shapes* on *data*, by standard SHACL without additions."""
    with ONE_AT_A_TIME:
        return sorted(PyshaclValidator(shapes).results(data, None), key=repr)


def _for_pyshacl(rules: Iterable[Triple]) -> list[Triple]:
    """Return *rules* adapted to two points of SHACL 1.0 on which pyshacl differs.

    `sh:uniqueLang` constrains if it is the term `true` (section 4.4.5), and `"1"^^xsd:boolean` is another term. A query
    has the prefixes of `sh:prefixes/owl:imports*/sh:declare` (section 5.2.1); pyshacl follows no import there.
    """
    rules = [rule for rule in rules if rule[1] != _UNIQUE_LANG or rule[2] == boolean(True)]
    imports: dict[Term, set[Term]] = defaultdict(set)
    declares: dict[Term, set[Term]] = defaultdict(set)
    for subject, predicate, value in rules:
        if predicate in (_IMPORTS, _DECLARE):
            (imports if predicate == _IMPORTS else declares)[subject].add(value)
    for start in {value for _, predicate, value in rules if predicate == _PREFIXES}:
        others = reachable([start], imports.__getitem__) - {start}
        rules += [(start, _DECLARE, each) for other in others for each in sorted(declares[other])]
    return rules


def _unusable(error: Exception) -> Failed:
    return Failed(f"the shapes cannot be used: {error}", hint="correct the shape it names", code="invalid_config")


def severity_of(node: Any) -> Severity:
    """Return the severity for a term of SHACL, by its local name."""
    severities: dict[str, Severity] = {"Warning": "warning", "Info": "info"}
    return severities.get(local_name(str(node)), "violation")


@cache
def _graph_type() -> Any:
    """Return the class of graphs of rdflib, but for the test that one is empty, for which rdflib counts its triples.

    pyshacl makes this test for each term that a message names.
    """
    import logging  # queries load neither

    from rdflib import Graph

    # Ill-typed literals are findings here; rdflib would also log each with a traceback.
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)

    class TestedGraph(Graph):  # type: ignore[misc]
        def __bool__(self) -> bool:
            return next(iter(self.triples((None, None, None))), None) is not None

    return TestedGraph


def as_graph(triples: Iterable[Triple], terms: dict[Any, Term]) -> Any:
    """Return an rdflib graph of *triples*; adds the term of each node to *terms*."""
    nodes: dict[Term, Any] = {}
    # No contexts: owlrl takes three quarters of the time.
    graph = _graph_type()(store="SimpleMemory", bind_namespaces="none")
    for triple in triples:
        for term in triple:
            if term not in nodes:
                nodes[term] = _node(term)
                terms[nodes[term]] = term
        graph.add((nodes[triple[0]], nodes[triple[1]], nodes[triple[2]]))
    return graph


def _node(term: Term) -> Any:
    from rdflib import BNode, Literal, URIRef

    if is_iri(term):
        return URIRef(term[1:-1])
    if term.startswith("_:"):
        return BNode(term[2:])
    text, datatype, language = parse_literal(term)
    if language:
        return Literal(text, lang=language)
    return Literal(text) if datatype == XSD + "string" else Literal(text, datatype=URIRef(datatype), normalize=False)
