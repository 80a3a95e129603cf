"""LangGraph's SqliteStore: one file, an item for each topic."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from bench.governance.system import Entry, Fact, Kept, Origin, System, now

SPACE = ("memories",)
_REFERENCE = "reference of BaseStore: get, put, delete, search, list_namespaces"


class LangGraphStore(System):
    name = "langgraph-store"
    how = "`put` under the topic as the key, so that what is said again replaces; who, session and source in its JSON"
    cannot: ClassVar = {
        "as_of": f"`put` replaces what is there, no version stays ({_REFERENCE}); checkpoints are of threads",
        "undo_to": f"`put` replaces what is there, no version stays ({_REFERENCE})",
        "replaced": f"`put` replaces what is there, no version stays ({_REFERENCE})",
        "disagreements": f"nothing compares values: the last `put` of a key stays ({_REFERENCE})",
        "changed": f"an item is about no file ({_REFERENCE})",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from langgraph.store.sqlite import SqliteStore

        self.entered = SqliteStore.from_conn_string(str(folder / "store.sqlite"))
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

    def keep(self, fact: Fact) -> Kept:
        key = f"{fact.topic}|{fact.about}"
        value = {"text": fact.text, "agent": fact.agent, "session": fact.session, "source": fact.source}
        ttl = (fact.valid_until - now()).total_seconds() / 60 if fact.valid_until else None
        self.store.put(SPACE, key, value, ttl=ttl)
        return Kept(key)

    def replace(self, old: str, fact: Fact) -> Kept:
        return self.keep(fact)

    def in_force(self) -> Sequence[Entry]:
        self.store.sweep_ttl()
        return [Entry(item.key, item.value["text"]) for item in self._items()]

    def search(self, words: str) -> Sequence[Entry]:
        return [Entry(item.key, item.value["text"]) for item in self.store.search(SPACE, query=words)]

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
