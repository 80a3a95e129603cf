"""What depends on Python most, run by the later versions claimed, in the environments that `ci/pythons` made."""

import os
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.12", "3.13")
ROOMS = ("cli/test_first_minutes.py", "exchange", "formats", "test_readme.py", "write/test_writer.py")
#: What is run by the last of them alone.
MORE = ("adapters", "code", "contracts", "entries", "journal", "providers", "working", "write/test_conflict.py")


@pytest.mark.parametrize(
    ("version", "room"), [*product(VERSIONS, ROOMS), *((VERSIONS[-1], room) for room in MORE)], ids=str
)
def test_a_room_holds_with_a_later_python(version, room):
    python = ROOT / "build" / f"python{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"there is no Python {version}, of which ci/pythons makes an environment")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}

    told = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", f"tests/{room}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert told.stdout.startswith(f"Python {version}.")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_these_are_the_versions_that_are_claimed():
    claimed = {"3.11", *VERSIONS}

    assert set(re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))) == claimed
    assert set(re.findall(r"\b3\.\d+\b", (ROOT / "ci" / "pythons").read_text("utf-8"))) == set(VERSIONS)
    where = (ROOT / "docs" / "versions.md").read_text("utf-8").split("## Where it runs")[1].split("\n## ")[0]
    assert set(re.findall(r"\b3\.\d+\b", where)) == claimed
