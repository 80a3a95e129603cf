"""Stage 1: an intent in its one written form."""

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


def normal(**fields):
    ids = count(1)
    return normalize(
        MemoryUpdateIntent(**intent(**fields)), now=START, new_id=lambda: f"id-{next(ids)}", schema=SCHEMA
    ).intent


def test_an_iri_is_made_below_the_memory_namespace_from_the_id_source():  # C029
    assert normal().iri == MEMORY + "id-1"
    assert normal(iri="https://example.org/mine").iri == "https://example.org/mine"


def test_ids_are_uuid7_and_ordered_by_time():  # C029
    ids = [clock.new_id() for _ in range(1000)]
    assert all(len(one) == 36 and one[14] == "7" and one[19] in "89ab" for one in ids)
    assert [one[:13] for one in ids] == sorted(one[:13] for one in ids)


def test_ids_of_one_millisecond_differ(tmp_path):  # C030
    ids = [clock.new_id() for _ in range(20_000)]
    assert len(set(ids)) == len(ids)
    assert len({one[:13] for one in ids}) < len(ids)  # many of them fell into one millisecond
    with jidomem.open(tmp_path / "root") as memory:
        receipts = memory.writer.submit_many("p", [intent(summary=f"s {n}") for n in range(20)])
    assert len({receipt.iri for receipt in receipts}) == 20


def test_the_time_is_filled_from_the_clock_when_missing():  # C031
    assert normal().timestamp == "2026-11-21T08:00:00.000000Z"
    assert normal(timestamp="2025-01-02").timestamp == "2025-01-02T00:00:00.000000Z"


def test_what_was_filled_is_said_in_the_receipt(writer):  # C031 C029
    receipt = writer.submit_intent("p", intent(type="task"))
    assert receipt.filled == {"iri": receipt.iri, "timestamp": "2026-11-21T08:00:00.000000Z", "status": "Planned"}


def test_text_is_trimmed_in_fields_and_lists():  # C032
    found = normal(summary="  a \n", rationale="\tb", evidence=["  c "], about=[" d"], topic=" e ")
    assert (found.summary, found.rationale, found.evidence, found.about, found.topic) == ("a", "b", ["c"], ["d"], "e")


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "  ", "　"])
def test_a_blank_summary_counts_as_missing(writer, blank):  # C033
    assert normal(rationale=blank).rationale is None
    error = refusal(writer.submit_intent, "p", intent(summary=blank))
    assert error.code == "missing_required_fields"
    assert error.violations[0].field == "summary"


def test_blank_entries_of_a_list_are_left_out():  # C033
    assert normal(evidence=["", "  ", "x", "x "]).evidence == ["x"]


@pytest.mark.parametrize(
    "given", ["https://example.org/a", "http://example.org/a?b=c#d", "urn:x:y", "https://é.example/ü"]
)
def test_a_caller_may_give_an_absolute_iri(writer, given):  # C034
    assert writer.submit_intent("p", intent(iri=given)).iri == given


@pytest.mark.parametrize(
    "given",
    [
        "https://example.org/a b", "https://example.org/a\tb", "ftp://example.org/a", "javascript:alert(1)", "a",
        "file:///etc/passwd", "//example.org/a", "https://", "urn:", "https://example.org/<a>", "https://a/{b}",
        "https://example.org/a\\b", "https://example.org/a|b", "https://example.org/^", 'https://example.org/"',
        "https://example.org/a\x7f", "https://example.org/a\u0085b", "https://example.org/a\u2028b", "_:b0",
    ],
)  # fmt: skip
def test_any_other_iri_is_refused(writer, given):  # C034
    assert refusal(writer.submit_intent, "p", intent(iri=given)).code == "invalid_iri"


@pytest.mark.parametrize("taken", ["https://example.org/a", "https://example.org/evidence", "https://example.org/file"])
def test_an_iri_that_is_described_or_pointed_at_is_not_fresh(writer, taken):  # C034
    said = {"evidence": ["https://example.org/evidence"], "about": ["https://example.org/file"]}
    writer.submit_intent("p", intent(iri="https://example.org/a", **said))
    assert refusal(writer.submit_intent, "p", intent(iri=taken, summary="other")).code == "iri_exists"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("lesson", "lesson_learned"), ("LessonLearned", "lesson_learned"), ("lesson-learned", "lesson_learned"),
        ("Architectural Decision", "architectural_decision"), ("ArchitecturalDecision", "architectural_decision"),
        ("jido:Fact", "fact"), ("https://jido.ai/ontology#Bug", "bug"), (" FACT ", "fact"),
    ],
)  # fmt: skip
def test_the_names_of_a_type_are_one(given, kind):  # C035
    assert normal(type=given).type == kind


@pytest.mark.parametrize(
    ("given", "kept"),
    [("High", "high"), (" LOW ", "low"), ("jido:Medium", "medium"), (0.9, 0.9), (1, 1.0), ("0.25", 0.25), (0, 0.0)],
)
def test_a_confidence_is_a_level_or_the_exact_number(given, kept):  # C035
    assert normal(confidence=given).confidence == kept


@pytest.mark.parametrize(
    ("number", "level"), [(1.0, "High"), (0.8, "High"), (0.79, "Medium"), (0.5, "Medium"), (0.49, "Low"), (0.0, "Low")]
)
def test_a_number_is_kept_with_its_level(memory, number, level):  # C035
    item = memory.writer.submit_intent("p", intent(confidence=number)).iri
    assert values_of(memory, item, "hasConfidence") == [f"<https://jido.ai/ontology#{level}>"]
    assert memory.reader.get_memory("p", item)["properties"]["confidenceValue"] == [number]


@pytest.mark.parametrize("given", [1.1, -0.1, float("nan"), float("inf"), "sure", True, "nan", "1e999", [0.5], {}])
def test_any_other_confidence_is_refused(writer, given):  # C035
    assert refusal(writer.submit_intent, "p", intent(confidence=given)).code in (
        "invalid_confidence",
        "invalid_argument",
    )


def test_plain_names_become_iris_by_one_rule():  # C036
    found = normal(asserted_by="  The Architect ", asserted_in="S 42", applies_to_project="p")
    assert found.asserted_by == AGENTS + "the-architect"
    assert found.asserted_in == "https://jido.ai/sessions/s-42"
    assert found.applies_to_project == "https://jido.ai/projects/p"


def test_iris_and_prefixed_names_of_agents_are_kept():  # C036
    assert normal(asserted_by="https://example.org/me").asserted_by == "https://example.org/me"
    assert normal(asserted_by="jido:me").asserted_by == "https://jido.ai/ontology#me"


def test_moments_are_written_in_utc():  # C031
    east = datetime(2026, 11, 21, 10, 0, tzinfo=timezone(timedelta(hours=2)))
    assert normal(timestamp=east).timestamp == "2026-11-21T08:00:00.000000Z"
    assert normal(valid_from="2026-11-21T10:00:00+02:00").valid_from == "2026-11-21T08:00:00.000000Z"
    assert normal(expires_on="2026-11-21T08:00:00.5").expires_on == "2026-11-21T08:00:00.500000Z"


nasty = st.one_of(
    st.text(max_size=20),
    st.text(" \t\n\u00a0\u2003\ufeff:/<>\"'\\#@_-.jidohtpsurnAaÄäßİΣ", max_size=20),
    st.sampled_from([
        "https://jido.ai/agents/X Y", "<https://Example.org/A>", "jido:Fact", "urn:x", "URN:X", "https:/a", "a b",
        "https://jido.ai/memory/ABC", "0190abcd", "this", "_:b", "2026-11-21", "21.11.2026", "e\u0301", "\u202eabc",
        "\x85x",
    ]),
)  # fmt: skip
objects = st.one_of(
    nasty,
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.builds(lambda text: {"@value": text}, nasty),
    st.builds(lambda text: {"@id": text}, nasty),
    st.builds(lambda text, tag: {"@value": text, "@language": tag}, nasty, st.sampled_from(["en", "de-AT", "x"])),
    st.builds(
        lambda text, kind: {"@value": text, "@type": kind}, nasty, st.sampled_from(["xsd:string", "xsd:integer"])
    ),
)
triple_lists = st.lists(
    st.tuples(st.sampled_from(["jido:topic", "https://example.org/p", "jido:expiresOn", "rdf:type"]), objects).map(list)
    | st.tuples(st.sampled_from(["this", "https://example.org/s"]), nasty, objects).map(list),
    max_size=4,
)
intents = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["fact", "Lesson", "task", "Bug", "convention", "jido:Decision", "error"]) | nasty,
        **dict.fromkeys(
            ["iri", "summary", "rationale", "asserted_by", "asserted_in", "topic", "status", "severity", "assigned_to",
             "convention_name", "convention_scope", "enforcement_level", "tracked_by", "expires_on", "source_type"],
            nasty,
        ),
        "confidence": nasty | st.floats() | st.integers() | st.booleans(),
        **dict.fromkeys(["evidence", "supersedes", "about", "alternatives"], st.lists(nasty, max_size=3)),
        "extra_triples": triple_lists,
    },
)  # fmt: skip


@given(intents)
@example({"asserted_by": "İ"})
@example({"asserted_by": "ﬀ\u0345"})
@example({"extra_triples": [["jido:about", " https://example.org/x"], ["jido:topic", {"@value": "\u2028"}]]})
@example({"about": ["\x85https://example.org/x"]})
@settings(max_examples=600, derandomize=True)
def test_normalising_twice_changes_nothing(fields):  # C037
    tools = {"now": START, "new_id": lambda: "id-1", "schema": SCHEMA}
    try:
        once = normalize(MemoryUpdateIntent(**{**intent(), **fields}), **tools)
    except JidomemError:
        return
    again = normalize(once.intent, now=START + timedelta(days=1), new_id=lambda: "id-2", schema=SCHEMA)
    assert again.intent == once.intent
    assert again.filled == {}


def test_a_repeated_reference_or_triple_is_kept_once():  # C037
    found = normal(
        supersedes=[MEMORY + "a", f"{MEMORY}a "],
        extra_triples=[["jido:key", "x"], ["this", "https://jido.ai/ontology#key", " x"]],
    )
    assert found.supersedes == [MEMORY + "a"]
    assert len(found.extra_triples) == 1


def test_every_value_without_a_form_is_listed_in_one_refusal():  # C035
    error = refusal(normal, confidence="certain", type="notion", iri="a b", expires_on="soon")
    assert [violation.field for violation in error.violations] == ["type", "iri", "confidence", "expires_on"]


def test_the_clock_is_not_read_for_a_given_time(memory):  # C031
    item = memory.writer.submit_intent("p", decision(timestamp="1999-12-31T23:59:59Z")).iri
    found = memory.reader.get_memory("p", item)
    assert found["properties"]["hasTimestamp"] == [datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)]
    assert found["recorded_at"] == START


def test_what_is_said_of_another_thing_leaves_the_memory_its_default():
    said = ["jido:hasTaskStatus", {"@id": "urn:x:Odd"}]
    assert normal(type="task", extra_triples=[["urn:x:1", *said]]).status == "Planned"
    assert normal(type="task", extra_triples=[said]).status is None


ALLOWED_CONFIDENCE = ("high", "medium", "low")


@pytest.mark.parametrize(
    ("given", "shown", "near"), [("hgih", "'hgih'", "high"), ("certain", "'certain'", None), (2, "2", None)]
)
def test_a_confidence_that_is_none_is_refused_with_those_there_are(given, shown, near):
    (found,) = refusal(normal, confidence=given).violations
    assert (found.code, found.field, found.value) == ("invalid_confidence", "confidence", shown.strip("'"))
    assert found.message == f"confidence is low, medium, high or a number from 0 to 1, not {shown}"
    assert (found.allowed, found.nearest) == (ALLOWED_CONFIDENCE, near)


@pytest.mark.parametrize(("given", "near"), [("taks", "task"), ("xyzzy", None)])
def test_a_type_that_is_none_is_refused_with_those_there_are(given, near):
    (found,) = refusal(normal, type=given).violations
    assert (found.code, found.field, found.value, found.nearest) == ("unknown_type", "type", given, near)
    assert found.message == f"{given!r} is not a type of memory" + (f"; did you mean {near!r}?" if near else "")
    assert set(found.allowed) == {*CLASS_OF_TYPE, "lesson"} - {"deleted_marker"}


@pytest.mark.parametrize("field", ["expires_on", "valid_from", "valid_until", "timestamp"])
@pytest.mark.parametrize(("given", "near"), [("21.11.2026", "2026-11-21T00:00:00.000000Z"), ("soon", None)])
def test_a_moment_that_is_none_is_refused_with_how_one_is_written(field, given, near):
    (found,) = refusal(normal, **{field: given}).violations
    assert (found.code, found.field, found.value, found.nearest) == ("shape_violation", field, given, near)
    assert found.message == f"{field} is an ISO 8601 date or moment such as 2026-11-21T08:00:00Z, not {given!r}"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "src/../../x", ".."])
def test_a_memory_is_about_no_path_outside_the_folder_of_the_memory(path):
    (found,) = refusal(normal, about=["src/a.py", path]).violations
    assert (found.code, found.field, found.value) == ("invalid_argument", "about", path)
    assert found.message == f"about names places below the folder that contains the memory, and {path} is outside"
    for other in ("src/../a.py", "...", "https://example.org/../x", "a..b"):
        assert normal(about=[other]).about


@pytest.mark.parametrize("given", ["https://example.org/5", "http://example.org/5"])
def test_what_tracks_a_memory_is_a_url(given):
    assert normal(tracked_by=given).tracked_by == given
    (found,) = refusal(normal, tracked_by="issue 5").violations
    assert (found.code, found.field, found.value) == ("invalid_iri", "tracked_by", "issue 5")
    assert found.message == "tracked_by is a URL: start it with https://"


@pytest.mark.parametrize("field", ["supersedes", "invalidates", "coexists_with", "revives"])
def test_the_name_of_a_memory_is_left_to_be_looked_up_and_an_iri_has_its_one_form(field):
    for name in ("0190", "ABCD-ef", "AGENTS.md:64", "Use a queue: because"):
        assert getattr(normal(**{field: [name]}), field) == [name]
    (found,) = refusal(normal, **{field: ["https:/jido.ai"]}).violations
    assert (found.code, found.field, found.value) == ("invalid_iri", field, "https:/jido.ai")


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("convention_scope", "project", "ProjectScope"), ("convention_scope", "Global-Scope", "GlobalScope"),
        ("source_type", "user", "UserSource"), ("source_type", "ExternalDocument", "ExternalDocumentSource"),
        ("enforcement_level", "strict", "Strict"),
    ],
)  # fmt: skip
def test_a_name_of_few_may_be_said_shortly(field, given, kept):
    assert getattr(normal(type="convention", **{field: given}), field) == kept


def test_evidence_is_kept_as_it_was_said_and_paths_in_one_form():
    found = normal(evidence=["./src//a.py", "jido:x"], about=["./src//a.py", "src/a.py", "urn:x:a"])
    assert found.evidence == ["./src//a.py", "https://jido.ai/ontology#x"]
    assert found.about == ["src/a.py", "urn:x:a"]


def test_who_where_and_for_whom_is_named_below_its_own_folder():
    base = "https://jido.ai/"
    found = normal(type="task", assigned_to="Bob", asserted_by="Ana", asserted_in="S1", applies_to_project="P")
    assert (found.assigned_to, found.asserted_by) == (base + "agents/bob", base + "agents/ana")
    assert (found.asserted_in, found.applies_to_project) == (base + "sessions/s1", base + "projects/p")
