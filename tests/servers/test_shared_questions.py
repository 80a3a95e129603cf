"""Concurrent callers share a request, and none gets an answer older than its call."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from queue import SimpleQueue

import pytest

from jidomem.errors import Failed
from jidomem.extras.servers.log import SingleFlight


class Asked:
    """A source of values that reports its calls and returns the scripted `answers`."""

    def __init__(self) -> None:
        self.asked, self.answers = SimpleQueue(), SimpleQueue()

    def __call__(self, keys):
        self.asked.put(sorted(keys))
        answer = self.answers.get(timeout=60)
        if isinstance(answer, BaseException):
            raise answer
        return dict.fromkeys(keys, answer)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as made:
        yield made


def begun(together, pool, place):
    """Start a thread that requests "a", and wait until its request has begun."""
    found = pool.submit(together.of, ["a"])
    assert place.asked.get(timeout=60) == ["a"]
    return found


def waiting(together, pool, keys):
    """Start a thread for each of *keys*, and wait until all of them wait for the next request."""
    found = [pool.submit(together.of, [key]) for key in keys]
    while together._next is None or together._next.keys != set(keys):
        assert not any(each.done() for each in found)
    return found


def test_callers_during_a_request_share_the_next_one_and_get_nothing_older(pool):
    place = Asked()
    together = SingleFlight(place)
    first = begun(together, pool, place)

    others = waiting(together, pool, "abc")
    place.answers.put("before")
    place.answers.put("after")

    assert first.result(60) == {"a": "before"}
    assert [each.result(60)[key] for each, key in zip(others, "abc", strict=True)] == ["after"] * 3
    assert (place.asked.get(timeout=60), place.asked.empty()) == (["a", "b", "c"], True)


def test_a_failed_request_fails_for_each_caller_that_shares_it_and_no_later_one(pool):
    place = Asked()
    together = SingleFlight(place)
    first = begun(together, pool, place)
    others = waiting(together, pool, "bc")
    failure = Failed("db did not answer", hint="look", code="store_unreachable")
    for answer in ("so", failure, "again"):
        place.answers.put(answer)

    told = [each.exception(60) for each in others]

    assert first.result(60) == {"a": "so"}
    assert [(each.code, each.detail, each.hint) for each in told] == [
        ("store_unreachable", "db did not answer", "look")
    ] * 2
    assert told[0] is not told[1]  # each thread raises one of its own
    assert together.of(["b"]) == {"b": "again"}


def test_a_caller_whose_shared_request_was_interrupted_sends_its_own(pool):
    place = Asked()
    together = SingleFlight(place)
    first = begun(together, pool, place)
    others = waiting(together, pool, "bc")
    for answer in ("so", KeyboardInterrupt(), "again"):
        place.answers.put(answer)

    broken_off = [each for each in others if each.exception(60) is not None]

    assert first.result(60) == {"a": "so"}
    assert [type(each.exception()) for each in broken_off] == [KeyboardInterrupt]
    assert [each.result() for each in others if each not in broken_off] in ([{"b": "again"}], [{"c": "again"}])


def test_many_threads_never_get_a_state_older_than_their_call(pool):
    moments = count(1)
    now = [0]

    def ask(keys):
        now[0] = next(moments)
        return dict.fromkeys(keys, now[0])

    together = SingleFlight(ask)

    def asked(_):
        before = now[0]
        return before, together.of(["a"])["a"]

    told = list(pool.map(asked, range(2_000)))
    assert all(found > before for before, found in told)
