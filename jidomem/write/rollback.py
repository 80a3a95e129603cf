"""A rollback restores the active memories of a project at a moment, by corrections in a session of its own."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, PolicyDenied
from jidomem.index.follower import IndexFollower
from jidomem.index.results import Solutions
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import XSD, Term, date_time, iri, literal, moment_in, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.write import permissions, triples
from jidomem.write.conflict import NOT_CONTENT, end_of_chain
from jidomem.write.context import WritePart, project_node
from jidomem.write.corrections import OWN, recorded_blobs
from jidomem.write.normalize import comparable_moments
from jidomem.write.other_writes import SessionRows
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import ENDS, ITEM_MARK, WriteSnapshot
from jidomem.write.submission import AnySubmission, Decision, Submission, SubmitOptions
from jidomem.write.triples import restated_in

Restated = Callable[[Term], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Memories to be `withdrawn`, and ended memories to be `restored`; `lost` are those that cannot be restated."""

    withdrawn: tuple[Term, ...] = ()
    restored: tuple[Term, ...] = ()
    lost: tuple[Term, ...] = ()


def rollback_diff(added: Iterable[Term], ended: Iterable[Term], view: WriteSnapshot, restated: Restated) -> Difference:
    """Return the difference to a past moment: *added* is active and was not then, *ended* was active and is not now.

    A memory in *added* with the content of one in *ended* stands for it, so that neither is corrected. An alternative
    follows its decision. *restated* returns the intent that would restate a memory; a memory whose summary,
    or decision whose rationale, was redacted is lost.
    """
    added, ended = list(added), list(ended)
    all_ended, missing = set(ended), defaultdict[str, list[Term]](list)
    for old in ended:
        if _decision_of(old, view) not in all_ended:
            missing[_content_key(restated(old))].append(old)
    matched: set[Term] = set()
    for new in added:
        if _decision_of(new, view) is None and (same := missing[_content_key(restated(new))]):
            same.pop(0)
            matched.add(new)
    withdrawn = [new for new in added if not {new, _decision_of(new, view)} & matched]
    unmatched = {old for same in missing.values() for old in same}
    restored = [old for old in ended if old in unmatched]
    lost = [old for old in restored if view.lacks(old, "summary") or view.lacks(old, "rationale")]
    return Difference(tuple(withdrawn), tuple(old for old in restored if old not in lost), tuple(lost))


def _content_key(intent: Mapping[str, Any]) -> str:
    """Return the content of a memory as a text that is equal for equal contents.

    An index may write a moment or a number in another form than it was given.
    """
    content = {name: value for name, value in intent.items() if name not in NOT_CONTENT}
    content |= comparable_moments(content)
    if "extra_triples" in content:
        content["extra_triples"] = sorted(map(_comparable, content["extra_triples"]), key=repr)
    return json.dumps(content, sort_keys=True)


def _comparable(extra: Sequence[Any]) -> list[Any]:
    """Return an extra triple with the value of its literal."""
    *prefix, value = extra
    if not isinstance(value, Mapping) or "@value" not in value or "@language" in value:
        return [*extra]
    datatype = value.get("@type", XSD + "string")
    return [*prefix, datatype, str(to_value(literal(value["@value"], datatype)))]


def _decision_of(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the decision that an alternative belongs to; None for any other memory."""
    decision, mark, _ = plain_value(item).rpartition("/alternatives/")
    node = iri(decision) if mark else None
    return node if node is not None and item in view.objects(node, jido("hasAlternative")) else None


@dataclass(frozen=True, slots=True)
class Correction:
    """The change of one memory: `withdrawn` or `restated`, `by` another memory; or `lost`, if its text was redacted.

    A lost one was replaced `by` an active memory, or none; the rollback withdraws that.
    """

    change: str
    item: str
    type: str | None
    summary: str | None
    by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the correction as plain JSON values."""
        return {name: getattr(self, name) for name in ("change", "item", "type", "summary", "by")}


@dataclass(frozen=True, slots=True)
class Rollback:
    """The result of a rollback: the moment `to`, its corrections, and the session and commit that have them.

    Session and commit are None for a dry run, and without corrections.
    """

    to: str
    corrections: tuple[Correction, ...]
    session: str | None
    commit: str | None
    version: Version

    def to_dict(self) -> dict[str, Any]:
        """Return the rollback as plain JSON values."""
        corrections = [each.to_dict() for each in self.corrections]
        values = {"to": self.to, "session": self.session, "commit": self.commit, "version": str(self.version)}
        return {**values, "corrections": corrections}


@dataclass(slots=True)
class _Recovery:
    """A rollback of *project* to *moment* by an agent, with the corrections of the last plan."""

    follower: IndexFollower
    pipeline: Pipeline
    project: str
    moment: datetime
    reason: str
    agent: Term
    corrections: list[Correction] = field(default_factory=list)
    _session: Term = ""
    _restated: dict[Term, str] = field(default_factory=dict)

    def submissions(self, view: WriteSnapshot, now: datetime) -> Iterator[AnySubmission]:
        """Yield the corrections, in the order of their commit; none where nothing differs."""
        pipeline = self.pipeline
        rules = permissions.authority(view, pipeline.policy)
        permissions.check_curates("roll a memory back", plain_value(self.agent), rules, pipeline.speaker)
        difference = self._difference(view)
        ends = {old: end_of_chain(old, view) for old in difference.lost}
        self.corrections = [
            self._correction("lost", old, view, by=end and plain_value(end)) for old, end in ends.items()
        ]
        self._restated = {}
        if not difference.withdrawn and not difference.restored:
            return
        self._session = iri(f"{vocab.BASE}sessions/recovery-{pipeline.new_id()}")
        yield self._opening(view, now)
        if difference.withdrawn:
            yield self._withdrawal(difference.withdrawn, view)
        for old in difference.restored:
            yield self._restatement(old, view)
        closing = triples.session_event(self._session, self.agent, format_timestamp(now), status="Closed", view=view)
        yield SessionRows(self._session, closing)

    def _difference(self, view: WriteSnapshot) -> Difference:
        recorded, ended = _since(self.follower, self.project, self.moment)
        added = [item for item in recorded if view.is_current(item) and jido("DeletedMarker") not in view.types(item)]
        ended = [item for item in ended if self._was_active(item, view)]
        return rollback_diff(added, ended, view, lambda item: restated_in(view, plain_value(item)))

    def _was_active(self, item: Term, view: WriteSnapshot) -> bool:
        """Return whether *item*, which has ended since, was active at the moment; markers do not count."""
        if jido("Asserted") not in view.objects(item, ITEM_MARK) or jido("DeletedMarker") in view.types(item):
            return False
        ends = [end for link in ENDS for end in view.objects(item, link)]
        return self._was_recorded(item, view) and not any(self._was_recorded(end, view) for end in ends)

    def _was_recorded(self, item: Term, view: WriteSnapshot) -> bool:
        recorded = map(moment_in, view.objects(item, jido("recordedAt")))
        return any(moment is not None and moment <= self.moment for moment in recorded)

    def _opening(self, view: WriteSnapshot, now: datetime) -> SessionRows:
        project = project_node(self.project)
        self.pipeline.check_other_write("session", self.agent, view)
        rows = triples.session_stub(self._session, project, self.agent, format_timestamp(now), kind="RecoverySession")
        rows.append((self._session, jido("restoresMoment"), date_time(format_timestamp(self.moment))))
        rows.append((self._session, jido("recoveryReason"), literal(self.reason)))
        return SessionRows(self._session, [*rows, *self.pipeline.stubs([self.agent], project, view)])

    def _withdrawal(self, items: tuple[Term, ...], view: WriteSnapshot) -> AnySubmission:
        """Return the one marker that withdraws all memories asserted since."""
        marker = f"{vocab.BASE}memory/{self.pipeline.new_id()}"
        self.corrections += [self._correction("withdrawn", item, view, by=marker) for item in items]
        values = {
            "type": "deleted_marker",
            "iri": marker,
            "summary": f"Rolled back to {format_timestamp(self.moment)}: {len(items)} withdrawn",
            "rationale": self.reason,
            "confidence": "high",
            "invalidates": [*map(plain_value, items)],
        }
        return self._asserted(values, SubmitOptions())

    def _restatement(self, old: Term, view: WriteSnapshot) -> AnySubmission:
        values = {name: value for name, value in restated_in(view, plain_value(old)).items() if name not in OWN}
        new = f"{vocab.BASE}memory/{self.pipeline.new_id()}"
        values["coexists_with"] = self._coexisting(old, view)
        values |= {"iri": new, "revives": [plain_value(old)], "reason": self.reason}
        self.corrections.append(self._correction("restated", old, view, by=new))
        self._restated[old] = new
        return self._asserted(values, SubmitOptions(recorded_blobs(view, old), restates=True))

    def _coexisting(self, old: Term, view: WriteSnapshot) -> list[str]:
        """Return the memories that coexisted with *old*, as restated or as their active successors."""
        named = [*view.objects(old, jido("coexistsWith")), *view.subjects(jido("coexistsWith"), old)]
        restated = {self._restated[other] for other in named if other in self._restated}
        ends = (end_of_chain(other, view) for other in named if other not in self._restated)
        return sorted(restated | {plain_value(end) for end in ends if end is not None})

    def _asserted(self, values: dict[str, Any], options: SubmitOptions) -> AnySubmission:
        author = {
            "asserted_by": plain_value(self.agent),
            "asserted_in": plain_value(self._session),
            "applies_to_project": self.project,
        }
        return _Correcting(Submission(self.project, values | author, options), self.agent)

    def _correction(self, change: str, item: Term, view: WriteSnapshot, by: str | None = None) -> Correction:
        kinds = map(vocab.type_of, view.types(item))
        summary = view.first(item, jido("summary"))
        return Correction(
            change, plain_value(item), next(filter(None, kinds), None), plain_value(summary) if summary else None, by
        )


class _Correcting(NamedTuple):
    """A correction of a rollback; it is refused if it would only be proposed."""

    submission: Submission
    agent: Term

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        try:
            decision = pipeline.run(self.submission, view, now, repairs=False)
        except IntentRefused as refusal:
            intent = self.submission.intent
            for old in intent.get("revives", ()) if isinstance(intent, Mapping) else ():
                hint = f"{old} cannot be restated: {refusal.hint}"
                raise IntentRefused(refusal.violations, hint=hint) from None
            raise
        if decision.receipt.status == "proposed":
            why = "; ".join(decision.receipt.warnings)
            raise PolicyDenied(
                f"{vocab.local_name(self.agent)} may not roll a memory back: {why}",
                hint="ask a curator, listed by: jidomem access policy show",
            )
        return decision


_ADDED = f"""SELECT DISTINCT ?item ?at WHERE {{ ?item {jido("recordedAt")} ?at ; {ITEM_MARK} {jido("Asserted")}
FILTER(?at > %s) }} ORDER BY ?at ?item"""
_ENDED = f"""SELECT DISTINCT ?item ?was WHERE {{ ?end {jido("recordedAt")} ?at ; {ITEM_MARK} {jido("Asserted")}
FILTER(?at > %s) ?item {jido("supersededBy")}|{jido("invalidatedBy")} ?end ; {jido("recordedAt")} ?was }}
ORDER BY ?was ?item"""


class Rollbacks(WritePart):
    """The rollbacks of a project: all corrections of one are in one commit, or nothing is."""

    def roll_back(self, project_id: str, to: object, *, reason: str, dry_run: bool = False) -> Rollback:
        """Return the rollback after which exactly the memories that were active at the moment *to* are active.

        Memories asserted since are withdrawn and memories ended since are restated, in one commit and in a recovery
        session; without a difference nothing is written. With *dry_run* all is judged and nothing written. Raises
        PolicyDenied unless the writer's agent is a curator or the project has none, InvalidRequest without a *reason*
        and for a future moment, and what `submit_intent` raises.
        """
        context = self._context
        moment, last = parse_moment(to), parse_moment(context.queues.refresh(project_id).recorded_at)
        if moment is None or moment > max(context.now(), last or moment.min.replace(tzinfo=UTC)):
            hint = "give a past moment such as 2026-11-20T12:00:00Z; earlier commits: jidomem journal log"
            raise InvalidRequest(f"{to!r} is not a moment in the past", hint=hint)
        if not reason or not reason.strip():
            raise InvalidRequest("a rollback is recorded with its reason", hint="give `reason`: why it goes back")
        pipeline = context.pipeline
        recovery = _Recovery(context.queues.follower, pipeline, project_id, moment, reason.strip(), context.agent_node)
        queue, receipts = context.queues.of(project_id), list[Receipt]()
        try:
            if dry_run:
                queue.dry_run(pipeline, recovery.submissions)
            else:
                receipts = queue.submit_planned(pipeline, recovery.submissions)
        except JidomemError as refusal:
            refusal.position = None  # the caller gave no list
            raise
        at = format_timestamp(moment)
        if receipts:
            return Rollback(at, tuple(recovery.corrections), receipts[0].iri, receipts[0].commit, receipts[0].version)
        planned = tuple(each if each.change == "lost" else replace(each, by=None) for each in recovery.corrections)
        return Rollback(at, planned, None, None, context.queues.refresh(project_id))


def _since(follower: IndexFollower, project: str, moment: datetime) -> tuple[list[Term], list[Term]]:
    """Return the memories asserted after *moment*, and those that they superseded or invalidated."""
    stream, then = Stream(project), date_time(format_timestamp(moment))
    follower.catch_up(stream)
    results = [follower.index.query(text % then, graphs=[stream.graph]) for text in (_ADDED, _ENDED)]
    added, ended = ([row[0] for row in rows.rows if row[0]] for rows in results if isinstance(rows, Solutions))
    return [*dict.fromkeys(added)], [*dict.fromkeys(ended)]
