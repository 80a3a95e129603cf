"""Writers, PostgreSQL and the machine it ran on are killed at any moment: what was acknowledged is there, and once."""

import os
import random
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Thread
from time import sleep

import postgres_server
import pytest

import jidomem
from jidomem.extras.servers.postgres_log import PostgresLog
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import graph_iri, jido

SCRIPT, SUBMITTER = (Path(__file__).with_name(f"{name}.py") for name in ("log_appender", "submitter"))
STREAM = Stream("p")
WRITER_KILLS, SERVER_KILLS, LOSSES = 8, 2, 1


class Appender:
    """One appender, and what it said so far."""

    def __init__(self, words, **environment):
        self.sent, self.kept, self._news = set(), {}, Condition()
        command, environment = [sys.executable, *map(str, words)], {**os.environ, **environment}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self._listening = Thread(target=self._listen)
        self._listening.start()

    def _listen(self):
        for line in self.process.stdout:
            if line.endswith("\n"):  # one that was cut short by the kill was not said
                what, commit, *under = line.split()
                with self._news:
                    if what == "send":
                        self.sent.add(commit)
                    else:
                        self.kept[commit] = int(under[0]) if under[0].isdecimal() else under[0]
                    self._news.notify_all()

    def goes_on(self, more):
        """Wait until so many *more* were acknowledged."""
        with self._news:
            enough = len(self.kept) + more
            assert self._news.wait_for(lambda: len(self.kept) >= enough or self.process.poll() is not None, 120)
        assert self.process.poll() is None

    def kill(self):
        self.process.kill()
        self._listening.join()
        self.process.stdout.close()
        assert self.process.wait() == -9


@contextmanager
def appending(address, count):
    """So many who append, until the block ends."""
    appenders = [Appender([SCRIPT, address, f"w{number}"]) for number in range(count)]
    try:
        yield appenders
    finally:
        for each in appenders:
            each.kill()


def nothing_lost(address, appenders):
    """Each that was acknowledged is there under its number, each is there once, and no number is missing."""
    log = PostgresLog(address, wait=60)
    entries = list(log.read(STREAM))
    log.close()
    there = {entry.commit: entry.number for entry in entries}
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert len(there) == len(entries)
    assert all(entry.document.startswith(f"{entry.commit} ".encode()) for entry in entries)
    assert there.keys() <= set().union(*(each.sent for each in appenders))
    for each in appenders:
        assert each.kept.items() <= there.items()
    assert sum(len(each.kept) for each in appenders) > 0


@pytest.fixture
def server():
    if postgres_server.BINARIES is None:
        pytest.skip("there is no PostgreSQL: ci/parts installs it")
    with postgres_server.server() as running:
        yield running


def test_of_writers_that_are_killed_nothing_acknowledged_is_lost_and_nothing_is_there_twice(server, scale):
    chance, address, gone = random.Random(20261122), server.url, []
    with appending(address, 1) as staying:
        for number in range(WRITER_KILLS * scale):
            writer = Appender([SCRIPT, address, f"k{number}"])
            if chance.random() < 0.8:  # else it is killed while it starts
                writer.goes_on(1)
            sleep(chance.uniform(0, 0.05))
            writer.kill()
            gone.append(writer)
        staying[0].goes_on(5)
    nothing_lost(address, [*staying, *gone])


def test_a_server_that_is_killed_and_comes_back_has_all_it_acknowledged(server, scale):
    chance = random.Random(20261123)
    with appending(server.url, 2) as appenders:
        for _ in range(SERVER_KILLS * scale):
            for each in appenders:
                each.goes_on(chance.randrange(5, 60))
            server.kill()
            sleep(chance.uniform(0, 0.3))
            server.start()
        for each in appenders:
            each.goes_on(10)
    nothing_lost(server.url, appenders)


class Submitter(Appender):
    """One who submits intents on a machine of its own, and says the key of each."""

    def __init__(self, address, name, home):
        super().__init__([SUBMITTER, address, name, "1000000", "1"], JIDOMEM_HOME=str(home))


def test_intents_acknowledged_while_the_database_is_killed_are_memories_once(server, scale, tmp_path, monkeypatch):
    address = server.address()
    busy = [Submitter(address, f"w{number}", tmp_path / f"{number}") for number in range(2)]
    for _ in range(SERVER_KILLS * scale):
        for each in busy:
            each.goes_on(5)
        server.kill()
        server.start()
    for each in busy:
        each.goes_on(5)
        each.kill()

    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "another"))
    with jidomem.open(address, project="p") as memory:
        memory.catch_up("p")
        rows = list(memory.index.triples(graph_iri("p"), None, jido("idempotencyKey"), None))
        assert memory.journal.verify(STREAM) == ()
    found = {key[1:-1]: item[1:-1] for item, _, key in rows}
    assert len(found) == len(rows)
    for each in busy:
        assert each.kept.items() <= found.items()
    assert found.keys() <= busy[0].sent | busy[1].sent


def test_a_server_that_is_lost_for_good_leaves_all_it_acknowledged_to_the_one_that_followed_it(scale):
    if postgres_server.BINARIES is None:
        pytest.skip("there is no PostgreSQL: ci/parts installs it")
    for turn in range(LOSSES * scale):
        with postgres_server.server() as first, postgres_server.folder() as place:
            first.sql(f"ALTER ROLE {postgres_server.USER} SET synchronous_commit = off")  # who appends sets it on
            second = first.follower(place)
            second.start()
            try:
                first.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
                first.sql("SELECT pg_reload_conf()")
                while first.sql("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
                    sleep(0.02)
                address = first.url.replace(f":{first.port}/", f":{first.port},127.0.0.1:{second.port}/")
                with appending(address, 2) as appenders:
                    for each in appenders:
                        each.goes_on(20 + turn)
                    if turn % 2 == 0:  # what is sent from now on is heard by nobody
                        second.cut_off()
                        sleep(0.3)
                    first.kill()
                    second.promote()
                    for each in appenders:
                        each.goes_on(20)
                nothing_lost(second.url, appenders)
            finally:
                second.stop()
