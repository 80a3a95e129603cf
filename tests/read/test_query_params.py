from datetime import UTC, datetime

import pytest

from jidomem.errors import InvalidRequest
from jidomem.read.playbook import Playbook
from jidomem.records.named_query import FOREVER, parse, snake, to_term

X = "http://www.w3.org/2001/XMLSchema#"
QUERY = parse(
    "mine",
    "planner",
    "#+ summary: s\n#+ params: project asOf who:iri what n:integer=3 least:decimal=0.5 flag:boolean=false\n"
    "#+ columns: a\n#+ order: -a\n"
    "SELECT ?project ?asOf ?who ?what ?n ?least ?flag ?a WHERE {} ORDER BY DESC(?a)",
)
ARGUMENTS = {"project": "demo", "who": "urn:a", "what": "text"}


def test_a_header_is_parsed_into_typed_parameters_columns_and_order():
    assert [str(param) for param in QUERY.params] == [
        "project", "as_of", "who:iri", "what:string", "n:integer", "least:decimal", "flag:boolean",
    ]  # fmt: skip
    assert (QUERY.summary, QUERY.columns, QUERY.order) == ("s", ("a",), ("-a",))


def test_an_omitted_parameter_has_its_default():
    assert QUERY.bind(ARGUMENTS) == {
        "project": "<https://jido.ai/projects/demo>",
        "asOf": f'"{FOREVER}"^^<{X}dateTime>',
        "who": "<urn:a>",
        "what": '"text"',
        "n": f'"3"^^<{X}integer>',
        "least": f'"0.5"^^<{X}decimal>',
        "flag": f'"false"^^<{X}boolean>',
    }


@pytest.mark.parametrize(
    ("name", "value", "term"),
    [
        ("project", "https://jido.ai/projects/demo", "<https://jido.ai/projects/demo>"),
        ("what", 'say "hi" } UNION {', '"say \\"hi\\" } UNION {"'),
        ("n", 7, f'"7"^^<{X}integer>'),
        ("n", "007", f'"7"^^<{X}integer>'),
        ("least", "17.50", f'"17.50"^^<{X}decimal>'),
        ("least", 17.5, f'"17.5"^^<{X}decimal>'),
        ("least", 1e-7, f'"0.0000001"^^<{X}decimal>'),
        ("least", -3, f'"-3"^^<{X}decimal>'),
        ("flag", True, f'"true"^^<{X}boolean>'),
        ("flag", "true", f'"true"^^<{X}boolean>'),
        ("asOf", datetime(1, 2, 3, tzinfo=UTC), f'"0001-02-03T00:00:00.000000Z"^^<{X}dateTime>'),
        ("asOf", "2026-01-01T00:00:00.5+01:00", f'"2025-12-31T23:00:00.500000Z"^^<{X}dateTime>'),
    ],
)
def test_a_value_becomes_a_term_of_the_type_of_its_parameter(name, value, term):
    assert QUERY.bind({**ARGUMENTS, name: value})[name] == term


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("project", "Demo"), ("project", "https://jido.ai/projects/a/b"), ("project", 5),
        ("who", "no iri"), ("who", "urn:a> <urn:b"), ("who", None),
        ("what", 5), ("what", "half \ud83d"),
        ("least", "1e3"), ("least", "."), ("least", float("inf")), ("least", True), ("least", None),
        ("n", "many"), ("n", True), ("n", 2.5), ("n", "9" * 31),
        ("flag", 1), ("flag", "yes"), ("flag", None), ("flag", []),
        ("asOf", "soon"), ("asOf", None),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_by_name(name, value):
    written = snake(name)
    with pytest.raises(InvalidRequest, match=f"^{written}=.* is not ") as refusal:
        QUERY.bind({**ARGUMENTS, name: value})
    assert refusal.value.code == "invalid_argument"
    assert refusal.value.hint.startswith(f"give one of: `{written}`" if name == "asOf" else f"give {written} as")


def test_a_missing_parameter_is_refused_by_name():
    with pytest.raises(InvalidRequest, match="planner/mine needs the parameter 'who'") as refusal:
        QUERY.bind({"project": "demo", "what": "text"})
    assert refusal.value.hint == "give `who`, an IRI such as https://jido.ai/agents/architect"


@pytest.mark.parametrize("name", ["session", "agent"])
def test_a_value_that_is_neither_name_nor_iri_is_refused_with_both_forms(name):
    with pytest.raises(InvalidRequest, match=f"{name}='<x>:y' is not an IRI") as refusal:
        to_term("<x>:y", "iri", name)
    assert refusal.value.hint == f"give {name} as the name of the {name}, or its IRI"


def test_an_unknown_parameter_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidRequest, match="planner/mine has no parameter 'wat'") as refusal:
        QUERY.bind({"project": "demo", "who": ARGUMENTS["who"], "wat": "x"})
    assert refusal.value.hint == "did you mean 'what'?"
    with pytest.raises(InvalidRequest) as other:
        QUERY.bind({**ARGUMENTS, "limt": 3})
    assert other.value.hint == "did you mean 'limit'?"


def test_an_unknown_parameter_is_refused_with_the_query_of_its_value():
    playbook = Playbook()

    with pytest.raises(InvalidRequest) as refusal:
        playbook.get("tasks").bind({"status": "Completed"}, playbook)

    assert refusal.value.hint.startswith("the query completed-tasks has these; open-tasks takes as_of, ")
