"""Recovery: the memory of a project taken back to a moment, by corrections in a session of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from jidomem import vocab
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.index import Solutions
from jidomem.intent import Receipt
from jidomem.journal.files import Stream
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, date_time, iri
from jidomem.vocab import jido
from jidomem.write import triples
from jidomem.write.rollback import Rollback, Work
from jidomem.write.settlement import Settlements
from jidomem.write.view import ITEM_MARK, View

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
            return Rollback(stamp(moment), tuple(work.corrections), kept[0].iri, kept[0].commit, kept[0].version)
        planned = tuple(replace(found, by=None) for found in work.corrections)
        return Rollback(stamp(moment), planned, None, None, self.refresh(project_id))

    def _since(self, project_id: str, moment: datetime) -> tuple[list[Term], list[Term]]:
        """Return the memories asserted after *moment*, and those that such a one superseded or invalidated."""
        stream, then = Stream(project_id), date_time(stamp(moment))
        self._tail.catch_up(stream)
        found = [self._tail.index.query(text % then, graphs=[stream.graph]) for text in (_CAME, _ENDED)]
        came, ended = ([row[0] for row in rows.rows if row[0]] for rows in found if isinstance(rows, Solutions))
        return [*dict.fromkeys(came)], [*dict.fromkeys(ended)]


def _judged(work: Work, view: View, now: datetime) -> list[Receipt]:
    """Judge all of *work* and keep nothing."""
    for judge in work.judges(view):
        kept = judge(view, now).triples
        triples.read_back(kept)
        view.add(kept)
    return []
