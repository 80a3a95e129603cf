"""The memory root: opens the journal, the index, the writer and the reader of a root, and offers them as one object."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from jidomem.base.clock import Sources
from jidomem.errors import MISSPELT, InvalidRequest, JournalDamaged, NotFound, hint_keywords, nearest_names
from jidomem.index.follower import IndexFollower, past
from jidomem.index.snapshots import Clones
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import NAMES, Stream
from jidomem.journal.rewrite import heads_beyond
from jidomem.read.reader import MemoryReader
from jidomem.records.intent import Version
from jidomem.repository.worktree import Worktree
from jidomem.runtime import settings
from jidomem.runtime.agent_api import AgentApi
from jidomem.runtime.governance_api import GovernanceApi
from jidomem.runtime.location import FolderPlace, LoadedConfig, SharedLocation, open_place, read
from jidomem.runtime.logs import READ_LOG_TABLES, SERVER_LOG_TABLES, InterfaceLog, ReadLog
from jidomem.runtime.recall_api import RecallApi
from jidomem.runtime.state import State
from jidomem.runtime.worker_pool import Checks, Pool
from jidomem.schema.ontology import ConfigWatcher, EffectiveRules

if TYPE_CHECKING:
    from jidomem.check.check import Options
    from jidomem.check.report import CheckReport
    from jidomem.curation.redact import JournalMaintenance
    from jidomem.curation.term_proposals import TermProposals
    from jidomem.extras.memoryos.memory_os import MemoryOS
    from jidomem.extras.servers.remote_index import RemoteIndex
    from jidomem.index.search_index import Texts
    from jidomem.index.vectors import Embedding
    from jidomem.providers import Providers
    from jidomem.read.playbook import Rows
    from jidomem.recall.briefing import Briefing
    from jidomem.recall.candidates import VectorQuery
    from jidomem.recall.governing import GoverningAnswer
    from jidomem.records.intent import Receipt
    from jidomem.records.interfaces import Embedder
    from jidomem.records.recall import DifferingMemory, MemoryRecall, NearPair, RecallRequest
    from jidomem.runtime.agent_memory import AgentMemory, Conversation, EntryStore
    from jidomem.runtime.similar import ReceiptSearch
    from jidomem.runtime.tiers import ContextManager, LongTerm
    from jidomem.write.rollback import Rollback
    from jidomem.write.writer import MemoryWriter

#: The folder of the projections of the journal.
INDEX = "index"
#: The open roots, each with the process that opened it.
_OPEN: WeakKeyDictionary[Jidomem, int] = WeakKeyDictionary()


class Jidomem:
    """An open memory root: `writer`, `reader`, and the `settings` it was opened with. Use it in a `with`.

    A root that is open when the interpreter ends is closed then. `pool` runs untrusted SPARQL in worker processes,
    which are started on first use.
    """

    def __init__(
        self,
        given: settings.Settings,
        sources: Sources,
        wait: float,
        embedder: Embedder | None = None,
        place: FolderPlace | SharedLocation | None = None,
        load: Callable[[Path], LoadedConfig] = read,
    ) -> None:
        self.settings = given
        #: The project given to `open` or to a server, which counts as one of this root before its first memory.
        self.expected_project: str | None = None
        self.place = place or FolderPlace(given.root)
        self.sources = sources
        self.embedder = embedder
        self.journal = self.place.journal(wait, None if given.found == settings.OWN else given.project, given.claim)
        self.tree = None if self.place.is_shared else Worktree.around(given.root)
        self._writer: MemoryWriter | None = None
        self._writer_lock = Lock()
        self._similar_within = 3.0

        self.config = ConfigWatcher(self.place, lambda: load(given.root), self._apply_config)
        loaded = self.config.first
        self.schema, self.playbook = loaded.schema, loaded.playbook
        self.playbook.unknown = self.config.reload_or_keep
        self._rules = EffectiveRules(loaded.schema, given.policy)
        self._rules.reload_if_changed = self.config.reload_if_changed

        self.index = OxigraphIndex()
        clones = Clones(given.root / INDEX)
        self.follower = IndexFollower(self.journal, self.index, clones, self.schema.triples)
        self.remote: RemoteIndex | None = None
        if given.index:
            # imported here, as only a root with a remote index needs the HTTP client
            from jidomem.extras.servers.remote_index import RemoteIndex

            self.remote = RemoteIndex(given.index, self.journal, self.index, self.schema.triples)
        self.follower.on_commit = self.remote.notify if self.remote else None
        self.pool = Pool(given.root, given.limits, self.remote)
        self.follower.on_rewritten = self.pool.renew
        self.checks = Checks(given.root, sources.now)

        self._shown = ReadLog(self.place.state("read", READ_LOG_TABLES), sources.now)
        self.read_log = self._shown if given.read_log else None
        self.interface_log = InterfaceLog(State(given.root, SERVER_LOG_TABLES, self.journal.check_present))
        self.reader = MemoryReader(
            self.index,
            self.playbook,
            self.catch_up,
            self._rules,
            lambda: self.texts,
            lambda project, moment: past(self.journal, self.schema.triples, project, moment),
            self.read_log.of if self.read_log else None,
            self.pool.solutions,
            self.remote,
            now=sources.now,
            projects=self.projects,
            default_project=given.project if given.configured else None,
        )
        self._agents = AgentApi(self)
        self._recall = RecallApi(self, self._agents, embedder)
        self._chat = settings.chat_model(given)
        self._governance = GovernanceApi(self, self._agents, self._shown)
        _OPEN[self] = os.getpid()

    def _apply_config(self, loaded: LoadedConfig) -> None:
        self.settings = replace(self.settings, policy=loaded.policy)
        self.schema = loaded.schema
        self.playbook.replace_queries(loaded.playbook)
        self.follower.put_ontology(loaded.schema.triples)
        if self.remote is not None:
            self.remote.put_ontology(loaded.schema.triples)
        self._rules.change(loaded.schema, loaded.policy)

    # Projects, writes and queries

    @property
    def project(self) -> str:
        """Return the default project of the methods."""
        return self.settings.project

    def projects(self) -> list[str]:
        """Return the projects of this root, the configured and the expected one included, sorted."""
        expected = {self.expected_project} if self.expected_project else set()
        return sorted(self._recorded_projects() | expected)

    def _recorded_projects(self) -> set[str]:
        """Return the projects of the journal, and the one that `config.toml` names."""
        configured = {self.settings.configured} if self.settings.configured else set()
        return configured.union(stream.project for stream in self.journal.streams())

    @property
    def writer(self) -> MemoryWriter:
        """Return the writer, the only way to change the memory; it is created on first use."""
        # imported here, as readers do not need it: the import takes as long as a query
        from jidomem.write.writer import MemoryWriter

        with self._writer_lock:
            if self._writer is None:
                given = self.settings
                if given.root.is_dir():
                    self._claim(given.project)
                self._writer = MemoryWriter(
                    self.follower,
                    self._rules,
                    self.sources,
                    agent=given.agent,
                    owner=given.owner,
                    session=given.session,
                    literal=given.limits.literal,
                    find=self.reader.find,
                    ids=self.reader.ids,
                    blobs=self.tree.blobs if self.tree else lambda paths: {},
                    absent=self.tree.absent if self.tree else lambda paths: {},
                    place=self.tree.place if self.tree else str,
                    # in the user's own memory a new project is expected: each folder without a memory has one
                    projects=(lambda: sorted(self._recorded_projects())) if given.found != settings.OWN else tuple,
                    search=self._search,
                )
            return self._writer

    @cached_property
    def _search(self) -> ReceiptSearch:
        # imported here, as readers do not need it
        from jidomem.runtime.similar import ProposalJudge, ReceiptSearch

        judge = ProposalJudge(self._chat, lambda: self.writer) if self._chat is not None else None
        return ReceiptSearch(self._recall, self.index, self._rules, self.catch_up, self._similar_within, judge)

    def remember(self, text: str, *, project: str | None = None, dry_run: bool = False, **fields: Any) -> Receipt:
        """Record *text* as a fact of medium confidence and return its receipt; it is durable then.

        *fields* are those of `MemoryUpdateIntent`: type, topic, about, rationale and so on. The defaults of
        agent, session and project are those of this root; in a root without a session, a memory of another
        agent (`asserted_by`) belongs to the daily session of that agent. Raises the errors of
        `MemoryWriter.submit_intent`; IntentRefused for an unknown field, with the nearest known one.
        """
        return self.writer.remember(project or self.project, text, dry_run=dry_run, **fields)

    def ask(self, name: str, *, project: str | None = None, **parameters: Any) -> Rows:
        """Return the rows of the named query *name*, such as open-tasks, over *project* (default: that of this root).

        *parameters* are those of the query, and as_of, valid_at, include_inactive, limit and
        cursor; `playbook` has the queries. Moments are datetimes: `json.dumps(rows, default=str)`.
        Raises the errors of `MemoryReader.ask`.
        """
        return self.reader.ask(name, project=project or self.project, **parameters)

    def catch_up(self, project: str) -> Version:
        """Apply all commits of *project* to the index; return the version of its memory.

        Raises NotFound `invalid_project`, or `unknown_project` with the nearest names, and MemoryMissing.
        """
        streams = [Stream(project, name) for name in NAMES]
        versions = {}
        with self.journal.asking(streams):
            if self.journal.knows(project):
                versions = {stream.name: self.follower.catch_up(stream) for stream in streams}
            self.config.reload_or_keep()
        if any(version.heads for version in versions.values()):
            self._claim(project)
            return versions[Stream(project).name]
        self.journal.check_present()
        if project not in self.projects():
            near = ", ".join(nearest_names(project, self.projects(), 3) or self.projects())
            made = "its first memory makes it; jidomem init --from auto also takes in what the folder has"
            hint = f"there is {near}: give one of these as `project`" if near else made
            hint = f"this folder has no memory: {made}" if self.settings.found == settings.OWN else hint
            raise NotFound(f"no project {project!r:.200} in {self.settings.place}", hint=hint, code="unknown_project")
        return versions.get(Stream(project).name, Version())

    def _claim(self, project: str) -> None:
        """Raise InvalidRequest if another folder made the *project* of this one since the user's memory was opened."""
        if self.settings.folder is not None:
            with suppress(OSError):  # of a root that is read-only
                self.settings.claim(project)

    def long_term(self, project: str | None = None) -> LongTerm:
        """Return the long-term memory of *project* (default: the configured one): its four graphs."""
        from jidomem.runtime.tiers import RootedLongTerm  # imported here, as most processes do not need it

        name = project or self.project
        return RootedLongTerm(name, self.index, lambda: self.catch_up(name), self.writer, self.schema)

    def damage(self, project: str) -> tuple[JournalDamaged, ...]:
        """Return the damage in the journal of *project*, and its heads beyond the horizon: both stop writes."""
        journal, now = self.journal, self.sources.now()
        streams = [stream for stream in journal.streams() if stream.project == project]
        with journal.asking(streams or [Stream(project)]):
            both = [(journal.damage(each), heads_beyond(journal.inspect(each), now)) for each in streams]
        return tuple(error for damaged, late in both for error in (*damaged, *late))

    # Recall

    def recall(self, request: RecallRequest | str, project: str | None = None, **more: Any) -> MemoryRecall:
        """Return the active memories that match words of *request* or are similar to it, the best first.

        `entries` has them, each with its score. Similarity needs vectors; with an embedder
        `metadata["vectors"]` has the number of memories without one so far.

        *more* are the fields of `RecallFilters`: kinds, about, since, until, as_of, valid_at, agent,
        session, include_inactive, budget_tokens, explain, min_score; with a plain text also agent_id,
        session_id, scope and limit. Raises InvalidRequest for an unknown or contradictory option.
        """
        return self._recall.recall(request, project or self.project, **more)

    def await_index(self, seconds: float, progress: Callable[[int, int], object], project: str | None = None) -> None:
        """Wait up to *seconds* until the search index has all memories of *project*, if many are to be added.

        *progress* is called each second with the number of commits added, and of all; recall answers from these.
        """
        self._recall.await_index(project or self.project, seconds, progress)

    def vector_query(self, query: str, project: str, moment: str | None, *, spoken: bool) -> VectorQuery | None:
        """Return the vector of *query* with the vectors of *project*; None without an embedder.

        For *spoken* texts the names of the speakers by *moment* are removed from the query first.
        """
        return self._recall.vector_query(query, project, moment, in_talk=spoken)

    def near_pairs(self, project: str | None = None) -> list[NearPair]:
        """Return the pairs of active memories that say nearly the same, the nearest first; none without vectors.

        The pairs of new memories are found in the background.
        """
        return self._recall.near_pairs(project or self.project)

    def contrasts(self, items: Collection[str], project: str | None = None) -> Mapping[str, Sequence[DifferingMemory]]:
        """Return those of *items* that differ in a value from active memories that say nearly the same, with these."""
        return self._recall.contrasts(project or self.project, items)

    def differing_pairs(self, project: str | None = None) -> int:
        """Return the number of near pairs that differ in a value or a negation, as the review lists them."""
        return self._recall.differing_pairs(project or self.project)

    def lag(self, project: str) -> dict[str, Any]:
        """Return the state of the vectors of *project* under `vectors`; empty without an embedder."""
        return self._recall.lag(project)

    def now(self) -> str:
        """Return the present moment as a timestamp."""
        return self._recall.now()

    @property
    def texts(self) -> Texts:
        """Return the search index, whose files are below `cache/`."""
        return self._recall.texts

    @property
    def embedding(self) -> Embedding | None:
        """Return the maker of the embedding vectors; None without an embedder."""
        return self._recall.embedding

    @property
    def embeds_for(self) -> float | None:
        """The seconds for which a recall embeds texts before it answers; None: in the background."""
        return self._recall.embeds_for

    @embeds_for.setter
    def embeds_for(self, seconds: float | None) -> None:
        self._recall.embeds_for = seconds

    @property
    def similar_within(self) -> float:
        """The seconds for which a receipt waits for similar memories; after that its `similar` is None."""
        return self._similar_within

    @similar_within.setter
    def similar_within(self, seconds: float) -> None:
        self._similar_within = seconds
        if "_search" in self.__dict__:
            self._search.within = seconds

    # Governance

    def governing(
        self, *paths: str, project: str | None = None, limit: int | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Return the rules, decisions, errors and lessons that govern the files *paths*, the nearest first.

        With a *limit* these are the nearest of each file, strict conventions in any case. *asked*
        are as_of, valid_at and include_inactive; `jidomem.recall.governing` describes a row.
        """
        from jidomem.recall.governing import governing  # imported here, as writers do not need it

        return governing(self.reader, self.index, self.tree, project or self.project, paths, limit, **options)

    def governing_answer(
        self, *paths: str, project: str | None = None, limit: int | None = None, **options: Any
    ) -> GoverningAnswer:
        """Return the `rows` that `governing` returns, with what they leave out: `items` has all memories.

        `inactive` is the number of memories about the files that are not active, and `missing` has
        the paths without a file, with the nearest name of each.
        """
        from jidomem.recall.governing import answer

        name = project or self.project
        return answer(self.reader, self.index, self.tree, self._base_folder, name, paths, limit, **options)

    @property
    def _base_folder(self) -> Path | None:
        """Return the folder to which the paths of memories are relative; None if the root is in no such folder."""
        if self.tree is not None:
            return self.tree.base
        root = self.settings.root
        if root.name != settings.FOLDER or not root.is_dir():
            return None
        return root.parent if any(entry != root for entry in root.parent.iterdir()) else None

    def briefing(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        role: str | None = None,
        budget_tokens: int | None = None,
        about: Sequence[str] = (),
        task: str | None = None,
        as_of: object = None,
        valid_at: object = None,
    ) -> Briefing:
        """Return the briefing of *agent*, by default of 1,500 tokens: `text`, `tokens`, `to_dict()`.

        *about* are the files it will work on, *task* describes its work in words. The default *role*
        is that of the agent's declaration. Raises InvalidRequest for an unknown role, and for a
        budget too small for the note about omitted memories.
        """
        from jidomem.recall.sections import MAX_RELATED, BriefingBuilder
        from jidomem.records.recall import RecallFilters, RecallRequest

        name, related = project or self.project, list[str]()
        self.catch_up(name)
        if task is not None and not isinstance(task, str):
            raise InvalidRequest(f"task={task!r:.200} is not a text", hint='give task="speed up the import"')
        if task is not None and task.strip():
            filters = RecallFilters(about=tuple(about), as_of=as_of, valid_at=valid_at)
            request = RecallRequest(agent_id=self.settings.agent, query=task, limit=MAX_RELATED)
            related = [hit.id for hit in self._recall.find(request, filters, name).entries]
        builder = BriefingBuilder(
            self.reader,
            self.index,
            self.tree,
            name,
            now=self.sources.now(),
            agent=agent,
            role=role,
            about=about,
            related=related,
            task=task or "",
            as_of=as_of,
            valid_at=valid_at,
            contrasts=lambda items: self._recall.contrasts(name, items, valid_at),
        )
        briefing = builder.brief() if budget_tokens is None else builder.brief(budget_tokens)
        if self.read_log is not None:
            self.read_log.record_shown(name, briefing.items, by=agent, in_="briefing")
        return briefing

    def roll_back(self, to: object, *, reason: str, project: str | None = None, dry_run: bool = False) -> Rollback:
        """Restore the set of active memories at *to*, a moment or a version.

        The corrections are in one commit, in a recovery session; nothing recorded is removed.
        Raises the errors of `writer.roll_back` and `reader.moment`.
        """
        name = project or self.project
        moment = self.reader.moment(name, to, name="to")
        return self.writer.roll_back(name, moment, reason=reason, dry_run=dry_run)

    def check(self, project: str | None = None, options: Options | None = None) -> CheckReport:
        """Return the problems of the memory of *project*; the options are `check_options` by default.

        The gates of the root itself run in a worker process. Findings waived by its baseline do
        not count.
        """
        name = project or self.project
        return self._check([name], options)

    def check_all(self, options: Options | None = None) -> CheckReport:
        """Return the problems of the memory of every project of this root, as `check` does of one."""
        return self._check(self.projects() or [self.project], options)

    def _check(self, projects: Sequence[str], options: Options | None) -> CheckReport:
        for name in projects:
            self.catch_up(name)
        report = self._governance.check(projects, options)
        if pairs := sum(len(self._recall.near_pairs(name, embeds=False)) for name in projects):
            from jidomem.recall.nearness import pair_count

            report.notes.append(f"{pair_count(pairs)} of active memories that say nearly the same: jidomem review")
        return report

    def check_options(self) -> Options:
        """Return the options of a check of this root: its gates, terms and waivers, and its policy."""
        return self._governance.check_options()

    def changed_files(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return the files of active memories that were changed, renamed or removed since."""
        from jidomem.recall.governing import changed_files

        return changed_files(self.reader, self.tree, project or self.project)

    def term_proposals(self, project: str | None = None) -> TermProposals:
        """Return the ontology terms proposed in *project* (default: the configured one), to answer them."""
        from jidomem.curation.term_proposals import TermProposals

        root, change = self.settings.root, self.place.change_file
        return TermProposals(root, change, project or self.project, self.schema, self.writer, self.follower)

    @property
    def maintenance(self) -> JournalMaintenance:
        """Return the redaction of secrets in the journal and the quarantine of damaged files."""
        return self._governance.maintenance()

    # Agents

    def agent(self, name: str | None = None, *, project: str | None = None) -> AgentMemory:
        """Return the working memory of the agent *name* (default: the configured one): `get`, `update`, `forget`.

        Raises InvalidRequest for an invalid name, NotFound `invalid_project` for an invalid project.
        """
        return self._agents.agent(project or self.project, name or self.settings.agent)

    def agents(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return each agent with a working memory in *project*: `agent`, `rev`, `updated_at`, `open_tasks`."""
        return self._agents.agents(project or self.project)

    def context(
        self, session: str, *, project: str | None = None, agent: str | None = None, **options: Any
    ) -> ContextManager:
        """Return the context of a session of *agent*: its short-term and the long-term memory of *project*.

        Until it is closed, each call returns the same one. *options* are promotion and interval, as
        `ContextManager` takes them.
        """
        by = agent or self.settings.agent
        return self._agents.context(session, project or self.project, by, **options)

    def os(self, agent: str | None = None, *, project: str | None = None, **options: Any) -> MemoryOS:
        """Return the four tiers of *agent* (default: the configured one): its dialogues and what it learnt.

        Until it is closed, each call returns the same one. *options* are model, policy, providers
        and work, as for `MemoryOS`.
        """
        by = agent or self.settings.agent
        return self._agents.memory_os(project or self.project, by, **options)

    def os_agents(self, project: str | None = None) -> list[str]:
        """Return the agents of *project* whose tiers have or had contents, by name."""
        return self._agents.memory_os_agents(project or self.project)

    def providers(self, *, project: str | None = None) -> Providers:
        """Return the providers that perform the directives of the configured agent.

        They are `inline`, `kept` (values in this root, private to the agent) and `graph`, the memory of
        *project*; more can be registered. Nothing is opened before the first directive. Raises
        NotFound `invalid_project` for an invalid project.
        """
        return self._agents.providers(project or self.project, self.settings.agent)

    def conversation(
        self, session: str, project: str | None = None, *, writer: MemoryWriter | None = None, agent: str | None = None
    ) -> Conversation:
        """Return the conversation of a work session, to read its turns and to record them by *writer*.

        *agent* (default: the writer's own) opens the session and answers.
        """
        by = writer or self.writer
        return self._agents.conversation(session, project or self.project, by, agent or by.agent)

    @cached_property
    def entries(self) -> EntryStore:
        """Return the store of the entries that agents keep in the history of the configured project."""
        return self.entry_store()

    def entry_store(self, project: str | None = None, *, writer: MemoryWriter | None = None) -> EntryStore:
        """Return the entry store of *project* (default: the configured one), written by *writer*."""
        return self._agents.entry_store(project or self.project, writer or self.writer)

    # Closing

    def stop(self) -> None:
        """End the worker processes of this root, even in the middle of a query or a check."""
        self.pool.close()
        self.checks.close()

    def close(self) -> None:
        """Close the root and remove the index of this process; nothing durable is lost by a crash."""
        _OPEN.pop(self, None)
        self.stop()
        if self.remote is not None:
            self.remote.close()
        self._agents.close()
        if "_search" in self.__dict__:
            self._search.close()
        self._recall.close()
        self._shown.state.close()
        self.interface_log.state.close()
        self.follower.close()
        self.place.close()

    def __enter__(self) -> Jidomem:
        """Return the open root itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()


@atexit.register
def _close_open_roots() -> None:
    """Close the roots that this process left open: their threads run native code, which must not outlive Python."""
    for memory, process in [*_OPEN.items()]:
        if process == os.getpid():  # a fork has no threads of its parent
            with suppress(Exception):
                memory.close()


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
    """Open the memory root *root* (default: the root found as by the command line); a first write creates it.

    A *project* without a memory answers as an empty one, unless its name is nearly that of the configured one.
    *agent* and *session* are the default author and session of writes. *wait* is the number of
    seconds that a write waits for another process. *sources* replaces the clock, ids and nonces. With
    an *embedder* (default: that of the user's settings) recall also finds by similarity; texts are
    embedded in the background from the first recall on. *index* is the address of a SPARQL store that
    answers queries, `sparql+http://...` (default: that of the user's settings; "" for none).
    Raises NotFound `invalid_project`, Failed `invalid_config`, and `store_unreachable` or `missing_extra` for an
    address.
    """
    place = open_place(root, wait)
    try:
        if project:
            Stream(project)
        given = settings.load(root, project, agent=agent, session=session, index=index)
        memory = Jidomem(given, sources or Sources(), wait, embedder, place)
        if project and not nearest_names(project, [given.configured] if given.configured else [], likeness=MISSPELT):
            memory.expected_project = project
        return memory
    except BaseException:
        place.close()
        raise
