"""What MCP tools give to a model is short: excerpts of long texts that name the call for the whole, and short ids."""

import json

import pytest

import jidomem
from jidomem.base.words import tokens
from jidomem.read.memory_detail import short_id
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.server import prompt_text, resource_text
from jidomem.serve.mcp.tools import TOOLS

TOOL = {tool.name: tool for tool in TOOLS}
HUGE = "Huge ledgers are split by " + "month and " * 20_000 + "year."


@pytest.fixture
def session(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        session = ClientSession(memory, "ana")
        session.is_briefed = True
        yield session


def answer(session, name, /, **given):
    return call(TOOL[name], session, given)


def size(found):
    """The tokens of the text and of the values of an answer."""
    return tokens(found.words()), tokens(json.dumps(dict(found.values), ensure_ascii=False))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("ask", {"name": "facts"}),
        ("ask", {"name": "timeline"}),
        ("recall", {"query": "how are huge ledgers split?"}),
        ("briefing", {}),
    ],
    ids=["a list", "the timeline", "recall", "the briefing"],
)
def test_a_text_of_any_length_is_shown_as_an_excerpt_with_the_call_for_the_whole(session, tool, given):
    long = answer(session, "remember", text=HUGE).values["iri"]

    found = answer(session, tool, **given)

    assert max(size(found)) < 1_000
    assert f"[cut; why {short_id(long)}]" in found.words()
    assert f"[cut; why {short_id(long)}]" in json.dumps(dict(found.values))
    assert answer(session, "why", id=short_id(long)).values["summary"] == HUGE


def test_a_receipt_shows_an_excerpt_of_a_similar_memory(session, monkeypatch):
    monkeypatch.setattr("jidomem.runtime.similar.DEFAULT", "ask")
    session.memory.similar_within = 60.0
    hosts = ", ".join(f"host{number}" for number in range(40))
    statement = (
        f"The settlement file of merchant acme is fetched from the bank in the north by the nightly job with {hosts}"
    )
    first = answer(session, "remember", text=f"{statement}.").values["iri"]

    second = answer(session, "remember", text=f"{statement}, as agreed.")

    (similar,) = second.values["similar"]
    assert similar["id"] == short_id(first)
    assert similar["text"].endswith(f"[cut; why {short_id(first)}]")


def test_a_long_statement_is_stored_and_its_receipt_says_where_details_belong(session):
    (warning,) = answer(session, "remember", text="Ledgers " * 130).values["warnings"]
    assert "detailed_explanation" in warning
    assert answer(session, "remember", text="Tea is hot, " * 80).values["warnings"] == []


def test_every_list_of_a_full_memory_is_short_and_its_ids_can_be_used(session):
    for number in range(60):
        answer(session, "remember", text=f"Merchant {number} is paid on day {number}.", topic=f"pay day {number}")
    task = answer(session, "remember", text="Write the runbook.", type="task").values["iri"]

    listed = answer(session, "ask", name="timeline")
    assert max(size(listed)) < 50 * 60
    assert size(listed)[0] < 50 * 45
    (row,) = answer(session, "ask", name="open-tasks").values["rows"]
    assert (row["task"], row["status"]) == (short_id(task), "Planned")
    done = answer(session, "revise", id=row["task"], set={"status": "Completed"})
    assert done.values["status"] == "asserted"
    text, values = size(answer(session, "briefing"))
    assert values < 2.5 * text
    text, values = size(answer(session, "recall", query="when is merchant 7 paid?"))
    assert values < 2.5 * text


def test_why_and_receipts_leave_out_what_nobody_acts_on(session):
    kept = answer(session, "remember", text="The plant is watered on Mondays.")
    assert max(size(kept)) < 120
    found = answer(session, "why", id=kept.values["iri"])
    assert max(size(found)) < 250
    assert found.values["judged_by"]["rules"] > 5
    assert found.values["iri"] == kept.values["iri"]


def test_the_questions_and_the_review_queue_are_short(session):
    for number in range(20):
        answer(session, "remember", text=f"We assume that clock {number} is right.", type="assumption")
    queue = json.loads(resource_text(session, "memory://conflicts")[1])
    assert len(queue) == 20
    assert tokens(prompt_text(session, "review-conflicts", {})[1]) < 20 * 110
    assert size(answer(session, "ask"))[0] < 2_100
