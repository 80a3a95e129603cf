"""What an agent does with its tasks: what it means to do, the first being the most urgent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from jidomem.spaces.agent import A, HasState, changed, held
from jidomem.spaces.container import SpaceChange
from jidomem.spaces.memory import NewTask


def tasks(agent: HasState) -> list[Any]:
    """Return all tasks of the agent, the first being the first to do, those done included."""
    return held(agent).tasks()


def tasks_open(agent: HasState) -> list[Any]:
    """Return the tasks still to be done, in order."""
    return held(agent).tasks_open()


def tasks_next(agent: HasState) -> Any:
    """Return the first task still to be done, or None."""
    return held(agent).tasks_next()


def tasks_add(agent: A, text: str, **change: Unpack[NewTask]) -> A:
    """Return the agent with a new task after all others; options: `id`, `status`, `new_id`."""
    return changed(agent, lambda memory: memory.tasks_add(text, **change), now=change.get("now"))


def tasks_insert(agent: A, index: int, text: str, **change: Unpack[NewTask]) -> A:
    """Return the agent with a new task at *index*, 0 being the first to do; options as of `tasks_add`."""
    return changed(agent, lambda memory: memory.tasks_insert(index, text, **change), now=change.get("now"))


def tasks_complete(agent: A, task_id: str, **change: Unpack[SpaceChange]) -> A:
    """Return the agent with that task done, where it stands."""
    return changed(agent, lambda memory: memory.tasks_complete(task_id, **change), now=change.get("now"))


def tasks_remove(agent: A, task_id: str, **change: Unpack[SpaceChange]) -> A:
    """Return the agent without that task."""
    return changed(agent, lambda memory: memory.tasks_remove(task_id, **change), now=change.get("now"))


def tasks_reorder(agent: A, task_ids: Sequence[str], **change: Unpack[SpaceChange]) -> A:
    """Return the agent with those tasks first, in that order; the others follow in the order they had."""
    return changed(agent, lambda memory: memory.tasks_reorder(task_ids, **change), now=change.get("now"))
