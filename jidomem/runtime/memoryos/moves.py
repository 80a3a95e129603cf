"""Moves of an agent's tiers: each in one transaction with the jobs that it gives rise to, and none of them lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from jidomem.errors import Busy, NotFound
from jidomem.keeping import Keeping, Store
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.configurations import Configurations
from jidomem.memoryos.forgetting import Forgetting, chained, forget_page, unsay
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import SystemMemory, Tiers
from jidomem.moments import parse_moment, stamp
from jidomem.runtime.memoryos import notes
from jidomem.runtime.memoryos.forgetting import Archive, Forgotten, following, forgotten
from jidomem.runtime.memoryos.jobs import Job, Jobs, Task
from jidomem.runtime.memoryos.kept import Kept, M, Moved, agent_tiers, system_memory
from jidomem.runtime.memoryos.vectors import bare, bare_system
from jidomem.spaces.step import Step

#: A move as it is made on what is kept when its turn comes: quick, and without asking anybody.
Move = Callable[[Tiers, Policy], Step[Tiers]]
SystemMove = Callable[[SystemMemory, Tiers, Policy], Step[SystemMemory]]
#: What else a move gives rise to, of the tiers after it.
Then = Callable[[Tiers, Policy], Iterable[Task]]
#: What is noted of an agent; whose vectors it has, of system memory, too, which is held by nobody.
EMBEDDER, _MAINTAINED, _PROMOTED, _ALL = "embedder", "maintained", "promoted", ""
_ARCHIVED = "DELETE FROM key_values WHERE substr(namespace, 1, length(?)) = ? AND substr(key, 1, length(?)) = ?"


class AgentMoves:
    """The tiers of one agent, system memory and the settings of a project, as far as that agent moves them.

    What a move needs of a model is asked before. The move itself is made on what is kept in its transaction, so that
    no other process comes between; where the answer no longer fits that, it raises RevisionConflict.
    """

    def __init__(
        self,
        state: Keeping,
        project: str,
        agent: str,
        *,
        policy: Policy,
        embedder: str,
        jobs: Jobs,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._state, self._policy, self._embedder = state, policy, embedder
        self.kept, self.system = agent_tiers(state, project, agent, new_id), system_memory(state, project, new_id)
        self.project, self.agent, self.jobs, self.now, self.new_id = project, self.kept.holder, jobs, now, new_id

    def look(self) -> tuple[Tiers, SystemMemory, Policy]:
        """Return the tiers of the agent, system memory, and what its moves go by, all of one moment.

        Vectors of another embedder than that of this process are let go of, and asked for anew.
        """
        with self._state.reading() as store:
            if not self._others(store):
                return self.kept.read_in(store), self.system.read_in(store), self._policy_now(store)
        self._let_go_of_vectors()
        return self.look()

    def tiers(self) -> Tiers:
        """Return the tiers of the agent."""
        return self.look()[0]

    def maintained(self) -> datetime | None:
        """Return when the agent was last maintained, None where it never was."""
        with self._state.reading() as store:
            return parse_moment(notes.note(store, self.project, _MAINTAINED, self.agent))

    def move(
        self,
        how: Move,
        *,
        then: Then = lambda tiers, policy: (),
        done: Job | None = None,
        maintained: datetime | None = None,
    ) -> Tiers:
        """Return the tiers after a move, once they and the jobs that they give rise to are on disk, all or nothing.

        *done* is the job that this was. Raises what *how* raises; then nothing has changed.
        """

        def noted(store: Store, moved: Moved[Tiers], policy: Policy) -> None:
            after = moved.step.memory
            archive = [Task("archive")] if moved.step.directives else []
            tasks = *arising(moved.before, after), *then(after, policy), *archive
            self.jobs.ask(store, self.project, self.agent, *tasks)
            if maintained is not None:
                notes.keep(store, self.project, _MAINTAINED, self.agent, stamp(maintained))

        return self._moved(self.kept, lambda store, tiers, policy: how(tiers, policy), done, noted)

    def move_system(self, how: SystemMove, *, done: Job | None = None) -> SystemMemory:
        """Return system memory after a move, as `move` does the tiers; it is made on what the agent holds then."""
        return self._moved(
            self.system, lambda store, system, policy: how(system, self.kept.read_in(store), policy), done
        )

    def _moved(
        self,
        kept: Kept[M],
        how: Callable[[Store, M, Policy], Step[M]],
        done: Job | None,
        noted: Callable[[Store, Moved[M], Policy], None] = lambda store, moved, policy: None,
    ) -> M:
        """Return what *kept* is after a move, with what is *noted* of it, and with its job let go of."""
        with self._changing() as store:
            policy = self._policy_now(store)
            moved = kept.move_in(store, lambda before: how(store, before, policy))
            noted(store, moved, policy)
            if done is not None:
                self.jobs.done(store, done)
        kept.saw(moved)
        return moved.step.memory

    def finish(self, job: Job) -> None:
        """Let go of a job that changed nothing."""
        with self._state.changing() as store:
            self.jobs.done(store, job)

    def ask(self, *tasks: Task) -> None:
        """Ask for jobs of the agent."""
        with self._state.changing() as store:
            self.jobs.ask(store, self.project, self.agent, *tasks)

    def configurations(self) -> Configurations:
        """Return what is set for the agents of the project and their types, over the application's settings."""
        with self._state.reading() as store:
            return notes.configurations(store, self.project, self._policy.config)

    def configure(self, how: Callable[[Configurations], Configurations]) -> MemoryOSConfig:
        """Return the settings of the agent once the settings of the project are what *how* makes of them."""
        with self._state.changing() as store:
            after = how(notes.configurations(store, self.project, self._policy.config))
            notes.configure(store, self.project, after)
        return after.get_agent_config(self.agent)

    def promoted(self) -> Mapping[str, str]:
        """Return the facts that were proposed to the project, by their ids, and the memory that each became."""
        with self._state.reading() as store:
            found: Mapping[str, str] = notes.note(store, self.project, _PROMOTED, self.agent) or {}
            return found

    def note_promoted(self, fact_id: str, iri: str) -> None:
        """Keep that a fact was proposed, and the memory that it became, as long as the agent knows it."""
        with self._state.changing() as store:
            held = {fact.id for persona in self.kept.read_in(store).personas for fact in persona.knowledge}
            before: Mapping[str, str] = notes.note(store, self.project, _PROMOTED, self.agent) or {}
            left = {**{known: its for known, its in before.items() if known in held}, fact_id: iri}
            notes.keep(store, self.project, _PROMOTED, self.agent, left)

    def forget_page(self, page_id: str) -> Forgotten:
        """Return what went with a page, once none of it is left in the file; raises NotFound where there is no trace.

        What is to be told or learnt anew without it is asked for.
        """
        with self._changing() as store:
            policy, archive = self._policy_now(store), Archive(store, self.project, self.agent)
            pages = [*self.kept.read_in(store).pages(), *archive.pages()]
            gone = Forgetting(page_id, self.now(), chained(pages, page_id))
            own = self.kept.move_in(store, lambda tiers: forget_page(tiers, gone, policy))
            shared = self.system.move_in(store, lambda system: unsay(system, page_id))
            archived = archive.take_out(gone, policy)
            if own.step.memory is own.before and shared.step.memory is shared.before and not archived:
                raise NotFound(f"{self.agent} has no page {page_id}", hint="see the ids of those it has: retrieve(...)")
            promoted: Mapping[str, str] = notes.note(store, self.project, _PROMOTED, self.agent) or {}
            told = forgotten(
                page_id,
                (own.before, own.step.memory),
                (shared.before, shared.step.memory),
                archived,
                promoted,
            )
            left = {fact: iri for fact, iri in promoted.items() if fact not in told.facts}
            notes.keep(store, self.project, _PROMOTED, self.agent, left or None)
            self.jobs.ask(store, self.project, self.agent, *following(own.before, own.step.memory), Task("diffuse"))
        self.kept.saw(own)
        self.system.saw(shared)
        self._state.scrub()
        return told

    def forget(self) -> bool:
        """Return whether the agent held anything; nothing of it is in the file now, what was archived there neither."""
        with self._state.changing() as store:
            self.jobs.forget(store, self.project, self.agent)
            own = f"memoryos:{self.agent}:"
            store.execute(_ARCHIVED, (f"{self.project}/", f"{self.project}/", own, own))
            for kind in (EMBEDDER, _MAINTAINED, _PROMOTED, "agent"):
                notes.keep(store, self.project, kind, self.agent, None)
        return self.kept.forget()

    def _policy_now(self, store: Store | None) -> Policy:
        settings = notes.configurations(store, self.project, self._policy.config)
        return replace(self._policy, config=settings.get_agent_config(self.agent))

    @contextmanager
    def _changing(self) -> Iterator[Store]:
        """Give a transaction in which what is held has the vectors of this embedder, or none."""
        with self._state.reading() as store:
            others = self._others(store)
        if others:
            self._let_go_of_vectors()
        with self._state.changing() as store:
            if others := self._others(store):
                raise Busy(f"another process embeds with {others[0]!r:.100}", hint="give all of them one embedder")
            for holder in (self.agent, _ALL):
                if notes.note(store, self.project, EMBEDDER, holder) is None:
                    notes.keep(store, self.project, EMBEDDER, holder, self._embedder)
            yield store

    def _others(self, store: Store | None) -> list[str]:
        """Return the embedders that vectors are of, and that are not the one of this process."""
        held = [notes.note(store, self.project, EMBEDDER, holder) for holder in (self.agent, _ALL)]
        return [each for each in held if each not in (None, self._embedder)]

    def _let_go_of_vectors(self) -> None:
        """Let go of vectors of another embedder, and ask for those of this one."""
        with self._state.changing() as store:
            policy = self._policy_now(store)
            own = self.kept.move_in(store, lambda tiers: bare(tiers, policy.config))
            shared = self.system.move_in(store, bare_system)
            for holder in (self.agent, _ALL):
                notes.keep(store, self.project, EMBEDDER, holder, self._embedder)
            self.jobs.ask(store, self.project, self.agent, Task("embed"))
        self.kept.saw(own)
        self.system.saw(shared)


def arising(before: Tiers, after: Tiers) -> list[Task]:
    """Return the jobs that a move gives rise to: pages to describe and to transfer, facts to tell to all."""
    known = {page.id for page in (*before.stm, *before.leaving)}
    waited = {page.id for page in before.leaving}
    tasks = [Task("describe", page.id) for page in (*after.leaving, *after.stm) if page.id not in known]
    tasks += [Task("transfer", page.id) for page in after.leaving if page.id not in waited]
    if _told(after) - _told(before):
        tasks.append(Task("diffuse"))
    return tasks


def _told(tiers: Tiers) -> set[tuple[str, bool]]:
    return {(fact.id, fact.private) for persona in tiers.personas for fact in persona.knowledge}
