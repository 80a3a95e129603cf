"""The hint of a refusal names the next step of its interface: a command only where no request or tool does the same."""

import ast
import json
import re
from pathlib import Path

import pytest
from click import Context
from conftest import decision, intent

import jidomem
from jidomem.errors import JidomemError, NotFound, hint_in_python
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

TOOL = {tool.name: tool for tool in TOOLS}
STRICT = "strict = true\n"
#: Method, path, body.
REQUESTS = [
    ("POST", "/projects/p/intents", {"tpye": "fact"}),
    ("POST", "/projects/p/intents", intent(supersedes=["deadbeef"])),
    ("POST", "/projects/p/intents", intent(type="musing", confidence="certain")),
    ("POST", "/projects/p/intents", intent(asserted_in="nobody-opened")),
    ("POST", "/projects/p/intents", intent(asserted_by="nobody")),
    ("POST", "/projects/p/intents", intent(extra_triples=[["jido:spoonCount", 5]])),
    ("POST", "/projects/p/intents", intent(asserted_by="eve", type="task")),
    ("POST", "/projects/p/intents", decision(topic="index", summary="Use another")),
    ("POST", "/projects/p/intents", decision(rationale=None)),
    ("POST", "/projects/p/intents", [intent(extra_triples=[["jido:spoonCount", 5]]), intent(asserted_in="s-9")]),
    ("POST", "/projects/p/intents", "no object"),
    ("POST", "/projects/p/memories/deadbeef/revise", {"confirm": True}),
    ("POST", "/projects/p/memories/KNOWN/revise", {"invalidate": True}),
    ("POST", "/projects/p/memories/KNOWN/revise", {"asserted_by": "nobody", "confirm": True}),
    ("GET", "/projects/p/memories/deadbeef", None),
    ("GET", "/projects/p/memories/deadbeef/why", None),
    ("GET", "/projects/p/queries/open-taks", None),
    ("GET", "/projects/p/queries/zzz", None),
    ("GET", "/projects/p/queries/timeline?as_of=soon", None),
    ("GET", "/projects/q/queries/timeline", None),
    ("GET", "/projects/p/governing", None),
    ("GET", "/projects/p/sessions/nobody", None),
    ("PATCH", "/projects/p/sessions/nobody", {"status": "paused"}),
    ("PATCH", "/projects/p/sessions/closed", {"status": "paused"}),
    ("PATCH", "/projects/p/sessions/s-1", {"status": "sleeping"}),
    ("POST", "/projects/p/sessions", {"name": "s-1"}),
    ("POST", "/projects/p/sessions", {"name": "s-2", "continues": "nobody"}),
    ("POST", "/projects/p/recall", {"qeury": "x"}),
    ("POST", "/projects/p/recall", {"query": "x", "session": "nobody"}),
    ("POST", "/projects/p/sparql", "INSERT DATA { <urn:a> <urn:b> <urn:c> }"),
    ("POST", "/projects/p/conversations/nobody", {"message": "hello"}),
]
CALLS = [
    ("remember", {"txt": "x"}),
    ("remember", {"text": "x", "supersedes": ["deadbeef"]}),
    ("remember", {"text": "x", "fields": {"extra_triples": [["jido:spoonCount", 5]]}}),
    ("remember", {"text": "x", "fields": {"assigned_to": "nobody"}, "type": "task"}),
    ("remember", {"text": "x", "type": "task"}),
    ("remember", {"text": "Use another", "type": "decision", "topic": "index", "rationale": "r"}),
    ("revise", {"id": "deadbeef", "confirm": True}),
    ("revise", {"id": "KNOWN", "invalidate": True}),
    ("why", {"id": "deadbeef"}),
    ("ask", {"name": "open-taks"}),
    ("ask", {"name": "zzz"}),
    ("recall", {"query": "x", "as_of": "soon"}),
    ("recall", {"query": "x", "session": "nobody"}),
    ("briefing", {"budget_tokens": 1}),
]


MISSING = "https://jido.ai/memory/none"
#: Refusals in Python; item is the memory of the fixture, and other a proposal.
REFUSALS = {
    "no project": lambda memory, item, other: memory.ask("timeline", project="q"),
    "no query": lambda memory, item, other: memory.ask("zzz"),
    "no agent": lambda memory, item, other: memory.ask("commits-of-agent", agent="zzz"),
    "no session": lambda memory, item, other: memory.remember("x", asserted_in="s-9"),
    "no earlier session": lambda memory, item, other: memory.writer.start_session("p", "s-2", continues="s-9"),
    "no session to move": lambda memory, item, other: memory.writer.move_session("p", "s-9", status="paused"),
    "closed session": lambda memory, item, other: memory.writer.move_session("p", "closed", status="paused"),
    "same session": lambda memory, item, other: memory.writer.start_session("p", "s-1"),
    "no memory": lambda memory, item, other: memory.writer.confirm("p", MISSING),
    "no memory to read": lambda memory, item, other: memory.reader.get_memory("p", MISSING),
    "no path": lambda memory, item, other: memory.governing(),
    "no version": lambda memory, item, other: memory.reader.diff("p", "99"),
    "an update": lambda memory, item, other: memory.reader.select("p", "INSERT DATA { <urn:a> <urn:b> <urn:c> }"),
    "no term": lambda memory, item, other: memory.remember("x", extra_triples=[["jido:spoonCount", 5]]),
    "no proposal": lambda memory, item, other: memory.writer.settle("p", item, "accept"),
    "no pair": lambda memory, item, other: memory.writer.settle("p", item, "supersede", other=MISSING),
    "a reader": lambda memory, item, other: memory.remember("x", asserted_by="eve", type="task"),
    "a conflict": lambda memory, item, other: memory.writer.submit_intent(
        "p", decision(topic="index", summary="Other")
    ),
    "settled already": lambda memory, item, other: [memory.writer.settle("p", other, "reject") for _ in "12"],
    "a proposal to confirm": lambda memory, item, other: memory.writer.revise("p", other, changes={}, reason="r"),
    "withdrawn twice": lambda memory, item, other: [memory.writer.invalidate("p", item, reason="r") for _ in "12"],
    "nothing to undo": lambda memory, item, other: memory.writer.undo("p", item),
    "no pending term": lambda memory, item, other: memory.term_proposals().accept("jido:spoonCount"),
    "no memory to redact": lambda memory, item, other: memory.maintenance.plan("p", MISSING),
}


@pytest.fixture
def memory(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text(
        STRICT + '[agents.ana]\n[agents.eve]\nrole = "MemoryReader"\n[agents.architect]\n'
    )
    with jidomem.open(root, project="p", agent="ana") as memory:
        memory.writer.start_session("p", "s-1", agent="ana")
        memory.writer.start_session("p", "closed", agent="ana")
        memory.writer.move_session("p", "closed", agent="ana", status="closed")
        memory.writer.submit_intent("p", decision(topic="index", summary="Use Oxigraph", asserted_by="ana"))
        yield memory


def known_id(memory):
    return memory.reader.ask("timeline", project="p")[0]["item"].rsplit("/", 1)[1]


def hints(answer):
    """Every message and hint in an answer."""
    if isinstance(answer, list):
        return [text for each in answer for text in hints(each)]
    if not isinstance(answer, dict):
        return []
    texts = [value for name, value in answer.items() if name in ("hint", "detail", "message") and value]
    return texts + [text for value in answer.values() for text in hints(value)]


def names_command(text):
    return re.search(r"\bjidomem [a-z]|(?<![a-z])--[a-z]", text) is not None


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_hints_over_http_name_a_command_only_for_a_shell(memory, method, path, body):
    client = create_app(memory).test_client()
    body_options = (
        {"data": body, "content_type": "application/sparql-update"} if isinstance(body, str) else {"json": body}
    )

    answer = client.open(
        path.replace("KNOWN", known_id(memory)), method=method, **(body_options if body is not None else {})
    )

    texts = hints(answer.get_json(force=True))
    assert texts, answer.data
    assert [text for text in texts if names_command(text) and "in a shell" not in text] == []


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_hints_over_mcp_name_a_command_only_for_a_shell(memory, tool, arguments):
    actual = json.loads(json.dumps(arguments).replace("KNOWN", known_id(memory)))

    answer = call(TOOL[tool], ClientSessions(memory).of("eve"), actual)

    assert answer.is_error
    texts = [*hints(answer.values), *answer.words().splitlines()]
    assert [text for text in texts if names_command(text) and "in a shell" not in text] == []


def test_the_request_in_a_hint_over_http_resolves_the_refusal(memory):
    client = create_app(memory).test_client()

    refused = client.post("/projects/p/intents", json=intent(asserted_by="ana", asserted_in="s-9")).json
    request = re.fullmatch(r"open it with: POST (\S+) (.*)", refused["hint"])
    opened = client.post(request[1], json={**json.loads(request[2]), "agent": "ana"})

    assert opened.status_code == 201
    assert client.post("/projects/p/intents", json=intent(asserted_by="ana", asserted_in="s-9")).status_code == 201


def test_the_hint_for_an_unknown_memory_is_translated_for_tools_and_requests(memory):
    with pytest.raises(NotFound) as error:
        memory.writer.correct("p", "https://jido.ai/memory/none", confirm=True)

    from jidomem.serve.wire import for_requests, for_tools

    assert error.value.hint == "list them with: jidomem ask timeline"
    assert for_tools(error.value.to_dict())["hint"] == "list them with: the tool ask with name timeline"
    assert for_requests(error.value.to_dict(), "p")["hint"] == "list them with: GET /projects/p/queries/timeline"


def submit_decisions_about_file(memory, count):
    """The ids of active decisions about one file, each on a topic of its own."""
    decisions = [
        decision(topic=f"t{n}", summary=f"Run ask timeline {n}", about=["src/a.py"], asserted_by="ana")
        for n in range(count)
    ]
    return [memory.writer.submit_intent("p", each).iri.rsplit("/", 1)[1] for each in decisions]


def decision_warnings(receipt):
    return [text for text in receipt["warnings"] if "active decision" in text]


def test_the_request_in_a_warning_over_http_supersedes_the_other_decision(memory):
    (old,) = submit_decisions_about_file(memory, 1)
    client = create_app(memory).test_client()
    new = decision(topic="new", summary="Run jidomem ask timeline", about=["src/a.py"], asserted_by="ana")

    (warning,) = decision_warnings(client.post("/projects/p/intents", json=new).json)

    path, body = re.search(r"takes its place: POST (\S+) (\{.*\}); if both hold", warning).groups()
    values = {**json.loads(body), "asserted_by": "ana", "asserted_in": "s-1"}
    assert client.post(path, json=values).json["violations"][0]["field"] == "reason"
    ended = client.post(path, json={**values, "reason": "measured anew"})
    assert ended.status_code == 201, ended.json
    active = {row["summary"]: row["decision"] for row in memory.reader.ask("decisions", project="p")}
    assert "Run jidomem ask timeline" in active
    assert not any(each.endswith(old) for each in active.values())


def test_a_warning_over_mcp_names_the_tool_and_the_query_for_further_decisions(memory):
    ids = submit_decisions_about_file(memory, 5)
    arguments = {
        "text": "Run jidomem ask timeline",
        "type": "decision",
        "topic": "n",
        "rationale": "r",
        "about": ["src/a.py"],
    }

    values = call(TOOL["remember"], ClientSessions(memory).of("ana"), arguments).values

    *each, last = decision_warnings(values)
    assert all(any(f'"{one}"]}}, "reason": "SAY WHY"}}' in text for one in ids) for text in each)
    assert last.endswith('things: the tool ask with name governing and params {"file": "FILE"}')
    assert not any(names_command(text) for text in values["warnings"])


@pytest.mark.parametrize("refused", REFUSALS)
def test_hints_in_a_traceback_name_a_command_only_for_a_shell(memory, refused):
    (item,) = [row["item"] for row in memory.ask("timeline")]
    proposal = memory.writer.submit_intent("p", intent(summary="the door is red", asserted_by="ana"), propose=True)
    with pytest.raises(JidomemError) as error:
        REFUSALS[refused](memory, item, proposal.iri)

    (note,) = error.value.__notes__
    assert note.startswith("hint: ")
    assert not names_command(note) or "in a shell" in note
    for path in re.findall(r"memory((?:\.[a-z_]+)+)", note):
        value = memory
        for name in path.split(".")[1:]:
            value = getattr(value, name)


def test_every_command_in_a_text_of_the_library_has_a_call_in_python_or_is_marked_as_of_a_shell():
    verbs = re.compile(rf"(?<![\w'/-])jidomem (?:{'|'.join(cli.list_commands(Context(cli)))})\b")
    texts = [
        each.value
        for path in Path(jidomem.__file__).parent.rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and verbs.search(each.value)
    ]

    assert len(texts) > 100
    assert [
        text for text in texts if verbs.search(hint_in_python(text)) and "in a shell" not in hint_in_python(text)
    ] == []


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("open it with: jidomem agent session start s-9", 'memory.writer.start_session(project, "s-9")'),
        (
            "settle: jidomem review accept a --against b; see: x",
            'memory.writer.settle(project, "a", "accept", other="b")',
        ),
        ("jidomem review accept a, or reject", 'memory.writer.settle(project, "a", "accept")'),
        ("see: jidomem show a", 'memory.reader.why(project, "a")'),
        ('undo: jidomem edit a --undo --reason "..."', 'memory.writer.undo(project, "a", reason="...")'),
        (
            "x: jidomem edit a --set status=rejected",
            'revise(project, "a", changes={"status": "rejected"}, reason="...")',
        ),
        ("jidomem review reject a b", "in a shell, jidomem review reject a b"),
        ("jidomem ask decisions --status rejected", "in a shell, jidomem ask decisions --status rejected"),
    ],
)
def test_a_command_in_a_hint_is_translated_to_its_call_in_python(hint, expected):
    assert expected in hint_in_python(hint)
    assert JidomemError("x", hint=hint).hint == hint
