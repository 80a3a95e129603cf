"""An acknowledged write alone causes no violation in `check`: the writer applies all its rules for one memory."""

import tempfile
from pathlib import Path

import pytest
from conftest import examples, fixed_sources, intent
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st
from writing import refusal

import jidomem
from jidomem import IntentRefused, JidomemError
from jidomem.check.check import check_project
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import CLASS_OF_TYPE, ERROR_STATUS, SCOPE, SEVERITY, TASK_STATUS, TYPE_ALIASES
from jidomem.records.intent import EXTRA_PROPERTIES, INTENT_FIELDS, LIST_FIELDS, ONLY_FOR
from jidomem.schema.ontology import load

SCHEMA = load()
EXAMPLE = "https://example.org/"
PROPERTIES = sorted(map(plain_value, SCHEMA.properties))
CLASSES, INDIVIDUALS = sorted(map(plain_value, SCHEMA.classes)), sorted(map(plain_value, SCHEMA.individuals))
subjects = st.sampled_from(["this", EXAMPLE + "x", EXAMPLE + "y", "urn:x:1", "https://jido.ai/agents/ana"])
OWL = "http://www.w3.org/2002/07/owl#"
foreign = st.sampled_from(
    [EXAMPLE + "mood", "rdfs:label", "rdfs:seeAlso", "rdfs:subClassOf", "prov:wasDerivedFrom", OWL + "sameAs",
     OWL + "differentFrom"]
)  # fmt: skip
misspelt = st.sampled_from(["jido:Hgih", "jido:hasErrorSeverity", "jido:topik", "jido:zzz", "jido:Errror"])
predicates = st.sampled_from(PROPERTIES) | st.just("rdf:type") | foreign | misspelt
terms = st.sampled_from([*INDIVIDUALS, *CLASSES]) | misspelt | subjects.filter(lambda name: name != "this")
objects = (
    terms
    | terms.map(lambda name: {"@id": name})
    | st.sampled_from(["text", 5, 0.5, True, "2026-01-31T08:00:00Z", "https://jido.ai/memory/nobody", "5", "docs/a.md"])
    | st.sampled_from(["dateTime", "integer", "boolean", "anyURI", "decimal", "string", "date", "duration"]).map(
        lambda name: {"@value": "2026-01-31T08:00:00Z", "@type": f"xsd:{name}"}
    )
    | st.just({"@value": "text", "@language": "en"})
)
triples = st.tuples(predicates, objects).map(list) | st.tuples(subjects, predicates, objects).map(list)
kinds = st.sampled_from([*CLASS_OF_TYPE, *TYPE_ALIASES])
moments = st.sampled_from(["2026-01-01", "2027-01-01T00:00:00Z"])
FIELDS = {
    "topic": st.sampled_from(["index", "jido:Hgih"]),
    "about": st.lists(
        st.sampled_from(["a.py", "src/**", EXAMPLE + "x", "jido:Hgih", "jido:High", "urn:x:1"]), max_size=2
    ),
    "evidence": st.lists(st.sampled_from(["seen", EXAMPLE + "x", "jido:Hgih", "jido:Fact", "a.py:3"]), max_size=2),
    "detailed_explanation": st.just("more"),
    "severity": st.sampled_from(SEVERITY),
    "status": st.sampled_from([*TASK_STATUS, *ERROR_STATUS, "accepted", "rejected"]),
    "assigned_to": st.sampled_from(["ana", "jido:Hgih", EXAMPLE + "x", "architect"]),
    "asserted_by": st.sampled_from(["ana", "jido:Hgih", EXAMPLE + "x"]),
    "asserted_in": st.sampled_from(["s-2", "jido:Hgih", EXAMPLE + "x", "https://jido.ai/sessions/s-3"]),
    "iri": st.sampled_from([EXAMPLE + "x", "urn:x:2"]),
    "convention_scope": st.sampled_from(SCOPE),
    "alternatives": st.lists(st.sampled_from(["SQLite", EXAMPLE + "x", "jido:Hgih"]), max_size=2),
    "tracked_by": st.just("https://example.org/issues/5"),
    "expires_on": moments,
    "valid_from": moments,
    "valid_until": moments,
    "timestamp": moments,
    "confidence": st.sampled_from(["low", 0.7, 1]),
    "source_type": st.sampled_from(["user", "ToolSource"]),
}
extra = st.fixed_dictionaries({}, optional={"extra_triples": st.lists(triples, max_size=4)})
fields = st.fixed_dictionaries({"type": kinds}, optional=FIELDS)


def violations(memory):
    """Return the rule, item and message of each violation that a check reports."""
    problems = check_project(memory.follower, memory.schema, "p").problems
    return [
        (problem.rule.rsplit("#")[-1], problem.item, problem.message)
        for problem in problems
        if problem.severity == "violation"
    ]


def intent_of(values):
    """Return an intent with those of *values* that apply to its kind."""
    kind = TYPE_ALIASES.get(values["type"], values["type"])
    applicable = {name: value for name, value in values.items() if kind in ONLY_FOR.get(name, (kind,))}
    return intent(rationale="because", **applicable)


@settings(max_examples=examples(30), derandomize=True, suppress_health_check=list(HealthCheck))
@given(first=fields, more=extra)
@example(first={"type": "error"}, more={"extra_triples": [["jido:checkSeverity", "jido:Hgih"]]})
@example(first={"type": "root_cause"}, more={})
def test_accepted_intents_leave_a_check_without_violations(first, more):
    with (
        tempfile.TemporaryDirectory() as folder,
        jidomem.open(Path(folder) / "root", sources=fixed_sources()) as memory,
    ):
        try:
            memory.writer.submit_intent("p", intent_of(first | more))
        except JidomemError:
            reject()
        assert violations(memory) == []


@pytest.mark.parametrize(
    ("kind", "triple"),
    [
        ("error", ["jido:hasErrorSeverity", "jido:Hgih"]),  # the nearest, checkSeverity, is a property of shapes
        ("error", ["jido:hasSeverty", "high"]),  # the nearest, assertedBy, is too different
        ("error", ["jido:chekCommand", "make"]),  # of conventions alone
        ("fact", ["jido:blockdBy", {"@id": EXAMPLE + "x"}]),  # of tasks alone
    ],
)
def test_an_unknown_property_is_not_respelt_as_one_that_does_not_fit_its_memory(memory, kind, triple):
    error = refusal(memory.writer.submit_intent, "p", intent(type=kind, extra_triples=[triple]))
    assert error.code == "unknown_term"
    assert (error.violations[0].nearest, error.fixed_intent) == (None, None)


@pytest.mark.parametrize(
    ("kind", "triple", "expected"),
    [
        ("convention", ["jido:chekCommand", "make"], "checkCommand"),
        ("task", ["jido:dependson", {"@id": EXAMPLE + "x"}], "dependsOn"),
        ("decision", ["jido:impact_level", "high"], "impactLevel"),
        ("fact", [EXAMPLE + "mood", {"@id": "jido:Hgih"}], "High"),
    ],
)
def test_a_misspelt_term_is_respelt_as_the_nearest_that_fits_its_place(memory, kind, triple, expected):
    error = refusal(memory.writer.submit_intent, "p", intent(type=kind, rationale="because", extra_triples=[triple]))
    assert error.violations[0].nearest == f"https://jido.ai/ontology#{expected}"


def test_an_undeclared_value_of_the_ontology_is_refused_for_any_property(memory):
    for predicate in ("jido:checkSeverity", EXAMPLE + "mood", "rdfs:seeAlso"):
        error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=[[predicate, {"@id": "jido:Zzz"}]]))
        assert error.violations[0].message == "https://jido.ai/ontology#Zzz is not a declared value"


def test_an_unknown_field_named_like_a_property_is_repaired_to_an_extra_triple(memory):
    blocker = memory.writer.submit_intent("p", intent(type="task", summary="first"))
    with pytest.raises(IntentRefused) as refused:
        memory.writer.submit_intent("p", intent(type="task", summary="then", blocked_by=blocker.iri))

    assert "tracked_by" not in refused.value.detail
    assert refused.value.fixed_intent["extra_triples"] == [["jido:blockedBy", {"@id": blocker.iri}]]
    assert memory.writer.submit_intent("p", refused.value.fixed_intent).status == "asserted"


def test_extra_properties_are_declared_in_the_ontology_and_are_no_fields():
    declared = {name.rpartition("#")[2] for name in PROPERTIES}
    assert {*EXTRA_PROPERTIES.values()} <= declared
    assert not EXTRA_PROPERTIES.keys() & (LIST_FIELDS | INTENT_FIELDS.keys())


@pytest.mark.parametrize(
    ("field", "repaired"), [("about", ["https://jido.ai/ontology#High"]), ("evidence", None)]
)  # High is no evidence
def test_an_undeclared_term_in_a_field_is_refused_with_the_name_of_the_field(memory, field, repaired):
    error = refusal(memory.writer.submit_intent, "p", intent(**{field: ["jido:Hgih"]}))
    assert [(violation.code, violation.field) for violation in error.violations] == [("unknown_term", field)]
    assert (error.fixed_intent or {}).get(field) == repaired


def test_a_term_proposal_is_no_violation_in_a_check(tmp_path):
    folder = tmp_path / "root" / "ontology"
    folder.mkdir(parents=True)
    (folder / "own.ttl").write_text(f"<{EXAMPLE}kitchen#Dish> a <{OWL}Class> .")
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        proposals = memory.term_proposals("p")
        proposals.propose(f"{EXAMPLE}kitchen#Sauce", kind="class", definition="a thing", reason="we need it")
        assert violations(memory) == []
