"""A work session of an agent is opened once and moved by events; these are the submissions that do so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jidomem.base.clock import format_timestamp
from jidomem.errors import IntentRefused, InvalidRequest
from jidomem.rdf.terms import Term, Triple, plain_value
from jidomem.records.intent import Receipt, Version
from jidomem.write import permissions, triples, validate
from jidomem.write.context import WriteContext, project_node
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import Decision


@dataclass(frozen=True, slots=True)
class SessionRows:
    """Rows about a session, judged by the shapes alone."""

    session: Term
    rows: list[Triple]

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """Return the decision to append the rows; raises IntentRefused for a violation of a shape."""
        warnings = pipeline.check_shapes(self.rows, view)
        receipt = Receipt(plain_value(self.session), None, Version(), "asserted", {}, (), tuple(warnings))
        return pipeline.decision(receipt, self.rows, view)


@dataclass(frozen=True, slots=True)
class _Opening:
    """The opening of a session by an agent, which may continue an earlier session."""

    session: Term
    agent: Term
    project: Term
    continues: Term | None

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("session", self.agent, view)
        if unknown := [*validate.undeclared_agent("agent", plain_value(self.agent), view, pipeline.policy)]:
            raise IntentRefused(unknown)
        started_at = format_timestamp(now)
        rows = triples.opened(self.session, self.project, self.agent, started_at, continues=self.continues, view=view)
        rows = [*rows, *pipeline.stubs(self.agent, self.project, view)]
        return SessionRows(self.session, rows).decide(pipeline, view, now)


@dataclass(frozen=True, slots=True)
class _Event:
    """An event by which an agent gives a session another status or phase."""

    session: Term
    agent: Term
    project: Term
    status: str | None
    phase: str | None

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("session", self.agent, view)
        permissions.check_moves(self.session, self.agent, view, pipeline.policy, pipeline.speaker)
        rows = triples.moved(
            self.session, self.agent, format_timestamp(now), status=self.status, phase=self.phase, view=view
        )
        rows = [*rows, *pipeline.stubs(self.agent, self.project, view)]
        return SessionRows(self.session, rows).decide(pipeline, view, now)


class WorkSessions:
    """The work sessions of a project at the writer."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def start(self, project_id: str, name: str, *, agent: str | None, continues: str | None) -> Receipt:
        """See `MemoryWriter.start_session`."""
        node = self._context.pipeline.node
        session, author = node(name, "sessions"), node(agent or self._context.agent, "agents")
        before = node(continues, "sessions") if continues else None
        return self._context.submit(project_id, _Opening(session, author, project_node(project_id), before))

    def move(self, project_id: str, name: str, *, agent: str | None, status: str | None, phase: str | None) -> Receipt:
        """See `MemoryWriter.move_session`."""
        if status is None and phase is None:
            hint = "give `status` (such as paused) or `phase` (such as review)"
            raise InvalidRequest("a session moves to a status or to a phase", hint=hint)
        node = self._context.pipeline.node
        session, author = node(name, "sessions"), node(agent or self._context.agent, "agents")
        status = None if status is None else triples.status_of(status)
        phase = None if phase is None else triples.phase_of(phase)
        return self._context.submit(project_id, _Event(session, author, project_node(project_id), status, phase))
