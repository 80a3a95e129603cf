"""The names working memory goes by: its key in an agent's state, its built-in spaces, the usual keys of the world."""

from __future__ import annotations

from collections.abc import Mapping

#: The one key of an agent's state under which its memory is kept.
MEMORY_KEY = "__memory__"
#: The key under which agents usually keep their thread; no memory operation touches it.
THREAD_KEY = "__thread__"

TASKS = "tasks"
WORLD = "world"
#: The spaces every memory has, and that cannot be deleted.
RESERVED_SPACES = (TASKS, WORLD)

FACTS = "facts"
SCRATCH = "scratch"
TOOL_STATE = "tool_state"
SUMMARY = "summary"
POINTERS = "pointers"
#: What each usual key of the world is for. Any other key will do as well; none is made or checked by itself.
WORLD_KEYS: Mapping[str, str] = {
    FACTS: "what the agent believes of its environment",
    SCRATCH: "notes of the work in hand, free to be thrown away",
    TOOL_STATE: "what tools returned, and where they stand",
    SUMMARY: "what the thread amounts to so far",
    POINTERS: "where more is kept: names of indexes and stores outside the memory, never their contents",
}

OPEN = "open"
DONE = "done"
TASK_STATUSES = (OPEN, DONE)
#: What a task's status is called in project memory.
TO_ONTOLOGY: Mapping[str, str] = {OPEN: "Planned", DONE: "Completed"}


def memory_key() -> str:
    """Return the one key of an agent's state under which its memory is kept."""
    return MEMORY_KEY
