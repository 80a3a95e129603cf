"""The thread: ordered entries, append only, unchanged by memory operations."""

import dataclasses

import pytest

from jidomem.errors import InvalidRequest
from jidomem.working import THREAD_KEY, Agent, Thread, ThreadEntry, tasks_add, world_put


def thread_of(count):
    thread = Thread()
    for number in range(count):
        thread = thread.append("message" if number % 2 == 0 else "tool", number, at=number, id=f"e{number}")
    return thread


def test_an_entry_has_position_time_kind_payload_and_references():
    thread = Thread().append("message", {"text": "hello"}, {"signal": "s1"}, id="e1", at=1000)

    assert thread.entries == (ThreadEntry("e1", 0, 1000, "message", {"text": "hello"}, {"signal": "s1"}),)  # A145
    assert [field.name for field in dataclasses.fields(ThreadEntry)] == ["id", "seq", "at", "kind", "payload", "refs"]


def test_entries_are_numbered_from_0_and_counted():
    assert [entry.seq for entry in thread_of(3).entries] == [0, 1, 2]  # A145
    assert thread_of(3).entry_count() == Thread.entry_count(thread_of(3)) == 3
    assert Thread().entry_count() == 0


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(0, 0, [0]), (1, 3, [1, 2, 3]), (0, 4, [0, 1, 2, 3, 4]), (3, 99, [3, 4]), (5, 9, []), (3, 2, []), (-2, 1, [0, 1])],
)
def test_a_slice_includes_both_ends(first, last, expected):
    assert [entry.seq for entry in thread_of(5).slice(first, last)] == expected  # A145


@pytest.mark.parametrize("first", [0, -5])
def test_a_slice_that_ends_before_the_first_entry_is_empty(first):
    assert Thread().slice(first, -1) == thread_of(5).slice(first, -1) == ()


def test_filter_by_kind_returns_entries_in_order():
    assert [entry.seq for entry in thread_of(5).filter_by_kind("message")] == [0, 2, 4]  # A145
    assert thread_of(5).filter_by_kind("other") == ()


def test_append_returns_a_new_thread_and_leaves_the_old_one_unchanged():
    before = thread_of(2)

    after = before.append("message", at=5)

    assert (before.entry_count(), after.entry_count()) == (2, 3)
    assert after.entries[:2] == before.entries
    with pytest.raises(AttributeError):
        before.entries = ()


def test_an_entry_has_a_generated_id_and_the_current_time_by_default():
    thread = Thread().append("message").append("message")

    assert thread.entries[0].id != thread.entries[1].id
    assert thread.entries[0].id.startswith("entry_")
    assert thread.entries[0].at > 1_700_000_000_000
    assert Thread().append("message", new_id=lambda: "7").entries[0].id == "entry_7"
    assert thread.entries[0].payload is None
    assert thread.entries[0].refs == {}


def test_payload_and_references_of_an_entry_are_copied():
    payload, refs = {"text": ["a"]}, {"ids": ["r"]}
    thread = Thread().append("message", payload, refs)

    payload["text"].append("b")
    refs["ids"].append("s")

    assert (thread.entries[0].payload, thread.entries[0].refs) == ({"text": ["a"]}, {"ids": ["r"]})


@pytest.mark.parametrize("kind", ["", None, 5])
def test_an_invalid_entry_kind_is_refused(kind):
    with pytest.raises(InvalidRequest, match=r"^the kind of an entry is a word such as 'message', not"):
        Thread().append(kind)


def test_a_thread_with_a_gap_in_its_entries_is_refused():
    entries = thread_of(3).entries

    assert Thread(list(entries)) == thread_of(3)
    with pytest.raises(InvalidRequest, match=r"(?m)^the entries of a thread are numbered from 0 without a gap$"):
        Thread(entries[1:])


def test_no_memory_operation_changes_the_thread():
    thread = thread_of(2)
    agent = tasks_add(world_put(Agent(state={THREAD_KEY: thread}), "a", 1), "x")

    assert agent.state["__thread__"] is thread  # A009
