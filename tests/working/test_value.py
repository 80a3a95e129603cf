"""A value of short-term memory as text, and the way back; what changes in a memory that is known."""

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


def fields(held, kind="fact", category="facts"):
    return tiers.fields_of(tiers.item_of(held, session_id="s-1", now=NOW), kind, category)


def extras(held):
    return [(name.removeprefix(JIDO), said["@value"]) for name, said in fields(held)["extra_triples"]]


def kept(key, held):
    """What a memory says of a promoted value: summary, explanation and the texts of jido:value."""
    summary, explanation = tiers.summary_and_explanation(tiers.item_of(held, session_id="s-1", now=NOW))
    return summary, explanation, [said["@value"] for _, said in tiers.value_triple(key, held, summary, explanation)]


def test_an_item_has_the_type_of_the_value_and_the_moment_and_source_of_the_session():
    # E085
    plain = tiers.item_of("the build is slow", session_id="s-1", now=NOW)
    typed = tiers.item_of({"type": "error", "content": "torn file", "rationale": "r"}, session_id="s-2", now=NOW)
    other = tiers.item_of({"code": 7}, session_id="s-1", now=NOW)

    assert plain == {"type": "fact", "content": "the build is slow", "timestamp": NOW, "source": "session:s-1"}
    assert (typed["type"], typed["content"], typed["source"]) == ("error", "torn file", "session:s-2")
    assert (typed["timestamp"], typed["rationale"]) == (NOW, "r")
    assert (other["type"], other["content"]) == ("fact", {"code": 7})
    assert tiers.item_of({"content": "  "}, session_id="s-1", now=NOW)["content"] == {"content": "  "}


def test_a_mapping_says_the_fields_of_an_intent_by_their_names():
    held = {
        "type": "decision", "content": "Use Oxigraph", "rationale": "it embeds", "topic": "store", "about": "src/a.py",
        "evidence": ["a measurement"], "confidence": 0.85, "colour": "red", "severity": None,
    }  # fmt: skip

    said = fields(held, "decision", "decisions")

    del said["extra_triples"]
    assert said == {
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
def test_each_field_of_an_intent_that_a_mapping_may_say_is_taken(name):
    assert name in INTENT_FIELDS
    assert fields({"content": "c", name: "said"})[name] == (["said"] if name in LIST_FIELDS else "said")


@pytest.mark.parametrize("explanation", [5, ["why"], {"a": 1}])
def test_an_explanation_that_is_no_text_is_refused(explanation):
    with pytest.raises(InvalidRequest) as refusal:
        fields({"content": "c", "detailed_explanation": explanation})
    assert refusal.value.detail == f"detailed_explanation={explanation!r} is not a text"
    assert refusal.value.hint == "give it as text, or leave it out"


def test_what_is_said_of_a_value_besides_is_kept_by_properties_of_its_own():
    held = {
        "content": "c", "id": 42, "key": "own", "context": ["a", "b"], "affected_module": "M", "verified_by_user": True,
        "metadata": {"affectedModule": "N", "id": "never", "key": "k"},
    }  # fmt: skip
    assert extras(held) == [
        ("category", "facts"), ("localId", "42"), ("key", "k"), ("context", "a"), ("context", "b"),
        ("affectedModule", "M"), ("affectedModule", "N"), ("verified", "true"),
    ]  # fmt: skip
    assert extras({"content": "c", "verified": True}) == [("category", "facts"), ("verified", "true")]
    assert extras({"content": "c", "verified": False, "verified_by_user": None}) == [("category", "facts")]
    assert fields("c")["extra_triples"] == [[JIDO + "category", {"@value": "facts", "@type": STRING}]]


@pytest.mark.parametrize("name", ["id", "context", "affected_module"])
@pytest.mark.parametrize("what", [True, 1.5, {"a": 1}, [["x"]]])
def test_what_is_no_text_is_refused_by_its_name(name, what):
    with pytest.raises(InvalidRequest, match=f"^{name}=.* is not a text") as refusal:
        fields({"content": "c", name: what})
    assert refusal.value.hint == f"give {name} as text, or leave it out"


def test_a_completed_task_is_completed_and_high_confidence_is_high_unless_said_otherwise():
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
def test_a_source_of_a_kind_is_that_kind_of_source(source, source_type):
    assert fields({"content": "c", "source": source})["source_type"] == source_type
    assert fields(create_memory("fact", "c", {"source": source}))["source_type"] == source_type
    assert "source_type" not in fields({"content": "c", "source": "somewhere"})
    assert "source_type" not in fields({"content": "c", "source": ["user"]})


def test_a_memory_made_by_its_type_keeps_its_moment_and_what_its_metadata_says():
    memory = create_memory(
        "fact", "c", {"timestamp": NOW, "confidence": 0.8, "verified": True, "metadata": {"id": "f-1", "context": "x"}}
    )
    later = datetime(2027, 1, 1, tzinfo=UTC)

    said = tiers.fields_of(tiers.item_of(memory, session_id="s-1", now=later), "fact", "facts")

    assert (said["confidence"], said["timestamp"]) == (0.8, "2026-11-21T08:00:00.000000Z")
    assert extras(memory) == [("category", "facts"), ("localId", "f-1"), ("context", "x"), ("verified", "true")]


@pytest.mark.parametrize(
    ("content", "explanation", "told"),
    [
        (" one ", None, ("one", None)),
        ("one", " more ", ("one", "more")),
        ("one", " ", ("one", None)),
        ("one \ntwo\n", None, ("one", "one \ntwo")),
        ("one\ntwo", "more", ("one", "one\ntwo\n\nmore")),
    ],
)
def test_the_first_line_of_a_content_is_its_summary_and_the_rest_explains_it(content, explanation, told):
    assert tiers.summary_and_explanation({"content": content, "detailed_explanation": explanation}) == told


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(min_size=1), JSON)
def test_a_value_comes_back_as_it_was_whatever_it_was(key, held):
    # E093
    summary, explanation, values = kept(key, held)
    found = tiers.given_back(key, values, summary, explanation)
    assert found == held
    assert repr(found) == repr(held) or not isinstance(held, (int, float, str, type(None)))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_a_value_is_converted_once_and_always_to_the_same_text(held):
    # E093
    text = tiers.text_of(held)
    assert text == (held.strip() if isinstance(held, str) else text)
    assert tiers.text_of(text) == text.strip()
    if isinstance(held, dict):
        assert json.loads(text) == held
        assert tiers.text_of(dict(reversed(held.items()))) == text
        assert json.dumps(held, ensure_ascii=False, sort_keys=True) == text


@pytest.mark.parametrize(
    ("held", "words"),
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
def test_what_json_does_not_give_back_as_it_was_is_refused_by_its_place(held, words):
    # E093
    with pytest.raises(InvalidRequest, match=words) as refusal:
        tiers.text_of(held)
    assert refusal.value.hint
    with pytest.raises(InvalidRequest):
        tiers.value_triple("k", held, "s", None)


def test_what_is_nested_too_deeply_is_refused():
    held = []
    for _ in range(100_000):
        held = [held]
    with pytest.raises(InvalidRequest, match="nested too deep"):
        tiers.text_of(held)


def test_a_text_that_its_content_gives_back_is_not_kept_twice():
    assert kept("k", "plain")[2] == []
    assert kept("k", "one\ntwo")[2] == []
    assert kept("k", " spaces ") == ("spaces", None, ['["k", " spaces "]'])
    assert kept("k", {"content": "é"}) == ("é", None, ['["k", {"content": "\\u00e9"}]'])
    assert tiers.value_triple("k", "a", "a", "why") == []
    assert tiers.value_triple("k", "A", "a", None) == [[JIDO + "value", {"@value": '["k", "A"]', "@type": STRING}]]


def test_a_memory_made_by_its_type_is_kept_as_the_mapping_of_its_fields():
    memory = create_memory("fact", "c", {"timestamp": NOW, "metadata": {"id": "f-1"}})
    (text,) = kept("k", memory)[2]
    assert tiers.pair(text) == (
        "k",
        {"type": "fact", "content": "c", "timestamp": "2026-11-21T08:00:00.000000Z", "confidence": 0.5,
         "source": "system", "verified": False, "metadata": {"id": "f-1"}},
    )  # fmt: skip


def test_what_somebody_said_since_is_given_in_the_place_of_the_value():
    _, _, values = kept("k", {"content": "old", "n": 1})

    assert tiers.given_back("k", values, "old", None) == {"content": "old", "n": 1}
    assert tiers.given_back("k", values, "old", "explained since") == {"content": "old", "n": 1}
    assert tiers.given_back("k", values, "new", None) == "new"
    assert tiers.given_back("other", values, "old", "why") == "old"
    lines = kept("k", {"content": "one\ntwo"})
    assert tiers.given_back("k", lines[2], "one", "one\nthree") == "one\nthree"
    assert tiers.given_back("k", lines[2], "One", "One\n two") == {"content": "one\ntwo"}
    explained = kept("k", {"content": "one", "detailed_explanation": "why"})
    assert explained[:2] == ("one", "why")
    assert tiers.given_back("k", explained[2], "one", "because") == {"content": "one", "detailed_explanation": "why"}


@pytest.mark.parametrize(
    ("summary", "explanation", "core"),
    [
        ("one", None, "one"), ("one", "", "one"), ("one", "why", "one"), ("one", "one", "one"),
        ("one", "two\nthree", "one"),
        ("one", "one \ntwo", "one \ntwo"), ("one", "one two\nthree", "one"),
    ],
)  # fmt: skip
def test_the_content_is_all_lines_where_the_summary_is_the_first(summary, explanation, core):
    assert tiers.core(summary, explanation) == core


def test_the_content_of_a_memory_is_its_summary_and_what_explains_it():
    assert tiers.content_of("one", None) == "one"
    assert tiers.content_of("one", "why") == "one\nwhy"
    assert tiers.content_of("one", "one\ntwo") == "one\ntwo"


@pytest.mark.parametrize("text", ["{", "[1, 2]", '["k"]', '["k", 1, 2]', '"ab"', '{"k": 1}', "[NaN, 1]", '["k", NaN]'])
def test_what_somebody_else_wrote_in_the_place_of_a_value_is_passed_over(text):
    assert tiers.pair(text) is None
    assert tiers.given_back("k", [text, '["k", {"content": "s"}]'], "s", None) == {"content": "s"}


def old(**said):
    return {"iri": "urn:e:1", "type": "fact", "summary": "s", "extra_triples": [], **said}


def new(*more, **said):
    triples = [tiers.extra(tiers.KEY, "k"), tiers.extra(tiers.CATEGORY, "facts"), *more]
    return {"type": "fact", "summary": "s", "timestamp": "2027-01-01T00:00:00Z", "extra_triples": triples, **said}


def test_what_a_memory_says_already_is_no_change():
    known = old(extra_triples=new()["extra_triples"][::-1], topic="t", timestamp="2026-01-01T00:00:00Z")
    assert tiers.changes(new(), known) == {}
    assert tiers.changes(new(topic="t"), known) == {}


def test_what_is_new_is_set_and_what_is_not_spoken_of_stays():
    theirs = [tiers.extra(tiers.KEY, "other"), tiers.extra(JIDO + "localId", "f-1"), tiers.extra(tiers.CATEGORY, "x")]

    changed = tiers.changes(new(topic="t", evidence=["b", "a"]), old(extra_triples=theirs, evidence=["a"], topic="u"))

    assert set(changed) == {"topic", "evidence", "extra_triples"}
    assert (changed["topic"], changed["evidence"]) == ("t", ["a", "b"])
    assert changed["extra_triples"] == [*new()["extra_triples"], *theirs[:2]]


def test_a_value_takes_the_place_of_the_one_of_its_key_alone():
    mine = tiers.extra(tiers.VALUE, '["k", {"content": "s", "n": 2}]')
    theirs = [tiers.extra(tiers.VALUE, '["k", {"content": "s", "n": 1}]'), tiers.extra(tiers.VALUE, '["o", " s"]')]

    changed = tiers.changes(new(mine), old(extra_triples=[*new()["extra_triples"], *theirs]))

    assert changed == {"extra_triples": [*new(mine)["extra_triples"], theirs[1]]}


def test_that_a_person_verified_it_stays_unless_it_is_said_again():
    verified = tiers.extra(tiers.VERIFIED, "true", "boolean")
    known = old(extra_triples=[*new()["extra_triples"], verified])
    assert tiers.changes(new(), known) == {}
    assert tiers.changes(new(verified), known) == {}
    assert tiers.changes(new(verified), old(extra_triples=new()["extra_triples"])) == {
        "extra_triples": new(verified)["extra_triples"]
    }


def test_a_memory_loses_one_of_its_keys_with_the_value_of_it():
    theirs = [
        tiers.extra(tiers.KEY, "k"), tiers.extra(tiers.KEY, "o"), tiers.extra(tiers.VALUE, '["k", 1]'),
        tiers.extra(tiers.VALUE, '["o", 1]'), tiers.extra(JIDO + "context", "k"), [JIDO + "relatedError", {"@id": "k"}],
        tiers.extra(JIDO + "context", '["k", 1]'),
    ]  # fmt: skip
    known = old(extra_triples=theirs)
    assert tiers.keys_of(known) == ["k", "o"]
    assert tiers.without("k", known) == {"extra_triples": [theirs[1], *theirs[3:]]}
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
