"""A refusal lists all faults of an intent, in the words of the interface that received it."""

import json
import re

import pytest
from click.testing import CliRunner
from conftest import intent

import jidomem
from jidomem.errors import IntentRefused, InvalidRequest
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

FAULTY = intent(type="musing", confidence="certain", valid_from="soon", asserted_by=None, applies_to_project="q")
FIELDS = {"type", "confidence", "valid_from", "asserted_by", "applies_to_project"}
TOOL = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def root(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember("the first of all")
    return tmp_path / "root"


@pytest.fixture
def session(root):
    with jidomem.open(root, project="p") as memory:
        yield ClientSessions(memory).of("eve")


def run(root, *words, text=None):
    return CliRunner().invoke(cli, ["--root", str(root), "--project", "p", *words, "--agent", "eve"], input=text)


def fields(violations):
    return {violation["field"] for violation in violations}


def test_python_reports_five_faults_of_an_intent_at_once(root):
    with jidomem.open(root, project="p") as memory, pytest.raises(IntentRefused) as refused:
        memory.writer.submit_intent("p", FAULTY)

    assert {violation.field for violation in refused.value.violations} == FIELDS


def test_http_reports_five_faults_of_an_intent_at_once(root):
    with jidomem.open(root, project="p") as memory:
        answer = create_app(memory).test_client().post("/projects/p/intents", json=FAULTY)

    assert (answer.status_code, fields(answer.json["violations"])) == (422, FIELDS)
    assert all(violation["hint"] for violation in answer.json["violations"])


def test_the_command_line_reports_five_faults_of_an_intent_at_once(root):
    as_json = CliRunner().invoke(cli, ["--root", str(root), "submit", "--json"], input=json.dumps(FAULTY))
    as_text = CliRunner().invoke(cli, ["--root", str(root), "submit"], input=json.dumps(FAULTY))

    assert (as_json.exit_code, fields(json.loads(as_json.stdout)["violations"])) == (3, FIELDS)
    assert all(f"  {name}" in as_text.stderr for name in ("confidence", "valid_from", "asserted_by"))
    assert "give `asserted_by`: the name of the agent that asserts it" in as_text.stderr
    assert "allowed: high, medium, low" in as_text.stderr


def test_mcp_reports_wrong_arguments_and_faults_of_the_intent_together(session):
    arguments = {"text": "Ship", "type": "musing", "confidence": "certain", "about": "a.py", "colour": "red",
             "fields": {"valid_from": "soon"}}  # fmt: skip

    answer = call(TOOL["remember"], session, arguments)

    assert answer.is_error
    assert fields(answer.values["violations"]) == {"about", "colour", "type", "confidence", "valid_from"}
    assert "about is not of type array" in answer.words()
    assert "confidence is low, medium, high or a number from 0 to 1" in answer.words()


def test_mcp_offers_a_retry_for_misplaced_arguments_alone(session):
    answer = call(TOOL["remember"], session, {"summary": "Ship", "severity": "high", "type": "error"})
    assert answer.values["retry"] == {"text": "Ship", "type": "error", "fields": {"severity": "high"}}
    assert call(TOOL["remember"], session, answer.values["retry"]).is_error is False

    invalid = call(TOOL["remember"], session, {"text": "Ship", "severity": "high", "type": "musing"})
    assert "retry" not in invalid.values
    assert fields(invalid.values["violations"]) == {"severity", "type"}


def test_mcp_hints_name_its_own_arguments(session):
    misspelt = call(TOOL["remember"], session, {"text": "Ship", "type": "fact", "confidence": "hgih"})
    assert misspelt.values["hint"] == "call remember with the arguments in `retry`"
    assert call(TOOL["remember"], session, misspelt.values["retry"]).is_error is False

    misplaced = call(
        TOOL["remember"], session, {"text": "Build", "asserted_by": "eve", "severity": "high", "colour": "red"}
    )
    hints = {each["field"]: each["hint"] for each in misplaced.values["violations"]}
    assert hints["asserted_by"] == "leave out asserted_by: the server sets it"
    assert hints["severity"] == "give `severity` in `fields`"
    assert "in `fields` in `fields`" not in misplaced.words()


def test_a_status_argument_of_mcp_is_refused_with_the_allowed_values(session):
    assert call(TOOL["ask"], session, {"name": "decisions", "status": "accepted"}).is_error is False

    answer = call(TOOL["ask"], session, {"name": "decisions", "status": "agreed"})

    assert (answer.values["code"], answer.values["violations"][0]["field"]) == ("invalid_argument", "status")
    assert "accepted" in answer.values["violations"][0]["allowed"]


def test_a_missing_reason_is_requested_in_the_words_of_each_interface(root, session):
    with jidomem.open(root, project="p", agent="eve") as memory:
        first = memory.reader.ask("timeline", project="p")[0]["item"]
        with pytest.raises(IntentRefused) as refused:
            memory.writer.submit_intent("p", intent(asserted_by="eve", summary="other", supersedes=[first]))
        http = create_app(memory).test_client().post(
            "/projects/p/intents", json=intent(asserted_by="eve", summary="other", supersedes=[first])
        )  # fmt: skip
    mcp = call(TOOL["remember"], session, {"text": "other", "supersedes": [first]})
    remembered = run(root, "remember", "other", "--supersedes", first)
    revised = run(root, "edit", first, "--supersede", "other")
    withdrawn = run(root, "edit", first, "--invalidate")

    assert refused.value.hint == http.json["hint"] == "give `reason`: one sentence that says why"
    assert mcp.values["hint"] == "give `rationale`: one sentence that says why"
    assert [result.stderr.splitlines()[-1] for result in (remembered, revised, withdrawn)] == [
        "hint: give --reason TEXT", "hint: give --reason TEXT", "hint: give --reason: why it is wrong",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ["access", "policy", "set", "deny", "--kind", "fact", "--about", "."],
            "hint: leave out --about for a rule on all places",
        ),
        (["edit", "ITEM"], "hint: give one of --supersede, --invalidate, --confirm and --undo, or fields to change"),
    ],
)
def test_hints_of_the_command_line_name_its_options_alone(root, words, hint):
    with jidomem.open(root, project="p") as memory:
        first = memory.reader.ask("timeline", project="p")[0]["item"]

    refused = run(root, *(first if word == "ITEM" else word for word in words))

    assert refused.stderr.splitlines()[-1] == hint
    assert (
        json.loads(run(root, *(first if word == "ITEM" else word for word in words), "--json").stdout)["hint"] in hint
    )


DATED = (["ask", "facts"], ["ask", "facts"], ["recall", "store"], ["status"], ["journal", "log"], ["governing", "a.py"],
         ["agent", "briefing"], ["ask", "--sparql", "ASK {}"], ["root", "export"], ["journal", "diff"])  # fmt: skip


@pytest.mark.parametrize("words", DATED, ids=" ".join)
def test_a_date_in_words_is_refused_with_valid_options(root, words):
    def as_of(*option):
        return CliRunner().invoke(cli, ["--root", str(root), "--project", "p", *words, *option])

    refused = as_of("--as-of", "last Tuesday")

    assert (refused.exit_code, "as_of='last Tuesday' is not a date or time" in refused.stderr) == (2, True)
    pasted = re.findall(r"(--as-of) ([^,\s]+)", refused.stderr)
    assert [moment for _, moment in pasted] == ["2026-11-17", "2026-11-17T09:00:00Z", "2026-11-17T10:30+01:00"]
    for option in pasted:
        assert as_of(*option).exit_code == 0


def test_a_date_in_words_is_refused_with_one_hint_by_every_other_interface(root, session):
    hint = "give one of: `as_of` 2026-11-17, `as_of` 2026-11-17T09:00:00Z, `as_of` 2026-11-17T10:30+01:00"
    with pytest.raises(InvalidRequest) as refusal:
        session.memory.reader.ask("facts", project="p", as_of="last Tuesday")
    client = create_app(session.memory).test_client()
    answers = [
        client.get(f"/projects/p/{path}as_of=last+Tuesday").json
        for path in ("queries/facts?", "briefing?", "governing?file=a.py&", "memories/deadbeef?")
    ]
    page = client.get("/ui/p/timeline", query_string={"as_of": "last Tuesday"})
    answer = call(TOOL["ask"], session, {"name": "facts", "as_of": "last Tuesday"})

    assert refusal.value.hint == hint
    assert [each["hint"] for each in answers] == [hint] * len(answers)
    assert answer.values["hint"] == hint
    assert (page.status_code, "2026-11-17T09:00:00Z" in page.text) == (400, True)
