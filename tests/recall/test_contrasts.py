"""Near memories that differ in a value: both sides are named where one of them is shown."""

import pytest

import jidomem
from jidomem.recall.briefing import markdown
from jidomem.records.differences import contrast

OLD, NEW = (
    "Webhook signatures older than 300 seconds are rejected",
    "Webhook signatures older than 600 seconds are rejected",
)
APART = "The logo is blue"


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as opened:
        yield opened


def both(memory, **fields):
    old, new = (memory.remember(text, **fields).iri for text in (OLD, NEW))
    memory.remember(APART, **fields)
    memory.embedding.embed("p")
    return old, new


def test_hits_that_differ_in_a_value_name_each_other(memory):
    old, new = both(memory)

    result = memory.recall("How old may a webhook signature be?", limit=2)

    found = {hit.id: hit.metadata["differs_from"] for hit in result.entries}
    assert found == {
        old: [{"id": new, "text": NEW, "differences": ["300 / 600 seconds"]}],
        new: [{"id": old, "text": OLD, "differences": ["600 / 300 seconds"]}],
    }
    lines = markdown(result).splitlines()
    assert f"(disagrees with {old[-8:]}: 600 / 300 seconds, rita" in next(
        line for line in lines if new[-8:] + " fact" in line
    )
    assert not any(line.startswith("  - disagrees") for line in lines)


def test_the_other_side_comes_with_a_hit_though_the_limit_leaves_it_out(memory):
    old, new = both(memory)

    result = memory.recall("webhook signatures 600 seconds", limit=1)

    assert [hit.id for hit in result.entries] == [new]
    assert f'  - disagrees with {old[-8:]}: 600 / 300 seconds: "{OLD}"\n' in markdown(result)
    assert result.metadata["tokens"] >= len(OLD) // 4


def test_a_briefing_marks_both_sides(memory):
    old, new = both(memory, type="decision", rationale="r")

    briefing = memory.briefing()

    assert f"disagrees with {old[-8:]}: 600 / 300 seconds" in briefing.text
    assert f"disagrees with {new[-8:]}: 300 / 600 seconds" in briefing.text
    rows = [row for section in briefing.to_dict()["sections"] for row in section["entries"]]
    assert {row["iri"]: row.get("differs_from") for row in rows}[new] == [
        {"id": old, "text": OLD, "differences": ["600 / 300 seconds"]}
    ]


@pytest.mark.parametrize("ending", ["supersede", "keep-both"])
def test_a_settled_pair_no_longer_disagrees(memory, ending):
    old, new = both(memory)

    memory.writer.settle("p", new, ending, other=old)

    result = memory.recall("How old may a webhook signature be?", limit=2)
    assert result.entries
    assert not any("differs_from" in hit.metadata for hit in result.entries)
    assert "disagrees" not in memory.briefing().text


def test_a_state_of_the_past_has_no_contrasts_of_today(memory):
    both(memory)

    result = memory.recall("webhook signatures", as_of=memory.now())

    assert result.entries
    assert not any("differs_from" in hit.metadata for hit in result.entries)


def test_statements_with_one_value_in_other_words_are_no_contrast():
    assert contrast("Refund window: 180 days after capture", "Refunds are allowed for 180 days after capture") == ()
    assert contrast("Refund window: 180 days", "Refunds are allowed for 90 days") == ("180 / 90 days",)
    assert contrast("Indent with tabs", "Indent with spaces") == ("tabs / spaces",)
