"""The memory of the user serves every folder without one: folders of one name share no project."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.runtime.settings import OWNERS
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS

BIN = Path(sys.executable).parent
SECRET = "Customer A pays within 90 days"


@pytest.fixture
def enter_folder(tmp_path, monkeypatch):
    """Return a function that creates a folder, a repository unless *plain*, changes to it and returns it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def enter(name, plain=False):
        folder = tmp_path / name
        (folder if plain else folder / ".git").mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)
        return folder

    return enter


def recalled(text="customer"):
    with jidomem.open() as memory:
        try:
            return [hit.content for hit in memory.recall(text).entries]
        except jidomem.NotFound:
            return []


def call_tool(session, name, **arguments):
    return call(next(tool for tool in TOOLS if tool.name == name), session, arguments)


@pytest.mark.parametrize("plain", [False, True], ids=["repositories", "folders"])
def test_folders_of_one_name_share_no_memory(enter_folder, plain):
    enter_folder("p1/app", plain)
    with jidomem.open() as memory:
        assert memory.project == "app"
        memory.remember(SECRET)
    enter_folder("p2/app", plain)
    assert recalled() == []
    with jidomem.open() as memory:
        assert re.fullmatch("app-[0-9a-f]{6}", memory.project)
        memory.remember("Customer B pays at once")
    assert recalled() == ["Customer B pays at once"]
    enter_folder("p1/app", plain)
    assert recalled() == [SECRET]


def test_a_project_without_an_owner_is_assigned_to_the_first_folder_that_opens_it(enter_folder):
    enter_folder("p1/app")
    with jidomem.open() as memory:
        memory.remember(SECRET)
        (memory.settings.root / OWNERS).unlink()  # as in an earlier version
    enter_folder("p2/app")
    assert recalled() == [SECRET]
    enter_folder("p1/app")
    assert recalled() == []
    with jidomem.open(project="app") as memory:  # the project is accessible by its name
        assert memory.recall("customer").entries


def test_a_moved_folder_regains_its_project_by_naming_it_once(enter_folder, tmp_path):
    enter_folder("p1/app")
    with jidomem.open() as memory:
        memory.remember(SECRET)
    (tmp_path / "p1").rename(tmp_path / "p2")
    enter_folder("p2/app")
    assert recalled() == []
    jidomem.open(project="app").close()
    assert recalled() == [SECRET]


def test_two_folders_of_one_name_opened_before_the_first_write_do_not_share_a_project(enter_folder):
    enter_folder("p1/app")
    first = jidomem.open()
    enter_folder("p2/app")
    second = jidomem.open()
    first.remember(SECRET)
    for method in (second.recall, second.remember):
        with pytest.raises(InvalidRequest, match=r"project app of your own memory, .*, is that of .*/p1/app by now"):
            method("Customer B pays at once")
    first.close()
    second.close()
    assert recalled() == []


def test_a_server_owns_its_project_before_the_first_write(enter_folder, tmp_path):
    enter_folder("p1/app")
    assert subprocess.run([BIN / "jidomem", "mcp"], stdin=subprocess.DEVNULL, check=True).returncode == 0
    owners = json.loads((tmp_path / "data" / "jidomem" / OWNERS).read_text())
    assert owners == {"app": str(tmp_path / "p1" / "app")}


def test_an_agent_is_told_once_that_it_writes_to_the_memory_of_the_user(enter_folder, tmp_path):
    enter_folder("p1/app")
    with jidomem.open() as memory:
        session = ClientSession(memory, "agent")
        first, second = (call_tool(session, "remember", text=f"the limit is {number}") for number in (10, 20))
        assert any(f"recorded in your own memory, {tmp_path}/data/jidomem" in text for text in first.values["warnings"])
        assert not second.values["warnings"]
        assert "your own memory" in call_tool(session, "status").values["note"]
    other = enter_folder("p2/app")
    with jidomem.open() as memory:
        memory.remember("x")
        note = call_tool(ClientSession(memory, "agent"), "status").values["note"]
        assert f"as project {memory.project}, as app is that of {tmp_path}/p1/app" in note
    jidomem.open(other / ".jidomem").close()


def test_a_damaged_file_of_owners_is_reported(enter_folder):
    enter_folder("p1/app")
    with jidomem.open() as memory:
        memory.remember(SECRET)
        path = memory.settings.root / OWNERS
    path.write_text("{")
    with pytest.raises(jidomem.JidomemError, match=r"folders.json cannot be read") as refusal:
        jidomem.open()
    assert "mv" in refusal.value.hint
