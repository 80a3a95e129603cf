"""The tools of a memory for function calling: definitions that the clients of models accept, and calls with answers."""

import json
import subprocess
import sys

import pytest
from models.http_endpoint import reply, served

import jidomem
from jidomem.adapters.function_calling import FunctionTools
from jidomem.errors import InvalidRequest


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="coder") as opened:
        yield opened


@pytest.fixture
def tools(memory):
    with FunctionTools(memory) as opened:
        yield opened


def message(*content, reason):
    """Return the reply of Anthropic's API with blocks of *content*."""
    return reply({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*content],
        "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    })  # fmt: skip


def test_the_loop_of_a_client_writes_through_the_tools(memory, tools):  # C001
    from anthropic import Anthropic  # takes a second and a half, which each test process would spend

    asked = {"type": "tool_use", "id": "t1", "name": "remember", "input": {"text": "the build needs Rust 1.80"}}
    with served(
        message(asked, reason="tool_use"), message({"type": "text", "text": "noted"}, reason="end_turn")
    ) as api:
        client = Anthropic(base_url=api.url.removesuffix("/v1"), api_key="none")
        request = {"model": "m", "max_tokens": 100, "system": tools.instructions}
        request["tools"] = tools.definitions("anthropic")
        messages = [{"role": "user", "content": "note the version of Rust"}]
        first = client.messages.create(**request, messages=messages)
        (block,) = first.content
        result = tools.call(block.name, block.input)
        answer = {
            "type": "tool_result",
            "tool_use_id": block.id,
            "content": result.words(),
            "is_error": result.is_error,
        }
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [answer]}]
        client.messages.create(**request, messages=messages)

    (fact,) = memory.reader.ask("facts", project="p")
    assert fact["summary"] == "the build needs Rust 1.80"
    assert not result.is_error
    assert json.loads(api.bodies[1]["messages"][2]["content"][0]["content"])["status"] == "asserted"
    assert {tool["name"] for tool in api.bodies[0]["tools"]} >= {"remember", "recall", "revise", "ask", "why"}
    assert memory.reader.why("p", result.values["iri"])["asserted_by"] == ["https://jido.ai/agents/coder"]


@pytest.mark.parametrize(
    ("form", "part"),
    [("openai", "function.parameters"), ("openai-responses", "parameters"), ("anthropic", "input_schema")],
)
@pytest.mark.parametrize("toolset", ["jidomem", "working", "dialogue"])
def test_each_definition_has_a_name_a_text_and_a_schema(memory, form, part, toolset):
    from jsonschema import Draft202012Validator  # takes a second and a half too

    for tool in FunctionTools(memory, toolset=toolset).definitions(form):
        *outer, inner = part.split(".")
        named = tool[outer[0]] if outer else tool

        Draft202012Validator.check_schema(named[inner])
        assert named[inner]["type"] == "object"
        assert named["name"].isidentifier()
        assert named["description"]
        assert ("type" in tool) == form.startswith("openai")


def test_arguments_are_an_object_or_its_json(tools):
    given = {"text": "the office is in Chicago"}

    assert tools.call("remember", given).values["status"] == "asserted"
    assert tools.call("remember", json.dumps(given)).values["status"] == "deduplicated"
    assert tools.call("briefing").words() == tools.call("briefing", "").words()


def test_a_refused_call_has_the_arguments_that_are_accepted(tools):  # C004
    refused = tools.call("remember", {"summary": "the office is in Chicago"})

    assert refused.is_error
    assert refused.values["retry"] == {"text": "the office is in Chicago"}
    assert json.dumps(refused.values["retry"]) in refused.words()
    assert not tools.call("remember", refused.values["retry"]).is_error


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("remembr", "{}", ["there is no tool 'remembr'", "call remember"]),
        ("", {}, ["there is no tool ''", "recall"]),
        ("recall", '{"query": ', ["the arguments of recall are not JSON", "give one JSON object"]),
        ("recall", "[1]", ["the arguments of recall are not an object"]),
        ("recall", "[" * 100_000, ["the arguments of recall are not JSON"]),
        ("recall", "{}", ["recall needs query"]),
    ],
)
def test_a_malformed_call_is_an_answer_with_its_repair(tools, name, arguments, words):
    refused = tools.call(name, arguments)

    assert refused.is_error
    assert all(each in refused.words() for each in words)
    assert refused.values["code"] == "invalid_request" or "argument" in refused.values["code"]


def test_the_work_session_of_the_agent_is_closed(memory):
    with FunctionTools(memory, agent="planner") as tools:
        iri = tools.call("remember", {"text": "the office is in Chicago"}).values["iri"]
        (session,) = memory.reader.why("p", iri)["asserted_in"]
        opened = memory.reader.ask("active-sessions", project="p")

    assert session.startswith("https://jido.ai/sessions/planner-")
    assert session in str(opened)
    assert session not in str(memory.reader.ask("active-sessions", project="p"))


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"toolset": "server-memory"}, "give one of jidomem, working, dialogue"),
        ({"toolset": []}, "give one of jidomem"),
        ({"agent": 3}, "planner"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(memory, options, hint):
    with pytest.raises(InvalidRequest) as refusal:
        FunctionTools(memory, **options)

    assert hint in refusal.value.hint


def test_an_unknown_form_and_a_closed_door_are_refused(tools):
    with pytest.raises(InvalidRequest) as form:
        tools.definitions("gemini")
    with pytest.raises(InvalidRequest) as path:
        FunctionTools("memory")

    assert form.value.hint == "give one of openai, openai-responses, anthropic"
    assert path.value.hint == "FunctionTools(jidomem.open('memory'))"


def test_a_new_memory_is_empty_for_a_model_that_reads_first(tools):
    assert tools.call("status").values["counts"] == {}
    assert tools.call("recall", {"query": "which Rust?"}).values["entries"] == []


def test_the_tools_need_no_extra(tmp_path):
    blocked = "import sys; sys.modules.update(dict.fromkeys(('mcp', 'mcp_types', 'anthropic', 'openai')));"
    code = f"""{blocked} import jidomem; from jidomem.adapters.function_calling import FunctionTools
with jidomem.open({str(tmp_path)!r}, project="p") as memory:
    print(FunctionTools(memory).call("status").values["project"])"""

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert (run.stdout, run.stderr) == ("p\n", "")
