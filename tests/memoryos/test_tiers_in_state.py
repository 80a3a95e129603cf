"""The tiers of agents in the working state of a root: durability, concurrent moves, and kills."""

import random
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from conftest import fixed_sources
from memoryos_dialogue import ADA, at, ids, page, policy, said, segment

import jidomem
from jidomem.errors import Failed, InvalidRequest, RevisionConflict
from jidomem.extras.memoryos import jobs, storage
from jidomem.extras.memoryos.personas import ObjectLearnings, PersonaDiffusion, diffuse, learn
from jidomem.extras.memoryos.retrieval import MaintenanceRun, SegmentVisit, maintain, touch_segments
from jidomem.extras.memoryos.segments import PageArrival, choose_segment, insert, transfer
from jidomem.extras.memoryos.storage import TIER_TABLES, agent_tiers, agents_with_tiers, system_memory
from jidomem.extras.memoryos.values import (
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemMemory,
    Tiers,
    TraitEntry,
    fit,
)
from jidomem.providers import PersistentProvider, stores
from jidomem.runtime import agent_memory
from jidomem.runtime.agent_memory import redact_working_state
from jidomem.runtime.state import FILE, State
from jidomem.working import Step

MOVER = Path(__file__).with_name("tier_mover.py")
PLAIN = policy()
ALL = agent_memory.TABLES + stores.TABLES + TIER_TABLES + storage.NOTE_TABLES + jobs.TABLES


@pytest.fixture
def state(opened_state):
    return opened_state(ALL)


def open_state(root):
    return State(root, ALL)


def ada(state):
    numbers = count()
    return agent_tiers(state, "p", "ada", lambda: f"life {next(numbers)}")


def fact(number, text=None, **given):
    return KnowledgeEntry(f"k{number}", text or f"fact {number}", at(number), **given)


def random_moves(seed, policy):
    """Yield random moves of all kinds."""
    chance = random.Random(seed)
    for clock in range(60):
        kind = chance.choice(["insert", "insert", "transfer", "transfer", "visit", "maintain", "learn"])
        vector = [chance.random(), chance.random()]
        if kind == "insert":
            new = page(clock, keywords={chance.choice("ab")}, embedding=vector)
            yield lambda tiers, new=new: insert(tiers, new, policy)
        elif kind == "transfer":
            yield lambda tiers, clock=clock: transfer_oldest(tiers, clock, policy)
        elif kind == "visit":
            yield lambda tiers, clock=clock: touch_segments(tiers, SegmentVisit(ids(tiers.mtm[:1]), at(clock)), policy)
        elif kind == "maintain":
            yield lambda tiers, clock=clock: maintain(tiers, MaintenanceRun(at(clock)), policy)
        else:
            own = ObjectLearnings(
                traits=[TraitEntry(f"t{clock}", f"trait {clock % 4}", "so", at(clock), embedding=vector)]
            )
            of_ana = ObjectLearnings("user", chance.choice(["ana", "bob"]), {"n": clock}, [fact(clock)], own.traits)
            given = chance.choice(
                [own, of_ana, ObjectLearnings("user", "ana", knowledge=[fact(1000 + clock, "again")])]
            )
            yield lambda tiers, given=given: learn(tiers, given, policy)


def transfer_oldest(tiers, clock, policy):
    if not tiers.leaving:
        return fit(tiers, policy.config)
    placement = choose_segment(tiers, tiers.leaving[0].id, policy)
    pages = tuple(ids(placement.pages))
    arrival = PageArrival(
        tiers.leaving[0].id, placement.segment_id or f"s{clock}", "told", pages, at(clock), [1.0, 0.0]
    )
    return transfer(tiers, arrival, policy)


# D001
@pytest.mark.parametrize("seed", [1, 2])
def test_the_tiers_of_an_agent_are_durable_after_each_move(state, opened_state, seed):
    small = policy(stm_capacity=2, mtm_capacity=3, segment_capacity=3, object_kb_capacity=3, agent_traits_capacity=3)
    stored, follower, expected = ada(state), ada(opened_state(ALL)), ADA

    for number, move in enumerate(random_moves(seed, small)):
        expected = move(expected).memory
        assert stored.update(move).memory == expected
        if number % 3 == 0:
            assert follower.get() == expected  # reads the changes since its last read
    assert ada(opened_state(ALL)).get() == expected
    assert () not in (expected.mtm, expected.personas, expected.agent.traits)
    assert {len(each.knowledge) for each in expected.personas} <= {1, 2, 3}


# D109
def test_a_failed_or_conflicting_move_changes_nothing(state):
    stored = ada(state)
    first = stored.update(lambda tiers: insert(tiers, page(1), PLAIN)).memory

    with pytest.raises(RevisionConflict, match="the memory of ada is at revision 1, not at 0"):
        stored.update(lambda tiers: insert(tiers, page(2), PLAIN), expected_rev=0)
    with pytest.raises(ZeroDivisionError):
        stored.update(lambda tiers: 1 / 0)
    for other in (lambda tiers: tiers, lambda tiers: Step(Tiers("bob", 9)), lambda tiers: Step(SystemMemory(7)),
                  lambda tiers: Step(Tiers("ada", tiers.rev, stm=(page(5),)))):  # fmt: skip
        with pytest.raises(InvalidRequest, match="a move of the memory of ada returns a step of it"):
            stored.update(other)
    assert stored.get() == ada(state).get() == first
    assert stored.update(lambda tiers: insert(tiers, page(2), PLAIN), expected_rev=1).memory.rev == 2


# D003 D033
def test_agents_and_projects_are_separate_and_system_memory_is_shared_in_a_project(state):
    known = fact(1, "Oxigraph embeds", importance=0.9, embedding=[0.5])
    diffusion = PersonaDiffusion("ada", [ObjectPersona("ada", "service", "index", {}, [known])], at())
    ada(state).update(lambda tiers: insert(tiers, page(1), PLAIN))
    system_memory(state, "p", str).update(lambda system: diffuse(system, diffusion, PLAIN))

    assert agent_tiers(state, "p", "bob", str).get() == Tiers("bob")
    assert agent_tiers(state, "q", "ada", str).get() == Tiers("ada")
    assert [entry.content for entry in system_memory(state, "p", str).get().entries] == ["Oxigraph embeds"]
    assert system_memory(state, "q", str).get() == SystemMemory()
    assert (agents_with_tiers(state, "p"), agents_with_tiers(state, "q")) == (["ada"], [])
    with pytest.raises(InvalidRequest, match="is not a valid name of an agent"):
        agent_tiers(state, "p", "!", str)


def test_reading_tiers_creates_no_file(tmp_path):
    assert (ada(open_state(tmp_path)).get(), ada(open_state(tmp_path)).pending_directives()) == (ADA, ())
    assert agents_with_tiers(open_state(tmp_path), "p") == []
    assert list(tmp_path.iterdir()) == []


# D072
def test_a_pending_archive_directive_is_durable_until_performed(state, opened_state):
    stored, two = ada(state), policy(stm_capacity=1, mtm_capacity=1)
    for move in (
        lambda tiers: Step(said([1, 2, 3], two)),
        *[lambda tiers, n=n: transfer_oldest(tiers, n, two) for n in (7, 8)],
    ):
        stored.update(move)
    stored.update(lambda tiers: maintain(tiers, MaintenanceRun(at()), two))

    (directive,) = ada(opened_state(ALL)).pending_directives()

    archived = DialogueSegment.from_dict(directive.items[0].value)
    assert sorted([*ids(archived.pages), *ids(stored.get().pages())]) == ["p1", "p2", "p3"]
    for _ in range(2):
        stored.performed(directive.request_id)
    assert stored.pending_directives() == ()


def test_a_forgotten_agent_leaves_no_data_and_restarts_empty(state, opened_state, tmp_path):
    stored, follower = ada(state), ada(opened_state(ALL))
    stored.update(lambda tiers: insert(tiers, page(1, said="a secret word"), PLAIN))
    assert follower.get().rev == 1

    assert stored.forget()

    assert not stored.forget()
    assert b"secret" not in b"".join(each.read_bytes() for each in tmp_path.rglob("working*"))
    agent_tiers(state, "p", "ada", lambda: "another").update(lambda tiers: insert(tiers, page(2), PLAIN))
    assert ids(follower.get().stm) == ids(stored.get().stm) == ["p2"]


def test_an_invalid_stored_memory_is_reported(state):
    stored = ada(state)
    stored.update(lambda tiers: insert(tiers, page(1), PLAIN))
    with state.changing() as store:
        store.execute("UPDATE memoryos_parts SET held = '{}' WHERE kind = 'page'")

    with pytest.raises(Failed, match="the stored memory of ada is invalid: the stored DialoguePage lacks") as refusal:
        ada(state).get()

    assert refusal.value.hint.startswith(("move the file away: mv", "restore its tables"))


def test_a_redacted_text_is_removed_from_tiers_with_its_vectors(state, opened_state, tmp_path):
    stored, follower, one = ada(state), ada(opened_state(ALL)), policy(stm_capacity=1, mtm_capacity=1)
    pages = [page(1, "the key is hunter2", embedding=[1.0, 0.0]), page(2, "hunter2 it is", embedding=[0.0, 1.0])]
    known = ObjectLearnings("user", "ana", {"hunter2": 1}, [fact(2, "hunter2", embedding=[1.0]), fact(3)])
    tiers_held = learn(
        Tiers("ada", 1, leaving=pages), ObjectLearnings("user", "hunter2", {"a": 1}, [fact(1)]), one
    ).memory
    tiers_held = learn(tiers_held, known, one).memory
    stored.update(lambda tiers: Step(tiers_held))
    stored.update(lambda tiers: transfer_oldest(insert(tiers, page(3), one).memory, 1, one))
    stored.update(lambda tiers: transfer_oldest(tiers, 2, one))
    stored.update(lambda tiers: maintain(tiers, MaintenanceRun(at()), one))
    assert follower.get() == stored.get()
    archive, cellar = PersistentProvider(), {"state": state, "namespace": "p/ada"}
    for each in (segment(8, topic_summary="hunter2", embedding=[1.0]), segment(9, embedding=[1.0])):
        archive.put(archive.init(cellar), f"memoryos:ada:{each.id}", each.to_dict(), {})

    redact_working_state(state, "p", lambda text: "hunter2" in text)

    tiers_left = follower.get()
    assert stored.get() == tiers_left == ada(opened_state(ALL)).get()
    assert [(each.query, each.embedding) for each in tiers_left.pages()] == [("hello", None), ("[redacted]", None)]
    (ana,) = tiers_left.personas
    assert (ana.identifier, ana.profile) == ("ana", {})
    assert [(each.text, each.embedding) for each in ana.knowledge] == [("[redacted]", None), ("fact 3", None)]
    archived = DialogueSegment.from_dict(stored.pending_directives()[0].items[0].value)
    assert [(each.query, each.embedding) for each in archived.pages] == [("[redacted]", None)]
    values = [archive.get(archive.init(cellar), f"memoryos:ada:s{number}", {}).value for number in (8, 9)]
    assert [(each["topic_summary"], each["embedding"]) for each in values] == [
        ("[redacted]", None),
        ("topic 9", [1.0]),
    ]
    assert b"hunter2" not in b"".join(each.read_bytes() for each in tmp_path.rglob("working*"))


def test_an_opened_root_has_tables_for_tiers(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        memory.agent("planner").update(lambda agent_state: agent_state.world_put("language", "en"))

    assert (root / FILE).exists()
    assert agents_with_tiers(open_state(root), "p") == []


def mover(root, name, number):
    return subprocess.Popen([sys.executable, MOVER, root, name, str(number)], stdout=subprocess.PIPE, text=True)


def all_page_ids(root):
    """Return the ids of all pages of an agent in its tiers and its archive, with repetitions."""
    stored = ada(open_state(root))
    archived = [DialogueSegment.from_dict(each.items[0].value) for each in stored.pending_directives()]
    return sorted([*ids(stored.get().pages()), *(one.id for each in archived for one in each.pages)])


# D109
def test_four_concurrent_processes_lose_no_move_of_one_agent(tmp_path):
    movers = [mover(tmp_path, name, 8) for name in "abcd"]
    stored_ids = [each.communicate(timeout=60)[0].split() for each in movers]

    assert [each.returncode for each in movers] == [0, 0, 0, 0]
    assert all_page_ids(tmp_path) == sorted(page_id for each in stored_ids for page_id in each)
    assert len(all_page_ids(tmp_path)) == 32


# D064 D065
def test_a_killed_process_leaves_each_page_in_one_place(tmp_path):
    printed = []
    for name in "ab":
        killed = mover(tmp_path, name, 100_000)
        printed += [killed.stdout.readline().strip() for _ in range(7)]
        killed.kill()
        printed += killed.stdout.read().split()
        killed.stdout.close()
        assert killed.wait() == -9

        stored_ids = all_page_ids(tmp_path)
        assert set(printed) <= set(stored_ids)
        assert (
            len(stored_ids) == len(set(stored_ids)) <= len(printed) + 2
        )  # each kill may leave one page that was not printed


@pytest.mark.parametrize("numbers", [[0.5, -1.25], [0.1, 2.0], [1e300, -3.0], [1e-300, 1.0], [0.0, -0.0]])
def test_a_stored_vector_is_read_back_exactly(state, numbers):
    ada(state).update(lambda tiers: insert(tiers, replace(page(1), embedding=numbers), PLAIN))

    (stored,) = ada(state).get().stm

    assert [each.hex() for each in stored.embedding] == [float(each).hex() for each in numbers]


@pytest.mark.parametrize("stored", [b"", b"f", b"x\0\0\0\0", b"f\0\0", b"f\0\0\xc0\x7f", b"d" + b"\xff" * 8])
def test_invalid_bytes_of_a_vector_are_reported(state, stored):
    ada(state).update(lambda tiers: insert(tiers, replace(page(1), embedding=[1.0]), PLAIN))
    with state.changing() as store:
        store.execute("UPDATE memoryos_parts SET vector = ? WHERE kind = 'page'", (stored,))

    with pytest.raises(Failed, match="the stored memory of ada is invalid"):
        ada(state).get()
