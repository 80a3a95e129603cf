"""Whether a form was sent from one of our own pages: no other page in the same browser does anything here."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import request

from jidomem.errors import PolicyDenied

_HINT = "send the form from the page itself, in a browser that says where it comes from"


def check(public_url: str | None) -> None:
    """Raise PolicyDenied for a request that a page of another origin makes.

    As net/http.CrossOriginProtection of Go 1.25 does it: Sec-Fetch-Site decides, else Origin, held to the host asked
    or the *public_url*; a request with neither comes from no browser.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None and site not in ("same-origin", "none"):
        raise PolicyDenied("a page of another origin sent this form", hint=_HINT)
    if site is None and origin is not None and origin != public_url and urlsplit(origin).netloc != request.host:
        raise PolicyDenied(f"a page of {origin[:200]} sent this form", hint=_HINT)
