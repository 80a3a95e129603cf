"""The schema: its view of the ontology, its validation, and the permitted content of an overlay."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyoxigraph as ox
import pytest

from jidomem.base import files
from jidomem.errors import Failed
from jidomem.rdf.terms import iri, ntriples_line
from jidomem.rdf.vocab import SHAPE, TYPE, jido, local_name
from jidomem.schema import ontology
from jidomem.schema.ontology import ITEM
from jidomem.schema.shacl import EVERY_ITEM_IS_JUDGED, Finding, validate_graph

CASES = Path(__file__).parents[1] / "shapes" / "cases"
DATE_TIME = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
A, B = "<https://jido.ai/memory/a>", "<https://jido.ai/memory/b>"
FACT = (
    (A, TYPE, jido("Fact")),
    (A, jido("summary"), '"The build needs Rust 1.80"'),
    (A, jido("appliesToProject"), "<https://jido.ai/projects/demo>"),
    (A, jido("assertedBy"), "<https://jido.ai/agents/architect>"),
    (A, jido("assertedIn"), "<https://jido.ai/sessions/s-42>"),
    (A, jido("hasConfidence"), jido("High")),
    (A, jido("hasTimestamp"), f'"2026-11-21T08:00:00.000000Z"{DATE_TIME}'),
)


@pytest.fixture
def shipped():
    return ontology.load()


@pytest.fixture
def overlay(tmp_path):
    """Write one file of an overlay and return its folder."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        prefixes = {"jido": "https://jido.ai/ontology#", "shape": SHAPE, "sh": "http://www.w3.org/ns/shacl#",
                    "owl": ontology.OWL, "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "my": "urn:my:"}  # fmt: skip
        path.write_text("".join(f"@prefix {p}: <{iri}> .\n" for p, iri in prefixes.items()) + text)
        return tmp_path

    return write


def triples(path):
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in ox.parse(path=str(path))]


def changed(predicate, value):
    """The conforming fact with one value replaced; None removes it."""
    others = [row for row in FACT if row[1] != predicate]
    return others if value is None else [*others, (A, predicate, value)]


def shapes_of(findings):
    return [local_name(finding.shape) for finding in findings]


def test_a_class_is_an_instance_of_all_its_ancestors(shipped):
    assert shipped.is_a(jido("Bug"), jido("Bug"))
    assert shipped.is_a(jido("Bug"), ITEM)
    assert not shipped.is_a(jido("Error"), jido("Bug"))
    assert shipped.ancestors(jido("Bug")) == {jido("Bug"), jido("Error"), ITEM, jido("Entity")}
    assert shipped.subclasses(jido("Error")) == {jido(name) for name in ("Error", "Bug", "Failure", "Incident")}
    assert shipped.ancestors("<urn:nobody>") == {"<urn:nobody>"}


@pytest.mark.parametrize(
    ("cls", "family"),
    [("ArchitecturalDecision", "Decision"), ("Bug", "Error"), ("Fact", "Fact"), ("DeletedMarker", "DeletedMarker")],
)
def test_the_family_of_a_kind_is_the_class_directly_below_memory_item(shipped, cls, family):
    assert shipped.family(jido(cls)) == jido(family)


def test_a_class_that_is_no_kind_of_memory_has_no_family(shipped):
    assert [shipped.family(jido(name)) for name in ("MemoryItem", "Agent", "Nonsense")] == [None, None, None]


@pytest.mark.parametrize(
    ("written", "meant"), [("summery", "summary"), ("Descision", "Decision"), ("asignedTo", "assignedTo")]
)
def test_the_nearest_declared_term_is_found_for_a_misspelt_one(shipped, written, meant):
    assert shipped.nearest(jido(written)) == jido(meant)


def test_a_dissimilar_term_has_no_nearest_term(shipped):
    assert shipped.nearest(jido("xqzzk")) is None


def test_an_individual_may_have_two_classes(shipped):
    assert shipped.individuals[jido("Abandoned")] == {jido("TaskStatus"), jido("SessionStatus")}
    assert shipped.deprecated == frozenset()


def test_loading_the_schema_imports_neither_rdflib_nor_pyshacl():
    code = (
        "import sys; from jidomem.schema.ontology import load; load();"
        " print({'rdflib', 'pyshacl', 're2'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_the_shipped_schema_is_read_once():
    assert ontology.load() is ontology.load()


def test_a_finding_has_node_shape_path_value_and_message(shipped):
    findings = shipped.judge(changed(jido("hasConfidence"), jido("Planned")))
    assert findings == [
        Finding(
            focus=A,
            shape=f"<{SHAPE}ItemHasOneConfidence>",
            path=jido("hasConfidence"),
            value=jido("Planned"),
            message="A memory says how sure its author is: give one `confidence`, low, medium, high or a number"
            " from 0 to 1.",
            severity="violation",
        )
    ]


def test_a_path_of_several_steps_is_shown_as_a_sparql_path(shipped):
    findings = shipped.judge([*FACT, (A, jido("invalidatedBy"), B)])
    assert [finding.path for finding in findings] == ["jido:invalidatedBy / jido:appliesToProject"]


def test_an_item_is_judged_by_the_shapes_of_its_superclasses(shipped):
    assert shipped.judge(FACT) == []
    assert shapes_of(shipped.judge(changed(TYPE, jido("ArchitecturalDecision")))) == ["DecisionHasRationale"]


@pytest.mark.parametrize("text", ['"abc"', '"2026-11-21"', '"2026-02-30T00:00:00Z"', '""'])
def test_an_ill_typed_literal_is_a_finding_with_the_literal(shipped, text, caplog, capsys):
    findings = shipped.judge(changed(jido("hasTimestamp"), text + DATE_TIME))

    assert [(local_name(f.shape), f.value) for f in findings] == [("ItemHasOneTimestamp", text + DATE_TIME)]
    assert (caplog.text, capsys.readouterr()) == ("", ("", ""))


def test_a_session_with_ill_typed_dates_is_a_finding(shipped):
    session = triples(CASES / "SessionEndsAfterItsStart" / "violates.ttl")
    broken = [(s, p, f'"soon"{DATE_TIME}' if p == jido("endedAt") else o) for s, p, o in session]
    assert shapes_of(shipped.judge(broken)) == ["SessionEndIsATime"]


@pytest.mark.parametrize("by_reference", [True, False])
def test_a_session_with_incomparable_dates_violates_the_comparing_shape(by_reference):
    session = triples(CASES / "SessionEndsAfterItsStart" / "conforms.ttl")
    broken = [(s, p, f'"1999-02-30T00:00:00Z"{DATE_TIME}' if p == jido("endedAt") else o) for s, p, o in session]
    findings = ontology.load(by_reference=by_reference).judge([*broken, *FACT])
    assert shapes_of(findings) == ["SessionEndIsATime", "SessionEndsAfterItsStart"]


def test_a_finding_keeps_the_lexical_form_of_a_value(shipped):
    nought = '"007"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert [f.value for f in shipped.judge(changed(jido("summary"), nought)) if f.value] == [nought]


def test_only_focus_nodes_are_judged(shipped):
    both = [row for node in (A, B) for row in ((node, TYPE, jido("Fact")), (node, jido("summary"), '"x"'))]

    assert {finding.focus for finding in shipped.judge(both)} == {A, B}
    assert {finding.focus for finding in shipped.judge(both, [B])} == {B}
    assert shipped.judge(both, []) == []


def test_a_shape_of_a_focus_node_reads_its_neighbours(shipped):
    case = triples(CASES / "PromotedHypothesisHasEvidence" / "violates.ttl")
    replacing_a_fact = [(s, p, jido("Fact") if o == jido("Hypothesis") else o) for s, p, o in case]
    fact = "<https://jido.ai/memory/f>"

    assert shapes_of(shipped.judge(case, [fact])) == ["PromotedHypothesisHasEvidence"]
    assert shipped.judge(replacing_a_fact, [fact]) == []


def test_a_focus_node_without_a_shape_is_a_finding(shipped):
    stub = ("<https://jido.ai/projects/demo>", TYPE, jido("Project"))
    findings = shipped.judge([*FACT, stub], [A, stub[0], "<urn:nowhere>"])
    assert [(f.focus, f.shape, f.severity) for f in findings] == [("<urn:nowhere>", EVERY_ITEM_IS_JUDGED, "violation")]


def test_findings_are_ordered(shipped):
    bare = [(node, TYPE, jido("Decision")) for node in (B, A)]
    findings = shipped.judge(bare)
    assert findings == shipped.judge(reversed(bare))
    assert [finding.focus for finding in findings] == [A] * 7 + [B] * 7


def test_concurrent_judgements_have_the_same_findings(shipped):
    bad = changed(jido("summary"), None)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: shapes_of(shipped.judge(bad)), range(24)))
    assert results == [["ItemHasOneSummary"]] * 24


# The oracle: the same input, validated by the public function of pyshacl over data and ontology.


@cache
def rules_and_classes():
    """The shapes as a graph, and the part of the ontology that SHACL needs: class tree and members of classes."""
    rules = [row for path in files.shape_files() for row in triples(path)]
    return rules, [row for row in ontology.load().triples if row[1] == TYPE or row[1].endswith("subClassOf>")]


def read(rows):
    """An rdflib graph from the parser of rdflib, with unchanged lexical forms."""
    import rdflib

    rdflib.NORMALIZE_LITERALS = False
    try:
        return rdflib.Graph().parse(data="\n".join(map(ntriples_line, rows)), format="nt")
    finally:
        rdflib.NORMALIZE_LITERALS = True


def oracle(data):
    from pyshacl import validate
    from rdflib import Literal, URIRef
    from rdflib.namespace import SH

    rules, classes = rules_and_classes()
    _, report, _ = validate(read([*data, *classes]), shacl_graph=read(rules))

    def n3(node):
        return None if node is None else node.n3().replace("^^<http://www.w3.org/2001/XMLSchema#string>", "")

    return {
        (
            n3(report.value(result, SH.focusNode)),
            n3(report.value(result, SH.sourceShape)),
            n3(report.value(result, SH.value)),
            local_name(str(report.value(result, SH.resultSeverity))).lower(),
            str(report.value(result, SH.resultMessage)),
        )
        for result in report.subjects(URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), SH.ValidationResult)
        if not isinstance(report.value(result, SH.focusNode), Literal)
    }


def judged(data):
    findings = ontology.load().judge(data)
    return {(f.focus, f.shape, f.value, f.severity, f.message) for f in findings if f.shape != EVERY_ITEM_IS_JUDGED}


def test_every_example_has_the_findings_of_pyshacl():
    files = [*CASES.glob("*/*.ttl"), CASES.parent / "known-bad.ttl"]
    # The examples use the same names for different things, so each file's nodes are renamed apart.
    data = [
        tuple(
            term.replace("ai/memory/", f"ai/memory/{n}-").replace("ai/sessions/", f"ai/sessions/{n}-")
            .replace("ai/agents/", f"ai/agents/{n}-") for term in row
        )
        for n, path in enumerate(files)
        for row in triples(path)
    ]  # fmt: skip
    assert judged(data) == oracle(data)
    assert len({shape for _, shape, *_ in judged(data)}) == 32


def test_a_graph_is_validated_by_plain_shapes(shipped):
    rules = triples(files.shape_files()[0])
    agent = ("<urn:a>", TYPE, jido("Agent"))
    assert shapes_of(validate_graph([agent], rules)) == ["AgentHasACapability", "AgentHasARole"]


def test_malformed_plain_shapes_are_refused():
    malformed = [("<urn:s>", TYPE, "<http://www.w3.org/ns/shacl#PropertyShape>")]
    with pytest.raises(Failed, match="the shapes cannot be used") as refusal:
        validate_graph(FACT, malformed)
    assert refusal.value.code == "invalid_config"


@pytest.mark.parametrize(
    "text",
    [
        "my:R sh:targetClass jido:Fact ; sh:property my:Nowhere .",
        "my:R sh:targetClass jido:Fact ; sh:property my:P . my:P sh:path my:p ; sh:minCount 'one' .",
        "my:R sh:targetClass jido:Fact ; sh:property my:P . my:P sh:path my:p ; sh:minCount 1 , 2 .",
        "my:R a sh:NodeShape ; sh:targetClass jido:Fact ; sh:path my:p .",
        "my:R a sh:PropertyShape ; sh:targetClass jido:Fact ; sh:minLength 1 .",
        "my:R sh:targetClass jido:Fact ; sh:minLength -1 .",
        "my:R sh:targetClass jido:Fact ; sh:and () .",
        "my:R sh:targetClass jido:Fact ; sh:property [ sh:path _:p ; sh:minCount 1 ] . _:p sh:oneOrMorePath _:p .",
    ],
)
def test_malformed_shapes_of_an_overlay_are_a_configuration_error(overlay, text):
    folder = overlay("shapes/mine.ttl", text)
    with pytest.raises(Failed, match="the shapes cannot be used") as refusal:
        ontology.load([folder]).judge(FACT)
    assert refusal.value.code == "invalid_config"


# Overlays.


def test_an_endless_list_in_an_overlay_is_refused_with_its_file(overlay):
    rdf = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."
    endless = " my:R sh:targetClass jido:Fact ; sh:in _:l . _:l rdf:first 1 ; rdf:rest _:l ."
    with pytest.raises(Failed, match=r"mine.ttl: the shapes cannot be used: List contains a recursive") as refusal:
        ontology.load([overlay("shapes/mine.ttl", rdf + endless)])
    assert refusal.value.code == "invalid_config"
    assert refusal.value.hint.startswith("end the list with rdf:nil; ")


def test_a_fault_of_a_blank_node_names_its_shape_and_the_check_command(overlay):
    shape = " my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:property [ sh:path jido:summary ; sh:pattern '(' ] ."
    with pytest.raises(Failed) as refusal:
        ontology.load([overlay("shapes/mine.ttl", shape)])
    assert "<urn:my:S> has the pattern" in refusal.value.detail
    assert "_:" not in refusal.value.detail
    assert refusal.value.hint.endswith("jidomem ontology check")


def test_an_overlay_adds_kinds_of_memory_and_shapes(overlay, shipped):
    overlay("ontology/mine.ttl", "my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact .")
    folder = overlay(
        "shapes/mine.ttl",
        "my:R sh:targetClass my:Recipe ; sh:property my:P ."
        " my:P sh:path my:serves ; sh:minCount 1 ; sh:message 'Say for how many.' .",
    )
    extended = ontology.load([folder])
    recipe = changed(TYPE, "<urn:my:Recipe>")

    assert extended.family("<urn:my:Recipe>") == jido("Fact")
    assert [f.message for f in extended.judge(recipe)] == ["Say for how many."]
    assert shapes_of(shipped.judge(recipe)) == ["EveryItemIsJudged"]
    assert (
        extended.judge([row for row in recipe if row[1] != jido("summary")])[0].shape == f"<{SHAPE}ItemHasOneSummary>"
    )


def test_an_overlay_may_deprecate_its_terms(overlay):
    extended = ontology.load([overlay("ontology/old.ttl", "my:Old a owl:Class ; owl:deprecated true .")])
    assert extended.deprecated == {"<urn:my:Old>"}


@pytest.mark.parametrize(
    ("name", "text", "complaint", "hint"),
    [
        ("ontology/o.ttl", "jido:Fact rdfs:subClassOf my:T .", "o.ttl: <https://jido.ai", "own namespace"),
        ("ontology/o.ttl", "jido:Mine a owl:Class .", "o.ttl: <https://jido.ai/ontology#Mine>", "own namespace"),
        ("shapes/s.ttl", "shape:DecisionHasRationale sh:deactivated true .", "DecisionHasRationale", "own namespace"),
        ("ontology/o.ttl", "my:o a owl:Ontology ; owl:imports <urn:x> .", "imports <urn:x>", "copy the terms"),
        ("shapes/s.ttl", "my:S sh:sparql [ sh:select 'SELECT $this {}' ] .", "runs code", "SHACL Core"),
        ("shapes/s.ttl", "my:C a sh:ConstraintComponent .", "runs code by sh:ConstraintComponent", "SHACL Core"),
        ("shapes/s.ttl", "my:S sh:path my:p ; sh:pattern '(?<!a)b' .", "RE2 does not run", "second pattern"),
        ("shapes/s.ttl", "my:S sh:path my:p ; sh:pattern '(' .", "RE2 does not run: missing", "wiki/Syntax"),
        ("ontology/o.ttl", "my:S a", "o.ttl:7", "correct the Turtle"),
    ],
)  # fmt: skip
def test_an_overlay_that_changes_shipped_terms_or_runs_code_is_refused(overlay, name, text, complaint, hint):
    with pytest.raises(Failed, match=complaint) as refusal:
        ontology.load([overlay(name, text)])
    assert refusal.value.code == "invalid_config"
    assert hint in refusal.value.hint


def test_a_shape_may_have_another_severity_in_check(shipped):
    cause = [(s, p, jido("RootCause") if p == TYPE else o) for s, p, o in FACT]
    (rule,) = {finding.shape for finding in shipped.judge(cause)}
    stricter = (rule, jido("checkSeverity"), iri("http://www.w3.org/ns/shacl#Violation"))
    own = replace(shipped, _rules=(*shipped.rules, stricter), _judges=[])
    findings = own.judge(cause)
    assert [finding._replace(severity="violation") for finding in findings] == own.judge(cause, in_check=True)
    assert [finding.severity for finding in findings] == ["warning"]


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("ontology", "my:C a owl:Class ; owl:deprecated my:x ."),
        (
            "shapes",
            "my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:property my:P ."
            ' my:P sh:path jido:topic ; sh:maxCount 1 ; sh:message "one topic" ; jido:atWriteOnly my:x .',
        ),
    ],
)
def test_an_overlay_annotation_that_is_no_boolean_is_false(tmp_path, folder, text):
    prefixes = (
        "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix jido: <https://jido.ai/ontology#> ."
        " @prefix my: <https://my.example/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    )
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "mine.ttl").write_text(prefixes + text)
    two = [*FACT, (FACT[0][0], jido("topic"), '"a"'), (FACT[0][0], jido("topic"), '"b"')]

    loaded = ontology.load([tmp_path])

    assert loaded.deprecated == frozenset()
    in_check = [finding.message for finding in loaded.judge(two, in_check=True)]
    assert ("one topic" in in_check) == (folder == "shapes")
