"""Lost MCP writes of one, two and four processes, and the latency of one write, beside the reference server.

    python -m bench.mcp [--memories N] [--rounds N]

The latency of one write stands beside that of the reference MCP memory server with the same call, of a server of the
same SDK that stores nothing (the cost of client, server and pipes), and of the four calls that make a file durable.
The reference server is installed with ci/parts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import anyio

from bench import harness, load
from bench.governance.systems.server_memory import NODE, SERVER
from bench.harness import Options, Row, Spread
from bench.journal import durable_writer

PROGRAMS = Path(sys.executable).parent
PROCESSES, WRITES = (1, 2, 4), 60
REMEMBER, EMPTY, DURABLE_FILE = "remember", "an empty server", "write + fsync + rename + fsync"


def rows(options: Options) -> Iterator[Row]:
    """Yield lost writes of one, two and four processes, then the latency of one write."""
    writes = 10 if options.quick else WRITES
    for processes in PROCESSES:
        counts = {name: _count_writes(command, processes, writes) for name, command in _servers(options).items()}
        words = "; ".join(
            f"{name}: {present} of {acknowledged} present" for name, (acknowledged, present) in counts.items()
        )
        acknowledged, present = counts["jidomem"]
        figures = {"acknowledged_present": counts}
        comparison = words.partition("; ")[2] or "the reference server is not installed (ci/parts)"
        label = f"{processes} process{'es' * (processes > 1)}, {writes} acknowledged writes each"
        yield Row(label, "0 lost", f"{acknowledged - present} lost", comparison, acknowledged == present, figures)
    yield from _latency(options)


def _servers(options: Options) -> dict[str, dict[str, Any]]:
    """Return the command of each server, with the same nine tools and a new memory."""
    folder = options.folder / f"mcp-{perf_counter()}"
    folder.mkdir()
    ours = ["mcp", "--toolset", "server-memory", "--root", str(folder / "root"), "--project", "p"]
    commands: dict[str, dict[str, Any]] = {"jidomem": {"command": str(PROGRAMS / "jidomem"), "args": ours}}
    if SERVER.exists():
        environment = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        commands["server-memory"] = {"command": str(NODE), "args": [str(SERVER)], "env": environment}
    return commands


def _count_writes(command: dict[str, Any], processes: int, writes: int) -> tuple[int, int]:
    """Return how many writes of all processes were acknowledged, and how many of those are present afterwards."""

    def write(worker: int) -> list[str]:
        async def interact(client: Any) -> list[str]:
            names = [f"entity {worker}-{n}" for n in range(writes)]
            answers = [await client.call_tool("create_entities", _entities([name])) for name in names]
            return [name for name, answer in zip(names, answers, strict=True) if not answer.is_error]

        return _run_client(command, interact)

    with ThreadPoolExecutor(processes) as threads:
        acknowledged = [name for names in threads.map(write, range(processes)) for name in names]

    async def read(client: Any) -> set[str]:
        answer = await client.call_tool("read_graph", {})
        return {entity["name"] for entity in (answer.structured_content or {"entities": []})["entities"]}

    return len(acknowledged), len(set(acknowledged) & _run_client(command, read))


def _latency(options: Options) -> Iterator[Row]:
    """Yield the latency of a write to newly started servers with *options.memories* memories.

    An entity counts as a memory, and so does its observation.
    """
    entities, root = options.memories // (20 if options.quick else 2), options.copy_root()
    servers = _servers(options)
    for command in servers.values():
        _run_client(command, partial(_fill, entities))
    jidomem_server = {
        "command": str(PROGRAMS / "jidomem"),
        "args": ["mcp", "--root", str(root), "--project", load.PROJECT],
    }
    _run_client(jidomem_server, lambda client: client.call_tool(*_fact(0)))  # builds the index: a copy has none
    file = str(Path(__file__).with_name("empty_mcp.py"))
    empty = {"command": sys.executable, "args": ["-P", file]}  # -P: bench/mcp.py would hide the SDK
    sides = {name: (command, _entity) for name, command in servers.items()}
    sides |= {REMEMBER: (jidomem_server, _fact), EMPTY: (empty, _entity)}
    ms = anyio.run(_time_calls, sides, durable_writer(options.folder / "raw"), options.rounds)
    labels = {"jidomem": f"create_entities over MCP, {2 * entities:,} memories"}
    labels[REMEMBER] = f"remember over MCP, {options.memories:,} memories"
    for side, label in labels.items():
        others = [name for name in ms if name not in labels and (side == "jidomem" or name != "server-memory")]
        ratios = [f"{Spread.ratio(ms[side], ms[name])} x {name}" for name in others]
        spread = Spread.of(ms[side])
        yield Row(label, "5 ms", f"{spread} ms", ", ".join(ratios), spread.median <= 5, {"ms": ms})


async def _fill(entities: int, client: Any) -> None:
    """Create entities, 500 at once."""
    for first in range(0, entities, 500):
        names = [f"entity {n}" for n in range(first, min(first + 500, entities))]
        answer = await client.call_tool("create_entities", _entities(names))
        assert not answer.is_error, answer


async def _time_calls(
    sides: dict[str, Any], write_durably: Callable[[bytes], None], rounds: int
) -> dict[str, list[float]]:
    """Return the milliseconds of a call of each side, round by round: medians of ten calls in a row."""
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(_client(command)) for name, (command, _) in sides.items()}
        medians: dict[str, list[float]] = {name: [] for name in (*sides, DURABLE_FILE)}
        for number, name in harness.alternate(medians, rounds + 1):
            milliseconds = []
            for call in range(10 * number, 10 * number + 10):
                start = perf_counter()
                if name == DURABLE_FILE:
                    write_durably(b"x" * 2048)
                else:
                    answer = await clients[name].call_tool(*sides[name][1](call + 1))
                    assert not answer.is_error, answer
                milliseconds.append(1000 * (perf_counter() - start))
            medians[name].append(median(milliseconds))
    return {name: values[1:] for name, values in medians.items()}  # the first round warms


def _entity(number: int) -> tuple[str, dict[str, Any]]:
    return "create_entities", _entities([f"new {number}"])


def _fact(number: int) -> tuple[str, dict[str, Any]]:
    return "remember", {"text": f"the run {number} was seen"}


def _entities(names: list[str]) -> dict[str, Any]:
    return {"entities": [{"name": name, "entityType": "thing", "observations": [f"{name} was seen"]} for name in names]}


def _run_client(command: dict[str, Any], interact: Any) -> Any:
    async def main() -> Any:
        async with _client(command) as client:
            return await interact(client)

    return anyio.run(main)


@asynccontextmanager
async def _client(command: dict[str, Any]) -> AsyncIterator[Any]:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    environment = {**os.environ, **command.get("env", {})}
    params = StdioServerParameters(command=command["command"], args=command["args"], env=environment)
    with open(os.devnull, "w") as silent:
        async with Client(stdio_client(params, errlog=silent), mode="legacy") as client:
            yield client


if __name__ == "__main__":
    harness.main("bench.mcp", rows)
