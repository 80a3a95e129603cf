import gc
import json
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_world import as_stored, commit_on

from jidomem.errors import InvalidRequest
from jidomem.index.results import GRAPH_FORMATS, AnswerLimits, SerializedAnswer, Solutions
from jidomem.index.store import OxigraphIndex, Watermark, trig
from jidomem.journal.commit import advance
from jidomem.rdf.terms import parse_literal
from jidomem.rdf.vocab import ONTOLOGY_GRAPH
from jidomem.records.intent import Version

A, B = "https://jido.ai/projects/a/graphs/long-term-context", "https://jido.ai/projects/b/graphs/long-term-context"
ROW = ("<urn:s>", "<urn:p>", '"a \\"b\\"\\n\\u0001é"')


@pytest.fixture(params=["memory", "disk"])
def empty(request, tmp_path):
    return OxigraphIndex(ox.Store(tmp_path / "store") if request.param == "disk" else None)


@pytest.fixture
def index(empty):
    empty.apply(A, "c1", [ROW, ("<urn:s>", "<urn:q>", "<urn:o>")])
    return empty


def test_applied_triples_are_read_back_exactly(index):
    assert set(index.triples(A)) == {ROW, ("<urn:s>", "<urn:q>", "<urn:o>")}
    assert list(index.triples(A, None, "<urn:p>")) == list(index.triples(A, None, None, ROW[2])) == [ROW]
    assert list(index.triples(B)) == []


def test_triples_are_applied_once_under_a_name(index):
    index.apply(A, "c1", [("<urn:x>", "<urn:p>", '"1"')])
    assert list(index.triples(A, "<urn:x>")) == []


def test_malformed_triples_leave_the_index_unchanged(index):
    with pytest.raises(SyntaxError):
        index.apply(A, "c2", [("<urn:x>", "<urn:p>", '"1"'), ("<urn:x>", "<urn:p>", "")])
    assert list(index.triples(A, "<urn:x>")) == []


def test_a_reader_sees_the_old_or_the_new_content_during_a_replacement(index):
    def other(part):
        filled = OxigraphIndex()
        filled.load(A, [commit_on(Version(), part, [(f"<urn:{part}:{n}>", "<urn:p>", '"1"') for n in range(2000)])])
        return filled

    index.replace_by(other("a"))
    whole = len(list(index.triples(A)))
    counts, stopped = set(), threading.Event()

    def read():
        while not stopped.is_set():
            solutions = index.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", graphs=[A])
            counts.add(solutions.rows[0][0])

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for content in [other(part) for part in "ba" * 5]:
                index.replace_by(content)
        finally:
            stopped.set()
        reading.result()
    assert {parse_literal(count).text for count in counts} == {str(whole)}


def test_the_ontology_is_replaced_whole(index):
    index.put_ontology([("<urn:A>", "<urn:sub>", "<urn:B>"), ("_:x", "<urn:sub>", '"tag"@en')])
    index.put_ontology([("<urn:C>", "<urn:sub>", "<urn:D>")])
    assert list(index.triples(ONTOLOGY_GRAPH)) == [("<urn:C>", "<urn:sub>", "<urn:D>")]


def test_a_query_reads_only_the_given_graphs(index):
    index.apply(B, "c1", [("<urn:s>", "<urn:p>", '"of b"')])
    for text in ("SELECT ?o { ?s <urn:p> ?o }", "SELECT ?o { GRAPH ?g { ?s <urn:p> ?o } }"):
        assert index.query(text, graphs=[B]) == Solutions(("o",), (('"of b"',),))
        assert index.query(text, graphs=[]) == Solutions(("o",), ())
        solutions = index.query(text, graphs=[A, B])
        assert isinstance(solutions, Solutions)
        assert {row[0] for row in solutions.rows} == {ROW[2], '"of b"'}


@pytest.mark.parametrize("term", [ROW[2], "<urn:o>", '"x"@en', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'])
def test_a_variable_is_bound_to_a_term(index, term):
    assert index.query("SELECT ?o ?x {}", graphs=[A], bindings={"o": term}) == Solutions(("o", "x"), ((term, None),))


def test_ask_and_construct_queries_are_answered(index):
    assert index.query("ASK { ?s <urn:q> ?o }", graphs=[A]) is True
    assert index.query("ASK { ?s <urn:q> ?o }", graphs=[B]) is False
    assert index.query("CONSTRUCT { ?o <urn:r> 1 } { ?s <urn:q> ?o }", graphs=[A]) == (
        ("<urn:o>", "<urn:r>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    )


def test_an_answer_is_serialized_in_the_requested_format_of_its_kind(index):
    select, ask = "SELECT ?o { ?s <urn:q> ?o }", "ASK { ?s <urn:q> ?o }"
    graph = "CONSTRUCT { ?s <urn:q> ?o } { ?s <urn:q> ?o }"
    assert index.serialized(select, graphs=[A], rows_as="tsv") == SerializedAnswer("select", b"?o\n<urn:o>\n")
    assert json.loads(index.serialized(select, graphs=[A]).data)["results"]["bindings"][0]["o"]["value"] == "urn:o"
    assert json.loads(index.serialized(ask, graphs=[A], rows_as="csv").data)["boolean"] is True
    assert b"<boolean>false</boolean>" in index.serialized(ask, graphs=[B], rows_as="xml").data
    assert index.serialized(graph, graphs=[A], graph_as="ntriples").data == b"<urn:s> <urn:q> <urn:o> .\n"
    for form in GRAPH_FORMATS:
        written = index.serialized(graph, graphs=[A], graph_as=form)
        assert (written.kind, [str(t) for t in ox.parse(written.data, format=GRAPH_FORMATS[form])]) == (
            "graph",
            ["<urn:s> <urn:q> <urn:o>"],
        )
    with pytest.raises(InvalidRequest, match="line 1 column 7"):
        index.serialized("SELEKT", graphs=[A])


@pytest.mark.parametrize("text", ["SELECT * { ?s ?p ?o }", "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }"])
def test_an_answer_refused_in_one_thread_is_freed_by_it(index, text, monkeypatch):
    faults = []
    monkeypatch.setattr(sys, "unraisablehook", lambda fault: faults.append(str(fault.exc_value)))
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(index.serialized, text, graphs=[A], within=AnswerLimits(rows=1)).exception()

    code = error.code
    del error
    gc.collect()

    assert (code, faults) == ("result_too_large", [])


def test_observers_are_notified_of_added_and_replaced_triples(index):
    events = []

    class Observer:
        def applied(self, graph, triples):
            events.append((graph, set(triples)))

        def reset(self, graph):
            events.append((graph, set(index.triples(graph))))

    first = commit_on(Version(), "a")
    second, replaced = commit_on(Version.of([first.head]), "b"), commit_on(Version(), "c")
    index.observers.append(Observer())
    index.load(B, [first, second])
    index.load(B, [first])
    other = OxigraphIndex()
    other.bulk_load(B, [replaced])
    index.replace_by(other)
    assert events == [(B, first.triples), (B, second.triples), (B, as_stored(replaced.triples))]


def test_a_malformed_query_is_refused_with_its_position(index):
    with pytest.raises(InvalidRequest, match=r"^line 1 column 7: expected") as refusal:
        index.query("SELEKT", graphs=[A])
    assert refusal.value.code == "malformed_query"


def chain(count, first=0):
    """Return a chain of commits, each with 50 triples of one subject and its description."""
    version, commits = Version(), []
    for number in range(first, first + count):
        body = [(f"<urn:s{number}>", "<urn:p>", f'"{part}"') for part in range(50)]
        commits.append(commit_on(version, str(number), body, graph=A))
        version = advance(version, commits[-1:])
    return commits


def test_concurrent_readers_see_whole_commits(empty):
    commits, stopped = chain(60), threading.Event()
    counts = "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s"

    def read():
        results = set()
        while not stopped.is_set():
            results |= {row[0] for row in empty.query(counts, graphs=[A]).rows}
            results.add(f'"{len(list(empty.triples(A, None, "<urn:p>"))) % 50}"')
        return results

    with ThreadPoolExecutor(3) as pool:
        reads = [pool.submit(read) for _ in range(2)]
        try:
            for start in range(0, 60, 3):
                empty.load(A, commits[start : start + 3])
        finally:
            stopped.set()
        results = set().union(*(result.result() for result in reads))

    assert results <= {'"50"^^<http://www.w3.org/2001/XMLSchema#integer>', '"0"'}
    assert len(list(empty.triples(A, None, "<urn:p>"))) == 60 * 50


COMMITS = chain(12)
ALL = as_stored(frozenset().union(*(commit.triples for commit in COMMITS)))


@settings(max_examples=8)
@given(cuts=st.sets(st.integers(1, 11)), bulk=st.booleans(), again=st.lists(st.integers(0, 11), max_size=3))
@pytest.mark.parametrize("on_disk", [False, True])
def test_the_content_is_the_union_of_the_commits_however_grouped(on_disk, cuts, bulk, again):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # the store may still clean up
        index = OxigraphIndex(ox.Store(folder) if on_disk else None)
        edges = [0, *sorted(cuts), 12]
        for start, end in pairwise(edges):
            load = index.bulk_load if bulk and end == 12 else index.load
            load(A, COMMITS[start:end])
            assert index.mark(A) == Watermark(end, Version.of([COMMITS[end - 1].head]))
        for number in again:
            index.load(A, COMMITS[number : number + 1])
        assert set(index.triples(A)) == ALL
        assert index.mark(A) == Watermark(12, Version.of([COMMITS[-1].head]))


@given(order=st.permutations(range(12)))
@settings(max_examples=25)
def test_the_content_does_not_depend_on_the_order_of_commits(order):
    index = OxigraphIndex()
    for number in order:
        index.load(A, [COMMITS[number]])
    assert set(index.triples(A)) == ALL
    assert index.mark(A).commits == 12


def test_the_watermark_of_a_store_is_written_together_with_its_commits(tmp_path):
    store = ox.Store(tmp_path / "store")
    index = OxigraphIndex(store)
    index.load(A, COMMITS[:5])
    index.load(A, COMMITS[5:7])
    between = ox.Store()  # the state after a crash: the new mark beside the old one
    between.extend(store)
    between.load(trig(A, COMMITS[7:9], index.mark(A).after(COMMITS[7:9])), ox.RdfFormat.TRIG)
    assert OxigraphIndex(store).marks == {A: Watermark(7, Version.of([COMMITS[6].head]))}
    assert OxigraphIndex(between).marks == {A: Watermark(9, Version.of([COMMITS[8].head]))}


def test_an_index_moved_to_disk_keeps_its_content(tmp_path):
    index = OxigraphIndex()
    index.put_ontology([("<urn:C>", "<urn:sub>", "_:x")])
    index.load(A, COMMITS[:5])
    index.move_to(ox.Store(tmp_path / "store"), str(tmp_path / "passage"))
    index.load(A, COMMITS[5:])
    index.backup(str(tmp_path / "backup"))
    moved = OxigraphIndex(ox.Store(tmp_path / "backup"))
    for each_index in (index, moved):
        assert (set(each_index.triples(A)), each_index.mark(A).commits) == (ALL, 12)
        assert [row[:2] for row in each_index.triples(ONTOLOGY_GRAPH)] == [("<urn:C>", "<urn:sub>")]


class Changes:
    """An observer that records its notifications."""

    def __init__(self, index):
        self.seen = []
        index.observers.append(self)

    def applied(self, graph, triples):
        self.seen.append(graph)

    def reset(self, graph):
        self.seen.append("reset")


def test_an_index_continues_on_its_backup_with_later_and_queued_commits(tmp_path):
    index = OxigraphIndex(ox.Store(tmp_path / "store"))
    index.load(A, COMMITS[:5])
    index.backup(str(tmp_path / "backup"))
    index.load(A, COMMITS[5:7])
    index.load(B, COMMITS[:2])
    index.load(A, COMMITS[7:9])
    index.queue(A, COMMITS[9])
    changes, generation = Changes(index), index.generation

    assert index.continue_on(OxigraphIndex(ox.Store(tmp_path / "backup")))

    assert (changes.seen, index.generation) == ([], generation)
    assert index.mark(A).commits == 10
    index.load(A, COMMITS[10:])
    assert (set(index.triples(A)), index.mark(A).commits, index.mark(B).commits) == (ALL, 12, 2)
    index.backup(str(tmp_path / "next"))
    assert OxigraphIndex(ox.Store(tmp_path / "next")).marks == index.marks


@pytest.mark.parametrize("change", ["clear", "other triples", "ontology", "replace", "end", "none"])
def test_an_index_replaced_since_its_backup_stays_on_its_store(tmp_path, change):
    index = OxigraphIndex(ox.Store(tmp_path / "store"))
    index.load(A, COMMITS[:5])
    if change != "none":
        index.backup(str(tmp_path / "backup"))
    if change == "clear":
        index.empty(A, Version.of([COMMITS[4].head]))
    elif change == "other triples":
        index.apply(A, "c1", [ROW])
    elif change == "ontology":
        index.put_ontology([("<urn:C>", "<urn:sub>", "_:x")])
    elif change == "replace":
        other = OxigraphIndex()
        other.load(A, COMMITS[:6])
        index.replace_by(other)
    elif change == "end":
        index.end_backup()
    before, marks = set(index.triples(A)), index.marks

    assert not index.continue_on(OxigraphIndex(ox.Store(tmp_path / "backup")))

    assert (set(index.triples(A)), index.marks) == (before, marks)


def test_concurrent_reads_and_writes_are_consistent_during_a_switch_to_a_backup(tmp_path):
    index = OxigraphIndex(ox.Store(tmp_path / "store"))
    index.load(A, COMMITS[:3])
    stop, counts = threading.Event(), []

    def read():
        while not stop.is_set():
            rows = set(index.triples(A))
            counts.append((index.mark(A).commits, len(rows)))

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for at, commit in enumerate(COMMITS[3:]):
            index.backup(str(tmp_path / f"{at}"))
            with ThreadPoolExecutor(1) as writer:
                written = writer.submit(index.load, A, [commit])
                assert index.continue_on(OxigraphIndex(ox.Store(tmp_path / f"{at}")))
                written.result()
        stop.set()
        reading.result()
    assert (set(index.triples(A)), index.mark(A).commits) == (ALL, 12)
    assert counts
    assert all(after[1] >= before[1] for before, after in pairwise(counts))


def test_observers_are_notified_of_a_commit_stored_right_before_a_full_disk():
    class Full:
        def __init__(self):
            self.store = ox.Store()

        def __getattr__(self, name):
            return getattr(self.store, name)

        def remove(self, quad):
            raise OSError(28, "No space left on device")

    index, events = OxigraphIndex(Full()), []

    class Observer:
        def applied(self, graph, triples):
            events.append(set(triples))

        def reset(self, graph):
            events.clear()

    index.observers.append(Observer())
    first = commit_on(Version(), "a")
    second = commit_on(Version.of([first.head]), "b")
    index.load(A, [first])
    with pytest.raises(OSError, match="No space left"):
        index.load(A, [second])
    assert index.mark(A).version == Version.of([second.head])
    assert events == [first.triples, second.triples]
