"""Pages as HTML: each screen in the one frame around all, its JSON twin, and refusals in words with what helps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from flask import Response, g, request
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jidomem.errors import InvalidRequest, JidomemError, Unauthenticated
from jidomem.moments import parse_moment, stamp
from jidomem.serve import answers, sparql, wire
from jidomem.serve.curator import assets, memory, moments, origin, sheet, signing, text
from jidomem.serve.curator.asked import AS_OF, Asked
from jidomem.serve.curator.refusals import ToFillIn
from jidomem.serve.curator.screen import Screen
from jidomem.serve.curator.screens import SCREENS
from jidomem.serve.site import Route, Site

HTML = "text/html"
_TYPE = f"{HTML}; charset=utf-8"
#: Everything comes from this server, and no text in a page is taken for style or script.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_OK = {200: "The page."}
_DONE = {303: "The page to go on with."}
PROJECT = "project"
_HTML, _JSON = {HTML: "Text"}, {wire.JSON: "Object"}
_TOKEN = "who runs the server gives one out with: jidomem token add NAME --role curator"
#: Seconds after which a browser asks anew for what is not there yet.
_AGAIN = "3"
#: Arguments that say nothing of what is shown at another moment.
_ONCE = ("cursor", "after", "done", "made", "ended")
#: What an act says of itself in the address it leads to.
_SAID = ("done", "made", "ended")
_DEED = re.compile(r"[0-9a-f]{16}")
_FILTERS = (text.short, text.day, text.clock, text.when, text.exact, text.name, text.words)


@cache
def _environment() -> Environment:
    """Return what makes HTML of templates: what is put in is text, and what is not there is an error."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    made.filters |= {each.__name__: each for each in _FILTERS}
    made.tests |= {"web": text.is_web, "moment": text.is_moment}
    made.globals["asset"] = assets.address
    return made


def _plain(value: Any) -> Any:
    """Return what stands in a page for *value*: texts with nothing in them that acts."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return text.shown(value)
    return value


def html(template: str, status: int = 200, screen: Screen | None = None, **values: Any) -> Response:
    """Return one template as a page, under the policy its *screen* needs."""
    body = _environment().get_template(template).render(screen=screen, menu=_MENU, **values)
    styles = " ".join(["'self'", *(f"'{each}'" for each in (screen.style_hashes if screen else ()))])
    headers = {"Content-Security-Policy": _POLICY.format(styles=styles), "Cache-Control": "no-cache"}
    return Response(body, status, headers, content_type=_TYPE)


def _shown(
    screen: Screen, asked: Asked, parts: Mapping[str, str], *, status: int = 200, refusal: JidomemError | None = None
) -> Response:
    """Return a screen in the frame; a form that was refused is there again as it was filled in."""
    try:
        model = screen.show(asked, **parts)
    except ToFillIn as error:
        g.seen.refusal, status, model = error.code, error.http_status, error.model
    now = {name: value for name, value in asked.given.items() if name not in (AS_OF, *_ONCE)}
    return html(
        screen.template,
        status,
        screen,
        it=model,
        asked=asked,
        projects=asked.site.projects(),
        caller=asked.site.caller,
        refusal=refusal,
        form=defaultdict(str, request.form if refusal else {}),
        ticked=request.form.getlist("chosen") if refusal else [],
        span=moments.span(asked),
        now_link=f"{_here()}?{urlencode(now)}" if now else _here(),
    )


def _arguments(screen: Screen, site: Site) -> dict[str, str]:
    """Return the arguments of a request for *screen*; raises InvalidRequest for one it does not take.

    What is said to be done was done: a link from elsewhere puts no words of its own there.
    """
    if screen.is_open:
        return wire.once(request.args)
    given = wire.arguments(AS_OF, *screen.takes)
    done = given.pop("done", "")
    if done and not _DEED.fullmatch(done):
        raise InvalidRequest("this is nothing that is done here", hint="leave done out")
    return {**given, **site.operation.deeds.told(request.path.removesuffix(".json"), done)}


def _here() -> str:
    """Return the address of the page, as a link has it."""
    return quote(request.path, safe="/:@")


def _page(screen: Screen, site: Site, project: str, **parts: str) -> Response:
    """Return a screen as a page."""
    asked = Asked.of(site, project, _arguments(screen, site))
    return _shown(screen, asked, parts)


def _twin(screen: Screen, site: Site, project: str, **parts: str) -> Response:
    """Return what a screen shows as JSON."""
    asked = Asked.of(site, project, _arguments(screen, site))
    return wire.answer({"project": project, "as_of": asked.as_of, **screen.show(asked, **parts)})


def _acted(screen: Screen, site: Site, project: str, **parts: str) -> Response:
    """Return the page to go on with after what the form asked; the same page, with why, where it was refused."""
    form = _form(site, several=screen.several)
    asked = Asked.of(site, project, _arguments(screen, site))
    try:
        _check_act(screen, asked, form)
        return signing.lead_to(_done(screen, asked, form, parts))
    except JidomemError as error:
        if error.http_status >= 500:
            raise
        g.seen.refusal = error.code
        return _shown(screen, asked, parts, status=error.http_status, refusal=error)


def _done(screen: Screen, asked: Asked, form: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """Return the page to go on with after the act of *screen*; what was done before by the same form is not refused."""
    act = partial(_told, screen, asked, form, parts)
    if not screen.writes:
        return act()
    caller = asked.site.caller
    who = caller.digest if caller else None
    key = (who, screen.path, asked.project, *sorted(parts.items()), *sorted(form.items()))
    return asked.site.operation.repeats.once(key, act)


def _told(screen: Screen, asked: Asked, form: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """Return the page that the act of *screen* leads to, which finds what was done under a name."""
    assert screen.act is not None
    path, _, query = screen.act(asked, form, **parts).partition("?")
    given = dict(parse_qsl(query))
    said = {name: given.pop(name) for name in _SAID if name in given}
    if said:
        given["done"] = asked.site.operation.deeds.keep(unquote(path), said)
    return f"{path}?{urlencode(given)}" if given else path


def _check_act(screen: Screen, asked: Asked, form: Mapping[str, str]) -> None:
    """Raise InvalidRequest for what is to be done in the past, with a field there is not, or by no act of *screen*."""
    if asked.as_of is not None:
        raise InvalidRequest("the past is shown, and cannot be changed", hint="go back to now")
    _check_fields(form, ("act", *screen.fields))
    way = form.get("act", "")
    if way not in screen.acts:
        raise wire.unknown(f"nothing can be done by the name {way[:100]!r}", way, screen.acts)


def _check_fields(form: Mapping[str, str], known: Collection[str]) -> None:
    for name in form:
        if name not in known:
            raise wire.unknown(f"this form has no field {name!r}", name, known)


def refused(error: JidomemError) -> Response:
    """Return *error* as a page: what happened, and what to do next."""
    g.seen.refusal = error.code
    if error.code == "unauthenticated":
        return _asking_for_a_token(error)
    hidden = error.code == "unknown_project"
    found = _said(error, error.http_status, None if hidden else (request.view_args or {}).get("project"))
    found.headers.extend(wire.retry(error))
    if error.code == "index_behind":
        found.headers["Refresh"] = _AGAIN
    return found


def broken(told: Mapping[str, Any]) -> Response:
    """Return as a page that something went wrong inside, as a problem document would say it."""
    return _said(told, 500, None)


def _said(error: JidomemError | Mapping[str, Any], status: int, project: str | None) -> Response:
    as_of = parse_moment(request.args.get(AS_OF))
    moment = None if as_of is None else stamp(as_of)
    return html("refused.html", status, error=error, request_id=g.seen.id, project=project, as_of=moment)


def _asking_for_a_token(error: JidomemError) -> Response:
    """Return what leads to where a token is given; the page itself, with what was not done, in answer to a form."""
    if request.method == "GET":
        return signing.lead_to(f"{signing.SIGN_IN}?{urlencode({signing.NEXT: request.full_path.rstrip('?')})}")
    error.hint = _TOKEN
    is_sign_in = request.path == signing.SIGN_IN
    page = request.form.get(signing.NEXT) if is_sign_in else request.full_path.rstrip("?")
    return html("sign-in.html", error.http_status, page=page or signing.PATH, refusal=error, is_over=not is_sign_in)


def is_page() -> bool:
    """Return whether the request is for a page, not for its twin, what a script asks, or anything else."""
    path = request.path
    if path.endswith("/sparql"):
        return path.startswith(f"{signing.PATH}/") and HTML in request.headers.get("Accept", "")
    return path in ("/", signing.PATH) or (path.startswith(f"{signing.PATH}/") and not path.endswith(".json"))


def _home(site: Site) -> Response:
    """Return where the pages of a project begin, at the moment that is asked for."""
    given = wire.arguments(PROJECT, AS_OF)
    return signing.lead_to(Asked.of(site, given.get(PROJECT) or site.default(), given).link("timeline"))


def _asset(site: Site, digest: str, name: str) -> Response:
    return assets.serve(digest, name)


def _sign_in_page(site: Site) -> Response:
    """Return the page on which a token is given."""
    page = signing.further(wire.arguments(signing.NEXT))
    held = signing.held(site.memory.settings.root)
    is_over = bool(held) and site.keyring is not None and site.keyring.whose(held) is None
    return html("sign-in.html", page=page, refusal=None, is_over=is_over)


def _sign_in(site: Site) -> Response:
    """Keep the token that was given, where it is one; else raise Unauthenticated."""
    given = _form(site)
    _check_fields(given, (signing.NEXT, "token"))
    page, token = signing.further(given), given.get("token", "").strip()
    if site.keyring is None or site.keyring.whose(token) is None:
        raise Unauthenticated("this token is none, or none any more", hint=_TOKEN)
    return signing.signed_in(site.memory.settings.root, token, page, public_url=site.public_url)


def _sign_out(site: Site) -> Response:
    """Keep no token any more."""
    _form(site)
    return signing.signed_out(site.memory.settings.root)


def _form(site: Site, several: Collection[str] = ()) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent; raises PolicyDenied, InvalidRequest and NotServed."""
    origin.check(site.public_url)
    wire.content_type("application/x-www-form-urlencoded")
    single = request.form.copy()
    lines = {name: "\n".join(single.poplist(name)) for name in several if name in single}
    return {**wire.once(single), **lines}


def _of(screen: Screen) -> Iterator[Route]:
    """Yield the routes of one screen: the page, its twin, and what its forms do."""
    path, takes = f"/ui/{{project}}/{screen.path}", dict.fromkeys((AS_OF, *screen.takes), "")
    yield Route("GET", path, partial(_page, screen), f"Show the page {screen.name}", _OK, _HTML, takes)
    yield Route("GET", f"{path}.json", partial(_twin, screen), f"Give what {screen.name} shows", _OK, _JSON, takes)
    if screen.act is not None:
        does = f"Do what a form of {screen.name} asks"
        yield Route("POST", path, partial(_acted, screen), does, _DONE, _HTML, takes, writes=screen.writes)


def _routes() -> Iterator[Route]:
    for path in ("/", "/ui"):
        yield Route("GET", path, _home, "Lead to the curator's pages", _DONE, _HTML, {PROJECT: "", AS_OF: ""})
    yield Route("GET", "/assets/{digest}/{name}", _asset, "Give what pages are made with", _OK, {}, public=True)
    yield Route("GET", signing.SIGN_IN, _sign_in_page, "Ask for a token", _OK, _HTML, public=True)
    yield Route("POST", signing.SIGN_IN, _sign_in, "Keep a token", _DONE, _HTML, public=True)
    yield Route("POST", signing.SIGN_OUT, _sign_out, "Keep no token", _DONE, _HTML, public=True)
    one = "/ui/{project}/memories/{id}"
    yield Route("GET", f"{one}.ttl", memory.turtle_of, "Give a memory as Turtle", _OK, {"text/turtle": "Text"})
    yield Route("GET", f"{one}.jsonld", memory.linked_of, "Give a memory as JSON-LD", _OK, {})
    yield Route("GET", "/ui/{project}/playbook/{name}.csv", sheet.question, "Give all rows", _OK, {answers.CSV: "Text"})
    path, asked = "/ui/{project}/sparql", {sparql.QUERY: "Text", sparql.FORM: "Query"}
    yield Route("GET", path, sheet.asked, "Ask in SPARQL from the console", _OK, {}, is_open=True)
    yield Route("POST", path, sheet.posted, "Ask in SPARQL from the console", _OK, {}, reads=asked, is_open=True)
    for screen in SCREENS:
        yield from _of(screen)


#: Where the pages of a project are, as a refusal names them.
PLACES: tuple[str, ...] = tuple(f"/ui/{{project}}/{screen.path}" for screen in SCREENS)
_MENU = tuple((screen.menu, screen.path) for screen in SCREENS if screen.menu)
#: The routes of all pages; /openapi.json says nothing of them.
PAGES: tuple[Route, ...] = tuple(_routes())
