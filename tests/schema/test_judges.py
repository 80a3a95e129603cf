"""The compiled validator and pyshacl: their shares of the work, the messages, and the report of differences."""

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


def test_the_compiler_covers_all_constraints_of_the_shipped_shapes():
    used = {local_name(p) for s, p, _ in RULES if s.startswith(f"<{SHAPE}") and p.startswith(f"<{SH}")}
    annotations = {"path", "severity", "message", "targetClass", "targetSubjectsOf"}
    assert used - annotations <= set(COVERED)


def test_a_conforming_delta_is_judged_without_importing_pyshacl():
    code = """import sys; from jidomem.schema import ontology as schema
s = schema.load(); print(s.judge([("<urn:p>", "%s", "%s")]), {"rdflib", "pyshacl"} & set(sys.modules))"""
    result = subprocess.run(
        [sys.executable, "-c", code % (TYPE, jido("Project"))], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] set()"


def test_a_violation_of_a_shape_without_a_message_has_that_of_pyshacl(overlay):
    text = "my:S sh:targetClass jido:Project ; sh:property my:P . my:P sh:path my:p ; sh:minCount 1 ."
    stub = ("<urn:p>", TYPE, jido("Project"))
    (violation,) = ontology.load(overlay(text)).judge([stub], ["<urn:p>"])
    assert violation.message == "Less than 1 values on <urn:p>-><urn:my:p>"


def test_findings_of_pyshacl_prevail_and_differences_are_reported():
    wrong = CompiledValidator(RULES)
    wrong.pyshacl = CompiledValidator([row for row in RULES if iri(SHAPE + "ItemHasOneSummary") not in row]).pyshacl
    rows = [*BARE, *entailed(BARE)]

    findings = wrong.findings(rows, None, confirm=True)

    differences = [finding for finding in findings if "differ" in finding.message]
    assert [(local_name(f.shape), f.severity) for f in differences] == [("ItemHasOneSummary", "violation")]
    assert set(findings) - set(differences) == set(wrong.reference(rows, None))


def test_a_violation_found_by_the_compiled_shapes_alone_is_a_warning():
    wrong = CompiledValidator(RULES)
    wrong.pyshacl = CompiledValidator([]).pyshacl
    (reported,) = wrong.findings([*BARE, *entailed(BARE)], None, confirm=True)
    assert (reported.severity, "report this" in reported.message) == ("warning", True)


def test_pyshacl_can_be_selected_and_has_the_same_findings():
    chosen = ontology.load(by_reference=True)
    assert chosen.judge(BARE) == SCHEMA.judge(BARE) != []
    assert (chosen.judge_name, ontology.load().judge_name) == ("pyshacl", "compiled")


@pytest.mark.parametrize(
    ("line", "name"), [('judge = "pyshacl"', "pyshacl"), ('judge = "compiled"', "compiled"), ("", "compiled")]
)
def test_the_configuration_selects_the_validator_of_a_root(tmp_path, line, name):
    (tmp_path / "config.toml").write_text(line)
    assert jidomem.open(tmp_path).schema.judge_name == name


def test_an_unknown_validator_is_refused_with_the_known_ones(tmp_path):
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
def test_a_malformed_shape_of_an_overlay_is_refused_with_file_and_shape(overlay, text, about):
    folders = overlay(text)
    with pytest.raises(Failed, match=r"mine.ttl: the shapes cannot be used") as refusal:
        ontology.load(folders)
    assert about in str(refusal.value)


def test_equal_blank_node_labels_of_two_overlay_files_are_different_nodes(overlay):
    rule = "my:%s sh:targetClass jido:Project ; sh:property _:p . _:p sh:path my:%s ; sh:minCount 1 ; sh:message '%s' ."
    folders = overlay(rule % ("S", "p", "one"))
    (folders[0] / "shapes" / "more.ttl").write_text(PREFIXES + rule % ("T", "q", "two"))
    findings = ontology.load(folders).judge([("<urn:p>", TYPE, jido("Project"))])
    assert {(finding.shape, finding.message) for finding in findings} == {("<urn:my:S>", "one"), ("<urn:my:T>", "two")}


def test_an_overlay_may_refer_to_a_shipped_shape(overlay):
    text = "@prefix shape: <https://jido.ai/shapes#> . my:S sh:targetClass jido:Project ; sh:node shape:Hypothesis ."
    findings = ontology.load(overlay(text)).judge([("<urn:p>", TYPE, jido("Project"))])
    assert [local_name(finding.shape) for finding in findings] == ["urn:my:S"]
