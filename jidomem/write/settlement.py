"""What waits for a curator, settled in one call: a proposal, two that disagree, or what is to be looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from jidomem.errors import Conflict, InvalidRequest
from jidomem.intent import Receipt
from jidomem.moments import stamp
from jidomem.terms import Term, bare, iri, literal
from jidomem.vocab import jido
from jidomem.write import conflict
from jidomem.write.correction import Corrections, otherwise
from jidomem.write.view import ITEM_MARK, View

ACTIONS = ("accept", "reject", "supersede", "keep-both")
#: How long an assumption without a date stands before it is asked about again.
_LATER = timedelta(days=90)
_KEY = jido("conflictKey")


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
        if action not in ACTIONS:
            raise InvalidRequest(f"{action!r} settles nothing", hint=f"one of: {', '.join(ACTIONS)}")
        if changes and action not in ("supersede", "keep-both"):
            raise InvalidRequest(f"{action} says nothing otherwise", hint="leave out changes")
        view = self._fresh_view(project_id)
        old = self.restated(project_id, item)  # raises for what is no memory
        if view.has_ended(iri(item)):
            raise InvalidRequest(f"{item} is settled already", hint="see: jidomem review")
        if other is not None:
            self.restated(project_id, other)
            _check_pair(iri(item), iri(other), action, view)
        told = {"reason": reason or _REASONS[action]}
        if action == "reject" or (action == "accept" and other is not None):
            loser = item if action == "reject" else other
            if action == "accept":
                told = {"reason": reason or f"rejected in review: {item} holds"}
            self._must_settle(project_id, self.invalidate(project_id, loser or "", dry_run=True, **told))
            return self.invalidate(project_id, loser or "", dry_run=dry_run, **told)
        values = self._accepted(project_id, iri(item), action, other, view) | told | otherwise(old, changes or {})
        self._must_settle(project_id, self.confirm(project_id, item, dry_run=True, **values))
        return self.confirm(project_id, item, dry_run=dry_run, **values)

    def _accepted(self, project_id: str, item: Term, action: str, other: str | None, view: View) -> dict[str, Any]:
        """Return the fields that assert *item* again, with or in place of what it disagrees with."""
        rivals = [iri(other)] if other else [o for o in view.objects(item, jido("conflictsWith")) if view.in_force(o)]
        if action in ("supersede", "keep-both") and not rivals:
            rivals = self._met_since(project_id, item)  # nothing it was proposed against
        if action in ("supersede", "keep-both") and not rivals:
            raise InvalidRequest(f"{bare(item)} disagrees with nothing in force", hint="accept it, or reject it")
        if action == "keep-both" and any(conflict.of_one_origin(item, rival, view) for rival in rivals):
            one = " ".join(map(bare, (item, *rivals)))
            raise InvalidRequest(
                "they took the place of one memory, which has one successor: both cannot be kept",
                hint=f"say in one what holds: jidomem review supersede {one}, or accept, or reject the first",
            )
        proposed = jido("Proposed") in view.objects(item, ITEM_MARK)
        replaced = [item, *(twins(item, view) if proposed else [])]
        replaced += replaces(item, view) if proposed else []
        replaced += rivals if action == "supersede" else []
        values: dict[str, Any] = {"supersedes": [*dict.fromkeys(map(bare, replaced))]}
        if action == "keep-both":
            values["coexists_with"] = sorted(map(bare, rivals))
        if not proposed and not view.first(item, jido("expiresOn")) and jido("Assumption") in view.types(item):
            values["expires_on"] = stamp(self._now() + _LATER)
        return values

    def _met_since(self, project_id: str, item: Term) -> list[Term]:
        """Return what is in force and would disagree with *item*, were it asserted now."""
        try:
            found = self.confirm(project_id, bare(item), dry_run=True).conflicts
        except Conflict as refusal:
            found = tuple(refusal.conflicts)
        return [iri(each.iri) for each in found if each.kind != "stale_supersession"]

    def _must_settle(self, project_id: str, receipt: Receipt) -> None:
        if receipt.conflicts:
            raise Conflict(receipt.conflicts)
        self._must_be_asserted(project_id, receipt)


_REASONS = {
    "accept": "accepted in review",
    "reject": "rejected in review",
    "supersede": "accepted in review, in place of what it disagrees with",
    "keep-both": "accepted in review, beside what it disagrees with",
}


def _check_pair(item: Term, other: Term, action: str, view: View) -> None:
    """Raise InvalidRequest unless they are two, neither has ended, and what is to hold does."""
    if item == other:
        raise InvalidRequest(f"{bare(item)} does not disagree with itself", hint="name the other one")
    if view.has_ended(other):
        raise InvalidRequest(f"{bare(other)} is settled already", hint="see: jidomem review")
    holds = {"accept": item, "reject": other, "keep-both": other}.get(action)
    if holds is not None and not view.in_force(holds):
        rival = bare(other if holds == item else item)
        raise InvalidRequest(
            f"{bare(holds)} is only proposed, so it cannot hold in the place of {rival} or beside it",
            hint=f"assert it in that place: jidomem review supersede {bare(holds)} {rival}",
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
