"""The HTTP application: every route of the table, one way to refuse, and no host but those it was made for."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Collection
from difflib import get_close_matches
from functools import partial
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from jidomem.errors import InvalidRequest, JidomemError, NotFound, NotServed, PolicyDenied
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.root import Jidomem
from jidomem.serve import wire
from jidomem.serve.gate import Gate
from jidomem.serve.routes import ROUTES
from jidomem.serve.site import Site

#: The names of this machine for itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_PORT = re.compile(r":[0-9]*$")
_LONG = ("name", "id")  # parts of a path that may hold slashes


def create_app(memory: Jidomem, *, hosts: Collection[str] = LOOPBACK, keyring: Keyring | None = None) -> Flask:
    """Return the WSGI application that serves *memory* to requests for one of *hosts*.

    With a *keyring* that has tokens it serves those who have one, each what its token reaches.
    """
    app = _App("jidomem.serve", static_folder=None)
    app.config[wire.LIMITS] = memory.settings.limits
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    gate = Gate(Site(memory, keyring))
    for route in ROUTES:
        app.add_url_rule(
            re.sub(r"\{(\w+)\}", _part, route.path),
            endpoint=f"{route.method} {route.path}",
            view_func=partial(gate.answer, route),
            methods=[route.method],
        )
    allowed = frozenset(host.lower() for host in hosts)
    app.before_request(lambda: _refuse_foreign_host(allowed))
    app.before_request(gate.admit)
    app.after_request(gate.headed)
    app.register_error_handler(JidomemError, wire.problem)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _bug)
    return app


class _App(Flask):
    """An application without coroutines: nothing is asked of each function whether it is one."""

    def ensure_sync(self, func: Any) -> Any:
        """Return *func*."""
        return func


def _part(match: re.Match[str]) -> str:
    return f"<path:{match[1]}>" if match[1] in _LONG else f"<{match[1]}>"


def _refuse_foreign_host(allowed: Collection[str]) -> None:
    """Raise PolicyDenied for a request meant for another host: a page in a browser may have been sent here for it."""
    host = _PORT.sub("", request.environ.get("HTTP_HOST", "")).lower()
    if host not in allowed:
        raise PolicyDenied(
            f"this server does not answer for the host {host!r}", hint=f"use one of: {', '.join(sorted(allowed))}"
        )


def _refused(error: HTTPException) -> Response:
    """Return what Flask refused as the error table has it."""
    if isinstance(error, MethodNotAllowed):
        allow = sorted(error.valid_methods or ())
        refusal: JidomemError = NotServed(
            f"{request.path} has no method {request.method}", hint=f"use one of: {', '.join(allow)}", allow=allow
        )
    elif error.code == 404:
        paths = sorted({route.path for route in ROUTES})
        near = get_close_matches(request.path, paths, n=3, cutoff=0.5) or paths
        refusal = NotFound(f"there is nothing at {request.path}", hint=f"there is {', '.join(near)}")
    else:
        refusal = InvalidRequest(error.description or error.name, hint="correct the request; see /openapi.json")
    return wire.problem(refusal)


def _bug(error: Exception) -> Response:
    """Return 500 without what went wrong inside, which is written to standard error."""
    sys.stderr.write("".join(traceback.format_exception(error)))
    told = {
        "type": "urn:jido:error:internal_error",
        "title": "internal error",
        "status": 500,
        "code": "internal_error",
        "detail": f"{type(error).__name__} in {request.method} {request.path}",
        "hint": "this is a bug in jidomem; its traceback is in the server's standard error",
    }
    return Response(wire.dump(told), 500, content_type=wire.PROBLEM)
