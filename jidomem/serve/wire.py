"""The wire format: request bodies and arguments, content negotiation, JSON answers and problem documents.

Hints and warnings of the library name commands. Over HTTP and MCP they name the request or the tool that
does the same. A command stays only if nothing but a shell can help, and the hint then says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote_to_bytes

import orjson
from flask import Response, after_this_request, current_app, g, request
from werkzeug.datastructures import MultiDict
from werkzeug.http import parse_options_header

from jidomem.base.clock import format_timestamp
from jidomem.base.json_values import parse_json
from jidomem.errors import COMMAND, SHELL, InvalidRequest, JidomemError, NotServed, TooLarge, did_you_mean
from jidomem.rdf.vocab import BASE
from jidomem.records.active import REASON, SimilarMemory, similar_choices
from jidomem.records.entry import WriteResult
from jidomem.records.intent import Receipt


class HintTranslation(NamedTuple):
    """A command, as a pattern of its form in hints, with the HTTP request and the MCP call that do the same.

    Both are templates for the groups of the pattern; `PROJECT` stands for the project. An empty call: there is no tool.
    """

    pattern: str
    request: str
    call: str = ""


_COMMANDS: Sequence[HintTranslation] = (
    HintTranslation(r"jidomem agent session start (\S+) --continues (\S+)",
                    r'POST /projects/PROJECT/sessions {"name": "\1", "continues": "\2"}'),
    HintTranslation(r"jidomem agent session start (\S+)", r'POST /projects/PROJECT/sessions {"name": "\1"}'),
    HintTranslation(r"jidomem agent session phase\|pause\|resume\|close", "PATCH /projects/PROJECT/sessions/NAME"),
    HintTranslation(r"jidomem agent session list --all", "GET /projects/PROJECT/sessions?all=1"),
    HintTranslation(r"jidomem agent session list", "GET /projects/PROJECT/sessions",
                    "the tool ask with name active-sessions"),
    HintTranslation(r"jidomem ask timeline", "GET /projects/PROJECT/queries/timeline",
                    "the tool ask with name timeline"),
    HintTranslation(r"jidomem ask\b(?! [a-z])", "GET /projects/PROJECT/queries", "the tool ask without a name"),
    HintTranslation(r"jidomem journal log\b", "GET /projects/PROJECT/journal", "the tool ask with name commits"),
    HintTranslation(r"jidomem ontology show$", "GET /projects/PROJECT/graphs?graph=ontology",
                    "the resource memory://ontology"),
    HintTranslation(r"jidomem show (\S+)", r"GET /projects/PROJECT/memories/\1", r"the tool why with id \1"),
    HintTranslation(r"jidomem edit (?:https://jido\.ai/memory/)?(\S+) --confirm$",
                    r'POST /projects/PROJECT/memories/\1/revise {"confirm": true}',
                    r"the tool revise with id \1 and confirm true"),
    HintTranslation(r"jidomem edit (?:https://jido\.ai/memory/)?(\S+) --confirm --set (\w+)=([\w-]+)$",
                    r'POST /projects/PROJECT/memories/\1/revise {"confirm": true, "set": {"\2": "\3"}}',
                    r'the tool revise with id \1, confirm true and set {"\2": "\3"}'),
    HintTranslation(r"jidomem edit (?:https://jido\.ai/memory/)?(\S+) --confirm --set (\w+)=([\w-]+) --reason TEXT$",
                    r'POST /projects/PROJECT/memories/\1/revise {"confirm": true, "set": {"\2": "\3"},'
                    r' "reason": "..."}',
                    r'the tool revise with id \1, confirm true, set {"\2": "\3"} and a reason'),
    HintTranslation(r"jidomem edit (?:https://jido\.ai/memory/)?(\S+) --set (\w+)=([\w-]+)$",
                    r'POST /projects/PROJECT/memories/\1/revise {"set": {"\2": "\3"}}',
                    r'the tool revise with id \1 and set {"\2": "\3"}'),
    HintTranslation(r'jidomem edit (?:https://jido\.ai/memory/)?(\S+) --set (\w+)=([\w:.-]+) --reason "([^"]*)"',
                    r'POST /projects/PROJECT/memories/\1/revise {"set": {"\2": "\3"}, "reason": "\4"}',
                    r'the tool revise with {"id": "\1", "set": {"\2": "\3"}, "reason": "\4"}'),
    HintTranslation(r"jidomem edit (?:https://jido\.ai/memory/)?(\S+) --undo$",
                    r'POST /projects/PROJECT/memories/\1/revise {"undo": true}',
                    r"the tool revise with id \1 and undo true"),
    HintTranslation(r"jidomem governing (\S+)", r"GET /projects/PROJECT/governing?file=\1",
                    r'the tool ask with name governing and params {"file": "\1"}'),
    HintTranslation(r"jidomem submit FILE, or memory\.writer\.submit_intent\(\.\.\.\)",
                    "POST /projects/PROJECT/intents", "the tool remember"),
)  # fmt: skip


#: The commands in warnings, with the words before them in the pattern, as a warning may also quote texts of memories.
_WARNED: Sequence[HintTranslation] = (
    HintTranslation(r"(if yours takes its place: )jidomem review supersede (?:https://jido\.ai/memory/)?(\S+)"
                    r' --against (?:https://jido\.ai/memory/)?([^\s;]+)(?: --reason "([^"]*)")?',
                    r'\1POST /projects/PROJECT/memories/\2/revise {"set": {"supersedes": ["\2", "\3"]},'
                    r' "reason": "\4"}',
                    r'\1the tool revise with {"id": "\2", "set": {"supersedes": ["\2", "\3"]}, "reason": "\4"}'),
    HintTranslation(r"(about the same files or things: )jidomem governing FILE$",
                    r"\1GET /projects/PROJECT/governing?file=FILE",
                    r'\1the tool ask with name governing and params {"file": "FILE"}'),
    HintTranslation(r"(nothing was added; to agree: )jidomem edit (?:https://jido\.ai/memory/)?(\S+) --confirm$",
                    r'\1POST /projects/PROJECT/memories/\2/revise {"confirm": true}',
                    r"\1the tool revise with id \2 and confirm true"),
    HintTranslation(r"(to redo it: )jidomem edit (?:https://jido\.ai/memory/)?(\S+) --undo$",
                    r'\1POST /projects/PROJECT/memories/\2/revise {"undo": true}',
                    r"\1the tool revise with id \2 and undo true"),
    HintTranslation(r"(; look at each: )jidomem review$", r"\1GET /projects/PROJECT/conflicts",
                    r"\1the tool ask with name stale"),
    HintTranslation(r"(; look at each: )jidomem show (?:https://jido\.ai/memory/)?(\S+)$",
                    r"\1GET /projects/PROJECT/memories/\2", r"\1the tool why with id \2"),
)  # fmt: skip


def for_requests(values: Mapping[str, Any], project: str) -> dict[str, Any]:
    """Return the *values* of an error or a receipt, with commands in its texts as requests about *project*."""
    return _translated(values, lambda each: each.request, project)


def for_tools(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *values* of an error or a receipt, with commands in its texts as calls of tools."""
    return _translated(values, lambda each: each.call, "")


def _translated(values: Mapping[str, Any], instead: Callable[[HintTranslation], str], project: str) -> dict[str, Any]:
    hints = [(each.pattern, instead(each)) for each in _COMMANDS if instead(each)]
    warned = [(each.pattern, instead(each)) for each in _WARNED]
    translated = dict(values)
    if "hint" in values:
        translated["hint"] = _hint(values["hint"], hints, project)
    if "violations" in values:
        translated["violations"] = [
            {**each, "hint": _hint(each["hint"], hints, project)} for each in values["violations"]
        ]
    if "choices" in values:
        translated["choices"] = [
            {**each, "effect": _hint(each["effect"], hints, project)} for each in values["choices"]
        ]
    if "warnings" in values:
        translated["warnings"] = [_replaced(each, warned, project) for each in values["warnings"]]
    if "similar" in values:
        translated["similar"] = [_with_choices(values, each, project) for each in values["similar"]]
    return translated


def _with_choices(values: Mapping[str, Any], similar: Mapping[str, Any], project: str) -> dict[str, Any]:
    """Return a *similar* memory of a receipt with a request for each choice, or without *project* a call of a tool."""
    known = SimilarMemory(**{name: value for name, value in similar.items() if name != "choices"})
    new, old, replaced = values["iri"], known.id, known.replaced_by or known.id

    def revise(item: str, **fields: Any) -> str:
        if not project:
            return f"the tool revise with {json.dumps({'id': item, **fields})}"
        return f"POST /projects/{quote(project)}/memories/{item_path(item)}/revise {json.dumps(fields)}"

    keep, invalidate = "nothing to do", revise(new, invalidate=True, reason=REASON)
    if values["commit"] is None:
        supersede, confirm = f"`supersedes`: {json.dumps([replaced])}", revise(old, confirm=True)
        invalidate = "do not write it"
    else:
        supersede = revise(new, set={"supersedes": [new, replaced]}, reason=REASON)
        confirm = revise(old, confirm=True, set={"supersedes": [old, new]}, reason="it says the same")
    if values["status"] == "proposed" and values["commit"] is not None:
        confirm, keep = revise(new, invalidate=True, reason="it says the same"), revise(new, confirm=True)
    choices = similar_choices(known, supersede=supersede, confirm=confirm, keep=keep, invalidate=invalidate)
    return {**similar, "choices": choices}


def item_path(item: str) -> str:
    """Return the name of a memory in a path: its id, or its IRI if it is in another namespace."""
    return quote(item.removeprefix(f"{BASE}memory/"), safe="")


def _replaced(text: str, table: Sequence[tuple[str, str]], project: str) -> str:
    for pattern, instead in table:
        while match := re.search(pattern, text):
            words = match.expand(instead).replace("PROJECT", quote(project))
            text = text[: match.start()] + words + text[match.end() :]
    return text


def _hint(hint: str, table: Sequence[tuple[str, str]], project: str) -> str:
    """Return *hint* with its commands translated by *table*; others are marked as commands for a shell.

    >>> _hint("ask a curator; the rules: jidomem access policy show", [], "p")
    'ask a curator; the rules: in a shell, jidomem access policy show'
    """
    if "jidomem " not in hint:
        return hint
    hint = _replaced(hint, table, project)
    if SHELL in hint:
        return hint
    if "run: jidomem " in hint:
        return hint.replace("run: jidomem ", f"run {SHELL}: jidomem ")
    return re.sub(COMMAND, f"{SHELL}, jidomem ", hint)


#: Errors with their reason on the machine of the server -> the detail for callers on other machines.
_AT_SERVER: Mapping[str, str] = {
    "write_failed": "the server could not write",
    "invalid_config": "the configuration of the server is invalid",
    "missing_extra": "the server lacks an optional package",
    "journal_damaged": "the journal on the server is damaged",
    "memory_missing": "the memory on the server is gone or was moved",
    "branch_changed": "the journal on the server has commits of another branch",
    "store_unavailable": "the store of the server is not available",
    "store_unreachable": "the server cannot use its store",
    "store_unfit": "the store of the server is unfit",
    "outcome_unknown": "the server lost its store, and whether the change was stored is not known",
    "busy": "another writer has locked the memory",
}
_NOTHING = "nothing was stored"
_TELL = "tell the operator of the server: its log has the reason"
_OWN_FILE = re.compile(r"the operator sets literal = \d+ in \[limits\] of \S+")


def for_callers(error: JidomemError, place: str) -> JidomemError:
    """Return *error* without paths and commands of this machine, for callers on others; itself if it has none.

    *place* is the root; where other errors name it, the callers read "the memory".
    """
    if error.code == "payload_too_large":
        error.hint = _OWN_FILE.sub("ask the operator of the server for a higher limit", error.hint)
    named = place in error.detail or place in error.hint
    again = {"busy": "submit again; if this persists, ", "outcome_unknown": f"{error.hint}; if this persists, "}
    if error.code not in _AT_SERVER or _TELL in error.hint or (error.code in again and not named):
        error.detail, error.hint = (text.replace(place, "the memory") for text in (error.detail, error.hint))
        return error
    detail = _AT_SERVER[error.code] + (f"; {_NOTHING}" if _NOTHING in error.detail else "")
    shown = JidomemError(detail, hint=again.get(error.code, "") + _TELL, code=error.code)
    shown.position = error.position
    return shown


#: The key of the limits in the configuration of the application.
LIMITS = "JIDOMEM_LIMITS"
JSON = "application/json"
PROBLEM = "application/problem+json"
#: The key of the connection's descriptor in WSGI's environ.
CONNECTION = "jidomem.connection"
#: Errors that pass without a change, and the seconds after which to retry.
_RETRY = {"busy": 1, "too_many_requests": 1, "index_behind": 1}


@dataclass(slots=True)
class RequestRecord:
    """The record of the present request (`g.seen`): its start, its id, and its outcome so far."""

    began: float
    id: str
    agent: str | None = None
    token: str | None = None  # its id
    claimed: str | None = None  # the author that an intent names, without a token
    question: str | None = None
    refusal: str | None = None
    sent: int = 0  # bytes of a streamed answer
    outcomes: dict[str, Any] = field(default_factory=dict)  # of several intents: how many, and the last refusal


def dump(value: Any) -> bytes:
    """Return *value* as JSON, with moments in the project's format."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an integer of more than 64 bits, or a lone surrogate from the request
        return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> str:
    return format_timestamp(value) if isinstance(value, datetime) else str(value)


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    """Return *value* as a JSON response; underscores in header names become dashes."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(dump(value), status, named, content_type=JSON)


def client_descriptor() -> int | None:
    """Return the descriptor of the connection of the request; None if it is unknown."""
    descriptor: int | None = request.environ.get(CONNECTION)
    return descriptor


def document(data: bytes, media: str) -> Response:
    """Return *data* as a response of the type *media*, with the charset UTF-8 if it is text."""
    return Response(data, content_type=f"{media}; charset=utf-8" if media.startswith("text/") else media)


def problem(error: JidomemError) -> Response:
    """Return *error* as a problem document (RFC 9457), with the same members as in every interface."""
    seen: RequestRecord = g.seen
    seen.refusal = error.code
    project = str((request.view_args or {}).get("project", "PROJECT"))
    return refused({**described(error, project), "request_id": seen.id}, error)


def refused(document: Mapping[str, Any], error: JidomemError) -> Response:
    """Return the *document* about *error* as a problem response with its headers, without access to the request."""
    response = Response(dump(document), error.http_status, content_type=PROBLEM)
    response.headers.extend(retry(error))
    if error.code == "unauthenticated":
        response.headers["WWW-Authenticate"] = 'Bearer realm="jidomem"'
    if isinstance(error, NotServed) and error.allow:
        response.headers["Allow"] = ", ".join(error.allow)
    return response


def retry(error: JidomemError) -> list[tuple[str, str]]:
    """Return the header Retry-After for an error that passes without a change."""
    return [("Retry-After", str(_RETRY[error.code]))] if error.code in _RETRY else []


def described(error: JidomemError, project: str = "PROJECT") -> dict[str, Any]:
    """Return the members of the problem document of *error* in a request about *project*."""
    title = error.code.replace("_", " ")
    return {
        "type": f"urn:jido:error:{error.code}",
        "title": title,
        "status": error.http_status,
        **outcome(error, project),
    }


def outcome(result: Receipt | WriteResult | JidomemError, project: str) -> dict[str, Any]:
    """Return a receipt, the result of an entry, or an error as plain values, its texts for requests about *project*."""
    return for_requests(result.to_dict(), project)


def arguments(*known: str) -> dict[str, str]:
    """Return the query parameters; raises InvalidRequest for one that is not *known*, or given twice."""
    if not request.query_string:
        return {}
    values = single_values(request.args)
    for name in values:
        if name not in known:
            raise unknown(f"{request.path} takes no argument {name!r:.200}", name, known)
    return values


def single_values(values: Any) -> dict[str, str]:
    """Return a mapping of single values; raises InvalidRequest for a name given twice."""
    for name, given in values.lists():
        if len(given) > 1:
            raise InvalidRequest(f"{name} is given {len(given)} times", hint=f"give {name} once")
    return dict(values.items())


def unknown(detail: str, name: str, known: Collection[str]) -> InvalidRequest:
    """Return the error for the unknown *name*, with the nearest of *known* in its hint."""
    return InvalidRequest(detail, hint=did_you_mean(name, known, f"it takes {_listed(known)}"))


def _listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


#: The header with the key by which a retry is recognised.
KEY = "Idempotency-Key"
#: Headers with a condition for a write, which no route can honour.
_CONDITIONS = ("If-Match", "If-Unmodified-Since")


def idempotency_key() -> str | None:
    """Return the key in the header, in UTF-8; raise InvalidRequest for one that is empty, repeated or not UTF-8."""
    given = request.headers.get(KEY)
    if given is None:
        return None
    try:
        key = given.encode("latin-1").decode()  # WSGI has each byte as a character
    except UnicodeDecodeError:
        raise InvalidRequest(f"the header {KEY} is not UTF-8", hint="send a key of ASCII letters and digits") from None
    if not key.strip() or ", " in key:
        raise InvalidRequest(f"the header {KEY} is empty or repeated", hint="give one key")
    return key


def check_headers(takes: Collection[str]) -> None:
    """Raise InvalidRequest for a header that changes how a write is done, unless the route *takes* it."""
    if KEY in request.headers and KEY not in takes:
        raise InvalidRequest(
            f"{request.path} takes no {KEY}",
            hint="leave it out; an entry's id, a session's name and expected_rev make a retry safe here",
        )
    for name in _CONDITIONS:
        if name in request.headers:
            raise InvalidRequest(
                f"{request.path} takes no {name}",
                hint="leave it out: a change of a memory that another one replaced is refused with 409 and names"
                " that one; working memory takes expected_rev",
            )


def flag(given: Mapping[str, str], name: str) -> bool:
    """Return the boolean argument *name*, by default False; raise InvalidRequest for any other value."""
    value = given.get(name, "false")
    if value not in _TRUTHS:
        raise InvalidRequest(f"{name}={value!r:.200} is not true or false", hint=f"give {name}=1, or leave it out")
    return _TRUTHS[value]


_TRUTHS = {"1": True, "true": True, "0": False, "false": False}


def integer(given: Mapping[str, str], name: str, example: int = 50) -> int | None:
    """Return the integer *name*, by default None; raise InvalidRequest for any other value, with an *example*."""
    value = given.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        hint = f"give {name}={example}, or leave it out"
        raise InvalidRequest(f"{name}={value!r:.200} is not a whole number from 0 to 999,999,999", hint=hint)
    return int(value)


def content_type(*known: str) -> str:
    """Return the media type of the body, one of *known*, in UTF-8; raises NotServed `unsupported_media_type`."""
    given, options = parse_options_header(request.content_type)
    if given.lower() not in known:
        raise _unsupported(f"{given or 'of no stated type'}, and {request.path} takes {_listed(known)}", known[0])
    if options.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
        raise _unsupported(f"in {options['charset']}, and {request.path} takes UTF-8", f"{known[0]}; charset=utf-8")
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise NotServed(
            f"the body is packed ({coding}), and {request.path} takes it as it is",
            hint="send it unpacked, without the header Content-Encoding",
            code="unsupported_media_type",
        )
    return given.lower()


def _unsupported(what: str, media: str) -> NotServed:
    hint = f"send it with the header Content-Type: {media}"
    return NotServed(f"the body is {what}", hint=hint, code="unsupported_media_type")


def body() -> bytes:
    """Return the body; raise TooLarge above the limit, without reading further."""
    limit = current_app.config[LIMITS].body
    stream = request.environ["wsgi.input"]
    length = request.content_length
    data = stream.read(limit + 1 if length is None else length) if (length or 0) <= limit else b""
    if len(data) > limit or (length or 0) > limit:
        raise too_large("the body", limit)
    return data


def too_large(
    what: str, limit: int, hint: str = "send less at once, or many intents as application/x-ndjson"
) -> TooLarge:
    """Return the error for more than *limit* bytes."""
    return TooLarge(f"{what} has more than {limit:,} bytes", hint=hint)


#: The most items of an array: each has an outcome, in one answer.
MOST_ITEMS = 10_000


def json_body() -> Any:
    """Return the JSON value in the body; raises InvalidRequest, and TooLarge for an array of too many items."""
    content_type(JSON)
    if not (data := body()).strip():
        raise InvalidRequest("the body is empty", hint=f"send JSON, as /openapi.json describes it for {request.path}")
    values = parse_json(data)
    if isinstance(values, list) and len(values) > MOST_ITEMS:
        detail = f"the array has {len(values):,} items; it holds at most {MOST_ITEMS:,}"
        raise TooLarge(detail, hint="send fewer at once, or intents as application/x-ndjson")
    return values


def json_object(known: Mapping[str, type]) -> dict[str, Any]:
    """Return the JSON object in the body; raises InvalidRequest unless each member is *known*, and of its type."""
    values = json_body()
    if not isinstance(values, dict):
        raise InvalidRequest("the body is not a JSON object", hint=f"send an object with {_listed(known)}")
    for name, value in values.items():
        if name not in known:
            raise unknown(f"{request.path} takes no member {name!r:.200}", name, known)
        if not isinstance(value, (int, float) if known[name] is float else known[name]):
            kind, example = _WRITTEN[known[name]]
            raise InvalidRequest(f"{name} is not {kind}", hint=f'write "{name}": {example}')
    return values


_WRITTEN = {
    str: ("a text", '"..."'), bool: ("true or false", "true"), dict: ("an object", '{"status": "Completed"}'),
    list: ("a list", '["..."]'), int: ("a whole number", "5"),
    float: ("a number", "0.5"),
}  # fmt: skip


T = TypeVar("T")
_PART = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_PIECE = re.compile(r'(?:[^;"]|"(?:[^"\\]|\\.)*"?)+')
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+|\*")
#: Between 0 and 1; Java's own client writes `q=.2`.
_QUALITY = re.compile(r"0?\.\d{1,3}|0\.?|1(?:\.0{0,3})?")


class _Range(NamedTuple):
    """A media range of the header: its name and quality."""

    name: str
    quality: float

    def weight(self, offer: str) -> int:
        """Return how specifically the range matches *offer*: from 0, no match, to 3, its full name."""
        if self.name in ("*", "*/*"):
            return 1
        if self.name.endswith("/*"):
            return 2 * offer.startswith(self.name[:-1])
        return 3 * (self.name == offer)


def negotiate(offers: Mapping[str, T]) -> T:
    """Return the value of the media type in *offers* that the header Accept prefers.

    Raises NotServed `not_acceptable` if it accepts none of them, InvalidRequest for a malformed header.
    """
    after_this_request(_varying)
    accept = request.headers.get("Accept", "*/*")
    chosen = _chosen(accept, tuple(offers))
    if chosen is None:
        raise refusal(f"none of {accept}", offers)
    return offers[chosen]


def _varying(response: Response) -> Response:
    response.vary.add("Accept")
    return response


def refusal(what: str, offers: Iterable[str]) -> NotServed:
    """Return the error for *what*, which matches none of the media types in *offers*."""
    return NotServed(f"{what} is available here", hint=f"accept one of: {', '.join(offers)}", code="not_acceptable")


def named(values: Collection[str], names: Mapping[str, Collection[str]], offers: Mapping[str, T]) -> dict[str, T]:
    """Return those of *offers* that *values* name: by media types, separated by commas, or by the short *names*.

    Raises InvalidRequest for an unknown value, NotServed `not_acceptable` if none is offered.
    """
    wanted = {name for value in values for name in re.split(r"\s*,\s*", value.strip().lower())}
    if unknown := next((name for name in wanted if name and name not in names and "/" not in name), None):
        raise InvalidRequest(
            f"{unknown!r:.200} is not a format", hint=f"give one of: {', '.join(names)}, or a media type"
        )
    media = wanted.union(*(names.get(name, ()) for name in wanted))
    selected = {offer: what for offer, what in offers.items() if offer in media}
    if not selected:
        raise refusal(f"none of {', '.join(values)}", offers)
    return selected


@lru_cache(maxsize=256)
def _chosen(accept: str, offers: tuple[str, ...]) -> str | None:
    """Return the offer of the highest quality, the first among equals; None if none is accepted."""
    ranges = [_range(part) for part in _PART.findall(accept) if part.strip()]
    if not ranges:
        return offers[0]
    qualities = {offer: _quality(offer, ranges) for offer in offers}
    best = max(offers, key=lambda offer: qualities[offer])
    return best if qualities[best] else None


def _quality(offer: str, ranges: Iterable[_Range]) -> float:
    """Return the quality of *offer*: that of the most specific range that matches it."""
    return max((each.weight(offer), each.quality) for each in [*ranges, _Range("*", 0.0)])[1]


def _range(part: str) -> _Range:
    name, *parameters = (piece.strip().lower() for piece in _PIECE.findall(part) or [""])
    quality = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
    if not (_NAME.fullmatch(name) and _QUALITY.fullmatch(quality)):
        raise InvalidRequest(
            f"{part.strip()!r:.200} of the header Accept is not a media range",
            hint="write it so: Accept: text/csv, */*;q=0.5",
        )
    return _Range(name, float(quality))


_WRONG = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)


def check(data: bytes, what: str) -> None:
    """Raise InvalidRequest unless *data* is percent-encoded UTF-8; *what* names it in the message."""
    if wrong := _WRONG.search(data):
        raise InvalidRequest(
            f"{what} has {wrong[0].decode('latin-1')!r} at byte {wrong.start()}, and a percent sign is followed by two"
            " hexadecimal digits",
            hint="write a percent sign as %25",
        )
    try:
        unquote_to_bytes(data).decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not UTF-8", hint="percent-encode the bytes of UTF-8: %C3%A9 for é") from None


def read(data: bytes, what: str) -> MultiDict[str, str]:
    """Return the values of each name, in their order; raise as `check` does."""
    check(data, what)
    pieces = filter(None, data.replace(b"+", b" ").split(b"&"))
    pairs = ((unquote_to_bytes(part).decode() for part in piece.partition(b"=")[::2]) for piece in pieces)
    return MultiDict([(name, value) for name, value in pairs])
