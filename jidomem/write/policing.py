"""The policy of a project at the writer: what it is, how it is changed, and whom a door knows to speak."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Self

from jidomem import vocab
from jidomem.authority import CURATORS, Authority, Change, checked, role_named
from jidomem.errors import InvalidRequest
from jidomem.intent import Receipt
from jidomem.terms import Term, bare, iri
from jidomem.version import Version
from jidomem.write import permission
from jidomem.write.stages import WRITER_AGENT, Judged
from jidomem.write.submitting import Submitter
from jidomem.write.view import View


class Policing(Submitter):
    """What a writer knows of who may write what; the journal holds each change of it."""

    def acting_as(self, agent: str, role: str) -> Self:
        """Return this writer as a door uses it that knows who speaks, by a token: *agent*, in *role*.

        The role counts in place of the one the project gives the agent; `agent` leaves it the one it has, but for that
        of a curator. Who is no curator speaks for itself alone. Raises InvalidRequest for an unknown role.
        """
        bound = copy(self)
        bound.agent = agent
        known = None if role == "agent" else role_named(role)
        speaker = permission.Speaker(bare(self._node(agent, "agents")), known)
        bound._stages = replace(self._stages, speaker=speaker)
        return bound

    def speaking_for(self, agent: str) -> Self:
        """Return this writer with *agent* as its own: who asserts, and whom refusals name, when a verb names nobody."""
        bound = copy(self)
        bound.agent = agent
        return bound

    def by_rule(self) -> Self:
        """Return this writer as it confirms what a rule of the policy says: in its own name, held to no other."""
        bound = copy(self)
        bound.agent = vocab.local_name(WRITER_AGENT)
        speaker = permission.Speaker(bare(WRITER_AGENT), "MemoryWriter", by_rule=True)
        bound._stages = replace(self._stages, speaker=speaker)
        return bound

    def authority(self, project_id: str) -> Authority:
        """Return the policy of *project_id* as it is now: who may assert, propose or do nothing at all."""
        return self._line(project_id).answer(lambda view: permission.authority(view, self._stages.policy))

    def change_policy(
        self, project_id: str, changes: Iterable[Change], *, reason: str | None = None, dry_run: bool = False
    ) -> Receipt:
        """Return the receipt of *changes* of the policy, recorded in one commit; its IRI is that of the first.

        Raises InvalidRequest for what says nothing, or one thing twice, and PolicyDenied unless an administrator
        changes it: the writer's agent, or whom a door knows to speak. While a project has none, every agent may.
        """
        who = self._node(self.agent, "agents")
        made = [self._made(change, bare(who), reason) for change in changes]
        if not made or len({change.slot for change in made}) < len(made):
            raise InvalidRequest("a change of policy says something, and nothing twice", hint="give each rule once")
        nodes = [f"{vocab.BASE}policies/{self._sources.new_id()}" for _ in made]
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: View, now: datetime) -> Judged:
            rules = permission.authority(view, self._stages.policy)
            after = replace(rules, changes=(*rules.changes, *made))
            permission.check_may_change(bare(who), rules, after, self._stages.speaker)
            agents = dict.fromkeys([who, *(iri(change.agent) for change in made if change.agent)])
            declared = [row for agent in agents for row in self._declared(agent, project, view)]
            kept = [*permission.change_triples(project, zip(map(iri, nodes), made, strict=True)), *declared]
            return self._stages.judged(Receipt(nodes[0], None, Version(), "asserted"), kept, view)

        if dry_run:
            return judge(self._fresh_view(project_id), self._sources.now()).receipt
        return self._submit(project_id, judge)

    def check_keeper(self, project_id: str, agent: str, what: str, *, of_policy: bool = False) -> None:
        """Raise PolicyDenied unless *agent* may do *what* is for curators, or administrators where it is *of_policy*.

        While a project names none, whoever has its files may.
        """
        who, rules, speaker = bare(self._node(agent, "agents")), self.authority(project_id), self._stages.speaker
        permission.check_curates(what, who, rules, speaker)
        if of_policy:
            permission.check_may_change(who, rules, rules, speaker)

    def is_curator(self, project_id: str, agent: str | None = None) -> bool:
        """Return whether *agent*, the writer's own unless given, may judge for the project."""
        return self._line(project_id).answer(lambda view: self._is_curator_in(view, agent or self.agent))

    def _is_curator_in(self, view: View, agent: str) -> bool:
        """Return whether *agent* may judge for the project that *view* is of."""
        rules = permission.authority(view, self._stages.policy)
        return permission.role_of(bare(self._node(agent, "agents")), rules, self._stages.speaker) in CURATORS

    def _made(self, change: Change, by: str, reason: str | None) -> Change:
        agent = bare(self._node(change.agent, "agents")) if change.agent is not None else None
        return replace(checked(change), agent=agent, by=by, reason=reason)

    def _check_besides(self, what: str, view: View, agent: Term | None = None) -> None:
        """Raise PolicyDenied unless *agent*, the writer's own unless given, may write what is no memory."""
        who = bare(agent or self._node(self.agent, "agents"))
        permission.check_besides(what, who, view, self._stages.policy, self._stages.speaker)
