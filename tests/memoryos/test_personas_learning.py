"""The learning of personas: lessons of hot segments, and queues of facts and traits."""

from dataclasses import replace

import pytest
from memoryos_dialogue import ADA, at, ids, page, policy, segment

from jidomem.errors import InvalidRequest, RevisionConflict
from jidomem.extras.memoryos.personas import (
    UNNAMED,
    Lesson,
    ObjectLearnings,
    PersonaDiffusion,
    apply_lesson,
    contradicts,
    diffuse,
    learn,
    lesson,
    texts_of,
    unlearned_pages,
)
from jidomem.extras.memoryos.retrieval import SegmentVisit, hot, touch_segments
from jidomem.extras.memoryos.values import (
    AgentPersona,
    KnowledgeEntry,
    ObjectKey,
    ObjectPersona,
    SystemMemory,
    Tiers,
    TraitEntry,
    fit,
)
from jidomem.records.interfaces import AGENT, Fact, Learned, Trait

PLAIN = policy()
ANA = ObjectKey("user", "ana")


def fact(number, text=None, **fields):
    return KnowledgeEntry(f"k{number}", text or f"fact {number}", at(number), **fields)


def trait(number, value="so", **fields):
    return TraitEntry(f"t{number}", f"trait {number}", value, at(number), **fields)


def of_ana(**fields):
    return ObjectLearnings(*ANA, **fields)


def taught(tiers, *learnt, policy=PLAIN):
    for each in learnt:
        tiers = learn(tiers, each, policy).memory
    return tiers


# D004 D023
def test_a_persona_is_created_with_its_first_lesson_and_is_unique():
    once = taught(ADA, of_ana(), ObjectLearnings("service", "ana"), ObjectLearnings("file", "src/main.py"))

    assert [persona.key for persona in once.personas] == [ANA, ("service", "ana"), ("file", "src/main.py")]
    assert once.persona(ANA) == ObjectPersona("ada", "user", "ana")
    assert taught(once, of_ana(), ObjectLearnings("service", "ana")) is once
    with pytest.raises(InvalidRequest, match=r"persona .* occurs twice"):
        Tiers("ada", personas=(once.personas[0], once.personas[0]))


# D025 D026
def test_persona_knowledge_is_a_queue_that_drops_its_oldest_fact():
    three = policy(object_kb_capacity=3)
    tiers = taught(ADA, of_ana(knowledge=[fact(1), fact(2)]), of_ana(knowledge=[fact(3), fact(4)]), policy=three)

    assert ids(tiers.persona(ANA).knowledge) == ["k2", "k3", "k4"]
    many = taught(ADA, of_ana(knowledge=[fact(number) for number in range(150)]))
    assert len(many.persona(ANA).knowledge) == 100


# D025 D030
def test_persona_traits_are_queues_of_the_object_and_of_the_agent():
    small = policy(object_traits_capacity=2, agent_traits_capacity=1)
    traits = [trait(1), trait(2), trait(3)]
    tiers = taught(ADA, of_ana(traits=traits), ObjectLearnings(traits=traits), policy=small)

    assert (ids(tiers.persona(ANA).traits), ids(tiers.agent.traits)) == (["t2", "t3"], ["t3"])
    many = taught(ADA, *(each(traits=[trait(number) for number in range(60)]) for each in (of_ana, ObjectLearnings)))
    assert (len(many.persona(ANA).traits), len(many.agent.traits)) == (50, 30)


# D040
def test_a_smaller_queue_capacity_takes_effect_with_the_next_move():
    tiers = taught(
        ADA, of_ana(knowledge=[fact(1), fact(2)], traits=[trait(1), trait(2)]), ObjectLearnings(traits=[trait(1)])
    )

    after = fit(tiers, policy(object_kb_capacity=1, object_traits_capacity=1).config).memory

    assert (ids(after.persona(ANA).knowledge), ids(after.persona(ANA).traits)) == (["k2"], ["t2"])
    assert after.agent == tiers.agent


# D028 D029 D031
def test_an_agent_has_one_persona_whose_profile_keys_are_merged():
    tiers = taught(
        ADA,
        ObjectLearnings(profile={"role": "planner", "goals": ["ship"]}),
        ObjectLearnings(profile={"goals": ["rest"]}),
    )

    assert tiers.agent == AgentPersona("ada", {"role": "planner", "goals": ["rest"]})
    assert ADA.agent == AgentPersona("ada")
    with pytest.raises(InvalidRequest, match="an item of bob is in the tiers of ada"):
        Tiers("ada", agent=AgentPersona("bob"))


# D031 D021
def test_profile_keys_of_an_object_are_merged_and_other_profiles_unchanged():
    tiers = taught(
        ADA, of_ana(profile={"language": "pt", "likes": {"tea": 1}}), ObjectLearnings("user", "bob", {"language": "en"})
    )

    after = taught(tiers, of_ana(profile={"age": 41, "likes": {"maps": 2}}), of_ana(profile={}))

    assert after.persona(ANA).profile == {
        "language": "pt",
        "age": 41,
        "likes": {"maps": 2},
    }
    assert after.persona(ObjectKey("user", "bob")).profile == {"language": "en"}
    assert after.agent.profile == {}
    assert tiers.persona(ANA).profile == {"language": "pt", "likes": {"tea": 1}}


# D024 D117
def test_a_profile_schema_of_a_type_is_enforced_and_other_types_accept_any_mapping():
    typed = policy(profiles={"user": {"language": "text", "age": "number", "languages": "list", "active": "truth"}})

    tiers = taught(ADA, of_ana(profile={"language": "pt", "age": 41, "active": True}), policy=typed)
    tiers = taught(tiers, ObjectLearnings("robot", "r2", {"anything": {"goes": [1]}}), policy=typed)

    assert tiers.persona(ANA).profile == {"language": "pt", "age": 41, "active": True}
    assert taught(tiers, of_ana(profile={"age": 42}), policy=typed).persona(ANA).profile == {
        "language": "pt", "age": 42, "active": True}  # fmt: skip
    with pytest.raises(InvalidRequest, match="a profile of 'user' has no 'shoe'") as refusal:
        learn(ADA, of_ana(profile={"shoe": 41}), typed)
    assert refusal.value.hint == "it has language, age, languages, active"
    for invalid, kind in ({"age": "41"}, "number"), ({"age": True}, "number"), ({"languages": "pt"}, "list"):
        with pytest.raises(InvalidRequest, match=f"of a profile of 'user' is a {kind}"):
            learn(ADA, of_ana(profile=invalid), typed)


def test_a_repeated_fact_becomes_the_newest_with_joined_evidence_and_stays_private():
    tiers = taught(
        ADA,
        of_ana(knowledge=[fact(1, "Ana uses Oxigraph", confidence=0.5, evidence=["p1"], private=True), fact(2)]),
        of_ana(knowledge=[fact(3, "ana  uses OXIGRAPH.", confidence=0.9, evidence=["p1", "p2"])]),
    )

    assert ids(tiers.persona(ANA).knowledge) == ["k2", "k1"]
    repeated = tiers.persona(ANA).knowledge[1]
    assert (repeated.confidence, repeated.evidence, repeated.private, repeated.created_at) == (
        0.9,
        ("p1", "p2"),
        True,
        at(1),
    )
    less = taught(tiers, of_ana(knowledge=[fact(4, "Ana uses Oxigraph", confidence=0.1)]))
    assert less.persona(ANA).knowledge == tiers.persona(ANA).knowledge
    with pytest.raises(InvalidRequest, match="fact k1 occurs twice"):
        learn(tiers, ObjectLearnings("user", "bob", knowledge=[fact(1, "Bob has a dog")]), PLAIN)


# D027
def test_a_repeated_trait_becomes_the_newest_and_values_of_one_name_coexist():
    tiers = taught(ADA, of_ana(traits=[TraitEntry(f"t{number}", "likes", taste, at(number), private=taste == "gin")
                                       for number, taste in enumerate(["tea", "gin", "chess"])]))  # fmt: skip
    repeated = taught(
        tiers, of_ana(traits=[TraitEntry("t9", "Likes", "tea.", at(9)), TraitEntry("t8", "likes", "ale", at())])
    )

    assert [(each.value, each.private) for each in repeated.persona(ANA).traits] == [
        ("gin", True), ("chess", False), ("tea.", False), ("ale", False)]  # fmt: skip


def test_a_single_valued_trait_replaces_the_previous_value_and_its_privacy():
    def tone(trait_id, value, pages, **given):
        return ObjectLearnings(traits=[TraitEntry(trait_id, "Tone", value, at(), evidence=pages, **given)])

    tiers = taught(ADA, tone("t1", "terse", ["p1"], private=True), ObjectLearnings(traits=[trait(2)]))
    same, other = taught(tiers, tone("t7", "Terse", ["p2"])), taught(tiers, tone("t7", "chatty", ["p2"]))

    def trait_values(tiers):
        return [(each.value, each.evidence, each.private) for each in tiers.agent.traits]

    assert trait_values(same) == [("so", (), False), ("Terse", ("p1", "p2"), True)]
    assert trait_values(other) == [("so", (), False), ("chatty", ("p2",), False)]
    many = taught(tiers, tone("t7", "chatty", ["p2"]), policy=policy(single_traits=["name"]))
    assert [each.value for each in many.agent.traits] == ["terse", "so", "chatty"]
    with pytest.raises(InvalidRequest, match="single_traits"):
        policy(single_traits="tone")


def test_facts_without_an_object_and_an_incomplete_object_are_refused():
    with pytest.raises(InvalidRequest, match="facts need an object, and none is given"):
        ObjectLearnings(knowledge=[fact(1)])
    with pytest.raises(InvalidRequest, match="the object of these learnings is missing"):
        ObjectLearnings("user")


# D069 D070 D071
def test_a_lesson_of_a_hot_segment_updates_personas_and_cools_the_segment():
    tiers = touch_segments(Tiers("ada", mtm=(segment(1, [1, 2, 3, 4]),)), SegmentVisit({"s1"}, at(9)), PLAIN).memory
    (ready,) = hot(tiers, PLAIN)
    lesson_ = Lesson(
        "s1",
        ids(unlearned_pages(ready).pages),
        at(9),
        [of_ana(knowledge=[fact(1)]), ObjectLearnings(traits=[trait(1)])],
    )

    after = apply_lesson(tiers, lesson_, PLAIN).memory

    assert after.persona(ANA).knowledge == (fact(1, evidence=("p1", "p2", "p3", "p4")),)
    assert ids(after.agent.traits) == ["t1"]
    segment_ = after.segment("s1")
    assert (segment_.analysed, segment_.heat_score, segment_.visit_count) == (
        True,
        1.0,
        1,
    )  # only recency remains
    assert hot(after, PLAIN) == ()
    assert apply_lesson(after, lesson_, PLAIN).memory is after


# D071
def test_later_pages_of_a_segment_are_learned_separately():
    pages = (page(1, segment_id="s1", analysed=True), page(2, segment_id="s1"))
    tiers = Tiers("ada", mtm=(segment(1, pages),))

    assert ids(unlearned_pages(tiers.mtm[0]).pages) == ["p2"]
    assert apply_lesson(tiers, Lesson("s1", ["p2"], at()), PLAIN).memory.mtm[0].analysed
    for overlapping in (["p1", "p2"], ["p2", "p9"]):
        with pytest.raises(RevisionConflict, match="some pages of segment s1 have been taught meanwhile"):
            apply_lesson(tiers, Lesson("s1", overlapping, at()), PLAIN)


# D071 D072
def test_a_learned_segment_is_archived_and_removed_if_configured():
    tiers = Tiers("ada", mtm=(segment(1, [1, 2]), segment(2, [3])))
    deleting = policy(on_transfer="delete")

    half = apply_lesson(tiers, Lesson("s1", ["p1"], at(), [of_ana(knowledge=[fact(1)])]), deleting)
    whole = apply_lesson(half.memory, Lesson("s1", ["p2"], at()), deleting)

    assert (ids(half.memory.mtm), half.directives) == (["s1", "s2"], ())
    assert ids(whole.memory.mtm) == ["s2"]
    (directive,) = whole.directives
    assert [each["id"] for each in directive.items[0].value["pages"]] == ["p1", "p2"]
    assert (
        apply_lesson(whole.memory, Lesson("s1", ["p2"], at(), [of_ana(knowledge=[fact(2)])]), deleting).memory
        is whole.memory
    )


def test_the_evidence_of_a_repeated_fact_is_limited_to_the_newest_pages():  # D041
    tiers, small = ADA, policy(evidence_capacity=3)
    for number in range(5):
        newest = replace(fact(number, "likes tea"), evidence=(f"p{number}",))
        tiers = learn(
            tiers, of_ana(knowledge=[newest], traits=[replace(trait(1), evidence=newest.evidence)]), small
        ).memory

    assert tiers.personas[0].knowledge[0].evidence == ("p2", "p3", "p4")
    assert tiers.personas[0].traits[0].evidence == ("p2", "p3", "p4")


# D070
def test_learned_facts_and_traits_are_assigned_to_the_objects_of_their_pages():
    pages = (page(1, segment_id="s1", object_type="user", object_identifier="ana"), page(2, segment_id="s1"))
    learned = Learned(
        (Fact("works as a nurse", 0.7, page=1, private=True), Fact("knows Rust", subject=AGENT)),
        (Trait("tone", "terse", page=0, private=True), Trait("style", "plain", subject=AGENT, page=7)),
    )
    numbers = iter("abcd")
    vectors = {text: [float(place)] for place, text in enumerate(texts_of(learned), 1)}

    result = lesson(segment(1, pages), learned, at=at(5), new_id=lambda: next(numbers), vectors=vectors)

    assert (result.segment_id, result.pages) == ("s1", ("p1", "p2"))
    ana, of_agent, own = result.learnt
    assert (ana.type, ana.identifier) == ANA
    assert ana.knowledge == (KnowledgeEntry("a", "works as a nurse", at(5), 0.7, True, ("p2",), (1.0,)),)
    assert ana.traits == (TraitEntry("c", "tone", "terse", at(5), 1.0, True, ("p1",), (3.0,)),)
    assert (of_agent.type, of_agent.identifier, of_agent.knowledge[0].evidence) == ("agent", "ada", ())
    assert (own.type, own.traits[0].text, own.traits[0].evidence) == (
        None,
        "style: plain",
        (),
    )
    assert (of_agent.knowledge[0].user, own.traits[0].user, ana.knowledge[0].user) == ("ana", "ana", None)
    both = (pages[0], page(2, segment_id="s1", object_type="user", object_identifier="bob"))
    bob = lesson(segment(1, both), Learned((Fact("has a dog", page=1),)), at=at(), new_id=lambda: "a").learnt[0]
    assert (bob.identifier, bob.knowledge[0].evidence) == ("bob", ("p2",))
    nobody = lesson(segment(1, [3]), Learned((Fact("likes tea"),)), at=at(), new_id=lambda: "a")
    assert (nobody.learnt[0].type, nobody.learnt[0].identifier) == UNNAMED


def test_a_statement_of_the_agent_in_the_dialogues_of_several_users_is_of_none_of_them_unless_it_is_private():
    def stated(*facts):
        tiers = ADA
        for each in facts:
            tiers = learn(tiers, ObjectLearnings("agent", "ada", {}, (each,)), PLAIN).memory
        return [each.user for each in tiers.personas[0].knowledge]

    ana, bob = (replace(fact(number, "knows a plan"), user=user) for number, user in ((1, "ana"), (2, "bob")))
    assert stated(ana, replace(ana, id="k3")) == ["ana"]
    assert stated(ana, bob) == [None]
    assert stated(ana, replace(bob, private=True)) == ["ana"]


ENDED = [
    ("is vegetarian", "is no longer vegetarian"), ("is vegetarian", "stopped being vegetarian"),
    ("is a nurse", "is no longer a nurse"), ("likes coffee", "does not like coffee"), ("loves coffee", "hates coffee"),
    ("likes coffee", "does not like coffee anymore"), ("smokes", "stopped smoking"), ("eats meat", "does not eat meat"),
    ("plays chess", "gave up playing chess"), ("has a dog", "does not have a dog"),
    ("lives in Oslo", "used to live in Oslo"),
    ("works as a nurse in Lyon", "does not work as a nurse"), ("works as a nurse", "quit their job as a nurse"),
    ("works for Acme", "left their job at Acme"), ("works at Acme", "works for Kestrel now"),
    ("lives in Malmo", "lives in Gothenburg now"), ("is called Ana", "is called Anna"), ("is married", "is divorced"),
    ("is 41 years old", "is 42 years old"), ("favourite colour is red", "favourite colour is dark green"),
    ("budget is 84,000 euro", "budget is 90,000 euro"), ("interview is at 14:45", "interview is at 15:00"),
    ("takes clopidogrel 75 mg every morning", "no longer takes clopidogrel"),
    ("takes iron daily", "stopped taking iron"),
    ("takes 5 mg of ramipril", "takes 10 mg of ramipril now"), ("takes ramipril 5 mg", "takes ramipril 10 mg"),
    ("smokes ten cigarettes a day", "no longer smokes"), ("runs two miles", "stopped running"),
    ("takes warfarin", "is no longer taking warfarin"), ("is taking warfarin", "does not take warfarin"),
    ("takes warfarin", "takes dabigatran now instead of warfarin"),
    ("takes warfarin", "switched from warfarin to apixaban"),
    ("has two cats", "has one cat now"), ("quit smoking", "started smoking again"),
    ("is married", "got divorced last year"), ("is left-handed", "is right-handed"),
    ("is called Maria", "is not called Maria"),
    ("lives in Gothenburg", "moved to Lund"), ("lives in Gothenburg", "moved from Gothenburg to Lund last week"),
    ("phone number is 031-111 11 11", "phone number changed to 031-222 22 22"),
    ("phone number is 031-111 11 11", "new phone number is 031-222 22 22"),
    ("phone number is 031-111 11 11", "phone number is now +46 31 222 22 22"),
    ("appointment is on 2 October", "appointment was moved to 9 October"),
    ("visit to Dr. Berg is on 2 October", "visit to Dr. Berg was moved to 9 October"),
    ("sister's number is 070-111 22 33", "sister's number changed to 070-999 88 77"),
    ("appointment is on Friday", "appointment has been moved from Friday to Monday"),
    ("takes ramipril 5 mg every morning", "takes ramipril 10 mg now"),
    ("takes ramipril 5 mg every morning", "takes 10 mg of ramipril now"),
    ("takes ramipril 5 mg every morning", "ramipril changed to 10 mg"),
    ("takes ramipril 5 mg every morning", "doctor raised the ramipril to 10 mg now"),
    ("works as a nurse at St. Josef", "does not work at St. Josef"),
    ("is allergic to hazelnuts", "is not allergic to hazelnuts after all"),
    ("interview is at 14:45", "interview was postponed to 15:00"), ("doctor is Dr. Berg", "new doctor is Dr. Ek"),
]  # fmt: skip
BESIDE = [
    ("likes green tea", "does not like green"), ("uses Docker Compose", "does not use Docker"),
    ("likes tea", "likes rum"),
    ("works at Acme", "works at Kestrel"), ("lives in a flat", "lives in Berlin"), ("has a cat", "has a dog"),
    ("works as a nurse", "works in Lyon now"), ("is engaged in politics", "is married"),
    ("is married", "is 41 years old"),
    ("favourite colour is red", "favourite food is soup"), ("sister is a nurse", "sister is in Rome"), ("", "is tall"),
    ("takes ramipril 5 mg in the morning", "takes ramipril 10 mg in the evening"), ("takes bus 5", "takes bus 7"),
    ("has an appointment on 2 October", "has an appointment on 9 October"), ("won 2 medals", "won 3 medals"),
    ("takes ramipril 5 mg every morning", "takes metformin 10 mg now"), ("takes warfarin", "takes warfarin 5 mg now"),
    ("takes ramipril 5 mg every morning", "takes ramipril 10 mg in the evening"),
    ("takes ramipril 5 mg every morning", "doctor raised the metformin to 10 mg"),
    ("works as a nurse at St. Josef", "does not work at Kestrel"),
    ("takes warfarin", "takes warfarin 5 mg"), ("takes warfarin", "no longer takes metformin"),
    ("interview is at 14:45", "interview was moved to 9 October"), ("moved to Lund in 1999", "lives in Malmo"),
    ("lives in Lund", "moved to Lund"), ("smokes a pipe", "stopped smoking cigarettes"),
    ("meeting is at 10:00", "dinner was moved to 11:00"), ("is working on their garden", "lost their job"),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "later"), ENDED)
def test_a_later_statement_ends_an_earlier_one_in_whatever_order_they_are_learned(earlier, later):
    pages = page(1, segment_id="s1"), page(2, segment_id="s2")
    tiers = Tiers("ada", mtm=(segment(1, pages[:1]), segment(2, pages[1:])))

    def learned(*order):
        after = tiers
        for number in order:
            entry = KnowledgeEntry(f"k{number}", (earlier, later)[number - 1], at(9 - number), evidence=(f"p{number}",))
            after = learn(after, of_ana(knowledge=[entry]), PLAIN).memory
        return [(each.text, each.ends) for each in after.personas[0].knowledge]

    assert learned(1, 2) == [(later, ("k1",))]
    assert [text for text, _ in learned(2, 1)] == [later]


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_statements_that_can_both_be_true_are_kept(one, other):
    assert not contradicts(one, other)
    assert not contradicts(other, one)


def test_a_statement_dated_in_the_future_ends_nothing_that_is_stated_later():
    early, late = page(90, segment_id="s1"), page(2, segment_id="s2")
    tiers = Tiers("ada", mtm=(segment(1, [early]), segment(2, [late])))
    for number, text, source in ((1, "lives in Oslo", "p90"), (2, "lives in Lund now", "p2")):
        tiers = taught(tiers, of_ana(knowledge=[replace(fact(number + 2, text), evidence=(source,))]))

    assert [each.text for each in tiers.personas[0].knowledge] == ["lives in Lund now"]


def test_a_fact_that_was_said_again_holds_again_and_names_all_that_it_ended():
    said = ["is vegetarian", "is no longer vegetarian", "is vegetarian again", "lives in Lund", "lives in Lund now"]
    tiers = ADA
    for number, text in enumerate(said):
        tiers = learn(tiers, of_ana(knowledge=[KnowledgeEntry(f"k{number}", text, at(number))]), PLAIN).memory

    known = [(each.text, each.ends) for each in tiers.personas[0].knowledge]
    assert known == [("is vegetarian again", ("k0", "k1")), ("lives in Lund", ())]


def test_traits_end_with_the_facts_of_their_pages_and_with_opposite_traits():
    def said(number, text, *traits):
        entries = [TraitEntry(f"t{number}{name}", name, value, at(number), evidence=("p",)) for name, value in traits]
        return of_ana(knowledge=[KnowledgeEntry(f"k{number}", text, at(number), evidence=("p",))], traits=entries)

    tiers = ADA
    for learnt in (
        said(1, "is vegetarian", ("is", "vegetarian")), said(2, "is no longer vegetarian"),
        said(3, "drinks much", ("likes", "coffee")), said(4, "drinks tea", ("dislikes", "coffee"), ("likes", "tea")),
    ):  # fmt: skip
        tiers = learn(tiers, learnt, PLAIN).memory

    assert [each.text for each in tiers.personas[0].traits] == ["dislikes: coffee", "likes: tea"]


def test_an_ended_fact_leaves_system_memory():
    shared = replace(fact(1, "deploys on Friday"), importance=1.0)
    system = diffuse(
        SystemMemory(), PersonaDiffusion("ada", [ObjectPersona("ada", "user", "ana", {}, (shared,))], at()), PLAIN
    ).memory
    tiers = learn(ADA, of_ana(knowledge=[shared]), PLAIN).memory

    tiers = learn(tiers, of_ana(knowledge=[fact(2, "no longer deploys on Friday")]), PLAIN).memory

    assert len(system.entries) == 1
    assert diffuse(system, PersonaDiffusion("ada", tiers.personas, at()), PLAIN).memory.entries == ()
