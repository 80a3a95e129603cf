"""What every shared log promises, whatever keeps it: one suite, which a module for each log takes over.

A log that other processes can open by its address is tested so:

    class TestPostgresLog(LogContract, ProcessContract):
        kind = "jidomem.extras.servers.postgres_log:PostgresLog"

        @pytest.fixture
        def address(self, server):
            return "postgresql://..."  # of a place in which nothing was kept yet
"""

import subprocess
import sys
import threading
from hashlib import blake2b
from importlib import import_module
from itertools import islice
from pathlib import Path

import pytest

from jidomem.errors import InvalidRequest, NotFound, TooLarge
from jidomem.extras.servers.log import FILE_BYTES, LogEntry, LogState, Reach
from jidomem.journal.journal import Stream

ONE, TWO, OTHER = Stream("demo"), Stream("demo", "history"), Stream("other")
CONTENDER = Path(__file__).parent / "contender.py"
#: Far longer than anything here takes: what waits for so long never ends.
LONG = 120.0


def commit(number: object) -> str:
    """The id of a commit, one for each *number*."""
    return blake2b(str(number).encode(), digest_size=32).hexdigest()


def document(number: object) -> bytes:
    """The document of that commit: bytes of every kind, and letters of many."""
    return f"# {number} é 漢 🜚\n".encode() + bytes(range(256))


def fill(log, count, stream=ONE, first=1):
    """Append the entries *first* to *count* and return them."""
    entries = [LogEntry(number, commit(number), document(number)) for number in range(first, count + 1)]
    for entry in entries:
        assert log.append(stream, entry.number, entry.commit, entry.document) is True
    return entries


def all_at_once(*works):
    """Do all of *works*, each in a thread of its own, and return what each gave."""
    answers, gate = [None] * len(works), threading.Barrier(len(works))

    def work(place):
        gate.wait(LONG)
        answers[place] = works[place]()

    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    return answers


def contend(log, name, count, stream=ONE):
    """Append *count* entries by compare-and-append, whoever else does; return the numbers they got."""
    got, number = [], log.reach([stream])[stream].length + 1
    for turn in range(count):
        while not log.append(stream, number, commit(f"{name}-{turn}"), f"{name}-{turn}".encode()):
            number = log.reach([stream])[stream].length + 1
        got.append(number)
        number += 1
    return got


class LogContract:
    """What one log promises to whoever has it open."""

    kind: str

    @pytest.fixture
    def opened(self, address):
        """Open the same log once more, as another process would."""
        module, _, name = self.kind.partition(":")
        logs = []

        def opened():
            logs.append(getattr(import_module(module), name)(address))
            return logs[-1]

        yield opened
        for log in logs:
            log.close()

    @pytest.fixture
    def log(self, opened):
        return opened()

    # entries

    def test_a_log_nobody_wrote_to_is_empty(self, log):
        assert (log.streams(), dict(log.reach([ONE, TWO])), list(log.read(ONE))) == (
            [],
            {ONE: Reach(), TWO: Reach()},
            [],
        )
        assert dict(log.reach([])) == {}

    def test_one_look_tells_how_far_streams_reach_the_tag_of_a_file_and_the_life_of_the_log(self, log, opened):
        first = log.look([ONE, TWO], "f")
        assert (dict(first.reaches), first.tag) == ({ONE: Reach(), TWO: Reach()}, None)
        fill(log, 2)
        tag = log.put("f", b"1")
        assert log.look([ONE], "f") == opened().look([ONE], "f") == LogState({ONE: Reach(2)}, tag, first.life)
        assert first.life

    def test_what_was_appended_is_there_at_once_for_whoever_opens_it(self, log, opened):
        other = opened()
        written = fill(log, 3)
        assert list(other.read(ONE)) == list(log.read(ONE)) == list(opened().read(ONE)) == written
        assert (other.streams(), other.reach([ONE])[ONE]) == ([ONE], Reach(3))

    def test_two_that_append_in_turn_see_each_other(self, log, opened):
        writers = [log, opened()]
        for number in range(1, 9):
            assert writers[number % 2].append(ONE, number, commit(number), document(number))
            assert all(writer.reach([ONE])[ONE].length == number for writer in writers)

    def test_a_number_is_given_once(self, log, opened):
        written = fill(log, 2)
        assert log.append(ONE, 2, commit("late"), b"late") is False
        assert opened().append(ONE, 1, commit("late"), b"late") is False
        assert (list(log.read(ONE)), log.reach([ONE])[ONE]) == (written, Reach(2))

    def test_the_commit_that_stands_there_already_is_answered_with_yes_and_put_once(self, log, opened):
        written = fill(log, 2)
        assert log.append(ONE, 2, written[1].commit, written[1].document) is True
        assert opened().append(ONE, 1, written[0].commit, written[0].document) is True
        assert list(opened().read(ONE)) == written

    @pytest.mark.parametrize("number", [0, -1, 3, 100])
    def test_a_number_that_leaves_a_gap_is_no_number(self, log, opened, number):
        written = fill(log, 1)
        for one in (log, opened()):
            with pytest.raises(ValueError, match=str(number)):
                one.append(ONE, number, commit("far"), b"far")
        assert list(log.read(ONE)) == written

    def test_reading_begins_after_any_number_and_goes_on_in_order(self, log, opened):
        written = fill(log, 12)
        for after in (0, 1, 7, 11, 12, 50):
            assert list(opened().read(ONE, after)) == written[after:]

    def test_many_entries_come_in_the_order_of_their_numbers(self, log):
        for number in range(1, 121):
            log.append(ONE, number, commit(number), str(number).encode())
        assert [(entry.number, entry.document) for entry in log.read(ONE, 95)] == [
            (number, str(number).encode()) for number in range(96, 121)
        ]

    def test_a_reading_need_not_be_used_up(self, log):
        written = fill(log, 5)
        reading = log.read(ONE)
        assert list(islice(reading, 2)) == written[:2]
        written += fill(log, 6, first=6)
        assert log.reach([ONE])[ONE] == Reach(6)
        assert list(reading)[:3] == written[2:5]
        assert next(iter(log.read(ONE, 5))) == written[5]
        assert list(log.read(ONE)) == written

    def test_a_document_may_be_large(self, log, opened):
        large = document("large") * 10_000
        assert log.append(ONE, 1, commit(1), large)
        assert next(iter(opened().read(ONE))).document == large

    def test_streams_do_not_touch_each_other(self, log, opened):
        written = {stream: fill(log, count, stream) for stream, count in ((OTHER, 2), (ONE, 3), (TWO, 1))}
        other = opened()
        assert other.streams() == [TWO, ONE, OTHER]
        assert {stream: list(other.read(stream)) for stream in written} == written
        assert dict(other.reach([TWO, OTHER])) == {TWO: Reach(1), OTHER: Reach(2)}

    def test_threads_that_append_at_once_each_get_numbers_of_their_own(self, log, opened):
        # two logs, two threads each
        logs = [log, opened()]
        got = all_at_once(*((lambda n=n: contend(logs[n % 2], f"t{n}", 12)) for n in range(4)))
        entries = list(opened().read(ONE))
        assert sorted(number for numbers in got for number in numbers) == list(range(1, 49))
        assert [entry.number for entry in entries] == list(range(1, 49))
        assert {f"t{n}-{turn}": number for n, numbers in enumerate(got) for turn, number in enumerate(numbers)} == {
            entry.document.decode(): entry.number for entry in entries
        }

    def test_of_those_that_want_the_same_number_at_once_one_gets_it(self, log, opened):
        logs = [log, opened(), opened()]
        for number in range(1, 6):
            wants = [(each, f"{number} of {place}") for place, each in enumerate(logs)]
            got = all_at_once(
                *((lambda w=w, n=number: w[0].append(ONE, n, commit(w[1]), w[1].encode())) for w in wants)
            )
            last = list(log.read(ONE, number - 1))
            assert sorted(got) == [False, False, True]
            assert [(entry.number, entry.document) for entry in last] == [(number, wants[got.index(True)][1].encode())]

    # rewriting

    def test_a_rewriting_puts_other_documents_in_place_and_is_counted(self, log, opened):
        fill(log, 4)
        log.rewrite(ONE, {commit(2): b"two", commit(4): b"four"})
        other = opened()
        assert other.reach([ONE, TWO]) == {ONE: Reach(4, 1), TWO: Reach()}
        assert [entry.document for entry in other.read(ONE)] == [document(1), b"two", document(3), b"four"]
        assert [entry.commit for entry in log.read(ONE)] == [commit(number) for number in range(1, 5)]

        log.rewrite(ONE, {commit(1): b"one"})
        assert (other.reach([ONE])[ONE], next(iter(other.read(ONE))).document) == (Reach(4, 2), b"one")

    def test_a_rewriting_of_a_commit_that_is_not_there_changes_nothing(self, log, opened):
        written = fill(log, 3)
        with pytest.raises(NotFound, match=commit(9)[:12]):
            log.rewrite(ONE, {commit(1): b"one", commit(9): b"nine", commit(3): b"three"})
        with pytest.raises(NotFound):
            opened().rewrite(TWO, {commit(1): b"one"})
        assert (list(opened().read(ONE)), opened().reach([ONE])[ONE]) == (written, Reach(3))

    def test_after_a_rewriting_appends_go_on_and_the_old_document_does_not_come_back(self, log, opened):
        written = fill(log, 2)
        log.rewrite(ONE, {commit(1): b"one", commit(2): b"two"})
        assert opened().append(ONE, 2, written[1].commit, written[1].document) is True
        assert log.append(ONE, 2, commit("late"), b"late") is False
        assert opened().append(ONE, 3, commit(3), b"three") is True
        assert [entry.document for entry in log.read(ONE)] == [b"one", b"two", b"three"]
        assert log.reach([ONE])[ONE] == Reach(3, 1)

    # waiting

    def test_waiting_ends_with_the_first_news(self, log, opened):
        fill(log, 1)
        other, heard = opened(), []
        waiting = threading.Thread(target=lambda: heard.append(other.wait(ONE, Reach(1), LONG * 5)), daemon=True)
        waiting.start()
        log.append(ONE, 2, commit(2), document(2))
        waiting.join(LONG)
        assert heard == [Reach(2)]

    def test_waiting_hears_of_a_rewriting(self, log, opened):
        fill(log, 1)
        other, heard = opened(), []
        waiting = threading.Thread(target=lambda: heard.append(other.wait(ONE, Reach(1), LONG * 5)), daemon=True)
        waiting.start()
        log.rewrite(ONE, {commit(1): b"one"})
        waiting.join(LONG)
        assert heard == [Reach(1, 1)]

    def test_waiting_for_what_has_come_already_ends_at_once(self, log):
        fill(log, 2)
        assert log.wait(ONE, Reach(1), LONG * 5) == Reach(2)
        assert log.wait(ONE, Reach(7), LONG * 5) == Reach(2)

    def test_waiting_for_nothing_ends_after_its_time(self, log):
        fill(log, 1)
        assert log.wait(ONE, Reach(1), 0.05) == Reach(1)
        assert log.wait(TWO, Reach(), 0.0) == Reach()

    def test_who_waits_is_in_nobodys_way(self, log):
        waiting = [threading.Thread(target=log.wait, args=(ONE, Reach(), LONG * 5), daemon=True) for _ in range(6)]
        for thread in waiting:
            thread.start()
        fill(log, 1, TWO)
        assert log.reach([TWO])[TWO] == Reach(1)
        fill(log, 1)
        for thread in waiting:
            thread.join(LONG)
        assert not any(thread.is_alive() for thread in waiting)

    # files

    def test_a_file_is_put_and_got_with_its_tag(self, log, opened):
        assert (log.get("root/config.toml"), log.names()) == (None, [])
        tag = log.put("root/config.toml", document("config"))
        found = opened().get("root/config.toml")
        assert (found.data, found.tag) == (document("config"), tag)
        assert log.put("empty", b"")
        assert opened().get("empty").data == b""

    def test_a_file_is_put_only_by_who_knows_what_is_there(self, log, opened):
        other = opened()
        first = log.put("tokens", b"1")
        assert other.put("tokens", b"x") is None
        assert other.put("tokens", b"x", "no such tag") is None
        assert other.put("nothing", b"x", first) is None
        second = other.put("tokens", b"2", first)
        assert second not in (None, first)
        assert log.put("tokens", b"3", first) is None
        assert (log.get("tokens").data, log.get("tokens").tag, log.get("nothing")) == (b"2", second, None)

    def test_a_file_can_be_put_whatever_is_there(self, log, opened):
        tags = [one.put("checkpoints/last", data, force=True) for one, data in ((log, b"1"), (opened(), b"2"))]
        assert (log.get("checkpoints/last").data, log.get("checkpoints/last").tag) == (b"2", tags[1])

    def test_of_those_that_put_a_file_at_once_one_does(self, log, opened):
        logs, tag = [log, opened(), opened()], None
        for turn in range(5):
            got = all_at_once(
                *((lambda i=i, t=turn, tag=tag: logs[i].put("f", f"{t} {i}".encode(), tag)) for i in range(3))
            )
            assert got.count(None) == 2
            (winner,) = (place for place in range(3) if got[place] is not None)
            tag = got[winner]
            assert (log.get("f").data, log.get("f").tag) == (f"{turn} {winner}".encode(), tag)

    def test_files_are_listed_by_how_they_begin_and_removed(self, log, opened):
        for name in ("vectors/b", "vectors/a/c", "root/x.ttl", "vectors-old", "Root/Y_1"):
            log.put(name, b"x")
        assert opened().names() == ["Root/Y_1", "root/x.ttl", "vectors-old", "vectors/a/c", "vectors/b"]
        assert log.names("vectors/") == ["vectors/a/c", "vectors/b"]
        assert (log.names("vec"), log.names("z"), log.names("vectors/b")) == (
            ["vectors-old", "vectors/a/c", "vectors/b"], [], ["vectors/b"]
        )  # fmt: skip
        log.remove(["vectors/b", "nothing", "root/x.ttl"])
        log.remove([])
        assert opened().names() == ["Root/Y_1", "vectors-old", "vectors/a/c"]
        assert (log.get("vectors/b"), log.put("vectors/b", b"new") is not None) == (None, True)

    def test_files_and_streams_do_not_touch_each_other(self, log, opened):
        written = fill(log, 1)
        log.put("demo/memory/1", b"x")
        log.put("streams/demo/memory/1", b"x")
        other = opened()
        assert (other.streams(), list(other.read(ONE))) == ([ONE], written)
        assert other.names() == ["demo/memory/1", "streams/demo/memory/1"]

    def test_many_files_are_all_listed(self, log):
        names = [f"many/{number:04}" for number in range(60)]
        for name in names:
            log.put(name, b"")
        assert log.names("many/") == names

    @pytest.mark.parametrize(
        "name", ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a b", "a\n", "a\\b", "é", "%41", "x" * 401]
    )
    def test_a_name_of_another_form_is_refused(self, log, name):
        with pytest.raises(InvalidRequest) as refused:
            log.put(name, b"x", force=True)
        assert (refused.value.code, bool(refused.value.hint)) == ("invalid_argument", True)
        with pytest.raises(InvalidRequest):
            log.get(name)
        assert log.names() == []

    def test_a_file_larger_than_files_are_is_refused(self, log):
        with pytest.raises(TooLarge) as refused:
            log.put("large", bytes(FILE_BYTES + 1), force=True)
        assert (refused.value.code, log.names()) == ("payload_too_large", [])

    # closing

    def test_a_log_that_was_closed_left_all_that_was_kept(self, opened):
        log = opened()
        written, tag = fill(log, 2), log.put("f", b"x")
        log.close()
        log.close()
        other = opened()
        assert (list(other.read(ONE)), other.get("f").tag) == (written, tag)

    def test_its_name_is_one_line_to_show(self, log, opened):
        assert log.name == opened().name
        assert log.name.isprintable()


class ProcessContract:
    """What a log promises to processes that know nothing of each other but its address."""

    def test_processes_that_append_at_once_each_get_numbers_of_their_own(self, log, address):
        names, module = ("a", "b", "c"), self.kind
        running = [
            subprocess.Popen([sys.executable, str(CONTENDER), module, address, name, "25"], stdout=subprocess.PIPE)
            for name in names
        ]
        said = [process.communicate()[0].decode().split() for process in running]
        got = {
            f"{name}-{turn}": int(number)
            for name, told in zip(names, said, strict=True)
            for turn, number in enumerate(told)
        }
        entries = list(log.read(ONE))

        assert [process.returncode for process in running] == [0, 0, 0]
        assert got == {entry.document.decode(): entry.number for entry in entries}
        assert [entry.number for entry in entries] == list(range(1, 76))
