"""Signing in with a token, for browsers: it is kept in a cookie that no script reads and no form elsewhere sends."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from flask import Response, request

from jidomem.errors import InvalidRequest

#: How the cookie that has the token begins, and the pages it is sent to.
COOKIE, PATH = "jidomem_token", "/ui"
#: A link from elsewhere, as in a chat, leads to its page; what a form does is held to `origin.check`.
_SITES = "Lax"
SIGN_IN, SIGN_OUT = f"{PATH}/sign-in", f"{PATH}/sign-out"
NEXT = "next"


def cookie(root: Path) -> str:
    """Return the name of the cookie for the server of *root* at the host and port asked.

    Cookies know no ports: each server has a name of its own, so that none signs another one out.
    """
    return f"{COOKIE}_{sha256(f'{root.resolve()} {request.host.lower()}'.encode()).hexdigest()[:16]}"


def held(root: Path) -> str:
    """Return the token that the browser keeps for *root*, none where it keeps none."""
    return request.cookies.get(cookie(root), "")


def authorization(root: Path) -> str:
    """Return the header Authorization of the request; to a page also what its cookie stands for."""
    header = request.headers.get("Authorization", "")
    token = held(root)
    if header or not token or not request.path.startswith(f"{PATH}/"):
        return header
    return f"Bearer {token}"


def further(given: Mapping[str, str]) -> str:
    """Return the page to go on with; raises InvalidRequest for what is none of ours."""
    page = given.get(NEXT) or PATH
    parsed = urlsplit(page)
    is_ours = not parsed.scheme and not parsed.netloc and (page == PATH or page.startswith(f"{PATH}/"))
    if not is_ours or not page.isprintable() or "\\" in page:
        raise InvalidRequest(f"{NEXT} is no page of this server", hint=f"leave {NEXT} out")
    return page


def lead_to(page: str) -> Response:
    """Return what leads a browser on to *page*, which it asks for with GET."""
    return Response(status=303, headers={"Location": page})


def signed_in(root: Path, token: str, page: str, *, public_url: str | None) -> Response:
    """Return what leads to *page* with the *token* kept in a cookie."""
    found = lead_to(page)
    safe = request.is_secure or (public_url or "").startswith("https:")
    found.set_cookie(cookie(root), token, path=PATH, httponly=True, samesite=_SITES, secure=safe)
    return found


def signed_out(root: Path) -> Response:
    """Return what leads to signing in again, with no token kept."""
    found = lead_to(SIGN_IN)
    found.delete_cookie(cookie(root), path=PATH, httponly=True, samesite=_SITES)
    return found
