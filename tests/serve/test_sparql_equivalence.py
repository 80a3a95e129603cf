"""The endpoint gives the answers of Python, and those of the engine's own server on the same data."""

import random
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pyoxigraph as ox
import pytest
from conftest import decision, fixed_sources, intent
from generated_sparql import GRAPHS, queries

import jidomem
from jidomem.errors import JidomemError
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import ntriples_line
from jidomem.rdf.vocab import BASE
from jidomem.records.named_query import FOREVER
from jidomem.serve.app import create_app

GENERATED = 200
#: The program is installed next to Python, or next to the engine in a borrowed environment.
FOLDERS = (f"{Path(ox.__file__).parents[4]}/bin", "/usr/bin")
PROGRAM = shutil.which("oxigraph", path=":".join(FOLDERS))
ARGUMENTS = {"iri": "https://jido.ai/agents/ana", "string": "store", "integer": 2, "boolean": True, "kind": "fact",
         "dateTime": "2026-11-21T08:00:05Z", "project": "p",
         "item": f"{BASE}memory/01900000-0000-7000-8000-000000000001"}  # fmt: skip


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("same") / "root", project="p", sources=fixed_sources()) as opened:
        write = opened.writer.submit_intent
        write("p", decision(topic="store", about=["src/a.py"]))
        old = write("p", intent(summary="the limit is 5", topic="limit")).iri
        write("p", intent(summary="the limit is 7 é \"'\\ \n", topic="limit", supersedes=[old], confidence="low"))
        for number in range(6):
            write("p", intent(type="task", summary=f"task {number}", assigned_to="ana", confidence="medium"))
        write("p", intent(type="error", summary="it is lost", severity="high", about=["src/a.py"]))
        opened.writer.start_session("p", "morning", agent="ana")
        file = "https://jido.ai/code/a.py"
        triples = [(file, "rdf:type", "jido:SourceFile"), (file, "jido:filePath", "src/a.py")]
        opened.long_term("p").insert(triples, graph="codebase")
        yield opened


@pytest.fixture(scope="module")
def endpoint(memory):
    client = create_app(memory).test_client()

    def ask(text, default=(), named=()):
        fields = [("query", text), *_fields(default, named)]
        answer = client.get(f"/projects/p/sparql?{urlencode(fields)}")
        if answer.status_code != 200:
            return answer.json["code"]
        return read(answer.data, answer.mimetype)

    return ask


def _fields(default, named):
    return [("default-graph-uri", each) for each in default] + [("named-graph-uri", each) for each in named]


def read(data, media):
    """An answer: its form, and a boolean or a bag of rows or triples."""
    if media == "text/turtle":
        parsed = ox.parse(data, ox.RdfFormat.TURTLE)
        return "graph", Counter((str(q.subject), str(q.predicate), str(q.object)) for q in parsed)
    parsed = ox.parse_query_results(data, ox.QueryResultsFormat.JSON)
    if isinstance(parsed, ox.QueryBoolean):
        return "ask", bool(parsed)
    names = [variable.value for variable in parsed.variables]
    order = sorted(range(len(names)), key=lambda position: names[position])
    return "select", Counter(
        tuple(None if row[position] is None else str(row[position]) for position in order) for row in parsed
    )


def in_python(memory, text):
    """The answer of the reader: values, where the endpoint gives terms."""
    try:
        result = memory.reader.run("p", text)
    except JidomemError as error:
        return error.code
    if result.kind == "select":
        return "select", Counter(tuple(row[name] for name in sorted(result.variables)) for row in result.rows)
    return result.kind, result.truth if result.kind == "ask" else Counter(result.triples)


def as_values(answer):
    """An answer of the endpoint as the reader gives it."""
    if answer[0] != "select":
        return answer
    values = Counter()
    for row, times in answer[1].items():
        values[tuple(None if term is None else to_value(term) for term in row)] += times
    return "select", values


@contextmanager
def engine_server(memory, folder):
    """The engine's own server, with the graphs of the project."""
    data = folder / "all.nq"
    with data.open("w", encoding="utf-8") as file:
        for graph in GRAPHS:
            file.writelines(f"{ntriples_line(triple)[:-1]}<{graph}> .\n" for triple in memory.index.triples(graph))
    subprocess.run([PROGRAM, "load", "-l", folder / "store", "-f", data], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [PROGRAM, "serve-read-only", "-l", folder / "store", "-b", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert any("Listening" in line for line in server.stderr)
            yield port
        finally:
            server.kill()


def by_engine(port, text, default=(), named=()):
    fields = _fields(default, named) or _fields(GRAPHS, GRAPHS)
    form = urlencode([("query", text), *fields]).encode()  # some are too long for an address
    headers = {"Accept": "application/sparql-results+json, text/turtle"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/query", form, headers)) as answer:
            return read(answer.read(), answer.headers["Content-Type"])
    except urllib.error.HTTPError as error:
        return error.code


def named_queries(memory):
    """Every query of the playbook as plain SPARQL, with its parameters substituted."""
    for query in memory.playbook:
        needed = [param for param in query.params if param.default is None or param.name == "asOf"]
        bound = query.bind({param.name: FOREVER if param.name == "asOf" else ARGUMENTS[param.type] for param in needed})
        head, where, body = query.text.partition(" WHERE ")
        for name, term in bound.items():
            head = re.sub(rf"\?{name}\b", "", head)
            body = re.sub(rf"(GROUP BY.*?) \?{name}\b", r"\1", body)
            body = re.sub(rf"\?{name}\b", lambda _, term=term: term, body)
        yield head + where + body


@pytest.fixture(scope="module")
def answers(memory, endpoint):
    """Each query (the text, the text with its dataset written out, the dataset of the request), and its answer."""
    texts = [(text, text, (), ()) for text in named_queries(memory)]
    texts += queries(random.Random(8700), GENERATED)
    return [(each, endpoint(each[0], *each[2:])) for each in texts]


def test_each_named_and_generated_query_is_answered_as_in_python(memory, answers):
    for (_, in_full, _, _), answer in answers:
        assert as_values(answer) == in_python(memory, in_full), in_full
    assert sum(1 for _, answer in answers[-GENERATED:] if answer[1]) > GENERATED / 3


@pytest.mark.skipif(PROGRAM is None, reason="oxigraph is not installed")
def test_each_named_and_generated_query_is_answered_as_by_the_engines_server(memory, answers, tmp_path):
    with engine_server(memory, tmp_path) as port:
        for (text, _, default, named), answer in answers:
            assert by_engine(port, text, default, named) == answer, text
