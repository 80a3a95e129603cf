"""The refusal of a correction of an ended memory has the call about what is in its place, and that call is accepted."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner

import jidomem
from jidomem.errors import Conflict
from jidomem.records.policy import PolicyChange
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

TOOL = {tool.name: tool for tool in TOOLS}
PORT, HOST = "the port is 80", "the host is a"


@pytest.fixture
def memory(tmp_path):
    """A project with a fact that was superseded, a task with an earlier status, and a fact that was withdrawn."""
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.writer.correct("p", memory.remember(PORT).iri, supersede="the port is 443", reason="TLS")
        memory.writer.correct("p", memory.remember("Ship it", type="task").iri, changes={"status": "InProgress"})
        memory.writer.invalidate("p", memory.remember(HOST).iri, reason="there is none")
        yield memory


def ended(memory, summary):
    """The ended memory with this summary."""
    rows = memory.reader.ask("timeline", project="p", include_inactive=True)
    (item,) = [row["item"] for row in rows if row["summary"] == summary and row["status"] != "active"]
    return item


def active(memory):
    return {row["summary"]: row for row in memory.reader.ask("timeline", project="p")}


#: The correction of the ended memory with a summary, and the summary and state of what is active afterwards.
CORRECTIONS = [
    pytest.param(PORT, {"supersede": "the port is 8443", "reason": "it moved"}, "the port is 8443", id="supersede"),
    pytest.param(PORT, {"set": {"confidence": "high"}, "reason": "it's sure"}, "the port is 443", id="a field"),
    pytest.param("Ship it", {"set": {"status": "Blocked"}, "reason": "waits"}, "Ship it", id="a status"),
    pytest.param(PORT, {"confirm": True}, "the port is 443", id="confirm"),
    pytest.param(PORT, {"invalidate": True, "reason": "wrong"}, "Withdrawn: the port is 443", id="invalidate"),
    pytest.param(HOST, {"supersede": "the host is b", "reason": "it moved"}, "the host is b", id="of a withdrawn one"),
    pytest.param(HOST, {"set": {"topic": "host"}, "reason": "it holds"}, HOST, id="a field of a withdrawn one"),
]


@pytest.mark.parametrize(("summary", "given", "result"), CORRECTIONS)
def test_the_tool_call_of_a_refused_revision_is_accepted(memory, summary, given, result):
    session, before = ClientSession(memory, "ana"), active(memory)

    refused = call(TOOL["revise"], session, {"id": ended(memory, summary), **given})
    tool, _, arguments = refused.values["hint"].partition(": the tool ")[2].partition(" with ")
    assert refused.is_error
    assert f"the tool {tool} with {arguments}" in refused.text
    accepted = call(TOOL[tool], session, json.loads(arguments))

    assert not accepted.is_error
    assert active(memory)[result] != before.get(result)


@pytest.mark.parametrize(("summary", "given", "result"), CORRECTIONS)
def test_the_call_in_python_of_a_refused_correction_is_accepted(memory, summary, given, result):
    before, options = active(memory), {("changes" if name == "set" else name): each for name, each in given.items()}

    with pytest.raises(Conflict) as refusal:
        memory.writer.correct("p", ended(memory, summary), **options)
    accepted = eval(refusal.value.hint.partition(": ")[2], {"memory": memory})

    assert accepted.status == "asserted"
    assert active(memory)[result] != before.get(result)


@pytest.mark.parametrize(("summary", "given", "result"), CORRECTIONS)
def test_the_command_of_a_refused_edit_is_accepted(memory, summary, given, result):
    before, item, runner = active(memory), ended(memory, summary), CliRunner()
    options = [f"--set={name}={value}" for name, value in given.get("set", {}).items()]
    options += [f"--{name}" for name in ("confirm", "invalidate") if name in given]
    options += [f"--{name}={given[name]}" for name in ("supersede", "reason") if name in given]

    refused = runner.invoke(cli, ["edit", "--root", memory.settings.place, "--project", "p", item, *options])
    assert refused.exit_code == 5
    command = re.search(r"jidomem (edit .*?)(?:: read the .*)?$", refused.stderr, re.MULTILINE)[1]
    accepted = runner.invoke(cli, shlex.split(command))

    assert accepted.exit_code == 0, accepted.output
    assert active(memory)[result] != before.get(result)


@pytest.mark.parametrize(("summary", "given", "result"), CORRECTIONS)
def test_the_request_of_a_refused_revision_is_accepted(memory, summary, given, result):
    before, client = active(memory), create_app(memory).test_client()

    refused = client.post(f"/projects/p/memories/{ended(memory, summary)[-8:]}/revise", json=given)
    assert refused.status_code == 409
    path, _, body = refused.get_json()["hint"].partition(": POST ")[2].partition(" ")
    accepted = client.post(path, json=json.loads(body))

    assert accepted.status_code == 201, accepted.get_json()
    assert active(memory)[result] != before.get(result)


@pytest.mark.parametrize("summary", [PORT, HOST], ids=["superseded", "withdrawn"])
@pytest.mark.parametrize("interface", ["MCP", "Python", "a shell"])
def test_the_call_of_a_refused_memory_that_supersedes_an_ended_one_is_accepted(memory, summary, interface):
    old, text, runner = ended(memory, summary), "`it` is now 'c'", CliRunner()
    if interface == "MCP":
        session = ClientSession(memory, "ana")
        refused = call(TOOL["remember"], session, {"text": text, "fields": {"supersedes": [old]}, "rationale": "new"})
        hint = refused.values["hint"]
        assert not call(TOOL["remember"], session, json.loads(hint.partition("remember with ")[2])).is_error
    elif interface == "Python":
        with pytest.raises(Conflict) as refusal:
            memory.remember(text, supersedes=[old], rationale="new")
        hint = refusal.value.hint
        eval(hint.partition(": ")[2], {"memory": memory})
    else:
        place = ["--root", memory.settings.place, "--project", "p"]
        refused = runner.invoke(cli, ["remember", *place, text, "--supersedes", old, "--set", "rationale=new"])
        hint = refused.stderr.splitlines()[-1]
        assert runner.invoke(cli, shlex.split(hint.partition(": jidomem ")[2])).exit_code == 0

    assert text in active(memory)
    assert ("successor first" in hint) == (summary == PORT)


def test_a_call_for_the_memory_of_another_agent_asks_for_the_reason(memory):
    session, old = ClientSession(memory, "eve"), ended(memory, PORT)

    refused = call(TOOL["remember"], session, {"text": "the port is 9", "supersedes": [old]})

    arguments = json.loads(refused.values["hint"].partition("remember with ")[2])
    assert call(TOOL["remember"], session, arguments).is_error
    assert arguments.pop("rationale") == "SAY WHY"
    assert not call(TOOL["remember"], session, {**arguments, "rationale": "it was measured"}).is_error


def test_a_second_withdrawal_has_no_call(memory):
    refused = call(
        TOOL["revise"], ClientSession(memory, "ana"), {"id": ended(memory, HOST), "invalidate": True, "reason": "no"}
    )

    assert "stays withdrawn" in refused.text
    assert "the tool" not in refused.text
    assert [choice["choice"] for choice in refused.values["choices"]] == ["keep"]


def test_the_acceptance_of_a_proposal_that_another_curator_rejected_asks_for_the_reason(memory):
    for curator in ("carl", "rita"):
        memory.writer.change_policy("p", [PolicyChange(curator, grants="Curator")])
    memory.writer.change_policy("p", [PolicyChange(role="Implementer", kind="convention", allows="propose")])
    bob, carl = memory.writer.speaking_for("bob"), memory.writer.speaking_for("carl")
    item = bob.remember("p", "Prefix helpers", type="convention").iri
    carl.invalidate("p", item, reason="noise")
    session = ClientSession(memory, "rita", is_named=True)

    refused = call(TOOL["revise"], session, {"id": item, "confirm": True})
    arguments = json.loads(refused.values["hint"].partition("revise with ")[2])
    arguments["reason"] = {"SAY WHY": "it is none"}[arguments["reason"]]

    assert not call(TOOL["revise"], session, arguments).is_error
    assert "Prefix helpers" in active(memory)


def test_the_confirmation_of_what_another_agent_withdrew_asks_for_the_reason(memory):
    place, runner = ["--root", memory.settings.place, "--project", "p", "--agent", "eve"], CliRunner()
    session, old = ClientSession(memory, "eve"), ended(memory, HOST)

    typed = runner.invoke(cli, ["edit", *place, old, "--confirm"])
    refused = call(TOOL["revise"], session, {"id": old, "confirm": True})
    command = shlex.split(re.search(r": jidomem (edit .*)", typed.stderr)[1])
    arguments = json.loads(refused.values["hint"].partition("revise with ")[2])
    unsaid = runner.invoke(cli, command)
    arguments["reason"] = {"SAY WHY": "there is one again"}[arguments["reason"]]
    accepted = call(TOOL["revise"], session, arguments)

    assert "its reason" not in unsaid.stderr
    assert (unsaid.exit_code, "SAY WHY" in unsaid.stderr, accepted.is_error) == (3, True, False)
    assert HOST in active(memory)
