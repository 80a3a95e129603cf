"""Check: the findings of a memory or a Turtle file, with line and rule."""

import os
from pathlib import Path

import pytest
from conftest import decision, intent

from jidomem.check.check import Options, check_files, check_project
from jidomem.check.rules import check_data
from jidomem.errors import InvalidRequest
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream
from jidomem.schema import ontology as schemas

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix ex: <https://example.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
GOOD = """
ex:p a jido:Project ; jido:projectName "p" .
ex:s a jido:WorkSession ; jido:hasStatus jido:Active ; jido:startedAt "2026-01-01T00:00:00Z"^^xsd:dateTime .
ex:ana a jido:Agent ; jido:hasRole jido:Architect ; jido:hasCapability jido:CanPlan .
ex:fact a jido:Fact ; jido:summary "a" ; jido:appliesToProject ex:p ; jido:assertedBy ex:ana ;
    jido:assertedIn ex:s ; jido:hasConfidence jido:High ;
    jido:hasTimestamp "2026-01-01T00:00:00Z"^^xsd:dateTime .
"""


def checked(text, schema):
    return check_files([("memory.ttl", (PREFIXES + text).encode())], schema)


def test_a_memory_accepted_by_the_writer_has_no_findings(memory):
    # C108
    memory.writer.submit_intent("p", decision(topic="store", alternatives=["Jena"], evidence=["a test"]))
    memory.writer.submit_intent("p", intent(type="task", summary="do it", assigned_to="bob"))

    report = check_project(memory.follower, memory.schema, "p")

    assert (report.exit_code, report.problems, report.unchecked) == (0, [], [])
    assert report.judged == 3  # the decision, its alternative, the task


def test_a_conforming_file_has_no_findings_and_its_memories_are_counted(memory):
    report = checked(GOOD, memory.schema)

    assert (report.exit_code, report.problems, report.judged) == (0, [], 1)


def test_a_violation_names_item_rule_message_file_and_line(memory):
    # C108 C113
    report = checked(GOOD.replace('jido:summary "a" ;', ""), memory.schema)

    (problem,) = report.problems
    assert report.exit_code == 1
    assert problem.item == "https://example.org/fact"
    assert problem.rule.startswith("https://jido.ai/shapes#")
    assert "summary" in problem.message
    assert (problem.path, problem.line) == ("memory.ttl", 9)


@pytest.mark.parametrize("kind", ["Decision", "ArchitecturalDecision", "ImplementationDecision"])
def test_a_file_typed_only_with_subclasses_is_judged_by_the_rules_of_their_superclass(memory, kind):
    # C108
    report = checked(GOOD.replace("a jido:Fact", f"a jido:{kind}"), memory.schema)

    assert [problem.severity for problem in report.problems] == ["violation"]
    assert "rationale" in report.problems[0].message


def test_a_file_without_memories_is_unchecked(memory):
    report = checked("ex:a ex:b ex:c .", memory.schema)

    assert report.exit_code == 3
    assert "no memory in it" in report.unchecked[0]


def test_a_memory_of_an_undeclared_class_is_a_finding(memory):
    report = checked(GOOD.replace("a jido:Fact", "a jido:Fakt"), memory.schema)

    assert report.exit_code != 0
    assert [problem.item for problem in report.problems] == ["https://example.org/fact"]


def test_a_reference_to_an_undescribed_memory_is_a_finding_with_its_line(memory):
    report = checked(GOOD.replace("jido:hasConfidence", "jido:derivedFrom <https://jido.ai/memory/gone> ;"
                                  " jido:hasConfidence"), memory.schema)  # fmt: skip

    dangling = [problem for problem in report.problems if problem.rule.endswith("EveryReferenceExists")]
    assert [(problem.item, problem.line) for problem in dangling] == [("https://example.org/fact", 10)]
    assert "https://jido.ai/memory/gone" in dangling[0].message
    assert report.exit_code == 1


def test_a_cycle_of_supersessions_is_a_finding_until_one_memory_is_revived(memory):
    other = GOOD[GOOD.index("ex:fact") :].replace("ex:fact", "ex:later").replace('"a"', '"b"')
    cycle = GOOD + other + "ex:fact jido:supersededBy ex:later . ex:later jido:supersededBy ex:fact ."

    (problem,) = checked(cycle, memory.schema).problems
    newer = GOOD[GOOD.index("ex:fact") :].replace("ex:fact", "ex:anew").replace('"a"', '"c"')
    revived = checked(cycle + newer + "ex:anew jido:revives ex:fact .", memory.schema)

    assert (problem.item, problem.rule) == ("https://example.org/fact", "https://jido.ai/shapes#SupersessionHasNoCycle")
    assert "https://example.org/later" in problem.message
    assert revived.exit_code == 0


@pytest.mark.parametrize(
    ("first", "revived", "code"),
    [
        ("2026-11-21T08:00:00Z", "2026-11-21T08:00:00.500000Z", 0),
        ("2026-11-21T08:00:00.500000Z", "2026-11-21T08:00:00Z", 1),
        ("2026-11-21T09:00:00+02:00", "2026-11-21T08:00:00Z", 0),
        ("2026-11-21T08:00:00Z", "2026-11-21T09:00:00+02:00", 1),
    ],
)
def test_a_cycle_of_supersessions_ends_with_a_later_revival_in_any_spelling_of_times(memory, first, revived, code):
    fact = GOOD[GOOD.index("ex:fact") :]
    cycle = GOOD + fact.replace("ex:fact", "ex:later").replace('"a"', '"b"')
    cycle += "ex:fact jido:supersededBy ex:later . ex:later jido:supersededBy ex:fact ."
    cycle += fact.replace("ex:fact", "ex:anew").replace('"a"', '"c"') + "ex:anew jido:revives ex:fact ."
    for name, moment in (("fact", first), ("later", first), ("anew", revived)):
        cycle += f'ex:{name} jido:recordedAt "{moment}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'

    assert checked(cycle, memory.schema).exit_code == code


def test_a_file_that_does_not_parse_is_a_finding_with_its_line(memory):
    report = checked(GOOD + "ex:broken a", memory.schema)

    (problem,) = report.problems
    assert problem.rule.endswith("TurtleParses")
    assert "memory.ttl:12" in problem.message
    assert report.exit_code == 1


def test_a_damaged_journal_is_a_finding_with_file_and_line(memory):
    receipt = memory.writer.submit_intent("p", intent())
    (path,) = memory.journal.path(Stream("p")).glob("*.ttl")
    path.write_bytes(path.read_bytes().replace(b"Rust 1.80", b"Rust 1.81"))

    import jidomem

    with jidomem.open(memory.settings.root) as reopened:
        report = check_project(reopened.follower, reopened.schema, "p")

    assert report.exit_code == 1
    assert report.problems[0].rule.endswith("JournalIsIntact")
    assert report.problems[0].path == str(path)
    assert receipt.commit


def test_any_turtle_is_validated_against_any_shapes():
    shapes = PREFIXES + 'ex:NameShape a sh:NodeShape ; sh:targetClass ex:Person ; sh:property [ sh:path ex:name ; ' \
        'sh:minCount 1 ; sh:message "A person has a name." ] .'  # fmt: skip
    data = PREFIXES + "ex:ana a ex:Person .\nex:bob a ex:Person ; ex:name 'Bob' ."

    report = check_data(("data.ttl", data.encode()), ("shapes.ttl", shapes.encode()))

    assert [(p.item, p.message, p.line) for p in report.problems] == [
        ("https://example.org/ana", "A person has a name.", 5)
    ]


def test_invalid_turtle_data_is_a_finding():
    report = check_data(("data.ttl", b"nonsense"), ("shapes.ttl", PREFIXES.encode()))

    assert report.exit_code == 1
    assert [(p.item, p.rule.rsplit("#", 1)[1]) for p in report.problems] == [("data.ttl", "TurtleParses")]


def test_shapes_with_a_sparql_service_are_refused():
    shapes = PREFIXES + 'ex:S a sh:NodeShape ; sh:targetClass ex:Person ; sh:sparql [ sh:select ' \
        '"SELECT $this { SERVICE <http://127.0.0.1:9/> { $this ?p ?o } }" ] .'  # fmt: skip

    with pytest.raises(Exception, match="SERVICE") as refusal:
        check_data(("data.ttl", b""), ("shapes.ttl", shapes.encode()))

    assert refusal.value.code == "federation_refused"


def test_shapes_of_invalid_turtle_are_refused_with_file_and_line():
    with pytest.raises(InvalidRequest, match=r"shapes\.ttl:1: "):
        check_data(("data.ttl", b""), ("shapes.ttl", b"nonsense"))


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_a_device_pipe_or_folder_among_the_journal_files_is_a_finding(memory, kind):
    memory.writer.submit_intent("p", intent())
    path = Path(memory.journal.path(Stream("p"))) / "20261122T000000.000000Z-cccccccccccc.ttl"
    {"device": lambda: path.symlink_to("/dev/zero"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()

    report = check_project(memory.follower, memory.schema, "p")

    (problem,) = report.problems
    assert (problem.path, report.exit_code) == (str(path), 1)
    assert "cannot be read" in problem.message


def test_a_finding_of_rewritten_line_ends_names_the_git_command_that_restores_the_file(memory):
    memory.writer.submit_intent("p", intent())
    (path,) = Path(memory.journal.path(Stream("p"))).glob("*.ttl")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    (problem,) = check_project(memory.follower, memory.schema, "p").problems

    assert problem.message.startswith("its line ends were rewritten")
    assert "git checkout -- ." in problem.message


def test_the_message_of_a_finding_ends_with_its_repair():
    text = """@prefix jido: <https://jido.ai/ontology#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<https://jido.ai/memory/a> a jido:Fact ; jido:derivedFrom <https://jido.ai/evidence/gone> ; jido:xyzzyPlugh 1 ;
  jido:hasTimestamp "yesterday"^^xsd:dateTime ."""

    report = check_files([("a.ttl", text.encode())], schemas.load())

    messages = {problem.name: problem.message for problem in report.problems}
    assert messages["EveryReferenceExists"].endswith("import its description")
    assert "jidomem ontology propose 'xyzzyPlugh' --kind property --definition TEXT" in messages["TermIsDeclared"]
    assert messages["LiteralIsWellFormed"].endswith("as in 2026-01-31T08:00:00Z")


def test_an_assignee_is_advised_for_open_tasks_alone(memory):
    submit = memory.writer.submit_intent
    rejected = submit("p", intent(type="task", summary="one")).iri
    memory.writer.invalidate("p", rejected, reason="no")
    submit("p", intent(type="task", summary="two", status="Completed"))
    open_ = submit("p", intent(type="task", summary="three")).iri

    advised = [
        each.item
        for each in check_project(memory.follower, memory.schema, "p").problems
        if each.name == "TaskHasAnAssignee"
    ]

    assert advised == [open_]


VOCABULARY = """@prefix m: <https://m.example/#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix jido: <https://jido.ai/ontology#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
m:Rule a owl:Class ; rdfs:subClassOf jido:Fact . m:Hall a owl:Class . m:Yard a owl:Class ; owl:disjointWith m:Hall .
m:hall a owl:ObjectProperty ; rdfs:domain m:Rule ; rdfs:range m:Hall . m:y a m:Yard , m:Hall . m:z a m:Yard .
m:one a owl:DatatypeProperty , owl:FunctionalProperty ; rdfs:range xsd:integer .
"""


def test_a_vocabulary_in_memory_judges_no_accepted_memory(memory):
    import_document(memory.writer, memory.schema, "p", "o.ttl", VOCABULARY.encode())
    values = [["hall", {"@id": "https://m.example/#z"}], ["one", "a"], ["one", "b"]]
    memory.writer.submit_intent("p", intent(extra_triples=[[f"https://m.example/#{name}", to] for name, to in values]))

    for reference in (False, True):
        report = check_project(memory.follower, memory.schema, "p", Options(reference=reference))
        assert [problem.rule for problem in report.problems if problem.severity == "violation"] == []


def test_a_contradiction_that_names_two_nodes_is_a_finding_about_one(memory):
    owl, other = "http://www.w3.org/2002/07/owl#", "https://m.example/#a"
    same = [[f"{owl}{name}", {"@id": other}] for name in ("sameAs", "differentFrom")]
    memory.writer.submit_intent("p", intent(extra_triples=[*same, [other, "rdfs:label", "a"]]))

    report = check_project(memory.follower, memory.schema, "p", Options(reference=True))

    assert any("differentFrom" in problem.message for problem in report.problems if problem.severity == "violation")
