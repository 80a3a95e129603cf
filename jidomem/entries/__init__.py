"""The entries: the store contract of an agent's own texts, and its conformance tests.

They import the records. Start with `store`.
"""

from jidomem.entries.store import (
    FromContext,
    InMemoryStore,
    InvalidPolicy,
    MemoryOff,
    MemoryPolicy,
    MissingContext,
    MissingHandle,
    MissingSession,
    MissingStore,
    Prompt,
    Run,
    Spec,
    Store,
    StoreError,
    list_entries,
    recall,
    write,
)
from jidomem.records.entry import Entry, IdGenerator, InvalidEntry, InvalidWrite, WriteRequest, WriteResult
from jidomem.records.recall import InvalidRecall, RecallRequest, RecallResult

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
