"""What is kept beside the tiers of a project: the settings of its agents, and of each whose vectors it has."""

from __future__ import annotations

import json
from typing import Any

from jidomem.keeping import Store
from jidomem.memoryos.config import MemoryOSConfig
from jidomem.memoryos.configurations import AgentRecord, Configurations

TABLES = """
CREATE TABLE IF NOT EXISTS memoryos_notes (
  project TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, held TEXT NOT NULL,
  PRIMARY KEY (project, kind, name)) WITHOUT ROWID;
"""
_KEEP = """INSERT INTO memoryos_notes VALUES (?, ?, ?, ?)
           ON CONFLICT (project, kind, name) DO UPDATE SET held = excluded.held"""
_TYPE, _AGENT = "type", "agent"


def note(store: Store | None, project: str, kind: str, name: str) -> Any:
    """Return what is kept under a name, in a transaction of the state; None where nothing is."""
    asked = "SELECT held FROM memoryos_notes WHERE project = ? AND kind = ? AND name = ?"
    found = store.execute(asked, (project, kind, name)).fetchone() if store is not None else None
    return None if found is None else json.loads(found[0])


def keep(store: Store, project: str, kind: str, name: str, held: Any) -> None:
    """Keep a JSON value under a name, in the place of what is there; None is nothing."""
    if held is None:
        store.execute("DELETE FROM memoryos_notes WHERE project = ? AND kind = ? AND name = ?", (project, kind, name))
    else:
        row = (project, kind, name, json.dumps(held, ensure_ascii=False))
        store.execute(_KEEP, row)


def configurations(store: Store | None, project: str, application: MemoryOSConfig) -> Configurations:
    """Return what is set for the agents of a project and for their types, over the settings of the application."""
    asked = "SELECT kind, name, held FROM memoryos_notes WHERE project = ? AND kind IN ('type', 'agent')"
    rows = store.execute(asked, (project,)).fetchall() if store is not None else []
    return Configurations(
        application,
        {name: json.loads(held) for kind, name, held in rows if kind == _TYPE},
        tuple(AgentRecord.from_dict(json.loads(held)) for kind, _, held in rows if kind == _AGENT),
    )


def configure(store: Store, project: str, after: Configurations) -> None:
    """Keep what is set for agents and their types."""
    for name, values in after.types.items():
        keep(store, project, _TYPE, name, dict(values))
    for record in after.agents:
        keep(store, project, _AGENT, record.agent_id, record.to_dict())
