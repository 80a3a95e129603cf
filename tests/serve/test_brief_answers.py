"""Answers of MCP tools are short: excerpts of long texts with the call for the whole, and short ids."""

import json

import pytest

import jidomem
from jidomem.base.words import tokens
from jidomem.rdf.vocab import short_id
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


def answer(session, name, /, **arguments):
    return call(TOOL[name], session, arguments)


def size(result):
    """The tokens of the text and of the values of an answer."""
    return tokens(result.words()), tokens(json.dumps(dict(result.values), ensure_ascii=False))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("ask", {"name": "facts"}),
        ("ask", {"name": "timeline"}),
        ("recall", {"query": "how are huge ledgers split?"}),
        ("briefing", {}),
    ],
    ids=["a list", "the timeline", "recall", "the briefing"],
)
def test_a_long_text_is_shown_as_an_excerpt_with_the_call_for_the_whole(session, tool, arguments):
    long = answer(session, "remember", text=HUGE).values["iri"]

    result = answer(session, tool, **arguments)

    assert max(size(result)) < 1_000
    assert f"[cut; why {short_id(long)}]" in result.words()
    assert f"[cut; why {short_id(long)}]" in json.dumps(dict(result.values))
    assert answer(session, "why", id=short_id(long)).values["summary"] == HUGE


def test_a_receipt_shows_an_excerpt_of_a_similar_memory(session, monkeypatch):
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")
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


def test_a_long_statement_is_stored_with_a_warning_about_detailed_explanation(session):
    (warning,) = answer(session, "remember", text="Ledgers " * 130).values["warnings"]
    assert "detailed_explanation" in warning
    assert answer(session, "remember", text="Tea is hot, " * 80).values["warnings"] == []


def test_lists_of_a_full_memory_are_short_and_their_ids_are_valid_arguments(session):
    for number in range(60):
        answer(session, "remember", text=f"Merchant {number} is paid on day {number}.", topic=f"pay day {number}")
    task = answer(session, "remember", text="Write the runbook.", type="task").values["iri"]

    listed = answer(session, "ask", name="timeline")
    assert max(size(listed)) < 50 * 60
    assert size(listed)[0] < 50 * 45
    (row,) = answer(session, "ask", name="open-tasks").values["rows"]
    assert (row["task"], row["status"]) == (short_id(task), "Planned")
    revised = answer(session, "revise", id=row["task"], set={"status": "Completed"})
    assert revised.values["status"] == "asserted"
    text, values = size(answer(session, "briefing"))
    assert values < 2.5 * text
    text, values = size(answer(session, "recall", query="when is merchant 7 paid?"))
    assert values < 2.5 * text


def test_why_and_receipts_are_short(session):
    receipt = answer(session, "remember", text="The plant is watered on Mondays.")
    assert max(size(receipt)) < 120
    explanation = answer(session, "why", id=receipt.values["iri"])
    assert max(size(explanation)) < 250
    assert explanation.values["judged_by"]["rules"] > 5
    assert explanation.values["iri"] == receipt.values["iri"]


def test_the_list_of_queries_and_the_review_queue_are_short(session):
    for number in range(20):
        answer(session, "remember", text=f"We assume that clock {number} is right.", type="assumption")
    queue = json.loads(resource_text(session, "memory://conflicts")[1])
    assert len(queue) == 20
    assert tokens(prompt_text(session, "review-conflicts", {})[1]) < 20 * 110
    assert size(answer(session, "ask"))[0] < 2_100
