"""Whatever may be asked of recall is honoured at every door that recalls, or refused there by its name."""

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
from jidomem.records.recall import Narrowing, RecallRequest
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

REQUEST = {one.name for one in fields(RecallRequest)} - {"query"}
THEN = object()
ALL = {"alpha", "beta", "new"}
#: What is asked by name -> what is asked, and what is found then.
OF_MEMORIES = {
    "limit": ({"limit": 1}, {"beta"}),
    "kinds": ({"kinds": ["decision"]}, {"new"}),
    "about": ({"about": ["src/a.py"], "limit": 1}, {"alpha"}),
    "agent": ({"agent": "ana"}, {"alpha"}),
    "session": ({"session": "s-2"}, {"beta", "new"}),
    "since": ({"since": THEN}, {"new"}),
    "until": ({"until": THEN}, {"alpha", "beta"}),
    "as_of": ({"as_of": THEN}, {"alpha", "beta"}),
    "valid_at": ({"valid_at": "2026-12-24"}, {"beta", "new"}),
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
    "since": ({"session_id": "s-9", "since": THEN}, {"of s-9"}),
    "until": ({"session_id": "s-9", "until": THEN}, {"of ana"}),
    "as_of": ({"session_id": "s-9", "as_of": THEN}, {"of ana"}),
    "budget_tokens": ({"session_id": "s-9", "budget_tokens": 5}, {"of ana"}),
    "explain": ({"explain": True}, {"of ana"}),
}
NAMES = sorted(REQUEST | {*Narrowing.__slots__})


@pytest.fixture
def memory(tmp_path, monkeypatch, by):
    monkeypatch.chdir(tmp_path)
    sources = fixed_sources()
    with jidomem.open(tmp_path / ".jidomem", project="p", agent="ana", sources=sources) as opened:
        opened.embeds_for = 60.0
        opened.client = create_app(opened).test_client()
        yield opened


@pytest.fixture
def then(memory):
    """The moment between the first and the last that was kept."""

    def keep(text, agent, **fields):
        memory.entries.write(WriteRequest(Entry(agent_id=agent, content=f"quagga {text}", **fields)))

    submit = memory.writer.submit_intent
    submit("p", intent(summary="quagga alpha", asserted_by="ana", asserted_in="s-1", about=["src/a.py"],
                       valid_until="2026-12-01", evidence=[]))  # fmt: skip
    submit("p", intent(summary="quagga beta", asserted_by="ben", asserted_in="s-2", evidence=[]))
    keep("of ana", "ana")
    keep("of ben", "ben", metadata={"namespace": "acme"})
    moment = memory.now()
    keep("of s-9", "ana", session_id="s-9")
    old = submit("p", decision(summary="quagga old", asserted_by="ben", asserted_in="s-2", topic="t", evidence=[]))
    submit("p", decision(summary="quagga new", asserted_by="ben", asserted_in="s-2", topic="t", supersedes=[old.iri],
                         evidence=[], confidence="high"))  # fmt: skip
    return moment


def refused(error):
    """A refusal as every door shows it."""
    return f"{error['detail']} {error['hint']}"


def in_python(memory, asked):
    try:
        return memory.recall("quagga", **asked).to_dict()
    except JidomemError as error:
        return refused(error.to_dict())


def on_the_command_line(memory, asked):
    args = []
    for name, value in asked.items():
        option = "--kind" if name == "kinds" else f"--{name.replace('_', '-')}"
        args += [option] if value is True else [part for one in ([value] if isinstance(value, str | int) else value)
                                                for part in (option, str(one))]  # fmt: skip
    result = CliRunner().invoke(cli, ["recall", "quagga", "--project", "p", "--json", *args])
    told = f"{result.stdout}{result.stderr}"
    return json.loads(result.stdout) if result.exit_code == 0 else told.replace("-", "_")


def over_http(memory, asked):
    answer = memory.client.post("/projects/p/recall", json={"query": "quagga", **asked})
    return answer.json if answer.status_code == 200 else refused(answer.json)


def over_mcp(memory, asked):
    told = call(
        next(tool for tool in TOOLS if tool.name == "recall"),
        ClientSession(memory, "ana"),
        {"query": "quagga", **asked},
    )
    return refused(told.values) if told.is_error else told.values


def by_a_directive(memory, asked):
    given = {"top_k" if name == "limit" else name: value for name, value in asked.items()}
    query = MemoryQuery(query={"text": "quagga", **given}, provider="graph")
    signal = execute_directive(query, memory.providers())
    return {"entries": [row["value"] for row in signal.data["result"]]} if signal.ok else refused(signal.data["reason"])


def of_the_store(memory, asked):
    request = {name: value for name, value in asked.items() if name in REQUEST}
    opts = {name: value for name, value in asked.items() if name not in REQUEST}
    try:
        return memory.entries.recall(RecallRequest(**{"agent_id": "ana", "query": "quagga", **request}), opts).to_dict()
    except JidomemError as error:
        return refused(error.to_dict())


def of_the_store_over_http(memory, asked):
    request = {name: value for name, value in asked.items() if name in REQUEST}
    opts = {name: json.dumps(value).strip('"') for name, value in asked.items() if name not in REQUEST}
    body = {"agent_id": "ana", "query": "quagga", **request}
    answer = memory.client.post("/projects/p/entries/recall", json=body, query_string=opts)
    return answer.json if answer.status_code == 200 else refused(answer.json)


#: Each door, what of what may be asked it refuses, and what is found by the rest.
DOORS = [
    (in_python, set(), OF_MEMORIES),
    (over_http, set(), OF_MEMORIES),
    (on_the_command_line, {"agent_id", "metadata", "scope", "session_id"}, OF_MEMORIES),
    (over_mcp, {"agent_id", "metadata", "scope", "session_id"}, OF_MEMORIES),
    (by_a_directive, {"metadata"}, OF_MEMORIES),
    (of_the_store, {*NAMES} - OF_ENTRIES.keys(), OF_ENTRIES),
    (of_the_store_over_http, {*NAMES} - OF_ENTRIES.keys(), OF_ENTRIES),
]  # fmt: skip


@pytest.mark.parametrize(("door", "refuses", "finds"), DOORS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_may_be_asked_is_honoured_or_refused_by_its_name(memory, then, by, door, refuses, finds):
    assert OF_MEMORIES.keys() == {*NAMES}
    if by == "likeness" and finds is OF_MEMORIES:  # the vector of alpha is nearer
        nearest = {name: (OF_MEMORIES[name][0], {"alpha"}) for name in ("limit", "budget_tokens")}
        finds = OF_MEMORIES | nearest
    for name in NAMES:
        asked, contents = (finds if name in finds else OF_MEMORIES)[name]
        asked = {key: then if value is THEN else value for key, value in asked.items()}
        told = door(memory, asked)
        if name in refuses:
            assert isinstance(told, str), (name, told)
            assert any(key in told for key in asked.keys() & refuses), (name, told)
            continue
        assert isinstance(told, dict), (name, told)
        assert {hit["content"].removeprefix("quagga ") for hit in told["entries"]} == contents, name
        if name == "explain":
            assert all("parts" in hit for hit in told["entries"]) or told["metadata"]["parts"]
            given = [hit.get("reasons") for hit in told["entries"]]
            assert all(given) or all(told["metadata"]["reasons"].values())
        if name == "budget_tokens" and "metadata" in told:
            assert told["metadata"]["left_out"] > 0


@pytest.mark.parametrize("door", [in_python, over_http, on_the_command_line, over_mcp], ids=lambda door: door.__name__)
def test_every_door_that_answers_says_how_many_matches_are_not_active(memory, door):
    memory.writer.submit_intent("p", decision(summary="quagga plan", topic="t", status="proposed", evidence=[]))

    told = door(memory, {})
    assert told["inactive"]["count"] == 1
    assert told["inactive"]["statuses"] == {"proposed": 1}
    notice = told["inactive"]["notice"]
    assert notice.startswith("1 inactive record matches")
    assert "(1 proposed): add " in notice


def test_a_parameter_of_a_question_beside_params_is_refused_with_the_call_that_gives_it_in_params(memory):
    ask = next(tool for tool in TOOLS if tool.name == "ask")
    memory.writer.remember("p", "quagga")

    refused = call(ask, ClientSession(memory, "ana"), {"name": "changes", "since": "2026-01-01", "limit": 2})
    unknown = call(ask, ClientSession(memory, "ana"), {"name": "changes", "until": "2026-01-01"})

    assert refused.values["retry"] == {"name": "changes", "limit": 2, "params": {"since": "2026-01-01"}}
    assert not call(ask, ClientSession(memory, "ana"), refused.values["retry"]).is_error
    assert "retry" not in unknown.values
