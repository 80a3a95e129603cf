"""Shapes that contradict themselves, told by name and line before anybody is refused by them."""

import pytest

from jidomem.check.overlay import check_overlay
from jidomem.check.terms import unsatisfiable_shapes
from jidomem.runtime.location import init
from jidomem.schema.ontology import load

PREFIXES = """@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def told(tmp_path, *asks):
    """What is told of a shape of facts that asks each of *asks* of their topics."""
    parts = " , ".join(f"[ sh:path jido:topic ; sh:message 'x' ; {said} ]" for said in asks)
    root = init(tmp_path, "p")
    (root / "shapes").mkdir()
    shape = f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ;\n sh:property {parts} ."
    (root / "shapes" / "mine.ttl").write_text(PREFIXES + shape)
    report = check_overlay(root)
    assert report.unchecked == []
    return [(each.item, each.line, each.message) for each in report.problems if each.name == "ShapeCanBeMet"]


@pytest.mark.parametrize(("said", "message"), [
    ("sh:minCount 2 ; sh:maxCount 1", "sh:minCount 2 is more than sh:maxCount 1"),
    ("sh:minLength 5 ; sh:maxLength 4", "sh:minLength 5 is more than sh:maxLength 4"),
    ("sh:minInclusive 3 ; sh:maxInclusive 2.5", "sh:minInclusive 3 is more than sh:maxInclusive 2.5"),
    ("sh:minExclusive 3 ; sh:maxInclusive 3.0", "nothing lies between sh:minExclusive 3 and sh:maxInclusive 3.0"),
    ("sh:minInclusive '2026-02-01T00:00:00Z'^^xsd:dateTime ; sh:maxExclusive '2026-02-01T01:00:00+01:00'^^xsd:dateTime",
     "nothing lies between sh:minInclusive 2026-02-01T00:00:00Z and sh:maxExclusive 2026-02-01T01:00:00+01:00"),
    ("sh:minInclusive 3 ; sh:maxInclusive '2026-02-01T00:00:00Z'^^xsd:dateTime", "are not compared with one value"),
    ("sh:in ()", "sh:in is empty"),
    ("sh:in ( 'a' 'b' ) ; sh:hasValue 'c'", "sh:hasValue c is not in sh:in"),
    ("sh:datatype xsd:string ; sh:class jido:Fact", "sh:datatype string asks for another kind of node than sh:class"),
    ("sh:datatype xsd:string ; sh:nodeKind sh:IRI", "sh:nodeKind IRI asks for another kind of node than sh:datatype"),
    ("sh:nodeKind sh:Literal ; sh:class jido:Fact", "sh:nodeKind Literal asks for another kind of node than sh:class"),
    ("sh:datatype xsd:string ; sh:hasValue jido:High", "another kind of node than sh:hasValue High"),
])  # fmt: skip
def test_what_nothing_can_meet_is_told_with_the_name_of_its_shape(tmp_path, said, message):
    ((item, line, text),) = told(tmp_path, said)

    assert (item, line) == ("https://my.example/kitchen#S", PREFIXES.count("\n") + 2)
    assert text.startswith("nothing can meet this shape: ")
    assert message in text


def test_two_property_shapes_of_one_path_are_read_together(tmp_path):
    ((_, _, text),) = told(tmp_path, "sh:minCount 2", "sh:maxCount 1")

    assert text == "nothing can meet this shape: sh:minCount 2 is more than sh:maxCount 1"


@pytest.mark.parametrize("said", [
    "sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:string ; sh:nodeKind sh:Literal",
    "sh:minInclusive 3 ; sh:maxInclusive 3.0",
    "sh:minExclusive 2 ; sh:maxExclusive 3 ; sh:nodeKind sh:IRIOrLiteral ; sh:datatype xsd:decimal",
    "sh:minCount 2 ; sh:maxCount 1 ; sh:deactivated true",
    "sh:in ( 'a' 'b' ) ; sh:hasValue 'a'",
    "sh:class jido:Fact , jido:Entry ; sh:nodeKind sh:BlankNodeOrIRI",
    "sh:minInclusive '2026-01-01T00:00:00Z'^^xsd:dateTime ; sh:maxInclusive '2026-01-02T00:00:00Z'^^xsd:dateTime",
])  # fmt: skip
def test_what_can_be_met_is_not_told(tmp_path, said):
    assert told(tmp_path, said) == []


def test_no_shape_that_is_shipped_contradicts_itself():
    assert unsatisfiable_shapes(sorted(load().rules)) == []
