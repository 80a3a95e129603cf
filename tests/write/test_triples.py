"""Stage 4: the triples of an intent, from which every text is read back unchanged."""

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import START, decision, examples, fixed_sources, intent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from writing import GRAPH, committed_triples, refusal, triples_of, values_of

import jidomem
from jidomem.rdf.terms import date_time, iri, literal
from jidomem.rdf.vocab import JIDO, LABEL, RDF, TYPE, WRITER_TYPES, jido
from jidomem.write.triples import check_round_trip, restate

SEED_CLASSES = dict(
    zip(
        WRITER_TYPES,
        [
            "Fact",
            "Assumption",
            "Hypothesis",
            "Discovery",
            "Risk",
            "Decision",
            "ArchitecturalDecision",
            "ImplementationDecision",
            "Convention",
            "Task",
            "Error",
            "LessonLearned",
        ],
        strict=True,
    )
)


def record(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


@pytest.mark.parametrize("kind", WRITER_TYPES)
def test_a_memory_of_each_type_has_its_class(memory, kind):  # C071 C062
    item = iri(record(memory, type=kind, rationale="because"))
    assert [o for _, _, o in memory.index.triples(GRAPH, item, TYPE)] == [jido(SEED_CLASSES[kind])]


def test_the_summary_and_the_project_are_written(memory):  # C063 C064
    item = record(memory, summary="the build needs Rust")
    assert values_of(memory, item, "summary") == ['"the build needs Rust"']
    assert values_of(memory, item, "appliesToProject") == ["<https://jido.ai/projects/p>"]


def test_the_provenance_is_written(memory):  # C065
    item = record(memory)
    assert values_of(memory, item, "assertedBy") == ["<https://jido.ai/agents/architect>"]
    assert values_of(memory, item, "assertedIn") == ["<https://jido.ai/sessions/s-1>"]
    assert values_of(memory, item, "hasConfidence") == [jido("High")]
    assert (iri(item), jido("hasTimestamp"), date_time("2026-11-21T08:00:00.000000Z")) in committed_triples(memory)


def test_explanation_and_rationale_are_written_when_given(memory):  # C066
    item = record(memory, detailed_explanation="at length", rationale="why")
    assert (values_of(memory, item, "detailedExplanation"), values_of(memory, item, "rationale")) == (
        ['"at length"'],
        ['"why"'],
    )


@pytest.mark.parametrize("kind", WRITER_TYPES)
def test_no_literal_is_empty(memory, kind):  # C066
    blank = dict.fromkeys(["detailed_explanation", "topic", "severity", "status", "reason"], "  ")
    record(memory, type=kind, evidence=[" "], about=[""], **{**blank, "rationale": "r"})
    assert not [triple for triple in triples_of(memory) if triple[2].startswith('""')]


def test_evidence_given_as_text_is_a_node_with_that_label(memory):  # C067
    first = record(memory, evidence=["saw it", "measured it"])
    second = record(memory, summary="two", evidence=["saw it"])
    nodes = values_of(memory, first, "derivedFrom")
    labels = [next(memory.index.triples(GRAPH, node, LABEL))[2] for node in nodes]
    assert sorted(labels) == ['"measured it"', '"saw it"']
    assert all((node, TYPE, jido("Evidence")) in triples_of(memory) for node in nodes)
    assert set(values_of(memory, second, "derivedFrom")) <= set(nodes)  # equal texts share a node


def test_evidence_given_as_an_iri_is_referenced(memory):  # C067
    other = record(memory)
    item = record(memory, summary="two", evidence=["https://example.org/log#5", other])
    assert values_of(memory, item, "derivedFrom") == sorted(["<https://example.org/log#5>", iri(other)])
    assert (iri("https://example.org/log#5"), TYPE, jido("Evidence")) in triples_of(memory)
    assert (iri(other), TYPE, jido("Evidence")) not in triples_of(memory)


def test_a_supersession_is_written_in_both_directions(memory):  # C068
    old = [record(memory, summary=f"old {n}") for n in range(2)]
    new = record(memory, summary="new", supersedes=old)
    assert values_of(memory, new, "supersedes") == sorted(map(iri, old))
    assert [values_of(memory, item, "supersededBy") for item in old] == [[iri(new)], [iri(new)]]
    assert values_of(memory, new, "supersededBy") == []


def test_an_invalidation_is_written_in_both_directions(memory):  # C069
    old = [record(memory, summary=f"old {n}") for n in range(2)]
    new = record(memory, summary="new", invalidates=old)
    assert values_of(memory, new, "invalidates") == sorted(map(iri, old))
    assert [values_of(memory, item, "invalidatedBy") for item in old] == [[iri(new)], [iri(new)]]
    assert values_of(memory, new, "invalidatedBy") == []


def test_extra_triples_are_added_to_those_of_the_fields(memory):  # C070
    unextended, extended = (
        record(memory),
        record(memory, summary="two", extra_triples=[["jido:verified", True], ["jido:key", "k"]]),
    )
    names = {p for _, p, _ in memory.index.triples(GRAPH, iri(extended))} - {
        p for _, p, _ in memory.index.triples(GRAPH, iri(unextended))
    }
    assert names == {jido("verified"), jido("key")}


@pytest.mark.parametrize("blank", ["", " \n", {"@value": ""}, {"@value": " ", "@language": "en"}])
def test_an_extra_triple_with_a_blank_object_is_refused(writer, blank):  # C066
    for name in ("jido:key", "jido:topic", "https://example.org/p"):
        assert refusal(writer.submit_intent, "p", intent(extra_triples=[[name, blank]])).code == "invalid_argument"


DEFAULTS = [
    ("task", {"hasTaskStatus": jido("Planned")}),
    ("error", {"hasErrorStatus": jido("Reported"), "severityLevel": '"medium"'}),
    ("bug", {"hasErrorStatus": jido("Reported"), "severityLevel": '"medium"'}),
    ("convention", {"conventionName": '"say"', "hasEnforcementLevel": jido("Advisory"),
                    "hasConventionScope": jido("ProjectScope")}),
]  # fmt: skip
OVERRIDES = [
    ("task", "status", "hasTaskStatus", "Blocked", jido("Blocked")),
    ("error", "status", "hasErrorStatus", "Resolved", jido("Resolved")),
    ("error", "severity", "severityLevel", "critical", '"critical"'),
    ("convention", "convention_name", "conventionName", "Naming", '"Naming"'),
    ("convention", "enforcement_level", "hasEnforcementLevel", "Strict", jido("Strict")),
    ("convention", "convention_scope", "hasConventionScope", "GlobalScope", jido("GlobalScope")),
]


@pytest.mark.parametrize(("kind", "expected"), DEFAULTS)
def test_a_type_gets_its_default_properties(memory, kind, expected):  # C072
    item = record(memory, type=kind, summary="say")
    assert {name: values_of(memory, item, name) for name in expected} == {n: [v] for n, v in expected.items()}


@pytest.mark.parametrize(("kind", "field", "name", "value", "term"), OVERRIDES)
def test_a_field_overrides_the_default(memory, kind, field, name, value, term):  # C072
    assert values_of(memory, record(memory, type=kind, **{field: value}), name) == [term]


@pytest.mark.parametrize(("kind", "field", "name", "value", "term"), OVERRIDES)
def test_an_extra_triple_overrides_the_default(memory, kind, field, name, value, term):  # C072
    object_ = {"@id": f"jido:{value}"} if term.startswith("<") else value
    assert values_of(memory, record(memory, type=kind, extra_triples=[[f"jido:{name}", object_]]), name) == [term]


def test_the_reader_lists_memories_with_default_properties(memory):  # C072
    task, error, rule = (record(memory, type=kind, summary=kind) for kind in ("task", "error", "convention"))
    assert memory.reader.list_open_tasks("p") == [
        {"task": task, "summary": "task", "status": str(jido("Planned")[1:-1]), "assignee": None}
    ]
    assert memory.reader.list_open_errors("p") == [{"err": error, "summary": "error", "severity": "medium"}]
    assert [row["conv"] for row in memory.reader.list_conventions("p")] == [rule]


def test_alternatives_are_separate_memories(memory):  # C062 C065
    item = memory.writer.submit_intent("p", decision(alternatives=["Use Jena", "Use grep"])).iri
    nodes = values_of(memory, item, "hasAlternative")
    assert [values_of(memory, node[1:-1], "summary") for node in nodes] == [['"Use Jena"'], ['"Use grep"']]
    for node in nodes:
        assert (node, TYPE, jido("Alternative")) in triples_of(memory)
        assert values_of(memory, node[1:-1], "assertedBy") == ["<https://jido.ai/agents/architect>"]
        assert values_of(memory, node[1:-1], "hasTimestamp") == values_of(memory, item, "hasTimestamp")


def test_the_typed_fields_are_written(memory):  # C070
    item = record(
        memory, type="task", assigned_to="bob", topic="t", about=["src/a.py", "https://example.org/x"],
        tracked_by="https://example.org/issues/5", expires_on="2027-01-01", valid_from="2026-01-01",
        valid_until="2026-12-31", source_type="user", confidence=0.85,
    )  # fmt: skip
    properties = memory.reader.get_memory("p", item)["properties"]
    assert properties["assignedTo"] == ["https://jido.ai/agents/bob"]
    assert sorted(properties["about"]) == ["https://example.org/x", "src/a.py"]
    assert (properties["topic"], properties["trackedBy"], properties["confidenceValue"]) == (
        ["t"],
        ["https://example.org/issues/5"],
        [0.85],
    )
    assert properties["expiresOn"] == [datetime(2027, 1, 1, tzinfo=UTC)]
    assert properties["validFrom"] + properties["validUntil"] == [
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 12, 31, tzinfo=UTC),
    ]
    assert properties["hasSourceType"] == ["https://jido.ai/ontology#UserSource"]


def test_superseded_and_invalidated_memories_gain_only_the_links(memory):  # C068 C069
    old = [record(memory, summary="a"), record(memory, summary="b")]
    before = {triple for triple in triples_of(memory) if triple[0] in map(iri, old)}
    new = record(memory, summary="c", supersedes=old[:1], invalidates=old[1:])
    after = {triple for triple in triples_of(memory) if triple[0] in map(iri, old)}
    assert after - before == {
        (iri(old[0]), jido("supersededBy"), iri(new)),
        (iri(old[1]), jido("invalidatedBy"), iri(new)),
    }
    assert before <= after


#: Characters that XML excludes and for which an intent is refused.
EXCLUDED_CHARACTERS = "".join(map(chr, [*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF]))
text = st.text(st.characters(codec="utf-8", exclude_characters=EXCLUDED_CHARACTERS))


@given(text, text)
@example('"""', "'''")
@example('say "hi"\\n', 'a\n"""b"""\n\\')
@example("\\", '\\"')
@example("a\r\nb\tc", "\u202eright to left\u2066")
@example("\x7f\x80\x9f\U0001fffe\U0010ffff", "e\u0301 é")
@example("<script>&amp;", "x .\n<a> <b> <c> .")
@example("@prefix x: <y> .", "^^xsd:integer @en #")
@settings(max_examples=examples(15), derandomize=True)
def test_any_text_is_read_back_unchanged_from_index_and_journal(summary, extra):  # C073 C079
    summary, extra = f"s {summary}".strip(), f"e {extra}".strip()
    folder = Path(tempfile.mkdtemp())
    try:
        with jidomem.open(folder, sources=fixed_sources(START)) as memory:
            item = record(memory, summary=summary, extra_triples=[["https://example.org/p", {"@value": extra}]])
            assert memory.reader.get_memory("p", item)["properties"]["summary"] == [summary]
        with jidomem.open(folder) as reopened:
            rows = reopened.reader.select(
                "p", f"SELECT ?s ?e {{ <{item}> <{jido('summary')[1:-1]}> ?s ; <https://example.org/p> ?e }}"
            )
            assert rows == [{"s": summary, "e": extra}]
            assert (iri(item), jido("summary"), literal(summary)) in committed_triples(reopened)
    finally:
        shutil.rmtree(folder)


def test_an_entity_of_a_memory_has_the_time_of_its_first_recording(memory):  # C115
    module = "https://example.org/Cart"
    module_triples = [[module, "rdf:type", "jido:ElixirModule"], [module, "jido:moduleName", "Cart"]]
    memory.writer.submit_intent("p", intent(evidence=["a log"], extra_triples=module_triples))
    memory.writer.submit_intent("p", intent(summary="two", evidence=["a log"]))

    times = "SELECT (COUNT(?at) AS ?times) { ?e a jido:Evidence ; jido:recordedAt ?at }"
    (counts,) = memory.reader.select("p", f"PREFIX jido: <https://jido.ai/ontology#> {times}")
    earlier = START - timedelta(seconds=1)
    assert counts == {"times": 1}
    assert [row["mod"] for row in memory.reader.code.elixir_modules("p")] == [module]
    assert memory.reader.code.elixir_modules("p", as_of=earlier) == []


@pytest.mark.parametrize(
    "value", [{"@value": "a", "@type": f"{RDF}langString"}, {"@value": "é", "@language": "en-aaaaaaaa-1"}]
)
def test_an_unparseable_literal_is_refused_with_its_triple(writer, value):
    (violation,) = refusal(writer.submit_intent, "p", intent(extra_triples=[["urn:x:p", value]])).violations
    assert (violation.code, violation.field) == ("invalid_iri", "extra_triples")
    assert "<urn:x:p> " + f'"{value["@value"]}"' in violation.value
    assert violation.message.startswith("Parser error")
    assert violation.message.endswith(violation.value)
    assert violation.value.endswith(" .")


def test_a_triple_that_reads_back_differently_is_refused_with_that_triple():
    rows = [(iri("urn:x:1"), iri("urn:x:p"), value) for value in ('"\\u0061"', '"b"')]
    (violation,) = refusal(check_round_trip, rows).violations
    line = '<urn:x:1> <urn:x:p> "\\u0061" .'
    assert (violation.code, violation.field, violation.value) == ("invalid_iri", "extra_triples", line)
    assert violation.message == f"this does not read back as it was written: {line}"
    assert check_round_trip(rows[1:]) is None


def test_a_new_agent_project_and_session_are_described_once(memory):
    record(memory, type="task", assigned_to="bob", timestamp="2026-11-20")
    record(memory, summary="two", asserted_by="bob", asserted_in="s-2")
    base = "https://jido.ai/"
    session, project, agent = (iri(base + name) for name in ("sessions/s-1", "projects/p", "agents/architect"))
    session_triples = {
        (session, TYPE, jido("WorkSession")), (session, jido("hasStatus"), jido("Active")),
        (session, jido("startedAt"), date_time("2026-11-21T08:00:00.000000Z")),
        (session, jido("partOfProject"), project), (session, jido("hasPrimaryAgent"), agent),
    }  # fmt: skip
    assert session_triples <= committed_triples(memory)
    for name in ("architect", "bob"):
        agent_iri = iri(base + f"agents/{name}")
        assert {(agent_iri, TYPE, jido("Agent")), (agent_iri, jido("agentName"), f'"{name}"')} <= triples_of(memory)
        assert (agent_iri, jido("hasRole"), jido("Implementer")) in triples_of(memory)
    first, second = (values_of(memory, base + f"sessions/s-{n}", "hasPrimaryAgent") for n in (1, 2))
    assert (first, second) == ([agent], [iri(base + "agents/bob")])


RICH = {
    "convention": intent(
        type="convention", summary="Use tabs", convention_name="Indent", convention_scope="GlobalScope",
        enforcement_level="Strict", topic="white space", about=["https://example.org/A", "src/"], rationale="One",
        detailed_explanation="At length", evidence=["a log", "urn:x:e"], source_type="UserSource", confidence=0.85,
        tracked_by="https://example.org/5", timestamp="2026-01-01T00:00:00Z", expires_on="2027-01-01T00:00:00Z",
        valid_from="2026-01-02T00:00:00Z", valid_until="2026-12-31T00:00:00Z", reason="since",
        extra_triples=[
            [f"{RDF}type", {"@id": "urn:x:Rule"}], ["urn:x:l", {"@value": "a", "@language": "en"}],
            ["urn:x:n", {"@value": "5", "@type": "http://www.w3.org/2001/XMLSchema#integer"}],
            ["urn:x:summary", {"@id": "urn:x:s"}],
        ],
    ),
    "task": intent(type="task", status="Blocked", assigned_to="https://jido.ai/agents/bob", confidence="low"),
    "bug": intent(type="bug", status="Resolved", severity="low", confidence="medium"),
    "decision": decision(
        status="rejected", alternatives=["b", "a", *map(str, range(9, 0, -1))],
        extra_triples=[[f"{JIDO}hasAlternative", {"@id": "urn:x:2"}]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RICH)
def test_a_restated_memory_equals_its_intent(memory, kind):
    receipt = memory.writer.submit_intent("p", RICH[kind])

    restated = memory.writer.restated("p", receipt.iri)

    given = RICH[kind] | {"iri": receipt.iri, "timestamp": RICH[kind].get("timestamp", "2026-11-21T08:00:00Z")}
    for field, folder in (("applies_to_project", "projects"), ("asserted_by", "agents"), ("asserted_in", "sessions")):
        given[field] = f"https://jido.ai/{folder}/{given[field]}"
    extra = given.pop("extra_triples", [])
    assert sorted(restated.pop("extra_triples", []), key=str) == sorted(extra, key=str)
    assert {name: sorted(value) if name == "about" else value for name, value in restated.items()} == given


def test_the_relations_a_memory_gave_are_restated_and_those_it_received_are_not(memory):
    old = [record(memory, summary=f"old {n}") for n in range(4)]
    new = record(memory, summary="new", supersedes=old[:2], invalidates=old[2:3], coexists_with=old[3:])
    record(memory, summary="newer", invalidates=[new])
    revived = record(memory, summary="back", revives=old[:1])
    restated = memory.writer.restated("p", new)
    assert (restated["supersedes"], restated["invalidates"], restated["coexists_with"]) == (old[:2], old[2:3], old[3:])
    assert memory.writer.restated("p", revived)["revives"] == old[:1]
    assert set(restated) == {
        "iri", "type", "summary", "applies_to_project", "asserted_by", "asserted_in", "timestamp", "confidence",
        "supersedes", "invalidates", "coexists_with",
    }  # fmt: skip


def test_a_second_assignee_is_restated_as_an_extra_triple(memory):
    record(memory, summary="one", asserted_by="zed")
    other = ["jido:assignedTo", {"@id": "https://jido.ai/agents/zed"}]
    item = record(memory, type="task", assigned_to="bob", extra_triples=[other])
    restated = memory.writer.restated("p", item)
    assert restated["assigned_to"] == "https://jido.ai/agents/bob"
    assert restated["extra_triples"] == [[JIDO + "assignedTo", other[1]]]


@pytest.mark.parametrize("text", ['"a"@a', '"\\u0061"'])
def test_a_long_unparseable_triple_is_truncated_in_the_refusal(text):
    rows = [(iri("urn:x:" + "y" * 400), iri("urn:x:p"), text), (iri("urn:x:1"), iri("urn:x:p"), '"b"')]
    (violation,) = refusal(check_round_trip, rows).violations
    assert violation.value == "<urn:x:" + "y" * 293
    assert violation.message.endswith(f": {violation.value}")


def test_properties_of_the_writer_and_of_later_memories_are_not_restated(memory):
    item = record(memory, idempotency_key="k")
    assert "extra_triples" not in memory.writer.restated("p", item)
    names = [
        "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
        "idempotencyKey", "supersededBy", "invalidatedBy", "aboutBlob", "confirmedBy", "quarantined", "proposedBecause",
    ]  # fmt: skip
    rows = [(iri(item), jido(name), value) for name in names for value in ("<urn:x:1>", '"a"')]
    assert restate(iri(item), rows, {}) == {"iri": item}


def test_a_foreign_property_named_like_a_field_is_restated_as_an_extra_triple():
    rows = [("<urn:x:1>", f"<https://example.org/{name}>", '"a"') for name in ("status", "summary")]
    text = {"@value": "a", "@type": "http://www.w3.org/2001/XMLSchema#string"}
    extra = [[predicate[1:-1], text] for _, predicate, _ in rows]
    assert restate("<urn:x:1>", rows, {}) == {"iri": "urn:x:1", "extra_triples": extra}
