"""The similar memories of a receipt: repeated or near memories, found without delaying or failing the write."""

import json
import math
import signal
import subprocess
import sys
import threading

import pytest
from conftest import files, fixed_sources, intent, wait_until

import jidomem
from jidomem import JidomemError
from jidomem.curation.review_queue import queue
from jidomem.journal.journal import Stream
from jidomem.models.embeddings import HashedStems
from jidomem.records.active import REASON

RECURSION = "No recursion anywhere, so that whatever should be bounded is bounded"
REPHRASED = "No recursion anywhere at all, so that all of the code is bounded"


class Scripted(HashedStems):
    """An embedder by stems that records its texts, and fails or returns the vectors of *value* if configured."""

    def __init__(self, fails=None, value=None):
        super().__init__(64)
        self.texts, self.fails, self.value = [], fails, value

    def generate(self, texts):
        self.texts += texts
        if self.fails is not None:
            self.fails()
        return super().generate(texts) if self.value is None else [[self.value] * 64 for _ in texts]


def open_root(root, **options):
    memory = jidomem.open(root, project="p", agent="ana", **options)
    memory.similar_within = 60.0
    return memory


@pytest.fixture(autouse=True)
def with_similar(monkeypatch):
    """Enable similar memories in receipts, as by default."""
    monkeypatch.setattr("jidomem.runtime.similar.ReceiptSearch.default", "ask")


@pytest.fixture
def memory(root):
    with open_root(root) as opened_memory:
        yield opened_memory


def relations(receipt):
    return [(each.id, each.relation) for each in receipt.similar]


def test_a_receipt_names_a_repeated_memory(memory):
    first = memory.remember(RECURSION, asserted_by="ben")
    (known,) = memory.remember(REPHRASED).similar

    assert (known.id, known.text, known.relation) == (first.iri, RECURSION, "repeats")
    assert (known.asserted_by, known.differences) == ("ben", ())
    assert 0.5 <= known.likeness <= 1.0


def test_the_receipt_of_a_corrected_text_names_similar_memories_but_not_the_one_it_replaces(memory):
    old = memory.remember("Short names everywhere").iri
    other = memory.remember(RECURSION, asserted_by="ben").iri

    supersede = memory.writer.correct("p", old, supersede=REPHRASED)
    revised = memory.writer.revise("p", supersede.iri, changes={"summary": REPHRASED + " now"}, reason=None)
    tagged = memory.writer.correct("p", revised.iri, changes={"topic": "loops"})

    assert [relations(each) for each in (supersede, revised)] == [[(other, "repeats")]] * 2
    assert tagged.similar is None


@pytest.mark.parametrize("choice", ["supersede", "confirm"])
def test_the_choices_of_a_similar_memory_are_calls_that_settle_it(memory, choice):
    first = memory.remember(RECURSION)
    receipt = memory.remember(REPHRASED)
    (known,) = receipt.similar
    choices = receipt.choices(known)
    assert receipt.to_dict()["similar"][0]["choices"] == choices

    call = choices[choice][choices[choice].index("memory.writer") :]
    if REASON in call:
        with pytest.raises(JidomemError, match="stands in a choice for your own words"):
            eval(call, {"memory": memory})
        call = call.replace(REASON, "measured anew")
    eval(call, {"memory": memory})
    assert first.iri not in {row["fact"] for row in memory.ask("facts")}
    assert len(memory.ask("facts")) == 1


def test_a_receipt_names_the_differing_values_of_a_similar_memory(memory):
    memory.remember("The connection pool has 5 threads")
    (known,) = memory.remember("The connection pool has 20 threads").similar

    assert (known.relation, known.differences) == ("near", ("20 / 5 threads",))


def test_a_near_memory_is_not_to_be_confirmed_though_no_value_differs(memory):
    memory.remember("ACME Corp uses the SAP integration")
    receipt = memory.remember("ACME is connected to us with the integration for SAP")

    (known,) = receipt.similar
    assert (known.relation, known.differences, [*receipt.choices(known)]) == ("near", (), ["supersede", "keep"])


def test_the_receipt_of_an_undo_names_a_memory_in_conflict_with_the_restored_one(memory):
    old = memory.remember("The connection pool has 5 threads").iri
    memory.writer.invalidate("p", old, reason="measured anew")
    rival = memory.remember("The connection pool has 20 threads").iri

    preview = memory.writer.undo("p", old, dry_run=True)
    first = memory.writer.correct("p", old, undo=True, reason="it was right")
    memory.writer.invalidate("p", first.iri, reason="no")
    second = memory.writer.undo("p", first.iri)

    assert preview.similar is None
    assert [relations(receipt) for receipt in (first, second)] == [[(rival, "near")]] * 2


def test_the_receipt_of_an_unrelated_memory_has_no_similar_memory(memory):
    assert memory.remember(RECURSION).similar == ()
    receipt = memory.remember("The office closes at noon on Fridays")

    assert receipt.similar == ()
    assert receipt.to_dict()["similar"] == []


def test_a_memory_written_by_another_process_is_found(memory, root):
    memory.remember("The office closes at noon on Fridays")
    memory.recall("office")
    with open_root(root) as other:
        first = other.remember(RECURSION)

    assert relations(memory.remember(REPHRASED)) == [(first.iri, "repeats")]


def test_writes_of_this_process_are_still_found_after_they_are_indexed(memory):
    first = memory.remember(RECURSION)
    memory.recall("recursion")
    for number in range(20):
        memory.remember(f"House {number} of the street is painted {'red' if number % 2 else 'blue'}")

    assert relations(memory.remember(REPHRASED)) == [(first.iri, "repeats")]


@pytest.mark.parametrize("field", ["supersedes", "coexists_with"])
@pytest.mark.parametrize(
    "name",
    [str, lambda iri: iri[-8:], lambda iri: iri[-13:].upper(), lambda iri: iri.rpartition("/")[2][:-3]],
    ids=["IRI", "short id", "end", "beginning"],
)
def test_a_memory_named_as_superseded_or_coexisting_is_not_similar(memory, field, name):
    first = memory.remember(RECURSION)

    assert memory.remember(REPHRASED, **{field: [name(first.iri)], "about": ["src"]}).similar == ()


@pytest.mark.parametrize("field", ["about", "evidence"])
def test_the_end_of_an_id_as_text_in_about_or_evidence_names_no_memory(memory, field):
    first = memory.remember(RECURSION, iri="https://jido.ai/memory/proxy-cache-plan")

    assert relations(memory.remember(REPHRASED, **{field: ["plan"]})) == [(first.iri, "repeats")]


@pytest.mark.parametrize("field", ["about", "evidence"])
@pytest.mark.parametrize("name", [str, lambda iri: iri[-8:]], ids=["IRI", "short id"])
def test_a_memory_named_as_evidence_or_subject_is_not_similar(memory, field, name):
    first = memory.remember(RECURSION)

    assert memory.remember(REPHRASED, **{field: [name(first.iri)]}).similar == ()


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_near_repetition_of_a_superseded_memory_has_a_warning_with_the_successor(memory, is_indexed):
    first = memory.remember(RECURSION, asserted_by="ben")
    second = memory.remember("The office closes at noon on Fridays", supersedes=[first.iri], reason="no code is left")
    if is_indexed:
        memory.recall("recursion")
    receipt = memory.remember(REPHRASED)

    (ended,) = receipt.similar
    assert (ended.id, ended.relation, ended.status, ended.replaced_by) == (
        first.iri, "repeats", "superseded", second.iri,
    )  # fmt: skip
    assert [*receipt.choices(ended)] == ["invalidate", "supersede", "keep"]
    assert receipt.warnings[0].startswith(f"{first.iri} said nearly the same and ended on ")
    assert f" because no code is left (replaced by {second.iri}: " in receipt.warnings[0]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_near_repetition_of_a_withdrawn_memory_has_a_warning_with_the_reason(memory, is_indexed):
    first = memory.remember(RECURSION)
    memory.recall("recursion")
    memory.writer.invalidate("p", first.iri, reason="measured")
    if is_indexed:
        memory.recall("recursion")
    receipt = memory.remember(REPHRASED)

    assert [(each.id, each.status) for each in receipt.similar] == [(first.iri, "invalidated")]
    assert receipt.warnings[0].endswith(" because measured")


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_near_repetition_of_a_rejected_decision_has_a_warning_with_the_reason(memory, is_indexed):
    rejected = memory.remember(
        "Use Kafka for the events of orders", type="decision", rationale="too heavy", status="rejected"
    )
    if is_indexed:
        memory.recall("Kafka")
    receipt = memory.remember("Use Kafka for events of all orders", type="decision", rationale="fast")

    assert [(each.id, each.status) for each in receipt.similar] == [(rejected.iri, "rejected")]
    assert receipt.warnings[0].endswith(" because too heavy")


def test_a_memory_that_says_nearly_the_same_as_its_ended_version_has_no_warning(memory):
    first = memory.remember(RECURSION)
    second = memory.writer.correct("p", first.iri, supersede=REPHRASED)
    receipt = memory.remember(f"{REPHRASED}, always")

    assert relations(receipt) == [(second.iri, "repeats")]
    assert receipt.warnings == ()


def test_a_statement_with_another_value_than_an_ended_memory_has_no_warning(memory):
    first = memory.remember("The connection pool has 5 threads")
    memory.writer.invalidate("p", first.iri, reason="measured")

    assert memory.remember("The connection pool has 20 threads").similar == ()


@pytest.mark.parametrize("link", ["supersedes", "revives", "evidence"])
def test_a_near_repetition_linked_to_the_ended_memory_has_no_warning(memory, link):
    first = memory.remember(RECURSION)
    end = memory.writer.invalidate("p", first.iri, reason="measured")
    links = {"supersedes": {"supersedes": [end.iri], "revives": [first.iri]}, "revives": {"revives": [first.iri]}}
    receipt = memory.remember(REPHRASED, **links.get(link, {link: [first.iri]}))

    assert (receipt.warnings, receipt.similar) == ((), ())


def test_a_pending_proposal_is_no_ended_memory(memory):
    memory.writer.submit_intent("p", intent(summary=RECURSION), propose=True)
    memory.recall("recursion")

    assert memory.remember(REPHRASED).similar == ()


def test_a_proposal_is_not_similar_but_its_receipt_names_similar_memories(memory):
    first = memory.remember(RECURSION)
    memory.writer.submit_intent("p", intent(summary=REPHRASED), propose=True)

    assert relations(memory.writer.submit_intent("p", intent(summary=f"{REPHRASED} here"), propose=True)) == [
        (first.iri, "repeats")
    ]


def test_an_equal_memory_is_deduplicated_without_similar_memories(memory):
    memory.writer.submit_intent("p", intent(summary=RECURSION))
    receipt = memory.writer.submit_intent("p", intent(summary=RECURSION))

    assert (receipt.status, receipt.similar) == ("deduplicated", None)
    assert "similar" not in receipt.to_dict()


def test_a_dry_run_names_the_similar_memories(memory):
    first = memory.remember(RECURSION)
    receipt = memory.remember(REPHRASED, dry_run=True)

    assert (receipt.commit, relations(receipt)) == (None, [(first.iri, "repeats")])


def test_a_batch_searches_no_similar_memories(memory):
    memory.remember(RECURSION)
    (receipt,) = memory.writer.submit_many("p", [intent(summary=REPHRASED)])

    assert receipt.similar is None


def test_a_retry_has_the_same_receipt(memory):
    memory.remember(RECURSION)
    first = memory.remember(REPHRASED, idempotency_key="k")
    memory.remember(f"{RECURSION} today", asserted_by="ben")  # nearer, but not there when the first one was written
    second = memory.remember(REPHRASED, idempotency_key="k")

    assert first == second
    assert relations(first)


def test_the_vector_of_a_new_memory_is_computed_once(root):
    embedder = Scripted()
    with open_root(root, embedder=embedder) as memory:
        memory.remember(RECURSION, topic="recursion")
        memory.remember("The office closes at noon", type="convention")
        memory.embedding.embed("p")
        memory.remember(REPHRASED, evidence=["the log of run 413"])
        memory.remember(f"{REPHRASED} now", type="decision", rationale="few users", alternatives=["Ship on Mondays"])
        memory.embedding.embed("p")

        assert memory.embedding.waiting("p") == 0
        assert len(embedder.texts) == len(set(embedder.texts)) == 4
        assert memory.embedding.status("p")["vectors"] == 4


def test_searches_one_after_another_share_threads_that_end_with_the_root(root):
    threads = set()
    with open_root(root, embedder=Scripted(lambda: threads.add(threading.current_thread()))) as memory:
        memory.remember(RECURSION)
        for number in range(8):
            assert memory.remember(f"{REPHRASED} {number}").similar

    assert 1 <= len(threads) < 8
    assert not any(thread.is_alive() for thread in threads)


def test_a_process_forked_from_one_with_a_waiting_thread_searches_with_its_own(root):
    script = f"""
import os, jidomem
memory = jidomem.open({str(root)!r}, project="p", agent="ana")
memory.similar_within = 60.0
memory.remember({RECURSION!r})
while not memory._search.idle:
    pass
if os.fork():
    os.wait()
else:
    print(len(memory.remember({REPHRASED!r}).similar), flush=True)
    os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_vectors_are_computed_only_for_memories_with_common_words(root):
    embedder = Scripted()
    with open_root(root, embedder=embedder) as memory:
        for text in (RECURSION, "The office closes at noon on Fridays", "Orders are shipped within a week"):
            memory.remember(text)
        assert embedder.texts == []

        assert relations(memory.remember(REPHRASED))
        assert sorted(embedder.texts) == sorted([RECURSION, REPHRASED])


def failure():
    raise RuntimeError("no model")


@pytest.mark.parametrize("embedder", [Scripted(failure), Scripted(value=math.nan)], ids=["raises", "NaN"])
def test_without_a_vector_memories_are_compared_by_words(root, embedder):
    with open_root(root, embedder=embedder) as memory:
        first = memory.remember(RECURSION)

        assert relations(memory.remember(REPHRASED)) == [(first.iri, "repeats")]


def test_a_slow_embedder_delays_no_receipt(root):
    released = threading.Event()
    with open_root(root, embedder=Scripted(released.wait)) as memory:
        memory.similar_within = 0.01
        memory.remember(RECURSION)
        receipt = memory.remember(REPHRASED)
        released.set()

        assert (receipt.status, receipt.similar) == ("asserted", None)


@pytest.fixture
def thread_limit(monkeypatch):
    """Refuse a new thread for the search, as at the limit of threads."""
    start = threading.Thread.start

    def start_others(thread):
        if thread.name == "jidomem-similar":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_others)


@pytest.mark.parametrize("policy", ["ask", "propose"])
def test_without_a_search_thread_a_memory_is_recorded(root, thread_limit, policy):
    root.mkdir()
    (root / "config.toml").write_text(f'[on_similar]\nfact = "{policy}"\n')
    with open_root(root) as memory:
        for number in range(20):  # more than the limit of searches
            receipt = memory.remember(f"House {number} of the street is red")

        assert (receipt.status, receipt.similar) == ("asserted", None)


@pytest.mark.parametrize("is_repeated", [False, True])
def test_an_interrupt_during_the_search_returns_the_receipt_and_a_second_one_is_raised(root, is_repeated):
    released = threading.Event()

    def interrupt():
        if not released.wait(0.5):  # a signal just before the wait would not end it
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            released.wait()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open_root(root, embedder=Scripted(interrupt)) as memory:
            memory.remember(RECURSION)
            receipt = memory.remember(REPHRASED)
            assert (receipt.status, receipt.similar) == ("asserted", None)
            if is_repeated:
                with pytest.raises(KeyboardInterrupt):
                    memory.remember(f"{REPHRASED} again")
            released.set()
    finally:
        released.set()
        signal.signal(signal.SIGINT, before)


def test_a_late_comparison_required_by_the_policy_gives_a_warning(root):
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "propose"\n')
    released = threading.Event()
    with open_root(root, embedder=Scripted(released.wait)) as memory:
        memory.similar_within = 0.01
        memory.remember(RECURSION, type="convention")
        tried = memory.remember(REPHRASED, dry_run=True)
        late = memory.remember(REPHRASED)
        another = memory.remember("The office closes at noon", type="convention")
        released.set()
        memory.similar_within = 60.0
        in_time = memory.remember("Water boils at a lower temperature on mountains")

        assert late.status == "asserted"
        assert [len(each.warnings) for each in (tried, late, another, in_time)] == [1, 1, 0, 0]
        assert "on_similar" in late.warnings[0]


def test_receipts_wait_less_after_a_late_search_until_one_is_in_time(root):
    released = threading.Event()
    with open_root(root, embedder=Scripted(released.wait)) as memory:
        memory.similar_within = 0.01
        memory.remember(RECURSION)
        memory.remember(REPHRASED)
        assert memory._search.is_late

        released.set()
        memory.similar_within = 60.0
        memory.remember("The office closes at noon on Fridays")
        for thread in threading.enumerate():
            if thread.name == "jidomem-similar":
                thread.join()
        assert not memory._search.is_late
        assert relations(memory.remember(f"{REPHRASED} again"))


def test_a_damaged_search_index_fails_no_write(memory, root):
    first = memory.remember(RECURSION)
    memory.recall("recursion")
    memory.texts.close()
    (root / "cache" / "text" / "p.sqlite").write_bytes(b"not SQLite" * 1_000)

    assert memory.remember("The office closes at noon on Fridays").similar is None
    memory.recall("recursion")
    assert relations(memory.remember(REPHRASED)) == [(first.iri, "repeats")]


def test_a_large_search_index_is_not_built_before_a_receipt(root, monkeypatch):
    monkeypatch.setattr("jidomem.index.search_index.MAX_AWAITED", 1)
    with open_root(root) as memory:
        memory.remember(RECURSION)
    with open_root(root) as memory:
        assert memory.remember(REPHRASED).similar is None
        memory.recall("recursion")
        memory.texts.wait(Stream("p"), 60.0, lambda added, total: None)

        assert memory.remember(f"{REPHRASED} here").similar


def test_a_large_search_index_is_built_in_a_background_thread(root, monkeypatch):
    monkeypatch.setattr("jidomem.index.search_index.MAX_AWAITED", 1)
    builders = set()
    with open_root(root) as memory:
        memory.writer.submit_many("p", [intent(summary=f"Tree {number} bears apples") for number in range(3)])
        fill = memory.texts._fill
        monkeypatch.setattr(
            memory.texts, "_fill", lambda *arguments: (builders.add(threading.current_thread().name), fill(*arguments))
        )
        for number in range(20):
            memory.remember(f"House {number} of the street is red")
        wait_until(lambda: builders)

        assert builders == {"jidomem-texts-p"}


def test_a_write_with_a_late_search_is_found_once(memory):
    first = memory.remember("The office closes at noon on Fridays")
    memory.recall("office")
    released, find = threading.Event(), memory._search._find

    def late(project, intent_, receipt):
        released.wait()
        return find(project, intent_, receipt)

    memory._search._find = late
    writer = threading.Thread(target=memory.remember, args=(RECURSION,))
    writer.start()
    while len(memory.ask("facts")) < 2:
        pass
    memory._search._find = find
    memory.recall("recursion")
    memory.remember("The office opens at nine")
    released.set()
    writer.join()
    matches = memory.remember(REPHRASED).similar

    assert first.iri not in {each.id for each in matches}
    assert [each.text for each in matches] == [RECURSION]


def test_recent_writes_in_memory_are_limited_if_the_index_cannot_be_read(memory, monkeypatch):
    def fail(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(memory.texts, "read", fail)
    monkeypatch.setattr("jidomem.runtime.similar.MOST_ADDED", 5)
    monkeypatch.setattr("jidomem.runtime.similar.MOST_PROJECTS", 2)
    for project in ("q", "r", "p"):
        for number in range(8):
            memory.remember(f"House {number} of the street is red", project=project)
    writes = memory._search._recent

    assert {project: len(each) for project, each in writes.items()} == {"r": 5, "p": 5}


def test_similar_memories_are_disabled_for_a_kind_by_the_policy(root):
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "off"\n')
    with open_root(root) as memory:
        memory.remember(RECURSION)
        memory.recall("recursion")

        assert memory.remember(REPHRASED).similar is None
        assert memory.remember(REPHRASED, type="convention").similar


def test_a_similar_memory_is_proposed_by_the_policy_and_the_queue_names_the_other(root):
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "propose"\n')
    with open_root(root) as memory:
        first = memory.remember(RECURSION)
        second = memory.remember(REPHRASED)
        unrelated = memory.remember("The office closes at noon on Fridays")
        linked = memory.remember(f"{REPHRASED}, as before", coexists_with=[first.iri])

        assert [each.status for each in (first, second, unrelated, linked)] == [
            "asserted",
            "proposed",
            "asserted",
            "asserted",
        ]
        assert first.warnings == unrelated.warnings == ()
        assert relations(second)[0] == (first.iri, "repeats")
        assert first.iri in second.warnings[0]
        (pending,) = queue(memory.reader, "p", memory.sources.now())
        assert (pending.item, pending.kind, pending.other) == (second.iri, "proposal", first.iri)
        assert memory.writer.settle("p", second.iri, "keep-both").status == "asserted"


def test_an_invalid_on_similar_value_is_refused_with_the_valid_ones(root):
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "merge"\n')
    with pytest.raises(JidomemError) as refusal:
        open_root(root)

    assert refusal.value.code == "invalid_config"
    assert all(word in str(refusal.value) + refusal.value.hint for word in ("on_similar.fact", "ask", "propose", "off"))


def test_the_journal_is_identical_with_and_without_the_similarity_search(tmp_path):
    journals = []
    for name in ("ask", "off"):
        root = tmp_path / name / "root"
        root.mkdir(parents=True)
        (root / "config.toml").write_text(f'[on_similar]\nfact = "{name}"\n')
        with open_root(root, sources=fixed_sources()) as memory:
            for text in (RECURSION, REPHRASED):
                memory.remember(text, idempotency_key=text)
        journals.append({path: data for path, data in files(root).items() if path.startswith("projects")})

    assert journals[0] == journals[1]
    assert "similar" not in json.dumps([data.decode() for data in journals[0].values()])


def test_a_short_statement_with_only_a_common_subject_is_no_repetition(memory):
    plan = memory.remember("ACME Corp is on the Business plan").iri

    assert "repeats" not in dict(relations(memory.remember("ACME Corp is located in Madrid"))).values()
    assert (plan, "repeats") in relations(memory.remember("The Business plan is that of ACME Corp"))


VAULT = "Cards are vaulted at Basis Theory."


@pytest.mark.parametrize("text", [VAULT, "Cards are vaulted at Basis Theory", "cards are vaulted at Basis Theory."])
@pytest.mark.parametrize("kind", ["fact", "convention"])
def test_a_receipt_warns_that_a_withdrawn_memory_had_the_same_text(memory, text, kind):
    first = memory.remember(VAULT, topic="vault")
    memory.writer.invalidate("p", first.iri, reason="contract ended, Stripe keeps the cards now")
    receipt = memory.remember(text, topic="vault", asserted_by="ben", type=kind)

    (ended,) = receipt.similar
    assert (ended.id, ended.relation, ended.status, ended.asserted_by) == (first.iri, "repeats", "invalidated", "ana")
    assert [*receipt.choices(ended)] == ["invalidate", "keep"]
    day = memory.sources.now().date().isoformat()
    reason = "contract ended, Stripe keeps the cards now"
    assert receipt.warnings == (f"{first.iri} said the same and ended on {day} because {reason}",)


def test_a_receipt_warns_that_a_superseded_value_is_repeated_and_names_its_successor(memory):
    first = memory.remember("The API is limited to 120 requests a minute", topic="rate limit")
    text = "The API is limited to 200 requests a minute"
    second = memory.writer.correct("p", first.iri, supersede=text, reason="the database has 8 cores")
    receipt = memory.remember("The API is limited to 120 requests a minute", asserted_by="ben")

    ended, active = receipt.similar
    assert (ended.id, ended.status, ended.replaced_by) == (first.iri, "superseded", second.iri)
    assert (active.id, active.relation, active.differences) == (second.iri, "near", ("120 / 200 requests",))
    assert receipt.warnings[0].endswith(f" because the database has 8 cores (replaced by {second.iri}: {text})")
    assert second.iri in receipt.choices(ended)["supersede"]


def test_a_receipt_warns_that_a_decision_was_rejected(memory):
    fields = {"type": "decision", "topic": "event bus"}
    rejected = memory.remember("Use Kafka for events", rationale="too heavy to run", status="rejected", **fields)
    receipt = memory.remember("Use Kafka for events", rationale="fast", asserted_by="ben", **fields)

    (known,) = receipt.similar
    assert (known.id, known.status) == (rejected.iri, "rejected")
    assert "confirm" not in receipt.choices(known)
    assert receipt.warnings[0].endswith(" because too heavy to run")


def test_a_recorded_rejection_of_a_withdrawn_decision_has_no_warning(memory):
    fields = {"type": "decision", "topic": "event bus", "rationale": "fast"}
    first = memory.remember("Use Kafka for events", **fields)
    memory.writer.invalidate("p", first.iri, reason="too heavy")

    assert memory.remember("Use Kafka for events", status="rejected", **fields).warnings == ()


@pytest.mark.parametrize("link", ["supersedes", "revives", "evidence"])
def test_a_memory_linked_to_a_withdrawn_one_has_no_warning(memory, link):
    first = memory.remember(VAULT)
    end = memory.writer.invalidate("p", first.iri, reason="contract ended")
    links = {"supersedes": {"supersedes": [end.iri], "revives": [first.iri]}, "revives": {"revives": [first.iri]}}
    receipt = memory.remember(VAULT, **links.get(link, {link: [first.iri]}))

    assert (receipt.warnings, receipt.similar) == ((), ())


def test_a_repetition_of_a_confirmed_memory_has_no_warning(memory):
    first = memory.remember(VAULT)
    current = memory.writer.confirm("p", first.iri)
    receipt = memory.remember(VAULT, type="convention", asserted_by="ben")

    assert relations(receipt) == [(current.iri, "repeats")]
    assert receipt.warnings == ()


def test_the_last_of_several_withdrawn_memories_with_one_text_is_named(memory):
    for reason in ("first", "second"):
        last = memory.remember(VAULT)
        memory.writer.invalidate("p", last.iri, reason=reason)
    receipt = memory.remember(VAULT)

    assert [each.id for each in receipt.similar] == [last.iri]
    assert receipt.warnings[0].endswith("because second")


def test_a_dry_run_warns_like_the_write(memory):
    first = memory.remember(VAULT)
    memory.writer.invalidate("p", first.iri, reason="contract ended")
    receipt = memory.remember(VAULT, dry_run=True)

    assert receipt.warnings[0].endswith("because contract ended")
    assert receipt.choices(receipt.similar[0])["invalidate"].endswith(": do not write it")


def test_a_repeated_withdrawn_statement_is_proposed_by_the_policy(root):
    root.mkdir()
    (root / "config.toml").write_text('[on_similar]\nfact = "propose"\n')
    with open_root(root) as memory:
        first = memory.remember(VAULT)
        memory.writer.invalidate("p", first.iri, reason="contract ended")
        receipt = memory.remember(VAULT, asserted_by="ben")

        assert receipt.status == "proposed"
        assert any(f"it says again what ended with {first.iri}" in warning for warning in receipt.warnings)


def test_a_completed_task_is_named_with_its_status(memory):
    task = memory.remember("Add dead letter queue for webhooks", type="task", assigned_to="ana")
    completed = memory.writer.correct("p", task.iri, changes={"status": "Completed"})
    receipt = memory.remember("Add a dead letter queue for webhooks", type="task", assigned_to="ben")

    (known,) = receipt.similar
    assert (known.id, known.status) == (completed.iri, "Completed")
    assert receipt.choices(known)["keep"] == "if yours is to be done apart from it: nothing to do"
    day = memory.sources.now().date().isoformat()
    assert receipt.warnings == (f"{completed.iri} says the same, already Completed on {day}",)


def test_a_resolved_error_is_named_with_its_lesson(memory):
    error = memory.remember("The webhook handler returned 500 for events seen twice", type="error")
    lesson = memory.remember("Answer 200 for events already seen", type="lesson_learned", evidence=[error.iri])
    resolved = memory.writer.correct("p", error.iri, changes={"status": "Resolved"})
    receipt = memory.remember("The webhook handler returns 500 for events seen twice", type="error")

    (known,) = receipt.similar
    assert (known.id, known.status) == (resolved.iri, "Resolved")
    assert f"; see {lesson.iri}: Answer 200 for events already seen" in receipt.warnings[0]


def test_an_open_task_is_named_with_its_status_without_a_warning(memory):
    memory.remember("Add dead letter queue for webhooks", type="task", assigned_to="ana")
    receipt = memory.remember("Add a dead letter queue for webhooks", type="task", assigned_to="ben")

    assert [each["status"] for each in receipt.to_dict()["similar"]] == ["Planned"]
    assert receipt.warnings == ()


SESSION = "Session 1 summary: chose Postgres 16 and Stripe, ledger schema done; next is the refunds endpoint."


@pytest.mark.parametrize(
    ("known", "new"),
    [
        (SESSION, "Partial refunds of the endpoint are done next in the ledger schema."),
        ("p99 of POST /v1/charges is 210 ms after connection pooling.",
         "Session 12 summary: chargebacks, outbox chosen, p99 now 210 ms; open: load test of refunds is blocked."),
        ("Use Postgres 16", f"{SESSION} Use Postgres 16"),
        ("Nightly backups go to the vault in Zurich", "Recap: nightly backups go to the vault in Zurich"),
        ("Nightly backups go to the vault in Zurich",
         "Nightly backups go to the vault in Zurich, are encrypted with the key of the company, are checked weekly by"
         " a restore into staging, and are kept for a month"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_statement_is_no_repetition_of_a_summary_or_a_much_longer_statement(memory, known, new, is_swapped):
    memory.remember(new if is_swapped else known)
    receipt = memory.remember(known if is_swapped else new)

    assert [relation for _, relation in relations(receipt)] in ([], ["near"])
