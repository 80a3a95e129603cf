"""A value of short-term memory as text and back, and the changes of a known memory."""

import json
from dataclasses import FrozenInstanceError, is_dataclass
from dataclasses import fields as fields_of
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jidomem import create_memory
from jidomem.errors import InvalidRequest
from jidomem.records.intent import INTENT_FIELDS, LIST_FIELDS
from jidomem.working import agent, container, memory, thread, tiers

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
JIDO, STRING = "https://jido.ai/ontology#", "http://www.w3.org/2001/XMLSchema#string"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def fields(value, kind="fact", category="facts"):
    return tiers.fields_of(tiers.item_of(value, session_id="s-1", now=NOW), kind, category)


def extras(value):
    return [(name.removeprefix(JIDO), literal["@value"]) for name, literal in fields(value)["extra_triples"]]


def stored_form(key, value):
    """Return the stored form of a promoted value: summary, explanation and the texts of jido:value."""
    summary, explanation = tiers.summary_and_explanation(tiers.item_of(value, session_id="s-1", now=NOW))
    return (
        summary,
        explanation,
        [literal["@value"] for _, literal in tiers.value_triple(key, value, summary, explanation)],
    )


def test_an_item_has_the_type_of_its_value_and_time_and_source_of_the_session():
    # E085
    plain = tiers.item_of("the build is slow", session_id="s-1", now=NOW)
    typed = tiers.item_of({"type": "error", "content": "torn file", "rationale": "r"}, session_id="s-2", now=NOW)
    other = tiers.item_of({"code": 7}, session_id="s-1", now=NOW)

    assert plain == {"type": "fact", "content": "the build is slow", "timestamp": NOW, "source": "session:s-1"}
    assert (typed["type"], typed["content"], typed["source"]) == ("error", "torn file", "session:s-2")
    assert (typed["timestamp"], typed["rationale"]) == (NOW, "r")
    assert (other["type"], other["content"]) == ("fact", {"code": 7})
    assert tiers.item_of({"content": "  "}, session_id="s-1", now=NOW)["content"] == {"content": "  "}


def test_a_mapping_provides_the_fields_of_an_intent_by_name():
    value = {
        "type": "decision", "content": "Use Oxigraph", "rationale": "it embeds", "topic": "store", "about": "src/a.py",
        "evidence": ["a measurement"], "confidence": 0.85, "colour": "red", "severity": None,
    }  # fmt: skip

    intent = fields(value, "decision", "decisions")

    del intent["extra_triples"]
    assert intent == {
        "type": "decision",
        "summary": "Use Oxigraph",
        "rationale": "it embeds",
        "topic": "store",
        "about": ["src/a.py"],
        "evidence": ["a measurement"],
        "confidence": 0.85,
        "timestamp": "2026-11-21T08:00:00.000000Z",
    }


@pytest.mark.parametrize("name", tiers.FIELDS)
def test_each_allowed_intent_field_of_a_mapping_is_used(name):
    assert name in INTENT_FIELDS
    assert fields({"content": "c", name: "said"})[name] == (["said"] if name in LIST_FIELDS else "said")


@pytest.mark.parametrize("explanation", [5, ["why"], {"a": 1}])
def test_an_explanation_that_is_no_text_is_refused(explanation):
    with pytest.raises(InvalidRequest) as refusal:
        fields({"content": "c", "detailed_explanation": explanation})
    assert refusal.value.detail == f"detailed_explanation={explanation!r} is not a text"
    assert refusal.value.hint == "give it as text, or leave it out"


def test_further_fields_of_a_value_are_stored_as_triples():
    value = {
        "content": "c", "id": 42, "key": "own", "context": ["a", "b"], "affected_module": "M", "verified_by_user": True,
        "metadata": {"affectedModule": "N", "id": "never", "key": "k"},
    }  # fmt: skip
    assert extras(value) == [
        ("category", "facts"), ("localId", "42"), ("key", "k"), ("context", "a"), ("context", "b"),
        ("affectedModule", "M"), ("affectedModule", "N"), ("verified", "true"),
    ]  # fmt: skip
    assert extras({"content": "c", "verified": True}) == [("category", "facts"), ("verified", "true")]
    assert extras({"content": "c", "verified": False, "verified_by_user": None}) == [("category", "facts")]
    assert fields("c")["extra_triples"] == [[JIDO + "category", {"@value": "facts", "@type": STRING}]]


@pytest.mark.parametrize("name", ["id", "context", "affected_module"])
@pytest.mark.parametrize("content", [True, 1.5, {"a": 1}, [["x"]]])
def test_a_field_that_is_no_text_is_refused_by_name(name, content):
    with pytest.raises(InvalidRequest, match=f"^{name}=.* is not a text") as refusal:
        fields({"content": "c", name: content})
    assert refusal.value.hint == f"give {name} as text, or leave it out"


def test_a_completed_task_and_high_confidence_set_status_and_confidence_by_default():
    assert fields({"type": "task_completed", "content": "c"}, "task", "tasks")["status"] == "Completed"
    assert fields({"type": "task_completed", "content": "c", "status": "Abandoned"})["status"] == "Abandoned"
    assert "status" not in fields({"type": "task", "content": "c"})
    assert fields({"content": "c", "high_confidence": True})["confidence"] == "high"
    assert fields({"content": "c", "high_confidence": True, "confidence": 0.9})["confidence"] == 0.9
    assert "confidence" not in fields({"content": "c", "high_confidence": False})


@pytest.mark.parametrize(
    ("source", "source_type"),
    [("user", "UserSource"), ("agent", "AgentSource"), ("tool", "ToolSource"), ("document", "ExternalDocumentSource")],
)
def test_a_known_source_sets_the_source_type(source, source_type):
    assert fields({"content": "c", "source": source})["source_type"] == source_type
    assert fields(create_memory("fact", "c", {"source": source}))["source_type"] == source_type
    assert "source_type" not in fields({"content": "c", "source": "somewhere"})
    assert "source_type" not in fields({"content": "c", "source": ["user"]})


def test_a_typed_memory_keeps_its_time_and_metadata():
    memory = create_memory(
        "fact", "c", {"timestamp": NOW, "confidence": 0.8, "verified": True, "metadata": {"id": "f-1", "context": "x"}}
    )
    later = datetime(2027, 1, 1, tzinfo=UTC)

    intent = tiers.fields_of(tiers.item_of(memory, session_id="s-1", now=later), "fact", "facts")

    assert (intent["confidence"], intent["timestamp"]) == (0.8, "2026-11-21T08:00:00.000000Z")
    assert extras(memory) == [("category", "facts"), ("localId", "f-1"), ("context", "x"), ("verified", "true")]


@pytest.mark.parametrize(
    ("content", "explanation", "expected"),
    [
        (" one ", None, ("one", None)),
        ("one", " more ", ("one", "more")),
        ("one", " ", ("one", None)),
        ("one \ntwo\n", None, ("one", "one \ntwo")),
        ("one\ntwo", "more", ("one", "one\ntwo\n\nmore")),
    ],
)
def test_the_first_line_of_a_content_is_its_summary_and_the_rest_its_explanation(content, explanation, expected):
    assert tiers.summary_and_explanation({"content": content, "detailed_explanation": explanation}) == expected


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(min_size=1), JSON)
def test_a_value_is_restored_equal(key, value):
    # E093
    summary, explanation, values = stored_form(key, value)
    restored = tiers.restored_value(key, values, summary, explanation)
    assert restored == value
    assert repr(restored) == repr(value) or not isinstance(value, (int, float, str, type(None)))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_the_text_of_a_value_is_stable(value):
    # E093
    text = tiers.text_of(value)
    assert text == (value.strip() if isinstance(value, str) else text)
    assert tiers.text_of(text) == text.strip()
    if isinstance(value, dict):
        assert json.loads(text) == value
        assert tiers.text_of(dict(reversed(value.items()))) == text
        assert json.dumps(value, ensure_ascii=False, sort_keys=True) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1, 2), "value is a tuple"),
        ({1: "a"}, "value has the key 1"),
        ({"a": (1,)}, r"value\['a'\] is a tuple"),
        ([{"a": {1}}], r"value\[0\]\['a'\] is a set"),
        (float("nan"), "value is nan"),
        ([float("inf")], r"value\[0\] is inf"),
        (object(), "value is a object"),
        (b"bytes", "value is a bytes"),
        ({"a": NOW}, r"value\['a'\] is a datetime"),
        (["\ud800"], r"value\[0\] has half a surrogate pair"),
    ],
)
def test_a_value_that_json_does_not_preserve_is_refused_with_its_path(value, message):
    # E093
    with pytest.raises(InvalidRequest, match=message) as refusal:
        tiers.text_of(value)
    assert refusal.value.hint
    with pytest.raises(InvalidRequest):
        tiers.value_triple("k", value, "s", None)


def test_a_too_deeply_nested_value_is_refused():
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidRequest, match="nested too deep"):
        tiers.text_of(value)


def test_a_value_that_its_content_restores_has_no_value_triple():
    assert stored_form("k", "plain")[2] == []
    assert stored_form("k", "one\ntwo")[2] == []
    assert stored_form("k", " spaces ") == ("spaces", None, ['["k", " spaces "]'])
    assert stored_form("k", {"content": "é"}) == ("é", None, ['["k", {"content": "\\u00e9"}]'])
    assert tiers.value_triple("k", "a", "a", "why") == []
    assert tiers.value_triple("k", "A", "a", None) == [[JIDO + "value", {"@value": '["k", "A"]', "@type": STRING}]]


def test_a_typed_memory_is_stored_as_a_mapping_of_its_fields():
    memory = create_memory("fact", "c", {"timestamp": NOW, "metadata": {"id": "f-1"}})
    (text,) = stored_form("k", memory)[2]
    assert tiers.parse_key_value(text) == (
        "k",
        {"type": "fact", "content": "c", "timestamp": "2026-11-21T08:00:00.000000Z", "confidence": 0.5,
         "source": "system", "verified": False, "metadata": {"id": "f-1"}},
    )  # fmt: skip


def test_a_later_edit_of_a_memory_replaces_the_stored_value():
    _, _, values = stored_form("k", {"content": "old", "n": 1})

    assert tiers.restored_value("k", values, "old", None) == {"content": "old", "n": 1}
    assert tiers.restored_value("k", values, "old", "explained since") == {"content": "old", "n": 1}
    assert tiers.restored_value("k", values, "new", None) == "new"
    assert tiers.restored_value("other", values, "old", "why") == "old"
    lines = stored_form("k", {"content": "one\ntwo"})
    assert tiers.restored_value("k", lines[2], "one", "one\nthree") == "one\nthree"
    assert tiers.restored_value("k", lines[2], "One", "One\n two") == {"content": "one\ntwo"}
    explained = stored_form("k", {"content": "one", "detailed_explanation": "why"})
    assert explained[:2] == ("one", "why")
    assert tiers.restored_value("k", explained[2], "one", "because") == {
        "content": "one",
        "detailed_explanation": "why",
    }


@pytest.mark.parametrize(
    ("summary", "explanation", "core"),
    [
        ("one", None, "one"), ("one", "", "one"), ("one", "why", "one"), ("one", "one", "one"),
        ("one", "two\nthree", "one"),
        ("one", "one \ntwo", "one \ntwo"), ("one", "one two\nthree", "one"),
    ],
)  # fmt: skip
def test_the_core_of_a_memory_is_its_summary_or_all_lines(summary, explanation, core):
    assert tiers.original_content(summary, explanation) == core


def test_the_content_of_a_memory_is_its_summary_and_explanation():
    assert tiers.content_of("one", None) == "one"
    assert tiers.content_of("one", "why") == "one\nwhy"
    assert tiers.content_of("one", "one\ntwo") == "one\ntwo"


@pytest.mark.parametrize("text", ["{", "[1, 2]", '["k"]', '["k", 1, 2]', '"ab"', '{"k": 1}', "[NaN, 1]", '["k", NaN]'])
def test_an_invalid_stored_value_is_ignored(text):
    assert tiers.parse_key_value(text) is None
    assert tiers.restored_value("k", [text, '["k", {"content": "s"}]'], "s", None) == {"content": "s"}


def known_memory(**fields):
    return {"iri": "urn:e:1", "type": "fact", "summary": "s", "extra_triples": [], **fields}


def promoted_intent(*extras, **fields):
    triples = [tiers.extra_triple(tiers.KEY, "k"), tiers.extra_triple(tiers.CATEGORY, "facts"), *extras]
    return {"type": "fact", "summary": "s", "timestamp": "2027-01-01T00:00:00Z", "extra_triples": triples, **fields}


def test_a_promotion_without_new_statements_changes_nothing():
    known = known_memory(
        extra_triples=promoted_intent()["extra_triples"][::-1], topic="t", timestamp="2026-01-01T00:00:00Z"
    )
    assert tiers.changes(promoted_intent(), known) == {}
    assert tiers.changes(promoted_intent(topic="t"), known) == {}


def test_new_fields_are_set_and_unmentioned_fields_remain():
    existing = [
        tiers.extra_triple(tiers.KEY, "other"),
        tiers.extra_triple(JIDO + "localId", "f-1"),
        tiers.extra_triple(tiers.CATEGORY, "x"),
    ]

    changed = tiers.changes(
        promoted_intent(topic="t", evidence=["b", "a"]), known_memory(extra_triples=existing, evidence=["a"], topic="u")
    )

    assert set(changed) == {"topic", "evidence", "extra_triples"}
    assert (changed["topic"], changed["evidence"]) == ("t", ["a", "b"])
    assert changed["extra_triples"] == [*promoted_intent()["extra_triples"], *existing[:2]]


def test_a_value_replaces_only_the_value_of_its_key():
    current = tiers.extra_triple(tiers.VALUE, '["k", {"content": "s", "n": 2}]')
    existing = [
        tiers.extra_triple(tiers.VALUE, '["k", {"content": "s", "n": 1}]'),
        tiers.extra_triple(tiers.VALUE, '["o", " s"]'),
    ]

    changed = tiers.changes(
        promoted_intent(current), known_memory(extra_triples=[*promoted_intent()["extra_triples"], *existing])
    )

    assert changed == {"extra_triples": [*promoted_intent(current)["extra_triples"], existing[1]]}


def test_a_verification_remains_without_being_repeated():
    verified = tiers.extra_triple(tiers.VERIFIED, "true", "boolean")
    known = known_memory(extra_triples=[*promoted_intent()["extra_triples"], verified])
    assert tiers.changes(promoted_intent(), known) == {}
    assert tiers.changes(promoted_intent(verified), known) == {}
    assert tiers.changes(promoted_intent(verified), known_memory(extra_triples=promoted_intent()["extra_triples"])) == {
        "extra_triples": promoted_intent(verified)["extra_triples"]
    }


def test_removing_a_key_of_a_memory_removes_its_value():
    triples = [
        tiers.extra_triple(tiers.KEY, "k"), tiers.extra_triple(tiers.KEY, "o"),
        tiers.extra_triple(tiers.VALUE, '["k", 1]'), tiers.extra_triple(tiers.VALUE, '["o", 1]'),
        tiers.extra_triple(JIDO + "context", "k"), [JIDO + "relatedError", {"@id": "k"}],
        tiers.extra_triple(JIDO + "context", '["k", 1]'),
    ]  # fmt: skip
    known = known_memory(extra_triples=triples)
    assert tiers.keys_of(known) == ["k", "o"]
    assert tiers.fields_without_key("k", known) == {"extra_triples": [triples[1], *triples[3:]]}
    assert tiers.keys_of({}) == []


def test_a_value_that_changes_while_it_is_read_is_refused():
    class Growing(dict):
        def items(self):
            for pair in super().items():
                self[f"more-{len(self)}"] = 1
                yield pair

    with pytest.raises(InvalidRequest, match="the value changed while it was read") as refusal:
        tiers.text_of(Growing(a=1))
    assert refusal.value.hint == "store a copy of it"


VALUES = [
    cls
    for module in (agent, container, memory, thread, tiers)
    for cls in vars(module).values()
    if is_dataclass(cls) and isinstance(cls, type) and cls.__module__ == module.__name__
]


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_no_field_of_a_value_can_be_set(cls):
    value = object.__new__(cls)

    with pytest.raises(FrozenInstanceError):
        setattr(value, fields_of(cls)[0].name, None)
