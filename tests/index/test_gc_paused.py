"""Garbage collection is paused inside, and resumed after all pauses."""

import gc
from threading import Event, Lock, Thread

import pytest

from jidomem.index.follower import gc_paused


def test_garbage_collection_is_paused_inside_and_resumed_after_an_error(monkeypatch):
    monkeypatch.setattr("jidomem.index.follower._GC_LOCK", Lock())  # a thread of another test may have the other one
    states = []

    @gc_paused()
    def fail():
        states.append(gc.isenabled())
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()

    assert [*states, gc.isenabled()] == [False, True]


def test_disabled_garbage_collection_stays_disabled():
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_collection_resumes_when_the_first_of_two_pauses_ends():
    is_inside, may_end = Event(), Event()

    def second():
        with gc_paused():
            is_inside.set()
            may_end.wait()

    thread = Thread(target=second)
    with gc_paused():
        thread.start()
        is_inside.wait()
    assert gc.isenabled()
    may_end.set()
    thread.join()
    assert gc.isenabled()
