"""The write context is the agent, the pipeline and the commit queues that the parts of the writer share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import NamedTuple, Protocol

from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.records.active import SimilarMemory
from jidomem.records.intent import Receipt
from jidomem.records.policy import CURATORS, AccessPolicy
from jidomem.write import permissions
from jidomem.write.group_commit import CommitQueues
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import AnySubmission, IntentInput

#: The active memories near to an intent, the nearest first; None if they were not looked up.
Similar = tuple[SimilarMemory, ...] | None


class SimilarQuestion(NamedTuple):
    """A call of `put` with the memories similar to *intent*, which has no *receipt* before it is judged.

    `reading` gives the rows of the project.
    """

    put: Callable[[Similar], object]
    project: str
    intent: IntentInput
    receipt: Receipt | None
    reading: Callable[[], AbstractContextManager[WriteSnapshot]]


class SimilarSearch(Protocol):
    """The search for memories that are similar to a new one."""

    #: The treatment of a kind of which the policy says nothing.
    default: str
    #: The seconds for which a receipt waits for one; whether the last one took longer; whether a wait was interrupted.
    within: float
    is_late: bool
    was_interrupted: bool
    #: One for each search that may run besides those that are running.
    slots: Semaphore
    #: The threads that run `answer_all` and wait for a question, each by its queue; None ends it.
    idle: dict[SimpleQueue[SimilarQuestion | None], Thread]

    def treatment(self, intent: IntentInput) -> str:
        """Return what the policy says of memories similar to *intent*: `ask`, `propose` or `off`."""

    def judge(self, project: str, intent: IntentInput, receipt: Receipt) -> None:
        """Have a model, if there is one, compare a proposal with the memories similar to it, in the background."""

    def answer_all(self, question: SimilarQuestion) -> None:
        """Answer *question* and those that follow soon.

        For each, the caller has acquired one of the `slots`, which is released once it is answered.
        """

    def are_near(self, project: str, one: IntentInput, other: IntentInput) -> bool:
        """Return whether two memories are a near pair of the review, or near to each other as receipts tell it."""


class WriteContext(NamedTuple):
    """The agent and session of writes that name none, the pipeline, and the commit queues.

    `owner` is the user of the machine, who may name the first curator. `search` finds similar memories.
    """

    agent: str
    owner: str
    session_name: str | None
    pipeline: Pipeline
    queues: CommitQueues
    search: SimilarSearch | None = None

    @property
    def session(self) -> str:
        """Return the session of writes that name none: the configured one, else a daily session of the agent."""
        return self.session_of(self.agent)

    def session_of(self, agent: str) -> str:
        """Return the session of writes of *agent*, an IRI or a name, that name none, as `session` does."""
        return self.session_name or f"{vocab.local_name(agent)}-{self.now().date().isoformat()}"

    @property
    def agent_node(self) -> Term:
        """Return the IRI of the agent; raises IntentRefused for an invalid name."""
        return self.pipeline.node(self.agent, "agents")

    def now(self) -> datetime:
        """Return the present moment."""
        return self.queues.sources.now()

    def new_id(self) -> str:
        """Return a new id."""
        return self.queues.sources.new_id()

    def snapshot(self, project: str) -> WriteSnapshot:
        """Return the rows, including all commits of other writers."""
        return self.queues.of(project).snapshot()

    def submit(
        self, project: str, submission: AnySubmission, *, stream: str = "memory", dry_run: bool = False
    ) -> Receipt:
        """Return the receipt of *submission*, durable, or raise its refusal. With *dry_run* nothing is committed."""
        queue = self.queues.of(project, stream)
        if dry_run:
            return queue.dry_run_one(self.pipeline, submission)
        return queue.submit(self.pipeline, [submission])[0].receipt()

    def authority(self, project: str) -> AccessPolicy:
        """Return the present policy of *project*: which agents may assert, propose or write nothing."""
        with self.queues.of(project).reading() as view:
            return permissions.authority(view, self.pipeline.policy)

    def is_curator(self, view: WriteSnapshot, agent: str) -> bool:
        """Return whether *agent* is a curator of the project of *view*."""
        rules, node = permissions.authority(view, self.pipeline.policy), self.pipeline.node(agent, "agents")
        return permissions.role_in_use(plain_value(node), rules, self.pipeline.speaker) in CURATORS


class WritePart:
    """A part of the writer: the writes of some kinds, in one context."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context


def project_node(project: str) -> Term:
    """Return the IRI of a project."""
    return iri(f"{vocab.BASE}projects/{project}")
