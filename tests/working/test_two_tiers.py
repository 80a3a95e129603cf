"""Both tiers end to end: promoted values are found by queries, and remain after a restart."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from conftest import fixed_sources

import jidomem
from jidomem import Promotion
from jidomem.working import Memory
from jidomem.working.tiers import EXTENDED_RULES

JIDO = "https://jido.ai/ontology#"


@pytest.fixture
def context(memory):
    with memory.context(
        "s-1", project="p", promotion=Promotion.new(rules=EXTENDED_RULES), interval=None
    ) as context_manager:
        yield context_manager


def test_promoted_facts_are_found_by_their_topic(memory, context):
    # E080
    older = context.store(
        "rust", {"type": "fact", "content": "The build needs Rust 1.80", "confidence": 0.85}, promote=True
    )
    newer = context.store("more", "rust is\nfast enough", promote=True)
    context.store("other", "the tests are slow", promote=True)

    rows = memory.reader.find_facts_about("p", "RUST")

    assert [(row["subject"], row["content"], row["confidence"]) for row in rows] == [
        (newer.iri, "rust is\nfast enough", 0.6),
        (older.iri, "The build needs Rust 1.80", 0.85),
    ]
    assert [row["timestamp"] for row in rows] == sorted((row["timestamp"] for row in rows), reverse=True)


def test_promoted_decisions_errors_and_conventions_are_found(memory, context):
    # E080
    decisions = [
        context.store(key, {"type": "decision", "content": key, "rationale": "why"}, promote=True).iri
        for key in ("Use Oxigraph", "Use ruff")
    ]
    torn = context.store("e", {"type": "error", "content": "torn", "affected_module": "Files"}, promote=True)
    context.store("f", {"type": "error", "content": "slow", "affected_module": "Index"}, promote=True)
    context.store("c", {"type": "preference", "content": "use spaces", "verified_by_user": True}, promote=True)
    context.store("d", {"type": "preference", "content": "use tabs"}, promote=True)

    assert [row["subject"] for row in memory.reader.list_decisions("p")] == decisions
    assert [row["subject"] for row in memory.reader.find_errors_for_module("p", "Files")] == [torn.iri]
    assert memory.reader.get_conventions("p") == [{"content": "use spaces", "source": "session:s-1"}]


def test_promoted_items_of_one_context_are_related_and_found_by_their_ids(memory, context):
    # E080
    first = context.store("a", {"content": "one", "context": "release", "id": "f-1"}, promote=True)
    second = context.store("b", {"content": "two", "context": "release"}, promote=True)
    context.store("c", {"content": "three", "context": "other"}, promote=True)

    assert memory.reader.find_related("p", first.iri) == [{"related": second.iri, "content": "two"}]
    assert memory.reader.find_related("p", "f-1") == memory.reader.find_related("p", first.iri)
    rows = context.long_term.get_fact("f-1")
    assert {row["subject"] for row in rows} == {first.iri}
    assert ("https://jido.ai/ontology#summary", "one") in [(row["predicate"], row["object"]) for row in rows]


def test_facts_promoted_by_another_program_keep_their_iris(memory, context):
    # E060
    fact, guide = "http://jidoka.ai/facts/6f1d7a84-db00-42fc-a00b-31a7fc73224f", "http://jidoka.ai/ontology#"

    context.long_term.insert(
        [
            (fact, "rdf:type", f"{guide}Fact"), (fact, f"{guide}content", "the build needs Rust 1.80"),
            (fact, f"{guide}timestamp", datetime(2026, 1, 1, tzinfo=UTC)), (fact, f"{guide}key", "rust"),
        ]
    )  # fmt: skip

    assert [row["subject"] for row in memory.reader.find_facts_about("p", "rust")] == [fact]
    assert context.retrieve("rust") == "the build needs Rust 1.80"
    assert context.store("rust", "the build needs Rust 1.80", promote=True).outcome == "updated"
    assert len(memory.reader.find_facts_about("p", "rust")) == 1


STORE = """
import sys, jidomem
with jidomem.open(sys.argv[1], project="p", agent="architect") as memory, memory.context("s-1") as context:
    decision = context.store("store", {"type": "decision", "content": "Use Oxigraph", "rationale": "it embeds"}, True)
    context.store("plan", ["read", "write"])
    print(decision.outcome, context.retrieve("plan"), context.short_term.session_id)
"""
RETRIEVE = """
import json, sys, jidomem
with jidomem.open(sys.argv[1], project="p", agent="architect") as memory, memory.context("s-1") as context:
    print(json.dumps({
        "plan": context.retrieve("plan", "gone"),
        "store": context.retrieve("store"),
        "short": context.short_term.get_all(),
        "decisions": [row["content"] for row in memory.reader.list_decisions("p")],
    }))
"""


def run(program, root):
    result = subprocess.run([sys.executable, "-c", program, str(root)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_restart_preserves_only_promoted_values(tmp_path):
    # E001 E004 E095
    assert run(STORE, tmp_path / "root") == "promoted ['read', 'write'] s-1\n"

    assert json.loads(run(RETRIEVE, tmp_path / "root")) == {
        "plan": "gone",
        "store": {"type": "decision", "content": "Use Oxigraph", "rationale": "it embeds"},
        "short": [],
        "decisions": ["Use Oxigraph"],
    }


def test_promoted_values_are_available_to_later_sessions_of_a_reopened_root(tmp_path):
    # E004
    kinds = {"fact": "f", "decision": "d", "task": "t", "convention": "c", "error": "e", "lesson_learned": "l"}
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        context = memory.context("s-1", promotion=Promotion.new(rules=EXTENDED_RULES), interval=None)
        for kind, text in kinds.items():
            context.store(kind, {"type": kind, "content": text, "rationale": "why"})
        assert [one.outcome for one in context.promote_all()] == ["promoted"] * 6

    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        later = memory.context("s-2", interval=None)
        assert {kind: later.retrieve(kind)["content"] for kind in kinds} == kinds
        reader = memory.reader
        assert [row["summary"] for row in reader.list_facts_with_confidence("p")] == ["f"]
        assert [row["summary"] for row in reader.list_open_tasks("p")] == ["t"]
        assert [row["name"] for row in reader.list_conventions("p")] == ["c"]
        assert [row["summary"] for row in reader.list_open_errors("p")] == ["e"]
        assert [row["summary"] for row in reader.list_recent_lessons("p")] == ["l"]


def test_tasks_of_working_memory_are_promoted_with_their_status(memory, context):
    # E005 E062
    working_memory = Memory().tasks_add("ship it", id="t1").tasks_add("test it", id="t2").tasks_complete("t2")

    promoted = [
        context.store(f"task:{task['id']}", {**task, "type": "task"}, promote=True) for task in working_memory.tasks()
    ]
    completed = context.store("task:t3", {"text": "write it", "id": "t3", "type": "task_completed"}, promote=True)
    updated = context.store("task:t1", {**working_memory.tasks_complete("t1").tasks()[0], "type": "task"}, promote=True)

    assert [one.outcome for one in (*promoted, completed, updated)] == ["promoted", "promoted", "promoted", "updated"]
    rows = memory.reader.select(
        "p",
        """PREFIX jido: <https://jido.ai/ontology#> SELECT ?summary ?status ?name {
        ?task a jido:Task ; jido:summary ?summary ; jido:hasTaskStatus ?status ; jido:localId ?name
        FILTER NOT EXISTS { ?task jido:supersededBy ?newer } } ORDER BY ?name""",
    )
    assert [(row["name"], row["summary"], row["status"].partition("#")[2]) for row in rows] == [
        ("t1", "ship it", "Completed"),
        ("t2", "test it", "Completed"),
        ("t3", "write it", "Completed"),
    ]
    assert memory.reader.get_memory("p", promoted[0].iri)["properties"]["hasTaskStatus"] == [f"{JIDO}Planned"]
    assert context.retrieve("task:t2") == {"id": "t2", "text": "test it", "status": "done", "type": "task"}


def test_a_fact_that_another_agent_promotes_under_a_key_of_its_own_keeps_its_author(memory):
    fact, other = ({"type": "fact", "content": text} for text in ("Marta is vegetarian", "Marta eats meat"))
    with memory.context("s1", agent="travel", interval=None) as travel:
        travel.store("diet", fact, promote="force")

    with memory.context("s2", agent="household", interval=None) as household:
        stored = [household.store(key, value, promote="force") for key, value in (("mine", fact), ("diet", other))]

    assert [each.outcome for each in stored] == ["updated", "refused"]
    (row,) = memory.ask("timeline")
    properties = memory.reader.get_memory(memory.project, row["item"])["properties"]
    assert (row["summary"], properties["assertedBy"]) == ("Marta is vegetarian", ["https://jido.ai/agents/travel"])
    with memory.context("s3", agent="travel", interval=None) as travel:
        assert [travel.retrieve(key)["content"] for key in ("diet", "mine")] == ["Marta is vegetarian"] * 2
