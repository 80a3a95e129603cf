"""The writer of an open root is made for the first who asks, and there is one."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import jidomem


@pytest.fixture
def hurried():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_all_who_ask_at_once_for_the_writer_of_a_root_get_the_same(tmp_path, hurried):
    for number in range(20):
        with jidomem.open(tmp_path / str(number), project="p") as memory, ThreadPoolExecutor(4) as pool:
            at_once = Barrier(4)

            def ask(_, memory=memory, at_once=at_once):
                at_once.wait()
                return memory.writer

            assert len({id(writer) for writer in list(pool.map(ask, range(4)))}) == 1
