"""The functions of the memory guide: rows, order, and safety against injection."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of, short, triples, world_index

from jidomem.base.words import topic_key
from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf.terms import literal
from jidomem.rdf.vocab import graph_iri

M = "https://jido.ai/memory/"


@pytest.fixture(scope="module")
def reader():
    return reader_of(world_index())


def item(name, statement, day=1, cls="Fact", summary='"s"'):
    """Return a memory in Turtle; *summary* and *statement* are written unchanged."""
    moment = f"'2026-01-{day:02d}T00:00:00Z'^^xsd:dateTime"
    return triples(
        f"m:{name} a jido:{cls} ; jido:summary {summary} ; jido:appliesToProject p:demo ; jido:hasTimestamp {moment} ;"
        f" jido:recordedAt {moment} ; jido:hasAssertionStatus jido:Asserted ; {statement} ."
    )


def reader_with(*items):
    index = new_index()
    for number, rows in enumerate(items):
        index.apply(graph_iri("demo"), str(number), rows)
    return reader_of(index)


def test_facts_about_a_topic_are_found_newest_first_whatever_their_case(reader):  # E074
    rows = reader.find_facts_about("demo", "rust 1.7")

    assert list(rows[0]) == ["subject", "content", "timestamp", "confidence"]
    assert [(short(row["subject"]), row["confidence"]) for row in rows] == [("rust-175", 0.85), ("rust-170", 0.3)]
    assert reader.find_facts_about("demo", "RUST 1.7") == rows
    assert [short(row["subject"]) for row in reader.find_facts_about("demo", "oxigraph needs")] == ["rust-175"]


def test_a_decision_is_not_found_as_a_fact(reader):  # E074
    assert "Use Oxigraph as the index" in [row["content"] for row in reader.list_decisions("demo")]
    assert reader.find_facts_about("demo", "as the index") == []


@pytest.mark.parametrize(
    ("statement", "confidence"),
    [
        ("jido:hasConfidence jido:High", 0.9),
        ("jido:hasConfidence jido:Medium", 0.6),
        ("jido:hasConfidence jido:Low", 0.3),
        ("jido:hasConfidence jido:High ; jido:confidenceValue 0.85", 0.85),
        ("jido:topic 't'", None),
    ],
)
def test_the_confidence_of_a_fact_is_a_number(statement, confidence):  # E074
    assert [row["confidence"] for row in reader_with(item("a", statement)).find_facts_about("demo", "s")] == [
        confidence
    ]


@pytest.mark.parametrize(
    ("detail", "content"),
    [("more", "said\nmore"), ("said\\nand more", "said\nand more")],  # the second is an imported long content
)
def test_the_content_of_a_fact_is_its_summary_and_explanation(detail, content):  # E074
    rows = reader_with(item("a", f"jido:detailedExplanation '{detail}'", summary="'said'")).find_facts_about(
        "demo", "MORE"
    )
    assert [row["content"] for row in rows] == [content]


def test_decisions_of_every_class_are_listed_oldest_first(reader):  # E075
    rows = reader.list_decisions("demo")
    assert list(rows[0]) == ["subject", "content", "timestamp", "status"]
    assert [short(row["subject"]) for row in rows] == ["ship-weekly", "store-oxigraph"]


def test_related_memories_share_a_context_and_exclude_the_memory_itself(reader):  # E076
    rows = reader.find_related("demo", M + "rust-175")

    assert list(rows[0]) == ["related", "content"]
    assert [short(row["related"]) for row in rows] == ["imported-again", "rust-180"]
    assert reader.find_related("demo", M + "ruff") == []


def test_a_memory_is_resolved_by_its_foreign_id_in_its_newest_version(reader):  # E076
    assert reader.resolve("demo", "bd-1042") == M + "imported-again"
    assert reader.find_related("demo", "bd-1042") == reader.find_related("demo", M + "imported-again") != []


def test_a_foreign_id_never_precedes_an_iri_or_the_id_of_a_memory():
    victim = item("0197aaaa-beef", "jido:topic 't'")
    index = reader_with(victim, item("b", f"jido:localId 'beef', '{M}0197aaaa-beef', 'bd-1'", day=2))

    assert [index.resolve("demo", name) for name in ("beef", M + "0197aaaa-beef")] == [M + "0197aaaa-beef"] * 2
    assert index.resolve("demo", "bd-1") == M + "b"


def test_only_verified_conventions_are_listed_with_their_source(reader):  # E077
    assert reader.get_conventions("demo") == [
        {"content": "Format with ruff", "source": "session:first"},
        {"content": "Indent with spaces", "source": "user"},
    ]


def test_errors_of_a_module_are_listed_newest_first(reader):  # E078
    rows = reader.find_errors_for_module("demo", "Jido.Files")
    assert list(rows[0]) == ["subject", "content", "timestamp"]
    assert [short(row["subject"]) for row in rows] == ["write-found", "torn-file"]
    assert reader.find_errors_for_module("demo", "jido.files") == []


def test_governing_memories_of_a_file_are_listed_nearest_first(reader):
    rows = reader.find_governing("demo", "jidomem/index/oxigraph.py")
    assert list(rows[0]) == ["about", "item", "kind", "summary", "level", "status", "time"]
    nearest = ["ship-weekly", "short", "lesson-fsync", "store-oxigraph", "ruff"]
    assert [short(row["item"]) for row in rows[:5]] == nearest
    assert {row["about"] for row in rows[5:]} == {None}  # conventions about no place
    assert rows[1:3] == reader.find_governing("demo", "./jidomem/index/oxigraph.py")[1:3]


def test_memories_of_one_moment_are_ordered_by_their_iris():  # E081
    names = ["d", "b", "a", "c"]
    facts = reader_with(*(item(name, "jido:context 'c'") for name in names))
    errors = reader_with(*(item(name, "jido:affectedModule 'M'", cls="Error") for name in names))
    decisions = reader_with(*(item(name, "jido:topic 't'", cls="Decision") for name in names))

    assert [short(row["subject"]) for row in facts.find_facts_about("demo", "s")] == sorted(names)
    assert [short(row["subject"]) for row in errors.find_errors_for_module("demo", "M")] == sorted(names)
    assert [short(row["subject"]) for row in decisions.list_decisions("demo")] == sorted(names)


#: Characters that end a text, a pattern or a query, and pieces that would widen a query if parsed as SPARQL.
HOSTILE = st.lists(
    st.sampled_from(
        ['"', "'", "\\", "{", "}", "<", ">", "\n", "\r", "\t", "?", "#", "$", '"""', "\\u0022", " ", "a", "é", "^^",
         "@en", '") || true) #', "} UNION { ?s ?p ?o } #", "> ?p ?o . <", '" ; DROP ALL ; "', "?topic", "SERVICE <a>{}"]
    ),
    max_size=6,
).map("".join)  # fmt: skip
LINKS = re.compile(r"[-\s_\u00ad\u2010-\u2015\u2212]+")
EVERY = '") || true || CONTAINS("", "'


@settings(max_examples=40)
@given(HOSTILE, HOSTILE)
@example("a", EVERY)
@example('say "}"', '"')
def test_no_topic_or_module_text_changes_the_query(stored, query):  # E079
    fact, error = item("f", "jido:topic 't'", summary=literal(stored)), f"jido:affectedModule {literal(stored)}"
    reader = reader_with(fact, item("e", error, cls="Error"), item("other", "jido:topic 't'", summary="'plain'"))

    about = {row["subject"] for row in reader.find_facts_about("demo", query)}
    errors = {row["subject"] for row in reader.find_errors_for_module("demo", query)}

    plain, looked = query.lower(), LINKS.sub(" ", query.lower())
    assert about == {
        M + name
        for name, text in (("f", stored.lower()), ("other", "plain"))
        if plain in text or looked in LINKS.sub(" ", text) or topic_key(query) == "t"
    }
    assert errors == ({M + "e"} if query == stored else set())


@settings(max_examples=40)
@given(HOSTILE, HOSTILE)
@example("a", "a> ?p ?o . <a")
def test_no_id_evidence_or_path_text_changes_the_query(stored, query):  # E079
    local = f"jido:localId {literal('x' + stored)} ; jido:context 'c'"
    place = f"jido:about {literal('src/' + stored)} ; jido:context 'c'"
    evidence = triples(f"<urn:e> <http://www.w3.org/2000/01/rdf-schema#label> {literal('x' + stored)} .")
    reader = reader_with(item("a", local), item("d", f"{place} ; jido:derivedFrom <urn:e>", cls="Decision"), evidence)

    if query == stored:
        assert [row["related"] for row in reader.find_related("demo", "x" + query)] == [M + "d"]
    else:
        with pytest.raises(NotFound):
            reader.find_related("demo", "x" + query)
    governing = [row["item"] for row in reader.find_governing("demo", "src/" + query)]
    resting = [row["item"] for row in reader.ask("items-by-evidence", project="demo", evidence="x" + query)]

    assert resting == ([M + "d"] if query == stored else [])
    assert governing == ([M + "d"] if stored in (query, "") else [])  # `src/` is the folder of every such file


@pytest.mark.parametrize("value", [5, None, "half \ud83d", ["a"]])
def test_an_argument_that_is_no_text_is_refused_by_its_name(reader, value):
    for function, name in (
        (reader.find_facts_about, "topic"),
        (reader.find_errors_for_module, "module"),
        (reader.find_related, "item"),
        (reader.find_governing, "file"),
    ):
        with pytest.raises(InvalidRequest, match=f"^{name}=.* is not "):
            function("demo", value)
