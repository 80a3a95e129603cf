"""The hints of refusals over MCP, applied literally: the corrected field is not refused again."""

import json
import re

import pytest

import jidomem
from jidomem.rdf.vocab import GUIDE_TYPES
from jidomem.records.intent import FIELD_ALIASES
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS

TOOL = {tool.name: tool for tool in TOOLS}
#: Names of fields in trackers, other memory systems and mails.
WORDS = (
    *(name for name in FIELD_ALIASES if name != "due"),
    *("resolution", "solution", "status", "severity", "assigned_to", "alternatives"),
    *("must", "required", "deadline_date", "comment", "headline", "scope_of", "reasons", "summery", "xyzzy", "color"),
)  # fmt: skip
#: A valid value of each field.
VALUES = {
    "about": ["a.py"], "alternatives": ["none"], "confidence": "low", "enforcement_level": "Strict",
    "evidence": ["a log"], "expires_on": "2036-01-01", "severity": "high", "type": "fact",
    "convention_scope": "ProjectScope", "iri": "https://example.org/tea", "supersedes": [], "tracked_by": "https://example.org/1",
}  # fmt: skip
STATUS = {"task": "Completed", "error": "Resolved", "decision": "accepted"}


@pytest.fixture
def answer(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember("the quota is ten", topic="quota")
        session = ClientSession(memory, "ana")
        session.is_briefed = True
        yield lambda name, /, **given: call(TOOL[name], session, given)


def fields_refused(answer):
    """The fields that a call was refused for; none if it was accepted."""
    return {fault["field"] for fault in answer.values.get("violations", ())}


def corrected_call(arguments, holder, refusal, kind):
    """The call corrected by its refusal, and the field that is new in it; None where the field is left out."""
    if "retry" in refusal.values:
        return refusal.values["retry"], None
    (fault,) = [each for each in refusal.values["violations"] if each["field"] in str(arguments)]
    others = {name: value for name, value in arguments.items() if name != fault["field"]}
    others = {
        **others,
        holder: {name: each for name, each in arguments.get(holder, {}).items() if name != fault["field"]},
    }
    match = re.search(r"(?:give|write) `(\w+)`(?: in `(\w+)`)?", f"{fault['hint']} {refusal.values['hint']}")
    field = fault["nearest"] or (match[1] if match else None)
    if field is None:
        return others, None
    value = STATUS[kind] if field == "status" else VALUES.get(field, "some text")
    if field in TOOL["remember" if holder == "fields" else "revise"].takes:
        return {**others, field: value}, field
    return {**others, holder: {**others[holder], field: value}}, field


def given_fields(kind, holder):
    """Yield each word with fields that have it, beside the text or in *holder*: both over the kinds."""
    for number, word in enumerate(WORDS, [*GUIDE_TYPES].index(kind)):
        fields = {word: "some text"}
        yield word, {holder: fields} if number % 2 else fields


@pytest.mark.parametrize("kind", GUIDE_TYPES)
def test_a_field_named_by_a_hint_is_valid_for_the_kind(answer, kind):
    needed = {"rationale": "r"} if kind == "decision" else {}
    for word, fields in given_fields(kind, "fields"):
        arguments = {"text": "tea is hot", "type": kind, **needed, **fields, "dry_run": True}
        if word in TOOL["remember"].takes or not (refusal := answer("remember", **arguments)).is_error:
            continue
        corrected, field = corrected_call(arguments, "fields", refusal, kind)
        assert field not in fields_refused(answer("remember", **corrected)), (word, refusal.words())


@pytest.mark.parametrize("kind", GUIDE_TYPES)
def test_a_change_named_by_a_hint_is_valid_for_the_kind(answer, kind):
    needed = {"rationale": "r"} if kind == "decision" else {}
    item = answer("remember", text="tea is hot", type=kind, **needed).values["iri"]
    for word, fields in given_fields(kind, "set"):
        arguments = {"id": item, **fields, "dry_run": True}
        if word in TOOL["revise"].takes or not (refusal := answer("revise", **arguments)).is_error:
            continue
        corrected, field = corrected_call(arguments, "set", refusal, kind)
        assert field not in fields_refused(answer("revise", **corrected)), (word, refusal.words())


@pytest.mark.parametrize(
    ("tool", "arguments", "retry"),
    [
        ("remember", {"content": "x"}, {"text": "x"}),
        ("remember", {"text": "x", "subject": "tea"}, {"text": "x", "topic": "tea"}),
        (
            "remember",
            {"text": "x", "type": "convention", "strict": True},
            {"text": "x", "type": "convention", "confidence": "medium", "fields": {"enforcement_level": "Strict"}},
        ),
        ("recall", {"query": "x", "top_k": 3}, {"query": "x", "limit": 3}),
        (
            "ask",
            {"name": "facts-about", "params": {"topic": "quota", "limit": 3}},
            {"name": "facts-about", "params": {"topic": "quota"}, "limit": 3},
        ),
    ],
)
def test_an_argument_with_a_common_other_name_is_refused_with_the_corrected_call(answer, tool, arguments, retry):
    assert answer(tool, **arguments).values["retry"] == retry
    assert not answer(tool, **retry).is_error


def test_a_status_outside_the_changes_is_refused_with_the_corrected_call(answer):
    item = answer("remember", text="ship it", type="task").values["iri"]

    retry = answer("revise", id=item, status="Completed").values["retry"]

    assert retry == {"id": item, "set": {"status": "Completed"}}
    assert not answer("revise", **retry).is_error


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("remember", {"text": "x", "type": "task", "fields": {"priority": "high"}}, "a task has no severity"),
        ("recall", {"query": "x", "kinds": ["notes"]}, "there are fact, "),
        ("ask", {"name": "facts-about", "params": {"subject": "x"}}, "did you mean 'topic'?"),
        ("ask", {"name": "facts-about", "project": "p", "params": {"topic": "x"}}, "leave out project"),
    ],
)
def test_an_unknown_name_is_refused_with_the_alternatives(answer, tool, arguments, words):
    assert words in answer(tool, **arguments).text


def test_an_empty_successor_is_refused_as_the_supersede_argument(answer):
    item = answer("remember", text="tea is hot").values["iri"]

    assert "give `supersede`" in answer("revise", id=item, supersede="").text


def test_the_project_is_accepted_as_a_parameter_of_a_query_and_not_listed_in_the_playbook(answer):
    arguments = {"name": "facts-about", "params": {"topic": "quota", "project": "p"}}
    assert len(answer("ask", **arguments).values["rows"]) == 1
    assert answer("ask", name="facts-about", params={"topic": "quota", "project": "q"}).is_error
    assert answer("ask").values["questions"]["facts-about"].endswith("? (topic:string)")


def test_the_definition_of_remember_names_the_enforcement_level():
    assert "enforcement_level" in json.dumps(TOOL["remember"].input_schema())
