"""Any input ends in a coded refusal or a receipt; never in another error, never in half a file."""

import math
from weakref import WeakKeyDictionary

import pytest
from conftest import decision, examples, files, fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st
from writing import GRAPH, MEMORY, committed_triples, refusal, triples_of, values_of

import jidomem
from jidomem import JidomemError, Receipt
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import XSD, iri
from jidomem.rdf.vocab import TYPE, jido
from jidomem.records.intent import INTENT_FIELDS

JIDO = "https://jido.ai/ontology#"
KNOWN = "https://jido.ai/memory/0197a1b2-0000-7000-8000-00000000abcd"
LONG = "x" * (256 * 1024 + 1)


@pytest.fixture
def memory_with_decision(memory):
    memory.writer.submit_intent("p", decision(iri=KNOWN, summary="the port is 80", topic="port"))
    return memory


@pytest.fixture(scope="module")
def base_memory(tmp_path_factory):
    """A memory with one decision for tests of refusals: `refused` asserts that each leaves it unchanged."""
    with jidomem.open(tmp_path_factory.mktemp("unchanged"), sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision(iri=KNOWN, summary="the port is 80", topic="port"))
        yield memory


#: The state of each memory after the last submission: nothing changes it until the next one.
STATES = WeakKeyDictionary()


def state_of(memory):
    """Return the bytes of the files of a memory, and its triples."""
    return files(memory.settings.root), triples_of(memory) if memory.projects() else set()


def submit(memory, proposal, project="p"):
    """Submit a proposal and return its receipt, or a coded refusal that changed no byte."""
    before = STATES.get(memory) or state_of(memory)
    try:
        outcome = memory.writer.submit_intent(project, proposal)
    except JidomemError as error:
        outcome = error
    STATES[memory] = after = state_of(memory)
    if isinstance(outcome, Receipt):
        assert before[0].items() <= after[0].items()
    else:
        assert after == before
        assert outcome.code
        assert outcome.detail
    return outcome


def is_consistent(memory):
    """Return whether the journal verifies from disk and equals the index."""
    committed_triples(memory)
    with jidomem.open(memory.settings.root) as reopened:
        return triples_of(reopened) == triples_of(memory)


def refused(memory, **fields):
    outcome = submit(memory, intent(**{"summary": "hostile", **fields}))
    assert isinstance(outcome, JidomemError), outcome
    return outcome


# --- project ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "project",
    [
        "../p", "../../etc/passwd", "/etc/passwd", "p/../q", "p/", "./p", ".", "..", "", " ", "p ", "P", "pé", "p\x00",
        "p\n", "-p", "_p", "x" * 65, "p" * 5000, "\ud800", "%2e%2e", "p;q", "C:\\p", "p\\..\\q", "\u202ep", "ｐ",
    ],
)  # fmt: skip
def test_a_hostile_project_id_is_refused_and_creates_no_file(tmp_path, project):  # C028
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        for call in (memory.writer.submit_intent, memory.reader.list_open_tasks):
            arguments = (intent(applies_to_project=project),) if call == memory.writer.submit_intent else ()
            assert refusal(call, project, *arguments).code in ("invalid_project", "unknown_project")
    assert [*tmp_path.rglob("*")] == []


@pytest.mark.parametrize("project", [None, 5, b"p", ["p"], True])
def test_a_project_id_of_another_type_is_refused(memory, project):  # C028
    assert refusal(memory.writer.submit_intent, project, intent()).code in ("invalid_project", "invalid_argument")
    assert [*memory.settings.root.rglob("*")] == []


# --- IRIs ------------------------------------------------------------------------------------------------------------

HOSTILE_IRIS = (
    "javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "ftp://example.org/a", "https://a b", "http://[",
    "http://[::1", "http://a:b:c/", "https://exa mple.org/", "http://" + "x" * 10_000 + " ", "https://example.org/%zz",
    "https://example.org/\x00", "https://example.org/\x1b[31m", "https://example.org/\u202e",
    "https://example.org/\ud800",
    "https://example.org/> <urn:x> <urn:y> .", "https://example.org/\n<urn:a> <urn:b> <urn:c> .", "urn:", "urn",
    "https:",
    "http://", "://", "_:b0", "<>", "<https://example.org/a", "\u200bhttps://example.org/a", "http://\u0000",
)  # fmt: skip


@pytest.mark.parametrize(
    "field", ["iri", "asserted_by", "asserted_in", "evidence", "about", "supersedes", "coexists_with", "tracked_by"]
)
def test_a_hostile_iri_is_refused_or_stored_as_text(memory_with_decision, field):  # C034
    lists = ("evidence", "about", "supersedes", "coexists_with")
    for number, value in enumerate(HOSTILE_IRIS):
        fields = {field: [value] if field in lists else value}
        outcome = submit(memory_with_decision, intent(summary=f"hostile {number}", **fields))
        if field in ("iri", "supersedes", "coexists_with"):
            assert isinstance(outcome, JidomemError), value
    assert is_consistent(memory_with_decision)


@pytest.mark.parametrize("value", HOSTILE_IRIS, ids=lambda value: ascii(value[:40]))
def test_a_hostile_iri_in_extra_triples_is_refused(base_memory, value):  # C034
    for triple in (
        [value, "jido:key", "x"],
        ["this", value, "x"],
        ["this", "https://example.org/p", {"@id": value}],
        ["this", "https://example.org/p", {"@value": "x", "@type": value}],
    ):
        refused(base_memory, extra_triples=[triple])


@pytest.mark.parametrize(
    "reserved",
    [
        f"{JIDO}Fact", "https://jido.ai/shapes#x", "https://jido.ai/agents/architect", "https://jido.ai/agents/new",
        "https://jido.ai/projects/p", "https://jido.ai/sessions/s-1", "https://jido.ai/evidence/x", "urn:jido:this",
        "urn:jido:commit:" + "0" * 64, GRAPH, "https://jido.ai/graphs/ontology", "https://jido.ai/memory/",
        "https://jido.ai/memory/a/b", "https://jido.ai/submissions/x", f"{KNOWN}/alternatives/1",
    ],
)  # fmt: skip
def test_an_own_iri_in_a_reserved_namespace_is_refused(base_memory, reserved):  # C034
    assert refused(base_memory, iri=reserved).code in ("invalid_iri", "iri_exists")


@pytest.mark.parametrize(
    "name",
    [
        KNOWN, MEMORY + "nobody", "https://jido.ai/projects/p", "urn:jido:this", GRAPH,
        "urn:jido:commit:" + "0" * 64, f"{JIDO}Fact", f"{JIDO}High", "jido:Asserted", "https://jido.ai/evidence/x",
        "https://jido.ai/graphs/ontology", "https://jido.ai/shapes#x", "https://jido.ai/submissions/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["asserted_by", "asserted_in", "assigned_to"])
def test_an_iri_that_is_no_agent_or_session_is_refused_as_one(base_memory, field, name):  # C043 C044
    before = triples_of(base_memory)
    refused(base_memory, type="task", **{field: name})
    assert triples_of(base_memory) == before


@pytest.mark.parametrize("field", ["asserted_by", "asserted_in", "assigned_to"])
def test_a_memory_is_not_its_own_agent_or_session(base_memory, field):  # C043
    refused(base_memory, type="task", iri="urn:x:1", **{field: "urn:x:1"})


def test_an_agent_iri_is_refused_as_a_session_and_a_session_iri_as_an_agent(base_memory):  # C043
    refused(base_memory, asserted_in="https://jido.ai/agents/architect")
    refused(base_memory, asserted_by="https://jido.ai/sessions/s-1")
    refused(base_memory, asserted_by="https://example.org/same", asserted_in="https://example.org/same")


# --- texts -----------------------------------------------------------------------------------------------------------

TEXTS = (
    'say "hi"', '"""', "'''", '""" .\n<urn:a> <urn:b> <urn:c> .', "a\nb\r\nc\td", "\\", "\\u0041", "\u202eevil\u202c",
    "\u200f\u200e", "<b>&amp;</b>", "{{7*7}}", "'; DROP TABLE x; --", "} INSERT DATA { <a> <b> <c> }", "\x7f\x85",
    "e\u0301",
    "\U0001f600", "@prefix : <x> .", "# comment", "a\u2028b\u2029c", "jido:Fact", "https://example.org/a",
    "x" * 256 * 1024,
)  # fmt: skip
BAD_TEXTS = ("a\x00b", "\ud800", "a\udfffb", "\x1b[2J", "a\x07", "\ufffe", LONG, "é" * (128 * 1024) + "x")


@pytest.mark.parametrize("text", TEXTS, ids=lambda value: ascii(value[:30]))
def test_a_valid_text_is_stored_unchanged(memory_with_decision, text):  # C073
    fields = {"summary": text, "rationale": text, "topic": text, "extra_triples": [["jido:key", {"@value": text}]]}
    receipt = submit(memory_with_decision, intent(**fields))
    assert isinstance(receipt, Receipt)
    with jidomem.open(memory_with_decision.settings.root) as reopened:
        properties = reopened.reader.get_memory("p", receipt.iri)["properties"]
    assert [properties[name] for name in ("summary", "rationale", "topic")] == [[text.strip()]] * 3
    assert properties["key"] == [text]
    assert is_consistent(memory_with_decision)


@pytest.mark.parametrize("text", BAD_TEXTS, ids=lambda value: ascii(value[:20]))
@pytest.mark.parametrize("field", ["summary", "rationale", "topic", "asserted_by", "evidence", "about", "extra", "key"])
def test_an_invalid_text_is_refused_in_every_field(base_memory, field, text):  # C073
    fields = {
        "evidence": {"evidence": [text]},
        "about": {"about": ["a", text]},
        "extra": {"extra_triples": [["jido:key", {"@value": text}]]},
        "key": {"idempotency_key": text},
    }
    error = refused(base_memory, **fields.get(field, {field: text}))
    assert error.code in ("invalid_argument", "payload_too_large", "invalid_iri")
    assert len(str(error.to_dict())) < 5_000
    str(error).encode()


@pytest.mark.parametrize("text", ["\ud800", "\x00", "x" * 100_000])
def test_an_unknown_key_or_type_of_any_form_is_refused(memory_with_decision, text):  # C051
    for proposal in ({text: "x", **intent()}, intent(type=text), intent(type="task", status=text)):
        error = submit(memory_with_decision, proposal)
        assert isinstance(error, JidomemError)


# --- wrong types -----------------------------------------------------------------------------------------------------

JUNK = (
    0, -1, 1.5, math.nan, math.inf, -math.inf, True, False, [], {}, [[]], [{}], [None], [1], {"a": 1}, b"x", (1, 2),
    {1, 2},
    object(), "", " ", 10**400, [["a"]], [[["a"]]], [["a", "b", "c", "d"]], [[None, None]], [[{}, {}, {}]], ["x", 5],
    [["jido:key", {"@value": {"@value": "x"}}]], [["jido:key", {"@id": 5}]], [["jido:key", {"@id": "urn:x",
    "@value": "y"}]],
    [["jido:key", math.nan]], [["jido:key", math.inf]], [["jido:key", None]], [["jido:key", []]], [["jido:key",
    10**5000]],
    [["jido:key", {"@value": "x", "@language": "not a tag!"}]], [["jido:key", {"@value": "x", "@language": "en--ltr"}]],
    [["jido:key", {"@value": "x", "@type": "jido:"}]], [["jido:key", {"@value": "x", "@type": ""}]], [[5, 5]],
    [b"xx"], "abc",
)  # fmt: skip


@pytest.mark.parametrize("field", INTENT_FIELDS)
def test_a_value_of_a_wrong_type_has_a_coded_outcome_and_leaves_the_memory_consistent(
    memory_with_decision, field
):  # C009 C051
    for n, value in enumerate(JUNK):
        outcome = submit(memory_with_decision, decision(summary=f"junk {n}", iri=f"urn:x:{n}") | {field: value})
        assert str(outcome.to_dict())
    assert is_consistent(memory_with_decision)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 1.0000001, -0.0000001, 10**400, True, False, "NaN", "inf"]
)
def test_an_invalid_confidence_is_refused(base_memory, value):  # C035
    assert refused(base_memory, confidence=value).code in ("invalid_confidence", "invalid_argument")


@pytest.mark.parametrize("proposal", [None, 5, "x", [], [1], True, object(), b"{}", {5: 6}, {None: 1}, {("a",): 1}])
def test_a_value_that_is_no_intent_is_refused(memory_with_decision, proposal):  # C001
    assert isinstance(submit(memory_with_decision, proposal), JidomemError)


# --- extra triples ---------------------------------------------------------------------------------------------------

WRITER_ONLY = (
    "recordedAt", "recordedIn", "hasAssertionStatus", "conflictKey", "conflictsWith", "requestDigest", "receipt",
    "revives", "supersededBy", "invalidatedBy", "supersedes", "invalidates", "summary", "assertedBy", "assertedIn",
    "appliesToProject", "hasConfidence", "confidenceValue", "hasTimestamp", "idempotencyKey", "coexistsWith",
)  # fmt: skip
OBJECTS = ({"@id": KNOWN}, "x", 5, {"@value": "2026-11-21T08:00:00Z", "@type": "xsd:dateTime"}, {"@id": "jido:High"})


@pytest.mark.parametrize("name", WRITER_ONLY)
@pytest.mark.parametrize("subject", ["this", KNOWN, "https://example.org/x"])
def test_properties_of_the_writer_are_refused_in_extra_triples(base_memory, name, subject):  # C012 C015
    for number, value in enumerate(OBJECTS):
        refused(base_memory, extra_triples=[[subject, (f"jido:{name}", f"<{JIDO}{name}>")[number % 2], value]])


@pytest.mark.parametrize(
    "subject",
    [
        KNOWN, "https://jido.ai/agents/architect", "https://jido.ai/agents/new", "https://jido.ai/sessions/s-1",
        "https://jido.ai/projects/p", "https://jido.ai/projects/q", "urn:jido:this", "urn:jido:commit:" + "0" * 64,
        "https://jido.ai/evidence/x", "https://jido.ai/submissions/x", MEMORY + "new", GRAPH, f"{JIDO}Fact",
        "jido:High", "https://jido.ai/shapes#x", "https://jido.ai/graphs/ontology",
    ],
)  # fmt: skip
def test_extra_triples_about_other_resources_of_jidomem_are_refused(base_memory, subject):  # C012 C015
    for triple in (
        [subject, "jido:key", "x"],
        [subject, "rdfs:label", "x"],
        [subject, "https://example.org/p", "x"],
        [subject, "rdf:type", {"@id": "jido:Fact"}],
        [subject, "rdf:type", {"@id": "jido:Agent"}],
        [subject, "rdf:type", {"@id": "https://example.org/Thing"}],
    ):
        refused(base_memory, extra_triples=[triple])


def test_extra_triples_about_another_memory_are_refused(memory):  # C012 C015
    memory.writer.submit_intent("p", intent(iri="https://example.org/mine"))
    for triple in (["https://example.org/mine", "jido:key", "x"], ["https://example.org/mine", "jido:topic", "x"]):
        refused(memory, extra_triples=[triple])


@pytest.mark.parametrize("cls", ["jido:Agent", "jido:Commit", "jido:DeletedMarker", "jido:Decision", "jido:Submission"])
def test_extra_triples_that_give_the_memory_another_class_are_refused(base_memory, cls):  # C042
    refused(base_memory, extra_triples=[["rdf:type", {"@id": cls}]])


@pytest.mark.parametrize("cls", ["jido:Agent", "jido:Commit", "jido:Fact", "jido:WorkSession", "jido:Submission"])
def test_extra_triples_that_create_instances_of_the_writers_classes_are_refused(base_memory, cls):  # C012
    refused(base_memory, extra_triples=[["https://example.org/x", "rdf:type", {"@id": cls}]])


@pytest.mark.parametrize(
    "predicate", ["urn:jido:this", "urn:jido:commit:" + "0" * 64, "https://jido.ai/memory/x", KNOWN]
)
def test_a_resource_of_jidomem_is_refused_as_a_property(base_memory, predicate):  # C043
    refused(base_memory, extra_triples=[["this", predicate, "x"]])


@pytest.mark.parametrize("position", ["@id", "@type"])
def test_the_iri_of_the_commit_is_refused_in_extra_triples(base_memory, position):  # C012
    value = {"@id": "urn:jido:this"} if position == "@id" else {"@value": "x", "@type": "urn:jido:this"}
    refused(base_memory, extra_triples=[["this", "https://example.org/p", value]])


@pytest.mark.parametrize("field", ["about", "evidence", "tracked_by", "summary", "topic"])
def test_the_iri_of_the_commit_in_a_field_is_refused_or_stored_as_text(memory_with_decision, field):  # C012
    submit(
        memory_with_decision,
        intent(summary="hostile") | {field: ["urn:jido:this"] if field in ("about", "evidence") else "urn:jido:this"},
    )
    assert is_consistent(memory_with_decision)
    commits = {s for s, p, o in triples_of(memory_with_decision) if (p, o) == (TYPE, jido("Commit"))}
    assert not [
        t for t in triples_of(memory_with_decision) if t[0] in commits and t[1] in (jido("summary"), jido("about"))
    ]


@pytest.mark.parametrize(
    ("name", "text", "datatype"),
    [
        ("expiresOn", "abc", "dateTime"), ("expiresOn", "2026-13-45T99:99:99Z", "dateTime"), ("verified", "maybe",
        "boolean"),
        ("expiresOn", "2026-11-21", "date"), ("verified", "2", "integer"), ("confidenceValue", "x", "decimal"),
    ],
)  # fmt: skip
def test_an_ill_typed_literal_is_refused(base_memory, name, text, datatype):  # C041 C043
    refused(base_memory, extra_triples=[[f"jido:{name}", {"@value": text, "@type": XSD + datatype}]])


def test_an_ill_typed_literal_of_a_foreign_property_leaves_the_memory_consistent(memory_with_decision):  # C007
    ill_typed = {"@value": "abc", "@type": XSD + "dateTime"}
    submit(memory_with_decision, intent(summary="odd", extra_triples=[["https://example.org/p", ill_typed]]))
    assert is_consistent(memory_with_decision)


def test_extra_triples_are_stored_up_to_the_limit_and_refused_above_it(memory_with_decision):
    extra = [["https://example.org/p", n] for n in range(501)]
    assert refused(memory_with_decision, extra_triples=extra).code == "payload_too_large"
    assert isinstance(submit(memory_with_decision, intent(summary="many", extra_triples=extra[:500])), Receipt)
    assert is_consistent(memory_with_decision)


@pytest.mark.parametrize("name", ["about", "evidence", "alternatives"])
def test_a_list_above_the_entry_limit_is_refused_with_its_name_size_and_limit(base_memory, name):
    refusal = refused(base_memory, **{name: [f"entry {n}" for n in range(1001)]})
    assert refusal.code == "payload_too_large"
    assert refusal.detail == f"{name} has 1,001 entries; it holds at most 1,000"


def test_entries_up_to_the_limit_are_stored(memory_with_decision):
    assert isinstance(
        submit(memory_with_decision, intent(summary="many", about=[f"src/{n}.py" for n in range(1000)])), Receipt
    )
    assert is_consistent(memory_with_decision)


def test_a_reference_to_a_memory_of_another_project_is_refused(memory_with_decision):  # C046 C047
    other = memory_with_decision.writer.submit_intent("q", intent(applies_to_project="q")).iri
    for fields in (
        {"supersedes": [other]},
        {"extra_triples": [[other, "jido:key", "x"]]},
        {"extra_triples": [["jido:relatedError", {"@id": other}]], "type": "error"},
        {"about": [other]},
        {"evidence": [other]},
    ):
        refused(memory_with_decision, **fields)
    assert not [t for t in triples_of(memory_with_decision) if other in (t[0][1:-1], t[2][1:-1])]


def test_an_attempt_to_rewrite_a_memory_is_refused(base_memory):  # C012 C014
    assert refused(base_memory, iri=KNOWN).code == "iri_exists"
    assert refused(base_memory, iri=KNOWN.upper().replace("HTTPS://JIDO.AI/MEMORY", "https://jido.ai/memory")).code in (
        "invalid_iri", "iri_exists",
    )  # fmt: skip
    assert values_of(base_memory, KNOWN, "summary") == ['"the port is 80"']


def test_agent_names_are_normalized_without_merging_dots_and_underscores(
    memory_with_decision,
):  # C036
    names = ["a b", "a-b", "A B", "a_b", "a.b"]
    receipts = [submit(memory_with_decision, intent(summary=f"by {name}", asserted_by=name)) for name in names]
    agents = [values_of(memory_with_decision, receipt.iri, "assertedBy")[0] for receipt in receipts]
    assert agents == [f"<https://jido.ai/agents/{name}>" for name in ("a-b", "a-b", "a-b", "a_b", "a.b")]


@pytest.mark.parametrize("name", ["..", "../x", "/", "???", "-", "💥", "x" * 201, "\u202e"])
def test_an_agent_name_without_letters_is_refused_or_normalized(memory_with_decision, name):  # C036
    outcome = submit(memory_with_decision, intent(summary="by nobody", asserted_by=name))
    if isinstance(outcome, Receipt):
        (agent,) = values_of(memory_with_decision, outcome.iri, "assertedBy")
        assert agent.startswith("<https://jido.ai/agents/")
        assert "/" not in agent[len("<https://jido.ai/agents/") :]
    assert is_consistent(memory_with_decision)


# --- fuzzed intents ---------------------------------------------------------------------------------------------------

fuzz_texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from([
        *HOSTILE_IRIS, *BAD_TEXTS[:5], KNOWN, "jido:Fact", "jido:key", "this", "fact", "task", "decision", "high",
        "p", "s-1",
        "architect", "urn:jido:this", "2026-11-21", "0000abcd", "https://example.org/a",
        "https://jido.ai/agents/architect",
        "rdf:type", "jido:supersededBy", "@id", "@value", "@type", "xsd:dateTime",
    ]),
)  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | fuzz_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fuzz_texts, inner, max_size=3),
    max_leaves=8,
)
fuzzed_fields = st.dictionaries(st.sampled_from([*INTENT_FIELDS]) | fuzz_texts, json_values, max_size=5)


@pytest.fixture(scope="module")
def fuzz_memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("fuzz"), sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent(iri=KNOWN, summary="the port is 80", topic="port"))
        yield memory


@given(fuzzed_fields, st.booleans())
@settings(max_examples=examples(100), derandomize=True)
def test_any_fuzzed_intent_ends_in_a_receipt_or_a_coded_refusal(fuzz_memory, fields, complete):  # C019
    outcome = submit(fuzz_memory, (decision() | fields) if complete else fields)
    assert str(outcome.to_dict())
    assert not [*fuzz_memory.settings.root.rglob(".incoming.lock")]


def test_the_memory_after_the_fuzz_is_consistent_and_unchanged(fuzz_memory):  # C079
    assert fuzz_memory.journal.verify(Stream("p")) == ()
    assert is_consistent(fuzz_memory)
    assert {o for _, _, o in fuzz_memory.index.triples(GRAPH, iri(KNOWN), jido("summary"))} == {'"the port is 80"'}
