"""What a term means, looked up: by any of its names, with the rules that judge it and the line that declares it."""

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


def shown(root, *args):
    done = CliRunner().invoke(cli, ["ontology", "show", *args, "--root", str(root)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


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


def test_an_unknown_term_is_answered_with_the_nearest():
    with pytest.raises(NotFound, match="there is no term 'Descision'") as error:
        terms.find(ontology.load(), "Descision")
    assert error.value.hint.startswith("did you mean jido:Decision")


def test_a_name_of_two_terms_of_a_project_is_answered_with_both(tmp_path):
    (tmp_path / "ontology").mkdir()
    (tmp_path / "ontology" / "a.ttl").write_text("<urn:a#X> a <http://www.w3.org/2002/07/owl#Class> .\n"
                                                 "<urn:b#X> a <http://www.w3.org/2002/07/owl#Class> .\n")  # fmt: skip
    with pytest.raises(InvalidRequest, match="2 terms") as error:
        terms.find(ontology.load([tmp_path]), "X")
    assert error.value.hint == "give its IRI: urn:a#X or urn:b#X"


def test_a_class_is_shown_with_its_place_in_the_tree_its_properties_and_the_rules_that_judge_it():
    found = terms.entry(ontology.load(), jido("Decision"))

    assert (found.kind, found.above) == ("class", ("https://jido.ai/ontology#MemoryItem",))
    assert "https://jido.ai/ontology#ArchitecturalDecision" in found.below
    assert "https://jido.ai/ontology#hasAlternative" in found.properties
    rules = {rule.iri.split("#")[1]: rule for rule in found.rules}
    assert rules["DecisionHasRationale"].message == "A decision says why: give a `rationale`."
    assert rules["ItemHasOneSummary"].target == "https://jido.ai/ontology#MemoryItem"
    assert found.path.endswith("decision.ttl")
    assert "jido:Decision a owl:Class" in Path(found.path).read_text().splitlines()[found.line - 1]


def test_a_property_is_shown_with_its_ends_and_the_rules_about_it():
    found = terms.entry(ontology.load(), jido("rationale"))

    assert (found.kind, found.functional) == ("property", True)
    assert found.domain == ("https://jido.ai/ontology#MemoryItem",)
    assert [rule.iri for rule in found.rules] == ["https://jido.ai/shapes#DecisionHasRationale"]


def test_a_term_of_the_project_is_shown_with_file_and_line_and_that_it_is_deprecated(root):
    told = json.loads(shown(root, "Recipe", "--format", "json"))

    assert told["definition"] == "How to cook something."
    assert (told["deprecated"], told["line"]) == (True, 7)
    assert told["path"] == str(root / "ontology" / "mine.ttl")
    assert {"How many?"} == {rule["message"] for rule in told["rules"] if rule["target"] == told["iri"]}


def test_all_terms_are_listed_as_a_tree_and_as_json(root):
    lines = shown(root).splitlines()
    at = lines.index("      jido:Fact")

    assert lines[at + 1] == "        https://my.example/kitchen#Recipe (deprecated)"
    assert "  jido:topic: jido:MemoryItem -> xsd:string" in lines
    told = json.loads(shown(root, "--json"))
    assert told["version"] == ontology.load([root]).version
    assert {"class", "property", "individual"} == {term["kind"] for term in told["terms"]}


def test_classes_in_a_circle_are_listed_once(tmp_path):
    (tmp_path / "ontology").mkdir()
    up = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    owl = "a <http://www.w3.org/2002/07/owl#Class>"
    (tmp_path / "ontology" / "a.ttl").write_text(f"<urn:A> {owl} ; {up} <urn:B> . <urn:B> {owl} ; {up} <urn:A> .")
    assert [row for row in terms.tree(ontology.load([tmp_path])) if "urn:" in row[1]] == [
        (0, "<urn:A>"),
        (1, "<urn:B>"),
    ]


def test_a_term_is_given_as_turtle_that_says_the_same(root):
    import pyoxigraph as ox

    text = shown(root, "jido:Decision", "--format", "ttl")

    rows = {(str(q.subject), str(q.predicate), str(q.object)) for q in ox.parse(text, format=ox.RdfFormat.TURTLE)}
    assert rows == {row for row in ontology.load().triples if row[0] == jido("Decision")}


def test_the_summary_of_a_term_is_its_definition_else_its_label(root):
    labelled = "my:Spoon a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label 'a spoon'@en .\n"
    (root / "ontology" / "more.ttl").write_text(OVERLAY.partition("my:Recipe")[0] + labelled)
    schema = ontology.load([root])

    told = {name: (kind, text) for kind, name, text in terms.summaries(schema)}

    assert told["https://my.example/kitchen#Recipe"] == ("class", "How to cook something.")
    assert told["https://my.example/kitchen#Spoon"] == ("class", "a spoon")
    each = [terms.entry(schema, term, [root]) for term in terms.glossary_terms(schema)]
    assert told == {one.iri: (one.kind, one.definition or one.label) for one in each}
