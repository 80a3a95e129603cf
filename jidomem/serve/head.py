"""What the head of a request says to an application, unless it could be taken for two things."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

import h11

from jidomem.errors import InvalidRequest

_ABSOLUTE = re.compile(r"https?://([^/?]*)(.*)", re.IGNORECASE)
_HINT = "correct the request: RFC 9112 has how one is written"
#: Names that WSGI writes without a prefix.
_BARE = {"HTTP_CONTENT_TYPE": "CONTENT_TYPE", "HTTP_CONTENT_LENGTH": "CONTENT_LENGTH"}
#: What no application is told: this server goes on in HTTP/1.1, and routing would answer for a door that is not here.
_IGNORED = "HTTP_UPGRADE"


def headers(request: h11.Request) -> dict[str, str]:
    """Return the headers as WSGI names them, but Upgrade; one that came several times has all its values."""
    found: dict[str, str] = {}
    for name, value in request.headers:
        key, text = "HTTP_" + name.decode("ascii").upper().replace("-", "_"), value.decode("latin-1")
        key = _BARE.get(key, key)
        found[key] = f"{found[key]}{'; ' if key == 'HTTP_COOKIE' else ', '}{text}" if key in found else text
    found.pop(_IGNORED, None)
    return found


def environ(request: h11.Request, named: dict[str, str]) -> dict[str, Any]:
    """Return what WSGI says of *request*, and its headers *named*; raises InvalidRequest for what is not answered."""
    _refuse_ambiguous(request, named)
    target = request.target.decode("ascii")
    place, path, query = _target(target)
    return {
        **named,
        **({} if place is None else {"HTTP_HOST": place}),
        "REQUEST_METHOD": request.method.decode("ascii"),
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1") if "%" in path else path,
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "SERVER_PROTOCOL": f"HTTP/{request.http_version.decode('ascii')}",
    }


def length(environ: dict[str, Any]) -> int | None:
    """Return how many bytes the body of a request has, None where it comes in chunks."""
    return None if "HTTP_TRANSFER_ENCODING" in environ else int(environ.get("CONTENT_LENGTH", "0"))


def _refuse_ambiguous(request: h11.Request, named: dict[str, str]) -> None:
    """Raise InvalidRequest for what h11 lets through, and another reader may take for something else."""
    if request.http_version not in (b"1.1", b"1.0"):
        raise InvalidRequest("this server speaks HTTP/1.1", hint="send HTTP/1.1")
    if any(b"_" in name for name, _ in request.headers):  # one with - in what an application is given
        raise InvalidRequest("a header has _ in its name", hint="write - there, or leave the header out")
    if "HTTP_TRANSFER_ENCODING" in named:
        if "CONTENT_LENGTH" in named:
            raise InvalidRequest("a body has a Content-Length or a Transfer-Encoding", hint="give one of them")
        if request.http_version == b"1.0":
            raise InvalidRequest("a body comes in chunks by HTTP/1.1 only", hint="give its Content-Length")


def _target(target: str) -> tuple[str | None, str, str]:
    """Return the host, where the address is a whole one, the path and the query."""
    absolute = _ABSOLUTE.fullmatch(target)
    place, rest = (absolute[1], absolute[2]) if absolute else (None, target)
    path, _, query = rest.partition("?")
    if "#" in target or (not path.startswith("/") and (place is None or path)):
        raise InvalidRequest(f"{target[:80]!r} is no address here", hint="it begins with /")
    return place, path or "/", query
