"""What HTTP costs: a named query beside `oxigraph serve`, each server on one core, its clients on the other."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyoxigraph

import jidomem
from bench import frame, load
from bench.frame import Options, Row, Spread, short
from jidomem.rdf.terms import Term, ntriples_line
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri
from jidomem.records.named_query import FOREVER, NamedQuery

WITHIN = 4.0
LIMIT = 20
JIDOMEM = Path(sys.executable).with_name("jidomem")
PLACES = (JIDOMEM.parent, Path(pyoxigraph.__file__).parents[4] / "bin", os.environ.get("PATH", ""))
SERVER_CORE, CLIENT_CORE = "0", "1"
QUESTION = "open-tasks"


def rows(options: Options) -> Iterator[Row]:
    """A named query where the engine has little to do, and where it has more."""
    for memories in (100, options.memories):
        yield _beside_oxigraph(options, memories)


def _beside_oxigraph(options: Options, memories: int) -> Row:
    """The same question on the same data, each server on one core, the clients on the other."""
    what = f"HTTP named query, {memories:,} memories, requests/s"
    program = oxigraph()
    if program is None:
        return Row(what, f"within {WITHIN:g} x", "not measured", "oxigraph is not installed")
    root = options.copy(memories)
    folder = options.folder / f"native-{memories}"
    with jidomem.open(root) as memory:
        memory.catch_up(load.PROJECT)
        size, native_path = native(memory, program, folder)
    path = f"/projects/{load.PROJECT}/queries/{QUESTION}?limit={LIMIT}"
    rates: dict[str, list[float]] = {"ours": [], "oxigraph": []}
    with ours(root, SERVER_CORE) as port, serving([program, "serve-read-only", "-l", str(folder)], "-b") as other:
        for number in range(options.rounds + 1):
            for name, place, query_path in (("ours", port, path), ("oxigraph", other, native_path)):
                answer = clients(place, 1.0, [{"kind": name, "path": query_path}] * 4, CLIENT_CORE)
                if number:  # the first round warms
                    rates[name].append(len(answer["taken"][name]) / answer["elapsed"])
    ratio = Spread.ratio(rates["oxigraph"], rates["ours"])
    measured = f"{Spread.of(rates['ours'])}, oxigraph serves {short(ratio.middle)} times as many"
    compared = f"{Spread.of(rates['oxigraph'])} oxigraph serve, same SPARQL, {size:,} bytes; ratio {ratio}"
    return Row(what, f"within {WITHIN:g} x", measured, compared, ratio.middle <= WITHIN, {"requests_per_s": rates})


def oxigraph() -> str | None:
    """The path of the native server; None if it is not installed."""
    return shutil.which("oxigraph", path=os.pathsep.join(map(str, PLACES)))


def native(memory: jidomem.Jidomem, program: str, folder: Path) -> tuple[int, str]:
    """Load what *memory* holds into a store of oxigraph; the size of an answer of ours, and its path for the same."""
    graphs = (graph_iri(load.PROJECT), ONTOLOGY_GRAPH)
    text = folder.with_suffix(".nq")
    with text.open("w", encoding="utf-8") as file:
        for graph in graphs:
            file.writelines(f"{ntriples_line(triple)[:-1]}<{graph}> .\n" for triple in memory.index.triples(graph))
    subprocess.run([program, "load", "-l", folder, "-f", text], check=True, capture_output=True)
    query = memory.playbook.get(QUESTION)
    values = query.bind({"project": load.PROJECT, "asOf": FOREVER})
    pairs = [
        ("query", f"{_bound(query, values)} LIMIT {LIMIT}"),
        *(("default-graph-uri", graph) for graph in graphs),
    ]
    page = memory.reader.ask_page(QUESTION, project=load.PROJECT, limit=LIMIT)
    return len(json.dumps(page.rows, default=str)), f"/query?{urlencode(pairs)}"


def _bound(query: NamedQuery, values: dict[str, Term]) -> str:
    """The text of a named query with the values of its pairs in their places."""
    head, where, body = query.text.partition(" WHERE ")
    for name, term in values.items():
        head = re.sub(rf"\?{name}\b", "", head)
        body = re.sub(rf"\?{name}\b", lambda _, term=term: term, body)
    return head + where + body


def clients(port: int, seconds: float, asking: Sequence[dict[str, str]], core: str | None = None) -> dict[str, Any]:
    """The seconds each request took, by kind, of clients in a process of their own, and those of all of it."""
    command = [*_on(core), sys.executable, "-m", "bench.http_load"]
    request = json.dumps({"port": port, "seconds": seconds, "clients": [*asking]})
    result = subprocess.run(command, input=request, capture_output=True, text=True, check=True, cwd=frame.REPOSITORY)
    answer: dict[str, Any] = json.loads(result.stdout)
    if answer["wrong"]:
        raise RuntimeError(f"refused under load: {answer['wrong'][0]}")
    return answer


@contextmanager
def ours(root: Path, core: str | None = None, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    with serving(serve(root), "--port", core, environment) as port:
        yield port


def serve(root: Path | str) -> list[str]:
    """The command that serves *root*."""
    return [str(JIDOMEM), "serve", "--root", str(root), "--project", load.PROJECT]


@contextmanager
def serving_at(address: str, home: Path) -> Iterator[tuple[str, int]]:
    """Give the URL and the process number of a server of the shared root at *address*, which has its copy in *home*."""
    environment = {**os.environ, "JIDOMEM_HOME": str(home), "XDG_CONFIG_HOME": f"{home}-config"}
    command = [*serve(address), "--port", "0", "--json", "-q", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()


@contextmanager
def serving(
    command: Sequence[str], option: str, core: str | None = SERVER_CORE, environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """The port of a server that answers; it is told by *option* which. The *environment* is added to ours."""
    with started(command, option, core, environment) as (port, _):
        yield port


@contextmanager
def started(
    command: Sequence[str], option: str, core: str | None = SERVER_CORE, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, int]]:
    """The port of a server as `serving` has it, and the number of its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = str(port) if option == "--port" else f"127.0.0.1:{port}"
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen([*_on(core), *command, option, place], stderr=subprocess.DEVNULL, env=env) as server:
        try:
            _await(port, server)
            yield port, server.pid
        finally:
            server.terminate()


def _await(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return when the server listens."""
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError(f"{server.args!r} ended with {server.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{server.args!r} does not answer")


def _on(core: str | None) -> list[str]:
    """The prefix that runs a command on one core, if the system supports it."""
    return ["taskset", "-c", core] if core is not None and shutil.which("taskset") and (os.cpu_count() or 1) > 1 else []


if __name__ == "__main__":
    frame.main("bench.http", rows)
