"""The MemoryOS of one agent: its four tiers, the moves between them, and retrieval for a question.

`prepare_question` adds keywords and a vector to a question. `MemoryOSRegistry` has the open instances of a root.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from threading import Event, RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jidomem.base.background import PeriodicTask
from jidomem.base.clock import format_timestamp, monotonic_time
from jidomem.base.json_values import to_json_value
from jidomem.base.stems import Stemmer
from jidomem.errors import InvalidRequest, JidomemError, MemoryClosed, ModelUnavailable
from jidomem.extras.memoryos import config
from jidomem.extras.memoryos.config import Configurations, MemoryOSConfig, share
from jidomem.extras.memoryos.job_handlers import LEAST, FactPromoting, JobHandlers
from jidomem.extras.memoryos.jobs import Job, JobOutcome, JobRunner, Jobs, Task
from jidomem.extras.memoryos.personas import ObjectLearnings, learn
from jidomem.extras.memoryos.retrieval import (
    RetrievalQuery,
    RetrievalResults,
    SegmentVisit,
    hot,
    retrieve,
    touch_segments,
)
from jidomem.extras.memoryos.segments import TierPolicy, insert, known_page
from jidomem.extras.memoryos.transactions import AgentMoves, ForgetReport
from jidomem.extras.memoryos.values import (
    AgentPersona,
    DialoguePage,
    KnowledgeEntry,
    ObjectKey,
    ObjectPersona,
    SystemMemory,
    Tiers,
    TraitEntry,
    fit,
    key_of,
)
from jidomem.models.keywords import is_private, keywords
from jidomem.providers import Providers
from jidomem.records.interfaces import Embedder, LanguageModel, ModelPrompt, OutputLimits, StateStore
from jidomem.runtime import settings
from jidomem.runtime.model_choice import is_remote
from jidomem.working.tiers import PromotionDecision

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

#: The object of a page or of a question: a type and an identifier.
About = tuple[str, str]


class PreparedQuestion(NamedTuple):
    """A question, and the error of the model, if a part of it was made without the model."""

    question: RetrievalQuery
    error: str | None = None


def prepare_question(model: LanguageModel, query: str, about: About | None) -> PreparedQuestion:
    """Return the question *query* with its vector and keywords, without waiting for a remote language model.

    The keywords are found by rule if the model is remote or fails; without an embedder there is no vector.
    """
    config.text("query", query)
    error: str | None = None
    vector: Any = None
    try:
        keywords = _by_rule(query) if is_remote(model) else frozenset(model.extract_keywords(query))
    except ModelUnavailable as failed:
        keywords, error = _by_rule(query), failed.detail
    try:
        vector = model.calculate_embedding(query)
    except ModelUnavailable as failed:
        error = failed.detail
    return PreparedQuestion(RetrievalQuery(query, vector, keywords, *named(about)), error)


def _by_rule(query: str) -> frozenset[str]:
    return frozenset(keywords(Stemmer(), query, OutputLimits().keywords))


def refuse_other(model: object, policy: object) -> None:
    """Raise InvalidRequest if *model* is given and no language model, or *policy* is given and no TierPolicy."""
    if model is not None and not isinstance(model, LanguageModel):
        raise InvalidRequest(
            f"model={model!r:.100} is not a language model", hint="give a ChatModel or an OfflineModel, or leave it out"
        )
    if policy is not None and not isinstance(policy, TierPolicy):
        raise InvalidRequest(
            f"policy={policy!r:.100} is not a TierPolicy", hint="give policy=TierPolicy(MemoryOSConfig(stm_capacity=7))"
        )


def named(about: About | None) -> tuple[str | None, str | None]:
    """Return the type and the identifier of *about*; raises InvalidRequest if it is no pair."""
    if about is None:
        return None, None
    if not isinstance(about, tuple | list) or len(about) != 2:
        raise InvalidRequest(
            f"about={about!r:.200} is not an object", hint='give a type and an identifier: ("user", "ana")'
        )
    return about[0], about[1]


def lack_vectors(learnt: ObjectLearnings, embedder: Embedder) -> bool:
    """Return whether an entry has no vector; raise InvalidRequest for a vector of another length than *embedder*'s."""
    if not isinstance(learnt, ObjectLearnings):
        raise InvalidRequest(
            f"{learnt!r:.100} is not an ObjectLearnings", hint='give ObjectLearnings("user", "ana", {"name": "Ana"})'
        )
    entries: list[KnowledgeEntry | TraitEntry] = [*learnt.knowledge, *learnt.traits]
    for each in entries:
        if each.embedding is not None and len(each.embedding) != (size := embedder.dimensions()):
            raise InvalidRequest(
                f"{each.text!r:.100} has a vector of {len(each.embedding)} numbers, and {embedder.name} makes {size}",
                hint="leave the vector out: it is made here",
            )
    return any(each.embedding is None for each in entries)


QUEUE = "memory"
#: When the jobs of a move run: before it returns, on request, or in a thread.
WORK = ("inline", "queued", "background")
#: Seconds between two polls of the thread for due jobs.
LOOK = 1.0
#: The most seconds that closing waits for a running job, which is repeated later.
CLOSING_SECONDS = 5.0
#: How far a page may be dated ahead of the clock, as clocks differ.
AHEAD = timedelta(days=1)


class MemoryOS:
    """The tiers of one agent in one project, for any number of threads and processes.

    The work that follows a move is done as jobs: before the move returns (`work="inline"`), by `run_jobs()`
    (`"queued"`), or in a thread that also does the periodic maintenance (`"background"`). An error of a model fails a
    job, which is retried; nothing is lost, and pages can be retrieved meanwhile.
    """

    def __init__(
        self,
        memory: Jidomem,
        state: StateStore,
        project: str,
        agent: str,
        *,
        model: LanguageModel | None = None,
        policy: TierPolicy | None = None,
        providers: Providers | None = None,
        promote_at: float | None = None,
        work: str | None = None,
    ) -> None:
        """Open the tiers; the default model is the one chosen by the user, with the root's embedder.

        *work* is when jobs run: by default inline, or in the background if the model or embedder is remote, so that
        adding a page does not wait for it. *providers* store evicted segments: by default those of the root. With
        *promote_at* each maintenance proposes the facts with at least that confidence to the project.

        Raises InvalidRequest for an agent's name without letters or digits, and for an invalid option.
        """
        if work is not None and work not in WORK:
            raise InvalidRequest(f"work={work!r:.100} is not valid", hint=f"give one of {', '.join(WORK)}")
        refuse_other(model, policy)
        if promote_at is not None:
            share("promote_at", promote_at)
        self.model = model or settings.models(memory.settings, memory.embedder)[0]
        sources = memory.sources
        jobs = Jobs(state, QUEUE, sources.now)
        self._moves = AgentMoves(
            state,
            project,
            agent,
            policy=policy or TierPolicy(),
            embedder=self.model.embedder.name,
            jobs=jobs,
            now=sources.now,
            new_id=sources.new_id,
        )
        self.project, self.agent = project, self._moves.agent
        self._facts = FactPromoting(memory, self._moves, memory.settings.session or f"memoryos-{self.agent}")
        auto_promote = None if promote_at is None else partial(self._facts.promote, promote_at)
        self._handlers = JobHandlers(
            self._moves, self.model, providers or memory.providers(project=project), auto_promote
        )
        self._runner = JobRunner(state, project, self.agent, jobs, self._handlers.do)
        is_networked = is_remote(self.model) or is_remote(self.model.embedder)
        self.work = work or ("background" if is_networked else "inline")
        self._jobs, self._closing = jobs, Event()
        self._refuse, self._memory = memory.writer.refuse_words, memory
        self._unregister: Callable[[], object] = lambda: None
        self._timer = PeriodicTask(
            LOOK if self.work == "background" else None, self._poll, f"memory of {self.agent:.40}"
        )

    def add(
        self,
        query: str,
        response: str,
        *,
        about: About | None = None,
        timestamp: datetime | str | None = None,
        page_id: str | None = None,
    ) -> DialoguePage:
        """Return the page of one exchange once it is durable; *about* is the other party: `("user", "ana")`.

        *query* or *response* may be empty, if the other party or the agent said nothing.
        *page_id* may be the IRI of the exchange's turn, which is then the evidence of learned and promoted facts.
        Adding the same page again changes nothing, also without the *timestamp* (default: now). Raises TooLarge for a
        text that is too long, IntentRefused for a text that looks like a secret, and InvalidRequest without any text,
        or for a timestamp more than a day ahead of the clock.
        """
        now = self._moves.now()
        object_type, identifier = named(about)
        page = DialoguePage(
            self._moves.new_id() if page_id is None else page_id,
            self.agent,
            query,
            response,
            now if timestamp is None else timestamp,  # type: ignore[arg-type]  # the page reads it
            object_type=object_type,
            object_identifier=identifier,
        )
        if not page.text.strip():
            raise InvalidRequest("the page is empty", hint="give a query or a response")
        if page.timestamp > now + AHEAD:
            raise InvalidRequest(
                f"timestamp {format_timestamp(page.timestamp)} is in the future",
                hint=f"give the time of the dialogue; by the clock of this machine it is {format_timestamp(now)}",
            )
        self._refuse({"query": page.query, "response": page.response})

        def known_as(tiers: Tiers) -> DialoguePage:
            known = tiers.page(page.id) if timestamp is None else None
            return _with_known_object(replace(page, timestamp=known.timestamp) if known else page, tiers)

        tiers = self._moves.move(lambda tiers, policy: insert(tiers, known_as(tiers), policy))
        self._after_move()
        return known_as(tiers)

    def retrieve(
        self, query: str, *, about: About | None = None, asks: bool = True, visiting: bool = True, **given: Any
    ) -> RetrievalResults:
        """Return the matches of *query* in each tier, with scores.

        Pages and facts of users are those of *about*, the asking object, alone; with `share_users=True` those of others
        that are not private are included. *asks* is False if somebody else asks who may see what is known of *about*.
        *given* are settings for this query alone, such as `retrieved_pages=7`; *visiting* warms the matching segments.
        A failure of the model is reported in `error`: the keywords are then the
        words of the query, and without a vector there is no similarity.
        """
        tiers, system, policy = self._moves.snapshot()
        prepared = prepare_question(self.model, query, about)
        question = replace(_with_known_object(prepared.question, tiers), asks=asks)
        matches = retrieve(tiers, system, question, policy, is_private=is_private, **given)
        retrieved = replace(matches, error=prepared.error)
        if visiting and retrieved.visited:
            warmed = SegmentVisit(retrieved.visited, self._moves.now())
            self._moves.move(lambda tiers, policy: touch_segments(tiers, warmed, policy))
        return retrieved

    def prompt(self, query: str, **given: Any) -> ModelPrompt:
        """Return the prompt for a language model of *query* and its retrieved context; nothing is sent."""
        retrieved = self.retrieve(query, **given)
        recent = [each.what for each in (*retrieved.leaving, *retrieved.stm)]
        older, system = [each.what for each in retrieved.pages], [each.what.text for each in retrieved.system]
        return self.model.generate_final_prompt(query, recent, older, retrieved.known(), system)

    def answer(self, query: str, **given: Any) -> str:
        """Return the model's answer to `prompt(query)`; raises ModelUnavailable if there is none."""
        return self.model.answer(self.prompt(query, **given))

    def transfer_page_to_mtm(self, page_id: str) -> DialoguePage:
        """Return the page after its move into a segment; raises NotFound if the agent has no such page."""
        known_page(self._moves.tiers(), page_id)
        with self._runner.lock():
            self._handlers.transfer(page_id)
        self._after_move()
        return known_page(self._moves.tiers(), page_id)

    def maintain(self) -> list[JobOutcome]:
        """Run the maintenance and all due jobs, and return their outcomes."""
        self._moves.ask(Task("maintain"))
        return self._runner.run(wait=True)

    def run_jobs(self) -> list[JobOutcome]:
        """Run the due jobs and return their outcomes; none while another worker runs them."""
        return self._runner.run()

    def jobs(self) -> list[Job]:
        """Return the queued jobs, failed ones included."""
        return self._jobs.waiting(self.project, self.agent)

    def retry(self) -> list[JobOutcome]:
        """Run the jobs that have an error now, failed ones included, and return their outcomes."""
        self._jobs.retry(self.project, self.agent)
        return self._runner.run(wait=True)

    def learn(self, learnt: ObjectLearnings) -> Tiers:
        """Return the tiers after a persona has learned a profile, facts or traits from another source.

        Entries without a vector are embedded later. Raises InvalidRequest for a vector of another length than the
        embedder's, and for texts the errors of `add`.
        """
        tasks = [Task("embed")] if lack_vectors(learnt, self.model.embedder) else []
        texts = {"profile": json.dumps(to_json_value(learnt.profile, "profile"), ensure_ascii=False)}
        texts |= {f"knowledge[{number}]": fact.text for number, fact in enumerate(learnt.knowledge)}
        self._refuse(texts | {f"traits[{number}]": trait.text for number, trait in enumerate(learnt.traits)})
        self._moves.move(
            lambda tiers, policy: learn(tiers, _with_known_type(learnt, tiers), policy),
            then=lambda tiers, policy: tasks,
        )
        self._after_move()
        return self.tiers

    def promote(self, least: float = LEAST) -> list[PromotionDecision]:
        """Propose the facts of the personas with a confidence of *least* or more, and return the outcome of each.

        Each fact that is not private is proposed to the project once, with its pages as evidence; it is validated, and
        can be withdrawn, like every other memory.
        """
        return self._facts.promote(least)

    @property
    def tiers(self) -> Tiers:
        """Return the tiers of the agent."""
        return self._moves.tiers()

    @property
    def personas(self) -> tuple[ObjectPersona, ...]:
        """Return the personas of the objects that the agent has talked with."""
        return self.tiers.personas

    @property
    def persona(self) -> AgentPersona:
        """Return the persona of the agent itself."""
        return self.tiers.agent

    @property
    def system_memory(self) -> SystemMemory:
        """Return the memory that all agents of the project share."""
        return self._moves.snapshot()[1]

    @property
    def config(self) -> MemoryOSConfig:
        """Return the settings in effect for the agent."""
        return self._moves.snapshot()[2].config

    @property
    def configurations(self) -> Configurations:
        """Return the settings of the agents of the project and of their types: `get_agent_config(agent)`."""
        return self._moves.configurations()

    def configure(self, agent_type: str | None = None, **values: Any) -> MemoryOSConfig:
        """Set *values* for the agent, of *agent_type* if given, and return its settings.

        They take effect at once: pages and entries beyond a smaller capacity move on. Raises InvalidRequest.
        """
        self._moves.configure(lambda before: before.with_agent(self.agent, agent_type, **values))
        return self._fit()

    def configure_type(self, agent_type: str, **values: Any) -> MemoryOSConfig:
        """Set *values* for all agents of a type, and return the settings of this agent; raises InvalidRequest."""
        self._moves.configure(lambda before: before.with_type(agent_type, **values))
        return self._fit()

    def status(self) -> dict[str, Any]:
        """Return the sizes of the tiers, the queued and failed jobs, and the time of the last maintenance.

        `waiting` is the number of segments with pages to learn from whose heat is below `heat_threshold`.
        """
        (tiers, system, policy), jobs = self._moves.snapshot(), self.jobs()
        return {
            "agent": self.agent,
            "rev": tiers.rev,
            "stm": len(tiers.stm),
            "leaving": len(tiers.leaving),
            "segments": len(tiers.mtm),
            "pages": sum(1 for _ in tiers.pages()),
            "personas": len(tiers.personas),
            "facts": sum(1 for _ in tiers.facts()),
            "system": len(system.entries),
            "waiting": sum(1 for each in tiers.mtm if each.interactions) - len(hot(tiers, policy)),
            "jobs": sum(not job.failed for job in jobs),
            "failed": [job.to_dict() for job in jobs if job.failed],
            "error": next((job.error for job in reversed(jobs) if job.error), None),
            "maintained": self._moves.maintained(),
            "model": self.model.name,
            "embedder": self.model.embedder.name,
        }

    def forget_page(self, page_id: str) -> ForgetReport:
        """Forget a page, and the facts, traits and shared facts that rest on it; return the report.

        Facts that also rest on other pages are learned again from these; chains and summaries with the page are
        rewritten. Nothing of it is left in this root except promoted facts, which the report names. The journal records
        who did it, and how many were deleted. Raises NotFound.
        """
        with self._runner.lock():
            report = self._moves.forget_pages(page_id)
        return self._recorded(report)

    def forget_object(self, about: About) -> ForgetReport:
        """Forget a user or thing: its pages in all tiers and archived ones, its persona, and what rests on them.

        What is left are promoted facts, which the report names, and what others said of it. Raises NotFound if there is
        neither a page nor a persona of it.
        """
        with self._runner.lock():
            report = self._moves.forget_pages(about=ObjectKey(*map(partial(config.text, "about"), named(about))))
        return self._recorded(report)

    def _recorded(self, report: ForgetReport) -> ForgetReport:
        """Return *report*, once the journal has a record of it without its content."""
        self._after_move()
        facts = len(report.facts) + len(report.traits) + len(report.system)
        self._record(f"deleted from the MemoryOS of {self.agent}: {len(report.pages)} pages, {facts} facts and traits")
        return report

    def _record(self, deleted: str) -> None:
        writer = self._memory.writer
        self._memory.maintenance.record_removal(self.project, agent=writer.agent, reason=deleted)

    def forget(self) -> bool:
        """Remove the tiers, settings and archive of the agent from the root; return whether it had tiers.

        The facts that it shared with all agents stay.
        """
        with self._runner.lock():
            existed = self._moves.forget()
        if existed:
            self._record(f"deleted: the MemoryOS of {self.agent}")
        return existed

    def end(self) -> None:
        """Keep the background thread, if any, from starting further jobs."""
        self._closing.set()

    def close(self, seconds: float = CLOSING_SECONDS) -> None:
        """Stop the background thread, if any, after its running job; further jobs stay queued.

        A job that takes longer than *seconds*, as it waits for a model, is given up: it is repeated later.
        """
        self.end()
        self._timer.stop(seconds)
        self._unregister()

    def __enter__(self) -> MemoryOS:
        """Return the MemoryOS."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the MemoryOS."""
        self.close()

    def _after_move(self) -> None:
        """Run the jobs after a move. The move is durable, so an error here does not fail it: the jobs stay queued."""
        if self.work == "inline":
            with suppress(JidomemError):
                self._queue_due_maintenance()
                self._runner.run_inline()

    def _poll(self) -> None:
        with suppress(MemoryClosed):  # a job that `close` has given up
            self._queue_due_maintenance()
            self._runner.run(until=self._closing.is_set)

    def _queue_due_maintenance(self) -> None:
        last, seconds = self._moves.maintained(), self.config.maintenance_interval
        now = self._moves.now()
        if last is None or now - last >= timedelta(seconds=seconds) or now < last:
            self._moves.ask(Task("maintain"))

    def _fit(self) -> MemoryOSConfig:
        self._moves.move(lambda tiers, policy: fit(tiers, policy.config))
        self._after_move()
        return self.config


T = TypeVar("T", DialoguePage, RetrievalQuery)


def _with_known_object(item: T, tiers: Tiers) -> T:
    """Return a page or a question about its object as the tiers spell it."""
    if item.object is None:
        return item
    key = tiers.known_object(item.object)
    return replace(item, object_type=key.type, object_identifier=key.identifier)


def _with_known_type(learnt: ObjectLearnings, tiers: Tiers) -> ObjectLearnings:
    key = key_of(learnt.type, learnt.identifier)
    return learnt if key is None else replace(learnt, **tiers.known_object(key)._asdict())


class MemoryOSRegistry:
    """The open MemoryOS instances of a root, by project and agent."""

    def __init__(self, memory: Jidomem, state: StateStore) -> None:
        self._memory, self._state = memory, state
        self._open: dict[tuple[str, str], MemoryOS] = {}
        self._lock = RLock()

    def open(self, project: str, agent: str, **options: Any) -> MemoryOS:
        """Return the MemoryOS of an agent: the same instance until it is closed.

        Raises InvalidRequest if *options* are given for an open instance.
        """
        with self._lock:
            place = (project, agent)
            if place in self._open and options:
                hint = "leave the options out, or close it first"
                raise InvalidRequest(f"the tiers of {agent!r} are open already", hint=hint)
            if place not in self._open:
                instance = MemoryOS(self._memory, self._state, project, agent, **options)
                instance._unregister = lambda: self._closed(place, instance)
                self._open[place] = instance
            return self._open[place]

    def close(self) -> None:
        """Close all instances; waits for their running jobs together, at most CLOSING_SECONDS."""
        opened, until = [*self._open.values()], monotonic_time() + CLOSING_SECONDS
        for each in opened:
            each.end()
        for each in opened:
            each.close(max(until - monotonic_time(), 0.0))

    def _closed(self, place: tuple[str, str], closed: MemoryOS) -> None:
        with self._lock:
            if self._open.get(place) is closed:
                del self._open[place]
