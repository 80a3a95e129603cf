"""The playbook as each role sees it: a method for every query of the role, and what the role should read first."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, Protocol

from jidomem.read.playbook import Playbook

Rows = list[dict[str, Any]]


class Asker(Protocol):
    """What answers named queries."""

    playbook: Playbook

    def ask(self, name: str, *, project: str, **options: Any) -> Rows:
        """Return the rows of one named query."""


class Role:
    """The queries of one role as methods: `reader.curator.items_without_project("my_project", limit=5)`.

    Each takes the project and what `ask` takes by keyword.
    """

    def __init__(self, reader: Asker, role: str) -> None:
        self._reader = reader
        self._role = role

    @cached_property
    def _names(self) -> dict[str, str]:
        return {name.replace("-", "_"): name for name in self._reader.playbook.names(self._role)}

    def __getattr__(self, name: str) -> Callable[..., Rows]:
        if name.startswith("_") or name not in self._names:
            near = get_close_matches(name, getattr(self, "_names", ()), n=1)
            raise AttributeError(f"no query {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return partial(self._ask, self._names[name])

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._names])

    def _ask(self, name: str, project: str, **options: Any) -> Rows:
        return self._reader.ask(name, project=project, **options)


class Architect(Role):
    """What an architect asks."""

    def context(self, project: str, **moment: Any) -> dict[str, Rows]:
        """Return the architectural decisions in force; *moment* is as_of, valid_at or both."""
        return {"decisions": self._ask("active-decisions", project, **moment)}


class Planner(Role):
    """What a planner asks."""

    def context(self, project: str, **moment: Any) -> dict[str, Rows]:
        """Return the open tasks and the conventions that bind them."""
        return {
            "tasks": self._ask("open-tasks", project, **moment),
            "conventions": self._ask("conventions", project, **moment),
        }


class Debugger(Role):
    """What a debugger asks."""

    def context(self, project: str, **moment: Any) -> dict[str, Rows]:
        """Return the open errors, and the lessons learned so far, newest first."""
        return {
            "errors": self._ask("open-errors", project, **moment),
            "lessons": self._ask("recent-lessons", project, **moment),
        }
