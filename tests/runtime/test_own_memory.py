"""The user's own memory serves every folder without one: folders of one name share no project."""

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
def here(tmp_path, monkeypatch):
    """Make a folder, a repository unless it is *plain*, go there and return it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def go(name, plain=False):
        folder = tmp_path / name
        (folder if plain else folder / ".git").mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)
        return folder

    return go


def found(text="customer"):
    with jidomem.open() as memory:
        try:
            return [hit.content for hit in memory.recall(text).entries]
        except jidomem.NotFound:
            return []


def use(session, name, **given):
    return call(next(tool for tool in TOOLS if tool.name == name), session, given)


@pytest.mark.parametrize("plain", [False, True], ids=["repositories", "folders"])
def test_folders_of_one_name_share_no_memory(here, plain):
    here("p1/app", plain)
    with jidomem.open() as memory:
        assert memory.project == "app"
        memory.remember(SECRET)
    here("p2/app", plain)
    assert found() == []
    with jidomem.open() as memory:
        assert re.fullmatch("app-[0-9a-f]{6}", memory.project)
        memory.remember("Customer B pays at once")
    assert found() == ["Customer B pays at once"]
    here("p1/app", plain)
    assert found() == [SECRET]


def test_a_project_without_an_owner_belongs_to_the_first_folder_that_opens_it(here):
    here("p1/app")
    with jidomem.open() as memory:
        memory.remember(SECRET)
        (memory.settings.root / OWNERS).unlink()  # as an earlier version left it
    here("p2/app")
    assert found() == [SECRET]
    here("p1/app")
    assert found() == []
    with jidomem.open(project="app") as memory:  # it can be named
        assert memory.recall("customer").entries


def test_a_folder_that_was_moved_is_given_its_project_by_naming_it_once(here, tmp_path):
    here("p1/app")
    with jidomem.open() as memory:
        memory.remember(SECRET)
    (tmp_path / "p1").rename(tmp_path / "p2")
    here("p2/app")
    assert found() == []
    jidomem.open(project="app").close()
    assert found() == [SECRET]


def test_two_that_open_one_name_before_it_has_a_memory_do_not_write_into_one(here):
    here("p1/app")
    first = jidomem.open()
    here("p2/app")
    second = jidomem.open()
    first.remember(SECRET)
    for use_it in (second.recall, second.remember):
        with pytest.raises(InvalidRequest, match=r"project app of your own memory, .*, is that of .*/p1/app by now"):
            use_it("Customer B pays at once")
    first.close()
    second.close()
    assert found() == []


def test_a_server_owns_its_project_before_the_first_write(here, tmp_path):
    here("p1/app")
    assert subprocess.run([BIN / "jidomem", "mcp"], stdin=subprocess.DEVNULL, check=True).returncode == 0
    owners = json.loads((tmp_path / "data" / "jidomem" / OWNERS).read_text())
    assert owners == {"app": str(tmp_path / "p1" / "app")}


def test_an_agent_is_told_once_that_it_writes_to_the_own_memory_of_the_user(here, tmp_path):
    here("p1/app")
    with jidomem.open() as memory:
        session = ClientSession(memory, "agent")
        first, second = (use(session, "remember", text=f"the limit is {number}") for number in (10, 20))
        assert any(f"recorded in your own memory, {tmp_path}/data/jidomem" in text for text in first.values["warnings"])
        assert not second.values["warnings"]
        assert "your own memory" in use(session, "status").values["note"]
    other = here("p2/app")
    with jidomem.open() as memory:
        memory.remember("x")
        note = use(ClientSession(memory, "agent"), "status").values["note"]
        assert f"as project {memory.project}, as app is that of {tmp_path}/p1/app" in note
    jidomem.open(other / ".jidomem").close()


def test_a_file_of_owners_that_is_damaged_is_reported(here):
    here("p1/app")
    with jidomem.open() as memory:
        memory.remember(SECRET)
        path = memory.settings.root / OWNERS
    path.write_text("{")
    with pytest.raises(jidomem.JidomemError, match=r"folders.json cannot be read") as refusal:
        jidomem.open()
    assert "mv" in refusal.value.hint
