"""Short-term memory: its values, eviction, and concurrent threads."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem import ShortTerm
from jidomem.errors import InvalidRequest, NotFound
from jidomem.working.tiers import TimedValue, eviction_count


def memory_with(number, **options):
    memory = ShortTerm(**options)
    for n in range(number):
        memory.put(f"k{n}", n)
    return memory


def keys(memory):
    return [key for key, _ in memory.get_all()]


def test_a_stored_value_is_read_and_a_missing_key_is_refused():
    # E006 E007
    memory = ShortTerm()

    assert memory.put("plan", ["read", "write"]) is True

    assert memory.get("plan") == ["read", "write"]
    assert memory.get("plan", "other") == ["read", "write"]
    with pytest.raises(NotFound, match="has nothing under 'goal'") as refusal:
        memory.get("goal")
    assert (refusal.value.code, refusal.value.hint) == ("not_found", "put it there, or read all with get_all")


def test_a_stored_none_is_distinct_from_a_missing_value():
    # E008
    memory = ShortTerm()
    memory.put("answer", None)

    assert memory.get("answer") is None
    assert memory.get("answer", "default") is None
    assert memory.get("other", "default") == "default"
    assert memory.get("other", None) is None
    assert memory.entry("answer") is not None


def test_values_of_any_kind_are_stored():
    # E002
    memory = ShortTerm("s-1")
    values = {
        "conversation": [{"role": "user", "content": "hello"}],
        "working_context": {"file": "index.py", "lines": (1, 20)},
        "analysis": {"complexity": 3.5},
        "agent_state": object(),
    }
    for key, value in values.items():
        memory.put(key, value)

    assert memory.get_all() == list(values.items())
    assert all(memory.get(key) is value for key, value in values.items())


def test_all_entries_are_listed_oldest_first_and_cleared_together():
    # E009 E010
    memory = memory_with(3)

    assert memory.get_all() == [("k0", 0), ("k1", 1), ("k2", 2)]
    memory.clear()
    assert (memory.get_all(), len(memory), memory.get("k0", "gone")) == ([], 0, "gone")


def test_the_list_of_all_is_a_copy():
    memory = memory_with(1)
    memory.get_all().append(("other", 1))
    assert memory.get_all() == [("k0", 0)]


def test_each_session_has_its_own_memory():
    # E011 E019
    first, second = ShortTerm(session_id="s-1"), ShortTerm(session_id="s-2")
    first.put("plan", "read")

    assert (first.session_id, second.session_id, ShortTerm().session_id) == ("s-1", "s-2", None)
    assert (first.get("plan"), second.get("plan", None), second.get_all()) == ("read", None, [])


def test_each_entry_has_the_millisecond_of_its_put():
    # E012
    before = time.time_ns() // 1_000_000
    memory = ShortTerm()
    memory.put("now", 1)
    after = time.time_ns() // 1_000_000
    timed = ShortTerm(now_ms=count(1_700_000_000_123).__next__)
    timed.put("a", "x")
    timed.put("b", "y")

    assert before <= memory.entry("now").at <= after
    assert isinstance(memory.entry("now").at, int)
    assert (timed.entry("a"), timed.entry("b")) == (
        TimedValue("x", 1_700_000_000_123),
        TimedValue("y", 1_700_000_000_124),
    )
    assert timed.entry("c") is None


def test_the_1001st_entry_evicts_the_oldest_and_leaves_900():
    # E013 E014
    memory = memory_with(1000)
    assert keys(memory) == [f"k{n}" for n in range(1000)]

    memory.put("k1000", 1000)

    assert keys(memory) == [f"k{n}" for n in range(101, 1001)]
    assert len(memory) == 900


def test_putting_a_key_again_replaces_its_value_and_makes_it_the_newest():
    # E015
    memory = memory_with(3, maximum=3, slack=0, now_ms=count(10).__next__)

    memory.put("k0", "again")
    assert (len(memory), memory.entry("k0"), keys(memory)) == (3, TimedValue("again", 13), ["k1", "k2", "k0"])

    memory.put("k3", 3)
    assert keys(memory) == ["k2", "k0", "k3"]


def test_entries_of_one_millisecond_are_evicted_in_order_of_arrival():
    # E016
    memory = memory_with(4, maximum=4, slack=1, now_ms=lambda: 7)
    memory.put("k4", 4)
    assert keys(memory) == ["k2", "k3", "k4"]


@pytest.mark.parametrize(("maximum", "slack"), [(1, 0), (1, 100), (3, 100), (1000, 5000)])
def test_the_newest_entry_is_never_evicted(maximum, slack):
    # E017
    memory = memory_with(maximum, maximum=maximum, slack=slack)
    memory.put("newest", "here")
    assert memory.get("newest") == "here"
    assert len(memory) == max(maximum - slack, 1)


def test_an_entry_put_after_the_clock_went_back_is_still_the_newest():
    # E017
    memory = ShortTerm(maximum=2, slack=0, now_ms=iter((30, 20, 10)).__next__)
    for key in "abc":
        memory.put(key, key)
    assert keys(memory) == ["b", "c"]


@pytest.mark.parametrize(("maximum", "slack", "remaining"), [(1000, 100, 900), (5, 2, 3), (5, 0, 5), (10, 9, 1)])
def test_maximum_and_slack_are_configurable(maximum, slack, remaining):
    # E020
    memory = memory_with(maximum, maximum=maximum, slack=slack)
    assert len(memory) == maximum
    memory.put("one more", 1)
    assert len(memory) == remaining


@pytest.mark.parametrize(
    "options",
    [{"maximum": 0}, {"maximum": True}, {"maximum": 2.0}, {"maximum": "9"}, {"slack": -1}, {"slack": False}],
)
def test_an_invalid_maximum_or_slack_is_refused(options):
    # E020
    (name,) = options
    with pytest.raises(InvalidRequest, match=f"^{name}=") as refusal:
        ShortTerm(**options)
    assert refusal.value.hint == f"leave {name} out"


@pytest.mark.parametrize("key", ["", " ", " plan", "plan\n", "a\nb", "half \ud83d", 5, None, ("a",)])
def test_an_invalid_key_is_refused(key):
    memory = ShortTerm()
    with pytest.raises(InvalidRequest, match="is not a key"):
        memory.put(key, 1)
    assert memory.get_all() == []


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers()), max_size=60),
    st.integers(1, 6),
    st.integers(0, 8),
)
def test_eviction_keeps_the_newest_entries(puts, maximum, slack):
    # E014 E015 E017
    memory, model = ShortTerm(maximum=maximum, slack=slack), []
    for key, value in puts:
        memory.put(key, value)
        model = [pair for pair in model if pair[0] != key] + [(key, value)]
        if len(model) > maximum:
            model = model[-max(maximum - slack, 1) :]
        assert memory.get_all() == model


def test_the_surplus_frees_the_slack():
    # E014
    assert [eviction_count(size) for size in (0, 1, 999, 1000, 1001, 1002)] == [0, 0, 0, 0, 101, 102]
    assert [eviction_count(size, 5, 2) for size in (5, 6, 9)] == [0, 3, 6]
    assert eviction_count(2, 1, 100) == 1


def test_concurrent_threads_read_only_stored_values():
    # E018
    memory, switch = ShortTerm(maximum=50, slack=10), sys.getswitchinterval()
    memory.put("constant", 0)

    def work(number):
        for n in range(400):
            memory.put(f"{number}-{n % 30}", (number, n))
            memory.put("constant", n)
            assert memory.get("constant") in range(400)
            assert len(memory.get_all()) <= 50
            value = memory.get(f"{number}-{n % 30}", None)
            assert value in (None, (number, n))

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(switch)
    assert 0 < len(memory) <= 50
    assert len(set(keys(memory))) == len(memory)
