"""jidomem: the governed memory of AI agents.

with jidomem.open(root) as memory:
    receipt = memory.writer.submit_intent("my-project", MemoryUpdateIntent(type="fact", summary="...", ...))
    memory.reader.list_open_tasks("my-project")
"""

from jidomem.errors import JidomemError
from jidomem.index.store import TripleStore
from jidomem.intent import MemoryUpdateIntent, Receipt
from jidomem.item import MemoryItem, create_memory
from jidomem.read.reader import MemoryReader
from jidomem.runtime.long_term import LongTerm
from jidomem.runtime.root import Jidomem
from jidomem.runtime.root import open_root as open  # noqa: A004
from jidomem.write.writer import MemoryWriter

__version__ = "0.1.0"
__all__ = [
    "Jidomem",
    "JidomemError",
    "LongTerm",
    "MemoryItem",
    "MemoryReader",
    "MemoryUpdateIntent",
    "MemoryWriter",
    "Receipt",
    "TripleStore",
    "create_memory",
    "open",
]
