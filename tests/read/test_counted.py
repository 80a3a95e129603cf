"""Queries that the search file answers in part or alone have the rows of the engine."""

from random import Random

import pytest
from conftest import examples
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of
from test_query_law import CONTEXT, HISTORY, Scribe, at, drawn_history

from jidomem.index.tallies import BY_AGENT, BY_STATUS, EXPIRED, SCHEDULED
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import date_time, iri, literal
from jidomem.rdf.vocab import TYPE, jido

COUNTED = ["counts", "agent-activity"]
DEMO = iri("https://jido.ai/projects/demo")
#: A history of another seed is not simpler.
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]
KINDS = ["Fact", "Task", "Bug", "Error", "ArchitecturalDecision", "Evidence", "MemoryItem"]


def node(number):
    return iri(f"https://jido.ai/memory/{number}")


def stamp(random):
    """Return a moment: of any second, hour or year, or one that many memories share."""
    return date_time(
        random.choice(
            [
                f"2026-01-01T00:00:{random.randrange(60):02d}.{random.randrange(10)}Z",
                f"2026-01-{random.randrange(1, 29):02d}T{random.randrange(24):02d}:00:00Z",
                f"{random.randrange(2020, 2030)}-01-01T00:00:00.000001Z",
                "2026-01-01T00:00:00Z",
            ]
        )
    )


def statements(random):
    """Return statements about a dozen nodes, each property with any number of values, in any order."""
    nodes = [node(number) for number in range(12)]
    nodes += [iri(f"{nodes[number][1:-1]}/alternatives/1") for number in range(3)]
    values = {
        TYPE: lambda: jido(random.choice(KINDS)),
        jido("hasAssertionStatus"): lambda: jido(random.choice(["Asserted", "Asserted", "Proposed"])),
        jido("appliesToProject"): lambda: random.choice([DEMO] * 5 + [iri("https://jido.ai/projects/other")]),
        jido("recordedAt"): lambda: stamp(random),
        jido("assertedBy"): lambda: iri(f"https://jido.ai/agents/{random.choice(['ana', 'ana-2', 'ben'])}"),
        jido("settledBy"): lambda: iri(f"https://jido.ai/agents/{random.choice(['ana', 'cleo'])}"),
        jido("decisionStatus"): lambda: literal(random.choice(["accepted", "proposed", "rejected"])),
        jido("validFrom"): lambda: stamp(random),
        jido("validUntil"): lambda: stamp(random),
        jido("supersededBy"): lambda: random.choice(nodes),
        jido("invalidatedBy"): lambda: random.choice(nodes),
        jido("hasAlternative"): lambda: random.choice(nodes[-3:]),
    }
    seldom = {jido(name) for name in ("settledBy", "decisionStatus", "validFrom", "validUntil")}
    rows = []
    for name in nodes:
        for predicate, value in values.items():
            few = [0, 0, 0, 1, 2] if predicate in seldom else [0, 1] if "By>" in predicate else [1, 1, 1, 1, 2, 0]
            rows += [(name, predicate, value()) for _ in range(random.choice(few))]
    random.shuffle(rows)
    return rows


#: A memory that counts, whatever `statements` draws.
ASSERTED = [
    (node(12), TYPE, jido("Fact")),
    (node(12), jido("hasAssertionStatus"), jido("Asserted")),
    (node(12), jido("appliesToProject"), DEMO),
    (node(12), jido("recordedAt"), date_time(at(0))),
    (node(12), jido("assertedBy"), iri("https://jido.ai/agents/ana")),
]


def moments(random):
    """Return arguments of a query: now, as of a moment, and valid at one."""
    return [{}, {"as_of": at(3)}, {"valid_at": at(3)}, {"as_of": at(4), "valid_at": at(2)}] + [
        {name: stamp(random).split('"')[1] for name in ("as_of", "valid_at") if random.random() < 0.7} for _ in range(4)
    ]


def assert_counted(tallied, engine, random):
    for name in COUNTED:
        for moment in moments(random):
            expected = engine.ask(name, project="demo", **moment)
            assert tallied.ask(name, project="demo", **moment) == expected
            page = tallied.ask_page(name, project="demo", limit=2, **moment)
            assert page.rows == expected[:2]
            if page.cursor:
                assert (
                    tallied.ask_page(name, project="demo", limit=3, cursor=page.cursor, **moment).rows == expected[2:5]
                )


def rules(random, commit):
    """Return statements about new rules, most of them about no place."""
    rows = []
    for number in range(4):
        name = iri(f"https://jido.ai/memory/rule-{random.randrange(90):02d}-{commit}-{number}")
        level = "Strict" if number == 0 else random.choice(["Strict", "Required", "Advisory"])
        rows += [
            (name, TYPE, jido("Convention")),
            (name, jido("appliesToProject"), DEMO),
            (name, jido("recordedAt"), date_time(at(commit))),
            (name, jido("summary"), literal(f"rule {number}")),
            (name, jido("hasEnforcementLevel"), jido(level)),
        ]
        if number:
            rows += random.sample(
                [
                    (name, jido("about"), literal(random.choice(["src", "lib"]))),
                    (name, jido("appliesToDomain"), literal("money")),
                    (name, jido("hasConventionScope"), jido("AgentScope")),
                    (name, jido("validUntil"), stamp(random)),
                    (name, jido("hasAssertionStatus"), jido("Proposed")),
                ],
                random.choice([0, 0, 1]),
            )
    return rows


def without_rivals(rows):
    """Return *rows* without the annotation that only the projection has."""
    return [{name: value for name, value in row.items() if name != "conflicts_with"} for row in rows]


def assert_read_from_the_file(tallied, engine):
    """Assert that the rows are those of the search file: names changed there are changed in them."""
    file = tallied.texts.files["demo"]
    with file.writing():
        [*file.ask("UPDATE tally SET name = name || '~' WHERE question = ?", (BY_STATUS,))]
        [*file.ask("UPDATE tally SET name = 'urn:file:' || name WHERE question = ?", (BY_AGENT,))]
    counts, activity = (engine.ask(name, project="demo") for name in COUNTED)
    marked = [
        row if row["status"] in (EXPIRED, SCHEDULED) else {**row, "status": f"{row['status']}~"} for row in counts
    ]
    assert sorted(map(str, tallied.ask("counts", project="demo"))) == sorted(map(str, marked)) != []
    marked = [{**row, "agent": f"urn:file:{row['agent']}"} for row in activity]
    assert sorted(map(str, tallied.ask("agent-activity", project="demo"))) == sorted(map(str, marked)) != []


def has_all(reader):
    return reader.texts.read(Stream("demo"), lambda file: file.tallies.has_all())


@settings(max_examples=examples(4), phases=UNSHRUNK)
@given(st.integers(0, 2**32))
def test_tallied_counts_of_a_written_history_equal_those_of_the_engine(seed):
    random, scribe, index = Random(seed), Scribe(), new_index()
    tallied, engine = reader_of(index), reader_of(index, projected=False)
    for number, news in enumerate(drawn_history(random)):
        for graph, rows in scribe.commit(number, news).items():
            index.apply(graph, str(number), rows)
        assert_counted(tallied, engine, random)
    assert has_all(tallied)
    assert_read_from_the_file(tallied, engine)


@settings(max_examples=examples(10), phases=UNSHRUNK)
@example(788739)  # a memory leaves a group and enters it again at one moment
@given(st.integers(0, 2**32))
def test_tallied_counts_of_statements_in_any_order_equal_those_of_the_engine(seed):
    random, index = Random(seed), new_index()
    tallied, engine = reader_of(index), reader_of(index, projected=False)
    index.apply(CONTEXT, "first", ASSERTED)
    rows = statements(random)
    cuts = sorted(random.sample(range(len(rows)), 3))
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        index.apply(CONTEXT, str(number), rows[start:end])
        assert_counted(tallied, engine, random)
    assert has_all(tallied)
    assert_read_from_the_file(tallied, engine)


@pytest.mark.parametrize(
    ("graph", "row"),
    [
        (CONTEXT, ("recordedAt", literal("2020-01-01T00:00:00Z"))),
        (CONTEXT, ("decisionStatus", literal("in doubt"))),
        (CONTEXT, ("validUntil", literal("soon"))),
        (CONTEXT, ("assertedBy", literal("ana"))),
        (HISTORY, ("hasAssertionStatus", jido("Proposed"))),
        (HISTORY, ("assertedBy", iri("https://jido.ai/agents/cleo"))),
    ],
)
def test_counts_with_values_that_only_the_engine_compares_come_from_the_engine(graph, row):
    random, index = Random(3), new_index()
    tallied, engine = reader_of(index), reader_of(index, projected=False)
    index.apply(CONTEXT, "0", statements(random))
    assert_counted(tallied, engine, random)
    predicate, value = row
    index.apply(graph, "1", [(node(number), jido(predicate), value) for number in range(12)])

    assert_counted(tallied, engine, random)
    assert not has_all(tallied) or graph != CONTEXT


@settings(max_examples=examples(4), phases=UNSHRUNK)
@given(st.integers(0, 2**32))
def test_conventions_without_a_place_are_listed_last_as_by_the_engine(seed):
    random, scribe, index = Random(seed), Scribe(), new_index()
    tallied, engine = reader_of(index), reader_of(index, projected=False)
    for number, news in enumerate(drawn_history(random)):
        for graph, rows in scribe.commit(number, news).items():
            index.apply(graph, str(number), rows + (rules(random, number) if graph == CONTEXT else []))
        for moment in random.sample(moments(random), 3):
            options = {"project": "demo", "file": "src/a.py", "include_inactive": random.random() < 0.5, **moment}
            assert without_rivals(tallied.ask("governing", **options)) == engine.ask("governing", **options)
    for moment in random.sample(moments(random), 3):
        options = {"project": "demo", "file": "src/a.py", "include_inactive": random.random() < 0.5, **moment}
        page = tallied.ask_page("governing", limit=2, **options)
        rows = page.rows
        while page.cursor:
            page = tallied.ask_page("governing", limit=3, cursor=page.cursor, **options)
            rows += page.rows
        assert without_rivals(rows) == engine.ask("governing", **options)
    listed = tallied.ask("governing", project="demo", file="src/a.py")
    assert any(row["about"] is None for row in listed)
