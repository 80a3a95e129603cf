"""Who was refused and who asked, as pages tell it: of every server of the root on this machine, or of this one."""

from __future__ import annotations

from typing import Any

from jidomem.errors import JidomemError
from jidomem.moments import stamp
from jidomem.runtime.door_log import AskedAt, RefusedAt
from jidomem.serve.curator.asked import Asked
from jidomem.serve.ledger import HTTP
from jidomem.serve.tallies import OTHERS


def of(asked: Asked) -> tuple[list[RefusedAt], list[AskedAt]]:
    """Return the refusals in this project and in none, and who asked this project, the latest first."""
    ledger = asked.site.operation.ledger
    if ledger is not None and ledger.keep():
        try:
            return ledger.log.read(asked.project)
        except JidomemError:  # of a file that cannot be read: what this server knows is there
            pass
    return _here(asked)


def told(asked: Asked) -> dict[str, Any]:
    """Return since when is counted: the moment this server began, where it counts for itself alone."""
    operation = asked.site.operation
    return {"since": stamp(operation.measures.since), "of_all": operation.ledger is not None}


def _here(asked: Asked) -> tuple[list[RefusedAt], list[AskedAt]]:
    measures = asked.site.operation.measures
    with measures.lock:
        counts, others = dict(measures.told_apart.counts), dict(measures.told_apart.others)
        asked_here = [
            AskedAt(*client, HTTP, stamp(visits.first), stamp(visits.last), visits.requests)
            for client, visits in measures.clients.seen.items()
        ]
    refused = [RefusedAt(*each, HTTP, count) for each, count in counts.items()]
    refused += [RefusedAt("", "", OTHERS, code, HTTP, count) for code, count in others.items()]
    return refused, asked_here[::-1]
