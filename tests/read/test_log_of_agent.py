"""The log of one agent: the commits of the whole log that name it."""

import json
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner
from conftest import fixed_sources, intent

import jidomem
from jidomem.entries import Entry, WriteRequest
from jidomem.errors import NotFound
from jidomem.index.projection import key_parts, ticks
from jidomem.index.tallies import CommitList
from jidomem.records.named_query import FOREVER, to_term
from jidomem.records.policy import PolicyChange
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

AGENTS = "https://jido.ai/agents/"


@pytest.fixture
def memory(tmp_path):
    """A memory with all kinds of authors: ben proposed, cleo settled, dora redacted, eve wrote a
    turn, fay opened a session, and hal repeated a fact."""
    with jidomem.open(tmp_path / "root", project="p", agent="ana", sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent(summary="the door is blue", asserted_by="ana"))
        proposal = memory.writer.submit_intent("p", intent(summary="it is red", asserted_by="ben"), propose=True)
        memory.writer.acting_as("cleo", "curator").settle("p", proposal.iri, "accept")
        memory.writer.submit_intent("p", intent(summary="the code is 4711", asserted_by="ben"))
        memory.conversation("talk", "p").record("which door?", "the blue one", asked_by="eve", answered_by="ana")
        memory.writer.start_session("p", "night", agent="fay")
        memory.writer.submit_intent("p", intent(summary="the door is blue", asserted_by="hal", idempotency_key="k"))
        memory.maintenance.redact(memory.maintenance.plan("p", None, texts=["4711"]), agent="dora", reason="a code")
        memory.writer.change_policy("p", [PolicyChange(kind="convention", allows="propose")])
        yield memory


def test_the_log_of_an_agent_has_the_commits_that_name_it(memory):
    whole = memory.reader.log("p").rows
    agents = {agent for row in whole for agent in row["agents"]}
    assert {f"{AGENTS}{name}" for name in ("ana", "ben", "cleo", "dora", "fay", "hal")} <= agents

    for agent in agents:
        expected = [row for row in whole if agent in row["agents"]]
        assert memory.reader.log("p", agent=agent).rows == expected
        page = memory.reader.log("p", agent=agent.removeprefix(AGENTS), limit=1)
        assert page.rows == expected[:1]
        if page.cursor:
            assert memory.reader.log("p", agent=agent, limit=9, cursor=page.cursor).rows == expected[1:]
        assert 0 < len(expected) < len(whole)


def test_command_and_http_list_the_commits_of_an_agent_and_an_unknown_agent_is_refused(memory):
    expected = [row["version"] for row in memory.reader.log("p", agent="ben").rows]
    arguments = ["--root", str(memory.settings.root), "--project", "p", "journal", "log", "--json", "--agent"]

    result = CliRunner().invoke(cli, [*arguments, "ben"])
    answer = create_app(memory).test_client().get("/projects/p/queries/commits-of-agent?agent=ben").json

    assert [row["version"] for row in json.loads(result.stdout)["rows"]] == expected
    assert len(answer["rows"]) == len(expected)
    assert "did you mean ben?" in CliRunner().invoke(cli, [*arguments, "bem"]).output
    with pytest.raises(NotFound, match="no agent 'bem'"):
        memory.ask("commits-of-agent", agent="bem")


def test_the_log_of_an_agent_excludes_entries_and_turns_as_documented(memory):
    memory.entries.write(WriteRequest(Entry(agent_id="eve", content="the door was green")))
    memory.catch_up("p")

    assert memory.reader.log("p", agent="eve").rows == []  # eve wrote a turn and an entry
    help_text = CliRunner().invoke(cli, ["journal", "log", "--help"]).output
    assert "Only memories and orders of this agent." in help_text
    assert "not those with its entries or conversation turns" in " ".join(help_text.split())
    assert "memories that one agent wrote or settled" in memory.reader.playbook.get("commits-of-agent").summary


def candidates(root, agent, count):
    """Return the commits that a page of the log of an agent reads."""
    with closing(sqlite3.connect(root / "cache" / "text" / "p.sqlite")) as store:
        listed = CommitList(store)
        listed.marks = {}
        keys = listed.page("", ticks(to_term(FOREVER, "dateTime", "as_of")), count, f"{AGENTS}{agent}")
    return [key_parts(key, newest_first=True)[1] for key in keys]


def test_a_page_of_the_log_of_an_agent_reads_only_its_commits(memory):
    for number in range(30):
        memory.writer.submit_intent("p", intent(summary=f"fact {number}", asserted_by="zoe" if number % 10 else "ben"))

    pages, page = [], memory.reader.ask_page("commits-of-agent", project="p", agent="ben", limit=2)
    while page.cursor:
        pages.append(page)
        page = memory.reader.ask_page("commits-of-agent", project="p", agent="ben", limit=2, cursor=page.cursor)
    rows = [row["commit"] for each in (*pages, page) for row in each.rows]

    root = memory.settings.root
    assert rows == [row["commit"] for row in memory.ask("commits-of-agent", agent="ben")]
    assert candidates(root, "ben", 3) == rows[:3]
    assert {*rows} <= {*candidates(root, "ben", 99)}
    assert len(candidates(root, "ben", 99)) < 10 < len(memory.reader.log("p").rows)


def test_a_search_file_of_an_earlier_version_is_extended_by_the_agents_of_its_commits(memory):
    expected, root = memory.ask("commits-of-agent", agent="ben"), memory.settings.root
    memory.close()
    with closing(sqlite3.connect(root / "cache" / "text" / "p.sqlite")) as store:
        store.executescript("DROP TABLE author; DROP TABLE authored; PRAGMA user_version = 23")

    with jidomem.open(root, project="p") as reopened:
        assert reopened.reader.ask_page("commits-of-agent", project="p", agent="ben", limit=9).rows == expected
    assert len(candidates(root, "ben", 99)) >= len(expected) > 0
