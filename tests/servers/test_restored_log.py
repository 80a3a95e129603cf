"""A log that lost or changed entries: verify names them and the copies that have them, and restore puts them back."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from socket import gethostname

import pytest
from conftest import intent, wait_until
from file_log import FileLog, mirrored_journals
from http_world import Client, serving
from journal_world import STREAM, add, commit_on, ids, order_on
from test_shared_root import both, jidomem_here

import jidomem
from jidomem.errors import InvalidRequest, JournalDamaged, NotFound
from jidomem.extras.servers.journal import MirroredJournal
from jidomem.extras.servers.object_log import Bucket
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.rewrite import leaves
from jidomem.read.history import version_of
from jidomem.records.intent import Version

RESTORER = Path(__file__).parent / "killed_restorer.py"


@pytest.fixture
def log_path(tmp_path):
    return str(tmp_path / "log.sqlite")


@pytest.fixture
def open_journal(log_path, tmp_path):
    """Return a function that opens the journal as a process of a machine does."""
    with mirrored_journals(log_path, tmp_path) as open_journal:
        yield open_journal


def lose(log_path, *numbers):
    with sqlite3.connect(log_path) as store:
        store.executemany("DELETE FROM entries WHERE number = ?", [(number,) for number in numbers])


def change(log_path, number, document, commit=None):
    with sqlite3.connect(log_path) as store:
        row = (document, commit, number)
        store.execute("UPDATE entries SET document = ?, id = coalesce(?, id) WHERE number = ?", row)


def restore(journal, *arguments, **options):
    return journal.restore([STREAM], *arguments, **options)[STREAM]


def damaged_numbers(damages):
    return [int(damage.path.partition(": entry ")[2].partition(" ")[0]) for damage in damages]


def test_restore_puts_lost_and_changed_entries_back_and_every_open_process_writes_again(open_journal, log_path):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(8)]
    there.head(STREAM)
    lose(log_path, 1, 3, 4)
    change(log_path, 6, b"nothing")
    change(log_path, 7, commits[6].data.replace(b'"n6"', b'"nx"'))
    late = open_journal("late")
    assert ids(late.read(STREAM)) == ids([commits[1], commits[4], commits[7]])

    damage = here.verify(STREAM)

    assert damaged_numbers(damage) == [1, 3, 4, 6, 7]
    assert [each.commit for each in damage] == [commits[number - 1].id[:12] for number in (1, 3, 4, 6, 7)]
    assert all(str(here.folder) in each.detail and each.hint.endswith("journal restore") for each in damage)
    for journal in (here, there, late, open_journal()):  # none is told, and none has read the log since
        with pytest.raises(JournalDamaged) as refused, journal.lock(STREAM):
            pass
        assert journal is late or refused.value.detail.endswith(
            f"this entry is missing; a copy has it, on {gethostname()}: {here.folder}"
        )
    planned = restore(here, dry_run=True)
    assert ([entry.number for entry in planned.entries], planned.damage) == ([1, 3, 4, 6, 7], ())
    assert damaged_numbers(here.verify(STREAM)) == [1, 3, 4, 6, 7]

    restored = restore(here)

    assert (restored.entries, restored.damage) == (planned.entries, ())
    for journal in (here, there, late, open_journal("new")):
        assert ids(journal.read(STREAM)) == ids(commits)
        assert (journal.damage(STREAM), journal.verify(STREAM)) == ((), ())
        commits.append(add(journal, f"by-{journal.folder.name}"))


def test_two_copies_each_with_a_part_of_the_lost_entries_restore_all(open_journal, log_path, tmp_path):
    old, new = open_journal("old"), open_journal("new")
    commits = [add(old, f"n{number}") for number in range(4)]
    shutil.copytree(tmp_path / "old", tmp_path / "kept")
    commits += [add(new, f"n{number}") for number in range(4, 8)]
    lose(log_path, 2, 3, 6)
    shutil.rmtree(tmp_path / "new")
    kept, new = open_journal("kept"), open_journal("new")

    assert damaged_numbers(kept.verify(STREAM)) == [2, 3, 6]
    assert ["has it" in each.detail for each in kept.verify(STREAM)] == [True, True, False]
    assert ids(kept.read(STREAM)) == ids(commits[:4])  # a damaged log takes nothing from a better copy
    restored = restore(kept)

    assert [entry.number for entry in restored.entries] == [2, 3]
    assert damaged_numbers(restored.damage) == [6]
    assert damaged_numbers(kept.damage(STREAM)) == [6]
    assert "a copy has it" not in kept.damage(STREAM)[0].detail
    with pytest.raises(JournalDamaged), new.lock(STREAM):
        pass
    backup = FileJournal(tmp_path / "backup")
    for commit in commits[:7]:
        backup.append(STREAM, backup.head(STREAM), commit)
    assert [entry.number for entry in restore(new, backup.folder).entries] == [6]
    assert (ids(new.read(STREAM)), new.verify(STREAM)) == (ids(commits), ())


def test_verify_and_reads_keep_a_better_copy_that_is_behind(open_journal, log_path):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(3)]
    there.head(STREAM)
    add(here, "n3")
    lose(log_path, 2, 4)
    other = commit_on(Version.of([commits[2].head]), "other")
    here.log.restore(STREAM, [(here.log.read(STREAM, 2).__next__(), None)])
    here.log.append(STREAM, 4, other.id, other.data)
    lose(log_path, 2)

    for _ in range(2):
        assert ids(there.read(STREAM))[:3] == ids(commits)
        assert damaged_numbers(there.verify(STREAM))[0] == 2
    assert [entry.number for entry in restore(there).entries] == [2]
    assert ids(there.read(STREAM)) == ids([*commits, other])


def test_after_an_older_log_was_restored_a_copy_puts_its_later_commits_back(open_journal, log_path):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(5)]
    lose(log_path, 3, 4, 5)

    restored = restore(open_journal())

    assert ([entry.number for entry in restored.entries], restored.damage) == ([3, 4, 5], ())
    for journal in (there, here):
        assert (ids(journal.read(STREAM)), journal.verify(STREAM)) == (ids(commits), ())


def test_what_was_redacted_is_restored_without_its_text(open_journal, log_path, tmp_path):
    here = open_journal()
    commits = [add(here, f"n{number}") for number in range(3)]
    shutil.copytree(tmp_path / "here", tmp_path / "before")
    for number in (1, 2):
        backup = FileJournal(tmp_path / "backup")
        backup.append(STREAM, backup.head(STREAM), commits[number - 1])
    leaf = next(leaf for triple, leaf in leaves(commits[1]).items() if triple[2] == '"n1"')
    redacted = {commits[1].id: frozenset([leaf])}
    with here.redacting(STREAM, redacted) as version:
        here.append(STREAM, version, order_on(version, redacted))
    whole = list(here.log.read(STREAM))
    lose(log_path, 2)

    for source in ("backup", "before", "here"):
        planned = restore(here, tmp_path / source, dry_run=True)
        assert list(planned.entries) == [whole[1]]
        assert b'"n1"' not in planned.entries[0].document
    assert restore(here, tmp_path / "before").damage == ()
    assert list(here.log.read(STREAM)) == whole


@pytest.mark.parametrize("harm", ["edited", "gone", "of another log", "of another root"])
def test_a_copy_that_is_not_whole_or_of_another_root_restores_nothing(open_journal, log_path, tmp_path, harm):
    here, there = open_journal(), open_journal("there")
    for number in range(5):
        add(here, f"n{number}")
    there.head(STREAM)
    lose(log_path, 2)
    before = list(here.log.read(STREAM))
    source = there.folder
    files = sorted(there.path(STREAM).glob("*.ttl"))
    if harm == "edited":
        files[3].write_bytes(files[3].read_bytes().replace(b'"n3"', b'"nx"'))
    elif harm == "gone":
        files[2].unlink()
    elif harm == "of another log":
        with sqlite3.connect(log_path) as store:
            store.execute("UPDATE life SET life = 'another'")
    else:
        source = tmp_path / "other"
        for number in range(3):
            add(FileJournal(source), f"other{number}")

    with pytest.raises((JournalDamaged, InvalidRequest)) as refused:
        restore(here, source)

    of_whole = isinstance(refused.value, JournalDamaged)
    assert of_whole == (harm in ("edited", "gone"))
    assert ("not whole" if of_whole else "another root") in refused.value.detail
    assert list(here.log.read(STREAM)) == before


@pytest.mark.parametrize("project", ["a", "z"])
def test_a_copy_without_a_project_of_the_root_restores_the_streams_that_it_has(open_journal, log_path, project):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(4)]
    lose(log_path, 3, 4)
    other = Stream(project)
    add(there, "beside", stream=other)

    restored = open_journal().restore([STREAM, other])

    assert [entry.number for entry in restored[STREAM].entries] == [3, 4]
    assert (restored[other].entries, restored[other].damage) == ((), ())
    assert (ids(there.read(STREAM)), len(ids(there.read(other)))) == (ids(commits), 1)


@pytest.mark.parametrize("harm", ["edited", "of another root"])
def test_a_restore_writes_nothing_if_any_stream_of_the_copy_is_refused(open_journal, log_path, tmp_path, harm):
    here, other, backup = open_journal(), Stream("z"), FileJournal(tmp_path / "backup")
    for number in range(3):
        for stream in (STREAM, other):
            add(here, f"{stream.project}{number}", stream=stream)
    shutil.copytree(here.folder / "projects", backup.folder / "projects")
    lose(log_path, 2)
    if harm == "edited":
        file = max(backup.path(other).glob("*.ttl"))
        file.write_bytes(file.read_bytes().replace(b"z2", b"zz"))
    else:
        shutil.rmtree(backup.path(other))
        add(FileJournal(backup.folder), "foreign", stream=other)

    with pytest.raises((JournalDamaged, InvalidRequest)):
        here.restore([STREAM, other], backup.folder)

    assert [entry.number for entry in here.log.read(STREAM, with_gaps=True)] == [1, 3]


def test_a_folder_with_no_commit_of_the_root_is_refused(open_journal, tmp_path):
    here = open_journal()
    add(here, "first")
    add(FileJournal(tmp_path / "backup"), "other", stream=Stream("another"))

    for source in (tmp_path / "empty", tmp_path / "backup"):
        with pytest.raises(InvalidRequest, match="has no commits of"):
            here.restore([STREAM, Stream("another")], source)


def test_an_entry_replaced_by_another_commit_is_reported_and_no_copy_overwrites_it(open_journal, log_path):
    here = open_journal()
    commits = [add(here, f"n{number}") for number in range(4)]
    other = commit_on(Version.of([commits[0].head]), "other")
    change(log_path, 2, other.data, other.id)
    before = list(here.log.read(STREAM))

    assert damaged_numbers(here.verify(STREAM)) == [3]
    restored = restore(here)

    assert (restored.entries, damaged_numbers(restored.damage)) == ((), [3])
    assert (list(here.log.read(STREAM)), ids(here.read(STREAM))) == (before, ids(commits))


def test_a_restore_killed_at_any_step_is_finished_by_the_next(open_journal, log_path, tmp_path):
    here = open_journal()
    commits = [add(here, f"n{number}") for number in range(6)]
    lose(log_path, 2, 3)
    change(log_path, 5, b"nothing")
    assert len(here.verify(STREAM)) == 3
    outcomes = []

    for writes in range(1, 9):
        folder, log = tmp_path / str(writes), str(tmp_path / f"{writes}.sqlite")
        shutil.copytree(here.folder, folder)
        with sqlite3.connect(log_path) as damaged, sqlite3.connect(log) as store:
            damaged.backup(store)
        command, paths = [sys.executable, RESTORER, folder, log, str(writes)], os.pathsep.join(sys.path)
        outcomes.append(subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False).returncode)

        restored, other = (MirroredJournal(FileLog(log), each) for each in (folder, tmp_path / f"other{writes}"))
        if other.damage(STREAM):
            assert restore(restored).damage == ()
        for journal in (restored, other):
            assert (ids(journal.read(STREAM)), journal.damage(STREAM)) == (ids(commits), ())
        assert add(other, "next").position == 7
        for journal in (restored, other):
            journal.log.close()
        if outcomes[-1] == 0:
            break
    assert (outcomes[-1], {*outcomes[:-1]}) == (0, {-9})


@pytest.mark.parametrize("has_reread", [True, False])
def test_a_step_of_a_server_finds_a_missing_entry_and_its_return_without_reading_the_log(
    open_journal, log_path, has_reread
):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(4)]
    there.head(STREAM)
    assert here.find_gaps() == []
    here.log.requests.clear()
    assert here.find_gaps() == []
    assert here.log.requests == {"gaps": 1}

    lose(log_path, 2)
    found = here.reread(STREAM, "", 9)[1] if has_reread else here.find_gaps() == [STREAM]

    assert found
    assert here.find_gaps() == []
    for journal in (here, there):
        with pytest.raises(JournalDamaged, match="entry 2 of demo/memory"), journal.lock(STREAM):
            pass
    with sqlite3.connect(log_path) as store:  # as a database administrator does
        row = (STREAM.project, STREAM.name, 2, commits[1].id, commits[1].data)
        store.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
    assert here.find_gaps() == []
    assert add(there, "next").position == 5


# the command, and servers


@pytest.fixture
def address(request):
    """The address of the root: in PostgreSQL, unless a test is run with both stores."""
    kind = getattr(request, "param", "postgres")
    return request.getfixturevalue("bucket") if kind == "bucket" else request.getfixturevalue("postgres").address()


@both
def test_the_command_shows_and_restores_lost_entries(address, tmp_path, postgres, monkeypatch):
    memories = []
    for machine in ("here", "there"):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(address, project="p"))
    here, there = memories
    for number in range(4):
        here.writer.submit_intent("p", intent(summary=f"fact {number}", about=[f"f{number}"]))
    there.catch_up("p")
    if address.startswith("s3:"):
        store = Bucket(address, os.environ, 10.0)
        store.delete([key for key in store.below("log") if key.endswith(("002", "003"))])
    else:
        postgres.sql(f"DELETE FROM {address.rpartition('=')[2]}.commits WHERE number IN (2, 3)")

    verified = jidomem_here(address, tmp_path / "there", "journal", "verify")
    assert verified.exit_code == 7
    assert "entry 2 of p/memory: this entry is missing; the copy here" in verified.stdout
    assert "put it back: jidomem journal restore" in verified.stderr
    planned = jidomem_here(address, tmp_path / "there", "journal", "restore", "--dry-run")
    assert (planned.exit_code, "2 entries would be put back" in planned.stderr) == (0, True)
    with pytest.raises(JournalDamaged):
        here.writer.submit_intent("p", intent(summary="refused"))

    restored = jidomem_here(address, tmp_path / "new", "journal", "restore", str(tmp_path / "there"))

    assert (restored.exit_code, len(restored.stdout.splitlines())) == (0, 3), restored.output
    for memory in (here, there):
        memory.writer.submit_intent("p", intent(summary=f"after {memory.settings.root}"))
        memory.close()
    assert jidomem_here(address, tmp_path / "fresh", "journal", "verify").stdout.endswith("sound\n")


def test_restore_is_refused_for_a_folder(tmp_path):
    add(FileJournal(tmp_path / ".jidomem"), "first")
    result = jidomem_here(str(tmp_path / ".jidomem"), tmp_path / "home", "journal", "restore")
    assert (result.exit_code, "is a folder, not a shared root" in result.stderr) == (2, True)


@pytest.mark.usefixtures("loaded_program")
def test_two_servers_refuse_writes_after_a_verify_and_write_again_after_a_restore(
    postgres,
    address,
    tmp_path,
):
    schema, stream = address.rpartition("=")[2], Stream("p")
    assert jidomem_here(address, tmp_path / "one", "init").exit_code == 0
    with ExitStack() as stack:
        clients = [
            stack.enter_context(Client(stack.enter_context(serving(address, environment=machine(tmp_path, name))).url))
            for name in ("one", "two")
        ]

        def write(client, summary):
            return client.submit(intent(summary=summary, about=[summary]))[0]

        assert [write(clients[number % 2], f"fact {number}") for number in range(4)] == [201] * 4
        wait_until(lambda: all(client.ask("GET", "/readyz")[0] == 200 for client in clients))
        postgres.sql(f"DELETE FROM {schema}.commits WHERE stream = 'p/memory' AND number = 2")

        verified = jidomem_here(address, tmp_path / "one", "journal", "verify")
        assert verified.exit_code == 7
        assert [write(client, "refused") for client in clients] == [500, 500]
        assert [client.ask("GET", "/readyz")[0] for client in clients] == [503, 503]

        restored = jidomem_here(address, tmp_path / "two", "journal", "restore")
        assert restored.exit_code == 0, restored.output
        assert [write(client, f"accepted {number}") for number, client in enumerate(clients)] == [201, 201]
        assert [client.ask("GET", "/readyz")[0] for client in clients] == [200, 200]
    assert FileJournal(tmp_path / "two").verify(stream) == ()


def machine(tmp_path, name):
    own = {"JIDOMEM_HOME": str(tmp_path / name), "XDG_CONFIG_HOME": str(tmp_path / f"{name}-config")}
    return {**os.environ, **own, "JIDOMEM_EMBEDDER": "none"}


@pytest.mark.parametrize("is_continued", [True, False])
def test_what_a_shorter_log_cuts_from_a_copy_is_put_back_beside_what_was_written_since(
    open_journal, log_path, tmp_path, is_continued
):
    here, elsewhere = open_journal(), open_journal("elsewhere")
    commits = [add(here, f"n{number}") for number in range(4)]
    lose(log_path, 3, 4)  # as a replica that was behind
    if is_continued:
        other = add(elsewhere, "other")

    assert ids(here.read(STREAM)) == ids([*commits[:2], other] if is_continued else commits[:2])

    (cut,) = (here.folder / "cut").iterdir()
    assert not (elsewhere.folder / "cut").exists()
    restored = restore(here, cut)
    assert [entry.commit for entry in restored.entries] == ids(commits[2:])
    assert restored.damage == ()
    for journal in (here, elsewhere, open_journal("new")):
        assert {*ids(journal.read(STREAM))} == {*ids(commits), *([other.id] if is_continued else [])}
        assert (journal.verify(STREAM), len(journal.head(STREAM).heads)) == ((), 1 + is_continued)
    assert restore(here, cut).entries == ()


def test_a_version_that_a_shorter_log_lost_is_called_so_and_is_known_again_once_it_was_put_back(open_journal, log_path):
    here = open_journal()
    versions = [here.head(STREAM) for number in range(4) if add(here, f"n{number}")]
    lose(log_path, 3, 4)
    short = open_journal("short")

    with pytest.raises(NotFound, match=f"it ends at {versions[1]}, as after the restore of an older backup") as refused:
        version_of(short, STREAM, str(versions[3]))
    with pytest.raises(NotFound, match="it is another project's"):
        version_of(short, STREAM, "2-0123456789ab")

    assert refused.value.hint.startswith(f"go on from {versions[3]} once its lost commits are put back")
    restore(here)
    assert version_of(short, STREAM, str(versions[3])) == versions[3]


def test_a_redaction_removes_what_was_cut_from_a_copy(open_journal, log_path):
    here, there = open_journal(), open_journal("there")
    commits = [add(here, f"n{number}") for number in range(3)]
    for journal in (here, there):
        journal.head(STREAM)
    lose(log_path, 3)
    for journal in (here, there):
        journal.head(STREAM)
        assert b'"n2"' in b"".join(path.read_bytes() for path in (journal.folder / "cut").rglob("*.ttl"))

    leaf = next(leaf for triple, leaf in leaves(commits[1]).items() if triple[2] == '"n1"')
    redacted = {commits[1].id: frozenset([leaf])}
    with here.redacting(STREAM, redacted) as version:
        here.append(STREAM, version, order_on(version, redacted))

    for journal in (here, there):
        assert len(list(journal.read(STREAM))) == 3
        assert [*(journal.folder / "cut").iterdir()] == []


def test_the_command_that_verify_names_for_lost_commits_works_beside_another_project_and_ends_the_warning(
    postgres, address, tmp_path, monkeypatch
):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "here"))
    with jidomem.open(address, project="p") as memory:
        for number in range(3):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}", about=[f"f{number}"]))
        memory.writer.submit_intent("a", intent(summary="beside", applies_to_project="a"))
    postgres.sql(f"DELETE FROM {address.rpartition('=')[2]}.commits WHERE stream = 'p/memory' AND number = 3")
    verified = jidomem_here(address, tmp_path / "here", "journal", "verify")
    (cut,) = (tmp_path / "here" / "cut").iterdir()
    assert f"jidomem journal restore {cut}\n" in verified.stderr

    restored = jidomem_here(address, tmp_path / "here", "journal", "restore", str(cut))

    assert (restored.exit_code, "1 entries put back" in restored.stderr) == (0, True)
    after = jidomem_here(address, tmp_path / "here", "journal", "verify")
    assert (after.exit_code, "lost its last commits" in after.stderr) == (0, False)
