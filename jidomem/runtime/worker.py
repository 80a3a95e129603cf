"""A process that answers SPARQL nobody vouches for, one query after the other, and may be killed at any moment.

    python -m jidomem.runtime.worker ROOT

The engine can neither be interrupted nor held to a size from within. So its queries run here: in a process of their
own that opens the root for itself, has stated limits, and ends with the server that started it.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Any

from jidomem.errors import JidomemError
from jidomem.index.results import AnswerLimits
from jidomem.rdf.sparql import Dataset
from jidomem.runtime import worker_pool
from jidomem.runtime.root import Jidomem, open_root
from jidomem.runtime.worker_pool import out_of_memory

_IN, _OUT = 0, 1
#: How far this stands back behind the named queries and the writes of the server.
_NICE = 10


def main(root: str) -> None:
    """Answer the queries that come on standard input until it is closed, or nobody reads the answers."""
    with suppress(worker_pool.Ended):
        _serve(root)


def _serve(root: str) -> None:
    out = os.dup(_OUT)
    os.dup2(2, _OUT)  # nothing that prints may write among the messages
    for stopping in (signal.SIGINT, signal.SIGHUP):  # they go to the whole group; the server tells when to stop
        signal.signal(stopping, signal.SIG_IGN)
    os.nice(_NICE)
    try:
        memory = open_root(root, index="")  # who started this asks a store itself
    except JidomemError as error:
        _tell(out, {"error": error.to_dict()})
        return
    with memory:
        if memory.project in memory.projects():
            memory.catch_up(memory.project)
        _tell(out, {"ready": True})
        while True:
            asked = json.loads(worker_pool.receive(_IN))
            _tell(out, {"taken": True})
            _answer(memory, asked, out)


def _answer(memory: Jidomem, query: dict[str, Any], out: int) -> None:
    told: dict[str, Any]
    data: bytes | None
    _end_with_the_server(True)
    try:
        memory.catch_up(query["project"])
        _limit_memory(_used() + query["memory"])
        data = memory.reader.serialized(
            query["project"],
            query["text"],
            rows_as=query["rows_as"],
            graph_as=query["graph_as"],
            as_of=query["as_of"],
            bindings=query["bindings"],
            within=AnswerLimits(query["rows"], query["size"]),
            instead=Dataset(*query["dataset"]) if query["dataset"] else None,
        )
        told = {"answered": True}
    except MemoryError:
        told, data = {"error": out_of_memory(query["memory"]).to_dict()}, None
    except JidomemError as error:
        told, data = {"error": error.to_dict()}, None
    finally:
        _limit_memory(resource.RLIM_INFINITY)
        _end_with_the_server(False)
    _tell(out, told)
    if data is not None:
        worker_pool.send(out, data)


def _tell(out: int, message: dict[str, Any]) -> None:
    worker_pool.send(out, json.dumps(message, default=str).encode())


def _end_with_the_server(is_bound: bool) -> None:
    """Let the kernel end this process when the server closes its end, which a running query would not notice.

    Nothing else comes on standard input meanwhile: the server sends the next query after the answer.
    """
    flags = fcntl.fcntl(_IN, fcntl.F_GETFL)
    fcntl.fcntl(_IN, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(_IN, fcntl.F_SETFL, flags | os.O_ASYNC if is_bound else flags & ~os.O_ASYNC)


def _used() -> int:
    """Return the bytes of address space this process has."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(sys.argv[1])
