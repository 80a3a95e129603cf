"""First mistakes of an agent: each is corrected from its refusal, in one round."""

import json

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.errors import JidomemError
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

KNOWN = "https://jido.ai/memory/0197a1b2-0000-7000-8000-0000000000aa"
TOOL = {tool.name: tool for tool in TOOLS}
#: The invalid fields, a word of the refusal, and the corrected fields.
MISTAKES = {
    "a type of another system": ({"type": "note"}, "fact", {"type": "fact"}),
    "a misspelt type": ({"type": "desicion", "rationale": "r"}, "decision", {"type": "decision", "rationale": "r"}),
    "a decision without a reason": ({"type": "decision"}, "rationale", {"type": "decision", "rationale": "r"}),
    "a text for a list": ({"evidence": "a log"}, "evidence", {"evidence": ["a log"]}),
    "a file for a list": ({"about": "src/a.py"}, "about", {"about": ["src/a.py"]}),
    "a share in percent": ({"confidence": "90%"}, "0 to 1", {"confidence": 0.9}),
    "a share above one": ({"confidence": 90}, "0 to 1", {"confidence": 0.9}),
    "a status of everyday speech": (
        {"type": "task", "status": "finished off"}, "Completed", {"type": "task", "status": "Completed"},
    ),
    "a status of a fact": ({"status": "Completed"}, "task", {"type": "task", "status": "Completed"}),
    "a severity of a tracker": ({"type": "error", "severity": "blocker"}, "critical",
                                {"type": "error", "severity": "critical"}),
    "tags": ({"tags": "store"}, "topic", {"topic": "store"}),
    "a date in words": ({"expires_on": "tomorrow"}, "2026-11-21T08:00:00Z", {"expires_on": "2036-11-21T08:00:00Z"}),
    "an id that is unknown": ({"supersedes": ["deadbeef"]}, "characters of its id", {}),
    "an IRI cut to its id": ({"supersedes": ["https://jido.ai/memory/0000aa"]}, KNOWN,
                             {"supersedes": [KNOWN], "reason": "r"}),
    "a list for a text": ({"topic": ["a", "b"]}, "topic", {"topic": "a"}),
    "an object as evidence": ({"evidence": [{"url": "https://example.org"}]}, "evidence",
                              {"evidence": ["https://example.org"]}),
    "a triple that is none": ({"extra_triples": ["jido:topic x"]}, "[predicate, object]",
                              {"extra_triples": [["jido:topic", "x"]]}),
    "a property without a prefix": ({"extra_triples": [["owner", "x"]]}, "jido:topic",
                                    {"extra_triples": [["https://example.org/owner", "x"]]}),
    "a ticket for a URL": ({"tracked_by": "GH-12"}, "https://", {"tracked_by": "https://example.org/12"}),
    "a scope of one word": ({"type": "convention", "convention_scope": "repo"}, "ProjectScope",
                            {"type": "convention", "convention_scope": "ProjectScope"}),
    "an end before the beginning": ({"valid_from": "2036-02-01", "valid_until": "2036-01-01"}, "valid_until",
                                    {"valid_from": "2036-01-01", "valid_until": "2036-02-01"}),
}  # fmt: skip


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.writer.submit_intent("p", intent(iri=KNOWN, summary="the port is 80"))
        yield memory


def by_python(memory, fields):
    try:
        memory.remember("tea is hot", dry_run=True, **fields)
    except JidomemError as error:
        return json.dumps(error.to_dict(), ensure_ascii=False)
    return None


def by_command_line(memory, fields):
    words = ["--root", memory.settings.place, "--project", "p", "submit", "--dry-run"]
    result = CliRunner().invoke(cli, words, input=json.dumps(intent(summary="tea is hot") | fields))
    return result.stderr if result.exit_code else None


def by_http(memory, fields):
    values = intent(summary="tea is hot") | fields
    answer = create_app(memory).test_client().post("/projects/p/intents?dry_run=1", json=values)
    return None if answer.status_code < 300 else answer.text


def by_mcp(memory, fields):
    own = {name: value for name, value in fields.items() if name in TOOL["remember"].takes}
    rest = {name: value for name, value in fields.items() if name not in own}
    arguments = {"text": "tea is hot", **own, **({"fields": rest} if rest else {}), "dry_run": True}
    answer = call(TOOL["remember"], ClientSessions(memory).of("eve"), arguments)
    return answer.words() if answer.is_error else None


@pytest.mark.parametrize("submit", [by_python, by_command_line, by_http, by_mcp])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_first_mistake_is_corrected_from_its_refusal_alone(memory, mistake, submit):
    invalid, word, corrected = MISTAKES[mistake]

    refusal = submit(memory, invalid)

    assert refusal is not None
    assert word in refusal
    assert submit(memory, corrected) is None


def test_the_hint_of_a_wrong_value_lists_the_allowed_values(memory):
    with pytest.raises(JidomemError) as refusal:
        memory.remember("x", type="error", severity="blocker")

    assert refusal.value.hint == "set `severity` to one of: low, medium, high, critical"
