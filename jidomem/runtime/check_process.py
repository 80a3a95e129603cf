"""A process that checks the memory of one project and writes the report, behind whatever else the machine does.

    python -m jidomem.runtime.check_process ROOT PROJECT json|sarif|junit
    python -m jidomem.runtime.check_process ROOT PROJECT preview FOLDER FILE

The latter writes what would newly fail if the root's own terms and rules were those in FOLDER, where FILE is another.

It ends when its standard input does: with the server that started it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Thread

from jidomem import __version__
from jidomem.check.check import seen_from
from jidomem.check.overlay import preview
from jidomem.check.report import junit, sarif
from jidomem.errors import JidomemError
from jidomem.runtime.root import Jidomem, open_root
from jidomem.runtime.worker_pool import REFUSED

#: How far this stands back behind those who ask and write.
_NICE = 10


def main(root: str, project: str, form: str, *changed: str) -> int:
    """Write what was asked for, or the error that was met; return the exit code."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that prints may write into the report
    os.nice(_NICE)
    Thread(target=_end_with_the_server, daemon=True).start()
    try:
        with open_root(root) as memory:
            found = _preview(memory, project, *changed) if changed else _checked(memory, project, form)
    except JidomemError as error:
        out.write(json.dumps(error.to_dict(), default=str).encode())
        out.flush()
        return REFUSED
    out.write(found.encode())
    out.flush()
    return 0


def _preview(memory: Jidomem, project: str, folder: str, name: str) -> str:
    """Return what would newly fail, as JSON."""
    memory.catch_up(project)
    found = preview(memory.index, project, memory.settings.root, Path(folder), name)
    return json.dumps(found.to_dict(), ensure_ascii=False)


def _checked(memory: Jidomem, project: str, form: str) -> str:
    """Return the report, its paths as seen from the root."""
    report = memory.check(project)
    report.problems = [seen_from(problem, memory.settings.root) for problem in report.problems]
    if form == "junit":
        return junit(report)
    return json.dumps(sarif(report, __version__) if form == "sarif" else report.to_dict(), ensure_ascii=False)


def _end_with_the_server() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
