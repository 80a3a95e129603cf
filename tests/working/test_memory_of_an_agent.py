"""The memory of an agent: its place in the state, and put, get, update and ensure."""

import collections
import copy
import pickle
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType, SimpleNamespace

import pytest

from jidomem import working
from jidomem.errors import InvalidRequest
from jidomem.working import (
    MEMORY_KEY,
    Agent,
    Memory,
    ensure,
    get,
    has_memory,
    memory_key,
    put,
    tasks_add,
    update,
    world_get,
    world_put,
)

MEMORY = Memory(id="mem_1", created_at=1000)


def test_memory_is_stored_under_the_reserved_key_of_the_state():
    agent = put(Agent(), MEMORY)

    assert agent == Agent(state={"__memory__": MEMORY})  # A001 A040
    assert memory_key() == MEMORY_KEY == "__memory__"  # A002


def test_other_keys_of_the_state_are_unchanged():
    thread, values = object(), [1]
    state = {"__thread__": thread, "__strategy__": {"a": 1}, "__parent__": None, "mine": values}
    agent = Agent(state=state)

    for step in (ensure, lambda a: world_put(a, "plan", [1]), lambda a: tasks_add(a, "go")):
        agent = step(agent)

    assert {key: content for key, content in agent.state.items() if key != MEMORY_KEY} == state  # A003 A004
    assert agent.state["__thread__"] is thread  # A009
    assert agent.state["mine"] is values


def test_get_returns_the_memory_or_the_default():
    assert get(Agent()) is None
    assert get(Agent(), "none yet") == "none yet"
    assert get(Agent(state={MEMORY_KEY: None}), 7) == 7
    assert get(put(Agent(), MEMORY), "none yet") is MEMORY  # A039


def test_update_puts_the_result_of_the_function():
    arguments = []

    def fun(memory):
        arguments.append(memory)
        return MEMORY if memory is None else memory.world_put("a", 1)

    agent = update(update(Agent(), fun), fun)

    assert arguments == [None, MEMORY]  # A041
    assert get(agent).world() == {"a": 1}


def test_ensure_creates_a_memory_with_both_built_in_spaces_once():
    agent = ensure(Agent(), id="mem_mine", metadata={"of": "ana"}, now=5)

    memory = get(agent)
    assert set(memory.spaces) == {"tasks", "world"}  # A042
    assert (memory.id, memory.metadata, memory.created_at) == ("mem_mine", {"of": "ana"}, 5)  # A044
    assert ensure(agent, id="mem_other", metadata={}, now=9) is agent  # A043


@pytest.mark.parametrize(
    "move",
    [
        partial(working.ensure_space, name="log", default_data=[]),
        partial(working.space_put, name="log", space=working.Space({})),
        partial(working.limited, limits=working.Limits(max_spaces=3)),
        partial(working.apply_action_result, result={"world": {"a": 1}}),
        partial(working.world_put, key="a", value=1),
        partial(working.tasks_add, text="ship"),
    ],
    ids=lambda move: move.func.__name__,
)
def test_a_memory_created_by_a_change_has_the_time_of_the_change(move):
    assert get(move(Agent(), now=5)).created_at == 5


def test_ensure_uses_a_custom_id_source():
    assert get(ensure(Agent(), new_id=lambda: "7")).id == "mem_7"


def test_has_memory_is_true_only_with_a_memory():
    assert has_memory(Agent()) is False
    assert has_memory(Agent(state={MEMORY_KEY: None})) is False
    assert has_memory(ensure(Agent())) is True  # A045


class Plain:
    def __init__(self, state):
        self.state, self.made = state, True


class Slotted:
    __slots__ = ("state",)

    def __init__(self, state):
        self.state = state


@dataclass(frozen=True, slots=True)
class Frozen:
    state: dict
    name: str = "f"
    counted: int = field(init=False, default=3)


@dataclass
class Loose:
    state: dict


class Copied(Plain):
    """Like a pydantic model."""

    def model_copy(self, *, update):
        copied = Copied(update["state"])
        copied.copied = True
        return copied


Named = collections.namedtuple("Named", ["state", "name"])


@pytest.mark.parametrize(
    "agent",
    [Plain({}), Slotted({}), Frozen({}), Loose({}), Copied({}), Named({}, "n"), SimpleNamespace(state={}), Agent()],
    ids=lambda agent: type(agent).__name__,
)
def test_the_functions_accept_any_object_with_a_mapping_named_state(agent):
    after = world_put(agent, "a", 1)

    assert type(after) is type(agent)  # A008
    assert after is not agent
    assert world_get(after, "a") == 1
    assert agent.state == {}  # A005


def test_an_agent_keeps_its_other_attributes():
    assert world_put(Frozen({}, "ana"), "a", 1).name == "ana"
    assert world_put(Frozen({}), "a", 1).counted == 3
    assert world_put(Plain({}), "a", 1).made
    assert world_put(Named({}, "n"), "a", 1).name == "n"
    assert world_put(Copied({}), "a", 1).copied


@pytest.mark.parametrize(
    "state",
    [
        {"k": 1},
        collections.OrderedDict(k=1),
        collections.defaultdict(list, k=1),
        collections.UserDict(k=1),
        MappingProxyType({"k": 1}),
        Memory().world_put("k", 1).world(),
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_state_keeps_its_mapping_type(state):
    after = world_put(Plain(state), "a", 1).state

    assert type(after) is type(state)
    assert (after["k"], dict(state)) == (1, {"k": 1})


class Odd(collections.abc.Mapping):
    """A mapping that cannot be copied."""

    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


def test_a_state_that_cannot_be_copied_is_refused():
    with pytest.raises(InvalidRequest, match=r"^a Odd as state cannot be copied with a memory in it: ") as refusal:
        world_put(Plain(Odd()), "a", 1)

    assert refusal.value.hint == "use a dict"


class Guarded(Plain):
    """An agent whose state is a property."""

    @property
    def state(self):
        return self._held

    @state.setter
    def state(self, held):
        self._held = held


def test_a_state_property_is_set_only_on_the_copy():
    agent = Guarded({})

    assert world_get(world_put(agent, "a", 1), "a") == 1
    assert agent.state == {}


def test_an_agent_has_an_id_and_its_own_state_and_is_immutable():
    assert (Agent().id, Agent().state) == ("agent", {})
    assert Agent().state is not Agent().state
    with pytest.raises(AttributeError):
        Agent().id = "x"


class Fixed:
    @property
    def state(self):
        return {}


@pytest.mark.parametrize(
    ("agent", "detail", "hint"),
    [
        (
            object(),
            "an agent has a mapping named state, and this object has none",
            "use jidomem.working.Agent(state={...}), or add one to your class",
        ),
        (
            SimpleNamespace(state=[]),
            "an agent has a mapping named state, and this SimpleNamespace has none",
            "use jidomem.working.Agent(state={...}), or add one to your class",
        ),
        (
            Fixed(),
            "the state of a Fixed cannot be set on a copy of it",
            "make state a plain attribute or field of it",
        ),
        (
            Agent(state={MEMORY_KEY: {"id": "x"}}),
            "state['__memory__'] is a dict, not a Memory",
            "put one there: put(agent, Memory.from_dict(stored)) for one stored as JSON",
        ),
    ],
)
def test_an_invalid_agent_is_refused_with_a_hint(agent, detail, hint):
    with pytest.raises(InvalidRequest) as refusal:
        world_put(agent, "a", 1)

    assert (refusal.value.detail, refusal.value.hint) == (detail, hint)


@pytest.mark.parametrize("memory", [None, {}, "x"])
def test_an_invalid_memory_is_not_put(memory):
    with pytest.raises(InvalidRequest, match=r"^the memory of an agent is a Memory, not"):
        put(Agent(), memory)
    with pytest.raises(InvalidRequest):
        update(Agent(), lambda _: memory)


def test_an_agent_is_copied_and_pickled_with_its_memory():
    agent = world_put(Agent(), "a", {"b": [1]})

    assert copy.deepcopy(agent) == agent
    assert copy.copy(agent) == agent
    assert pickle.loads(pickle.dumps(agent)) == agent
    assert pickle.loads(pickle.dumps(get(agent))).world_put("c", 2).spaces.world.data == {"a": {"b": [1]}, "c": 2}
