"""An open root has one writer, which is created at its first use."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import jidomem


@pytest.fixture
def short_switch_interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_concurrent_threads_get_the_same_writer_of_a_root(tmp_path, short_switch_interval):
    for number in range(20):
        with jidomem.open(tmp_path / str(number), project="p") as memory, ThreadPoolExecutor(4) as pool:
            barrier = Barrier(4)

            def get_writer(_, memory=memory, barrier=barrier):
                barrier.wait()
                return memory.writer

            assert len({id(writer) for writer in list(pool.map(get_writer, range(4)))}) == 1
