"""Correction without deletion: a memory is replaced, withdrawn, confirmed or brought back by a further one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

from jidomem import vocab
from jidomem.anchor import ANCHOR, anchors_of
from jidomem.errors import Conflict, InvalidRequest, JidomemError, PolicyDenied
from jidomem.intent import MemoryUpdateIntent, Receipt
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, bare, iri
from jidomem.vocab import jido
from jidomem.write import conflict, permission
from jidomem.write.line import JudgeFn
from jidomem.write.policing import Policing
from jidomem.write.restate import restated_in
from jidomem.write.stages import Judged
from jidomem.write.view import View

_SHOWN = 10_000  # characters of a summary that a marker of its withdrawal repeats
#: What a memory says of its own place among others, which another one in its place says anew.
OWN = ("iri", "supersedes", "invalidates", "revives", "coexists_with", "reason")
_TEXTS = ("summary", "detailed_explanation")
#: Who says one of these anew has looked at the files that the memory is about.
_LOOKED_AT = frozenset((*_TEXTS, "rationale", "about"))
_VERIFIED = vocab.JIDO + "verified"
ACCEPTED = "accepted in review"  # why a proposal that is confirmed takes a place
_HELD_BACK = "proposed, not asserted: "  # how the warning begins that says why it only waits
_ENDS = {"supersededBy": "supersedes", "invalidatedBy": "invalidates"}


class Corrections(Policing):
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
        under: conflict.Under | None = None,
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

    def _withdrawal(self, project_id: str, view: View, item: str, reason: str) -> dict[str, Any]:
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
        self, project_id: str, view: View, item: str, reason: str | None, fields: Mapping[str, Any]
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

    def _permission(self, view: View, item: str) -> permission.Permission:
        """Return what may become of a memory by the writer's agent in the place of *item*; raises PolicyDenied."""
        said = restated_in(view, item)
        proposal = MemoryUpdateIntent(
            type=said["type"],
            asserted_by=bare(self._node(self.agent, "agents")),
            about=said.get("about", []),
            convention_scope=said.get("convention_scope"),
            supersedes=[item],
        )
        return permission.permitted(proposal, view, self._stages.policy, self._stages.speaker)

    def _must_be_asserted(self, project_id: str, receipt: Receipt) -> None:
        """Raise Conflict or PolicyDenied, which names who may, for what would only be proposed."""
        if receipt.status != "proposed":
            return
        if receipt.conflicts:
            raise Conflict(receipt.conflicts)
        held_back = [said.removeprefix(_HELD_BACK) for said in receipt.warnings if said.startswith(_HELD_BACK)]
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
        values = self._carried(view, bare(old), fields) | {"revives": [bare(old)], "supersedes": ends, "reason": reason}
        kept = None if _LOOKED_AT & fields.keys() else self._blobs_of(project_id, old)
        return self.submit_intent(project_id, values | fields, dry_run=dry_run, blobs=kept)

    def _pending_again(
        self, project_id: str, proposal: Term, view: View, reason: str | None, fields: Mapping[str, Any]
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
                    again[bare(old)] = f"{vocab.BASE}memory/{self._sources.new_id()}"
                    values = self._carried(view, bare(old), {}) | {"iri": again[bare(old)], "reason": reason}
                    intents.append(values | {"revives": [bare(old)], "supersedes": [bare(accepted)]})
            if len(again) > 1:
                raise InvalidRequest(
                    f"{bare(accepted)} took the place of several", hint=f"undo them one by one: {', '.join(again)}"
                )
            if not again:
                why = reason or f"its acceptance was undone: {bare(proposal)}"
                intents.append(self._withdrawal(project_id, view, bare(accepted), why))
        elif accepted is not None and (newer := conflict.end_of_chain(accepted, view)) is not None:
            raise InvalidRequest(
                f"{bare(proposal)} was accepted as {bare(accepted)}, which {bare(newer)} replaced",
                hint=f'undo that first: jidomem revise {bare(newer)} --undo --reason "..."',
            )
        said = restated_in(view, bare(proposal))
        values = {**self._carried(view, bare(proposal), fields), "revives": [bare(proposal)], "reason": reason}
        values |= {name: [again.get(each, each) for each in said[name]] for name in _ENDS.values() if name in said}
        return [
            *(self._asserting(project_id, intent) for intent in intents),
            self._judge(project_id, {**values, **fields}, propose=True),
        ]

    def _asserting(self, project_id: str, values: Mapping[str, Any]) -> JudgeFn:
        """Return what judges an intent and raises where it would only be proposed."""
        judge = self._judge(project_id, values)

        def judged(view: View, now: datetime) -> Judged:
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

    def _carried(self, view: View, item: str, changes: Mapping[str, Any]) -> dict[str, Any]:
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


def blobs_in(view: View, item: Term) -> dict[str, str]:
    """Return the blob ids that *item* keeps of the files it is about, by path."""
    return dict(anchors_of(view.objects(item, ANCHOR)))


def _is_proposed(item: Term, view: View) -> bool:
    return view.first(item, jido("hasAssertionStatus")) == jido("Proposed")


def _beside(item: Term, view: View) -> list[str]:
    """Return the memories in force that *item* coexists with, whichever of the two said so."""
    named_by = [other for other in view.subjects(jido("coexistsWith"), item) if view.in_force(other)]
    return sorted({bare(other) for other in (*conflict.coexisting(item, view), *named_by)})


def _without_verified(values: Mapping[str, Any]) -> list[Any]:
    return [triple for triple in values.get("extra_triples", []) if triple[0] != _VERIFIED]


def _next_review(old: Mapping[str, Any], view: View, now: datetime) -> str:
    """Return when to look again: as long from now as it was from the last look at the memory to its review.

    The first look was at the memory's own time; one that carries on the time of another was looked at when recorded.
    """
    said, due = parse_moment(old.get("timestamp")), parse_moment(old["expires_on"])
    before = [*old.get("supersedes", ()), *old.get("revives", ())]
    times = {parse_moment(bare(time)) for each in before for time in view.objects(iri(each), jido("hasTimestamp"))}
    if said in times:
        recorded = view.first(iri(old["iri"]), jido("recordedAt"))
        said = (parse_moment(bare(recorded)) if recorded else None) or said
    span = due - said if said and due else timedelta()
    if span <= timedelta():
        raise InvalidRequest(
            f"it was to be looked at again by {old['expires_on']}, before it was said",
            hint="give `expires_on`: when to look at it next",
        )
    return stamp(now + span)


def _settled_proposal(item: Term, view: View) -> Term | None:
    """Return the proposal whose settlement is undone where *item* is: itself, or what *item* accepted or rejected."""
    if view.has_ended(item):
        return item if _is_proposed(item, view) else None
    accepted = sorted(old for old in view.objects(item, jido("supersedes")) if _is_proposed(old, view))
    rejected = view.objects(item, jido("invalidates"))
    if not accepted and len(rejected) == 1 and _is_proposed(rejected[0], view):
        accepted = rejected
    return accepted[0] if accepted and view.in_force(item) else None


def _undone(item: Term, view: View) -> tuple[Term, list[str]]:
    """Return what to say again where *item* is undone, and what the new memory supersedes."""
    if any(view.objects(item, jido(link)) for link in _ENDS):
        return item, _in_its_place(item, view)
    said_over = sorted(old for link in _ENDS.values() for old in view.objects(item, jido(link)))
    if view.in_force(item) and len(said_over) == 1:
        return said_over[0], [bare(item)]
    if view.in_force(item) and said_over:
        hint = f"undo them one by one: {', '.join(map(bare, said_over))}"
        raise InvalidRequest(f"{bare(item)} took the place of several", hint=hint)
    raise InvalidRequest(
        f"{bare(item)} has not ended, and ended nothing: there is nothing to undo",
        hint="to withdraw it: `invalidate`, and say why in `reason`",
    )


def _in_its_place(old: Term, view: View) -> list[str]:
    """Return what is in force in the place of *old*: the end of its chain, unless it was brought back to it."""
    chain = _successors(old, view)
    for at, link in enumerate(chain):
        revived = view.objects(link, jido("revives"))
        if old in revived and view.in_force(link):
            hint = "to replace it: supersede that one"
            raise InvalidRequest(f"{bare(old)} is in force again, as {bare(link)}", hint=hint)
        undone = {ended for earlier in chain[:at] for ended in view.objects(earlier, jido("supersedes"))}
        if undone.intersection(revived) - {old}:
            return []  # what replaced it together with others was undone for one of them
    markers = [end for end in view.objects(old, jido("invalidatedBy")) if _withdrew_only(old, end, view)]
    return [bare(end) for end in (*chain[-1:], *markers) if view.in_force(end)]


def _withdrew_only(old: Term, end: Term, view: View) -> bool:
    """Return whether *end* is a marker of the withdrawal of *old*, and of nothing else, as that of a rollback is."""
    return jido("DeletedMarker") in view.types(end) and view.objects(end, jido("invalidates")) == [old]


def _successors(item: Term, view: View) -> list[Term]:
    chain: list[Term] = []
    while (after := view.first(item, jido("supersededBy"))) is not None and after not in chain:
        chain.append(after)
        item = after
    return chain
