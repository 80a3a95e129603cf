"""The log of one agent: the commits of the whole log that name it."""

import json

import pytest
from click.testing import CliRunner
from conftest import fixed_sources, intent

import jidomem
from jidomem.entries import Entry, WriteRequest
from jidomem.errors import NotFound
from jidomem.records.policy import PolicyChange
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

AGENTS = "https://jido.ai/agents/"


@pytest.fixture
def memory(tmp_path):
    """A memory to which agents wrote in each way: ben proposed, cleo settled, dora ordered, eve spoke."""
    with jidomem.open(tmp_path / "root", project="p", agent="ana", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent(summary="the door is blue", asserted_by="ana"))
        proposal = memory.writer.submit_intent("p", intent(summary="it is red", asserted_by="ben"), propose=True)
        memory.writer.acting_as("cleo", "curator").settle("p", proposal.iri, "accept")
        memory.writer.submit_intent("p", intent(summary="the code is 4711", asserted_by="ben"))
        memory.conversation("talk", "p").record("which door?", "the blue one", asked_by="eve", answered_by="ana")
        memory.keeper.redact(memory.keeper.plan("p", None, texts=["4711"]), agent="dora", reason="a code")
        memory.writer.change_policy("p", [PolicyChange(kind="convention", allows="propose")])
        yield memory


def test_the_log_of_an_agent_has_the_commits_that_name_it(memory):
    whole = memory.reader.log("p").rows
    agents = {agent for row in whole for agent in row["agents"]}
    assert {f"{AGENTS}{name}" for name in ("ana", "ben", "cleo", "dora")} <= agents

    for agent in agents:
        expected = [row for row in whole if agent in row["agents"]]
        assert memory.reader.log("p", agent=agent).rows == expected
        page = memory.reader.log("p", agent=agent.removeprefix(AGENTS), limit=1)
        assert page.rows == expected[:1]
        if page.cursor:
            assert memory.reader.log("p", agent=agent, limit=9, cursor=page.cursor).rows == expected[1:]
        assert 0 < len(expected) < len(whole)


def test_the_command_and_http_take_the_agent_and_refuse_one_that_wrote_nothing(memory):
    expected = [row["version"] for row in memory.reader.log("p", agent="ben").rows]
    given = ["--root", str(memory.settings.root), "--project", "p", "journal", "log", "--json", "--agent"]

    told = CliRunner().invoke(cli, [*given, "ben"])
    answer = create_app(memory).test_client().get("/projects/p/queries/commits-of-agent?agent=ben").json

    assert [row["version"] for row in json.loads(told.stdout)["rows"]] == expected
    assert len(answer["rows"]) == len(expected)
    assert "did you mean ben?" in CliRunner().invoke(cli, [*given, "bem"]).output
    with pytest.raises(NotFound, match="no agent 'bem'"):
        memory.ask("commits-of-agent", agent="bem")


def test_the_log_of_an_agent_is_of_memories_and_orders_as_help_and_summary_say(memory):
    memory.entries.write(WriteRequest(Entry(agent_id="eve", content="the door was green")))
    memory.catch_up("p")

    assert memory.reader.log("p", agent="eve").rows == []  # it spoke, and wrote an entry
    told = CliRunner().invoke(cli, ["journal", "log", "--help"]).output
    assert "Only memories and orders of this agent." in told
    assert "not those with its entries or conversation turns" in " ".join(told.split())
    assert "memories that one agent wrote or settled" in memory.reader.playbook.get("commits-of-agent").summary
