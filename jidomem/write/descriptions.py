"""A description says something of a thing that is no memory: an agent, a file, a module, a proposed term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from jidomem.errors import IntentRefused, PolicyDenied, Violation
from jidomem.index.follower import IndexFollower
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, boolean, iri, literal, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.write.context import WriteContext
from jidomem.write.pipeline import Pipeline
from jidomem.write.policy_changes import PolicyChanges
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import UNCHANGED, AnySubmission, Decision, Proposal

#: The terms that only an answer to a proposed term uses.
_ANSWER_TERMS = frozenset(map(jido, ("answersProposal", "isAccepted", "answeredBy", "answerReason")))
_IS_ANSWER = vocab.TYPE, jido("TermAnswer")


@dataclass(frozen=True, slots=True)
class GraphRows:
    """The rows of a stream as the index has them now."""

    follower: IndexFollower
    stream: Stream

    def contain(self, row: Triple) -> bool:
        """Return whether *row* is in the graph of the stream."""
        return next(self.follower.index.triples(self.stream.graph, *row), None) is not None


@dataclass(slots=True)
class _Description:
    """Descriptions in the memory stream; `differing` are the subjects that were described otherwise before."""

    rows: Sequence[Triple]
    agent: Term
    differing: list[Term] = field(default_factory=list)

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        decision, self.differing = pipeline.declare(self.rows, view)
        return decision or UNCHANGED


@dataclass(frozen=True, slots=True)
class _NewDescription:
    """Descriptions of which none may differ from an earlier one of the same subject."""

    description: _Description
    stored: GraphRows

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        decision = self.description.decide(pipeline, view, now)
        for subject, predicate, value in self.description.rows:
            if view.types(subject) and not self.stored.contain((subject, predicate, value)):
                fact = f"{plain_value(predicate)} {value:.80}"
                message = f"{plain_value(subject)} is described here already, and without {fact}"
                raise IntentRefused([Violation("iri_exists", message, value=plain_value(subject))])
        return decision


@dataclass(frozen=True, slots=True)
class _AppendedRows:
    """Rows for a stream without memories."""

    rows: Sequence[Triple]
    agent: Term
    stored: GraphRows

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        return pipeline.append(self.rows, view, self.stored.contain)


@dataclass(frozen=True, slots=True)
class _Clearing:
    """The commit that empties a stream without memories."""

    agent: Term
    stored: GraphRows

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        graph = self.stored.stream.graph
        if next(self.stored.follower.index.triples(graph, None), None) is None:
            return UNCHANGED
        receipt = Receipt("", None, Version(), "asserted")
        return Decision(receipt, ((vocab.THIS, jido("clears"), iri(graph)),))


class Descriptions:
    """The writes of descriptions, and of the streams that have no memories."""

    def __init__(self, context: WriteContext, policy: PolicyChanges) -> None:
        self._context = context
        self._policy = policy

    def declare(self, project_id: str, rows: Sequence[Triple]) -> list[str]:
        """See `MemoryWriter.declare`."""
        description = _Description(rows, self._context.agent_node)
        self._context.submit(project_id, description)
        return [plain_value(node) for node in description.differing]

    def append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        """See `MemoryWriter.append`."""
        if any(predicate in _ANSWER_TERMS or (predicate, value) == _IS_ANSWER for _, predicate, value in rows):
            hint = "memory.term_proposals().accept(TERM) or .reject(TERM, reason=...), or: jidomem ontology accept TERM"
            raise PolicyDenied("a proposed term is answered by a curator, not by triples", hint=hint)
        return self._append(project_id, stream, rows)

    def answer_term(self, project_id: str, proposal: Term, *, accepted: bool, reason: str) -> Receipt:
        """See `MemoryWriter.answer_term`."""
        agent = self._context.agent_node
        graph, index = Stream(project_id, "system").graph, self._context.queues.follower.index
        by = next(index.triples(graph, proposal, jido("proposedBy")), None)
        if accepted or by is None or by[2] != agent:
            action = f"{'accept' if accepted else 'reject'} terms"
            self._policy.check_keeper(project_id, self._context.agent, action)
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
        """See `MemoryWriter.clear`."""
        submission = _Clearing(self._context.agent_node, self._stored(project_id, stream))
        (receipt,) = self._context.queues.of(project_id, stream).submit_atomic(self._context.pipeline, [submission])
        return receipt

    def keep_together(self, project_id: str, rows: Sequence[Triple], intents: Sequence[Proposal]) -> list[Receipt]:
        """See `MemoryWriter.keep_together`."""
        context = self._context
        submissions: list[AnySubmission] = []
        if rows:
            description = _Description(rows, context.agent_node)
            submissions.append(_NewDescription(description, self._stored(project_id, "memory")))
        submissions += [context.pipeline.submission(project_id, intent) for intent in intents]
        return context.queues.of(project_id).submit_atomic(context.pipeline, submissions)

    def _append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        self._context.queues.refresh(project_id)
        submission = _AppendedRows(rows, self._context.agent_node, self._stored(project_id, stream))
        return self._context.submit(project_id, submission, stream=stream)

    def _stored(self, project_id: str, stream: str) -> GraphRows:
        return GraphRows(self._context.queues.follower, Stream(project_id, stream))
