"""The worker process: runs jobs of a server that may have to be killed, one after the other.

    python -m jidomem.runtime.worker ROOT

The engine can be neither interrupted nor limited in memory from within its process. So untrusted
queries, checks and previews run here: in a process that opens the root itself, has stated limits,
and ends with the server that started it.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from jidomem import __version__
from jidomem.errors import JidomemError
from jidomem.index.results import AnswerLimits
from jidomem.rdf.sparql import Dataset
from jidomem.runtime import worker_pool
from jidomem.runtime.root import Jidomem, open_root
from jidomem.runtime.worker_pool import out_of_memory

_IN, _OUT = 0, 1
#: The lower priority of a worker, so that named queries and writes of the server run first.
_NICE = 10


def main(root: str) -> None:
    """Run the jobs from standard input until it is closed, or the other end of the answers is."""
    with suppress(worker_pool.PeerClosed):
        _serve(root)


def _serve(root: str) -> None:
    out = os.dup(_OUT)
    os.dup2(2, _OUT)  # printed text must not get between the messages
    for stopping in (signal.SIGINT, signal.SIGHUP):  # sent to the whole group; the server stops its workers itself
        signal.signal(stopping, signal.SIG_IGN)
    os.nice(_NICE)
    _end_with_the_server(True)
    try:
        memory = open_root(root, index="")  # a remote store is queried by the server
    except JidomemError as error:
        _send(out, {"error": error.to_dict()})
        return
    with memory:
        if memory.project in memory.projects():
            memory.catch_up(memory.project)
        _end_with_the_server(False)
        _send(out, {"ready": True})
        while True:
            job = json.loads(worker_pool.receive(_IN))
            _send(out, {"taken": True})
            _answer(memory, job, out)


def _answer(memory: Jidomem, job: dict[str, Any], out: int) -> None:
    message: dict[str, Any] = {"done": True}
    data: bytes | None = None
    _end_with_the_server(True)
    try:
        data = _JOBS[job["job"]](memory, job)
    except MemoryError:
        message = {"error": out_of_memory(job.get("memory", 0)).to_dict()}
    except JidomemError as error:
        message = {"error": error.to_dict()}
    finally:
        _limit_memory(resource.RLIM_INFINITY)
        _end_with_the_server(False)
    _send(out, message)
    if data is not None:
        worker_pool.send(out, data)


def _query(memory: Jidomem, job: dict[str, Any]) -> bytes:
    """Return the answer to a SPARQL query, within its limits of memory, rows and bytes."""
    memory.catch_up(job["project"])
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()  # the bytes of address space
    _limit_memory(used + job["memory"])
    return memory.reader.serialized(
        job["project"],
        job["text"],
        rows_as=job["rows_as"],
        graph_as=job["graph_as"],
        as_of=job["as_of"],
        bindings=job["bindings"],
        within=AnswerLimits(job["rows"], job["size"]),
        instead=Dataset(*job["dataset"]) if job["dataset"] else None,
    )


def _check(memory: Jidomem, job: dict[str, Any]) -> bytes:
    """Return the report of a check as JSON, SARIF or JUnit XML, its paths relative to the root."""
    from jidomem.check.report import junit, sarif, seen_from  # slow to load, and not needed for queries

    report = memory.check(job["project"])
    report.problems = [seen_from(problem, memory.settings.root) for problem in report.problems]
    if job["form"] == "junit":
        return junit(report).encode()
    values = sarif(report, __version__) if job["form"] == "sarif" else report.to_dict()
    return json.dumps(values, ensure_ascii=False).encode()


def _preview(memory: Jidomem, job: dict[str, Any]) -> bytes:
    """Return, as JSON, the findings that would be new if the overlay of the root were the one in a folder."""
    from jidomem.check.overlay import preview  # slow to load, and not needed for queries

    memory.catch_up(job["project"])
    changes = preview(memory.index, job["project"], memory.settings.root, Path(job["folder"]), job["file"])
    return json.dumps(changes.to_dict(), ensure_ascii=False).encode()


_JOBS = {"query": _query, "check": _check, "preview": _preview}


def _send(out: int, message: dict[str, Any]) -> None:
    worker_pool.send(out, json.dumps(message, default=str).encode())


def _end_with_the_server(is_bound: bool) -> None:
    """Let the kernel end this process when the server closes its end, which a running job would not notice.

    Nothing else arrives on standard input meanwhile: the server sends the next job after the answer.
    """
    flags = fcntl.fcntl(_IN, fcntl.F_GETFL)
    fcntl.fcntl(_IN, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(_IN, fcntl.F_SETFL, flags | os.O_ASYNC if is_bound else flags & ~os.O_ASYNC)


def _limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(sys.argv[1])
