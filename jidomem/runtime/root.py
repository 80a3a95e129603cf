"""A memory root, opened: the journal, the index fed from it, the writer and the reader."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jidomem import schema
from jidomem.clock import Sources
from jidomem.embedder import Embedder
from jidomem.errors import JournalDamaged, NotFound
from jidomem.index.clones import Clones
from jidomem.index.following import Following
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.past import past
from jidomem.index.shelved import Shelved
from jidomem.index.tail import Tail
from jidomem.journal.files import NAMES, Stream
from jidomem.law import Law
from jidomem.read.playbook import Playbook
from jidomem.read.reader import MemoryReader
from jidomem.repository.worktree import Worktree
from jidomem.runtime import door_log, settings
from jidomem.runtime.bounds import check_root
from jidomem.runtime.checks import Checks
from jidomem.runtime.door_log import DoorLog
from jidomem.runtime.held import Held
from jidomem.runtime.in_force import InForce, Ruling
from jidomem.runtime.place import InFolder, Shared, open_place
from jidomem.runtime.pool import Pool
from jidomem.runtime.read_log import TABLES, ReadLog
from jidomem.runtime.recalls import Recalls
from jidomem.runtime.state import State
from jidomem.terms import Triple
from jidomem.version import Version

if TYPE_CHECKING:
    from jidomem.govern.briefing import Briefing
    from jidomem.govern.check import Options
    from jidomem.govern.keeper import Keeper
    from jidomem.govern.proposals import TermProposals
    from jidomem.govern.report import Report
    from jidomem.index.remote_index import RemoteIndex
    from jidomem.journal.files import FileJournal
    from jidomem.runtime.long_term import LongTerm
    from jidomem.write.rollback import Rollback
    from jidomem.write.writer import MemoryWriter

#: The folder of what is derived from the journal.
INDEX = "index"
GITIGNORE = "index/\nstate/\ncache/\n*.lock\n"
GITATTRIBUTES = "projects/** -text\n"
CONFIG = """\
# jidomem: the memory of this repository. Every key has a default; unknown keys are an error.
project = "{project}"

# What happens when an intent disagrees with what is in force: "refuse" (default), "propose" or "warn".
# [conflicts]
# decision = "propose"

# Keep in state/ which memories were shown in which briefing, for jidomem why.
# read_log = false

# The role and capabilities an agent is declared with when it is first named.
# [agents.architect]
# role = "Architect"
# capabilities = ["CanPlan", "CanQueryMemory"]
"""


class Jidomem(Held, Recalls):
    """An open memory root: `writer`, `reader`, and the `settings` it was opened with. Use it in a `with`.

    `pool` answers SPARQL nobody vouches for, in processes of its own; none is started before it is needed.
    """

    def __init__(
        self,
        given: settings.Settings,
        sources: Sources,
        wait: float,
        embedder: Embedder | None = None,
        place: InFolder | Shared | None = None,
    ) -> None:
        check_root(given.root)
        self.settings = given
        self.place = place or InFolder(given.root)
        self.sources = sources
        self.embedder = embedder
        self.journal = self.place.journal(wait)
        self.in_force = InForce(self.place, self._ruling, self._take)
        found = self.in_force.first
        self.schema, self.playbook = found.schema, found.playbook
        self.law = Law(found.schema, given.policy)
        self.law.look = self.in_force.look
        self.playbook.unknown = self.in_force.quietly
        self.index = OxigraphIndex()
        self.tail = Tail(self.journal, self.index, Clones(given.root / INDEX), self.schema.triples)
        self.tree = None if self.place.is_shared else Worktree.around(given.root)
        self._writer: MemoryWriter | None = None
        self._making = Lock()
        self.remote = _remote(given.index, self.journal, self.index, self.schema.triples) if given.index else None
        self._following = Following(self.remote.level) if self.remote else None
        self.tail.told = self._following.told if self._following else None
        self.pool = Pool(given.root, given.limits, self.remote)
        self.checks = Checks(given.root, sources.now)
        self._shown = ReadLog(self.place.state("read", TABLES), sources.now)
        self.read_log = self._shown if given.read_log else None
        self.door_log = DoorLog(State(given.root, door_log.TABLES))
        self.reader = MemoryReader(
            self.index,
            self.playbook,
            self.catch_up,
            self.schema,
            Shelved(given.root / INDEX / "lists", self.journal),
            lambda project, moment: past(self.journal, self.schema.triples, project, moment),
            self.read_log.of if self.read_log else None,
            self.pool.solutions,
            self.remote,
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
                    blobs=self.tree.blobs if self.tree else lambda paths: {},
                )
            return self._writer

    def _ruling(self) -> Ruling:
        """Return what the files of the root say now."""
        root, policy = self.settings.root, settings.policy_of(self.settings.root)
        overlay = [root] if _overlaid(root, "ontology", "shapes") else []
        found = schema.load(overlay, by_reference=policy.judge == "pyshacl")
        return Ruling(found, policy, Playbook([root / "queries"] if _overlaid(root, "queries") else []))

    def _take(self, found: Ruling) -> None:
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
        return f"there is {', '.join(near)}: leave out --project, or name one" if near else made

    def long_term(self, project: str | None = None) -> LongTerm:
        """Return the long-term memory of *project*, the configured one unless given: its four graphs, journalled."""
        from jidomem.runtime.long_term import RootedLongTerm  # most processes have no need of it

        name = project or self.project
        return RootedLongTerm(name, self.index, lambda: self.catch_up(name), self.writer, self.schema)

    @property
    def keeper(self) -> Keeper:
        """Return who takes secrets out of the journal, and sets damage aside."""
        from jidomem.govern.keeper import Keeper  # most processes have no need of one
        from jidomem.index import vector_file

        def forget() -> None:
            self.texts.files.forget_all()
            vector_file.forget(self.settings.root)
            self.reader.keep_lists(self.projects())

        def unlog(project: str, shows: Callable[[str], bool]) -> None:
            self._shown.forget(project, shows)  # what was kept before it was switched off, too
            self.door_log.forget(shows)
            self._redact_held(project, shows)

        return Keeper(self.tail, self.schema, self.settings.policy, self.sources, self.writer, forget, unlog)

    def governing(self, *paths: str, project: str | None = None, **asked: Any) -> list[dict[str, Any]]:
        """Return what governs the files *paths*: rules, decisions, errors and lessons, the most binding first.

        *asked* are as_of, valid_at and include_inactive; what a row holds, `jidomem.govern.governing` says.
        """
        from jidomem.govern.governing import governing  # a writer has no need of it

        return governing(self.reader, self.index, self.tree, project or self.project, paths, **asked)

    def briefing(
        self,
        project: str | None = None,
        *,
        agent: str | None = None,
        role: str | None = None,
        budget_tokens: int | None = None,
        about: Sequence[str] = (),
        as_of: object = None,
        valid_at: object = None,
    ) -> Briefing:
        """Return what *agent* should know first, in 1,500 tokens unless said otherwise: `text`, `tokens`, `to_dict()`.

        *about* are files it will work on. Without a *role* it is the one the agent is declared with. Raises
        InvalidRequest for a role there is not and for a budget that cannot hold what says what was left out.
        """
        from jidomem.govern.briefed import Briefed

        name = project or self.project
        self.catch_up(name)
        now = self.sources.now()
        asked = Briefed(self.reader, self.index, self.tree, name, now=now, agent=agent, role=role, about=about,
                        as_of=as_of, valid_at=valid_at)  # fmt: skip
        told = asked.brief() if budget_tokens is None else asked.brief(budget_tokens)
        if self.read_log is not None:
            self.read_log.shown(name, told.items, by=agent, in_="briefing")
        return told

    def roll_back(self, to: object, *, reason: str, project: str | None = None, dry_run: bool = False) -> Rollback:
        """Return what was done so that what was in force at *to*, a moment or a version, is in force, and nothing else.

        The corrections are of one commit and in a recovery session of their own; what was recorded stays. Raises what
        `writer.roll_back` and `reader.moment` raise.
        """
        name = project or self.project
        return self.writer.roll_back(name, self.reader.moment(name, to), reason=reason, dry_run=dry_run)

    def check(self, project: str | None = None, asked: Options | None = None) -> Report:
        """Return what is wrong with the memory of *project*, as *asked*: by `check_options` unless given.

        A root's own gates are asked in a process that can be killed; what its baseline waives does not count.
        """
        from jidomem.govern.check import check_project
        from jidomem.govern.waivers import waive

        name = project or self.project
        self.catch_up(name)
        options = replace(
            asked or self.check_options(),
            disagreements=lambda: self.reader.ask("conflicts", project=name),
            changed_files=lambda: self.changed_files(name),
            ask_own=partial(self.pool.solutions, name),
        )
        report = check_project(self.tail, self.schema, name, options)
        if options.baseline is not None:
            today, in_part = self.sources.now().date(), options.revision is not None
            waive(report, options.baseline, today, project=name, in_part=in_part)
        return report

    def check_options(self) -> Options:
        """Return what a check of this root looks at: its own gates, terms and waivers, as its policy has it."""
        from jidomem.govern import gates
        from jidomem.govern.check import Options
        from jidomem.runtime import waivers

        root = self.settings.root
        own, refused = gates.of_root(root)
        strict, baseline = self.settings.policy.strict, waivers.of_root(root)
        return Options(strict=strict, own_gates=own, refused=refused, overlay=root, baseline=baseline)

    def changed_files(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return the files that memories in force are about and that were changed, renamed or removed since."""
        from jidomem.govern.freshness import changed_files

        return changed_files(self.reader, self.tree, project or self.project)

    def term_proposals(self, project: str | None = None) -> TermProposals:
        """Return the terms proposed in *project*, the configured one unless given, and who answers them."""
        from jidomem.govern.proposals import TermProposals  # most processes have no need of one

        root, change = self.settings.root, self.place.change_file
        return TermProposals(root, change, project or self.project, self.schema, self.writer, self.tail)

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
        if self._following is not None and self.remote is not None:
            self._following.close()
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
    from jidomem.index.remote_index import RemoteIndex

    return RemoteIndex(address, journal, own, ontology)


def _overlaid(root: Path, *folders: str) -> bool:
    """Return whether a root extends what is shipped in one of *folders*."""
    return any((root / folder).is_dir() for folder in folders)


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


def init(folder: Path, project: str | None = None) -> Path:
    """Make the root `.jidomem/` in *folder* and return it; what is there already is left alone.

    Raises NotFound `invalid_project` for a project id of another form.
    """
    root = folder.resolve() / settings.FOLDER
    name = Stream(project or settings.slug_of(folder.resolve().name)).project
    root.mkdir(parents=True, exist_ok=True)
    for file, text in (
        (settings.CONFIG, CONFIG.format(project=name)),
        (".gitignore", GITIGNORE),
        (".gitattributes", GITATTRIBUTES),
    ):
        if not (root / file).exists():
            (root / file).write_text(text, "utf-8")
    return root
