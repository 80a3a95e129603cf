"""The store in memory, which is the reference for every other."""

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
ASKED = st.builds(
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


def ids(found):
    return [one.id for one in found]


def asking(**more):
    return RecallRequest(**{"agent_id": "demo", "query": "anything", **more})


def test_the_quick_example_finds_what_does_not_hold_the_words_of_the_query(store):
    write(store, Entry(agent_id="time_agent", content="User prefers Chicago time"))

    found = recall(store, agent_id="time_agent", query="preferred timezone", limit=3)

    assert [one.content for one in found.entries] == ["User prefers Chicago time"]  # B052


def test_the_test_example_finds_hello(store):
    write(store, Entry(agent_id="demo", content="hello"))

    assert [one.content for one in recall(store, agent_id="demo", query="hello", limit=5).entries] == ["hello"]  # B053


def test_a_handle_that_was_started_is_addressed_by_pid():
    handle = InMemoryStore()
    store = (InMemoryStore, {"pid": handle})

    write(store, entry("a"))

    assert ids(recall(store, asking()).entries) == ids(list_entries(store)) == ["a"]  # B050
    assert ids(list_entries(handle)) == ["a"]  # B051
    assert ids(list_entries((InMemoryStore(), {"pid": handle}))) == ["a"]


@pytest.mark.parametrize("given_", [InMemoryStore, (InMemoryStore, {}), (InMemoryStore, {"pid": None})])
def test_the_class_without_a_handle_is_the_documented_error(given_):
    for ask in (lambda: recall(given_, asking()), lambda: write(given_, entry("a")), lambda: list_entries(given_)):
        with pytest.raises(MissingHandle) as no:
            ask()
        assert str(no.value) == "in-memory memory store requires pid"  # B050, B071
        assert isinstance(no.value, StoreError)
        assert isinstance(no.value, ValueError)
        assert no.value.hint == (
            "start one: handle = InMemoryStore(); then give handle, or (InMemoryStore, {'pid': handle})"
        )


@pytest.mark.parametrize("handle", [None, "pid", 7, {}])
def test_a_handle_that_is_none_is_refused_by_an_instance_too(store, handle):
    for ask in (
        lambda: store.recall(asking(), {"pid": handle}),
        lambda: store.write(WriteRequest(entry("a")), {"pid": handle}),
        lambda: store.list_entries({"pid": handle}),
    ):
        with pytest.raises(MissingHandle) as no:
            ask()
        assert no.value.reason is handle
    assert list_entries(store) == []


def test_the_store_itself_is_a_handle_and_needs_no_options(store):
    kept = entry("a")

    assert store.write(WriteRequest(kept)) == WriteResult(WriteRequest(kept), kept)  # B051
    assert store.recall(asking()).entries == store.list_entries() == [kept]


def test_two_stores_share_nothing(store):
    write(store, entry("a"))

    assert list_entries(InMemoryStore()) == []  # B057
    assert recall(InMemoryStore(), asking()).entries == []


def test_neither_disk_nor_network_is_touched():
    touched, heard = [], [False]

    def hook(event, args):
        if heard[0] and event.split(".")[0] in ("open", "os", "socket", "sqlite3", "subprocess", "urllib", "shutil"):
            touched.append((event, args))

    sys.addaudithook(hook)
    heard[0] = True
    try:
        store = InMemoryStore()
        write(store, entry("a"))
        recall(store, asking())
        list_entries(store)
    finally:
        heard[0] = False
    assert touched == []  # B049


def test_writing_an_id_twice_leaves_one_entry_the_newer(store):
    write(store, entry("a", content="old"))
    result = write(store, entry("a", content="new", agent_id="other", session_id="s"))

    assert result.entry.content == "new"
    assert list_entries(store) == [entry("a", content="new", agent_id="other", session_id="s")]  # B039
    assert recall(store, asking()).entries == []


def test_the_newest_comes_first_and_an_upsert_makes_an_entry_the_newest(store):
    for name in ("a", "b", "c", "a"):
        write(store, entry(name))

    assert ids(recall(store, asking()).entries) == ["a", "c", "b"]  # B054
    assert ids(list_entries(store)) == ["b", "c", "a"]


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_no_more_than_the_limit_is_recalled_the_newest_of_them(store, limit):
    for name in "abcd":
        write(store, entry(name))

    assert ids(recall(store, asking(limit=limit)).entries) == ["d", "c", "b", "a"][:limit]  # B043
    assert ids(recall(store, asking(limit=1_000)).entries) == ["d", "c", "b", "a"]


def test_the_limit_counts_what_is_covered(store):
    write(store, entry("mine"))
    for name in "abcdef":
        write(store, entry(name, agent_id="other"))

    assert ids(recall(store, asking(limit=1)).entries) == ["mine"]  # B040, B043


@pytest.fixture
def shared(store):
    """A store with an entry of no session and of each of two, and one of another agent."""
    for name, more in {"all": {}, "s": {"session_id": "s"}, "t": {"session_id": "t"}, "x": {"agent_id": "x"}}.items():
        write(store, entry(name, **more))
    return store


@pytest.mark.parametrize(
    ("asked", "found"),
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
def test_what_an_agent_recalls_is_its_own_and_of_no_session_but_the_one_it_names(shared, asked, found):
    assert ids(recall(shared, asking(**asked)).entries) == found  # B041, B042, B055


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["t", "s", "all"]),
        ({"session_id": "s"}, ["t", "s", "all"]),
        ({"scope": "session", "session_id": "s"}, ["s"]),
    ],
)
def test_the_other_sessions_are_recalled_where_that_is_asked_for(shared, asked, found):
    assert ids(recall((shared, {"include_sessions": True}), asking(**asked)).entries) == found
    assert ids(recall((shared, {"include_sessions": False}), asking()).entries) == ["all"]


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_include_sessions_is_true_or_false(shared, value):
    with pytest.raises(InvalidRequest) as no:
        recall((shared, {"include_sessions": value}), asking())
    assert str(no.value) == f"include_sessions={value!r} is not a boolean"
    assert no.value.hint == "give include_sessions=True"


def test_all_entries_of_all_agents_are_listed(shared):
    assert ids(list_entries(shared)) == ["all", "s", "t", "x"]  # B044


def test_options_and_metadata_it_does_not_know_are_left_alone(store):
    opts = {"tenant": "t-1", "model": object(), "limit": 1, "scope": "session"}
    seen = dict(opts)
    kept = entry("a", metadata={"trace": ["t"]})

    for name in ("a", "b"):
        result = write((store, opts), WriteRequest(replace(kept, id=name), {"tenant": "t-2"}))
    found = recall((store, opts), asking(metadata={"model": "m"}))

    assert opts == seen  # B045
    assert result.request.metadata == {"tenant": "t-2"}
    assert (found.request.metadata, ids(found.entries)) == ({"model": "m"}, ["b", "a"])
    assert [one.metadata for one in list_entries((store, opts))] == [{"trace": ["t"]}] * 2


def test_what_is_not_there_is_no_error(store):
    assert recall(store, asking(scope="session", session_id="gone")).entries == []  # B028, B048
    assert recall(store, agent_id="nobody", query="nothing").entries == []
    assert list_entries(store) == []


def test_nobody_changes_what_is_kept_by_what_was_given_or_answered(store):
    mine = {"tags": ["kept"]}
    given_ = entry("a", metadata=mine)
    answers = [
        given_,
        write(store, given_).entry,
        *recall(store, asking()).entries,
        *list_entries(store),
    ]

    mine["tags"].append("changed")
    list_entries(store).clear()
    for one in answers:
        with pytest.raises(TypeError, match="cannot be changed"):
            one.metadata["tags"].append("changed")
        with pytest.raises(TypeError, match="cannot be changed"):
            one.metadata["more"] = 1

    assert recall(store, asking()).entries[0].metadata == {"tags": ["kept"]}
    assert list_entries(store)[0].metadata == {"tags": ["kept"]}


def test_threads_that_write_and_recall_at_once_lose_nothing(store):
    start, faults = Barrier(8), []

    def work(number):
        start.wait()
        try:
            for turn in range(40):
                write(store, entry(f"{number}-{turn % 20}"))
                found = recall(store, asking(limit=10)).entries
                assert len({one.id for one in found}) == len(found) <= 10
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


@given(WRITTEN, ASKED)
def test_recall_never_exceeds_its_limit_nor_leaks_and_leaves_nothing_out(written, request):
    store = InMemoryStore()
    for one in written:
        write(store, one)

    later = [{other.id for other in written[place + 1 :]} for place in range(len(written))]
    kept = [one for one, ids_ in zip(written, later, strict=True) if one.id not in ids_][::-1]
    found = recall(store, request)

    assert found.request is request
    assert list_entries(store) == kept[::-1]  # B039
    assert found.entries == [one for one in kept if request.covers(one)][: request.limit]  # B043
    assert {one.agent_id for one in found.entries} <= {request.agent_id}  # B040
    allowed = {request.session_id} if request.scope == "session" else {None, request.session_id}
    assert {one.session_id for one in found.entries} <= allowed


@pytest.mark.parametrize("verb", [recall, write, list_entries])
def test_a_misspelt_option_is_refused_with_the_right_name(store, verb):
    given = {recall: [asking()], write: [entry("a")], list_entries: []}[verb]
    with pytest.raises(InvalidRequest) as refused:
        verb((store, {"include_session": True}), *given)
    assert (refused.value.detail, refused.value.hint) == (
        "there is no option 'include_session'; did you mean 'include_sessions'?", "give 'include_sessions'",
    )  # fmt: skip
