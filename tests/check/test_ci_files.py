"""The CI files for other repositories: the workflow, the git hook and the pre-commit hook, run as shipped."""

import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from conftest import START, fixed_sources, intent
from corpus import append
from forked_jidomem import programs

import jidomem
from jidomem.journal.journal import FileJournal
from jidomem.runtime.location import init

ROOT = Path(__file__).parent.parent.parent
UNJUDGED_DECISION = """memory:slipped a jido:Decision ; jido:summary "slipped in" ; jido:recordedIn <urn:jido:this> ;
  jido:appliesToProject <https://jido.ai/projects/p> ; jido:assertedBy agent:architect ; jido:assertedIn session:s-1 ;
  jido:hasConfidence jido:High ; jido:hasTimestamp "2026-11-21T08:00:00Z"^^xsd:dateTime ."""
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@t")


@pytest.fixture(scope="module", autouse=True)
def program(tmp_path_factory):
    """The folder of `jidomem`, which is forked."""
    folder = tmp_path_factory.mktemp("program")
    with programs(folder):
        yield


@pytest.fixture
def repository(tmp_path):
    """A repository with a clean memory in it, and a `gh` that knows one closed issue."""
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run([*GIT, "init", "-q", "-b", "main"], cwd=folder, check=True)
    with jidomem.open(init(folder, "p"), sources=fixed_sources(START - timedelta(days=2))) as memory:
        memory.writer.submit_intent("p", intent())
    gh = tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text('#!/bin/sh\necho \'[{"number": 1, "state": "CLOSED", "url": "https://github.com/a/b/issues/1"}]\'\n')
    gh.chmod(0o755)
    return folder


def shell(command, folder, **more):
    path = f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "RUNNER_TEMP": str(folder.parent), **more}
    return subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True)


def commands():
    """The commands of the workflow, by the name of the step."""
    workflow = yaml.safe_load((ROOT / "ci" / "jidomem-check.yml").read_text())
    steps = workflow["jobs"]["check"]["steps"]
    return {step.get("name", step["run"]): step["run"] for step in steps if "run" in step}


def test_the_workflow_passes_a_clean_memory_and_fails_on_a_faulty_one(repository):
    shell("git add -A && git -c user.name=t -c user.email=t@t commit -qm begin", repository)
    steps = commands()
    assert steps.pop('pip install "$JIDOMEM"')
    shell("git update-ref refs/remotes/origin/main HEAD", repository)

    event = {"GITHUB_BASE_REF": "main", "BEFORE": "origin/main"}
    assert [shell(run, repository, **event).returncode for run in steps.values()] == [0] * 7
    append(FileJournal(repository / ".jidomem"), UNJUDGED_DECISION)
    (repository / "CLAUDE.md").write_text("# Rules\n\n- Sign every commit\n")
    results = [shell(run, repository, **event) for run in steps.values()]
    added, _, _, _, sources, _, _ = results

    assert [each.returncode for each in results] == [1, 1, 0, 0, 1, 0, 1]
    assert sources.stdout.startswith("::error file=CLAUDE.md,line=3,title=import-check::added in the source")
    assert added.stdout.startswith("::error file=.jidomem/projects/p/memory/")
    assert (
        '"ruleId": "https://jido.ai/shapes#DecisionHasRationale"' in (repository.parent / "jidomem.sarif").read_text()
    )


def test_the_workflow_fails_on_code_that_breaks_a_convention_and_on_a_faulty_shape(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        memory.writer.submit_intent("p", intent(
            type="convention", summary="No print", convention_name="print", enforcement_level="Strict", about=["src"],
            extra_triples=[["jido:forbidsPattern", {"@value": "print"}]]))  # fmt: skip
    shell("git add -A && git -c user.name=t -c user.email=t@t commit -qm begin", repository)
    shell(
        "git update-ref refs/remotes/origin/main HEAD && mkdir src && echo 'print(1)' > src/a.py && git add -A",
        repository,
    )
    (repository / ".jidomem" / "shapes").mkdir(exist_ok=True)
    (repository / ".jidomem" / "shapes" / "bad.ttl").write_text("shop:A a")

    steps = commands()
    code = shell(steps["Which rules the code of the pull request breaks"], repository, GITHUB_BASE_REF="main")
    shapes = shell(steps["The terms, shapes and queries of the project"], repository)

    assert (code.returncode, shapes.returncode) == (3, 1)
    assert code.stdout.startswith("::error file=src/a.py,line=1,title=jidomem guard::line 1 has")
    assert shapes.stdout.startswith("::error file=.jidomem/shapes/bad.ttl,line=1")


@pytest.mark.parametrize("is_on_main", [True, False])
def test_a_checkout_without_the_memory_fails_every_step_with_an_annotation(repository, is_on_main):
    commit = "git add -A && git -c user.name=t -c user.email=t@t commit --allow-empty -qm "
    add, remove = f"{commit} begin && git update-ref refs/remotes/origin/main HEAD", "rm -r .jidomem"
    for command in (add, f"{remove} && {commit} none") if is_on_main else (remove, add):
        assert shell(command, repository).returncode == 0

    steps = commands()
    del steps['pip install "$JIDOMEM"'], steps["Which issues are closed"]
    event = {"GITHUB_BASE_REF": "main", "BEFORE": "origin/main"}
    results = {name: shell(run.partition(" > ")[0], repository, **event) for name, run in steps.items()}

    assert [each.returncode for each in results.values()] == [3, 3, 1, 3, 3, 2]
    (repository.parent / "issues.json").write_text("[]")
    assert shell(steps["All of the memory"].partition(" > ")[0], repository).returncode == 3
    sarif = json.loads(results.pop("All of the memory").stdout)
    assert sarif["runs"][0]["invocations"][0]["executionSuccessful"] is False
    reason = "this checkout lacks the memory" if is_on_main else "there is no memory in this folder"
    assert [name for name, each in results.items() if f"title=unchecked::{reason}" not in each.stdout] == []


def test_workflow_steps_run_after_a_failed_step_and_install_the_current_version():
    workflow = yaml.safe_load((ROOT / "ci" / "jidomem-check.yml").read_text())
    steps = workflow["jobs"]["check"]["steps"]
    first = next(number for number, step in enumerate(steps) if step.get("name") == "What the pull request adds")

    assert [step.get("name") for step in steps[first + 2 :] if "!cancelled()" not in step["if"]] == []
    assert workflow["env"]["JIDOMEM"] == f"jidomem=={jidomem.__version__}"


def test_the_git_hook_accepts_a_clean_memory_and_refuses_a_faulty_one(repository):
    shutil.copy(ROOT / "ci" / "pre-commit", repository / ".git" / "hooks" / "pre-commit")
    commit = "git add -A && git -c user.name=t -c user.email=t@t commit -qm more"

    assert shell(commit, repository).returncode == 0
    append(FileJournal(repository / ".jidomem"), UNJUDGED_DECISION)
    refused = shell(commit, repository)

    assert refused.returncode == 1
    assert "DecisionHasRationale" in refused.stdout + refused.stderr


def test_the_git_hook_refuses_a_memory_of_which_only_a_part_is_staged(repository):
    shutil.copy(ROOT / "ci" / "pre-commit", repository / ".git" / "hooks" / "pre-commit")
    commit = "git -c user.name=t -c user.email=t@t commit -qm more"
    assert shell(f"git add -A && {commit}", repository).returncode == 0
    with jidomem.open(repository / ".jidomem") as memory:
        first = memory.remember("Backups run at night", project="p", topic="backups")
        memory.remember("Backups are stored for 35 days", project="p", topic="retention")
    name = next(path.name for path in (repository / ".jidomem").rglob("*.ttl") if first.iri in path.read_text())

    other_work = shell(f"touch other.py && git add other.py && {commit}", repository)
    refused = shell(f"git add .jidomem/projects/p/memory/{name} && {commit}", repository)
    repaired = shell(f"git add .jidomem && {commit}", repository)

    assert (other_work.returncode, refused.returncode, repaired.returncode) == (0, 1, 0)
    assert "stage the rest too: git add .jidomem" in refused.stderr


def test_the_git_hook_without_jidomem_on_path_names_the_install_command(repository):
    shutil.copy(ROOT / "ci" / "pre-commit", repository / ".git" / "hooks" / "pre-commit")
    path = repository.parent / "path"
    path.mkdir()
    for name in ("git", "sh"):
        (path / name).symlink_to(shutil.which(name))
    command = [*GIT, "commit", "--allow-empty", "-qm", "more"]

    refused = subprocess.run(command, cwd=repository, env={"PATH": str(path)}, capture_output=True, text=True)
    hook = subprocess.run(["sh", ".git/hooks/pre-commit"], cwd=repository, env={"PATH": str(path)}, capture_output=True)

    assert refused.returncode == 1
    assert "jidomem is not on PATH" in refused.stderr
    assert "pipx install" in refused.stderr
    assert hook.returncode == 127


def test_the_entry_of_the_pre_commit_hook_runs(repository):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())

    assert hook["pass_filenames"] is False
    assert shell(hook["entry"], repository).returncode == 0
