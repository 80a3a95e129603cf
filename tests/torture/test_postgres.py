"""Writers, PostgreSQL and its machine are killed at any moment: acknowledged commits are stored once."""

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
    """An appending process, and its output so far."""

    def __init__(self, words, **environment):
        self.sent, self.stored, self._news = set(), {}, Condition()
        command, environment = [sys.executable, *map(str, words)], {**os.environ, **environment}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self._listening = Thread(target=self._listen)
        self._listening.start()

    def _listen(self):
        for line in self.process.stdout:
            if line.endswith("\n"):  # the kill may cut the last line short
                what, commit, *under = line.split()
                with self._news:
                    if what == "send":
                        self.sent.add(commit)
                    else:
                        self.stored[commit] = int(under[0]) if under[0].isdecimal() else under[0]
                    self._news.notify_all()

    def goes_on(self, more):
        """Wait until *more* further commits were acknowledged."""
        with self._news:
            enough = len(self.stored) + more
            assert self._news.wait_for(lambda: len(self.stored) >= enough or self.process.poll() is not None, 120)
        assert self.process.poll() is None

    def kill(self):
        self.process.kill()
        self._listening.join()
        self.process.stdout.close()
        assert self.process.wait() == -9


@contextmanager
def appending(address, count):
    """Run *count* appending processes until the block ends."""
    appenders = [Appender([SCRIPT, address, f"w{number}"]) for number in range(count)]
    try:
        yield appenders
    finally:
        for each in appenders:
            each.kill()


def assert_nothing_lost(address, appenders):
    """Assert that each acknowledged commit is stored once under its number, and that no number is missing."""
    log = PostgresLog(address, wait=60)
    entries = list(log.read(STREAM))
    log.close()
    stored = {entry.commit: entry.number for entry in entries}
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert len(stored) == len(entries)
    assert all(entry.document.startswith(f"{entry.commit} ".encode()) for entry in entries)
    assert stored.keys() <= set().union(*(each.sent for each in appenders))
    for each in appenders:
        assert each.stored.items() <= stored.items()
    assert sum(len(each.stored) for each in appenders) > 0


@pytest.fixture
def server():
    if postgres_server.BINARIES is None:
        pytest.skip("there is no PostgreSQL: ci/parts installs it")
    with postgres_server.server() as running:
        yield running


def test_acknowledged_commits_of_killed_writers_are_stored_once(server, scale):
    chance, address, killed = random.Random(20261122), server.url, []
    with appending(address, 1) as running:
        for number in range(WRITER_KILLS * scale):
            writer = Appender([SCRIPT, address, f"k{number}"])
            if chance.random() < 0.8:  # else it is killed while it starts
                writer.goes_on(1)
            sleep(chance.uniform(0, 0.05))
            writer.kill()
            killed.append(writer)
        running[0].goes_on(5)
    assert_nothing_lost(address, [*running, *killed])


def test_a_killed_and_restarted_server_has_all_acknowledged_commits(server, scale):
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
    assert_nothing_lost(server.url, appenders)


class Submitter(Appender):
    """A process that submits intents with its own home folder, and prints the key of each."""

    def __init__(self, address, name, home):
        super().__init__([SUBMITTER, address, name, "1000000", "1"], JIDOMEM_HOME=str(home))


def test_intents_acknowledged_around_kills_of_the_server_are_stored_once(server, scale, tmp_path, monkeypatch):
    address = server.address()
    submitters = [Submitter(address, f"w{number}", tmp_path / f"{number}") for number in range(2)]
    for _ in range(SERVER_KILLS * scale):
        for each in submitters:
            each.goes_on(5)
        server.kill()
        server.start()
    for each in submitters:
        each.goes_on(5)
        each.kill()

    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "another"))
    with jidomem.open(address, project="p") as memory:
        memory.catch_up("p")
        rows = list(memory.index.triples(graph_iri("p"), None, jido("idempotencyKey"), None))
        assert memory.journal.verify(STREAM) == ()
    memories = {key[1:-1]: item[1:-1] for item, _, key in rows}
    assert len(memories) == len(rows)
    for each in submitters:
        assert each.stored.items() <= memories.items()
    assert memories.keys() <= submitters[0].sent | submitters[1].sent


def test_the_follower_of_a_lost_server_has_all_acknowledged_commits(scale):
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
                assert_nothing_lost(second.url, appenders)
            finally:
                second.stop()
