"""A root is moved to another place with its journal, files and working state, into an empty target alone."""

import errno
import json
import os
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner
from conftest import START, decision, files, fixed_sources, intent
from file_log import FileLog
from journal_world import flip_written_bits

import jidomem
from jidomem.base import disk
from jidomem.base.clock import Sources
from jidomem.base.disk import acquire_lock
from jidomem.errors import Failed, InvalidRequest, JournalDamaged, NotFound
from jidomem.extras.servers import journal
from jidomem.extras.servers.addresses import open_log
from jidomem.extras.servers.object_log import Bucket
from jidomem.extras.transfer.endpoints import FolderEnd, LogEnd, copy_streams
from jidomem.extras.transfer.move import backup, migrate, restore
from jidomem.journal import rewrite
from jidomem.journal.journal import FileJournal, Stream
from jidomem.records.policy import PolicyChange
from jidomem_cli.main import cli

MEMORY, HISTORY = Stream("p"), Stream("p", "history")


@pytest.fixture(autouse=True)
def user_config(tmp_path, monkeypatch):
    """An empty configuration of the user, and packs of two commits."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(journal, "COMMITS", 2)
    monkeypatch.setattr(rewrite, "COMMITS", 2)


def open_root(root, minutes=0):
    return jidomem.open(root, project="p", sources=fixed_sources(START + timedelta(minutes=minutes)))


def build(source):
    """Make a root with merged branches, a redaction, a cleared stream, an overlay and working state."""
    branch = source.with_name("branch")
    with open_root(source) as memory:
        memory.writer.submit_intent("p", decision(topic="store"))
        memory.writer.submit_intent("p", intent(summary="the key is hunter2-hunter2"))
    shutil.copytree(source, branch)
    for folder, minutes in ((source, 10), (branch, 20)):
        with open_root(folder, minutes) as memory:
            memory.writer.submit_intent("p", intent(iri=f"urn:m:{minutes}", summary=f"learned in minute {minutes}"))
    shutil.copytree(branch / "projects", source / "projects", dirs_exist_ok=True)
    with open_root(source, 30) as memory:
        plan = memory.maintenance.plan("p", None, texts=["hunter2-hunter2"])
        memory.maintenance.redact(plan, agent="ana", reason="a secret")
        triple = ("<urn:talk:1>", "<http://www.w3.org/2000/01/rdf-schema#label>", '"hello"')
        memory.writer.append("p", "history", [triple])
        memory.long_term("p").clear_graph("history")
        memory.writer.append("p", "history", [triple])
        memory.agent("ana").update(lambda state: state.tasks_add("measure it"))
    (source / "config.toml").write_text('project = "p"\n')
    (source / "queries" / "own").mkdir(parents=True)
    (source / "queries" / "own" / "why.txt").write_text("asked every morning")


@pytest.fixture
def root(tmp_path, copy_built) -> Path:
    """A copy of that root."""
    return copy_built(build, tmp_path / "source")


def journal_of(root):
    """The document of each commit of a root, by its id."""
    journal = FileJournal(root)
    return {stream: {commit.id: commit.data for commit in journal.read(stream)} for stream in journal.streams()}


def test_a_move_copies_commits_files_and_working_state_byte_for_byte(root, tmp_path):
    before = files(root / "projects")

    moved = migrate(str(root), str(tmp_path / "target"))

    assert journal_of(tmp_path / "target") == journal_of(root)
    assert {each.stream: each.extent.commits for each in moved.streams} == {MEMORY: 5, HISTORY: 3}
    assert moved.state == "brought"
    assert not moved.grew
    assert files(root / "projects") == before
    assert (tmp_path / "target" / "config.toml").read_text() == 'project = "p"\n'
    assert (tmp_path / "target" / "queries" / "own" / "why.txt").is_file()
    with open_root(tmp_path / "target", 40) as memory:
        assert memory.journal.damage(MEMORY) == ()
        assert memory.agent("ana").get().spaces["tasks"].data[0]["text"] == "measure it"
        receipt = memory.writer.submit_intent("p", intent(iri="urn:m:40", summary="it goes on there"))
        assert receipt.version.position == 5


def test_many_commits_are_moved_as_packs_without_duplicates(root, tmp_path):
    migrate(str(root), str(tmp_path / "target"))

    names = [path.name for path in (tmp_path / "target" / "projects" / "p" / "memory").glob("*.ttl")]
    assert len([name for name in names if name.startswith("pack-")]) == 2
    assert len(names) == 3


def test_a_move_with_a_falsely_written_pack_stops_and_continues_later(root, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        flip_written_bits(patched)
        with pytest.raises(Failed, match="the bytes read back differ from those written"):
            migrate(str(root), str(tmp_path / "target"))

    assert not list((tmp_path / "target").rglob("pack-*"))
    migrate(str(root), str(tmp_path / "target"))
    assert journal_of(tmp_path / "target") == journal_of(root)


def test_commits_are_moved_as_single_files_into_a_git_repository(root, tmp_path):
    (tmp_path / "repository" / ".git").mkdir(parents=True)

    migrate(str(root), str(tmp_path / "repository" / "target"))

    names = [path.name for path in (tmp_path / "repository" / "target").rglob("*.ttl")]
    assert len(names) == 8
    assert not any(name.startswith("pack-") for name in names)
    assert journal_of(tmp_path / "repository" / "target") == journal_of(root)


def test_an_interrupted_move_continues_and_includes_later_commits_and_redactions(root, tmp_path):
    target = tmp_path / "target"
    folder = target / "projects" / "p"
    stop = iter([False, False, True])

    def progress(size):
        if next(stop):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(str(root), str(target), progress)
    assert len([*folder.rglob("*.ttl")]) == 1

    first = migrate(str(root), str(target))
    with open_root(root, 50) as memory:
        memory.writer.submit_intent("p", intent(iri="urn:m:50", summary="said later"))
        plan = memory.maintenance.plan("p", None, texts=["learned in minute 10"])
        memory.maintenance.redact(plan, agent="ana", reason="not ours")
    second = migrate(str(root), str(target))

    assert [each.came for each in first.streams] == [1, 5]
    assert journal_of(target) == journal_of(root)
    assert not any(b"minute 10" in data for data in files(folder).values())
    assert second.state == "brought"
    assert [each.came for each in migrate(str(root), str(target)).streams] == [0, 0]


def manifest(file):
    """The files in the manifest of a backup except the working state, whose pages differ in a new file."""
    with tarfile.open(file) as tar:
        content = json.load(tar.extractfile("manifest.json"))
    return {name: entry for name, entry in content["files"].items() if not name.startswith(("state/", ".git"))}


def test_a_move_around_all_kinds_of_places_returns_the_same_root(root, tmp_path, postgres, bucket):
    places = [str(root), postgres.address(), bucket, str(tmp_path / "back")]

    moves = [migrate(*pair) for pair in pairwise(places)]
    for number, place in enumerate(places):
        backup(place, tmp_path / f"{number}.tar")

    assert len({tuple(each.extent for each in moved.streams) for moved in moves}) == 1
    first, *others = [manifest(tmp_path / f"{number}.tar") for number in range(len(places))]
    assert others == [first, first, first]
    with open_root(tmp_path / "back") as memory:
        assert memory.agent("ana").get().spaces["tasks"].data[0]["text"] == "measure it"
    assert journal_of(tmp_path / "back") == journal_of(root)
    for name in ("config.toml", ".gitignore", ".gitattributes"):  # otherwise git would track its working memory
        assert (tmp_path / "back" / name).read_bytes() == (root / name).read_bytes()


def test_a_continued_move_redacts_in_the_target_log(root, tmp_path):
    log = FileLog(str(tmp_path / "log"))
    copy_streams(FolderEnd(root), LogEnd(log))
    with open_root(root, 50) as memory:
        plan = memory.maintenance.plan("p", None, texts=["learned in minute 10"])
        memory.maintenance.redact(plan, agent="ana", reason="not ours")
    log.put("checkpoints/newest.json", b"{}")  # made by a server in between

    moved = copy_streams(FolderEnd(root), LogEnd(log))

    assert log.names("checkpoints/") == []
    documents = {entry.commit: entry.document for entry in log.read(MEMORY)}
    assert documents == journal_of(root)[MEMORY]
    assert [each.came for each in moved] == [0, 2]
    assert not any(b"minute 10" in document for document in documents.values())


def test_a_move_into_a_log_with_another_writer_is_refused(root, tmp_path):
    log, other = FileLog(str(tmp_path / "log")), FileLog(str(tmp_path / "log"))

    def while_another_writes():
        first, second, *_ = FolderEnd(root).commits(MEMORY)
        yield first
        other.append(MEMORY, 1, "f" * 64, b"something else")
        yield second

    with pytest.raises(InvalidRequest, match=r"another process writes to .* from its number 1 on"):
        LogEnd(log).add(MEMORY, while_another_writes())


@pytest.mark.parametrize("kind", ["postgres", "bucket"])
def test_two_concurrent_moves_into_one_log_store_each_commit_once(root, postgres, bucket, kind):
    # C023
    logs = [open_log(postgres.address() if kind == "postgres" else bucket, os.environ) for _ in range(2)]
    first, second = map(LogEnd, logs)

    class Overtaken(FolderEnd):
        def commits(self, stream):
            copy_streams(FolderEnd(root), first)
            return super().commits(stream)

    moved = copy_streams(Overtaken(root), second)

    for each in moved:
        entries = [entry.commit for entry in logs[1].read(each.stream)]
        assert sorted(entries) == sorted(journal_of(root)[each.stream])
        assert each.extent.commits == len(entries)
    for log in logs:
        log.close()


def test_a_duplicate_commit_in_a_log_is_reported_as_damage(root, tmp_path):
    log = FileLog(str(tmp_path / "log"))
    copy_streams(FolderEnd(root), LogEnd(log))
    *_, last = log.read(MEMORY)
    log.append(MEMORY, last.number + 1, last.commit, last.document)

    with pytest.raises(JournalDamaged, match="it occurs twice"):
        copy_streams(FolderEnd(root), LogEnd(log))


def test_a_changed_entry_of_a_log_stops_the_move(root, tmp_path):
    log = FileLog(str(tmp_path / "log"))
    copy_streams(FolderEnd(root), LogEnd(log))
    entry = [*log.read(MEMORY)][2]
    log.rewrite(MEMORY, {entry.commit: entry.document.replace(b"minute", b"hour")})

    with pytest.raises(JournalDamaged, match="p/memory 3"):
        copy_streams(LogEnd(log), FolderEnd(tmp_path / "target"))


def test_a_working_state_used_at_the_target_is_not_replaced(root, tmp_path):
    migrate(str(root), str(tmp_path / "target"))
    with open_root(tmp_path / "target") as memory:
        memory.agent("ana").update(lambda state: state.tasks_add("done there"))

    moved = migrate(str(root), str(tmp_path / "target"))

    assert moved.state == "kept"
    with open_root(tmp_path / "target") as memory:
        assert len(memory.agent("ana").get().spaces["tasks"].data) == 2


@pytest.mark.parametrize("kind", ["folder", "postgres", "bucket"])
def test_a_second_move_replaces_the_working_state_until_it_is_used_at_the_target(
    root, tmp_path, monkeypatch, request, kind
):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    target = str(tmp_path / "target")
    if kind != "folder":
        server = request.getfixturevalue(kind)
        target = server if kind == "bucket" else server.address()
    migrate(str(root), target)
    with open_root(root, 50) as memory:
        memory.agent("ana").update(lambda state: state.tasks_add("and write it down"))
        memory.agent("ben").update(lambda state: state.tasks_add("read it"))

    assert migrate(str(root), target).state == "brought"
    with open_root(target, 60) as memory:
        tasks = [task["text"] for task in memory.agent("ana").get().spaces["tasks"].data]
        assert (tasks, len(memory.agents())) == (["measure it", "and write it down"], 2)
        memory.agent("ben").update(lambda state: state.tasks_add("done there"))
    assert migrate(str(root), target).state == "kept"
    with open_root(target, 70) as memory:
        assert len(memory.agent("ben").get().spaces["tasks"].data) == 2


def test_a_database_is_moved_to_another_and_backed_up_with_the_home_of_neither(root, tmp_path, monkeypatch, postgres):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    first, second = postgres.address(), postgres.address()
    migrate(str(root), first)

    moved = migrate(first, second)

    assert {each.stream: each.extent.commits for each in moved.streams} == {MEMORY: 5, HISTORY: 3}
    assert backup(second, tmp_path / "memory.tar")[0].streams == [
        each._replace(came=each.extent.commits) for each in moved.streams
    ]
    assert not (tmp_path / "home").exists()
    with open_root(second, 50) as memory:
        assert len(list(memory.journal.read(MEMORY))) == 5


@pytest.mark.parametrize("kind", ["folder", "postgres", "bucket"])
def test_a_project_is_moved_beside_others_with_its_history_and_policy_and_back(
    root, tmp_path, monkeypatch, request, kind
):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    target = str(tmp_path / "target")
    if kind != "folder":
        server = request.getfixturevalue(kind)
        target = server if kind == "bucket" else server.address()
    with jidomem.open(target, project="q", sources=fixed_sources(START)) as memory:
        memory.writer.submit_intent("q", intent(iri="urn:m:q", applies_to_project="q"))
        memory.place.change_file("config.toml", lambda before: 'project = "q"\n')
    with open_root(root, 50) as memory:
        memory.writer.agent = "ana"
        memory.writer.change_policy("p", (PolicyChange(agent="ana", grants="Administrator"),), reason="as agreed")
        administrators = memory.writer.authority("p").administrators
    whole = journal_of(root)
    (root / "projects" / "p" / "memory" / "x.ttl.aside").write_text("quarantined")

    with pytest.raises(InvalidRequest, match=r"other content: q/memory") as refused:
        migrate(str(root), target)
    moved = migrate(str(root), target, project="p")

    assert "--project ID root migrate" in refused.value.hint
    assert {each.stream: each.extent.commits for each in moved.streams} == {MEMORY: 6, HISTORY: 3}
    assert (moved.state, moved.tokens, migrate(str(root), target, project="p").streams[0].came) == ("left", 0, 0)
    with open_root(target, 60) as memory:
        assert memory.projects() == ["p", "q"]
        assert memory.writer.authority("p").administrators == administrators
        assert memory.settings.configured == "q"
        memory.writer.submit_intent("p", intent(iri="urn:m:60", summary="written there"))

    back = migrate(target, str(tmp_path / "back"), project="p")

    assert {each.stream: each.extent.commits for each in back.streams} == {MEMORY: 7, HISTORY: 3}
    assert whole[MEMORY].items() <= journal_of(tmp_path / "back")[MEMORY].items()
    assert not (tmp_path / "back" / "projects" / "q").exists()
    assert (tmp_path / "back" / "projects" / "p" / "memory" / "x.ttl.aside").read_text() == "quarantined"
    with pytest.raises(NotFound, match="no project 'z'"):
        migrate(target, str(tmp_path / "other"), project="z")


@pytest.mark.parametrize("kind", ["postgres", "bucket"])
def test_a_missing_source_is_not_made_and_a_root_that_is_gone_is_restored(root, tmp_path, monkeypatch, request, kind):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    server = request.getfixturevalue(kind)
    address = server if kind == "bucket" else server.address()
    for _ in range(2):
        with pytest.raises(NotFound, match="there is no memory root at"):
            migrate(address, str(tmp_path / "target"))
        with pytest.raises(NotFound, match="there is no memory root at"):
            backup(address, tmp_path / "memory.tar")
    schema = address.rpartition("=")[2]
    assert kind == "bucket" or server.sql(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == []
    backup(str(root), tmp_path / "memory.tar")
    open_root(address).close()
    if kind == "bucket":
        store = Bucket(address, os.environ, 10.0)
        store.delete(store.below(""))
    else:
        server.sql(f"DROP SCHEMA {schema} CASCADE")

    restored = restore(tmp_path / "memory.tar", address)

    assert {each.stream: each.extent.commits for each in restored.streams} == {MEMORY: 5, HISTORY: 3}


def test_a_backup_or_restore_of_one_project_is_refused(root, tmp_path):
    for words in (["backup", str(tmp_path / "memory.tar")], ["restore", str(tmp_path / "memory.tar")]):
        named = ["--root", str(root), "--project", "p", "root", *words]
        refused = CliRunner().invoke(cli, named)
        assert (refused.exit_code, "--project does not apply" in refused.stderr) == (2, True)
    assert not (tmp_path / "memory.tar").exists()


def test_tokens_are_moved_with_a_root_and_absent_from_backups(root, tmp_path, monkeypatch, postgres):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    target = postgres.address()
    with open_root(root, 50) as memory:
        first = memory.place.keyring().issue("ana", "agent", ["p"], Sources())
        assert migrate(str(root), target).tokens == 1
        second = memory.place.keyring().issue("ben", "curator", ["p"], Sources())
        memory.place.keyring().revoke(first[1].id)

    moved = migrate(str(root), target)
    returned = migrate(target, str(tmp_path / "back"))
    backup(target, tmp_path / "one.tar")
    restored = tmp_path / "restored"
    restore(tmp_path / "one.tar", str(restored))

    assert (moved.tokens, moved.other_tokens, returned.tokens) == (1, 1, 2)
    for place, known in ((target, True), (tmp_path / "back", True), (restored, False)):
        with jidomem.open(place, project="p") as memory:
            ring = memory.place.keyring()
            tokens = [ring.find(secret) for secret, _ in (first, second)]
            assert [each is not None and each.agent for each in tokens] == ([*("ana", "ben")] if known else [False] * 2)
    data = (tmp_path / "one.tar").read_bytes()
    assert not any(text.encode() in data for secret, token in (first, second) for text in (secret, token.digest))


def test_a_root_with_revoked_tokens_still_needs_tokens_after_a_move(root, tmp_path):
    with open_root(root, 50) as memory:
        ring = memory.place.keyring()
        ring.revoke(ring.issue("ana", "agent", ["p"], Sources())[1].id)

    migrate(str(root), str(tmp_path / "there"))

    with jidomem.open(tmp_path / "there", project="p") as memory:
        assert memory.place.keyring().is_needed


@pytest.mark.parametrize("content", ["commit", "stream", "file"])
def test_a_target_with_other_content_is_refused_and_unchanged(root, tmp_path, content):
    target = tmp_path / "target"
    if content == "file":
        target.mkdir()
        (target / "config.toml").write_text('project = "q"\n')
    else:
        with open_root(target, 60) as memory:
            memory.writer.submit_intent(
                "p" if content == "commit" else "q", intent(applies_to_project="p" if content == "commit" else "q")
            )
    before = files(target / "projects")

    with pytest.raises(InvalidRequest, match="has other content") as refusal:
        migrate(str(root), str(target))

    assert refusal.value.hint.startswith("name an empty place")
    assert ("--project ID root migrate" in refusal.value.hint) == (content != "commit")
    assert files(target / "projects") == before


def test_damage_stops_a_move_and_an_invalid_source_is_refused(root, tmp_path):
    victim = next(
        path for path in (root / "projects" / "p" / "memory").glob("*.ttl") if b"minute 10" in path.read_bytes()
    )
    victim.write_bytes(victim.read_bytes().replace(b"minute 10", b"minute 11"))

    with pytest.raises(JournalDamaged, match=victim.name):
        migrate(str(root), str(tmp_path / "target"))
    with pytest.raises(NotFound, match="no memory root"):
        migrate(str(tmp_path / "nowhere"), str(tmp_path / "target"))
    with pytest.raises(InvalidRequest, match="is source and target"):
        migrate(str(root), str(root))


def test_a_backup_is_reproducible_and_restored_to_an_equal_root(root, tmp_path):
    first, digest = backup(str(root), tmp_path / "one.tar")
    second_digest = backup(str(root), tmp_path / "two.tar")[1]

    restored = restore(tmp_path / "one.tar", str(tmp_path / "target"))

    assert digest == second_digest
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert [each.extent for each in restored.streams] == [each.extent for each in first.streams]
    assert journal_of(tmp_path / "target") == journal_of(root)
    with open_root(tmp_path / "target") as memory:
        assert memory.agent("ana").get().spaces["tasks"].data[0]["text"] == "measure it"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_backup_unpacked_by_hand_is_a_root(root, tmp_path):
    backup(str(root), tmp_path / "one.tar")

    with tarfile.open(tmp_path / "one.tar") as tar:
        tar.extractall(tmp_path / "by-hand", filter="data")

    assert journal_of(tmp_path / "by-hand") == journal_of(root)


@pytest.mark.parametrize("place", ["a document", "the manifest", "the end"])
def test_a_changed_backup_is_refused_before_any_write(root, tmp_path, place):
    backup(str(root), tmp_path / "one.tar")
    data = (tmp_path / "one.tar").read_bytes()
    changed = {
        "a document": data.replace(b"minute 10", b"minute 11"),
        "the manifest": data.replace(b'"commits": 5', b'"commits": 4'),
        "the end": data[: data.rindex(b"# jidomem journal 1")],
    }[place]
    (tmp_path / "one.tar").write_bytes(changed)

    with pytest.raises(Failed, match=r"changed or cut short|does not match its manifest"):
        restore(tmp_path / "one.tar", str(tmp_path / "target"))

    assert changed != data
    assert not (tmp_path / "target").exists()


def test_a_backup_with_a_path_outside_the_root_is_refused(root, tmp_path):
    content = {"form": "jidomem backup 1", "streams": [], "files": {"../outside": [0, ""]}}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with tarfile.open(tmp_path / "one.tar", "w") as tar:
        tar.add(tmp_path / "manifest.json", "manifest.json")

    with pytest.raises(InvalidRequest, match="is not a 'jidomem backup 1'"):
        restore(tmp_path / "one.tar", str(tmp_path / "target"))


def test_the_verbs_report_the_verified_commits(root, tmp_path):
    def run(*args):
        result = CliRunner().invoke(cli, [str(arg) for arg in args])
        assert result.exit_code == 0, result.stderr
        return result

    moved = run("root", "migrate", root, tmp_path / "target")
    backed_up = json.loads(run("--root", tmp_path / "target", "root", "backup", tmp_path / "b.tar", "--json").stdout)
    restored = json.loads(run("--root", tmp_path / "again", "root", "restore", tmp_path / "b.tar", "--json").stdout)

    assert "p/memory  5 commits" in moved.stdout
    assert moved.stdout.count("verified") == 2
    assert "8 commits of 2 streams; working state: copied" in moved.stderr
    assert backed_up["streams"] == [{**row, "came": row["commits"]} for row in restored["streams"]]
    assert len(backed_up["manifest"]) == 64


def test_a_backup_during_writes_has_every_commit_with_its_predecessors(root, tmp_path):
    may_stop, written = Event(), list[str]()

    def write():
        with jidomem.open(root, project="p") as memory:
            while not may_stop.is_set() or not written:
                written.append(memory.writer.submit_intent("p", intent(summary=f"said {len(written)}")).commit)

    with jidomem.open(root, project="p") as before, ThreadPoolExecutor(1) as pool:
        known = before.journal.head(MEMORY)
        writer = pool.submit(write)
        while before.journal.head(MEMORY) == known:
            assert not writer.done()
        try:
            backup(str(root), tmp_path / "one.tar")
        finally:
            may_stop.set()
        writer.result()
    restore(tmp_path / "one.tar", str(tmp_path / "target"))

    restored = journal_of(tmp_path / "target")[MEMORY]
    included = [commit for commit in written if commit in restored]
    assert included
    assert included == written[: len(included)]
    assert restored.items() <= journal_of(root)[MEMORY].items()


def modes(root):
    """The modes of all folders, and of all files, of a root."""
    paths = [root, *root.rglob("*")]
    return [{path.stat().st_mode & 0o2777 for path in paths if path.is_dir() == is_dir} for is_dir in (True, False)]


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o2770, 0o755])
@pytest.mark.parametrize("method", ["restored", "migrated"])
def test_a_moved_or_restored_root_keeps_its_permissions(root, tmp_path, method, mode):
    root.chmod(mode)
    if method == "restored":
        backup(str(root), tmp_path / "kept.tar")
        restore(tmp_path / "kept.tar", str(tmp_path / "new" / "there"))
    else:
        migrate(str(root), str(tmp_path / "new" / "there"))

    target = tmp_path / "new" / "there"
    folders, texts = modes(target)
    assert target.stat().st_mode & 0o2777 == mode
    assert {each & 0o777 for each in folders} == {mode & 0o777}
    assert {each & 0o077 for each in texts} == {mode & 0o066}


@pytest.mark.parametrize("recorded", [None, 8, "0777777", "-700", ["0755"]])
def test_a_backup_without_a_mode_is_restored_for_its_user_alone(root, tmp_path, recorded):
    backup(str(root), tmp_path / "kept.tar")
    rewrite_manifest(tmp_path / "kept.tar", lambda manifest: manifest | {"mode": recorded})

    restore(tmp_path / "kept.tar", str(tmp_path / "there"))

    assert (tmp_path / "there").stat().st_mode & 0o7777 == 0o700


def rewrite_manifest(file, change):
    """Write a backup again with another manifest."""
    with tarfile.open(file) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar.getmembers()]
    first, data = members[0]
    members[0] = first, json.dumps(change(json.loads(data))).encode()
    with tarfile.open(file, "w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, BytesIO(data))


def test_a_backup_removes_abandoned_scratch_folders_and_not_those_of_running_ones(root, tmp_path):
    abandoned, running = (
        tmp_path / f".{name}.tar.ab_cd12{end}.jidomem-scratch" for name, end in (("old", "3"), ("now", "4"))
    )
    other = tmp_path / ".kept.jidomem-scratch"
    for folder in (abandoned, running, other):
        (folder / "root").mkdir(parents=True)
        (folder / "root" / "text").write_text("hunter2")
    descriptor = os.open(running, os.O_RDONLY)
    acquire_lock(descriptor)

    result = CliRunner().invoke(cli, ["--root", str(root), "root", "backup", str(tmp_path / "kept.tar")])
    os.close(descriptor)

    assert result.exit_code == 0, result.output
    assert f"removed: {abandoned}" in result.stderr
    assert [abandoned.exists(), running.exists(), other.exists()] == [False, True, True]
    assert sorted(path.name for path in tmp_path.glob(".*")) == sorted([running.name, other.name])


def test_a_full_disk_is_reported_with_the_path_of_the_backup_or_restored_root(root, tmp_path, monkeypatch):
    backup(str(root), tmp_path / "kept.tar")

    def full(descriptor, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(Failed, match="No space left") as backed:
        backup(str(root), tmp_path / "more.tar")
    with pytest.raises(Failed, match="No space left") as restored:
        restore(tmp_path / "kept.tar", str(tmp_path / "there"))

    assert str(tmp_path / "more.tar") in backed.value.detail
    assert str(tmp_path / "there") in restored.value.detail
    for refusal in (backed.value, restored.value):
        assert "submit" not in (refusal.hint or "")
        assert "journal" not in refusal.detail
