"""Two versions of the ontology: what changed, and which active memories would now fail."""

import json
import subprocess

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.check.overlay import changes, now_failing, version
from jidomem.errors import InvalidRequest
from jidomem.runtime.location import init
from jidomem_cli.main import cli

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
MY = "https://my.example/kitchen#"
TERMS = (
    "my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact .\nmy:serves a owl:DatatypeProperty ; rdfs:range xsd:integer .\n"
)
RULE = """my:R a sh:NodeShape ; sh:targetClass my:Recipe ;
    sh:property [ sh:path my:serves ; sh:minCount 1 ; sh:message 'x' ] ."""


def write_overlay(folder, terms=TERMS, rules=RULE):
    for name, text in (("ontology", terms), ("shapes", rules)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "mine.ttl").write_text(PREFIXES + text)
    return folder


@pytest.fixture
def root(tmp_path):
    """A root with two recipes, one of which has the property `serves`; a third was withdrawn."""
    root = write_overlay(init(tmp_path, "p"), rules="")
    recipe = ["rdf:type", f"{MY}Recipe"]
    with jidomem.open(root, project="p") as memory:
        iris = [
            memory.writer.submit_intent("p", intent(summary=name, extra_triples=[recipe, *more])).iri
            for name, more in (("soup", [[f"{MY}serves", 4]]), ("cake", []), ("stew", []))
        ]
        memory.writer.invalidate("p", iris[2], reason="too salty")
    return root, iris


def failing(root, old, new):
    with jidomem.open(root) as memory:
        memory.catch_up("p")
        failures = list(now_failing(memory.index, "p", version(root, old), version(root, new)))
    return [(each.item.strip("<>"), each.rule) for each in failures]


def test_a_diff_lists_added_removed_deprecated_terms_and_tightened_relaxed_shapes(tmp_path):
    old = version(tmp_path, str(write_overlay(tmp_path / "a")))
    terms = TERMS.replace("my:serves", "my:feeds").replace("jido:Fact .", "jido:Fact ; owl:deprecated true .")
    rules = RULE.replace("minCount 1", "minCount 2")
    new = version(tmp_path, str(write_overlay(tmp_path / "b", terms, rules)))

    reported = [(each.change, each.kind, each.term.removeprefix(MY)) for each in changes(old, new)]

    assert reported == [
        ("deprecated", "term", "Recipe"), ("added", "term", "feeds"), ("removed", "term", "serves"),
        ("tightened", "shape", "R"),
    ]  # fmt: skip
    assert [each.change for each in changes(new, old) if each.kind == "shape"] == ["relaxed"]
    assert changes(old, old) == []


def test_active_memories_that_fail_a_new_shape_are_listed_and_withdrawn_ones_are_not(root, tmp_path):
    folder, (_, cake, _) = root
    write_overlay(tmp_path / "new")

    assert failing(folder, None, str(tmp_path / "new")) == [(cake, f"{MY}R")]
    assert failing(folder, str(tmp_path / "new"), None) == []


def test_memories_that_use_a_removed_term_or_a_changed_range_are_listed(root, tmp_path):
    folder, (soup, _, _) = root
    write_overlay(tmp_path / "gone", TERMS.partition("\n")[0], "")
    write_overlay(tmp_path / "other", TERMS.replace("xsd:integer", "xsd:string"), "")

    assert {item for item, _ in failing(folder, None, str(tmp_path / "gone"))} == {soup}
    assert {item for item, _ in failing(folder, None, str(tmp_path / "other"))} == {soup}


def test_an_ontology_version_is_resolved_from_a_folder_a_git_revision_or_the_shipped_files(tmp_path):
    root = write_overlay(init(tmp_path, "p"))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    first = version(root, None).version
    write_overlay(root, rules="")

    assert version(root, "HEAD").version == first != version(root, None).version
    assert version(root, first).version == first
    with pytest.raises(InvalidRequest, match=r"none of the 1 revisions of the overlay in git is 0\.1\.0\+01") as error:
        version(root, "0.1.0+0123456789ab")
    assert "give a folder with the ontology/ and shapes/ of that version" in error.value.hint
    assert version(root, "shipped").version == version(root, "0.1.0").version == "0.1.0"
    for name in ("no-such-branch", "--output=x"):
        with pytest.raises(InvalidRequest, match="is not a version"):
            version(root, name)


def test_the_ontology_diff_command_counts_failing_memories_and_lists_changes(root, tmp_path):
    folder, (_, cake, _) = root
    new = write_overlay(tmp_path / "new")

    result = CliRunner().invoke(
        cli, ["ontology", "diff", "--from", str(folder), "--to", str(new), "--root", str(folder), "--json"]
    )

    report = json.loads(result.stdout)
    assert (result.exit_code, report["failures"], report["failing"][0]["item"]) == (1, 1, cake)
    assert [each["change"] for each in report["changes"]] == ["added"]
