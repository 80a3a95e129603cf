"""Every shape in both directions: conforming data passes, and each rule alone reports data that breaks it."""

from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest

from jidomem.base import files
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import SHAPE, jido, local_name
from jidomem.schema import ontology
from jidomem.schema.shacl import EVERY_ITEM_IS_JUDGED, validate_graph

CASES = Path(__file__).parent / "cases"
SH = "http://www.w3.org/ns/shacl#"
RULES = [quad for path in files.shape_files() for quad in ox.parse(path=str(path))]


def values_of(name):
    """Return subject and object, as plain text, of every triple of the shapes with the SHACL property *name*."""
    return [(quad.subject.value, quad.object.value) for quad in RULES if quad.predicate.value == SH + name]


def triples(path):
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in ox.parse(path=str(path))]


def broken_rules(path, **options):
    return {local_name(finding.shape) for finding in ontology.load().judge(triples(path), **options)}


NAMES = sorted(local_name(shape) for shape, _ in values_of("message"))


@pytest.mark.parametrize("name", NAMES)
def test_conforming_data_breaks_no_rule(name):
    assert broken_rules(CASES / name / "conforms.ttl") == set()


@pytest.mark.parametrize("name", NAMES)
def test_data_that_violates_one_rule_is_reported_by_that_rule_only(name):  # C041
    assert broken_rules(CASES / name / "violates.ttl") == {name}


def test_every_rule_has_two_examples_and_every_example_a_rule():
    assert sorted(path.name for path in CASES.iterdir()) == NAMES
    assert all(
        sorted(file.name for file in case.iterdir()) == ["conforms.ttl", "violates.ttl"] for case in CASES.iterdir()
    )


def test_every_rule_has_an_iri_a_severity_and_one_message():
    shapes = {quad.subject.value for quad in RULES if not isinstance(quad.subject, ox.BlankNode)}
    shapes_with_message = [shape for shape, _ in values_of("message")]
    shapes_with_properties = {shape for shape, _ in values_of("property")}
    components = {
        f"{SHAPE}{name}" for name in ("FactHasEvidence", "FactSupersedesNoHypothesis", "Hypothesis", "Moment", "Yes")
    }

    assert all(shape.startswith(SHAPE) for shape in shapes)
    assert len(shapes_with_message) == len(set(shapes_with_message)) == len(values_of("severity"))
    assert shapes == set(shapes_with_message) | shapes_with_properties | components
    assert all(text.endswith(".") and len(text) > 30 for _, text in values_of("message"))


def test_the_rules_use_shacl_core_only():
    used = {quad.predicate.value.removeprefix(SH) for quad in RULES if quad.predicate.value.startswith(SH)}
    assert used.isdisjoint({"sparql", "select", "js", "rule", "target", "validator", "expression"})


def test_every_shape_with_properties_has_a_target():
    groups = {shape for shape, _ in values_of("property")}
    targeted = {shape for name in ("targetClass", "targetSubjectsOf") for shape, _ in values_of(name)}
    assert groups <= targeted


def test_a_known_bad_file_fails_although_no_item_is_typed_memory_item():  # C108
    findings = ontology.load().judge(triples(Path(__file__).parent / "known-bad.ttl"))

    by_item = {}
    for finding in findings:
        by_item.setdefault(local_name(finding.focus), set()).add(local_name(finding.shape))
    assert {len(names & {"ItemHasOneProject", "ItemHasAnAuthor"}) for names in by_item.values()} == {2}
    assert "DecisionHasRationale" in by_item["b"]
    assert "ErrorHasOneStatus" in by_item["c"]


def test_the_known_bad_file_passes_without_the_class_hierarchy():
    """Plain SHACL over the data alone finds no instance of MemoryItem and so reports nothing."""
    shapes = [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in RULES]
    fact = [row for row in triples(Path(__file__).parent / "known-bad.ttl") if row[0].endswith("/a>")]
    assert validate_graph(fact, shapes) == []


def test_an_item_of_an_undeclared_class_is_reported():
    row = ("<https://jido.ai/memory/1>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:other:Thing>")
    misspelt = ("<urn:x>", row[1], "<https://jido.ai/ontology#Fcat>")

    findings = ontology.load().judge([row, ("<https://jido.ai/memory/1>", "<urn:p>", '"x"'), misspelt])

    assert [(finding.focus, finding.shape) for finding in findings] == [
        ("<https://jido.ai/memory/1>", EVERY_ITEM_IS_JUDGED),
        ("<urn:x>", EVERY_ITEM_IS_JUDGED),
    ]
    assert all("type it with a declared class" in finding.message for finding in findings)


def test_check_uses_its_own_severities_and_omits_write_rules():
    stricter = (iri(SHAPE + "RootCauseExplainsAnError"), jido("checkSeverity"), iri(SH + "Violation"))
    shipped = ontology.load()
    judge = replace(shipped, _rules=(*shipped.rules, stricter), _judges=[]).judge
    unexplained = triples(CASES / "RootCauseExplainsAnError" / "violates.ttl")

    assert [finding.severity for finding in judge(unexplained)] == ["warning"]
    assert [finding.severity for finding in judge(unexplained, in_check=True)] == ["violation"]
    assert [finding.severity for finding in shipped.judge(unexplained, in_check=True)] == ["warning"]
    for name in ("ItemHasOneSuccessor", "SupersessionHasNoCycle"):
        assert broken_rules(CASES / name / "violates.ttl", in_check=True) == set()


@pytest.mark.parametrize(
    ("name", "severity"),
    [("TaskHasAnAssignee", "warning"), ("AssumptionHasAReviewDate", "warning"), ("LessonHasAnOrigin", "info"),
     ("ItemHasOneSummary", "violation")],
)  # fmt: skip
def test_a_finding_has_the_severity_of_its_rule(name, severity):
    findings = ontology.load().judge(triples(CASES / name / "violates.ttl"))
    assert {finding.severity for finding in findings} == {severity}


def test_an_item_that_supersedes_itself_is_reported():
    findings = ontology.load().judge(
        [*triples(CASES / "ItemHasOneProject" / "conforms.ttl"),
         ("<https://jido.ai/memory/a>", "<https://jido.ai/ontology#supersededBy>", "<https://jido.ai/memory/a>")]
    )  # fmt: skip
    assert {local_name(finding.shape) for finding in findings} == {"SupersessionHasNoCycle"}


def test_every_item_rule_applies_to_markers_alternatives_and_other_types():
    conforming = triples(CASES / "ItemHasOneProject" / "conforms.ttl")
    for name in ("DeletedMarker", "Alternative", "Milestone", "Unknown"):
        retyped = [
            (s, p, f"<https://jido.ai/ontology#{name}>" if p.endswith("#type>") else o) for s, p, o in conforming
        ]
        typed_only = [row for row in retyped if row[1].endswith("#type>")]
        assert ontology.load().judge(retyped) == []
        assert len(ontology.load().judge(typed_only)) == 6
