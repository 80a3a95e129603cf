"""Memory in Turtle: export as one file, import by the writer, and the round trip."""

import pytest
from conftest import decision, files, fixed_sources, intent

import jidomem
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError
from jidomem.exchange import documents
from jidomem.exchange.documents import DocumentFormat, parse
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream
from jidomem.records.policy import PolicyChange

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix ex: <https://example.org/> .
"""
HAND_WRITTEN = (
    PREFIXES
    + """
<https://jido.ai/agents/ana> a jido:Agent ; jido:agentName "ana" ; jido:hasRole jido:Architect ;
    jido:hasCapability jido:CanPlan .
ex:first a jido:ArchitecturalDecision ;
    jido:summary "Use a file" ; jido:rationale "it is there" ; jido:topic "store" ;
    jido:appliesToProject <https://jido.ai/projects/p> ; jido:assertedBy <https://jido.ai/agents/ana> ;
    jido:assertedIn <https://jido.ai/sessions/s-1> ; jido:hasConfidence jido:High ;
    jido:hasTimestamp "2026-01-01T00:00:00Z"^^xsd:dateTime ; jido:supersededBy ex:second .
ex:second a jido:ArchitecturalDecision ;
    jido:summary "Use a store" ; jido:rationale "it is fast" ; jido:topic "store" ;
    jido:appliesToProject <https://jido.ai/projects/p> ; jido:assertedBy <https://jido.ai/agents/ana> ;
    jido:assertedIn <https://jido.ai/sessions/s-1> ; jido:hasConfidence jido:High ;
    jido:hasTimestamp "2026-02-01T00:00:00Z"^^xsd:dateTime .
"""
)


def export(memory, project="p"):
    return documents.turtle(project, memory.journal.read(Stream(project)), memory.schema.version)


def imported(memory, text, project="p"):
    data = text if isinstance(text, bytes) else text.encode()
    return import_document(memory.writer, memory.schema, project, "memory.ttl", data)


def fill(memory):
    """A memory with alternatives, evidence, a chain of versions, a withdrawal and an ended session."""
    writer = memory.writer
    first = writer.submit_intent("p", decision(topic="store", alternatives=["Jena", "a file"], evidence=["a test"]))
    second = writer.revise("p", first.iri, changes={"summary": 'Use "QLever"\n', "confidence": 0.85}, reason="faster")
    writer.invalidate("p", second.iri, reason="it was not")
    writer.submit_intent("p", intent(type="task", summary="tidy", assigned_to="bob", about=["src/a.py", "urn:x"]))
    writer.submit_intent("p", intent(extra_triples=[["https://example.org/a", 1]], topic="t"))
    writer.start_session("p", "sprint")
    writer.move_session("p", "sprint", phase="review")
    writer.move_session("p", "sprint", status="Closed")


def test_a_turtle_export_imported_into_another_root_is_exported_identically(memory, tmp_path):
    # C024
    fill(memory)
    before = export(memory)

    with jidomem.open(tmp_path / "other") as other:
        report = imported(other, before)
        after = export(other)

    assert [entry.outcome.to_dict() for entry in report.refusals] == []
    assert after == before


def test_an_import_keeps_authors_and_the_agents_that_confirmed(memory, tmp_path):
    first = memory.writer.remember("p", "The port is 80", asserted_by="ana").iri
    confirmed = memory.writer.confirm("p", first, asserted_by="ben").iri
    text = export(memory)
    start, subject, end = text.partition(f"<{confirmed}>".encode())
    by_ben = start + subject + end.replace(b"assertedBy <https://jido.ai/agents/ana>", b"assertedBy agent:ben", 1)

    with jidomem.open(tmp_path / "same", project="p", agent="cleo") as other:
        imported(other, text)
        assert export(other) == text
        assert other.reader.get_memory("p", confirmed)["properties"]["settledBy"] == ["https://jido.ai/agents/ben"]
    with jidomem.open(tmp_path / "other", project="p", agent="cleo") as other:  # as earlier releases recorded it
        imported(other, b"@prefix agent: <https://jido.ai/agents/> .\n" + by_ben)
        assert other.reader.get_memory("p", confirmed)["properties"]["assertedBy"] == ["https://jido.ai/agents/ben"]


def test_an_export_does_not_depend_on_the_grouping_into_commits(tmp_path):
    intents = [intent(summary=f"fact {n}", iri=f"urn:f:{n}", timestamp="2026-01-01") for n in range(5)]
    with jidomem.open(tmp_path / "one", sources=fixed_sources()) as one:
        for each in intents:
            one.writer.submit_intent("p", each)
        single = export(one)
    with jidomem.open(tmp_path / "many", sources=fixed_sources()) as many:
        many.writer.submit_many("p", intents)
        grouped = export(many)
        commits = len(list(many.journal.read(Stream("p"))))

    assert commits == 1
    assert single == grouped
    assert single.count(b"a jido:Fact") == 5


def test_an_export_declares_itself_an_ontology_that_imports_the_memory_ontology(memory):
    # C080
    memory.writer.submit_intent("p", intent())

    text = export(memory).decode()

    assert "<https://jido.ai/projects/p/memory> a owl:Ontology" in text
    assert "owl:imports jido:JidoMemoryOntology" in text
    assert 'owl:versionInfo "0.1.0"' in text


def test_hand_written_turtle_is_imported_with_supersessions_and_agents(memory):
    # C116
    report = imported(memory, HAND_WRITTEN)

    assert [entry.iri for entry in report.accepted] == ["https://example.org/first", "https://example.org/second"]
    (row,) = memory.reader.list_active_architectural_decisions("p")
    assert (row["decision"], row["summary"]) == ("https://example.org/second", "Use a store")
    roles = "PREFIX jido: <https://jido.ai/ontology#> SELECT ?role { <https://jido.ai/agents/ana> jido:hasRole ?role }"
    assert memory.reader.select("p", roles) == [{"role": "https://jido.ai/ontology#Architect"}]


def test_a_repeated_import_of_turtle_changes_nothing(memory, tmp_path):
    imported(memory, HAND_WRITTEN)
    before = files(memory.settings.root)

    report = imported(memory, HAND_WRITTEN)

    assert [entry.outcome for entry in report.entries] == [None, None]
    assert report.notes == []
    assert files(memory.settings.root) == before


def test_a_changed_text_of_an_existing_memory_is_refused_with_line_and_edit_command(memory):
    imported(memory, HAND_WRITTEN)

    report = imported(memory, HAND_WRITTEN.replace("it is fast", "it is fashionable"))

    (refusal,) = report.refusals
    assert refusal.place == "memory.ttl:12"
    assert refusal.outcome.code == "iri_exists"
    assert "jidomem edit https://example.org/second" in refusal.outcome.hint


def test_a_memory_that_breaks_a_shape_is_refused_and_the_others_imported(memory):
    report = imported(memory, HAND_WRITTEN.replace('jido:rationale "it is fast" ;', ""))

    assert [entry.iri for entry in report.accepted] == ["https://example.org/first"]
    assert report.refusals[0].outcome.code == "missing_rationale"
    assert report.refusals[0].place == "memory.ttl:12"


@pytest.mark.parametrize(("text", "line"), [("ex:a jido:b", 4), ("<a b> a jido:Fact .", 4), ("nonsense", 4)])
def test_invalid_turtle_is_refused_with_file_and_line_and_nothing_is_stored(memory, text, line):
    with pytest.raises(InvalidRequest, match=rf"memory\.ttl:{line}: ") as refusal:
        imported(memory, PREFIXES + text)

    assert refusal.value.code == "invalid_argument"
    assert files(memory.settings.root) == {}


FOREIGN = """\
@prefix jidoka: <http://jidoka.ai/ontology#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://jidoka.ai/facts/1> a jidoka:Fact ; jidoka:content "first line\\nand more" ;
    jidoka:timestamp "2026-01-01T00:00:00Z"^^xsd:dateTime ; jidoka:confidence "0.9"^^xsd:decimal ;
    jidoka:source "session:S 1" ; jidoka:verified true .
"""


def test_the_jidoka_vocabulary_is_mapped_on_import(memory):
    # E065
    report = imported(memory, FOREIGN)

    assert [entry.outcome.to_dict() for entry in report.refusals] == []
    assert memory.reader.list_facts_with_confidence("p") == [
        {
            "fact": "http://jidoka.ai/facts/1",
            "summary": "first line",
            "confidence": "https://jido.ai/ontology#High",
            "topic": None,
        }
    ]
    restated = memory.writer.restated("p", "http://jidoka.ai/facts/1")
    assert restated["asserted_in"] == "https://jido.ai/sessions/s-1"
    assert restated["detailed_explanation"] == "first line\nand more"
    assert restated["confidence"] == 0.9


def test_a_repeated_import_of_a_foreign_file_is_unchanged_and_a_changed_one_refused(memory):
    named = FOREIGN.replace("0.9", "0.5").replace(' jidoka:source "session:S 1" ;', "")
    first, second = imported(memory, named), imported(memory, named)

    assert [entry.outcome.status for entry in first.entries] == ["asserted"]
    assert [entry.outcome for entry in second.entries] == [None]
    assert [entry.outcome.code for entry in imported(memory, named.replace("0.5", "0.6")).entries] == ["iri_exists"]


def test_blank_nodes_get_the_same_iris_in_each_import(memory):
    text = HAND_WRITTEN.replace("ex:second .", "ex:second ; jido:derivedFrom [ a jido:Evidence ] .", 1)

    first, second = imported(memory, text), imported(memory, text)

    assert first.refusals == []
    assert [entry.outcome for entry in second.entries] == [None, None]


def test_10000_memories_are_read_with_their_lines_after_those_they_supersede(memory):
    many = 10_000
    text = PREFIXES + "".join(
        f'ex:m{n} a jido:Fact ; jido:summary "s" ;\n  jido:supersedes ex:m{n + 1} .\n' for n in range(many)
    )
    rows = parse("memory.ttl", text.encode())[""]

    statements = documents.read(rows, memory.schema, defaults={}, text=text).statements

    assert [one.intent["iri"] for one in statements] == [f"https://example.org/m{n}" for n in reversed(range(many))]
    assert [one.line for one in statements] == [4 + 2 * n for n in reversed(range(many))]


def test_turtle_with_a_byte_order_mark_and_windows_line_ends_is_imported(memory):
    report = imported(memory, b"\xef\xbb\xbf" + HAND_WRITTEN.replace("\n", "\r\n").encode())

    assert (len(report.accepted), report.refusals) == (2, [])


def test_a_file_without_memories_is_noted_with_the_count_of_its_statements(memory):
    report = imported(memory, '<urn:a> <urn:b> "x" .')

    assert (report.entries, report.notes) == (
        [],
        ["memory.ttl: contains no memory; 1 other statements imported"],
    )
    assert '<urn:a> <urn:b> "x"' in export(memory).decode()


@pytest.mark.parametrize("graph", ["long-term-context", "elixir-codebase"])
@pytest.mark.parametrize(
    "template",
    [
        "<https://jido.ai/ontology#Fact> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{}Decision>",
        "<https://jido.ai/ontology#Fact> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:Between>",
        "<https://jido.ai/ontology#supersededBy> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <{}about>",
        "<https://jido.ai/ontology#Fact> <http://www.w3.org/2002/07/owl#equivalentClass> <{}Decision>",
    ],
)
def test_an_axiom_about_a_term_of_the_ontology_is_refused(memory, graph, template):
    memory.writer.submit_intent("p", intent(summary="a fact"))
    axiom = template.format("https://jido.ai/ontology#")
    text = f"{axiom} <https://jido.ai/projects/p/graphs/{graph}> .\n"

    with pytest.raises(IntentRefused, match="is a term of the ontology: its relations to others belong in ontology/"):
        import_document(memory.writer, memory.schema, "p", "x.nq", text.encode(), DocumentFormat.N_QUADS)

    assert memory.reader.ask("recent-decisions", project="p") == []


def test_a_cycle_of_supersessions_is_refused(memory):
    text = HAND_WRITTEN + "ex:second jido:supersededBy ex:first ."

    report = imported(memory, text)

    assert report.accepted == []
    assert {entry.outcome.code for entry in report.refusals} == {"unknown_reference"}


@pytest.mark.parametrize(
    "row",
    [
        "<urn:jido:commit:00> jido:position 1 .",
        '<https://jido.ai/memory/0> jido:note "no type" .',
        '<https://jido.ai/agents/eve> a jido:Agent ; jido:recordedAt "2020-01-01T00:00:00Z"^^xsd:dateTime ;'
        ' jido:agentName "eve" ; jido:assertedBy <https://jido.ai/agents/ana> .',
    ],
)
def test_statements_reserved_to_the_writer_are_refused(memory, row):
    with pytest.raises(JidomemError) as refusal:
        imported(memory, PREFIXES + row)

    assert refusal.value.code in ("shape_violation", "unknown_term")
    assert files(memory.settings.root) == {}


FACT = """a jido:Fact ; jido:summary "Good" ; jido:hasConfidence jido:High ;
    jido:appliesToProject <https://jido.ai/projects/p> ; jido:assertedBy <https://jido.ai/agents/ana> ;
    jido:assertedIn <https://jido.ai/sessions/s-1> ; jido:hasTimestamp "2026-01-01T00:00:00Z"^^xsd:dateTime"""


def test_things_that_cannot_be_stored_are_refused_with_their_lines_and_the_rest_is_imported(memory):
    text = (
        f'{PREFIXES}ex:one {FACT} .\nex:rule a ex:Regel ; jido:summary "own class" .\n'
        'ex:ana a jido:Agent ; jido:agentNmae "ana" .\nex:cem a jido:Agent ; jido:agentName "cem" ;\n'
        "    jido:hasRole jido:Architect ; jido:hasCapability jido:CanPlan .\n"
    )

    report = imported(memory, text)

    assert [(entry.place, entry.outcome.code) for entry in report.refusals] == [
        ("memory.ttl:7", "unknown_term"),
        ("memory.ttl:8", "unknown_term"),
    ]
    unknown, misspelt = (entry.outcome for entry in report.refusals)
    assert "https://example.org/Regel is not a declared class" in unknown.detail
    assert "ontology/*.ttl" in unknown.hint
    assert misspelt.hint == "write jido:agentName for jido:agentNmae"
    assert [entry.iri for entry in report.accepted] == ["https://example.org/one"]
    assert 'agentName "cem"' in export(memory).decode()


def test_an_export_with_moments_of_any_form_imported_again_is_unchanged(memory):
    writer = memory.writer
    dated = writer.submit_intent("p", intent(type="task", summary="ship", assigned_to="bob", expires_on="2027-01-15"))
    limits = {"valid_from": "2026-01-01T10:00:00.5+02:00", "valid_until": "2030-01-01T00:00:00Z"}
    valid = writer.submit_intent("p", intent(summary="a fact of some years", **limits))

    same = imported(memory, export(memory))
    other = imported(memory, export(memory).replace(b"2027-01-15T", b"2027-01-16T"))

    assert {entry.iri: entry.outcome for entry in same.entries} == {dated.iri: None, valid.iri: None}
    assert [(entry.iri, entry.outcome.code) for entry in other.refusals] == [(dated.iri, "iri_exists")]


def test_a_vocabulary_and_memories_of_undeclared_kinds_are_noted(memory):
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    text = f"{PREFIXES}{owl}ex:Rule a owl:Class .\nex:one {FACT.replace('jido:Fact', 'jido:Fact, ex:Recipe')} ."

    notes = imported(memory, text).notes

    assert [note for note in notes if "1 terms of a vocabulary" in note and "ontology/ of the root" in note]
    assert [note for note in notes if "https://example.org/Recipe" in note and "copy ontology/ and shapes/" in note]


def test_an_accepted_memory_of_an_untrusted_source_is_a_proposal_again_and_noted(memory, tmp_path):
    memory.writer.change_policy("p", [PolicyChange(agent="ana", grants="Curator")])
    note = memory.writer.submit_intent("p", intent(source_type="ExternalDocumentSource"))
    curator = memory.writer.speaking_for("ana")
    curator.settle("p", note.iri, "accept", reason="it is so")

    with jidomem.open(tmp_path / "other") as other:
        report = imported(other, export(memory))

    assert [entry.outcome.status for entry in report.accepted] == ["proposed", "proposed"]
    assert [note for note in report.notes if "1 accepted memory is a proposal here" in note]


def test_each_refused_description_of_many_is_tried_again_once(memory, monkeypatch):
    memory.remember("first")
    calls, declare = [], memory.writer.declare
    monkeypatch.setattr(memory.writer, "declare", lambda *arguments: (calls.append(1), declare(*arguments))[1])
    prefix = "@prefix jido: <https://jido.ai/ontology#> .\n"
    rows = [f"<urn:x:{number}> a jido:Agent ; jido:nonsense{number} 5 .\n" for number in range(32)]

    report = imported(memory, prefix + "".join(rows))

    assert len(report.refusals) == 32
    assert len(calls) == 63 + 32  # all, each half of a refused part, then each alone
