"""A root that was moved or removed, by hand or by git, is refused while it is open, and not created again."""

import os
import re
import shlex
import shutil
import subprocess

import pytest
from click.testing import CliRunner
from conftest import files, intent

import jidomem
from jidomem.errors import Failed, MemoryMissing
from jidomem.records.entry import Entry, WriteRequest
from jidomem.runtime.location import init
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

IDENTITY = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
METHODS = ("checkout", "move", "remove")


def git(folder, *words):
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, check=True)


def commit_all(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "on")


def build(folder):
    """Make a repository with the branches `without` a memory and `main`, checked out, with one."""
    folder.mkdir()
    (folder / "README").write_text("a project")
    git(folder, "init", "-q", "-b", "without")
    commit_all(folder)
    git(folder, "checkout", "-q", "-b", "main")
    with jidomem.open(init(folder, "p")) as memory:
        record(memory, "the queue has seven workers")
    commit_all(folder)


@pytest.fixture
def repository(tmp_path, copy_built):
    return copy_built(build, tmp_path / "repository")


def record(memory, summary):
    return memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))


def remove_root(folder, method):
    """Remove the root in *folder*, and return a function that restores it."""
    moved = folder.with_name("elsewhere")
    if method == "checkout":
        git(folder, "checkout", "-q", "without")
        return lambda: git(folder, "checkout", "-q", "main")
    if method == "move":
        folder.rename(moved)
        return lambda: moved.rename(folder)
    shutil.copytree(folder / ".jidomem", moved)
    shutil.rmtree(folder / ".jidomem")
    return lambda: shutil.copytree(moved, folder / ".jidomem")


#: name -> an operation on an open memory.
OPERATIONS = {
    "remember": lambda memory: record(memory, "the queue has eight workers"),
    "entries written": lambda memory: memory.entry_store("p").write(WriteRequest(Entry(agent_id="a", content="x"))),
    "recall": lambda memory: memory.recall("queue", "p"),
    "briefing": lambda memory: memory.briefing("p"),
    "ask": lambda memory: memory.ask("facts", project="p"),
    "check": lambda memory: memory.check("p"),
}


def journal_files(folder):
    return [path for path in files(folder.parent) if path.endswith((".ttl", ".toml"))]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_missing_root_is_neither_read_nor_created_and_is_used_after_its_return(repository, method, operation):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        version = record(memory, "the queue has a limit").version
        commit_all(repository)
        restore = remove_root(repository, method)
        before = journal_files(repository)

        with pytest.raises(MemoryMissing) as refusal:
            OPERATIONS[operation](memory)

        assert refusal.value.code == "memory_missing"
        assert f"{repository}/.jidomem is gone or was moved (it had version {version} of p)" in refusal.value.detail
        assert ("check out the branch that has it" in refusal.value.hint) == (method != "move")
        assert "to begin an empty one there" in refusal.value.hint
        assert journal_files(repository) == before
        assert method == "checkout" or not (repository / ".jidomem").exists()

        restore()
        assert len(memory.recall("queue", "p").entries) == 2
        record(memory, "the queue is back")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_root_that_went_missing_before_its_first_read_is_not_begun_anew(repository, method, operation):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        restore = remove_root(repository, method)
        before = journal_files(repository)

        with pytest.raises(MemoryMissing, match="it had the memory of p"):
            OPERATIONS[operation](memory)

        assert journal_files(repository) == before
        restore()
        assert len(memory.recall("queue", "p").entries) == 1


@pytest.mark.parametrize("method", ["move", "remove"])
def test_working_memory_of_a_missing_root_is_refused(repository, method):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        record(memory, "the queue has a limit")
        agent = memory.agent("a", project="p")
        agent.update(lambda current: current)
        remove_root(repository, method)

        with pytest.raises(MemoryMissing):
            agent.update(lambda current: current)
        for read in (agent.get, memory.agents, lambda: memory.os("a").tiers, memory.os_agents):
            with pytest.raises(MemoryMissing):
                read()
        assert not (repository / ".jidomem").exists()


@pytest.mark.parametrize("method", METHODS)
def test_servers_refuse_a_missing_root_with_its_code(repository, method):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        client, session = create_app(memory).test_client(), ClientSession(memory, "agent")
        assert client.get("/readyz").status_code == 200
        record(memory, "the queue has a limit")
        commit_all(repository)
        remove_root(repository, method)
        before = journal_files(repository)

        for tool, arguments in (
            ("remember", {"text": "the queue has eight workers"}),
            ("recall", {"query": "queue"}),
            ("briefing", {}),
            ("status", {}),
        ):
            answer = call(next(each for each in TOOLS if each.name == tool), session, arguments)
            assert (answer.is_error, answer.values["code"]) == (True, "memory_missing"), tool
        answers = [
            client.post("/projects/p/intents", json=intent(summary="x", evidence=[])),
            client.post("/projects/p/recall", json={"query": "queue"}),
            client.get("/projects/p/briefing"),
        ]
        assert [(answer.status_code, answer.json["code"]) for answer in answers] == 3 * [(503, "memory_missing")]
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json["unwritable"]["code"]) == (503, "memory_missing")
        assert journal_files(repository) == before


def test_a_branch_with_an_empty_root_gets_its_first_write(repository):
    git(repository, "checkout", "-q", "without")
    init(repository, "p")
    commit_all(repository)
    git(repository, "checkout", "-q", "main")
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        record(memory, "the queue has a limit")
        commit_all(repository)
        git(repository, "checkout", "-q", "without")

        assert not memory.recall("queue", "p").entries
        assert record(memory, "the queue has eight workers").version.position == 1


@pytest.mark.parametrize(
    ("method", "where"), [("remove", "deleted here: .* HEAD -- "), ("checkout", "on the branch main: .* main -- ")]
)
def test_a_memory_that_git_has_and_the_checkout_lacks_is_begun_anew_by_init_only(repository, method, where):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        record(memory, "the queue has a limit")
    commit_all(repository)
    remove_root(repository, method)
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        with pytest.raises(Failed) as refusal:
            record(memory, "the queue has eight workers")
        text = f"{refusal.value.detail}: {refusal.value.hint}"
        assert (refusal.value.code, bool(re.search(where, text))) == ("memory_missing", True)
        with pytest.raises(Failed, match="lacks the memory"):  # working memory begins none either
            memory.agent("a", project="p").update(lambda current: current)
        assert not (repository / ".jidomem" / "config.toml").exists()
        init(repository, "p")
        assert record(memory, "the queue has eight workers").version.position == 1


def test_commands_name_the_memory_that_a_sparse_checkout_leaves_out(repository, tmp_path, monkeypatch):
    (repository / "src").mkdir()
    (repository / "src" / "a.py").write_text("x")
    commit_all(repository)
    git(repository, "clone", "-q", "--sparse", str(repository), str(tmp_path / "clone"))
    git(tmp_path / "clone", "sparse-checkout", "set", "src")
    monkeypatch.chdir(tmp_path / "clone" / "src")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    for words in (["guard", "a.py"], ["recall", "queue"], ["remember", "note"], ["init", ".."], ["status"]):
        done = CliRunner().invoke(cli, words)
        assert "left out by this sparse checkout" in done.stderr, done.output
        assert done.exit_code == (words[0] != "guard")
    command = done.stderr.partition("bring it here: ")[2].strip()
    subprocess.run(shlex.split(command), check=True)
    assert "seven workers" in CliRunner().invoke(cli, ["recall", "queue"]).stdout
