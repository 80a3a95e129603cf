"""The graph provider: upserts, deletes and queries of the memory of a project, validated as intents."""

import json
from datetime import UTC, datetime
from threading import Barrier, Thread

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.providers import GraphProvider, Providers, execute_directive
from jidomem.providers.conformance import ProviderContract
from jidomem.recall.governing import related_memories
from jidomem.records.directive import MemoryQuery, MemoryUpsert, Missing, forget, lookup, recall, remember

RUST, RUST_NOW = "the build needs Rust 1.80", "the build needs Rust 1.81"
STORE = {"type": "decision", "summary": "Use Oxigraph", "rationale": "it embeds", "topic": "store"}
BY_TEXT = {"text": "what does the build need? Rust? Oxigraph?"}


class GraphContract(ProviderContract):
    search = BY_TEXT

    @pytest.fixture(autouse=True)
    def _root(self, memory):
        self.memory = memory

    def opened(self):
        return GraphProvider(), {"memory": self.memory, "project": "p"}


class TestTextsInTheGraph(GraphContract):
    values = (RUST, RUST_NOW)

    def same(self, given, got):
        return got["summary"] == given


class TestIntentsInTheGraph(GraphContract):
    values = (STORE, {"type": "lesson", "summary": "Oxigraph takes one process"})

    def same(self, given, got):
        return {
            **given,
            "type": "lesson_learned" if given["type"] == "lesson" else given["type"],
        }.items() <= got.items()


@pytest.fixture
def providers(memory):
    registered = Providers()
    registered.register("graph", GraphProvider(), {"memory": memory, "project": "p"})
    return registered


@pytest.fixture
def do(providers):
    """Perform a directive and return the data of its signal."""
    return lambda directive: execute_directive(directive, providers).data


def upsert(key, value):
    return remember(key, value, provider="graph")


def test_an_upsert_submits_an_intent_and_returns_its_receipt(do, reader):  # A117 A126
    result = do(upsert("toolchain", RUST))["result"]

    (item,) = result["items"]
    stored = reader.get_memory("p", item["iri"])
    assert (result["count"], item["key"], item["status"]) == (1, "toolchain", "asserted")
    assert (stored["type"], stored["status"], stored["commit"]) == ("fact", "active", item["commit"])
    assert stored["properties"]["summary"] == [RUST]
    assert stored["properties"]["key"] == ["toolchain"]


def test_an_upsert_of_an_existing_key_supersedes_its_memory(do, reader):
    first = do(upsert("toolchain", RUST))["result"]["items"][0]["iri"]
    second = do(upsert("toolchain", RUST_NOW))["result"]["items"][0]["iri"]

    assert reader.get_memory("p", first)["superseded_by"] == [second]
    assert do(lookup("toolchain", provider="graph"))["result"][0]["value"] == {
        "iri": second,
        "type": "fact",
        "summary": RUST_NOW,
        "confidence": "medium",
        "applies_to_project": "https://jido.ai/projects/p",
    }


def test_the_clock_of_the_root_decides_what_is_valid_under_a_key_and_related_to_a_file(tmp_path):
    sources = fixed_sources(datetime(2020, 1, 1, tzinfo=UTC))
    with jidomem.open(tmp_path / "root", project="p", agent="ana", sources=sources) as memory:
        registered = Providers()
        registered.register("graph", GraphProvider(), {"memory": memory, "project": "p"})
        value = {"summary": RUST, "about": ["build.py"], "valid_until": "2020-02-01"}
        execute_directive(upsert("toolchain", value), registered)

        (found,) = execute_directive(lookup("toolchain", provider="graph"), registered).data["result"]
        related = related_memories(memory.reader, "p", ["build.py"], ())

        assert (found["value"]["summary"], [each.summary for each in related]) == (RUST, [RUST])


def test_an_upsert_supersedes_what_is_valid_with_it_and_leaves_an_ended_value_as_history(do, reader):
    dates = {"ended": {"valid_until": "2026-01-01"}, "scheduled": {"valid_from": "2999-01-01"}}
    earlier = [do(upsert("toolchain", {"summary": name, **given}))["result"] for name, given in dates.items()]
    assert do(lookup("toolchain", provider="graph"))["result"] == []

    second = do(upsert("toolchain", RUST_NOW))["result"]["items"][0]

    successors = [reader.get_memory("p", each["items"][0]["iri"])["superseded_by"] for each in earlier]
    assert (second["status"], successors) == ("asserted", [[], [second["iri"]]])


def test_an_upsert_of_the_same_value_writes_nothing(do, memory):
    first = do(upsert("toolchain", RUST))["result"]["items"][0]
    before = memory.catch_up("p")

    repeated = do(upsert("toolchain", f"  {RUST} "))["result"]["items"][0]

    assert (repeated["status"], repeated["iri"]) == ("deduplicated", first["iri"])
    assert memory.catch_up("p") == before


def test_a_looked_up_value_can_be_upserted_with_a_change(do, reader):
    first = do(upsert("store", STORE))["result"]["items"][0]["iri"]
    value = do(lookup("store", provider="graph"))["result"][0]["value"]

    same = do(upsert("store", value))["result"]["items"][0]
    changed = do(upsert("store", {**value, "rationale": "it embeds, and loads fast"}))["result"]["items"][0]

    assert (same["status"], same["iri"]) == ("deduplicated", first)
    assert reader.get_memory("p", first)["superseded_by"] == [changed["iri"]]
    assert reader.get_memory("p", changed["iri"])["properties"]["topic"] == ["store"]


def test_an_upsert_may_supersede_further_memories(do, memory):
    first = do(upsert("toolchain", RUST))["result"]["items"][0]["iri"]
    other = memory.writer.remember("p", "cargo is old").iri
    value = {"summary": RUST_NOW, "supersedes": [other, first], "extra_triples": None}

    stored = do(upsert("toolchain", value))["result"]["items"][0]["iri"]

    assert [memory.reader.get_memory("p", old)["superseded_by"] for old in (first, other)] == [[stored], [stored]]
    assert memory.reader.get_memory("p", stored)["properties"]["key"] == ["toolchain"]


def test_a_delete_withdraws_the_memory_with_its_reason(do, reader):  # A118
    item = do(upsert("toolchain", RUST))["result"]["items"][0]["iri"]

    deleted = do(forget("toolchain", "absent", provider="graph", opts={"reason": "we build with Bazel"}))

    marker = deleted["result"]["items"][0]["iri"]
    assert (deleted["result"]["count"], deleted["result"]["missing"]) == (1, ["absent"])
    assert reader.get_memory("p", item)["invalidated_by"] == [marker]
    assert reader.get_memory("p", marker)["properties"]["rationale"] == ["we build with Bazel"]
    assert do(lookup("toolchain", provider="graph"))["result"] == []
    assert do(recall("rust", provider="graph"))["result"] == []


def test_a_delete_without_a_reason_records_agent_and_key(do, memory):
    do(upsert("toolchain", RUST))

    marker = do(forget("toolchain", provider="graph"))["result"]["items"][0]["iri"]

    rationale = memory.reader.get_memory("p", marker)["properties"]["rationale"]
    assert rationale == [f"{memory.writer.agent} forgot 'toolchain'"]


def test_a_query_for_a_text_is_a_recall_with_keys_and_scores(do, memory):  # A123
    do(upsert("toolchain", RUST))
    unkeyed = memory.writer.remember("p", "Rust comes from rustup, and the build pins it").iri
    do(upsert("lunch", "lunch is at noon"))

    rows = do(recall("the Rust of the build", provider="graph"))["result"]
    best = do(recall("the Rust of the build", top_k=1, provider="graph"))["result"]

    assert {row["key"] for row in rows} == {"toolchain", unkeyed}
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert {row["value"]["content"] for row in rows} >= {RUST}
    assert best == rows[:1]


def test_a_recall_accepts_filters_and_refuses_unknown_ones(do):
    do(upsert("toolchain", RUST))
    do(upsert("store", {**STORE, "summary": "Use Oxigraph for the build"}))
    ask = {"text": "build"}

    rows = do(MemoryQuery(query={**ask, "kinds": ["decision"]}, provider="graph"))["result"]
    unknown = do(MemoryQuery(query={**ask, "kind": ["decision"]}, provider="graph"))["reason"]
    limited = do(MemoryQuery(query={**ask, "limit": 2, "project": "q"}, provider="graph"))["reason"]

    assert [row["key"] for row in rows] == ["store"]
    assert (unknown["code"], unknown["hint"]) == ("invalid_argument", "did you mean 'kinds'?")
    assert limited["detail"] == "a query for a text has no 'limit'"


def test_query_results_are_plain_json(do):
    do(upsert("toolchain", {"summary": RUST, "expires_on": "2026-12-01", "topic": "toolchain", "about": ["a.py"]}))
    queries = [{"text": "build", "explain": True}, {"name": "timeline"}, {"name": "facts"}, {"key": "toolchain"}]

    results = [do(MemoryQuery(query=query, provider="graph")) for query in queries]

    assert [len(data["result"]) for data in results] == [1, 1, 1, 1]
    assert json.loads(json.dumps(results)) == results
    assert results[0]["result"][0]["value"]["metadata"]["recorded_at"].endswith("Z")


def test_a_recall_may_be_limited_to_an_agent_and_a_session(do, memory):
    do(upsert("toolchain", RUST))
    do(upsert("store", {**STORE, "summary": "Use Oxigraph for the build", "asserted_in": "s-2"}))
    ask = {"text": "build", "agent_id": "planner", "session_id": "s-2", "scope": "session"}

    rows = do(MemoryQuery(query=ask, provider="graph"))["result"]

    assert [row["key"] for row in rows] == ["store"]


def test_a_named_query_accepts_valid_at(do):
    do(upsert("freeze", {"summary": "we release nothing", "valid_until": "2026-12-01T00:00:00Z"}))
    ask = {"name": "facts"}

    during = do(MemoryQuery(query={**ask, "valid_at": "2026-11-22T00:00:00Z"}, provider="graph"))["result"]
    after = do(MemoryQuery(query={**ask, "valid_at": "2026-12-02T00:00:00Z"}, provider="graph"))["result"]

    assert ([row["key"] for row in during], after) == (["freeze"], [])


def test_a_query_by_name_runs_the_named_query(do, memory):
    ship = do(upsert("ship", {"type": "task", "summary": "ship it", "assigned_to": "planner"}))["result"]["items"][0]
    other = memory.writer.submit_intent("p", intent(type="task", summary="tell everybody", assigned_to="planner")).iri

    rows = do(MemoryQuery(query={"name": "open-tasks"}, provider="graph"))["result"]
    one = do(MemoryQuery(query={"name": "open-tasks", "top_k": 1}, provider="graph"))["result"]
    history = do(MemoryQuery(query={"name": "history", "params": {"item": ship["iri"]}}, provider="graph"))

    assert {(row["key"], row["value"]["summary"], row["score"]) for row in rows} == {
        ("ship", "ship it", 1.0),
        (other, "tell everybody", 1.0),
    }
    assert one == rows[:1]
    assert history["status"] == "ok", history


def test_a_named_query_accepts_as_of(do, memory):
    do(upsert("ship", {"type": "task", "summary": "ship it", "assigned_to": "planner"}))
    then = memory.sources.now()
    do(forget("ship", provider="graph"))

    now = do(MemoryQuery(query={"name": "open-tasks"}, provider="graph"))["result"]
    before = do(MemoryQuery(query={"name": "open-tasks", "as_of": then}, provider="graph"))["result"]

    assert now == []
    assert [row["value"]["summary"] for row in before] == ["ship it"]


def test_a_refused_upsert_returns_the_corrected_intent(do):  # A125
    refused = do(upsert("ship", {"type": "task", "summary": "ship it", "status": "InProgres"}))

    assert (refused["status"], refused["reason"]["code"]) == ("error", "shape_violation")
    assert refused["reason"]["hint"] == "resubmit fixed_intent as it stands"
    corrected = do(upsert("ship", refused["reason"]["fixed_intent"]))
    assert corrected["result"]["items"][0]["status"] == "asserted"
    assert do(lookup("ship", provider="graph"))["result"][0]["value"]["status"] == "InProgress"


def test_a_conflicting_upsert_returns_the_choices_that_settle_it(do, memory):
    existing = memory.writer.submit_intent("p", decision(topic="store", summary="Use a folder")).iri

    refused = do(upsert("store", STORE))["reason"]

    assert (refused["code"], refused["conflicts"][0]["iri"]) == ("conflict", existing)
    assert [choice["choice"] for choice in refused["choices"]] == ["supersedes", "coexists_with", "topic"]
    accepted = do(upsert("store", {**STORE, **refused["choices"][0]["fields"], "reason": "two machines write"}))
    assert accepted["result"]["items"][0]["status"] == "asserted"
    assert memory.reader.get_memory("p", existing)["superseded_by"] == [accepted["result"]["items"][0]["iri"]]


def test_items_before_a_refused_item_are_stored_and_counted(do):  # A125
    items = [
        {"key": "a", "value": RUST},
        {"key": "b", "value": {"type": "decision", "summary": "Use X"}},
        {"key": "c", "value": "never reached"},
    ]

    failed = do(MemoryUpsert(items=items, provider="graph"))

    assert (failed["result"]["count"], failed["reason"]["code"]) == (1, "missing_rationale")
    assert [bool(do(lookup(key, provider="graph"))["result"]) for key in "abc"] == [True, False, False]


def test_a_memory_without_a_key_is_addressed_by_its_iri(do, memory):
    existing = memory.writer.remember("p", RUST).iri

    rows = do(lookup(existing, provider="graph"))["result"]
    changed = do(upsert(existing, RUST_NOW))["result"]["items"][0]["iri"]

    assert rows[0]["value"]["summary"] == RUST
    assert memory.reader.get_memory("p", existing)["superseded_by"] == [changed]
    assert do(forget(changed, provider="graph"))["result"]["count"] == 1


def test_a_key_may_be_an_iri_and_is_stored_as_text(do, reader):
    item = do(upsert("https://example.org/toolchain", RUST))["result"]["items"][0]["iri"]

    assert reader.get_memory("p", item)["properties"]["key"] == ["https://example.org/toolchain"]
    assert do(lookup("https://example.org/toolchain", provider="graph"))["result"][0]["value"]["iri"] == item


def test_a_pending_proposal_is_not_found_by_its_key(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "propose"\n')
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision(topic="store", summary="Use a folder"))
        providers = Providers()
        providers.register("graph", GraphProvider(), {"memory": memory})

        stored = execute_directive(upsert("store", STORE), providers).data["result"]["items"][0]
        rows = execute_directive(lookup("store", provider="graph"), providers).data["result"]

    assert (stored["status"], rows) == ("proposed", [])


@pytest.mark.parametrize(
    ("directive", "code", "message"),
    [
        (upsert("a", None), "invalid_argument", "'a' cannot have a NoneType: the graph stores memories"),
        (upsert("a", 7), "invalid_argument", "'a' cannot have a int"),
        (upsert("a", {"text": "x"}), "unknown_field", "'text' is not a field of an intent; did you mean 'summary'?"),
        (upsert("a", {"type": "fact"}), "missing_required_fields", "summary"),
        (
            upsert("a", {"summary": "x", "extra_triples": 7}),
            "invalid_argument",
            "extra_triples is a list, not a number",
        ),
        (
            upsert("a", {"summary": "x", "extra_triples": "x"}),
            "invalid_argument",
            "extra_triples is a list, not a text",
        ),
        (upsert("there", {"summary": "x", "supersedes": "urn:x"}), "invalid_argument", "supersedes is a list of texts"),
        (remember("a", "x", embedding=[1.0], provider="graph"), "invalid_argument", "graph put has no 'embedding'"),
        (lookup("\ud800", provider="graph"), "invalid_argument", "half a surrogate pair"),
        (MemoryQuery(query={"text": 7}, provider="graph"), "invalid_argument", "7 is not a text"),
        (MemoryQuery(query={"text": "a", "kinds": "fact"}, provider="graph"), "invalid_argument", "kinds='fact'"),
        (MemoryQuery(query={"name": 7}, provider="graph"), "invalid_argument", "7 is not a text"),
        (MemoryQuery(query={"name": "open-tasks", "params": {7: 7}}, provider="graph"), "invalid_argument", "params"),
        (MemoryQuery(query={"name": "open-task"}, provider="graph"), "unknown_query", "open-task"),
        (
            MemoryQuery(query={"name": "open-tasks", "text": "a"}, provider="graph"),
            "invalid_argument",
            "a query has either",
        ),
        (
            MemoryQuery(query={"top_k": 1, "kinds": ["fact"]}, provider="graph"),
            "invalid_argument",
            "a query has either",
        ),
        (
            MemoryQuery(query={"name": "open-tasks", "params": {"project": "q"}}, provider="graph"),
            "invalid_argument",
            "params are the query's own parameters",
        ),
        (
            MemoryQuery(query={"name": "open-tasks", "parameters": {}}, provider="graph"),
            "invalid_argument",
            "a query by name has no 'parameters'",
        ),
    ],
)
def test_invalid_directives_of_the_graph_are_refused(do, directive, code, message):  # A125
    do(upsert("there", RUST))

    data = do(directive)

    assert (data["status"], data["reason"]["code"]) == ("error", code)
    assert message in data["reason"]["detail"]


def test_an_empty_project_has_no_results(do):
    queries = [{"text": "rust"}, {"name": "open-tasks"}, {"key": "a"}]

    assert [do(MemoryQuery(query=query, provider="graph"))["result"] for query in queries] == [[], [], []]
    assert do(forget("a", provider="graph"))["result"]["missing"] == ["a"]


def test_a_graph_provider_requires_an_open_memory(memory):
    with pytest.raises(InvalidRequest, match="a graph provider needs an open memory"):
        GraphProvider().init({"project": "p"})
    with pytest.raises(InvalidRequest, match="has no 'projects'"):
        GraphProvider().init({"memory": memory, "projects": "p"})

    assert GraphProvider().init({"memory": memory}).project == memory.project


def test_concurrent_upserts_of_one_key_leave_one_value(tmp_path):
    start, provider = Barrier(2), GraphProvider()
    with jidomem.open(tmp_path / "root") as first, jidomem.open(tmp_path / "root") as second:
        states = [provider.init({"memory": memory, "project": "p"}) for memory in (first, second)]

        def work(state, name):
            for n in range(6):
                start.wait()
                provider.put(state, f"shared {n}", f"{name} says {n}", {})

        threads = [Thread(target=work, args=each) for each in zip(states, ("first", "second"), strict=True)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]

        summaries = [[provider.get(state, f"shared {n}", {}).value["summary"] for n in range(6)] for state in states]
        active = second.reader.ask("facts", project="p")
        provider.delete(states[1], "shared 0", {})
        after = [provider.get(state, "shared 0", {}) for state in states]

    assert summaries[0] == summaries[1]
    assert sorted(row["summary"] for row in active) == sorted(summaries[0])
    assert all(isinstance(each, Missing) for each in after)
