"""A chat model compares proposals with similar memories: its answer is shown, and settles nothing."""

import json
import sys
import time
from pathlib import Path

import pytest
from conftest import intent

import jidomem
from jidomem import JidomemError
from jidomem.curation.review_queue import queue
from jidomem.runtime import settings, similar

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from http_endpoint import STALL, reply, served

FIVE, TWENTY = "The connection pool has 5 threads", "The connection pool has 20 threads"
REASON = "5 and 20 threads cannot both be right."


def answer(**content):
    return reply({"choices": [{"message": {"content": json.dumps(content)}, "finish_reason": "stop"}]})


CONTRADICTS = answer(relation="contradicts", reason=REASON)


@pytest.fixture(autouse=True)
def with_similar(monkeypatch):
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")


@pytest.fixture
def open_with_model(root, monkeypatch):
    """Return a function that opens a root that proposes similar facts, with a chat model at an address."""
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "propose"\n')

    def open_with(endpoint):
        own = settings.own_config()
        own.parent.mkdir(parents=True, exist_ok=True)
        own.touch(0o600)
        keys = {"use": "endpoint", "base_url": endpoint.url, "model": "judge", "key_env": ""}
        own.write_text("[model]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
        memory = jidomem.open(root, project="p", agent="ana")
        memory.similar_within = 60.0
        return memory

    return open_with


def judgements(root, item):
    with jidomem.open(root, project="p") as memory:
        return memory.reader.get_memory("p", item)["properties"].get("judgement", [])


def test_the_judgement_of_the_model_is_shown_with_the_proposal_and_settles_nothing(open_with_model, root):  # C008 C054
    with served(CONTRADICTS) as endpoint:
        with open_with_model(endpoint) as memory:
            first, second = memory.remember(FIVE, asserted_by="ben"), memory.remember(TWENTY, evidence=["the log"])
        (request,) = endpoint.bodies
        with open_with_model(endpoint) as memory:
            (pending,) = queue(memory.reader, "p", memory.sources.now())
            active = [row["summary"] for row in memory.ask("timeline")]

    judgement = f"judge: contradicts {first.iri[-8:]}: {REASON}"
    assert second.status == "proposed"
    assert judgements(root, second.iri) == [judgement]
    assert (pending.item, pending.other) == (second.iri, first.iri)
    assert judgement in pending.source
    assert FIVE in active
    assert TWENTY not in active
    assert all(text in request["messages"][1]["content"] for text in (FIVE, TWENTY))


def test_no_request_is_sent_for_an_active_memory(open_with_model):
    with served(CONTRADICTS) as endpoint:
        with open_with_model(endpoint) as memory:
            memory.remember(FIVE)
            memory.remember("The office closes at noon on Fridays")
            memory.remember(TWENTY, dry_run=True)
            memory.remember("The connection pool never has 20 threads", type="decision", rationale="it is small")

        assert endpoint.bodies == []


def test_the_retry_of_a_proposal_is_not_judged_again(open_with_model, root):
    with served(CONTRADICTS) as endpoint:
        with open_with_model(endpoint) as memory:
            memory.remember(FIVE)
            first, second = (memory.remember(TWENTY, idempotency_key="k") for _ in range(2))
        with open_with_model(endpoint) as memory:
            third = memory.remember(TWENTY, idempotency_key="k")

        assert len(endpoint.bodies) == 1
    assert first.commit == second.commit == third.commit
    assert first.similar == second.similar == third.similar
    assert len(judgements(root, first.iri)) == 1


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([answer(relation="maybe", reason="?")], "gave two unusable answers: relation is none of repeats, contradicts"),
        ([answer(relation="repeats")], "gave two unusable answers: reason is not a text"),
        ([reply({"error": {"message": "no"}}, "401 Unauthorized")], "401"),
    ],
)
def test_the_proposal_shows_why_the_model_compared_nothing(open_with_model, root, replies, message):
    with served(*replies) as endpoint, open_with_model(endpoint) as memory:
        memory.remember(FIVE)
        second = memory.remember(TWENTY)

    (judgement,) = judgements(root, second.iri)
    assert "not compared with" in judgement
    assert message in judgement


def test_a_slow_model_delays_no_receipt_and_is_abandoned_at_close(open_with_model, root, monkeypatch):
    monkeypatch.setattr(similar, "JUDGE_TIMEOUT", 0.2)
    with served(STALL) as endpoint, open_with_model(endpoint) as memory:
        memory.remember(FIVE)
        second = memory.remember(TWENTY)

        assert second.status == "proposed"
        assert memory.writer.restated("p", second.iri)["summary"] == TWENTY
    assert judgements(root, second.iri) == []


def test_all_proposals_are_judged_and_close_waits_for_them(open_with_model, root):
    requests = []

    def slow(body):
        time.sleep(0.05)
        requests.append(body)
        return CONTRADICTS

    with served(slow) as endpoint, open_with_model(endpoint) as memory:
        memory.remember(FIVE)
        proposals = [memory.remember(f"The connection pool has {number} threads") for number in range(20, 26)]

    assert [len(judgements(root, each.iri)) for each in proposals] == [1] * 6
    assert len(requests) == 6


def test_a_judgement_is_added_only_to_a_pending_proposal_and_is_no_evidence(root):
    with jidomem.open(root, project="p", agent="ana") as memory:
        active = memory.remember(FIVE)
        proposal = memory.writer.submit_intent("p", intent(summary=TWENTY, evidence=[]), propose=True)
        rejected = memory.writer.submit_intent("p", intent(summary="The pool has 6 threads"), propose=True)
        memory.writer.settle("p", rejected.iri, "reject", reason="it has 5")

        assert memory.writer.add_judgement("p", proposal.iri, "it contradicts the log").commit is not None
        for item in (active.iri, rejected.iri):
            assert memory.writer.add_judgement("p", item, "it contradicts the log").status == "deduplicated"
        with pytest.raises(JidomemError) as refusal:
            memory.writer.add_judgement("p", proposal.iri, "the key is AKIAIOSFODNN7REALKEY")
        assert refusal.value.code == "policy_denied"
        accepted = memory.writer.settle("p", proposal.iri, "accept")
        assert "evidence" not in memory.writer.restated("p", accepted.iri)

    assert judgements(root, proposal.iri) == ["it contradicts the log"]
    assert judgements(root, accepted.iri) == judgements(root, active.iri) == []
