"""Keys of a map space and items of a list space: each operation, and its refusal of the other kind."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from jidomem.errors import InvalidRequest, NotFound
from jidomem.working import (
    Agent,
    Space,
    append_to_space,
    delete_from_space,
    ensure,
    ensure_space,
    get,
    get_in_space,
    insert_in_space,
    prepend_to_space,
    put_in_space,
    remove_from_space,
    space,
    space_put,
    update_in_space,
    update_space_data,
)


def agent_with_space(data):
    return ensure_space(Agent(), "x", data)


def data_of(agent):
    return space(agent, "x").data


def revision_changes(before, after):
    """Return the increments of the revision of the space and of the memory."""
    return space(after, "x").rev - space(before, "x").rev, get(after).rev - get(before).rev


def test_a_key_is_read_or_the_default_is_returned():
    agent = agent_with_space({"a": 1, "none": None})

    assert get_in_space(agent, "x", "a") == 1  # A062
    assert get_in_space(agent, "x", "b") is None
    assert get_in_space(agent, "x", "b", 7) == 7
    assert get_in_space(agent, "x", "none", 7) is None
    assert get_in_space(Agent(), "world", "a", 7) == 7


def test_a_key_is_put_and_replaces_its_value():
    agent = agent_with_space({"a": 1})

    after = put_in_space(put_in_space(agent, "x", "a", 2), "x", ("any", "key"), [3])

    assert data_of(after) == {"a": 2, ("any", "key"): [3]}  # A063
    assert revision_changes(agent, after) == (2, 2)  # A068
    assert revision_changes(agent, put_in_space(agent, "x", "a", 1)) == (1, 1)


def test_a_key_is_deleted_and_deleting_a_missing_key_changes_nothing():
    agent = agent_with_space({"a": 1, "b": 2})

    after = delete_from_space(agent, "x", "a")

    assert data_of(after) == {"b": 2}  # A064
    assert revision_changes(agent, after) == (1, 1)  # A068
    assert delete_from_space(agent, "x", "missing") is agent


def test_the_data_of_a_map_space_is_transformed_by_a_function():
    agent = agent_with_space({"a": 1})

    after = update_space_data(agent, "x", lambda data: {"was": data["a"]})

    assert data_of(after) == {"was": 1}  # A065
    assert revision_changes(agent, after) == (1, 1)
    assert revision_changes(agent, update_space_data(agent, "x", lambda data: data)) == (1, 1)  # A068


@pytest.mark.parametrize("result", [None, [], "text"])
def test_a_function_that_returns_no_mapping_is_refused(result):
    with pytest.raises(InvalidRequest, match=r"^the function for map space 'x' returned .*, not a mapping") as refusal:
        update_space_data(agent_with_space({}), "x", lambda _: result)

    assert refusal.value.hint == "return the new mapping: lambda data: {**data, 'key': 'value'}"


def test_a_function_cannot_modify_its_argument():
    agent = agent_with_space({"a": [1]})

    with pytest.raises(TypeError, match="change a copy"):
        update_space_data(agent, "x", lambda data: data.update(b=1))
    with pytest.raises(TypeError, match="change a copy"):
        update_in_space(agent_with_space([{"id": 1}]), "x", 1, lambda item: item.pop("id"))

    assert data_of(agent) == {"a": [1]}


OF_MAPS = [
    lambda agent: get_in_space(agent, "x", "a"),
    lambda agent: put_in_space(agent, "x", "a", 1),
    lambda agent: delete_from_space(agent, "x", "a"),
    lambda agent: update_space_data(agent, "x", dict),
]
OF_LISTS = [
    lambda agent: append_to_space(agent, "x", 1),
    lambda agent: prepend_to_space(agent, "x", 1),
    lambda agent: insert_in_space(agent, "x", 0, 1),
    lambda agent: remove_from_space(agent, "x", "i"),
    lambda agent: update_in_space(agent, "x", "i", dict),
]


@pytest.mark.parametrize("operation", OF_MAPS)
@pytest.mark.parametrize(("data", "kind"), [([], "list"), ("ab", "str"), ({"s"}, "set"), (None, "NoneType")])
def test_map_operations_refuse_other_kinds_of_spaces(operation, data, kind):
    agent = space_put(Agent(), "x", Space(data))

    with pytest.raises(InvalidRequest, match=f"(?m)^space 'x' is not a map space: its data is a {kind}$"):  # A066 A020
        operation(agent)


@pytest.mark.parametrize("operation", OF_LISTS)
@pytest.mark.parametrize(("data", "kind"), [({}, "dict"), ("ab", "str"), ({"s"}, "set"), ((1,), "tuple")])
def test_list_operations_refuse_other_kinds_of_spaces(operation, data, kind):
    agent = space_put(Agent(), "x", Space(data))

    with pytest.raises(InvalidRequest, match=f"(?m)^space 'x' is not a list space: its data is a {kind}$"):  # A074 A020
        operation(agent)


def test_reading_a_missing_space_returns_the_default_and_writing_to_one_is_refused():
    agent = ensure(Agent())

    assert get_in_space(agent, "x", "a", 7) == 7  # A067
    for operation in [*OF_MAPS[1:], *OF_LISTS]:
        with pytest.raises(NotFound, match=r"^space 'x' does not exist"):
            operation(agent)


def test_an_item_is_appended_or_prepended():
    agent = agent_with_space(["b"])

    after = prepend_to_space(append_to_space(agent, "x", "c"), "x", "a")

    assert data_of(after) == ["a", "b", "c"]  # A069 A070
    assert revision_changes(agent, after) == (2, 2)  # A077


@pytest.mark.parametrize(("index", "expected"), [(0, "nab"), (1, "anb"), (2, "abn"), (3, "abn"), (99, "abn")])
def test_an_item_is_inserted_at_an_index(index, expected):
    agent = agent_with_space(["a", "b"])

    after = insert_in_space(agent, "x", index, "n")

    assert data_of(after) == list(expected)  # A071
    assert revision_changes(agent, after) == (1, 1)  # A077


@pytest.mark.parametrize("index", [-1, "0", 1.0, None, True])
def test_an_index_that_is_no_whole_number_from_0_is_refused(index):
    with pytest.raises(InvalidRequest, match=r"^an index is a whole number from 0, the front, not"):
        insert_in_space(agent_with_space([]), "x", index, "n")


@dataclass
class Thing:
    id: str


def test_an_item_is_removed_by_its_id():
    agent = agent_with_space([{"id": "a"}, Thing("b"), {"id": "c"}])

    assert data_of(remove_from_space(agent, "x", "a")) == [Thing("b"), {"id": "c"}]  # A072
    assert data_of(remove_from_space(agent, "x", "b")) == [{"id": "a"}, {"id": "c"}]
    assert revision_changes(agent, remove_from_space(agent, "x", "c")) == (1, 1)  # A077


def test_an_item_is_replaced_in_place_by_a_function():
    agent = agent_with_space([{"id": "a"}, {"id": "b", "n": 1}, {"id": "c"}])

    after = update_in_space(agent, "x", "b", lambda item: {**item, "n": item["n"] + 1})

    assert data_of(after) == [{"id": "a"}, {"id": "b", "n": 2}, {"id": "c"}]  # A073
    assert revision_changes(agent, after) == (1, 1)  # A077
    assert update_in_space(agent, "x", "b", lambda item: item) is agent


def test_the_result_of_an_item_function_is_copied():
    tags = ["t"]
    agent = update_in_space(agent_with_space([{"id": "a"}]), "x", "a", lambda item: {**item, "tags": tags})

    tags.append("u")

    assert data_of(agent) == [{"id": "a", "tags": ["t"]}]


def test_items_without_an_id_are_kept_and_match_no_id():
    items = ["text", 5, {"name": "a"}, {"id": None}, SimpleNamespace(id=None), None, {"id": "a"}]
    agent = agent_with_space(items)

    assert data_of(remove_from_space(agent, "x", "a")) == items[:-1]  # A075
    assert data_of(update_in_space(agent, "x", "a", lambda _: "new")) == [*items[:-1], "new"]
    with pytest.raises(NotFound):
        remove_from_space(agent, "x", None)


def test_an_operation_by_id_applies_to_every_item_with_that_id():
    agent = agent_with_space([{"id": "a", "n": 1}, {"id": "b"}, {"id": "a", "n": 2}])

    assert data_of(remove_from_space(agent, "x", "a")) == [{"id": "b"}]
    assert data_of(update_in_space(agent, "x", "a", lambda i: i["n"])) == [1, {"id": "b"}, 2]


@pytest.mark.parametrize("operation", [OF_LISTS[3], OF_LISTS[4]])
def test_an_id_that_no_item_has_is_refused_and_nothing_changes(operation):
    agent = agent_with_space([{"id": "a"}, "no id", {"id": 5}])
    before = get(agent)

    with pytest.raises(NotFound, match=r"(?m)^no item of space 'x' has the id 'i'$") as refusal:  # A076
        operation(agent)

    assert get(agent) is before  # A077
    assert refusal.value.hint == "there are 'a', 5"


def test_a_refusal_names_at_most_ten_known_ids():
    with pytest.raises(NotFound) as few:
        remove_from_space(agent_with_space(["no id"]), "x", "i")
    with pytest.raises(NotFound) as many:
        remove_from_space(agent_with_space([{"id": n} for n in range(11)]), "x", "i")

    assert few.value.hint == "no item has an id"
    assert many.value.hint == "there are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
