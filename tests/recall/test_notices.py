"""Notices of an answer: the query that lists all, and the doubt that nothing answers."""

import pytest

import jidomem
from jidomem.recall.briefing import markdown
from jidomem.records.recall import matching_named_queries


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as opened:
        for text in (
            "The cache holds 2 GiB",
            "Payouts run daily",
            *(f"The port of service {n} is {n}" for n in range(30)),
        ):
            opened.remember(text)
        opened.remember("Ship the importer", type="task")
        opened.embedding.embed("p")
        yield opened


@pytest.mark.parametrize(("question", "name"), [
    ("Which tasks are open?", "open-tasks"),
    ("what is left to do?", "open-tasks"),
    ("What should I work on next?", "open-tasks"),
    ("Which decisions were made about the store?", "recent-decisions"),
    ("What did we decide so far?", "recent-decisions"),
    ("Which memories contradict each other? Are there open conflicts?", "conflicts"),
    ("Are there known bugs?", "open-errors"),
])  # fmt: skip
def test_a_question_for_a_list_names_the_query_that_lists_all(memory, question, name):
    result = memory.recall(question)

    assert result.metadata["questions"] == [name]
    assert f"all of them, in order: ask {name}.\n" in markdown(result)
    assert f"all of them, in order: jidomem ask {name}.\n" in markdown(result, "--include-inactive")
    assert name in {query.name for query in memory.playbook}


@pytest.mark.parametrize("question", ["Why was the task of the importer closed?", "Who decided on SQLite?",
                                      "merge conflict in setup.py", "What decides the order of hits?"])  # fmt: skip
def test_a_question_for_one_thing_names_no_query(question):
    assert matching_named_queries(question) == []


def test_hits_with_a_tiny_score_and_an_unknown_word_are_marked_as_doubtful(memory):
    answered = memory.recall("How much does the cache hold?")

    unanswered = memory.recall("Which load balancer is used in Oslo?", min_score=0.0001)
    assert unanswered.entries[0].score < 0.06
    assert "perhaps nothing here answers this: the best score is 0.0" in markdown(unanswered)
    assert "balancer" in markdown(unanswered).rpartition("perhaps")[2]
    assert "perhaps" not in markdown(answered)
