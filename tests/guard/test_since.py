"""The guard in CI: what a branch adds, and what a waiver accepts."""

import json
import subprocess
from datetime import timedelta

import pytest
from guard_world import convention, record, repository_at, run

from jidomem.base.clock import now


def git(*words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository on a branch that changed one file; another one breaks a rule since long; the working directory."""
    repository = repository_at(tmp_path / "repo", monkeypatch)
    (repository / "src" / "old.py").write_text("a = 1\nprint(1)\nb = 2\nc = 3\n")
    record(repository, convention("No print", "src", forbidsPattern="print"))
    git("add", "-A")
    git("commit", "-qm", "begin")
    git("branch", "-m", "trunk")
    git("checkout", "-qb", "work")
    (repository / "src" / "a.py").write_text("x = 2\n")
    git("commit", "-qam", "work")
    return repository


def test_a_rule_that_an_untouched_file_breaks_stops_no_branch(repository):
    assert run("guard", ".", "--format", "github").exit_code == 3
    assert run("guard", "--since", "trunk", "--format", "github").exit_code == 0


def test_what_a_branch_adds_is_stopped_at_its_line_in_a_renamed_file_too(repository):
    git("mv", "src/old.py", "src/new.py")
    git("commit", "-qm", "rename")
    assert run("guard", "--since", "trunk").exit_code == 0
    with (repository / "src" / "new.py").open("a") as file:
        file.write("print(2)\n")
    git("commit", "-qam", "print")

    answer = run("guard", "--since", "trunk", "--format", "github")

    assert answer.exit_code == 3
    assert answer.stdout.startswith("::error file=src/new.py,line=5,title=jidomem guard::line 5 has")
    assert run("guard", "--since", "trunk", "src/a.py").exit_code == 0


def test_what_a_branch_breaks_is_shown_with_the_repairs_that_can_be_committed(repository):
    (repository / "src" / "a.py").write_text("print(2)\n")

    (line,) = run("guard", "--since", "trunk", "--format", "github").stdout.splitlines()
    text = run("guard", "--since", "trunk").stderr
    command = text.partition("matches too much, ")[2].partition(";")[0]

    assert "guard --help" not in text  # an override is local
    assert line.endswith(text.rstrip().rpartition("\n")[2])
    assert 'a waiver with rule = "guard"' in line
    answer = run(*command.replace("PATTERN", "^print$").replace("WHY", "narrower").split()[1:])
    assert answer.exit_code == 0, answer.stderr
    assert run("guard", "--since", "trunk").exit_code == 0


def test_commits_of_the_target_after_the_branch_left_it_are_not_of_the_branch(repository):
    git("checkout", "-q", "trunk")
    (repository / "src" / "old.py").write_text("b = 2\nc = 3\n")
    git("commit", "-qam", "better")
    git("checkout", "-q", "work")

    assert run("guard", "--since", "trunk").exit_code == 0


def test_an_unknown_revision_is_refused(repository):
    answer = run("guard", "--since", "nowhere")
    on_github, as_json = (run("guard", "--since", "nowhere", "--format", form) for form in ("github", "json"))

    assert (answer.exit_code, "git knows no revision 'nowhere'" in answer.stderr) == (2, True)
    assert on_github.stdout.startswith("::error title=unchecked::--since: git knows no revision 'nowhere'")
    assert json.loads(as_json.stdout)["code"] == "invalid_argument"


@pytest.mark.parametrize(
    ("path", "days", "code"), [(None, 1, 0), ("src/old.py", 0, 0), ("src/a.py", 1, 3), (None, -1, 3)]
)
def test_a_waiver_lets_a_file_break_a_rule_until_its_day(repository, path, days, code):
    item = json.loads(run("guard", ".", "--json").stdout)["stops"][0]["iri"]
    day = now().date() + timedelta(days=days)
    named = "" if path is None else f'path = "{path}"\n'
    (repository / ".jidomem" / "baseline.toml").write_text(
        f'[[waiver]]\nrule = "guard"\nitem = "{item[-8:]}"\nreason = "later"\nby = "ana"\nuntil = {day}\n{named}'
    )

    answer = run("guard", ".", "--json")

    assert answer.exit_code == code
    assert [each["path"] for each in json.loads(answer.stdout)["waived"]] == (["src/old.py"] if code == 0 else [])
    assert (f"waived until {day} by ana: later" in answer.stderr) == (code == 0)
    shown = run("guard", ".", "--format", "github").stdout
    assert (f"; a waiver of it ended on {day}" in shown) == (days < 0)
    assert (f"; waived until {day}: later" in shown and "::notice file=src/old.py," in shown) == (code == 0)
    assert run("check").exit_code == (1 if days < 0 else 0)  # an expired waiver is a violation there


def test_annotations_mark_no_rule_as_shown(repository):
    record(repository, convention("Be kind", "src/a.py"))
    run("guard", "src/a.py", "--format", "github", "--session", "s")

    assert "Be kind" in run("guard", "src/a.py", "--session", "s").stdout
