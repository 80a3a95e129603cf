"""A policy change says who may assert, propose or settle in a project; the journal holds each one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from jidomem.errors import InvalidRequest
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.records.intent import Receipt, Version
from jidomem.records.policy import PolicyChange, checked
from jidomem.write import permissions
from jidomem.write.context import WriteContext, project_node
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import Decision


@dataclass(frozen=True, slots=True)
class _PolicySubmission:
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
        agents = dict.fromkeys([self.agent, *(iri(change.agent) for change in self.changes if change.agent)])
        rows = permissions.change_triples(self.project, zip(map(iri, self.nodes), self.changes, strict=True))
        rows += [row for agent in agents for row in pipeline.stubs(agent, self.project, view)]
        return pipeline.decision(Receipt(self.nodes[0], None, Version(), "asserted"), rows, view)


class PolicyChanges:
    """The policy of a project at the writer: it is read, changed and asked for permissions here."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def change(
        self, project_id: str, changes: Iterable[PolicyChange], *, reason: str | None = None, dry_run: bool = False
    ) -> Receipt:
        """See `MemoryWriter.change_policy`."""
        context = self._context
        agent = context.agent_node
        made = tuple(self._signed(change, plain_value(agent), reason) for change in changes)
        if not made or len({change.slot for change in made}) < len(made):
            raise InvalidRequest("a change of policy says something, and nothing twice", hint="give each rule once")
        nodes = tuple(f"{vocab.BASE}policies/{context.new_id()}" for _ in made)
        submission = _PolicySubmission(project_node(project_id), agent, made, nodes)
        if dry_run:
            return context.pipeline.run(submission, context.fresh_view(project_id), context.now()).receipt
        return context.submit(project_id, submission)

    def check_keeper(self, project_id: str, agent: str, action: str, *, of_policy: bool = False) -> None:
        """See `MemoryWriter.check_keeper`."""
        context = self._context
        node, speaker = plain_value(context.pipeline.node(agent, "agents")), context.pipeline.speaker
        rules = context.authority(project_id)
        permissions.check_curates(action, node, rules, speaker)
        if of_policy:
            permissions.check_may_change(node, rules, rules, speaker)

    def is_curator(self, project_id: str, agent: str | None = None) -> bool:
        """Return whether *agent*, the writer's own unless given, may judge for the project."""
        with self._context.queues.of(project_id).reading() as view:
            return self._context.is_curator(view, agent or self._context.agent)

    def _signed(self, change: PolicyChange, by: str, reason: str | None) -> PolicyChange:
        """Return the valid *change*, with its author and reason; the agent that it concerns is an IRI."""
        agent = None if change.agent is None else plain_value(self._context.pipeline.node(change.agent, "agents"))
        return replace(checked(change), agent=agent, by=by, reason=reason)
