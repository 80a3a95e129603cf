"""The short-term tier of a session, and the promotion of its items to long-term memory.

`ShortTerm` holds a limited number of entries by key, until the process ends. `ConversationBuffer` holds the newest
messages within a number of tokens. `Promotion` decides which items are important enough to be stored, and as which
class; `changes` compares a promoted item with the memory it updates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from threading import Lock
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from jidomem.base import clock
from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.json_values import parse_json, to_json_value
from jidomem.errors import InvalidRequest, JidomemError, NotFound, did_you_mean
from jidomem.rdf import vocab
from jidomem.rdf.terms import Triple, date_time, iri, literal
from jidomem.rdf.vocab import JIDO, TYPE, XSD, jido
from jidomem.records.intent import MemoryItem, Receipt
from jidomem.working.container import TO_ONTOLOGY

MAX_TOKENS = 100_000
Estimator = Callable[[str], int]


def estimate(text: str) -> int:
    """Return the estimated tokens of *text*: a quarter of its characters, plus one.

    >>> estimate(""), estimate("abc"), estimate("abcd")
    (1, 1, 2)
    """
    return len(text) // 4 + 1


class Message(NamedTuple):
    """A message: its role (user, assistant, system, tool), content, moment and tokens."""

    role: str
    content: str
    timestamp: datetime
    tokens: int


@dataclass(frozen=True, slots=True)
class ConversationBuffer:
    """The newest `messages`, oldest first, with `current_tokens` in all.

    The sum is at most `max_tokens`, unless the newest message alone exceeds it: that one always stays. `evicted` are
    the messages removed by the last `add`, oldest first.
    """

    max_tokens: int = MAX_TOKENS
    estimator: Estimator = estimate
    messages: tuple[Message, ...] = ()
    current_tokens: int = 0
    evicted: tuple[Message, ...] = ()

    @classmethod
    def new(cls, max_tokens: int = MAX_TOKENS, *, estimator: Estimator = estimate) -> ConversationBuffer:
        """Return an empty buffer; raises InvalidRequest for a *max_tokens* below 1."""
        if not _is_count(max_tokens) or max_tokens == 0:
            raise InvalidRequest(
                f"max_tokens={max_tokens!r} is not a positive whole number", hint=f"give max_tokens={MAX_TOKENS}"
            )
        return cls(max_tokens, estimator)

    def add(self, role: str, content: str, *, now: Callable[[], datetime] = clock.now) -> ConversationBuffer:
        """Return the buffer with one more message, without the oldest ones that no longer fit.

        Raises InvalidRequest for a role or content that is not a text, and for an invalid number of tokens.
        """
        if not isinstance(role, str) or not role.strip() or not isinstance(content, str):
            raise InvalidRequest(
                f"a message has a role and a content: {role!r:.100} and {content!r:.100} are not both texts",
                hint='add("user", "the text of the message")',
            )
        tokens = self.estimator(content)
        if not _is_count(tokens):
            raise InvalidRequest(
                f"the estimator returned {tokens!r} tokens", hint="let it return a whole number from 0"
            )
        messages, total, evicted = (
            (*self.messages, Message(role, content, now(), tokens)),
            self.current_tokens + tokens,
            0,
        )
        while total > self.max_tokens and evicted < len(messages) - 1:
            total -= messages[evicted].tokens
            evicted += 1
        return replace(self, messages=messages[evicted:], current_tokens=total, evicted=messages[:evicted])

    def get_context(self, window: int | None = None) -> list[dict[str, str]]:
        """Return role and content of each message, oldest first; with *window* only the last ones.

        Raises InvalidRequest for a negative window.
        """
        if window is not None and not _is_count(window):
            raise InvalidRequest(f"window={window!r} is not a whole number from 0", hint="leave window out for all")
        first = 0 if window is None else max(len(self.messages) - window, 0)
        return [{"role": each.role, "content": each.content} for each in self.messages[first:]]


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


#: A value with a type and a content: a mapping, or a result of `create_memory`.
Item = Mapping[str, Any] | MemoryItem
#: The fields of a value beside its content, by the names of an intent; and those that are lists.
FIELDS = (
    "rationale", "detailed_explanation", "topic", "about", "evidence", "status", "severity", "assigned_to",
    "confidence", "convention_name", "convention_scope", "enforcement_level", "alternatives", "tracked_by",
    "expires_on", "valid_from", "valid_until", "source_type", "supersedes", "reason",
)  # fmt: skip
_LISTS = ("about", "evidence", "alternatives", "supersedes")
#: The types of a task, whose content may be in `text` and whose status may be that of working memory.
_TASKS = ("task", "task_completed")
#: The further fields of a value -> the property that stores each.
_PROPERTIES: Mapping[str, str] = {
    "id": "localId", "key": "key", "context": "context", "affected_module": "affectedModule",
    "affectedModule": "affectedModule",
}  # fmt: skip
_SOURCES: Mapping[str, str] = {
    "user": "UserSource", "agent": "AgentSource", "tool": "ToolSource", "document": "ExternalDocumentSource",
}  # fmt: skip
KEY, VALUE, CATEGORY, VERIFIED = (JIDO + name for name in ("key", "value", "category", "verified"))


def item_fields(item: Item) -> dict[str, Any]:
    """Return the fields of *item* by name, with its metadata; raises InvalidRequest for any other value."""
    if isinstance(item, MemoryItem):
        plain = {
            "type": item.type, "content": item.content, "timestamp": item.timestamp, "confidence": item.confidence,
            "source": item.source, "verified_by_user": item.verified, "high_confidence": item.confidence >= 0.8,
        }  # fmt: skip
        return {**item.metadata, **plain}
    if not isinstance(item, Mapping):
        raise InvalidRequest(
            f"an item is a mapping, not {type(item).__name__}", hint='give {"type": "fact", "content": "..."}'
        )
    metadata = item.get("metadata")
    own = {name: value for name, value in item.items() if name != "key"}  # the key is that of the entry
    return {**(metadata if isinstance(metadata, Mapping) else {}), **own}


def item_of(value: Any, *, session_id: str, now: datetime) -> dict[str, Any]:
    """Return the item for the promotion of *value*: of its type if it is a mapping with one, else a fact.

    Its content is the text under `content` of a mapping, else the value. Its session and moment are the given ones.
    """
    own = _with_content(value)
    moment = own["timestamp"] if isinstance(value, MemoryItem) else now
    source = {"source_type": _SOURCES[own["source"]]} if own.get("source") in [*_SOURCES] else {}
    return {"type": "fact", **source, **own, "timestamp": moment, "source": f"session:{session_id}"}


def text_of(content: Any) -> str:
    """Return *content* as text: unchanged, or as JSON; raises InvalidRequest if JSON cannot represent it."""
    return content.strip() if isinstance(content, str) else to_json(content, readable=True)


def summary_and_explanation(item: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the summary and the explanation of *item*; of a content of several lines the first is the summary.

    Raises InvalidRequest if JSON cannot represent the content, and for an explanation that is not a text.
    """
    text, more = text_of(item.get("content")), item.get("detailed_explanation") or ""
    if not isinstance(more, str):
        raise InvalidRequest(
            f"detailed_explanation={more!r:.100} is not a text", hint="give it as text, or leave it out"
        )
    if "\n" in text:
        return text.splitlines()[0].strip(), f"{text}\n\n{more}".strip()
    return text, more.strip() or None


def fields_of(item: Mapping[str, Any], kind: str, category: str) -> dict[str, Any]:
    """Return the fields of the intent of that *kind* that *item* has; raises InvalidRequest for invalid values."""
    summary, explanation = summary_and_explanation(item)
    given = {name: item[name] for name in FIELDS if item.get(name) is not None}
    given |= {name: [given[name]] for name in _LISTS if isinstance(given.get(name), str)}
    if explanation is not None:
        given["detailed_explanation"] = explanation
    if item.get("high_confidence") is True:
        given.setdefault("confidence", "high")
    if item.get("type") == "task_completed":
        given.setdefault("status", "Completed")
    if kind == "task" and isinstance(given.get("status"), str):
        given["status"] = TO_ONTOLOGY.get(given["status"], given["status"])
    moment = parse_moment(item.get("timestamp"))
    if moment is not None:
        given["timestamp"] = format_timestamp(moment)
    return {**given, "type": kind, "summary": summary, "extra_triples": _extras(item, category)}


def extra_triple(predicate: str, text: str, datatype: str = "string") -> list[Any]:
    """Return an extra triple of a memory, in the form in which it is read back."""
    return [predicate, {"@value": text, "@type": XSD + datatype}]


def value_triple(key: str, value: Any, summary: str, explanation: str | None) -> list[list[Any]]:
    """Return the extra triple from which the value of *key* is restored; empty if the content is exactly the value.

    Raises InvalidRequest for a value that JSON cannot represent exactly.
    """
    if value == original_content(summary, explanation):
        return []
    return [extra_triple(VALUE, f"[{to_json(key)}, {to_json(value)}]")]


def restored_value(key: str, values: Iterable[str], summary: str, explanation: str | None) -> Any:
    """Return the value promoted under *key*; the content of the memory if that was changed since.

    *values* are the `jido:value` of the memory.
    """
    for name, value in filter(None, map(parse_key_value, values)):
        if name == key and _is_recoverable(value, summary, explanation):
            return value
    return original_content(summary, explanation)


def parse_key_value(text: str) -> tuple[str, Any] | None:
    """Return the key and the value in a `jido:value`, or None if it has another form."""
    try:
        parsed = parse_json(text)
    except InvalidRequest:
        return None
    is_pair = isinstance(parsed, list) and len(parsed) == 2 and isinstance(parsed[0], str)
    return (parsed[0], parsed[1]) if is_pair else None


def content_of(summary: str, explanation: str | None) -> str:
    """Return the content of a memory: its summary and its explanation, which may begin with the summary."""
    if not explanation:
        return summary
    return explanation if explanation.startswith(summary) else f"{summary}\n{explanation}"


def original_content(summary: str, explanation: str | None) -> str:
    """Return the original content of a memory: the explanation if its first line is the summary, else the summary."""
    lines = (explanation or "").splitlines()
    return explanation or "" if len(lines) > 1 and lines[0].strip() == summary else summary


def _is_recoverable(value: Any, summary: str, explanation: str | None) -> bool:
    stored = original_content(summary, explanation)
    return _folded(original_content(*summary_and_explanation(_with_content(value)))) == _folded(stored)


def _folded(text: str) -> str:
    """Return *text* normalised for comparison: two keys may have one content in different case and white space."""
    return " ".join(text.casefold().split())


def _with_content(value: Any) -> dict[str, Any]:
    own = item_fields(value) if isinstance(value, (Mapping, MemoryItem)) else {}
    content = own.get("content", own.get("text") if own.get("type") in _TASKS else None)
    return {**own, "content": content if isinstance(content, str) and content.strip() else value}


def _extras(item: Mapping[str, Any], category: str) -> list[Any]:
    triples = [extra_triple(CATEGORY, category)]
    for name, called in _PROPERTIES.items():
        given = item.get(name)
        for one in given if isinstance(given, (list, tuple)) else [] if given is None else [given]:
            if isinstance(one, bool) or not isinstance(one, (str, int)):
                raise InvalidRequest(f"{name}={one!r:.100} is not a text", hint=f"give {name} as text, or leave it out")
            triples.append(extra_triple(JIDO + called, str(one).strip()))
    if item.get("verified") is True or item.get("verified_by_user") is True:
        triples.append(extra_triple(VERIFIED, "true", "boolean"))
    return triples


def to_json(value: Any, *, readable: bool = False) -> str:
    """Return *value* as one JSON text; raises InvalidRequest for a value that JSON cannot represent exactly."""
    fields = _fields(value) if isinstance(value, MemoryItem) else value
    try:
        return json.dumps(to_json_value(fields, "value"), ensure_ascii=not readable, sort_keys=True)
    except RuntimeError as error:  # another thread adds keys
        raise InvalidRequest(f"the value changed while it was read: {error}", hint="store a copy of it") from None


def _fields(item: MemoryItem) -> dict[str, Any]:
    fields = {name: getattr(item, name) for name in item.__slots__}
    return {**fields, "timestamp": format_timestamp(item.timestamp), "metadata": dict(item.metadata)}


THRESHOLD = 0.5
TYPE_OF_CATEGORY: Mapping[str, str] = {
    "decisions": "decision", "errors": "error", "tasks": "task", "discoveries": "discovery",
    "conventions": "convention", "facts": "fact", "lessons": "lesson_learned", "assumptions": "assumption",
    "hypotheses": "hypothesis", "risks": "risk", "unknowns": "unknown",
}  # fmt: skip


class PromotionRule(NamedTuple):
    """The importance of a type of item, from 0 to 1, its category, and its type of memory."""

    importance: float
    category: str
    type: str | None = None


#: The rules of the memory guide.
RULES: Mapping[str, PromotionRule] = MappingProxyType(
    {
        "decision": PromotionRule(1.0, "decisions"),
        "error": PromotionRule(0.9, "errors"),
        "task_completed": PromotionRule(0.8, "tasks"),
        "discovery": PromotionRule(0.7, "discoveries"),
        "preference": PromotionRule(0.6, "conventions"),
    }
)
#: The same, and rules for all the other types of memory.
EXTENDED_RULES: Mapping[str, PromotionRule] = MappingProxyType(
    {
        **RULES,
        "architectural_decision": PromotionRule(1.0, "decisions", "architectural_decision"),
        "implementation_decision": PromotionRule(1.0, "decisions", "implementation_decision"),
        "lesson_learned": PromotionRule(0.8, "lessons"),
        "lesson": PromotionRule(0.8, "lessons"),
        "convention": PromotionRule(0.7, "conventions"),
        "risk": PromotionRule(0.7, "risks"),
        "task": PromotionRule(0.6, "tasks"),
        "fact": PromotionRule(0.5, "facts"),
        "assumption": PromotionRule(0.5, "assumptions"),
        "hypothesis": PromotionRule(0.5, "hypotheses"),
        "unknown": PromotionRule(0.5, "unknowns"),
    }
)
#: The fields that make an item more important; the first that is true takes precedence.
BOOSTS: Mapping[str, float] = MappingProxyType(
    {"verified_by_user": 0.1, "referenced_multiple_times": 0.1, "high_confidence": 0.05}
)
_NO_RULE = PromotionRule(0.0, "facts")
_NO_RULE_NAMES_IT = 'no rule names that type: EXTENDED_RULES name more, and promote="force" needs none'
_BINDS_ALL = '; it becomes a convention for all: what one person prefers is promoted with the type "fact"'


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """The outcome for one item, and the reason.

    `outcome` is discarded (not important enough), promoted, updated (the earlier memory is superseded), known (no
    change), proposed (for review) or refused, with the refusal of the writer in `error`. `iri` is the memory.
    """

    outcome: str
    reason: str
    importance: float
    category: str
    key: str | None = None
    iri: str | None = None
    receipt: Receipt | None = None
    error: JidomemError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON values."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "receipt": None if self.receipt is None else self.receipt.to_dict(),
            "error": None if self.error is None else self.error.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Promotion:
    """The rules of promotion: items with an importance of at least `threshold` are promoted.

    With `additive` all boosts of importance count, else only the first.
    """

    threshold: float = THRESHOLD
    rules: Mapping[str, PromotionRule] = field(default_factory=lambda: RULES)
    additive: bool = False

    @classmethod
    def new(
        cls, threshold: float = THRESHOLD, *, rules: Mapping[str, PromotionRule] = RULES, additive: bool = False
    ) -> Promotion:
        """Return the promotion by these rules; raises InvalidRequest for an invalid number or category."""
        for name, number in [("threshold", threshold), *((kind, rule[0]) for kind, rule in rules.items())]:
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 1:
                raise InvalidRequest(f"{name}: {number!r} is not a number from 0 to 1", hint=f"give {THRESHOLD}")
        given = {kind: PromotionRule(*rule) for kind, rule in rules.items()}
        for rule in given.values():
            _one_of("category", rule.category, TYPE_OF_CATEGORY)
            if rule.type is not None:
                _one_of("type", rule.type, vocab.CLASS_OF_TYPE)
        return cls(threshold, MappingProxyType(given), additive)

    def importance(self, item: Item) -> float:
        """Return the importance of *item*, from 0 to 1: that of its type plus its boosts.

        Raises InvalidRequest for an invalid item.
        """
        own = item_fields(item)
        holding = [boost for name, boost in BOOSTS.items() if _holds(own, name)]
        # rounded, since the floats 0.7 and 0.1 add up to less than 0.8
        return min(round(self._rule(own).importance + sum(holding if self.additive else holding[:1]), 9), 1.0)

    def category(self, item: Item) -> str:
        """Return the category of *item*: facts if no rule names its type."""
        return self._rule(item_fields(item)).category

    def kind(self, item: Item) -> str:
        """Return the type of memory for *item*."""
        rule = self._rule(item_fields(item))
        return rule.type or TYPE_OF_CATEGORY[rule.category]

    def should_promote(self, item: Item) -> bool:
        """Return whether the importance of *item* reaches the threshold."""
        return self.importance(item) >= self.threshold

    def decide(self, item: Item, known: str | None = None, *, force: bool = False) -> PromotionDecision:
        """Return the decision on *item*: discarded, promoted, or updated if it is *known*, an IRI.

        With *force* it counts as important enough.
        """
        own, importance = item_fields(item), self.importance(item)
        comparison = f"importance {importance:g} of {_type_of(own)!r}"
        if not force and importance < self.threshold:
            without = "" if _type_of(own) in self.rules else f"; {_NO_RULE_NAMES_IT}"
            reason = f"{comparison} is below the threshold {self.threshold:g}{without}"
            return PromotionDecision("discarded", reason, importance, self.category(own))
        reason = (
            f"{comparison} reaches the threshold {self.threshold:g}"
            if importance >= self.threshold
            else f"{comparison}, forced"
        )
        reason += _BINDS_ALL if _type_of(own) == "preference" and self.kind(own) == "convention" else ""
        return PromotionDecision("updated" if known else "promoted", reason, importance, self.category(own), iri=known)

    def promote(
        self, item: Item, *, new_id: Callable[[], str] = clock.new_id, now: Callable[[], datetime] = clock.now
    ) -> list[Triple]:
        """Return the triples of *item* with a new IRI: class, content and time; none if it is not important enough.

        They are among those that are stored when a session promotes it. A content of several lines has two triples: its
        first line, and the whole.
        """
        if not self.should_promote(item):
            return []
        own = item_fields(item)
        subject, (summary, explanation) = iri(f"{vocab.BASE}memory/{new_id()}"), summary_and_explanation(own)
        moment = parse_moment(own.get("timestamp")) or now()
        triples = [
            (subject, TYPE, iri(vocab.type_uri(self.kind(own)))),
            (subject, jido("summary"), literal(summary)),
            (subject, jido("hasTimestamp"), date_time(format_timestamp(moment))),
        ]
        return triples + ([(subject, jido("detailedExplanation"), literal(explanation))] if explanation else [])

    def _rule(self, own: Mapping[str, Any]) -> PromotionRule:
        return self.rules.get(_type_of(own), _NO_RULE)


def _type_of(own: Mapping[str, Any]) -> str:
    kind = own.get("type", "fact")
    if not isinstance(kind, str):
        raise InvalidRequest(f"type={kind!r:.100} is not a type of item", hint='give type as text, such as "decision"')
    return kind


def _holds(own: Mapping[str, Any], name: str) -> bool:
    given = own.get(name)
    if given is not None and not isinstance(given, bool):
        raise InvalidRequest(f"{name}={given!r:.100} is not a boolean", hint=f"give {name} as True, or leave it out")
    return given is True


def _one_of(what: str, given: str, known: Mapping[str, object]) -> None:
    if given not in known:
        hint = did_you_mean(given, known, f"use one of: {', '.join(known)}")
        raise InvalidRequest(f"{given!r} is not a {what} of a rule", hint=hint)


#: The properties with one value, where the new value replaces the old one.
_SINGLE = (CATEGORY, VERIFIED)


def keys_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the keys under which the memory with these *fields* was promoted."""
    return [each[1]["@value"] for each in fields.get("extra_triples", ()) if each[0] == KEY]


def changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to set in *old*, a memory with the same content, so that it has the values of *new* and keeps
    its others; empty if nothing differs.
    """
    fields = {name: value for name, value in new.items() if name not in ("extra_triples", "timestamp")}
    if "evidence" in fields:
        fields["evidence"] = [*dict.fromkeys([*old.get("evidence", ()), *fields["evidence"]])]
    changed = {name: value for name, value in fields.items() if value != old.get(name)}
    mine, theirs = new["extra_triples"], old.get("extra_triples", [])
    merged = [*mine, *(each for each in theirs if each not in mine and not _is_replaced(each, mine))]
    return changed if _sorted(merged) == _sorted(theirs) else {**changed, "extra_triples": merged}


def fields_without_key(key: str, old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to set in *old* to remove *key* from it; its other keys stay."""
    return {"extra_triples": [each for each in old["extra_triples"] if _key_in(each) != key]}


def _is_replaced(theirs: Sequence[Any], mine: Sequence[Sequence[Any]]) -> bool:
    if theirs[0] in _SINGLE:
        return any(each[0] == theirs[0] for each in mine)
    return theirs[0] == VALUE and _key_in(theirs) in [_key_in(each) for each in mine]


def _key_in(triple: Sequence[Any]) -> str | None:
    text = triple[1].get("@value", "")
    if triple[0] == KEY:
        return str(text)
    key_and_value = parse_key_value(text) if triple[0] == VALUE else None
    return key_and_value[0] if key_and_value else None


def _sorted(triples: Sequence[Any]) -> list[str]:
    return sorted(map(str, triples))


#: The most entries, and how many more than necessary are removed when that is exceeded.
MAXIMUM, SLACK = 1_000, 100
_RAISE = object()


class TimedValue(NamedTuple):
    """A value, and the time it was put, in milliseconds since 1970."""

    value: Any
    at: int


def eviction_count(size: int, maximum: int = MAXIMUM, slack: int = SLACK) -> int:
    """Return the number of oldest entries, out of *size*, to remove; the newest always stays.

    >>> eviction_count(1000), eviction_count(1001)
    (0, 101)
    """
    return min(size - maximum + slack, size - 1) if size > maximum else 0


class ShortTerm:
    """The entries of one session, oldest first; safe for threads."""

    def __init__(
        self,
        session_id: str | None = None,
        *,
        maximum: int = MAXIMUM,
        slack: int = SLACK,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        """Create an empty tier; raises InvalidRequest for a *maximum* below 1 or a *slack* below 0."""
        for name, number, least in (("maximum", maximum, 1), ("slack", slack, 0)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise InvalidRequest(f"{name}={number!r} is not a whole number from {least}", hint=f"leave {name} out")
        self.session_id = session_id
        self._maximum, self._slack, self._now_ms = maximum, slack, now_ms
        self._entries: dict[str, TimedValue] = {}
        self._lock = Lock()

    def put(self, key: str, value: Any) -> Literal[True]:
        """Store *value* under *key* as the newest entry and return True; the oldest are removed if there are too many.

        Raises InvalidRequest for a key that is not a text, is blank, begins or ends with a space, or is not printable.
        """
        if not isinstance(key, str) or not key or key != key.strip() or not key.isprintable():
            raise InvalidRequest(
                f"{key!r:.200} is not a key", hint="a key is a printable text without spaces at its ends"
            )
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = TimedValue(value, self._now_ms())
            if excess := eviction_count(len(self._entries), self._maximum, self._slack):
                for old in [*islice(self._entries, excess)]:
                    del self._entries[old]
        return True

    def get(self, key: str, default: Any = _RAISE) -> Any:
        """Return the value of *key*, or *default* if given; else raise NotFound."""
        with self._lock:
            entry = self._entries.get(key)
        if entry is not None:
            return entry.value
        if default is _RAISE:
            raise NotFound(
                f"short-term memory has nothing under {key!r:.200}", hint="put it there, or read all with get_all"
            )
        return default

    def entry(self, key: str) -> TimedValue | None:
        """Return the value of *key* and the time it was put, or None."""
        with self._lock:
            return self._entries.get(key)

    def get_all(self) -> list[tuple[str, Any]]:
        """Return every key with its value, the oldest first."""
        with self._lock:
            return [(key, entry.value) for key, entry in self._entries.items()]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
