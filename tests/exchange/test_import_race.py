"""Several processes import the same repository at the same moment: all succeed, and each entry is recorded once."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from jidomem_cli.main import cli

RECORD = "# {title}\n\n## Status\n\nAccepted\n\n## Context\n\nOrders come in bursts.\n\n## Decision\n\nWe do it.\n"
RECORDS = tuple(f"docs/adr/{number:04}-use-queue-{number}.md" for number in range(1, 21))
#: Waits until all are ready, so that all plan with the same memory, and then imports.
TOGETHER = """
import sys
from pathlib import Path

from jidomem_cli.main import main

Path(sys.argv[1]).touch()
while len(list(Path(sys.argv[1]).parent.glob("ready-*"))) < int(sys.argv[2]):
    pass
sys.argv = ["jidomem", *sys.argv[3:]]
sys.exit(main())
"""
PROCESSES = 2


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


def run(*words):
    return CliRunner().invoke(cli, words)


def together(folder, marks, *words):
    """Run `jidomem WORDS` in several processes at the same moment; return their results."""
    marks.mkdir()
    command = [sys.executable, "-c", TOGETHER]
    children = [
        subprocess.Popen(
            [*command, str(marks / f"ready-{number}"), str(PROCESSES), *words],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    return [(*child.communicate(timeout=120), child.returncode) for child in children]


@pytest.mark.parametrize(
    "words", [("init", "--from", "auto"), ("root", "import", "adr", *RECORDS)], ids=["init", "import adr"]
)
def test_two_processes_that_import_one_repository_at_once_both_end_well_and_keep_each_record_once(
    repository, tmp_path, words
):
    run("init")

    ends = together(repository, tmp_path / "first", *words)

    assert [(code, "refused" in err or "error" in err) for _, err, code in ends] == [(0, False)] * PROCESSES
    rows = json.loads(run("ask", "active-decisions", "--json").stdout)["rows"]
    assert sorted(row["summary"] for row in rows) == sorted(f"Use queue {number}" for number in range(1, 21))
    assert run("root", "import", "--check", "adr").exit_code == 0
    assert run("check").exit_code == 0

    for path in (repository / name for name in RECORDS):
        path.write_text(path.read_text().replace("Accepted", "Deprecated"))
    ends = together(repository, tmp_path / "second", *words)

    assert [(code, "refused" in err or "error" in err) for _, err, code in ends] == [(0, False)] * PROCESSES
    assert json.loads(run("ask", "active-decisions", "--json").stdout)["rows"] == []
    assert run("root", "import", "--check", "adr").exit_code == 0
    assert run("check").exit_code == 0


def test_two_processes_that_find_a_record_removed_propose_its_withdrawal_once_and_again_when_it_returned(
    repository, tmp_path
):
    run("init", "--from", "auto")
    removed = repository / RECORDS[0]
    text = removed.read_text()
    for number in range(2):
        removed.unlink()
        ends = together(repository, tmp_path / f"removal-{number}", "init", "--from", "auto")

        assert [code for *_, code in ends] == [0] * PROCESSES
        told = json.loads(run("root", "import", "--check", "adr", "--json").stdout)
        assert [(each["change"], each["path"]) for each in told["differences"]] == [("removed", RECORDS[0])]

        removed.write_text(text)
        ends = together(repository, tmp_path / f"return-{number}", "init", "--from", "auto")
        assert [code for *_, code in ends] == [0] * PROCESSES
        assert run("root", "import", "--check", "adr").exit_code == 0
