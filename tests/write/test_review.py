"""What a reading by fresh eyes found broken, each with the test that found it."""

import threading

from conftest import intent
from writing import held, journalled

from jidomem.index.oxigraph import OxigraphIndex
from jidomem.terms import literal


def summaries(triples):
    return sorted(value for _, predicate, value in triples if predicate.endswith("#summary>"))


def test_a_submission_whose_judging_was_interrupted_in_another_thread_is_judged_again(memory):  # C023
    """Thread A holds the turn and judges what B submitted when Ctrl-C reaches A."""
    line = memory.writer._line("p")
    judge, calls, answers = memory.writer._judge("p", intent()), [], []

    def interrupted_once(view, now):
        calls.append(now)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return judge(view, now)

    ours = memory.writer._judge("p", intent(summary="ours"))
    with line._lock:
        waiting = threading.Thread(target=lambda: answers.extend(line.submit([ours, interrupted_once])), daemon=True)
        waiting.start()
        while len(line._waiting) < 2:
            pass
        try:
            line._serve_one_block()
        except KeyboardInterrupt:
            assert len(line._waiting) == 2
    waiting.join(10)
    assert not waiting.is_alive()
    assert [answer.status for answer in answers] == ["asserted", "asserted"]


def test_a_commit_the_index_could_not_take_in_is_acknowledged_and_seen_by_the_next_look(memory):  # C020
    class Exhausted(OxigraphIndex):
        full = False

        def apply(self, graph, commit_id, triples):
            if self.full:
                raise MemoryError
            super().apply(graph, commit_id, triples)

    memory.index = memory.tail.index = Exhausted()
    memory.writer.submit_intent("p", intent())
    memory.index.full = True
    receipt = memory.writer.submit_intent("p", intent(summary="the second"))
    memory.index.full = False
    assert receipt.commit
    assert literal("the second") in summaries(held(memory))
    assert summaries(held(memory)) == summaries(journalled(memory))


def test_what_a_block_points_at_is_known_by_a_look_up(memory):
    view = memory.writer._line("p").view()
    view.add(("<urn:s>", "<urn:p>", f"<urn:o:{n}>") for n in range(3))
    assert view.mentions("<urn:o:2>")
    assert not view.mentions("<urn:o:3>")
