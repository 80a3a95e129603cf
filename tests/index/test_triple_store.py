import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from sparql_endpoint import endpoint

import jidomem
from jidomem.errors import Busy, Failed, InvalidRequest, JidomemError, NotFound, PolicyDenied
from jidomem.index.triple_store import TripleStore
from jidomem.rdf.statements import to_triples
from jidomem.rdf.terms import Literal, literal
from jidomem.rdf.vocab import XSD

A, B = "urn:example:a", "urn:example:b"
#: Text that would end a string, a statement or a graph of SPARQL, were it not escaped.
HOSTILE = [
    '"',
    "\\",
    'say "hi" } } ; DROP ALL #',
    "line\nbreak\r\ttab",
    "\x00\x7f\ufffe",
    "é😀",
    "'''\"\"\"",
    "{?s ?p ?o}",
]
TYPED = {
    "plain": "plain",
    "a number": 5,
    "a fraction": 2.5,
    "true": True,
    "a moment": datetime(2026, 11, 1, 8, tzinfo=UTC),
    "exact": Decimal("0.850"),
    "a day": date(2026, 11, 1),
    "outright": ("http://example.org/", "xsd:string"),
    "a language": Literal("gut", "", "de"),
}


@pytest.fixture(params=["memory", "disk", "sparql"])
def store(request, tmp_path):
    if request.param == "sparql":
        with endpoint() as server, TripleStore("sparql", endpoint=server.url) as opened:
            yield opened
    else:
        with TripleStore(request.param, path=tmp_path / "store" if request.param == "disk" else None) as opened:
            yield opened


def texts(store, **options):
    return sorted(row["o"] for row in store.query("SELECT ?o { ?s ?p ?o }", **options))


def test_inserted_statements_are_found_by_a_query(store):
    # E043 E044
    assert store.insert([(A, "rdf:type", "jido:Fact"), (A, "jido:summary", "it embeds"), (A, "jido:about", B)]) is True

    pattern = "?s a jido:Fact ; jido:summary ?text ; jido:about ?what"
    query = f"PREFIX jido: <https://jido.ai/ontology#> SELECT ?s ?text ?what {{ {pattern} }}"
    assert store.query(query) == [{"s": A, "text": "it embeds", "what": B}]
    assert store.query("SELECT ?none { OPTIONAL { <urn:x> ?p ?none } }") == [{"none": None}]


def test_a_repeated_triple_is_stored_once_in_a_graph(store):
    # E047
    for _ in range(2):
        store.insert([(A, "jido:topic", "once"), (A, "jido:topic", "once")], graph="history")

    assert store.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }") == [{"n": 1}]


def test_clearing_a_graph_leaves_the_others(store):
    # E045
    for name in ("default", "context", "history"):
        store.insert([(A, "jido:topic", name)], graph=name)

    assert store.clear_graph("history") is True

    assert texts(store) == ["context", "default"]
    assert store.clear_graph() is True
    assert texts(store) == ["context"]
    assert store.clear_graph("system") is True


def test_a_query_reads_all_graphs_or_the_named_ones(store):
    # E041
    assert texts(store) == []
    for name in ("codebase", "history", "urn:example:graph"):
        store.insert([(A, "jido:topic", name)], graph=name)

    assert texts(store) == ["codebase", "history", "urn:example:graph"]
    assert texts(store, graphs=["history", "urn:example:graph"]) == ["history", "urn:example:graph"]
    assert texts(store, graphs=["system"]) == []
    one = "https://jido.ai/graphs/conversation-history"
    assert store.query(f"SELECT ?o {{ GRAPH <{one}> {{ ?s ?p ?o }} }}") == [{"o": "history"}]
    assert store.query(f"SELECT ?o FROM <{one}> {{ ?s ?p ?o }}") == [{"o": "history"}]
    assert store.query(f"ASK {{ GRAPH <{one}> {{ ?s ?p 'codebase' }} }}") is False
    assert store.query("SELECT ?o FROM <urn:example:other> { ?s ?p ?o }") == []
    assert store.query(f"SELECT ?o FROM <{one}> {{ ?s ?p ?o }}", graphs=["codebase"]) == []


def test_select_ask_and_construct_are_answered_and_updates_refused(store):
    # E049
    store.insert([(A, "jido:topic", "kept")])

    assert store.query("SELECT ?o { ?s ?p ?o }") == [{"o": "kept"}]
    assert store.query("ASK { ?s ?p 'kept' }") is True
    assert store.query("CONSTRUCT { ?s <urn:q> ?o } { ?s ?p ?o }") == [
        (f"<{A}>", "<urn:q>", ("kept", XSD + "string", ""))
    ]
    for text in ("DELETE WHERE { ?s ?p ?o }", "CLEAR ALL", "INSERT DATA { <urn:a> <urn:b> 1 }", "DROP ALL"):
        with pytest.raises(PolicyDenied, match="is an update") as refusal:
            store.query(text)
        assert (refusal.value.code, refusal.value.hint[:13]) == ("update_refused", "store.insert(")
    with pytest.raises(PolicyDenied, match="SERVICE"):
        store.query("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }")
    for text in ("SELEC ?o { ?s ?p ?o }", "ASK { ?s ?p '\ud800' }", None):
        with pytest.raises(InvalidRequest) as refusal:
            store.query(text)
        assert refusal.value.code == "malformed_query"
    assert texts(store) == ["kept"]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_read_back_exactly(store, text):
    store.insert([(A, "jido:topic", text)])

    assert texts(store) == [text]
    assert store.query(f"ASK {{ ?s ?p {literal(text)} }}") is True


def test_typed_values_are_read_back_as_inserted(store):
    # E042
    store.insert([(A, f"urn:example:{name.replace(' ', '-')}", value) for name, value in TYPED.items()])

    values = {row["p"][12:].replace("-", " "): row["o"] for row in store.query("SELECT ?p ?o { ?s ?p ?o }")}
    converted = {"exact": 0.85, "a day": "2026-11-01", "outright": "http://example.org/", "a language": "gut"}
    assert values == {**TYPED, **converted}
    assert store.query("SELECT ?o { ?s ?p ?o FILTER(isIRI(?o)) }") == []
    assert store.query("SELECT ?o { ?s ?p ?o FILTER(lang(?o) = 'de') }") == [{"o": "gut"}]


def test_constructed_triples_can_be_inserted_unchanged(store):
    store.insert([(A, f"urn:example:{n}", value) for n, value in enumerate([*TYPED.values(), *HOSTILE, B])])
    every = "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }"

    with TripleStore() as other:
        other.insert(store.query(every), graph="system")
        assert sorted(other.query(every)) == sorted(store.query(every)) != []


def test_a_reader_sees_an_insert_whole_or_not_at_all(store):
    # E050
    whole, counts = 40, set()
    stopped = threading.Event()

    def read():
        while not stopped.is_set():
            rows = store.query("SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s")
            counts.update(row["n"] for row in rows)

    def insert(number):
        store.insert(
            [(f"urn:example:{number}", "jido:topic", f"{n}") for n in range(whole)], graph=f"urn:g:{number % 3}"
        )

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        list(pool.map(insert, [*range(40), *range(40)]))
        stopped.set()
        for reader in readers:
            reader.result()

    assert counts == {whole}
    assert store.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }") == [{"n": 40 * whole}]


def test_an_unknown_graph_is_refused_with_the_nearest_name(store):
    # E037
    for call in (lambda name: store.insert([(A, "jido:topic", "x")], graph=name), store.clear_graph):
        with pytest.raises(NotFound, match="there is no graph 'histroy'") as refusal:
            call("histroy")
        assert "'history'" in refusal.value.hint
        for name in ("", "nothing like it", None, 5, "http://jidoka.ai/graphs/x", "relative/iri", "urn:a b"):
            with pytest.raises(NotFound):
                call(name)
    with pytest.raises(NotFound):
        store.query("SELECT * { ?s ?p ?o }", graphs=["histroy"])
    assert texts(store) == []


@pytest.mark.parametrize("name", ["history", "conversation-history", "http://jidoka.ai/graphs/conversation-history",
                                  "http://jidoka.ai/graphs/history", "https://jido.ai/graphs/conversation-history",
                                  "<https://jido.ai/graphs/conversation-history>"])  # fmt: skip
def test_short_long_and_foreign_graph_names_and_the_iri_are_equivalent(name):
    # E035
    assert TripleStore().graph_iri(name) == "https://jido.ai/graphs/conversation-history"


def test_the_base_of_graph_names_is_an_option():
    # E040
    store = TripleStore(base="https://example.org/memory#")

    store.insert([(A, "jido:topic", "x")], graph="history")

    assert store.graphs() == [
        "https://example.org/memory#graphs/conversation-history",
        "https://example.org/memory#graphs/default",
    ]
    for base in ("", "example.org/", "https://example.org", "urn:a b/"):
        with pytest.raises(InvalidRequest, match="is not an IRI that ends in / or #"):
            TripleStore(base=base)


def test_memory_is_the_default_and_each_backend_needs_its_own_option():
    # E046
    assert TripleStore().insert([(A, "jido:topic", "x")]) is True
    with pytest.raises(InvalidRequest, match="'sparql' needs an endpoint") as refusal:
        TripleStore("sparql")
    assert refusal.value.hint == 'TripleStore("sparql", endpoint="http://localhost:7878/query")'
    with pytest.raises(InvalidRequest, match="'disk' needs a path"):
        TripleStore("disk")
    for backend, option in (
        ("memory", "path"),
        ("memory", "endpoint"),
        ("disk", "update_endpoint"),
        ("sparql", "path"),
    ):
        own = {"disk": {"path": "x"}, "sparql": {"endpoint": "http://127.0.0.1:1/query"}}.get(backend, {})
        with pytest.raises(InvalidRequest, match=f"does not use {option}"):
            TripleStore(backend, **own, **{option: "http://127.0.0.1:1/"})
    with pytest.raises(InvalidRequest, match="no backend 'postgres'"):
        TripleStore("postgres")


def test_a_store_on_disk_survives_a_restart_and_is_locked_by_one_process(tmp_path):
    # E048
    code = (
        "import os, sys\nfrom jidomem import TripleStore\nstore = TripleStore('disk', path=sys.argv[1])\n"
        "store.insert([('urn:example:a', 'jido:topic', 'kept')], graph='history')\nprint('ready', flush=True)\n"
        "sys.stdin.read()\nos._exit(9)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(Busy, match="is open already"):
            TripleStore("disk", path=tmp_path / "store")
        other.communicate("")

    with jidomem.TripleStore("disk", path=tmp_path / "store") as store:
        assert texts(store, graphs=["history"]) == ["kept"]
    with pytest.raises(InvalidRequest, match="was closed"):
        store.query("ASK {}")


def test_an_unusable_store_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(Failed, match="the store could not be used"):
        TripleStore("disk", path=tmp_path / "file")


@pytest.mark.parametrize("statements", [
    "urn:a", None, 5, [()], [(A, "jido:topic")], [(A, "jido:topic", "x", "y")], ["abc"], [(A, "topic", "x")],
    [("a", "jido:topic", "x")], [("_:b", "jido:topic", "x")], [(A, "<topic>", "x")], [(A, "jido:topic", None)],
    [(A, "jido:topic", float("nan"))], [(A, "jido:topic", Decimal("Infinity"))], [(A, "jido:topic", b"x")],
    [(A, "jido:topic", Decimal("1e999999999"))],
    [(A, "jido:topic", ["x"])], [(A, "jido:topic", ("x", "nothing"))], [(A, "jido:topic", ("x", "rdf:langString"))],
    [(A, "jido:topic", ("x", "", "no tag"))], [(A, "jido:topic", "\ud800")], [("urn:a b", "jido:topic", "x")],
    [("http://[", "jido:topic", "x")], [(A, "jido:topic", ("x", 5))], [(A, "jido:topic", "y"), (A, 5, "x")],
])  # fmt: skip
def test_an_invalid_statement_is_refused_and_nothing_inserted(statements):
    store = TripleStore()

    with pytest.raises(InvalidRequest):
        store.insert(statements)

    assert texts(store) == []


@pytest.mark.parametrize(("value", "term"), [
    ("https://jido.ai/x", "<https://jido.ai/x>"), ("urn:x:y", "<urn:x:y>"), ("<mailto:a@b.c>", "<mailto:a@b.c>"),
    ("jido:Fact", "<https://jido.ai/ontology#Fact>"), ("see https://jido.ai/x", '"see https://jido.ai/x"'),
    ("note: this", '"note: this"'), ("TODO:this", '"TODO:this"'), ("<b>", '"<b>"'), ("<urn:a b>", '"<urn:a b>"'),
    ("https://jido.ai/ ", '"https://jido.ai/ "'), ('"quoted"', '"\\"quoted\\""'), ("", '""'), ("_:b", '"_:b"'),
    (datetime(2026, 11, 1), f'"2026-11-01T00:00:00.000000Z"^^<{XSD}dateTime>'),
    (("7", "xsd:byte"), f'"7"^^<{XSD}byte>'), (("x", "urn:example:t"), '"x"^^<urn:example:t>'),
])  # fmt: skip
def test_a_text_is_an_iri_only_as_a_whole(value, term):
    # E042
    assert to_triples([(A, "urn:p", value)]) == [(f"<{A}>", "<urn:p>", term)]


def test_an_insert_or_clear_is_one_request():
    # E050
    with endpoint() as server:
        store = TripleStore("sparql", endpoint=server.url)
        store.insert([(A, "jido:topic", f"{n}") for n in range(500)], graph="history")
        store.insert([], graph="history")
        store.clear_graph("history")

    assert [path for path, _, _ in server.sent] == ["/update", "/update"]


def test_updates_use_the_update_address_and_the_login_of_the_address():
    with endpoint() as server:
        at = server.url.replace("//", "//ada:s%40crot@")
        store = TripleStore("sparql", endpoint=at + "?infer=no", update_endpoint=at.replace("/query", "/update?x=1"))
        store.insert([(A, "jido:topic", "x")])
        assert texts(store, graphs=["default"]) == ["x"]

    probes, (changed, queried) = server.sent[::2], server.sent[1::2]
    assert [path for path, _, _ in server.sent] == [*2 * ["/update?x=1"], *2 * ["/query?infer=no"]]
    assert [fields for _, _, fields in probes] == ["INSERT DATA {}", {"query": ["ASK {}"]}]
    assert ["Authorization" in headers for _, headers, _ in probes] == [False, False]
    assert changed[1]["Authorization"] == queried[1]["Authorization"] == "Basic YWRhOnNAY3JvdA=="


@pytest.mark.parametrize(("answer", "message"), [
    ((500, b"out of\nmemory"), "answered 500: out of memory"), ((302, b""), "answered 302"),
    ((401, b"who are you"), "answered 401: who are you"), ((200, b"<html>"), "answered with what cannot be read"),
])  # fmt: skip
def test_a_failing_store_is_reported_without_its_password(answer, message):
    with endpoint() as server:
        server.answer = answer
        store = TripleStore("sparql", endpoint=server.url.replace("//", "//ada:secret@"))
        with pytest.raises(Failed, match=message) as failure:
            store.query("ASK {}", graphs=["default"])
    with pytest.raises(Failed, match="did not answer") as stopped:
        store.insert([(A, "jido:topic", "x")])

    assert {failure.value.code, stopped.value.code} == {"store_unavailable"}
    assert "secret" not in f"{failure.value.detail}{stopped.value.detail}"
    assert "127.0.0.1" in failure.value.detail


@pytest.mark.parametrize(
    "address", ["localhost:7878", "ftp://x/", "http://", "http://a b/", "http://x:port/", "http://x/\n", 5]
)
def test_an_endpoint_that_is_no_http_address_is_refused(address):
    with pytest.raises(JidomemError, match="is not an http or https address"):
        TripleStore("sparql", endpoint=address)
