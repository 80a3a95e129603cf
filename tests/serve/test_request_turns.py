"""Queries and commits of a server take turns."""

from threading import Event, Thread

import pytest
from conftest import wait_until

from jidomem.serve.server_state import Turns


def start(run, *arguments):
    thread = Thread(target=run, args=arguments, daemon=True)
    thread.start()
    return thread


def test_requests_take_turns_one_at_a_time_in_the_order_of_arrival():
    turns, order, inside, counts = Turns(longest=60), [], [], []

    def run(number):
        with turns.turn():
            inside.append(number)
            counts.append(len(inside))
            order.append(number)
            inside.remove(number)

    with turns.turn():
        threads = []
        for number in range(8):
            threads.append(start(run, number))
            wait_until(lambda number=number: len(turns._waiting) > number)
    for thread in threads:
        thread.join(60)
    assert (order, set(counts)) == ([*range(8)], {1})


def test_a_long_turn_delays_no_other():
    turns, ended, passed = Turns(longest=0.01), Event(), []

    def stay():
        with turns.turn():
            passed.append("long")
            ended.wait(60)

    def run(number):
        with turns.turn():
            passed.append(number)

    long = start(stay)
    wait_until(lambda: passed)
    threads = [start(run, number) for number in range(5)]
    for thread in threads:
        thread.join(60)
    assert sorted(passed[1:]) == [*range(5)]
    ended.set()
    long.join(60)
    run("last")
    assert passed[-1] == "last"


def test_a_turn_ends_with_an_error():
    turns, passed = Turns(longest=60), []

    def run():
        with turns.turn():
            passed.append("next")

    for _ in range(2):
        with pytest.raises(ValueError, match="judged"), turns.turn():
            raise ValueError("judged")
    start(run).join(30)  # less than a turn may last

    assert passed == ["next"]
