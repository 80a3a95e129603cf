"""What is done again and again: it stops when it is told to, and not for an error."""

import threading

from jidomem.base.background import PeriodicTask


def test_what_raises_is_told_and_called_again(monkeypatch):
    told, calls, again = [], [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", told.append)

    def run():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("dictionary changed size during iteration")
        again.set()

    every = PeriodicTask(0.001, run, "a cycle")
    assert again.wait(60)
    assert every.is_running
    every.stop()

    assert [(each.exc_type, str(each.exc_value), each.thread.name) for each in told] == [
        (RuntimeError, "dictionary changed size during iteration", "a cycle")
    ]
    assert not every.is_running
