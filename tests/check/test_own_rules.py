"""The shapes and gates of a root: which memories they judge, and how faults in them are told."""

import json

import pytest
from click.testing import CliRunner

from jidomem_cli.main import cli

PREFIXES = """@prefix acme: <https://acme.example/ns#> .
@prefix jido: <https://jido.ai/ontology#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
TOPIC = """acme:FactHasTopic a sh:NodeShape ; %ssh:targetClass jido:Fact ;
  sh:property [ sh:path jido:topic ; sh:minCount 1 ; sh:message "give a topic" ] .
"""
GATE = """#+ summary: Facts have a topic.
#+ params:
#+ columns: item
#+ order: item
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item WHERE { ?item a jido:Fact MINUS { ?item jido:topic ?topic } } ORDER BY ?item
"""


def run(*words, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stdout


def rules(*words, code=0):
    return [
        each["rule"].rpartition("#")[2] for each in json.loads(run("check", "--json", *words, code=code))["problems"]
    ]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A root with the fact `old`, in the working directory."""
    monkeypatch.chdir(tmp_path)
    run("init", "-q")
    run("remember", "old")
    return tmp_path / ".jidomem"


def lay(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(PREFIXES + text if path.endswith(".ttl") else text)


def latest():
    return json.loads(run("ask", "timeline", "--json"))["rows"][0]["item"]


def ends_it(root):
    run("edit", latest(), "--confirm", "--set", "topic=x")


def withdraws_it(root):
    run("edit", latest(), "--invalidate", "--reason", "wrong")


@pytest.mark.parametrize("end", [ends_it, withdraws_it])
def test_own_shapes_and_gates_judge_active_memories_alone(root, end):
    lay(root, "shapes/own.ttl", TOPIC % "")
    lay(root, "queries/gates/topic.rq", GATE)
    assert sorted(rules(code=1)) == ["FactHasTopic", "topic"]

    end(root)

    assert rules() == []
    (root.parent / "all.ttl").write_text(run("root", "export"))
    assert rules("all.ttl") == []


def test_own_shapes_and_gates_judge_every_memory_if_they_say_so(root):
    lay(root, "shapes/own.ttl", TOPIC % "jido:judgesInactive true ; ")
    lay(root, "queries/gates/topic.rq", GATE.replace("#+ order", "#+ inactive: true\n#+ order"))

    ends_it(root)

    assert sorted(rules(code=1)) == sorted(rules("--reference", code=1)) == ["FactHasTopic", "topic"]
    assert json.loads(run("ontology", "check", "--json"))["problems"] == []


def test_a_fault_in_an_own_shape_leaves_the_check_incomplete(root):
    lay(root, "shapes/own.ttl", (TOPIC % "").replace("minCount", "mincount"))

    report = json.loads(run("check", "--json", code=3))

    assert [(each["path"], each["line"]) for each in report["problems"]] == [(".jidomem/shapes/own.ttl", 7)]
    assert report["unchecked"] == ["shapes/own.ttl: a faulty rule may judge nothing: correct it first"]
    assert "did you mean sh:minCount?" in run("check", "--format", "github", code=3)


@pytest.mark.parametrize("path", ["shapes/own.shacl", "ontology/terms/own.ttl", "queries/topic.rq"])
def test_a_file_of_rules_that_is_not_read_leaves_the_check_incomplete(root, path):
    lay(root, path, TOPIC % "")
    lay(root, "shapes/README.md", "what these shapes are for")

    report = json.loads(run("check", "--json", code=3))

    assert [each.partition(":")[0] for each in report["unchecked"]] == [path]
    assert [each["path"] for each in report["problems"]] == [f".jidomem/{path}"]


def counting(name, cls, counts, path="topic"):
    return (
        f"acme:{name} a sh:NodeShape ; sh:targetClass jido:{cls} ;"
        f' sh:property [ sh:path jido:{path} ; {counts} ; sh:message "m" ] .'
    )


AT_ODDS = {
    "no Fact can have 2 or more values of jido:topic": counting("S", "Fact", "sh:minCount 2 ; sh:maxCount 1"),
    "no ImplementationDecision can have 1 or more values of jido:topic": counting("S", "Decision", "sh:maxCount 0")
    + counting("T", "ImplementationDecision", "sh:minCount 1"),
    "sh:maxCount in shape:ItemHasOneSummary": counting("S", "Task", "sh:minCount 2", "summary"),
}


@pytest.mark.parametrize("said", AT_ODDS, ids=["one shape", "the shape of a parent", "a shipped shape"])
def test_a_shape_that_no_memory_can_satisfy_is_a_warning(root, said):
    lay(root, "shapes/own.ttl", AT_ODDS[said] + "\n")

    (problem,) = json.loads(run("ontology", "check", "--json"))["problems"]

    assert problem["rule"].endswith("ShapeCanBeSatisfied")
    assert (problem["severity"], problem["line"]) == ("warning", 6)
    assert said in problem["message"]


def test_a_refusal_by_an_own_shape_has_the_words_of_the_node_shape_and_names_the_file(root):
    lay(
        root, "shapes/own.ttl", TOPIC.replace(' ; sh:message "give a topic"', "") % 'sh:message "a fact has a topic" ; '
    )

    refused = CliRunner().invoke(cli, ["remember", "new"])

    assert "a fact has a topic (shape FactHasTopic, shapes/own.ttl of the root)" in refused.stderr
    assert "a fact has a topic" in run("check", code=1)
    assert json.loads(run("ontology", "check", "--json"))["problems"] == []


def test_a_property_of_numbers_beside_one_of_texts_is_consistent(root):
    kinds = {"boolean", "date", "dateTime", "decimal", "double", "integer", "string", "anyURI", "gYear"}
    lay(root, "ontology/own.ttl", "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n" + "".join(
        f'acme:{kind} a owl:DatatypeProperty ; rdfs:domain jido:Fact ; rdfs:range xsd:{kind} ; rdfs:label "x" ;'
        f' rdfs:comment "y" .\n' for kind in kinds
    ))  # fmt: skip

    assert json.loads(run("ontology", "check", "--json"))["problems"] == []
    assert rules() == []
