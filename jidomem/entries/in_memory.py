"""A store that keeps its entries in this process, and shows what the contract asks of every other."""

from __future__ import annotations

from itertools import islice
from threading import Lock

from jidomem.entries.store import NO_OPTIONS, Options, StoreError, check_spelling
from jidomem.entry import Entry, WriteRequest, WriteResult
from jidomem.errors import InvalidRequest
from jidomem.recall import RecallRequest, RecallResult

_OPTIONS = ("pid", "include_sessions")


class MissingHandle(StoreError, ValueError):
    """The in-memory store was used by its class, and nothing says which of them is meant."""

    code = "invalid_argument"


class InMemoryStore:
    """Entries of this process: gone when it ends, safe for threads, shared with no other InMemoryStore.

    Recall gives the newest first whatever is asked for; the query leaves nothing out. Options: `pid` is the store that
    is meant, where only the class is given; `include_sessions=True` lets an agent recall what is of other sessions.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[str, Entry] = {}  # by id, in the order they were written

    @classmethod
    def for_options(cls, opts: Options) -> InMemoryStore:
        """Return the store that the option `pid` holds. Raises MissingHandle unless there is one."""
        handle = opts.get("pid")
        if not isinstance(handle, InMemoryStore):
            hint = "start one: handle = InMemoryStore(); then give handle, or (InMemoryStore, {'pid': handle})"
            raise MissingHandle("in-memory memory store requires pid", reason=handle, hint=hint)
        return handle

    def recall(self, request: RecallRequest, opts: Options = NO_OPTIONS) -> RecallResult:
        """Return the entries that *request* covers, the newest first, up to its limit; raises InvalidRequest."""
        check_spelling(opts, _OPTIONS)
        every = opts.get("include_sessions", False)
        if not isinstance(every, bool):
            raise InvalidRequest(f"include_sessions={every!r} is no truth", hint="give include_sessions=True")
        store = self._meant(opts)
        with store._lock:
            newest = reversed(store._entries.values())
            covered = (entry for entry in newest if request.covers(entry, include_sessions=every))
            found = list(islice(covered, request.limit))
        return RecallResult(request, found)

    def write(self, request: WriteRequest, opts: Options = NO_OPTIONS) -> WriteResult:
        """Keep the entry as the newest, in the place of one with the same id."""
        check_spelling(opts, _OPTIONS)
        entry = request.entry
        store = self._meant(opts)
        with store._lock:
            store._entries.pop(entry.id, None)
            store._entries[entry.id] = entry
        return WriteResult(request, entry)

    def list_entries(self, opts: Options = NO_OPTIONS) -> list[Entry]:
        """Return all entries, the oldest first."""
        check_spelling(opts, _OPTIONS)
        store = self._meant(opts)
        with store._lock:
            return list(store._entries.values())

    def _meant(self, opts: Options) -> InMemoryStore:
        return self.for_options(opts) if "pid" in opts else self
