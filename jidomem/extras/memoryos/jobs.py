"""The durable queue of jobs in the working state of a root, and its worker.

A job stays in the queue until it is done, and is retried. A lock makes the worker of an agent the only one of all
threads and processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import get_ident
from typing import Any, NamedTuple

from jidomem.errors import JidomemError, ModelUnavailable
from jidomem.records.interfaces import StateStore, StateTables

TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, project TEXT NOT NULL, agent TEXT NOT NULL,
  kind TEXT NOT NULL, subject TEXT NOT NULL, payload TEXT NOT NULL, asked INTEGER NOT NULL DEFAULT 1,
  attempts INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL, failed INTEGER NOT NULL DEFAULT 0, error TEXT,
  UNIQUE (queue, project, agent, kind, subject)
);
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (queue, project, agent, failed, due);
"""
#: The most attempts of a job, and the longest delay between two of them in seconds.
MAX_ATTEMPTS, MAX_RETRY_SECONDS = 8, 3_600.0
#: The error of a job that was started, has not ended, and had no error before.
CUT_OFF = "it has not ended: it runs now, or its process ended"
#: The most jobs that a caller runs before its call returns: its own, and a share of what others left.
MOST_INLINE = 50
_FIELDS = "id, project, agent, kind, subject, payload, asked, attempts, due, failed, error"


class Task(NamedTuple):
    """A task for an agent: the kind of job, its subject, and its payload as JSON.

    An agent has one job of each kind and subject: a further request makes it run once more after the present run.
    """

    kind: str
    subject: str = ""
    payload: Any = None


class Job(NamedTuple):
    """A queued job: its attempts, the time when it is due, and its last error, if any.

    A `failed` job had too many attempts: it stays in the queue, and runs again only on request.
    """

    id: int
    project: str
    agent: str
    kind: str
    subject: str
    payload: Any
    requests: int
    attempts: int
    due: datetime
    failed: bool
    error: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain JSON values."""
        names = ("id", "agent", "kind", "subject", "attempts", "due", "failed", "error")
        return {name: getattr(self, name) for name in names}


class Jobs:
    """The jobs of one queue, for the threads of any number of processes.

    Only the worker that has the lock of an agent takes its jobs.
    """

    def __init__(self, state: StateStore, queue: str, now: Callable[[], datetime], *, most: int = MAX_ATTEMPTS) -> None:
        self._state, self._queue, self.now, self._most = state, queue, now, most

    def ask(self, store: StateTables, project: str, agent: str, *tasks: Task) -> None:
        """Queue *tasks* in the caller's transaction, so that they are stored together with their cause."""
        at = self.now().timestamp()
        for task in tasks:
            payload = json.dumps(task.payload, ensure_ascii=False)
            store.execute(
                "INSERT INTO jobs (queue, project, agent, kind, subject, payload, due) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (queue, project, agent, kind, subject) DO UPDATE SET asked = jobs.asked + 1,"
                " payload = excluded.payload, failed = 0,"
                " attempts = CASE WHEN jobs.failed = 1 THEN 0 ELSE jobs.attempts END,"
                " due = CASE WHEN jobs.failed = 1 OR excluded.due < jobs.due THEN excluded.due ELSE jobs.due END",
                (self._queue, project, agent, task.kind, task.subject, payload, at),
            )

    def take(self, project: str, agent: str, began: datetime | None = None, but: Collection[str] = ()) -> Job | None:
        """Return the oldest due job of an agent, and count the attempt; None if there is none.

        Excluded are the kinds *but*, and retries that fell due after *began*, the start of the caller's run. Until
        `done` is called the job counts as failed and is due again later, because a process may end at any time.
        """
        now = self.now()
        exclusion = f" AND kind NOT IN ({', '.join('?' * len(but))})" if but else ""
        with self._state.changing() as store:
            row = store.execute(
                f"SELECT {_FIELDS} FROM jobs WHERE queue = ? AND project = ? AND agent = ? AND failed = 0 AND due <= ?"
                f" AND (attempts = 0 OR due <= ?){exclusion} ORDER BY id LIMIT 1",
                (self._queue, project, agent, now.timestamp(), (began or now).timestamp(), *but),
            ).fetchone()
            if row is None:
                return None
            job = _job(row)
            tries = job.attempts + 1
            store.execute(
                "UPDATE jobs SET attempts = ?, due = ?, failed = ?, error = coalesce(error, ?) WHERE id = ?",
                (tries, _retry_at(now, tries), int(tries >= self._most), CUT_OFF, job.id),
            )
            return job

    def done(self, store: StateTables, job: Job) -> None:
        """Remove a job, in the caller's transaction; if it was requested again meanwhile, make it due instead."""
        count = store.execute("DELETE FROM jobs WHERE id = ? AND asked = ?", (job.id, job.requests)).rowcount
        if not count:
            row = (self.now().timestamp(), job.id)
            store.execute("UPDATE jobs SET attempts = 0, failed = 0, error = NULL, due = ? WHERE id = ?", row)

    def failed(self, job: Job, error: str) -> None:
        """Record the error of a job, which is retried after a delay that doubles; too many attempts end it."""
        row = (error[:1_000], _retry_at(self.now(), job.attempts + 1), job.id)
        with self._state.changing() as store:
            store.execute("UPDATE jobs SET error = ?, due = ? WHERE id = ?", row)

    def waiting(self, project: str, agent: str | None = None) -> list[Job]:
        """Return the jobs of a project, or of an agent, in the order of their requests, failed ones included."""
        with self._state.reading() as store:
            if store is None:
                return []
            rows = store.execute(
                f"SELECT {_FIELDS} FROM jobs WHERE queue = ? AND project = ? AND agent = coalesce(?, agent)"
                " ORDER BY id",
                (self._queue, project, agent),
            )
            return [_job(row) for row in rows]

    def is_due(self, project: str, agent: str, began: datetime | None = None, but: Collection[str] = ()) -> bool:
        """Return whether there is a job that `take` would return."""
        now = self.now()
        return any(
            not job.failed and job.due <= (now if job.attempts == 0 else min(began or now, now)) and job.kind not in but
            for job in self.waiting(project, agent)
        )

    def retry(self, project: str, agent: str) -> int:
        """Make all jobs of an agent that have an error due now, failed ones included; return their number."""
        with self._state.changing() as store:
            return store.execute(
                "UPDATE jobs SET attempts = 0, failed = 0, due = ? WHERE queue = ? AND project = ? AND agent = ?"
                " AND error IS NOT NULL",
                (self.now().timestamp(), self._queue, project, agent),
            ).rowcount

    def drop(self, store: StateTables, project: str, agent: str, subjects: Iterable[str]) -> None:
        """Remove the jobs of *subjects*, in the caller's transaction."""
        for subject in subjects:
            row = (self._queue, project, agent, subject)
            store.execute("DELETE FROM jobs WHERE queue = ? AND project = ? AND agent = ? AND subject = ?", row)

    def forget(self, store: StateTables, project: str, agent: str) -> None:
        """Remove all jobs of an agent, in the caller's transaction."""
        row = (self._queue, project, agent)
        store.execute("DELETE FROM jobs WHERE queue = ? AND project = ? AND agent = ?", row)


def _job(row: tuple[Any, ...]) -> Job:
    id_, project, agent, kind, subject, payload, requests, attempts, due, failed, error = row
    at = datetime.fromtimestamp(due, UTC)
    return Job(id_, project, agent, kind, subject, json.loads(payload), requests, attempts, at, bool(failed), error)


def _retry_at(now: datetime, tries: int) -> float:
    return (now + timedelta(seconds=min(2.0 ** (tries - 1), MAX_RETRY_SECONDS))).timestamp()


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job: done if `error` is None, else it is retried later.

    `is_away` is whether a model could not be reached or gave an unusable answer.
    """

    kind: str
    subject: str
    error: str | None = None
    is_away: bool = False

    @property
    def ok(self) -> bool:
        """Return whether the job is done."""
        return self.error is None


class JobRunner:
    """The worker that runs the due jobs of an agent by *do*, which removes each finished job."""

    def __init__(self, state: StateStore, project: str, agent: str, jobs: Jobs, do: Callable[[Job], None]) -> None:
        self._state, self._agent, self._jobs, self._do = state, (project, agent), jobs, do
        self._inline_thread: int | None = None  # the thread whose turn it is

    def run(self, *, wait: bool = False, until: Callable[[], bool] = lambda: False) -> list[JobOutcome]:
        """Run the due jobs in the order of the queue, each once, and return their outcomes.

        If another worker has the lock, it runs the jobs; with *wait* this one waits for the lock. After releasing the
        lock the worker checks the queue once more, for jobs left to it meanwhile. No job starts once *until* returns
        True.
        """
        return self._run(wait, until, None)

    def run_inline(self) -> list[JobOutcome]:
        """Run up to MOST_INLINE due jobs for a caller that waits, and return their outcomes.

        Such callers take turns, so that the jobs of each have run when it returns, and none runs those of all. If
        another worker has the lock, it runs the jobs. The caller waits only once for an unreachable model: other jobs
        of that kind are left for later. A model that calls this during a job leaves the jobs to that worker.
        """
        if self._inline_thread == get_ident():
            return []
        with self._state.lock(*self._agent, "inline", wait=True):
            self._inline_thread = get_ident()
            try:
                return self._run(False, lambda: False, MOST_INLINE)
            finally:
                self._inline_thread = None

    def _run(self, wait: bool, until: Callable[[], bool], most: int | None) -> list[JobOutcome]:
        outcomes: list[JobOutcome] = []
        began, away = self._jobs.now(), set[str]()

        def is_over() -> bool:
            return until() or len(outcomes) == most

        while True:
            with self._state.lock(*self._agent, wait=wait) as is_acquired:
                if not is_acquired:
                    return outcomes
                while not is_over() and (job := self._jobs.take(*self._agent, began, away)) is not None:
                    outcomes.append(self._run_job(job))
                    away |= {job.kind} if most is not None and outcomes[-1].is_away else set()
            if is_over() or not self._jobs.is_due(*self._agent, began, away):
                return outcomes

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Acquire the lock of the agent's jobs, so that no other worker runs them."""
        with self._state.lock(*self._agent, wait=True):
            yield

    def _run_job(self, job: Job) -> JobOutcome:
        try:
            self._do(job)
        except Exception as error:  # any error of a job is recorded, and the next jobs run all the same
            message = str(error) if isinstance(error, JidomemError) else f"{type(error).__name__}: {error}"
            self._jobs.failed(job, message)
            return JobOutcome(job.kind, job.subject, message, isinstance(error, ModelUnavailable))
        return JobOutcome(job.kind, job.subject)
