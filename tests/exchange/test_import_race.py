"""Several processes import the same repository at the same moment: all succeed, and each entry is recorded once."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from jidomem_cli.main import cli

RECORD = "# {title}\n\n## Status\n\nAccepted\n\n## Context\n\nOrders come in bursts.\n\n## Decision\n\nWe do it.\n"
RECORDS = tuple(f"docs/adr/{number:04}-use-queue-{number}.md" for number in range(1, 21))
#: A program that forks several processes for each line it reads, so that all plan from the same memory.
SYNCHRONISED_START = """
import json
import os
import sys

from jidomem.schema import ontology
from jidomem_cli import exchange, init
from jidomem_cli.main import main

ontology.load()
for line in sys.stdin:
    folder, marks, number_of_processes, arguments, environment = json.loads(line)
    children = []
    for number in range(number_of_processes):
        children.append(os.fork())
        if not children[-1]:
            for stream, name in enumerate(("out", "err"), start=1):
                os.dup2(os.open(f"{marks}/{number}.{name}", os.O_CREAT | os.O_WRONLY), stream)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            sys.argv = ["jidomem", *arguments]
            sys.exit(main())
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children), flush=True)
"""
PROCESSES = 2


@pytest.fixture(scope="module")
def starter():
    """A process of `SYNCHRONISED_START`."""
    command = [sys.executable, "-c", SYNCHRONISED_START]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "shop"
    (folder / "docs/adr").mkdir(parents=True)
    for number, name in enumerate(RECORDS, start=1):
        (folder / name).write_text(RECORD.format(title=f"Use queue {number}"))
    (folder / "CLAUDE.md").write_text("# Rules\n\n- Never edit generated files\n- Sign every commit\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder


def run(*arguments):
    return CliRunner().invoke(cli, arguments)


def run_concurrently(starter, folder, marks, *arguments):
    """Run `jidomem WORDS` in several processes at the same moment; return their outputs, errors and exit codes."""
    marks.mkdir()
    call = json.dumps([str(folder), str(marks), PROCESSES, arguments, dict(os.environ)])
    print(call, file=starter.stdin, flush=True)
    codes = starter.stdout.readline()
    texts = ([(marks / f"{number}.{name}").read_text() for name in ("out", "err")] for number in range(PROCESSES))
    return [(*text, int(code)) for text, code in zip(texts, codes.split(), strict=True)]


@pytest.mark.parametrize(
    "arguments", [("init", "--from", "auto"), ("root", "import", "adr", *RECORDS)], ids=["init", "import adr"]
)
def test_concurrent_imports_of_one_repository_succeed_and_record_each_entry_once(
    repository, starter, tmp_path, arguments
):
    run("init")

    results = run_concurrently(starter, repository, tmp_path / "first", *arguments)

    assert [(code, "refused" in err or "error" in err) for _, err, code in results] == [(0, False)] * PROCESSES
    rows = json.loads(run("ask", "active-decisions", "--json").stdout)["rows"]
    assert sorted(row["summary"] for row in rows) == sorted(f"Use queue {number}" for number in range(1, 21))
    assert run("root", "import", "--check", "adr").exit_code == 0
    assert run("check").exit_code == 0

    for path in (repository / name for name in RECORDS):
        path.write_text(path.read_text().replace("Accepted", "Deprecated"))
    results = run_concurrently(starter, repository, tmp_path / "second", *arguments)

    assert [(code, "refused" in err or "error" in err) for _, err, code in results] == [(0, False)] * PROCESSES
    assert json.loads(run("ask", "active-decisions", "--json").stdout)["rows"] == []
    assert run("root", "import", "--check", "adr").exit_code == 0
    assert run("check").exit_code == 0


def test_concurrent_imports_propose_the_withdrawal_of_a_removed_record_once_for_each_removal(
    repository, starter, tmp_path
):
    run("init", "--from", "auto")
    removed = repository / RECORDS[0]
    text = removed.read_text()
    for number in range(2):
        removed.unlink()
        results = run_concurrently(starter, repository, tmp_path / f"removal-{number}", "init", "--from", "auto")

        assert [code for *_, code in results] == [0] * PROCESSES
        report = json.loads(run("root", "import", "--check", "adr", "--json").stdout)
        assert [(each["change"], each["path"]) for each in report["differences"]] == [("removed", RECORDS[0])]

        removed.write_text(text)
        results = run_concurrently(starter, repository, tmp_path / f"return-{number}", "init", "--from", "auto")
        assert [code for *_, code in results] == [0] * PROCESSES
        assert run("root", "import", "--check", "adr").exit_code == 0
