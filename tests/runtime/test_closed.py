"""A closed memory neither reads nor writes: each of its objects reports that it was closed."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import decision, files

import jidomem
from jidomem.adapters.langgraph import JidomemStore
from jidomem.errors import MemoryClosed
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.recall import RecallRequest

NOTE = SimpleNamespace(path="/memories/x.md", file_text="x", view_range=None)

#: name -> a function that gets an object of an open memory, and a function that uses it after the close.
OPERATIONS = {
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


@pytest.mark.parametrize("is_opened_before", [True, False], ids=["held", "taken anew"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_closed_memory_is_neither_read_nor_written(tmp_path, name, is_opened_before):
    get_handle, use = OPERATIONS[name]
    memory = jidomem.open(tmp_path / "root", project="p")
    memory.writer.submit_intent("p", decision(topic="other", summary="other"))
    handle = get_handle(memory) if is_opened_before else None
    memory.close()
    before = files(tmp_path)

    with pytest.raises(MemoryClosed, match=f"the memory in {tmp_path}/root is closed") as refusal:
        use(handle if is_opened_before else get_handle(memory))

    assert refusal.value.code == "memory_closed"
    assert "with jidomem.open(...) as memory" in refusal.value.hint
    assert files(tmp_path) == before


@pytest.mark.parametrize("command", ["create", "view"])
def test_the_memory_tool_reports_that_its_memory_was_closed(tmp_path, command):
    from jidomem.adapters.claude_memory import ClaudeMemory  # imports the SDK, for a second and a half

    with jidomem.open(tmp_path / "root", project="p") as memory:
        tool = ClaudeMemory(memory)

    with pytest.raises(Exception, match=r"the memory in .* is closed"):
        getattr(tool, command)(NOTE)


def test_a_second_close_does_nothing_and_a_reopened_root_has_the_memories(tmp_path):
    memory = jidomem.open(tmp_path / "root", project="p")
    memory.writer.submit_intent("p", decision())
    memory.close()
    memory.close()

    with jidomem.open(tmp_path / "root", project="p") as reopened:
        assert len(reopened.reader.ask("recent-decisions", project="p")) == 1


#: A script that opens a root, writes, starts to compute vectors in the background, and ends.
SCRIPT = """
import atexit, sys, threading, time
atexit.register(lambda: print([each.name for each in threading.enumerate() if each.name.startswith("jidomem")]))
import jidomem

class Slow:
    name = "slow-1"
    def dimensions(self): return 4
    def generate(self, texts):
        time.sleep(0.02)
        return [[1.0, len(text), 0.0, 1.0] for text in texts]

memory = jidomem.open(sys.argv[1], project="p", agent="ana", embedder=Slow())
fact = {"type": "fact", "applies_to_project": "p", "asserted_by": "ana", "asserted_in": "s", "confidence": "high"}
memory.writer.submit_many("p", [fact | {"summary": f"fact number {number}"} for number in range(1000)])
found = memory.recall("which fact?", "p")
print(found.metadata["vectors"]["pending"] > 0, any(each.name == "jidomem-vectors" for each in threading.enumerate()))
memory.remember("the last fact")
"""


def test_a_root_left_open_by_a_script_is_closed_at_exit(tmp_path):
    root = tmp_path / "root"

    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, root], capture_output=True, text=True, timeout=120, check=False
    )

    assert (result.returncode, result.stdout.splitlines(), result.stderr) == (0, ["True True", "[]"], "")
    with jidomem.open(root, project="p") as memory:
        assert len(memory.reader.ask("facts", project="p")) == 1001


def test_a_root_opened_before_a_fork_is_closed_only_in_the_process_that_opened_it(tmp_path):
    fork = f"""
import atexit, os, sys

def tell():
    try:
        print(name, len(memory.reader.ask("facts", project="p")), flush=True)
    except Exception as error:
        print(name, type(error).__name__, flush=True)

atexit.register(tell)
import jidomem
memory = jidomem.open({str(tmp_path / "root")!r}, project="p", agent="ana")
memory.remember("the first fact")
name = "parent" if os.fork() else "child"
if name == "parent":
    os.wait()
"""

    result = subprocess.run([sys.executable, "-c", fork], capture_output=True, text=True, timeout=120, check=False)

    assert (result.returncode, result.stdout.split("\n"), result.stderr) == (
        0,
        ["child 1", "parent MemoryClosed", ""],
        "",
    )
