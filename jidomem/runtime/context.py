"""The context of a session: what it works with now, what the project knows, and what moves from one to the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from jidomem.errors import STOPPING, InvalidRequest, NotFound
from jidomem.recall import Hit
from jidomem.runtime.every import Every
from jidomem.runtime.promoted import Held, Promoted
from jidomem.runtime.promoting import Promoting
from jidomem.tiers import value
from jidomem.tiers.promotion import Promotion, PromotionDecision
from jidomem.tiers.short import ShortTerm
from jidomem.words import TELL_LITTLE

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

#: Seconds between two cycles of promotion, and how many entries of each tier are given for a query.
INTERVAL, LIMIT = 60.0, 10
_RAISE = object()


class ContextManager:
    """The short-term memory of one session beside the long-term memory of its project, which other sessions share.

    Every *interval* seconds, never where that is None, what is important enough is promoted: as an intent, judged like
    every other. `last_cycle` is what became of it. Use it in a `with`, or close it.
    """

    def __init__(
        self,
        memory: Jidomem,
        session_id: str,
        *,
        project: str | None = None,
        agent: str | None = None,
        promotion: Promotion | None = None,
        interval: float | None = INTERVAL,
    ) -> None:
        """Begin with nothing in short-term memory.

        Raises InvalidRequest for a session without a name and for a *promotion* that is none.
        """
        self.session_id = _named(session_id)
        if promotion is not None and not isinstance(promotion, Promotion):
            raise InvalidRequest(
                f"promotion={promotion!r:.100} is no Promotion", hint="give Promotion.new(0.5), or leave it out"
            )
        self.project = project or memory.project
        self.agent = agent or memory.settings.agent
        self.promotion = promotion or Promotion()
        self.short_term = ShortTerm(session_id)
        self.long_term = memory.long_term(self.project)
        self.last_cycle: tuple[PromotionDecision, ...] = ()
        self._memory, self._kept = memory, Promoted(memory.index, self.project, memory.catch_up)
        self._promoting = Promoting(memory, self.project, self.agent, session_id, self.promotion, self._kept)
        self._done: dict[str, str] = {}
        self._lock = RLock()
        self._forget: Callable[[], object] = lambda: None
        self._timer = Every(interval, self.promote_all, f"promotion of {session_id:.40}")

    def store(self, key: str, held: Any, promote: bool | Literal["force"] = False) -> Literal[True] | PromotionDecision:
        """Return True once short-term memory holds the value under *key*; with *promote*, what becomes of it for long.

        It is then promoted at once if it is important enough, with `"force"` in any case. Raises InvalidRequest for
        what is no key.
        """
        if promote not in (False, True, "force"):
            raise InvalidRequest(f"promote={promote!r:.100} is none", hint='give True, "force", or leave it out')
        self.short_term.put(key, held)
        return self._promote(key, held, force=promote == "force") if promote else True

    def retrieve(self, key: str, default: Any = _RAISE) -> Any:
        """Return what short-term memory holds under *key*, else what long-term memory was given under it.

        That is the value as it was stored, unless somebody has said otherwise since: then it is what the memory says.
        Where there is none, *default* if one is given, else NotFound is raised.
        """
        entry = self.short_term.entry(key)
        if entry is not None:
            return entry.value
        for found in self._kept.under(key)[:1]:
            return value.given_back(key, found.values, found.summary, found.explanation)
        if default is _RAISE:
            raise NotFound(f"neither tier holds anything under {key!r:.200}", hint="store it, or look with get_context")
        return default

    def get_context(self, query: str, *, limit: int = LIMIT) -> dict[str, list[dict[str, Any]]]:
        """Return what both tiers hold of what *query* asks, each up to *limit* entries, the best first.

        `short_term` has key and value of each entry whose key or content holds a word of the query: those first that
        hold most of them, of these the newest. `long_term` has iri, type, content, keys and score of each memory in
        force that was promoted under the query, or under a word of it, as its key; then of those that recall finds.
        Raises InvalidRequest for an empty query and a limit that is none.
        """
        scores = {hit.id: hit.score for hit in self._recalled(query, limit)}
        keyed = self._kept.under(*filter(str.isprintable, dict.fromkeys([query.strip(), *query.split()])))
        first = {held.iri for held in keyed}
        found = [*keyed, *self._kept.named(item for item in scores if item not in first)]
        return {
            "short_term": self._matching(query)[:limit],
            "long_term": [_told(held, scores.get(held.iri)) for held in found[:limit]],
        }

    def promote_all(self) -> list[PromotionDecision]:
        """Return what became of each entry of short-term memory that is new or changed since it was promoted.

        Where nothing can be judged now, since another writer is busy or the disk refuses, the cycle ends: the next one
        takes up the rest.
        """
        with self._lock:
            entries = self.short_term.get_all()
            self._done = {key: self._done[key] for key, _ in entries if key in self._done}
            found: list[PromotionDecision] = []
            for key, held in entries:
                if self._done.get(key) != _mark(held):
                    found.append(self._promote(key, held))
                    if found[-1].error is not None and found[-1].error.code in STOPPING:
                        break
            self.last_cycle = tuple(found)
            return found

    def close(self) -> None:
        """End the cycle of promotion; what is in short-term memory goes with this object."""
        self._timer.stop()
        self._forget()

    def __enter__(self) -> ContextManager:
        """Return the context itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _promote(self, key: str, held: Any, *, force: bool = False) -> PromotionDecision:
        with self._lock:
            decision = self._promoting.promote(key, held, force=force)
            if decision.outcome not in ("discarded", "refused"):
                self._done[key] = _mark(held)
            return decision

    def _recalled(self, query: str, limit: int) -> Sequence[Hit]:
        try:
            return self._memory.recall(query, self.project, agent_id=self.agent, limit=limit).entries
        except NotFound:  # nothing was ever written
            return ()

    def _matching(self, query: str) -> list[dict[str, Any]]:
        """Return the entries of short-term memory that hold words of *query*: with most first, then the newest."""
        stems = self._memory.texts.stemmer.stems
        said = [*stems(query)]
        asked = {stem for word, stem in said if word not in TELL_LITTLE} or {stem for _, stem in said}
        ranked = []
        for key, held in reversed(self.short_term.get_all()):
            shared = asked & {stem for _, stem in stems(f"{key}\n{_text(held)}")}
            if shared:
                ranked.append((len(shared), {"key": key, "value": held}))
        return [entry for _, entry in sorted(ranked, key=lambda each: -each[0])]


class Contexts:
    """The open contexts of a root, each by its project, agent and session."""

    def __init__(self, memory: Jidomem) -> None:
        self._memory = memory
        self._open: dict[tuple[str, str, str], ContextManager] = {}
        self._lock = RLock()

    def open(self, session_id: str, project: str, agent: str, **options: Any) -> ContextManager:
        """Return the context of a session: until it is closed, the same one.

        Raises InvalidRequest for what is no name, and where *options* are given for one that is open.
        """
        place = (project, agent, _named(session_id))
        with self._lock:
            if place in self._open and options:
                hint = "leave the options out, or close it first"
                raise InvalidRequest(f"the context of {session_id!r} is open already", hint=hint)
            if place not in self._open:
                made = ContextManager(self._memory, session_id, project=project, agent=agent, **options)
                made._forget = lambda: self._closed(place, made)
                self._open[place] = made
            return self._open[place]

    def _closed(self, place: tuple[str, str, str], context: ContextManager) -> None:
        with self._lock:
            if self._open.get(place) is context:
                del self._open[place]

    def close(self) -> None:
        """Close all of them."""
        for context in [*self._open.values()]:
            context.close()


def _named(session_id: str) -> str:
    """Return the name of a session; raises InvalidRequest for what is none."""
    if not isinstance(session_id, str) or not session_id.strip():
        raise InvalidRequest(f"{session_id!r:.200} is no name of a session", hint='name it: "session-42"')
    return session_id


def _mark(held: Any) -> str:
    """Return a text that is another one where a value changed; none for what cannot be promoted."""
    try:
        return value.written(held)
    except InvalidRequest:
        return ""


def _text(held: Any) -> str:
    """Return the text of a value in which words are looked for."""
    if isinstance(held, str):
        return held
    try:
        return json.dumps(held, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(held)


def _told(held: Held, score: float | None) -> dict[str, Any]:
    content = value.content_of(held.summary, held.explanation)
    return {"iri": held.iri, "type": held.type, "content": content, "keys": list(held.keys), "score": score}
