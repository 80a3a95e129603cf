"""The queue of jobs: each request is done once, retried after an error, and survives the end of its worker."""

from datetime import timedelta
from threading import Thread

import pytest
from conftest import START

from jidomem.extras.memoryos import jobs
from jidomem.extras.memoryos.jobs import MOST, Jobs, Task
from jidomem.runtime.state import State


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now

    def on(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(opened_state):
    return opened_state(jobs.TABLES)


@pytest.fixture
def queue(state, clock):
    return Jobs(state, "memory", clock)


def ask(state, queue, *tasks, agent="ada"):
    with state.changing() as store:
        queue.ask(store, "p", agent, *tasks)


def done(state, queue, job):
    with state.changing() as store:
        queue.done(store, job)


def kinds(found):
    return [(job.kind, job.subject) for job in found]


def test_jobs_are_taken_in_order_once_each_and_of_one_agent_and_queue(state, queue, clock):  # D107
    ask(state, queue, Task("describe", "p1", {"x": 1}), Task("transfer", "p1"), Task("describe", "p1", {"x": 2}))
    ask(state, queue, Task("maintain"), agent="bob")
    ask(state, Jobs(state, "other", clock), Task("maintain"))

    first, second, third = (queue.take("p", "ada") for _ in range(3))

    assert kinds([first, second]) == [("describe", "p1"), ("transfer", "p1")]
    assert (first.payload, third) == ({"x": 2}, None)
    assert kinds(queue.waiting("p")) == [("describe", "p1"), ("transfer", "p1"), ("maintain", "")]
    done(state, queue, first)
    assert kinds(queue.waiting("p", "ada")) == [("transfer", "p1")]


def test_a_request_in_an_undone_transaction_is_not_queued(state, queue):
    def asking_and_failing():
        with state.changing() as store:
            queue.ask(store, "p", "ada", Task("maintain"))
            raise KeyError

    with pytest.raises(KeyError):
        asking_and_failing()

    assert queue.waiting("p") == []


def test_a_job_that_fails_is_due_again_after_a_while_and_kept_as_failed_in_the_end(state, queue, clock):  # D107
    ask(state, queue, Task("describe", "p1"))
    waits = []

    while not queue.waiting("p")[0].failed:
        while (job := queue.take("p", "ada")) is None:
            clock.on(1)
        queue.failed(job, "the model is away")
        waits.append((queue.waiting("p")[0].due - clock.now).total_seconds())

    assert waits == [2.0**tried for tried in range(MOST)]
    clock.on(10**6)
    assert queue.take("p", "ada") is None
    (kept,) = queue.waiting("p")
    assert (kept.attempts, kept.error, kept.failed) == (MOST, "the model is away", True)
    assert queue.retry("p", "ada") == 1
    assert queue.take("p", "ada").subject == "p1"


def test_a_job_whose_process_ended_has_that_error_and_is_due_again(state, queue, clock):
    ask(state, queue, Task("describe", "p1"))

    queue.take("p", "ada")

    (cut_off,) = queue.waiting("p")
    assert (cut_off.error, cut_off.attempts, queue.is_due("p", "ada")) == (jobs.CUT_OFF, 1, False)
    clock.on(1)
    assert queue.is_due("p", "ada")
    assert queue.take("p", "ada").id == cut_off.id


def test_a_job_requested_while_it_runs_runs_once_more(state, queue):
    ask(state, queue, Task("diffuse"))
    job = queue.take("p", "ada")

    ask(state, queue, Task("diffuse"))
    done(state, queue, job)

    again = queue.take("p", "ada")
    assert (again.kind, again.attempts) == ("diffuse", 0)
    done(state, queue, again)
    assert queue.waiting("p") == []


def test_a_failed_job_starts_again_when_it_is_requested_again(state, clock):
    queue = Jobs(state, "memory", clock, most=1)
    ask(state, queue, Task("maintain"))
    queue.take("p", "ada")
    assert queue.waiting("p")[0].failed

    ask(state, queue, Task("maintain"))

    assert queue.take("p", "ada").attempts == 0


def test_one_thread_at_a_time_has_the_lock_of_an_agent(opened_state):  # D109
    lock, other_lock = opened_state(jobs.TABLES).lock, opened_state(jobs.TABLES).lock
    acquired = []

    def try_both():
        with other_lock("p", "ada") as of_ada, other_lock("p", "bob") as of_bob:
            acquired.append((of_ada, of_bob))

    with lock("p", "ada") as is_acquired:
        thread = Thread(target=try_both)
        thread.start()
        thread.join()
    try_both()

    assert is_acquired
    assert acquired == [(False, True), (True, True)]


def test_a_waiting_thread_gets_the_lock_once_it_is_released(opened_state):
    first, second, order = opened_state(jobs.TABLES), opened_state(jobs.TABLES), []

    def wait():
        with second.lock("p", "ada", wait=True) as is_acquired:
            order.append(is_acquired)

    with first.lock("p", "ada"):
        thread = Thread(target=wait)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()

    assert order == ["first", True]


def test_no_file_of_a_lock_is_left_that_could_confirm_a_guessed_name(tmp_path):
    folder = tmp_path / "state" / "turns"
    with State(tmp_path, jobs.TABLES).lock("p", "ada") as is_acquired:
        assert is_acquired
        (path,) = folder.iterdir()
        assert "ada" not in path.name
    assert [*folder.iterdir()] == []


def test_concurrent_locks_never_overlap_though_each_removes_its_file(tmp_path):
    having, seen = [], []

    def take(wait):
        locks = State(tmp_path, jobs.TABLES)
        for _ in range(200):
            with locks.lock("p", "ada", wait=wait) as is_acquired:
                if is_acquired:
                    having.append(None)
                    seen.append(len(having))
                    having.pop()

    threads = [Thread(target=take, args=(wait,)) for wait in (True, True, False, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(seen) == {1}
    assert len(seen) >= 400
