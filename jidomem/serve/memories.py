"""The routes about memories: projects, named queries, single memories, briefings, checks, corrections, recall and the
change feed.

The change feed has commits as JSON lines, at once or by long polling, or as server-sent events. A request that names a
version waits until the index has it (`wait_for_version`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import islice
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, g, request

from jidomem.base.clock import json_value
from jidomem.curation.review_queue import queued, with_endings
from jidomem.errors import Busy, Conflict, InvalidRequest, JidomemError, NotServed, QueryTimeout, TooLarge
from jidomem.index.store import write_triples
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import integer, plain_value
from jidomem.rdf.turtle import turtle
from jidomem.rdf.vocab import graph_iri, jido
from jidomem.read import derived
from jidomem.read.derived import count_entries, counts
from jidomem.read.history import FeedEntry, entries, version_of
from jidomem.read.lists import Page
from jidomem.read.named_queries import text_columns
from jidomem.read.playbook import Playbook, cell, tsv_line
from jidomem.recall.briefing import BUDGET, markdown
from jidomem.recall.nearness import MOST_SHOWN
from jidomem.records.active import corrected_instead
from jidomem.records.intent import Version, parse_version
from jidomem.records.named_query import NamedQuery, snake
from jidomem.runtime.worker_pool import hung_up, is_disconnected
from jidomem.serve import wire
from jidomem.serve.server_state import RequestContext
from jidomem.serve.wire import negotiate

CSV, TSV, TURTLE, LINKED = "text/csv", "text/tab-separated-values", "text/turtle", "application/ld+json"
_ROWS = {wire.JSON: "json", CSV: "csv", TSV: "tsv"}
#: The suffixes of formats of rows, and the names of other formats.
_SUFFIXES, _OTHERS = frozenset(_ROWS.values()), {"ttl": "Turtle", "xml": "XML", "html": "HTML"}
#: The arguments with a moment: of recording, and of validity.
MOMENT_PARAMETERS = ("as_of", "valid_at")
#: The arguments of every named query, besides its own parameters.
ASKING = (*MOMENT_PARAMETERS, "include_inactive", "limit", "cursor", "min_position")
#: Parameter names that would collide with arguments of the method.
_TAKEN = ("name", "self", "project")


#: Seconds that a request waits for a version, and between two checks.
_VERSION_WAIT, _VERSION_PAUSE = 1.0, 0.02
_COMMIT = "urn:jido:commit:"


def wait_for_version(site: RequestContext, project: str, wanted: str | None) -> None:
    """Wait until the memory of *project* has reached the version *wanted*, the parameter `min_position`, if given.

    Raises InvalidRequest for an invalid version, Busy `index_behind` if it is not reached in time.
    """
    if wanted is None or wanted == "0":
        return
    version = parse_version(wanted)
    if version is None:
        raise InvalidRequest(
            f"min_position={wanted!r:.200} is not a version", hint="give the version of a receipt: 12-0a1b2c3d4e5f"
        )
    deadline = monotonic() + _VERSION_WAIT
    while not _has_version(site, project, *version):
        if monotonic() > deadline:
            at = site.memory.catch_up(project)
            raise Busy(
                f"{project} is at version {at} here, and {wanted} has not arrived",
                hint="try again, or leave out min_position",
                code="index_behind",
            )
        sleep(_VERSION_PAUSE)


def _has_version(site: RequestContext, project: str, position: int, ids: list[str]) -> bool:
    """Return whether the index has a commit of that position whose id begins with one of *ids*.

    The other heads of a version may have other positions; they are applied before the foremost one or with it.
    """
    site.memory.catch_up(project)
    rows = site.memory.index.triples(graph_iri(project), None, jido("position"), integer(position))
    commits = [plain_value(node).removeprefix(_COMMIT) for node, _, _ in rows]
    return any(commit.startswith(tuple(ids)) for commit in commits)


def projects(site: RequestContext) -> Response:
    """Return the projects with their versions."""
    wire.arguments()
    names, default = site.projects(), site.memory.project
    rows = [{"project": name, **_version(site, name)} for name in names]
    return wire.answer({"projects": rows, "default": None if site.is_hidden() and default not in names else default})


def project(site: RequestContext, project: str) -> Response:
    """Return the state of one project: counts by class and state, versions, damage; a withdrawal is a DeletedMarker."""
    given = wire.arguments(*MOMENT_PARAMETERS, "min_position")
    version = _version(site, project, given.get("as_of"))
    return wire.answer({
        "project": project,
        **version,
        "ontology_version": site.memory.schema.version,
        "counts": counts(site.memory.reader, project, **_moment(given)),
        "history": count_entries(site.memory.reader, project, as_of=given.get("as_of")),
        "damage": [error.to_dict() for error in site.memory.damage(project)],
    })  # fmt: skip


def _version(site: RequestContext, project: str, as_of: str | None = None) -> dict[str, Any]:
    version = site.memory.catch_up(project) if as_of is None else site.memory.reader.version(project, as_of)
    return {"version": str(version), "last_commit": version.recorded_at or None}


def playbook(site: RequestContext, project: str) -> Response:
    """Return the named queries."""
    wire.arguments()
    site.memory.catch_up(project)  # raises for an unknown project
    return wire.answer({"queries": [_described(query) for query in site.memory.playbook]})


def _described(query: NamedQuery) -> dict[str, Any]:
    known = [param for param in query.params if param.name not in ("project", "asOf", "validAt", "includeInactive")]
    return {
        "name": query.name,
        "role": query.role,
        "summary": query.summary,
        "params": [
            {"name": snake(param.name), "type": param.type, "required": param.default is None} for param in known
        ],
        "columns": list(query.columns),
        "order": list(query.order),
    }


def ask(site: RequestContext, project: str, name: str) -> Response:
    """Return the rows of one named query as JSON, CSV or TSV."""
    site.memory.config.reload_or_keep()
    name, form = _form(name, site.memory.playbook)
    given = wire.single_values(request.args)
    query = site.memory.playbook.get(name)
    g.seen.question = query.name
    limit, most = wire.integer(given, "limit"), site.memory.settings.limits.query_rows
    seconds = site.memory.settings.limits.query_seconds
    with nullcontext() if query.is_isolated else site.operation.turns.turn():
        page = site.memory.reader.ask_page(
            name,
            partial(_check_request, [], seconds, wire.client_descriptor()),
            project=project,
            include_inactive=wire.flag(given, "include_inactive"),
            limit=most if limit is None else min(limit, most),
            cursor=given.get("cursor"),
            **_moment(given),
            **_parameters(given),
        )
    if page.cursor is not None and (limit is None or limit > most):
        raise TooLarge(
            f"the answer has more than {most:,} rows",
            hint=f"give limit={min(most, 1000)}, and follow the cursor of each page",
            code="result_too_large",
        )
    columns = text_columns(query, include_inactive=wire.flag(given, "include_inactive"))
    response = _rendered(page, columns, form)
    return _with_next_link(response, cursor=page.cursor)


def _check_request(times: list[float], seconds: float, asker: int | None) -> None:
    """Raise QueryTimeout *seconds* after the first of *times*, to which now is added; InvalidRequest without client."""
    times.append(monotonic())  # the first batch is read once the lists are filled, for which every request waits
    if times[-1] - times[0] > seconds:
        hint = "give limit=1000, and follow the cursor of each page"
        raise QueryTimeout(f"the query was not answered in {seconds:g} seconds, and was stopped", hint=hint)
    if asker is not None and is_disconnected(asker):
        raise hung_up()


def _with_next_link(response: Response, **changed: str | None) -> Response:
    """Return *response* with a link to the next page: the address with a changed argument; without it for None."""
    if None not in changed.values():
        query = urlencode({**wire.single_values(request.args), **changed})
        response.headers["Link"] = f'<{request.path}?{query}>; rel="next"'
    return response


def _form(name: str, playbook: Playbook) -> tuple[str, str]:
    """Return the name without its suffix, and the format by the suffix or the header Accept.

    Raises NotServed for a query with the suffix of another format.
    """
    stem, _, suffix = name.rpartition(".")
    if stem and suffix in _SUFFIXES:
        return stem, suffix
    if stem in playbook and name not in playbook:
        hint = f"ask for {stem}.json, .csv or .tsv"
        raise NotServed(f"rows cannot be {_OTHERS.get(suffix, suffix)}", hint=hint, code="not_acceptable")
    return name, negotiate(_ROWS)


def _parameters(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of the query itself; raises InvalidRequest for a misspelt one."""
    own = {name: value for name, value in given.items() if name not in ASKING}
    for name in own:
        near = name.replace("_", "").lower()
        other = next((known for known in ASKING if known.replace("_", "") == near), None)
        if other:
            raise InvalidRequest(f"{name} is not given as a parameter", hint=f"give {other} instead")
        if name in _TAKEN:
            raise InvalidRequest(
                f"no question has a parameter {name!r:.200}", hint="the path names question and project"
            )
    return own


def _rendered(page: Page, columns: tuple[str, ...], form: str) -> Response:
    if form == "json":
        return wire.answer({"rows": page.rows, "cursor": page.cursor})
    rows = ([cell(row.get(column)) for column in columns] for row in page.rows)
    if form == "tsv":
        text = "".join(f"{tsv_line(row)}\n" for row in (columns, *rows))
        return Response(text, content_type=f"{TSV}; charset=utf-8")
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return Response(file.getvalue(), content_type=f"{CSV}; charset=utf-8; header=present")


def memory(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return one memory, by its IRI or a unique part of its id, as JSON, Turtle or JSON-LD."""
    given = wire.arguments(*MOMENT_PARAMETERS, "min_position")
    form = negotiate({wire.JSON: "json", TURTLE: "turtle", LINKED: "jsonld"})
    item = site.memory.reader.resolve(project, id, as_of=given.get("as_of"))
    if form == "json":
        return wire.answer(site.memory.reader.get_memory(project, item, **_moment(given)))
    triples = site.memory.reader.describe(project, item, **_moment(given))
    if form == "jsonld":
        return wire.document(write_triples(triples, form, {}), LINKED)
    return wire.document(turtle(triples).encode(), TURTLE)


def _moment(given: Mapping[str, str]) -> dict[str, str]:
    return {name: given[name] for name in MOMENT_PARAMETERS if name in given}


def history(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return the predecessors and successors of one memory."""
    given = wire.arguments(*MOMENT_PARAMETERS, "min_position")
    return wire.answer({"rows": site.memory.reader.history(project, id, **_moment(given)), "cursor": None})


def why(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return the provenance of one memory."""
    given = wire.arguments(*MOMENT_PARAMETERS, "min_position")
    return wire.answer(site.memory.reader.why(project, id, **_moment(given)))


def conflicts(site: RequestContext, project: str) -> Response:
    """Return a page of the review queue, by priority, or of the proposals of one agent."""
    given = wire.arguments("limit", "cursor", "by", "min_position")
    limit, cursor, by = wire.integer(given, "limit"), given.get("cursor"), given.get("by")
    near, now = () if by is not None else site.memory.near_pairs(project), site.memory.sources.now()
    curators = site.memory.writer.authority(project).curators
    page = queued(site.memory.reader, project, now, near, limit=limit, cursor=cursor, by=by, curators=curators)
    rows = [one.to_dict() for one in with_endings(site.memory.reader, project, page.waiting)]
    lag = {} if by is not None else site.memory.lag(project)
    return _with_next_link(wire.answer({"rows": rows, "cursor": page.cursor, **lag}), cursor=page.cursor)


def sessions(site: RequestContext, project: str) -> Response:
    """Return the work sessions that have not ended, or all of them, oldest first."""
    given = wire.arguments("all", "min_position")
    rows = derived.sessions(site.memory.reader, project, ended=wire.flag(given, "all"))
    return wire.answer({"rows": rows, "cursor": None})


def session(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return the present state of one work session, by its name or IRI."""
    wire.arguments("min_position")
    return wire.answer(derived.session(site.memory.reader, project, id))


MARKDOWN = "text/markdown"
_GOVERNING = ("limit", "include_inactive", "as_of", "valid_at", "min_position")
_KNOWN = ("agent", "role", "budget_tokens", "task", "as_of", "valid_at", "min_position")


def briefing(site: RequestContext, project: str) -> Response:
    """Return a briefing as JSON, or its text as Markdown."""
    given, about = _arguments(_KNOWN, "about")
    form = negotiate({wire.JSON: "json", MARKDOWN: "md"})
    briefing = site.memory.briefing(
        project,
        agent=site.listener(given.get("agent")),
        role=given.get("role"),
        budget_tokens=wire.integer(given, "budget_tokens", BUDGET),
        about=about,
        task=given.get("task"),
        as_of=given.get("as_of"),
        valid_at=given.get("valid_at"),
    )
    if form == "json":
        return wire.answer(briefing.to_dict())
    return Response(briefing.text, content_type=f"{MARKDOWN}; charset=utf-8")


def governing(site: RequestContext, project: str) -> Response:
    """Return the nearest memories that govern each file, and their number."""
    given, paths = _arguments(_GOVERNING, "file")
    if not paths:
        raise InvalidRequest("there is no file", hint="name one: ?file=src/a.py")
    limit = wire.integer(given, "limit")
    answer = site.memory.governing_answer(
        *paths,
        project=project,
        limit=MOST_SHOWN if limit is None else limit,
        as_of=given.get("as_of"),
        valid_at=given.get("valid_at"),
        include_inactive=wire.flag(given, "include_inactive"),
    )
    rows = [json_value(row) for row in answer.rows]
    return wire.answer({"rows": rows, "count": len(answer.items), **answer.to_dict()})


def _arguments(known: tuple[str, ...], repeated: str) -> tuple[dict[str, str], list[str]]:
    """Return the arguments of the request, each given once, and the values of the one that may be *repeated*.

    Raises InvalidRequest for an argument that is not *known*.
    """
    several = request.args.copy()
    values = several.poplist(repeated)
    given = wire.single_values(several)
    for name in given:
        if name not in known:
            raise wire.unknown(f"{request.path} takes no argument {name!r:.200}", name, (*known, repeated))
    return given, values


SARIF, XML = "application/sarif+json", "application/xml"
_TYPES = {"json": wire.JSON, "sarif": SARIF, "junit": XML}


def check(site: RequestContext, project: str) -> Response:
    """Return the report of a check as JSON, SARIF 2.1.0 or JUnit XML."""
    given = wire.arguments("format", "min_position")
    form = given.get("format") or negotiate({media: name for name, media in _TYPES.items()})
    if form not in _TYPES:
        raise InvalidRequest(f"a report comes as {', '.join(_TYPES)}, not as {form!r:.200}", hint="format=json")
    report = site.memory.checks.answer(project, form, wire.client_descriptor())
    return Response(report, content_type=f"{_TYPES[form]}; charset=utf-8" if form == "junit" else _TYPES[form])


_WHO = {"asserted_by": str, "asserted_in": str}
CORRECTION_FIELDS = {
    "supersede": str, "invalidate": bool, "confirm": bool, "undo": bool, "set": dict, "reason": str, **_WHO,
}  # fmt: skip


def revise(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Correct a memory, and return the receipt."""
    dry_run = wire.flag(wire.arguments("dry_run"), "dry_run")
    values = wire.json_object(CORRECTION_FIELDS)
    author: dict[str, Any] = {name: values.pop(name) for name in _WHO if name in values}
    if (key := wire.idempotency_key()) is not None:
        author["idempotency_key"] = key
    changes = values.pop("set", {})
    if taken := [*(changes.keys() & (*_WHO, "idempotency_key", "reason"))]:
        raise InvalidRequest(f"set cannot set {taken[0]}", hint=f"give {taken[0]} beside set")
    item = site.memory.reader.resolve(project, id)
    try:
        receipt = site.writer.correct(project, item, changes=changes, dry_run=dry_run, who=author, **values)
    except Conflict as error:
        if call := corrected_instead(error, {"id": item, **values, **({"set": changes} if changes else {})}):
            path = f"/projects/{quote(project)}/memories/{wire.item_path(call.pop('id'))}/revise"
            error.hint = f"{error.advice}: POST {path} {wire.dump(call).decode()}"
        raise
    status = 200 if dry_run or receipt.status == "deduplicated" else 201
    return wire.answer(wire.outcome(receipt, project), status)


RECALL_FIELDS = {
    "query": str, "limit": int, "agent_id": str, "session_id": str, "scope": str, "metadata": dict,
    "kinds": list, "about": list, "since": str, "until": str, "as_of": str, "valid_at": str, "agent": str,
    "session": str, "include_inactive": bool, "budget_tokens": int, "explain": bool, "min_score": float,
}  # fmt: skip


def recall(site: RequestContext, project: str) -> Response:
    """Return the memories that match a text as JSON, or as quoted data in Markdown."""
    wire.arguments("min_position")
    form = negotiate({wire.JSON: "json", MARKDOWN: "md"})
    arguments: dict[str, Any] = wire.json_object(RECALL_FIELDS)
    if "query" not in arguments:
        raise InvalidRequest("there is no query", hint='write {"query": "..."}')
    if "agent" in arguments and "page" in arguments.get("kinds", ()):
        site.check_own(arguments["agent"], "read the pages of", "agent")
    agent = site.listener(arguments.pop("agent_id", None))
    recalled = site.memory.recall(
        arguments.pop("query"), project, **arguments, **({"agent_id": agent} if agent else {})
    )
    if form == "json":
        return wire.answer(recalled.to_dict())
    return Response(markdown(recalled, show="GET memories/{}"), content_type=f"{MARKDOWN}; charset=utf-8")


NDJSON, EVENTS = "application/x-ndjson", "text/event-stream"
#: Commits in one answer: the default and the limit.
FEED_PAGE, LARGEST_FEED_PAGE = 1_000, 10_000
#: Bytes after which an answer ends.
FEED_BYTES = 8 * 1024 * 1024
#: The longest wait for an answer in seconds.
LONGEST_WAIT = 30
#: Seconds between two polls of the journal, between two comments, and until the client must reopen a stream.
FEED_PAUSE, HEARTBEAT, STREAM_LIFE = 0.1, 10.0, 300.0


def change_feed(site: RequestContext, project: str) -> Response:
    """Return the commits after a version: lines in one answer, or a stream of events."""
    form = negotiate({NDJSON: "lines", EVENTS: "events"})
    given = wire.arguments("after", "limit", "wait", "min_position")
    limit, wait = _feed_integer(given, "limit", 1, LARGEST_FEED_PAGE), _feed_integer(given, "wait", 0, LONGEST_WAIT)
    site.memory.catch_up(project)  # raises for an unknown project
    after = (request.headers.get("Last-Event-ID") if form == "events" else None) or given.get("after", "0")
    feed = _Feed(site, project, version_of(site.memory.journal, Stream(project), after))
    if form == "lines":
        return _lines(feed, limit or FEED_PAGE, wait or 0)
    if wait is not None:
        raise InvalidRequest("a stream of events has no parameter wait", hint="leave out wait")
    return _events(feed, limit)


def _feed_integer(given: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    value = wire.integer(given, name, most)
    if value is not None and not least <= value <= most:
        raise InvalidRequest(f"{name}={value} is not from {least} to {most:,}", hint=f"give {name}={most} or less")
    return value


class _Feed:
    """The position of one reader, which has received the commits up to `version`."""

    def __init__(self, site: RequestContext, project: str, version: Version) -> None:
        self.site, self.project, self.version = site, project, version
        self._stream, self._seen = Stream(project), Version()
        self._asker = wire.client_descriptor()

    def next(self) -> Iterator[FeedEntry]:
        """Yield the new commits, and advance after each; raises the errors of `entries`."""
        memory = self.site.memory
        self._seen = memory.journal.head(self._stream)
        memory.catch_up(self.project)
        for entry in entries(memory.journal, memory.index, self._stream, self.version):
            yield entry
            self.version = entry.version

    def wait(self, seconds: float) -> bool:
        """Return whether new commits arrive within *seconds*; earlier if the server stops or the client disconnects.

        Raise Unauthenticated if the token of the reader was revoked.
        """
        deadline = monotonic() + seconds
        while not self.site.memory.journal.wait_for_change(self._stream, self._seen, FEED_PAUSE):
            if monotonic() > deadline or self.site.operation.stopping.is_set() or self.is_left():
                return False
            self.site.check_caller()
        return True

    def is_left(self) -> bool:
        return self._asker is not None and is_disconnected(self._asker)

    def place(self) -> None:
        """Reserve a place for a waiting reader; raise Busy `too_many_requests` if there is none."""
        if not self.site.operation.feeds.acquire(blocking=False):
            raise Busy(
                "too many readers are waiting for commits",
                hint="try again, or ask for lines without wait",
                code="too_many_requests",
            )

    def leave(self) -> None:
        self.site.operation.feeds.release()


def _lines(feed: _Feed, limit: int, wait: int) -> Response:
    """Return up to *limit* commits as lines, once there are any, with a link to the next ones."""
    body, more = _gathered(feed, limit)
    if wait and not body:
        feed.place()
        try:
            if feed.wait(wait):
                body, more = _gathered(feed, limit)
        finally:
            feed.leave()
    return _with_next_link(Response(body, content_type=NDJSON), after=str(feed.version) if more else None)


def _gathered(feed: _Feed, limit: int) -> tuple[bytes, bool]:
    """Return the lines of the new commits, and whether there are more."""
    body = bytearray()
    for number, entry in enumerate(feed.next()):
        if number == limit or len(body) > FEED_BYTES:
            return bytes(body), True
        body += wire.dump(entry.to_dict()) + b"\n"
    return bytes(body), False


def _events(feed: _Feed, limit: int | None) -> Response:
    """Return a stream of events, which ends when the server stops, after *limit* events or STREAM_LIFE seconds."""
    feed.place()
    response = Response(_feed_lines(feed, limit), content_type=EVENTS)
    response.call_on_close(feed.leave)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"  # a reverse proxy must not buffer the stream
    return response


def _feed_lines(feed: _Feed, limit: int | None) -> Iterator[bytes]:
    end, count = monotonic() + STREAM_LIFE, 0
    yield b"retry: 1000\n\n"
    try:
        while monotonic() < end and not feed.site.operation.stopping.is_set():
            for entry in islice(feed.next(), None if limit is None else limit - count):
                yield _event("commit", entry.to_dict(), str(entry.version))
                count += 1
            if count == limit:
                return
            if not feed.wait(HEARTBEAT):
                if feed.is_left():
                    return
                yield b": \n\n"
    except JidomemError as error:
        yield _event("refused", wire.described(feed.site.visible_error(error)))


def _event(kind: str, value: Mapping[str, Any], identity: str | None = None) -> bytes:
    named = f"id: {identity}\n" if identity is not None else ""
    return f"{named}event: {kind}\ndata: ".encode() + wire.dump(value) + b"\n\n"
