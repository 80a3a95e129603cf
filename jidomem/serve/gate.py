"""Who is let in: the token of a request, what it may be used for, and the headers no answer goes without."""

from __future__ import annotations

from dataclasses import replace

from flask import Response, g, request

from jidomem.errors import NotFound, Unauthenticated
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.own import Token
from jidomem.serve.curator.pages import PAGES
from jidomem.serve.curator.signing import authorization
from jidomem.serve.routes import ROUTES
from jidomem.serve.site import Route, Site

#: What every answer says to a browser: take it for what it is, show it in no frame, and tell nobody where it was.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
_PUBLIC = frozenset(f"{route.method} {route.path}" for route in (*ROUTES, *PAGES) if route.public)
_TELLS_MORE = frozenset(f"{route.method} {route.path}" for route in ROUTES if route.tells_more)
_HINT = "send the header Authorization: Bearer TOKEN; who runs the server gives one out in a shell: jidomem token add"


def headers(keyring: Keyring | None) -> dict[str, str]:
    """Return the headers no answer goes without: with tokens on *keyring*, what one opened is kept nowhere."""
    return {**HEADERS, "Cache-Control": "no-store"} if keyring is not None and keyring.is_needed else HEADERS


def caller_of(keyring: Keyring, authorization: str) -> Token:
    """Return the token in the header *authorization*; raises Unauthenticated where there is none on the keyring."""
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("this server answers those who have a token", hint=_HINT)
    caller = keyring.whose(secret.strip())
    if caller is None:
        raise Unauthenticated("this token is none, or none any more", hint=_HINT)
    return caller


class Gate:
    """The door before every route of one site; without a keyring, or tokens on it, it is open."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._keyring = site.keyring

    def admit(self) -> None:
        """Keep who asks, by the token of the request; raises Unauthenticated where it needs one, on every address.

        That there is nothing at an address is told only to those who have one, too.
        """
        g.caller = None
        route = request.url_rule.endpoint if request.url_rule is not None else ""
        if self._keyring is None or (route in _PUBLIC and route not in _TELLS_MORE):
            return
        said = authorization(self._site.memory.settings.root)
        if (said or route not in _PUBLIC) and self._keyring.asks():
            g.caller = caller_of(self._keyring, said)
            g.seen.agent = g.caller.agent

    def answer(self, route: Route, **parts: str) -> Response:
        """Return what *route* answers to who asks; raises NotFound and PolicyDenied for what is not theirs."""
        caller: Token | None = g.caller
        if caller is None:
            return route.answer(self._site, **parts)
        site = replace(self._site, caller=caller)
        project = parts.get("project")
        if project is not None:
            site.check(project)
        if route.writes:
            caller.check_writes()
        try:
            return route.answer(site, **parts)
        except NotFound as error:
            if project is not None and error.code == "unknown_project" and site.is_hidden():
                raise site.unknown(project) from None
            raise

    def headed(self, response: Response) -> Response:
        """Return *response* with the headers no answer goes without."""
        for name, value in headers(self._keyring).items():
            response.headers.setdefault(name, value)
        return response
