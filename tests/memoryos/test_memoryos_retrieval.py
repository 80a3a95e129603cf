"""Retrieval from the tiers for a question: tier by tier, with scores."""

import json
from dataclasses import replace

import pytest
from memoryos_dialogue import ADA, at, ids, page, policy, segment

from jidomem.base.clock import format_timestamp
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

PLAIN, APART = policy(share_users=True), policy()
QUESTION = RetrievalQuery("which index?", keywords={"index"})


def page_within(number, segment_, *keywords, **fields):
    return page(number, segment_id=segment_, keywords=keywords, **fields)


def fact(number, text):
    return KnowledgeEntry(f"k{number}", text, at(number))


MTM = (
    segment(1, (page_within(1, "s1", "index"), page_within(2, "s1", "index", "disk")), keywords={"index", "disk"}),
    segment(2, (page_within(3, "s2", "lunch"),), keywords={"lunch"}),
    segment(3, (page_within(4, "s3", "index", "a", "b"),), keywords={"index", "a", "b", "c"}),
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
def test_retrieval_has_all_short_term_pages_and_those_that_leave_it():
    results = retrieve(TIERS, SYSTEM, QUESTION, PLAIN)

    assert ids(each.what for each in results.stm) == ["p8", "p9"]
    assert ids(each.what for each in results.leaving) == ["p7"]


# D093 D094
def test_retrieval_has_the_most_similar_segments_and_their_best_pages():
    results = retrieve(TIERS, SYSTEM, QUESTION, PLAIN, retrieved_segments=2, retrieved_pages=2)

    # {index} of {index, disk}: 1/2; of {index, a, b, c}: 1/4
    assert [(each.what.id, each.score) for each in results.segments] == [("s1", 0.5), ("s3", 0.25)]
    assert [(each.what.id, each.score) for each in results.pages] == [("p1", 1.0), ("p2", 0.5)]
    assert results.visited == {"s1", "s3"}
    equal_tiers = Tiers("ada", mtm=tuple(segment(each, keywords={"index"}, created_at=at(-each)) for each in (1, 2, 3)))
    assert ids(each.what for each in retrieve(equal_tiers, SYSTEM, QUESTION, PLAIN).segments) == ["s1", "s2", "s3"]


# D100 D102
def test_retrieval_limits_have_defaults_and_are_set_by_policy_or_call():
    pages = tuple(page_within(number, "s1", "index") for number in range(20))
    many = Tiers("ada", mtm=(segment(1, pages, keywords={"index"}), *(segment(each) for each in range(2, 9))))

    results = retrieve(many, SYSTEM, QUESTION, PLAIN)
    assert (len(results.segments), len(results.pages)) == (5, 7)
    bai = retrieve(many, SYSTEM, QUESTION, policy(segment_threshold=0.1, page_threshold=0.1, comparison=">="))
    assert (ids(each.what for each in bai.segments), len(bai.pages)) == (["s1"], 7)
    assert len(retrieve(many, SYSTEM, QUESTION, PLAIN, retrieved_pages=11).pages) == 11
    with pytest.raises(InvalidRequest, match="MemoryOS has no setting 'retrieved_page'"):
        retrieve(many, SYSTEM, QUESTION, PLAIN, retrieved_page=1)


# D100
@pytest.mark.parametrize("source", ["with the question", "in the settings"])
@pytest.mark.parametrize(
    ("name", "default", "count"),
    [
        ("retrieved_segments", 5, lambda number_retrieved: len(number_retrieved.segments)),
        ("retrieved_pages", 7, lambda number_retrieved: len(number_retrieved.pages)),
        (
            "retrieved_knowledge",
            20,
            lambda number_retrieved: sum(len(each.knowledge) for each in number_retrieved.personas),
        ),
        ("retrieved_traits", 20, lambda number_retrieved: len(number_retrieved.agent.traits)),
        ("retrieved_system", 20, lambda number_retrieved: len(number_retrieved.system)),
    ],
)
def test_each_retrieval_limit_has_a_default_and_is_set_by_call_or_settings(name, default, count, source):
    many = range(1, 31)
    traits = tuple(TraitEntry(f"t{n}", f"index {n}", "liked", at()) for n in many)
    tiers = Tiers(
        "ada",
        mtm=tuple(segment(n, (page_within(n, f"s{n}", "index"),), keywords={"index"}) for n in many),
        personas=(ObjectPersona("ada", "user", "ana", {}, tuple(fact(n, f"an index {n}") for n in many), traits),),
        agent=AgentPersona("ada", {}, traits),
    )
    system = SystemMemory(0, tuple(SystemEntry(f"y{n}", f"the index {n}", "bob", 0.9, at()) for n in many))

    def number_retrieved(**limits):
        wide = {"retrieved_segments": 30, "retrieved_pages": 30} if name == "retrieved_pages" else {}
        wide["share_users"] = True
        if source == "in the settings":
            return count(retrieve(tiers, system, QUESTION, policy(**{**wide, **limits})))
        return count(retrieve(tiers, system, QUESTION, PLAIN, **{**wide, **limits}))

    assert [number_retrieved(**{name: number}) for number in (1, 2, 25)] == [1, 2, 25]
    enough = policy(retrieved_segments=30, share_users=True) if name == "retrieved_pages" else PLAIN
    assert count(retrieve(tiers, system, QUESTION, enough)) == default


# D095
def test_retrieval_has_the_persona_of_the_asking_object_first_then_those_with_matching_facts():
    results = retrieve(TIERS, SYSTEM, replace(QUESTION, object_type="user", object_identifier="bob"), PLAIN)

    assert [each.key for each in results.personas] == [("user", "bob"), ("service", "search")]
    bob, _ = results.personas
    assert (bob.profile, bob.knowledge) == ({"language": "de"}, ())
    results = retrieve(TIERS, SYSTEM, replace(QUESTION, object_type="service", object_identifier="mail"), PLAIN)
    assert results.personas == ()
    results = retrieve(TIERS, SYSTEM, replace(QUESTION, object_type="user", object_identifier="ana"), PLAIN)
    assert [each.key for each in results.personas] == [("user", "ana"), ("service", "search")]
    ana, _ = results.personas
    assert [(each.what.id, each.score) for each in ana.knowledge] == [("k2", 1.0)]
    assert [(each.what.id, each.score) for each in ana.traits] == [("t2", 1.0), ("t1", 0.0)]
    assert [each.key for each in retrieve(TIERS, SYSTEM, QUESTION, PLAIN).personas] == [
        ("user", "ana"), ("service", "search")]  # fmt: skip
    assert len(retrieve(TIERS, SYSTEM, QUESTION, PLAIN, retrieved_knowledge=1).personas) == 1
    with pytest.raises(InvalidRequest, match="the asking object is incomplete"):
        RetrievalQuery("which index?", object_type="user")


# D096 D097
def test_retrieval_always_has_the_agent_persona_and_only_matching_system_entries():
    results = retrieve(TIERS, SYSTEM, QUESTION, PLAIN)

    assert (results.agent.key, results.agent.profile, ids(each.what for each in results.agent.traits)) == (
        None, {"role": "planner"}, ["t3"])  # fmt: skip
    assert [(each.what.id, each.score) for each in results.system] == [("y2", 1.0)]


# D101
def test_a_retrieval_result_is_json_by_tier_without_a_prompt():
    result = json.loads(json.dumps(retrieve(TIERS, SYSTEM, QUESTION, PLAIN).to_dict()))

    tiers = {"stm", "leaving", "segments", "pages", "personas", "agent", "system"}
    assert set(result) == {"question", "agent_id", *tiers, "error"}
    assert (result["segments"][0]["page_count"], result["segments"][0]["score"]) == (2, 0.5)
    assert not {"pages", "embedding"} & result["segments"][0].keys()
    assert result["personas"][0]["knowledge"][0]["text"] == "Ana has an index"
    assert result["agent"] == {"profile": {"role": "planner"}, "knowledge": [], "traits": result["agent"]["traits"]}


# D098
def test_retrieved_personas_are_given_as_known_values_of_a_prompt():
    question = replace(QUESTION, object_type="user", object_identifier="ana")
    results = retrieve(TIERS, SYSTEM, question, PLAIN)

    (ana_time,), (service_time,) = ([format_timestamp(each.what.created_at) for each in persona.knowledge]
                                    for persona in results.personas)  # fmt: skip
    assert results.known() == (
        Known(
            "user ana", {"language": "pt"}, ("Ana has an index",), ("index: liked", "tone: terse"), True, (ana_time,)
        ),
        Known("service search", {}, ("its index is an Oxigraph index",), (), times=(service_time,)),
        Known("agent ada", {"role": "planner"}, (), ("style: plain",)),
    )


@pytest.mark.parametrize(("asks", "expected"), [(None, ["k2"]), ("mail", ["k2", "k5"]), ("ana", ["k2"])])
def test_private_facts_about_an_object_are_absent_unless_it_asks(asks, expected):
    known = fact(2, "has an index"), replace(fact(5, "sells the index"), private=True)
    mail = ObjectPersona("ada", "service", "mail", {}, known)
    type_ = {"mail": "service", "ana": "user", None: None}[asks]
    question = replace(QUESTION, object_type=type_, object_identifier=asks)

    results = retrieve(Tiers("ada", personas=(mail,)), SystemMemory(), question, PLAIN)

    (match,) = results.personas
    assert (match.key, ids(each.what for each in match.knowledge)) == (mail.key, expected)


# D095
@pytest.mark.parametrize("asks", ["bob", "nobody"])
def test_a_user_gets_no_fact_and_no_trait_of_another_user(asks):
    question = replace(QUESTION, object_type="user", object_identifier=asks)

    results = retrieve(TIERS, SYSTEM, question, PLAIN)

    assert "Ana" not in json.dumps([results.to_dict()["personas"], [each.facts for each in results.known()]])
    assert "liked" not in json.dumps([each.traits for each in results.known()])


def test_private_pages_of_others_are_in_no_tier_of_a_retrieval():
    ana, bob = ({"object_type": "user", "object_identifier": name} for name in ("ana", "bob"))
    said = {"keywords": ("index",), "said": "secret"}
    mixed = segment(1, (page(1, segment_id="s1", **said, **bob), page(2, segment_id="s1", keywords=("index",), **ana)),
                    keywords={"index"}, topic_summary="Bob's secret", embedding=[1.0])  # fmt: skip
    alone = segment(2, (page(3, segment_id="s2", **said, **bob),), keywords={"index"}, topic_summary="a secret")
    based = segment(3, (page(6, segment_id="s3", keywords=("index",), **bob),), keywords={"index"})
    persona = ObjectPersona("ada", "user", "bob", {}, (replace(fact(1, "quits"), private=True, evidence=("p6",)),))
    queues = [(page(number, "secret", **bob), page(number + 1, **bob)) for number in (10, 20)]
    tiers = Tiers("ada", stm=queues[0], leaving=queues[1], mtm=(mixed, alone, based), personas=(persona,))

    def pages_for(name, **limits):
        question = replace(QUESTION, object_type=name and "user", object_identifier=name)
        results = retrieve(tiers, SYSTEM, question, PLAIN, is_private=lambda text: "secret" in text, **limits)
        return results, ids(each.what for each in (*results.stm, *results.leaving, *results.pages))

    results, pages = pages_for("ana")
    assert pages == ["p2", "p11", "p21"]
    (part,) = results.segments
    assert (part.what.id, part.what.page_count, part.what.topic_summary, part.what.embedding) == ("s1", 1, "", None)
    assert "secret" not in json.dumps(results.to_dict())
    assert pages_for("ana", retrieved_segments=1)[1] == ["p2", "p11", "p21"]
    assert {"p1", "p3", "p6", "p10", "p20"} <= {*pages_for("bob")[1]}
    assert not {"p1", "p3", "p6", "p10", "p20"} & {*pages_for(None)[1]}


def of(name):
    return {"object_type": name and "user", "object_identifier": name}


def test_pages_and_facts_of_a_user_are_retrieved_for_that_user_alone():
    mixed = segment(1, (page_within(1, "s1", "index", **of("bob")), page_within(2, "s1", "index", **of("ana")),
                        page_within(3, "s1", "index")), keywords={"index"}, topic_summary="Bob's index")  # fmt: skip
    promised = replace(fact(5, "gave an index to Bob"), user="bob"), fact(6, "has an index")
    agent = AgentPersona("ada", {}, (TraitEntry("t9", "index", "Bob's", at(), user="bob"), *AGENT.traits))
    tiers = Tiers("ada", stm=(page(8, **of("bob")), page(9)), leaving=(page(7, **of("bob")),), mtm=(mixed,),
                  personas=(*PERSONAS, ObjectPersona("ada", "agent", "ada", {}, promised)), agent=agent)  # fmt: skip
    system = SystemMemory(0, (
        *SYSTEM.entries,  # of an earlier version, which did not say whom they are about
        SystemEntry("y3", "has an index", "carl", 0.9, at(), about="user BOB", user="bob"),
        SystemEntry("y4", "has an index", "carl", 0.9, at(), about="service search"),
    ))  # fmt: skip

    def ids_for(name, policy=APART):
        results = retrieve(tiers, system, replace(QUESTION, **of(name)), policy)
        pages = {*ids(each.what for each in (*results.stm, *results.leaving, *results.pages))}
        facts = {each.what.id for persona in results.personas for each in persona.knowledge}
        return pages, facts, {*ids(each.what for each in (*results.agent.traits, *results.system))}, results

    for name, own_pages, own_facts in (("ana", {"p2"}, {"k2"}), ("nobody", set(), set()), (None, set(), set())):
        pages, facts, more, results = ids_for(name)
        assert (pages, facts, more) == ({"p3", "p9", *own_pages}, {"k4", "k6", *own_facts}, {"t3", "y4"})
        assert "Bob" not in json.dumps(results.to_dict())
    assert ids_for("bob")[:3] == ({"p1", "p3", "p7", "p8", "p9"}, {"k4", "k5", "k6"}, {"t3", "t9", "y3", "y4"})
    assert ids_for("ana", PLAIN)[0] == {"p1", "p2", "p3", "p7", "p8", "p9"}
    assert {"t9", "y2", "y3"} <= ids_for("ana", PLAIN)[2]


@pytest.mark.parametrize(("asks", "expected"), [("patient", ["p2"]), ("service", ["p1", "p2"]), (None, ["p1", "p2"])])
def test_pages_of_another_object_of_the_type_that_asks_are_not_retrieved(asks, expected):
    pages = [page(number, object_type="patient", object_identifier=name) for number, name in ((1, "bob"), (2, "ana"))]
    question = replace(QUESTION, object_type=asks, object_identifier=asks and "ana")

    assert ids(each.what for each in retrieve(Tiers("ada", stm=pages), SYSTEM, question, APART).stm) == expected


def test_the_recent_pages_of_a_user_are_retrieved_when_others_have_filled_the_short_term_memory():
    own = tuple(page_within(number, "s1", "lunch", **of("ana")) for number in (1, 2, 3))
    others = tuple(page(number, **of("bob")) for number in (7, 8))
    tiers = Tiers("ada", stm=(*others, page(9, **of("ana"))), mtm=(segment(1, own, keywords={"lunch"}),))
    question = replace(QUESTION, **of("ana"))

    def recent(question, **settings):
        return ids(each.what for each in retrieve(tiers, SYSTEM, question, policy(**settings)).stm)

    assert [recent(question, stm_capacity=number) for number in (3, 1)] == [["p2", "p3", "p9"], ["p9"]]
    assert recent(QUESTION) == []


def test_a_question_about_a_user_by_somebody_else_has_the_facts_of_the_user_who_does_not_ask():
    results = retrieve(TIERS, SYSTEM, replace(QUESTION, **of("ana"), asks=False), APART)

    assert [each.of for each in results.known() if each.facts] == ["user ana", "service search"]
    assert not any(each.asks for each in results.known())


# D003
def test_retrieval_for_another_agent_has_only_system_memory():
    results = retrieve(Tiers("carl"), SYSTEM, QUESTION, PLAIN).to_dict()

    assert (results["stm"], results["segments"], results["pages"], results["personas"]) == ([], [], [], [])
    assert results["agent"]["profile"] == {}
    assert [each["id"] for each in results["system"]] == ["y2"]


# D099
def test_retrieval_changes_no_tier():
    before = TIERS.to_dict(), SYSTEM.to_dict()

    retrieve(TIERS, SYSTEM, QUESTION, PLAIN)

    assert (TIERS.to_dict(), SYSTEM.to_dict()) == before


# D118
def test_a_custom_relevance_function_selects_facts():
    own = TierPolicy(PLAIN.config, relevance=lambda text, embedding, question, config: float("cat" in text))

    results = retrieve(TIERS, SYSTEM, QUESTION, own)

    assert [ids(each.what for each in persona.knowledge) for persona in results.personas] == [["k3"]]
    assert results.system == ()


def test_retrieval_for_an_empty_agent_has_only_its_name():
    assert retrieve(ADA, SystemMemory(), QUESTION, PLAIN).known() == (Known("agent ada"),)
