"""The corpus of crafted memories: check finds each fault at its line, and nothing on the clean ones."""

import json
import re
from pathlib import Path

import corpus
import pytest

import jidomem
from bench import load
from jidomem.base import files
from jidomem.check.check import Options, check_files, check_project
from jidomem.schema import ontology

NAMES = {path.stem: path for path in corpus.turtle_cases()}
JOURNALS = {path.stem: path for path in corpus.journal_cases()}


def is_judged_alone(path):
    """Whether a case is invalid Turtle, or has statements that would change the findings of other cases."""
    rules = {name for _, _, name in corpus.expected(path)}
    return bool(rules & {"TurtleParses", "functional-property-has-one-value"})


def concatenated(paths):
    """All cases as one text, each with its own memories, and the name of each case by its first line."""
    parts, starts, line = [], {}, 1
    for path in paths:
        text = path.read_text("utf-8").replace("<https://jido.ai/memory/", f"<https://jido.ai/memory/{path.stem}-")
        text = text.replace("evidence/", f"evidence/{path.stem}-").replace("agent:bob", f"agent:{path.stem}-bob")
        text = re.sub(r"\bex:", f"ex:{path.stem}-", text).replace(f"@prefix ex:{path.stem}- ", "@prefix ex: ")
        parts.append(re.sub(r"\bsession:t\b", f"session:{path.stem}-t", text))
        starts[line] = path.stem
        line += text.count("\n")
    return "".join(parts), starts


def test_the_corpus_is_large_and_names_its_clean_cases():
    clean = {name for name, path in NAMES.items() if not corpus.expected(path)}
    assert len(NAMES) + len(JOURNALS) >= 90
    assert clean == {name for name in NAMES if name.startswith("clean-")}


@pytest.fixture(scope="module")
def joint_findings():
    """The findings of all files judged together: by the reference validator or not -> name -> findings."""
    text, starts = concatenated([path for path in NAMES.values() if not is_judged_alone(path)])

    def findings(reference):
        by_name = {name: [] for name in starts.values()}
        for problem in check_files(
            [("all.ttl", text.encode())], ontology.load(), Options(reference=reference)
        ).problems:
            start = max(line for line in starts if line <= problem.line)
            by_name[starts[start]].append((problem.line - start + 1, problem.severity, problem.name))
        return by_name

    return {reference: findings(reference) for reference in (False, True)}


@pytest.mark.parametrize("name", [name for name in NAMES if not is_judged_alone(NAMES[name])])
def test_a_crafted_memory_has_the_faults_it_names_at_their_lines_and_no_others(joint_findings, name):
    # C108 C109 C111
    assert sorted(joint_findings[False][name]) == corpus.expected(NAMES[name])
    assert sorted(joint_findings[True][name]) == corpus.expected(NAMES[name])


@pytest.mark.parametrize("name", [name for name in NAMES if is_judged_alone(NAMES[name])])
def test_a_crafted_file_has_the_faults_it_names_at_their_lines_and_no_others(name):
    # C108 C111
    path = NAMES[name]

    reports = [
        check_files([(str(path), path.read_bytes())], ontology.load(), Options(reference=reference))
        for reference in (0, 1)
    ]

    assert [corpus.told(report) for report in reports] == [corpus.expected(path)] * 2
    assert [report.exit_code for report in reports] == [1, 1]
    assert {problem.path for problem in reports[0].problems} == {str(path)}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_crafted_journal_has_its_faults_in_the_lines_of_its_commit_files(tmp_path, name):
    case = json.loads(JOURNALS[name].read_text("utf-8"))
    files = corpus.play(tmp_path / "root", case)

    with jidomem.open(tmp_path / "root") as memory:
        ask = memory.reader.ask
        options = Options(disagreements=lambda: ask("conflicts", project="p"))
        report = check_project(memory.follower, memory.schema, "p", options)

    def as_row(problem):
        path = Path(problem.path)
        commit = "pack" if path.name.startswith("pack-") else files.index(path) + 1
        text = path.read_text("utf-8").splitlines()[problem.line - 1] if problem.line else None
        return {"severity": problem.severity, "rule": problem.name, "commit": commit, "line": text}

    expected, findings = case.get("expect", []), [as_row(problem) for problem in report.problems]
    for each, other in zip(by_rule(expected), by_rule(findings), strict=False):
        if each["line"] is None:
            other["line"] = None
    assert by_rule(findings) == by_rule(expected)
    assert report.exit_code == any(each["severity"] == "violation" for each in expected)


def by_rule(rows):
    return sorted(rows, key=lambda row: (row["rule"], str(row["commit"]), str(row["line"])))


def test_the_reference_validator_reports_the_same_findings_on_generated_memories(tmp_path):
    load.build(tmp_path / "root", 150)

    with jidomem.open(tmp_path / "root") as memory:
        reports = [
            check_project(memory.follower, memory.schema, load.PROJECT, Options(reference=reference))
            for reference in (False, True)
        ]

    assert reports[0].judged > 150
    assert reports[0].problems == reports[1].problems
    assert {problem.severity for problem in reports[0].problems} <= {"info"}


def test_the_memory_of_this_project_has_no_findings():
    with jidomem.open(files.own_memory()) as memory:
        ask = memory.reader.ask
        options = Options(disagreements=lambda: ask("conflicts", project="jidomem"), overlay=memory.settings.root)
        report = check_project(memory.follower, memory.schema, "jidomem", options)

    assert (report.problems, report.unchecked) == ([], [])
    assert report.judged >= 10
