"""The glossary: terms found by any of their names, with their rules and the line that declares them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from jidomem.check import terms
from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf.vocab import jido
from jidomem.runtime.location import init
from jidomem.schema import ontology
from jidomem_cli.main import cli

OVERLAY = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .

my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:comment "How to cook something." ; owl:deprecated true .
my:topic a owl:DatatypeProperty ; rdfs:domain my:Recipe .
"""
RULE = 'my:S a sh:NodeShape ; sh:targetClass my:Recipe ; sh:property [ sh:path my:serves ; sh:message "How many?" ] .'


@pytest.fixture
def root(tmp_path):
    root = init(tmp_path, "p")
    for name, text in (("ontology", OVERLAY), ("shapes", OVERLAY.split("\n\n")[0] + "\n" + RULE)):
        (root / name).mkdir()
        (root / name / "mine.ttl").write_text(text)
    return root


def show(root, *args):
    result = CliRunner().invoke(cli, ["ontology", "show", *args, "--root", str(root)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("Decision", "Decision"),
        ("jido:topic", "topic"),
        ("https://jido.ai/ontology#topic", "topic"),
        ("<https://jido.ai/ontology#High>", "High"),
        ("architectural_decision", "ArchitecturalDecision"),
        ("lesson", "LessonLearned"),
    ],
)
def test_a_term_is_found_by_any_of_its_names(name, term):
    assert terms.find(ontology.load(), name) == jido(term)


def test_an_unknown_term_is_refused_with_the_nearest_name():
    with pytest.raises(NotFound, match="there is no term 'Descision'") as error:
        terms.find(ontology.load(), "Descision")
    assert error.value.hint.startswith("did you mean jido:Decision")


def test_an_ambiguous_name_is_refused_with_the_iris_of_its_terms(tmp_path):
    (tmp_path / "ontology").mkdir()
    (tmp_path / "ontology" / "a.ttl").write_text("<urn:a#X> a <http://www.w3.org/2002/07/owl#Class> .\n"
                                                 "<urn:b#X> a <http://www.w3.org/2002/07/owl#Class> .\n")  # fmt: skip
    with pytest.raises(InvalidRequest, match="2 terms") as error:
        terms.find(ontology.load([tmp_path]), "X")
    assert error.value.hint == "give its IRI: urn:a#X or urn:b#X"


def test_a_class_is_shown_with_its_parents_subclasses_properties_and_rules():
    entry = terms.entry(ontology.load(), jido("Decision"))

    assert (entry.kind, entry.above) == ("class", ("https://jido.ai/ontology#MemoryItem",))
    assert "https://jido.ai/ontology#ArchitecturalDecision" in entry.below
    assert "https://jido.ai/ontology#hasAlternative" in entry.properties
    rules = {rule.iri.split("#")[1]: rule for rule in entry.rules}
    assert rules["DecisionHasRationale"].message == "A decision says why: give a `rationale`."
    assert rules["ItemHasOneSummary"].target == "https://jido.ai/ontology#MemoryItem"
    assert entry.path.endswith("decision.ttl")
    assert "jido:Decision a owl:Class" in Path(entry.path).read_text().splitlines()[entry.line - 1]


def test_a_property_is_shown_with_its_domain_and_rules():
    entry = terms.entry(ontology.load(), jido("rationale"))

    assert (entry.kind, entry.functional) == ("property", True)
    assert entry.domain == ("https://jido.ai/ontology#MemoryItem",)
    assert [rule.iri for rule in entry.rules] == ["https://jido.ai/shapes#DecisionHasRationale"]


def test_an_own_term_is_shown_with_its_file_line_and_deprecation(root):
    entry = json.loads(show(root, "Recipe", "--format", "json"))

    assert entry["definition"] == "How to cook something."
    assert (entry["deprecated"], entry["line"]) == (True, 7)
    assert entry["path"] == str(root / "ontology" / "mine.ttl")
    assert {"How many?"} == {rule["message"] for rule in entry["rules"] if rule["target"] == entry["iri"]}


def test_all_terms_are_listed_as_a_tree_and_as_json(root):
    lines = show(root).splitlines()
    at = lines.index("      jido:Fact")

    assert lines[at + 1] == "        https://my.example/kitchen#Recipe (deprecated)"
    assert "  jido:topic: jido:MemoryItem -> xsd:string" in lines
    listing = json.loads(show(root, "--json"))
    assert listing["version"] == ontology.load([root]).version
    assert {"class", "property", "individual"} == {term["kind"] for term in listing["terms"]}


def test_classes_in_a_cycle_are_listed_once(tmp_path):
    (tmp_path / "ontology").mkdir()
    up = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    owl = "a <http://www.w3.org/2002/07/owl#Class>"
    (tmp_path / "ontology" / "a.ttl").write_text(f"<urn:A> {owl} ; {up} <urn:B> . <urn:B> {owl} ; {up} <urn:A> .")
    assert [row for row in terms.tree(ontology.load([tmp_path])) if "urn:" in row[1]] == [
        (0, "<urn:A>"),
        (1, "<urn:B>"),
    ]


def test_the_turtle_of_a_term_has_the_triples_of_the_ontology(root):
    import pyoxigraph as ox

    text = show(root, "jido:Decision", "--format", "ttl")

    rows = {(str(q.subject), str(q.predicate), str(q.object)) for q in ox.parse(text, format=ox.RdfFormat.TURTLE)}
    assert rows == {row for row in ontology.load().triples if row[0] == jido("Decision")}


def test_the_summary_of_a_term_is_its_definition_else_its_label(root):
    labelled = "my:Spoon a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label 'a spoon'@en .\n"
    (root / "ontology" / "more.ttl").write_text(OVERLAY.partition("my:Recipe")[0] + labelled)
    schema = ontology.load([root])

    summaries = {name: (kind, text) for kind, name, text in terms.summaries(schema)}

    assert summaries["https://my.example/kitchen#Recipe"] == ("class", "How to cook something.")
    assert summaries["https://my.example/kitchen#Spoon"] == ("class", "a spoon")
    each = [terms.entry(schema, term, [root]) for term in terms.glossary_terms(schema)]
    assert summaries == {one.iri: (one.kind, one.definition or one.label) for one in each}
