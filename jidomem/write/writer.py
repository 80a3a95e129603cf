"""The MemoryWriter: the only way into a project's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from jidomem.base.clock import format_timestamp
from jidomem.errors import IntentRefused, InvalidRequest, PolicyDenied, Violation
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, boolean, iri, literal, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.write import permissions, triples, validate
from jidomem.write.conversation import HistoryWriter
from jidomem.write.group_commit import JudgeFn
from jidomem.write.pipeline import Decision, Proposal
from jidomem.write.snapshot import WriteSnapshot

#: What only an answer to a proposed term says.
_OF_ANSWERS = frozenset(map(jido, ("answersProposal", "isAccepted", "answeredBy", "answerReason")))
_IS_ANSWER = vocab.TYPE, jido("TermAnswer")


class MemoryWriter(HistoryWriter):
    """All verbs of writing: intents, corrections, settlements, rollback, policy, sessions, entries, descriptions."""

    def remember(self, project_id: str, text: str, *, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of *text* kept as a fact of medium confidence, unless *fields* say otherwise.

        What is missing is filled, and `filled` says with what: the project, the agent, the session of the day.
        """
        given = {
            "type": "fact",
            "applies_to_project": project_id,
            "asserted_by": self.agent,
            "asserted_in": self.session,
            "confidence": "medium",
        }
        filled = {name: value for name, value in given.items() if name not in fields}
        receipt = self.submit_intent(project_id, {"summary": text, **filled, **fields}, dry_run=dry_run)
        if receipt.status == "deduplicated":  # the memory that is kept has its own author, session and confidence
            return receipt
        return replace(receipt, filled={**filled, **receipt.filled})

    def declare(self, project_id: str, rows: Sequence[Triple]) -> list[str]:
        """Keep descriptions of agents, sessions, modules, files and other things that are no memories.

        Returns the IRIs that are described here already, but otherwise, and are left as they are. Raises IntentRefused.
        """
        left: list[Term] = []

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("description", view)
            judged, left[:] = self._stages.declare(rows, view)
            return judged or Decision(Receipt("", None, Version(), "deduplicated"))

        self._submit(project_id, judge)
        return [plain_value(node) for node in left]

    def append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        """Return the receipt of *rows*, kept in one commit of a stream without memories: codebase, history or system.

        What is there already is not kept again. Raises IntentRefused for memories, which are proposed by intents, and
        for what the ontology or a shape forbids; PolicyDenied for an answer to a proposed term.
        """
        if any(predicate in _OF_ANSWERS or (predicate, value) == _IS_ANSWER for _, predicate, value in rows):
            hint = "memory.term_proposals().accept(TERM) or .reject(TERM, reason=...), or: jidomem ontology accept TERM"
            raise PolicyDenied("a proposed term is answered by a curator, not by triples", hint=hint)
        return self._append(project_id, stream, rows)

    def answer_term(self, project_id: str, proposal: Term, *, accepted: bool, reason: str) -> Receipt:
        """Return the receipt of the answer to a proposed term; accepting it is not done here but kept.

        Raises PolicyDenied unless this agent is a curator, where the project has any, or takes back its own proposal.
        """
        who = self._node(self.agent, "agents")
        by = next(self._tail.index.triples(Stream(project_id, "system").graph, proposal, jido("proposedBy")), None)
        if accepted or by is None or by[2] != who:
            self.check_keeper(project_id, self.agent, f"{'accept' if accepted else 'reject'} terms")
        node = iri(f"{vocab.BASE}term-answers/{vocab.local_name(proposal)}")
        said = {"answersProposal": proposal, "isAccepted": boolean(accepted), "answeredBy": who}
        said |= {"answerReason": literal(reason.strip())} if reason.strip() else {}
        rows = [(node, vocab.TYPE, jido("TermAnswer")), *((node, jido(name), value) for name, value in said.items())]
        return self._append(project_id, "system", rows)

    def _append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        self.refresh(project_id)
        held = self._held(Stream(project_id, stream))

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("description", view)
            return self._stages.append(rows, view, held)

        return self._submit(project_id, judge, stream)

    def clear(self, project_id: str, stream: str) -> Receipt:
        """Return the receipt of a commit from which on a stream without memories is empty; none where it was so.

        Its earlier commits stay in the journal, and are no longer read.
        """
        kept = Stream(project_id, stream)

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("description", view)
            if next(self._tail.index.triples(kept.graph), None) is None:
                return Decision(Receipt("", None, Version(), "deduplicated"))
            return Decision(Receipt("", None, Version(), "asserted"), ((vocab.THIS, jido("clears"), iri(kept.graph)),))

        (receipt,) = self._line(project_id, stream).submit_atomic([judge])
        return receipt

    def keep_together(self, project_id: str, rows: Sequence[Triple], intents: Sequence[Proposal]) -> list[Receipt]:
        """Return the receipts of descriptions of what is no memory, and of *intents*, kept in one commit or not at all.

        Raises IntentRefused for what is described here already, but otherwise, and what `submit_intent` raises.
        """
        held = self._held(Stream(project_id))

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("description", view)
            judged, _ = self._stages.declare(rows, view)
            for subject, predicate, value in rows:
                if view.types(subject) and not held((subject, predicate, value)):
                    fact = f"{plain_value(predicate)} {value:.80}"
                    message = f"{plain_value(subject)} is described here already, and without {fact}"
                    raise IntentRefused([Violation("iri_exists", message, value=plain_value(subject))])
            return judged or Decision(Receipt("", None, Version(), "deduplicated"))

        judges: list[JudgeFn] = [judge] if rows else []
        return self._line(project_id).submit_atomic([*judges, *(self._judge(project_id, each) for each in intents)])

    def _held(self, stream: Stream) -> Callable[[Triple], bool]:
        """Return what says whether a triple is in the graph of *stream* now."""
        return lambda triple: next(self._tail.index.triples(stream.graph, *triple), None) is not None

    def start_session(
        self, project_id: str, name: str, *, agent: str | None = None, continues: str | None = None
    ) -> Receipt:
        """Return the receipt of a new work session.

        Raises IntentRefused `iri_exists` when the name is taken, and for an agent a strict project has not heard of;
        NotFound when there is no session *continues*.
        """
        node, who = self._node(name, "sessions"), self._node(agent or self.agent, "agents")
        before = self._node(continues, "sessions") if continues else None
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("session", view, who)
            if unknown := [*validate.undeclared_agent("agent", plain_value(who), view, self._policy)]:
                raise IntentRefused(unknown)
            opening = triples.opened(node, project, who, format_timestamp(now), continues=before, view=view)
            return self._session(node, [*opening, *self._declared(who, project, view)], view)

        return self._submit(project_id, judge)

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

        Raises InvalidRequest where neither is given, NotFound for a session nobody opened, IntentRefused for one that
        has ended and for an unknown status or phase, and PolicyDenied for one of another agent, unless a curator moves
        it or nothing says who is one.
        """
        if status is None and phase is None:
            hint = "give `status` (such as paused) or `phase` (such as review)"
            raise InvalidRequest("a session moves to a status or to a phase", hint=hint)
        node, who = self._node(name, "sessions"), self._node(agent or self.agent, "agents")
        status = None if status is None else triples.status_of(status)
        phase = None if phase is None else triples.phase_of(phase)
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("session", view, who)
            permissions.check_moves(node, who, view, self._policy, self._stages.speaker)
            moved = triples.moved(node, who, format_timestamp(now), status=status, phase=phase, view=view)
            return self._session(node, [*moved, *self._declared(who, project, view)], view)

        return self._submit(project_id, judge)

    def _session(self, node: Term, kept: list[Triple], view: WriteSnapshot) -> Decision:
        warnings = self._stages.judge_shapes(kept, view)
        receipt = Receipt(plain_value(node), None, Version(), "asserted", {}, (), tuple(warnings))
        return self._stages.judged(receipt, kept, view)
