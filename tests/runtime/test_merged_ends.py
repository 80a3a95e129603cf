"""Branches that revised the same memory: check and review list the same conflicts, until all are settled."""

import shutil
from datetime import UTC, datetime, timedelta
from itertools import combinations
from random import Random

import pytest
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
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import plain_value
from jidomem.runtime.location import init

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
