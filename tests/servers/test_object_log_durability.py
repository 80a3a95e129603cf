"""No acknowledged commit of an object store is lost or duplicated when a writer, a replica or all are killed."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import seaweed
from log_contract import LONG, ONE, commit

from jidomem.errors import Failed
from jidomem.extras.servers.object_log import ObjectLog

APPENDING = Path(__file__).parent / "appending.py"


def require_acknowledged(address, acknowledged):
    """The texts in the log: all *acknowledged* ones under their numbers, without a gap or a duplicate."""
    with closing(ObjectLog(address, os.environ)) as log:
        entries = list(log.read(ONE))
    texts = [entry.document.decode() for entry in entries]
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert len(set(texts)) == len(texts)
    assert {text: texts[number - 1] for text, number in acknowledged.items()} == {text: text for text in acknowledged}
    return texts


def test_killed_writers_lose_and_duplicate_no_acknowledged_commit(bucket, scale):
    acknowledged = {}
    for turn in range(scale):
        command = [sys.executable, str(APPENDING), bucket]
        writers = [subprocess.Popen([*command, f"{turn}{name}"], stdout=subprocess.PIPE, text=True) for name in "abc"]
        for lines, writer in zip((3, 11, 20), writers, strict=True):
            with writer:
                lines_read = [writer.stdout.readline().split() for _ in range(lines)]
                writer.kill()
                lines_read += [line.split() for line in writer.stdout]
            acknowledged |= {text: int(number) for text, number in lines_read}

    texts = require_acknowledged(bucket, acknowledged)
    assert len(acknowledged) >= 34 * scale
    assert len(texts) - len(acknowledged) <= 3 * scale  # of each writer at most the append that it was killed in


class Load:
    """Threads that append to one stream until they are stopped, and note each acknowledgement."""

    def __init__(self, address, writers=2):
        self.acknowledged, self.failed, self.stopped = {}, [], threading.Event()
        self.threads = [
            threading.Thread(target=self._run, args=(address, name), daemon=True) for name in range(writers)
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, address, name):
        try:
            with closing(ObjectLog(address, os.environ, wait=1.0)) as log:
                self._append(log, name)
        except BaseException as error:
            self.failed.append(error)

    def _append(self, log, name):
        turn, number = 0, 0
        while not self.stopped.is_set():
            text = f"{name}-{turn}"
            try:
                number = number or log.positions([ONE])[ONE].length + 1
                if log.append(ONE, number, commit(text), text.encode()):
                    self.acknowledged[text] = number
                    turn, number = turn + 1, number + 1
                else:
                    number = 0
            except Failed as error:  # the same append again settles an unknown outcome
                if error.code not in ("store_unreachable", "outcome_unknown"):
                    raise

    def wait_for_appends(self, count=25):
        """Wait until that many more appends are acknowledged."""
        expected = len(self.acknowledged) + count
        seaweed.until(
            lambda: True if len(self.acknowledged) >= expected or self.failed else None, f"{expected} appends"
        )

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(LONG)
        assert self.failed == []


@pytest.fixture
def pair():
    """A store that stores each object on two servers; a second attempt where another process took one of its ports."""
    with ExitStack() as stack:
        for is_last in (False, True):
            store = stack.enter_context(seaweed.store())
            store.start_all("-volume=false", "-master.defaultReplication=001")
            store.start_volume("one")
            store.start_volume("two")
            try:
                store.make("jidomem")
                break
            except AssertionError:
                if is_last:
                    raise
        stack.enter_context(store.user())
        yield store


def test_no_acknowledged_commit_is_lost_when_replicas_are_killed_or_the_store_restarts(pair, scale, monkeypatch):
    monkeypatch.setattr(
        "jidomem.extras.servers.object_log.ANSWER", 2.0
    )  # a store that lacks a replica does not answer a put
    address = pair.address()
    load = Load(address)
    for _ in range(scale):
        load.wait_for_appends()
        for replica in ("one", "two"):
            pair.kill(replica)
            require_acknowledged(address, dict(load.acknowledged))
            pair.start(replica)
            load.wait_for_appends()
        for part in ("all", "one", "two"):
            pair.kill(part)
        for part in ("all", "one", "two"):
            pair.start(part)
        load.wait_for_appends()
    load.stop()
    texts = require_acknowledged(address, load.acknowledged)
    assert len(texts) - len(load.acknowledged) <= len(
        load.threads
    )  # the appends that were running when the threads were stopped
