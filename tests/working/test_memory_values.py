"""A memory as a value: its fields, its creation, its times, and its form in JSON."""

import dataclasses
import enum
import json
import time

import pytest

from jidomem.errors import InvalidRequest
from jidomem.working import RESERVED_SPACES, Agent, Memory, Space, ensure, get


def test_a_memory_has_six_fields():
    names = [field.name for field in dataclasses.fields(Memory)]

    assert names == ["id", "rev", "spaces", "created_at", "updated_at", "metadata"]  # A023


def test_a_new_memory_is_at_revision_0_with_empty_tasks_and_world():
    memory = Memory()

    assert memory.rev == 0  # A026
    assert memory.spaces == {"tasks": Space([]), "world": Space({})}  # A027
    assert memory.metadata == {}  # A032


def test_each_new_memory_has_a_distinct_id():
    ids = [Memory().id for _ in range(100)] + [Memory.new().id for _ in range(100)]

    assert len(set(ids)) == 200  # A024
    assert all(each.startswith("mem_") and len(each) > len("mem_") for each in ids)  # A025
    assert Memory(id="mine").id == Memory.new(id="mine").id == "mine"


@pytest.mark.parametrize("id_", ["", 5, b"x"])
def test_an_empty_or_non_text_id_is_refused(id_):
    with pytest.raises(InvalidRequest, match=r"^an id is a text of at least one character, not") as refusal:
        Memory(id=id_)

    assert refusal.value.hint == "leave it out for a new one"


def test_times_are_whole_milliseconds_since_the_epoch():
    earliest = time.time_ns() // 1_000_000
    memory = Memory()
    latest = time.time_ns() // 1_000_000

    assert type(memory.created_at) is int
    assert earliest <= memory.created_at <= latest  # A029
    assert memory.created_at == memory.updated_at  # A030
    assert Memory.new(now=5).created_at == Memory.new(now=5).updated_at == 5


def test_a_change_sets_the_time_of_update_and_keeps_the_time_of_creation():
    memory = Memory(created_at=1000)

    later = memory.world_put("a", 1, now=2000)

    assert (later.created_at, later.updated_at) == (1000, 2000)  # A030 A031
    assert later.world_put("a", 2, now=1500).updated_at == 2000
    assert later.world_put("a", 2, now=2001).updated_at == 2001
    assert later.world_put("a", 2).updated_at > 1_700_000_000_000


def test_a_memory_is_created_from_a_mapping_or_keywords_with_nested_spaces():
    attrs = {"id": "m", "rev": 3, "spaces": {"plan": {"data": ["a"], "rev": 2}}, "metadata": {"k": 1}}

    memory = Memory.new(attrs, now=7)

    assert memory == Memory.new(**attrs, now=7) == Memory(**attrs, created_at=7)  # A033
    assert memory.spaces["plan"] == Space(["a"], rev=2)
    assert memory.spaces.keys() == {"plan", "tasks", "world"}
    assert Memory.new(attrs, rev=4).rev == 4


def test_a_memory_always_has_the_built_in_spaces():
    memory = Memory(spaces={"world": Space({"a": 1}, rev=5)})

    assert memory.spaces == {"tasks": Space([]), "world": Space({"a": 1}, rev=5)}
    assert memory.world_put("b", 2).rev == 1


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"name": "x"}, "a memory has no 'name'"),
        ({"rev": -1}, "the revision of a memory is a whole number from 0, not -1"),
        ({"rev": True}, "the revision of a memory is a whole number from 0, not True"),
        ({"created_at": 1.5}, "a moment is a whole number of milliseconds since the epoch, not 1.5"),
        ({"created_at": -1}, "a moment is a whole number of milliseconds since the epoch, not -1"),
        ({"created_at": True}, "a moment is a whole number"),
        ({"created_at": 5, "updated_at": 4}, "updated_at=4 is before created_at=5"),
        ({"metadata": 3}, "the metadata of a memory is a mapping, not 3"),
        ({"spaces": []}, r"the spaces of a memory are a mapping of names to spaces, not \[\]"),
        ({"spaces": {"": Space([])}}, "the name of a space is a text of at least one character, not ''"),
        ({"spaces": {5: Space([])}}, "the name of a space is a text of at least one character, not 5"),
        ({"spaces": {"x": []}}, r"space 'x' is a Space, or a mapping with its data, not \[\]"),
        ({"spaces": {"x": {"a": 1}}}, "a space has no 'a'"),
        ({"spaces": {"x": {}}}, "a space has data"),
    ],
)
def test_invalid_fields_of_a_memory_are_refused(attrs, message):
    with pytest.raises(InvalidRequest, match=rf"^{message}"):
        Memory.new(attrs)


def test_a_refusal_lists_the_fields_of_a_memory():
    with pytest.raises(InvalidRequest) as refusal:
        Memory.new(name="x")

    assert refusal.value.hint == "it has id, rev, spaces, created_at, updated_at, metadata"


def test_the_reserved_spaces_are_tasks_and_world():
    assert Memory.reserved_spaces() == RESERVED_SPACES == ("tasks", "world")  # A037


def test_a_memory_cannot_be_changed_in_place():
    memory = Memory()

    with pytest.raises(AttributeError):
        memory.rev = 1
    with pytest.raises(TypeError):
        memory.spaces["x"] = Space([])
    with pytest.raises(TypeError):
        memory.metadata["x"] = 1


def test_a_memory_is_converted_to_plain_json_values():
    memory = Memory(id="m", created_at=1).world_put("a", [1, {"b": None}], now=2)

    data = memory.to_dict()

    assert data == {  # A038
        "id": "m",
        "rev": 1,
        "spaces": {
            "tasks": {"data": [], "rev": 0, "metadata": {}},
            "world": {"data": {"a": [1, {"b": None}]}, "rev": 1, "metadata": {}},
        },
        "created_at": 1,
        "updated_at": 2,
        "metadata": {},
    }
    assert type(data["spaces"]["world"]["data"]["a"]) is list
    data["spaces"]["world"]["data"]["a"].append(2)
    assert memory.world_get("a") == [1, {"b": None}]


def test_a_checkpoint_with_every_kind_of_space_is_restored_equal(tmp_path):
    agent = ensure(Agent(), metadata={"owner": "ana"})
    memory = get(agent).ensure_space("rag:cache", {}).ensure_space("note", "just text").ensure_space("none", None)
    memory = memory.tasks_add("ship").world_put("scratch", 1.5, ttl_ms=10).append_to_space("tasks", 7)
    checkpoint = tmp_path / "checkpoint.json"

    checkpoint.write_text(json.dumps(memory.to_dict()))

    assert Memory.from_dict(json.loads(checkpoint.read_text())) == memory  # A038


class Colour(enum.IntEnum):
    RED = 1


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        ({"g": {1}}, r"spaces\['x'\].data\['g'\] is a set, and JSON has no form for that", "keep it as a list"),
        ([(1,)], r"spaces\['x'\].data\[0\] is a tuple, and JSON has no form for that", "keep it as a list"),
        ([float("nan")], r"spaces\['x'\].data\[0\] is nan, and JSON", "keep a text, a number, a list or a mapping"),
        (float("inf"), r"spaces\['x'\].data is inf, and JSON", "keep a text, a number, a list or a mapping"),
        ({"a": {5: 1}}, r"spaces\['x'\].data\['a'\] has the key 5, and JSON keys are texts", "use '5'"),
        ({None: 1}, r"spaces\['x'\].data has the key None, and JSON keys are texts", "use 'None'"),
        ([b"x"], r"spaces\['x'\].data\[0\] is a bytes", "keep a text, a number, a list or a mapping"),
        (object(), r"spaces\['x'\].data is a object", "keep a text, a number, a list or a mapping"),
        ([Colour.RED], r"spaces\['x'\].data\[0\] is a Colour", "keep a text, a number, a list or a mapping"),
        ([Word("a")], r"spaces\['x'\].data\[0\] is a Word", "keep a text, a number, a list or a mapping"),
        ([2**10_000], r"spaces\['x'\].data\[0\] is a number with thousands of digits", "keep a text"),
        (["\ud800"], r"spaces\['x'\].data\[0\] has half a surrogate pair", "decode the text as it was written"),
        ({"\udfff": 1}, r"spaces\['x'\].data has half a surrogate pair", "decode the text as it was written"),
    ],
)
def test_a_value_without_json_form_is_refused_with_its_path(value, message, hint):
    memory = Memory().ensure_space("x", value)

    with pytest.raises(InvalidRequest, match=rf"^{message}") as refusal:
        memory.to_dict()

    assert refusal.value.hint.startswith(hint)  # A038


def test_metadata_and_names_without_json_form_are_refused():
    with pytest.raises(InvalidRequest, match=r"^metadata\['a'\] is a set"):
        Memory(metadata={"a": {1}}).to_dict()
    with pytest.raises(InvalidRequest, match=r"^spaces\['x'\].metadata\['a'\] is a tuple"):
        Memory().space_put("x", Space([], metadata={"a": (1,)})).to_dict()
    with pytest.raises(InvalidRequest, match=r"^a name of a space has half a surrogate pair"):
        Memory().ensure_space("\ud800", []).to_dict()


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_too_deeply_nested_value_is_refused():
    within_limit = Memory().ensure_space("x", nested(200))
    deeper = Memory().ensure_space("x", nested(150))
    for _ in range(51):
        deeper = deeper.space_update("x", lambda s: Space([s.data]))

    assert Memory.from_dict(json.loads(json.dumps(within_limit.to_dict()))) == within_limit
    with pytest.raises(
        InvalidRequest, match=r"(?m)^spaces\['x'\].data is nested too deep, more than 200 levels$"
    ) as refusal:
        deeper.to_dict()
    assert refusal.value.hint == "store its parts under separate keys"
    with pytest.raises(InvalidRequest, match="is nested too deep"):
        Memory().ensure_space("x", nested(201)).to_dict()


def test_a_large_number_is_preserved():
    memory = Memory().world_put("n", 2**9_999)

    assert Memory.from_dict(json.loads(json.dumps(memory.to_dict()))) == memory


def test_text_outside_ascii_is_preserved():
    memory = Memory().world_put("größe", "日本 😀 \ud7ff \ue000")

    assert Memory.from_dict(memory.to_dict()) == memory


@pytest.mark.parametrize("name", ["id", "rev", "spaces", "created_at", "updated_at", "metadata"])
def test_a_checkpoint_without_a_field_is_refused(name):
    stored = Memory().to_dict()
    del stored[name]

    with pytest.raises(InvalidRequest, match=f"(?m)^the stored memory lacks {name}$") as refusal:
        Memory.from_dict(stored)

    assert refusal.value.hint == "Memory.new fills it in"


def test_an_invalid_checkpoint_is_refused():
    with pytest.raises(InvalidRequest, match=r"^a stored memory is a mapping, not \[\]"):
        Memory.from_dict([])
    with pytest.raises(InvalidRequest, match=r"^a memory has no 'kind'"):
        Memory.from_dict({**Memory().to_dict(), "kind": "x"})


def test_a_memory_returns_its_spaces_by_name():
    memory = Memory().ensure_space("plan", [1])

    assert (memory.space("plan"), memory.space("other")) == (Space([1]), None)  # A101
    assert (memory.has_space("plan"), memory.has_space("other")) == (True, False)
