"""The policy of a project as it was at a moment, read from the changes its journal holds."""

from __future__ import annotations

from typing import Any

from jidomem.authority import PRESETS, Authority, Change
from jidomem.policy import Policy
from jidomem.read.reader import MemoryReader
from jidomem.vocab import local_name


def authority(reader: MemoryReader, project: str, policy: Policy, *, as_of: object = None) -> Authority:
    """Return who may assert, propose or do nothing at all in *project*, on top of what the root's *policy* brings."""
    rows = reader.ask("policy-changes", project=project, as_of=as_of)
    roles = {name: agent.role for name, agent in policy.agents.items()}
    return Authority(tuple(map(_change, rows)), PRESETS[policy.preset], roles)


def _change(row: dict[str, Any]) -> Change:
    same = {
        name: row[name] for name in ("agent", "kind", "path", "scope", "allows", "confirms", "days", "reason", "by")
    }
    roles: dict[str, Any] = {name: row[name] and local_name(row[name]) for name in ("role", "grants")}
    return Change(**same, **roles, recorded=row["recorded"].isoformat(), node=row["change"])
