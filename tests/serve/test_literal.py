"""How long a text may be is the user's own limit, and the same one by whichever door the text comes."""

import json
import os

import anyio
import pytest
from click.testing import CliRunner
from conftest import decision, intent
from http_world import Client, running
from mcp.client.client import Client as McpClient

import jidomem
from jidomem.entries import Entry, WriteRequest, list_entries
from jidomem.errors import JidomemError, TooLarge
from jidomem.runtime.location import init
from jidomem.runtime.settings import own_config
from jidomem.serve.mcp.client_session import ClientSessions
from jidomem.serve.mcp.server import create_server
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

MOST = 2048
FITS = "ü" * (MOST // 2)
LONG = FITS + "x"
RAISED = "literal = 2049 in [limits] of ~/.config/jidomem/config.toml"
NODE = "https://jido.ai/projects/p/modules/m"


@pytest.fixture
def limited():
    path = own_config()
    path.parent.mkdir(parents=True)
    path.write_text(f"[limits]\nliteral = {MOST}\n")
    path.chmod(0o600)


@pytest.fixture
def root(tmp_path, limited):
    return init(tmp_path, "p")


def run(root, *args, stdin=None):
    return CliRunner().invoke(cli, [*map(str, args), "--root", str(root), "--json"], input=stdin)


def met(told):
    """The error a door told of."""
    return JidomemError(told["detail"], hint=told["hint"], code=told["code"])


def by_python(root, text):
    with jidomem.open(root) as memory:
        memory.writer.remember("p", "with a reason", rationale=text)


def by_extra_triple(root, text):
    with jidomem.open(root) as memory:
        memory.writer.remember("p", "with more", extra_triples=[["https://example.org/note", text]])


def by_long_term(root, text):
    with jidomem.open(root) as memory:
        memory.long_term().insert([(NODE, "http://www.w3.org/2000/01/rdf-schema#label", text)], "codebase")


def by_command_line(root, text):
    told = run(root, "submit", stdin=json.dumps(decision(rationale=text)))
    if told.exit_code:
        raise met(json.loads(told.stdout or told.stderr))


def by_turtle(root, text):
    (root / "more.ttl").write_text(f'<{NODE}> a <https://jido.ai/ontology#Module> ; '
                                   f'<http://www.w3.org/2000/01/rdf-schema#label> "{text}" .')  # fmt: skip
    told = run(root, "root", "import", "turtle", root / "more.ttl")
    if told.exit_code:
        raise met(json.loads(told.stdout or told.stderr))


def by_import(root, text):
    issue = {"id": "b-1", "title": "Do it", "status": "open", "issue_type": "task", "description": text}
    (root / "issues.jsonl").write_text(json.dumps(issue))
    told = run(root, "root", "import", "beads", root / "issues.jsonl")
    if told.exit_code:
        raise met(json.loads(told.stdout.splitlines()[0])["outcome"])


def by_mcp(root, text):
    async def asks(memory):
        async with McpClient(create_server(ClientSessions(memory), TOOLS), mode="legacy") as client:
            return await client.call_tool("remember", {"text": "with a reason", "fields": {"rationale": text}})

    with jidomem.open(root) as memory:
        told = anyio.run(asks, memory)
    if told.is_error:
        raise met(told.structured_content)


def by_entry(root, text):
    with jidomem.open(root) as memory:
        memory.entries.write(WriteRequest(Entry(agent_id="architect", content=text)))


def by_turn(root, text):
    with jidomem.open(root) as memory:
        memory.conversation("s-1").record(prompt=text)


def by_http(root, text):
    with running(root, environment=dict(os.environ)) as process, Client(process.url) as client:
        status, told = client.submit(decision(rationale=text))
    if status != 201:
        assert status == 413
        raise met(told)


DOORS = [by_python, by_extra_triple, by_long_term, by_command_line, by_turtle, by_import, by_mcp, by_http]
KEPT_AS_SAID = [by_entry, by_turn]


@pytest.mark.parametrize("door", [*DOORS, *KEPT_AS_SAID])
def test_a_text_over_the_limit_is_refused_at_every_door_with_the_limit_and_how_to_raise_it(root, door):
    with pytest.raises(JidomemError, match="has 2,049 bytes; a text holds at most 2,048") as refusal:
        door(root, LONG)

    assert (refusal.value.code, RAISED in refusal.value.hint) == ("payload_too_large", True)
    door(root, FITS)


def test_a_record_over_the_limit_is_refused_with_the_limit_and_where_it_stands(root):
    heading = "## Context\n\n"  # is kept with what stands below it
    for name, text in (("0001-long", LONG), ("0002-short", FITS)):
        page = f"# {name}\n\n## Status\n\nAccepted\n\n{heading}{text[len(heading) // 2 :]}\n\n## Decision\n\nWe do.\n"
        (root / f"{name}.md").write_text(page)

    told = run(root, "root", "import", "adr", root / "0001-long.md", root / "0002-short.md")

    refused, kept, report = map(json.loads, told.stdout.splitlines())
    assert (refused["became"], kept["became"]) == ("refused", "kept")
    assert (report["counts"]["kept"], report["counts"]["refused"]) == (1, 1)
    assert refused["place"].endswith("0001-long.md")
    said = json.dumps(refused["outcome"])
    assert "2,048" in said
    assert "literal" in said


def test_a_raised_limit_lets_in_what_the_usual_one_refuses_and_it_is_there_when_it_was_lowered_again(tmp_path):
    text = "x" * 300_000
    with jidomem.open(tmp_path / "root") as memory, pytest.raises(TooLarge, match="a text holds at most 262,144"):
        memory.writer.submit_intent("p", intent(detailed_explanation=text))

    own_config().parent.mkdir(parents=True)
    own_config().write_text("[limits]\nliteral = 300000\n")
    own_config().chmod(0o600)
    with jidomem.open(tmp_path / "root") as memory:
        kept = memory.writer.submit_intent("p", intent(detailed_explanation=text))
    by_entry(tmp_path / "root", text)
    own_config().unlink()

    with jidomem.open(tmp_path / "root") as memory:
        assert memory.reader.get_memory("p", kept.iri)["properties"]["detailedExplanation"] == [text]
        assert [entry.content for entry in list_entries(memory.entries)] == [text]
