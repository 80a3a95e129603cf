"""The pages that are run from their first line to their last, each in one folder; `python -m docs.generate` refreshes them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from click.testing import CliRunner

from docs.generate.shown import Names, Step, rewritten, steps
from jidomem_cli.main import cli

DOCS = Path(__file__).parent.parent
#: The pages, and the folder each is run in: the others begin with a memory of nothing in it.
PAGES = {
    "tutorial.md": "orders",
    "conflicts.md": "kitchen",
    "integrity.md": "kitchen",
    "policy.md": "kitchen",
    "security.md": "kitchen",
    "time.md": "kitchen",
}
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


@contextmanager
def beginning(page: str, above: Path) -> Iterator[Names]:
    """Work in the folder of *page*, made below *above*, as the agent `ana` with a home of her own."""
    folder = above / PAGES[page]
    folder.mkdir()
    own = {"JIDOMEM_AGENT": "ana", "JIDOMEM_HOME": str(above / "home")} | {
        f"XDG_{name}_HOME": str(above / name) for name in ("CONFIG", "DATA", "CACHE")
    }
    before = dict(os.environ)
    for name in ("JIDOMEM_ROOT", "JIDOMEM_PROJECT", "JIDOMEM_SESSION", "JIDOMEM_INDEX"):
        os.environ.pop(name, None)
    os.environ.update(own)
    try:
        with chdir(folder):
            if page != "tutorial.md":
                run(Step("console", "jidomem init -q", None, 0, 0), Names(str(above)))
            yield Names(str(above))
    finally:
        os.environ.clear()
        os.environ.update(before)


def refreshed(page: str, above: Path) -> str:
    """Return *page* with what it shows as a run below *above*, an empty folder, prints it; what is true stays."""
    with beginning(page, above) as names:
        return rewritten((DOCS / page).read_text("utf-8"), run, names)


def differences(page: str, above: Path) -> list[str]:
    """Return what *page* shows otherwise than a run below *above* prints it, step by step."""
    found = []
    with beginning(page, above) as names:
        for step in steps((DOCS / page).read_text("utf-8")):
            printed = run(step, names)
            if step.shown is not None and not names.fits(step.shown, printed):
                found.append(f"{step.code}\n--- the page shows\n{step.shown}--- it prints\n{printed}")
    return found
