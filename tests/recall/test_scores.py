"""The score of a hit is a probability; hits below the minimum are omitted, and the nearest is named instead."""

from random import Random

import pytest
from conftest import ToyEmbedder, fixed_sources, intent

import jidomem
from jidomem.recall.briefing import markdown
from jidomem.recall.ranking import ASSISTANT, CALIBRATIONS, MEMORIES, PEOPLE, TASKS
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.recall import MIN_SCORE, MIN_SHARE, min_best_score

WORDS = ["quagga", "zebra", "okapi", "lynx", "tapir", "index", "the", "store", "gnu", "ibis"]


def open_root(folder, embedder=None):
    memory = jidomem.open(folder, project="p", agent="me", sources=fixed_sources(), embedder=embedder)
    memory.embeds_for = 60.0
    return memory


def write_random(memory, random):
    """Write some memories, revisions and entries of speakers at random."""
    for _ in range(random.randrange(1, 12)):
        text = " ".join(random.choices(WORDS, k=random.randrange(1, 8)))
        item = memory.writer.submit_intent("p", intent(summary=text)).iri
        if random.random() < 0.3:
            memory.writer.revise("p", item, changes={"summary": f"{text} {random.choice(WORDS)}"}, reason="newer")
        labels = {"speaker": random.choice(["Ana", "assistant"]), "session": random.choice("123")}
        memory.entries.write(WriteRequest(Entry(agent_id="me", content=text, metadata=labels)))


@pytest.mark.parametrize("embedder", [None, ToyEmbedder()], ids=["words", "likeness"])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_probabilities_in_descending_order_and_the_minimum_score_cuts_them(tmp_path, seed, embedder):
    random = Random(seed)
    with open_root(tmp_path / "root", embedder) as memory:
        write_random(memory, random)
        for _ in range(12):
            query = " ".join(random.choices([*WORDS, "heron", "stoat", "vole"], k=random.randrange(1, 6)))
            options = {"kinds": random.choice([[], ["entry"]]), "include_inactive": random.random() < 0.5}
            every = memory.recall(query, limit=50, min_score=0, **options)
            scores = [hit.score for hit in every.entries]
            assert all(0 <= score <= 1 for score in scores)
            assert scores == sorted(scores, reverse=True)
            assert every.metadata["below"] == 0

            least = random.choice([*scores, 0.02, 0.5, 1])
            some = memory.recall(query, limit=50, min_score=least, **options)
            assert [*some.entries] == [hit for hit in every.entries if hit.score >= least]
            assert some.metadata["below"] == len(scores) - len(some.entries)
            assert some.metadata["min_score"] == least
            assert some.nearest == (every.entries[0] if scores and max(scores) < least else None)


def test_each_ranking_has_a_rising_calibration():
    assert {*CALIBRATIONS} == {"words", *(str(profile["name"]) for profile in (ASSISTANT, MEMORIES, PEOPLE, TASKS))}
    for lines in CALIBRATIONS.values():
        for line in lines:
            assert line.slope > 0
            chances = [line.probability(total) for total in (-1e9, 0.0, 1.0, 10.0, 1e9)]
            assert chances == sorted({*chances})
            assert 0 <= chances[0] <= chances[-1] <= 1


@pytest.fixture
def memory(tmp_path):
    with open_root(tmp_path / "root") as memory:
        for summary in ("the build needs Rust 1.80", "letters wait in one queue", "the parser stops after a while"):
            memory.writer.submit_intent("p", intent(summary=summary))
        yield memory


NONSENSE = "queen crown castle umbrella needs palace throne royal england monarch guard anthem parade"


def test_an_unanswerable_question_returns_only_the_nearest_memory(memory):
    answer = memory.recall(NONSENSE, min_score=0.3)

    assert not answer.entries
    assert answer.nearest.content == "the build needs Rust 1.80"
    assert answer.nearest.score < 0.3 == answer.metadata["min_score"]
    assert answer.to_dict()["nearest"] == {
        "id": answer.nearest.id,
        "text": "the build needs Rust 1.80",
        "score": answer.nearest.score,
    }
    assert answer.metadata["below"] == 1
    assert "nothing here answers this; nearest" in markdown(answer)
    assert "the build needs Rust 1.80" in markdown(answer)


def test_the_most_similar_memory_is_the_nearest_without_a_common_word(tmp_path):
    with open_root(tmp_path / "root", ToyEmbedder()) as memory:
        write_random(memory, Random(1))
        answer, every = memory.recall("umbrella"), memory.recall("umbrella", min_score=0)

    assert not answer.entries
    assert [hit.id for hit in every.entries] == [answer.nearest.id]
    assert answer.nearest.score < MIN_SCORE


def test_an_answered_question_has_no_nearest_memory(memory):
    answer = memory.recall("what does the build need?")

    assert answer.metadata["min_score"] == answer.entries[0].score * MIN_SHARE > MIN_SCORE
    assert [hit.content for hit in answer.entries] == ["the build needs Rust 1.80"]
    assert answer.to_dict()["nearest"] is None
    assert "nearest" not in markdown(answer)


def test_hits_far_below_the_best_are_omitted_by_default_except_entries_and_on_request(memory):
    memory.writer.submit_intent("p", intent(summary="letters wait while the parser, which a build made, stops"))
    query = "which Rust does the build need: 1.80?"
    every = memory.recall(query, min_score=0).entries
    assert MIN_SCORE < every[1].score < every[0].score * MIN_SHARE

    answer = memory.recall(query)
    assert [*answer.entries] == [*every[:1]]
    assert answer.metadata["below"] == len(every) - 1
    assert not answer.metadata["more"]
    for options in ({"min_score": MIN_SCORE}, {"include_inactive": True}):
        assert [hit.id for hit in memory.recall(query, **options).entries] == [hit.id for hit in every]

    for hit in every:
        memory.entries.write(WriteRequest(Entry(agent_id="me", content=hit.content, metadata={"session": "s"})))
    assert len(memory.recall(query, kinds=["entry"], agent_id="me").entries) == len(every)


def test_each_unknown_word_lowers_the_score(memory):
    queries = ("build", "build heron", "build heron stoat", "build heron stoat vole")
    scores = [memory.recall(query, min_score=0).entries[0].score for query in queries]

    assert scores == sorted({*scores}, reverse=True)


def test_stop_words_alone_have_a_low_score(memory):
    assert memory.recall("build", min_score=0).entries[0].score > 0.3
    assert max(hit.score for hit in memory.recall("the", min_score=0).entries) < MIN_SCORE


def test_a_matching_day_without_the_subject_has_a_low_score(tmp_path):
    with open_root(tmp_path / "root", ToyEmbedder()) as memory:
        for summary in ("backups run nightly", "letters wait in one queue", "the parser stops late"):
            memory.writer.submit_intent("p", intent(summary=summary))
        off = memory.recall("weather Paris today", min_score=0).entries
        on = memory.recall("backups today").entries
        day = memory.recall("what happened today?").entries

    assert all(hit.score < 0.1 for hit in off)
    assert on[0].content == "backups run nightly"
    assert len(day) == 3


def test_the_default_minimum_score_is_higher_for_few_memories(tmp_path):
    with open_root(tmp_path / "root", ToyEmbedder()) as memory:
        for summary in ("backups run nightly", "letters wait in one queue", "the parser stops late"):
            memory.writer.submit_intent("p", intent(summary=summary))
        query = f"{NONSENSE} parser {NONSENSE.upper()} heron stoat vole ibis gnu tapir"
        hit = memory.recall(query, min_score=MIN_SCORE).entries[0]
        answer = memory.recall(query)

        assert MIN_SCORE < hit.score < min_best_score(3)
        assert (answer.entries, answer.nearest.id, answer.metadata["min_score"]) == ([], hit.id, min_best_score(3))
        assert memory.recall(query, include_inactive=True).entries[0].id == hit.id


def test_the_nearest_memory_is_omitted_beyond_the_budget(memory):
    whole = memory.recall(NONSENSE, min_score=0.3, budget_tokens=1_000)
    small = memory.recall(NONSENSE, min_score=0.3, budget_tokens=whole.metadata["tokens"] - 1)

    assert whole.nearest
    assert small.nearest is None
    assert small.metadata["tokens"] < whole.metadata["tokens"]


def test_further_hits_are_reported_only_above_the_minimum_score(memory):
    for number in range(4):
        memory.writer.submit_intent("p", intent(summary=f"the build of part {number}"))

    assert memory.recall("build", limit=2, min_score=0).metadata["more"]
    assert not memory.recall("build", limit=2, min_score=1).metadata["more"]


def test_inactive_memories_are_counted_only_above_the_minimum_score(memory):
    old = memory.writer.submit_intent("p", intent(summary="the zebra needs grass")).iri
    memory.writer.invalidate("p", old, reason="wrong")

    assert memory.recall("zebra").inactive.count == 1
    assert memory.recall("zebra", min_score=1).inactive.count == 0
