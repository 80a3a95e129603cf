"""A correction replaces, withdraws, confirms or restores a memory by another memory; nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from shlex import quote
from typing import Any, NamedTuple

from jidomem.base.clock import parse_moment
from jidomem.base.words import cut
from jidomem.errors import Conflict, IntentRefused, InvalidRequest, JidomemError, PolicyDenied
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.active import corrected_instead, is_record_of
from jidomem.records.file_anchor import ANCHOR, anchors_of
from jidomem.records.intent import CONFLICT_KEY, IDENTICAL, MemoryUpdateIntent, Receipt, with_own_properties
from jidomem.write import conflict, permissions, submission
from jidomem.write.context import WritePart
from jidomem.write.normalize import FieldNormalizer
from jidomem.write.pipeline import PROPOSED_PREFIX, Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import DEFAULT_OPTIONS, Decision, Retry, Submission, SubmitOptions, correction_digest
from jidomem.write.triples import next_review, restated_in, successor_links, with_other_triples

_MAX_SUMMARY_CHARS = 10_000  # characters of a summary that a marker of its withdrawal repeats
#: The fields of identity and relations, which a successor does not inherit.
OWN = ("iri", "supersedes", "invalidates", "revives", "coexists_with", "reason")
_TEXTS = ("summary", "detailed_explanation")
#: The fields that may explain the old text only, and the warning that a memory with another text has them.
_EXPLAINING = ("rationale", "detailed_explanation", "alternatives", "evidence")
_CARRIED = "copied from the old memory: {}; change what does not fit the new text"
#: The warning that the reason of another text replaces the rationale, and the number of its characters shown.
_REPLACED, _MAX_RATIONALE = "the reason replaces the rationale: {}; to keep it, set rationale too", 300
#: The fields whose change implies that the author looked at the files that the memory is about.
_LOOKED_AT = frozenset((*_TEXTS, "rationale", "about"))
_VERIFIED = vocab.JIDO + "verified"
ACCEPTED = "accepted in review"  # the reason of the memory that asserts a proposal
_ENDS = {"supersededBy": "supersedes", "invalidatedBy": "invalidates"}
#: The fields of the author of a correction, which change nothing of what it restates.
_AUTHOR = frozenset(("asserted_by", "asserted_in"))
_BY, _WITHDRAWN = jido("assertedBy"), "Withdrawn: "


class Corrections(WritePart):
    """The corrections of memories: each is a new memory, and the old one is not changed."""

    def restated(self, project_id: str, item: str) -> dict[str, Any]:
        """See `MemoryWriter.restated`."""
        return restated_in(self._context.snapshot(project_id), item)

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
        """See `MemoryWriter.revise`."""
        if not changes:
            hint = "name a field in `changes`, such as status, or use `confirm`"
            raise InvalidRequest(f"no field of {item} is changed", hint=hint)
        view = self._context.snapshot(project_id)
        changes = with_other_triples(view, item, changes, self._context.pipeline.schema)
        values = self._carried(view, item, changes) | successor_links(view, item) | {"reason": reason}
        values |= changed_fields(values, changes)
        options = replace(self._as_seen(view, iri(item), changes), under=under)
        try:
            return self._submit(project_id, values, options, dry_run=dry_run)
        except IntentRefused as refusal:
            if refusal.fixed_intent is not None:
                refusal.fixed_intent = _replacing_own_values(refusal.fixed_intent, restated_in(view, item))
            raise

    def invalidate(self, project_id: str, item: str, *, reason: str, dry_run: bool = False, **fields: Any) -> Receipt:
        """See `MemoryWriter.invalidate`."""
        values = self.withdrawal(project_id, self._context.snapshot(project_id), item, reason) | fields
        return self._submit(project_id, values, dry_run=dry_run)

    def confirm(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """See `MemoryWriter.confirm`."""
        view, retry = self._context.snapshot(project_id), self._retry(project_id, "confirm", item, reason, fields)
        if (first := retry.first(view)) is not None:
            return first
        values = self.confirmation(view, item, reason, fields)
        until = view.expired(iri(item), self._context.now())
        if until and "valid_until" not in fields and view.is_current(iri(item)):
            acting = self._context.pipeline.node(values["asserted_by"], "agents")
            reasoned = " --reason TEXT" * bool(permissions.unexplained(iri(item), {acting}, view, "reason"))
            raise InvalidRequest(
                f"{item} expired: it was valid until {until}; that it still holds needs another valid_until",
                hint=f"to renew it: jidomem edit {item} --confirm --set valid_until=DATE{reasoned}",
            )
        if view.is_proposed(iri(item)):
            agents = {self._context.pipeline.node(values["asserted_by"], "agents"), *view.recorded_by(iri(item))}
            try:
                self.check_asserted(view, self._submit(project_id, values, dry_run=True))
            except Conflict as error:  # ACCEPTED is no reason to end the memory of another
                ends = map(iri, error.conflicts[0].resolve_with.get("supersedes", ()))
                error.needs_reason |= any(permissions.unexplained(end, agents, view, "reason") for end in ends)
                raise
            old = restated_in(view, plain_value(conflict.first_proposed(iri(item), view)))
            if not (reason or old.get("reason") or old.get("rationale")):
                ended = {*values["supersedes"], *values.get("invalidates", ())} - {item}
                permissions.check_explained(ended, agents, view)
        return self._submit(project_id, values, SubmitOptions(request=retry.request), dry_run=dry_run)

    def withdrawal(self, project_id: str, view: WriteSnapshot, item: str, reason: str | None) -> dict[str, Any]:
        """Return the intent of a marker that withdraws *item*."""
        text = restated_in(view, item).get("summary", item)
        text = f"the withdrawal of {text.removeprefix(_WITHDRAWN)}" if text.startswith(_WITHDRAWN) else text
        return {
            "type": "deleted_marker",
            "summary": f"{_WITHDRAWN}{text[:_MAX_SUMMARY_CHARS]}",
            "rationale": reason,
            "applies_to_project": project_id,
            "asserted_by": self._context.agent,
            "asserted_in": self._context.session,
            "confidence": "high",
            "invalidates": [item],
        }

    def confirmation(
        self, view: WriteSnapshot, item: str, reason: str | None, fields: Mapping[str, Any], command: str | None = None
    ) -> dict[str, Any]:
        """Return the intent that confirms *item*; *fields* replace those that it carries over.

        A memory that is valid no more is not verified thereby. *command* is the one that confirms it, for hints.
        """
        old, fields = restated_in(view, item), with_other_triples(view, item, fields, self._context.pipeline.schema)
        values: dict[str, Any] = {**self._carried(view, item, fields), **fields, "reason": reason}
        if "expires_on" not in fields and "expires_on" in old:
            command = command or f"jidomem edit {item} --confirm"
            values["expires_on"] = next_review(old, view, self._context.now(), command)
        values |= successor_links(view, item)
        if view.is_proposed(iri(item)):
            values["reason"] = reason or ACCEPTED
        end = parse_moment(values.get("valid_until"))
        has_ended = end is not None and end <= self._context.now()
        if not has_ended and self._context.is_curator(view, values["asserted_by"]):
            values["extra_triples"] = [*without_verified(values), [_VERIFIED, True]]
        return {**values, **fields}

    def check_corrects(self, project_id: str, item: str, *, asserted: bool = False) -> None:
        """See `MemoryWriter.check_corrects`."""
        view = self._context.snapshot(project_id)
        proposed_because = self.permission(view, item).proposed_because
        if asserted and proposed_because:
            raise self.denied(view, proposed_because)

    def permission(self, view: WriteSnapshot, item: str) -> permissions.Permission:
        """Return the permission of the writer's agent to replace *item*; raises PolicyDenied."""
        restated_in(view, item)  # raises NotFound
        pipeline, agent = self._context.pipeline, plain_value(self._context.agent_node)
        # judged by kinds, place and scope of the memory that it ends
        proposal = MemoryUpdateIntent(type="deleted_marker", asserted_by=agent, supersedes=[item])
        return permissions.permitted(proposal, view, pipeline.rules, pipeline.speaker)

    def check_asserted(self, view: WriteSnapshot, receipt: Receipt) -> None:
        """Raise Conflict, or PolicyDenied with the names of the curators, for a memory that would only be proposed."""
        if receipt.status != "proposed":
            return
        if receipt.conflicts:
            raise Conflict(receipt.conflicts)
        reasons = [each.removeprefix(PROPOSED_PREFIX) for each in receipt.warnings if each.startswith(PROPOSED_PREFIX)]
        raise self.denied(view, "; ".join(reasons or receipt.warnings))

    def denied(self, view: WriteSnapshot, reason: str) -> PolicyDenied:
        """Return the refusal of a settlement by the writer's agent, with the names of the curators of the project."""
        pipeline, name = self._context.pipeline, self._context.agent
        rules = permissions.authority(view, pipeline.policy)
        names = ", ".join(map(vocab.local_name, rules.curators))
        rule = next((rule for rule in rules.rules if reason == f"{permissions.BY_POLICY}{rule}"), None)
        if rule is not None and names and (command := permissions.curator_grant_command(rule, rules)):
            hint = f"no curator may assert it under this rule; an administrator lets them: {command}"
            return PolicyDenied(f"{name} may not settle this: {reason}", hint=hint)
        # the hint must not make an agent a curator; with a token the owner may be on another machine
        owner = "NAME" if pipeline.speaker else quote(self._context.owner)
        no_curator = "the project has no curator; the owner of the repository, not an agent, becomes one with"
        hint = f"ask a curator: {names}" if names else f"{no_curator}: jidomem access policy grant {owner} admin"
        return PolicyDenied(f"{name} may not settle this: {reason}", hint=hint)

    def undo(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """See `MemoryWriter.undo`."""
        retry = self._retry(project_id, "undo", item, reason, fields)
        if (first := retry.first(self._context.snapshot(project_id))) is not None:
            return first
        try:
            return self._undone(project_id, item, retry, reason, fields, dry_run=dry_run)
        except JidomemError:  # another request with this key may have been served since
            if (first := retry.first(self._context.snapshot(project_id))) is not None:
                return first
            raise

    def _retry(self, project_id: str, way: str, item: str, reason: str | None, fields: Mapping[str, Any]) -> Retry:
        """Return how a correction with the idempotency key in *fields* is recognised; of one without key nothing is."""
        pipeline, key = self._context.pipeline, fields.get("idempotency_key")
        normalizer = FieldNormalizer(pipeline.rules.schema, pipeline.literal)
        key = normalizer.text("idempotency_key", key) if isinstance(key, str) else None
        if not key:
            return Retry()
        agent = plain_value(pipeline.node(fields.get("asserted_by", self._context.agent), "agents"))
        permissions.check_author(agent, self._context.snapshot(project_id), pipeline.policy, pipeline.speaker)
        return Retry(agent, key, correction_digest(way, item, reason, fields), pipeline.sender)

    def _undone(
        self, project_id: str, item: str, retry: Retry, reason: str | None, fields: Mapping[str, Any], *, dry_run: bool
    ) -> Receipt:
        view = self._context.snapshot(project_id)
        restated_in(view, item)  # raises NotFound
        named = iri(item)
        if (proposal := _settled_proposal(named, view)) is not None:
            undone = _Unsettling(named, proposal, view)
            try:
                return self._unsettled(project_id, undone, retry, reason, fields, dry_run=dry_run)
            except PolicyDenied:  # of what a curator ended, an agent proposes the restoration
                ended = undone.ended
                if len(ended) != 1:
                    raise
                _check_unchanged(named, ended[0], fields)
                named = ended[0]
        if (by := conflict.undone_by(named, view)) is not None:
            return submission.undone_already(item, by, fields.keys() - _AUTHOR - {"idempotency_key"}, view)
        old, ends = _undo_target(named, view)
        if old is None:
            joint = _JointUndo(named, named, view)
            return self._unsettled(project_id, joint, retry, reason, fields, dry_run=dry_run)
        again = [
            conflict.pending_again(each, view) for each in conflict.proposals_in(old, view)
        ]  # an undone undo accepts it again
        ends += [plain_value(each) for each in again if each is not None]
        values, options = self.restoration(view, old, ends, reason, fields)
        return self._submit(project_id, values, replace(options, request=retry.request), dry_run=dry_run)

    def restoration(
        self, view: WriteSnapshot, old: Term, ends: list[str], reason: str | None, fields: Mapping[str, Any]
    ) -> tuple[dict[str, Any], SubmitOptions]:
        """Return the intent that asserts the ended *old* again in place of *ends*, changed by *fields*; its options."""
        fields = with_other_triples(view, plain_value(old), fields, self._context.pipeline.schema)
        values = self._carried(view, plain_value(old), fields)
        is_record = any(is_record_of(old, item) for item in view.objects(old, jido("conflictsWith")))
        values |= {"revives": [] if is_record else [plain_value(old)], "supersedes": ends, "reason": reason}
        return {**values, **fields}, self._as_seen(view, old, fields)

    def _unsettled(
        self,
        project_id: str,
        undone: _Unsettling,
        retry: Retry,
        reason: str | None,
        fields: Mapping[str, Any],
        *,
        dry_run: bool,
    ) -> Receipt:
        """Undo the settlement of a proposal, or a joint end, in one commit; return the receipt of its main memory.

        What the accepted memory ended is asserted again; if that is nothing, the accepted memory is withdrawn. The
        proposal is pending again. *fields* change the named memory, and `supersedes` what is asserted again. Raises
        InvalidRequest where the accepted memory was itself replaced, PolicyDenied where a curator accepted it and the
        agent is none.
        """
        pipeline, view, submissions = self._context.pipeline, undone.view, list[_UndoStep]()
        receipts = list[Receipt]()
        agent = pipeline.node(fields.get("asserted_by", self._context.agent), "agents")
        undone.check(pipeline, agent, fields)
        accepted = undone.accepted
        authors = set() if accepted is None else {*view.recorded_by(accepted), *view.objects(accepted, _BY)}
        if undone.pending and agent in authors:
            reason = reason or f"its acceptance was undone: {plain_value(undone.proposal)}"
        author = {name: value for name, value in fields.items() if name in _AUTHOR}
        restored = {old: f"{vocab.BASE}memory/{self._context.new_id()}" for old in undone.ended}
        ends = [*([plain_value(accepted)] if accepted is not None else []), *fields.get("supersedes", ())]
        for old, new in restored.items():
            given = fields if old == undone.named else author
            changes = with_other_triples(view, plain_value(old), given, pipeline.schema)
            values = self._carried(view, plain_value(old), changes) | {"reason": reason, **changes}
            values |= {"iri": new, "revives": [plain_value(old)], "supersedes": [] if submissions else ends}
            options = replace(self._as_seen(view, old, changes), ending=frozenset(restored.values()), request="")
            submission = pipeline.submission(project_id, values, options)
            submissions.append(_UndoStep(self, submission, undone.named, old, len(submissions), receipts))
        if accepted is not None and not restored:
            marker = self.withdrawal(project_id, view, plain_value(accepted), reason) | author
            submission = pipeline.submission(project_id, marker)
            submissions.append(_UndoStep(self, submission, accepted, accepted, 0, receipts))
        for proposal in undone.pending:
            is_named = proposal == undone.proposal and undone.named not in restored
            changes = author
            if is_named:
                changes = {name: fields[name] for name in fields if name != "supersedes" or not restored}
                changes = with_other_triples(view, plain_value(proposal), changes, pipeline.schema)
            values = self._carried(view, plain_value(proposal), changes) | {"reason": reason}
            values |= {**undone.links(proposal, restored | undone.active_again), **changes}
            # as it was: it may name a memory that was replaced since, as a conflict for the curator
            is_same = changes.keys() <= _AUTHOR | {"idempotency_key"}
            options = replace(self._as_seen(view, proposal, changes), propose=True, restates=is_same, request="")
            submission = pipeline.submission(project_id, values, options)
            submissions.append(_UndoStep(self, submission, undone.named, None, len(submissions), receipts))
        if not dry_run:  # the whole receipt is known with the last memory
            submissions[-1] = submissions[-1]._replace(record=lambda: retry.triples(undone.receipt(receipts)))
        queue = self._context.queues.of(project_id)
        try:
            if dry_run:
                done = [each.receipt for each in queue.dry_run(pipeline, lambda view, now: submissions)]
            else:
                done = queue.submit_atomic(pipeline, submissions)
        except JidomemError as refusal:
            refusal.position = None  # the caller gave no list
            raise
        return undone.receipt(done, is_dry=dry_run)

    def _as_seen(self, view: WriteSnapshot, old: Term, changes: Mapping[str, Any]) -> SubmitOptions:
        """Return the options that keep the recorded files of *old*, unless *changes* imply another look at them."""
        return SubmitOptions(None if _LOOKED_AT & changes.keys() else recorded_blobs(view, old))

    def correct(
        self,
        project_id: str,
        item: str,
        ways: Mapping[str, Any],
        changes: Mapping[str, Any],
        reason: str | None,
        who: Mapping[str, Any],
        *,
        dry_run: bool,
    ) -> Receipt:
        """See `MemoryWriter.correct`; *ways* are its arguments `supersede`, `invalidate`, `confirm` and `undo`."""
        changed, author, supersede = dict(changes), dict(who), ways["supersede"]
        if isinstance(agent := author.get("asserted_by"), str):
            author.setdefault("asserted_in", self._context.session_of(agent))
        count = sum(value not in (None, False) for value in ways.values())
        if count > 1 or not (count or changed) or (ways["invalidate"] and changed):
            hint = "give one of `supersede`, `invalidate`, `confirm` and `undo`, or fields to change"
            raise InvalidRequest("choose one correction", hint=hint)
        if ways["invalidate"] and not reason:
            raise InvalidRequest("a withdrawal needs a reason", hint="give `reason`: why it is wrong")
        if supersede is not None and not supersede.strip():
            raise InvalidRequest("the text of the successor is empty", hint="give `supersede`: what is true now")
        with self.successor_hint(project_id, item, **ways, set=dict(changed), reason=reason):
            if ways["invalidate"]:
                return self.invalidate(project_id, item, reason=reason or "", dry_run=dry_run, **author)
            if ways["confirm"]:
                return self.confirm(project_id, item, reason=reason, dry_run=dry_run, **changed, **author)
            if ways["undo"]:
                return self.undo(project_id, item, reason=reason, dry_run=dry_run, **changed, **author)
            if supersede is not None:
                changed["summary"] = supersede
            old = restated_in(self._context.snapshot(project_id), item)
            if changed.get("summary", old.get("summary")) == old.get("summary"):
                return self.revise(project_id, item, changes=changed | author, reason=reason, dry_run=dry_run)
            warnings = []
            if reason and old.get("rationale") and "rationale" not in changed:
                changed["rationale"] = reason
                if reason != old["rationale"]:
                    warnings.append(_REPLACED.format(cut(old["rationale"], _MAX_RATIONALE)[0]))
            receipt = self.revise(project_id, item, changes=changed | author, reason=reason, dry_run=dry_run)
            if carried := [name.replace("_", " ") for name in _EXPLAINING if old.get(name) and name not in changed]:
                warnings.append(_CARRIED.format(", ".join(carried)))
            return replace(receipt, warnings=(*receipt.warnings, *warnings))

    @contextmanager
    def successor_hint(self, project_id: str, item: str, **given: Any) -> Iterator[None]:
        """Make the hint of a Conflict correct what is in the place of *item*, which has ended, as *given* in Python."""
        try:
            yield
        except Conflict as error:
            view = self._context.snapshot(project_id)
            newer = conflict.end_of_chain(iri(item), view) if view.has_ended(iri(item)) else None
            error.successor = "" if newer is None or error.names_withdrawn else plain_value(newer)
            if call := corrected_instead(error, {"id": item, **{key: each for key, each in given.items() if each}}):
                named = {"changes" if name == "set" else name: each for name, each in call.items() if name != "id"}
                words = ", ".join(f"{name}={each!r}" for name, each in named.items())
                error.hint = f"{error.advice}: memory.writer.correct({project_id!r}, {call['id']!r}, {words})"
            raise

    def _carried(self, view: WriteSnapshot, item: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of *item* for its successor, with the writer's agent and session, and the date of *item*.

        If *changes* have another summary, it is a new statement, which gets the present date. The name of a convention
        that is its summary is not carried then.
        """
        old = restated_in(view, item)
        carried = {name: value for name, value in old.items() if name not in OWN}
        if changes.get("summary", old.get("summary")) != old.get("summary"):
            carried.pop("timestamp", None)
            if carried.get("convention_name") == old.get("summary"):
                carried.pop("convention_name", None)
        author = {"asserted_by": self._context.agent, "asserted_in": self._context.session}
        ended = {*changes.get("supersedes", ()), *changes.get("invalidates", ())}
        beside = [other for other in conflict.coexisting_with(iri(item), view) if other not in ended]
        return {**carried, "coexists_with": beside, **author}

    def _submit(
        self,
        project_id: str,
        values: Mapping[str, Any],
        options: SubmitOptions = DEFAULT_OPTIONS,
        *,
        dry_run: bool = False,
    ) -> Receipt:
        submission = self._context.pipeline.submission(project_id, values, options)
        return self._context.submit(project_id, submission, dry_run=dry_run)


class _UndoStep(NamedTuple):
    """A submission of the undo of a settlement by the name *named*: of *old*, asserted again, or of the proposal.

    Its receipt is at `position` in `receipts`, those of all steps. `record` returns what the last step records besides.
    """

    corrections: Corrections
    submission: Submission
    named: Term
    old: Term | None
    position: int
    receipts: list[Receipt]
    record: Callable[[], list[Triple]] | None = None

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """Return the decision; raises Conflict or PolicyDenied where what is to be asserted would only be proposed.

        A conflict is explained by memories that exist, as the new ones of the undo are not written.
        """
        try:
            decision = pipeline.run(self.submission, view, now)
            if self.old is not None:
                self.corrections.check_asserted(view, decision.receipt)
        except Conflict as refusal:
            if self.old == self.named:
                raise
            detail, hint = refusal.detail, "undo it without other fields, and change the proposal then"
            if self.old is not None:
                old = plain_value(self.old)
                detail = f"{old} would be active again: {detail}"
                hint = f'undo it by that name, to settle this: jidomem edit {old} --undo --reason "..."'
            raise InvalidRequest(detail, hint=hint, code=refusal.code) from None
        self.receipts[self.position :] = [decision.receipt]  # a step may be judged again
        return decision if self.record is None else decision._replace(triples=(*decision.triples, *self.record()))


def changed_fields(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to change in *old*; the mark of a verified memory is removed for another text."""
    is_other = any(name in changes for name in _TEXTS)
    return ({"extra_triples": without_verified(old)} if is_other else {}) | dict(changes)


def _replacing_own_values(fixed: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the repaired correction *fixed* without the values in *old* of own properties that the repair names."""
    fixed, carried = with_own_properties(fixed), old.get("extra_triples", [])
    triples = fixed.get("extra_triples", [])
    given = {triple[0] for triple in triples if triple not in carried}
    kept = [triple for triple in triples if triple not in carried or triple[0] not in given]
    return {**fixed, "extra_triples": kept} if triples else {**fixed}


def recorded_blobs(view: WriteSnapshot, item: Term) -> dict[str, str]:
    """Return the recorded blob ids of the files that *item* is about, by path."""
    return dict(anchors_of(view.objects(item, ANCHOR)))


def without_verified(values: Mapping[str, Any]) -> list[Any]:
    """Return the extra triples among *values* without the mark of a verified memory."""
    return [triple for triple in values.get("extra_triples", []) if triple[0] != _VERIFIED]


class _Unsettling(NamedTuple):
    """The undo of the settlement of *proposal*, by the name of one of the memories concerned."""

    named: Term
    proposal: Term
    view: WriteSnapshot

    @property
    def settled(self) -> list[Term]:
        """Return all proposals that the acceptance settled: also equal ones, earlier versions, and rejected rivals."""
        accepted, view = self.view.first(self.proposal, jido("supersededBy")), self.view
        return [] if accepted is None else [each for each in conflict.ended(accepted, view) if view.is_proposed(each)]

    @property
    def pending(self) -> list[Term]:
        """Return the proposals to be made pending again, `proposal` last; of several versions the newest."""
        older = {old for each in self.settled for old in self.view.objects(each, jido("supersedes"))}
        return [*(each for each in self.settled if each not in older and each != self.proposal), self.proposal]

    @property
    def accepted(self) -> Term | None:
        """Return the active memory that asserts the proposal, or that an undo restored; None if it was rejected.

        Raises InvalidRequest where it was replaced, or where the acceptance was undone already.
        """
        view, proposal = self.view, self.proposal
        accepted = view.first(proposal, jido("supersededBy"))
        if accepted is None:
            return None
        if (again := conflict.pending_again(proposal, view)) is not None:
            hint = f"to settle that one: jidomem review accept {plain_value(again)}, or reject"
            raise InvalidRequest(f"{plain_value(proposal)} is pending again, as {plain_value(again)}", hint=hint)
        current = next((each for each in conflict.revivals(accepted, view) if view.is_current(each)), None)
        if current is None and (newer := conflict.end_of_chain(accepted, view)) is not None:
            raise InvalidRequest(
                f"{plain_value(proposal)} was accepted as {plain_value(accepted)}, which {plain_value(newer)} replaced",
                hint=f'undo that first: jidomem edit {plain_value(newer)} --undo --reason "..."',
            )
        return current

    @property
    def ended(self) -> list[Term]:
        """Return the asserted memories to restore: those that the acceptance ended, and that are not active again.

        The named one is in place of its last version.
        """
        of_named = {self.named, *conflict.successors(self.named, self.view)}
        return [self.named if old in of_named else old for old, back in self._olds.items() if back is None]

    @property
    def active_again(self) -> dict[Term, str]:
        """Return the memories that the acceptance ended and that are active again -> their present IRI."""
        return {old: plain_value(back) for old, back in self._olds.items() if back is not None}

    @property
    def _olds(self) -> dict[Term, Term | None]:
        view, first = self.view, self.view.first(self.proposal, jido("supersededBy"))
        olds = [] if first is None else [old for old in conflict.ended(first, view) if not view.is_proposed(old)]
        return {old: _active_again(old, view, self.accepted) for old in olds}

    def links(self, proposal: Term, restored: Mapping[Term, str]) -> dict[str, list[str]]:
        """Return the relations of *proposal* pending again: on the *restored* memories in place of those that ended."""
        item, links = plain_value(proposal), {"revives": [plain_value(proposal)]}
        for name, named in ((name, restated_in(self.view, item).get(name)) for name in _ENDS.values()):
            unsettled = [each for each in named or () if iri(each) not in self.settled]
            links |= {name: [restored.get(iri(each), each) for each in unsettled]} if unsettled else {}
        return links

    @property
    def main(self) -> Term:
        """Return the named memory if it is restored, else the proposal."""
        return self.named if self.named in self.ended else self.proposal

    def check(self, pipeline: Pipeline, agent: Term, fields: Mapping[str, Any]) -> None:
        """Raise PolicyDenied where a curator accepted the proposal, and *agent* is none.

        Raises InvalidRequest where the named memory is active again.
        """
        for old in {self.named, *conflict.successors(self.named, self.view)} & self.active_again.keys():
            raise _back_already(self.named, iri(self.active_again[old]))
        rules = permissions.authority(self.view, pipeline.policy)
        if self.accepted and permissions.curated_end([plain_value(self.proposal)], (), rules, self.view):
            permissions.check_curates("undo what a curator accepted", plain_value(agent), rules, pipeline.speaker)

    def receipt(self, receipts: Sequence[Receipt], *, is_dry: bool = False) -> Receipt:
        """Return the receipt of the main memory, with the others of *receipts* as warnings."""
        done = [*((old, "active again") for old in self.ended), *((each, "pending again") for each in self.pending)]
        if len(receipts) > len(done) and self.accepted is not None:
            done.insert(0, (self.accepted, "withdrawn"))
        paired = [*zip(done, receipts, strict=True)]
        main = self.main
        (receipt,) = [each for (old, _), each in paired if old == main]
        descriptions = [_named(old, what, "" if is_dry else each.iri) for (old, what), each in paired if old != main]
        warnings = [warning for _, each in paired if each is not receipt for warning in each.warnings]
        return replace(receipt, warnings=(*descriptions, *receipt.warnings, *warnings))


class _JointUndo(_Unsettling):
    """The undo of the active memory `named`, which ended several memories: those that are not active again return."""

    @property
    def pending(self) -> list[Term]:
        return []

    @property
    def accepted(self) -> Term:
        return self.named

    @property
    def main(self) -> Term:
        return self.ended[0]

    @property
    def _olds(self) -> dict[Term, Term | None]:
        return {old: _active_again(old, self.view, self.named) for old in conflict.ended(self.named, self.view)}

    def check(self, pipeline: Pipeline, agent: Term, fields: Mapping[str, Any]) -> None:
        """Raise InvalidRequest where a proposal is among them or none is left, and for changes of fields."""
        names = ", ".join(sorted(fields.keys() - _AUTHOR - {"idempotency_key", "supersedes"}))
        if names or not self.ended or any(map(self.view.is_proposed, self._olds)):
            each = self.ended[0] if self.ended else self.named
            why = f"they are restored as they were, without {names}" if names else "not all can be restored together"
            raise InvalidRequest(
                f"{plain_value(self.named)} ended several memories; {why}",
                hint=f'undo each by its own name: jidomem edit {plain_value(each)} --undo --reason "..."',
            )


def _named(old: Term, what: str, name: str) -> str:
    """Return that *old* is *what*, and the *name* that it has now, if any."""
    return f"{plain_value(old)} is {what}" + f", {'by' if what == 'withdrawn' else 'as'} {name}" * bool(name)


def _active_again(old: Term, view: WriteSnapshot, accepted: Term | None) -> Term | None:
    """Return the active memory other than *accepted* that revived the ended *old*, its successor, or an equal one."""
    revived = (conflict.end_of_chain(each, view) for each in conflict.revivals(old, view)[1:])
    keys = (key for key in view.objects(old, CONFLICT_KEY) if plain_value(key).startswith(IDENTICAL))
    equal = (each for key in keys for each in view.subjects(CONFLICT_KEY, key) if view.is_current(each))
    return next((each for each in (*revived, *equal) if each not in (None, accepted)), None)


def _check_unchanged(named: Term, old: Term, fields: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for *fields* of *named* where only the restoration of *old* would be proposed."""
    names = ", ".join(sorted(fields.keys() - _AUTHOR - {"idempotency_key"}))
    if names and named != old:
        raise InvalidRequest(
            f"{plain_value(named)} is undone by a curator only; your undo proposes the memory that it ended, so"
            f" {names} would change {plain_value(old)}",
            hint=f"undo it without other fields; to change that memory: jidomem edit {plain_value(old)} --undo",
        )


def _settled_proposal(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the proposal whose settlement *item* is or has: itself, or the one that *item* accepted or rejected.

    Of an ended memory it is the proposal whose acceptance ended it or its last version. Of several versions it is the
    newest, of equal ones that of the author of the accepted memory.
    """
    if view.is_proposed(item) and conflict.pending_again(item, view) is None:
        item = next(each for each in reversed(conflict.revivals(item, view)) if view.is_proposed(each))
    chain, ends = [item, *conflict.successors(item, view)], [item]
    if view.has_ended(item) and view.is_proposed(item):
        ends = chain[1:2]
    elif view.has_ended(item):
        ends = [*chain[1:][-1:], *(end for old in chain for end in view.objects(old, jido("invalidatedBy")))]
        ends = [end for end in ends if conflict.end_of_chain(end, view) in (end, None)]
    for end in ends:
        if settled := conflict.proposals_in(end, view):
            older = {old for each in settled for old in view.objects(each, jido("supersedes"))}
            authors = set(view.objects(end, jido("assertedBy")))
            newest = [each for each in settled if each not in older] or settled
            return min(newest, key=lambda each: (each != item, authors.isdisjoint(view.objects(each, _BY)), each))
    if view.has_ended(item):
        return item if view.is_proposed(item) else None
    rejected = view.objects(item, jido("invalidates"))
    return rejected[0] if len(rejected) == 1 and view.is_proposed(rejected[0]) and view.is_current(item) else None


def _undo_target(item: Term, view: WriteSnapshot) -> tuple[Term | None, list[str]]:
    """Return the memory to restate to undo *item*, None for several, and the memories that the new one supersedes."""
    if any(view.objects(item, jido(link)) for link in _ENDS):
        return item, _replacements(item, view)
    replaced = conflict.ended(item, view)
    if view.is_current(item) and replaced:
        return replaced[0] if len(replaced) == 1 else None, [plain_value(item)]
    raise InvalidRequest(
        f"{plain_value(item)} has not ended, and ended nothing: there is nothing to undo",
        hint="to withdraw it: `invalidate`, and say why in `reason`",
    )


def _replacements(old: Term, view: WriteSnapshot) -> list[str]:
    """Return the active memories in place of *old*: the end of its chain; raises InvalidRequest if it was revived."""
    chain = conflict.successors(old, view)
    for position, link in enumerate(chain):
        revived = view.objects(link, jido("revives"))
        if old in revived and view.is_current(link):
            raise _back_already(old, link)
        undone = {ended for earlier in chain[:position] for ended in view.objects(earlier, jido("supersedes"))}
        if undone.intersection(revived) - {old, *chain}:
            return []  # a joint replacement of several memories was undone for another one
    markers = [end for end in view.objects(old, jido("invalidatedBy")) if conflict.withdrew_only(old, end, view)]
    ends = (*chain[-1:], *markers, *_restored_since(old, view))
    return [*dict.fromkeys(plain_value(end) for end in ends if view.is_current(end))]


def _restored_since(old: Term, view: WriteSnapshot) -> list[Term]:
    """Return the active memories that revived what *old* had superseded once *old* had ended, or their successors."""
    revivals = (each for was in view.objects(old, jido("supersedes")) for each in conflict.revivals(was, view)[1:])
    ended = max(_recorded(end, view) for link in _ENDS for end in view.objects(old, jido(link)))
    ends = (conflict.end_of_chain(each, view) for each in revivals if _recorded(each, view) >= ended)
    return [end for end in ends if end is not None]


def _recorded(item: Term, view: WriteSnapshot) -> str:
    recorded = view.first(item, jido("recordedAt"))
    return plain_value(recorded) if recorded is not None else ""


def _back_already(old: Term, back: Term) -> InvalidRequest:
    """Return the refusal to restore *old*, which is active again as *back*."""
    hint = "to replace it: supersede that one"
    return InvalidRequest(f"{plain_value(old)} is active again, as {plain_value(back)}", hint=hint)
