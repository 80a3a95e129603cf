"""Reading no older than a version: wait a moment for it to arrive here, or say that it has not."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, sleep

from jidomem.errors import Busy, InvalidRequest
from jidomem.serve.site import Site
from jidomem.terms import bare, integer
from jidomem.version import read
from jidomem.vocab import graph_iri, jido

WAIT = 1.0
_PAUSE = 0.02
_COMMIT = "urn:jido:commit:"


def reach(site: Site, project: str, given: Mapping[str, str]) -> None:
    """Return when the memory of *project* has reached the version in `min_position`, at once where none is given.

    Raises InvalidRequest for a text that is no version, Busy `index_behind` when it has not been reached in time.
    """
    wanted = given.get("min_position")
    if wanted is None or wanted == "0":
        return
    version = read(wanted)
    if version is None:
        raise InvalidRequest(
            f"min_position={wanted!r} is no version", hint="give the version of a receipt: 12-0a1b2c3d4e5f"
        )
    deadline = monotonic() + WAIT
    while not _holds(site, project, *version):
        if monotonic() > deadline:
            at = site.memory.catch_up(project)
            raise Busy(
                f"{project} is at version {at} here, and {wanted} has not arrived",
                hint="ask again in a moment, or without min_position",
                code="index_behind",
            )
        sleep(_PAUSE)


def _holds(site: Site, project: str, position: int, ids: list[str]) -> bool:
    """Return whether the index has a commit of that position, and of one of the ids, which are beginnings.

    Heads of one version beside the foremost may have other positions, and came before or with it.
    """
    site.memory.catch_up(project)
    found = site.memory.index.triples(graph_iri(project), None, jido("position"), integer(position))
    commits = [bare(node).removeprefix(_COMMIT) for node, _, _ in found]
    return any(commit.startswith(tuple(ids)) for commit in commits)
