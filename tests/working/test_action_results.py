"""Memory in an action: read from the state of its context, and changed by its result."""

from types import SimpleNamespace

import pytest

from jidomem.errors import InvalidRequest
from jidomem.working import Agent, Memory, apply_action_result, get, put, space_put, tasks_add, world, world_put
from jidomem.working import Space as TheSpace

START = put(
    Agent(),
    Memory(id="m", created_at=1)
    .world_put("a", 1, now=1)
    .world_put("b", 2, now=1)
    .tasks_add("one", id="t1", now=1)
    .tasks_add("two", id="t2", now=1),
)


def test_an_action_reads_memory_from_its_context_state():
    context = SimpleNamespace(state=world_put(Agent(), "language", "en").state)

    assert context.state["__memory__"].spaces["world"].data == {"language": "en"}  # A102
    assert context.state["__memory__"].spaces.world.data["language"] == "en"
    assert context.state["__memory__"].spaces.tasks.data == []


def test_the_result_of_an_action_is_merged_and_increments_each_space_revision_once():
    result = {
        "world": {"b": 3, "c": 4},
        "tasks": [{"id": "t2", "text": "two", "status": "done"}, {"id": "t3", "text": "three", "status": "open"}],
    }

    after = get(apply_action_result(START, result, now=9))

    assert after.world() == {"a": 1, "b": 3, "c": 4}  # A103
    assert [(t["id"], t["status"]) for t in after.tasks()] == [("t1", "open"), ("t2", "done"), ("t3", "open")]
    assert (after.spaces.world.rev, after.spaces.tasks.rev, after.rev, after.updated_at) == (3, 3, 6, 9)


@pytest.mark.parametrize("result", [{}, {"world": {}}, {"tasks": []}, {"tasks": (), "world": {}}])
def test_an_empty_result_changes_nothing(result):
    assert apply_action_result(START, result) is START


def test_a_result_may_have_only_world_or_only_tasks():
    assert get(apply_action_result(START, {"world": {"z": 1}})).rev == get(START).rev + 1
    after = get(apply_action_result(START, {"tasks": ({"id": "t1", "text": "1", "status": "done"},)}))
    assert after.rev == get(START).rev + 1
    assert after.tasks()[0] == {"id": "t1", "text": "1", "status": "done"}


def test_an_agent_without_memory_gets_one_from_its_first_result():
    assert world(apply_action_result(Agent(), {"world": {"a": 1}})) == {"a": 1}


def test_a_key_in_a_result_loses_its_expiry():
    agent = world_put(START, "scratch", "x", ttl_ms=10, now=0)

    assert get(apply_action_result(agent, {"world": {"scratch": "y"}})).world(now=50)["scratch"] == "y"


def test_items_of_the_task_space_without_a_matching_id_are_left_unchanged():
    agent = space_put(START, "tasks", TheSpace(["note", {"id": 5}, {"id": "t1"}]))

    after = apply_action_result(agent, {"tasks": [{"id": "t1", "text": "1", "status": "open"}]})

    assert get(after).tasks() == ["note", {"id": 5}, {"id": "t1", "text": "1", "status": "open"}]


TASK = {"id": "t", "text": "x", "status": "open"}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([], r"the result of an action has world and tasks, not \[\]"),
        ({"answer": 1, "world": {}}, "the result of an action has world and tasks, not 'answer'"),
        ({"world": []}, r"the world in the result of an action is a mapping, not \[\]"),
        ({"world": None}, "the world in the result of an action is a mapping, not None"),
        ({"tasks": {}}, "the tasks in the result of an action are a list, not {}"),
        ({"tasks": None}, "the tasks in the result of an action are a list, not None"),
        ({"tasks": ["x"]}, "a task has id, text and status and nothing else, not 'x'"),
        ({"tasks": [{**TASK, "extra": 1}]}, "a task has id, text and status and nothing else"),
        ({"tasks": [{"id": "t", "text": "x"}]}, "a task has id, text and status and nothing else"),
        ({"tasks": [{**TASK, "status": "later"}]}, "a task is open or done, not 'later'"),
        ({"tasks": [{**TASK, "id": 5}]}, "the id of a task is a text, not 5"),
        ({"tasks": [{**TASK, "id": ""}]}, "the id of a task has at least one character"),
        ({"tasks": [{**TASK, "text": None}]}, "the text of a task is a text, not None"),
        ({"tasks": [TASK, TASK]}, "two of the tasks given have the same id"),
    ],
)
def test_an_invalid_result_is_refused_and_changes_nothing(result, message):
    agent = tasks_add(START, "x", id="t")
    before = get(agent)

    with pytest.raises(InvalidRequest, match=rf"^{message}"):
        apply_action_result(agent, {"world": {"lost": 1}, **result} if isinstance(result, dict) else result)

    assert get(agent) is before  # A103
