"""The arguments of MCP tools: moments as in Python and HTTP, and the names in the hints of a conflict."""

import json

import pytest

import jidomem
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS, WORKING


@pytest.fixture
def ask(tmp_path):
    """Call a tool by name; the memory has a fact that was valid in 2025 and one that is valid now."""
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember("the quota is ten", valid_from="2025-01-01", valid_until="2026-01-01")
        memory.remember("the quota is twenty", valid_from="2026-01-01")
        session, tools = ClientSession(memory, "ana"), {tool.name: tool for tool in (*TOOLS, WORKING)}
        yield lambda name, /, **given: call(tools[name], session, given)


def test_answers_hold_at_the_given_moment(ask):
    (hit,) = ask("recall", query="quota", valid_at="2025-06-01").values["entries"]
    assert hit["content"] == "the quota is ten"
    (row,) = ask("ask", name="facts", valid_at="2025-06-01").values["rows"]
    assert row["summary"] == "the quota is ten"
    text = ask("briefing", valid_at="2025-06-01").text
    assert "the quota is ten" in text
    assert "twenty" not in text


def test_recall_with_until_has_no_later_memory(ask):
    assert ask("recall", query="quota", until="2024-01-01").values["entries"] == []
    assert ask("recall", query="quota", until="2099-01-01").values["entries"]


def test_the_hint_of_a_conflict_names_the_arguments_of_its_choices(ask):
    decision = {"type": "decision", "topic": "store", "rationale": "it embeds"}
    ask("remember", text="Use SQLite", **decision)
    refused = ask("remember", text="Use DuckDB", **decision).values
    assert refused["code"] == "conflict"
    for choice in refused["choices"]:
        assert all(need in refused["hint"] for need in choice["needs"])
    assert "reason" not in refused["hint"].replace("rationale", "")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("remember", {"text": "a", "type": "desision maker"}, "such as decision"),
        ("remember", {"text": "a", "type": "zzz"}, "such as fact, assumption, hypothesis, discovery, risk; all 26: "),
        ("remember", {"text": "a", "fields": {"colour": "red"}}, "; all 25: memory://ontology"),
        ("working", {"changes": [{"do": "tasks_ad"}]}, "such as tasks_add, "),
        ("recall", {"query": "x", "zzz": 1}, " ... (all 14: the definition of recall)"),
    ],
)
def test_a_long_list_of_allowed_values_is_shortened_to_the_near_ones(ask, tool, arguments, words):
    refused = ask(tool, **arguments)

    assert refused.is_error
    assert words in refused.text
    assert all(len(violation["allowed"]) <= 12 for violation in refused.values["violations"])
    assert max(line.count(", ") for line in refused.text.splitlines()) <= 12


def test_an_empty_list_is_a_list(ask):
    answer = ask("ask", name="open-errors")

    assert answer.text == '{"rows": [], "cursor": null}'
    assert json.loads(answer.text) == answer.values


@pytest.mark.parametrize(
    ("tool", "arguments", "retry"),
    [
        ("recall", {"query": "quota", "limit": "3"}, {"limit": 3}),
        ("recall", {"query": "quota", "min_score": "0.2", "explain": "True"}, {"min_score": 0.2, "explain": True}),
        ("recall", {"query": "quota", "kinds": ["decisions", "fact"]}, {"kinds": ["decision", "fact"]}),
        ("recall", {"query": "quota", "kinds": '["fact"]'}, {"kinds": ["fact"]}),
        ("remember", {"text": "a", "topic": ["redis", "port"]}, {"topic": "redis port"}),
        ("remember", {"text": "a", "fields": '{"expires_on": "2030-01-01"}'}, {"fields": {"expires_on": "2030-01-01"}}),
        ("ask", {"name": "open-tasks", "params": "{}"}, {"params": {}}),
    ],
)
def test_an_argument_of_another_type_has_the_corrected_call(ask, tool, arguments, retry):
    refused = ask(tool, **arguments)

    assert refused.is_error
    assert refused.values["retry"] == {**arguments, **retry}
    assert not ask(tool, **refused.values["retry"]).is_error


def test_a_number_without_a_fraction_is_an_integer(ask):
    assert ask("recall", query="quota", limit=1.0).values == ask("recall", query="quota", limit=1).values
    refused = ask("recall", query="quota", limit=1.5)
    assert refused.is_error
    assert "retry" not in refused.values
