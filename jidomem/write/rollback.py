"""What a rollback consists of: the corrections that take a memory back, in the order they are kept.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from jidomem import vocab
from jidomem.errors import IntentRefused, PolicyDenied
from jidomem.intent import Receipt
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, Triple, bare, date_time, iri, literal
from jidomem.version import Version
from jidomem.vocab import jido
from jidomem.write import permission, session, triples
from jidomem.write.conflict import end_of_chain
from jidomem.write.correction import OWN, blobs_in
from jidomem.write.difference import Difference, difference
from jidomem.write.line import JudgeFn
from jidomem.write.references import KnownMemories
from jidomem.write.restate import restated_in
from jidomem.write.stages import Judged, Manner, Stages
from jidomem.write.view import ITEM_MARK, View

_ENDED_BY = (jido("supersededBy"), jido("invalidatedBy"))


@dataclass(frozen=True, slots=True)
class Correction:
    """What becomes of one memory: `withdrawn` or `restated`, and `by` what; or `lost`, where nothing is left to say."""

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
    """What a rollback did: the moment `to` which it went, its corrections, and the session and commit they are in.

    Session and commit are None for a dry run, and where there was nothing to correct.
    """

    to: str
    corrections: tuple[Correction, ...]
    session: str | None
    commit: str | None
    version: Version

    def to_dict(self) -> dict[str, Any]:
        """Return the rollback as plain JSON values."""
        corrections = [found.to_dict() for found in self.corrections]
        said = {"to": self.to, "session": self.session, "commit": self.commit, "version": str(self.version)}
        return {**said, "corrections": corrections}


@dataclass(slots=True)
class Work:
    """One rollback of *project* to *moment* by the agent *who*, while it is judged.

    *since* gives the memories that were recorded after a moment, and those that something recorded after it ended;
    *declared* the stubs of the agent and the project where they are named for the first time.
    """

    stages: Stages
    project: str
    moment: datetime
    reason: str
    who: Term
    since: Callable[[datetime], tuple[list[Term], list[Term]]]
    declared: Callable[[View], list[Triple]]
    corrections: list[Correction] = field(default_factory=list)
    _session: Term = ""
    _again: dict[Term, str] = field(default_factory=dict)

    def judges(self, view: View) -> Iterator[JudgeFn]:
        """Yield what judges each correction, in the order they are kept in; nothing where there is none to make."""
        rules = permission.authority(view, self.stages.policy)
        permission.check_curates("roll a memory back", bare(self.who), rules, self.stages.speaker)
        due = self._due(view)
        self.corrections = [self._told("lost", old, view) for old in due.lost]
        self._again = {}
        if not due.withdrawn and not due.again:
            return
        self._session = iri(f"{vocab.BASE}sessions/recovery-{self.stages.new_id()}")
        yield self._open
        if due.withdrawn:
            yield partial(self._withdraw, due.withdrawn)
        for old in due.again:
            yield partial(self._say_again, old)
        yield self._close

    def _due(self, view: View) -> Difference:
        came, ended = self.since(self.moment)
        came = [item for item in came if view.in_force(item) and jido("DeletedMarker") not in view.types(item)]
        gone = [item for item in ended if self._was_in_force(item, view)]
        return difference(came, gone, view, lambda item: restated_in(view, bare(item)))

    def _was_in_force(self, item: Term, view: View) -> bool:
        """Return whether *item*, which has ended since, was in force at the moment; a marker holds nothing."""
        if jido("Asserted") not in view.objects(item, ITEM_MARK) or jido("DeletedMarker") in view.types(item):
            return False
        ends = [end for link in _ENDED_BY for end in view.objects(item, link)]
        return self._by_then(item, view) and not any(self._by_then(end, view) for end in ends)

    def _by_then(self, item: Term, view: View) -> bool:
        recorded = (parse_moment(bare(value)) for value in view.objects(item, jido("recordedAt")))
        return any(moment is not None and moment <= self.moment for moment in recorded)

    def _open(self, view: View, now: datetime) -> Judged:
        project = iri(f"{vocab.BASE}projects/{self.project}")
        permission.check_besides("session", bare(self.who), view, self.stages.policy, self.stages.speaker)
        opening = triples.session_stub(self._session, project, self.who, stamp(now), kind="RecoverySession")
        opening.append((self._session, jido("restoresMoment"), date_time(stamp(self.moment))))
        opening.append((self._session, jido("recoveryReason"), literal(self.reason)))
        return self._of_session([*opening, *self.declared(view)], view)

    def _close(self, view: View, now: datetime) -> Judged:
        return self._of_session(session.moved(self._session, self.who, stamp(now), status="Closed", view=view), view)

    def _of_session(self, kept: list[Triple], view: View) -> Judged:
        warnings = self.stages.judge_shapes(kept, view)
        receipt = Receipt(bare(self._session), None, Version(), "asserted", {}, (), tuple(warnings))
        return self.stages.judged(receipt, kept, view)

    def _withdraw(self, items: tuple[Term, ...], view: View, now: datetime) -> Judged:
        """Return the one marker that withdraws all that came since."""
        marker = f"{vocab.BASE}memory/{self.stages.new_id()}"
        told = [self._told("withdrawn", item, view, by=marker) for item in items]
        values = {
            "type": "deleted_marker",
            "iri": marker,
            "summary": f"Rolled back to {stamp(self.moment)}: {len(items)} withdrawn",
            "rationale": self.reason,
            "confidence": "high",
            "invalidates": [*map(bare, items)],
        }
        judged = self._asserted(values, Manner(), view, now)
        self.corrections += told
        return judged

    def _say_again(self, old: Term, view: View, now: datetime) -> Judged:
        """Return a memory that says what *old* said, and revives it."""
        said = {name: value for name, value in restated_in(view, bare(old)).items() if name not in OWN}
        new = f"{vocab.BASE}memory/{self.stages.new_id()}"
        beside = {"coexists_with": self._beside(old, view)}
        told = {"iri": new, "revives": [bare(old)], "reason": self.reason}
        judged = self._asserted({**said, **beside, **told}, Manner(blobs_in(view, old), as_it_was=True), view, now)
        self.corrections.append(self._told("restated", old, view, by=new))
        self._again[old] = new
        return judged

    def _beside(self, old: Term, view: View) -> list[str]:
        """Return what *old* stood beside, whichever of the two said so, as it is in force now."""
        named = [*view.objects(old, jido("coexistsWith")), *view.subjects(jido("coexistsWith"), old)]
        said_again = {self._again[other] for other in named if other in self._again}
        ends = (end_of_chain(other, view) for other in named if other not in self._again)
        return sorted(said_again | {bare(end) for end in ends if end is not None})

    def _asserted(self, values: dict[str, Any], manner: Manner, view: View, now: datetime) -> Judged:
        """Return what is to be kept of a correction; raises PolicyDenied where it would only be proposed."""
        who = {"asserted_by": bare(self.who), "asserted_in": bare(self._session), "applies_to_project": self.project}
        try:
            judged = self.stages.run(self.project, values | who, view, now, KnownMemories(), manner)
        except IntentRefused as refusal:
            for old in values.get("revives", ()):
                hint = f"{old} cannot be said again as it was: {refusal.hint}"
                raise IntentRefused(refusal.violations, hint=hint) from None
            raise
        if judged.receipt.status == "proposed":
            why = "; ".join(judged.receipt.warnings)
            raise PolicyDenied(
                f"{vocab.local_name(self.who)} may not roll a memory back: {why}",
                hint="ask a curator; who is one says: jidomem policy show",
            )
        return judged

    def _told(self, change: str, item: Term, view: View, by: str | None = None) -> Correction:
        kinds = map(vocab.type_of, view.types(item))
        summary = view.first(item, jido("summary"))
        return Correction(change, bare(item), next(filter(None, kinds), None), bare(summary) if summary else None, by)
