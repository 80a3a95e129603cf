"""Where submissions wait: whoever gets the lock judges all that wait and keeps them in one commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from threading import Lock
from typing import TypeVar

from jidomem.base.clock import Sources
from jidomem.errors import IntentRefused, JidomemError
from jidomem.index.follower import IndexFollower, gc_paused
from jidomem.journal import commit as commits
from jidomem.journal.journal import Stream, VersionMismatch
from jidomem.journal.rewrite import is_redaction_record
from jidomem.journal.stream import moment_after
from jidomem.rdf import vocab
from jidomem.rdf.terms import Triple, date_time, iri, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.intent import Receipt, Version
from jidomem.schema.ontology import EffectiveRules
from jidomem.write.pipeline import WRITER_AGENT, Decision
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.triples import read_back

T = TypeVar("T")

BLOCK_TRIPLES = 1_000
BLOCK_CHARACTERS = 1_000_000
#: Triples a view keeps, after which a new one is begun: some 18 MB.
VIEW_TRIPLES = 50_000

Outcome = Receipt | JidomemError
JudgeFn = Callable[[WriteSnapshot, datetime], Decision]
#: What is to be judged, worked out from all that is known in its turn; each sees what those before it brought.
Plan = Callable[[WriteSnapshot], Iterable[JudgeFn]]


@dataclass(slots=True)
class _PendingSubmission:
    """One submission: how it is judged and, once served, what came of it."""

    judge: JudgeFn
    outcome: Receipt | BaseException | None = None


@dataclass(slots=True)
class _Block:
    """The commit being built: who was judged for it, and the accepted members."""

    known: _CachedSnapshot
    judged: list[_PendingSubmission] = field(default_factory=list)
    members: list[tuple[_PendingSubmission, Decision]] = field(default_factory=list)
    triples: list[Triple] = field(default_factory=list)
    characters: int = 0

    def add(self, ticket: _PendingSubmission, judged: Decision) -> None:
        """Take *judged* in, where the members after it see it."""
        self.members.append((ticket, judged))
        self.triples += judged.triples
        self.characters += _characters(judged)
        self.known.view.add(judged.triples)

    def reopen(self) -> bool:
        """Take back what was judged, but for members that do not read back as they were built: those are refused.

        Returns whether there are such.
        """
        for ticket in self.judged:
            ticket.outcome = None
        for ticket, judged in self.members:
            try:
                read_back(judged.triples)
            except IntentRefused as refusal:
                ticket.outcome = refusal
        return any(ticket.outcome for ticket, _ in self.members)

    def unserved(self) -> list[_PendingSubmission]:
        """Return the members; where they were not kept, also who was refused beside them, with no outcome any more."""
        members = [ticket for ticket, _ in self.members]
        if members and members[0].outcome is None:
            members = self.judged[self.judged.index(members[0]) :]
            for ticket in members:
                ticket.outcome = None
        return members

    @property
    def full(self) -> bool:
        """Return whether the block has reached its size."""
        return len(self.triples) >= BLOCK_TRIPLES or self.characters >= BLOCK_CHARACTERS


def _characters(judged: Decision) -> int:
    return sum(map(len, chain.from_iterable(judged.triples)))


@dataclass(frozen=True, slots=True)
class _CachedSnapshot:
    """All there is to know of a stream at a version: what the index said in one of its lives, and what came since.

    What was worked out from it is so by the *law* of that number.
    """

    version: Version
    life: int
    law: int
    view: WriteSnapshot


class CommitQueue:
    """The waiting submissions of one stream; they are kept in the order they came."""

    def __init__(self, stream: Stream, tail: IndexFollower, sources: Sources, law: EffectiveRules) -> None:
        self._stream = stream
        self._tail = tail
        self._sources = sources
        self._law = law
        self._lock = Lock()
        self._waiting: deque[_PendingSubmission] = deque()
        self._known: _CachedSnapshot | None = None

    @property
    def waiting(self) -> int:
        """Return how many submissions wait for their turn."""
        return len(self._waiting)

    def view(self) -> WriteSnapshot:
        """Return the rows as the index has them now."""
        index, memory = self._tail.index, Stream(self._stream.project)
        graphs = dict.fromkeys((self._stream.graph, memory.graph))  # what a memory describes is known to every stream
        index.settle()
        return WriteSnapshot(lambda s, p, o: [triple for graph in graphs for triple in index.taken(graph, s, p, o)])

    def load(self) -> WriteSnapshot:
        """Return the rows once the index is level with the journal; raises JournalDamaged where that cannot be."""
        for stream in dict.fromkeys((Stream(self._stream.project), self._stream)):
            self._tail.catch_up(stream)
        for found in self._tail.journal.damage(self._stream):
            raise found
        self._law.look()
        return self.view()

    def answer(self, ask: Callable[[WriteSnapshot], T]) -> T:
        """Return what *ask* finds in all that is known now.

        The index need not take in what waits where the last one whose turn it was knew all there is, and none has it.
        """
        if self._lock.acquire(blocking=False):
            try:
                version = self._tail.journal.head(self._stream)
                if self._known is not None and self._is_all(self._known, version):
                    return ask(self._known.view)
            finally:
                self._lock.release()
        self._tail.catch_up(self._stream)
        return ask(self.view())

    def _held(self, version: Version) -> _CachedSnapshot:
        """Return what is known at *version*, whose turn is held: what was known when it was reached, if that was here.

        Who was given it keeps it for the next one by `_keep`, once all that was added to it is durable.
        """
        self._law.look()  # whose turn it is has just looked at the journal
        known, self._known = self._known, None
        if known is not None and known.view.size < VIEW_TRIPLES and self._is_all(known, version):
            return known
        return _CachedSnapshot(version, self._tail.index.life, self._law.number, self.load())

    def _is_all(self, known: _CachedSnapshot, version: Version) -> bool:
        """Return whether *known* is all there is to know at *version*."""
        return (known.version, known.life, known.law) == (version, self._tail.index.life, self._law.number)

    def _keep(self, known: _CachedSnapshot, version: Version) -> None:
        """Let the next one use what is known, now at *version*; but other streams see memories, that others write."""
        if self._stream.name == "memory":
            self._known = replace(known, version=version)

    def submit(self, judges: Sequence[JudgeFn]) -> list[Outcome]:
        """Return what came of each submission, in order, when all that were accepted are durable."""
        tickets = [_PendingSubmission(judge) for judge in judges]
        self._waiting.extend(tickets)
        try:
            with self._lock:
                while any(ticket.outcome is None for ticket in tickets):
                    self._serve_one_block()
        except BaseException:  # interrupted: nobody waits for these any more
            for ticket in tickets:
                with suppress(ValueError):
                    self._waiting.remove(ticket)
            raise
        return [_outcome(ticket) for ticket in tickets]

    def submit_atomic(self, judges: Sequence[JudgeFn]) -> list[Receipt]:
        """Return the receipts of submissions kept in one commit; the first refusal is raised and nothing is kept."""
        return self.submit_planned(lambda view: judges)

    def submit_planned(self, plan: Plan) -> list[Receipt]:
        """Return the receipts of what *plan* finds is to be kept, all of it in one commit however large, or nothing.

        Nobody else writes between the plan and the commit. The first refusal is raised and nothing is kept.
        """
        with self._lock:
            while (receipts := self._kept_together(plan)) is None:
                pass
        return receipts

    def _kept_together(self, plan: Plan) -> list[Receipt] | None:
        """Return the receipts of one commit of all; None when the stream moved on and nothing was kept."""
        with self._tail.journal.turn(self._stream) as version:
            block, now = _Block(self._held(version)), self._sources.now()
            for position, judge in enumerate(plan(block.known.view)):
                try:
                    block.add(_PendingSubmission(judge), judge(block.known.view, now))
                except JidomemError as refusal:
                    refusal.position = position
                    raise
            if self._commit(block, version, now) is None:
                _raise_refusal(block)
                return None
            return [outcome for ticket, _ in block.members if isinstance(outcome := _outcome(ticket), Receipt)]

    def _serve_one_block(self) -> None:
        """Judge waiting submissions until the block is full, and commit them; every one served gets an outcome."""
        block: _Block | None = None
        try:
            with self._tail.journal.turn(self._stream) as version, gc_paused():
                block, now = _Block(self._held(version)), self._sources.now()
                while self._waiting and not block.full:
                    ticket = self._waiting.popleft()
                    block.judged.append(ticket)
                    try:
                        judged = ticket.judge(block.known.view, now)
                        if block.members and _characters(judged) > BLOCK_CHARACTERS:  # a commit of its own
                            self._waiting.appendleft(block.judged.pop())
                            break
                        block.add(ticket, judged)
                    except Exception as refusal:
                        ticket.outcome = refusal
                    except BaseException:  # interrupted before anything was kept: others serve what still waits
                        self._waiting.extendleft([ticket, *(member for member, _ in reversed(block.members))])
                        block.members.clear()
                        raise
                if self._commit(block, version, now) is None:
                    self._waiting.extendleft(t for t in reversed(block.judged) if t.outcome is None)
        except BaseException as failure:
            served = block.unserved() if block else []
            if not served and isinstance(failure, Exception):  # no turn: all that wait now would wait as long again
                served = [self._waiting.popleft() for _ in range(len(self._waiting))]
            for ticket in served:
                ticket.outcome = ticket.outcome or failure
            if not isinstance(failure, Exception):
                raise

    def _commit(self, block: _Block, version: Version, now: datetime) -> Version | None:
        """Make *block* durable and answer its members; return None when nothing was kept and they are to wait again.

        So it is when the stream moved on, and when a member does not read back as it was built: that one is refused.
        """
        if not block.triples:
            if block.members:
                self._tail.journal.confirm(self._stream)  # what they are told is here may be of one who was killed
            for ticket, judged in block.members:
                ticket.outcome = judged.receipt
            self._keep(block.known, version)
            return version
        index, graphs = self._tail.index, vocab.graphs_of(self._stream.project)
        others = (index.mark(graph).version for graph in graphs)  # of all streams of the project one moment is shown
        recorded_at = moment_after(now, *version.heads, *(head for other in others for head in other.heads))
        marks = [node for _, judged in block.members for node in judged.nodes]
        moments = [(node, jido("recordedAt"), date_time(recorded_at)) for node in marks]
        body = [*block.triples, *moments, *((node, jido("recordedIn"), vocab.THIS) for node in marks)]
        try:
            commit = commits.build(
                graph=self._stream.graph,
                parents=version,
                recorded_at=recorded_at,
                committer=plain_value(WRITER_AGENT),
                ontology_version=self._law.schema.version,
                body=body,
                nonce=self._sources.nonce(),
            )
        except commits.FormatError:
            if not block.reopen():
                raise
            return None
        after = self._tail.journal.append(self._stream, version, commit)
        if isinstance(after, VersionMismatch):
            block.reopen()
            return None
        with suppress(Exception):  # it is durable: the next look at the journal brings the index level
            self._tail.apply(self._stream, commit)
        own, view = iri(commit.iri), block.known.view
        view.add_new(own, (triple for triple in commit.triples if triple[0] == own))
        view.add([*moments, *((node, jido("recordedIn"), own) for node in marks)])
        if not is_redaction_record(commit.data):
            self._keep(block.known, after)
        for ticket, judged in block.members:
            receipt = judged.receipt
            ticket.outcome = receipt if receipt.commit else replace(receipt, commit=commit.id, version=after)
        return after


def _raise_refusal(block: _Block) -> None:
    """Raise the first refusal there is among the members, with its position."""
    for position, (ticket, _) in enumerate(block.members):
        if isinstance(ticket.outcome, JidomemError):
            ticket.outcome.position = position
            raise ticket.outcome


def _outcome(ticket: _PendingSubmission) -> Outcome:
    """Return the receipt or refusal of a served ticket; anything else that stopped it is raised."""
    if isinstance(ticket.outcome, (Receipt, JidomemError)):
        return ticket.outcome
    assert ticket.outcome is not None
    raise ticket.outcome
