"""MemoryOS at an open root: pages move through the tiers of an agent, and a failing model loses none."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import count, pairwise

import pytest
from conftest import START

import jidomem
from jidomem.base.clock import Sources
from jidomem.errors import IntentRefused, InvalidRequest, ModelUnavailable, NotFound, TooLarge
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.jobs import MAX_ATTEMPTS, JobOutcome
from jidomem.extras.memoryos.personas import ObjectLearnings
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.extras.memoryos.values import DialogueSegment, KnowledgeEntry
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import OfflineModel
from jidomem.models.scripted import ScriptedModel
from jidomem.providers import execute_directive
from jidomem.records.directive import MemoryQuery
from jidomem.records.interfaces import Fact, Learned, Trait
from jidomem.runtime.state import State

INDEX = ["Which index do we use?", "Where does the index lie on disk?", "How large is the index on disk?"]
LUNCH = ["What is for lunch?", "Is there soup for lunch today?"]


class Clock:
    """A clock that advances one second a read, and further on request."""

    def __init__(self) -> None:
        self.ticks, self.further = count(), timedelta()

    def now(self):
        return START + timedelta(seconds=next(self.ticks)) + self.further


class Failing(OfflineModel):
    """The offline model, failing on request."""

    def __init__(self, why="the model is away"):
        super().__init__()
        self.fails, self.why = False, why

    def __getattribute__(self, name):
        attribute = super().__getattribute__(name)
        if callable(attribute) and not name.startswith("_") and self.fails:
            raise ModelUnavailable(self.why, hint="try again")
        return attribute


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_memory(root, clock) -> Iterator:
    """Open the root, each time with an id source of its own."""
    roots, ids = [], count(1)

    def open_it():
        sources = Sources(now=clock.now, new_id=lambda: f"01900000-0000-7000-8000-{next(ids):012x}")
        roots.append(jidomem.open(root, project="p", agent="ada", sources=sources))
        return roots[-1]

    yield open_it
    for each in roots:
        each.close()


def small(**settings):
    return TierPolicy(MemoryOSConfig(**{"stm_capacity": 2, "mtm_fscore_threshold": 0.3, **settings}))


def talk(ada, *queries):
    return [ada.add(query, f"{query} That is how it is.") for query in queries]


def threads():
    """Return the names of the running threads of memories."""
    return {each.name for each in threading.enumerate() if each.name.startswith("memory of ")}


def places(tiers):
    """Return the tier of each page, with repetitions."""
    at = [(page.id, "stm") for page in tiers.stm] + [(page.id, "leaving") for page in tiers.leaving]
    return at + [(page.id, "mtm") for segment in tiers.mtm for page in segment.pages]


def test_pages_are_transferred_to_segments_by_topic_and_persist_after_a_restart(open_memory):  # D063 D108 D112
    with open_memory() as memory:
        ada = memory.os(policy=small())
        pages = talk(ada, *INDEX, *LUNCH)
        tiers = ada.tiers

        assert [page.id for page in tiers.stm] == [page.id for page in pages[3:]]
        assert (tiers.leaving, [each.page_count for each in tiers.mtm]) == ((), [3])
        assert all(page.meta_chain and page.embedding and page.keywords for page in tiers.pages())
        assert tiers.mtm[0].topic_summary
        assert ada.jobs() == []
    with open_memory() as memory:
        assert memory.os(policy=small()).tiers == tiers


def test_retrieval_has_scored_results_of_every_tier_and_warms_segments(open_memory):  # D099 D101
    ada = open_memory().os(policy=small())
    talk(ada, *INDEX, *LUNCH)

    retrieval = ada.retrieve("the index on disk")
    second = ada.retrieve("the index on disk", visiting=False, retrieved_pages=1)

    assert [each.what.query for each in retrieval.pages][-1] == INDEX[0]
    assert retrieval.segments[0].score > 0
    assert (second.segments[0].what.visit_count, len(second.pages)) == (1, 1)
    assert ada.tiers.mtm[0].visit_count == 1
    assert ada.tiers.mtm[0].heat_score > retrieval.segments[0].what.heat_score


def test_hot_segments_are_learned_into_personas_and_important_facts_reach_system_memory(open_memory):  # D069 D070 D075
    memory = open_memory()
    ada = memory.os(policy=small(heat_threshold=1.5, system_importance_threshold=0.1))
    ada.add("I work as a nurse. Always run the tests before a release.", "Noted.", about=("user", "ana"))
    ada.add("I work as a nurse and I prefer short tests.", "Noted.", about=("user", "ana"))
    talk(ada, *LUNCH)

    outcomes = ada.maintain()

    assert outcomes[0] == JobOutcome("maintain", "")
    assert {each.kind for each in outcomes if each.ok} == {"maintain", "teach", "diffuse"}
    (ana,) = [each for each in ada.personas if each.identifier == "ana"]
    assert any("nurse" in fact.text for fact in ana.knowledge)
    assert all(fact.importance is not None or fact.private for fact in ana.knowledge)
    assert {entry.source_agent_id for entry in ada.system_memory.entries} == {"ada"}
    assert memory.os("bob").system_memory == ada.system_memory
    assert ada.maintain() == [JobOutcome("maintain", "")]  # no page is learned twice


KEY = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("add", "where"),
    [
        (lambda ada, text: ada.add(f"My key is {text}", ""), "query"),
        (lambda ada, text: ada.add("", text), "response"),
        (lambda ada, text: ada.learn(ObjectLearnings("user", "ana", {"token": [text]})), "profile"),
        (lambda ada, text: ada.learn(ObjectLearnings("user", "ana", {}, [fact_of(text)])), "knowledge"),
    ],
)
def test_a_secret_or_oversized_text_is_refused_before_anything_is_stored(open_memory, add, where):
    memory = open_memory()
    ada = memory.os()

    with pytest.raises(IntentRefused, match=f"{where}.* seems to contain a GitHub token"):
        add(ada, KEY)
    with pytest.raises(TooLarge, match=f"{where}.* bytes"):
        add(ada, "I said. " * 40_000)

    assert (ada.tiers.rev, ada.jobs()) == (0, [])
    assert not any(KEY.encode() in path.read_bytes() for path in memory.settings.root.rglob("*") if path.is_file())


def fact_of(text):
    return KnowledgeEntry("f1", text, START)


@pytest.mark.parametrize(
    ("invalid", "why"),
    [
        (lambda memory: memory.os(model=3), "model=3 is not a language model"),
        (lambda memory: memory.os(policy=MemoryOSConfig()), "policy=MemoryOSConfig.* is not a TierPolicy"),
        (lambda memory: memory.os().retrieve(None), "query is a text that is not blank"),
        (lambda memory: memory.os().prompt(" "), "query is a text that is not blank"),
        (lambda memory: memory.os().learn({"name": "Ana"}), "is not an ObjectLearnings"),
    ],
)
def test_an_invalid_model_policy_query_or_lesson_is_refused(open_memory, invalid, why):
    with pytest.raises(InvalidRequest, match=why):
        invalid(open_memory())


def test_an_extracted_fact_that_resembles_a_secret_is_private(open_memory):  # D078
    class SecretExtractor(OfflineModel):
        def extract_traits(self, segment):
            return Learned((Fact(f"must always use {KEY}"),), (Trait("key", KEY),))

    ada = open_memory().os(model=SecretExtractor(), policy=small(stm_capacity=1, heat_threshold=1.0, comparison=">="))
    ada.learn(
        ObjectLearnings("user", "ana", {}, [replace(fact_of("Always deploy from the release branch"), importance=1.0)])
    )
    talk(ada, *LUNCH)

    ada.maintain()

    learned_items = [*(fact for each in ada.personas for fact in each.knowledge), *ada.personas[-1].traits]
    assert [each.private for each in learned_items] == [False, True, True]
    assert [entry.content for entry in ada.system_memory.entries] == ["Always deploy from the release branch"]


def test_facts_and_dialogue_chains_of_one_user_are_separate_from_those_of_another(open_memory):  # D070
    ada = open_memory().os(policy=small(stm_capacity=1, heat_threshold=1.5))
    for query, user in [("I like tea.", "ana"), ("I like tea.", "ben"), ("I like green tea.", "ana"), ("Bye.", "ana")]:
        ada.add(query, "Noted.", about=("user", user))
    assert len(ada.tiers.mtm) == 1

    ada.maintain()

    learned_texts = {each.identifier: [fact.text for fact in each.knowledge] for each in ada.personas}
    assert learned_texts == {"ana": ["likes tea", "likes green tea"], "ben": ["likes tea"]}
    assert {fact.confidence for each in ada.personas for fact in each.knowledge} == {0.85}
    assert [page.continues for page in ada.tiers.mtm[0].pages[:2]] == [None, None]
    assert ada.tiers.mtm[0].analysed
    assert '{"of": "user eve", "asks": true}' in ada.prompt("What do I like?", about=("user", "eve")).user


def test_a_failing_model_loses_no_page_and_its_jobs_are_retried_later(open_memory, clock):  # D065 D107
    model = Failing()
    ada = open_memory().os(model=model, policy=small())
    model.fails = True
    pages = talk(ada, *INDEX, *LUNCH)

    assert len(ada.tiers.leaving) == 3
    retrieval = ada.retrieve("the index on disk")
    assert [each.what.id for each in retrieval.leaving] == [page.id for page in pages[:3]]
    assert (retrieval.error, retrieval.question.embedding, retrieval.question.keywords) == (
        "the model is away", None, {"index", "disk"})  # fmt: skip
    assert (ada.status()["jobs"], ada.status()["error"]) == (8, "the model is away")
    model.fails = False
    while ada.jobs():
        clock.further += timedelta(seconds=10)
        ada.run_jobs()

    assert sorted(places(ada.tiers)) == sorted(
        [(page.id, "mtm") for page in pages[:3]] + [(page.id, "stm") for page in pages[3:]]
    )
    assert ada.status()["error"] is None


def test_a_job_beyond_its_attempts_is_reported_as_failed_and_retried_on_request(open_memory, clock):  # D107
    model = Failing()
    ada = open_memory().os(model=model, policy=small(), work="queued")
    talk(ada, *INDEX)
    model.fails = True
    for _ in range(MAX_ATTEMPTS):
        clock.further += timedelta(hours=2)
        assert not any(each.ok for each in ada.run_jobs())

    assert ada.run_jobs() == []
    assert {(job["kind"], job["attempts"]) for job in ada.status()["failed"]} == {
        ("describe", MAX_ATTEMPTS),
        ("transfer", MAX_ATTEMPTS),
    }
    model.fails = False
    assert all(each.ok for each in ada.retry())
    assert [each.page_count for each in ada.tiers.mtm] == [1]


def test_a_slowly_failing_model_is_called_once_for_each_kind_of_job_and_added_page(open_memory, clock):
    call_times = []

    def fail_slowly(*_):
        call_times.append(clock.now())
        clock.further += timedelta(minutes=1)
        raise ModelUnavailable("it was silent for too long", hint="try again")

    failing_model = ScriptedModel(generate_meta_chain=fail_slowly, continues=fail_slowly)
    ada = open_memory().os(model=failing_model, policy=small())
    talk(ada, *INDEX)

    assert len(call_times) == 4  # one for each of three pages to describe, and one for the page to transfer
    assert len(ada.jobs()) == 4
    assert not any(job.failed for job in ada.jobs())
    assert len(ada.run_jobs()) == 4
    assert len(call_times) == 8


def test_an_added_page_is_stored_although_its_jobs_cannot_run(root):
    (root / "state").mkdir(parents=True)
    (root / "state" / "turns").write_text("in the way")
    with jidomem.open(root, project="p", agent="ada") as memory:
        page = memory.os().add("Which index?", "Oxigraph.")

        assert memory.os().tiers.stm[0].id == page.id
        assert [job.kind for job in memory.os().jobs()] == ["describe", "maintain"]


def test_queued_jobs_run_on_request_also_in_another_memory(open_memory):  # D107 D064
    ada = open_memory().os(policy=small(), work="queued")
    pages = talk(ada, *INDEX)
    assert [page.id for page in ada.tiers.leaving] == [pages[0].id]

    other = open_memory().os(policy=small(), work="queued")
    other.transfer_page_to_mtm(pages[0].id)
    assert all(each.ok for each in other.run_jobs())  # including the job of the page already transferred

    assert places(ada.tiers) == [(pages[1].id, "stm"), (pages[2].id, "stm"), (pages[0].id, "mtm")]
    with pytest.raises(NotFound):
        ada.transfer_page_to_mtm("nowhere")


def test_settings_of_an_agent_and_its_type_take_effect_with_the_next_access(open_memory):  # D037 D040 D042
    ada = open_memory().os()
    talk(ada, *INDEX, *LUNCH)
    assert len(ada.tiers.stm) == 5

    ada.configure("coder", stm_capacity=3)
    ada.configure_type("coder", stm_capacity=1, mtm_capacity=9)

    reopened = open_memory().os()
    assert (reopened.config.stm_capacity, reopened.config.mtm_capacity) == (3, 9)
    assert reopened.configurations.get_agent_config("bob").mtm_capacity == MemoryOSConfig().mtm_capacity
    assert (len(reopened.tiers.stm), len([*reopened.tiers.pages()])) == (3, 5)
    with pytest.raises(InvalidRequest, match="MemoryOS has no setting 'stm_size'"):
        ada.configure(stm_size=3)


def test_an_evicted_segment_is_archived_by_the_configured_provider(open_memory):  # D068 D072
    memory = open_memory()
    ada = memory.os(policy=small(mtm_capacity=1, mtm_fscore_threshold=2, heat_threshold=9))
    pages = talk(ada, *INDEX, *LUNCH)
    segment_ids = [each.id for each in ada.tiers.mtm]
    assert len(segment_ids) == 3

    outcomes = ada.maintain()

    assert outcomes == [JobOutcome("maintain", ""), JobOutcome("archive", "")]
    query = MemoryQuery(query={"key": f"memoryos:ada:{segment_ids[0]}"}, provider="kept")
    result = execute_directive(query, memory.providers()).data["result"]
    archived = DialogueSegment.from_dict(result[0]["value"])
    assert [page.id for page in archived.pages] == [pages[0].id]
    assert sorted(page_id for page_id, _ in places(ada.tiers)) == sorted(page.id for page in pages[2:])


def test_another_embedder_replaces_all_vectors(open_memory):  # D104 D105 D091
    ada = open_memory().os(policy=small(heat_threshold=1.5, system_importance_threshold=0.1))
    ada.add("I work as a nurse. Always run the tests before a release.", "Noted.")
    talk(ada, *INDEX, *LUNCH)
    ada.maintain()
    before = ada.tiers

    other = open_memory().os(model=OfflineModel(HashedStems(32)), policy=small())
    assert other.retrieve("the index").segments  # matched by words until then
    other.run_jobs()

    after = other.tiers
    assert places(after) == places(before)
    vectors = [page.embedding for page in after.pages()] + [each.embedding for each in after.mtm]
    vectors += [fact.embedding for persona in after.personas for fact in persona.knowledge]
    vectors += [entry.embedding for entry in other.system_memory.entries]
    assert {len(vector) for vector in vectors} == {32}
    assert other.run_jobs() == []


def test_a_forgotten_agent_leaves_no_page_and_no_job(open_memory, root):
    memory = open_memory()
    ada = memory.os(policy=small(mtm_capacity=1, mtm_fscore_threshold=2))
    talk(ada, "the secret word is hunter2", *INDEX, *LUNCH)
    ada.maintain()

    assert ada.forget()

    assert not ada.forget()
    assert (ada.status()["pages"], ada.jobs()) == (0, [])
    assert b"hunter2" not in b"".join(each.read_bytes() for each in root.rglob("working*"))


def test_the_background_thread_maintains_an_agent_after_each_interval(open_memory, clock, monkeypatch):  # D066
    monkeypatch.setattr("jidomem.extras.memoryos.memory_os.LOOK", 0.01)
    ada = open_memory().os(policy=small(maintenance_interval=10_000), work="background")
    rounds = [None]
    for _ in range(3):
        while (last := ada.status()["maintained"]) == rounds[-1]:
            time.sleep(0.005)
        rounds.append(last)
        clock.further += timedelta(seconds=10_000)

    assert all(later - one >= timedelta(seconds=10_000) for one, later in pairwise(rounds[1:]))


def test_segment_heat_uses_the_weights_of_the_agent(open_memory):  # D054 D007
    memory = open_memory()
    ada, bob = (memory.os(name, policy=small(stm_capacity=1, heat_threshold=99)) for name in ("ada", "bob"))
    ada.configure(heat_beta=10.0, heat_gamma=0.0)
    for agent in (ada, bob):
        pages = talk(agent, *INDEX)
        agent.maintain()
        assert [page.timestamp for page in pages] == sorted(page.timestamp for page in pages)
        assert START < pages[0].timestamp < memory.sources.now()

    assert [(each.page_count, each.heat_score) for each in ada.tiers.mtm] == [(2, 20.0)]
    assert [each.heat_score for each in bob.tiers.mtm] == [pytest.approx(3.0, abs=1e-4)]


def test_jobs_are_stored_in_the_memory_queue_and_describe_a_page_when_run(open_memory, root):  # D107 D008
    memory = open_memory()
    model = ScriptedModel(generate_meta_chain=["of indexes"], extract_keywords=[("index",)])
    ada = memory.os(model=model, work="queued")
    ada.add("Which index?", "Oxigraph.")
    with closing(sqlite3.connect(root / "state" / "working.sqlite")) as store:
        queues = store.execute("SELECT DISTINCT queue FROM jobs").fetchall()

    assert (queues, ada.tiers.stm[0].meta_chain) == ([("memory",)], None)
    assert ada.run_jobs() == [JobOutcome("describe", ada.tiers.stm[0].id)]
    assert ada.tiers.stm[0].meta_chain == "of indexes"


def test_the_background_thread_runs_jobs_and_maintenance_until_the_memory_is_closed(root):  # D106
    with jidomem.open(root, project="p", agent="ada") as memory:
        ada = memory.os(policy=small(), work="background")
        talk(ada, *INDEX, *LUNCH)
        while ada.jobs() or ada.status()["maintained"] is None:
            time.sleep(0.02)
        assert [each.page_count for each in ada.tiers.mtm] == [3]
        assert threads() == {"memory of ada"}
    assert threads() == set()


def test_a_prompt_has_pages_of_all_tiers_and_the_offline_model_gives_no_answer(open_memory):  # D098
    ada = open_memory().os(policy=small())
    talk(ada, *INDEX, *LUNCH)

    prompt = str(ada.prompt("Where does the index lie?"))

    assert INDEX[1] in prompt
    assert LUNCH[1] in prompt
    with pytest.raises(ModelUnavailable):
        ada.answer("Where does the index lie?")


def test_an_open_agent_is_shared_and_refuses_other_options(open_memory):
    memory = open_memory()
    ada = memory.os(policy=small())

    assert memory.os() is ada
    with pytest.raises(InvalidRequest, match="are open already"):
        memory.os(work="queued")
    ada.close()
    with pytest.raises(InvalidRequest, match="is not valid"):
        memory.os(work="sometimes")
    with pytest.raises(InvalidRequest, match="is not an object"):
        memory.os().add("a", "b", about="ana")


@pytest.mark.parametrize("shares", [True, False])
def test_promoted_facts_of_personas_have_their_dialogue_as_evidence_if_users_share(open_memory, shares):  # D113
    memory = open_memory()
    ada = memory.os(policy=small(heat_threshold=1.5, mtm_fscore_threshold=2, share_users=shares))
    for text in (
        "I work as a nurse.",
        "I live in Oslo. My salary is 90k.",
        "I own a boat. Its name stays between us.",
    ):
        ada.add(text, "Noted.", about=("user", "ana"))
    talk(ada, *INDEX)
    ada.maintain()

    decisions = ada.promote(0.5)

    promoted = {each["summary"]: each for each in (memory.reader.why("p", one.iri) for one in decisions)}
    assert [each.outcome for each in decisions] == ["promoted"] * 2
    assert promoted.keys() == {f"user ana: {fact}" for fact in ("works as a nurse", "lives in Oslo")}
    evidence = promoted["user ana: works as a nurse"]["evidence"][0]["text"]
    assert ("I work as a nurse." in evidence, evidence.startswith("page ")) == (shares, not shares)
    assert "90k" not in str(promoted)  # no private fact, and no page with one
    assert "between us" not in str(promoted)
    memory.writer.invalidate("p", decisions[0].iri, reason="nobody asked")
    assert ada.promote(0.5) == []
    with pytest.raises(InvalidRequest, match="not a number from 0 to 1"):
        ada.promote(2)


def test_maintenance_promotes_facts_above_the_configured_threshold(open_memory):
    memory = open_memory()
    ada = memory.os(policy=small(heat_threshold=1.5), promote_at=0.5)
    ada.add("I work as a nurse.", "Noted.", about=("user", "ana"))
    talk(ada, *INDEX)

    ada.maintain()
    ada.maintain()

    (hit,) = memory.recall("nurse", "p").entries
    assert memory.reader.why("p", hit.id)["summary"] == "user ana: works as a nurse"


def test_a_redaction_removes_files_of_unused_locks_and_keeps_those_of_active_locks(open_memory, root):
    memory = open_memory()
    memory.os(policy=small()).add("the vault is hunter2", "noted")
    folder = root / "state" / "turns"
    folder.mkdir(exist_ok=True)
    (folder / "0f1e2d3c4b5a69788796a5b4.lock").touch()  # as 0.1.0 left one for each agent

    with State(root, "").lock("p", "bob"):
        memory._agents.redact("p", lambda text: "hunter2" in text)
        (lock_file,) = folder.iterdir()

    assert lock_file.name != "0f1e2d3c4b5a69788796a5b4.lock"
    assert [*folder.iterdir()] == []


def test_a_redacted_text_is_removed_from_settings_errors_and_pages(open_memory, root):
    model = Failing("no model at hunter2")
    memory = open_memory()
    ada = memory.os(model=model, policy=small())
    ada.configure(extra={"about": "hunter2", "weight": 2})
    model.fails = True
    talk(ada, "the secret word is hunter2")

    memory.maintenance.redact(
        memory.maintenance.plan("p", None, texts=["hunter2"]), agent="ada", reason="it slipped out"
    )

    assert ada.config.extra == {"about": "[redacted]", "weight": 2}
    assert (ada.status()["error"], ada.tiers.stm[0].query) == ("[redacted]", "[redacted]")
    assert b"hunter2" not in b"".join(each.read_bytes() for each in root.rglob("working*"))


@pytest.mark.parametrize("operation", ["generate_meta_chain", "generate_segment_summary", "extract_traits", "nothing"])
def test_a_text_redacted_while_a_model_reads_it_does_not_return_with_the_answer(open_memory, root, operation):
    memory, redacted, ada = open_memory(), [], None

    class Slow(OfflineModel):
        def __getattribute__(self, name):
            if name == operation and not redacted and ada and len(ada.tiers.leaving + ada.tiers.mtm) > 0:
                return self._after_a_redaction
            return super().__getattribute__(name)

        def _after_a_redaction(self, shown):
            redacted.append(operation)
            answer = getattr(self, operation)(shown)
            memory._agents.redact("p", lambda text: "hunter" in text)
            return answer

    ada = memory.os(model=Slow(), policy=small(stm_capacity=1, heat_threshold=1.0))
    talk(ada, "I work as a hunter of bears", "I like tea")

    ada.maintain()
    memory._agents.redact("p", lambda text: operation == "nothing" and "hunter" in text)

    assert ada.promote(0.1) == []
    assert redacted == [operation] * (operation != "nothing")
    assert len([*ada.tiers.pages()]) == 2
    assert b"hunter" not in b"".join(each.read_bytes() for each in root.rglob("working*"))


class Attentive(OfflineModel):
    """A model that finds one fact in each page, or, without pages, one in all of them, and marks none as private."""

    def __init__(self, *, names_pages):
        super().__init__()
        self.names_pages = names_pages

    def extract_traits(self, segment):
        facts = [Fact(page.query, page=place) for place, page in enumerate(segment.pages)]
        return Learned(tuple(facts) if self.names_pages else (Fact("is in a segment"),))


@pytest.mark.parametrize(("names_pages", "private"), [(True, [False, True, True]), (False, [True])])
def test_all_facts_of_an_exchange_with_a_request_for_secrecy_are_private_and_not_promoted(
    open_memory, names_pages, private
):  # D078
    policy = small(stm_capacity=1, heat_threshold=0.5, mtm_fscore_threshold=-1)
    ada = open_memory().os(model=Attentive(names_pages=names_pages), policy=policy)
    ada.add("I have a dog.", "Noted.")
    ada.add("I have an interview. Please keep this private.", "Noted.")
    ada.add("I leave in May.", "Understood, this stays between us.")
    ada.add("Thanks.", "")
    ada.maintain()

    assert [fact.private for persona in ada.personas for fact in persona.knowledge] == private
    assert len(ada.promote()) == private.count(False)


def test_a_fact_of_a_model_that_marks_none_is_private_by_the_same_rule(open_memory):  # D078
    ada = open_memory().os(model=Attentive(names_pages=True), policy=small(stm_capacity=1, heat_threshold=0.5))
    for text in ("is diagnosed with epilepsy", "has a dog", "Thanks."):
        ada.add(text, "Noted.", about=("user", "ana"))
    ada.maintain()

    facts = {fact.text: fact.private for persona in ada.personas for fact in persona.knowledge}
    assert facts == {"is diagnosed with epilepsy": True, "has a dog": False}


def test_maintenance_adds_the_object_to_shared_facts_of_earlier_versions(tmp_path):
    facts = []
    for number in range(2):
        with jidomem.open(tmp_path, project="p", agent="ada") as memory:
            ada = memory.os(policy=small(stm_capacity=1, heat_threshold=0.5, system_importance_threshold=0.1))
            for text in ("I work as a nurse.", "Thanks.") if number == 0 else ():
                ada.add(text, "Noted.", about=("user", "ana"))
            ada.maintain()
            facts.append([(each.text, each.user) for each in ada.system_memory.entries])
        with closing(sqlite3.connect(tmp_path / "state" / "working.sqlite")) as store, store:
            store.execute(
                "UPDATE memoryos_parts SET held = json_remove(held, '$.about', '$.user') WHERE kind = 'entry'"
            )

    assert facts == [[("user ana: works as a nurse", "ana")]] * 2


def test_a_prompt_for_a_user_has_no_facts_and_no_private_pages_of_another_user(open_memory):
    ada = open_memory().os(policy=small(stm_capacity=1, heat_threshold=0.5))
    said = [("tobias", "I am allergic to penicillin."), ("tobias", "I have an interview. Don't tell anyone."),
            ("tobias", "Thanks."), ("marta", "Thanks.")]  # fmt: skip
    for name, text in said:
        ada.add(text, "Noted.", about=("user", name))
    ada.maintain()

    prompts = {name: ada.prompt("allergic interview", about=("user", name)).user for name in ("marta", "tobias")}

    assert '"of": "user tobias"' not in prompts["marta"]
    assert "an interview" not in prompts["marta"]
    assert '"with": "user tobias"' not in prompts["marta"]
    shared = ada.prompt("allergic interview", about=("user", "marta"), share_users=True).user
    assert ('"with": "user tobias"' in shared, "an interview" in shared) == (True, False)
    by_another = ada.prompt("allergic interview", about=("user", "tobias"), asks=False).user
    assert '"asks": true' in prompts["tobias"]
    assert by_another == prompts["tobias"].replace('"asks": true, ', "")
    assert {"is allergic to penicillin", "an interview"} <= {
        text for text in ("is allergic to penicillin", "an interview") if text in prompts["tobias"]
    }


def test_a_later_statement_supersedes_the_promoted_one_or_withdraws_it_if_it_is_not_promoted(open_memory):
    memory = open_memory()
    ada = memory.os(policy=small(stm_capacity=1, heat_threshold=0.5))

    def after(*said):
        for text in (*said, "Thanks."):
            ada.add(text, "Noted.", about=("user", "tom"))
        ada.maintain()
        outcomes = sorted(each.outcome for each in ada.promote())
        return outcomes, {each["summary"].removeprefix("user tom: ") for each in memory.ask("facts")}

    first = after("I am vegetarian.", "I like coffee.", "I have a dog.", "I live in Malmo.")
    assert first == (["promoted"] * 4, {"is vegetarian", "likes coffee", "has a dog", "lives in Malmo"})
    said = "I'm no longer vegetarian.", "I think I no longer like coffee.", "I don't have a dog anymore. Tell nobody."
    assert after(*said, "I live in Lund now.") == (
        ["updated", "updated", "withdrawn", "withdrawn"],
        {"is no longer vegetarian", "lives in Lund now"},
    )
    (lund,) = [each["fact"] for each in memory.ask("facts") if "Lund" in each["summary"]]
    memory.writer.invalidate("p", lund, reason="wrong")
    assert after("I live in Rome now.") == (["promoted"], {"is no longer vegetarian", "lives in Rome now"})
    assert after("I live in Rome. Please keep this private.") == (["withdrawn"], {"is no longer vegetarian"})
    assert ada.promote() == []


def test_segments_below_the_threshold_are_counted_and_learned_from_once_it_is_lower(open_memory):  # D069
    ada = open_memory().os()
    topics = [
        "I like tea.",
        "I have a dog.",
        "I live in Lund.",
        "I play chess.",
        "I work as a nurse.",
        "I speak Dutch.",
    ]
    for text in (*topics, *(f"Is it {number} already?" for number in range(7))):
        ada.add(text, "Noted.", about=("user", "tom"))

    ada.maintain()
    assert (ada.status()["waiting"], ada.personas) == (len(ada.tiers.mtm), ())
    assert ada.tiers.mtm

    ada.configure(heat_threshold=1)
    ada.maintain()

    assert {trait.value for trait in ada.personas[0].traits} == {
        "tea", "a dog", "Lund", "chess", "a nurse", "Dutch"}  # fmt: skip
    assert ada.status()["waiting"] == 0
    ada.configure(heat_threshold=99)
    ada.add("I like rum.", "Noted.", about=("user", "tom"))
    for number in range(7):
        ada.add(f"Is it {number} now?", "Noted.", about=("user", "tom"))
    ada.maintain()
    assert ada.status()["waiting"] > 0


def test_a_page_is_added_once_also_without_its_timestamp(open_memory):
    ada = open_memory().os(policy=small())

    first = ada.add("I take tea.", "Noted.", page_id="t1", about=("user", "eva"))

    assert ada.add("I take tea.", "Noted.", page_id="t1", about=("user", "Eva ")) == first
    assert [page.id for page in ada.tiers.pages()] == ["t1"]
    with pytest.raises(InvalidRequest, match="page t1 exists already, with other content"):
        ada.add("I take rum.", "Noted.", page_id="t1", about=("user", "eva"))
    with pytest.raises(InvalidRequest, match="page t1 exists already, with other content"):
        ada.add("I take tea.", "Noted.", page_id="t1", about=("user", "eva"), timestamp=START - timedelta(days=1))


def test_a_page_without_text_and_one_dated_more_than_a_day_ahead_are_refused(open_memory):
    ada = open_memory().os()

    with pytest.raises(InvalidRequest, match="the page is empty"):
        ada.add(" ", "")
    with pytest.raises(InvalidRequest, match=r"timestamp 2035-01-01T00:00:00.* is in the future") as refusal:
        ada.add("I live in Oslo.", "Noted.", timestamp="2035-01-01T00:00:00Z")

    assert "by the clock of this machine it is 20" in refusal.value.hint
    assert ada.add("I live in Oslo.", "Noted.", timestamp=START + timedelta(hours=23)).query == "I live in Oslo."


def test_blanks_around_the_name_of_a_user_are_no_part_of_it(open_memory):
    ada = open_memory().os()

    ada.add("I like tea.", "Noted.", about=("user", " erik "))
    ada.add("I like rum.", "Noted.", about=("user", "Erik"))

    assert {page.object_identifier for page in ada.tiers.pages()} == {"erik"}


class Slow(OfflineModel):
    """The offline model, whose descriptions wait for `go_on`."""

    def __init__(self):
        super().__init__()
        self.has_begun, self.go_on = threading.Event(), threading.Event()

    def generate_meta_chain(self, *given, **named):
        self.has_begun.set()
        self.go_on.wait()
        return super().generate_meta_chain(*given, **named)


def test_the_jobs_of_each_concurrent_caller_have_run_when_it_returns(open_memory):  # D107 D109
    model = Slow()
    ada = open_memory().os(model=model, work="inline")
    described = []

    def add(query):
        page = ada.add(query, "Yes.")
        described.append(page.id not in {job.subject for job in ada.jobs()})

    callers = [threading.Thread(target=add, args=(query,)) for query in INDEX]
    callers[0].start()
    model.has_begun.wait()
    for caller in callers[1:]:
        caller.start()
    while ada.status()["pages"] < len(INDEX):
        time.sleep(0.005)
    model.go_on.set()
    for caller in callers:
        caller.join()

    assert described == [True] * len(INDEX)


def test_a_caller_runs_a_bounded_number_of_jobs_of_others_in_their_order(open_memory, monkeypatch):
    monkeypatch.setattr("jidomem.extras.memoryos.jobs.MOST_INLINE", 2)
    memory = open_memory()
    with memory.os(work="queued") as ada:
        ada.maintain()  # so that none is due later
        pages = talk(ada, *LUNCH, *INDEX)

    ada = memory.os(work="inline")
    pages.append(ada.add("And tomorrow?", "Soup."))

    assert [job.subject for job in ada.jobs() if job.kind == "describe"] == [page.id for page in pages[2:]]
    assert [job for job in ada.maintain() if not job.ok] == []
    assert ada.jobs() == []


class Remarking(OfflineModel):
    """The offline model, which adds a page of its own during the first description."""

    def generate_meta_chain(self, *given, **named):
        add, self.add = self.add, None
        if add:
            add("What did Ana ask?", "About lunch.")
        return super().generate_meta_chain(*given, **named)


def test_a_model_that_adds_a_page_during_a_job_does_not_wait_for_itself(open_memory):
    model = Remarking()
    ada = open_memory().os(model=model, work="inline")
    model.add = ada.add
    for query in LUNCH:
        ada.add(query, "Soup.")

    assert "About lunch." in {page.response for page in ada.tiers.pages()}
    ada.maintain()
    assert ada.jobs() == []
