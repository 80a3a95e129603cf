"""Governance of an open root: the rules for files, briefings, checks, term proposals and redaction.

Each part is loaded when it is first used, as readers and writers need none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from jidomem.errors import InvalidRequest
from jidomem.runtime import root_config
from jidomem.runtime.settings import FOLDER, Settings

if TYPE_CHECKING:
    from jidomem.base.clock import Sources
    from jidomem.check.check import Options
    from jidomem.check.report import Baseline, CheckReport
    from jidomem.curation.redact import JournalMaintenance
    from jidomem.curation.term_proposals import TermProposals
    from jidomem.index.follower import IndexFollower
    from jidomem.index.store import OxigraphIndex
    from jidomem.read.reader import MemoryReader
    from jidomem.recall.briefing import Briefing
    from jidomem.recall.governing import GoverningAnswer
    from jidomem.repository.worktree import Worktree
    from jidomem.runtime.agent_api import AgentApi
    from jidomem.runtime.location import InFolder, SharedLocation
    from jidomem.runtime.logs import DoorLog, ReadLog
    from jidomem.runtime.recall_api import RecallApi
    from jidomem.runtime.worker_pool import Pool
    from jidomem.schema.ontology import EffectiveRules
    from jidomem.write.writer import MemoryWriter


def baseline_of_root(root: Path) -> Baseline | None:
    """Return the baseline of waived findings of *root*, None without one; raises InvalidRequest or Failed."""
    from jidomem.check.report import BASELINE, read_baseline  # imported here, as few commands check

    path = root / BASELINE
    try:
        text = root_config.read_config(path, root_config.BASELINE)
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise InvalidRequest(f"{path}: {error}", hint="make it a readable file of TOML in UTF-8") from error
    return read_baseline(str(path), text.encode())


class GovernanceApi:
    """Governance of the projects of an open root."""

    def __init__(
        self,
        config: Settings,
        place: InFolder | SharedLocation,
        sources: Sources,
        index: OxigraphIndex,
        follower: IndexFollower,
        rules: EffectiveRules,
        tree: Worktree | None,
        reader: MemoryReader,
        pool: Pool,
        read_log: ReadLog,
        door_log: DoorLog,
        agents: AgentApi,
        recall: RecallApi,
    ) -> None:
        """Use *reader*; queries that the root brings run in *pool*.

        A redaction also covers the logs and the working state of the *agents*.
        """
        self._settings, self._place, self._sources = config, place, sources
        self._index, self._follower, self._rules, self._tree = index, follower, rules, tree
        self._reader, self._pool = reader, pool
        self._read_log, self._door_log = read_log, door_log
        self._agents, self._recall = agents, recall

    def governing(self, paths: Sequence[str], project: str, limit: int | None, **options: Any) -> list[dict[str, Any]]:
        """Return the memories that govern *paths*; with a *limit* the nearest of each file."""
        from jidomem.recall.governing import governing, nearest

        rows = governing(self._reader, self._index, self._tree, project, paths, **options)
        return rows if limit is None else nearest(rows, limit)

    def governing_answer(self, paths: Sequence[str], project: str, **options: Any) -> GoverningAnswer:
        """Return the memories that govern *paths*, the number of inactive ones and the paths without a file."""
        from jidomem.recall.governing import answer

        return answer(self._reader, self._index, self._tree, self._base_folder, project, paths, **options)

    @property
    def _base_folder(self) -> Path | None:
        """Return the folder to which the paths of memories are relative; None if the root is in no such folder."""
        if self._tree is not None:
            return self._tree.base
        root = self._settings.root
        if root.name != FOLDER or not root.is_dir():
            return None
        return root.parent if any(entry != root for entry in root.parent.iterdir()) else None

    def briefing(
        self,
        project: str,
        *,
        agent: str | None,
        role: str | None,
        budget_tokens: int | None,
        about: Sequence[str],
        task: str | None,
        as_of: object,
        valid_at: object,
    ) -> Briefing:
        """Return the briefing of *agent*, and record in the read log which memories it shows."""
        from jidomem.recall.sections import RELATED, BriefingBuilder
        from jidomem.records.recall import Narrowing, RecallRequest

        related: list[str] = []
        if task is not None and task.strip():
            narrowing = Narrowing(about=tuple(about), as_of=as_of, valid_at=valid_at)
            request = RecallRequest(agent_id=self._settings.agent, query=task, limit=RELATED)
            related = [hit.id for hit in self._recall.find(request, narrowing, project).entries]
        builder = BriefingBuilder(
            self._reader,
            self._index,
            self._tree,
            project,
            now=self._sources.now(),
            agent=agent,
            role=role,
            about=about,
            related=related,
            task=task or "",
            as_of=as_of,
            valid_at=valid_at,
        )
        briefing = builder.brief() if budget_tokens is None else builder.brief(budget_tokens)
        if self._settings.read_log:
            self._read_log.shown(project, briefing.items, by=agent, in_="briefing")
        return briefing

    def check(self, projects: Sequence[str], requested: Options | None) -> CheckReport:
        """Return the report of a check of *projects*, without the findings that the baseline waives.

        The gates of the root run in the worker pool.
        """
        from jidomem.check.report import SECRET, Waiver, add_waivers, merge, remove_waived

        options, today = requested or self.check_options(), self._sources.now().date()
        reports = {project: self._check_project(project, options) for project in projects}
        baseline = options.baseline
        if baseline is None:
            return merge(reports)
        if options.secrets:
            baseline = baseline.without(SECRET)
        used = Counter[Waiver]()
        for project, report in reports.items():
            waivers = [each for each in baseline.waivers if each.project in ("", project)]
            used += remove_waived(report, waivers, today)
        report = merge(reports)
        waivers = [each for each in baseline.waivers if each.project in ("", *projects)]
        add_waivers(report, waivers, used, baseline.path, today, in_part=options.revision is not None)
        return report

    def _check_project(self, project: str, requested: Options) -> CheckReport:
        from jidomem.check.check import check_project
        from jidomem.read.derived import unsettled_changes

        options = replace(
            requested,
            disagreements=lambda: self._reader.ask("conflicts", project=project),
            changed_files=lambda: self.changed_files(project),
            policy_changes=lambda: unsettled_changes(self._reader, project),
            ask_own=partial(self._pool.solutions, project),
        )
        return check_project(self._follower, self._rules.schema, project, options)

    def check_options(self) -> Options:
        """Return the options of a check of this root: its own gates and terms, its baseline and its policy."""
        from jidomem.check import rules
        from jidomem.check.check import Options

        root, policy = self._settings.root, self._rules.policy
        own, refused = rules.of_root(root)
        return Options(
            strict=policy.strict,
            own_gates=own,
            refused=refused,
            overlay=root,
            baseline=baseline_of_root(root),
            on_secret=policy.secrets,
        )

    def changed_files(self, project: str) -> list[dict[str, Any]]:
        """Return the files of active memories that were changed, renamed or removed since."""
        from jidomem.recall.governing import changed_files

        return changed_files(self._reader, self._tree, project)

    def term_proposals(self, project: str, writer: MemoryWriter) -> TermProposals:
        """Return the ontology terms proposed in *project*; *writer* records the answers."""
        from jidomem.curation.term_proposals import TermProposals

        root, change = self._settings.root, self._place.change_file
        return TermProposals(root, change, project, self._rules.schema, writer, self._follower)

    def maintenance(self, writer: MemoryWriter, projects: Callable[[], Sequence[str]]) -> JournalMaintenance:
        """Return the redaction and quarantine of the journal, which also clears the caches of these *projects*."""
        from jidomem.curation.redact import JournalMaintenance

        return JournalMaintenance(
            self._follower,
            self._rules.schema,
            self._rules.policy,
            self._sources,
            writer,
            partial(self._forget_caches, projects),
            self._redact_logs_and_state,
            partial(self._agents.redact, dry_run=True),
            self._tree,
        )

    def _forget_caches(self, projects: Callable[[], Sequence[str]]) -> None:
        from jidomem.index import search_index

        self._recall.texts.files.discard_all()
        search_index.delete_vectors(self._settings.root)
        rmtree(self._settings.root / "cache" / "guard", ignore_errors=True)  # the rules of the guard quote memories

    def _redact_logs_and_state(self, project: str, shows: Callable[[str], bool]) -> None:
        self._read_log.forget(project, shows)  # even if it is off now, it may have earlier rows
        self._door_log.forget(shows)
        self._agents.redact(project, shows)
