"""The durable store: entries of agents in the history of a project, journalled, and recalled by the engine of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from jidomem.entries.store import NO_OPTIONS, Options, check_spelling
from jidomem.entry import Entry, WriteRequest, WriteResult
from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.govern.quoted import tokens
from jidomem.index.text_file import Within
from jidomem.intent import Receipt
from jidomem.journal.files import Stream
from jidomem.query import moment_of
from jidomem.read.entries import ENTRIES, Entries, own
from jidomem.read.keyed import KeyedEntries
from jidomem.recall import Narrowing, RecallRequest, RecallResult
from jidomem.write.history import EntryChanges
from jidomem.write.writer import MemoryWriter

if TYPE_CHECKING:
    from jidomem.runtime.recalls import Recalls

#: What of the narrowing of memories holds for entries, too; and where else what does not is asked.
_HONOURED = ("as_of", "since", "until", "budget_tokens", "explain")
_OPTIONS = ("project", "include_sessions", *_HONOURED)
#: Fields of a request, which are no options.
_OF_REQUEST = ("query", "limit", "scope", "agent_id", "session_id")
_ELSEWHERE = 'ask memory.recall("...", kinds=["entry"]), which takes it'
_HINTS = {
    "agent": "name it in the request, as agent_id",
    "session": "name it in the request, as session_id",
    "kinds": 'leave it out, or ask memory.recall("...", kinds=["entry", "turn"])',
}


class EntryStore:
    """A store of entries that lasts: what was written is durable, and a later write under an id replaces it.

    Options: `project` is whose history is meant, *project* unless given; `as_of` asks for what was kept at a moment;
    `include_sessions=True` lets an agent recall what is of other sessions; `since` and `until` bound when it was kept,
    `budget_tokens` how long all texts may be, and `explain=True` tells the parts of each score. What recall of
    memories takes beside these is refused, and so is a misspelt one; others are left alone.
    """

    def __init__(self, project: str, writer: MemoryWriter, memory: Recalls) -> None:
        """Keep by *writer*, and look through what *memory*, an open root, has."""
        self.project = project
        self._writer = writer
        self._memory = memory

    def recall(self, request: RecallRequest, opts: Options = NO_OPTIONS) -> RecallResult:
        """Return the entries within the scope that answer the query, the best first, and then the newest.

        So an agent that has entries always gets some, up to the limit; `metadata["scores"]` has by its id how well
        each one answers, and nothing of those that do not.
        """
        narrowing, every = _narrowing(opts)
        if not self._is_there(opts):
            return RecallResult(request, [], {"scores": {}})
        project, now = self._project(opts), self._memory.now()
        within = Within(
            moment=moment_of(opts.get("as_of"), "as_of"),
            kinds=ENTRIES,
            since=moment_of(opts.get("since"), "since"),
            until=moment_of(opts.get("until"), "until"),
            own=own(request, every=every),
        )
        alike = self._memory.alike_to(request.query, project, within.moment, spoken=True)
        found = self._entries(opts).covered(request, within, now, alike)
        told = _fitting(found.entries, narrowing.budget_tokens)
        named = {name: entry.id for name, entry in told.items() if name in found.scores}
        metadata: dict[str, Any] = {"scores": {id_: found.scores[name] for name, id_ in named.items()}}
        if narrowing.explain:
            metadata["parts"] = {id_: found.parts[name] for name, id_ in named.items()}
        if narrowing.budget_tokens is not None:
            metadata["left_out"] = len(found.entries) - len(told)
        said = {"ranking": found.ranking, **self._memory.lag(project)}
        return RecallResult(request, [*told.values()], {**metadata, **said})

    def write(self, request: WriteRequest, opts: Options = NO_OPTIONS) -> WriteResult:
        """Keep the entry, durable when this returns, in the place of the one with the same id.

        Raises InvalidRequest for metadata that JSON does not hold, TooLarge, IntentRefused for what looks like a
        secret, PolicyDenied, Busy and Failed; then nothing was kept.
        """
        (result,) = self.write_many([request], opts)
        if isinstance(result, JidomemError):
            raise result
        return result

    def write_many(
        self, requests: Iterable[WriteRequest], opts: Options = NO_OPTIONS
    ) -> list[WriteResult | JidomemError]:
        """Return what came of each write, in order: its result, or the error for which it was not kept.

        They share commits, each of which waits for the disk once.
        """
        asked = list(requests)
        outcomes = self._writer.keep_entries(self._project(opts), [request.entry for request in asked])
        return [
            outcome
            if isinstance(outcome, JidomemError)
            else WriteResult(request, request.entry, metadata=_told(outcome))
            for request, outcome in zip(asked, outcomes, strict=True)
        ]

    def remove(self, ids: Iterable[str], opts: Options = NO_OPTIONS) -> int:
        """Return how many of *ids* something was kept under; it is there no longer, and stays in the history.

        All are taken back in one commit, durable when this returns, or none. Raises PolicyDenied, Busy and Failed.
        """
        return len(self.change(lambda: EntryChanges(removed=tuple(dict.fromkeys(ids))), opts))

    def change(self, plan: Callable[[], EntryChanges], opts: Options = NO_OPTIONS) -> list[Receipt]:
        """Return the receipts of what *plan* says is to become of entries, all of it in one commit or nothing.

        *plan* may read what is kept: nobody else writes before the commit. Raises what `write` and *plan* raise.
        """
        receipts = self._writer.change_entries(self._project(opts), plan)
        return [receipt for receipt in receipts if receipt.iri]

    def keyed(self, beginning: str, group: Callable[[str], str] = str) -> KeyedEntries:
        """Return the entries of this project whose ids begin so, at hand in memory, in groups that *group* names."""
        tail, history = self._memory.tail, Stream(self.project, "history")
        return KeyedEntries(self._memory.index, history.graph, beginning, lambda: tail.catch_up(history), group)

    def list_entries(self, opts: Options = NO_OPTIONS) -> list[Entry]:
        """Return the entries of every agent, the one that was written first before the others."""
        return self._entries(opts).kept(moment_of(opts.get("as_of"), "as_of")) if self._is_there(opts) else []

    def _entries(self, opts: Options) -> Entries:
        return Entries(self._project(opts), self._memory.texts, self._memory.index)

    def _project(self, opts: Options) -> str:
        check_spelling(opts, _OPTIONS)
        return str(opts.get("project") or self.project)

    def _is_there(self, opts: Options) -> bool:
        """Return whether anything was ever kept, once all of it is in view; raises NotFound for a project named so."""
        try:
            self._memory.catch_up(self._project(opts))
        except NotFound as unknown:
            if unknown.code != "unknown_project" or opts.get("project"):
                raise
            return False
        return True


def _told(receipt: Receipt) -> dict[str, Any]:
    """Return what is told of a write: the IRI of the entry, its commit, and warnings where there are any."""
    warned = {"warnings": list(receipt.warnings)} if receipt.warnings else {}
    return {"iri": receipt.iri, "commit": receipt.commit, **warned}


def _narrowing(opts: Options) -> tuple[Narrowing, bool]:
    """Return what the options ask for, and whether all sessions are meant; raises InvalidRequest for what is none."""
    check_spelling(opts, _OPTIONS)
    if of_request := [name for name in _OF_REQUEST if name in opts]:
        raise InvalidRequest(f"{of_request[0]} is no option", hint=f"give {of_request[0]} in the request")
    every = opts.get("include_sessions", False)
    if not isinstance(every, bool):
        raise InvalidRequest(f"include_sessions={every!r} is no truth", hint="give include_sessions=True")
    for name in opts:
        if name in Narrowing.__slots__ and name not in _HONOURED:
            raise InvalidRequest(f"a store of entries is not asked by {name}", hint=_HINTS.get(name, _ELSEWHERE))
    return Narrowing(**{name: opts[name] for name in _HONOURED if opts.get(name) is not None}), every


def _fitting(entries: Mapping[str, Entry], budget: int | None) -> dict[str, Entry]:
    """Return as many of the first *entries* as have texts of *budget* tokens together."""
    if budget is None:
        return dict(entries)
    spent = accumulate(tokens(entry.content) for entry in entries.values())
    return {name: entry for (name, entry), sum_ in zip(entries.items(), spent, strict=True) if sum_ <= budget}
