"""What waits for a curator, settled in one call: a proposal, two that disagree, or what is to be looked at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from jidomem.errors import Conflict, InvalidRequest, JidomemError
from jidomem.intent import Receipt
from jidomem.moments import parse_moment, stamp
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
        so, such as an active memory on which nothing is pending, Conflict for what would not settle it, PolicyDenied
        for an agent that may only propose, and what `submit_intent` raises; nothing is kept then.
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
        elif action in ("accept", "reject") and view.in_force(iri(item)) and not self._is_due(iri(item), view, now):
            _check_unsettled(iri(item), action, view)
        reason = settlement.reason or _REASONS[action]
        if action == "reject":
            self._check_may_reject(project_id, iri(item), view)
            values = self._withdrawal(project_id, view, item, reason)
        elif action == "accept" and other is None and _is_moot(iri(item), view):
            values = self._withdrawal(project_id, view, item, settlement.reason or _MOOT)
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

    def _check_may_reject(self, project_id: str, item: Term, view: View) -> None:
        """Raise PolicyDenied unless the writer's agent may accept the proposal *item*, or takes back its own."""
        is_own = self._node(self.agent, "agents") in view.objects(item, jido("assertedBy"))
        if is_own or jido("Proposed") not in view.objects(item, ITEM_MARK):
            return
        allowed = self._permission(view, bare(item))
        if allowed.held_back:
            raise self._not_theirs(project_id, allowed.held_back)
        if view.objects(item, jido("quarantined")) and not allowed.is_curator:
            raise self._not_theirs(project_id, "its source is not trusted")

    def _is_due(self, item: Term, view: View, now: datetime) -> bool:
        """Return whether the active *item* is to be looked at again *now*: by its dates, or as it has none."""
        dates = [*view.objects(item, jido("expiresOn")), *view.objects(item, jido("validUntil"))]
        if not dates:
            return any(self._stages.schema.is_a(kind, jido("Assumption")) for kind in view.types(item))
        moments = [parse_moment(bare(date)) for date in dates]
        return any(moment is not None and moment <= now for moment in moments)

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
        if proposed and (withdrawn := view.objects(item, jido("invalidates"))):
            ended = {each: conflict.end_of_chain(each, view) for each in withdrawn if view.has_ended(each)}
            if action != "accept":
                withdrawn = [each for each in withdrawn if each not in ended]
            else:  # one that has a successor is left in, as a conflict that the curator settles
                withdrawn = [each for each in withdrawn if each not in ended or ended[each] is not None]
            if action == "supersede":
                ends = [end for end in ended.values() if end is not None]
                values["supersedes"] = [each for each in values["supersedes"] if iri(each) not in ends]
                withdrawn += ends
            values["invalidates"] = [*dict.fromkeys(map(bare, withdrawn))]
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


#: Why a proposed withdrawal is settled that withdraws nothing any more.
_MOOT = "what it withdraws has ended already"


def _is_moot(item: Term, view: View) -> bool:
    """Return whether *item* is a proposed withdrawal of memories that have all ended, and nothing took their place."""
    if jido("Proposed") not in view.objects(item, ITEM_MARK) or jido("DeletedMarker") not in view.types(item):
        return False
    withdrawn = view.objects(item, jido("invalidates"))
    return all(view.has_ended(each) and conflict.end_of_chain(each, view) is None for each in withdrawn)


def _rivals(item: Term, view: View) -> list[Term]:
    """Return what *item* was proposed against, and what came since that it disagrees with."""
    recorded = [other for other in view.objects(item, jido("conflictsWith")) if view.in_force(other)]
    return [*dict.fromkeys([*recorded, *conflict.rivals(item, view)])]


#: How a pending proposal names an active memory -> what it is, and the action that asserts it.
_PENDING: Mapping[str, tuple[str, str]] = {
    "invalidates": ("a withdrawal", "accept"),
    "supersedes": ("a change", "accept"),
    "conflictsWith": ("a disagreement", "supersede"),
}


def _check_unsettled(item: Term, action: str, view: View) -> None:
    """Raise InvalidRequest where it is not the active *item* that is settled: a proposal against it is, or nothing."""
    pending: dict[Term, tuple[str, str]] = {}
    for name, what in _PENDING.items():
        for other in view.subjects(jido(name), item):
            if jido("Proposed") in view.objects(other, ITEM_MARK) and not view.has_ended(other):
                pending.setdefault(other, what)
    if pending:
        named = ", ".join(f"{bare(other)} ({what})" for other, (what, _) in pending.items())
        ways = [f"jidomem review {way} {bare(other)}" for other, (_, way) in pending.items()]
        ways += [f"jidomem review reject {bare(other)}" for other in pending]
        raise InvalidRequest(f"{bare(item)} is active; pending on it: {named}", hint=f"choose: {'; '.join(ways)}")
    if action == "accept" and not _rivals(item, view):
        raise InvalidRequest(
            f"{bare(item)} is active, and nothing is pending on it",
            hint=f"to confirm that it still holds: jidomem revise {bare(item)} --confirm",
        )


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
