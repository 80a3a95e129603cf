"""Pages of lists read in order, compared with the whole answer."""

import re
from itertools import chain
from random import Random

import pytest
from conftest import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of, triples
from test_query_law import CONTEXT, Scribe, drawn_history

from jidomem.errors import Failed
from jidomem.rdf.terms import literal
from jidomem.rdf.vocab import jido
from jidomem.read import lists
from jidomem.read.playbook import Playbook
from jidomem.records import named_query as queries
from jidomem.records.intent import Version

PLAYBOOK = Playbook()
WALKED = [query for query in PLAYBOOK if query.list_order and not query.list_order.pairs]


class Sorted(Playbook):
    """The same queries without lists: the engine reads all memories, except those of pairs, which it cannot find."""

    def get(self, name):
        query = super().get(name)._replace(contains=None)
        return query if query.list_order and query.list_order.pairs else query._replace(list_order=None)


def modes(query):
    return (False, True) if query.takes("includeInactive") else (False,)


def paged(reader, query, *, cursor=None, limit=3, **options):
    rows = []
    while True:
        page = reader.ask_page(query.name, project="demo", limit=limit, cursor=cursor, **options)
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows


def compare_with_whole(reader, whole, name, count, moment):
    """Compare the facts recorded last, or the memories longest due, with the whole list."""
    rows, column = whole.ask(name, project="demo", **moment), {"facts": "fact", "stale": "item"}[name]
    if name == "stale":
        first = sorted(rows, key=lambda row: (str(row["due"] or "9999"), row["item"]))[:count]
        some = reader.longest_due("demo", count, **moment)
        keys = [(row["item"], row["reason"], row["due"]) for row in some]
        assert {(row["item"], row["reason"], row["due"]) for row in first} <= {*keys}
        assert [*reader.longest_due("demo", 1_000, **moment)] == [*whole.longest_due("demo", 1, **moment)]
        return
    times = {row["item"]: row["recorded"] for row in whole.ask("timeline", project="demo", **moment)[::-1]}
    some, more = reader.newest(name, "demo", count, **moment)
    assert {row[column] for row in some} <= times.keys()
    if more:
        assert len({row[column] for row in some}) <= count
        others = {row[column] for row in rows} - {row[column] for row in some}
        assert all(times[other] <= min(times[row[column]] for row in some) for other in others if some)
    else:
        assert {row[column] for row in some} == {row[column] for row in rows}


@settings(max_examples=examples(1), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(seed=3722)  # a memory rests on one that is revived, and that nothing ended
@example(seed=47398920)  # several memories are due at the same moment as the longest due
@given(seed=st.integers(0, 2**32))
def test_the_pages_of_every_list_are_its_rows_despite_writes(seed):
    index, scribe = new_index(), Scribe()
    reader, whole = reader_of(index, playbook=PLAYBOOK), reader_of(index, playbook=Sorted())

    open_pages = {}
    for number, news in enumerate(drawn_history(Random(seed))):
        for graph, rows in scribe.commit(number, news).items():
            index.apply(graph, str(number), rows)
        for query in WALKED:
            for inactive in modes(query):
                options = {"include_inactive": inactive} if len(modes(query)) > 1 else {}
                options |= {"topic": ["n 1", "n"][seed % 2]} if query.takes("topic") else {}
                options |= {"agent": "https://jido.ai/agents/ana"} if query.takes("agent") else {}
                options |= {"kind": ["task", "fact"][seed % 2]} if query.takes("kind") else {}
                options |= {"since": f"2026-01-01T00:00:{seed % (number + 1):02d}Z"} if query.takes("since") else {}
                now = whole.ask(query.name, project="demo", **options)
                assert paged(reader, query, **options) == now
                if number % 2 == 0:  # the other ways to read a list are compared after every second commit
                    continue
                assert [*chain(*reader.batches(query.name, 3, project="demo", **options))] == now
                assert reader.ask(query.name, project="demo", limit=100, **options) == now
                past = {**options, "as_of": f"2026-01-01T00:00:{seed % (number + 1):02d}Z"}
                then = whole.ask(query.name, project="demo", **past)
                assert paged(reader, query, limit=2, **past) == then
                assert [*chain(*reader.batches(query.name, 2, project="demo", **past))] == then
                if query.name in ("facts", "stale") and not inactive:
                    for moment in ({}, {"as_of": past["as_of"]}):
                        compare_with_whole(reader, whole, query.name, seed % 3 + 1, moment)
                if number == 3:
                    first = reader.ask_page(query.name, project="demo", limit=1, **options)
                    open_pages[query, inactive] = options, first.cursor, now[1:]

    for (query, _), (options, cursor, rest) in open_pages.items():
        assert (paged(reader, query, cursor=cursor, **options) if cursor else []) == rest


def fact(name, day, more=""):
    return triples(
        f"{name} a jido:Fact ; jido:summary 'a fact' ; jido:hasConfidence jido:High ; jido:appliesToProject p:demo ;"
        f" jido:hasAssertionStatus jido:Asserted ; jido:recordedAt '2026-01-{day:02d}T00:00:00Z'^^xsd:dateTime . {more}"
    )


def listed(reader):
    return [row["fact"].rsplit("/", 1)[-1] for row in paged(reader, PLAYBOOK.get("facts"))]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("changes", {"since": "2026-01-01"}),
        ("memories-of-kind", {"kind": "fact"}),
        ("memories-of-agent", {"agent": "https://jido.ai/agents/ana"}),
    ],
)
def test_a_page_of_a_list_with_a_parameter_reads_the_memories_of_the_page_only(monkeypatch, name, options):
    index, said = new_index(), "jido:assertedBy <https://jido.ai/agents/ana>"
    for day in range(2, 22):
        index.apply(CONTEXT, f"{day}", fact(f"m:{day:02d}", day, f"m:{day:02d} {said} ."))
    texts, query = [], index.query
    monkeypatch.setattr(index, "query", lambda text, **more: texts.append(text) or query(text, **more))

    rows = reader_of(index).ask(name, project="demo", limit=2, **options)

    assert len(rows) == 2
    reads = [text for text in texts if "jido:summary ?summary" in text]
    assert [len(set(re.findall(r"<https://jido.ai/memory/\w+>", text))) for text in reads] == [3]


def test_a_batch_of_a_list_without_limit_reads_the_memories_of_the_batch_only(monkeypatch):
    index = new_index()
    for day in range(2, 12):
        index.apply(CONTEXT, f"{day}", fact(f"m:{day:02d}", day))
    texts, query = [], index.query
    monkeypatch.setattr(index, "query", lambda text, **more: texts.append(text) or query(text, **more))
    batches = reader_of(index).batches("timeline", 4, project="demo")

    read = [len(next(batches))]
    named = [len(set(re.findall(r"<https://jido.ai/memory/\w+>", text))) for text in texts]
    read += [len(batch) for batch in batches]

    assert max(named) == 5
    assert read == [4, 4, 2]


def test_a_long_list_ends_before_the_next_batch(monkeypatch):
    index, batches = new_index(), []
    index.apply(CONTEXT, "a", [row for day in range(1, 10) for row in fact(f"m:{day}", day)])
    monkeypatch.setattr(lists, "MAX_CANDIDATES", 2)

    def before_batch():
        batches.append(len(batches))
        if len(batches) == 3:
            raise Failed("the client has disconnected")

    with pytest.raises(Failed):
        reader_of(index).ask_page("facts", before_batch, project="demo", limit=8)
    assert len(batches) == 3


def test_a_page_of_many_rows_reads_the_dates_of_its_memories_only(monkeypatch):
    index = new_index()
    for start in range(0, 600, 100):
        names = [f"m:{number:04d}" for number in range(start, start + 100)]
        index.apply(CONTEXT, f"{start}", [row for name in names for row in fact(name, 1)])
    asked, read = [], index.triples
    monkeypatch.setattr(index, "triples", lambda *given, **more: asked.append((given, more)) or read(*given, **more))

    rows = reader_of(index).ask("facts", project="demo", limit=550)

    assert len(rows) == 550
    assert [given for given, more in asked if given[1:] == (None, jido("expiresOn")) and not more] == []


def test_a_list_follows_a_graph_that_is_emptied_and_refilled():
    index = new_index()
    index.apply(CONTEXT, "a", fact("m:a", 1) + fact("m:b", 1))
    reader = reader_of(index)
    assert listed(reader) == ["a", "b"]

    index.empty(CONTEXT, Version())
    index.apply(CONTEXT, "b", fact("m:b", 1) + fact("m:c", 2))

    assert listed(reader) == ["b", "c"]


def test_a_class_declared_after_its_members_is_listed():
    index = new_index()
    index.apply(
        CONTEXT, "a", fact("m:a", 1) + triples("m:b a m:Sort .") + fact("m:c", 1)[1:] + triples("m:c a m:Sort .")
    )
    reader = reader_of(index)
    assert listed(reader) == ["a"]

    index.apply(CONTEXT, "b", triples("m:Sort <http://www.w3.org/2000/01/rdf-schema#subClassOf> jido:Fact ."))

    assert listed(reader) == ["a", "c"]


def test_a_list_includes_many_rows_added_at_once():
    index = new_index()
    index.apply(CONTEXT, "a", fact("m:a", 1))
    reader = reader_of(index)
    assert listed(reader) == ["a"]

    index.apply(
        CONTEXT, "b", [row for n in range(9) for row in fact(f"m:b{n}", 2)] + triples("m:a jido:supersededBy m:b1 .")
    )

    assert listed(reader) == [f"b{n}" for n in range(9)]


@pytest.mark.parametrize(
    "odd",
    [
        [("_:b1", *row[1:]) for row in fact("m:x", 1)],
        fact("m:%20", 1),
    ],
    ids=["a node without a name", "an escaped name"],
)
def test_a_member_with_a_blank_or_escaped_node_is_listed(odd):
    index = new_index()
    index.apply(CONTEXT, "a", fact("m:a", 1) + list(odd) + fact("m:z", 1))

    rows = paged(reader_of(index), PLAYBOOK.get("facts"), limit=1)

    assert rows == reader_of(index).ask("facts", project="demo")
    assert len(rows) == 3


def test_times_outside_utc_are_ordered_by_the_engine():
    index = new_index()
    times = {"a": "2026-01-01T00:00:00+05:00", "b": "2025-12-31T20:00:00Z", "c": "2025-12-31T18:00:00Z"}
    for name, time in times.items():
        lesson = f"m:{name} a jido:LessonLearned ; jido:hasTimestamp '{time}'^^xsd:dateTime ."
        index.apply(CONTEXT, name, fact(f"m:{name}", 1, lesson))

    rows = paged(reader_of(index), PLAYBOOK.get("recent-lessons"), limit=1)

    assert [row["lesson"][-1] for row in rows] == ["b", "a", "c"]


#: Texts that are equal, or contain each other, but for case, dashes, underscores, white space and signs of a text.
TEXTS = st.text(st.sampled_from("aAb ßsİiΣςσ1.-_\n\u00ad\u2010\u0085\x1c\"'\\"), max_size=8)
FACTS = st.lists(st.tuples(TEXTS, st.none() | TEXTS, st.none() | TEXTS), min_size=3, max_size=6)


@settings(max_examples=examples(25))
@given(facts=FACTS, drawn=st.data())
def test_the_facts_about_a_text_equal_those_of_the_engine(facts, drawn):
    index = new_index()
    reader, whole = reader_of(index, playbook=PLAYBOOK), reader_of(index, playbook=Sorted())
    for number, (summary, detail, topic) in enumerate(facts):
        texts = {"detailedExplanation": detail, "topic": topic, "summary": summary}
        more = [(f"<https://jido.ai/memory/{number % 4}>", jido(name), literal(text))
                for name, text in texts.items() if text is not None]  # fmt: skip
        index.apply(CONTEXT, str(number), [*fact(f"m:{number % 4}", number + 1), *more])
        parts = [text[start:] for text in texts.values() for start in (0, 1) if text]
        query = drawn.draw(TEXTS | st.sampled_from(parts or ["a"]))

        for options in ({}, {"limit": 2}, {"include_inactive": True}):
            rows = whole.ask("facts-about", project="demo", topic=query, **options)
            assert reader.ask("facts-about", project="demo", topic=query, **options) == rows


HEADER = """#+ summary: Which?
#+ params: project asOf
#+ columns: fact summary
#+ order: {order}
#+ over: {over}
SELECT ?project ?asOf ?fact ?summary {where} {{ ?fact ?p ?summary }}
"""


@pytest.mark.parametrize(
    ("order", "over", "where"),
    [
        ("summary fact", "?fact a <urn:Fact>", "WHERE"),
        ("fact summary", "?other a <urn:Fact>", "WHERE"),
        ("fact summary", "<urn:x> <urn:p> ?fact", "WHERE"),
        ("-summary fact", "?fact a <urn:Fact>", "WHERE"),
        ("fact summary", "?fact a <urn:Fact>", ""),
    ],
)
def test_a_list_without_a_matching_order_is_refused_with_its_file(order, over, where):
    with pytest.raises(Failed, match=r"^role/which\.rq:5: over: ") as refusal:
        queries.parse("which", "role", HEADER.format(order=order, over=over, where=where))
    assert refusal.value.code == "invalid_config"


UNION = """WHERE {% # the {first}
  {% ?fact <urn:a> "} UNION {" } UNION # and
  {% { ?fact <urn:b> ?x } UNION { ?fact <urn:c> <urn:{> } }
  { ?fact <urn:d> ?y } UNION { ?fact <urn:e> ?z } }"""


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (UNION, UNION.replace("WHERE {%", "WHERE {").replace("{%", "{ HERE ")),
        ("WHERE {% ?fact ?p ?o { ?fact ?q ?o } UNION { } }", "WHERE { HERE  ?fact ?p ?o { ?fact ?q ?o } UNION { } }"),
    ],
)
def test_each_branch_of_a_union_that_opens_a_query_has_the_candidates(pattern, expected):
    """Else the engine evaluates a branch whole for each candidate: a hundred times slower for `stale`."""
    text = HEADER.format(order="fact summary", over="?fact a <urn:Fact>", where="WHERE")
    text = text.replace("WHERE { ?fact ?p ?summary }", pattern.replace("%", ""))

    assert queries.parse("which", "role", text).among("HERE") == text.replace(pattern.replace("%", ""), expected)


@pytest.mark.parametrize(
    ("over", "unless"),
    [
        ("", "#+ unless: ?it <urn:p> ?fact\n"),
        ("#+ over: ?fact a <urn:Fact>\n", "#+ unless: ?fact <urn:p> ?it\n"),
        ("#+ over: ?fact a <urn:Fact>\n", "#+ unless: ?it <urn:p> ?fact ; a <urn:It>\n"),
        ("#+ over: ?fact ?summary\n", "#+ unless: ?it <urn:p> ?fact\n"),
    ],
)
def test_an_invalid_unless_clause_is_refused_with_its_file(over, unless):
    text = HEADER.replace("#+ over: {over}\n", over + unless).format(order="fact summary", where="WHERE")
    text = text.replace("{ ?fact", "{ VALUES (?fact ?summary) { } ?fact")

    with pytest.raises(Failed, match=r"which\.rq:[56]: unless: "):
        queries.parse("which", "role", text)


def test_a_root_cause_is_listed_while_no_active_error_points_to_it():
    def memory_triples(name, kind, day, more=""):
        return triples(
            f"m:{name} a jido:{kind} ; jido:summary 'it' ; jido:appliesToProject p:demo ; jido:hasAssertionStatus"
            f" jido:Asserted ; jido:recordedAt '2026-01-{day:02d}T00:00:00Z'^^xsd:dateTime . {more}"
        )

    index = new_index()
    reader = reader_of(index)

    def listed_on(day):
        page_rows = paged(reader, PLAYBOOK.get("unexplained-root-causes"), as_of=f"2026-01-{day:02d}T12:00:00Z")
        return [row["root"].rsplit("/", 1)[-1] for row in page_rows]

    index.apply(CONTEXT, "a", memory_triples("root", "RootCause", 1) + memory_triples("other", "RootCause", 1))
    index.apply(CONTEXT, "b", memory_triples("err", "Error", 2, "m:err jido:hasRootCause m:root ."))
    assert listed_on(9) == ["other"]
    index.apply(CONTEXT, "c", memory_triples("end", "DeletedMarker", 4, "m:err jido:invalidatedBy m:end ."))

    assert [listed_on(day) for day in (1, 3, 5)] == [["other", "root"], ["other"], ["other", "root"]]


def test_a_repeated_page_reflects_later_writes():
    index = new_index()
    index.apply(CONTEXT, "a", fact("m:a", 1) + fact("m:b", 2))
    reader = reader_of(index)
    first = reader.ask("facts", project="demo", as_of="2027-01-01", limit=5)
    first[0]["summary"] = "changed by the one who asked"
    repeated = reader.ask("facts", project="demo", as_of="2027-01-01", limit=5)

    index.apply(CONTEXT, "b", fact("m:0", 2, "m:b jido:supersededBy m:0 ."))
    index.apply(CONTEXT, "c", fact("m:c", 1, "m:a jido:supersededBy m:c ."))

    assert [row["summary"] for row in repeated] == ["a fact", "a fact"]
    assert [row["fact"][-1] for row in reader.ask("facts", project="demo", as_of="2027-01-01", limit=5)] == ["0", "c"]


def test_an_interrupted_update_of_a_list_loses_no_row():
    index = new_index()
    reader = reader_of(index)
    index.apply(CONTEXT, "a", fact("m:a", 1))
    assert listed(reader) == ["a"]
    original = index.query

    def interrupted(*given, **kwargs):
        raise KeyboardInterrupt

    for number in range(1, 3):
        index.apply(CONTEXT, f"b{number}", fact(f"m:b{number}", 1 + number))
        index.query = interrupted
        with pytest.raises(KeyboardInterrupt):
            listed(reader)
        index.query = original
        assert sorted(listed(reader)) == sorted(["a", "b1", "b2"][: 1 + number])
