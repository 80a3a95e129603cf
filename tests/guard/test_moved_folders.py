"""Rules about folders and patterns follow a rename by git, and those without a file are reported."""

import json
import subprocess

import pytest
from guard_world import convention, record, repository_at, run


def git(*words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a file in `handlers`; the working directory."""
    repository = repository_at(tmp_path / "repo", monkeypatch)
    (repository / "handlers").mkdir()
    (repository / "handlers" / "a.py").write_text("x = 1\ny = 2\n")
    git("add", "-A")
    git("commit", "-qm", "begin")
    return repository


def found():
    problems = json.loads(run("check", "--json").stdout)["problems"]
    return [(each["severity"], each["message"].partition(": ")[0]) for each in problems]


@pytest.mark.parametrize("place", ["handlers/", "handlers/**", "handlers/*.py"])
def test_a_rule_about_a_folder_follows_it_when_git_renames_it(repository, place):
    record(repository, convention("No print", place, forbidsPattern="print"))
    assert found() == []
    (repository / "web").mkdir()
    git("mv", "handlers", "web/handlers")
    git("commit", "-qm", "move")
    with (repository / "web" / "handlers" / "a.py").open("a") as file:
        file.write("print(1)\n")

    assert run("guard", "web/handlers/a.py").exit_code == 3
    assert found() == [("info", f"{place} is renamed to web/{place}")]


@pytest.mark.parametrize("place", ["handler/**", "{handlers,src}/*.py", "handlers/[a-c].py", "handler/"])
def test_a_place_without_a_file_is_a_warning_at_the_write_and_in_check(repository, place):
    written = run("remember", "No print", "--type", "convention", "--about", place)

    assert f"about names {place}, and " in written.stderr
    assert found() == [("warning", f"{place} is without a file")]


def test_a_place_with_a_file_and_a_text_that_is_no_place_are_no_warning(repository):
    places = ["**", "**/*.py", "src/", "what is next?", "f[x] of y", "https://a.org/*"]
    written = run("remember", "No print", "--type", "convention", *(w for place in places for w in ("--about", place)))

    assert "about names" not in written.stderr
    assert found() == []
