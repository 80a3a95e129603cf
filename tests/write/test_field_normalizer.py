"""Normalization of single values: trimmed, or refused with the fault and a valid form."""

from datetime import UTC, datetime

import pytest
from writing import refusal

from jidomem import MemoryUpdateIntent
from jidomem.rdf.vocab import BASE, JIDO
from jidomem.records.policy import ENTRIES_LIMIT, LITERAL_LIMIT, LITERAL_MOST
from jidomem.schema import ontology
from jidomem.write.normalize import FieldNormalizer, check_entries, check_size, short_repr

SCHEMA = ontology.load()


@pytest.fixture
def normalizer():
    return FieldNormalizer(SCHEMA)


def refused(normalizer):
    """Return code, field, value and message of the only violation."""
    (violation,) = normalizer.violations
    return violation.code, violation.field, violation.value, violation.message


def test_a_shown_value_is_its_truncated_repr():
    assert (short_repr("a"), short_repr("x" * 300)) == ("'a'", "'" + "x" * 199)
    assert short_repr(10**5000) == "a very large int"


def test_a_text_is_limited_in_bytes():
    for text in ("x" * 10, "é" * 5):
        assert check_size("topic", text, 10) is None
    error = refusal(check_size, "topic", "é" * 6, 10)
    assert (error.code, error.detail) == ("payload_too_large", "topic has 12 bytes; a text holds at most 10")
    assert error.hint == (
        "summarise it, and name the full text in evidence; or the operator sets literal = 12 in"
        " [limits] of ~/.config/jidomem/config.toml"
    )


def test_a_text_above_the_maximum_limit_gets_no_hint_to_raise_the_limit():
    for size in (LITERAL_MOST, LITERAL_MOST + 1):
        error = refusal(check_size, "topic", "x" * size, LITERAL_LIMIT)
        assert error.detail == f"topic has {size:,} bytes; a text holds at most {LITERAL_LIMIT:,}"
        assert error.hint.startswith("summarise it, and name the full text in evidence")
        assert (f"literal = {size}" in error.hint) is (size == LITERAL_MOST)


def test_a_normalizer_applies_its_own_text_limit():
    error = refusal(FieldNormalizer(SCHEMA, 10).field, "summary", "x" * 11)
    assert error.detail == "summary has 11 bytes; a text holds at most 10"


@pytest.mark.parametrize("name", ["about", "evidence", "alternatives"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_above_the_entry_limit_is_refused(name, kind):
    assert check_entries(MemoryUpdateIntent(**{name: kind(["x"] * ENTRIES_LIMIT)})) is None
    error = refusal(check_entries, MemoryUpdateIntent(**{name: kind(["x"] * (ENTRIES_LIMIT + 1))}))
    assert error.detail == f"{name} has 1,001 entries; it holds at most 1,000"
    assert error.hint == "submit several intents, or name what the entries have in common"
    assert check_entries(MemoryUpdateIntent(**{name: "x" * 2000})) is None


def test_references_have_a_limit_of_short_ids_alone():
    assert check_entries(MemoryUpdateIntent(supersedes=[f"https://jido.ai/memory/{n}" for n in range(2000)])) is None
    error = refusal(check_entries, MemoryUpdateIntent(supersedes=["01a2"] * (ENTRIES_LIMIT + 1)))
    assert (error.detail, error.hint) == ("supersedes has 1,001 short ids; it holds at most 1,000", "give IRIs")


def test_a_refused_value_is_shown_printable_and_truncated(normalizer):
    for value in ("a", "a\x00b" + "x" * 300, 5, ["a"], "x" * 300):
        normalizer.refuse("invalid_argument", "topic", value, "no", nearest="b")
    shown = ["a", ascii(("a\x00b" + "x" * 300)[:200]), "5", "['a']", "x" * 300]
    assert [violation.value for violation in normalizer.violations] == shown
    assert {
        (violation.code, violation.field, violation.message, violation.nearest) for violation in normalizer.violations
    } == {("invalid_argument", "topic", "no", "b")}


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("topic", " a\n", "a"), ("topic", " ", None), ("topic", None, None), ("confidence", 0, 0),
        ("confidence", 0.5, 0.5), ("confidence", " high", "high"), ("about", None, []), ("about", [], []),
        ("about", (" a", "", "a ", "b"), ["a", "b"]), ("extra_triples", ((1, 2),), [(1, 2)]),
        ("valid_from", datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"), ("topic", "a\tb", "a\tb"),
    ],
)  # fmt: skip
def test_a_field_is_trimmed_and_a_blank_one_is_empty(normalizer, name, raw, expected):
    assert normalizer.field(name, raw) == expected
    assert normalizer.violations == []


@pytest.mark.parametrize(
    ("name", "raw", "value", "message", "expected"),
    [
        ("topic", 5, "5", "topic is text, not a number", None),
        ("topic", datetime(2026, 1, 1), "datetime.datetime(2026, 1, 1, 0, 0)", "topic is text, not datetime", None),
        ("about", 5, "5", "about is a list, not a number", []),
        ("extra_triples", "a b", "a b", "extra_triples is a list, not a text", []),
        ("about", ["a", 5], "5", "about is a list of texts, and an entry is a number", ["a"]),
        ("about", "a", "a", "about is a list of texts, not one text", []),
        ("topic", "a\x07", ascii("a\x07"), "topic contains a control character, U+0007, at character 1: leave it out",
         None),
        ("topic", "\ud800", ascii("\ud800"), "topic contains a lone surrogate, U+D800, at character 0: leave it out",
         None),
        ("topic", "\udfff", ascii("\udfff"), "topic contains a lone surrogate, U+DFFF, at character 0: leave it out",
         None),
        ("topic", "é \uffff", ascii("é \uffff"), "topic contains a noncharacter, U+FFFF, at character 2: leave it out",
         None),
    ],
)  # fmt: skip
def test_a_value_invalid_for_its_field_is_refused_with_the_reason(normalizer, name, raw, value, message, expected):
    assert normalizer.field(name, raw) == expected
    assert refused(normalizer) == ("invalid_argument", name, value, message)


def test_a_text_given_for_a_list_is_repaired_to_a_list(normalizer):
    normalizer.field("about", "a")
    (violation,) = normalizer.violations
    assert violation.repair({"about": "a", "topic": "t"}) == {"about": ["a"], "topic": "t"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Bob", BASE + "agents/bob"), (BASE + "agents/bob", BASE + "agents/bob"), ("jido:me", JIDO + "me"),
        ("https://example.org/me", "https://example.org/me"), ("x" * 200, BASE + "agents/" + "x" * 200),
    ],
)  # fmt: skip
def test_a_reference_is_an_iri_or_a_name_below_its_folder(normalizer, raw, expected):
    assert normalizer.reference("asserted_by", raw, "agents") == expected
    assert normalizer.violations == []


@pytest.mark.parametrize(
    ("raw", "folder"),
    [("sessions/bob", "agents"), ("memory/1", "agents"), ("projects/a/b", "projects"), ("projects/", "projects")],
)
def test_a_reference_in_another_own_namespace_is_refused_with_the_expected_one(normalizer, raw, folder):
    normalizer.reference("asserted_by", BASE + raw, folder)
    message = f"asserted_by is a name, or an IRI below {BASE}{folder}/"
    assert refused(normalizer) == ("invalid_iri", "asserted_by", BASE + raw, message)


@pytest.mark.parametrize("raw", ["???", "x" * 201])
def test_a_name_without_letters_or_too_long_is_refused(normalizer, raw):
    normalizer.reference("asserted_by", raw, "agents")
    message = "asserted_by needs a name of 1 to 200 letters and digits"
    assert refused(normalizer) == ("invalid_iri", "asserted_by", raw, message)


@pytest.mark.parametrize(("raw", "near"), [("HTTPS://A/b", "https://a/b"), ("x" * 90, None)])
def test_an_invalid_iri_is_refused_with_the_nearest_valid_one(normalizer, raw, near):
    assert normalizer.iri("about", raw) == raw
    (violation,) = normalizer.violations
    message = "about takes an absolute http, https or urn IRI in lower case and without spaces"
    assert refused(normalizer) == ("invalid_iri", "about", raw, f"{message}, not {raw[:80]!r}")
    assert violation.nearest == near
    assert (violation.repair({"about": [raw, "c"]}) if violation.repair else None) == (
        {"about": [near, "c"]} if near else None
    )


def test_an_iri_is_unchanged_and_a_prefixed_name_is_expanded(normalizer):
    assert [normalizer.iri("about", raw) for raw in ("urn:x:1", "jido:Fact")] == ["urn:x:1", JIDO + "Fact"]
    assert normalizer.violations == []


STATES = ("Planned", "InProgress", "Completed")


@pytest.mark.parametrize(
    ("raw", "expected"), [("in progress", "InProgress"), ("PLANNED", "Planned"), ("begun", "InProgress")]
)
def test_a_choice_is_accepted_in_any_spelling(normalizer, raw, expected):
    assert normalizer.choice("status", raw, STATES, {"begun": "InProgress"}) == expected
    assert normalizer.violations == []


@pytest.mark.parametrize(
    ("raw", "near"), [("Done", "Completed"), ("compl", "Completed"), ("fixed", None), ("xyzzy", None)]
)
def test_an_invalid_choice_is_refused_with_the_allowed_and_nearest_ones(normalizer, raw, near):
    assert normalizer.choice("status", raw, STATES, {}) == raw
    (violation,) = normalizer.violations
    message = f"status is one of Planned, InProgress, Completed, not {raw!r}"
    assert refused(normalizer) == ("shape_violation", "status", raw, message)
    assert (violation.allowed, violation.nearest) == (STATES, near)
    assert (violation.repair({"status": raw}) if violation.repair else None) == ({"status": near} if near else None)
