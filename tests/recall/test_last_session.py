"""The last session of an agent: in its briefing, in recall, and in the query that lists the sessions."""

import pytest
from click.testing import CliRunner
from conftest import fixed_sources

import jidomem
from jidomem.rdf.vocab import local_name
from jidomem.recall.briefing import markdown
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", sources=fixed_sources()) as memory:
        yield memory


def call_tool(session, name, **arguments):
    result = call(next(tool for tool in TOOLS if tool.name == name), session, arguments)
    assert not result.is_error, result.values
    return result


def visit(memory, agent, *texts):
    """Let *agent* record *texts* over MCP in a server of its own, and return the name of its session."""
    sessions = ClientSessions(memory, agent)
    results = [call_tool(sessions.of(None), "remember", text=text) for text in texts]
    sessions.leave()
    return results[0].values["filled"]["asserted_in"]


def test_sessions_are_listed_newest_first_with_agent_start_and_end(memory):
    first = visit(memory, "claude", "the port is 80")
    second = visit(memory, "codex", "the host is a")

    for name in ("sessions", "last-session"):
        rows = memory.ask(name)
        assert [local_name(row["session"]) for row in rows] == [second, first]
        assert [local_name(row["agent"]) for row in rows] == ["codex", "claude"]
        assert all(row["start"] < row["end"] for row in rows)
    (row,) = memory.ask("memories-of-session", session=first)
    assert row["summary"] == "the port is 80"


def test_a_briefing_names_the_last_session_of_the_agent_and_its_summary(memory):
    visit(memory, "claude", "the port is 90")
    mine = visit(memory, "claude", "the port is 80", "Session summary: the port was chosen; next: TLS.")
    visit(memory, "codex", "the host is a")

    briefing = memory.briefing(agent="claude", about=[])

    (section,) = [each for each in briefing.sections if each.name == "session"]
    assert [entry.values["summary"] for entry in section.entries] == [
        "Session summary: the port was chosen; next: TLS."
    ]
    (note,) = briefing.to_dict()["notes"]
    assert note.startswith(f"your last session, {mine}, 20")
    assert note.endswith(f"UTC, 2 memories: jidomem ask memories-of-session session={mine}")
    assert f'2 memories: ask memories-of-session (params {{"session": "{mine}"}})\n' in briefing.for_tools().text
    assert briefing.tokens <= 1500
    assert "last session" not in memory.briefing(agent="newcomer").text


def test_a_small_budget_omits_the_notes_before_the_memories(memory):
    visit(memory, "claude", "the port is 80")
    needed = memory.briefing(agent="claude").tokens

    small = memory.briefing(agent="claude", budget_tokens=needed - 1)

    assert (small.notes, "the port is 80" in small.text) == ((), True)


def test_a_recall_about_the_last_session_names_it_and_the_query_that_lists_it(memory):
    visit(memory, "claude", "the port is 80")
    last = visit(memory, "codex", "the host is a")

    answers = [
        memory.recall(query, "p") for query in ("What did we do in the last session?", "the last of the sessions")
    ]

    assert [each.metadata.get("last_session", {}).get("session") for each in answers] == [last, None]
    assert f'what it recorded: ask memories-of-session (params {{"session": "{last}"}})' in markdown(answers[0])
    assert "ask memories-of-session" not in markdown(answers[1])
    mine = memory.recall("our last session", "p", agent="claude").metadata["last_session"]
    assert mine["agent"] == "claude"


@pytest.mark.parametrize(
    "notes", [["Run ruff before each commit."], ["Run ruff before each commit.", "Never push to main."]]
)
def test_a_briefing_counts_the_imported_notes_pending_review(tmp_path, monkeypatch, notes):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "AGENTS.md").write_text("".join(f"- {note}\n" for note in notes))
    assert CliRunner().invoke(cli, ["init", "--from", "auto"]).exit_code == 0

    with jidomem.open() as memory:
        briefing = memory.briefing(agent="claude")
        waits = "1 imported note waits" if len(notes) == 1 else "2 imported notes wait"
        assert briefing.to_dict()["notes"] == [f"{waits} for a curator: jidomem review"]
        assert f"{waits} for a curator: ask proposals\n" in briefing.for_tools().text
        for row in memory.ask("proposals"):
            memory.writer.invalidate(memory.project, row["item"], reason="no longer")
        assert memory.briefing(agent="claude").notes == ()
