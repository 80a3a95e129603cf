"""The wheel and the sdist hold every file, and say what they are."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

import jidomem

ROOT = Path(__file__).parent.parent
#: The folders of the checkout that are packages -> what they are called in the wheel.
PACKAGES = {
    "jidomem": "jidomem", "cli": "jidomem_cli", "ontology": "jidomem/ontology", "shapes": "jidomem/shapes",
    "queries": "jidomem/queries", ".jidomem": "jidomem/own_memory",
}  # fmt: skip
#: Of a memory root in a checkout, what is for git alone.
FOR_GIT = {".gitignore", ".gitattributes"}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of a release: the one of $JIDOMEM_DIST that `ci/wheel` made, else made here."""
    if given := os.environ.get("JIDOMEM_DIST"):
        return Path(given)
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return out


@pytest.fixture
def wheel(dist):
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def tracked(folder):
    """The files below a folder that git has."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [Path(name) for name in listed.split("\0") if name and Path(name).name not in FOR_GIT]


def test_the_wheel_holds_every_file_of_the_program_and_nothing_else(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    expected = {
        f"{inside}/{path.relative_to(folder)}" for folder, inside in PACKAGES.items() for path in tracked(folder)
    }
    assert names == expected
    assert len(names) > 350


def test_the_sdist_has_the_sources_of_the_wheel(dist):
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    expected = {str(path) for folder in PACKAGES for path in tracked(folder)}
    assert expected | {"pyproject.toml", "README.md", "LICENSE", "ci/build_backend.py"} <= names


def test_a_module_that_was_deleted_since_the_last_build_is_not_packed_again(tmp_path):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checkout = tmp_path / "checkout"
    for name in filter(None, listed.split("\0")):
        if not name.startswith(("docs/", "tests/", "bench/")) and (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, checkout / name)
    deleted = checkout / "jidomem" / "base" / "deleted_since.py"
    deleted.write_text("")
    names = []
    for step in ("older", "newer"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / step, checkout]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        (made,) = (tmp_path / step).glob("*.whl")
        with zipfile.ZipFile(made) as opened:
            names.append(set(opened.namelist()))
        deleted.unlink(missing_ok=True)

    assert names[0] - names[1] == {"jidomem/base/deleted_since.py"}
    assert not (checkout / "build").exists()


def test_the_wheel_says_its_version_licence_python_and_types(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    said = BytesParser().parsebytes(wheel.read(name))
    (licence,) = (name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))

    assert (said["Version"], said["License-Expression"]) == (jidomem.__version__, "Apache-2.0")
    assert b"Apache License" in wheel.read(licence)
    assert "jidomem/py.typed" in wheel.namelist()
