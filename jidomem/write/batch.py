"""A batch is a list of intents submitted by one call, each answered by a receipt or a refusal."""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from jidomem.errors import JidomemError
from jidomem.write.context import WritePart
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import (
    REFUSED,
    AnySubmission,
    Decision,
    IntentInput,
    IntentOrError,
    Outcome,
    Submission,
    SubmitOptions,
)
from jidomem.write.triples import check_round_trip

#: A function that returns the intents of a batch with their options; its argument is the growing list of outcomes.
IntentPlan = Callable[[Sequence[Outcome]], Iterable[tuple[IntentInput, SubmitOptions]]]
#: The number of intents of a stream that are read and submitted together.
PIECE = 500


class SubmissionResults(Iterator[Outcome]):
    """One receipt or refusal for each intent; the next piece is read and submitted once the last one is consumed.

    A receipt is of a durable commit. A caller that stops early calls `close`, or gets a ResourceWarning with the
    number of submitted intents; `submitted` counts them, including those whose outcomes were not returned yet.
    """

    def __init__(self, intents: Iterable[IntentOrError], batch: Batches, project: str, options: SubmitOptions) -> None:
        self.submitted = 0
        self._pending: deque[Outcome] = deque()
        self._end: Exception | None = StopIteration()  # until `iter` succeeds: `__del__` then gives no warning
        self._intents = iter(intents)
        self._batch, self._project, self._options = batch, project, options
        self._end = None

    def __next__(self) -> Outcome:
        """Return the next outcome; raise the error of the stream after all outcomes before it."""
        while not self._pending:
            if self._end is not None:
                end, self._end = self._end, StopIteration()
                raise end
            piece = self._read()
            self._pending.extend(self._batch.submit_piece(self._project, piece, self._options, self.submitted))
            self.submitted += len(piece)
        return self._pending.popleft()

    def close(self) -> None:
        """Stop reading and submitting."""
        self._pending.clear()
        self._end = StopIteration()

    def __del__(self) -> None:
        if self._pending or self._end is None:
            message = f"{self.submitted - len(self._pending)} of {self.submitted} submitted intents were answered"
            warnings.warn(
                f"{message}, and none after them was submitted: consume the outcomes", ResourceWarning, 2, self
            )

    def _read(self) -> list[IntentOrError]:
        """Return the next piece; an error of the stream is raised after the outcomes of the piece."""
        piece: list[IntentOrError] = []
        try:
            for intent in islice(self._intents, PIECE):
                piece.append(intent)
        except Exception as error:
            self._end = error
        else:
            self._end = StopIteration() if len(piece) < PIECE else None
        return piece


class Batches(WritePart):
    """The batches of intents of a writer."""

    def submit_many(
        self, project_id: str, intents: Iterable[IntentOrError], options: SubmitOptions, *, atomic: bool
    ) -> list[Outcome] | SubmissionResults:
        """See `MemoryWriter.submit_many`."""
        queue = self._context.queues.of(project_id)
        if atomic:
            return [*queue.submit_atomic(self._context.pipeline, self._submissions(project_id, intents, options))]
        if isinstance(intents, Collection):
            return self.submit_piece(project_id, intents, options, 0)
        return SubmissionResults(intents, self, project_id, options)

    def submit_piece(
        self, project_id: str, intents: Iterable[IntentOrError], options: SubmitOptions, first: int
    ) -> list[Outcome]:
        """Return the outcomes of a piece of a stream, whose first intent is at the position *first*."""
        submissions = self._submissions(project_id, intents, options)
        served = self._context.queues.of(project_id).submit(self._context.pipeline, submissions)
        return _with_positions([each.answer() for each in served], first)

    def submit_together(self, project_id: str, plan: IntentPlan, *, dry_run: bool = False) -> list[Outcome]:
        """See `MemoryWriter.submit_together`."""
        pipeline = self._context.pipeline

        def batch(outcomes: Sequence[Outcome]) -> Iterator[Submission]:
            for intent, options in plan(outcomes):
                yield pipeline.submission(project_id, intent, options)

        return self.commit_together(project_id, batch, dry_run=dry_run)

    def commit_together(self, project_id: str, batch: Batch, *, dry_run: bool = False) -> list[Outcome]:
        """Return one receipt or refusal for each submission of *batch*; the accepted ones share a commit.

        The refusal of one stops no other. With *dry_run* nothing is committed.
        """
        context, outcomes = self._context, list[Outcome]()
        queue = context.queues.of(project_id)

        def submissions(view: WriteSnapshot, now: datetime) -> Iterator[AnySubmission]:
            outcomes.clear()  # a plan may be judged again
            for submission in batch(outcomes):
                yield _Recorded(submission, outcomes)

        if dry_run:
            queue.dry_run(context.pipeline, submissions)
            return outcomes
        receipts = queue.submit_planned(context.pipeline, submissions)
        return [outcome if isinstance(outcome, JidomemError) else receipt
                for outcome, receipt in zip(outcomes, receipts, strict=True)]  # fmt: skip

    def _submissions(
        self, project_id: str, intents: Iterable[IntentOrError], options: SubmitOptions
    ) -> list[Submission]:
        submission = self._context.pipeline.submission
        return [submission(project_id, intent, options) for intent in intents]


#: A function that returns the submissions of a batch; its argument is the growing list of outcomes.
Batch = Callable[[Sequence[Outcome]], Iterable[AnySubmission]]


class _Recorded(NamedTuple):
    """A submission whose outcome is added to a list; if refused, it appends nothing and stops no other."""

    submission: AnySubmission
    outcomes: list[Outcome]

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        try:
            decision = pipeline.run(self.submission, view, now)
            check_round_trip(decision.triples)
        except JidomemError as refusal:
            self.outcomes.append(refusal)
            return REFUSED
        self.outcomes.append(decision.receipt)
        return decision


def _with_positions(outcomes: list[Outcome], first: int) -> list[Outcome]:
    """Return *outcomes*, each refusal with its position; an error that stopped several has none."""
    times = Counter(map(id, outcomes))
    for position, outcome in enumerate(outcomes, start=first):
        if isinstance(outcome, JidomemError) and times[id(outcome)] == 1:
            outcome.position = position
    return outcomes
