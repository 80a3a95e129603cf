"""What holds of the tiers after any moves in any order, with settings that change between them."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from memoryos_dialogue import ADA, at, page, policy

from jidomem.extras.memoryos.personas import (
    Diffusion,
    Judgement,
    Learnt,
    Lesson,
    diffuse,
    judge,
    learn,
    teach,
    unjudged,
    untaught,
)
from jidomem.extras.memoryos.retrieval import Round, Visit, maintain, touch_segments
from jidomem.extras.memoryos.segments import (
    Arrival,
    Description,
    Splitting,
    choose_segment,
    describe,
    insert,
    oversized,
    split,
    transfer,
)
from jidomem.extras.memoryos.values import DialogueSegment, KnowledgeEntry, SystemMemory, Tiers, TraitEntry, fit

number = st.integers(0, 9)
words = st.sampled_from(["index", "disk", "lunch"]).map(lambda word: frozenset({word}))
small = st.integers(1, 3)
configured = st.fixed_dictionaries({
    "stm_capacity": small, "mtm_capacity": small, "segment_capacity": st.none() | small, "object_kb_capacity": small,
    "object_traits_capacity": small, "evidence_capacity": small, "agent_traits_capacity": small,
    "system_capacity": small,
    "comparison": st.sampled_from([">", ">="]), "on_transfer": st.sampled_from(["keep", "delete"]),
    "evict": st.sampled_from(["coldest", "least_visited"]),
})  # fmt: skip
kinds = ["insert"] * 5 + ["transfer"] * 5 + ["maintain", "split", "configure", "teach"] * 2
kinds += ["describe", "visit", "learn", "judge"]
rest_of = {
    "insert": (words,), "transfer": (number,), "describe": (number, words), "visit": (number,), "maintain": (number,),
    "teach": (number, small), "learn": (small, st.booleans()), "judge": (st.sampled_from([0.5, 0.85, 0.9]),),
    "split": (number,), "configure": (configured,),
}  # fmt: skip
deed = st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind), *rest_of[kind]))
deeds = st.lists(deed, min_size=25, max_size=40)


def chosen(values, number):
    found = sorted(values)
    return found[number % len(found)] if found else None


def fact(number, private=False):
    return KnowledgeEntry(f"k{number}", f"fact {number}", at(number), private=private)


def move(tiers, what, clock, policy):
    """The move that *what* stands for, with its news, ready to be made of any tiers; None where there is none."""
    kind, *rest = what
    if kind == "insert":
        new = page(clock, keywords=rest[0])
        return lambda tiers: insert(tiers, new, policy)
    if kind == "describe" and (known := chosen({each.id for each in tiers.pages()}, rest[0])):
        return lambda tiers: describe(tiers, Description(known, keywords=rest[1]), policy)
    waiting = {each.id for each in (*tiers.leaving, *tiers.stm)}
    if kind == "transfer" and (known := chosen(waiting, rest[0])):
        placement = choose_segment(tiers, known, policy)
        pages = tuple(each.id for each in placement.pages)
        arrival = Arrival(known, placement.segment_id or f"s{clock}", "told", pages, at(clock))
        return lambda tiers: transfer(tiers, arrival, policy)
    if kind == "maintain":
        return lambda tiers: maintain(tiers, Round(at(clock)), policy)
    if kind == "learn":
        entry, trait = fact(rest[0], rest[1]), TraitEntry(f"t{clock}", f"trait {clock}", "so", at(clock))
        learnt = Learnt("user", "ana", knowledge=[entry], traits=[trait]), Learnt(traits=[trait])
        return lambda tiers: learn(learn(tiers, learnt[0], policy).memory, learnt[1], policy)
    if kind == "judge":
        judgement = Judgement({entry.id: rest[0] for entry in unjudged(tiers)})
        return lambda tiers: judge(tiers, judgement, policy)
    cut = {each.id for each in tiers.mtm} if kind in ("visit", "teach") else oversized(tiers, policy.config)
    known = chosen(cut, rest[0]) if kind in ("visit", "teach", "split") else None
    if known is None:
        return lambda tiers: fit(tiers, policy.config)
    if kind == "visit":
        return lambda tiers: touch_segments(tiers, Visit({known}, at(clock)), policy)
    if kind == "split":
        parts = oversized(tiers, policy.config).get(known, 0)
        parted = Splitting(known, [f"s{clock}.{part}" for part in range(parts)], at(clock))
        return lambda tiers: split(tiers, parted, policy)
    fresh = [each.id for each in untaught(tiers.segment(known)).pages][: rest[1]]
    lesson = Lesson(known, fresh, at(clock), [Learnt("user", "ana", knowledge=[fact(clock)])])
    return lambda tiers: teach(tiers, lesson, policy)


def held(tiers):
    return [each.id for each in tiers.pages()]


def kept_by(step):
    """The pages of the segments that a step asks to be archived."""
    items = [item for directive in step.directives for item in directive.items]
    return [each.id for item in items for each in DialogueSegment.from_dict(item.value).pages]


# D011 D012 D040
@settings(max_examples=60)
@given(deeds, configured)
def test_no_page_is_lost_or_doubled_and_no_capacity_exceeded_by_any_moves(deeds, first):
    tiers, going, put, archive = ADA, policy(**first), [], []

    for clock, what in enumerate(deeds):
        if what[0] == "configure":
            going = policy(**what[1])
        known = {each.id: each.page_count for each in tiers.mtm}
        step = move(tiers, what, clock, going)(tiers)
        put += [f"p{clock}"] if what[0] == "insert" else []
        archive += kept_by(step)
        tiers = step.memory
        config = going.config

        assert sorted([*held(tiers), *archive]) == sorted(put)
        assert len(tiers.stm) <= config.stm_capacity
        if what[0] == "maintain":
            assert len(tiers.mtm) <= config.mtm_capacity
        if config.segment_capacity is not None:
            assert all(each.page_count <= max(config.segment_capacity, known.get(each.id, 0)) for each in tiers.mtm)
        for persona in tiers.personas:
            assert len(persona.knowledge) <= config.object_kb_capacity
            assert len(persona.traits) <= config.object_traits_capacity
        assert len(tiers.agent.traits) <= config.agent_traits_capacity


# D064 D023
@settings(max_examples=20)
@given(deeds, configured)
def test_a_move_leaves_what_it_is_given_gives_the_same_again_and_changes_nothing_when_repeated(deeds, first):
    tiers, going = ADA, policy(**first)

    for clock, what in enumerate(deeds):
        if what[0] == "configure":
            going = policy(**what[1])
        made, before = move(tiers, what, clock, going), tiers.to_dict()

        step = made(tiers)

        assert tiers.to_dict() == before
        assert made(tiers) == step
        assert (step.memory is tiers) == (step.memory.rev == tiers.rev)
        assert Tiers.from_dict(json.loads(json.dumps(step.memory.to_dict()))) == step.memory
        if what[0] != "visit":
            assert made(step.memory).memory is step.memory
        tiers = step.memory


# D076 D077 D078
@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("ab"), number, st.floats(0, 1), st.booleans()), max_size=30), configured)
def test_system_memory_holds_no_private_fact_none_twice_and_what_matters_most(told, first):
    going, system, best = policy(**first), SystemMemory(), {}

    for clock, (agent, each, importance, private) in enumerate(told):
        one = KnowledgeEntry(f"{agent}{each}", f"Fact {each}.", at(clock), private=private, importance=importance)
        news = Diffusion(agent, (one,), at(clock))
        step = diffuse(system, news, going)
        assert diffuse(step.memory, news, going).memory is step.memory
        system = step.memory

        entries = system.entries
        assert not private or f"{agent}{each}" not in {entry.id for entry in entries}
        assert len({entry.content for entry in entries}) == len(entries) <= going.config.system_capacity
        assert all(going.config.reaches(entry.importance_score, 0.8) for entry in entries)
        assert SystemMemory.from_dict(json.loads(json.dumps(system.to_dict()))) == system
        best |= {f"Fact {each}.": max(importance, best.get(f"Fact {each}.", 0.0))}
        assert all(entry.importance_score <= best[entry.content] for entry in entries)
