"""Named spaces of an agent: put, update, delete and ensure, names and limits."""

import pytest

from jidomem.base import clock
from jidomem.errors import InvalidRequest, NotFound, TooLarge
from jidomem.working import (
    Agent,
    Limits,
    Memory,
    Space,
    append_to_space,
    apply_action_result,
    delete_from_space,
    delete_space,
    ensure,
    ensure_space,
    expire,
    get,
    get_in_space,
    has_memory,
    has_space,
    insert_in_space,
    limited,
    prepend_to_space,
    put_in_space,
    put_space,
    space,
    space_delete,
    space_put,
    space_update,
    spaces,
    tasks_add,
    tasks_insert,
    tasks_reorder,
    update_space,
    update_space_data,
    world,
    world_delete,
    world_get,
    world_put,
    world_update,
)


def test_space_returns_the_space_of_a_name_or_none():
    agent = ensure_space(Agent(), "plan", [1])

    assert space(agent, "plan") == Space([1])  # A046
    assert space(agent, "other") is None
    assert space(Agent(), "world") is None


def test_spaces_are_accessible_by_name_and_by_attribute():
    agent = ensure_space(Agent(), "plan", [1])

    assert spaces(agent) == {"tasks": Space([]), "world": Space({}), "plan": Space([1])}  # A056
    assert spaces(Agent()) == {}
    assert spaces(agent).plan == Space([1])
    with pytest.raises(AttributeError, match=r"^there is no space 'goals'; there are 'tasks', 'world', 'plan'"):
        _ = spaces(agent).goals


def test_has_space_is_true_only_for_an_existing_space():
    agent = ensure_space(Agent(), "plan", [])

    assert has_space(agent, "plan") is True  # A057
    assert has_space(agent, "other") is False
    assert has_space(Agent(), "world") is False


def test_a_space_is_put_with_its_revision():
    agent = space_put(Agent(), "plan", Space([1], rev=5))
    assert space(agent, "plan") == Space([1], rev=5)  # A047 A048
    assert get(agent).rev == 1

    agent = space_put(agent, "plan", Space({}, rev=2))
    assert space(agent, "plan") == Space({}, rev=2)
    assert get(agent).rev == 2


@pytest.mark.parametrize("space_", [[], {"data": []}, None])
def test_an_invalid_space_is_not_put(space_):
    with pytest.raises(InvalidRequest, match=r"^'plan' must be a Space, not") as refusal:
        space_put(Agent(), "plan", space_)

    assert refusal.value.hint == "create one: Space(data)"


def test_a_space_is_updated_by_a_function_and_both_revisions_are_incremented():
    agent = space_put(Agent(), "plan", Space([1], rev=5))

    after = space_update(agent, "plan", lambda s: Space([*s.data, 2], rev=99, metadata={"by": "me"}))

    assert space(after, "plan") == Space([1, 2], rev=6, metadata={"by": "me"})  # A049
    assert get(after).rev == get(agent).rev + 1


def test_a_missing_space_is_not_updated():
    with pytest.raises(NotFound, match=r"^space 'plan' does not exist") as refusal:
        space_update(ensure(Agent()), "plan", lambda s: s)  # A050

    assert refusal.value.hint == "create it first: ensure_space('plan', {}) or (..., [])"


def test_a_function_that_returns_no_space_is_refused():
    with pytest.raises(InvalidRequest, match=r"^the function for space 'world' returned None, not a Space"):
        space_update(Agent(), "world", lambda s: None)


def test_a_custom_space_is_deleted():
    agent = ensure_space(Agent(), "plan", [])

    after = space_delete(agent, "plan")

    assert not has_space(after, "plan")  # A051
    assert get(after).rev == get(agent).rev + 1
    with pytest.raises(NotFound, match=r"^space 'plan' does not exist"):
        space_delete(after, "plan")


@pytest.mark.parametrize("name", ["tasks", "world"])
def test_a_built_in_space_cannot_be_deleted(name):
    agent = world_put(Agent(), "a", 1)
    before = get(agent)

    with pytest.raises(InvalidRequest, match=rf"^space '{name}' is built in and cannot be deleted") as refusal:
        space_delete(agent, name)

    assert get(agent) is before  # A052
    assert refusal.value.hint == "empty it instead"


def test_the_aliases_are_the_same_functions():
    assert (put_space, update_space, delete_space) == (space_put, space_update, space_delete)
    assert Memory.put_space is Memory.space_put
    assert Memory.update_space is Memory.space_update
    assert Memory.delete_space is Memory.space_delete


@pytest.mark.parametrize("data", [{}, [], {"a": 1}, ["x"]])
def test_ensure_space_creates_a_missing_space_with_its_default_data(data):
    agent = ensure_space(Agent(), "plan", data)

    assert space(agent, "plan") == Space(data)  # A053
    assert get(agent).rev == 1


def test_ensure_space_leaves_an_existing_space_unchanged():
    agent = space_put(Agent(), "plan", Space([1], rev=3, metadata={"a": 1}))

    assert ensure_space(agent, "plan", {"other": "kind"}) is agent  # A054


def test_the_default_data_of_a_space_is_copied():
    data, items = {"deep": {"n": 1}}, [[1]]
    agent = ensure_space(ensure_space(Agent(), "m", data), "l", items)

    data["deep"]["n"] = 2
    data["more"] = 1
    items[0].append(2)

    assert space(agent, "m").data == {"deep": {"n": 1}}  # A061
    assert space(agent, "l").data == [[1]]


@pytest.mark.parametrize(
    "first",
    [
        lambda a: ensure_space(a, "x", {}),
        lambda a: put_in_space(a, "world", "k", 1),
        lambda a: append_to_space(a, "tasks", 1),
        lambda a: world_delete(a, "nothing"),
        lambda a: space_put(a, "x", Space({})),
        lambda a: update_space_data(a, "world", dict),
        lambda a: expire(a),
        lambda a: limited(a, Limits()),
    ],
)
def test_the_first_change_creates_the_memory(first):
    after = first(Agent())

    assert has_memory(after)  # A055
    assert {"tasks", "world"} <= spaces(after).keys()


FIRST_CHANGES = [
    lambda a, **now: ensure(a, **now),
    lambda a, **now: space_put(a, "x", Space({}), **now),
    lambda a, **now: space_update(a, "world", lambda s: s, **now),
    lambda a, **now: ensure_space(a, "x", {}, **now),
    lambda a, **now: put_in_space(a, "world", "a", 1, **now),
    lambda a, **now: delete_from_space(a, "world", "a", **now),
    lambda a, **now: update_space_data(a, "world", dict, **now),
    lambda a, **now: append_to_space(a, "tasks", 1, **now),
    lambda a, **now: prepend_to_space(a, "tasks", 1, **now),
    lambda a, **now: insert_in_space(a, "tasks", 0, 1, **now),
    lambda a, **now: limited(a, None, **now),
    lambda a, **now: expire(a, **now),
    lambda a, **now: apply_action_result(a, {"world": {"a": 1}}, **now),
    lambda a, **now: world_put(a, "a", 1, **now),
    lambda a, **now: world_delete(a, "a", **now),
    lambda a, **now: world_update(a, dict, **now),
    lambda a, **now: tasks_add(a, "x", **now),
    lambda a, **now: tasks_insert(a, 0, "x", **now),
    lambda a, **now: tasks_reorder(a, [], **now),
]


@pytest.mark.parametrize("first", FIRST_CHANGES)
def test_the_time_of_the_first_change_is_the_time_of_creation(first):
    memory = get(first(Agent(), now=77))

    assert (memory.created_at, memory.updated_at) == (77, 77)


@pytest.mark.parametrize("name", ["rag:cache", "planner:steps", "with space", "größe", "0", "items", "a.b/c"])
def test_a_space_name_is_free_form(name):
    agent = ensure_space(Agent(), name, {})

    assert put_in_space(agent, name, "k", 1).state["__memory__"].spaces[name].data == {"k": 1}  # A058


@pytest.mark.parametrize("name", ["", 5, None])
def test_an_empty_or_non_text_space_name_is_refused(name):
    with pytest.raises(InvalidRequest, match=r"^the name of a space is a text of at least one character, not"):
        ensure_space(Agent(), name, {})
    with pytest.raises(InvalidRequest, match=r"^the name of a space is a text of at least one character, not"):
        space_put(Agent(), name, Space({}))


def test_the_number_and_size_of_spaces_is_unlimited_by_default():
    memory = Memory()
    for number in range(500):
        memory = memory.ensure_space(f"s{number}", [])

    assert len(memory.spaces) == 502  # A059
    assert len(memory.world_put("k", "x" * 5_000_000).world_get("k")) == 5_000_000  # A060


def test_a_custom_space_over_the_limit_is_refused_and_changes_nothing():
    agent = limited(ensure_space(Agent(), "one", []), Limits(max_spaces=2))
    agent = ensure_space(agent, "two", [])

    with pytest.raises(TooLarge, match=r"^a space 'three' would exceed the limit of 2 custom spaces") as refusal:
        ensure_space(agent, "three", [])
    with pytest.raises(TooLarge):
        space_put(agent, "three", Space([]))

    assert spaces(agent).keys() == {"tasks", "world", "one", "two"}  # A060
    assert space_put(agent, "two", Space([1])).state["__memory__"].spaces.two.data == [1]
    assert has_space(ensure_space(space_delete(agent, "one"), "three", []), "three")
    assert refusal.value.code == "payload_too_large"
    assert refusal.value.hint == "delete one with space_delete, store it as a key of the world, or set other limits"


def test_a_write_over_the_size_limit_of_a_space_is_refused_and_changes_nothing():
    agent = limited(Agent(), Limits(max_space_bytes=10))
    agent = world_put(agent, "a", "x")

    assert world_put(Agent(), "a", "xyz").state["__memory__"].world() == {"a": "xyz"}
    assert world_get(world_put(agent, "a", "xy"), "a") == "xy"
    with pytest.raises(TooLarge, match=r"^space 'world' would have 11 bytes, more than the limit of 10") as refusal:
        world_put(agent, "a", "xyz")

    assert world(agent) == {"a": "x"}  # A060
    assert refusal.value.hint == "store a summary and a pointer to the rest, delete unneeded data, or set other limits"
    with pytest.raises(TooLarge):
        append_to_space(agent, "tasks", "123456789")
    with pytest.raises(TooLarge, match=r"^space 'new' would have 11 bytes"):
        ensure_space(agent, "new", ["1234567"])


def test_a_space_over_the_size_limit_may_be_made_smaller():
    agent = limited(ensure_space(Agent(), "l", [{"id": "a"}, {"id": "b"}]), Limits(max_space_bytes=5))

    after = space_update(agent, "l", lambda s: Space(s.data[:1]))

    assert space(after, "l").data == [{"id": "a"}]
    with pytest.raises(TooLarge):
        append_to_space(agent, "l", 1)


def test_the_size_of_a_space_is_that_of_its_json_in_utf_8_or_of_its_repr():
    def is_refused(value, limit):
        try:
            Memory().limited(Limits(max_space_bytes=limit)).ensure_space("x", value)
        except TooLarge:
            return True
        return False

    for value, size in (("ä", 4), ([1, 2], 5), ({1: 2}, 7), ({(1,): 2}, 9), ([{5}], 18), (["\ud800"], 7)):
        assert not is_refused(value, size), value
        assert is_refused(value, size - 1), value


def test_limits_are_stored_with_the_memory_and_removable():
    memory = Memory(metadata={"mine": 1}).limited(Limits(max_spaces=0, max_space_bytes=100))

    assert memory.metadata == {"mine": 1, "jido.limits": {"max_spaces": 0, "max_space_bytes": 100}}
    assert Memory.from_dict(memory.to_dict()) == memory
    with pytest.raises(TooLarge):
        Memory.from_dict(memory.to_dict()).ensure_space("x", [])
    assert memory.limited(Limits(max_spaces=1)).metadata["jido.limits"] == {"max_spaces": 1}
    assert memory.limited(None).metadata == {"mine": 1}
    assert memory.limited(None).ensure_space("x", []).rev == 3


@pytest.mark.parametrize("limits", [{"max_spaces": -1}, {"max_space_bytes": "1"}, {"max_spaces": True}])
def test_limits_that_are_no_whole_numbers_from_0_are_refused(limits):
    with pytest.raises(
        InvalidRequest, match=rf"^{next(iter(limits))} is a whole number from 0, or None for no limit, not"
    ):
        Limits(**limits)
    with pytest.raises(InvalidRequest):
        Memory(metadata={"jido.limits": limits})


@pytest.mark.parametrize("limits", ["x", {"max": 1}])
def test_limits_in_metadata_have_one_form(limits):
    with pytest.raises(InvalidRequest, match=r"^'jido.limits' has max_spaces and max_space_bytes, not") as refusal:
        Memory(metadata={"jido.limits": limits})

    assert refusal.value.hint == "set limits with memory.limited(Limits(...))"


def test_a_transient_key_is_readable_until_it_expires():
    agent = world_put(Agent(), "scratch", "x", ttl_ms=100, now=1000)
    agent = world_put(agent, "stays", 1, now=1000)

    assert world_get(agent, "scratch", now=1099) == "x"  # A060
    assert world_get(agent, "scratch", "gone", now=1100) == "gone"
    assert get_in_space(agent, "world", "scratch", now=1100) is None
    assert world(agent, now=1099) == {"scratch": "x", "stays": 1}
    assert world(agent, now=1100) == {"stays": 1}
    assert world_get(agent, "scratch") is None  # by the current time


def test_the_current_time_decides_whether_a_key_has_expired():
    assert world_get(world_put(Agent(), "k", 1, ttl_ms=10**9), "k") == 1


def test_reading_without_transient_keys_does_not_use_the_clock(monkeypatch):
    agent = space_put(Agent(), "m", Space({"a": 1}, metadata={"owner": "ana"}))
    monkeypatch.setattr(clock, "now", lambda: pytest.fail("looked at the clock"))

    assert (get_in_space(agent, "m", "a"), world(agent)) == (1, {})


def test_expire_removes_expired_keys_from_every_space_and_increments_each_revision():
    agent = ensure_space(Agent(), "m", {"b": 1}, now=0)
    agent = put_in_space(world_put(agent, "a", 1, ttl_ms=10, now=0), "m", "c", 2, ttl_ms=20, now=0)
    rev = get(agent).rev

    at_10 = expire(agent, now=10)
    at_20 = expire(agent, now=20)

    assert (spaces(at_10).world, spaces(at_10).m) == (Space({}, rev=2), spaces(agent).m)
    assert get(at_10).rev == rev + 1
    assert (spaces(at_20).world, spaces(at_20).m) == (Space({}, rev=2), Space({"b": 1}, rev=2))
    assert get(at_20).rev == rev + 2
    assert expire(agent, now=9) is agent
    assert get(expire(at_20)) is get(at_20)


def test_putting_updating_or_deleting_a_key_resets_its_expiry():
    agent = world_put(world_put(Agent(), "a", "x", ttl_ms=10, now=0), "b", "y", ttl_ms=30, now=0)
    ends = {"jido.expires_at": {"a": 10, "b": 30}}
    assert spaces(agent).world.metadata == ends

    replaced = world_put(agent, "a", "x", now=5)
    assert spaces(replaced).world.metadata == {"jido.expires_at": {"b": 30}}
    assert world_get(replaced, "a", now=50) == "x"
    assert spaces(world_put(agent, "a", "x", ttl_ms=10, now=5)).world.metadata["jido.expires_at"]["a"] == 15
    assert spaces(world_delete(agent, "a")).world.metadata == {"jido.expires_at": {"b": 30}}
    assert spaces(world_delete(world_delete(agent, "a"), "b")).world.metadata == {}
    changed = update_space_data(agent, "world", lambda data: {**data, "a": "z"})
    assert spaces(changed).world.metadata == {"jido.expires_at": {"b": 30}}
    assert spaces(update_space_data(agent, "world", dict)).world.metadata == ends
    assert spaces(update_space_data(agent, "world", lambda _: {})).world.metadata == {}


def test_other_metadata_of_a_space_is_preserved_when_keys_expire():
    agent = space_put(Agent(), "m", Space({}, metadata={"owner": "ana"}))
    agent = put_in_space(agent, "m", "a", 1, ttl_ms=10, now=0)

    assert spaces(agent).m.metadata == {"owner": "ana", "jido.expires_at": {"a": 10}}
    assert spaces(expire(agent, now=10)).m.metadata == {"owner": "ana"}


@pytest.mark.parametrize("ttl", [0, -1, 1.5, "10", True])
def test_an_invalid_time_to_live_is_refused(ttl):
    with pytest.raises(InvalidRequest, match=r"^ttl_ms is a whole number of milliseconds from 1, not"):
        world_put(Agent(), "a", 1, ttl_ms=ttl)


@pytest.mark.parametrize(("data", "ends"), [({}, 5), ({}, {"a": "noon"}), ({}, {"a": True}), ([], {"a": 1})])
def test_expiry_times_in_metadata_have_one_form(data, ends):
    with pytest.raises(InvalidRequest, match=r"^'jido.expires_at' in the metadata of a map space has a moment"):
        Space(data, metadata={"jido.expires_at": ends})
