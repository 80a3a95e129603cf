"""Stage 2: required fields, and the existence of the named things."""

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


def kept(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_required_field_is_refused_by_name(memory, name):  # C038 C039
    error = refusal(memory.writer.submit_intent, "p", intent(**{name: None}))
    assert error.code == "missing_required_fields"
    assert [violation.field for violation in error.violations] == [name]
    assert files(memory.settings.root) == {}


def test_all_missing_fields_are_listed_at_once(writer):  # C038 C039
    error = refusal(writer.submit_intent, "p", {"type": "fact"})
    assert [violation.field for violation in error.violations] == list(REQUIRED)
    assert set(codes(error)) == {"missing_required_fields"}


@pytest.mark.parametrize("missing", ["asserted_by", "asserted_in", "confidence"])
def test_provenance_is_not_invented(writer, missing):  # C045
    error = refusal(writer.submit_intent, "p", intent(**{missing: "  "}))
    assert error.code == "missing_required_fields"
    assert error.fixed_intent is None


@pytest.mark.parametrize("kind", ["decision", "architectural_decision", "implementation_decision"])
@pytest.mark.parametrize("rationale", [None, " \n"])
def test_a_decision_of_any_kind_says_why(writer, kind, rationale):  # C040
    error = refusal(writer.submit_intent, "p", intent(type=kind, rationale=rationale))
    assert error.code == "missing_rationale"
    assert error.fixed_intent is None


def test_nothing_but_a_decision_needs_a_rationale(writer):  # C040
    assert writer.submit_intent("p", intent(type="risk")).status == "asserted"


@pytest.mark.parametrize("project", ["q", "https://jido.ai/projects/q", "https://example.org/projects/p"])
def test_an_intent_for_another_project_is_refused(memory, project):  # C046
    error = refusal(memory.writer.submit_intent, "p", intent(applies_to_project=project))
    assert error.code == "project_mismatch"
    assert "https://jido.ai/projects/p" in error.violations[0].allowed
    assert files(memory.settings.root) == {}


def test_the_project_may_be_named_by_its_iri(writer):  # C046
    assert writer.submit_intent("p", intent(applies_to_project="https://jido.ai/projects/p")).status == "asserted"


@pytest.mark.parametrize("kind", sorted(CLASS_OF_TYPE))
def test_every_type_writes_a_class_below_memory_item(memory, kind):  # C042
    fields = {"type": kind, "rationale": "because"}
    if kind == "deleted_marker":
        fields["invalidates"] = [kept(memory, summary="old")]
    item = iri(kept(memory, **fields))
    (cls,) = (o for _, _, o in memory.index.triples(GRAPH, item, TYPE))
    assert memory.schema.is_a(cls, jido("MemoryItem"))
    assert cls == jido(CLASS_OF_TYPE[kind])


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with"])
def test_a_target_that_is_not_there_is_refused(memory, field):  # C047 C044
    kept(memory)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="new", **{field: [MEMORY + "nobody"]}))
    assert error.code == "unknown_reference"
    assert error.violations[0].field == field


@pytest.mark.parametrize("field", ["supersedes", "invalidates"])
def test_a_memory_of_another_project_is_no_target(memory, field):  # C047
    other = memory.writer.submit_intent("q", intent(applies_to_project="q")).iri
    error = refusal(memory.writer.submit_intent, "p", intent(**{field: [other]}))
    assert error.code == "unknown_reference"


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with"])
def test_a_memory_cannot_name_itself(writer, field):  # C047
    error = refusal(writer.submit_intent, "p", intent(iri=MEMORY + "me", **{field: [MEMORY + "me"]}))
    assert error.code == "unknown_reference"
    assert "cannot name itself" in error.detail


def test_agents_sessions_and_projects_are_no_targets_of_a_supersession(memory):  # C047
    kept(memory)
    for other in ("https://jido.ai/agents/architect", "https://jido.ai/sessions/s-1", "https://jido.ai/projects/p"):
        error = refusal(memory.writer.submit_intent, "p", intent(summary="new", supersedes=[other]))
        assert error.code == "unknown_reference"


def test_a_cycle_of_supersessions_cannot_be_made(memory):  # C047
    first = kept(memory, iri="urn:x:1")
    second = kept(memory, iri="urn:x:2", summary="two", supersedes=[first])
    closing = intent(iri=first, summary="one again", supersedes=[second])
    assert refusal(memory.writer.submit_intent, "p", closing).code == "iri_exists"
    sneaking = [["this", "jido:supersededBy", {"@id": second}]]
    third = intent(iri="urn:x:3", summary="three", supersedes=[second], extra_triples=sneaking)
    assert refusal(memory.writer.submit_intent, "p", third).code == "shape_violation"


def test_a_second_successor_is_refused(memory):  # C048
    old = kept(memory)
    new = kept(memory, summary="new", supersedes=[old])
    error = refusal(memory.writer.submit_intent, "p", intent(summary="newer", supersedes=[old]))
    assert error.code == "conflict"
    assert [(c.iri, c.kind) for c in error.conflicts] == [(old, "stale_supersession")]
    assert values_of(memory, old, "supersededBy") == [f"<{new}>"]


def test_one_memory_may_supersede_several(memory):  # C048
    old = [kept(memory, summary=f"old {n}") for n in range(3)]
    new = kept(memory, summary="new", supersedes=old)
    assert all(values_of(memory, one, "supersededBy") == [f"<{new}>"] for one in old)


@pytest.mark.parametrize("end", ["supersedes", "invalidates"])
def test_what_has_ended_never_becomes_active_again(memory, end):  # C049
    old = kept(memory)
    new = kept(memory, summary="new", **{end: [old]})
    kept(memory, summary="newest", invalidates=[new])  # the end itself is withdrawn: the old one stays ended
    assert memory.reader.get_memory("p", old)["status"] != "active"
    assert old not in [row["fact"] for row in memory.reader.list_facts_with_confidence("p")]
    for field in ("supersedes", "invalidates"):
        error = refusal(memory.writer.submit_intent, "p", intent(summary="again", **{field: [old]}))
        assert [conflict.kind for conflict in error.conflicts] == ["stale_supersession"]


def test_an_item_has_exactly_one_project(memory):  # C050
    item = kept(memory)
    assert values_of(memory, item, "appliesToProject") == ["<https://jido.ai/projects/p>"]
    second = [["jido:appliesToProject", {"@id": "https://jido.ai/projects/q"}]]
    error = refusal(memory.writer.submit_intent, "p", intent(summary="two", extra_triples=second))
    assert error.code == "shape_violation"


def test_naming_one_memory_as_superseded_and_invalidated_is_refused(memory):  # C047
    old = kept(memory)
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
def test_every_refusal_has_a_machine_code(memory, fields, code):  # C051
    kept(memory, iri="https://example.org/taken", summary="taken")
    before = files(memory.settings.root)
    error = refusal(memory.writer.submit_intent, "p", intent(**fields))
    assert error.code == code
    assert (error.http_status, error.exit_code) == CODES[code]
    assert error.to_dict()["code"] == code
    assert error.hint
    assert files(memory.settings.root) == before


@pytest.mark.parametrize("field", ["asserted_by", "asserted_in", "assigned_to"])
def test_strict_refuses_agents_and_sessions_nobody_declared(tmp_path, field):  # C044
    with open_with(tmp_path, "strict = true\n") as memory:
        error = refusal(memory.writer.submit_intent, "p", intent(type="task", **{field: "stranger"}))
        assert error.code == "unknown_reference"
        assert field in {violation.field for violation in error.violations}
        assert error.fixed_intent is None
    assert [name for name in files(tmp_path / "root") if name != "config.toml"] == []


def test_strict_accepts_what_was_declared_before(tmp_path):  # C044
    with open_with(tmp_path) as memory:
        kept(memory)
    with open_with(tmp_path, "strict = true\n") as memory:
        fields = intent(iri=MEMORY + "second", summary="declared by the first")
        assert memory.writer.submit_intent("p", fields).status == "asserted"


@pytest.mark.parametrize("field", ["evidence", "about"])
def test_evidence_in_the_memory_namespace_exists(memory, field):  # C044
    error = refusal(memory.writer.submit_intent, "p", intent(**{field: [MEMORY + "nobody"]}))
    assert error.code == "unknown_reference"
    item = kept(memory)
    assert kept(memory, summary="rests on it", **{field: [item]})


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
def test_closed_vocabularies_are_closed(memory, fields, rule):  # C041
    error = refusal(memory.writer.submit_intent, "p", intent(**fields))
    assert error.code == "shape_violation"
    if rule:
        assert rule in {violation.field for violation in error.violations}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"type": "task"}, "`assigned_to`"),
        ({"type": "assumption"}, "`expires_on`"),
        ({"type": "root_cause"}, "jido:hasRootCause"),
        ({"type": "lesson"}, "`evidence`"),
    ],
)
def test_what_should_be_there_is_a_warning_at_write(writer, fields, word):  # C041
    receipt = writer.submit_intent("p", intent(**fields))
    assert any(word in warning for warning in receipt.warnings)


def test_a_hypothesis_becomes_a_fact_only_with_evidence(memory):  # C041
    guess = kept(memory, type="hypothesis")
    promoted = intent(summary="it is so", supersedes=[guess])
    error = refusal(memory.writer.submit_intent, "p", promoted)
    assert error.code == "shape_violation"
    assert error.violations[0].shape == "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
    assert memory.writer.submit_intent("p", {**promoted, "evidence": ["measured it"]}).status == "asserted"


def test_an_agent_named_for_the_first_time_is_declared_by_its_policy_entry(tmp_path):  # C041
    config = '[agents.ana]\nrole = "Reviewer"\ncapabilities = ["CanReviewCode", "CanQueryMemory"]\n'
    with open_with(tmp_path, config) as memory:
        kept(memory, asserted_by="ana")
        kept(memory, asserted_by="bob", summary="two")
        agents = "https://jido.ai/agents/"
        assert values_of(memory, agents + "ana", "hasRole") == [jido("Reviewer")]
        assert values_of(memory, agents + "ana", "hasCapability") == [jido("CanQueryMemory"), jido("CanReviewCode")]
        assert values_of(memory, agents + "bob", "hasRole") == [jido("Implementer")]


def test_a_session_named_for_the_first_time_is_declared_once(memory):  # C045
    kept(memory)
    before = {triple for triple in triples_of(memory) if triple[0] == "<https://jido.ai/sessions/s-1>"}
    kept(memory, summary="two")
    assert before == {triple for triple in triples_of(memory) if triple[0] == "<https://jido.ai/sessions/s-1>"}
    assert values_of(memory, "https://jido.ai/sessions/s-1", "hasStatus") == [jido("Active")]


def test_a_decision_of_a_closed_list_is_accepted(memory):  # C041
    impact = [["jido:impactLevel", "critical"]]
    assert memory.writer.submit_intent("p", decision(status="Accepted", extra_triples=impact)).status == "asserted"


def test_a_strict_project_knows_the_agents_its_configuration_names_and_says_how_to_declare_others(tmp_path):  # C044
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
def test_what_the_writer_makes_is_described_by_nobody_else(memory, node, stream):
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
def test_what_is_said_of_memories_is_said_of_nothing_else(memory, name, value):
    error = refusal(memory.writer.append, "p", "codebase", [(iri("urn:x:1"), jido(name), value)])
    assert f"urn:x:1 jido:{name}: only the writer states this" in error.detail


@pytest.mark.parametrize("name", ["Commit", "Submission", "SessionEvent", "PolicyChange"])
def test_no_intent_makes_what_the_writer_alone_makes(memory, name):
    made = jido(name)[1:-1]
    error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=[["urn:x:1", "rdf:type", {"@id": made}]]))
    assert f"only the writer creates {made}" in [violation.message for violation in error.violations]


def test_a_project_is_declared_with_its_name_by_the_first_memory_of_it(memory):
    kept(memory)
    project = iri("https://jido.ai/projects/p")
    assert {(project, TYPE, jido("Project")), (project, jido("projectName"), '"p"')} <= triples_of(memory)


def test_a_memory_nobody_knows_is_taken_for_another_only_where_it_is_spelt_nearly_so(memory):
    known = kept(memory)
    tail = known.removeprefix(MEMORY)
    near = {
        MEMORY + tail[:13]: known,
        MEMORY + tail[:-1] + "z": known,
        MEMORY + "z" + tail[1:]: known,
        MEMORY + "01900000-0000-7000-8000-ffffffffffff": None,
        MEMORY + tail[-5:]: None,
    }
    for other, meant in near.items():
        error = refusal(memory.writer.submit_intent, "p", intent(summary="two", supersedes=[other]))
        (violation,) = error.violations
        guess = f"; did you mean {meant}?" if meant else ""
        assert violation.message == f"{other} is not a memory of this project{guess}"


#: What a field says of a memory: the property -> the field.
SAID_BY_A_FIELD = {
    "summary": "summary", "appliesToProject": "applies_to_project", "assertedBy": "asserted_by",
    "assertedIn": "asserted_in", "hasConfidence": "confidence", "confidenceValue": "confidence",
    "hasTimestamp": "timestamp", "supersedes": "supersedes", "supersededBy": "supersedes",
    "invalidates": "invalidates", "invalidatedBy": "invalidates", "coexistsWith": "coexists_with",
    "revives": "revives", "idempotencyKey": "idempotency_key",
}  # fmt: skip
SAID_BY_THE_WRITER = (
    "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
    "aboutBlob", "confirmedBy", "quarantined", "proposedBecause",
)  # fmt: skip


def messages(memory, *triples, **fields):
    error = refusal(memory.writer.submit_intent, "p", intent(extra_triples=[*map(list, triples)], **fields))
    assert {(violation.code, violation.field) for violation in error.violations} == {
        ("shape_violation", "extra_triples")
    }
    return [(violation.value, violation.message) for violation in error.violations]


def test_an_extra_triple_that_says_what_a_field_says_is_told_which(memory):
    assert messages(memory, *((f"jido:{name}", {"@id": "urn:x:1"}) for name in SAID_BY_A_FIELD)) == [
        (jido(name)[1:-1], f"jido:{name} has a field of its own: use {field}")
        for name, field in SAID_BY_A_FIELD.items()
    ]


def test_an_extra_triple_that_only_the_writer_says_is_told_so(memory):
    assert messages(memory, *((f"jido:{name}", {"@id": "urn:x:1"}) for name in SAID_BY_THE_WRITER)) == [
        (jido(name)[1:-1], f"jido:{name} is set by the writer only: leave it out") for name in SAID_BY_THE_WRITER
    ]


def test_what_is_said_of_memories_is_said_of_nothing_that_comes_with_one(memory):
    names = [*SAID_BY_A_FIELD, *SAID_BY_THE_WRITER]
    assert messages(memory, *(("urn:x:2", f"jido:{name}", {"@id": "urn:x:1"}) for name in names)) == [
        ("urn:x:2", f"jido:{name} is a property of memories only") for name in names
    ]


def test_an_extra_triple_describes_no_other_memory_and_nothing_of_ours(memory):
    known = kept(memory)
    for other in (known, "https://jido.ai/agents/architect"):
        assert messages(memory, (other, "urn:x:p", "x"), summary="two") == [
            (other, f"{other} is not this memory: an extra triple cannot describe another one")
        ]
    assert messages(memory, ("https://jido.ai/agents/x", "x"), summary="three") == [
        ("https://jido.ai/agents/x", "https://jido.ai/agents/x is not a property: it is in a namespace of jidomem")
    ]


def test_an_extra_triple_gives_a_memory_no_second_class_of_ours(memory):
    task = jido("Task")[1:-1]
    assert messages(memory, ("rdf:type", {"@id": task})) == [
        (task, "a memory has the class of its type: set type instead")
    ]
    foreign, own = [["rdf:type", {"@id": name}] for name in ("urn:x:Rule", jido("Fact")[1:-1])]
    assert memory.writer.submit_intent("p", intent(extra_triples=[foreign, own])).status == "asserted"


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
def test_what_a_field_says_once_is_not_said_again(memory, field, name, value, other):
    assert messages(memory, (f"jido:{name}", other), type="convention", **{field: value}) == [
        (jido(name)[1:-1], f"jido:{name} is given twice: {field} is {value!r} already")
    ]


def test_a_field_that_a_kind_cannot_honour_is_refused_with_the_kinds_that_can(writer):
    errors, rules = ("bug", "error", "failure", "incident"), ("agent_rule", "architectural_convention")
    rules += ("coding_standard", "convention", "process_convention")
    decisions = ("architectural_decision", "decision", "implementation_decision")
    able = {
        "status": tuple(sorted(("task", *errors, *decisions))), "severity": errors, "assigned_to": ("task",),
        "convention_name": rules, "convention_scope": rules, "enforcement_level": rules, "alternatives": decisions,
    }  # fmt: skip
    given = dict.fromkeys(able, "x") | {"alternatives": ["x"], "severity": "low", "enforcement_level": "Strict"}

    error = refusal(writer.submit_intent, "p", intent(**given | {"convention_scope": "GlobalScope"}))

    assert {violation.field: violation.allowed for violation in error.violations} == able
    assert [(v.value, v.message) for v in error.violations if v.field == "severity"] == [
        ("low", "severity does not apply to a fact: leave it out, or say it in the summary")
    ]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("rationale", "rationale"), ("detailedExplanation", "detailed_explanation"), ("derivedFrom", "evidence"),
        ("hasTaskStatus", "status"), ("hasErrorStatus", "status"), ("decisionStatus", "status"),
        ("severityLevel", "severity"), ("assignedTo", "assigned_to"), ("conventionName", "convention_name"),
        ("hasConventionScope", "convention_scope"), ("hasEnforcementLevel", "enforcement_level"),
        ("expiresOn", "expires_on"), ("validFrom", "valid_from"), ("validUntil", "valid_until"),
        ("hasSourceType", "source_type"), ("trackedBy", "tracked_by"), ("topic", "topic"), ("about", "about"),
        *SAID_BY_A_FIELD.items(), ("impactLevel", "extra_triples"),
    ],
)  # fmt: skip
def test_what_a_shape_says_of_a_property_is_told_of_the_field_it_is_written_from(name, field):
    assert validate.field_of(jido(name)) == field
    assert validate.field_of(None) is None


def test_a_broken_shape_is_told_with_what_broke_it(memory):
    error = refusal(memory.writer.submit_intent, "p", decision(extra_triples=[["jido:impactLevel", "huge"]]))
    (violation,) = error.violations
    assert (violation.value, violation.shape) == ("huge", "https://jido.ai/shapes#ImpactLevelIsKnown")
    assert "The impact of a decision is low, medium, high or critical" in violation.message
    assert violation.hint == "give jido:impactLevel in `extra_triples` as one of these"
    stray = [["urn:x:1", "jido:hasTaskStatus", {"@id": "jido:Blocked"}]]
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(extra_triples=stray)).violations
    assert (violation.value, violation.field) == (None, "extra_triples")


def test_a_text_beside_the_memory_is_as_long_as_one_of_a_memory_and_an_iri_as_long_as_it_is(memory):
    error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", "<urn:x:p>", literal("x" * 270_000))])
    assert (error.code, "urn:x:1 urn:x:p has 270,000 bytes" in error.detail) == ("payload_too_large", True)
    assert memory.writer.append("p", "codebase", [("<urn:x:1>", "<urn:x:p>", f"<urn:x:{'x' * 270_000}>")]).commit


@pytest.mark.parametrize("name", ["summary", "supersedes", "recordedAt", "position"])
def test_what_has_the_name_of_a_term_of_ours_elsewhere_may_be_said_of_what_is_no_memory(memory, name):
    row = ("<urn:x:1>", f"<https://example.org/{name}>", '"text"')
    assert memory.writer.append("p", "codebase", [row]).status == "asserted"


MADE = {
    "Commit": ["position", "parent", "clears", "redacts", "journalFormat"],
    "Submission": ["answeredWith"],
    "SessionEvent": ["eventNumber", "ofSession"],
    "PolicyChange": ["grantsRole"],
}


@pytest.mark.parametrize("name", MADE)
def test_nobody_makes_by_triples_what_the_writer_and_the_journal_make(memory, name):
    said = [(TYPE, jido(name)), *((jido(each), "<urn:x:2>") for each in MADE[name])]
    for predicate, value in said:
        error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", predicate, value)])
        assert "only the writer states this" in error.detail
        extra = [plain_value("<urn:x:1>"), plain_value(predicate), {"@id": plain_value(value)}]
        error = refusal(memory.writer.remember, "p", "a fact", extra_triples=[extra])
        assert "only the writer creates" in error.detail
    assert files(memory.settings.root) == {}


def test_the_events_of_a_session_are_brought_along_with_it(memory):
    event = "<https://jido.ai/sessions/s-1/events/1>"
    rows = [(event, TYPE, jido("SessionEvent")), (event, jido("eventNumber"), integer(1))]
    rows += [(event, jido("toStatus"), jido("Paused")), (event, jido("causedBy"), "<https://jido.ai/agents/a>"),
             (event, jido("ofSession"), "<https://jido.ai/sessions/s-1>")]  # fmt: skip

    assert memory.writer.declare("p", rows) == []
    assert (event, jido("toStatus"), jido("Paused")) in set(memory.index.triples(Stream("p").graph, event))


def test_nothing_that_is_said_of_memories_is_appended_beside_them(memory):
    for name in [*list(SAID_BY_A_FIELD)[1:], *SAID_BY_THE_WRITER]:
        error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", jido(name), "<urn:x:2>")])
        assert f"urn:x:1 jido:{name}: only the writer states this" in error.detail


@pytest.mark.parametrize("name", ["MemoryItem", "Fact", "PolicyChange"])
def test_no_memory_and_no_change_of_policy_is_appended(memory, name):
    error = refusal(memory.writer.append, "p", "codebase", [("<urn:x:1>", TYPE, jido(name))])
    assert error.detail == f"urn:x:1 a jido:{name}: only the writer states this"
    assert memory.writer.append("p", "codebase", [("<urn:x:1>", TYPE, jido("Module"))]).status == "asserted"


def test_a_name_that_is_taken_or_ours_is_refused_with_another_to_use(memory):
    known = kept(memory)
    error = refusal(memory.writer.submit_intent, "p", intent(summary="two", iri=known))
    message = "is in this memory already: a memory is never rewritten; leave iri out and name it in supersedes"
    assert [(v.message, v.field, v.value) for v in error.violations] == [(f"{known} {message}", "iri", known)]
    for given in (MEMORY, MEMORY + "a/b", "https://jido.ai/agents/x"):
        (violation,) = refusal(memory.writer.submit_intent, "p", intent(summary="two", iri=given)).violations
        assert (violation.code, violation.field, violation.value) == ("invalid_iri", "iri", given)
        assert f"leave iri out, or use {MEMORY}<id> or your own namespace" in violation.message


def test_a_session_is_no_agent_as_well(memory):
    for fields in ({"asserted_by": "urn:x:a"}, {"type": "task", "assigned_to": "urn:x:a"}):
        (violation,) = refusal(memory.writer.submit_intent, "p", intent(asserted_in="urn:x:a", **fields)).violations
        assert (violation.field, violation.value) == ("asserted_in", "urn:x:a")
        assert violation.message == "urn:x:a cannot be a session and an agent"


def test_what_may_be_replaced_or_revived_is_told_by_name(memory):
    known = kept(memory)
    given = intent(summary="two", iri=MEMORY + "me", supersedes=[known, MEMORY + "me"], invalidates=[known])
    error = refusal(memory.writer.submit_intent, "p", given | {"revives": [known]})
    assert [(v.code, v.field, v.value, v.message) for v in error.violations] == [
        ("unknown_reference", "supersedes", MEMORY + "me", "a memory cannot name itself in supersedes"),
        ("shape_violation", "revives", known, f"{known} has not ended: there is nothing to revive"),
        ("shape_violation", "invalidates", known, f"{known} is named in supersedes and in invalidates: say which"),
    ]


def test_what_an_extra_triple_points_at_in_the_memory_namespace_is_there(memory):
    known = kept(memory)
    given = intent(summary="two", extra_triples=[["urn:x:p", {"@id": MEMORY + "nobody"}]])
    (violation,) = refusal(memory.writer.submit_intent, "p", given).violations
    assert (violation.code, violation.field) == ("unknown_reference", "extra_triples")
    assert violation.message == f"{MEMORY}nobody is not a memory of this project"
    itself = [["urn:x:1", "urn:x:p", {"@id": MEMORY + "me"}], ["urn:x:p", {"@id": known}]]
    given = intent(summary="two", iri=MEMORY + "me", extra_triples=itself)
    assert memory.writer.submit_intent("p", given).status == "asserted"


def test_a_memory_nobody_knows_is_told_with_those_it_could_be(memory):
    known = [kept(memory, summary=str(n), iri=f"{MEMORY}abcdef-{n}") for n in range(6)]
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(supersedes=["abcdef"])).violations
    assert (violation.allowed, violation.nearest) == (tuple(known), None)
    assert violation.message == "'abcdef' names several memories"
    assert violation.hint == f"give one of: {', '.join(known)}"
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(supersedes=[MEMORY + "ABCDEF-3"])).violations
    assert violation.nearest == known[3]


def test_an_intent_for_another_project_is_told_both(memory):
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(applies_to_project="q")).violations
    q = "https://jido.ai/projects/q"
    assert (violation.field, violation.value) == ("applies_to_project", q)
    assert violation.allowed == ("https://jido.ai/projects/p", "p")
    assert violation.message == f"the intent applies to {q}, but was submitted to project 'p'"


def test_what_a_field_cannot_hold_is_refused_for_what_it_is_and_not_as_said_twice(memory):
    given = intent(extra_triples=[["jido:topic", {"@value": "Hafen", "@language": "de"}]])
    (violation,) = refusal(memory.writer.submit_intent, "p", given).violations
    assert (violation.field, violation.value) == ("topic", "Hafen")
    assert violation.message == "https://jido.ai/ontology#topic takes string, not 'Hafen'"


@pytest.mark.parametrize("given", ["abcdef", MEMORY + "nobody"])
def test_an_unknown_reference_is_not_reported_as_active(memory, given):
    (violation,) = refusal(memory.writer.submit_intent, "p", intent(revives=[given])).violations
    assert (violation.code, violation.field, violation.value) == ("unknown_reference", "revives", given)


def test_a_name_of_ours_is_repaired_by_leaving_it_out(memory):
    error = refusal(memory.writer.submit_intent, "p", intent(iri="https://jido.ai/agents/x"))
    assert error.fixed_intent == intent()


def test_what_a_strict_project_has_not_heard_of_is_told_by_name(tmp_path):  # C044
    with open_with(tmp_path, "strict = true\n") as memory:
        given = intent(type="task", assigned_to="bob")
        violations = refusal(memory.writer.submit_intent, "p", given).violations
    base = "https://jido.ai/"
    named = {"asserted_by": base + "agents/architect", "assigned_to": base + "agents/bob"}
    named |= {"asserted_in": base + "sessions/s-1"}
    ways = {field: f"declare it in config.toml: [agents.{iri.rsplit('/', 1)[1]}]" for field, iri in named.items()}
    ways["asserted_in"] = "open it with: jidomem agent session start s-1"
    assert [(v.code, v.field, v.value, v.message, v.hint) for v in violations] == [
        ("unknown_reference", field, value, f"{value} is not declared, and this project is strict", ways[field])
        for field, value in named.items()
    ]


def test_a_hypothesis_is_not_proposed_to_become_a_fact_without_evidence(memory):  # C041
    guess = kept(memory, type="hypothesis")
    error = refusal(memory.writer.submit_intent, "p", intent(summary="so", supersedes=[guess]), propose=True)
    assert error.violations[0].shape == "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
    assert error.violations[0].field == "evidence"
