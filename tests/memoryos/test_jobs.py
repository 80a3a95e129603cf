"""The queue of jobs: each request is done once, retried after an error, and survives the end of its worker."""

from datetime import timedelta
from threading import Thread

import pytest
from conftest import START

from jidomem.extras.memoryos import jobs
from jidomem.extras.memoryos.jobs import MAX_ATTEMPTS, Jobs, Task
from jidomem.runtime.state import State


class Clock:
    """A clock that advances only on request."""

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


def request(state, queue, *tasks, agent="ada"):
    with state.changing() as store:
        queue.ask(store, "p", agent, *tasks)


def complete(state, queue, job):
    with state.changing() as store:
        queue.done(store, job)


def kinds(jobs_found):
    return [(job.kind, job.subject) for job in jobs_found]


def test_jobs_of_an_agent_and_queue_are_taken_in_order_once_each(state, queue, clock):  # D107
    request(state, queue, Task("describe", "p1", {"x": 1}), Task("transfer", "p1"), Task("describe", "p1", {"x": 2}))
    request(state, queue, Task("maintain"), agent="bob")
    request(state, Jobs(state, "other", clock), Task("maintain"))

    first, second, third = (queue.take("p", "ada") for _ in range(3))

    assert kinds([first, second]) == [("describe", "p1"), ("transfer", "p1")]
    assert (first.payload, third) == ({"x": 2}, None)
    assert kinds(queue.waiting("p")) == [("describe", "p1"), ("transfer", "p1"), ("maintain", "")]
    complete(state, queue, first)
    assert kinds(queue.waiting("p", "ada")) == [("transfer", "p1")]


def test_a_job_request_of_a_rolled_back_transaction_is_not_queued(state, queue):
    def asking_and_failing():
        with state.changing() as store:
            queue.ask(store, "p", "ada", Task("maintain"))
            raise KeyError

    with pytest.raises(KeyError):
        asking_and_failing()

    assert queue.waiting("p") == []


def test_a_failing_job_is_retried_with_doubled_delays_and_finally_marked_as_failed(state, queue, clock):  # D107
    request(state, queue, Task("describe", "p1"))
    delays = []

    while not queue.waiting("p")[0].failed:
        while (job := queue.take("p", "ada")) is None:
            clock.on(1)
        queue.failed(job, "the model is away")
        delays.append((queue.waiting("p")[0].due - clock.now).total_seconds())

    assert delays == [2.0**attempt for attempt in range(MAX_ATTEMPTS)]
    clock.on(10**6)
    assert queue.take("p", "ada") is None
    (failed_job,) = queue.waiting("p")
    assert (failed_job.attempts, failed_job.error, failed_job.failed) == (MAX_ATTEMPTS, "the model is away", True)
    assert queue.retry("p", "ada") == 1
    assert queue.take("p", "ada").subject == "p1"


def test_a_job_of_an_ended_process_has_that_error_and_is_due_again(state, queue, clock):
    request(state, queue, Task("describe", "p1"))

    queue.take("p", "ada")

    (interrupted,) = queue.waiting("p")
    assert (interrupted.error, interrupted.attempts, queue.is_due("p", "ada")) == (jobs.CUT_OFF, 1, False)
    clock.on(1)
    assert queue.is_due("p", "ada")
    assert queue.take("p", "ada").id == interrupted.id


def test_an_error_stays_until_the_job_is_done(state, queue, clock):
    request(state, queue, Task("transfer", "p1"))
    queue.failed(queue.take("p", "ada"), "the model is away")

    request(state, queue, Task("transfer", "p1"))
    assert [job.error for job in queue.waiting("p")] == ["the model is away"]
    clock.on(9)
    job = queue.take("p", "ada")
    assert [each.error for each in queue.waiting("p")] == ["the model is away"]  # while it runs again
    complete(state, queue, job._replace(requests=2))
    assert queue.waiting("p") == []


def test_a_job_requested_while_it_runs_runs_once_more(state, queue):
    request(state, queue, Task("diffuse"))
    job = queue.take("p", "ada")

    request(state, queue, Task("diffuse"))
    complete(state, queue, job)

    repeated = queue.take("p", "ada")
    assert (repeated.kind, repeated.attempts) == ("diffuse", 0)
    complete(state, queue, repeated)
    assert queue.waiting("p") == []


def test_a_failed_job_starts_again_on_a_new_request(state, clock):
    queue = Jobs(state, "memory", clock, most=1)
    request(state, queue, Task("maintain"))
    queue.take("p", "ada")
    assert queue.waiting("p")[0].failed

    request(state, queue, Task("maintain"))

    assert queue.take("p", "ada").attempts == 0


def test_only_one_thread_has_the_lock_of_an_agent(opened_state):  # D109
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


def test_a_waiting_thread_gets_the_lock_after_its_release(opened_state):
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


def test_a_released_lock_leaves_no_file_and_its_file_does_not_name_the_agent(tmp_path):
    folder = tmp_path / "state" / "turns"
    with State(tmp_path, jobs.TABLES).lock("p", "ada") as is_acquired:
        assert is_acquired
        (path,) = folder.iterdir()
        assert "ada" not in path.name
    assert [*folder.iterdir()] == []


def test_concurrent_locks_never_overlap(tmp_path):
    holders, holder_counts = [], []

    def take(wait):
        locks = State(tmp_path, jobs.TABLES)
        for _ in range(200):
            with locks.lock("p", "ada", wait=wait) as is_acquired:
                if is_acquired:
                    holders.append(None)
                    holder_counts.append(len(holders))
                    holders.pop()

    threads = [Thread(target=take, args=(wait,)) for wait in (True, True, False, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(holder_counts) == {1}
    assert len(holder_counts) >= 400
