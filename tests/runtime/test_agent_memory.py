"""The working memory of an agent, kept from run to run in the state of a root."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from conftest import files, fixed_sources

import jidomem
from jidomem.errors import Failed, InvalidRequest, NotFound, RevisionConflict, TooLarge
from jidomem.providers import execute_directive
from jidomem.records.directive import lookup, remember
from jidomem.runtime import agent_memory as kept

ADD = """
import sys, jidomem
with jidomem.open(sys.argv[1], project="p") as memory:
    for number in range(int(sys.argv[3])):
        memory.agent("planner").update(lambda held: held.tasks_add(f"{sys.argv[2]} {number}"))
        print(sys.argv[2], number, flush=True)
"""


@pytest.fixture(params=["folder", "postgres"])
def place(request, root, tmp_path, monkeypatch):
    """Where a root may lie."""
    if request.param == "folder":
        return root
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    return request.getfixturevalue("postgres").address()


def test_an_agent_finds_again_what_it_held_when_its_process_ended(place):
    with jidomem.open(place, project="p", sources=fixed_sources()) as memory:
        planner = memory.agent("The Planner")
        assert planner.get() is None
        told = planner.update(
            lambda held: held.world_put("facts", {"python": "3.11", "big": 1 << 70}).tasks_add("ship")
        )

    with jidomem.open(place, project="p") as memory:
        assert memory.agent("the-planner").get() == told
        assert memory.agent("another").get() is None
        assert memory.agent("the-planner", project="q").get() is None
    assert (told.rev, told.world_get("facts")["big"], told.id[:4]) == (2, 1 << 70, "mem_")


def test_nothing_of_what_processes_and_threads_do_at_once_is_lost(place):
    writers = [
        subprocess.Popen([sys.executable, "-c", ADD, place, name, "10"], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    with jidomem.open(place, project="p") as memory, ThreadPoolExecutor(4) as threads:
        [*threads.map(lambda n: memory.agent("planner").update(lambda held: held.tasks_add(f"here {n}")), range(10))]
        told = [line for writer in writers for line in writer.communicate()[0].splitlines()]
        held = memory.agent("planner").get()

    assert held.rev == 30
    assert {task["text"] for task in held.tasks()} == {*told, *(f"here {n}" for n in range(10))}


def test_what_a_killed_process_was_told_is_kept_is_kept(place):
    with subprocess.Popen([sys.executable, "-c", ADD, place, "it", "100000"], stdout=subprocess.PIPE, text=True) as it:
        told = [it.stdout.readline().strip() for _ in range(5)]
        it.kill()
        told += it.stdout.read().splitlines()

    with jidomem.open(place, project="p") as memory:
        held = [task["text"] for task in memory.agent("planner").get().tasks()]
    assert held[: len(told)] == told


def test_a_change_that_expects_another_revision_changes_nothing(place):
    with jidomem.open(place, project="p") as memory:
        planner = memory.agent("planner")
        planner.update(lambda held: held.world_put("step", 1), expected_rev=0)  # A035

        with pytest.raises(RevisionConflict, match="the memory of 'planner' is at revision 1, not at 0"):
            planner.update(lambda held: held.world_put("step", 2), expected_rev=0)

        assert planner.get().world() == {"step": 1}


@pytest.mark.parametrize(
    ("move", "why", "code"),
    [
        (lambda held: held.world_put("goals", {"a"}), r"spaces\['world'\].data\['goals'\] is a set", InvalidRequest),
        (lambda held: None, "a change of a memory returns a Memory, not None", InvalidRequest),
        (lambda held: held.world_put("blob", "x" * kept.MOST), "more than 16,777,216", TooLarge),
        (lambda held: held.space_delete("world"), "built in", InvalidRequest),
    ],
)
def test_what_cannot_be_kept_is_refused_and_what_was_held_stays(root, move, why, code):
    with jidomem.open(root, project="p") as memory:
        planner = memory.agent("planner")
        before = planner.update(lambda held: held.world_put("step", 1))

        with pytest.raises(code, match=why):
            planner.update(move)

        assert planner.get() == before


def test_a_move_that_changes_nothing_is_no_revision_and_writes_nothing(root):
    with jidomem.open(root, project="p") as memory:
        planner = memory.agent("planner")
        before = planner.update(lambda held: held.world_put("step", 1))
        log = root / "state" / "working.sqlite-wal"
        bytes_before = log.read_bytes()

        assert planner.update(lambda held: held.world_delete("other")) == before
        assert log.read_bytes() == bytes_before


def test_what_is_forgotten_is_in_no_byte_of_the_state(root):
    with jidomem.open(root, project="p") as memory:
        planner, other = memory.agent("planner"), memory.agent("other")
        planner.update(lambda held: held.world_put("secret", "hunter2-of-old"))
        other.update(lambda held: held.world_put("step", 1))

        assert planner.forget() is True
        assert (planner.get(), planner.forget(), other.get().world()) == (None, False, {"step": 1})
        kept_bytes = b"".join(path.read_bytes() for path in (root / "state").iterdir())
    assert b"hunter2-of-old" not in kept_bytes


@pytest.mark.parametrize("name", ["...", " ", "//"])
def test_a_name_nothing_is_left_of_is_no_agent(root, name):
    with (
        jidomem.open(root, project="p") as memory,
        pytest.raises(InvalidRequest, match="is not a valid name of an agent"),
    ):
        memory.agent(name)


def test_a_project_is_named_as_projects_are(root):
    with jidomem.open(root, project="p") as memory, pytest.raises(NotFound) as refusal:
        memory.agent("planner", project="../p")
    assert refusal.value.code == "invalid_project"


@pytest.mark.parametrize("found", ["{", "[]", '{"id": "mem_1"}', '{"rev": -1}', "[" * 100_000])
def test_a_state_that_holds_no_memory_is_told_and_left_as_it_is(root, found):
    with jidomem.open(root, project="p") as memory:
        planner = memory.agent("planner")
        planner.update(lambda held: held.world_put("step", 1))
        with closing(sqlite3.connect(root / "state" / "working.sqlite")) as store, store:
            store.execute("UPDATE agents SET memory = ?", (found,))

        for ask in (planner.get, lambda: planner.update(lambda held: held)):
            with pytest.raises(Failed, match="the stored memory of 'planner' is invalid") as refusal:
                ask()
            assert refusal.value.hint.startswith("move the file away: mv ")
        assert planner.forget() is True


def test_a_memory_is_given_as_it_was_made_the_first_time(place):
    with jidomem.open(place, project="p", sources=fixed_sources()) as memory:
        first = memory.agent("planner").update(lambda held: held.world_put("step", 1))
        again = memory.agent("planner").update(lambda held: held.world_put("step", 2))

    assert (again.id, again.created_at, again.world()) == (first.id, first.created_at, {"step": 2})


def test_what_is_redacted_is_taken_out_of_what_agents_hold_and_keep(tmp_path):
    secret = "hunterzwei9 opens the door"
    with jidomem.open(tmp_path, project="p", agent="ana") as memory:
        memory.writer.remember("p", secret)
        memory.agent().update(
            lambda held: (
                held.world_put("note", [{"said": f"Ben: {secret}!", secret: 1}, 5])
                .tasks_add(secret, id="t1")
                .ensure_space(secret, {})
                .ensure_space("rag:cache", ["the weather"])
            )
        )
        memory.agent("ben", project="q").update(lambda held: held.world_put("note", secret))
        for key, value in (("plan", {"steps": [secret]}), (secret, 1), ("other", "the weather")):
            assert execute_directive(remember(key, value, provider="kept"), memory.providers()).ok
        before = memory.agent().get()

        keeper = memory.keeper
        keeper.redact(keeper.plan("p", None, texts=[secret]), agent="ana", reason="a password")

        held, asked = memory.agent().get(), memory.providers()
        assert held.world() == {"note": [{"said": "[redacted]"}, 5]}
        assert held.tasks() == [{"id": "t1", "text": "[redacted]", "status": "open"}]
        assert held.spaces.keys() == {"tasks", "world", "rag:cache"}
        assert [held.rev - before.rev, *(held.spaces[name].rev - before.spaces[name].rev for name in held.spaces)] == [
            *(1, 1, 1, 0)
        ]
        kept = [
            execute_directive(lookup(key, provider="kept"), asked).data["result"] for key in ("plan", secret, "other")
        ]
        assert [[row["value"] for row in rows] for rows in kept] == [
            [{"steps": ["[redacted]"]}], [], ["the weather"]
        ]  # fmt: skip
        assert memory.agent("ben", project="q").get().world_get("note") == secret
        memory.agent("ben", project="q").forget()
    assert [name for name, data in files(tmp_path).items() if secret.encode() in data] == []


def test_what_came_back_is_taken_out_of_what_agents_hold_when_it_is_redacted_again(root):
    secret = "hunterzwei9 opens the door"
    with jidomem.open(root, project="p", agent="ana") as memory:
        memory.writer.remember("p", secret)
        copy, keeper = files(root / "projects"), memory.keeper
        keeper.redact(keeper.plan("p", None, texts=[secret]), agent="ana", reason="a password")
        for name, data in copy.items():
            (root / "projects" / name).write_bytes(data)
        memory.agent().update(lambda held: held.world_put("note", f"Ben: {secret}!").world_put("sky", "the weather"))

        assert len(keeper.redact_again("p", agent="ana", reason="it came back")) == 1

        assert memory.agent().get().world() == {"note": "[redacted]", "sky": "the weather"}
    assert [name for name, data in files(root).items() if secret.encode() in data] == []
