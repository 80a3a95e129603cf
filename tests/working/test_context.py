"""The context of a session: two tiers, promotion between them, and validation by the writer."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count

import pytest
from conftest import START, files, fixed_sources, intent, wait_until
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jidomem
from jidomem import ContextManager, Promotion, create_memory
from jidomem.base.clock import Sources
from jidomem.errors import Conflict, InvalidRequest, JidomemError, NotFound
from jidomem.rdf.vocab import GUIDE_TYPES
from jidomem.working import Memory
from jidomem.working.tiers import EXTENDED_RULES

JIDO = "https://jido.ai/ontology#"
DECISION = {"type": "decision", "content": "Use Oxigraph", "rationale": "it embeds"}


@pytest.fixture
def opened(tmp_path):
    sources = fixed_sources(START.replace(microsecond=123456))
    with jidomem.open(tmp_path / "root", project="p", agent="architect", sources=sources) as memory:
        yield memory


@pytest.fixture
def context(opened):
    with opened.context("s-1", interval=None) as context_manager:
        yield context_manager


def open_context(opened, session="s-2", **options):
    return opened.context(session, interval=None, **options)


def properties_of(opened, iri):
    """Return the properties of a memory."""
    return opened.reader.get_memory("p", iri)["properties"]


def active_summaries(opened):
    rows = opened.reader.ask("timeline", project="p")
    return sorted(row["summary"] for row in rows)


def journal_files(opened):
    return {name: data for name, data in files(opened.settings.root).items() if name.startswith("projects/")}


# --- storing and retrieving ------------------------------------------------------------------------------------------


def test_a_stored_value_is_in_short_term_memory_and_not_in_the_journal(opened, context):
    # E083
    assert context.store("plan", ["read", "write"]) is True

    assert context.retrieve("plan") == context.short_term.get("plan") == ["read", "write"]
    assert context.short_term.get_all() == [("plan", ["read", "write"])]
    assert journal_files(opened) == {}


def test_each_session_has_its_own_short_term_memory_and_shares_the_long_term_memory(opened, context):
    # E082 E084
    other = open_context(opened)
    context.store("store", DECISION, promote=True)
    context.store("plan", "read")

    assert (context.session_id, other.session_id) == ("s-1", "s-2")
    assert other.retrieve("store") == DECISION
    assert other.retrieve("plan", None) is None
    assert dict(other.long_term.graphs) == dict(context.long_term.graphs)
    assert other.short_term.get_all() == []


def test_a_value_stored_with_promote_is_in_the_context_graph(opened, context):
    # E005 E084
    decision = context.store("store", DECISION, promote=True)

    graph = "https://jido.ai/projects/p/graphs/long-term-context"
    rows = context.long_term.query(f"SELECT ?p ?o {{ GRAPH <{graph}> {{ <{decision.iri}> ?p ?o }} }}")
    assert (decision.outcome, decision.key) == ("promoted", "store")
    assert (f"{JIDO}summary", "Use Oxigraph") in [(row["p"], row["o"]) for row in rows]
    assert context.short_term.get("store") == DECISION


def test_an_unimportant_value_is_stored_and_not_promoted_with_a_reason(opened, context):
    # E084
    decision = context.store("note", "the build is slow", promote=True)

    assert (decision.outcome, decision.iri, decision.receipt, decision.error) == ("discarded", None, None, None)
    assert decision.reason.startswith("importance 0 of 'fact' is below the threshold 0.5")
    assert (context.retrieve("note"), journal_files(opened)) == ("the build is slow", {})


def test_a_forced_value_is_promoted_regardless_of_its_importance(opened, context):
    decision = context.store("note", "the build is slow", promote="force")
    assert (decision.outcome, decision.reason) == ("promoted", "importance 0 of 'fact', forced")
    assert active_summaries(opened) == ["the build is slow"]


def test_a_promoted_value_has_its_type_content_time_session_and_agent(opened, context):
    # E085
    before = opened.sources.now()
    typed = context.store("store", DECISION, promote=True)
    plain = context.store("note", "the build is slow", promote="force")
    after = opened.sources.now()

    memory, note = opened.reader.get_memory("p", typed.iri), opened.reader.get_memory("p", plain.iri)
    assert (memory["type"], note["type"]) == ("decision", "fact")
    assert (properties_of(opened, typed.iri)["summary"], note["properties"]["summary"]) == (
        ["Use Oxigraph"],
        ["the build is slow"],
    )
    assert before < memory["properties"]["hasTimestamp"][0] < note["properties"]["hasTimestamp"][0] < after
    assert memory["properties"]["assertedIn"] == ["https://jido.ai/sessions/s-1"]
    assert memory["properties"]["assertedBy"] == ["https://jido.ai/agents/architect"]


def test_a_promoted_value_has_its_fields_and_the_three_documented_triples(opened, context):
    # E059 E087
    value = {**DECISION, "id": "d-1", "context": "indexing", "affected_module": "Index", "verified_by_user": True}
    decision = context.store("store", value, promote=True)

    fields = properties_of(opened, decision.iri)
    assert {name: fields[name] for name in ("key", "localId", "context", "affectedModule", "verified", "category")} == {
        "key": ["store"], "localId": ["d-1"], "context": ["indexing"], "affectedModule": ["Index"], "verified": [True],
        "category": ["decisions"],
    }  # fmt: skip
    assert fields["hasConfidence"] == [f"{JIDO}Medium"]
    moment = fields["hasTimestamp"][0]
    three = Promotion.new().promote(
        {**value, "timestamp": moment}, new_id=lambda: decision.iri.removeprefix("https://jido.ai/memory/")
    )
    assert len(three) == 3
    assert set(three) <= set(opened.reader.describe("p", decision.iri))


def test_a_context_uses_its_own_agent_and_rules(opened):
    with open_context(opened, agent="planner", promotion=Promotion.new(rules=EXTENDED_RULES)) as context:
        decision = context.store("note", "the build is slow", promote=True)
        assert (context.agent, decision.outcome, decision.importance) == ("planner", "promoted", 0.5)
        assert properties_of(opened, decision.iri)["assertedBy"] == ["https://jido.ai/agents/planner"]


@pytest.mark.parametrize("kind", GUIDE_TYPES)
def test_every_type_is_promoted_and_stored_with_its_type(opened, kind):
    # E003
    with open_context(opened, promotion=Promotion.new(rules=EXTENDED_RULES)) as context:
        decision = context.store("k", {"type": kind, "content": "what it says", "rationale": "why"}, promote=True)
        memory = opened.reader.get_memory("p", decision.iri)
        assert (decision.outcome, memory["type"], memory["status"]) == ("promoted", kind, "active")


def test_a_completed_task_is_not_open_and_a_preference_is_a_convention(opened, context):
    task = context.store("t", {"type": "task_completed", "content": "ship it"}, promote=True)
    preference = context.store("c", {"type": "preference", "content": "indent with spaces"}, promote=True)

    assert opened.reader.list_open_tasks("p") == []
    assert properties_of(opened, task.iri)["hasTaskStatus"] == [f"{JIDO}Completed"]
    assert [row["name"] for row in opened.reader.list_conventions("p")] == ["indent with spaces"]
    assert (task.category, preference.category) == ("tasks", "conventions")
    assert preference.reason.endswith('what one person prefers is promoted with the type "fact"')


def test_a_forced_value_has_its_own_type_and_an_unknown_type_is_refused(opened, context):
    lesson = context.store("l", {"type": "lesson_learned", "content": "close the file"}, promote="force")
    assert opened.reader.get_memory("p", lesson.iri)["type"] == "lesson_learned"

    refused = context.store("m", {"type": "lesson_learnt", "content": "close the door"}, promote="force")
    assert (refused.outcome, refused.error.code) == ("refused", "unknown_type")
    assert refused.error.violations[0].nearest == "lesson_learned"


# --- promotion of known values ---------------------------------------------------------------------------------------


def test_a_known_value_under_its_key_is_not_written_again(opened, context):
    # E062 E063
    first = context.store("store", DECISION, promote=True)
    before = journal_files(opened)

    second = context.store("store", dict(DECISION), promote=True)
    elsewhere = open_context(opened).store("store", DECISION, promote=True)

    assert (second.outcome, elsewhere.outcome) == ("known", "known")
    assert second.iri == elsewhere.iri == second.receipt.iri == first.iri
    assert (second.receipt.status, journal_files(opened)) == ("deduplicated", before)


def test_a_changed_value_under_a_key_supersedes_the_former_memory(opened, context):
    # E062 E063
    first = context.store("store", DECISION, promote=True)
    changed = {"type": "decision", "content": "Use SQLite", "rationale": "it is everywhere"}

    second = open_context(opened).store("store", changed, promote=True)

    assert (second.outcome, second.reason) == ("updated", "importance 1 of 'decision' reaches the threshold 0.5")
    assert [row["content"] for row in opened.reader.list_decisions("p")] == ["Use SQLite"]
    assert properties_of(opened, second.iri)["supersedes"] == [first.iri]
    assert properties_of(opened, second.iri)["revisionReason"] == ["A session holds something else under its key."]
    assert properties_of(opened, second.iri)["rationale"] == ["it is everywhere"]
    context.short_term.clear()
    assert context.retrieve("store") == changed


def test_a_changed_value_under_the_key_of_another_agent_is_a_conflict_with_choices(opened, context):
    # E062
    first = context.store("store", DECISION, promote=True)
    changed = {"type": "decision", "content": "Use SQLite", "rationale": "it is everywhere"}
    other = open_context(opened, agent="ben")

    refused = other.store("store", changed, promote=True)

    assert (refused.outcome, refused.error.code) == ("refused", "conflict")
    assert refused.reason == f"{first.iri} has that key, and says something else: Use Oxigraph"
    assert [each.kind for each in refused.error.conflicts] == ["same_key"]
    assert [each.name for each in refused.error.choices] == ["supersedes", "key"]
    assert (other.retrieve("store"), active_summaries(opened)) == (changed, ["Use Oxigraph"])

    chosen = {**changed, **refused.error.choices[0].fields, "reason": "agreed with the architect"}
    settled = other.store("store", chosen, promote=True)
    assert (settled.outcome, active_summaries(opened)) == ("updated", ["Use SQLite"])
    assert properties_of(opened, settled.iri)["revisionReason"] == ["agreed with the architect"]
    assert other.store("store", {**chosen}, promote=True).outcome == "known"


def test_a_value_of_another_type_under_a_key_is_a_conflict(opened, context):
    context.store("k", {"type": "error", "content": "it hangs", "severity": "high"}, promote=True)

    refused = context.store("k", {"type": "discovery", "content": "it waits for a lock"}, promote=True)

    assert (refused.outcome, refused.error.code, active_summaries(opened)) == ("refused", "conflict", ["it hangs"])


def test_a_value_under_the_key_of_another_agent_is_proposed_by_the_policy_and_replaces_it_once_accepted(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "propose"\n')
    with jidomem.open(root, project="p", agent="ana") as memory:
        first = memory.context("s-1", interval=None).store("store", DECISION, promote=True)
        changed = {"type": "decision", "content": "Use SQLite", "rationale": "it is everywhere"}
        with memory.context("s-2", agent="ben", interval=None) as context:
            proposed = context.store("store", changed, promote=True)

            assert (proposed.outcome, active_summaries(memory)) == ("proposed", ["Use Oxigraph"])
            memory.writer.settle("p", proposed.iri, "accept", reason="agreed")
            assert active_summaries(memory) == ["Use SQLite"]
            context.short_term.clear()
            assert context.retrieve("store") == changed
    assert first.outcome == "promoted"


@pytest.mark.parametrize("content", ["the build is slow", "The  Build is slow"])
def test_the_same_content_under_another_key_is_one_memory_with_both_keys(opened, context, content):
    # E063
    first = context.store("a", "the build is slow", promote="force")

    second = context.store("b", content, promote="force")

    assert second.outcome == "updated"
    assert properties_of(opened, second.iri)["supersedes"] == [first.iri]
    assert properties_of(opened, second.iri)["revisionReason"] == ["A session says more of it."]
    assert sorted(properties_of(opened, second.iri)["key"]) == ["a", "b"]
    assert len(active_summaries(opened)) == 1
    context.short_term.clear()
    assert context.retrieve("b") == content
    assert context.retrieve("a").casefold().split() == content.casefold().split()


def test_two_keys_of_one_memory_separate_when_one_value_changes(opened, context):
    # E063
    for key in "ab":
        context.store(key, "ok", promote="force")

    changed = context.store("a", "failed", promote="force")

    assert (changed.outcome, active_summaries(opened)) == ("updated", ["failed", "ok"])
    context.short_term.clear()
    assert (context.retrieve("a"), context.retrieve("b")) == ("failed", "ok")
    assert properties_of(opened, changed.iri)["key"] == ["a"]


def test_a_promotion_adds_to_an_equal_memory_of_another_writer_without_losing_fields(opened, context):
    # E062
    receipt = opened.writer.submit_intent(
        "p",
        intent(
            evidence=["rust-toolchain.toml"], about=["Cargo.toml"], topic="toolchain", detailed_explanation="since 1.2",
            extra_triples=[["jido:localId", "f-7"]],
        ),
    )  # fmt: skip

    added = context.store("rust", "the build needs Rust 1.80", promote="force")

    properties = properties_of(opened, added.iri)
    assert (added.outcome, properties["supersedes"]) == ("updated", [receipt.iri])
    assert (properties["key"], properties["localId"], properties["topic"]) == (["rust"], ["f-7"], ["toolchain"])
    assert (properties["about"], properties["detailedExplanation"]) == (["Cargo.toml"], ["since 1.2"])
    assert (properties["hasConfidence"], len(properties["derivedFrom"])) == ([f"{JIDO}High"], 1)
    assert open_context(opened).retrieve("rust") == "the build needs Rust 1.80"
    assert len(active_summaries(opened)) == 1


def test_fewer_lines_under_a_key_are_a_changed_content(opened, context):
    # E063
    context.store("k", "one\ntwo", promote="force")

    fewer = context.store("k", "one", promote="force")

    assert (fewer.outcome, "detailedExplanation" in properties_of(opened, fewer.iri)) == ("updated", False)
    assert open_context(opened).retrieve("k") == "one"


def test_contents_with_the_same_first_line_conflict(opened, context):
    # E063
    context.store("a", "one\ntwo", promote="force")

    refused = [context.store("b", content, promote="force") for content in ("one", "one\nthree")]

    assert [(one.outcome, one.error.code) for one in refused] == [("refused", "conflict")] * 2
    with open_context(opened) as later:
        assert (later.retrieve("a"), later.retrieve("b", None), len(active_summaries(opened))) == ("one\ntwo", None, 1)


def test_the_same_content_under_a_key_can_change_its_type(opened, context):
    # E063
    context.store("k", {"type": "error", "content": "it hangs", "severity": "high"}, promote=True)

    changed = context.store("k", {"type": "discovery", "content": "it hangs"}, promote=True)

    assert (changed.outcome, opened.reader.get_memory("p", changed.iri)["type"]) == ("updated", "discovery")
    assert opened.reader.list_open_errors("p") == []


def test_an_explanation_is_added_if_missing_and_an_existing_one_is_not_replaced(opened, context):
    # E063
    context.store("a", "the build is slow", promote="force")
    explained = {"content": "the build is slow", "detailed_explanation": "it links twice"}
    added = context.store("b", explained, promote="force")
    other = {**explained, "detailed_explanation": "it is cold"}
    unchanged = context.store("c", other, promote="force")

    assert properties_of(opened, added.iri)["detailedExplanation"] == ["it links twice"]
    assert properties_of(opened, unchanged.iri)["detailedExplanation"] == ["it links twice"]
    with open_context(opened) as later:
        assert [later.retrieve(key) for key in "abc"] == ["the build is slow", explained, other]
    assert [context.store("a", "the build is slow", promote="force").outcome, len(active_summaries(opened))] == [
        "known",
        1,
    ]


def test_equal_content_about_another_subject_is_a_separate_memory(opened, context):
    # E063
    opened.writer.submit_intent("p", intent(type="error", summary="it hangs", about=["a.py"]))

    other = context.store("hang", {"type": "error", "content": "it hangs", "about": ["b.py"]}, promote=True)
    topic = context.store("h2", {"type": "error", "content": "it hangs", "topic": "locks"}, promote=True)

    assert (other.outcome, topic.outcome, active_summaries(opened)) == ("promoted", "promoted", ["it hangs"] * 3)


def test_a_withdrawn_memory_is_not_retrieved_and_can_be_promoted_again(opened, context):
    first = context.store("note", "the build is slow", promote="force")
    opened.writer.invalidate("p", first.iri, reason="it is fast now")

    assert open_context(opened).retrieve("note", None) is None
    second = context.store("note", "the build is slow", promote="force")
    assert (second.outcome, active_summaries(opened)[:1]) == ("promoted", ["Withdrawn: the build is slow"])
    assert second.iri != first.iri


def test_two_merged_memories_with_one_key_are_replaced_by_one(opened, context):
    for text in ("one", "two"):
        opened.writer.submit_intent("p", intent(summary=text, extra_triples=[["jido:key", "k"]]))
    assert open_context(opened).retrieve("k") == "two"

    context.store("k", "three", promote="force")

    assert active_summaries(opened) == ["three"]


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_decision_without_a_rationale_is_refused_and_stays_in_the_session(opened, context):
    refused = context.store("store", {"type": "decision", "content": "Use Oxigraph"}, promote=True)

    assert (refused.outcome, refused.iri, refused.key) == ("refused", None, "store")
    assert (refused.error.code, refused.reason) == ("missing_rationale", "a decision says why: give it a rationale")
    assert (refused.importance, refused.category) == (1.0, "decisions")
    assert (context.retrieve("store"), journal_files(opened)) == ({"type": "decision", "content": "Use Oxigraph"}, {})


def test_a_promotion_is_checked_for_conflicts_like_other_intents(opened, context):
    opened.writer.submit_intent("p", intent(topic="toolchain"))

    refused = context.store("rust", {"content": "the build needs Rust 1.81", "topic": "toolchain"}, promote="force")

    assert (refused.outcome, refused.error.code) == ("refused", "conflict")
    assert isinstance(refused.error, Conflict)
    assert active_summaries(opened) == ["the build needs Rust 1.80"]


def test_a_value_from_a_document_is_proposed(opened, context):
    proposed = context.store("claim", {"content": "the API is free", "source": "document"}, promote="force")

    assert (proposed.outcome, proposed.receipt.status) == ("proposed", "proposed")
    assert "memories of source type ExternalDocumentSource become active by review" in proposed.reason
    assert open_context(opened).retrieve("claim", None) is None
    assert [row["summary"] for row in opened.reader.ask("proposals", project="p")] == ["the API is free"]


def test_values_of_working_memory_are_promoted_and_retrieved_unchanged(opened, context):
    # E093
    discovery = {"type": "discovery", "content": "a clone is fast", "about": ["a.py"], "seen": [{"at": None}]}
    memory = Memory().world_put("found", discovery).ensure_space("steps", ["read", "write"])

    outcomes = [
        context.store("found", memory.world_get("found"), promote=True).outcome,
        context.store("steps", memory.spaces.steps.data, promote="force").outcome,
    ]

    assert outcomes == ["promoted", "promoted"]
    later = open_context(opened)
    assert (later.retrieve("found"), later.retrieve("steps")) == (discovery, ["read", "write"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1, 2), "value is a tuple, and JSON has no form for that"),
        ({"type": 5}, "type=5 is not a type of item"),
        ({"content": "c", "context": {"a": 1}}, "context={'a': 1} is not a text"),
        ({"type": "error", "content": "c", "status": "odd"}, "status is one of"),
        ({"content": "c", "verified_by_user": "yes"}, "verified_by_user='yes' is not a boolean"),
        (" ", "summary is missing"),
    ],
)
def test_an_invalid_value_is_refused_and_stays_in_the_session(opened, context, value, message):
    refused = context.store("k", value, promote="force")

    assert refused.outcome == "refused"
    assert message in refused.reason
    assert isinstance(refused.error, JidomemError)
    assert (context.retrieve("k"), journal_files(opened)) == (value, {})


def test_a_decision_is_convertible_to_json(context):
    asserted = context.store("db", DECISION, promote=True)
    discarded = context.store("k", "small talk", promote=True)
    refused = context.store("k", {"type": "fact", "content": "x", "confidence": "sure"}, promote="force")

    for decision in (asserted, discarded, refused):
        data = decision.to_dict()
        assert json.loads(json.dumps(data)) == data
        assert {name: data[name] for name in ("outcome", "reason", "importance", "category", "key", "iri")} == {
            "outcome": decision.outcome,
            "reason": decision.reason,
            "importance": decision.importance,
            "category": decision.category,
            "key": decision.key,
            "iri": decision.iri,
        }
    assert (asserted.to_dict()["receipt"], asserted.to_dict()["error"]) == (asserted.receipt.to_dict(), None)
    assert (discarded.to_dict()["receipt"], discarded.to_dict()["error"]) == (None, None)
    assert (refused.to_dict()["receipt"], refused.to_dict()["error"]) == (None, refused.error.to_dict())


@pytest.mark.parametrize("promote", ["yes", 2, None])
def test_an_invalid_promote_option_is_refused(context, promote):
    with pytest.raises(InvalidRequest, match="promote="):
        context.store("k", "v", promote=promote)
    assert context.short_term.get_all() == []


@pytest.mark.parametrize("name", ["", " ", None, 5, ["s"]])
def test_an_invalid_session_name_is_refused(opened, name):
    for opener in (opened.context, lambda name: ContextManager(opened, name)):
        with pytest.raises(InvalidRequest, match="is not a name of a session"):
            opener(name)


# --- retrieving ------------------------------------------------------------------------------------------------------


def test_short_term_memory_takes_precedence_over_long_term_memory(opened, context):
    # E086
    context.store("k", {"content": "for long"}, promote="force")
    context.store("k", "for now")

    assert context.retrieve("k") == "for now"
    context.short_term.clear()
    assert context.retrieve("k") == {"content": "for long"}
    with pytest.raises(NotFound, match="neither tier has a value for 'other'") as refusal:
        context.retrieve("other")
    assert refusal.value.code == "not_found"


def test_a_none_in_short_term_memory_hides_the_long_term_value(context):
    # E086
    context.store("k", "for long", promote="force")
    context.store("k", None)
    assert context.retrieve("k", "default") is None


def test_retrieve_returns_the_newest_memory_of_exactly_the_key(opened, context):
    # E086 E087
    for number, text in enumerate(("one", "two")):
        opened.writer.submit_intent(
            "p", intent(summary=text, topic=str(number), extra_triples=[["jido:key", "k"], ["jido:context", "key"]])
        )
    assert context.retrieve("k") == "two"
    assert context.retrieve("key", None) is None
    assert context.retrieve('k" } UNION { ?item jido:summary "one', None) is None


def test_a_key_returns_only_what_is_active_and_its_ended_value_stays_as_history(tmp_path):
    # E086
    days = [datetime(2026, 10, 9, tzinfo=UTC)]
    with jidomem.open(tmp_path / "root", project="p", sources=Sources(now=lambda: days[-1])) as memory:
        context = open_context(memory)

        def current_value(key="school"):
            context.short_term.clear()
            by_key = context.get_context(key)["long_term"]
            assert [each["content"] for each in by_key] == [*filter(None, [context.retrieve(key, {}).get("content")])]
            return context.retrieve(key, None)

        first, second, third = ({"type": "fact", "content": school} for school in ("Am Anger", "Lortzing", "Kepler"))
        first, third = {**first, "valid_until": "2026-10-20"}, {**third, "valid_from": "2026-12-01"}
        assert context.store("school", first, promote="force").outcome == "promoted"
        context.store("index", {**DECISION, "status": "proposed"}, promote=True)
        assert (current_value(), current_value("index")) == (first, None)

        days.append(datetime(2026, 10, 21, tzinfo=UTC))
        assert current_value() is None
        assert context.store("school", {**second, "valid_until": "2026-12-01"}, promote="force").outcome == "promoted"
        assert context.store("school", third, promote="force").outcome == "promoted"
        assert current_value()["content"] == "Lortzing"
        assert context.store("school", {**third, "content": "Goethe"}, promote="force").outcome == "updated"

        asked = (memory.ask("facts", valid_at=day) for day in ("2026-10-15", "2026-11-15", "2026-12-15"))
        summaries = [[row["summary"] for row in rows] for rows in asked]
        assert summaries == [["Am Anger", "Lortzing"], ["Lortzing"], ["Goethe"]]


def test_a_project_without_memories_returns_defaults(opened, context):
    # E086
    assert context.retrieve("k", "default") == "default"
    assert context.get_context("anything") == {"short_term": [], "long_term": []}


@pytest.mark.parametrize(
    "value",
    [
        "plain", " spaces ", "two\nlines", "\ttab\n", 'quo"ted \\ {braces} <iri>', "{}", '{"a": 1}', 5, 2.5, True, None,
        [], {}, [1, [2, {"a": None}]], {"b": 1, "a": [1.5, "x"]}, {"type": "fact", "content": "c", "n": {"deep": []}},
        {"content": "one\ntwo", "detailed_explanation": " more "}, {"content": ["no", "text"]},
    ],
)  # fmt: skip
def test_a_promoted_value_is_retrieved_unchanged(opened, context, value):
    # E093
    assert context.store("k", value, promote="force").outcome == "promoted"
    retrieved = open_context(opened).retrieve("k")
    assert (retrieved, type(retrieved)) == (value, type(value))


def test_a_typed_memory_is_retrieved_as_a_mapping_of_its_fields(opened, context):
    # E093
    memory = create_memory("error", "torn file", {"timestamp": START, "metadata": {"affectedModule": "Files"}})
    context.store("torn", memory, promote=True)

    assert context.retrieve("torn") is memory
    assert open_context(opened).retrieve("torn") == {
        "type": "error", "content": "torn file", "timestamp": "2026-11-21T08:00:00.000000Z", "confidence": 0.5,
        "source": "system", "verified": False, "metadata": {"affectedModule": "Files"},
    }  # fmt: skip


def test_a_revised_memory_is_retrieved_with_its_revision(opened, context):
    decision = context.store("k", {"content": "the build is slow", "n": 1}, promote="force")
    opened.writer.revise("p", decision.iri, changes={"summary": "the build is fast"}, reason="measured")
    assert open_context(opened).retrieve("k") == "the build is fast"


def test_a_redacted_memory_is_not_retrieved(opened, context):
    value = {"content": 'naïve "plans" of Ana', "note": "call her at home"}
    decision = context.store("k", value, promote="force")

    plan = opened.maintenance.plan("p", decision.iri)
    opened.maintenance.redact(plan, agent="architect", reason="it is private")

    data = b"".join(journal_files(opened).values())
    assert [text for text in (b"Ana", b"call her", b"plans") if text in data] == []
    with open_context(opened) as later:
        assert later.retrieve("k", "gone") == "gone"
        assert later.store("k", "anew", promote="force").outcome == "promoted"
        assert later.get_context("anew k")["long_term"][0]["content"] == "anew"


# --- the context of a query ------------------------------------------------------------------------------------------


def test_the_context_of_a_query_contains_matching_entries_of_both_tiers(opened, context):
    # E088 E089
    context.store("index_choice", DECISION, promote=True)
    context.store("notes", {"files": ["oxigraph.py"]})
    context.store("oxigraph", 5)
    context.store("lunch", "soup")

    result = context.get_context("Which Oxigraph?")

    assert list(result) == ["short_term", "long_term"]
    assert [(entry["key"], entry["value"]) for entry in result["short_term"]] == [
        ("oxigraph", 5), ("notes", {"files": ["oxigraph.py"]}), ("index_choice", DECISION),
    ]  # fmt: skip
    (memory,) = result["long_term"]
    assert list(memory) == ["iri", "type", "content", "keys", "score"]
    assert (memory["type"], memory["content"], memory["keys"]) == ("decision", "Use Oxigraph", ["index_choice"])
    assert memory["score"] > 0
    assert context.get_context("dinner") == {"short_term": [], "long_term": []}


def test_entries_with_more_query_words_come_first_and_then_newer_ones(context):
    # E089
    for key, value in (("a", "red boats"), ("b", "red"), ("c", "a boat"), ("d", "boats are red"), ("e", "blue")):
        context.store(key, value)
    entries = context.get_context("the red boat")["short_term"]
    assert [entry["key"] for entry in entries] == ["d", "a", "c", "b"]
    assert [entry["key"] for entry in context.get_context("the")["short_term"]] == []
    context.store("f", {("green",): "ship"})  # a value without JSON form
    assert [entry["key"] for entry in context.get_context("ships")["short_term"]] == ["f"]


def test_memories_with_a_key_in_the_query_come_first_and_only_once(opened, context):
    # E089
    for key, text in (("status", "all tests pass"), ("other", "status of status"), ("my plan", "read")):
        context.store(key, text, promote="force")
    other = open_context(opened)

    memories = other.get_context("status")["long_term"]

    assert [(entry["content"], entry["keys"], entry["score"] is None) for entry in memories] == [
        ("all tests pass", ["status"], True), ("status of status", ["other"], False),
    ]  # fmt: skip
    assert [entry["content"] for entry in other.get_context(" my plan ")["long_term"]] == ["read"]
    assert [entry["content"] for entry in other.get_context("what other status")["long_term"]][:2] == [
        "status of status",
        "all tests pass",
    ]
    assert other.get_context("half \ud83d status")["long_term"] != []


def test_each_tier_returns_ten_entries_by_default(opened, context):
    # E089
    for number in range(12):
        context.store(f"k{number}", f"boat number {number}", promote="force")
    result = context.get_context("boat")
    assert (len(result["short_term"]), len(result["long_term"])) == (10, 10)
    few = context.get_context("boat k3 k4 k5", limit=2)
    assert (len(few["short_term"]), len(few["long_term"])) == (2, 2)
    for query, limit in (("", 5), (" ", 5), ("boat", 0), ("boat", -1), ("boat", True), ("boat", 1_001)):
        with pytest.raises(InvalidRequest):
            context.get_context(query, limit=limit)


# --- the cycle -------------------------------------------------------------------------------------------------------


def test_a_cycle_promotes_important_values_and_returns_the_outcome_of_each(opened, context):
    # E091
    context.store("store", DECISION)
    context.store("torn", {"type": "error", "content": "torn file"})
    context.store("note", "the build is slow")
    context.store("why", {"type": "decision", "content": "no reason"})

    decisions = context.promote_all()

    assert [(one.key, one.outcome) for one in decisions] == [
        ("store", "promoted"), ("torn", "promoted"), ("note", "discarded"), ("why", "refused"),
    ]  # fmt: skip
    assert context.last_cycle == tuple(decisions)
    assert active_summaries(opened) == ["Use Oxigraph", "torn file"]
    assert len(context.short_term) == 4


def test_a_promoted_value_is_skipped_until_it_changes(opened, context):
    # E092
    context.store("store", DECISION)
    context.store("torn", {"type": "error", "content": "torn file"}, promote=True)
    context.promote_all()
    before = journal_files(opened)

    assert context.promote_all() == []
    context.store("store", dict(DECISION))
    assert (context.promote_all(), context.last_cycle) == ([], ())
    assert journal_files(opened) == before
    context.store("store", {**DECISION, "rationale": "it embeds, and is fast"})
    (changed,) = context.promote_all()

    assert (changed.key, changed.outcome) == ("store", "updated")
    assert active_summaries(opened) == ["Use Oxigraph", "torn file"]
    assert properties_of(opened, changed.iri)["rationale"] == ["it embeds, and is fast"]


def test_a_value_changed_in_place_is_promoted_again(context):
    # E092
    value = {"type": "error", "content": "torn file", "evidence": ["log"]}
    context.store("torn", value)
    context.promote_all()
    value["evidence"].append("dump")
    assert [one.outcome for one in context.promote_all()] == ["updated"]
    assert context.promote_all() == []


def test_a_refused_value_is_retried_and_a_removed_one_is_forgotten(opened, context):
    # E092
    context.store("why", {"type": "decision", "content": "no reason"})
    assert [one.outcome for one in context.promote_all()] == ["refused"]
    assert [one.outcome for one in context.promote_all()] == ["refused"]
    context.store("why", DECISION, promote=True)
    context.short_term.clear()
    assert context.promote_all() == []
    context.store("why", DECISION)
    assert [one.outcome for one in context.promote_all()] == ["known"]


def test_a_cycle_stops_at_a_damaged_journal_and_the_next_one_continues(opened, context):
    for number in range(3):
        context.store(f"e{number}", {"type": "error", "content": f"error {number}"})
    context.promote_all()
    (commit, *_) = sorted(opened.settings.root.glob("projects/p/memory/*.ttl"))
    original = commit.read_bytes()
    commit.write_bytes(original.replace(b"error 0", b"error 9"))
    for number in range(3):
        context.store(f"e{number}", {"type": "error", "content": f"failure {number}"})

    with (
        jidomem.open(opened.settings.root, project="p", agent="architect") as fresh,
        fresh.context("s-9", interval=None) as other,
    ):
        for key, value in context.short_term.get_all():
            other.store(key, value)
        assert [(one.outcome, one.error.code) for one in other.promote_all()] == [("refused", "journal_damaged")]
        commit.write_bytes(original)
        assert [one.outcome for one in other.promote_all()] == ["updated"] * 3
    context.short_term.clear()


def test_the_cycle_runs_in_the_background_until_the_context_is_closed(opened):
    # E090 E091
    context = opened.context("s-1", interval=0.001)
    context.store("store", DECISION)
    wait_until(lambda: active_summaries_or_none(opened) == ["Use Oxigraph"])
    assert promotion_threads() == {"promotion of s-1"}

    context.close()

    assert promotion_threads() == set()
    with pytest.raises(InvalidRequest, match="the context of 's-1' is closed: nothing was stored"):
        context.store("torn", {"type": "error", "content": "torn file"})
    assert active_summaries(opened) == ["Use Oxigraph"]


def test_closing_a_context_warns_of_important_values_that_were_not_promoted(opened):
    context = open_context(opened)
    context.store("store", DECISION)
    context.store("plan", "read")
    context.store(
        "refused", {"type": "decision", "content": "Use SQLite"}, promote=True
    )  # the refusal was returned to the caller

    with pytest.warns(UserWarning, match="^the context of 's-2' was closed with a value not promoted: 'store'; call"):
        context.close()

    context.close()  # a second close gives no warning


def promotion_threads():
    """Return the names of the promotion threads."""
    return {each.name for each in threading.enumerate() if each.name.startswith("promotion of ")}


def active_summaries_or_none(opened):
    try:
        return active_summaries(opened)
    except NotFound:
        return []


def test_the_cycle_runs_every_minute_and_can_be_disabled(opened, monkeypatch):
    # E090 E091
    intervals = []

    class Stopped:
        """An event that is set after two waits."""

        def wait(self, seconds):
            intervals.append(seconds)
            return len(intervals) > 2

        def set(self):
            pass

    monkeypatch.setattr("jidomem.base.background.Event", Stopped)
    disabled = ContextManager(opened, "s-2", interval=None)
    assert promotion_threads() == set()
    default = ContextManager(opened, "s-1")
    default.close()
    disabled.close()

    assert intervals == [60.0] * 3


@pytest.mark.parametrize("promotion", ["x", 0.5, {}, Promotion])
def test_an_invalid_promotion_is_refused_before_the_context_is_opened(opened, promotion):
    with pytest.raises(InvalidRequest, match=r"(?m)^promotion=.* is not a Promotion$") as refusal:
        opened.context("s-1", promotion=promotion)

    assert refusal.value.hint == "give Promotion.new(0.5), or leave it out"
    with opened.context("s-1", promotion=None, interval=None) as context:  # the session name is still available
        assert context.promotion == Promotion()


@pytest.mark.parametrize("interval", [0, -1, "60", True, float("nan"), float("inf")])
def test_an_invalid_interval_is_refused(opened, interval):
    with pytest.raises(InvalidRequest, match="interval="):
        ContextManager(opened, "s-1", interval=interval)


def test_closing_a_root_closes_its_contexts(tmp_path):
    # E091
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        for number in range(2):
            memory.context(f"s-{number}")
        assert promotion_threads() == {"promotion of s-0", "promotion of s-1"}
    assert promotion_threads() == set()


def test_a_session_has_one_context_until_it_is_closed(opened):
    # E082
    first = open_context(opened, "s-1")
    first.store("k", 1)

    assert opened.context("s-1") is first
    assert opened.context("s-1", agent="planner") is not first
    elsewhere = opened.context("s-1", project="q")
    assert (elsewhere.project, elsewhere.store("k", DECISION, promote=True).outcome) == ("q", "promoted")
    assert len(opened.reader.list_decisions("q")) == 1
    assert all(name.startswith("projects/q/") for name in journal_files(opened))
    with pytest.raises(InvalidRequest, match="the context of 's-1' is open already") as refusal:
        opened.context("s-1", interval=None)
    assert refusal.value.hint == "leave the options out, or close it first"
    first.close()
    with opened.context("s-1", interval=5.0) as second:
        first.close()  # a second close closes no other context
        assert (second is first, second.retrieve("k", None)) == (False, None)
        assert opened.context("s-1") is second


def test_concurrent_sessions_that_promote_the_same_value_record_one_memory(opened):
    # E082
    contexts = [open_context(opened, f"s-{number}") for number in range(4)]
    for context in contexts:
        context.store("store", DECISION)
        context.store(f"own-{context.session_id}", {"type": "error", "content": f"error of {context.session_id}"})

    with ThreadPoolExecutor(4) as pool:
        outcomes = [one.outcome for decisions in pool.map(ContextManager.promote_all, contexts) for one in decisions]

    assert len(active_summaries(opened)) == 5
    assert "refused" not in outcomes


ACTIVE_KEYS = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?key { ?item jido:key ?key MINUS { ?item jido:supersededBy ?next } } ORDER BY ?key"""


def test_concurrent_processes_that_promote_under_one_key_leave_one_memory(tmp_path):
    keys = [f"matter {number}" for number in range(6)]
    start = threading.Barrier(2)

    def promote_keys(memory):
        with memory.context("s-1", interval=None) as context:
            for key in keys:
                start.wait()
                context.store(key, {"type": "discovery", "content": f"{memory.settings.agent} on {key}"}, promote=True)

    with (
        jidomem.open(tmp_path / "root", project="p", agent="ana") as first,
        jidomem.open(tmp_path / "root", project="p", agent="ben") as second,
        ThreadPoolExecutor(2) as pool,
    ):
        [*pool.map(promote_keys, (first, second))]

        rows = first.reader.select("p", ACTIVE_KEYS)
    assert [row["key"] for row in rows] == keys


ITEMS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["error", "discovery", "preference", "fact"]),
        "content": st.sampled_from(["a", "b", "A "]),
    },
    optional={"high_confidence": st.booleans(), "context": st.sampled_from(["x", "y"])},
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("shared") / "root", sources=fixed_sources()) as memory:
        yield memory


def commit_files(memory, project):
    return sorted((memory.settings.root / "projects" / project).rglob("*.ttl"))


NUMBERS = count()


@settings(max_examples=30)
@given(values=st.dictionaries(st.sampled_from("klm"), ITEMS, min_size=1))
@example(values={"k": {"type": "preference", "content": "a"}, "l": {"type": "preference", "content": "A "}})
def test_a_second_promotion_writes_nothing(shared, values):
    # E092
    project = f"p{next(NUMBERS)}"
    with shared.context("s-1", project=project, interval=None) as context:
        for _ in range(2):  # the second pass adds what later items say of earlier ones
            for key, item in values.items():
                context.store(key, item, promote="force")
        before = commit_files(shared, project)
        assert {context.store(key, item, promote="force").outcome for key, item in values.items()} == {"known"}
        assert commit_files(shared, project) == before
    with shared.context("s-2", project=project, interval=None) as other:
        assert {key: other.retrieve(key) for key in values} == values
