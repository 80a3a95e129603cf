"""The corpus of crafted memories: check finds each fault at its line, and nothing on the clean ones."""

import json
import re
from pathlib import Path

import corpus
import pytest

import jidomem
from jidomem import schema
from jidomem.govern.check import Options, check_files, check_project

NAMES = {path.stem: path for path in corpus.turtle_cases()}
JOURNALS = {path.stem: path for path in corpus.journal_cases()}


def test_the_corpus_is_large_and_names_its_clean_cases():
    clean = {name for name, path in NAMES.items() if not corpus.expected(path)}
    assert len(NAMES) + len(JOURNALS) >= 90
    assert clean == {name for name in NAMES if name.startswith("clean-")}


@pytest.mark.parametrize("name", NAMES)
def test_a_crafted_file_has_the_faults_it_names_at_their_lines_and_no_others(name):
    # C108 C111
    path = NAMES[name]

    report = check_files([(str(path), path.read_bytes())], schema.load())

    assert corpus.told(report) == corpus.expected(path)
    assert report.exit_code == any(severity == "violation" for _, severity, _ in corpus.expected(path))
    assert {problem.path for problem in report.problems} <= {str(path)}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_crafted_journal_has_its_faults_in_the_lines_of_its_commit_files(tmp_path, name):
    case = json.loads(JOURNALS[name].read_text("utf-8"))
    files = corpus.play(tmp_path / "root", case)

    with jidomem.open(tmp_path / "root") as memory:
        ask = memory.reader.ask
        options = Options(disagreements=lambda: ask("conflicts", project="p"))
        report = check_project(memory.tail, memory.schema, "p", options)

    def shown(problem):
        path = Path(problem.path)
        commit = "pack" if path.name.startswith("pack-") else files.index(path) + 1
        text = path.read_text("utf-8").splitlines()[problem.line - 1] if problem.line else None
        return {"severity": problem.severity, "rule": problem.name, "commit": commit, "line": text}

    expected, found = case.get("expect", []), [shown(problem) for problem in report.problems]
    for each, other in zip(by_rule(expected), by_rule(found), strict=False):
        if each["line"] is None:
            other["line"] = None
    assert by_rule(found) == by_rule(expected)
    assert report.exit_code == any(each["severity"] == "violation" for each in expected)


def by_rule(rows):
    return sorted(rows, key=lambda row: (row["rule"], str(row["commit"]), str(row["line"])))


def test_the_reference_finds_the_same_in_all_the_corpus_at_once(tmp_path):
    text = whole([path for path in NAMES.values() if is_apart(path)])
    fast = check_files([("all.ttl", text.encode())], schema.load())
    slow = check_files([("all.ttl", text.encode())], schema.load(), Options(reference=True))

    assert len(fast.problems) > 60
    assert slow.problems == fast.problems


def is_apart(path):
    """Whether a case says nothing that would follow for the terms of all: that two levels are one."""
    rules = {name for _, _, name in corpus.expected(path)}
    return not rules & {"TurtleParses", "functional-property-has-one-value"}


def whole(paths):
    """All cases as one file, each with memories of its own."""
    parts = []
    for path in paths:
        text = path.read_text("utf-8").replace("<https://jido.ai/memory/", f"<https://jido.ai/memory/{path.stem}-")
        text = text.replace("evidence/", f"evidence/{path.stem}-").replace("agent:bob", f"agent:{path.stem}-bob")
        parts.append(re.sub(r"\bsession:t\b", f"session:{path.stem}-t", text))
    return "\n".join(parts)
