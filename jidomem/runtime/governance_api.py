"""The waivers a root brings along: the same for the command line, a server and whoever checks from Python.

What governs an open root: what is in force for files, what to know first, checks, and who may take things out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from jidomem.base.clock import Sources
from jidomem.check.report import BASELINE, Baseline, read_baseline
from jidomem.errors import InvalidRequest
from jidomem.index.follower import IndexFollower
from jidomem.index.store import OxigraphIndex
from jidomem.read.reader import MemoryReader
from jidomem.repository.worktree import Worktree
from jidomem.runtime import root_config
from jidomem.runtime.location import InFolder, SharedLocation
from jidomem.runtime.logs import DoorLog, ReadLog
from jidomem.runtime.settings import FOLDER, Settings
from jidomem.runtime.worker_pool import Pool
from jidomem.schema.ontology import Schema

if TYPE_CHECKING:
    from jidomem.check.check import Options
    from jidomem.check.report import CheckReport
    from jidomem.curation.redact import JournalMaintenance
    from jidomem.curation.term_proposals import TermProposals
    from jidomem.index.search_index import Texts
    from jidomem.recall.briefing import Briefing
    from jidomem.recall.governing import GoverningAnswer
    from jidomem.records.recall import MemoryRecall, Narrowing, RecallRequest
    from jidomem.write.rollback import Rollback
    from jidomem.write.writer import MemoryWriter


def of_root(root: Path) -> Baseline | None:
    """Return the baseline of *root*, None where it has none; raises InvalidRequest, Failed for what is none."""
    path = root / BASELINE
    try:
        text = root_config.read_config(path, root_config.BASELINE)
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise InvalidRequest(f"{path}: {error}", hint="make it a readable file of TOML in UTF-8") from error
    return read_baseline(str(path), text.encode())


class GovernanceApi:
    """The part of an open root that governs; who only asks or keeps memories loads none of it."""

    settings: Settings
    place: InFolder | SharedLocation
    sources: Sources
    index: OxigraphIndex
    tail: IndexFollower
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

        def _recalled(self, request: RecallRequest, narrowing: Narrowing, name: str) -> MemoryRecall:
            """Return the memories that answer."""

        def _redact_held(self, project: str, shows: Callable[[str], bool], *, dry_run: bool = False) -> dict[str, int]:
            """Take texts out of what agents hold."""

    def governing(
        self, *paths: str, project: str | None = None, limit: int | None = None, **asked: Any
    ) -> list[dict[str, Any]]:
        """Return what governs the files *paths*: rules, decisions, errors and lessons, the nearest first.

        With a *limit* these are the nearest of each file, strict conventions among them in any case. *asked* are as_of,
        valid_at and include_inactive; what a row holds, `jidomem.recall.governing` says.
        """
        from jidomem.recall.governing import governing, nearest  # a writer has no need of it

        rows = governing(self.reader, self.index, self.tree, project or self.project, paths, **asked)
        return rows if limit is None else nearest(rows, limit)

    def governing_answer(self, *paths: str, project: str | None = None, **asked: Any) -> GoverningAnswer:
        """Return what `governing` returns as `rows`, with what is left out of it.

        That is `inactive`, how many memories about the files are not active, and `missing`, the files that are not
        there with the nearest name of each.
        """
        from jidomem.recall.governing import answer

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
        from jidomem.recall.sections import RELATED, BriefingBuilder
        from jidomem.records.recall import Narrowing, RecallRequest

        name = project or self.project
        self.catch_up(name)
        now = self.sources.now()
        related: list[str] = []
        if task is not None and task.strip():
            narrowing = Narrowing(about=tuple(about), as_of=as_of, valid_at=valid_at)
            request = RecallRequest(agent_id=self.settings.agent, query=task, limit=RELATED)
            related = [hit.id for hit in self._recalled(request, narrowing, name).entries]
        asked = BriefingBuilder(self.reader, self.index, self.tree, name, now=now, agent=agent, role=role, about=about,
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

    def check(self, project: str | None = None, asked: Options | None = None) -> CheckReport:
        """Return what is wrong with the memory of *project*, as *asked*: by `check_options` unless given.

        A root's own gates are asked in a process that can be killed; what its baseline waives does not count.
        """
        from jidomem.check.check import check_project
        from jidomem.check.report import SECRET, waive

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
        from jidomem.check import rules
        from jidomem.check.check import Options

        root = self.settings.root
        own, refused = rules.of_root(root)
        policy = self.settings.policy
        return Options(
            strict=policy.strict,
            own_gates=own,
            refused=refused,
            overlay=root,
            baseline=of_root(root),
            on_secret=policy.secrets,
        )

    def changed_files(self, project: str | None = None) -> list[dict[str, Any]]:
        """Return the files that memories in force are about and that were changed, renamed or removed since."""
        from jidomem.recall.governing import changed_files

        return changed_files(self.reader, self.tree, project or self.project)

    def term_proposals(self, project: str | None = None) -> TermProposals:
        """Return the terms proposed in *project*, the configured one unless given, and who answers them."""
        from jidomem.curation.term_proposals import TermProposals  # most processes have no need of one

        root, change = self.settings.root, self.place.change_file
        return TermProposals(root, change, project or self.project, self.schema, self.writer, self.tail)

    @property
    def keeper(self) -> JournalMaintenance:
        """Return who takes secrets out of the journal, and sets damage aside."""
        from jidomem.curation.redact import JournalMaintenance  # most processes have no need of one
        from jidomem.index import search_index

        def forget() -> None:
            self.texts.files.forget_all()
            search_index.forget(self.settings.root)
            rmtree(self.settings.root / "cache" / "guard", ignore_errors=True)  # the memories that govern files
            self.reader.keep_lists(self.projects())

        def held(project: str, shows: Callable[[str], bool]) -> dict[str, int]:
            return self._redact_held(project, shows, dry_run=True)

        def unlog(project: str, shows: Callable[[str], bool]) -> None:
            self._shown.forget(project, shows)  # what was kept before it was switched off, too
            self.door_log.forget(shows)
            self._redact_held(project, shows)

        return JournalMaintenance(
            self.tail, self.schema, self.settings.policy, self.sources, self.writer, forget, unlog, held, self.tree
        )
