"""Governance of an open root: the check of its projects and the maintenance of its journal.

Each part is loaded when it is first used, as readers and writers need none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jidomem.errors import Failed, InvalidRequest, JidomemError
from jidomem.runtime import root_config, settings

if TYPE_CHECKING:
    from jidomem.check.check import Options
    from jidomem.check.report import Baseline, CheckReport
    from jidomem.curation.redact import JournalMaintenance
    from jidomem.journal.branches import Revision
    from jidomem.records.policy import Policy
    from jidomem.runtime.agent_api import AgentApi
    from jidomem.runtime.logs import ReadLog
    from jidomem.runtime.root import Jidomem


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


def policy_at(root: Path, revision: Revision) -> Policy | None:
    """Return the policy in the configuration of *root* at *revision*, None without a valid one."""
    path = root / settings.CONFIG
    try:
        config = root_config.parse(revision.content(path).decode(), path)
        return root_config.policy(config, path) if config else None
    except (Failed, ValueError):
        return None


class GovernanceApi:
    """The checks and the maintenance of the projects of an open root."""

    def __init__(self, memory: Jidomem, agents: AgentApi, read_log: ReadLog) -> None:
        """Check *memory*; a redaction also covers its logs and the working state of the *agents*."""
        self._memory, self._agents, self._read_log = memory, agents, read_log

    def check(self, projects: Sequence[str], requested: Options | None) -> CheckReport:
        """Return the report of a check of *projects*, without the findings that the baseline waives.

        The gates of the root run in the worker pool.
        """
        from jidomem.check.overlay import add_rule_faults
        from jidomem.check.report import SECRET, Waiver, add_waivers, merge, remove_waived
        from jidomem.check.rules import names

        options, today = requested or self.check_options(), self._memory.sources.now().date()
        reports = {project: self._check_project(project, options) for project in projects}
        baseline, used = options.baseline, Counter[Waiver]()
        if baseline is not None and options.secrets:
            baseline = baseline.without(SECRET)
        every = baseline.waivers if baseline is not None else ()
        for project, report in reports.items():
            used += remove_waived(report, [each for each in every if each.project in ("", project)], today)
        report = merge(reports)
        if baseline is not None:
            waivers = [each for each in every if each.project in ("", *projects)]
            reader = self._memory.reader
            rows = [row for name in projects for row in reader.ask("strict-conventions", project=name)]
            strict, rules = {row["conv"] for row in rows}, names(self._memory.schema, options.own_gates)
            in_part = options.revision is not None
            add_waivers(report, waivers, used, baseline.path, today, in_part=in_part, rules=rules, strict=strict)
        if options.overlay is not None:
            add_rule_faults(report, options.overlay)
        return report

    def _check_project(self, project: str, requested: Options) -> CheckReport:
        from jidomem.check.check import check_project
        from jidomem.read.derived import authority, unsettled_changes

        memory = self._memory
        earlier = None if requested.revision is None else policy_at(memory.settings.root, requested.revision)
        options = replace(
            requested,
            disagreements=lambda: memory.reader.ask("conflicts", project=project),
            changed_files=lambda: memory.changed_files(project),
            access=lambda: authority(memory.reader, project, memory.settings.policy),
            earlier_access=lambda: None if earlier is None else authority(memory.reader, project, earlier),
            stale=lambda: memory.reader.ask("stale", project=project),
            unsettled_rules=lambda: unsettled_changes(memory.reader, project),
            ask_own=partial(memory.pool.solutions, project),
            now=memory.sources.now,
        )
        return check_project(memory.follower, memory.schema, project, options)

    def check_options(self) -> Options:
        """Return the options of a check of this root: its own gates and terms, its baseline and its policy."""
        from jidomem.check import rules
        from jidomem.check.check import Options

        root, policy = self._memory.settings.root, self._memory.settings.policy
        own, refused = rules.of_root(root)
        return Options(
            strict=policy.strict,
            own_gates=own,
            refused=refused,
            overlay=root,
            baseline=baseline_of_root(root),
            on_secret=policy.secrets,
        )

    def maintenance(self) -> JournalMaintenance:
        """Return the redaction and quarantine of the journal, which also clears the caches."""
        from jidomem.curation.redact import JournalMaintenance

        memory = self._memory
        return JournalMaintenance(
            memory.follower,
            memory.schema,
            memory.settings.policy,
            memory.sources,
            memory.writer,
            self._delete_caches,
            self._redact_logs_and_state,
            self._working_entries,
            memory.tree,
        )

    def _delete_caches(self, project: str) -> Iterator[Failed]:
        """Delete the caches that are derived from the memories of *project*; those of other projects stay."""
        from jidomem.index import search_index
        from jidomem.index.cache_file import delete_folder, project_of

        root = self._memory.settings.root
        guard = root / "cache" / "guard"  # its rules quote memories
        others = {stream.project for stream in self._memory.journal.streams()} - {project}
        for delete in (partial(self._memory.texts.files.discard_all, project),
                       partial(search_index.delete_vectors, root, project),
                       partial(delete_folder, guard, lambda path: project_of(path) in others)):  # fmt: skip
            try:
                delete()
            except Failed as fault:
                yield fault

    def _redact_logs_and_state(self, project: str, shows: Callable[[str], bool]) -> None:
        self._read_log.forget(project, shows)  # even if it is off now, it may have earlier rows
        self._memory.interface_log.forget(shows)
        self._agents.redact(project, shows)

    def _working_entries(self, project: str, shows: Callable[[str], bool]) -> dict[str, list[tuple[str, Any]]]:
        """Return what `_redact_logs_and_state` would change or delete, by kind, as place and content.

        Unreadable logs have none.
        """
        entries = self._agents.redact(project, shows, dry_run=True)
        with suppress(JidomemError):
            if rows := [*self._read_log.matching(project, shows), *self._memory.interface_log.matching(project, shows)]:
                entries["rows of logs"] = [("", row) for row in rows]
        return entries
