"""Every argument of recall is honoured by each interface, or refused by its name."""

import json
from dataclasses import fields

import pytest
from click.testing import CliRunner
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.entries import Entry
from jidomem.errors import JidomemError
from jidomem.providers import execute_directive
from jidomem.records.directive import MemoryQuery
from jidomem.records.entry import WriteRequest
from jidomem.records.recall import RecallFilters, RecallRequest
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

REQUEST = {one.name for one in fields(RecallRequest)} - {"query"}
MOMENT = object()
ALL = {"alpha", "beta", "new"}
#: The name of an argument -> arguments, and the memories found.
OF_MEMORIES = {
    "limit": ({"limit": 1}, {"beta"}),
    "kinds": ({"kinds": ["decision"]}, {"new"}),
    "about": ({"about": ["src/a.py"], "limit": 1}, {"alpha"}),
    "agent": ({"agent": "ana"}, {"alpha"}),
    "session": ({"session": "s-2"}, {"beta", "new"}),
    "since": ({"since": MOMENT}, {"new"}),
    "until": ({"until": MOMENT}, {"alpha", "beta"}),
    "as_of": ({"as_of": MOMENT}, {"alpha", "beta"}),
    "valid_at": ({"valid_at": "2096-12-24"}, {"beta", "new"}),
    "include_inactive": ({"include_inactive": True}, {*ALL, "old"}),
    "budget_tokens": ({"budget_tokens": 90}, {"beta"}),
    "explain": ({"explain": True}, ALL),
    "min_score": ({"min_score": 1}, set()),
    "scope": ({"scope": "session", "session_id": "s-1"}, {"alpha"}),
    "session_id": ({"session_id": "s-9", "kinds": ["entry"], "agent": "ana"}, {"of ana", "of s-9"}),
    "agent_id": ({"agent_id": "ben", "kinds": ["entry"]}, {"of ben"}),
    "metadata": ({"metadata": {"namespace": "acme"}, "kinds": ["entry"], "agent": "ben"}, {"of ben"}),
}
OF_ENTRIES = {
    "limit": ({"limit": 1, "session_id": "s-9"}, {"of ana"}),
    "agent_id": ({"agent_id": "ben"}, {"of ben"}),
    "metadata": ({"metadata": {"namespace": "acme"}}, set()),
    "scope": ({"scope": "session", "session_id": "s-9"}, {"of s-9"}),
    "session_id": ({"session_id": "s-9"}, {"of ana", "of s-9"}),
    "since": ({"session_id": "s-9", "since": MOMENT}, {"of s-9"}),
    "until": ({"session_id": "s-9", "until": MOMENT}, {"of ana"}),
    "as_of": ({"session_id": "s-9", "as_of": MOMENT}, {"of ana"}),
    "budget_tokens": ({"session_id": "s-9", "budget_tokens": 5}, {"of ana"}),
    "explain": ({"explain": True}, {"of ana"}),
}
NAMES = sorted(REQUEST | {*RecallFilters.__slots__})


@pytest.fixture
def memory(tmp_path, monkeypatch, by):
    monkeypatch.chdir(tmp_path)
    sources = fixed_sources()
    with jidomem.open(tmp_path / ".jidomem", project="p", agent="ana", sources=sources) as opened:
        opened.embeds_for = 60.0
        opened.client = create_app(opened).test_client()
        yield opened


@pytest.fixture
def middle_moment(memory):
    """A moment between the first and the last record."""

    def record(text, agent, **fields):
        memory.entries.write(WriteRequest(Entry(agent_id=agent, content=f"quagga {text}", **fields)))

    submit = memory.writer.submit_intent
    submit("p", intent(summary="quagga alpha", asserted_by="ana", asserted_in="s-1", about=["src/a.py"],
                       valid_until="2096-12-01", evidence=[]))  # fmt: skip
    submit("p", intent(summary="quagga beta", asserted_by="ben", asserted_in="s-2", evidence=[]))
    record("of ana", "ana")
    record("of ben", "ben", metadata={"namespace": "acme"})
    moment = memory.now()
    record("of s-9", "ana", session_id="s-9")
    old = submit("p", decision(summary="quagga old", asserted_by="ben", asserted_in="s-2", topic="t", evidence=[]))
    submit("p", decision(summary="quagga new", asserted_by="ben", asserted_in="s-2", topic="t", supersedes=[old.iri],
                         evidence=[], confidence="high"))  # fmt: skip
    return moment


def refusal_text(error):
    """A refusal as every interface shows it."""
    return f"{error['detail']} {error['hint']}"


def in_python(memory, arguments):
    try:
        return memory.recall("quagga", **arguments).to_dict()
    except JidomemError as error:
        return refusal_text(error.to_dict())


def on_the_command_line(memory, arguments):
    args = []
    for name, value in arguments.items():
        option = "--kind" if name == "kinds" else f"--{name.replace('_', '-')}"
        args += [option] if value is True else [part for one in ([value] if isinstance(value, str | int) else value)
                                                for part in (option, str(one))]  # fmt: skip
    result = CliRunner().invoke(cli, ["recall", "quagga", "--project", "p", "--json", *args])
    output = f"{result.stdout}{result.stderr}"
    return json.loads(result.stdout) if result.exit_code == 0 else output.replace("-", "_")


def over_http(memory, arguments):
    answer = memory.client.post("/projects/p/recall", json={"query": "quagga", **arguments})
    return answer.json if answer.status_code == 200 else refusal_text(answer.json)


def over_mcp(memory, arguments):
    answer = call(
        next(tool for tool in TOOLS if tool.name == "recall"),
        ClientSession(memory, "ana"),
        {"query": "quagga", **arguments},
    )
    return refusal_text(answer.values) if answer.is_error else answer.values


def by_a_directive(memory, arguments):
    values = {"top_k" if name == "limit" else name: value for name, value in arguments.items()}
    query = MemoryQuery(query={"text": "quagga", **values}, provider="graph")
    signal = execute_directive(query, memory.providers())
    return (
        {"entries": [row["value"] for row in signal.data["result"]]}
        if signal.ok
        else refusal_text(signal.data["reason"])
    )


def of_the_store(memory, arguments):
    request = {name: value for name, value in arguments.items() if name in REQUEST}
    opts = {name: value for name, value in arguments.items() if name not in REQUEST}
    try:
        return memory.entries.recall(RecallRequest(**{"agent_id": "ana", "query": "quagga", **request}), opts).to_dict()
    except JidomemError as error:
        return refusal_text(error.to_dict())


def of_the_store_over_http(memory, arguments):
    request = {name: value for name, value in arguments.items() if name in REQUEST}
    opts = {name: json.dumps(value).strip('"') for name, value in arguments.items() if name not in REQUEST}
    body = {"agent_id": "ana", "query": "quagga", **request}
    answer = memory.client.post("/projects/p/entries/recall", json=body, query_string=opts)
    return answer.json if answer.status_code == 200 else refusal_text(answer.json)


#: Each interface, the arguments it refuses, and the results of the others.
INTERFACES = [
    (in_python, set(), OF_MEMORIES),
    (over_http, set(), OF_MEMORIES),
    (on_the_command_line, {"agent_id", "metadata", "scope", "session_id"}, OF_MEMORIES),
    (over_mcp, {"agent_id", "metadata", "scope", "session_id"}, OF_MEMORIES),
    (by_a_directive, {"metadata"}, OF_MEMORIES),
    (of_the_store, {*NAMES} - OF_ENTRIES.keys(), OF_ENTRIES),
    (of_the_store_over_http, {*NAMES} - OF_ENTRIES.keys(), OF_ENTRIES),
]  # fmt: skip


@pytest.mark.parametrize(
    ("interface", "refuses", "finds"), INTERFACES, ids=lambda value: getattr(value, "__name__", "")
)
def test_an_argument_is_honoured_or_refused_by_its_name(memory, middle_moment, by, interface, refuses, finds):
    assert OF_MEMORIES.keys() == {*NAMES}
    if by == "likeness" and finds is OF_MEMORIES:  # the vector of alpha is nearer
        nearest = {"limit": ({"limit": 1}, {"alpha"}), "budget_tokens": ({"budget_tokens": 110}, {"alpha"})}
        finds = OF_MEMORIES | nearest
    for name in NAMES:
        arguments, contents = (finds if name in finds else OF_MEMORIES)[name]
        arguments = {key: middle_moment if value is MOMENT else value for key, value in arguments.items()}
        answer = interface(memory, arguments)
        if name in refuses:
            assert isinstance(answer, str), (name, answer)
            assert any(key in answer for key in arguments.keys() & refuses), (name, answer)
            continue
        assert isinstance(answer, dict), (name, answer)
        assert {hit["content"].removeprefix("quagga ") for hit in answer["entries"]} == contents, name
        if name == "explain":
            assert all("parts" in hit for hit in answer["entries"]) or answer["metadata"]["parts"]
            reasons = [hit.get("reasons") for hit in answer["entries"]]
            assert all(reasons) or all(answer["metadata"]["reasons"].values())
        if name == "budget_tokens" and "metadata" in answer:
            assert answer["metadata"]["left_out"] > 0


@pytest.mark.parametrize(
    "interface", [in_python, over_http, on_the_command_line, over_mcp], ids=lambda interface: interface.__name__
)
def test_every_interface_counts_inactive_matches(memory, interface):
    memory.writer.submit_intent("p", decision(summary="quagga plan", topic="t", status="proposed", evidence=[]))

    answer = interface(memory, {})
    assert answer["inactive"]["count"] == 1
    assert answer["inactive"]["statuses"] == {"proposed": 1}
    notice = answer["inactive"]["notice"]
    assert notice.startswith("1 inactive record matches")
    assert "(1 proposed): add " in notice


def test_a_misplaced_parameter_of_ask_is_refused_with_the_corrected_call(memory):
    ask = next(tool for tool in TOOLS if tool.name == "ask")
    memory.writer.remember("p", "quagga")

    refusal_text = call(ask, ClientSession(memory, "ana"), {"name": "changes", "since": "2026-01-01", "limit": 2})
    unknown = call(ask, ClientSession(memory, "ana"), {"name": "changes", "until": "2026-01-01"})

    assert refusal_text.values["retry"] == {"name": "changes", "limit": 2, "params": {"since": "2026-01-01"}}
    assert not call(ask, ClientSession(memory, "ana"), refusal_text.values["retry"]).is_error
    assert "retry" not in unknown.values
