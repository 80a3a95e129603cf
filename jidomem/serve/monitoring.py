"""The monitoring of a server: request ids, the log line of a request, health, readiness and metrics."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from random import Random
from shlex import quote
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from flask import Request, Response, g, request

from jidomem.base import disk
from jidomem.base.files import busy_error, is_locked
from jidomem.errors import Busy, JidomemError, JournalDamaged, NotFound, PolicyDenied
from jidomem.journal.commit import moment_after
from jidomem.journal.journal import NAMES, Stream
from jidomem.journal.stream import LOCK
from jidomem.read.derived import authority
from jidomem.records.intent import Version
from jidomem.runtime.location import SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.tokens import Keyring
from jidomem.serve import wire
from jidomem.serve.server_state import BOUNDS, Histogram, Name, Operation, RequestContext, ServerTotals
from jidomem.serve.shared_state import SharedState
from jidomem.serve.wire import RequestRecord

if TYPE_CHECKING:
    from prometheus_client import Metric

TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: A sample: labels by name, and the value.
Sample = tuple[Mapping[str, str], float]


class MetricFamilies(NamedTuple):
    """Families of samples, in the form of a collector of prometheus_client."""

    families: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        """Return the families that have samples."""
        return [family for family in self.families if family.samples]

    def text(self) -> str:
        """Return the families in the text format of Prometheus."""
        from prometheus_client import generate_latest  # slow to load

        return generate_latest(self).decode()


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Metric:
    """Return a family of counters or gauges."""
    from prometheus_client import Metric  # slow to load

    metric = Metric(name.removesuffix("_total") if kind == "counter" else name, text, kind)
    for labels, value in samples:
        metric.add_sample(name, {**labels}, value)
    return metric


def histograms(name: str, text: str, label: str, values: Mapping[str, Histogram]) -> Metric:
    """Return a family of histograms by the value of *label*; without a label the family has one."""
    from prometheus_client.metrics_core import HistogramMetricFamily  # slow to load

    metric = HistogramMetricFamily(name, text, labels=[label] if label else [])
    for value, each in sorted(values.items()):
        bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        buckets = [*zip(bounds, accumulate(each.counts), strict=True)]
        metric.add_metric([value] if label else [], buckets, each.seconds)
    return metric


def log_missing_tokens(operation: Operation, memory: Jidomem, keyring: Keyring) -> None:
    """Log a warning if no token is valid and callers need one, or the policy has rules that nobody has to obey then."""
    if any(map(keyring.has, keyring.tokens)):
        return
    detail = "no token is valid: every request is refused"
    if not keyring.is_needed:
        policies = (authority(memory.reader, name, memory.settings.policy) for name in memory.projects())
        if all(policy.is_open and not policy.granted for policy in policies):
            return
        detail = "the policy has rules, and without tokens whoever reaches this server may act as any agent"
    command = f"jidomem access token add AGENT --root {quote(memory.settings.place)}"
    hint = f"there is none {keyring.place}; issue one: {command}"
    operation.log_event("warning", "no_tokens", {"detail": detail, "hint": hint})


@dataclass(frozen=True, slots=True)
class IndexLag:
    """The versions of a project's memory in the journal and in the index, and `behind`, the commits in between.

    `behind` counts the commits of all four graphs that the index has not applied.
    """

    project: str
    journal: Version
    index: Version
    behind: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"journal": str(self.journal), "index": str(self.index), "behind": self.behind}


def standing(memory: Jidomem, project: str, heads: Mapping[Stream, Version] | None = None) -> IndexLag:
    """Return the lag of the index for *project*, without applying commits.

    With the earlier *heads* of the journal, later commits do not count as `behind`.
    """
    memory_of = Stream(project)
    streams = [Stream(project, name) for name in NAMES]
    behind = sum(len(_missing(memory, stream, heads.get(stream) if heads else None)) for stream in streams)
    journal = memory.journal.head(memory_of)
    return IndexLag(project, journal, memory.index.mark(memory_of.graph).version, behind)


def _missing(memory: Jidomem, stream: Stream, head: Version | None) -> set[str]:
    """Return the names of the commits up to *head* (default: all) that the index has not applied."""
    applied, folder = memory.index.mark(stream.graph).version, memory.journal.inspect(stream)
    try:
        missing = set(folder.after(applied))
    except NotFound:  # another branch was checked out: all commits are missing
        return set(folder.after(Version()))
    if missing and head is not None:
        with suppress(NotFound):
            missing.difference_update(folder.after(head))
    return missing


#: Seconds that an index gets to catch up.
PATIENCE = 1.0


def alive(site: RequestContext) -> Response:
    """Return that the server is running."""
    wire.arguments()
    return wire.answer({"status": "ok"})


def ready(site: RequestContext) -> Response:
    """Return the readable version of each project; 503 if an index is behind or damaged, or no write is possible.

    Writes do not matter to a server that is for reading only. If a token is needed and missing, the answer is the
    status only.
    """
    wire.arguments()
    if site.caller is not None or site.keyring is None:
        return _health_response(_readiness(site))
    try:
        is_needed = site.keyring.requires_token()
    except JidomemError:  # the tokens cannot be read, as while the store is away: it is not asked a second time
        return _health_response({"status": "not ready"})
    if not is_needed:
        return _health_response(_readiness(site))
    is_ready = site.operation.readiness.latest(lambda: _is_ready(site))
    return _health_response({"status": "ok" if is_ready else "not ready"})


def _health_response(state: dict[str, Any]) -> Response:
    return wire.answer(state) if state["status"] == "ok" else wire.answer(state, 503, Retry_After="1")


def _readiness(site: RequestContext) -> dict[str, Any]:
    memory, end = site.memory, monotonic() + PATIENCE
    projects = site.projects()
    heads = {each: memory.journal.head(each) for name in projects for each in (Stream(name, part) for part in NAMES)}
    for _ in range(2):  # the first wait may be for a run that had begun before
        site.operation.catch_up.wait(memory, max(0.0, end - monotonic()))
        lags = [standing(memory, name, heads) for name in projects]
        if not any(each.behind for each in lags):
            break
    behind = {each.project: each.to_dict() for each in lags if each.behind}
    damage = {name: site.operation.damage(memory, name) for name in projects}
    damaged = {name: [_shown(site, error) for error in each] for name, each in damage.items() if each}
    problem, fault = (
        memory.config.problem,
        None if site.operation.read_only else write_fault(memory) or lock_fault(site),
    )
    if site.operation.readiness.has_changed_to(fault.detail if fault else "") and fault:
        site.operation.log_event("warning", "unwritable", {"detail": fault.detail, "hint": fault.hint})
    states = {"damaged": damaged, "behind": behind, "rules": problem, "unwritable": fault}
    return {
        "status": next((name for name, found in states.items() if found), "ok"),
        "versions": {each.project: str(each.index) for each in lags},
        "behind": behind,
        "damage": damaged,
        **({"rules": _shown(site, problem)} if problem else {}),
        **({"unwritable": _shown(site, fault)} if fault else {}),
    }


def _shown(site: RequestContext, error: JidomemError) -> dict[str, Any]:
    """Return *error* as the caller may see it: one with a token without paths and commands of this machine."""
    return (wire.for_callers(error, site.memory.place.name) if site.caller else error).to_dict()


def write_fault(memory: Jidomem) -> JidomemError | None:
    """Return the reason why a write would fail: a full or read-only disk, permissions, the clock; None without one.

    A small file is written beside the journal. For a shared root that is the copy, and its store is probed, too.
    """
    root, streams, now = memory.settings.root, memory.journal.streams(), memory.sources.now()
    folders = [memory.journal.path(stream) for stream in streams]
    try:
        for stream in streams:
            with suppress(JournalDamaged):  # which is reported as damage
                moment_after(now, *memory.journal.head(stream).heads)
        memory.journal.check_present()
        if isinstance(memory.place, SharedLocation):
            memory.place.log.check_writable()
        disk.check_writable([*folders, *disk.obstacle(root)])
        if root.is_dir():
            disk.try_write(str(root))
    except JidomemError as error:
        return error
    return None


def lock_fault(site: RequestContext) -> Busy | None:
    """Return the error of a lock that was not free at any check while a writer would wait, and no commit was added."""
    journal, locked = site.memory.journal, site.operation.readiness.locked
    for stream in journal.streams():
        path, version = journal.path(stream) / LOCK, journal.head(stream)
        since, before = locked.get(stream, (monotonic(), version))
        if not is_locked(path):
            locked.pop(stream, None)
        elif before == version and monotonic() - since > journal.wait:
            return busy_error(path, journal.wait)
        else:
            locked[stream] = (since, version) if before == version else (monotonic(), version)
    return None


def _is_ready(site: RequestContext) -> bool:
    """Return whether the server is ready; the log has the reason of a check that fails, once until one succeeds."""
    problem, state = None, {}
    try:
        state = _readiness(site)
    except JidomemError as error:
        problem = error
    if site.operation.readiness.has_changed_to(problem.code if problem else "", "/readyz") and problem:
        site.operation.log_fault(problem)
    return state.get("status") == "ok"


def metrics(site: RequestContext) -> Response:
    """Return the metrics; raise PolicyDenied unless the caller may read every project."""
    wire.arguments()
    return Response(figures(site, site.memory.settings.limits.connections), content_type=TYPE)


def figures(site: RequestContext, connections: int | None = None) -> str:
    """Return the metrics of all projects as text; raise PolicyDenied unless the caller may read all of them.

    *connections* is the limit of the server, if any.
    """
    if site.is_hidden():
        raise PolicyDenied(
            "metrics cover all projects, and this token does not give access to all of them",
            hint="ask the operator of the server for another one, made in a shell:"
            " jidomem access token add prometheus --role reader --all-projects",
        )
    return MetricFamilies([*_families(site, connections)]).text()


def _families(site: RequestContext, connections: int | None) -> Iterator[Metric]:
    measures = site.operation.measures
    with measures.lock:
        totals, others = measures.totals(), measures.gauges_of_others()
    yield from _counter_families(totals)
    if connections is not None:
        most: list[Sample] = [({}, connections)]
        yield family("jidomem_http_requests_limit", "gauge", "Requests that are answered at once at most.", most)
    yield from _queues(site, totals, others)
    yield from _projects(site, others)
    yield from _processes(site.operation)


def _counter_families(totals: ServerTotals) -> list[Metric]:
    requests: list[Sample] = [
        ({"route": route, "method": method, "status": status}, count)
        for (route, method, status), count in sorted(totals.requests.items())
    ]
    refusals: list[Sample] = [({"code": code}, count) for code, count in sorted(totals.refusals.items())]
    calls: list[Sample] = [
        ({"method": method, "tool": tool, "outcome": outcome}, count)
        for (method, tool, outcome), count in sorted(totals.calls.items())
    ]
    return [
        family("jidomem_http_requests_total", "counter", "Requests answered.", requests),
        family("jidomem_refusals_total", "counter", "Requests, and intents among several, refused.", refusals),
        histograms("jidomem_http_request_seconds", "How long requests took.", "route", totals.routes),
        histograms("jidomem_query_seconds", "How long named questions took.", "query", totals.questions),
        family("jidomem_mcp_requests_total", "counter", "Requests of MCP, each with its outcome.", calls),
        histograms("jidomem_mcp_tool_seconds", "How long calls of tools took.", "tool", totals.tools),
        histograms("jidomem_commit_seconds", "How long commits took to be durable.", "", {"": totals.commits}),
        family("jidomem_http_requests_in_progress", "gauge", "Requests under way.", [({}, totals.under_way)]),
    ]


def _queues(site: RequestContext, totals: ServerTotals, others: Sequence[Mapping[Name, float]]) -> Iterator[Metric]:
    for name, text, value in (
        ("jidomem_writers_waiting", "Intents that wait for their turn.", site.memory.writer.waiting),
        ("jidomem_sparql_running", "Ad hoc queries that are being answered.", site.memory.pool.running),
        ("jidomem_sparql_waiting", "Ad hoc queries that wait for their turn.", site.memory.pool.waiting),
    ):
        yield family(name, "gauge", text, [({}, value + sum(each.get((name,), 0) for each in others))])
    most: list[Sample] = [({}, site.memory.settings.limits.queries)]
    yield family("jidomem_sparql_limit", "gauge", "Ad hoc queries that are answered at once at most.", most)
    lost: list[Sample] = [({}, totals.lost_lines)]
    yield family("jidomem_log_lines_lost_total", "counter", "Lines of the log that were dropped.", lost)


def publish_gauges(operation: Operation, memory: Jidomem, projects: Iterable[str]) -> None:
    """Set the gauges of this worker for the other ones; *projects* have just caught up with the journal."""
    measures = operation.measures
    measures.set_gauge(("jidomem_writers_waiting",), memory.writer.waiting)
    measures.set_gauge(("jidomem_sparql_running",), memory.pool.running)
    measures.set_gauge(("jidomem_sparql_waiting",), memory.pool.waiting)
    for project in projects:
        lag = standing(memory, project)
        measures.set_gauge(("index", project), lag.index.position)
        measures.set_gauge(("behind", project), lag.behind)
        measures.set_gauge(("damaged", project), len(operation.damage(memory, project)))


def _projects(site: RequestContext, others: Sequence[Mapping[Name, float]]) -> Iterator[Metric]:
    """Yield the positions of each project; the index is that of the worker that is furthest behind."""
    journal, index, behind, damaged = list[Sample](), list[Sample](), list[Sample](), list[Sample]()
    for name in site.projects():
        lag = standing(site.memory, name)
        positions = [each[row] for each in others if (row := ("index", name)) in each]
        lags = [each.get(("behind", name), 0) for each in others]
        journal.append(({"project": name}, lag.journal.position))
        index.append(({"project": name}, min([lag.index.position, *positions])))
        behind.append(({"project": name}, max([lag.behind, *lags])))
        known = [each.get(("damaged", name), 0) for each in others]
        damaged.append(({"project": name}, max([len(site.operation.damage(site.memory, name)), *known])))
    text = "The position of the journal of a project's memory."
    yield family("jidomem_journal_position", "gauge", text, journal)
    yield family("jidomem_index_position", "gauge", "The position the index has reached.", index)
    yield family("jidomem_index_behind_commits", "gauge", "Commits the index has not taken in.", behind)
    yield family("jidomem_journal_damaged_files", "gauge", "Files of the journal that are known as damaged.", damaged)


def _processes(operation: Operation) -> Iterator[Metric]:
    """Yield the figures of the process, or of each worker, and the age of the server."""
    from prometheus_client import ProcessCollector  # slow to load

    if operation.shared is None:
        yield from ProcessCollector(registry=None).collect()
    else:
        yield from _workers(operation.shared)
    age = monotonic() - operation.measures.began
    yield family("jidomem_uptime_seconds", "gauge", "Since when it serves.", [({}, age)])


def _workers(shared: SharedState) -> Iterator[Metric]:
    from prometheus_client import ProcessCollector  # slow to load

    families: dict[str, Metric] = {}
    pids = shared.pids()
    for number, pid in pids.items():
        for each in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            metric = families.setdefault(each.name, each)
            samples = [one._replace(labels={"worker": str(number)}) for one in each.samples]
            metric.samples = samples if metric is each else [*metric.samples, *samples]
    yield from families.values()
    yield family("jidomem_workers", "gauge", "Workers that answer requests.", [({}, len(pids))])


HEADER = "X-Request-Id"
_GIVEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/=+@-]{0,127}")
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


#: Seeded by the system; request ids need not be unguessable.
_RANDOM = Random()


def id_of(environ: Mapping[str, Any]) -> str:
    """Return the X-Request-Id of a request, else the trace id of its traceparent, else a new id.

    A malformed header is ignored.

    >>> id_of({"HTTP_X_REQUEST_ID": "build-7"})
    'build-7'
    """
    given = environ.get("HTTP_X_REQUEST_ID")
    if given is not None and _GIVEN.fullmatch(given):
        return str(given)
    trace = environ.get("HTTP_TRACEPARENT")
    if trace is not None and (match := _TRACE.fullmatch(trace)):
        return match[1]
    return f"{_RANDOM.getrandbits(128):032x}"


#: The route of a request for an unknown address.
NOWHERE = "none"
METHODS = frozenset(("GET", "POST", "PATCH", "HEAD", "OPTIONS", "PUT", "DELETE"))
#: Routes that are polled by machines.
_QUIET = frozenset(("/healthz", "/readyz", "/metrics"))
MAX_LOG_CHARS = 300


class RequestMonitor:
    """Counts and logs every request of one server, by names and numbers only."""

    def __init__(self, operation: Operation, memory: Jidomem) -> None:
        self._operation, self._memory = operation, memory

    def begin(self) -> None:
        """Count a request that arrived."""
        g.seen = RequestRecord(perf_counter(), id_of(request.environ))
        self._operation.measures.begun()

    def end(self, response: Response) -> Response:
        """Add the request id to *response*, which is counted once all of it is sent."""
        seen: RequestRecord = g.seen
        incoming: Request = request._get_current_object()  # type: ignore[attr-defined]
        response.headers.add(HEADER, seen.id)
        rule, status = incoming.url_rule, response.status_code
        route = NOWHERE if rule is None else rule.endpoint.partition(" ")[2]
        level, fields = level_of(route, status), None
        if self._operation.log is not None and self._operation.log.is_logged(level):
            fields = _log_fields(incoming, response, seen)
        method = incoming.method if incoming.method in METHODS else "other"
        project = (incoming.view_args or {}).get("project")
        if project is not None and seen.refusal != "unauthenticated":
            user_agent, address = incoming.headers.get("User-Agent", ""), incoming.environ.get("REMOTE_ADDR", "")
            self._operation.measures.client_seen(project, seen.agent, user_agent, address)
        if response.is_streamed:
            response.response = _counted(response.response, seen)
            response.call_on_close(partial(self._record, seen, route, method, status, project, level, fields))
        else:
            self._record(seen, route, method, status, project, level, fields)
        return response

    def _record(
        self,
        seen: RequestRecord,
        route: str,
        method: str,
        status: int,
        project: str | None,
        level: str,
        fields: dict[str, Any] | None,
    ) -> None:
        """Count a request that was answered, and log its *fields*."""
        seconds, measures = perf_counter() - seen.began, self._operation.measures
        measures.ended(route, method, status, seconds, seen.question)
        if seen.refusal is not None:
            measures.refused(seen.refusal, seen.agent or seen.claimed, project)
        if project is not None and seen.refusal == JournalDamaged.code:
            with suppress(JidomemError):
                self._operation.damage(self._memory, project)  # logs it
        if fields is not None:
            fields |= seen.outcomes
            if seen.sent:
                fields["bytes"] = seen.sent
            if seen.refusal is not None:
                fields["code"] = seen.refusal
            fields["ms"] = round(1000 * seconds, 3)
            self._operation.log_event(level, "request", fields)


def log_refusal(operation: Operation, refusal: JidomemError, name: str, client: str, seconds: float) -> None:
    """Count and log a request called *name* that was refused before it reached the application."""
    status = refusal.http_status
    operation.measures.begun()
    operation.measures.ended(NOWHERE, "other", status, seconds)
    operation.measures.refused(refusal.code)
    fields = {
        "request_id": name,
        "client": client,
        "status": status,
        "code": refusal.code,
        "ms": round(1000 * seconds, 3),
    }
    operation.log_event(level_of(NOWHERE, status), "request", fields)


def log_bug(operation: Operation, error: Exception, **fields: str) -> None:
    """Write the traceback of *error* to the log, or else to standard error."""
    trace = "".join(traceback.format_exception(error))
    if operation.log is None:
        sys.stderr.write(trace)
    operation.log_event("error", "bug", {**fields, "traceback": trace})


def level_of(route: str, status: int) -> str:
    """Return the level of the line about a request."""
    if status >= 500:
        return "warning" if status == 503 else "error"
    return "debug" if route in _QUIET else "info"


def _log_fields(incoming: Request, response: Response, seen: RequestRecord) -> dict[str, Any]:
    """Return the fields of the log line, without query string and body, which may hold secrets."""
    fields: dict[str, Any] = {
        "request_id": seen.id,
        "client": incoming.environ.get("REMOTE_ADDR", ""),
        "method": incoming.method[:20],
        "path": incoming.path[:MAX_LOG_CHARS],
        "status": response.status_code,
    }
    if not response.is_streamed:
        fields["bytes"] = response.content_length
    project = (incoming.view_args or {}).get("project")
    if project is not None:
        fields["project"] = project[:MAX_LOG_CHARS]
    if seen.agent is not None:
        fields["agent"] = seen.agent
    if seen.token is not None:
        fields["token"] = seen.token
    if seen.question is not None:
        fields["question"] = seen.question
    return fields


def _counted(pieces: Iterable[Any], seen: RequestRecord) -> Iterator[Any]:
    """Yield the *pieces* of a streamed answer, whose bytes are counted in *seen*."""
    for piece in pieces:
        seen.sent += len(piece)
        yield piece
