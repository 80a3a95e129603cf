"""A memory in an open conflict, and the state of a task or an error, are marked in every interface."""

import json

import pytest
from click.testing import CliRunner
from conftest import decision, intent

import jidomem
from jidomem.entries import Entry
from jidomem.rdf.vocab import BASE, short_id
from jidomem.records.entry import WriteRequest
from jidomem.runtime.location import init
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

MCP = {tool.name: tool for tool in TOOLS}
FILE = "src/a.py"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A folder with two conflicting decisions, one without a conflict, and a resolved error."""
    (tmp_path / "src").mkdir()
    (tmp_path / FILE).write_text("x = 1\n")
    init(tmp_path, "p")
    config = tmp_path / ".jidomem" / "config.toml"
    config.write_text(f'{config.read_text()}\n[conflicts]\ndecision = "warn"\n')
    monkeypatch.chdir(tmp_path)
    with jidomem.open(tmp_path / ".jidomem") as memory:
        intents = [
            decision(summary="quagga in files", topic="store", about=[FILE]),
            decision(summary="quagga in a database", topic="store", about=[FILE]),
            decision(summary="quagga is spelled so", topic="spelling", about=[FILE]),
            intent(type="bug", summary="quagga hangs", status="Resolved", severity="high", about=[FILE]),
        ]
        iris = [memory.writer.submit_intent("p", one).iri for one in intents]
        yield memory, iris


def run(*words):
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def call_tool(memory, tool, **arguments):
    return call(MCP[tool], ClientSession(memory, "p"), arguments)


@pytest.mark.parametrize(
    "words",
    [["recall", "quagga"], ["ask", "decisions"], ["ask", "timeline"], ["governing", FILE]],
    ids=" ".join,
)
def test_the_command_line_marks_conflicting_memories(repository, words):
    _, (first, second, other, _) = repository

    text, values = run(*words), json.loads(run(*words, "--json"))

    rows = values.get("rows") or [{"item": one["id"], **one["metadata"]} for one in values["entries"]]
    marks = {row.get("item") or row["decision"]: row.get("conflicts_with") for row in rows}
    assert (marks[first], marks[second], marks.get(other)) == ([second], [first], None)
    assert "conflicts_with" in text.splitlines()[0]
    (line,) = [line for line in text.splitlines() if "quagga in files" in line]
    assert line.endswith(short_id(second))


def test_text_for_agents_marks_conflicting_memories(repository):
    memory, (first, second, *_) = repository

    recalled = call_tool(memory, "recall", query="quagga")
    briefed = memory.briefing("p", about=[FILE])

    for text in (recalled.text, briefed.text, run("recall", "quagga", "--format", "md")):
        lines = [line for line in text.splitlines() if f"- {short_id(first)}" in line and "against" not in line]
        assert lines
        assert all(f"disagrees with {short_id(second)}" in line for line in lines)
    entries = [entry for one in briefed.to_dict()["sections"] for entry in one["entries"]]
    assert [second] in [entry.get("conflicts_with") for entry in entries if entry["iri"] == first]


def test_rows_of_http_and_mcp_have_the_conflicts(repository):
    memory, (first, second, other, _) = repository
    client = create_app(memory).test_client()

    over_mcp = call_tool(memory, "ask", name="decisions").values["rows"]
    over_http = client.get("/projects/p/queries/decisions").get_json()["rows"]
    governing = client.get(f"/projects/p/governing?file={FILE}").get_json()["rows"]

    for rows, named in ((over_mcp, short_id), (over_http, str), (governing, str)):
        marks = {row.get("decision") or row["item"]: row.get("conflicts_with") for row in rows}
        conflicts = [marks[named(each)] for each in (first, second, other)]
        assert conflicts == [[named(second)], [named(first)], None]


def test_a_settled_conflict_is_marked_as_of_the_past_alone(repository):
    memory, (first, second, *_) = repository
    moment = memory.reader.ask("timeline", project="p", limit=1)[0]["recorded"]
    both = decision(summary="quagga in both", topic="store", about=[FILE], supersedes=[first, second])
    memory.writer.submit_intent("p", both)

    assert not any("conflicts_with" in row for row in memory.reader.ask("decisions", project="p"))
    before = memory.reader.ask("decisions", project="p", as_of=moment)
    assert sum("conflicts_with" in row for row in before) == 2
    assert {hit.id for hit in memory.recall("quagga", as_of=moment).entries if "conflicts_with" in hit.metadata} == {
        first, second
    }  # fmt: skip


def test_the_next_page_marks_the_conflicts_of_the_first_page(repository):
    memory, (first, second, *_) = repository
    page = memory.reader.ask_page("decisions", project="p", limit=1)
    both = decision(summary="quagga in both", topic="store", about=[FILE], supersedes=[first, second])
    memory.writer.submit_intent("p", both)

    rows = memory.reader.ask_page("decisions", project="p", cursor=page.cursor).rows

    assert {row["decision"]: row.get("conflicts_with") for row in rows} == {first: [second], second: [first]}


@pytest.mark.parametrize(
    "words",
    [["recall", "quagga"], ["recall", "quagga", "--format", "md"], ["ask", "timeline"], ["ask", "timeline", "--format",
     "md"], ["governing", FILE], ["agent", "briefing", "--about", FILE]],
    ids=" ".join,
)  # fmt: skip
def test_a_resolved_error_is_shown_as_resolved_in_every_text(repository, words):
    (line,) = [line for line in run(*words).splitlines() if "quagga hangs" in line]
    assert "Resolved" in line


def test_the_state_of_an_error_is_in_text_and_rows_for_agents(repository):
    memory, (*_, error) = repository

    assert "Resolved" in next(
        line for line in call_tool(memory, "recall", query="hangs").text.splitlines() if "hangs" in line
    )
    (row,) = [row for row in call_tool(memory, "ask", name="timeline").values["rows"] if row["item"] == short_id(error)]
    assert (row.get("status"), row["state"]) == (None, "Resolved")  # active is not written


def test_entries_of_other_sessions_are_counted_with_the_option_that_searches_them(repository, monkeypatch):  # B040 B041
    memory, _ = repository
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    contents = [("7", "of seven"), ("7", "of seven again"), ("eight", "of eight"), (None, "of none")]
    entries = [Entry(agent_id="ana", session_id=name, content=f"zebra {text}") for name, text in contents]
    others = [Entry(agent_id="ben", session_id="9", content="zebra of another agent")]
    memory.entries.write_many([WriteRequest(entry) for entry in entries + others])
    words = ("recall", "zebra", "--kind", "entry")
    query = {"query": "zebra", "kinds": ["entry"]}
    client = create_app(memory).test_client()

    at_shell = [CliRunner().invoke(cli, [*words, *options]) for options in ([], ["--format", "md"], ["--session", "7"])]
    over_http = client.post("/projects/p/recall", json={**query, "agent_id": "ana"}).json
    stored = client.post("/projects/p/entries/recall", json={"agent_id": "ana", "query": "zebra"}).json
    over_mcp = call(MCP["recall"], ClientSession(memory, "ana"), query)
    named = call(MCP["recall"], ClientSession(memory, "ana"), {**query, "session": "eight"})

    notice = "entries in other sessions, not searched: 3 (7: 2, eight: 1); add "
    for text in (at_shell[0].stderr, at_shell[1].stdout):
        assert f"{notice}--session NAME" in text
    assert ("of seven again" in at_shell[2].stdout, "not searched" in at_shell[2].stderr) == (True, False)
    for answer in (over_http, stored, over_mcp.values):
        assert answer["metadata"]["other_sessions"] == {"7": 2, "eight": 1}
        assert [each["content"] for each in answer["entries"]] == ["zebra of none"]
    assert f"{notice}session=NAME" in over_mcp.text
    assert [each["content"] for each in named.values["entries"]] == ["zebra of eight"]
    assert "other_sessions" not in named.values["metadata"]


@pytest.mark.parametrize("name", ["mornin", f"{BASE}sessions/mornin", "urn:mornin", "7 a.n."])
def test_an_unknown_session_is_refused_with_the_nearest_names(repository, name):
    memory, _ = repository
    memory.writer.start_session("p", "morning", agent="ana")
    memory.entries.write(WriteRequest(Entry(agent_id="ana", session_id="7 a.m.", content="zebra")))
    client = create_app(memory).test_client()

    at_shell = CliRunner().invoke(cli, ["recall", "quagga", "--session", name])
    over_http = client.post("/projects/p/recall", json={"query": "quagga", "session": name})
    over_mcp = call(MCP["recall"], ClientSession(memory, "p"), {"query": "quagga", "session": name})

    near = {"7 a.n.": "did you mean 7 a.m.?"}
    hint = near.get(name, "did you mean morning?")
    assert (at_shell.exit_code, over_http.status_code, over_mcp.is_error) == (4, 404, True)
    assert f"error: p has no session {name!r}\nhint: {hint}\n" in at_shell.stderr
    assert (over_http.json["code"], over_http.json["hint"]) == ("not_found", hint)
    assert (over_mcp.values["code"], over_mcp.values["hint"]) == ("not_found", hint)
    for known in ("morning", "s-1", f"{BASE}sessions/s-1", "7 a.m."):
        assert CliRunner().invoke(cli, ["recall", "quagga", "--session", known]).exit_code == 0


@pytest.mark.parametrize("name", ["an", f"{BASE}agents/an"])
def test_recall_of_an_unknown_agent_names_the_nearest_one_without_an_error(repository, name):
    memory, _ = repository
    memory.writer.submit_intent("p", intent(summary="quagga of ana", asserted_by="ana"))

    at_shell = CliRunner().invoke(cli, ["recall", "quagga", "--agent", name])
    over_http = create_app(memory).test_client().post("/projects/p/recall", json={"query": "quagga", "agent": name})
    over_mcp = call(MCP["recall"], ClientSession(memory, "p"), {"query": "quagga", "agent": name})

    notice = "agent an wrote nothing here yet; did you mean 'ana'?"
    assert (at_shell.exit_code, over_http.status_code, over_mcp.is_error) == (0, 200, False)
    assert notice in at_shell.stderr
    assert over_http.json["metadata"]["unknown_agent"] == {"name": "an", "nearest": ["ana"]}
    assert notice in over_mcp.text
    assert "unknown_agent" not in memory.recall("quagga", agent="ana").metadata
    assert "unknown_agent" not in memory.recall("okapi", agent="ana").metadata
