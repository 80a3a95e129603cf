"""What goes over the wire: bodies within their limits, arguments that are all known, JSON, and problem documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import orjson
from flask import Response, current_app, g, request
from werkzeug.http import parse_options_header

from jidomem.entry import WriteResult
from jidomem.errors import InvalidRequest, JidomemError, NotServed, TooLarge
from jidomem.intent import Receipt, parse_json
from jidomem.moments import stamp
from jidomem.serve.hints import for_requests

#: Where the application keeps its limits.
LIMITS = "JIDOMEM_LIMITS"
JSON = "application/json"
PROBLEM = "application/problem+json"
#: Where WSGI's environ has the descriptor of the connection a request came by.
CONNECTION = "jidomem.connection"
#: Refusals that pass by themselves, and after how many seconds to come back.
_RETRY = {"busy": 1, "too_many_requests": 1, "index_behind": 1}


@dataclass(slots=True)
class Seen:
    """What is known of the request under way (`g.seen`): when it began, its id, and what became of it so far."""

    began: float
    id: str
    agent: str | None = None
    claimed: str | None = None  # who an intent says it is of, where nobody has to prove it
    question: str | None = None
    refusal: str | None = None


def dump(value: Any) -> bytes:
    """Return *value* as JSON, moments as jidomem writes them; what orjson cannot write, the library's writer does."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # a whole number of more than 64 bits, or half a character that came with the request
        return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> str:
    return stamp(value) if isinstance(value, datetime) else str(value)


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    """Return *value* as a JSON response; an underscore in a header's name stands for a dash."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(dump(value), status, named, content_type=JSON)


def asker() -> int | None:
    """Return the descriptor of the connection the request came by, None where none is known."""
    found: int | None = request.environ.get(CONNECTION)
    return found


def document(data: bytes, media: str) -> Response:
    """Return *data* as a response of the type *media*; a text says that it is UTF-8."""
    return Response(data, content_type=f"{media}; charset=utf-8" if media.startswith("text/") else media)


def problem(error: JidomemError) -> Response:
    """Return *error* as a problem document (RFC 9457) that has the members every door shows."""
    seen: Seen = g.seen
    seen.refusal = error.code
    project = str((request.view_args or {}).get("project", "PROJECT"))
    return refused({**described(error, project), "request_id": seen.id}, error)


def refused(told: Mapping[str, Any], error: JidomemError) -> Response:
    """Return *told* of *error* as a problem document, with the headers that go with it; no request is looked at."""
    found = Response(dump(told), error.http_status, content_type=PROBLEM)
    found.headers.extend(retry(error))
    if error.code == "unauthenticated":
        found.headers["WWW-Authenticate"] = 'Bearer realm="jidomem"'
    if isinstance(error, NotServed) and error.allow:
        found.headers["Allow"] = ", ".join(error.allow)
    return found


def retry(error: JidomemError) -> list[tuple[str, str]]:
    """Return the header that says when to come back, where that helps."""
    return [("Retry-After", str(_RETRY[error.code]))] if error.code in _RETRY else []


def described(error: JidomemError, project: str = "PROJECT") -> dict[str, Any]:
    """Return the members of the problem document of *error*, met when something was asked of *project*."""
    title = error.code.replace("_", " ")
    return {
        "type": f"urn:jido:error:{error.code}",
        "title": title,
        "status": error.http_status,
        **outcome(error, project),
    }


def outcome(found: Receipt | WriteResult | JidomemError, project: str) -> dict[str, Any]:
    """Return a receipt, the result of an entry, or an error, its hints as requests about *project*, as plain values."""
    return for_requests(found.to_dict(), project) if isinstance(found, JidomemError) else found.to_dict()


def arguments(*known: str) -> dict[str, str]:
    """Return the arguments in the query string; raises InvalidRequest for one that is not *known*, or stands twice."""
    if not request.query_string:
        return {}
    found = once(request.args)
    for name in found:
        if name not in known:
            raise unknown(f"{request.path} takes no argument {name!r}", name, known)
    return found


def once(values: Any) -> dict[str, str]:
    """Return a mapping of single values; raises InvalidRequest for a name that stands twice."""
    for name, given in values.lists():
        if len(given) > 1:
            raise InvalidRequest(f"{name} is given {len(given)} times", hint=f"give {name} once")
    return dict(values.items())


def unknown(detail: str, name: str, known: Collection[str]) -> InvalidRequest:
    """Return the refusal of *name*, with the nearest of *known* in its hint."""
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return InvalidRequest(detail, hint=f"did you mean {near[0]!r}?" if near else f"it takes {_listed(known)}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def flag(given: Mapping[str, str], name: str) -> bool:
    """Return the truth of an argument, False when it is left out; raises InvalidRequest for what is none."""
    value = given.get(name, "false")
    if value not in _TRUTHS:
        raise InvalidRequest(f"{name}={value!r} is not true or false", hint=f"give {name}=1, or leave it out")
    return _TRUTHS[value]


_TRUTHS = {"1": True, "true": True, "0": False, "false": False}


def whole(given: Mapping[str, str], name: str) -> int | None:
    """Return a whole number, None when it is left out; raises InvalidRequest for what is none."""
    value = given.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise InvalidRequest(
            f"{name}={value!r} is not a positive whole number", hint=f"give {name}=50, or leave it out"
        )
    return int(value)


def content_type(*known: str) -> str:
    """Return which of *known* the body is, in UTF-8; raises NotServed `unsupported_media_type` for any other."""
    given, options = parse_options_header(request.content_type)
    if given.lower() not in known:
        raise _unsupported(f"{given or 'of no stated type'}, and {request.path} takes {_listed(known)}", known[0])
    if options.get("charset", "utf-8").lower() != "utf-8":
        raise _unsupported(f"in {options['charset']}, and {request.path} takes UTF-8", f"{known[0]}; charset=utf-8")
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise _unsupported(f"packed ({coding}), and {request.path} takes it as it is", known[0])
    return given.lower()


def _unsupported(what: str, media: str) -> NotServed:
    hint = f"send it with the header Content-Type: {media}"
    return NotServed(f"the body is {what}", hint=hint, code="unsupported_media_type")


def body() -> bytes:
    """Return the body; raises TooLarge above the bytes it may have, and keeps no more than that."""
    limit = current_app.config[LIMITS].body
    stream = request.environ["wsgi.input"]
    length = request.content_length
    data = stream.read(limit + 1) if length is None or 0 < length <= limit else b""
    if len(data) > limit or (length or 0) > limit:
        raise too_large("the body", limit)
    return data


def too_large(what: str, limit: int) -> TooLarge:
    """Return the refusal of more than *limit* bytes."""
    return TooLarge(
        f"{what} has more than {limit:,} bytes", hint="send less at once, or many intents as application/x-ndjson"
    )


def json_object(known: Mapping[str, type]) -> dict[str, Any]:
    """Return the JSON object in the body; raises InvalidRequest unless each member is *known*, and of its type."""
    content_type(JSON)
    values = parse_json(body())
    if not isinstance(values, dict):
        raise InvalidRequest("the body is no JSON object", hint=f"send an object with {_listed(known)}")
    for name, value in values.items():
        if name not in known:
            raise unknown(f"{request.path} takes no member {name!r}", name, known)
        if not isinstance(value, known[name]):
            what, example = _WRITTEN[known[name]]
            raise InvalidRequest(f"{name} is no {what}", hint=f'write "{name}": {example}')
    return values


_WRITTEN = {
    str: ("text", '"..."'), bool: ("truth", "true"), dict: ("object", '{"status": "Completed"}'),
    list: ("list", '["..."]'), int: ("whole number", "5"),
}  # fmt: skip
