import inspect
import json
import typing
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta, timezone
from hashlib import blake2b

import pytest
from reader_world import needed, new_index, reader_of, short, shortened, triples, world_index

from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf.vocab import graph_iri
from jidomem.read.reader import MemoryReader

J = "https://jido.ai/ontology#"
M = "https://jido.ai/memory/"


@pytest.fixture(scope="module")
def index():
    return world_index()


@pytest.fixture(scope="module")
def reader(index):
    return reader_of(index)


def test_active_architectural_decisions_are_listed(reader):  # C087, C088
    assert reader.list_active_architectural_decisions("demo") == [
        {
            "decision": M + "store-oxigraph",
            "summary": "Use Oxigraph as the index",
            "status": "accepted",
            "time": datetime(2026, 1, 3, tzinfo=UTC),
            "topic": None,
        }
    ]


def test_conventions_of_every_level_and_subclass_are_listed(reader):  # C089
    rows = reader.list_conventions("demo")
    assert list(rows[0]) == ["conv", "name", "level"]
    assert {short(row["level"]) for row in rows} == {"Strict", "Required", "Advisory"}
    assert {"conv": M + "ruff", "name": "formatting", "level": J + "Strict"} in rows  # a CodingStandard


def test_open_tasks_are_the_uncompleted_ones_with_abandoned_ones_optional(reader):  # C090
    rows = reader.list_open_tasks("demo")
    assert list(rows[0]) == ["task", "summary", "status", "assignee"]
    assert [short(row["status"]) for row in rows] == ["Abandoned", "Planned", "InProgress"]
    assert [short(r["status"]) for r in reader.list_open_tasks("demo", actionable_only=True)] == [
        "Planned",
        "InProgress",
    ]


def test_open_errors_are_the_unresolved_ones_with_deferred_ones_optional(reader):  # C091
    rows = reader.list_open_errors("demo")
    assert shortened(rows) == [
        ["crash", "The engine crashed", None],
        ["slow-list", "Listing is slow", "low"],
        ["torn-file", "A file was torn", "high"],
    ]
    assert list(rows[0]) == ["err", "summary", "severity"]
    assert [r["severity"] for r in reader.list_open_errors("demo", include_deferred=False)] == [None, "high"]


def test_facts_are_listed_with_their_confidence(reader):  # C092
    assert {
        "fact": M + "rust-180",
        "summary": "The build needs Rust 1.80",
        "confidence": J + "Medium",
        "topic": None,
    } in (reader.list_facts_with_confidence("demo"))


def test_active_sessions_are_listed_newest_first_with_their_start(reader):  # C093
    rows = reader.list_active_sessions("demo")
    assert {"session": "https://jido.ai/sessions/first", "start": datetime(2026, 1, 1, tzinfo=UTC)} in rows
    assert [row["start"] for row in rows] == sorted((row["start"] for row in rows), reverse=True)


@pytest.mark.parametrize("name", ["decisions", "active-decisions", "recent-decisions"])
def test_decisions_are_listed_newest_first_by_the_displayed_time(reader, name):
    times = [row["time"] for row in reader.ask(name, project="demo", include_inactive=True)]

    assert times == sorted(times, reverse=True)
    assert len({*times}) > 2


def test_recent_lessons_are_listed_newest_first(reader):  # C095
    rows = reader.list_recent_lessons("demo")
    assert [short(row["lesson"]) for row in rows] == ["lesson-fsync", "lesson-lock"]
    assert list(rows[0]) == ["lesson", "summary", "time"]


@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-02",
        "2026-01-02T00:00:00",
        "2026-01-02T01:00:00+01:00",
        datetime(2026, 1, 2),  # a moment without an offset is UTC
        datetime(2026, 1, 1, 19, tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_a_moment_is_given_as_text_or_datetime(reader, moment):
    rows = reader.list_active_architectural_decisions("demo", as_of=moment)
    assert [row[:2] for row in shortened(rows)] == [
        ["lock-server", "Keep a lock server"],
        ["store-sqlite", "Use SQLite as the store"],
    ]


def test_inactive_memories_are_listed_on_request(reader):  # C088
    rows = reader.list_active_architectural_decisions("demo", include_inactive=True)
    assert [short(row["decision"]) for row in rows] == [
        "one-file", "store-oxigraph", "old-proposal", "lock-server", "store-sqlite",
    ]  # fmt: skip


def test_no_list_has_rows_of_another_project_in_the_same_graph(reader):  # C099
    ours = [row for query in reader.playbook for row in reader.ask(query.name, project="demo", **needed(query))]
    theirs = reader.list_facts_with_confidence("other")
    assert "foreign" not in str(ours)
    assert "Foreign" not in str(ours)
    assert shortened(theirs) == [["apart-fact", "In a graph of its own", "High", None]]


def test_answers_do_not_depend_on_the_order_of_commits():  # C097
    facts = [f"m:f{n} a jido:Fact ; jido:summary 'n{n % 2}' ; jido:appliesToProject p:demo ;"
             f" jido:hasConfidence jido:High ; jido:hasTimestamp '2026-01-0{n % 3 + 1}T00:00:00Z'^^xsd:dateTime ;"
             f" jido:recordedAt '2026-01-0{n % 3 + 1}T00:00:00Z'^^xsd:dateTime ." for n in range(9)]  # fmt: skip
    answers = []
    for order in (facts, facts[::-1]):
        index = new_index()
        for fact in order:
            index.apply(graph_iri("demo"), fact, triples(fact))
        answers.append(reader_of(index).list_facts_with_confidence("demo"))
    assert len(answers[0]) == 9
    assert answers[0] == answers[1]


def test_the_planner_context_has_open_tasks_and_conventions(reader):  # C101, C105
    assert reader.planner.context("demo") == {
        "tasks": reader.list_open_tasks("demo"),
        "conventions": reader.list_conventions("demo"),
    }


def test_the_architect_context_has_the_active_architectural_decisions(reader):  # C101, C106
    assert reader.architect.context("demo") == {"decisions": reader.list_active_architectural_decisions("demo")}


def test_the_debugger_context_has_open_errors_and_recent_lessons(reader):  # C101, C107
    context = reader.debugger.context("demo", as_of="2026-01-03")
    assert [short(row["err"]) for row in context["errors"]] == ["crash", "lost-write", "slow-list", "torn-file"]
    assert [short(row["lesson"]) for row in context["lessons"]] == ["lesson-lock"]


def test_every_role_has_its_queries_as_methods(reader):  # C101, C102
    roles = {"architect": "architect", "planner": "planner", "debugger": "debugger", "curator": "curator",
             "code": "code", "governance": "governance", "sessions": "session", "ci": "ci"}  # fmt: skip
    for attribute, role in roles.items():
        for query in reader.playbook.roles()[role]:
            method = query.name.replace("-", "_")
            assert method in dir(getattr(reader, attribute))
            answer = getattr(getattr(reader, attribute), method)("demo", **needed(query))
            assert answer == reader.ask(query.name, project="demo", **needed(query))


def test_a_misspelt_query_method_is_refused_with_the_nearest_name(reader):
    with pytest.raises(AttributeError, match="did you mean 'open_tasks'"):
        reader.planner.open_taks  # noqa: B018 - the look-up is what is refused


def test_the_public_signatures_name_no_rdf_type():  # C096
    public = [getattr(MemoryReader, name) for name in dir(MemoryReader) if not name.startswith("_")]
    hints = [hint for method in public for hint in typing.get_type_hints(method).values()]
    assert len(public) > 10
    assert not [hint for hint in hints if "rdflib" in str(hint) or "oxigraph" in str(hint)]
    assert all(inspect.getdoc(method) for method in public)


def test_selected_values_are_plain_python(reader):  # C085
    sparql = """SELECT ?iri ?text ?tagged ?whole ?part ?truth ?time ?odd ?none {
      VALUES (?iri ?text ?tagged ?whole ?part ?truth ?time ?odd ?none) {
        (<urn:x> "a\\n\\"b" "Hallo"@de 7 0.85 true "2026-01-01T02:00:00+02:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>
         "seven"^^<http://www.w3.org/2001/XMLSchema#integer> UNDEF) } }"""
    assert reader.select("demo", sparql) == [
        {"iri": "urn:x", "text": 'a\n"b', "tagged": "Hallo", "whole": 7, "part": 0.85, "truth": True,
         "time": datetime(2026, 1, 1, tzinfo=UTC), "odd": "seven", "none": None}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, "limit=0 is not a positive whole number"),
        ({"limit": True}, "limit=True is not a positive"),
        ({"limit": "5"}, "limit='5' is not a positive"),
        ({"as_of": "yesterday"}, "as_of='yesterday' is not a date or time"),
        ({"as_of": 5}, "as_of=5 is not a date or time"),
        ({"as_of": "0001-01-01T00:00:00+05:00"}, "is not a date or time"),
        ({"include_inactive": "perhaps"}, "include_inactive='perhaps' is not true or false"),
        ({"actionable": True}, "has no parameter 'actionable'"),
        ({"cursor": "nonsense"}, "the cursor is damaged"),
        ({"cursor": "é"}, "the cursor is damaged"),
    ],
)
def test_an_invalid_argument_is_refused(reader, arguments, message):
    with pytest.raises(InvalidRequest, match=message) as refusal:
        reader.ask("open-tasks", project="demo", **arguments)
    assert refusal.value.code == "invalid_argument"
    assert refusal.value.hint


@pytest.mark.parametrize("value", ["urn:%zz", "http://[", "http://h:8a/x", "http://ex/\x7f", "http://ex/\ud800", "\0"])
@pytest.mark.parametrize(("query", "parameter"), [
    ("memories-of-session", "session"), ("memories-of-agent", "agent"), ("related", "item"),
    ("memories-of-kind", "kind"),
])  # fmt: skip
def test_a_parameter_that_is_no_iri_is_refused_with_it(reader, query, parameter, value):
    with pytest.raises((InvalidRequest, NotFound)) as refusal:
        reader.ask(query, project="demo", **{parameter: value})
    assert repr(value) in refusal.value.detail
    assert parameter in refusal.value.detail or parameter == "item"  # the id of a memory is an "iri" there
    assert refusal.value.hint


@pytest.mark.parametrize(("method", "arguments", "message"), [
    ("find", ("a b", "x"), "'a b' is not a project id"), ("ids", ("demo", 1), "part=1 is not a text"),
    ("agent", ("demo", None), "agent=None is not a name"), ("whole_id", ("demo", 5), "item=5 is not a text"),
    ("ask", (1,), "name=1 is not the name of a query"), ("ask", ("x" * 100_000,), "there is no query 'xxx"),
])  # fmt: skip
def test_an_argument_of_a_method_that_is_no_name_is_refused(reader, method, arguments, message):
    with pytest.raises((InvalidRequest, NotFound), match=message) as refusal:
        getattr(reader, method)(*arguments)
    assert len(refusal.value.detail) < 300
    assert refusal.value.hint


def test_a_refusal_does_not_repeat_a_long_value_and_a_huge_limit_asks_for_all_rows(reader):
    with pytest.raises(InvalidRequest) as refusal:
        reader.ask("facts", project="demo", as_of="x" * 100_000)
    assert len(str(refusal.value)) < 1000
    facts = reader.ask("facts", project="demo")
    assert reader.ask("facts", project="demo", limit=10**30) == facts


def test_a_query_without_include_inactive_refuses_it(reader):
    with pytest.raises(InvalidRequest, match="has no parameter 'include_inactive'"):
        reader.code.elixir_modules("demo", include_inactive=True)


def test_an_unknown_project_is_refused_by_every_function(reader):
    for call in (reader.list_open_tasks, lambda p: reader.select(p, "SELECT * {}"), lambda p: reader.get_memory(p, M)):
        with pytest.raises(NotFound, match="there is no project 'nobody'"):
            call("nobody")


def test_a_project_without_memories_has_no_rows(reader):
    for query in reader.playbook:
        if query.takes("item"):
            with pytest.raises(NotFound):
                reader.ask(query.name, project="empty", **needed(query))
        else:
            assert reader.ask(query.name, project="empty", **needed(query)) == []


def fact(number, day, more=""):
    return triples(
        f"m:f{number} a jido:Fact ; jido:summary 'fact {number}' ; jido:hasConfidence jido:High ;"
        f" jido:appliesToProject p:demo ; jido:hasAssertionStatus jido:Asserted ;"
        f" jido:recordedAt '2026-01-{day:02d}T00:00:00Z'^^xsd:dateTime . {more}"
    )


def pages(reader, while_reading=lambda: None, **options):
    rows, cursor = [], None
    while True:
        page = reader.ask_page("facts", project="demo", limit=2, cursor=cursor, **options)
        rows += [short(row["fact"]) for row in page.rows]
        cursor = page.cursor
        while_reading()
        if cursor is None:
            return rows


def test_pages_show_one_moment_despite_concurrent_writes():
    index = new_index()
    reader = reader_of(index)
    for number in (1, 3, 5, 7):
        index.apply(graph_iri("demo"), f"c{number}", fact(number, number))

    def write():
        index.apply(graph_iri("demo"), "c0", fact(0, 10, "m:f5 jido:supersededBy m:f0 ."))

    assert pages(reader, write) == ["f1", "f3", "f5", "f7"]
    assert pages(reader) == ["f0", "f1", "f3", "f7"]


def test_pages_as_of_a_future_moment_show_one_state():
    index = new_index()
    index.apply(graph_iri("demo"), "c", fact(1, 1) + fact(2, 2) + fact(3, 3))

    def write():
        index.apply(graph_iri("demo"), "c0", fact(0, 4))

    assert pages(reader_of(index), write, as_of="2999-01-01") == ["f1", "f2", "f3"]


def test_a_cursor_without_a_limit_returns_the_rest(reader):
    first = reader.ask_page("facts", project="demo", limit=2)
    rest = reader.ask("facts", project="demo", cursor=first.cursor)
    assert first.rows + rest == reader.ask("facts", project="demo")


def test_a_cursor_of_another_query_or_moment_is_refused(reader):
    cursor = reader.ask_page("facts", project="demo", limit=2).cursor
    for other in ({"name": "lessons"}, {"include_inactive": True}, {"as_of": "2026-01-02"}):
        with pytest.raises(InvalidRequest, match="the cursor belongs to another question"):
            reader.ask(**{"name": "facts", "project": "demo", "cursor": cursor, **other})


def test_a_damaged_cursor_is_refused(reader):
    cursor = reader.ask_page("facts", project="demo", limit=2).cursor
    for at in range(0, len(cursor), 7):
        damaged = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        with pytest.raises(InvalidRequest, match="damaged"):
            reader.ask("facts", project="demo", cursor=damaged)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "garbage"), (0, ""), (0, '"x"^^<http://www.w3.org/2001/XMLSchema#dateTime>'), (1, "x"), (1, -1), (1, 2.5),
        (1, 10**30), (3, 7), (3, "\ud800"), (4, -3), (4, None), (5, "junk"), (6, "one more"), (None, "not json"),
        (None, "[" * 9999),
    ],
)  # fmt: skip
@pytest.mark.parametrize("query", ["facts", "counts"])
def test_a_cursor_of_other_content_with_its_digest_is_refused(reader, query, place, value):
    cursor = reader.ask_page(query, project="demo", limit=1).cursor
    values = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[8:])
    body = (json.dumps([*values[:place], value, *values[place + 1 :]]) if place is not None else value).encode()
    forged = urlsafe_b64encode(blake2b(body, digest_size=8).digest() + body).decode().rstrip("=")

    with pytest.raises(InvalidRequest, match="the cursor is damaged"):
        reader.ask_page(query, project="demo", limit=1, cursor=forged)


def test_reading_changes_nothing_in_the_index(index, reader):  # C013
    graphs = [graph_iri(project, graph) for project in ("demo", "other") for graph in ("context", "codebase")]
    before = [set(index.triples(graph)) for graph in graphs]
    for query in reader.playbook:
        reader.ask(query.name, project="demo", **needed(query))
    reader.run("demo", "CONSTRUCT { ?s a <urn:x> } { ?s ?p ?o }")
    reader.get_memory("demo", M + "rust-180")
    assert [set(index.triples(graph)) for graph in graphs] == before
    assert not [name for name in dir(reader) if name.split("_")[0] in ("write", "add", "insert", "update", "delete")]
