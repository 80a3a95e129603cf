"""MemoryOS at an open root: an agent's pages move through its tiers, and nothing is lost where a model fails."""

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
from jidomem.extras.memoryos.jobs import MOST, Outcome
from jidomem.extras.memoryos.personas import Learnt
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
        found = super().__getattribute__(name)
        if callable(found) and not name.startswith("_") and self.fails:
            raise ModelUnavailable(self.why, hint="try again")
        return found


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened(root, clock) -> Iterator:
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


def talk(ada, *said):
    return [ada.add(query, f"{query} That is how it is.") for query in said]


def threads():
    """Return the names of the running threads of memories."""
    return {each.name for each in threading.enumerate() if each.name.startswith("memory of ")}


def places(tiers):
    """Return the place of each page; a page in two places would be there twice."""
    at = [(page.id, "stm") for page in tiers.stm] + [(page.id, "leaving") for page in tiers.leaving]
    return at + [(page.id, "mtm") for segment in tiers.mtm for page in segment.pages]


def test_pages_leave_for_segments_by_topic_and_are_there_after_a_restart(opened):  # D063 D108 D112
    with opened() as memory:
        ada = memory.os(policy=small())
        pages = talk(ada, *INDEX, *LUNCH)
        held = ada.tiers

        assert [page.id for page in held.stm] == [page.id for page in pages[3:]]
        assert (held.leaving, [each.page_count for each in held.mtm]) == ((), [3])
        assert all(page.meta_chain and page.embedding and page.keywords for page in held.pages())
        assert held.mtm[0].topic_summary
        assert ada.jobs() == []
    with opened() as memory:
        assert memory.os(policy=small()).tiers == held


def test_what_is_retrieved_is_scored_by_tier_and_warms_segments(opened):  # D099 D101
    ada = opened().os(policy=small())
    talk(ada, *INDEX, *LUNCH)

    found = ada.retrieve("the index on disk")
    again = ada.retrieve("the index on disk", visiting=False, retrieved_pages=1)

    assert [each.what.query for each in found.pages][-1] == INDEX[0]
    assert found.segments[0].score > 0
    assert (again.segments[0].what.visit_count, len(again.pages)) == (1, 1)
    assert ada.tiers.mtm[0].visit_count == 1
    assert ada.tiers.mtm[0].heat_score > found.segments[0].what.heat_score


def test_hot_segments_teach_personas_and_what_matters_is_told_to_all(opened):  # D069 D070 D075
    memory = opened()
    ada = memory.os(policy=small(heat_threshold=1.5, system_importance_threshold=0.1))
    ada.add("I work as a nurse. Always run the tests before a release.", "Noted.", about=("user", "ana"))
    ada.add("I work as a nurse and I prefer short tests.", "Noted.", about=("user", "ana"))
    talk(ada, *LUNCH)

    outcomes = ada.maintain()

    assert outcomes[0] == Outcome("maintain", "")
    assert {each.kind for each in outcomes if each.ok} == {"maintain", "teach", "diffuse"}
    (ana,) = [each for each in ada.personas if each.identifier == "ana"]
    assert any("nurse" in fact.text for fact in ana.knowledge)
    assert all(fact.importance is not None or fact.private for fact in ana.knowledge)
    assert {entry.source_agent_id for entry in ada.system_memory.entries} == {"ada"}
    assert memory.os("bob").system_memory == ada.system_memory
    assert ada.maintain() == [Outcome("maintain", "")]  # nothing is taught twice


KEY = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("keep", "where"),
    [
        (lambda ada, text: ada.add(f"My key is {text}", ""), "query"),
        (lambda ada, text: ada.add("", text), "response"),
        (lambda ada, text: ada.learn(Learnt("user", "ana", {"token": [text]})), "profile"),
        (lambda ada, text: ada.learn(Learnt("user", "ana", {}, [fact_of(text)])), "knowledge"),
    ],
)
def test_a_secret_and_a_text_beyond_bounds_are_refused_before_anything_is_kept(opened, keep, where):
    memory = opened()
    ada = memory.os()

    with pytest.raises(IntentRefused, match=f"{where}.* seems to contain a GitHub token"):
        keep(ada, KEY)
    with pytest.raises(TooLarge, match=f"{where}.* bytes"):
        keep(ada, "I said. " * 40_000)

    assert (ada.tiers.rev, ada.jobs()) == (0, [])
    assert not any(KEY.encode() in path.read_bytes() for path in memory.settings.root.rglob("*") if path.is_file())


def fact_of(text):
    return KnowledgeEntry("f1", text, START)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda memory: memory.os(model=3), "model=3 is not a language model"),
        (lambda memory: memory.os(policy=MemoryOSConfig()), "policy=MemoryOSConfig.* is not a TierPolicy"),
        (lambda memory: memory.os().retrieve(None), "query is a text that is not blank"),
        (lambda memory: memory.os().prompt(" "), "query is a text that is not blank"),
        (lambda memory: memory.os().learn({"name": "Ana"}), "is not a Learnt"),
    ],
)
def test_what_is_no_model_no_policy_no_question_and_nothing_learnt_is_refused(opened, wrong, why):
    with pytest.raises(InvalidRequest, match=why):
        wrong(opened())


def test_what_a_model_finds_and_looks_like_a_secret_is_told_to_nobody(opened):  # D078
    class Inventing(OfflineModel):
        def extract_traits(self, segment):
            return Learned((Fact(f"must always use {KEY}"),), (Trait("key", KEY),))

    ada = opened().os(model=Inventing(), policy=small(stm_capacity=1, heat_threshold=1.0, comparison=">="))
    ada.learn(Learnt("user", "ana", {}, [replace(fact_of("Always deploy from the release branch"), importance=1.0)]))
    talk(ada, *LUNCH)

    ada.maintain()

    held = [*(fact for each in ada.personas for fact in each.knowledge), *ada.personas[-1].traits]
    assert [each.private for each in held] == [False, True, True]
    assert [entry.content for entry in ada.system_memory.entries] == ["Always deploy from the release branch"]


def test_what_one_user_says_is_neither_learnt_of_another_nor_the_talk_with_him(opened):  # D070
    ada = opened().os(policy=small(stm_capacity=1, heat_threshold=1.5))
    for said, who in [("I like tea.", "ana"), ("I like tea.", "ben"), ("I like green tea.", "ana"), ("Bye.", "ana")]:
        ada.add(said, "Noted.", about=("user", who))
    assert len(ada.tiers.mtm) == 1

    ada.maintain()

    learnt = {each.identifier: [fact.text for fact in each.knowledge] for each in ada.personas}
    assert learnt == {"ana": ["likes tea", "likes green tea"], "ben": ["likes tea"]}
    assert {fact.confidence for each in ada.personas for fact in each.knowledge} == {0.85}
    assert [page.continues for page in ada.tiers.mtm[0].pages[:2]] == [None, None]
    assert ada.tiers.mtm[0].analysed
    assert '{"of": "user eve", "asks": true}' in ada.prompt("What do I like?", about=("user", "eve")).user


def test_a_model_that_fails_loses_nothing_and_is_asked_again_later(opened, clock):  # D065 D107
    model = Failing()
    ada = opened().os(model=model, policy=small())
    model.fails = True
    pages = talk(ada, *INDEX, *LUNCH)

    assert len(ada.tiers.leaving) == 3
    found = ada.retrieve("the index on disk")
    assert [each.what.id for each in found.leaving] == [page.id for page in pages[:3]]
    assert (found.error, found.question.embedding, found.question.keywords) == (
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


def test_a_job_that_failed_too_often_is_kept_told_and_tried_again_when_asked(opened, clock):  # D107
    model = Failing()
    ada = opened().os(model=model, policy=small(), work="queued")
    talk(ada, *INDEX)
    model.fails = True
    for _ in range(MOST):
        clock.further += timedelta(hours=2)
        assert not any(each.ok for each in ada.run_jobs())

    assert ada.run_jobs() == []
    assert {(job["kind"], job["attempts"]) for job in ada.status()["failed"]} == {
        ("describe", MOST),
        ("transfer", MOST),
    }
    model.fails = False
    assert all(each.ok for each in ada.retry())
    assert [each.page_count for each in ada.tiers.mtm] == [1]


def test_a_model_that_is_slow_to_fail_is_waited_for_once_a_kind_of_job_with_each_page(opened, clock):
    waited = []

    def slowly(*_):
        waited.append(clock.now())
        clock.further += timedelta(minutes=1)
        raise ModelUnavailable("it was silent for too long", hint="try again")

    slow = ScriptedModel(generate_meta_chain=slowly, continues=slowly)
    ada = opened().os(model=slow, policy=small())
    talk(ada, *INDEX)

    assert len(waited) == 4  # for a page that is to be described, three times, and for the one to be transferred
    assert len(ada.jobs()) == 4
    assert not any(job.failed for job in ada.jobs())
    assert len(ada.run_jobs()) == 4
    assert len(waited) == 8


def test_a_page_is_given_back_once_it_is_kept_though_its_jobs_cannot_be_done(root):
    (root / "state").mkdir(parents=True)
    (root / "state" / "turns").write_text("in the way")
    with jidomem.open(root, project="p", agent="ada") as memory:
        page = memory.os().add("Which index?", "Oxigraph.")

        assert memory.os().tiers.stm[0].id == page.id
        assert [job.kind for job in memory.os().jobs()] == ["describe", "maintain"]


def test_queued_jobs_wait_until_they_are_asked_for_also_by_another_process(opened):  # D107 D064
    ada = opened().os(policy=small(), work="queued")
    pages = talk(ada, *INDEX)
    assert [page.id for page in ada.tiers.leaving] == [pages[0].id]

    other = opened().os(policy=small(), work="queued")
    other.transfer_page_to_mtm(pages[0].id)
    assert all(each.ok for each in other.run_jobs())  # among them the job for the page that was transferred by hand

    assert places(ada.tiers) == [(pages[1].id, "stm"), (pages[2].id, "stm"), (pages[0].id, "mtm")]
    with pytest.raises(NotFound):
        ada.transfer_page_to_mtm("nowhere")


def test_settings_of_an_agent_and_its_type_hold_from_the_next_move_on(opened):  # D037 D040 D042
    ada = opened().os()
    talk(ada, *INDEX, *LUNCH)
    assert len(ada.tiers.stm) == 5

    ada.configure("coder", stm_capacity=3)
    ada.configure_type("coder", stm_capacity=1, mtm_capacity=9)

    again = opened().os()
    assert (again.config.stm_capacity, again.config.mtm_capacity) == (3, 9)
    assert again.configurations.get_agent_config("bob").mtm_capacity == MemoryOSConfig().mtm_capacity
    assert (len(again.tiers.stm), len([*again.tiers.pages()])) == (3, 5)
    with pytest.raises(InvalidRequest, match="MemoryOS has no setting 'stm_size'"):
        ada.configure(stm_size=3)


def test_what_is_evicted_is_archived_by_the_provider_of_the_settings(opened):  # D068 D072
    memory = opened()
    ada = memory.os(policy=small(mtm_capacity=1, mtm_fscore_threshold=2))
    pages = talk(ada, *INDEX, *LUNCH)
    gone = [each.id for each in ada.tiers.mtm]
    assert len(gone) == 3

    outcomes = ada.maintain()

    assert outcomes == [Outcome("maintain", ""), Outcome("archive", "")]
    asked = MemoryQuery(query={"key": f"memoryos:ada:{gone[0]}"}, provider="kept")
    told = execute_directive(asked, memory.providers()).data["result"]
    archived = DialogueSegment.from_dict(told[0]["value"])
    assert [page.id for page in archived.pages] == [pages[0].id]
    assert sorted(page_id for page_id, _ in places(ada.tiers)) == sorted(page.id for page in pages[2:])


def test_another_embedder_has_all_vectors_made_anew(opened):  # D104 D105 D091
    ada = opened().os(policy=small(heat_threshold=1.5, system_importance_threshold=0.1))
    ada.add("I work as a nurse. Always run the tests before a release.", "Noted.")
    talk(ada, *INDEX, *LUNCH)
    ada.maintain()
    before = ada.tiers

    other = opened().os(model=OfflineModel(HashedStems(32)), policy=small())
    assert other.retrieve("the index").segments  # found by its words meanwhile
    other.run_jobs()

    after = other.tiers
    assert places(after) == places(before)
    vectors = [page.embedding for page in after.pages()] + [each.embedding for each in after.mtm]
    vectors += [fact.embedding for persona in after.personas for fact in persona.knowledge]
    vectors += [entry.embedding for entry in other.system_memory.entries]
    assert {len(vector) for vector in vectors} == {32}
    assert other.run_jobs() == []


def test_an_agent_that_is_forgotten_is_gone_with_its_jobs(opened, root):
    memory = opened()
    ada = memory.os(policy=small(mtm_capacity=1, mtm_fscore_threshold=2))
    talk(ada, "the secret word is hunter2", *INDEX, *LUNCH)
    ada.maintain()

    assert ada.forget()

    assert not ada.forget()
    assert (ada.status()["pages"], ada.jobs()) == (0, [])
    assert b"hunter2" not in b"".join(each.read_bytes() for each in root.rglob("working*"))


def test_the_thread_maintains_an_agent_again_after_each_interval_of_its_settings(opened, clock, monkeypatch):  # D066
    monkeypatch.setattr("jidomem.extras.memoryos.memory_os.LOOK", 0.01)
    ada = opened().os(policy=small(maintenance_interval=10_000), work="background")
    rounds = [None]
    for _ in range(3):
        while (last := ada.status()["maintained"]) == rounds[-1]:
            time.sleep(0.005)
        rounds.append(last)
        clock.further += timedelta(seconds=10_000)

    assert all(later - one >= timedelta(seconds=10_000) for one, later in pairwise(rounds[1:]))


def test_heat_is_weighed_by_the_settings_of_the_agent_whose_segment_it_is(opened):  # D054 D007
    memory = opened()
    ada, bob = (memory.os(name, policy=small(stm_capacity=1, heat_threshold=99)) for name in ("ada", "bob"))
    ada.configure(heat_beta=10.0, heat_gamma=0.0)
    for agent in (ada, bob):
        pages = talk(agent, *INDEX)
        agent.maintain()
        assert [page.timestamp for page in pages] == sorted(page.timestamp for page in pages)
        assert START < pages[0].timestamp < memory.sources.now()

    assert [(each.page_count, each.heat_score) for each in ada.tiers.mtm] == [(2, 20.0)]
    assert [each.heat_score for each in bob.tiers.mtm] == [pytest.approx(3.0, abs=1e-4)]


def test_jobs_wait_in_the_queue_memory_and_until_they_are_done_a_page_has_no_chain(opened, root):  # D107 D008
    memory = opened()
    model = ScriptedModel(generate_meta_chain=["of indexes"], extract_keywords=[("index",)])
    ada = memory.os(model=model, work="queued")
    ada.add("Which index?", "Oxigraph.")
    with closing(sqlite3.connect(root / "state" / "working.sqlite")) as store:
        queues = store.execute("SELECT DISTINCT queue FROM jobs").fetchall()

    assert (queues, ada.tiers.stm[0].meta_chain) == ([("memory",)], None)
    assert ada.run_jobs() == [Outcome("describe", ada.tiers.stm[0].id)]
    assert ada.tiers.stm[0].meta_chain == "of indexes"


def test_a_thread_does_the_jobs_and_maintains_until_it_is_closed(root):  # D106
    with jidomem.open(root, project="p", agent="ada") as memory:
        ada = memory.os(policy=small(), work="background")
        talk(ada, *INDEX, *LUNCH)
        while ada.jobs() or ada.status()["maintained"] is None:
            time.sleep(0.02)
        assert [each.page_count for each in ada.tiers.mtm] == [3]
        assert threads() == {"memory of ada"}
    assert threads() == set()


def test_the_prompt_holds_what_every_tier_knows_and_the_offline_model_answers_nothing(opened):  # D098
    ada = opened().os(policy=small())
    talk(ada, *INDEX, *LUNCH)

    asked = str(ada.prompt("Where does the index lie?"))

    assert INDEX[1] in asked
    assert LUNCH[1] in asked
    with pytest.raises(ModelUnavailable):
        ada.answer("Where does the index lie?")


def test_an_open_one_is_the_same_and_takes_no_other_options(opened):
    memory = opened()
    ada = memory.os(policy=small())

    assert memory.os() is ada
    with pytest.raises(InvalidRequest, match="are open already"):
        memory.os(work="queued")
    ada.close()
    with pytest.raises(InvalidRequest, match="is not valid"):
        memory.os(work="sometimes")
    with pytest.raises(InvalidRequest, match="is not an object"):
        memory.os().add("a", "b", about="ana")


def test_what_personas_know_is_proposed_to_the_project_with_what_was_said(opened):  # D113
    memory = opened()
    ada = memory.os(policy=small(heat_threshold=1.5, mtm_fscore_threshold=2))
    for said in ("I work as a nurse.", "I live in Oslo. My salary is 90k.", "I own a boat. Its name stays between us."):
        ada.add(said, "Noted.", about=("user", "ana"))
    talk(ada, *INDEX)
    ada.maintain()

    decisions = ada.promote(0.5)

    told = {each["summary"]: each for each in (memory.reader.why("p", one.iri) for one in decisions)}
    assert [each.outcome for each in decisions] == ["promoted"] * 3
    assert told.keys() == {f"user ana: {fact}" for fact in ("works as a nurse", "lives in Oslo", "owns a boat")}
    assert "I work as a nurse." in told["user ana: works as a nurse"]["evidence"][0]["text"]
    assert "90k" not in str(told)  # nothing that is private, and no page in which anything is
    assert "between us" not in str(told)
    memory.writer.invalidate("p", decisions[0].iri, reason="nobody asked")
    assert ada.promote(0.5) == []
    with pytest.raises(InvalidRequest, match="not a number from 0 to 1"):
        ada.promote(2)


def test_facts_are_proposed_by_maintenance_where_that_is_asked_for(opened):
    memory = opened()
    ada = memory.os(policy=small(heat_threshold=1.5), promote_at=0.5)
    ada.add("I work as a nurse.", "Noted.", about=("user", "ana"))
    talk(ada, *INDEX)

    ada.maintain()
    ada.maintain()

    (hit,) = memory.recall("nurse", "p").entries
    assert memory.reader.why("p", hit.id)["summary"] == "user ana: works as a nurse"


def test_a_redaction_removes_the_files_of_unused_locks_and_leaves_those_of_held_ones(opened, root):
    memory = opened()
    memory.os(policy=small()).add("the vault is hunter2", "noted")
    folder = root / "state" / "turns"
    folder.mkdir(exist_ok=True)
    (folder / "0f1e2d3c4b5a69788796a5b4.lock").touch()  # as 0.1.0 left one for each agent

    with State(root, "").lock("p", "bob"):
        memory._agents.redact("p", lambda text: "hunter2" in text)
        (left,) = folder.iterdir()

    assert left.name != "0f1e2d3c4b5a69788796a5b4.lock"
    assert [*folder.iterdir()] == []


def test_a_text_that_is_redacted_goes_from_settings_and_from_what_jobs_failed_with(opened, root):
    model = Failing("no model at hunter2")
    memory = opened()
    ada = memory.os(model=model, policy=small())
    ada.configure(extra={"about": "hunter2", "weight": 2})
    model.fails = True
    talk(ada, "the secret word is hunter2")

    memory.keeper.redact(memory.keeper.plan("p", None, texts=["hunter2"]), agent="ada", reason="it slipped out")

    assert ada.config.extra == {"about": "[redacted]", "weight": 2}
    assert (ada.status()["error"], ada.tiers.stm[0].query) == ("[redacted]", "[redacted]")
    assert b"hunter2" not in b"".join(each.read_bytes() for each in root.rglob("working*"))


@pytest.mark.parametrize("asked", ["generate_meta_chain", "generate_segment_summary", "extract_traits", "nothing"])
def test_what_is_redacted_while_a_model_reads_it_does_not_come_back_with_its_answer(opened, root, asked):
    memory, redacted, ada = opened(), [], None

    class Slow(OfflineModel):
        def __getattribute__(self, name):
            if name == asked and not redacted and ada and len(ada.tiers.leaving + ada.tiers.mtm) > 0:
                return self._after_a_redaction
            return super().__getattribute__(name)

        def _after_a_redaction(self, shown):
            redacted.append(asked)
            said = getattr(self, asked)(shown)
            memory._agents.redact("p", lambda text: "hunter" in text)
            return said

    ada = memory.os(model=Slow(), policy=small(stm_capacity=1, heat_threshold=1.0))
    talk(ada, "I work as a hunter of bears", "I like tea")

    ada.maintain()
    memory._agents.redact("p", lambda text: asked == "nothing" and "hunter" in text)

    assert ada.promote(0.1) == []
    assert redacted == [asked] * (asked != "nothing")
    assert len([*ada.tiers.pages()]) == 2
    assert b"hunter" not in b"".join(each.read_bytes() for each in root.rglob("working*"))
