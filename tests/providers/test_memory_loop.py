"""The loop of an agent: directives are performed, and their signals are routed into actions that change its memory."""

from dataclasses import dataclass

import jidomem
from jidomem.providers import GraphProvider, Providers, VectorProvider, execute_directive
from jidomem.records.directive import MemoryQuery, recall, remember
from jidomem.working import Agent, Thread, apply_action_result, get, tasks_open, world_get
from jidomem.working.thread import MemoryPlugin, RagPlugin, Schedule, SummaryProjector, mount

WORDS = ("rust", "build", "friday", "index")


def embed(text):
    return [text.lower().split().count(word) + 0.01 for word in WORDS]


def perform_all(agent, directives, providers, mounted):
    """Perform directives and route their signals, until no directive is left."""
    pending, signals = list(directives), []
    while pending:
        signals.append(execute_directive(pending.pop(0), providers))
        agent, more = mounted.route(agent, signals[-1])
        pending += more
    return agent, signals


@dataclass(frozen=True)
class Planner:
    """An action that turns recalled memories into facts of the world, and open ones into tasks."""

    name: str = "planner"

    def mount(self, agent):
        return agent, None

    def routes(self):
        return {"planner.recalled": self.recalled}

    def recalled(self, agent, signal):
        rows = signal.data["result"]
        if signal.data["status"] == "error":
            return apply_action_result(agent, {"world": {"trouble": signal.data["reason"]["hint"]}})
        return apply_action_result(
            agent,
            {
                "world": {"facts": {row["key"]: row["value"] for row in rows}},
                "tasks": [{"id": row["key"], "text": row["value"]["summary"], "status": "open"} for row in rows],
            },
        )


def test_the_signal_of_a_query_updates_tasks_and_facts_of_the_agent(memory):  # A127 A154
    providers = Providers()
    providers.register("graph", GraphProvider(), {"memory": memory, "project": "p"})
    agent, mounted = mount(Agent(), [Planner()])
    task = {"type": "task", "summary": "ship the index", "assigned_to": "planner"}
    request = MemoryQuery(query={"name": "open-tasks"}, provider="graph", reply_signal_type="planner.recalled")

    after, signals = perform_all(agent, [remember("ship", task, provider="graph"), request], providers, mounted)

    assert [(signal.type, signal.ok) for signal in signals] == [
        ("jido.memory.result", True),
        ("planner.recalled", True),
    ]
    assert tasks_open(after) == [{"id": "ship", "text": "ship the index", "status": "open"}]
    assert world_get(after, "facts")["ship"]["summary"] == "ship the index"
    assert (tasks_open(agent), get(after).rev) == ([], get(agent).rev + 2)


def test_an_error_signal_is_routed_into_the_memory_of_the_agent():  # A125 A127
    agent, mounted = mount(Agent(), [Planner()])
    request = recall("anything", provider="nowhere", reply_signal_type="planner.recalled")

    after, signals = perform_all(agent, [request], Providers(), mounted)

    assert signals[0].data["status"] == "error"
    assert world_get(after, "trouble") == "there is inline; register it first"


def test_an_agent_remembers_recalls_summarizes_and_forgets_through_a_plugin():  # A132 A154
    providers = Providers()
    providers.register("vector", VectorProvider(), {"embed": embed})
    rag = RagPlugin("vector")
    agent, mounted = mount(Agent(), [rag])
    thread = Thread().append("message", {"role": "user", "text": "we ship the build on friday"}, at=1)

    agent, directives = rag.summarize(agent, thread, now=2)
    agent, _ = perform_all(agent, [rag.remember("toolchain", "the build needs rust"), *directives], providers, mounted)
    request = rag.recall("rust build", top_k=2)
    agent, _ = perform_all(agent, [request], providers, mounted)
    recalled = [row["key"] for row in rag.recalled(agent, request.request_id)["result"]]
    agent, _ = perform_all(agent, [rag.forget("toolchain")], providers, mounted)
    remaining = rag.recalled(agent, request.request_id)["result"]

    assert recalled == ["toolchain", "rag:summary"]
    assert [row["value"] for row in remaining] == ["user: we ship the build on friday"]


def test_a_restarted_agent_recalls_stored_memories(tmp_path):  # A154
    rag = RagPlugin("graph")

    def run(directive):
        with jidomem.open(tmp_path / "root", project="p", agent="architect") as memory:
            providers = Providers()
            providers.register("graph", GraphProvider(), {"memory": memory})
            agent, mounted = mount(Agent(), [rag])
            agent, _ = perform_all(agent, [directive], providers, mounted)
            restored = MemoryPlugin().restore(Agent(), MemoryPlugin().checkpoint(agent))
            return rag.recalled(restored, directive.request_id)

    run(rag.remember("toolchain", "the build needs rust"))
    signal = run(rag.recall("which rust does the build need?"))

    assert [(row["key"], row["value"]["content"]) for row in signal["result"]] == [
        ("toolchain", "the build needs rust")
    ]


def test_a_scheduled_summary_of_a_growing_thread_is_stored_and_recalled():  # A138 A154
    providers = Providers()
    providers.register("vector", VectorProvider(), {"embed": embed})
    agent, mounted = mount(Agent(), [RagPlugin("vector")])
    schedule, thread = Schedule(StoringProjector(), after_entries=2), Thread()

    for text in ("hello", "we ship soon", "no, on friday", "friday"):
        thread = thread.append("message", text, at=thread.entry_count())
        schedule, step = schedule.tick(get(agent), thread, now=thread.entry_count())
        agent, _ = perform_all(Agent(state={"__memory__": step.memory}), step.directives, providers, mounted)

    rows = execute_directive(recall("friday", top_k=1, provider="vector"), providers).data["result"]
    assert (rows[0]["key"], rows[0]["value"].splitlines()[2]) == ("summary:3", "no, on friday")
    assert world_get(agent, "summary")["covers_seq"] == [0, 3]


class StoringProjector:
    """An action that stores a summary in the memory too."""

    def project(self, memory, thread, ctx):
        after = SummaryProjector().project(memory, thread, ctx)
        summary = after.world_get("summary")
        return after, [remember(f"summary:{summary['covers_seq'][1]}", summary["content"], provider="vector")]
