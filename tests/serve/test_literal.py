"""The length of a text is limited by the user's configuration, equally in every interface."""

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

LIMIT = 2048
FITS = "ü" * (LIMIT // 2)
LONG = FITS + "x"
RAISED = "literal = 2049 in [limits] of ~/.config/jidomem/config.toml"
NODE = "https://jido.ai/projects/p/modules/m"


@pytest.fixture
def limited():
    path = own_config()
    path.parent.mkdir(parents=True)
    path.write_text(f"[limits]\nliteral = {LIMIT}\n")
    path.chmod(0o600)


@pytest.fixture
def root(tmp_path, limited):
    return init(tmp_path, "p")


def run(root, *args, stdin=None):
    return CliRunner().invoke(cli, [*map(str, args), "--root", str(root), "--json"], input=stdin)


def error_of(problem):
    """The error that an interface reported."""
    return JidomemError(problem["detail"], hint=problem["hint"], code=problem["code"])


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
    result = run(root, "submit", stdin=json.dumps(decision(rationale=text)))
    if result.exit_code:
        raise error_of(json.loads(result.stdout or result.stderr))


def by_turtle(root, text):
    (root / "more.ttl").write_text(f'<{NODE}> a <https://jido.ai/ontology#Module> ; '
                                   f'<http://www.w3.org/2000/01/rdf-schema#label> "{text}" .')  # fmt: skip
    result = run(root, "root", "import", "turtle", root / "more.ttl")
    if result.exit_code:
        raise error_of(json.loads(result.stdout or result.stderr))


def by_import(root, text):
    issue = {"id": "b-1", "title": "Do it", "status": "open", "issue_type": "task", "description": text}
    (root / "issues.jsonl").write_text(json.dumps(issue))
    result = run(root, "root", "import", "beads", root / "issues.jsonl")
    if result.exit_code:
        raise error_of(json.loads(result.stdout.splitlines()[0])["outcome"])


def by_mcp(root, text):
    async def call(memory):
        async with McpClient(create_server(ClientSessions(memory), TOOLS), mode="legacy") as client:
            return await client.call_tool("remember", {"text": "with a reason", "fields": {"rationale": text}})

    with jidomem.open(root) as memory:
        result = anyio.run(call, memory)
    if result.is_error:
        raise error_of(result.structured_content)


def by_entry(root, text):
    with jidomem.open(root) as memory:
        memory.entries.write(WriteRequest(Entry(agent_id="architect", content=text)))


def by_turn(root, text):
    with jidomem.open(root) as memory:
        memory.conversation("s-1").record(prompt=text)


def by_http(root, text):
    with running(root, environment=dict(os.environ)) as process, Client(process.url) as client:
        status, answer = client.submit(decision(rationale=text))
    if status != 201:
        assert status == 413
        raise error_of(answer)


SUBMISSIONS = [by_python, by_extra_triple, by_long_term, by_command_line, by_turtle, by_import, by_mcp, by_http]
RECORDINGS = [by_entry, by_turn]


@pytest.mark.parametrize("submit", [*SUBMISSIONS, *RECORDINGS])
def test_a_text_above_the_limit_is_refused_by_every_interface_with_the_limit_and_its_setting(root, submit):
    with pytest.raises(JidomemError, match="has 2,049 bytes; a text holds at most 2,048") as refusal:
        submit(root, LONG)

    assert (refusal.value.code, RAISED in refusal.value.hint) == ("payload_too_large", True)
    submit(root, FITS)


def test_an_imported_record_above_the_limit_is_refused_with_the_limit_and_its_place(root):
    heading = "## Context\n\n"  # is stored with the text below it
    for name, text in (("0001-long", LONG), ("0002-short", FITS)):
        page = f"# {name}\n\n## Status\n\nAccepted\n\n{heading}{text[len(heading) // 2 :]}\n\n## Decision\n\nWe do.\n"
        (root / f"{name}.md").write_text(page)

    result = run(root, "root", "import", "adr", root / "0001-long.md", root / "0002-short.md")

    refused, recorded, report = map(json.loads, result.stdout.splitlines())
    assert (refused["became"], recorded["became"]) == ("refused", "kept")
    assert (report["counts"]["kept"], report["counts"]["refused"]) == (1, 1)
    assert refused["place"].endswith("0001-long.md")
    outcome = json.dumps(refused["outcome"])
    assert "2,048" in outcome
    assert "literal" in outcome


def test_a_text_above_the_default_limit_is_accepted_with_a_raised_one_and_read_after_it(tmp_path):
    text = "x" * 300_000
    with jidomem.open(tmp_path / "root") as memory, pytest.raises(TooLarge, match="a text holds at most 262,144"):
        memory.writer.submit_intent("p", intent(detailed_explanation=text))

    own_config().parent.mkdir(parents=True)
    own_config().write_text("[limits]\nliteral = 300000\n")
    own_config().chmod(0o600)
    with jidomem.open(tmp_path / "root") as memory:
        receipt = memory.writer.submit_intent("p", intent(detailed_explanation=text))
    by_entry(tmp_path / "root", text)
    own_config().unlink()

    with jidomem.open(tmp_path / "root") as memory:
        assert memory.reader.get_memory("p", receipt.iri)["properties"]["detailedExplanation"] == [text]
        assert [entry.content for entry in list_entries(memory.entries)] == [text]
