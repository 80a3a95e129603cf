"""The durable store: entries of agents in the history of a project, journalled, and looked through by their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jidomem.entries.store import NO_OPTIONS, Options
from jidomem.entry import Entry, WriteRequest, WriteResult
from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.index import OxigraphIndex
from jidomem.index.texts import Texts
from jidomem.intent import Receipt
from jidomem.query import to_term
from jidomem.read.entries import Entries
from jidomem.recall import RecallRequest, RecallResult
from jidomem.terms import bare
from jidomem.write.writer import MemoryWriter


class EntryStore:
    """A store of entries that lasts: what was written is durable, and a later write under an id replaces it.

    Options: `project` is whose history is meant, *project* unless given; `as_of` asks for what was kept at a moment;
    `include_sessions=True` lets an agent recall what is of other sessions. Others are left alone.
    """

    def __init__(
        self,
        project: str,
        writer: MemoryWriter,
        texts: Callable[[], Texts],
        index: OxigraphIndex,
        catch_up: Callable[[str], object],
    ) -> None:
        self.project = project
        self._writer = writer
        self._texts = texts
        self._index = index
        self._catch_up = catch_up

    def recall(self, request: RecallRequest, opts: Options = NO_OPTIONS) -> RecallResult:
        """Return the entries within the scope that hold words of the query, the best first, and then the newest.

        So an agent that has entries always gets some, up to the limit; `metadata["scores"]` has what each one's words
        count, by its id, and nothing of those that hold none.
        """
        every = opts.get("include_sessions", False)
        if not isinstance(every, bool):
            raise InvalidRequest(f"include_sessions={every!r} is no truth", hint="give include_sessions=True")
        entries, moment = self._entries(opts), _moment(opts)
        found = entries.covered(request, include_sessions=every, moment=moment) if self._is_there(opts) else []
        scores = {entry.id: score for entry, score in found if score}
        return RecallResult(request, [entry for entry, _ in found], {"scores": scores})

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

    def list_entries(self, opts: Options = NO_OPTIONS) -> list[Entry]:
        """Return the entries of every agent, the one that was written first before the others."""
        return self._entries(opts).kept(_moment(opts)) if self._is_there(opts) else []

    def _entries(self, opts: Options) -> Entries:
        return Entries(self._project(opts), self._texts(), self._index)

    def _project(self, opts: Options) -> str:
        return str(opts.get("project") or self.project)

    def _is_there(self, opts: Options) -> bool:
        """Return whether anything was ever kept, once all of it is in view; raises NotFound for a project named so."""
        try:
            self._catch_up(self._project(opts))
        except NotFound as unknown:
            if unknown.code != "unknown_project" or opts.get("project"):
                raise
            return False
        return True


def _told(receipt: Receipt) -> dict[str, Any]:
    """Return what is told of a write: the IRI of the entry, its commit, and warnings where there are any."""
    warned = {"warnings": list(receipt.warnings)} if receipt.warnings else {}
    return {"iri": receipt.iri, "commit": receipt.commit, **warned}


def _moment(opts: Mapping[str, Any]) -> str | None:
    """Return the moment that is asked about, None for now."""
    given = opts.get("as_of")
    return None if given is None else bare(to_term(given, "dateTime", "as_of"))
