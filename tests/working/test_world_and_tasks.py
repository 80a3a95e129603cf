"""The world and the tasks of an agent: their functions equal the generic operations on two spaces."""

import itertools

import pytest

from jidomem import working as package
from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf import vocab
from jidomem.working import (
    FACTS,
    POINTERS,
    SCRATCH,
    SUMMARY,
    TASK_STATUSES,
    TO_ONTOLOGY,
    TOOL_STATE,
    WORLD_KEYS,
    Agent,
    Memory,
    Space,
    append_to_space,
    delete_from_space,
    ensure,
    get,
    get_in_space,
    insert_in_space,
    put,
    put_in_space,
    remove_from_space,
    space_put,
    tasks,
    tasks_add,
    tasks_complete,
    tasks_insert,
    tasks_next,
    tasks_open,
    tasks_remove,
    tasks_reorder,
    update_in_space,
    update_space_data,
    world,
    world_delete,
    world_get,
    world_put,
    world_update,
)

START = put(Agent(), Memory(id="mem_1", created_at=1))


def agent_with_tasks(*names):
    """Return an agent with one open task for each name, as id and text."""
    agent = START
    for name in names:
        agent = tasks_add(agent, name, id=name, now=1)
    return agent


def order_of(agent):
    return "".join(task["id"] for task in tasks(agent))


def test_keys_of_the_world_are_put_read_and_deleted():
    agent = world_put(world_put(START, "a", 1), "b", [2])

    assert world_get(agent, "a") == 1  # A078 A079
    assert world_get(agent, "c") is None
    assert world_get(agent, "c", 7) == 7
    assert world_get(Agent(), "a", 7) == 7
    assert world(world_delete(agent, "a")) == {"b": [2]}  # A080
    assert world_delete(agent, "c") is agent


def test_the_whole_world_is_read_and_transformed():
    agent = world_update(world_put(START, "a", 1), lambda data: {**data, "b": data["a"] + 1})

    assert world(agent) == {"a": 1, "b": 2}  # A081 A082
    assert world(Agent()) == {}
    with pytest.raises(InvalidRequest, match=r"^the function for map space 'world' returned None"):
        world_update(agent, lambda data: None)


def test_the_world_functions_equal_the_operations_on_map_spaces():
    agent = world_put(START, "a", 1, now=5)

    assert world_put(START, "a", 1, now=5) == put_in_space(START, "world", "a", 1, now=5)  # A083
    assert world_put(START, "a", 1, now=5, ttl_ms=9) == put_in_space(START, "world", "a", 1, now=5, ttl_ms=9)
    assert world_delete(agent, "a", now=6) == delete_from_space(agent, "world", "a", now=6)
    fun = lambda data: {"b": data["a"]}  # noqa: E731
    assert world_update(agent, fun, now=6) == update_space_data(agent, "world", fun, now=6)
    assert world_get(agent, "a") == get_in_space(agent, "world", "a")


@pytest.mark.parametrize(
    "operation",
    [
        lambda a: world_get(a, "k"),
        lambda a: world(a),
        lambda a: world_put(a, "k", 1),
        lambda a: world_delete(a, "k"),
        lambda a: world_update(a, dict),
    ],
)
def test_a_world_that_is_no_map_is_refused(operation):
    with pytest.raises(InvalidRequest, match=r"^space 'world' is not a map space"):  # A083
        operation(space_put(START, "world", Space([])))


def test_the_standard_world_keys_are_named_with_their_purpose():
    assert (FACTS, SCRATCH, TOOL_STATE, SUMMARY, POINTERS) == ("facts", "scratch", "tool_state", "summary", "pointers")
    assert list(WORLD_KEYS) == [FACTS, SCRATCH, TOOL_STATE, SUMMARY, POINTERS]  # A085
    assert all(len(purpose) > 20 for purpose in WORLD_KEYS.values())


def test_the_standard_world_keys_are_not_predefined_and_accept_any_value():
    assert world(ensure(Agent())) == {}  # A084

    for key, value in itertools.product([*WORLD_KEYS, "mine"], [None, 5, "text", [1], {"a": 1}]):
        assert world(world_put(START, key, value)) == {key: value}


def test_pointers_name_stores_outside_the_memory():
    agent = world_put(START, POINTERS, {"semantic_index": "agent_123_vectors"})

    assert world_get(agent, "pointers") == {"semantic_index": "agent_123_vectors"}  # A086
    assert set(get(agent).spaces) == {"tasks", "world"}


def test_a_task_has_an_id_a_text_and_a_status():
    agent = tasks_add(START, "ship", id="t1")

    assert tasks(agent) == [{"id": "t1", "text": "ship", "status": "open"}]  # A087 A090


@pytest.mark.parametrize("add", [tasks_add, lambda agent, *a, **o: tasks_insert(agent, 0, *a, **o)])
def test_a_new_task_has_the_given_id_status_and_time(add):  # A091
    later = get(START).updated_at + 5

    agent = add(START, "ship", id="t1", status="done", now=later)

    assert tasks(agent) == [{"id": "t1", "text": "ship", "status": "done"}]
    assert get(agent).updated_at == later
    assert get(add(agent, "sail", now=later + 1)).updated_at == later + 1


def test_each_added_task_is_appended_with_a_distinct_id():
    agent = START
    for number in range(50):
        agent = tasks_add(agent, f"task {number}")

    assert [task["text"] for task in tasks(agent)] == [f"task {number}" for number in range(50)]  # A088 A090
    ids = [task["id"] for task in tasks(agent)]
    assert len(set(ids)) == 50
    assert all(each.startswith("task_") and len(each) > len("task_") for each in ids)
    assert tasks(tasks_add(START, "x", new_id=lambda: "7"))[0]["id"] == "task_7"


def test_all_tasks_are_listed_in_order_with_completed_ones():
    agent = tasks_complete(agent_with_tasks("a", "b", "c"), "b")

    assert [(task["id"], task["status"]) for task in tasks(agent)] == [("a", "open"), ("b", "done"), ("c", "open")]
    assert tasks(Agent()) == []  # A089


@pytest.mark.parametrize("add", [tasks_add, lambda agent, *a, **o: tasks_insert(agent, 0, *a, **o)])
def test_a_used_task_id_is_refused(add):
    agent = agent_with_tasks("a")

    with pytest.raises(InvalidRequest, match=r"^there is a task 'a' already") as refusal:  # A091
        add(agent, "again", id="a")

    assert refusal.value.hint == "leave the id out for a new one"
    assert tasks(agent) == [{"id": "a", "text": "a", "status": "open"}]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x", {"status": "blocked"}, "a task is open or done, not 'blocked'"),
        ("x", {"status": None}, "a task is open or done, not None"),
        (5, {}, "the text of a task is a text, not 5"),
        (None, {}, "the text of a task is a text, not None"),
        ("x", {"id": 5}, "an id is a text of at least one character, not 5"),
        ("x", {"id": ""}, "an id is a text of at least one character, not ''"),
    ],
)
def test_an_invalid_task_is_refused(text, options, message):
    for add in (lambda: tasks_add(START, text, **options), lambda: tasks_insert(START, 0, text, **options)):
        with pytest.raises(InvalidRequest, match=rf"^{message}"):  # A100
            add()


def test_the_generic_operations_do_not_validate_tasks():
    agent = append_to_space(START, "tasks", {"id": "t", "status": "blocked"})

    assert tasks(agent) == [{"id": "t", "status": "blocked"}]  # A100
    assert tasks_open(append_to_space(agent, "tasks", "no task at all")) == []
    with pytest.raises(InvalidRequest, match=r"^a task has id, text and status and nothing else"):
        tasks_complete(agent, "t")


@pytest.mark.parametrize(("index", "expected"), [(0, "nab"), (1, "anb"), (2, "abn"), (9, "abn")])
def test_a_task_is_inserted_at_its_index(index, expected):
    agent = tasks_insert(agent_with_tasks("a", "b"), index, "new", id="n")

    assert order_of(agent) == expected  # A092 A088
    with pytest.raises(InvalidRequest, match=r"^an index is a whole number from 0"):
        tasks_insert(agent, -1, "x")


def test_a_task_is_completed_in_place():
    agent = agent_with_tasks("a", "b", "c")

    after = tasks_complete(agent, "b")

    assert tasks(after)[1] == {"id": "b", "text": "b", "status": "done"}  # A093
    assert order_of(after) == "abc"
    assert tasks_complete(after, "b") is after


def test_a_task_is_removed():
    assert order_of(tasks_remove(agent_with_tasks("a", "b", "c"), "b")) == "ac"  # A094


@pytest.mark.parametrize("operation", [tasks_complete, tasks_remove, lambda a, i: tasks_reorder(a, [i])])
def test_an_unknown_task_is_refused(operation):
    with pytest.raises(NotFound, match="has the id 'x'"):
        operation(agent_with_tasks("a"), "x")


def test_the_next_task_is_the_first_open_one():
    agent = agent_with_tasks("a", "b")

    assert tasks_next(agent)["id"] == "a"  # A095
    assert tasks_next(tasks_complete(agent, "a"))["id"] == "b"
    assert tasks_next(tasks_complete(tasks_complete(agent, "a"), "b")) is None
    assert tasks_next(Agent()) is None


def test_open_tasks_are_listed_in_order():
    agent = tasks_complete(agent_with_tasks("a", "b", "c"), "b")

    assert [task["id"] for task in tasks_open(agent)] == ["a", "c"]  # A096
    assert tasks_open(Agent()) == []


@pytest.mark.parametrize(
    ("ids", "expected"), [(["c", "a", "b"], "cabd"), (["d"], "dabc"), ([], "abcd"), (("b", "a"), "bacd")]
)
def test_tasks_are_reordered_and_unnamed_ones_follow(ids, expected):
    assert order_of(tasks_reorder(agent_with_tasks("a", "b", "c", "d"), ids)) == expected  # A097 A098


def test_an_unchanged_order_changes_nothing():
    agent = agent_with_tasks("a", "b", "c")

    assert tasks_reorder(agent, ["a", "b"]) is agent
    assert tasks_reorder(agent, []) is agent


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "x"], "no item of the tasks has the id 'x'"),
        (["a", "b", "a"], "'a' is repeated in the order of the tasks"),
        ("ab", "the order of the tasks is a list of ids, not 'ab'"),
        (5, "the order of the tasks is a list of ids, not 5"),
    ],
)
def test_an_order_with_unknown_or_repeated_ids_is_refused(ids, message):
    agent = agent_with_tasks("a", "b")

    with pytest.raises((InvalidRequest, NotFound), match=rf"^{message}"):  # A098
        tasks_reorder(agent, ids)

    assert order_of(agent) == "ab"


def test_the_task_functions_equal_the_operations_on_list_spaces():
    agent = agent_with_tasks("a", "b")
    task = {"id": "n", "text": "new", "status": "open"}
    complete = lambda item: {**item, "status": "done"}  # noqa: E731

    assert tasks_add(agent, "new", id="n", now=5) == append_to_space(agent, "tasks", task, now=5)  # A099
    assert tasks_insert(agent, 1, "new", id="n", now=5) == insert_in_space(agent, "tasks", 1, task, now=5)
    assert tasks_complete(agent, "a", now=5) == update_in_space(agent, "tasks", "a", complete, now=5)
    assert tasks_remove(agent, "a", now=5) == remove_from_space(agent, "tasks", "a", now=5)
    assert tasks(agent) is get(agent).spaces["tasks"].data


@pytest.mark.parametrize(
    "operation",
    [
        tasks,
        tasks_open,
        tasks_next,
        lambda a: tasks_add(a, "x"),
        lambda a: tasks_insert(a, 0, "x"),
        lambda a: tasks_complete(a, "x"),
        lambda a: tasks_remove(a, "x"),
        lambda a: tasks_reorder(a, []),
    ],
)
def test_tasks_that_are_no_list_are_refused(operation):
    with pytest.raises(InvalidRequest, match=r"^space 'tasks' is not a list space"):  # A099
        operation(space_put(START, "tasks", Space({})))


def test_a_memory_has_the_world_and_task_functions_as_methods():
    memory = Memory.world_put(Memory(id="m", created_at=1), "summary", "so far", now=5)

    assert memory == get(world_put(put(Agent(), Memory(id="m", created_at=1)), "summary", "so far", now=5))  # A101
    for name in package.__all__:
        if name.startswith(("world_", "tasks_")):
            assert callable(getattr(Memory, name)), name


def test_the_statuses_of_a_task_correspond_to_ontology_terms():
    assert TO_ONTOLOGY == {"open": "Planned", "done": "Completed"}
    assert set(TO_ONTOLOGY) == set(TASK_STATUSES)  # A087
    assert set(TO_ONTOLOGY.values()) < set(vocab.TASK_STATUS)
