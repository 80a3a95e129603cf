"""What holds a memory that was closed neither reads nor keeps anything: it says that it was closed."""

from types import SimpleNamespace

import pytest
from conftest import decision, files

import jidomem
from jidomem.adapters.claude_memory import ClaudeMemory
from jidomem.adapters.langgraph import JidomemStore
from jidomem.errors import MemoryClosed
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.recall import RecallRequest

NOTE = SimpleNamespace(path="/memories/x.md", file_text="x", view_range=None)

#: By its name, what is held while the memory is open, and what is done with it once it is closed.
DOORS = {
    "writer": (lambda memory: memory.writer, lambda writer: writer.submit_intent("p", decision())),
    "remember": (lambda memory: memory.writer, lambda writer: writer.remember("p", "x", dry_run=True)),
    "reader": (lambda memory: memory.reader, lambda reader: reader.list_open_tasks("p")),
    "sparql": (lambda memory: memory.reader, lambda reader: reader.select("p", "SELECT * { ?s ?p ?o }")),
    "recall": (lambda memory: memory, lambda memory: memory.recall("x", "p")),
    "governing": (lambda memory: memory, lambda memory: memory.governing("a.py", project="p")),
    "briefing": (lambda memory: memory, lambda memory: memory.briefing("p")),
    "check": (lambda memory: memory, lambda memory: memory.check("p")),
    "entries written": (
        lambda memory: memory.entry_store("p"),
        lambda entries: entries.write(WriteRequest(Entry(agent_id="a", content="x"))),
    ),
    "entries recalled": (
        lambda memory: memory.entry_store("p"),
        lambda entries: entries.recall(RecallRequest(agent_id="a", query="x")),
    ),
    "langgraph put": (lambda memory: JidomemStore(memory, project="p"), lambda store: store.put(("a",), "k", {"x": 1})),
    "langgraph get": (lambda memory: JidomemStore(memory, project="p"), lambda store: store.get(("a",), "k")),
    "working memory": (lambda memory: memory.agent("a", project="p"), lambda agent: agent.update(lambda held: held)),
    "working memory read": (lambda memory: memory.agent("a", project="p"), lambda agent: agent.get()),
    "conversation": (
        lambda memory: memory.conversation("s", "p"),
        lambda conversation: conversation.record("question", "answer"),
    ),
    "tiers": (lambda memory: memory.os("a", project="p", work="inline"), lambda tiers: tiers.add("question", "answer")),
    "long-term memory": (lambda memory: memory.long_term("p"), lambda held: held.query("SELECT * { ?s ?p ?o }")),
}


@pytest.mark.parametrize("held", [True, False], ids=["held", "taken anew"])
@pytest.mark.parametrize("name", DOORS)
def test_a_closed_memory_is_neither_read_nor_written(tmp_path, name, held):
    take, use = DOORS[name]
    memory = jidomem.open(tmp_path / "root", project="p")
    memory.writer.submit_intent("p", decision(topic="other", summary="other"))
    door = take(memory) if held else None
    memory.close()
    before = files(tmp_path)

    with pytest.raises(MemoryClosed, match=f"the memory in {tmp_path}/root is closed") as refusal:
        use(door if held else take(memory))

    assert refusal.value.code == "memory_closed"
    assert "with jidomem.open(...) as memory" in refusal.value.hint
    assert files(tmp_path) == before


@pytest.mark.parametrize("command", ["create", "view"])
def test_the_memory_tool_tells_the_model_that_its_memory_was_closed(tmp_path, command):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        tool = ClaudeMemory(memory)

    with pytest.raises(Exception, match=r"the memory in .* is closed"):
        getattr(tool, command)(NOTE)


def test_closing_again_does_nothing_and_another_opening_finds_what_was_kept(tmp_path):
    memory = jidomem.open(tmp_path / "root", project="p")
    memory.writer.submit_intent("p", decision())
    memory.close()
    memory.close()

    with jidomem.open(tmp_path / "root", project="p") as again:
        assert len(again.reader.ask("recent-decisions", project="p")) == 1
