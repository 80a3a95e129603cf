"""The MemoryWriter: the only way into a project's memory.  The one shell around the pure stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, Literal, overload

from jidomem import vocab
from jidomem.clock import Sources, new_id
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, NotFound, Violation
from jidomem.index.tail import Tail
from jidomem.intent import Receipt
from jidomem.journal.files import Stream
from jidomem.moments import stamp
from jidomem.policy import AgentPolicy, Policy
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, iri
from jidomem.version import Version
from jidomem.vocab import jido
from jidomem.write import session, triples
from jidomem.write.line import CommitLine, JudgeFn, Outcome
from jidomem.write.outcomes import Given, Outcomes
from jidomem.write.policing import Policing
from jidomem.write.recovery import Recovery
from jidomem.write.stages import Judged, Manner, Proposal, Stages, abouts
from jidomem.write.tidy import Tidy
from jidomem.write.view import View


class MemoryWriter(Policing, Recovery):
    """Takes each intent through its stages: normalise, validate, detect conflicts, build triples, append."""

    def __init__(
        self,
        tail: Tail,
        schema: Schema,
        policy: Policy,
        sources: Sources,
        *,
        agent: str,
        session: str | None,
        blobs: Callable[[Iterable[str]], Mapping[str, str]] = lambda paths: {},
    ) -> None:
        """Write to *tail*; *agent* and *session* are who asserts, and where, when a verb names nobody.

        *blobs* gives the blob ids of files that a memory is about.
        """
        self.agent = agent
        self._blobs = blobs
        self._session_name = session
        self._tail = tail
        self._policy = policy
        self._sources = sources
        self._stages = Stages(schema, policy, sources.new_id, fresh_ids=sources.new_id is new_id)
        self._ontology_version = schema.version
        self._lines: dict[Stream, CommitLine] = {}
        self._lock = Lock()

    def submit_intent(
        self,
        project_id: str,
        intent: Proposal,
        *,
        dry_run: bool = False,
        propose: bool = False,
        blobs: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Return the receipt of *intent*, durable when this returns; with *dry_run* judge it and keep nothing.

        With *propose* it waits for a curator, and may disagree with what is in force. *blobs* are the blob ids of files
        it is about, by path, in the place of those that they have now.

        Raises IntentRefused (with `violations` and, where mechanical, `fixed_intent`), Conflict, IdempotencyMismatch,
        NotFound `invalid_project` or `unknown_project`, Busy, Failed `write_failed` or JournalDamaged; then nothing
        was written.
        """
        line, judge = self._line(project_id), self._judge(project_id, intent, propose=propose, blobs=blobs)
        if not dry_run:
            return _answer(line.submit([judge])[0])
        judged = judge(line.load(), self._sources.now())
        triples.read_back(judged.triples)
        version = self.refresh(project_id)
        return replace(judged.receipt, version=version) if judged.triples else judged.receipt

    @overload
    def submit_many(  # type: ignore[overload-overlap]  # a collection is an iterable that is all there
        self, project_id: str, intents: Collection[Given], *, atomic: bool = False, propose: bool = False
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self, project_id: str, intents: Iterable[Given], *, atomic: Literal[True], propose: bool = False
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self, project_id: str, intents: Iterable[Given], *, atomic: Literal[False] = False, propose: bool = False
    ) -> Outcomes: ...

    def submit_many(
        self, project_id: str, intents: Iterable[Given], *, atomic: bool = False, propose: bool = False
    ) -> list[Outcome] | Outcomes:
        """Return one receipt or refusal for each intent, in order; each is judged with those before it in view.

        All of a collection, such as a list, are submitted when this returns. Of any other iterable, such as a
        generator or a file's lines, the outcomes are an iterator: they are submitted as it is used up, and neither
        all intents nor all outcomes are held. An error in the place of an intent, why it could not be read, is its
        refusal.

        With *atomic* the first refusal is raised, its `position` saying which it was, and nothing at all is written.
        With *propose* each waits for a curator, as by `submit_intent`.
        """
        line = self._line(project_id)
        judge = partial(self._judge, project_id, propose=propose)
        if atomic:
            return [*line.submit_atomic([judge(intent) for intent in intents])]

        def submit(some: Iterable[Given], first: int) -> list[Outcome]:
            return _placed(line.submit([judge(intent) for intent in some]), first)

        return submit(intents, 0) if isinstance(intents, Collection) else Outcomes(intents, submit)

    @property
    def session(self) -> str:
        """Return the session of what is asserted without naming one: the one given, else one a day for the agent."""
        return self._session_name or f"{self.agent}-{self._sources.now().date().isoformat()}"

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
        return replace(receipt, filled={**filled, **receipt.filled})

    def refresh(self, project_id: str) -> Version:
        """Bring the view of *project_id* up to what others have committed; return the version reached."""
        return self._tail.catch_up(Stream(project_id))

    def declare(self, project_id: str, rows: Sequence[Triple]) -> list[str]:
        """Keep descriptions of agents, sessions, modules, files and other things that are no memories.

        Returns the IRIs that are described here already, but otherwise, and are left as they are. Raises IntentRefused.
        """
        left: list[Term] = []

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view)
            judged, left[:] = self._stages.declare(rows, view)
            return judged or Judged(Receipt("", None, Version(), "deduplicated"))

        self._submit(project_id, judge)
        return [bare(node) for node in left]

    def append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        """Return the receipt of *rows*, kept in one commit of a stream without memories: codebase, history or system.

        What is there already is not kept again. Raises IntentRefused for memories, which are proposed by intents, and
        for what the ontology or a shape forbids.
        """
        self.refresh(project_id)
        held = self._held(Stream(project_id, stream))
        line = self._line(project_id, stream)

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view)
            return self._stages.append(rows, view, held)

        return _answer(line.submit([judge])[0])

    def clear(self, project_id: str, stream: str) -> Receipt:
        """Return the receipt of a commit from which on a stream without memories is empty; none where it was so.

        Its earlier commits stay in the journal, and are no longer read.
        """
        kept = Stream(project_id, stream)

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view)
            if next(self._tail.index.triples(kept.graph), None) is None:
                return Judged(Receipt("", None, Version(), "deduplicated"))
            return Judged(Receipt("", None, Version(), "asserted"), ((vocab.THIS, jido("clears"), iri(kept.graph)),))

        (receipt,) = self._line(project_id, stream).submit_atomic([judge])
        return receipt

    def keep_together(self, project_id: str, rows: Sequence[Triple], intents: Sequence[Proposal]) -> list[Receipt]:
        """Return the receipts of descriptions of what is no memory, and of *intents*, kept in one commit or not at all.

        Raises IntentRefused for what is described here already, but otherwise, and what `submit_intent` raises.
        """
        held = self._held(Stream(project_id))

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view)
            judged, _ = self._stages.declare(rows, view)
            for subject, predicate, value in rows:
                if view.types(subject) and not held((subject, predicate, value)):
                    message = f"{bare(subject)} is described here already, and without {bare(predicate)} {value:.80}"
                    raise IntentRefused([Violation("iri_exists", message, value=bare(subject))])
            return judged or Judged(Receipt("", None, Version(), "deduplicated"))

        judges: list[JudgeFn] = [judge] if rows else []
        return self._line(project_id).submit_atomic([*judges, *(self._judge(project_id, each) for each in intents)])

    def _held(self, stream: Stream) -> Callable[[Triple], bool]:
        """Return what says whether a triple is in the graph of *stream* now."""
        return lambda triple: next(self._tail.index.triples(stream.graph, *triple), None) is not None

    def start_session(
        self, project_id: str, name: str, *, agent: str | None = None, continues: str | None = None
    ) -> Receipt:
        """Return the receipt of a new work session.

        Raises IntentRefused `iri_exists` when the name is taken, NotFound when there is no session *continues*.
        """
        node, who = self._node(name, "sessions"), self._node(agent or self.agent, "agents")
        before = self._node(continues, "sessions") if continues else None
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("session", view, who)
            opening = session.opened(node, project, who, stamp(now), continues=before, view=view)
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
        has ended and for an unknown status or phase.
        """
        if status is None and phase is None:
            raise InvalidRequest("a session moves to a status or to a phase", hint="give one: status='Paused'")
        node, who = self._node(name, "sessions"), self._node(agent or self.agent, "agents")
        status = None if status is None else session.status_of(status)
        phase = None if phase is None else session.phase_of(phase)
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("session", view, who)
            moved = session.moved(node, who, stamp(now), status=status, phase=phase, view=view)
            return self._session(node, [*moved, *self._declared(who, project, view)], view)

        return self._submit(project_id, judge)

    def agent_iri(self) -> Term:
        """Return the IRI of who asserts when a verb names nobody; raises IntentRefused where the name is none."""
        return self._node(self.agent, "agents")

    def is_curator(self, project_id: str) -> bool:
        """Return whether who asserts, when a verb names nobody, may judge for the project."""
        return self._is_curator(project_id, self.agent)

    def _fresh_view(self, project_id: str) -> View:
        self.refresh(project_id)
        return self._line(project_id).view()

    def _now(self) -> datetime:
        return self._sources.now()

    def _submit(self, project_id: str, judge: JudgeFn) -> Receipt:
        return _answer(self._line(project_id).submit([judge])[0])

    def _judge(
        self, project_id: str, intent: Given, *, propose: bool = False, blobs: Mapping[str, str] | None = None
    ) -> JudgeFn:
        if isinstance(intent, JidomemError):
            return partial(_refused, intent)
        manner = Manner(self._blobs(abouts(intent)) if blobs is None else blobs, propose)

        def known() -> list[str]:
            graph = Stream(project_id).graph
            return [bare(t[0]) for t in self._tail.index.triples(graph, None, jido("hasAssertionStatus"), None)]

        return lambda view, now: self._stages.judge(project_id, intent, view, now, known, manner)

    def _session(self, node: Term, kept: list[Triple], view: View) -> Judged:
        warnings = self._stages.judge_shapes(kept, view)
        receipt = Receipt(bare(node), None, Version(), "asserted", {}, (), tuple(warnings))
        return self._stages.judged(receipt, kept, view)

    def _node(self, name: str, folder: str) -> Term:
        """Return the IRI of an agent or session, from its IRI or its plain name; raises IntentRefused `invalid_iri`."""
        field, tidy = folder.removesuffix("s"), Tidy(self._stages.schema)
        found = tidy.reference(field, tidy.text(field, name), folder)
        if tidy.violations:
            raise IntentRefused(tidy.violations)
        return iri(found)

    def _declared(self, agent: Term, project: Term, view: View) -> list[Triple]:
        """Return the stubs of an agent and a project a session is the first to name."""
        policy = self._policy.agents.get(triples.name_of(agent), AgentPolicy())
        agents = [] if view.types(agent) else triples.agent_stub(agent, policy)
        return agents if view.describes(project) else [*agents, *triples.project_stub(project)]

    def _line(self, project_id: str, name: str = "memory") -> CommitLine:
        """Return where a stream's submissions wait; raises NotFound for a project that may not be created."""
        stream = Stream(project_id, name)
        if not self._policy.create_projects and not self._tail.journal.exists(Stream(project_id)):
            raise NotFound(
                f"no project {project_id!r}, and create_projects is off",
                hint="set create_projects = true in config.toml",
                code="unknown_project",
            )
        with self._lock:
            if stream not in self._lines:
                self._lines[stream] = CommitLine(stream, self._tail, self._sources, self._ontology_version)
            return self._lines[stream]


def _placed(outcomes: list[Outcome], first: int) -> list[Outcome]:
    """Return *outcomes*, each refusal with its position; one error that stopped several has none."""
    met = Counter(map(id, outcomes))
    for position, outcome in enumerate(outcomes, start=first):
        if isinstance(outcome, JidomemError) and met[id(outcome)] == 1:
            outcome.position = position
    return outcomes


def _refused(error: JidomemError, view: View, now: datetime) -> Judged:
    raise error


def _answer(outcome: Outcome) -> Receipt:
    if isinstance(outcome, JidomemError):
        raise outcome
    return outcome
