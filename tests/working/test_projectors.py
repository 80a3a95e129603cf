"""Projectors derive knowledge from a thread: on demand, at intervals, and as the thread grows."""

from dataclasses import dataclass

import pytest

from jidomem.errors import InvalidRequest
from jidomem.records.directive import MemoryUpsert, remember
from jidomem.working import Memory, Thread
from jidomem.working.thread import Schedule, SummaryProjector, project, shortened


def thread_of(count, kind="message", thread=None):
    thread = thread or Thread()
    for _ in range(count):
        seq = thread.entry_count()
        thread = thread.append(kind, {"role": "user", "text": f"message {seq}"}, at=seq)
    return thread


@pytest.fixture
def memory():
    return Memory.new(id="mem_1", now=0)


@dataclass(frozen=True)
class Entities:
    """A projector that derives facts, tasks and embeddings from a thread."""

    def project(self, memory, thread, ctx):
        facts, directives = dict(memory.world_get("facts", {})), []
        for entry in thread.filter_by_kind("message"):
            name, _, value = entry.payload["text"].partition(" is ")
            if value:
                facts[name] = value
                directives.append(remember(f"fact:{name}", value, embedding=[1.0], provider="vector"))
        for entry in thread.filter_by_kind("request"):
            if entry.id not in [task["id"] for task in memory.tasks()]:
                memory = memory.tasks_add(entry.payload["text"], id=entry.id, now=ctx["now"])
        return memory.world_put("facts", facts, now=ctx["now"]), directives


def test_a_projector_runs_on_demand_and_returns_a_memory_and_directives(memory):  # A135 A136 A144
    thread = Thread().append("message", {"text": "the port is 8700"}, at=1).append("request", {"text": "ship"}, id="t1")

    step = project(Entities(), memory, thread, {"now": 5})

    assert step.memory.world_get("facts") == {"the port": "8700"}
    assert step.memory.tasks() == [{"id": "t1", "text": "ship", "status": "open"}]
    (directive,) = step.directives
    assert isinstance(directive, MemoryUpsert)
    assert (directive.items[0].key, directive.items[0].embedding) == ("fact:the port", (1.0,))
    assert memory.world() == {}


def test_a_projector_may_return_only_a_memory(memory):  # A135
    class Counting:
        def project(self, memory, thread, ctx):
            return memory.world_put("count", thread.entry_count(), now=ctx["now"])

    step = project(Counting(), memory, thread_of(3), {"now": 5})

    assert (step.memory.world_get("count"), step.directives) == (3, ())


@pytest.mark.parametrize("projection", [None, {"world": {}}, (1, []), (Memory(), ["remember this"])])
def test_an_invalid_projection_is_refused(memory, projection):
    class Odd:
        def project(self, memory, thread, ctx):
            return projection

    with pytest.raises(InvalidRequest, match="Odd projected"):
        project(Odd(), memory, Thread())


class Recording:
    def __init__(self):
        self.calls = []

    def project(self, memory, thread, ctx):
        self.calls.append((ctx["now"], thread.entry_count(), ctx.get("agent")))
        return memory.world_put("runs", len(self.calls), now=ctx["now"])


def test_a_schedule_runs_after_each_interval(memory):  # A137
    projector = Recording()
    schedule = Schedule(projector, every_ms=100)

    for now in (0, 50, 99, 100, 150, 199, 200, 1000):
        schedule, step = schedule.tick(memory, thread_of(1), {"agent": "a"}, now=now)
        memory = step.memory

    assert projector.calls == [(0, 1, "a"), (100, 1, "a"), (200, 1, "a"), (1000, 1, "a")]
    assert memory.world_get("runs") == 4


def test_a_schedule_runs_after_a_number_of_new_entries(memory):  # A138
    projector = Recording()
    schedule, thread = Schedule(projector, after_entries=3), Thread()

    for now in range(8):
        thread = thread_of(1, thread=thread)
        schedule, step = schedule.tick(memory, thread, now=now)
        memory = step.memory

    assert [count for _, count, _ in projector.calls] == [3, 6]
    assert memory.world_get("runs") == 2


def test_a_schedule_is_due_by_time_or_entries_since_its_last_run(memory):  # A136 A137 A138
    schedule = Schedule(Recording(), every_ms=100, after_entries=3)
    schedule, _ = schedule.run(memory, thread_of(2), now=0)

    assert not schedule.is_due(thread_of(4), 99)
    assert schedule.is_due(thread_of(5), 1)
    assert schedule.is_due(thread_of(2), 100)


def test_the_current_time_is_the_default(memory):
    before = Memory().created_at

    summary = project(SummaryProjector(), memory, thread_of(1)).memory.world_get("summary")
    schedule = Schedule(Recording(), every_ms=1, after_entries=1, ran_at=before)

    assert summary["projected_at"] >= before
    assert schedule.is_due(Thread(), before + 1)
    assert schedule.is_due(thread_of(1), before)


def test_a_tick_before_the_schedule_is_due_changes_nothing(memory):
    schedule = Schedule(Recording())

    assert schedule.tick(memory, thread_of(500), now=10**12) == (schedule, project(Idle(), memory, Thread()))


class Idle:
    def project(self, memory, thread, ctx):
        return memory


@pytest.mark.parametrize(
    "options", [{"every_ms": 0}, {"after_entries": -1}, {"every_ms": True}, {"after_entries": 1.5}]
)
def test_a_schedule_with_invalid_numbers_is_refused(options):
    with pytest.raises(InvalidRequest, match="is not a positive whole number"):
        Schedule(Idle(), **options)


def test_the_summary_has_content_source_time_and_covered_entries(memory):  # A139 A142
    step = project(SummaryProjector(lambda messages: f"{len(messages)} messages"), memory, thread_of(4), {"now": 7})

    assert step.memory.world_get("summary") == {
        "content": "4 messages",
        "source": "projector",
        "projected_at": 7,
        "covers_seq": [0, 3],
    }
    assert Memory.from_dict(step.memory.to_dict()) == step.memory


def test_the_summary_covers_only_the_last_fifty_entries(memory):  # A140
    entries = []
    project(SummaryProjector(lambda messages: str(entries.extend(messages))), memory, thread_of(120), {"now": 7})
    after = project(SummaryProjector(), memory, thread_of(120), {"now": 7}).memory
    short = project(SummaryProjector(), memory, thread_of(50), {"now": 7}).memory

    assert [entry.seq for entry in entries] == list(range(70, 120))
    assert after.world_get("summary")["covers_seq"] == [70, 119]
    assert short.world_get("summary")["covers_seq"] == [0, 49]


def test_the_summary_covers_only_messages(memory):  # A141
    thread = thread_of(1, "tool_call")
    thread = thread_of(2, "message", thread)
    thread = thread_of(1, "tool_call", thread)

    summary = project(SummaryProjector(), memory, thread, {"now": 7}).memory.world_get("summary")

    assert summary["covers_seq"] == [1, 2]
    assert summary["content"] == "user: message 1\nuser: message 2"


def test_a_thread_without_messages_leaves_the_memory_unchanged(memory):  # A143
    empty = project(SummaryProjector(), memory, Thread(), {"now": 7})
    without_recent = project(SummaryProjector(), memory, thread_of(60, "tool_call", thread_of(3)), {"now": 7})

    assert empty.memory is memory
    assert without_recent.memory is memory


def test_a_second_projection_changes_nothing(memory):  # A146
    first = project(SummaryProjector(), memory, thread_of(4), {"now": 7}).memory

    second = project(SummaryProjector(), first, thread_of(4), {"now": 9}).memory
    extended = project(SummaryProjector(), second, thread_of(5), {"now": 11}).memory

    assert second is first
    assert (extended.rev, extended.world_get("summary")["covers_seq"]) == (first.rev + 1, [0, 4])


def test_each_message_is_shortened_to_a_line():
    thread = (
        Thread()
        .append("message", {"role": "user", "content": "first\n  line"}, at=0)
        .append("message", "plain text", at=1)
        .append("message", {"role": "agent"}, at=2)
        .append("message", {"text": "x" * 500}, at=3)
    )

    lines = shortened(thread.entries).splitlines()

    assert lines[:2] == ["user: first line", "plain text"]
    assert (len(lines), len(lines[2]), lines[2][-1]) == (3, 200, "…")


def test_a_thread_gives_a_projector_its_entries_by_position_and_kind():  # A145
    thread = Thread().append("message", {"text": "a"}, {"file": "x.py"}, id="e0", at=5).append("tool", {"n": 1}, at=6)

    first = thread.entries[0]

    assert (first.id, first.seq, first.at, first.kind, first.payload, first.refs) == (
        *("e0", 0, 5, "message", {"text": "a"}),
        {"file": "x.py"},
    )
    assert [entry.seq for entry in thread.slice(0, 1)] == [0, 1]
    assert (thread.entry_count(), [entry.seq for entry in thread.filter_by_kind("tool")]) == (2, [1])
