"""Promotion: which items of short-term memory are important enough to be kept for long, and under which class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple

from jidomem import clock, vocab
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.intent import Receipt
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Triple, date_time, iri, literal
from jidomem.tiers.value import Item, said, told
from jidomem.vocab import TYPE, jido

THRESHOLD = 0.5
#: What a category is kept as.
TYPE_OF_CATEGORY: Mapping[str, str] = {
    "decisions": "decision",
    "errors": "error",
    "tasks": "task",
    "discoveries": "discovery",
    "conventions": "convention",
    "facts": "fact",
    "lessons": "lesson_learned",
    "assumptions": "assumption",
    "hypotheses": "hypothesis",
    "risks": "risk",
    "unknowns": "unknown",
}


class Rule(NamedTuple):
    """How important a type of item is, from 0 to 1, its category, and its type of memory unless the category's."""

    importance: float
    category: str
    type: str | None = None


#: The rules of the memory guide.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "decision": Rule(1.0, "decisions"),
        "error": Rule(0.9, "errors"),
        "task_completed": Rule(0.8, "tasks"),
        "discovery": Rule(0.7, "discoveries"),
        "preference": Rule(0.6, "conventions"),
    }
)
#: The same, and rules for all the other types of memory.
EXTENDED_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **RULES,
        "architectural_decision": Rule(1.0, "decisions", "architectural_decision"),
        "implementation_decision": Rule(1.0, "decisions", "implementation_decision"),
        "lesson_learned": Rule(0.8, "lessons"),
        "lesson": Rule(0.8, "lessons"),
        "convention": Rule(0.7, "conventions"),
        "risk": Rule(0.7, "risks"),
        "task": Rule(0.6, "tasks"),
        "fact": Rule(0.5, "facts"),
        "assumption": Rule(0.5, "assumptions"),
        "hypothesis": Rule(0.5, "hypotheses"),
        "unknown": Rule(0.5, "unknowns"),
    }
)
#: What makes an item more important, the first that holds before those after it.
BOOSTS: Mapping[str, float] = MappingProxyType(
    {"verified_by_user": 0.1, "referenced_multiple_times": 0.1, "high_confidence": 0.05}
)
_NO_RULE = Rule(0.0, "facts")


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """What became of one item, and why.

    `outcome` is discarded (not important enough), promoted, updated (what was known is superseded), known (nothing to
    add), proposed (a curator decides) or refused: then `error` is what the writer said. `iri` is the memory.
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
    """The rules by which items are promoted: what is as important as `threshold` is.

    With `additive` all that makes an item more important counts, and not the first alone.
    """

    threshold: float = THRESHOLD
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    additive: bool = False

    @classmethod
    def new(
        cls, threshold: float = THRESHOLD, *, rules: Mapping[str, Rule] = RULES, additive: bool = False
    ) -> Promotion:
        """Return the promotion by these rules; raises InvalidRequest for a number or a category that is none."""
        for name, number in [("threshold", threshold), *((kind, rule[0]) for kind, rule in rules.items())]:
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 1:
                raise InvalidRequest(f"{name}: {number!r} is no number from 0 to 1", hint=f"give {THRESHOLD}")
        given = {kind: Rule(*rule) for kind, rule in rules.items()}
        for rule in given.values():
            _one_of("category", rule.category, TYPE_OF_CATEGORY)
            if rule.type is not None:
                _one_of("type", rule.type, vocab.CLASS_OF_TYPE)
        return cls(threshold, MappingProxyType(given), additive)

    def importance(self, item: Item) -> float:
        """Return how important *item* is, from 0 to 1: as its type is, and more for what holds of it.

        Raises InvalidRequest for what is no item.
        """
        own = said(item)
        holding = [boost for name, boost in BOOSTS.items() if _holds(own, name)]
        # rounded, since 0.7 and 0.1 are together less than 0.8 otherwise
        return min(round(self._rule(own).importance + sum(holding if self.additive else holding[:1]), 9), 1.0)

    def category(self, item: Item) -> str:
        """Return the category of *item*: facts where no rule names its type."""
        return self._rule(said(item)).category

    def kind(self, item: Item) -> str:
        """Return the type of memory that *item* is kept as."""
        rule = self._rule(said(item))
        return rule.type or TYPE_OF_CATEGORY[rule.category]

    def should_promote(self, item: Item) -> bool:
        """Return whether *item* is as important as the threshold."""
        return self.importance(item) >= self.threshold

    def decide(self, item: Item, known: str | None = None, *, force: bool = False) -> PromotionDecision:
        """Return what is to become of *item*: discarded, promoted, or updated where it is *known*, an IRI.

        With *force* it counts as important enough.
        """
        own, importance = said(item), self.importance(item)
        told = f"importance {importance:g} of {_type_of(own)!r}"
        if not force and importance < self.threshold:
            without = "" if _type_of(own) in self.rules else "; no rule names that type: EXTENDED_RULES name more"
            reason = f"{told} is below the threshold {self.threshold:g}{without}"
            return PromotionDecision("discarded", reason, importance, self.category(own))
        reason = (
            f"{told} reaches the threshold {self.threshold:g}" if importance >= self.threshold else f"{told}, forced"
        )
        return PromotionDecision("updated" if known else "promoted", reason, importance, self.category(own), iri=known)

    def promote(
        self,
        item: Item,
        *,
        new_id: Callable[[], str] = clock.new_id,
        now: Callable[[], datetime] = clock.now,
    ) -> list[Triple]:
        """Return the triples that say *item* of a fresh IRI: its class, its content and when; none if unimportant.

        They are among those that are kept when a session promotes it. A content of several lines is said by two: its
        first line, and all of it.
        """
        if not self.should_promote(item):
            return []
        own = said(item)
        subject, (summary, explanation) = iri(f"{vocab.BASE}memory/{new_id()}"), told(own)
        moment = parse_moment(own.get("timestamp")) or now()
        triples = [
            (subject, TYPE, iri(vocab.type_uri(self.kind(own)))),
            (subject, jido("summary"), literal(summary)),
            (subject, jido("hasTimestamp"), date_time(stamp(moment))),
        ]
        return triples + ([(subject, jido("detailedExplanation"), literal(explanation))] if explanation else [])

    def _rule(self, own: Mapping[str, Any]) -> Rule:
        return self.rules.get(_type_of(own), _NO_RULE)


def _type_of(own: Mapping[str, Any]) -> str:
    kind = own.get("type", "fact")
    if not isinstance(kind, str):
        raise InvalidRequest(f"type={kind!r:.100} is no type of item", hint='give type as text, such as "decision"')
    return kind


def _holds(own: Mapping[str, Any], name: str) -> bool:
    """Return whether *name* holds; what is not said does not."""
    given = own.get(name)
    if given is not None and not isinstance(given, bool):
        raise InvalidRequest(f"{name}={given!r:.100} is no truth", hint=f"give {name} as True, or leave it out")
    return given is True


def _one_of(what: str, given: str, known: Mapping[str, object]) -> None:
    if given not in known:
        near = get_close_matches(str(given), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of: {', '.join(known)}"
        raise InvalidRequest(f"{given!r} is no {what} of a rule", hint=hint)
