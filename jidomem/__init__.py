"""jidomem: the governed memory of AI agents.

with jidomem.open(root) as memory:
    receipt = memory.writer.submit_intent("my-project", MemoryUpdateIntent(type="fact", summary="...", ...))
    memory.reader.list_open_tasks("my-project")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jidomem.errors import JidomemError
    from jidomem.index.store import TripleStore
    from jidomem.intent import MemoryUpdateIntent, Receipt
    from jidomem.item import MemoryItem, create_memory
    from jidomem.read.reader import MemoryReader
    from jidomem.runtime.context import ContextManager
    from jidomem.runtime.long_term import LongTerm
    from jidomem.runtime.root import Jidomem
    from jidomem.runtime.root import open_root as open  # noqa: A004
    from jidomem.tiers.conversation import ConversationBuffer
    from jidomem.tiers.promotion import Promotion
    from jidomem.tiers.short import ShortTerm
    from jidomem.write.writer import MemoryWriter

__version__ = "0.1.0"
__all__ = [
    "ContextManager",
    "ConversationBuffer",
    "Jidomem",
    "JidomemError",
    "LongTerm",
    "MemoryItem",
    "MemoryReader",
    "MemoryUpdateIntent",
    "MemoryWriter",
    "Promotion",
    "Receipt",
    "ShortTerm",
    "TripleStore",
    "create_memory",
    "open",
]
#: Where each name is found once it is asked for: who needs one module of ours does not wait for all of them.
_PLACES = {
    "ContextManager": "runtime.context",
    "ConversationBuffer": "tiers.conversation",
    "Jidomem": "runtime.root",
    "JidomemError": "errors",
    "LongTerm": "runtime.long_term",
    "MemoryItem": "item",
    "MemoryReader": "read.reader",
    "MemoryUpdateIntent": "intent",
    "MemoryWriter": "write.writer",
    "Promotion": "tiers.promotion",
    "Receipt": "intent",
    "ShortTerm": "tiers.short",
    "TripleStore": "index.store",
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
    return sorted({*globals(), *__all__})
