"""An acknowledged write is visible immediately to every reader and to the next submission, in every process."""

import gc
import random
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from conftest import decision, intent, wait_until
from test_writer import file_size_limit
from writing import GRAPH, open_with, refusal, triples_of, values_of

import jidomem
from jidomem.errors import Conflict, IdempotencyMismatch, JidomemError
from jidomem.index.follower import gc_paused
from jidomem.index.results import Solutions
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import LABEL, jido

SUMMARIES = f"SELECT ?s {{ ?i {jido('summary')} ?s }}"
SUMMARY = '"the build needs Rust 1.80"'
READS = {
    "the listed facts": lambda memory, item: [row["summary"] for row in memory.reader.list_facts_with_confidence("p")],
    "a memory": lambda memory, item: [str(memory.reader.get_memory("p", item))],
    "a query": lambda memory, item: [row["s"] for row in memory.reader.select("p", SUMMARIES)],
    "serialized": lambda memory, item: memory.reader.serialized("p", SUMMARIES).decode(),
    "the index's triples": lambda memory, item: [o for _, _, o in memory.index.triples(GRAPH, iri(item))],
    "what would say it again": lambda memory, item: [memory.writer.restated("p", item)["summary"]],
}


@pytest.mark.parametrize("operation", READS)
def test_each_read_returns_the_memory_that_was_acknowledged_before_it(memory, operation):
    memory.writer.submit_intent("p", intent(summary="first"))  # the index is open and current
    READS[operation](memory, memory.writer.submit_intent("p", intent(summary="second")).iri)

    receipt = memory.writer.submit_intent("p", intent())

    assert any(SUMMARY.strip('"') in text for text in texts_of(READS[operation](memory, receipt.iri)))


def rebuilt_triples(memory):
    """Return the triples of an index that is built from the journal."""
    with jidomem.open(memory.settings.root) as another:
        return triples_of(another)


def texts_of(result):
    return [result] if isinstance(result, str) else result


def test_an_index_query_returns_an_acknowledged_memory_and_the_index_reports_its_version(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    receipt = memory.writer.submit_intent("p", intent())

    assert memory.index.mark(GRAPH).version == memory.journal.head(Stream("p"))
    solutions = memory.index.query(f"SELECT ?s {{ <{receipt.iri}> {jido('summary')} ?s }}", graphs=[GRAPH])
    assert solutions == Solutions(("s",), ((SUMMARY,),))


def test_the_next_intent_is_judged_against_the_acknowledged_memory(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", idempotency_key="k"))

    assert memory.writer.submit_intent("p", decision(topic="store", idempotency_key="k")) == first
    assert memory.writer.submit_intent("p", decision(topic="store")).iri == first.iri
    assert isinstance(refusal(memory.writer.submit_intent, "p", decision(topic="store", summary="Use git")), Conflict)
    reused_key = decision(summary="another", idempotency_key="k")
    assert isinstance(refusal(memory.writer.submit_intent, "p", reused_key), IdempotencyMismatch)
    second = memory.writer.submit_intent("p", decision(topic="store", summary="Use git", supersedes=[first.iri]))
    stale = refusal(memory.writer.submit_intent, "p", decision(topic="x", summary="y", supersedes=[first.iri]))
    assert stale.conflicts[0].resolve_with == {"supersedes": [second.iri]}
    assert values_of(memory, first.iri, "supersededBy") == [iri(second.iri)]
    assert triples_of(memory) == rebuilt_triples(memory)


def test_a_failed_write_leaves_nothing_that_a_later_decision_conflicts_with(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    with file_size_limit(100), pytest.raises(JidomemError, match="could not be written"):
        memory.writer.submit_intent("p", decision(topic="store"))

    receipt = memory.writer.submit_intent("p", decision(topic="store", summary="Use git"))

    assert (receipt.status, receipt.conflicts) == ("asserted", ())
    assert triples_of(memory) == rebuilt_triples(memory)


def test_two_writers_in_turn_are_judged_against_each_others_memories(tmp_path):
    with open_with(tmp_path) as first_memory, jidomem.open(tmp_path / "root") as second_memory:
        for number in range(3):
            receipt = first_memory.writer.submit_intent("p", decision(topic=f"t{number}", summary=f"mine {number}"))
            clash = decision(topic=f"t{number}", summary=f"theirs {number}")
            assert refusal(second_memory.writer.submit_intent, "p", clash).conflicts[0].iri == receipt.iri
            assert second_memory.writer.submit_intent("p", clash | {"supersedes": [receipt.iri]}).status == "asserted"
            stale = decision(topic=f"t{number}", summary=f"mine again {number}", supersedes=[receipt.iri])
            assert refusal(first_memory.writer.submit_intent, "p", stale).conflicts[0].kind == "stale_supersession"
        assert triples_of(first_memory) == triples_of(second_memory) == rebuilt_triples(first_memory)


def test_descriptions_are_deduplicated_in_every_stream(memory):
    memory.writer.submit_intent("p", intent())
    module = iri("https://example.org/module")
    rows = [(module, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", jido("Module"))]

    assert memory.writer.declare("p", rows) == []
    assert memory.writer.declare("p", rows) == []
    memory.writer.append("p", "codebase", [(module, LABEL, '"the module"')])

    assert memory.writer.append("p", "codebase", [(module, LABEL, '"the module"')]).status == "deduplicated"
    assert triples_of(memory) == rebuilt_triples(memory)


def test_conflicts_are_still_detected_after_the_write_view_is_discarded_for_its_size(memory, monkeypatch):
    monkeypatch.setattr("jidomem.write.group_commit.VIEW_TRIPLES", 60)
    first = memory.writer.submit_intent("p", decision(topic="store"))
    for number in range(12):
        memory.writer.submit_intent("p", intent(summary=f"fact {number}"))

    assert refusal(memory.writer.submit_intent, "p", decision(topic="store", summary="x")).conflicts[0].iri == first.iri
    assert triples_of(memory) == rebuilt_triples(memory)


def test_an_id_generated_twice_is_refused_and_the_own_generator_repeats_none(tmp_path):
    with open_with(tmp_path) as memory:
        memory.writer.submit_intent("p", intent())
    with open_with(tmp_path) as reopened:  # its id source starts again
        assert refusal(reopened.writer.submit_intent, "p", intent(summary="another")).violations[0].code == "iri_exists"
    with jidomem.open(tmp_path / "root") as memory:
        receipts = [memory.writer.submit_intent("p", intent(summary=f"fact {number}")) for number in range(3)]
        assert refusal(memory.writer.submit_intent, "p", intent(iri=receipts[0].iri, summary="x")).violations
        assert triples_of(memory) == rebuilt_triples(memory)


def test_a_single_submission_does_not_wait_for_the_batch_of_another_thread(memory):
    started, batch = threading.Event(), [intent(summary=f"the {number}th of many") for number in range(600)]

    def intents_of_the_batch():
        for number, values in enumerate(batch):
            if number == 1:
                started.set()
            yield values

    receipts = []
    thread = threading.Thread(target=lambda: receipts.extend(memory.writer.submit_many("p", [*intents_of_the_batch()])))
    thread.start()
    started.wait()
    wait_until(lambda: memory.journal.head(Stream("p")).heads)
    single_receipts = [memory.writer.submit_intent("p", intent(summary=f"alone {number}")) for number in range(3)]
    thread.join()

    assert {values.status for values in receipts} == {"asserted"}
    positions = [values.version.position for values in receipts]
    assert positions == sorted(positions)
    assert max(values.version.position for values in single_receipts) < positions[-1]
    assert triples_of(memory) == rebuilt_triples(memory)


def test_concurrent_callers_each_get_receipts_of_their_own_submissions(memory):
    memory.writer.submit_intent("p", intent(summary="first"))

    def submit(number):
        if number % 3:
            return [memory.writer.submit_intent("p", intent(summary=f"single {number}"))]
        return memory.writer.submit_many("p", [intent(summary=f"many {number} {each}") for each in range(120)])

    with ThreadPoolExecutor(8) as pool:
        receipts = [receipt for group in pool.map(submit, range(16)) for receipt in group]

    assert len({receipt.iri for receipt in receipts}) == len(receipts) == 10 + 6 * 120
    assert {receipt.status for receipt in receipts} == {"asserted"}
    assert triples_of(memory) == rebuilt_triples(memory)


@pytest.mark.parametrize(
    ("name", "atomic"), [("lock", False), ("hold", False), ("gc_paused", False), ("lock", True), ("hold", True)]
)
def test_an_interrupt_on_entry_of_a_context_leaves_no_lock(memory, monkeypatch, name, atomic):
    generator_context = type(gc_paused())
    memory.journal.wait, enter, interrupts = 0.1, generator_context.__enter__, []

    def interrupted_enter(self):
        result = enter(self)
        if self.gen.__name__ == name and not interrupts:
            interrupts.append(KeyboardInterrupt())
            raise interrupts[0]  # like a signal that arrives after the call above has returned
        return result

    interrupted_intent = intent(summary="interrupted")
    monkeypatch.setattr(generator_context, "__enter__", interrupted_enter)
    with pytest.raises(KeyboardInterrupt):
        memory.writer.submit_many("p", [interrupted_intent], atomic=atomic)

    assert interrupts  # the reference keeps the exception and its traceback alive
    assert gc.isenabled()
    assert memory.writer.submit_intent("p", intent(summary="next")).status == "asserted"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_a_lock_is_released_leaves_no_lock(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    memory.journal.wait, interrupts = 0.1, []

    def interrupt(frame, event, argument):
        if frame.f_code.co_name in ("close", "__del__") and "descriptor" in frame.f_code.co_names and not interrupts:
            interrupts.append(frame.f_code.co_qualname)
            raise KeyboardInterrupt  # like a signal that arrives at the call

    sys.settrace(interrupt)
    try:
        with suppress(KeyboardInterrupt):
            memory.writer.submit_intent("p", intent(summary="interrupted"))
    finally:
        sys.settrace(None)

    assert interrupts == ["LockedFile.__del__"]
    assert memory.writer.submit_intent("p", intent(summary="next")).status == "asserted"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupted_writers_lose_no_submission_of_others_and_leave_no_lock(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    interrupted, ended, receipts, failures = 0, threading.Event(), [], []

    def interrupt(*_):
        raise KeyboardInterrupt

    def submit_others():
        number = 0
        while not ended.is_set():
            number += 1
            try:
                receipts.append(memory.writer.submit_intent("p", intent(summary=f"other {number}")))
            except BaseException as failure:  # the other thread was just making the common commit durable
                failures.append(failure)

    former_handler, thread = signal.signal(signal.SIGALRM, interrupt), threading.Thread(target=submit_others)
    thread.start()
    try:
        for number in range(300):
            with suppress(KeyboardInterrupt):
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.Random(number).random() * 0.01)
                    memory.writer.submit_many("p", [intent(summary=f"n{number} {each}") for each in range(3)])
                except KeyboardInterrupt:
                    interrupted += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, former_handler)
        ended.set()
    thread.join(60)

    assert not thread.is_alive()
    assert interrupted > 10
    assert {receipt.status for receipt in receipts} == {"asserted"}
    assert [failure for failure in failures if getattr(failure, "code", None) != "outcome_unknown"] == []
    assert memory.writer.submit_intent("p", intent(summary="last")).status == "asserted"
    assert len(memory.journal.head(Stream("p")).heads) == 1
    assert triples_of(memory) == rebuilt_triples(memory)
