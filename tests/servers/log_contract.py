"""The contract of every shared log: one suite, which a module for each log inherits.

A log that other processes can open by its address is tested so:

    class TestPostgresLog(LogContract, ProcessContract):
        kind = "jidomem.extras.servers.postgres_log:PostgresLog"

        @pytest.fixture
        def address(self, server):
            return "postgresql://..."  # of a log without entries and files
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
from jidomem.extras.servers.log import FILE_BYTES, LogEntry, LogState, StreamPosition
from jidomem.journal.journal import Stream

ONE, TWO, OTHER = Stream("demo"), Stream("demo", "history"), Stream("other")
CONTENDER = Path(__file__).parent / "contender.py"
#: Far longer than any step takes: a wait of that length never ends.
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


def run_at_once(*works):
    """Run all of *works*, each in a thread of its own, and return their results."""
    results, barrier = [None] * len(works), threading.Barrier(len(works))

    def work(position):
        barrier.wait(LONG)
        results[position] = works[position]()

    threads = [threading.Thread(target=work, args=(position,), daemon=True) for position in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    return results


def contend(log, name, count, stream=ONE):
    """Append *count* entries by compare-and-append against others; return the numbers of the entries."""
    numbers, number = [], log.positions([stream])[stream].length + 1
    for turn in range(count):
        while not log.append(stream, number, commit(f"{name}-{turn}"), f"{name}-{turn}".encode()):
            number = log.positions([stream])[stream].length + 1
        numbers.append(number)
        number += 1
    return numbers


class LogContract:
    """The contract of one log for a caller that has it open."""

    kind: str

    @pytest.fixture
    def reopen(self, address):
        """Return a function that opens the same log once more, as another process does."""
        module, _, name = self.kind.partition(":")
        logs = []

        def reopen():
            logs.append(getattr(import_module(module), name)(address))
            return logs[-1]

        yield reopen
        for log in logs:
            log.close()

    @pytest.fixture
    def log(self, reopen):
        return reopen()

    # entries

    def test_a_new_log_is_empty(self, log):
        assert (log.streams(), dict(log.positions([ONE, TWO])), list(log.read(ONE))) == (
            [],
            {ONE: StreamPosition(), TWO: StreamPosition()},
            [],
        )
        assert dict(log.positions([])) == {}

    def test_look_returns_reaches_a_file_tag_and_the_life_of_the_log(self, log, reopen):
        first = log.read_state([ONE, TWO], "f")
        assert (dict(first.positions), first.tag) == ({ONE: StreamPosition(), TWO: StreamPosition()}, None)
        fill(log, 2)
        tag = log.put("f", b"1")
        assert (
            log.read_state([ONE], "f")
            == reopen().read_state([ONE], "f")
            == LogState({ONE: StreamPosition(2)}, tag, first.log_id)
        )
        assert first.log_id

    def test_an_appended_entry_is_read_at_once_by_every_open_log(self, log, reopen):
        other = reopen()
        entries = fill(log, 3)
        assert list(other.read(ONE)) == list(log.read(ONE)) == list(reopen().read(ONE)) == entries
        assert (other.streams(), other.positions([ONE])[ONE]) == ([ONE], StreamPosition(3))

    def test_alternating_writers_see_each_others_entries(self, log, reopen):
        writers = [log, reopen()]
        for number in range(1, 9):
            assert writers[number % 2].append(ONE, number, commit(number), document(number))
            assert all(writer.positions([ONE])[ONE].length == number for writer in writers)

    def test_a_number_is_assigned_once(self, log, reopen):
        entries = fill(log, 2)
        assert log.append(ONE, 2, commit("late"), b"late") is False
        assert reopen().append(ONE, 1, commit("late"), b"late") is False
        assert (list(log.read(ONE)), log.positions([ONE])[ONE]) == (entries, StreamPosition(2))

    def test_an_existing_commit_is_accepted_again_and_stored_once(self, log, reopen):
        entries = fill(log, 2)
        assert log.append(ONE, 2, entries[1].commit, entries[1].document) is True
        assert reopen().append(ONE, 1, entries[0].commit, entries[0].document) is True
        assert list(reopen().read(ONE)) == entries

    @pytest.mark.parametrize("number", [0, -1, 3, 100])
    def test_a_number_out_of_range_is_refused(self, log, reopen, number):
        entries = fill(log, 1)
        for each in (log, reopen()):
            with pytest.raises(ValueError, match=str(number)):
                each.append(ONE, number, commit("far"), b"far")
        assert list(log.read(ONE)) == entries

    def test_entries_are_read_in_order_after_any_number(self, log, reopen):
        entries = fill(log, 12)
        for after in (0, 1, 7, 11, 12, 50):
            assert list(reopen().read(ONE, after)) == entries[after:]

    def test_many_entries_are_read_in_the_order_of_their_numbers(self, log):
        for number in range(1, 121):
            log.append(ONE, number, commit(number), str(number).encode())
        assert [(entry.number, entry.document) for entry in log.read(ONE, 95)] == [
            (number, str(number).encode()) for number in range(96, 121)
        ]

    def test_an_unfinished_read_does_not_block_appends(self, log):
        entries = fill(log, 5)
        reading = log.read(ONE)
        assert list(islice(reading, 2)) == entries[:2]
        entries += fill(log, 6, first=6)
        assert log.positions([ONE])[ONE] == StreamPosition(6)
        assert list(reading)[:3] == entries[2:5]
        assert next(iter(log.read(ONE, 5))) == entries[5]
        assert list(log.read(ONE)) == entries

    def test_a_large_document_is_read_back(self, log, reopen):
        large = document("large") * 10_000
        assert log.append(ONE, 1, commit(1), large)
        assert next(iter(reopen().read(ONE))).document == large

    def test_streams_are_independent(self, log, reopen):
        entries = {stream: fill(log, count, stream) for stream, count in ((OTHER, 2), (ONE, 3), (TWO, 1))}
        other = reopen()
        assert other.streams() == [TWO, ONE, OTHER]
        assert {stream: list(other.read(stream)) for stream in entries} == entries
        assert dict(other.positions([TWO, OTHER])) == {TWO: StreamPosition(1), OTHER: StreamPosition(2)}

    def test_concurrent_threads_get_different_numbers(self, log, reopen):
        # two logs, two threads each
        logs = [log, reopen()]
        numbers_by_thread = run_at_once(*((lambda n=n: contend(logs[n % 2], f"t{n}", 12)) for n in range(4)))
        entries = list(reopen().read(ONE))
        assert sorted(number for numbers in numbers_by_thread for number in numbers) == list(range(1, 49))
        assert [entry.number for entry in entries] == list(range(1, 49))
        assert {
            f"t{n}-{turn}": number for n, numbers in enumerate(numbers_by_thread) for turn, number in enumerate(numbers)
        } == {entry.document.decode(): entry.number for entry in entries}

    def test_one_of_several_concurrent_appends_of_a_number_succeeds(self, log, reopen):
        logs = [log, reopen(), reopen()]
        for number in range(1, 6):
            attempts = [(each, f"{number} of {place}") for place, each in enumerate(logs)]
            results = run_at_once(
                *((lambda w=w, n=number: w[0].append(ONE, n, commit(w[1]), w[1].encode())) for w in attempts)
            )
            last = list(log.read(ONE, number - 1))
            assert sorted(results) == [False, False, True]
            assert [(entry.number, entry.document) for entry in last] == [
                (number, attempts[results.index(True)][1].encode())
            ]

    # damage and its repair

    def test_a_missing_entry_is_a_gap_until_it_is_restored(self, log, reopen):
        entries = fill(log, 1) + [LogEntry(number, commit(number), document(number)) for number in (2, 3, 4)]
        assert log.gaps() == {}

        assert log.restore(ONE, [(entries[3], None)]) is True

        other = reopen()
        assert log.gaps() == other.gaps() == {ONE: 2}
        assert other.positions([ONE])[ONE].length == 4
        assert list(reopen().read(ONE, with_gaps=True)) == [entries[0], entries[3]]
        assert list(other.read(ONE, 1, with_gaps=True)) == entries[3:]
        assert other.restore(ONE, [(entry, None) for entry in entries[1:]]) is True
        assert (log.gaps(), list(log.read(ONE)), log.streams()) == ({}, entries, [ONE])

    def test_an_entry_is_restored_only_in_place_of_the_damaged_document(self, log, reopen):
        entries = fill(log, 3)
        damaged = LogEntry(2, commit(2), b"damaged")
        log.rewrite(ONE, {commit(2): damaged.document})

        for found in (None, b"other", document(1)):
            assert log.restore(ONE, [(entries[1], found)]) is False
            assert list(reopen().read(ONE)) == [entries[0], damaged, entries[2]]
        for _ in range(2):  # the second call, as after an interruption, changes nothing
            assert reopen().restore(ONE, [(entries[1], b"damaged")]) is True
            assert list(log.read(ONE)) == entries

    def test_recorded_damage_is_reported_with_each_reach_until_it_is_removed(self, log, reopen):
        other = reopen()
        fill(log, 2)
        log.mark(ONE, "2 is missing")
        log.rewrite(ONE, {commit(1): b"one"})

        for each in (log, other, reopen()):
            assert [reach.damage for reach in each.positions([ONE, TWO]).values()] == ["2 is missing", ""]
            assert each.read_state([ONE], "f").positions[ONE].damage == "2 is missing"
        other.mark(ONE, "")
        other.mark(TWO, "")
        assert [reach.damage for reach in log.positions([ONE, TWO]).values()] == ["", ""]

    # rewriting

    def test_a_rewrite_replaces_documents_and_is_counted(self, log, reopen):
        fill(log, 4)
        log.rewrite(ONE, {commit(2): b"two", commit(4): b"four"})
        other = reopen()
        assert other.positions([ONE, TWO]) == {ONE: StreamPosition(4, 1), TWO: StreamPosition()}
        assert [entry.document for entry in other.read(ONE)] == [document(1), b"two", document(3), b"four"]
        assert [entry.commit for entry in log.read(ONE)] == [commit(number) for number in range(1, 5)]

        log.rewrite(ONE, {commit(1): b"one"})
        assert (other.positions([ONE])[ONE], next(iter(other.read(ONE))).document) == (StreamPosition(4, 2), b"one")

    def test_a_rewrite_of_an_unknown_commit_changes_nothing(self, log, reopen):
        entries = fill(log, 3)
        with pytest.raises(NotFound, match=commit(9)[:12]):
            log.rewrite(ONE, {commit(1): b"one", commit(9): b"nine", commit(3): b"three"})
        with pytest.raises(NotFound):
            reopen().rewrite(TWO, {commit(1): b"one"})
        assert (list(reopen().read(ONE)), reopen().positions([ONE])[ONE]) == (entries, StreamPosition(3))

    def test_appends_after_a_rewrite_do_not_restore_the_old_document(self, log, reopen):
        entries = fill(log, 2)
        log.rewrite(ONE, {commit(1): b"one", commit(2): b"two"})
        assert reopen().append(ONE, 2, entries[1].commit, entries[1].document) is True
        assert log.append(ONE, 2, commit("late"), b"late") is False
        assert reopen().append(ONE, 3, commit(3), b"three") is True
        assert [entry.document for entry in log.read(ONE)] == [b"one", b"two", b"three"]
        assert log.positions([ONE])[ONE] == StreamPosition(3, 1)

    # waiting

    def test_a_wait_ends_with_the_next_append(self, log, reopen):
        fill(log, 1)
        other, reaches = reopen(), []
        thread = threading.Thread(
            target=lambda: reaches.append(other.wait(ONE, StreamPosition(1), LONG * 5)), daemon=True
        )
        thread.start()
        log.append(ONE, 2, commit(2), document(2))
        thread.join(LONG)
        assert reaches == [StreamPosition(2)]

    def test_a_wait_ends_with_a_rewrite(self, log, reopen):
        fill(log, 1)
        other, reaches = reopen(), []
        thread = threading.Thread(
            target=lambda: reaches.append(other.wait(ONE, StreamPosition(1), LONG * 5)), daemon=True
        )
        thread.start()
        log.rewrite(ONE, {commit(1): b"one"})
        thread.join(LONG)
        assert reaches == [StreamPosition(1, 1)]

    def test_a_wait_for_a_past_state_ends_at_once(self, log):
        fill(log, 2)
        assert log.wait(ONE, StreamPosition(1), LONG * 5) == StreamPosition(2)
        assert log.wait(ONE, StreamPosition(7), LONG * 5) == StreamPosition(2)

    def test_a_wait_without_news_ends_after_its_time(self, log):
        fill(log, 1)
        assert log.wait(ONE, StreamPosition(1), 0.05) == StreamPosition(1)
        assert log.wait(TWO, StreamPosition(), 0.0) == StreamPosition()

    def test_waiting_readers_block_no_append(self, log):
        waiting = [
            threading.Thread(target=log.wait, args=(ONE, StreamPosition(), LONG * 5), daemon=True) for _ in range(6)
        ]
        for thread in waiting:
            thread.start()
        fill(log, 1, TWO)
        assert log.positions([TWO])[TWO] == StreamPosition(1)
        fill(log, 1)
        for thread in waiting:
            thread.join(LONG)
        assert not any(thread.is_alive() for thread in waiting)

    # files

    def test_a_file_is_read_back_with_its_tag(self, log, reopen):
        assert (log.get("root/config.toml"), log.names()) == (None, [])
        tag = log.put("root/config.toml", document("config"))
        file = reopen().get("root/config.toml")
        assert (file.data, file.tag) == (document("config"), tag)
        assert log.put("empty", b"")
        assert reopen().get("empty").data == b""

    def test_a_file_is_replaced_only_with_its_present_tag(self, log, reopen):
        other = reopen()
        first = log.put("tokens", b"1")
        assert other.put("tokens", b"x") is None
        assert other.put("tokens", b"x", "no such tag") is None
        assert other.put("nothing", b"x", first) is None
        second = other.put("tokens", b"2", first)
        assert second not in (None, first)
        assert log.put("tokens", b"3", first) is None
        assert (log.get("tokens").data, log.get("tokens").tag, log.get("nothing")) == (b"2", second, None)

    def test_a_forced_put_replaces_any_file(self, log, reopen):
        tags = [writer.put("checkpoints/last", data, force=True) for writer, data in ((log, b"1"), (reopen(), b"2"))]
        assert (log.get("checkpoints/last").data, log.get("checkpoints/last").tag) == (b"2", tags[1])

    def test_one_of_several_concurrent_puts_of_a_file_succeeds(self, log, reopen):
        logs, tag = [log, reopen(), reopen()], None
        for turn in range(5):
            tags = run_at_once(
                *((lambda i=i, t=turn, tag=tag: logs[i].put("f", f"{t} {i}".encode(), tag)) for i in range(3))
            )
            assert tags.count(None) == 2
            (winner,) = (position for position in range(3) if tags[position] is not None)
            tag = tags[winner]
            assert (log.get("f").data, log.get("f").tag) == (f"{turn} {winner}".encode(), tag)

    def test_files_are_listed_by_prefix_and_removed(self, log, reopen):
        for name in ("vectors/b", "vectors/a/c", "root/x.ttl", "vectors-old", "Root/Y_1"):
            log.put(name, b"x")
        assert reopen().names() == ["Root/Y_1", "root/x.ttl", "vectors-old", "vectors/a/c", "vectors/b"]
        assert log.names("vectors/") == ["vectors/a/c", "vectors/b"]
        assert (log.names("vec"), log.names("z"), log.names("vectors/b")) == (
            ["vectors-old", "vectors/a/c", "vectors/b"], [], ["vectors/b"]
        )  # fmt: skip
        log.remove(["vectors/b", "nothing", "root/x.ttl"])
        log.remove([])
        assert reopen().names() == ["Root/Y_1", "vectors-old", "vectors/a/c"]
        assert (log.get("vectors/b"), log.put("vectors/b", b"new") is not None) == (None, True)

    def test_files_and_streams_are_independent(self, log, reopen):
        entries = fill(log, 1)
        log.put("demo/memory/1", b"x")
        log.put("streams/demo/memory/1", b"x")
        other = reopen()
        assert (other.streams(), list(other.read(ONE))) == ([ONE], entries)
        assert other.names() == ["demo/memory/1", "streams/demo/memory/1"]

    def test_many_files_are_listed(self, log):
        names = [f"many/{number:04}" for number in range(60)]
        for name in names:
            log.put(name, b"")
        assert log.names("many/") == names

    @pytest.mark.parametrize(
        "name", ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a b", "a\n", "a\\b", "é", "%41", "x" * 401]
    )
    def test_an_invalid_file_name_is_refused(self, log, name):
        with pytest.raises(InvalidRequest) as refused:
            log.put(name, b"x", force=True)
        assert (refused.value.code, bool(refused.value.hint)) == ("invalid_argument", True)
        with pytest.raises(InvalidRequest):
            log.get(name)
        assert log.names() == []

    def test_a_file_above_the_limit_is_refused(self, log):
        with pytest.raises(TooLarge) as refused:
            log.put("large", bytes(FILE_BYTES + 1), force=True)
        assert (refused.value.code, log.names()) == ("payload_too_large", [])

    # closing

    def test_a_closed_log_keeps_its_entries_and_files(self, reopen):
        log = reopen()
        entries, tag = fill(log, 2), log.put("f", b"x")
        log.close()
        log.close()
        other = reopen()
        assert (list(other.read(ONE)), other.get("f").tag) == (entries, tag)

    def test_the_name_of_a_log_is_one_printable_line(self, log, reopen):
        assert log.name == reopen().name
        assert log.name.isprintable()


class ProcessContract:
    """The contract of a log for independent processes that know its address alone."""

    def test_concurrent_processes_get_different_numbers(self, log, address):
        names, module = ("a", "b", "c"), self.kind
        running = [
            subprocess.Popen([sys.executable, str(CONTENDER), module, address, name, "25"], stdout=subprocess.PIPE)
            for name in names
        ]
        outputs = [process.communicate()[0].decode().split() for process in running]
        numbers = {
            f"{name}-{turn}": int(number)
            for name, output in zip(names, outputs, strict=True)
            for turn, number in enumerate(output)
        }
        entries = list(log.read(ONE))

        assert [process.returncode for process in running] == [0, 0, 0]
        assert numbers == {entry.document.decode(): entry.number for entry in entries}
        assert [entry.number for entry in entries] == list(range(1, 76))
