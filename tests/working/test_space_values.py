"""A space as a value: its fields, its kind, its creation, and its immutable data."""

import copy
import dataclasses
import json
import pickle
from types import MappingProxyType

import orjson
import pytest

from jidomem.errors import InvalidRequest
from jidomem.working import Memory, Space, freeze, is_list, is_map, thaw


def test_a_space_has_exactly_data_revision_and_metadata():
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
def test_a_space_accepts_any_data(data):
    assert Space(data).data == data  # A011 A020
    assert Memory().ensure_space("x", data).spaces["x"].data == data


def test_a_space_is_created_from_a_mapping_from_keywords_or_from_both():
    expected = Space([1], rev=2, metadata={"k": "v"})

    assert Space.new({"data": [1], "rev": 2, "metadata": {"k": "v"}}) == expected  # A014
    assert Space.new(data=[1], rev=2, metadata={"k": "v"}) == expected
    assert Space.new({"data": [1], "rev": 7}, rev=2, metadata={"k": "v"}) == expected


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"data": [], "kind": "list"}, "^a space has no 'kind'$"),
        ({"data": [], "rev": -1}, "the revision of a space is a whole number from 0, not -1"),
        ({"data": [], "rev": True}, "the revision of a space is a whole number from 0, not True"),
        ({"data": [], "rev": "1"}, "the revision of a space is a whole number from 0, not '1'"),
        ({"data": [], "metadata": []}, r"the metadata of a space is a mapping, not \[\]"),
    ],
)
def test_invalid_fields_of_a_space_are_refused(attrs, message):
    with pytest.raises(InvalidRequest, match=rf"(?m)^{message}"):
        Space.new(attrs)


def test_a_refusal_lists_the_fields_of_a_space():
    with pytest.raises(InvalidRequest) as refusal:
        Space.new(data=[], kind="list")

    assert refusal.value.hint == "it has data, rev, metadata"


def test_new_map_and_new_list_create_spaces_of_their_kind():
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
    ("space", "kind"),
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
def test_is_map_and_is_list_depend_on_the_data_of_a_space(space, kind):
    assert is_map(space) is (kind == "map")  # A016
    assert is_list(space) is (kind == "list")  # A017
    assert dataclasses.is_dataclass(space) or not isinstance(space, Space)


def test_two_spaces_and_two_memories_share_no_default():
    assert Space([]).metadata is not Space([]).metadata  # A013
    one, other = Memory(), Memory()

    assert one.spaces["tasks"].data is not other.spaces["tasks"].data  # A028
    assert one.spaces["world"].data is not other.spaces["world"].data
    assert one.metadata is not other.metadata


def test_stored_values_are_copied():
    goals, steps, nested = {"ship"}, [["test"]], {"deep": {"list": [1]}}
    memory = Memory().ensure_space("plan", {"goals": goals, "steps": steps, "tuple": (steps,)})
    memory = memory.world_put("whole", nested).tasks_add("t", id="t1").ensure_space("l", steps)

    goals.add("rest")
    steps[0].append("deploy")
    nested["deep"]["list"].append(2)

    assert memory.spaces["plan"].data == {"goals": {"ship"}, "steps": [["test"]], "tuple": ([["test"]],)}  # A061 A022
    assert memory.world_get("whole") == {"deep": {"list": [1]}}
    assert memory.spaces["l"].data == [["test"]]


def test_metadata_is_copied():
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
def test_a_dict_of_a_memory_refuses_every_change(change):
    value = Memory().world_put("x", {"a": 1}).world_get("x")

    with pytest.raises(TypeError, match=r"^a dict of a memory cannot be changed in place: change a copy, dict\(...\)"):
        change(value)

    assert value == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_list_of_a_memory_refuses_every_change(change):
    value = Memory().world_put("x", [1]).world_get("x")

    with pytest.raises(TypeError, match=r"^a list of a memory cannot be changed in place: change a copy, list\(...\)"):
        change(value)

    assert value == [1]


def test_the_cases_cover_every_mutating_method_of_dict_and_list():
    for kind, changes in ((dict, DICT_CHANGES), (list, LIST_CHANGES)):
        methods = {name for name in dir(kind) if name in dir(freeze(kind())) and _is_mutating(kind, name)}
        assert len(methods) == len(changes), methods


def _is_mutating(kind, name):
    """Return whether a method of that name changes a dict or a list."""
    original = {"a": 1} if kind is dict else [2, 1]
    for arguments in ((), ("a",), (0,), (1,), ("b", 1), (0, 1), ({"b": 1},), ([1],)):
        value = kind(original)
        try:
            getattr(value, name)(*arguments)
        except Exception:
            continue
        if value != original and name != "__init__":
            return True
    return False


def test_frozen_values_are_read_copied_serialized_and_pickled_like_plain_values():
    frozen = freeze({"a": [1, {"b": 2}]})

    assert isinstance(frozen, dict)
    assert isinstance(frozen["a"], list)
    assert json.dumps(frozen) == '{"a": [1, {"b": 2}]}'
    assert orjson.dumps(frozen) == b'{"a":[1,{"b":2}]}'
    assert repr(frozen) == "{'a': [1, {'b': 2}]}"
    for copied in (copy.copy(frozen), copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):
        assert copied == frozen
        assert type(copied) is type(frozen)
        assert type(copied["a"]) is type(frozen["a"])


def test_a_copy_of_a_frozen_value_is_mutable():
    frozen = freeze({"a": [1]})

    for copied in (dict(frozen), {**frozen}, frozen | {}, frozen.copy()):
        copied["b"] = 1
    for copied in (list(frozen["a"]), frozen["a"] + [2], frozen["a"][:], frozen["a"].copy()):
        copied.append(3)

    assert frozen == {"a": [1]}


def test_thaw_returns_plain_values_at_every_level():
    plain = {"a": [1, {"b": {2}}, ([3],)], "s": frozenset({1})}

    thawed = thaw(freeze(plain))

    assert thawed == {"a": [1, {"b": {2}}, ([3],)], "s": {1}}
    assert (type(thawed), type(thawed["a"]), type(thawed["a"][1]), type(thawed["s"])) == (dict, list, dict, set)
    assert type(thawed["a"][1]["b"]) is set
    thawed["a"][2][0].append(4)
    assert thaw("text") == "text"


def test_frozen_values_are_shared_and_not_copied():
    frozen, pair = freeze({"a": [1]}), ("x", 1)

    assert freeze(frozen) is frozen
    assert freeze(pair) is pair
    assert freeze((frozen, "x"))[0] is frozen
    memory = Memory().world_put("big", frozen).world_put("other", 1)
    assert memory.world_get("big") is frozen
    assert memory.append_to_space("tasks", frozen).tasks()[0] is frozen


def test_unchanged_spaces_are_shared_between_revisions():
    before = Memory().ensure_space("x", {"a": 1})
    after = before.world_put("k", 1)

    assert after.spaces["x"] is before.spaces["x"]
    assert after.spaces["tasks"] is before.spaces["tasks"]


def test_an_object_of_another_class_is_stored_unchanged():
    class Thing:
        pass

    thing = Thing()

    assert Memory().world_put("x", [thing]).world_get("x")[0] is thing  # A022


def test_a_set_and_a_mapping_are_stored_as_immutable_types():
    value = Memory().world_put("x", {"set": {1}, "map": MappingProxyType({"a": 1})}).world_get("x")

    assert type(value["set"]) is frozenset
    assert type(value["map"]) is type(freeze({}))


def test_a_value_that_contains_itself_is_refused():
    ring = []
    ring.append(ring)

    with pytest.raises(InvalidRequest, match="contains itself, or is nested too deep") as refusal:
        Memory().world_put("x", ring)

    assert refusal.value.hint == "store a reference to it instead"
