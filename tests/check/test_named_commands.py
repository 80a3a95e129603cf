"""The commands named in findings of check run as they are written."""

import json
import os
import re
import shlex
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from conftest import intent
from corpus import append

import jidomem
from jidomem.journal.journal import FileJournal
from jidomem_cli.main import cli

NOW = datetime.now(UTC)
PAST, SOON = (f"{NOW + timedelta(days=days):%Y-%m-%d}" for days in (-9, 9))
#: The placeholders of commands with their values.
PLACES = {"DATE": SOON, "TEXT": "another text", "WHY": "it is so", "PLACE": "src"}
COMMAND = re.compile(r"""jidomem ((?:"[^"]*"|'[^']*'|[^,;:()"']|:(?=\S))+)""")
ODD_FACT = """memory:slipped a jido:Fact , <https://example.org/kitchen#Recipe> , jido:Xyz ; jido:summary "slipped in" ;
  jido:recordedIn <urn:jido:this> ; jido:appliesToProject <https://jido.ai/projects/p> ;
  jido:assertedBy agent:architect ; jido:assertedIn session:s-1 ; jido:hasConfidence jido:High ; jido:secondTime "x" ;
  jido:hasTimestamp "2026-11-21T08:00:00Z"^^xsd:dateTime ."""


def run(*args, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in args])
    assert code is None or result.exit_code == code, result.stdout + result.stderr
    return result


def remember(text, *args):
    return run("remember", text, *args).stdout.strip()


def git(*args):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], check=True, capture_output=True)


def commit(message):
    git("add", "-A")
    git("commit", "-qm", message)


class World:
    """A repository with two branches that disagree in every way, merged."""

    def __init__(self):
        git("init", "-q", "-b", "main")
        run("init", "-q", "--project", "p")
        for name in ("ana", "user"):  # the agent, and the user of this machine
            run("access", "policy", "grant", name, "admin", "--agent", "ana")
        self.tasks = [remember(f"Task {number}", "--type", "task", "--assigned-to", "ana") for number in range(3)]
        self.basis = remember("the cache holds 2 GiB", "--evidence", "a log")
        for name in ("plain", "moved", "gone"):
            self.write(f"src/{name}.py", f"{name} = 1\n" * 9)
            remember(f"{name} is right", "--about", f"src/{name}.py")
        self.write("AGENTS.md", "- Run the tests before each commit\n- Always use pathlib\n- Never use print\n")
        run("init", "--from", "auto")
        run("review", "accept", "--all")
        commit("begin")

    def write(self, path, text):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def branch(self, name, by):
        first, second, third = self.tasks
        git("checkout", "-qb", name, "main")
        run("edit", first, "--set", f"status={'Completed' if name == 'a' else 'InProgress'}", "--agent", by)
        run("edit", second, "--set", "status=Completed", "--agent", by)
        if name == "a":
            run("edit", third, "--supersede", "Task 3 again", "--reason", "r", "--agent", by)
        else:
            run("edit", third, "--invalidate", "--reason", "r", "--agent", by)
        remember(f"Use {name}", "--type", "decision", "--topic", "queue", "--rationale", "r", "--agent", by)
        remember("the build is red", "--topic", "build", "--agent", by)
        run(
            "access",
            "policy",
            "set",
            "propose" if name == "a" else "assert",
            "--kind",
            "task",
            "--role",
            "MemoryWriter",
        )
        commit(name)

    def age(self):
        """Age the memories: change files and pass dates."""
        self.write("src/plain.py", "plain = 2\n")
        git("mv", "src/moved.py", "src/other.py")
        git("rm", "-q", "src/gone.py")
        remember(
            "Workers run on Celery", "--type", "decision", "--topic", "j", "--rationale", "k", "--expires-on", PAST
        )
        remember("it is assumed", "--type", "assumption")
        remember("it follows", "--evidence", self.basis)
        run("edit", self.basis, "--invalidate", "--reason", "wrong")
        self.write("AGENTS.md", "- Run the tests before each commit\n- Always use attrs\n")
        commit("later")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("world") / "repo", os.getcwd()
    folder.mkdir()
    os.environ["JIDOMEM_AGENT"] = "ana"
    os.chdir(folder)
    try:
        built = World()
        built.branch("a", "ana")
        built.branch("b", "bea")
        git("merge", "-q", "--no-edit", "a")
        built.age()
        (folder / ".jidomem" / "config.toml").write_text('project = "p"\nsecrets = "off"\n')
        with jidomem.open(".jidomem", agent="ana") as memory:
            memory.writer.submit_intent("p", intent(summary="the key is ghp_" + "a1B2" * 9, evidence=[]))
        (folder / ".jidomem" / "config.toml").write_text('project = "p"\n')
        append(FileJournal(folder / ".jidomem"), ODD_FACT, moment=datetime.now(UTC))
        yield folder
    finally:
        os.chdir(before)
        del os.environ["JIDOMEM_AGENT"]


def commands(folder):
    """Each command that a finding of check names, with the rule."""
    os.chdir(folder)
    problems = json.loads(run("check", "--json", "--fail-on", "stale", code=None).stdout)["problems"]
    rules_by_command = {}
    for problem in problems:
        for match in COMMAND.finditer(problem["message"]):
            words = [PLACES.get(word.rpartition("=")[2], word.rpartition("=")[2]) for word in shlex.split(match[1])]
            heads = [word.rpartition("=")[0] for word in shlex.split(match[1])]
            command = tuple(f"{head}={word}" if head else word for head, word in zip(heads, words, strict=True))
            rules_by_command.setdefault(command, problem["rule"].rpartition("#")[2])
    return rules_by_command, {problem["rule"].rpartition("#")[2] for problem in problems}


def test_each_command_that_a_finding_names_is_accepted(world, tmp_path):
    rules_by_command, rules = commands(world)

    failed = {}
    for number, (words, rule) in enumerate(rules_by_command.items()):
        copy = shutil.copytree(world, tmp_path / str(number))
        os.chdir(copy)
        result = run(*words, code=None)
        if result.exit_code:
            failed[words] = (rule, result.stderr)
    assert not failed, json.dumps({" ".join(k): v for k, v in failed.items()}, indent=1)
    assert rules >= {
        "SupersessionHasOneEnd", "NothingInForceDisagrees", "MemoryIsUpToDate", "FileIsAsItWas", "NothingLooksSecret",
        "TermIsDeclared",
    }  # fmt: skip
    assert {"SupersessionHasOneEnd", "NothingInForceDisagrees", "MemoryIsUpToDate", "FileIsAsItWas"} <= {
        *rules_by_command.values()
    }
