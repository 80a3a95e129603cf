"""The store in memory, the reference for every other store."""

import sys
from dataclasses import replace
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.entries import (
    Entry,
    InMemoryStore,
    MissingHandle,
    RecallRequest,
    StoreError,
    WriteRequest,
    WriteResult,
    list_entries,
    recall,
    write,
)
from jidomem.errors import InvalidRequest

NAMES = st.sampled_from(["a", "b", "c"])
WRITTEN = st.lists(
    st.builds(Entry, id=NAMES, agent_id=NAMES, session_id=st.none() | NAMES, content=st.sampled_from(["x", "y"])),
    max_size=12,
)
REQUESTS = st.builds(
    RecallRequest,
    agent_id=NAMES,
    query=st.just("x"),
    session_id=st.none() | NAMES,
    scope=st.sampled_from(["agent", "session"]),
    limit=st.integers(1, 4),
)


@pytest.fixture
def store():
    return InMemoryStore()


def entry(name, **more):
    return Entry(**{"id": name, "agent_id": "demo", "content": f"{name} said", **more})


def ids(entries):
    return [entry_.id for entry_ in entries]


def request_of(**more):
    return RecallRequest(**{"agent_id": "demo", "query": "anything", **more})


def test_the_quick_example_recalls_an_entry_without_the_words_of_the_query(store):
    write(store, Entry(agent_id="time_agent", content="User prefers Chicago time"))

    result = recall(store, agent_id="time_agent", query="preferred timezone", limit=3)

    assert [one.content for one in result.entries] == ["User prefers Chicago time"]  # B052


def test_the_test_example_finds_hello(store):
    write(store, Entry(agent_id="demo", content="hello"))

    assert [one.content for one in recall(store, agent_id="demo", query="hello", limit=5).entries] == ["hello"]  # B053


def test_a_handle_that_was_started_is_addressed_by_pid():
    handle = InMemoryStore()
    store = (InMemoryStore, {"pid": handle})

    write(store, entry("a"))

    assert ids(recall(store, request_of()).entries) == ids(list_entries(store)) == ["a"]  # B050
    assert ids(list_entries(handle)) == ["a"]  # B051
    assert ids(list_entries((InMemoryStore(), {"pid": handle}))) == ["a"]


@pytest.mark.parametrize("store_", [InMemoryStore, (InMemoryStore, {}), (InMemoryStore, {"pid": None})])
def test_the_class_without_a_handle_is_the_documented_error(store_):
    for call in (lambda: recall(store_, request_of()), lambda: write(store_, entry("a")), lambda: list_entries(store_)):
        with pytest.raises(MissingHandle) as refused:
            call()
        assert str(refused.value) == "in-memory memory store requires pid"  # B050, B071
        assert isinstance(refused.value, StoreError)
        assert isinstance(refused.value, ValueError)
        assert refused.value.hint == (
            "start one: handle = InMemoryStore(); then give handle, or (InMemoryStore, {'pid': handle})"
        )


@pytest.mark.parametrize("handle", [None, "pid", 7, {}])
def test_an_invalid_handle_is_refused_by_an_instance_too(store, handle):
    for call in (
        lambda: store.recall(request_of(), {"pid": handle}),
        lambda: store.write(WriteRequest(entry("a")), {"pid": handle}),
        lambda: store.list_entries({"pid": handle}),
    ):
        with pytest.raises(MissingHandle) as refused:
            call()
        assert refused.value.reason is handle
    assert list_entries(store) == []


def test_the_store_itself_is_a_handle_and_needs_no_options(store):
    stored = entry("a")

    assert store.write(WriteRequest(stored)) == WriteResult(WriteRequest(stored), stored)  # B051
    assert store.recall(request_of()).entries == store.list_entries() == [stored]


def test_two_stores_share_nothing(store):
    write(store, entry("a"))

    assert list_entries(InMemoryStore()) == []  # B057
    assert recall(InMemoryStore(), request_of()).entries == []


def test_neither_disk_nor_network_is_used():
    events, listens = [], [False]

    def hook(event, args):
        if listens[0] and event.split(".")[0] in ("open", "os", "socket", "sqlite3", "subprocess", "urllib", "shutil"):
            events.append((event, args))

    sys.addaudithook(hook)
    listens[0] = True
    try:
        store = InMemoryStore()
        write(store, entry("a"))
        recall(store, request_of())
        list_entries(store)
    finally:
        listens[0] = False
    assert events == []  # B049


def test_a_second_write_of_an_id_replaces_the_entry(store):
    write(store, entry("a", content="old"))
    result = write(store, entry("a", content="new", agent_id="other", session_id="s"))

    assert result.entry.content == "new"
    assert list_entries(store) == [entry("a", content="new", agent_id="other", session_id="s")]  # B039
    assert recall(store, request_of()).entries == []


def test_the_newest_comes_first_and_an_upsert_makes_an_entry_the_newest(store):
    for name in ("a", "b", "c", "a"):
        write(store, entry(name))

    assert ids(recall(store, request_of()).entries) == ["a", "c", "b"]  # B054
    assert ids(list_entries(store)) == ["b", "c", "a"]


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_recall_returns_the_newest_entries_up_to_the_limit(store, limit):
    for name in "abcd":
        write(store, entry(name))

    assert ids(recall(store, request_of(limit=limit)).entries) == ["d", "c", "b", "a"][:limit]  # B043
    assert ids(recall(store, request_of(limit=1_000)).entries) == ["d", "c", "b", "a"]


def test_the_limit_counts_covered_entries_only(store):
    write(store, entry("mine"))
    for name in "abcdef":
        write(store, entry(name, agent_id="other"))

    assert ids(recall(store, request_of(limit=1)).entries) == ["mine"]  # B040, B043


@pytest.fixture
def shared(store):
    """A store with an entry of no session and of each of two, and one of another agent."""
    for name, more in {"all": {}, "s": {"session_id": "s"}, "t": {"session_id": "t"}, "x": {"agent_id": "x"}}.items():
        write(store, entry(name, **more))
    return store


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["all"]),
        ({"session_id": "s"}, ["s", "all"]),
        ({"session_id": "u"}, ["all"]),
        ({"scope": "session", "session_id": "s"}, ["s"]),
        ({"scope": "session", "session_id": "u"}, []),
        ({"scope": "session"}, []),
        ({"agent_id": "x"}, ["x"]),
        ({"agent_id": "nobody"}, []),
    ],
)
def test_an_agent_recalls_its_entries_without_a_session_and_of_the_named_session(shared, options, expected):
    assert ids(recall(shared, request_of(**options)).entries) == expected  # B041, B042, B055


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["t", "s", "all"]),
        ({"session_id": "s"}, ["t", "s", "all"]),
        ({"scope": "session", "session_id": "s"}, ["s"]),
    ],
)
def test_include_sessions_recalls_the_other_sessions(shared, options, expected):
    assert ids(recall((shared, {"include_sessions": True}), request_of(**options)).entries) == expected
    assert ids(recall((shared, {"include_sessions": False}), request_of()).entries) == ["all"]


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_include_sessions_is_true_or_false(shared, value):
    with pytest.raises(InvalidRequest) as refused:
        recall((shared, {"include_sessions": value}), request_of())
    assert str(refused.value) == f"include_sessions={value!r} is not a boolean"
    assert refused.value.hint == "give include_sessions=True"


def test_list_entries_lists_all_agents(shared):
    assert ids(list_entries(shared)) == ["all", "s", "t", "x"]  # B044


def test_unknown_options_and_metadata_are_unchanged(store):
    opts = {"tenant": "t-1", "model": object(), "limit": 1, "scope": "session"}
    given_options = dict(opts)
    stored = entry("a", metadata={"trace": ["t"]})

    for name in ("a", "b"):
        result = write((store, opts), WriteRequest(replace(stored, id=name), {"tenant": "t-2"}))
    recalled = recall((store, opts), request_of(metadata={"model": "m"}))

    assert opts == given_options  # B045
    assert result.request.metadata == {"tenant": "t-2"}
    assert (recalled.request.metadata, ids(recalled.entries)) == ({"model": "m"}, ["b", "a"])
    assert [one.metadata for one in list_entries((store, opts))] == [{"trace": ["t"]}] * 2


def test_recall_and_list_of_nothing_are_empty(store):
    assert recall(store, request_of(scope="session", session_id="gone")).entries == []  # B028, B048
    assert recall(store, agent_id="nobody", query="nothing").entries == []
    assert list_entries(store) == []


def test_stored_entries_are_not_changed_by_given_or_returned_ones(store):
    given_metadata = {"tags": ["kept"]}
    written = entry("a", metadata=given_metadata)
    answers = [
        written,
        write(store, written).entry,
        *recall(store, request_of()).entries,
        *list_entries(store),
    ]

    given_metadata["tags"].append("changed")
    list_entries(store).clear()
    for one in answers:
        with pytest.raises(TypeError, match="cannot be changed"):
            one.metadata["tags"].append("changed")
        with pytest.raises(TypeError, match="cannot be changed"):
            one.metadata["more"] = 1

    assert recall(store, request_of()).entries[0].metadata == {"tags": ["kept"]}
    assert list_entries(store)[0].metadata == {"tags": ["kept"]}


def test_concurrent_writes_and_recalls_lose_nothing(store):
    start, faults = Barrier(8), []

    def work(number):
        start.wait()
        try:
            for turn in range(40):
                write(store, entry(f"{number}-{turn % 20}"))
                recalled = recall(store, request_of(limit=10)).entries
                assert len({one.id for one in recalled}) == len(recalled) <= 10
                assert len(list_entries(store)) >= turn % 20
        except Exception as fault:
            faults.append(fault)

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    switched = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switched)

    assert faults == []  # B056
    assert {one.id for one in list_entries(store)} == {f"{number}-{turn}" for number in range(8) for turn in range(20)}


@given(WRITTEN, REQUESTS)
def test_recall_returns_exactly_the_covered_entries_up_to_its_limit(written, request):
    store = InMemoryStore()
    for one in written:
        write(store, one)

    later = [{other.id for other in written[place + 1 :]} for place in range(len(written))]
    stored = [one for one, ids_ in zip(written, later, strict=True) if one.id not in ids_][::-1]
    result = recall(store, request)

    assert result.request is request
    assert list_entries(store) == stored[::-1]  # B039
    assert result.entries == [one for one in stored if request.covers(one)][: request.limit]  # B043
    assert {one.agent_id for one in result.entries} <= {request.agent_id}  # B040
    allowed = {request.session_id} if request.scope == "session" else {None, request.session_id}
    assert {one.session_id for one in result.entries} <= allowed


@pytest.mark.parametrize("verb", [recall, write, list_entries])
def test_a_misspelt_option_is_refused_with_the_right_name(store, verb):
    given = {recall: [request_of()], write: [entry("a")], list_entries: []}[verb]
    with pytest.raises(InvalidRequest) as refused:
        verb((store, {"include_session": True}), *given)
    assert (refused.value.detail, refused.value.hint) == (
        "there is no option 'include_session'; did you mean 'include_sessions'?", "give 'include_sessions'",
    )  # fmt: skip
