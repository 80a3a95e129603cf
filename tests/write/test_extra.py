"""Extra triples in their canonical form, and those that repeat a field."""

from datetime import datetime
from decimal import Decimal

import pytest
from writing import refusal

from jidomem.base.clock import format_timestamp
from jidomem.rdf.vocab import BASE, JIDO, RDF, XSD
from jidomem.records.policy import TRIPLES_LIMIT
from jidomem.schema import ontology
from jidomem.write import normalize
from jidomem.write.normalize import FieldNormalizer

SCHEMA = ontology.load()
OWN, P = "urn:x:own", "urn:x:p"


@pytest.fixture
def normalizer():
    return FieldNormalizer(SCHEMA)


def value_of(normalizer, object_value, predicate=P):
    """Return the written form of an object."""
    ((_, _, value),) = normalize.written(normalizer, [[predicate, object_value]], OWN)
    return value


def refused(normalizer, *triples):
    """Return code, value and message of each violation of triples without a written form."""
    assert normalize.written(normalizer, [*triples], OWN) == []
    assert {violation.field for violation in normalizer.violations} == {"extra_triples"}
    return [(violation.code, violation.value, violation.message) for violation in normalizer.violations]


@pytest.mark.parametrize(
    ("triple", "expected"),
    [
        ((P, "a"), [OWN, P, "a"]), (["this", " jido:key ", "a"], [OWN, JIDO + "key", "a"]),
        ([" jido:x", P, "a"], [JIDO + "x", P, "a"]), (["urn:x:s", "jido:key", " a "], ["urn:x:s", JIDO + "key", "a"]),
    ],
)  # fmt: skip
def test_a_pair_describes_the_memory_and_a_triple_its_subject(normalizer, triple, expected):
    assert normalize.written(normalizer, [triple], OWN) == [[*expected[:2], {"@value": "a", "@type": XSD + "string"}]]
    assert normalizer.violations == []


def test_a_repeated_triple_is_written_once_at_its_first_position(normalizer):
    triples = normalize.written(normalizer, [[P, "a"], [P, "b"], ["this", P, "a"]], OWN)
    assert [value["@value"] for _, _, value in triples] == ["a", "b"]


def test_extra_triples_above_the_limit_are_refused(normalizer):
    assert len(normalize.written(normalizer, [[P, n] for n in range(TRIPLES_LIMIT)], OWN)) == TRIPLES_LIMIT
    error = refusal(normalize.written, normalizer, [[P, 1]] * (TRIPLES_LIMIT + 1), OWN)
    assert (error.code, error.detail) == ("payload_too_large", "501 extra triples; an intent holds at most 500")
    assert error.hint == "submit several intents"


@pytest.mark.parametrize("raw", ["ab", [P], ["a", "b", "c", "d"], {"a": 1, "b": 2}, 5])
def test_a_value_that_is_no_triple_is_refused_with_the_expected_form(normalizer, raw):
    message = "an extra triple is [predicate, object] about this memory, or [subject, predicate, object]"
    ((code, _, text),) = refused(normalizer, raw)
    assert (code, text) == ("invalid_argument", message)


@pytest.mark.parametrize(
    ("triple", "node"),
    [(["_:b", P, "x"], "_:b"), ([P, " _:b", "x"], " _:b"), ([" _:b", "x"], " _:b"), ([P, "_:b"], "_:b"),
     ([P, " _:b "], " _:b ")],
)  # fmt: skip
def test_a_blank_node_is_refused(normalizer, triple, node):
    assert refused(normalizer, triple) == [("invalid_iri", node, f"the blank node {node} has no name: give it an IRI")]


@pytest.mark.parametrize(
    ("triple", "term", "shown_term"),
    [(["plain", "x"], "plain", "'plain'"), (["plain", P, "x"], "plain", "'plain'"), ([5, "x"], "5", "5"),
     ([P, 5, "x"], "5", "5"), (["y" * 99, "x"], "y" * 99, "'" + "y" * 79)],
)  # fmt: skip
def test_a_subject_or_predicate_that_is_no_iri_is_refused(normalizer, triple, term, shown_term):
    message = f"subject and predicate are IRIs, prefixed names such as jido:topic, or 'this', not {shown_term}"
    assert refused(normalizer, triple) == [("invalid_iri", term, message)]


def test_this_is_a_subject_and_no_predicate(normalizer):
    triples = normalize.written(normalizer, [["this", "this", "a"]], OWN)
    assert triples[0][0] == OWN
    assert [violation.value for violation in normalizer.violations][:1] == ["this"]


@pytest.mark.parametrize(
    ("raw", "expected", "datatype"),
    [
        (True, "true", "boolean"), (False, "false", "boolean"), (7, "7", "integer"), (-(2**63) + 1, str(-(2**63) + 1),
        "integer"), (0.5, "0.5", "double"), (" a\tb \n", " a\tb \n", "string"),
        ("see urn:x:1 there", "see urn:x:1 there", "string"),
    ],
)  # fmt: skip
def test_a_python_value_is_written_as_a_literal_of_its_datatype(normalizer, raw, expected, datatype):
    assert value_of(normalizer, raw) == {"@value": expected, "@type": XSD + datatype}
    assert normalizer.violations == []


@pytest.mark.parametrize("raw", [2**63, -(2**63), 10**40])
def test_an_integer_of_64_bits_or_more_is_refused_with_the_form_that_is_accepted(normalizer, raw):
    ((code, _, message),) = refused(normalizer, [P, raw])
    assert code == "invalid_argument"
    assert message == 'so large an integer is given as {"@value": "DIGITS", "@type": "xsd:integer"}'
    assert value_of(normalizer, {"@value": str(2**63), "@type": "xsd:integer"})["@value"] == str(2**63)


@pytest.mark.parametrize(
    "raw", [float("nan"), float("inf"), Decimal("1e999999999"), Decimal("1e-999999999"), None, [], "", " \n"]
)
def test_an_unsupported_value_is_refused_as_an_object(normalizer, raw):
    ((code, _, message),) = refused(normalizer, [P, raw])
    assert (code, message) == (
        "invalid_argument",
        "an object is text, a finite number of at most 400 digits, a boolean or an IRI",
    )


@pytest.mark.parametrize(
    ("predicate", "raw", "expected"),
    [
        (P, " urn:x:1 ", {"@id": "urn:x:1"}), (P, "jido:Fact", {"@id": JIDO + "Fact"}),
        ("jido:topic", "urn:x:1", {"@value": "urn:x:1", "@type": XSD + "string"}),
        ("jido:expiresOn", "2027-01-01", {"@value": "2027-01-01T00:00:00.000000Z", "@type": XSD + "dateTime"}),
        ("jido:verified", "true", {"@value": "true", "@type": XSD + "boolean"}),
        ("jido:assignedTo", "urn:x:1", {"@id": "urn:x:1"}),
    ],
)  # fmt: skip
def test_a_text_is_written_with_the_datatype_of_its_property_or_as_an_iri(normalizer, predicate, raw, expected):
    assert value_of(normalizer, raw, predicate) == expected
    assert normalizer.violations == []


@pytest.mark.parametrize(("name", "raw"), [("expiresOn", "soon"), ("verified", "maybe")])
def test_a_text_invalid_for_its_datatype_is_refused(normalizer, name, raw):
    (datatype,) = SCHEMA.properties[f"<{JIDO}{name}>"].range
    message = f"{raw!r} is not written as a {datatype[1:-1]} is"
    assert refused(normalizer, [f"jido:{name}", raw]) == [("shape_violation", raw, message)]


@pytest.mark.parametrize(
    ("datatype", "valid", "invalid"),
    [
        (
            "date",
            ["2028-02-29", "2026-01-31Z", "2026-01-31+01:00"],
            ["2026-02-30", "2026-13-45", "0000-01-01", "tomorrow"],
        ),
        ("time", ["23:59:59", "08:00:00.5Z"], ["24:00:01", "8:00", "12:60:00"]),
        ("dateTime", ["2026-01-31T08:00:00Z"], ["2026-02-30T08:00:00Z", "2026-01-31"]),
        ("int", ["2147483647", "-2147483648"], ["2147483648", "1.0", "9" * 5000]),
        ("unsignedByte", ["255", "+0"], ["256", "-1"]),
        ("nonNegativeInteger", ["0", "9" * 4000], ["-1"]),
        ("positiveInteger", ["1"], ["0"]),
        ("negativeInteger", ["-1"], ["0"]),
        ("integer", ["-7", "9" * 5000], ["12.5"]),
        ("double", ["1e-5", ".5", "-INF", "NaN"], ["1,5", "e5", "inf"]),
    ],
)
def test_a_literal_without_a_value_of_its_datatype_is_refused(normalizer, datatype, valid, invalid):
    for text in valid:
        assert value_of(normalizer, {"@value": text, "@type": XSD + datatype})["@value"] == text
    assert normalizer.violations == []
    for text in invalid:
        ((code, value, _),) = refused(FieldNormalizer(SCHEMA), [P, {"@value": text, "@type": XSD + datatype}])
        assert (code, value) == ("shape_violation", text)


def test_a_day_that_does_not_exist_is_refused_with_the_reason(normalizer):
    ((_, _, message),) = refused(normalizer, [P, {"@value": "2026-02-30", "@type": XSD + "date"}])
    assert message.endswith("is: February 2026 has 28 days")


def test_a_long_refused_text_is_truncated_in_the_message(normalizer):
    ((_, value, message),) = refused(normalizer, ["jido:verified", "x" * 99])
    assert (value, message[:84]) == ("x" * 99, "'" + "x" * 80 + "' i")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"@id": " urn:x:1 "}, {"@id": "urn:x:1"}), ({"@value": " a"}, {"@value": " a", "@type": XSD + "string"}),
        ({"@value": "urn:x:1"}, {"@value": "urn:x:1", "@type": XSD + "string"}),
        ({"@value": " 5 ", "@type": "xsd:integer"}, {"@value": "5", "@type": XSD + "integer"}),
        ({"@value": " a ", "@language": "DE-at"}, {"@value": " a ", "@language": "de-at"}),
        ({"@value": "a", "@language": "a-12345678"}, {"@value": "a", "@language": "a-12345678"}),
    ],
)  # fmt: skip
def test_an_explicit_object_is_written_as_given(normalizer, raw, expected):
    assert value_of(normalizer, raw, "jido:expiresOn" if "@id" in raw else P) == expected
    assert normalizer.violations == []


HOW = 'an object is {"@id": IRI}, {"@value": text}, or {"@value": text} with "@type" or "@language"'


@pytest.mark.parametrize(
    ("raw", "value", "message"),
    [
        ({}, "{}", HOW), ({"@id": 5}, "{'@id': 5}", HOW), ({"@type": "xsd:date"}, "{'@type': 'xsd:date'}", HOW),
        ({"@id": "urn:x:1", "@value": "a"}, "{'@id': 'urn:x:1', '@value': 'a'}", HOW),
        ({"@value": "a", "@type": 1}, "{'@value': 'a', '@type': 1}", HOW), ({"@language": "de"}, "{'@language': 'de'}",
        HOW),
        ({"@value": "a", "@type": "xsd:string", "@language": "de"},
         "{'@value': 'a', '@type': 'xsd:string', '@language': 'de'}", HOW),
        ({"@value": " "}, "{'@value': ' '}", "an object that is text is not blank"),
        ({"@value": "a", "@language": "not a tag"}, "not a tag", "@language is a tag such as en-gb"),
        ({"@value": "a", "@language": "a-123456789"}, "a-123456789", "@language is a tag such as en-gb"),
    ],
)  # fmt: skip
def test_a_malformed_explicit_object_is_refused_with_the_expected_form(normalizer, raw, value, message):
    assert refused(normalizer, [P, raw]) == [("invalid_argument", value, message)]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("boolean", ["true", "false", "1", "0"], ["TRUE", "2", "", "true "]),
        ("integer", ["5", "-5", "+05"], ["5.0", "", "five", "5e1"]),
        ("decimal", ["5", "-5.", "+.5", "0.50"], [".", "5e1", "1,5"]),
        ("dateTime", ["2026-11-21T08:00:00", "2026-11-21T08:00:00.5Z", "2026-11-21T08:00:00+02:00"],
         ["2026-11-21", "2026-13-21T08:00:00Z", "2026-11-21T08:00Z", "2026-11-21T08:00:00.Z"]),
        ("date", ["2026-11-21", "2026-11-21Z", "2026-11-21-05:00"], ["2026-11-21T08:00Z", "21.11.2026"]),
        ("duration", ["anything"], []),
    ],
)  # fmt: skip
def test_literals_are_checked_against_the_lexical_form_of_known_datatypes(name, good, bad):
    assert all(normalize.is_written(text, XSD + name) is True for text in good)
    assert not any(normalize.is_written(text, XSD + name) for text in bad)


def test_terms_of_the_own_namespaces_are_no_datatypes():
    assert normalize.is_written("a", "urn:x:datatype")
    assert not normalize.is_written("a", JIDO + "Fact")
    assert not normalize.is_written("a", BASE + "memory/1")


@pytest.mark.parametrize(
    ("predicate", "datatype"),
    [(JIDO + "topic", XSD + "string"), (JIDO + "assignedTo", None), (P, None), (RDF + "type", None)],
)
def test_a_property_has_the_datatype_of_its_only_range(normalizer, predicate, datatype):
    assert normalize.datatype_of(normalizer, predicate) == datatype


FIELDS = {
    "hasTaskStatus": ("task", "status", "Blocked"), "hasErrorStatus": ("bug", "status", "Resolved"),
    "decisionStatus": ("decision", "status", "accepted"), "severityLevel": ("error", "severity", "low"),
    "conventionName": ("convention", "convention_name", "any"), "hasSourceType": ("fact", "source_type", "ToolSource"),
    "hasConventionScope": ("convention", "convention_scope", "GlobalScope"),
    "hasEnforcementLevel": ("convention", "enforcement_level", "Strict"), "rationale": ("fact", "rationale", "any"),
    "assignedTo": ("task", "assigned_to", "urn:x:bob"), "topic": ("fact", "topic", "any"),
    "detailedExplanation": ("fact", "detailed_explanation", "any"), "trackedBy": ("fact", "tracked_by", "https://a/5"),
    "expiresOn": ("fact", "expires_on", format_timestamp(datetime(2027, 1, 1))),
    "validFrom": ("fact", "valid_from", format_timestamp(datetime(2027, 1, 1))),
    "validUntil": ("fact", "valid_until", format_timestamp(datetime(2027, 1, 1))),
}  # fmt: skip


def object_of(field, value):
    """Return the object term for *value* of a field."""
    if field in ("severity", "convention_name", "rationale", "topic", "detailed_explanation") or value == "accepted":
        return {"@value": value, "@type": XSD + "string"}
    if field == "tracked_by":
        return {"@value": value, "@type": XSD + "anyURI"}
    if field.startswith(("valid", "expires")):
        return {"@value": value, "@type": XSD + "dateTime"}
    return {"@id": value if ":" in value else JIDO + value}


@pytest.mark.parametrize("name", FIELDS)
def test_an_extra_triple_moves_to_its_field_where_that_is_empty(name):
    kind, field, value = FIELDS[name]
    triple = [OWN, JIDO + name, object_of(field, value)]
    empty = {"type": kind, "iri": OWN, "about": [], field: None}
    assert normalize.fill_free_fields([triple], empty) == []
    assert empty[field] == value
    for field_value, remaining in ((value, []), ("other", [triple])):
        values = {"type": kind, "iri": OWN, "about": [], field: field_value}
        assert normalize.fill_free_fields([triple], values) == remaining
        assert values[field] == field_value


def test_extra_triples_that_fit_no_field_stay_extra_triples():
    empty = {"type": "task", "iri": OWN, "about": [], "topic": None, "status": None, "expires_on": None}
    values = dict(empty)
    triples = [
        ["urn:x:1", JIDO + "topic", object_of("topic", "any")], [OWN, P, object_of("topic", "any")],
        [OWN, JIDO + "topic", {"@value": "any", "@language": "de"}], [OWN, JIDO + "topic", {"@value": "1", "@type": P}],
        [OWN, JIDO + "hasErrorStatus", {"@id": JIDO + "Planned"}], [OWN, JIDO + "hasTaskStatus", {"@id": "urn:x:Odd"}],
        [OWN, JIDO + "decisionStatus", {"@id": JIDO + "Planned"}],
        [OWN, JIDO + "expiresOn", {"@value": "2027-01-01T00:00:00Z", "@type": XSD + "dateTime"}],
    ]  # fmt: skip
    assert normalize.fill_free_fields(triples, values) == triples
    assert values == empty


def test_an_extra_about_triple_is_added_to_about():
    values = {"type": "fact", "iri": OWN, "about": ["a"]}
    triples = [[OWN, JIDO + "about", {"@value": name, "@type": XSD + "string"}] for name in ("b", "a", "b")]
    assert normalize.fill_free_fields([*triples, [OWN, JIDO + "about", {"@id": "urn:x:1"}]], values) == []
    assert values["about"] == ["a", "b", "urn:x:1"]
