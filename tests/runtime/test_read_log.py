"""The read log lists the briefings that showed a memory, and can be disabled."""

import json
import sqlite3

import pytest
from conftest import decision, files, fixed_sources, intent

import jidomem
from jidomem.errors import Failed
from jidomem.runtime import logs
from jidomem.runtime.state import FILE


@pytest.fixture
def shown_memories(memory):
    """Return a decision that was shown in two briefings, and a fact too long for either."""
    old = memory.writer.submit_intent("p", decision()).iri
    fact = memory.writer.submit_intent("p", intent(summary="the build needs Rust 1.80 and more " * 20)).iri
    for agent in ("ana", None):
        items = memory.briefing("p", agent=agent, budget_tokens=150).items
        assert (old in items, fact in items) == (True, False)
    return old, fact


def test_why_lists_the_briefings_that_showed_a_memory_and_their_agents(memory, shown_memories):
    old, fact = shown_memories

    briefings = memory.reader.why("p", old)["shown"]

    assert [(each["in"], each["agent"]) for each in briefings] == [("briefing", None), ("briefing", "ana")]
    assert briefings[0]["at"] > briefings[1]["at"]
    assert memory.reader.why("p", fact)["shown"] == []
    assert memory.reader.why("p", old, as_of=briefings[1]["at"])["shown"] == briefings[1:]


def test_queries_are_not_logged_and_no_text_is_stored(memory, shown_memories, tmp_path):
    old, _ = shown_memories
    memory.reader.ask("decisions", project="p")
    memory.reader.get_memory("p", old)
    memory.reader.why("p", old)

    with sqlite3.connect(tmp_path / "root" / FILE) as store:
        rows = store.execute("SELECT * FROM shown").fetchall()

    assert [row[1] for row in rows] == [old, old]
    assert "Use Oxigraph" not in json.dumps(rows)


def test_the_read_log_has_a_limit_for_each_memory(memory, shown_memories, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "MAX_READS", 3)
    old, _ = shown_memories
    for number in range(5):
        memory.briefing("p", agent=f"agent-{number}")

    with sqlite3.connect(tmp_path / "root" / FILE) as store:
        agents = store.execute("SELECT agent FROM shown WHERE item = ? ORDER BY at", (old,)).fetchall()

    assert agents == [("agent-2",), ("agent-3",), ("agent-4",)]


def test_a_root_without_a_read_log_stores_none_and_why_reports_none(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text("read_log = false\n")
    with jidomem.open(root, sources=fixed_sources()) as memory:
        old = memory.writer.submit_intent("p", decision()).iri
        memory.briefing("p")

        assert memory.reader.why("p", old)["shown"] is None

    assert not [name for name in files(root) if name.startswith("state")]


def test_a_briefing_is_given_if_the_log_cannot_be_written(memory, tmp_path):
    old = memory.writer.submit_intent("p", decision()).iri
    (tmp_path / "root" / "state").write_text("in the way")

    assert old in memory.briefing("p").items
    assert memory.reader.why("p", old)["shown"] == []


def test_an_invalid_value_of_read_log_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text('read_log = "no"\n')

    with pytest.raises(Failed, match='read_log = "no" is not true or false') as refusal:
        jidomem.open(tmp_path)

    assert refusal.value.code == "invalid_config"
