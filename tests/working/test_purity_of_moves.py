"""Every public function on an agent or a memory is pure, and increments revisions exactly."""

import ast
import copy
import inspect
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem import working
from jidomem.errors import InvalidRequest, RevisionConflict
from jidomem.working import Agent, Limits, Memory, Space, SummaryProjector, Thread, get, put, thaw, world_put
from jidomem.working.memory import NewTask

NOW = 5000
START = (
    Memory(id="mem_1", created_at=1000)
    .ensure_space("m", {"a": {"deep": [1]}, "b": {2, 3}}, now=1000)
    .ensure_space("l", [{"id": "i1", "n": [1]}, "no id"], now=1000)
    .world_put("brief", 1, ttl_ms=10, now=1000)
    .tasks_add("one", id="t1", now=1000)
    .tasks_add("two", id="t2", now=1000)
)

#: Each change: its arguments, and the revision of each space it changes (START has m and l at 0, world
#: at 1, tasks at 2); None for a removed space, "" for a change of no space.
CHANGES = {
    "space_put": (("m", Space({"z": 1}, rev=9)), {"m": 9}),
    "space_update": (("m", lambda space: Space(["other kind"])), {"m": 1}),
    "space_delete": (("m",), {"m": None}),
    "put_space": (("m", Space({"z": 1}, rev=9)), {"m": 9}),
    "update_space": (("m", lambda space: space), {"m": 1}),
    "delete_space": (("l",), {"l": None}),
    "ensure_space": (("new", {"a": [1]}), {"new": 0}),
    "put_in_space": (("m", "k", {"v": [1]}), {"m": 1}),
    "delete_from_space": (("m", "a"), {"m": 1}),
    "update_space_data": (("m", lambda data: {**data, "c": 1}), {"m": 1}),
    "append_to_space": (("l", {"id": "z"}), {"l": 1}),
    "prepend_to_space": (("l", {"id": "z"}), {"l": 1}),
    "insert_in_space": (("l", 1, {"id": "z"}), {"l": 1}),
    "remove_from_space": (("l", "i1"), {"l": 1}),
    "update_in_space": (("l", "i1", lambda item: {**item, "n": 2}), {"l": 1}),
    "world_put": (("k", {"v": [1]}), {"world": 2}),
    "world_delete": (("brief",), {"world": 2}),
    "world_update": ((lambda world: {"all": "new"},), {"world": 2}),
    "tasks_add": (("three",), {"tasks": 3}),
    "tasks_insert": ((0, "three"), {"tasks": 3}),
    "tasks_complete": (("t1",), {"tasks": 3}),
    "tasks_remove": (("t1",), {"tasks": 3}),
    "tasks_reorder": ((["t2", "t1"],), {"tasks": 3}),
    "apply_action_result": (
        ({"world": {"k": 1}, "tasks": [{"id": "t1", "text": "one", "status": "done"}]},),
        {"world": 2, "tasks": 3},
    ),
    "limited": ((Limits(max_spaces=5),), {"": None}),
    "expire": ((), {"world": 2}),
}
OPTIONS = {"tasks_add": {"id": "t3"}, "tasks_insert": {"id": "t3"}}
READS = {
    "space": ("m",),
    "has_space": ("m",),
    "get_in_space": ("m", "a"),
    "world_get": ("brief",),
    "world": (),
    "tasks": (),
    "tasks_open": (),
    "tasks_next": (),
}
OF_WHOLE_MEMORY = {
    "get": lambda agent: working.get(agent),
    "has_memory": lambda agent: working.has_memory(agent),
    "spaces": lambda agent: working.spaces(agent),
    "put": lambda agent: put(agent, Memory(id="mem_2")),
    "update": lambda agent: working.update(agent, lambda memory: memory.world_put("k", 1)),
    "ensure": lambda agent: working.ensure(agent, id="mem_2"),
    "mount": lambda agent: working.mount(agent),
    "project": lambda agent: working.project(SummaryProjector(), get(agent), Thread().append("message", {})),
}
ONLY_METHODS = {"new", "from_dict", "to_dict", "reserved_spaces"}
OTHER_FUNCTIONS = {"freeze", "thaw", "is_list", "is_map", "memory_key"}


def snapshot(memory):
    """Return the contents of a memory in plain values that share nothing with it."""
    spaces = {name: (thaw(s.data), s.rev, thaw(s.metadata)) for name, s in memory.spaces.items()}
    return (memory.id, memory.rev, spaces, memory.created_at, memory.updated_at, thaw(memory.metadata))


def test_the_tables_contain_every_public_function_and_every_method_of_a_memory():
    functions = {name for name in working.__all__ if inspect.isfunction(getattr(working, name))}
    methods = {name for name in dir(Memory) if not name.startswith("_") and callable(getattr(Memory, name))}

    assert functions == CHANGES.keys() | READS.keys() | OF_WHOLE_MEMORY.keys() | OTHER_FUNCTIONS
    assert methods == CHANGES.keys() | READS.keys() | ONLY_METHODS  # A101


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_returns_a_new_agent_and_modifies_no_argument(name):
    arguments, _ = CHANGES[name]
    agent = Agent(state={"mine": [1], "__memory__": START})
    before, own_value, passed = snapshot(START), agent.state["mine"], copy.deepcopy(arguments[1:])

    after = getattr(working, name)(agent, *arguments, now=NOW, **OPTIONS.get(name, {}))

    assert after is not agent  # A005
    assert get(after) == getattr(START, name)(*arguments, now=NOW, **OPTIONS.get(name, {}))  # A101
    assert snapshot(get(agent)) == snapshot(START) == before
    assert get(agent) is START
    assert after.state.keys() == {"mine", "__memory__"}  # A003
    assert after.state["mine"] is own_value == [1]
    assert [a for a in arguments[1:] if not callable(a)] == [a for a in passed if not callable(a)]


@pytest.mark.parametrize("name", OF_WHOLE_MEMORY)
def test_a_function_on_a_whole_memory_modifies_no_argument(name):
    agent = Agent(state={"mine": [1], "__memory__": START})
    before = snapshot(START)

    OF_WHOLE_MEMORY[name](agent)

    assert agent.state == {"mine": [1], "__memory__": START}  # A005
    assert snapshot(START) == before


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_increments_only_the_revisions_of_the_memory_and_of_changed_spaces(name):
    arguments, moved = CHANGES[name]

    after = getattr(START, name)(*arguments, now=NOW)

    revisions = {space_name: space.rev for space_name, space in START.spaces.items()} | moved
    expected = {space_name: rev for space_name, rev in revisions.items() if rev is not None}
    assert {space_name: space.rev for space_name, space in after.spaces.items()} == expected  # A018 A019
    assert after.rev == START.rev + len(moved)  # A034
    assert (after.created_at, after.updated_at) == (1000, NOW)
    assert after.id == "mem_1"


@pytest.mark.parametrize("name", READS)
def test_reading_changes_nothing(name):
    agent = put(Agent(), START)
    before = snapshot(START)

    getattr(working, name)(agent, *READS[name])
    getattr(START, name)(*READS[name])
    working.spaces(agent)
    get(agent)
    working.has_memory(agent)

    assert get(agent) is START  # A036
    assert snapshot(START) == before


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_with_an_outdated_memory_revision_is_refused(name):
    agent = put(Agent(), START)
    for stale in (START.rev - 1, START.rev + 1):
        with pytest.raises(
            RevisionConflict, match=rf"^the memory is at revision {START.rev}, not at {stale}"
        ) as refusal:
            getattr(working, name)(agent, *CHANGES[name][0], expected_rev=stale, now=NOW)

    assert get(agent) is START  # A035
    assert (refusal.value.code, refusal.value.http_status, refusal.value.exit_code) == ("revision_conflict", 409, 5)
    assert refusal.value.hint == "read it again, and repeat the change on the present state"
    assert get(getattr(working, name)(agent, *CHANGES[name][0], expected_rev=START.rev, now=NOW)).rev > START.rev


OF_ONE_SPACE = [name for name in CHANGES if name not in ("ensure_space", "apply_action_result", "limited", "expire")]


@pytest.mark.parametrize("name", OF_ONE_SPACE)
def test_a_change_with_an_outdated_space_revision_is_refused(name):
    arguments, moved = CHANGES[name]
    space_name = next(iter(moved))
    rev = START.spaces[space_name].rev

    with pytest.raises(RevisionConflict, match=rf"^space '{space_name}' is at revision {rev}, not at {rev + 1}"):
        getattr(START, name)(*arguments, expected_space_rev=rev + 1)

    assert getattr(START, name)(*arguments, expected_space_rev=rev).rev == START.rev + 1  # A035


def test_the_revision_of_a_space_is_independent_of_writes_to_others():
    revision = START.spaces["m"].rev
    after = START.world_put("k", 1).tasks_add("x").append_to_space("l", 1)

    assert after.put_in_space("m", "k", 1, expected_space_rev=revision).spaces["m"].rev == revision + 1  # A019 A035


@pytest.mark.parametrize("name", ["apply_action_result", "limited", "expire"])
def test_a_change_of_several_spaces_refuses_a_space_revision(name):
    with pytest.raises(InvalidRequest, match=r"^this change is not about one space") as refusal:
        getattr(START, name)(*CHANGES[name][0], expected_space_rev=0)

    assert refusal.value.hint == "give the revision of the memory: expected_rev="


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("revision", ["3", 1.0, True])
def test_an_expected_revision_that_is_no_whole_number_is_refused(name, revision):
    with pytest.raises(InvalidRequest, match=r"^an expected revision is a whole number, not"):
        getattr(START, name)(*CHANGES[name][0], expected_rev=revision)


@pytest.mark.parametrize("name", CHANGES)
def test_an_unknown_option_is_refused_with_the_known_options(name):
    move = getattr(START, name)
    with pytest.raises(TypeError, match=rf"^{move.__name__}\(\) takes no 'surprise': it takes ") as refusal:
        move(*CHANGES[name][0], surprise=1)

    takes = set(str(refusal.value).partition("it takes ")[2].split(", "))
    assert {"expected_rev", "now"} <= takes <= {*inspect.signature(move).parameters, *NewTask.__annotations__}


def test_the_options_of_a_new_task_and_of_agent_functions_are_named_in_a_refusal():
    with pytest.raises(TypeError, match=r"^tasks_add\(\) takes no 'statuss': it takes text, .*id, status, new_id$"):
        START.tasks_add("ship", statuss="open")
    with pytest.raises(TypeError, match=r"^world_put\(\) takes no 'expectd_rev': it takes key, value, ttl_ms, "):
        world_put(put(Agent(), START), "a", 1, expectd_rev=3)


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "ensure_space"])
def test_an_invalid_time_is_refused(name):
    with pytest.raises(
        InvalidRequest, match=r"^a moment is a whole number of milliseconds since the epoch, not 'noon'"
    ):
        getattr(START, name)(*CHANGES[name][0], now="noon")


def test_put_and_update_of_a_whole_memory_accept_an_expected_revision():
    agent, calls = put(Agent(), START), []

    with pytest.raises(RevisionConflict):
        put(agent, Memory(), expected_rev=START.rev + 1)
    with pytest.raises(RevisionConflict):
        working.update(agent, calls.append, expected_rev=START.rev + 1)
    with pytest.raises(RevisionConflict, match=r"^the memory does not exist, not at 0"):
        put(Agent(), Memory(), expected_rev=0)

    assert calls == []
    assert get(put(agent, Memory(id="mem_2"), expected_rev=START.rev)).id == "mem_2"
    assert get(working.update(agent, lambda m: m.world_put("k", 1), expected_rev=START.rev)).rev == START.rev + 1


def test_chained_changes_of_an_agent_and_of_a_memory_are_equal():
    agent = put(Agent(), START)
    stepwise = working.tasks_add(world_put(world_put(agent, "a", 1, now=NOW), "b", 2, now=NOW), "x", id="t", now=NOW)

    fluent = START.world_put("a", 1, now=NOW).world_put("b", 2, now=NOW).tasks_add("x", id="t", now=NOW)

    assert get(stepwise) == fluent  # A007


PACKAGE = Path(working.__file__).parent
PURE_MODULES = {
    "__future__",
    "collections",
    "copy",
    "dataclasses",
    "datetime",
    "difflib",
    "functools",
    "json",
    "math",
    "re",
    "tomllib",
    "typing",
}
#: The modules of working memory; the other tiers use a clock.
SPACES = ("__init__", "agent", "container", "memory", "thread")
OWN_MODULES = {"jidomem.errors", "jidomem.base.json_values", "jidomem.records.directive"}


@pytest.mark.parametrize(
    "path",
    [*(PACKAGE / f"{name}.py" for name in SPACES), PACKAGE.parent / "base" / "json_values.py"],
    ids=lambda path: path.name,
)
def test_the_modules_of_working_memory_import_and_call_only_pure_functions(path):
    tree = ast.parse(path.read_text("utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            named |= {f"{node.module}.{alias.name}" for alias in node.names}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}

    own_modules = {name for name in named if name.startswith("jidomem.") and name.split(".")[1] != "working"}
    assert {name.split(".")[0] for name in named} <= PURE_MODULES | {"jidomem"}  # A006
    minted = {"jidomem.base", "jidomem.base.clock"} if path.name == "container.py" else set()  # for a new memory
    assert {name for name in own_modules if not name.startswith((*OWN_MODULES, *minted))} == set()
    assert called.isdisjoint({"open", "print", "input", "exec", "eval", "__import__"})


def test_the_same_changes_with_the_same_clock_and_ids_give_the_same_memory():
    def moves():
        memory = Memory.new(now=1, new_id=lambda: "a")
        return memory.tasks_add("x", now=2, new_id=lambda: "b").world_put("k", 1, now=3)

    assert moves() == moves()  # A006
    assert (moves().id, moves().tasks()[0]["id"], moves().updated_at) == ("mem_a", "task_b", 3)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "c"])
ANY_CHANGE = st.one_of(
    st.tuples(st.just("world_put"), KEYS, VALUES),
    st.tuples(st.just("world_delete"), KEYS),
    st.tuples(st.just("put_in_space"), st.just("m"), KEYS, VALUES),
    st.tuples(st.just("append_to_space"), st.just("l"), VALUES),
    st.tuples(st.just("prepend_to_space"), st.just("l"), VALUES),
    st.tuples(st.just("insert_in_space"), st.just("l"), st.integers(0, 5), VALUES),
    st.tuples(st.just("ensure_space"), st.sampled_from(["m", "x", "rag:cache"]), VALUES),
    st.tuples(st.just("tasks_add"), TEXTS),
    st.tuples(st.just("tasks_complete"), st.just("t1")),
)


@settings(max_examples=60)
@given(st.lists(ANY_CHANGE, max_size=12))
def test_the_revision_of_a_memory_is_the_number_of_its_changes_and_changes_are_pure(moves):
    memory, mutations = START, 0
    for name, *arguments in moves:
        before = snapshot(memory)
        after = getattr(memory, name)(*arguments, now=NOW)
        assert snapshot(memory) == before
        changed = snapshot(after)[2] != before[2] or after is not memory
        assert after.rev == memory.rev + changed
        mutations += changed
        memory = after

    assert memory.rev == START.rev + mutations  # A034
    assert sum(space.rev for space in memory.spaces.values()) <= memory.rev


@settings(max_examples=60)
@given(st.dictionaries(TEXTS.filter(bool), VALUES, max_size=4), VALUES)
def test_a_memory_is_equal_after_conversion_to_json_and_back(contents, metadata):
    spaces = {name: Space(data, rev=3, metadata={"x": data}) for name, data in contents.items()}
    memory = Memory(id="mem_1", rev=7, metadata={"about": metadata}, spaces=spaces, created_at=5, updated_at=9)

    restored = Memory.from_dict(json.loads(json.dumps(memory.to_dict())))

    assert restored == memory  # A038
    assert repr(restored) == repr(memory)  # 1, 1.0 and True are equal but distinct
