"""Whoever does the jobs of one agent: one at a time, of all threads of all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jidomem.errors import JidomemError, ModelUnavailable
from jidomem.keeping import Keeping
from jidomem.runtime.memoryos.jobs import Job, Jobs


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: it is done where there is no error, else it is tried again later.

    `is_away` tells that a model could not be asked, or gave what cannot be used.
    """

    kind: str
    subject: str
    error: str | None = None
    is_away: bool = False

    @property
    def ok(self) -> bool:
        """Return whether it is done."""
        return self.error is None


class JobRunner:
    """Does the jobs of an agent that are due, by *do*, which lets go of each that it has done."""

    def __init__(self, state: Keeping, project: str, agent: str, jobs: Jobs, do: Callable[[Job], None]) -> None:
        self._state, self._of, self._jobs, self._do = state, (project, agent), jobs, do

    def run(
        self, *, wait: bool = False, hurried: bool = False, until: Callable[[], bool] = lambda: False
    ) -> list[Outcome]:
        """Return what became of the jobs that are due, in the order they were asked for; none is tried twice.

        Somebody else may be doing them: they are left to them, or waited for. Whoever has done the last one looks once
        more after letting go of the turn, so that what was left to them meanwhile is done. Who is *hurried* waits once
        for a model that is away: other jobs of that kind are left for later. Once *until* says so, none is begun.
        """
        outcomes: list[Outcome] = []
        began, away = self._jobs.now(), set[str]()
        while True:
            with self._state.turn(*self._of, wait=wait) as mine:
                if not mine:
                    return outcomes
                while not until() and (job := self._jobs.take(*self._of, began, away)) is not None:
                    outcomes.append(self._tried(job))
                    away |= {job.kind} if hurried and outcomes[-1].is_away else set()
            if until() or not self._jobs.is_due(*self._of, began, away):
                return outcomes

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until nobody does jobs of the agent, and keep everybody from it until the block ends."""
        with self._state.turn(*self._of, wait=True):
            yield

    def _tried(self, job: Job) -> Outcome:
        try:
            self._do(job)
        except Exception as error:  # whatever a job meets is told, and the next ones are done all the same
            why = str(error) if isinstance(error, JidomemError) else f"{type(error).__name__}: {error}"
            self._jobs.failed(job, why)
            return Outcome(job.kind, job.subject, why, isinstance(error, ModelUnavailable))
        return Outcome(job.kind, job.subject)
