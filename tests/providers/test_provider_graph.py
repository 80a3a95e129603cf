"""The graph provider: upserts, deletes and queries of a project's memory, judged like every other intent."""

import json
from threading import Barrier, Thread

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.providers import GraphProvider, Providers, execute_directive
from jidomem.providers.conformance import ProviderContract
from jidomem.records.directive import MemoryQuery, MemoryUpsert, Missing, forget, lookup, recall, remember

RUST, RUST_NOW = "the build needs Rust 1.80", "the build needs Rust 1.81"
STORE = {"type": "decision", "summary": "Use Oxigraph", "rationale": "it embeds", "topic": "store"}
BY_TEXT = {"text": "what does the build need? Rust? Oxigraph?"}


class OverARoot(ProviderContract):
    search = BY_TEXT

    @pytest.fixture(autouse=True)
    def _root(self, memory):
        self.memory = memory

    def opened(self):
        return GraphProvider(), {"memory": self.memory, "project": "p"}


class TestTextsInTheGraph(OverARoot):
    values = (RUST, RUST_NOW)

    def same(self, given, got):
        return got["summary"] == given


class TestIntentsInTheGraph(OverARoot):
    values = (STORE, {"type": "lesson", "summary": "Oxigraph takes one process"})

    def same(self, given, got):
        return {
            **given,
            "type": "lesson_learned" if given["type"] == "lesson" else given["type"],
        }.items() <= got.items()


@pytest.fixture
def providers(memory):
    found = Providers()
    found.register("graph", GraphProvider(), {"memory": memory, "project": "p"})
    return found


@pytest.fixture
def do(providers):
    """Performs a directive, and gives the data of its signal."""
    return lambda directive: execute_directive(directive, providers).data


def upsert(key, value):
    return remember(key, value, provider="graph")


def test_an_upsert_is_an_intent_and_answers_with_its_receipt(do, reader):  # A117 A126
    result = do(upsert("toolchain", RUST))["result"]

    (item,) = result["items"]
    kept = reader.get_memory("p", item["iri"])
    assert (result["count"], item["key"], item["status"]) == (1, "toolchain", "asserted")
    assert (kept["type"], kept["status"], kept["commit"]) == ("fact", "active", item["commit"])
    assert kept["properties"]["summary"] == [RUST]
    assert kept["properties"]["key"] == ["toolchain"]


def test_an_upsert_of_the_same_key_supersedes_and_says_so_for_ever(do, reader):
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


def test_an_upsert_of_the_same_value_keeps_nothing_more(do, memory):
    first = do(upsert("toolchain", RUST))["result"]["items"][0]
    before = memory.catch_up("p")

    again = do(upsert("toolchain", f"  {RUST} "))["result"]["items"][0]

    assert (again["status"], again["iri"]) == ("deduplicated", first["iri"])
    assert memory.catch_up("p") == before


def test_what_was_got_can_be_put_again_with_a_change(do, reader):
    first = do(upsert("store", STORE))["result"]["items"][0]["iri"]
    value = do(lookup("store", provider="graph"))["result"][0]["value"]

    same = do(upsert("store", value))["result"]["items"][0]
    changed = do(upsert("store", {**value, "rationale": "it embeds, and loads fast"}))["result"]["items"][0]

    assert (same["status"], same["iri"]) == ("deduplicated", first)
    assert reader.get_memory("p", first)["superseded_by"] == [changed["iri"]]
    assert reader.get_memory("p", changed["iri"])["properties"]["topic"] == ["store"]


def test_a_value_may_supersede_more_than_what_is_under_its_key(do, memory):
    first = do(upsert("toolchain", RUST))["result"]["items"][0]["iri"]
    other = memory.writer.remember("p", "cargo is old").iri
    value = {"summary": RUST_NOW, "supersedes": [other, first], "extra_triples": None}

    kept = do(upsert("toolchain", value))["result"]["items"][0]["iri"]

    assert [memory.reader.get_memory("p", old)["superseded_by"] for old in (first, other)] == [[kept], [kept]]
    assert memory.reader.get_memory("p", kept)["properties"]["key"] == ["toolchain"]


def test_a_delete_withdraws_for_a_reason_and_history_still_tells(do, reader):  # A118
    item = do(upsert("toolchain", RUST))["result"]["items"][0]["iri"]

    gone = do(forget("toolchain", "absent", provider="graph", opts={"reason": "we build with Bazel"}))

    marker = gone["result"]["items"][0]["iri"]
    assert (gone["result"]["count"], gone["result"]["missing"]) == (1, ["absent"])
    assert reader.get_memory("p", item)["invalidated_by"] == [marker]
    assert reader.get_memory("p", marker)["properties"]["rationale"] == ["we build with Bazel"]
    assert do(lookup("toolchain", provider="graph"))["result"] == []
    assert do(recall("rust", provider="graph"))["result"] == []


def test_a_delete_without_a_reason_says_who_forgot_what(do, memory):
    do(upsert("toolchain", RUST))

    marker = do(forget("toolchain", provider="graph"))["result"]["items"][0]["iri"]

    said = memory.reader.get_memory("p", marker)["properties"]["rationale"]
    assert said == [f"{memory.writer.agent} forgot 'toolchain'"]


def test_a_query_for_a_text_is_a_recall_by_key_and_score(do, memory):  # A123
    do(upsert("toolchain", RUST))
    unkeyed = memory.writer.remember("p", "Rust comes from rustup, and the build pins it").iri
    do(upsert("lunch", "lunch is at noon"))

    found = do(recall("the Rust of the build", provider="graph"))["result"]
    best = do(recall("the Rust of the build", top_k=1, provider="graph"))["result"]

    assert {row["key"] for row in found} == {"toolchain", unkeyed}
    assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)
    assert {row["value"]["content"] for row in found} >= {RUST}
    assert best == found[:1]


def test_a_recall_may_be_narrowed_and_refuses_what_narrows_nothing(do):
    do(upsert("toolchain", RUST))
    do(upsert("store", {**STORE, "summary": "Use Oxigraph for the build"}))
    ask = {"text": "build"}

    found = do(MemoryQuery(query={**ask, "kinds": ["decision"]}, provider="graph"))["result"]
    unknown = do(MemoryQuery(query={**ask, "kind": ["decision"]}, provider="graph"))["reason"]
    limited = do(MemoryQuery(query={**ask, "limit": 2, "project": "q"}, provider="graph"))["reason"]

    assert [row["key"] for row in found] == ["store"]
    assert (unknown["code"], unknown["hint"]) == ("invalid_argument", "did you mean 'kinds'?")
    assert limited["detail"] == "a query for a text has no 'limit'"


def test_what_is_found_is_plain_json(do):
    do(upsert("toolchain", {"summary": RUST, "expires_on": "2026-12-01", "topic": "toolchain", "about": ["a.py"]}))
    queries = [{"text": "build", "explain": True}, {"name": "timeline"}, {"name": "facts"}, {"key": "toolchain"}]

    found = [do(MemoryQuery(query=query, provider="graph")) for query in queries]

    assert [len(data["result"]) for data in found] == [1, 1, 1, 1]
    assert json.loads(json.dumps(found)) == found
    assert found[0]["result"][0]["value"]["metadata"]["recorded_at"].endswith("Z")


def test_a_recall_may_be_of_a_session_and_of_who_asks(do, memory):
    do(upsert("toolchain", RUST))
    do(upsert("store", {**STORE, "summary": "Use Oxigraph for the build", "asserted_in": "s-2"}))
    ask = {"text": "build", "agent_id": "planner", "session_id": "s-2", "scope": "session"}

    found = do(MemoryQuery(query=ask, provider="graph"))["result"]

    assert [row["key"] for row in found] == ["store"]


def test_a_question_may_be_about_what_holds_at_another_time(do):
    do(upsert("freeze", {"summary": "we release nothing", "valid_until": "2026-12-01T00:00:00Z"}))
    ask = {"name": "facts"}

    during = do(MemoryQuery(query={**ask, "valid_at": "2026-11-22T00:00:00Z"}, provider="graph"))["result"]
    after = do(MemoryQuery(query={**ask, "valid_at": "2026-12-02T00:00:00Z"}, provider="graph"))["result"]

    assert ([row["key"] for row in during], after) == (["freeze"], [])


def test_a_query_by_name_is_a_question_of_the_playbook(do, memory):
    ship = do(upsert("ship", {"type": "task", "summary": "ship it", "assigned_to": "planner"}))["result"]["items"][0]
    other = memory.writer.submit_intent("p", intent(type="task", summary="tell everybody", assigned_to="planner")).iri

    found = do(MemoryQuery(query={"name": "open-tasks"}, provider="graph"))["result"]
    one = do(MemoryQuery(query={"name": "open-tasks", "top_k": 1}, provider="graph"))["result"]
    history = do(MemoryQuery(query={"name": "history", "params": {"item": ship["iri"]}}, provider="graph"))

    assert {(row["key"], row["value"]["summary"], row["score"]) for row in found} == {
        ("ship", "ship it", 1.0),
        (other, "tell everybody", 1.0),
    }
    assert one == found[:1]
    assert history["status"] == "ok", history


def test_a_question_may_be_about_another_moment(do, memory):
    do(upsert("ship", {"type": "task", "summary": "ship it", "assigned_to": "planner"}))
    then = memory.sources.now()
    do(forget("ship", provider="graph"))

    now = do(MemoryQuery(query={"name": "open-tasks"}, provider="graph"))["result"]
    before = do(MemoryQuery(query={"name": "open-tasks", "as_of": then}, provider="graph"))["result"]

    assert now == []
    assert [row["value"]["summary"] for row in before] == ["ship it"]


def test_a_refusal_carries_the_intent_that_would_be_accepted(do):  # A125
    refused = do(upsert("ship", {"type": "task", "summary": "ship it", "status": "InProgres"}))

    assert (refused["status"], refused["reason"]["code"]) == ("error", "shape_violation")
    assert refused["reason"]["hint"] == "resubmit fixed_intent as it stands"
    mended = do(upsert("ship", refused["reason"]["fixed_intent"]))
    assert mended["result"]["items"][0]["status"] == "asserted"
    assert do(lookup("ship", provider="graph"))["result"][0]["value"]["status"] == "InProgress"


def test_a_conflict_carries_what_settles_it(do, memory):
    there = memory.writer.submit_intent("p", decision(topic="store", summary="Use a folder")).iri

    refused = do(upsert("store", STORE))["reason"]

    assert (refused["code"], refused["conflicts"][0]["iri"]) == ("conflict", there)
    assert [choice["choice"] for choice in refused["choices"]] == ["supersedes", "coexists_with", "topic"]
    settled = do(upsert("store", {**STORE, **refused["choices"][0]["fields"], "reason": "two machines write"}))
    assert settled["result"]["items"][0]["status"] == "asserted"
    assert memory.reader.get_memory("p", there)["superseded_by"] == [settled["result"]["items"][0]["iri"]]


def test_items_before_the_one_that_is_refused_are_kept_and_counted(do):  # A125
    items = [
        {"key": "a", "value": RUST},
        {"key": "b", "value": {"type": "decision", "summary": "Use X"}},
        {"key": "c", "value": "never reached"},
    ]

    failed = do(MemoryUpsert(items=items, provider="graph"))

    assert (failed["result"]["count"], failed["reason"]["code"]) == (1, "missing_rationale")
    assert [bool(do(lookup(key, provider="graph"))["result"]) for key in "abc"] == [True, False, False]


def test_a_memory_without_a_key_goes_by_its_iri(do, memory):
    there = memory.writer.remember("p", RUST).iri

    found = do(lookup(there, provider="graph"))["result"]
    changed = do(upsert(there, RUST_NOW))["result"]["items"][0]["iri"]

    assert found[0]["value"]["summary"] == RUST
    assert memory.reader.get_memory("p", there)["superseded_by"] == [changed]
    assert do(forget(changed, provider="graph"))["result"]["count"] == 1


def test_an_iri_may_be_a_key_and_stays_a_text(do, reader):
    item = do(upsert("https://example.org/toolchain", RUST))["result"]["items"][0]["iri"]

    assert reader.get_memory("p", item)["properties"]["key"] == ["https://example.org/toolchain"]
    assert do(lookup("https://example.org/toolchain", provider="graph"))["result"][0]["value"]["iri"] == item


def test_a_proposal_that_waits_for_a_curator_holds_no_key(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "propose"\n')
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision(topic="store", summary="Use a folder"))
        providers = Providers()
        providers.register("graph", GraphProvider(), {"memory": memory})

        kept = execute_directive(upsert("store", STORE), providers).data["result"]["items"][0]
        found = execute_directive(lookup("store", provider="graph"), providers).data["result"]

    assert (kept["status"], found) == ("proposed", [])


@pytest.mark.parametrize(
    ("directive", "code", "says"),
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
def test_what_cannot_be_honoured_is_refused(do, directive, code, says):  # A125
    do(upsert("there", RUST))

    data = do(directive)

    assert (data["status"], data["reason"]["code"]) == ("error", code)
    assert says in data["reason"]["detail"]


def test_nothing_is_found_in_a_project_nobody_wrote_to(do):
    queries = [{"text": "rust"}, {"name": "open-tasks"}, {"key": "a"}]

    assert [do(MemoryQuery(query=query, provider="graph"))["result"] for query in queries] == [[], [], []]
    assert do(forget("a", provider="graph"))["result"]["missing"] == ["a"]


def test_a_graph_provider_is_over_an_open_memory(memory):
    with pytest.raises(InvalidRequest, match="a graph provider needs an open memory"):
        GraphProvider().init({"project": "p"})
    with pytest.raises(InvalidRequest, match="has no 'projects'"):
        GraphProvider().init({"memory": memory, "projects": "p"})

    assert GraphProvider().init({"memory": memory}).project == memory.project


def test_processes_that_upsert_one_key_at_once_leave_one_value_to_be_found(tmp_path):
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

        found = [[provider.get(state, f"shared {n}", {}).value["summary"] for n in range(6)] for state in states]
        in_force = second.reader.ask("facts", project="p")
        provider.delete(states[1], "shared 0", {})
        after = [provider.get(state, "shared 0", {}) for state in states]

    assert found[0] == found[1]
    assert sorted(row["summary"] for row in in_force) == sorted(found[0])
    assert all(isinstance(each, Missing) for each in after)
