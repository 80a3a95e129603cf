"""How much memory a process takes that answers from an index on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import frame, load
from bench.frame import Options, Row
from bench.open import with_snapshot

GOAL_MB = 1_500

_CODE = """
import json, sys, jidomem
root, project = sys.argv[1:]
def taken():
    said = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {name: int(said[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}
found = {"imported": taken()}
with jidomem.open(root, project=project) as memory:
    memory.catch_up(project)
    found["opened"] = taken()
    for query in memory.playbook:
        if all(param.default is not None or param.name == "project" for param in query.params):
            memory.reader.ask(query.name, project=project, limit=50)
    found["asked"] = taken()
print(json.dumps(found))
"""


def rows(options: Options) -> Iterator[Row]:
    """Resident memory of a process after it opened the index, and after it asked the whole playbook."""
    root = options.copy()
    with_snapshot(root)
    found = _process(root)
    most = found["asked"]["VmHWM"]
    yield Row(
        f"memory of a process with the index on disk, {options.memories:,} memories",
        f"{GOAL_MB:,} MB",
        f"{found['asked']['VmRSS']:.0f} MB after the playbook, {most:.0f} MB at most",
        f"{found['imported']['VmRSS']:.0f} MB before it opened the root, {found['opened']['VmRSS']:.0f} MB after",
        most <= GOAL_MB,
        found,
    )


def _process(root: Path) -> dict[str, dict[str, float]]:
    """What a process of its own takes, in megabytes, at each of its steps."""
    command = [sys.executable, "-c", _CODE, str(root), load.PROJECT]
    found: dict[str, dict[str, float]] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


if __name__ == "__main__":
    frame.main("bench.memory", rows)
