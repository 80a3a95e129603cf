"""The HTTP application: all routes, the access gate, the allowed hosts and origins, and error responses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map

from jidomem.errors import (
    InvalidRequest,
    JidomemError,
    NotFound,
    NotServed,
    PolicyDenied,
    Unauthenticated,
    nearest_names,
)
from jidomem.runtime.root import Jidomem
from jidomem.runtime.tokens import Keyring
from jidomem.runtime.user_config import ApiToken
from jidomem.serve import wire
from jidomem.serve.listener import LOOPBACK, parse_origins, parse_public_url
from jidomem.serve.memories import wait_for_version
from jidomem.serve.monitoring import RequestMonitor, log_bug
from jidomem.serve.routes import ROUTES, Route
from jidomem.serve.server_state import Operation, RequestContext

_METHODS = "GET, HEAD, POST, PATCH, DELETE, OPTIONS"
_HEADERS = "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id"
_EXPOSED = "Allow, Link, Location, Retry-After, Warning, X-Request-Id"
#: Seconds for which a browser may cache a preflight answer.
_AGE = "600"


class Cors:
    """The CORS headers for pages of the *allowed* origins."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed

    def preflight(self) -> Response | None:
        """Return the answer to a preflight request, which carries no token; None for any other request."""
        asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if not asks or self._origin() is None:
            return None
        allowed = {"Allow-Methods": _METHODS, "Allow-Headers": _HEADERS, "Max-Age": _AGE}
        return Response(status=204, headers={f"Access-Control-{name}": text for name, text in allowed.items()})

    def add_headers(self, response: Response) -> Response:
        """Return *response*, readable for pages of the allowed origins."""
        if self._allowed:
            response.vary.add("Origin")
            if origin := self._origin():
                response.headers["Access-Control-Allow-Origin"] = origin
                response.headers["Access-Control-Expose-Headers"] = _EXPOSED
        return response

    def _origin(self) -> str | None:
        origin = request.headers.get("Origin", "")
        return origin if origin.lower() in self._allowed else None


#: Headers of every answer: no guessing of its type, no frames, no referrer.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
_WITH_DETAILS = frozenset(f"{route.method} {route.path}" for route in ROUTES if route.has_details)
_HINT = (
    "send the header Authorization: Bearer TOKEN;"
    " the operator of the server creates one in a shell: jidomem access token add AGENT"
)


@cache
def _pages() -> Any:
    """Return the module of the curator's pages, an optional package; None if it is not installed."""
    try:
        from jidomem.extras.web import pages
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("jidomem.extras"):
            return None
        raise
    return pages


@cache
def _routes() -> tuple[Route, ...]:
    return (*ROUTES, *(_pages().PAGES if _pages() else ()))


@cache
def _url_map() -> Map:
    """Return the addresses of all routes, compiled once for all applications of this process."""
    app = Flask(__name__, static_folder=None)
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    for route in _routes():
        path = re.sub(r"\{(\w+)\}", _part, route.path)
        app.add_url_rule(path, endpoint=f"{route.method} {route.path}", methods=[route.method])
    return app.url_map


@cache
def _public_routes() -> frozenset[str]:
    return frozenset(f"{route.method} {route.path}" for route in _routes() if route.public)


def _requests_page() -> bool:
    return _pages() is not None and _pages().is_page()


def headers(keyring: Keyring | None) -> dict[str, str]:
    """Return the headers of every answer; if *keyring* has tokens, answers must not be cached."""
    return {**HEADERS, "Cache-Control": "no-store"} if keyring is not None and keyring.is_needed else HEADERS


def caller_of(keyring: Keyring, authorization: str) -> ApiToken:
    """Return the token in the header *authorization*; raise Unauthenticated if it is not on the keyring."""
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("this server needs a token", hint=_HINT)
    caller = keyring.find(secret.strip())
    if caller is None:
        raise Unauthenticated("the token is unknown or revoked", hint=_HINT)
    return caller


class AccessGate:
    """The check of tokens before every route of one site; without a keyring, or tokens on it, all callers pass."""

    def __init__(self, site: RequestContext) -> None:
        self._site = site
        self._keyring = site.keyring

    def admit(self) -> None:
        """Set the caller by the token of the request; raise Unauthenticated if it needs a valid one.

        Unknown addresses need a token as well.
        """
        g.caller = None
        route = request.url_rule.endpoint if request.url_rule is not None else ""
        if self._keyring is None or (route in _public_routes() and route not in _WITH_DETAILS):
            return
        root, header = self._site.memory.settings.root, request.headers.get("Authorization", "")
        authorization = _pages().authorization(root) if _pages() else header
        if (authorization or route not in _public_routes()) and self._keyring.requires_token():
            g.caller = caller_of(self._keyring, authorization)
            g.seen.agent, g.seen.token = g.caller.agent, g.caller.id
            self._site.operation.measures.token_used(g.caller.id)

    def answer(self, route: Route, **parts: str) -> Response:
        """Return the answer of *route*; raise NotFound and PolicyDenied for projects that the caller may not access."""
        caller: ApiToken | None = g.caller
        if route.writes and route.statuses:
            wire.check_headers(route.headers)
        project = parts.get("project")
        site = replace(self._site, caller=caller, request_id=g.seen.id)
        if project is not None:
            site.check(project)
        try:
            return self._answer(site, route, project, parts)
        except JidomemError as error:
            if caller is not None and project is not None and error.code == "unknown_project":
                raise site.unknown(project) from None
            raise site.visible_error(error) from error

    def _answer(self, site: RequestContext, route: Route, project: str | None, parts: Mapping[str, str]) -> Response:
        if route.writes:
            site.check_writes()
        if project is not None and "min_position" in route.takes:
            wait_for_version(site, project, request.args.get("min_position"))
        return self._with_damage(site, project, route.answer(site, **parts))

    def _with_damage(self, site: RequestContext, project: str | None, response: Response) -> Response:
        """Return *response* with a warning if a part of what it tells of *project* cannot be read."""
        if project is None and request.path == "/sparql":
            project = site.memory.project
        if project is not None and response.status_code < 300 and (damage := site.memory.journal.known_damage(project)):
            text = f"damaged files of {project} that are left out: {damage}; /readyz names them"
            response.headers.add("Warning", f'199 jidomem "{text}"')
        return response

    def add_headers(self, response: Response) -> Response:
        """Add the headers of every answer to *response*."""
        for name, value in headers(self._keyring).items():
            response.headers.setdefault(name, value)
        if request.method == "OPTIONS":
            response.headers.pop("Content-Type", None)  # there is no body
        return response


_PORT = re.compile(r":[0-9]*$")
_LONG = ("name", "id")  # parts of a path that may contain slashes


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

    With tokens on *keyring* each caller reaches the projects of its token. *operation* counts and logs
    requests. Pages of *origins* may read the answers; *public_url* is the origin that clients use, if it
    differs from that of the server. Raises InvalidRequest for an invalid origin.
    """
    app = _App("jidomem.serve", static_folder=None)
    app.config[wire.LIMITS] = memory.settings.limits
    app.config["MAX_CONTENT_LENGTH"] = memory.settings.limits.body
    app.url_map = _url_map()
    at_work = operation or Operation()
    memory.journal.on_durable = at_work.measures.committed
    memory.journal.watch()
    memory.follower.turn = at_work.turns.turn
    if keyring is not None and at_work.log is not None:
        keyring.on_fault = at_work.log_fault
    public = None if public_url is None else parse_public_url(public_url)
    gate = AccessGate(RequestContext(memory, keyring, operation=at_work, public_url=public))
    watch = RequestMonitor(at_work, memory)
    cors = Cors(parse_origins(origins))
    app.view_functions |= {f"{route.method} {route.path}": partial(gate.answer, route) for route in _routes()}
    allowed = frozenset(host.lower() for host in hosts)
    app.before_request(watch.begin)
    app.before_request(lambda: check_host(request.environ.get("HTTP_HOST", ""), allowed))
    app.before_request(cors.preflight)
    app.before_request(gate.admit)
    app.before_request(_refuse_unreadable)
    app.after_request(watch.end)  # runs last
    app.after_request(cors.add_headers)
    app.after_request(gate.add_headers)
    app.register_error_handler(JidomemError, _error_response)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, partial(_bug, at_work))
    return app


class _Whole(Response):
    """An answer in one piece, passed to the server as such: fewer switches between threads."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if not self.is_sequence or environ["REQUEST_METHOD"] == "HEAD":
            return super().__call__(environ, start_response)
        _, status, headers = self.get_wsgi_response(environ)
        start_response(status, headers)
        body = b"".join(self.iter_encoded())
        self.close()
        return [body]


class _App(Flask):
    """An application without coroutines: view functions are not inspected for being one."""

    response_class = _Whole

    def ensure_sync(self, func: Any) -> Any:
        return func


def _part(match: re.Match[str]) -> str:
    return f"<path:{match[1]}>" if match[1] in _LONG else f"<{match[1]}>"


def check_host(given: str, allowed: Collection[str]) -> None:
    """Raise PolicyDenied for a request to another host: a page may have bound its name to this address."""
    host = _PORT.sub("", given).lower()
    if host not in allowed:
        raise PolicyDenied(
            f"this server does not answer for the host {host!r}",
            hint=f"use one of: {', '.join(sorted(allowed))}; its operator adds another name with --allow-host NAME",
            code="unknown_host",
        )


def _refuse_unreadable() -> None:
    """Raise InvalidRequest for a query string that is not percent-encoded UTF-8, and for a GET with a body."""
    wire.check(request.query_string, "the query string")
    has_body = request.content_length or "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    if has_body and request.method in ("GET", "HEAD"):
        raise InvalidRequest(
            f"a {request.method} request has no body here", hint="write it into the query string, or send it with POST"
        )


def _refused(error: HTTPException) -> Response:
    """Return the error of Flask as an entry of the error table."""
    if isinstance(error, MethodNotAllowed):
        allow = sorted(error.valid_methods or ())
        refusal: JidomemError = NotServed(
            f"{request.path} has no method {request.method}", hint=f"use one of: {', '.join(allow)}", allow=allow
        )
    elif error.code == 404:
        paths = sorted(_pages().PLACES) if _requests_page() else sorted({route.path for route in ROUTES})
        near = nearest_names(request.path, paths, 3) or paths
        refusal = NotFound(f"unknown address {request.path}", hint=f"use one of: {', '.join(near)}")
    elif error.code == 413:
        refusal = wire.too_large("the form", current_app.config[wire.LIMITS].body)
    else:
        refusal = InvalidRequest(error.description or error.name, hint="correct the request; see /openapi.json")
    return _error_response(refusal)


def _error_response(error: JidomemError) -> Response:
    """Return *error* as a page if the request is for a page, else as a problem document."""
    return _pages().refused(error) if _requests_page() else wire.problem(error)


def _bug(operation: Operation, error: Exception) -> Response:
    """Return 500 without the traceback, which is written to the log, or to standard error without a log."""
    log_bug(operation, error, request_id=g.seen.id)
    g.seen.refusal = "internal_error"
    document = {
        "type": "urn:jido:error:internal_error",
        "title": "internal error",
        "status": 500,
        "code": "internal_error",
        "detail": f"{type(error).__name__} in {request.method} {request.path}",
        "hint": "this is a bug in jidomem; its traceback is in the server's standard error",
        "request_id": g.seen.id,
    }
    return (
        _pages().broken(document) if _requests_page() else Response(wire.dump(document), 500, content_type=wire.PROBLEM)
    )
