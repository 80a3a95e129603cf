"""Write `memory.jsonl`, and `memory-later.jsonl` after a further session, with the reference MCP memory server.

npm install @modelcontextprotocol/server-memory
python tests/exchange/cases/mcp-memory/regenerate.py node_modules/.bin/mcp-server-memory
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FIRST = [
    ("create_entities", {"entities": [
        {"name": "Ana", "entityType": "person",
         "observations": ["prefers small commits", "reviews on Fridays", "works on the importer"]},
        {"name": "jido_code", "entityType": "project", "observations": ["is built with Rust 1.80", "ships on Mondays"]},
        {"name": "Oxigraph", "entityType": "library", "observations": []},
    ]}),
    ("create_relations", {"relations": [
        {"from": "Ana", "to": "jido_code", "relationType": "maintains"},
        {"from": "jido_code", "to": "Oxigraph", "relationType": "uses"},
    ]}),
]  # fmt: skip
LATER = [
    ("delete_observations", {"deletions": [{"entityName": "jido_code", "observations": ["is built with Rust 1.80"]}]}),
    ("add_observations", {"observations": [{"entityName": "jido_code", "contents": ["is built with Rust 1.83"]}]}),
    ("delete_observations", {"deletions": [{"entityName": "Ana", "observations": ["reviews on Fridays"]}]}),
]


def talk(server: str, file: Path, calls: list[tuple[str, dict]]) -> None:
    process = subprocess.Popen(
        [server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "MEMORY_FILE_PATH": str(file)}
    )

    def send(message: dict) -> None:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()

    def ask(number: int, method: str, params: dict) -> None:
        send({"id": number, "method": method, "params": params})
        while json.loads(process.stdout.readline()).get("id") != number:
            pass

    who = {"name": "regenerate", "version": "1"}
    ask(0, "initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": who})
    send({"method": "notifications/initialized"})
    for number, (name, arguments) in enumerate(calls, start=1):
        ask(number, "tools/call", {"name": name, "arguments": arguments})
    process.stdin.close()
    process.wait(10)


def main(server: str) -> None:
    """Rewrite both files."""
    first, later = HERE / "memory.jsonl", HERE / "memory-later.jsonl"
    first.unlink(missing_ok=True)
    talk(server, first.resolve(), FIRST)
    later.write_bytes(first.read_bytes())
    talk(server, later.resolve(), LATER)


if __name__ == "__main__":
    main(sys.argv[1])
