"""Turtle validated against any shapes by the W3C standard: nothing is added, fetched or silently ignored."""

import re

import pytest

from jidomem.check.report import sarif
from jidomem.check.rules import check_data
from jidomem.errors import Failed, PolicyDenied

PREFIXES = (
    "@prefix ex: <urn:x:> . @prefix sh: <http://www.w3.org/ns/shacl#> . "
    "@prefix owl: <http://www.w3.org/2002/07/owl#> . "
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
)


def checked(data, shapes):
    return check_data(("d.ttl", (PREFIXES + data).encode()), ("s.ttl", (PREFIXES + shapes).encode()))


def results(report):
    return [(problem.item, problem.rule.rsplit(":", 1)[1], problem.line) for problem in report.problems]


NAMED = "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property ex:HasName . ex:HasName sh:path ex:name ; "


def test_a_missing_value_has_the_line_of_its_node_and_a_wrong_value_its_own():
    data = 'ex:a a ex:P .\nex:b a ex:P ;\n  ex:name "B" ,\n    "b2" .\n'

    report = checked(data, NAMED + 'sh:minCount 1 ; sh:pattern "^[A-Z]" .')

    assert results(report) == [("urn:x:a", "HasName", 2), ("urn:x:b", "HasName", 5)]
    assert report.exit_code == 1


def test_results_with_the_same_message_and_line_are_reported_separately():
    data = 'ex:a a ex:P ; ex:name "b", "c", "d" .\n'
    shapes = NAMED + 'sh:pattern "^[A-Z]" ; sh:maxLength 0 ; sh:message "no name" .'

    report = checked(data, shapes)

    assert {(each.message, each.line) for each in report.problems} == {("no name", 2)}
    assert [each.value for each in report.problems] == ['"b"', '"b"', '"c"', '"c"', '"d"', '"d"']
    assert {each.to_dict()["property"] for each in report.problems} == {"<urn:x:name>"}
    (run,) = sarif(report, "0")["runs"]
    prints = [result["partialFingerprints"]["jidomem/v1"] for result in run["results"]]
    assert (len(prints), len(set(prints))) == (6, 3)


def test_blank_nodes_are_judged_as_blank_nodes():
    data = "ex:a a ex:P ; ex:name\n  [ ex:part ex:c ] .\n[] a ex:P ; ex:name ex:n .\n"

    report = checked(data, NAMED + "sh:nodeKind sh:IRI .")

    assert [line for _, _, line in results(report)] == [3]
    assert checked(data, "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:nodeKind sh:BlankNode .").problems[0].line == 2


def test_the_class_tree_of_the_data_applies_and_that_of_the_shapes_does_not():
    shapes = NAMED + "sh:minCount 1 ."

    assert results(checked("ex:Q rdfs:subClassOf ex:P .\nex:a a ex:Q .\n", shapes)) == [("urn:x:a", "HasName", 3)]
    assert checked("ex:a a ex:Q .\n", shapes + " ex:Q rdfs:subClassOf ex:P .").exit_code == 3


def test_a_severity_below_violation_is_reported_and_does_not_fail():
    report = checked("ex:a a ex:P .\n", NAMED + "sh:minCount 1 ; sh:severity sh:Warning .")

    assert [problem.severity for problem in report.problems] == ["warning"]
    assert report.exit_code == 0


def test_shapes_without_a_target_in_the_data_leave_it_unchecked():
    report = checked("ex:a a ex:Other .\n", NAMED + "sh:minCount 1 .")

    assert report.exit_code == 3
    assert report.idle == ["urn:x:S"]
    assert report.untargeted == {"urn:x:Other": 1}
    assert "no shape of s.ttl matches a node in it" in report.unchecked[0]


def test_untargeted_and_judged_nodes_are_counted():
    report = checked('ex:a a ex:P ; ex:name "A" .\nex:b a ex:Other .\nex:c ex:p 1 .\n', NAMED + "sh:minCount 1 .")

    assert (report.exit_code, report.judged) == (0, 1)
    assert report.untargeted == {"of no class": 1, "urn:x:Other": 1}


def test_an_unfollowed_import_is_unchecked():
    report = checked(
        'ex:a a ex:P ; ex:name "A" .\n', NAMED + "sh:minCount 1 . ex:o owl:imports <http://127.0.0.1:9/s> ."
    )

    assert report.exit_code == 3
    assert "imports <http://127.0.0.1:9/s>" in report.unchecked[0]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT $this { SERVICE <http://127.0.0.1:9/> { $this ?p ?o } }",
        r"SELECT $this { \\u0053ERVICE <http://127.0.0.1:9/> { $this ?p ?o } }",
    ],
)
def test_a_shape_with_a_sparql_service_is_refused_in_any_spelling(query):
    shapes = f'ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:sparql [ sh:select "{query}" ] .'

    with pytest.raises(PolicyDenied, match=r"s\.ttl: .*SERVICE"):
        checked("ex:a a ex:P .\n", shapes)


def test_a_shape_that_reads_a_remote_graph_is_refused():
    query = "SELECT $this FROM <http://127.0.0.1:9/g> { $this ?p ?o }"
    shapes = f'ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:sparql [ sh:select "{query}" ] .'

    with pytest.raises(Exception, match=r"names the graph <http://127\.0\.0\.1:9/g>"):
        checked("ex:a a ex:P .\n", shapes)


def test_ill_formed_shapes_and_shapes_with_an_entailment_are_refused():
    with pytest.raises(Failed, match="the shapes cannot be used"):
        checked("ex:a a ex:P .\n", NAMED + "sh:minCount ex:many .")
    with pytest.raises(Failed, match="asks for the entailment"):
        checked(
            "ex:a a ex:P .\n", NAMED + "sh:minCount 1 . ex:g sh:entailment <http://www.w3.org/ns/entailment/RDFS> ."
        )


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ("sh:property [ sh:path ex:name ; sh:minCnt 1 ]", "sh:minCnt is not evaluated; did you mean sh:minCount?"),
        ("sh:js [ sh:jsFunctionName 'f' ]", "sh:js is not evaluated"),
        ("sh:rule [ a sh:TripleRule ; sh:subject sh:this ]", "sh:rule is not evaluated"),
        ("sh:expression [ sh:path ex:name ]", "sh:expression is not evaluated"),
        ("sh:target [ a sh:SPARQLTarget ; sh:select 'SELECT ?this { ?this ?p ?o }' ]", "sh:target is not evaluated"),
    ],
)
def test_an_unsupported_constraint_is_unchecked(constraint, message):
    report = checked("ex:a a ex:P .\n", f"ex:S a sh:NodeShape ; sh:targetClass ex:P ; {constraint} .")

    assert any(message in reason for reason in report.unchecked)
    assert report.exit_code == 3


def test_shapes_on_which_pyshacl_fails_are_refused_with_file_and_reason():
    fault = rf"s\.ttl: pyshacl cannot judge by these shapes: {re.error.__name__}: missing \)"
    with pytest.raises(Failed, match=fault):
        checked('ex:a a ex:P ; ex:name "A" .\n', NAMED + 'sh:pattern "(" .')


def test_a_class_with_a_constraint_is_a_shape_that_targets_itself():
    report = checked(
        'ex:a a ex:P ; ex:name "A" .\n', "ex:P a rdfs:Class ; sh:property [ sh:path ex:name ; sh:minCount 1 ] ."
    )

    assert (report.exit_code, report.judged) == (0, 1)


def test_a_deactivated_shape_is_noted_and_reports_no_finding():
    report = checked("ex:a a ex:P .\n", NAMED + "sh:minCount 1 . ex:S sh:deactivated true .")

    assert (report.exit_code, report.problems) == (0, [])
    assert report.notes == ["deactivated shapes judge nothing: urn:x:S"]
