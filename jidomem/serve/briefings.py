"""Briefings, and what governs files, over HTTP."""

from __future__ import annotations

from flask import Response, request

from jidomem.errors import InvalidRequest
from jidomem.govern.governing import nearest
from jidomem.govern.nearness import SHOWN
from jidomem.read.tables import plain
from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.positions import reach
from jidomem.serve.site import Site

MARKDOWN = "text/markdown"
_GOVERNING = ("limit", "include_inactive", "as_of", "valid_at", "min_position")
_KNOWN = ("agent", "role", "budget_tokens", "task", "as_of", "valid_at", "min_position")


def briefing(site: Site, project: str) -> Response:
    """Return a briefing as JSON, or its text as Markdown."""
    given, about = _arguments(_KNOWN, "about")
    form = negotiate({wire.JSON: "json", MARKDOWN: "md"})
    reach(site, project, given)
    told = site.memory.briefing(
        project,
        agent=site.listener(given.get("agent")),
        role=given.get("role"),
        budget_tokens=wire.whole(given, "budget_tokens"),
        about=about,
        task=given.get("task"),
        as_of=given.get("as_of"),
        valid_at=given.get("valid_at"),
    )
    return (
        wire.answer(told.to_dict())
        if form == "json"
        else Response(told.text, content_type=f"{MARKDOWN}; charset=utf-8")
    )


def governing(site: Site, project: str) -> Response:
    """Return the nearest of what governs each file, and how many govern them in all."""
    given, paths = _arguments(_GOVERNING, "file")
    if not paths:
        raise InvalidRequest("there is no file", hint="name one: ?file=src/a.py")
    reach(site, project, given)
    limit = wire.whole(given, "limit")
    answer = site.memory.governing_answer(
        *paths,
        project=project,
        as_of=given.get("as_of"),
        valid_at=given.get("valid_at"),
        include_inactive=wire.flag(given, "include_inactive"),
    )
    near = nearest(answer.rows, SHOWN if limit is None else limit)
    return wire.answer({"rows": [plain(row) for row in near], "count": len(answer.rows), **answer.to_dict()})


def _arguments(known: tuple[str, ...], repeated: str) -> tuple[dict[str, str], list[str]]:
    """Return the arguments of the request, each given once, and the values of the one that may be *repeated*.

    Raises InvalidRequest for one that is not *known*.
    """
    several = request.args.copy()
    values = several.poplist(repeated)
    given = wire.once(several)
    for name in given:
        if name not in known:
            raise wire.unknown(f"{request.path} takes no argument {name!r}", name, (*known, repeated))
    return given, values
