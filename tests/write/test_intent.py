"""The intent: its fields and types, its validation on submission, and its JSON form."""

import dataclasses
import json
import math

import pytest
from conftest import decision, files, fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st
from writing import MEMORY, codes, refusal, values_of

import jidomem
from jidomem import MemoryUpdateIntent
from jidomem.rdf.vocab import CLASS_OF_TYPE, GUIDE_TYPES, WRITER_TYPES

SEED_FIELDS = (
    "type", "iri", "summary", "detailed_explanation", "rationale", "applies_to_project", "asserted_by", "asserted_in",
    "confidence", "evidence", "supersedes", "invalidates", "extra_triples",
)  # fmt: skip
LISTS = ("evidence", "supersedes", "invalidates", "extra_triples")
EXTENDED = (
    "alternative", "trade_off", "coding_standard", "architectural_convention", "agent_rule", "process_convention",
    "bug", "failure", "incident", "root_cause", "milestone", "plan",
)  # fmt: skip
texts = st.text(st.characters(codec="utf-8"), max_size=30)
values = st.none() | texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()


def test_the_thirteen_fields_of_the_format_come_first_and_in_order():  # C002
    assert tuple(field.name for field in dataclasses.fields(MemoryUpdateIntent))[:13] == SEED_FIELDS


def test_no_field_is_required_and_defaults_are_empty_lists_or_none():  # C002 C005
    blank = MemoryUpdateIntent()
    for field in dataclasses.fields(MemoryUpdateIntent):
        expected = [] if field.name in (*LISTS, "about", "alternatives", "coexists_with", "revives") else None
        assert getattr(blank, field.name) == expected, field.name


@pytest.mark.parametrize("name", LISTS)
def test_default_lists_are_not_shared_between_intents(name):  # C005
    getattr(MemoryUpdateIntent(), name).append("x")
    assert getattr(MemoryUpdateIntent(), name) == []


@pytest.mark.parametrize("kind", WRITER_TYPES)
def test_each_of_the_twelve_types_is_accepted(writer, kind):  # C003
    assert len(set(WRITER_TYPES)) == 12
    assert writer.submit_intent("p", intent(type=kind, rationale="because")).status == "asserted"


@pytest.mark.parametrize("kind", [*EXTENDED, *sorted(set(GUIDE_TYPES) - set(WRITER_TYPES))])
def test_extended_types_are_stored_with_their_class(memory, kind):  # C011
    receipt = memory.writer.submit_intent("p", intent(type=kind))
    memory_row = memory.reader.get_memory("p", receipt.iri)
    assert memory_row["class"].endswith(CLASS_OF_TYPE[kind])


@pytest.mark.parametrize(("level", "individual"), [("low", "Low"), ("medium", "Medium"), ("high", "High")])
def test_confidence_levels_are_stored_as_their_individuals(memory, level, individual):  # C004
    receipt = memory.writer.submit_intent("p", intent(confidence=level))
    assert values_of(memory, receipt.iri, "hasConfidence") == [f"<https://jido.ai/ontology#{individual}>"]


def test_an_iri_is_generated_where_the_intent_has_none(writer):  # C006
    assert writer.submit_intent("p", intent()).iri.startswith(MEMORY)
    assert writer.submit_intent("p", intent(iri="urn:x:1", summary="other")).iri == "urn:x:1"


def test_extra_triples_are_written_as_given(memory):  # C007
    extra = [
        ["jido:errorCode", "E42"],
        ["https://example.org/weight", 5],
        ["this", "https://example.org/flag", True],
        ["https://example.org/thing", "https://example.org/part", {"@value": "Teil", "@language": "de"}],
        ["https://example.org/see", {"@id": "https://example.org/other"}],
    ]
    item = f"<{memory.writer.submit_intent('p', intent(type='error', extra_triples=extra)).iri}>"
    triples = set(memory.index.triples("https://jido.ai/projects/p/graphs/long-term-context"))
    example, integer = "<https://example.org/", "<http://www.w3.org/2001/XMLSchema#integer>"
    assert (item, "<https://jido.ai/ontology#errorCode>", '"E42"') in triples
    assert (item, f"{example}weight>", f'"5"^^{integer}') in triples
    assert (item, f"{example}flag>", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>') in triples
    assert (f"{example}thing>", f"{example}part>", '"Teil"@de') in triples
    assert (item, f"{example}see>", f"{example}other>") in triples


def test_supersession_of_an_unknown_memory_is_refused_and_of_a_known_one_recorded(memory):  # C008
    old = memory.writer.submit_intent("p", intent()).iri
    error = refusal(memory.writer.submit_intent, "p", intent(summary="new", supersedes=[MEMORY + "nobody"]))
    assert error.code == "unknown_reference"
    new = memory.writer.submit_intent("p", intent(summary="new", supersedes=[f" {old} ", old])).iri
    assert values_of(memory, old, "supersededBy") == [f"<{new}>"]


def test_an_intent_is_validated_on_submission_and_not_on_construction(tmp_path):  # C009
    intent = MemoryUpdateIntent(type="no such type", confidence="no such level", supersedes=[MEMORY + "nobody"])
    with jidomem.open(tmp_path) as memory:
        found_codes = {*codes(refusal(memory.writer.submit_intent, "p", intent))}
    assert found_codes == {"invalid_confidence", "unknown_type", "unknown_reference", "missing_required_fields"}
    assert files(tmp_path) == {}


def test_an_unknown_type_is_refused_with_the_known_types(writer):  # C009
    error = refusal(writer.submit_intent, "p", intent(type="musing"))
    assert error.code == "unknown_type"
    assert set(WRITER_TYPES) <= set(error.violations[0].allowed)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys([name for name in SEED_FIELDS if name not in LISTS], values),
            **dict.fromkeys(["evidence", "supersedes", "about"], st.lists(texts, max_size=3)),
            "extra_triples": st.lists(st.lists(values, min_size=2, max_size=3), max_size=3),
        },
    )
)
@settings(max_examples=200, derandomize=True)
def test_an_intent_is_unchanged_by_json_and_dict_round_trips(fields):  # C010
    submitted = MemoryUpdateIntent(**fields)
    assert MemoryUpdateIntent.from_json(submitted.to_json()) == submitted
    assert MemoryUpdateIntent.from_dict(json.loads(json.dumps(submitted.to_dict()))) == submitted


def test_an_intent_as_json_is_stored_byte_for_byte_like_the_object(tmp_path):  # C010
    stored_files = []
    for name, proposal in (("a", MemoryUpdateIntent(**decision())), ("b", json.loads(json.dumps(decision())))):
        with jidomem.open(tmp_path / name, sources=fixed_sources()) as memory:
            memory.writer.submit_intent("p", proposal)
        stored_files.append(files(tmp_path / name))
    assert stored_files[0] == stored_files[1]


@pytest.mark.parametrize("proposal", ["remember this", ["fact"], 7, None, b"{}"])
def test_a_submission_that_is_no_intent_is_refused(memory, proposal):  # C001
    error = refusal(memory.writer.submit_intent, "p", proposal)
    assert error.code == "invalid_argument"
    assert "JSON object" in error.detail
    assert files(memory.settings.root) == {}


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("sumary", "summary"), ("assertedBy", "asserted_by"), ("title", "summary"), ("Evidence", "evidence")],
)
def test_an_unknown_field_is_refused_with_its_name_and_the_nearest_field(key, nearest):  # C001
    error = refusal(MemoryUpdateIntent.from_dict, {key: "x"})
    assert error.code == "unknown_field"
    assert (error.violations[0].field, error.violations[0].nearest) == (key, nearest)


def test_an_unknown_field_without_a_similar_one_has_no_nearest_field():  # C001
    assert refusal(MemoryUpdateIntent.from_dict, {"xyzzy": 1}).violations[0].nearest is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type": "fact",}', "line 1 column"),
        ('{"summary": "a", "summary": "b"}', "line 1 column 18: the key 'summary' is given twice"),
        ('{"confidence": NaN}', "line 1 column 16: NaN is not JSON"),
        ('{"confidence": -Infinity}', "-Infinity is not JSON"),
        (b'{"summary": "\xff"}', "not UTF-8 at byte 13"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_malformed_json_is_refused_with_its_position(text, expected):  # C010
    error = refusal(MemoryUpdateIntent.from_json, text)
    assert error.code == "malformed_json"
    assert expected in error.detail


def test_a_confidence_number_is_read_exactly():  # C010
    given = MemoryUpdateIntent.from_json('{"confidence": 0.1}')
    assert given.confidence == 0.1
    assert math.isfinite(given.confidence)
