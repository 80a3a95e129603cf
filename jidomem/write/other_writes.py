"""Writes that are no intents: work sessions, changes of policy, and descriptions of things that are no memories.

Each is a submission with a method `decide`. A work session is opened once and changed by events; a change of policy
controls who may assert, propose or settle; a description is of an agent, a file, a module or a proposed term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from jidomem.base.clock import format_timestamp
from jidomem.base.containers import grouped
from jidomem.errors import IntentRefused, InvalidRequest, PolicyDenied, Violation
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, boolean, iri, literal, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.records.policy import KINDS, PolicyChange, validated
from jidomem.write import permissions, secrets, triples, validate
from jidomem.write.context import WritePart, project_node
from jidomem.write.normalize import check_size
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import Probe, WriteSnapshot
from jidomem.write.submission import UNCHANGED, AnySubmission, Decision, IntentInput


class SessionRows(NamedTuple):
    """Rows about a session, judged by the shapes alone."""

    session: Term
    rows: list[Triple]

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """Return the decision to append the rows; raises IntentRefused for a violation of a shape."""
        warnings = pipeline.screen_secrets(secrets.screen_rows(self.rows))
        warnings += validate.judge_shapes(self.rows, view, pipeline.schema)
        receipt = Receipt(plain_value(self.session), None, Version(), "asserted", {}, (), tuple(warnings))
        return pipeline.decision(receipt, self.rows, view)


class _Opening(NamedTuple):
    session: Term
    agent: Term
    project: Term
    continues: Term | None

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("session", self.agent, view)
        if unknown := [*validate.undeclared_agent("agent", plain_value(self.agent), view, pipeline.policy)]:
            raise IntentRefused(unknown)
        started_at = format_timestamp(now)
        opening = triples.session_opening(
            self.session, self.project, self.agent, started_at, continues=self.continues, view=view
        )
        rows = [*opening, *pipeline.stubs([self.agent], self.project, view)]
        return SessionRows(self.session, rows).decide(pipeline, view, now)


class _Event(NamedTuple):
    session: Term
    agent: Term
    project: Term
    status: str | None
    phase: str | None

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("session", self.agent, view)
        permissions.check_session_agent(self.session, self.agent, view, pipeline.policy, pipeline.speaker)
        rows = triples.session_event(
            self.session, self.agent, format_timestamp(now), status=self.status, phase=self.phase, view=view
        )
        rows = [*rows, *pipeline.stubs([self.agent], self.project, view)]
        return SessionRows(self.session, rows).decide(pipeline, view, now)


class WorkSessions(WritePart):
    """The work sessions of a project."""

    def start_session(
        self, project_id: str, name: str, *, agent: str | None = None, continues: str | None = None
    ) -> Receipt:
        """Return the receipt of a new work session.

        Raises IntentRefused `iri_exists` when the name is taken, and for an agent that a strict project does not
        declare; NotFound when there is no session *continues*.
        """
        node = self._context.pipeline.node
        session, author = node(name, "sessions"), node(agent or self._context.agent, "agents")
        before = node(continues, "sessions") if continues else None
        return self._context.submit(project_id, _Opening(session, author, project_node(project_id), before))

    def move_session(
        self,
        project_id: str,
        name: str,
        *,
        agent: str | None = None,
        status: str | None = None,
        phase: str | None = None,
    ) -> Receipt:
        """Return the receipt of an event that gives a session a status (such as paused) or a phase (such as review).

        Raises InvalidRequest where neither is given, NotFound for an unknown session, IntentRefused for an ended
        session and for an unknown status or phase, and PolicyDenied for a session of another agent, unless the
        writer's agent is a curator or the project has none and no tokens.
        """
        if status is None and phase is None:
            hint = "give `status` (such as paused) or `phase` (such as review)"
            raise InvalidRequest("a session moves to a status or to a phase", hint=hint)
        node = self._context.pipeline.node
        session, author = node(name, "sessions"), node(agent or self._context.agent, "agents")
        status = None if status is None else triples.status_of(status)
        phase = None if phase is None else triples.phase_of(phase)
        return self._context.submit(project_id, _Event(session, author, project_node(project_id), status, phase))


class _PolicySubmission(NamedTuple):
    """Changes of the policy of a project by an agent, each with the node that records it."""

    project: Term
    agent: Term
    changes: tuple[PolicyChange, ...]
    nodes: tuple[str, ...]

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """Return the rows of the changes; raises PolicyDenied unless the agent is an administrator."""
        rules = permissions.authority(view, pipeline.policy)
        after = replace(rules, changes=(*rules.changes, *self.changes))
        permissions.check_may_change(plain_value(self.agent), rules, after, pipeline.speaker)
        agents = [self.agent, *(iri(change.agent) for change in self.changes if change.agent)]
        rows = permissions.change_triples(self.project, zip(map(iri, self.nodes), self.changes, strict=True))
        rows += pipeline.stubs(agents, self.project, view)
        warnings = tuple(
            f"{change}, curators and administrators too: nobody can accept its proposals; to let curators: {command}"
            for change in self.changes
            if change.allows == "propose" and change.agent is None and change.role is None
            if (command := permissions.curator_grant_command(change, after))
        )
        warnings += tuple(triples.misspelt_agents(filter(None, (change.agent for change in self.changes)), view))
        warnings += tuple(pipeline.screen_secrets(secrets.screen_rows(rows)))
        return pipeline.decision(Receipt(self.nodes[0], None, Version(), "asserted", warnings=warnings), rows, view)


class PolicyChanges(WritePart):
    """The policy of a project: its changes, and questions of permission."""

    def change_policy(
        self, project_id: str, changes: Iterable[PolicyChange], *, reason: str | None = None, dry_run: bool = False
    ) -> Receipt:
        """Return the receipt of *changes* of the policy, recorded in one commit; its IRI is that of the first change.

        Raises InvalidRequest for no change, or two of the same rule, and PolicyDenied unless the writer's agent, or
        the agent of a token, is an administrator. While a project has no administrator, every agent may change the
        policy.
        """
        context = self._context
        agent = context.agent_node
        signed = tuple(self._signed(change, plain_value(agent), reason) for change in changes)
        if not signed or len({change.slot for change in signed}) < len(signed):
            raise InvalidRequest("a change of policy has at least one rule, and none twice", hint="give each rule once")
        nodes = tuple(f"{vocab.BASE}policies/{context.new_id()}" for _ in signed)
        submission = _PolicySubmission(project_node(project_id), agent, signed, nodes)
        if dry_run:
            return context.pipeline.run(submission, context.snapshot(project_id), context.now()).receipt
        return context.submit(project_id, submission)

    def check_curator(self, project_id: str, agent: str, what: str, *, of_policy: bool = False) -> None:
        """Raise PolicyDenied unless *agent* is a curator, with *of_policy* an administrator; *what* is the action.

        While a project names none, every agent with access to its files may do it.
        """
        context = self._context
        node, speaker = plain_value(context.pipeline.node(agent, "agents")), context.pipeline.speaker
        rules = context.authority(project_id)
        permissions.check_curates(what, node, rules, speaker)
        if of_policy:
            permissions.check_may_change(node, rules, rules, speaker)

    def is_curator(self, project_id: str, agent: str | None = None) -> bool:
        """Return whether *agent* (default: the writer's own) is a curator of the project."""
        with self._context.queues.of(project_id).reading() as view:
            return self._context.is_curator(view, agent or self._context.agent)

    def _signed(self, change: PolicyChange, by: str, reason: str | None) -> PolicyChange:
        """Return the valid *change*, with its author and reason; the agent that it concerns is an IRI."""
        agent = None if change.agent is None else plain_value(self._context.pipeline.node(change.agent, "agents"))
        schema = self._context.pipeline.rules.schema
        own = schema.own_kinds(change.kind) if change.kind and change.kind not in KINDS else []
        change = replace(change, kind=vocab.local_name(own[0])) if len(own) == 1 else change
        return replace(validated(change, [*map(vocab.local_name, own)]), agent=agent, by=by, reason=reason)


#: The terms that only an answer to a proposed term uses.
_ANSWER_TERMS = frozenset(map(jido, ("answersProposal", "isAccepted", "answeredBy", "answerReason")))
_IS_ANSWER = vocab.TYPE, jido("TermAnswer")


@dataclass(slots=True)
class _Description:
    """Descriptions in the memory stream; `differing` are the subjects with a different earlier description."""

    rows: Sequence[Triple]
    agent: Term
    differing: list[Term] = field(default_factory=list)

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        decision, self.differing = pipeline.declare(self.rows, view)
        return decision or UNCHANGED


class _NewDescription(NamedTuple):
    """Descriptions of which none may differ from an earlier description of the same subject."""

    description: _Description
    stored: Probe

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        decision = self.description.decide(pipeline, view, now)
        for subject, predicate, value in self.description.rows:
            if view.types(subject) and not any(True for _ in self.stored(subject, predicate, value)):
                fact = f"{plain_value(predicate)} {value:.80}"
                message = f"{plain_value(subject)} is described here already, and without {fact}"
                raise IntentRefused([Violation("iri_exists", message, value=plain_value(subject))])
        return decision


class _Judgement(NamedTuple):
    """A judgement of a pending proposal; of a settled one nothing is recorded."""

    item: Term
    text: str
    agent: Term

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        if not view.is_pending(self.item):
            return UNCHANGED
        row = (self.item, jido("judgement"), literal(self.text))
        check_size("judgement", self.text, pipeline.literal)
        warnings = pipeline.screen_secrets(secrets.screen_rows([row]))
        receipt = Receipt(plain_value(self.item), None, Version(), "proposed", warnings=tuple(warnings))
        return pipeline.decision(receipt, [row], view)


class _AppendedRows(NamedTuple):
    rows: Sequence[Triple]
    agent: Term
    stored: Probe

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        return pipeline.append(self.rows, view, lambda row: any(True for _ in self.stored(*row)))


class _Clearing(NamedTuple):
    agent: Term
    graph: str
    stored: Probe

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        if not any(True for _ in self.stored(None, None, None)):
            return UNCHANGED
        receipt = Receipt("", None, Version(), "asserted")
        return Decision(receipt, ((vocab.THIS, jido("clears"), iri(self.graph)),))


_NAMED_ITEM, _NAMED_PROPERTY, _REWRITTEN = map(jido, ("redactedItem", "redactedProperty", "redacts"))


class Descriptions(PolicyChanges):
    """The writes of descriptions, and of the streams that have no memories."""

    def declare(self, project_id: str, rows: Sequence[Triple]) -> list[str]:
        """Append descriptions of agents, sessions, modules, files and other things that are no memories.

        Returns the IRIs that already have a different description here; these stay as they are. Raises IntentRefused.
        """
        description = _Description(rows, self._context.agent_node)
        self._context.submit(project_id, description)
        return [plain_value(node) for node in description.differing]

    def add_judgement(self, project_id: str, item: str, text: str) -> Receipt:
        """Return the receipt of a *text* as a judgement of the pending proposal *item*, given by its IRI.

        It is shown to the curator who settles the proposal, and is no part of the accepted memory.

        A memory that is no pending proposal, any more, stays as it is (`deduplicated`). Raises IntentRefused for a
        text that looks like a secret or is too long, PolicyDenied for an agent that may not write.
        """
        return self._context.submit(project_id, _Judgement(iri(item), text, self._context.agent_node))

    def append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        """Return the receipt of *rows*, in one commit of a stream without memories: codebase, history or system.

        Rows that the stream has already are not appended again. Raises IntentRefused for memories, which are submitted
        as intents, and for rows that the ontology or a shape forbids; PolicyDenied for an answer to a proposed term.
        """
        if any(predicate in _ANSWER_TERMS or (predicate, value) == _IS_ANSWER for _, predicate, value in rows):
            hint = "memory.term_proposals().accept(TERM) or .reject(TERM, reason=...), or: jidomem ontology accept TERM"
            raise PolicyDenied("a proposed term is answered by a curator, not by triples", hint=hint)
        return self._append(project_id, stream, rows)

    def answer_term(self, project_id: str, proposal: Term, *, accepted: bool, reason: str) -> Receipt:
        """Return the receipt of the recorded answer to a proposed term; the ontology is not changed here.

        Raises PolicyDenied unless this agent is a curator, where the project has any, or withdraws its own proposal.
        """
        agent = self._context.agent_node
        graph, index = Stream(project_id, "system").graph, self._context.queues.follower.index
        by = next(index.triples(graph, proposal, jido("proposedBy")), None)
        if accepted or by is None or by[2] != agent:
            action = f"{'accept' if accepted else 'reject'} terms"
            self.check_curator(project_id, self._context.agent, action)
        node = iri(f"{vocab.BASE}term-answers/{vocab.local_name(proposal)}")
        rows = [
            (node, vocab.TYPE, jido("TermAnswer")),
            (node, jido("answersProposal"), proposal),
            (node, jido("isAccepted"), boolean(accepted)),
            (node, jido("answeredBy"), agent),
        ]
        if reason.strip():
            rows.append((node, jido("answerReason"), literal(reason.strip())))
        return self._append(project_id, "system", rows)

    def clear(self, project_id: str, stream: str) -> Receipt:
        """Return the receipt of a commit that empties a stream without memories; no commit if it is empty.

        Its earlier commits stay in the journal, and are no longer read.
        """
        graph = Stream(project_id, stream).graph
        submission = _Clearing(self._context.agent_node, graph, self.stored(project_id, stream))
        (receipt,) = self._context.queues.of(project_id, stream).submit_atomic(self._context.pipeline, [submission])
        return receipt

    def keep_together(self, project_id: str, rows: Sequence[Triple], intents: Sequence[IntentInput]) -> list[Receipt]:
        """Return the receipts of descriptions of things that are no memories, and of *intents*, in one commit or none.

        Raises IntentRefused for a subject that already has a different description here, and what `submit_intent`
        raises.
        """
        context = self._context
        submissions: list[AnySubmission] = []
        if rows:
            description = _Description(rows, context.agent_node)
            submissions.append(_NewDescription(description, self.stored(project_id, "memory")))
        submissions += [context.pipeline.submission(project_id, intent) for intent in intents]
        return context.queues.of(project_id).submit_atomic(context.pipeline, submissions)

    def _append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        self._context.queues.refresh(project_id)
        submission = _AppendedRows(rows, self._context.agent_node, self.stored(project_id, stream))
        return self._context.submit(project_id, submission, stream=stream)

    def redactions(self, project_id: str) -> tuple[frozenset[tuple[Term, Term]], frozenset[Term]]:
        """Return the nodes and properties that redactions of a project name, and the moments of commits they rewrote.

        What was recorded at such a moment, and is here no more, was removed whole: no redaction names it.
        """
        follower, rows = self._context.queues.follower, dict[Term, list[Triple]]()
        streams = [each for each in (Stream(project_id, name) for name in NAMES) if follower.journal.exists(each)]
        for stream in streams:
            follower.catch_up(stream)
            for name in (_NAMED_ITEM, _NAMED_PROPERTY, _REWRITTEN):
                rows[name] = [*rows.get(name, []), *follower.index.triples(stream.graph, None, name)]
        properties = grouped((record, name) for record, _, name in rows.get(_NAMED_PROPERTY, ()))
        pairs = {(item, name) for record, _, item in rows.get(_NAMED_ITEM, ()) for name in properties.get(record, ())}
        commits = {commit for _, _, commit in rows.get(_REWRITTEN, ())}
        times = (follower.index.triples(each.graph, one, jido("recordedAt")) for each in streams for one in commits)
        return frozenset(pairs), frozenset(moment for of_one in times for _, _, moment in of_one)

    def stored(self, project_id: str, stream: str) -> Probe:
        """Return a look-up of the rows of a stream in the index."""
        return partial(self._context.queues.follower.index.triples, Stream(project_id, stream).graph)
