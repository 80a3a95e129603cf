"""The working memory of an agent: the value it holds now, kept in the working state of a root from run to run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jidomem.clock import Sources
from jidomem.errors import InvalidRequest, TooLarge
from jidomem.keeping import Keeping, Store
from jidomem.spaces import Memory
from jidomem.spaces.changes import applied
from jidomem.spaces.container import refuse_stale
from jidomem.words import slug

TABLES = """
CREATE TABLE IF NOT EXISTS agents (project TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL,
  PRIMARY KEY (project, agent)) WITHOUT ROWID;
"""
_KEEP = "INSERT INTO agents VALUES (?, ?, ?) ON CONFLICT (project, agent) DO UPDATE SET memory = excluded.memory"
#: The most characters of a memory as JSON: it is read and written whole.
MOST = 16 * 1024**2


def holders(state: Keeping, project: str) -> list[str]:
    """Return the agents that hold something in *project*, by name."""
    with state.reading() as store:
        if store is None:
            return []
        return [
            name for (name,) in store.execute("SELECT agent FROM agents WHERE project = ? ORDER BY agent", (project,))
        ]


class AgentMemory:
    """The working memory of one agent in one project; any number of processes may change it, one after the other.

    Every call raises what `Keeping` raises where the file cannot be read or written.
    """

    def __init__(self, state: Keeping, project: str, agent: str, sources: Sources) -> None:
        """Keep it in *state*; raises InvalidRequest for a name of which nothing is left in its one written form."""
        self.project, self.agent = project, slug(agent)
        if not self.agent:
            raise InvalidRequest(f"agent={agent!r} is no name of an agent", hint="give it letters or digits")
        self._state, self._sources = state, sources

    def get(self) -> Memory | None:
        """Return what the agent holds, None if it never held anything."""
        with self._state.reading() as store:
            return None if store is None else self._read(store)

    def update(self, move: Callable[[Memory], Memory], *, expected_rev: int | None = None) -> Memory:
        """Return `move(memory)` once it is on disk; the first time it is given an empty memory.

        Nobody else changes the memory meanwhile, so *move* should not take long. Raises RevisionConflict if the memory
        is not at *expected_rev* (0 before the first change), InvalidRequest if *move* gives no Memory, or one that
        JSON has no form for, TooLarge for one of more than `MOST` characters: then nothing has changed.
        """
        with self._state.changing() as store:
            kept = self._read(store)
            before = kept if kept is not None else self._new()
            refuse_stale(f"the memory of {self.agent!r}", expected_rev, before.rev)
            after = move(before)
            if not isinstance(after, Memory):
                hint = "let it return the memory: lambda held: held.world_put('language', 'en')"
                raise InvalidRequest(f"a change of a memory gives a Memory, not {after!r:.200}", hint=hint)
            if after is not kept:
                rows = (self.project, self.agent, self._written(after))
                store.execute(_KEEP, rows)
            return after

    def apply(self, changes: Sequence[Mapping[str, Any]], *, expected_rev: int | None = None) -> Memory:
        """Return the memory after *changes*, data of the form that `jidomem.spaces.changes` takes: all of them or none.

        Raises what they are refused for, and what `update` raises.
        """
        return self.update(lambda memory: applied(memory, changes, self._now()), expected_rev=expected_rev)

    def forget(self) -> bool:
        """Return whether there was a memory; there is none now, and no byte of it in the file."""
        with self._state.changing() as store:
            asked = "DELETE FROM agents WHERE project = ? AND agent = ?"
            there = store.execute(asked, (self.project, self.agent)).rowcount > 0
        if there:
            self._state.scrub()
        return there

    def _new(self) -> Memory:
        return Memory.new(now=self._now(), new_id=self._sources.new_id)

    def _now(self) -> int:
        return int(self._sources.now().timestamp() * 1000)

    def _written(self, memory: Memory) -> str:
        text = json.dumps(memory.to_dict(), ensure_ascii=False)
        if len(text) > MOST:
            raise TooLarge(
                f"the memory of {self.agent!r} would have {len(text):,} characters, and {MOST:,} are the most",
                hint="keep what is large elsewhere, and a pointer to it here: world['pointers']",
            )
        return text

    def _read(self, store: Store) -> Memory | None:
        asked = "SELECT memory FROM agents WHERE project = ? AND agent = ?"
        found = store.execute(asked, (self.project, self.agent)).fetchone()
        try:
            return None if found is None else Memory.from_dict(json.loads(found[0]))
        except (ValueError, TypeError, RecursionError, InvalidRequest) as error:
            raise self._state.damaged(f"what is kept of {self.agent!r} is no memory: {error}") from error
