"""Plugins: their spaces in the memory of an agent, and their handlers of signals."""

from dataclasses import dataclass

import pytest

from jidomem.errors import InvalidRequest
from jidomem.records.directive import MemoryDelete, MemoryQuery, MemoryUpsert, Signal, forget, recall
from jidomem.working import (
    MEMORY_KEY,
    Agent,
    Thread,
    ensure,
    ensure_space,
    get,
    has_memory,
    put_in_space,
    space,
    spaces,
    world_get,
    world_put,
)
from jidomem.working.thread import MAX_CACHED_REQUESTS, MemoryPlugin, Mounted, RagPlugin, mount


def signal_of(directive, result, status="ok", **more):
    """Return the result signal of a directive."""
    meta = {"provider": directive.provider, "latency_ms": 0.1, "directive": directive.type}
    data = {"request_id": directive.request_id, "status": status, "result": result, "meta": meta, **more}
    return Signal("jido.memory.result", data)


def row(key, value="x"):
    return {"key": key, "score": 1.0, "value": value}


def test_a_mounted_plugin_adds_its_space_and_its_pointer():  # A129 A130
    agent, mounted = mount(Agent(state={"mine": 1}), [RagPlugin("vector", index="agent_123")])

    assert space(agent, "rag:cache").data == {}
    assert world_get(agent, "pointers") == {"semantic": {"provider": "vector", "index": "agent_123"}}
    assert mounted.states == {"memory": None, "rag": {"provider": "vector", "index": "agent_123"}}
    assert (set(agent.state), agent.state["mine"]) == ({"mine", MEMORY_KEY}, 1)


def test_mounting_preserves_existing_data():  # A130 A133
    agent = put_in_space(ensure_space(Agent(), "rag:cache", {}), "rag:cache", "kept", 1)
    agent = world_put(agent, "pointers", {"files": "s3://bucket"})

    mounted, _ = mount(agent, [RagPlugin("vector")])
    second, _ = mount(mounted, [RagPlugin("vector")])

    assert space(mounted, "rag:cache") == space(agent, "rag:cache")
    assert world_get(mounted, "pointers") == {
        "files": "s3://bucket",
        "semantic": {"provider": "vector", "index": "default"},
    }
    assert get(second) == get(mounted)


def test_plugins_with_different_names_are_separate():  # A133
    one, two = RagPlugin("vector"), RagPlugin("graph", name="rag:project")
    agent, mounted = mount(Agent(), [one, two])
    directive = two.recall("rust")

    agent, _ = mounted.route(agent, signal_of(directive, [row("a")]))

    assert set(spaces(agent)) == {"tasks", "world", "rag:cache", "rag:project:cache"}
    assert world_get(agent, "pointers") == {
        "semantic": {"provider": "vector", "index": "default"},
        "rag:project:semantic": {"provider": "graph", "index": "default"},
    }
    assert one.recalled(agent, directive.request_id) is None
    assert two.recalled(agent, directive.request_id)["result"] == [row("a")]


def test_two_plugins_of_one_name_are_refused():
    with pytest.raises(InvalidRequest, match="2 plugins are named 'rag'"):
        mount(Agent(), [RagPlugin("vector"), RagPlugin("graph")])


def test_results_are_routed_to_the_handler_of_the_plugin():  # A131
    rag = RagPlugin("vector")
    agent, mounted = mount(Agent(), [rag])
    directive = rag.recall("rust", top_k=2)

    after, directives = mounted.route(agent, signal_of(directive, [row("a"), row("b")]))

    assert list(rag.routes()) == ["jido.memory.result"]
    assert rag.recalled(after, directive.request_id) == {"status": "ok", "result": [row("a"), row("b")]}
    assert directives == ()
    assert rag.recalled(agent, directive.request_id) is None


def test_a_signal_for_another_recipient_changes_nothing():
    rag = RagPlugin("vector")
    agent, mounted = mount(Agent(), [rag])
    others = [signal_of(recall("rust"), [row("a")]), Signal("jido.tool.result", {"anything": 1})]

    assert [mounted.route(agent, signal)[0] for signal in others] == [agent, agent]


def test_recall_remember_forget_and_summarize_return_directives():  # A132
    rag = RagPlugin("vector")
    thread = Thread().append("message", {"role": "user", "text": "we ship on Friday"}, at=1)

    recalled, remembered, forgotten = (
        rag.recall("rust", top_k=3),
        rag.remember("a", "x", embedding=[1]),
        rag.forget("a", "b"),
    )
    agent, directives = rag.summarize(Agent(), thread, now=7)

    assert [type(each) for each in (recalled, remembered, forgotten, *directives)] == [
        MemoryQuery, MemoryUpsert, MemoryDelete, MemoryUpsert,
    ]  # fmt: skip
    assert (recalled.query, remembered.items[0].embedding, forgotten.keys) == (
        {"text": "rust", "top_k": 3},
        (1.0,),
        ("a", "b"),
    )
    assert rag.remember("a", "x").items[0].embedding is None
    assert world_get(agent, "summary")["content"] == "user: we ship on Friday"
    assert (directives[0].items[0].key, directives[0].items[0].value) == ("rag:summary", "user: we ship on Friday")
    assert {each.provider for each in (recalled, remembered, forgotten, *directives)} == {"vector"}


def test_an_unchanged_summary_is_not_stored_again():
    rag = RagPlugin("vector")
    thread = Thread().append("message", "we ship on Friday", at=1)
    agent, _ = rag.summarize(Agent(), thread, now=7)

    unchanged, directives = rag.summarize(agent, thread, now=9)
    _, for_empty_thread = rag.summarize(agent, Thread(), now=9)

    assert (get(unchanged), directives, for_empty_thread) == (get(agent), [], [])


def test_forgotten_and_changed_rows_are_removed_from_cached_results():
    rag = RagPlugin("vector")
    agent, mounted = mount(Agent(), [rag])
    query, upsert, deletion = rag.recall("rust"), rag.remember("a", "y"), rag.forget("b", "d")
    agent, _ = mounted.route(agent, signal_of(query, [row("a"), row("b"), row("c"), row("d")]))

    agent, _ = mounted.route(agent, signal_of(upsert, {"count": 1, "items": [{"key": "a"}]}))
    agent, _ = mounted.route(
        agent,
        signal_of(deletion, {"count": 1, "items": [{"key": "b"}], "missing": []}, "error", reason={"code": "busy"}),
    )

    assert rag.recalled(agent, query.request_id)["result"] == [row("c"), row("d")]
    assert rag.recalled(agent, upsert.request_id) is None
    assert rag.recalled(agent, deletion.request_id)["reason"] == {"code": "busy"}


def test_a_failure_is_cached_with_its_reason():
    rag = RagPlugin("vector")
    agent, mounted = mount(Agent(), [rag])
    directive = rag.recall("rust")

    agent, _ = mounted.route(agent, signal_of(directive, None, "error", reason={"code": "unsupported"}))

    assert rag.recalled(agent, directive.request_id) == {
        "status": "error",
        "result": None,
        "reason": {"code": "unsupported"},
    }


def test_the_cache_contains_only_the_last_results():
    rag = RagPlugin("vector")
    agent, mounted = mount(Agent(), [rag])
    directives = [rag.recall(f"{n}") for n in range(MAX_CACHED_REQUESTS + 3)]

    for each in directives:
        agent, _ = mounted.route(agent, signal_of(each, []))

    assert list(space(agent, "rag:cache").data) == [each.request_id for each in directives[3:]]


@dataclass(frozen=True)
class Follower:
    """A plugin that returns a further directive for a result."""

    name: str = "follower"

    def mount(self, agent):
        return world_put(agent, "heard", 0), {"since": 1}

    def routes(self):
        return {"jido.memory.result": self.heard}

    def heard(self, agent, signal):
        return world_put(agent, "heard", world_get(agent, "heard") + 1), [forget("a", request_id="req_more")]


def test_a_handler_may_return_further_directives():  # A129
    agent, mounted = mount(Agent(), [Follower()])

    after, directives = mounted.route(agent, signal_of(recall("rust"), []))

    assert (world_get(agent, "heard"), world_get(after, "heard")) == (0, 1)
    assert directives == (forget("a", request_id="req_more"),)
    assert mounted.states["follower"] == {"since": 1}


def test_the_memory_plugin_is_mounted_once_by_default():  # A134
    agent, mounted = mount(Agent())

    assert has_memory(agent)
    assert mounted == Mounted((MemoryPlugin(),), {"memory": None})
    assert get(mount(agent)[0]) == get(agent)
    with pytest.raises(InvalidRequest, match="2 plugins are named 'memory'"):
        mount(Agent(), [Other(name="memory", owns="__other__")])


@dataclass(frozen=True)
class Other:
    """A plugin that provides the memory in place of the default one."""

    name: str = "journal"
    owns: str = MEMORY_KEY

    def mount(self, agent):
        return ensure(agent, id="mem_other"), None

    def routes(self):
        return {}


def test_the_memory_plugin_can_be_omitted_or_replaced():  # A134
    memoryless, unmounted = mount(Agent(), memory=None)
    replaced, mounted = mount(Agent(), [Other()])

    assert (has_memory(memoryless), unmounted.plugins) == (False, ())
    assert (get(replaced).id, mounted.plugins) == ("mem_other", (Other(),))
    with pytest.raises(InvalidRequest, match="2 plugins own '__memory__'"):
        mount(Agent(), [Other(), Other("second")])


def test_a_checkpoint_contains_the_memory():  # A134
    agent, _ = mount(Agent(), [RagPlugin("vector")])

    checkpoint = MemoryPlugin().checkpoint(agent)

    assert get(MemoryPlugin().restore(Agent(), checkpoint)) == get(agent)
    assert MemoryPlugin().checkpoint(Agent()) is None
    assert MemoryPlugin().restore(agent, None) is agent
