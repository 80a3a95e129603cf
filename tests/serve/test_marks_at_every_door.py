"""A memory in an unsettled disagreement, and the state of a task or an error, are marked wherever they are read."""

import json

import pytest
from click.testing import CliRunner
from conftest import decision, intent

import jidomem
from jidomem.read.memory_detail import short_id
from jidomem.runtime.location import init
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession
from jidomem.serve.mcp.tools import TOOLS, call
from jidomem_cli.main import cli

MCP = {tool.name: tool for tool in TOOLS}
FILE = "src/a.py"


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with two decisions that disagree, one that is alone, and a resolved error."""
    (tmp_path / "src").mkdir()
    (tmp_path / FILE).write_text("x = 1\n")
    init(tmp_path, "p")
    config = tmp_path / ".jidomem" / "config.toml"
    config.write_text(f'{config.read_text()}\n[conflicts]\ndecision = "warn"\n')
    monkeypatch.chdir(tmp_path)
    with jidomem.open(tmp_path / ".jidomem") as memory:
        given = [
            decision(summary="quagga in files", topic="store", about=[FILE]),
            decision(summary="quagga in a database", topic="store", about=[FILE]),
            decision(summary="quagga is spelled so", topic="spelling", about=[FILE]),
            intent(type="bug", summary="quagga hangs", status="Resolved", severity="high", about=[FILE]),
        ]
        made = [memory.writer.submit_intent("p", one).iri for one in given]
        yield memory, made


def run(*words):
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def in_mcp(memory, tool, **given):
    return call(MCP[tool], ClientSession(memory, "p"), given)


@pytest.mark.parametrize(
    "words",
    [["recall", "quagga"], ["ask", "decisions"], ["ask", "timeline"], ["governing", FILE]],
    ids=" ".join,
)
def test_the_command_line_marks_memories_that_disagree(there, words):
    _, (first, second, alone, _) = there

    text, values = run(*words), json.loads(run(*words, "--json"))

    rows = values.get("rows") or [{"item": one["id"], **one["metadata"]} for one in values["entries"]]
    marks = {row.get("item") or row["decision"]: row.get("conflicts_with") for row in rows}
    assert (marks[first], marks[second], marks.get(alone)) == ([second], [first], None)
    assert "conflicts_with" in text.splitlines()[0]
    (line,) = [line for line in text.splitlines() if "quagga in files" in line]
    assert line.endswith(short_id(second))


def test_text_for_agents_marks_memories_that_disagree(there):
    memory, (first, second, *_) = there

    recalled = in_mcp(memory, "recall", query="quagga")
    briefed = memory.briefing("p", about=[FILE])

    for text in (recalled.text, briefed.text, run("recall", "quagga", "--format", "md")):
        lines = [line for line in text.splitlines() if f"- {short_id(first)}" in line and "against" not in line]
        assert lines
        assert all(f"disagrees with {short_id(second)}" in line for line in lines)
    entries = [entry for one in briefed.to_dict()["sections"] for entry in one["entries"]]
    assert [second] in [entry.get("conflicts_with") for entry in entries if entry["iri"] == first]


def test_every_server_gives_conflicts_with_in_its_rows(there):
    memory, (first, second, alone, _) = there
    client = create_app(memory).test_client()

    over_mcp = in_mcp(memory, "ask", name="decisions").values["rows"]
    over_http = client.get("/projects/p/queries/decisions").get_json()["rows"]
    governing = client.get(f"/projects/p/governing?file={FILE}").get_json()["rows"]

    for rows in (over_mcp, over_http, governing):
        marks = {row.get("decision") or row["item"]: row.get("conflicts_with") for row in rows}
        assert (marks[first], marks[second], marks[alone]) == ([second], [first], None)


def test_a_settled_disagreement_is_not_marked_and_a_past_one_is_as_of_then(there):
    memory, (first, second, *_) = there
    then = memory.reader.ask("timeline", project="p", limit=1)[0]["recorded"]
    both = decision(summary="quagga in both", topic="store", about=[FILE], supersedes=[first, second])
    memory.writer.submit_intent("p", both)

    assert not any("conflicts_with" in row for row in memory.reader.ask("decisions", project="p"))
    before = memory.reader.ask("decisions", project="p", as_of=then)
    assert sum("conflicts_with" in row for row in before) == 2
    assert {hit.id for hit in memory.recall("quagga", as_of=then).entries if "conflicts_with" in hit.metadata} == {
        first, second
    }  # fmt: skip


def test_the_next_page_marks_what_disagreed_when_the_first_page_was_read(there):
    memory, (first, second, *_) = there
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
def test_a_resolved_error_is_shown_as_resolved_in_every_text(there, words):
    (line,) = [line for line in run(*words).splitlines() if "quagga hangs" in line]
    assert "Resolved" in line


def test_the_state_of_an_error_is_told_to_agents_in_text_and_rows(there):
    memory, (*_, error) = there

    assert "Resolved" in next(
        line for line in in_mcp(memory, "recall", query="hangs").text.splitlines() if "hangs" in line
    )
    (row,) = [row for row in in_mcp(memory, "ask", name="timeline").values["rows"] if row["item"] == error]
    assert (row["status"], row["state"]) == ("active", "Resolved")
