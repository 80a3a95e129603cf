"""The 17 rules of writing and of the shapes: each is applied at write and in check as its page describes."""

import re
from pathlib import Path

import pytest
from conftest import decision, intent
from writing import MEMORY, committed_triples, refusal, values_of

from jidomem.check.check import check_files, check_project
from jidomem.errors import Conflict, IntentRefused
from jidomem.rdf.vocab import TYPE, jido, local_name
from jidomem.schema import ontology

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "shapes" / "cases"
ROW = re.compile(r"^\| `(R\d\d)` \| (.+) \| .+ \| (\w+) \| (\w+) \| (.+) \|$", re.MULTILINE)
RULES = {
    number: (at_write, in_check, re.findall(r"`(\w+)`", shapes))
    for number, _, at_write, in_check, shapes in ROW.findall(
        (ROOT / "docs" / "statements" / "rules.md").read_text("utf-8")
    )
}
PREFIXES = "@prefix jido: <https://jido.ai/ontology#> . @prefix m: <https://jido.ai/memory/> .\n"
#: Data in place of the case of a shape, for rules that are not SHACL shapes.
TURTLE = {
    "TermIsDeclared": "m:a a jido:Fact ; jido:sumary 'x' .",
    "EveryReferenceExists": "m:a a jido:Fact ; jido:derivedFrom m:nobody .",
    "SupersessionHasOneEnd": "m:a a jido:Fact ; jido:supersededBy m:b , m:c . m:b a jido:Fact . m:c a jido:Fact .",
}
#: A git merge can bring two successors, one of which is active: that counts in check.
AT_WRITE_ONLY = {"ItemHasOneSuccessor"}
LEFT_OUT = [{name: None} for name in ("summary", "confidence", "asserted_by", "asserted_in", "applies_to_project")]
THING = [["jido:impactLevel", "huge"]]
#: Intents that break a rule at write or omit a filled field; OLD is a stored memory.
BROKEN = {
    "R01": [*LEFT_OUT, {"summary": "  "}, {"confidence": "sure"}, {"timestamp": "yesterday"}],
    "R02": [decision(rationale=None), decision(status="wished"), decision(extra_triples=THING)],
    "R03": [{"supersedes": ["ENDED"]}, {"iri": MEMORY + "self", "supersedes": [MEMORY + "self"]},
            {"supersedes": [MEMORY + "of-nobody"]}],
    "R04": [{"invalidates": [MEMORY + "of-nobody"]}, {"iri": MEMORY + "self", "invalidates": [MEMORY + "self"]}],
    "R05": [{"type": "task", "assigned_to": "bob"}],
    "R06": [{"type": "task"}],
    "R07": [{"type": "error", "severity": "dire"}, {"type": "error", "status": "Gone"}],
    "R08": [{"type": "root_cause"}],
    "R09": [{"type": "convention"}],
    "R10": [{"type": "assumption"}],
    "R11": [{"supersedes": ["HYPOTHESIS"]}],
    "R12": [{"type": "lesson"}],
    "R13": [{"asserted_by": "somebody-new"}],
    "R14": [{"asserted_in": "a-new-session"}],
    "R15": [{"extra_triples": [["jido:sumary", "x"]]}, {"extra_triples": [["jido:hasTaskStatus", "x"]]},
            {"type": "no_such_type"}],
    "R16": [{"evidence": [MEMORY + "nobody"]}, {"about": [MEMORY + "nobody"]}],
    "R17": [{"iri": "OLD"}],
}  # fmt: skip
AT_WRITE = [(number, fields) for number, several in BROKEN.items() for fields in several]
IN_CHECK = [
    (number, name)
    for number, (*_, names) in RULES.items()
    for name in names
    if number != "R17" and name not in AT_WRITE_ONLY
]
FILLED = {
    "R05": ["hasTaskStatus"],
    "R09": ["conventionName", "hasConventionScope", "hasEnforcementLevel"],
    "R13": ["hasRole", "hasCapability"],
    "R14": ["hasStatus", "startedAt"],
}
#: Rule -> a word of its warning.
WARNING_WORDS = {"R06": "`assigned_to`", "R08": "jido:hasRootCause", "R10": "`expires_on`", "R12": "`evidence`"}


def test_the_page_has_seventeen_rules_and_each_has_cases():  # C041
    assert [*RULES] == [f"R{number:02}" for number in range(1, 18)] == [*BROKEN]
    assert {number for number, (at_write, *_) in RULES.items() if at_write == "filled"} == FILLED.keys()
    assert {number for number, (at_write, *_) in RULES.items() if at_write == "warning"} == WARNING_WORDS.keys()


@pytest.mark.parametrize(
    ("number", "fields"), [(number, each) for number in BROKEN for each in BROKEN[number]], ids=str
)
def test_a_rule_is_applied_at_write_as_its_row_states(memory, number, fields):  # C041
    submit = memory.writer.submit_intent
    old = submit("p", intent(summary="what is there")).iri
    ended = submit("p", intent(summary="what has ended")).iri
    submit("p", intent(summary="its successor", supersedes=[ended]))
    items = {"OLD": old, "ENDED": ended, "HYPOTHESIS": submit("p", intent(type="hypothesis", summary="perhaps")).iri}

    def resolved(value):
        return [*map(resolved, value)] if isinstance(value, list) else items.get(value, value) if value else value

    proposal = {**intent(summary="a new one"), **{name: resolved(value) for name, value in fields.items()}}
    before, (at_write, *_) = committed_triples(memory), RULES[number]

    if at_write == "violation":
        assert isinstance(refusal(submit, "p", proposal), IntentRefused | Conflict)
        assert committed_triples(memory) == before
        return
    receipt = submit("p", proposal)

    assert receipt.status == "asserted"
    about = {"R13": "https://jido.ai/agents/somebody-new", "R14": "https://jido.ai/sessions/a-new-session"}
    assert all(values_of(memory, about.get(number, receipt.iri), name) for name in FILLED.get(number, ()))
    assert any(WARNING_WORDS.get(number, "") in warning for warning in receipt.warnings) == (number in WARNING_WORDS)


@pytest.mark.parametrize(("number", "name"), IN_CHECK)
def test_a_rule_is_applied_in_check_as_its_row_states(number, name):  # C041
    text = PREFIXES + TURTLE[name] if name in TURTLE else (CASES / name / "violates.ttl").read_text("utf-8")

    problems = check_files([("memory.ttl", text.encode())], ontology.load()).problems

    severities = {problem.severity for problem in problems if problem.name == name}
    assert severities == {RULES[number][1]}


def test_an_intent_only_adds_triples_and_a_changed_commit_is_reported_by_check(memory):  # C041
    first = memory.writer.submit_intent("p", intent()).iri
    before = committed_triples(memory)

    second = memory.writer.submit_intent("p", intent(summary="another", supersedes=[first])).iri

    added = committed_triples(memory) - before
    assert before < committed_triples(memory)
    assert first != second
    assert [(p, o) for s, p, o in added if s == f"<{first}>"] == [(jido("supersededBy"), f"<{second}>")]
    properties = {local_name(p) for s, p, _ in added if s == f"<{second}>"}
    assert {"hasTimestamp", "assertedBy", "assertedIn", "supersedes", "recordedAt", local_name(TYPE)} <= properties
    (path, _) = sorted((memory.settings.root / "projects").rglob("*.ttl"))
    path.write_bytes(path.read_bytes().replace(b"Rust 1.80", b"Rust 1.81"))
    problems = check_project(memory.follower, memory.schema, "p").problems
    assert {problem.severity for problem in problems if problem.name == "JournalIsIntact"} == {RULES["R17"][1]}
