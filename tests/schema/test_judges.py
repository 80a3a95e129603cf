"""The two judges side by side: who judges what, whose words a refusal has, and what is said where they differ."""

import subprocess
import sys

import pytest
from deltas import RULES, SCHEMA, entailed

import jidomem
from jidomem.errors import Failed
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import SHAPE, TYPE, jido, local_name
from jidomem.runtime import settings
from jidomem.schema import ontology
from jidomem.schema.shacl import SH
from jidomem.schema.shacl_compiler import COVERED, CompiledValidator

TASK = "<https://jido.ai/memory/t>"
BARE = [(TASK, TYPE, jido("Task"))]
PREFIXES = """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix my: <urn:my:> .
@prefix jido: <https://jido.ai/ontology#> ."""


@pytest.fixture
def overlay(tmp_path):
    def write(text):
        (tmp_path / "shapes").mkdir()
        (tmp_path / "shapes" / "mine.ttl").write_text(PREFIXES + text)
        return [tmp_path]

    return write


def test_what_is_covered_is_all_the_shipped_shapes_use():
    used = {local_name(p) for s, p, _ in RULES if s.startswith(f"<{SHAPE}") and p.startswith(f"<{SH}")}
    beside = {"path", "severity", "message", "targetClass", "targetSubjectsOf"}
    assert used - beside <= set(COVERED)


def test_what_conforms_is_judged_without_loading_pyshacl():
    code = """import sys; from jidomem.schema import ontology as schema
s = schema.load(); print(s.judge([("<urn:p>", "%s", "%s")]), {"rdflib", "pyshacl"} & set(sys.modules))"""
    ran = subprocess.run(
        [sys.executable, "-c", code % (TYPE, jido("Project"))], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[] set()"


def test_a_refusal_has_the_words_of_pyshacl_where_a_shape_has_none(overlay):
    text = "my:S sh:targetClass jido:Project ; sh:property my:P . my:P sh:path my:p ; sh:minCount 1 ."
    stub = ("<urn:p>", TYPE, jido("Project"))
    (found,) = ontology.load(overlay(text)).judge([stub], ["<urn:p>"])
    assert found.message == "Less than 1 values on <urn:p>-><urn:my:p>"


def test_where_the_judges_differ_pyshacl_counts_and_the_difference_is_told():
    wrong = CompiledValidator(RULES)
    wrong.pyshacl = CompiledValidator([row for row in RULES if iri(SHAPE + "ItemHasOneSummary") not in row]).pyshacl
    rows = [*BARE, *entailed(BARE)]

    found = wrong.findings(rows, None, confirm=True)

    told = [finding for finding in found if "differ" in finding.message]
    assert [(local_name(f.shape), f.severity) for f in told] == [("ItemHasOneSummary", "violation")]
    assert set(found) - set(told) == set(wrong.reference(rows, None))


def test_a_violation_only_the_compiled_shapes_see_refuses_nothing_and_is_a_warning():
    wrong = CompiledValidator(RULES)
    wrong.pyshacl = CompiledValidator([]).pyshacl
    (found,) = wrong.findings([*BARE, *entailed(BARE)], None, confirm=True)
    assert (found.severity, "report this" in found.message) == ("warning", True)


def test_the_reference_can_be_chosen_and_finds_the_same():
    chosen = ontology.load(by_reference=True)
    assert chosen.judge(BARE) == SCHEMA.judge(BARE) != []
    assert (chosen.judge_name, ontology.load().judge_name) == ("pyshacl", "compiled")


@pytest.mark.parametrize(
    ("line", "name"), [('judge = "pyshacl"', "pyshacl"), ('judge = "compiled"', "compiled"), ("", "compiled")]
)
def test_the_config_chooses_who_judges_the_writes_of_a_root(tmp_path, line, name):
    (tmp_path / "config.toml").write_text(line)
    assert jidomem.open(tmp_path).schema.judge_name == name


def test_another_judge_is_refused_with_the_ones_there_are(tmp_path):
    (tmp_path / "config.toml").write_text('judge = "pyshackle"')
    with pytest.raises(Failed, match='judge = "pyshackle" is not one of compiled, pyshacl') as refusal:
        settings.load(tmp_path)
    assert "did you mean 'pyshacl'?" in refusal.value.hint


def test_the_shacl_of_shacl_has_nothing_to_object_to_in_the_shipped_shapes():
    assert ontology.objections(RULES) == []


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("my:S sh:targetClass jido:Fact ; sh:property my:Nowhere .", "<urn:my:Nowhere>"),
        ("my:S sh:targetClass jido:Fact ; sh:nodeKind my:Round .", "<urn:my:S>"),
        ("my:S sh:targetClass jido:Fact ; sh:property my:P . my:P sh:path my:p ; sh:minCount 'one' .", "<urn:my:P>"),
        ("my:S sh:targetClass jido:Fact ; sh:property my:P . my:P sh:path ( my:p ) ; sh:minCount 1 .", "my:P"),
        ("my:S sh:targetClass jido:Fact ; sh:in 'no list' .", "<urn:my:S>"),
        ("my:S sh:targetClass jido:Fact ; sh:severity 'bad' .", "<urn:my:S>"),
    ],
)
def test_an_overlay_with_a_shape_that_is_none_is_refused_with_file_and_shape(overlay, text, about):
    folders = overlay(text)
    with pytest.raises(Failed, match=r"mine.ttl: the shapes cannot be used") as refusal:
        ontology.load(folders)
    assert about in str(refusal.value)


def test_a_label_of_a_blank_node_in_one_overlay_file_is_not_that_of_another(overlay):
    rule = "my:%s sh:targetClass jido:Project ; sh:property _:p . _:p sh:path my:%s ; sh:minCount 1 ; sh:message '%s' ."
    folders = overlay(rule % ("S", "p", "one"))
    (folders[0] / "shapes" / "more.ttl").write_text(PREFIXES + rule % ("T", "q", "two"))
    found = ontology.load(folders).judge([("<urn:p>", TYPE, jido("Project"))])
    assert {(finding.shape, finding.message) for finding in found} == {("<urn:my:S>", "one"), ("<urn:my:T>", "two")}


def test_an_overlay_may_refer_to_a_shipped_shape(overlay):
    text = "@prefix shape: <https://jido.ai/shapes#> . my:S sh:targetClass jido:Project ; sh:node shape:Hypothesis ."
    found = ontology.load(overlay(text)).judge([("<urn:p>", TYPE, jido("Project"))])
    assert [local_name(finding.shape) for finding in found] == ["urn:my:S"]
