"""The two tiers of a session: short-term memory, long-term memory and the promotion between them.

A promoted value is submitted as an intent, and supersedes the memory of its agent that has its key. Long-term memory is
the four named graphs of a project.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, overload
from warnings import warn

from jidomem.base.background import PeriodicTask
from jidomem.base.clock import parse_moment
from jidomem.base.containers import grouped
from jidomem.base.words import TELL_LITTLE, normal_text, topic_key
from jidomem.errors import STOPPING, Conflict, InvalidRequest, JidomemError, NotFound, PolicyDenied
from jidomem.exchange import documents, importer
from jidomem.index.store import OxigraphIndex
from jidomem.index.triple_store import DerivedStore, QueryResult, Rows, TripleStore, named_graph, shown
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.statements import Statement, to_triples
from jidomem.rdf.terms import Term, iri, literal, plain_value
from jidomem.rdf.vocab import BASE, GRAPHS, JIDO, TYPE, family, graph_iri, jido, type_of, type_uri
from jidomem.records.active import have_common_moment, is_accepted
from jidomem.records.intent import MemoryUpdateIntent, Receipt
from jidomem.records.recall import Hit
from jidomem.schema import ontology
from jidomem.schema.ontology import Schema
from jidomem.working import tiers
from jidomem.working.tiers import Promotion, PromotionDecision, ShortTerm
from jidomem.write.conflict import UniqueKey
from jidomem.write.normalize import normalize
from jidomem.write.snapshot import ENDS
from jidomem.write.writer import MemoryWriter

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

_STATUS, _ASSERTED = jido("hasAssertionStatus"), jido("Asserted")


class AssertedMemory(NamedTuple):
    """An asserted memory that nothing superseded or withdrew.

    It has its content, the agents that asserted it, its keys with the values stored for them, whether it is active at
    the moment, and the start and end of its validity, with which its conflicts are found.
    """

    iri: str
    type: str
    summary: str
    explanation: str | None
    keys: tuple[str, ...]
    values: tuple[str, ...]
    agents: tuple[str, ...]
    is_active: bool
    start: datetime
    end: datetime | None


class PromotionIndex:
    """The asserted memories of a project that nothing ended, the newest first."""

    def __init__(
        self, index: OxigraphIndex, project: str, catch_up: Callable[[str], object], now: Callable[[], datetime]
    ) -> None:
        self._index, self._project, self._catch_up, self._now = index, project, catch_up, now
        self._graph = graph_iri(project)

    def active_under(self, *keys: str) -> list[AssertedMemory]:
        """Return the active memories that were promoted under any of *keys*."""
        return [memory for memory in self.promoted_under(*keys) if memory.is_active]

    def promoted_under(self, *keys: str) -> list[AssertedMemory]:
        """Return the memories that were promoted under any of *keys*."""
        return self._asserted(lambda: (item for key in keys for item in self._with(jido("key"), literal(key))))

    def with_summary(self, kind: str, summary: str) -> list[AssertedMemory]:
        """Return the memories of the type *kind* with exactly this summary."""
        memories = self._asserted(lambda: self._with(jido("summary"), literal(summary)))
        return [memory for memory in memories if type_uri(memory.type) == type_uri(kind)]

    def named(self, items: Iterable[str]) -> list[AssertedMemory]:
        """Return the memories *items*, in their order."""
        order = {item: place for place, item in enumerate(items)}
        return sorted(self._asserted(lambda: map(iri, order)), key=lambda memory: order[memory.iri])

    def _asserted(self, items: Callable[[], Iterable[Term]]) -> list[AssertedMemory]:
        """Return those of *items* that are asserted, have not ended and are not redacted."""
        try:
            self._catch_up(self._project)
        except NotFound:  # the project is empty
            return []
        dated = [self._read(item) for item in dict.fromkeys(items()) if self._is_current(item)]
        dated.sort(key=lambda each: (each[0], each[1].iri), reverse=True)
        return [memory for _, memory in dated if memory.summary]

    def _with(self, predicate: Term, value: Term) -> Iterable[Term]:
        return (item for item, _, _ in self._index.triples(self._graph, None, predicate, value))

    def _is_current(self, item: Term) -> bool:
        ends = (end for link in ENDS for _, _, end in self._index.triples(self._graph, item, link))
        return self._is_asserted(item) and not any(map(self._is_asserted, ends))

    def _is_asserted(self, item: Term) -> bool:
        return next(iter(self._index.triples(self._graph, item, _STATUS, _ASSERTED)), None) is not None

    def _read(self, item: Term) -> tuple[datetime, AssertedMemory]:
        """Return the time when *item* was recorded, and the memory."""
        triples = sorted(self._index.triples(self._graph, item))
        values = grouped((predicate, plain_value(term)) for _, predicate, term in triples)

        def texts(name: str) -> list[str]:
            return values.get(jido(name), [])

        def moments(name: str) -> Iterable[datetime]:
            return filter(None, map(parse_moment, texts(name)))

        now, recorded = self._now(), max(moments("recordedAt"))
        since, until = max(moments("validFrom"), default=None), min(moments("validUntil"), default=None)
        is_valid = (since is None or since <= now) and (until is None or now < until)
        memory = AssertedMemory(
            iri=plain_value(item),
            type=next(filter(None, map(type_of, values.get(TYPE, ()))), ""),
            summary=next(iter(texts("summary")), ""),
            explanation=next(iter(texts("detailedExplanation")), None),
            keys=tuple(texts("key")),
            values=tuple(texts("value")),
            agents=tuple(texts("assertedBy")),
            is_active=is_valid and all(map(is_accepted, texts("decisionStatus"))),
            start=since or min(moments("hasTimestamp"), default=recorded),
            end=until,
        )
        return recorded, memory


_ADDS, _REPLACES = "A session says more of it.", "A session holds something else under its key."
_EXPLAINS = "detailed_explanation"
_OUTCOME = {"deduplicated": "known", "proposed": "proposed"}


class SessionPromotion(NamedTuple):
    """The promotion of values of one session of an agent into the long-term memory of a project."""

    memory: Jidomem
    project: str
    agent: str
    session_id: str
    promotion: Promotion
    stored: PromotionIndex

    def promote(self, key: str, value: Any, *, force: bool) -> PromotionDecision:
        """Decide about the *value* under *key*, promote it if accepted, and return the decision, with its reason.

        If a memory of that key, or of the same type and content, has all of the value, nothing is written; else it is
        superseded, unless it is another agent's or of another type: then that is a conflict, or a proposal by the
        policy. One that is never valid with the value, such as an ended one, stays. *force* skips the test of
        importance.
        """
        verdict = PromotionDecision("refused", "", 0.0, "facts")
        try:
            item = tiers.item_of(value, session_id=self.session_id, now=self.memory.sources.now())
            verdict = self.promotion.decide(item, force=force)
            if verdict.outcome != "discarded":
                verdict = self._keep(key, value, item, verdict)
        except JidomemError as refusal:
            verdict = replace(verdict, outcome="refused", reason=refusal.detail, error=refusal)
        return replace(verdict, key=key)

    def _keep(self, key: str, value: Any, item: Mapping[str, Any], verdict: PromotionDecision) -> PromotionDecision:
        new, alike = self._normal(key, item, verdict), list[str]()
        while True:
            before = self._replaceable(self.stored.promoted_under(key), new)
            try:
                return self._write(key, value, new, verdict, before, alike)
            except Conflict as conflict:
                if self._replaceable(self.stored.promoted_under(key), new) != before:
                    continue  # another process was first
                duplicates = [each.iri for each in conflict.conflicts if each.kind == "duplicate"]
                if alike or len(duplicates) < len(conflict.conflicts):
                    raise
                alike = duplicates  # they differ only in case or white space

    def _write(
        self,
        key: str,
        value: Any,
        new: Mapping[str, Any],
        verdict: PromotionDecision,
        before: Sequence[AssertedMemory],
        alike: Sequence[str],
    ) -> PromotionDecision:
        """Write *new*, the fields of the value, superseding the memories *before* under the key; return the decision.

        The memories *alike* have the same content. Raises Conflict if another process wrote under the key
        meanwhile.
        """
        restated = partial(self.memory.writer.restated, self.project)
        known = {memory.iri: restated(memory.iri) for memory in before}
        same = [iri for iri, old in known.items() if _is_same(new, old)]
        others = [each.iri for each in before if each.iri not in same and self._keeps_its_key(each, new)]
        policy = self.memory.settings.policy.on_conflict.get(family(new["type"]))
        waits = bool(others) and not same and policy == "propose"
        if not waits:  # else the proposal is to supersede them
            known = {iri: old for iri, old in known.items() if iri not in others}
        under = UniqueKey(key, frozenset(known))
        repeated = self._replaceable(self.stored.with_summary(new["type"], new["summary"]), new)
        for other in (*(memory.iri for memory in repeated), *alike):
            old = restated(other)
            if other not in known and _is_same(new, old) and _on_one_matter(new, old):
                known[other], same = old, [*same, other]
        # a memory with further keys stays active, without this key
        shared = [iri for iri, old in known.items() if iri not in same and len(tiers.keys_of(old)) > 1]
        ended = [iri for iri in known if iri not in shared]
        args = (under, value, new)
        receipt = self._add(*args, known[same[0]], ended) if same else self._submit(*args, ended, propose=waits)
        for other in shared:
            changed = {**tiers.fields_without_key(key, known[other]), **self._author()}
            self.memory.writer.revise(self.project, other, changes=changed, reason=_REPLACES)
        outcome = _OUTCOME.get(receipt.status, "updated" if known else "promoted")
        warnings = "".join(f"; {warning}" for warning in receipt.warnings) if outcome == "proposed" else ""
        return replace(verdict, outcome=outcome, reason=f"{verdict.reason}{warnings}", iri=receipt.iri, receipt=receipt)

    def _replaceable(self, memories: Iterable[AssertedMemory], new: Mapping[str, Any]) -> list[AssertedMemory]:
        """Return those of *memories* that are valid at a moment at which *new* is valid, too."""
        start, end = parse_moment(new.get("valid_from") or new.get("timestamp")), parse_moment(new.get("valid_until"))
        return [each for each in memories if have_common_moment((start, each.start), (end, each.end))]

    def _keeps_its_key(self, memory: AssertedMemory, new: Mapping[str, Any]) -> bool:
        """Return whether *memory* is another agent's, or says something else of another type, and *new* does not name
        it in supersedes.
        """
        own = self.memory.writer.speaker_iri(self.agent)
        is_other = own is not None and plain_value(own) not in memory.agents
        says_else = normal_text(memory.summary) != normal_text(new["summary"])
        of_other_type = family(memory.type) != family(new["type"]) and says_else
        return (is_other or of_other_type) and memory.iri not in new.get("supersedes", ())

    def _submit(
        self, under: UniqueKey, value: Any, new: Mapping[str, Any], ended: list[str], *, propose: bool = False
    ) -> Receipt:
        """Submit a new memory that supersedes those *ended*, with *propose* a proposal; return its receipt."""
        replaced = [*dict.fromkeys([*new.get("supersedes", ()), *ended])]
        supersession = {"supersedes": replaced, "reason": new.get("reason", _REPLACES)} if replaced else {}
        extras = [*new["extra_triples"], *tiers.value_triple(under.key, value, new["summary"], new.get(_EXPLAINS))]
        author = {**self._author(), "applies_to_project": self.project}
        intent = {"confidence": "medium", **new, **author, **supersession, "extra_triples": extras}
        return self.memory.writer.submit_intent(self.project, intent, under=under, propose=propose)

    def _add(
        self, under: UniqueKey, value: Any, new: Mapping[str, Any], old: Mapping[str, Any], ended: list[str]
    ) -> Receipt:
        """Revise *old* by the fields of *new* that it lacks, and return the receipt; without such fields write nothing.

        The content of *old* may differ in case and white space: it stays unless the memory has this key only.
        """
        new = {name: given for name, given in new.items() if name not in ("supersedes", "reason")}
        if tiers.keys_of(old) != [under.key]:
            new = {**new, **{name: old[name] for name in ("summary", _EXPLAINS) if name in new and name in old}}
        explanation = new.get(_EXPLAINS, old.get(_EXPLAINS))
        extras = [*new["extra_triples"], *tiers.value_triple(under.key, value, new["summary"], explanation)]
        changed = tiers.changes({**new, "extra_triples": extras}, old)
        if not changed and len(ended) == 1:
            return Receipt(old["iri"], None, self.memory.writer.refresh(self.project), "deduplicated")
        changed |= {"supersedes": ended, **self._author()}
        return self.memory.writer.revise(self.project, old["iri"], changes=changed, reason=_ADDS, under=under)

    def _normal(self, key: str, item: Mapping[str, Any], verdict: PromotionDecision) -> dict[str, Any]:
        """Return the fields of *item* in canonical form; raises IntentRefused for an invalid one."""
        given_fields = tiers.fields_of(item, self._kind(item), verdict.category)
        given_fields["extra_triples"] = [*given_fields["extra_triples"], tiers.extra_triple(tiers.KEY, key)]
        sources, schema = self.memory.sources, self.memory.schema
        normal = normalize(
            MemoryUpdateIntent(**given_fields), now=sources.now(), new_id=sources.new_id, schema=schema
        ).intent
        fields = {name: value for name, value in normal.to_dict().items() if name in given_fields}
        return {"summary": "", **fields, "extra_triples": [triple[1:] for triple in normal.extra_triples]}

    def _kind(self, item: Mapping[str, Any]) -> str:
        """Return the type of memory for *item*: by its rule, else its own."""
        given = item["type"]
        return self.promotion.kind(item) if given in self.promotion.rules else given

    def _author(self) -> dict[str, str]:
        return {"asserted_by": self.agent, "asserted_in": self.session_id}


def _is_same(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether *old* has the type and the content of *new*, ignoring case; its explanation may be longer."""
    first, second = (normal_text(tiers.original_content(each["summary"], each.get(_EXPLAINS))) for each in (new, old))
    return first == second and new["type"] == old.get("type")


def _on_one_matter(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether *new* has the topic and subjects of *old*, or no topic and subjects."""
    is_topic = not new.get("topic") or topic_key(new["topic"]) == topic_key(old.get("topic") or "")
    return is_topic and new.get("about") in (None, [], old.get("about"))


#: Seconds between two cycles of promotion, and the default limit of entries of each tier for a query.
INTERVAL, LIMIT = 60.0, 10
#: The most keys that a warning names.
_MOST_NAMED = 3
_RAISE = object()


class ContextManager:
    """The short-term memory of one session and the long-term memory of its project, shared with other sessions.

    Every *interval* seconds (None: never), important values are promoted as intents, validated like all others.
    `last_cycle` has the decisions. Use it in a `with`, or close it.
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
        """Start with an empty short-term memory.

        Raises InvalidRequest for a session without a name, and for an invalid *promotion*.
        """
        self.session_id = _named(session_id)
        if promotion is not None and not isinstance(promotion, Promotion):
            raise InvalidRequest(
                f"promotion={promotion!r:.100} is not a Promotion", hint="give Promotion.new(0.5), or leave it out"
            )
        self.project = project or memory.project
        self.agent = agent or memory.settings.agent
        self.promotion = promotion or Promotion()
        self.short_term = ShortTerm(session_id)
        self.long_term = memory.long_term(self.project)
        self.last_cycle: tuple[PromotionDecision, ...] = ()
        self._memory = memory
        self._stored = PromotionIndex(memory.index, self.project, memory.catch_up, memory.sources.now)
        self._promoting = SessionPromotion(memory, self.project, self.agent, session_id, self.promotion, self._stored)
        self._done: dict[str, str] = {}
        self._decided: dict[str, str] = {}
        self._is_closed = False
        self._lock = RLock()
        self._unregister: Callable[[], object] = lambda: None
        self._timer = PeriodicTask(interval, self.promote_all, f"promotion of {session_id:.40}")

    @overload
    def store(self, key: str, value: Any, promote: Literal[False] = False) -> Literal[True]: ...

    @overload
    def store(self, key: str, value: Any, promote: Literal[True, "force"]) -> PromotionDecision: ...

    @overload
    def store(
        self, key: str, value: Any, promote: bool | Literal["force"] = False
    ) -> Literal[True] | PromotionDecision: ...

    def store(
        self, key: str, value: Any, promote: bool | Literal["force"] = False
    ) -> Literal[True] | PromotionDecision:
        """Store the value under *key* in short-term memory; return True, or with *promote* the decision on it.

        With *promote* it is promoted at once if it is important enough, with `"force"` in any case. Raises
        InvalidRequest for an invalid key and for a closed context.
        """
        if self._is_closed:
            raise InvalidRequest(
                f"the context of {self.session_id!r} is closed: nothing was stored",
                hint=f"open it again: memory.context({self.session_id!r})",
            )
        if promote not in (False, True, "force"):
            raise InvalidRequest(f"promote={promote!r:.100} is not valid", hint='give True, "force", or leave it out')
        self.short_term.put(key, value)
        return self._promote(key, value, force=promote == "force") if promote else True

    def retrieve(self, key: str, default: Any = _RAISE) -> Any:
        """Return the value under *key* in short-term memory, else in long-term memory.

        From long-term memory it is the stored value, or the content of the memory if that has changed since. Without
        either, returns *default* if given, else raises NotFound.
        """
        entry = self.short_term.entry(key)
        if entry is not None:
            return entry.value
        for memory in self._stored.active_under(key)[:1]:
            return tiers.restored_value(key, memory.values, memory.summary, memory.explanation)
        if default is _RAISE:
            raise NotFound(f"neither tier has a value for {key!r:.200}", hint="store it, or search with get_context")
        return default

    def get_context(self, query: str, *, limit: int = LIMIT) -> dict[str, list[dict[str, Any]]]:
        """Return the matches of *query* in both tiers, up to *limit* entries of each, the best first.

        `short_term` has key and value of each entry with a word of the query in its key or content: those with most of
        them first, then the newest. `long_term` has iri, type, content, keys and score of each active memory that was
        promoted under the query, or a word of it, as its key; then of those that recall finds. Raises InvalidRequest
        for an empty query and an invalid limit.
        """
        scores = {hit.id: hit.score for hit in self._recalled(query, limit)}
        keyed = self._stored.active_under(*filter(str.isprintable, dict.fromkeys([query.strip(), *query.split()])))
        first = {memory.iri for memory in keyed}
        memories = [*keyed, *self._stored.named(item for item in scores if item not in first)]
        long_term = [
            {
                "iri": memory.iri,
                "type": memory.type,
                "content": tiers.content_of(memory.summary, memory.explanation),
                "keys": list(memory.keys),
                "score": scores.get(memory.iri),
            }
            for memory in memories[:limit]
        ]
        return {"short_term": self._matching(query)[:limit], "long_term": long_term}

    def promote_all(self) -> list[PromotionDecision]:
        """Return the decision on each entry of short-term memory that is new or changed since its promotion.

        The cycle ends at an error that would stop every further write, such as a busy writer or a full disk; the next
        cycle continues.
        """
        with self._lock:
            entries = self.short_term.get_all()
            self._done = {key: self._done[key] for key, _ in entries if key in self._done}
            decisions: list[PromotionDecision] = []
            for key, value in entries:
                if self._done.get(key) != _mark(value):
                    decisions.append(self._promote(key, value))
                    if decisions[-1].error is not None and decisions[-1].error.code in STOPPING:
                        break
            self.last_cycle = tuple(decisions)
            return decisions

    def close(self) -> None:
        """Stop the promotion cycle; short-term memory is lost with this object.

        A warning names the values that are important enough and that no promotion was tried of.
        """
        self._timer.stop()
        self._unregister()
        if not self._is_closed:
            self._is_closed = True
            if lost := [key for key, value in self.short_term.get_all() if self._is_lost(key, value)]:
                names = ", ".join(map(repr, lost[:_MOST_NAMED])) + (", ..." if len(lost) > _MOST_NAMED else "")
                number = "a value" if len(lost) == 1 else f"{len(lost)} values"
                text = f"the context of {self.session_id!r} was closed with {number} not promoted: {names}"
                warn(f"{text}; call promote_all() before", stacklevel=2)

    def __enter__(self) -> ContextManager:
        """Return the context itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def _promote(self, key: str, value: Any, *, force: bool = False) -> PromotionDecision:
        with self._lock:
            decision = self._promoting.promote(key, value, force=force)
            self._decided[key] = _mark(value)
            if decision.outcome not in ("discarded", "refused"):
                self._done[key] = _mark(value)
            return decision

    def _is_lost(self, key: str, value: Any) -> bool:
        """Return whether the *value* under *key* is important enough for a promotion that was never tried."""
        if self._decided.get(key) == _mark(value):
            return False
        try:
            item = tiers.item_of(value, session_id=self.session_id, now=self._memory.sources.now())
            return self.promotion.should_promote(item)
        except InvalidRequest:
            return False

    def _recalled(self, query: str, limit: int) -> Sequence[Hit]:
        try:
            return self._memory.recall(query, self.project, agent_id=self.agent, limit=limit).entries
        except NotFound:  # the project is empty
            return ()

    def _matching(self, query: str) -> list[dict[str, Any]]:
        """Return the entries of short-term memory with words of *query*: those with most first, then the newest."""
        stems = self._memory.texts.stemmer.stems
        word_stems = [*stems(query)]
        wanted = {stem for word, stem in word_stems if word not in TELL_LITTLE} or {stem for _, stem in word_stems}
        ranked = []
        for key, value in reversed(self.short_term.get_all()):
            shared = wanted & {stem for _, stem in stems(f"{key}\n{_text(value)}")}
            if shared:
                ranked.append((len(shared), {"key": key, "value": value}))
        return [entry for _, entry in sorted(ranked, key=lambda each: -each[0])]


class Contexts:
    """The open contexts of a root, by project, agent and session."""

    def __init__(self, memory: Jidomem) -> None:
        self._memory = memory
        self._open: dict[tuple[str, str, str], ContextManager] = {}
        self._lock = RLock()

    def open(self, session_id: str, project: str, agent: str, **options: Any) -> ContextManager:
        """Return the context of a session: the same one until it is closed.

        Raises InvalidRequest for an invalid name, and if *options* are given for an open context.
        """
        place = (project, agent, _named(session_id))
        with self._lock:
            if place in self._open and options:
                hint = "leave the options out, or close it first"
                raise InvalidRequest(f"the context of {session_id!r} is open already", hint=hint)
            if place not in self._open:
                context = ContextManager(self._memory, session_id, project=project, agent=agent, **options)
                context._unregister = lambda: self._closed(place, context)
                self._open[place] = context
            return self._open[place]

    def _closed(self, place: tuple[str, str, str], context: ContextManager) -> None:
        with self._lock:
            if self._open.get(place) is context:
                del self._open[place]

    def close(self) -> None:
        """Close all contexts."""
        for context in [*self._open.values()]:
            context.close()


def _named(session_id: str) -> str:
    if not isinstance(session_id, str) or not session_id.strip():
        raise InvalidRequest(f"{session_id!r:.200} is not a name of a session", hint='name it: "session-42"')
    return session_id


def _mark(value: Any) -> str:
    """Return a text that changes with the value; "" for a value that cannot be promoted."""
    try:
        return tiers.to_json(value)
    except InvalidRequest:
        return ""


def _text(value: Any) -> str:
    """Return the words of a value, for searches."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


_STREAM_OF = {graph: stream for stream, graph in NAMES.items()}
_FOREIGN = ("http://jidoka.ai/ontology#", "http://jidoka.ai/ontology/")
_FACT = f"""\
SELECT ?subject ?predicate ?object WHERE {{
  VALUES ?class {{ <{JIDO}Fact> {" ".join(f"<{namespace}Fact>" for namespace in _FOREIGN)} }}
  ?subject a ?class ; <{JIDO}localId>{"".join(f"|<{namespace}id>" for namespace in _FOREIGN)} %s ; ?predicate ?object .
}} ORDER BY ?subject ?predicate ?object
"""


class LongTerm:
    """The four graphs of a project (context, codebase, history and system) in a TripleStore.

    Statements are stored unchecked; `Jidomem.long_term` returns the same interface to a root, which validates them.
    """

    def __init__(self, project: str, store: TripleStore | None = None, *, base: str | None = None) -> None:
        """Use *store* for *project*, by default one in memory, with graphs below *base*, by default the store's."""
        plain = TripleStore(base=base or BASE) if store is None else store
        self.project = Stream(project).project
        self.graphs = _graphs(project, plain.base if base is None else base)
        self.store: TripleStore | DerivedStore = plain
        self._plain = plain

    def insert(self, statements: Iterable[Statement], graph: str = "context") -> Literal[True]:
        """Insert *statements* into *graph*, all of them or, on an error, none; return True.

        Each is (subject, predicate, object) by the rules of `jidomem.rdf.statements`; equivalent terms of other
        vocabularies are mapped to ours. Raises NotFound for an unknown graph, InvalidRequest for an invalid statement.
        """
        rows = documents.mapped(to_triples(statements), ontology.load([]))
        return self._plain.insert_triples(rows, self.graph_iri(graph))

    def clear_graph(self, graph: str) -> Literal[True]:
        """Delete all triples of *graph*, and return True; the other graphs are unchanged."""
        return self._plain.clear_graph(self.graph_iri(graph))

    def query(self, text: str) -> QueryResult:
        """Return the answer to a SPARQL query on the four graphs together; GRAPH and FROM name one by its IRI.

        Rows are mappings of plain Python values, ASK is a bool, CONSTRUCT returns triples that `insert` takes. Raises
        PolicyDenied for an update or SERVICE, TooLarge, InvalidRequest for a syntax error.
        """
        return shown(self.store.answer(text, list(self.graphs.values())))

    def get_fact(self, id: str) -> Rows:  # noqa: A002 - the name the memory guide gives it
        """Return subject, predicate and object of all statements of the fact whose `jido:localId` is *id*."""
        return cast(Rows, self.query(_FACT % literal(id)))

    def graph_iri(self, graph: str) -> str:
        """Return the IRI of one of the four graphs; raises NotFound, with the nearest names, for other names."""
        return named_graph(graph, self.graphs)


class RootedLongTerm(LongTerm):
    """The four graphs of a project of a root: statements are validated, and stored in the journal."""

    def __init__(
        self, project: str, index: OxigraphIndex, catch_up: Callable[[], object], writer: MemoryWriter, schema: Schema
    ) -> None:
        self.project = Stream(project).project
        self.graphs = _graphs(project, BASE)
        self.store = DerivedStore(index, list(self.graphs.values()), catch_up)
        self._writer = writer
        self._schema = schema

    def insert(self, statements: Iterable[Statement], graph: str = "context") -> Literal[True]:
        """Insert *statements* into *graph* durably, all of them or, on an error, none; return True.

        Statements on context are memories, validated like every intent, and descriptions of other things; those of
        other graphs are checked against the ontology and the shapes. Raises the errors of `MemoryWriter.submit_intent`
        and `LongTerm.insert`.
        """
        rows, stream = to_triples(statements), self._stream(graph)
        if rows and stream == "memory":
            importer.insert(self._writer, self._schema, self.project, rows)
        elif rows:
            self._writer.append(self.project, stream, documents.mapped(rows, self._schema))
        return True

    def clear_graph(self, graph: str) -> Literal[True]:
        """Clear *graph* and return True; its journal keeps the history.

        Raises PolicyDenied `index_is_derived` for the graph of memories, which are withdrawn individually.
        """
        stream = self._stream(graph)
        if stream == "memory":
            raise PolicyDenied(
                f"the memories of {self.project} are in a journal, and are never cleared",
                hint="withdraw single ones: memory.writer.invalidate(project, iri, reason=...)",
                code="index_is_derived",
            )
        self._writer.clear(self.project, stream)
        return True

    def _stream(self, graph: str) -> str:
        iri = self.graph_iri(graph)
        return _STREAM_OF[next(name for name, value in self.graphs.items() if value == iri)]


def _graphs(project: str, base: str) -> Mapping[str, str]:
    return {name: f"{base}projects/{project}/graphs/{long}" for name, long in GRAPHS.items()}
