"""A forgotten page: it and everything derived from it are removed, and the content of other pages is learned again."""

import json
import sqlite3
from contextlib import closing

import pytest
from conftest import fixed_sources

import jidomem
from jidomem.errors import InvalidRequest, NotFound
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.personas import ObjectLearnings
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.extras.memoryos.values import DialogueSegment, KnowledgeEntry
from jidomem.models.scripted import ScriptedModel
from jidomem.records.interfaces import Fact, Learned, Trait

ANA = ("user", "ana")
TALK = ["I work at hunter2 as a nurse.", "My shifts as a nurse are at night.", "Is there soup?", "Is there bread?"]


def policy(**settings):
    return TierPolicy(MemoryOSConfig(**{"stm_capacity": 2, "mtm_fscore_threshold": -1, "heat_threshold": 0.5,
                                    "system_importance_threshold": 0.1, **settings}))  # fmt: skip


def learned(segment):
    """Return a fact and a trait of each page about a nurse, and a common fact."""
    nurse_pages = [(place, page) for place, page in enumerate(segment.pages) if "nurse" in page.query]
    facts = [Fact(f"said: {page.query}", page=place) for place, page in nurse_pages]
    common_facts = [Fact("is a nurse", page=place) for place, _ in nurse_pages]
    traits = [Trait("work", page.query, page=place) for place, page in nurse_pages if "hunter2" in page.query]
    return Learned((*facts, *common_facts), tuple(traits))


def reader(**script):
    return ScriptedModel(
        generate_meta_chain=lambda pages: " / ".join(page.meta_chain or page.query for page in pages),
        continues=lambda previous, page: True,
        extract_keywords=lambda text: (text.split()[-1],),
        generate_segment_summary=lambda pages: "They say: " + " ".join(page.query for page in pages),
        extract_traits=learned,
        rate_importance=lambda facts: (0.9,) * len(facts),
        **script,
    )


def working_bytes(root):
    """Return all bytes of the working state of a root."""
    return b"".join(each.read_bytes() for each in root.rglob("working*"))


@pytest.fixture
def memory(root):
    with jidomem.open(root, project="p", agent="ada", sources=fixed_sources()) as opened:
        yield opened


@pytest.fixture
def ada(memory):
    return memory.os(model=reader(), policy=policy())


def test_a_forgotten_page_leaves_only_the_content_of_other_pages(ada, root):
    first, second, *_ = [ada.add(query, "Noted.", about=ANA) for query in TALK]
    ada.maintain()
    (before,) = ada.personas
    assert [fact.text for fact in before.knowledge] == [
        f"said: {TALK[0]}", f"said: {TALK[1]}", "is a nurse"]  # fmt: skip
    assert TALK[0] in ada.tiers.page(second.id).meta_chain
    (segment,) = ada.tiers.mtm

    report = ada.forget_page(first.id)

    forgotten_facts = [fact.id for fact in before.knowledge if first.id in fact.evidence]
    assert (report.page, report.was_in, report.facts) == (first.id, (segment.id,), tuple(forgotten_facts))
    assert (len(report.traits), len(report.system)) == (1, 2)
    (ana,) = ada.personas
    assert [fact.text for fact in ana.knowledge] == [f"said: {TALK[1]}", "is a nurse"]
    assert [fact.evidence for fact in ana.knowledge] == [(second.id,), (second.id,)]
    assert (ana.traits, [page.id for page in ada.tiers.mtm[0].pages]) == ((), [second.id])
    assert ada.tiers.mtm[0].topic_summary == f"They say: {TALK[1]}"
    assert [page.meta_chain for page in ada.tiers.pages()][-1] == TALK[1]
    assert {entry.content for entry in ada.system_memory.entries} == {f"said: {TALK[1]}", "is a nurse"}
    assert ada.jobs() == []
    assert b"hunter2" not in working_bytes(root)
    with pytest.raises(NotFound, match=f"ada has no page {first.id}"):
        ada.forget_page(first.id)


def test_an_archived_page_and_a_page_pending_archival_are_forgotten(memory, root):
    ada = memory.os(model=reader(), policy=policy(mtm_capacity=1, mtm_fscore_threshold=2, heat_threshold=9))
    pages = [ada.add(query, "Noted.") for query in [*TALK, TALK[0]]]
    ada.maintain()
    archived_values = [(key, json.loads(value)) for key, value in archived(memory)]
    assert [[page["id"] for page in value["pages"]] for _, value in archived_values] == [[pages[0].id], [pages[1].id]]

    assert ada.forget_page(pages[0].id).was_in == ("archive",)
    assert ada.forget_page(pages[4].id).was_in == ("stm",)

    assert [key for key, _ in archived(memory)] == [archived_values[1][0]]
    assert b"hunter2" not in working_bytes(root)


def archived(memory):
    with closing(sqlite3.connect(memory.settings.root / "state" / "working.sqlite")) as store:
        return store.execute("SELECT key, value FROM key_values ORDER BY key").fetchall()


def test_a_system_fact_of_a_forgotten_page_is_kept_for_another_user(memory):
    ada = memory.os(model=reader(), policy=policy(mtm_fscore_threshold=2))
    page_ids = [ada.add("I am a nurse.", "Noted.", about=("user", name)).id for name in ("ana", "ben")]
    for query in TALK[2:]:
        ada.add(query, "Noted.")
    ada.maintain()
    assert {(each.user, *each.evidence) for each in ada.system_memory.entries} == {
        ("ana", page_ids[0]),
        ("ben", page_ids[1]),
    }

    ada.forget_page(page_ids[0])

    assert {(each.user, *each.evidence) for each in ada.system_memory.entries} == {("ben", page_ids[1])}


def test_an_archived_segment_keeps_its_other_pages_after_forgetting_one(memory):
    ada = memory.os(model=reader(), policy=policy(heat_threshold=9))
    pages = [ada.add(query, "Noted.") for query in TALK]
    ada.configure(mtm_fscore_threshold=2)
    for query in ("One more?", "And one?"):
        ada.add(query, "Noted.")
    ada.configure(mtm_capacity=1, evict="least_visited")
    ada.maintain()

    (key,) = [key for key, value in archived(memory) if len(json.loads(value)["pages"]) == 2]
    report = ada.forget_page(pages[0].id)

    segment = DialogueSegment.from_dict(json.loads(dict(archived(memory))[key]))
    assert (report.was_in, [page.id for page in segment.pages]) == (("archive",), [pages[1].id])
    assert (segment.topic_summary, segment.embedding, segment.keywords) == ("", None, segment.pages[0].keywords)


def test_the_promoted_memories_of_a_forgotten_page_are_reported(ada, memory):
    page = ada.add(TALK[0], "Noted.", about=ANA)
    for query in TALK[2:]:
        ada.add(query, "Noted.", about=ANA)
    ada.maintain()
    iris = {decision.iri for decision in ada.promote(0.5)}

    report = ada.forget_page(page.id)

    assert iris == set(report.promoted)
    assert len(iris) == 2
    assert memory.reader.why("p", report.promoted[0])["summary"].startswith("user ana: ")


def test_a_page_of_a_recorded_turn_is_stored_once_and_has_the_turn_iri_as_evidence(ada, memory):
    turn = memory.conversation("s-1").record("I work as a nurse.", "Noted.", asked_by="ana")
    for _ in range(2):
        page = ada.add(turn.prompt, turn.answer, about=ANA, timestamp=turn.timestamp, page_id=turn.iri)
    for query in TALK[2:]:
        ada.add(query, "Noted.", about=ANA)
    ada.maintain()

    (decision, *_) = ada.promote(0.5)

    assert (page.id, [each.id for each in ada.tiers.pages()].count(turn.iri)) == (turn.iri, 1)
    (evidence,) = memory.reader.why("p", decision.iri)["evidence"]
    assert evidence["iri"] == turn.iri


def test_a_learned_fact_is_embedded_and_a_vector_of_another_length_is_refused(ada):  # D091
    entry = KnowledgeEntry("f1", "likes tea", "2026-11-21")

    ada.learn(ObjectLearnings("user", "ana", {}, (entry,)))

    (fact,) = ada.personas[0].knowledge
    assert len(fact.embedding) == 64
    with pytest.raises(InvalidRequest, match=r"a vector of 2 numbers, and .* makes 64"):
        ada.learn(
            ObjectLearnings("user", "ana", {}, (KnowledgeEntry("f2", "likes rum", "2026-11-21", embedding=[1.0, 2.0]),))
        )
    assert len(ada.personas[0].knowledge) == 1


def test_adding_pages_alone_starts_maintenance(memory):  # D066 D069
    ada = memory.os(model=reader(), policy=policy(maintenance_interval=20))

    for number in range(30):
        ada.add(f"As a nurse I say {number}.", "Noted.", about=ANA)

    assert ada.personas[0].knowledge
    assert ada.status()["maintained"] is not None


def test_a_forgotten_user_leaves_nothing_in_any_tier_and_other_users_stay(memory, root):
    ada = memory.os(model=reader(), policy=policy(mtm_fscore_threshold=2))
    ada.learn(
        ObjectLearnings("user", "ana", {"phone": "hunter2"}, (KnowledgeEntry("f1", "has hunter2", "2026-11-21"),))
    )
    for query in TALK:
        ada.add(query, "Noted.", about=("user", "ben"))
        ada.add(f"{query} hunter2", "Noted.", about=ANA)
    ada.maintain()
    ada.configure(mtm_capacity=3, evict="least_visited")
    ada.maintain()
    iris = {decision.iri for decision in ada.promote(0.5) if "ana" in memory.reader.why("p", decision.iri)["summary"]}
    assert len(archived(memory)) > 0
    before = [page.id for page in ada.tiers.pages() if page.object == ("user", "ben")]

    report = ada.forget_object(("user", "Ana"))

    assert (report.page, len(report.pages)) == (None, 4)
    assert {*report.was_in} >= {"stm", "archive"}
    assert "f1" in report.facts
    assert {*report.promoted} == iris
    assert [page.id for page in ada.tiers.pages()] == before
    assert [persona.identifier for persona in ada.personas] == ["ben"]
    assert ada.personas[0].knowledge
    left = working_bytes(root)
    assert b"hunter2 hunter2" not in left
    assert b'"ana"' not in left
    assert ada.jobs() == []
    with pytest.raises(NotFound, match="ada has no page or persona of user:ana"):
        ada.forget_object(ANA)
    with pytest.raises(InvalidRequest, match="about"):
        ada.forget_object(None)


def test_the_journal_records_who_forgot_pages_and_how_many_but_nothing_of_them(memory, root):
    ada = memory.os(policy=policy())
    for query in TALK[:2]:
        ada.add(query, "Noted.", about=ANA)
    one = ada.add("I work nights.", "Noted.", about=("user", "ben"), page_id="of-ben")

    ada.forget_object(ANA)
    ada.forget_page(one.id)
    ada.add(TALK[0], "Noted.", about=ANA)
    ada.forget()

    log = memory.reader.log("p").rows
    assert {tuple(each["agents"]) for each in log} == {("https://jido.ai/agents/ada",)}
    assert [each["reason"] for each in log] == [
        "deleted: the MemoryOS of ada",
        "deleted from the MemoryOS of ada: 1 pages, 0 facts and traits",
        "deleted from the MemoryOS of ada: 2 pages, 0 facts and traits",
    ]
    written = b"".join(path.read_bytes() for path in (root / "projects").rglob("*.ttl"))
    assert not any(text in written for text in (b"hunter2", b"ana", b"of-ben", b"nights"))


def test_a_user_is_one_person_however_the_name_is_written(memory):
    ada = memory.os(policy=policy(stm_capacity=1))
    animals = ("cat", "dog", "cow", "owl")
    for number, name in enumerate(("Ana", "ana", "ANA", "Ana")):
        page = ada.add(f"I have a {animals[number]}.", "Noted.", about=("user", name), page_id=f"p{number}")
        assert page.object == ("user", "Ana")
    ada.learn(ObjectLearnings("user", "aNA", {"language": "pt"}))
    ada.add("Where is it?", "There.", about=("file", "README"))
    ada.add("Where is it?", "There.", about=("file", "readme"))
    ada.maintain()

    (ana,) = ada.personas
    assert (ana.identifier, len(ana.knowledge), dict(ana.profile)) == ("Ana", 4, {"language": "pt"})
    assert [each.key for each in ada.retrieve("cat", about=("user", "ana")).personas] == [("user", "Ana")]
    assert {page.object for page in ada.tiers.pages()} == {("user", "Ana"), ("file", "README"), ("file", "readme")}
    assert ada.add("I have a cat.", "Noted.", about=("user", "ana"), page_id="p0", timestamp=page_time(ada)).id == "p0"


def page_time(ada):
    return ada.tiers.page("p0").timestamp
