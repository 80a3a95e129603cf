"""Which pages of other origins a browser may let read the answers: those who runs the server names, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flask import Response, request

from jidomem.errors import InvalidRequest

_ORIGIN = re.compile(r"https?://(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_METHODS = "GET, HEAD, POST, PATCH, DELETE, OPTIONS"
_HEADERS = "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id"
_EXPOSED = "Allow, Link, Retry-After, Warning, X-Request-Id"
#: Seconds a browser need not ask again.
_AGE = "600"


def origins(
    texts: Iterable[str], hint: str = "name each origin: --allow-origin https://yasgui.example.org"
) -> frozenset[str]:
    """Return origins as browsers send them; raises InvalidRequest, with *hint*, for what is none.

    >>> sorted(origins(["https://Example.org"]))
    ['https://example.org']
    """
    found = frozenset(text.lower() for text in texts)
    for text in sorted(found):
        if not _ORIGIN.fullmatch(text):
            raise InvalidRequest(
                f"{text!r} is no origin: a scheme, a host and a port where it is another one, and nothing after them",
                hint=hint,
            )
    return found


class Cors:
    """What browsers are told for pages of the *allowed* origins; without any, nothing."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed

    def preflight(self) -> Response | None:
        """Return the answer to a browser that asks whether it may send a request, which it does without a token."""
        asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if not asks or self._origin() is None:
            return None
        told = {"Allow-Methods": _METHODS, "Allow-Headers": _HEADERS, "Max-Age": _AGE}
        return Response(status=204, headers={f"Access-Control-{name}": text for name, text in told.items()})

    def headed(self, response: Response) -> Response:
        """Return *response*, readable for who asked where that is one of the allowed origins."""
        if self._allowed:
            response.vary.add("Origin")
            if origin := self._origin():
                response.headers["Access-Control-Allow-Origin"] = origin
                response.headers["Access-Control-Expose-Headers"] = _EXPOSED
        return response

    def _origin(self) -> str | None:
        origin = request.headers.get("Origin", "")
        return origin if origin.lower() in self._allowed else None
