"""jidomem: the governed memory of AI agents.

with jidomem.open(".jidomem") as memory:
    receipt = memory.remember("the build needs Rust 1.80", about=["Cargo.toml"])
    for hit in memory.recall("which Rust?").entries:
        print(hit.content, hit.score)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jidomem.entry import Entry, WriteRequest, WriteResult
    from jidomem.errors import Conflict, IntentRefused, JidomemError, NotFound
    from jidomem.index.store import TripleStore
    from jidomem.intent import MemoryUpdateIntent, Receipt
    from jidomem.item import MemoryItem, create_memory
    from jidomem.read.reader import MemoryReader
    from jidomem.recall import Hit, RecallRequest, RecallResult
    from jidomem.runtime.context import ContextManager
    from jidomem.runtime.long_term import LongTerm
    from jidomem.runtime.root import Jidomem
    from jidomem.runtime.root import open_root as open  # noqa: A004
    from jidomem.tiers.conversation import ConversationBuffer
    from jidomem.tiers.promotion import Promotion
    from jidomem.tiers.short import ShortTerm
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
    "open",
]
#: The module of each public name, imported at first use: importing jidomem loads none of them.
_PLACES = {
    "Conflict": "errors",
    "ContextManager": "runtime.context",
    "ConversationBuffer": "tiers.conversation",
    "Entry": "entry",
    "Hit": "recall",
    "IntentRefused": "errors",
    "Jidomem": "runtime.root",
    "JidomemError": "errors",
    "LongTerm": "runtime.long_term",
    "MemoryItem": "item",
    "MemoryReader": "read.reader",
    "MemoryUpdateIntent": "intent",
    "MemoryWriter": "write.writer",
    "NotFound": "errors",
    "Promotion": "tiers.promotion",
    "RecallRequest": "recall",
    "RecallResult": "recall",
    "Receipt": "intent",
    "ShortTerm": "tiers.short",
    "TripleStore": "index.store",
    "WriteRequest": "entry",
    "WriteResult": "entry",
    "create_memory": "item",
    "open": "runtime.root:open_root",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, called = _PLACES[name].partition(":")
    found = globals()[name] = getattr(import_module(f"jidomem.{module}"), called or name)
    return found


def __dir__() -> list[str]:
    return ["__version__", *__all__]
