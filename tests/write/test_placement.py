"""Stage 2, the ontology's part: every term is declared, and used where the ontology allows it."""

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
    assert "takes Task, and" in error.detail
    given = intent(type="task", summary="three", extra_triples=[["jido:dependsOn", {"@id": task}]])
    item = memory.writer.submit_intent("p", given).iri
    assert values_of(memory, item, "dependsOn") == [iri(task)]


def test_a_subclass_stands_where_its_class_may(memory):  # C043
    extra = [["jido:errorCode", "E7"]]
    item = memory.writer.submit_intent("p", intent(type="bug", extra_triples=extra)).iri
    assert values_of(memory, item, "errorCode") == ['"E7"']


def test_a_new_entity_takes_the_class_of_the_range(memory):  # C043
    module = "https://example.org/modules/index"
    extra = [["jido:appliesToModule", {"@id": module}]]
    memory.writer.submit_intent("p", intent(type="convention", extra_triples=extra))
    assert [o for _, _, o in memory.index.triples(GRAPH, iri(module), TYPE)] == [jido("Module")]


def test_a_new_reference_into_the_memory_namespace_exists_or_is_refused(writer):  # C044
    extra = [["jido:dependsOn", {"@id": "https://jido.ai/memory/nobody"}]]
    error = refusal(writer.submit_intent, "p", intent(type="task", extra_triples=extra))
    assert codes(error) == ["unknown_reference"]


EXAMPLE = "https://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def types(memory, node):
    return sorted(o for _, _, o in memory.index.triples(GRAPH, iri(node), TYPE))


def kept(memory, kind, *extra, **fields):
    return memory.writer.submit_intent("p", intent(type=kind, extra_triples=list(extra), **fields))


def problem(memory, kind, *extra, **fields):
    """The only violation of an intent with these extra triples."""
    (found,) = refusal(kept, memory, kind, *extra, **fields).violations
    assert (found.code, found.field) in (("shape_violation", "extra_triples"), ("unknown_term", "extra_triples"))
    return found


def test_an_entity_that_is_described_otherwise_keeps_the_class_it_has(memory):
    bot, known = EXAMPLE + "bot", EXAMPLE + "known"
    able = {"rdf:type": "jido:SubAgent", "jido:hasRole": "jido:Planner", "jido:hasCapability": "jido:CanPlan"}

    def described(node):
        return [[node, name, {"@id": value}] for name, value in able.items()]

    kept(memory, "fact", *described(known))
    kept(memory, "task", ["jido:createdBy", {"@id": bot}], *described(bot))
    kept(memory, "task", ["jido:createdBy", {"@id": known}], summary="two")

    assert types(memory, bot) == types(memory, known) == [jido("SubAgent")]


def test_what_a_new_memory_points_at_is_no_memory_for_that(memory):
    other = EXAMPLE + "task"
    item = kept(memory, "task", ["jido:dependsOn", {"@id": other}]).iri

    assert values_of(memory, item, "dependsOn") == [iri(other)]
    assert types(memory, other) == []


def test_a_property_of_one_value_has_it_once_and_may_say_it_twice(memory):
    path, file = [EXAMPLE + "file", "jido:filePath", "a.py"], [EXAMPLE + "file", "rdf:type", {"@id": "jido:SourceFile"}]

    found = problem(memory, "fact", file, path, [EXAMPLE + "file", "jido:filePath", "b.py"])
    assert (
        found.message
        == "https://jido.ai/ontology#filePath has one value, and https://example.org/file was given another"
    )
    assert found.value == "b.py"
    kept(memory, "fact", file, path, path)
    assert values_of(memory, EXAMPLE + "file", "filePath") == ['"a.py"']
    kept(
        memory,
        "fact",
        [EXAMPLE + "f", "rdf:type", {"@id": "jido:SourceFile"}],
        [EXAMPLE + "f", "jido:filePath", "b"],
        summary="x",
    )


def test_what_is_appended_is_written_as_its_datatype_has_it_and_given_once(memory):
    def append(node, path, *more):
        rows = [(node, TYPE, jido("SourceFile")), (node, jido("filePath"), path), *more]
        return memory.writer.append("p", "codebase", rows)

    node = "<urn:file>"
    append(node, '"a.py"')
    graph = graph_iri("p", "codebase")
    before = set(memory.index.triples(graph))
    (again,) = refusal(append, node, '"b.py"').violations
    assert again.message == "https://jido.ai/ontology#filePath has one value, and urn:file has one already"
    assert (again.code, again.field, again.value) == ("shape_violation", "extra_triples", "b.py")
    bad = refusal(append, "<urn:other>", '"c.py"', ("<urn:other>", iri(FOREIGN), f'"{"x" * 90}"^^<{XSD}integer>'))
    assert [found.message for found in bad.violations] == [f"'{'x' * 80}' is not written as a {XSD}integer is"]
    assert (bad.violations[0].value, bad.violations[0].field) == ("x" * 90, "extra_triples")
    assert set(memory.index.triples(graph)) == before
    append("<urn:other>", '"c.py"', ("<urn:other>", iri(FOREIGN), f'"5"^^<{XSD}integer>'))
    append("<urn:other>", '"c.py"')


def test_a_class_is_an_iri(memory):
    assert problem(memory, "fact", [EXAMPLE + "x", "rdf:type", "Module"]).message == "a class is an IRI"


def test_what_is_foreign_is_told_once_for_each_term_and_what_rdf_says_not_at_all(memory):
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    receipt = kept(
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


def test_a_term_nobody_declared_is_told_as_what_it_is_used_for_and_respelt_however_it_was_written(memory):
    long, short = "https://jido.ai/ontology#errorCod", "jido:errorCod"
    for name in (long, short):
        error = refusal(kept, memory, "error", [name, "E1"])
        (found,) = error.violations
        assert found.message == f"{long} is not a declared property; did you mean {long}e?"
        assert (found.field, found.value, found.nearest) == ("extra_triples", long, long + "e")
        assert error.fixed_intent["extra_triples"] == [[long + "e", "E1"]]
    assert (
        problem(memory, "fact", ["jido:zzzqqq", "x"]).message
        == "https://jido.ai/ontology#zzzqqq is not a declared property"
    )
    found = problem(memory, "fact", [EXAMPLE + "x", "rdf:type", {"@id": "jido:Zzzqqq"}])
    assert found.message == "https://jido.ai/ontology#Zzzqqq is not a declared class"
    assert found.repair is None


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
def test_a_triple_out_of_its_place_is_told_where_it_may_stand(memory, kind, triple, message):
    ns = "https://jido.ai/ontology#"
    error = refusal(kept, memory, kind, triple, iri="urn:item")
    assert ns + message.format(item="urn:item", ns=ns) in [found.message for found in error.violations]


def test_a_value_of_a_closed_class_is_told_with_those_there_are(memory):
    found = problem(memory, "convention", [EXAMPLE + "c", "rdf:type", {"@id": "jido:Agent"}],
                    [EXAMPLE + "c", "jido:hasRole", {"@id": "jido:High"}])  # fmt: skip
    assert found.value == "https://jido.ai/ontology#High"
    assert {"Administrator", "Architect", "Curator", "Implementer"} <= set(found.allowed)
    assert "High" not in found.allowed
    assert sorted(found.allowed) == list(found.allowed)


def test_a_memory_is_evidence_for_another_and_evidence_points_at_any_memory(memory):
    fact = kept(memory, "fact").iri
    item = memory.writer.submit_intent("p", intent(type="risk", summary="two", evidence=[fact])).iri

    assert values_of(memory, item, "derivedFrom") == [iri(fact)]
    assert jido("Evidence") not in types(memory, fact)


def test_what_is_deprecated_is_kept_with_a_warning(memory):
    schema = replace(memory.schema, deprecated=frozenset((jido("errorCode"), jido("SourceFile"))))
    rows = [("<urn:e>", TYPE, jido("Error")), ("<urn:e>", jido("errorCode"), '"E1"'),
            ("<urn:f>", TYPE, jido("SourceFile")), ("<urn:f>", jido("errorCode"), '"E2"')]  # fmt: skip
    view = WriteSnapshot(lambda *pattern: [])

    assert check_terms(rows[:3], view, schema, Policy()) == [
        f"https://jido.ai/ontology#{name} is deprecated" for name in ("errorCode", "SourceFile")
    ]
    with pytest.raises(IntentRefused, match="is a property of Error"):
        check_terms(rows, view, schema, Policy())


def test_what_a_field_says_once_is_counted_by_its_rule_of_a_memory_and_here_of_anything_else(memory):
    own = refusal(kept, memory, "fact", ["jido:summary", "another"])
    other = refusal(
        kept, memory, "fact", [EXAMPLE + "x", "jido:rationale", "a"], [EXAMPLE + "x", "jido:rationale", "b"]
    )

    assert "was given another" not in own.detail
    assert other.violations[0].message.endswith("has one value, and https://example.org/x was given another")


def test_what_points_at_a_class_is_not_of_that_class(memory):
    node = EXAMPLE + "x"
    rows = [("rdf:type", {"@id": "jido:SourceFile"}), (FOREIGN, {"@id": "jido:Error"}), ("jido:errorCode", "E1")]

    found = problem(memory, "fact", *([node, *row] for row in rows))

    assert found.message == f"https://jido.ai/ontology#errorCode is a property of Error, and {node} is not one"
