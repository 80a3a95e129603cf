"""Every shape, in both directions: what conforms passes, what breaks one rule is found by exactly that rule."""

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


def of(name):
    """Subject and object, as bare text, of every triple of the shapes with the SHACL property *name*."""
    return [(quad.subject.value, quad.object.value) for quad in RULES if quad.predicate.value == SH + name]


def triples(path):
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in ox.parse(path=str(path))]


def broken(path, **options):
    return {local_name(finding.shape) for finding in ontology.load().judge(triples(path), **options)}


NAMES = sorted(local_name(shape) for shape, _ in of("message"))


@pytest.mark.parametrize("name", NAMES)
def test_what_conforms_breaks_no_rule(name):
    assert broken(CASES / name / "conforms.ttl") == set()


@pytest.mark.parametrize("name", NAMES)
def test_what_violates_one_rule_is_found_by_that_rule_alone(name):  # C041
    assert broken(CASES / name / "violates.ttl") == {name}


def test_every_rule_has_its_two_examples_and_every_example_its_rule():
    assert sorted(path.name for path in CASES.iterdir()) == NAMES
    assert all(sorted(f.name for f in case.iterdir()) == ["conforms.ttl", "violates.ttl"] for case in CASES.iterdir())


def test_every_rule_has_an_iri_a_severity_and_one_message_to_its_author():
    shapes = {quad.subject.value for quad in RULES if not isinstance(quad.subject, ox.BlankNode)}
    speaking = [shape for shape, _ in of("message")]
    grouping = {shape for shape, _ in of("property")}
    parts = {
        f"{SHAPE}{name}" for name in ("FactHasEvidence", "FactSupersedesNoHypothesis", "Hypothesis", "Moment", "Yes")
    }

    assert all(shape.startswith(SHAPE) for shape in shapes)
    assert len(speaking) == len(set(speaking)) == len(of("severity"))
    assert shapes == set(speaking) | grouping | parts
    assert all(text.endswith(".") and len(text) > 30 for _, text in of("message"))


def test_the_rules_are_shacl_core_so_that_they_compile():
    used = {quad.predicate.value.removeprefix(SH) for quad in RULES if quad.predicate.value.startswith(SH)}
    assert used.isdisjoint({"sparql", "select", "js", "rule", "target", "validator", "expression"})


def test_no_file_lacks_a_target_for_what_it_groups():
    groups = {shape for shape, _ in of("property")}
    targeted = {shape for name in ("targetClass", "targetSubjectsOf") for shape, _ in of(name)}
    assert groups <= targeted


def test_a_file_known_to_be_bad_fails_although_no_item_is_typed_memory_item():  # C108
    found = ontology.load().judge(triples(Path(__file__).parent / "known-bad.ttl"))

    by_item = {}
    for finding in found:
        by_item.setdefault(local_name(finding.focus), set()).add(local_name(finding.shape))
    assert {len(names & {"ItemHasOneProject", "ItemHasAnAuthor"}) for names in by_item.values()} == {2}
    assert "DecisionHasRationale" in by_item["b"]
    assert "ErrorHasOneStatus" in by_item["c"]


def test_the_same_file_passes_where_the_class_tree_is_not_in_view():
    """The trap itself: plain SHACL over data alone sees no instance of MemoryItem, so nothing is judged."""
    shapes = [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in RULES]
    fact = [row for row in triples(Path(__file__).parent / "known-bad.ttl") if row[0].endswith("/a>")]
    assert validate_graph(fact, shapes) == []


def test_an_item_of_an_undeclared_class_does_not_pass_unjudged():
    row = ("<https://jido.ai/memory/1>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:other:Thing>")
    typo = ("<urn:x>", row[1], "<https://jido.ai/ontology#Fcat>")

    found = ontology.load().judge([row, ("<https://jido.ai/memory/1>", "<urn:p>", '"x"'), typo])

    assert [(f.focus, f.shape) for f in found] == [
        ("<https://jido.ai/memory/1>", EVERY_ITEM_IS_JUDGED),
        ("<urn:x>", EVERY_ITEM_IS_JUDGED),
    ]
    assert all("type it with a declared class" in finding.message for finding in found)


def test_in_check_severities_are_those_of_a_whole_memory_and_write_rules_are_left_out():
    stricter = (iri(SHAPE + "RootCauseExplainsAnError"), jido("checkSeverity"), iri(SH + "Violation"))
    shipped = ontology.load()
    judge = replace(shipped, _rules=(*shipped.rules, stricter), _judges=[]).judge
    orphan = triples(CASES / "RootCauseExplainsAnError" / "violates.ttl")

    assert [f.severity for f in judge(orphan)] == ["warning"]
    assert [f.severity for f in judge(orphan, in_check=True)] == ["violation"]
    assert [f.severity for f in shipped.judge(orphan, in_check=True)] == ["warning"]
    for name in ("ItemHasOneSuccessor", "SupersessionHasNoCycle"):
        assert broken(CASES / name / "violates.ttl", in_check=True) == set()


@pytest.mark.parametrize(
    ("name", "severity"),
    [("TaskHasAnAssignee", "warning"), ("AssumptionHasAReviewDate", "warning"), ("LessonHasAnOrigin", "info"),
     ("ItemHasOneSummary", "violation")],
)  # fmt: skip
def test_a_finding_carries_the_severity_its_rule_states(name, severity):
    found = ontology.load().judge(triples(CASES / name / "violates.ttl"))
    assert {finding.severity for finding in found} == {severity}


def test_an_item_that_supersedes_itself_is_found():
    found = ontology.load().judge(
        [*triples(CASES / "ItemHasOneProject" / "conforms.ttl"),
         ("<https://jido.ai/memory/a>", "<https://jido.ai/ontology#supersededBy>", "<https://jido.ai/memory/a>")]
    )  # fmt: skip
    assert {local_name(finding.shape) for finding in found} == {"SupersessionHasNoCycle"}


def test_a_deleted_marker_and_an_alternative_satisfy_the_rules_of_every_item():
    conforming = triples(CASES / "ItemHasOneProject" / "conforms.ttl")
    for name in ("DeletedMarker", "Alternative", "Milestone", "Unknown"):
        as_kind = [
            (s, p, f"<https://jido.ai/ontology#{name}>" if p.endswith("#type>") else o) for s, p, o in conforming
        ]
        bare = [row for row in as_kind if row[1].endswith("#type>")]
        assert ontology.load().judge(as_kind) == []
        assert len(ontology.load().judge(bare)) == 6
