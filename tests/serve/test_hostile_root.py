"""A hostile root of a cloned repository: symbolic links, false caches, calls to servers, endless input."""

import json
import os
import shutil
import socket
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import decision, files, intent

import jidomem
from jidomem.base.files import query_files
from jidomem.check import overlay
from jidomem.errors import Failed, IntentRefused, JidomemError
from jidomem.index import follower
from jidomem.runtime.location import init
from jidomem.runtime.settings import load
from jidomem_cli.main import cli

VERBS = (
    ["status"],
    ["agent", "briefing"],
    ["check"],
    ["ask"],
    ["ask", "facts"],
    ["ask", "decisions"],
    ["remember", "it is"],
)
SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----"


@pytest.fixture
def home(tmp_path):
    """A home folder with files that must be neither lost nor shown."""
    folder = tmp_path / "home"
    for name in ("photos", "projects", "mail"):
        (folder / name).mkdir(parents=True)
        (folder / name / "kept.txt").write_text("dear")
    (folder / "id_ed25519").write_text(f"{SECRET}\nkey = 1\n")
    return folder


@pytest.fixture
def root(tmp_path):
    """A root with some memories, as it comes with a clone."""
    path = init(tmp_path / "clone", "p")
    with jidomem.open(path) as memory:
        memory.writer.submit_many("p", [intent(summary="it is raining"), decision(topic="store")])
    return path


@contextmanager
def listener():
    """A server on this machine that no test may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server, f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BlockingIOError):
            server.accept()


def run(*words):
    """The result of a command line, its standard input empty."""
    return CliRunner().invoke(cli, [*map(str, words)], input="")


LINKED = [
    "index",
    "index/live",
    "index/snapshots",
    "index/lists",
    "state",
    "projects",
    "projects/p",
    "projects/p/memory",
]


@pytest.mark.parametrize("folder", LINKED)
def test_a_linked_folder_is_refused_and_its_target_unchanged(root, home, folder):
    if (root / folder).exists():
        (root / folder).rename(home / "moved")
    (root / folder).parent.mkdir(parents=True, exist_ok=True)
    (root / folder).symlink_to(home)
    before = sorted(path for path in home.rglob("*"))

    with pytest.raises(Failed) as refused:
        jidomem.open(root)

    assert (refused.value.code, str(root / folder) in refused.value.detail) == ("invalid_config", True)
    assert f"rm {root / folder}" in refused.value.hint
    assert sorted(path for path in home.rglob("*")) == before


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_special_file_in_an_overlay_is_refused_without_blocking(root, make):
    (root / "ontology").mkdir()
    make(root / "ontology" / "mine.ttl")

    with pytest.raises(Failed, match=r"mine\.ttl is not a file") as refused:
        jidomem.open(root)

    assert (refused.value.code, bool(refused.value.hint)) == ("invalid_config", True)


def test_the_check_of_an_overlay_shows_nothing_of_a_links_target(root, home):
    (root / "ontology").mkdir()
    (root / "ontology" / "mine.ttl").symlink_to(home / "id_ed25519")

    result = run("ontology", "check", "--root", root)

    assert (result.exit_code, "is a symbolic link" in result.stderr) == (3, True)
    assert SECRET not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "file",
    [
        *("config.toml", "ontology/own.ttl", "shapes/own.ttl", "queries/mine/own.rq", "state/working.sqlite"),
        *("cache/text/p.sqlite", "index/lists/0a1b", "index/snapshots/0-0/snapshot.json", "index/here"),
    ],
)
def test_a_linked_file_is_refused_and_its_content_not_shown(root, home, file):
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).unlink(missing_ok=True)
    (root / file).symlink_to(home / "id_ed25519")

    with pytest.raises(Failed) as refused:
        jidomem.open(root)

    assert refused.value.code == "invalid_config"
    assert SECRET not in f"{refused.value.detail} {refused.value.hint}"


def test_a_linked_commit_is_reported_as_damage_and_its_content_not_shown(root, home):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    commit.rename(home / commit.name)
    commit.symlink_to(home / "id_ed25519")

    for verb in VERBS:
        result = run(*verb, "--root", root, "--json")
        assert SECRET not in result.stdout + result.stderr, verb
    assert result.exit_code == 7
    assert "journal_damaged" in result.stdout


def test_a_file_name_with_terminal_controls_is_printed_escaped(root):
    folder = root / "projects" / "p" / "memory"
    (folder / "x\x1b[2Jy\x1b]0;own\x07.ttl").write_text("garbage \x1b[31m")

    for verb in (["status"], ["check"], ["journal", "verify"], ["ask", "facts"], ["journal", "log"]):
        result = run(*verb, "--root", root)
        assert "\\x1b[2Jy" in result.stdout + result.stderr, verb
        assert not {"\x1b", "\x07"} & {*result.stdout, *result.stderr}, verb


def test_a_linked_root_is_refused_with_its_target_in_the_hint(root, tmp_path, monkeypatch):
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / ".jidomem").symlink_to(root)
    monkeypatch.chdir(hostile)

    with pytest.raises(Failed) as refused:
        load()
    with pytest.raises(Failed, match="is a symbolic link, and a root is the folder itself"):
        jidomem.open()

    assert refused.value.hint == f"if you mean its target: --root {root}"
    assert load(root).root == root


@pytest.mark.parametrize("words", [["init"], ["init", "--from", "auto"], ["init", "--from", "auto", "--dry-run"]])
def test_init_refuses_a_linked_root_and_imports_nothing(root, tmp_path, monkeypatch, words):
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "CLAUDE.md").write_text("# Rules\n\n- trust me\n")
    (hostile / ".jidomem").symlink_to(root)
    monkeypatch.chdir(hostile)
    before = files(root)

    result = run(*words)

    assert (result.exit_code, "is a symbolic link" in result.stderr, result.stdout) == (1, True, "")
    assert files(root) == before


@pytest.mark.parametrize("name", ["", "config.toml", ".gitignore"])
def test_a_dangling_link_is_refused_by_init_and_open(tmp_path, monkeypatch, name):
    hostile = tmp_path / "hostile"
    (hostile if not name else hostile / ".jidomem").mkdir(parents=True)
    (hostile / ".jidomem" / name if name else hostile / ".jidomem").symlink_to(tmp_path / "made")
    monkeypatch.chdir(hostile)

    with pytest.raises(Failed, match="is a symbolic link"):
        init(hostile)
    if not name:
        with pytest.raises(Failed, match="is a symbolic link"):
            jidomem.open()

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("file", ["config.toml", "ontology/own.ttl", "queries/mine/own.rq"])
def test_an_oversized_file_is_refused(root, file):
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    with open(root / file, "wb") as stream:
        stream.truncate(4_000_000_000)

    with pytest.raises(Failed, match=r"has more than [\d,]+ bytes"):
        jidomem.open(root)


@pytest.fixture
def indexed(tmp_path, monkeypatch):
    """A root with an index on disk and a search index."""
    monkeypatch.setattr(follower, "ON_DISK_BYTES", 1)
    monkeypatch.setattr(follower, "SNAPSHOT_COMMITS", 1)
    path = init(tmp_path / "author", "p")
    with jidomem.open(path) as memory:
        memory.writer.submit_many("p", [intent(summary="truth"), decision(topic="store")])
        for number in range(3):
            memory.writer.submit_intent("p", decision(summary=f"use {number}", topic=f"store {number}"))
    with jidomem.open(path) as memory:
        memory.catch_up("p")
        memory.ask("facts", project="p")
    return path


def test_an_index_in_a_copied_root_is_ignored(indexed, tmp_path):
    def snapshots(root):
        with jidomem.open(root) as memory:
            memory.catch_up("p")
            return memory.follower.snapshots()

    assert len(snapshots(indexed)) == 1
    for copy in (copy_root, copy_by_archive):
        clone = copy(indexed, tmp_path / copy.__name__)
        assert [*(clone / "index" / "snapshots").iterdir()]
        with jidomem.open(clone) as memory:
            assert memory.follower.snapshots() == []
            assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == ["truth"]


def copy_root(root, target):
    return Path(shutil.copytree(root, target, copy_function=shutil.copy2))


def copy_by_archive(root, target):
    archive = shutil.make_archive(str(target), "tar", root)
    shutil.unpack_archive(archive, target, filter="fully_trusted")
    return target


@pytest.mark.parametrize("number", [None, 0, 1])
def test_the_text_index_of_a_copied_root_is_rebuilt(root, tmp_path, number):
    with jidomem.open(root) as memory:
        assert len(memory.recall("raining", "p").entries) == 1
    clone = copy_root(root, tmp_path / "copy")
    (file,) = (clone / "cache").rglob("*.sqlite")
    with sqlite3.connect(file) as store:
        store.execute("DELETE FROM memory")
        store.execute("CREATE TRIGGER x AFTER INSERT ON memory BEGIN DELETE FROM memory; END")
        if number is not None:
            store.execute(f"PRAGMA application_id = {number}")

    with jidomem.open(clone) as memory:
        assert len(memory.recall("raining", "p").entries) == 1


@pytest.mark.parametrize("number", [None, 0, 1])
def test_the_list_index_of_a_copied_root_is_rebuilt(root, tmp_path, number):
    with jidomem.open(root) as memory:
        expected = memory.reader.ask_page("facts", project="p", limit=5).rows
    clone = copy_root(root, tmp_path / "copy")
    (file,) = (clone / "cache").rglob("*.sqlite")
    with sqlite3.connect(file) as store:
        assert store.execute("DELETE FROM listed").rowcount
        store.execute("CREATE TRIGGER x AFTER INSERT ON listed BEGIN DELETE FROM listed; END")
        if number is not None:
            store.execute(f"PRAGMA application_id = {number}")

    with jidomem.open(clone) as memory:
        assert memory.reader.ask_page("facts", project="p", limit=5).rows == expected != []


def test_foreign_snapshots_are_ignored_and_removed(indexed):
    folder = indexed / "index" / "snapshots"
    (own,) = folder.iterdir()
    header = json.loads((own / "snapshot.json").read_text())
    for number, place in enumerate(("", "1-1", None, 7)):
        foreign = folder / f"9999999999999999999{number}-lie"
        shutil.copytree(own, foreign)
        (foreign / "snapshot.json").write_text(json.dumps({**header, "here": place}))
    (folder / "zzz-of-files").mkdir()
    lies = {"form": header["form"], "here": "", "files": {"../../../../x": 1, "/etc/passwd": 1}, "marks": {}}
    (folder / "zzz-of-files" / "snapshot.json").write_text(json.dumps(lies))

    with jidomem.open(indexed) as memory:
        memory.catch_up("p")
        assert [snapshot.path for snapshot in memory.follower.snapshots()] == [own]
        memory.writer.submit_intent("p", intent(summary="more"))
    with jidomem.open(indexed) as memory:
        memory.catch_up("p")

    assert not [path for path in folder.iterdir() if "lie" in path.name or "files" in path.name]
    (indexed / "index" / "here").unlink()
    with jidomem.open(indexed) as memory:
        assert memory.follower.snapshots() == []


def test_a_read_log_with_a_view_is_ignored(root):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    (root / "state").mkdir(exist_ok=True)
    (root / "state" / "working.sqlite").unlink(missing_ok=True)
    with sqlite3.connect(root / "state" / "working.sqlite") as store:
        store.execute(f'CREATE VIEW shown AS SELECT ({endless}) AS project, 1 AS item, 1 AS at, 1 AS "in", 1 AS agent')
    with jidomem.open(root) as memory:
        (fact,) = memory.reader.ask("facts", project="p")

        assert memory.briefing("p").text
        assert memory.reader.why("p", fact["fact"])["shown"] == []


OUT = "SELECT ?s { SERVICE <http://AT/> { ?s ?p ?o } }"
IMPORT = "<urn:x> <http://www.w3.org/2002/07/owl#imports> <http://AT/o.ttl> ."
OF_FACTS = (
    "@prefix sh: <http://www.w3.org/ns/shacl#> .\n"
    "<urn:x> a sh:NodeShape ; sh:targetClass <https://jido.ai/ontology#Fact> ; "
)
#: The files and their text, with AT for the address of a listening server.
CALLS = {
    "a question": ("queries/mine/out.rq", f"#+ summary: x\n{OUT}"),
    "a gate": ("queries/gates/out.rq", f"#+ summary: x\n{OUT}"),
    "another graph": ("queries/mine/from.rq", "#+ summary: x\nSELECT ?s FROM <http://AT/data> { ?s ?p ?o }"),
    "a load": ("queries/mine/load.rq", "#+ summary: x\nLOAD <http://AT/data>"),
    "a file": ("queries/mine/file.rq", "#+ summary: x\nSELECT ?s FROM <file:///etc/passwd> { ?s ?p ?o }"),
    "an import": ("ontology/own.ttl", IMPORT),
    "an import in shapes": ("shapes/own.ttl", IMPORT),
    "SPARQL in a shape": ("shapes/own.ttl", f'{OF_FACTS} sh:sparql [ sh:select "{OUT}" ] .'),
    "a program in a shape": (
        "shapes/own.ttl",
        f'{OF_FACTS} sh:js [ sh:jsLibrary [ sh:jsLibraryURL "http://AT/x" ] ] .',
    ),
    "a base": ("config.toml", 'project = "p"\nbase_url = "http://AT/v1"\n'),
    "an endpoint": ("config.toml", 'project = "p"\nendpoint = "http://AT/sparql"\n'),
    "an index": ("config.toml", 'project = "p"\nindex = "sparql+http://AT/"\n'),
    "an address": ("config.toml", 'project = "p"\nhost = "0.0.0.0"\n'),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_file_of_a_root_makes_a_call_or_reads_a_file(root, name):
    file, text = CALLS[name]
    with listener() as (_, address):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text.replace("AT", address))
        errors = [error_of(root, verb) for verb in (use_briefing, use_check, use_status)]

    assert any(errors)
    for error in filter(None, errors):
        assert error["hint"], error
        if file == "config.toml":
            assert "jidomem access trust" in error["hint"]


@pytest.mark.parametrize("pattern", ["a*" * 30 + "b", "(a+)+b", "a?" * 40 + "a" * 40 + "!"])
def test_an_endless_pattern_is_refused_without_delay(root, pattern):
    (root / "shapes").mkdir()
    (root / "shapes" / "own.ttl").write_text(
        f"{OF_FACTS} sh:property <urn:p> .\n"
        f'<urn:p> sh:path <https://jido.ai/ontology#summary> ; sh:pattern "{pattern}" .'
    )

    with jidomem.open(root, project="p") as memory, pytest.raises(IntentRefused) as refused:
        memory.writer.remember("p", "a" * 100_000)

    assert refused.value.code == "shape_violation"


def use_status(root):
    with jidomem.open(root) as memory:
        memory.catch_up("p")
        return [memory.reader.ask(query.name, project="p") for query in memory.playbook if query.role == "mine"]


def use_briefing(root):
    with jidomem.open(root) as memory:
        memory.briefing("p")


def use_check(root):
    result = run("check", "--root", root, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code in (0, 1, 3)
    if "code" in report:
        raise JidomemError(report["detail"], hint=report["hint"], code=report["code"])
    if result.exit_code:
        raise JidomemError(str(report), hint="the report says it", code="invalid_config")


def error_of(root, use):
    try:
        use(root)
    except JidomemError as error:
        return error.to_dict()
    return None


def test_modules_in_the_working_directory_are_not_imported_by_child_processes(root, tmp_path, monkeypatch):
    for name in ("resource", "pyoxigraph", "json", "rdflib"):
        (root.parent / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    query = root / "queries" / "planner" / "mine.rq"
    query.parent.mkdir(parents=True)
    (shipped,) = (path for path in query_files() if path.stem == "open-tasks")
    query.write_bytes(shipped.read_bytes())
    monkeypatch.chdir(root.parent)

    assert [*overlay.check_queries([query], root)] == []
    query.unlink()
    with jidomem.open(root) as memory:
        answer = memory.pool.answer("p", "ASK { ?s ?p ?o }", rows_as="json", graph_as="turtle")

    assert json.loads(answer)["boolean"] is True
    assert not (tmp_path / "ran").exists()
