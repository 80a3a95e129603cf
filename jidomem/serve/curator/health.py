"""The health of a project: how far its index is, how much it holds in how many bytes, what is damaged, and who asks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jidomem
from jidomem.journal.files import NAMES, Stream
from jidomem.serve.curator import counted, seen, told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.serve.standing import standing

#: Clients that are listed.
CLIENTS = 50


def show(asked: Asked) -> Mapping[str, Any]:
    """Return how the project stands now, whatever the moment asked for."""
    memory, project = asked.memory, asked.project
    found = standing(memory, project)
    memory.catch_up(project)
    return {
        "jidomem": jidomem.__version__,
        "ontology": memory.schema.version,
        "standing": found.to_dict(),
        "last_commit": found.journal.recorded_at or None,
        "journal_bytes": sum(_bytes(memory.journal.path(Stream(project, name))) for name in NAMES),
        "snapshots": _snapshots(asked),
        "on_disk": memory.tail.on_disk,
        "texts": memory.texts.told(Stream(project)),
        "vectors": memory.embedding and memory.embedding.told(project),
        "damage": [error.to_dict() for error in memory.damage(project)],
        "clients": _clients(asked),
        **counted.told(asked),
        "sees_all": seen.sees_all(asked),
    }


def _snapshots(asked: Asked) -> list[dict[str, Any]]:
    """Return the snapshots of the index, which has all projects: none to who does not reach all of them."""
    kept = [] if asked.site.is_hidden() else asked.memory.tail.snapshots()
    return [{"name": each.path.name, "bytes": each.size} for each in kept]


def _bytes(folder: Path) -> int:
    """Return how much is in the files of a folder; what goes meanwhile counts nothing."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _clients(asked: Asked) -> list[dict[str, Any]]:
    """Return who asked this project last and is there for who asks, the latest first."""
    clients = counted.of(asked)[1]
    shown = [one._asdict() for one in clients if one.project == asked.project and seen.sees(asked, one.agent)]
    return [{**one, "agent": told.agent(one["agent"])} for one in shown[:CLIENTS]]


HEALTH = Screen("health", "health.html", show, menu="Health")
