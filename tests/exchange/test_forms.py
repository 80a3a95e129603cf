"""Memory in JSON-LD and N-Quads: export, other readers, import, and refusals."""

import json

import pyoxigraph as ox
import pytest
import rdflib
from conftest import decision, intent
from hypothesis import given
from hypothesis import strategies as st
from rdflib import RDF, XSD
from rdflib.compare import to_isomorphic

import jidomem
from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.exchange import documents
from jidomem.exchange.documents import DocumentFormat, parse
from jidomem.exchange.importer import import_document
from jidomem.index.follower import after_clearing
from jidomem.journal.commit import Commit
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.terms import literal

CONTEXT = {"jido": "https://jido.ai/ontology#"}


def commits(memory, stream="memory"):
    return list(memory.journal.read(Stream("p", stream)))


def jsonld(memory):
    return documents.jsonld("p", commits(memory), memory.schema.version)


def turtle(memory):
    return documents.turtle("p", commits(memory), memory.schema.version)


def nquads(memory):
    streams = [Stream("p", name) for name in NAMES]
    return documents.nquads({each.graph: after_clearing(each, commits(memory, each.name)) for each in streams})


def import_data(memory, data, syntax):
    return import_document(memory.writer, memory.schema, "p", "memory.file", data, syntax)


def fill(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", alternatives=["Jena", "a file"], evidence=["x"]))
    memory.writer.revise("p", first.iri, changes={"summary": 'Use "QLever"\n\u2028é', "confidence": 0.85}, reason="y")
    memory.writer.submit_intent("p", intent(type="task", summary="tidy", about=["src/a.py", "jido:High"]))


@pytest.mark.parametrize(("write", "syntax"), [(jsonld, DocumentFormat.JSON_LD), (nquads, DocumentFormat.N_QUADS)])
def test_an_export_imported_into_another_root_is_exported_identically(memory, tmp_path, write, syntax):
    # C024
    fill(memory)
    data = write(memory)

    with jidomem.open(tmp_path / "other") as other:
        report = import_data(other, data, syntax)
        repeated = import_data(other, data, syntax)
        assert (turtle(other), write(other)) == (turtle(memory), data)

    assert [entry.outcome.to_dict() for entry in report.refusals] == []
    assert [entry.outcome for entry in repeated.entries] == [None] * len(report.accepted)


def test_an_undeclared_value_that_an_earlier_release_exported_is_imported_with_a_warning(memory):
    memory.writer.submit_intent("p", intent(type="task", summary="tidy", about=["jido:High"]))
    data = turtle(memory).replace(b"jido:about jido:High", b"jido:about jido:odd")

    with jidomem.open(memory.settings.root.parent / "other") as other:
        (entry,) = import_data(other, data, DocumentFormat.TURTLE).entries
        assert "https://jido.ai/ontology#odd is not a declared value: kept as it was" in entry.outcome.warnings
        assert turtle(other) == data


@pytest.mark.parametrize(
    ("write", "syntax"),
    [(turtle, DocumentFormat.TURTLE), (jsonld, DocumentFormat.JSON_LD), (nquads, DocumentFormat.N_QUADS)],
)
def test_proposals_and_settled_proposals_keep_their_status_in_a_round_trip(memory, tmp_path, write, syntax):
    memory.writer.submit_intent("p", decision(topic="store"), propose=True)
    settled = memory.writer.submit_intent("p", intent(summary="ports are open"), propose=True)
    memory.writer.revise("p", settled.iri, changes={"summary": "ports are shut"}, reason="looked")
    memory.writer.submit_intent("p", decision(topic="index"), propose=True)
    data = write(memory)

    with jidomem.open(tmp_path / "other") as other:
        report = import_data(other, data, syntax)
        assert write(other) == data

    assert [entry.outcome.status for entry in report.entries] == ["proposed", "proposed", "asserted", "proposed"]


def test_nquads_restore_every_graph_of_the_project(memory, tmp_path):
    fill(memory)
    known, module = memory.long_term("p"), "https://example.org/code/parser"
    known.insert([(module, "rdf:type", "jido:Module"), (module, "https://example.org/lines", 1)], graph="codebase")
    known.clear_graph("codebase")
    known.insert([(module, "rdf:type", "jido:Module"), (module, "https://example.org/lines", 2)], graph="codebase")
    known.insert([("https://example.org/ci", "rdfs:label", "builds")], graph="system")
    known.insert([("https://example.org/turn", "rdfs:label", "we ship on Friday")], graph="history")
    data = nquads(memory)

    with jidomem.open(tmp_path / "other") as other:
        report = import_data(other, data, DocumentFormat.N_QUADS)
        more = set(nquads(other).splitlines()) - set(data.splitlines())
        assert set(data.splitlines()) <= set(nquads(other).splitlines())
        assert all(line.startswith(b"<https://jido.ai/agents/memory-writer> ") for line in more)

    lines = data.decode().removesuffix("\n").split("\n")
    assert len(list(ox.parse(data, format=ox.RdfFormat.N_QUADS))) == len(lines)
    assert [line for line in lines if "/lines>" in line] == [
        '<https://example.org/code/parser> <https://example.org/lines> "2"^^<http://www.w3.org/2001/XMLSchema#integer>'
        " <https://jido.ai/projects/p/graphs/elixir-codebase> ."
    ]
    assert any("we ship on Friday" in line and "conversation-history" in line for line in lines)
    assert sorted(note.split(" of ")[1] for note in report.notes) == [
        f"{name} imported" for name in ("codebase", "history", "system")
    ]


def test_answers_to_proposed_terms_are_omitted_from_an_import_and_noted(memory, tmp_path):
    graph = "https://jido.ai/projects/p/graphs/system-knowledge"
    answer = "<https://jido.ai/term-answers/x>"
    rows = [
        f"{answer} <{RDF.type}> <https://jido.ai/ontology#TermAnswer> <{graph}> .",
        f'{answer} <https://jido.ai/ontology#isAccepted> "true"^^<{XSD.boolean}> <{graph}> .',
        f'<https://example.org/ci> <http://www.w3.org/2000/01/rdf-schema#label> "builds" <{graph}> .',
    ]

    report = import_data(memory, "\n".join(rows).encode(), DocumentFormat.N_QUADS)

    assert "1 answers to proposed terms left out: only a curator gives them" in report.notes[0]
    assert rows[2] in nquads(memory).decode().splitlines()
    assert b"term-answers" not in nquads(memory)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
iris = st.sampled_from([f"<{one}>" for one in (
    "urn:a", "jido:odd", "https://jido.ai/ontology#", "https://jido.ai/ontology#//x", "https://jido.ai/ontology#Fact",
    "http://www.w3.org/2001/XMLSchema#date", "https://example.org/é?a=b#c",
)])  # fmt: skip
values = st.one_of(
    iris,
    st.builds(literal, texts),
    st.builds(literal, texts, st.sampled_from(["https://jido.ai/ontology#unit", "urn:my#type"])),
    st.builds(lambda text: f"{literal(text)}@de", texts),
)


@given(st.sets(st.tuples(iris, iris, values), max_size=8))
def test_json_ld_and_turtle_have_the_same_triples_in_three_parsers(rows):
    commit = Commit("a" * 64, "urn:g", (), 1, "2026-01-01T00:00:00Z", "urn:c", "1", b"", False, frozenset(rows))
    data = documents.jsonld("p", [commit], "1")

    as_turtle = documents.turtle("p", [commit], "1")
    expected = sorted(map(str, ox.parse(as_turtle, format=ox.RdfFormat.TURTLE)))
    assert sorted(map(str, ox.parse(data, format=ox.RdfFormat.JSON_LD))) == expected
    if b'"jido:odd"' not in data:  # our reader refuses an invalid prefix
        assert parse("a.jsonld", data, DocumentFormat.JSON_LD).keys() == {""}
        assert sorted(parse("a.jsonld", data, DocumentFormat.JSON_LD)[""]) == sorted(parse("a.ttl", as_turtle)[""])
    graph = rdflib.Graph().parse(data=data, format="json-ld")
    assert to_isomorphic(graph) == to_isomorphic(rdflib.Graph().parse(data=as_turtle, format="turtle"))


def test_hand_written_json_ld_in_a_list_is_imported_with_its_own_context(memory):
    fact = {
        "@context": {"@vocab": CONTEXT["jido"], "@base": "https://example.org/"},
        "@id": "rust",
        "@type": "Fact",
        "summary": "the build needs Rust 1.80",
        "appliesToProject": {"@id": "https://jido.ai/projects/p"},
        "assertedBy": {"@id": "https://jido.ai/agents/ana"},
        "assertedIn": {"@id": "https://jido.ai/sessions/s-1"},
        "hasConfidence": {"@id": "https://jido.ai/ontology#High"},
        "hasTimestamp": {"@value": "2026-01-01T00:00:00Z", "@type": "http://www.w3.org/2001/XMLSchema#dateTime"},
    }

    report = import_data(
        memory, json.dumps([fact, {**fact, "@id": "cargo", "summary": "and cargo"}]).encode(), DocumentFormat.JSON_LD
    )

    assert [entry.outcome.status for entry in report.entries] == ["asserted", "asserted"]
    assert [row["summary"] for row in memory.reader.ask("facts", project="p")] == [
        "and cargo",
        "the build needs Rust 1.80",
    ]


BROKEN = {
    "a context elsewhere": ({"@context": "https://schema.org/"}, "its @context is another document", "into the file"),
    "a name without an IRI": ({"@id": "urn:a", "summary": "x"}, "'summary' has no IRI", "jido:summary"),
    "a nested name": ({"@context": CONTEXT, "jido:about": {"lost": 1}}, "'lost' has no IRI", "@context"),
    "a relative IRI": ({"@context": CONTEXT, "@id": "a", "jido:topic": "x"}, "'a' is a relative IRI", "@base"),
    "an unknown prefix": ({"@id": "urn:a", "jido:topic": "x"}, "'jido:topic' has a prefix", "@context"),
    "no object": (3, "JSON-LD is an object", "@graph"),
    "a value in a list": ([{"@id": "urn:a"}, "x"], "JSON-LD is an object", "@graph"),
    "deep": ("[" * 60_000, "memory.file: nested too deeply", "correct that and import"),
    "no JSON": ('{"@id": "urn:a",\n  "x": }', "memory.file: line 2 column 8: ", "correct that and import"),
    "no text": (b"\xff\xfe{", "memory.file: not UTF-8 at byte 0", "correct that and import"),
    "no number": ('{"@id": "urn:a", "jido:n": NaN}', "memory.file: line 1 column 28: NaN is not JSON", "correct that"),
    "digits": ('{"@id": "urn:a", "jido:n": ' + "9" * 5_000 + "}", "thousands of digits", "correct that and import"),
    "a key twice": ('{"@id": "urn:a", "@id": "urn:b"}', "the key '@id' is given twice", "correct that and import"),
    "no IRI": ({"@context": CONTEXT, "@id": "urn:a b", "jido:topic": "x"}, "'urn:a b' is not an IRI", "%20"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_lossy_or_malformed_json_ld_is_refused_with_reason_and_hint_and_nothing_is_stored(memory, case):
    document, message, hint = BROKEN[case]
    data = document if isinstance(document, bytes) else document if isinstance(document, str) else json.dumps(document)

    with pytest.raises(InvalidRequest) as refusal:
        import_data(memory, data if isinstance(data, bytes) else data.encode(), DocumentFormat.JSON_LD)

    assert message in refusal.value.detail
    assert hint in refusal.value.hint
    assert memory.journal.streams() == []


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("<urn:a> <urn:b> <urn:c> <https://jido.ai/projects/q/graphs/long-term-context> .", NotFound, "p has no graph"),
        ("<urn:a> <urn:b> .", InvalidRequest, "memory.file:2"),
    ],
)
def test_nquads_with_a_foreign_graph_or_a_broken_line_are_refused_entirely(memory, line, error, message):
    good = '<urn:x> <urn:y> "z" <https://jido.ai/projects/p/graphs/system-knowledge> .'

    with pytest.raises(JidomemError, match=message) as refusal:
        import_data(memory, f"{good}\n{line}\n".encode(), DocumentFormat.N_QUADS)

    assert isinstance(refusal.value, error)
    assert memory.journal.streams() == []
