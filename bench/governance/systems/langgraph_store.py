"""The adapter of LangGraph's SqliteStore: one file, an item for each topic."""

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
    usage = "`put` under the topic as the key, so that a restatement replaces; agent, session and source in its JSON"
    unsupported_calls: ClassVar = {
        **dict.fromkeys(("undo_to", "replaced_text"), f"{_REPLACES} ({_REFERENCE})"),
        "as_of": f"{_REPLACES} ({_REFERENCE}); checkpoints are of threads",
        "disagreements": f"nothing compares values: the last `put` of a key stays ({_REFERENCE})",
        "entries_of_changed_files": f"an item is about no file ({_REFERENCE})",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._open()

    def _open(self, **options: Any) -> None:
        from langgraph.store.sqlite import SqliteStore

        self.context = SqliteStore.from_conn_string(str(self.folder / "store.sqlite"), **options)
        self.sqlite_store = self.context.__enter__()
        self.sqlite_store.setup()

    @classmethod
    def missing(cls) -> str:
        is_installed = find_spec("langgraph") and find_spec("langgraph.store.sqlite")
        return "" if is_installed else "pip install langgraph-checkpoint-sqlite"

    @classmethod
    def version(cls) -> str:
        return metadata.version("langgraph-checkpoint-sqlite")

    def close(self) -> None:
        self.context.__exit__(None, None, None)

    def store(self, fact: Fact) -> StoredFact:
        key = f"{fact.topic}|{fact.about}"
        value = {"text": fact.text, "agent": fact.agent, "session": fact.session, "source": fact.source}
        ttl = (fact.valid_until - now()).total_seconds() / 60 if fact.valid_until else None
        self.sqlite_store.put(SPACE, key, value, ttl=ttl)
        return StoredFact(key)

    def replace(self, old: str, fact: Fact) -> StoredFact:
        return self.store(fact)

    def active_entries(self) -> Sequence[Entry]:
        self.sqlite_store.sweep_ttl()
        return [Entry(item.key, item.value["text"]) for item in self._items()]

    def search(self, words: str) -> Sequence[Entry]:
        return [Entry(item.key, item.value["text"]) for item in self.sqlite_store.search(SPACE, query=words)]

    def embed(self) -> None:
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            raise Unsupported("the sqlite3 of this Python loads no extensions, which its index needs (`sqlite-vec`)")
        self.close()
        index = {"dims": DIMENSIONS, "embed": lambda texts: [vector(text) for text in texts], "fields": ["text"]}
        self._open(index=index)

    def _items(self) -> list[Any]:
        return self.sqlite_store.search(SPACE, limit=1_000_000)

    def origin_of(self, entry: str) -> Origin:
        item = self.sqlite_store.get(SPACE, entry)
        value = item.value
        return Origin(value["agent"], item.updated_at, value["session"], value["source"])

    def require_expiration(self) -> None:
        """It has a time to live, in minutes."""

    def erase(self, text: str) -> None:
        for item in self._items():
            if text in item.value["text"]:
                self.sqlite_store.delete(SPACE, item.key)
