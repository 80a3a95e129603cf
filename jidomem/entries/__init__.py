"""The recall and write contract: entries, requests, results, and the stores that keep them."""

from jidomem.entries.in_memory import InMemoryStore, MissingHandle
from jidomem.entries.policy import FromContext, InvalidPolicy, MemoryPolicy, Spec
from jidomem.entries.store import Store, StoreError, list_entries, recall, write
from jidomem.entries.turns import MemoryOff, MissingContext, MissingSession, MissingStore, Prompt, Run
from jidomem.entry import Entry, IdGenerator, InvalidEntry, InvalidWrite, WriteRequest, WriteResult
from jidomem.recall import InvalidRecall, RecallRequest, RecallResult

__all__ = [
    "Entry",
    "FromContext",
    "IdGenerator",
    "InMemoryStore",
    "InvalidEntry",
    "InvalidPolicy",
    "InvalidRecall",
    "InvalidWrite",
    "MemoryOff",
    "MemoryPolicy",
    "MissingContext",
    "MissingHandle",
    "MissingSession",
    "MissingStore",
    "Prompt",
    "RecallRequest",
    "RecallResult",
    "Run",
    "Spec",
    "Store",
    "StoreError",
    "WriteRequest",
    "WriteResult",
    "list_entries",
    "recall",
    "write",
]
