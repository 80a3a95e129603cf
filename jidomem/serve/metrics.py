"""The figures of a server for Prometheus: what it counted, and how it stands at this moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import monotonic

from flask import Response

from jidomem.errors import PolicyDenied
from jidomem.serve import wire
from jidomem.serve.exposition import TYPE, Sample, family, histograms
from jidomem.serve.measures import Measures
from jidomem.serve.site import Site
from jidomem.serve.standing import Standing, standing


def metrics(site: Site) -> Response:
    """Return the figures; raises PolicyDenied for who does not reach every project."""
    wire.arguments()
    return Response(figures(site, site.memory.settings.limits.connections), content_type=TYPE)


def figures(site: Site, connections: int | None = None) -> str:
    """Return the figures; raises PolicyDenied for who does not reach every project: they tell of all of them.

    *connections* is how many the server answers at once at most, where it bounds them.
    """
    if site.is_hidden():
        raise PolicyDenied(
            "figures tell of every project, and this token does not reach all of them",
            hint="ask who runs the server for another one, made in a shell:"
            " jidomem token add prometheus --role reader --all-projects",
        )
    return "".join(_families(site, connections))


def _families(site: Site, connections: int | None) -> Iterator[str]:
    measures = site.operation.measures
    with measures.lock:
        yield from _counted(measures)
    if connections is not None:
        most: list[Sample] = [({}, connections)]
        yield family("jidomem_http_requests_limit", "gauge", "Requests that are answered at once at most.", most)
    yield from _queues(site)
    yield from _projects([standing(site.memory, name) for name in site.projects()])
    yield from _process(measures)


def _counted(measures: Measures) -> list[str]:
    requests: list[Sample] = [
        ({"route": route, "method": method, "status": str(status)}, count)
        for (route, method, status), count in sorted(measures.requests.items())
    ]
    refusals: list[Sample] = [({"code": code}, count) for code, count in sorted(measures.refusals.items())]
    calls: list[Sample] = [
        ({"method": method, "tool": tool, "outcome": outcome}, count)
        for (method, tool, outcome), count in sorted(measures.calls.items())
    ]
    return [
        family("jidomem_http_requests_total", "counter", "Requests answered.", requests),
        family("jidomem_refusals_total", "counter", "Requests, and intents among several, refused.", refusals),
        histograms("jidomem_http_request_seconds", "How long requests took.", "route", measures.routes),
        histograms("jidomem_query_seconds", "How long named questions took.", "query", measures.questions),
        family("jidomem_mcp_requests_total", "counter", "Requests of MCP, each with its outcome.", calls),
        histograms("jidomem_mcp_tool_seconds", "How long calls of tools took.", "tool", measures.tools),
        histograms("jidomem_commit_seconds", "How long commits took to be durable.", "", {"": measures.commits}),
        family("jidomem_http_requests_in_progress", "gauge", "Requests under way.", [({}, measures.under_way)]),
    ]


def _queues(site: Site) -> Iterator[str]:
    memory, lost = site.memory, site.operation.log.lost if site.operation.log else 0
    for name, text, value in (
        ("jidomem_writers_waiting", "Intents that wait for their turn.", memory.writer.waiting),
        ("jidomem_sparql_running", "Ad hoc queries that are being answered.", memory.pool.running),
        ("jidomem_sparql_waiting", "Ad hoc queries that wait for their turn.", memory.pool.waiting),
        ("jidomem_sparql_limit", "Ad hoc queries that are answered at once at most.", memory.settings.limits.queries),
    ):
        yield family(name, "gauge", text, [({}, value)])
    yield family("jidomem_log_lines_lost_total", "counter", "Lines of the log nobody read in time.", [({}, lost)])


def _projects(found: list[Standing]) -> Iterator[str]:
    for name, text, values in (
        ("journal", "The position of the journal of a project's memory.", [each.journal.position for each in found]),
        ("index", "The position the index has reached.", [each.index.position for each in found]),
    ):
        samples: list[Sample] = [({"project": e.project}, value) for e, value in zip(found, values, strict=True)]
        yield family(f"jidomem_{name}_position", "gauge", text, samples)
    behind: list[Sample] = [({"project": each.project}, each.behind) for each in found]
    yield family("jidomem_index_behind_commits", "gauge", "Commits the index has not taken in.", behind)


def _process(measures: Measures) -> Iterator[str]:
    with open("/proc/self/statm", "rb") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    yield family("process_resident_memory_bytes", "gauge", "Memory this process has.", [({}, resident)])
    times = os.times()
    yield family("process_cpu_seconds_total", "counter", "Processor time used.", [({}, times.user + times.system)])
    yield family("process_open_fds", "gauge", "Files and connections open.", [({}, len(os.listdir("/proc/self/fd")))])
    yield family("jidomem_uptime_seconds", "gauge", "Since when it serves.", [({}, monotonic() - measures.began)])
