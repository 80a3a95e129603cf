"""How much a project remembers: its memories counted by kind and status."""

from __future__ import annotations

from typing import Any

from jidomem.read.reader import MemoryReader
from jidomem.vocab import local_name


def counts(reader: MemoryReader, project: str, **moment: Any) -> dict[str, dict[str, int]]:
    """Return how many memories of each kind are active, superseded, invalidated and proposed at a *moment*."""
    found: dict[str, dict[str, int]] = {}
    for row in reader.ask("counts", project=project, **moment):
        found.setdefault(local_name(row["kind"]), {})[row["status"]] = row["items"]
    return found
