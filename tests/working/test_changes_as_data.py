"""Changes of a memory as JSON: named, validated, and applied all or none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.working import Memory
from jidomem.working.memory import CHANGES, applied

EMPTY = Memory(id="mem_1", created_at=0)
BASE = (
    EMPTY.world_put("language", "en", now=1)
    .tasks_add("ship", id="t1", now=2)
    .tasks_add("rest", id="t2", now=2)
    .ensure_space("log", [{"id": "a"}], now=3)
    .ensure_space("notes", {"x": 1}, now=3)
)
CHANGE_CASES = [
    ({"do": "world_put", "key": "k", "value": [1]}, lambda m: m.world_put("k", [1], now=9)),
    ({"do": "world_put", "key": "k", "value": 1, "ttl_ms": 5}, lambda m: m.world_put("k", 1, ttl_ms=5, now=9)),
    ({"do": "world_delete", "key": "language"}, lambda m: m.world_delete("language", now=9)),
    ({"do": "tasks_add", "text": "t", "id": "t3", "status": "done"},
     lambda m: m.tasks_add("t", id="t3", status="done", now=9)),
    ({"do": "tasks_insert", "index": 1, "text": "t", "id": "t3"}, lambda m: m.tasks_insert(1, "t", id="t3", now=9)),
    ({"do": "tasks_complete", "id": "t2"}, lambda m: m.tasks_complete("t2", now=9)),
    ({"do": "tasks_remove", "id": "t1"}, lambda m: m.tasks_remove("t1", now=9)),
    ({"do": "tasks_reorder", "ids": ["t2", "t1"]}, lambda m: m.tasks_reorder(["t2", "t1"], now=9)),
    ({"do": "ensure_space", "space": "s", "data": {}}, lambda m: m.ensure_space("s", {}, now=9)),
    ({"do": "space_delete", "space": "log"}, lambda m: m.space_delete("log", now=9)),
    ({"do": "put_in_space", "space": "notes", "key": "y", "value": 2},
     lambda m: m.put_in_space("notes", "y", 2, now=9)),
    ({"do": "delete_from_space", "space": "notes", "key": "x"}, lambda m: m.delete_from_space("notes", "x", now=9)),
    ({"do": "append_to_space", "space": "log", "item": "b"}, lambda m: m.append_to_space("log", "b", now=9)),
    ({"do": "prepend_to_space", "space": "log", "item": "b"}, lambda m: m.prepend_to_space("log", "b", now=9)),
    ({"do": "insert_in_space", "space": "log", "index": 0, "item": "b"},
     lambda m: m.insert_in_space("log", 0, "b", now=9)),
    ({"do": "remove_from_space", "space": "log", "id": "a"}, lambda m: m.remove_from_space("log", "a", now=9)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "move"), CHANGE_CASES, ids=[change["do"] for change, _ in CHANGE_CASES])
def test_a_change_is_equal_to_the_method_of_its_name(change, move):
    assert applied(BASE, [change], now=9) == move(BASE) != BASE


def test_the_cases_cover_every_change():
    assert {change["do"] for change, _ in CHANGE_CASES} == set(CHANGES)


def test_changes_are_applied_in_order_without_modifying_the_input():
    before = BASE.to_dict()
    after = applied(BASE, [change for change, _ in CHANGE_CASES if change["do"] in ("world_put", "tasks_add")], now=9)

    assert (after.rev, after.world_get("k", now=9)) == (BASE.rev + 3, 1)
    assert BASE.to_dict() == before


REFUSED = [
    ("world_put", "changes are a list, not 'world_put'", "send \\[{"),
    ([5], "change 1: a change is a mapping, not 5", "send"),
    ([{}], "change 1: do=None is not a change of a memory", "there is world_put, "),
    ([{"do": "task_add", "text": "x"}], "do='task_add' is not a change of a memory", "did you mean 'tasks_add'?"),
    ([{"do": "world_put", "key": "k"}], "world_put needs value", "give key, value"),
    ([{"do": "world_delete", "key": "k", "value": 1}], "world_delete takes no 'value'", "it takes key"),
    ([{"do": "world_put", "key": ["k"], "value": 1}], r"key of world_put is not a text: \['k'\]", "give key as a text"),
    ([{"do": "tasks_insert", "index": True, "text": "x"}], "index of tasks_insert is not a whole number", "give index"),
    ([{"do": "tasks_reorder", "ids": "t1"}], "ids of tasks_reorder is not a list", "give ids as a list"),
]


@pytest.mark.parametrize(("changes", "message", "hint"), REFUSED)
def test_an_invalid_change_is_refused_with_a_hint(changes, message, hint):
    with pytest.raises(InvalidRequest, match=message) as refusal:
        applied(BASE, changes)
    assert refusal.value.hint.startswith(hint.replace("\\", ""))


def test_too_many_changes_in_one_call_are_refused():
    each = {"do": "world_put", "key": "k", "value": 1}

    with pytest.raises(InvalidRequest, match="1,001 changes are more than the limit of 1,000") as refusal:
        applied(EMPTY, [each] * 1001)

    assert "another call" in refusal.value.hint
    assert applied(EMPTY, [each] * 1000).world() == {"k": 1}


def test_a_refusal_has_the_position_of_its_change():
    with pytest.raises(NotFound, match="change 2: ") as refusal:
        applied(BASE, [{"do": "world_put", "key": "k", "value": 1}, {"do": "tasks_complete", "id": "t9"}])
    assert refusal.value.position == 1
    assert refusal.value.to_dict()["detail"].startswith("change 2: ")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["t1", "log", "notes", "world", "", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "key", "x"]), inner, max_size=2),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(CHANGES)), st.data())
def test_any_change_is_applied_or_refused_with_a_message(name, data):
    needed, optional = CHANGES[name]
    fields = {
        field: data.draw(JSON, label=field)
        for field in (*needed, *optional)
        if data.draw(st.booleans() | st.just(True))
    }
    before = BASE.to_dict()
    try:
        outcome = applied(BASE, [{"do": name, **fields}], now=9).rev
    except JidomemError as error:
        outcome = error.detail

    assert outcome in (BASE.rev, BASE.rev + 1) or outcome.startswith("change 1: ")
    assert BASE.to_dict() == before
