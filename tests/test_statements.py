"""The tests name the statements that they prove, at most three each; none is left without a test."""

import re

import pytest
import statement_table
from statement_table import PAGES, SERIES, TESTS, every_statement, files_of_tests, named, proofs

MODULE = "tests.test_statements"


def test_every_statement_is_proved_by_a_test_that_names_it_and_no_test_names_another():
    assert proofs().keys() ^ every_statement().keys() == set()


@pytest.mark.parametrize("letter", SERIES)
def test_the_statements_of_a_series_are_numbered_without_a_gap(letter):
    numbers = [each.id for each in statement_table.statements(PAGES / SERIES[letter])]

    assert numbers == [f"{letter}{number:03}" for number in range(1, len(numbers) + 1)]
    assert f"({SERIES[letter]}): series `{letter}`, {len(numbers)} statements\n" in (PAGES / "README.md").read_text(
        "utf-8"
    )


def test_a_test_names_at_most_three_statements():
    every = (each for path in files_of_tests() for each in named(path))
    assert {str(test): found for test, found in every if len(found) > 3} == {}


def results(tmp_path, **cases):
    """What pytest writes of tests of this module, a name and what is within its element."""
    text = "".join(f'<testcase classname="{MODULE}" name="{name}">{of}</testcase>' for name, of in cases.items())
    path = tmp_path / "tests.xml"
    path.write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    return statement_table.outcomes(path)


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ({"test_a[1]": "", "test_a[2]": "", "test_b": ""}, "proved"),
        ({"test_a[1]": "", "test_a[2]": "<failure/>", "test_b": ""}, "failed"),
        ({"test_a": "", "test_b": "<error/>"}, "failed"),
        ({"test_a": "", "test_b": "<skipped/>"}, "skipped"),
        ({"test_a": ""}, "not run"),
    ],
    ids=str,
)
def test_a_statement_is_proved_where_each_of_its_tests_was_run_and_passed_in_every_case(tmp_path, cases, said):
    tests = [statement_table.Test(TESTS / "test_statements.py", name) for name in ("test_a", "test_b")]

    assert statement_table.judged(tests, results(tmp_path, **cases)) == said
    assert statement_table.judged([], results(tmp_path, **cases)) == "not proved"


def test_state_machines_and_methods_are_listed_by_their_pytest_names(tmp_path):
    text = (
        '<testcase classname="tests.write.test_stateful.TestMemory" name="runTest"/>'
        '<testcase classname="tests.servers.test_local_copy.TestIt" name="test_it[a]"/>'
    )
    (tmp_path / "tests.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    came = statement_table.outcomes(tmp_path / "tests.xml")

    stateful = TESTS / "write" / "test_stateful.py"
    assert ("TestMemory::runTest", {"C014", "C079", "C118"}) in [(test.name, found) for test, found in named(stateful)]
    assert statement_table.outcome_of(statement_table.Test(stateful, "TestMemory::runTest"), came) == "passed"
    method = statement_table.Test(TESTS / "servers" / "test_local_copy.py", "test_it")
    assert statement_table.outcome_of(method, came) == "passed"


def test_the_table_lists_each_statement_once_with_its_tests_and_their_outcomes(tmp_path):
    page = statement_table.table({"tests.write.test_stateful::TestMemory::runTest": "passed"})

    rows = re.findall(r"^\| ([A-E]\d{3}) \| [MIO] \| (.+) \| (.*) \| ([a-z ]+) \|$", page, re.MULTILINE)
    assert [number for number, *_ in rows] == list(every_statement())
    assert all(re.fullmatch(r"(`tests/[\w/.]+::[\w:]+`(<br>)?)+", tests) for _, _, tests, _ in rows)
    by = {number: (text, tests, said) for number, text, tests, said in rows}
    assert "The writer never deletes" in by["C014"][0]
    assert "`tests/write/test_stateful.py::TestMemory::runTest`" in by["C014"][1]
    assert by["C014"][2] == "not run"  # its other tests were not
