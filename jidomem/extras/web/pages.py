"""The curator's pages as HTML: screens in one frame, their JSON twins, and refusals with hints.

Styles and scripts are our own and those that `lock.json` names; each is served under an address
with its digest, so that a browser may cache it for ever. A form is accepted from our own pages
only. A browser signs in with a token, in a cookie that scripts cannot read and other sites cannot
send. CSV is escaped so that a spreadsheet runs no formula.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from flask import Response, g, request
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.errors import InvalidRequest, JidomemError, NotFound, PolicyDenied, Unauthenticated
from jidomem.extras.web import cards, memory
from jidomem.extras.web.cards import AS_OF, InvalidForm, PageKind, PageRequest
from jidomem.extras.web.memory import GRAPH, MEMORY, TIMELINE
from jidomem.extras.web.ontology import CONSOLE, ONTOLOGY, PLAYBOOK, QUESTION, TERM
from jidomem.extras.web.operations import AGENTS, CHECK, HEALTH
from jidomem.extras.web.review import REVIEW
from jidomem.rdf.vocab import graph_iri
from jidomem.serve import memories, sparql, wire
from jidomem.serve.routes import Route
from jidomem.serve.server_state import RequestContext

_FOLDER = Path(__file__).parent
#: The folders of assets: ours, and those that ci/vendor downloaded.
_FOLDERS = (_FOLDER / "assets", _FOLDER / "vendored")
#: Suffix -> media type, independent of the configuration of the machine.
_SERVED = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """One asset: its bytes, and the digest in its address."""

    data: bytes
    digest: str


@cache
def _assets() -> dict[str, Asset]:
    assets = {}
    for folder in _FOLDERS:
        for path in sorted(folder.iterdir()):
            if path.suffix in _SERVED:
                data = path.read_bytes()
                assets[path.name] = Asset(data, sha256(data).hexdigest()[:16])
    return assets


def address(name: str) -> str:
    """Return the address of the asset *name*; raise KeyError for an unknown one."""
    return f"/assets/{_assets()[name].digest}/{name}"


def serve(digest: str, name: str) -> Response:
    """Return one asset; raise NotFound for an unknown one, or one of another version."""
    asset = _assets().get(name)
    if asset is None or asset.digest != digest:
        raise NotFound(f"there is no {name} of this version here", hint="reload the page")
    media = f"{_SERVED[Path(name).suffix]}; charset=utf-8"
    return Response(asset.data, content_type=media, headers={"Cache-Control": _FOR_EVER})


#: Each branch that started separately has a first commit of its own.
_FIRST = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?at WHERE { GRAPH <%s> { ?commit jido:position 1 ; jido:recordedAt ?at } } ORDER BY ?at"""


class TimeSpan(NamedTuple):
    """The first and the last moment, and the moment shown, in whole seconds since 1970."""

    first: int
    last: int
    at: int


def span(page: PageRequest) -> TimeSpan:
    """Return the first and last moments of the project, by its first commits and the newest one."""
    newest = page.memory.catch_up(page.project).recorded_at
    rows = page.memory.reader.select(page.project, _FIRST % graph_iri(page.project))
    first = min((format_timestamp(row["at"]) for row in rows), default=newest)
    if not (first and newest):
        return TimeSpan(0, 0, 0)
    at = _seconds(newest) if page.as_of is None else _seconds(page.as_of)
    return TimeSpan(_seconds(first), _seconds(newest), min(max(at, _seconds(first)), _seconds(newest)))


def _seconds(moment: str) -> int:
    at = parse_moment(moment)
    assert at is not None
    return ceil(at.timestamp())


_HINT = "send the form from the page itself, in a browser that says where it comes from"


def check(public_url: str | None) -> None:
    """Raise PolicyDenied for a request that comes from a page of another origin.

    As net/http.CrossOriginProtection of Go 1.25 does it: Sec-Fetch-Site decides, else Origin, compared with the host
    or the *public_url*; a request with neither does not come from a browser.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None and site not in ("same-origin", "none"):
        raise PolicyDenied("a page of another origin sent this form", hint=_HINT)
    if site is None and origin is not None and origin != public_url and urlsplit(origin).netloc != request.host:
        raise PolicyDenied(f"a page of {origin[:200]} sent this form", hint=_HINT)


SCREENS: tuple[PageKind, ...] = (
    TIMELINE,
    MEMORY,
    REVIEW,
    GRAPH,
    PLAYBOOK,
    QUESTION,
    CONSOLE,
    CHECK,
    ONTOLOGY,
    TERM,
    AGENTS,
    HEALTH,
)


csv.field_size_limit(sys.maxsize)  # texts of memories are longer than the default of the library
#: The start of a cell that a spreadsheet takes for a formula, unless it is a number.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def inert(cell: str) -> str:
    """Return the text of a cell, escaped if a spreadsheet would take it for a formula.

    >>> inert("=HYPERLINK(1)"), inert("-12.5"), inert("a = b")
    ("'=HYPERLINK(1)", '-12.5', 'a = b')
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def question(site: RequestContext, project: str, name: str) -> Response:
    """Return all rows of a named query as CSV."""
    return _for_sheets(memories.ask(site, project, f"{name}.csv"))


def answer_query(site: RequestContext, project: str) -> Response:
    """Return the answer to the query in the address."""
    return _for_sheets(sparql.get(site, project))


def posted(site: RequestContext, project: str) -> Response:
    """Return the answer to the query in the body."""
    return _for_sheets(sparql.post(site, project))


def _for_sheets(response: Response) -> Response:
    """Return a CSV answer with its cells escaped, any other answer unchanged."""
    if response.mimetype != memories.CSV:
        return response
    file = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(response.get_data(as_text=True), newline=""))
    csv.writer(file, lineterminator="\r\n").writerows([inert(cell) for cell in row] for row in rows)
    response.set_data(file.getvalue())
    return response


#: The prefix of the name of the cookie with the token, and the path to which it is sent.
COOKIE, PATH = "jidomem_token", "/ui"
#: A link from another site, as in a chat, opens its page; forms are checked by `check`.
_SITES = "Lax"
SIGN_IN, SIGN_OUT = f"{PATH}/sign-in", f"{PATH}/sign-out"
NEXT = "next"


def cookie_name(root: Path) -> str:
    """Return the name of the cookie for the server of *root* at the requested host and port.

    Cookies do not distinguish ports, so each server has a name of its own, and none signs another one out.
    """
    return f"{COOKIE}_{sha256(f'{root.resolve()} {request.host.lower()}'.encode()).hexdigest()[:16]}"


def session_token(root: Path) -> str:
    """Return the token in the cookie for *root*, empty if there is none."""
    return request.cookies.get(cookie_name(root), "")


def authorization(root: Path) -> str:
    """Return the header Authorization of the request; for a page also from its cookie."""
    header = request.headers.get("Authorization", "")
    token = session_token(root)
    if header or not token or not request.path.startswith(f"{PATH}/"):
        return header
    return f"Bearer {token}"


def next_page(given: Mapping[str, str]) -> str:
    """Return the page to show after signing in; raise InvalidRequest for an address of another site."""
    page = given.get(NEXT) or PATH
    parsed = urlsplit(page)
    is_ours = not parsed.scheme and not parsed.netloc and (page == PATH or page.startswith(f"{PATH}/"))
    if not is_ours or not page.isprintable() or "\\" in page:
        raise InvalidRequest(f"{NEXT} is not a page of this server", hint=f"leave {NEXT} out")
    return page


def redirect_to(page: str) -> Response:
    """Return a redirect to *page* by GET."""
    return Response(status=303, headers={"Location": page})


def signed_in(root: Path, token: str, page: str, *, public_url: str | None) -> Response:
    """Return the redirect to *page* with the *token* in a cookie."""
    response = redirect_to(page)
    safe = request.is_secure or (public_url or "").startswith("https:")
    response.set_cookie(cookie_name(root), token, path=PATH, httponly=True, samesite=_SITES, secure=safe)
    return response


def signed_out(root: Path) -> Response:
    """Return the redirect to the sign-in page, without the cookie."""
    response = redirect_to(SIGN_IN)
    response.delete_cookie(cookie_name(root), path=PATH, httponly=True, samesite=_SITES)
    return response


HTML = "text/html"
_TYPE = f"{HTML}; charset=utf-8"
#: Everything comes from this server, and no text in a page can act as style or script.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DONE = {303: "The page to go on with."}
PROJECT = "project"
_HTML = {HTML: "Text"}
_TOKEN = "the operator of the server creates one in a shell: jidomem access token add AGENT --role curator"
#: Seconds after which a browser reloads a page that is not ready.
_AGAIN = "3"
#: Arguments without a meaning at another moment.
_ONCE = ("cursor", "after", "done", "made", "ended")
_FLASH_FIELDS = ("done", "made", "ended")
_DEED = re.compile(r"[0-9a-f]{16}")
_FILTERS = (
    cards.short, cards.format_day, cards.format_clock, cards.format_minute, cards.format_exact, cards.display_name,
    cards.words,
)  # fmt: skip


@cache
def _environment() -> Environment:
    """Return the template environment: values are escaped, and undefined ones are errors."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    made.filters |= {each.__name__: each for each in _FILTERS}
    made.tests |= {"web": cards.is_http_url, "moment": cards.is_moment}
    made.globals["asset"] = address
    return made


def _plain(value: Any) -> Any:
    """Return the text of *value* for a page, with control characters written out."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return cards.name_invisible(value)
    return value


def html(template: str, status: int = 200, screen: PageKind | None = None, **values: Any) -> Response:
    """Return one template as a page, under the content policy of its *screen*."""
    body = _environment().get_template(template).render(screen=screen, menu=_MENU, **values)
    styles = " ".join(["'self'", *(f"'{each}'" for each in (screen.style_hashes if screen else ()))])
    headers = {"Content-Security-Policy": _POLICY.format(styles=styles), "Cache-Control": "no-cache"}
    return Response(body, status, headers, content_type=_TYPE)


def _shown(
    screen: PageKind,
    page: PageRequest,
    parts: Mapping[str, str],
    *,
    status: int = 200,
    refusal: JidomemError | None = None,
    keeps_form: bool = False,
) -> Response:
    """Return a screen in the frame; a form that is refused, or that *keeps_form*, is shown again with its values."""
    try:
        model = screen.show(page, **parts)
    except InvalidForm as error:
        g.seen.refusal, status, model = error.code, error.http_status, error.model
    now = {name: value for name, value in page.given.items() if name not in (AS_OF, *_ONCE)}
    return html(
        screen.template,
        status,
        screen,
        it=model,
        page=page,
        projects=page.site.projects(),
        caller=page.site.caller,
        refusal=refusal,
        form=defaultdict(str, request.form if refusal or keeps_form else {}),
        ticked=request.form.getlist("chosen") if refusal else [],
        span=span(page),
        now_link=f"{_page_address()}?{urlencode(now)}" if now else _page_address(),
    )


def _arguments(screen: PageKind, site: RequestContext) -> dict[str, str]:
    """Return the arguments of a request for *screen*; raises InvalidRequest for one that it does not take.

    Messages are looked up by name: a link from another site cannot show a text of its own.
    """
    if screen.is_open:
        return wire.single_values(request.args)
    given = wire.arguments(AS_OF, *screen.takes)
    done = given.pop("done", "")
    if done and not _DEED.fullmatch(done):
        raise InvalidRequest("done is not the name of a message", hint="leave done out")
    return {**given, **site.operation.flash_messages.message(request.path.removesuffix(".json"), done)}


def _page_address() -> str:
    return quote(request.path, safe="/:@")


def _page(screen: PageKind, site: RequestContext, project: str, **parts: str) -> Response:
    page = PageRequest.of(site, project, _arguments(screen, site))
    return _shown(screen, page, parts)


def _twin(screen: PageKind, site: RequestContext, project: str, **parts: str) -> Response:
    page = PageRequest.of(site, project, _arguments(screen, site))
    return wire.answer({"project": project, "as_of": page.as_of, **screen.show(page, **parts)})


def _acted(screen: PageKind, site: RequestContext, project: str, **parts: str) -> Response:
    """Perform the action of a form, and return the redirect; if it was refused, the same page with the refusal."""
    form = _form(site, several=screen.several)
    page = PageRequest.of(site, project, _arguments(screen, site))
    # A page that is shown again shows the items that the form is about, not the next ones.
    named = {name: form[name] for name in screen.takes if name in ("item", "other") and form.get(name)}
    again = replace(page, given={**page.given, **named, **screen.redraws.get(form.get("act", ""), {})})
    try:
        _check_act(screen, page, form)
        if form["act"] in screen.redraws:
            return _shown(screen, again, parts, keeps_form=True)
        return redirect_to(_act_once(screen, page, form, parts))
    except JidomemError as error:
        if error.http_status >= 500:
            raise
        g.seen.refusal = error.code
        error.hint = wire.described(error, project)["hint"]
        return _shown(screen, again, parts, status=error.http_status, refusal=error)


def _act_once(screen: PageKind, page: PageRequest, form: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """Return the next page after the action of *screen*; a repeated form returns the page of the first one."""
    act = partial(_redirect_after, screen, page, form, parts)
    if not screen.writes:
        return act()
    caller = page.site.caller
    caller_digest = caller.digest if caller else None
    key = (caller_digest, screen.path, page.project, *sorted(parts.items()), *sorted(form.items()))
    return page.site.operation.repeats.once(key, act)


def _redirect_after(screen: PageKind, page: PageRequest, form: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """Return the next page after the action of *screen*, with the name of its flash message."""
    assert screen.act is not None
    path, _, query = screen.act(page, form, **parts).partition("?")
    given = dict(parse_qsl(query))
    flash = {name: given.pop(name) for name in _FLASH_FIELDS if name in given}
    if flash:
        given["done"] = page.site.operation.flash_messages.store(unquote(path), flash)
    return f"{path}?{urlencode(given)}" if given else path


def _check_act(screen: PageKind, page: PageRequest, form: Mapping[str, str]) -> None:
    """Raise InvalidRequest for an action on a past state, an unknown field, or an unknown action."""
    if page.as_of is not None:
        raise InvalidRequest("past states are read-only", hint="return to the present")
    _check_fields(form, ("act", *screen.fields))
    way = form.get("act", "")
    if way not in screen.acts:
        raise wire.unknown(f"nothing can be done by the name {way[:100]!r}", way, screen.acts)


def _check_fields(form: Mapping[str, str], known: Collection[str]) -> None:
    for name in form:
        if name not in known:
            raise wire.unknown(f"this form has no field {name!r:.200}", name, known)


def refused(error: JidomemError) -> Response:
    """Return *error* as a page."""
    g.seen.refusal = error.code
    if error.code == "unauthenticated":
        return _sign_in_needed(error)
    hidden = error.code == "unknown_project"
    response = _error_page(error, error.http_status, None if hidden else (request.view_args or {}).get("project"))
    response.headers.extend(wire.retry(error))
    if error.code == "index_behind":
        response.headers["Refresh"] = _AGAIN
    return response


def broken(problem: Mapping[str, Any]) -> Response:
    """Return an internal error as a page, from its problem document."""
    return _error_page(problem, 500, None)


def _error_page(error: JidomemError | Mapping[str, Any], status: int, project: str | None) -> Response:
    as_of = parse_moment(request.args.get(AS_OF))
    moment = None if as_of is None else format_timestamp(as_of)
    if isinstance(error, JidomemError):
        error = wire.described(error, project or PROJECT.upper())
    return html("refused.html", status, error=error, request_id=g.seen.id, project=project, as_of=moment)


def _sign_in_needed(error: JidomemError) -> Response:
    """Return the redirect to the sign-in page; for a form the sign-in page itself, with the refusal."""
    if request.path == "/":  # the browser sends the cookie below PATH only
        return redirect_to(PATH)
    if request.method == "GET":
        return redirect_to(f"{SIGN_IN}?{urlencode({NEXT: request.full_path.rstrip('?')})}")
    error.hint = _TOKEN
    is_sign_in = request.path == SIGN_IN
    page = request.form.get(NEXT) if is_sign_in else request.full_path.rstrip("?")
    texts = {} if is_sign_in else _own_texts()
    return html("sign-in.html", error.http_status, page=page or PATH, refusal=error, is_over=not is_sign_in, form=texts)


#: The fields of forms that a person writes.
_WRITTEN_FIELDS = frozenset((*MEMORY.fields, *REVIEW.fields, *ONTOLOGY.fields)) - {"item", "other", "kind", "chosen"}


def _own_texts() -> dict[str, str]:
    """Return the texts of a form that could not be processed, to be copied; none of a form of another origin."""
    try:
        check(None)
    except PolicyDenied:
        return {}
    return {name: value for name, value in request.form.items() if name in _WRITTEN_FIELDS}


def is_page() -> bool:
    """Return whether the request is for a page, and not for JSON, a query of a script, or another interface."""
    path = request.path
    if path.endswith("/sparql"):
        return path.startswith(f"{PATH}/") and HTML in request.headers.get("Accept", "")
    return path in ("/", PATH) or (path.startswith(f"{PATH}/") and not path.endswith(".json"))


def _home(site: RequestContext) -> Response:
    given = wire.arguments(PROJECT, AS_OF)
    return redirect_to(PageRequest.of(site, given.get(PROJECT) or site.default(), given).link("timeline"))


def _asset(site: RequestContext, digest: str, name: str) -> Response:
    return serve(digest, name)


def _sign_in_page(site: RequestContext) -> Response:
    page = next_page(wire.arguments(NEXT))
    token = session_token(site.memory.settings.root)
    is_over = bool(token) and site.keyring is not None and site.keyring.find(token) is None
    return html("sign-in.html", page=page, refusal=None, is_over=is_over, form={})


def _sign_in(site: RequestContext) -> Response:
    """Set the cookie with the token; raise Unauthenticated for an unknown one."""
    given = _form(site)
    _check_fields(given, (NEXT, "token"))
    page, token = next_page(given), given.get("token", "").strip()
    if site.keyring is None or site.keyring.find(token) is None:
        raise Unauthenticated("the token is unknown or revoked", hint=_TOKEN)
    return signed_in(site.memory.settings.root, token, page, public_url=site.public_url)


def _sign_out(site: RequestContext) -> Response:
    _form(site)
    return signed_out(site.memory.settings.root)


def _form(site: RequestContext, several: Collection[str] = ()) -> dict[str, str]:
    """Return the fields of a form sent by one of our pages; raises PolicyDenied, InvalidRequest and NotServed."""
    check(site.public_url)
    wire.content_type("application/x-www-form-urlencoded")
    single = request.form.copy()
    lines = {name: "\n".join(single.poplist(name)) for name in several if name in single}
    return {**wire.single_values(single), **lines}


def _routes_of(screen: PageKind) -> Iterator[Route]:
    path, takes = f"/ui/{{project}}/{screen.path}", dict.fromkeys((AS_OF, *screen.takes), "")
    yield Route("GET", path, partial(_page, screen), f"Show the page {screen.name}", gives=_HTML, takes=takes)
    yield Route("GET", f"{path}.json", partial(_twin, screen), f"Return the data of {screen.name}", takes=takes)
    if screen.act is not None:
        does = f"Perform a form of {screen.name}"
        yield Route(
            "POST", path, partial(_acted, screen), does, gives=_HTML, takes=takes, statuses=_DONE, writes=screen.writes
        )


def _routes() -> Iterator[Route]:
    for path in ("/", "/ui"):
        takes = {PROJECT: "", AS_OF: ""}
        yield Route("GET", path, _home, "Lead to the curator's pages", gives=_HTML, takes=takes, statuses=_DONE)
    yield Route("GET", "/assets/{digest}/{name}", _asset, "Return an asset", gives={}, public=True)
    yield Route("GET", SIGN_IN, _sign_in_page, "Ask for a token", gives=_HTML, public=True)
    yield Route("POST", SIGN_IN, _sign_in, "Sign in", gives=_HTML, statuses=_DONE, public=True)
    yield Route("POST", SIGN_OUT, _sign_out, "Sign out", gives=_HTML, statuses=_DONE, public=True)
    one = "/ui/{project}/memories/{id}"
    yield Route("GET", f"{one}.ttl", memory.turtle_of, "Return a memory as Turtle", gives={"text/turtle": "Text"})
    yield Route("GET", f"{one}.jsonld", memory.linked_of, "Return a memory as JSON-LD", gives={})
    yield Route("GET", "/ui/{project}/playbook/{name}.csv", question, "Return all rows", gives={memories.CSV: "Text"})
    path, console = "/ui/{project}/sparql", {sparql.QUERY: "Text", sparql.FORM: "Query"}
    yield Route("GET", path, answer_query, "Query from the console", gives={}, is_open=True)
    yield Route("POST", path, posted, "Query from the console", gives={}, reads=console, is_open=True)
    for screen in SCREENS:
        yield from _routes_of(screen)


#: The paths of the pages, for refusals.
PLACES: tuple[str, ...] = tuple(f"/ui/{{project}}/{screen.path}" for screen in SCREENS)
_MENU = tuple((screen.menu, screen.path) for screen in SCREENS if screen.menu)
#: The routes of all pages, which are not in /openapi.json.
PAGES: tuple[Route, ...] = tuple(_routes())
