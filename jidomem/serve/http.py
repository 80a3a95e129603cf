"""The HTTP application: every route of the table, one way to refuse, and no host but those it was made for."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import partial
from typing import Any

from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from jidomem.errors import InvalidRequest, JidomemError, NotFound, NotServed, PolicyDenied
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.root import Jidomem
from jidomem.serve import fields, wire
from jidomem.serve.cors import Cors
from jidomem.serve.cors import origins as allowed_origins
from jidomem.serve.curator import pages
from jidomem.serve.gate import Gate
from jidomem.serve.operation import Operation
from jidomem.serve.routes import ROUTES
from jidomem.serve.site import Site
from jidomem.serve.watch import Watch, broke

#: The names of this machine for itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_PORT = re.compile(r":[0-9]*$")
_PUBLIC = "give scheme and host as clients ask them: --public-url https://memory.example.org"
_LONG = ("name", "id")  # parts of a path that may hold slashes


def create_app(
    memory: Jidomem,
    *,
    hosts: Collection[str] = LOOPBACK,
    keyring: Keyring | None = None,
    operation: Operation | None = None,
    origins: Collection[str] = (),
    public_url: str | None = None,
) -> Flask:
    """Return the WSGI application that serves *memory* to requests for one of *hosts*.

    With a *keyring* that has tokens it serves those who have one, each what its token reaches. *operation* counts what
    it does, and logs it. Pages of *origins* may read the answers, and *public_url* is the origin that clients ask
    where that is another than the server sees; raises InvalidRequest where one is none.
    """
    app = _App("jidomem.serve", static_folder=None)
    app.config[wire.LIMITS] = memory.settings.limits
    app.config["MAX_CONTENT_LENGTH"] = memory.settings.limits.body
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    at_work = operation or Operation()
    memory.journal.on_kept = at_work.measures.committed
    public = None if public_url is None else next(iter(allowed_origins([public_url], _PUBLIC)))
    gate, watch = Gate(Site(memory, keyring, operation=at_work, public_url=public)), Watch(at_work)
    cors = Cors(allowed_origins(origins))
    for route in (*ROUTES, *pages.PAGES):
        app.add_url_rule(
            re.sub(r"\{(\w+)\}", _part, route.path),
            endpoint=f"{route.method} {route.path}",
            view_func=partial(gate.answer, route),
            methods=[route.method],
        )
    allowed = frozenset(host.lower() for host in hosts)
    app.before_request(watch.begin)
    app.before_request(lambda: check_host(request.environ.get("HTTP_HOST", ""), allowed))
    app.before_request(cors.preflight)
    app.before_request(gate.admit)
    app.before_request(_refuse_unreadable)
    app.after_request(watch.end)  # the last of them
    app.after_request(cors.headed)
    app.after_request(gate.headed)
    app.register_error_handler(JidomemError, _told)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, partial(_bug, at_work))
    return app


class _Whole(Response):
    """An answer that is there in one piece is handed over as such, which saves the server a thread's turns."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        """Return the body, as WSGI has it."""
        if not self.is_sequence or environ["REQUEST_METHOD"] == "HEAD":
            return super().__call__(environ, start_response)
        _, status, headers = self.get_wsgi_response(environ)
        start_response(status, headers)
        body = b"".join(self.iter_encoded())
        self.close()
        return [body]


class _App(Flask):
    """An application without coroutines: nothing is asked of each function whether it is one."""

    response_class = _Whole

    def ensure_sync(self, func: Any) -> Any:
        """Return *func*."""
        return func


def _part(match: re.Match[str]) -> str:
    return f"<path:{match[1]}>" if match[1] in _LONG else f"<{match[1]}>"


def check_host(given: str, allowed: Collection[str]) -> None:
    """Raise PolicyDenied for a request meant for another host: a page in a browser may have been sent here for it."""
    host = _PORT.sub("", given).lower()
    if host not in allowed:
        raise PolicyDenied(
            f"this server does not answer for the host {host!r}", hint=f"use one of: {', '.join(sorted(allowed))}"
        )


def _refuse_unreadable() -> None:
    """Raise InvalidRequest for a query string that is not percent-encoded UTF-8, and for a body nobody reads."""
    fields.check(request.query_string, "the query string")
    has_body = request.content_length or "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    if has_body and request.method in ("GET", "HEAD"):
        raise InvalidRequest(
            f"a {request.method} has no body here", hint="write it into the query string, or send it with POST"
        )


def _refused(error: HTTPException) -> Response:
    """Return what Flask refused as the error table has it."""
    if isinstance(error, MethodNotAllowed):
        allow = sorted(error.valid_methods or ())
        refusal: JidomemError = NotServed(
            f"{request.path} has no method {request.method}", hint=f"use one of: {', '.join(allow)}", allow=allow
        )
    elif error.code == 404:
        paths = sorted(pages.PLACES) if pages.is_page() else sorted({route.path for route in ROUTES})
        near = get_close_matches(request.path, paths, n=3, cutoff=0.5) or paths
        refusal = NotFound(f"there is nothing at {request.path}", hint=f"there is {', '.join(near)}")
    elif error.code == 413:
        refusal = wire.too_large("the form", current_app.config[wire.LIMITS].body)
    else:
        refusal = InvalidRequest(error.description or error.name, hint="correct the request; see /openapi.json")
    return _told(refusal)


def _told(error: JidomemError) -> Response:
    """Return *error* as a page to who asked for a page, else as a problem document."""
    return pages.refused(error) if pages.is_page() else wire.problem(error)


def _bug(operation: Operation, error: Exception) -> Response:
    """Return 500 without what went wrong inside, which is written to the log, or else to standard error."""
    broke(operation, error, request_id=g.seen.id)
    g.seen.refusal = "internal_error"
    told = {
        "type": "urn:jido:error:internal_error",
        "title": "internal error",
        "status": 500,
        "code": "internal_error",
        "detail": f"{type(error).__name__} in {request.method} {request.path}",
        "hint": "this is a bug in jidomem; its traceback is in the server's standard error",
        "request_id": g.seen.id,
    }
    return pages.broken(told) if pages.is_page() else Response(wire.dump(told), 500, content_type=wire.PROBLEM)
