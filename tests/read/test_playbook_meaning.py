"""The 23 queries of the playbook by meaning: each finds exactly the memories that meet its condition."""

from functools import partial

import pytest
from reader_world import new_index, reader_of, shortened, triples, world_index
from test_playbook import NUMBERED

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.rdf.vocab import graph_iri
from jidomem.read.memory_detail import load_memory

WHEN = '"2026-01-01T00:00:00Z"^^xsd:dateTime'
RECORDED = f"jido:recordedAt {WHEN} ; jido:hasAssertionStatus jido:Asserted"
OF = f"jido:appliesToProject p:demo ; {RECORDED}"
OTHER = f"jido:appliesToProject p:other ; {RECORDED}"


def item(name, kind, statements="", of=OF):
    return f'm:{name} a jido:{kind} ; {of} ; jido:summary "{name}" {"; " + statements if statements else ""} .\n'


#: Superseded, withdrawn, and in another project: no query of active memories finds them.
def excluded(name, kind, statements=""):
    ends = f"jido:supersededBy m:{name}-next", "jido:invalidatedBy m:marker"
    every = [item(f"{name}-old{n}", kind, f"{statements} ; {end}" if statements else end) for n, end in enumerate(ends)]
    return "".join(every) + item(f"{name}-elsewhere", kind, statements, OTHER)


SURE, LEVEL = "jido:hasConfidence jido:High", "jido:hasEnforcementLevel jido:"
NAMED = 'jido:conventionName "n" ; jido:hasEnforcementLevel jido:'
#: Query -> the statements that meet its condition or miss it in one point, and its rows in the playbook's columns.
MEANING = {
    "active-decisions": (
        item("yes", "ArchitecturalDecision") + item("below", "Decision") + excluded("a", "ArchitecturalDecision")
        + item("next", "ImplementationDecision")
        + item("no", "ArchitecturalDecision", 'jido:decisionStatus "rejected"'),
        [["yes", "yes"]]),
    "conventions": (
        item("yes", "Convention", NAMED + "Strict") + item("soft", "Convention", NAMED + "Advisory")
        + item("unnamed", "Convention", LEVEL + "Strict") + excluded("a", "Convention", NAMED + "Strict"),
        [["soft", "n", "Advisory"], ["yes", "n", "Strict"]]),
    "risks": (item("yes", "Risk") + item("no", "Fact") + excluded("a", "Risk"), [["yes", "yes"]]),
    "open-tasks": (
        "".join(item(each, "Task", f"jido:hasTaskStatus jido:{each}")
                for each in ("Planned", "InProgress", "Blocked", "Completed"))
        + excluded("a", "Task", "jido:hasTaskStatus jido:Planned"),
        [[each, each, each] for each in ("Blocked", "InProgress", "Planned")]),
    "task-dependencies": (
        item("yes", "Task", "jido:hasTaskStatus jido:Planned ; jido:dependsOn m:first")
        + item("first", "Task", "jido:hasTaskStatus jido:Planned ; jido:blockedBy m:wall")
        + excluded("a", "Task", "jido:hasTaskStatus jido:Planned ; jido:dependsOn m:first"),
        [["yes", "first"]]),
    "blocked-tasks": (
        item("yes", "Task", "jido:hasTaskStatus jido:Blocked ; jido:blockedBy m:wall")
        + item("wall", "Task", "jido:hasTaskStatus jido:Planned ; jido:dependsOn m:yes")
        + excluded("a", "Task", "jido:hasTaskStatus jido:Blocked ; jido:blockedBy m:wall"),
        [["yes", "wall"]]),
    "open-errors": (
        item("yes", "Error", 'jido:hasErrorStatus jido:Reported ; jido:severityLevel "high"')
        + item("done", "Error", 'jido:hasErrorStatus jido:Resolved ; jido:severityLevel "high"')
        + excluded("a", "Error", 'jido:hasErrorStatus jido:Reported ; jido:severityLevel "high"'),
        [["yes", "yes", "high"]]),
    "unexplained-root-causes": (
        item("yes", "RootCause") + item("known", "RootCause") + item("error", "Error", "jido:hasRootCause m:known")
        + excluded("a", "RootCause"),
        [["yes", "yes"]]),
    "lessons": (item("yes", "LessonLearned") + item("no", "Fact") + excluded("a", "LessonLearned"), [["yes", "yes"]]),
    "facts": (
        item("yes", "Fact", SURE) + item("no", "Hypothesis", SURE) + excluded("a", "Fact", SURE),
        [["yes", "yes", "High"]]),
    "evidence-contradictions": (
        item("one", "Fact") + item("two", "Fact") + item("three", "Fact") + item("elsewhere", "Fact", of=OTHER)
        + f"m:measured a jido:Evidence ; jido:recordedAt {WHEN} ; jido:contradicts m:one , m:two .\n"
        + f"m:alone a jido:Evidence ; jido:recordedAt {WHEN} ; jido:contradicts m:three .\n"
        + f"m:far a jido:Evidence ; jido:recordedAt {WHEN} ; jido:contradicts m:three , m:elsewhere .\n",
        [["one", "two"]]),
    "items-without-project": (item("yes", "Fact", of=RECORDED) + item("no", "Fact"), [["yes"]]),
    "dangling-supersessions": (
        item("yes", "Fact", "jido:supersededBy m:nobody") + item("no", "Fact", "jido:supersededBy m:there")
        + item("there", "Fact"),
        [["yes"]]),
    "elixir-modules": (
        f'm:yes a jido:ElixirModule ; jido:moduleName "Jido" ; jido:recordedAt {WHEN} .\n'
        f'm:no a jido:SourceFile ; jido:moduleName "Jido" ; jido:recordedAt {WHEN} .\n'
        f'm:far a jido:ElixirModule ; jido:moduleName "Jido" ; jido:partOfProject p:other ; jido:recordedAt {WHEN} .\n',
        [["yes", "Jido"]]),
    "commands-and-events": (
        f"m:yes a jido:Command ; jido:emitsEvent m:made ; jido:recordedAt {WHEN} .\n"
        f"m:no a jido:Event ; jido:emitsEvent m:made ; jido:recordedAt {WHEN} .\n"
        f"m:idle a jido:Command ; jido:recordedAt {WHEN} .\n",
        [["yes", "made"]]),
    "projections": (
        f"m:made a jido:Event ; jido:handledByProjection m:yes ; jido:recordedAt {WHEN} .\n"
        f"m:lost a jido:Event ; jido:recordedAt {WHEN} .\n"
        f"m:no a jido:Command ; jido:handledByProjection m:yes ; jido:recordedAt {WHEN} .\n",
        [["yes", "made"]]),
    "strict-conventions": (
        item("yes", "Convention", NAMED + "Strict") + item("soft", "Convention", NAMED + "Required")
        + excluded("a", "Convention", NAMED + "Strict"),
        [["yes", "n"]]),
    "agent-rules": (item("yes", "AgentRule") + item("no", "Convention") + excluded("a", "AgentRule"), [["yes", "yes"]]),
    "active-sessions": (
        f"s:yes a jido:WorkSession ; jido:hasStatus jido:Active ; jido:startedAt {WHEN} ; jido:partOfProject p:demo ;"
        f" jido:recordedAt {WHEN} .\n"
        f"s:far a jido:WorkSession ; jido:hasStatus jido:Active ; jido:startedAt {WHEN} ; jido:partOfProject p:other ;"
        f" jido:recordedAt {WHEN} .\n",
        [["yes", "2026-01-01T00:00:00+00:00"]]),
    "continuations": (
        f"s:second a jido:WorkSession ; jido:continuesSession s:first ; jido:partOfProject p:demo ;"
        f" jido:recordedAt {WHEN} .\n"
        f"s:third a jido:WorkSession ; jido:partOfProject p:demo ; jido:recordedAt {WHEN} .\n"
        f"s:far a jido:WorkSession ; jido:continuesSession s:first ; jido:partOfProject p:other ;"
        f" jido:recordedAt {WHEN} .\n",
        [["first", "second"]]),
    "items-without-confidence": (item("yes", "Fact") + item("no", "Fact", SURE) + excluded("a", "Fact"), [["yes"]]),
    "decisions-without-rationale": (
        item("yes", "ImplementationDecision") + item("no", "Decision", 'jido:rationale "r"') + item("fact", "Fact")
        + excluded("a", "Decision"),
        [["yes"]]),
    "tasks-without-assignee": (
        item("yes", "Task", "jido:hasTaskStatus jido:Planned")
        + item("no", "Task", "jido:hasTaskStatus jido:Planned ; jido:assignedTo m:ana")
        + excluded("a", "Task", "jido:hasTaskStatus jido:Planned"),
        [["yes"]]),
}  # fmt: skip
CODE = ("elixir-modules", "commands-and-events", "projections")


def rows(name, turtle):
    index = new_index()
    ends = item("a-next", "Discovery", SURE) + item("marker", "DeletedMarker", SURE)
    if name not in CODE:
        turtle += ends if "a-old0" in turtle else ""
    index.apply(graph_iri("demo", "codebase" if name in CODE else "context"), "1", triples(turtle))
    all_rows = shortened(reader_of(index).ask(name, project="demo"))
    width = len(MEANING[name][1][0])  # the columns of the playbook; further columns may follow
    return [row[:width] for row in all_rows]


@pytest.mark.parametrize("name", MEANING)
def test_a_playbook_query_returns_exactly_the_memories_of_its_condition(name):  # C100
    turtle, expected = MEANING[name]

    assert rows(name, turtle) == expected


def test_every_playbook_query_has_a_condition_under_test():  # C100
    assert sorted(MEANING) == sorted(name for names in NUMBERED.values() for name in names)
    assert len(MEANING) == 23


@pytest.mark.parametrize("name", ["timeline", "patterns", "governing"])
@pytest.mark.parametrize("now", ["2026-01-01T12:00:00Z", "2026-01-03T12:00:00Z", "2031-01-01T00:00:00Z"])
def test_a_list_of_all_kinds_has_the_status_and_time_of_each_memory(name, now):
    index = world_index()
    reader = reader_of(index, now=partial(parse_moment, now))
    arguments = {"file": "jidomem/index/store.py"} if name == "governing" else {}
    for moment in (None, "2026-01-02", "2026-01-04"):
        for row in reader.ask(name, project="demo", as_of=moment, include_inactive=True, **arguments):
            memory = load_memory(index, "demo", row["item"], moment, now=lambda: format_timestamp(parse_moment(now)))
            assert row["status"] == memory["status"], row
            assert row["time"] in memory["properties"].get("hasTimestamp", [None])
