"""Questions in everyday words: which X is used, what should be done, and abbreviations."""

import json
from pathlib import Path

import pytest
from conftest import decision, intent

import jidomem
from bench.recall_notes import Outcome
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall.question import answer_kinds, class_words, spelled_out

FOLDER = Path(__file__).parent / "everyday_notes"


@pytest.fixture(scope="module")
def notes():
    """Return the labelled notes by the name of their file."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Return the nine memories of a stranger's order service."""
    store = "we store orders, payments and refunds there; transactions across tables"
    facts = (
        ("The staging database is reset every night at 05:00 UTC", None),
        ("Logs go to Loki", None),
        ("CI runs on blau-1 and blau-2", None),
        ("Benchmark apply_1000 takes 41 microseconds on blau-1", None),
        ("MSRV is 1.74; do not use let-else chains", "msrv"),
    )
    conventions = ("Use the real database in tests, no mocks", "Answers to Ana have at most ten lines")
    folder = tmp_path_factory.mktemp("notes") / "root"
    with jidomem.open(folder, project="p", agent="a", embedder=LocalEmbedder()) as opened:
        for fields in (
            *(intent(summary=summary, topic=topic) for summary, topic in facts),
            *(intent(type="convention", summary=summary) for summary in conventions),
            decision(summary="Invoices are numbered by a database sequence", rationale="no gaps"),
            decision(summary="Use PostgreSQL for orders", topic="storage", rationale=store),
        ):
            opened.writer.submit_intent("p", fields)
        opened.embedding.embed("p")
        yield opened


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("which database do we use", "Use PostgreSQL for orders"),
        ("which db is used", "Use PostgreSQL for orders"),
        ("minimum rust version", "MSRV is 1.74; do not use let-else chains"),
        ("how long should my answers be", "Answers to Ana have at most ten lines"),
    ],
)
def test_the_answer_is_among_the_first_three(memory, question, answer):
    assert answer in [hit.content for hit in memory.recall(question).entries[:3]]


def test_most_everyday_questions_have_their_answer_among_the_first_three(notes):
    embedder = LocalEmbedder()
    shop, game = (Outcome.of(notes[name], embedder) for name in ("lindenshop", "skyforge"))

    assert shop.answerable + game.answerable == 60
    assert shop.first_three + game.first_three >= 53
    assert shop.first + game.first >= 49


def test_the_notes_are_well_formed(notes):
    assert {each["part"] for each in notes.values()} == {"fit", "held out"}
    for each in notes.values():
        ids = [memory["id"] for memory in each["memories"]]
        assert (len(each["questions"]), len(each["unanswered"])) == (30, 12)
        assert 40 <= len(ids) == len({*ids}) <= 60
        assert all(question["answers"] and {*question["answers"]} <= {*ids} for question in each["questions"])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Which database do we use for orders?", {"database"}),
        ("what message queue should I use", {"message", "queue"}),
        ("which test-runner is used here", {"testrunner", "test", "runner"}),
        ("what do we use as CDN", set()),
        ("Which database did Ana drop?", set()),
    ],
)
def test_the_class_of_which_the_instance_is_asked_is_before_the_verb(question, words):
    assert class_words(question) == words


@pytest.mark.parametrize("question", ["what do we use as CDN", "may I push?", "how should we log", "which db is used"])
def test_a_question_for_what_to_use_or_do_needs_a_choice(question):
    assert "choice" in answer_kinds(question)
    assert "choice" not in answer_kinds("which database was slow yesterday")


@pytest.mark.parametrize(
    ("question", "spelled"),
    [
        ("How large may PRs be?", "How large may PRs (pull requests) be?"),
        ("minimum Rust version", "minimum Rust version (MSRV)"),
        ("which service-level objective", "which service-level objective"),
        ("where is ci.yml, in pr-12?", "where is ci.yml, in pr-12?"),
    ],
)
def test_the_other_form_of_an_abbreviation_is_added(question, spelled):
    assert spelled_out(question) == spelled


def test_an_explanation_names_the_kind_that_is_asked_for(memory):
    hits = memory.recall("which database do we use", explain=True).entries
    lines = {
        hit.content: "kind: a decision or convention, and you ask what to use or do" in hit.reasons for hit in hits
    }

    assert lines["Use PostgreSQL for orders"]
    assert not lines["The staging database is reset every night at 05:00 UTC"]
