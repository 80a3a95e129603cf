"""The working memory of an agent, stored in the state of a root across processes."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from conftest import files, fixed_sources

import jidomem
from jidomem.base.clock import Sources
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
def address(request, root, tmp_path, monkeypatch):
    """Return the address of a root in a folder or in PostgreSQL."""
    if request.param == "folder":
        return root
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    return request.getfixturevalue("postgres").address()


def test_working_memory_is_kept_across_processes(address):
    with jidomem.open(address, project="p", sources=fixed_sources()) as memory:
        planner = memory.agent("The Planner")
        assert planner.get() is None
        written = planner.update(
            lambda current: current.world_put("facts", {"python": "3.11", "big": 1 << 70}).tasks_add("ship")
        )

    with jidomem.open(address, project="p") as memory:
        assert memory.agent("the-planner").get() == written
        assert memory.agent("another").get() is None
        assert memory.agent("the-planner", project="q").get() is None
    assert (written.rev, written.world_get("facts")["big"], written.id[:4]) == (2, 1 << 70, "mem_")


def test_concurrent_updates_of_processes_and_threads_are_all_kept(address):
    writers = [
        subprocess.Popen([sys.executable, "-c", ADD, address, name, "10"], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    with jidomem.open(address, project="p") as memory, ThreadPoolExecutor(4) as threads:
        [
            *threads.map(
                lambda n: memory.agent("planner").update(lambda current: current.tasks_add(f"here {n}")), range(10)
            )
        ]
        lines = [line for writer in writers for line in writer.communicate()[0].splitlines()]
        current = memory.agent("planner").get()

    assert current.rev == 30
    assert {task["text"] for task in current.tasks()} == {*lines, *(f"here {n}" for n in range(10))}


def test_updates_acknowledged_before_a_kill_are_kept(address):
    with subprocess.Popen(
        [sys.executable, "-c", ADD, address, "it", "100000"], stdout=subprocess.PIPE, text=True
    ) as writer:
        acknowledged = [writer.stdout.readline().strip() for _ in range(5)]
        writer.kill()
        acknowledged += writer.stdout.read().splitlines()

    with jidomem.open(address, project="p") as memory:
        current = [task["text"] for task in memory.agent("planner").get().tasks()]
    assert current[: len(acknowledged)] == acknowledged


def test_an_update_with_an_outdated_revision_changes_nothing(address):
    with jidomem.open(address, project="p") as memory:
        planner = memory.agent("planner")
        planner.update(lambda current: current.world_put("step", 1), expected_rev=0)  # A035

        with pytest.raises(RevisionConflict, match="the memory of 'planner' is at revision 1, not at 0"):
            planner.update(lambda current: current.world_put("step", 2), expected_rev=0)

        assert planner.get().world() == {"step": 1}


@pytest.mark.parametrize(
    ("move", "message", "code"),
    [
        (
            lambda current: current.world_put("goals", {"a"}),
            r"spaces\['world'\].data\['goals'\] is a set",
            InvalidRequest,
        ),
        (lambda current: None, "a change of a memory returns a Memory, not None", InvalidRequest),
        (lambda current: current.world_put("blob", "x" * kept.MOST), "more than 16,777,216", TooLarge),
        (lambda current: current.space_delete("world"), "built in", InvalidRequest),
    ],
)
def test_an_invalid_update_is_refused_and_the_memory_is_unchanged(root, move, message, code):
    with jidomem.open(root, project="p") as memory:
        planner = memory.agent("planner")
        before = planner.update(lambda current: current.world_put("step", 1))

        with pytest.raises(code, match=message):
            planner.update(move)

        assert planner.get() == before


def test_an_update_without_a_change_is_no_revision_and_writes_nothing(root):
    with jidomem.open(root, project="p") as memory:
        planner = memory.agent("planner")
        before = planner.update(lambda current: current.world_put("step", 1))
        log = root / "state" / "working.sqlite-wal"
        bytes_before = log.read_bytes()

        assert planner.update(lambda current: current.world_delete("other")) == before
        assert log.read_bytes() == bytes_before


def test_a_forgotten_memory_is_in_no_byte_of_the_state(root):
    with jidomem.open(root, project="p") as memory:
        planner, other = memory.agent("planner"), memory.agent("other")
        planner.update(lambda current: current.world_put("secret", "hunter2-of-old"))
        other.update(lambda current: current.world_put("step", 1))

        assert planner.forget() is True
        assert (planner.get(), planner.forget(), other.get().world()) == (None, False, {"step": 1})
        state_bytes = b"".join(path.read_bytes() for path in (root / "state").iterdir())
    assert b"hunter2-of-old" not in state_bytes


def test_a_key_that_expired_since_it_was_stored_is_not_read_and_makes_no_revision(root):
    moments = [datetime(2026, 11, 18, 8, tzinfo=UTC)]
    with jidomem.open(root, project="p", sources=Sources(now=lambda: moments[-1])) as memory:
        stored = memory.agent("ana").update(
            lambda current: current.put_in_space("world", "language", "en").put_in_space(
                "world", "gate", "14", ttl_ms=1_000, now=round(moments[-1].timestamp() * 1000)
            )
        )
        before = memory.agent("ana").get()
        moments.append(moments[-1] + timedelta(seconds=1))
        after = memory.agent("ana").get()

    assert dict(before.spaces.world.data) == {"language": "en", "gate": "14"}
    assert (dict(after.spaces.world.data), after.rev) == ({"language": "en"}, stored.rev)


def test_every_operation_on_a_memory_of_a_root_uses_the_clock_of_the_root(root):
    # A031
    moments = [datetime(2020, 10, 9, 8, tzinfo=UTC)]
    with jidomem.open(root, project="p", sources=Sources(now=lambda: moments[-1])) as memory:
        planner = memory.agent("planner")
        planner.apply([{"do": "world_put", "key": "oven", "value": "on", "ttl_ms": 3_600_000}])
        planner.update(lambda current: current.world_put("bath", "running", ttl_ms=7_200_000))
        assert dict(planner.get().world()) == {"oven": "on", "bath": "running"}
        moments.append(moments[-1] + timedelta(hours=1))
        read = planner.get()
        moments.append(moments[-1] + timedelta(hours=1))

        assert (dict(read.spaces.world.data), dict(read.world())) == ({"bath": "running"}, {})
        assert [row["updated_at"] for row in memory.agents()] == [moments[0]]
        assert planner.update(lambda current: current.limited(None)).updated_at == moments[-1].timestamp() * 1000


@pytest.mark.parametrize("name", ["...", " ", "//"])
def test_an_agent_name_without_letters_is_refused(root, name):
    with (
        jidomem.open(root, project="p") as memory,
        pytest.raises(InvalidRequest, match="is not a valid name of an agent"),
    ):
        memory.agent(name)


def test_an_invalid_project_id_is_refused(root):
    with jidomem.open(root, project="p") as memory, pytest.raises(NotFound) as refusal:
        memory.agent("planner", project="../p")
    assert refusal.value.code == "invalid_project"


@pytest.mark.parametrize("stored", ["{", "[]", '{"id": "mem_1"}', '{"rev": -1}', "[" * 100_000])
def test_an_invalid_stored_memory_is_refused_until_it_is_forgotten(root, stored):
    with jidomem.open(root, project="p") as memory:
        planner = memory.agent("planner")
        planner.update(lambda current: current.world_put("step", 1))
        with closing(sqlite3.connect(root / "state" / "working.sqlite")) as store, store:
            store.execute("UPDATE agents SET memory = ?", (stored,))

        for read in (planner.get, lambda: planner.update(lambda current: current)):
            with pytest.raises(Failed, match="the stored memory of 'planner' is invalid") as refusal:
                read()
            assert refusal.value.hint.startswith("move the file away: mv ")
        assert planner.forget() is True


def test_an_update_keeps_the_id_and_the_creation_time_of_a_memory(address):
    with jidomem.open(address, project="p", sources=fixed_sources()) as memory:
        first = memory.agent("planner").update(lambda current: current.world_put("step", 1))
        second = memory.agent("planner").update(lambda current: current.world_put("step", 2))

    assert (second.id, second.created_at, second.world()) == (first.id, first.created_at, {"step": 2})


def test_a_redaction_removes_the_text_from_the_working_memory_of_its_project(tmp_path):
    secret = "hunterzwei9 opens the door"
    with jidomem.open(tmp_path, project="p", agent="ana") as memory:
        memory.writer.remember("p", secret)
        memory.agent().update(
            lambda current: (
                current.world_put("note", [{"said": f"Ben: {secret}!", secret: 1}, 5])
                .tasks_add(secret, id="t1")
                .ensure_space(secret, {})
                .ensure_space("rag:cache", ["the weather"])
            )
        )
        memory.agent("ben", project="q").update(lambda current: current.world_put("note", secret))
        for key, value in (("plan", {"steps": [secret]}), (secret, 1), ("other", "the weather")):
            assert execute_directive(remember(key, value, provider="kept"), memory.providers()).ok
        before = memory.agent().get()

        maintenance = memory.maintenance
        maintenance.redact(maintenance.plan("p", None, texts=[secret]), agent="ana", reason="a password")

        current, providers = memory.agent().get(), memory.providers()
        assert current.world() == {"note": [{"said": "[redacted]"}, 5]}
        assert current.tasks() == [{"id": "t1", "text": "[redacted]", "status": "open"}]
        assert current.spaces.keys() == {"tasks", "world", "rag:cache"}
        assert [
            current.rev - before.rev,
            *(current.spaces[name].rev - before.spaces[name].rev for name in current.spaces),
        ] == [*(1, 1, 1, 0)]
        kept = [
            execute_directive(lookup(key, provider="kept"), providers).data["result"]
            for key in ("plan", secret, "other")
        ]
        assert [[row["value"] for row in rows] for rows in kept] == [
            [{"steps": ["[redacted]"]}], [], ["the weather"]
        ]  # fmt: skip
        assert memory.agent("ben", project="q").get().world_get("note") == secret
        memory.agent("ben", project="q").forget()
    assert [name for name, data in files(tmp_path).items() if secret.encode() in data] == []


def test_a_repeated_redaction_removes_the_text_from_working_memory(root):
    secret = "hunterzwei9 opens the door"
    with jidomem.open(root, project="p", agent="ana") as memory:
        memory.writer.remember("p", secret)
        copy, maintenance = files(root / "projects"), memory.maintenance
        maintenance.redact(maintenance.plan("p", None, texts=[secret]), agent="ana", reason="a password")
        for name, data in copy.items():
            (root / "projects" / name).write_bytes(data)
        memory.agent().update(
            lambda current: current.world_put("note", f"Ben: {secret}!").world_put("sky", "the weather")
        )

        assert len(maintenance.redact_again("p", agent="ana", reason="it came back")) == 1

        assert memory.agent().get().world() == {"note": "[redacted]", "sky": "the weather"}
    assert [name for name, data in files(root).items() if secret.encode() in data] == []
