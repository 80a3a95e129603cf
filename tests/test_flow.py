"""The ways of an intent, a query and a recall: few files and calls, in the order of docs/architecture.md."""

import re
from functools import partial
from pathlib import Path

import pytest
from conftest import ToyEmbedder, intent

import jidomem
from bench.source_tree import trace
from jidomem import MemoryUpdateIntent
from jidomem.serve.app import create_app

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
_FUNCTION = re.compile(r"`((?:base|write|journal|index|read|recall|records|runtime|serve)\.[a-z0-9_]+(?:\.\w+)+)`")


def walk(title):
    """The functions that a numbered walk of the page names, as file and qualified name."""
    section = PAGE.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    steps = section[section.index("\n1. ") :].partition("\n\n")[0]
    names = (name.split(".", 2) for name in _FUNCTION.findall(steps))
    return [(f"{package}/{module}.py", function) for package, module, function in names]


def fact(summary):
    return MemoryUpdateIntent(**intent(summary=summary))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The shortest trace of some submissions of a root: one that comes long after another lists the folder again."""
    folder, patch = tmp_path_factory.mktemp("flow"), pytest.MonkeyPatch()
    with patch.context() as default, jidomem.open(folder / ".jidomem", project="p") as memory:
        default.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")  # as it is outside of the tests
        writer = memory.writer
        for number in range(3):
            writer.submit_intent("p", fact(f"the build needs Rust 1.{number}"))
        rest = [fact(f"the build needs Rust 2.{number}") for number in range(5)]
        traces = [trace(partial(writer.submit_intent, "p", each)) for each in rest]
        yield min(traces, key=lambda each: len(each.calls))


def test_a_warm_submission_enters_few_files_and_calls(warm):
    assert warm.files <= 22
    assert len(warm.calls) <= 400
    assert warm.file_changes <= 236
    assert warm.max_depth <= 14


def follow(steps, calls):
    """Assert that *calls* enter the functions *steps* in this order."""
    at = 0
    for step in steps:
        assert step in calls[at:], f"{step} is not entered after {calls[at - 1]}"
        at = calls.index(step, at) + 1


def test_a_warm_submission_follows_the_walk_of_the_page(warm):
    steps = walk("The way of an intent")

    assert len(steps) > 15
    follow(steps, warm.calls)


def test_a_request_for_a_page_of_facts_follows_the_walk_of_the_page(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="p") as memory:
        for number in range(3):
            memory.writer.submit_intent("p", fact(f"the build needs Rust 1.{number}"))
        client = create_app(memory).test_client()
        request = trace(lambda: client.get("/projects/p/queries/facts?limit=2"))
    steps = walk("The way of a query")

    assert len(steps) > 15
    follow(steps, request.calls)


def test_a_request_for_a_recall_follows_the_walk_of_the_page(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="p", embedder=ToyEmbedder()) as memory:
        for number in range(3):
            memory.writer.submit_intent("p", fact(f"the build needs Rust 1.{number}"))
        memory.embedding.embed("p")
        client = create_app(memory).test_client()
        request = trace(lambda: client.post("/projects/p/recall", json={"query": "what does the build need?"}))
    steps = walk("The way of a recall")

    assert len(steps) > 15
    follow(steps, request.calls)
