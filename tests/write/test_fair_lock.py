"""A fair lock goes to the thread that waits longest, and is not lost by a thread that stops waiting."""

import signal
import threading
import time

import pytest

from jidomem.write.group_commit import FairLock


def waiting(lock, number, order):
    """A thread that waits for *lock*, and then adds its *number* to *order*."""

    def run():
        with lock:
            order.append(number)

    before = len(lock._waiting)
    thread = threading.Thread(target=run)
    thread.start()
    while len(lock._waiting) == before:
        time.sleep(0.001)
    return thread


def test_threads_acquire_it_in_the_order_in_which_they_wait_and_the_last_holder_after_them():
    lock, order = FairLock(), []
    lock.acquire()
    threads = [waiting(lock, number, order) for number in range(5)]
    assert lock.acquire(blocking=False) is False
    lock.release()
    with lock:
        order.append("again")
    for thread in threads:
        thread.join()

    assert order == [*range(5), "again"]
    assert lock.acquire(blocking=False) is True


def test_a_thread_that_is_interrupted_while_it_waits_passes_the_lock_on():
    lock, order = FairLock(), []

    def interrupt(*_):
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    release = threading.Event()

    def hold():
        with lock:
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    while lock.acquire(blocking=False):
        lock.release()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            lock.acquire()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    thread = waiting(lock, 1, order)
    release.set()
    holder.join()
    thread.join()

    assert order == [1]
    assert lock.acquire(blocking=False) is True
