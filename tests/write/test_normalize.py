"""Stage 1: the canonical form of an intent."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import count

import pytest
from conftest import START, decision, intent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from writing import MEMORY, refusal, values_of

import jidomem
from jidomem import MemoryUpdateIntent
from jidomem.base import clock
from jidomem.errors import JidomemError
from jidomem.rdf.vocab import CLASS_OF_TYPE
from jidomem.schema import ontology
from jidomem.write.normalize import normalize

SCHEMA = ontology.load()
AGENTS = "https://jido.ai/agents/"


def normalized(**fields):
    ids = count(1)
    return normalize(
        MemoryUpdateIntent(**intent(**fields)), now=START, new_id=lambda: f"id-{next(ids)}", schema=SCHEMA
    ).intent


def test_an_iri_is_generated_in_the_memory_namespace_from_the_id_source():  # C029
    assert normalized().iri == MEMORY + "id-1"
    assert normalized(iri="https://example.org/mine").iri == "https://example.org/mine"


def test_ids_are_uuid7_and_ordered_by_time():  # C029
    ids = [clock.new_id() for _ in range(1000)]
    assert all(len(uid) == 36 and uid[14] == "7" and uid[19] in "89ab" for uid in ids)
    assert [uid[:13] for uid in ids] == sorted(uid[:13] for uid in ids)


def test_ids_of_one_millisecond_differ(tmp_path):  # C030
    ids = [clock.new_id() for _ in range(20_000)]
    assert len(set(ids)) == len(ids)
    assert len({uid[:13] for uid in ids}) < len(ids)  # many of them fell into one millisecond
    with jidomem.open(tmp_path / "root") as memory:
        receipts = memory.writer.submit_many("p", [intent(summary=f"s {n}") for n in range(20)])
    assert len({receipt.iri for receipt in receipts}) == 20


def test_the_timestamp_is_filled_from_the_clock_when_missing():  # C031
    assert normalized().timestamp == "2026-11-21T08:00:00.000000Z"
    assert normalized(timestamp="2025-01-02").timestamp == "2025-01-02T00:00:00.000000Z"


def test_the_receipt_reports_the_filled_fields(writer):  # C031 C029
    receipt = writer.submit_intent("p", intent(type="task"))
    assert receipt.filled == {"iri": receipt.iri, "timestamp": "2026-11-21T08:00:00.000000Z", "status": "Planned"}


def test_text_is_trimmed_in_fields_and_lists():  # C032
    result = normalized(summary="  a \n", rationale="\tb", evidence=["  c "], about=[" d"], topic=" e ")
    assert (result.summary, result.rationale, result.evidence, result.about, result.topic) == (
        "a",
        "b",
        ["c"],
        ["d"],
        "e",
    )


def test_a_text_of_several_lines_keeps_the_indentation_of_the_first():
    result = normalized(detailed_explanation="\n \n    retry: 3\n      wait: 5\n", rationale=" one line \n")
    assert (result.detailed_explanation, result.rationale) == ("    retry: 3\n      wait: 5", "one line")


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "  ", "　"])
def test_a_blank_summary_counts_as_missing(writer, blank):  # C033
    assert normalized(rationale=blank).rationale is None
    error = refusal(writer.submit_intent, "p", intent(summary=blank))
    assert error.code == "missing_required_fields"
    assert error.violations[0].field == "summary"


def test_blank_entries_of_a_list_are_left_out():  # C033
    assert normalized(evidence=["", "  ", "x", "x "]).evidence == ["x"]


@pytest.mark.parametrize(
    "given", ["https://example.org/a", "http://example.org/a?b=c#d", "urn:x:y", "https://é.example/ü"]
)
def test_an_absolute_iri_of_the_caller_is_accepted(writer, given):  # C034
    assert writer.submit_intent("p", intent(iri=given)).iri == given


@pytest.mark.parametrize(
    "raw",
    [
        "https://example.org/a b", "https://example.org/a\tb", "ftp://example.org/a", "javascript:alert(1)", "a",
        "file:///etc/passwd", "//example.org/a", "https://", "urn:", "https://example.org/<a>", "https://a/{b}",
        "https://example.org/a\\b", "https://example.org/a|b", "https://example.org/^", 'https://example.org/"',
        "https://example.org/a\x7f", "https://example.org/a\u0085b", "https://example.org/a\u2028b", "_:b0",
    ],
)  # fmt: skip
def test_any_other_iri_is_refused(writer, raw):  # C034
    assert refusal(writer.submit_intent, "p", intent(iri=raw)).code == "invalid_iri"


@pytest.mark.parametrize("existing", ["https://example.org/a", "https://example.org/evidence"])
def test_an_iri_that_is_in_use_is_refused_for_a_new_memory(writer, existing):  # C034
    writer.submit_intent("p", intent(iri="https://example.org/a", evidence=["https://example.org/evidence"]))
    assert refusal(writer.submit_intent, "p", intent(iri=existing, summary="other")).code == "iri_exists"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("lesson", "lesson_learned"), ("LessonLearned", "lesson_learned"), ("lesson-learned", "lesson_learned"),
        ("Architectural Decision", "architectural_decision"), ("ArchitecturalDecision", "architectural_decision"),
        ("jido:Fact", "fact"), ("https://jido.ai/ontology#Bug", "bug"), (" FACT ", "fact"),
    ],
)  # fmt: skip
def test_spellings_of_a_type_are_normalized(raw, expected):  # C035
    assert normalized(type=raw).type == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("High", "high"), (" LOW ", "low"), ("jido:Medium", "medium"), (0.9, 0.9), (1, 1.0), ("0.25", 0.25), (0, 0.0)],
)
def test_a_confidence_is_a_level_or_the_exact_number(raw, expected):  # C035
    assert normalized(confidence=raw).confidence == expected


@pytest.mark.parametrize(
    ("number", "level"), [(1.0, "High"), (0.8, "High"), (0.79, "Medium"), (0.5, "Medium"), (0.49, "Low"), (0.0, "Low")]
)
def test_a_confidence_number_is_stored_with_its_level(memory, number, level):  # C035
    item = memory.writer.submit_intent("p", intent(confidence=number)).iri
    assert values_of(memory, item, "hasConfidence") == [f"<https://jido.ai/ontology#{level}>"]
    assert memory.reader.get_memory("p", item)["properties"]["confidenceValue"] == [number]


@pytest.mark.parametrize("raw", [1.1, -0.1, float("nan"), float("inf"), "sure", True, "nan", "1e999", [0.5], {}])
def test_any_other_confidence_is_refused(writer, raw):  # C035
    assert refusal(writer.submit_intent, "p", intent(confidence=raw)).code in (
        "invalid_confidence",
        "invalid_argument",
    )


def test_plain_names_are_normalized_to_iris():  # C036
    result = normalized(asserted_by="  The Architect ", asserted_in="S 42", applies_to_project="p")
    assert result.asserted_by == AGENTS + "the-architect"
    assert result.asserted_in == "https://jido.ai/sessions/s-42"
    assert result.applies_to_project == "https://jido.ai/projects/p"


def test_iris_of_agents_are_unchanged_and_prefixed_names_expanded():  # C036
    assert normalized(asserted_by="https://example.org/me").asserted_by == "https://example.org/me"
    assert normalized(asserted_by="jido:me").asserted_by == "https://jido.ai/ontology#me"


@pytest.mark.parametrize("name", ["me", "Myself", " self "])
def test_a_task_assigned_to_me_is_assigned_to_its_author(name):
    task = normalized(type="task", assigned_to=name, asserted_by="codex")
    assert task.assigned_to == task.asserted_by == "https://jido.ai/agents/codex"


def test_moments_are_written_in_utc():  # C031
    east = datetime(2026, 11, 21, 10, 0, tzinfo=timezone(timedelta(hours=2)))
    assert normalized(timestamp=east).timestamp == "2026-11-21T08:00:00.000000Z"
    assert normalized(valid_from="2026-11-21T10:00:00+02:00").valid_from == "2026-11-21T08:00:00.000000Z"
    assert normalized(expires_on="2026-11-21T08:00:00.5").expires_on == "2026-11-21T08:00:00.500000Z"


odd_texts = st.one_of(
    st.text(max_size=20),
    st.text(" \t\n\u00a0\u2003\ufeff:/<>\"'\\#@_-.jidohtpsurnAaÄäßİΣ", max_size=20),
    st.sampled_from([
        "https://jido.ai/agents/X Y", "<https://Example.org/A>", "jido:Fact", "urn:x", "URN:X", "https:/a", "a b",
        "https://jido.ai/memory/ABC", "0190abcd", "this", "_:b", "2026-11-21", "21.11.2026", "e\u0301", "\u202eabc",
        "\x85x",
    ]),
)  # fmt: skip
objects = st.one_of(
    odd_texts,
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.builds(lambda text: {"@value": text}, odd_texts),
    st.builds(lambda text: {"@id": text}, odd_texts),
    st.builds(lambda text, tag: {"@value": text, "@language": tag}, odd_texts, st.sampled_from(["en", "de-AT", "x"])),
    st.builds(
        lambda text, kind: {"@value": text, "@type": kind},
        odd_texts,
        st.sampled_from(["xsd:string", "xsd:integer"]),
    ),
)
triple_lists = st.lists(
    st.tuples(st.sampled_from(["jido:topic", "https://example.org/p", "jido:expiresOn", "rdf:type"]), objects).map(list)
    | st.tuples(st.sampled_from(["this", "https://example.org/s"]), odd_texts, objects).map(list),
    max_size=4,
)
intents = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["fact", "Lesson", "task", "Bug", "convention", "jido:Decision", "error"]) | odd_texts,
        **dict.fromkeys(
            ["iri", "summary", "rationale", "asserted_by", "asserted_in", "topic", "status", "severity", "assigned_to",
             "convention_name", "convention_scope", "enforcement_level", "tracked_by", "expires_on", "source_type"],
            odd_texts,
        ),
        "confidence": odd_texts | st.floats() | st.integers() | st.booleans(),
        **dict.fromkeys(["evidence", "supersedes", "about", "alternatives"], st.lists(odd_texts, max_size=3)),
        "extra_triples": triple_lists,
    },
)  # fmt: skip


@given(intents)
@example({"asserted_by": "İ"})
@example({"asserted_by": "ﬀ\u0345"})
@example({"extra_triples": [["jido:about", " https://example.org/x"], ["jido:topic", {"@value": "\u2028"}]]})
@example({"about": ["\x85https://example.org/x"]})
@settings(max_examples=600, derandomize=True)
def test_normalization_is_idempotent(fields):  # C037
    arguments = {"now": START, "new_id": lambda: "id-1", "schema": SCHEMA}
    try:
        first = normalize(MemoryUpdateIntent(**{**intent(), **fields}), **arguments)
    except JidomemError:
        return
    second = normalize(first.intent, now=START + timedelta(days=1), new_id=lambda: "id-2", schema=SCHEMA)
    assert second.intent == first.intent
    assert second.filled == {}


def test_a_repeated_reference_or_triple_is_stored_once():  # C037
    result = normalized(
        supersedes=[MEMORY + "a", f"{MEMORY}a "],
        extra_triples=[["jido:key", "x"], ["this", "https://jido.ai/ontology#key", " x"]],
    )
    assert result.supersedes == [MEMORY + "a"]
    assert len(result.extra_triples) == 1


def test_every_invalid_value_is_listed_in_one_refusal():  # C035
    error = refusal(normalized, confidence="certain", type="notion", iri="a b", expires_on="soon")
    assert [violation.field for violation in error.violations] == ["type", "iri", "confidence", "expires_on"]


def test_a_given_timestamp_is_recorded_beside_the_commit_time(memory):  # C031
    item = memory.writer.submit_intent("p", decision(timestamp="1999-12-31T23:59:59Z")).iri
    memory_row = memory.reader.get_memory("p", item)
    assert memory_row["properties"]["hasTimestamp"] == [datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)]
    assert memory_row["recorded_at"] == START


def test_a_triple_about_another_resource_leaves_the_default_status():
    status_triple = ["jido:hasTaskStatus", {"@id": "urn:x:Odd"}]
    assert normalized(type="task", extra_triples=[["urn:x:1", *status_triple]]).status == "Planned"
    assert normalized(type="task", extra_triples=[status_triple]).status is None


ALLOWED_CONFIDENCE = ("high", "medium", "low")


@pytest.mark.parametrize(
    ("raw", "shown_value", "near"), [("hgih", "'hgih'", "high"), ("certain", "'certain'", None), (2, "2", None)]
)
def test_an_invalid_confidence_is_refused_with_the_allowed_levels(raw, shown_value, near):
    (violation,) = refusal(normalized, confidence=raw).violations
    assert (violation.code, violation.field, violation.value) == (
        "invalid_confidence",
        "confidence",
        shown_value.strip("'"),
    )
    assert violation.message == f"confidence is low, medium, high or a number from 0 to 1, not {shown_value}"
    assert (violation.allowed, violation.nearest) == (ALLOWED_CONFIDENCE, near)


@pytest.mark.parametrize(("raw", "near"), [("taks", "task"), ("xyzzy", None)])
def test_an_invalid_type_is_refused_with_the_allowed_types(raw, near):
    (violation,) = refusal(normalized, type=raw).violations
    assert (violation.code, violation.field, violation.value, violation.nearest) == (
        "unknown_type",
        "type",
        raw,
        near,
    )
    assert violation.message == f"{raw!r} is not a type of memory" + (f"; did you mean {near!r}?" if near else "")
    assert set(violation.allowed) == {*CLASS_OF_TYPE, "lesson"} - {"deleted_marker"}


@pytest.mark.parametrize("field", ["expires_on", "valid_from", "valid_until", "timestamp"])
@pytest.mark.parametrize(("raw", "near"), [("21.11.2026", "2026-11-21T00:00:00.000000Z"), ("soon", None)])
def test_an_invalid_moment_is_refused_with_the_expected_form(field, raw, near):
    (violation,) = refusal(normalized, **{field: raw}).violations
    assert (violation.code, violation.field, violation.value, violation.nearest) == (
        "shape_violation",
        field,
        raw,
        near,
    )
    assert violation.message == f"{field} is an ISO 8601 date or moment such as 2026-11-21T08:00:00Z, not {raw!r}"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "src/../../x", ".."])
def test_a_path_outside_the_repository_is_refused_in_about(path):
    (violation,) = refusal(normalized, about=["src/a.py", path]).violations
    assert (violation.code, violation.field, violation.value) == ("invalid_argument", "about", path)
    assert violation.message == (
        f"about names places by their path below the folder that contains the memory, and {path} is none"
    )
    for accepted in ("src/../a.py", "...", "https://example.org/../x", "a..b"):
        assert normalized(about=[accepted]).about


@pytest.mark.parametrize("raw", ["https://example.org/5", "http://example.org/5"])
def test_tracked_by_accepts_only_a_url(raw):
    assert normalized(tracked_by=raw).tracked_by == raw
    (violation,) = refusal(normalized, tracked_by="issue 5").violations
    assert (violation.code, violation.field, violation.value) == ("invalid_iri", "tracked_by", "issue 5")
    assert violation.message == "tracked_by is a URL: start it with https://"


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with", "revives"])
def test_a_memory_reference_by_name_is_unchanged_and_a_malformed_iri_refused(field):
    for name in ("0190", "ABCD-ef", "AGENTS.md:64", "Use a queue: because"):
        assert getattr(normalized(**{field: [name]}), field) == [name]
    (violation,) = refusal(normalized, **{field: ["https:/jido.ai"]}).violations
    assert (violation.code, violation.field, violation.value) == ("invalid_iri", field, "https:/jido.ai")


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("convention_scope", "project", "ProjectScope"), ("convention_scope", "Global-Scope", "GlobalScope"),
        ("source_type", "user", "UserSource"), ("source_type", "ExternalDocument", "ExternalDocumentSource"),
        ("enforcement_level", "strict", "Strict"),
    ],
)  # fmt: skip
def test_a_choice_is_accepted_in_a_short_form(field, raw, expected):
    assert getattr(normalized(type="convention", **{field: raw}), field) == expected


def test_evidence_paths_are_unchanged_and_about_paths_normalized():
    result = normalized(evidence=["./src//a.py", "jido:x"], about=["./src//a.py", "src/a.py", "urn:x:a"])
    assert result.evidence == ["./src//a.py", "https://jido.ai/ontology#x"]
    assert result.about == ["src/a.py", "urn:x:a"]


def test_agents_sessions_and_projects_are_normalized_to_their_namespaces():
    base = "https://jido.ai/"
    result = normalized(type="task", assigned_to="Bob", asserted_by="Ana", asserted_in="S1", applies_to_project="P")
    assert (result.assigned_to, result.asserted_by) == (base + "agents/bob", base + "agents/ana")
    assert (result.asserted_in, result.applies_to_project) == (base + "sessions/s1", base + "projects/p")
