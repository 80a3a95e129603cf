"""Near memories that differ in a value: both sides are named where one of them is shown."""

import anyio
import pytest
from mcp.client.client import Client

import jidomem
from jidomem.curation.review_queue import queue
from jidomem.guard.guard import rule_line
from jidomem.guard.rule_queries import gather_rules
from jidomem.recall.briefing import markdown
from jidomem.records.differences import contrast
from jidomem.serve.mcp.client_session import ClientSessions
from jidomem.serve.mcp.server import create_server
from jidomem.serve.mcp.tools import TOOLS

OLD, NEW = (
    "Webhook signatures older than 300 seconds are rejected",
    "Webhook signatures older than 600 seconds are rejected",
)
UNRELATED = "The logo is blue"


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as opened:
        yield opened


def call_tools(sessions, *calls):
    async def send():
        async with Client(create_server(sessions, TOOLS)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(send)


def record_pair(memory, **fields):
    old, new = (memory.remember(text, **fields).iri for text in (OLD, NEW))
    memory.remember(UNRELATED, **fields)
    memory.embedding.embed("p")
    return old, new


def test_hits_that_differ_in_a_value_name_each_other(memory):
    old, new = record_pair(memory)

    result = memory.recall("How old may a webhook signature be?", limit=2)

    differences = {hit.id: hit.metadata["differs_from"] for hit in result.entries}
    assert differences == {
        old: [{"id": new, "text": NEW, "differences": ["300 / 600 seconds"]}],
        new: [{"id": old, "text": OLD, "differences": ["600 / 300 seconds"]}],
    }
    lines = markdown(result).splitlines()
    assert f"(disagrees with {old[-8:]}: 600 / 300 seconds, rita" in next(
        line for line in lines if new[-8:] + " fact" in line
    )
    assert not any(line.startswith("  - disagrees") for line in lines)


def test_a_conflicting_memory_that_differs_in_a_value_is_named_once(memory):
    config = memory.settings.root / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    with jidomem.open(config.parent, agent="rita") as opened:
        fields = {"type": "decision", "rationale": "r", "topic": "signatures", "about": ["src/a.py"]}
        old, new = (opened.remember(text, **fields).iri for text in (OLD, NEW))
        opened.embedding.embed("p")
        found = opened.recall("How old may a webhook signature be?", limit=2)
        rules = [rule_line(rule) for rule in gather_rules(opened, "p").rules]
        texts = [markdown(found), opened.briefing().text, "\n".join(rules)]

    assert [hit.metadata["conflicts_with"] for hit in found.entries if hit.id == new] == [[old]]
    for text in texts:
        assert text.count(f"disagrees with {old[-8:]}") == 1, text


def test_the_contrasting_memory_is_shown_with_a_hit_beyond_the_limit(memory):
    old, new = record_pair(memory)

    result = memory.recall("webhook signatures 600 seconds", limit=1)

    assert [hit.id for hit in result.entries] == [new]
    assert f'  - disagrees with {old[-8:]}: 600 / 300 seconds: "{OLD}"\n' in markdown(result)
    assert result.metadata["tokens"] >= len(OLD) // 4


def test_a_briefing_marks_both_contrasting_memories(memory):
    old, new = record_pair(memory, type="decision", rationale="r")

    briefing = memory.briefing()

    assert f"disagrees with {old[-8:]}: 600 / 300 seconds" in briefing.text
    assert f"disagrees with {new[-8:]}: 300 / 600 seconds" in briefing.text
    rows = [row for section in briefing.to_dict()["sections"] for row in section["entries"]]
    assert {row["iri"]: row.get("differs_from") for row in rows}[new] == [
        {"id": old, "text": OLD, "differences": ["600 / 300 seconds"]}
    ]


@pytest.mark.parametrize("ending", ["supersede", "keep-both"])
def test_a_settled_pair_has_no_contrast(memory, ending):
    old, new = record_pair(memory)

    memory.writer.settle("p", new, ending, other=old)

    result = memory.recall("How old may a webhook signature be?", limit=2)
    assert result.entries
    assert not any("differs_from" in hit.metadata for hit in result.entries)
    assert "disagrees" not in memory.briefing().text


def test_a_past_state_has_no_contrasts(memory):
    record_pair(memory)

    result = memory.recall("webhook signatures", as_of=memory.now())

    assert result.entries
    assert not any("differs_from" in hit.metadata for hit in result.entries)


def test_equal_values_in_different_words_are_no_contrast():
    assert contrast("Refund window: 180 days after capture", "Refunds are allowed for 180 days after capture") == ()
    assert contrast("Refund window: 180 days", "Refunds are allowed for 90 days") == ("180 / 90 days",)
    assert contrast("Indent with tabs", "Indent with spaces") == ("tabs / spaces",)


def test_occurrences_on_other_days_are_no_contrast_and_no_near_pair(memory):
    match = "Max has a football match against {} on {} November"
    receipts = [memory.remember(match.format(*each)) for each in (("Lahr", 7), ("Teningen", 14), ("Kenzingen", 21))]
    memory.embedding.embed("p")

    result = memory.recall("When does Max play football?")

    assert len(result.entries) == 3
    assert not any("differs_from" in hit.metadata for hit in result.entries)
    assert not any(receipt.similar for receipt in receipts)
    assert memory.near_pairs() == []
    memory.remember(match.format("Lahr", 8))
    memory.embedding.embed("p")
    assert [pair.likeness > 0.9 for pair in memory.near_pairs()] == [True]  # the match against Lahr was moved


def test_contrasts_are_cut_before_the_best_hit(memory):
    _, new = record_pair(memory)
    query = "webhook signatures 600 seconds"
    whole = memory.recall(query, limit=1)

    result = memory.recall(query, limit=1, budget_tokens=whole.metadata["tokens"] - 1)

    assert [hit.id for hit in result.entries] == [new]
    assert "disagrees" in markdown(whole)
    assert "disagrees" not in markdown(result)
    assert result.entries == whole.entries


def test_the_count_of_contrasting_pairs_matches_the_review_queue(memory):
    record_pair(memory)
    memory.remember("Payouts run daily at 04:00 UTC")
    memory.remember("Payouts run every day at 04:00 UTC")
    memory.embedding.embed("p")

    listed = queue(memory.reader, "p", memory.sources.now(), memory.near_pairs())

    assert memory.differing_pairs() == 1 < len(listed)
    assert [each.why for each in listed if each.differences] == ["differs in 300 / 600 seconds"]


def test_hits_below_the_minimum_score_are_counted_with_the_option_that_shows_them(memory):
    record_pair(memory)

    result = memory.recall("webhook signatures older than 600 seconds", min_score=1)

    assert result.metadata["below"] > 0
    assert f"{result.metadata['below']} weaker match" in markdown(result)
    assert "min_score" not in markdown(memory.recall("webhook signatures 600 seconds", min_score=0))


def test_the_guard_marks_a_rule_that_contrasts_with_a_near_rule(memory):
    old, new = record_pair(memory, type="convention", enforcement_level="Strict", about=["src/hooks.py"])

    lines = {rule.item: rule_line(rule) for rule in gather_rules(memory, "p").rules}

    assert f"disagrees with {old[-8:]}: 600 / 300 seconds" in lines[new]
    assert f"disagrees with {new[-8:]}: 300 / 600 seconds" in lines[old]


def test_contrasting_pairs_are_reported_by_status_and_the_conflicts_query_over_mcp(memory):
    record_pair(memory)
    sessions = ClientSessions(memory)

    status, conflicts = call_tools(sessions, ("status", {}), ("ask", {"name": "conflicts"}))

    values = status.structured_content
    assert (values["conflicts"], values["differing_pairs"]) == (0, 1)
    assert values["hint"] == conflicts.structured_content["note"]
    assert values["hint"] == "1 near pair that differs in a value: read memory://conflicts"


def test_among_many_memories_of_other_things_the_one_of_the_same_thing_is_the_contrast(memory):
    texts = [f"Claim CL-{number}: damage estimated at {number - 600} EUR" for number in range(1000, 1030)]
    claims = [memory.remember(text).iri for text in texts]
    valued = memory.remember("The damage of claim CL-1003 is 99 EUR").iri
    memory.embedding.embed("p")

    contrasts = memory.contrasts([valued, claims[3]])

    assert [(each.item, each.differences) for each in contrasts[valued]] == [(claims[3], ("99 / 403 EUR",))]
    assert [each.item for each in contrasts[claims[3]]] == [valued]
