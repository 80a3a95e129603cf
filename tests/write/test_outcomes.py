"""A stream of intents is submitted in order as its outcomes are consumed, and never silently abandoned."""

from collections import deque

import pytest
from conftest import files, intent
from writing import codes, triples_of

from jidomem.errors import InvalidRequest
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt


@pytest.fixture(autouse=True)
def _three_intents_per_piece(monkeypatch):
    monkeypatch.setattr("jidomem.write.batch.PIECE", 3)


def facts(number, read=None):
    """Yield facts, and record in *read* the numbers of those that were requested."""
    for n in range(number):
        if read is not None:
            read.append(n)
        yield intent(summary=f"fact {n}")


def stored_summaries(memory):
    return {value for _, predicate, value in triples_of(memory) if predicate == jido("summary")}


def test_a_stream_is_read_and_submitted_as_its_outcomes_are_consumed(memory):
    read = []
    outcomes = memory.writer.submit_many("p", facts(8, read))
    assert (read, outcomes.submitted, files(memory.settings.root)) == ([], 0, {})

    first = next(outcomes)

    assert (read, outcomes.submitted, len(stored_summaries(memory))) == ([0, 1, 2], 3, 3)
    assert len({first.iri, *(outcome.iri for outcome in outcomes)}) == 8
    assert (outcomes.submitted, len(stored_summaries(memory))) == (8, 8)
    assert list(outcomes) == []


def test_the_last_intent_of_a_stream_is_judged_against_all_earlier_ones(memory):
    stream = [intent(summary=f"fact {n}") for n in range(7)] + [intent(summary="fact 0")]
    *receipts, repeated = memory.writer.submit_many("p", iter(stream))
    assert (repeated.status, repeated.iri) == ("deduplicated", receipts[0].iri)


def test_a_refusal_in_a_stream_has_its_position_and_an_error_in_it_becomes_an_outcome(memory):
    stream = [*facts(4), intent(confidence="?"), InvalidRequest("line 6: no JSON"), intent()]
    outcomes = list(memory.writer.submit_many("p", iter(stream)))
    assert [isinstance(outcome, Receipt) for outcome in outcomes] == [True] * 4 + [False, False, True]
    assert [(outcome.code, outcome.position) for outcome in outcomes[4:6]] == [
        ("invalid_confidence", 4),
        ("invalid_argument", 5),
    ]


def test_intents_read_before_a_stream_fails_are_submitted_before_the_error_is_raised(memory):
    def failing_stream():
        yield from facts(4)
        raise OSError("the disk is gone")

    outcomes = []
    with pytest.raises(OSError, match="the disk is gone"):
        deque(map(outcomes.append, memory.writer.submit_many("p", failing_stream())))
    assert len(outcomes) == len(stored_summaries(memory)) == 4


@pytest.mark.parametrize(
    ("consumed", "counts"), [(0, "0 of 0 submitted"), (2, "2 of 3 submitted"), (6, "6 of 6 submitted")]
)
def test_an_unfinished_stream_warns_of_the_intents_that_were_not_submitted(memory, consumed, counts):
    outcomes = memory.writer.submit_many("p", facts(8))
    assert all(isinstance(next(outcomes), Receipt) for _ in range(consumed))
    with pytest.warns(ResourceWarning) as warnings:
        del outcomes
    assert [str(warning.message) for warning in warnings] == [
        f"{counts} intents were answered, and none after them was submitted: consume the outcomes"
    ]
    assert warnings[0].filename == __file__


def test_a_closed_or_consumed_stream_causes_no_warning(memory):
    outcomes = memory.writer.submit_many("p", facts(8))
    next(outcomes)
    outcomes.close()
    assert list(outcomes) == []
    consumed = memory.writer.submit_many("p", facts(6))
    assert len(list(consumed)) == 6
    del outcomes, consumed  # any warning fails a test


@pytest.mark.parametrize("collection", [list, tuple, lambda intents: dict(enumerate(intents)).values()])
def test_a_collection_is_submitted_at_once(memory, collection):
    outcomes = memory.writer.submit_many("p", collection([intent(), intent(confidence="?"), intent(summary="b")]))
    assert isinstance(outcomes, list)
    assert codes(outcomes[1]) == ["invalid_confidence"]
    assert len(stored_summaries(memory)) == 2


def test_an_atomic_stream_is_read_completely_and_recorded_in_one_commit(memory):
    read = []
    receipts = memory.writer.submit_many("p", facts(8, read), atomic=True)
    assert (len(read), len({receipt.commit for receipt in receipts})) == (8, 1)
