"""A space as a value: its fields, its kind, how it is made, and how what it holds is held fast."""

import copy
import dataclasses
import json
import pickle
from types import MappingProxyType

import orjson
import pytest

from jidomem.errors import InvalidRequest
from jidomem.working import Memory, Space, freeze, is_list, is_map, thaw


def test_a_space_has_data_a_revision_and_metadata_and_nothing_else():
    assert [field.name for field in dataclasses.fields(Space)] == ["data", "rev", "metadata"]  # A010 A015
    with pytest.raises((AttributeError, TypeError)):
        Space([]).kind = "list"


def test_a_new_space_is_at_revision_0_without_metadata():
    assert Space([]).rev == 0  # A012
    assert Space([]).metadata == {}  # A013


def test_a_space_needs_data():
    with pytest.raises(TypeError):
        Space()
    with pytest.raises(InvalidRequest, match=r"^a space has data") as refusal:
        Space.new()

    assert refusal.value.hint == "pass data={} for a map, data=[] for a list"  # A011


@pytest.mark.parametrize(
    "data", [{}, {"a": 1}, [], [1], {1, 2}, "text", 5, None, (1, 2), object()], ids=lambda data: type(data).__name__
)
def test_a_space_may_hold_anything(data):
    assert Space(data).data == data  # A011 A020
    assert Memory().ensure_space("x", data).spaces["x"].data == data


def test_a_space_is_made_of_a_mapping_of_keywords_or_of_both():
    made = Space([1], rev=2, metadata={"k": "v"})

    assert Space.new({"data": [1], "rev": 2, "metadata": {"k": "v"}}) == made  # A014
    assert Space.new(data=[1], rev=2, metadata={"k": "v"}) == made
    assert Space.new({"data": [1], "rev": 7}, rev=2, metadata={"k": "v"}) == made


@pytest.mark.parametrize(
    ("attrs", "told"),
    [
        ({"data": [], "kind": "list"}, "^a space has no 'kind'$"),
        ({"data": [], "rev": -1}, "the revision of a space is a whole number from 0, not -1"),
        ({"data": [], "rev": True}, "the revision of a space is a whole number from 0, not True"),
        ({"data": [], "rev": "1"}, "the revision of a space is a whole number from 0, not '1'"),
        ({"data": [], "metadata": []}, r"the metadata of a space is a mapping, not \[\]"),
    ],
)
def test_what_makes_no_space_is_refused(attrs, told):
    with pytest.raises(InvalidRequest, match=rf"(?m)^{told}"):
        Space.new(attrs)


def test_the_fields_of_a_space_are_named_to_who_misses_one():
    with pytest.raises(InvalidRequest) as refusal:
        Space.new(data=[], kind="list")

    assert refusal.value.hint == "it has data, rev, metadata"


def test_constructors_make_maps_and_lists():
    assert Space.new_map() == Space({})  # A021
    assert Space.new_list() == Space([])
    assert Space.new_map({"a": 1}, {"m": 1}) == Space({"a": 1}, metadata={"m": 1})
    assert Space.new_list([1], {"m": 1}) == Space([1], metadata={"m": 1})
    assert Space.new_map(data={"a": 1}, metadata={}) == Space({"a": 1})


def test_a_constructor_refuses_data_of_the_other_kind():
    with pytest.raises(InvalidRequest, match=r"^the data of a map space is a mapping, not \[1\]"):
        Space.new_map([1])
    with pytest.raises(InvalidRequest, match=r"^the data of a list space is a list, not {'a': 1}"):
        Space.new_list({"a": 1})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (Space({}), "map"),
        (Space(MappingProxyType({"a": 1})), "map"),
        (Space([]), "list"),
        (Space("list"), None),
        (Space({1}), None),
        (Space((1,)), None),
        ({}, None),
        ([], None),
        (None, None),
    ],
    ids=repr,
)
def test_the_kind_of_a_space_is_the_kind_of_its_data(given, kind):
    assert is_map(given) is (kind == "map")  # A016
    assert is_list(given) is (kind == "list")  # A017
    assert dataclasses.is_dataclass(given) or not isinstance(given, Space)


def test_two_spaces_and_two_memories_share_no_default():
    assert Space([]).metadata is not Space([]).metadata  # A013
    one, other = Memory(), Memory()

    assert one.spaces["tasks"].data is not other.spaces["tasks"].data  # A028
    assert one.spaces["world"].data is not other.spaces["world"].data
    assert one.metadata is not other.metadata


def test_what_is_put_in_is_copied_so_the_caller_changes_nothing_later():
    goals, steps, whole = {"ship"}, [["test"]], {"deep": {"list": [1]}}
    memory = Memory().ensure_space("plan", {"goals": goals, "steps": steps, "tuple": (steps,)})
    memory = memory.world_put("whole", whole).tasks_add("t", id="t1").ensure_space("l", steps)

    goals.add("rest")
    steps[0].append("deploy")
    whole["deep"]["list"].append(2)

    assert memory.spaces["plan"].data == {"goals": {"ship"}, "steps": [["test"]], "tuple": ([["test"]],)}  # A061 A022
    assert memory.world_get("whole") == {"deep": {"list": [1]}}
    assert memory.spaces["l"].data == [["test"]]


def test_metadata_is_copied_too():
    metadata = {"tags": ["a"]}
    memory, space = Memory(metadata=metadata), Space([], metadata=metadata)

    metadata["tags"].append("b")

    assert memory.metadata == space.metadata == {"tags": ["a"]}


DICT_CHANGES = [
    lambda d: d.__setitem__("a", 2),
    lambda d: d.__delitem__("a"),
    lambda d: d.__ior__({}),
    lambda d: d.clear(),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("b", 1),
    lambda d: d.update(b=1),
]
LIST_CHANGES = [
    lambda v: v.__setitem__(0, 2),
    lambda v: v.__delitem__(0),
    lambda v: v.__iadd__([1]),
    lambda v: v.__imul__(2),
    lambda v: v.append(1),
    lambda v: v.clear(),
    lambda v: v.extend([1]),
    lambda v: v.insert(0, 1),
    lambda v: v.pop(),
    lambda v: v.remove(1),
    lambda v: v.reverse(),
    lambda v: v.sort(),
]


@pytest.mark.parametrize("change", DICT_CHANGES)
def test_a_dict_that_a_memory_hands_out_refuses_every_change(change):
    held = Memory().world_put("x", {"a": 1}).world_get("x")

    with pytest.raises(TypeError, match=r"^a dict of a memory cannot be changed in place: change a copy, dict\(...\)"):
        change(held)

    assert held == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_list_that_a_memory_hands_out_refuses_every_change(change):
    held = Memory().world_put("x", [1]).world_get("x")

    with pytest.raises(TypeError, match=r"^a list of a memory cannot be changed in place: change a copy, list\(...\)"):
        change(held)

    assert held == [1]


def test_every_way_to_change_a_dict_or_a_list_is_among_those_refused():
    for kind, changes in ((dict, DICT_CHANGES), (list, LIST_CHANGES)):
        ways = {name for name in dir(kind) if name in dir(freeze(kind())) and _changes(kind, name)}
        assert len(ways) == len(changes), ways


def _changes(kind, name):
    """Whether a method of that name changes a dict or a list it is called on."""
    full = {"a": 1} if kind is dict else [2, 1]
    for arguments in ((), ("a",), (0,), (1,), ("b", 1), (0, 1), ({"b": 1},), ([1],)):
        held = kind(full)
        try:
            getattr(held, name)(*arguments)
        except Exception:
            continue
        if held != full and name != "__init__":
            return True
    return False


def test_held_values_are_read_copied_written_and_pickled_like_plain_ones():
    held = freeze({"a": [1, {"b": 2}]})

    assert isinstance(held, dict)
    assert isinstance(held["a"], list)
    assert json.dumps(held) == '{"a": [1, {"b": 2}]}'
    assert orjson.dumps(held) == b'{"a":[1,{"b":2}]}'
    assert repr(held) == "{'a': [1, {'b': 2}]}"
    for copied in (copy.copy(held), copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
        assert copied == held
        assert type(copied) is type(held)
        assert type(copied["a"]) is type(held["a"])


def test_a_copy_of_a_held_value_is_plain_and_may_be_changed():
    held = freeze({"a": [1]})

    for copied in (dict(held), {**held}, held | {}, held.copy()):
        copied["b"] = 1
    for copied in (list(held["a"]), held["a"] + [2], held["a"][:], held["a"].copy()):
        copied.append(3)

    assert held == {"a": [1]}


def test_thaw_gives_plain_values_all_the_way_down():
    plain = {"a": [1, {"b": {2}}, ([3],)], "s": frozenset({1})}

    thawed = thaw(freeze(plain))

    assert thawed == {"a": [1, {"b": {2}}, ([3],)], "s": {1}}
    assert (type(thawed), type(thawed["a"]), type(thawed["a"][1]), type(thawed["s"])) == (dict, list, dict, set)
    assert type(thawed["a"][1]["b"]) is set
    thawed["a"][2][0].append(4)
    assert thaw("text") == "text"


def test_what_is_held_fast_already_is_shared_not_copied():
    held, pair = freeze({"a": [1]}), ("x", 1)

    assert freeze(held) is held
    assert freeze(pair) is pair
    assert freeze((held, "x"))[0] is held
    memory = Memory().world_put("big", held).world_put("other", 1)
    assert memory.world_get("big") is held
    assert memory.append_to_space("tasks", held).tasks()[0] is held


def test_spaces_that_did_not_change_are_shared_between_revisions():
    before = Memory().ensure_space("x", {"a": 1})
    after = before.world_put("k", 1)

    assert after.spaces["x"] is before.spaces["x"]
    assert after.spaces["tasks"] is before.spaces["tasks"]


def test_an_object_of_another_class_is_kept_as_it_is():
    class Thing:
        pass

    thing = Thing()

    assert Memory().world_put("x", [thing]).world_get("x")[0] is thing  # A022


def test_a_set_and_a_mapping_become_ones_that_nobody_changes():
    held = Memory().world_put("x", {"set": {1}, "map": MappingProxyType({"a": 1})}).world_get("x")

    assert type(held["set"]) is frozenset
    assert type(held["map"]) is type(freeze({}))


def test_a_value_that_contains_itself_is_refused():
    ring = []
    ring.append(ring)

    with pytest.raises(InvalidRequest, match="contains itself, or is nested too deep") as refusal:
        Memory().world_put("x", ring)

    assert refusal.value.hint == "store a reference to it instead"
