"""Any Turtle by any shapes: what the W3C standard says, nothing added, fetched, or passed over in silence."""

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


def found(report):
    return [(problem.item, problem.rule.rsplit(":", 1)[1], problem.line) for problem in report.problems]


NAMED = "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property ex:HasName . ex:HasName sh:path ex:name ; "


def test_a_missing_value_stands_in_the_line_of_its_node_and_a_wrong_one_in_its_own():
    data = 'ex:a a ex:P .\nex:b a ex:P ;\n  ex:name "B" ,\n    "b2" .\n'

    report = checked(data, NAMED + 'sh:minCount 1 ; sh:pattern "^[A-Z]" .')

    assert found(report) == [("urn:x:a", "HasName", 2), ("urn:x:b", "HasName", 5)]
    assert report.exit_code == 1


def test_results_that_share_a_message_and_a_line_are_reported_one_by_one():
    data = 'ex:a a ex:P ; ex:name "b", "c", "d" .\n'
    shapes = NAMED + 'sh:pattern "^[A-Z]" ; sh:maxLength 0 ; sh:message "no name" .'

    report = checked(data, shapes)

    assert {(each.message, each.line) for each in report.problems} == {("no name", 2)}
    assert [each.value for each in report.problems] == ['"b"', '"b"', '"c"', '"c"', '"d"', '"d"']
    assert {each.to_dict()["property"] for each in report.problems} == {"<urn:x:name>"}
    (run,) = sarif(report, "0")["runs"]
    prints = [result["partialFingerprints"]["jidomem/v1"] for result in run["results"]]
    assert (len(prints), len(set(prints))) == (6, 3)


def test_blank_nodes_stay_blank_nodes():
    data = "ex:a a ex:P ; ex:name\n  [ ex:part ex:c ] .\n[] a ex:P ; ex:name ex:n .\n"

    report = checked(data, NAMED + "sh:nodeKind sh:IRI .")

    assert [line for _, _, line in found(report)] == [3]
    assert checked(data, "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:nodeKind sh:BlankNode .").problems[0].line == 2


def test_the_class_tree_of_the_data_counts_and_no_other():
    shapes = NAMED + "sh:minCount 1 ."

    assert found(checked("ex:Q rdfs:subClassOf ex:P .\nex:a a ex:Q .\n", shapes)) == [("urn:x:a", "HasName", 3)]
    assert checked("ex:a a ex:Q .\n", shapes + " ex:Q rdfs:subClassOf ex:P .").exit_code == 3


def test_a_severity_below_violation_is_reported_and_does_not_fail():
    report = checked("ex:a a ex:P .\n", NAMED + "sh:minCount 1 ; sh:severity sh:Warning .")

    assert [problem.severity for problem in report.problems] == ["warning"]
    assert report.exit_code == 0


def test_shapes_that_aim_at_nothing_in_the_data_do_not_let_it_pass():
    report = checked("ex:a a ex:Other .\n", NAMED + "sh:minCount 1 .")

    assert report.exit_code == 3
    assert report.idle == ["urn:x:S"]
    assert report.untargeted == {"urn:x:Other": 1}
    assert "no shape of s.ttl matches a node in it" in report.unchecked[0]


def test_what_shapes_pass_over_is_counted_beside_what_they_judge():
    report = checked('ex:a a ex:P ; ex:name "A" .\nex:b a ex:Other .\nex:c ex:p 1 .\n', NAMED + "sh:minCount 1 .")

    assert (report.exit_code, report.judged) == (0, 1)
    assert report.untargeted == {"of no class": 1, "urn:x:Other": 1}


def test_an_import_is_not_followed_and_so_something_went_unchecked():
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
def test_a_rule_that_would_call_out_is_refused_however_it_is_spelt(query):
    shapes = f'ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:sparql [ sh:select "{query}" ] .'

    with pytest.raises(PolicyDenied, match=r"s\.ttl: .*SERVICE"):
        checked("ex:a a ex:P .\n", shapes)


def test_a_rule_that_would_read_a_graph_from_elsewhere_is_refused():
    query = "SELECT $this FROM <http://127.0.0.1:9/g> { $this ?p ?o }"
    shapes = f'ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:sparql [ sh:select "{query}" ] .'

    with pytest.raises(Exception, match=r"names the graph <http://127\.0\.0\.1:9/g>"):
        checked("ex:a a ex:P .\n", shapes)


def test_shapes_that_are_ill_formed_or_ask_for_an_entailment_cannot_be_used():
    with pytest.raises(Failed, match="the shapes cannot be used"):
        checked("ex:a a ex:P .\n", NAMED + "sh:minCount ex:many .")
    with pytest.raises(Failed, match="asks for the entailment"):
        checked(
            "ex:a a ex:P .\n", NAMED + "sh:minCount 1 . ex:g sh:entailment <http://www.w3.org/ns/entailment/RDFS> ."
        )


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("sh:property [ sh:path ex:name ; sh:minCnt 1 ]", "sh:minCnt is not evaluated; did you mean sh:minCount?"),
        ("sh:js [ sh:jsFunctionName 'f' ]", "sh:js is not evaluated"),
        ("sh:rule [ a sh:TripleRule ; sh:subject sh:this ]", "sh:rule is not evaluated"),
        ("sh:expression [ sh:path ex:name ]", "sh:expression is not evaluated"),
        ("sh:target [ a sh:SPARQLTarget ; sh:select 'SELECT ?this { ?this ?p ?o }' ]", "sh:target is not evaluated"),
    ],
)
def test_what_shapes_ask_for_and_nobody_judges_is_unchecked(said, word):
    report = checked("ex:a a ex:P .\n", f"ex:S a sh:NodeShape ; sh:targetClass ex:P ; {said} .")

    assert any(word in reason for reason in report.unchecked)
    assert report.exit_code == 3


def test_shapes_that_pyshacl_breaks_down_on_are_named_and_not_called_a_bug():
    with pytest.raises(Failed, match=r"s\.ttl: pyshacl cannot judge by these shapes: error: missing \)"):
        checked('ex:a a ex:P ; ex:name "A" .\n', NAMED + 'sh:pattern "(" .')


def test_a_class_that_asks_for_something_is_a_shape_that_targets_itself():
    report = checked(
        'ex:a a ex:P ; ex:name "A" .\n', "ex:P a rdfs:Class ; sh:property [ sh:path ex:name ; sh:minCount 1 ] ."
    )

    assert (report.exit_code, report.judged) == (0, 1)


def test_a_shape_that_is_deactivated_is_told_and_finds_nothing():
    report = checked("ex:a a ex:P .\n", NAMED + "sh:minCount 1 . ex:S sh:deactivated true .")

    assert (report.exit_code, report.problems) == (0, [])
    assert report.notes == ["deactivated shapes judge nothing: urn:x:S"]
