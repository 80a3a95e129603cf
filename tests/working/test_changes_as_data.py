"""Changes of a memory that come from outside, as JSON: by name, checked, all together or not at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.working import Memory
from jidomem.working.memory import CHANGES, applied

EMPTY = Memory(id="mem_1", created_at=0)
HELD = (
    EMPTY.world_put("language", "en", now=1)
    .tasks_add("ship", id="t1", now=2)
    .tasks_add("rest", id="t2", now=2)
    .ensure_space("log", [{"id": "a"}], now=3)
    .ensure_space("notes", {"x": 1}, now=3)
)
DONE = [
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


@pytest.mark.parametrize(("change", "move"), DONE, ids=[change["do"] for change, _ in DONE])
def test_a_change_does_what_the_method_of_its_name_does(change, move):
    assert applied(HELD, [change], now=9) == move(HELD) != HELD


def test_each_change_there_is_is_shown_above():
    assert {change["do"] for change, _ in DONE} == set(CHANGES)


def test_changes_are_done_in_order_and_leave_the_memory_they_were_given_as_it_was():
    before = HELD.to_dict()
    after = applied(HELD, [change for change, _ in DONE if change["do"] in ("world_put", "tasks_add")], now=9)

    assert (after.rev, after.world_get("k", now=9)) == (HELD.rev + 3, 1)
    assert HELD.to_dict() == before


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


@pytest.mark.parametrize(("changes", "why", "hint"), REFUSED)
def test_what_is_no_change_is_refused_and_says_what_to_send(changes, why, hint):
    with pytest.raises(InvalidRequest, match=why) as refusal:
        applied(HELD, changes)
    assert refusal.value.hint.startswith(hint.replace("\\", ""))


def test_more_changes_than_are_done_at_once_are_refused():
    each = {"do": "world_put", "key": "k", "value": 1}

    with pytest.raises(InvalidRequest, match="1,001 changes are more than the limit of 1,000") as refusal:
        applied(EMPTY, [each] * 1001)

    assert "another call" in refusal.value.hint
    assert applied(EMPTY, [each] * 1000).world() == {"k": 1}


def test_a_refusal_says_which_change_it_is_about_and_none_is_done():
    with pytest.raises(NotFound, match="change 2: ") as refusal:
        applied(HELD, [{"do": "world_put", "key": "k", "value": 1}, {"do": "tasks_complete", "id": "t9"}])
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
def test_whatever_is_sent_is_done_or_refused_in_words(name, data):
    needed, optional = CHANGES[name]
    fields = {
        field: data.draw(JSON, label=field)
        for field in (*needed, *optional)
        if data.draw(st.booleans() | st.just(True))
    }
    before = HELD.to_dict()
    try:
        told = applied(HELD, [{"do": name, **fields}], now=9).rev
    except JidomemError as error:
        told = error.detail

    assert told in (HELD.rev, HELD.rev + 1) or told.startswith("change 1: ")
    assert HELD.to_dict() == before
