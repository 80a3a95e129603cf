"""What the tiers hold on a question: tier by tier, with scores."""

import json
from dataclasses import replace

import pytest
from memoryos_dialogue import ADA, at, ids, page, policy, segment

from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.retrieval import RetrievalQuery, retrieve
from jidomem.extras.memoryos.segments import TierPolicy
from jidomem.extras.memoryos.values import (
    AgentPersona,
    KnowledgeEntry,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
)
from jidomem.records.interfaces import Known

PLAIN = policy()
QUESTION = RetrievalQuery("which index?", keywords={"index"})


def within(number, segment_, *keywords, **given):
    return page(number, segment_id=segment_, keywords=keywords, **given)


def fact(number, text):
    return KnowledgeEntry(f"k{number}", text, at(number))


MTM = (
    segment(1, (within(1, "s1", "index"), within(2, "s1", "index", "disk")), keywords={"index", "disk"}),
    segment(2, (within(3, "s2", "lunch"),), keywords={"lunch"}),
    segment(3, (within(4, "s3", "index", "a", "b"),), keywords={"index", "a", "b", "c"}),
)
PERSONAS = (
    ObjectPersona("ada", "user", "bob", {"language": "de"}, (fact(1, "Bob has a dog"),)),
    ObjectPersona("ada", "user", "ana", {"language": "pt"}, (fact(2, "Ana has an index"), fact(3, "Ana has a cat")),
                  (TraitEntry("t1", "tone", "terse", at()), TraitEntry("t2", "index", "liked", at()))),
    ObjectPersona("ada", "service", "search", {}, (fact(4, "its index is an Oxigraph index"),)),
)  # fmt: skip
SYSTEM = SystemMemory(0, (
    SystemEntry("y1", "lunch is at noon", "bob", 0.9, at()), SystemEntry("y2", "the index embeds", "bob", 0.9, at())
))  # fmt: skip
AGENT = AgentPersona("ada", {"role": "planner"}, (TraitEntry("t3", "style", "plain", at()),))
TIERS = Tiers("ada", stm=(page(8), page(9)), leaving=(page(7),), mtm=MTM, personas=PERSONAS, agent=AGENT)


# D092
def test_all_of_short_term_memory_is_retrieved_and_what_has_left_it_and_is_in_no_segment_yet():
    found = retrieve(TIERS, SYSTEM, QUESTION, PLAIN)

    assert ids(each.what for each in found.stm) == ["p8", "p9"]
    assert ids(each.what for each in found.leaving) == ["p7"]


# D093 D094
def test_the_segments_most_like_the_question_are_found_and_the_best_of_their_pages():
    found = retrieve(TIERS, SYSTEM, QUESTION, PLAIN, retrieved_segments=2, retrieved_pages=2)

    # {index} of {index, disk}: 1/2; of {index, a, b, c}: 1/4
    assert [(each.what.id, each.score) for each in found.segments] == [("s1", 0.5), ("s3", 0.25)]
    assert [(each.what.id, each.score) for each in found.pages] == [("p1", 1.0), ("p2", 0.5)]
    assert found.visited == {"s1", "s3"}
    alike = Tiers("ada", mtm=tuple(segment(each, keywords={"index"}, created_at=at(-each)) for each in (1, 2, 3)))
    assert ids(each.what for each in retrieve(alike, SYSTEM, QUESTION, PLAIN).segments) == ["s1", "s2", "s3"]


# D100 D102
def test_how_much_is_found_has_a_default_in_the_settings_and_may_be_said_with_the_question():
    pages = tuple(within(number, "s1", "index") for number in range(20))
    many = Tiers("ada", mtm=(segment(1, pages, keywords={"index"}), *(segment(each) for each in range(2, 9))))

    found = retrieve(many, SYSTEM, QUESTION, PLAIN)
    assert (len(found.segments), len(found.pages)) == (5, 7)
    bai = retrieve(many, SYSTEM, QUESTION, policy(segment_threshold=0.1, page_threshold=0.1, comparison=">="))
    assert (ids(each.what for each in bai.segments), len(bai.pages)) == (["s1"], 7)
    assert len(retrieve(many, SYSTEM, QUESTION, PLAIN, retrieved_pages=11).pages) == 11
    with pytest.raises(InvalidRequest, match="MemoryOS has no setting 'retrieved_page'"):
        retrieve(many, SYSTEM, QUESTION, PLAIN, retrieved_page=1)


# D100
@pytest.mark.parametrize("said", ["with the question", "in the settings"])
@pytest.mark.parametrize(
    ("name", "default", "count"),
    [
        ("retrieved_segments", 5, lambda found: len(found.segments)),
        ("retrieved_pages", 7, lambda found: len(found.pages)),
        ("retrieved_knowledge", 20, lambda found: sum(len(each.knowledge) for each in found.personas)),
        ("retrieved_traits", 20, lambda found: len(found.agent.traits)),
        ("retrieved_system", 20, lambda found: len(found.system)),
    ],
)
def test_each_limit_of_what_is_found_is_a_parameter_with_its_default(name, default, count, said):
    many = range(1, 31)
    traits = tuple(TraitEntry(f"t{n}", f"index {n}", "liked", at()) for n in many)
    tiers = Tiers(
        "ada",
        mtm=tuple(segment(n, (within(n, f"s{n}", "index"),), keywords={"index"}) for n in many),
        personas=(ObjectPersona("ada", "user", "ana", {}, tuple(fact(n, f"an index {n}") for n in many), traits),),
        agent=AgentPersona("ada", {}, traits),
    )
    system = SystemMemory(0, tuple(SystemEntry(f"y{n}", f"the index {n}", "bob", 0.9, at()) for n in many))

    def found(**limits):
        wide = {"retrieved_segments": 30, "retrieved_pages": 30} if name == "retrieved_pages" else {}
        if said == "in the settings":
            return count(retrieve(tiers, system, QUESTION, policy(**{**wide, **limits})))
        return count(retrieve(tiers, system, QUESTION, PLAIN, **{**wide, **limits}))

    assert [found(**{name: number}) for number in (1, 2, 25)] == [1, 2, 25]
    enough = policy(retrieved_segments=30) if name == "retrieved_pages" else PLAIN
    assert count(retrieve(tiers, system, QUESTION, enough)) == default


# D095
def test_the_asking_object_comes_first_and_others_if_a_fact_of_theirs_matches():
    found = retrieve(TIERS, SYSTEM, replace(QUESTION, object_type="user", object_identifier="bob"), PLAIN)

    assert [each.key for each in found.personas] == [("user", "bob"), ("user", "ana"), ("service", "search")]
    bob, ana, _ = found.personas
    assert (bob.profile, bob.knowledge) == ({"language": "de"}, ())
    assert [(each.what.id, each.score) for each in ana.knowledge] == [("k2", 1.0)]
    assert [(each.what.id, each.score) for each in ana.traits] == [("t2", 1.0), ("t1", 0.0)]
    assert [each.key for each in retrieve(TIERS, SYSTEM, QUESTION, PLAIN).personas] == [
        ("user", "ana"), ("service", "search")]  # fmt: skip
    assert len(retrieve(TIERS, SYSTEM, QUESTION, PLAIN, retrieved_knowledge=1).personas) == 1
    with pytest.raises(InvalidRequest, match="the asking object is incomplete"):
        RetrievalQuery("which index?", object_type="user")


# D096 D097
def test_the_agent_is_always_known_and_of_system_memory_what_is_on_the_question():
    found = retrieve(TIERS, SYSTEM, QUESTION, PLAIN)

    assert (found.agent.key, found.agent.profile, ids(each.what for each in found.agent.traits)) == (
        None, {"role": "planner"}, ["t3"])  # fmt: skip
    assert [(each.what.id, each.score) for each in found.system] == [("y2", 1.0)]


# D101
def test_what_is_found_is_told_tier_by_tier_as_plain_values_and_puts_no_prompt_together():
    told = json.loads(json.dumps(retrieve(TIERS, SYSTEM, QUESTION, PLAIN).to_dict()))

    tiers = {"stm", "leaving", "segments", "pages", "personas", "agent", "system"}
    assert set(told) == {"question", "agent_id", *tiers, "error"}
    assert (told["segments"][0]["page_count"], told["segments"][0]["score"]) == (2, 0.5)
    assert not {"pages", "embedding"} & told["segments"][0].keys()
    assert told["personas"][0]["knowledge"][0]["text"] == "Ana has an index"
    assert told["agent"] == {"profile": {"role": "planner"}, "knowledge": [], "traits": told["agent"]["traits"]}


# D098
def test_what_long_term_memory_holds_is_given_as_it_is_put_before_a_language_model():
    asked = replace(QUESTION, object_type="user", object_identifier="ana")
    found = retrieve(TIERS, SYSTEM, asked, PLAIN)

    assert found.known() == (
        Known("user ana", {"language": "pt"}, ("Ana has an index",), ("index: liked", "tone: terse"), asks=True),
        Known("service search", {}, ("its index is an Oxigraph index",), ()),
        Known("agent ada", {"role": "planner"}, (), ("style: plain",)),
    )


@pytest.mark.parametrize(("asking", "told"), [(None, ["k2", "k5"]), ("ana", ["k2", "k5"]), ("bob", ["k2"])])
def test_private_facts_of_one_object_are_left_out_if_another_asks(asking, told):
    ana = replace(PERSONAS[1], knowledge=(fact(2, "has an index"), replace(fact(5, "sells the index"), private=True)))
    question = replace(QUESTION, object_type=asking and "user", object_identifier=asking)

    found = retrieve(Tiers("ada", personas=(ana,)), SystemMemory(), question, PLAIN)

    assert [ids(each.what for each in persona.knowledge) for persona in found.personas] == [told]


# D003
def test_nothing_of_another_agent_is_found_but_what_all_may_know():
    found = retrieve(Tiers("carl"), SYSTEM, QUESTION, PLAIN).to_dict()

    assert (found["stm"], found["segments"], found["pages"], found["personas"]) == ([], [], [], [])
    assert found["agent"]["profile"] == {}
    assert [each["id"] for each in found["system"]] == ["y2"]


# D099
def test_retrieving_changes_nothing_by_itself():
    before = TIERS.to_dict(), SYSTEM.to_dict()

    retrieve(TIERS, SYSTEM, QUESTION, PLAIN)

    assert (TIERS.to_dict(), SYSTEM.to_dict()) == before


# D118
def test_what_is_relevant_may_be_told_by_a_score_of_your_own():
    own = TierPolicy(relevance=lambda text, embedding, question, config: float("cat" in text))

    found = retrieve(TIERS, SYSTEM, QUESTION, own)

    assert [ids(each.what for each in persona.knowledge) for persona in found.personas] == [["k3"]]
    assert found.system == ()


def test_an_agent_that_holds_nothing_has_nothing_on_a_question():
    assert retrieve(ADA, SystemMemory(), QUESTION, PLAIN).known() == (Known("agent ada"),)
