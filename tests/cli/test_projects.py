"""A root with several projects at the command line: how a project is created, and how a misspelt name is handled."""

import json
import re
import shlex
import socket

import pytest
from cli_world import create_repository, run
from conftest import intent

import jidomem


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    folder = create_repository(tmp_path / "repo", monkeypatch)
    (folder / ".jidomem" / "config.toml").write_text('project = "parcel"\n')
    assert run("remember", "API is v1").exit_code == 0
    return folder


def project_names(folder):
    with jidomem.open(folder / ".jidomem") as memory:
        return memory.projects()


@pytest.mark.parametrize(
    "command",
    [
        ("remember", "API is v2"),
        ("submit", "-"),
        ("agent", "session", "start", "s-1"),
        ("mcp",),
        ("serve",),
        ("serve", "--workers", "1"),
    ],
)
def test_a_command_that_writes_refuses_a_project_spelled_like_another(repository, monkeypatch, command):
    document = json.dumps(intent(applies_to_project="parcl"))

    refused = run(*command, "--project", "parcl", stdin=document)
    monkeypatch.setenv("JIDOMEM_PROJECT", "parcl")
    by_environment = run(*command, stdin=document)

    for each in (refused, by_environment):
        assert each.exit_code == 4
        assert "no project 'parcl'" in each.stderr
        assert (
            f"did you mean --project parcel? For a new project: jidomem init {repository} --project parcl"
            in each.stderr
        )
    assert project_names(repository) == ["p", "parcel"]


@pytest.mark.parametrize("named", ["--root", "JIDOMEM_ROOT"])
def test_a_write_to_a_new_root_warns_and_to_a_misspelt_root_is_refused(repository, monkeypatch, named):
    misspelt, new = repository / ".jidomen", repository / "else where"

    def write(root):
        monkeypatch.setenv("JIDOMEM_ROOT", str(root) if named == "JIDOMEM_ROOT" else "")
        return run("remember", "x", *(["--root", root] if named == "--root" else []))

    refused, first, second = write(misspelt), write(new), write(new)

    assert refused.exit_code == 4
    assert f"error: there is no memory root at {misspelt}" in refused.stderr
    assert f"did you mean {repository / '.jidomem'}?" in refused.stderr
    assert not misspelt.exists()
    how = "given" if named == "--root" else named
    assert f"warning: there is no memory root at {new} ({how}): the first write makes it" in first.stderr
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "warning" not in second.stderr


def test_init_makes_the_root_of_a_path_and_its_projects_and_spares_a_folder_of_something_else(repository):
    new, full = repository / "notes", repository / "docs"
    full.mkdir()
    (full / "page.md").touch()

    first, again, other = (run("init", "--root", new, *options) for options in ((), (), ("--project", "kitchen")))
    refused, doubled = run("init", "--root", full), run("init", full, "--root", new)

    assert json.loads(run("init", "--root", repository / "more", "--json").stdout)["project"] == "more"
    assert [each.exit_code for each in (first, again, other, refused, doubled)] == [0, 0, 0, 2, 2]
    assert first.stdout == f"{new}\n"
    assert f'next: jidomem remember --root {new} "what an agent should know"\n' in first.stderr
    assert "it exists already, nothing changed" in again.stderr
    assert f'remember --root {new} --project kitchen "what an agent should know"\n' in other.stderr
    assert (new / "config.toml").exists()
    assert [path.name for path in full.iterdir()] == ["page.md"]
    assert "has files that are not of a memory" in refused.stderr
    assert "--root and FOLDER exclude each other" in doubled.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_refuses_a_named_root_that_does_not_exist_and_warns_of_an_empty_one_and_a_new_project(
    repository, workers
):
    new, empty = repository / "else where", repository / "mounted"
    empty.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as busy:
        serve = ("serve", "--workers", workers, "--port", str(busy.getsockname()[1]))
        refused = run(*serve, "--root", new)
        bare, project, known = (
            run(*serve, *options).stderr for options in (("--root", empty), ("--project", "other"), ("--project", "p"))
        )

    assert (refused.exit_code, f"no memory root at {new} (given)" in refused.stderr) == (4, True)
    assert run("mcp", "--http", "--root", new).exit_code == 4
    assert not new.exists()
    assert f"no memory root at {empty} (given): the first write makes it" in bare
    assert "no project 'other' in" in project
    assert "the first write makes it; there is p, parcel" in project
    assert "warning" not in known
    command = shlex.split(run("ask", "tasks", "--root", new).stderr.partition("for a new root there: jidomem ")[2])
    assert run(*command).exit_code == 0
    assert (new / "config.toml").exists()


def test_the_guard_refuses_a_named_root_or_project_that_does_not_exist(repository, monkeypatch):
    named = run("guard", "--root", "typo", "a.py"), run("guard", "--project", "other", "a.py")
    monkeypatch.setenv("JIDOMEM_PROJECT", "other")
    by_environment = run("guard", "--staged")
    monkeypatch.delenv("JIDOMEM_PROJECT")

    assert [each.exit_code for each in (*named, by_environment)] == [4, 4, 4]
    assert "there is no memory root at" in named[0].stderr
    assert "no project 'other'" in named[1].stderr
    assert run("guard", "a.py").exit_code == 0


def test_init_creates_a_project_in_a_root_that_has_others(repository):
    created = json.loads(run("init", "--project", "parcel2", "--json").stdout)
    second = run("init", "--project", "parcel2")
    written = run("remember", "API is v3", "--project", "parcel2")

    assert (created["project"], created["made"]) == ("parcel2", ["projects/parcel2"])
    assert "project parcel2: it exists already" in second.stderr
    assert (written.exit_code, "warning" in written.stderr) == (0, False)
    assert project_names(repository) == ["p", "parcel", "parcel2"]


def test_the_import_that_init_suggests_is_into_the_new_project(repository):
    (repository / "AGENTS.md").write_text("- Sign every commit\n")

    made = run("init", "--project", "parcel2").stderr
    command = re.search(r"next: jidomem (.*?) --dry-run", made)[1]
    run(*shlex.split(command))

    assert "Sign every commit" in run("review", "--project", "parcel2").stdout
    assert project_names(repository) == ["p", "parcel", "parcel2"]


def test_an_import_into_a_new_project_creates_it(repository):
    (repository / "AGENTS.md").write_text("- Sign every commit\n")
    dry = run("init", "--from", "auto", "--project", "parcels", "--dry-run")
    before = project_names(repository)
    result = run("init", "--from", "auto", "--project", "parcels")

    assert (dry.exit_code, result.exit_code) == (0, 0)
    assert "parcels" not in before
    assert "parcels" in project_names(repository)


def test_the_first_receipt_of_another_project_has_a_warning_and_later_ones_have_none(repository):
    first, second = (run("remember", text, "--project", "billing") for text in ("one", "two"))

    assert "this begins the project billing beside p, parcel" in first.stderr
    assert "remove projects/billing" in first.stderr
    assert "warning" not in second.stderr


def test_many_submissions_into_another_project_print_its_warning_once_also_as_json(repository, tmp_path):
    fact = {"type": "fact", "summary": "one", "confidence": "high", "applies_to_project": "billing"}
    lines = [json.dumps({**fact, "summary": f"fact {number}"}) for number in range(3)]
    (tmp_path / "facts.jsonl").write_text("\n".join(lines))

    first, second = (run("submit", str(tmp_path / "facts.jsonl"), "--project", "billing", "--json") for _ in range(2))

    assert first.stderr.count("this begins the project billing beside p, parcel") == 1
    assert "remove projects/billing" in first.stderr
    assert (len(first.stdout.splitlines()), "warning" in second.stderr) == (3, False)


def test_check_covers_all_projects_unless_one_is_named(repository):
    run("remember", "API is v2", "--project", "billing")
    (commit,) = (repository / ".jidomem" / "projects" / "billing" / "memory").glob("*.ttl")
    commit.write_text(commit.read_text().replace("API is v2", "API is v9"))

    every, one = run("check", "--json"), run("check", "--json", "--project", "parcel")
    report = json.loads(every.stdout)
    (violation,) = (each for each in report["problems"] if each["severity"] == "violation")

    assert (every.exit_code, one.exit_code) == (1, 0)
    assert violation["path"] == f".jidomem/projects/billing/memory/{commit.name}"
    assert "projects checked: billing, p, parcel" in report["notes"]
    assert json.loads(one.stdout)["notes"] == []

    def check_with_waiver(more):
        waiver = f'rule = "{violation["rule"]}"\nitem = "{violation["item"]}"\nreason = "known"\nuntil = 2999-01-01\n'
        (repository / "waivers.toml").write_text(f"[[waiver]]\n{waiver}{more}")
        answer = json.loads(run("check", "--json", "--baseline", "waivers.toml").stdout)
        return answer["conforms"], [each["state"] for each in answer["waivers"]]

    assert check_with_waiver("") == (True, ["holds"])  # a waiver that only one project uses is in use
    assert check_with_waiver('project = "billing"\n') == (True, ["holds"])
    assert check_with_waiver('project = "parcel"\n') == (False, ["unused"])


def test_a_command_that_a_change_of_policy_suggests_is_of_its_agent(repository):
    run("access", "policy", "grant", "rita", "admin", "--agent", "rita")
    warned = run("access", "policy", "set", "propose", "--kind", "fact", "--agent", "rita").stderr
    refused = run("access", "policy", "set", "assert", "--kind", "fact", "--agent", "bob").stderr

    assert run(*shlex.split(re.search(r"to let curators: jidomem (.*)", warned)[1])).exit_code == 0
    assert "--agent bob" not in refused


def test_suggested_commands_repeat_the_root_project_and_agent_that_were_given(repository, monkeypatch):
    root = str(repository / ".jidomem")
    given = ("--root", root, "--project", "parcel", "--agent", "bob")
    assert run("remember", "API is v1", "--project", "other", "--agent", "ana").exit_code == 0
    monkeypatch.chdir("/")
    item = run("remember", "Hedwig pays", *given).stdout.strip()
    assert run("remember", "Hedwig pays", "--root", root, "--project", "other").exit_code == 0

    repeated = run("remember", "API is v1", *given).stderr
    redacted = run("journal", "redact", "--text", "Hedwig", "--reason", "erasure", "--dry-run", *given).stderr
    ended = run("edit", item[-8:], "--invalidate", "--reason", "left", *given)
    refused = run("review", "accept", item[-8:], *given).stderr

    options = f"--root {root} --project parcel --agent bob"
    assert re.search(rf"to agree: jidomem edit {options} \S+ --confirm\n", repeated)
    assert f"jidomem journal redact --root {root} --agent bob --project other --text - --reason TEXT" in redacted
    assert ended.exit_code == 0
    assert f"see: jidomem show --root {root} --project parcel" in refused
