"""The agents of an open root: working memories, contexts, tiers, conversations, entries and providers.

The memory policy does not apply here. Each part is imported on first use, as most processes need none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jidomem.journal.journal import Stream

if TYPE_CHECKING:
    from jidomem.extras.memoryos.memory_os import MemoryOS, MemoryOSRegistry
    from jidomem.providers import Providers
    from jidomem.records.interfaces import StateStore
    from jidomem.runtime.agent_memory import AgentMemory, Conversation, EntryStore
    from jidomem.runtime.root import Jidomem
    from jidomem.runtime.tiers import ContextManager, Contexts
    from jidomem.write.writer import MemoryWriter


class AgentApi:
    """The tools of agents in the open root *memory*, built on its public interface."""

    def __init__(self, memory: Jidomem) -> None:
        self._memory = memory

    @cached_property
    def state(self) -> StateStore:
        """Return the working state of all agents: a database with the tables of every part."""
        from jidomem.providers.stores import TABLES
        from jidomem.runtime import agent_memory

        tables = agent_memory.TABLES + TABLES
        with suppress(ModuleNotFoundError):  # an optional package has its own tables
            from jidomem.extras.memoryos import jobs, storage

            tables += storage.TIER_TABLES + storage.NOTE_TABLES + jobs.TABLES
        return self._memory.place.state("working", tables)

    @cached_property
    def _contexts(self) -> Contexts:
        from jidomem.runtime.tiers import Contexts

        return Contexts(self._memory)

    @cached_property
    def _memory_oses(self) -> MemoryOSRegistry:
        from jidomem.extras.memoryos.memory_os import MemoryOSRegistry

        return MemoryOSRegistry(self._memory, self.state)

    def agent(self, project: str, name: str) -> AgentMemory:
        """Return the working memory of the agent *name*."""
        from jidomem.runtime.agent_memory import AgentMemory

        return AgentMemory(self.state, Stream(project).project, name, self._memory.sources)

    def agents(self, project: str) -> list[dict[str, Any]]:
        """Return the agents of *project* that have a working memory, with its revision and counts."""
        from jidomem.runtime.agent_memory import holders

        rows = []
        for name in holders(self.state, project):
            if (memory := self.agent(project, name).get()) is not None:
                at = datetime.fromtimestamp(memory.updated_at / 1000, UTC)
                row = {"agent": name, "rev": memory.rev, "updated_at": at, "open_tasks": len(memory.tasks_open())}
                rows.append(row)
        return rows

    def context(self, session: str, project: str, agent: str, **options: Any) -> ContextManager:
        """Return the context of a session of *agent*; the same one while it is open."""
        return self._contexts.open(session, project, agent, **options)

    def memory_os(self, project: str, agent: str, **options: Any) -> MemoryOS:
        """Return the MemoryOS of *agent*; the same one while it is open."""
        return self._memory_oses.open(Stream(project).project, agent, **options)

    def memory_os_agents(self, project: str) -> list[str]:
        """Return the agents of *project* that have or had a MemoryOS, by name."""
        from jidomem.extras.memoryos.storage import agents_with_tiers

        return agents_with_tiers(self.state, Stream(project).project)

    def providers(self, project: str, agent: str) -> Providers:
        """Return the providers of *agent*: `inline`, `kept` and `graph`."""
        from jidomem.providers import GraphProvider, PersistentProvider, Providers

        name = Stream(project).project
        providers = Providers()
        providers.register("kept", PersistentProvider(), {"state": self.state, "namespace": f"{name}/{agent}"})
        providers.register("graph", GraphProvider(), {"memory": self._memory, "project": name})
        return providers

    def conversation(self, session: str, project: str, writer: MemoryWriter, agent: str) -> Conversation:
        """Return the conversation of a work session, recorded by *writer*."""
        from jidomem.runtime.agent_memory import Conversation

        root = self._memory
        return Conversation(project, session, writer, root.index, root.catch_up, root.sources.now, agent=agent)

    def entry_store(self, project: str, writer: MemoryWriter) -> EntryStore:
        """Return the store of the entries of *project*, written by *writer*."""
        from jidomem.runtime.agent_memory import EntryStore

        return EntryStore(project, writer, self._memory)

    def redact(
        self, project: str, shows: Callable[[str], bool], *, dry_run: bool = False
    ) -> dict[str, list[tuple[str, Any]]]:
        """Remove each text for which *shows* returns True from the working state of the agents of *project*.

        Returns place and former content of the changed entries, by kind; with *dry_run*, of those that would change.
        """
        from jidomem.runtime.agent_memory import redact_working_state
        from jidomem.runtime.state import remove_unused

        if not dry_run:
            remove_unused(self._memory.settings.root)
        return redact_working_state(self.state, project, shows, dry_run=dry_run)

    def close(self) -> None:
        """Close the contexts, the MemoryOSes and the working state, if they were opened."""
        for name in ("_contexts", "_memory_oses", "state"):
            if name in self.__dict__:
                self.__dict__[name].close()
