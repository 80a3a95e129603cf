"""The version of an overlay: it depends on the triples, not on their spelling; each commit records it."""

import pytest
from conftest import intent

import jidomem
from jidomem.runtime.location import init
from jidomem.schema import ontology
from jidomem.schema.ontology import label_blank_nodes

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
TERMS = "my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label 'recipe' ."
RULE = "my:R a sh:NodeShape ; sh:targetClass my:Recipe ; sh:property [ sh:path my:serves ; sh:in ( 1 2 ) ] ."


def write_overlay(folder, terms=TERMS, rules=RULE):
    for name, text in (("ontology", terms), ("shapes", rules)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "mine.ttl").write_text(PREFIXES + text)
    return folder


def version(folder):
    return ontology.load([folder]).version


def test_the_version_of_the_ontology_names_the_overlay_it_was_extended_by(tmp_path):
    shipped, _, mark = version(write_overlay(tmp_path)).partition("+")

    assert shipped == ontology.load().version
    assert len(mark) == 12


def test_an_empty_overlay_does_not_change_the_version(tmp_path):
    (tmp_path / "ontology").mkdir()
    assert version(tmp_path) == ontology.load().version


@pytest.mark.parametrize(
    ("terms", "rules"),
    [
        ("# a remark\nmy:Recipe rdfs:label 'recipe' ;\n rdfs:subClassOf jido:Fact ; a owl:Class .", RULE),
        (
            TERMS,
            RULE.replace("[ sh:path my:serves ; sh:in ( 1 2 ) ]", "_:x") + " _:x sh:in (1 2) ; sh:path my:serves .",
        ),
    ],
)
def test_equal_triples_in_another_spelling_have_the_same_version(tmp_path, terms, rules):
    assert version(write_overlay(tmp_path / "a", terms, rules)) == version(write_overlay(tmp_path / "b"))


@pytest.mark.parametrize(
    ("terms", "rules"),
    [
        (TERMS.replace("jido:Fact", "jido:Risk"), RULE),
        (TERMS, RULE.replace("( 1 2 )", "( 2 1 )")),
        (TERMS, RULE.replace("my:serves", "my:feeds")),
        (TERMS, ""),
    ],
)
def test_other_triples_have_another_version(tmp_path, terms, rules):
    assert version(write_overlay(tmp_path / "a", terms, rules)) != version(write_overlay(tmp_path / "b"))


def test_blank_nodes_of_cycles_and_of_long_lists_are_labelled():
    cycle = [("_:a", "<urn:p>", "_:b"), ("_:b", "<urn:p>", "_:a")]
    chain = [(f"_:l{n}", "<urn:rest>", f"_:l{n + 1}") for n in range(20_000)]

    assert label_blank_nodes(cycle) == [("_:circle", "<urn:p>", "_:circle")] * 2
    assert len({row[0] for row in label_blank_nodes(chain)}) == 20_000


def test_a_commit_records_its_ontology_version_and_a_changed_overlay_applies_to_the_next_write(tmp_path):
    root = init(tmp_path, "p")
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", intent(summary="one"))
        extended = version(write_overlay(root))
        memory.writer.submit_intent("p", intent(summary="two"))
        (root / "shapes" / "mine.ttl").unlink()
        (root / "ontology" / "mine.ttl").unlink()
        memory.writer.submit_intent("p", intent(summary="three"))
        rows = memory.reader.ask("commits", project="p")

    assert [row["ontology"] for row in rows] == ["0.1.0", extended, "0.1.0"]
