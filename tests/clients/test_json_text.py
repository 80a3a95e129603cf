"""Edits of a JSON text: one entry changes, and every other character stays."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from jidomem.clients.config_files import NotJson, append, read, remove_json, set_json

LEAVES = some.none() | some.booleans() | some.integers(-5, 5) | some.text('ab"\\,{}[]/ü\n', max_size=4)
KEYS = some.text('xyz,{"', min_size=1, max_size=2)
VALUES = some.recursive(
    LEAVES, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
OBJECTS = some.dictionaries(some.text("xyz", min_size=1, max_size=2), VALUES, max_size=4)
LAYOUTS = some.sampled_from([None, 2, 4, "\t"])
REMARKS = """{
    // ours
    "a": 1, // one
    "b": [
        "x", /* two */
    ],
    "c": {} // three
}
"""


@settings(max_examples=60)
@given(values=OBJECTS, siblings=OBJECTS, layout=LAYOUTS, value=VALUES)
def test_an_added_entry_is_read_back_and_its_removal_restores_the_text(values, siblings, layout, value):
    for document in ({**values}, {**values, "m": {**siblings, "other": 1}}):
        text = json.dumps(document, indent=layout, ensure_ascii=False)

        changed = set_json(text, ["m", "ours"], value)
        longer = append(append(changed, ["list"], value), ["list"], 1)

        assert read(text).value == document
        assert json.loads(changed) == {**document, "m": {**document.get("m", {}), "ours": value}}
        assert json.loads(longer) == {**json.loads(changed), "list": [value, 1]}
        assert remove_json(remove_json(longer, ["list", 1]), ["list", 0]) == changed
        assert json.loads(remove_json(longer, ["list", 0]))["list"] == [1]
        assert remove_json(changed, ["m", "ours"]) == text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_commas_and_line_ends_stay_in_place(end):
    text = REMARKS.replace("\n", end)

    changed = append(set_json(text, ["m", "ours"], {"x": [1]}), ["b"], "y")

    assert read(changed).value == {"a": 1, "b": ["x", "y"], "c": {}, "m": {"ours": {"x": [1]}}}
    assert changed.count(end) == changed.count("\n")
    assert [changed.count(remark) for remark in ("// ours", "// one", "/* two */", "// three")] == [1, 1, 1, 1]
    assert remove_json(remove_json(changed, ["b", 1]), ["m", "ours"]) == text


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "ends too early", 0),
        ('{"a": }', "a value is expected", 6),
        ('{"a": 1 "b": 2}', 'a "," or "}" is expected', 8),
        ('{"a": 1}}', "after its end", 8),
        ('{"a": 1, "a": 2}', "twice", 9),
        ("{'a': 1}", "a key", 1),
        ('{"a": "\\ud8"}', "escape", 6),
        ("[" * 300, "nested too deeply", 201),
        ('{"a": [1, 2', "ends too early", 11),
    ],
)
def test_invalid_json_is_refused_with_its_position(text, message, position):
    with pytest.raises(NotJson, match=message) as refusal:
        read(text)

    assert refusal.value.at == position


def test_a_path_through_a_value_of_another_type_is_refused():
    for text in ("[]", '{"m": []}', '{"m": 1}'):
        with pytest.raises(NotJson, match="is not an object"):
            set_json(text, ["m", "ours"], 1)
    with pytest.raises(NotJson, match=r"m\.list is not an array"):
        append('{"m": {"list": {}}}', ["m", "list"], 1)
