# ruff: noqa: E501
"""Shapes an overlay may bring, however odd, and data however wild: judged as pyshacl judges them, or left to it."""

import random
from dataclasses import replace

import pyoxigraph as ox
import pytest
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
#: Compiled, but what nodes break is often pyshacl's to judge, or to word.
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
NODES = ["<urn:my:a>", "<urn:my:b>", "<urn:my:c>", "_:d"]
VALUES = [*NODES, '"x"', '"X"', '""', '"a\\nx"', '"x"@en', '"y"@en', '"toolong"', integer(1), integer(2), integer(-7),
          f'"1.50"^^<{XSD}decimal>', f'"x"^^<{XSD}integer>', f'"1"^^<{XSD}boolean>', f'"yes"^^<{XSD}boolean>',
          f'"1e3"^^<{XSD}double>', f'"u"^^<{XSD}anyURI>', date_time("2026-11-21T08:00:00Z"),
          date_time("2026-11-21T09:00:00+01:00"), date_time("2026-11-21T08:00:00"), date_time("2025-01-01T00:00:00Z")]  # fmt: skip


def parsed(text):
    return [
        (str(q.subject), str(q.predicate), str(q.object)) for q in ox.parse(PREFIXES + text, format=ox.RdfFormat.TURTLE)
    ]


def wild(rng):
    """Rows of a small world, with a class tree now and then."""
    rows = [(node, TYPE, f"<urn:my:{rng.choice('CCCDE')}>") for node in NODES if rng.random() < 0.7]
    pool = rng.choice([VALUES, NODES])
    rows += [(rng.choice(NODES), f"<urn:my:{rng.choice('ppq')}>", rng.choice(pool)) for _ in range(rng.randint(0, 7))]
    if rng.random() < 0.3:
        rows.append(("<urn:my:E>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", f"<urn:my:{rng.choice('CD')}>"))
    if rng.random() < 0.2:
        rows.append((rng.choice(NODES), jido("about"), rng.choice(NODES)))
    rng.shuffle(rows)
    return rows


def told(found):
    """The findings in order, without the words where they are pyshacl's own: it words the same differently each time."""
    ours = {"m", "q", "n", "inner", "deep", *(parse_literal(o).text for _, p, o in RULES if p.endswith("#message>"))}
    return sorted((f if f.message in ours else replace(f, message="") for f in found), key=repr)


def agree(judge, reference, rows, focus=None):
    """Hold both judges to the same findings, and return whether the compiled shapes were in no doubt."""
    assert told(judge.findings(rows, focus)) == told(reference.findings(rows, focus)), rows
    return not judge.judged(rows, focus)[1]


def judged(name, text, times):
    """Judge wild deltas by both; return the judge, how many it was in no doubt about, and how many broke a rule."""
    rng, rules = random.Random(name), parsed(text)
    judge, reference = CompiledValidator(rules), PyshaclValidator(rules)
    certain = broken = 0
    for _ in range(times):
        rows = wild(rng)
        focus = None if rng.random() < 0.7 else set(rng.sample(NODES, 2))
        try:
            found = reference.findings(rows, focus)
        except Failed:  # pyshacl compares no blank nodes
            continue
        broken += bool(found)
        certain += agree(judge, reference, rows, focus)
    return judge, certain, broken


@pytest.mark.parametrize("name", COMPILED)
def test_an_odd_shape_that_is_compiled_is_judged_as_pyshacl_does(name):
    judge, certain, broken = judged(name, COMPILED[name], 120)
    assert judge.left == frozenset()
    assert certain == 120
    assert (broken > 0) == (name != "no least length")


@pytest.mark.parametrize("name", IN_DOUBT)
def test_what_only_pyshacl_can_compare_or_word_is_left_to_it_node_by_node(name):
    judge, certain, broken = judged(name, IN_DOUBT[name], 120)
    assert judge.left == frozenset()
    assert 10 <= certain < 120
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
    assert not agree(CompiledValidator(rules), PyshaclValidator(rules), rows)


def test_a_number_that_is_none_is_in_no_order():
    judge = CompiledValidator(parsed(IN_DOUBT["not after"]))
    values = [("p", f'"NaN"^^<{XSD}decimal>'), ("q", f'"1.0"^^<{XSD}decimal>')]
    rows = [("<urn:my:a>", TYPE, "<urn:my:C>"), *(("<urn:my:a>", f"<urn:my:{name}>", value) for name, value in values)]

    (found,) = judge.findings(rows, None)
    assert (found.focus, found.path, found.severity) == ("<urn:my:a>", "<urn:my:p>", "violation")


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore::pyshacl.errors.ShapeRecursionWarning")
def test_a_shape_that_is_not_covered_is_left_to_pyshacl(name):
    judge, _, broken = judged(name, LEFT[name], 120)
    assert len(judge.left) == 1
    assert broken > 0


@pytest.mark.parametrize("seed", range(4))
def test_anything_said_of_the_shipped_kinds_is_judged_as_pyshacl_does(seed):
    rng, judge, reference = random.Random(seed), CompiledValidator(RULES), PyshaclValidator(RULES)
    properties = sorted({prop for makers in KINDS.values() for prop in makers} - {"startedAt"})
    properties += ["supersededBy", "supersedes", "invalidatedBy", "derivedFrom", "severityLevel", "decisionStatus"]
    certain = 0
    for _ in range(150):
        made = Delta(rng)
        nodes = [made.add(rng.choice(sorted(KINDS))) for _ in range(rng.randint(1, 3))]
        pool = [*nodes, *VALUES, *(rng.choice(names) for names in NAMES.values()), literal("medium")]
        made.rows = [row for row in made.rows if rng.random() < 0.9]
        for _ in range(rng.randint(0, 5)):
            made.rows.append((rng.choice(nodes), jido(rng.choice(properties)), rng.choice(pool)))
        rows = [*made.rows, *entailed(made.rows)]
        focus = None if rng.random() < 0.5 else set(rng.sample(nodes, 1))
        certain += agree(judge, reference, rows, focus)
    assert certain >= 140
