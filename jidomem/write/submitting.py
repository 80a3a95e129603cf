"""Where intents are taken in: each through its stages, one or many, and kept in the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Literal, overload

from jidomem.clock import Sources, new_id
from jidomem.errors import IntentRefused, JidomemError, NotFound
from jidomem.index.tail import Tail
from jidomem.intent import Receipt
from jidomem.journal.files import Stream
from jidomem.law import Law
from jidomem.policy import LITERAL_LIMIT, AgentPolicy, Policy
from jidomem.terms import Term, Triple, bare, iri
from jidomem.version import Version
from jidomem.vocab import jido
from jidomem.write import triples
from jidomem.write.conflict import Under
from jidomem.write.line import CommitLine, JudgeFn, Outcome
from jidomem.write.outcomes import Given, Outcomes
from jidomem.write.references import KnownMemories
from jidomem.write.stages import Judged, Manner, Proposal, Stages, abouts
from jidomem.write.tidy import Tidy
from jidomem.write.view import View


class Submitter:
    """Takes each intent through its stages: normalise, validate, detect conflicts, build triples, append."""

    def __init__(
        self,
        tail: Tail,
        law: Law,
        sources: Sources,
        *,
        agent: str,
        session: str | None,
        find: Callable[[str, str], str],
        literal: int = LITERAL_LIMIT,
        blobs: Callable[[Iterable[str]], Mapping[str, str]] = lambda paths: {},
        absent: Callable[[Iterable[str]], Mapping[str, str | None]] = lambda paths: {},
    ) -> None:
        """Write to *tail* what *law* lets pass.

        *agent* and *session* are who asserts, and where, when a verb names nobody. A text has at most *literal* bytes.
        *find* returns the IRI that a short id, or another name, of a memory of a project stands for, else raises
        NotFound. *blobs* gives the blob ids of files that a memory is about, and *absent* those not there, each
        with the nearest that is.
        """
        self.agent = agent
        self._blobs = blobs
        self._absent = absent
        self._find = find
        self._session_name = session
        self._tail = tail
        self._law = law
        self._sources = sources
        self._stages = Stages(law, sources.new_id, fresh_ids=sources.new_id is new_id, literal=literal)
        self._lines: dict[Stream, CommitLine] = {}
        self._lock = Lock()

    @property
    def _policy(self) -> Policy:
        return self._law.policy

    @property
    def literal(self) -> int:
        """Return how many bytes a text has at most."""
        return self._stages.literal

    @property
    def waiting(self) -> int:
        """Return how many submissions wait for their turn now."""
        return sum(line.waiting for line in [*self._lines.values()])

    def submit_intent(
        self,
        project_id: str,
        intent: Proposal,
        *,
        dry_run: bool = False,
        propose: bool = False,
        blobs: Mapping[str, str] | None = None,
        under: Under | None = None,
    ) -> Receipt:
        """Return the receipt of *intent*, durable when this returns; with *dry_run* judge it and keep nothing.

        With *propose* it waits for a curator, and may disagree with what is in force. *blobs* are the blob ids of files
        it is about, by path, in the place of those that they have now. What is in force *under* a key and not known
        there is a conflict, whoever put it there meanwhile.

        Raises IntentRefused (with `violations` and, where mechanical, `fixed_intent`), Conflict, IdempotencyMismatch,
        NotFound `invalid_project` or `unknown_project`, Busy, Failed `write_failed` or JournalDamaged; then nothing
        was written.
        """
        line, judge = self._line(project_id), self._judge(project_id, intent, propose=propose, blobs=blobs, under=under)
        if not dry_run:
            return _answer(line.submit([judge])[0])
        judged = judge(line.load(), self._sources.now())
        triples.read_back(judged.triples)
        version = self.refresh(project_id)
        return replace(judged.receipt, version=version) if judged.triples else judged.receipt

    @overload
    def submit_many(  # type: ignore[overload-overlap]  # a collection is an iterable that is all there
        self,
        project_id: str,
        intents: Collection[Given],
        *,
        atomic: bool = False,
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: Literal[True],
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: Literal[False] = False,
        propose: bool = False,
        imported: bool = False,
    ) -> Outcomes: ...

    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: bool = False,
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome] | Outcomes:
        """Return one receipt or refusal for each intent, in order; each is judged with those before it in view.

        All of a collection, such as a list, are submitted when this returns. Of any other iterable, such as a
        generator or a file's lines, the outcomes are an iterator: they are submitted as it is used up, and neither
        all intents nor all outcomes are held. An error in the place of an intent, why it could not be read, is its
        refusal.

        With *atomic* the first refusal is raised, its `position` saying which it was, and nothing at all is written.
        With *propose* each waits for a curator, as by `submit_intent`. Where they are *imported*, from an export of an
        earlier release or the like, an undeclared value is kept with a warning.
        """
        line = self._line(project_id)
        judge = partial(self._judge, project_id, propose=propose, imported=imported)
        if atomic:
            return [*line.submit_atomic([judge(intent) for intent in intents])]

        def submit(some: Iterable[Given], first: int) -> list[Outcome]:
            return _placed(line.submit([judge(intent) for intent in some]), first)

        return submit(intents, 0) if isinstance(intents, Collection) else Outcomes(intents, submit)

    def submit_together(
        self,
        project_id: str,
        plan: Callable[[Sequence[Outcome]], Iterable[tuple[Proposal, Manner]]],
        *,
        dry_run: bool = False,
    ) -> list[Outcome]:
        """Return one receipt or refusal for each intent of *plan*, in order, all accepted ones in one commit.

        The refusal of one stops no other. *plan* gets the outcomes so far, a list that grows as it is gone through,
        and is gone through again where another process wrote meanwhile. With *dry_run* nothing is kept.
        """

        def judges(outcomes: Sequence[Outcome]) -> Iterator[JudgeFn]:
            for proposal, manner in plan(outcomes):
                blobs = replace(manner, blobs=self._blobs(abouts(proposal)))
                yield self._judged_by(project_id, proposal, blobs)

        return self._together(project_id, judges, dry_run=dry_run)

    def _together(
        self, project_id: str, plan: Callable[[Sequence[Outcome]], Iterable[JudgeFn]], *, dry_run: bool
    ) -> list[Outcome]:
        """Return one receipt or refusal for each submission of *plan*, as `submit_together` says."""
        line, outcomes = self._line(project_id), list[Outcome]()

        def judges(view: View) -> Iterator[JudgeFn]:
            outcomes.clear()
            return (self._recording(judge, outcomes) for judge in plan(outcomes))

        if dry_run:
            view, now = line.load(), self._sources.now()
            for judge in judges(view):
                view.add(judge(view, now).triples)
            return outcomes
        receipts = line.submit_planned(judges)
        return [outcome if isinstance(outcome, JidomemError) else kept
                for outcome, kept in zip(outcomes, receipts, strict=True)]  # fmt: skip

    def _recording(self, judge: JudgeFn, outcomes: list[Outcome]) -> JudgeFn:
        """Return a judge of the same, which lets nothing pass where that refuses, and adds what came of it."""

        def judged(view: View, now: datetime) -> Judged:
            try:
                found = judge(view, now)
                triples.read_back(found.triples)
            except JidomemError as refusal:
                outcomes.append(refusal)
                return Judged(Receipt("", None, Version(), "refused"))
            outcomes.append(found.receipt)
            return found

        return judged

    @property
    def session(self) -> str:
        """Return the session of what is asserted without naming one: the one given, else one a day for the agent."""
        return self._session_name or f"{self.agent}-{self._sources.now().date().isoformat()}"

    def refresh(self, project_id: str) -> Version:
        """Bring the view of *project_id* up to what others have committed; return the version reached."""
        return self._tail.catch_up(Stream(project_id))

    def agent_iri(self) -> Term:
        """Return the IRI of who asserts when a verb names nobody; raises IntentRefused where the name is none."""
        return self._node(self.agent, "agents")

    def _fresh_view(self, project_id: str) -> View:
        """Return a view of all that others have committed."""
        self.refresh(project_id)
        return self._line(project_id).view()

    def _now(self) -> datetime:
        return self._sources.now()

    def _submit(self, project_id: str, judge: JudgeFn, stream: str = "memory") -> Receipt:
        """Return the receipt of what *judge* lets pass, durable."""
        return _answer(self._line(project_id, stream).submit([judge])[0])

    def _judge(
        self,
        project_id: str,
        intent: Given,
        *,
        propose: bool = False,
        blobs: Mapping[str, str] | None = None,
        under: Under | None = None,
        imported: bool = False,
    ) -> JudgeFn:
        if isinstance(intent, JidomemError):
            return partial(_refused, intent)
        about = abouts(intent)
        held = self._blobs(about) if blobs is None else blobs
        absent = self._absent(each for each in about if each not in held)
        manner = Manner(held, propose, under=under, absent=absent, imported=imported)
        return self._judged_by(project_id, intent, manner)

    def _judged_by(self, project_id: str, intent: Proposal, manner: Manner) -> JudgeFn:
        """Return what judges *intent*, submitted in that *manner*."""

        def listed() -> list[str]:
            graph = Stream(project_id).graph
            return [bare(t[0]) for t in self._tail.index.triples(graph, None, jido("hasAssertionStatus"), None)]

        known = KnownMemories(listed, partial(self._find, project_id))
        return lambda view, now: self._stages.judge(project_id, intent, view, now, known, manner)

    def _node(self, name: str, folder: str) -> Term:
        """Return the IRI of an agent or session, from its IRI or its plain name; raises IntentRefused `invalid_iri`."""
        field, tidy = folder.removesuffix("s"), Tidy(self._stages.schema, self._stages.literal)
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
                self._lines[stream] = CommitLine(stream, self._tail, self._sources, self._law)
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
