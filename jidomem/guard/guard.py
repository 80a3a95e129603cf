"""What an agent is told before it edits files, and whether the edit is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from jidomem.govern.nearness import nearness
from jidomem.guard import kept
from jidomem.guard.checks import Found, judge
from jidomem.guard.edits import Edit
from jidomem.guard.rule import FORCES, Rule, Rules, Stop, places
from jidomem.guard.telling import told
from jidomem.moments import stamp
from jidomem.repository.ignored import matches
from jidomem.repository.worktree import Worktree
from jidomem.runtime.guard_log import HEEDED, OVERRIDDEN, SHOWN, STOPPED, GuardLog
from jidomem.runtime.read_log import TABLES, ReadLog
from jidomem.runtime.settings import Settings
from jidomem.runtime.state import State


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the guard says of some edits: the `text` for the agent, the memories in it, and what stops them.

    `overridden` are the stops that somebody let pass.
    """

    text: str = ""
    shown: tuple[Rule, ...] = ()
    stops: tuple[Stop, ...] = ()
    overridden: tuple[Stop, ...] = ()


class Guard:
    """The guard of one project of a root."""

    def __init__(self, settings: Settings, now: Callable[[], datetime], may_run: Callable[[str], bool]) -> None:
        """Guard the root of *settings*; *may_run* says of a command whether its user let it run."""
        self._settings, self._now, self._may_run = settings, now, may_run
        self.root, self.project = settings.root, settings.project
        self.tree = Worktree.around(settings.root)
        self._log: GuardLog | None = None
        if settings.read_log:
            self._log = GuardLog(ReadLog(State(settings.root, TABLES), now), self.project)

    @property
    def folder(self) -> Path:
        """Return the folder the paths of memories begin at."""
        return self.tree.base if self.tree else self.root.parent

    def governing(self, paths: Sequence[str]) -> dict[str, list[Rule]]:
        """Return what governs each of *paths*; raises what opening does.

        Strict conventions come first, then the nearest, then the most binding, then the newest.
        Nothing does where there is no memory.
        """
        if not (self.root / "projects" / self.project).is_dir():
            return {}
        git = self.tree.git if self.tree else None
        state = kept.made_of(self.root, self.project, git)
        found = kept.read(self.root, self.project, state, paths)
        if found is None:
            found = kept.follow(self.root, self.project, git, state, paths)
        if found is None:
            found = kept.of_paths(self._gathered(state), paths)
        now = stamp(self._now())
        return {path: sorted((rule for rule in rules if rule.holds(now)), key=partial(_rank, path))
                for path, rules in found.items()}  # fmt: skip

    def judge(self, edits: Iterable[Edit], session: str, *, tells: bool = True) -> Verdict:
        """Return what is said of *edits*; what is shown and stopped is kept, and not shown again in *session*.

        Unless it *tells*, as where nobody would hear it, nothing is shown. Raises what `governing` does.
        """
        held = list(edits)
        rules = self.governing([edit.path for edit in held])
        if not any(rules.values()):
            return Verdict()
        stops, notes = self._stops(held, rules, session)
        passed = tuple(stop for stop in stops if self._log is not None and self._log.is_let(stop.path))
        left = tuple(stop for stop in stops if stop not in passed)
        self._keep(session, [(stop.path, stop.rule.item, OVERRIDDEN) for stop in passed])
        if left:
            self._keep(session, [(stop.path, stop.rule.item, STOPPED) for stop in left])
            return Verdict(stops=left, overridden=passed)
        if not tells:
            return Verdict(overridden=passed)
        seen = self._log.seen(session) if self._log is not None else set()
        fresh = {rule.item: (path, rule) for path, each in rules.items() for rule in each if rule.item not in seen}
        text, shown = told([*fresh.values()], notes)
        of_path = {rule.item: path for path, rule in fresh.values()}
        self._keep(session, [(of_path[rule.item], rule.item, SHOWN) for rule in shown])
        return Verdict(text, shown, (), passed)

    def let(self, paths: Iterable[str], session: str, reason: str) -> bool:
        """Return whether it is kept that the next edit of each of *paths* goes ahead for *reason*."""
        if self._log is None:
            return False
        for path in paths:
            self._log.let(session, path, reason)
        return True

    def _stops(
        self, edits: Sequence[Edit], rules: dict[str, list[Rule]], session: str
    ) -> tuple[list[Stop], dict[str, str]]:
        """Return what stops *edits*, and by memory why one of its checks was not made."""
        stops: list[Stop] = []
        notes: dict[str, str] = {}
        for edit in edits:
            before = self._log.stopped(edit.path) if self._log is not None else set()
            for rule in rules.get(edit.path, ()):
                found = list(self._judged(rule, edit))
                stops += [Stop(edit.path, rule, each.broken) for each in found if each.broken][:1]
                for each in found:
                    if each.unjudged:
                        notes[rule.item] = each.unjudged
                if rule.waits:
                    notes[rule.item] = "its check waits for a curator"
                if rule.item in before and edit.after is not None and not any(each.broken for each in found):
                    self._keep(session, [(edit.path, rule.item, HEEDED)])
        return stops, notes

    def _judged(self, rule: Rule, edit: Edit) -> Iterator[Found]:
        for check in rule.checks:
            yield judge(check, edit, self.folder, self._may_run)

    def _keep(self, session: str, rows: list[tuple[str, str, str]]) -> None:
        if self._log is not None and rows:
            self._log.keep(session, rows, agent=self._settings.agent)

    def _gathered(self, state: dict[str, object]) -> Rules:
        """Return the rules from the index, kept for the next time where nothing changed meanwhile."""
        from jidomem.clock import Sources
        from jidomem.guard.gather import basis, rules
        from jidomem.runtime.root import Jidomem

        with closing(Jidomem(self._settings, Sources(), wait=1.0)) as memory:
            found, made_on = rules(memory, self.project), basis(memory, self.project)
        now = kept.made_of(self.root, self.project, self.tree.git if self.tree else None)
        if now == state and kept.is_settled(state):
            kept.keep(self.root, self.project, state, found, made_on)
        return found


def _rank(path: str, rule: Rule) -> tuple[bool, int, int, int]:
    """Return where *rule* stands among those that govern *path*."""
    here = {"", *places(path)}
    named = [about for about in rule.about if about in here or ("*" in about and matches(about, path))]
    kind, depth = max((nearness(path, about) for about in named), default=(0, 0))
    return rule.force != "strict", -kind, -depth, FORCES.index(rule.force)
