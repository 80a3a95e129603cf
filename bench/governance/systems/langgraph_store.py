"""LangGraph's SqliteStore: one file, an item for each topic."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from bench.governance.system import Entry, Fact, Origin, StoredFact, System, Unsupported, now
from bench.governance.vectors import DIMENSIONS, vector

SPACE = ("memories",)
_REFERENCE = "reference of BaseStore: get, put, delete, search, list_namespaces"
_REPLACES = "`put` replaces what is there, no version stays"


class LangGraphStore(System):
    name = "langgraph-store"
    how = "`put` under the topic as the key, so that what is said again replaces; who, session and source in its JSON"
    cannot: ClassVar = {
        **dict.fromkeys(("undo_to", "replaced"), f"{_REPLACES} ({_REFERENCE})"),
        "as_of": f"{_REPLACES} ({_REFERENCE}); checkpoints are of threads",
        "disagreements": f"nothing compares values: the last `put` of a key stays ({_REFERENCE})",
        "changed": f"an item is about no file ({_REFERENCE})",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._open()

    def _open(self, **how: Any) -> None:
        from langgraph.store.sqlite import SqliteStore

        self.entered = SqliteStore.from_conn_string(str(self.folder / "store.sqlite"), **how)
        self.store = self.entered.__enter__()
        self.store.setup()

    @classmethod
    def missing(cls) -> str:
        there = find_spec("langgraph") and find_spec("langgraph.store.sqlite")
        return "" if there else "pip install langgraph-checkpoint-sqlite"

    @classmethod
    def version(cls) -> str:
        return metadata.version("langgraph-checkpoint-sqlite")

    def close(self) -> None:
        self.entered.__exit__(None, None, None)

    def keep(self, fact: Fact) -> StoredFact:
        key = f"{fact.topic}|{fact.about}"
        value = {"text": fact.text, "agent": fact.agent, "session": fact.session, "source": fact.source}
        ttl = (fact.valid_until - now()).total_seconds() / 60 if fact.valid_until else None
        self.store.put(SPACE, key, value, ttl=ttl)
        return StoredFact(key)

    def replace(self, old: str, fact: Fact) -> StoredFact:
        return self.keep(fact)

    def in_force(self) -> Sequence[Entry]:
        self.store.sweep_ttl()
        return [Entry(item.key, item.value["text"]) for item in self._items()]

    def search(self, words: str) -> Sequence[Entry]:
        return [Entry(item.key, item.value["text"]) for item in self.store.search(SPACE, query=words)]

    def embed(self) -> None:
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            raise Unsupported("the sqlite3 of this Python loads no extensions, which its index needs (`sqlite-vec`)")
        self.close()
        index = {"dims": DIMENSIONS, "embed": lambda texts: [vector(text) for text in texts], "fields": ["text"]}
        self._open(index=index)

    def _items(self) -> list[Any]:
        return self.store.search(SPACE, limit=1_000_000)

    def explain(self, entry: str) -> Origin:
        item = self.store.get(SPACE, entry)
        value = item.value
        return Origin(value["agent"], item.updated_at, value["session"], value["source"])

    def expires(self) -> None:
        """It has a time to live, in minutes."""

    def erase(self, text: str) -> None:
        for item in self._items():
            if text in item.value["text"]:
                self.store.delete(SPACE, item.key)
