"""The diffusion of facts of one agent to all agents, and the facts that are withheld."""

from dataclasses import replace

import pytest
from memoryos_dialogue import at, ids, policy

from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.personas import FactImportance, PersonaDiffusion, critical, diffuse, judge, unjudged
from jidomem.extras.memoryos.values import KnowledgeEntry, ObjectPersona, SystemEntry, SystemMemory, Tiers

PLAIN = policy()
NOTHING = SystemMemory()


def fact(number, importance=None, text=None, **fields):
    return KnowledgeEntry(f"k{number}", text or f"fact {number}", at(number), importance=importance, **fields)


def diffused(system, *facts, agent="ada", moment=0, policy=PLAIN):
    return diffuse(system, PersonaDiffusion(agent, [persona(*facts, agent=agent)], at(moment)), policy).memory


def persona(*facts, agent="ada", type_="service", name="index"):
    return ObjectPersona(agent, type_, name, {}, facts)


# D073 D078
def test_critical_facts_are_public_and_above_the_importance_threshold():
    tiers = Tiers("ada", personas=(
        ObjectPersona("ada", "user", "ana", {}, (fact(1, 0.9), fact(2, 0.8), fact(3), fact(4, 0.9, private=True))),
        ObjectPersona("ada", "service", "billing", {}, (fact(5, 1.0),)),
    ))  # fmt: skip

    assert ids(critical(tiers, PLAIN)) == ["k1", "k5"]
    assert ids(critical(tiers, policy(comparison=">="))) == ["k1", "k2", "k5"]
    assert ids(unjudged(tiers)) == ["k3"]


# D034 D074
def test_each_public_fact_is_judged_once():
    tiers = Tiers("ada", personas=(ObjectPersona("ada", "user", "ana", {}, (fact(1), fact(2), fact(3, private=True))),))

    assert ids(unjudged(tiers)) == ["k1", "k2"]
    after = judge(tiers, FactImportance({"k1": 0.95, "k2": 0.1, "k9": 1.0}), PLAIN).memory

    assert [each.importance for each in after.personas[0].knowledge] == [0.95, 0.1, None]
    assert (unjudged(after), ids(critical(after, PLAIN))) == ((), ["k1"])
    assert judge(after, FactImportance({"k1": 0.95}), PLAIN).memory is after
    with pytest.raises(InvalidRequest, match="the importance of k1 is a number from 0 to 1"):
        FactImportance({"k1": 1.1})


# D033 D075
def test_a_critical_fact_is_stored_with_agent_time_and_evidence():
    system = diffused(NOTHING, fact(1, 0.9, embedding=[1.0], evidence=["p1"]), fact(2, 0.8), moment=60)

    assert system.entries == (SystemEntry("k1", "fact 1", "ada", 0.9, at(60), (1.0,), ("p1",), "service index"),)
    assert (system.rev, NOTHING.entries) == (1, ())


# D076
def test_the_least_important_then_the_oldest_entry_is_evicted_at_capacity():
    two = policy(system_capacity=2)
    system = diffused(NOTHING, fact(1, 0.9), moment=1, policy=two)
    system = diffused(system, fact(2, 0.85), moment=2, policy=two)

    assert ids(diffused(system, fact(3, 0.95), moment=3, policy=two).entries) == ["k1", "k3"]
    assert ids(diffused(system, fact(3, 0.85), moment=3, policy=two).entries) == ["k1", "k3"]
    assert diffused(system, fact(3, 0.82), moment=3, policy=two) is system
    assert ids(diffused(system, policy=policy(system_capacity=1)).entries) == ["k1"]
    older = diffused(diffused(NOTHING, fact(9, 0.9), moment=1, policy=two), fact(8, 0.9), moment=2, policy=two)
    assert ids(diffused(older, fact(7, 0.9), moment=3, policy=two).entries) == ["k8", "k7"]


# D077
def test_a_fact_of_several_agents_is_stored_once_with_its_highest_importance():
    system = diffused(NOTHING, fact(1, 0.85, "Oxigraph embeds"))

    assert diffused(system, fact(1, 0.85, "Oxigraph embeds"), moment=9) is system
    merged = diffused(system, fact(2, 0.95, "  oxigraph EMBEDS. "), agent="bob", moment=9)
    assert [(each.id, each.source_agent_id, each.importance_score) for each in merged.entries] == [("k1", "ada", 0.95)]
    assert diffused(merged, fact(3, 0.85, "Oxigraph embeds"), agent="carl") is merged


# D077
def test_facts_with_nearly_equal_vectors_are_one_fact():
    system = diffused(NOTHING, fact(1, 0.9, embedding=[1.0, 0.0]), fact(2, 0.9, embedding=[0.0, 1.0]))

    # cosine with [1, 0]: 1 / sqrt(1.01) = 0.995; 1 / sqrt(2) = 0.707
    assert ids(diffused(system, fact(3, 0.9, embedding=[1.0, 0.1])).entries) == ["k1", "k2"]
    assert ids(diffused(system, fact(3, 0.9, embedding=[1.0, 1.0])).entries) == ["k1", "k2", "k3"]
    assert ids(diffused(system, fact(3, 0.9, embedding=[1.0, 0.1]), policy=policy(system_similarity=1)).entries) == [
        "k1", "k2", "k3"]  # fmt: skip


# D077
def test_a_fact_about_a_user_names_the_user_and_is_not_merged_with_that_of_another():
    of_ana, of_bob = fact(1, 0.9, "is a nurse"), fact(2, 0.95, "is a nurse")
    both = [persona(of_ana, type_="user", name="Ana"), persona(of_bob, type_="user", name="bob")]
    promised = persona(fact(3, 0.9, "gave Ana a plan", user="ana"), type_="agent", name="ada")

    system = diffuse(NOTHING, PersonaDiffusion("ada", [*both, promised], at()), PLAIN).memory
    again = PersonaDiffusion(
        "carl", [persona(fact(4, 0.85, "is a nurse"), agent="carl", type_="user", name="ana")], at()
    )

    assert [(each.text, each.user) for each in system.entries] == [
        ("user Ana: is a nurse", "ana"), ("user bob: is a nurse", "bob"), ("agent ada: gave Ana a plan", "ana"),
    ]  # fmt: skip
    assert diffuse(system, again, PLAIN).memory is system


# D077
def test_an_entry_of_an_earlier_version_gets_its_object():
    old = SystemMemory(3, (SystemEntry("k1", "is a nurse", "ada", 0.9, at(), (1.0,), ("p1",)),))
    known = PersonaDiffusion("ada", [persona(fact(1, 0.9, "is a nurse"), type_="user", name="ana")], at())

    (entry,) = diffuse(old, known, PLAIN).memory.entries

    assert (entry.text, entry.user, entry.evidence) == ("user ana: is a nurse", "ana", ("p1",))


# D078
def test_a_private_fact_is_not_diffused_and_is_withdrawn_only_by_its_agent():
    assert diffused(NOTHING, fact(1, 1.0, private=True)) is NOTHING

    system = diffused(NOTHING, fact(1, 0.9), fact(2, 0.9))
    private = replace(fact(1, 0.9), private=True)

    assert ids(diffused(system, private, fact(2, 0.9)).entries) == ["k2"]
    assert diffused(system, private, agent="bob") is system


# D001 D003
def test_system_memory_refuses_duplicate_ids_and_is_no_part_of_the_tiers():
    with pytest.raises(InvalidRequest, match="entry k1 occurs twice"):
        SystemMemory(0, (SystemEntry("k1", "a", "ada", 1, at()), SystemEntry("k1", "b", "bob", 1, at())))
    assert set(Tiers("ada").to_dict()) == {"agent_id", "rev", "stm", "leaving", "mtm", "personas", "agent"}
