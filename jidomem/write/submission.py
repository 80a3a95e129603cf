"""What came of each intent of a stream, in order: read, submitted and told a piece at a time.

Where intents are taken in: each through its stages, one or many, and kept in the journal.

The policy of a project at the writer: what it is, how it is changed, and whom a door knows to speak.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from threading import Lock
from typing import Literal, Self, overload

from jidomem.base.clock import Sources, new_id
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, NotFound
from jidomem.index.follower import IndexFollower
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.records.policy import (
    CURATORS,
    LITERAL_LIMIT,
    AccessPolicy,
    AgentPolicy,
    Change,
    Policy,
    checked,
    role_named,
)
from jidomem.schema.ontology import EffectiveRules
from jidomem.write import permissions, triples
from jidomem.write.conflict import UniqueKey
from jidomem.write.group_commit import CommitQueue, JudgeFn, Outcome
from jidomem.write.normalize import FieldNormalizer, KnownMemories
from jidomem.write.pipeline import WRITER_AGENT, Decision, Proposal, Stages, SubmitOptions, abouts
from jidomem.write.snapshot import WriteSnapshot

#: An intent, or why it could not be read.
Given = Proposal | JidomemError
#: Intents submitted together; so many are held, and so many outcomes, however long the stream is.
PIECE = 500


class SubmissionResults(Iterator[Outcome]):
    """One receipt or refusal for each intent; the next piece is read and submitted when the last one is used up.

    A receipt is of what is durable. Whoever stops early calls `close`, or is told by a ResourceWarning what was not
    submitted; `submitted` counts those that were, of which the last ones may not have been told yet.
    """

    def __init__(self, intents: Iterable[Given], submit: Callable[[list[Given], int], list[Outcome]]) -> None:
        """Answer *intents* by *submit*, which is given a piece of them and the position of its first one."""
        self.submitted = 0
        self._untold: deque[Outcome] = deque()
        self._end: Exception | None = StopIteration()
        self._intents = iter(intents)
        self._submit = submit
        self._end = None

    def __next__(self) -> Outcome:
        """Return the next outcome; raise what the stream raised once all before that is told."""
        while not self._untold:
            if self._end is not None:
                end, self._end = self._end, StopIteration()
                raise end
            piece = self._read()
            self._untold.extend(self._submit(piece, self.submitted))
            self.submitted += len(piece)
        return self._untold.popleft()

    def close(self) -> None:
        """Read and submit no more."""
        self._untold.clear()
        self._end = StopIteration()

    def __del__(self) -> None:
        if self._untold or self._end is None:
            told = f"{self.submitted - len(self._untold)} of {self.submitted} submitted intents were answered"
            warnings.warn(f"{told}, and none after them was submitted: use the outcomes up", ResourceWarning, 2, self)

    def _read(self) -> list[Given]:
        """Return the next piece; what ends the stream waits until the piece is told."""
        piece: list[Given] = []
        try:
            for intent in islice(self._intents, PIECE):
                piece.append(intent)
        except Exception as error:
            self._end = error
        else:
            self._end = StopIteration() if len(piece) < PIECE else None
        return piece


class IntentSubmitter:
    """Takes each intent through its stages: normalise, validate, detect conflicts, build triples, append."""

    def __init__(
        self,
        tail: IndexFollower,
        law: EffectiveRules,
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
        self._lines: dict[Stream, CommitQueue] = {}
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
        under: UniqueKey | None = None,
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
    ) -> SubmissionResults: ...

    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: bool = False,
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome] | SubmissionResults:
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

        return submit(intents, 0) if isinstance(intents, Collection) else SubmissionResults(intents, submit)

    def submit_together(
        self,
        project_id: str,
        plan: Callable[[Sequence[Outcome]], Iterable[tuple[Proposal, SubmitOptions]]],
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

        def judges(view: WriteSnapshot) -> Iterator[JudgeFn]:
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

        def judged(view: WriteSnapshot, now: datetime) -> Decision:
            try:
                found = judge(view, now)
                triples.read_back(found.triples)
            except JidomemError as refusal:
                outcomes.append(refusal)
                return Decision(Receipt("", None, Version(), "refused"))
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

    def _fresh_view(self, project_id: str) -> WriteSnapshot:
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
        under: UniqueKey | None = None,
        imported: bool = False,
    ) -> JudgeFn:
        if isinstance(intent, JidomemError):
            return partial(_refused, intent)
        about = abouts(intent)
        held = self._blobs(about) if blobs is None else blobs
        absent = self._absent(each for each in about if each not in held)
        manner = SubmitOptions(held, propose, under=under, absent=absent, imported=imported)
        return self._judged_by(project_id, intent, manner)

    def _judged_by(self, project_id: str, intent: Proposal, manner: SubmitOptions) -> JudgeFn:
        """Return what judges *intent*, submitted in that *manner*."""

        def listed() -> list[str]:
            graph = Stream(project_id).graph
            return [plain_value(t[0]) for t in self._tail.index.triples(graph, None, jido("hasAssertionStatus"), None)]

        known = KnownMemories(listed, partial(self._find, project_id))
        return lambda view, now: self._stages.judge(project_id, intent, view, now, known, manner)

    def _node(self, name: str, folder: str) -> Term:
        """Return the IRI of an agent or session, from its IRI or its plain name; raises IntentRefused `invalid_iri`."""
        field, tidy = folder.removesuffix("s"), FieldNormalizer(self._stages.schema, self._stages.literal)
        found = tidy.reference(field, tidy.text(field, name), folder)
        if tidy.violations:
            raise IntentRefused(tidy.violations)
        return iri(found)

    def _declared(self, agent: Term, project: Term, view: WriteSnapshot) -> list[Triple]:
        """Return the stubs of an agent and a project a session is the first to name."""
        policy = self._policy.agents.get(triples.name_of(agent), AgentPolicy())
        agents = [] if view.types(agent) else triples.agent_stub(agent, policy)
        return agents if view.describes(project) else [*agents, *triples.project_stub(project)]

    def _line(self, project_id: str, name: str = "memory") -> CommitQueue:
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
                self._lines[stream] = CommitQueue(stream, self._tail, self._sources, self._law)
            return self._lines[stream]


def _placed(outcomes: list[Outcome], first: int) -> list[Outcome]:
    """Return *outcomes*, each refusal with its position; one error that stopped several has none."""
    met = Counter(map(id, outcomes))
    for position, outcome in enumerate(outcomes, start=first):
        if isinstance(outcome, JidomemError) and met[id(outcome)] == 1:
            outcome.position = position
    return outcomes


def _refused(error: JidomemError, view: WriteSnapshot, now: datetime) -> Decision:
    raise error


def _answer(outcome: Outcome) -> Receipt:
    if isinstance(outcome, JidomemError):
        raise outcome
    return outcome


class PolicyWriter(IntentSubmitter):
    """What a writer knows of who may write what; the journal holds each change of it."""

    def acting_as(self, agent: str, role: str) -> Self:
        """Return this writer as a door uses it that knows who speaks, by a token: *agent*, in *role*.

        The role counts in place of the one the project gives the agent; `agent` leaves it the one it has, but for that
        of a curator. Who is no curator speaks for itself alone. Raises InvalidRequest for an unknown role.
        """
        bound = copy(self)
        bound.agent = agent
        known = None if role == "agent" else role_named(role)
        speaker = permissions.Speaker(plain_value(self._node(agent, "agents")), known)
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
        speaker = permissions.Speaker(plain_value(WRITER_AGENT), "MemoryWriter", by_rule=True)
        bound._stages = replace(self._stages, speaker=speaker)
        return bound

    def authority(self, project_id: str) -> AccessPolicy:
        """Return the policy of *project_id* as it is now: who may assert, propose or do nothing at all."""
        return self._line(project_id).answer(lambda view: permissions.authority(view, self._stages.policy))

    def change_policy(
        self, project_id: str, changes: Iterable[Change], *, reason: str | None = None, dry_run: bool = False
    ) -> Receipt:
        """Return the receipt of *changes* of the policy, recorded in one commit; its IRI is that of the first.

        Raises InvalidRequest for what says nothing, or one thing twice, and PolicyDenied unless an administrator
        changes it: the writer's agent, or whom a door knows to speak. While a project has none, every agent may.
        """
        who = self._node(self.agent, "agents")
        made = [self._made(change, plain_value(who), reason) for change in changes]
        if not made or len({change.slot for change in made}) < len(made):
            raise InvalidRequest("a change of policy says something, and nothing twice", hint="give each rule once")
        nodes = [f"{vocab.BASE}policies/{self._sources.new_id()}" for _ in made]
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            rules = permissions.authority(view, self._stages.policy)
            after = replace(rules, changes=(*rules.changes, *made))
            permissions.check_may_change(plain_value(who), rules, after, self._stages.speaker)
            agents = dict.fromkeys([who, *(iri(change.agent) for change in made if change.agent)])
            declared = [row for agent in agents for row in self._declared(agent, project, view)]
            kept = [*permissions.change_triples(project, zip(map(iri, nodes), made, strict=True)), *declared]
            return self._stages.judged(Receipt(nodes[0], None, Version(), "asserted"), kept, view)

        if dry_run:
            return judge(self._fresh_view(project_id), self._sources.now()).receipt
        return self._submit(project_id, judge)

    def check_keeper(self, project_id: str, agent: str, what: str, *, of_policy: bool = False) -> None:
        """Raise PolicyDenied unless *agent* may do *what* is for curators, or administrators where it is *of_policy*.

        While a project names none, whoever has its files may.
        """
        who, rules, speaker = plain_value(self._node(agent, "agents")), self.authority(project_id), self._stages.speaker
        permissions.check_curates(what, who, rules, speaker)
        if of_policy:
            permissions.check_may_change(who, rules, rules, speaker)

    def is_curator(self, project_id: str, agent: str | None = None) -> bool:
        """Return whether *agent*, the writer's own unless given, may judge for the project."""
        return self._line(project_id).answer(lambda view: self._is_curator_in(view, agent or self.agent))

    def _is_curator_in(self, view: WriteSnapshot, agent: str) -> bool:
        """Return whether *agent* may judge for the project that *view* is of."""
        rules = permissions.authority(view, self._stages.policy)
        return permissions.role_of(plain_value(self._node(agent, "agents")), rules, self._stages.speaker) in CURATORS

    def _made(self, change: Change, by: str, reason: str | None) -> Change:
        agent = plain_value(self._node(change.agent, "agents")) if change.agent is not None else None
        return replace(checked(change), agent=agent, by=by, reason=reason)

    def _check_besides(self, what: str, view: WriteSnapshot, agent: Term | None = None) -> None:
        """Raise PolicyDenied unless *agent*, the writer's own unless given, may write what is no memory."""
        who = plain_value(agent or self._node(self.agent, "agents"))
        permissions.check_other_write(what, who, view, self._stages.policy, self._stages.speaker)
