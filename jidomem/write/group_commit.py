"""The commit queue: the thread that holds the lock commits all pending submissions of a stream as one group."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain, repeat
from threading import Lock
from traceback import clear_frames
from typing import NamedTuple
from weakref import WeakValueDictionary

from jidomem.base.clock import Sources
from jidomem.errors import Failed, IntentRefused, JidomemError, NotFound, nearest_names
from jidomem.index.follower import IndexFollower, gc_paused
from jidomem.journal import commit as commits
from jidomem.journal.journal import FutureCommit, Stream, VersionMismatch, future_commit
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, date_time, iri, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.schema.ontology import EffectiveRules
from jidomem.write.permissions import AuthenticatedAgent
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import AnySubmission, Decision, Outcome
from jidomem.write.triples import WRITER_AGENT, check_round_trip

BLOCK_TRIPLES = 1_000
BLOCK_CHARACTERS = 1_000_000
#: The triples of a cached snapshot, about 18 MB, beyond which a new one replaces it, at twice as many at the latest.
VIEW_TRIPLES = 50_000
#: The beginning of the warning that a write makes a project, and the most other projects that it names.
BEGINS_PROJECT, _PROJECTS_NAMED = "this begins the project", 3

#: A function that returns the submissions of one commit, from the rows under the lock. It may be a generator:
#: each submission is judged before the next one is requested.
Plan = Callable[[WriteSnapshot, datetime], Iterable[AnySubmission]]
_RECORDED_AT, _RECORDED_IN = jido("recordedAt"), jido("recordedIn")


@dataclass(slots=True, eq=False)
class PendingSubmission:
    """A submission, the pipeline of its author and, once it is served, its outcome and the id of its commit.

    `commit` is None for a submission that wrote nothing: a refused one, a retry, a memory that is known already.
    """

    submission: AnySubmission
    pipeline: Pipeline
    caller: deque[PendingSubmission] = field(repr=False)
    outcome: Receipt | BaseException | None = None
    commit: str | None = None

    def answer(self) -> Outcome:
        """Return the receipt or refusal of a served submission, or raise any other failure."""
        if isinstance(self.outcome, (Receipt, JidomemError)):
            return self.outcome
        assert self.outcome is not None
        raise self.outcome

    def receipt(self) -> Receipt:
        """Return the receipt of a served submission, or raise its refusal or another failure."""
        if isinstance(self.outcome, Receipt):
            return self.outcome
        assert self.outcome is not None
        raise self.outcome


#: How many submissions of one caller are judged in a row.
_TURN = 25


class _PendingSubmissions:
    """The pending submissions of each caller, in their order; the callers take turns.

    A round ends once all submissions of a caller are taken and each other caller had a turn, so that a single
    submission waits neither for a batch nor for a block that a batch fills.
    """

    def __init__(self) -> None:
        self._callers: deque[deque[PendingSubmission]] = deque()
        self._lock = Lock()
        self._had_turn: set[int] = set()  # the callers in this round
        self._is_one_done = False
        self._left = _TURN  # of the turn of the first caller

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._callers))

    def add(self, caller: deque[PendingSubmission]) -> None:
        """Add the submissions of a new caller."""
        if caller:
            with self._lock:
                self._callers.append(caller)

    def begin_round(self) -> None:
        """Begin a round: each caller has a turn before one has a second."""
        self._had_turn, self._is_one_done, self._left = set(), False, _TURN

    def take(self) -> PendingSubmission | None:
        """Return the next submission and remove it; None at the end of the round, or without a submission."""
        with self._lock:
            if not self._callers or (self._is_one_done and self._had_turn.issuperset(map(id, self._callers))):
                return None
            caller = self._callers[0]
            pending = caller.popleft()
            self._left -= 1
            if not caller or not self._left:
                self._callers.popleft()
                self._had_turn.add(id(caller))
                self._left = _TURN
                if caller:
                    self._callers.append(caller)
                else:
                    self._is_one_done = True
            return pending

    def put_back(self, taken: Sequence[PendingSubmission]) -> None:
        """Add submissions again that were taken in this order, before the others of their callers."""
        with self._lock:
            for pending in reversed(taken):
                if not pending.caller:
                    self._callers.appendleft(pending.caller)
                pending.caller.appendleft(pending)

    def drop(self, caller: deque[PendingSubmission]) -> None:
        """Remove the submissions of a caller that no longer waits."""
        with self._lock:
            caller.clear()
            self._callers = deque(each for each in self._callers if each)

    def take_all(self) -> list[PendingSubmission]:
        with self._lock:
            taken = list(chain.from_iterable(self._callers))
            for caller in self._callers:
                caller.clear()
            self._callers.clear()
            return taken


@dataclass(slots=True)
class _Block:
    """The commit under construction: the submissions judged for it, and the accepted ones."""

    cached: _CachedSnapshot
    judged: list[PendingSubmission] = field(default_factory=list)
    members: list[tuple[PendingSubmission, Decision]] = field(default_factory=list)
    triples: list[Triple] = field(default_factory=list)
    characters: int = 0

    def add(self, pending: PendingSubmission, decision: Decision, characters: int) -> None:
        """Add an accepted submission; later ones are judged with its triples in view."""
        self.members.append((pending, decision))
        self.triples += decision.triples
        self.characters += characters
        self.cached.view.add(decision.triples)

    def reopen(self) -> bool:
        """Reset the outcomes, and refuse the members that do not read back as they were built.

        Returns whether there are such members.
        """
        for pending in self.judged:
            pending.outcome = None
        for pending, decision in self.members:
            try:
                check_round_trip(decision.triples)
            except IntentRefused as refusal:
                pending.outcome = refusal
        return any(pending.outcome for pending, _ in self.members)

    def unserved(self) -> list[PendingSubmission]:
        """Return the accepted submissions.

        If the commit failed, also those refused after the first accepted one, as they were judged with it in view;
        their outcomes are reset.
        """
        members = [pending for pending, _ in self.members]
        if members and members[0].outcome is None:
            members = self.judged[self.judged.index(members[0]) :]
            for pending in members:
                pending.outcome = None
        return members

    @property
    def is_full(self) -> bool:
        return len(self.triples) >= BLOCK_TRIPLES or self.characters >= BLOCK_CHARACTERS


class _CachedSnapshot(NamedTuple):
    """The rows of a stream at a version, and their key: the generation of the index, the number of the rules."""

    version: Version
    generation: int
    rules: int
    view: WriteSnapshot


class CommitQueue:
    """The pending submissions of one stream, committed in the order of each caller; callers take turns."""

    def __init__(
        self,
        stream: Stream,
        follower: IndexFollower,
        sources: Sources,
        rules: EffectiveRules,
        projects: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._stream, self._projects = stream, projects
        self._follower = follower
        self._sources = sources
        self._rules = rules
        self._lock, self._next = Lock(), Lock()  # _next is held by the thread that acquires _lock next
        self._waiting = _PendingSubmissions()
        self._cached: _CachedSnapshot | None = None
        #: The first commit ahead of the clock, with the generation of the index.
        self._first_future: tuple[object, FutureCommit | None] = (None, None)
        memory = Stream(stream.project)
        #: The graphs of the rows for judging: other streams may describe memories.
        self._graphs = tuple(dict.fromkeys((stream.graph, memory.graph)))
        self._graphs_of_project = vocab.graphs_of(stream.project)

    @property
    def waiting(self) -> int:
        """Return the number of pending submissions."""
        return len(self._waiting)

    def snapshot(self) -> WriteSnapshot:
        """Return the rows, including all commits of other writers."""
        self._follower.catch_up(self._stream)
        return self._indexed_rows()

    def checked_snapshot(self) -> WriteSnapshot:
        """Return the rows for judging a submission: of an undamaged journal, under the present rules.

        Raises JournalDamaged, and Failed for an invalid configuration.
        """
        for stream in dict.fromkeys((Stream(self._stream.project), self._stream)):
            self._follower.catch_up(stream)
        for damage in self._follower.journal.damage(self._stream):
            raise damage
        self._rules.reload_if_changed()
        return self._indexed_rows()

    @contextmanager
    def reading(self) -> Iterator[WriteSnapshot]:
        """Yield the rows, including all commits of other writers, for a short read: the commits wait for its end.

        The index need not apply pending commits if the cached snapshot is up to date and no thread uses it.
        """
        if self._lock.acquire(blocking=False):
            try:
                version = self._follower.journal.head(self._stream)
                if self._cached is not None and self._is_up_to_date(self._cached, version):
                    yield self._cached.view
                    return
            finally:
                self._lock.release()
        yield self.snapshot()

    def _indexed_rows(self) -> WriteSnapshot:
        index, graphs = self._follower.index, self._graphs
        index.apply_pending()
        if len(graphs) == 1:
            return WriteSnapshot(partial(index.match, *graphs), partial(index.instances, *graphs))

        def rows(subject: Term | None, predicate: Term | None, value: Term | None) -> list[Triple]:
            return [triple for graph in graphs for triple in index.match(graph, subject, predicate, value)]

        def instances(predicate: Term, value: Term, classes: frozenset[Term]) -> list[Term]:
            return [item for graph in graphs for item in index.instances(graph, predicate, value, classes)]

        return WriteSnapshot(rows, instances)

    def submit(self, pipeline: Pipeline, submissions: Sequence[AnySubmission]) -> list[PendingSubmission]:
        """Return the submissions, each with its outcome, when all accepted ones are durable."""
        caller: deque[PendingSubmission] = deque()
        pending = [PendingSubmission(submission, pipeline, caller) for submission in submissions]
        caller.extend(pending)
        self._waiting.add(caller)
        unserved = deque(pending)
        try:
            while unserved:
                with self._next, self._lock:  # after the threads that have waited longer
                    pass
                with self._lock:
                    first = unserved[0]
                    if first.outcome is None:
                        if not caller or caller[0] is not first:  # an interrupted thread has dropped it
                            self._waiting.put_back([first])
                        with self._follower.turn():
                            self._serve_one_block()
                    while unserved and unserved[0].outcome is not None:
                        unserved.popleft()
        except BaseException as failure:  # interrupted: the caller no longer waits
            self._waiting.drop(caller)
            _exit_contexts(failure)
            raise
        if pipeline.speaker is not None:
            _report(pending, pipeline.speaker)
        return pending

    def submit_atomic(self, pipeline: Pipeline, submissions: Sequence[AnySubmission]) -> list[Receipt]:
        """Return the receipts of submissions in one commit; the first refusal is raised and nothing is committed."""
        return self.submit_planned(pipeline, lambda view, now: submissions)

    def submit_planned(self, pipeline: Pipeline, plan: Plan) -> list[Receipt]:
        """Return the receipts of the submissions of *plan*, all in one commit of any size, or none.

        No other writer commits between the plan and the commit. The first refusal is raised and nothing is committed.
        """
        with self._next, self._lock:  # after the threads that have waited longer
            pass
        try:
            with self._lock:
                while (receipts := self._commit_planned(pipeline, plan)) is None:
                    pass
        except BaseException as failure:
            _exit_contexts(failure)
            raise
        return receipts

    def dry_run(self, pipeline: Pipeline, plan: Plan) -> list[Decision]:
        """Return the decisions on the submissions of *plan*, each judged with those before it; commit nothing."""
        view, now = self.checked_snapshot(), self._sources.now()
        decisions = []
        for submission in plan(view, now):
            pipeline.check_speaker()
            decision = pipeline.run(submission, view, now)
            check_round_trip(decision.triples)
            view.add(decision.triples)
            decisions.append(decision)
        return decisions

    def dry_run_one(self, pipeline: Pipeline, submission: AnySubmission) -> Receipt:
        """Return the receipt that *submission* would get at the present version, or raise its refusal."""
        (decision,) = self.dry_run(pipeline, lambda view, now: [submission])
        version = self._follower.catch_up(Stream(self._stream.project))
        if not decision.triples:
            return decision.receipt
        warnings = self._new_project_warnings(pipeline, self._other_projects(version))
        return replace(decision.receipt, version=version, warnings=(*decision.receipt.warnings, *warnings))

    def _other_projects(self, version: Version) -> Sequence[str]:
        """Return the other projects of the root if the next commit, after *version*, is the first of this one."""
        projects = () if version.heads else self._projects()
        return () if self._stream.project in projects else projects

    def _new_project_warnings(self, pipeline: Pipeline, others: Sequence[str]) -> Sequence[str]:
        """Return the warning that a project is new, with the names of *others* unless the agent writes by a token."""
        if not others:
            return ()
        project = self._stream.project
        if pipeline.speaker is not None:
            return (f"{BEGINS_PROJECT} {project}, which this root did not have",)
        nearest = (nearest_names(project, others) or ["one of them"])[0]
        named = ", ".join(others[:_PROJECTS_NAMED]) + (" ..." if len(others) > _PROJECTS_NAMED else "")
        text = f"{BEGINS_PROJECT} {project} beside {named}; if you meant {nearest}, write it there"
        if self._follower.journal.is_shared:
            return (f"{text}: a shared root keeps both",)
        return (f"{text}, and remove projects/{project} from the root",)

    def _commit_planned(self, pipeline: Pipeline, plan: Plan) -> list[Receipt] | None:
        """Return the receipts of one commit of all submissions; None if the stream moved on before the commit."""
        with self._follower.journal.lock(self._stream) as version:
            block, now = _Block(self._snapshot_at(version)), self._sources.now()
            for position, submission in enumerate(plan(block.cached.view, now)):
                try:
                    pipeline.check_speaker()
                    decision = pipeline.run(submission, block.cached.view, now)
                except JidomemError as refusal:
                    refusal.position = position
                    raise
                block.add(PendingSubmission(submission, pipeline, deque()), decision, 0)
            if self._commit(block, version, now) is None:
                _raise_refusal(block)
                return None
            if pipeline.speaker is not None:
                _report((pending for pending, _ in block.members), pipeline.speaker)
            return [outcome for pending, _ in block.members if isinstance(outcome := pending.answer(), Receipt)]

    def _serve_one_block(self) -> None:
        """Judge pending submissions until the block is full, and commit them; each one served gets an outcome."""
        block: _Block | None = None
        try:
            with self._follower.journal.lock(self._stream) as version, gc_paused():
                block, now = _Block(self._snapshot_at(version)), self._sources.now()
                self._waiting.begin_round()
                while not block.is_full and (pending := self._waiting.take()) is not None:
                    block.judged.append(pending)
                    try:
                        pending.pipeline.check_speaker()
                        decision = pending.pipeline.run(pending.submission, block.cached.view, now)
                        characters = sum(map(len, chain.from_iterable(decision.triples)))
                        if block.members and characters > BLOCK_CHARACTERS:  # a commit of its own
                            self._waiting.put_back([block.judged.pop()])
                            break
                        block.add(pending, decision, characters)
                    except Exception as refusal:
                        pending.outcome = refusal
                    except BaseException:  # interrupted before the commit: other threads serve the pending submissions
                        again = [*block.unserved(), *([] if block.members else [pending])]
                        block.members.clear()
                        self._waiting.put_back(again)
                        raise
                if self._commit(block, version, now) is None:
                    self._waiting.put_back([each for each in block.judged if each.outcome is None])
        except BaseException as failure:
            served = block.unserved() if block else []
            if not served and isinstance(failure, Exception):  # no lock: the others would wait as long again
                served = self._waiting.take_all()
            for pending in served:
                pending.outcome = pending.outcome or (failure if isinstance(failure, Exception) else _interrupted())
            if not isinstance(failure, Exception):
                raise

    def _snapshot_at(self, version: Version) -> _CachedSnapshot:
        """Return the snapshot of *version*, under the lock: the cached one if it is up to date.

        `_cache` puts it back, once all its added triples are durable.
        """
        self._rules.reload_if_changed()  # the journal was read when the lock was acquired
        cached, self._cached = self._cached, None
        if cached is not None and self._is_up_to_date(cached, version) and not self._is_due(cached.view.size):
            return cached
        return _CachedSnapshot(version, self._follower.index.generation, self._rules.number, self.checked_snapshot())

    def _is_due(self, triples: int) -> bool:
        """Return whether a new snapshot replaces one of so many *triples*: if possible when few commits are pending."""
        return triples >= VIEW_TRIPLES and (triples >= 2 * VIEW_TRIPLES or self._follower.is_nearly_applied())

    def _is_up_to_date(self, cached: _CachedSnapshot, version: Version) -> bool:
        key = (version, self._follower.index.generation, self._rules.number)
        return (cached.version, cached.generation, cached.rules) == key

    def _cache(self, cached: _CachedSnapshot, version: Version) -> None:
        """Cache the snapshot, now at *version*; not for other streams, whose rows another queue changes, too."""
        if self._stream.name == "memory":
            self._cached = _CachedSnapshot(version, cached.generation, cached.rules, cached.view)

    def _commit(self, block: _Block, version: Version, now: datetime) -> Version | None:
        """Make *block* durable and answer its members; return None if nothing was committed and they are pending.

        That happens when the stream moved on, and when a member does not read back as it was built: it is refused.
        """
        journal = self._follower.journal
        if not block.triples:
            if block.members:
                journal.confirm(self._stream)  # a receipt may name a memory of a killed writer
            for pending, decision in block.members:
                pending.outcome = decision.receipt
            self._cache(block.cached, version)
            return version
        recorded_at = self._moment_of(version, now)
        nodes = [node for _, decision in block.members for node in decision.nodes]
        moments = [*zip(nodes, repeat(_RECORDED_AT), repeat(date_time(recorded_at)))]
        try:
            commit = commits.build(
                graph=self._stream.graph,
                parents=version,
                recorded_at=recorded_at,
                committer=plain_value(WRITER_AGENT),
                ontology_version=self._rules.schema.version,
                body=[*block.triples, *moments, *zip(nodes, repeat(_RECORDED_IN), repeat(vocab.THIS))],
                nonce=self._sources.nonce(),
            )
        except commits.FormatError:
            if not block.reopen():
                raise
            return None
        others = self._other_projects(version)
        first = self._future_commit(version, now) if recorded_at[:19] > now.isoformat()[:19] else None
        after = journal.append(self._stream, version, commit)
        if isinstance(after, VersionMismatch):
            block.reopen()
            return None
        with suppress(Exception):  # durable: the next read applies it to the index
            self._follower.apply(self._stream, commit)
        own, view = iri(commit.iri), block.cached.view
        view.add_new(own, [triple for triple in commit.triples if triple[0] == own])
        view.add([*moments, *zip(nodes, repeat(_RECORDED_IN), repeat(own))])
        self._cache(block.cached, after)
        for pending, decision in block.members:
            receipt = decision.receipt
            pending.commit = commit.id if decision.triples else None
            if not receipt.commit:
                receipt = replace(receipt, commit=commit.id, version=after)
            if others or first:
                warnings = self._new_project_warnings(pending.pipeline, others)
                late = (f"{first.detail}: {first.hint}",) if first else ()
                receipt = replace(receipt, warnings=(*receipt.warnings, *warnings, *late))
            pending.outcome = receipt
        return after

    def _future_commit(self, version: Version, now: datetime) -> FutureCommit | None:
        """Return the first commit of the project that is recorded later than *now*.

        It is cached until a merge or a rebuilt index, as later commits are recorded after it: a scan reads all commits.
        """
        journal, (generation, first) = self._follower.journal, self._first_future
        if (
            first
            and generation == self._follower.index.generation
            and len(version.heads) == 1
            and (same := first.at(now))
        ):
            return same
        streams = [each for each in journal.streams() if each.project == self._stream.project]
        first = future_commit(journal, streams, now)
        self._first_future = (self._follower.index.generation, first)
        return first

    def _moment_of(self, version: Version, now: datetime) -> str:
        """Return the time of the next commit, after all commits of the project, whose streams show one moment."""
        heads = self._follower.index.heads(self._graphs_of_project)
        return commits.moment_after(now, *version.heads, *heads)


class CommitQueues:
    """The commit queues of a root, one for each stream."""

    def __init__(
        self,
        follower: IndexFollower,
        sources: Sources,
        rules: EffectiveRules,
        projects: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.follower = follower
        self.sources = sources
        self._rules, self._projects = rules, projects
        self._queues: dict[Stream, CommitQueue] = {}
        #: The queues of streams without a commit: one that nobody uses any more is dropped.
        self._unused = WeakValueDictionary[Stream, CommitQueue]()
        self._lock = Lock()

    @property
    def waiting(self) -> int:
        """Return the number of pending submissions."""
        with self._lock:
            queues = [*self._queues.values(), *self._unused.values()]
        return sum(queue.waiting for queue in queues)

    def of(self, project: str, name: str = "memory") -> CommitQueue:
        """Return the queue of a stream; raises NotFound for a project that may not be created."""
        stream = Stream(project, name)
        if not self._rules.policy.create_projects and not self.follower.journal.exists(Stream(project)):
            raise NotFound(
                f"no project {project!r}, and create_projects is off",
                hint="set create_projects = true in config.toml",
                code="unknown_project",
            )
        with self._lock:
            if (queue := self._queues.get(stream)) is None:
                queue = CommitQueue(stream, self.follower, self.sources, self._rules, self._projects)
                queue = self._unused.setdefault(stream, queue)
                if self.follower.journal.exists(stream):
                    self._queues[stream] = self._unused.pop(stream)
            return queue

    def refresh(self, project: str) -> Version:
        """Apply the commits of other writers to the index; return the version reached."""
        return self.follower.catch_up(Stream(project))


def _exit_contexts(failure: BaseException) -> None:
    """Exit the context managers that an interrupt came into between their entry and the block of their `with`.

    Such a generator, and the lock that it holds, would live as long as the traceback of the interrupt.
    """
    if not isinstance(failure, Exception):
        clear_frames(failure.__traceback__)


def receipt_of(outcome: Outcome) -> Receipt:
    """Return the receipt of an accepted submission, or raise the refusal."""
    if isinstance(outcome, JidomemError):
        raise outcome
    return outcome


def _raise_refusal(block: _Block) -> None:
    for position, (pending, _) in enumerate(block.members):
        if isinstance(pending.outcome, JidomemError):
            pending.outcome.position = position
            raise pending.outcome


def _report(members: Iterable[PendingSubmission], speaker: AuthenticatedAgent) -> None:
    """Call the `on_commit` of *speaker*, if any, once with each commit of *members*, all of one caller."""
    for commit in dict.fromkeys(each.commit for each in members if each.commit is not None):
        if speaker.on_commit is not None:
            speaker.on_commit(commit)


def _interrupted() -> Failed:
    """Return the failure of a submission whose commit another thread was writing when it was interrupted."""
    return Failed(
        "the thread that wrote the commit was interrupted; whether it was stored is not known",
        hint="submit it again, with the same idempotency key if it had one: it is stored only once",
        code="outcome_unknown",
    )
