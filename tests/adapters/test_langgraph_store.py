"""LangGraph's store over entries: its features beyond SqliteStore, and its differences from it."""

import asyncio
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypedDict

import pytest
from conftest import fixed_sources, wait_until
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

import jidomem
from jidomem.adapters.langgraph import JidomemStore
from jidomem.curation import find_text, redact
from jidomem.entries import list_entries, recall
from jidomem.errors import IntentRefused, InvalidRequest, TooLarge
from jidomem.journal.journal import Stream
from jidomem.read.derived import count_entries
from jidomem.records.entry import Entry, WriteRequest
from jidomem.write.conversation import ID, METADATA, TEXT

ANA = ("users", "ana")


class Clock:
    """A clock that advances a microsecond with each reading."""

    def __init__(self):
        self.now = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(microseconds=1)
        return self.now

    def pass_minutes(self, minutes):
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def memory(root, clock):
    with jidomem.open(root, project="p", agent="graph", sources=replace(fixed_sources(), now=clock)) as opened:
        yield opened


@pytest.fixture
def store(memory):
    return JidomemStore(memory)


def keys(items):
    return [item.key for item in items]


def test_an_item_has_the_times_of_its_first_and_last_put(store, clock):
    store.put(ANA, "tea", {"likes": "tea"})
    first = store.get(ANA, "tea")
    clock.pass_minutes(5)
    store.put(ANA, "tea", {"likes": "coffee"})
    second = store.get(ANA, "tea")
    store.delete(ANA, "tea")
    store.put(ANA, "tea", {"likes": "water"})

    assert first.created_at == first.updated_at < second.updated_at
    assert second.created_at == first.created_at  # the SqliteStore replaces it at each put
    assert store.get(ANA, "tea").created_at > second.updated_at
    assert (first.created_at.tzinfo, first.created_at.year) == (UTC, 2026)


def test_every_version_is_stored_and_the_present_one_recalled(memory, store):
    store.put(ANA, "drink", {"text": "Ana prefers tea", "score": 3})
    moment = memory.journal.head(Stream("p", "history")).recorded_at
    store.put(ANA, "drink", {"text": "Ana prefers coffee", "score": 4})

    (hit,) = memory.recall("what does Ana prefer?", kinds=["entry"]).entries
    assert hit.content == "Ana prefers coffee"
    (before,) = list_entries((memory.entries, {"as_of": moment}))
    assert before.metadata["value"]["text"] == "Ana prefers tea"

    store.delete(ANA, "drink")

    assert memory.recall("Ana", kinds=["entry"]).entries == []
    assert [entry.content for entry in memory.entries.list_entries({"as_of": moment})] == ["Ana prefers tea"]


def test_the_text_of_an_entry_has_the_indexed_fields(memory, store):
    value = {"text": "tea", "notes": [{"body": "green"}, {"body": "black"}], "n": 3}
    store.put(ANA, "1", value)
    store.put(ANA, "2", value, index=["notes[*].body", "n"])
    store.put(ANA, "3", value, index=False)
    store.put(ANA, "4", {"n": 4})
    JidomemStore(memory, fields=["text"]).put(ANA, "5", value)

    contents = [entry.content for entry in list_entries(memory.entries)]
    assert contents == ["tea\ngreen\nblack", "green\nblack\n3", "users.ana 3", "users.ana 4", "tea"]
    in_namespace = recall(memory.entries, agent_id="graph", query="black", metadata={"namespace": "users.ana"})
    assert {entry.metadata["key"] for entry in in_namespace.entries} == {"1", "2", "3", "4", "5"}


def test_a_query_ranks_the_best_match_first_and_others_by_age(store):
    store.put(ANA, "1", {"text": "Ana drinks green tea in the morning"})
    store.put(ANA, "2", {"text": "the office is in Chicago"})
    store.put(("users", "ben"), "3", {"text": "Ben drinks tea"})
    store.put(ANA, "4", {"text": "she cycles to work"})

    hits = store.search(ANA, query="which tea does she drink?")
    assert keys(hits) == ["1", "4", "2"]
    assert hits[0].score > 0
    assert [item.score for item in hits[1:]] == [None, None] or hits[1].score < hits[0].score
    assert keys(store.search(("users",), query="tea", limit=1, offset=1)) in (["1"], ["3"])
    assert keys(store.search(ANA, query="tea", filter={"text": {"$ne": "she cycles to work"}})) == ["1", "2"]


def test_a_query_ranks_only_the_items_that_the_search_covers(memory, store):
    crowd = [PutOp(("customers", f"c{i}"), "1", {"text": "burst pipe", "kind": "claim"}) for i in range(1_100)]
    ana = PutOp(ANA, "old", {"text": "a burst pipe in the old kitchen of a house by the sea", "kind": "note"})
    store.batch([ana, PutOp(ANA, "new", {"text": "she drinks tea", "kind": "note"}), *crowd])
    memory.entries.write_many(
        [WriteRequest(Entry(id=f"e{i}", agent_id="graph", content="burst pipe")) for i in range(1_100)]
    )

    for where, conditions in ((ANA, None), (("users",), None), ((), {"kind": "note"})):
        first, second = store.search(where, query="burst pipe", filter=conditions)
        assert (first.key, second.key, second.score) == ("old", "new", None)
        assert first.score > 0
    everything = store.search((), query="burst pipe", limit=1_050)
    assert sum(item.score is not None for item in everything) == 1_000


def test_a_query_matches_by_meaning_with_an_embedder(root, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    with jidomem.open(root, project="p", agent="graph") as memory:
        memory.embeds_for = 30.0  # vectors are awaited
        store = JidomemStore(memory)
        store.put(ANA, "1", {"text": "her dog is called Bruno"})
        store.put(ANA, "2", {"text": "the invoice is due on Friday"})

        assert store.search(ANA, query="does she have a pet animal?")[0].key == "1"


def test_unsupported_options_and_operations_are_refused_with_a_hint(memory, store):
    with pytest.raises(InvalidRequest, match="index takes no dims, embed here") as refusal:
        JidomemStore(memory, index={"dims": 3, "embed": len, "fields": ["text"]})
    assert "embedder of the root" in refusal.value.hint
    with pytest.raises(InvalidRequest, match="ttl takes no default"):
        JidomemStore(memory, ttl={"default": 3})
    with pytest.raises(InvalidNamespaceError, match="cannot be empty"):
        store.batch([PutOp((), "k", {})])
    with pytest.raises(InvalidNamespaceError, match="cannot contain periods"):
        store.batch([GetOp(("a.b",), "k")])
    with pytest.raises(ValueError, match="max_depth=0"):
        store.list_namespaces(max_depth=0)
    with pytest.raises(ValueError, match="Unsupported match type: infix"):
        store.batch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])
    with pytest.raises(ValueError, match="Unknown operation type"):
        store.batch(["get"])
    with pytest.raises(ValueError, match=r"Invalid filter key: 'a\.\.b'"):
        store.search(ANA, filter={"a..b": 1})
    with pytest.raises(TypeError):
        store.put(ANA, "k", {"n": object()})
    assert JidomemStore(memory, index={"fields": ["text"]}).search(ANA) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": "team/.jidomem"}, "JidomemStore takes an open memory, not 'team/.jidomem'"),
        ({"memory": None}, "takes an open memory, not None"),
        ({"agent": 5}, "agent=5 is not a name"),
        ({"fields": "text"}, "fields is a list of paths"),
        ({"ttl": {"default_ttl": "an hour"}}, "default_ttl='an hour' is not a number of minutes"),
    ],
)
def test_a_store_with_invalid_arguments_is_refused(memory, arguments, message):
    with pytest.raises(InvalidRequest, match=re.escape(message)) as refusal:
        JidomemStore(**{"memory": memory, **arguments})

    assert refusal.value.hint


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": [1, {"y": float("nan")}]}, "holds nan"),
        ({"x": float("-inf")}, "holds -inf"),
        (["x"], "a value is a mapping, not list"),
    ],
)
def test_a_value_without_an_equal_json_form_is_refused(store, value, message):
    with pytest.raises(ValueError, match=message):
        store.put(ANA, "k", value)

    assert store.search(ANA) == []


def test_a_batch_is_stored_whole_or_not_at_all(memory, store):
    store.put(ANA, "1", {"n": 1})
    secret = PutOp(ANA, "3", {"text": "password = hunter2-correct-horse"})
    with pytest.raises(IntentRefused, match="password"):
        store.batch([PutOp(ANA, "2", {"n": 2}), PutOp(ANA, "1", None), secret])
    with pytest.raises(TooLarge):
        store.put(ANA, "4", {"text": "x" * 300_000})
    before = memory.journal.head(Stream("p", "history"))

    item, put_answer = store.batch([GetOp(ANA, "1"), PutOp(ANA, "1", None)])  # reads see the state before the batch

    assert (item.value, put_answer, store.search(())) == ({"n": 1}, None, [])
    assert len(memory.journal.head(Stream("p", "history")).heads) == 1
    assert memory.journal.head(Stream("p", "history")).heads[0].position == before.heads[0].position + 1


def test_agents_have_separate_stores(memory, store):
    store.put(ANA, "k", {"n": 1})
    other = JidomemStore(memory, agent="other:")
    other.put(ANA, "k", {"n": 2})

    assert (store.get(ANA, "k").value, other.get(ANA, "k").value) == ({"n": 1}, {"n": 2})


def test_items_expire_by_their_ttl_and_a_sweep_is_recorded(memory, clock):
    store = JidomemStore(memory, ttl={"default_ttl": 10})
    store.put(ANA, "default", {"n": 1})
    store.put(ANA, "short", {"n": 2}, ttl=5)
    store.put(ANA, "for good", {"n": 3}, ttl=None)
    clock.pass_minutes(6)

    omitting = JidomemStore(memory, ttl={"omit_expired": True})
    assert keys(store.search(ANA)) == ["for good", "short", "default"]  # until it is swept
    assert keys(omitting.search(ANA, limit=2)) == ["for good", "default"]
    assert omitting.get(ANA, "short") is None
    moment = memory.journal.head(Stream("p", "history")).recorded_at
    assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)
    clock.pass_minutes(5)

    assert store.sweep_ttl() == 1
    assert keys(store.search(ANA)) == ["for good"]
    assert len(list_entries((memory.entries, {"as_of": moment}))) == 3


@pytest.mark.parametrize("minutes", [1e10, 1e300])
def test_an_item_with_a_ttl_beyond_the_calendar_does_not_expire(memory, clock, minutes):
    store = JidomemStore(memory, ttl={"omit_expired": True})
    store.put(ANA, "for ages", {"n": 1}, ttl=minutes)
    store.put(ANA, "short", {"n": 2}, ttl=5)
    clock.pass_minutes(6)

    assert store.sweep_ttl() == 1
    assert keys(store.search(ANA)) == ["for ages"]


def test_reading_an_item_extends_its_ttl_when_configured(memory, clock):
    ttl = {"default_ttl": 10, "refresh_on_read": True, "omit_expired": True}
    store, other = JidomemStore(memory, ttl=ttl), JidomemStore(memory, ttl=ttl)
    for key in ("read", "found", "looked at", "left alone"):
        store.put((key,), key, {"n": 1})
    before = memory.journal.head(Stream("p", "history"))
    clock.pass_minutes(9)
    store.get(("read",), "read")
    store.search(("found",))
    store.get(("looked at",), "looked at", refresh_ttl=False)
    clock.pass_minutes(9)

    assert memory.journal.head(Stream("p", "history")) == before  # reads are not recorded in the journal
    assert sorted(keys(other.search((), refresh_ttl=False))) == ["found", "read"]
    assert other.list_namespaces() == [("found",), ("read",)]
    assert store.get(("left alone",), "left alone") is None
    assert other.sweep_ttl() == 2
    clock.pass_minutes(9)
    assert other.sweep_ttl() == 2


def test_the_moments_at_which_items_were_read_are_stored_for_each_agent(memory, root):
    for agent in ("graph", "planner"):
        store = JidomemStore(memory, agent=agent, ttl={"default_ttl": 10, "refresh_on_read": True})
        store.put(ANA, "read", {"n": 1})
        store.get(ANA, "read")

    with closing(sqlite3.connect(root / "state" / "working.sqlite")) as state:
        names = [name for (name,) in state.execute("SELECT namespace FROM key_values ORDER BY namespace")]
    assert names == ["langgraph p graph", "langgraph p planner"]


def test_a_sweeper_thread_runs_until_it_is_stopped(memory, clock):
    store = JidomemStore(memory, ttl={"default_ttl": 1, "sweep_interval_minutes": 0.0001})
    store.put(ANA, "k", {"n": 1})
    clock.pass_minutes(2)

    store.start_ttl_sweeper()
    wait_until(lambda: store.get(ANA, "k") is None)

    assert store.stop_ttl_sweeper()
    assert JidomemStore(memory).start_ttl_sweeper().result() is None


def test_concurrent_puts_of_several_stores_are_all_stored(tmp_path):
    with jidomem.open(tmp_path / "r", project="p") as first, jidomem.open(tmp_path / "r", project="p") as other:
        stores = [JidomemStore(each, agent="shared") for each in (first, other)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: stores[n % 2].put(("n", str(n % 3)), str(n), {"n": n}), range(24)))

        for store in stores:
            assert sorted(item.value["n"] for item in store.search((), limit=100)) == [*range(24)]
            assert store.list_namespaces() == [("n", "0"), ("n", "1"), ("n", "2")]


def test_concurrent_asynchronous_operations_are_all_answered(store):
    async def operations():
        await asyncio.gather(*(store.aput(ANA, str(number), {"n": number}) for number in range(8)))
        items = await store.asearch(ANA, filter={"n": {"$gte": 6}})
        await store.adelete(ANA, "7")
        return {*keys(items)}, await store.aget(ANA, "7"), await store.alist_namespaces(suffix=("ana",))

    assert asyncio.run(operations()) == ({"6", "7"}, None, [ANA])


class State(TypedDict):
    user: str
    said: str
    answer: str


def test_a_graph_remembers_from_run_to_run(root):
    from langgraph.graph import END, START, StateGraph  # takes half a second, which each test process would spend
    from langgraph.runtime import Runtime

    def answer(state: State, runtime: Runtime) -> dict:
        """A node that answers from the store, and then stores the statement."""
        space = ("users", state["user"])
        known = runtime.store.search(space, query=state["said"], limit=1)
        runtime.store.put(space, f"said-{len(runtime.store.search(space))}", {"text": state["said"]})
        return {"answer": known[0].value["text"] if known else "I do not know yet"}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    answers = []
    for statement in ("I drink green tea", "the office is in Chicago", "which tea do I drink?"):
        with jidomem.open(root, project="p", agent="graph") as memory:  # as another process, on another day
            graph = builder.compile(store=JidomemStore(memory))
            answers.append(graph.invoke({"user": "ana", "said": statement})["answer"])

    assert (answers[0], answers[2]) == ("I do not know yet", "I drink green tea")


def test_operations_of_one_batch_are_answered_in_their_order(store):
    store.put(("test", "foo"), "key1", {"data": "value1"})
    store.put(("test", "bar"), "key2", {"data": "value2"})

    answers = store.batch([
        SearchOp(("test",), {"data": "value1"}),
        PutOp(("test",), "key3", {"data": "value3"}),
        ListNamespacesOp(),
        GetOp(("test",), "key3"),
        GetOp(("test", "foo"), "key1"),
    ])  # fmt: skip

    assert (keys(answers[0]), answers[1], answers[3]) == (["key1"], None, None)
    assert answers[2] == [("test", "bar"), ("test", "foo")]
    assert (answers[4].key, answers[4].namespace, answers[4].value) == ("key1", ("test", "foo"), {"data": "value1"})
    assert store.get(("test",), "key3").value == {"data": "value3"}


def test_the_refusal_of_a_secret_names_the_value(store):
    with pytest.raises(IntentRefused, match=r"^value seems to contain a password") as refusal:
        store.put(ANA, "login", {"text": "password=hunter2"})
    assert "entry" not in refusal.value.detail + refusal.value.hint
    assert [fault.field for fault in refusal.value.violations] == ["value"]


TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_the_refusal_of_a_batch_names_the_item_its_position_and_the_repair(store):
    puts = [PutOp((f"c{n}",), "k", {"text": "password=hunter2" if n == 7 else "x"}) for n in range(9)]
    with pytest.raises(IntentRefused) as refusal:
        store.batch([GetOp(ANA, "k"), *puts])
    assert refusal.value.detail == "value seems to contain a password: item 'k' of ('c7',)"
    assert refusal.value.to_dict()["position"] == 8
    assert str(refusal.value) == f"{refusal.value.detail}; hint: {refusal.value.hint}"
    with pytest.raises(TooLarge, match=r"^value has 300,000 bytes.*: item '1' of \('users', 'ana'\)") as too_large:
        store.batch([PutOp(ANA, "0", {"n": 1}), PutOp(ANA, "1", {"text": "x" * 300_000})])
    assert too_large.value.position == 1
    for value in ({"n": float("nan")}, {"text": "\ud800"}):
        with pytest.raises((ValueError, TypeError), match=r": item 'k' of \('users', 'ana'\)$"):
            store.batch([*puts[:2], PutOp(ANA, "k", value)])


@pytest.mark.parametrize(
    ("namespace", "key", "value", "fields"),
    [
        ((TOKEN,), "k", {"text": "x"}, ["key"]),
        (ANA, TOKEN, {"n": 1}, ["key"]),
        (ANA, TOKEN, {"text": "password=hunter2"}, ["key", "value"]),
    ],
)
def test_the_refusal_of_a_secret_in_a_key_blames_the_value_only_if_it_has_one_too(store, namespace, key, value, fields):
    with pytest.raises(IntentRefused, match=r"^key seems to contain a GitHub token") as refusal:
        store.put(namespace, key, value)
    assert [fault.field for fault in refusal.value.violations] == fields
    assert TOKEN not in str(refusal.value)


@pytest.mark.parametrize("minutes", [0, -1, "5", True, float("nan")])
def test_a_time_to_live_that_is_no_positive_number_is_refused(memory, store, minutes):
    with pytest.raises(InvalidRequest, match=r"^ttl=.* is not a number of minutes above 0; hint: ttl=60$"):
        store.put(ANA, "k", {"n": 1}, ttl=minutes)
    with pytest.raises(InvalidRequest, match="default_ttl="):
        JidomemStore(memory, ttl={"default_ttl": minutes})
    assert store.get(ANA, "k") is None


def test_a_nested_filter_is_refused_with_the_path(store):
    store.put(ANA, "k", {"policy": {"kind": "home"}})
    with pytest.raises(ValueError, match=r"give its path, policy\.kind$"):
        store.search(ANA, filter={"policy": {"kind": "home"}})
    assert keys(store.search(ANA, filter={"policy.kind": "home"})) == ["k"]


def test_the_refusal_of_a_value_lists_each_fault_once(store):
    secrets = {"a": "AKIAQ3EGRJ7WTZ4PLM2N", "text": "password=hunter2"}
    with pytest.raises(IntentRefused) as refusal:
        store.put(ANA, "login", secrets, index=["text"])

    assert [fault.field for fault in refusal.value.violations] == ["value", "value"]
    first, second = (fault.message for fault in refusal.value.violations)
    assert (first, "password" in second) == (
        "value seems to contain a password: item 'login' of ('users', 'ana')",
        False,
    )


def content_below(root):
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def test_a_redacted_item_goes_with_all_its_versions_and_nothing_of_it_is_retrievable(memory, store, root):
    place = ("customers", "annli")
    for street in ("Hafenstr. 3", "Quellgasse 5"):
        store.put(place, "CL-1", {"text": "burst pipe", "name": f"Ann Li, {street}"})
    store.put(place, "CL-2", {"text": "hail on the roof"})
    entry = next(row["entry"] for row in memory.ask("entries-of-agent", agent=store.agent) if "burst" in row["words"])

    plan = memory.maintenance.plan("p", entry)
    memory.maintenance.redact(plan, agent="architect", reason="she asked for it")

    assert {*plan.entries.values()} == {"customers.annli CL-1"}
    assert len(plan.entries) == 2
    assert keys(store.search(())) == ["CL-2"]
    content = content_below(root)
    assert [text for text in (b"Hafenstr", b"Quellgasse", b"CL-1", b"burst") if text in content] == []
    assert memory.check("p").exit_code == 0
    assert count_entries(memory.reader, "p")["entries"] == 1


def test_a_redacted_name_takes_its_items_whole_and_leaves_those_of_longer_names(memory, store):
    for customer in ("K-100", "K-1001"):
        store.put(("customers", customer), "CL-1", {"text": f"claim of a burst pipe, {len(customer)}"})
    store.put(("shared",), "r", {"text": "always two photos", "see": "K-100"})

    plan = memory.maintenance.plan("p", None, texts=["K-100"])
    memory.maintenance.redact(plan, agent="architect", reason="erased")

    assert sorted(plan.entries.values()) == ["customers.K-100 CL-1", "shared r"]
    assert plan.left_out == ("K-1001",)
    assert [item.namespace for item in store.search(())] == [("customers", "K-1001")]
    hits = memory.recall("burst pipe photos", kinds=["entry"], agent=store.agent).entries
    assert [hit.content for hit in hits] == ["claim of a burst pipe, 6"]
    assert len(list_entries(memory.entries)) == len(memory.ask("entries-of-agent", agent=store.agent)) == 1
    assert count_entries(memory.reader, "p")["entries"] == 1


@pytest.mark.parametrize(("removed", "left"), [([TEXT], b"Hafenstr"), ([ID, METADATA], b"burst pipe")])
def test_the_rest_of_an_entry_that_was_redacted_in_part_is_not_recalled_and_goes_on_demand(
    memory, store, root, monkeypatch, removed, left
):
    store.put(("customers", "annli"), "CL-1", {"text": "burst pipe", "name": "Ann Li, Hafenstr. 3"})
    store.put(("customers", "boli"), "CL-2", {"text": "hail"})
    entry = next(row["entry"] for row in memory.ask("entries-of-agent", agent=store.agent) if "burst" in row["words"])
    with monkeypatch.context() as earlier:  # as earlier versions did
        for module in (find_text, redact):
            earlier.setattr(module, "ENTRY_STAYS", frozenset([ID, METADATA, TEXT, *find_text.ENTRY_STAYS]))
        plan = memory.maintenance.plan("p", entry, properties=[name[1:-1] for name in removed])
        memory.maintenance.redact(plan, agent="architect", reason="an address")
    assert left in content_below(memory.journal.path(Stream("p", "history")))
    hits = memory.recall("burst pipe Hafenstr", kinds=["entry"], agent=store.agent).entries
    assert not [hit for hit in hits if "burst" in hit.content or "Hafenstr" in hit.content]

    assert len(memory.maintenance.redact_again("p", agent="architect", reason="the rest of it")) == 1

    assert left not in content_below(root)
    assert keys(store.search(())) == ["CL-2"]
    assert memory.journal.verify(Stream("p", "history")) == ()
    assert memory.maintenance.redact_again("p", agent="architect", reason="once more") == []


def test_a_namespace_is_erased_with_its_deleted_items_by_the_beginning_of_their_ids(memory, store, root):
    for place, key in ((("users", "ann"), "1"), (("users", "ann", "notes"), "2"), (("users", "anna"), "1")):
        store.put(place, key, {"text": f"drinks tea {'.'.join(place)}"})
    store.delete(("users", "ann"), "1")

    plan = memory.maintenance.plan("p", None, texts=[f"langgraph:{store.agent}:users.ann"])
    memory.maintenance.redact(plan, agent="architect", reason="erased")

    assert sorted(plan.entries.values()) == ["users.ann 1", "users.ann.notes 2"]
    assert store.list_namespaces() == [("users", "anna")]
    assert b"users.ann " not in (content := content_below(root))
    assert b'users.ann"' not in content
    assert b"users.anna" in content
