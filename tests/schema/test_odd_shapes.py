# ruff: noqa: E501
"""Unusual shapes of overlays with random data: judged as by pyshacl, or left to it."""

import random

import pyoxigraph as ox
import pytest
from conftest import examples
from deltas import KINDS, NAMES, RULES, Delta, entailed

from jidomem.errors import Failed
from jidomem.rdf.terms import XSD, date_time, integer, literal, parse_literal
from jidomem.rdf.vocab import TYPE, jido
from jidomem.schema.shacl import PyshaclValidator
from jidomem.schema.shacl_compiler import CompiledValidator

PREFIXES = """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix my: <urn:my:> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix jido: <https://jido.ai/ontology#> ."""  # fmt: skip
COMPILED = {
    "nested or and not": """my:S sh:targetClass my:C ; sh:message 'm' ; sh:or ( [ sh:not [ sh:or (
        [ sh:path my:p ; sh:hasValue 'x' ] [ sh:path my:q ; sh:minCount 2 ] ) ] ]
        [ sh:and ( [ sh:class my:D ] [ sh:nodeKind sh:IRI ] ) ] ) .""",
    "node": """my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:node my:N ; sh:message 'n' ] .
        my:N sh:property [ sh:path my:q ; sh:minCount 1 ; sh:severity sh:Info ; sh:message 'inner' ] .""",
    "property within property": """my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:property my:T ] .
        my:T sh:path my:q ; sh:maxCount 1 ; sh:message 'deep' .""",
    "property of a nameless one": """my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:property [ sh:path my:q ;
        sh:maxCount 0 ; sh:severity sh:Warning ; sh:message 'deep' ] ] .""",
    "several targets": "my:S sh:targetClass my:C , my:D ; sh:targetSubjectsOf my:p ; sh:property [ sh:path my:q ; sh:minCount 1 ; sh:message 'm' ] .",
    "a property shape with a target": "my:S a sh:PropertyShape ; sh:targetClass my:C ; sh:path my:p ; sh:class my:D ; sh:message 'm' .",
    "sequence": "my:S sh:targetClass my:C ; sh:property [ sh:path ( my:p my:q my:p ) ; sh:maxCount 0 ; sh:message 'm' ] .",
    "alternatives": """my:S sh:targetClass my:C ; sh:property [ sh:path [ sh:alternativePath ( my:p [ sh:inversePath my:q ]
        ( my:p my:q ) ) ] ; sh:class my:D ; sh:message 'm' ] .""",
    "plus": "my:S sh:targetClass my:C ; sh:property [ sh:path [ sh:oneOrMorePath [ sh:alternativePath ( my:p my:q ) ] ] ; sh:disjoint my:q ; sh:message 'm' ] .",
    "jido path": "my:S sh:targetClass my:C ; sh:property [ sh:path [ sh:inversePath jido:about ] ; sh:maxCount 0 ; sh:message 'm' ] .",
    "lengths": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:minLength 1 ; sh:maxLength 4 ; sh:message 'm' ] .",
    "no least length": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:minLength 0 ; sh:message 'm' ] .",
    "pairs": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:disjoint my:p ; sh:equals my:q ; sh:message 'm' ] .",
    "pair of a node": "my:S sh:targetClass my:C ; sh:equals my:p ; sh:message 'm' .",
    **{f"datatype {name}": f"my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:datatype xsd:{name} ; sh:message 'm' ] ."
       for name in ("string", "integer", "decimal", "boolean", "dateTime", "anyURI")},
    **{f"kind {name}": f"my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:nodeKind sh:{name} ; sh:message 'm' ] ."
       for name in ("IRI", "BlankNode", "Literal", "BlankNodeOrIRI", "IRIOrLiteral", "BlankNodeOrLiteral")},
}  # fmt: skip
#: Compiled shapes whose violations pyshacl often has to judge or to describe.
IN_DOUBT = {
    "not after": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:lessThanOrEquals my:q ; sh:message 'm' ] .",
    "no message": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:minCount 1 ; sh:class my:D ; sh:in ( my:a my:b ) ] .",
    "no message, two kinds": "my:S sh:targetClass my:C ; sh:property my:P . my:P sh:path my:p ; sh:maxCount 1 ; sh:hasValue my:a .",
    "datatype double": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:datatype xsd:double ; sh:message 'm' ] .",
}  # fmt: skip
LEFT = {
    "closed": "my:S sh:targetClass my:C ; sh:closed true ; sh:ignoredProperties ( rdf:type ) ; sh:property [ sh:path my:p ] .",
    "range": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:minInclusive 2 ] .",
    "before": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:lessThan my:q ; sh:message 'm' ] .",
    "language": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:languageIn ( 'en' ) ] .",
    "languages": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:uniqueLang true ; sh:message 'm' ] .",
    "flags": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:pattern '^X$' ; sh:flags 'im' ; sh:message 'm' ] .",
    "qualified": """my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:message 'q' ;
        sh:qualifiedValueShape [ sh:class my:D ] ; sh:qualifiedMinCount 1 ; sh:qualifiedMaxCount 1 ] .""",
    "xone": """my:S sh:targetSubjectsOf my:p ; sh:severity sh:Warning ; sh:message 'm' ; sh:xone (
        [ sh:property [ sh:path my:p ; sh:maxCount 1 ] ] [ sh:property [ sh:path my:q ; sh:minCount 1 ] ] [ sh:class my:D ] ) .""",
    "empty list": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:in ( ) ; sh:message 'm' ] .",
    "deactivated": """my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:minCount 1 ; sh:deactivated true ] ;
        sh:property [ sh:path my:q ; sh:minCount 1 ; sh:message 'm' ] .""",
    "two messages": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:minCount 1 ; sh:message 'm' , 'n'@en ] .",
    "two values": "my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:hasValue 'x' , my:a ; sh:message 'm' ] .",
    "a part of two": "my:S sh:targetClass my:C ; sh:property _:p . my:T sh:property _:p . _:p sh:path my:p ; sh:minCount 1 ; sh:message 'm' .",
    "nested deeply": """my:S sh:targetClass my:C ; sh:message 'm' ; sh:not [ sh:not [ sh:not [ sh:not [ sh:not [ sh:class my:C ] ] ] ] ] .""",
    "recursion": "my:S sh:targetClass my:C ; sh:property my:P . my:P sh:path my:p ; sh:maxCount 1 ; sh:node my:S .",
    "target nodes": "my:S sh:targetNode my:a , my:nowhere , 'x' ; sh:property [ sh:path my:p ; sh:minCount 1 ; sh:message 'm' ] .",
    "target objects": "my:S sh:targetObjectsOf my:p ; sh:nodeKind sh:IRI ; sh:message 'm' .",
    "a class that is a shape": "my:C a rdfs:Class , sh:NodeShape ; sh:property [ sh:path my:p ; sh:minCount 1 ; sh:message 'm' ] .",
    "a class that is a shape of a class": "my:C a my:Kind ; sh:nodeKind sh:Literal ; sh:property [ sh:path my:p ] . my:Kind rdfs:subClassOf rdfs:Class .",
    "inverse sequence": "my:S sh:targetClass my:C ; sh:property [ sh:path [ sh:inversePath ( my:p my:q ) ] ; sh:maxCount 0 ; sh:message 'm' ] .",
    "star": "my:S sh:targetClass my:C ; sh:property [ sh:path ( [ sh:zeroOrMorePath my:p ] my:q ) ; sh:maxCount 0 ; sh:message 'm' ] .",
    "option": "my:S sh:targetClass my:C ; sh:property [ sh:path [ sh:zeroOrOnePath my:p ] ; sh:class my:C ; sh:message 'm' ] .",
}  # fmt: skip
DELTAS = examples(60)
NODES = ["<urn:my:a>", "<urn:my:b>", "<urn:my:c>", "_:d"]
VALUES = [*NODES, '"x"', '"X"', '""', '"a\\nx"', '"x"@en', '"y"@en', '"toolong"', integer(1), integer(2), integer(-7),
          f'"1.50"^^<{XSD}decimal>', f'"x"^^<{XSD}integer>', f'"1"^^<{XSD}boolean>', f'"yes"^^<{XSD}boolean>',
          f'"1e3"^^<{XSD}double>', f'"u"^^<{XSD}anyURI>', date_time("2026-11-21T08:00:00Z"),
          date_time("2026-11-21T09:00:00+01:00"), date_time("2026-11-21T08:00:00"), date_time("2025-01-01T00:00:00Z")]  # fmt: skip


def parsed(text):
    return [
        (str(q.subject), str(q.predicate), str(q.object)) for q in ox.parse(PREFIXES + text, format=ox.RdfFormat.TURTLE)
    ]


def random_rows(rng):
    """Random rows of a small graph, sometimes with a class tree."""
    rows = [(node, TYPE, f"<urn:my:{rng.choice('CCCDE')}>") for node in NODES if rng.random() < 0.7]
    pool = rng.choice([VALUES, NODES])
    rows += [(rng.choice(NODES), f"<urn:my:{rng.choice('ppq')}>", rng.choice(pool)) for _ in range(rng.randint(0, 7))]
    if rng.random() < 0.3:
        rows.append(("<urn:my:E>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", f"<urn:my:{rng.choice('CD')}>"))
    if rng.random() < 0.2:
        rows.append((rng.choice(NODES), jido("about"), rng.choice(NODES)))
    rng.shuffle(rows)
    return rows


def comparable(findings):
    """The findings in order, without the messages of pyshacl, which vary from run to run."""
    ours = {"m", "q", "n", "inner", "deep", *(parse_literal(o).text for _, p, o in RULES if p.endswith("#message>"))}
    return sorted((f if f.message in ours else f._replace(message="") for f in findings), key=repr)


def assert_agreement(judge, reference, rows, focus=None):
    """Assert the same findings of both validators, and return whether the compiled one was certain."""
    assert comparable(judge.findings(rows, focus)) == comparable(reference.findings(rows, focus)), rows
    return not judge.judged(rows, focus)[1]


def judge_by_both(name, text):
    """Judge random deltas by both; return the validator, the number it was certain of, and the number with violations."""
    rng, rules = random.Random(name), parsed(text)
    judge, reference = CompiledValidator(rules), PyshaclValidator(rules)
    certain = broken = 0
    for _ in range(DELTAS):
        rows = random_rows(rng)
        focus = None if rng.random() < 0.7 else set(rng.sample(NODES, 2))
        try:
            findings = reference.findings(rows, focus)
        except Failed:  # pyshacl compares no blank nodes
            continue
        broken += bool(findings)
        certain += assert_agreement(judge, reference, rows, focus)
    return judge, certain, broken


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_shape_has_the_findings_of_pyshacl(name):
    judge, certain, broken = judge_by_both(name, COMPILED[name])
    assert judge.left == frozenset()
    assert certain == DELTAS
    assert (broken > 0) == (name != "no least length")


@pytest.mark.parametrize("name", IN_DOUBT)
def test_nodes_that_only_pyshacl_can_judge_are_left_to_it(name):
    judge, certain, broken = judge_by_both(name, IN_DOUBT[name])
    assert judge.left == frozenset()
    assert DELTAS / 12 <= certain < DELTAS
    assert broken > 0


def test_a_node_in_doubt_has_only_the_findings_of_pyshacl():
    rules = parsed("""my:S sh:targetClass my:C ; sh:property [ sh:path my:p ; sh:datatype xsd:string ;
        sh:lessThanOrEquals my:q ; sh:message 'm' ] .""")
    here, no_time = date_time("2026-11-21T08:00:00Z"), date_time("2026-325T08:00:00Z")
    rows = [
        ("<urn:my:a>", TYPE, "<urn:my:C>"),
        ("<urn:my:a>", "<urn:my:p>", here),
        ("<urn:my:a>", "<urn:my:q>", no_time),
    ]

    assert CompiledValidator(rules).judged(rows, None) == (set(), {"<urn:my:a>"})
    assert not assert_agreement(CompiledValidator(rules), PyshaclValidator(rules), rows)


def test_a_value_that_is_not_a_number_violates_an_order_constraint():
    judge = CompiledValidator(parsed(IN_DOUBT["not after"]))
    values = [("p", f'"NaN"^^<{XSD}decimal>'), ("q", f'"1.0"^^<{XSD}decimal>')]
    rows = [("<urn:my:a>", TYPE, "<urn:my:C>"), *(("<urn:my:a>", f"<urn:my:{name}>", value) for name, value in values)]

    (violation,) = judge.findings(rows, None)
    assert (violation.focus, violation.path, violation.severity) == ("<urn:my:a>", "<urn:my:p>", "violation")


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore::pyshacl.errors.ShapeRecursionWarning")
def test_an_uncovered_shape_is_left_to_pyshacl(name):
    judge, _, broken = judge_by_both(name, LEFT[name])
    assert len(judge.left) == 1
    assert broken > 0


@pytest.mark.parametrize("seed", range(4))
def test_random_statements_about_shipped_kinds_have_the_findings_of_pyshacl(seed):
    rng, judge, reference = random.Random(seed), CompiledValidator(RULES), PyshaclValidator(RULES)
    properties = sorted({prop for makers in KINDS.values() for prop in makers} - {"startedAt"})
    properties += ["supersededBy", "supersedes", "invalidatedBy", "derivedFrom", "severityLevel", "decisionStatus"]
    certain = 0
    for _ in range(150):
        built = Delta(rng)
        nodes = [built.add(rng.choice(sorted(KINDS))) for _ in range(rng.randint(1, 3))]
        pool = [*nodes, *VALUES, *(rng.choice(names) for names in NAMES.values()), literal("medium")]
        built.rows = [row for row in built.rows if rng.random() < 0.9]
        for _ in range(rng.randint(0, 5)):
            built.rows.append((rng.choice(nodes), jido(rng.choice(properties)), rng.choice(pool)))
        rows = [*built.rows, *entailed(built.rows)]
        focus = None if rng.random() < 0.5 else set(rng.sample(nodes, 1))
        certain += assert_agreement(judge, reference, rows, focus)
    assert certain >= 140
