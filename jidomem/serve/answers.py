"""What is asked over HTTP: projects, named queries and single memories."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from flask import Response, g, request

from jidomem.errors import InvalidRequest, NotServed, TooLarge
from jidomem.govern.review import queued
from jidomem.index.answers import written
from jidomem.query import NamedQuery, snake
from jidomem.read import sessions as read_sessions
from jidomem.read.counts import counts, kept
from jidomem.read.pages import Page
from jidomem.read.tables import cell, tsv_line
from jidomem.read.turtle import turtle
from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.positions import reach
from jidomem.serve.site import Site

CSV, TSV, TURTLE, LINKED = "text/csv", "text/tab-separated-values", "text/turtle", "application/ld+json"
_ROWS = {wire.JSON: "json", CSV: "csv", TSV: "tsv"}
_SUFFIXES = {"json": "json", "csv": "csv", "tsv": "tsv", "ttl": "ttl"}
#: Arguments that name a moment: of the journal, and of the world.
MOMENTS = ("as_of", "valid_at")
#: Arguments every named query takes; what else it takes, its header says.
ASKING = (*MOMENTS, "include_inactive", "limit", "cursor", "min_position")
#: Names of parameters that would be taken for something else.
_TAKEN = ("name", "self", "project")


def projects(site: Site) -> Response:
    """Return the projects there are, with the version of each."""
    wire.arguments()
    there, default = site.projects(), site.memory.project
    found = [{"project": name, **_version(site, name)} for name in there]
    return wire.answer({"projects": found, "default": None if site.is_hidden() and default not in there else default})


def project(site: Site, project: str) -> Response:
    """Return what one project holds: counts by kind and status, its version, the ontology's, what is damaged."""
    given = wire.arguments(*MOMENTS, "min_position")
    reach(site, project, given)
    version = _version(site, project, given.get("as_of"))
    return wire.answer({
        "project": project,
        **version,
        "ontology_version": site.memory.schema.version,
        "counts": counts(site.memory.reader, project, **_moment(given)),
        "history": kept(site.memory.reader, project, as_of=given.get("as_of")),
        "damage": [error.to_dict() for error in site.memory.damage(project)],
    })  # fmt: skip


def _version(site: Site, project: str, as_of: str | None = None) -> dict[str, Any]:
    version = site.memory.catch_up(project) if as_of is None else site.memory.reader.version(project, as_of)
    return {"version": str(version), "last_commit": version.recorded_at or None}


def playbook(site: Site, project: str) -> Response:
    """Return the questions that can be asked by name."""
    wire.arguments()
    site.memory.catch_up(project)  # raises for a project there is not
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


def ask(site: Site, project: str, name: str) -> Response:
    """Return the rows of one named query as JSON, CSV or TSV."""
    name, form = _form(name)
    given = wire.once(request.args)
    site.memory.in_force.quietly()
    query = site.memory.playbook.get(name)
    g.seen.question = query.name
    reach(site, project, given)
    limit, most = wire.whole(given, "limit"), site.memory.settings.limits.query_rows
    page = site.memory.reader.ask_page(
        name,
        project=project,
        include_inactive=wire.flag(given, "include_inactive"),
        limit=most if limit is None else limit,
        cursor=given.get("cursor"),
        **_moment(given),
        **_parameters(given),
    )
    if len(page.rows) > most or (limit is None and page.cursor is not None):
        raise TooLarge(
            f"the answer has more than {most:,} rows",
            hint="give limit=1000, and follow the cursor of each page",
            code="result_too_large",
        )
    found = _rendered(page, site.memory.playbook.get(name).columns, form)
    return _further(found, page.cursor)


def _further(found: Response, cursor: str | None) -> Response:
    """Return *found* with a link to the next page, where there is one."""
    if cursor is not None:
        further = urlencode({**wire.once(request.args), "cursor": cursor})
        found.headers["Link"] = f'<{request.path}?{further}>; rel="next"'
    return found


def _form(name: str) -> tuple[str, str]:
    """Return the name without its suffix, and the format that the suffix, or else the Accept header, asks for."""
    stem, _, suffix = name.rpartition(".")
    if suffix not in _SUFFIXES or not stem:
        return name, negotiate(_ROWS)
    if suffix == "ttl":
        raise NotServed("rows cannot be Turtle", hint=f"ask for {stem}.json, .csv or .tsv", code="not_acceptable")
    return stem, suffix


def _parameters(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of the query itself; raises InvalidRequest for one that is written another way."""
    own = {name: value for name, value in given.items() if name not in ASKING}
    for name in own:
        near = name.replace("_", "").lower()
        other = next((known for known in ASKING if known.replace("_", "") == near), None)
        if other:
            raise InvalidRequest(f"{name} is not given as a parameter", hint=f"give {other} instead")
        if name in _TAKEN:
            raise InvalidRequest(f"no question has a parameter {name!r}", hint="the path names question and project")
    return own


def _rendered(page: Page, columns: tuple[str, ...], form: str) -> Response:
    if form == "json":
        return wire.answer({"rows": page.rows, "cursor": page.cursor})
    rows = ([cell(row[column]) for column in columns] for row in page.rows)
    if form == "tsv":
        text = "".join(f"{tsv_line(row)}\n" for row in (columns, *rows))
        return Response(text, content_type=f"{TSV}; charset=utf-8")
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return Response(file.getvalue(), content_type=f"{CSV}; charset=utf-8; header=present")


def memory(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return one memory, named by its IRI or a unique part of its id, as JSON, Turtle or JSON-LD."""
    given = wire.arguments(*MOMENTS, "min_position")
    form = negotiate({wire.JSON: "json", TURTLE: "turtle", LINKED: "jsonld"})
    reach(site, project, given)
    item = site.memory.reader.resolve(project, id, as_of=given.get("as_of"))
    if form == "json":
        return wire.answer(site.memory.reader.get_memory(project, item, **_moment(given)))
    triples = site.memory.reader.describe(project, item, **_moment(given))
    if form == "jsonld":
        return wire.document(written(triples, form, {}), LINKED)
    return wire.document(turtle(triples).encode(), TURTLE)


def _moment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the moments that are asked about."""
    return {name: given[name] for name in MOMENTS if name in given}


def history(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return what went before one memory, and what became of it."""
    given = wire.arguments(*MOMENTS, "min_position")
    reach(site, project, given)
    return wire.answer({"rows": site.memory.reader.history(project, id, **_moment(given)), "cursor": None})


def why(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return what explains one memory."""
    given = wire.arguments(*MOMENTS, "min_position")
    reach(site, project, given)
    return wire.answer(site.memory.reader.why(project, id, **_moment(given)))


def conflicts(site: Site, project: str) -> Response:
    """Return what waits for a curator, the most pressing first, or a page of it."""
    given = wire.arguments("limit", "cursor", "min_position")
    reach(site, project, given)
    limit, cursor, now = wire.whole(given, "limit"), given.get("cursor"), site.memory.sources.now()
    found = queued(site.memory.reader, project, now, limit=limit, cursor=cursor)
    rows = [one.to_dict() for one in found.waiting]
    return _further(wire.answer({"rows": rows, "cursor": found.cursor}), found.cursor)


def sessions(site: Site, project: str) -> Response:
    """Return the work sessions that have not ended, or all of them, oldest first."""
    given = wire.arguments("all", "min_position")
    reach(site, project, given)
    rows = read_sessions.sessions(site.memory.reader, project, ended=wire.flag(given, "all"))
    return wire.answer({"rows": rows, "cursor": None})


def session(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return one work session, by its name or IRI, in the state it is in."""
    reach(site, project, wire.arguments("min_position"))
    return wire.answer(read_sessions.session(site.memory.reader, project, id))
