"""Correction without deletion: a memory is replaced, withdrawn, confirmed or brought back by a further one.

What waits for a curator, settled in one call: a proposal, two that disagree, or what is to be looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from shlex import quote
from typing import Any

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.errors import Conflict, InvalidRequest, JidomemError, PolicyDenied
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, iri, literal, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import ANCHOR, MemoryUpdateIntent, Receipt, anchors_of
from jidomem.write import conflict, permissions
from jidomem.write.group_commit import JudgeFn, Outcome
from jidomem.write.pipeline import Decision
from jidomem.write.snapshot import ITEM_MARK, WriteSnapshot
from jidomem.write.submission import PolicyWriter
from jidomem.write.triples import restated_in

_SHOWN = 10_000  # characters of a summary that a marker of its withdrawal repeats
#: What a memory says of its own place among others, which another one in its place says anew.
OWN = ("iri", "supersedes", "invalidates", "revives", "coexists_with", "reason")
_TEXTS = ("summary", "detailed_explanation")
#: Who says one of these anew has looked at the files that the memory is about.
_LOOKED_AT = frozenset((*_TEXTS, "rationale", "about"))
_VERIFIED = vocab.JIDO + "verified"
ACCEPTED = "accepted in review"  # why a proposal that is confirmed takes a place
_PROPOSED_PREFIX = "proposed, not asserted: "  # how the warning begins that says why it only waits
_ENDS = {"supersededBy": "supersedes", "invalidatedBy": "invalidates"}


class Corrections(PolicyWriter):
    """What a writer does to a memory that is there: each time a new memory, and the old one stays as it was."""

    def restated(self, project_id: str, item: str) -> dict[str, Any]:
        """Return the intent that would say the memory *item* again; raises NotFound when there is no such memory."""
        return restated_in(self._fresh_view(project_id), item)

    def revise(
        self,
        project_id: str,
        item: str,
        *,
        changes: Mapping[str, Any],
        reason: str | None,
        dry_run: bool = False,
        under: conflict.UniqueKey | None = None,
    ) -> Receipt:
        """Return the receipt of a memory that supersedes *item*: *changes* made, every other field carried over.

        *changes* are fields of an intent; one that is None is left out. Another summary is dated now unless `timestamp`
        is among them; any other change keeps the date. That the old one was verified says nothing of another text; a
        mere change of state says nothing of the files it is about, which are kept as they were. Raises what
        `submit_intent` raises.
        """
        values = self._carried(self._fresh_view(project_id), item, changes)
        values |= {"supersedes": [item], "reason": reason} | otherwise(values, changes)
        kept = None if _LOOKED_AT & changes.keys() else self._blobs_of(project_id, iri(item))
        return self.submit_intent(project_id, values, dry_run=dry_run, blobs=kept, under=under)

    def invalidate(self, project_id: str, item: str, *, reason: str, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of a marker that withdraws *item* for *reason*, putting nothing in its place."""
        values = self._withdrawal(project_id, self._fresh_view(project_id), item, reason) | fields
        return self.submit_intent(project_id, values, dry_run=dry_run)

    def confirm(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """Return the receipt of a memory that says the same as *item*, which was looked at again and takes its place.

        What was only proposed is asserted by it, with all that it was to replace. The next review, unless `expires_on`
        is among *fields*, comes after as long a time as the last; what a curator confirms is verified. Raises what
        `submit_intent` raises, and PolicyDenied or Conflict where a proposal would only be proposed again.
        """
        view = self._fresh_view(project_id)
        values = self._confirmation(project_id, view, item, reason, fields)
        if _is_proposed(iri(item), view):
            self._must_be_asserted(project_id, self.submit_intent(project_id, values, dry_run=True))
        return self.submit_intent(project_id, values, dry_run=dry_run)

    def _withdrawal(self, project_id: str, view: WriteSnapshot, item: str, reason: str) -> dict[str, Any]:
        """Return the intent of a marker that withdraws *item*."""
        return {
            "type": "deleted_marker",
            "summary": f"Withdrawn: {restated_in(view, item).get('summary', item)[:_SHOWN]}",
            "rationale": reason,
            "applies_to_project": project_id,
            "asserted_by": self.agent,
            "asserted_in": self.session,
            "confidence": "high",
            "invalidates": [item],
        }

    def _confirmation(
        self, project_id: str, view: WriteSnapshot, item: str, reason: str | None, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the intent that confirms *item*, with *fields* in place of what it carries over."""
        old = restated_in(view, item)
        values: dict[str, Any] = {**self._carried(view, item, fields), **fields, "reason": reason}
        if "expires_on" not in fields and "expires_on" in old:
            values["expires_on"] = _next_review(old, view, self._now())
        values["supersedes"] = [item]
        if _is_proposed(iri(item), view):
            values["invalidates"] = old.get("invalidates", [])
            values["revives"] = [each for each in old.get("revives", ()) if not _is_proposed(iri(each), view)]
            values["supersedes"] = [item, *old.get("supersedes", [])]
            values["reason"] = values["reason"] or ACCEPTED
        if self._is_curator_in(view, values["asserted_by"]):
            values["extra_triples"] = [*_without_verified(values), [_VERIFIED, True]]
        return {**values, **fields}

    def check_corrects(self, project_id: str, item: str, *, asserted: bool = False) -> None:
        """Raise PolicyDenied unless the writer's agent may correct *item*, and with *asserted* so that it counts."""
        held_back = self._permission(self._fresh_view(project_id), item).held_back
        if asserted and held_back:
            raise self._not_theirs(project_id, held_back)

    def _permission(self, view: WriteSnapshot, item: str) -> permissions.Permission:
        """Return what may become of a memory by the writer's agent in the place of *item*; raises PolicyDenied."""
        said = restated_in(view, item)
        proposal = MemoryUpdateIntent(
            type=said["type"],
            asserted_by=plain_value(self._node(self.agent, "agents")),
            about=said.get("about", []),
            convention_scope=said.get("convention_scope"),
            supersedes=[item],
        )
        return permissions.permitted(proposal, view, self._stages.policy, self._stages.speaker)

    def _must_be_asserted(self, project_id: str, receipt: Receipt) -> None:
        """Raise Conflict or PolicyDenied, which names who may, for what would only be proposed."""
        if receipt.status != "proposed":
            return
        if receipt.conflicts:
            raise Conflict(receipt.conflicts)
        held_back = [
            said.removeprefix(_PROPOSED_PREFIX) for said in receipt.warnings if said.startswith(_PROPOSED_PREFIX)
        ]
        raise self._not_theirs(project_id, "; ".join(held_back or receipt.warnings))

    def _not_theirs(self, project_id: str, why: str) -> PolicyDenied:
        names = ", ".join(map(vocab.local_name, self.authority(project_id).curators))
        agent = "AGENT" if self._stages.speaker else quote(self.agent)  # whom a door knows is made none by a name
        hint = f"ask a curator: {names}" if names else f"nobody is a curator: jidomem policy grant {agent} curator"
        return PolicyDenied(f"{self.agent} may not settle this: {why}", hint=hint)

    def undo(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """Return the receipt of a memory that says again what was superseded or invalidated, and revives it.

        *item* is what ended, or what ended it. What took its place is superseded by the new memory; the old one stays
        ended. A proposal that was accepted or rejected is pending again, as another proposal of the same. Raises
        InvalidRequest where nothing ended, or it is back already, and what `submit_intent` raises.
        """
        view = self._fresh_view(project_id)
        restated_in(view, item)  # raises for what is no memory
        if (settled := _settled_proposal(iri(item), view)) is not None:
            judges = self._pending_again(project_id, settled, view, reason, fields)
            if dry_run:
                outcome = self._together(project_id, lambda outcomes: judges, dry_run=True)[-1]
                if isinstance(outcome, JidomemError):
                    raise outcome
                return outcome
            return self._line(project_id).submit_atomic(judges)[-1]
        old, ends = _undone(iri(item), view)
        values = self._carried(view, plain_value(old), fields) | {
            "revives": [plain_value(old)],
            "supersedes": ends,
            "reason": reason,
        }
        kept = None if _LOOKED_AT & fields.keys() else self._blobs_of(project_id, old)
        return self.submit_intent(project_id, values | fields, dry_run=dry_run, blobs=kept)

    def _pending_again(
        self, project_id: str, proposal: Term, view: WriteSnapshot, reason: str | None, fields: Mapping[str, Any]
    ) -> list[JudgeFn]:
        """Return what judges a proposal that says again what *proposal* said, and before it what ends its acceptance.

        A memory that the accepted one took the place of is asserted again; where there is none, the accepted one is
        withdrawn. Raises InvalidRequest where the accepted one was replaced in its turn.
        """
        accepted = view.first(proposal, jido("supersededBy"))
        intents: list[dict[str, Any]] = []
        again: dict[str, str] = {}
        if accepted is not None and view.in_force(accepted):
            for old in sorted(old for link in _ENDS.values() for old in view.objects(accepted, jido(link))):
                if not _is_proposed(old, view):
                    again[plain_value(old)] = f"{vocab.BASE}memory/{self._sources.new_id()}"
                    values = self._carried(view, plain_value(old), {}) | {
                        "iri": again[plain_value(old)],
                        "reason": reason,
                    }
                    intents.append(values | {"revives": [plain_value(old)], "supersedes": [plain_value(accepted)]})
            if len(again) > 1:
                raise InvalidRequest(
                    f"{plain_value(accepted)} took the place of several",
                    hint=f"undo them one by one: {', '.join(again)}",
                )
            if not again:
                why = reason or f"its acceptance was undone: {plain_value(proposal)}"
                intents.append(self._withdrawal(project_id, view, plain_value(accepted), why))
        elif accepted is not None and (newer := conflict.end_of_chain(accepted, view)) is not None:
            raise InvalidRequest(
                f"{plain_value(proposal)} was accepted as {plain_value(accepted)}, which {plain_value(newer)} replaced",
                hint=f'undo that first: jidomem revise {plain_value(newer)} --undo --reason "..."',
            )
        said = restated_in(view, plain_value(proposal))
        values = {
            **self._carried(view, plain_value(proposal), fields),
            "revives": [plain_value(proposal)],
            "reason": reason,
        }
        values |= {name: [again.get(each, each) for each in said[name]] for name in _ENDS.values() if name in said}
        return [
            *(self._asserting(project_id, intent) for intent in intents),
            self._judge(project_id, {**values, **fields}, propose=True),
        ]

    def _asserting(self, project_id: str, values: Mapping[str, Any]) -> JudgeFn:
        """Return what judges an intent and raises where it would only be proposed."""
        judge = self._judge(project_id, values)

        def judged(view: WriteSnapshot, now: datetime) -> Decision:
            found = judge(view, now)
            self._must_be_asserted(project_id, found.receipt)
            return found

        return judged

    def correct(
        self,
        project_id: str,
        item: str,
        *,
        supersede: str | None = None,
        invalidate: bool = False,
        confirm: bool = False,
        undo: bool = False,
        changes: Mapping[str, Any] | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        who: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Return the receipt of one correction: what every door does; raises InvalidRequest unless it is one.

        *changes* are fields to set, alone or beside `supersede` (another summary), `confirm` or `undo`. *who* are
        fields that say who corrects, such as asserted_by. Raises Conflict, which names what took the place of *item*,
        where that is superseded already.
        """
        changed, more = dict(changes or {}), dict(who or {})
        ways = [supersede is not None, invalidate, confirm, undo]
        if sum(ways) > 1 or not (any(ways) or changed) or (invalidate and changed):
            hint = "give one of `supersede`, `invalidate`, `confirm` and `undo`, or fields to change"
            raise InvalidRequest("say what becomes of it, in one way", hint=hint)
        if invalidate and not reason:
            raise InvalidRequest("a withdrawal needs a reason", hint="give `reason`: why it is wrong")
        with _pointing_on():
            if invalidate:
                return self.invalidate(project_id, item, reason=reason or "", dry_run=dry_run, **more)
            if confirm:
                return self.confirm(project_id, item, reason=reason, dry_run=dry_run, **changed, **more)
            if undo:
                return self.undo(project_id, item, reason=reason, dry_run=dry_run, **changed, **more)
            if supersede is not None:
                changed["summary"] = supersede
            return self.revise(project_id, item, changes=changed | more, reason=reason, dry_run=dry_run)

    def _blobs_of(self, project_id: str, item: Term) -> dict[str, str]:
        """Return the blob ids that *item* keeps of the files it is about, by path."""
        return blobs_in(self._fresh_view(project_id), item)

    def _carried(self, view: WriteSnapshot, item: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of *item* for a memory in its place, asserted here and now, with the date of *item*.

        Where *changes* give another summary, it is a new statement: it has no date yet, and gets the present one.
        """
        old = restated_in(view, item)
        said = {name: value for name, value in old.items() if name not in OWN}
        if changes.get("summary", old.get("summary")) != old.get("summary"):
            said.pop("timestamp", None)
        who = {"asserted_by": self.agent, "asserted_in": self.session}
        return {**said, "coexists_with": _beside(iri(item), view), **who}


def otherwise(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that change what *old* says; that it was verified says nothing of another text."""
    is_other = any(name in changes for name in _TEXTS)
    return ({"extra_triples": _without_verified(old)} if is_other else {}) | dict(changes)


@contextmanager
def _pointing_on() -> Iterator[None]:
    """Let the hint of a Conflict name what took the place of a memory that was to be corrected."""
    try:
        yield
    except Conflict as error:
        if newer := in_place_of(error):
            error.hint = f"read first what took its place, and correct that where it is still wrong: {newer}"
        raise


def in_place_of(error: Conflict) -> str | None:
    """Return what took the place of a memory that was to be corrected, where that is one memory."""
    stale = (each.resolve_with for each in error.conflicts if each.kind == "stale_supersession")
    newer = {item for resolving in stale for items in resolving.values() for item in items}
    return newer.pop() if len(newer) == 1 else None


def blobs_in(view: WriteSnapshot, item: Term) -> dict[str, str]:
    """Return the blob ids that *item* keeps of the files it is about, by path."""
    return dict(anchors_of(view.objects(item, ANCHOR)))


def _is_proposed(item: Term, view: WriteSnapshot) -> bool:
    return view.first(item, jido("hasAssertionStatus")) == jido("Proposed")


def _beside(item: Term, view: WriteSnapshot) -> list[str]:
    """Return the memories in force that *item* coexists with, whichever of the two said so."""
    named_by = [other for other in view.subjects(jido("coexistsWith"), item) if view.in_force(other)]
    return sorted({plain_value(other) for other in (*conflict.coexisting(item, view), *named_by)})


def _without_verified(values: Mapping[str, Any]) -> list[Any]:
    return [triple for triple in values.get("extra_triples", []) if triple[0] != _VERIFIED]


def _next_review(old: Mapping[str, Any], view: WriteSnapshot, now: datetime) -> str:
    """Return when to look again: as long from now as it was from the last look at the memory to its review.

    The first look was at the memory's own time; one that carries on the time of another was looked at when recorded.
    """
    said, due = parse_moment(old.get("timestamp")), parse_moment(old["expires_on"])
    before = [*old.get("supersedes", ()), *old.get("revives", ())]
    times = {
        parse_moment(plain_value(time)) for each in before for time in view.objects(iri(each), jido("hasTimestamp"))
    }
    if said in times:
        recorded = view.first(iri(old["iri"]), jido("recordedAt"))
        said = (parse_moment(plain_value(recorded)) if recorded else None) or said
    span = due - said if said and due else timedelta()
    if span <= timedelta():
        raise InvalidRequest(
            f"it was to be looked at again by {old['expires_on']}, before it was said",
            hint="give `expires_on`: when to look at it next",
        )
    return format_timestamp(now + span)


def _settled_proposal(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the proposal whose settlement is undone where *item* is: itself, or what *item* accepted or rejected."""
    if view.has_ended(item):
        return item if _is_proposed(item, view) else None
    accepted = sorted(old for old in view.objects(item, jido("supersedes")) if _is_proposed(old, view))
    rejected = view.objects(item, jido("invalidates"))
    if not accepted and len(rejected) == 1 and _is_proposed(rejected[0], view):
        accepted = rejected
    return accepted[0] if accepted and view.in_force(item) else None


def _undone(item: Term, view: WriteSnapshot) -> tuple[Term, list[str]]:
    """Return what to say again where *item* is undone, and what the new memory supersedes."""
    if any(view.objects(item, jido(link)) for link in _ENDS):
        return item, _in_its_place(item, view)
    said_over = sorted(old for link in _ENDS.values() for old in view.objects(item, jido(link)))
    if view.in_force(item) and len(said_over) == 1:
        return said_over[0], [plain_value(item)]
    if view.in_force(item) and said_over:
        hint = f"undo them one by one: {', '.join(map(plain_value, said_over))}"
        raise InvalidRequest(f"{plain_value(item)} took the place of several", hint=hint)
    raise InvalidRequest(
        f"{plain_value(item)} has not ended, and ended nothing: there is nothing to undo",
        hint="to withdraw it: `invalidate`, and say why in `reason`",
    )


def _in_its_place(old: Term, view: WriteSnapshot) -> list[str]:
    """Return what is in force in the place of *old*: the end of its chain, unless it was brought back to it."""
    chain = _successors(old, view)
    for at, link in enumerate(chain):
        revived = view.objects(link, jido("revives"))
        if old in revived and view.in_force(link):
            hint = "to replace it: supersede that one"
            raise InvalidRequest(f"{plain_value(old)} is in force again, as {plain_value(link)}", hint=hint)
        undone = {ended for earlier in chain[:at] for ended in view.objects(earlier, jido("supersedes"))}
        if undone.intersection(revived) - {old}:
            return []  # what replaced it together with others was undone for one of them
    markers = [end for end in view.objects(old, jido("invalidatedBy")) if _withdrew_only(old, end, view)]
    return [plain_value(end) for end in (*chain[-1:], *markers) if view.in_force(end)]


def _withdrew_only(old: Term, end: Term, view: WriteSnapshot) -> bool:
    """Return whether *end* is a marker of the withdrawal of *old*, and of nothing else, as that of a rollback is."""
    return jido("DeletedMarker") in view.types(end) and view.objects(end, jido("invalidates")) == [old]


def _successors(item: Term, view: WriteSnapshot) -> list[Term]:
    chain: list[Term] = []
    while (after := view.first(item, jido("supersededBy"))) is not None and after not in chain:
        chain.append(after)
        item = after
    return chain


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

    def _settled(self, project_id: str, settlement: Settlement, view: WriteSnapshot, now: datetime) -> Decision:
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

    def _check_may_reject(self, project_id: str, item: Term, view: WriteSnapshot) -> None:
        """Raise PolicyDenied unless the writer's agent may accept the proposal *item*, or takes back its own."""
        is_own = self._node(self.agent, "agents") in view.objects(item, jido("assertedBy"))
        if is_own or jido("Proposed") not in view.objects(item, ITEM_MARK):
            return
        allowed = self._permission(view, plain_value(item))
        if allowed.held_back:
            raise self._not_theirs(project_id, allowed.held_back)
        if view.objects(item, jido("quarantined")) and not allowed.is_curator:
            raise self._not_theirs(project_id, "its source is not trusted")

    def _is_due(self, item: Term, view: WriteSnapshot, now: datetime) -> bool:
        """Return whether the active *item* is to be looked at again *now*: by its dates, or as it has none."""
        dates = [*view.objects(item, jido("expiresOn")), *view.objects(item, jido("validUntil"))]
        if not dates:
            return any(self._stages.schema.is_a(kind, jido("Assumption")) for kind in view.types(item))
        moments = [parse_moment(plain_value(date)) for date in dates]
        return any(moment is not None and moment <= now for moment in moments)

    def _accepted(
        self, item: Term, action: str, other: str | None, view: WriteSnapshot, now: datetime
    ) -> dict[str, Any]:
        """Return the fields that assert *item* again, with or in place of what it disagrees with."""
        rivals = [iri(other)] if other else _rivals(item, view)
        if action in ("supersede", "keep-both") and not rivals:
            raise InvalidRequest(f"{plain_value(item)} disagrees with nothing in force", hint="accept it, or reject it")
        if action == "keep-both" and any(conflict.of_one_origin(item, rival, view) for rival in rivals):
            other = plain_value(rivals[0])
            raise InvalidRequest(
                "they took the place of one memory, which has one successor: both cannot be kept",
                hint=f"say one in the place of both: jidomem review supersede {plain_value(item)} --against {other}",
            )
        proposed = jido("Proposed") in view.objects(item, ITEM_MARK)
        replaced = [item, *(twins(item, view) if proposed else [])]
        old = replaces(item, view) if proposed else []
        replaced += old if action == "accept" else [each for each in old if not view.has_ended(each)]
        replaced += rivals if action == "supersede" else []
        values: dict[str, Any] = {"supersedes": [*dict.fromkeys(map(plain_value, replaced))]}
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
            values["invalidates"] = [*dict.fromkeys(map(plain_value, withdrawn))]
        if action == "keep-both":
            values["coexists_with"] = sorted(map(plain_value, rivals))
        if not proposed and not view.first(item, jido("expiresOn")) and jido("Assumption") in view.types(item):
            values["expires_on"] = format_timestamp(now + _LATER)
        return values


_REASONS = {
    "accept": ACCEPTED,
    "reject": "rejected in review",
    "supersede": f"{ACCEPTED}, in place of what it disagrees with",
    "keep-both": f"{ACCEPTED}, beside what it disagrees with",
}


#: Why a proposed withdrawal is settled that withdraws nothing any more.
_MOOT = "what it withdraws has ended already"


def _is_moot(item: Term, view: WriteSnapshot) -> bool:
    """Return whether *item* is a proposed withdrawal of memories that have all ended, and nothing took their place."""
    if jido("Proposed") not in view.objects(item, ITEM_MARK) or jido("DeletedMarker") not in view.types(item):
        return False
    withdrawn = view.objects(item, jido("invalidates"))
    return all(view.has_ended(each) and conflict.end_of_chain(each, view) is None for each in withdrawn)


def _rivals(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return what *item* was proposed against, and what came since that it disagrees with."""
    recorded = [other for other in view.objects(item, jido("conflictsWith")) if view.in_force(other)]
    return [*dict.fromkeys([*recorded, *conflict.rivals(item, view)])]


#: How a pending proposal names an active memory -> what it is, and the action that asserts it.
_PENDING: Mapping[str, tuple[str, str]] = {
    "invalidates": ("a withdrawal", "accept"),
    "supersedes": ("a change", "accept"),
    "conflictsWith": ("a disagreement", "supersede"),
}


def _check_unsettled(item: Term, action: str, view: WriteSnapshot) -> None:
    """Raise InvalidRequest where it is not the active *item* that is settled: a proposal against it is, or nothing."""
    pending: dict[Term, tuple[str, str]] = {}
    for name, what in _PENDING.items():
        for other in view.subjects(jido(name), item):
            if jido("Proposed") in view.objects(other, ITEM_MARK) and not view.has_ended(other):
                pending.setdefault(other, what)
    if pending:
        named = ", ".join(f"{plain_value(other)} ({what})" for other, (what, _) in pending.items())
        ways = [f"jidomem review {way} {plain_value(other)}" for other, (_, way) in pending.items()]
        ways += [f"jidomem review reject {plain_value(other)}" for other in pending]
        raise InvalidRequest(
            f"{plain_value(item)} is active; pending on it: {named}", hint=f"choose: {'; '.join(ways)}"
        )
    if action == "accept" and not _rivals(item, view):
        raise InvalidRequest(
            f"{plain_value(item)} is active, and nothing is pending on it",
            hint=f"to confirm that it still holds: jidomem revise {plain_value(item)} --confirm",
        )


def _settled_already(item: Term, view: WriteSnapshot) -> InvalidRequest:
    """Return the refusal to settle what has ended, with what took its place."""
    if (newer := conflict.end_of_chain(item, view)) is not None:
        asserted = jido("Proposed") in view.objects(item, ITEM_MARK)
        how = "accepted as" if asserted else "replaced by"
        return InvalidRequest(
            f"{plain_value(item)} is settled already: it was {how} {plain_value(newer)}",
            hint=f"see: jidomem show {plain_value(newer)}",
        )
    ended = "replaced, and what replaced it was withdrawn"
    if view.objects(item, jido("invalidatedBy")):
        ended = "rejected" if jido("Proposed") in view.objects(item, ITEM_MARK) else "withdrawn"
    return InvalidRequest(
        f"{plain_value(item)} is settled already: it was {ended}", hint=f"see: jidomem show {plain_value(item)}"
    )


def _check_pair(item: Term, other: Term, action: str, view: WriteSnapshot) -> None:
    """Raise InvalidRequest unless they are two, neither has ended, and what is to hold does."""
    if item == other:
        raise InvalidRequest(f"{plain_value(item)} does not disagree with itself", hint="name the other one")
    if view.has_ended(other):
        raise _settled_already(other, view)
    holds = {"accept": item, "reject": other, "keep-both": other}.get(action)
    if holds is not None and not view.in_force(holds):
        rival = plain_value(other if holds == item else item)
        raise InvalidRequest(
            f"{plain_value(holds)} is only proposed, so it cannot hold in the place of {rival} or beside it",
            hint=f"assert it in that place: jidomem review supersede {plain_value(holds)} --against {rival}",
        )


def replaces(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return what *item* names as replaced, and what a proposal among that, which never counted, names in its turn."""
    found: dict[Term, None] = {}
    left = [item]
    while left:
        for other in view.objects(left.pop(), jido("supersedes")):
            if other not in found and jido("Proposed") in view.objects(other, ITEM_MARK) and not view.has_ended(other):
                left.append(other)
            found[other] = None
    return [*found]


def twins(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the other proposals that wait and say exactly what *item* says."""
    identical = [key for key in view.objects(item, _KEY) if key.startswith('"identical:')]
    found = {other for key in identical for other in view.subjects(_KEY, literal(plain_value(key))) if other != item}
    return sorted(
        other for other in found if jido("Proposed") in view.objects(other, ITEM_MARK) and not view.has_ended(other)
    )
