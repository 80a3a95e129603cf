from datetime import UTC, datetime

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.errors import InvalidRequest, NotFound
from jidomem.index.store import OxigraphIndex
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


@pytest.mark.parametrize("name", ["thread:abc", "thread:42", "10:30", "a call: with Ana"])
def test_a_session_or_agent_is_named_as_at_its_write_also_with_a_colon(tmp_path, name):
    with jidomem.open(tmp_path / "root", project="p", agent=name, session=name) as memory:
        item = memory.remember("the port is 80").iri

        assert [row["item"] for row in memory.ask("memories-of-session", session=name)] == [item]
        assert [row["item"] for row in memory.ask("memories-of-agent", agent=name)] == [item]
        for unknown in (f"{name}x", "a:%zz", "half: \ud83d"):
            with pytest.raises(NotFound, match="p has no session"):
                memory.ask("memories-of-session", session=unknown)


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


#: Parts of values that would leave a literal or an IRI, or that a parser of SPARQL changes.
HOSTILE = ['"', "'", "\\", "\\u0022", "\\u003E", "} UNION { ?a ?b ?c }", "#", "\n", "\r", "\0"]
HOSTILE += ["/../", "%2", "?a", "\u00e9", "\U0001d11e", "@en"]
OF = parse(
    "of", "curator", "#+ summary: s\n#+ params: project what:string=x who:iri=urn:x\n#+ columns: a\n#+ order: a\n"
    "# WHERE { of a comment\nSELECT ?project ?what ?who ?a WHERE { OPTIONAL { ?a <urn:p> ?what } ?a <urn:q> ?who }",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=6).map("".join))
def test_a_value_in_the_text_of_a_query_selects_what_the_bound_variable_selects(value):
    index = OxigraphIndex()
    values: list[dict[str, str]] = [{"what": value}, {"who": f"urn:{value}"}, {"who": f"http://e.x/{value}"}]
    for given_values in values:
        try:
            bindings = OF.bind({"project": "demo", **given_values})
            index.apply("urn:g", repr(given_values), [("<urn:1>", "<urn:p>", bindings["what"])])
            index.apply("urn:g", f"q{given_values}", [("<urn:1>", "<urn:q>", bindings["who"])])
            wanted = index.query(OF.text, graphs=["urn:g"], bindings=bindings)
        except (InvalidRequest, ValueError, SyntaxError):  # no text, or no IRI
            continue

        assert index.query(OF.with_values(bindings), graphs=["urn:g"], bindings=bindings) == wanted


def test_the_text_has_the_values_of_all_parameters_but_the_project():
    text = OF.with_values(OF.bind({"project": "demo", "what": "1", "who": "urn:a"}))

    assert 'WHERE { VALUES (?what ?who) { ("1" <urn:a>) } OPTIONAL' in text
    assert "demo" not in text


@pytest.mark.parametrize("who", ["urn:a>", "urn:a\\u003E", "http://e.x/../a", "http://e.x/%zz"])
def test_a_value_that_is_not_the_same_in_a_query_stays_out_of_the_text(who):
    assert "?who)" not in OF.with_values({"what": '"1"', "who": f"<{who}>"})
    assert OF.with_values({"what": '"a\\u0022"'}) == OF.text


@pytest.mark.parametrize(
    "pattern", ["WHERE { SELECT ?a ?who { ?a ?b ?who } }", "(1 AS ?n) { ?a ?b ?n BIND(<urn:b> AS ?who) }"]
)
def test_a_subquery_and_a_parameter_that_the_query_assigns_stay_as_they_are(pattern):
    header = "#+ summary: s\n#+ params: project who:iri\n#+ columns: a\n#+ order: a\n"
    query = parse("of", "curator", f"{header}SELECT ?project ?a ?who {pattern}")

    assert query.with_values(query.bind({"project": "demo", "who": "urn:a"})) == query.text
