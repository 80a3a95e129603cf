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


def laid(folder, terms=TERMS, rules=RULE):
    for name, text in (("ontology", terms), ("shapes", rules)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "mine.ttl").write_text(PREFIXES + text)
    return folder


@pytest.fixture
def root(tmp_path):
    """A root with two recipes, one of which says for how many; a third was withdrawn."""
    root = laid(init(tmp_path, "p"), rules="")
    recipe = ["rdf:type", f"{MY}Recipe"]
    with jidomem.open(root, project="p") as memory:
        kept = [
            memory.writer.submit_intent("p", intent(summary=name, extra_triples=[recipe, *more])).iri
            for name, more in (("soup", [[f"{MY}serves", 4]]), ("cake", []), ("stew", []))
        ]
        memory.writer.invalidate("p", kept[2], reason="too salty")
    return root, kept


def failing(root, old, new):
    with jidomem.open(root) as memory:
        memory.catch_up("p")
        found = list(now_failing(memory.index, "p", version(root, old), version(root, new)))
    return [(each.item.strip("<>"), each.rule) for each in found]


def test_what_was_added_removed_tightened_relaxed_and_deprecated_is_told(tmp_path):
    old = version(tmp_path, str(laid(tmp_path / "a")))
    terms = TERMS.replace("my:serves", "my:feeds").replace("jido:Fact .", "jido:Fact ; owl:deprecated true .")
    rules = RULE.replace("minCount 1", "minCount 2")
    new = version(tmp_path, str(laid(tmp_path / "b", terms, rules)))

    told = [(each.change, each.kind, each.term.removeprefix(MY)) for each in changes(old, new)]

    assert told == [
        ("deprecated", "term", "Recipe"), ("added", "term", "feeds"), ("removed", "term", "serves"),
        ("tightened", "shape", "R"),
    ]  # fmt: skip
    assert [each.change for each in changes(new, old) if each.kind == "shape"] == ["relaxed"]
    assert changes(old, old) == []


def test_memories_in_force_that_a_new_rule_refuses_are_told_and_those_that_ended_are_not(root, tmp_path):
    folder, (_, cake, _) = root
    laid(tmp_path / "new")

    assert failing(folder, None, str(tmp_path / "new")) == [(cake, f"{MY}R")]
    assert failing(folder, str(tmp_path / "new"), None) == []


def test_memories_that_use_a_term_that_is_gone_or_has_another_range_are_told(root, tmp_path):
    folder, (soup, _, _) = root
    laid(tmp_path / "gone", TERMS.partition("\n")[0], "")
    laid(tmp_path / "other", TERMS.replace("xsd:integer", "xsd:string"), "")

    assert {item for item, _ in failing(folder, None, str(tmp_path / "gone"))} == {soup}
    assert {item for item, _ in failing(folder, None, str(tmp_path / "other"))} == {soup}


def test_a_version_is_the_shipped_one_a_folder_a_revision_or_none(tmp_path):
    root = laid(init(tmp_path, "p"))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    first = version(root, None).version
    laid(root, rules="")

    assert version(root, "HEAD").version == first != version(root, None).version
    assert version(root, first).version == first
    with pytest.raises(InvalidRequest, match=r"none of the 1 revisions of the overlay in git is 0\.1\.0\+01") as no:
        version(root, "0.1.0+0123456789ab")
    assert "give a folder with the ontology/ and shapes/ of that version" in no.value.hint
    assert version(root, "shipped").version == version(root, "0.1.0").version == "0.1.0"
    for name in ("no-such-branch", "--output=x"):
        with pytest.raises(InvalidRequest, match="is not a version"):
            version(root, name)


def test_the_command_counts_the_failures_and_lists_the_first(root, tmp_path):
    folder, (_, cake, _) = root
    new = laid(tmp_path / "new")

    done = CliRunner().invoke(
        cli, ["ontology", "diff", "--from", str(folder), "--to", str(new), "--root", str(folder), "--json"]
    )

    told = json.loads(done.stdout)
    assert (done.exit_code, told["failures"], told["failing"][0]["item"]) == (1, 1, cake)
    assert [each["change"] for each in told["changes"]] == ["added"]
