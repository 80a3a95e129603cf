"""docs/tutorial.md, run from its first line to its last in one folder; `python -m docs.generate` refreshes it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from docs.generate.shown import Names, Step, rewritten, steps
from jidomem_cli.main import cli

PAGE = Path(__file__).parent.parent / "tutorial.md"
_SHELL = set("|<>&;'\"`$\n") - set("'\"")


def run(step: Step, names: Names) -> str:
    """Return what *step* prints in the working directory; AssertionError unless it ends as the page says."""
    code = names.given(step.code)
    words = shlex.split(code, comments=True) if step.language == "console" else []
    if words[:1] == ["jidomem"] and not _SHELL & set(code):
        done = CliRunner().invoke(cli, words[1:])
        status, printed = done.exit_code, done.output
    else:
        command = ["bash", "-c", code] if step.language == "console" else [sys.executable, "-c", code]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            command, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        status, printed = ended.returncode, ended.stdout
    assert status == step.exit, f"{code}\nended with {status}:\n{printed}"
    return printed


def refreshed(folder: Path) -> str:
    """Return the page with what it shows as a run in *folder*, an empty one, prints it; what is true stays."""
    with chdir(folder):
        return rewritten(PAGE.read_text("utf-8"), run, Names(str(folder.parent)))


def differences(folder: Path) -> list[str]:
    """Return what the page shows otherwise than a run in *folder* prints it, step by step."""
    names, found = Names(str(folder.parent)), []
    with chdir(folder):
        for step in steps(PAGE.read_text("utf-8")):
            printed = run(step, names)
            if step.shown is not None and not names.fits(step.shown, printed):
                found.append(f"{step.code}\n--- the page shows\n{step.shown}--- it prints\n{printed}")
    return found
