"""A settlement is the judgement of a curator on a memory: a proposal, a disagreement, or a memory due for review."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from jidomem.base.clock import format_timestamp
from jidomem.errors import Conflict, InvalidRequest, JidomemError
from jidomem.rdf.terms import Term, iri, literal, moment_in, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.active import FINISHED, is_accepted, is_due, is_record_of
from jidomem.records.intent import IDENTICAL, Receipt, judgement_keys
from jidomem.write import conflict
from jidomem.write.batch import Batches
from jidomem.write.conflict import coexisting_with
from jidomem.write.context import WriteContext
from jidomem.write.corrections import ACCEPTED, OWN, Corrections, changed_fields, without_verified
from jidomem.write.permissions import authority, check_explained, check_waits
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot, withdrawals_below
from jidomem.write.submission import DEFAULT_OPTIONS, Decision, Outcome, SubmitOptions, commit_of
from jidomem.write.triples import is_judged_to_stay, judge_differently, restated_in, versions, with_other_triples

ACTIONS = ("accept", "reject", "supersede", "keep-both")
#: Action -> the word for a memory settled by it.
OUTCOMES = {"accept": "accepted", "reject": "rejected", "supersede": "accepted", "keep-both": "accepted"}
#: The time until the next review of an assumption without a date.
_LATER = timedelta(days=90)
_KEY = jido("conflictKey")


class Settlement(NamedTuple):
    """The judgement of a curator on one memory: an action and its parameters, as in `MemoryWriter.settle`."""

    item: str
    action: str
    other: str | None = None
    reason: str | None = None
    changes: Mapping[str, Any] | None = None


class Settlements:
    """The settlements of a curator; each is a new memory, and nothing is rewritten."""

    def __init__(self, context: WriteContext, corrections: Corrections, batches: Batches) -> None:
        self._context = context
        self._corrections = corrections
        self._batches = batches

    def settle_many(
        self, project_id: str, settlements: Sequence[Settlement], *, dry_run: bool = False
    ) -> list[Outcome]:
        """See `MemoryWriter.settle_many`."""
        accepted = frozenset(each.item for each in settlements if each.action == "accept" and each.other is None)
        submissions = [
            SettlementSubmission(self, project_id, each, self._are_near(project_id, each), accepted)
            for each in settlements
        ]
        return self._batches.commit_together(project_id, lambda outcomes: submissions, dry_run=dry_run)

    def _are_near(self, project_id: str, settlement: Settlement) -> bool:
        """Return whether the two memories of a settlement do not disagree, but are near to each other."""
        if settlement.other is None or (search := self._context.search) is None:
            return False
        view = self._context.snapshot(project_id)
        try:
            named = [restated_in(view, each)["iri"] for each in (settlement.item, settlement.other)]
            one, other = (restated_in(view, present_name(each, view)) for each in named)
        except JidomemError:  # it is refused later
            return False
        return not _disagree(iri(one["iri"]), iri(other["iri"]), view) and search.are_near(project_id, one, other)

    def decision(
        self, submission: SettlementSubmission, pipeline: Pipeline, view: WriteSnapshot, now: datetime
    ) -> Decision:
        """Return the decision on the memory that settles one item; raises what `MemoryWriter.settle` raises."""
        project_id, settlement = submission.project, submission.settlement
        corrections = self._corrections
        item, action, other = settlement.item, settlement.action, settlement.other
        if action not in ACTIONS:
            raise InvalidRequest(f"{action!r} settles nothing", hint=f"one of: {', '.join(ACTIONS)}")
        if settlement.changes and action not in ("supersede", "keep-both"):
            raise InvalidRequest(f"{action} takes no changes", hint="leave out `changes`")
        if taken := sorted({"asserted_by", "asserted_in", *OWN} & {*(settlement.changes or ())}):
            raise InvalidRequest(
                f"a settlement takes no {' or '.join(taken)} in `changes`: the curator is the author of a change, and"
                " the action has its relations",
                hint=f"leave out {' and '.join(taken)}; the other memory is `other` (--against), the reason `reason`",
            )
        restated_in(view, item)  # raises NotFound
        is_record = other is not None and is_record_of(iri(other), iri(item))
        if other is not None:
            restated_in(view, other)
            if not is_record:
                item, other = present_name(item, view), present_name(other, view)
        old = restated_in(view, item)
        changes = with_other_triples(view, item, settlement.changes or {}, pipeline.schema)
        if view.has_ended(iri(item)):
            raise _settled_already(settlement, iri(item), view)
        if other is not None and not is_record:
            if action == "keep-both" and _coexist_already(old, other, changes, view):
                commit, version = commit_of(iri(item), view)
                return Decision(Receipt(item, commit, version, "deduplicated"))
            if item != settlement.item and other in coexisting_with(iri(item), view):
                raise _settled_already(settlement, iri(settlement.item), view)
            if other != settlement.other and item in coexisting_with(iri(other), view):
                raise _settled_already(settlement, iri(settlement.other or ""), view)
            _check_pair(settlement, iri(item), iri(other), view)
            if not (submission.are_near or view.is_proposed(iri(other))):
                _check_listed(action, iri(item), iri(other), view)
        elif (
            other is None
            and view.is_current(iri(item))
            and action in ("accept", "reject")
            and not self._is_due(iri(item), view, now)
        ):
            _check_unsettled(iri(item), action, view, now)
        if action != "reject" and view.is_proposed(iri(item)):
            _check_is_newest(iri(item), view)
        if action == "accept" and other is None:
            _check_no_rivals(iri(item), submission.accepted, view)
        if other is not None and action in ("accept", "supersede") and view.is_proposed(iri(other)):
            _check_opposes(iri(item), iri(other), view)
        reason, options, is_active = settlement.reason or _REASONS[action], DEFAULT_OPTIONS, view.is_current(iri(item))
        if other is not None and is_record:
            values, options = self._one_record(settlement, item, other, view)
        elif other is not None and judge_differently(iri(item), iri(other), view):
            values, options = self._one_judgement(settlement, item, other, view)
        elif action == "reject":
            self._check_may_reject(iri(item), view)
            values = corrections.withdrawal(project_id, view, item, reason)
        elif action == "accept" and other is None and _is_moot(iri(item), view):
            values = corrections.withdrawal(project_id, view, item, settlement.reason or _MOOT)
        elif action == "accept" and other is not None:
            reason = settlement.reason or f"rejected in review: {item} holds"
            values = corrections.withdrawal(project_id, view, other, reason)
        else:
            if other is not None and action == "supersede":
                self._check_may_reject(iri(other), view)
            fields = self._accepted(iri(item), action, other, view, now)
            fields |= changed_fields(old, changes)
            command = f"jidomem review {action} {item}{f' --against {other}' if other else ''}"
            values = corrections.confirmation(view, item, reason, fields, command if action != "accept" else None)
            if is_active and action != "accept":  # its other conflicts stay as they are
                others = conflict.rivals(iri(item), view) if other else ()
                options = SubmitOptions(ending=frozenset(map(plain_value, others)) - {other or ""})
        try:
            decision = pipeline.run(pipeline.submission(project_id, values, options), view, now)
            if decision.receipt.conflicts:
                raise Conflict(decision.receipt.conflicts)
        except Conflict as error:
            error.hint = _ways(item, action, other, view)
            raise
        corrections.check_asserted(view, decision.receipt)
        staying = {"accept": item, "reject": other, "keep-both": other}.get(action)
        if other is not None and staying is not None and not (is_record or values.get("revives")):
            keys = [key for old in versions(iri(staying), view) for key in judgement_keys(old, stays=True)]
            made = [(iri(decision.receipt.iri), _KEY, literal(key)) for key in keys]
            decision = decision._replace(triples=(*decision.triples, *made))
        first = old if is_active else restated_in(view, plain_value(conflict.first_proposed(iri(item), view)))
        if not (settlement.reason or _is_explained(first, settlement.changes, is_proposed=not is_active)):
            agents = {self._context.agent_node, *([] if is_active else view.recorded_by(iri(item)))}
            ended = {*values.get("supersedes", ()), *values.get("invalidates", ())}
            check_explained(ended - ({item} if action == "accept" else set()), agents, view)
        return decision

    def _one_record(
        self, settlement: Settlement, item: str, other: str, view: WriteSnapshot
    ) -> tuple[dict[str, Any], SubmitOptions]:
        """Return the intent that asserts *item* anew, or its other record by another branch, and its options."""
        if settlement.action not in ("accept", "reject"):
            raise InvalidRequest(
                f"{item} and {other} are one memory, which two branches wrote: one of them counts",
                hint=f"jidomem review accept {item} --against {other}, or reject",
            )
        if settlement.action == "accept":
            return self._corrections.confirmation(view, item, settlement.reason or ACCEPTED, {}), DEFAULT_OPTIONS
        return self._corrections.restoration(view, iri(other), [item], settlement.reason, {})

    def _one_judgement(
        self, settlement: Settlement, item: str, other: str, view: WriteSnapshot
    ) -> tuple[dict[str, Any], SubmitOptions]:
        """Return the intent that undoes one of two judgements of one memory, and its options; see docs/conflicts.md."""
        if settlement.action not in ("accept", "reject"):
            raise InvalidRequest(
                f"{item} and {other} judge one memory differently: one of them counts",
                hint=f"jidomem review accept {item} --against {other}, or reject",
            )
        counting, undone = (other, item) if settlement.action == "reject" else (item, other)
        reason = settlement.reason or f"{_REASONS['accept']}: {counting} counts"
        ended = [old for old in view.objects(iri(undone), jido("invalidates")) if not view.is_proposed(old)]
        opposed = [old for old in ended if is_judged_to_stay(old, iri(counting), view)]
        if not (opposed or ended):  # it stays beside a memory that ended
            return self._corrections.confirmation(view, undone, reason, {}), DEFAULT_OPTIONS
        values, options = self._corrections.restoration(view, (opposed or ended)[0], [undone], reason, {})
        return values, replace(options, ending=frozenset((counting,)))

    def _check_may_reject(self, item: Term, view: WriteSnapshot) -> None:
        """Raise PolicyDenied unless the writer's agent may accept the proposal *item*, or withdraws its own."""
        is_own = self._context.agent_node in view.objects(item, jido("assertedBy"))
        if is_own or not view.is_proposed(item):
            return
        allowed = self._corrections.permission(view, plain_value(item))
        if allowed.proposed_because:
            raise self._corrections.denied(view, allowed.proposed_because)
        if view.objects(item, jido("quarantined")) and not allowed.is_curator:
            raise self._corrections.denied(view, "its source is not trusted")

    def _is_due(self, item: Term, view: WriteSnapshot, now: datetime) -> bool:
        """Return whether the active *item* is due for review *now*: by its dates, as an undated assumption, as it
        rests on a withdrawn memory, or as its check waits for a curator.

        A finished task is not. Nor is one recorded after it ended, or after that withdrawal: its author knew, as a
        curator does who accepts one.
        """
        states = {*view.objects(item, jido("hasTaskStatus"))}
        if states & {*map(jido, FINISHED)}:
            return False
        made, withdrawals = view.recorded_at(item), map(view.recorded_at, withdrawals_below(item, view))
        if any(made is None or made < at for at in withdrawals if at is not None):
            return True
        curators = authority(view, self._context.pipeline.policy).curators
        if check_waits(item, view, curators) and plain_value(self._context.agent_node) in curators:
            return True
        ends = [*map(moment_in, view.objects(item, jido("validUntil")))]
        reviews = [*map(moment_in, view.objects(item, jido("expiresOn")))]
        if not (reviews or ends):
            return any(self._context.pipeline.schema.is_a(kind, jido("Assumption")) for kind in view.types(item))
        past = [date for date in reviews if date is not None and is_due(date, now, is_task=bool(states))]
        past += [date for date in ends if date is not None and date <= now]
        return any(date not in ends or made is None or made < date for date in past)

    def _accepted(
        self, item: Term, action: str, other: str | None, view: WriteSnapshot, now: datetime
    ) -> dict[str, Any]:
        """Return the fields that assert *item* again, beside or in place of the memories that it disagrees with."""
        rejected = [iri(other)] if other and view.is_proposed(iri(other)) else []  # rival proposals
        rivals = [iri(other)] if other and not rejected else [] if rejected else _rivals(item, view)
        if action in ("supersede", "keep-both") and not (rivals or rejected):
            raise InvalidRequest(f"{plain_value(item)} disagrees with no active memory", hint="accept it, or reject it")
        if action == "keep-both" and any(conflict.of_one_origin(item, rival, view) for rival in rivals):
            other = plain_value(rivals[0])
            raise InvalidRequest(
                "both replaced one memory, which has one successor: they cannot both stay",
                hint=f"replace both by one: jidomem review supersede {plain_value(item)} --against {other}",
            )
        proposed = view.is_proposed(item)
        replaced = [item, *(identical_proposals(item, view) if proposed else [])]
        for old in conflict.replaces(item, view) if proposed else []:
            is_taken = action == "accept" and conflict.place_taken(old, view) is not None
            replaced += [old] if is_taken or not view.has_ended(old) else []
        replaced += rivals if action == "supersede" else []
        values: dict[str, Any] = {"supersedes": [*dict.fromkeys(map(plain_value, replaced))]}
        withdrawn = view.objects(item, jido("invalidates")) if proposed else []
        # what a withdrawn proposal was to replace is no proposal again
        before = (old for each in withdrawn if view.is_pending(each) for old in conflict.replaces(each, view))
        withdrawn = [*dict.fromkeys((*withdrawn, *filter(view.is_pending, before)))]
        if withdrawn or rejected:
            ended = {each: conflict.left_to_withdraw(item, each, view) for each in withdrawn if view.has_ended(each)}
            if action != "accept":
                withdrawn = [each for each in withdrawn if each not in ended]
            else:  # an ended memory with a successor stays in, as a conflict for the curator
                withdrawn = [each for each in withdrawn if each not in ended or ended[each] is not None]
            if action == "supersede":
                ends = [end for end in ended.values() if end is not None]
                values["supersedes"] = [each for each in values["supersedes"] if iri(each) not in ends]
                withdrawn += ends
            values["invalidates"] = [*dict.fromkeys(map(plain_value, (*withdrawn, *rejected)))]
        if action == "keep-both":
            values["coexists_with"] = sorted({*map(plain_value, rivals), *coexisting_with(item, view)})
        if not proposed and not view.first(item, jido("expiresOn")) and jido("Assumption") in view.types(item):
            values["expires_on"] = format_timestamp(now + _LATER)
        return values


class SettlementSubmission(NamedTuple):
    """A settlement as a submission, with whether its memories are near, and the items *accepted* in the same call."""

    settlements: Settlements
    project: str
    settlement: Settlement
    are_near: bool
    accepted: frozenset[str]

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """See `Settlements.decision`."""
        return self.settlements.decision(self, pipeline, view, now)


_REASONS = {
    "accept": ACCEPTED,
    "reject": "rejected in review",
    "supersede": f"{ACCEPTED}, in place of what it disagrees with",
    "keep-both": f"{ACCEPTED}, beside what it disagrees with",
}


#: The reason that settles a proposed withdrawal of memories that have all ended.
_MOOT = "what it withdraws has ended already"


def _is_explained(old: Mapping[str, Any], changes: Mapping[str, Any] | None, *, is_proposed: bool) -> bool:
    """Return whether *changes* have another rationale than *old*, or the proposal *old* a reason or rationale."""
    before, rationale = (str(fields.get("rationale") or "").strip() for fields in (old, changes or {}))
    return rationale not in ("", before) or bool(is_proposed and (old.get("reason") or before))


def newer_proposal(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the last pending version of the proposal *item*, by `supersedes` or later imports of its source, or None.

    Of several versions that follow the same one, the first by IRI is followed; the others conflict with it.
    """
    newest, seen = item, {item}
    while True:
        versions = {other for link in ("supersedes", "previousImport") for other in view.subjects(jido(link), newest)}
        pending = sorted(other for other in versions - seen if view.is_pending(other))
        if not pending:
            return newest if newest != item else None
        newest = pending[0]
        seen.add(newest)


def _is_moot(item: Term, view: WriteSnapshot) -> bool:
    """Return whether *item* is a proposed withdrawal of memories that have all ended without an active successor."""
    if not view.is_proposed(item) or jido("DeletedMarker") not in view.types(item):
        return False
    withdrawn = view.objects(item, jido("invalidates"))
    return all(view.has_ended(each) and conflict.left_to_withdraw(item, each, view) is None for each in withdrawn)


def _rivals(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the active memories that *item* was proposed against, and those that it conflicts with now."""
    recorded = [other for other in view.objects(item, jido("conflictsWith")) if view.is_current(other)]
    return [*dict.fromkeys([*recorded, *conflict.rivals(item, view)])]


def _ways(item: str, action: str, other: str | None, view: WriteSnapshot) -> str:
    """Return the hint of a settlement that makes a conflict: the commands that settle *item* otherwise."""
    against = f" --against {other}" if other else ""
    replacing = f"jidomem review supersede {item}{against}"
    if action == "keep-both":
        place = f"jidomem review keep-both {item}{against} --set about=PATH"
        return f"say where it applies, and the other one does not: {place}; or replace: {replacing}"
    if not view.is_proposed(iri(item)) or action == "supersede":
        return "settle the other conflict first: jidomem review --conflicts"
    return f"choose: {replacing}, to put it in that place; or jidomem review reject {item}"


#: The property by which a pending proposal names an active memory -> its name in messages, and the action to assert it.
_PENDING: Mapping[str, tuple[str, str]] = {
    "invalidates": ("a withdrawal", "accept"),
    "supersedes": ("a change", "accept"),
    "conflictsWith": ("a disagreement", "supersede"),
}


def _check_unsettled(item: Term, action: str, view: WriteSnapshot, now: datetime) -> None:
    """Raise InvalidRequest unless the active *item* itself can be settled: something else or nothing is pending."""
    ended = view.expired(item, now)
    state = f"{plain_value(item)} expired: it was valid until {ended}" if ended else f"{plain_value(item)} is active"
    pending: dict[Term, tuple[str, str]] = {}
    for name, what in _PENDING.items():
        for other in view.subjects(jido(name), item):
            if view.is_pending(other):
                pending.setdefault(other, what)
    if pending:
        named = ", ".join(f"{plain_value(other)} ({what})" for other, (what, _) in pending.items())
        commands = [f"jidomem review {action_of} {plain_value(other)}" for other, (_, action_of) in pending.items()]
        commands += [f"jidomem review reject {plain_value(other)}" for other in pending]
        raise InvalidRequest(f"{state}; pending on it: {named}", hint=f"choose: {'; '.join(commands)}")
    status = view.first(item, jido("decisionStatus"))
    if status is not None and not is_accepted(plain_value(status)):
        name, stated = plain_value(item), plain_value(status)
        hint = f"to accept the decision: jidomem edit {name} --set status=accepted"
        if action == "reject":
            hint = f"to reject the decision: jidomem edit {name} --set status=rejected"
            hint += f'; to withdraw the record of it: jidomem edit {name} --invalidate --reason "..."'
        if action == "accept" or stated == "proposed":
            raise InvalidRequest(f"{name} is not a proposal, but a decision with the status {stated}", hint=hint)
    if action == "accept" and not _rivals(item, view):
        change = "--set valid_until=DATE" if ended else "--confirm"
        hint = f"to {'renew it' if ended else 'confirm that it still holds'}: jidomem edit {plain_value(item)} {change}"
        raise InvalidRequest(f"{state}, and nothing is pending on it", hint=hint)


def present_name(item: str, view: WriteSnapshot) -> str:
    """Return the active memory by which settlements restated *item* with the same content, else *item*."""
    node, visited = iri(item), set[Term]()
    while view.has_ended(node):
        after = view.first(node, jido("supersededBy"))
        if after is None or after in visited or not _is_restated(node, after, view):
            return item
        visited.add(after)
        node = after
    return plain_value(node)


def _is_restated(item: Term, after: Term, view: WriteSnapshot) -> bool:
    """Return whether a settlement replaced *item* by *after*, which has the same content, and no confirmation did."""
    beside = {*view.objects(item, jido("coexistsWith")), *view.subjects(jido("coexistsWith"), item)}
    is_settled = len(view.objects(after, jido("supersedes"))) > 1 or beside < {
        *view.objects(after, jido("coexistsWith"))
    }
    if not (is_settled or view.is_proposed(item)):
        return False
    old, new = ({**restated_in(view, plain_value(each))} for each in (item, after))
    for fields in (old, new):
        fields["extra_triples"] = without_verified(fields)
    return all(old.get(name) == new.get(name) for name in {*old, *new} - conflict.NOT_CONTENT - {"expires_on"})


def _coexist_already(old: Mapping[str, Any], other: str, changes: Mapping[str, Any], view: WriteSnapshot) -> bool:
    """Return whether the active memory with the fields *old* coexists with *other*, and has the *changes*."""
    item = iri(old["iri"])
    is_settled = other in coexisting_with(item, view) and iri(other) not in _rivals(item, view)
    return is_settled and all(old.get(name) == value for name, value in changes.items())


def _settled_already(settlement: Settlement, item: Term, view: WriteSnapshot) -> InvalidRequest:
    """Return the refusal to settle an ended memory, with its successor and the command that settles that."""
    if (newer := conflict.end_of_chain(item, view)) is not None:
        was_proposed = view.is_proposed(item)
        verb = "accepted as" if was_proposed else "replaced by"
        hint = f"see: jidomem show {plain_value(newer)}"
        named = [iri(each) for each in (settlement.item, settlement.other) if each is not None]
        ends = [plain_value(conflict.end_of_chain(each, view) or each) for each in named]
        if len({*ends}) > 1:
            hint = f"to settle that one: jidomem review {settlement.action} {ends[0]} --against {ends[1]}; {hint}"
        return _ended(f"{plain_value(item)} is settled already: it was {verb} {plain_value(newer)}", hint)
    restated = [new for new in view.subjects(jido("revives"), item) if not view.has_ended(new)]
    if restated and view.is_proposed(restated[0]):
        return _ended(
            f"{plain_value(item)} is settled already, and pending again as {plain_value(restated[0])}",
            f"settle that one: jidomem review accept {plain_value(restated[0])}, or reject",
        )
    outcome = "replaced, and its successor was withdrawn"
    if view.objects(item, jido("invalidatedBy")):
        outcome = "rejected" if view.is_proposed(item) else "withdrawn"
    return _ended(f"{plain_value(item)} is settled already: it was {outcome}", f"see: jidomem show {plain_value(item)}")


def _ended(detail: str, hint: str) -> InvalidRequest:
    """Return the refusal to change an ended memory, with the code that such a correction has."""
    return InvalidRequest(detail, hint=hint, code="conflict")


def _check_is_newest(item: Term, view: WriteSnapshot) -> None:
    """Raise InvalidRequest if a newer version of the proposal *item* is pending."""
    if (newer := newer_proposal(item, view)) is not None:
        name = plain_value(newer)
        raise InvalidRequest(
            f"{plain_value(item)} has a newer version, which is pending: {name}",
            hint=f"settle that one: jidomem review accept {name}; to accept the older: jidomem review reject {name}",
        )


def _check_opposes(item: Term, other: Term, view: WriteSnapshot) -> None:
    """Raise InvalidRequest unless *item* and the proposal *other*, which is to be rejected for it, disagree."""
    rivals = [*conflict.proposed_rivals(item, view), *_rivals(other, view)]
    if item not in ended_by(other, view) and item not in rivals and other not in rivals:
        name, rejected = plain_value(item), plain_value(other)
        raise InvalidRequest(
            f"{rejected} is a proposal that does not disagree with {name}",
            hint=f"settle each by itself: jidomem review accept {name}; jidomem review reject {rejected}",
        )


#: The beginning of the hint of rivals accepted in one call.
ACCEPT_ONE = "accept one: "


def _check_no_rivals(item: Term, accepted: Collection[str], view: WriteSnapshot) -> None:
    """Raise InvalidRequest if a pending rival of the proposal *item* is among those *accepted* in the same call."""
    name = plain_value(item)
    rivals = [other for other in map(plain_value, conflict.proposed_rivals(item, view)) if other in accepted]
    if rivals:
        both = sorted([name, *rivals])
        ways = [f"jidomem review supersede {one} --against {other}" for one, other in (both[:2], both[1::-1])]
        if len(rivals) > 1:
            ways = [f"jidomem review accept {name} && jidomem review reject {' '.join(rivals)}"]
        raise InvalidRequest(
            f"{' and '.join(both)} are in conflict with each other, so none of them was accepted",
            hint=f"{ACCEPT_ONE}{'; or '.join(ways)}",
            code="conflict",
        )


def _disagree(item: Term, other: Term, view: WriteSnapshot) -> bool:
    """Return whether two memories are or were a conflict, or were told as one when they were written."""
    return (
        other in _rivals(item, view)
        or item in _rivals(other, view)
        or conflict.of_one_origin(item, other, view)
        or conflict.are_nearby(item, other, view)
        or judge_differently(item, other, view)
        or plain_value(other) in coexisting_with(item, view)
    )


#: Action -> the command that does the same to any two active memories, on purpose.
_ON_PURPOSE: Mapping[str, str] = {
    "accept": '; to withdraw {other} all the same: jidomem edit {other} --invalidate --reason "..."',
    "reject": '; to withdraw {item} all the same: jidomem edit {item} --invalidate --reason "..."',
    "supersede": "; to replace both all the same: jidomem edit {item} --set supersedes={item} --set supersedes={other}"
    ' --reason "..."',
    "keep-both": "",
}


def _check_listed(action: str, item: Term, other: Term, view: WriteSnapshot) -> None:
    """Raise InvalidRequest unless the review lists *item* and the active *other* as a pair: one id may be mistyped."""
    if _disagree(item, other, view):
        return
    name, rival = plain_value(item), plain_value(other)
    detail = f"{name} and {rival} are no pair of the review: they do not disagree, and are not near to each other"
    hint = "the pairs: jidomem review"
    if known := [plain_value(each) for each in _rivals(item, view)]:
        hint = f"{name} disagrees with {known[0]}: jidomem review {action} {name} --against {known[0]}"
    raise InvalidRequest(detail, hint=hint + _ON_PURPOSE[action].format(item=name, other=rival))


def _check_pair(settlement: Settlement, item: Term, other: Term, view: WriteSnapshot) -> None:
    """Raise InvalidRequest unless *item* and *other* are two, neither has ended, and the one that stays is active."""
    if item == other:
        for each in (settlement.item, settlement.other or ""):
            if view.has_ended(iri(each)):
                raise _settled_already(settlement, iri(each), view)
        raise InvalidRequest(f"{plain_value(item)} does not disagree with itself", hint="name the other one")
    if view.has_ended(other):
        raise _settled_already(settlement, other, view)
    action = settlement.action
    staying = {"accept": item, "reject": other, "keep-both": other}.get(action)
    if staying is not None and not view.is_current(staying):
        rival = plain_value(other if staying == item else item)
        raise InvalidRequest(
            f"{plain_value(staying)} is only proposed, so it cannot be active in place of {rival} or beside it",
            hint=f"assert it in that place: jidomem review supersede {plain_value(staying)} --against {rival}",
        )


def ended_by(item: Term, view: WriteSnapshot) -> dict[Term, bool]:
    """Return the memories that the proposal *item* replaces or withdraws, and whether it withdraws them.

    Memories that ended already are left out, unless all did.
    """
    withdrawn = view.objects(item, jido("invalidates"))
    ended = dict.fromkeys(conflict.replaces(item, view), False) | dict.fromkeys(withdrawn, True)
    return {old: is_withdrawn for old, is_withdrawn in ended.items() if not view.has_ended(old)} or ended


def ends_strict_convention(item: Term, view: WriteSnapshot) -> bool:
    """Return whether the proposal *item* replaces or withdraws an active convention that stops edits."""
    level, strict = jido("hasEnforcementLevel"), jido("Strict")
    return any(view.is_current(old) and strict in view.objects(old, level) for old in ended_by(item, view))


def identical_proposals(item: Term, view: WriteSnapshot) -> list[Term]:
    """Return the other pending proposals that are identical to *item*."""
    identical = [key for key in view.objects(item, _KEY) if plain_value(key).startswith(IDENTICAL)]
    others = {other for key in identical for other in view.subjects(_KEY, literal(plain_value(key))) if other != item}
    return sorted(filter(view.is_pending, others))
