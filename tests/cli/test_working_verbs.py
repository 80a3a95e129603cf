"""`jidomem agent working`: the working memory of an agent is shown and changed at the command line."""

import json

import pytest
from cli_world import rows, run

from jidomem.runtime.location import init


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return init(tmp_path, "p")


def test_values_and_tasks_are_shown_in_a_row_each():
    run("agent", "working", "put", "language", "en")
    run("agent", "working", "put", "limits", '{"files": 3}')
    run("agent", "working", "add", "ship", "--id", "t2")
    run("agent", "working", "add", "test", "--id", "t1", "--first")
    run("agent", "working", "done", "t2")

    task = {"id": "t1", "text": "test", "status": "open"}
    assert rows("agent", "working", "tasks") == [task]
    table = [line.split(maxsplit=2) for line in run("agent", "working", "show").stdout.splitlines()]
    assert table == [
        ["space", "at", "holds"],
        ["tasks", "0", json.dumps(task)],
        ["tasks", "1", '{"id": "t2", "text": "ship", "status": "done"}'],
        ["world", "language", "en"],
        ["world", "limits", '{"files": 3}'],
    ]


def test_a_space_with_a_single_value_is_shown_in_one_row():
    changes = [{"do": "ensure_space", "space": "count", "data": 5}, {"do": "world_put", "key": "k", "value": None}]

    assert run("agent", "working", "change", stdin=json.dumps(changes)).exit_code == 0

    assert [line.split() for line in run("agent", "working", "show").stdout.splitlines()[1:]] == [
        ["world", "k", "null"],
        ["count", "5"],
    ]


def test_an_invalid_change_is_refused_with_its_number_and_no_change_is_made():
    changes = [{"do": "world_put", "key": "k", "value": 1}, {"do": "tasks_complete", "id": "t9"}]

    refused = run("agent", "working", "change", stdin=json.dumps(changes))

    assert refused.exit_code != 0
    assert refused.stderr.startswith("error: change 2: no item of space 'tasks' has the id 't9'")
    assert "it is empty" in refused.stderr
    assert rows("agent", "working", "list") == []


def test_a_forgotten_working_memory_is_not_shown():
    run("agent", "working", "put", "language", "en", "--agent", "ana")
    assert [row["agent"] for row in rows("agent", "working", "list")] == ["ana"]

    assert run("agent", "working", "forget", "--agent", "ana").stderr.strip() == "ana no longer has a working memory"

    assert rows("agent", "working", "list") == []
    assert (
        "hint: begin with: jidomem agent working put --agent ana KEY VALUE"
        in run("agent", "working", "show", "--agent", "ana").stderr
    )
