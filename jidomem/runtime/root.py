"""A memory root, opened: the journal, the index fed from it, the writer and the reader."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jidomem.base.clock import Sources
from jidomem.errors import JournalDamaged, NotFound, hint_keywords
from jidomem.index.follower import IndexFollower, past
from jidomem.index.ordered_lists import ListCache
from jidomem.index.snapshots import Clones
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.terms import Triple
from jidomem.read.reader import MemoryReader
from jidomem.records.intent import Version
from jidomem.records.interfaces import Embedder
from jidomem.repository.worktree import Worktree
from jidomem.runtime import logs, settings
from jidomem.runtime.agent_api import AgentApi
from jidomem.runtime.governance_api import GovernanceApi
from jidomem.runtime.location import ConfigWatcher, InFolder, LoadedConfig, SharedLocation, open_place, read
from jidomem.runtime.logs import READ_LOG_TABLES, DoorLog, ReadLog
from jidomem.runtime.recall_api import Recalls
from jidomem.runtime.state import State
from jidomem.runtime.worker_pool import Checks, Pool
from jidomem.schema.ontology import EffectiveRules

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex
    from jidomem.journal.journal import FileJournal
    from jidomem.read.playbook import Rows
    from jidomem.records.intent import Receipt
    from jidomem.runtime.tiers import LongTerm
    from jidomem.write.writer import MemoryWriter

#: The folder of what is derived from the journal.
INDEX = "index"


class Jidomem(AgentApi, Recalls, GovernanceApi):
    """An open memory root: `writer`, `reader`, and the `settings` it was opened with. Use it in a `with`.

    `pool` answers SPARQL nobody vouches for, in processes of its own; none is started before it is needed.
    """

    def __init__(
        self,
        given: settings.Settings,
        sources: Sources,
        wait: float,
        embedder: Embedder | None = None,
        place: InFolder | SharedLocation | None = None,
    ) -> None:
        self.settings = given
        self.place = place or InFolder(given.root)
        self.sources = sources
        self.embedder = embedder
        self.journal = self.place.journal(wait)
        self.in_force = ConfigWatcher(self.place, lambda: read(given.root), self._take)
        found = self.in_force.first
        self.schema, self.playbook = found.schema, found.playbook
        self.law = EffectiveRules(found.schema, given.policy)
        self.law.look = self.in_force.look
        self.playbook.unknown = self.in_force.quietly
        self.index = OxigraphIndex()
        self.tail = IndexFollower(self.journal, self.index, Clones(given.root / INDEX), self.schema.triples)
        self.tree = None if self.place.is_shared else Worktree.around(given.root)
        self._writer: MemoryWriter | None = None
        self._making = Lock()
        self.remote = _remote(given.index, self.journal, self.index, self.schema.triples) if given.index else None
        self.tail.told = self.remote.told if self.remote else None
        self.pool = Pool(given.root, given.limits, self.remote)
        self.checks = Checks(given.root, sources.now)
        self._shown = ReadLog(self.place.state("read", READ_LOG_TABLES), sources.now)
        self.read_log = self._shown if given.read_log else None
        self.door_log = DoorLog(State(given.root, logs.SERVER_LOG_TABLES))
        self.reader = MemoryReader(
            self.index,
            self.playbook,
            self.catch_up,
            self.schema,
            ListCache(given.root / INDEX / "lists", self.journal),
            lambda project, moment: past(self.journal, self.schema.triples, project, moment),
            self.read_log.of if self.read_log else None,
            self.pool.solutions,
            self.remote,
            now=sources.now,
            projects=self.projects,
        )

    @property
    def writer(self) -> MemoryWriter:
        """Return the only way into the memory: one for all who ask, made for the first of them."""
        from jidomem.write.writer import MemoryWriter  # a reader has no need of one, and it takes as long as a question

        with self._making:
            if self._writer is None:
                given = self.settings
                self._writer = MemoryWriter(
                    self.tail,
                    self.law,
                    self.sources,
                    agent=given.agent,
                    session=given.session,
                    literal=given.limits.literal,
                    find=self.reader.find,
                    blobs=self.tree.blobs if self.tree else lambda paths: {},
                    absent=self.tree.absent if self.tree else lambda paths: {},
                )
            return self._writer

    def _take(self, found: LoadedConfig) -> None:
        """Judge, ask and answer by *found* from now on."""
        self.settings = replace(self.settings, policy=found.policy)
        self.schema = found.schema
        self.reader.judged_by(found.schema)
        self.playbook.become(found.playbook)
        self.tail.put_ontology(found.schema.triples)
        if self.remote is not None:
            self.remote.put_ontology(found.schema.triples)
        self.law.change(found.schema, found.policy)

    @property
    def project(self) -> str:
        """Return the project asked for when none is named."""
        return self.settings.project

    def projects(self) -> list[str]:
        """Return the projects of this root, the configured one included, sorted."""
        found = {stream.project for stream in self.journal.streams()}
        return sorted(found | ({self.settings.configured} if self.settings.configured else set()))

    def remember(self, text: str, *, project: str | None = None, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of *text* as a fact of medium confidence, durable when this returns.

        *fields* are those of `MemoryUpdateIntent`: type, topic, about, rationale and so on. Agent, session and project
        are those of this root unless named. Raises what `MemoryWriter.submit_intent` raises; IntentRefused for an
        unknown field, with the nearest known one.
        """
        return self.writer.remember(project or self.project, text, dry_run=dry_run, **fields)

    def ask(self, name: str, *, project: str | None = None, **parameters: Any) -> Rows:
        """Return the rows of the named query *name*, such as open-tasks, over *project* or that of this root.

        *parameters* are those of the query, and as_of, valid_at, include_inactive, limit and cursor; `playbook` has
        the queries. Raises what `MemoryReader.ask` raises.
        """
        return self.reader.ask(name, project=project or self.project, **parameters)

    def catch_up(self, project: str) -> Version:
        """Bring the index level with every stream of *project*; return the version of its memory.

        Raises NotFound `invalid_project`, or `unknown_project` with the nearest names.
        """
        streams = [Stream(project, name) for name in NAMES]
        versions = {}
        with self.journal.asking(streams):
            if self.journal.knows(project):
                versions = {stream.name: self.tail.catch_up(stream) for stream in streams}
            self.in_force.quietly()
        if not any(version.heads for version in versions.values()) and project not in self.projects():
            near = get_close_matches(project, self.projects(), n=3) or self.projects()
            raise NotFound(
                f"no project {project!r} in {self.settings.place}",
                hint=self._where_else(near),
                code="unknown_project",
            )
        return versions.get(Stream(project).name, Version())

    def _where_else(self, near: Sequence[str]) -> str:
        """Return what helps where a project is not there: the *near* ones, or how one is made."""
        made = "jidomem init --from auto makes one of this folder, and takes in what it has"
        if self.settings.found == settings.OWN:
            return f"this folder has no memory: {made}"
        return f"there is {', '.join(near)}: give one of these as `project`" if near else made

    def long_term(self, project: str | None = None) -> LongTerm:
        """Return the long-term memory of *project*, the configured one unless given: its four graphs, journalled."""
        from jidomem.runtime.tiers import RootedLongTerm  # most processes have no need of it

        name = project or self.project
        return RootedLongTerm(name, self.index, lambda: self.catch_up(name), self.writer, self.schema)

    def damage(self, project: str) -> tuple[JournalDamaged, ...]:
        """Return what is damaged in the journal of *project*; writes to it stop until it is restored."""
        streams = [stream for stream in self.journal.streams() if stream.project == project]
        return tuple(found for stream in streams for found in self.journal.damage(stream))

    def stop(self) -> None:
        """End the processes that answer for this one, whatever they do."""
        self.pool.close()
        self.checks.close()

    def close(self) -> None:
        """Let go of the root and remove the index of this process; nothing is held that a crash would lose."""
        self.stop()
        if self.remote is not None:
            self.remote.close()
        self._close_held()
        self._close_recall()
        self._shown.state.close()
        self.door_log.state.close()
        self.tail.close()
        self.place.close()

    def __enter__(self) -> Jidomem:
        """Return the open root itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def _remote(address: str, journal: FileJournal, own: OxigraphIndex, ontology: Iterable[Triple]) -> RemoteIndex:
    """Return the store at *address*; what speaks HTTP is loaded by who has one."""
    from jidomem.extras.servers.remote_index import RemoteIndex

    return RemoteIndex(address, journal, own, ontology)


@hint_keywords
def open_root(
    root: str | os.PathLike[str] | None = None,
    *,
    project: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    sources: Sources | None = None,
    wait: float = 10.0,
    embedder: Embedder | None = None,
    index: str | None = None,
) -> Jidomem:
    """Return the memory root *root*, found as the command line finds it when not given; a first write creates it.

    *agent* and *session* are who asserts, and where, when a verb names nobody. *wait* is how many seconds a write
    waits for another process. *sources* replaces the clock, ids and nonces. With an *embedder*,
    the one that the user's settings name unless given, recall finds by likeness, too; vectors are made in the
    background from the first recall on. *index* is the address of a SPARQL store that answers, `sparql+http://...`,
    the user's own unless given; the empty text means none.
    Raises Failed `invalid_config`, and `store_unreachable` or `missing_extra` for an address.
    """
    place = open_place(root, wait)
    try:
        given = settings.load(root, project, agent=agent, session=session, index=index)
        return Jidomem(given, sources or Sources(), wait, embedder, place)
    except BaseException:
        place.close()
        raise
