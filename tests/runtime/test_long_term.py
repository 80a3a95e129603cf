import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pyoxigraph as ox
import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem import LongTerm, TripleStore
from jidomem.base import files
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, NotFound, PolicyDenied

A, FACT = "urn:example:a", "https://jido.ai/memory/f-1"
GRAPHS = {
    "context": "https://jido.ai/projects/p/graphs/long-term-context",
    "codebase": "https://jido.ai/projects/p/graphs/elixir-codebase",
    "history": "https://jido.ai/projects/p/graphs/conversation-history",
    "system": "https://jido.ai/projects/p/graphs/system-knowledge",
}
#: A fact with the property names of the memory guide, which its importer knows.
GUIDE = "http://jidoka.ai/ontology"


def fact(local_id="f-1", text="the build needs Rust 1.80", iri=FACT, space=f"{GUIDE}#"):
    return [(iri, "rdf:type", f"{space}Fact"), (iri, f"{space}content", text), (iri, f"{space}id", local_id)]


GOVERNED = [
    (FACT, "jido:appliesToProject", "https://jido.ai/projects/p"),
    (FACT, "jido:assertedBy", "https://jido.ai/agents/a"),
    (FACT, "jido:assertedIn", "https://jido.ai/sessions/s"),
    (FACT, "jido:hasConfidence", "jido:High"),
    (FACT, "jido:hasTimestamp", datetime(2026, 1, 1, tzinfo=UTC)),
]


def statements_of(long_term, graph):
    """Return the statements of a graph about the resources of these tests, without those of the journal."""
    rows = long_term.query(
        f"SELECT ?s ?p ?o {{ GRAPH <{GRAPHS[graph]}> {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?s), 'urn:e')) }}"
    )
    return sorted((r["s"], r["p"], r["o"]) for r in rows if "/ontology#recorded" not in r["p"])


def all_statements(long_term):
    return sorted(map(str, long_term.query("SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }")))


@pytest.fixture(params=["plain", "root"])
def long_term(request):
    if request.param == "plain":
        return LongTerm("p")
    return request.getfixturevalue("memory").long_term("p")


def test_a_project_has_four_named_graphs(long_term):
    # E034 E035
    assert dict(long_term.graphs) == GRAPHS
    for short, iri in GRAPHS.items():
        long = iri.rsplit("/", 1)[1]
        for name in (short, long, iri, f"http://jidoka.ai/graphs/{long}", f"http://jidoka.ai/graphs/{short}"):
            assert long_term.graph_iri(name) == iri


def test_statements_are_inserted_into_the_named_graph(long_term):
    # E036 E038
    for graph in ("codebase", "http://jidoka.ai/graphs/conversation-history", "system-knowledge"):
        assert (
            long_term.insert([(A, "rdf:type", "urn:example:Thing"), (A, "urn:example:in", graph)], graph=graph) is True
        )
    long_term.insert([(A, "urn:example:also", 5)], graph="history")

    assert [o for _, _, o in statements_of(long_term, "codebase")] == ["urn:example:Thing", "codebase"]
    assert [o for _, _, o in statements_of(long_term, "history")] == [
        "urn:example:Thing",
        5,
        "http://jidoka.ai/graphs/conversation-history",
    ]
    assert [o for _, _, o in statements_of(long_term, "system")] == ["urn:example:Thing", "system-knowledge"]
    assert statements_of(long_term, "context") == []


def test_statements_are_inserted_into_context_by_default(long_term):
    # E036
    assert long_term.insert(fact()) is True

    query = "PREFIX jido: <https://jido.ai/ontology#> SELECT ?s ?g { GRAPH ?g { ?s a jido:Fact ; jido:summary ?text } }"
    assert long_term.query(query) == [{"s": FACT, "g": GRAPHS["context"]}]


def test_a_query_covers_all_four_graphs_unless_one_is_named(long_term):
    # E041
    for graph in ("codebase", "history", "system"):
        long_term.insert([(A, "urn:example:in", graph)], graph=graph)
    long_term.insert(fact(text="context"))

    path = "<urn:example:in>|<https://jido.ai/ontology#summary>"
    assert {row["o"] for row in long_term.query(f"SELECT ?o {{ ?s {path} ?o }}")} == set(GRAPHS)
    for graph, iri in GRAPHS.items():
        assert long_term.query(f"SELECT ?o {{ GRAPH <{iri}> {{ ?s {path} ?o }} }}") == [{"o": graph}]
        assert long_term.query(f"SELECT ?o FROM <{iri}> {{ ?s {path} ?o }}") == [{"o": graph}]
    other = GRAPHS["history"].replace("/p/", "/q/")
    assert long_term.query(f"SELECT ?o FROM <{other}> {{ ?s ?p ?o }}") == []


def test_the_shipped_ontology_is_inserted_into_the_system_graph(long_term):
    # E073 E098
    for path in files.ontology_files():
        quads = ox.parse(path=str(path), format=ox.RdfFormat.TURTLE)
        rows = [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]
        assert long_term.insert(rows, graph="system") is True, path.name

    jido, broader = "https://jido.ai/ontology#", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>+"
    query = f"ASK FROM <{GRAPHS['system']}> {{ <{jido}Bug> {broader} <{jido}MemoryItem> }}"
    assert long_term.query(query) is True
    assert long_term.query(query.replace(GRAPHS["system"], GRAPHS["codebase"])) is False


def test_code_is_inserted_into_the_codebase_graph_and_configuration_into_the_system_graph(long_term):
    # E098
    project, module = "https://jido.ai/projects/p", "https://example.org/code/Index"
    code = [
        (project, "rdf:type", "jido:Project"),
        (project, "jido:hasModule", module),
        (module, "rdf:type", "jido:Module"),
        (module, f"{GUIDE}#hasFunction", f"{module}/open"),
        (f"{module}/open", "rdf:type", "jido:Function"),
    ]
    setup = [
        ("urn:example:config", "rdf:type", "urn:example:Configuration"),
        ("urn:example:config", "urn:example:maxTokens", 100_000),
    ]

    assert long_term.insert(code, graph="codebase") is True
    assert long_term.insert(setup, graph="system") is True

    links = "<https://jido.ai/ontology#hasModule>|<https://jido.ai/ontology#hasFunction>"
    assert long_term.query(f"SELECT ?of ?code FROM <{GRAPHS['codebase']}> {{ ?of {links} ?code }} ORDER BY ?of") == [
        {"of": module, "code": f"{module}/open"},
        {"of": project, "code": module},
    ]
    assert statements_of(long_term, "system") == [
        ("urn:example:config", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "urn:example:Configuration"),
        ("urn:example:config", "urn:example:maxTokens", 100_000),
    ]
    assert statements_of(long_term, "codebase") == []


def test_updates_and_federated_queries_are_refused(long_term):
    # E038
    long_term.insert([(A, "urn:example:in", "history")], graph="history")

    assert long_term.query("ASK { ?s <urn:example:in> 'history' }") is True
    assert long_term.query("CONSTRUCT WHERE { ?s <urn:example:in> ?o }")[0][:2] == (f"<{A}>", "<urn:example:in>")
    for text, code in (
        ("DELETE WHERE { ?s ?p ?o }", "update_refused"),
        ("SELECT * { SERVICE <urn:x> {} }", "federation_refused"),
    ):
        with pytest.raises(PolicyDenied) as refusal:
            long_term.query(text)
        assert refusal.value.code == code


def test_an_unknown_graph_is_an_error_and_nothing_is_inserted(long_term):
    # E037
    for name in ("histroy", "default", None, "urn:example:graph", GRAPHS["history"].replace("/p/", "/q/")):
        for call in (lambda name: long_term.insert([(A, "urn:p", "x")], graph=name), long_term.clear_graph):
            with pytest.raises(NotFound, match="there is no graph") as refusal:
                call(name)
            assert refusal.value.hint
    long_term.insert([(A, "urn:p", "y")], graph="history")

    assert statements_of(long_term, "history") == [(A, "urn:p", "y")]


@pytest.mark.parametrize("space", [f"{GUIDE}#", f"{GUIDE}/", "https://jido.ai/ontology#"])
def test_get_fact_returns_every_statement_of_the_fact_with_that_id(long_term, space):
    # E039
    words = (
        {"Fact": "Fact", "content": "content", "id": "id"}
        if GUIDE in space
        else {"content": "summary", "id": "localId"}
    )
    rows = [
        (s, p if p == "rdf:type" else space + words[p.removeprefix(space)], o) for s, p, o in fact("f 1", space=space)
    ]
    long_term.insert([*rows, *(GOVERNED if GUIDE not in space else ())])
    long_term.insert(fact("f-2", "another", iri="https://jido.ai/memory/f-2"))

    statements = long_term.get_fact("f 1")

    assert {row["subject"] for row in statements} == {FACT}
    values = {row["predicate"].rsplit("#", 1)[1]: row["object"] for row in statements}
    assert values["summary"] == "the build needs Rust 1.80"
    assert (values["localId"], values["type"]) == ("f 1", "https://jido.ai/ontology#Fact")
    assert statements == sorted(statements, key=lambda row: row["predicate"]) != []
    for unknown in ("f-9", '" } #', "f 1\\", ""):
        assert long_term.get_fact(unknown) == []


def test_facts_with_former_property_names_are_found():
    # E039
    store = TripleStore()
    store.insert(fact(space=f"{GUIDE}/"), graph=GRAPHS["context"])

    assert {row["object"] for row in LongTerm("p", store).get_fact("f-1")} >= {"f-1", "the build needs Rust 1.80"}


def test_the_store_and_the_base_are_options(tmp_path):
    # E040
    with TripleStore("disk", path=tmp_path / "store", base="https://example.org/") as store:
        p_memory, q_memory = LongTerm("p", store), LongTerm("q", store, base="https://other.example/")
        p_memory.insert([(A, "urn:p", "of p")], graph="history")
        q_memory.insert([(A, "urn:p", "of q")], graph="history")
        assert [row["o"] for row in p_memory.query("SELECT ?o { ?s ?p ?o }")] == ["of p"]
        assert store.graphs() == ["https://example.org/graphs/default",
                                  "https://example.org/projects/p/graphs/conversation-history",
                                  "https://other.example/projects/q/graphs/conversation-history"]  # fmt: skip
    for project in ("Bad Name", "", None):
        with pytest.raises(NotFound, match="is not a project id"):
            LongTerm(project)
    with pytest.raises(InvalidRequest, match="is not an IRI that ends in / or #"):
        LongTerm("p", base="nowhere")


def test_values_have_their_types_in_every_graph(long_term):
    # E042
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    long_term.insert(
        [(A, "urn:example:n", 5), (A, "urn:example:on", True), (A, "urn:example:at", moment)], graph="system"
    )
    long_term.insert(
        [(A, "urn:example:text", ("urn:example:b", "xsd:string")), (A, "urn:example:to", "urn:example:b")],
        graph="system",
    )

    assert [o for _, _, o in statements_of(long_term, "system")] == [moment, 5, True, "urn:example:b", "urn:example:b"]
    assert [row["p"] for row in long_term.query("SELECT ?p { ?s ?p <urn:example:b> }")] == ["urn:example:to"]


def test_a_plain_graph_is_cleared_and_the_others_remain():
    # E045
    long_term = LongTerm("p")
    for graph in GRAPHS:
        long_term.insert([(A, "urn:example:in", graph)], graph=graph)

    assert long_term.clear_graph("context") is True

    assert {row["o"] for row in long_term.query("SELECT ?o { ?s ?p ?o }")} == {"codebase", "history", "system"}


def test_statements_inserted_into_context_are_validated_like_intents(memory):
    long_term = memory.long_term("p")
    long_term.insert(fact())
    cases = {
        "missing_required_fields": [("urn:example:f", "rdf:type", "jido:Fact"), ("urn:example:f", "jido:summary", "x")],
        "unknown_term": [*fact(iri="urn:example:g", text="g"), ("urn:example:g", "jido:topik", "x")],
        "iri_exists": fact(text="something else"),
        "shape_violation": [(FACT, "jido:about", "x")],
    }

    for code, statements in cases.items():
        with pytest.raises(IntentRefused) as refusal:
            long_term.insert(statements)
        assert (refusal.value.code, refusal.value.position) == (code, None)

    assert [row["fact"] for row in memory.reader.list_facts_with_confidence("p")] == [FACT]


def test_statements_in_context_are_stored_all_or_none(memory):
    # E050
    long_term = memory.long_term("p")
    module = [("urn:example:m", "rdf:type", "jido:Module"), ("urn:example:m", "rdfs:label", "parser")]
    invalid = [("urn:example:f", "rdf:type", "jido:Fact"), ("urn:example:f", "jido:summary", "x")]

    with pytest.raises(IntentRefused):
        long_term.insert([*module, *fact(), *invalid])
    assert memory.journal.streams() == []

    long_term.insert([*module, *fact(), *fact("f-2", "it embeds", "https://jido.ai/memory/f-2")])
    assert memory.catch_up("p").position == 1


def test_a_repeated_insert_writes_nothing(memory):
    # E047
    long_term = memory.long_term("p")
    thing = [(A, "rdf:type", "urn:example:Thing"), (A, "urn:example:n", ("05", "xsd:integer"))]
    for _ in range(2):
        long_term.insert(fact())
        long_term.insert(thing, graph="history")

    streams = {stream.name: memory.follower.catch_up(stream).position for stream in memory.journal.streams()}
    assert streams == {"memory": 1, "history": 1}


@pytest.mark.parametrize("statements", [
    [*fact(), (FACT, f"{GUIDE}#content", "a second text")],
    [*fact(), (FACT, "rdf:type", "jido:Task")],
    [*fact(), (FACT, "jido:recordedAt", datetime(2026, 1, 1, tzinfo=UTC))],
    [*fact(), (FACT, "jido:hasAssertionStatus", "jido:Proposed")],
    [*fact(), (FACT, "jido:supersededBy", "https://jido.ai/memory/f-9")],
    [("https://jido.ai/memory/f-9", "jido:supersededBy", FACT)],
    [("urn:example:c", "rdf:type", "jido:Commit")],
    [("urn:example:old", "rdfs:label", "another name")],
])  # fmt: skip
def test_a_statement_that_no_memory_can_contain_is_refused(memory, statements):
    long_term = memory.long_term("p")
    long_term.insert([("urn:example:old", "rdf:type", "jido:Module"), ("urn:example:old", "rdfs:label", "old")])

    with pytest.raises(JidomemError):
        long_term.insert(statements)

    assert memory.catch_up("p").position == 1


def test_a_superseded_fact_and_its_successor_are_inserted_together(memory):
    newer = "https://jido.ai/memory/f-2"
    memory.long_term("p").insert(
        [*fact(), *fact("f-2", "the build needs Rust 1.90", newer), (FACT, "jido:supersededBy", newer)]
    )

    assert [row["fact"] for row in memory.reader.list_facts_with_confidence("p")] == [newer]


@pytest.mark.parametrize("graph", ["codebase", "history", "system"])
def test_the_other_graphs_are_validated_by_the_ontology_and_refuse_memories(memory, graph):
    long_term = memory.long_term("p")
    project = "https://jido.ai/projects/p"
    cases = {
        "unknown_term": [(A, "jido:hasModul", "urn:example:m")],
        "shape_violation": [*fact(), *GOVERNED],
    }
    for code, statements in cases.items():
        with pytest.raises(IntentRefused) as refusal:
            long_term.insert(statements, graph=graph)
        assert refusal.value.code == code
    assert "only the writer states this" in refusal.value.detail
    for misplaced in ([(project, "rdf:type", "jido:Project"), (project, "jido:hasModule", "not an IRI")],
                      [(A, "urn:example:n", ("five", "xsd:integer"))],
                      [(A, "jido:recordedAt", datetime(2026, 1, 1, tzinfo=UTC))]):  # fmt: skip
        with pytest.raises(IntentRefused):
            long_term.insert(misplaced, graph=graph)
    assert memory.journal.streams() == []

    memory.writer.submit_intent("p", intent())  # the project is known after it
    long_term.insert(
        [(project, "jido:hasModule", "urn:example:m"), ("urn:example:m", "rdf:type", "jido:Module")], graph=graph
    )
    assert (
        "urn:example:m",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
        "https://jido.ai/ontology#Module",
    ) in statements_of(long_term, graph)


def test_a_second_value_of_a_functional_property_is_refused(memory):
    long_term = memory.long_term("p")
    file = "urn:example:file"
    long_term.insert([(file, "rdf:type", "jido:SourceFile"), (file, "jido:filePath", "a.py")], graph="codebase")

    long_term.insert([(file, "jido:filePath", "a.py"), (file, "rdfs:label", "a")], graph="codebase")
    with pytest.raises(IntentRefused, match="has one value, and urn:example:file has one already"):
        long_term.insert([(file, "jido:filePath", "b.py")], graph="codebase")

    assert [o for _, p, o in statements_of(long_term, "codebase") if p.endswith("filePath")] == ["a.py"]


@pytest.mark.parametrize("graph", ["codebase", "history", "system"])
def test_a_cleared_graph_is_empty_and_its_journal_has_the_earlier_statements(tmp_path, graph):
    # E045
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        long_term = memory.long_term("p")
        long_term.insert(fact())
        for name in ("codebase", "history", "system"):
            long_term.insert([(A, "urn:example:in", name), (A, "rdf:type", "urn:example:Thing")], graph=name)
        others = [row for row in all_statements(long_term) if GRAPHS[graph] not in row]

        assert long_term.clear_graph(graph) is True
        assert all_statements(long_term) == others

        stream = next(stream for stream in memory.journal.streams() if stream.graph == GRAPHS[graph])
        commits = list(memory.journal.read(stream))
        assert (len(commits), memory.damage("p")) == (2, ())
        assert any("urn:example:Thing" in term for triple in commits[0].triples for term in triple)

    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as memory:
        long_term = memory.long_term("p")
        assert all_statements(long_term) == others
        long_term.insert([(A, "urn:example:in", "again")], graph=graph)
        assert statements_of(long_term, graph) == [(A, "urn:example:in", "again")]


def test_an_empty_graph_is_cleared_without_a_commit(memory):
    long_term = memory.long_term("p")

    for _ in range(2):
        long_term.clear_graph("history")
    assert memory.journal.streams() == []
    long_term.insert([(A, "urn:example:in", "history")], graph="history")
    for _ in range(2):
        long_term.clear_graph("history")

    assert [len(list(memory.journal.read(stream))) for stream in memory.journal.streams()] == [2]


def test_the_context_graph_cannot_be_cleared(memory):
    # E045
    memory.writer.submit_intent("p", intent())
    before = all_statements(memory.long_term("p"))

    with pytest.raises(PolicyDenied, match="are never cleared") as refusal:
        memory.long_term("p").clear_graph("context")

    assert (refusal.value.code, "invalidate" in refusal.value.hint) == ("index_is_derived", True)
    assert all_statements(memory.long_term("p")) == before


def test_concurrent_inserts_and_clears_leave_complete_inserts(memory):
    # E050
    long_term, sizes = memory.long_term("p"), set()
    memory.writer.submit_intent("p", intent())

    def work(number):
        node = f"urn:example:{number}"
        long_term.insert([(node, "urn:example:n", n) for n in range(8)], graph="history")
        if number % 5 == 0:
            long_term.clear_graph("history")
        query = "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:example:n> ?o } GROUP BY ?s"
        sizes.update(row["n"] for row in long_term.query(query))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(20)))
    long_term.insert([("urn:example:last", "urn:example:n", n) for n in range(8)], graph="history")

    assert sizes <= {8}
    (history,) = [stream for stream in memory.journal.streams() if stream.name == "history"]
    clears = [c for c in memory.journal.read(history) if any("#clears>" in p for _, p, _ in c.triples)]
    assert {len({s for s, _, _ in commit.triples}) for commit in clears} == {1}  # its statements are about itself only
    statements = sorted(statements_of(long_term, "history"))
    with jidomem.open(memory.settings.root, sources=fixed_sources()) as reopened:
        assert sorted(statements_of(reopened.long_term("p"), "history")) == statements


def test_the_index_of_a_root_refuses_direct_changes(memory):
    store = memory.long_term("p").store

    for change in (lambda: store.insert([(A, "urn:p", "x")]), lambda: store.clear_graph("history")):
        with pytest.raises(PolicyDenied, match="is built from its journal") as refusal:
            change()
        assert (refusal.value.code, refusal.value.http_status, refusal.value.exit_code) == ("index_is_derived", 403, 3)
        assert "long_term(project).insert" in refusal.value.hint


def test_all_inserted_statements_are_present_after_the_index_is_rebuilt(tmp_path):
    # E048
    root = tmp_path / "root"
    with jidomem.open(root, sources=fixed_sources()) as memory:
        long_term = memory.long_term("p")
        memory.writer.submit_intent("p", intent(summary="kept by an intent"))
        memory.writer.start_session("p", "s-9")
        long_term.insert(fact())
        for graph in ("codebase", "history", "system"):
            long_term.insert([(A, "urn:example:in", graph), (A, "urn:example:n", 1.5)], graph=graph)
        before = all_statements(long_term)
        memory.follower.rebuild()
        assert all_statements(long_term) == before

    code = (
        "import sys\nimport jidomem\nwith jidomem.open(sys.argv[1]) as memory:\n"
        "    rows = memory.long_term('p').query('SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }')\n"
        "    print(*sorted(map(str, rows)), sep='\\n')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True, env=os.environ
    )

    assert result.stdout.splitlines() == before
    assert sum("urn:example:in" in row for row in before) == 3
