"""The thread: entries in order, append only, and never touched by memory."""

import dataclasses

import pytest

from jidomem.errors import InvalidRequest
from jidomem.working import THREAD_KEY, Agent, Thread, ThreadEntry, tasks_add, world_put


def of(count):
    thread = Thread()
    for number in range(count):
        thread = thread.append("message" if number % 2 == 0 else "tool", number, at=number, id=f"e{number}")
    return thread


def test_an_entry_has_its_place_its_moment_its_kind_its_payload_and_its_references():
    thread = Thread().append("message", {"text": "hello"}, {"signal": "s1"}, id="e1", at=1000)

    assert thread.entries == (ThreadEntry("e1", 0, 1000, "message", {"text": "hello"}, {"signal": "s1"}),)  # A145
    assert [field.name for field in dataclasses.fields(ThreadEntry)] == ["id", "seq", "at", "kind", "payload", "refs"]


def test_entries_are_numbered_from_0_and_counted():
    assert [entry.seq for entry in of(3).entries] == [0, 1, 2]  # A145
    assert of(3).entry_count() == Thread.entry_count(of(3)) == 3
    assert Thread().entry_count() == 0


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [(0, 0, [0]), (1, 3, [1, 2, 3]), (0, 4, [0, 1, 2, 3, 4]), (3, 99, [3, 4]), (5, 9, []), (3, 2, []), (-2, 1, [0, 1])],
)
def test_a_slice_has_both_its_ends(first, last, found):
    assert [entry.seq for entry in of(5).slice(first, last)] == found  # A145


@pytest.mark.parametrize("first", [0, -5])
def test_a_slice_to_before_the_first_entry_is_empty(first):
    assert Thread().slice(first, -1) == of(5).slice(first, -1) == ()


def test_entries_of_a_kind_are_found_in_order():
    assert [entry.seq for entry in of(5).filter_by_kind("message")] == [0, 2, 4]  # A145
    assert of(5).filter_by_kind("other") == ()


def test_appending_gives_a_new_thread_and_leaves_the_old():
    before = of(2)

    after = before.append("message", at=5)

    assert (before.entry_count(), after.entry_count()) == (2, 3)
    assert after.entries[:2] == before.entries
    with pytest.raises(AttributeError):
        before.entries = ()


def test_an_entry_gets_an_id_and_the_present_moment_unless_they_are_given():
    made = Thread().append("message").append("message")

    assert made.entries[0].id != made.entries[1].id
    assert made.entries[0].id.startswith("entry_")
    assert made.entries[0].at > 1_700_000_000_000
    assert Thread().append("message", new_id=lambda: "7").entries[0].id == "entry_7"
    assert made.entries[0].payload is None
    assert made.entries[0].refs == {}


def test_what_an_entry_says_is_copied():
    payload, refs = {"text": ["a"]}, {"ids": ["r"]}
    thread = Thread().append("message", payload, refs)

    payload["text"].append("b")
    refs["ids"].append("s")

    assert (thread.entries[0].payload, thread.entries[0].refs) == ({"text": ["a"]}, {"ids": ["r"]})


@pytest.mark.parametrize("kind", ["", None, 5])
def test_the_kind_of_an_entry_is_a_word(kind):
    with pytest.raises(InvalidRequest, match=r"^the kind of an entry is a word such as 'message', not"):
        Thread().append(kind)


def test_a_thread_is_made_of_entries_without_a_gap():
    entries = of(3).entries

    assert Thread(list(entries)) == of(3)
    with pytest.raises(InvalidRequest, match=r"(?m)^the entries of a thread are numbered from 0 without a gap$"):
        Thread(entries[1:])


def test_no_memory_operation_alters_the_thread():
    thread = of(2)
    agent = tasks_add(world_put(Agent(state={THREAD_KEY: thread}), "a", 1), "x")

    assert agent.state["__thread__"] is thread  # A009
