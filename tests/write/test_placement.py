"""Stage 2, the ontology's part: every term is declared, and stands where the ontology allows it."""

import pytest
from conftest import intent
from writing import GRAPH, codes, open_with, refusal, said

from jidomem.terms import iri
from jidomem.vocab import TYPE, jido

FOREIGN = "https://example.org/mood"


def test_an_undeclared_term_of_ours_is_refused_with_the_nearest_and_a_repair(writer):  # C043
    given = intent(extra_triples=[["jido:topik", "storage"]])
    error = refusal(writer.submit_intent, "p", given)
    assert codes(error) == ["unknown_term"]
    assert error.violations[0].nearest == "https://jido.ai/ontology#topic"
    assert error.fixed_intent["extra_triples"] == [["https://jido.ai/ontology#topic", "storage"]]
    assert writer.submit_intent("p", error.fixed_intent).status == "asserted"


def test_an_undeclared_class_of_ours_is_refused(writer):  # C043
    extra = [["https://example.org/x", "rdf:type", {"@id": "jido:SourceFil"}]]
    error = refusal(writer.submit_intent, "p", intent(extra_triples=extra))
    assert codes(error) == ["unknown_term"]
    assert error.violations[0].nearest == "https://jido.ai/ontology#SourceFile"


def test_an_undeclared_term_like_no_other_gets_no_guess(writer):  # C043
    error = refusal(writer.submit_intent, "p", intent(extra_triples=[["jido:zzzqqq", "x"]]))
    assert error.code == "unknown_term"
    assert (error.violations[0].nearest, error.fixed_intent) == (None, None)


def test_a_foreign_term_is_kept_with_a_warning(memory):  # C043 C007
    receipt = memory.writer.submit_intent("p", intent(extra_triples=[[FOREIGN, "sunny"]]))
    assert any(FOREIGN in warning for warning in receipt.warnings)
    assert [o for _, _, o in memory.index.triples(GRAPH, iri(receipt.iri), iri(FOREIGN))] == ['"sunny"']


def test_strict_refuses_a_foreign_term(tmp_path):  # C043
    with open_with(tmp_path) as memory:
        memory.writer.submit_intent("p", intent())
    with open_with(tmp_path, "strict = true\n") as memory:
        given = intent(iri="urn:x:2", summary="two", extra_triples=[[FOREIGN, "sunny"]])
        assert codes(refusal(memory.writer.submit_intent, "p", given)) == ["unknown_term"]


def test_an_overlays_term_is_declared(tmp_path):  # C043
    folder = tmp_path / "root" / "ontology"
    folder.mkdir(parents=True)
    (folder / "own.ttl").write_text(
        "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix jido: <https://jido.ai/ontology#> .\n"
        "<https://example.org/mood> a owl:DatatypeProperty ; rdfs:domain jido:Fact ; rdfs:range xsd:integer .\n"
    )
    with open_with(tmp_path, "strict = false\n") as memory:
        receipt = memory.writer.submit_intent("p", intent(extra_triples=[[FOREIGN, 5]]))
        assert receipt.warnings == ()
        wrong_range = intent(summary="two", extra_triples=[[FOREIGN, {"@value": "sunny"}]])
        assert refusal(memory.writer.submit_intent, "p", wrong_range).code == "shape_violation"
        wrong_domain = intent(type="risk", summary="three", extra_triples=[[FOREIGN, 5]])
        assert refusal(memory.writer.submit_intent, "p", wrong_domain).code == "shape_violation"


@pytest.mark.parametrize(
    ("kind", "triple"),
    [
        ("fact", ["jido:errorCode", "E1"]),
        ("fact", ["jido:hasTaskStatus", {"@id": "jido:Planned"}]),
        ("error", ["jido:conventionDescription", "x"]),
        ("lesson", ["jido:refines", {"@id": "https://example.org/h"}]),
        ("fact", ["jido:startedAt", "2026-11-21T08:00:00Z"]),
    ],
)
def test_a_property_of_another_kind_is_refused(writer, kind, triple):  # C043
    error = refusal(writer.submit_intent, "p", intent(type=kind, extra_triples=[triple]))
    assert error.code == "shape_violation"
    assert "is said of" in error.detail


@pytest.mark.parametrize(
    ("kind", "triple"),
    [
        ("task", ["jido:dependsOn", {"@value": "the other task"}]),
        ("task", ["jido:taskStartedAt", {"@value": "soon"}]),
        ("task", ["jido:taskStartedAt", {"@id": "https://example.org/x"}]),
        ("error", ["jido:errorCode", 5]),
        ("error", ["jido:errorCode", {"@value": "Fehler", "@language": "de"}]),
        ("error", ["jido:hasErrorStatus", {"@id": "https://example.org/x"}]),
        ("convention", ["jido:hasEnforcementLevel", {"@id": "jido:High"}]),
    ],
)
def test_a_value_outside_the_range_is_refused(writer, kind, triple):  # C043
    error = refusal(writer.submit_intent, "p", intent(type=kind, extra_triples=[triple]))
    assert error.code == "shape_violation"


def test_a_memory_of_the_wrong_kind_is_no_value(memory):  # C043
    fact = memory.writer.submit_intent("p", intent()).iri
    task = memory.writer.submit_intent("p", intent(type="task", summary="do")).iri
    error = refusal(
        memory.writer.submit_intent,
        "p",
        intent(type="task", summary="two", extra_triples=[["jido:dependsOn", {"@id": fact}]]),
    )
    assert error.code == "shape_violation"
    assert "points at Task" in error.detail
    given = intent(type="task", summary="three", extra_triples=[["jido:dependsOn", {"@id": task}]])
    item = memory.writer.submit_intent("p", given).iri
    assert said(memory, item, "dependsOn") == [iri(task)]


def test_a_subclass_stands_where_its_class_may(memory):  # C043
    extra = [["jido:errorCode", "E7"]]
    item = memory.writer.submit_intent("p", intent(type="bug", extra_triples=extra)).iri
    assert said(memory, item, "errorCode") == ['"E7"']


def test_a_new_entity_takes_the_class_of_the_range(memory):  # C043
    module = "https://example.org/modules/index"
    extra = [["jido:appliesToModule", {"@id": module}]]
    memory.writer.submit_intent("p", intent(type="convention", extra_triples=extra))
    assert [o for _, _, o in memory.index.triples(GRAPH, iri(module), TYPE)] == [jido("Module")]


def test_a_new_reference_into_the_memory_namespace_exists_or_is_refused(writer):  # C044
    extra = [["jido:dependsOn", {"@id": "https://jido.ai/memory/nobody"}]]
    error = refusal(writer.submit_intent, "p", intent(type="task", extra_triples=extra))
    assert codes(error) == ["unknown_reference"]
