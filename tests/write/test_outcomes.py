"""A stream of intents: submitted in order as its outcomes are consumed, and never silently abandoned."""

from collections import deque

import pytest
from conftest import files, intent
from writing import codes, triples_of

from jidomem.errors import InvalidRequest
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr("jidomem.write.batch.PIECE", 3)


def facts(number, read=None):
    """A stream of facts that records in *read* which were requested."""
    for n in range(number):
        if read is not None:
            read.append(n)
        yield intent(summary=f"fact {n}")


def kept(memory):
    return {value for _, predicate, value in triples_of(memory) if predicate == jido("summary")}


def test_a_stream_is_read_and_submitted_as_its_outcomes_are_used_up(memory):
    read = []
    outcomes = memory.writer.submit_many("p", facts(8, read))
    assert (read, outcomes.submitted, files(memory.settings.root)) == ([], 0, {})

    first = next(outcomes)

    assert (read, outcomes.submitted, len(kept(memory))) == ([0, 1, 2], 3, 3)
    assert len({first.iri, *(outcome.iri for outcome in outcomes)}) == 8
    assert (outcomes.submitted, len(kept(memory))) == (8, 8)
    assert list(outcomes) == []


def test_what_a_stream_ends_with_is_judged_with_all_before_it_in_view(memory):
    given = [intent(summary=f"fact {n}") for n in range(7)] + [intent(summary="fact 0")]
    *new, same = memory.writer.submit_many("p", iter(given))
    assert (same.status, same.iri) == ("deduplicated", new[0].iri)


def test_a_refusal_in_a_stream_says_its_position_and_an_unreadable_intent_is_one(memory):
    given = [*facts(4), intent(confidence="?"), InvalidRequest("line 6: no JSON"), intent()]
    outcomes = list(memory.writer.submit_many("p", iter(given)))
    assert [isinstance(outcome, Receipt) for outcome in outcomes] == [True] * 4 + [False, False, True]
    assert [(outcome.code, outcome.position) for outcome in outcomes[4:6]] == [
        ("invalid_confidence", 4),
        ("invalid_argument", 5),
    ]


def test_what_was_read_before_a_stream_breaks_is_kept_and_told_before_its_error(memory):
    def breaks():
        yield from facts(4)
        raise OSError("the disk is gone")

    told = []
    with pytest.raises(OSError, match="the disk is gone"):
        deque(map(told.append, memory.writer.submit_many("p", breaks())))
    assert len(told) == len(kept(memory)) == 4


@pytest.mark.parametrize(
    ("taken", "words"), [(0, "0 of 0 submitted"), (2, "2 of 3 submitted"), (6, "6 of 6 submitted")]
)
def test_a_stream_left_unfinished_warns_of_what_was_not_submitted(memory, taken, words):
    outcomes = memory.writer.submit_many("p", facts(8))
    assert all(isinstance(next(outcomes), Receipt) for _ in range(taken))
    with pytest.warns(ResourceWarning) as told:
        del outcomes
    assert [str(warning.message) for warning in told] == [
        f"{words} intents were answered, and none after them was submitted: consume the outcomes"
    ]
    assert told[0].filename == __file__


def test_a_stream_that_is_closed_or_used_up_warns_of_nothing_and_goes_no_further(memory):
    outcomes = memory.writer.submit_many("p", facts(8))
    next(outcomes)
    outcomes.close()
    assert list(outcomes) == []
    used = memory.writer.submit_many("p", facts(6))
    assert len(list(used)) == 6
    del outcomes, used  # any warning fails a test


@pytest.mark.parametrize("given", [list, tuple, lambda some: dict(enumerate(some)).values()])
def test_all_of_a_collection_is_submitted_at_once(memory, given):
    outcomes = memory.writer.submit_many("p", given([intent(), intent(confidence="?"), intent(summary="b")]))
    assert isinstance(outcomes, list)
    assert codes(outcomes[1]) == ["invalid_confidence"]
    assert len(kept(memory)) == 2


def test_a_stream_that_is_to_be_kept_whole_is_read_whole(memory):
    read = []
    receipts = memory.writer.submit_many("p", facts(8, read), atomic=True)
    assert (len(read), len({receipt.commit for receipt in receipts})) == (8, 1)
