"""The contract of every journal: one suite, run over each backend."""

import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import pytest
from file_log import FileLog
from journal_world import STREAM, add, commit_on, fact, ids

from jidomem.errors import Busy, NotFound
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.journal.commit import FormatError
from jidomem.journal.journal import FileJournal, Stream, VersionMismatch
from jidomem.records.intent import Version


def in_files(folder, opened):
    """Return the place of the journal in one folder."""
    return "files", folder, folder


def on_a_log(folder, opened):
    """Return the place of the journal of a shared root, with the same copy each time."""
    return "log", folder / "log.sqlite", folder / "home"


def on_a_log_from_elsewhere(folder, opened):
    """Return the place of the same journal, as on another machine each time."""
    return "log", folder / "log.sqlite", folder / f"home-{opened}"


BACKENDS = [in_files, on_a_log, on_a_log_from_elsewhere]
APPENDER = Path(__file__).parent / "appender.py"


@pytest.fixture(params=BACKENDS)
def places(request, tmp_path):
    """Return a function of the kind, place and folder of the same journal."""
    opened = count()
    return lambda: request.param(tmp_path, next(opened))


@pytest.fixture
def opened(places):
    """Open the same journal again, as another process would."""
    logs = []

    def journal(**options):
        kind, place, home = places()
        if kind == "files":
            return FileJournal(home, **options)
        logs.append(FileLog(str(place)))
        return MirroredJournal(logs[-1], home, **options)

    yield journal
    for log in logs:
        log.close()


def appender(place, name, count):
    return subprocess.Popen([sys.executable, str(APPENDER), *map(str, place), name, str(count)], stdout=subprocess.PIPE)


def test_a_stream_nobody_wrote_to_is_empty(opened):
    # C027
    journal = opened()
    assert (journal.head(STREAM), list(journal.read(STREAM)), journal.streams()) == (Version(), [], [])
    assert not journal.exists(STREAM)
    with journal.lock(STREAM) as version:
        assert version == Version()
    assert not journal.exists(STREAM)


def test_an_appended_commit_is_there_at_once_for_everyone(opened):
    # C020
    journal, other = opened(), opened()
    written = [add(journal, name) for name in ("one", "two", "three")]

    assert other.head(STREAM) == Version.of([written[-1].head])
    assert list(other.read(STREAM)) == list(journal.read(STREAM)) == written
    assert (other.streams(), other.exists(STREAM), other.damage(STREAM)) == ([STREAM], True, ())


def test_two_writers_taking_turns_always_see_each_other(opened):
    writers = [opened(), opened()]
    reader = opened()
    for number in range(120):
        commit = add(writers[number % 3 % 2], f"n{number}")
        assert commit.position == number + 1
        assert reader.head(STREAM).ids == (commit.id,)
    assert [commit.position for commit in reader.read(STREAM)] == list(range(1, 121))


def test_an_append_on_a_stale_version_writes_nothing_and_returns_the_current_version(opened):
    journal = opened()
    first = add(journal, "first")

    stale = journal.append(STREAM, Version(), commit_on(Version(), "late"))

    assert stale == VersionMismatch(Version.of([first.head]))
    assert list(opened().read(STREAM)) == [first]


def test_an_append_works_within_a_turn_and_without(opened):
    journal = opened()
    first = commit_on(Version(), "first")
    version = journal.append(STREAM, Version(), first)
    with journal.lock(STREAM) as locked:
        assert locked == version
        second = commit_on(locked, "second")
        third = commit_on(journal.append(STREAM, locked, second), "third")
        journal.append(STREAM, Version.of([second.head]), third)
    assert ids(opened().read(STREAM)) == ids([first, second, third])


def test_a_repeated_append_settles_one_with_an_unknown_outcome(opened):
    journal = opened()
    first = commit_on(Version(), "first")
    journal.append(STREAM, Version(), first)
    second = add(journal, "second")

    assert opened().append(STREAM, Version(), first) == Version.of([second.head])
    assert ids(journal.read(STREAM)) == ids([first, second])


def test_reading_after_a_version_yields_the_later_commits(opened):
    journal = opened()
    versions, written = [Version()], []
    for name in "abcde":
        written.append(add(journal, name))
        versions.append(journal.head(STREAM))
    for number, version in enumerate(versions):
        assert ids(opened().read(STREAM, version)) == ids(written[number:])
        assert ids(journal.read(STREAM, after=version)) == ids(written[number:])


def test_reading_after_a_version_that_is_not_here_is_refused(opened):
    journal = opened()
    add(journal, "here")
    elsewhere = Version.of([commit_on(Version(), "elsewhere").head])
    assert not journal.holds(STREAM, elsewhere)
    assert journal.holds(STREAM, journal.head(STREAM))
    with pytest.raises(NotFound, match="no longer has the version 1-"):
        journal.read(STREAM, elsewhere)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v, c: commit_on(v, "x", second=v.position), "is not after its parents"),
        (lambda v, c: commit_on(Version.of([v.heads[0]._replace(position=7)]), "x", second=9), "does not follow from"),
        (lambda v, c: commit_on(Version(), "x", second=9), "does not follow from"),
        (lambda v, c: commit_on(v, "x", graph="https://jido.ai/projects/q/graphs/y"), "does not belong in"),
    ],
)
def test_a_commit_that_does_not_follow_from_the_version_is_refused(opened, change, message):
    journal = opened()
    first = add(journal, "first")
    version = journal.head(STREAM)
    with pytest.raises(FormatError, match=message):
        journal.append(STREAM, version, change(version, first))
    assert list(journal.read(STREAM)) == [first]


def test_the_streams_of_a_root_do_not_touch_each_other(opened):
    journal = opened()
    streams = [STREAM, Stream("demo", "history"), Stream("other", "codebase"), Stream("other", "system")]
    written = {stream: add(journal, stream.name, stream=stream) for stream in streams}
    assert opened().streams() == sorted(streams)
    assert all(list(opened().read(stream)) == [commit] for stream, commit in written.items())


@pytest.mark.parametrize("places", [in_files, on_a_log], indirect=True)
def test_one_writer_has_the_turn_and_others_wait_up_to_their_limit(opened):
    # C023
    journal = opened()
    impatient = opened(wait=0.05)
    with journal.lock(STREAM), pytest.raises(Busy, match=r"for over 0\.05 seconds") as refused, impatient.lock(STREAM):
        pass
    assert refused.value.hint.startswith("submit again")
    with impatient.lock(STREAM) as version:
        assert version == Version()


@pytest.mark.parametrize("places", [in_files, on_a_log], indirect=True)
def test_a_thread_waits_up_to_the_limit_for_another_of_the_same_journal(opened):
    # C023
    journal, refused = opened(wait=0.05), []

    def wait():
        try:
            with journal.lock(STREAM):
                refused.append(None)
        except Busy as error:
            refused.append(error.code)

    thread = threading.Thread(target=wait, daemon=True)
    with journal.lock(STREAM):
        thread.start()
        thread.join(30)  # without a limit it would wait until the end of this block
        assert refused == ["busy"]


@pytest.mark.parametrize("places", [on_a_log_from_elsewhere], indirect=True)
def test_a_lock_blocks_no_other_machine_and_the_second_append_is_refused(opened):
    journal, elsewhere = opened(), opened()
    with journal.lock(STREAM) as version:
        first = add(elsewhere, "first")
        late = journal.append(STREAM, version, commit_on(version, "late"))
    assert late == VersionMismatch(Version.of([first.head]))
    assert list(journal.read(STREAM)) == list(opened().read(STREAM)) == [first]


def test_an_error_within_a_turn_gives_the_turn_back(opened):
    journal = opened(wait=0.05)
    with pytest.raises(KeyError), journal.lock(STREAM):
        raise KeyError
    assert add(journal, "next").position == 1


def test_threads_that_append_at_once_lose_nothing(opened):
    # C023
    journal, acknowledged = opened(), []

    def work(name):
        for number in range(15):
            with journal.lock(STREAM) as version:
                commit = commit_on(version, f"{name}-{number}", fact(f"{name}-{number}"))
                assert not isinstance(journal.append(STREAM, version, commit), VersionMismatch)
                acknowledged.append(commit.id)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ids(opened().read(STREAM)) == acknowledged
    assert (len(acknowledged), opened().verify(STREAM)) == (60, ())


def test_processes_that_append_at_once_lose_nothing(opened, places):
    # C023
    running = [appender(places(), name, 60) for name in ("a", "b", "c")]
    acknowledged = [line for process in running for line in process.communicate()[0].decode().split()]

    assert [process.returncode for process in running] == [0, 0, 0]
    assert sorted(acknowledged) == sorted(ids(opened().read(STREAM)))
    assert (len(acknowledged), opened().head(STREAM).position, opened().verify(STREAM)) == (180, 180, ())
