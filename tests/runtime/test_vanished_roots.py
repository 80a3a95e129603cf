"""A memory whose folder was moved, removed, or taken away by git is refused while it is open, and not begun anew."""

import os
import shutil
import subprocess

import pytest
from conftest import files, intent

import jidomem
from jidomem.errors import MemoryMissing
from jidomem.records.entry import Entry, WriteRequest
from jidomem.runtime.location import init
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS

NAMED = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WAYS = ("checkout", "move", "remove")


def git(folder, *words):
    environment = {**os.environ, **NAMED, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, check=True)


def commit_all(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "on")


@pytest.fixture
def repository(tmp_path):
    """A repository with the branch `without` of a memory, and `main`, which has one; `main` is checked out."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "README").write_text("a project")
    git(folder, "init", "-q", "-b", "without")
    commit_all(folder)
    git(folder, "checkout", "-q", "-b", "main")
    with jidomem.open(init(folder, "p")) as memory:
        keep(memory, "the queue has seven workers")
    commit_all(folder)
    return folder


def keep(memory, summary):
    return memory.writer.submit_intent("p", intent(summary=summary, evidence=[]))


def vanish(folder, way):
    """Take the root in *folder* away, and return what brings it back."""
    kept = folder.with_name("elsewhere")
    if way == "checkout":
        git(folder, "checkout", "-q", "without")
        return lambda: git(folder, "checkout", "-q", "main")
    if way == "move":
        folder.rename(kept)
        return lambda: kept.rename(folder)
    shutil.copytree(folder / ".jidomem", kept)
    shutil.rmtree(folder / ".jidomem")
    return lambda: shutil.copytree(kept, folder / ".jidomem")


#: By its name, what is done with an open memory.
DOORS = {
    "remember": lambda memory: keep(memory, "the queue has eight workers"),
    "entries written": lambda memory: memory.entry_store("p").write(WriteRequest(Entry(agent_id="a", content="x"))),
    "recall": lambda memory: memory.recall("queue", "p"),
    "briefing": lambda memory: memory.briefing("p"),
    "ask": lambda memory: memory.ask("facts", project="p"),
    "check": lambda memory: memory.check("p"),
}


def journal_files(folder):
    return [path for path in files(folder.parent) if path.endswith((".ttl", ".toml"))]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("door", DOORS)
def test_a_memory_that_vanished_is_neither_read_nor_begun_anew_and_answers_once_it_is_back(repository, way, door):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        version = keep(memory, "the queue has a limit").version
        commit_all(repository)
        bring_back = vanish(repository, way)
        before = journal_files(repository)

        with pytest.raises(MemoryMissing) as refusal:
            DOORS[door](memory)

        assert refusal.value.code == "memory_missing"
        assert f"{repository}/.jidomem is gone or was moved (it had version {version} of p)" in refusal.value.detail
        assert ("check out the branch that has it" in refusal.value.hint) == (way != "move")
        assert "to begin an empty one there" in refusal.value.hint
        assert journal_files(repository) == before
        assert way == "checkout" or not (repository / ".jidomem").exists()

        bring_back()
        assert len(memory.recall("queue", "p").entries) == 2
        keep(memory, "the queue is back")


@pytest.mark.parametrize("way", ["move", "remove"])
def test_working_memory_of_a_root_that_vanished_is_refused(repository, way):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        keep(memory, "the queue has a limit")
        agent = memory.agent("a", project="p")
        agent.update(lambda held: held)
        vanish(repository, way)

        with pytest.raises(MemoryMissing):
            agent.update(lambda held: held)
        assert not (repository / ".jidomem").exists()


@pytest.mark.parametrize("way", WAYS)
def test_servers_refuse_the_memory_that_vanished_with_its_code(repository, way):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        client, session = create_app(memory).test_client(), ClientSession(memory, "agent")
        assert client.get("/readyz").status_code == 200
        keep(memory, "the queue has a limit")
        commit_all(repository)
        vanish(repository, way)
        before = journal_files(repository)

        for tool, given in (
            ("remember", {"text": "the queue has eight workers"}),
            ("recall", {"query": "queue"}),
            ("briefing", {}),
            ("status", {}),
        ):
            answer = call(next(each for each in TOOLS if each.name == tool), session, given)
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


def test_a_branch_that_has_the_root_without_a_memory_is_begun_by_its_first_write(repository):
    git(repository, "checkout", "-q", "without")
    init(repository, "p")
    commit_all(repository)
    git(repository, "checkout", "-q", "main")
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        keep(memory, "the queue has a limit")
        commit_all(repository)
        git(repository, "checkout", "-q", "without")

        assert not memory.recall("queue", "p").entries
        assert keep(memory, "the queue has eight workers").version.position == 1


def test_a_root_that_vanished_is_begun_anew_by_a_memory_that_is_opened_then(repository):
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        keep(memory, "the queue has a limit")
    vanish(repository, "remove")
    with jidomem.open(repository / ".jidomem", project="p") as memory:
        assert keep(memory, "the queue has eight workers").version.position == 1
