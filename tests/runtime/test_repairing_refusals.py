"""Refusals of Python calls have a hint that repairs them."""

import pytest

import jidomem
from jidomem.errors import IntentRefused, InvalidRequest


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as opened:
        yield opened


def test_an_unknown_field_is_refused_with_the_fields_for_its_content(memory):
    with pytest.raises(IntentRefused) as refusal:
        memory.remember("the order is late", customer="acme")
    assert refusal.value.hint == (
        "leave 'customer' out, say it in `summary`, `topic` or `about`, or give an own property, whose key is an IRI: https://example.org/tag"
    )


def test_an_unknown_id_is_refused_with_a_hint_to_recall(memory):
    with pytest.raises(IntentRefused, match="no memory 'deadbeef'") as refusal:
        memory.remember("the order is late", supersedes=["deadbeef"])
    assert "recall shows ids" in refusal.value.violations[0].hint


@pytest.mark.parametrize("until", ["2026-09-01", "2026-10-01"])
def test_an_empty_recording_interval_is_refused(memory, until):
    memory.remember("the order is late")
    with pytest.raises(InvalidRequest, match="since=2026-10-01 is not before until") as refusal:
        memory.recall("order", since="2026-10-01", until=until)
    assert refusal.value.hint == "give the earlier moment as since"
    assert memory.recall("order", since="2026-09-01", until="2126-10-01").entries


def test_a_revision_without_changes_is_refused_and_writes_nothing(memory):
    receipt = memory.remember("the order is late")
    with pytest.raises(InvalidRequest, match="no field") as refusal:
        memory.writer.revise("p", receipt.iri, changes={}, reason="none")
    assert "`changes`" in refusal.value.hint
    assert [row["fact"] for row in memory.ask("facts")] == [receipt.iri]
