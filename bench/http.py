"""A named query over HTTP beside the same SPARQL in `oxigraph serve-read-only`, servers and clients on a core each.

    python -m bench.http [--memories N] [--rounds N]

This module also runs the servers and clients of the other benchmarks of HTTP.
"""

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
from bench import harness, load
from bench.harness import Options, Row, Spread, rounded
from jidomem.rdf.terms import Term, ntriples_line
from jidomem.rdf.vocab import ONTOLOGY_GRAPH, graph_iri
from jidomem.records.named_query import FOREVER, NamedQuery

GOAL_RATIO = 4.0
LIMIT = 20
JIDOMEM = Path(sys.executable).with_name("jidomem")
PROGRAM_FOLDERS = (JIDOMEM.parent, Path(pyoxigraph.__file__).parents[4] / "bin", os.environ.get("PATH", ""))
SERVER_CORE, CLIENT_CORE = "0", "1"
QUERY = "open-tasks"


def rows(options: Options) -> Iterator[Row]:
    """Yield the rates of a named query for 100 memories, and for the size of the run."""
    for memories in (100, options.memories):
        yield _beside_oxigraph(options, memories)


def _beside_oxigraph(options: Options, memories: int) -> Row:
    """Return the rate of a named query on the same data in both servers."""
    label = f"HTTP named query, {memories:,} memories, requests/s"
    program = oxigraph_program()
    if program is None:
        return Row(label, f"within {GOAL_RATIO:g} x", "not measured", "oxigraph is not installed")
    root = options.copy_root(memories)
    folder = options.folder / f"native-{memories}"
    with jidomem.open(root) as memory:
        memory.catch_up(load.PROJECT)
        size, native_path = load_oxigraph(memory, program, folder)
    path = f"/projects/{load.PROJECT}/queries/{QUERY}?limit={LIMIT}"
    rates: dict[str, list[float]] = {"ours": [], "oxigraph": []}
    native_command = [program, "serve-read-only", "-l", str(folder)]
    with run_jidomem(root, core=SERVER_CORE) as (port, _), run_server(native_command, "-b") as (native_port, _):
        requests = {"ours": (port, path), "oxigraph": (native_port, native_path)}
        for number, name in harness.alternate(requests, options.rounds + 1):
            address, request_path = requests[name]
            result = run_clients(address, 1.0, [{"kind": name, "path": request_path}] * 4, CLIENT_CORE)
            if number:  # the first round warms
                rates[name].append(len(result["latencies"][name]) / result["elapsed"])
    ratio = Spread.ratio(rates["oxigraph"], rates["ours"])
    measured = f"{Spread.of(rates['ours'])}, oxigraph serves {rounded(ratio.median)} times as many"
    comparison = f"{Spread.of(rates['oxigraph'])} oxigraph serve, same SPARQL, {size:,} bytes; ratio {ratio}"
    return Row(
        label, f"within {GOAL_RATIO:g} x", measured, comparison, ratio.median <= GOAL_RATIO, {"requests_per_s": rates}
    )


def oxigraph_program() -> str | None:
    """Return the path of the native server; None if it is not installed."""
    return shutil.which("oxigraph", path=os.pathsep.join(map(str, PROGRAM_FOLDERS)))


def load_oxigraph(memory: jidomem.Jidomem, program: str, folder: Path) -> tuple[int, str]:
    """Load *memory* into an oxigraph store in *folder*; return the size of an answer in bytes, and the query path."""
    graphs = (graph_iri(load.PROJECT), ONTOLOGY_GRAPH)
    text = folder.with_suffix(".nq")
    with text.open("w", encoding="utf-8") as file:
        for graph in graphs:
            file.writelines(f"{ntriples_line(triple)[:-1]}<{graph}> .\n" for triple in memory.index.triples(graph))
    subprocess.run([program, "load", "-l", folder, "-f", text], check=True, capture_output=True)
    query = memory.playbook.get(QUERY)
    values = query.bind({"project": load.PROJECT, "asOf": FOREVER})
    pairs = [
        ("query", f"{_bound(query, values)} LIMIT {LIMIT}"),
        *(("default-graph-uri", graph) for graph in graphs),
    ]
    page = memory.reader.ask_page(QUERY, project=load.PROJECT, limit=LIMIT)
    return len(json.dumps(page.rows, default=str)), f"/query?{urlencode(pairs)}"


def _bound(query: NamedQuery, values: dict[str, Term]) -> str:
    """Return the text of a named query with its parameters replaced by *values*."""
    head, where, body = query.text.partition(" WHERE ")
    for name, term in values.items():
        head = re.sub(rf"\?{name}\b", "", head)
        body = re.sub(rf"\?{name}\b", lambda _, term=term: term, body)
    return head + where + body


def run_clients(
    port: int, seconds: float, requests: Sequence[dict[str, str]], core: str | None = None
) -> dict[str, Any]:
    """Return the figures of HTTP clients that run in a process of their own (see `bench.http_load`).

    Raises RuntimeError if a request is refused.
    """
    command = [*_pin(core), sys.executable, "-m", "bench.http_load"]
    request = json.dumps({"port": port, "seconds": seconds, "clients": [*requests]})
    result = subprocess.run(command, input=request, capture_output=True, text=True, check=True, cwd=harness.REPOSITORY)
    figures: dict[str, Any] = json.loads(result.stdout)
    if figures["errors"]:
        raise RuntimeError(f"refused under load: {figures['errors'][0]}")
    return figures


def is_ready(url: str) -> bool:
    """Return whether the server at *url* answers `/readyz` with 200."""
    try:
        urllib.request.urlopen(f"{url}/readyz", timeout=600).close()
    except OSError:  # HTTPError is one
        return False
    return True


@contextmanager
def run_jidomem(
    root: Path, *arguments: str, core: str | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, int]]:
    """Run `jidomem serve` with *root*; yield its port and process id."""
    with run_server([*serve_command(root), *arguments], "--port", core, environment) as server:
        yield server


def serve_command(root: Path | str) -> list[str]:
    """Return the command that serves *root*."""
    return [str(JIDOMEM), "serve", "--root", str(root), "--project", load.PROJECT]


@contextmanager
def run_shared(address: str, home: Path) -> Iterator[tuple[str, int]]:
    """Run a server of the shared root at *address*, with its copy in *home*; yield its URL and process id."""
    environment = {**os.environ, "JIDOMEM_HOME": str(home), "XDG_CONFIG_HOME": f"{home}-config"}
    command = [*serve_command(address), "--port", "0", "--json", "-q", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()


@contextmanager
def run_server(
    command: Sequence[str], option: str, core: str | None = SERVER_CORE, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, int]]:
    """Run a server that takes its address with *option*; yield its port and process id once it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = str(port) if option == "--port" else f"127.0.0.1:{port}"
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen([*_pin(core), *command, option, address], stderr=subprocess.DEVNULL, env=env) as server:
        try:
            _wait_until_listening(port, server)
            yield port, server.pid
        finally:
            server.terminate()


def _wait_until_listening(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return when the server answers a request; raise RuntimeError if it ends, or not within a minute."""
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
    raise RuntimeError(f"{server.args!r} does not answer within a minute")


def _pin(core: str | None) -> list[str]:
    """Return the prefix that runs a command on one core, if the system supports it."""
    return ["taskset", "-c", core] if core is not None and shutil.which("taskset") and (os.cpu_count() or 1) > 1 else []


if __name__ == "__main__":
    harness.main("bench.http", rows)
