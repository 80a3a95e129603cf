"""Stage 2, ontology: every term is declared, and used where its domain and range allow it."""

from dataclasses import replace

import pytest
from conftest import intent
from writing import GRAPH, codes, open_with, refusal, values_of

from jidomem.errors import IntentRefused
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import TYPE, graph_iri, jido
from jidomem.records.policy import Policy
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.validate import check_terms

FOREIGN = "https://example.org/mood"


def test_an_undeclared_term_is_refused_with_the_nearest_term_and_a_repair(writer):  # C043
    proposal = intent(extra_triples=[["jido:topik", "storage"]])
    error = refusal(writer.submit_intent, "p", proposal)
    assert codes(error) == ["unknown_term"]
    assert error.violations[0].nearest == "https://jido.ai/ontology#topic"
    assert error.fixed_intent["extra_triples"] == [["https://jido.ai/ontology#topic", "storage"]]
    assert writer.submit_intent("p", error.fixed_intent).status == "asserted"


def test_an_undeclared_class_is_refused_with_the_nearest_class(writer):  # C043
    extra = [["https://example.org/x", "rdf:type", {"@id": "jido:SourceFil"}]]
    error = refusal(writer.submit_intent, "p", intent(extra_triples=extra))
    assert codes(error) == ["unknown_term"]
    assert error.violations[0].nearest == "https://jido.ai/ontology#SourceFile"


def test_an_undeclared_term_without_a_similar_one_has_no_repair(writer):  # C043
    error = refusal(writer.submit_intent, "p", intent(extra_triples=[["jido:zzzqqq", "x"]]))
    assert error.code == "unknown_term"
    assert (error.violations[0].nearest, error.fixed_intent) == (None, None)


def test_a_foreign_term_is_stored_with_a_warning(memory):  # C043 C007
    receipt = memory.writer.submit_intent("p", intent(extra_triples=[[FOREIGN, "sunny"]]))
    assert any(FOREIGN in warning for warning in receipt.warnings)
    assert [o for _, _, o in memory.index.triples(GRAPH, iri(receipt.iri), iri(FOREIGN))] == ['"sunny"']


def test_a_strict_project_refuses_a_foreign_term(tmp_path):  # C043
    with open_with(tmp_path) as memory:
        memory.writer.submit_intent("p", intent())
    with open_with(tmp_path, "strict = true\n") as memory:
        proposal = intent(iri="urn:x:2", summary="two", extra_triples=[[FOREIGN, "sunny"]])
        assert codes(refusal(memory.writer.submit_intent, "p", proposal)) == ["unknown_term"]


def test_an_overlay_term_is_checked_by_its_domain_and_range(tmp_path):  # C043
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
def test_a_property_of_another_class_is_refused(writer, kind, triple):  # C043
    error = refusal(writer.submit_intent, "p", intent(type=kind, extra_triples=[triple]))
    assert error.code == "shape_violation"
    assert "is a property of" in error.detail


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
def test_a_value_outside_the_range_of_its_property_is_refused(writer, kind, triple):  # C043
    error = refusal(writer.submit_intent, "p", intent(type=kind, extra_triples=[triple]))
    assert error.code == "shape_violation"


def test_a_memory_of_another_class_is_refused_as_a_value(memory):  # C043
    fact = memory.writer.submit_intent("p", intent()).iri
    task = memory.writer.submit_intent("p", intent(type="task", summary="do")).iri
    error = refusal(
        memory.writer.submit_intent,
        "p",
        intent(type="task", summary="two", extra_triples=[["jido:dependsOn", {"@id": fact}]]),
    )
    assert error.code == "shape_violation"
    assert "takes Task, and" in error.detail
    proposal = intent(type="task", summary="three", extra_triples=[["jido:dependsOn", {"@id": task}]])
    item = memory.writer.submit_intent("p", proposal).iri
    assert values_of(memory, item, "dependsOn") == [iri(task)]


def test_a_subclass_may_use_the_properties_of_its_class(memory):  # C043
    extra = [["jido:errorCode", "E7"]]
    item = memory.writer.submit_intent("p", intent(type="bug", extra_triples=extra)).iri
    assert values_of(memory, item, "errorCode") == ['"E7"']


def test_a_new_entity_gets_the_class_of_the_range(memory):  # C043
    module = "https://example.org/modules/index"
    extra = [["jido:appliesToModule", {"@id": module}]]
    memory.writer.submit_intent("p", intent(type="convention", extra_triples=extra))
    assert [o for _, _, o in memory.index.triples(GRAPH, iri(module), TYPE)] == [jido("Module")]


def test_a_reference_to_an_unknown_memory_is_refused(writer):  # C044
    extra = [["jido:dependsOn", {"@id": "https://jido.ai/memory/nobody"}]]
    error = refusal(writer.submit_intent, "p", intent(type="task", extra_triples=extra))
    assert codes(error) == ["unknown_reference"]


EXAMPLE = "https://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def types(memory, node):
    return sorted(o for _, _, o in memory.index.triples(GRAPH, iri(node), TYPE))


def submit(memory, kind, *extra, **fields):
    return memory.writer.submit_intent("p", intent(type=kind, extra_triples=list(extra), **fields))


def only_violation(memory, kind, *extra, **fields):
    """Return the only violation of an intent with these extra triples."""
    (violation,) = refusal(submit, memory, kind, *extra, **fields).violations
    assert (violation.code, violation.field) in (
        ("shape_violation", "extra_triples"),
        ("unknown_term", "extra_triples"),
    )
    return violation


def test_a_typed_entity_keeps_its_class(memory):
    bot, typed = EXAMPLE + "bot", EXAMPLE + "known"
    description = {"rdf:type": "jido:SubAgent", "jido:hasRole": "jido:Planner", "jido:hasCapability": "jido:CanPlan"}

    def description_of(node):
        return [[node, name, {"@id": value}] for name, value in description.items()]

    submit(memory, "fact", *description_of(typed))
    submit(memory, "task", ["jido:createdBy", {"@id": bot}], *description_of(bot))
    submit(memory, "task", ["jido:createdBy", {"@id": typed}], summary="two")

    assert types(memory, bot) == types(memory, typed) == [jido("SubAgent")]


def test_a_foreign_reference_is_not_typed_as_a_memory(memory):
    reference = EXAMPLE + "task"
    item = submit(memory, "task", ["jido:dependsOn", {"@id": reference}]).iri

    assert values_of(memory, item, "dependsOn") == [iri(reference)]
    assert types(memory, reference) == []


def test_a_functional_property_accepts_one_value_repeated_or_not(memory):
    path, file = [EXAMPLE + "file", "jido:filePath", "a.py"], [EXAMPLE + "file", "rdf:type", {"@id": "jido:SourceFile"}]

    violation = only_violation(memory, "fact", file, path, [EXAMPLE + "file", "jido:filePath", "b.py"])
    assert (
        violation.message
        == "https://jido.ai/ontology#filePath has one value, and https://example.org/file was given another"
    )
    assert violation.value == "b.py"
    submit(memory, "fact", file, path, path)
    assert values_of(memory, EXAMPLE + "file", "filePath") == ['"a.py"']
    submit(
        memory,
        "fact",
        [EXAMPLE + "f", "rdf:type", {"@id": "jido:SourceFile"}],
        [EXAMPLE + "f", "jido:filePath", "b"],
        summary="x",
    )


def test_appended_triples_are_checked_by_datatype_and_cardinality(memory):
    def append(node, path, *further):
        rows = [(node, TYPE, jido("SourceFile")), (node, jido("filePath"), path), *further]
        return memory.writer.append("p", "codebase", rows)

    node = "<urn:file>"
    append(node, '"a.py"')
    graph = graph_iri("p", "codebase")
    before = set(memory.index.triples(graph))
    (violation,) = refusal(append, node, '"b.py"').violations
    assert violation.message == "https://jido.ai/ontology#filePath has one value, and urn:file has one already"
    assert (violation.code, violation.field, violation.value) == ("shape_violation", "extra_triples", "b.py")
    error = refusal(append, "<urn:other>", '"c.py"', ("<urn:other>", iri(FOREIGN), f'"{"x" * 90}"^^<{XSD}integer>'))
    assert [broken.message for broken in error.violations] == [f"'{'x' * 80}' is not written as a {XSD}integer is"]
    assert (error.violations[0].value, error.violations[0].field) == ("x" * 90, "extra_triples")
    assert set(memory.index.triples(graph)) == before
    append("<urn:other>", '"c.py"', ("<urn:other>", iri(FOREIGN), f'"5"^^<{XSD}integer>'))
    append("<urn:other>", '"c.py"')


def test_a_class_that_is_no_iri_is_refused(memory):
    assert only_violation(memory, "fact", [EXAMPLE + "x", "rdf:type", "Module"]).message == "a class is an IRI"


def test_a_foreign_term_is_reported_once_and_rdf_and_rdfs_terms_not_at_all(memory):
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    receipt = submit(
        memory,
        "fact",
        [FOREIGN, "sunny"],
        [EXAMPLE + "x", FOREIGN, "rainy"],
        [EXAMPLE + "x", "rdf:type", {"@id": EXAMPLE + "Weather"}],
        [EXAMPLE + "x", label, "the weather"],
    )

    assert sorted(receipt.warnings) == [
        f"{EXAMPLE}Weather is a class of a foreign vocabulary: kept, not judged",
        f"{FOREIGN} is a property of a foreign vocabulary: kept, not judged",
    ]


def test_an_undeclared_term_is_reported_by_its_use_and_repaired_in_full_form(memory):
    full_name, prefixed = "https://jido.ai/ontology#errorCod", "jido:errorCod"
    for name in (full_name, prefixed):
        error = refusal(submit, memory, "error", [name, "E1"])
        (violation,) = error.violations
        assert violation.message == f"{full_name} is not a declared property; did you mean {full_name}e?"
        assert (violation.field, violation.value, violation.nearest) == ("extra_triples", full_name, full_name + "e")
        assert error.fixed_intent["extra_triples"] == [[full_name + "e", "E1"]]
    assert (
        only_violation(memory, "fact", ["jido:zzzqqq", "x"]).message
        == "https://jido.ai/ontology#zzzqqq is not a declared property"
    )
    violation = only_violation(memory, "fact", [EXAMPLE + "x", "rdf:type", {"@id": "jido:Zzzqqq"}])
    assert violation.message == "https://jido.ai/ontology#Zzzqqq is not a declared class"
    assert violation.repair is None


@pytest.mark.parametrize(("kind", "triple", "message"), [
    ("fact", ["jido:errorCode", "E1"], "errorCode is a property of Error, and this memory is not one"),
    ("error", ["jido:errorCode", 5], "errorCode takes string, not '5'"),
    ("task", ["jido:taskStartedAt", {"@id": EXAMPLE + "x"}],
     "taskStartedAt takes dateTime, not the IRI https://example.org/x"),
    ("task", ["jido:dependsOn", "y" * 90], "dependsOn takes Task, not '" + "y" * 80 + "'"),
    ("task", ["jido:dependsOn", {"@id": "jido:High"}], "dependsOn takes Task, and {ns}High is not one"),
    ("error", ["jido:hasErrorStatus", {"@id": EXAMPLE + "x"}],
     "hasErrorStatus takes ErrorStatus, and https://example.org/x is not one"),
])  # fmt: skip
def test_a_misplaced_triple_is_reported_with_the_domain_or_range_of_its_property(memory, kind, triple, message):
    ns = "https://jido.ai/ontology#"
    error = refusal(submit, memory, kind, triple, iri="urn:item")
    assert ns + message.format(item="urn:item", ns=ns) in [violation.message for violation in error.violations]


def test_an_invalid_value_of_a_closed_class_is_reported_with_the_allowed_values(memory):
    violation = only_violation(memory, "convention", [EXAMPLE + "c", "rdf:type", {"@id": "jido:Agent"}],
                    [EXAMPLE + "c", "jido:hasRole", {"@id": "jido:High"}])  # fmt: skip
    assert violation.value == "https://jido.ai/ontology#High"
    assert {"Administrator", "Architect", "Curator", "Implementer"} <= set(violation.allowed)
    assert "High" not in violation.allowed
    assert sorted(violation.allowed) == list(violation.allowed)


def test_a_memory_given_as_evidence_is_not_typed_as_evidence(memory):
    fact = submit(memory, "fact").iri
    item = memory.writer.submit_intent("p", intent(type="risk", summary="two", evidence=[fact])).iri

    assert values_of(memory, item, "derivedFrom") == [iri(fact)]
    assert jido("Evidence") not in types(memory, fact)


def test_a_deprecated_term_is_accepted_with_a_warning(memory):
    schema = replace(memory.schema, deprecated=frozenset((jido("errorCode"), jido("SourceFile"))))
    rows = [("<urn:e>", TYPE, jido("Error")), ("<urn:e>", jido("errorCode"), '"E1"'),
            ("<urn:f>", TYPE, jido("SourceFile")), ("<urn:f>", jido("errorCode"), '"E2"')]  # fmt: skip
    snapshot = WriteSnapshot(lambda *pattern: [])

    assert check_terms(rows[:3], snapshot, schema, Policy()) == [
        f"https://jido.ai/ontology#{name} is deprecated" for name in ("errorCode", "SourceFile")
    ]
    with pytest.raises(IntentRefused, match="is a property of Error"):
        check_terms(rows, snapshot, schema, Policy())


def test_the_cardinality_of_a_field_is_checked_by_its_own_rule_for_the_memory(memory):
    own_error = refusal(submit, memory, "fact", ["jido:summary", "another"])
    other_error = refusal(
        submit, memory, "fact", [EXAMPLE + "x", "jido:rationale", "a"], [EXAMPLE + "x", "jido:rationale", "b"]
    )

    assert "was given another" not in own_error.detail
    assert other_error.violations[0].message.endswith("has one value, and https://example.org/x was given another")


def test_a_reference_to_a_class_does_not_type_its_subject(memory):
    node = EXAMPLE + "x"
    rows = [("rdf:type", {"@id": "jido:SourceFile"}), (FOREIGN, {"@id": "jido:Error"}), ("jido:errorCode", "E1")]

    violation = only_violation(memory, "fact", *([node, *row] for row in rows))

    assert violation.message == f"https://jido.ai/ontology#errorCode is a property of Error, and {node} is not one"
