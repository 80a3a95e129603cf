"""Every mutation of a memory sets the time of update and the revisions."""

import inspect

import pytest

from jidomem import working as package
from jidomem.errors import RevisionConflict
from jidomem.working import Agent, Limits, Memory, Space, get, put

BEFORE = (
    Memory.new(id="m", now=1_000)
    .world_put("key", 1, now=1_001)
    .world_put("old", 1, ttl_ms=1, now=1_001)
    .tasks_add("first", id="t1", now=1_002)
    .tasks_add("second", id="t2", now=1_003)
    .ensure_space("notes", {"a": 1}, now=1_004)
    .ensure_space("list", [{"id": "x", "n": 1}], now=1_005)
)
#: Each mutation, with arguments with which it changes something.
MUTATIONS = {
    "append_to_space": ("list", {"id": "y"}),
    "apply_action_result": ({"world": {"more": 2}},),
    "delete_from_space": ("notes", "a"),
    "delete_space": ("notes",),
    "ensure_space": ("further", {}),
    "expire": (),
    "insert_in_space": ("list", 0, {"id": "y"}),
    "limited": (Limits(max_spaces=9),),
    "prepend_to_space": ("list", {"id": "y"}),
    "put_in_space": ("notes", "b", 2),
    "put_space": ("plan", Space([])),
    "remove_from_space": ("list", "x"),
    "space_delete": ("notes",),
    "space_put": ("plan", Space([])),
    "space_update": ("notes", lambda space: Space({"b": 2}, space.rev, space.metadata)),
    "tasks_add": ("third",),
    "tasks_complete": ("t1",),
    "tasks_insert": (0, "third"),
    "tasks_remove": ("t1",),
    "tasks_reorder": (["t2", "t1"],),
    "update_in_space": ("list", "x", lambda item: {**item, "n": 2}),
    "update_space": ("notes", lambda space: Space({"b": 2}, space.rev, space.metadata)),
    "update_space_data": ("notes", lambda data: {"b": 2}),
    "world_delete": ("key",),
    "world_put": ("key", 2),
    "world_update": (lambda world: {"key": 2},),
}
NOW = 5_000


def takes_options(function):
    kinds = inspect.signature(function).parameters.values()
    return any(each.kind is inspect.Parameter.VAR_KEYWORD and each.name != "given" for each in kinds)


def changed(form, name, before=BEFORE, **options):
    """Return the memory after one mutation, by its method or by the function on an agent."""
    if form == "memory":
        return getattr(before, name)(*MUTATIONS[name], **options)
    return get(getattr(package, name)(put(Agent(), before), *MUTATIONS[name], **options))


def test_the_table_contains_every_mutation():
    public = [(name, each) for name, each in inspect.getmembers(Memory, callable) if not name.startswith("_")]
    of_memory = {name for name, each in public if takes_options(each)}
    helpers = {name for name, each in inspect.getmembers(package, inspect.isfunction) if takes_options(each)}

    assert of_memory == helpers == MUTATIONS.keys()


@pytest.mark.parametrize("form", ["memory", "agent"])
@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_sets_the_time_of_update_which_never_decreases(form, name):  # A031 A034
    after = changed(form, name, now=NOW)

    assert (after.created_at, after.updated_at, after.rev) == (1_000, NOW, BEFORE.rev + 1)
    ahead = BEFORE.world_put("clock", "ahead", now=NOW + 1)
    assert changed(form, name, ahead, now=NOW).updated_at == NOW + 1
    assert changed(form, name).updated_at > 1_700_000_000_000  # the current time by default
    assert (BEFORE.updated_at, BEFORE.rev) == (1_005, 6)  # A005


@pytest.mark.parametrize("form", ["memory", "agent"])
@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_is_refused_with_an_outdated_revision(form, name):  # A035
    assert changed(form, name, expected_rev=BEFORE.rev, now=NOW).rev == BEFORE.rev + 1
    with pytest.raises(RevisionConflict):
        changed(form, name, expected_rev=BEFORE.rev - 1, now=NOW)
