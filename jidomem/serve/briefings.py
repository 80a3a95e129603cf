"""What an agent should know first, over HTTP."""

from __future__ import annotations

from flask import Response, request

from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.positions import reach
from jidomem.serve.site import Site

MARKDOWN = "text/markdown"
_KNOWN = ("agent", "role", "budget_tokens", "as_of", "valid_at", "min_position")


def briefing(site: Site, project: str) -> Response:
    """Return a briefing as JSON, or its text as Markdown."""
    several = request.args.copy()
    about = several.poplist("about")
    given = wire.once(several)
    for name in given:
        if name not in _KNOWN:
            raise wire.unknown(f"{request.path} takes no argument {name!r}", name, (*_KNOWN, "about"))
    form = negotiate({wire.JSON: "json", MARKDOWN: "md"})
    reach(site, project, given)
    told = site.memory.briefing(
        project,
        agent=site.listener(given.get("agent")),
        role=given.get("role"),
        budget_tokens=wire.whole(given, "budget_tokens"),
        about=about,
        as_of=given.get("as_of"),
        valid_at=given.get("valid_at"),
    )
    return (
        wire.answer(told.to_dict())
        if form == "json"
        else Response(told.text, content_type=f"{MARKDOWN}; charset=utf-8")
    )
