"""What waits for a curator, settled in one call: a proposal, two that disagree, or what is to be looked at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from jidomem.errors import Conflict, InvalidRequest, JidomemError
from jidomem.intent import Receipt
from jidomem.moments import stamp
from jidomem.terms import Term, bare, iri, literal
from jidomem.vocab import jido
from jidomem.write import conflict
from jidomem.write.correction import ACCEPTED, Corrections, otherwise
from jidomem.write.line import Outcome
from jidomem.write.restate import restated_in
from jidomem.write.stages import Judged
from jidomem.write.view import ITEM_MARK, View

ACTIONS = ("accept", "reject", "supersede", "keep-both")
#: Action -> the word for a memory that was settled by it.
OUTCOMES = {"accept": "accepted", "reject": "rejected", "supersede": "accepted", "keep-both": "accepted"}
#: How long an assumption without a date stands before it is asked about again.
_LATER = timedelta(days=90)
_KEY = jido("conflictKey")


@dataclass(frozen=True, slots=True)
class Settlement:
    """The judgement of a curator on one memory: an action, and the fields that `Settlements.settle` takes."""

    item: str
    action: str
    other: str | None = None
    reason: str | None = None
    changes: Mapping[str, Any] | None = None


class Settlements(Corrections):
    """The judgement of a curator on what waits; each is one more memory, and nothing is rewritten."""

    def settle(
        self,
        project_id: str,
        item: str,
        action: str,
        *,
        other: str | None = None,
        reason: str | None = None,
        changes: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Return the receipt of what settles *item*: a proposal, what disagrees with *other*, or what is due.

        *accept* holds it: a proposal is asserted, what is due holds on, and *other* is withdrawn. *reject* withdraws
        it. *supersede* asserts it in the place of what it disagrees with, *keep-both* beside that, where it says where
        each applies; *changes* are fields that either says otherwise. Raises InvalidRequest for what cannot be settled
        so, Conflict for what would not settle it, PolicyDenied for an agent that may only propose, and what
        `submit_intent` raises; nothing is kept then.
        """
        settlement = Settlement(item, action, other, reason, changes)
        (outcome,) = self.settle_many(project_id, [settlement], dry_run=dry_run)
        if isinstance(outcome, JidomemError):
            outcome.position = None
            raise outcome
        return outcome

    def settle_many(
        self, project_id: str, settlements: Sequence[Settlement], *, dry_run: bool = False
    ) -> list[Outcome]:
        """Return one receipt or refusal for each of *settlements*, in order, in one commit of all that are accepted.

        Each is judged with those before it in view, and the refusal of one stops no other. With *dry_run* nothing is
        kept.
        """
        judges = [partial(self._settled, project_id, settlement) for settlement in settlements]
        return self._together(project_id, lambda outcomes: judges, dry_run=dry_run)

    def _settled(self, project_id: str, settlement: Settlement, view: View, now: datetime) -> Judged:
        """Return the memory that settles one item, as `settle` says; raises what it raises."""
        item, action, other = settlement.item, settlement.action, settlement.other
        if action not in ACTIONS:
            raise InvalidRequest(f"{action!r} settles nothing", hint=f"one of: {', '.join(ACTIONS)}")
        if settlement.changes and action not in ("supersede", "keep-both"):
            raise InvalidRequest(f"{action} says nothing otherwise", hint="leave out `changes`")
        old = restated_in(view, item)  # raises for what is no memory
        if view.has_ended(iri(item)):
            raise _settled_already(iri(item), view)
        if other is not None:
            restated_in(view, other)
            _check_pair(iri(item), iri(other), action, view)
        reason = settlement.reason or _REASONS[action]
        if action == "reject":
            values = self._withdrawal(project_id, view, item, reason)
        elif action == "accept" and other is not None:
            reason = settlement.reason or f"rejected in review: {item} holds"
            values = self._withdrawal(project_id, view, other, reason)
        else:
            fields = self._accepted(iri(item), action, other, view, now)
            fields |= otherwise(old, settlement.changes or {})
            values = self._confirmation(project_id, view, item, reason, fields)
        judged = self._judge(project_id, values)(view, now)
        if judged.receipt.conflicts:
            raise Conflict(judged.receipt.conflicts)
        self._must_be_asserted(project_id, judged.receipt)
        return judged

    def _accepted(self, item: Term, action: str, other: str | None, view: View, now: datetime) -> dict[str, Any]:
        """Return the fields that assert *item* again, with or in place of what it disagrees with."""
        rivals = [iri(other)] if other else _rivals(item, view)
        if action in ("supersede", "keep-both") and not rivals:
            raise InvalidRequest(f"{bare(item)} disagrees with nothing in force", hint="accept it, or reject it")
        if action == "keep-both" and any(conflict.of_one_origin(item, rival, view) for rival in rivals):
            other = bare(rivals[0])
            raise InvalidRequest(
                "they took the place of one memory, which has one successor: both cannot be kept",
                hint=f"say one in the place of both: jidomem review supersede {bare(item)} --against {other}",
            )
        proposed = jido("Proposed") in view.objects(item, ITEM_MARK)
        replaced = [item, *(twins(item, view) if proposed else [])]
        old = replaces(item, view) if proposed else []
        replaced += old if action == "accept" else [each for each in old if not view.has_ended(each)]
        replaced += rivals if action == "supersede" else []
        values: dict[str, Any] = {"supersedes": [*dict.fromkeys(map(bare, replaced))]}
        if action == "keep-both":
            values["coexists_with"] = sorted(map(bare, rivals))
        if not proposed and not view.first(item, jido("expiresOn")) and jido("Assumption") in view.types(item):
            values["expires_on"] = stamp(now + _LATER)
        return values


_REASONS = {
    "accept": ACCEPTED,
    "reject": "rejected in review",
    "supersede": f"{ACCEPTED}, in place of what it disagrees with",
    "keep-both": f"{ACCEPTED}, beside what it disagrees with",
}


def _rivals(item: Term, view: View) -> list[Term]:
    """Return what *item* was proposed against, and what came since that it disagrees with."""
    recorded = [other for other in view.objects(item, jido("conflictsWith")) if view.in_force(other)]
    return [*dict.fromkeys([*recorded, *conflict.rivals(item, view)])]


def _settled_already(item: Term, view: View) -> InvalidRequest:
    """Return the refusal to settle what has ended, with what took its place."""
    if (newer := conflict.end_of_chain(item, view)) is not None:
        asserted = jido("Proposed") in view.objects(item, ITEM_MARK)
        how = "accepted as" if asserted else "replaced by"
        return InvalidRequest(
            f"{bare(item)} is settled already: it was {how} {bare(newer)}", hint=f"see: jidomem show {bare(newer)}"
        )
    ended = "replaced, and what replaced it was withdrawn"
    if view.objects(item, jido("invalidatedBy")):
        ended = "rejected" if jido("Proposed") in view.objects(item, ITEM_MARK) else "withdrawn"
    return InvalidRequest(f"{bare(item)} is settled already: it was {ended}", hint=f"see: jidomem show {bare(item)}")


def _check_pair(item: Term, other: Term, action: str, view: View) -> None:
    """Raise InvalidRequest unless they are two, neither has ended, and what is to hold does."""
    if item == other:
        raise InvalidRequest(f"{bare(item)} does not disagree with itself", hint="name the other one")
    if view.has_ended(other):
        raise _settled_already(other, view)
    holds = {"accept": item, "reject": other, "keep-both": other}.get(action)
    if holds is not None and not view.in_force(holds):
        rival = bare(other if holds == item else item)
        raise InvalidRequest(
            f"{bare(holds)} is only proposed, so it cannot hold in the place of {rival} or beside it",
            hint=f"assert it in that place: jidomem review supersede {bare(holds)} --against {rival}",
        )


def replaces(item: Term, view: View) -> list[Term]:
    """Return what *item* names as replaced, and what a proposal among that, which never counted, names in its turn."""
    found: dict[Term, None] = {}
    left = [item]
    while left:
        for other in view.objects(left.pop(), jido("supersedes")):
            if other not in found and jido("Proposed") in view.objects(other, ITEM_MARK) and not view.has_ended(other):
                left.append(other)
            found[other] = None
    return [*found]


def twins(item: Term, view: View) -> list[Term]:
    """Return the other proposals that wait and say exactly what *item* says."""
    identical = [key for key in view.objects(item, _KEY) if key.startswith('"identical:')]
    found = {other for key in identical for other in view.subjects(_KEY, literal(bare(key))) if other != item}
    return sorted(
        other for other in found if jido("Proposed") in view.objects(other, ITEM_MARK) and not view.has_ended(other)
    )
