"""The names that `import jidomem` gives, and what happens when one of their keywords is misspelt."""

import json
import subprocess
import sys
from typing import Literal, get_overloads, get_type_hints

import pytest

import jidomem
from jidomem import IntentRefused
from jidomem.runtime import tiers


def test_dir_shows_the_public_names_alone_whatever_was_imported():
    text = "import jidomem, jidomem.runtime.root; print(*dir(jidomem))"

    shown = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()

    assert shown == sorted(["__version__", *jidomem.__all__])
    assert {"Entry", "RecallRequest", "WriteRequest", "Hit", "Conflict", "MemoryUpdateIntent", "open"} <= {*shown}


@pytest.mark.parametrize("name", jidomem.__all__)
def test_each_public_name_is_there_and_documented(name):
    assert getattr(jidomem, name).__doc__


def test_a_text_is_remembered_and_recalled_by_two_methods(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="p", agent="ana") as memory:
        receipt = memory.remember("the build needs Rust 1.80", about=["Cargo.toml"], topic="rust")
        judged = memory.remember("the linter needs Ruff 0.9", dry_run=True)
        (hit,) = memory.recall("which Rust does the build need?").entries

        assert (receipt.status, receipt.filled["asserted_by"], judged.commit) == ("asserted", "ana", None)
        assert (hit.id, hit.content) == (receipt.iri, "the build needs Rust 1.80")
        assert hit.metadata["about"] == ["Cargo.toml"]


@pytest.mark.parametrize(
    ("field", "value", "nearest"),
    [
        ("abuot", ["x"], "did you mean 'about'"),
        ("tags", "x", "did you mean 'topic'"),
        ("labels", "x", "did you mean 'topic'"),
        ("rationle", "x", "did you mean 'rationale'"),
        ("tags", ["x"], "'topic' is one text"),
    ],
)
def test_a_misspelt_field_of_a_memory_is_answered_with_the_nearest(tmp_path, field, value, nearest):
    with (
        jidomem.open(tmp_path / ".jidomem", project="p") as memory,
        pytest.raises(IntentRefused, match=nearest),
    ):
        memory.remember("a fact", **{field: value})


@pytest.mark.parametrize(
    ("call", "keyword", "nearest"),
    [
        (jidomem.open, "projct", "project"),
        (jidomem.MemoryUpdateIntent, "sumary", "summary"),
        (jidomem.RecallRequest, "qery", "query"),
        (jidomem.WriteRequest, "entri", "entry"),
        (jidomem.Entry, "contents", "content"),
    ],
)
def test_a_misspelt_keyword_is_answered_with_the_nearest(call, keyword, nearest):
    with pytest.raises(TypeError, match=rf"got an unexpected keyword argument '{keyword}'; did you mean '{nearest}'\?"):
        call(**{keyword: "x"})


def test_a_keyword_that_is_near_none_is_refused_as_python_does():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'$"):
        jidomem.RecallRequest(zzz=1)


def test_answers_of_python_become_json(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="p", agent="ana") as memory:
        memory.remember("the build needs Rust 1.80", about=["Cargo.toml"])
        recalled = json.loads(json.dumps(memory.recall("Rust").to_dict()))
        rows = json.loads(json.dumps(jidomem.json_value(memory.ask("facts"))))

    (hit,) = recalled["entries"]
    assert hit["metadata"]["recorded_at"].endswith("Z")
    assert rows[0]["summary"] == "the build needs Rust 1.80"


def test_the_type_of_a_stored_value_depends_on_its_promotion(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="p", agent="ana") as memory, memory.context("s") as context:
        answers = [context.store("index", "Oxigraph", **promote) for promote in ({}, {"promote": "force"})]
        types = [get_type_hints(each, vars(tiers))["return"] for each in get_overloads(type(context).store)]

    assert types[:2] == [Literal[True], type(answers[1])]
    assert answers[0] is True
