"""Single values: trimmed, or refused with the fault and a valid form."""

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
def tidy():
    return FieldNormalizer(SCHEMA)


def refused(tidy):
    """The only violation, as code, field, value and message."""
    (found,) = tidy.violations
    return found.code, found.field, found.value, found.message


def test_a_value_is_shown_as_python_writes_it_and_not_whole():
    assert (short_repr("a"), short_repr("x" * 300)) == ("'a'", "'" + "x" * 199)
    assert short_repr(10**5000) == "a very large int"


def test_a_text_is_as_long_as_it_may_be_in_bytes():
    for fits in ("x" * 10, "é" * 5):
        assert check_size("topic", fits, 10) is None
    error = refusal(check_size, "topic", "é" * 6, 10)
    assert (error.code, error.detail) == ("payload_too_large", "topic has 12 bytes; a text holds at most 10")
    assert error.hint == (
        "summarise it, and name the full text in evidence; or the operator sets literal = 12 in"
        " [limits] of ~/.config/jidomem/config.toml"
    )


def test_a_text_longer_than_any_limit_is_not_answered_with_a_limit_to_set():
    for size in (LITERAL_MOST, LITERAL_MOST + 1):
        error = refusal(check_size, "topic", "x" * size, LITERAL_LIMIT)
        assert error.detail == f"topic has {size:,} bytes; a text holds at most {LITERAL_LIMIT:,}"
        assert error.hint.startswith("summarise it, and name the full text in evidence")
        assert (f"literal = {size}" in error.hint) is (size == LITERAL_MOST)


def test_a_tidy_holds_texts_to_its_own_limit():
    error = refusal(FieldNormalizer(SCHEMA, 10).field, "summary", "x" * 11)
    assert error.detail == "summary has 11 bytes; a text holds at most 10"


@pytest.mark.parametrize("name", ["about", "evidence", "alternatives"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_has_as_many_entries_as_it_may_have(name, kind):
    assert check_entries(MemoryUpdateIntent(**{name: kind(["x"] * ENTRIES_LIMIT)})) is None
    error = refusal(check_entries, MemoryUpdateIntent(**{name: kind(["x"] * (ENTRIES_LIMIT + 1))}))
    assert error.detail == f"{name} has 1,001 entries; it holds at most 1,000"
    assert error.hint == "submit several intents, or name what the entries have in common"
    assert check_entries(MemoryUpdateIntent(**{name: "x" * 2000})) is None


def test_what_is_refused_is_shown_so_that_it_can_be_printed(tidy):
    for value in ("a", "a\x00b" + "x" * 300, 5, ["a"], "x" * 300):
        tidy.refuse("invalid_argument", "topic", value, "no", nearest="b")
    shown = ["a", ascii(("a\x00b" + "x" * 300)[:200]), "5", "['a']", "x" * 300]
    assert [found.value for found in tidy.violations] == shown
    assert {(found.code, found.field, found.message, found.nearest) for found in tidy.violations} == {
        ("invalid_argument", "topic", "no", "b")
    }


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("topic", " a\n", "a"), ("topic", " ", None), ("topic", None, None), ("confidence", 0, 0),
        ("confidence", 0.5, 0.5), ("confidence", " high", "high"), ("about", None, []), ("about", [], []),
        ("about", (" a", "", "a ", "b"), ["a", "b"]), ("extra_triples", ((1, 2),), [(1, 2)]),
        ("valid_from", datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"), ("topic", "a\tb", "a\tb"),
    ],
)  # fmt: skip
def test_a_field_is_trimmed_and_what_is_blank_is_nothing(tidy, name, given, kept):
    assert tidy.field(name, given) == kept
    assert tidy.violations == []


@pytest.mark.parametrize(
    ("name", "given", "value", "message", "left"),
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
def test_a_value_that_cannot_be_one_of_its_field_is_told_why(tidy, name, given, value, message, left):
    assert tidy.field(name, given) == left
    assert refused(tidy) == ("invalid_argument", name, value, message)


def test_a_text_in_the_place_of_a_list_is_repaired_to_a_list_of_it(tidy):
    tidy.field("about", "a")
    (found,) = tidy.violations
    assert found.repair({"about": "a", "topic": "t"}) == {"about": ["a"], "topic": "t"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Bob", BASE + "agents/bob"), (BASE + "agents/bob", BASE + "agents/bob"), ("jido:me", JIDO + "me"),
        ("https://example.org/me", "https://example.org/me"), ("x" * 200, BASE + "agents/" + "x" * 200),
    ],
)  # fmt: skip
def test_a_reference_is_an_iri_or_a_name_below_its_folder(tidy, given, kept):
    assert tidy.reference("asserted_by", given, "agents") == kept
    assert tidy.violations == []


@pytest.mark.parametrize(
    ("given", "folder"),
    [("sessions/bob", "agents"), ("memory/1", "agents"), ("projects/a/b", "projects"), ("projects/", "projects")],
)
def test_a_reference_of_ours_that_lies_elsewhere_is_told_where_it_belongs(tidy, given, folder):
    tidy.reference("asserted_by", BASE + given, folder)
    message = f"asserted_by is a name, or an IRI below {BASE}{folder}/"
    assert refused(tidy) == ("invalid_iri", "asserted_by", BASE + given, message)


@pytest.mark.parametrize("given", ["???", "x" * 201])
def test_a_name_has_letters_and_not_too_many(tidy, given):
    tidy.reference("asserted_by", given, "agents")
    message = "asserted_by needs a name of 1 to 200 letters and digits"
    assert refused(tidy) == ("invalid_iri", "asserted_by", given, message)


@pytest.mark.parametrize(("given", "near"), [("HTTPS://A/b", "https://a/b"), ("x" * 90, None)])
def test_what_is_no_iri_is_refused_with_the_form_it_should_have(tidy, given, near):
    assert tidy.iri("about", given) == given
    (found,) = tidy.violations
    message = "about takes an absolute http, https or urn IRI in lower case and without spaces"
    assert refused(tidy) == ("invalid_iri", "about", given, f"{message}, not {given[:80]!r}")
    assert found.nearest == near
    assert (found.repair({"about": [given, "c"]}) if found.repair else None) == (
        {"about": [near, "c"]} if near else None
    )


def test_an_iri_is_itself_or_its_prefixed_name(tidy):
    assert [tidy.iri("about", given) for given in ("urn:x:1", "jido:Fact")] == ["urn:x:1", JIDO + "Fact"]
    assert tidy.violations == []


STATES = ("Planned", "InProgress", "Completed")


@pytest.mark.parametrize(
    ("given", "found"), [("in progress", "InProgress"), ("PLANNED", "Planned"), ("begun", "InProgress")]
)
def test_a_choice_is_named_in_any_spelling(tidy, given, found):
    assert tidy.choice("status", given, STATES, {"begun": "InProgress"}) == found
    assert tidy.violations == []


@pytest.mark.parametrize(
    ("given", "near"), [("Done", "Completed"), ("compl", "Completed"), ("fixed", None), ("xyzzy", None)]
)
def test_a_choice_that_is_none_is_refused_with_those_there_are_and_the_one_meant(tidy, given, near):
    assert tidy.choice("status", given, STATES, {}) == given
    (found,) = tidy.violations
    message = f"status is one of Planned, InProgress, Completed, not {given!r}"
    assert refused(tidy) == ("shape_violation", "status", given, message)
    assert (found.allowed, found.nearest) == (STATES, near)
    assert (found.repair({"status": given}) if found.repair else None) == ({"status": near} if near else None)
