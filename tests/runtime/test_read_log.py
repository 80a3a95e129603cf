"""The read log: in which briefings a memory was shown, and how that is switched off."""

import json
import sqlite3

import pytest
from conftest import decision, files, fixed_sources, intent

import jidomem
from jidomem.errors import Failed
from jidomem.runtime import logs
from jidomem.runtime.state import FILE


@pytest.fixture
def briefed(memory):
    """A memory of a decision that was shown in two briefings, and of a fact too long for either of them."""
    old = memory.writer.submit_intent("p", decision()).iri
    fact = memory.writer.submit_intent("p", intent(summary="the build needs Rust 1.80 and more " * 20)).iri
    for agent in ("ana", None):
        items = memory.briefing("p", agent=agent, budget_tokens=150).items
        assert (old in items, fact in items) == (True, False)
    return old, fact


def test_a_memory_tells_in_which_briefings_it_was_shown_and_to_whom(memory, briefed):
    old, fact = briefed

    shown = memory.reader.why("p", old)["shown"]

    assert [(each["in"], each["agent"]) for each in shown] == [("briefing", None), ("briefing", "ana")]
    assert shown[0]["at"] > shown[1]["at"]
    assert memory.reader.why("p", fact)["shown"] == []
    assert memory.reader.why("p", old, as_of=shown[1]["at"])["shown"] == shown[1:]


def test_what_is_asked_plainly_is_not_logged_and_no_text_is_kept(memory, briefed, tmp_path):
    old, _ = briefed
    memory.reader.ask("decisions", project="p")
    memory.reader.get_memory("p", old)
    memory.reader.why("p", old)

    with sqlite3.connect(tmp_path / "root" / FILE) as store:
        rows = store.execute("SELECT * FROM shown").fetchall()

    assert [row[1] for row in rows] == [old, old]
    assert "Use Oxigraph" not in json.dumps(rows)


def test_no_more_is_kept_of_a_memory_than_is_told(memory, briefed, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "MAX_READS", 3)
    old, _ = briefed
    for number in range(5):
        memory.briefing("p", agent=f"agent-{number}")

    with sqlite3.connect(tmp_path / "root" / FILE) as store:
        kept = store.execute("SELECT agent FROM shown WHERE item = ? ORDER BY at", (old,)).fetchall()

    assert kept == [("agent-2",), ("agent-3",), ("agent-4",)]


def test_a_root_without_a_read_log_keeps_none_and_says_so(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text("read_log = false\n")
    with jidomem.open(root, sources=fixed_sources()) as memory:
        old = memory.writer.submit_intent("p", decision()).iri
        memory.briefing("p")

        assert memory.reader.why("p", old)["shown"] is None

    assert not [name for name in files(root) if name.startswith("state")]


def test_a_briefing_is_given_where_the_log_cannot_be_written(memory, tmp_path):
    old = memory.writer.submit_intent("p", decision()).iri
    (tmp_path / "root" / "state").write_text("in the way")

    assert old in memory.briefing("p").items
    assert memory.reader.why("p", old)["shown"] == []


def test_a_switch_that_is_neither_on_nor_off_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text('read_log = "no"\n')

    with pytest.raises(Failed, match='read_log = "no" is not true or false') as refusal:
        jidomem.open(tmp_path)

    assert refusal.value.code == "invalid_config"
