"""A query takes the plain name of an agent or a session, by one rule in every interface."""

import json
from urllib.parse import quote

import pytest
from click.testing import CliRunner

import jidomem
from jidomem.errors import NotFound
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

ASK = next(tool for tool in TOOLS if tool.name == "ask")


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("names") / "root", project="p", agent="ana") as memory:
        memory.remember("Ship the importer", type="task", assigned_to="राम")
        conversation = memory.conversation("evening")
        conversation.record("which index?", "Oxigraph", asked_by="Eve Adams", answered_by="ana")
        yield memory


def in_python(memory, name, **arguments):
    return memory.ask(name, **arguments)


def over_http(memory, name, **arguments):
    answer = create_app(memory).test_client().get(f"/projects/p/queries/{name}", query_string=arguments)
    if answer.status_code == 404:
        raise NotFound(answer.json["detail"], hint=answer.json["hint"])
    return answer.json["rows"]


def over_mcp(memory, name, **arguments):
    answer = call(ASK, ClientSessions(memory).of("eve"), {"name": name, "params": arguments})
    if answer.is_error:
        raise NotFound(answer.values["detail"], hint=answer.values["hint"])
    return answer.values["rows"]


def at_the_command_line(memory, name, **arguments):
    words = [f"{key}={value}" for key, value in arguments.items()]
    result = CliRunner().invoke(
        cli, ["--root", str(memory.settings.root), "--project", "p", "ask", name, *words, "--json"]
    )
    if result.exit_code:
        refusal = json.loads(result.stdout)
        raise NotFound(refusal["detail"], hint=refusal["hint"])
    return json.loads(result.stdout)["rows"]


def on_the_pages(memory, name, **arguments):
    answer = create_app(memory).test_client().get(f"/ui/p/playbook/{name}.json", query_string=arguments)
    if answer.status_code == 404:
        raise NotFound(answer.json["detail"], hint=answer.json["hint"])
    return answer.json["rows"]


INTERFACES = [in_python, over_http, over_mcp, at_the_command_line, on_the_pages]


@pytest.mark.parametrize("ask", INTERFACES)
def test_an_agent_and_a_session_are_named_by_iri_or_by_plain_name(memory, ask):
    by_iri = ask(memory, "said-by", agent="https://jido.ai/agents/eve-adams")

    assert [row["words"] for row in by_iri] == ["which index?"]
    assert ask(memory, "said-by", agent="eve-adams") == ask(memory, "said-by", agent="Eve Adams") == by_iri
    assert [row["summary"] for row in ask(memory, "tasks-of-agent", agent="राम")] == ["Ship the importer"]
    assert [row["answer"] for row in ask(memory, "conversation", session="evening")] == ["Oxigraph"]


@pytest.mark.parametrize("ask", INTERFACES)
def test_an_unknown_name_is_refused_with_the_nearest(memory, ask):
    with pytest.raises(NotFound, match="p has no agent 'anna'") as refusal:
        ask(memory, "said-by", agent="anna")
    assert refusal.value.hint == "did you mean ana?"
    with pytest.raises(NotFound, match="p has no session 'evning'") as other:
        ask(memory, "last-turns", session="evning")
    assert other.value.hint == "did you mean evening?"


def test_a_name_without_a_similar_one_is_refused_with_all_names(memory):
    with pytest.raises(NotFound) as refusal:
        memory.ask("said-by", agent="zzzzz")
    assert refusal.value.hint == "there are: ana, eve-adams, memory-writer, राम"


def test_an_unknown_iri_gives_no_rows(memory):
    assert memory.ask("said-by", agent="https://jido.ai/agents/nobody") == []
    assert over_http(memory, "said-by", agent=quote("urn:x:nobody", safe=":")) == []
