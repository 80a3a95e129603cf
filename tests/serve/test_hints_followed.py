"""The hints of refusals over MCP, followed to the letter: the field that was put right is not refused again."""

import json
import re

import pytest

import jidomem
from jidomem.rdf.vocab import GUIDE_TYPES
from jidomem.records.intent import FIELD_ALIASES
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS

TOOL = {tool.name: tool for tool in TOOLS}
#: Names that agents give to fields, by the word for them in trackers, other memory systems and mails.
WORDS = (
    *FIELD_ALIASES, *("resolution", "solution", "status", "severity", "assigned_to", "alternatives"),
    *("must", "required", "deadline_date", "comment", "headline", "scope_of", "reasons", "summery", "xyzzy", "color"),
)  # fmt: skip
#: A value that each field takes.
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


def followed(given, holder, refusal, kind):
    """The call put right by its refusal, and the field that is new in it; None where the field is to be left out."""
    if "retry" in refusal.values:
        return refusal.values["retry"], None
    (fault,) = [each for each in refusal.values["violations"] if each["field"] == "WORD" or each["field"] in str(given)]
    rest = {name: value for name, value in given.items() if name != fault["field"]}
    rest = {**rest, holder: {name: each for name, each in given.get(holder, {}).items() if name != fault["field"]}}
    named = re.search(r"(?:give|write) `(\w+)`(?: in `(\w+)`)?", f"{fault['hint']} {refusal.values['hint']}")
    field = fault["nearest"] or (named[1] if named else None)
    if field is None:
        return rest, None
    value = STATUS[kind] if field == "status" else VALUES.get(field, "some text")
    if field in TOOL["remember" if holder == "fields" else "revise"].takes:
        return {**rest, field: value}, field
    return {**rest, holder: {**rest[holder], field: value}}, field


@pytest.mark.parametrize("kind", GUIDE_TYPES)
def test_a_field_that_a_hint_names_is_one_of_the_kind(answer, kind):
    needed = {"rationale": "r"} if kind == "decision" else {}
    for word in WORDS:
        for place in ({word: "some text"}, {"fields": {word: "some text"}}):
            given = {"text": "tea is hot", "type": kind, **needed, **place, "dry_run": True}
            if word in TOOL["remember"].takes or not (refusal := answer("remember", **given)).is_error:
                continue
            again, field = followed(given, "fields", refusal, kind)
            assert field not in fields_refused(answer("remember", **again)), (word, refusal.words())


@pytest.mark.parametrize("kind", GUIDE_TYPES)
def test_a_change_that_a_hint_names_is_one_of_the_kind(answer, kind):
    needed = {"rationale": "r"} if kind == "decision" else {}
    item = answer("remember", text="tea is hot", type=kind, **needed).values["iri"]
    for word in WORDS:
        for place in ({word: "some text"}, {"set": {word: "some text"}}):
            given = {"id": item, **place, "dry_run": True}
            if word in TOOL["revise"].takes or not (refusal := answer("revise", **given)).is_error:
                continue
            again, field = followed(given, "set", refusal, kind)
            assert field not in fields_refused(answer("revise", **again)), (word, refusal.words())


@pytest.mark.parametrize(
    ("tool", "given", "retry"),
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
def test_an_argument_by_a_name_that_agents_give_it_is_answered_with_the_call(answer, tool, given, retry):
    assert answer(tool, **given).values["retry"] == retry
    assert not answer(tool, **retry).is_error


def test_a_status_beside_the_changes_is_answered_with_the_call_that_sets_it(answer):
    item = answer("remember", text="ship it", type="task").values["iri"]

    retry = answer("revise", id=item, status="Completed").values["retry"]

    assert retry == {"id": item, "set": {"status": "Completed"}}
    assert not answer("revise", **retry).is_error


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("remember", {"text": "x", "type": "task", "fields": {"priority": "high"}}, "a task has no severity"),
        ("recall", {"query": "x", "kinds": ["notes"]}, "there are fact, "),
        ("ask", {"name": "facts-about", "params": {"subject": "x"}}, "did you mean 'topic'?"),
        ("ask", {"name": "facts-about", "project": "p", "params": {"topic": "x"}}, "leave out project"),
    ],
)
def test_a_name_without_a_place_is_answered_with_what_there_is(answer, tool, given, words):
    assert words in answer(tool, **given).text


def test_an_empty_successor_is_to_be_given_as_the_successor(answer):
    item = answer("remember", text="tea is hot").values["iri"]

    assert "give `supersede`" in answer("revise", id=item, supersede="").text


def test_the_project_may_be_given_to_a_question_and_is_no_parameter_in_the_playbook(answer):
    asked = {"name": "facts-about", "params": {"topic": "quota", "project": "p"}}
    assert len(answer("ask", **asked).values["rows"]) == 1
    assert answer("ask", name="facts-about", params={"topic": "quota", "project": "q"}).is_error
    assert answer("ask").values["questions"]["facts-about"].endswith("? (topic:string)")


def test_the_field_of_a_binding_convention_is_in_the_definition_of_the_tool():
    assert "enforcement_level" in json.dumps(TOOL["remember"].input_schema())
