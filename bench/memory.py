"""The resident memory of a process with the index on disk, before and after it ran each named query of the playbook.

python -m bench.memory [--memories N]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import harness, load
from bench.harness import Options, Row
from bench.open import with_snapshot

GOAL_MB = 1_500

_PROGRAM = """
import json, sys, jidomem
root, project = sys.argv[1:]
def resident():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}
megabytes = {"imported": resident()}
with jidomem.open(root, project=project) as memory:
    memory.catch_up(project)
    megabytes["opened"] = resident()
    for query in memory.playbook:
        if all(param.default is not None or param.name == "project" for param in query.params):
            memory.reader.ask(query.name, project=project, limit=50)
    megabytes["queried"] = resident()
print(json.dumps(megabytes))
"""


def rows(options: Options) -> Iterator[Row]:
    """Yield the resident memory after the playbook, beside that before and after the index was opened."""
    root = options.copy_root()
    with_snapshot(root)
    megabytes = _measure(root)
    peak = megabytes["queried"]["VmHWM"]
    yield Row(
        f"memory of a process with the index on disk, {options.memories:,} memories",
        f"{GOAL_MB:,} MB",
        f"{megabytes['queried']['VmRSS']:.0f} MB after the playbook, {peak:.0f} MB at most",
        f"{megabytes['imported']['VmRSS']:.0f} MB before opening, {megabytes['opened']['VmRSS']:.0f} MB after",
        peak <= GOAL_MB,
        megabytes,
    )


def _measure(root: Path) -> dict[str, dict[str, float]]:
    """Return the resident memory (VmRSS) and its peak (VmHWM) of a new process at each step, in MiB."""
    command = [sys.executable, "-c", _PROGRAM, str(root), load.PROJECT]
    result = subprocess.run(command, check=True, capture_output=True)
    megabytes: dict[str, dict[str, float]] = json.loads(result.stdout)
    return megabytes


if __name__ == "__main__":
    harness.main("bench.memory", rows)
