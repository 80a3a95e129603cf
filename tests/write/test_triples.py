"""Stage 4: the triples of an intent, from which every text is read back unchanged."""

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import START, decision, fixed_sources, intent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from writing import GRAPH, committed_triples, refusal, triples_of, values_of

import jidomem
from jidomem.rdf.terms import date_time, iri, literal
from jidomem.rdf.vocab import JIDO, LABEL, RDF, TYPE, WRITER_TYPES, jido
from jidomem.write.triples import read_back, restate

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


def kept(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


@pytest.mark.parametrize("kind", WRITER_TYPES)
def test_each_type_has_its_class(memory, kind):  # C071 C062
    item = iri(kept(memory, type=kind, rationale="because"))
    assert [o for _, _, o in memory.index.triples(GRAPH, item, TYPE)] == [jido(SEED_CLASSES[kind])]


def test_the_summary_and_the_project_are_written(memory):  # C063 C064
    item = kept(memory, summary="the build needs Rust")
    assert values_of(memory, item, "summary") == ['"the build needs Rust"']
    assert values_of(memory, item, "appliesToProject") == ["<https://jido.ai/projects/p>"]


def test_the_provenance_is_written(memory):  # C065
    item = kept(memory)
    assert values_of(memory, item, "assertedBy") == ["<https://jido.ai/agents/architect>"]
    assert values_of(memory, item, "assertedIn") == ["<https://jido.ai/sessions/s-1>"]
    assert values_of(memory, item, "hasConfidence") == [jido("High")]
    assert (iri(item), jido("hasTimestamp"), date_time("2026-11-21T08:00:00.000000Z")) in committed_triples(memory)


def test_explanation_and_rationale_are_written_when_given(memory):  # C066
    item = kept(memory, detailed_explanation="at length", rationale="why")
    assert (values_of(memory, item, "detailedExplanation"), values_of(memory, item, "rationale")) == (
        ['"at length"'],
        ['"why"'],
    )


@pytest.mark.parametrize("kind", WRITER_TYPES)
def test_no_literal_is_ever_empty(memory, kind):  # C066
    blank = dict.fromkeys(["detailed_explanation", "topic", "severity", "status", "reason"], "  ")
    kept(memory, type=kind, evidence=[" "], about=[""], **{**blank, "rationale": "r"})
    assert not [triple for triple in triples_of(memory) if triple[2].startswith('""')]


def test_evidence_given_as_text_is_a_node_with_that_label(memory):  # C067
    first = kept(memory, evidence=["saw it", "measured it"])
    second = kept(memory, summary="two", evidence=["saw it"])
    nodes = values_of(memory, first, "derivedFrom")
    labels = [next(memory.index.triples(GRAPH, node, LABEL))[2] for node in nodes]
    assert sorted(labels) == ['"measured it"', '"saw it"']
    assert all((node, TYPE, jido("Evidence")) in triples_of(memory) for node in nodes)
    assert set(values_of(memory, second, "derivedFrom")) <= set(nodes)  # the same text is the same node


def test_evidence_given_as_an_iri_is_used_as_it_is(memory):  # C067
    other = kept(memory)
    item = kept(memory, summary="two", evidence=["https://example.org/log#5", other])
    assert values_of(memory, item, "derivedFrom") == sorted(["<https://example.org/log#5>", iri(other)])
    assert (iri("https://example.org/log#5"), TYPE, jido("Evidence")) in triples_of(memory)
    assert (iri(other), TYPE, jido("Evidence")) not in triples_of(memory)


def test_a_supersession_is_written_in_both_directions(memory):  # C068
    old = [kept(memory, summary=f"old {n}") for n in range(2)]
    new = kept(memory, summary="new", supersedes=old)
    assert values_of(memory, new, "supersedes") == sorted(map(iri, old))
    assert [values_of(memory, one, "supersededBy") for one in old] == [[iri(new)], [iri(new)]]
    assert values_of(memory, new, "supersededBy") == []


def test_an_invalidation_is_written_in_both_directions(memory):  # C069
    old = [kept(memory, summary=f"old {n}") for n in range(2)]
    new = kept(memory, summary="new", invalidates=old)
    assert values_of(memory, new, "invalidates") == sorted(map(iri, old))
    assert [values_of(memory, one, "invalidatedBy") for one in old] == [[iri(new)], [iri(new)]]
    assert values_of(memory, new, "invalidatedBy") == []


def test_extra_triples_are_added_to_what_the_fields_say(memory):  # C070
    plain, more = kept(memory), kept(memory, summary="two", extra_triples=[["jido:verified", True], ["jido:key", "k"]])
    names = {p for _, p, _ in memory.index.triples(GRAPH, iri(more))} - {
        p for _, p, _ in memory.index.triples(GRAPH, iri(plain))
    }
    assert names == {jido("verified"), jido("key")}


@pytest.mark.parametrize("blank", ["", " \n", {"@value": ""}, {"@value": " ", "@language": "en"}])
def test_an_extra_triple_that_says_nothing_is_refused(writer, blank):  # C066
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
def test_a_kind_gets_what_its_readers_look_for(memory, kind, expected):  # C072
    item = kept(memory, type=kind, summary="say")
    assert {name: values_of(memory, item, name) for name in expected} == {n: [v] for n, v in expected.items()}


@pytest.mark.parametrize(("kind", "field", "name", "value", "term"), OVERRIDES)
def test_a_field_overrides_the_default(memory, kind, field, name, value, term):  # C072
    assert values_of(memory, kept(memory, type=kind, **{field: value}), name) == [term]


@pytest.mark.parametrize(("kind", "field", "name", "value", "term"), OVERRIDES)
def test_an_extra_triple_overrides_the_default(memory, kind, field, name, value, term):  # C072
    object_ = {"@id": f"jido:{value}"} if term.startswith("<") else value
    assert values_of(memory, kept(memory, type=kind, extra_triples=[[f"jido:{name}", object_]]), name) == [term]


def test_the_reader_finds_what_was_written_with_defaults_alone(memory):  # C072
    task, error, rule = (kept(memory, type=kind, summary=kind) for kind in ("task", "error", "convention"))
    assert memory.reader.list_open_tasks("p") == [
        {"task": task, "summary": "task", "status": str(jido("Planned")[1:-1]), "assignee": None}
    ]
    assert memory.reader.list_open_errors("p") == [{"err": error, "summary": "error", "severity": "medium"}]
    assert [row["conv"] for row in memory.reader.list_conventions("p")] == [rule]


def test_alternatives_are_memories_of_their_own(memory):  # C062 C065
    item = memory.writer.submit_intent("p", decision(alternatives=["Use Jena", "Use grep"])).iri
    nodes = values_of(memory, item, "hasAlternative")
    assert [values_of(memory, node[1:-1], "summary") for node in nodes] == [['"Use Jena"'], ['"Use grep"']]
    for node in nodes:
        assert (node, TYPE, jido("Alternative")) in triples_of(memory)
        assert values_of(memory, node[1:-1], "assertedBy") == ["<https://jido.ai/agents/architect>"]
        assert values_of(memory, node[1:-1], "hasTimestamp") == values_of(memory, item, "hasTimestamp")


def test_the_typed_fields_are_written(memory):  # C070
    item = kept(
        memory, type="task", assigned_to="bob", topic="t", about=["src/a.py", "https://example.org/x"],
        tracked_by="https://example.org/issues/5", expires_on="2027-01-01", valid_from="2026-01-01",
        valid_until="2026-12-31", source_type="user", confidence=0.85,
    )  # fmt: skip
    found = memory.reader.get_memory("p", item)["properties"]
    assert found["assignedTo"] == ["https://jido.ai/agents/bob"]
    assert sorted(found["about"]) == ["https://example.org/x", "src/a.py"]
    assert (found["topic"], found["trackedBy"], found["confidenceValue"]) == (
        ["t"],
        ["https://example.org/issues/5"],
        [0.85],
    )
    assert found["expiresOn"] == [datetime(2027, 1, 1, tzinfo=UTC)]
    assert found["validFrom"] + found["validUntil"] == [
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 12, 31, tzinfo=UTC),
    ]
    assert found["hasSourceType"] == ["https://jido.ai/ontology#UserSource"]


def test_only_new_triples_about_the_old_are_the_links(memory):  # C068 C069
    old = [kept(memory, summary="a"), kept(memory, summary="b")]
    before = {triple for triple in triples_of(memory) if triple[0] in map(iri, old)}
    new = kept(memory, summary="c", supersedes=old[:1], invalidates=old[1:])
    after = {triple for triple in triples_of(memory) if triple[0] in map(iri, old)}
    assert after - before == {
        (iri(old[0]), jido("supersededBy"), iri(new)),
        (iri(old[1]), jido("invalidatedBy"), iri(new)),
    }
    assert before <= after


#: What XML cannot hold, and an intent is refused for.
UNSAYABLE = "".join(map(chr, [*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF]))
text = st.text(st.characters(codec="utf-8", exclude_characters=UNSAYABLE))


@given(text, text)
@example('"""', "'''")
@example('say "hi"\\n', 'a\n"""b"""\n\\')
@example("\\", '\\"')
@example("a\r\nb\tc", "\u202eright to left\u2066")
@example("\x7f\x80\x9f\U0001fffe\U0010ffff", "e\u0301 é")
@example("<script>&amp;", "x .\n<a> <b> <c> .")
@example("@prefix x: <y> .", "^^xsd:integer @en #")
@settings(max_examples=60, derandomize=True)
def test_any_text_survives_the_journal_and_comes_back_as_it_was(summary, extra):  # C073 C079
    summary, extra = f"s {summary}".strip(), f"e {extra}".strip()
    folder = Path(tempfile.mkdtemp())
    try:
        with jidomem.open(folder, sources=fixed_sources(START)) as memory:
            item = kept(memory, summary=summary, extra_triples=[["https://example.org/p", {"@value": extra}]])
            assert memory.reader.get_memory("p", item)["properties"]["summary"] == [summary]
        with jidomem.open(folder) as again:
            found = again.reader.select(
                "p", f"SELECT ?s ?e {{ <{item}> <{jido('summary')[1:-1]}> ?s ; <https://example.org/p> ?e }}"
            )
            assert found == [{"s": summary, "e": extra}]
            assert (iri(item), jido("summary"), literal(summary)) in committed_triples(again)
    finally:
        shutil.rmtree(folder)


def test_what_a_memory_brings_along_carries_the_time_it_was_first_recorded(memory):  # C115
    module = "https://example.org/Cart"
    named = [[module, "rdf:type", "jido:ElixirModule"], [module, "jido:moduleName", "Cart"]]
    memory.writer.submit_intent("p", intent(evidence=["a log"], extra_triples=named))
    memory.writer.submit_intent("p", intent(summary="two", evidence=["a log"]))

    times = "SELECT (COUNT(?at) AS ?times) { ?e a jido:Evidence ; jido:recordedAt ?at }"
    (known,) = memory.reader.select("p", f"PREFIX jido: <https://jido.ai/ontology#> {times}")
    before = START - timedelta(seconds=1)
    assert known == {"times": 1}
    assert [row["mod"] for row in memory.reader.code.elixir_modules("p")] == [module]
    assert memory.reader.code.elixir_modules("p", as_of=before) == []


@pytest.mark.parametrize(
    "value", [{"@value": "a", "@type": f"{RDF}langString"}, {"@value": "é", "@language": "en-aaaaaaaa-1"}]
)
def test_what_does_not_read_back_is_shown_as_it_would_be_written(writer, value):
    (found,) = refusal(writer.submit_intent, "p", intent(extra_triples=[["urn:x:p", value]])).violations
    assert (found.code, found.field) == ("invalid_iri", "extra_triples")
    assert "<urn:x:p> " + f'"{value["@value"]}"' in found.value
    assert found.message.startswith("Parser error")
    assert found.message.endswith(found.value)
    assert found.value.endswith(" .")


def test_what_reads_back_as_something_else_is_refused_with_what_changed():
    rows = [(iri("urn:x:1"), iri("urn:x:p"), value) for value in ('"\\u0061"', '"b"')]
    (found,) = refusal(read_back, rows).violations
    changed = '<urn:x:1> <urn:x:p> "\\u0061" .'
    assert (found.code, found.field, found.value) == ("invalid_iri", "extra_triples", changed)
    assert found.message == f"this does not read back as it was written: {changed}"
    assert read_back(rows[1:]) is None


def test_what_is_known_of_an_agent_project_and_session_named_first_is_written_once(memory):
    kept(memory, type="task", assigned_to="bob", timestamp="2026-11-20")
    kept(memory, summary="two", asserted_by="bob", asserted_in="s-2")
    base = "https://jido.ai/"
    session, project, agent = (iri(base + name) for name in ("sessions/s-1", "projects/p", "agents/architect"))
    began = {
        (session, TYPE, jido("WorkSession")), (session, jido("hasStatus"), jido("Active")),
        (session, jido("startedAt"), date_time("2026-11-21T08:00:00.000000Z")),
        (session, jido("partOfProject"), project), (session, jido("hasPrimaryAgent"), agent),
    }  # fmt: skip
    assert began <= committed_triples(memory)
    for name in ("architect", "bob"):
        of = iri(base + f"agents/{name}")
        assert {(of, TYPE, jido("Agent")), (of, jido("agentName"), f'"{name}"')} <= triples_of(memory)
        assert (of, jido("hasRole"), jido("Implementer")) in triples_of(memory)
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
def test_a_memory_is_told_again_by_the_intent_that_said_it(memory, kind):
    receipt = memory.writer.submit_intent("p", RICH[kind])

    again = memory.writer.restated("p", receipt.iri)

    given = RICH[kind] | {"iri": receipt.iri, "timestamp": RICH[kind].get("timestamp", "2026-11-21T08:00:00Z")}
    for field, folder in (("applies_to_project", "projects"), ("asserted_by", "agents"), ("asserted_in", "sessions")):
        given[field] = f"https://jido.ai/{folder}/{given[field]}"
    said_beside = given.pop("extra_triples", [])
    assert sorted(again.pop("extra_triples", []), key=str) == sorted(said_beside, key=str)
    assert {name: sorted(value) if name == "about" else value for name, value in again.items()} == given


def test_what_a_memory_replaces_is_told_again_and_what_replaced_it_is_not(memory):
    old = [kept(memory, summary=f"old {n}") for n in range(4)]
    new = kept(memory, summary="new", supersedes=old[:2], invalidates=old[2:3], coexists_with=old[3:])
    kept(memory, summary="newer", invalidates=[new])
    back = kept(memory, summary="back", revives=old[:1])
    again = memory.writer.restated("p", new)
    assert (again["supersedes"], again["invalidates"], again["coexists_with"]) == (old[:2], old[2:3], old[3:])
    assert memory.writer.restated("p", back)["revives"] == old[:1]
    assert set(again) == {
        "iri", "type", "summary", "applies_to_project", "asserted_by", "asserted_in", "timestamp", "confidence",
        "supersedes", "invalidates", "coexists_with",
    }  # fmt: skip


def test_who_else_a_task_is_for_is_told_again_beside_the_first(memory):
    kept(memory, summary="one", asserted_by="zed")
    other = ["jido:assignedTo", {"@id": "https://jido.ai/agents/zed"}]
    item = kept(memory, type="task", assigned_to="bob", extra_triples=[other])
    again = memory.writer.restated("p", item)
    assert again["assigned_to"] == "https://jido.ai/agents/bob"
    assert again["extra_triples"] == [[JIDO + "assignedTo", other[1]]]


@pytest.mark.parametrize("text", ['"a"@a', '"\\u0061"'])
def test_what_does_not_read_back_is_shown_by_its_first_three_hundred_signs(text):
    rows = [(iri("urn:x:" + "y" * 400), iri("urn:x:p"), text), (iri("urn:x:1"), iri("urn:x:p"), '"b"')]
    (found,) = refusal(read_back, rows).violations
    assert found.value == "<urn:x:" + "y" * 293
    assert found.message.endswith(f": {found.value}")


def test_what_the_writer_or_a_later_memory_says_of_a_memory_is_not_told_again(memory):
    item = kept(memory, idempotency_key="k")
    assert "extra_triples" not in memory.writer.restated("p", item)
    names = [
        "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
        "idempotencyKey", "supersededBy", "invalidatedBy", "aboutBlob", "confirmedBy", "quarantined", "proposedBecause",
    ]  # fmt: skip
    rows = [(iri(item), jido(name), value) for name in names for value in ("<urn:x:1>", '"a"')]
    assert restate(iri(item), rows, {}) == {"iri": item}


def test_what_has_the_name_of_a_field_elsewhere_is_told_again_beside_it():
    rows = [("<urn:x:1>", f"<https://example.org/{name}>", '"a"') for name in ("status", "summary")]
    text = {"@value": "a", "@type": "http://www.w3.org/2001/XMLSchema#string"}
    extra = [[predicate[1:-1], text] for _, predicate, _ in rows]
    assert restate("<urn:x:1>", rows, {}) == {"iri": "urn:x:1", "extra_triples": extra}
