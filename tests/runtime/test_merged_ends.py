"""Branches that revised the same memory: check and review list the same conflicts, until all are settled."""

import shutil
from datetime import UTC, datetime, timedelta
from itertools import combinations
from random import Random

import pytest
from click.testing import CliRunner
from conftest import intent
from hypothesis import given, settings
from hypothesis import strategies as st
from test_git_branches import Branch, git, merge

import jidomem
from jidomem.base.clock import Sources
from jidomem.check.report import SUCCESSORS
from jidomem.check.rules import chains
from jidomem.check.sources import JournalSource
from jidomem.curation.review_queue import queue
from jidomem.curation.review_text import commands
from jidomem.errors import InvalidRequest
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import plain_value
from jidomem.runtime.location import init
from jidomem_cli.main import cli

STALE = "stale_supersession"


def open_branch(root, number, second):
    """Open a branch at a time, with distinct ids."""
    random, moment = Random(f"{number} {second}"), datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=second)
    ids = lambda: f"01900000-0000-7000-8000-{random.randrange(16**12):012x}"  # noqa: E731
    return jidomem.open(root, sources=Sources(lambda: moment, ids, lambda: random.randbytes(32)))


def successors_of_check(memory):
    problems = chains(JournalSource(memory.journal, Stream("p")))
    return {
        pair
        for each in problems
        if each.rule == SUCCESSORS
        for pair in combinations(sorted(map(plain_value, each.beside)), 2)
    }


def listed_conflicts(memory):
    return {(row["a"], row["b"]) for row in memory.reader.ask("conflicts", project="p") if row["kind"] == STALE}


def pending_conflicts(memory):
    return [one for one in queue(memory.reader, "p", memory.sources.now()) if one.why == STALE]


def revise_fact(memory, random, word):
    """Revise or withdraw one of the active facts; record one if there is none."""
    facts = memory.reader.ask("facts", project="p")
    if not facts:
        return memory.writer.submit_intent("p", intent(summary=f"{word} {random.random()}"))
    item = random.choice(facts)["fact"]
    if random.random() < 0.2:
        return memory.writer.invalidate("p", item, reason="it is wrong")
    return memory.writer.revise("p", item, changes={"summary": f"{word} {random.random()}"}, reason="measured")


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32))
def test_check_and_review_list_the_same_conflicting_successors_until_all_are_settled(seed, tmp_path_factory):
    random, folder = Random(seed), tmp_path_factory.mktemp("branches")
    init(folder / "0", "p")
    roots = [folder / str(number) / ".jidomem" for number in range(3)]
    with open_branch(roots[0], 0, 0) as memory:
        for number in range(3):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}"))
    for round_ in range(2):
        for root in roots[1:]:
            shutil.copytree(roots[0], root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock", "index"))
        for number, root in enumerate(roots):
            for step in range(random.randrange(1, 4)):
                with open_branch(root, number, 1000 * round_ + 100 + 10 * step + number) as memory:
                    revise_fact(memory, random, f"branch {number}")
        for root in roots[1:]:
            shutil.copytree(root, roots[0], dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock", "index"))
        with open_branch(roots[0], 0, 1000 * round_ + 500) as memory:
            assert listed_conflicts(memory) == successors_of_check(memory)

    second = 5000
    while True:
        second += 1
        with open_branch(roots[0], 0, second) as memory:
            pending = pending_conflicts(memory)
            assert bool(pending) == bool(listed_conflicts(memory)) == bool(successors_of_check(memory))
            if not pending:
                return
            one = random.choice(pending)
            memory.writer.settle("p", one.item, random.choice(one.actions), other=one.other)


@pytest.fixture
def branches(tmp_path):
    (tmp_path / "left").mkdir()
    git(tmp_path / "left", "init", "-q")
    init(tmp_path / "left", "p")
    left = Branch(tmp_path / "left", 1)
    left.write(0, summary="what both know")
    left.keep("base")
    git(tmp_path, "clone", "-q", "left", "right")
    return left, Branch(tmp_path / "right", 2)


def test_two_values_of_a_property_from_two_branches_are_listed_and_settled(branches):
    file = "https://example.org/files/a"
    typed = [file, "rdf:type", {"@id": "jido:SourceFile"}]
    left, right = branches
    left_item = left.write(10, summary="it is in src", extra_triples=[typed, [file, "jido:filePath", "src/a.py"]])
    right_item = right.write(11, summary="it is in lib", extra_triples=[typed, [file, "jido:filePath", "lib/a.py"]])
    other = "https://example.org/files/b"
    further = [[other, *typed[1:]], [other, "jido:filePath", "src/b.py"]]
    right.write(12, summary="another is in src, too", extra_triples=further)
    merge(left, right)

    with left.open(20) as memory:
        (one,) = queue(memory.reader, "p", memory.sources.now())
        conflicts = memory.reader.why("p", left_item)["conflicts"]
        memory.writer.settle("p", one.item, "accept", other=one.other, reason="r")
        after = queue(memory.reader, "p", memory.sources.now())

    assert (one.why, {one.item, one.other}) == ("contradicting_value", {left_item, right_item})
    assert one.actions == ("accept", "reject", "supersede")
    assert [(row["iri"], row["kind"]) for row in conflicts] == [(right_item, "contradicting_value")]
    assert after == []


ITEM = "https://jido.ai/memory/01900000-0000-7000-8000-0000000000aa"


@pytest.fixture
def rewritten(branches):
    """Two merged branches that wrote one memory with different texts, each after its lists were read."""
    left, right = branches
    left.write(10, iri=ITEM, summary="it needs Rust 1.80", asserted_by="ana", confidence="medium")
    right.write(11, iri=ITEM, summary="it needs Rust 1.90", asserted_by="bea")
    for branch in branches:
        with branch.open(15) as memory:
            memory.reader.ask("timeline", project="p", limit=9)
    merge(left, right)
    git(right.folder, "pull", "-q", str(left.folder))
    return branches


def records(memory, **options):
    rows = memory.reader.ask("timeline", project="p", **options)
    return [(row["summary"], row["agent"].rpartition("/")[2], row["recorded"].second, row["status"]) for row in rows]


def test_each_record_of_a_memory_that_two_branches_wrote_has_its_own_text_author_and_time(rewritten, tmp_path):
    shutil.copytree(rewritten[0].root / "projects", tmp_path / "fresh" / "projects")
    known = ("what both know", "architect", 0, "active")
    first, second = ("it needs Rust 1.80", "ana", 10, "active"), ("it needs Rust 1.90", "bea", 11, "superseded")

    for root in (*(branch.root for branch in rewritten), tmp_path / "fresh"):
        with jidomem.open(root, project="p") as memory:
            assert records(memory) == records(memory, limit=9) == [first, known]
            for options in ({}, {"limit": 9}):  # by the engine, and by the projection
                assert records(memory, include_inactive=True, **options) == [second, first, known]
            (row,) = (row for row in memory.reader.ask("facts", project="p") if row["fact"] == ITEM)
            assert (row["summary"], row["confidence"]) == ("it needs Rust 1.80", "https://jido.ai/ontology#Medium")
            history = [row["summary"] for row in memory.reader.history("p", ITEM)]
            assert history == ["it needs Rust 1.80", "it needs Rust 1.90"]
            assert memory.reader.get_memory("p", ITEM)["properties"]["summary"] == ["it needs Rust 1.80"]
            summary = f"SELECT ?summary {{ <{ITEM}> <https://jido.ai/ontology#summary> ?summary }}"
            assert memory.reader.select("p", summary, as_of="2099-01-01") == [{"summary": "it needs Rust 1.80"}]


@pytest.mark.parametrize(("action", "text"), [("accept", "it needs Rust 1.80"), ("reject", "it needs Rust 1.90")])
def test_a_memory_that_two_branches_wrote_is_settled_by_a_review(rewritten, action, text):
    with rewritten[0].open(20) as memory:
        (one,) = pending = queue(memory.reader, "p", memory.sources.now())
        (problem,) = memory.check("p").problems
        with pytest.raises(InvalidRequest, match="one of them counts"):
            memory.writer.settle("p", one.item, "keep-both", other=one.other, reason="r")
        printed = [command for command, _ in commands(one)]
        memory.writer.settle("p", one.item, action, other=one.other, reason="measured")

        assert [item.why for item in pending] == ["written_differently"]
        assert [one.summary, one.other_summary] == [
            "it needs Rust 1.80; confidence: Medium",
            "it needs Rust 1.90; confidence: High",
        ]
        assert all(f"{command} --reason WHY" in problem.message for command in printed)
        assert queue(memory.reader, "p", memory.sources.now()) == []
        assert memory.check("p").problems == []
        assert text in {row["summary"] for row in memory.reader.ask("facts", project="p")}
        assert len(memory.reader.ask("facts", project="p")) == 2


def test_the_redaction_of_a_memory_that_two_branches_wrote_removes_the_texts_of_both(rewritten):
    left, _ = rewritten
    with left.open(20) as memory:
        memory.maintenance.redact(memory.maintenance.plan("p", ITEM), agent="ana", reason="r")
        assert all("it needs" not in str(row["summary"]) for row in memory.reader.ask("timeline", project="p"))
    assert not [commit for commit in left.commits() if b"it needs Rust" in commit.data]


def test_the_redaction_of_one_record_leaves_the_other_as_it_is(rewritten):
    with rewritten[0].open(20) as memory:
        memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["1.90"]), agent="ana", reason="r")

        (pair,) = queue(memory.reader, "p", memory.sources.now())
        assert (pair.why, pair.other_summary) == ("written_differently", "(redacted); confidence: High")
        assert records(memory) == [
            ("it needs Rust 1.80", "ana", 10, "active"),
            ("what both know", "architect", 0, "active"),
        ]
        assert len([problem for problem in memory.check("p").problems if problem.severity == "violation"]) == 1


@pytest.mark.parametrize("form", ["turtle", "jsonld", "nquads"])
def test_an_export_has_each_record_of_a_memory_that_two_branches_wrote(rewritten, form, tmp_path):
    exported, new = tmp_path / f"exported.{form}", ("--root", str(tmp_path / "new"), "--project", "p")

    def run(*words):
        result = CliRunner().invoke(cli, [*map(str, words)])
        assert result.exit_code == 0, result.output

    run("root", "export", "--format", form, "-o", exported, "--root", rewritten[0].root)
    if form == "turtle":
        run("check", exported)
    run("root", "import", form, exported, *new)
    run("check", *new)
    with jidomem.open(tmp_path / "new", project="p") as memory:
        rows = memory.reader.ask("timeline", project="p", include_inactive=True)

    assert {(row["summary"], row["agent"].rpartition("/")[2], row["status"]) for row in rows} == {
        ("it needs Rust 1.80", "ana", "active"),
        ("it needs Rust 1.90", "bea", "superseded"),
        ("what both know", "architect", "active"),
    }


def test_an_earlier_record_that_arrives_last_counts_as_in_a_rebuilt_index(branches, tmp_path):
    left, right = branches
    third = Branch(tmp_path / "third", 3)
    shutil.copytree(left.folder, third.folder)
    left.write(10, iri=ITEM, summary="it needs Rust 1.80", asserted_by="ana")
    right.write(11, iri=ITEM, summary="it needs Rust 1.90", asserted_by="bea", confidence="medium")
    third.write(9, iri=ITEM, summary="it needs Rust 1.90", asserted_by="bea", confidence="medium")

    def arrive(branch):
        shutil.copytree(branch.root / "projects", left.root / "projects", dirs_exist_ok=True)
        return sorted(map(str, memory.reader.select("p", "SELECT ?s ?p ?o { ?s ?p ?o }")))

    with left.open(20) as memory:
        arrive(right)
        first = records(memory)[0]
        stepwise = arrive(third), records(memory), records(memory, limit=9)
        memory.follower.rebuild()
        assert stepwise == (arrive(third), records(memory), records(memory, limit=9))

    assert first == ("it needs Rust 1.80", "ana", 10, "active")
    assert stepwise[1][0] == ("it needs Rust 1.90", "bea", 9, "active")
