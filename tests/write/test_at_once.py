"""An acknowledged write is visible at once to every reader and to the next submission, in every process."""

import contextlib
import gc
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from conftest import decision, intent
from test_writer import no_file_above
from writing import GRAPH, open_with, refusal, triples_of, values_of

import jidomem
from jidomem.errors import Conflict, IdempotencyMismatch, JidomemError
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


@pytest.mark.parametrize("way", READS)
def test_whoever_reads_sees_what_was_acknowledged_just_before(memory, way):
    memory.writer.submit_intent("p", intent(summary="first"))  # the index is open, and level
    READS[way](memory, memory.writer.submit_intent("p", intent(summary="second")).iri)

    receipt = memory.writer.submit_intent("p", intent())

    assert any(SUMMARY.strip('"') in found for found in _texts(READS[way](memory, receipt.iri)))


def anew(memory):
    """The content of an index that was just built from the journal."""
    with jidomem.open(memory.settings.root) as another:
        return triples_of(another)


def _texts(found):
    return [found] if isinstance(found, str) else found


def test_a_query_of_the_index_itself_sees_it_and_how_far_it_reaches(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    receipt = memory.writer.submit_intent("p", intent())

    assert memory.index.mark(GRAPH).version == memory.journal.head(Stream("p"))
    found = memory.index.query(f"SELECT ?s {{ <{receipt.iri}> {jido('summary')} ?s }}", graphs=[GRAPH])
    assert found == Solutions(("s",), ((SUMMARY,),))


def test_the_next_intent_is_judged_with_it_in_view(memory):
    first = memory.writer.submit_intent("p", decision(topic="store", idempotency_key="k"))

    assert memory.writer.submit_intent("p", decision(topic="store", idempotency_key="k")) == first
    assert memory.writer.submit_intent("p", decision(topic="store")).iri == first.iri
    assert isinstance(refusal(memory.writer.submit_intent, "p", decision(topic="store", summary="Use git")), Conflict)
    other = decision(summary="another", idempotency_key="k")
    assert isinstance(refusal(memory.writer.submit_intent, "p", other), IdempotencyMismatch)
    second = memory.writer.submit_intent("p", decision(topic="store", summary="Use git", supersedes=[first.iri]))
    stale = refusal(memory.writer.submit_intent, "p", decision(topic="x", summary="y", supersedes=[first.iri]))
    assert stale.conflicts[0].resolve_with == {"supersedes": [second.iri]}
    assert values_of(memory, first.iri, "supersededBy") == [iri(second.iri)]
    assert triples_of(memory) == anew(memory)


def test_what_a_refused_write_would_have_said_is_not_known_afterwards(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    with no_file_above(100), pytest.raises(JidomemError, match="could not be written"):
        memory.writer.submit_intent("p", decision(topic="store"))

    receipt = memory.writer.submit_intent("p", decision(topic="store", summary="Use git"))

    assert (receipt.status, receipt.conflicts) == ("asserted", ())
    assert triples_of(memory) == anew(memory)


def test_two_who_write_in_turn_are_judged_with_what_the_other_kept(tmp_path):
    with open_with(tmp_path) as mine, jidomem.open(tmp_path / "root") as theirs:
        for number in range(3):
            receipt = mine.writer.submit_intent("p", decision(topic=f"t{number}", summary=f"mine {number}"))
            clash = decision(topic=f"t{number}", summary=f"theirs {number}")
            assert refusal(theirs.writer.submit_intent, "p", clash).conflicts[0].iri == receipt.iri
            assert theirs.writer.submit_intent("p", clash | {"supersedes": [receipt.iri]}).status == "asserted"
            again = decision(topic=f"t{number}", summary=f"mine again {number}", supersedes=[receipt.iri])
            assert refusal(mine.writer.submit_intent, "p", again).conflicts[0].kind == "stale_supersession"
        assert triples_of(mine) == triples_of(theirs) == anew(mine)


def test_descriptions_are_known_to_the_intents_after_them_in_every_stream(memory):
    memory.writer.submit_intent("p", intent())
    module = iri("https://example.org/module")
    rows = [(module, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", jido("Module"))]

    assert memory.writer.declare("p", rows) == []
    assert memory.writer.declare("p", rows) == []
    memory.writer.append("p", "codebase", [(module, LABEL, '"the module"')])

    assert memory.writer.append("p", "codebase", [(module, LABEL, '"the module"')]).status == "deduplicated"
    assert triples_of(memory) == anew(memory)


def test_what_is_known_is_given_up_when_it_is_much_and_nothing_is_missed_then(memory, monkeypatch):
    monkeypatch.setattr("jidomem.write.group_commit.VIEW_TRIPLES", 60)
    first = memory.writer.submit_intent("p", decision(topic="store"))
    for number in range(12):
        memory.writer.submit_intent("p", intent(summary=f"fact {number}"))

    assert refusal(memory.writer.submit_intent, "p", decision(topic="store", summary="x")).conflicts[0].iri == first.iri
    assert triples_of(memory) == anew(memory)


def test_an_id_that_a_source_gives_twice_is_noticed_unless_it_is_ours_that_never_does(tmp_path):
    with open_with(tmp_path) as memory:
        memory.writer.submit_intent("p", intent())
    with open_with(tmp_path) as again:  # its source begins anew
        assert refusal(again.writer.submit_intent, "p", intent(summary="another")).violations[0].code == "iri_exists"
    with jidomem.open(tmp_path / "root") as memory:
        receipts = [memory.writer.submit_intent("p", intent(summary=f"fact {number}")) for number in range(3)]
        assert refusal(memory.writer.submit_intent, "p", intent(iri=receipts[0].iri, summary="x")).violations
        assert triples_of(memory) == anew(memory)


def test_a_single_submission_waits_for_no_batch_that_another_thread_submits(memory):
    begun, batch = threading.Event(), [intent(summary=f"the {number}th of many") for number in range(600)]

    def coming():
        for number, each in enumerate(batch):
            if number == 1:
                begun.set()
            yield each

    receipts = []
    thread = threading.Thread(target=lambda: receipts.extend(memory.writer.submit_many("p", [*coming()])))
    thread.start()
    begun.wait()
    while not memory.journal.head(Stream("p")).heads:
        time.sleep(0.001)
    alone = [memory.writer.submit_intent("p", intent(summary=f"alone {number}")) for number in range(3)]
    thread.join()

    assert {each.status for each in receipts} == {"asserted"}
    positions = [each.version.position for each in receipts]
    assert positions == sorted(positions)
    assert max(each.version.position for each in alone) < positions[-1]
    assert triples_of(memory) == anew(memory)


def test_each_caller_gets_a_commit_of_its_single_submission_whatever_the_others_submit(memory):
    memory.writer.submit_intent("p", intent(summary="first"))

    def submit(number):
        if number % 3:
            return [memory.writer.submit_intent("p", intent(summary=f"single {number}"))]
        return memory.writer.submit_many("p", [intent(summary=f"many {number} {each}") for each in range(120)])

    with ThreadPoolExecutor(8) as pool:
        receipts = [receipt for some in pool.map(submit, range(16)) for receipt in some]

    assert len({receipt.iri for receipt in receipts}) == len(receipts) == 10 + 6 * 120
    assert {receipt.status for receipt in receipts} == {"asserted"}
    assert triples_of(memory) == anew(memory)


@pytest.mark.parametrize(
    ("name", "atomic"), [("lock", False), ("hold", False), ("gc_paused", False), ("lock", True), ("hold", True)]
)
def test_an_interrupt_between_the_entry_and_the_block_of_a_context_leaves_no_lock(memory, monkeypatch, name, atomic):
    memory.journal.wait, enter, interrupts = 0.1, contextlib._GeneratorContextManager.__enter__, []

    def interrupted_enter(self):
        result = enter(self)
        if self.gen.__name__ == name and not interrupts:
            interrupts.append(KeyboardInterrupt())
            raise interrupts[0]  # as a signal that arrives when the call above has returned
        return result

    one = intent(summary="interrupted")
    monkeypatch.setattr(contextlib._GeneratorContextManager, "__enter__", interrupted_enter)
    with pytest.raises(KeyboardInterrupt):
        memory.writer.submit_many("p", [one], atomic=atomic)

    assert interrupts  # the exception is alive, and with it its traceback
    assert gc.isenabled()
    assert memory.writer.submit_intent("p", intent(summary="next")).status == "asserted"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupted_writers_lose_no_submission_of_others_and_leave_no_lock(memory):
    memory.writer.submit_intent("p", intent(summary="first"))
    interrupted, ended, receipts, failures = 0, threading.Event(), [], []

    def interrupt(*_):
        raise KeyboardInterrupt

    def other():
        number = 0
        while not ended.is_set():
            number += 1
            try:
                receipts.append(memory.writer.submit_intent("p", intent(summary=f"other {number}")))
            except BaseException as failure:  # the other thread was just making the common commit durable
                failures.append(failure)

    former, thread = signal.signal(signal.SIGALRM, interrupt), threading.Thread(target=other)
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
        signal.signal(signal.SIGALRM, former)
        ended.set()
    thread.join(60)

    assert not thread.is_alive()
    assert interrupted > 10
    assert {receipt.status for receipt in receipts} == {"asserted"}
    assert [failure for failure in failures if getattr(failure, "code", None) != "outcome_unknown"] == []
    assert memory.writer.submit_intent("p", intent(summary="last")).status == "asserted"
    assert len(memory.journal.head(Stream("p")).heads) == 1
    assert triples_of(memory) == anew(memory)
