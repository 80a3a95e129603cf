"""Garbage is not looked for meanwhile, and always is again, whoever else holds it off."""

import gc
from threading import Event, Lock, Thread

import pytest

from jidomem.index.follower import gc_paused


def test_it_is_off_inside_and_on_again_also_after_an_error(monkeypatch):
    monkeypatch.setattr("jidomem.index.follower._GC_LOCK", Lock())  # a thread of an earlier test may hold the other one
    seen = []

    @gc_paused()
    def fail():
        seen.append(gc.isenabled())
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()

    assert [*seen, gc.isenabled()] == [False, True]


def test_who_has_switched_it_off_finds_it_off():
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_on_again_when_the_first_who_held_it_off_ends_whoever_came_meanwhile():
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
