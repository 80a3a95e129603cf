"""The whole story: what is said is summed up, what is decided is promoted, and another process finds all of it."""

import json
import subprocess
import sys

import jidomem
from jidomem import ConversationBuffer
from jidomem.working import SummaryProjector, Thread, project

SAID = [
    ("Which index do we use?", "Oxigraph would embed; a server would not."),
    ("Then decide it, and say why.", "Decided: Oxigraph is the index, since it embeds."),
]
SUMMARY = """\
user: Which index do we use?
assistant: Oxigraph would embed; a server would not.
user: Then decide it, and say why.
assistant: Decided: Oxigraph is the index, since it embeds."""
GRAPH = """
PREFIX conv: <https://jido.ai/ontology/conversation-history#> PREFIX jido: <https://jido.ai/ontology#>
SELECT ?summary ?words {
  GRAPH <https://jido.ai/projects/p/graphs/long-term-context> { ?item jido:derivedFrom ?turn ; jido:summary ?summary }
  GRAPH <https://jido.ai/projects/p/graphs/conversation-history> { ?turn conv:hasAnswer/conv:answerText ?words } }
"""
RESTARTED = """
import json, sys, jidomem
root, graph = sys.argv[1:]
with jidomem.open(root, project="p", agent="architect") as memory, memory.context("s-2") as context:
    held, found = memory.agent().get(), memory.recall("which index?").entries
    print(json.dumps({
        "said": [message for turn in memory.conversation("s-1").turns() for message in turn.messages()],
        "summary": held.world_get("summary")["content"],
        "tasks": [task["text"] for task in held.tasks_open()],
        "asked": [[row["decision"], row["status"]] for row in memory.reader.ask("decisions", project="p")],
        "recalled": [[hit.id, hit.content] for hit in found],
        "rests_on": [each["text"] for hit in found for each in memory.reader.why("p", hit.id)["evidence"]],
        "graph": memory.reader.select("p", graph),
        "by_key": context.retrieve("index")["content"],
        "in_context": [each["iri"] for each in context.get_context("which index?")["long_term"]],
        "problems": [str(problem) for problem in memory.check("p").problems],
    }))
"""


def spoken(memory):
    """Say it: kept word for word in the history, in what the model is shown, and in the thread."""
    talk, buffer, thread = memory.conversation("s-1"), ConversationBuffer.new(), Thread()
    for prompt, answer in SAID:
        turn = talk.record(prompt, answer, asked_by="ana")
        for message in turn.messages():
            buffer = buffer.add(**message)
            thread = thread.append("message", message, refs={"turn": turn.iri})
    return buffer, thread, turn


def test_turns_summaries_and_decisions_survive_a_restart(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, project="p", agent="architect") as memory, memory.context("s-1", interval=None) as context:
        buffer, thread, turn = spoken(memory)
        memory.agent().update(lambda held: project(SummaryProjector(), held, thread).memory.tasks_add("measure it"))
        content = {"type": "decision", "content": "Oxigraph is the index", "rationale": "it embeds"}
        decided = context.store("index", {**content, "evidence": turn.iri}, promote=True)
        assert decided.outcome == "promoted"

    program = [sys.executable, "-c", RESTARTED, str(root), GRAPH]
    done = subprocess.run(program, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "said": buffer.get_context(),
        "summary": SUMMARY,
        "tasks": ["measure it"],
        "asked": [[decided.iri, "accepted"]],
        "recalled": [[decided.iri, "Oxigraph is the index"]],
        "rests_on": ["\n".join(SAID[1])],
        "graph": [{"summary": "Oxigraph is the index", "words": SAID[1][1]}],
        "by_key": "Oxigraph is the index",
        "in_context": [decided.iri],
        "problems": [],
    }


def test_a_later_decision_supersedes_the_first_and_the_turns_stay(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="architect") as memory:
        with memory.context("s-1", interval=None) as context:
            *_, turn = spoken(memory)
            content = {"type": "decision", "content": "Oxigraph is the index", "rationale": "it embeds"}
            first = context.store("index", {**content, "evidence": turn.iri}, promote=True)
        talk = memory.conversation("s-2")
        anew = talk.record("Is it still?", "No: a server is.")
        with memory.context("s-2", interval=None) as context:
            changed = {**content, "content": "A server is the index", "rationale": "it is shared", "evidence": anew.iri}
            second = context.store("index", changed, promote=True)

        assert second.outcome == "updated"
        assert [row["decision"] for row in memory.reader.ask("decisions", project="p")] == [second.iri]
        assert [hit.id for hit in memory.recall("which index?").entries] == [second.iri]
        why = memory.reader.why("p", second.iri)
        assert [each["iri"] for each in why["replaced"]] == [first.iri]
        assert why["evidence"] == [{"iri": anew.iri, "text": "Is it still?\nNo: a server is."}]
        assert [one.answer for one in memory.conversation("s-1").turns()] == [answer for _, answer in SAID]
