"""The README, run from top to bottom as a newcomer would, in a new repository.

With $JIDOMEM_BIN it is run by the programs of that folder: `ci/check` names the environment that `ci/wheel` makes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BIN = Path(os.environ.get("JIDOMEM_BIN") or Path(sys.executable).parent)
CHECKOUT = str(README.parent / "jidomem")


def steps():
    """Each command and program, in the order of the page."""
    for language, block in re.findall(r"^```(console|python)\n(.*?)^```$", README.read_text("utf-8"), re.DOTALL | re.M):
        if language == "python":
            yield [str(BIN / "python"), "-c", block]
        else:
            yield from (["bash", "-euc", line[2:]] for line in block.splitlines() if line.startswith("$ "))


@pytest.fixture
def repository(tmp_path):
    """A repository that has decision records, notes for agents and a file that both name, and no memory yet."""
    folder = tmp_path / "my-project"
    (folder / "docs" / "adr").mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / "src" / "store.py").write_text("def put(): ...\n")
    (folder / "docs" / "adr" / "0001-keep-it-in-files.md").write_text(
        "# 1. Keep it in files\n\nDate: 2026-01-01\n\n## Status\n\nAccepted\n\n## Context\n\nWe forget.\n\n"
        "## Decision\n\n`src/store.py` writes files.\n\n## Consequences\n\ngit merges them.\n"
    )
    (folder / "CLAUDE.md").write_text("# Rules\n\n- Every change of `src/store.py` has a test\n")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def test_everything_the_readme_shows_runs_from_top_to_bottom(repository, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JIDOMEM_", "PYTHON"))}
    environment |= {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    asked = [str(BIN / "python"), "-c", "import jidomem; print(jidomem.__file__)"]

    def run(command):
        return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)

    for command in steps():
        done = run(command)
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        assert done.stdout or done.stderr, f"{command[-1]} says nothing"
        assert not re.search("^none", done.stderr, re.MULTILINE), f"{command[-1]} finds nothing\n{done.stderr}"
    assert run(asked).stdout.startswith(CHECKOUT) == ("JIDOMEM_BIN" not in os.environ)


def test_the_two_commands_of_the_readme_are_the_ones_ci_runs():
    readme, ci = README.read_text(), (README.parent / ".ci/run").read_text()

    for command in ("./ci/demo", "./ci/test"):
        assert f"\n    {command}\n" in readme
        assert re.search(rf"^{re.escape(command)}$", ci, re.MULTILINE)


def test_a_shell_gets_the_environment_of_the_checkout_as_the_readme_says(tmp_path):
    section = README.read_text().partition("## From a checkout")[2].partition("\n## ")[0]
    demo, activate, _ = re.findall("^    (.+)$", section, re.MULTILINE)
    script = README.parent.joinpath(demo).read_text()
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci/venv").write_text((README.parent / "ci/venv").read_text())
    (sourced,) = re.findall(r"^source .*$", script, re.MULTILINE)
    commands = f"{sourced}; set +e; {activate}; cd /; python -c 'import sys; print(sys.prefix)'"
    python = tmp_path / "python"  # makes an environment without pip, which takes seconds to install
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@" --without-pip\n')
    python.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(python)}

    done = subprocess.run(["bash", "-euc", commands], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert done.stdout == f"{tmp_path}/.venv\n", done.stderr
    assert "exec .venv/bin/jidomem demo" in script
