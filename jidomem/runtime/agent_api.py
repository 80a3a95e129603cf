"""What agents hold and what they said, at an open root: working memories, contexts, conversations and entries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from jidomem.base.clock import Sources
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.records.interfaces import StateStore
from jidomem.runtime.settings import Settings

if TYPE_CHECKING:
    from jidomem.extras.memoryos.memory_os import MemoryOS, MemoryOSRegistry
    from jidomem.providers import Providers
    from jidomem.runtime.agent_memory import AgentMemory, Conversation, EntryStore
    from jidomem.runtime.location import InFolder, SharedLocation
    from jidomem.runtime.root import Jidomem
    from jidomem.runtime.tiers import ContextManager, Contexts
    from jidomem.write.writer import MemoryWriter


class AgentApi:
    """The part of an open root that nobody judges; most processes have no need of it, and load none of it."""

    settings: Settings
    place: InFolder | SharedLocation
    sources: Sources
    index: OxigraphIndex

    if TYPE_CHECKING:  # what the root has besides

        @property
        def project(self) -> str:
            """Return the project asked for when none is named."""

        @property
        def writer(self) -> MemoryWriter:
            """Return the only way into the memory."""

        def catch_up(self, project: str) -> object:
            """Bring the index level with *project*."""

    def agent(self, name: str | None = None, *, project: str | None = None) -> AgentMemory:
        """Return the working memory of the agent *name*, of the configured one unless given: `get`, `update`, `forget`.

        Raises InvalidRequest for a name that will not do, NotFound `invalid_project` for such a project.
        """
        from jidomem.runtime.agent_memory import AgentMemory  # what lasts has no need of it

        stream = Stream(project or self.project)
        return AgentMemory(self._state, stream.project, name or self.settings.agent, self.sources)

    def agents(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return each agent that holds something in *project*: `agent`, `rev`, `updated_at`, `open_tasks`."""
        from jidomem.runtime.agent_memory import holders

        found = []
        for name in holders(self._state, project or self.project):
            if (memory := self.agent(name, project=project).get()) is not None:
                at = datetime.fromtimestamp(memory.updated_at / 1000, UTC)
                found.append(
                    {"agent": name, "rev": memory.rev, "updated_at": at, "open_tasks": len(memory.tasks_open())}
                )
        return found

    def context(
        self, session: str, *, project: str | None = None, agent: str | None = None, **options: Any
    ) -> ContextManager:
        """Return the context of a session of *agent*: its short-term memory beside the long-term memory of *project*.

        Until it is closed it is the same one. *options* are promotion and interval, as `ContextManager` takes them.
        """
        return self._contexts.open(session, project or self.project, agent or self.settings.agent, **options)

    @cached_property
    def _contexts(self) -> Contexts:
        from jidomem.runtime.tiers import Contexts  # most processes have no need of one

        return Contexts(cast("Jidomem", self))

    def os(self, agent: str | None = None, *, project: str | None = None, **options: Any) -> MemoryOS:
        """Return the four tiers of *agent*, of the configured one unless given: what it talked about and learnt.

        Until it is closed it is the same one. *options* are model, policy, providers and work, as it takes them.
        """
        stream = Stream(project or self.project)
        return self._memory_oses.open(stream.project, agent or self.settings.agent, **options)

    def os_agents(self, project: str | None = None) -> list[str]:
        """Return the agents of *project* whose tiers hold or held something, by name."""
        from jidomem.extras.memoryos.storage import agents_with_tiers

        return agents_with_tiers(self._state, Stream(project or self.project).project)

    @cached_property
    def _memory_oses(self) -> MemoryOSRegistry:
        from jidomem.extras.memoryos.memory_os import MemoryOSRegistry  # most processes have no need of one

        return MemoryOSRegistry(cast("Jidomem", self), self._state)

    def providers(self, *, project: str | None = None) -> Providers:
        """Return who performs the directives of an agent: `inline`, `kept` in this root for it alone, and `graph`.

        The agent is the configured one, `graph` the memory of *project*; more can be registered. Nothing is opened
        before a directive asks. Raises NotFound `invalid_project` for such a project.
        """
        from jidomem.providers import GraphProvider, PersistentProvider, Providers

        name = Stream(project or self.project).project
        found = Providers()
        found.register(
            "kept", PersistentProvider(), {"state": self._state, "namespace": f"{name}/{self.settings.agent}"}
        )
        found.register("graph", GraphProvider(), {"memory": self, "project": name})
        return found

    @cached_property
    def _state(self) -> StateStore:
        from jidomem.extras.memoryos import jobs, storage
        from jidomem.providers.stores import TABLES
        from jidomem.runtime import agent_memory

        own = agent_memory.TABLES + storage.TIER_TABLES + storage.NOTE_TABLES + jobs.TABLES
        return self.place.state("working", own + TABLES)

    def conversation(
        self,
        session: str,
        project: str | None = None,
        *,
        writer: MemoryWriter | None = None,
        agent: str | None = None,
    ) -> Conversation:
        """Return the conversation of a work session, to record its turns, by *writer* if given, and to read them.

        *agent* takes part in it, the writer's own unless named: it opens the session, and answers.
        """
        from jidomem.runtime.agent_memory import Conversation  # as above

        name = project or self.project
        by, now = writer or self.writer, self.sources.now
        return Conversation(name, session, by, self.index, self.catch_up, now, agent=agent or by.agent)

    @cached_property
    def entries(self) -> EntryStore:
        """Return the store of what agents keep in their own words, in the history of the configured project."""
        return self.entry_store()

    def entry_store(self, project: str | None = None, *, writer: MemoryWriter | None = None) -> EntryStore:
        """Return the same of *project*, the configured one unless given, which *writer* keeps if given."""
        from jidomem.runtime.agent_memory import EntryStore  # most processes have no need of one

        by = writer or self.writer
        return EntryStore(project or self.project, by, cast("Jidomem", self))

    def _redact_held(self, project: str, shows: Callable[[str], bool], *, dry_run: bool = False) -> dict[str, int]:
        """Take each text that *shows* says yes to out of what the agents of *project* hold and keep in this root.

        Return how many entries of each kind changed, or with *dry_run* would.
        """
        from jidomem.runtime.agent_memory import redact_working_state
        from jidomem.runtime.state import remove_unused

        if not dry_run:
            remove_unused(self.settings.root)
        return redact_working_state(self._state, project, shows, dry_run=dry_run)

    def _close_held(self) -> None:
        """Let go of what was opened of it."""
        for name in ("_contexts", "_memory_oses", "_state"):
            if name in self.__dict__:
                self.__dict__[name].close()
