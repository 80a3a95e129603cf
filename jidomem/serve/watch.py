"""Each request, as it comes and goes: its id, how long it took, what is counted of it and what the log says."""

from __future__ import annotations

import sys
import traceback
from functools import partial
from time import perf_counter
from typing import Any

from flask import Request, Response, g, request

from jidomem.errors import JidomemError
from jidomem.serve.operation import Operation
from jidomem.serve.requestid import HEADER, id_of
from jidomem.serve.wire import Seen

#: What a route is called that there is not.
NOWHERE = "none"
METHODS = frozenset(("GET", "POST", "PATCH", "HEAD", "OPTIONS", "PUT", "DELETE"))
#: What is asked again and again by machines.
_QUIET = frozenset(("/healthz", "/readyz", "/metrics"))
LONGEST = 300


class Watch:
    """Sees every request of one server; of what is asked and answered nothing is kept but names and numbers."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def begin(self) -> None:
        """Take note of a request that came in."""
        g.seen = Seen(perf_counter(), id_of(request.environ))
        self._operation.measures.begun()

    def end(self, response: Response) -> Response:
        """Return *response* with the id of its request, and count it once all of it is given."""
        seen: Seen = g.seen
        asked: Request = request._get_current_object()  # type: ignore[attr-defined]
        response.headers.add(HEADER, seen.id)
        rule, status = asked.url_rule, response.status_code
        route = NOWHERE if rule is None else rule.endpoint.partition(" ")[2]
        level, said = level_of(route, status), None
        if self._operation.log is not None and self._operation.log.takes(level):
            said = _said(asked, response, seen)
        method = asked.method if asked.method in METHODS else "other"
        project = (asked.view_args or {}).get("project")
        if project is not None and seen.refusal != "unauthenticated":
            given, address = asked.headers.get("User-Agent", ""), asked.environ.get("REMOTE_ADDR", "")
            self._operation.measures.asked(project, seen.agent, given, address)
        if response.is_streamed:
            response.call_on_close(partial(self._told, seen, route, method, status, project, level, said))
        else:
            self._told(seen, route, method, status, project, level, said)
        return response

    def _told(
        self,
        seen: Seen,
        route: str,
        method: str,
        status: int,
        project: str | None,
        level: str,
        said: dict[str, Any] | None,
    ) -> None:
        """Count a request that was answered, and write what is *said* of it."""
        seconds, measures = perf_counter() - seen.began, self._operation.measures
        measures.ended(route, method, status, seconds, seen.question)
        if seen.refusal is not None:
            measures.refused(seen.refusal, seen.agent or seen.claimed, project)
        if said is not None:
            said["ms"] = round(1000 * seconds, 3)
            self._operation.tell(level, "request", said)


def unread(operation: Operation, refusal: JidomemError, name: str, client: str, seconds: float) -> None:
    """Count and log a request called *name* that was refused before any application saw it."""
    status = refusal.http_status
    operation.measures.begun()
    operation.measures.ended(NOWHERE, "other", status, seconds)
    operation.measures.refused(refusal.code)
    said = {
        "request_id": name,
        "client": client,
        "status": status,
        "code": refusal.code,
        "ms": round(1000 * seconds, 3),
    }
    operation.tell(level_of(NOWHERE, status), "request", said)


def broke(operation: Operation, error: Exception, **said: str) -> None:
    """Say what went wrong inside to the log, or else on standard error."""
    trace = "".join(traceback.format_exception(error))
    if operation.log is None:
        sys.stderr.write(trace)
    operation.tell("error", "bug", {**said, "traceback": trace})


def level_of(route: str, status: int) -> str:
    """Return the level of the line about a request."""
    if status >= 500:
        return "warning" if status == 503 else "error"
    return "debug" if route in _QUIET else "info"


def _said(asked: Request, response: Response, seen: Seen) -> dict[str, Any]:
    """Return what the log says of a request: neither its query string nor its body, which may hold anything."""
    said: dict[str, Any] = {
        "request_id": seen.id,
        "client": asked.environ.get("REMOTE_ADDR", ""),
        "method": asked.method[:20],
        "path": asked.path[:LONGEST],
        "status": response.status_code,
    }
    if not response.is_streamed:
        said["bytes"] = response.content_length
    project = (asked.view_args or {}).get("project")
    if project is not None:
        said["project"] = project[:LONGEST]
    if seen.agent is not None:
        said["agent"] = seen.agent
    if seen.question is not None:
        said["question"] = seen.question
    if seen.refusal is not None:
        said["code"] = seen.refusal
    return said
