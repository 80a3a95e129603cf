"""Concurrent callers share a request, and none gets an answer older than its call."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from queue import SimpleQueue

import pytest

from jidomem.errors import Failed
from jidomem.extras.servers.log import SingleFlight


class ScriptedSource:
    """A source of values that reports its calls and returns the scripted `answers`."""

    def __init__(self) -> None:
        self.requests, self.answers = SimpleQueue(), SimpleQueue()

    def __call__(self, keys):
        self.requests.put(sorted(keys))
        answer = self.answers.get(timeout=60)
        if isinstance(answer, BaseException):
            raise answer
        return dict.fromkeys(keys, answer)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as executor:
        yield executor


def start_request(flight, pool, source):
    """Start a thread that requests "a", and wait until its request has begun."""
    future = pool.submit(flight.of, ["a"])
    assert source.requests.get(timeout=60) == ["a"]
    return future


def start_waiting(flight, pool, keys):
    """Start a thread for each of *keys*, and wait until all of them wait for the next request."""
    futures = [pool.submit(flight.of, [key]) for key in keys]
    while flight._next is None or flight._next.keys != set(keys):
        assert not any(each.done() for each in futures)
    return futures


def test_callers_during_a_request_share_the_next_one_and_get_no_older_answer(pool):
    source = ScriptedSource()
    flight = SingleFlight(source)
    first = start_request(flight, pool, source)

    others = start_waiting(flight, pool, "abc")
    source.answers.put("before")
    source.answers.put("after")

    assert first.result(60) == {"a": "before"}
    assert [each.result(60)[key] for each, key in zip(others, "abc", strict=True)] == ["after"] * 3
    assert (source.requests.get(timeout=60), source.requests.empty()) == (["a", "b", "c"], True)


def test_a_failed_request_fails_for_its_callers_and_no_later_one(pool):
    source = ScriptedSource()
    flight = SingleFlight(source)
    first = start_request(flight, pool, source)
    others = start_waiting(flight, pool, "bc")
    failure = Failed("db did not answer", hint="look", code="store_unreachable")
    for answer in ("so", failure, "again"):
        source.answers.put(answer)

    errors = [each.exception(60) for each in others]

    assert first.result(60) == {"a": "so"}
    assert [(each.code, each.detail, each.hint) for each in errors] == [
        ("store_unreachable", "db did not answer", "look")
    ] * 2
    assert errors[0] is not errors[1]  # each thread raises an exception of its own
    assert flight.of(["b"]) == {"b": "again"}


def test_a_caller_whose_shared_request_was_interrupted_sends_its_own(pool):
    source = ScriptedSource()
    flight = SingleFlight(source)
    first = start_request(flight, pool, source)
    others = start_waiting(flight, pool, "bc")
    for answer in ("so", KeyboardInterrupt(), "again"):
        source.answers.put(answer)

    interrupted = [each for each in others if each.exception(60) is not None]

    assert first.result(60) == {"a": "so"}
    assert [type(each.exception()) for each in interrupted] == [KeyboardInterrupt]
    assert [each.result() for each in others if each not in interrupted] in ([{"b": "again"}], [{"c": "again"}])


def test_many_threads_never_get_a_state_older_than_their_call(pool):
    moments = count(1)
    now = [0]

    def ask(keys):
        now[0] = next(moments)
        return dict.fromkeys(keys, now[0])

    flight = SingleFlight(ask)

    def request(_):
        before = now[0]
        return before, flight.of(["a"])["a"]

    results = list(pool.map(request, range(2_000)))
    assert all(state > before for before, state in results)
