"""`jidomem agent working`: what an agent holds, shown and changed from the command line."""

import json

import pytest
from cli_world import rows, run

from jidomem.runtime.location import init


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return init(tmp_path, "p")


def test_what_is_put_and_added_is_shown_a_row_each():
    run("agent", "working", "put", "language", "en")
    run("agent", "working", "put", "limits", '{"files": 3}')
    run("agent", "working", "add", "ship", "--id", "t2")
    run("agent", "working", "add", "test", "--id", "t1", "--first")
    run("agent", "working", "done", "t2")

    task = {"id": "t1", "text": "test", "status": "open"}
    assert rows("agent", "working", "tasks") == [task]
    shown = [line.split(maxsplit=2) for line in run("agent", "working", "show").stdout.splitlines()]
    assert shown == [
        ["space", "at", "holds"],
        ["tasks", "0", json.dumps(task)],
        ["tasks", "1", '{"id": "t2", "text": "ship", "status": "done"}'],
        ["world", "language", "en"],
        ["world", "limits", '{"files": 3}'],
    ]


def test_a_space_that_is_no_map_and_no_list_is_shown_whole():
    changes = [{"do": "ensure_space", "space": "count", "data": 5}, {"do": "world_put", "key": "k", "value": None}]

    assert run("agent", "working", "change", stdin=json.dumps(changes)).exit_code == 0

    assert [line.split() for line in run("agent", "working", "show").stdout.splitlines()[1:]] == [
        ["world", "k", "null"],
        ["count", "5"],
    ]


def test_a_change_that_cannot_be_made_is_told_by_its_number_and_none_is_made():
    changes = [{"do": "world_put", "key": "k", "value": 1}, {"do": "tasks_complete", "id": "t9"}]

    refused = run("agent", "working", "change", stdin=json.dumps(changes))

    assert refused.exit_code != 0
    assert refused.stderr.startswith("error: change 2: no item of space 'tasks' has the id 't9'")
    assert "it is empty" in refused.stderr
    assert rows("agent", "working", "list") == []


def test_what_is_forgotten_is_shown_no_more():
    run("agent", "working", "put", "language", "en", "--agent", "ana")
    assert [row["agent"] for row in rows("agent", "working", "list")] == ["ana"]

    assert run("agent", "working", "forget", "--agent", "ana").stderr.strip() == "ana no longer has a working memory"

    assert rows("agent", "working", "list") == []
    assert (
        "hint: begin with: jidomem agent working put KEY VALUE"
        in run("agent", "working", "show", "--agent", "ana").stderr
    )
