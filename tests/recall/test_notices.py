"""Notices of an answer: the query that lists all, and the doubt that nothing answers."""

from datetime import UTC, datetime, timedelta

import pytest
from conftest import intent

import jidomem
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall.briefing import markdown
from jidomem.records.recall import matching_named_queries


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """A memory for tests that write nothing."""
    folder = tmp_path_factory.mktemp("notices")
    with jidomem.open(folder, project="p", agent="rita", embedder=LocalEmbedder()) as opened:
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


@pytest.mark.parametrize("embedder", ["local", "none"])
def test_a_question_for_a_day_is_answered_with_what_is_of_that_day(tmp_path, monkeypatch, embedder):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", embedder)
    with jidomem.open(tmp_path / "root", project="p", agent="claude-code") as memory:
        memory.remember("On-call this month is Mehmet, from December on it is Sofie")
        memory.remember("Logs go to Loki")
        outage = memory.remember("The outage lasted an hour", timestamp=datetime.now(UTC) - timedelta(days=1)).iri
        of_codex = memory.writer.submit_intent("p", intent(summary="The cat sleeps", asserted_by="codex")).iri
        if memory.embedding is not None:
            memory.embedding.embed("p")

        def recalled(query):
            return {hit.id for hit in memory.recall(query).entries}

        assert recalled("what happened yesterday") == {outage}
        assert recalled("what did codex record today") == {of_codex}
        assert len(recalled("what did claude-code record today")) == 2
        assert recalled("what did ana record today") == set()


def test_the_best_memory_is_cut_to_the_budget_or_its_cost_is_named(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="rita") as memory:
        long = "The reconciliation job compares payouts with the ledger of the orders and lists each difference. "
        memory.remember("How reconciliation works", detailed_explanation=7 * long)
        memory.remember("Short works")
        whole = memory.recall("how does reconciliation work")
        cut = memory.recall("how does reconciliation work", budget_tokens=160)
        small = memory.recall("how does reconciliation work", budget_tokens=75)
        needed = small.metadata["needed_tokens"]
        enough = memory.recall("how does reconciliation work", budget_tokens=needed)

    assert [hit.id for hit in cut.entries] == [whole.entries[0].id] == [hit.id for hit in enough.entries]
    assert cut.entries[0].excerpt.rstrip(" …") in whole.entries[0].excerpt
    assert "[cut; jidomem show" in markdown(cut)
    assert cut.metadata["tokens"] <= 160
    assert not small.entries
    assert f"2 left out; the best needs {needed} tokens\n" in markdown(small)
    assert enough.metadata["tokens"] <= needed


def test_what_a_question_says_of_saying_is_no_doubt_of_its_answer(memory):
    answer = memory.recall("what did Ana say on the cache of zebras", min_score=0)

    assert answer.metadata["unknown_words"] == ["ana", "zebras"]
