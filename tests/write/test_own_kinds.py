"""Own kinds and properties of a project are used by their names, in every interface."""

import json

import pytest
from click.testing import CliRunner

import jidomem
from jidomem.errors import IntentRefused
from jidomem_cli.main import cli

SHOP = "https://shop.example/ns#"
TERMS = f"""@prefix shop: <{SHOP}> .
@prefix jido: <https://jido.ai/ontology#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
shop:Runbook a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label "runbook"@en ; rdfs:comment "How it is done."@en .
shop:severity a owl:DatatypeProperty ; rdfs:domain shop:Runbook ; rdfs:range xsd:string ; rdfs:label "severity"@en ;
  rdfs:comment "How bad it is."@en .
shop:pages a owl:DatatypeProperty ; rdfs:domain shop:Runbook ; rdfs:range xsd:integer ; rdfs:label "pages"@en ;
  rdfs:comment "How many."@en .
"""


def run(*words, code=0, stdin=None):
    result = CliRunner().invoke(cli, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.stdout + result.stderr
    return result


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("init", "-q", "--project", "p")
    folder = tmp_path / ".jidomem" / "ontology"
    folder.mkdir()
    (folder / "shop.ttl").write_text(TERMS)
    return tmp_path / ".jidomem"


def shown(item):
    return json.loads(run("show", item, "--json").stdout)


def own(item):
    memory = shown(item)
    return {name: memory["properties"][name] for name in ("severity", "pages") if name in memory["properties"]}


@pytest.mark.parametrize("name", ["Runbook", "runbook", "shop:Runbook", SHOP + "Runbook"])
def test_a_memory_of_an_own_kind_is_recorded_by_its_name(root, name):
    item = run("remember", "restart the queue", "--type", name, "--set", "shop:severity=high").stdout.strip()

    memory = shown(item)
    assert (memory["type"], memory["own_classes"], own(item)) == ("fact", [SHOP + "Runbook"], {"severity": ["high"]})
    (row,) = json.loads(run("ask", "timeline", "--json").stdout)["rows"]
    assert row["kind"] == SHOP + "Runbook"
    assert "Runbook (Fact)" in run("show", item).stdout
    assert "Runbook (Fact)" in run("show", item, "--why").stdout
    assert json.loads(run("check", "--json").stdout)["problems"] == []


def test_an_edit_of_an_own_property_keeps_the_kind_and_the_other_properties(root):
    item = run(
        "remember", "restart", "--type", "Runbook", "--set", "shop:severity=high", "--set", "shop:pages=2"
    ).stdout

    item = run("edit", item.strip(), "--set", "shop:severity=low").stdout.strip()
    assert own(item) == {"severity": ["low"], "pages": [2]}
    item = run("edit", item, "--set", "shop:pages=").stdout.strip()
    assert own(item) == {"severity": ["low"]}
    item = run("edit", item, "--set", 'extra_triples=[["shop:pages", 7]]').stdout.strip()
    assert own(item) == {"pages": [7]}
    assert shown(item)["own_classes"] == [SHOP + "Runbook"]


def test_an_intent_has_own_properties_beside_its_fields(root):
    with jidomem.open(root) as memory:
        item = memory.remember("restart", type="Runbook", **{"shop:severity": ["a", "b"], SHOP + "pages": 3}).iri
        with pytest.raises(IntentRefused, match="did you mean"):
            memory.remember("restart again", type="Runbook", **{"shop:sverity": "a"})
        with pytest.raises(IntentRefused, match="'two' is not written as"):
            memory.remember("restart again", type="Runbook", **{"shop:pages": "two"})

    assert own(item) == {"severity": ["a", "b"], "pages": [3]}


def test_a_misspelt_own_kind_and_a_foreign_prefix_are_refused(root):
    with jidomem.open(root) as memory:
        with pytest.raises(IntentRefused, match="'Rnbook' is not a type of memory"):
            memory.remember("x", type="Rnbook")
        with pytest.raises(IntentRefused, match="acme:severity"):
            memory.remember("x", **{"acme:severity": "a"})


def test_a_rule_of_the_policy_on_an_own_kind_applies_to_its_memories_alone(root):
    run("access", "policy", "set", "propose", "--kind", "runbook")
    run("access", "policy", "set", "propose", "--kind", "Rnbook", code=2)

    assert run("remember", "one", "--type", "Runbook").stderr.startswith("proposed")
    assert run("remember", "two").stderr.startswith("asserted")
    assert run("access", "policy", "may", "ana", "Runbook").stdout == "propose\n"
    run("access", "policy", "set", "assert", "--kind", "fact")
    assert run("access", "policy", "may", "ana", "Runbook").stdout == "propose\n"
    run("access", "policy", "may", "ana", "Rnbook", code=2)
