"""A rejected or replaced decision is named by the answer that it matches, with the reason and its successor."""

import pytest

import jidomem
from jidomem.recall.briefing import markdown

REDIS, TABLE, STRAY = "Use Redis for the keys", "Use a Postgres table for the keys", "Redis keeps the keys"


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "none")
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as opened:
        yield opened


def decide(memory, text, **fields):
    return memory.remember(text, type="decision", topic="key store", **{"rationale": "one transaction", **fields}).iri


def test_a_rejected_decision_is_named_with_reason_and_successor(memory):
    rejected = decide(memory, REDIS, rationale="lost keys on failover", status="rejected")
    active = decide(memory, TABLE)
    memory.remember(STRAY)

    result = memory.recall("Do we use Redis?")

    words = (
        f'rejected decision {rejected[-8:]}: "{REDIS}" (why: "lost keys on failover"); now {active[-8:]}: "{TABLE}".\n'
    )
    assert words in markdown(result)
    assert result.to_dict()["inactive"]["decision"] == {
        "id": rejected, "text": REDIS, "status": "rejected", "reason": "lost keys on failover",
        "successor": active, "successor_text": TABLE,
    }  # fmt: skip


def test_a_withdrawn_decision_is_named_with_the_reason_of_its_end(memory):
    old = decide(memory, REDIS)
    memory.writer.correct("p", old, invalidate=True, reason="it lost keys")

    result = memory.recall("Do we use Redis?")

    assert f'invalidated decision {old[-8:]}: "{REDIS}" (why: "it lost keys").\n' in markdown(result)


def test_neither_a_decision_superseded_by_a_hit_nor_an_ended_fact_is_named(memory):
    old = decide(memory, REDIS)
    decide(memory, "Use Redis 8 for the keys", supersedes=[old])
    fact = memory.remember("Redis runs on one host").iri
    memory.writer.correct("p", fact, invalidate=True, reason="on two")

    result = memory.recall("Do we use Redis?")

    assert result.inactive.count == 1
    assert result.inactive.decision is None
    assert "decision" not in result.to_dict()["inactive"]


def test_a_weakly_matching_ended_decision_is_counted_and_not_named(memory):
    decide(memory, "Use Kafka for events, as it runs everywhere", status="rejected")
    for number in range(30):
        memory.remember(f"The cache has a version of its own, for client {number}")

    result = memory.recall(
        "Which Kubernetes version of the cluster runs in the production of our customers?", min_score=0
    )

    assert result.inactive.count == 1
    assert result.inactive.decision is None


def test_a_decision_that_was_rejected_or_superseded_later_is_named_with_that_reason(memory):
    rejected = decide(memory, REDIS, rationale="it is fast")
    memory.writer.correct("p", rejected, changes={"status": "rejected"}, reason="lost keys on failover")
    old = decide(memory, "Use Memcached for the sessions", rationale="it is small")
    memory.remember(
        "Use a Postgres table for all",
        type="decision",
        rationale="one store",
        supersedes=[old],
        reason="it has no disk",
    )

    assert '(why: "lost keys on failover")' in markdown(memory.recall("Do we use Redis?"))
    assert '(why: "it has no disk")' in markdown(memory.recall("Do we use Memcached for sessions?"))
