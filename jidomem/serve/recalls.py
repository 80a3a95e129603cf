"""Recall over HTTP: what is asked stands in the body, by the names Python has for it."""

from __future__ import annotations

from typing import Any

from flask import Response

from jidomem.errors import InvalidRequest
from jidomem.govern.recalled import markdown
from jidomem.serve import wire
from jidomem.serve.accept import negotiate
from jidomem.serve.briefings import MARKDOWN
from jidomem.serve.positions import reach
from jidomem.serve.site import Site

#: Kinds of what is of one agent alone.
OWN = frozenset(("entry", "page"))
TAKES = {
    "query": str, "limit": int, "agent_id": str, "session_id": str, "scope": str, "metadata": dict,
    "kinds": list, "about": list, "since": str, "until": str, "as_of": str, "valid_at": str, "agent": str,
    "session": str, "include_inactive": bool, "budget_tokens": int, "explain": bool,
}  # fmt: skip


def recall(site: Site, project: str) -> Response:
    """Return the memories that hold words of a text as JSON, or as quoted data in Markdown."""
    given = wire.arguments("min_position")
    form = negotiate({wire.JSON: "json", MARKDOWN: "md"})
    asked: dict[str, Any] = wire.json_object(TAKES)
    if "query" not in asked:
        raise InvalidRequest("there is no query", hint='write {"query": "..."}')
    reach(site, project, given)
    if "agent" in asked and not OWN.isdisjoint(asked.get("kinds", ())):
        site.check_own(asked["agent"])  # as of /entries/recall: one's own alone
    who = site.listener(asked.pop("agent_id", None))
    found = site.memory.recall(asked.pop("query"), project, **asked, **({"agent_id": who} if who else {}))
    if form == "json":
        return wire.answer(found.to_dict())
    return Response(markdown(found, show="GET memories/{}"), content_type=f"{MARKDOWN}; charset=utf-8")
