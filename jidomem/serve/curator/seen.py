"""What of the agents and clients of a server is shown to whom: all to curators, to others what is their own."""

from __future__ import annotations

from jidomem.authority import CURATORS, role_named
from jidomem.serve.curator.asked import Asked


def sees_all(asked: Asked) -> bool:
    """Return whether what others did is there for who asks: a curator, or anybody where there are no tokens."""
    caller = asked.site.caller
    return caller is None or role_named(caller.role) in CURATORS


def sees(asked: Asked, agent: str) -> bool:
    """Return whether what *agent* did is there for who asks; the empty text is one that is not known."""
    return sees_all(asked) or (bool(agent) and asked.site.is_theirs(agent))


def is_here(asked: Asked, project: str) -> bool:
    """Return whether what was asked of *project* is told here; what was of none is for who reaches every project."""
    return project == asked.project or (not project and not asked.site.is_hidden())
