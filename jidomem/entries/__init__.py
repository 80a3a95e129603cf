"""The recall and write contract: entries, requests, results, and the stores that keep them."""

from jidomem.entries.in_memory import InMemoryStore, MissingHandle
from jidomem.entries.store import Store, StoreError, list_entries, recall, write
from jidomem.entry import Entry, IdGenerator, InvalidEntry, InvalidWrite, WriteRequest, WriteResult
from jidomem.recall import InvalidRecall, RecallRequest, RecallResult

__all__ = [
    "Entry",
    "IdGenerator",
    "InMemoryStore",
    "InvalidEntry",
    "InvalidRecall",
    "InvalidWrite",
    "MissingHandle",
    "RecallRequest",
    "RecallResult",
    "Store",
    "StoreError",
    "WriteRequest",
    "WriteResult",
    "list_entries",
    "recall",
    "write",
]
