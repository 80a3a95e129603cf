"""The check of a memory over HTTP: the report that `jidomem check` gives."""

from __future__ import annotations

from flask import Response

from jidomem.errors import InvalidRequest
from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.positions import reach
from jidomem.serve.site import Site

SARIF, XML = "application/sarif+json", "application/xml"
_TYPES = {"json": wire.JSON, "sarif": SARIF, "junit": XML}


def check(site: Site, project: str) -> Response:
    """Return what is wrong with the memory of a project, as JSON, SARIF 2.1.0 or JUnit XML."""
    given = wire.arguments("format", "min_position")
    form = given.get("format") or negotiate({media: name for name, media in _TYPES.items()})
    if form not in _TYPES:
        raise InvalidRequest(f"a report comes as {', '.join(_TYPES)}, not as {form!r}", hint="format=json")
    reach(site, project, given)
    found = site.memory.checks.answer(project, form, wire.asker())
    return Response(found, content_type=f"{_TYPES[form]}; charset=utf-8" if form == "junit" else _TYPES[form])
