"""A task or error that ended or waits is shown with the reason and the lesson wherever it is read."""

import pytest
from conftest import intent
from shown_texts import in_shell, over_mcp

import jidomem
from jidomem.serve.app import create_app

UPLOAD, LOGIN, MOVE, RUNBOOK, PAINT = (
    "Upload of a large payment file fails",
    "Login shows an empty page",
    "Move the payment upload to chunks",
    "Write the payment runbook",
    "Paint the payment shed",
)
WORDS = "payment upload, login page, runbook and shed"
LESSON = "Timeouts must grow with the size"


@pytest.fixture
def memory(tmp_path):
    """A project with a resolved error whose lesson rests on its first version, one without, and tasks of each state."""
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        upload = memory.remember(UPLOAD, type="error").iri
        memory.remember(LESSON, type="lesson_learned", evidence=[upload])
        resolved = revise(memory, upload, "raised the timeout", status="Resolved")
        memory.writer.confirm("p", resolved)
        revise(memory, memory.remember(LOGIN, type="error").iri, "escaped the template", status="Resolved")
        blocked = revise(memory, memory.remember(MOVE, type="task").iri, "waits for Bob", status="Blocked")
        revise(memory, blocked, "waits for Eve", assigned_to="ana")
        done = revise(memory, memory.remember(RUNBOOK, type="task").iri, "in docs/runbook.md", status="Completed")
        revise(memory, done, "a typo", assigned_to="ana")
        memory.remember(PAINT, type="task")
        yield memory


def revise(memory, item, reason, **changes):
    return memory.writer.revise("p", item, changes=changes, reason=reason).iri


def outcomes(text):
    """The text that follows the line or cell with each summary, up to the next summary."""
    places = {name: text.find(name) for name in (UPLOAD, LOGIN, MOVE, RUNBOOK, PAINT) if name in text}
    ends = sorted([*places.values(), len(text)])
    return {name: text[at : ends[ends.index(at) + 1]] for name, at in places.items()}


@pytest.mark.parametrize(
    "read",
    [
        lambda memory: over_mcp(memory, "recall", query=WORDS, limit=9, min_score=0).text,
        lambda memory: in_shell(memory, "recall", WORDS, "--limit", "9", "--all"),
        lambda memory: in_shell(memory, "recall", WORDS, "--limit", "9", "--all", "--format", "md"),
        lambda memory: in_shell(memory, "ask", "timeline"),
        lambda memory: in_shell(memory, "ask", "timeline", "--format", "md"),
    ],
    ids=["recall over MCP", "recall", "recall as Markdown", "a list", "a list as Markdown"],
)
def test_the_texts_have_the_reason_and_the_lesson(memory, read):
    shown = outcomes(read(memory))

    (lesson,) = memory.reader.ask("lessons", project="p")
    assert f'resolved: "raised the timeout"; lesson {lesson["lesson"][-8:]}: "{LESSON}"' in shown[UPLOAD]
    assert 'resolved: "escaped the template"' in shown[LOGIN]
    assert "lesson" not in shown[LOGIN].partition("escaped")[2].partition("\n")[0]
    assert 'blocked: "waits for Eve"' in shown[MOVE]
    assert 'completed: "in docs/runbook.md"' in shown[RUNBOOK]
    assert "planned" not in shown[PAINT]


def test_a_briefing_has_the_reason_and_the_lesson(memory):
    shown = outcomes(over_mcp(memory, "briefing", task=UPLOAD).text)

    assert 'resolved: "raised the timeout"; lesson ' in shown[UPLOAD]
    assert 'blocked: "waits for Eve"' in shown[MOVE]


def test_rows_and_single_memories_have_the_outcome(memory):
    (lesson,) = memory.reader.ask("lessons", project="p")
    resolved = {
        "state": "Resolved",
        "reason": "raised the timeout",
        "lesson": lesson["lesson"],
        "lesson_text": LESSON,
    }
    rows = {row["summary"]: row for row in memory.reader.ask("timeline", project="p")}
    assert rows[UPLOAD]["outcome"] == resolved
    assert "outcome" not in rows[PAINT]
    item = rows[UPLOAD]["item"]
    assert memory.reader.get_memory("p", item)["outcome"] == resolved
    assert create_app(memory).test_client().get(f"/projects/p/memories/{item[-8:]}").get_json()["outcome"] == resolved
    (open_task,) = [row for row in over_mcp(memory, "ask", name="open-tasks").values["rows"] if "outcome" in row]
    assert open_task["outcome"] == {"state": "Blocked", "reason": "waits for Eve"}
    assert over_mcp(memory, "why", id=item).values["outcome"]["lesson"] == lesson["lesson"][-8:]
    assert '"raised the timeout"; lesson' in in_shell(memory, "show", item)
    assert '"raised the timeout"; lesson' in in_shell(memory, "show", item, "--why")


def test_the_lesson_is_that_of_the_moment_and_its_successor_afterwards(memory):
    before = memory.catch_up("p")
    (lesson,) = memory.reader.ask("lessons", project="p")
    revise(memory, lesson["lesson"], "measured", summary="Timeouts must grow with the rate")

    rows = {row["summary"]: row for row in memory.reader.ask("timeline", project="p")}
    assert rows[UPLOAD]["outcome"]["lesson_text"] == "Timeouts must grow with the rate"
    past = memory.reader.ask("timeline", project="p", as_of=before.recorded_at)
    assert {row["summary"]: row for row in past}[UPLOAD]["outcome"]["lesson_text"] == LESSON


def test_a_long_list_has_the_outcomes_too(memory):
    memory.writer.submit_many("p", [intent(type="task", summary=f"step {number}") for number in range(600)])

    rows = memory.reader.ask("open-tasks", project="p")

    assert {row["summary"] for row in rows if "outcome" in row} == {MOVE}


def test_recall_over_mcp_and_as_markdown_shows_the_score_of_the_table(memory):
    (row,) = in_shell(memory, "recall", PAINT, "--limit", "1", "--format", "tsv").splitlines()[1:]
    score = float(row.split("\t")[0])

    for text in (
        over_mcp(memory, "recall", query=PAINT, limit=1).text,
        in_shell(memory, "recall", PAINT, "--limit", "1", "--format", "md"),
    ):
        (line,) = [line for line in text.splitlines() if PAINT in line]
        assert line.endswith(f", score {score:.2g})")
