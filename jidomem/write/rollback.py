"""What a rollback consists of: the corrections that take a memory back, in the order they are kept.  Pure.

What is to be withdrawn and what to be said again, so that what was in force at a moment is so once more.  Pure.

Recovery: the memory of a project taken back to a moment, by corrections in a session of their own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, PolicyDenied
from jidomem.index import Solutions
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import XSD, Term, Triple, date_time, iri, literal, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.write import permissions, triples
from jidomem.write.conflict import end_of_chain
from jidomem.write.corrections import OWN, Settlements, blobs_in
from jidomem.write.group_commit import JudgeFn
from jidomem.write.normalize import MOMENTS, KnownMemories
from jidomem.write.pipeline import Decision, Stages, SubmitOptions
from jidomem.write.snapshot import ITEM_MARK, WriteSnapshot
from jidomem.write.triples import restated_in

#: What an intent says that is not what the memory holds: who said it, where, when, why, and in whose place.
_IGNORED_FIELDS = frozenset(
    ("iri", "timestamp", "supersedes", "invalidates", "revives", "coexists_with", "reason", "asserted_by")
) | {"asserted_in"}

Restated = Callable[[Term], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Memories to be withdrawn, and memories that ended and are to be said again; `lost` are those that cannot be."""

    withdrawn: tuple[Term, ...] = ()
    again: tuple[Term, ...] = ()
    lost: tuple[Term, ...] = ()


def rollback_diff(came: Iterable[Term], gone: Iterable[Term], view: WriteSnapshot, restated: Restated) -> Difference:
    """Return what takes a memory back, where *came* is in force and was not then, and *gone* was and is not.

    What came and holds the same as what is gone stands for it, so that nothing is corrected twice. An alternative goes
    and comes with its decision. *restated* gives the intent that would say a memory again; one whose summary was
    redacted has nothing left to say.
    """
    came, gone = list(came), list(gone)
    ended, missing = set(gone), defaultdict[str, list[Term]](list)
    for old in gone:
        if _decision_of(old, view) not in ended:
            missing[_content_key(restated(old))].append(old)
    stands: set[Term] = set()
    for new in came:
        if _decision_of(new, view) is None and (same := missing[_content_key(restated(new))]):
            same.pop(0)
            stands.add(new)
    withdrawn = [new for new in came if not {new, _decision_of(new, view)} & stands]
    left = {old for same in missing.values() for old in same}
    again = [old for old in gone if old in left]
    lost = [old for old in again if not view.objects(old, jido("summary"))]
    return Difference(tuple(withdrawn), tuple(old for old in again if old not in lost), tuple(lost))


def _content_key(intent: Mapping[str, Any]) -> str:
    """Return what a memory holds, as a text that is equal for two that hold the same.

    An index may write a moment or a number in another way than it was given.
    """
    held = {name: value for name, value in intent.items() if name not in _IGNORED_FIELDS}
    held |= {name: str(parse_moment(held[name]) or held[name]) for name in MOMENTS if name in held}
    if "extra_triples" in held:
        held["extra_triples"] = sorted(map(_comparable, held["extra_triples"]), key=repr)
    return json.dumps(held, sort_keys=True)


def _comparable(extra: Sequence[Any]) -> list[Any]:
    """Return an extra triple with its literal as the value it stands for."""
    *said, value = extra
    if not isinstance(value, Mapping) or "@value" not in value or "@language" in value:
        return [*extra]
    datatype = value.get("@type", XSD + "string")
    return [*said, datatype, str(to_value(literal(value["@value"], datatype)))]


def _decision_of(item: Term, view: WriteSnapshot) -> Term | None:
    """Return the decision that brought an alternative along; None for any other memory."""
    decision, mark, _ = plain_value(item).rpartition("/alternatives/")
    found = iri(decision) if mark else None
    return found if found is not None and item in view.objects(found, jido("hasAlternative")) else None


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
    declared: Callable[[WriteSnapshot], list[Triple]]
    corrections: list[Correction] = field(default_factory=list)
    _session: Term = ""
    _again: dict[Term, str] = field(default_factory=dict)

    def judges(self, view: WriteSnapshot) -> Iterator[JudgeFn]:
        """Yield what judges each correction, in the order they are kept in; nothing where there is none to make."""
        rules = permissions.authority(view, self.stages.policy)
        permissions.check_curates("roll a memory back", plain_value(self.who), rules, self.stages.speaker)
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

    def _due(self, view: WriteSnapshot) -> Difference:
        came, ended = self.since(self.moment)
        came = [item for item in came if view.in_force(item) and jido("DeletedMarker") not in view.types(item)]
        gone = [item for item in ended if self._was_in_force(item, view)]
        return rollback_diff(came, gone, view, lambda item: restated_in(view, plain_value(item)))

    def _was_in_force(self, item: Term, view: WriteSnapshot) -> bool:
        """Return whether *item*, which has ended since, was in force at the moment; a marker holds nothing."""
        if jido("Asserted") not in view.objects(item, ITEM_MARK) or jido("DeletedMarker") in view.types(item):
            return False
        ends = [end for link in _ENDED_BY for end in view.objects(item, link)]
        return self._by_then(item, view) and not any(self._by_then(end, view) for end in ends)

    def _by_then(self, item: Term, view: WriteSnapshot) -> bool:
        recorded = (parse_moment(plain_value(value)) for value in view.objects(item, jido("recordedAt")))
        return any(moment is not None and moment <= self.moment for moment in recorded)

    def _open(self, view: WriteSnapshot, now: datetime) -> Decision:
        project = iri(f"{vocab.BASE}projects/{self.project}")
        permissions.check_other_write("session", plain_value(self.who), view, self.stages.policy, self.stages.speaker)
        opening = triples.session_stub(self._session, project, self.who, format_timestamp(now), kind="RecoverySession")
        opening.append((self._session, jido("restoresMoment"), date_time(format_timestamp(self.moment))))
        opening.append((self._session, jido("recoveryReason"), literal(self.reason)))
        return self._of_session([*opening, *self.declared(view)], view)

    def _close(self, view: WriteSnapshot, now: datetime) -> Decision:
        return self._of_session(
            triples.moved(self._session, self.who, format_timestamp(now), status="Closed", view=view), view
        )

    def _of_session(self, kept: list[Triple], view: WriteSnapshot) -> Decision:
        warnings = self.stages.judge_shapes(kept, view)
        receipt = Receipt(plain_value(self._session), None, Version(), "asserted", {}, (), tuple(warnings))
        return self.stages.judged(receipt, kept, view)

    def _withdraw(self, items: tuple[Term, ...], view: WriteSnapshot, now: datetime) -> Decision:
        """Return the one marker that withdraws all that came since."""
        marker = f"{vocab.BASE}memory/{self.stages.new_id()}"
        told = [self._told("withdrawn", item, view, by=marker) for item in items]
        values = {
            "type": "deleted_marker",
            "iri": marker,
            "summary": f"Rolled back to {format_timestamp(self.moment)}: {len(items)} withdrawn",
            "rationale": self.reason,
            "confidence": "high",
            "invalidates": [*map(plain_value, items)],
        }
        judged = self._asserted(values, SubmitOptions(), view, now)
        self.corrections += told
        return judged

    def _say_again(self, old: Term, view: WriteSnapshot, now: datetime) -> Decision:
        """Return a memory that says what *old* said, and revives it."""
        said = {name: value for name, value in restated_in(view, plain_value(old)).items() if name not in OWN}
        new = f"{vocab.BASE}memory/{self.stages.new_id()}"
        beside = {"coexists_with": self._beside(old, view)}
        told = {"iri": new, "revives": [plain_value(old)], "reason": self.reason}
        judged = self._asserted(
            {**said, **beside, **told}, SubmitOptions(blobs_in(view, old), as_it_was=True), view, now
        )
        self.corrections.append(self._told("restated", old, view, by=new))
        self._again[old] = new
        return judged

    def _beside(self, old: Term, view: WriteSnapshot) -> list[str]:
        """Return what *old* stood beside, whichever of the two said so, as it is in force now."""
        named = [*view.objects(old, jido("coexistsWith")), *view.subjects(jido("coexistsWith"), old)]
        said_again = {self._again[other] for other in named if other in self._again}
        ends = (end_of_chain(other, view) for other in named if other not in self._again)
        return sorted(said_again | {plain_value(end) for end in ends if end is not None})

    def _asserted(self, values: dict[str, Any], manner: SubmitOptions, view: WriteSnapshot, now: datetime) -> Decision:
        """Return what is to be kept of a correction; raises PolicyDenied where it would only be proposed."""
        who = {
            "asserted_by": plain_value(self.who),
            "asserted_in": plain_value(self._session),
            "applies_to_project": self.project,
        }
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

    def _told(self, change: str, item: Term, view: WriteSnapshot, by: str | None = None) -> Correction:
        kinds = map(vocab.type_of, view.types(item))
        summary = view.first(item, jido("summary"))
        return Correction(
            change, plain_value(item), next(filter(None, kinds), None), plain_value(summary) if summary else None, by
        )


_CAME = f"""SELECT DISTINCT ?item ?at WHERE {{ ?item {jido("recordedAt")} ?at ; {ITEM_MARK} {jido("Asserted")}
FILTER(?at > %s) }} ORDER BY ?at ?item"""
_ENDED = f"""SELECT DISTINCT ?item ?was WHERE {{ ?end {jido("recordedAt")} ?at ; {ITEM_MARK} {jido("Asserted")}
FILTER(?at > %s) ?item {jido("supersededBy")}|{jido("invalidatedBy")} ?end ; {jido("recordedAt")} ?was }}
ORDER BY ?was ?item"""


class Recovery(Settlements):
    """Rollback at the writer: nothing is removed, and all corrections are in one commit or none is."""

    def roll_back(self, project_id: str, to: object, *, reason: str, dry_run: bool = False) -> Rollback:
        """Return what was done so that what was in force at the moment *to* is in force, and nothing else.

        What came since is withdrawn, what ended since is said again, in one commit and in a recovery session of its
        own; where all is as it was, nothing is written. With *dry_run* all is judged and nothing kept. Raises
        PolicyDenied unless the writer's agent is a curator or the project has none, InvalidRequest without a *reason*
        and for a moment that has not been, and what `submit_intent` raises.
        """
        moment, last = parse_moment(to), parse_moment(self.refresh(project_id).recorded_at)
        if moment is None or moment > max(self._now(), last or moment.min.replace(tzinfo=UTC)):
            hint = "give a past moment such as 2026-11-20T12:00:00Z; what there was, says: jidomem log"
            raise InvalidRequest(f"{to!r} is no moment that has been", hint=hint)
        if not reason or not reason.strip():
            raise InvalidRequest("a rollback is recorded with its reason", hint="give `reason`: why it goes back")
        who, project = self._node(self.agent, "agents"), iri(f"{vocab.BASE}projects/{project_id}")
        work = Work(
            self._stages,
            project_id,
            moment,
            reason.strip(),
            who,
            lambda moment: self._since(project_id, moment),
            lambda view: self._declared(who, project, view),
        )
        line = self._line(project_id)
        try:
            kept = _judged(work, line.load(), self._now()) if dry_run else line.submit_planned(work.judges)
        except JidomemError as refusal:
            refusal.position = None  # no position in anything that was given
            raise
        if kept:
            return Rollback(
                format_timestamp(moment), tuple(work.corrections), kept[0].iri, kept[0].commit, kept[0].version
            )
        planned = tuple(replace(found, by=None) for found in work.corrections)
        return Rollback(format_timestamp(moment), planned, None, None, self.refresh(project_id))

    def _since(self, project_id: str, moment: datetime) -> tuple[list[Term], list[Term]]:
        """Return the memories asserted after *moment*, and those that such a one superseded or invalidated."""
        stream, then = Stream(project_id), date_time(format_timestamp(moment))
        self._tail.catch_up(stream)
        found = [self._tail.index.query(text % then, graphs=[stream.graph]) for text in (_CAME, _ENDED)]
        came, ended = ([row[0] for row in rows.rows if row[0]] for rows in found if isinstance(rows, Solutions))
        return [*dict.fromkeys(came)], [*dict.fromkeys(ended)]


def _judged(work: Work, view: WriteSnapshot, now: datetime) -> list[Receipt]:
    """Judge all of *work* and keep nothing."""
    for judge in work.judges(view):
        kept = judge(view, now).triples
        triples.read_back(kept)
        view.add(kept)
    return []
