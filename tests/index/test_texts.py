"""The search file of recall: shared by processes, up to date with the journal, and rebuilt after damage."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest
from conftest import ToyEmbedder, intent

import jidomem
from jidomem.errors import Busy
from jidomem.index import search_index
from jidomem.journal.journal import FileJournal, Stream
from jidomem.records.active import FOREVER

SECRET = "swordfish"


def open_root(root):
    return jidomem.open(root, project="p", agent="me")


def record(memory, *summaries):
    return [memory.writer.submit_intent("p", intent(summary=summary)).iri for summary in summaries]


def recalled(memory, query, **more):
    return {hit.content for hit in memory.recall(query, "p", limit=1_000, min_score=0, **more).entries}


def cache(root):
    return root / "cache" / "text" / "p.sqlite"


def cached_bytes(root):
    return b"".join(path.read_bytes() for path in sorted((root / "cache").rglob("*")) if path.is_file())


@pytest.fixture
def memory(root):
    with open_root(root) as memory:
        record(memory, "quagga one", "quagga two", f"quagga {SECRET}")
        yield memory


def nonsense(path):
    path.write_bytes(os.urandom(50_000))


def cut(path):
    path.write_bytes(path.read_bytes()[:9_000])


def emptied(path):
    path.write_bytes(b"")


def removed(path):
    path.unlink()


def of_another_form(path):
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA user_version = 999")
    store.close()


def without_a_table(path):
    with sqlite3.connect(path) as store:
        store.execute("DROP TABLE memory")
    store.close()


def a_folder(path):
    path.unlink()
    path.mkdir()


def scribbled_over(path):
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


DAMAGES = [nonsense, cut, emptied, removed, of_another_form, without_a_table, a_folder, scribbled_over]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_a_damaged_search_file_is_rebuilt_with_correct_answers(root, memory, damage, is_open):
    expected = {"quagga one", "quagga two", f"quagga {SECRET}"}
    assert recalled(memory, "quagga") == expected
    if not is_open:
        memory.texts.close()
    written_out(cache(root))
    damage(cache(root))

    with open_root(root) as other:
        assert recalled(other, "quagga") == expected
    assert recalled(memory, "quagga") == expected
    record(memory, "quagga three")
    assert recalled(memory, "quagga") == {*expected, "quagga three"}
    with open_root(root) as other:
        assert recalled(other, "quagga") == {*expected, "quagga three"}


def written_out(path):
    """Merge the write-ahead log into the file, so that the damage affects all data."""
    store = sqlite3.connect(path)
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def test_the_search_texts_are_in_memory_where_no_file_can_be_written(root, memory):
    (root / "cache").write_text("no folder")

    assert recalled(memory, "quagga one") == {"quagga one", "quagga two", f"quagga {SECRET}"}
    record(memory, "okapi")
    assert recalled(memory, "okapi") == {"okapi"}
    assert (root / "cache").read_text() == "no folder"


def test_a_redaction_removes_every_byte_of_the_text_for_all_processes(root, memory):
    with open_root(root) as other:
        assert recalled(other, SECRET) == recalled(memory, SECRET) == {f"quagga {SECRET}"}
        assert SECRET.encode() in cached_bytes(root)
        plan = memory.maintenance.plan("p", None, texts=[SECRET])
        memory.maintenance.redact(plan, agent="me", reason="a password")
        assert SECRET.encode() not in cached_bytes(root)

        assert recalled(other, SECRET) == recalled(memory, SECRET) == set()
        assert recalled(other, "quagga") == {"quagga one", "quagga two"}
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        (1, "damage of the journal was quarantined"),
        (-1, "commits were quarantined, or another branch was checked out"),
    ],
)
def test_a_quarantine_is_the_reason_for_which_the_search_file_is_built_again_and_spares_the_vectors(
    root, memory, which, reason
):
    with jidomem.open(root, project="p", embedder=ToyEmbedder()) as other:
        recalled(other, "quagga")
    memory.close()
    vectors = {path: path.read_bytes() for path in (root / "cache" / "vectors").rglob("*") if path.is_file()}
    path = sorted((root / "projects" / "p" / "memory").glob("*.ttl"))[which]
    path.write_bytes(path.read_bytes()[:100])

    with open_root(root) as after:
        after.maintenance.quarantine(Stream("p"), path.name, agent="me", reason="torn")
        assert len(recalled(after, "quagga")) == 2
        assert after.texts.status(Stream("p"))["made_because"] == reason
    assert vectors
    assert {*vectors} <= {*(root / "cache" / "vectors").rglob("*")}


def test_a_merged_redaction_removes_the_text_from_the_search_file(root, memory, tmp_path):
    recalled(memory, SECRET)
    memory.close()
    shutil.copytree(root / "projects", tmp_path / "elsewhere" / "projects")
    with open_root(tmp_path / "elsewhere") as elsewhere:
        plan = elsewhere.maintenance.plan("p", None, texts=[SECRET])
        elsewhere.maintenance.redact(plan, agent="me", reason="a password")
    shutil.rmtree(root / "projects")
    shutil.copytree(tmp_path / "elsewhere" / "projects", root / "projects")
    assert SECRET.encode() in cached_bytes(root)

    with open_root(root) as after:
        assert recalled(after, SECRET) == set()
        assert recalled(after, "quagga") == {"quagga one", "quagga two"}
        assert after.texts.status(Stream("p"))["made_because"] == "a text was redacted in the journal"
    assert SECRET.encode() not in cached_bytes(root)


@pytest.mark.parametrize(
    "count", [lambda reader: reader.counted_at_once("counts", "p"), lambda reader: reader.ask("counts", project="p")]
)
def test_a_count_that_discards_a_damaged_file_records_the_reason_in_its_status(root, memory, count):
    recalled(memory, "quagga")
    memory.close()
    written_out(cache(root))
    nonsense(cache(root))

    with open_root(root) as counting:
        count(counting.reader)

    with open_root(root) as after:
        assert after.texts.status(Stream("p"))["made_because"].startswith("it was damaged: ")
        assert len(recalled(after, "quagga")) == 3
        assert after.texts.status(Stream("p"))["made_because"].startswith("it was damaged: ")


def read_under(root, memory, digest, order, use, *more):
    """What *use* reads from a file with the list *order*, as of a version with only this one and *more*."""
    source = SimpleNamespace(orders=lambda: [order, *more], orders_digest=lambda: digest)
    with closing(search_index.Texts(root, memory.journal, memory.index, memory.catch_up, source)) as texts:
        return texts.read(Stream("p"), use)


def page(order, text=None):
    return lambda file: file.projection.page(order, "", FOREVER, True, 10, text=text)


def test_lists_are_refilled_for_a_changed_definition_and_kept_for_a_changed_digest(root, memory):
    facts = memory.playbook.get("facts").list_order
    newest = memory.playbook.get("timeline").list_order._replace(pattern=f"{facts.pattern} ; jido:recordedAt ?recorded")

    newest = newest._replace(variable=facts.variable)
    assert len(read_under(root, memory, "1", facts, page(facts))) == 3
    assert len(read_under(root, memory, "2", newest, page(newest))) == 3  # another definition of the list
    read_under(root, memory, "2", newest, lambda file: [*file.ask("DELETE FROM listed")])
    assert read_under(root, memory, "3", newest, page(newest)) == []  # the same under another digest


def test_the_list_of_a_former_definition_is_deleted_with_its_rows_and_texts(root, memory):
    facts, about = (memory.playbook.get(name).list_order for name in ("facts", "facts-about"))
    later = about._replace(pattern=f"{about.pattern} ")
    assert len(read_under(root, memory, "1", about, page(about, "quagga two"), later)) == 1

    def rows(file):
        """How many lists, rows of lists, texts, and texts found by their trigrams there are."""
        tables = ("list", "listed", "list_text", """gram WHERE gram MATCH '"qua" AND "uag"'""")
        return [number for table in tables for (number,) in file.ask(f"SELECT COUNT(*) FROM {table}")]

    assert read_under(root, memory, "1", about, rows, later) == [2, 6, 6, 6]
    assert read_under(root, memory, "2", later, rows) == [1, 3, 3, 3]
    assert read_under(root, memory, "2", later, page(about)) is None
    assert len(read_under(root, memory, "2", later, page(later, "quagga two"))) == 1
    assert read_under(root, memory, "3", facts, rows) == [1, 3, 0, 0]
    assert len(read_under(root, memory, "4", about, page(about, "quagga two"))) == 1


def test_the_search_file_follows_a_switch_of_the_branch(root, memory, tmp_path):
    shutil.copytree(root / "projects", tmp_path / "before")
    record(memory, "quagga on a branch")
    assert "quagga on a branch" in recalled(memory, "quagga")
    memory.close()
    shutil.rmtree(root / "projects")
    shutil.copytree(tmp_path / "before", root / "projects")

    with open_root(root) as after:
        assert recalled(after, "quagga branch") == {"quagga one", "quagga two", f"quagga {SECRET}"}
        record(after, "okapi")
        assert recalled(after, "okapi") == {"okapi"}


def test_a_damaged_commit_is_found_once_restored(root, memory):
    file = next(path for path in root.rglob("*.ttl") if b"quagga two" in path.read_bytes())
    whole = file.read_bytes()
    memory.close()
    file.write_bytes(whole[:50])
    with open_root(root) as damaged:
        assert "quagga two" not in recalled(damaged, "quagga")
        file.write_bytes(whole)
        assert "quagga two" in recalled(damaged, "quagga")
    with open_root(root) as after:
        assert "quagga two" in recalled(after, "quagga")


def test_a_write_during_an_update_of_the_search_file_causes_no_rebuild(root, memory, monkeypatch):
    identity = memory.texts.read(Stream("p"), lambda file: file.metadata("identity"))
    record(memory, "quagga three")
    read, pending = FileJournal.read, iter(["quagga four"])

    def and_write(journal, stream, after=None, **more):
        commits = [*read(journal, stream, after, **more)]
        with open_root(root) as other:
            record(other, *[summary for summary in pending if journal is memory.journal])
        return iter(commits)

    monkeypatch.setattr(FileJournal, "read", and_write)

    assert "quagga three" in recalled(memory, "quagga")
    assert "quagga four" in recalled(memory, "quagga")
    assert memory.texts.read(Stream("p"), lambda file: file.metadata("identity")) == identity


def test_a_bounded_read_during_a_long_update_is_refused_and_later_complete(memory, monkeypatch):
    def count(file):
        return next(file.ask("SELECT COUNT(*) FROM memory"))[0]

    memory.catch_up("p")
    monkeypatch.setattr(search_index, "MAX_AWAITED", 2)
    with pytest.raises(Busy, match="the index for lists and searches of p is being built") as refusal:
        memory.texts.read_soon(Stream("p"), count)
    record(memory, "quagga four")
    while True:
        with suppress(Busy):
            memories = memory.texts.read_soon(Stream("p"), count)
            break

    assert refusal.value.code == "index_behind"
    assert memories == memory.texts.read(Stream("p"), count) == 4


def test_a_bounded_read_waits_for_a_short_update(memory):
    assert memory.texts.read_soon(Stream("p"), lambda file: file.metadata("memories")) == 3


def test_evidence_shared_by_two_memories_finds_both(memory):
    for summary in ("okapi one", "okapi two"):
        memory.writer.submit_intent("p", intent(summary=summary, evidence=["the lynx report"]))
        assert summary in recalled(memory, "lynx")
    assert recalled(memory, "lynx") == {"okapi one", "okapi two"}


def test_an_update_killed_halfway_is_continued_by_the_next_process(root, memory):
    program = (
        "import os, signal, sys\nimport jidomem\nfrom jidomem.index import follower\n"
        "from jidomem.index.search_tables import SearchIndexReader\n"
        "follower.STEP, put, done = 1, SearchIndexReader.put, []\n"
        "def killed(self, documents):\n"
        "    put(self, documents)\n    done.append(1)\n"
        f"    if len(done) == int(sys.argv[2]): os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        "SearchIndexReader.put = killed\njidomem.open(sys.argv[1], project='p').recall('quagga')\n"
    )  # fmt: skip
    for steps in (1, 2, 2):
        killed = subprocess.run([sys.executable, "-c", program, root, str(steps)], check=False)
        assert killed.returncode == -signal.SIGKILL
    record(memory, "okapi")
    assert recalled(memory, "quagga") == {"quagga one", "quagga two", f"quagga {SECRET}"}
    assert recalled(memory, "okapi") == {"okapi"}


def test_concurrent_processes_recall_every_recorded_memory(root):
    program = (
        "import sys, jidomem\n"
        "with jidomem.open(sys.argv[1], project='p', wait=60) as memory:\n"
        "    for n in range(6):\n"
        "        kept = memory.writer.remember('p', f'okapi {sys.argv[2]} number {n}').iri\n"
        "        assert kept in {hit.id for hit in memory.recall('okapi', limit=1000).entries}, (n, kept)\n"
        "        assert len(memory.recall(f'okapi {sys.argv[2]}', limit=1000).entries) >= n + 1\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, root, f"w{n}"]) for n in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    with open_root(root) as memory:
        assert len(recalled(memory, "okapi")) == 18


def test_concurrent_writes_cause_no_rebuild_of_the_search_file(tmp_path):
    stopped = threading.Event()
    with open_root(tmp_path / ".jidomem") as memory:
        record(memory, "first")
        assert recalled(memory, "first") == {"first"}

        def write(name):
            number = 0
            while not stopped.is_set():
                record(memory, f"{name} {number}")
                number += 1

        threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                assert "first" in recalled(memory, "first")
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

        assert memory.texts.status(Stream("p"))["made_because"] == "there was none"
        assert recalled(memory, "first") >= {"first"}


def test_a_search_file_ahead_of_the_index_of_a_process_is_not_rebuilt(root, memory, monkeypatch):
    assert len(recalled(memory, "quagga")) == 3
    with open_root(root) as other:
        record(other, "quagga four", "quagga five")
        assert len(recalled(other, "quagga")) == 5
        number = cache(root).stat().st_ino
        monkeypatch.setattr(memory.texts, "_catch_up", lambda project: None)  # as if just updated

        memory.texts.read(Stream("p"), lambda file: None)
        assert cache(root).stat().st_ino == number
        monkeypatch.undo()
        assert len(recalled(memory, "quagga")) == 5


def test_the_tables_of_a_search_file_are_made_once_and_copied_to_further_files(tmp_path, monkeypatch):
    statements, connect = [], sqlite3.connect

    def traced(*arguments, **options):
        store = connect(*arguments, **options)
        store.set_trace_callback(statements.append)
        return store

    def tables(name):
        with jidomem.open(tmp_path / name, project="p") as memory:
            memory.writer.submit_intent("p", intent(summary=name))
            assert [entry.content for entry in memory.recall(name).entries] == [name]
        with closing(connect(tmp_path / name / "cache" / "text" / "p.sqlite")) as store:
            assert store.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            return store.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()

    first = tables("first")
    monkeypatch.setattr(sqlite3, "connect", traced)
    second = tables("second")

    assert first == second != []
    assert [each for each in statements if each.startswith("CREATE") and "passage" in each] == []
