"""Extra triples in their one written form, and those that repeat a field."""

from datetime import datetime

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
def tidy():
    return FieldNormalizer(SCHEMA)


def value_of(tidy, given, predicate=P):
    """The written form of an object."""
    ((_, _, value),) = normalize.written(tidy, [[predicate, given]], OWN)
    return value


def refused(tidy, *triples):
    """The violations of triples without a written form: code, value and message of each."""
    assert normalize.written(tidy, [*triples], OWN) == []
    assert {found.field for found in tidy.violations} == {"extra_triples"}
    return [(found.code, found.value, found.message) for found in tidy.violations]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ((P, "a"), [OWN, P, "a"]), (["this", " jido:key ", "a"], [OWN, JIDO + "key", "a"]),
        ([" jido:x", P, "a"], [JIDO + "x", P, "a"]), (["urn:x:s", P, " a "], ["urn:x:s", P, "a"]),
    ],
)  # fmt: skip
def test_a_triple_of_two_is_about_the_memory_and_one_of_three_about_its_subject(tidy, given, written):
    assert normalize.written(tidy, [given], OWN) == [[*written[:2], {"@value": "a", "@type": XSD + "string"}]]
    assert tidy.violations == []


def test_a_triple_that_is_said_twice_is_kept_once_in_its_first_place(tidy):
    found = normalize.written(tidy, [[P, "a"], [P, "b"], ["this", P, " a"]], OWN)
    assert [value["@value"] for _, _, value in found] == ["a", "b"]


def test_there_are_as_many_triples_as_there_may_be(tidy):
    assert len(normalize.written(tidy, [[P, n] for n in range(TRIPLES_LIMIT)], OWN)) == TRIPLES_LIMIT
    error = refusal(normalize.written, tidy, [[P, 1]] * (TRIPLES_LIMIT + 1), OWN)
    assert (error.code, error.detail) == ("payload_too_large", "501 extra triples; an intent holds at most 500")
    assert error.hint == "submit several intents"


@pytest.mark.parametrize("given", ["ab", [P], ["a", "b", "c", "d"], {"a": 1, "b": 2}, 5])
def test_what_is_no_triple_is_told_how_one_is_given(tidy, given):
    message = "an extra triple is [predicate, object] about this memory, or [subject, predicate, object]"
    ((code, _, said),) = refused(tidy, given)
    assert (code, said) == ("invalid_argument", message)


@pytest.mark.parametrize(
    ("triple", "node"),
    [(["_:b", P, "x"], "_:b"), ([P, " _:b", "x"], " _:b"), ([" _:b", "x"], " _:b"), ([P, "_:b"], "_:b"),
     ([P, " _:b "], " _:b ")],
)  # fmt: skip
def test_a_blank_node_is_given_a_name(tidy, triple, node):
    assert refused(tidy, triple) == [("invalid_iri", node, f"the blank node {node} has no name: give it an IRI")]


@pytest.mark.parametrize(
    ("triple", "part", "shown"),
    [(["plain", "x"], "plain", "'plain'"), (["plain", P, "x"], "plain", "'plain'"), ([5, "x"], "5", "5"),
     ([P, 5, "x"], "5", "5"), (["y" * 99, "x"], "y" * 99, "'" + "y" * 79)],
)  # fmt: skip
def test_subject_and_predicate_are_iris(tidy, triple, part, shown):
    message = f"subject and predicate are IRIs, prefixed names such as jido:topic, or 'this', not {shown}"
    assert refused(tidy, triple) == [("invalid_iri", part, message)]


def test_this_is_the_memory_and_no_property(tidy):
    found = normalize.written(tidy, [["this", "this", "a"]], OWN)
    assert found[0][0] == OWN
    assert [v.value for v in tidy.violations][:1] == ["this"]


@pytest.mark.parametrize(
    ("given", "written", "datatype"),
    [
        (True, "true", "boolean"), (False, "false", "boolean"), (7, "7", "integer"), (-(2**63) + 1, str(-(2**63) + 1),
        "integer"), (0.5, "0.5", "double"), (" a b ", "a b", "string"), ("see urn:x:1 there", "see urn:x:1 there",
        "string"),
    ],
)  # fmt: skip
def test_a_value_of_python_is_a_literal_of_its_datatype(tidy, given, written, datatype):
    assert value_of(tidy, given) == {"@value": written, "@type": XSD + datatype}
    assert tidy.violations == []


@pytest.mark.parametrize("given", [2**63, -(2**63), float("nan"), float("inf"), None, [], "", " \n"])
def test_any_other_value_is_no_object(tidy, given):
    ((code, _, message),) = refused(tidy, [P, given])
    assert (code, message) == ("invalid_argument", "an object is text, a finite number, a boolean or an IRI")


@pytest.mark.parametrize(
    ("predicate", "given", "written"),
    [
        (P, " urn:x:1 ", {"@id": "urn:x:1"}), (P, "jido:Fact", {"@id": JIDO + "Fact"}),
        ("jido:topic", "urn:x:1", {"@value": "urn:x:1", "@type": XSD + "string"}),
        ("jido:expiresOn", "2027-01-01", {"@value": "2027-01-01T00:00:00.000000Z", "@type": XSD + "dateTime"}),
        ("jido:verified", "true", {"@value": "true", "@type": XSD + "boolean"}),
        ("jido:assignedTo", "urn:x:1", {"@id": "urn:x:1"}),
    ],
)  # fmt: skip
def test_a_text_takes_the_datatype_of_its_property_and_else_is_an_iri_where_it_looks_like_one(
    tidy, predicate, given, written
):
    assert value_of(tidy, given, predicate) == written
    assert tidy.violations == []


@pytest.mark.parametrize(("name", "given"), [("expiresOn", "soon"), ("verified", "maybe")])
def test_a_text_that_is_not_written_as_its_datatype_is_refused(tidy, name, given):
    (datatype,) = SCHEMA.properties[f"<{JIDO}{name}>"].range
    message = f"{given!r} is not written as a {datatype[1:-1]} is"
    assert refused(tidy, [f"jido:{name}", given]) == [("shape_violation", given, message)]


def test_a_long_text_that_is_refused_is_shown_by_its_beginning(tidy):
    ((_, value, message),) = refused(tidy, ["jido:verified", "x" * 99])
    assert (value, message[:84]) == ("x" * 99, "'" + "x" * 80 + "' i")


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"@id": " urn:x:1 "}, {"@id": "urn:x:1"}), ({"@value": " a"}, {"@value": " a", "@type": XSD + "string"}),
        ({"@value": "urn:x:1"}, {"@value": "urn:x:1", "@type": XSD + "string"}),
        ({"@value": " 5 ", "@type": "xsd:integer"}, {"@value": "5", "@type": XSD + "integer"}),
        ({"@value": " a ", "@language": "DE-at"}, {"@value": " a ", "@language": "de-at"}),
        ({"@value": "a", "@language": "a-12345678"}, {"@value": "a", "@language": "a-12345678"}),
    ],
)  # fmt: skip
def test_an_object_that_is_spelt_out_is_what_it_says(tidy, given, written):
    assert value_of(tidy, given, "jido:expiresOn" if "@id" in given else P) == written
    assert tidy.violations == []


HOW = 'an object is {"@id": IRI}, {"@value": text}, or {"@value": text} with "@type" or "@language"'


@pytest.mark.parametrize(
    ("given", "value", "message"),
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
def test_an_object_that_is_spelt_out_otherwise_is_told_how(tidy, given, value, message):
    assert refused(tidy, [P, given]) == [("invalid_argument", value, message)]


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
def test_literals_look_as_their_datatype_has_them_as_far_as_that_is_known(name, good, bad):
    assert all(normalize.is_written(text, XSD + name) is True for text in good)
    assert not any(normalize.is_written(text, XSD + name) for text in bad)


def test_a_name_of_ours_is_no_datatype():
    assert normalize.is_written("a", "urn:x:datatype")
    assert not normalize.is_written("a", JIDO + "Fact")
    assert not normalize.is_written("a", BASE + "memory/1")


@pytest.mark.parametrize(
    ("predicate", "datatype"),
    [(JIDO + "topic", XSD + "string"), (JIDO + "assignedTo", None), (P, None), (RDF + "type", None)],
)
def test_a_property_takes_the_datatype_that_is_its_only_range(tidy, predicate, datatype):
    assert normalize.datatype_of(tidy, predicate) == datatype


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


def said(field, value):
    """The object for *value* of a field."""
    if field in ("severity", "convention_name", "rationale", "topic", "detailed_explanation") or value == "accepted":
        return {"@value": value, "@type": XSD + "string"}
    if field == "tracked_by":
        return {"@value": value, "@type": XSD + "anyURI"}
    if field.startswith(("valid", "expires")):
        return {"@value": value, "@type": XSD + "dateTime"}
    return {"@id": value if ":" in value else JIDO + value}


@pytest.mark.parametrize("name", FIELDS)
def test_what_a_field_says_is_put_into_the_field_where_that_is_free(name):
    kind, field, value = FIELDS[name]
    triple = [OWN, JIDO + name, said(field, value)]
    free = {"type": kind, "iri": OWN, "about": [], field: None}
    assert normalize.lift([triple], free) == []
    assert free[field] == value
    for taken, left in ((value, []), ("other", [triple])):
        values = {"type": kind, "iri": OWN, "about": [], field: taken}
        assert normalize.lift([triple], values) == left
        assert values[field] == taken


def test_what_is_said_of_another_or_cannot_be_held_stays_an_extra_triple():
    free = {"type": "task", "iri": OWN, "about": [], "topic": None, "status": None, "expires_on": None}
    values = dict(free)
    stay = [
        ["urn:x:1", JIDO + "topic", said("topic", "any")], [OWN, P, said("topic", "any")],
        [OWN, JIDO + "topic", {"@value": "any", "@language": "de"}], [OWN, JIDO + "topic", {"@value": "1", "@type": P}],
        [OWN, JIDO + "hasErrorStatus", {"@id": JIDO + "Planned"}], [OWN, JIDO + "hasTaskStatus", {"@id": "urn:x:Odd"}],
        [OWN, JIDO + "decisionStatus", {"@id": JIDO + "Planned"}],
        [OWN, JIDO + "expiresOn", {"@value": "2027-01-01T00:00:00Z", "@type": XSD + "dateTime"}],
    ]  # fmt: skip
    assert normalize.lift(stay, values) == stay
    assert values == free


def test_what_a_memory_is_about_is_added_to_what_it_is_about_already():
    values = {"type": "fact", "iri": OWN, "about": ["a"]}
    triples = [[OWN, JIDO + "about", {"@value": name, "@type": XSD + "string"}] for name in ("b", "a", "b")]
    assert normalize.lift([*triples, [OWN, JIDO + "about", {"@id": "urn:x:1"}]], values) == []
    assert values["about"] == ["a", "b", "urn:x:1"]
