"""A periodic task continues after an error and stops when it is told to."""

import threading

from jidomem.base.background import PeriodicTask


def test_a_failed_cycle_is_reported_and_the_task_runs_again(monkeypatch):
    reported, calls, repeated = [], [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", reported.append)

    def run():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("dictionary changed size during iteration")
        repeated.set()

    task = PeriodicTask(0.001, run, "a cycle")
    assert repeated.wait(60)
    assert task.is_running
    task.stop()

    assert [(each.exc_type, str(each.exc_value), each.thread.name) for each in reported] == [
        (RuntimeError, "dictionary changed size during iteration", "a cycle")
    ]
    assert not task.is_running
