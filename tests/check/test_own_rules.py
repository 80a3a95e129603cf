"""The shapes and gates of a root: the memories they judge, and the report of their faults."""

import json
import subprocess

import pytest
from click.testing import CliRunner

import jidomem
from jidomem import IntentRefused
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


def run(*args, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in args])
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stdout


def rules(*args, code=0):
    return [
        each["rule"].rpartition("#")[2] for each in json.loads(run("check", "--json", *args, code=code))["problems"]
    ]


def build(folder):
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run("init", "-q")
        run("remember", "old")


@pytest.fixture
def root(tmp_path, monkeypatch, copy_built):
    """A root with the fact `old`, in the working directory."""
    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path / ".jidomem"


def write_file(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(PREFIXES + text if path.endswith(".ttl") else text)


def latest():
    return json.loads(run("ask", "timeline", "--json"))["rows"][0]["item"]


def confirm_with_topic(root):
    run("edit", latest(), "--confirm", "--set", "topic=x")


def withdraw(root):
    run("edit", latest(), "--invalidate", "--reason", "wrong")


@pytest.mark.parametrize("end", [confirm_with_topic, withdraw])
def test_own_shapes_and_gates_judge_active_memories_by_default(root, end):
    write_file(root, "shapes/own.ttl", TOPIC % "")
    write_file(root, "queries/gates/topic.rq", GATE)
    assert sorted(rules(code=1)) == ["FactHasTopic", "topic"]

    end(root)

    assert rules() == []
    (root.parent / "all.ttl").write_text(run("root", "export"))
    assert rules("all.ttl") == []


def test_own_shapes_and_gates_judge_inactive_memories_if_declared(root):
    write_file(root, "shapes/own.ttl", TOPIC % "jido:judgesInactive true ; ")
    write_file(root, "queries/gates/topic.rq", GATE.replace("#+ order", "#+ inactive: true\n#+ order"))

    confirm_with_topic(root)

    assert sorted(rules(code=1)) == sorted(rules("--reference", code=1)) == ["FactHasTopic", "topic"]
    assert json.loads(run("ontology", "check", "--json"))["problems"] == []


def test_a_fault_in_an_own_shape_leaves_the_check_incomplete(root):
    write_file(root, "shapes/own.ttl", (TOPIC % "").replace("minCount", "mincount"))

    report = json.loads(run("check", "--json", code=3))

    assert [(each["path"], each["line"]) for each in report["problems"]] == [(".jidomem/shapes/own.ttl", 7)]
    assert report["unchecked"] == ["shapes/own.ttl: a faulty rule may judge nothing: correct it first"]
    assert "did you mean sh:minCount?" in run("check", "--format", "github", code=3)


@pytest.mark.parametrize("path", ["shapes/own.shacl", "ontology/terms/own.ttl", "queries/topic.rq"])
def test_an_unread_file_of_rules_leaves_the_check_incomplete(root, path):
    write_file(root, path, TOPIC % "")
    write_file(root, "shapes/README.md", "what these shapes are for")

    report = json.loads(run("check", "--json", code=3))

    assert [each.partition(":")[0] for each in report["unchecked"]] == [path]
    assert [each["path"] for each in report["problems"]] == [f".jidomem/{path}"]


def count_shape(name, cls, counts, path="topic"):
    return (
        f"acme:{name} a sh:NodeShape ; sh:targetClass jido:{cls} ;"
        f' sh:property [ sh:path jido:{path} ; {counts} ; sh:message "m" ] .'
    )


UNSATISFIABLE = {
    "no Fact can have 2 or more values of jido:topic": count_shape("S", "Fact", "sh:minCount 2 ; sh:maxCount 1"),
    "no ImplementationDecision can have 1 or more values of jido:topic": count_shape("S", "Decision", "sh:maxCount 0")
    + count_shape("T", "ImplementationDecision", "sh:minCount 1"),
    "sh:maxCount in shape:ItemHasOneSummary": count_shape("S", "Task", "sh:minCount 2", "summary"),
}


@pytest.mark.parametrize("message", UNSATISFIABLE, ids=["one shape", "the shape of a parent", "a shipped shape"])
def test_a_shape_that_no_memory_can_satisfy_is_a_warning(root, message):
    write_file(root, "shapes/own.ttl", UNSATISFIABLE[message] + "\n")

    (problem,) = json.loads(run("ontology", "check", "--json"))["problems"]

    assert problem["rule"].endswith("ShapeCanBeSatisfied")
    assert (problem["severity"], problem["line"]) == ("warning", 6)
    assert message in problem["message"]


def test_a_refusal_by_an_own_shape_has_its_message_and_names_its_file(root):
    write_file(
        root, "shapes/own.ttl", TOPIC.replace(' ; sh:message "give a topic"', "") % 'sh:message "a fact has a topic" ; '
    )

    result = CliRunner().invoke(cli, ["remember", "new"])

    assert "a fact has a topic (shape FactHasTopic, shapes/own.ttl of the root)" in result.stderr
    assert "a fact has a topic" in run("check", code=1)
    assert json.loads(run("ontology", "check", "--json"))["problems"] == []


OWN = """acme:Control a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label "control" .
acme:Level a owl:Class ; rdfs:label "level" . acme:High a acme:Level, owl:NamedIndividual ; rdfs:label "high" ;
  acme:above acme:Low . acme:Low a acme:Level, owl:NamedIndividual .
acme:above a owl:ObjectProperty ; rdfs:range acme:Level .
acme:level a owl:ObjectProperty ; rdfs:range acme:Level . acme:team a owl:DatatypeProperty .
acme:needs a owl:ObjectProperty ; rdfs:range acme:Control .
"""
PATH = """acme:Along a sh:NodeShape ; sh:targetClass acme:Control ;
  sh:property [ sh:path %s ; %s ; sh:message "along the path" ] .
"""


@pytest.mark.parametrize(
    ("path", "rule", "good", "bad"),
    [
        ("( acme:level rdfs:label )", "sh:minCount 1", "acme:level=acme:High", "acme:level=acme:Low"),
        ("( acme:level rdfs:label )", "sh:maxCount 0", "acme:level=acme:Low", "acme:level=acme:High"),
        ("( acme:level acme:above )", "sh:hasValue acme:Low", "acme:level=acme:High", "acme:level=acme:Low"),
        ("( acme:level acme:above rdfs:label )", "sh:maxCount 0", "acme:level=acme:High", None),
        ("( rdf:type rdfs:label )", 'sh:hasValue "control"', "acme:team=x", None),
        ("( acme:needs acme:team )", 'sh:hasValue "a"', "acme:needs=A", "acme:needs=B"),
        ("( acme:needs acme:needs acme:team )", 'sh:hasValue "a"', "acme:needs=C", "acme:needs=B"),
        ("( acme:needs acme:needs )", "sh:class acme:Control ; sh:minCount 1", "acme:needs=C", "acme:needs=B"),
    ],
)
def test_a_path_of_an_own_shape_leads_into_the_ontology_and_other_memories(root, path, rule, good, bad):
    write_file(root, "ontology/own.ttl", OWN)
    items = {"A": run("-q", "remember", "A", "--type", "Control", "--set", "acme:team=a").strip()}
    items["B"] = run("-q", "remember", "B", "--type", "Control", "--set", "acme:team=b").strip()
    items["C"] = run("-q", "remember", "C", "--type", "Control", "--set", f"acme:needs={items['A']}").strip()
    prefix = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
    write_file(root, "shapes/own.ttl", prefix + PATH % (path, rule))

    def record(setting, code=0):
        name, value = setting.split("=")
        run("remember", setting, "--type", "Control", "--set", f"{name}={items.get(value, value)}", code=code)

    record(good)
    if bad is not None:
        record(bad, code=3)
    for item in items.values():
        run("edit", item, "--invalidate", "--reason", "r")
    assert rules() == rules("--reference") == []


def test_own_terms_are_judged_in_memories_that_have_not_ended(root):
    write_file(root, "ontology/own.ttl", OWN + "acme:team rdfs:domain acme:Control .")
    settings = ("--set", "acme:team=a", "--set", "acme:level=acme:High")
    item = run("-q", "remember", "A", "--type", "Control", *settings).strip()
    renamed = OWN.replace("acme:Control", "acme:Guard").replace("acme:High", "acme:Top")
    write_file(root, "ontology/own.ttl", renamed + "acme:team rdfs:domain acme:Guard .")

    assert {*rules(code=1)} == {"TermIsDeclared", "property-is-said-of-its-domain"}
    run("edit", item, "--set", "type=Guard", "--set", "acme:level=acme:Top")
    assert rules() == rules("--reference") == []

    write_file(root, "ontology/old.ttl", "acme:Guard owl:deprecated true .")
    assert rules() == ["TermIsNotDeprecated"]


def test_a_text_stored_before_its_property_pointed_at_things_is_a_warning(root):
    write_file(root, "ontology/own.ttl", "acme:within a owl:DatatypeProperty .")
    item = run("-q", "remember", "A", "--set", "acme:within=the cellar").strip()
    write_file(root, "ontology/own.ttl", "acme:within a owl:ObjectProperty .")

    (problem,) = json.loads(run("check", "--json"))["problems"]
    assert (problem["severity"], problem["item"]) == ("warning", item)
    assert "within points at an IRI, and the cellar is a text" in problem["message"]
    run("edit", item, "--set", "acme:within=https://acme.example/cellar")
    assert rules() == []


PLACES = """acme:Control a owl:Class ; rdfs:subClassOf jido:Fact . acme:Tool a owl:Class ; rdfs:subClassOf jido:Fact .
acme:Rule a owl:Class ; rdfs:subClassOf jido:Fact . acme:Norm a owl:Class ; rdfs:subClassOf acme:Rule .
acme:within a owl:ObjectProperty . acme:partOf a owl:ObjectProperty ; rdfs:subPropertyOf acme:within .
acme:feeds a owl:ObjectProperty . acme:leads a owl:ObjectProperty . acme:Place a owl:Class .
acme:uses a owl:ObjectProperty . acme:usedBy a owl:ObjectProperty . acme:owns a owl:ObjectProperty .
acme:owner a owl:ObjectProperty . acme:part a owl:ObjectProperty .
"""
AXIOMS = """acme:Tool owl:disjointWith acme:Control , acme:Place .
[] a owl:AllDisjointClasses ; owl:members ( acme:Control acme:Rule ) .
acme:usedBy owl:inverseOf acme:uses ; rdfs:domain acme:Tool .
acme:owner owl:inverseOf acme:owns ; rdfs:range acme:Tool .
acme:Control rdfs:subClassOf [ a owl:Restriction ; owl:onProperty acme:part ; owl:allValuesFrom acme:Tool ] .
acme:within a owl:IrreflexiveProperty ; owl:propertyDisjointWith acme:feeds . acme:leads a owl:AsymmetricProperty .
"""
CONTRADICTIONS = [
    "rdf:type acme:Tool",
    "rdf:type acme:Norm",
    "acme:partOf ITEM",
    "acme:partOf urn:x; acme:feeds urn:x",
    "acme:leads urn:x; urn:x rdf:type acme:Place; urn:x acme:leads ITEM",
    "acme:uses urn:y; urn:y rdf:type acme:Place",
    "acme:owns urn:x",
    "acme:part urn:z; urn:z rdf:type acme:Place",
]


def test_a_contradiction_of_own_terms_is_refused_and_ends_with_its_memory(root):
    def submit(number, name):
        rows = [row.replace("ITEM", name).split() for row in CONTRADICTIONS[number].split("; ")]
        triples = [[*names, {"@id": value}] for *names, value in rows]
        values = {"type": "Control", "summary": name, "asserted_by": "a", "asserted_in": "s", "confidence": "high"}
        memory.writer.submit_intent("p", {**values, "applies_to_project": "p", "iri": name, "extra_triples": triples})

    earlier = [f"urn:before:{number}" for number in range(len(CONTRADICTIONS))]
    with jidomem.open(root) as memory:
        write_file(root, "ontology/own.ttl", PLACES)
        for number, name in enumerate(earlier):
            submit(number, name)
        write_file(root, "ontology/own.ttl", PLACES + AXIOMS)
        for number in range(len(CONTRADICTIONS)):
            with pytest.raises(IntentRefused):
                submit(number, f"urn:after:{number}")
        assert len({each.item for each in memory.check("p").problems}) == len(CONTRADICTIONS)

        for name in earlier:
            memory.writer.invalidate("p", name, reason="wrong", asserted_by="a", asserted_in="s")
        assert memory.check("p").problems == []


def test_a_value_that_a_shape_does_not_list_has_the_nearest_one_and_the_repaired_intent(root):
    write_file(root, "ontology/own.ttl", OWN)
    write_file(root, "shapes/own.ttl", PATH % ("acme:team", 'sh:in ( "red" "blue" )'))
    words = ("remember", "A", "--type", "Control", "--set")

    refusal = json.loads(run(*words, "acme:team=bleu", "--json", code=3))
    (violation,) = refusal["violations"]
    assert (violation["allowed"], violation["nearest"]) == (["blue", "red"], "blue")
    assert refusal["fixed_intent"]["extra_triples"] == [["acme:team", "blue"]]
    (violation,) = json.loads(run(*words, "acme:team=none", "--json", code=3))["violations"]
    assert (violation["allowed"], violation["nearest"]) == (["blue", "red"], None)


def test_a_check_of_a_git_range_reports_the_older_memories_that_a_changed_rule_breaks(root):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)

    write_file(root, "ontology/own.ttl", OWN)
    shape = PATH % ("acme:team", "sh:maxLength 3")
    write_file(root, "shapes/own.ttl", shape)
    for team in ("red", "tan", "or"):
        run("remember", team, "--type", "Control", "--set", f"acme:team={team}")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "three")

    assert rules("--since", "HEAD") == []
    write_file(root, "shapes/own.ttl", shape.replace("3", "2").replace("along", "at the end of"))
    assert rules("--since", "HEAD", code=1) == ["Along", "Along"]
    git("commit", "-qam", "tighter")
    assert rules("--since", "HEAD~1", code=1) == ["Along", "Along"]
    assert rules("--since", "HEAD") == []


def test_a_property_of_numbers_beside_one_of_texts_is_consistent(root):
    kinds = {"boolean", "date", "dateTime", "decimal", "double", "integer", "string", "anyURI", "gYear"}
    write_file(root, "ontology/own.ttl", "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n" + "".join(
        f'acme:{kind} a owl:DatatypeProperty ; rdfs:domain jido:Fact ; rdfs:range xsd:{kind} ; rdfs:label "x" ;'
        f' rdfs:comment "y" .\n' for kind in kinds
    ))  # fmt: skip

    assert json.loads(run("ontology", "check", "--json"))["problems"] == []
    assert rules() == []
