"""Stage 2: required fields, references, closed vocabularies and reserved terms."""

import pytest
from conftest import decision, files, fixed_sources, intent
from writing import GRAPH, MEMORY, codes, open_with, refusal, triples_of, values_of

import jidomem
from jidomem.errors import CODES, IntentRefused
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import integer, iri, literal, plain_value
from jidomem.rdf.vocab import CLASS_OF_TYPE, TYPE, jido
from jidomem.write import validate

REQUIRED = ("summary", "applies_to_project", "asserted_by", "asserted_in", "confidence")


def record(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_required_field_is_refused_by_name(memory, name):  # C038 C039
    error = refusal(memory.writer.submit_intent, "p", intent(**{name: None}))
    assert error.code == "missing_required_fields"
    assert [violation.field for violation in error.violations] == [name]
    assert files(memory.settings.root) == {}


def test_all_missing_fields_are_reported_together(writer):  # C038 C039
    error = refusal(writer.submit_intent, "p", {"type": "fact"})
    assert [violation.field for violation in error.violations] == list(REQUIRED)
    assert set(codes(error)) == {"missing_required_fields"}


@pytest.mark.parametrize("missing", ["asserted_by", "asserted_in", "confidence"])
def test_missing_provenance_is_refused_without_a_repair(writer, missing):  # C045
    error = refusal(writer.submit_intent, "p", intent(**{missing: "  "}))
    assert error.code == "missing_required_fields"
    assert error.fixed_intent is None


@pytest.mark.parametrize("kind", ["decision", "architectural_decision", "implementation_decision"])
@pytest.mark.parametrize("rationale", [None, " \n"])
def test_a_decision_of_any_type_without_a_rationale_is_refused(writer, kind, rationale):  # C040
    error = refusal(writer.submit_intent, "p", intent(type=kind, rationale=rationale))
    assert error.code == "missing_rationale"
    assert error.fixed_intent is None


def test_a_risk_needs_no_rationale(writer):  # C040
    assert writer.submit_intent("p", intent(type="risk")).status == "asserted"


@pytest.mark.parametrize("project", ["q", "https://jido.ai/projects/q", "https://example.org/projects/p"])
def test_an_intent_for_another_project_is_refused(memory, project):  # C046
    error = refusal(memory.writer.submit_intent, "p", intent(applies_to_project=project))
    assert error.code == "project_mismatch"
    assert "https://jido.ai/projects/p" in error.violations[0].allowed
    assert files(memory.settings.root) == {}


def test_a_project_given_by_its_iri_is_accepted(writer):  # C046
    assert writer.submit_intent("p", intent(applies_to_project="https://jido.ai/projects/p")).status == "asserted"


@pytest.mark.parametrize("kind", sorted(CLASS_OF_TYPE))
def test_every_type_is_stored_with_its_subclass_of_memory_item(memory, kind):  # C042
    fields = {"type": kind, "rationale": "because"}
    if kind == "deleted_marker":
        fields["invalidates"] = [record(memory, summary="old")]
    item = iri(record(memory, **fields))
    (cls,) = (o for _, _, o in memory.index.triples(GRAPH, item, TYPE))
    assert memory.schema.is_a(cls, jido("MemoryItem"))
    assert cls == jido(CLASS_OF_TYPE[kind])


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with"])
def test_a_reference_to_an_unknown_memory_is_refused(memory, field):  # C047 C044
    record(memory)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="new", **{field: [MEMORY + "nobody"]}))
    assert error.code == "unknown_reference"
    assert error.violations[0].field == field


@pytest.mark.parametrize("field", ["supersedes", "invalidates"])
def test_a_reference_to_a_memory_of_another_project_is_refused(memory, field):  # C047
    other = memory.writer.submit_intent("q", intent(applies_to_project="q")).iri
    error = refusal(memory.writer.submit_intent, "p", intent(**{field: [other]}))
    assert error.code == "unknown_reference"


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with"])
def test_a_reference_of_a_memory_to_itself_is_refused(writer, field):  # C047
    error = refusal(writer.submit_intent, "p", intent(iri=MEMORY + "me", **{field: [MEMORY + "me"]}))
    assert error.code == "unknown_reference"
    assert "cannot name itself" in error.detail


def test_agents_sessions_and_projects_cannot_be_superseded(memory):  # C047
    record(memory)
    for other in ("https://jido.ai/agents/architect", "https://jido.ai/sessions/s-1", "https://jido.ai/projects/p"):
        error = refusal(memory.writer.submit_intent, "p", intent(summary="new", supersedes=[other]))
        assert error.code == "unknown_reference"


def test_a_cycle_of_supersessions_is_refused(memory):  # C047
    first = record(memory, iri="urn:x:1")
    second = record(memory, iri="urn:x:2", summary="two", supersedes=[first])
    closing = intent(iri=first, summary="one again", supersedes=[second])
    assert refusal(memory.writer.submit_intent, "p", closing).code == "iri_exists"
    cycle_triple = [["this", "jido:supersededBy", {"@id": second}]]
    third = intent(iri="urn:x:3", summary="three", supersedes=[second], extra_triples=cycle_triple)
    assert refusal(memory.writer.submit_intent, "p", third).code == "shape_violation"


def test_a_second_successor_is_refused(memory):  # C048
    old = record(memory)
    new = record(memory, summary="new", supersedes=[old])
    error = refusal(memory.writer.submit_intent, "p", intent(summary="newer", supersedes=[old]))
    assert error.code == "conflict"
    assert [(clash.iri, clash.kind) for clash in error.conflicts] == [(old, "stale_supersession")]
    assert values_of(memory, old, "supersededBy") == [f"<{new}>"]


def test_one_memory_may_supersede_several(memory):  # C048
    old = [record(memory, summary=f"old {n}") for n in range(3)]
    new = record(memory, summary="new", supersedes=old)
    assert all(values_of(memory, item, "supersededBy") == [f"<{new}>"] for item in old)


@pytest.mark.parametrize("link", ["supersedes", "invalidates"])
def test_an_ended_memory_never_becomes_active_again(memory, link):  # C049
    old = record(memory)
    new = record(memory, summary="new", **{link: [old]})
    record(memory, summary="newest", invalidates=[new])  # its successor is invalidated: the old memory stays ended
    assert memory.reader.get_memory("p", old)["status"] != "active"
    assert old not in [row["fact"] for row in memory.reader.list_facts_with_confidence("p")]
    for field in ("supersedes", "invalidates"):
        error = refusal(memory.writer.submit_intent, "p", intent(summary="again", **{field: [old]}))
        assert [conflict.kind for conflict in error.conflicts] == ["stale_supersession"]


def test_a_memory_has_exactly_one_project(memory):  # C050
    item = record(memory)
    assert values_of(memory, item, "appliesToProject") == ["<https://jido.ai/projects/p>"]
    second = [["jido:appliesToProject", {"@id": "https://jido.ai/projects/q"}]]
    error = refusal(memory.writer.submit_intent, "p", intent(summary="two", extra_triples=second))
    assert error.code == "shape_violation"


def test_a_memory_named_as_superseded_and_invalidated_is_refused(memory):  # C047
    old = record(memory)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="n", supersedes=[old], invalidates=[old]))
    assert error.code == "shape_violation"
    assert "say which" in error.detail


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"summary": None}, "missing_required_fields"),
        ({"type": "decision"}, "missing_rationale"),
        ({"type": "musing"}, "unknown_type"),
        ({"confidence": 2}, "invalid_confidence"),
        ({"iri": "no iri"}, "invalid_iri"),
        ({"iri": "https://example.org/taken"}, "iri_exists"),
        ({"supersedes": [MEMORY + "nobody"]}, "unknown_reference"),
        ({"applies_to_project": "q"}, "project_mismatch"),
        ({"summary": " Taken ", "detailed_explanation": "more"}, "conflict"),
        ({"type": "task", "status": "Begun"}, "shape_violation"),
        ({"extra_triples": [["jido:topik", "x"]]}, "unknown_term"),
        ({"colour": "red"}, "unknown_field"),
    ],
)
def test_every_refusal_has_a_code_a_status_and_a_hint(memory, fields, code):  # C051
    record(memory, iri="https://example.org/taken", summary="taken")
    before = files(memory.settings.root)
    error = refusal(memory.writer.submit_intent, "p", intent(**fields))
    assert error.code == code
    assert (error.http_status, error.exit_code) == CODES[code]
    assert error.to_dict()["code"] == code
    assert error.hint
    assert files(memory.settings.root) == before


@pytest.mark.parametrize("field", ["asserted_by", "asserted_in", "assigned_to"])
def test_a_strict_project_refuses_undeclared_agents_and_sessions(tmp_path, field):  # C044
    with open_with(tmp_path, "strict = true\n") as memory:
        error = refusal(memory.writer.submit_intent, "p", intent(type="task", **{field: "stranger"}))
        assert error.code == "unknown_reference"
        assert field in {violation.field for violation in error.violations}
        assert error.fixed_intent is None
    assert [name for name in files(tmp_path / "root") if name != "config.toml"] == []


def test_a_strict_project_accepts_declared_agents_and_sessions(tmp_path):  # C044
    with open_with(tmp_path) as memory:
        record(memory)
    with open_with(tmp_path, "strict = true\n") as memory:
        fields = intent(iri=MEMORY + "second", summary="declared by the first")
        assert memory.writer.submit_intent("p", fields).status == "asserted"


@pytest.mark.parametrize("field", ["evidence", "about"])
def test_a_reference_in_evidence_or_about_to_an_unknown_memory_is_refused(memory, field):  # C044
    error = refusal(memory.writer.submit_intent, "p", intent(**{field: [MEMORY + "nobody"]}))
    assert error.code == "unknown_reference"
    item = record(memory)
    assert record(memory, summary="rests on it", **{field: [item]})


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"type": "task", "status": "Reported"}, "status"),
        ({"type": "error", "severity": "dire"}, "severity"),
        ({"type": "convention", "enforcement_level": "Maybe"}, "enforcement_level"),
        ({"type": "convention", "convention_scope": "Village"}, "convention_scope"),
        ({"type": "decision", "rationale": "r", "status": "Planned"}, "status"),
        ({"type": "decision", "rationale": "r", "extra_triples": [["jido:impactLevel", "huge"]]}, "extra_triples"),
        ({"type": "fact", "status": "Planned"}, "status"),
        ({"type": "task", "severity": "high"}, "severity"),
        ({"source_type": "Oracle"}, "source_type"),
        ({"type": "error", "extra_triples": [["jido:hasErrorStatus", {"@id": "jido:Planned"}]]}, None),
        ({"type": "task", "extra_triples": [["jido:hasTaskStatus", {"@id": "jido:Planned"}],
                                            ["jido:hasTaskStatus", {"@id": "jido:Blocked"}]]}, "status"),
    ],
)  # fmt: skip
def test_a_value_outside_a_closed_vocabulary_is_refused(memory, fields, rule):  # C041
    error = refusal(memory.writer.submit_intent, "p", intent(**fields))
    assert error.code == "shape_violation"
    if rule:
        assert rule in {violation.field for violation in error.violations}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"type": "task"}, "`assigned_to`"),
        ({"type": "assumption"}, "`expires_on`"),
        ({"type": "root_cause"}, "jido:hasRootCause"),
        ({"type": "lesson"}, "`evidence`"),
    ],
)
def test_a_missing_recommended_field_causes_a_warning(writer, fields, expected):  # C041
    receipt = writer.submit_intent("p", intent(**fields))
    assert any(expected in warning for warning in receipt.warnings)


def test_a_hypothesis_becomes_a_fact_only_with_evidence(memory):  # C041
    guess = record(memory, type="hypothesis")
    promoted = intent(summary="it is so", supersedes=[guess])
    error = refusal(memory.writer.submit_intent, "p", promoted)
    assert error.code == "shape_violation"
    assert error.violations[0].shape == "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
    assert memory.writer.submit_intent("p", {**promoted, "evidence": ["measured it"]}).status == "asserted"


def test_a_new_agent_is_described_by_its_configuration(tmp_path):  # C041
    config = '[agents.ana]\nrole = "Reviewer"\ncapabilities = ["CanReviewCode", "CanQueryMemory"]\n'
    with open_with(tmp_path, config) as memory:
        record(memory, asserted_by="ana")
        record(memory, asserted_by="bob", summary="two")
        agents = "https://jido.ai/agents/"
        assert values_of(memory, agents + "ana", "hasRole") == [jido("Reviewer")]
        assert values_of(memory, agents + "ana", "hasCapability") == [jido("CanQueryMemory"), jido("CanReviewCode")]
        assert values_of(memory, agents + "bob", "hasRole") == [jido("Implementer")]


def test_a_new_session_is_described_once(memory):  # C045
    record(memory)
    before = {triple for triple in triples_of(memory) if triple[0] == "<https://jido.ai/sessions/s-1>"}
    record(memory, summary="two")
    assert before == {triple for triple in triples_of(memory) if triple[0] == "<https://jido.ai/sessions/s-1>"}
    assert values_of(memory, "https://jido.ai/sessions/s-1", "hasStatus") == [jido("Active")]


def test_a_decision_with_listed_status_and_impact_is_accepted(memory):  # C041
    impact = [["jido:impactLevel", "critical"]]
    assert memory.writer.submit_intent("p", decision(status="Accepted", extra_triples=impact)).status == "asserted"


def test_a_strict_project_accepts_configured_agents_and_hints_how_to_declare_others(tmp_path):  # C044
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "config.toml").write_text('strict = true\n[agents.architect]\nrole = "Architect"\n')
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        memory.writer.start_session("p", "s-1", agent="architect")

        assert memory.writer.submit_intent("p", intent()).status == "asserted"
        with pytest.raises(IntentRefused) as refused:
            memory.writer.submit_intent("p", intent(summary="two", asserted_by="eve"))
        assert refused.value.hint == "declare it in config.toml: [agents.eve]"
        with pytest.raises(IntentRefused) as refused:
            memory.writer.start_session("p", "s-3", agent="eve")
        assert refused.value.hint == "declare it in config.toml: [agents.eve]"
        with pytest.raises(IntentRefused) as refused:
            memory.writer.submit_intent("p", intent(summary="two", asserted_in="s-2"))
        assert refused.value.hint == "open it with: jidomem agent session start s-2"


@pytest.mark.parametrize(
    "node",
    [f"https://jido.ai/{kind}" for kind in ("memory/1", "submissions/1", "policies/1")]
    + ["urn:jido:commit:" + "0" * 64],
)
@pytest.mark.parametrize("stream", ["codebase", "system"])
def test_resources_of_the_writer_cannot_be_described_by_appended_triples(memory, node, stream):
    error = refusal(memory.writer.append, "p", stream, [(iri(node), jido("hasModule"), iri("urn:x:m"))])
    assert f"{node} jido:hasModule: only the writer states this" in error.detail
    assert codes(error) == ["shape_violation"]
    assert files(memory.settings.root) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("invalidates", "<urn:x:2>"),
        ("supersedes", "<urn:x:2>"),
        ("recordedAt", "<urn:x:2>"),
        ("hasConfidence", "<urn:x:2>"),
    ],
)
def test_properties_of_memories_are_refused_for_appended_resources(memory, name, value):
    error = refusal(memory.writer.append, "p", "codebase", [(iri("urn:x:1"), jido(name), value)])
    assert f"urn:x:1 jido:{name}: only the writer states this" in error.detail


@pytest.mark.parametrize("name", ["Commit", "Submission", "SessionEvent", "PolicyChange"])
def test_instances_of_the_writers_classes_are_refused_in_an_intent(memory, name):
    class_iri = jido(name)[1:-1]
    error = refusal(
        memory.writer.submit_intent, "p", intent(extra_triples=[["urn:x:1", "rdf:type", {"@id": class_iri}]])
    )
    assert f"only the writer creates {class_iri}" in [violation.message for violation in error.violations]


def test_a_project_is_described_by_its_first_memory(memory):
    record(memory)
    project = iri("https://jido.ai/projects/p")
    assert {(project, TYPE, jido("Project")), (project, jido("projectName"), '"p"')} <= triples_of(memory)


def test_an_unknown_memory_iri_is_respelt_only_when_nearly_equal_to_a_known_one(memory):
    stored = record(memory)
    tail = stored.removeprefix(MEMORY)
    nearest = {
        MEMORY + tail[:13]: stored,
        MEMORY + tail[:-1] + "z": stored,
        MEMORY + "z" + tail[1:]: stored,
        MEMORY + "01900000-0000-7000-8000-ffffffffffff": None,
        MEMORY + tail[-5:]: None,
    }
    for reference, expected in nearest.items():
        error = refusal(memory.writer.submit_intent, "p", intent(summary="two", supersedes=[reference]))
        (violation,) = error.violations
        suggestion = f"; did you mean {expected}?" if expected else ""
        assert violation.message == f"{reference} is not a memory of this project{suggestion}"


#: Property of a memory -> the field that sets it.
FIELD_PROPERTIES = {
    "summary": "summary", "appliesToProject": "applies_to_project", "assertedBy": "asserted_by",
    "assertedIn": "asserted_in", "hasConfidence": "confidence", "confidenceValue": "confidence",
    "hasTimestamp": "timestamp", "supersedes": "supersedes", "supersededBy": "supersedes",
    "invalidates": "invalidates", "invalidatedBy": "invalidates", "coexistsWith": "coexists_with",
    "revives": "revives", "idempotencyKey": "idempotency_key",
}  # fmt: skip
WRITER_PROPERTIES = (
    "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
    "aboutBlob", "confirmedBy", "quarantined", "proposedBecause",
)  # fmt: skip


def messages(memory, *triples, **fields):
    error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=[*map(list, triples)], **fields))
    assert {(violation.code, violation.field) for violation in error.violations} == {
        ("shape_violation", "extra_triples")
    }
    return [(violation.value, violation.message) for violation in error.violations]


def test_an_extra_triple_of_a_field_property_is_refused_with_the_field(memory):
    assert messages(memory, *((f"jido:{name}", {"@id": "urn:x:1"}) for name in FIELD_PROPERTIES)) == [
        (jido(name)[1:-1], f"jido:{name} has a field of its own: use {field}")
        for name, field in FIELD_PROPERTIES.items()
    ]


def test_an_extra_triple_of_a_writer_property_is_refused(memory):
    assert messages(memory, *((f"jido:{name}", {"@id": "urn:x:1"}) for name in WRITER_PROPERTIES)) == [
        (jido(name)[1:-1], f"jido:{name} is set by the writer only: leave it out") for name in WRITER_PROPERTIES
    ]


def test_properties_of_memories_are_refused_for_other_subjects_of_extra_triples(memory):
    names = [*FIELD_PROPERTIES, *WRITER_PROPERTIES]
    assert messages(memory, *(("urn:x:2", f"jido:{name}", {"@id": "urn:x:1"}) for name in names)) == [
        ("urn:x:2", f"jido:{name} is a property of memories only") for name in names
    ]


def test_extra_triples_about_another_memory_or_of_a_jidomem_iri_are_refused(memory):
    stored = record(memory)
    for subject in (stored, "https://jido.ai/agents/architect"):
        assert messages(memory, (subject, "urn:x:p", "x"), summary="two") == [
            (subject, f"{subject} is not this memory: an extra triple cannot describe another one")
        ]
    assert messages(memory, ("https://jido.ai/agents/x", "x"), summary="three") == [
        ("https://jido.ai/agents/x", "https://jido.ai/agents/x is not a property: it is in a namespace of jidomem")
    ]


def test_a_second_class_of_a_memory_is_refused_unless_foreign(memory):
    task = jido("Task")[1:-1]
    assert messages(memory, ("rdf:type", {"@id": task})) == [
        (task, "a memory has the class of its type: set type instead")
    ]
    foreign_type, own_type = [["rdf:type", {"@id": name}] for name in ("urn:x:Rule", jido("Fact")[1:-1])]
    assert memory.writer.submit_intent("p", intent(extra_triples=[foreign_type, own_type])).status == "asserted"


@pytest.mark.parametrize(
    ("field", "name", "value", "other"),
    [
        ("topic", "topic", "a", "b"),
        ("convention_name", "conventionName", "a", "b"),
        ("convention_scope", "hasConventionScope", "GlobalScope", {"@id": "jido:AgentScope"}),
        ("source_type", "hasSourceType", "UserSource", {"@id": "jido:AgentSource"}),
        ("rationale", "rationale", "a", "b"),
        ("detailed_explanation", "detailedExplanation", "a", "b"),
        ("expires_on", "expiresOn", "2027-01-01T00:00:00.000000Z", "2028-01-01"),
        ("valid_from", "validFrom", "2027-01-01T00:00:00.000000Z", "2028-01-01"),
        ("valid_until", "validUntil", "2027-01-01T00:00:00.000000Z", "2028-01-01"),
    ],
)
def test_a_field_repeated_by_an_extra_triple_is_refused(memory, field, name, value, other):
    assert messages(memory, (f"jido:{name}", other), type="convention", **{field: value}) == [
        (jido(name)[1:-1], f"jido:{name} is given twice: {field} is {value!r} already")
    ]


def test_a_field_not_applicable_to_the_type_is_refused_with_the_applicable_types(writer):
    errors, rules = ("bug", "error", "failure", "incident"), ("agent_rule", "architectural_convention")
    rules += ("coding_standard", "convention", "process_convention")
    decisions = ("architectural_decision", "decision", "implementation_decision")
    applicable = {
        "status": tuple(sorted(("task", *errors, *decisions))), "severity": errors, "assigned_to": ("task",),
        "convention_name": rules, "convention_scope": rules, "enforcement_level": rules, "alternatives": decisions,
    }  # fmt: skip
    fields = dict.fromkeys(applicable, "x") | {"alternatives": ["x"], "severity": "low", "enforcement_level": "Strict"}

    error = refusal(writer.submit_intent, "p", intent(**fields | {"convention_scope": "GlobalScope"}))

    assert {violation.field: violation.allowed for violation in error.violations} == applicable
    assert [
        (violation.value, violation.message) for violation in error.violations if violation.field == "severity"
    ] == [("low", "severity does not apply to a fact: leave it out, or say it in the summary")]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("rationale", "rationale"), ("detailedExplanation", "detailed_explanation"), ("derivedFrom", "evidence"),
        ("hasTaskStatus", "status"), ("hasErrorStatus", "status"), ("decisionStatus", "status"),
        ("severityLevel", "severity"), ("assignedTo", "assigned_to"), ("conventionName", "convention_name"),
        ("hasConventionScope", "convention_scope"), ("hasEnforcementLevel", "enforcement_level"),
        ("expiresOn", "expires_on"), ("validFrom", "valid_from"), ("validUntil", "valid_until"),
        ("hasSourceType", "source_type"), ("trackedBy", "tracked_by"), ("topic", "topic"), ("about", "about"),
        *FIELD_PROPERTIES.items(), ("impactLevel", "extra_triples"),
    ],
)  # fmt: skip
def test_the_field_of_a_property_is_reported_for_shapes(name, field):
    assert validate.field_of(jido(name)) == field
    assert validate.field_of(None) is None


def test_a_shape_violation_is_reported_with_the_value_and_the_shape(memory):
    error = refusal(memory.writer.submit_intent, "p", decision(extra_triples=[["jido:impactLevel", "huge"]]))
    (violation,) = error.violations
    assert (violation.value, violation.shape) == ("huge", "https://jido.ai/shapes#ImpactLevelIsKnown")
    assert "The impact of a decision is low, medium, high or critical" in violation.message
    assert violation.hint == "give jido:impactLevel in `extra_triples` as one of these"
    foreign_status = [["urn:x:1", "jido:hasTaskStatus", {"@id": "jido:Blocked"}]]
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(extra_triples=foreign_status)).violations
    assert (violation.value, violation.field) == (None, "extra_triples")


def test_appended_texts_are_limited_in_size_and_iris_are_not(memory):
    error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", "<urn:x:p>", literal("x" * 270_000))])
    assert (error.code, "urn:x:1 urn:x:p has 270,000 bytes" in error.detail) == ("payload_too_large", True)
    assert memory.writer.append("p", "codebase", [("<urn:x:1>", "<urn:x:p>", f"<urn:x:{'x' * 270_000}>")]).commit


@pytest.mark.parametrize("name", ["summary", "supersedes", "recordedAt", "position"])
def test_foreign_properties_named_like_terms_of_jidomem_are_accepted(memory, name):
    row = ("<urn:x:1>", f"<https://example.org/{name}>", '"text"')
    assert memory.writer.append("p", "codebase", [row]).status == "asserted"


WRITER_CLASSES = {
    "Commit": ["position", "parent", "clears", "redacts", "journalFormat"],
    "Submission": ["answeredWith"],
    "SessionEvent": ["eventNumber", "ofSession"],
    "PolicyChange": ["grantsRole"],
}


@pytest.mark.parametrize("name", WRITER_CLASSES)
def test_resources_of_the_writer_and_the_journal_cannot_be_created_by_triples(memory, name):
    properties = [(TYPE, jido(name)), *((jido(each), "<urn:x:2>") for each in WRITER_CLASSES[name])]
    for predicate, value in properties:
        error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", predicate, value)])
        assert "only the writer states this" in error.detail
        extra = [plain_value("<urn:x:1>"), plain_value(predicate), {"@id": plain_value(value)}]
        error = refusal(memory.writer.remember, "p", "a fact", extra_triples=[extra])
        assert "only the writer creates" in error.detail
    assert files(memory.settings.root) == {}


def test_session_events_are_accepted_in_declarations(memory):
    event = "<https://jido.ai/sessions/s-1/events/1>"
    rows = [(event, TYPE, jido("SessionEvent")), (event, jido("eventNumber"), integer(1))]
    rows += [(event, jido("toStatus"), jido("Paused")), (event, jido("causedBy"), "<https://jido.ai/agents/a>"),
             (event, jido("ofSession"), "<https://jido.ai/sessions/s-1>")]  # fmt: skip

    assert memory.writer.declare("p", rows) == []
    assert (event, jido("toStatus"), jido("Paused")) in set(memory.index.triples(Stream("p").graph, event))


def test_properties_of_memories_are_refused_in_appended_triples(memory):
    for name in [*list(FIELD_PROPERTIES)[1:], *WRITER_PROPERTIES]:
        error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", jido(name), "<urn:x:2>")])
        assert f"urn:x:1 jido:{name}: only the writer states this" in error.detail


@pytest.mark.parametrize("name", ["MemoryItem", "Fact", "PolicyChange"])
def test_memories_and_policy_changes_are_refused_in_appended_triples(memory, name):
    error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", TYPE, jido(name))])
    assert error.detail == f"urn:x:1 a jido:{name}: only the writer states this"
    assert memory.writer.append("p", "codebase", [("<urn:x:1>", TYPE, jido("Module"))]).status == "asserted"


def test_a_used_or_reserved_iri_is_refused_with_an_alternative(memory):
    stored = record(memory)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="two", iri=stored))
    message = "is in this memory already: a memory is never rewritten; leave iri out and name it in supersedes"
    assert [(violation.message, violation.field, violation.value) for violation in error.violations] == [
        (f"{stored} {message}", "iri", stored)
    ]
    for reserved in (MEMORY, MEMORY + "a/b", "https://jido.ai/agents/x"):
        (violation,) = refusal(memory.writer.submit_intent, "p", intent(summary="two", iri=reserved)).violations
        assert (violation.code, violation.field, violation.value) == ("invalid_iri", "iri", reserved)
        assert f"leave iri out, or use {MEMORY}<id> or your own namespace" in violation.message


def test_an_iri_that_memories_only_link_to_is_free_for_a_memory(memory):
    first, second, third = (f"https://example.org/{name}" for name in ("first", "second", "third"))
    record(memory, iri=first, about=[second])
    assert record(memory, iri=second, summary="named by the first") == second
    linking = intent(summary="names the next", extra_triples=[["https://example.org/ns#partOf", {"@id": third}]])
    receipts = memory.writer.submit_many("p", [linking, intent(summary="named before", iri=third)], atomic=True)
    assert [receipt.status for receipt in receipts] == ["asserted", "asserted"]
    assert values_of(memory, third, "summary") == [literal("named before")]


def test_an_iri_of_another_thing_is_refused_with_its_kind_and_no_other_fault(memory):
    source, own_type = "https://example.org/source", ["rdf:type", {"@id": "https://jido.ai/ontology#Fact"}]
    record(memory, evidence=[source])
    error = refusal(memory.writer.submit_intent, "p", intent(iri=source, summary="two", extra_triples=[own_type]))
    assert [violation.message for violation in error.violations] == [f"{source} is in use already, as jido:Evidence"]
    assert error.hint == "leave out `iri`, or give another one"


def test_a_session_that_is_also_an_agent_is_refused(memory):
    for fields in ({"asserted_by": "urn:x:a"}, {"type": "task", "assigned_to": "urn:x:a"}):
        (violation,) = refusal(memory.writer.submit_intent, "p", intent(asserted_in="urn:x:a", **fields)).violations
        assert (violation.field, violation.value) == ("asserted_in", "urn:x:a")
        assert violation.message == "urn:x:a cannot be a session and an agent"


def test_invalid_references_are_reported_by_field_and_memory(memory):
    stored = record(memory)
    proposal = intent(summary="two", iri=MEMORY + "me", supersedes=[stored, MEMORY + "me"], invalidates=[stored])
    error = refusal(memory.writer.submit_intent, "p", proposal | {"revives": [stored]})
    assert [
        (violation.code, violation.field, violation.value, violation.message) for violation in error.violations
    ] == [
        ("unknown_reference", "supersedes", MEMORY + "me", "a memory cannot name itself in supersedes"),
        ("shape_violation", "revives", stored, f"{stored} has not ended: there is nothing to revive"),
        ("shape_violation", "invalidates", stored, f"{stored} is named in supersedes and in invalidates: say which"),
    ]


def test_an_extra_triple_that_refers_to_an_unknown_memory_is_refused(memory):
    stored = record(memory)
    proposal = intent(summary="two", extra_triples=[["urn:x:p", {"@id": MEMORY + "nobody"}]])
    (violation,) = refusal(memory.writer.submit_intent, "p", proposal).violations
    assert (violation.code, violation.field) == ("unknown_reference", "extra_triples")
    assert violation.message == f"{MEMORY}nobody is not a memory of this project"
    references = [["urn:x:1", "urn:x:p", {"@id": MEMORY + "me"}], ["urn:x:p", {"@id": stored}]]
    proposal = intent(summary="two", iri=MEMORY + "me", extra_triples=references)
    assert memory.writer.submit_intent("p", proposal).status == "asserted"


def test_an_ambiguous_memory_reference_is_refused_with_the_matching_memories(memory):
    stored = [record(memory, summary=str(n), iri=f"{MEMORY}abcdef-{n}") for n in range(6)]
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(supersedes=["abcdef"])).violations
    assert (violation.allowed, violation.nearest) == (tuple(stored), None)
    assert violation.message == "'abcdef' names several memories"
    assert violation.hint == f"give one of: {', '.join(stored)}"
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(supersedes=[MEMORY + "ABCDEF-3"])).violations
    assert violation.nearest == stored[3]


def test_a_project_mismatch_is_reported_with_both_projects(memory):
    refused = refusal(memory.writer.submit_intent, "p", intent(applies_to_project="q"))
    (violation,), q = refused.violations, "https://jido.ai/projects/q"
    assert refused.hint.endswith(", or submit it to the project q")
    assert (violation.field, violation.value) == ("applies_to_project", q)
    assert violation.allowed == ("https://jido.ai/projects/p", "p")
    assert violation.message == f"the intent applies to {q}, but was submitted to project 'p'"


def test_a_language_tagged_topic_is_refused_for_its_range_and_not_as_a_repetition(memory):
    proposal = intent(extra_triples=[["jido:topic", {"@value": "Hafen", "@language": "de"}]])
    (violation,) = refusal(memory.writer.submit_intent, "p", proposal).violations
    assert (violation.field, violation.value) == ("topic", "Hafen")
    assert violation.message == "https://jido.ai/ontology#topic takes string, not 'Hafen'"


@pytest.mark.parametrize("reference", ["abcdef", MEMORY + "nobody"])
def test_an_unknown_reference_is_not_reported_as_active(memory, reference):
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(revives=[reference])).violations
    assert (violation.code, violation.field, violation.value) == ("unknown_reference", "revives", reference)


def test_a_reserved_iri_is_repaired_by_its_removal(memory):
    error = refusal(memory.writer.submit_intent, "p", intent(iri="https://jido.ai/agents/x"))
    assert error.fixed_intent == intent()


def test_a_strict_project_reports_each_undeclared_agent_and_session(tmp_path):  # C044
    with open_with(tmp_path, "strict = true\n") as memory:
        proposal = intent(type="task", assigned_to="bob")
        violations = refusal(memory.writer.submit_intent, "p", proposal).violations
    base = "https://jido.ai/"
    undeclared = {"asserted_by": base + "agents/architect", "assigned_to": base + "agents/bob"}
    undeclared |= {"asserted_in": base + "sessions/s-1"}
    hints = {field: f"declare it in config.toml: [agents.{iri.rsplit('/', 1)[1]}]" for field, iri in undeclared.items()}
    hints["asserted_in"] = "open it with: jidomem agent session start s-1"
    assert [
        (violation.code, violation.field, violation.value, violation.message, violation.hint)
        for violation in violations
    ] == [
        ("unknown_reference", field, value, f"{value} is not declared, and this project is strict", hints[field])
        for field, value in undeclared.items()
    ]


def test_a_proposed_promotion_of_a_hypothesis_needs_evidence(memory):  # C041
    guess = record(memory, type="hypothesis")
    error = refusal(memory.writer.submit_intent, "p", intent(summary="so", supersedes=[guess]), propose=True)
    assert error.violations[0].shape == "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
    assert error.violations[0].field == "evidence"
