"""Invariants of the tiers after any moves in any order, with settings that change between them."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from memoryos_dialogue import ADA, at, page, policy

from jidomem.extras.memoryos.personas import (
    FactImportance,
    Lesson,
    ObjectLearnings,
    PersonaDiffusion,
    apply_lesson,
    diffuse,
    judge,
    learn,
    unjudged,
    unlearned_pages,
)
from jidomem.extras.memoryos.retrieval import MaintenanceRun, SegmentVisit, maintain, touch_segments
from jidomem.extras.memoryos.segments import (
    Description,
    PageArrival,
    SegmentSplit,
    choose_segment,
    describe,
    insert,
    oversized,
    split,
    transfer,
)
from jidomem.extras.memoryos.values import (
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemMemory,
    Tiers,
    TraitEntry,
    fit,
)

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
arguments_of = {
    "insert": (words,), "transfer": (number,), "describe": (number, words), "visit": (number,), "maintain": (number,),
    "teach": (number, small), "learn": (small, st.booleans()), "judge": (st.sampled_from([0.5, 0.85, 0.9]),),
    "split": (number,), "configure": (configured,),
}  # fmt: skip
move_arguments = st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind), *arguments_of[kind]))
moves = st.lists(move_arguments, min_size=25, max_size=40)


def pick(values, number):
    ordered = sorted(values)
    return ordered[number % len(ordered)] if ordered else None


def fact(number, private=False):
    return KnowledgeEntry(f"k{number}", f"fact {number}", at(number), private=private)


def move(tiers, move_arguments, clock, policy):
    """Return the move of *move_arguments* as a function of the tiers."""
    kind, *rest = move_arguments
    if kind == "insert":
        new = page(clock, keywords=rest[0])
        return lambda tiers: insert(tiers, new, policy)
    if kind == "describe" and (subject := pick({each.id for each in tiers.pages()}, rest[0])):
        return lambda tiers: describe(tiers, Description(subject, keywords=rest[1]), policy)
    transferable = {each.id for each in (*tiers.leaving, *tiers.stm)}
    if kind == "transfer" and (subject := pick(transferable, rest[0])):
        placement = choose_segment(tiers, subject, policy)
        pages = tuple(each.id for each in placement.pages)
        arrival = PageArrival(subject, placement.segment_id or f"s{clock}", "told", pages, at(clock))
        return lambda tiers: transfer(tiers, arrival, policy)
    if kind == "maintain":
        return lambda tiers: maintain(tiers, MaintenanceRun(at(clock)), policy)
    if kind == "learn":
        entry, trait = fact(rest[0], rest[1]), TraitEntry(f"t{clock}", f"trait {clock}", "so", at(clock))
        learnt = ObjectLearnings("user", "ana", knowledge=[entry], traits=[trait]), ObjectLearnings(traits=[trait])
        return lambda tiers: learn(learn(tiers, learnt[0], policy).memory, learnt[1], policy)
    if kind == "judge":
        judgement = FactImportance({entry.id: rest[0] for entry in unjudged(tiers)})
        return lambda tiers: judge(tiers, judgement, policy)
    segment_ids = {each.id for each in tiers.mtm} if kind in ("visit", "teach") else oversized(tiers, policy.config)
    subject = pick(segment_ids, rest[0]) if kind in ("visit", "teach", "split") else None
    if subject is None:
        return lambda tiers: fit(tiers, policy.config)
    if kind == "visit":
        return lambda tiers: touch_segments(tiers, SegmentVisit({subject}, at(clock)), policy)
    if kind == "split":
        parts = oversized(tiers, policy.config).get(subject, 0)
        splitting = SegmentSplit(subject, [f"s{clock}.{part}" for part in range(parts)], at(clock))
        return lambda tiers: split(tiers, splitting, policy)
    new_pages = [each.id for each in unlearned_pages(tiers.segment(subject)).pages][: rest[1]]
    lesson = Lesson(subject, new_pages, at(clock), [ObjectLearnings("user", "ana", knowledge=[fact(clock)])])
    return lambda tiers: apply_lesson(tiers, lesson, policy)


def page_ids(tiers):
    return [each.id for each in tiers.pages()]


def archived_pages(step):
    """Return the ids of the pages that a step archives."""
    items = [item for directive in step.directives for item in directive.items]
    return [each.id for item in items for each in DialogueSegment.from_dict(item.value).pages]


# D011 D012 D040
@settings(max_examples=60)
@given(moves, configured)
def test_any_moves_keep_every_page_once_and_respect_every_capacity(moves, first):
    tiers, current_policy, inserted, archive = ADA, policy(**first), [], []

    for clock, arguments in enumerate(moves):
        if arguments[0] == "configure":
            current_policy = policy(**arguments[1])
        counts = {each.id: each.page_count for each in tiers.mtm}
        step = move(tiers, arguments, clock, current_policy)(tiers)
        inserted += [f"p{clock}"] if arguments[0] == "insert" else []
        archive += archived_pages(step)
        tiers = step.memory
        config = current_policy.config

        assert sorted([*page_ids(tiers), *archive]) == sorted(inserted)
        assert len(tiers.stm) <= config.stm_capacity
        if arguments[0] == "maintain":
            assert len(tiers.mtm) <= config.mtm_capacity
        if config.segment_capacity is not None:
            assert all(each.page_count <= max(config.segment_capacity, counts.get(each.id, 0)) for each in tiers.mtm)
        for persona in tiers.personas:
            assert len(persona.knowledge) <= config.object_kb_capacity
            assert len(persona.traits) <= config.object_traits_capacity
        assert len(tiers.agent.traits) <= config.agent_traits_capacity


# D064 D023
@settings(max_examples=20)
@given(moves, configured)
def test_a_move_is_pure_repeatable_and_idempotent(moves, first):
    tiers, current_policy = ADA, policy(**first)

    for clock, arguments in enumerate(moves):
        if arguments[0] == "configure":
            current_policy = policy(**arguments[1])
        transition, before = move(tiers, arguments, clock, current_policy), tiers.to_dict()

        step = transition(tiers)

        assert tiers.to_dict() == before
        assert transition(tiers) == step
        assert (step.memory is tiers) == (step.memory.rev == tiers.rev)
        assert Tiers.from_dict(json.loads(json.dumps(step.memory.to_dict()))) == step.memory
        if arguments[0] != "visit":
            assert transition(step.memory).memory is step.memory
        tiers = step.memory


# D076 D077 D078
@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("ab"), number, st.floats(0, 1), st.booleans()), max_size=30), configured)
def test_system_memory_has_distinct_public_facts_above_the_threshold_within_its_capacity(facts, first):
    current_policy, system, highest = policy(**first), SystemMemory(), {}

    for clock, (agent, each, importance, private) in enumerate(facts):
        one = KnowledgeEntry(f"{agent}{each}", f"Fact {each}.", at(clock), private=private, importance=importance)
        diffusion = PersonaDiffusion(agent, (ObjectPersona(agent, "service", "index", {}, (one,)),), at(clock))
        step = diffuse(system, diffusion, current_policy)
        assert diffuse(step.memory, diffusion, current_policy).memory is step.memory
        system = step.memory

        entries = system.entries
        assert not private or f"{agent}{each}" not in {entry.id for entry in entries}
        assert len({entry.content for entry in entries}) == len(entries) <= current_policy.config.system_capacity
        assert all(current_policy.config.reaches(entry.importance_score, 0.8) for entry in entries)
        assert SystemMemory.from_dict(json.loads(json.dumps(system.to_dict()))) == system
        highest |= {f"Fact {each}.": max(importance, highest.get(f"Fact {each}.", 0.0))}
        assert all(entry.importance_score <= highest[entry.content] for entry in entries)
