"""jidomem: the governed memory of AI agents.

with jidomem.open(".jidomem") as memory:
    receipt = memory.remember("the build needs Rust 1.80", about=["Cargo.toml"])
    for hit in memory.recall("which Rust?").entries:
        print(hit.content, hit.score)

Start with `runtime.root`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jidomem.base.clock import json_value
    from jidomem.errors import Conflict, IntentRefused, JidomemError, NotFound
    from jidomem.index.triple_store import TripleStore
    from jidomem.read.reader import MemoryReader
    from jidomem.records.entry import Entry, WriteRequest, WriteResult
    from jidomem.records.intent import MemoryItem, MemoryUpdateIntent, Receipt, create_memory
    from jidomem.records.recall import Hit, RecallRequest, RecallResult
    from jidomem.runtime.root import Jidomem
    from jidomem.runtime.root import open_root as open  # noqa: A004
    from jidomem.runtime.tiers import ContextManager, LongTerm
    from jidomem.working.tiers import ConversationBuffer, Promotion, ShortTerm
    from jidomem.write.writer import MemoryWriter

__version__ = "0.1.1"
__all__ = [
    "Conflict",
    "ContextManager",
    "ConversationBuffer",
    "Entry",
    "Hit",
    "IntentRefused",
    "Jidomem",
    "JidomemError",
    "LongTerm",
    "MemoryItem",
    "MemoryReader",
    "MemoryUpdateIntent",
    "MemoryWriter",
    "NotFound",
    "Promotion",
    "RecallRequest",
    "RecallResult",
    "Receipt",
    "ShortTerm",
    "TripleStore",
    "WriteRequest",
    "WriteResult",
    "create_memory",
    "json_value",
    "open",
]
#: The module of each public name, imported at first use: importing jidomem loads none of them.
_PLACES = {
    "Conflict": "errors", "ContextManager": "runtime.tiers", "ConversationBuffer": "working.tiers",
    "Entry": "records.entry", "Hit": "records.recall", "IntentRefused": "errors", "Jidomem": "runtime.root",
    "JidomemError": "errors", "LongTerm": "runtime.tiers", "MemoryItem": "records.intent",
    "MemoryReader": "read.reader", "MemoryUpdateIntent": "records.intent", "MemoryWriter": "write.writer",
    "NotFound": "errors", "Promotion": "working.tiers", "RecallRequest": "records.recall",
    "RecallResult": "records.recall", "Receipt": "records.intent", "ShortTerm": "working.tiers",
    "TripleStore": "index.triple_store", "WriteRequest": "records.entry", "WriteResult": "records.entry",
    "create_memory": "records.intent", "json_value": "base.clock", "open": "runtime.root:open_root",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, called = _PLACES[name].partition(":")
    found = globals()[name] = getattr(import_module(f"jidomem.{module}"), called or name)
    return found


def __dir__() -> list[str]:
    return ["__version__", *__all__]
