"""The writing of what is kept word for word, in the stream of the conversation history: entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from jidomem import vocab
from jidomem.entry import Entry
from jidomem.policy import AgentPolicy
from jidomem.terms import Term, Triple, bare, iri
from jidomem.write import entries as words
from jidomem.write import triples
from jidomem.write.line import JudgeFn, Outcome
from jidomem.write.recovery import Recovery
from jidomem.write.stages import Judged
from jidomem.write.view import View

#: The stream of what is kept word for word.
HISTORY = "history"


class HistoryWriter(Recovery):
    """The verbs of writing what nobody judges: each is a small commit of the history, held to ontology and shapes."""

    def keep_entries(self, project_id: str, entries: Sequence[Entry]) -> list[Outcome]:
        """Return one receipt or refusal for each entry, in order, all that were kept being durable.

        An entry replaces what is kept under its id; many share a commit. Raises NotFound `invalid_project`.
        """
        return self._line(project_id, HISTORY).submit([self._keeps(project_id, entry) for entry in entries])

    def _keeps(self, project_id: str, entry: Entry) -> JudgeFn:
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view)
            node = iri(f"{vocab.BASE}entries/{self._sources.new_id()}")
            rows = words.described(node, entry, project)
            rows += [(node, words.REPLACES, before) for before in words.held(view, entry.id)]
            agent = words.agent_of(entry)
            return self._kept(node, [*rows, *self._stubs(filter(None, [agent]), project, view)], view)

        return judge

    def _stubs(self, agents: Iterable[Term], project: Term, view: View) -> list[Triple]:
        """Return the declarations of the agents and the project that are named for the first time."""
        found = [] if view.describes(project) else triples.project_stub(project)
        for agent in dict.fromkeys(agents):
            if not view.types(agent):
                found += triples.agent_stub(agent, self._policy.agents.get(triples.name_of(agent), AgentPolicy()))
        return found

    def _kept(self, node: Term, rows: list[Triple], view: View) -> Judged:
        """Return *rows*, which tell of the new *node*, as they pass what is asked of all that is no memory."""
        judged = self._stages.append(rows, view, lambda triple: False)
        return replace(judged, receipt=replace(judged.receipt, iri=bare(node)))
