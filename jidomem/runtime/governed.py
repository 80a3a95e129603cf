"""What governs an open root: what is in force for files, what to know first, checks, and who may take things out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from jidomem.clock import Sources
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.tail import Tail
from jidomem.read.reader import MemoryReader
from jidomem.repository.worktree import Worktree
from jidomem.runtime.door_log import DoorLog
from jidomem.runtime.place import InFolder, Shared
from jidomem.runtime.pool import Pool
from jidomem.runtime.read_log import ReadLog
from jidomem.runtime.settings import FOLDER, Settings
from jidomem.schema import Schema

if TYPE_CHECKING:
    from jidomem.govern.briefing import Briefing
    from jidomem.govern.check import Options
    from jidomem.govern.governing import GoverningAnswer
    from jidomem.govern.keeper import Keeper
    from jidomem.govern.proposals import TermProposals
    from jidomem.govern.report import Report
    from jidomem.index.texts import Texts
    from jidomem.recall import Found, Narrowing, RecallRequest
    from jidomem.write.rollback import Rollback
    from jidomem.write.writer import MemoryWriter


class Governed:
    """The part of an open root that governs; who only asks or keeps memories loads none of it."""

    settings: Settings
    place: InFolder | Shared
    sources: Sources
    index: OxigraphIndex
    tail: Tail
    schema: Schema
    tree: Worktree | None
    reader: MemoryReader
    pool: Pool
    read_log: ReadLog | None
    door_log: DoorLog
    _shown: ReadLog

    if TYPE_CHECKING:  # what the root has besides

        @property
        def project(self) -> str:
            """Return the project asked for when none is named."""

        @property
        def writer(self) -> MemoryWriter:
            """Return the only way into the memory."""

        @property
        def texts(self) -> Texts:
            """Return the texts that recall searches."""

        def projects(self) -> list[str]:
            """Return the projects of this root."""

        def catch_up(self, project: str) -> object:
            """Bring the index level with *project*."""

        def _recalled(self, request: RecallRequest, narrowing: Narrowing, name: str) -> Found:
            """Return the memories that answer."""

        def _redact_held(self, project: str, shows: Callable[[str], bool], *, dry_run: bool = False) -> dict[str, int]:
            """Take texts out of what agents hold."""

    def governing(
        self, *paths: str, project: str | None = None, limit: int | None = None, **asked: Any
    ) -> list[dict[str, Any]]:
        """Return what governs the files *paths*: rules, decisions, errors and lessons, the nearest first.

        With a *limit* these are the nearest of each file, strict conventions among them in any case. *asked* are as_of,
        valid_at and include_inactive; what a row holds, `jidomem.govern.governing` says.
        """
        from jidomem.govern.governing import governing, nearest  # a writer has no need of it

        rows = governing(self.reader, self.index, self.tree, project or self.project, paths, **asked)
        return rows if limit is None else nearest(rows, limit)

    def governing_answer(self, *paths: str, project: str | None = None, **asked: Any) -> GoverningAnswer:
        """Return what `governing` returns as `rows`, with what is left out of it.

        That is `inactive`, how many memories about the files are not active, and `missing`, the files that are not
        there with the nearest name of each.
        """
        from jidomem.govern.governing import answer

        base = self._files_below
        return answer(self.reader, self.index, self.tree, base, project or self.project, paths, **asked)

    @property
    def _files_below(self) -> Path | None:
        """Return the folder that the files of memories lie in; None where the root lies in none that holds any."""
        if self.tree is not None:
            return self.tree.base
        root = self.settings.root
        if root.name != FOLDER or not root.is_dir():
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
        """Return what *agent* should know first, in 1,500 tokens unless said otherwise: `text`, `tokens`, `to_dict()`.

        *about* are files it will work on, *task* says in words what it will do. Without a *role* it is the one the
        agent is declared with. Raises InvalidRequest for a role there is not and for a budget that cannot hold what
        says what was left out.
        """
        from jidomem.govern.briefed import RELATED, Briefed
        from jidomem.recall import Narrowing, RecallRequest

        name = project or self.project
        self.catch_up(name)
        now = self.sources.now()
        related: list[str] = []
        if task is not None and task.strip():
            narrowing = Narrowing(about=tuple(about), as_of=as_of, valid_at=valid_at)
            request = RecallRequest(agent_id=self.settings.agent, query=task, limit=RELATED)
            related = [hit.id for hit in self._recalled(request, narrowing, name).entries]
        asked = Briefed(self.reader, self.index, self.tree, name, now=now, agent=agent, role=role, about=about,
                        related=related, task=task or "", as_of=as_of, valid_at=valid_at)  # fmt: skip
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
        from jidomem.govern.report import SECRET
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
        if options.baseline is not None and options.secrets:
            options = replace(options, baseline=options.baseline.without(SECRET))
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
        policy = self.settings.policy
        return Options(
            strict=policy.strict,
            own_gates=own,
            refused=refused,
            overlay=root,
            baseline=waivers.of_root(root),
            on_secret=policy.secrets,
        )

    def changed_files(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return the files that memories in force are about and that were changed, renamed or removed since."""
        from jidomem.govern.freshness import changed_files

        return changed_files(self.reader, self.tree, project or self.project)

    def term_proposals(self, project: str | None = None) -> TermProposals:
        """Return the terms proposed in *project*, the configured one unless given, and who answers them."""
        from jidomem.govern.proposals import TermProposals  # most processes have no need of one

        root, change = self.settings.root, self.place.change_file
        return TermProposals(root, change, project or self.project, self.schema, self.writer, self.tail)

    @property
    def keeper(self) -> Keeper:
        """Return who takes secrets out of the journal, and sets damage aside."""
        from jidomem.govern.keeper import Keeper  # most processes have no need of one
        from jidomem.index import vector_file

        def forget() -> None:
            self.texts.files.forget_all()
            vector_file.forget(self.settings.root)
            rmtree(self.settings.root / "cache" / "guard", ignore_errors=True)  # the memories that govern files
            self.reader.keep_lists(self.projects())

        def held(project: str, shows: Callable[[str], bool]) -> dict[str, int]:
            return self._redact_held(project, shows, dry_run=True)

        def unlog(project: str, shows: Callable[[str], bool]) -> None:
            self._shown.forget(project, shows)  # what was kept before it was switched off, too
            self.door_log.forget(shows)
            self._redact_held(project, shows)

        return Keeper(
            self.tail, self.schema, self.settings.policy, self.sources, self.writer, forget, unlog, held, self.tree
        )
